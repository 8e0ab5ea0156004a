// Batches: packing the rows of K, and the loop over blocks.
#include "libcubature/internal.h"

#include <string.h>

void cubature_batch_destroy(cubature_batch *batch) {
    if (!batch) return;
    fem_free(batch->rows);
    fem_free(batch->K0);
    fem_free(batch->pairs);
    fem_free(batch);
}

fem_status cubature_batch_create(cubature_batch **result, const cubature_polynomial *p) {
    cubature_batch *batch = fem_calloc(1, sizeof *batch);
    if (!batch) return fem_fail(FEM_NO_MEMORY, "no memory for a batch");
    int pairs = cubature_pairs(p->r);
    batch->r = p->r;
    batch->pair_count = pairs;
    batch->columns = p->r + pairs;
    batch->groups = (pairs + BATCH_ROWS - 1) / BATCH_ROWS;
    batch->kernels = cubature_choose_kernels();
    size_t rows = (size_t)batch->groups * BATCH_ROWS;
    batch->rows = fem_alloc(rows * (size_t)batch->columns, sizeof *batch->rows);
    batch->K0 = fem_calloc(rows, sizeof *batch->K0);
    batch->pairs = fem_calloc(rows, sizeof *batch->pairs);
    if (!batch->rows || !batch->K0 || !batch->pairs) {
        cubature_batch_destroy(batch);
        return fem_fail(FEM_NO_MEMORY, "no memory for the stiffness rows of %d modes (%.3g MB)", p->r,
                        8e-6 * (double)rows * (p->r + pairs));
    }
    for (int b = 0, pair = 0; b < p->r; b++)
        for (int a = 0; a <= b; a++) batch->pairs[pair++] = (batch_pair){.a = a, .b = b};
    cubature_batch_update(batch, p);
    *result = batch;
    return FEM_OK;
}

// Second derivative by q_a and q_b of the monomial with these four indices (-1: the factor 1), without its remaining
// variables: its coefficient times the exponents.
static double second_derivative(const cubature_polynomial *p, int a, int b, int c, int d) {
    int m[4] = {a, b, c, d}, of_a = 0, of_b = 0;
    for (int i = 1; i < 4; i++)
        for (int k = i; k > 0 && m[k] < m[k - 1]; k--) {
            int t = m[k];
            m[k] = m[k - 1], m[k - 1] = t;
        }
    for (int i = 0; i < 4; i++) of_a += m[i] == a, of_b += m[i] == b;
    if (a == b) of_b--;
    return of_a * of_b * p->coefficients[cubature_polynomial_index(m[0], m[1], m[2], m[3])];
}

typedef struct update_work {
    cubature_batch            *batch;
    const cubature_polynomial *polynomial;
} update_work;

// Columns: q_c, then q_c q_d (c <= d) in the order of the pairs.
static void update_task(void *context, int group, int worker) {
    (void)worker;
    const update_work         *w = context;
    cubature_batch            *batch = w->batch;
    const cubature_polynomial *p = w->polynomial;
    double                    *out = batch->rows + (size_t)group * BATCH_ROWS * (size_t)batch->columns;
    memset(out, 0, (size_t)batch->columns * BATCH_ROWS * sizeof *out);
    for (int row = 0; row < BATCH_ROWS && group * BATCH_ROWS + row < batch->pair_count; row++) {
        batch_pair pair = batch->pairs[group * BATCH_ROWS + row];
        batch->K0[group * BATCH_ROWS + row] = second_derivative(p, pair.a, pair.b, -1, -1);
        double *column = out + row;
        for (int c = 0; c < p->r; c++, column += BATCH_ROWS) *column = second_derivative(p, pair.a, pair.b, -1, c);
        for (int d = 0; d < p->r; d++)
            for (int c = 0; c <= d; c++, column += BATCH_ROWS) *column = second_derivative(p, pair.a, pair.b, c, d);
    }
}

void cubature_batch_update(cubature_batch *batch, const cubature_polynomial *p) {
    update_work work = {.batch = batch, .polynomial = p};
    fem_parallel_for(batch->groups, update_task, &work);
}

size_t cubature_batch_work(const cubature_batch *batch) {
    if (batch->rule) return rule_batch_work(batch);
    // of two blocks: monomials, and the matrices of force and energy
    return 2 * CUBATURE_LANES * (size_t)(batch->columns + 2 * batch->pair_count);
}

void cubature_batch_evaluate(const cubature_batch *batch, int blocks, const double *q, const double *factor,
                             double *energy, double *f, double *K, double *work) {
    if (batch->rule)
        rule_batch_evaluate(batch, blocks, q, factor, energy, f, K, work);
    else
        batch->kernels.batch(batch, blocks, q, factor, energy, f, K, work);
}
