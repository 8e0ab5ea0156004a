// P0 Table 3: elements and time of optimized, modal and empirical cubature for a range of fitting errors, on
// armadillo_60k with 30 modes and 1000 poses; the errors at 200 other poses beside them. Processor time of all threads,
// the generation of poses apart, as in the paper. Optimized cubature twice: the library's, which updates its factors,
// and as it was published (classical_cubature.h). bench-long adds 0.5% and 0.1% of the library's, and runs the
// published one down to 1% instead of 3%. First NNLS alone, in three sizes. "bench_cubature nnls" for that only,
// "bench_cubature 1" for the row of 1% only, the published way included.
#include "bench/classical_cubature.h"

enum { MODES = 30, POSES = 1000, OTHERS = 200, LEVELS = 7 };

static const double levels[LEVELS] = {0.6, 0.25, 0.1, 0.03, 0.01, 0.005, 0.001};
static const struct {
    int    elements[2];
    double seconds[2]; // optimized, modal
} paper[LEVELS] = {{{2, 1}, {9.2, 0.02}},     {{7, 8}, {29.7, 0.02}},   {{21, 17}, {74.5, 0.03}},
                   {{50, 28}, {128.9, 0.05}}, {{110, 59}, {206, 0.13}}, {{141, 65}, {273.7, 0.15}},
                   {{374, 113}, {7920, 0.36}}};

typedef struct row {
    int    elements;
    double seconds, fit, held_out;
    bool   reached, done;
} row;

static row train(const cubature_case *c, const cubature_poses *poses, const cubature_poses *others,
                 cubature_method method, double error, bool balanced, int runs) {
    cubature_training_options o = cubature_training_default_options();
    row                       result = {.seconds = INFINITY, .done = true};
    o.method = method;
    o.error = error;
    o.balanced = balanced;
    for (int run = 0; run < runs; run++) {
        cubature_rule            rule;
        cubature_training_report report;
        double                   begin = bench_processor_seconds();
        bench_try(cubature_fit(&rule, c->body.body, c->basis.r, c->basis.U, poses, &o, NULL, &report));
        result.seconds = fmin(result.seconds, bench_processor_seconds() - begin);
        result.elements = rule.count, result.fit = report.fit_error, result.reached = report.reached;
        result.held_out = cubature_rule_error(&rule, others, balanced);
        cubature_rule_destroy(&rule);
    }
    return result;
}

// The modal fit at a known number of elements, without the search for that number: what P0 times.
static double modal_alone(const cubature_case *c, const cubature_poses *poses, int elements, bool balanced) {
    int   *list = fem_alloc((size_t)c->body.mesh.element_count, sizeof *list), count = 0;
    double best = INFINITY;
    for (int run = 0; run < 5; run++) {
        cubature_rule            rule;
        cubature_training_report report;
        double                   begin = bench_processor_seconds();
        bench_try(cubature_sample_elements(&c->body.mesh, elements, list, &count));
        bench_try(cubature_fit_weights(&rule, c->body.body, c->basis.r, c->basis.U, poses, count, list, true, balanced,
                                       &report));
        best = fmin(best, bench_processor_seconds() - begin);
        cubature_rule_destroy(&rule);
    }
    fem_free(list);
    return best;
}

static void print_row(const char *name, row r, const char *text) {
    if (!r.done)
        printf("   %-10s not run here: bench-long\n", name);
    else
        printf("   %-10s %4d elements %9.4f s   fit %.2e%s   held out %.2e%s\n", name, r.elements, r.seconds, r.fit,
               r.reached ? " " : "!", r.held_out, text);
}

typedef struct curves {
    int    count[3];
    double x[3][LEVELS], y[3][LEVELS];
} curves;

typedef struct classical {
    int    elements[LEVELS];
    double seconds[LEVELS];
} classical;

