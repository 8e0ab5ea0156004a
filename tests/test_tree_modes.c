// Frequencies of linearised coupled trees against full FEM, and the two ways to find them against each other.
#include "tests/support.h"
#include "libsolver/tree_internal.h"
#include "tests/tree_body.h"

#include <math.h>

enum { COUNT = 8 };

// A bar of `cells` x 2 x 2 cells of 0.25 m.
static void make_bar(fem_mesh *mesh, int cells) {
    fem_material m = fem_material_default();
    m.kind = FEM_LINEAR, m.young = 1e6, m.poisson = 0.3, m.density = 1000;
    const double low[3] = {0, -0.25, -0.25}, high[3] = {0.25 * cells, 0.25, 0.25};
    const int    n[3] = {cells, 2, 2};
    *mesh = (fem_mesh){0};
    assert_ok(fem_generate_box(mesh, FEM_T4, low, high, n));
    assert_ok(fem_mesh_set_material(mesh, &m));
}

// Lowest angular frequencies of the whole bar, held at x = 0.
static void full_bar(int cells, double *omega) {
    fem_mesh  mesh;
    tree_body bar;
    make_bar(&mesh, cells);
    tree_body_options o = {.root = "x0", .r = COUNT};
    assert_ok(tree_body_create(&bar, &mesh, &o));
    for (int k = 0; k < COUNT; k++) omega[k] = sqrt(bar.forces.K[k * (COUNT + 1)]);
    tree_body_destroy(&bar);
}

static const char *bar_end = "x1";

// A chain of `count` bars of 16 cells.
static void make_segment(tree_body *segment, bool seeds) {
    fem_mesh mesh;
    make_bar(&mesh, 16);
    tree_body_options o = {.root = "x0", .end_count = 1, .ends = &bar_end, .seeds = seeds, .r = 12};
    assert_ok(tree_body_create(segment, &mesh, &o));
    assert_true(segment->interfaces[0].flat);
}

static solver_tree *make_chain(const tree_body *segment, int count, solver_root root, solver_subtree level) {
    solver_tree_class     c = tree_body_class(segment, "segment");
    solver_tree_instance *instances = fem_alloc((size_t)count, sizeof *instances);
    solver_tree_options   o = solver_tree_default_options();
    solver_tree          *tree = NULL;
    o.subtree = level;
    for (int k = 0; k < count; k++)
        instances[k] = (solver_tree_instance){.parent = k - 1, .scale = 1, .stiffness = 1, .root = root};
    assert_ok(solver_tree_create(&tree, 1, &c, count, instances, &o));
    fem_free(instances);
    return tree;
}

// The three-domain cantilever of theory.md: the lowest frequency over full FEM is 2.95 with L1, 1.17 with L2 and 0.997
// with L3 with interface-aware seeds, 1.21 and 1.03 for L2 and L3 with vibration modes; all eight of L3 within 0.7%.
static void test_cantilever(void **unused) {
    (void)unused;
    static const double known[2][3] = {{1.03, 1.21, 0}, {0.997, 1.17, 2.95}};
    double              truth[COUNT], omega[COUNT];
    full_bar(48, truth);
    for (int seeds = 0; seeds < 2; seeds++) {
        tree_body segment;
        make_segment(&segment, seeds);
        for (int level = SOLVER_ARTICULATED; level <= SOLVER_INTERFACE; level++) {
            solver_tree *tree = make_chain(&segment, 3, SOLVER_ROOT_FIXED, (solver_subtree)level);
            assert_ok(solver_tree_frequencies(tree, COUNT, omega, NULL));
            printf("   %s L%d over full FEM:", seeds ? "seeds    " : "vibration", 3 - level);
            double worst = 0;
            for (int k = 0; k < COUNT; k++) {
                printf(" %.3f", omega[k] / truth[k]);
                worst = fmax(worst, fabs(omega[k] / truth[k] - 1));
            }
            printf("\n");
            if (known[seeds][level] > 0) assert_true(fabs(omega[0] / truth[0] / known[seeds][level] - 1) < 0.01);
            if (seeds && level == SOLVER_ARTICULATED) assert_true(worst < 0.01);
            solver_tree_destroy(tree);
        }
        tree_body_destroy(&segment);
    }
}

// Ten domains, and the Krylov space against LAPACK, held and free.
static void test_methods(void **unused) {
    (void)unused;
    double    truth[COUNT], dense[COUNT], krylov[COUNT];
    tree_body segment;
    make_segment(&segment, true);
    full_bar(160, truth);
    for (int free = 0; free < 2; free++) {
        solver_tree *tree = make_chain(&segment, 10, free ? SOLVER_ROOT_FREE : SOLVER_ROOT_FIXED, SOLVER_ARTICULATED);
        double      *shapes = fem_alloc(2 * 120 * COUNT, sizeof *shapes), *other = shapes + 120 * COUNT;
        assert_ok(tree_frequencies(tree, COUNT, true, dense, shapes));
        assert_ok(tree_frequencies(tree, COUNT, false, krylov, other));
        printf("   ten domains %s, rad/s:", free ? "free" : "held");
        for (int k = 0; k < COUNT; k++) printf(" %.4f", dense[k]);
        double worst = test_relative_error(COUNT, krylov, dense);
        printf("; methods differ by %.1e\n", worst);
        assert_true(worst < 1e-8);
        for (int k = 0; !free && k < COUNT; k++) assert_true(fabs(dense[k] / truth[k] - 1) < 0.01);
        // the shapes are the same up to sign, and K-normalised
        double overlap = 0;
        for (int i = 0; i < 120; i++) overlap += shapes[240 + i] * other[240 + i] * segment.forces.K[(i % 12) * 13];
        printf("   overlap of the third shapes %.6f\n", fabs(overlap));
        assert_true(fabs(fabs(overlap) - 1) < 1e-6);
        fem_free(shapes);
        solver_tree_destroy(tree);
    }
    tree_body_destroy(&segment);
}

