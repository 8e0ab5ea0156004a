// From one multigrid level to the next: prolongation P and the coarse matrix P^T A P.
//
// Each aggregate gets six coarse unknowns: an orthonormal basis Q of what rigid motions do to its rows, so that the
// coarse level holds every rigid motion of every aggregate, and its own near null space is R in B = Q R. Q is smoothed
// by one damped Jacobi step, P = (I - 4/(3 rho) A) Q, which makes the pieces overlap and lowers their energy. An
// aggregate with few rows has fewer than six independent motions; its missing unknowns are marked as fixed.
#include "libfem/amg_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct coarsening {
    const amg_level   *level;
    const amg_problem *fine;
    int               *aggregate;                    // n
    int                count;                        // aggregates
    int               *member_start, *member;        // rows of an aggregate
    double            *Q;                            // 3 x 6 per row: the row's part of its aggregate's Q
    int               *product_start, *product_node; // pattern of A P
    int               *coarse_start, *coarse_node; // pattern of the coarse matrix, upper half by aggregates, ascending
    double            *blocks;                     // 6 x PAD per entry of it
} coarsening;

static void destroy_coarsening(coarsening *c) {
    fem_free(c->aggregate), fem_free(c->member_start), fem_free(c->member), fem_free(c->Q);
    fem_free(c->product_start), fem_free(c->product_node);
    fem_free(c->coarse_start), fem_free(c->coarse_node), fem_free(c->blocks);
}

static fem_status no_memory(int n) {
    return fem_fail(FEM_NO_MEMORY, "no memory for the multigrid level below one of %d block rows", n);
}

static fem_status list_members(coarsening *c) {
    int n = c->level->A.n;
    c->member_start = fem_calloc((size_t)c->count + 2, sizeof *c->member_start);
    c->member = fem_alloc((size_t)n, sizeof *c->member);
    if (!c->member_start || !c->member) return no_memory(n);
    for (int i = 0; i < n; i++)
        if (c->aggregate[i] >= 0) c->member_start[c->aggregate[i] + 2]++;
    for (int a = 0; a < c->count; a++) c->member_start[a + 2] += c->member_start[a + 1];
    for (int i = 0; i < n; i++)
        if (c->aggregate[i] >= 0) c->member[c->member_start[c->aggregate[i] + 1]++] = i;
    return FEM_OK;
}

// ---- the basis of an aggregate -------------------------------------------------------------------------------------

static double column_dot(const coarsening *c, int a, int p, int q) {
    double sum = 0;
    for (int k = c->member_start[a]; k < c->member_start[a + 1]; k++) {
        const double *Q = c->Q + 18 * (size_t)c->member[k];
        for (int i = 0; i < 3; i++) sum += Q[RIGID * i + p] * Q[RIGID * i + q];
    }
    return sum;
}

static void column_axpy(const coarsening *c, int a, double alpha, int from, int to) {
    for (int k = c->member_start[a]; k < c->member_start[a + 1]; k++) {
        double *Q = c->Q + 18 * (size_t)c->member[k];
        for (int i = 0; i < 3; i++) Q[RIGID * i + to] += alpha * Q[RIGID * i + from];
    }
}

// Q R = B by Gram-Schmidt, twice; a column that depends on those before becomes zero and its unknown a fixed one.
// R: 6 x 6, row-major.
static void orthonormalise(const coarsening *c, int a, double *R, unsigned char *fixed) {
    memset(R, 0, RIGID * RIGID * sizeof *R);
    for (int q = 0; q < RIGID; q++) {
        double before = sqrt(column_dot(c, a, q, q));
        for (int pass = 0; pass < 2; pass++)
            for (int p = 0; p < q; p++) {
                double dot = column_dot(c, a, p, q);
                R[RIGID * p + q] += dot;
                column_axpy(c, a, -dot, p, q);
            }
        double norm = sqrt(column_dot(c, a, q, q));
        fixed[q] = !(norm > 1e-8 * before);
        R[RIGID * q + q] = fixed[q] ? 0 : norm;
        column_axpy(c, a, fixed[q] ? -1 : 1 / norm - 1, q, q);
    }
}

