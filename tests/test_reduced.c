// Held reduced bodies: orders, energy, damping, agreement with the full space, failures.
#include "tests/reduced_case.h"

static const double size[3] = {1, 0.2, 0.13};
static const int    cells[3] = {4, 1, 1};

static solver_reduced *make(const cubature_forces *forces, const double *M, const solver_reduced_options *o) {
    solver_reduced *solver = NULL;
    assert_ok(solver_reduced_create(&solver, forces, M, o));
    return solver;
}

static void run(solver_reduced *solver, int steps) {
    for (int k = 0; k < steps; k++) assert_ok(solver_reduced_step(solver));
}

static double total_energy(const solver_reduced *solver) {
    solver_energies e;
    solver_reduced_energies(solver, &e);
    return e.kinetic + e.strain + e.load;
}

// Velocity along the first modes, large enough to bend the bar far.
static void kick(solver_reduced *solver, int r, double speed) {
    double dq[64] = {0};
    for (int l = 0; l < r; l++) dq[l] = speed * (l % 2 ? -1.0 : 1.0) / (1 + l);
    assert_ok(solver_reduced_set_state(solver, 0, NULL, dq));
}

// ---- order -------------------------------------------------------------------------------------------------------

static void swing(const reduced_bar *c, solver_reduced_options o, const double *load, double duration, int steps,
                  double *q) {
    o.time_step = duration / steps;
    solver_reduced *solver = make(&c->forces, NULL, &o);
    kick(solver, c->basis.r, 2);
    solver_reduced_set_load(solver, load);
    run(solver, steps);
    memcpy(q, solver_reduced_state(solver)->q, (size_t)c->basis.r * sizeof *q);
    solver_reduced_destroy(solver);
}

static void test_orders(void **unused) {
    (void)unused;
    static const struct {
        const char       *name;
        solver_integrator integrator;
        double            alpha, beta;
        bool              local;
        int               iterations, order;
    } variants[] = {
        {"Newmark, semi-implicit, no damping", SOLVER_NEWMARK, 0, 0, true, 1, 2},
        {"Newmark, semi-implicit, mass damping", SOLVER_NEWMARK, 5, 0, true, 1, 2},
        {"Newmark, semi-implicit, local damping", SOLVER_NEWMARK, 1, 0.01, true, 1, 2},
        {"Newmark, semi-implicit, constant damping", SOLVER_NEWMARK, 1, 0.01, false, 1, 2},
        {"Newmark, Newton, local damping", SOLVER_NEWMARK, 1, 0.01, true, 20, 2},
        {"backward Euler, semi-implicit", SOLVER_BACKWARD_EULER, 1, 0.01, true, 1, 1},
        {"backward Euler, Newton", SOLVER_BACKWARD_EULER, 1, 0, true, 20, 1},
        {"central differences, no damping", SOLVER_CENTRAL_DIFFERENCES, 0, 0, true, 1, 2},
        {"central differences, mass damping", SOLVER_CENTRAL_DIFFERENCES, 3, 0, true, 1, 2},
        {"central differences, local damping", SOLVER_CENTRAL_DIFFERENCES, 1, 0.01, true, 1, 2},
        {"central differences, constant damping", SOLVER_CENTRAL_DIFFERENCES, 1, 0.01, false, 1, 2},
    };
    fem_material m = soft_material(FEM_STVK, 3e5, 0.3);
    reduced_bar  c;
    reduced_bar_create(&c, FEM_H8, size, cells, &m, true, 5);
    const double load[5] = {3, -1, 2, 0.5, 0.1}, duration = 0.2;
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        solver_reduced_options o = solver_reduced_default_options();
        o.damping_mass = variants[v].alpha, o.damping_stiffness = variants[v].beta, o.damping_local = variants[v].local;
        double exact[5], q[5], error[2];
        // the reference: Newton, second order, steps so small that its error is far below
        o.newton_iterations = 20, o.newton_tolerance = 1e-11;
        swing(&c, o, load, duration, 6000, exact);
        o.integrator = variants[v].integrator, o.newton_iterations = variants[v].iterations;
        int base = variants[v].order == 1 ? 500 : 250;
        for (int k = 0; k < 2; k++) {
            swing(&c, o, load, duration, base << k, q);
            error[k] = test_relative_error(5, q, exact);
        }
        double order = log2(error[0] / error[1]);
        printf("  %-42s errors %.2e %.2e, order %.2f\n", variants[v].name, error[0], error[1], order);
        assert_true(largest_entry(5, exact) > 0.05);
        assert_true(fabs(order - variants[v].order) < 0.15);
    }
    reduced_bar_destroy(&c);
}

