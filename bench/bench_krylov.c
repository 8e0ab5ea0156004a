// P0 Table 2: linear modes by ARPACK in shift-invert mode against Krylov modes with each orthogonalisation, on the same
// factor, one thread, in one run; and what the Krylov basis has of the exact modes. Rows that take minutes (r above
// `most` of a size, sizes above 200K tets) only with LIMBER_LONG. Times are processor times, without the factorisation
// and with it; where they go is told by the clock, in parts of the whole. The last row of each r has no factor:
// multigrid, its set-up included, against ARPACK with its factor. A figure shows how much of each exact mode is not
// covered (as P2 Fig. 3 does for stitched bodies).
#include "bench/modes_case.h"
#include "bench/plot.h"

enum { SIZES = 5, RANKS = 4, METHODS = 3 };

static const struct {
    const char *name;
    double      tets;
    int         most;        // r without LIMBER_LONG
    double      paper[2][2]; // r = 30 and 60 (the two columns that can be read): modal analysis, Krylov; seconds
} sizes[SIZES] = {
    {"koala_vox_50k", 50e3, 240, {{9.8, 0.7}, {14.4, 1.0}}},
    {"koala_vox_100k", 100e3, 120, {{12.4, 1.2}, {20.1, 2.0}}},
    {"koala_vox_200k", 200e3, 60, {{41.2, 2.8}, {59.7, 4.9}}},
    {"koala_vox_400k", 400e3, 0, {{96.2, 5.8}, {140.6, 10.2}}},
    {"koala_vox_1m", 1000e3, 0, {{260.0, 16.2}, {568.1, 27.3}}},
};
static const int ranks[RANKS] = {30, 60, 120, 240};

// Without the factorisation, in processor time.
static bench_time run_krylov(modes_case *c, modes_inverse *inverse, int r, modes_gram_schmidt method, bool ritz,
                             int runs, modes_basis *basis, modes_krylov_report *report) {
    modes_krylov_options options = modes_krylov_default_options();
    options.count = r, options.inverse = inverse, options.orthogonalise.method = method, options.ritz = ritz;
    double seconds[8];
    for (int run = 0; run < runs; run++) {
        if (report) fem_free(report->rayleigh), fem_free(report->residuals), *report = (modes_krylov_report){0};
        double begin = fem_cpu_seconds();
        bench_try(modes_krylov(&c->problem, &options, NULL, basis, report));
        seconds[run] = fem_cpu_seconds() - begin;
    }
    qsort(seconds, (size_t)runs, sizeof *seconds, bench_compare);
    return (bench_time){.minimum = seconds[0], .median = seconds[runs / 2]};
}

typedef struct quality {
    double angle, share, frequency; // largest angle in degrees, mean coverage, largest relative error
    int    covered;                 // modes of which 99 % is covered
} quality;

// of the first r/2 exact modes; `basis` went through a Ritz step
static quality judge(const modes_case *c, const modes_basis *exact, const modes_basis *basis) {
    int     half = basis->r / 2;
    quality q = {0};
    double *values = fem_alloc((size_t)basis->r, sizeof *values);
    if (!values) bench_try(fem_fail(FEM_NO_MEMORY, "no memory for angles"));
    bench_try(modes_principal_angles(&c->problem, basis->r, basis->U, half, exact->U, values));
    q.angle = values[half - 1] * 180 / 3.14159265358979;
    bench_try(modes_coverage(&c->problem, basis->r, basis->U, half, exact->U, values));
    for (int j = 0; j < half; j++) {
        q.share += values[j] / half;
        q.covered += values[j] > 0.99;
        q.frequency = fmax(q.frequency, fabs(sqrt(basis->omega2[j] / exact->omega2[j]) - 1));
    }
    fem_free(values);
    return q;
}

// How much of each of the r exact modes does not lie in the span of the basis.
static void plot_coverage(plot *figure, const modes_case *c, const modes_basis *exact, const modes_basis *basis) {
    char    name[96];
    double *covered = fem_alloc((size_t)exact->r, sizeof *covered), *x = fem_alloc((size_t)exact->r, sizeof *x);
    if (!covered || !x) bench_try(fem_fail(FEM_NO_MEMORY, "no memory for a figure"));
    bench_try(modes_coverage(&c->problem, basis->r, basis->U, exact->r, exact->U, covered));
    for (int j = 0; j < exact->r; j++) x[j] = j + 1, covered[j] = fmax(1 - covered[j], 1e-16);
    snprintf(name, sizeof name, "%s, r = %d", c->name, basis->r);
    plot_series(figure, name, exact->r, x, covered);
    fem_free(covered), fem_free(x);
}

