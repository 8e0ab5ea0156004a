// Modal and inertia derivatives. The right-hand sides of a block of columns are made in one sweep over the elements,
// straight into the pool, and solved there: beside the pool and the factor only the sweep needs memory.
#include "libmodes/internal.h"

#include <limits.h>
#include <string.h>

enum { BLOCK = 64, SOURCES = 16 }; // pairs at a time; of higher order: columns of the order below at a time

modes_derivative_options modes_derivative_default_options(void) {
    return (modes_derivative_options){
        .kind = MODES_DERIVATIVE_MODAL, .order = 1, .linear = true, .tolerance = 1e-10, .iterations = 500};
}

// ---- pools ---------------------------------------------------------------------------------------------------------

void modes_pool_destroy(modes_pool *pool) {
    fem_free(pool->X);
    fem_free(pool->origin);
    *pool = (modes_pool){0};
}

static fem_status allocate_pool(modes_pool *pool, int n, int count) {
    *pool = (modes_pool){.n = n, .count = count};
    size_t rows = (size_t)n, columns = (size_t)count;
    pool->X = rows > 0 && columns > SIZE_MAX / rows ? NULL : fem_alloc(rows * columns, sizeof *pool->X);
    pool->origin = fem_calloc(columns, sizeof *pool->origin);
    if (pool->X && pool->origin) return FEM_OK;
    modes_pool_destroy(pool);
    return fem_fail(FEM_NO_MEMORY, "no memory for %d candidates of %d degrees of freedom", count, n);
}

static fem_status copy_pool(modes_pool *result, int n, int count, const double *X, int order) {
    modes_pool pool;
    if (n < 1 || count < 1)
        return fem_fail(FEM_BAD_INPUT, "a pool of %d candidates with %d rows, expected at least one of each", count, n);
    fem_status status = allocate_pool(&pool, n, count);
    if (status != FEM_OK) return status;
    memcpy(pool.X, X, (size_t)n * (size_t)count * sizeof *X);
    for (int j = 0; j < count; j++) pool.origin[j] = (modes_origin){.order = order, .mode = {j}};
    modes_pool_destroy(result);
    *result = pool;
    return FEM_OK;
}

fem_status modes_pool_from_basis(modes_pool *pool, const modes_basis *basis) {
    return copy_pool(pool, basis->n, basis->r, basis->U, 0);
}

fem_status modes_pool_from_shapes(modes_pool *pool, int n, int count, const double *X) {
    return copy_pool(pool, n, count, X, -1);
}

// ---- options and counts --------------------------------------------------------------------------------------------

static fem_status check_options(const modes_derivative_options *o, const modes_basis *basis) {
    if (o->order < 1 || o->order > MODES_MOST_ORDER)
        return fem_fail(FEM_BAD_INPUT, "derivatives.order is %d, expected 1 to %d", o->order, MODES_MOST_ORDER);
    if (o->order > 1 && o->kind != MODES_DERIVATIVE_INERTIA)
        return fem_fail(FEM_BAD_INPUT, "derivatives.order is %d, but only inertia derivatives go beyond order 1",
                        o->order);
    for (int k = 0; k < o->order; k++)
        if (o->modes[k] < 0 || o->modes[k] > basis->r)
            return fem_fail(FEM_BAD_INPUT, "derivatives.modes[%d] is %d, but the basis has %d modes", k, o->modes[k],
                            basis->r);
    if (o->pairs && (o->pair_count < 1 || o->order > 1))
        return fem_fail(FEM_BAD_INPUT, "%d chosen pairs at order %d, expected at least one, at order 1", o->pair_count,
                        o->order);
    for (int p = 0; o->pairs && p < o->pair_count; p++)
        if (o->pairs[p].a < 0 || o->pairs[p].a >= basis->r || o->pairs[p].b < 0 || o->pairs[p].b >= basis->r)
            return fem_fail(FEM_BAD_INPUT, "derivatives.pairs[%d] is (%d, %d), but the basis has %d modes", p,
                            o->pairs[p].a, o->pairs[p].b, basis->r);
    if (o->kind == MODES_DERIVATIVE_TANGENT && !(o->tolerance > 0 && o->tolerance < 1))
        return fem_fail(FEM_BAD_INPUT, "derivatives.tolerance is %g, expected 0 < tolerance < 1", o->tolerance);
    if (o->kind == MODES_DERIVATIVE_TANGENT && o->iterations < 1)
        return fem_fail(FEM_BAD_INPUT, "derivatives.iterations is %d, expected > 0", o->iterations);
    return FEM_OK;
}

