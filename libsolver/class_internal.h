// What the files of a class tell each other.
#ifndef LIMBER_CLASS_INTERNAL_H
#define LIMBER_CLASS_INTERNAL_H

#include "libsolver/class.h"

// Adds the energy with which the collar resists deformation of the interfaces to the coefficients of a polynomial of r
// modes. K: the stiffness at rest, Kw: that of the piece with its collar.
fem_status class_bracing(const solver_class *c, int place_count, const solver_place *places, const fem_sparse *K,
                         const fem_sparse *Kw, double *coefficients);

// Of the energy of a mode of the whole body: directions of it that hold less in a piece are not worth a coordinate.
#define SEED_SHARE 1e-4
// Those that hold more come before derivatives where there is not room for both.
#define SEED_NEED 0.01
// The first modes of the whole; the energy of the others counts so much: they take what room is left.
enum { SEED_FIRST = 12 };
#define SEED_REST 0.01

// Adds the shapes of the interface to the parent to the basis of the piece (with its collar), with their static
// responses. fields: those of the seeds, on the piece with its collar, and their squared frequencies; NULL: none.
fem_status class_add_carried(solver_class *c, const modes_problem *problem, modes_inverse *inverse, int fixed_count,
                             const int *fixed, int place_count, const solver_place *places,
                             const solver_carrier *carrier, int field_count, const double *fields,
                             const double *field_omega2);
// Fills `whole` with what the columns cannot show of the fields. K: of the piece with its collar, as the basis is.
fem_status class_measure_seeds(solver_class *c, const fem_sparse *K, int count, const double *fields);
// Puts what is carried into polynomial forces: linear, but coupled with all modes. K: of the piece.
fem_status class_couple(solver_class *c, const fem_sparse *K);
// How many there are in the basis (only they move held vertices), and the patterns that measure them. K: of the piece.
fem_status class_find_patterns(solver_class *c, const fem_sparse *K, int fixed_count, const int *fixed);

#endif
