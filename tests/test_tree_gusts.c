// Long runs of an assembled flower with its default (polynomial) forces: strong gusts at steps from 1/1000 to 1/30 s
// with light damping, domains made stiff on purpose, and undamped motion of large amplitude. Each step size gets
// 100,000 steps when LIMBER_LONG is set.
#include "tests/support.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

typedef struct flower {
    fem_mesh         mesh;
    const fem_set   *foot;
    domain_tree      domains;
    solver_assembly *assembly;
    int              petal; // a vertex at its tip
} flower;

// A stem, a bloom with two petals, a branch with a leaf: six domains, 1.04 m high, lowest frequency about 1 Hz.
static void flower_create(flower *f, const solver_assembly_options *o) {
    const fem_piece pieces[] = {
        {.name = "stem", .shape = FEM_BOX, .a = {0, 0, 0}, .b = {0.08, 0.08, 0.96}},
        {.name = "bloom", .shape = FEM_BOX, .a = {-0.08, -0.08, 0.96}, .b = {0.16, 0.16, 1.04}},
        {.name = "petal 1", .shape = FEM_BOX, .a = {0.16, -0.04, 1}, .b = {0.4, 0.12, 1.04}},
        {.name = "petal 2", .shape = FEM_BOX, .a = {-0.32, -0.04, 1}, .b = {-0.08, 0.12, 1.04}},
        {.name = "branch", .shape = FEM_BOX, .a = {0, 0.08, 0.56}, .b = {0.08, 0.4, 0.64}},
        {.name = "leaf", .shape = FEM_BOX, .a = {-0.08, 0.4, 0.56}, .b = {0.16, 0.64, 0.6}},
    };
    fem_material   m = fem_material_default();
    domain_options cut = domain_default_options();
    *f = (flower){0};
    m.kind = FEM_STVK, m.young = 2e6, m.poisson = 0.3, m.density = 1000;
    assert_ok(fem_generate_pieces(&f->mesh, FEM_H8, 6, pieces, 0.04));
    assert_ok(fem_mesh_set_material(&f->mesh, &m));
    f->foot = fem_mesh_vertex_set(&f->mesh, "z0");
    cut.method = DOMAIN_REGIONS, cut.fixed = f->foot->items, cut.fixed_count = f->foot->count;
    assert_ok(domain_decompose(&f->domains, &f->mesh, &cut));
    assert_int_equal(f->domains.count, 6);
    assert_ok(
        solver_assembly_create(&f->assembly, &f->mesh, &f->domains, f->foot->count, f->foot->items, o, NULL, NULL));
    for (int v = 0; v < f->mesh.vertex_count; v++)
        if (f->mesh.vertices[3 * v] > f->mesh.vertices[3 * f->petal]) f->petal = v;
}

static void flower_destroy(flower *f) {
    solver_assembly_destroy(f->assembly);
    domain_tree_destroy(&f->domains);
    fem_mesh_destroy(&f->mesh);
}

static solver_tree *flower_tree(const flower *f, double step) {
    solver_tree_options o = solver_tree_default_options();
    solver_tree        *tree = NULL;
    o.time_step = step;
    assert_int_equal(o.subtree, SOLVER_ARTICULATED);
    assert_ok(solver_assembly_tree(&tree, f->assembly, false, &o));
    return tree;
}

static int steps_of(int brief) { return getenv("LIMBER_LONG") ? 100000 : brief; }

static double mechanical(solver_tree *tree) {
    solver_tree_energies e;
    solver_tree_get_energies(tree, &e);
    return e.kinetic + e.strain;
}

// ---- gusts ---------------------------------------------------------------------------------------------------------

// Fronts that come within one step, from changing directions, after 0.1 to 1 s; and forces on a petal that change with
// every step.
typedef struct gusts {
    uint64_t state;
    double   until, strength, flutter;
} gusts;

