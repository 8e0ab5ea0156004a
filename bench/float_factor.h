// A Cholesky factor in single precision with refinement in double, tried beside multigrid for large bodies. It lives
// here and not in the library, since it was measured to be slower than multigrid for bodies that are too large for a
// factor, and no faster than the factor for the others (docs/krylov.md).
//
// The analysis is that of fem_factor. Left-looking by supernodes [Ng, Peyton 1993]: a supernode gathers what its
// descendants give it, each of them one product, then is factored itself. Everything long is BLAS in float.
#ifndef LIMBER_BENCH_FLOAT_FACTOR_H
#define LIMBER_BENCH_FLOAT_FACTOR_H

#include "bench/bench.h"
#include "libfem/factor_internal.h"

#include <cblas.h>
#include <lapacke.h>

typedef struct float_factor {
    fem_factor    *analysis;
    fem_supernodes L; // without values
    float         *value;
    long          *row_of; // 3 * vertices: row of L, -1 for a fixed degree of freedom
    int            n;      // 3 * vertices
    long           rows, tallest;
    double         bytes;
} float_factor;

static inline void *float_memory(size_t count, size_t size) {
    void *memory = fem_calloc(count, size);
    if (!memory) bench_try(fem_fail(FEM_NO_MEMORY, "no memory for a factor in float"));
    return memory;
}

static inline void float_factor_destroy(float_factor *f) {
    fem_factor_destroy(f->analysis);
    fem_free(f->value), fem_free(f->row_of);
}

// The columns of the lower half of A in L's order.
static inline void float_columns(const float_factor *f, const fem_sparse *A, long *start, int *row, float *value) {
    for (int pass = 0; pass < 2;
         pass++) { // counts at start[column + 2], then sums, then filling moves start[column + 1]
        for (int i = 0; i < A->n; i++)
            for (int k = A->row_start[i]; k < A->row_start[i + 1]; k++)
                for (int e = 0; e < 9; e++) {
                    if (A->column[k] == i && e / 3 > e % 3) continue; // the other half of a diagonal block
                    long a = f->row_of[3 * i + e / 3], b = f->row_of[3 * A->column[k] + e % 3];
                    long column = a < b ? a : b;
                    if (column < 0) continue;
                    long at = start[column + 2 - pass]++;
                    if (pass == 1)
                        row[at] = (int)(a < b ? b : a), value[at] = (float)A->value[9 * (size_t)k + (size_t)e];
                }
        for (long c = 0; pass == 0 && c < f->rows; c++) start[c + 2] += start[c + 1];
    }
}

typedef struct float_gather {
    const float_factor *f;
    long               *super;       // supernode of a row
    long               *head, *next; // lists of descendants that still have to give something, by who is next
    long               *given;       // rows of a descendant that are done with
    long               *place;       // place of a row in the supernode at hand
    float              *product;
} float_gather;

static inline void float_wait(float_gather *g, long d) { // descendant d waits for the supernode of its next row
    const fem_supernodes *L = &g->f->L;
    if (L->row_start[d] + g->given[d] == L->row_start[d + 1]) return;
    long owner = g->super[L->row[L->row_start[d] + g->given[d]]];
    g->next[d] = g->head[owner], g->head[owner] = d;
}

// V -= L_d (L_d's rows in s)^T
static inline void float_give(float_gather *g, long d, long s, float *V) {
    const fem_supernodes *L = &g->f->L;
    const long           *row = L->row + L->row_start[d];
    long                  height = L->row_start[s + 1] - L->row_start[s], rows = L->row_start[d + 1] - L->row_start[d];
    long                  first = g->given[d], end = first;
    int                   columns = (int)(L->first[d + 1] - L->first[d]), ld = (int)rows;
    while (end < rows && row[end] < L->first[s + 1]) end++;
    int          mine = (int)(end - first), below = (int)(rows - first);
    const float *from = g->f->value + L->value_start[d] + first;
    cblas_ssyrk(CblasColMajor, CblasLower, CblasNoTrans, mine, columns, 1, from, ld, 0, g->product, below);
    if (below > mine)
        cblas_sgemm(CblasColMajor, CblasNoTrans, CblasTrans, below - mine, mine, columns, 1, from + mine, ld, from, ld,
                    0, g->product + mine, below);
    for (long j = 0; j < mine; j++) {
        float *to = V + (row[first + j] - L->first[s]) * height;
        for (long i = j; i < below; i++) to[g->place[row[first + i]]] -= g->product[j * below + i];
    }
    g->given[d] = end;
    float_wait(g, d);
}

