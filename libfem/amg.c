// Conjugate gradients preconditioned by one multigrid V-cycle, eight right-hand sides in lockstep.
//
// Smoothing is a Chebyshev polynomial of degree two of the scaled matrix over the upper part of its spectrum, the same
// before and after the coarse correction, so the cycle is symmetric. The coarsest matrix is factored. When the matrix
// has a null space, the prolongation reproduces it on every level, so it is enough to keep it out of the coarsest
// solve: as many unknowns as it has dimensions are held there, and both sides are freed of it.
#include "libfem/amg_internal.h"

#include <string.h>

enum {
    RATIO = 10,          // of the largest to the smallest eigenvalue that smoothing damps
    COARSE_DOFS = 10000, // from here on the matrix is factored
};

fem_amg_options fem_amg_default_options(void) { return (fem_amg_options){.tolerance = 1e-8, .max_iterations = 500}; }

// ---- running the kernels -------------------------------------------------------------------------------------------

typedef struct run_context {
    const amg_work *work;
    amg_kernel      kernel;
} run_context;

static void run_chunk(void *context, int chunk, int worker) {
    const run_context *run = context;
    run->kernel(run->work, chunk, worker);
}

void amg_run(const amg_work *work) {
    run_context run = {.work = work, .kernel = fem_amg_kernel_baseline};
#if defined(__x86_64__)
    fem_simd level = fem_simd_level();
    if (level == FEM_SIMD_AVX2) run.kernel = fem_amg_kernel_avx2;
    if (level == FEM_SIMD_AVX512) run.kernel = fem_amg_kernel_avx512;
#endif
    fem_parallel_for(amg_chunks(work->count, work->step), run_chunk, &run);
}

// ---- the cycle -----------------------------------------------------------------------------------------------------

// x <- x minus its part along the null space, for each lane
static void remove_null(const fem_amg *amg) {
    int rows = 3 * amg->coarse, count = amg->null_count;
    for (int z = 0; z < count; z++) {
        double dot[LANES] = {0};
        for (int i = 0; i < rows; i++)
            for (int c = 0; c < LANES; c++)
                dot[c] += amg->null[(size_t)i * (size_t)count + (size_t)z] * amg->lanes[(size_t)i * LANES + (size_t)c];
        for (int i = 0; i < rows; i++)
            for (int c = 0; c < LANES; c++)
                amg->lanes[(size_t)i * LANES + (size_t)c] -= amg->null[(size_t)i * (size_t)count + (size_t)z] * dot[c];
    }
}

static fem_status solve_coarsest(fem_amg *amg, const float *r, float *x) {
    size_t count = 3 * LANES * (size_t)amg->coarse;
    if (!amg->factor) {
        memset(x, 0, count * sizeof *x);
        return FEM_OK;
    }
    for (size_t i = 0; i < count; i++) amg->lanes[i] = r[i];
    remove_null(amg);
    fem_status status = fem_factor_solve_lanes(amg->factor, amg->lanes);
    remove_null(amg);
    for (size_t i = 0; i < count; i++) x[i] = (float)amg->lanes[i];
    return status;
}

// The two steps of the Chebyshev iteration over [rho / RATIO, rho]: d = c r, then d = c1 (r before) + c2 (r after),
// or from the first d: d1 d + c2 r.
typedef struct chebyshev {
    float c, c1, d1, c2;
} chebyshev;

static chebyshev coefficients(double radius) {
    double low = radius / RATIO, theta = (radius + low) / 2, delta = (radius - low) / 2, sigma = theta / delta;
    double next = 1 / (2 * sigma - 1 / sigma);
    return (chebyshev){.c = (float)(1 / theta),
                       .c1 = (float)(next / sigma / theta),
                       .d1 = (float)(next / sigma),
                       .c2 = (float)(2 * next / delta)};
}

