// Nonlinear statics, loads and supports of the full-space solver.
#include "tests/solver_case.h"

static const double size[3] = {1, 0.2, 0.15};
static const int    cells[3] = {8, 2, 2};

// ---- Newton ------------------------------------------------------------------------------------------------------

// Residual after exactly k Newton iterations (the solver gives up there and reports it).
static double residual_after(bar *b, int iterations, bool *converged) {
    solver_options o = solver_default_options();
    solver_full   *solver = NULL;
    o.newton_iterations = iterations;
    o.newton_tolerance = 1e-13;
    o.load_halvings = 0;
    o.line_search = 0;
    assert_ok(solver_full_create(&solver, b->body, b->fixed, &o));
    solver_full_set_load(solver, b->load);
    fem_status status = solver_full_static(solver, NULL);
    assert_true(status == FEM_OK || status == FEM_NO_CONVERGENCE);
    *converged = status == FEM_OK;
    double residual = solver_full_report(solver).residual;
    solver_full_destroy(solver);
    return residual;
}

// The correct digits of Newton's residual double in each iteration: the tangent is the derivative of the residual.
static void test_newton_is_quadratic(void **unused) {
    (void)unused;
    // a compact block: in slender ones bending and stretching take turns, which hides the order
    const double            block[3] = {0.5, 0.4, 0.4};
    const int               block_cells[3] = {3, 3, 3};
    const fem_material_kind kinds[] = {FEM_STVK, FEM_NEOHOOKEAN};
    for (int k = 0; k < 4; k++) {
        fem_material m = soft_material(kinds[k / 2], 1e6, 0.3);
        bar          b;
        bar_create(&b, k % 2 ? FEM_H8 : FEM_T4, block, block_cells, &m);
        bar_pull(&b, "x1", 2e4, 8e3, 1e4);
        double residual[12], best = 0;
        bool   converged = false;
        int    count = 0;
        printf("  material %d %s:", (int)kinds[k / 2], k % 2 ? "H8" : "T4");
        for (; count < 12 && !converged; count++) {
            residual[count] = residual_after(&b, count + 1, &converged);
            printf(" %.1e", residual[count]);
        }
        int late = 0; // iterations from 0.05 of the largest force to the end
        for (int i = 1; i < count; i++) {
            late += residual[i - 1] < 0.05;
            if (residual[i - 1] < 1e-3 && residual[i] > 1e-14)
                best = fmax(best, log(residual[i]) / log(residual[i - 1]));
        }
        printf(", digits grow by %.2f an iteration\n", best);
        assert_true(converged);
        assert_true(best > 1.75);
        assert_true(late >= 2 && late <= 4); // a linear rate of even 1/10 would need eleven
        bar_destroy(&b);
    }
}

// At the solution the internal force, by the plain element loops, balances the load; the energy is a minimum there.
static void test_equilibrium_is_true(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_NEOHOOKEAN, 1e6, 0.4);
    for (int type = 0; type < 2; type++) {
        bar b;
        bar_create(&b, (fem_element)type, size, cells, &m);
        bar_pull(&b, "x1", 0, 0, -60);
        solver_options o = solver_default_options();
        solver_full   *solver = NULL;
        assert_ok(solver_full_create(&solver, b.body, b.fixed, &o));
        solver_full_set_load(solver, b.load);
        assert_ok(solver_full_static(solver, NULL));
        const double    *u = solver_full_state(solver)->u;
        fem_body_options plain_options = fem_body_default_options();
        fem_body        *plain = NULL;
        plain_options.plain = true;
        assert_ok(fem_body_create(&plain, &b.mesh, &plain_options));
        fem_body_evaluate(plain, u, NULL, b.work, NULL);
        double error = 0;
        for (int i = 0; i < b.n; i++)
            if (!b.fixed[i]) error = fmax(error, fabs(b.work[i] - b.load[i]));
        error /= largest_entry(b.n, b.work);
        double tip[3];
        bar_face_mean(&b, "x1", u, tip);
        printf("  %s: tip %.3f m down, residual by plain loops %.1e, %d iterations\n", type ? "H8" : "T4", -tip[2],
               error, solver_full_report(solver).newton_iterations);
        assert_true(tip[2] < -0.1); // far from linear
        assert_true(error < 1e-8);
        fem_body_destroy(plain);
        solver_full_destroy(solver);
        bar_destroy(&b);
    }
}

