// P0 Table 3: elements and time of optimized, modal and empirical cubature for a range of fitting errors, on
// armadillo_60k with 30 modes and 1000 poses; the errors at 200 other poses beside them. Processor time of all threads,
// the generation of poses apart, as in the paper. The 0.1% row of optimized cubature is for bench-long.
#include "bench/cubature_case.h"

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

static void table(const cubature_case *c, const cubature_poses *poses, const cubature_poses *others, bool balanced,
                  curves *out) {
    printf("   -- %s\n", balanced ? "the same with an error in which each mode counts by its own force (ours)"
                                  : "the paper's error: |f~ - f| / |f|");
    for (int k = balanced ? 2 : 0; k < LEVELS; k++) {
        bool run_optimized = (levels[k] >= 0.004 && !balanced) || bench_long();
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
        if (optimized.done)
            printf("   optimized over modal: %.0f x (paper %.0f x)\n", optimized.seconds / alone,
                   paper[k].seconds[0] / paper[k].seconds[1]);
        const row *rows[3] = {&optimized, &modal, &empirical};
        for (int m = 0; m < 3; m++)
            if (rows[m]->done)
                out->x[m][out->count[m]] = rows[m]->elements, out->y[m][out->count[m]++] = rows[m]->held_out;
        fflush(stdout);
    }
}

int main(int argc, char **argv) {
    (void)argc;
    bench_header(argv, "cubature: P0 Table 3");
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
    curves paper_norm = {0}, balanced = {0};
    table(&c, &poses, &others, false, &paper_norm);
    table(&c, &poses, &others, true, &balanced);
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
