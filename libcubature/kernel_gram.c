// The two loops of the precomputation: strain monomials at eight integration points side by side, and the tiles of
// their Gram matrix. Compiled once per vector width.
#include "libcubature/internal.h"

#include <string.h>

#define JOIN2(a, b) a##b
#define JOIN(a, b)  JOIN2(a, b)

typedef double real __attribute__((vector_size(64)));

static inline real load(const double *memory) {
    real x;
    memcpy(&x, memory, sizeof x);
    return x;
}
static inline void store(double *memory, real x) { memcpy(memory, &x, sizeof x); }

// Writes the rows that the strain e gives at eight points into column `column`.
static inline void put(const gram_block *b, int column, int point, const real e[6]) {
    double *z = b->Z + (size_t)column * (size_t)(b->row_count * b->points) + (size_t)point;
    for (int row = 0; row < b->row_count; row++) {
        const strain_row *s = &b->rows[row];
        real              x = e[s->strain[0]];
        for (int t = 1; t < s->terms; t++) x += e[s->strain[t]];
        store(z + row * b->points, s->scale * x);
    }
}

// sym(A^T B) as e1 e2 e3 g12 g23 g31, g being twice the tensor's
static inline void symmetric_product(real e[6], const real A[9], const real B[9]) {
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3;
        e[i] = A[i] * B[i] + A[3 + i] * B[3 + i] + A[6 + i] * B[6 + i];
        e[3 + i] = A[i] * B[j] + A[j] * B[i] + A[3 + i] * B[3 + j] + A[3 + j] * B[3 + i] + A[6 + i] * B[6 + j] +
                   A[6 + j] * B[6 + i];
    }
}

void JOIN(cubature_strain_columns, SIMD_SUFFIX)(const gram_block *b, int j) {
    int    first = b->r + j * (j + 1) / 2;
    size_t stride = 9 * (size_t)b->points;
    for (int p = 0; p < b->points; p += 8) {
        const double *h = b->H + (size_t)p;
        real          A[9], B[9], e[6], root = load(b->root + p);
        for (int i = 0; i < 9; i++) B[i] = load(h + (size_t)j * stride + (size_t)(i * b->points));
        for (int i = 0; i < 3; i++) {
            const int k = (i + 1) % 3;
            e[i] = root * B[4 * i];
            e[3 + i] = root * (B[3 * i + k] + B[3 * k + i]);
        }
        put(b, j, p, e);
        for (int i = 0; i <= j; i++, h += stride) {
            for (int a = 0; a < 9; a++) A[a] = load(h + a * b->points);
            symmetric_product(e, A, B);
            put(b, first + i, p, e);
        }
    }
}

// Columns of a micro-tile: as many sums as the registers hold (8 partial sums each).
#if defined(__AVX512F__)
enum { MI = 4, MJ = 6 };
#else
enum { MI = 2, MJ = 3 };
#endif

typedef double half __attribute__((vector_size(32)));
typedef double pair __attribute__((vector_size(16)));

static inline double lane_sum(real x) {
    half h = __builtin_shufflevector(x, x, 0, 1, 2, 3) + __builtin_shufflevector(x, x, 4, 5, 6, 7);
    pair p = __builtin_shufflevector(h, h, 0, 1) + __builtin_shufflevector(h, h, 2, 3);
    return p[0] + p[1];
}

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

// Columns are dotted along their length, so that neither of them has to be transposed: MI + MJ loads for MI x MJ
// products.
void JOIN(cubature_gram_tile, SIMD_SUFFIX)(const gram_block *b, int s, int t) {
    int     rows = b->row_count * b->points;
    double *G = b->G + ((size_t)t * ((size_t)t + 1) / 2 + (size_t)s) * (GRAM_TILE * GRAM_TILE);
    for (int J = 0; J < GRAM_TILE; J += MJ)
        for (int I = 0; I < GRAM_TILE; I += MI) {
            if (s == t && I >= J + MJ) break; // below the diagonal
            const double *x = b->Z + (size_t)(s * GRAM_TILE + I) * (size_t)rows;
            const double *y = b->Z + (size_t)(t * GRAM_TILE + J) * (size_t)rows;
            real          sum[MI][MJ] = {{{0}}};
            for (int k = 0; k < rows; k += 8) {
                real u[MI], v;
                UNROLL for (int i = 0; i < MI; i++) u[i] = load(x + (size_t)i * (size_t)rows + k);
                UNROLL for (int j = 0; j < MJ; j++) {
                    v = load(y + (size_t)j * (size_t)rows + k);
                    UNROLL for (int i = 0; i < MI; i++) sum[i][j] += u[i] * v;
                }
            }
            for (int j = 0; j < MJ; j++)
                for (int i = 0; i < MI; i++) G[(J + j) * GRAM_TILE + I + i] += lane_sum(sum[i][j]);
        }
}
