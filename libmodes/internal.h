// What libmodes' own files tell each other.
#ifndef LIMBER_MODES_INTERNAL_H
#define LIMBER_MODES_INTERNAL_H

#include "libmodes/modes.h"

// Rigid motions of each component that vanish where `fixed` is set, mass-orthonormal, n x *count, allocated.
fem_status modes_rigid_of_components(const modes_problem *problem, const unsigned char *fixed, const int *component,
                                     int components, double **R, int *count);

// K^-1 on the free degrees of freedom, also when K is singular because the body is not held: the right-hand side is made
// free of rigid load, as many well-chosen degrees of freedom are held as there are rigid motions, and the solution is made
// mass-orthogonal to the rigid motions. K is then K's pseudo-inverse in the mass norm, with an SPD factor and no shift.
typedef struct modes_inverse {
    const modes_problem *problem;
    int                  n;         // 3 * vertices
    int                  free_dofs; // that are neither held nor without an element
    unsigned char       *fixed;     // n: held by the user, or belonging to a vertex without element
    int                  rigid;
    double              *R, *MR;    // n x rigid, R^T M R = I; NULL when there are none
    double              *work;      // rigid coefficients
    fem_factor          *factor;
    double               seconds_factor;
} modes_inverse;

fem_status modes_inverse_create(modes_inverse *inverse, const modes_problem *problem);
void       modes_inverse_destroy(modes_inverse *inverse);
// X = K^-1 B for columns of length n; B is used as work space, X may be B.
fem_status modes_inverse_solve(modes_inverse *inverse, int columns, double *B, double *X);
// x -= R R^T M x
void modes_inverse_project(const modes_inverse *inverse, double *x);

#endif