// Small-strain material: one factorisation, one solve, K u = load; a second load costs no factorisation.
static void test_linear_material_is_one_solve(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_LINEAR, 1e6, 0.3);
    bar          b;
    bar_create(&b, FEM_T4, size, cells, &m);
    bar_pull(&b, "x1", 5, 7, -60);
    solver_options o = solver_default_options();
    solver_full   *solver = NULL;
    assert_ok(solver_full_create(&solver, b.body, b.fixed, &o));
    solver_full_set_load(solver, b.load);
    assert_ok(solver_full_static(solver, NULL));
    assert_int_equal(solver_full_report(solver).newton_iterations, 1);

    fem_sparse  K = {0};
    fem_factor *factor = NULL;
    double     *u = fem_calloc((size_t)b.n, sizeof *u);
    assert_ok(fem_body_matrix(b.body, &K));
    fem_body_evaluate(b.body, u, NULL, NULL, &K);
    assert_ok(fem_factor_create(&factor, &K, b.fixed));
    assert_ok(fem_factor_factorise(factor, &K));
    assert_ok(fem_factor_solve(factor, 1, b.load, u));
    double error = test_relative_error(b.n, solver_full_state(solver)->u, u);
    printf("  one linear solve against the solver: %.1e\n", error);
    assert_true(largest_entry(b.n, u) > 0.1);
    assert_true(error < 1e-12);

    for (int i = 0; i < b.n; i++) b.load[i] *= -2;
    solver_full_set_load(solver, b.load);
    assert_ok(solver_full_static(solver, NULL));
    for (int i = 0; i < b.n; i++) u[i] *= -2;
    assert_true(test_relative_error(b.n, solver_full_state(solver)->u, u) < 1e-11);
    assert_int_equal(solver_full_report(solver).factorisations, 1);
    fem_free(u);
    fem_factor_destroy(factor);
    fem_sparse_destroy(&K);
    solver_full_destroy(solver);
    bar_destroy(&b);
}

// A load that one step cannot carry is halved on its own, and the answer is that of many small load steps.
static void test_load_steps_are_halved(void **unused) {
    (void)unused;
    const double thin[3] = {1, 0.05, 0.05};
    const int    thin_cells[3] = {20, 1, 1};
    fem_material m = soft_material(FEM_STVK, 1e7, 0.3);
    bar          b;
    bar_create(&b, FEM_H8, thin, thin_cells, &m);
    bar_pull(&b, "x1", 0, 0, -60);
    double *u[2] = {0};
    for (int k = 0; k < 2; k++) {
        solver_options o = solver_default_options();
        solver_full   *solver = NULL;
        o.load_steps = k == 0 ? 1 : 40;
        o.newton_iterations = k == 0 ? 8 : 30;
        o.newton_tolerance = 1e-11;
        assert_ok(solver_full_create(&solver, b.body, b.fixed, &o));
        solver_full_set_load(solver, b.load);
        assert_ok(solver_full_static(solver, NULL));
        solver_report r = solver_full_report(solver);
        printf("  asked for %d load steps, took %d after %d halvings, %d iterations\n", o.load_steps, r.load_steps,
               r.load_halvings, r.newton_iterations);
        if (k == 0) assert_true(r.load_halvings > 0);
        u[k] = fem_copy(solver_full_state(solver)->u, (size_t)b.n, sizeof **u);
        solver_full_destroy(solver);
    }
    double error = test_relative_error(b.n, u[0], u[1]);
    printf("  largest displacement %.3f m, difference %.1e\n", largest_entry(b.n, u[1]), error);
    assert_true(largest_entry(b.n, u[1]) > 0.5);
    assert_true(error < 1e-8);
    fem_free(u[0]);
    fem_free(u[1]);
    bar_destroy(&b);
}

