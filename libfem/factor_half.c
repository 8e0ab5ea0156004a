// Forward substitution with few entries on the right: only supernodes on the way from these to the root of the
// elimination tree take part. [Gilbert, Peierls 1988] for supernodes.
#include "libfem/factor_internal.h"

#include <string.h>

void fem_half_destroy(fem_half *half) {
    fem_free(half->row), fem_free(half->W);
    *half = (fem_half){0};
}

typedef struct half_work {
    const fem_factor     *f;
    fem_supernodes        L;
    supernode_kernel      kernel;
    long                  free_dofs, tallest;
    const int            *columns, *start;
    const fem_half_entry *entries;
    fem_half             *halves;
    int                  *row_of;   // 3n: row of a degree of freedom in L, -1 without
    int                  *super_of; // free_dofs: supernode of a row
    long                 *lists;    // per worker: supernodes that are reached
    unsigned char        *marks;    // per worker and supernode
    double               *rows;     // per worker: the right-hand sides, and a supernode's rows
    bool                 *failed;   // per half
} half_work;

// Ancestors of a supernode hold its rows below its own columns.
static void mark_path(const half_work *w, long s, unsigned char *marks) {
    const fem_supernodes *L = &w->L;
    while (s >= 0 && !marks[s]) {
        long own = L->first[s + 1] - L->first[s], rows = L->row_start[s + 1] - L->row_start[s];
        marks[s] = 1;
        s = rows > own ? w->super_of[L->row[L->row_start[s] + own]] : -1;
    }
}

static void half_task(void *context, int index, int worker) {
    const half_work *w = context;
    fem_half        *half = &w->halves[index];
    fem_supernodes   L = w->L;
    unsigned char   *marks = w->marks + (size_t)worker * (size_t)L.count;
    long            *list = w->lists + (size_t)worker * (size_t)L.count, reached = 0, kept = 0;
    int              columns = w->columns[index], vectors = (columns + FACTOR_LANES - 1) / FACTOR_LANES;
    size_t           lanes = (size_t)vectors * FACTOR_LANES;
    double          *X = w->rows + (size_t)worker * FEM_HALF_COLUMNS * (size_t)(w->free_dofs + w->tallest);
    memset(marks, 0, (size_t)L.count);
    for (int e = w->start[index]; e < w->start[index + 1]; e++) {
        int row = w->row_of[w->entries[e].dof];
        if (row >= 0) mark_path(w, w->super_of[row], marks);
    }
    for (long s = 0; s < L.count; s++)
        if (marks[s]) list[reached++] = s, kept += L.first[s + 1] - L.first[s];
    half->columns = columns, half->rows = (int)kept;
    half->row = fem_alloc((size_t)kept + 1, sizeof *half->row);
    half->W = fem_alloc((size_t)kept * (size_t)columns + 1, sizeof *half->W);
    if (!half->row || !half->W) {
        w->failed[index] = true;
        return;
    }
    kept = 0;
    for (long k = 0; k < reached; k++)
        for (long i = L.first[list[k]]; i < L.first[list[k] + 1]; i++) {
            half->row[kept++] = (int)i;
            memset(X + (size_t)i * lanes, 0, lanes * sizeof *X);
        }
    for (int e = w->start[index]; e < w->start[index + 1]; e++) {
        int row = w->row_of[w->entries[e].dof];
        if (row >= 0) X[(size_t)row * lanes + (size_t)w->entries[e].column] += w->entries[e].value;
    }
    L.list = list, L.count = reached;
    w->kernel(&L, FACTOR_FORWARD, vectors, X, X + (size_t)w->free_dofs * lanes);
    for (long i = 0; i < kept; i++)
        for (int c = 0; c < columns; c++)
            half->W[(size_t)c * (size_t)kept + (size_t)i] = X[(size_t)half->row[i] * lanes + (size_t)c];
}

