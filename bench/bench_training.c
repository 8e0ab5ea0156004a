// How many training poses a modal rule needs, and what that does to motion:
// P0 Fig. 9: error of the fit and error at other poses against the number of random poses, four bodies;
// P0 Fig. 10: error at other poses with and without recentring of new poses on the worst ones, armadillo;
// P0 Fig. 15: motion with an optimized and a modal rule of 1000 poses, and with modal rules of about 225 incremental
//   poses and of 5,000 random ones, against exact forces, armadillo;
// P0 Fig. 14: motion of a tip with the classical precomputation (Lanczos modes, modal derivatives, random poses,
//   optimized cubature) and with ours (inertia modes and derivatives, incremental poses, modal cubature), dragon.
// StVK, r = 30. Other poses: 1,000 random ones with exact forces of the whole mesh (P0: 50,000; so many in bench-long).
// Figures and their numbers in out/bench/training_*.svg and .csv. bench_training 9 for one figure.
#include "bench/cubature_case.h"
#include "bench/tip_case.h"

#include <stdlib.h>

enum { MODES = 30, SAMPLE = 105, COUNTS = 10 };

static int others_count(void) { return bench_long() ? 50000 : 1000; }

static void first_of(const cubature_poses *all, int count, cubature_poses *some) {
    *some = *all;
    some->count = count < all->count ? count : all->count;
}

typedef struct fixed_fit {
    double fit, other, seconds;
} fixed_fit;

// The weights of a fixed sample of elements, as many as P0 has them.
static fixed_fit fit_sample(const cubature_case *c, const cubature_poses *poses, const cubature_poses *others,
                            cubature_rule *kept) {
    int                     *elements = fem_alloc((size_t)c->body.mesh.element_count, sizeof *elements), count = 0;
    cubature_training_report report;
    cubature_rule            rule;
    double                   begin = bench_processor_seconds();
    bench_try(cubature_sample_elements(&c->body.mesh, SAMPLE, elements, &count));
    bench_try(cubature_fit_weights(&rule, c->body.body, c->basis.r, c->basis.U, poses, count, elements, true, false,
                                   &report));
    fixed_fit result = {.fit = report.modal_error, .seconds = bench_processor_seconds() - begin};
    result.other = cubature_rule_error(&rule, others, false);
    fem_free(elements);
    if (kept)
        *kept = rule;
    else
        cubature_rule_destroy(&rule);
    return result;
}

// ---- Fig. 9 --------------------------------------------------------------------------------------------------------

static void figure_9(void) {
    static const char *const names[] = {"armadillo_60k", "bunny_50k", "koala_vox_50k", "dragon_100k"};
    static const int         counts[COUNTS] = {20, 40, 70, 105, 140, 175, 225, 350, 500, 800};
    plot *fits = plot_create("error of the fit (P0 Fig. 9, left)", "training poses", "relative error", true, false);
    plot *tests =
        plot_create("error at other poses (P0 Fig. 9, right)", "training poses", "relative error", true, true);
    printf("   -- P0 Fig. 9: modal rules of about %d elements, random poses; error at %d others\n", SAMPLE,
           others_count());
    for (size_t b = 0; b < sizeof names / sizeof *names; b++) {
        cubature_case  c;
        cubature_poses poses, others, some;
        double         x[COUNTS], fit[COUNTS], other[COUNTS];
        cubature_case_create(&c, names[b], 60000, MODES_KRYLOV, MODES);
        cubature_case_poses(&c, 0.1, 1, counts[COUNTS - 1], &poses, NULL);
        cubature_case_poses(&c, 0.1, 2, others_count(), &others, NULL);
        printf("   %s, %d elements\n", names[b], c.body.mesh.element_count);
        for (int k = 0; k < COUNTS; k++) {
            first_of(&poses, counts[k], &some);
            fixed_fit f = fit_sample(&c, &some, &others, NULL);
            x[k] = counts[k], fit[k] = f.fit, other[k] = f.other;
            printf("      %4d poses: fit %6.2f%%   others %7.2f%%\n", counts[k], 100 * f.fit, 100 * f.other);
        }
        plot_series(fits, names[b], COUNTS, x, fit);
        plot_series(tests, names[b], COUNTS, x, other);
        fflush(stdout);
        cubature_poses_destroy(&poses), cubature_poses_destroy(&others);
        cubature_case_destroy(&c);
    }
    plot_write(fits, "out/bench/training_fit.svg");
    plot_write(tests, "out/bench/training_others.svg");
}

// ---- Fig. 10 -------------------------------------------------------------------------------------------------------

