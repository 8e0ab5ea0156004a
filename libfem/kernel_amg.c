// The loops of the multigrid solver over one chunk of rows, eight right-hand sides at once. Compiled once per vector
// width (SIMD_SUFFIX) and chosen at run time.
//
// An entry of a 3x3 block, broadcast, meets one vector of eight right-hand sides: 8 floats in the preconditioner, 8
// doubles in conjugate gradients. Rows are stored whole, not only their upper half: twice the memory to read, but a row
// is then written by nobody else, and each pass over the matrix can end with what is to be done to the row.
#include "libfem/amg_internal.h"

#include <string.h>

#define JOIN2(a, b) a##b
#define JOIN(a, b)  JOIN2(a, b)

typedef double real __attribute__((vector_size(64)));
typedef float  single __attribute__((vector_size(32)));

static inline real load(const double *memory) {
    real x;
    memcpy(&x, memory, sizeof x);
    return x;
}
static inline void   store(double *memory, real x) { memcpy(memory, &x, sizeof x); }
static inline real   set(double x) { return (real){x, x, x, x, x, x, x, x}; }
static inline single load_single(const float *memory) {
    single x;
    memcpy(&x, memory, sizeof x);
    return x;
}
static inline void   store_single(float *memory, single x) { memcpy(memory, &x, sizeof x); }
static inline single set_single(float x) { return (single){x, x, x, x, x, x, x, x}; }
static inline real   widen(single x) { return __builtin_convertvector(x, real); }

#define INLINE static inline __attribute__((always_inline))

// y = sum_j A_ij x_j for row i, in double and single
INLINE void row_product(const amg_matrix *A, int i, const double *x, real y[3]) {
    y[0] = y[1] = y[2] = set(0);
    const double *a = A->exact + 9 * (size_t)A->start[i];
    for (int k = A->start[i]; k < A->start[i + 1]; k++, a += 9) {
        const double *xj = x + 3 * LANES * (size_t)A->column[k];
        real          x0 = load(xj), x1 = load(xj + LANES), x2 = load(xj + 2 * LANES);
        y[0] += a[0] * x0, y[1] += a[3] * x0, y[2] += a[6] * x0;
        y[0] += a[1] * x1, y[1] += a[4] * x1, y[2] += a[7] * x1;
        y[0] += a[2] * x2, y[1] += a[5] * x2, y[2] += a[8] * x2;
    }
}

INLINE void row_product_single(const amg_matrix *A, int i, const float *x, single y[3]) {
    y[0] = y[1] = y[2] = set_single(0);
    const float *a = A->value + 9 * (size_t)A->start[i];
    for (int k = A->start[i]; k < A->start[i + 1]; k++, a += 9) {
        const float *xj = x + 3 * LANES * (size_t)A->column[k];
        single       x0 = load_single(xj), x1 = load_single(xj + LANES), x2 = load_single(xj + 2 * LANES);
        y[0] += a[0] * x0, y[1] += a[3] * x0, y[2] += a[6] * x0;
        y[0] += a[1] * x1, y[1] += a[4] * x1, y[2] += a[7] * x1;
        y[0] += a[2] * x2, y[1] += a[5] * x2, y[2] += a[8] * x2;
    }
}

INLINE real apply(const amg_work *w, int i) {
    real          y[3], sum = set(0);
    const double *p = w->P + 3 * LANES * (size_t)i;
    double       *q = w->Q + 3 * LANES * (size_t)i;
    row_product(w->A, i, w->P, y);
    for (int c = 0; c < 3; c++) {
        store(q + c * LANES, y[c]);
        sum += load(p + c * LANES) * y[c];
    }
    return sum;
}

INLINE real power(const amg_work *w, int i) {
    single y[3];
    real   sum = set(0);
    float *e = w->e + 3 * LANES * (size_t)i;
    row_product_single(w->A, i, w->d, y);
    for (int c = 0; c < 3; c++) {
        store_single(e + c * LANES, y[c]);
        sum += widen(y[c]) * widen(y[c]);
    }
    return sum;
}

INLINE void first(const amg_work *w, int i) {
    single y[3], c = set_single(w->c), c1 = set_single(w->c1), c2 = set_single(w->c2);
    size_t row = 3 * LANES * (size_t)i;
    row_product_single(w->A, i, w->r, y);
    for (int k = 0; k < 3; k++) {
        single before = load_single(w->r + row + k * LANES), rest = before - c * y[k], step = c1 * before + c2 * rest;
        store_single(w->d + row + k * LANES, rest);
        store_single(w->e + row + k * LANES, step);
        store_single(w->x + row + k * LANES, c * before + step);
    }
}