// x = (approximate inverse) r on this level and below; r is used up
static fem_status cycle(fem_amg *amg, int l) {
    amg_level *level = &amg->level[l], *next = level + 1;
    if (l == amg->level_count) return solve_coarsest(amg, level->r, level->x);
    chebyshev s = coefficients(level->radius);
    amg_work  rows = {.count = level->A.n, .step = AMG_ROWS, .A = &level->A, .transfer = &level->P, .x = level->x};
    // two steps from x = 0, and the residual, which is in level->d
    rows.operation = AMG_FIRST, rows.r = level->r, rows.d = level->d, rows.e = level->e;
    rows.c = s.c, rows.c1 = s.c1, rows.c2 = s.c2;
    amg_run(&rows);
    rows.operation = AMG_RESIDUAL, rows.r = level->d, rows.d = level->e;
    amg_run(&rows);
    amg_run(&(amg_work){.operation = AMG_RESTRICT,
                        .count = level->P.coarse,
                        .step = AMG_NODES,
                        .transfer = &level->P,
                        .r = level->d,
                        .coarse = next->r});
    fem_status status = cycle(amg, l + 1);
    if (status != FEM_OK) return status;
    // the correction, and two steps from there
    rows.operation = AMG_PROLONG, rows.coarse = next->x, rows.d = level->e;
    amg_run(&rows);
    rows.operation = AMG_SMOOTH, rows.e = level->r, rows.c2 = s.c;
    amg_run(&rows);
    rows.operation = AMG_LAST, rows.d = level->r, rows.c1 = s.d1, rows.c2 = s.c2;
    amg_run(&rows);
    return FEM_OK;
}

// ---- conjugate gradients -------------------------------------------------------------------------------------------

enum { WINDOW = 8 }; // steps over which the rate of convergence is taken

// Each step takes alpha r.z off the squared energy norm of the error [Hestenes, Stiefel 1952]. Their sum is that of the
// solution, and what is left to come follows from the rate at which they shrink.
typedef struct lane {
    double scale;        // of the right-hand side, 0: nothing to solve
    double rz;           // r.z of the step before
    double solved;       // squared energy norm so far
    double last[WINDOW]; // latest decreases, by step modulo WINDOW
    int    steps;
    double error;
    bool   done;
} lane;

static void estimate(lane *l, double decrease) {
    int    back = l->steps < WINDOW - 1 ? l->steps : WINDOW - 1; // steps before this one that are remembered
    double envelope = 0, faded = 1;
    l->solved += decrease;
    l->last[l->steps % WINDOW] = decrease;
    double rate = back > 0 ? pow(decrease / l->last[(l->steps - back) % WINDOW], 1.0 / back) : 0.5;
    rate = fmin(fmax(rate, 0.1), 0.99);
    for (int k = 0; k <= back; k++, faded *= rate) // decreases go up and down when convergence is slow
        envelope = fmax(envelope, faded * l->last[(l->steps - k) % WINDOW]);
    l->steps++;
    l->error = l->solved > 0 ? sqrt(envelope * rate / (1 - rate) / l->solved) : 0;
}

static void sum_chunks(const fem_amg *amg, double total[LANES]) {
    memset(total, 0, LANES * sizeof *total);
    for (int k = 0; k < amg_chunks(amg->n, AMG_ROWS) * LANES; k++) total[k % LANES] += amg->sums[k];
}

