// Internal to libfem: questions to the triangles of a surface: distance, winding number, crossings.
#ifndef LIMBER_SURFACE_TREE_H
#define LIMBER_SURFACE_TREE_H

#include "libfem/box_tree.h"

// What a node's triangles look like from afar: the solid angle of area vectors n da at places x, expanded about their
// centre c to the first order [Barill, Dickson, Schmidt, Levin and Jacobson 2018, Fast winding numbers].
typedef struct fem_surface_moments {
    double centre[3], radius; // radius < 0: no triangles
    double sum[3];            // of n da
    double spread[9];         // of (x - c) (n da)^T, row-major
} fem_surface_moments;

typedef struct fem_surface_tree {
    fem_box_tree         boxes;
    double              *corners; // 9 per triangle, along the curve
    fem_surface_moments *moments; // per node
} fem_surface_tree;

fem_status fem_surface_tree_create(fem_surface_tree *tree, int triangle_count, const int *triangles,
                                   const double *vertices);
void       fem_surface_tree_destroy(fem_surface_tree *tree);

// Squared distance of the nearest triangle; INFINITY without triangles.
double fem_surface_distance(const fem_surface_tree *tree, const double p[3]);

// Generalised winding number: 1 inside a closed surface that faces outwards, 0 outside, between near an open one. Exact
// where all triangles are near, to about a hundredth otherwise.
double fem_surface_winding(const fem_surface_tree *tree, const double p[3]);

// Where the winding number falls below a half on the way from p, where it is `winding`, to q: the share of the way, or
// -1 when no triangle does that.
double fem_surface_exit(const fem_surface_tree *tree, const double p[3], const double q[3], double winding);

// Of the gaps between the points p, p + step, .. p + count step (along an axis): marks those that a triangle crosses or
// comes very near to. Along the others the winding number of a closed surface does not change.
void fem_surface_mark_crossed(const fem_surface_tree *tree, const double p[3], int axis, double step, int count,
                              unsigned char *crossed);

#endif
