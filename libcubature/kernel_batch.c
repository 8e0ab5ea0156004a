// Energy, force and stiffness of blocks of eight instances. Compiled once per vector width; the reference is
// cubature_polynomial_plain, one instance at a time.
//
// A coefficient is broadcast and multiplied with a monomial of eight instances. With AVX-512 two blocks go together, so
// that each of the 12 coefficients of a column serves two of 24 sums; narrower machines take one block and fewer rows.
#include "libcubature/internal.h"

#include <string.h>

#define JOIN2(a, b) a##b
#define JOIN(a, b)  JOIN2(a, b)

typedef double real __attribute__((vector_size(64)));

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 12")
#endif

#if defined(__AVX512F__)
enum { ROWS = 12, TOGETHER = 2 };
#elif defined(__AVX2__)
enum { ROWS = 6, TOGETHER = 1 };
#else
enum { ROWS = 3, TOGETHER = 1 };
#endif

static inline real load(const double *memory) {
    real x;
    memcpy(&x, memory, sizeof x);
    return x;
}
static inline void store(double *memory, real x) { memcpy(memory, &x, sizeof x); }
static inline real splat(double x) { return (real){x, x, x, x, x, x, x, x}; }

// x: q_c, then q_c q_d with c <= d
static inline void monomials(int r, const double *q, double *x) {
    memcpy(x, q, (size_t)r * sizeof(real));
    double *out = x + (size_t)r * 8;
    for (int d = 0; d < r; d++) {
        real qd = load(q + 8 * d);
        for (int c = 0; c <= d; c++, out += 8) store(out, load(q + 8 * c) * qd);
    }
}

// Columns ahead of the sums that coefficients are fetched from the second cache: the processor's own guess is shorter.
enum { PREFETCH = 24 };

#define INLINE static inline __attribute__((always_inline))

// Two blocks: their monomials and what is made of them. Arrays of one block follow on those of the other.
typedef struct block_work {
    double       *x;      // columns x 8
    double       *G, *E;  // pairs x 8: K0 + K1/2 + K2/3 for the force, K0/2 + K1/6 + K2/12 for the energy; or NULL
    double       *K;      // pairs x 8, or NULL
    const double *factor; // 8, or NULL
} block_work;

// sum += c_i x: each coefficient is in a register only as long as its one or two products take
INLINE void add_column(real sum[ROWS][TOGETHER], int together, const double *c, const double *x, size_t columns) {
    real y[TOGETHER];
    __builtin_prefetch(c + PREFETCH * BATCH_ROWS); // 12 coefficients are one and a half lines of the cache
    __builtin_prefetch(c + PREFETCH * BATCH_ROWS + 8);
    UNROLL for (int t = 0; t < together; t++) y[t] = load(x + (size_t)t * columns * 8);
    UNROLL for (int i = 0; i < ROWS; i++) UNROLL for (int t = 0; t < together; t++) sum[i][t] += c[i] * y[t];
}

// ROWS rows for `together` blocks.
INLINE void some_rows(const cubature_batch *b, int first, int together, const block_work *w) {
    const size_t  columns = (size_t)b->columns, r = (size_t)b->r, pairs = (size_t)b->pair_count;
    const double *c = b->rows + (size_t)(first / BATCH_ROWS) * BATCH_ROWS * columns + (size_t)(first % BATCH_ROWS);
    const double *x = w->x, *K0 = b->K0 + first;
    real          sum[ROWS][TOGETHER], linear[ROWS][TOGETHER], factor[TOGETHER];
    UNROLL for (int t = 0; t < together; t++) UNROLL for (int i = 0; i < ROWS; i++) sum[i][t] = (real){0};
    for (size_t k = 0; k < r; k++, c += BATCH_ROWS, x += 8) add_column(sum, together, c, x, columns);
    UNROLL for (int t = 0; t < together; t++) UNROLL for (int i = 0; i < ROWS; i++) linear[i][t] = sum[i][t]; // K1
    for (size_t k = r; k < columns; k++, c += BATCH_ROWS, x += 8) add_column(sum, together, c, x, columns);
    for (int t = 0; t < together; t++) factor[t] = w->factor ? load(w->factor + 8 * t) : splat(1);
    int used = b->pair_count - first < ROWS ? b->pair_count - first : ROWS;
    for (int i = 0; i < used; i++)
        for (int t = 0; t < together; t++) {
            size_t place = ((size_t)t * pairs + (size_t)(first + i)) * 8;
            if (w->K) store(w->K + place, factor[t] * (K0[i] + sum[i][t]));
            if (w->G) store(w->G + place, K0[i] + sum[i][t] * (1.0 / 3) + linear[i][t] * (1.0 / 6));
            if (w->E) store(w->E + place, 0.5 * K0[i] + (sum[i][t] + linear[i][t]) * (1.0 / 12));
        }
}