static void table(const cubature_case *c, const cubature_poses *poses, const cubature_poses *others, bool balanced,
                  const classical *published, double only, curves *out) {
    printf("   -- %s\n", balanced ? "the same with an error in which each mode counts by its own force (ours)"
                                  : "the paper's error: |f~ - f| / |f|");
    for (int k = balanced ? 2 : 0; k < LEVELS; k++) {
        if (only > 0 && fabs(levels[k] - only) > 1e-9) continue;
        bool run_optimized = !balanced && (levels[k] >= 0.009 || bench_long());
        row  modal = train(c, poses, others, CUBATURE_MODAL, levels[k], balanced, 3);
        row  empirical = train(c, poses, others, CUBATURE_EMPIRICAL, levels[k], balanced, 3);
        row  optimized = {0};
        if (run_optimized) optimized = train(c, poses, others, CUBATURE_OPTIMIZED, levels[k], balanced, 1);
        double alone = modal_alone(c, poses, modal.elements, balanced);
        char   text[160];
        printf("   error %g%%\n", 100 * levels[k]);
        snprintf(text, sizeof text, "   paper: %d, %g s", paper[k].elements[0], paper[k].seconds[0]);
        print_row("optimized", optimized, text);
        snprintf(text, sizeof text, "   paper: %d, %g s; fit alone %.4f s", paper[k].elements[1], paper[k].seconds[1],
                 alone);
        print_row("modal", modal, text);
        snprintf(text, sizeof text, "   %.1f x modal's fit", empirical.seconds / alone);
        print_row("empirical", empirical, text);
        if (published && published->elements[k] > 0)
            printf("   %-10s %4d elements %9.4f s   optimized cubature as published\n", "classical",
                   published->elements[k], published->seconds[k]);
        if (optimized.done)
            printf("   over modal's fit: optimized %.0f x, classical %.0f x (paper %.0f x); over modal with its search "
                   "for the number of elements: %.0f x, %.0f x\n",
                   optimized.seconds / alone, published ? published->seconds[k] / alone : NAN,
                   paper[k].seconds[0] / paper[k].seconds[1], optimized.seconds / modal.seconds,
                   published ? published->seconds[k] / modal.seconds : NAN);
        const row *rows[3] = {&optimized, &modal, &empirical};
        for (int m = 0; m < 3; m++)
            if (rows[m]->done)
                out->x[m][out->count[m]] = rows[m]->elements, out->y[m][out->count[m]++] = rows[m]->held_out;
        fflush(stdout);
    }
}

// Problems like those of a modal fit, and the three ways to solve them.
static void nnls_table(void) {
    static const struct {
        int    m, n;
        double prototype[3]; // ms: QR in each step, updated Cholesky, block pivoting
    } sizes[] = {{225, 60, {2.2, 0.09, 0.08}}, {450, 200, {79, 1.6, 1.0}}, {1000, 400, {866, 8.7, 6.5}}};
    printf("   -- NNLS, milliseconds a problem; in brackets what prototypes took on another machine\n");
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int     m = sizes[s].m, n = sizes[s].n;
        size_t  entries = (size_t)m * (size_t)n;
        double *A = fem_alloc(entries, sizeof *A), *b = fem_calloc((size_t)m, sizeof *b);
        double *x = fem_alloc((size_t)n, sizeof *x), *work = fem_alloc(cubature_nnls_work(m, n), sizeof *work);
        double  best[3] = {INFINITY, INFINITY, INFINITY}, violation[3] = {0};
        // columns with a common part, as forces of elements have; about half of the weights are positive
        for (size_t i = 0; i < entries; i++) A[i] = random_normal(7, i) + 0.5 * random_normal(8, i % (size_t)m);
        for (int j = 0; j < n; j++) dense_axpy(m, random_normal(9, (unsigned long)j), A + (size_t)j * (size_t)m, b);
        classical_fit c = {.rows = m, .count = n, .most = n, .A = A, .x = x};
        c.copy = fem_alloc(entries, sizeof *c.copy), c.y = fem_alloc((size_t)m, sizeof *c.y);
        c.z = fem_alloc((size_t)n, sizeof *c.z), c.g = fem_alloc((size_t)n, sizeof *c.g);
        c.residual = fem_alloc((size_t)m, sizeof *c.residual), c.passive = fem_alloc((size_t)n, sizeof *c.passive);
        for (int way = 0; way < 3; way++)
            for (int run = 0; run < (way == 0 ? 1 : 5); run++) {
                cubature_nnls_options o = cubature_nnls_default_options();
                cubature_nnls_report  report = {0};
                double                begin = fem_cpu_seconds();
                o.method = way == 1 ? CUBATURE_NNLS_LAWSON_HANSON : CUBATURE_NNLS_AUTOMATIC;
                if (way == 0)
                    classical_nnls(&c, b);
                else
                    bench_try(cubature_nnls(m, n, A, m, b, &o, x, work, &report));
                best[way] = fmin(best[way], 1e3 * (fem_cpu_seconds() - begin));
                violation[way] = report.violation;
            }
        printf("   %4d x %3d: QR in each step %.2f (%.2f), updated factors %.3f (%.2f), block pivoting %.3f (%.2f); "
               "optimality missed by %.0e, %.0e\n",
               m, n, best[0], sizes[s].prototype[0], best[1], sizes[s].prototype[1], best[2], sizes[s].prototype[2],
               violation[1], violation[2]);
        fem_free(A), fem_free(b), fem_free(x), fem_free(work), fem_free(c.copy), fem_free(c.y), fem_free(c.z);
        fem_free(c.g), fem_free(c.residual), fem_free(c.passive);
    }
    fflush(stdout);
}

