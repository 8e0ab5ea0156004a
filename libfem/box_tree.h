// Internal to libfem: a balanced binary tree of boxes around items, for searches.
//
// Items are sorted along a Morton curve through the centres of their boxes and four at a time become leaves of a tree
// that lies in an array as a heap (children of node i: 2i + 1, 2i + 2). So it needs no pointers, and a search no more
// stack than the tree is deep.
#ifndef LIMBER_BOX_TREE_H
#define LIMBER_BOX_TREE_H

#include "libfem/fem.h"

enum { FEM_BOX_LEAF = 4, FEM_BOX_DEPTH = 64 }; // items of a leaf; room for any stack of nodes

typedef struct fem_box {
    double low[3], high[3];
} fem_box;

typedef struct fem_box_tree {
    int      count;  // items
    int     *order;  // items along the curve
    int      leaves; // a power of two; leaf i has order[FEM_BOX_LEAF * i] ..
    fem_box *boxes;  // 2 leaves - 1 nodes; empty ones have low > high
    fem_box *own;    // of items, along the curve
} fem_box_tree;

fem_status fem_box_tree_create(fem_box_tree *tree, int count, const fem_box *items);
void       fem_box_tree_destroy(fem_box_tree *tree);

static inline void fem_box_empty(fem_box *b) {
    for (int k = 0; k < 3; k++) b->low[k] = INFINITY, b->high[k] = -INFINITY;
}

static inline void fem_box_add(fem_box *b, const double low[3], const double high[3]) {
    for (int k = 0; k < 3; k++) {
        b->low[k] = low[k] < b->low[k] ? low[k] : b->low[k];
        b->high[k] = high[k] > b->high[k] ? high[k] : b->high[k];
    }
}

static inline bool fem_box_contains(const fem_box *b, const double p[3]) {
    return p[0] >= b->low[0] && p[0] <= b->high[0] && p[1] >= b->low[1] && p[1] <= b->high[1] && p[2] >= b->low[2] &&
           p[2] <= b->high[2];
}

static inline double fem_box_distance(const fem_box *b, const double p[3]) { // squared
    double square = 0;
    for (int k = 0; k < 3; k++) {
        double d = p[k] < b->low[k] ? b->low[k] - p[k] : p[k] > b->high[k] ? p[k] - b->high[k] : 0;
        square += d * d;
    }
    return square;
}

// Squared distance from p to the triangle a, b, c [Ericson 2005, Real-Time Collision Detection, 5.1.5].
double fem_triangle_distance(const double p[3], const double a[3], const double b[3], const double c[3]);

#endif