// A column pressed together past Euler's load: the tangent becomes indefinite on the way, is shifted, and Newton
// arrives at the buckled shape, not at the straight one.
static void test_buckling_passes_indefinite_tangents(void **unused) {
    (void)unused;
    const double thin[3] = {1, 0.05, 0.08};
    const int    thin_cells[3] = {24, 1, 1};
    fem_material m = soft_material(FEM_STVK, 1e7, 0.0);
    bar          b;
    bar_create(&b, FEM_H8, thin, thin_cells, &m);
    const fem_set *end = fem_mesh_vertex_set(&b.mesh, "x1");
    for (int k = 0; k < end->count; k++)
        for (int axis = 0; axis < 3; axis++) {
            b.fixed[3 * end->items[k] + axis] = 1;
            b.work[3 * end->items[k] + axis] = axis == 0 ? -0.08 : 0;
        }
    bar_pull(&b, "y0", 0, 1e-3, 0); // a hint where to go
    solver_options o = solver_default_options();
    solver_full   *solver = NULL;
    assert_ok(solver_full_create(&solver, b.body, b.fixed, &o));
    solver_full_set_load(solver, b.load);
    solver_full_prescribe(solver, b.work);
    assert_ok(solver_full_static(solver, NULL));
    solver_report r = solver_full_report(solver);
    // inextensible clamped-clamped column, sine-like deflection A (1 - cos 2 pi x)/2: shortening = (pi A)^2 / 4
    double sideways = 0, expected = 2 * sqrt(0.08) / acos(-1);
    for (int i = 1; i < b.n; i += 3) sideways = fmax(sideways, solver_full_state(solver)->u[i]);
    printf("  sideways %.3f m (about %.3f expected), %d shifts, %d iterations, %d halvings\n", sideways, expected,
           r.shifts, r.newton_iterations, r.load_halvings);
    assert_true(r.shifts > 0);
    assert_true(fabs(sideways / expected - 1) < 0.15);
    solver_full_destroy(solver);
    bar_destroy(&b);
}

// ---- loads and reactions -----------------------------------------------------------------------------------------

// Gravity's total is m g, the reactions balance it, and their moments balance in the deformed shape.
static void test_gravity_and_reactions(void **unused) {
    (void)unused;
    const double g[3] = {0.3, -1, -9.81};
    fem_material m = soft_material(FEM_NEOHOOKEAN, 3e5, 0.35);
    for (int type = 0; type < 2; type++) {
        bar b;
        bar_create(&b, (fem_element)type, size, cells, &m);
        assert_ok(solver_add_gravity(b.body, g, b.load));
        double weight[3], mass = 1000 * size[0] * size[1] * size[2];
        total_force(b.n, b.load, weight);
        for (int k = 0; k < 3; k++) assert_true(fabs(weight[k] - mass * g[k]) < 1e-12 * mass * 9.81);
        assert_true(fabs(fem_body_total_mass(b.body) - mass) < 1e-12 * mass);

        solver_options o = solver_default_options();
        solver_full   *solver = NULL;
        assert_ok(solver_full_create(&solver, b.body, b.fixed, &o));
        solver_full_set_load(solver, b.load);
        assert_ok(solver_full_static(solver, NULL));
        const double *u = solver_full_state(solver)->u;
        double       *reaction = b.work, force[3], moment[3] = {0}, load_moment[3] = {0};
        solver_full_reactions(solver, reaction);
        total_force(b.n, reaction, force);
        for (int v = 0; v < b.mesh.vertex_count; v++) {
            double x[3], torque[3];
            for (int k = 0; k < 3; k++) x[k] = b.mesh.vertices[3 * v + k] + u[3 * v + k];
            vec3_cross(torque, x, reaction + 3 * v);
            vec3_axpy(moment, 1, torque);
            vec3_cross(torque, x, b.load + 3 * v);
            vec3_axpy(load_moment, 1, torque);
        }
        double force_error = 0, moment_error = 0;
        for (int k = 0; k < 3; k++) {
            force_error = fmax(force_error, fabs(force[k] + weight[k]) / vec3_norm(weight));
            moment_error = fmax(moment_error, fabs(moment[k] + load_moment[k]) / vec3_norm(load_moment));
        }
        printf("  %s: m g %.6g N, force balance %.1e, moment balance %.1e, tip %.3f m\n", type ? "H8" : "T4",
               vec3_norm(weight), force_error, moment_error, largest_entry(b.n, u));
        assert_true(largest_entry(b.n, u) > 0.1);
        assert_true(force_error < 1e-8);
        assert_true(moment_error < 1e-8);
        solver_full_destroy(solver);
        bar_destroy(&b);
    }
}