fem_status fem_half_create(fem_factor *f, int count, const int *columns, const int *start,
                           const fem_half_entry *entries, fem_half *halves) {
    fem_status status = FEM_OK;
    size_t     threads = (size_t)(fem_threads() < count ? fem_threads() : count);
    half_work  w = {.f = f,
                    .L = fem_factor_supernodes(f),
                    .kernel = fem_supernode_kernel(),
                    .free_dofs = fem_factor_get_report(f).free_dofs,
                    .tallest = fem_factor_tallest(f),
                    .columns = columns,
                    .start = start,
                    .entries = entries,
                    .halves = halves};
    size_t     dofs = 3 * (size_t)fem_factor_vertices(f), rows = (size_t)w.free_dofs, supernodes = (size_t)w.L.count;
    if (count < 1) return FEM_OK;
    for (int i = 0; i < count; i++) halves[i] = (fem_half){0};
    w.row_of = fem_alloc(dofs, sizeof *w.row_of), w.super_of = fem_alloc(rows, sizeof *w.super_of);
    w.lists = fem_alloc(threads * supernodes, sizeof *w.lists), w.marks = fem_alloc(threads * supernodes, 1);
    w.rows = fem_alloc(threads * FEM_HALF_COLUMNS * (rows + (size_t)w.tallest), sizeof *w.rows);
    w.failed = fem_calloc((size_t)count, sizeof *w.failed);
    if (!w.row_of || !w.super_of || !w.lists || !w.marks || !w.rows || !w.failed) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for right-hand sides of %ld unknowns", w.free_dofs);
        goto done;
    }
    for (size_t d = 0; d < dofs; d++) w.row_of[d] = -1;
    for (size_t i = 0; i < rows; i++) w.row_of[w.L.dof[i]] = (int)i;
    for (long s = 0; s < w.L.count; s++)
        for (long i = w.L.first[s]; i < w.L.first[s + 1]; i++) w.super_of[i] = (int)s;
    fem_parallel_for(count, half_task, &w);
    for (int i = 0; i < count && status == FEM_OK; i++)
        if (w.failed[i]) status = fem_fail(FEM_NO_MEMORY, "no memory for right-hand sides of %d rows", halves[i].rows);
    for (int i = 0; i < count && status != FEM_OK; i++) fem_half_destroy(&halves[i]);
done:
    fem_free(w.row_of), fem_free(w.super_of), fem_free(w.lists), fem_free(w.marks), fem_free(w.rows);
    fem_free(w.failed);
    return status;
}

// The rows that both have, side by side, and one product.
fem_status fem_half_inner(const fem_half *a, const fem_half *b, double *T, int ld) {
    size_t  most = (size_t)(a->rows < b->rows ? a->rows : b->rows), common = 0;
    double *A = fem_alloc(most * (size_t)(a->columns + b->columns) + 1, sizeof *A);
    int    *at = fem_alloc(2 * most + 1, sizeof *at);
    if (!A || !at) {
        fem_free(A), fem_free(at);
        return fem_fail(FEM_NO_MEMORY, "no memory for the product of %d and %d rows", a->rows, b->rows);
    }
    for (int i = 0, j = 0; i < a->rows && j < b->rows;) {
        if (a->row[i] == b->row[j]) at[2 * common] = i, at[2 * common + 1] = j, common++;
        int step = a->row[i] - b->row[j];
        i += step <= 0, j += step >= 0;
    }
    double *B = A + common * (size_t)a->columns;
    for (int c = 0; c < a->columns; c++)
        for (size_t k = 0; k < common; k++)
            A[(size_t)c * common + k] = a->W[(size_t)c * (size_t)a->rows + (size_t)at[2 * k]];
    for (int c = 0; c < b->columns; c++)
        for (size_t k = 0; k < common; k++)
            B[(size_t)c * common + k] = b->W[(size_t)c * (size_t)b->rows + (size_t)at[2 * k + 1]];
    int rows = (int)common;
    if (rows > 0)
        dense_gemm_part(true, false, a->columns, b->columns, rows, 1, A, rows, B, rows, 0, T, ld);
    else
        for (int c = 0; c < b->columns; c++) memset(T + (size_t)c * (size_t)ld, 0, (size_t)a->columns * sizeof *T);
    fem_free(A), fem_free(at);
    return FEM_OK;
}

fem_status fem_half_project(const fem_half *half, int free_dofs, int columns, const double *Y, double *T, int ld) {
    size_t  rows = (size_t)half->rows;
    double *part = fem_alloc(rows * (size_t)columns + 1, sizeof *part);
    if (!part) return fem_fail(FEM_NO_MEMORY, "no memory for %d rows of %d columns", half->rows, columns);
    for (int c = 0; c < columns; c++)
        for (size_t i = 0; i < rows; i++)
            part[(size_t)c * rows + i] = Y[(size_t)c * (size_t)free_dofs + (size_t)half->row[i]];
    if (half->rows > 0)
        dense_gemm_part(true, false, half->columns, columns, half->rows, 1, half->W, half->rows, part, half->rows, 0, T,
                        ld);
    else
        for (int c = 0; c < columns; c++) memset(T + (size_t)c * (size_t)ld, 0, (size_t)half->columns * sizeof *T);
    fem_free(part);
    return FEM_OK;
}

fem_status fem_half_subtract(const fem_half *half, int free_dofs, int columns, const double *T, int ld, double *Y) {
    size_t  rows = (size_t)half->rows;
    double *part = fem_alloc(rows * (size_t)columns + 1, sizeof *part);
    if (!part) return fem_fail(FEM_NO_MEMORY, "no memory for %d rows of %d columns", half->rows, columns);
    if (half->rows > 0)
        dense_gemm_part(false, false, half->rows, columns, half->columns, 1, half->W, half->rows, T, ld, 0, part,
                        half->rows);
    for (int c = 0; c < columns; c++)
        for (size_t i = 0; i < rows; i++)
            Y[(size_t)c * (size_t)free_dofs + (size_t)half->row[i]] -= part[(size_t)c * rows + i];
    fem_free(part);
    return FEM_OK;
}
