// What libmodes' own files tell each other.
#ifndef LIMBER_MODES_INTERNAL_H
#define LIMBER_MODES_INTERNAL_H

#include "libmodes/modes.h"

// Rigid motions of each component that vanish where `fixed` is set, mass-orthonormal, n x *count, allocated.
fem_status modes_rigid_of_components(const modes_problem *problem, const unsigned char *fixed, const int *component,
                                     int components, double **R, int *count);

// ---- what can be wrong with a body (check.c) ------------------------------------------------------------------------

typedef struct modes_supports {
    int free_dofs;  // that are not held
    int rigid;      // rigid motions that the supports allow
    int components; // pieces of the mesh that share no vertex
    int loose;      // a vertex (as the mesh file counts) that a rigid motion moves, when there are any
} modes_supports;
// Refuses vertices without element that are not held, vertices without mass, and bodies that are held everywhere.
fem_status modes_check_body(const modes_problem *problem, modes_supports *supports);
// Refuses more modes than there are.
fem_status modes_check_count(const modes_supports *supports, int count);
// Refuses rigid motions: "WHAT, but the supports leave 6 rigid motions; hold ... REMEDY".
fem_status modes_check_held(const modes_supports *supports, const char *what, const char *remedy);
// After FEM_INDEFINITE or FEM_NO_CONVERGENCE: the message becomes one about the body, and the status FEM_BAD_INPUT when
// hinges are the reason: elements that share a vertex or an edge with others, but no face.
fem_status modes_explain_singular(const modes_problem *problem, fem_status status);
// Refuses squared frequencies that are zero to working precision, as of such a body.
fem_status modes_check_stiff(const modes_problem *problem, const modes_basis *basis);

// Solver of eq. 29 of [Barbic, James 2005] (tangent.c). What it is created with must outlive it; it counts iterations
// and repeated frequencies in the report.
typedef struct modes_tangent modes_tangent;
fem_status modes_tangent_create(modes_tangent **tangent, const modes_problem *problem, modes_inverse *inverse,
                                const modes_basis *basis, const modes_derivative_options *options,
                                modes_derivative_report *report);
void       modes_tangent_destroy(modes_tangent *tangent);
// X holds -(H : psi_a) psi_b for each pair and gets the derivative of mode a along mode b.
fem_status modes_tangent_solve(modes_tangent *tangent, int pairs, const fem_pair *pair, double *X);

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
