// P0 Fig. 11: how well r columns out of PCA, randomized PCA and random projection hold 324 candidates (24 linear modes
// and 300 derivatives). P0 Fig. 13: time to condense 189 candidates (18 + 171) to 30 columns against the size of the
// mesh, beside LAPACK's singular value decomposition of the candidates, which is what the paper calls PCA. One thread.
#include "bench/modes_case.h"
#include "bench/plot.h"

enum { METHODS = 3 };
static const char *const names[METHODS] = {"PCA", "randomized PCA", "random projection"};

// Order 2 of the first `second` modes too.
static void make_pool(const modes_case *c, int modes, int second, modes_pool *pool, modes_basis *basis) {
    modes_inverse           *inverse = NULL;
    modes_krylov_options     krylov = modes_krylov_default_options();
    modes_derivative_options derivatives = modes_derivative_default_options();
    bench_try(modes_inverse_create(&inverse, &c->problem, MODES_BORDER_MASS));
    krylov.count = modes, krylov.inverse = inverse, krylov.ritz = true;
    bench_try(modes_krylov(&c->problem, &krylov, NULL, basis, NULL));
    derivatives.kind = MODES_DERIVATIVE_INERTIA;
    if (second > 0) derivatives.order = 2, derivatives.modes[1] = second;
    bench_try(modes_derivatives(&c->problem, c->body, inverse, basis, &derivatives, NULL, pool, NULL));
    modes_inverse_destroy(inverse);
}

// Best of several runs; `method_seconds` gets the part of the method itself, without weights and orthonormalising.
static double run(const modes_case *c, const modes_pool *pool, const double *omega2, modes_condense_method method,
                  modes_scaling scaling, int r, int runs, modes_basis *basis, double *method_seconds, double *energy) {
    double best = INFINITY;
    for (int k = 0; k < runs; k++) {
        modes_condense_report  report = {0};
        modes_condense_options options = modes_condense_default_options();
        options.method = method, options.scaling = scaling, options.r = r;
        double begin = fem_cpu_seconds();
        bench_try(modes_condense(&c->problem, pool, omega2, &options, NULL, basis, &report));
        double seconds = fem_cpu_seconds() - begin;
        double all = report.seconds_scale + report.seconds_condense + report.seconds_finish; // wall
        if (seconds < best) best = seconds, *method_seconds = seconds * report.seconds_condense / all;
        *energy = report.energy_kept;
        fem_free(report.singular);
    }
    return best;
}

static double mean_error(const modes_case *c, const modes_pool *pool, const modes_basis *basis) {
    double *errors = fem_alloc((size_t)pool->count, sizeof *errors), sum = 0;
    if (!errors) bench_try(fem_fail(FEM_NO_MEMORY, "no memory for errors"));
    bench_try(modes_pool_errors(&c->problem, pool, basis, errors));
    for (int j = 0; j < pool->count; j++) sum += errors[j] / pool->count;
    fem_free(errors);
    return sum;
}

static void figure_11(void) {
    enum { SIZES = 9 };
    static const int sizes[SIZES] = {5, 10, 20, 30, 45, 60, 80, 100, 150};
    static const struct {
        modes_scaling kind;
        const char   *name;
    } scalings[2] = {{MODES_SCALE_UNIT, "unit"}, {MODES_SCALE_RAYLEIGH, "Rayleigh"}};
    modes_case  c;
    modes_pool  pool = {0};
    modes_basis linear = {0}, basis = {0};
    double      x[SIZES], error[2][METHODS][SIZES], part = 0, energy = 0;
    modes_case_create(&c, "bunny_50k", 50e3);
    make_pool(&c, 24, 0, &pool, &linear);
    printf("   Fig. 11, %s, %d candidates: mean relative least-squares error\n", c.name, pool.count);
    printf("   %4s | candidates of unit weight: %9s %9s %9s | by Rayleigh quotient: %9s %9s %9s\n", "r", "PCA", "rand.",
           "proj.", "PCA", "rand.", "proj.");
    for (int k = 0; k < SIZES; k++) {
        x[k] = sizes[k];
        for (int s = 0; s < 2; s++)
            for (int method = 0; method < METHODS; method++) {
                run(&c, &pool, linear.omega2, (modes_condense_method)method, scalings[s].kind, sizes[k], 1, &basis,
                    &part, &energy);
                error[s][method][k] = mean_error(&c, &pool, &basis);
            }
        printf("   %4d |                            %9.2e %9.2e %9.2e |                       %9.2e %9.2e %9.2e\n",
               sizes[k], error[0][0][k], error[0][1][k], error[0][2][k], error[1][0][k], error[1][1][k],
               error[1][2][k]);
    }
    printf(
        "   the paper's curves: projection clearly worse at small r, \"quite subtle\" a difference from r = 30 on\n");
    plot *figure =
        plot_create("Candidates in the span of r columns (P0 Fig. 11)", "r", "mean least-squares error", false, true);
    for (int s = 0; s < 2; s++)
        for (int method = 0; method < METHODS; method++) {
            char name[64];
            snprintf(name, sizeof name, "%s, %s", names[method], scalings[s].name);
            plot_series(figure, name, SIZES, x, error[s][method]);
        }
    plot_write(figure, "out/bench/condense_error.svg");
    modes_pool_destroy(&pool), modes_basis_destroy(&linear), modes_basis_destroy(&basis);
    modes_case_destroy(&c);
}

