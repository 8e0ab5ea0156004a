// Krylov bases (linear inertia modes, P0 section 4.1) and what measures the quality of a basis.
#ifndef LIMBER_MODES_KRYLOV_H
#define LIMBER_MODES_KRYLOV_H

#include "libmodes/modes.h"

// What U_0 consists of: any union of these. Fields are about the middle of the body.
enum {
    MODES_SEED_X = 1, // the three translations and rotations; only where the supports leave no rigid motion
    MODES_SEED_Y = 2,
    MODES_SEED_Z = 4,
    MODES_SEED_ROTATION_X = 8,
    MODES_SEED_ROTATION_Y = 16,
    MODES_SEED_ROTATION_Z = 32,
    MODES_SEED_RIGID = 63,
    MODES_SEED_QUADRATIC = 64, // polynomials up to degree two, mixed: modes_krylov_options.fields of them
    MODES_SEED_RANDOM = 128    // random displacements of all nodes: as many
};

// A set of points through which a body carries others. Its static responses to six unit wrenches (forces spread over
// the points in proportion to their areas, moments about their middle as linear fields of force) enter the basis.
typedef struct modes_interface {
    int           count;
    const int    *vertices;
    const double *areas;    // per point, > 0; NULL = alike
    const double *wrenches; // 3 points x 6: how unit wrenches are spread over the points; NULL = by the areas
    double        mass;     // of all that hangs on it (its subtree), kg: its weight when there are more than asked for
    double        lever;    // from here to the centre of that mass, m: weighs moments; 0 = the interface's own radius
} modes_interface;

// In which sense some combinations of many responses are the best (a singular value decomposition in this norm): the
// largest displacements, u^T M u, or those whose loads do the most work, u^T K u.
typedef enum modes_norm { MODES_NORM_MASS, MODES_NORM_ENERGY } modes_norm;

typedef struct modes_krylov_options {
    int                    count;  // modes wanted; exactly so many are returned
    unsigned               seeds;  // union of MODES_SEED_*; 0 with no vectors: rigid for a held body, else quadratic
    int                    fields; // columns of MODES_SEED_QUADRATIC, and of MODES_SEED_RANDOM
    unsigned               random_state; // of the mixing and of the random displacements
    int                    vector_count; // fields of the caller's
    const double          *vectors;      // 3 * vertices x vector_count
    int                    interface_count;
    const modes_interface *interfaces;
    int                    interface_seeds; // most static responses in the basis; 0 = all, but never above count
    modes_norm             norm;            // in which these are the best, and the best seeds where count is below them
    bool                   ritz;            // rotate the basis so that it diagonalises K too
    modes_border           border;          // of a body that is not held; unused when there is an inverse
    modes_orthogonalise_options orthogonalise;
    modes_inverse              *inverse; // of this problem, to share its factor; NULL: made and destroyed
} modes_krylov_options;
modes_krylov_options modes_krylov_default_options(void);

typedef struct modes_krylov_report {
    int                        free_dofs;
    int                        rigid;           // rigid motions that the supports allow
    int                        seeds;           // columns of the first block, static responses included
    int                        interface_kept;  // static responses kept of 6 per interface
    double                     interface_share; // part of their squared norms that these keep
    int                        blocks, solves;  // of the recursion; right-hand sides in all
    int                        dropped;         // dependent columns
    double                    *rayleigh;  // count: u^T K u / u^T M u of the basis before a Ritz step; caller frees
    double                    *residuals; // count: |K u - omega^2 M u| / |K u| of the result, 2-norms; caller frees
    modes_orthogonalise_report orthogonalise;
    double                     seconds_factor, seconds_solve, seconds_orthogonalise, seconds_ritz, seconds_report;
} modes_krylov_report;

// basis->omega2 holds Ritz values, ascending, after a Ritz step, and Rayleigh quotients in the order of the columns
// without. basis and the report's arrays are allocated; report may be NULL (then residuals are not computed).
// FEM_BAD_INPUT among others when the seeds cannot give `count` independent modes.
fem_status modes_krylov(const modes_problem *problem, const modes_krylov_options *options, const fem_progress *progress,
                        modes_basis *basis, modes_krylov_report *report);

// Loads of the six unit wrenches of an interface: F is 3 * vertices x 6, forces x y z, then moments x y z.
fem_status modes_interface_wrenches(const modes_problem *problem, const modes_interface *interface, double *F);

// Principal angles (radians, ascending, min(a, b) of them) between the spans of two mass-orthonormal matrices, n x a
// and n x b. [Björck, Golub 1973: small angles by their sines]
fem_status modes_principal_angles(const modes_problem *problem, int a, const double *A, int b, const double *B,
                                  double *angles);
// covered[j] = squared mass norm of the projection of column j of B on the span of A: 1 = all of that mode.
fem_status modes_coverage(const modes_problem *problem, int a, const double *A, int b, const double *B,
                          double *covered);

#endif