// Q of all aggregates; the coarse level's fixed dofs, B = R, and Z = Q^T Z.
static fem_status make_bases(coarsening *c, amg_problem *coarse) {
    int    n = c->level->A.n, count = c->count;
    size_t rows = (size_t)n, coarse_dofs = RIGID * (size_t)count;
    c->Q = fem_copy(c->fine->B, 18 * rows, sizeof *c->Q);
    coarse->fixed = fem_alloc(coarse_dofs, 1);
    coarse->B = fem_alloc(RIGID * coarse_dofs, sizeof *coarse->B);
    coarse->null_count = c->fine->null_count;
    coarse->Z = fem_calloc(coarse_dofs * (size_t)coarse->null_count, sizeof *coarse->Z);
    if (!c->Q || !coarse->fixed || !coarse->B || !coarse->Z) return no_memory(n);
    for (int a = 0; a < count; a++) {
        orthonormalise(c, a, coarse->B + 36 * (size_t)a, coarse->fixed + RIGID * (size_t)a);
        for (int column = 0; column < coarse->null_count; column++) {
            const double *z = c->fine->Z + 3 * rows * (size_t)column;
            double       *out = coarse->Z + coarse_dofs * (size_t)column + RIGID * (size_t)a;
            for (int k = c->member_start[a]; k < c->member_start[a + 1]; k++)
                for (int e = 0; e < 3 * RIGID; e++)
                    out[e % RIGID] += c->Q[18 * (size_t)c->member[k] + (size_t)e] * z[3 * c->member[k] + e / RIGID];
        }
    }
    return FEM_OK;
}

// ---- prolongation --------------------------------------------------------------------------------------------------

// Entries of P by rows: the aggregates of the row's neighbours.
static fem_status transfer_pattern(const coarsening *c, amg_transfer *P) {
    fem_status        status = FEM_OK;
    const amg_matrix *A = &c->level->A;
    size_t            capacity = 0;
    int               entries = 0, *seen = fem_alloc((size_t)c->count, sizeof *seen);
    *P = (amg_transfer){.n = A->n, .coarse = c->count};
    P->start = fem_alloc((size_t)A->n + 1, sizeof *P->start);
    if (!seen || !P->start) {
        status = no_memory(A->n);
        goto done;
    }
    for (int a = 0; a < c->count; a++) seen[a] = -1;
    for (int i = 0; i < A->n; i++) {
        P->start[i] = entries;
        FEM_TRY(fem_grow((void **)&P->node, &capacity, (size_t)entries + (size_t)(A->start[i + 1] - A->start[i]),
                         sizeof *P->node));
        for (int k = A->start[i]; k < A->start[i + 1]; k++) {
            int a = c->aggregate[A->column[k]];
            if (a < 0 || seen[a] == i) continue;
            seen[a] = i;
            P->node[entries++] = a;
        }
    }
    P->start[A->n] = entries;
done:
    fem_free(seen);
    return status;
}

static fem_status transpose_pattern(amg_transfer *P) {
    int entries = P->start[P->n];
    P->back_start = fem_calloc((size_t)P->coarse + 2, sizeof *P->back_start);
    P->back_row = fem_alloc((size_t)entries, sizeof *P->back_row);
    P->back_entry = fem_alloc((size_t)entries, sizeof *P->back_entry);
    if (!P->back_start || !P->back_row || !P->back_entry) return no_memory(P->n);
    for (int k = 0; k < entries; k++) P->back_start[P->node[k] + 2]++;
    for (int a = 0; a < P->coarse; a++) P->back_start[a + 2] += P->back_start[a + 1];
    for (int i = 0; i < P->n; i++)
        for (int k = P->start[i]; k < P->start[i + 1]; k++) {
            int place = P->back_start[P->node[k] + 1]++;
            P->back_row[place] = i;
            P->back_entry[place] = k;
        }
    return FEM_OK;
}

// P_i = Q_i - 4/(3 rho) sum_j A_ij Q_j, each term in the entry of the aggregate of its row
static fem_status fill_transfer(const coarsening *c, amg_transfer *P) {
    const amg_matrix *A = &c->level->A;
    double            damping = 4 / (3 * c->level->radius);
    P->exact = fem_calloc(3 * PAD * (size_t)P->start[A->n], sizeof *P->exact);
    if (!P->exact) return no_memory(A->n);
    for (int i = 0; i < A->n; i++)
        for (int k = A->start[i]; k < A->start[i + 1]; k++) {
            int j = A->column[k], place = P->start[i];
            if (c->aggregate[j] < 0) continue;
            while (P->node[place] != c->aggregate[j]) place++;
            double       *out = P->exact + 3 * PAD * (size_t)place;
            const double *a = A->exact + 9 * (size_t)k, *Q = c->Q + 18 * (size_t)j;
            for (int row = 0; row < 3; row++)
                for (int m = 0; m < RIGID; m++) {
                    double sum = a[3 * row] * Q[m] + a[3 * row + 1] * Q[RIGID + m] + a[3 * row + 2] * Q[2 * RIGID + m];
                    out[row * PAD + m] += (i == j ? Q[RIGID * row + m] : 0) - damping * sum;
                }
        }
    return FEM_OK;
}