// Small vibrations in time have the frequency of the model: an excited first shape is back after a period.
static void test_period(void **unused) {
    (void)unused;
    tree_body segment;
    double    omega[2], shapes[2 * 36];
    make_segment(&segment, true);
    solver_tree *tree = make_chain(&segment, 3, SOLVER_ROOT_FIXED, SOLVER_ARTICULATED);
    assert_ok(solver_tree_frequencies(tree, 2, omega, shapes));
    const int steps = 400;
    assert_ok(solver_tree_set_time_step(tree, 2 * 3.14159265358979323846 / omega[0] / steps));
    for (int i = 0; i < 36; i++) shapes[i] *= 1e-3;
    for (int k = 0; k < 3; k++) assert_ok(solver_tree_set_state(tree, k, shapes + 12 * k, NULL));
    for (int k = 0; k < steps; k++) assert_ok(solver_tree_step(tree));
    double error = 0, size = 0;
    for (int k = 0; k < 3; k++)
        for (int l = 0; l < 12; l++) {
            error = fmax(error, fabs(solver_tree_q(tree, k)[l] - shapes[12 * k + l]));
            size = fmax(size, fabs(shapes[12 * k + l]));
        }
    printf("   after one period: %.1e of the amplitude\n", error / size);
    assert_true(error < 1e-3 * size);
    solver_tree_destroy(tree);
    tree_body_destroy(&segment);
}

// Ten thousand domains in a chain, without recursion anywhere; the pass stays exact, so gravity along the chain
// stretches nothing but the springs of the modes, and the energy of a fall is kept.
static void test_long_chain(void **unused) {
    (void)unused;
    tree_body segment;
    fem_mesh  mesh;
    make_bar(&mesh, 4);
    tree_body_options o = {.root = "x0", .end_count = 1, .ends = &bar_end, .seeds = true, .r = 6};
    assert_ok(tree_body_create(&segment, &mesh, &o));
    double seconds[2];
    for (int k = 0; k < 2; k++) {
        int                  count = k ? 10000 : 1000;
        solver_tree         *tree = make_chain(&segment, count, SOLVER_ROOT_FREE, SOLVER_ARTICULATED);
        solver_tree_energies e, start;
        const double         gravity[3] = {0, 0, -9.81};
        solver_frame_motion  root = {.Q = {1, 0, 0, 0, 1, 0, 0, 0, 1}, .v = {0.1, 0, 0}};
        solver_tree_set_gravity(tree, gravity);
        assert_ok(solver_tree_set_root(tree, 0, &root));
        for (int i = 0; i < count; i += 7) { // turns that cancel along the chain, or its end would be fast
            double speed = i % 2 ? 1e-3 : -1e-3;
            assert_ok(solver_tree_set_state(tree, i, NULL, (double[6]){3 * speed, -2 * speed, speed}));
        }
        assert_int_equal(solver_tree_depth(tree), count);
        solver_tree_get_energies(tree, &start);
        double begin = fem_cpu_seconds();
        for (int step = 0; step < 4; step++) assert_ok(solver_tree_step(tree));
        seconds[k] = fem_cpu_seconds() - begin;
        solver_tree_get_energies(tree, &e);
        double all = e.kinetic + e.strain + e.potential, before = start.kinetic + start.strain + start.potential;
        printf("   chain of %5d: %.0f ns per domain and step, energy %.1f of %.1f, changed by %.1e\n", count,
               1e9 * seconds[k] / count / 4, e.kinetic + e.strain, start.kinetic, fabs(all - before) / start.kinetic);
        assert_true(fabs(all - before) < 1e-3 * start.kinetic);
        solver_tree_destroy(tree);
    }
    assert_true(seconds[1] < 20 * seconds[0]); // far from 100; the benchmark fits the exponent
    tree_body_destroy(&segment);
}

static void test_bad(void **unused) {
    (void)unused;
    tree_body segment;
    double    omega[8], shapes[8 * 12];
    fem_mesh  mesh;
    make_bar(&mesh, 4);
    tree_body_options o = {.root = "x0", .end_count = 1, .ends = &bar_end, .seeds = true, .r = 6};
    assert_ok(tree_body_create(&segment, &mesh, &o));
    solver_tree *tree = make_chain(&segment, 2, SOLVER_ROOT_FIXED, SOLVER_CENTER);
    assert_fails(solver_tree_frequencies(tree, 13, omega, NULL), FEM_BAD_INPUT, "13 frequencies");
    assert_fails(solver_tree_frequencies(tree, 8, omega, shapes), FEM_BAD_INPUT, "articulated");
    solver_tree_destroy(tree);
    tree = make_chain(&segment, 2, SOLVER_ROOT_FIXED, SOLVER_ARTICULATED);
    for (int method = 0; method < 2; method++) {
        long allowed = 0;
        for (fem_status status = FEM_NO_MEMORY; status != FEM_OK; allowed++) {
            assert_true(allowed < 200);
            fem_memory_fail_after(allowed);
            status = tree_frequencies(tree, 2, method, omega, shapes);
            fem_memory_fail_after(-1);
            if (status != FEM_OK) assert_int_equal(status, FEM_NO_MEMORY);
        }
        assert_true(allowed > 5);
    }
    solver_tree_destroy(tree);
    tree_body_destroy(&segment);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cantilever), cmocka_unit_test(test_methods), cmocka_unit_test(test_period),
        cmocka_unit_test(test_long_chain), cmocka_unit_test(test_bad),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