// f = factor G q, G a packed upper triangle
static inline void multiply(int r, const double *G, const double *q, real factor, double *f) {
    for (int b = 0; b < r; b++) {
        real qb = load(q + 8 * b), sum = splat(0);
        for (int a = 0; a < b; a++, G += 8) {
            real g = load(G);
            sum += g * load(q + 8 * a);
            store(f + 8 * a, load(f + 8 * a) + g * qb);
        }
        store(f + 8 * b, sum + load(G) * qb);
        G += 8;
    }
    for (int b = 0; b < r; b++) store(f + 8 * b, factor * load(f + 8 * b));
}

// q^T E q, from the products q_a q_b
static inline real quadratic_form(int r, const double *E, const double *products) {
    real sum = splat(0);
    for (int b = 0; b < r; b++, E += 8, products += 8) {
        real mixed = splat(0);
        for (int a = 0; a < b; a++, E += 8, products += 8) mixed += load(E) * load(products);
        sum += 2 * mixed + load(E) * load(products);
    }
    return sum;
}

INLINE void some_blocks(const cubature_batch *b, int together, const double *q, const double *factor, double *energy,
                        double *f, double *K, double *work) {
    const size_t columns = (size_t)b->columns, r = (size_t)b->r, pairs = (size_t)b->pair_count;
    block_work   w = {.x = work, .K = K, .factor = factor};
    if (f) w.G = work + TOGETHER * columns * 8;
    if (energy) w.E = work + TOGETHER * (columns + pairs) * 8;
    for (int t = 0; t < together; t++) monomials(b->r, q + (size_t)t * r * 8, work + (size_t)t * columns * 8);
    for (int first = 0; first < b->pair_count; first += ROWS) some_rows(b, first, together, &w);
    for (size_t t = 0; t < (size_t)together; t++) {
        real scale = factor ? load(factor + 8 * t) : splat(1);
        if (f) multiply(b->r, w.G + t * pairs * 8, q + t * r * 8, scale, f + t * r * 8);
        if (energy)
            store(energy + 8 * t, scale * quadratic_form(b->r, w.E + t * pairs * 8, work + (t * columns + r) * 8));
    }
}

void JOIN(cubature_batch, SIMD_SUFFIX)(const cubature_batch *b, int blocks, const double *q, const double *factor,
                                       double *energy, double *f, double *K, double *work) {
    const size_t r = (size_t)b->r, pairs = (size_t)b->pair_count;
    for (int block = 0; block < blocks;) {
        int together = blocks - block >= TOGETHER ? TOGETHER : 1;
        if (together == TOGETHER)
            some_blocks(b, TOGETHER, q, factor, energy, f, K, work);
        else
            some_blocks(b, 1, q, factor, energy, f, K, work);
        q += (size_t)together * r * 8;
        if (factor) factor += together * 8;
        if (energy) energy += together * 8;
        if (f) f += (size_t)together * r * 8;
        if (K) K += (size_t)together * pairs * 8;
        block += together;
    }
}