// ---- energy ------------------------------------------------------------------------------------------------------

// Undamped Newmark keeps the energy of a linear body exactly, and that of a nonlinear one to second order; backward
// Euler loses it.
static void test_energy(void **unused) {
    (void)unused;
    for (int variant = 0; variant < 4; variant++) {
        bool         linear = variant == 0 || variant == 3;
        fem_material m = soft_material(linear ? FEM_LINEAR : FEM_STVK, 3e5, 0.3);
        reduced_bar  c;
        reduced_bar_create(&c, FEM_H8, size, cells, &m, true, 5);
        const double load[5] = {3, -1, 2, 0.5, 0.1};
        double       drift[2] = {0};
        for (int k = 0; k < 2; k++) {
            solver_reduced_options o = solver_reduced_default_options();
            o.time_step = 4e-4 / (1 << k);
            if (variant == 2) o.integrator = SOLVER_CENTRAL_DIFFERENCES;
            if (variant == 3) o.integrator = SOLVER_BACKWARD_EULER;
            solver_reduced *solver = make(&c.forces, NULL, &o);
            kick(solver, 5, 2);
            solver_reduced_set_load(solver, load);
            double start = total_energy(solver), scale = 0;
            for (int step = 0; step < 1500 << k; step++) {
                assert_ok(solver_reduced_step(solver));
                solver_energies e;
                solver_reduced_energies(solver, &e);
                drift[k] = fmax(drift[k], fabs(e.kinetic + e.strain + e.load - start));
                scale = fmax(scale, e.kinetic + e.strain);
            }
            drift[k] /= scale;
            solver_reduced_destroy(solver);
        }
        double order = log2(drift[0] / drift[1]);
        printf("  %s: largest drift %.1e, half the step %.1e%s\n",
               variant == 0   ? "Newmark, linear"
               : variant == 1 ? "Newmark, StVK"
               : variant == 2 ? "central differences, StVK"
                              : "backward Euler, linear",
               drift[0], drift[1], linear ? "" : ", second order");
        if (variant == 0)
            assert_true(drift[0] < 1e-10);
        else if (variant == 3)
            assert_true(drift[0] > 0.001);
        else
            assert_true(drift[0] < 0.02 && fabs(order - 2) < 0.3);
        reduced_bar_destroy(&c);
    }
}

// A mode of frequency w decays with the ratio alpha/(2 w) + beta w / 2: A^2 = q^2 + ((dq + c q/2) / w_d)^2,
// c = alpha + beta w^2.
static void test_damping_ratio(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_STVK, 1e6, 0.3);
    reduced_bar  c;
    reduced_bar_create(&c, FEM_H8, size, cells, &m, true, 4);
    for (int mode = 0; mode < 4; mode += 3)
        for (int variant = 0; variant < 3; variant++) {
            double                 omega = sqrt(c.basis.omega2[mode]), q[4] = {0}, amplitude[2];
            double                 period = 2 * acos(-1.0) / omega;
            solver_reduced_options o = solver_reduced_default_options();
            o.damping_mass = variant == 1 ? 0 : 0.1 * omega;
            o.damping_stiffness = variant == 0 ? 0 : 0.06 / omega;
            o.damping_local = variant != 2;
            o.time_step = period / 500;
            double          rate = o.damping_mass + o.damping_stiffness * omega * omega;
            double          damped = sqrt(omega * omega - rate * rate / 4);
            solver_reduced *solver = make(&c.forces, NULL, &o);
            q[mode] = 1e-5;
            assert_ok(solver_reduced_set_state(solver, 0, q, NULL));
            for (int end = 0; end < 2; end++) {
                const solver_coordinates *s = solver_reduced_state(solver);
                amplitude[end] = hypot(s->q[mode], (s->dq[mode] + rate / 2 * s->q[mode]) / damped);
                if (end == 0) run(solver, 1500);
            }
            double measured = -log(amplitude[1] / amplitude[0]) / (3 * period) / omega;
            double wanted = o.damping_mass / (2 * omega) + o.damping_stiffness * omega / 2;
            printf("  mode %d, alpha %.3g, beta %.3g (%s): ratio %.6f, expected %.6f\n", mode + 1, o.damping_mass,
                   o.damping_stiffness, o.damping_local ? "local" : "constant", measured, wanted);
            assert_true(wanted > 0.02);
            assert_true(fabs(measured / wanted - 1) < 1e-3);
            solver_reduced_destroy(solver);
        }
    reduced_bar_destroy(&c);
}

