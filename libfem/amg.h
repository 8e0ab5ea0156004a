// Smoothed-aggregation multigrid for stiffness matrices: what a factorisation does, for bodies that are too large for
// one. [Vanek, Mandel, Brezina 1996]
#ifndef LIMBER_AMG_H
#define LIMBER_AMG_H

#include "libfem/sparse.h"

typedef struct fem_amg fem_amg;

typedef struct fem_amg_options {
    double tolerance;      // of the error's energy norm sqrt(e^T A e), relative to the solution's, as it is estimated
    int    max_iterations; // of conjugate gradients, for each right-hand side
} fem_amg_options;
fem_amg_options fem_amg_default_options(void);

enum { FEM_AMG_LEVELS = 8 }; // most of them

typedef struct fem_amg_report {
    int    levels;               // with the coarsest, which is factored
    int    dofs[FEM_AMG_LEVELS]; // of each level, finest first
    double complexity;           // stored entries of all levels over those of the finest
    double bytes;                // held
    double seconds_setup;
    int    iterations;    // most of a right-hand side in the latest solve
    double error;         // largest estimated error of the latest solve, as the tolerance means it
    double seconds_solve; // the latest solve
} fem_amg_report;

// A is symmetric positive definite on the dofs that are not fixed (`fixed` marks 3n, or NULL), or singular there with
// the `null_count` columns of Z (3n each, zero on fixed dofs) as its null space: the rigid motions that the supports
// leave. points: 3 per block row. Rows of A without stiffness belong to fixed dofs. A may go afterwards.
// FEM_INDEFINITE when a diagonal block or the coarsest matrix is not positive definite.
fem_status fem_amg_create(fem_amg **amg, const fem_sparse *A, const double *points, const unsigned char *fixed,
                          int null_count, const double *Z, const fem_amg_options *options);
void       fem_amg_destroy(fem_amg *amg);
// Columns of length 3n; fixed entries of B are ignored and those of X become 0. X may be B. With a null space the
// columns of B must be orthogonal to Z, and the solution is one of many. FEM_NO_CONVERGENCE leaves the best X so far.
fem_status     fem_amg_solve(fem_amg *amg, int columns, const double *B, double *X);
fem_amg_report fem_amg_get_report(const fem_amg *amg);

#endif
