// The inverse of K: Cholesky factor, in double and in single precision, against multigrid, in set-up, time per
// right-hand side and memory; how accurate multigrid must be for a Krylov basis; and a whole basis of 30 modes from the
// mesh on, up to a million tetrahedra. The koala meshes of the shared data, or a branching body when LIMBER_DATA is not
// set. LIMBER_LONG adds the 1M rows (the factor takes 8 GB there). With arguments only the whole jobs of one size:
// `bench_inverse 1m`, and with the factor too `bench_inverse factor 1m`; `bench_inverse solvers 1m` compares the
// solvers alone.
#include "bench/float_factor.h"
#include "bench/modes_case.h"

#include <sys/resource.h>

enum { MODES = 30, BLOCK = 6, MOST = 24 };

static const struct {
    const char *name;
    double      tets;
    const char *known; // performance.md: METIS + symbolic, factor, GB, ms per right-hand side
} sizes[] = {
    {"koala_vox_50k", 5e4, "0.09 + 0.6 s, 0.12 GB, 17 / 5.5 / 2.8 ms (51K tets)"},
    {"koala_vox_100k", 1e5, "none for this size"},
    {"koala_vox_200k", 2e5, "0.44 + 3.6 s, 0.71 GB, 94 / 28 / 14 ms (194K tets)"},
    {"koala_vox_400k", 4e5, "0.97 + 12 s, 1.9 GB, 250 / 74 / 34 ms (403K tets)"},
    {"koala_vox_1m", 1e6, "2.4 + 69 s, 6.3 GB, 860 / 249 / 109 ms (998K tets); multigrid 10.6 s, 8 to 1e-4 in 4.9 s"},
};

// ---- set-up and solves ---------------------------------------------------------------------------------------------

typedef fem_status (*solver)(void *inverse, int columns, const double *B, double *X);
static fem_status by_factor(void *f, int columns, const double *B, double *X) {
    return fem_factor_solve(f, columns, B, X);
}
static fem_status by_cholmod(void *f, int columns, const double *B, double *X) {
    return fem_factor_solve_plain(f, columns, B, X);
}
static fem_status by_amg(void *a, int columns, const double *B, double *X) { return fem_amg_solve(a, columns, B, X); }

// ms per right-hand side at 1, 6 and 24 together: minimum of `runs`, processor time on one thread, else wall time
static void time_solves(solver solve, void *inverse, int runs, const double *B, double *X, double ms[3]) {
    const int columns[3] = {1, BLOCK, MOST};
    for (int i = 0; i < 3; i++) {
        ms[i] = INFINITY;
        for (int run = 0; run < runs; run++) {
            double wall = fem_seconds(), cpu = fem_cpu_seconds();
            bench_try(solve(inverse, columns[i], B, X));
            ms[i] =
                fmin(ms[i], 1e3 / columns[i] * (fem_threads() > 1 ? fem_seconds() - wall : fem_cpu_seconds() - cpu));
        }
    }
}

static void print_row(const char *what, double setup, double bytes, const double one[3], const double two[3]) {
    printf("     %-16s %7.2f s %6.2f GB | %7.1f /%6.1f /%6.1f | %7.1f /%6.1f /%6.1f\n", what, setup, bytes * 1e-9,
           one[0], one[1], one[2], two[0], two[1], two[2]);
}

static double relative_residual(const modes_case *s, const double *B, const double *X) {
    double *r = fem_alloc((size_t)s->n, sizeof *r), error = 0, size = 0;
    fem_sparse_multiply(&s->K, 1, X, r);
    for (int i = 0; i < s->n; i++)
        if (!s->fixed[i]) error += (r[i] - B[i]) * (r[i] - B[i]), size += B[i] * B[i];
    fem_free(r);
    return sqrt(error / size);
}

// Loads as in a Krylov basis: inertia forces of smooth fields.
static double *make_loads(const modes_case *s) {
    size_t  n = (size_t)s->n;
    double *U = fem_alloc(MOST * n, sizeof *U), *B = fem_alloc(MOST * n, sizeof *B);
    for (int c = 0; c < MOST; c++)
        for (size_t i = 0; i < n; i++) {
            const double *p = s->mesh.vertices + i / 3 * 3;
            U[(size_t)c * n + i] =
                i % 3 == (size_t)c % 3 ? sin(1 + c / 3 * p[(c + 1) % 3] + c / 6 * p[(c + 2) % 3]) : 0;
        }
    fem_sparse_multiply(&s->M, MOST, U, B);
    fem_free(U);
    return B;
}