// ---- the same as other ways --------------------------------------------------------------------------------------

// With all of the free space as a basis the reduced step is the full one.
static void test_whole_basis_is_full_space(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_STVK, 3e5, 0.3);
    const int    tiny[3] = {2, 1, 1};
    for (int variant = 0; variant < 4; variant++) {
        bar b;
        bar_create(&b, variant & 1 ? FEM_T4 : FEM_H8, size, tiny, &m);
        bar_pull(&b, "x1", 40, 30, -160);
        int          r;
        double      *U = whole_basis(&b, FEM_MASS_CONSISTENT, &r), *u = fem_alloc((size_t)b.n, sizeof *u);
        plain_forces plain;
        plain_create(&plain, b.body, r, U);
        solver_options         full_options = solver_default_options();
        solver_reduced_options o = solver_reduced_default_options();
        full_options.time_step = o.time_step = 0.004;
        full_options.newton_tolerance = o.newton_tolerance = 1e-12;
        full_options.integrator = o.integrator = variant == 2 ? SOLVER_BACKWARD_EULER : SOLVER_NEWMARK;
        full_options.damping_mass = o.damping_mass = 0.5;
        full_options.damping_stiffness = o.damping_stiffness = 0.003;
        full_options.damping_local = o.damping_local = variant != 3;
        o.newton_iterations = 60;
        solver_full *full = NULL;
        assert_ok(solver_full_create(&full, b.body, b.fixed, &full_options));
        solver_reduced *solver = make(&plain.forces, NULL, &o);
        double         *load = fem_alloc((size_t)r, sizeof *load);
        for (int step = 0; step < 25; step++) {
            if (step == 15) memset(b.load, 0, (size_t)b.n * sizeof *b.load); // let go
            dense_gemv_t_set(b.n, r, 1, U, b.load, load);
            solver_full_set_load(full, b.load);
            solver_reduced_set_load(solver, load);
            assert_ok(solver_full_step(full));
            assert_ok(solver_reduced_step(solver));
        }
        dense_gemv_set(b.n, r, 1, U, solver_reduced_state(solver)->q, u);
        double error = test_relative_error(b.n, u, solver_full_state(full)->u);
        dense_gemv_set(b.n, r, 1, U, solver_reduced_state(solver)->dq, u);
        double rate = test_relative_error(b.n, u, solver_full_state(full)->v);
        printf("  %s, %s, %s damping, r = %d: u %.1e, v %.1e from the full space, largest displacement %.3f m\n",
               variant & 1 ? "T4" : "H8", variant == 2 ? "backward Euler" : "Newmark",
               o.damping_local ? "local" : "constant", r, error, rate, largest_entry(b.n, solver_full_state(full)->u));
        assert_true(largest_entry(b.n, solver_full_state(full)->u) > 0.02);
        assert_true(error < 1e-8 && rate < 1e-8);
        solver_reduced_destroy(solver);
        solver_full_destroy(full);
        plain_destroy(&plain);
        fem_free(U), fem_free(u), fem_free(load);
        bar_destroy(&b);
    }
}