static void blow(gusts *g, solver_tree *tree, int point) {
    double force[3];
    if (solver_tree_time(tree) >= g->until) {
        double wind[3];
        test_random_fill(&g->state, 3, g->strength, wind);
        wind[2] *= 0.3;
        solver_tree_set_gravity(tree, wind);
        g->until += 0.55 + 0.45 * test_random(&g->state);
    }
    test_random_fill(&g->state, 3, g->flutter, force);
    assert_ok(solver_tree_set_force(tree, point, force));
}

typedef struct outcome {
    double swing;     // the farthest that the petal was from rest, m
    double energy[2]; // the largest in each half of the run, J
    double deviation; // of the interfaces from moving rigidly, the largest
    int    shifts, singular;
} outcome;

static outcome run_gusts(const flower *f, double step, int steps) {
    outcome      out = {0};
    gusts        g = {.state = 11, .strength = 6, .flutter = 1};
    solver_tree *tree = flower_tree(f, step);
    int          point;
    double       rest[3], x[3];
    assert_ok(solver_assembly_point(f->assembly, tree, f->petal, &point));
    solver_tree_point(tree, point, rest, NULL);
    for (int k = 0; k < steps; k++) {
        blow(&g, tree, point);
        assert_ok(solver_tree_step(tree));
        out.singular += solver_tree_get_report(tree).near_singular + solver_tree_get_report(tree).reflected;
        if (k % 16) continue;
        solver_tree_point(tree, point, x, NULL);
        out.swing = fmax(out.swing, vec3_distance(x, rest));
        double energy = mechanical(tree);
        assert_true(isfinite(energy));
        out.energy[2 * k >= steps] = fmax(out.energy[2 * k >= steps], energy);
        for (int i = 1; i < f->assembly->count; i++)
            out.deviation = fmax(out.deviation, solver_tree_deviation(tree, i));
    }
    out.shifts = solver_tree_get_report(tree).shifts;
    solver_tree_destroy(tree);
    return out;
}

static double lowest_omega(const flower *f) {
    double       omega;
    solver_tree *tree = flower_tree(f, 0.01);
    assert_ok(solver_tree_frequencies(tree, 1, &omega, NULL));
    solver_tree_destroy(tree);
    return omega;
}

// With the damping that trees have by default nothing diverges, and the second half of a run is no wilder than the
// first.
static void test_gusts(void **unused) {
    (void)unused;
    static const double     rates[] = {1000, 240, 60, 30};
    static const int        brief[] = {3000, 1500, 1500, 1500};
    solver_assembly_options o = solver_assembly_default_options();
    flower                  f;
    flower_create(&f, &o);
    double omega = lowest_omega(&f), ratio = o.damping_ratio;
    assert_true(ratio > 0 && ratio <= 0.02);
    printf("   lowest mode %.3f Hz, damping ratio %.1f%%\n", omega / (2 * pi), 100 * ratio);
    for (size_t k = 0; k < 4; k++) {
        int     steps = steps_of(brief[k]);
        outcome out = run_gusts(&f, 1 / rates[k], steps);
        printf("   %6d steps of 1/%4.0f s: swings %.2f m, energy to %.1f J, in the second half to %.1f J; deviation to "
               "%.3f, %d shifts, %d singular\n",
               steps, rates[k], out.swing, out.energy[0], out.energy[1], out.deviation, out.shifts, out.singular);
        fflush(stdout);
        assert_true(out.swing > 0.5 && out.swing < 2.5);
        assert_true(out.energy[1] < 2.5 * out.energy[0]);
    }
    flower_destroy(&f);
}

// ---- stiff domains -------------------------------------------------------------------------------------------------

// w_max of a domain by itself, held at its interface
static double largest_omega(const solver_class *c, double stiffness) {
    int     r = c->basis.r;
    size_t  all = (size_t)r * (size_t)r;
    double *q = fem_calloc((size_t)r, sizeof *q), *K = fem_alloc(all, sizeof *K), *M = fem_alloc(all, sizeof *M);
    double *w2 = fem_alloc((size_t)r, sizeof *w2), *work = fem_alloc(c->forces.work, sizeof *work);
    c->forces.evaluate(c->forces.model, q, NULL, w2, K, work);
    memcpy(M, c->inertia.Mqq, all * sizeof *M);
    assert_ok(dense_generalized_eigen(r, K, M, w2));
    double omega = sqrt(stiffness * w2[r - 1]);
    fem_free(q), fem_free(K), fem_free(M), fem_free(w2), fem_free(work);
    return omega;
}