// A factor in single precision with refinement: one step each, then until a solution changes by 1e-8.
static void try_float(const modes_case *s, int runs, const double *B, double *X) {
    const int    columns[3] = {1, BLOCK, MOST};
    float_factor f;
    double       begin = fem_cpu_seconds(), once[3], refined[3];
    int          steps = 0;
    bool         positive = float_factor_create(&f, &s->K, s->fixed);
    double       setup = fem_cpu_seconds() - begin;
    if (!positive) printf("     float factor     %7.2f s: a pivot is not positive\n", setup);
    for (int i = 0; i < 3 && positive; i++) {
        once[i] = refined[i] = INFINITY;
        for (int run = 0; run < runs; run++) {
            begin = fem_cpu_seconds();
            float_refine(&f, &s->K, s->fixed, 1, columns[i], B, X);
            once[i] = fmin(once[i], 1e3 / columns[i] * (fem_cpu_seconds() - begin));
            begin = fem_cpu_seconds();
            steps = float_refine(&f, &s->K, s->fixed, 1e-8, columns[i], B, X);
            refined[i] = fmin(refined[i], 1e3 / columns[i] * (fem_cpu_seconds() - begin));
        }
    }
    if (positive)
        printf("     %-16s %7.2f s %6.2f GB | %7.1f /%6.1f /%6.1f | one step; to 1e-8 in %d steps %.1f / %.1f / %.1f, "
               "residual %.0e\n",
               "float factor", setup, f.bytes * 1e-9, once[0], once[1], once[2], steps, refined[0], refined[1],
               refined[2], relative_residual(s, B, X));
    float_factor_destroy(&f);
}

static void compare_solvers(int size) {
    modes_case s;
    fem_set_threads(1);
    modes_case_create(&s, sizes[size].name, sizes[size].tets);
    double         *B = make_loads(&s), *X = fem_alloc(MOST * (size_t)s.n, sizeof *X);
    double          one[3], two[3], plain[3], begin = fem_cpu_seconds();
    int             runs = sizes[size].tets < 3e5 ? 3 : 1;
    fem_factor     *factor = NULL;
    fem_amg        *amg = NULL;
    fem_amg_options options = fem_amg_default_options();
    printf("   %s, %d tets, %d dofs\n     performance.md   %s\n", s.name, s.mesh.element_count, s.n, sizes[size].known);
    bench_try(fem_factor_create(&factor, &s.K, s.fixed));
    bench_try(fem_factor_factorise(factor, &s.K));
    double factor_setup = fem_cpu_seconds() - begin, bytes = fem_factor_get_report(factor).bytes;
    time_solves(by_cholmod, factor, runs, B, X, plain);
    print_row("CHOLMOD's solve", factor_setup, bytes, plain, plain);
    time_solves(by_factor, factor, runs, B, X, one);
    double residual = relative_residual(&s, B, X);
    fem_set_threads(2);
    time_solves(by_factor, factor, runs, B, X, two);
    print_row("block solve", factor_setup, bytes, one, two);
    printf("     %-16s %37.2f /%6.2f /%6.2f   residual %.0e\n", "ratio", plain[0] / one[0], plain[1] / one[1],
           plain[2] / one[2], residual);
    fem_factor_destroy(factor);
    fem_set_threads(1);
    try_float(&s, runs, B, X);
    begin = fem_cpu_seconds();
    bench_try(fem_amg_create(&amg, &s.K, s.mesh.vertices, s.fixed, 0, NULL, &options));
    double amg_setup = fem_cpu_seconds() - begin;
    time_solves(by_amg, amg, runs, B, X, one);
    fem_amg_report report = fem_amg_get_report(amg);
    residual = relative_residual(&s, B, X);
    fem_set_threads(2);
    time_solves(by_amg, amg, runs, B, X, two);
    print_row("multigrid", amg_setup, report.bytes, one, two);
    printf("     %d iterations to %.0e in energy, residual %.0e, operator complexity %.2f, dofs", report.iterations,
           report.error, residual, report.complexity);
    for (int l = 0; l < report.levels; l++) printf(" %d", report.dofs[l]);
    printf("\n");
    fem_amg_destroy(amg);
    fem_free(B), fem_free(X);
    modes_case_destroy(&s);
}

// ---- a Krylov basis ------------------------------------------------------------------------------------------------

// 30 modes and their Ritz values, from the matrices on.
static void krylov(const modes_case *s, const modes_inverse_options *inverse, modes_basis *basis,
                   modes_recipe_report *report) {
    modes_recipe recipe = modes_default_recipe(MODES_KRYLOV);
    recipe.count = MODES, recipe.derivatives = 0, recipe.inverse = *inverse;
    bench_try(modes_build(&s->problem, s->body, &recipe, NULL, NULL, basis, report));
}