// ---- the coarse matrix ---------------------------------------------------------------------------------------------

// Aggregates in each row of A P.
static fem_status product_pattern(coarsening *c, const amg_transfer *P) {
    fem_status        status = FEM_OK;
    const amg_matrix *A = &c->level->A;
    size_t            capacity = 0;
    size_t            entries = 0;
    int              *seen = fem_alloc((size_t)c->count, sizeof *seen);
    c->product_start = fem_alloc((size_t)A->n + 1, sizeof *c->product_start);
    if (!seen || !c->product_start) {
        status = no_memory(A->n);
        goto done;
    }
    for (int a = 0; a < c->count; a++) seen[a] = -1;
    for (int i = 0; i < A->n; i++) {
        c->product_start[i] = (int)entries;
        for (int k = A->start[i]; k < A->start[i + 1]; k++) {
            int j = A->column[k];
            FEM_TRY(fem_grow((void **)&c->product_node, &capacity, entries + (size_t)(P->start[j + 1] - P->start[j]),
                             sizeof *c->product_node));
            for (int m = P->start[j]; m < P->start[j + 1]; m++) {
                if (seen[P->node[m]] == i) continue;
                seen[P->node[m]] = i;
                c->product_node[entries++] = P->node[m];
            }
        }
        if (entries > INT_MAX / 2) {
            status = fem_fail(FEM_BAD_INPUT, "a matrix of %d block rows is too large for multigrid", A->n);
            goto done;
        }
    }
    c->product_start[A->n] = (int)entries;
done:
    fem_free(seen);
    return status;
}

