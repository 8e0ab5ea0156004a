// Many products (H(0) : a_i) b_j in one sweep over the elements; the kernels are in kernel_second.c.
#include "libfem/body_internal.h"

#include <stdlib.h>
#include <string.h>

// ---- elasticity at rest
// ----------------------------------------------------------------------------------------------

// Entry (i, i) of S''(E_jj, E_kk), E_jj the diagonal unit matrix, out of d2P at F = I.
static double third_order_entry(const fem_material_constants *c, const rest_elasticity *e, int i, int j, int k) {
    double F[9], A[9] = {0}, B[9] = {0}, Q[9];
    mat3_identity(F);
    A[4 * j] = B[4 * k] = 1;
    fem_material_second(c, F, A, B, Q);
    double S_A = e->lambda + (i == j ? 2 * e->mu : 0), S_B = e->lambda + (i == k ? 2 * e->mu : 0);
    double rest = A[4 * i] * S_B + B[4 * i] * S_A; // A S_B + B S_A
    if (j == k) rest += S_A;                       // C : sym(A^T B)
    return Q[4 * i] - rest;
}

static rest_elasticity rest_constants(const fem_material_constants *c) {
    rest_elasticity e = {.isotropic = true, .lambda = c->lambda, .mu = c->mu};
    e.linear = c->kind == FEM_LINEAR; // its force is linear in u: H = 0
    if (c->kind == FEM_LINEAR || c->kind == FEM_STVK) return e;
    if (c->kind == FEM_ORTHOTROPIC) {
        e.isotropic = false;
        memcpy(e.C, c->C, sizeof e.C);
        return e;
    }
    double F[9], D[81];
    mat3_identity(F);
    fem_material_evaluate(c, F, NULL, NULL, D);
    e.lambda = D[4];     // dP_xx / dF_yy
    e.mu = D[9 * 1 + 1]; // dP_xy / dF_xy
    e.has_third = true;
    e.third[0] = third_order_entry(c, &e, 2, 0, 1);                                     // n1
    e.third[1] = (third_order_entry(c, &e, 0, 0, 1) - e.third[0]) / 2;                  // n1 + 2 n2
    e.third[2] = (third_order_entry(c, &e, 0, 0, 0) - e.third[0] - 6 * e.third[1]) / 8; // n1 + 6 n2 + 8 n3
    return e;
}

// ---- columns and rows
// ------------------------------------------------------------------------------------------------

enum { TILE = 64, SLOTS = 8 };

typedef struct transpose_work {
    int           n, columns, stride;
    const double *from;
    double       *to;
    const int    *lane;  // rows to columns: where each column stands in a row,
    const int    *place; // and where it goes
} transpose_work;

static void to_rows_task(void *context, int tile, int worker) {
    (void)worker;
    transpose_work *w = context;
    int             end = (tile + 1) * TILE < w->n ? (tile + 1) * TILE : w->n;
    for (int i = tile * TILE; i < end; i++) {
        double *row = w->to + (size_t)i * (size_t)w->stride;
        for (int k = 0; k < w->columns; k++) row[k] = w->from[(size_t)k * (size_t)w->n + (size_t)i];
        for (int k = w->columns; k < w->stride; k++) row[k] = 0;
    }
}

static void to_columns_task(void *context, int tile, int worker) {
    (void)worker;
    transpose_work *w = context;
    int             end = (tile + 1) * TILE < w->n ? (tile + 1) * TILE : w->n;
    for (int k = 0; k < w->columns; k++)
        for (int i = tile * TILE; i < end; i++)
            w->to[(size_t)w->place[k] * (size_t)w->n + (size_t)i] =
                w->from[(size_t)i * (size_t)w->stride + (size_t)w->lane[k]];
}

// ---- slots
// -----------------------------------------------------------------------------------------------------------

typedef struct sorted_pair {
    fem_pair pair;
    int      place; // column of out
} sorted_pair;

static int compare_pairs(const void *x, const void *y) {
    const sorted_pair *p = x, *q = y;
    if (p->pair.a != q->pair.a) return p->pair.a < q->pair.a ? -1 : 1;
    return (p->pair.b > q->pair.b) - (p->pair.b < q->pair.b);
}

// Slots for the next pairs: one begins with the first pair that has no place yet and takes those with the same a and
// the next seven b. Returns the number of pairs that found a place in SLOTS slots.
static int fill_slots(int pairs, const sorted_pair *sorted, second_slot *slots, int *slot_count, int *lane,
                      int *place) {
    int count = 0;
    for (int p = 0; p < pairs; p++) {
        fem_pair x = sorted[p].pair;
        if (count == 0 || slots[count - 1].a != x.a || x.b - slots[count - 1].b >= LANES) {
            if (count == SLOTS) return p;
            slots[count++] = (second_slot){.a = x.a, .b = x.b};
        }
        lane[p] = (count - 1) * LANES + x.b - slots[count - 1].b;
        place[p] = sorted[p].place;
        *slot_count = count;
    }
    return pairs;
}

// ---- the sweep
// -------------------------------------------------------------------------------------------------------

typedef struct sweep {
    const second_work *work;
    second_kernel      kernel;
} sweep;

static void sweep_task(const void *context, int chunk) {
    const sweep *s = context;
    s->kernel(s->work, chunk);
}