// R = L^-1 b for up to eight columns, each scaled to a largest entry of 1
static fem_status load_columns(fem_amg *amg, int columns, const double *B, lane lanes[LANES]) {
    size_t n = 3 * (size_t)amg->n;
    double largest[LANES] = {0};
    for (int i = 0; i < amg->n; i++) {
        const double *S = amg->level[0].scale + 9 * (size_t)i;
        for (int c = 0; c < LANES; c++) {
            double b[3] = {0};
            for (int k = 0; k < 3 && c < columns; k++)
                if (!amg->fixed[3 * i + k]) b[k] = B[(size_t)c * n + 3 * (size_t)i + (size_t)k];
            for (int k = 0; k < 3; k++) {
                double r = S[k] * b[0] + S[3 + k] * b[1] + S[6 + k] * b[2];
                if (!isfinite(r))
                    return fem_fail(FEM_BAD_INPUT, "multigrid: the right-hand side at vertex %d is not finite", i);
                amg->R[(3 * (size_t)i + (size_t)k) * LANES + (size_t)c] = r;
                largest[c] = fmax(largest[c], fabs(r));
            }
        }
    }
    for (int c = 0; c < LANES; c++) {
        lanes[c] = (lane){.scale = largest[c], .done = largest[c] == 0};
        if (largest[c] == 0) largest[c] = 1;
    }
    for (size_t i = 0; i < LANES * n; i++) {
        amg->R[i] /= largest[i % LANES];
        amg->level[0].r[i] = (float)amg->R[i];
    }
    memset(amg->X, 0, LANES * n * sizeof *amg->X);
    memset(amg->P, 0, LANES * n * sizeof *amg->P);
    return FEM_OK;
}

static void store_columns(const fem_amg *amg, int columns, const lane lanes[LANES], double *X) {
    size_t n = 3 * (size_t)amg->n;
    for (int i = 0; i < amg->n; i++) {
        const double *S = amg->level[0].scale + 9 * (size_t)i;
        const double *y = amg->X + 3 * LANES * (size_t)i;
        for (int c = 0; c < columns; c++)
            for (int k = 0; k < 3; k++) {
                double x = S[3 * k] * y[c] + S[3 * k + 1] * y[LANES + c] + S[3 * k + 2] * y[2 * LANES + c];
                X[(size_t)c * n + 3 * (size_t)i + (size_t)k] = amg->fixed[3 * i + k] ? 0 : lanes[c].scale * x;
            }
    }
}

// r.z or p.Ap is not positive: the matrix is indefinite, or the last digits are worth nothing.
static fem_status broken(const fem_amg *amg, const lane *l) {
    if (l->steps == 0)
        return fem_fail(FEM_INDEFINITE, "multigrid: the matrix is not positive definite, or has a null space that was "
                                        "not given");
    return fem_fail(
        FEM_NO_CONVERGENCE,
        "multigrid: the error stands at %.1e after %d iterations, above the tolerance of %.1e, and rounding "
        "allows no more; a larger tolerance or a factorisation would do",
        l->error, l->steps, amg->options.tolerance);
}

// One step of all lanes; those that are done stand still.
static fem_status step(fem_amg *amg, lane lanes[LANES]) {
    amg_level *finest = &amg->level[0];
    fem_status status = cycle(amg, 0);
    if (status != FEM_OK) return status;
    double   rz[LANES], pq[LANES];
    amg_work work = {.operation = AMG_DOT, .count = amg->n, .step = AMG_ROWS, .A = &finest->A, .r = finest->r};
    work.x = finest->x, work.X = amg->X, work.R = amg->R, work.P = amg->P, work.Q = amg->Q, work.sums = amg->sums;
    amg_run(&work);
    sum_chunks(amg, rz);
    for (int c = 0; c < LANES; c++) work.factor[c] = lanes[c].done || lanes[c].steps == 0 ? 0 : rz[c] / lanes[c].rz;
    work.operation = AMG_DIRECTION;
    amg_run(&work);
    work.operation = AMG_APPLY;
    amg_run(&work);
    sum_chunks(amg, pq);
    for (int c = 0; c < LANES; c++) {
        work.factor[c] = 0;
        if (lanes[c].done) continue;
        if (!(rz[c] > 0 && pq[c] > 0 && rz[c] < INFINITY)) return broken(amg, &lanes[c]);
        work.factor[c] = rz[c] / pq[c];
        lanes[c].rz = rz[c];
        estimate(&lanes[c], work.factor[c] * rz[c]);
    }
    work.operation = AMG_ADVANCE;
    amg_run(&work);
    return FEM_OK;
}