// Most numbers that a descendant gives a supernode.
static inline size_t float_most_given(const fem_supernodes *L, const long *super) {
    size_t most = 0;
    for (long d = 0; d < L->count; d++) {
        long end = L->row_start[d + 1], first = L->row_start[d] + L->first[d + 1] - L->first[d];
        for (long i = first; i < end; i++) {
            if (super[L->row[i]] != super[L->row[first]]) first = i;
            size_t size = (size_t)(i + 1 - first) * (size_t)(end - first);
            if (size > most) most = size;
        }
    }
    return most;
}

// False when a pivot is not positive in single precision.
static inline bool float_factorise(float_factor *f, const fem_sparse *A) {
    const fem_supernodes *L = &f->L;
    size_t                m = (size_t)f->rows, supernodes = (size_t)L->count;
    float_gather          g = {.f = f,
                               .super = float_memory(m, sizeof(long)),
                               .head = float_memory(supernodes, sizeof(long)),
                               .next = float_memory(supernodes, sizeof(long)),
                               .given = float_memory(supernodes, sizeof(long)),
                               .place = float_memory(m, sizeof(long))};
    long                 *start = float_memory(m + 2, sizeof *start);
    int                  *row = float_memory(9 * (size_t)A->blocks, sizeof *row);
    float                *value = float_memory(9 * (size_t)A->blocks, sizeof *value);
    bool                  positive = true;
    float_columns(f, A, start, row, value);
    for (long s = 0; s < L->count; s++) {
        g.head[s] = -1;
        for (long j = L->first[s]; j < L->first[s + 1]; j++) g.super[j] = s;
    }
    g.product = float_memory(float_most_given(L, g.super), sizeof *g.product);
    for (long s = 0; s < L->count && positive; s++) {
        int    columns = (int)(L->first[s + 1] - L->first[s]), height = (int)(L->row_start[s + 1] - L->row_start[s]);
        float *V = f->value + L->value_start[s];
        for (long i = 0; i < height; i++) g.place[L->row[L->row_start[s] + i]] = i;
        for (long j = 0; j < columns; j++)
            for (long k = start[L->first[s] + j]; k < start[L->first[s] + j + 1]; k++)
                V[j * height + g.place[row[k]]] = value[k];
        for (long d = g.head[s], next; d >= 0; d = next) next = g.next[d], float_give(&g, d, s, V);
        positive = LAPACKE_spotrf_work(LAPACK_COL_MAJOR, 'L', columns, V, height) == 0;
        if (height == columns) continue;
        cblas_strsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, height - columns, columns, 1, V,
                    height, V + columns, height);
        g.given[s] = columns;
        float_wait(&g, s);
    }
    fem_free(g.super), fem_free(g.head), fem_free(g.next), fem_free(g.given), fem_free(g.place), fem_free(g.product);
    fem_free(start), fem_free(row), fem_free(value);
    return positive;
}