// Another basis of the same space has a mass matrix that is not the identity, and the same motion.
static void test_general_mass(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_STVK, 3e5, 0.3);
    reduced_bar  c;
    enum { R = 4 };
    reduced_bar_create(&c, FEM_H8, size, cells, &m, true, R);
    double  *V = fem_alloc((size_t)c.b.n * R, sizeof *V), T[R * R], M[R * R], load[R], load_V[R], u[2][300];
    uint64_t seed = 4;
    test_random_fill(&seed, R * R, 0.4, T);
    for (int i = 0; i < R; i++) T[i * (R + 1)] += 1.5;
    dense_gemm(false, false, c.b.n, R, R, 1, c.basis.U, T, 0, V); // V = U T, M = T^T T
    dense_gemm(true, false, R, R, R, 1, T, T, 0, M);
    plain_forces plain;
    plain_create(&plain, c.b.body, R, V);
    for (int i = 0; i < R; i++) load[i] = 5 - 3 * i;
    dense_gemv_t_set(R, R, 1, T, load, load_V);
    for (int variant = 0; variant < 3; variant++) {
        solver_reduced_options o = solver_reduced_default_options();
        o.time_step = 1e-3;
        o.damping_mass = 1, o.damping_stiffness = 1e-3, o.damping_local = variant == 0;
        o.integrator = variant == 2 ? SOLVER_CENTRAL_DIFFERENCES : SOLVER_NEWMARK;
        solver_energies e[2];
        for (int k = 0; k < 2; k++) {
            solver_reduced *solver = make(k ? &plain.forces : &c.forces, k ? M : NULL, &o);
            solver_reduced_set_load(solver, k ? load_V : load);
            run(solver, 100);
            dense_gemv_set(c.b.n, R, 1, k ? V : c.basis.U, solver_reduced_state(solver)->q, u[k]);
            solver_reduced_energies(solver, &e[k]);
            solver_reduced_destroy(solver);
        }
        printf("  %s: displacement %.1e, kinetic energy %.1e from those of an orthonormal basis\n",
               variant == 2 ? "central differences" : "Newmark", test_relative_error(c.b.n, u[1], u[0]),
               fabs(e[1].kinetic / e[0].kinetic - 1));
        assert_true(test_relative_error(c.b.n, u[1], u[0]) < 1e-9);
        assert_true(fabs(e[1].kinetic / e[0].kinetic - 1) < 1e-8);
    }
    // a matrix that no mass can have
    solver_reduced_options o = solver_reduced_default_options();
    solver_reduced        *solver = NULL;
    M[0] = -1;
    assert_fails(solver_reduced_create(&solver, &plain.forces, M, &o), FEM_INDEFINITE, "reduced mass matrix");
    M[0] = 1, M[1] += 1;
    assert_fails(solver_reduced_create(&solver, &plain.forces, M, &o), FEM_BAD_INPUT, "not symmetric");
    plain_destroy(&plain);
    fem_free(V);
    reduced_bar_destroy(&c);
}

static void test_projected_loads(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_STVK, 3e5, 0.3);
    reduced_bar  c;
    reduced_bar_create(&c, FEM_H8, size, cells, &m, true, 4);
    const int    vertices[3] = {7, 2, 15};
    const double forces[9] = {1, -2, 3, 0.5, 4, -1, 2, 2, 2};
    double       load[4] = {0}, expected[4];
    for (int k = 0; k < 9; k++) c.b.load[3 * vertices[k / 3] + k % 3] = forces[k];
    dense_gemv_t_set(c.b.n, 4, 1, c.basis.U, c.b.load, expected);
    solver_project_forces(&c.basis, 3, vertices, forces, load);
    printf("  three forces, projected: %.1e\n", test_relative_error(4, load, expected));
    assert_true(test_relative_error(4, load, expected) < 1e-14);
    reduced_bar_destroy(&c);
}

// Under a load and damping the body comes to rest where the force balances the load.
static void test_rest(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_STVK, 3e5, 0.3);
    reduced_bar  c;
    reduced_bar_create(&c, FEM_H8, size, cells, &m, true, 4);
    solver_reduced_options o = solver_reduced_default_options();
    o.integrator = SOLVER_BACKWARD_EULER;
    o.time_step = 0.1, o.damping_mass = 3;
    solver_reduced *solver = make(&c.forces, NULL, &o);
    const double    load[4] = {30, -10, 2, 0.5};
    double          f[4];
    solver_reduced_set_load(solver, load);
    run(solver, 400);
    c.plain.forces.evaluate(c.plain.forces.model, solver_reduced_state(solver)->q, NULL, f, NULL, NULL);
    printf("  at rest the force is the load to %.1e\n", test_relative_error(4, f, load));
    assert_true(test_relative_error(4, f, load) < 1e-9);
    solver_reduced_destroy(solver);
    reduced_bar_destroy(&c);
}

