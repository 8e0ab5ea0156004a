// The inverse of K: Cholesky factor against multigrid, in set-up, time per right-hand side and memory; how accurate
// multigrid must be for a Krylov basis; and a whole basis of 30 modes from the mesh on, up to a million tetrahedra.
// The koala meshes of the shared data, or a branching body when LIMBER_DATA is not set. LIMBER_LONG adds the 1M rows
// (the factor takes 8 GB there).
#include "bench/bench.h"
#include "libfem/factor_internal.h"

#include <sys/resource.h>

enum { MODES = 30, BLOCK = 6, MOST = 24 };

typedef struct subject {
    const char    *name;
    fem_mesh       mesh;
    fem_body      *body;
    fem_sparse     K, M;
    unsigned char *fixed;
    int            n;
    double         seconds_read, seconds_assemble; // processor time
} subject;

static void read_mesh(subject *s, const char *size, double tets) {
    const char *data = getenv("LIMBER_DATA");
    double      begin = fem_cpu_seconds();
    *s = (subject){.name = "branching body"};
    if (data) {
        char path[1024];
        snprintf(path, sizeof path, "%s/meshes/koala_vox_%s.veg.gz", data, size);
        bench_try(fem_mesh_read(&s->mesh, path));
        s->name = "koala_vox";
    } else {
        bench_branching_body(&s->mesh, tets);
    }
    s->n = 3 * s->mesh.vertex_count;
    s->seconds_read = fem_cpu_seconds() - begin;
}

static void assemble(subject *s) {
    fem_body_options options = fem_body_default_options();
    double           begin = fem_cpu_seconds();
    bench_try(fem_body_create(&s->body, &s->mesh, &options));
    bench_try(fem_body_matrix(s->body, &s->K));
    bench_try(fem_body_matrix(s->body, &s->M));
    double *u = fem_calloc((size_t)s->n, sizeof *u);
    fem_body_evaluate(s->body, u, NULL, NULL, &s->K);
    fem_body_mass(s->body, FEM_MASS_CONSISTENT, &s->M);
    fem_free(u);
    s->fixed = bench_hold_bottom(&s->mesh);
    s->seconds_assemble = fem_cpu_seconds() - begin;
}

static void finish(subject *s) {
    fem_sparse_destroy(&s->K), fem_sparse_destroy(&s->M);
    fem_body_destroy(s->body);
    fem_mesh_destroy(&s->mesh);
    fem_free(s->fixed);
}

static modes_problem problem_of(const subject *s) {
    return (modes_problem){.mesh = &s->mesh, .K = &s->K, .M = &s->M, .fixed = s->fixed};
}

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

static double relative_residual(const subject *s, const double *B, const double *X) {
    double *r = fem_alloc((size_t)s->n, sizeof *r), error = 0, size = 0;
    fem_sparse_multiply(&s->K, 1, X, r);
    for (int i = 0; i < s->n; i++)
        if (!s->fixed[i]) error += (r[i] - B[i]) * (r[i] - B[i]), size += B[i] * B[i];
    fem_free(r);
    return sqrt(error / size);
}