static int compare_int(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static fem_status coarse_pattern(coarsening *c, const amg_transfer *P) {
    fem_status status = FEM_OK;
    size_t     capacity = 0, entries = 0;
    int       *seen = fem_alloc((size_t)c->count, sizeof *seen);
    c->coarse_start = fem_alloc((size_t)c->count + 1, sizeof *c->coarse_start);
    if (!seen || !c->coarse_start) {
        status = no_memory(P->n);
        goto done;
    }
    for (int a = 0; a < c->count; a++) seen[a] = -1;
    for (int a = 0; a < c->count; a++) {
        size_t first = entries;
        c->coarse_start[a] = (int)entries;
        for (int k = P->back_start[a]; k < P->back_start[a + 1]; k++) {
            int i = P->back_row[k], count = c->product_start[i + 1] - c->product_start[i];
            FEM_TRY(fem_grow((void **)&c->coarse_node, &capacity, entries + (size_t)count, sizeof *c->coarse_node));
            for (int m = c->product_start[i]; m < c->product_start[i + 1]; m++) {
                int b = c->product_node[m];
                if (b < a || seen[b] == a) continue;
                seen[b] = a;
                c->coarse_node[entries++] = b;
            }
        }
        qsort(c->coarse_node + first, entries - first, sizeof *c->coarse_node, compare_int);
        if (entries > INT_MAX / 4) {
            status = fem_fail(FEM_BAD_INPUT, "a matrix of %d block rows is too large for multigrid", P->n);
            goto done;
        }
    }
    c->coarse_start[c->count] = (int)entries;
done:
    fem_free(seen);
    return status;
}

static fem_status galerkin(coarsening *c, const amg_transfer *P) {
    fem_status status = FEM_OK;
    double    *product = fem_alloc(3 * PAD * (size_t)c->product_start[P->n], sizeof *product);
    int       *position = fem_alloc((size_t)c->count * (size_t)fem_threads(), sizeof *position);
    c->blocks = fem_alloc(RIGID * PAD * (size_t)c->coarse_start[c->count], sizeof *c->blocks);
    if (!product || !position || !c->blocks) {
        status = no_memory(P->n);
        goto done;
    }
    amg_work work = {.operation = AMG_PRODUCT,
                     .count = P->n,
                     .step = AMG_ROWS,
                     .A = &c->level->A,
                     .transfer = P,
                     .product_start = c->product_start,
                     .product_node = c->product_node,
                     .product = product,
                     .coarse_start = c->coarse_start,
                     .coarse_node = c->coarse_node,
                     .blocks = c->blocks,
                     .position = position};
    amg_run(&work);
    work.operation = AMG_GALERKIN, work.count = c->count, work.step = AMG_NODES;
    amg_run(&work);
done:
    fem_free(product), fem_free(position);
    return status;
}

static void copy_block(const double *six, int row, int column, double *out) {
    for (int e = 0; e < 9; e++) out[e] = six[(3 * row + e / 3) * PAD + 3 * column + e % 3];
}

// Two block rows for each aggregate. Unknowns that do not exist have zero rows.
static fem_status coarse_matrix(const coarsening *c, fem_sparse *A) {
    int entries = c->coarse_start[c->count], next = 0;
    int blocks = 4 * entries - c->count; // the diagonal 6x6 blocks lack one of four
    *A = (fem_sparse){.n = 2 * c->count, .blocks = blocks};
    A->row_start = fem_alloc(2 * (size_t)c->count + 1, sizeof *A->row_start);
    A->column = fem_alloc((size_t)blocks, sizeof *A->column);
    A->value = fem_alloc(9 * (size_t)blocks, sizeof *A->value);
    if (!A->row_start || !A->column || !A->value) return no_memory(c->level->A.n);
    for (int a = 0; a < c->count; a++)
        for (int half = 0; half < 2; half++) {
            A->row_start[2 * a + half] = next;
            for (int k = c->coarse_start[a]; k < c->coarse_start[a + 1]; k++)
                for (int side = 0; side < 2; side++) {
                    int column = 2 * c->coarse_node[k] + side;
                    if (column < 2 * a + half) continue;
                    A->column[next] = column;
                    copy_block(c->blocks + RIGID * PAD * (size_t)k, half, side, A->value + 9 * (size_t)next++);
                }
        }
    A->row_start[2 * c->count] = next;
    return FEM_OK;
}

fem_status amg_coarsen(amg_level *level, const double *points, const amg_problem *fine, amg_problem *coarse) {
    fem_status status = FEM_OK;
    coarsening c = {.level = level, .fine = fine};
    c.aggregate = fem_alloc((size_t)level->A.n, sizeof *c.aggregate);
    if (!c.aggregate) {
        status = no_memory(level->A.n);
        goto done;
    }
    FEM_TRY(amg_aggregate(&level->A, points, c.aggregate, &c.count));
    FEM_TRY(list_members(&c));
    FEM_TRY(make_bases(&c, coarse));
    FEM_TRY(transfer_pattern(&c, &level->P));
    FEM_TRY(transpose_pattern(&level->P));
    FEM_TRY(fill_transfer(&c, &level->P));
    FEM_TRY(product_pattern(&c, &level->P));
    FEM_TRY(coarse_pattern(&c, &level->P));
    FEM_TRY(galerkin(&c, &level->P));
    FEM_TRY(coarse_matrix(&c, &coarse->A));
done:
    destroy_coarsening(&c);
    return status;
}

fem_status amg_finish_transfer(amg_transfer *P, const double *scale) {
    int entries = P->start[P->n];
    P->value = fem_alloc(3 * RIGID * (size_t)entries, sizeof *P->value);
    if (!P->value) return no_memory(P->n);
    for (int k = 0; k < entries; k++)
        for (int row = 0; row < 3; row++)
            for (int m = 0; m < RIGID; m++) {
                const double *p = P->exact + 3 * PAD * (size_t)k + row * PAD;
                double        sum = p[m];
                if (scale) { // the entry of p S, with S the two 3x3 scales of the aggregate's block rows
                    const double *S = scale + 9 * (2 * (size_t)P->node[k] + (size_t)(m / 3));
                    const double *half = p + 3 * (m / 3);
                    sum = half[0] * S[m % 3] + half[1] * S[3 + m % 3] + half[2] * S[6 + m % 3];
                }
                P->value[3 * RIGID * (size_t)k + (size_t)(row * RIGID + m)] = (float)sum;
            }
    fem_free(P->exact);
    P->exact = NULL;
    return FEM_OK;
}
