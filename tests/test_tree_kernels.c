// The kernels for eight domains at once against the plain version, on a grove of trees that share their classes.
#include "tests/tree_case.h"

#include <math.h>

enum { TREES = 13, DOMAINS = 7, ALL = TREES * DOMAINS };
static const int parents[DOMAINS] = {-1, 0, 0, 0, 1, 1, 4}, modes[DOMAINS] = {4, 3, 2, 5, 6, 0, 1};

// Thirteen trees of the same seven classes, each domain with a scale and a stiffness of its own: two blocks per class.
static solver_tree *make_grove(tree_case *c, bool plain, solver_tree_options o) {
    solver_tree_class    classes[DOMAINS];
    solver_tree_instance list[ALL];
    solver_tree         *tree = NULL;
    uint64_t             seed = 8;
    const double         gravity[3] = {0.3, 0.2, -9.81};
    o.plain = plain;
    for (int t = 0; t < TREES; t++) {
        int used[DOMAINS] = {0};
        for (int i = 0; i < DOMAINS; i++) {
            case_domain *d = &c->d[i];
            classes[i] = (solver_tree_class){.inertia = &d->inertia,
                                             .forces = {.r = d->r, .evaluate = case_evaluate, .model = &d->forces},
                                             .interface_count = d->interface_count,
                                             .interfaces = d->interfaces,
                                             .damping_mass = 0.1,
                                             .damping_stiffness = 0.01};
            int parent = parents[i];
            list[t * DOMAINS + i] = (solver_tree_instance){.class_index = i,
                                                           .parent = parent < 0 ? -1 : t * DOMAINS + parent,
                                                           .interface = parent < 0 ? 0 : used[parent]++,
                                                           .scale = 1 + 0.3 * test_random(&seed),
                                                           .stiffness = 1 + 0.5 * test_random(&seed),
                                                           .root = t % 2 ? SOLVER_ROOT_FREE : SOLVER_ROOT_FIXED};
        }
    }
    assert_ok(solver_tree_create(&tree, DOMAINS, classes, ALL, list, &o));
    solver_tree_set_gravity(tree, gravity);
    for (int k = 0; k < ALL; k++) {
        double              q[CASE_MODES], dq[CASE_MODES], wrench[6], modal[CASE_MODES], axis[3];
        solver_frame_motion root = {0};
        test_random_fill(&seed, CASE_MODES, 0.15, q);
        test_random_fill(&seed, CASE_MODES, 0.5, dq);
        test_random_fill(&seed, CASE_MODES, 1, modal);
        test_random_fill(&seed, 6, 1, wrench);
        test_random_fill(&seed, 3, 1, root.p);
        test_random_fill(&seed, 3, 1, root.v);
        test_random_fill(&seed, 3, 1, root.w);
        test_random_fill(&seed, 3, 1, axis);
        case_rotation(axis, root.Q);
        assert_ok(solver_tree_set_state(tree, k, q, dq));
        if (k % DOMAINS == 0) assert_ok(solver_tree_set_root(tree, k, &root));
        if (k % 3 == 0) assert_ok(solver_tree_set_load(tree, k, wrench, modal));
        if (k % 5 == 0) {
            int    point;
            double rows[3 * CASE_MODES];
            test_random_fill(&seed, 3 * CASE_MODES, 1, rows);
            assert_ok(solver_tree_add_point(tree, k, axis, rows, &point));
            assert_ok(solver_tree_set_force(tree, point, root.v));
        }
    }
    return tree;
}

static void compare(solver_tree *fast, solver_tree *plain, const char *what, double tolerance) {
    double error = test_relative_error(plain->dofs, fast->ddq, plain->ddq), pose = 0, roots = 0;
    for (int k = 0; k < ALL; k++) {
        solver_frame_motion a, b;
        solver_tree_frame(fast, k, &a);
        solver_tree_frame(plain, k, &b);
        pose = fmax(pose, test_relative_error(9, a.Q, b.Q));
        for (int i = 0; i < 3; i++) {
            pose = fmax(pose, fabs(a.p[i] - b.p[i]));
            pose = fmax(pose, fabs(a.v[i] - b.v[i]) + fabs(a.w[i] - b.w[i]));
        }
    }
    for (int k = 0; k < plain->root_count; k++)
        roots = fmax(roots, test_relative_error(6, fast->roots[k].state.a, plain->roots[k].state.a));
    printf("   %-10s %-20s ddq %.1e, roots %.1e, frames %.1e\n", fem_simd_name(fem_simd_level()), what, error, roots,
           pose);
    assert_true(error < tolerance && pose < tolerance && roots < tolerance);
    assert_int_equal(solver_tree_get_report(fast).plain, 0);
}

