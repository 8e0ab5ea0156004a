// Y = A X for eight columns side by side, with the upper half of a symmetric matrix of 3x3 blocks. Compiled once per
// vector width (SIMD_SUFFIX) and chosen at run time. The plain version is the product with one column in sparse.c.
//
// A block is read once for eight columns and serves twice, as A_ij and as A_ij^T; one column alone leaves the processor
// waiting for the next block, and for the sum that it has just written.
#include "libfem/lanes.h"

static inline __attribute__((always_inline)) void add_block(const double *a, const real x[3], real y[3]) {
    UNROLL for (int i = 0; i < 3; i++) y[i] += a[3 * i] * x[0] + a[3 * i + 1] * x[1] + a[3 * i + 2] * x[2];
}

static inline __attribute__((always_inline)) void add_transposed(const double *a, const real x[3], real y[3]) {
    UNROLL for (int i = 0; i < 3; i++) y[i] += a[i] * x[0] + a[3 + i] * x[1] + a[6 + i] * x[2];
}

// X, Y: rows of eight lanes, 3 n of them; Y is zero.
void JOIN(fem_sparse_lanes, SIMD_SUFFIX)(const fem_sparse *A, const double *restrict X, double *restrict Y) {
    const double *a = A->value;
    for (int i = 0; i < A->n; i++) {
        real x[3], y[3];
        UNROLL for (int c = 0; c < 3; c++) {
            x[c] = load(X + 8 * (3 * (size_t)i + (size_t)c));
            y[c] = load(Y + 8 * (3 * (size_t)i + (size_t)c));
        }
        add_block(a, x, y); // on the diagonal, which comes first
        a += 9;
        for (int k = A->row_start[i] + 1; k < A->row_start[i + 1]; k++, a += 9) {
            size_t j = 24 * (size_t)A->column[k];
            real   xj[3], yj[3];
            UNROLL for (int c = 0; c < 3; c++) xj[c] = load(X + j + 8 * (size_t)c), yj[c] = load(Y + j + 8 * (size_t)c);
            add_block(a, xj, y);
            add_transposed(a, x, yj);
            UNROLL for (int c = 0; c < 3; c++) store(Y + j + 8 * (size_t)c, yj[c]);
        }
        UNROLL for (int c = 0; c < 3; c++) store(Y + 8 * (3 * (size_t)i + (size_t)c), y[c]);
    }
}
