// Forward and backward substitution with the supernodes of a Cholesky factor for 8, 16 or 24 right-hand sides at once.
// Compiled once per vector width (SIMD_SUFFIX) and chosen at run time. The plain version is CHOLMOD's own solve.
//
// A solve reads L twice and does little with each entry, so L must stream. It is stored by columns: eight columns are
// taken side by side and walked downwards, which the processor's prefetcher follows. Right-hand sides are row-major, so
// that an entry of L, broadcast, meets whole vectors: going forward the eight rows of X that belong to the columns stay
// in registers and each row below is read and written once; going backward eight sums stay in registers.
// Every lane does the same operations in the same order whatever stands beside it.
#include "libfem/factor_internal.h"

#include <string.h>

#define JOIN2(a, b) a##b
#define JOIN(a, b)  JOIN2(a, b)

#if defined(__AVX512F__)
enum { PANEL = 8 }; // columns of L side by side
#else
enum { PANEL = 4 }; // half the registers, of half the width or less
#endif

typedef double real __attribute__((vector_size(64)));

static inline real load(const double *memory) {
    real x;
    memcpy(&x, memory, sizeof x);
    return x;
}
static inline void store(double *memory, real x) { memcpy(memory, &x, sizeof x); }
static inline real set(double x) { return (real){x, x, x, x, x, x, x, x}; }

#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

enum { L8 = FACTOR_LANES };

// Y_i -= sum_k L_ik x_k for `rows` rows; L points to the first of the rows, x to the first of `width` rows of X
INLINE void subtract_product(const int width, const int nv, const double *L, long ld, const double *x, double *Y,
                             long rows) {
    real xs[PANEL][FACTOR_VECTORS];
    UNROLL for (int k = 0; k < width; k++) UNROLL for (int v = 0; v < nv; v++) xs[k][v] = load(x + (k * nv + v) * L8);
    for (long i = 0; i < rows; i++) {
        real y[FACTOR_VECTORS];
        UNROLL for (int v = 0; v < nv; v++) y[v] = load(Y + (i * nv + v) * L8);
        UNROLL for (int k = 0; k < width; k++) {
            real a = set(L[k * ld + i]);
            UNROLL for (int v = 0; v < nv; v++) y[v] -= a * xs[k][v];
        }
        UNROLL for (int v = 0; v < nv; v++) store(Y + (i * nv + v) * L8, y[v]);
    }
}

// x_k -= sum_i L_ik Y_i
INLINE void subtract_transposed(const int width, const int nv, const double *L, long ld, const double *Y, long rows,
                                double *x) {
    real sum[PANEL][FACTOR_VECTORS];
    UNROLL for (int k = 0; k < width; k++) UNROLL for (int v = 0; v < nv; v++) sum[k][v] = load(x + (k * nv + v) * L8);
    for (long i = 0; i < rows; i++) {
        real y[FACTOR_VECTORS];
        UNROLL for (int v = 0; v < nv; v++) y[v] = load(Y + (i * nv + v) * L8);
        UNROLL for (int k = 0; k < width; k++) {
            real a = set(L[k * ld + i]);
            UNROLL for (int v = 0; v < nv; v++) sum[k][v] -= a * y[v];
        }
    }
    UNROLL for (int k = 0; k < width; k++) UNROLL for (int v = 0; v < nv; v++) store(x + (k * nv + v) * L8, sum[k][v]);
}

// The triangle of a panel, column by column: x_j /= L_jj, x_i -= L_ij x_j
INLINE void solve_triangle(int width, const int nv, const double *L, long ld, double *x) {
    for (int j = 0; j < width; j++) {
        real inverse = set(1 / L[j * ld + j]);
        UNROLL for (int v = 0; v < nv; v++) {
            real xj = load(x + (j * nv + v) * L8) * inverse;
            store(x + (j * nv + v) * L8, xj);
            for (int i = j + 1; i < width; i++) {
                double *xi = x + (i * nv + v) * L8;
                store(xi, load(xi) - set(L[j * ld + i]) * xj);
            }
        }
    }
}

INLINE void solve_triangle_transposed(int width, const int nv, const double *L, long ld, double *x) {
    for (int j = width - 1; j >= 0; j--) {
        real inverse = set(1 / L[j * ld + j]);
        UNROLL for (int v = 0; v < nv; v++) {
            real xj = load(x + (j * nv + v) * L8);
            for (int i = j + 1; i < width; i++) xj -= set(L[j * ld + i]) * load(x + (i * nv + v) * L8);
            store(x + (j * nv + v) * L8, xj * inverse);
        }
    }
}

