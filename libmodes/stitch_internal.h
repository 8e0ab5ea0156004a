// What the files of stitching tell each other.
#ifndef LIMBER_MODES_STITCH_INTERNAL_H
#define LIMBER_MODES_STITCH_INTERNAL_H

#include "libmodes/krylov_internal.h"
#include "libmodes/stitch.h"

// The first `stitches` stitches as a small system. With G the held (bordered) inverse of K, F = B^T G B, and the rigid
// motions turned so that B^T R1 has full rank and B^T R0 = 0, K^ x = f is
//     x = G (f - B t) + R1 c,   [D^-1 + F,  -B^T R1;  R1^T B,  0] [t; c] = [B^T G f; R1^T f],   D = diag(k),
// t being the forces of the springs. No artificial springs are needed, and G may be any inverse.
//
// G = (L L^T)^-1 but for the border, so F = (L^-1 B)^T (L^-1 B): half a solve, in the few rows of L that the stitches
// reach, and static answers G B are made of no more loads than somebody asks for.
typedef struct stitch_coupling {
    int     stitches;
    int     tied, loose; // columns of R1 and R0
    double *R;           // n x (tied + loose): R1, R0
    double *S;           // m x m, m = 3 stitches: Cholesky factor of D^-1 + F
    double *Q;           // m x tied: S^-1 B^T R1
    double *H;           // tied x tied: Cholesky factor of (B^T R1)^T S^-1 B^T R1
} stitch_coupling;

struct modes_stitched {
    const modes_problem  *problem;
    modes_inverse        *inverse;
    bool                  own;
    int                   n;
    int                   domains;
    int                  *domain; // per vertex
    double               *factor; // per domain
    modes_mass            mass;
    double               *diagonal; // n: of M; 1 on fixed degrees of freedom
    int                   count;
    modes_stitch         *stitches;
    size_t                capacity;
    int                   ready;      // stitches whose columns stand in the halves, and in F
    int                   rows;       // of L
    int                   half_count; // consecutive stitches, STITCHES_OF_HALF or fewer each
    fem_half             *halves;     // L^-1 B, unit springs, B over the roots of the domains' factors
    size_t                half_capacity;
    double               *V;     // rows x rigid: L^-1 M R, likewise
    double               *F;     // 3 ready x 3 ready
    stitch_coupling       whole; // of all stitches, when `coupled`
    bool                  coupled;
    modes_stitched_report report;
};

fem_status stitch_no_memory(const modes_stitched *s, const char *what);
// Row of B: difference of the ends in one direction, zero at fixed ends. T (3 count x columns) = B^T X for stitches
// first .. first + count
void stitch_differences(const modes_stitched *s, int first, int count, int columns, const double *X, double *T);
// X (n x columns) += alpha B T
void stitch_spread(const modes_stitched *s, int first, int count, int columns, double alpha, const double *T,
                   double *X);
// y += B D B^T x over the first so many stitches
void stitch_add_springs(const modes_stitched *s, int stitches, const double *x, double *y);
// Y = (K + the first so many stitches) X
void stitch_multiply(const modes_stitched *s, int stitches, int columns, const double *X, double *Y);
// Turns rigid motions R (n x rigid, mass-orthonormal) into *turned (allocated): first the *tied ones, which stitches
// first .. first + count hinder, then those that they leave alone. Unit springs: how firmly does not matter.
fem_status stitch_split_rigid(const modes_stitched *s, int first, int count, int rigid, const double *R,
                              double **turned, int *tied);
// Makes the halves and F for all stitches.
fem_status stitch_responses(modes_stitched *s);
fem_status stitch_coupling_create(modes_stitched *s, int stitches, stitch_coupling *coupling);
void       stitch_coupling_destroy(stitch_coupling *coupling);
// t (3 stitches x columns) holds B^T G f and becomes the forces of the springs, w (tied x columns) holds R1^T f and
// becomes c.
void stitch_coupling_forces(const stitch_coupling *coupling, int columns, double *t, double *w);
// X (n x columns) = G B T, T 3 ready x columns: what loads at the stitches do to the body without them.
fem_status stitch_answers(modes_stitched *s, int loads, const double *T, double *X);
// X = [K^-1 B, G B T]: solutions as of stitch_solve, unchecked, and answers, on one way through the factor. B is work
// space afterwards.
fem_status stitch_solve_beside(modes_stitched *s, int columns, double *B, int loads, const double *T, double *X);
// modes_stitched_solve; unchecked: without the residual, and so without refinement. What a direct solution leaves,
// 1e-10 or so, matters to no shape of a basis.
fem_status stitch_solve(modes_stitched *s, int columns, bool checked, double *B, double *X);
// The first `count` Ritz vectors of K^ in the span of the columns of Z (of which at least the first `count` are
// independent), into it; their values ascending.
fem_status stitch_ritz(modes_stitched *s, int columns, int count, double *Z, double *values);
// Makes the coupling of all stitches.
fem_status stitch_couple(modes_stitched *s);
// X = M^-1 B on the free degrees of freedom, by conjugate gradients with the diagonal of M, all columns side by side.
fem_status stitch_mass_solve(const modes_stitched *s, int columns, const double *B, double tolerance, double *X);

#endif
