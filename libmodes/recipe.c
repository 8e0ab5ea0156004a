// Linear modes, derivatives and condensing, one after the other on one factorisation.
#include "libmodes/krylov_internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

modes_recipe modes_default_recipe(modes_method method) {
    return (modes_recipe){.method = method,
                          .kind = method == MODES_KRYLOV ? MODES_DERIVATIVE_INERTIA : MODES_DERIVATIVE_MODAL,
                          .linear = 12,
                          .derivatives = 1,
                          .count = 30,
                          .energy = 1,
                          .scaling = MODES_SCALE_FREQUENCY,
                          .distance = 1e-3,
                          .krylov = modes_krylov_default_options(),
                          .inverse = modes_inverse_default_options()};
}

fem_status modes_recipe_check(const modes_recipe *r) {
    int most = r->kind == MODES_DERIVATIVE_INERTIA ? MODES_MOST_ORDER : 1;
    if (r->count < 1) return fem_fail(FEM_BAD_INPUT, "modes.count is %d, expected > 0", r->count);
    if (r->derivatives < 0 || r->derivatives > most)
        return fem_fail(FEM_BAD_INPUT, "modes.derivatives is %d, expected 0 to %d for derivatives of this kind%s",
                        r->derivatives, most, most == 1 ? "; those of inertia go to 3" : "");
    if (r->derivatives > 0 && r->kind == MODES_DERIVATIVE_TANGENT && r->method != MODES_LANCZOS)
        return fem_fail(FEM_BAD_INPUT, "tangent derivatives are those of vibration modes, expected Lanczos modes");
    if (r->derivatives > 0 && r->linear < 1)
        return fem_fail(FEM_BAD_INPUT, "modes.linear is %d, expected > 0", r->linear);
    if (r->derivatives > 0 && r->keep && r->linear > r->count)
        return fem_fail(FEM_BAD_INPUT, "modes.linear is %d, expected at most the %d of modes.count, where all are kept",
                        r->linear, r->count);
    if (r->derivatives > 0 && r->keep && r->scaling != MODES_SCALE_FREQUENCY)
        return fem_fail(FEM_BAD_INPUT,
                        "modes.scaling is %d, expected scaling by frequency, where all linear modes are "
                        "kept",
                        (int)r->scaling);
    if (!(r->energy > 0 && r->energy <= 1))
        return fem_fail(FEM_BAD_INPUT, "modes.energy is %g, expected > 0 and <= 1", r->energy);
    if (!(r->distance >= 0 && r->distance < 1))
        return fem_fail(FEM_BAD_INPUT, "modes.distance is %g, expected 0 <= distance < 1", r->distance);
    return FEM_OK;
}

// Takes from x, of `count` columns, what the first k columns of Q (mass-orthonormal) have of it.
static void project_out(const modes_problem *problem, int n, int k, const double *Q, int count, double *X, double *work,
                        double *c) {
    for (int pass = 0; pass < 2 && k > 0; pass++) {
        fem_sparse_multiply(problem->M, count, X, work);
        dense_gemm(true, false, k, count, n, 1, Q, work, 0, c);
        dense_gemm(false, false, n, count, k, -1, Q, c, 1, X);
    }
}

static double mass_norm(const modes_problem *problem, int n, const double *x, double *work) {
    fem_sparse_multiply(problem->M, 1, x, work);
    return sqrt(fmax(0, dense_dot(n, x, work)));
}

// X = K^-1 K x of the given fields and their energies E = X^T K X; B is work space like X.
static fem_status given_responses(const modes_problem *problem, const modes_recipe *recipe, modes_inverse *inverse,
                                  int n, double *X, double *B, double *E) {
    int g = recipe->given_count;
    fem_sparse_multiply(problem->K, g, recipe->given, B);
    fem_status status = modes_inverse_solve(inverse, g, B, X);
    if (status != FEM_OK) return status;
    for (int k = recipe->given_first; k < g; k++) dense_scale(n, sqrt(recipe->given_rest), X + (size_t)k * (size_t)n);
    fem_sparse_multiply(problem->K, g, X, B);
    dense_gemm(true, false, g, g, n, 1, X, B, 0, E);
    for (int i = 0; i < g; i++)
        for (int j = 0; j < i; j++) E[i * g + j] = E[j * g + i] = 0.5 * (E[i * g + j] + E[j * g + i]);
    return FEM_OK;
}

