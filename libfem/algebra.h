// Small and dense linear algebra behind names. 3x3 matrices are double[9], row-major; dense matrices are column-major.
#ifndef LIMBER_ALGEBRA_H
#define LIMBER_ALGEBRA_H

#include "libfem/base.h"

#include <math.h>

// ---- 3-vectors and 3x3 matrices (outputs must not alias inputs) -------------------------------------------------

static inline double vec3_dot(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
static inline double vec3_norm(const double a[3]) { return sqrt(vec3_dot(a, a)); }
static inline void   vec3_sub(double c[3], const double a[3], const double b[3]) {
      for (int i = 0; i < 3; i++) c[i] = a[i] - b[i];
}
static inline double vec3_distance(const double a[3], const double b[3]) {
    double d[3];
    vec3_sub(d, a, b);
    return vec3_norm(d);
}
static inline void vec3_cross(double c[3], const double a[3], const double b[3]) {
    c[0] = a[1] * b[2] - a[2] * b[1];
    c[1] = a[2] * b[0] - a[0] * b[2];
    c[2] = a[0] * b[1] - a[1] * b[0];
}
static inline void vec3_axpy(double y[3], double alpha, const double x[3]) { // y += alpha x
    for (int i = 0; i < 3; i++) y[i] += alpha * x[i];
}
static inline void vec3_normalize(double a[3]) { // leaves a zero vector as it is
    double norm = vec3_norm(a);
    if (norm > 0)
        for (int i = 0; i < 3; i++) a[i] /= norm;
}

static inline void mat3_identity(double A[9]) {
    for (int i = 0; i < 9; i++) A[i] = i % 4 == 0;
}
static inline void mat3_mul(double C[9], const double A[9], const double B[9]) { // C = A B
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) C[3 * i + j] = A[3 * i] * B[j] + A[3 * i + 1] * B[3 + j] + A[3 * i + 2] * B[6 + j];
}
static inline void mat3_mul_nt(double C[9], const double A[9], const double B[9]) { // C = A B^T
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) C[3 * i + j] = vec3_dot(A + 3 * i, B + 3 * j);
}
static inline void mat3_mul_vec(double y[3], const double A[9], const double x[3]) { // y = A x
    for (int i = 0; i < 3; i++) y[i] = vec3_dot(A + 3 * i, x);
}
static inline double mat3_det(const double A[9]) {
    return A[0] * (A[4] * A[8] - A[5] * A[7]) - A[1] * (A[3] * A[8] - A[5] * A[6]) + A[2] * (A[3] * A[7] - A[4] * A[6]);
}
// B = A^-1 and det A; B is zero when the determinant is
static inline double mat3_inverse(double B[9], const double A[9]) {
    double det = mat3_det(A), s = det != 0 ? 1 / det : 0;
    B[0] = s * (A[4] * A[8] - A[5] * A[7]), B[1] = s * (A[2] * A[7] - A[1] * A[8]);
    B[2] = s * (A[1] * A[5] - A[2] * A[4]), B[3] = s * (A[5] * A[6] - A[3] * A[8]);
    B[4] = s * (A[0] * A[8] - A[2] * A[6]), B[5] = s * (A[2] * A[3] - A[0] * A[5]);
    B[6] = s * (A[3] * A[7] - A[4] * A[6]), B[7] = s * (A[1] * A[6] - A[0] * A[7]);
    B[8] = s * (A[0] * A[4] - A[1] * A[3]);
    return det;
}

// R = exp([w]) by Rodrigues' formula: the rotation by the angle |w| about w
static inline void mat3_exp(double R[9], const double w[3]) {
    double angle = vec3_norm(w), W[9] = {0, -w[2], w[1], w[2], 0, -w[0], -w[1], w[0], 0}, W2[9];
    double a = angle > 1e-8 ? sin(angle) / angle : 1;
    double half = angle > 1e-8 ? sin(angle / 2) / (angle / 2) : 1, b = half * half / 2; // (1 - cos) / angle^2
    mat3_mul(W2, W, W);
    for (int i = 0; i < 9; i++) R[i] = (i % 4 == 0) + a * W[i] + b * W2[i];
}

// ---- dense vectors and column-major matrices ----------------------------------------------------------------------

double dense_dot(int n, const double *x, const double *y);
double dense_norm(int n, const double *x);
void   dense_axpy(int n, double alpha, const double *x, double *y); // y += alpha x
void   dense_scale(int n, double alpha, double *x);

// m x n matrices with leading dimension m
void dense_gemv_set(int m, int n, double alpha, const double *A, const double *x, double *y);   // y  = alpha A x
void dense_gemv_add(int m, int n, double alpha, const double *A, const double *x, double *y);   // y += alpha A x
void dense_gemv_t_set(int m, int n, double alpha, const double *A, const double *x, double *y); // y  = alpha A^T x

// C (m x n) = alpha op(A) op(B) + beta C, inner length k; leading dimensions as stored: A is m x k or, transposed, k x
// m
void dense_gemm(bool transpose_a, bool transpose_b, int m, int n, int k, double alpha, const double *A, const double *B,
                double beta, double *C);
// The same on parts of larger matrices, whose leading dimensions are lda, ldb, ldc
void dense_gemm_part(bool transpose_a, bool transpose_b, int m, int n, int k, double alpha, const double *A, int lda,
                     const double *B, int ldb, double beta, double *C, int ldc);

// X (m x n, leading dimension ldx) <- X T, T upper triangular (n x n, leading dimension ldt; what is below is not read)
void dense_multiply_upper(int m, int n, const double *T, int ldt, double *X, int ldx);
// G (n x n, upper triangle and diagonal) = A^T A for A of m x n with leading dimension lda
void dense_gram(int m, int n, const double *A, int lda, double *G);

// A file for other programs: NumPy's (.npy) or Matrix Market's (.mtx), each also with .gz behind it.
fem_status fem_matrix_write(const char *path, int rows, int columns, const double *A);
// The same kinds of files, whoever wrote them (.npy: also float32, also in C order). *A is column-major, allocated.
fem_status fem_matrix_read(const char *path, int *rows, int *columns, double **A);

// A = L L^T in the lower triangle; FEM_INDEFINITE when A is not positive definite. Then solve A X = B in place.
fem_status dense_cholesky(int n, double *A);
void       dense_cholesky_solve(int n, const double *L, int columns, double *B);

// P^T A P = L L^T in the lower triangle, row and column i of it being pivots[i] (n) of A, up to the first pivot that is
// not above `least` (> 0) or not a number; returns how many columns L has. Work: 2 n.
int dense_pivoted_cholesky(int n, double *A, double least, int *pivots, double *work);

// Eigenvalues ascending; eigenvectors replace A's columns.
fem_status dense_symmetric_eigen(int n, double *A, double *eigenvalues);
// A x = lambda B x, B positive definite (destroyed); x^T B x = 1.
fem_status dense_generalized_eigen(int n, double *A, double *B, double *eigenvalues);
// Singular values of A (m x n, destroyed), descending, and V^T (n x n, then m >= n) when it is not NULL.
fem_status dense_svd(int m, int n, double *A, double *singular, double *Vt);

#endif
