// Reduced StVK polynomials. P4 Figure 5: computing the coefficients, beside the same sums done point by point in the
// same run, the paper's times and VegaFEM's. P4 Figure 11: force, stiffness and solution of the linear system in
// microseconds, for one instance and for batches of 64 and 1,394. One thread. VegaFEM 4's times were measured on a
// core with 88 GFLOP/s.
#include "bench/bench.h"
#include "bench/plot.h"
#include "libcubature/cubature.h"

// ---- bodies
// ----------------------------------------------------------------------------------------------------------

// A spoon of about `elements` voxels.
static void make_spoon(fem_mesh *mesh, double elements) {
    fem_piece pieces[] = {
        {.name = "handle", .shape = FEM_CAPSULE, .a = {0, 0, 0}, .b = {2, 0, 0.2}, .radius_a = 0.12, .radius_b = 0.15},
        {.name = "bowl", .shape = FEM_BALL, .a = {2.3, 0, 0.2}, .radius_a = 0.4},
    };
    double voxel = 0.06;
    for (int attempt = 0; attempt < 6; attempt++) { // the count goes with voxel^-3
        bench_try(fem_generate_pieces(mesh, FEM_H8, 2, pieces, voxel));
        voxel *= cbrt(mesh->element_count / elements);
    }
}

// VegaFEM's bridge of 12,827 tetrahedra, or one of our own bodies of that size.
static const char *make_bridge(fem_mesh *mesh) {
    const char *data = getenv("LIMBER_DATA");
    char        path[1024];
    if (!data || !data[0]) {
        bench_branching_body(mesh, 12827);
        return "branching, T4";
    }
    snprintf(path, sizeof path, "%s/vega/models/simpleBridge/simpleBridge-ic_128_0.15_.1.veg", data);
    bench_try(fem_mesh_read(mesh, path));
    return "simpleBridge, T4";
}

// Smooth fields: their number is what matters here.
static double *make_modes(const fem_mesh *mesh, int r) {
    fem_quality quality;
    bench_try(fem_mesh_quality(mesh, &quality));
    size_t  n = 3 * (size_t)mesh->vertex_count;
    double *U = fem_alloc(n * (size_t)r, sizeof *U), size = vec3_distance(quality.low, quality.high);
    for (int j = 0; U && j < r; j++)
        for (size_t i = 0; i < n; i++) {
            const double *x = mesh->vertices + i / 3 * 3;
            double        phase = (1 + j % 5) * x[0] + (1 + j % 3) * x[1] + (1 + j % 7) * x[2];
            U[(size_t)j * n + i] = 0.02 * size * sin(4 * phase / size + j + (double)(i % 3));
        }
    if (!U) bench_try(fem_fail(FEM_NO_MEMORY, "no memory for %d modes", r));
    return U;
}

// ---- coefficients
// ----------------------------------------------------------------------------------------------------

typedef struct precompute_case {
    fem_mesh            mesh;
    fem_body           *body;
    int                 r;
    double             *U;
    cubature_polynomial polynomial;
} precompute_case;

static void run_precompute(void *context) {
    precompute_case            *c = context;
    cubature_polynomial_options options = cubature_polynomial_default_options();
    cubature_polynomial_destroy(&c->polynomial);
    bench_try(cubature_polynomial_create(&c->polynomial, c->body, c->r, c->U, &options, NULL));
}

// The products of two modes at one integration point as strains: trace, then the six of E:E. e is 7 per pair.
static void strain_products(int r, const double *H, double *e) {
    for (int high = 0; high < r; high++)
        for (int low = 0; low <= high; low++, e += 7) {
            const double *A = H + 9 * low, *B = H + 9 * high;
            for (int k = 0; k < 6; k++) {
                int    i = k % 3, j = k < 3 ? i : (i + 1) % 3;
                double sum = 0;
                for (int a = 0; a < 3; a++) sum += A[3 * a + i] * B[3 * a + j] + A[3 * a + j] * B[3 * a + i];
                e[1 + k] = sum * (k < 3 ? 0.5 : 0.70710678118654752440);
            }
            e[0] = e[1] + e[2] + e[3];
        }
}