INLINE void smooth(const amg_work *w, int i) {
    single y[3], c2 = set_single(w->c2);
    size_t row = 3 * LANES * (size_t)i;
    row_product_single(w->A, i, w->d, y);
    for (int k = 0; k < 3; k++) {
        single rest = load_single(w->r + row + k * LANES) - y[k], step = c2 * rest;
        store_single(w->r + row + k * LANES, rest);
        store_single(w->e + row + k * LANES, step);
        store_single(w->x + row + k * LANES, load_single(w->x + row + k * LANES) + step);
    }
}

INLINE void last(const amg_work *w, int i) {
    single y[3], c1 = set_single(w->c1), c2 = set_single(w->c2);
    size_t row = 3 * LANES * (size_t)i;
    row_product_single(w->A, i, w->d, y);
    for (int k = 0; k < 3; k++) {
        single rest = load_single(w->r + row + k * LANES) - y[k];
        single step = c1 * load_single(w->d + row + k * LANES) + c2 * rest;
        store_single(w->x + row + k * LANES, load_single(w->x + row + k * LANES) + step);
    }
}

INLINE void residual(const amg_work *w, int i) {
    single y[3];
    float *r = w->r + 3 * LANES * (size_t)i;
    row_product_single(w->A, i, w->d, y);
    for (int c = 0; c < 3; c++) store_single(r + c * LANES, load_single(r + c * LANES) - y[c]);
}

INLINE void restrict_node(const amg_work *w, int node) {
    const amg_transfer *P = w->transfer;
    single              y[RIGID];
    for (int m = 0; m < RIGID; m++) y[m] = set_single(0);
    for (int k = P->back_start[node]; k < P->back_start[node + 1]; k++) {
        const float *a = P->value + 3 * RIGID * (size_t)P->back_entry[k];
        const float *r = w->r + 3 * LANES * (size_t)P->back_row[k];
        for (int c = 0; c < 3; c++) {
            single rc = load_single(r + c * LANES);
            for (int m = 0; m < RIGID; m++) y[m] += a[c * RIGID + m] * rc;
        }
    }
    for (int m = 0; m < RIGID; m++) store_single(w->coarse + ((size_t)node * RIGID + (size_t)m) * LANES, y[m]);
}

INLINE void prolong(const amg_work *w, int i) {
    const amg_transfer *P = w->transfer;
    size_t              row = 3 * LANES * (size_t)i;
    single              y[3] = {set_single(0), set_single(0), set_single(0)};
    for (int k = P->start[i]; k < P->start[i + 1]; k++) {
        const float *a = P->value + 3 * RIGID * (size_t)k;
        const float *x = w->coarse + RIGID * LANES * (size_t)P->node[k];
        for (int m = 0; m < RIGID; m++) {
            single xm = load_single(x + m * LANES);
            for (int c = 0; c < 3; c++) y[c] += a[c * RIGID + m] * xm;
        }
    }
    for (int c = 0; c < 3; c++) {
        store_single(w->d + row + c * LANES, y[c]);
        store_single(w->x + row + c * LANES, load_single(w->x + row + c * LANES) + y[c]);
    }
}

INLINE real dot(const amg_work *w, int i) {
    size_t row = 3 * LANES * (size_t)i;
    real   sum = set(0);
    for (size_t c = row; c < row + 3 * LANES; c += LANES) sum += load(w->R + c) * widen(load_single(w->x + c));
    return sum;
}

INLINE void direction(const amg_work *w, int i) {
    size_t row = 3 * LANES * (size_t)i;
    real   factor = load(w->factor);
    for (size_t c = row; c < row + 3 * LANES; c += LANES)
        store(w->P + c, widen(load_single(w->x + c)) + factor * load(w->P + c));
}

INLINE void advance(const amg_work *w, int i) {
    size_t row = 3 * LANES * (size_t)i;
    real   factor = load(w->factor);
    for (size_t c = row; c < row + 3 * LANES; c += LANES) {
        real rest = load(w->R + c) - factor * load(w->Q + c);
        store(w->X + c, load(w->X + c) + factor * load(w->P + c));
        store(w->R + c, rest);
        store_single(w->r + c, __builtin_convertvector(rest, single));
    }
}

