// Reduced motion with cubature: it follows the motion with exact forces; the three ways to solve a step agree.
#include "tests/reduced_case.h"

enum { R = 8, STEPS = 60 };

typedef struct swing {
    reduced_bar   c;
    double        load[R];
    double        q[STEPS][R]; // with exact forces
    cubature_rule rules[3];
} swing;

static solver_reduced_options options_with(solver_reduced_solve solve, int newton) {
    solver_reduced_options o = solver_reduced_default_options();
    o.time_step = 0.01;
    o.solve = solve;
    o.solve_tolerance = 1e-9;
    o.newton_iterations = newton;
    o.damping_stiffness = 0.002;
    return o;
}

static solver_step_report run(const cubature_forces *forces, const double *load, const solver_reduced_options *o,
                              double q[STEPS][R]) {
    solver_reduced *solver = NULL;
    assert_ok(solver_reduced_create(&solver, forces, NULL, o));
    solver_reduced_set_load(solver, load);
    for (int i = 0; i < STEPS; i++) {
        assert_ok(solver_reduced_step(solver));
        memcpy(q[i], solver_reduced_state(solver)->q, sizeof q[i]);
    }
    solver_step_report report = solver_reduced_report(solver);
    solver_reduced_destroy(solver);
    return report;
}

static double difference(double a[STEPS][R], double b[STEPS][R]) {
    double worst = 0, size = 0;
    for (int i = 0; i < STEPS; i++)
        for (int l = 0; l < R; l++) {
            worst = fmax(worst, fabs(a[i][l] - b[i][l]));
            size = fmax(size, fabs(b[i][l]));
        }
    return worst / size;
}

static int create(void **state) {
    swing       *s = fem_calloc(1, sizeof *s);
    const double size[3] = {1, 0.1, 0.08};
    const int    cells[3] = {20, 3, 3};
    fem_material material = soft_material(FEM_NEOHOOKEAN, 2e5, 0.35);
    assert_non_null(s);
    reduced_bar_create(&s->c, FEM_T4, size, cells, &material, true, R);
    bar_pull(&s->c.b, "x1", 0, 4, -8);
    dense_gemv_t_set(s->c.b.n, R, 1, s->c.basis.U, s->c.b.load, s->load);
    for (int method = 0; method < 3; method++) {
        cubature_training_options o = cubature_training_default_options();
        cubature_training_report  report;
        o.method = (cubature_method)method;
        o.error = 0.005, o.poses = method == CUBATURE_MODAL ? 450 : 150; // each mode of a modal rule has its own rows
        o.displacement = 0.25;
        assert_ok(
            cubature_train(&s->rules[method], s->c.b.body, R, s->c.basis.U, s->c.basis.omega2, &o, NULL, &report));
        print_message("%s: %d of %d elements, held out %.4f\n", cubature_method_name(o.method), s->rules[method].count,
                      s->c.b.mesh.element_count, report.held_out_error);
    }
    solver_reduced_options o = options_with(SOLVER_SOLVE_DIRECT, 20);
    run(&s->c.forces, s->load, &o, s->q);
    *state = s;
    return 0;
}

static int destroy(void **state) {
    swing *s = *state;
    for (int method = 0; method < 3; method++) cubature_rule_destroy(&s->rules[method]);
    reduced_bar_destroy(&s->c);
    fem_free(s);
    return 0;
}

static void test_follows_exact_forces(void **state) {
    swing *s = *state;
    double q[STEPS][R], u[3], *full = s->c.b.work;
    dense_gemv_set(s->c.b.n, R, 1, s->c.basis.U, s->q[STEPS / 2], full);
    bar_face_mean(&s->c.b, "x1", full, u);
    print_message("the tip moves by %.3f of the length\n", vec3_norm(u));
    assert_true(vec3_norm(u) > 0.1); // far from linear
    for (int method = 0; method < 3; method++) {
        solver_reduced_options o = options_with(SOLVER_SOLVE_DIRECT, 20);
        cubature_forces        forces = cubature_rule_forces(&s->rules[method]);
        run(&forces, s->load, &o, q);
        double error = difference(q, s->q);
        print_message("%s: %.4f of the largest coordinate\n", cubature_method_name((cubature_method)method), error);
        assert_true(error < 0.03);
    }
}

// Converged Newton steps do not depend on how the systems are solved, whatever the symmetry of K; single ones of a
// symmetric rule do not either.
static void test_solves_agree(void **state) {
    swing *s = *state;
    double direct[STEPS][R], q[STEPS][R];
    for (int method = 0; method < 3; method++)
        for (int newton = 1; newton <= 30; newton += 29) {
            cubature_forces        forces = cubature_rule_forces(&s->rules[method]);
            solver_reduced_options o = options_with(SOLVER_SOLVE_DIRECT, newton);
            o.damping_local = false; // local damping takes the symmetric part where K is made
            run(&forces, s->load, &o, direct);
            for (int solve = 1; solve <= 2; solve++) {
                o.solve = (solver_reduced_solve)solve;
                solver_step_report report = run(&forces, s->load, &o, q);
                double             error = difference(q, direct);
                print_message("%s, newton %2d, solve %d: %.1e, %.1f iterations a system, %d fallbacks\n",
                              cubature_method_name((cubature_method)method), newton, solve, error,
                              (double)report.solve_iterations / report.newton_iterations, report.solve_fallbacks);
                assert_true(report.solve_iterations >= report.newton_iterations);
                assert_true(report.solve_fallbacks == 0);
                bool alike = newton > 1 || method != CUBATURE_MODAL;
                assert_true(alike ? error < 1e-5 : error < 0.05);
            }
        }
}

// Without a product of their own, the Krylov solve takes differences; local damping likewise.
static void test_differences_serve(void **state) {
    swing                 *s = *state;
    double                 direct[STEPS][R], q[STEPS][R];
    cubature_forces        forces = cubature_rule_forces(&s->rules[CUBATURE_EMPIRICAL]);
    solver_reduced_options o = options_with(SOLVER_SOLVE_DIRECT, 1);
    run(&forces, s->load, &o, direct);
    for (int solve = 1; solve <= 2; solve++) {
        forces.product = NULL;
        o.solve = (solver_reduced_solve)solve;
        run(&forces, s->load, &o, q);
        print_message("solve %d by differences, local damping: %.1e\n", solve, difference(q, direct));
        assert_true(difference(q, direct) < 1e-5);
    }
}

static void test_options(void **state) {
    (void)state;
    solver_reduced_options o = solver_reduced_default_options();
    o.solve = (solver_reduced_solve)3;
    assert_fails(solver_reduced_check_options(&o), FEM_BAD_INPUT, "solver.solve is 3");
    o.solve = SOLVER_SOLVE_KRYLOV, o.solve_tolerance = 0;
    assert_fails(solver_reduced_check_options(&o), FEM_BAD_INPUT, "solver.solve_tolerance is 0");
    o = solver_free_default_options(), o.solve = SOLVER_SOLVE_KRYLOV;
    assert_fails(solver_free_check_options(&o), FEM_BAD_INPUT, "direct (0) for a free body");
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follows_exact_forces),
        cmocka_unit_test(test_solves_agree),
        cmocka_unit_test(test_differences_serve),
        cmocka_unit_test(test_options),
    };
    fem_machine_correct_blas(argv);
    return cmocka_run_group_tests(tests, create, destroy);
}
