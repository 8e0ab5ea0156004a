// Interface frames: the rigid frame that follows the interface of a domain (the parent) to its child, with velocity and
// acceleration. P1 is Barbič & Zhao 2011. 3x3 matrices are row-major. [w] is the cross-product matrix of w, and skew(A)
// the vector whose cross-product matrix is (A - A^T)/2.
#ifndef LIMBER_FRAME_H
#define LIMBER_FRAME_H

#include "libfem/fem.h"

// ---- polar decomposition A = R S, its gradient and Hessian (polar.c) --------------------------------------------

// R is the rotation nearest to A. With the left stretch L = A R^T = R S R^T, which is symmetric, P1 eq. 7 to 9 become
//     w = P 2 skew(dA R^T),   P = (tr(L) I - L)^-1,   dR = [w] R,
//     dw = P (2 skew((ddA - [w] dA) R^T) - (tr(X) I - X) w),   X = R dS R^T = dA R^T - [w] L,   ddR = ([dw] + [w]^2) R.
// The eigenvalues of tr(L) I - L are the sums s_i + s_j of singular values, the smallest counted negative when
// det A < 0. Where a sum is below DOMAIN_POLAR_GAP tr(S), R hardly depends on A any more: sums are raised to that when
// P is made, so that w stays bounded, and the answer is flagged.
enum { DOMAIN_REFLECTED = 1, DOMAIN_NEAR_SINGULAR = 2 };
#define DOMAIN_POLAR_GAP 1e-3

typedef struct domain_polar {
    double R[9];
    double L[9]; // A R^T
    double P[9]; // (tr(L) I - L)^-1
    int    flags;
} domain_polar;

// With a guess (a rotation, such as the last one) Newton's method on the rotation is tried first: two iterations from
// 0.1 rad away. Whatever it does not bring to the nearest rotation is solved by the eigenvectors of a 4x4 matrix.
void domain_polar_decompose(domain_polar *polar, const double A[9], const double *guess);
void domain_polar_first(const domain_polar *polar, const double dA[9], double w[3]);
// ddA may be NULL (zero); w is that of dA
void domain_polar_second(const domain_polar *polar, const double dA[9], const double *ddA, const double w[3],
                         double dw[3]);

// ---- interfaces (interface.c) -----------------------------------------------------------------------------------

// What the parent's motion does to the points where a child is attached. Points, rows and frames are in the axes of the
// parent's class; a scaled parent multiplies x and v by its scale and leaves rotations alone.
//     x(q) = x + a q,   F(q) = T + sum_l F^l q_l,   R(q) = rotation(F(q)) T^T rest
// F is the best linear map of the interface (P1 eq. 2 to 4 without the constant rotation on the right, which changes
// neither w nor dw), applied to the axes T. Thick interfaces have T = I. Flat ones (smallest eigenvalue of the
// covariance below DOMAIN_FLAT of the largest) have T = [t1 t2 N] with the normal N: the map is fitted in the plane and
// the third column is the cross product of the first two, which has no reflections and turns with the plane. (P1 adds a
// point off the plane that never moves, which halves every tilt.) Cuts through unstructured meshes are jagged planes:
// their third direction says nothing but would be weighed most by the inverse of the covariance, and lowest
// frequencies of a hand cut by limbs came out at 0.4 of the true ones.
#define DOMAIN_FLAT 0.1
typedef struct domain_interface {
    int     r;       // modes of the parent
    int     stride;  // r rounded up to a multiple of 8
    bool    flat;    //
    double  weight;  // sum of the weights: the area
    double  spread;  // root of the largest eigenvalue of the covariance over the weight, m: the size
    double  x[3];    // weighted centroid at rest
    double  T[9];    // axes of the fit
    double  rest[9]; // rotation of the child's frame at rest
    double  turn[9]; // T^T rest
    double *a;       // 3 rows of `stride`: mean displacement of each mode; the padding is zero
    double *F;       // columns of F^l: rows 3 k + i of `stride`, k = 0 .. 2, or 0 .. 1 when flat; right behind a
    int     carried; // shapes of the interface that the child follows besides the frame, below; 0: none
    double *B;       // of shape s: entry e of B_s in row 9 s + e of `stride`; then the same at rest, 9 per shape
} domain_interface;