// Row i of A P: sum_j A_ij P_j. Its aggregates are known; `position` tells where each of them stands in the row.
INLINE void product_row(const amg_work *w, int i, int *position) {
    const amg_matrix   *A = w->A;
    const amg_transfer *P = w->transfer;
    int                 first = w->product_start[i], last = w->product_start[i + 1];
    for (int k = first; k < last; k++) position[w->product_node[k]] = k;
    memset(w->product + 3 * PAD * (size_t)first, 0, 3 * PAD * (size_t)(last - first) * sizeof *w->product);
    for (int k = A->start[i]; k < A->start[i + 1]; k++) {
        const double *a = A->exact + 9 * (size_t)k;
        int           j = A->column[k];
        for (int m = P->start[j]; m < P->start[j + 1]; m++) {
            const double *p = P->exact + 3 * PAD * (size_t)m;
            double       *out = w->product + 3 * PAD * (size_t)position[P->node[m]];
            real          p0 = load(p), p1 = load(p + PAD), p2 = load(p + 2 * PAD);
            for (int c = 0; c < 3; c++)
                store(out + c * PAD, load(out + c * PAD) + a[3 * c] * p0 + a[3 * c + 1] * p1 + a[3 * c + 2] * p2);
        }
    }
}

// Blocks (node, m) with m >= node of P^T (A P)
INLINE void galerkin_node(const amg_work *w, int node, int *position) {
    const amg_transfer *P = w->transfer;
    int                 first = w->coarse_start[node], last = w->coarse_start[node + 1];
    for (int k = first; k < last; k++) position[w->coarse_node[k]] = k;
    memset(w->blocks + RIGID * PAD * (size_t)first, 0, RIGID * PAD * (size_t)(last - first) * sizeof *w->blocks);
    for (int k = P->back_start[node]; k < P->back_start[node + 1]; k++) {
        const double *p = P->exact + 3 * PAD * (size_t)P->back_entry[k];
        int           i = P->back_row[k];
        for (int m = w->product_start[i]; m < w->product_start[i + 1]; m++) {
            if (w->product_node[m] < node) continue;
            const double *a = w->product + 3 * PAD * (size_t)m;
            double       *out = w->blocks + RIGID * PAD * (size_t)position[w->product_node[m]];
            real          a0 = load(a), a1 = load(a + PAD), a2 = load(a + 2 * PAD);
            for (int c = 0; c < RIGID; c++)
                store(out + c * PAD, load(out + c * PAD) + p[c] * a0 + p[PAD + c] * a1 + p[2 * PAD + c] * a2);
        }
    }
}

void JOIN(fem_amg_kernel, SIMD_SUFFIX)(const amg_work *w, int chunk, int worker) {
    int  begin = chunk * w->step, end = begin + w->step < w->count ? begin + w->step : w->count;
    int *position = w->position ? w->position + (size_t)worker * (size_t)w->transfer->coarse : NULL;
    real sum = set(0);
    switch (w->operation) {
    case AMG_APPLY:
        for (int i = begin; i < end; i++) sum += apply(w, i);
        break;
    case AMG_POWER:
        for (int i = begin; i < end; i++) sum += power(w, i);
        break;
    case AMG_FIRST:
        for (int i = begin; i < end; i++) first(w, i);
        break;
    case AMG_SMOOTH:
        for (int i = begin; i < end; i++) smooth(w, i);
        break;
    case AMG_LAST:
        for (int i = begin; i < end; i++) last(w, i);
        break;
    case AMG_RESIDUAL:
        for (int i = begin; i < end; i++) residual(w, i);
        break;
    case AMG_RESTRICT:
        for (int i = begin; i < end; i++) restrict_node(w, i);
        break;
    case AMG_PROLONG:
        for (int i = begin; i < end; i++) prolong(w, i);
        break;
    case AMG_DOT:
        for (int i = begin; i < end; i++) sum += dot(w, i);
        break;
    case AMG_DIRECTION:
        for (int i = begin; i < end; i++) direction(w, i);
        break;
    case AMG_ADVANCE:
        for (int i = begin; i < end; i++) advance(w, i);
        break;
    case AMG_PRODUCT:
        for (int i = begin; i < end; i++) product_row(w, i, position);
        break;
    case AMG_GALERKIN:
        for (int i = begin; i < end; i++) galerkin_node(w, i, position);
        break;
    }
    if (w->sums) store(w->sums + (size_t)chunk * LANES, sum);
}