// Principal directions, in energy, of the responses to the given fields: into X, *kept of them.
static fem_status given_directions(const modes_problem *problem, const modes_recipe *recipe, modes_inverse *inverse,
                                   int n, double *X, int *kept) {
    fem_status status = FEM_OK;
    int        g = recipe->given_count;
    size_t     size = (size_t)n * (size_t)g;
    double    *B = fem_alloc(size, sizeof *B), *E = fem_alloc((size_t)g * (size_t)g, sizeof *E);
    double    *values = fem_alloc((size_t)g, sizeof *values);
    if (!B || !E || !values) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d fields", g);
        goto done;
    }
    FEM_TRY(given_responses(problem, recipe, inverse, n, X, B, E));
    FEM_TRY(dense_symmetric_eigen(g, E, values));
    *kept = 0;
    while (*kept < g && *kept < recipe->given_most && values[g - 1 - *kept] > recipe->given_share) ++*kept;
    for (int k = 0; k < *kept; k++) dense_gemv_set(n, g, 1, X, E + (g - 1 - k) * g, B + (size_t)k * (size_t)n);
    memcpy(X, B, (size_t)n * (size_t)*kept * sizeof *X);
done:
    fem_free(B), fem_free(E), fem_free(values);
    return status;
}

// How many directions of the first `fields` hold more than `share`. values, work: given_count, and its square
static fem_status count_directions(int all, int fields, const double *E, double share, double *values, double *work,
                                   int *found) {
    for (int i = 0; i < fields; i++) memcpy(work + i * fields, E + i * all, (size_t)fields * sizeof *work);
    fem_status status = dense_symmetric_eigen(fields, work, values);
    *found = 0;
    while (status == FEM_OK && *found < fields && values[fields - 1 - *found] > share) ++*found;
    return status;
}

// More linear modes where all directions of the given fields and two others would not fit: spare ones, and for those
// that the fields cannot do without, those of derivatives. Where that is not enough and what would be missing is large,
// the last fields are left out, so that the first come out right.
enum { MISSED = 10 }; // times given_need
static fem_status make_room(const modes_problem *problem, modes_recipe *recipe, modes_inverse *inverse) {
    fem_status status = FEM_OK;
    int        n = 3 * problem->mesh->vertex_count, g = recipe->given_count, kept = 0, needed = 0;
    int        linear = recipe->derivatives > 0 ? recipe->linear : recipe->count;
    size_t     size = (size_t)n * (size_t)g, square = (size_t)g * (size_t)g;
    double    *X = fem_alloc(size, sizeof *X), *B = fem_alloc(size, sizeof *B), *E = fem_alloc(square, sizeof *E);
    double    *work = fem_alloc(square, sizeof *work), *values = fem_alloc((size_t)g, sizeof *values);
    if (!X || !B || !E || !work || !values) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d fields", g);
        goto done;
    }
    FEM_TRY(given_responses(problem, recipe, inverse, n, X, B, E));
    FEM_TRY(count_directions(g, g, E, recipe->given_share, values, work, &kept));
    int more = kept + 2 - linear;
    if (more < kept - recipe->given_most) more = kept - recipe->given_most;
    more = more < recipe->given_spare ? more : recipe->given_spare;
    if (more > 0) recipe->linear += more, recipe->count += more, recipe->given_most += more;
    if (!(recipe->given_need > 0)) goto done;
    for (int many = 1; many > 0;) {
        FEM_TRY(count_directions(g, recipe->given_count, E, MISSED * recipe->given_need, values, work, &many));
        many -= recipe->count;
        if (many > 0) recipe->given_count--;
    }
    FEM_TRY(count_directions(g, recipe->given_count, E, recipe->given_need, values, work, &needed));
    if (needed > recipe->count) needed = recipe->count;
    if (needed > recipe->given_most) recipe->given_most = needed;
    if (needed > recipe->linear) recipe->linear = needed;
    if (recipe->linear >= recipe->count) recipe->derivatives = 0;
