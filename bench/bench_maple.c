// The maple of P0 Fig. 17: 513 domains of different shapes, about 1.1 million elements, Mooney-Rivlin, derivatives of
// second order at the leaves, where r = 35. A grown skeleton goes through a file and the importer into a scene of
// branches and leaves, none of which shares anything with another: precomputation with its time and memory, then 1,000
// steps in wind, and a few with all elements in place of cubature. One pass a step is compared with as many as settle
// on the same tree with six leaves only: with all of them settling halves steps again and again.
//     bench_maple [LEAVES [STEPS [loads]]]    462 1000; loads: the training poses of `limber`, not those of P0
#include "bench/bench.h"

#include <math.h>
#include <sys/resource.h>
#include <time.h>

enum { BRANCHES = 51, LEAVES = 462, PAPER_DOMAINS = 513, FULL_STEPS = 2, SETTLED_LEAVES = 6, SETTLED_STEPS = 200 };
static const char SKELETON[] = "out/bench/maple-skeleton.json", SCENE[] = "out/bench/maple.json";

static double cpu(void) { // of all threads
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double peak_gigabytes(void) {
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)use.ru_maxrss / 1048576;
}

// ---- the tree ------------------------------------------------------------------------------------------------------

// Grown leaves are alike but for their size; these differ in shape, too.
static void write_skeleton(void) {
    scene_skeleton s = {0};
    bench_try(scene_skeleton_grow(&s, SCENE_MAPLE, 1));
    uint64_t state = 7;
    for (int i = 0; i < s.leaf_count; i++) s.leaves[i].width *= 0.75 + 0.5 * solver_random(&state);
    bench_try(scene_skeleton_write(&s, SKELETON));
    scene_skeleton_destroy(&s);
}

static void write_scene(int leaves, bool loads) {
    scene_skeleton      s = {0};
    scene_plant_options o = scene_plant_default_options();
    scene_plant_report  report;
    o.wood = SCENE_MAPLE, o.distinct = o.mooney = true, o.gaussian = !loads;
    o.leaves = leaves, o.leaf_cells = 17, o.leaf_scale = 1.6;
    o.leaf_modes = 35, o.leaf_derivatives = 2, o.branch_modes = 20;
    o.title = "The maple of P0 Fig. 17 in wind";
    bench_try(scene_skeleton_read(&s, SKELETON, 1));
    bench_try(scene_plant_write(&s, &o, SCENE, &report));
    printf("%s: %d branches, %d leaves, %.3g m high\n", SCENE, report.branches, report.leaves, report.height);
    scene_skeleton_destroy(&s);
}

// Meshes that are the same as another.
static int count_repeats(const scene *s) {
    int       count = s->forest.part_count, repeats = 0;
    fem_hash *hashes = fem_alloc((size_t)count, sizeof *hashes);
    for (int i = 0; i < count; i++) {
        hashes[i] = fem_mesh_hash(&s->parts[i].mesh);
        for (int k = 0; k < i; k++) repeats += fem_hash_equal(hashes[i], hashes[k]);
    }
    fem_free(hashes);
    return repeats;
}

// ---- the classes ---------------------------------------------------------------------------------------------------

static void describe_rules(const solver_forest *f) {
    int    elements = 0, all = 0, missed = 0, count = f->part_count;
    double fit = 0, *held = fem_alloc((size_t)count, sizeof *held);
    for (int k = 0; k < count; k++) {
        const cubature_training_report *t = &f->classes[k]->training;
        elements += t->elements, all += f->classes[k]->mesh.element_count, missed += !t->reached;
        fit = fmax(fit, t->fit_error), held[k] = t->held_out_error;
    }
    qsort(held, (size_t)count, sizeof *held, bench_compare);
    printf("  cubature: %d of %d elements; fit error %.2g%% at most, %d missed theirs; held-out poses: median %.2g%%, "
           "worst %.2g%%\n",
           elements, all, 100 * fit, missed, 100 * held[count / 2], 100 * held[count - 1]);
    fem_free(held);
}

// What the rules are worth in small motions: the lowest frequency of each class, beside that with all elements.
static double lowest(cubature_forces forces, const solver_inertia *inertia) {
    size_t  r = (size_t)forces.r;
    double *K = fem_calloc(2 * r * r + 2 * r + forces.work, sizeof *K), *M = K + r * r, *q = M + r * r, *values = q + r;
    forces.evaluate(forces.model, q, NULL, NULL, K, values + r);
    memcpy(M, inertia->Mqq, r * r * sizeof *M);
    bench_try(dense_generalized_eigen(forces.r, K, M, values));
    double value = values[0];
    fem_free(K);
    return sqrt(fmax(value, 0));
}