// Everything from the matrices on, without a factor.
static void run_multigrid(modes_case *c, int r, double baseline, const modes_basis *exact) {
    modes_inverse        *inverse = NULL;
    modes_basis           basis = {0};
    modes_inverse_options options = modes_inverse_default_options();
    options.method = MODES_INVERSE_AMG;
    double begin = fem_cpu_seconds();
    bench_try(modes_inverse_create_with(&inverse, &c->problem, &options));
    double  setup = fem_cpu_seconds() - begin;
    double  krylov = run_krylov(c, inverse, r, MODES_GRAM_SCHMIDT_BLOCK, true, 1, &basis, NULL).minimum;
    quality q = judge(c, exact, &basis);
    printf("     block by multigrid: %.2f s, its set-up of %.2f s included, %.1fx with factor; frequency error %.1e\n",
           krylov + setup, setup, baseline / (krylov + setup), q.frequency);
    modes_basis_destroy(&basis);
    modes_inverse_destroy(inverse);
}

static void run_rank(modes_case *c, modes_inverse *inverse, double factor, int size, int rank, plot *figure) {
    int                   r = ranks[rank], runs = r <= 60 && c->mesh.element_count < 500000 ? 3 : 1;
    modes_basis           exact = {0}, basis = {0};
    modes_report          report = {0};
    modes_lanczos_options options = modes_lanczos_default_options();
    options.count = r, options.inverse = inverse, options.tolerance = 1e-8;
    double begin = fem_cpu_seconds();
    bench_try(modes_lanczos(&c->problem, &options, NULL, &exact, &report));
    double lanczos = fem_cpu_seconds() - begin;
    printf("   r = %3d  ARPACK (ncv %d, tolerance %.0e, %d solves)  %8.2f s, with the factorisation %8.2f s", r,
           report.vectors, options.tolerance, report.solves, lanczos, lanczos + factor);
    if (rank < 2)
        printf("   [P0: %.1f s and %.1f s, %.1fx]", sizes[size].paper[rank][0], sizes[size].paper[rank][1],
               sizes[size].paper[rank][0] / sizes[size].paper[rank][1]);
    printf("\n");
    for (int method = 0; method < METHODS; method++) {
        modes_krylov_report kr = {0};
        bench_time          time = run_krylov(c, inverse, r, (modes_gram_schmidt)method, false, runs, &basis, NULL);
        double              ritz = run_krylov(c, inverse, r, (modes_gram_schmidt)method, true, 1, &basis, &kr).minimum,
               krylov = time.median;
        quality q = judge(c, &exact, &basis);
        double  whole = kr.seconds_solve + kr.seconds_orthogonalise + kr.seconds_ritz + kr.seconds_report;
        printf("     %-5s %7.2f s (minimum %.2f) %5.1fx | with factor %7.2f s %4.1fx | with Ritz step and residuals "
               "%7.2f s: solve "
               "%.0f %%, "
               "orthogonalise %.0f %%, Ritz %.0f %%, report %.0f %%\n",
               modes_gram_schmidt_name((modes_gram_schmidt)method), krylov, time.minimum, lanczos / krylov,
               krylov + factor, (lanczos + factor) / (krylov + factor), ritz, 100 * kr.seconds_solve / whole,
               100 * kr.seconds_orthogonalise / whole, 100 * kr.seconds_ritz / whole, 100 * kr.seconds_report / whole);
        printf("           U'MU-I %.0e; of the first %d modes: largest angle %.1f deg, share %.4f, %d above 0.99, "
               "frequency "
               "error %.1e\n",
               kr.orthogonalise.orthogonality, r / 2, q.angle, q.share, q.covered, q.frequency);
        fflush(stdout);
        fem_free(kr.rayleigh), fem_free(kr.residuals);
    }
    if (r == 60) plot_coverage(figure, c, &exact, &basis);
    run_multigrid(c, r, lanczos + factor, &exact);
    fem_free(report.residuals);
    modes_basis_destroy(&exact), modes_basis_destroy(&basis);
}

int main(int argc, char **argv) {
    bench_header(argv, "Krylov modes against ARPACK, one core (P0 Table 2)");
    fem_set_threads(1);
    plot *figure = plot_create("What Krylov modes miss of exact modes", "mode", "1 - share covered", false, true);
    for (int size = 0; size < SIZES; size++) {
        if (argc > 1 ? !strstr(sizes[size].name, argv[1]) : sizes[size].most == 0 && !bench_long()) continue;
        modes_case     c;
        modes_inverse *inverse = NULL;
        modes_case_create(&c, sizes[size].name, sizes[size].tets);
        double begin = fem_cpu_seconds();
        bench_try(modes_inverse_create(&inverse, &c.problem, MODES_BORDER_MASS));
        double               factor = fem_cpu_seconds() - begin;
        modes_inverse_report report = modes_inverse_get_report(inverse);
        printf("   %s: %d tets, %d free dofs; ordering and factorisation %.2f s, %.2f GB\n", c.name,
               c.mesh.element_count, report.free_dofs, factor, report.factor.bytes * 1e-9);
        for (int rank = 0; rank < RANKS; rank++)
            if (argc > 2 ? ranks[rank] == atoi(argv[2]) : ranks[rank] <= sizes[size].most || bench_long())
                run_rank(&c, inverse, factor, size, rank, figure);
        modes_inverse_destroy(inverse);
        modes_case_destroy(&c);
    }
    plot_write(figure, "out/bench/krylov_coverage.svg");
    printf("   peak memory of ours, without the factor: %.2f GB\n", (double)fem_memory_peak() * 1e-9);
    return 0;
}