static fem_status solve_block(fem_amg *amg, int columns, const double *B, double *X) {
    lane       lanes[LANES];
    int        steps = 0, open = 0;
    double     error = 0;
    fem_status status = load_columns(amg, columns, B, lanes);
    if (status != FEM_OK) return status;
    for (;; steps++) {
        open = 0;
        for (int c = 0; c < LANES; c++) {
            if (lanes[c].steps > 0 && lanes[c].error <= amg->options.tolerance) lanes[c].done = true;
            if (!lanes[c].done) open++;
        }
        if (open == 0 || steps == amg->options.max_iterations) break;
        status = step(amg, lanes);
        if (status != FEM_OK) break;
    }
    if (status != FEM_OK && status != FEM_NO_CONVERGENCE) return status;
    for (int c = 0; c < LANES; c++) error = fmax(error, lanes[c].error);
    amg->report.iterations = steps > amg->report.iterations ? steps : amg->report.iterations;
    amg->report.error = fmax(error, amg->report.error);
    store_columns(amg, columns, lanes, X);
    if (status == FEM_OK && open > 0)
        status = fem_fail(FEM_NO_CONVERGENCE,
                          "multigrid: the error of %d of %d solutions is still %.1e after %d iterations, above the "
                          "tolerance of %.1e; more iterations, a larger tolerance or a factorisation would do",
                          open, columns, error, steps, amg->options.tolerance);
    return status;
}

fem_status fem_amg_solve(fem_amg *amg, int columns, const double *B, double *X) {
    fem_status status = FEM_OK;
    double     begin = fem_seconds();
    amg->report.iterations = 0, amg->report.error = 0;
    for (int first = 0; first < columns; first += LANES) {
        size_t offset = 3 * (size_t)amg->n * (size_t)first;
        FEM_TRY(solve_block(amg, columns - first < LANES ? columns - first : LANES, B + offset, X + offset));
    }
done:
    amg->report.seconds_solve = fem_seconds() - begin;
    return status;
}

fem_amg_report fem_amg_get_report(const fem_amg *amg) { return amg->report; }

// ---- creation ------------------------------------------------------------------------------------------------------

void fem_amg_destroy(fem_amg *amg) {
    if (!amg) return;
    for (int l = 0; l < FEM_AMG_LEVELS; l++) amg_level_destroy(&amg->level[l]);
    fem_factor_destroy(amg->factor);
    fem_free(amg->lanes), fem_free(amg->null), fem_free(amg->fixed), fem_free(amg->sums);
    fem_free(amg->X), fem_free(amg->R), fem_free(amg->P), fem_free(amg->Q);
    fem_free(amg);
}

static fem_status check_options(const fem_amg_options *o) {
    if (!(o->tolerance > 0 && o->tolerance < 1))
        return fem_fail(FEM_BAD_INPUT, "amg.tolerance is %g, expected 0 < tolerance < 1", o->tolerance);
    if (o->max_iterations < 1)
        return fem_fail(FEM_BAD_INPUT, "amg.max_iterations is %d, expected > 0", o->max_iterations);
    return FEM_OK;
}

// What the six rigid motions do to each vertex, about the middle of the body, rotations scaled by its size.
static void rigid_motions(int n, const double *points, double *B) {
    double low[3], high[3], centre[3];
    memcpy(low, points, sizeof low), memcpy(high, points, sizeof high);
    for (int i = 0; i < 3 * n; i++) {
        low[i % 3] = fmin(low[i % 3], points[i]);
        high[i % 3] = fmax(high[i % 3], points[i]);
    }
    double size = vec3_distance(low, high);
    for (int k = 0; k < 3; k++) centre[k] = 0.5 * (low[k] + high[k]);
    for (int i = 0; i < n; i++)
        for (int c = 0; c < 3; c++) {
            double *row = B + 18 * (size_t)i + 6 * c;
            int     j = (c + 1) % 3, k = (c + 2) % 3;
            row[c] = 1; // rotation about axis j moves the point by e_j x d
            row[3 + j] = (points[3 * (size_t)i + (size_t)k] - centre[k]) / size;
            row[3 + k] = -(points[3 * (size_t)i + (size_t)j] - centre[j]) / size;
        }
}