static void check_frequencies(const solver_forest *f) {
    double worst = 0, sum = 0;
    int    every = f->part_count > 100 ? 10 : 1, looked = 0;
    for (int k = 0; k < f->part_count; k += every, looked++) {
        const solver_class *c = f->classes[k];
        cubature_full      *full = NULL;
        bench_try(cubature_full_create(&full, c->body, c->basis.r, c->basis.U));
        double error = fabs(lowest(c->forces, &c->inertia) / lowest(cubature_full_forces(full), &c->inertia) - 1);
        worst = fmax(worst, error), sum += error;
        cubature_full_destroy(full);
    }
    printf(
        "  lowest frequency of %d classes (every %dth) against all elements: %.2g%% off in the mean, %.2g%% at worst\n",
        looked, every, 100 * sum / looked, 100 * worst);
}

// ---- motion --------------------------------------------------------------------------------------------------------

typedef struct breeze {
    solver_wind         *wind;
    solver_wind_surface *surfaces;
    solver_wind_load    *load;
} breeze;

static void breeze_create(breeze *b, const scene *s, const solver_forest *f) {
    bench_try(solver_wind_create(&b->wind, &s->wind));
    b->surfaces = fem_calloc((size_t)f->part_count, sizeof *b->surfaces);
    for (int k = 0; k < f->part_count; k++) {
        const solver_class *c = f->classes[k];
        const scene_drag   *drag = &s->parts[k].drag;
        int                *triangles = NULL, count = 0;
        bench_try(fem_mesh_surface(&c->mesh, &count, &triangles, NULL));
        bench_try(solver_wind_surface_create(&b->surfaces[k], c->mesh.vertex_count, c->mesh.vertices, count, triangles,
                                             c->basis.r, c->basis.U, drag->samples, drag->normal, drag->tangential));
        fem_free(triangles);
    }
    bench_try(solver_wind_load_create(&b->load, b->wind, f->part_count, b->surfaces, f->count));
}

static void breeze_destroy(breeze *b, int parts) {
    solver_wind_load_destroy(b->load);
    for (int k = 0; k < parts; k++) solver_wind_surface_destroy(&b->surfaces[k]);
    fem_free(b->surfaces);
    solver_wind_destroy(b->wind);
}

typedef struct outcome {
    double seconds; // a step, of all threads
    double tip[3];
} outcome;

static outcome run_steps(const scene *s, const solver_forest *f, const solver_tree_options *options, const char *what,
                         int steps) {
    solver_tree         *tree = NULL;
    breeze               b = {0};
    solver_tree_energies e;
    outcome              result;
    double               first[3], *tip = result.tip, farthest = 0, largest = 0;
    int                  point, marks = steps >= 1000 ? 10 : steps >= 20 ? 4 : 1, last = f->count - 1;
    bench_try(solver_forest_tree(&tree, f, options));
    breeze_create(&b, s, f);
    bench_try(solver_forest_point(f, tree, last, f->classes[f->given[last].part]->mesh.vertex_count - 1, &point));
    solver_tree_point(tree, point, first, NULL);
    printf("%s: %d domains, %d degrees of freedom, steps of %.4g s, %g m/s\n", what, solver_tree_count(tree),
           solver_tree_dofs(tree), options->time_step, s->wind.speed);
    double start = cpu(), wall = fem_seconds();
    for (int k = 0; k < steps; k++) {
        bench_try(solver_wind_load_apply(b.load, tree));
        bench_try(solver_tree_step(tree)); // fails where a coordinate is not finite
        solver_tree_point(tree, point, tip, NULL);
        farthest = fmax(farthest, vec3_distance(tip, first));
        if ((k + 1) % (steps / marks) != 0) continue;
        solver_tree_get_energies(tree, &e);
        largest = fmax(largest, e.kinetic + e.strain);
        printf("  t = %6.2f s: kinetic %.3g J, strain %.3g J, a leaf's tip %.3g m away\n", (k + 1) * options->time_step,
               e.kinetic, e.strain, vec3_distance(tip, first));
        fflush(stdout);
    }
    result.seconds = (cpu() - start) / steps;
    solver_tree_report r = solver_tree_get_report(tree);
    printf("  %d steps: %.1f ms of all threads, %.1f ms wall clock; frames %.1f, forces %.1f, up %.1f, down %.1f ms "
           "wall\n",
           steps, 1e3 * result.seconds, 1e3 * (fem_seconds() - wall) / steps, 1e3 * r.seconds_frames / steps,
           1e3 * r.seconds_forces / steps, 1e3 * r.seconds_up / steps, 1e3 * r.seconds_down / steps);
    printf("  %d passes besides two, %d steps halved, %d unsettled, %d shifts, %d domains left to the plain version\n",
           r.extra_passes, r.halved, r.unsettled, r.shifts, r.plain);
    printf("  energy %.3g J at most, tip %.3g m at most; all finite\n", largest, farthest);
    breeze_destroy(&b, f->part_count);
    solver_tree_destroy(tree);
    return result;
}

