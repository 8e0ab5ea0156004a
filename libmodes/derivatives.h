// Derivatives of modes: how a body's shape goes on when a mode is pushed far.
// A chapter of modes.h: include that.
#ifndef LIMBER_MODES_DERIVATIVES_H
#define LIMBER_MODES_DERIVATIVES_H

// Three kinds, H = dK/du at rest, psi and u the modes of a basis:
//   modal    K phi_ij = -(H : psi_i) psi_j, symmetric in i and j [Barbic, James 2005, eq. 14]
//   inertia  v_ij = K^-1 (H : u_i) u_j, and of higher order V_k = K^-1 (H : u) V_(k-1), u over the modes
//            [Yang et al. 2015, eq. 8 and 9]
//   tangent  phi_ij = d psi_i / d p_j, psi_i the vibration modes about the shape psi_j p_j, inertia included
//            [Barbic, James 2005, eq. 29]: (K - omega_i^2 M) phi_ij = (M psi_i psi_i^T - 1) (H : psi_i) psi_j,
//            psi_i^T M phi_ij = 0. Not symmetric; psi must be vibration modes.
// Where K is singular (a body that is not held) modal and inertia derivatives come from the bordered system of
// modes_inverse; the tangent derivatives need no border, their rigid part is determined.
typedef enum modes_derivative_kind {
    MODES_DERIVATIVE_MODAL,
    MODES_DERIVATIVE_INERTIA,
    MODES_DERIVATIVE_TANGENT
} modes_derivative_kind;

enum { MODES_MOST_ORDER = 3 };

// Where a candidate comes from. Order 0: mode[0] of the basis. Order 1: (H : u_mode[0]) u_mode[1] (tangent: i, j).
// Order k: u_mode[k] applied to the derivative with modes 0 .. k-1. Order -1: a shape without history.
typedef struct modes_origin {
    int order;
    int mode[MODES_MOST_ORDER + 1];
} modes_origin;

// Candidates for a basis, before they are condensed.
typedef struct modes_pool {
    int           n;      // rows: 3 * vertices
    int           count;  // columns
    double       *X;      // n x count, column-major
    modes_origin *origin; // count
} modes_pool;
void       modes_pool_destroy(modes_pool *pool); // leaves it empty
fem_status modes_pool_from_basis(modes_pool *pool, const modes_basis *basis);
fem_status modes_pool_from_shapes(modes_pool *pool, int n, int count, const double *X); // copied

typedef struct modes_derivative_options {
    modes_derivative_kind kind;
    int                   order;                   // 1; inertia: 1 .. 3
    int                   modes[MODES_MOST_ORDER]; // order k is made of the first modes[k-1] modes alone; 0 = all
    const fem_pair       *pairs;                   // order 1 of these pairs only; NULL = all i <= j (tangent: all i, j)
    int                   pair_count;
    bool                  linear;     // the pool begins with the modes themselves
    double                max_bytes;  // that the pool may take; 0 = no limit
    double                tolerance;  // tangent: of conjugate gradients, relative, in the energy norm
    int                   iterations; // tangent: at most
} modes_derivative_options;
modes_derivative_options modes_derivative_default_options(void); // modal, order 1, all pairs, with the modes

typedef struct modes_derivative_report {
    int    counts[MODES_MOST_ORDER + 1]; // columns of each order
    int    iterations;                   // tangent: most that a block of columns took
    int    repeated;                     // tangent: pairs whose mode shares its frequency; see modes_derivatives
    double bytes;                        // of the pool
    double seconds_right, seconds_solve; // right-hand sides, solutions
} modes_derivative_report;

// Columns that the options would give: counts[k] of order k (order 0 when options->linear). FEM_BAD_INPUT when the
// options do not fit the basis or the pool would be larger than max_bytes.
fem_status modes_derivative_counts(const modes_derivative_options *options, const modes_basis *basis,
                                   int counts[MODES_MOST_ORDER + 1], double *bytes);

// The pool is replaced: modes, then order 1 (pairs in the order given; else row by row), order 2, ... `inverse` may be
// NULL: then K is factorised here. The body must be the one that K and M come from.
// Tangent derivatives of a repeated frequency do not exist (the mode may turn within its eigenspace at once): their
// part in that eigenspace is left out.
fem_status modes_derivatives(const modes_problem *problem, const fem_body *body, modes_inverse *inverse,
                             const modes_basis *basis, const modes_derivative_options *options,
                             const fem_progress *progress, modes_pool *pool, modes_derivative_report *report);

#endif