static inline bool float_factor_create(float_factor *f, const fem_sparse *A, const unsigned char *fixed) {
    *f = (float_factor){.n = 3 * A->n};
    bench_try(fem_factor_create(&f->analysis, A, fixed));
    f->L = fem_factor_supernodes(f->analysis);
    f->rows = fem_factor_get_report(f->analysis).free_dofs;
    f->row_of = float_memory((size_t)f->n, sizeof *f->row_of);
    for (int i = 0; i < f->n; i++) f->row_of[i] = -1;
    for (long i = 0; i < f->rows; i++) f->row_of[f->L.dof[i]] = i;
    for (long s = 0; s < f->L.count; s++)
        if (f->L.row_start[s + 1] - f->L.row_start[s] > f->tallest)
            f->tallest = f->L.row_start[s + 1] - f->L.row_start[s];
    f->value = float_memory((size_t)f->L.value_start[f->L.count], sizeof *f->value);
    f->bytes = 4.0 * (double)f->L.value_start[f->L.count];
    return float_factorise(f, A);
}

// X <- L^-T L^-1 X in float, X columns of length f->rows in L's order; T: tallest x columns
static inline void float_substitute(const float_factor *f, int columns, float *X, float *T) {
    const fem_supernodes *L = &f->L;
    int                   ld = (int)f->rows, lt = (int)f->tallest;
    for (int backward = 0; backward < 2; backward++)
        for (long k = 0; k < L->count; k++) {
            long         s = backward ? L->count - 1 - k : k;
            int          c = (int)(L->first[s + 1] - L->first[s]), h = (int)(L->row_start[s + 1] - L->row_start[s]);
            const long  *row = L->row + L->row_start[s];
            const float *V = f->value + L->value_start[s];
            float       *x = X + L->first[s];
            for (int j = 0; j < columns; j++)
                for (long i = c; i < h; i++) T[(long)j * lt + i - c] = X[(long)j * ld + row[i]];
            if (backward) {
                cblas_sgemm(CblasColMajor, CblasTrans, CblasNoTrans, c, columns, h - c, -1, V + c, h, T, lt, 1, x, ld);
                cblas_strsm(CblasColMajor, CblasLeft, CblasLower, CblasTrans, CblasNonUnit, c, columns, 1, V, h, x, ld);
                continue;
            }
            cblas_strsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, c, columns, 1, V, h, x, ld);
            cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, h - c, columns, c, -1, V + c, h, x, ld, 1, T, lt);
            for (int j = 0; j < columns; j++)
                for (long i = c; i < h; i++) X[(long)j * ld + row[i]] = T[(long)j * lt + i - c];
        }
}

// K X = B: X <- X + (L L^T)^-1 (B - K X) until no column changes by more than `tolerance` of itself; returns the steps.
static inline int float_refine(const float_factor *f, const fem_sparse *K, const unsigned char *fixed, double tolerance,
                               int columns, const double *B, double *X) {
    size_t  n = (size_t)f->n, m = (size_t)f->rows;
    double *R = float_memory(n * (size_t)columns, sizeof *R);
    float  *x = float_memory((m + (size_t)f->tallest) * (size_t)columns, sizeof *x);
    int     step = 0;
    double  change = INFINITY;
    memset(X, 0, n * (size_t)columns * sizeof *X);
    memcpy(R, B, n * (size_t)columns * sizeof *R);
    while (change > tolerance && step++ < 30) {
        for (size_t c = 0; c < (size_t)columns; c++)
            for (size_t i = 0; i < m; i++) x[c * m + i] = (float)R[c * n + (size_t)f->L.dof[i]];
        float_substitute(f, columns, x, x + m * (size_t)columns);
        change = 0;
        for (size_t c = 0; c < (size_t)columns; c++) {
            double moved = 0, all = 0;
            for (size_t i = 0; i < m; i++) {
                double *to = X + c * n + (size_t)f->L.dof[i], d = x[c * m + i];
                *to += d, moved += d * d, all += *to * *to;
            }
            change = fmax(change, all > 0 ? sqrt(moved / all) : 0);
        }
        fem_sparse_multiply(K, columns, X, R);
        for (size_t i = 0; i < n * (size_t)columns; i++) R[i] = fixed[i % n] ? 0 : B[i] - R[i];
    }
    fem_free(R), fem_free(x);
    return step;
}

#endif