// A traction's total is traction x area; as a load on the end of a bar it gives the exact uniform stress (nu = 0).
static void test_traction_patch(void **unused) {
    (void)unused;
    const double traction[3] = {2000, 0, 0}, shear[3] = {1, -2, 3};
    fem_material m = soft_material(FEM_LINEAR, 1e6, 0);
    for (int type = 0; type < 2; type++) {
        bar b;
        bar_create(&b, (fem_element)type, size, cells, &m);
        const fem_set *end = fem_mesh_vertex_set(&b.mesh, "x1");
        double         area = 0, sum[3], error = 0, balance = 0;
        assert_ok(solver_add_surface_load(&b.mesh, end->count, end->items, shear, 0, b.work, &area));
        total_force(b.n, b.work, sum);
        for (int k = 0; k < 3; k++) balance = fmax(balance, fabs(sum[k] / (shear[k] * size[1] * size[2]) - 1));
        assert_true(fabs(area / (size[1] * size[2]) - 1) < 1e-13);

        assert_ok(solver_add_surface_load(&b.mesh, end->count, end->items, traction, 0, b.load, &area));
        solver_options o = solver_default_options();
        solver_full   *solver = NULL;
        assert_ok(solver_full_create(&solver, b.body, b.fixed, &o));
        solver_full_set_load(solver, b.load);
        assert_ok(solver_full_static(solver, NULL));
        for (int i = 0; i < b.n; i++) {
            double exact = i % 3 == 0 ? b.mesh.vertices[i] * traction[0] / m.young : 0;
            error = fmax(error, fabs(solver_full_state(solver)->u[i] - exact));
        }
        error /= traction[0] / m.young;
        printf("  %s: total/(traction x area) - 1 = %.1e, uniform stretch to %.1e\n", type ? "H8" : "T4", balance,
               error);
        assert_true(balance < 1e-12);
        assert_true(error < 1e-11);
        solver_full_destroy(solver);
        bar_destroy(&b);
    }
}

// Pressure over a closed surface has no resultant and no moment; on one face it is -p n A; bad lists are refused.
static void test_pressure(void **unused) {
    (void)unused;
    const double centre[3] = {0.3, -0.2, 0.1};
    for (int type = 0; type < 2; type++) {
        fem_mesh ball = {0};
        assert_ok(fem_generate_sphere(&ball, (fem_element)type, centre, 0.5, 8));
        int    *all = fem_alloc((size_t)ball.vertex_count, sizeof *all), n = 3 * ball.vertex_count;
        double *force = fem_calloc((size_t)n, sizeof *force), area = 0, sum[3], moment[3] = {0};
        for (int v = 0; v < ball.vertex_count; v++) all[v] = v;
        assert_ok(solver_add_surface_load(&ball, ball.vertex_count, all, NULL, 100, force, &area));
        total_force(n, force, sum);
        double inward = 0;
        for (int v = 0; v < ball.vertex_count; v++) {
            double torque[3], arm[3];
            vec3_cross(torque, ball.vertices + 3 * v, force + 3 * v);
            vec3_axpy(moment, 1, torque);
            vec3_sub(arm, ball.vertices + 3 * v, centre);
            inward -= vec3_dot(arm, force + 3 * v) / 0.5;
        }
        printf("  %s ball: area %.4f m2, sum %.1e, moment %.1e, inward %.4f of p A\n", type ? "H8" : "T4", area,
               vec3_norm(sum) / (100 * area), vec3_norm(moment) / (100 * area), inward / (100 * area));
        assert_true(vec3_norm(sum) < 1e-12 * 100 * area);
        assert_true(vec3_norm(moment) < 1e-12 * 100 * area);
        assert_true(fabs(area / acos(-1.0) - 1) < 0.1);     // 4 pi 0.5^2
        assert_true(fabs(inward / (100 * area) - 1) < 0.1); // pushes towards the centre

        // nor on a body without any symmetry: there the moment needs the exact integral over bent faces
        for (int v = 0; v < ball.vertex_count; v++) {
            double *x = ball.vertices + 3 * v;
            x[0] += 0.5 * x[1] * x[2] + 0.3 * x[1] * x[1], x[2] += 0.4 * x[0] * x[1];
        }
        assert_ok(fem_mesh_check(&ball));
        memset(force, 0, (size_t)n * sizeof *force);
        assert_ok(solver_add_surface_load(&ball, ball.vertex_count, all, NULL, 100, force, &area));
        total_force(n, force, sum);
        memset(moment, 0, sizeof moment);
        for (int v = 0; v < ball.vertex_count; v++) {
            double torque[3];
            vec3_cross(torque, ball.vertices + 3 * v, force + 3 * v);
            vec3_axpy(moment, 1, torque);
        }
        printf("  bent: sum %.1e, moment %.1e\n", vec3_norm(sum) / (100 * area), vec3_norm(moment) / (100 * area));
        assert_true(vec3_norm(sum) < 1e-12 * 100 * area);
        assert_true(vec3_norm(moment) < 1e-12 * 100 * area);
        assert_fails(solver_add_surface_load(&ball, 1, all, NULL, 100, force, &area), FEM_BAD_INPUT, "no whole face");
        int outside = ball.vertex_count;
        assert_fails(solver_add_surface_load(&ball, 1, &outside, NULL, 1, force, &area), FEM_BAD_INPUT, "not exist");
        for (long allowed = 0;; allowed++) {
            long before = fem_memory_blocks();
            fem_memory_fail_after(allowed);
            fem_status status = solver_add_surface_load(&ball, ball.vertex_count, all, NULL, 1, force, &area);
            fem_memory_fail_after(-1);
            assert_int_equal(fem_memory_blocks(), before);
            if (status == FEM_OK) break;
            assert_int_equal(status, FEM_NO_MEMORY);
        }
        fem_free(all);
        fem_free(force);
        fem_mesh_destroy(&ball);
    }
}

