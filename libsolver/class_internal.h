// What the files of a class tell each other.
#ifndef LIMBER_CLASS_INTERNAL_H
#define LIMBER_CLASS_INTERNAL_H

#include "libsolver/class.h"

// Adds the energy with which the collar resists deformation of the interfaces to the coefficients of a polynomial of r
// modes. K: the stiffness at rest, Kw: that of the piece with its collar.
fem_status class_bracing(const solver_class *c, int place_count, const solver_place *places, const fem_sparse *K,
                         const fem_sparse *Kw, double *coefficients);

#endif
