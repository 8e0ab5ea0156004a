// libmodes: bases. For now: vibration modes by ARPACK's shift-invert Lanczos.
#ifndef LIMBER_MODES_H
#define LIMBER_MODES_H

#include "libfem/fem.h"

typedef struct modes_basis {
    int     n;      // rows: 3 * vertices, xyz interleaved
    int     r;      // columns: number of modes
    double *U;      // n x r, column-major, U^T M U = I, zero on fixed degrees of freedom
    double *omega2; // r, squared angular frequencies, ascending
} modes_basis;

void modes_basis_destroy(modes_basis *basis); // leaves it empty

// K x = omega^2 M x without the fixed degrees of freedom. Rigid motions that the supports allow (all six of a free body)
// are left out of the answer.
typedef struct modes_problem {
    const fem_mesh      *mesh;
    const fem_sparse    *K, *M;
    const unsigned char *fixed; // 3 per vertex, nonzero = held; or NULL
} modes_problem;

typedef struct modes_lanczos_options {
    int    count;          // modes wanted, without the rigid ones
    double tolerance;      // of ARPACK, relative; 0 = machine precision
    int    vectors;        // ncv; 0 chooses max(2 count, count + 32)
    int    max_restarts;
} modes_lanczos_options;
modes_lanczos_options modes_lanczos_default_options(void);

typedef struct modes_report {
    int     free_dofs;
    int     rigid;              // rigid motions that were left out
    int     vectors, solves, restarts; // of ARPACK; all 0 when the problem was so small that it was solved densely
    double *residuals;          // r: |K x - omega^2 M x| / |K x|, 2-norms; caller frees
    double  orthogonality;      // max |U^T M U - I|
    double  seconds_factor, seconds_iterate;
} modes_report;

// basis and report->residuals are allocated; report may be NULL.
fem_status modes_lanczos(const modes_problem *problem, const modes_lanczos_options *options,
                         const fem_progress *progress, modes_basis *basis, modes_report *report);

// Mass-orthonormal basis of the rigid motions that the supports allow, one set for each component of the mesh:
// *R is n x *count, column-major, allocated.
fem_status modes_rigid(const modes_problem *problem, double **R, int *count);

#endif