// ---- supports ----------------------------------------------------------------------------------------------------

static void rotate(const double R[9], const double *x, const double *u, double *out) {
    double y[3], z[3];
    for (int k = 0; k < 3; k++) y[k] = x[k] + u[k];
    mat3_mul_vec(z, R, y);
    for (int k = 0; k < 3; k++) out[k] = z[k] - x[k];
}

// Turning the base and the load together turns the static solution: u' = R (X + u) - X.
static void test_turned_base_turns_the_solution(void **unused) {
    (void)unused;
    double       c = cos(1.0), s = sin(1.0), R[9] = {c, 0, s, 0, 1, 0, -s, 0, c}, zero[3] = {0};
    fem_material m = soft_material(FEM_STVK, 1e6, 0.3);
    bar          b;
    bar_create(&b, FEM_H8, size, cells, &m);
    bar_pull(&b, "x1", 10, 20, -30);
    solver_options o = solver_default_options();
    solver_full   *solver = NULL;
    assert_ok(solver_full_create(&solver, b.body, b.fixed, &o));
    solver_full_set_load(solver, b.load);
    assert_ok(solver_full_static(solver, NULL));
    double *expected = fem_alloc((size_t)b.n, sizeof *expected), *turned = fem_alloc((size_t)b.n, sizeof *turned);
    for (int v = 0; v < b.mesh.vertex_count; v++) {
        rotate(R, b.mesh.vertices + 3 * v, solver_full_state(solver)->u + 3 * v, expected + 3 * v);
        rotate(R, b.mesh.vertices + 3 * v, zero, b.work + 3 * v);
        mat3_mul_vec(turned + 3 * v, R, b.load + 3 * v);
    }
    solver_full_set_load(solver, turned);
    solver_full_prescribe(solver, b.work);
    assert_ok(solver_full_static(solver, NULL));
    double        error = test_relative_error(b.n, solver_full_state(solver)->u, expected);
    solver_report r = solver_full_report(solver);
    printf("  base turned by 57 degrees: %.1e, %d load steps, %d halvings\n", error, r.load_steps, r.load_halvings);
    assert_true(error < 1e-7);

    // and a translation moves it
    for (int i = 0; i < b.n; i++) b.work[i] += 3, expected[i] += 3;
    solver_full_prescribe(solver, b.work);
    assert_ok(solver_full_static(solver, NULL));
    error = test_relative_error(b.n, solver_full_state(solver)->u, expected);
    printf("  base moved by 3 m: %.1e\n", error);
    assert_true(error < 1e-7);
    fem_free(expected);
    fem_free(turned);
    solver_full_destroy(solver);
    bar_destroy(&b);
}