// ---- what can go wrong -------------------------------------------------------------------------------------------

// V = k (q^2 - 1)^2 / 4, unstable at q = 0: two wells at -1 and 1.
static void wells(const void *model, const double *q, double *energy, double *f, double *K, double *work) {
    double k = *(const double *)model, x = q[0];
    (void)work;
    if (energy) *energy = k * (x * x - 1) * (x * x - 1) / 4;
    if (f) *f = k * x * (x * x - 1);
    if (K) *K = k * (3 * x * x - 1);
}

// A tangent that is not positive definite is shifted, the step goes on, and the report counts it.
static void test_indefinite(void **unused) {
    (void)unused;
    double          k = 1000;
    cubature_forces forces = {.r = 1, .evaluate = wells, .model = &k};
    for (int iterations = 1; iterations < 50; iterations += 48) {
        solver_reduced_options o = solver_reduced_default_options();
        o.integrator = SOLVER_BACKWARD_EULER;
        o.time_step = 0.1; // 1/h^2 = 100 < k
        o.newton_iterations = iterations;
        solver_reduced *solver = make(&forces, NULL, &o);
        const double    q = 0.05;
        assert_ok(solver_reduced_set_state(solver, 0, &q, NULL));
        run(solver, 300);
        solver_step_report report = solver_reduced_report(solver);
        printf("  %s: %d shifted matrices of %d, the body ends at q = %.9f\n",
               iterations == 1 ? "semi-implicit" : "Newton", report.shifts, report.factorisations,
               solver_reduced_state(solver)->q[0]);
        assert_true(report.shifts > 0);
        assert_true(fabs(fabs(solver_reduced_state(solver)->q[0]) - 1) < 1e-6);
        solver_reduced_destroy(solver);
    }
}

// A failed step changes no bit of the state, and says when, what and what would do.
static void test_divergence(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_STVK, 3e5, 0.3);
    reduced_bar  c;
    reduced_bar_create(&c, FEM_H8, size, cells, &m, true, 5);
    solver_reduced_options o = solver_reduced_default_options();
    solver_reduced        *solver = NULL;

    // central differences: refused above the limit, and stopped when the body stiffens beyond it
    o.integrator = SOLVER_CENTRAL_DIFFERENCES;
    double limit = 2 / sqrt(c.basis.omega2[4]);
    o.time_step = 1.001 * limit;
    assert_fails(solver_reduced_create(&solver, &c.forces, NULL, &o), FEM_BAD_INPUT, "stable up to 2 / omega");
    printf("  %s\n", fem_message());
    o.time_step = 0.95 * limit;
    solver = make(&c.forces, NULL, &o);
    assert_true(fabs(solver_reduced_report(solver).stable_step / limit - 1) < 1e-9);
    kick(solver, 5, 0.01);
    run(solver, 1000); // small: linear, and stable
    kick(solver, 5, 1.5);
    solver_coordinates before = {0}; // with arrays of its own
    double             q[5], dq[5], ddq[5];
    fem_status         status = FEM_OK;
    int                steps = 0;
    for (; status == FEM_OK && steps < 5000; steps++) {
        const solver_coordinates *s = solver_reduced_state(solver);
        before = *s;
        memcpy(q, s->q, sizeof q), memcpy(dq, s->dq, sizeof dq), memcpy(ddq, s->ddq, sizeof ddq);
        status = solver_reduced_step(solver);
    }
    printf("  after %d steps: %s\n", steps, fem_message());
    assert_int_equal(status, FEM_UNSTABLE);
    assert_non_null(strstr(fem_message(), "t = "));
    assert_non_null(strstr(fem_message(), "central differences are stable up to"));
    const solver_coordinates *s = solver_reduced_state(solver);
    assert_true(s->time == before.time);
    assert_memory_equal(s->q, q, sizeof q);
    assert_memory_equal(s->dq, dq, sizeof dq);
    assert_memory_equal(s->ddq, ddq, sizeof ddq);
    solver_reduced_destroy(solver);

    // Newton that may not iterate enough refuses the step and leaves the state
    o = solver_reduced_default_options();
    o.newton_iterations = 2, o.newton_tolerance = 1e-14, o.time_step = 0.05;
    solver = make(&c.forces, NULL, &o);
    kick(solver, 5, 20);
    memcpy(dq, solver_reduced_state(solver)->dq, sizeof dq);
    assert_fails(solver_reduced_step(solver), FEM_NO_CONVERGENCE, "Newton iterations");
    printf("  %s\n", fem_message());
    assert_memory_equal(solver_reduced_state(solver)->dq, dq, sizeof dq);
    assert_true(solver_reduced_state(solver)->time == 0);

    // numbers that are none
    double nothing[5] = {0, NAN};
    solver_reduced_set_load(solver, nothing);
    assert_fails(solver_reduced_step(solver), FEM_BAD_INPUT, "load is not finite");
    assert_fails(solver_reduced_set_state(solver, 0, nothing, NULL), FEM_BAD_INPUT, "not finite");
    solver_reduced_destroy(solver);
    reduced_bar_destroy(&c);
}

