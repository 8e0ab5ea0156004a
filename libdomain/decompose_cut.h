// Between decompose_levels.c, which measures a domain, and decompose_cut.c, which cuts it.
#ifndef LIMBER_DECOMPOSE_CUT_H
#define LIMBER_DECOMPOSE_CUT_H

#include "libdomain/decompose_internal.h"

// Items by key, the lowest first, of equals the lower item.
typedef struct domain_heap {
    int           count;
    int          *item, *place; // place[i] of item i; -1: not in the heap
    const double *key;
} domain_heap;

void domain_heap_push(domain_heap *heap, int item); // its key is new, or lower than it was
int  domain_heap_pop(domain_heap *heap);

struct domain_cutter {
    const domain_topology *t;
    domain_heap            queue;
    double                *distance;     // per vertex, m; INFINITY outside the domain
    double                *smooth;       // per vertex
    int                   *share;        // per vertex: elements of the domain around it
    int                   *local;        // per element: its place in the domain, -1 outside
    double                *flooded;      // per element, m
    int                   *seen, *place; // per vertex, for patches
};

typedef struct domain_levels {
    int     nodes;
    int    *parent;  // above its own number, so children come first; -1 for the last, which holds the seeds
    int    *weight;  // elements that are no descendant's
    double *volume;  // of these, m^3
    double *area;    // of the faces around the node and its descendants, m^2
    int    *patches; // that these faces fall into
    int    *node_of; // per element of the domain
} domain_levels;

// Fills `levels`, which is all zeros before; destroy it even after a failure. `local` must be set.
fem_status domain_levels_create(domain_levels *levels, domain_cutter *cutter, const domain_cut *cut);
void       domain_levels_destroy(domain_levels *levels);

#endif