// A body that its supports leave movable is refused, with the number of free motions; three points off a line hold it.
static void test_body_that_is_not_held(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_STVK, 1e6, 0.3);
    bar          b;
    bar_create(&b, FEM_T4, size, cells, &m);
    bar_pull(&b, "x1", 0, 0, -1);
    const fem_set *base = fem_mesh_vertex_set(&b.mesh, "x0");
    int            corners[3] = {-1, -1, -1}; // (0,0,0), (0,y,0), (0,0,z)
    for (int k = 0; k < base->count; k++) {
        const double *x = b.mesh.vertices + 3 * base->items[k];
        if (x[1] == 0 && x[2] == 0) corners[0] = base->items[k];
        if (x[1] == size[1] && x[2] == 0) corners[1] = base->items[k];
        if (x[1] == 0 && x[2] == size[2]) corners[2] = base->items[k];
    }
    const char    *expected[] = {"6 rigid motions", "3 rigid motions", "1 rigid motions"};
    solver_options o = solver_default_options();
    for (int held = 0; held <= 3; held++) {
        solver_full *solver = NULL;
        memset(b.fixed, 0, (size_t)b.n);
        for (int k = 0; k < held; k++)
            for (int axis = 0; axis < 3; axis++) b.fixed[3 * corners[k] + axis] = 1;
        assert_ok(solver_full_create(&solver, b.body, b.fixed, &o));
        solver_full_set_load(solver, b.load);
        if (held < 3)
            assert_fails(solver_full_static(solver, NULL), FEM_BAD_INPUT, expected[held]);
        else
            assert_ok(solver_full_static(solver, NULL));
        solver_full_destroy(solver);
    }
    bar_destroy(&b);
}

// Two boxes that do not touch and a vertex of no element: each box needs its own support, and the lonely vertex stays
// where it is and may carry no load.
static void test_separate_pieces(void **unused) {
    (void)unused;
    const double low[3] = {0, 0, 0};
    const int    few[3] = {2, 1, 1};
    fem_mesh     box = {0}, both = {0};
    assert_ok(fem_generate_box(&box, FEM_H8, low, size, few));
    int half = box.vertex_count, lonely = 2 * half;
    assert_ok(fem_mesh_allocate(&both, FEM_H8, 2 * half + 1, 2 * box.element_count));
    for (int i = 0; i < 3 * half; i++) {
        both.vertices[i] = box.vertices[i];
        both.vertices[3 * half + i] = box.vertices[i] + 5 * (i % 3 == 1);
    }
    for (int i = 0; i < 8 * box.element_count; i++) {
        both.elements[i] = box.elements[i];
        both.elements[8 * box.element_count + i] = box.elements[i] + half;
    }
    assert_ok(fem_mesh_check(&both));
    fem_body        *body = NULL;
    solver_full     *solver = NULL;
    fem_body_options body_options = fem_body_default_options();
    solver_options   o = solver_default_options();
    const fem_set   *base = fem_mesh_vertex_set(&box, "x0");
    unsigned char   *fixed = fem_calloc((size_t)both.vertex_count, 3);
    double          *load = fem_calloc((size_t)both.vertex_count, 3 * sizeof *load);
    assert_ok(fem_body_create(&body, &both, &body_options));
    load[3 * half - 1] = load[6 * half - 1] = -3; // the last vertex of either box
    for (int held = 0; held < 2; held++) {
        for (int k = 0; k < 3 * base->count; k++) fixed[3 * (base->items[k / 3] + held * half) + k % 3] = 1;
        assert_ok(solver_full_create(&solver, body, fixed, &o));
        solver_full_set_load(solver, load);
        if (held == 0)
            assert_fails(solver_full_static(solver, NULL), FEM_BAD_INPUT, "6 rigid motions are free in its");
        else
            assert_ok(solver_full_static(solver, NULL));
        if (held == 0) solver_full_destroy(solver);
    }
    const double *u = solver_full_state(solver)->u;
    double        difference = 0;
    for (int i = 0; i < 3 * half; i++) difference = fmax(difference, fabs(u[i] - u[3 * half + i]));
    printf("  two boxes bend by %.2e m, the same to %.1e m\n", largest_entry(3 * half, u), difference);
    assert_true(largest_entry(3 * half, u) > 1e-4);
    assert_true(difference < 1e-12);
    assert_true(u[3 * lonely] == 0 && u[3 * lonely + 1] == 0 && u[3 * lonely + 2] == 0);
    for (int k = 0; k < 3; k++) assert_ok(solver_full_step(solver));
    load[3 * lonely] = 1;
    solver_full_set_load(solver, load);
    assert_fails(solver_full_step(solver), FEM_BAD_INPUT, "belongs to no element");
    solver_full_destroy(solver);
    fem_body_destroy(body);
    fem_mesh_destroy(&box);
    fem_mesh_destroy(&both);
    fem_free(fixed);
    fem_free(load);
}

