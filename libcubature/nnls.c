// Nonnegative least squares through the Gram matrix of the columns, which are first scaled to length 1 (and b too).
//
// Block principal pivoting guesses which entries are positive, solves for them by a Cholesky factor, and exchanges all
// that came out with the wrong sign; when the number of those does not fall it exchanges one at a time [Kim and Park
// 2011, algorithm 1]. It needs few factorisations, but no proof of convergence covers dependent columns: whatever fails
// goes to Lawson and Hanson's method on updated factors (active_set.c).
//
// The Gram matrix squares the condition number, so the answer gets a step of refinement with the residual of A itself,
// and the optimality conditions are checked with that residual too.
#include "libcubature/active_set.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { BLOCK_ITERATIONS = 100, BLOCK_PATIENCE = 3 };
#define INDEPENDENT 1e-13 // of |a|^2: less is rounding of the Gram matrix

cubature_nnls_options cubature_nnls_default_options(void) { return (cubature_nnls_options){.tolerance = 1e-10}; }

typedef struct nnls_problem {
    int            m, n, lda;
    const double  *A, *b;
    double        *G;      // n x n, of unit columns
    double        *c;      // n: a_i . b, of unit columns and unit b
    double        *length; // n: |a_i|
    double         b_length;
    double        *x, *y;        // n: solution, gradient G x - c
    double        *factor;       // n x n: of the columns in use
    double        *residual;     // m
    double        *part;         // n
    int           *free_columns; // n: block pivoting: entries that may be positive
    unsigned char *is_free;      // n
} nnls_problem;

size_t cubature_nnls_work(int m, int n) {
    return (size_t)n * (size_t)n + active_set_doubles(n) + 8 * ((size_t)n + 8) + (size_t)m;
}

static void place(nnls_problem *p, double *work) {
    size_t n = (size_t)p->n;
    p->G = work;
    p->c = p->G + n * n;
    p->length = p->c + n;
    p->x = p->length + n;
    p->y = p->x + n;
    p->part = p->y + n;
    p->free_columns = (int *)(void *)(p->part + n);
    p->is_free = (unsigned char *)(p->part + 2 * n);
    p->residual = p->part + 3 * n;
    p->factor = p->residual + p->m;
}

static fem_status make_gram(nnls_problem *p) {
    int n = p->n;
    dense_gram(p->m, n, p->A, p->lda, p->G);
    p->b_length = dense_norm(p->m, p->b);
    if (!isfinite(p->b_length)) return fem_fail(FEM_BAD_INPUT, "nnls: the right-hand side is not finite");
    for (int j = 0; j < n; j++) {
        double norm2 = p->G[(size_t)j * (size_t)(n + 1)];
        if (!isfinite(norm2)) return fem_fail(FEM_BAD_INPUT, "nnls: column %d is not finite", j);
        p->length[j] = sqrt(norm2);
        const double *a = p->A + (size_t)j * (size_t)p->lda;
        p->c[j] = norm2 > 0 && p->b_length > 0 ? dense_dot(p->m, a, p->b) / (p->length[j] * p->b_length) : 0;
    }
    for (int j = 0; j < n; j++)
        for (int i = 0; i <= j; i++) {
            double g = p->length[i] > 0 && p->length[j] > 0
                           ? p->G[(size_t)j * (size_t)n + (size_t)i] / (p->length[i] * p->length[j])
                           : 0;
            p->G[(size_t)j * (size_t)n + (size_t)i] = p->G[(size_t)i * (size_t)n + (size_t)j] = i == j ? 1 : g;
        }
    return FEM_OK;
}

// ---- block principal pivoting
// ----------------------------------------------------------------------------------------

