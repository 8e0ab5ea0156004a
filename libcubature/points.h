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

// Groups that `count` elements need: each material begins a new one.
int point_groups(const fem_body *body, int count, const int *elements);
// Whole columns one after the other (a matrix of 72 capacity x r), or group by group.
fem_status point_set_create(point_set *set, int r, int capacity, bool by_columns);
void       point_set_destroy(point_set *set);
// Ut is n x r, row-major. The elements should be sorted by material, or groups stay half empty.
void point_set_fill(point_set *set, const fem_body *body, const double *Ut, int count, const int *elements);

// The poses first .. first + 7 of one group: q is r x 8. For each pose t and mode l, row l x row_stride + t, the sum
// over the points is added to `sums` (NULL: not wanted), or that over one element's, times scale[t], to its column:
// columns[e] with e from `element` (NULL: not wanted). smallest[t] becomes at most det F of any point.
typedef struct point_task {
    const point_set              *set;
    const fem_material_constants *constants;
    const double                 *q, *scale;
    const double                 *mode_scale; // r: multiplies the columns too
    size_t                        first, row_stride;
    double                       *sums;
    double                      **columns;
    double                       *smallest;
} point_task;

#endif
