// What libmodes' own files tell each other.
#ifndef LIMBER_MODES_INTERNAL_H
#define LIMBER_MODES_INTERNAL_H

#include "libmodes/modes.h"

// Rigid motions of each component that vanish where `fixed` is set, mass-orthonormal, n x *count, allocated.
fem_status modes_rigid_of_components(const modes_problem *problem, const unsigned char *fixed, const int *component,
                                     int components, double **R, int *count);

struct modes_inverse {
    const modes_problem *problem;
    modes_border         border;
    int                  n;      // 3 * vertices
    unsigned char       *fixed;  // n: held by the user, or belonging to a vertex without element
    double              *R, *BR; // n x rigid: R^T B R = I with B = M or I; NULL when there are none
    double              *work;   // rigid coefficients
    fem_factor          *factor; // or
    fem_amg             *amg;
    modes_inverse_report report;
};

#endif