static void add_inner_product(const double *e, int x, int y, double sums[2]) {
    const double *s = e + 7 * x, *t = e + 7 * y;
    sums[0] += s[0] * t[0];
    for (int k = 1; k < 7; k++) sums[1] += s[k] * t[k];
}

// Share of one point in the coefficients of degree four, for lambda and mu.
static void add_point(int r, double weight, const double *e, double *out) {
#define PAIR(a, b) ((b) * ((b) + 1) / 2 + (a))
    for (int l = 0; l < r; l++)
        for (int k = 0; k <= l; k++)
            for (int j = 0; j <= k; j++)
                for (int i = 0; i <= j; i++, out += 2) {
                    double sums[2] = {0};
                    add_inner_product(e, PAIR(i, j), PAIR(k, l), sums);
                    add_inner_product(e, PAIR(i, k), PAIR(j, l), sums);
                    add_inner_product(e, PAIR(i, l), PAIR(j, k), sums);
                    out[0] += weight * sums[0];
                    out[1] += weight * sums[1];
                }
#undef PAIR
}

// The same sums without a matrix product: at each integration point every coefficient of degree four gets its inner
// products of strains, as P4's appendix B has it. Runs over a sample of elements; returns seconds for all.
static double run_point_by_point(const precompute_case *c) {
    int     r = c->r, sample = r > 15 ? 24 : 96, width = fem_element_vertices(c->mesh.type);
    size_t  n = 3 * (size_t)c->mesh.vertex_count;
    double *H = fem_alloc((size_t)r, 9 * sizeof *H), *e = fem_alloc((size_t)cubature_pairs(r), 7 * sizeof *e);
    double *sums = fem_calloc(2 * cubature_polynomial_count(r), sizeof *sums), begin = fem_cpu_seconds();
    if (!H || !e || !sums) bench_try(fem_fail(FEM_NO_MEMORY, "no memory"));
    for (int element = 0; element < sample; element++) {
        double     weight[27], g[27][24];
        const int *v = c->mesh.elements + (size_t)element * (size_t)width;
        int        count = fem_body_points(c->body, element, weight, g);
        for (int p = 0; p < count; p++) {
            for (int i = 0; i < 9 * r; i++) {
                const double *U = c->U + (size_t)(i / 9) * n;
                H[i] = 0;
                for (int a = 0; a < width; a++) H[i] += U[3 * (size_t)v[a] + (size_t)(i % 9 / 3)] * g[p][3 * a + i % 3];
            }
            strain_products(r, H, e);
            add_point(r, weight[p], e, sums);
        }
    }
    double seconds = (fem_cpu_seconds() - begin) * c->mesh.element_count / sample;
    fem_free(H), fem_free(e), fem_free(sums);
    return seconds;
}

// Reduced force and stiffness against U^T f(Uq), U^T K(Uq) U in one large pose.
static double precompute_error(const precompute_case *c) {
    cubature_full  *full = NULL;
    cubature_forces forces = cubature_polynomial_forces(&c->polynomial);
    size_t          r = (size_t)c->r, size = r + r * r;
    bench_try(cubature_full_create(&full, c->body, c->r, c->U));
    cubature_forces reference = cubature_full_forces(full);
    double         *work = fem_alloc(forces.work > reference.work ? forces.work : reference.work, sizeof *work);
    double         *ours = fem_alloc(size, sizeof *ours), *theirs = fem_alloc(size, sizeof *theirs), q[64], error[2];
    if (!work || !ours || !theirs) bench_try(fem_fail(FEM_NO_MEMORY, "no memory"));
    for (size_t i = 0; i < r; i++) q[i] = cos((double)i) / sqrt((double)r);
    forces.evaluate(forces.model, q, NULL, ours, ours + r, work);
    reference.evaluate(reference.model, q, NULL, theirs, theirs + r, work);
    for (int part = 0; part < 2; part++) {
        size_t first = part ? r : 0, last = part ? size : r;
        double worst = 0, largest = 0;
        for (size_t i = first; i < last; i++)
            worst = fmax(worst, fabs(ours[i] - theirs[i])), largest = fmax(largest, fabs(theirs[i]));
        error[part] = worst / largest;
    }
    fem_free(work), fem_free(ours), fem_free(theirs);
    cubature_full_destroy(full);
    return fmax(error[0], error[1]);
}

