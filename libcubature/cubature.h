// libcubature: reduced forces.
#ifndef LIMBER_CUBATURE_H
#define LIMBER_CUBATURE_H

#include "libmodes/modes.h"

// What a reduced integrator needs of a class: V(q), f = dV/dq, K = df/dq (r x r, column-major, both halves); NULL is
// skipped. Returns nothing, allocates nothing; safe from several threads when `work` differs.
typedef struct cubature_forces {
    int    r;
    size_t work; // doubles of work space that evaluate needs
    void (*evaluate)(const void *model, const double *q, double *energy, double *f, double *K, double *work);
    const void *model;
} cubature_forces;

#endif
