// Optimized cubature as it was published and as P0 timed it [An, Kim, James 2008, with the random subset of 1,000
// candidates]: in each step the candidates' columns at all poses, the one best aligned with the residual, and Lawson
// and Hanson's NNLS from an empty set, with a QR factorisation of the columns in use in each of its steps. The baseline
// of bench_cubature; columns are made by the library's kernels, QR by LAPACK, so that only the method differs.
#ifndef LIMBER_BENCH_CLASSICAL_CUBATURE_H
#define LIMBER_BENCH_CLASSICAL_CUBATURE_H

#include "bench/cubature_case.h"
#include "libcubature/trainer.h"

#include <lapacke.h>
#include <stdlib.h>

enum { CLASSICAL_CANDIDATES = 1000, CLASSICAL_PART = 125 };

typedef struct classical_fit {
    int     rows, count, most;
    int    *elements;
    double *A;        // rows x most: columns of the elements in use
    double *copy, *y; // for QR
    double *x, *z, *g;
    double *residual;
    int    *passive;
    double  error;
} classical_fit;

static inline void classical_residual(classical_fit *c, const double *b) {
    memcpy(c->residual, b, (size_t)c->rows * sizeof *b);
    dense_gemv_set(c->rows, c->count, 1, c->A, c->x, c->y);
    dense_axpy(c->rows, -1, c->y, c->residual);
}

// z of the passive columns by QR
static inline void classical_solve(classical_fit *c, const double *b, int count) {
    size_t rows = (size_t)c->rows;
    for (int k = 0; k < count; k++)
        memcpy(c->copy + (size_t)k * rows, c->A + (size_t)c->passive[k] * rows, rows * sizeof *c->copy);
    memcpy(c->y, b, rows * sizeof *b);
    if (LAPACKE_dgels(LAPACK_COL_MAJOR, 'N', c->rows, count, 1, c->copy, c->rows, c->y, c->rows) != 0)
        bench_try(fem_fail(FEM_NO_CONVERGENCE, "classical cubature: dgels failed"));
    memcpy(c->z, c->y, (size_t)count * sizeof *c->z);
}

// Lawson and Hanson, from nothing.
static inline void classical_nnls(classical_fit *c, const double *b) {
    int passive = 0;
    for (int i = 0; i < c->count; i++) c->x[i] = 0;
    for (int step = 0; step < 3 * c->count; step++) {
        int    best = -1;
        double most = 1e-10 * dense_norm(c->rows, b);
        classical_residual(c, b);
        dense_gemv_t_set(c->rows, c->count, 1, c->A, c->residual, c->g);
        for (int i = 0; i < c->count; i++)
            if (c->x[i] == 0 && c->g[i] > most * dense_norm(c->rows, c->A + (size_t)i * (size_t)c->rows))
                best = i, most = c->g[i] / dense_norm(c->rows, c->A + (size_t)i * (size_t)c->rows);
        if (best < 0) break;
        c->passive[passive++] = best;
        for (;;) {
            double step_length = 1;
            classical_solve(c, b, passive);
            for (int k = 0; k < passive; k++) {
                double x = c->x[c->passive[k]];
                if (c->z[k] <= 0) step_length = fmin(step_length, x / (x - c->z[k]));
            }
            int kept = 0;
            for (int k = 0; k < passive; k++) {
                double *x = &c->x[c->passive[k]];
                *x += step_length * (c->z[k] - *x);
                if (*x > 1e-14)
                    c->passive[kept++] = c->passive[k];
                else
                    *x = 0;
            }
            bool done = step_length == 1;
            passive = kept;
            if (done || passive == 0) break;
        }
    }
}

// Down to the last of `levels` (descending) or `most` elements; elements and processor seconds at each level.
static inline void classical_run(const trainer *t, int levels, const double *level, int most, unsigned seed,
                                 int *elements, double *seconds) {
    size_t        rows = t->rows;
    int           E = fem_body_mesh(t->body)->element_count, reached = 0;
    classical_fit c = {.rows = (int)rows, .most = most, .error = 1};
    int          *deck = fem_alloc((size_t)E, sizeof *deck);
    double       *columns = fem_alloc(CLASSICAL_PART * rows, sizeof *columns), score[CLASSICAL_PART];
    c.elements = fem_alloc((size_t)most, sizeof *c.elements);
    c.passive = fem_alloc((size_t)most, sizeof *c.passive);
    c.A = fem_alloc((size_t)most * rows, sizeof *c.A), c.copy = fem_alloc((size_t)most * rows, sizeof *c.copy);
    c.x = fem_alloc(3 * (size_t)most, sizeof *c.x);
    c.y = fem_alloc(rows, sizeof *c.y), c.residual = fem_copy(t->b, rows, sizeof *t->b);
    if (!deck || !columns || !c.elements || !c.passive || !c.A || !c.copy || !c.x || !c.y || !c.residual)
        bench_try(fem_fail(FEM_NO_MEMORY, "no memory for classical cubature"));
    c.z = c.x + most, c.g = c.z + most;
    double begin = bench_processor_seconds();
    for (int step = 0; reached < levels && c.count < most; step++) {
        double best = -INFINITY;
        for (int e = 0; e < E; e++) deck[e] = e;
        for (int i = 0; i < CLASSICAL_CANDIDATES; i++) {
            int j = i + (int)(random_uniform(seed, (unsigned long)step * 1000003u + (unsigned long)i) * (E - i));
            int swap = deck[i];
            deck[i] = deck[j], deck[j] = swap;
        }
        for (int first = 0; first < CLASSICAL_CANDIDATES; first += CLASSICAL_PART) {
            trainer_columns(t, CLASSICAL_PART, deck + first, columns);
            dense_gemv_t_set((int)rows, CLASSICAL_PART, 1, columns, c.residual, score);
            for (int i = 0; i < CLASSICAL_PART; i++) {
                bool   used = false;
                double norm = dense_norm((int)rows, columns + (size_t)i * rows);
                for (int k = 0; k < c.count && !used; k++) used = c.elements[k] == deck[first + i];
                if (used || !(norm > 0) || score[i] / norm <= best) continue;
                best = score[i] / norm;
                c.elements[c.count] = deck[first + i];
                memcpy(c.A + (size_t)c.count * rows, columns + (size_t)i * rows, rows * sizeof *columns);
            }
        }
        c.count++;
        classical_nnls(&c, t->b);
        classical_residual(&c, t->b);
        c.error = dense_norm((int)rows, c.residual) / t->b_norm;
        for (; reached < levels && c.error <= level[reached]; reached++) {
            elements[reached] = c.count;
            seconds[reached] = bench_processor_seconds() - begin;
        }
    }
    for (; reached < levels; reached++) elements[reached] = 0, seconds[reached] = NAN;
    fem_free(deck), fem_free(columns), fem_free(c.elements), fem_free(c.passive), fem_free(c.A), fem_free(c.copy);
    fem_free(c.x), fem_free(c.y), fem_free(c.residual);
}

#endif