// x of the free entries from their equations, y of the others. False when the factorisation fails.
static bool solve_free(nnls_problem *p, int count) {
    int n = p->n;
    for (int j = 0; j < count; j++) {
        const double *g = p->G + (size_t)p->free_columns[j] * (size_t)n;
        for (int i = j; i < count; i++) p->factor[(size_t)j * (size_t)count + (size_t)i] = g[p->free_columns[i]];
        p->part[j] = p->c[p->free_columns[j]];
    }
    if (count > 0 && dense_cholesky(count, p->factor) != FEM_OK) return false;
    if (count > 0) dense_cholesky_solve(count, p->factor, 1, p->part);
    for (int i = 0; i < n; i++) p->x[i] = 0, p->y[i] = -p->c[i];
    for (int j = 0; j < count; j++) {
        p->x[p->free_columns[j]] = p->part[j];
        dense_axpy(n, p->part[j], p->G + (size_t)p->free_columns[j] * (size_t)n, p->y);
    }
    return true;
}

static bool is_infeasible(const nnls_problem *p, int i) {
    return p->is_free[i] ? p->x[i] < -1e-12 : p->y[i] < -1e-12 && p->length[i] > 0;
}

static bool block_pivoting(nnls_problem *p, int *iterations) {
    int n = p->n, fewest = n + 1, patience = BLOCK_PATIENCE;
    memset(p->is_free, 0, (size_t)n);
    if (!solve_free(p, 0)) return false;
    for (*iterations = 0; *iterations < BLOCK_ITERATIONS; (*iterations)++) {
        int wrong = 0, last = -1, count = 0;
        for (int i = 0; i < n; i++)
            if (is_infeasible(p, i)) wrong++, last = i;
        if (wrong == 0) return true;
        if (wrong < fewest)
            fewest = wrong, patience = BLOCK_PATIENCE;
        else
            patience--;
        for (int i = 0; i < n; i++) {
            bool exchange = patience >= 0 ? is_infeasible(p, i) : i == last;
            if (exchange) p->is_free[i] ^= 1;
        }
        for (int i = 0; i < n; i++)
            if (p->is_free[i]) p->free_columns[count++] = i;
        if (!solve_free(p, count)) return false;
    }
    return false;
}

// ---- Lawson and Hanson ----------------------------------------------------------------------------------------------

// The entry that gains most, of those that are zero; -1 when none does.
static int steepest(const nnls_problem *p, double tolerance) {
    int    best = -1;
    double most = tolerance;
    for (int i = 0; i < p->n; i++)
        if (!p->is_free[i] && -p->y[i] > most) most = -p->y[i], best = i;
    return best;
}

static void gradient_of(nnls_problem *p, const active_set *set) {
    int n = p->n;
    for (int i = 0; i < n; i++) p->y[i] = -p->c[i];
    for (int k = 0; k < set->count; k++) dense_axpy(n, set->x[k], p->G + (size_t)set->column[k] * (size_t)n, p->y);
}

// is_free: 1 in use, 2 left out for now because it depends on those in use or would not be positive
static bool lawson_hanson(nnls_problem *p, int most, double tolerance, int *iterations) {
    active_set set;
    int        n = p->n;
    bool       converged = false;
    active_set_place(&set, n, p->factor);
    memset(p->is_free, 0, (size_t)n);
    gradient_of(p, &set);
    for (*iterations = 0; *iterations < most; (*iterations)++) {
        int j = steepest(p, tolerance);
        if (j < 0) {
            converged = true;
            break;
        }
        const double *g = p->G + (size_t)j * (size_t)n;
        for (int k = 0; k < set.count; k++) p->part[k] = g[set.column[k]];
        p->is_free[j] = 2;
        if (!active_set_append(&set, j, p->part, 1, p->c[j], INDEPENDENT)) continue;
        bool dropped = active_set_settle(&set) > 0, kept = set.count > 0 && set.column[set.count - 1] == j;
        if (!kept && !dropped) continue;
        for (int i = 0; i < n; i++) p->is_free[i] = kept ? 0 : p->is_free[i] == 2 ? 2 : 0;
        for (int k = 0; k < set.count; k++) p->is_free[set.column[k]] = 1;
        gradient_of(p, &set);
    }
    for (int i = 0; i < n; i++) p->x[i] = 0;
    for (int k = 0; k < set.count; k++) p->x[set.column[k]] = set.x[k];
    return converged;
}

// ---- the whole ------------------------------------------------------------------------------------------------------

