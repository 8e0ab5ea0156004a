// Conjugate gradients against the direct solver.
#include "tests/solver_case.h"

static const double size[3] = {1, 0.2, 0.15};
static const int    cells[3] = {10, 3, 2};

// PCG's static solution equals the direct one to its tolerance, for both elements, linear and not.
static void test_static_equals_direct(void **unused) {
    (void)unused;
    for (int variant = 0; variant < 4; variant++) {
        fem_material m = soft_material(variant & 2 ? FEM_NEOHOOKEAN : FEM_LINEAR, 1e6, 0.3);
        bar          b;
        bar_create(&b, variant & 1 ? FEM_H8 : FEM_T4, size, cells, &m);
        bar_pull(&b, "x1", 5, 0, -30);
        double *u[3];
        int     iterations[3];
        for (int k = 0; k < 3; k++) { // direct, 1e-6, 1e-10
            solver_options o = solver_default_options();
            solver_full   *solver = NULL;
            o.linear = k == 0 ? SOLVER_DIRECT : SOLVER_PCG;
            o.pcg_tolerance = k == 1 ? 1e-6 : 1e-10;
            o.newton_tolerance = k == 1 ? 1e-6 : 1e-9;
            assert_ok(solver_full_create(&solver, b.body, b.fixed, &o));
            solver_full_set_load(solver, b.load);
            assert_ok(solver_full_static(solver, NULL));
            iterations[k] = solver_full_report(solver).pcg_iterations;
            u[k] = fem_copy(solver_full_state(solver)->u, (size_t)b.n, sizeof(double));
            solver_full_destroy(solver);
        }
        double loose = test_relative_error(b.n, u[1], u[0]), tight = test_relative_error(b.n, u[2], u[0]);
        printf("  %s %s: tolerance 1e-6 %.1e (%d iterations), 1e-10 %.1e (%d)\n",
               variant & 2 ? "neo-Hookean" : "linear", variant & 1 ? "H8" : "T4", loose, iterations[1], tight,
               iterations[2]);
        assert_int_equal(iterations[0], 0);
        assert_true(iterations[1] > 10 && iterations[2] > iterations[1]);
        assert_true(loose < 1e-3 && tight < 1e-7); // the residual's tolerance times the condition
        assert_true(tight < loose);
        for (int k = 0; k < 3; k++) fem_free(u[k]);
        bar_destroy(&b);
    }
}

// The same for motion, where the mass makes the matrix better conditioned.
static void test_dynamic_equals_direct(void **unused) {
    (void)unused;
    for (int variant = 0; variant < 4; variant++) {
        fem_material m = soft_material(variant & 2 ? FEM_STVK : FEM_LINEAR, 1e6, 0.3);
        bar          b;
        bar_create(&b, variant & 1 ? FEM_H8 : FEM_T4, size, cells, &m);
        bar_pull(&b, "x1", 5, 0, -30);
        double       *u[2];
        solver_report report = {0};
        for (int k = 0; k < 2; k++) {
            solver_options o = solver_default_options();
            solver_full   *solver = NULL;
            o.linear = k == 0 ? SOLVER_DIRECT : SOLVER_PCG;
            o.pcg_tolerance = 1e-10;
            assert_ok(solver_full_create(&solver, b.body, b.fixed, &o));
            solver_full_set_load(solver, b.load);
            for (int step = 0; step < 20; step++) {
                for (int i = 0; i < b.n; i++) b.work[i] = i % 3 == 1 ? 1e-4 * step * step : 0;
                solver_full_prescribe(solver, b.work);
                assert_ok(solver_full_step(solver));
            }
            u[k] = fem_copy(solver_full_state(solver)->u, (size_t)b.n, sizeof(double));
            report = solver_full_report(solver);
            solver_full_destroy(solver);
        }
        double error = test_relative_error(b.n, u[1], u[0]);
        printf("  %s %s: %.1e, %d conjugate gradient iterations for %d of Newton\n", variant & 2 ? "StVK" : "linear",
               variant & 1 ? "H8" : "T4", error, report.pcg_iterations, report.newton_iterations);
        assert_true(error < 1e-7);
        assert_int_equal(report.factorisations, 0);
        fem_free(u[0]);
        fem_free(u[1]);
        bar_destroy(&b);
    }
}

// Too few iterations fail with advice and leave the state; the count of iterations is what was allowed.
static void test_iteration_limit(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_STVK, 1e6, 0.3);
    bar          b;
    bar_create(&b, FEM_T4, size, cells, &m);
    bar_pull(&b, "x1", 5, 0, -30);
    solver_options o = solver_default_options();
    solver_full   *solver = NULL;
    o.linear = SOLVER_PCG;
    o.pcg_iterations = 3;
    o.load_halvings = 0;
    assert_ok(solver_full_create(&solver, b.body, b.fixed, &o));
    solver_full_set_load(solver, b.load);
    assert_fails(solver_full_static(solver, NULL), FEM_NO_CONVERGENCE, "pcg_iterations");
    printf("  %s\n", fem_message());
    assert_true(largest_entry(b.n, solver_full_state(solver)->u) == 0);
    solver_full_destroy(solver);
    bar_destroy(&b);
}

// Conjugate gradients notice an indefinite tangent: a column pressed past Euler's load buckles as with the direct
// solver.
static void test_buckling_equals_direct(void **unused) {
    (void)unused;
    const double thin[3] = {1, 0.05, 0.08};
    const int    thin_cells[3] = {16, 1, 1};
    fem_material m = soft_material(FEM_STVK, 1e7, 0.0);
    bar          b;
    bar_create(&b, FEM_H8, thin, thin_cells, &m);
    const fem_set *end = fem_mesh_vertex_set(&b.mesh, "x1");
    for (int k = 0; k < end->count; k++)
        for (int axis = 0; axis < 3; axis++) {
            b.fixed[3 * end->items[k] + axis] = 1;
            b.work[3 * end->items[k] + axis] = axis == 0 ? -0.05 : 0;
        }
    bar_pull(&b, "y0", 0, 1e-2, 0);
    double *u[2];
    for (int k = 0; k < 2; k++) {
        solver_options o = solver_default_options();
        solver_full   *solver = NULL;
        o.linear = k == 0 ? SOLVER_DIRECT : SOLVER_PCG;
        o.pcg_tolerance = 1e-10;
        o.newton_iterations = 60;
        assert_ok(solver_full_create(&solver, b.body, b.fixed, &o));
        solver_full_set_load(solver, b.load);
        solver_full_prescribe(solver, b.work);
        assert_ok(solver_full_static(solver, NULL));
        printf("  %s: %d shifts\n", k == 0 ? "direct" : "PCG", solver_full_report(solver).shifts);
        assert_true(solver_full_report(solver).shifts > 0);
        u[k] = fem_copy(solver_full_state(solver)->u, (size_t)b.n, sizeof(double));
        solver_full_destroy(solver);
    }
    double sideways = 0;
    for (int i = 1; i < b.n; i += 3) sideways = fmax(sideways, fabs(u[0][i]));
    double error = test_relative_error(b.n, u[1], u[0]);
    printf("  sideways %.3f m, difference %.1e\n", sideways, error);
    assert_true(sideways > 0.05);
    assert_true(error < 1e-6);
    fem_free(u[0]);
    fem_free(u[1]);
    bar_destroy(&b);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_static_equals_direct),
        cmocka_unit_test(test_dynamic_equals_direct),
        cmocka_unit_test(test_iteration_limit),
        cmocka_unit_test(test_buckling_equals_direct),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
