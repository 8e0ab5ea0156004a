// P0 Table 1: the whole precomputation of a reduced model: 12 linear inertia modes, 78 first-order derivatives, r = 30,
// training poses, cubature: P0's way, incremental Gaussian poses and a modal rule, and ours, poses that answer loads
// and an empirical rule, which is what scenes do. StVK. Processor time of all threads (the wall clock of two free cores
// is between half of it and all of it), and the wall clock of the parts.
#include "bench/cubature_case.h"

enum { MODES = 30 };

static const struct {
    const char *name;
    double      tets;
    const char *paper;
} bodies[] = {
    {"bunny_50k", 50000, "Bunny 50,000: 217 poses, 4.2 s"},
    {"armadillo_60k", 60000, "Armadillo 65,496: 225 poses, 4.8 s"},
    {"dragon_100k", 100000, "Dragon 100,000: 198 poses, 7.2 s"},
    {"koala_vox_200k", 200000, "Dinosaur 193,700: 150 poses, 9.7 s"},
};

static void train(const cubature_case *c, cubature_method method, bool loaded, double before, double processor_before) {
    cubature_training_options o = cubature_training_default_options();
    cubature_training_report  report;
    cubature_rule             rule;
    o.method = method, o.loaded = loaded;
    o.error = 0.03;
    double begin = fem_seconds(), processor = bench_processor_seconds();
    bench_try(cubature_train(&rule, c->body.body, c->basis.r, c->basis.U, c->rayleigh, &o, NULL, &report));
    processor = bench_processor_seconds() - processor;
    double test = fem_seconds() - begin - report.seconds_poses - report.seconds_fit;
    printf("   %-9s %s poses: processor time %.2f s (100 held-out poses included); wall clock %.2f s: body and "
           "matrices + modes "
           "%.2f, %d poses %.2f (%d batches), fit %.3f (%d elements, "
           "error "
           "%.2f%%); test of 100 held-out poses apart: %.2f s, error %.2f%%\n",
           cubature_method_name(method), loaded ? "loaded" : "Gaussian", processor_before + processor,
           before + report.seconds_poses + report.seconds_fit, before, report.poses, report.seconds_poses,
           report.batches, report.seconds_fit, report.elements, 100 * report.fit_error, test,
           100 * report.held_out_error);
    cubature_rule_destroy(&rule);
}

int main(int argc, char **argv) {
    bench_header(argv, "precomputation of a reduced model: P0 Table 1");
    for (size_t b = 0; b < sizeof bodies / sizeof *bodies; b++) {
        if (argc > 1 && strcmp(argv[1], bodies[b].name) != 0) continue;
        cubature_case c = {0};
        modes_case_create(&c.body, bodies[b].name, bodies[b].tets);
        modes_recipe        recipe = modes_default_recipe(MODES_KRYLOV);
        modes_recipe_report made;
        double              processor = bench_processor_seconds(), begin = fem_seconds(),
               *zero = fem_calloc((size_t)c.body.n, sizeof *zero);
        fem_body_evaluate(c.body.body, zero, NULL, NULL, &c.body.K); // the matrices belong to the precomputation
        fem_body_mass(c.body.body, FEM_MASS_CONSISTENT, &c.body.M);
        recipe.count = MODES;
        bench_try(modes_build(&c.body.problem, c.body.body, &recipe, NULL, NULL, &c.basis, &made));
        double modes = fem_seconds() - begin;
        processor = bench_processor_seconds() - processor;
        bench_try(modes_examine(&c.body.problem, &c.basis, &c.quality));
        c.rayleigh = c.quality.rayleigh;
        printf(
            "   %s: %d elements, %d threads; modes: factor %.2f, linear %.2f, derivatives %.2f, PCA %.2f s   paper, 8 "
            "cores: %s\n",
            c.body.name, c.body.mesh.element_count, fem_threads(), made.seconds_factor, made.seconds_linear,
            made.seconds_derivatives, made.seconds_condense, bodies[b].paper);
        train(&c, CUBATURE_MODAL, false, modes, processor);
        train(&c, CUBATURE_EMPIRICAL, false, modes, processor);
        train(&c, CUBATURE_EMPIRICAL, true, modes, processor);
        fflush(stdout);
        fem_free(zero);
        cubature_case_destroy(&c);
    }
    return 0;
}