// Every domain but the stem is made stiff and all its modes are given speed, without damping: the energy stays.
// The second speed, 16 times the energy, bends domains by as much as they are wide.
static void stiff_run(const flower *f, double speed, double factor, int steps) {
    double       h = 1.0 / 60, most = 0, dq[64], worst = 0, least = 1;
    solver_tree *tree = flower_tree(f, h);
    uint64_t     state = 5;
    for (int i = 1; i < f->assembly->count; i++) {
        const solver_class *c = f->assembly->classes[f->assembly->instances[i].class_index];
        int                 r = c->basis.r;
        assert_true(r <= 64);
        test_random_fill(&state, r, speed, dq);
        assert_ok(solver_tree_set_stiffness(tree, i, factor));
        assert_ok(solver_tree_set_state(tree, i, NULL, dq));
        most = fmax(most, largest_omega(c, factor));
    }
    double start = mechanical(tree);
    for (int step = 0; step < steps; step++) {
        assert_ok(solver_tree_step(tree));
        double now = mechanical(tree) / start;
        worst = fmax(worst, now), least = fmin(least, now);
    }
    solver_tree_report report = solver_tree_get_report(tree);
    printf("   %.3f J, h w_max = %8.1f: energy after %d steps %.4f, %.4f to %.4f; %d more passes, %d steps halved\n",
           start, h * most, steps, mechanical(tree) / start, least, worst, report.extra_passes, report.halved);
    fflush(stdout);
    assert_true(worst < 1.005 && least > (steps > 500 ? 0.98 : 0.995));
    assert_int_equal(report.unsettled, 0);
    assert_true(factor < 1e6 || h * most > 10000);
    solver_tree_destroy(tree);
}

static void test_stiff_domains(void **unused) {
    (void)unused;
    solver_assembly_options o = solver_assembly_default_options();
    flower                  f;
    o.damping_stiffness = 0;
    flower_create(&f, &o);
    static const double factors[] = {1, 100, 1e4, 1e6};
    for (int k = 0; k < 4; k++) {
        stiff_run(&f, 0.02, factors[k], getenv("LIMBER_LONG") ? 10000 : 500);
        stiff_run(&f, 0.08, factors[k], getenv("LIMBER_LONG") ? 2000 : 100);
    }
    flower_destroy(&f);
}

