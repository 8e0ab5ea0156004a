// Springs that close loops and hold a tree at several places.
#include "tests/tree_case.h"
#include "tests/tree_body.h"

#include <math.h>

static const int parents4[4] = {-1, 0, 0, 1}, modes4[4] = {3, 4, 2, 3};

static int add_point(const tree_case *c, solver_tree *tree, int domain, int n) {
    const case_domain *d = &c->d[domain];
    double             rows[3 * CASE_MODES];
    int                point;
    for (int k = 0; k < 3; k++)
        for (int l = 0; l < d->r; l++) rows[d->r * k + l] = d->U[n][k][l];
    assert_ok(solver_tree_add_point(tree, domain, d->X[n], rows, &point));
    return point;
}

static double random_start(const tree_case *c, solver_tree *tree, double amplitude) {
    uint64_t            seed = 4;
    double              q[32], dq[32];
    solver_frame_motion root = {.Q = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    test_random_fill(&seed, c->dofs, amplitude, q);
    test_random_fill(&seed, c->dofs, amplitude, dq);
    test_random_fill(&seed, 3, 0.5, root.v);
    test_random_fill(&seed, 3, 1, root.w);
    case_set_state(c, tree, q, dq);
    if (tree->roots[0].kind == SOLVER_ROOT_FREE) assert_ok(solver_tree_set_root(tree, 0, &root));
    return amplitude;
}

// Accelerations with springs are those with the springs' forces given as forces on the points.
static void test_forces(void **unused) {
    (void)unused;
    tree_case           c;
    solver_tree_options o = solver_tree_default_options();
    const double        k = 30, damping = 2, anchor[3] = {0.3, 0.2, 0.1};
    case_create(&c, 7, 4, parents4, modes4, 3, 8);
    solver_tree *spring = case_tree(&c, SOLVER_ROOT_FREE, &o, 0), *force = case_tree(&c, SOLVER_ROOT_FREE, &o, 0);
    solver_tree *trees[2] = {spring, force};
    int          points[2][3];
    for (int t = 0; t < 2; t++) {
        random_start(&c, trees[t], 0.2);
        points[t][0] = add_point(&c, trees[t], 3, 5);
        points[t][1] = add_point(&c, trees[t], 2, 9);
        points[t][2] = add_point(&c, trees[t], 1, 3);
    }
    solver_spring pair = {.a = points[0][0], .b = points[0][1], .stiffness = k, .damping = damping};
    solver_spring ground = {
        .a = points[0][2], .b = -1, .anchor = {anchor[0], anchor[1], anchor[2]}, .stiffness = 2 * k};
    assert_ok(solver_tree_add_spring(spring, &pair));
    assert_ok(solver_tree_add_spring(spring, &ground));
    double x[3][3], v[3][3], f[3], g[3];
    for (int i = 0; i < 3; i++) solver_tree_point(force, points[1][i], x[i], v[i]);
    for (int i = 0; i < 3; i++) f[i] = -k * (x[0][i] - x[1][i]) - damping * (v[0][i] - v[1][i]);
    assert_ok(solver_tree_set_force(force, points[1][0], f));
    for (int i = 0; i < 3; i++) g[i] = -f[i], f[i] = -2 * k * (x[2][i] - anchor[i]);
    assert_ok(solver_tree_set_force(force, points[1][1], g));
    assert_ok(solver_tree_set_force(force, points[1][2], f));
    assert_ok(tree_accelerations(spring));
    assert_ok(tree_accelerations(force));
    double error = test_relative_error(c.dofs, spring->ddq, force->ddq);
    double root = test_relative_error(3, spring->roots[0].state.al, force->roots[0].state.al);
    printf("   springs as forces: ddq differs by %.1e, root by %.1e\n", error, root);
    assert_true(error < 1e-12 && root < 1e-12);
    double omega; // damping by ratio asks for it too: refused, not left out
    assert_fails(solver_tree_frequencies(spring, 1, &omega, NULL), FEM_BAD_INPUT, "hold its root");
    solver_tree_destroy(spring);
    solver_tree_destroy(force);
    case_destroy(&c);
}

// Second order in the step with springs, and energy is kept.
static void test_order(void **unused) {
    (void)unused;
    tree_case c;
    double    error[3], drift[3], reference[64], end[64];
    case_create(&c, 7, 4, parents4, modes4, 3, 8);
    for (int k = -1; k < 3; k++) {
        solver_tree_options  o = solver_tree_default_options();
        solver_tree_energies e, start;
        int                  steps = k < 0 ? 6400 : 100 << k;
        o.time_step = 0.4 / steps;
        solver_tree *tree = case_tree(&c, SOLVER_ROOT_FREE, &o, 0);
        random_start(&c, tree, 0.1);
        solver_spring pair = {.a = add_point(&c, tree, 3, 5), .b = add_point(&c, tree, 2, 9), .stiffness = 6};
        solver_spring ground = {.a = add_point(&c, tree, 1, 3), .b = -1, .anchor = {0.3}, .stiffness = 4};
        assert_ok(solver_tree_add_spring(tree, &pair));
        assert_ok(solver_tree_add_spring(tree, &ground));
        solver_tree_get_energies(tree, &start);
        for (int n = 0; n < steps; n++) assert_ok(solver_tree_step(tree));
        solver_tree_get_energies(tree, &e);
        double *x = k < 0 ? reference : end;
        memcpy(x, tree->q, (size_t)c.dofs * sizeof *x);
        memcpy(x + c.dofs, tree->roots[0].state.Q, 9 * sizeof *x);
        if (k >= 0) {
            error[k] = test_relative_error(c.dofs + 9, end, reference);
            drift[k] = fabs(e.kinetic + e.strain + e.springs - start.kinetic - start.strain - start.springs) /
                       (start.kinetic + start.strain + start.springs);
            printf("   %4d steps: error %.1e, energy %.1e\n", steps, error[k], drift[k]);
        }
        solver_tree_destroy(tree);
    }
    assert_true(fabs(log2(error[1] / error[2]) - 2) < 0.25 && drift[2] < 1e-3);
    case_destroy(&c);
}

// Two free bodies tied by a spring so stiff that explicit treatment would fail by far fall and turn as one: the spring
// stays closed, and gravity moves their common centre as it should.
static void test_stiff(void **unused) {
    (void)unused;
    static const double stiffness[] = {1e2, 1e5, 1e8, 1e11};
    for (size_t s = 0; s < sizeof stiffness / sizeof *stiffness; s++) {
        tree_case           c;
        solver_tree_options o = solver_tree_default_options();
        const int           parents[4] = {-1, 0, -1, 2};
        const double        gravity[3] = {0, 0, -9.81};
        o.time_step = 0.005;
        case_create(&c, 7, 4, parents, modes4, 30, 8);
        solver_tree *tree = case_tree(&c, SOLVER_ROOT_FREE, &o, 0.001);
        solver_tree_set_gravity(tree, gravity);
        // two points of each, tied where they are: the second tree is moved so that the first pair meets
        int    a = add_point(&c, tree, 1, 5), b = add_point(&c, tree, 3, 9);
        double x[3], y[3];
        solver_tree_point(tree, a, x, NULL);
        solver_tree_point(tree, b, y, NULL);
        solver_frame_motion root = {.Q = {1, 0, 0, 0, 1, 0, 0, 0, 1}}, other = root;
        for (int i = 0; i < 3; i++) other.p[i] = x[i] - y[i];
        root.w[0] = 1, root.w[2] = 2;
        assert_ok(solver_tree_set_root(tree, 0, &root));
        solver_tree_point(tree, a, x, other.v); // the points meet with the same velocity
        assert_ok(solver_tree_set_root(tree, 2, &other));
        solver_spring tie = {.a = a, .b = b, .stiffness = stiffness[s], .damping = 1e-3 * stiffness[s]};
        assert_ok(solver_tree_add_spring(tree, &tie));
        solver_tree_energies start, e;
        solver_tree_get_energies(tree, &start);
        double gap = 0;
        for (int k = 0; k < 200; k++) {
            assert_ok(solver_tree_step(tree));
            solver_tree_point(tree, a, x, NULL);
            solver_tree_point(tree, b, y, NULL);
            gap = fmax(gap, vec3_distance(x, y));
        }
        solver_tree_get_energies(tree, &e);
        double fall = e.centre[2] - start.centre[2] - start.momentum[2] / start.mass;
        printf("   h^2 k/m = %.0e: gap %.1e, fall in 1 s %.4f (%.4f), %d iterations a step\n",
               stiffness[s] * o.time_step * o.time_step / start.mass, gap, fall, -9.81 / 2,
               tree->report.spring_iterations / 200);
        assert_true(fabs(fall + 9.81 / 2) < 2e-3);
        assert_true(gap < 50 / stiffness[s] + 1e-4);
        solver_tree_destroy(tree);
        case_destroy(&c);
    }
}

// A bar of three domains, held at one end and tied to the world by springs along the middle line of the other, sags in
// its middle like the full bar with these supports. (Ties on the whole face would ask for more shapes of the face than
// the domain has modes.)
static void test_second_support(void **unused) {
    (void)unused;
    const char  *end = "x1";
    fem_material m = fem_material_default();
    m.kind = FEM_LINEAR, m.young = 1e6, m.poisson = 0.3, m.density = 1000;
    const double low[3] = {0, -0.25, -0.25}, gravity[3] = {0, 0, -0.01};
    double       full[3] = {0};
    { // full FEM
        fem_mesh         mesh = {0};
        fem_body_options bo = fem_body_default_options();
        fem_body        *body = NULL;
        solver_full     *solver = NULL;
        solver_options   so = solver_default_options();
        assert_ok(fem_generate_box(&mesh, FEM_T4, low, (double[3]){6, 0.25, 0.25}, (int[3]){24, 2, 2}));
        assert_ok(fem_mesh_set_material(&mesh, &m));
        assert_ok(fem_body_create(&body, &mesh, &bo));
        unsigned char *fixed = fem_calloc(3 * (size_t)mesh.vertex_count, 1);
        double        *load = fem_calloc(3 * (size_t)mesh.vertex_count, sizeof *load);
        for (int v = 0; v < 3 * mesh.vertex_count; v++) {
            double x = mesh.vertices[v / 3 * 3];
            fixed[v] = x < 1e-9 || (x > 6 - 1e-9 && fabs(mesh.vertices[v / 3 * 3 + 2]) < 1e-9);
        }
        assert_ok(solver_add_gravity(body, gravity, load));
        assert_ok(solver_full_create(&solver, body, fixed, &so));
        solver_full_set_load(solver, load);
        assert_ok(solver_full_static(solver, NULL));
        int at = 0;
        for (int v = 0; v < mesh.vertex_count; v++)
            if (fabs(mesh.vertices[3 * v] - 3) < 1e-9) {
                for (int i = 0; i < 3; i++) full[i] += solver_full_state(solver)->u[3 * v + i];
                at++;
            }
        for (int i = 0; i < 3; i++) full[i] /= at;
        solver_full_destroy(solver);
        fem_free(fixed), fem_free(load);
        fem_body_destroy(body);
        fem_mesh_destroy(&mesh);
    }
    fem_mesh  mesh = {0};
    tree_body segment;
    assert_ok(fem_generate_box(&mesh, FEM_T4, low, (double[3]){2, 0.25, 0.25}, (int[3]){8, 2, 2}));
    assert_ok(fem_mesh_set_material(&mesh, &m));
    tree_body_options bo = {.root = "x0", .end_count = 1, .ends = &end, .seeds = true, .r = 12};
    assert_ok(tree_body_create(&segment, &mesh, &bo));
    solver_tree_class    k = tree_body_class(&segment, "segment");
    solver_tree_instance list[3] = {{.parent = -1, .scale = 1, .stiffness = 1},
                                    {.parent = 0, .scale = 1, .stiffness = 1},
                                    {.parent = 1, .scale = 1, .stiffness = 1}};
    solver_tree_options  o = solver_tree_default_options();
    solver_tree         *tree = NULL;
    o.time_step = 0.2;
    k.damping_mass = 1.5, k.damping_stiffness = 0.02;
    assert_ok(solver_tree_create(&tree, 1, &k, 3, list, &o));
    solver_tree_set_gravity(tree, gravity);
    const fem_set *face = fem_mesh_vertex_set(&segment.mesh, "x1");
    double        *rows = fem_alloc(3 * 12, sizeof *rows), middle[3] = {0};
    for (int n = 0; n < face->count; n++) {
        const double *X = segment.mesh.vertices + 3 * face->items[n];
        solver_spring spring = {.b = -1, .stiffness = 1e7, .damping = 1e4};
        if (fabs(X[2]) > 1e-9) continue;
        for (int i = 0; i < 3; i++)
            for (int l = 0; l < 12; l++)
                rows[12 * i + l] = segment.U[(size_t)segment.n * (size_t)l + 3 * (size_t)face->items[n] + (size_t)i];
        assert_ok(solver_tree_add_point(tree, 2, X, rows, &spring.a));
        for (int i = 0; i < 3; i++) spring.anchor[i] = X[i] + (i == 0 ? 4 : 0);
        assert_ok(solver_tree_add_spring(tree, &spring));
    }
    int centre[9], found = 0;
    for (int v = 0; v < segment.mesh.vertex_count; v++) {
        const double *X = segment.mesh.vertices + 3 * v;
        if (fabs(X[0] - 1) > 1e-9) continue;
        for (int i = 0; i < 3; i++)
            for (int l = 0; l < 12; l++)
                rows[12 * i + l] = segment.U[(size_t)segment.n * (size_t)l + 3 * (size_t)v + (size_t)i];
        assert_ok(solver_tree_add_point(tree, 1, X, rows, &centre[found++]));
    }
    for (int step = 0; step < 400; step++) assert_ok(solver_tree_step(tree));
    for (int n = 0; n < found; n++) {
        double x[3];
        solver_tree_point(tree, centre[n], x, NULL);
        vec3_axpy(middle, 1.0 / found, x);
    }
    printf("   sag of a bar tied at its second end: %.6f, full FEM %.6f, ratio %.3f\n", middle[2], full[2],
           middle[2] / full[2]);
    assert_true(full[2] < -1e-5 && fabs(middle[2] / full[2] - 1) < 0.04);
    fem_free(rows);
    solver_tree_destroy(tree);
    tree_body_destroy(&segment);
}

// Every allocation of solver_tree_add_spring may fail, at the first spring and where room for more is made: the tree
// then has the springs that it had, and steps as one for which none failed. A step allocates nothing.
static void test_memory(void **unused) {
    (void)unused;
    tree_case           c;
    solver_tree_options o = solver_tree_default_options();
    solver_tree        *trees[2];
    int                 failures = 0;
    o.time_step = 0.01;
    case_create(&c, 7, 4, parents4, modes4, 3, 8);
    for (int t = 0; t < 2; t++) {
        trees[t] = case_tree(&c, SOLVER_ROOT_FREE, &o, 0);
        random_start(&c, trees[t], 0.1);
        for (int k = 0; k < 9; k++) {
            int           domain = k % 3 + 1, a = add_point(&c, trees[t], domain, k % 5);
            solver_spring spring = {.a = a, .b = k % 2 ? -1 : add_point(&c, trees[t], 0, 3), .stiffness = 5};
            fem_status    status = FEM_NO_MEMORY;
            for (long allowed = t == 0 ? -1 : 0; status != FEM_OK; allowed++) {
                assert_true(allowed < 20);
                fem_memory_fail_after(allowed);
                status = solver_tree_add_spring(trees[t], &spring);
                fem_memory_fail_after(-1);
                if (status == FEM_OK) continue;
                assert_int_equal(status, FEM_NO_MEMORY);
                assert_int_equal(trees[t]->spring_count, k);
                failures++;
            }
        }
        fem_memory_fail_after(0);
        for (int k = 0; k < 20; k++) assert_ok(solver_tree_step(trees[t]));
        fem_memory_fail_after(-1);
    }
    printf("   %d failures of nine springs\n", failures);
    assert_true(failures > 6);
    assert_memory_equal(trees[0]->q, trees[1]->q, (size_t)c.dofs * sizeof(double));
    for (int t = 0; t < 2; t++) solver_tree_destroy(trees[t]);
    case_destroy(&c);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory), cmocka_unit_test(test_forces),         cmocka_unit_test(test_order),
        cmocka_unit_test(test_stiff),  cmocka_unit_test(test_second_support),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
