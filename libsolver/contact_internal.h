// The bounded-deformation tree (contact_tree.c), shared with contact.c and the tests.
#ifndef LIMBER_SOLVER_CONTACT_INTERNAL_H
#define LIMBER_SOLVER_CONTACT_INTERNAL_H

#include "libsolver/reduced_internal.h"

// A node holds the samples first .. first + count - 1. An inner node's children are the next node and `right`; a leaf
// has right = -1.
typedef struct solver_bounds_node {
    int first, count, right;
} solver_bounds_node;

// Balls around the samples of each node that follow q without looking at the samples (James and Pai 2004):
//     centre(q) = c + sum_l q_l dc_l,   radius(q) = R + sum_l |q_l| dR_l,
// dc_l the middle of the displacements of mode l over the node, dR_l the largest distance from it. By the triangle
// inequality every sample of the node is inside for every q.
typedef struct solver_bounds {
    int                 r, node_count, depth;
    solver_bounds_node *nodes;
    double             *balls; // per node 4 (1 + r): (c, R), (dc_1, dR_1), ..
    int                *order; // samples in the order of the tree: order[k] is the caller's number
} solver_bounds;

fem_status solver_bounds_create(solver_bounds *tree, const solver_samples *samples);
void       solver_bounds_destroy(solver_bounds *tree);
void       solver_bounds_ball(const solver_bounds *tree, int node, const double *q, double ball[4]);

#endif