static void bench_precompute(const char *name, fem_mesh *mesh, int quadrature, int r, const char *paper,
                             const char *vega) {
    precompute_case  c = {.mesh = *mesh, .r = r, .U = make_modes(mesh, r)};
    fem_body_options options = fem_body_default_options();
    options.quadrature = quadrature;
    bench_try(fem_body_create(&c.body, &c.mesh, &options));
    bench_time time = bench_measure(mesh->type == FEM_H8 && r >= 30 ? 1 : 5, run_precompute, &c);
    double     plain = run_point_by_point(&c);
    printf("   %-18s %6d %6d %4d | %8.3f %8.3f | %9.2f %6.0fx | %9s %9s | %.0e\n", name, mesh->element_count,
           mesh->type == FEM_T4 ? 1 : quadrature * quadrature * quadrature, r, time.minimum, time.median, plain,
           plain / time.minimum, paper, vega, precompute_error(&c));
    cubature_polynomial_destroy(&c.polynomial);
    fem_body_destroy(c.body);
    fem_free(c.U);
}

static void bench_all_precomputations(void) {
    static const struct {
        const char *name, *paper;
        int         elements, r;
    } bodies[] = {{"spoon-like, H8", "60", 2005, 12},
                  {"as P4's bridge, H8", "186", 5854, 15},
                  {"as P4's tower, H8", "4752", 11304, 30},
                  {"as P4's heart, H8", "5844", 14444, 30}};
    const char *value = getenv("LIMBER_LONG");
    bool        everything = value && value[0];
    printf("   coefficients, seconds (P4 Figure 5)\n");
    printf("   %-18s %6s %6s %4s | %8s %8s | %9s %7s | %9s %9s | %s\n", "body", "elem.", "points", "r", "minimum",
           "median", "by points", "ratio", "P4", "VegaFEM", "error");
    fem_mesh mesh = {0};
    for (int i = 0; i < 4; i++) {
        make_spoon(&mesh, bodies[i].elements);
        bench_precompute(bodies[i].name, &mesh, 2, bodies[i].r, bodies[i].paper, "-");
        if (bodies[i].r < 30 || everything) bench_precompute("", &mesh, 3, bodies[i].r, bodies[i].paper, "-");
    }
    const char *name = make_bridge(&mesh);
    bench_precompute(name, &mesh, 2, 12, "-", "-");
    bench_precompute(name, &mesh, 2, 15, "-", "-");
    bench_precompute(name, &mesh, 2, 20, "-", "14.5");
    bench_precompute(name, &mesh, 2, 30, "-", "81");
    if (everything) bench_precompute(name, &mesh, 2, 40, "-", "-");
    fem_mesh_destroy(&mesh);
    printf("   goal for 12,827 T4: 0.1 s at r = 20, 0.5 s at r = 30. \"by points\": the sums of P4's appendix B, "
           "extrapolated from a sample\n\n");
}

// ---- evaluation
// ------------------------------------------------------------------------------------------------------

enum { RANKS = 6, MOST = 1394 };
static const int    ranks[RANKS] = {8, 12, 15, 20, 30, 40};
static const double vega_times[RANKS] = {0.72, NAN, NAN, 12.8, 103, 366};                    // force + stiffness, us
static const double paper_times[RANKS] = {NAN, 8.2 + 9.5, 22.0 + 25.0, NAN, 550 + 770, NAN}; // us
static const double paper_solve[RANKS] = {NAN, 12.5, 18.4, NAN, 75, NAN};