done:
    fem_free(X), fem_free(B), fem_free(E), fem_free(work), fem_free(values);
    return status;
}

static const double EQUAL = 1e-3; // relative difference of squared frequencies that count as one

// The first of the modes whose frequency counts as that of mode k
static int first_equal(const modes_basis *linear, int k) {
    while (k > 0 && linear->omega2[k - 1] > (1 - EQUAL) * linear->omega2[k]) k--;
    return k;
}

// Of `count` columns of X the combination of unit length that has most mass: into x, its norm.
static fem_status largest_combination(int n, int count, const double *X, const double *MX, double *x, double *norm) {
    fem_status status = FEM_OK;
    double    *G = fem_alloc((size_t)count * (size_t)(count + 1), sizeof *G), *values = G + count * count;
    if (!G) return fem_fail(FEM_NO_MEMORY, "no memory for %d modes", count);
    dense_gemm(true, false, count, count, n, 1, X, MX, 0, G);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++) G[i * count + j] = G[j * count + i] = 0.5 * (G[i * count + j] + G[j * count + i]);
    FEM_TRY(dense_symmetric_eigen(count, G, values));
    *norm = sqrt(fmax(0, values[count - 1]));
    dense_gemv_set(n, count, 1, X, G + (count - 1) * count, x);
done:
    fem_free(G);
    return status;
}

// The given fields first, then of the modes those that add most, by their mass over squared frequency, up to as many
// columns as there were; then a Ritz step. Modes of equal frequency may come in any combination: of these the one that
// adds most is taken, so that rounding decides nothing.
static fem_status put_given_first(const modes_problem *problem, const modes_recipe *recipe, modes_inverse *inverse,
                                  modes_basis *basis) {
    fem_status status = FEM_OK;
    int        n = basis->n, r = basis->r, kept = 0, found = 0, g = recipe->given_count;
    size_t     length = (size_t)n, most = (size_t)(g > r ? g : r);
    double    *X = fem_alloc(length * (size_t)g, sizeof *X), *Q = fem_alloc(length * (size_t)r, sizeof *Q);
    double    *work = fem_alloc(length * most, sizeof *work), *c = fem_alloc(most * most, sizeof *c);
    double    *trial = fem_alloc(length, sizeof *trial), *MU = fem_alloc(length * (size_t)r, sizeof *MU);
    if (!X || !Q || !work || !c || !trial || !MU) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d modes", r);
        goto done;
    }
    FEM_TRY(given_directions(problem, recipe, inverse, n, X, &kept));
    for (int k = 0; k < kept && found < r; k++) {
        double *x = X + length * (size_t)k, before = mass_norm(problem, n, x, work);
        project_out(problem, n, found, Q, 1, x, work, c);
        double after = mass_norm(problem, n, x, work);
        if (!(after > 1e-8 * before)) continue;
        memcpy(Q + length * (size_t)found, x, length * sizeof *x);
        dense_scale(n, 1 / after, Q + length * (size_t)found++);
    }
    project_out(problem, n, found, Q, r, basis->U, work, c);
    fem_sparse_multiply(problem->M, r, basis->U, MU);
    while (found < r) {
        double score = 0, *next = Q + length * (size_t)found;
        for (int first = 0, end; first < r; first = end) {
            double norm = 0, x2 = fmax(basis->omega2[first], 1e-300);
            size_t at = length * (size_t)first;
            for (end = first + 1; end < r && first_equal(basis, end) == first;) end++;
            FEM_TRY(largest_combination(n, end - first, basis->U + at, MU + at, trial, &norm));
            if (!(norm > 1e-5 && norm / x2 > score)) continue;
            score = norm / x2;
            memcpy(next, trial, length * sizeof *trial);
            dense_scale(n, 1 / norm, next);
        }
        if (score == 0) break;
        project_out(problem, n, found++, Q, 1, next, work, c); // rounding, of what was subtracted
        dense_scale(n, 1 / mass_norm(problem, n, next, work), next);
        fem_sparse_multiply(problem->M, 1, next, work);
        dense_gemv_t_set(n, r, 1, MU, next, c); // U -= next (next^T M U)
        dense_gemm(false, false, n, r, 1, -1, next, c, 1, basis->U);
        dense_gemm(false, false, n, r, 1, -1, work, c, 1, MU);
    }
    if (found < r) { // cannot be: r columns are independent
        status = fem_fail(FEM_NO_CONVERGENCE, "modes: %d of %d are independent", found, r);
        goto done;
    }
    fem_sparse_multiply(problem->K, r, Q, work);
    dense_gemm(true, false, r, r, n, 1, Q, work, 0, c);
    for (int i = 0; i < r; i++)
        for (int j = 0; j < i; j++) c[i * r + j] = c[j * r + i] = 0.5 * (c[i * r + j] + c[j * r + i]);
    FEM_TRY(dense_symmetric_eigen(r, c, basis->omega2));
    dense_gemm(false, false, n, r, r, 1, Q, c, 0, basis->U);
