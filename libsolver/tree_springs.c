#include "libsolver/tree_internal.h"
double tree_spring_energy(solver_tree *tree, const tree_spring *spring) {
    double x[3], y[3], *end = y, d[3];
    solver_tree_point(tree, spring->s.a, x, NULL);
    if (spring->s.b >= 0)
        solver_tree_point(tree, spring->s.b, y, NULL);
    else
        for (int i = 0; i < 3; i++) y[i] = spring->s.anchor[i];
    vec3_sub(d, x, end);
    return 0.5 * spring->s.stiffness * vec3_dot(d, d);
}