typedef struct evaluation {
    cubature_polynomial polynomial;
    cubature_forces     forces;
    cubature_batch     *batch;
    int                 r, blocks, repeats;
    double             *q, *f, *K, *work; // of the batch
    double             *A, *b;            // systems, and their copies
    double             *A0, *b0;
    unsigned char      *bad;
    double             *one_q, *one_f, *one_K;
} evaluation;

static void run_one(void *context) {
    evaluation *e = context;
    for (int i = 0; i < e->repeats; i++)
        e->forces.evaluate(e->forces.model, e->one_q, NULL, e->one_f, e->one_K, e->work);
}
static void run_plain(void *context) {
    evaluation *e = context;
    cubature_polynomial_plain(&e->polynomial, e->one_q, NULL, e->one_f, e->one_K);
}
static void run_batch(void *context) {
    evaluation *e = context;
    for (int i = 0; i < e->repeats; i++)
        cubature_batch_evaluate(e->batch, e->blocks, e->q, NULL, NULL, e->f, e->K, e->work);
}
static size_t system_size(const evaluation *e) { return (size_t)cubature_pairs(e->r) * 8; }
static void   run_copy(void *context) {
      evaluation *e = context;
      for (int i = 0; i < e->repeats; i++) {
          memcpy(e->A, e->A0, (size_t)e->blocks * system_size(e) * sizeof *e->A);
          memcpy(e->b, e->b0, (size_t)e->blocks * (size_t)e->r * 8 * sizeof *e->b);
    }
}
static void run_systems(void *context) {
    evaluation *e = context;
    for (int i = 0; i < e->repeats; i++) {
        memcpy(e->A, e->A0, (size_t)e->blocks * system_size(e) * sizeof *e->A);
        memcpy(e->b, e->b0, (size_t)e->blocks * (size_t)e->r * 8 * sizeof *e->b);
        fem_batch_solve(e->r, e->blocks, e->A, e->b, e->bad);
    }
}
static void lapack_system(const evaluation *e, int lane, double *A, double *b) {
    int r = e->r;
    for (int j = 0; j < r; j++) {
        b[j] = e->b0[8 * j + lane];
        for (int i = 0; i <= j; i++) A[i + j * r] = A[j + i * r] = e->A0[8 * (j * (j + 1) / 2 + i) + lane];
    }
    bench_try(dense_cholesky(r, A));
    dense_cholesky_solve(r, A, 1, b);
}
static void run_lapack(void *context) {
    evaluation *e = context;
    for (int i = 0; i < e->repeats; i++) lapack_system(e, i % 8, e->one_K, e->one_f);
}