// residual = b - A x and y = -A^T residual, in units of the scaled problem
static void true_gradient(nnls_problem *p) {
    memcpy(p->residual, p->b, (size_t)p->m * sizeof *p->residual);
    for (int j = 0; j < p->n; j++)
        if (p->x[j] > 0)
            dense_axpy(p->m, -p->x[j] * p->b_length / p->length[j], p->A + (size_t)j * (size_t)p->lda, p->residual);
    for (int j = 0; j < p->n; j++)
        p->y[j] = p->length[j] > 0
                      ? -dense_dot(p->m, p->A + (size_t)j * (size_t)p->lda, p->residual) / (p->length[j] * p->b_length)
                      : 0;
}

static double violation_of(const nnls_problem *p) {
    double worst = 0;
    for (int i = 0; i < p->n; i++) worst = fmax(worst, p->x[i] > 0 ? fabs(p->y[i]) : -p->y[i]);
    return worst;
}

// One step on the positive entries with the true gradient; kept when it stays feasible.
static void refine(nnls_problem *p) {
    int count = 0;
    for (int i = 0; i < p->n; i++)
        if (p->x[i] > 0) p->free_columns[count++] = i;
    if (count == 0) return;
    for (int j = 0; j < count; j++) {
        for (int i = j; i < count; i++)
            p->factor[(size_t)j * (size_t)count + (size_t)i] =
                p->G[(size_t)p->free_columns[j] * (size_t)p->n + (size_t)p->free_columns[i]];
        p->part[j] = -p->y[p->free_columns[j]];
    }
    if (dense_cholesky(count, p->factor) != FEM_OK) return;
    dense_cholesky_solve(count, p->factor, 1, p->part);
    for (int j = 0; j < count; j++)
        if (!(p->x[p->free_columns[j]] + p->part[j] > 0)) return;
    for (int j = 0; j < count; j++) p->x[p->free_columns[j]] += p->part[j];
    true_gradient(p);
}

fem_status cubature_nnls(int m, int n, const double *A, int lda, const double *b, const cubature_nnls_options *options,
                         double *x, double *work, cubature_nnls_report *report) {
    nnls_problem         p = {.m = m, .n = n, .lda = lda, .A = A, .b = b};
    cubature_nnls_report r = {0};
    if (m < 1 || n < 1 || lda < m)
        return fem_fail(FEM_BAD_INPUT, "nnls: %d equations, %d unknowns, expected >= 1", m, n);
    place(&p, work);
    fem_status status = make_gram(&p);
    if (status != FEM_OK) return status;
    bool converged = false;
    if (p.b_length == 0) {
        memset(p.x, 0, (size_t)n * sizeof *p.x);
        memset(p.y, 0, (size_t)n * sizeof *p.y);
        memset(p.residual, 0, (size_t)m * sizeof *p.residual);
        converged = true;
    } else {
        if (options->method != CUBATURE_NNLS_LAWSON_HANSON) converged = block_pivoting(&p, &r.iterations);
        if (!converged && options->method != CUBATURE_NNLS_BLOCK_PIVOTING) {
            int most = options->most_iterations > 0 ? options->most_iterations : 3 * n + 30;
            r.fallback = options->method == CUBATURE_NNLS_AUTOMATIC;
            converged = lawson_hanson(&p, most, fmin(1e-12, options->tolerance), &r.iterations);
        }
        for (int i = 0; i < n; i++) p.x[i] = fmax(p.x[i], 0);
        true_gradient(&p);
        refine(&p);
        r.residual = dense_norm(m, p.residual) / p.b_length;
        r.violation = violation_of(&p);
    }
    for (int i = 0; i < n; i++) {
        x[i] = p.x[i] > 0 ? p.x[i] * p.b_length / p.length[i] : 0;
        r.positive += x[i] > 0;
    }
    if (report) *report = r;
    if (!converged || !(r.violation <= options->tolerance))
        return fem_fail(
            FEM_NO_CONVERGENCE,
            "nnls of %d equations and %d unknowns: after %d iterations the optimality conditions are missed "
            "by %.1e, tolerance %g",
            m, n, r.iterations, r.violation, options->tolerance);
    return FEM_OK;
}