// points: 3 per point, at least three and not on a line. weights: NULL = equal, else > 0. rows: the parent's basis at
// the points, 3 points x r, column-major. rest: rotation of the child's frame in the parent's, NULL = the same axes.
fem_status domain_interface_create(domain_interface *interface, int count, const double *points, const double *weights,
                                   int r, const double *rows, const double *rest);
void       domain_interface_destroy(domain_interface *interface); // leaves it empty

// How the child pulls: six patterns of forces on the points, G (3 points x 6, column-major), with the resultant forces
// (0 .. 2) and moments about the weighted centroid (3 .. 5) of the unit wrenches. Between an interface that deforms and
// a child that is rigid there, the work done by the child's pull is right when its frame moves by G^T u: deformations
// of the interface that the child's pull does no work on do not move the child. So what the affine fit leaves of the
// motion of the points, u - fit(u), moves the frame by G^T (u - fit(u)). Finite rotations of flat interfaces stay exact
// up to the thickness of the interface.
fem_status domain_interface_set_pull(domain_interface *interface, int count, const double *points, const double *rows,
                                     const double *G);
// The forces on the points that do the work of unit wrenches on the frame at rest: 3 points x 6, column-major. They are
// the rows of the linearised frame. G may be NULL.
fem_status domain_interface_wrenches(int count, const double *points, const double *weights, const double *G,
                                     double *forces);
// How r displacements of the points (rows: 3 points x r) strain the interface: gradients F_j = B t_j along the axes of
// its plane (6 x r: j = 1, 2), and six fields (3 points x 6): of the unit strains 11, 22 and 12 of the plane, and of
// the three unit displacements times the height above it.
fem_status domain_interface_strains(int count, const double *points, const double *weights, int r, const double *rows,
                                    double *F, double *fields);

// ---- an interface that deforms (interface_carry.c) --------------------------------------------------------------

// A child that follows the interface not only by its frame but also in `count` shapes of it has one more coordinate w_s
// for each, which the parent moves. Patterns P_s (3 points x count, in the axes of the child) measure them: with
// y_k = R^T (x_k - x) - rest^T (X_k - x), what point k moves by in the axes of the child,
//     w_s = sum_k P_s,k . y_k = R : B_s(q) - its value at rest,   B_s(q) = sum_k (x_k - x) P_s,k^T, linear in q.
// No rotation moves w, however large. With C = B R^T, g = 2 skew(C), turn = W dq and its bias (of the frame),
//     dw_s = g . turn + R : dB_s,
//     ddw_s = grad_s ddq + g . bias + turn . C turn - |turn|^2 tr C + 2 (2 skew(dB_s R^T)) . turn.
fem_status domain_interface_set_carried(domain_interface *interface, int count, const double *points,
                                        const double *rows, int carried, const double *patterns);
// Of the frame: R, turn (its w), bias, W. w, dw and what of ddw does not come from ddq: `carried` numbers each; grad:
// `carried` rows of `stride`, the padding is zero. All times `factor`.
typedef struct domain_carried {
    double *w, *dw, *bias, *grad;
} domain_carried;
void domain_interface_carry(const domain_interface *interface, const double R[9], const double turn[3],
                            const double bias[3], const double *W, const double *q, const double *dq, double factor,
                            const domain_carried *out);

// ---- the frame in motion (frame.c) ------------------------------------------------------------------------------

// Relative to the parent's frame and in its axes. The child's frame has velocity v, angular velocity w = W dq,
// acceleration a ddq and angular acceleration W ddq + bias.
typedef struct domain_frame {
    double       x[3], R[9];
    double       v[3], w[3], bias[3];
    double       F[9];  // columns one after the other: F[3 k + i] is entry i of column k
    domain_polar polar; // of the matrix F
} domain_frame;

// Pose alone; then also v, w and bias. `guess` is polar.R of a nearby pose, or NULL.
void domain_frame_pose(const domain_interface *interface, const double *q, const double *guess, domain_frame *frame);
void domain_frame_motion(const domain_interface *interface, const double *q, const double *dq, const double *guess,
                         domain_frame *frame);
// W, three rows of `stride` (the padding is zero), for the frame of a pose.
void domain_frame_gradient(const domain_interface *interface, const domain_frame *frame, double *W);
// |F T^T - R R_rest^T| / |R|, Frobenius norms: how far the interface is from moving rigidly (P1 fig. 3).
double domain_frame_deviation(const domain_frame *frame);

#endif