// Polynomials with coefficients at random: time does not depend on them. Systems are diagonally dominant.
static void make_evaluation(evaluation *e, int r) {
    *e = (evaluation){.r = r};
    int    blocks = cubature_blocks(MOST);
    size_t lanes = (size_t)blocks * 8, n = (size_t)r, pairs = (size_t)cubature_pairs(r);
    bench_try(cubature_polynomial_allocate(&e->polynomial, r, 1, 2));
    for (size_t i = 0; i < e->polynomial.count; i++) e->polynomial.coefficients[i] = sin((double)i);
    e->forces = cubature_polynomial_forces(&e->polynomial);
    bench_try(cubature_batch_create(&e->batch, &e->polynomial));
    size_t work = cubature_batch_work(e->batch);
    e->work = fem_alloc(work > e->forces.work ? work : e->forces.work, sizeof *e->work);
    e->q = fem_alloc(lanes * n, 8), e->f = fem_alloc(lanes * n, 8), e->K = fem_alloc(lanes * pairs, 8);
    e->b = fem_alloc(lanes * n, 8), e->b0 = fem_alloc(lanes * n, 8), e->bad = fem_alloc((size_t)blocks, 1);
    e->A = fem_alloc(lanes * pairs, 8), e->A0 = fem_alloc(lanes * pairs, 8);
    e->one_q = fem_alloc(n, 8), e->one_f = fem_alloc(n, 8), e->one_K = fem_alloc(n * n, 8);
    if (!e->work || !e->q || !e->f || !e->K || !e->A || !e->A0 || !e->b || !e->b0 || !e->bad || !e->one_q ||
        !e->one_f || !e->one_K)
        bench_try(fem_fail(FEM_NO_MEMORY, "no memory"));
    for (size_t i = 0; i < lanes * n; i++) e->q[i] = sin((double)i), e->b0[i] = cos((double)i);
    for (size_t i = 0; i < lanes * pairs; i++) e->A0[i] = sin(1.3 * (double)i);
    for (size_t block = 0; block < (size_t)blocks; block++)
        for (size_t i = 0; i < n; i++)
            for (size_t lane = 0; lane < 8; lane++)
                e->A0[(block * pairs + i * (i + 1) / 2 + i) * 8 + lane] += 1.0 + (double)r;
    for (size_t i = 0; i < n; i++) e->one_q[i] = e->q[8 * i]; // the first instance
}

static void free_evaluation(evaluation *e) {
    cubature_batch_destroy(e->batch);
    cubature_polynomial_destroy(&e->polynomial);
    fem_free(e->work), fem_free(e->q), fem_free(e->f), fem_free(e->K), fem_free(e->A), fem_free(e->A0);
    fem_free(e->b), fem_free(e->b0), fem_free(e->bad), fem_free(e->one_q), fem_free(e->one_f), fem_free(e->one_K);
}

// Stiffness of the first instance, alone and in the batch, against the textbook loops; and x of its system.
static double evaluation_error(evaluation *e) {
    int     r = e->r;
    double *K = fem_alloc((size_t)(r * r), 8), *f = fem_alloc((size_t)r, 8), worst = 0, largest = 0, error;
    if (!K || !f) bench_try(fem_fail(FEM_NO_MEMORY, "no memory"));
    e->repeats = 1;
    cubature_polynomial_plain(&e->polynomial, e->one_q, NULL, f, K);
    run_one(e), run_batch(e);
    for (int j = 0; j < r; j++)
        for (int i = 0; i <= j; i++) {
            worst = fmax(worst, fabs(e->one_K[i + j * r] - K[i + j * r]));
            worst = fmax(worst, fabs(e->K[8 * (j * (j + 1) / 2 + i)] - K[i + j * r]));
            largest = fmax(largest, fabs(K[i + j * r]));
        }
    error = worst / largest, worst = largest = 0;
    for (int i = 0; i < r; i++) {
        worst = fmax(worst, fmax(fabs(e->one_f[i] - f[i]), fabs(e->f[8 * i] - f[i])));
        largest = fmax(largest, fabs(f[i]));
    }
    error = fmax(error, worst / largest), worst = largest = 0;
    run_systems(e);
    lapack_system(e, 0, K, f);
    for (int i = 0; i < r; i++) worst = fmax(worst, fabs(e->b[8 * i] - f[i])), largest = fmax(largest, fabs(f[i]));
    fem_free(K), fem_free(f);
    return fmax(error, worst / largest);
}

static bench_time measure(evaluation *e, void (*work)(void *), double guess) { // seconds per run of the work
    e->repeats = guess < 2e-4 ? 1 + (int)(2e-4 / guess) : 1;
    bench_time time = bench_measure(25, work, e);
    time.minimum /= e->repeats, time.median /= e->repeats;
    return time;
}

static void print_time(double microseconds) {
    if (isnan(microseconds))
        printf(" %8s", "-");
    else
        printf(" %8.*f", microseconds < 100 ? 3 : 0, microseconds);
}