// Poses of the incremental generation that would go on for ever: batches of a third of the sample.
static void incremental(const cubature_case *c, bool recentre, int most, double settled, unsigned seed,
                        cubature_poses *poses, cubature_training_report *report) {
    cubature_training_options o = cubature_training_default_options();
    o.loaded = false, o.recentre = recentre, o.balanced = false;
    o.sample = SAMPLE, o.settled = settled, o.most_poses = most, o.seed = seed;
    bench_try(cubature_poses_generate(poses, c->body.body, c->basis.r, c->basis.U, c->rayleigh, &o, NULL, report));
}

// The poses of a run are the first of a longer one; errors are means over several seeds.
static void figure_10(const cubature_case *c, const cubature_poses *others) {
    enum { SEEDS = 3, STEPS = 9, LAST = 500 };
    static const int counts[STEPS] = {158, 193, 228, 263, 298, 333, 368, 438, 498};
    double           x[STEPS], error[2][STEPS] = {{0}};
    plot *figure = plot_create("recentring (P0 Fig. 10)", "training poses", "error at other poses", false, false);
    printf("   -- P0 Fig. 10: %s, batches of %d; mean error of %d seeds at %d other poses\n", c->body.name, SAMPLE / 3,
           SEEDS, others->count);
    for (int recentre = 0; recentre < 2; recentre++)
        for (unsigned seed = 1; seed <= SEEDS; seed++) {
            cubature_poses           poses, some;
            cubature_training_report report;
            incremental(c, recentre, LAST, 1e-9, seed, &poses, &report);
            for (int k = 0; k < STEPS; k++) {
                first_of(&poses, counts[k], &some);
                x[k] = some.count;
                error[recentre][k] += fit_sample(c, &some, others, NULL).other / SEEDS;
            }
            cubature_poses_destroy(&poses);
        }
    for (int k = 0; k < STEPS; k++)
        printf("      %4.0f poses: around zero %.3f%%, recentred %.3f%%\n", x[k], 100 * error[0][k], 100 * error[1][k]);
    plot_series(figure, "around zero", STEPS, x, error[0]);
    plot_series(figure, "recentred on the worst", STEPS, x, error[1]);
    plot_write(figure, "out/bench/training_recentre.svg");
    fflush(stdout);
}

// ---- motion --------------------------------------------------------------------------------------------------------

// A sudden acceleration of the ground across the body, so large that the linear body's vertex farthest from what is
// held would move by a tenth of its diagonal. The curve is that vertex's displacement along it.
typedef struct pulled {
    int    tip, steps; // steps: of the lowest linear period
    double direction[3], size, step;
    double load[MODES], row[MODES];
} pulled;

static int farthest_vertex(const modes_case *c) {
    double held[3] = {0}, most = -1;
    int    count = 0, best = 0;
    for (int v = 0; v < c->mesh.vertex_count; v++)
        if (c->fixed[3 * (size_t)v]) vec3_axpy(held, 1, c->mesh.vertices + 3 * (size_t)v), count++;
    for (int k = 0; k < 3; k++) held[k] /= count > 0 ? count : 1;
    for (int v = 0; v < c->mesh.vertex_count; v++) {
        double d = vec3_distance(held, c->mesh.vertices + 3 * (size_t)v);
        if (d > most) most = d, best = v;
    }
    return best;
}

// size 0: found, and the step
static void pull(const cubature_case *c, const cubature_forces *forces, pulled *p) {
    size_t  r = (size_t)c->basis.r, n = (size_t)c->body.n;
    double  K[MODES * MODES], zero[MODES] = {0}, q[MODES];
    double *force = fem_alloc(n, sizeof *force), *work = fem_alloc(forces->work, sizeof *work);
    double *direction = fem_alloc(n, sizeof *direction);
    p->tip = farthest_vertex(&c->body);
    for (size_t i = 0; i < n; i++) direction[i] = p->direction[i % 3];
    fem_sparse_multiply(&c->body.M, 1, direction, force);
    dense_gemv_t_set((int)n, (int)r, 1, c->basis.U, force, p->load);
    for (size_t l = 0; l < r; l++) {
        p->row[l] = 0;
        for (size_t k = 0; k < 3; k++) p->row[l] += p->direction[k] * c->basis.U[l * n + 3 * (size_t)p->tip + k];
    }
    if (p->size == 0) {
        forces->evaluate(forces->model, zero, NULL, NULL, K, work);
        memcpy(q, p->load, sizeof q);
        bench_try(dense_cholesky((int)r, K));
        dense_cholesky_solve((int)r, K, 1, q);
        p->size = 0.1 * cubature_case_diagonal(c) / fabs(dense_dot((int)r, p->row, q));
        forces->evaluate(forces->model, zero, NULL, NULL, K, work);
        bench_try(dense_symmetric_eigen((int)r, K, q)); // ascending; the basis is mass-orthonormal
        p->step = 6.283185307179586 / sqrt(q[0]) / p->steps;
    }
    dense_scale((int)r, p->size, p->load);
    fem_free(force), fem_free(work), fem_free(direction);
}