int main(int argc, char **argv) {
    bench_header(argv, "cubature: P0 Table 3");
    nnls_table();
    if (argc > 1 && strcmp(argv[1], "nnls") == 0) return 0;
    double only = argc > 1 ? atof(argv[1]) / 100 : 0;
    int    published_levels = bench_long() ? 5 : 4;
    for (int k = 0; k < LEVELS; k++)
        if (fabs(levels[k] - only) < 1e-9) published_levels = k + 1;
    cubature_case  c;
    cubature_poses poses, others;
    int            inverted = 0;
    cubature_case_create(&c, "armadillo_60k", 60000, MODES_KRYLOV, MODES);
    double begin = bench_processor_seconds();
    cubature_case_poses(&c, 0.1, 1, POSES, &poses, &inverted);
    double generated = bench_processor_seconds() - begin;
    cubature_case_poses(&c, 0.1, 2, OTHERS, &others, NULL);
    printf(
        "   %s: %d elements, r = %d, %d threads; %d poses with their forces in %.2f s, %d of them made smaller because "
        "an element inverted\n   time of a fit in processor seconds of all threads; ! = error not reached; held out: "
        "error at %d "
        "other poses; paper: 8 cores\n",
        c.body.name, c.body.mesh.element_count, c.basis.r, fem_threads(), POSES, generated, inverted, OTHERS);
    curves       paper_norm = {0}, balanced = {0};
    classical    published;
    reduced_body reduced;
    trainer      matrix;
    bench_try(reduced_body_create(&reduced, c.body.body, c.basis.r, c.basis.U));
    bench_try(trainer_create(&matrix, &reduced, &poses, false, false));
    for (int k = 0; k < LEVELS; k++) published.elements[k] = 0, published.seconds[k] = NAN;
    classical_run(&matrix, published_levels, levels, 400, 1, published.elements, published.seconds);
    trainer_destroy(&matrix), reduced_body_destroy(&reduced);
    table(&c, &poses, &others, false, &published, only, &paper_norm);
    table(&c, &poses, &others, true, NULL, only, &balanced);
    plot *figure = plot_create("error at held-out poses", "elements", "relative error", true, true);
    for (int m = 0; m < 3; m++)
        plot_series(figure,
                    m == 0   ? "optimized"
                    : m == 1 ? "modal"
                             : "empirical",
                    paper_norm.count[m], paper_norm.x[m], paper_norm.y[m]);
    plot_write(figure, "out/bench/cubature_elements.svg");
    cubature_poses_destroy(&poses), cubature_poses_destroy(&others);
    cubature_case_destroy(&c);
    return 0;
}
