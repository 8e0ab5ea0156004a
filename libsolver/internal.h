// The insides of the full-space solver, shared by the files of libsolver.
#ifndef LIMBER_SOLVER_INTERNAL_H
#define LIMBER_SOLVER_INTERNAL_H

#include "libsolver/solver.h"

// ---- linear systems (linear.c) -----------------------------------------------------------------------------------

// A x = b without the fixed degrees of freedom: by the Cholesky factor, or by conjugate gradients.
typedef struct solver_system {
    int                  n;      // 3 * vertices
    const unsigned char *fixed;  // n
    fem_factor          *factor; // NULL: conjugate gradients
    double               tolerance;
    int                  max_iterations;
    double              *block_inverse;  // 9 per vertex: inverse diagonal blocks, the preconditioner
    double              *r, *z, *p, *Ap; // n each
    int                  iterations;     // of conjugate gradients, since creation
    bool                 gave_up;        // conjugate gradients ran out of iterations in the last solve
} solver_system;

// `work` holds 4 n + 9 per vertex doubles, see SOLVER_SYSTEM_VECTORS. Makes the factor unless options say PCG.
#define SOLVER_SYSTEM_VECTORS 7
fem_status solver_system_create(solver_system *system, const fem_sparse *pattern, const unsigned char *fixed,
                                const solver_options *options, double *work);
void       solver_system_destroy(solver_system *system);
// Factorises A, or makes its preconditioner. FEM_INDEFINITE when A shows itself not positive definite.
fem_status solver_system_prepare(solver_system *system, const fem_sparse *A);
// x (fixed entries become 0); A is what was prepared. Conjugate gradients may still find A indefinite here.
fem_status solver_system_solve(solver_system *system, const fem_sparse *A, const double *b, double *x);
// Conjugate gradients whatever the options say, for well-conditioned matrices: the mass.
fem_status solver_system_iterate(solver_system *system, const fem_sparse *A, double tolerance, const double *b,
                                 double *x);

// ---- the solver --------------------------------------------------------------------------------------------------

struct solver_full {
    const fem_body *body;
    const fem_mesh *mesh;
    solver_options  options;
    int             n;          // 3 * vertices
    int             free_count; // degrees of freedom that Newton finds
    bool            linear;     // all materials are linear: K(u) = K(0)
    unsigned char  *fixed;      // n: supports, and all of a vertex without elements
    unsigned char  *used;       // per vertex: belongs to an element
    int             rigid_free; // rigid motions that the supports allow, summed over the pieces of the body
    int             pieces;
    double          cell;   // mean element size, m
    double          extent; // diagonal of the bounding box, m

    solver_state  state;
    bool          acceleration_known; // state.a satisfies the equation of motion
    double       *load, *prescribed;
    solver_report report;

    fem_sparse    M;
    fem_sparse    T;                    // Newton's matrix
    fem_sparse    K0;                   // K(0), when constant damping needs it
    fem_sparse    K;                    // K(u), when local damping needs it
    double       *rest_diagonal;        // diagonal of K(0), the unit of shifts
    double        rest_norm, mass_norm; // 2-norms of the diagonals of K(0) and M
    solver_system system;
    int           prepared; // what `system` holds for a linear body: a solver_prepared

    fem_scratch scratch;          // one block for the vectors below, n each
    double     *external;         // load of the present load step or time step
    double     *u, *trial, *step; // Newton's iterate, candidate, increment
    double     *force, *residual, *trial_residual;
    double     *velocity, *rate;                                  // v(u), a(u) + alpha v(u)
    double     *mass_force, *damping_force;                       // M rate, K v
    double     *rate_start, *velocity_start, *acceleration_start; // a + alpha v, v, a for u = u_n
    double     *mass_start, *damping_start;                       // M rate_start, K(0) velocity_start
    double     *first; // load at the start of the load steps; first acceleration
};

enum solver_prepared { SOLVER_PREPARED_NOTHING, SOLVER_PREPARED_STATIC, SOLVER_PREPARED_DYNAMIC };

// ---- Newton (newton.c) -------------------------------------------------------------------------------------------

// The balance M (a + alpha v) + beta K v + f(u) = external, where in dynamics a = a1 (u - u_n) + acceleration_start and
// v = a4 (u - u_n) + velocity_start, and in statics a = v = 0.
typedef struct solver_balance {
    bool          dynamic;
    bool          bold; // full steps, at most SOLVER_BOLD_ITERATIONS of them, and an indefinite tangent is a failure
    double        a1, a4;
    const double *start; // u_n
    double        time;  // of the end of the step, for messages
} solver_balance;

#define SOLVER_BOLD_ITERATIONS 15

// Solves the balance for solver->u, starting there; its fixed entries move to `target` (n).
fem_status solver_newton(solver_full *solver, const solver_balance *balance, const double *target);
// The same from `from` (n), first boldly; the bold answer is kept if no tangent was indefinite and no element is turned
// inside out, otherwise the line search takes over.
fem_status solver_newton_boldly(solver_full *solver, solver_balance *balance, const double *from, const double *target);
bool       solver_may_retry(const solver_full *solver, fem_status status); // by another way or a shorter one

// Fails with a message that says where: time, vertex, region, an inverted element if there is one, and what would do.
fem_status solver_fail_at(const solver_full *solver, fem_status status, const solver_balance *balance, int vertex,
                          const char *what);
// Refuses loads and prescribed displacements that are not finite, and loads on vertices without elements.
fem_status solver_check_loads(const solver_full *solver);

// a1 .. a6 of an implicit step (step.c), for the full space and the reduced one
typedef struct solver_coefficients {
    double a1, a2, a3, a4, a5, a6;
} solver_coefficients;
solver_coefficients solver_step_coefficients(solver_integrator integrator, double h, double beta, double gamma);

static inline void solver_copy(int n, const double *from, double *to) {
    for (int i = 0; i < n; i++) to[i] = from[i];
}

#endif