static void print_ratio(double ratio) {
    if (isnan(ratio))
        printf(" %9s", "-");
    else
        printf(" %8.1fx", ratio);
}

static void bench_evaluation(void) {
    const int batches[2] = {64, MOST};
    double    one[RANKS], plain[RANKS], many[2][RANKS], x[RANKS], solves[RANKS], lapack[RANKS];
    printf("   force + stiffness, microseconds per instance (P4 Figure 11)\n");
    printf("   %3s | %8s %8s | %8s %7s | %8s %8s | %8s %8s | %9s %9s | %s\n", "r", "one", "(median)", "plain", "ratio",
           "P4", "VegaFEM", "of 64", "of 1394", "Vega/one", "Vega/64", "error");
    for (int k = 0; k < RANKS; k++) {
        evaluation e;
        int        r = ranks[k];
        double     flops = (double)r * r * r * r / 4, guess = 2e-10 * flops + 1e-7;
        make_evaluation(&e, r);
        bench_time alone = measure(&e, run_one, guess);
        one[k] = 1e6 * alone.minimum, x[k] = r;
        plain[k] = 1e6 * bench_measure(9, run_plain, &e).minimum;
        for (int b = 0; b < 2; b++) {
            e.blocks = cubature_blocks(batches[b]);
            many[b][k] = 1e6 * measure(&e, run_batch, 5e-11 * flops * batches[b]).minimum / batches[b];
        }
        e.blocks = 8;
        double copy = measure(&e, run_copy, 1e-6).minimum, whole = measure(&e, run_systems, 1e-6).minimum;
        solves[k] = 1e6 * (whole - copy) / 64;
        lapack[k] = 1e6 * measure(&e, run_lapack, 1e-6).minimum;
        printf("   %3d |", r), print_time(one[k]), print_time(1e6 * alone.median), printf(" |"), print_time(plain[k]);
        printf(" %6.0fx |", plain[k] / one[k]), print_time(paper_times[k]), print_time(vega_times[k]), printf(" |");
        print_time(many[0][k]), print_time(many[1][k]);
        printf(" |"), print_ratio(vega_times[k] / one[k]), print_ratio(vega_times[k] / many[0][k]);
        printf(" | %.0e\n", evaluation_error(&e));
        free_evaluation(&e);
    }
    printf("   goal: ahead of VegaFEM for one instance, 8 times ahead in a batch of 64\n\n");
    printf("   solution of the r x r system, microseconds per instance\n   %3s | %8s | %8s %7s | %8s\n", "r", "of 64",
           "LAPACK", "ratio", "P4");
    for (int k = 0; k < RANKS; k++) {
        printf("   %3d |", ranks[k]), print_time(solves[k]), printf(" |"), print_time(lapack[k]);
        printf(" %6.0fx |", lapack[k] / solves[k]), print_time(paper_solve[k]), printf("\n");
    }
    plot  *figure = plot_create("Reduced StVK, force + stiffness", "modes r", "microseconds per instance", true, true);
    double px[3] = {12, 15, 30}, py[3] = {17.7, 47, 1320}, vx[4] = {8, 20, 30, 40}, vy[4] = {0.72, 12.8, 103, 366};
    plot_series(figure, "P4 (2005)", 3, px, py);
    plot_series(figure, "plain loops", RANKS, x, plain);
    plot_series(figure, "VegaFEM 4", 4, vx, vy);
    plot_series(figure, "one instance", RANKS, x, one);
    plot_series(figure, "batch of 64", RANKS, x, many[0]);
    plot_series(figure, "batch of 1394", RANKS, x, many[1]);
    plot_write(figure, "out/bench/polynomial.svg");
}

int main(int argc, char **argv) {
    (void)argc;
    bench_header(argv, "Reduced StVK polynomials, one core");
    fem_set_threads(1);
    bench_print_speed();
    bench_all_precomputations();
    bench_evaluation();
    return 0;
}