// A model of the forces that changes while the body moves: the energies are those of the new model, and the step's
// constant damping too.
static void test_changed_forces(void **unused) {
    (void)unused;
    double                 k = 4, M = 1, two = 2;
    cubature_forces        forces = {.r = 1, .evaluate = wells, .model = &k};
    solver_reduced_options o = solver_reduced_default_options();
    o.time_step = 1e-3;
    const double q = 1.2;
    double       end[2];
    for (int variant = 0; variant < 2; variant++) { // changed in between, or from the start
        k = variant ? 9 : 4;
        solver_reduced *solver = make(&forces, variant ? &two : &M, &o);
        if (!variant) run(solver, 10);
        k = 9;
        if (!variant) assert_ok(solver_reduced_changed(solver, &two));
        assert_ok(solver_reduced_set_state(solver, 0, &q, NULL));
        run(solver, 500);
        end[variant] = solver_reduced_state(solver)->q[0];
        solver_reduced_destroy(solver);
    }
    printf("  after a change: q = %.12f, as from the start: %.12f\n", end[0], end[1]);
    assert_true(end[0] == end[1]);
    double          bad = -1;
    solver_reduced *solver = make(&forces, NULL, &o);
    assert_fails(solver_reduced_changed(solver, &bad), FEM_INDEFINITE, "mass");
    run(solver, 3); // goes on as before
    solver_reduced_destroy(solver);
}

static void test_options_and_memory(void **unused) {
    (void)unused;
    static const struct {
        size_t      offset;
        double      value;
        const char *text;
    } reals[] = {
        {offsetof(solver_reduced_options, time_step), -0.01, "solver.time_step is -0.01, expected > 0"},
        {offsetof(solver_reduced_options, time_step), NAN, "solver.time_step"},
        {offsetof(solver_reduced_options, newmark_beta), 0, "solver.newmark_beta is 0"},
        {offsetof(solver_reduced_options, newmark_gamma), 1.5, "solver.newmark_gamma is 1.5"},
        {offsetof(solver_reduced_options, damping_mass), -1, "solver.damping_mass is -1"},
        {offsetof(solver_reduced_options, damping_stiffness), INFINITY, "solver.damping_stiffness"},
        {offsetof(solver_reduced_options, newton_tolerance), 0, "solver.newton_tolerance is 0"},
    };
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        solver_reduced_options o = solver_reduced_default_options();
        memcpy((char *)&o + reals[i].offset, &reals[i].value, sizeof(double));
        assert_fails(solver_reduced_check_options(&o), FEM_BAD_INPUT, reals[i].text);
        o.integrator = SOLVER_MIDPOINT;
        assert_fails(solver_free_check_options(&o), FEM_BAD_INPUT, reals[i].text);
    }
    solver_reduced_options o = solver_reduced_default_options();
    o.newton_iterations = 0;
    assert_fails(solver_reduced_check_options(&o), FEM_BAD_INPUT, "solver.newton_iterations is 0");
    o = solver_reduced_default_options(), o.line_search = -1;
    assert_fails(solver_reduced_check_options(&o), FEM_BAD_INPUT, "solver.line_search is -1");
    o = solver_reduced_default_options(), o.integrator = SOLVER_MIDPOINT;
    assert_fails(solver_reduced_check_options(&o), FEM_BAD_INPUT, "for a held body");
    o.integrator = SOLVER_CENTRAL_DIFFERENCES;
    assert_fails(solver_free_check_options(&o), FEM_BAD_INPUT, "for a free body");
    double          k = 1;
    cubature_forces forces = {.r = 0, .evaluate = wells, .model = &k};
    solver_reduced *solver = NULL;
    o = solver_reduced_default_options();
    assert_fails(solver_reduced_create(&solver, &forces, NULL, &o), FEM_BAD_INPUT, "0 modes");

    forces.r = 1;
    o.integrator = SOLVER_CENTRAL_DIFFERENCES; // the way with most allocations
    int failures = 0;
    for (long allowed = 0;; allowed++) {
        fem_memory_fail_after(allowed);
        fem_status status = solver_reduced_create(&solver, &forces, NULL, &o);
        fem_memory_fail_after(-1);
        if (status == FEM_OK) break;
        assert_int_equal(status, FEM_NO_MEMORY);
        assert_null(solver);
        failures++;
    }
    assert_true(failures > 3);
    long blocks = fem_memory_blocks();
    fem_memory_fail_after(0);
    fem_status status = solver_reduced_step(solver);
    fem_memory_fail_after(-1);
    assert_int_equal(status, FEM_OK);
    assert_int_equal(fem_memory_blocks(), blocks);
    solver_reduced_destroy(solver);
    o.integrator = SOLVER_NEWMARK, o.newton_iterations = 5, o.damping_stiffness = 0.1;
    solver = make(&forces, NULL, &o);
    fem_memory_fail_after(0);
    status = solver_reduced_step(solver);
    fem_memory_fail_after(-1);
    assert_int_equal(status, FEM_OK);
    solver_reduced_destroy(solver);
    printf("  %d failing allocations, none in a step\n", failures);
}