static void add_curve(plot *figure, const char *name, const tip_curve *c) {
    double x[TIP_STEPS];
    for (int i = 0; i < TIP_STEPS; i++) x[i] = c->step * (i + 1);
    plot_series(figure, name, TIP_STEPS, x, c->tip);
}

// The stiffness of a modal rule is not symmetric: with its symmetric part Newton's method is too slow for 20
// iterations.
static solver_reduced_solve solve_for(cubature_method method) {
    return method == CUBATURE_MODAL ? SOLVER_SOLVE_KRYLOV : SOLVER_SOLVE_DIRECT;
}

// ---- Fig. 15 -------------------------------------------------------------------------------------------------------

static void figure_15(const cubature_case *c, const cubature_poses *others) {
    static tip_curve            exact, one;
    cubature_polynomial         polynomial;
    cubature_polynomial_options po = cubature_polynomial_default_options();
    plot  *figure = plot_create("the tip of the armadillo (P0 Fig. 15)", "time (s)", "displacement (m)", false, false);
    pulled p = {.direction = {1, 0, 0}, .steps = 160}; // it swings four times as fast as the linear body
    printf("   -- P0 Fig. 15: %s under a sudden load, %d steps; against exact forces\n", c->body.name, TIP_STEPS);
    bench_try(cubature_polynomial_create(&polynomial, c->body.body, c->basis.r, c->basis.U, &po, NULL));
    cubature_forces forces = cubature_polynomial_forces(&polynomial);
    pull(c, &forces, &p);
    tip_run_reduced(&exact, p.step, &forces, p.load, p.row, SOLVER_SOLVE_DIRECT, 1e-6, 20);
    tip_print("exact forces", &exact, &exact);
    add_curve(figure, "exact forces", &exact);
    for (int way = 0; way < 6; way++) {
        static const char *const  names[] = {"optimized, 1000 random poses", "modal, 1000 random poses",
                                             "modal, incremental poses",     "modal, 5000 random poses",
                                             "modal, loaded poses",          "empirical, loaded poses"};
        cubature_poses            poses = {0};
        cubature_rule             rule;
        cubature_training_report  report = {0};
        double                    begin = bench_processor_seconds(), made;
        cubature_training_options o = cubature_training_default_options();
        o.error = 0.03, o.balanced = way > 3;
        o.method = way == 0 ? CUBATURE_OPTIMIZED : way == 5 ? CUBATURE_EMPIRICAL : CUBATURE_MODAL;
        double seconds = 0, error;
        if (way > 3) {
            o.held_out = 0;
            bench_try(cubature_train(&rule, c->body.body, c->basis.r, c->basis.U, c->rayleigh, &o, NULL, &report));
            made = report.seconds_poses, seconds = report.seconds_fit, poses.count = report.poses;
        } else {
            if (way == 2)
                incremental(c, true, 5000, 0.005, 1, &poses, &report);
            else
                cubature_case_poses(c, 0.1, 1, way == 3 ? 5000 : 1000, &poses, NULL);
            made = bench_processor_seconds() - begin;
        }
        if (way == 0) {
            begin = bench_processor_seconds();
            bench_try(cubature_fit(&rule, c->body.body, c->basis.r, c->basis.U, &poses, &o, NULL, NULL));
            seconds = bench_processor_seconds() - begin;
        } else if (way < 4) {
            seconds = fit_sample(c, &poses, others, &rule).seconds;
        }
        error = cubature_rule_error(&rule, others, false);
        printf("   %s: %d poses in %.2f s, fit %.2f s of processor time (of the last two wall clock), %d elements, "
               "error at other poses %.2f%%\n",
               names[way], poses.count, made, seconds, rule.count, 100 * error);
        forces = cubature_rule_forces(&rule);
        if (tip_run_reduced(&one, p.step, &forces, p.load, p.row, solve_for(o.method), 1e-6, 20)) {
            tip_print("", &one, &exact);
            add_curve(figure, names[way], &one);
        }
        fflush(stdout);
        cubature_rule_destroy(&rule);
        cubature_poses_destroy(&poses);
    }
    plot_write(figure, "out/bench/training_motion.svg");
    cubature_polynomial_destroy(&polynomial);
}

