// What springs answer to each other's forces through the tree, C = 1/e + G Y G^T of tree_springs.c, as a dense matrix
// and its factor: the preconditioner of the conjugate gradients there, kept from step to step while it is good.
//
// The tree without springs is Y = (L D L^T)^-1 in the order of its domains, leaves first, so G Y G^T = Z^T D^-1 Z with
// Z = L^-1 G^T: a pass up for each spring and direction, along the ways from its ends to the root and no farther. A
// free root adds b^T I^-1 b with the wrench b that arrives there.
#include "libsolver/tree_internal.h"

#include <string.h>

enum { MOST = 3000 }; // springs' directions: a matrix of 72 MB, and a second for its product

static size_t rows_of(const solver_tree *tree) { return (size_t)tree->dofs + 6 * (size_t)tree->root_count; }

fem_status tree_compliance_reserve(solver_tree *tree) {
    fem_status       status = FEM_OK;
    tree_compliance *c = &tree->compliance;
    size_t           n = 3 * (size_t)tree->spring_count, before = (n - 3) * (n - 3);
    c->known = false;
    if (n > MOST) return FEM_OK;
    FEM_TRY(fem_grow((void **)&c->L, &c->capacity, n * n, sizeof *c->L));
    memset(c->L + before, 0, (n * n - before) * sizeof *c->L); // a state that is saved has numbers only
    FEM_TRY(fem_grow((void **)&c->Z, &c->Z_capacity, rows_of(tree) * n, sizeof *c->Z));
    FEM_TRY(fem_grow((void **)&c->z, &c->z_capacity, n, sizeof *c->z));
done:
    return status;
}

void tree_compliance_destroy(tree_compliance *c) {
    fem_free(c->L);
    fem_free(c->Z);
    fem_free(c->z);
    *c = (tree_compliance){0};
}

// One column of D^-1/2 Z, from the forces that stand in spring_b and spring_modal at the ends; they are 0 again after.
static fem_status column(solver_tree *tree, int a, int b, double *z) {
    memset(z, 0, rows_of(tree) * sizeof *z);
    while (a >= 0 || b >= 0) { // the deeper of the two goes up
        int                i = b < 0 || (a >= 0 && tree->domains[a].level >= tree->domains[b].level) ? a : b;
        const tree_domain *domain = &tree->domains[i];
        double            *modal = tree->spring_modal + domain->offset, *wrench = tree->spring_b[i];
        const double      *E = tree->blocks[domain->block].E + domain->lane;
        tree_vector_up(tree, i, tree->spring_modal, tree->spring_b);
        for (int l = 0; l < domain->r; l++) {
            double D = E[TREE_E(l, l)];
            if (!(D > 0)) return FEM_INDEFINITE;
            z[domain->offset + (size_t)l] = modal[l] / sqrt(D);
            modal[l] = 0;
        }
        if (domain->parent < 0 && tree->roots[domain->root].kind == SOLVER_ROOT_FREE) {
            double *end = z + tree->dofs + 6 * domain->root, A[6];
            if (tree_free_root(tree, domain, wrench, A) != FEM_OK) return FEM_INDEFINITE;
            memcpy(end, wrench, 6 * sizeof *end);
        }
        memset(wrench, 0, 6 * sizeof *wrench);
        if (a == i) a = domain->parent;
        if (b == i) b = domain->parent;
    }
    return FEM_OK;
}

// b^T I^-1 b as a sum of squares: rows of a root times L^-1, I = L L^T.
static fem_status reduce_roots(solver_tree *tree, size_t n) {
    for (int k = 0; k < tree->root_count; k++) {
        const tree_domain *domain = &tree->domains[tree->roots[k].domain];
        tree_lanes        *lanes = tree->blocks[domain->block].lanes;
        double             I[36];
        if (tree->roots[k].kind != SOLVER_ROOT_FREE) continue;
        for (int i = 0; i < 36; i++) I[i] = lanes->I[SYM6(i / 6, i % 6)][domain->lane];
        if (dense_cholesky(6, I) != FEM_OK) return FEM_INDEFINITE;
        for (size_t j = 0; j < n; j++) { // L is column-major
            double *b = tree->compliance.Z + j * rows_of(tree) + tree->dofs + 6 * k;
            for (int i = 0; i < 6; i++) {
                for (int p = 0; p < i; p++) b[i] -= I[6 * p + i] * b[p];
                b[i] /= I[7 * i];
            }
        }
    }
    return FEM_OK;
}

// Springs without stiffness and damping in the step have their force given; their rows are those of the identity.
void tree_compliance_make(solver_tree *tree, const tree_evaluation *at) {
    tree_compliance *c = &tree->compliance;
    size_t           n = 3 * (size_t)tree->spring_count, rows = rows_of(tree);
    if (n > MOST) return;
    c->known = false, c->excess = 0;
    c->c_stiffness = at->c_stiffness, c->c_damping = at->c_damping;
    memset(tree->spring_b, 0, (size_t)tree->count * sizeof *tree->spring_b);
    memset(tree->spring_modal, 0, (size_t)tree->dofs * sizeof *tree->spring_modal);
    for (size_t j = 0; j < n; j++) {
        const solver_spring *s = &tree->springs[j / 3].s;
        int                  a = tree->points[s->a].domain, b = s->b >= 0 ? tree->points[s->b].domain : -1;
        tree_spring_push(tree, s, (int)(j % 3), at->q);
        if (column(tree, a, b, c->Z + j * rows) != FEM_OK) return;
    }
    if (reduce_roots(tree, n) != FEM_OK) return;
    memset(c->L, 0, n * n * sizeof *c->L);
    dense_gemm(true, false, (int)n, (int)n, (int)rows, 1, c->Z, c->Z, 0, c->L);
    for (size_t j = 0; j < n; j++) {
        const solver_spring *s = &tree->springs[j / 3].s;
        double               e = s->stiffness * at->c_stiffness + s->damping * at->c_damping;
        for (size_t i = 0; e == 0 && i < n; i++) c->L[i * n + j] = c->L[j * n + i] = 0;
        c->L[j * (n + 1)] += e > 0 ? 1 / e : 1;
    }
    c->known = dense_cholesky((int)n, c->L) == FEM_OK;
    tree->report.spring_factors++;
}

bool tree_compliance_is_for(const solver_tree *tree, const tree_evaluation *at) {
    const tree_compliance *c = &tree->compliance;
    return c->known && c->c_stiffness == at->c_stiffness && c->c_damping == at->c_damping &&
           c->excess <= tree->spring_count;
}
