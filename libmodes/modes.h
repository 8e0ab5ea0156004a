// libmodes: bases of displacements.
#ifndef LIMBER_MODES_H
#define LIMBER_MODES_H

#include "libdomain/domain.h"

typedef struct modes_basis {
    int     n;      // rows: 3 * vertices, xyz interleaved
    int     r;      // columns: number of modes
    double *U;      // n x r, column-major, U^T M U = I, zero on fixed degrees of freedom
    double *omega2; // r, squared angular frequencies, ascending
} modes_basis;

void       modes_basis_destroy(modes_basis *basis);                // leaves it empty
fem_status modes_basis_allocate(modes_basis *basis, int n, int r); // zeros

// Basis files (a fem_store of kind "basis"). `key` is the hash of all that the basis was made from. Reading with a key
// refuses a basis that was made from something else; NULL takes any. FEM_IO when there is no such file.
fem_status modes_basis_write(const modes_basis *basis, fem_hash key, const char *path);
fem_status modes_basis_read(modes_basis *basis, const fem_hash *key, const char *path);

// K x = omega^2 M x without the fixed degrees of freedom. Rigid motions that the supports allow (all six of a free
// body) are left out of the answer.
typedef struct modes_problem {
    const fem_mesh      *mesh;
    const fem_sparse    *K, *M;
    const unsigned char *fixed; // 3 per vertex, nonzero = held; or NULL
} modes_problem;

typedef struct modes_lanczos_options {
    int                   count;     // modes wanted, without the rigid ones
    double                tolerance; // of ARPACK, relative; 0 = machine precision
    int                   vectors;   // ncv; 0 chooses max(2 count, count + 32)
    int                   max_restarts;
    struct modes_inverse *inverse; // of this problem, with the mass border, to share its factor; or NULL
} modes_lanczos_options;
modes_lanczos_options modes_lanczos_default_options(void);

typedef struct modes_report {
    int     free_dofs;
    int     rigid;                     // rigid motions that were left out
    int     vectors, solves, restarts; // of ARPACK; all 0 when the problem was so small that it was solved densely
    double *residuals;                 // r: |K x - omega^2 M x| / |K x|, 2-norms; caller frees
    double  orthogonality;             // max |U^T M U - I|
    double  seconds_factor, seconds_iterate;
} modes_report;

// basis and report->residuals are allocated; report may be NULL.
fem_status modes_lanczos(const modes_problem *problem, const modes_lanczos_options *options,
                         const fem_progress *progress, modes_basis *basis, modes_report *report);

// Mass-orthonormal basis of the rigid motions that the supports allow, one set for each component of the mesh:
// *R is n x *count, column-major, allocated.
fem_status modes_rigid(const modes_problem *problem, double **R, int *count);

// ---- the inverse of the stiffness matrix ----------------------------------------------------------------------

// K^-1 on the free degrees of freedom, also when K is singular because the body is not held (P0 eq. 3: K bordered by
// the rigid motions): the right-hand side is freed of rigid load, the solution of rigid motion. The border says in
// which sense: by the mass (u^T M R = 0, the default), or plainly (u^T R = 0). No shift, no indefinite system.
typedef enum modes_border { MODES_BORDER_MASS, MODES_BORDER_PLAIN } modes_border;

// A factorisation is exact; as many well-chosen degrees of freedom are held as there are rigid motions. Multigrid is
// iterative and takes time and memory in proportion to the size of the body; the rigid motions are its null space.
typedef enum modes_inverse_method {
    MODES_INVERSE_AUTOMATIC, // what modes_inverse_choose says
    MODES_INVERSE_FACTOR,
    MODES_INVERSE_AMG
} modes_inverse_method;
// Multigrid where it is faster for so many right-hand sides of a compact body: with 30 or fewer above 60,000 free
// degrees of freedom, with more above more, since a factor has its price once (docs/krylov.md).
modes_inverse_method modes_inverse_choose(int free_dofs, int solves);

typedef struct modes_inverse_options {
    modes_border         border;
    modes_inverse_method method;
    double               tolerance;      // of multigrid: energy norm of the error, relative to the solution's
    int                  max_iterations; // of multigrid
    int                  solves;         // right-hand sides to come, for the automatic choice
} modes_inverse_options;
// Automatic for 30 right-hand sides, and a tolerance of 1e-8: with it all frequencies of a Krylov basis of 30 modes are
// those of the factor to 1e-6; for the lower half of them 1e-6 does (bench_inverse).
modes_inverse_options modes_inverse_default_options(void);

typedef struct modes_inverse modes_inverse;
// The problem must outlive the inverse. When K is singular beyond rigid motions FEM_INDEFINITE, or FEM_BAD_INPUT where
// the mesh tells why: elements that hang on others as on hinges.
fem_status modes_inverse_create_with(modes_inverse **inverse, const modes_problem *problem,
                                     const modes_inverse_options *options);
// By a factorisation.
fem_status modes_inverse_create(modes_inverse **inverse, const modes_problem *problem, modes_border border);
void       modes_inverse_destroy(modes_inverse *inverse);
// X = K^-1 B for `columns` columns of length n, many at once; B is work space afterwards, X may be B.
// FEM_NO_CONVERGENCE by multigrid only.
fem_status modes_inverse_solve(modes_inverse *inverse, int columns, double *B, double *X);
// Takes the rigid part out of `columns` columns, and makes them zero on fixed degrees of freedom.
void modes_inverse_project(const modes_inverse *inverse, int columns, double *X);

typedef struct modes_inverse_report {
    int                  free_dofs;      // neither held nor of a vertex without element
    int                  rigid;          // rigid motions that the supports allow
    modes_inverse_method method;         // that was taken
    double               seconds_factor; // ordering, analysis and factorisation, or the set-up of multigrid
    double               seconds_solve;  // all solves so far
    double               bytes;          // held by the factor or by multigrid
    int                  solves;         // right-hand sides so far
    int                  iterations;     // of multigrid: most of any right-hand side so far
    double               error;          // of multigrid: the largest so far, as the tolerance means it
    fem_factor_report    factor;
    fem_amg_report       amg;
} modes_inverse_report;
modes_inverse_report modes_inverse_get_report(const modes_inverse *inverse);

// These build on what stands above.
#include "libmodes/orthogonalise.h"
#include "libmodes/krylov.h"
#include "libmodes/derivatives.h" // modal and inertia derivatives
#include "libmodes/condense.h"    // PCA and its fast relatives, selection of shapes
#include "libmodes/warp.h"        // modal warping
#include "libmodes/recipe.h"      // linear modes, derivatives and condensing in one; quality
#include "libmodes/stitch.h"      // modes of a body that was changed a little

#endif
