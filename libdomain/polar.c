// Polar decomposition of 3x3 matrices with gradient and Hessian, robust where the rotation is hard to tell.
//
// The rotation nearest to A maximises tr(R^T A). Written with a unit quaternion p that is p^T H p, H the symmetric 4x4
// matrix of Horn (1987), whose eigenvalues are s1 + s2 + s3 (the largest) and s_i - s_j - s_k, the smallest singular
// value counted with the sign of det A. So the eigenvector of the largest is the answer for every A, reflections and
// singular matrices included, and its gap to the next is 2 (s2 + s3): what the gradient divides by.
#include "libdomain/frame.h"

#include <string.h>

// Eigenvalues and eigenvectors (columns of V, row-major) of a symmetric n x n matrix, n <= 4, by Jacobi rotations.
static void jacobi(int n, double *A, double *V, double *eigenvalues) {
    for (int i = 0; i < n * n; i++) V[i] = i % (n + 1) == 0;
    for (int sweep = 0; sweep < 30; sweep++) {
        double off = 0, diagonal = 0;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) *(i == j ? &diagonal : &off) += A[n * i + j] * A[n * i + j];
        if (!(off > 1e-34 * diagonal)) break;
        for (int p = 0; p < n; p++)
            for (int q = p + 1; q < n; q++) {
                if (A[n * p + q] == 0) continue;
                double theta = (A[n * q + q] - A[n * p + p]) / (2 * A[n * p + q]);
                double t = copysign(1, theta) / (fabs(theta) + sqrt(theta * theta + 1));
                double c = 1 / sqrt(t * t + 1), s = t * c;
                for (int k = 0; k < n; k++) { // columns p, q of A, then of V
                    double x = A[n * k + p], y = A[n * k + q];
                    A[n * k + p] = c * x - s * y, A[n * k + q] = s * x + c * y;
                    x = V[n * k + p], y = V[n * k + q];
                    V[n * k + p] = c * x - s * y, V[n * k + q] = s * x + c * y;
                }
                for (int k = 0; k < n; k++) { // rows
                    double x = A[n * p + k], y = A[n * q + k];
                    A[n * p + k] = c * x - s * y, A[n * q + k] = s * x + c * y;
                }
            }
    }
    for (int i = 0; i < n; i++) eigenvalues[i] = A[n * i + i];
}

// R of the unit quaternion (p0, p1, p2, p3)
static void rotation_of(const double p[4], double R[9]) {
    double w = p[0], x = p[1], y = p[2], z = p[3];
    R[0] = 1 - 2 * (y * y + z * z), R[1] = 2 * (x * y - w * z), R[2] = 2 * (x * z + w * y);
    R[3] = 2 * (x * y + w * z), R[4] = 1 - 2 * (x * x + z * z), R[5] = 2 * (y * z - w * x);
    R[6] = 2 * (x * z - w * y), R[7] = 2 * (y * z + w * x), R[8] = 1 - 2 * (x * x + y * y);
}

static void nearest_rotation(const double A[9], double R[9]) {
    double H[16] = {A[0] + A[4] + A[8], A[7] - A[5],        A[2] - A[6],        A[3] - A[1],
                    A[7] - A[5],        A[0] - A[4] - A[8], A[1] + A[3],        A[2] + A[6],
                    A[2] - A[6],        A[1] + A[3],        A[4] - A[0] - A[8], A[5] + A[7],
                    A[3] - A[1],        A[2] + A[6],        A[5] + A[7],        A[8] - A[0] - A[4]};
    double V[16], eigenvalues[4], p[4];
    int    best = 0;
    jacobi(4, H, V, eigenvalues);
    for (int i = 1; i < 4; i++)
        if (eigenvalues[i] > eigenvalues[best]) best = i;
    double norm = 0;
    for (int i = 0; i < 4; i++) norm += V[4 * i + best] * V[4 * i + best];
    for (int i = 0; i < 4; i++) p[i] = V[4 * i + best] / sqrt(norm);
    rotation_of(p, R);
}

// L = A R^T and g = 2 skew(L)
static void left_stretch(const double A[9], const double R[9], double L[9], double g[3]) {
    mat3_mul_nt(L, A, R);
    g[0] = L[7] - L[5], g[1] = L[2] - L[6], g[2] = L[3] - L[1];
}

// G = tr(L) I - L with the symmetric part of L, and P = G^-1. True when all eigenvalues of G are surely above the gap:
// its elementary symmetric functions e1, e2, det are positive, so the eigenvalues are, and det/e2 = 1/(sum of their
// inverses) bounds the smallest from below. A small e2 comes with a det that is rounding only.
static bool make_inverse(const double L[9], double P[9]) {
    double trace = L[0] + L[4] + L[8], G[9];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) G[3 * i + j] = (i == j ? trace : 0) - 0.5 * (L[3 * i + j] + L[3 * j + i]);
    double det = mat3_inverse(P, G);
    double e2 = G[0] * G[4] - G[1] * G[1] + G[0] * G[8] - G[2] * G[2] + G[4] * G[8] - G[5] * G[5];
    return trace > 0 && e2 > 1e-4 * trace * trace && det > DOMAIN_POLAR_GAP * trace * e2;
}

