// Damping of the domains that were given none of their own: beta K with beta = 2 ratio / w, w the lowest frequency of
// small vibrations of the whole tree. A mode at frequency w' then has the ratio (w'/w) times that of the lowest.
#include "libsolver/assembly_internal.h"

#include <string.h>

// Springs to the world come from further feet of a body whose root is held, so frequencies are there; a free root with
// such springs would be refused by them rather than left undamped.
fem_status assembly_damp(const solver_assembly *a, solver_tree *tree) {
    fem_status status = FEM_OK;
    bool       any = false;
    double     omega = 0;
    for (int i = 0; i < a->count; i++) any = any || (a->by_ratio[i] && a->damping_ratio > 0);
    if (!any) return FEM_OK;
    if (solver_tree_free(tree) > 0) FEM_TRY(solver_tree_frequencies(tree, 1, &omega, NULL));
    for (int i = 0; omega > 0 && i < a->count; i++)
        if (a->by_ratio[i])
            FEM_TRY(solver_tree_set_damping(tree, i, a->tree_classes[a->instances[i].class_index].damping_mass,
                                            2 * a->damping_ratio / omega));
done:
    return status;
}