static void compare_tolerances(int size) {
    modes_case s;
    fem_set_threads(1);
    modes_case_create(&s, sizes[size].name, sizes[size].tets);
    modes_basis           exact = {0}, basis = {0};
    modes_recipe_report   report;
    modes_inverse_options options = modes_inverse_default_options();
    options.method = MODES_INVERSE_FACTOR;
    krylov(&s, &options, &exact, &report);
    printf("   %s, %d tets: against the basis of the factor\n     %9s %10s %22s %22s %14s %8s\n", s.name,
           s.mesh.element_count, "tolerance", "iterations", "frequencies, first 15", "frequencies, all 30",
           "largest angle", "solve s");
    options.method = MODES_INVERSE_AMG;
    for (options.tolerance = 1e-3; options.tolerance > 0.5e-9; options.tolerance *= 0.1) {
        double half = 0, all = 0, angles[MODES];
        krylov(&s, &options, &basis, &report);
        for (int j = 0; j < MODES; j++) {
            double change = fabs(sqrt(basis.omega2[j] / exact.omega2[j]) - 1);
            all = fmax(all, change);
            if (j < MODES / 2) half = fmax(half, change);
        }
        bench_try(modes_principal_angles(&s.problem, MODES, exact.U, MODES, basis.U, angles));
        printf("     %9.0e %10d %22.1e %22.1e %14.1e %8.2f\n", options.tolerance, report.inverse.iterations, half, all,
               angles[MODES - 1], report.krylov.seconds_solve);
    }
    modes_basis_destroy(&exact), modes_basis_destroy(&basis);
    modes_case_destroy(&s);
}

static void whole_job(int size, modes_inverse_method method) {
    modes_case            s;
    modes_basis           basis = {0};
    modes_recipe_report   report;
    modes_inverse_options options = modes_inverse_default_options();
    options.method = method;
    fem_set_threads(1);
    double begin = fem_seconds(), cpu = fem_cpu_seconds();
    modes_case_create(&s, sizes[size].name, sizes[size].tets);
    krylov(&s, &options, &basis, &report);
    double        total = fem_cpu_seconds() - cpu, wall = fem_seconds() - begin;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const modes_krylov_report *k = &report.krylov;
    printf("   %8d %-9s %6.2f %8.2f %7.2f %7.2f %6.2f %6.2f %6.2f %8.2f %8.2f %5d %7.2f %7.2f %12.8g\n",
           s.mesh.element_count, method == MODES_INVERSE_AMG ? "multigrid" : "factor", s.seconds_read,
           s.seconds_assemble, report.seconds_factor, k->seconds_solve, k->seconds_orthogonalise, k->seconds_ritz,
           k->seconds_report, total, wall, report.inverse.iterations, report.inverse.bytes * 1e-9,
           (double)usage.ru_maxrss * 1024e-9, sqrt(basis.omega2[0]) / 6.283185307179586);
    fflush(stdout);
    modes_basis_destroy(&basis);
    modes_case_destroy(&s);
}

int main(int argc, char **argv) {
    bench_header(argv, "The inverse of the stiffness matrix: factor and multigrid");
    int  count = 4 + bench_long();
    bool all = argc<2, solvers = argc> 2 && strcmp(argv[1], "solvers") == 0;
    if (all || solvers) {
        printf("   set-up and ms per right-hand side at 1 / 6 / 24 together: on one thread (processor time), on two "
               "(wall)\n");
        for (int i = 0; i < 5; i++)
            if (all ? i < count : strstr(sizes[i].name, argv[2]) != NULL) compare_solvers(i);
        if (solvers) return 0;
        printf("\n== How accurate must the solves of a Krylov basis be? (30 modes, five blocks)\n");
        compare_tolerances(0);
        if (bench_long()) compare_tolerances(2);
    }
    printf("\n== Krylov basis of 30 modes from the mesh file on, with Ritz step and residuals, one core, seconds\n");
    printf("   %8s %-9s %6s %8s %7s %7s %6s %6s %6s %8s %8s %5s %7s %7s %12s\n", "tets", "inverse", "read", "assemble",
           "set-up", "solve", "orth", "Ritz", "report", "cpu", "wall", "iter", "GB", "peak GB", "f1 Hz");
    for (int i = 0; i < 5; i++) {
        if (all ? i >= count : !strstr(sizes[i].name, argv[argc - 1])) continue;
        whole_job(i, MODES_INVERSE_AMG); // first: the peak is that of the process so far
        if (all || argc > 2) whole_job(i, MODES_INVERSE_FACTOR);
    }
    printf("   1M tets: goal 40 s, required 60 s, within 16 GB.\n");
    return 0;
}
