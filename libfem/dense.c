// Dense vectors and matrices: the one place that calls BLAS and LAPACK.
#include "libfem/internal.h"

#include <cblas.h>
#include <lapacke.h>
#undef I // LAPACKE brings in complex.h

#include <stdio.h>

double dense_dot(int n, const double *x, const double *y) { return cblas_ddot(n, x, 1, y, 1); }
double dense_norm(int n, const double *x) { return cblas_dnrm2(n, x, 1); }
void   dense_axpy(int n, double alpha, const double *x, double *y) { cblas_daxpy(n, alpha, x, 1, y, 1); }
void   dense_scale(int n, double alpha, double *x) { cblas_dscal(n, alpha, x, 1); }

// BLAS leaves y alone when A has no rows or columns, although A x is then zero, and calls a leading dimension of 0
// wrong.
static bool is_empty(int m, int n, int length, double *y) {
    if (m > 0 && n > 0) return false;
    for (int i = 0; i < length; i++) y[i] = 0;
    return true;
}

void dense_gemv_set(int m, int n, double alpha, const double *A, const double *x, double *y) {
    if (is_empty(m, n, m, y)) return;
    cblas_dgemv(CblasColMajor, CblasNoTrans, m, n, alpha, A, m, x, 1, 0, y, 1);
}
void dense_gemv_add(int m, int n, double alpha, const double *A, const double *x, double *y) {
    if (m == 0 || n == 0) return;
    cblas_dgemv(CblasColMajor, CblasNoTrans, m, n, alpha, A, m, x, 1, 1, y, 1);
}
void dense_gemv_t_set(int m, int n, double alpha, const double *A, const double *x, double *y) {
    if (is_empty(m, n, n, y)) return;
    cblas_dgemv(CblasColMajor, CblasTrans, m, n, alpha, A, m, x, 1, 0, y, 1);
}

void dense_gemm_part(bool transpose_a, bool transpose_b, int m, int n, int k, double alpha, const double *A, int lda,
                     const double *B, int ldb, double beta, double *C, int ldc) {
    if (m == 0 || n == 0) return;
    cblas_dgemm(CblasColMajor, transpose_a ? CblasTrans : CblasNoTrans, transpose_b ? CblasTrans : CblasNoTrans, m, n,
                k, alpha, A, lda, B, ldb, beta, C, ldc);
}

void dense_gemm(bool transpose_a, bool transpose_b, int m, int n, int k, double alpha, const double *A, const double *B,
                double beta, double *C) {
    int rows = k > 0 ? k : 1;
    dense_gemm_part(transpose_a, transpose_b, m, n, k, alpha, A, transpose_a ? rows : m, B, transpose_b ? n : rows,
                    beta, C, m);
}

void dense_multiply_upper(int m, int n, const double *T, int ldt, double *X, int ldx) {
    if (m == 0 || n == 0) return;
    cblas_dtrmm(CblasColMajor, CblasRight, CblasUpper, CblasNoTrans, CblasNonUnit, m, n, 1, T, ldt, X, ldx);
}

void dense_gram(int m, int n, const double *A, int lda, double *G) {
    if (n > 0) cblas_dsyrk(CblasColMajor, CblasUpper, CblasTrans, n, m, 1, A, lda, 0, G, n);
}

fem_status dense_cholesky(int n, double *A) {
    lapack_int info = LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', n, A, n > 0 ? n : 1);
    if (info != 0)
        return fem_fail(FEM_INDEFINITE, "a dense matrix is not positive definite (pivot %d of %d)", (int)info, n);
    return FEM_OK;
}

void dense_cholesky_solve(int n, const double *L, int columns, double *B) {
    if (n > 0) LAPACKE_dpotrs_work(LAPACK_COL_MAJOR, 'L', n, columns, L, n, B, n);
}

int dense_pivoted_cholesky(int n, double *A, double least, int *pivots, double *work) {
    lapack_int rank = 0;
    if (n > 0) LAPACKE_dpstrf_work(LAPACK_COL_MAJOR, 'L', n, A, n, pivots, &rank, least, work);
    for (int i = 0; i < n; i++) pivots[i]--;
    return rank;
}