static void test_grove(void **unused) {
    (void)unused;
    fem_simd widest = fem_simd_level();
    for (fem_simd level = FEM_SIMD_BASELINE; level <= widest; level++) {
        tree_case           c;
        solver_tree_options o = solver_tree_default_options();
        setenv("LIMBER_SIMD", fem_simd_name(level), 1);
        case_create(&c, 7, DOMAINS, parents, modes, 3, 8);
        solver_tree *fast = make_grove(&c, false, o), *plain = make_grove(&c, true, o);
        assert_int_equal(fast->block_count, 2 * DOMAINS);
        assert_ok(tree_accelerations(fast));
        assert_ok(tree_accelerations(plain));
        compare(fast, plain, "accelerations", 1e-11);
        for (int k = 0; k < 20; k++) {
            assert_ok(solver_tree_step(fast));
            assert_ok(solver_tree_step(plain));
        }
        compare(fast, plain, "20 steps", 1e-9);
        assert_ok(solver_tree_set_damping(fast, 5, 2, 0.1)); // the kernels see it too
        assert_ok(solver_tree_set_damping(plain, 5, 2, 0.1));
        assert_ok(solver_tree_set_damping(fast, 7, 2, 0.1));
        assert_ok(solver_tree_set_damping(plain, 7, 2, 0.1));
        for (int k = 0; k < 5; k++) {
            assert_ok(solver_tree_step(fast));
            assert_ok(solver_tree_step(plain));
        }
        compare(fast, plain, "other damping", 1e-9);
        solver_tree_destroy(fast);
        solver_tree_destroy(plain);
        case_destroy(&c);
    }
    unsetenv("LIMBER_SIMD");
}

// Interfaces crushed on some lanes: the kernels fall back to the nearest rotation there, flag it, and leave the other
// lanes alone.
static void test_crushed(void **unused) {
    (void)unused;
    tree_case           c;
    solver_tree_options o = solver_tree_default_options();
    case_create(&c, 7, DOMAINS, parents, modes, 3, 8);
    solver_tree *fast = make_grove(&c, false, o), *plain = make_grove(&c, true, o), *trees[2] = {fast, plain};
    for (int t = 0; t < 2; t++)
        for (int k = 0; k < TREES; k += 3) {
            double   q[CASE_MODES], dq[CASE_MODES] = {0.1};
            uint64_t seed = (uint64_t)k + 1;
            test_random_fill(&seed, CASE_MODES, 10, q);
            assert_ok(solver_tree_set_state(trees[t], k * DOMAINS, q, dq));
        }
    assert_ok(tree_accelerations(fast));
    assert_ok(tree_accelerations(plain));
    int flags[2] = {0}, different = 0;
    for (int k = 0; k < plain->block_count; k++)
        for (int lane = 0; lane < plain->blocks[k].count; lane++) {
            flags[0] += fast->blocks[k].flags[lane] != 0, flags[1] += plain->blocks[k].flags[lane] != 0;
            different += fast->blocks[k].flags[lane] != plain->blocks[k].flags[lane];
        }
    double error = test_relative_error(plain->dofs, fast->ddq, plain->ddq);
    printf("   crushed: %d and %d interfaces flagged, accelerations differ by %.1e\n", flags[0], flags[1], error);
    assert_true(flags[0] > 0 && different == 0 && error < 1e-9);
    solver_tree_destroy(fast);
    solver_tree_destroy(plain);
    case_destroy(&c);
}

// Chains and a bush of one class: blocks whose lanes are on different levels, a root among them.
static void test_mixed_levels(void **unused) {
    (void)unused;
    enum { COUNT = 29 };
    tree_case c;
    case_create(&c, 7, DOMAINS, parents, modes, 3, 8);
    for (int shape = 0; shape < 2; shape++) {
        solver_tree_class class = {.inertia = &c.d[0].inertia,
                                   .forces = {.r = 4, .evaluate = case_evaluate, .model = &c.d[0].forces},
                                   .interface_count = 3,
                                   .interfaces = c.d[0].interfaces};
        solver_tree_instance list[COUNT];
        solver_tree         *trees[2] = {NULL, NULL};
        for (int i = 0; i < COUNT; i++) { // parents after their children, too
            int above = shape == 0 ? i - 1 : i == 0 ? -1 : (i - 1) / 3;
            list[COUNT - 1 - i] = (solver_tree_instance){.parent = above < 0 ? -1 : COUNT - 1 - above,
                                                         .interface = i % 3,
                                                         .scale = 1 - 0.01 * i,
                                                         .stiffness = 1 + 0.1 * i,
                                                         .root = SOLVER_ROOT_FREE};
        }
        for (int t = 0; t < 2; t++) {
            solver_tree_options o = solver_tree_default_options();
            uint64_t            seed = 12;
            o.plain = t == 1, o.time_step = 0.002;
            assert_ok(solver_tree_create(&trees[t], 1, &class, COUNT, list, &o));
            for (int i = 0; i < COUNT; i++) {
                double q[4], dq[4];
                test_random_fill(&seed, 4, 0.05, q);
                test_random_fill(&seed, 4, 0.1, dq);
                assert_ok(solver_tree_set_state(trees[t], i, q, dq));
            }
            assert_ok(tree_accelerations(trees[t]));
        }
        assert_int_equal(trees[0]->block_count, 4);
        double first = test_relative_error(trees[1]->dofs, trees[0]->ddq, trees[1]->ddq);
        for (int t = 0; t < 2; t++)
            for (int k = 0; k < 20; k++) assert_ok(solver_tree_step(trees[t]));
        double later = test_relative_error(trees[1]->dofs, trees[0]->q, trees[1]->q);
        printf("   %s of one class: accelerations differ by %.1e, q after 20 steps by %.1e\n", shape ? "bush" : "chain",
               first, later);
        assert_true(first < 1e-10 && later < 1e-8);
        assert_int_equal(solver_tree_get_report(trees[0]).plain, 0);
        solver_tree_destroy(trees[0]);
        solver_tree_destroy(trees[1]);
    }
    case_destroy(&c);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grove),
        cmocka_unit_test(test_crushed),
        cmocka_unit_test(test_mixed_levels),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