// Nothing is free: the state is what is prescribed, and the reactions are the internal forces less the load.
static void test_no_free_vertex(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_STVK, 1e6, 0.3);
    bar          b;
    bar_create(&b, FEM_H8, size, cells, &m);
    memset(b.fixed, 1, (size_t)b.n);
    for (int i = 0; i < b.n; i++) b.work[i] = 0.1 * b.mesh.vertices[i];
    bar_pull(&b, "x1", 1, 2, 3);
    for (int pcg = 0; pcg < 2; pcg++) {
        solver_options o = solver_default_options();
        solver_full   *solver = NULL;
        o.linear = pcg ? SOLVER_PCG : SOLVER_DIRECT;
        assert_ok(solver_full_create(&solver, b.body, b.fixed, &o));
        solver_full_set_load(solver, b.load);
        solver_full_prescribe(solver, b.work);
        assert_ok(solver_full_static(solver, NULL));
        assert_memory_equal(solver_full_state(solver)->u, b.work, (size_t)b.n * sizeof(double));
        double *reaction = fem_alloc((size_t)b.n, sizeof *reaction), sum[3];
        solver_full_reactions(solver, reaction);
        total_force(b.n, reaction, sum);
        printf("  reactions sum to %.6f %.6f %.6f N\n", sum[0], sum[1], sum[2]);
        for (int k = 0; k < 3; k++) assert_true(fabs(sum[k] + k + 1) < 1e-8);
        assert_true(largest_entry(b.n, reaction) > 1);
        assert_ok(solver_full_step(solver));
        fem_free(reaction);
        solver_full_destroy(solver);
    }
    bar_destroy(&b);
}

// ---- failure -----------------------------------------------------------------------------------------------------

// Statics that fail leave the state bit by bit: too few iterations, a NaN load, a progress callback that says stop.
static bool say_stop(void *context, const char *what, double fraction) {
    (void)context, (void)what;
    return fraction < 0.4;
}
static void test_failed_statics_change_nothing(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_NEOHOOKEAN, 1e6, 0.3);
    bar          b;
    bar_create(&b, FEM_T4, size, cells, &m);
    bar_pull(&b, "x1", 0, 0, -50);
    solver_options o = solver_default_options();
    solver_full   *solver = NULL;
    o.newton_iterations = 1;
    o.load_halvings = 2;
    o.load_steps = 4;
    assert_ok(solver_full_create(&solver, b.body, b.fixed, &o));
    uint64_t seed = 5;
    test_random_fill(&seed, b.n, 1e-3, b.work);
    assert_ok(solver_full_set_state(solver, 2.5, b.work, b.work));
    solver_full_set_load(solver, b.load);
    assert_fails(solver_full_static(solver, NULL), FEM_NO_CONVERGENCE, "load steps");
    printf("  %s\n", fem_message());
    b.load[7] = NAN;
    solver_full_set_load(solver, b.load);
    assert_fails(solver_full_static(solver, NULL), FEM_BAD_INPUT, "not finite");
    printf("  %s\n", fem_message());
    const solver_state *s = solver_full_state(solver);
    assert_true(s->time == 2.5);
    assert_memory_equal(s->u, b.work, (size_t)b.n * sizeof(double));
    assert_memory_equal(s->v, b.work, (size_t)b.n * sizeof(double));
    solver_full_destroy(solver);

    o = solver_default_options();
    o.load_steps = 4;
    b.load[7] = 0;
    assert_ok(solver_full_create(&solver, b.body, b.fixed, &o));
    assert_ok(solver_full_set_state(solver, 2.5, b.work, b.work));
    solver_full_set_load(solver, b.load);
    fem_progress progress = {.report = say_stop};
    assert_int_equal(solver_full_static(solver, &progress), FEM_STOPPED);
    assert_memory_equal(solver_full_state(solver)->u, b.work, (size_t)b.n * sizeof(double));
    solver_full_destroy(solver);
    bar_destroy(&b);
}