done:
    fem_free(X), fem_free(Q), fem_free(work), fem_free(c), fem_free(trial), fem_free(MU);
    return status;
}

static fem_status linear_modes(const modes_problem *problem, const modes_recipe *recipe, modes_inverse *inverse,
                               const fem_progress *progress, modes_basis *basis, modes_recipe_report *report) {
    fem_status status = FEM_OK;
    int        count = recipe->derivatives > 0 ? recipe->linear : recipe->count;
    if (recipe->method == MODES_LANCZOS) {
        modes_lanczos_options options = modes_lanczos_default_options();
        options.count = count;
        options.inverse = inverse;
        return modes_lanczos(problem, &options, progress, basis, NULL);
    }
    modes_krylov_options options = recipe->krylov;
    options.count = count;
    options.inverse = inverse;
    options.ritz = true; // derivatives are weighed by frequency
    FEM_TRY(modes_krylov(problem, &options, progress, basis, &report->krylov));
    fem_free(report->krylov.rayleigh);
    fem_free(report->krylov.residuals);
    report->krylov.rayleigh = report->krylov.residuals = NULL;
    if (recipe->given_count > 0) FEM_TRY(put_given_first(problem, recipe, inverse, basis));
done:
    return status;
}

static modes_derivative_options derivative_options(const modes_recipe *recipe) {
    modes_derivative_options options = modes_derivative_default_options();
    options.kind = recipe->kind;
    options.order = recipe->derivatives;
    options.linear = !recipe->keep;
    memcpy(options.modes, recipe->modes, sizeof options.modes);
    return options;
}

static modes_condense_options condensing(const modes_recipe *recipe, modes_scaling scaling, int candidates) {
    modes_condense_options options = modes_condense_default_options();
    options.method = recipe->condense;
    options.scaling = scaling;
    options.metric = recipe->metric;
    options.r = recipe->count < candidates ? recipe->count : candidates;
    options.energy = recipe->energy < 1 ? recipe->energy : 0;
    return options;
}

// The number behind `name` at the beginning of a line of a small system file; INFINITY where there is none.
static double system_number(const char *path, const char *name) {
    char   line[256];
    double number = INFINITY;
    FILE  *file = fopen(path, "r");
    if (!file) return number;
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0 && sscanf(line + strlen(name), "%lf", &number) == 1) break;
    fclose(file);
    return number;
}

// Bytes that the system could still give: of its memory, within the limits of the process and of its container.
// INFINITY where it does not say.
static double available_memory(void) {
    struct rlimit limit;
    double        held = (double)fem_memory_bytes();
    double        available = 1024 * system_number("/proc/meminfo", "MemAvailable:");
    available = fmin(available, system_number("/sys/fs/cgroup/memory.max", "") - held); // "max": no limit
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        available = fmin(available, (double)limit.rlim_cur - held);
    return fmax(available, 0);
}