static int modes_of_order(const modes_derivative_options *o, const modes_basis *basis, int order) {
    int limit = basis->r; // what takes no part in a lower order cannot in a higher one
    for (int k = 0; k < order; k++)
        if (o->modes[k] > 0 && o->modes[k] < limit) limit = o->modes[k];
    return limit;
}

fem_status modes_derivative_counts(const modes_derivative_options *o, const modes_basis *basis,
                                   int counts[MODES_MOST_ORDER + 1], double *bytes) {
    double     exact[MODES_MOST_ORDER + 1] = {0}, total = 0;
    fem_status status = check_options(o, basis);
    if (status != FEM_OK) return status;
    exact[0] = o->linear ? basis->r : 0;
    for (int k = 1; k <= o->order; k++) {
        double m = modes_of_order(o, basis, k);
        exact[k] = o->kind == MODES_DERIVATIVE_TANGENT ? m * m : m * (m + 1) / 2;
        for (int l = 1; l < k; l++) exact[k] *= m; // each order below, of these modes alone, times m
        if (o->pairs) exact[k] = o->pair_count;
    }
    for (int k = 0; k <= MODES_MOST_ORDER; k++) total += exact[k];
    *bytes = total * basis->n * (double)sizeof(double);
    if (total > INT_MAX || (o->max_bytes > 0 && *bytes > o->max_bytes))
        return fem_fail(FEM_BAD_INPUT,
                        "%.0f derivatives of order %d take %.3g GB, more than the limit of %.3g GB; fewer modes, a "
                        "lower order, or this order of the lowest modes alone would do",
                        exact[o->order], o->order, *bytes * 1e-9,
                        1e-9 * (total > INT_MAX ? INT_MAX * (double)sizeof(double) * basis->n : o->max_bytes));
    for (int k = 0; k <= MODES_MOST_ORDER; k++) counts[k] = (int)exact[k];
    return FEM_OK;
}

// ---- the work ------------------------------------------------------------------------------------------------------

typedef struct derivation {
    const modes_problem            *problem;
    const fem_body                 *body;
    modes_inverse                  *inverse;
    modes_tangent                  *tangent; // for tangent derivatives
    const modes_basis              *basis;
    const modes_derivative_options *options;
    const fem_progress             *progress;
    modes_pool                      pool;
    modes_derivative_report         report;
    int                             done; // columns of the pool
} derivation;

// (H : u_a) x_b for a list of pairs into the next columns of the pool, then K^-1 times them, with a sign.
static fem_status derive_pairs(derivation *d, int b_columns, const double *B, int pairs, const fem_pair *pair,
                               double sign) {
    fem_status status = FEM_OK;
    size_t     n = (size_t)d->pool.n;
    double    *X = d->pool.X + (size_t)d->done * n, begin = fem_seconds();
    FEM_TRY(fem_progress_report(d->progress, "derivatives", d->done / (double)d->pool.count));
    FEM_TRY(fem_body_second_pairs(d->body, d->basis->r, d->basis->U, b_columns, B, pairs, pair, X));
    for (size_t i = 0; sign < 0 && i < (size_t)pairs * n; i++) X[i] = -X[i];
    double middle = fem_seconds();
    d->report.seconds_right += middle - begin;
    if (d->options->kind == MODES_DERIVATIVE_TANGENT)
        FEM_TRY(modes_tangent_solve(d->tangent, pairs, pair, X));
    else
        FEM_TRY(modes_inverse_solve(d->inverse, pairs, X, X));
    d->report.seconds_solve += fem_seconds() - middle;
    d->done += pairs;
done:
    return status;
}

// All i <= j row by row, or all i, j.
static void list_pairs(int modes, bool symmetric, fem_pair *pairs) {
    for (int i = 0; i < modes; i++)
        for (int j = symmetric ? i : 0; j < modes; j++) *pairs++ = (fem_pair){.a = i, .b = j};
}

static fem_status first_order(derivation *d) {
    fem_status                      status = FEM_OK;
    const modes_derivative_options *o = d->options;
    int                             count = d->report.counts[1];
    fem_pair                       *pairs = fem_alloc((size_t)count, sizeof *pairs);
    if (!pairs) return fem_fail(FEM_NO_MEMORY, "no memory for %d pairs of modes", count);
    if (o->pairs)
        memcpy(pairs, o->pairs, (size_t)count * sizeof *pairs);
    else
        list_pairs(modes_of_order(o, d->basis, 1), o->kind != MODES_DERIVATIVE_TANGENT, pairs);
    for (int k = 0; k < count; k++)
        d->pool.origin[d->done + k] = (modes_origin){.order = 1, .mode = {pairs[k].a, pairs[k].b}};
    for (int k = 0; k < count; k += BLOCK)
        FEM_TRY(derive_pairs(d, d->basis->r, d->basis->U, count - k < BLOCK ? count - k : BLOCK, pairs + k,
                             o->kind == MODES_DERIVATIVE_INERTIA ? 1 : -1));
done:
    fem_free(pairs);
    return status;
}