// Loads as in a Krylov basis: inertia forces of smooth fields.
static double *make_loads(const subject *s) {
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

// performance.md's figures for this size: METIS + symbolic, factor, GB, ms per right-hand side
static void compare_solvers(const char *size, double tets, const char *known) {
    subject s;
    read_mesh(&s, size, tets);
    fem_set_threads(1);
    assemble(&s);
    double         *B = make_loads(&s), *X = fem_alloc(MOST * (size_t)s.n, sizeof *X);
    double          one[3], two[3], plain[3], begin = fem_cpu_seconds();
    int             runs = tets < 3e5 ? 3 : 1;
    fem_factor     *factor = NULL;
    fem_amg        *amg = NULL;
    fem_amg_options options = fem_amg_default_options();
    printf("   %s, %d tets, %d dofs\n     performance.md   %s\n", s.name, s.mesh.element_count, s.n, known);
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
    finish(&s);
}

// ---- a Krylov basis ------------------------------------------------------------------------------------------------

// X <- X made mass-orthonormal, also to the `have` columns of U; MX follows. Twice: once leaves what rounding made.
static void orthonormalise(const subject *s, int have, const double *U, double *X, double *MX) {
    double C[MODES * BLOCK], G[BLOCK * BLOCK];
    int    n = s->n;
    for (int pass = 0; pass < 2; pass++) {
        fem_sparse_multiply(&s->M, BLOCK, X, MX);
        if (have > 0) {
            dense_gemm(true, false, have, BLOCK, n, 1, U, MX, 0, C);
            dense_gemm(false, false, n, BLOCK, have, -1, U, C, 1, X);
            fem_sparse_multiply(&s->M, BLOCK, X, MX);
        }
        dense_gemm(true, false, BLOCK, BLOCK, n, 1, X, MX, 0, G);
        bench_try(dense_cholesky(BLOCK, G));
        for (int j = 0; j < BLOCK; j++) { // X <- X L^-T
            double *x = X + (size_t)j * (size_t)n;
            for (int k = 0; k < j; k++) dense_axpy(n, -G[k * BLOCK + j], X + (size_t)k * (size_t)n, x);
            dense_scale(n, 1 / G[j * BLOCK + j], x);
        }
    }
}

typedef struct krylov_times {
    double setup, solve, orthogonalise, ritz; // processor time
} krylov_times;

// U_m = K^-1 M U_(m-1) from the rigid fields, then Ritz values: U is n x MODES, omega2 their squared frequencies.
static krylov_times krylov(const subject *s, const modes_inverse_options *options, double *U, double omega2[MODES],
                           modes_inverse_report *report) {
    modes_problem  problem = problem_of(s), unheld = problem;
    modes_inverse *inverse = NULL;
    int            count = 0;
    size_t         block = (size_t)s->n * BLOCK;
    krylov_times   times = {0};
    double        *R = NULL, *B = fem_alloc(block, sizeof *B), begin = fem_cpu_seconds();
    bench_try(modes_inverse_create_with(&inverse, &problem, options));
    times.setup = fem_cpu_seconds() - begin;
    unheld.fixed = NULL;
    bench_try(modes_rigid(&unheld, &R, &count));
    for (int have = 0; have < MODES; have += BLOCK) {
        double *X = U + (size_t)have * (size_t)s->n;
        begin = fem_cpu_seconds();
        fem_sparse_multiply(&s->M, BLOCK, have ? X - block : R, B);
        bench_try(modes_inverse_solve(inverse, BLOCK, B, X));
        times.solve += fem_cpu_seconds() - begin;
        begin = fem_cpu_seconds();
        orthonormalise(s, have, U, X, B);
        times.orthogonalise += fem_cpu_seconds() - begin;
    }
    begin = fem_cpu_seconds();
    double A[MODES * MODES];
    for (int have = 0; have < MODES; have += BLOCK) {
        fem_sparse_multiply(&s->K, BLOCK, U + (size_t)have * (size_t)s->n, B);
        dense_gemm(true, false, MODES, BLOCK, s->n, 1, U, B, 0, A + have * MODES);
    }
    bench_try(dense_symmetric_eigen(MODES, A, omega2));
    times.ritz = fem_cpu_seconds() - begin;
    *report = modes_inverse_get_report(inverse);
    modes_inverse_destroy(inverse);
    fem_free(R), fem_free(B);
    return times;
}

// Largest principal angle between two bases, by the sine: |V - U U^T M V|.
static double largest_angle(const subject *s, const double *U, const double *V) {
    size_t  size = (size_t)s->n * MODES;
    double *D = fem_copy(V, size, sizeof *V), *MD = fem_alloc(size, sizeof *MD), G[MODES * MODES], values[MODES];
    for (int pass = 0; pass < 2; pass++) {
        fem_sparse_multiply(&s->M, MODES, D, MD);
        dense_gemm(true, false, MODES, MODES, s->n, 1, U, MD, 0, G);
        dense_gemm(false, false, s->n, MODES, MODES, -1, U, G, 1, D);
    }
    fem_sparse_multiply(&s->M, MODES, D, MD);
    dense_gemm(true, false, MODES, MODES, s->n, 1, D, MD, 0, G);
    bench_try(dense_symmetric_eigen(MODES, G, values));
    fem_free(D), fem_free(MD);
    return asin(fmin(1, sqrt(fmax(0, values[MODES - 1]))));
}

static void compare_tolerances(const char *size, double tets) {
    subject s;
    read_mesh(&s, size, tets);
    fem_set_threads(1);
    assemble(&s);
    double               *U = fem_alloc((size_t)s.n * MODES, sizeof *U), *V = fem_alloc((size_t)s.n * MODES, sizeof *V);
    double                exact[MODES], omega2[MODES];
    modes_inverse_report  report;
    modes_inverse_options options = modes_inverse_default_options();
    options.method = MODES_INVERSE_FACTOR;
    krylov(&s, &options, U, exact, &report);
    printf("   %s, %d tets: against the basis of the factor\n     %9s %10s %22s %22s %14s %8s\n", s.name,
           s.mesh.element_count, "tolerance", "iterations", "frequencies, first 15", "frequencies, all 30",
           "largest angle", "solve s");
    options.method = MODES_INVERSE_AMG;
    for (options.tolerance = 1e-3; options.tolerance > 0.5e-9; options.tolerance *= 0.1) {
        krylov_times t = krylov(&s, &options, V, omega2, &report);
        double       half = 0, all = 0;
        for (int j = 0; j < MODES; j++) {
            double change = fabs(sqrt(omega2[j] / exact[j]) - 1);
            all = fmax(all, change);
            if (j < MODES / 2) half = fmax(half, change);
        }
        printf("     %9.0e %10d %22.1e %22.1e %14.1e %8.2f\n", options.tolerance, report.iterations, half, all,
               largest_angle(&s, U, V), t.solve);
    }
    fem_free(U), fem_free(V);
    finish(&s);
}

static void whole_job(const char *size, double tets, modes_inverse_method method) {
    subject s;
    read_mesh(&s, size, tets);
    fem_set_threads(1);
    double                begin = fem_seconds();
    double               *U = fem_alloc((size_t)s.n * MODES, sizeof *U), omega2[MODES];
    modes_inverse_report  report;
    modes_inverse_options options = modes_inverse_default_options();
    options.method = method;
    assemble(&s);
    krylov_times  t = krylov(&s, &options, U, omega2, &report);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double total = s.seconds_assemble + t.setup + t.solve + t.orthogonalise + t.ritz;
    printf("   %8d %-9s %6.2f %8.2f %7.2f %7.2f %6.2f %6.2f %8.2f %8.2f %5d %7.2f %7.2f %12.6g\n", s.mesh.element_count,
           method == MODES_INVERSE_AMG ? "multigrid" : "factor", s.seconds_read, s.seconds_assemble, t.setup, t.solve,
           t.orthogonalise, t.ritz, total, fem_seconds() - begin, report.iterations, report.bytes * 1e-9,
           (double)usage.ru_maxrss * 1024e-9, sqrt(omega2[0]) / 6.283185307179586);
    fem_free(U);
    finish(&s);
}

int main(int argc, char **argv) {
    (void)argc;
    bench_header(argv, "The inverse of the stiffness matrix: factor and multigrid");
    bool        wanted = getenv("LIMBER_LONG") != NULL;
    const char *sizes[] = {"50k", "100k", "200k", "400k", "1m"};
    double      tets[] = {5e4, 1e5, 2e5, 4e5, 1e6};
    const char *known[] = {"0.09 + 0.6 s, 0.12 GB, 17 / 5.5 / 2.8 ms (51K tets)", "none for this size",
                           "0.44 + 3.6 s, 0.71 GB, 94 / 28 / 14 ms (194K tets)",
                           "0.97 + 12 s, 1.9 GB, 250 / 74 / 34 ms (403K tets)",
                           "2.4 + 69 s, 6.3 GB, 860 / 249 / 109 ms (998K tets); multigrid 10.6 s, 8 to 1e-4 in 4.9 s"};
    printf(
        "   set-up and ms per right-hand side at 1 / 6 / 24 together: on one thread (processor time), on two (wall)\n");
    for (int i = 0; i < 4 + wanted; i++) compare_solvers(sizes[i], tets[i], known[i]);
    printf("\n== How accurate must the solves of a Krylov basis be? (30 modes, five blocks)\n");
    compare_tolerances("50k", 5e4);
    if (wanted) compare_tolerances("200k", 2e5);
    printf("\n== Krylov basis of 30 modes from the mesh on, one core, seconds of processor time\n");
    printf("   %8s %-9s %6s %8s %7s %7s %6s %6s %8s %8s %5s %7s %7s %12s\n", "tets", "inverse", "(read)", "assemble",
           "set-up", "solve", "orth", "Ritz", "in all", "(wall)", "iter", "GB", "peak GB", "f1 Hz");
    for (int i = 0; i < 4 + wanted; i++) {
        whole_job(sizes[i], tets[i], MODES_INVERSE_AMG);
        whole_job(sizes[i], tets[i], MODES_INVERSE_FACTOR);
    }
    printf("   1M tets: goal 40 s, required 60 s, within 16 GB\n");
    return 0;
}