// Linear modes with their derivatives, the bytes that they take, and those that condensing them takes besides.
static fem_status find_sizes(const modes_recipe *recipe, int n, int *solves, int *candidates, double *pool,
                             double *condense) {
    fem_status               status = FEM_OK;
    int                      counts[MODES_MOST_ORDER + 1];
    modes_basis              linear = {.n = n, .r = recipe->linear};
    modes_derivative_options options = derivative_options(recipe);
    *solves = recipe->derivatives > 0 ? recipe->linear : recipe->count;
    *candidates = 0;
    *pool = *condense = 0;
    if (recipe->derivatives == 0) return FEM_OK;
    FEM_TRY(modes_derivative_counts(&options, &linear, counts, pool));
    for (int k = 0; k <= recipe->derivatives; k++) *candidates += counts[k];
    for (int k = 1; k <= recipe->derivatives; k++) *solves += counts[k];
    modes_condense_options condensed = condensing(recipe, recipe->scaling, *candidates);
    FEM_TRY(modes_condense_size(&condensed, n, *candidates, condense));
done:
    return status;
}

fem_status modes_recipe_bytes(const modes_recipe *recipe, int n, int *solves, double *bytes) {
    int        candidates;
    double     pool, condense;
    fem_status status = find_sizes(recipe, n, solves, &candidates, &pool, &condense);
    if (status == FEM_OK) *bytes = pool + condense;
    return status;
}

// Do they fit into memory?
static fem_status check_size(const modes_recipe *recipe, int n, int *solves) {
    int        candidates;
    double     pool, condense;
    fem_status status = find_sizes(recipe, n, solves, &candidates, &pool, &condense);
    if (status != FEM_OK || recipe->derivatives == 0) return status;
    double available = recipe->max_bytes > 0 ? recipe->max_bytes : available_memory();
    if (pool + condense <= available) return FEM_OK;
    return fem_fail(FEM_BAD_INPUT,
                    "%d linear modes and derivatives up to order %d of %d degrees of freedom take %.3g GB, and %.3g GB "
                    "more to condense them, but there are only %.3g GB; fewer linear modes, a lower order, or higher "
                    "orders of the lowest modes alone would do",
                    candidates, recipe->derivatives, n, pool * 1e-9, condense * 1e-9, available * 1e-9);
}

static bool same_family(const modes_basis *linear, const modes_origin *a, const modes_origin *b) {
    if (a->order != b->order) return false;
    for (int k = 0; k <= a->order; k++)
        if (first_equal(linear, a->mode[k]) != first_equal(linear, b->mode[k])) return false;
    return true;
}

// Derivatives in the weights of MODES_SCALE_FREQUENCY, without what the linear modes have of them. Modes of equal
// frequency may come in any combination, and their derivatives with them; so those of one family, D_ij for all i and j
// of two frequencies, get one size, by the sum of their squares. (With each of them scaled to the same size, rounding
// decided which were kept.) A mixed one of the same family stands for D_ij and D_ji.
static fem_status weigh_and_project(const modes_problem *problem, const modes_basis *linear, modes_pool *pool) {
    fem_status status = FEM_OK;
    int        n = pool->n, r = linear->r;
    size_t     length = (size_t)n;
    double    *work = fem_alloc(length * MODES_PANEL, sizeof *work), *c = fem_alloc((size_t)r * MODES_PANEL, sizeof *c);
    double    *norm2 = fem_alloc((size_t)pool->count, sizeof *norm2);
    if (!work || !c || !norm2) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d derivatives", pool->count);
        goto done;
    }
    for (int j = 0; j < pool->count; j++) {
        const modes_origin *o = &pool->origin[j];
        if (o->order == 1 && o->mode[0] != o->mode[1] &&
            first_equal(linear, o->mode[0]) == first_equal(linear, o->mode[1]))
            dense_scale(n, sqrt(2.0), pool->X + length * (size_t)j);
    }
    for (int first = 0; first < pool->count; first += MODES_PANEL) {
        int     columns = pool->count - first < MODES_PANEL ? pool->count - first : MODES_PANEL;
        double *X = pool->X + length * (size_t)first;
        fem_sparse_multiply(problem->M, columns, X, work);
        for (int j = 0; j < columns; j++)
            norm2[first + j] = fmax(0, dense_dot(n, X + length * (size_t)j, work + length * (size_t)j));
    }
    for (int j = 0; j < pool->count; j++) {
        double *x = pool->X + length * (size_t)j, weight = 1, sum = 0, count = 0;
        for (int k = 0; k < pool->count; k++)
            if (same_family(linear, &pool->origin[j], &pool->origin[k])) sum += norm2[k], count++;
        for (int k = 0; k <= pool->origin[j].order; k++)
            weight *= linear->omega2[0] / linear->omega2[first_equal(linear, pool->origin[j].mode[k])];
        dense_scale(n, sum > 0 ? weight * sqrt(count / sum) : 0, x);
    }
    for (int first = 0; first < pool->count; first += MODES_PANEL) {
        int columns = pool->count - first < MODES_PANEL ? pool->count - first : MODES_PANEL;
        project_out(problem, n, r, linear->U, columns, pool->X + length * (size_t)first, work, c);
    }
