// Nonnegative least squares: minimise |A x - b| over x >= 0, for thousands of small dense problems.
// A chapter of cubature.h: include that.
#ifndef LIMBER_NNLS_H
#define LIMBER_NNLS_H

#include "libmodes/modes.h"

typedef enum cubature_nnls_method {
    CUBATURE_NNLS_AUTOMATIC,      // block pivoting, and Lawson-Hanson where it fails
    CUBATURE_NNLS_LAWSON_HANSON,  // one column at a time; takes dependent columns too
    CUBATURE_NNLS_BLOCK_PIVOTING, // many at a time [Portugal, Judice, Vicente 1994; Kim and Park 2011]; alone it may
                                  // fail
} cubature_nnls_method;

typedef struct cubature_nnls_options {
    cubature_nnls_method method;
    double               tolerance;       // of the optimality conditions, as `violation` below
    int                  most_iterations; // 0: 3 n + 30 steps of Lawson-Hanson
} cubature_nnls_options;
cubature_nnls_options cubature_nnls_default_options(void);

// At the solution x >= 0, g = A^T (b - A x) <= 0, and x_i g_i = 0 (Karush, Kuhn, Tucker).
typedef struct cubature_nnls_report {
    int    iterations; // of the method that gave the answer
    bool   fallback;   // Lawson-Hanson had to help
    int    positive;   // entries of x above 0
    double residual;   // |A x - b| / |b|; 0 when b is
    double violation;  // the largest of g_i / (|a_i| |b|), and of |g_i| / (|a_i| |b|) where x_i > 0
} cubature_nnls_report;

// A is m x n, column-major with leading dimension lda. `work` has cubature_nnls_work(n) doubles; nothing is allocated.
// FEM_NO_CONVERGENCE when the iterations run out or the conditions are missed: x is then feasible, and the report says
// how far it got. FEM_BAD_INPUT when a number is not finite. report may be NULL.
size_t     cubature_nnls_work(int m, int n);
fem_status cubature_nnls(int m, int n, const double *A, int lda, const double *b, const cubature_nnls_options *options,
                         double *x, double *work, cubature_nnls_report *report);

#endif
