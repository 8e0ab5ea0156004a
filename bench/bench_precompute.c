// P0 Table 1: the whole precomputation of a reduced model: matrices, 12 linear inertia modes, 78 first-order
// derivatives, r = 30, training poses, cubature: P0's way, incremental Gaussian poses and a modal rule, and ours, poses
// that answer loads and an empirical rule, which is what scenes do. StVK, error 3%. Wall clock on all threads, and
// processor time, which other jobs on the machine change less; of several runs the one that took the least. The test
// with 100 held-out poses is no part of the paper's precomputation and told apart.
// bench_precompute BODY RUNS WAY for one body, and 0, 1 or 2 for one way.
#include "bench/cubature_case.h"

#include <stdlib.h>

enum { MODES = 30, WAYS = 3 };

static const struct {
    const char *name;
    double      tets;
    const char *paper;
    double      seconds;
} bodies[] = {
    {"bunny_50k", 50000, "Bunny 50,000, 217 poses", 4.2},
    {"armadillo_60k", 60000, "Armadillo 65,496, 225 poses", 4.8},
    {"dragon_100k", 100000, "Dragon 100,000, 198 poses", 7.2},
    {"koala_vox_200k", 200000, "Dinosaur 193,700, 150 poses", 9.7},
};

static const struct {
    const char     *name;
    cubature_method method;
    bool            loaded;
} ways[WAYS] = {{"modal, Gaussian poses (P0's way)", CUBATURE_MODAL, false},
                {"empirical, Gaussian poses", CUBATURE_EMPIRICAL, false},
                {"empirical, loaded poses (default)", CUBATURE_EMPIRICAL, true}};

typedef struct cost {
    double wall, processor;
} cost;

static cost now(void) { return (cost){fem_seconds(), bench_processor_seconds()}; }
static cost since(cost begin) {
    cost c = now();
    return (cost){c.wall - begin.wall, c.processor - begin.processor};
}

typedef struct trained {
    double                   wall, test; // without the test, and the test
    double                   processor;  // of both
    cubature_training_report report;
} trained;

static trained train(const cubature_case *c, cubature_method method, bool loaded) {
    cubature_training_options o = cubature_training_default_options();
    trained                   t;
    cubature_rule             rule;
    o.method = method, o.loaded = loaded;
    o.error = 0.03;
    cost begin = now();
    bench_try(cubature_train(&rule, c->body.body, c->basis.r, c->basis.U, c->rayleigh, &o, NULL, &t.report));
    cost took = since(begin);
    t.wall = t.report.seconds_poses + t.report.seconds_fit;
    t.test = took.wall - t.wall;
    t.processor = took.processor;
    cubature_rule_destroy(&rule);
    return t;
}

static void one_body(size_t b, int runs, int only) {
    cubature_case       c = {0};
    modes_recipe_report made = {0};
    cost                modes = {INFINITY, INFINITY};
    modes_case_create(&c.body, bodies[b].name, bodies[b].tets);
    double *zero = fem_calloc((size_t)c.body.n, sizeof *zero);
    for (int run = 0; run < runs; run++) {
        modes_recipe        recipe = modes_default_recipe(MODES_KRYLOV);
        modes_recipe_report report;
        cost                begin = now();
        modes_basis_destroy(&c.basis);
        fem_body_evaluate(c.body.body, zero, NULL, NULL, &c.body.K); // the matrices belong to the precomputation
        fem_body_mass(c.body.body, FEM_MASS_CONSISTENT, &c.body.M);
        recipe.count = MODES;
        bench_try(modes_build(&c.body.problem, c.body.body, &recipe, NULL, NULL, &c.basis, &report));
        cost took = since(begin);
        if (took.wall < modes.wall) modes = took, made = report;
    }
    bench_try(modes_examine(&c.body.problem, &c.basis, &c.quality));
    c.rayleigh = c.quality.rayleigh;
    printf("   %s: %d elements, %d threads   paper, 8 cores: %s, %.1f s\n", c.body.name, c.body.mesh.element_count,
           fem_threads(), bodies[b].paper, bodies[b].seconds);
    printf("   matrices and modes %.2f s (processor %.2f): factor %.2f, linear %.2f, derivatives %.2f, PCA %.2f\n",
           modes.wall, modes.processor, made.seconds_factor, made.seconds_linear, made.seconds_derivatives,
           made.seconds_condense);
    for (int way = 0; way < WAYS; way++) {
        trained best = {.wall = INFINITY};
        if (only >= 0 && way != only) continue;
        for (int run = 0; run < runs; run++) {
            trained t = train(&c, ways[way].method, ways[way].loaded);
            if (t.wall < best.wall) best = t;
        }
        const cubature_training_report *r = &best.report;
        printf("   %-34s total %5.2f s (processor %.2f with the test), %.2f of the paper's: %d poses %.2f (%d batches, "
               "%d shrunk), "
               "fit %.3f, %d elements, error %.2f%%%s; test apart %.2f s, held out %.2f%%\n",
               ways[way].name, modes.wall + best.wall, modes.processor + best.processor,
               (modes.wall + best.wall) / bodies[b].seconds, r->poses, r->seconds_poses, r->batches, r->inverted,
               r->seconds_fit, r->elements, 100 * r->fit_error, r->reached ? "" : " (not reached)", best.test,
               100 * r->held_out_error);
        fflush(stdout);
    }
    fem_free(zero);
    cubature_case_destroy(&c);
}

int main(int argc, char **argv) {
    bench_header(argv, "precomputation of a reduced model: P0 Table 1");
    int runs = argc > 2 ? atoi(argv[2]) : 2;
    for (size_t b = 0; b < sizeof bodies / sizeof *bodies; b++)
        if (argc <= 1 || strcmp(argv[1], bodies[b].name) == 0)
            one_body(b, runs > 0 ? runs : 1, argc > 3 ? atoi(argv[3]) : -1);
    return 0;
}