done:
    fem_free(work), fem_free(c), fem_free(norm2);
    return status;
}

// The linear modes, then what PCA makes of the derivatives beside them; fewer columns where those span no more.
static fem_status fill_with_derivatives(const modes_problem *problem, const modes_recipe *recipe, modes_pool *pool,
                                        const fem_progress *progress, modes_basis *basis, modes_recipe_report *report) {
    fem_status            status = FEM_OK;
    modes_basis           rest = {0}, all = {0};
    modes_condense_report kept = {0};
    size_t                n = (size_t)basis->n, linear = (size_t)basis->r;
    int                   wanted = recipe->count - basis->r;
    FEM_TRY(weigh_and_project(problem, basis, pool));
    modes_condense_options options = condensing(recipe, MODES_SCALE_NONE, pool->count);
    options.r = wanted < pool->count ? wanted : pool->count;
    options.energy = recipe->condense == MODES_RANDOM_PROJECTION ? 0 : recipe->energy;
    FEM_TRY(modes_condense(problem, pool, NULL, &options, progress, &rest, &kept));
    FEM_TRY(modes_basis_allocate(&all, basis->n, basis->r + rest.r));
    memcpy(all.U, basis->U, n * linear * sizeof *all.U);
    memcpy(all.U + n * linear, rest.U, n * (size_t)rest.r * sizeof *all.U);
    memcpy(all.omega2, basis->omega2, linear * sizeof *all.omega2);
    memcpy(all.omega2 + linear, rest.omega2, (size_t)rest.r * sizeof *all.omega2);
    report->energy_kept = kept.energy_kept;
    modes_basis_destroy(basis);
    *basis = all, all = (modes_basis){0};
done:
    fem_free(kept.singular);
    modes_basis_destroy(&rest);
    modes_basis_destroy(&all);
    return status;
}

static fem_status add_derivatives(const modes_problem *problem, const fem_body *body, const modes_recipe *recipe,
                                  modes_inverse *inverse, const fem_progress *progress, modes_basis *basis,
                                  modes_recipe_report *report) {
    fem_status               status = FEM_OK;
    modes_pool               pool = {0};
    modes_basis              condensed = {0};
    modes_condense_report    kept = {0};
    modes_derivative_options options = derivative_options(recipe);
    double                   begun = fem_seconds();
    if (recipe->keep && basis->r >= recipe->count) return FEM_OK; // no room
    FEM_TRY(modes_derivatives(problem, body, inverse, basis, &options, progress, &pool, &report->derivatives));
    report->candidates = pool.count;
    report->seconds_derivatives = fem_seconds() - begun;
    if (pool.count + (recipe->keep ? basis->r : 0) < recipe->count) {
        status = fem_fail(FEM_BAD_INPUT,
                          "%d modes were asked for, but %d linear modes and their derivatives are only %d; more linear "
                          "modes or fewer modes would do",
                          recipe->count, basis->r, pool.count + (recipe->keep ? basis->r : 0));
        goto done;
    }
    begun = fem_seconds();
    if (recipe->keep) {
        FEM_TRY(fill_with_derivatives(problem, recipe, &pool, progress, basis, report));
    } else {
        modes_condense_options condense = condensing(recipe, recipe->scaling, pool.count);
        FEM_TRY(modes_condense(problem, &pool, basis->omega2, &condense, progress, &condensed, &kept));
        report->energy_kept = kept.energy_kept;
        modes_basis_destroy(basis);
        *basis = condensed;
    }
    report->seconds_condense = fem_seconds() - begun;
done:
    fem_free(kept.singular);
    modes_pool_destroy(&pool);
    return status;
}