// A slender beam with local damping in all its degrees of freedom, pushed hard in long steps: the residual has to grow
// before it falls, which a line search on it alone does not allow.
static void test_slender_beam(void **state) {
    (void)state;
    fem_material m = soft_material(FEM_STVK, 1e9, 0.4);
    bar          b;
    plain_forces plain;
    int          r = 0;
    bar_create(&b, FEM_H8, (double[]){2.5, 0.3, 0.12}, (int[]){16, 1, 1}, &m);
    bar_pull(&b, "x1", 0, 0, 1e4);
    double *U = whole_basis(&b, FEM_MASS_CONSISTENT, &r), *load = fem_calloc((size_t)r, sizeof *load), largest = 0;
    double *none = fem_calloc((size_t)r, sizeof *none);
    plain_create(&plain, b.body, r, U);
    solver_reduced_options o = solver_reduced_default_options();
    o.time_step = 1.0 / 120, o.newton_iterations = 40, o.newton_tolerance = 1e-6, o.damping_stiffness = 5e-4;
    solver_reduced *solver = make(&plain.forces, NULL, &o);
    dense_gemv_t_set(b.n, r, 1, U, b.load, load);
    for (int i = 0; i < 30; i++) {
        solver_reduced_set_load(solver, i < 12 ? load : none);
        assert_ok(solver_reduced_step(solver));
        dense_gemv_set(b.n, r, 1, U, solver_reduced_state(solver)->q, b.work);
        largest = fmax(largest, largest_entry(b.n, b.work));
    }
    printf("  a beam 2.5 m long swings by %.2f m in %d coordinates, %.1f iterations a step\n", largest, r,
           solver_reduced_report(solver).newton_iterations / 30.0);
    assert_true(largest > 0.8);
    solver_reduced_destroy(solver);
    plain_destroy(&plain);
    fem_free(U), fem_free(load), fem_free(none);
    bar_destroy(&b);
}

int main(int argc, char **argv) {
    (void)argc;
    fem_set_threads(1); // bodies this small are done before a second thread wakes up
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_energy),
        cmocka_unit_test(test_damping_ratio),
        cmocka_unit_test(test_whole_basis_is_full_space),
        cmocka_unit_test(test_general_mass),
        cmocka_unit_test(test_projected_loads),
        cmocka_unit_test(test_rest),
        cmocka_unit_test(test_indefinite),
        cmocka_unit_test(test_divergence),
        cmocka_unit_test(test_changed_forces),
        cmocka_unit_test(test_options_and_memory),
        cmocka_unit_test(test_slender_beam),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