// ---- Fig. 14 -------------------------------------------------------------------------------------------------------

static void figure_14(void) {
    enum { WAYS = 3 };
    static tip_curve curves[2 * WAYS];
    bool             stable[2 * WAYS];
    plot  *figure = plot_create("the tip of the dragon (P0 Fig. 14)", "time (s)", "displacement (m)", false, false);
    pulled p = {.direction = {0, 0, 1}, .steps = 40};
    static const char *const names[2 * WAYS] = {"classical, exact forces",     "classical, optimized rule",
                                                "inertia modes, exact forces", "P0's way, modal rule",
                                                "inertia modes, exact forces", "default, empirical rule"};
    printf("   -- P0 Fig. 14: dragon_100k, the ground accelerates suddenly, %d steps; 12 + 78 modes condensed to %d, "
           "error "
           "3%%. classical: Lanczos modes, modal derivatives, 1000 random poses, optimized cubature; P0's way: inertia "
           "modes and derivatives, incremental poses, modal cubature; default: the same modes, loaded poses, empirical "
           "cubature\n",
           TIP_STEPS, MODES);
    for (int way = 0; way < WAYS; way++) {
        cubature_case             c;
        cubature_polynomial       polynomial;
        cubature_training_options o = cubature_training_default_options();
        cubature_training_report  report;
        cubature_rule             rule;
        double                    begin = bench_processor_seconds(), modes, training;
        cubature_case_create(&c, "dragon_100k", 100000, way == 0 ? MODES_LANCZOS : MODES_KRYLOV, MODES);
        modes = bench_processor_seconds() - begin;
        o.method = way == 0 ? CUBATURE_OPTIMIZED : way == 1 ? CUBATURE_MODAL : CUBATURE_EMPIRICAL;
        o.poses = way == 0 ? 1000 : 0;
        o.loaded = way == 2, o.error = 0.03;
        begin = bench_processor_seconds();
        bench_try(cubature_train(&rule, c.body.body, c.basis.r, c.basis.U, c.rayleigh, &o, NULL, &report));
        training = bench_processor_seconds() - begin;
        printf("   %s: body and modes %.1f s, training %.1f s of processor time, %d poses, %d elements, held-out error "
               "%.2f%%\n",
               way == 0   ? "classical"
               : way == 1 ? "P0's way"
                          : "default",
               modes, training, report.poses, rule.count, 100 * report.held_out_error);
        cubature_polynomial_options po = cubature_polynomial_default_options();
        bench_try(cubature_polynomial_create(&polynomial, c.body.body, c.basis.r, c.basis.U, &po, NULL));
        cubature_forces forces = cubature_polynomial_forces(&polynomial);
        pull(&c, &forces, &p);
        for (int k = 0; k < 2; k++) {
            if (k == 1) forces = cubature_rule_forces(&rule);
            stable[2 * way + k] = tip_run_reduced(&curves[2 * way + k], p.step, &forces, p.load, p.row,
                                                  k == 1 ? solve_for(o.method) : SOLVER_SOLVE_DIRECT, 1e-6, 20);
        }
        fflush(stdout);
        cubature_polynomial_destroy(&polynomial);
        cubature_rule_destroy(&rule);
        cubature_case_destroy(&c);
    }
    for (int k = 0; k < 2 * WAYS; k++)
        if (stable[k]) {
            tip_print(names[k], &curves[k], &curves[0]);
            if (k != 4) add_curve(figure, names[k], &curves[k]); // the same as 2
        }
    plot_write(figure, "out/bench/training_tip.svg");
}

int main(int argc, char **argv) {
    bench_header(argv, "training poses and motion: P0 Fig. 9, 10, 14 and 15");
    int only = argc > 1 ? atoi(argv[1]) : 0;
    if (only == 0 || only == 9) figure_9();
    if (only == 0 || only == 10 || only == 15) {
        cubature_case  c;
        cubature_poses others;
        cubature_case_create(&c, "armadillo_60k", 60000, MODES_KRYLOV, MODES);
        cubature_case_poses(&c, 0.1, 2, others_count(), &others, NULL);
        if (only != 15) figure_10(&c, &others);
        if (only != 10) figure_15(&c, &others);
        cubature_poses_destroy(&others);
        cubature_case_destroy(&c);
    }
    if (only == 0 || only == 14) figure_14();
    return 0;
}
