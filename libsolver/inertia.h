// Inertia of a deformable domain that also moves as a whole: the integrals, and the blocks of its equations of motion.
//
// A material point sits at y = X + U q in the axes of a frame with world pose (p, Q); a = Q^T ddp, w (dQ = Q [w]) and
// al = dw/dt are in the axes of the frame too. The equations of one domain are (theory: Barbic and Zhao 2011, checked)
//     Mrr (a; al) + Mrq ddq + b_r = e_r          (force; moment about the frame's origin)
//     Mrq^T (a; al) + Mqq ddq + b_q = e_q - f(q) - D dq
// with skew(A) the vector whose cross-product matrix is (A - A^T)/2, and, l and p over the modes,
//     N_l = W5_l + sum_p q_p W7_lp,   N = sum_l dq_l N_l,   s = s0 + S1 q,
//     Z = Z0 + sum_l q_l (W5_l + W5_l^T) + sum_lp q_l q_p W7_lp,   J = tr(Z) I - Z,   column l of Sth = 2 skew(N_l),
//     Mrr = [m I, -[s]; [s], J],   Mrq = [S1; Sth],   Mqq = (tr W7_lp),
//     b_v = w x (w x s) + 2 w x (S1 dq),   b_w = w x (J w) + 2 (tr(N) I - N) w,   b_r = (b_v; b_w),
//     b_q,l = w^T N_l w - tr(N_l) |w|^2 + 2 (sum_p dq_p 2 skew(W7_lp)) . w.
#ifndef LIMBER_SOLVER_INERTIA_H
#define LIMBER_SOLVER_INERTIA_H

#include "libcubature/cubature.h"

// 3x3 matrices are row-major. Barbic and Zhao's W1_l is minus column l of S1; their W2, W3, W4, W6 follow from W5, W7.
typedef struct solver_inertia {
    int     r;     // modes, may be 0
    double  m;     // kg
    double  s0[3]; // int rho X
    double  Z0[9]; // int rho X X^T
    double *S1;    // 3 x r, column l: int rho U_l
    double *W5;    // 9 x r, column l: int rho U_l X^T
    double *W7;    // 9 r x r, entries 9 l .. 9 l + 8 of column p: W7_lp = int rho U_l U_p^T
    double *Mqq;   // r x r, int rho U_l . U_p; the identity for a mass-orthonormal basis
} solver_inertia;

// U is 3 vertices x r, column-major. An empty inertia is all zeros.
fem_status solver_inertia_create(solver_inertia *inertia, const fem_body *body, fem_mass_kind mass, int r,
                                 const double *U);
fem_status solver_inertia_copy(solver_inertia *copy, const solver_inertia *inertia);
void       solver_inertia_destroy(solver_inertia *inertia); // leaves it empty
// Moves the origin of the frame to the point c of it: X becomes X - c.
void solver_inertia_recentre(solver_inertia *inertia, const double c[3]);

// The blocks for one q, dq, w. Column-major.
typedef struct solver_inertia_blocks {
    double  Mrr[36]; // symmetric; J is its lower right 3 x 3
    double *Mrq;     // 6 x r
    double  b_r[6];
    double *b_q; // r
} solver_inertia_blocks;

// work: 18 r doubles. Mrq and b_q of `blocks` are the caller's; dq and w may be NULL for 0.
#define SOLVER_INERTIA_WORK(r) (18 * (size_t)(r))
void solver_inertia_evaluate(const solver_inertia *inertia, const double *q, const double *dq, const double *w,
                             solver_inertia_blocks *blocks, double *work);
// (P; H) = Mrr (v; w) + Mrq dq, linear momentum and angular momentum about the frame's origin, in its axes; returns the
// kinetic energy. v is the velocity of the origin in the axes of the frame.
double solver_inertia_momentum(const solver_inertia *inertia, const solver_inertia_blocks *blocks, const double v[3],
                               const double w[3], const double *dq, double momentum[6]);

#endif