// The same classes with all their elements.
static double run_full(const scene *s, solver_forest *f) {
    cubature_full    **full = fem_calloc((size_t)f->part_count, sizeof *full);
    solver_tree_class *kept = fem_copy(f->tree_classes, (size_t)f->part_count, sizeof *kept);
    for (int k = 0; k < f->part_count; k++) {
        const solver_class *c = f->classes[k];
        bench_try(cubature_full_create(&full[k], c->body, c->basis.r, c->basis.U));
        f->tree_classes[k].forces = cubature_full_forces(full[k]);
        f->tree_classes[k].batch = NULL;
    }
    outcome full_steps = run_steps(s, f, &s->tree.options, "all elements", FULL_STEPS);
    memcpy(f->tree_classes, kept, (size_t)f->part_count * sizeof *kept);
    for (int k = 0; k < f->part_count; k++) cubature_full_destroy(full[k]);
    fem_free(full), fem_free(kept);
    return full_steps.seconds;
}

// One pass against as many as settle.
static void compare_passes(bool loads) {
    scene         *s = NULL;
    solver_forest *f = NULL;
    write_scene(SETTLED_LEAVES, loads);
    bench_try(scene_load(&s, SCENE, 0, NULL));
    bench_try(
        solver_forest_create(&f, s->forest.part_count, s->forest.parts, s->forest.count, s->forest.instances, NULL));
    bench_try(solver_forest_precompute(f, NULL, NULL, NULL));
    solver_tree_options settled = s->tree.options;
    settled.passes = solver_tree_default_options().passes;
    outcome one = run_steps(s, f, &s->tree.options, "six leaves, one pass a step", SETTLED_STEPS);
    outcome slow = run_steps(s, f, &settled, "six leaves, passes that settle", SETTLED_STEPS);
    printf("a settled step takes %.1f times as long; the tips differ by %.2g m\n", slow.seconds / one.seconds,
           vec3_distance(one.tip, slow.tip));
    solver_forest_destroy(f);
    scene_destroy(s);
}

int main(int argc, char **argv) {
    int            leaves = argc > 1 ? atoi(argv[1]) : LEAVES, steps = argc > 2 ? atoi(argv[2]) : 1000;
    bool           loads = argc > 3 && strcmp(argv[3], "loads") == 0;
    scene         *s = NULL;
    solver_forest *f = NULL;
    bench_header(argv, "the maple of P0 Fig. 17: 513 domains, none like another");
    if (argc == 1 && !getenv("LIMBER_LONG")) {
        printf("takes minutes: make bench-long\n");
        return 0;
    }
    write_skeleton();
    write_scene(leaves, loads);
    double start = cpu(), wall = fem_seconds();
    bench_try(scene_load(&s, SCENE, 0, NULL));
    printf("%d domains (%d in P0), %d elements (1102K in P0), %d of %d meshes the same as another; read in %.1f s\n",
           s->forest.count, PAPER_DOMAINS, s->parts[s->object].mesh.element_count, count_repeats(s),
           s->forest.part_count, cpu() - start);
    double before = peak_gigabytes();
    start = cpu(), wall = fem_seconds();
    bench_try(
        solver_forest_create(&f, s->forest.part_count, s->forest.parts, s->forest.count, s->forest.instances, NULL));
    bench_try(solver_forest_precompute(f, NULL, NULL, NULL));
    double used = cpu() - start;
    wall = fem_seconds() - wall;
    printf("precomputation, %s poses: %.1f s processor time, %.1f s wall clock with %d threads (P0: under 60 s, 8 "
           "cores)\n",
           loads ? "loaded" : "Gaussian", used, wall, fem_threads());
    printf("  by share of the threads' time: modes %.1f, cubature %.1f, the rest %.1f s; peak memory %.2f GB (%.2f "
           "before)\n",
           used * f->seconds_modes / (f->seconds_modes + f->seconds_forces + f->seconds_rest),
           used * f->seconds_forces / (f->seconds_modes + f->seconds_forces + f->seconds_rest),
           used * f->seconds_rest / (f->seconds_modes + f->seconds_forces + f->seconds_rest), peak_gigabytes(), before);
    describe_rules(f);
    check_frequencies(f);
    outcome all = run_steps(s, f, &s->tree.options, "cubature, one pass a step", steps);
    double  full = run_full(s, f);
    printf("a step with cubature takes 1/%.1f of one with all elements; peak memory %.2f GB\n", full / all.seconds,
           peak_gigabytes());
    solver_forest_destroy(f);
    scene_destroy(s);
    compare_passes(loads);
    return 0;
}
