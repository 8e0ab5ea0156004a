// Damping of the domains that were given none of their own: beta K with beta = 2 ratio / w, w the lowest frequency of
// small vibrations of the whole tree. A mode at frequency w' then has the ratio (w'/w) times that of the lowest.
#include "libsolver/assembly_internal.h"

#include <string.h>

// Frequencies of a free body that springs tie to the world are not there; it stands still as if it were held.
static fem_status lowest(const solver_assembly *a, solver_tree *tree, double *omega) {
    bool tied = false;
    for (int k = 0; k < a->joint_count; k++) tied = tied || a->joints[k].ends[1].instance < 0;
    *omega = 0;
    if ((tied && !a->held) || solver_tree_dofs(tree) == 0) return FEM_OK;
    return solver_tree_frequencies(tree, 1, omega, NULL);
}

fem_status assembly_damp(const solver_assembly *a, solver_tree *tree) {
    fem_status status = FEM_OK;
    bool       any = false;
    double     omega;
    for (int i = 0; i < a->count; i++) any = any || (a->by_ratio[i] && a->damping_ratio > 0);
    if (!any) return FEM_OK;
    FEM_TRY(lowest(a, tree, &omega));
    for (int i = 0; omega > 0 && i < a->count; i++)
        if (a->by_ratio[i])
            FEM_TRY(solver_tree_set_damping(tree, i, a->tree_classes[a->instances[i].class_index].damping_mass,
                                            2 * a->damping_ratio / omega));
done:
    return status;
}