fem_status modes_build(const modes_problem *problem, const fem_body *body, const modes_recipe *recipe,
                       modes_inverse *given, const fem_progress *progress, modes_basis *result,
                       modes_recipe_report *result_report) {
    fem_status          status = FEM_OK;
    modes_inverse      *inverse = given;
    modes_basis         basis = {0};
    modes_recipe_report report = {0};
    modes_supports      supports;
    double              begun = fem_seconds();
    FEM_TRY(modes_recipe_check(recipe));
    FEM_TRY(modes_check_body(problem, &supports));
    FEM_TRY(modes_check_count(&supports, recipe->derivatives > 0 ? recipe->linear : recipe->count));
    FEM_TRY(fem_progress_report(progress, "factorisation", 0));
    modes_inverse_options options = recipe->inverse;
    FEM_TRY(check_size(recipe, 3 * problem->mesh->vertex_count, &options.solves));
    if (options.method == MODES_INVERSE_AUTOMATIC && recipe->method == MODES_LANCZOS) // it needs more digits
        options.method = MODES_INVERSE_FACTOR;
    if (!inverse) FEM_TRY(modes_inverse_create_with(&inverse, problem, &options));
    report.seconds_factor = fem_seconds() - begun;
    begun = fem_seconds();
    modes_recipe own = *recipe;
    if (own.given_count > 0) FEM_TRY(make_room(problem, &own, inverse));
    FEM_TRY(linear_modes(problem, &own, inverse, progress, &basis, &report));
    report.seconds_linear = fem_seconds() - begun;
    if (own.derivatives > 0) FEM_TRY(add_derivatives(problem, body, &own, inverse, progress, &basis, &report));
    report.inverse = modes_inverse_get_report(inverse);
    report.free_dofs = report.inverse.free_dofs;
    report.rigid = report.inverse.rigid;
    modes_basis_destroy(result);
    *result = basis;
    basis = (modes_basis){0};
    if (result_report) *result_report = report;
done:
    if (!given) modes_inverse_destroy(inverse);
    modes_basis_destroy(&basis);
    return status;
}

fem_status modes_build_sketch(const modes_problem *problem, int count, const double *shapes, const modes_recipe *recipe,
                              modes_basis *basis, modes_recipe_report *report) {
    fem_status status = modes_recipe_check(recipe);
    if (status != FEM_OK) return status;
    int        n = 3 * problem->mesh->vertex_count, *chosen = NULL, chosen_count = 0;
    double     largest = 0, begun = fem_seconds();
    double    *kept = fem_alloc((size_t)n * (size_t)count, sizeof *kept), *Mx = fem_alloc((size_t)n, sizeof *Mx);
    modes_pool pool = {0};
    modes_condense_report condensed = {0};
    if (!kept || !Mx) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d shapes", count);
        goto done;
    }
    for (int j = 0; j < count; j++) {
        fem_sparse_multiply(problem->M, 1, shapes + (size_t)j * (size_t)n, Mx);
        largest = fmax(largest, sqrt(fmax(0, dense_dot(n, shapes + (size_t)j * (size_t)n, Mx))));
    }
    FEM_TRY(modes_select(problem->M, n, count, shapes, MODES_SELECT_FARTHEST, recipe->distance * largest, 0, &chosen,
                         &chosen_count));
    for (int j = 0; j < chosen_count; j++)
        memcpy(kept + (size_t)j * (size_t)n, shapes + (size_t)chosen[j] * (size_t)n, (size_t)n * sizeof *kept);
    FEM_TRY(modes_pool_from_shapes(&pool, n, chosen_count, kept));
    modes_condense_options options = condensing(recipe, MODES_SCALE_NONE, chosen_count);
    FEM_TRY(modes_condense(problem, &pool, NULL, &options, NULL, basis, &condensed));
    if (report)
        *report = (modes_recipe_report){.candidates = chosen_count,
                                        .energy_kept = condensed.energy_kept,
                                        .seconds_condense = fem_seconds() - begun};
