// Is the coupled model a good one? Its frequencies beside those of the whole mesh, and the domain to look at.
#include "libsolver/assembly.h"

#include <math.h>
#include <string.h>

// The last of the whole's modes are left out: with few modes a domain is not expected to show all of them.
enum { LEFT_OUT = 2 };

// Too stiff: the domain that lacks most of the mode. Too soft: deformations of an interface that the child does not
// follow cost the parent nothing; the one that follows in most shapes had most to follow.
static void find_domain(const solver_assembly *a, solver_assembly_check *check) {
    double most = -1;
    for (int i = 0; i < a->count; i++) {
        const solver_class *c = a->classes[a->instances[i].class_index];
        double              left = c->whole[c->whole_count + check->mode], score = check->soft ? c->carried : left;
        if (score <= most) continue;
        most = score, check->domain = i, check->left = left;
    }
}

fem_status solver_assembly_examine(const solver_assembly *a, solver_tree *tree, int limit,
                                   solver_assembly_check *check) {
    fem_status status = FEM_OK;
    double    *omega = NULL, worst = -1;
    int        count = a->count > 0 ? a->classes[0]->whole_count : 0, most = solver_tree_free(tree);
    *check = (solver_assembly_check){0};
    for (int i = 0; i < a->count; i++) {
        const solver_class *c = a->classes[a->instances[i].class_index];
        if (c->whole_count != count || a->instances[i].stiffness != 1) return FEM_OK;
    }
    if (count > LEFT_OUT) count -= LEFT_OUT;
    if (count > most) count = most;
    if (count > limit) count = limit;
    if (count < 1) return FEM_OK;
    omega = fem_alloc((size_t)count, sizeof *omega);
    if (!omega) return fem_fail(FEM_NO_MEMORY, "no memory for %d frequencies", count);
    FEM_TRY(solver_tree_frequencies(tree, count, omega, NULL));
    check->count = count;
    for (int k = 0; k < count; k++) {
        double whole = sqrt(a->classes[0]->whole[k]), off = fabs(omega[k] / whole - 1);
        if (!(off > worst)) continue;
        worst = off, check->mode = k, check->omega = omega[k], check->whole = whole;
    }
    check->soft = check->omega < check->whole;
    find_domain(a, check);
done:
    fem_free(omega);
    return status;
}