// A panel that is narrower than PANEL goes in pieces of constant width, so that its rows of X fit in registers too.
INLINE void subtract_product_any(int width, const int nv, const double *L, long ld, const double *x, double *Y,
                                 long rows) {
    if (width == PANEL) {
        subtract_product(PANEL, nv, L, ld, x, Y, rows);
        return;
    }
    int k = 0;
    if (width - k >= 4) subtract_product(4, nv, L + k * ld, ld, x + k * nv * L8, Y, rows), k += 4;
    if (width - k >= 2) subtract_product(2, nv, L + k * ld, ld, x + k * nv * L8, Y, rows), k += 2;
    if (width - k >= 1) subtract_product(1, nv, L + k * ld, ld, x + k * nv * L8, Y, rows);
}

INLINE void subtract_transposed_any(int width, const int nv, const double *L, long ld, const double *Y, long rows,
                                    double *x) {
    if (width == PANEL) {
        subtract_transposed(PANEL, nv, L, ld, Y, rows, x);
        return;
    }
    int k = 0;
    if (width - k >= 4) subtract_transposed(4, nv, L + k * ld, ld, Y, rows, x + k * nv * L8), k += 4;
    if (width - k >= 2) subtract_transposed(2, nv, L + k * ld, ld, Y, rows, x + k * nv * L8), k += 2;
    if (width - k >= 1) subtract_transposed(1, nv, L + k * ld, ld, Y, rows, x + k * nv * L8);
}

// One supernode: X holds the rows of its columns, T those of its other rows.
INLINE void forward(const double *L, long rows, long columns, const int nv, double *X, double *T) {
    long row = nv * L8;
    for (long k = 0; k < columns; k += PANEL) {
        int           width = columns - k < PANEL ? (int)(columns - k) : PANEL;
        long          next = k + width;
        const double *panel = L + k * rows;
        solve_triangle(width, nv, panel + k, rows, X + k * row);
        subtract_product_any(width, nv, panel + next, rows, X + k * row, X + next * row, columns - next);
        subtract_product_any(width, nv, panel + columns, rows, X + k * row, T, rows - columns);
    }
}

INLINE void backward(const double *L, long rows, long columns, const int nv, double *X, const double *T) {
    long row = nv * L8;
    for (long k = (columns - 1) / PANEL * PANEL; k >= 0; k -= PANEL) {
        int           width = columns - k < PANEL ? (int)(columns - k) : PANEL;
        long          next = k + width;
        const double *panel = L + k * rows;
        subtract_transposed_any(width, nv, panel + columns, rows, T, rows - columns, X + k * row);
        subtract_transposed_any(width, nv, panel + next, rows, X + next * row, columns - next, X + k * row);
        solve_triangle_transposed(width, nv, panel + k, rows, X + k * row);
    }
}

INLINE void go_forward(const fem_supernodes *L, const int nv, double *X, double *T) {
    const long   row = nv * L8;
    const size_t bytes = (size_t)row * sizeof *X;
    for (long k = 0; k < L->count; k++) {
        long          s = L->list ? L->list[k] : k;
        const long   *index = L->row + L->row_start[s];
        long          columns = L->first[s + 1] - L->first[s], rows = L->row_start[s + 1] - L->row_start[s];
        const double *value = L->value + L->value_start[s];
        for (long i = columns; i < rows; i++) memcpy(T + (i - columns) * row, X + index[i] * row, bytes);
        forward(value, rows, columns, nv, X + L->first[s] * row, T);
        for (long i = columns; i < rows; i++) memcpy(X + index[i] * row, T + (i - columns) * row, bytes);
    }
}

INLINE void go_backward(const fem_supernodes *L, const int nv, double *X, double *T) {
    const long   row = nv * L8;
    const size_t bytes = (size_t)row * sizeof *X;
    for (long k = L->count - 1; k >= 0; k--) {
        long          s = L->list ? L->list[k] : k;
        const long   *index = L->row + L->row_start[s];
        long          columns = L->first[s + 1] - L->first[s], rows = L->row_start[s + 1] - L->row_start[s];
        const double *value = L->value + L->value_start[s];
        for (long i = columns; i < rows; i++) memcpy(T + (i - columns) * row, X + index[i] * row, bytes);
        backward(value, rows, columns, nv, X + L->first[s] * row, T);
    }
}

INLINE void substitute(const fem_supernodes *L, factor_half halves, const int nv, double *X, double *T) {
    if (halves & FACTOR_FORWARD) go_forward(L, nv, X, T);
    if (halves & FACTOR_BACKWARD) go_backward(L, nv, X, T);
}

void JOIN(fem_supernode_solve, SIMD_SUFFIX)(const fem_supernodes *L, factor_half halves, int vectors, double *X,
                                            double *work) {
    if (vectors == 1) substitute(L, halves, 1, X, work);
    if (vectors == 2) substitute(L, halves, 2, X, work);
    if (vectors == 3) substitute(L, halves, 3, X, work);
}