static bool made_of(const modes_origin *origin, int modes) {
    for (int k = 0; k <= origin->order; k++)
        if (origin->mode[k] >= modes) return false;
    return true;
}

// Order k from the columns `first` .. `end` of order k-1: those that are made of the lowest modes alone, SOURCES at a
// time, each with all of those modes.
static fem_status higher_order(derivation *d, int order, int first, int end) {
    fem_status status = FEM_OK;
    size_t     n = (size_t)d->pool.n;
    int        modes = modes_of_order(d->options, d->basis, order), sources = 0;
    double    *B = fem_alloc(n * SOURCES, sizeof *B);
    fem_pair  *pairs = fem_alloc(SOURCES * (size_t)modes, sizeof *pairs);
    if (!B || !pairs) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for derivatives of order %d of %d modes", order, modes);
        goto done;
    }
    for (int column = first; column < end; column++) {
        const modes_origin *origin = &d->pool.origin[column];
        if (made_of(origin, modes)) {
            for (int l = 0; l < modes; l++) {
                int           p = sources * modes + l;
                modes_origin *made = &d->pool.origin[d->done + p];
                pairs[p] = (fem_pair){.a = l, .b = sources};
                *made = *origin;
                made->order = order, made->mode[order] = l;
            }
            memcpy(B + (size_t)sources++ * n, d->pool.X + (size_t)column * n, n * sizeof *B);
        }
        if (sources == SOURCES || (column == end - 1 && sources > 0)) {
            FEM_TRY(derive_pairs(d, sources, B, sources * modes, pairs, 1));
            sources = 0;
        }
    }
done:
    fem_free(B), fem_free(pairs);
    return status;
}

static fem_status derive_all(derivation *d) {
    fem_status status = FEM_OK;
    int        first = 0;
    FEM_TRY(allocate_pool(&d->pool, d->basis->n,
                          d->report.counts[0] + d->report.counts[1] + d->report.counts[2] + d->report.counts[3]));
    for (int j = 0; j < d->report.counts[0]; j++) d->pool.origin[j] = (modes_origin){.mode = {j}};
    memcpy(d->pool.X, d->basis->U, (size_t)d->report.counts[0] * (size_t)d->pool.n * sizeof *d->pool.X);
    d->done = d->report.counts[0];
    for (int order = 1; order <= d->options->order; order++) {
        int begin = d->done;
        FEM_TRY(order == 1 ? first_order(d) : higher_order(d, order, first, begin));
        first = begin;
    }
done:
    return status;
}

fem_status modes_derivatives(const modes_problem *problem, const fem_body *body, modes_inverse *inverse,
                             const modes_basis *basis, const modes_derivative_options *options,
                             const fem_progress *progress, modes_pool *pool, modes_derivative_report *report) {
    fem_status     status = FEM_OK;
    modes_inverse *own = NULL;
    derivation     d = {
            .problem = problem, .body = body, .inverse = inverse, .basis = basis, .options = options, .progress = progress};
    FEM_TRY(modes_derivative_counts(options, basis, d.report.counts, &d.report.bytes));
    if (basis->n != 3 * problem->mesh->vertex_count ||
        fem_body_mesh(body)->vertex_count != problem->mesh->vertex_count) {
        status = fem_fail(FEM_BAD_INPUT, "a basis with %d rows and a body of %d vertices for a problem of %d vertices",
                          basis->n, fem_body_mesh(body)->vertex_count, problem->mesh->vertex_count);
        goto done;
    }
    if (!inverse) {
        FEM_TRY(modes_inverse_create(&own, problem, MODES_BORDER_MASS));
        d.inverse = own;
    }
    if (options->kind == MODES_DERIVATIVE_TANGENT)
        FEM_TRY(modes_tangent_create(&d.tangent, problem, d.inverse, basis, options, &d.report));
    FEM_TRY(derive_all(&d));
    modes_pool_destroy(pool);
    *pool = d.pool;
    d.pool = (modes_pool){0};
    if (report) *report = d.report;
done:
    modes_pool_destroy(&d.pool);
    modes_tangent_destroy(d.tangent);
    modes_inverse_destroy(own);
    return status;
}