static fem_status first_problem(amg_problem *p, const fem_sparse *A, const double *points, const unsigned char *fixed,
                                int null_count, const double *Z) {
    size_t n = (size_t)A->n;
    *p = (amg_problem){.A = *A, .borrowed = true, .null_count = null_count};
    p->fixed = fem_calloc(3 * n, 1);
    p->B = fem_calloc(18 * n, sizeof *p->B);
    p->Z = fem_copy(Z, 3 * n * (size_t)null_count, sizeof *p->Z);
    if (!p->fixed || !p->B || !p->Z) return fem_fail(FEM_NO_MEMORY, "no memory for multigrid on %d vertices", A->n);
    if (fixed) memcpy(p->fixed, fixed, 3 * n);
    rigid_motions(A->n, points, p->B);
    return FEM_OK;
}

// The null space of the coarsest matrix, orthonormal without what is dependent, row-major.
static fem_status coarse_null(fem_amg *amg, amg_problem *p) {
    size_t rows = 3 * (size_t)p->A.n;
    for (int z = 0; z < p->null_count; z++) {
        double *x = p->Z + rows * (size_t)z, *y = p->Z + rows * (size_t)amg->null_count;
        for (size_t i = 0; i < rows; i++)
            if (p->fixed[i]) x[i] = 0;
        double before = dense_norm((int)rows, x);
        for (int pass = 0; pass < 2; pass++)
            for (int k = 0; k < amg->null_count; k++)
                dense_axpy((int)rows, -dense_dot((int)rows, x, p->Z + rows * (size_t)k), p->Z + rows * (size_t)k, x);
        double norm = dense_norm((int)rows, x);
        if (!(norm > 1e-8 * before)) continue;
        for (size_t i = 0; i < rows; i++) y[i] = x[i] / norm;
        amg->null_count++;
    }
    size_t count = (size_t)amg->null_count;
    amg->null = fem_alloc(rows * count, sizeof *amg->null);
    if (!amg->null) return fem_fail(FEM_NO_MEMORY, "no memory for the null space of a multigrid matrix");
    for (size_t i = 0; i < rows; i++)
        for (size_t z = 0; z < count; z++) amg->null[i * count + z] = p->Z[z * rows + i];
    return fem_factor_hold(3 * p->A.n, amg->null_count, p->Z, p->fixed);
}

static fem_status make_coarsest(fem_amg *amg, amg_problem *p) {
    fem_status status = FEM_OK;
    amg_level *last = &amg->level[amg->level_count];
    size_t     count = 3 * LANES * (size_t)p->A.n;
    amg->coarse = p->A.n;
    last->r = fem_alloc(count, sizeof *last->r);
    last->x = fem_alloc(count, sizeof *last->x);
    amg->lanes = fem_alloc(count, sizeof *amg->lanes);
    if (!last->r || !last->x || !amg->lanes) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a coarsest matrix of %d block rows", p->A.n);
        goto done;
    }
    FEM_TRY(coarse_null(amg, p));
    if (memchr(p->fixed, 0, 3 * (size_t)p->A.n)) { // otherwise all that is left is the null space
        FEM_TRY(fem_factor_create(&amg->factor, &p->A, p->fixed));
        status = fem_factor_factorise(amg->factor, &p->A);
        if (status == FEM_INDEFINITE) // the message names an aggregate as a vertex
            fem_fail(status, "multigrid: the matrix is not positive definite, or has a null space that was not given");
    }
done:
    return status;
}