// R <- cayley(d) R, the rotation of the quaternion (1, d/2), followed by one step towards orthonormal rows, which keeps
// rounding from piling up over many warm starts.
static void turn(const double d[3], double R[9]) {
    double p[4] = {1, 0.5 * d[0], 0.5 * d[1], 0.5 * d[2]}, C[9], B[9], N[9];
    double norm = sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3]);
    for (int i = 0; i < 4; i++) p[i] /= norm;
    rotation_of(p, C);
    mat3_mul(B, C, R);
    mat3_mul_nt(N, B, B);
    for (int i = 0; i < 9; i++) N[i] = (i % 4 == 0 ? 1.5 : 0) - 0.5 * N[i];
    mat3_mul(R, N, B);
}

// Newton's method for the maximum of tr(R^T A): d = P 2 skew(A R^T), R <- cayley(d) R. At a critical point with
// tr(L) I - L positive definite R is the nearest rotation, since every other critical point has a negative sum
// s_i + s_j.
static bool newton(domain_polar *polar, const double A[9], const double guess[9]) {
    memcpy(polar->R, guess, sizeof polar->R);
    for (int k = 0; k < 8; k++) {
        double g[3], d[3];
        left_stretch(A, polar->R, polar->L, g);
        if (!make_inverse(polar->L, polar->P)) return false;
        mat3_mul_vec(d, polar->P, g);
        double size = vec3_dot(d, d);
        if (!(size < 1)) return false;
        if (size < 1e-30) return true;
        turn(d, polar->R);
        if (size < 1e-10) { // the error is now of the order of its cube
            left_stretch(A, polar->R, polar->L, g);
            return make_inverse(polar->L, polar->P);
        }
    }
    return false;
}

void domain_polar_decompose(domain_polar *polar, const double A[9], const double *guess) {
    double g[3], S[9], V[9], sums[3];
    polar->flags = 0;
    if (!guess || !newton(polar, A, guess)) {
        nearest_rotation(A, polar->R);
        left_stretch(A, polar->R, polar->L, g);
        if (!make_inverse(polar->L, polar->P)) { // raise the small sums
            double trace = polar->L[0] + polar->L[4] + polar->L[8], least = fmax(DOMAIN_POLAR_GAP * trace, 1e-6);
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 3; j++)
                    S[3 * i + j] = (i == j ? trace : 0) - 0.5 * (polar->L[3 * i + j] + polar->L[3 * j + i]);
            jacobi(3, S, V, sums);
            for (int k = 0; k < 3; k++) {
                if (!(sums[k] > least)) polar->flags |= DOMAIN_NEAR_SINGULAR;
                sums[k] = sums[k] > least ? sums[k] : least;
            }
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 3; j++) {
                    polar->P[3 * i + j] = 0;
                    for (int k = 0; k < 3; k++) polar->P[3 * i + j] += V[3 * i + k] * V[3 * j + k] / sums[k];
                }
        }
    }
    if (!(mat3_det(A) > 0)) polar->flags |= DOMAIN_REFLECTED;
}

void domain_polar_first(const domain_polar *polar, const double dA[9], double w[3]) {
    double D[9], g[3];
    left_stretch(dA, polar->R, D, g);
    mat3_mul_vec(w, polar->P, g);
}

// C = [w] B
static void cross_matrix(double C[9], const double w[3], const double B[9]) {
    for (int j = 0; j < 3; j++) {
        C[j] = w[1] * B[6 + j] - w[2] * B[3 + j];
        C[3 + j] = w[2] * B[j] - w[0] * B[6 + j];
        C[6 + j] = w[0] * B[3 + j] - w[1] * B[j];
    }
}

void domain_polar_second(const domain_polar *polar, const double dA[9], const double *ddA, const double w[3],
                         double dw[3]) {
    double D[9], B[9], X[9], Xw[3], g[3];
    mat3_mul_nt(D, dA, polar->R);
    cross_matrix(B, w, D);
    for (int i = 0; i < 9; i++) B[i] = -B[i];
    if (ddA) {
        double E[9];
        mat3_mul_nt(E, ddA, polar->R);
        for (int i = 0; i < 9; i++) B[i] += E[i];
    }
    g[0] = B[7] - B[5], g[1] = B[2] - B[6], g[2] = B[3] - B[1];
    cross_matrix(X, w, polar->L);
    for (int i = 0; i < 9; i++) X[i] = D[i] - X[i];
    mat3_mul_vec(Xw, X, w);
    double trace = X[0] + X[4] + X[8];
    for (int i = 0; i < 3; i++) g[i] -= trace * w[i] - Xw[i];
    mat3_mul_vec(dw, polar->P, g);
}