// LAPACK's divide and conquer needs work space: asked for first, then taken from our memory.
fem_status dense_symmetric_eigen(int n, double *A, double *eigenvalues) {
    double     size = 0;
    lapack_int isize = 0;
    if (n == 0) return FEM_OK;
    LAPACKE_dsyevd_work(LAPACK_COL_MAJOR, 'V', 'U', n, A, n, eigenvalues, &size, -1, &isize, -1);
    double     *work = fem_alloc((size_t)size, sizeof *work);
    lapack_int *iwork = fem_alloc((size_t)isize, sizeof *iwork);
    fem_status  status = FEM_OK;
    if (!work || !iwork)
        status = fem_fail(FEM_NO_MEMORY, "no memory for the eigenvalues of a %d x %d matrix", n, n);
    else if (LAPACKE_dsyevd_work(LAPACK_COL_MAJOR, 'V', 'U', n, A, n, eigenvalues, work, (lapack_int)size, iwork,
                                 isize))
        status = fem_fail(FEM_NO_CONVERGENCE, "the eigenvalues of a %d x %d matrix did not converge", n, n);
    fem_free(work);
    fem_free(iwork);
    return status;
}

fem_status dense_generalized_eigen(int n, double *A, double *B, double *eigenvalues) {
    double     size = 0;
    lapack_int isize = 0;
    if (n == 0) return FEM_OK;
    LAPACKE_dsygvd_work(LAPACK_COL_MAJOR, 1, 'V', 'U', n, A, n, B, n, eigenvalues, &size, -1, &isize, -1);
    double     *work = fem_alloc((size_t)size, sizeof *work);
    lapack_int *iwork = fem_alloc((size_t)isize, sizeof *iwork);
    fem_status  status = FEM_OK;
    if (!work || !iwork) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the eigenvalues of a %d x %d matrix", n, n);
    } else {
        lapack_int info = LAPACKE_dsygvd_work(LAPACK_COL_MAJOR, 1, 'V', 'U', n, A, n, B, n, eigenvalues, work,
                                              (lapack_int)size, iwork, isize);
        if (info > n)
            status = fem_fail(FEM_INDEFINITE, "the second matrix of an eigenproblem is not positive definite");
        else if (info)
            status = fem_fail(FEM_NO_CONVERGENCE, "the eigenvalues of a %d x %d pair did not converge", n, n);
    }
    fem_free(work);
    fem_free(iwork);
    return status;
}

// By divide and conquer; U, which it makes too, replaces A.
fem_status dense_svd(int m, int n, double *A, double *singular, double *Vt) {
    if (m == 0 || n == 0) return FEM_OK;
    double      size = 0;
    char        job = Vt ? 'O' : 'N';
    int         ldv = Vt ? n : 1, least = m < n ? m : n;
    lapack_int *iwork = fem_alloc(8 * (size_t)least, sizeof *iwork);
    double     *work = NULL;
    fem_status  status = FEM_OK;
    if (iwork) LAPACKE_dgesdd_work(LAPACK_COL_MAJOR, job, m, n, A, m, singular, NULL, 1, Vt, ldv, &size, -1, iwork);
    if (iwork) work = fem_alloc((size_t)size, sizeof *work);
    if (!work)
        status = fem_fail(FEM_NO_MEMORY, "no memory for the singular values of a %d x %d matrix", m, n);
    else if (LAPACKE_dgesdd_work(LAPACK_COL_MAJOR, job, m, n, A, m, singular, NULL, 1, Vt, ldv, work, (lapack_int)size,
                                 iwork))
        status = fem_fail(FEM_NO_CONVERGENCE, "the singular values of a %d x %d matrix did not converge", m, n);
    fem_free(iwork), fem_free(work);
    return status;
}

void fem_lapack_version(char text[32]) {
    lapack_int major = 0, minor = 0, patch = 0;
    LAPACK_ilaver(&major, &minor, &patch);
    snprintf(text, 32, "%d.%d.%d", (int)major, (int)minor, (int)patch);
}