static fem_status make_level(fem_amg *amg, amg_problem *p) {
    fem_status status = FEM_OK;
    amg_level *level = &amg->level[amg->level_count];
    size_t     count = 3 * LANES * (size_t)p->A.n;
    bool       finest = amg->level_count == 0;
    FEM_TRY(amg_scale(level, p, finest));
    if (!finest) FEM_TRY(amg_finish_transfer(&level[-1].P, level->scale));
    level->r = fem_alloc(count, sizeof *level->r), level->d = fem_alloc(count, sizeof *level->d);
    level->e = fem_alloc(count, sizeof *level->e), level->x = fem_alloc(count, sizeof *level->x);
    if (!level->r || !level->d || !level->e || !level->x) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a multigrid level of %d block rows", p->A.n);
        goto done;
    }
    FEM_TRY(amg_radius(level, amg->sums));
done:
    return status;
}

static fem_status make_vectors(fem_amg *amg) {
    size_t count = 3 * LANES * (size_t)amg->n;
    amg->X = fem_alloc(count, sizeof *amg->X), amg->R = fem_alloc(count, sizeof *amg->R);
    amg->P = fem_alloc(count, sizeof *amg->P), amg->Q = fem_alloc(count, sizeof *amg->Q);
    amg->sums = fem_alloc(LANES * (size_t)amg_chunks(amg->n, AMG_ROWS), sizeof *amg->sums);
    if (!amg->X || !amg->R || !amg->P || !amg->Q || !amg->sums)
        return fem_fail(FEM_NO_MEMORY, "no memory for conjugate gradients on %d vertices", amg->n);
    return FEM_OK;
}

fem_status fem_amg_create(fem_amg **result, const fem_sparse *A, const double *points, const unsigned char *fixed,
                          int null_count, const double *Z, const fem_amg_options *options) {
    fem_status  status = FEM_OK;
    amg_problem fine = {0}, coarse = {0};
    double      begin = fem_seconds(), entries = 0;
    size_t      bytes = fem_memory_bytes();
    fem_amg    *amg = fem_calloc(1, sizeof *amg);
    if (!amg) return fem_fail(FEM_NO_MEMORY, "no memory for multigrid");
    amg->n = A->n;
    amg->options = *options;
    fem_amg_report *report = &amg->report;
    FEM_TRY(check_options(options));
    FEM_TRY(first_problem(&fine, A, points, fixed, null_count, Z));
    FEM_TRY(make_vectors(amg));
    amg->fixed = fem_copy(fine.fixed, 3 * (size_t)A->n, 1);
    if (!amg->fixed) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for multigrid");
        goto done;
    }
    for (;;) {
        amg_level *level = &amg->level[amg->level_count];
        FEM_TRY(make_level(amg, &fine));
        FEM_TRY(amg_coarsen(level, amg->level_count == 0 ? points : NULL, &fine, &coarse));
        report->dofs[amg->level_count++] = 3 * fine.A.n;
        entries += level->A.start[level->A.n];
        if (amg->level_count > 1) fem_free(level->A.exact), level->A.exact = NULL;
        amg_problem_destroy(&fine);
        fine = coarse, coarse = (amg_problem){0};
        if (3 * fine.A.n <= COARSE_DOFS || amg->level_count == FEM_AMG_LEVELS - 1) break;
    }
    FEM_TRY(amg_finish_transfer(&amg->level[amg->level_count - 1].P, NULL));
    report->dofs[amg->level_count] = 3 * fine.A.n;
    report->levels = amg->level_count + 1;
    FEM_TRY(make_coarsest(amg, &fine));
    amg_problem_destroy(&fine);
    const amg_matrix *first = &amg->level[0].A;
    fem_factor_report factor = {0};
    if (amg->factor) factor = fem_factor_get_report(amg->factor);
    report->complexity = (entries + factor.entries / 9) / first->start[first->n];
    report->bytes = (double)(fem_memory_bytes() - bytes) + factor.bytes;
    report->seconds_setup = fem_seconds() - begin;
done:
    amg_problem_destroy(&fine), amg_problem_destroy(&coarse);
    if (status == FEM_OK)
        *result = amg;
    else
        fem_amg_destroy(amg);
    return status;
}