// The stiffness damping of a tree gives its lowest mode the ratio that is asked for, and none when 0 is asked for. A
// domain's own stays.
static void test_default_damping(void **unused) {
    (void)unused;
    solver_assembly_options o = solver_assembly_default_options();
    solver_domain_options   own[6];
    flower                  f;
    o.total = 30, o.class.forces = SOLVER_FORCES_LINEAR;
    for (int i = 0; i < 6; i++) own[i] = solver_assembly_domain_options(&o);
    own[3].damping_stiffness = 0.25;
    o.domains = own;
    flower_create(&f, &o);
    solver_tree *tree = flower_tree(&f, 0.01);
    double       omega = lowest_omega(&f), alpha, beta, energy[2] = {0}, *shape;
    for (int i = 0; i < 6; i++) {
        solver_tree_get_damping(tree, i, &alpha, &beta);
        assert_true(alpha == 0 && fabs(beta - (i == 3 ? 0.25 : 2 * o.damping_ratio / omega)) < 1e-9);
        assert_ok(solver_tree_set_damping(tree, i, 0, 2 * o.damping_ratio / omega));
    }
    // the lowest mode by itself loses exp(-4 pi ratio) of its energy in a period
    shape = fem_alloc((size_t)solver_tree_dofs(tree), sizeof *shape);
    assert_ok(solver_tree_frequencies(tree, 1, &omega, shape));
    dense_scale(solver_tree_dofs(tree), 1e-3 * omega, shape);
    int from = 0, steps = 400;
    assert_ok(solver_tree_set_time_step(tree, 2 * pi / omega / steps));
    for (int i = 0; i < 6; i++) {
        assert_ok(solver_tree_set_state(tree, i, NULL, shape + from));
        from += f.assembly->classes[f.assembly->instances[i].class_index]->basis.r;
    }
    energy[0] = mechanical(tree);
    for (int k = 0; k < steps; k++) assert_ok(solver_tree_step(tree));
    energy[1] = mechanical(tree);
    double measured = -log(energy[1] / energy[0]) / (4 * pi);
    printf("   ratio of the lowest mode: asked for %.4f, measured %.5f\n", o.damping_ratio, measured);
    assert_true(fabs(measured - o.damping_ratio) < 0.01 * o.damping_ratio);
    fem_free(shape);
    solver_tree_destroy(tree);
    flower_destroy(&f);
    o.domains = NULL, o.damping_ratio = 0;
    flower_create(&f, &o);
    tree = flower_tree(&f, 0.01);
    solver_tree_get_damping(tree, 2, &alpha, &beta);
    assert_true(beta == 0);
    solver_tree_destroy(tree);
    flower_destroy(&f);
}

// ---- undamped ------------------------------------------------------------------------------------------------------

// The whole flower pushed along its first mode so that it bends by almost its height, undamped, 10,000 steps. The swing
// passes its energy on to fast modes of all domains, half of which turn by more than a radian in a step. It stays all
// the same, up to what is left of the equations where passes stop.
static void test_undamped(void **unused) {
    (void)unused;
    solver_assembly_options o = solver_assembly_default_options();
    flower                  f;
    double                  omega, rest[3], x[3], swing = 0, gain = 0, loss = 0, early = 0;
    o.damping_stiffness = 0;
    int steps = getenv("LIMBER_LONG") ? 10000 : 2000, point, from = 0;
    flower_create(&f, &o);
    solver_tree *tree = flower_tree(&f, 1.0 / 240);
    double      *shape = fem_alloc((size_t)solver_tree_dofs(tree), sizeof *shape);
    assert_ok(solver_tree_frequencies(tree, 1, &omega, shape));
    dense_scale(solver_tree_dofs(tree), 5 * omega, shape); // q^T K q = 1: 12.5 J
    for (int i = 0; i < f.assembly->count; i++) {
        assert_ok(solver_tree_set_state(tree, i, NULL, shape + from));
        from += f.assembly->classes[f.assembly->instances[i].class_index]->basis.r;
    }
    assert_ok(solver_assembly_point(f.assembly, tree, f.petal, &point));
    solver_tree_point(tree, point, rest, NULL);
    double start = mechanical(tree);
    for (int step = 0; step < steps; step++) {
        assert_ok(solver_tree_step(tree));
        if (step % 10) continue;
        double change = mechanical(tree) / start - 1;
        gain = fmax(gain, change), loss = fmax(loss, -change);
        if (step < 2000) early = fmax(early, fabs(change));
        solver_tree_point(tree, point, x, NULL);
        swing = fmax(swing, vec3_distance(x, rest));
    }
    printf("   undamped, %d steps of 1/240 s, swings %.2f m: energy %.2f J within %.2f%% in the first 2,000; gains "
           "%.2f%%, loses %.2f%% at most\n",
           steps, swing, start, 100 * early, 100 * gain, 100 * loss);
    assert_true(swing > 0.3 && early < 0.0005 && gain < 0.002 && loss < 0.005);
    fem_free(shape);
    solver_tree_destroy(tree);
    flower_destroy(&f);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gusts), cmocka_unit_test(test_default_damping),
                                       cmocka_unit_test(test_stiff_domains), cmocka_unit_test(test_undamped)};
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
