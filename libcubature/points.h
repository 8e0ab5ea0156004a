// Integration points of chosen elements, eight of one material side by side, and what is done with them: the insides of
// rules (rule.c) and of their training (training.c).
#ifndef LIMBER_POINTS_H
#define LIMBER_POINTS_H

#include "libcubature/internal.h"

// Room for `capacity` groups; filled again and again during training.
typedef struct point_set {
    int     r, groups, capacity;
    size_t  group_size; // doubles from a group's part of B to the next group's
    size_t  stride;     // doubles from a column of B to the next
    double *B;          // at group x group_size + mode x stride: 9 x 8, entry 8 (3 i + j) + lane is du_i/dX_j
    double *volume;     // capacity x 8: weight x volume; 0 in lanes that are not used
    int    *element;    // capacity x 8: place of the point's element in the list that was given; -1 when not used
    int    *material;   // capacity
} point_set;

int points_per_element(const fem_body *body);
// Groups that `count` elements need: each material begins a new one.
int point_groups(const fem_body *body, int count, const int *elements);
// Whole columns one after the other (a matrix of 72 capacity x r), or group by group.
fem_status point_set_create(point_set *set, int r, int capacity, bool by_columns);
void       point_set_destroy(point_set *set);

// Rows of a basis: those of the mesh's vertices, or, when they are `own`, those of the vertices of the elements that
// are asked for, one element after the other.
typedef struct basis_rows {
    const double *values; // three rows a vertex, zeros past r
    size_t        stride; // doubles from a row to the next: basis_stride(r)
    bool          own;
} basis_rows;
static inline size_t basis_stride(int r) { return ((size_t)r + 7) / 8 * 8; }
// The elements should be sorted by material, or groups stay half empty.
void point_set_fill(point_set *set, const fem_body *body, basis_rows rows, int count, const int *elements);

// Eight points for the gradients of the modes: vertex[p][a] is the first of three rows of a vertex, g[p] the gradients
// of the shape functions. Points from `points` on are zero.
typedef struct eight_points {
    int           points, width;
    const double *vertex[8][8];
    double        g[8][24];
} eight_points;

enum { SUM_GROUPS = 4, MOST_HALVINGS = 12 };

// The poses first .. first + 7: q is r x 8. For each pose t and mode l, row l x row_stride + t:
// point_sums, of at most SUM_GROUPS groups: the sum over the points is added to `sums`; smallest[t] becomes at most
// det F of any point, halvings[t] at least how often the pose must be halved until a point that it inverts is upright;
// point_forces, of one group: the sum over an element's points, times scale[t] and mode_scale[l], is added to its
// column: columns[e] with e from `element`.
typedef struct point_task {
    const point_set              *set;
    const fem_material_constants *constants;
    const double                 *q, *scale;
    const double                 *mode_scale; // r
    size_t                        first, row_stride;
    double                       *sums;
    double                      **columns;
    double                       *smallest;
    int                          *halvings;
} point_task;

#endif