done:
    fem_free(condensed.singular);
    fem_free(kept);
    fem_free(Mx);
    fem_free(chosen);
    modes_pool_destroy(&pool);
    return status;
}

// ---- quality -------------------------------------------------------------------------------------------------------

void modes_quality_destroy(modes_quality *quality) {
    fem_free(quality->rayleigh);
    fem_free(quality->ritz);
    fem_free(quality->residuals);
    *quality = (modes_quality){0};
}

// |K x - omega^2 M x| / |K x| over the free degrees of freedom, for x = U z.
static fem_status ritz_residuals(const modes_problem *problem, int n, int r, const double *Z, const double *KU,
                                 const double *MU, const double *ritz, double *residuals) {
    fem_status status = FEM_OK;
    double    *Kx = fem_alloc((size_t)n, sizeof *Kx), *Mx = fem_alloc((size_t)n, sizeof *Mx);
    if (!Kx || !Mx) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the residuals of %d modes", r);
        goto done;
    }
    for (int j = 0; j < r; j++) {
        double square = 0, whole = 0;
        dense_gemv_set(n, r, 1, KU, Z + (size_t)j * (size_t)r, Kx);
        dense_gemv_set(n, r, 1, MU, Z + (size_t)j * (size_t)r, Mx);
        for (int i = 0; i < n; i++) {
            if (problem->fixed && problem->fixed[i]) continue; // reactions
            double d = Kx[i] - ritz[j] * Mx[i];
            square += d * d, whole += Kx[i] * Kx[i];
        }
        residuals[j] = sqrt(square / whole);
    }
done:
    fem_free(Kx);
    fem_free(Mx);
    return status;
}

fem_status modes_examine(const modes_problem *problem, const modes_basis *basis, modes_quality *result) {
    fem_status    status = FEM_OK;
    int           n = basis->n, r = basis->r;
    size_t        size = (size_t)n * (size_t)r, square = (size_t)r * (size_t)r;
    modes_quality q = {0};
    double       *KU = fem_alloc(size, sizeof *KU), *MU = fem_alloc(size, sizeof *MU);
    double       *K = fem_alloc(square, sizeof *K), *M = fem_alloc(square, sizeof *M);
    q.rayleigh = fem_calloc((size_t)r, sizeof *q.rayleigh);
    q.ritz = fem_calloc((size_t)r, sizeof *q.ritz);
    q.residuals = fem_calloc((size_t)r, sizeof *q.residuals);
    if (!KU || !MU || !K || !M || !q.rayleigh || !q.ritz || !q.residuals) {
        status = fem_fail(FEM_NO_MEMORY, "no memory to examine %d modes", r);
        goto done;
    }
    fem_sparse_multiply(problem->K, r, basis->U, KU);
    fem_sparse_multiply(problem->M, r, basis->U, MU);
    dense_gemm(true, false, r, r, n, 1, basis->U, KU, 0, K);
    dense_gemm(true, false, r, r, n, 1, basis->U, MU, 0, M);
    for (int i = 0; i < r; i++) {
        q.rayleigh[i] = K[i * (r + 1)] / M[i * (r + 1)];
        for (int j = 0; j < r; j++)
            q.orthogonality = fmax(q.orthogonality, fabs(M[(size_t)i * (size_t)r + (size_t)j] - (i == j)));
    }
    FEM_TRY(dense_generalized_eigen(r, K, M, q.ritz)); // K now holds the Ritz vectors
    FEM_TRY(ritz_residuals(problem, n, r, K, KU, MU, q.ritz, q.residuals));
    modes_quality_destroy(result);
    *result = q;
    q = (modes_quality){0};
done:
    fem_free(KU), fem_free(MU), fem_free(K), fem_free(M);
    modes_quality_destroy(&q);
    return status;
}
