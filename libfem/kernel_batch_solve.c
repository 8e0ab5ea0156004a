// L D L^T and solution of eight symmetric systems side by side. Compiled once per vector width; its reference is
// LAPACK.
//
// Row b of the factor stands at b (b + 1) / 2: entries a < b are L_ba, the last one becomes 1 / D_b. Left-looking, by
// tiles of 4 x 4: with Y = L D,  Y_ba = A_ba - sum_(c < a) Y_bc L_ac,  and Y turns into L when its row is complete. A
// tile keeps its 16 sums in registers; no square roots, one division a row. Forward substitution goes along.
#include "libfem/batch_internal.h"

#include <string.h>

#define JOIN2(a, b) a##b
#define JOIN(a, b)  JOIN2(a, b)

typedef double real __attribute__((vector_size(64)));
typedef long   mask __attribute__((vector_size(64)));

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 4")
#endif

static inline real load(const double *memory) {
    real x;
    memcpy(&x, memory, sizeof x);
    return x;
}
static inline void store(double *memory, real x) { memcpy(memory, &x, sizeof x); }

#define INLINE static inline __attribute__((always_inline))
// Row b of the packed triangle
#define ROW(A, b) ((A) + (size_t)(b) * ((size_t)(b) + 1) / 2 * 8)

// Y of rows b .. b + rows - 1, columns a .. a + 3, from finished rows a .. a + 3 and columns before a.
INLINE void tile(int rows, double *A, int b, int a) {
    double       *y[4];
    const double *l[4];
    real          sum[4][4];
    UNROLL for (int i = 0; i < rows; i++) y[i] = ROW(A, b + i);
    UNROLL for (int j = 0; j < 4; j++) l[j] = ROW(A, a + j);
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < 4; j++) sum[i][j] = load(y[i] + 8 * (a + j));
    for (int c = 0; c < 8 * a; c += 8) {
        real x[4];
        UNROLL for (int j = 0; j < 4; j++) x[j] = load(l[j] + c);
        UNROLL for (int i = 0; i < rows; i++) {
            real v = load(y[i] + c);
            UNROLL for (int j = 0; j < 4; j++) sum[i][j] -= v * x[j];
        }
    }
    UNROLL for (int j = 1; j < 4; j++) UNROLL for (int c = 0; c < j; c++) { // columns of the tile itself
        real x = load(l[j] + 8 * (a + c));
        UNROLL for (int i = 0; i < rows; i++) sum[i][j] -= sum[i][c] * x;
    }
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < 4; j++) store(y[i] + 8 * (a + j), sum[i][j]);
}

// 1 / d where d > 0; else 1, and the lane is marked.
INLINE real reciprocal(real d, mask *bad) {
    real one = {1, 1, 1, 1, 1, 1, 1, 1};
    mask good = (mask)(d > (real){0});
    *bad |= ~good;
    d = (real)((good & (mask)d) | (~good & (mask)one));
    return one / d;
}

// The diagonal tile of rows b .. b + rows - 1: Y becomes L before it, then the tile's own factor, and the right-hand
// side of these rows: z_b = rhs_b - sum_c L_bc z_c.
INLINE void diagonal(int rows, double *A, double *rhs, int b, mask *bad) {
    double *y[4];
    real    sum[4][4], z[4], inverse[4];
    UNROLL for (int i = 0; i < rows; i++) y[i] = ROW(A, b + i);
    UNROLL for (int i = 0; i < rows; i++) {
        z[i] = load(rhs + 8 * (b + i));
        UNROLL for (int j = 0; j <= i; j++) sum[i][j] = load(y[i] + 8 * (b + j));
    }
    for (int c = 0; c < b; c++) {
        real v[4], l[4], d = load(ROW(A, c) + 8 * c), zc = load(rhs + 8 * c); // d = 1 / D_c
        UNROLL for (int i = 0; i < rows; i++) {
            v[i] = load(y[i] + 8 * c);
            l[i] = v[i] * d;
            store(y[i] + 8 * c, l[i]);
            z[i] -= l[i] * zc;
            UNROLL for (int j = 0; j <= i; j++) sum[i][j] -= v[i] * l[j];
        }
    }
    UNROLL for (int j = 0; j < rows; j++) {
        inverse[j] = reciprocal(sum[j][j], bad);
        UNROLL for (int i = j + 1; i < rows; i++) {
            real l = sum[i][j] * inverse[j];
            UNROLL for (int k = j + 1; k <= i; k++) sum[i][k] -= l * sum[k][j];
            z[i] -= l * z[j];
            store(y[i] + 8 * (b + j), l);
        }
    }
    UNROLL for (int i = 0; i < rows; i++) {
        store(y[i] + 8 * (b + i), inverse[i]);
        store(rhs + 8 * (b + i), z[i]);
    }
}

INLINE void some_rows(int rows, double *A, double *rhs, int b, mask *bad) {
    for (int a = 0; a < b; a += 4) tile(rows, A, b, a);
    diagonal(rows, A, rhs, b, bad);
}

// x_b of rows b .. b + rows - 1 from z / D less what later rows took, and their share in all earlier rows.
INLINE void back(int rows, const double *A, double *x, int b) {
    const double *l[4];
    real          v[4];
    UNROLL for (int i = 0; i < rows; i++) l[i] = ROW(A, b + i);
    UNROLL for (int i = 0; i < rows; i++) v[i] = load(x + 8 * (b + i));
    UNROLL for (int i = rows - 1; i > 0; i--) UNROLL for (int j = 0; j < i; j++) v[j] -=
        load(l[i] + 8 * (b + j)) * v[i];
    UNROLL for (int i = 0; i < rows; i++) store(x + 8 * (b + i), v[i]);
    for (int c = 0; c < 8 * b; c += 8) {
        real sum = load(x + c);
        UNROLL for (int i = 0; i < rows; i++) sum -= load(l[i] + c) * v[i];
        store(x + c, sum);
    }
}

unsigned char JOIN(fem_batch_solve, SIMD_SUFFIX)(int n, double *A, double *rhs) {
    mask bad = {0};
    int  whole = n / 4 * 4, rest = n % 4;
    for (int b = 0; b < whole; b += 4) some_rows(4, A, rhs, b, &bad);
    if (rest == 1) some_rows(1, A, rhs, whole, &bad);
    if (rest == 2) some_rows(2, A, rhs, whole, &bad);
    if (rest == 3) some_rows(3, A, rhs, whole, &bad);
    for (int b = 0; b < n; b++) store(rhs + 8 * b, load(rhs + 8 * b) * load(ROW(A, b) + 8 * b)); // z / D
    if (rest == 1) back(1, A, rhs, whole);
    if (rest == 2) back(2, A, rhs, whole);
    if (rest == 3) back(3, A, rhs, whole);
    for (int b = whole - 4; b >= 0; b -= 4) back(4, A, rhs, b);
    unsigned char bits = 0;
    for (int lane = 0; lane < 8; lane++) bits |= (unsigned char)((bad[lane] & 1) << lane);
    return bits;
}