// The first r left singular vectors of the candidates, rows scaled by the root of the lumped mass.
static double full_svd(const modes_case *c, const modes_pool *pool, int r) {
    size_t  n = (size_t)c->n, m = (size_t)pool->count;
    double *X = fem_copy(pool->X, n * m, sizeof *X), *masses = fem_alloc(n / 3, sizeof *masses);
    double *singular = fem_alloc(m, sizeof *singular), *V = fem_alloc(m * m, sizeof *V);
    double *U = fem_alloc(n * (size_t)r, sizeof *U);
    if (!X || !masses || !singular || !V || !U) bench_try(fem_fail(FEM_NO_MEMORY, "no memory for an SVD"));
    double begin = fem_cpu_seconds();
    fem_body_vertex_masses(c->body, masses);
    for (size_t j = 0; j < m; j++)
        for (size_t i = 0; i < n; i++) X[j * n + i] *= sqrt(masses[i / 3]);
    bench_try(dense_svd((int)n, (int)m, X, singular, V));
    for (size_t j = 0; j < (size_t)r; j++) // rows of V to columns of coefficients
        for (size_t i = 0; i < m; i++) X[j * m + i] = V[i * m + j] / singular[j];
    dense_gemm(false, false, (int)n, r, (int)m, 1, pool->X, X, 0, U);
    double seconds = fem_cpu_seconds() - begin;
    fem_free(X), fem_free(masses), fem_free(singular), fem_free(V), fem_free(U);
    return seconds;
}

static void figure_13(void) {
    static const struct {
        const char *name;
        double      tets;
    } sizes[] = {{"koala_vox_50k", 50e3},
                 {"koala_vox_100k", 100e3},
                 {"koala_vox_200k", 200e3},
                 {"koala_vox_400k", 400e3},
                 {"koala_vox_1m", 1e6}};
    double x[5], times[METHODS + 1][5];
    int    count = bench_long() ? 5 : 3;
    printf("   Fig. 13: 189 candidates to 30 columns, seconds in all (without weights and orthonormalising), LAPACK "
           "over it\n");
    printf("   %-15s %8s %8s | %8s | %20s %20s %20s\n", "mesh", "tets", "rows", "SVD", "PCA", "rand.", "proj.");
    for (int k = 0; k < count; k++) {
        modes_case  c;
        modes_pool  pool = {0};
        modes_basis linear = {0}, basis = {0};
        modes_case_create(&c, sizes[k].name, sizes[k].tets);
        make_pool(&c, 18, 0, &pool, &linear);
        x[k] = c.mesh.element_count;
        times[METHODS][k] = full_svd(&c, &pool, 30);
        printf("   %-15s %8d %8d | %8.2f |", c.name, c.mesh.element_count, c.n, times[METHODS][k]);
        for (int method = 0; method < METHODS; method++) {
            double part = 0, energy = 0;
            times[method][k] = run(&c, &pool, linear.omega2, (modes_condense_method)method, MODES_SCALE_FREQUENCY, 30,
                                   3, &basis, &part, &energy);
            printf(" %7.3f (%.3f) %3.1fx", times[method][k], part, times[METHODS][k] / times[method][k]);
        }
        printf("\n");
        modes_pool_destroy(&pool), modes_basis_destroy(&linear), modes_basis_destroy(&basis);
        modes_case_destroy(&c);
    }
    printf("   the paper has PCA growing steeply and random projection nearly flat, without numbers. P2 Table 1c: "
           "randomized\n"
           "   SVD 3.8x to 6.9x faster than the standard one\n");
    plot *figure =
        plot_create("Condensing 189 candidates to 30 columns (P0 Fig. 13)", "tetrahedra", "seconds", true, true);
    for (int method = 0; method < METHODS; method++) plot_series(figure, names[method], count, x, times[method]);
    plot_series(figure, "LAPACK SVD", count, x, times[METHODS]);
    plot_write(figure, "out/bench/condense_time.svg");
}

// How the methods grow with the number of candidates: PCA with its square, the others in proportion. Candidates are
// linear modes, derivatives, and derivatives of second order, at unit weight, which is the hard case for a sketch.
static void many_candidates(void) {
    static const int counts[] = {189, 400, 800, 1600};
    modes_case       c;
    modes_pool       pool = {0};
    modes_basis      linear = {0}, basis = {0};
    modes_case_create(&c, "koala_vox_50k", 50e3);
    make_pool(&c, 18, 18, &pool, &linear);
    printf(
        "   More candidates, %s: of %d (18 modes, 171 derivatives, the rest of second order) to 30 columns; seconds in "
        "all\n   (without weights and orthonormalising), energy that is kept\n",
        c.name, pool.count);
    printf("   %6s | %28s | %35s | %35s\n", "m", "PCA", "randomized", "projection");
    for (int k = 0; k < 4; k++) {
        modes_pool some = pool;
        double     first = 0, part = 0, energy = 0;
        if (counts[k] < pool.count) some.count = counts[k];
        printf("   %6d |", some.count);
        for (int method = 0; method < METHODS; method++) {
            double seconds = run(&c, &some, linear.omega2, (modes_condense_method)method, MODES_SCALE_UNIT, 30, 3,
                                 &basis, &part, &energy);
            if (method == 0) first = seconds;
            printf(" %7.3f (%.3f) %.8f", seconds, part, energy);
            if (method > 0) printf(" %5.1fx", first / seconds);
            printf(" |");
        }
        printf("\n");
        fflush(stdout);
    }
    modes_pool_destroy(&pool), modes_basis_destroy(&linear), modes_basis_destroy(&basis);
    modes_case_destroy(&c);
}

int main(int argc, char **argv) {
    (void)argc;
    bench_header(argv, "Condensing candidates: P0 Fig. 11 and 13, one core");
    fem_set_threads(1);
    many_candidates();
    figure_11();
    figure_13();
    return 0;
}