// The failing allocator walks creation and statics: no crash, no leak.
static void test_memory_failures(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_STVK, 1e6, 0.3);
    const int    few[3] = {2, 1, 1};
    bar          b;
    bar_create(&b, FEM_H8, size, few, &m);
    bar_pull(&b, "x1", 0, 0, -5);
    long walked = 0;
    for (int variant = 0; variant < 4; variant++) {
        solver_options o = solver_default_options();
        o.linear = variant % 2 ? SOLVER_PCG : SOLVER_DIRECT;
        o.damping_stiffness = 0.01;
        o.damping_local = variant / 2;
        for (long allowed = 0;; allowed++, walked++) {
            solver_full *solver = NULL;
            long         before = fem_memory_blocks();
            fem_memory_fail_after(allowed);
            fem_status status = solver_full_create(&solver, b.body, b.fixed, &o);
            if (status == FEM_OK) {
                solver_full_set_load(solver, b.load);
                status = solver_full_static(solver, NULL);
            }
            fem_memory_fail_after(-1);
            solver_full_destroy(solver);
            assert_int_equal(fem_memory_blocks(), before);
            if (status == FEM_OK) break;
            assert_int_equal(status, FEM_NO_MEMORY);
        }
    }
    for (long allowed = 0;; allowed++, walked++) {
        const double g[3] = {0, 0, -9.81};
        fem_memory_fail_after(allowed);
        fem_status status = solver_add_gravity(b.body, g, b.load);
        fem_memory_fail_after(-1);
        if (status == FEM_OK) break;
        assert_int_equal(status, FEM_NO_MEMORY);
    }
    printf("  %ld failing allocations\n", walked);
    assert_true(walked > 20);
    bar_destroy(&b);
}

// Options out of range are named with field, value and rule.
static void test_options(void **unused) {
    (void)unused;
    solver_options good = solver_default_options(), o;
    assert_ok(solver_check_options(&good));
    o = good, o.time_step = -0.01;
    assert_fails(solver_check_options(&o), FEM_BAD_INPUT, "solver.time_step is -0.01, expected > 0");
    o = good, o.time_step = NAN;
    assert_fails(solver_check_options(&o), FEM_BAD_INPUT, "solver.time_step is nan");
    o = good, o.newmark_beta = 0;
    assert_fails(solver_check_options(&o), FEM_BAD_INPUT, "solver.newmark_beta is 0, expected in (0, 1]");
    o = good, o.newmark_gamma = 2;
    assert_fails(solver_check_options(&o), FEM_BAD_INPUT, "solver.newmark_gamma");
    o = good, o.damping_mass = -1;
    assert_fails(solver_check_options(&o), FEM_BAD_INPUT, "solver.damping_mass is -1, expected >= 0");
    o = good, o.damping_stiffness = INFINITY;
    assert_fails(solver_check_options(&o), FEM_BAD_INPUT, "solver.damping_stiffness");
    o = good, o.newton_iterations = 0;
    assert_fails(solver_check_options(&o), FEM_BAD_INPUT, "solver.newton_iterations is 0, expected >= 1");
    o = good, o.newton_tolerance = 0;
    assert_fails(solver_check_options(&o), FEM_BAD_INPUT, "solver.newton_tolerance");
    o = good, o.line_search = -1;
    assert_fails(solver_check_options(&o), FEM_BAD_INPUT, "solver.line_search");
    o = good, o.load_steps = 0;
    assert_fails(solver_check_options(&o), FEM_BAD_INPUT, "solver.load_steps");
    o = good, o.load_halvings = 99;
    assert_fails(solver_check_options(&o), FEM_BAD_INPUT, "solver.load_halvings");
    o = good, o.pcg_tolerance = 2;
    assert_fails(solver_check_options(&o), FEM_BAD_INPUT, "solver.pcg_tolerance");
    o = good, o.pcg_iterations = -5;
    assert_fails(solver_check_options(&o), FEM_BAD_INPUT, "solver.pcg_iterations");
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_newton_is_quadratic),
        cmocka_unit_test(test_equilibrium_is_true),
        cmocka_unit_test(test_linear_material_is_one_solve),
        cmocka_unit_test(test_load_steps_are_halved),
        cmocka_unit_test(test_buckling_passes_indefinite_tangents),
        cmocka_unit_test(test_gravity_and_reactions),
        cmocka_unit_test(test_traction_patch),
        cmocka_unit_test(test_pressure),
        cmocka_unit_test(test_turned_base_turns_the_solution),
        cmocka_unit_test(test_body_that_is_not_held),
        cmocka_unit_test(test_separate_pieces),
        cmocka_unit_test(test_no_free_vertex),
        cmocka_unit_test(test_failed_statics_change_nothing),
        cmocka_unit_test(test_memory_failures),
        cmocka_unit_test(test_options),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