static void run_sweep(const second_work *work) {
    sweep s = {.work = work, .kernel = fem_second_kernel_baseline};
#if defined(__x86_64__)
    fem_simd level = fem_simd_level();
    if (level == FEM_SIMD_AVX2) s.kernel = fem_second_kernel_avx2;
    if (level == FEM_SIMD_AVX512) s.kernel = fem_second_kernel_avx512;
#endif
    fem_body_for_chunks(work->body, sweep_task, &s);
}

static int padded(int columns) { return (columns + 2 * LANES - 1) / LANES * LANES; } // and a vector of zeros behind

static fem_status check_pairs(int a_columns, int b_columns, int pairs, const fem_pair *pair) {
    if (padded(a_columns) > SECOND_COLUMNS || padded(b_columns) > SECOND_COLUMNS)
        return fem_fail(FEM_BAD_INPUT, "%d and %d columns for second derivatives, expected at most %d", a_columns,
                        b_columns, SECOND_COLUMNS - 2 * LANES + 1);
    for (int p = 0; p < pairs; p++)
        if (pair[p].a < 0 || pair[p].a >= a_columns || pair[p].b < 0 || pair[p].b >= b_columns)
            return fem_fail(FEM_BAD_INPUT, "pair %d is (%d, %d), expected columns below %d and %d", p, pair[p].a,
                            pair[p].b, a_columns, b_columns);
    return FEM_OK;
}

// One fem_body_second after the other.
static fem_status second_plain(const fem_body *body, const double *A, const double *B, int pairs, const fem_pair *pair,
                               double *out) {
    size_t  n = 3 * (size_t)body->mesh->vertex_count;
    double *zero = fem_calloc(n, sizeof *zero);
    if (!zero) return fem_fail(FEM_NO_MEMORY, "no memory for second derivatives of %zu degrees of freedom", n);
    for (int p = 0; p < pairs; p++)
        fem_body_second(body, zero, A + (size_t)pair[p].a * n, B + (size_t)pair[p].b * n, out + (size_t)p * n);
    fem_free(zero);
    return FEM_OK;
}

// Few slots at a time, so that the rows of neighbouring vertices stay in the cache.
static void sweep_pairs(second_work *work, int n, int pairs, const sorted_pair *sorted, int *lane, int *place,
                        double *rows, double *out) {
    second_slot slots[SLOTS];
    int         done;
    work->slots = slots, work->out = rows;
    for (int p = 0; p < pairs; p += done) {
        done = fill_slots(pairs - p, sorted + p, slots, &work->slot_count, lane, place);
        int stride = work->slot_count * LANES;
        memset(rows, 0, (size_t)n * (size_t)stride * sizeof *rows);
        run_sweep(work);
        transpose_work back = {
            .n = n, .columns = done, .stride = stride, .from = rows, .to = out, .lane = lane, .place = place};
        fem_parallel_for((n + TILE - 1) / TILE, to_columns_task, &back);
    }
}

static void to_rows(int n, int columns, int stride, const double *from, double *to) {
    transpose_work work = {.n = n, .columns = columns, .stride = stride, .from = from, .to = to};
    fem_parallel_for((n + TILE - 1) / TILE, to_rows_task, &work);
}

fem_status fem_body_second_pairs(const fem_body *body, int a_columns, const double *A, int b_columns, const double *B,
                                 int pairs, const fem_pair *pair, double *out) {
    fem_status status = check_pairs(a_columns, b_columns, pairs, pair);
    if (status != FEM_OK || pairs == 0) return status;
    if (body->options.plain) return second_plain(body, A, B, pairs, pair, out);
    int              n = 3 * body->mesh->vertex_count, materials = body->mesh->material_count;
    bool             same = A == B && a_columns == b_columns;
    second_work      work = {.body = body, .a_columns = padded(a_columns), .b_columns = padded(b_columns)};
    rest_elasticity *elasticity = fem_alloc((size_t)materials, sizeof *elasticity);
    sorted_pair     *sorted = fem_alloc((size_t)pairs, sizeof *sorted);
    int             *lane = fem_alloc(2 * (size_t)pairs, sizeof *lane);
    double          *a_rows = fem_alloc((size_t)n * (size_t)work.a_columns, sizeof *a_rows);
    double          *b_rows = same ? a_rows : fem_alloc((size_t)n * (size_t)work.b_columns, sizeof *b_rows);
    double          *rows = fem_alloc((size_t)n * SLOTS * LANES, sizeof *rows);
    if (!elasticity || !sorted || !lane || !a_rows || !b_rows || !rows) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d second derivatives of %d degrees of freedom", pairs, n);
        goto done;
    }
    for (int i = 0; i < materials; i++) elasticity[i] = rest_constants(&body->constants[i]);
    for (int p = 0; p < pairs; p++) sorted[p] = (sorted_pair){.pair = pair[p], .place = p};
    qsort(sorted, (size_t)pairs, sizeof *sorted, compare_pairs);
    to_rows(n, a_columns, work.a_columns, A, a_rows);
    if (!same) to_rows(n, b_columns, work.b_columns, B, b_rows);
    work.elasticity = elasticity, work.a_rows = a_rows, work.b_rows = b_rows;
    sweep_pairs(&work, n, pairs, sorted, lane, lane + pairs, rows, out);
done:
    fem_free(elasticity), fem_free(sorted), fem_free(lane), fem_free(rows);
    if (!same) fem_free(b_rows);
    fem_free(a_rows);
    return status;
}
