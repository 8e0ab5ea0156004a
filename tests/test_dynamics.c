// Time integration of the full-space solver.
#include "tests/solver_case.h"

static const double size[3] = {1, 0.2, 0.15};
static const int    cells[3] = {6, 2, 2};

static solver_full *make_solver(const bar *b, const solver_options *o) {
    solver_full *solver = NULL;
    assert_ok(solver_full_create(&solver, b->body, b->fixed, o));
    return solver;
}

static void run(solver_full *solver, int steps) {
    for (int k = 0; k < steps; k++) assert_ok(solver_full_step(solver));
}

static double total_energy(const solver_full *solver) {
    solver_energies e;
    solver_full_energies(solver, &e);
    return e.kinetic + e.strain + e.load;
}

// ---- accuracy ----------------------------------------------------------------------------------------------------

// Displacement after `duration` of a bar that starts bent fast, in `steps` steps.
static double *swing(const bar *b, solver_options o, double duration, int steps) {
    o.time_step = duration / steps;
    o.newton_tolerance = 1e-11;
    solver_full *solver = make_solver(b, &o);
    for (int i = 0; i < b->n; i++) { // smooth velocity, zero at the support
        double x = b->mesh.vertices[i / 3 * 3];
        b->work[i] = i % 3 == 2 ? 6 * x * x : i % 3 == 1 ? -2 * x * x : 0;
    }
    assert_ok(solver_full_set_state(solver, 0, NULL, b->work));
    run(solver, steps);
    assert_true(fabs(solver_full_state(solver)->time - duration) < 1e-12);
    double *u = fem_copy(solver_full_state(solver)->u, (size_t)b->n, sizeof *u);
    solver_full_destroy(solver);
    return u;
}

// Newmark is second order in the step, backward Euler first, with large rotations and with both kinds of damping.
static void test_orders(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_STVK, 3e5, 0.3);
    bar          b;
    const int    coarse[3] = {4, 1, 1};
    bar_create(&b, FEM_H8, size, coarse, &m);
    for (int variant = 0; variant < 4; variant++) {
        solver_options o = solver_default_options();
        o.integrator = variant == 3 ? SOLVER_BACKWARD_EULER : SOLVER_NEWMARK;
        o.damping_mass = 0.5;
        o.damping_stiffness = variant == 0 ? 0 : 0.002;
        o.damping_local = variant == 2;
        int            base = variant == 0 || variant == 3 ? 200 : 100;
        double         duration = variant == 0 ? 0.1 : 0.2, error[3]; // undamped stiff modes ask for small steps
        solver_options fine = o;
        fine.integrator = SOLVER_NEWMARK;
        double *reference = swing(&b, fine, duration, 4800);
        for (int k = 0; k < 3; k++) {
            double *u = swing(&b, o, duration, base << k);
            error[k] = test_relative_error(b.n, u, reference);
            fem_free(u);
        }
        double order = log2(error[1] / error[2]), wanted = variant == 3 ? 1 : 2;
        printf("  %s, damping %s: errors %.2e %.2e %.2e, order %.2f; largest displacement %.2f m\n",
               variant == 3 ? "backward Euler" : "Newmark",
               variant == 0      ? "mass"
               : o.damping_local ? "local"
                                 : "constant",
               error[0], error[1], error[2], order, largest_entry(b.n, reference));
        assert_true(largest_entry(b.n, reference) > 0.3);
        assert_true(fabs(order - wanted) < 0.15);
        fem_free(reference);
    }
    bar_destroy(&b);
}

// Undamped Newmark (1/4, 1/2) keeps the energy of a linear body, under a constant load too; backward Euler loses it.
static void test_energy_of_linear_body(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_LINEAR, 1e6, 0.3);
    for (int variant = 0; variant < 3; variant++) {
        bar b;
        bar_create(&b, variant == 1 ? FEM_T4 : FEM_H8, size, cells, &m);
        bar_pull(&b, "x1", 0, 5, -20);
        solver_options o = solver_default_options();
        o.time_step = 0.01;
        o.newton_tolerance = 1e-12;
        o.mass = variant == 1 ? FEM_MASS_LUMPED : FEM_MASS_CONSISTENT;
        if (variant == 2) o.integrator = SOLVER_BACKWARD_EULER;
        solver_full *solver = make_solver(&b, &o);
        for (int i = 0; i < b.n; i++) b.work[i] = b.fixed[i] ? 0 : 0.1 * sin(1.7 * i);
        assert_ok(solver_full_set_state(solver, 0, NULL, b.work));
        solver_full_set_load(solver, b.load);
        double start = total_energy(solver), drift = 0, scale = 0;
        for (int k = 0; k < 200; k++) {
            solver_energies e;
            assert_ok(solver_full_step(solver));
            solver_full_energies(solver, &e);
            drift = fmax(drift, fabs(e.kinetic + e.strain + e.load - start));
            scale = fmax(scale, e.kinetic + e.strain);
        }
        printf("  %s: energy drifts by %.1e of %.3g J in 200 steps, %d factorisations\n",
               variant == 2   ? "backward Euler"
               : variant == 1 ? "Newmark, T4, lumped"
                              : "Newmark, H8, consistent",
               drift / scale, scale, solver_full_report(solver).factorisations);
        assert_true(variant == 2 ? drift / scale > 0.1 : drift / scale < 1e-9);
        assert_int_equal(solver_full_report(solver).factorisations, 1); // one matrix for all steps
        solver_full_destroy(solver);
        bar_destroy(&b);
    }
}

// In the nonlinear regime Newmark's energy is not exact; what it is off by falls with the square of the step.
static void test_energy_of_nonlinear_body(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_STVK, 3e5, 0.3);
    const int    coarse[3] = {4, 1, 1};
    bar          b;
    bar_create(&b, FEM_H8, size, coarse, &m);
    double drift[2];
    for (int k = 0; k < 2; k++) {
        solver_options o = solver_default_options();
        o.time_step = 0.0005 / (1 << k);
        o.newton_tolerance = 1e-11;
        solver_full *solver = make_solver(&b, &o);
        for (int i = 0; i < b.n; i++) {
            double x = b.mesh.vertices[i / 3 * 3];
            b.work[i] = i % 3 == 2 ? 5 * x * x : 0;
        }
        assert_ok(solver_full_set_state(solver, 0, NULL, b.work));
        double start = total_energy(solver);
        drift[k] = 0;
        for (int step = 0; step < 400 << k; step++) {
            assert_ok(solver_full_step(solver));
            drift[k] = fmax(drift[k], fabs(total_energy(solver) / start - 1));
        }
        solver_full_destroy(solver);
    }
    printf("  energy off by %.1e, with half the step %.1e: order %.2f\n", drift[0], drift[1],
           log2(drift[0] / drift[1]));
    assert_true(drift[0] < 0.01);
    assert_true(log2(drift[0] / drift[1]) > 1.7);
    bar_destroy(&b);
}

// Lowest mode of the held bar by inverse iteration, mass-normalised; returns omega^2.
static double lowest_mode(const bar *b, fem_sparse *K, fem_sparse *M, double *psi) {
    fem_factor *factor = NULL;
    double     *Mx = b->work, omega2 = 0;
    assert_ok(fem_body_matrix(b->body, K));
    assert_ok(fem_body_matrix(b->body, M));
    for (int i = 0; i < b->n; i++) psi[i] = 0;
    fem_body_evaluate(b->body, psi, NULL, NULL, K);
    fem_body_mass(b->body, FEM_MASS_CONSISTENT, M);
    assert_ok(fem_factor_create(&factor, K, b->fixed));
    assert_ok(fem_factor_factorise(factor, K));
    for (int i = 0; i < b->n; i++) psi[i] = b->fixed[i] ? 0 : 1 + 0.1 * sin(i);
    for (int k = 0; k < 200; k++) {
        fem_sparse_multiply(M, 1, psi, Mx);
        dense_scale(b->n, 1 / sqrt(dense_dot(b->n, psi, Mx)), Mx);
        assert_ok(fem_factor_solve(factor, 1, Mx, psi));
    }
    fem_sparse_multiply(M, 1, psi, Mx);
    dense_scale(b->n, 1 / sqrt(dense_dot(b->n, psi, Mx)), psi);
    fem_sparse_multiply(K, 1, psi, Mx);
    omega2 = dense_dot(b->n, psi, Mx);
    fem_factor_destroy(factor);
    return omega2;
}

// Rayleigh damping: a mode of frequency w decays as exp(-(alpha + beta w^2) t / 2). With q = psi^T M u and
// c = alpha + beta w^2 the amplitude is A^2 = q^2 + ((dq + c q / 2) / w_d)^2.
static void test_damping_rate(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_STVK, 1e6, 0.3);
    bar          b;
    const double slab[3] = {1, 0.2, 0.13};
    bar_create(&b, FEM_H8, slab, cells, &m);
    fem_sparse K = {0}, M = {0};
    double    *psi = fem_alloc((size_t)b.n, sizeof *psi);
    double     omega2 = lowest_mode(&b, &K, &M, psi), omega = sqrt(omega2);
    for (int variant = 0; variant < 3; variant++) {
        solver_options o = solver_default_options();
        double         period = 2 * acos(-1.0) / omega;
        o.damping_mass = variant == 1 ? 0 : 0.1 * omega;
        o.damping_stiffness = variant == 0 ? 0 : 0.1 / omega;
        o.damping_local = variant == 2;
        o.time_step = period / 400;
        double       c = o.damping_mass + o.damping_stiffness * omega2, damped = sqrt(omega2 - c * c / 4);
        solver_full *solver = make_solver(&b, &o);
        double      *start = fem_copy(psi, (size_t)b.n, sizeof *start);
        dense_scale(b.n, 1e-7 / largest_entry(b.n, psi), start); // so small that StVK is linear
        assert_ok(solver_full_set_state(solver, 0, start, NULL));
        double amplitude[2];
        for (int end = 0; end < 2; end++) {
            const solver_state *s = solver_full_state(solver);
            fem_sparse_multiply(&M, 1, psi, b.work);
            double q = dense_dot(b.n, b.work, s->u), dq = dense_dot(b.n, b.work, s->v);
            amplitude[end] = hypot(q, (dq + c * q / 2) / damped);
            if (end == 0) run(solver, 800);
        }
        double rate = log(amplitude[0] / amplitude[1]) / solver_full_state(solver)->time;
        printf("  %s: decay rate %.6f 1/s, expected %.6f\n",
               variant == 0   ? "alpha"
               : variant == 1 ? "beta"
                              : "both, local",
               rate, c / 2);
        assert_true(fabs(rate / (c / 2) - 1) < 1e-3);
        fem_free(start);
        solver_full_destroy(solver);
    }
    fem_free(psi);
    fem_sparse_destroy(&K);
    fem_sparse_destroy(&M);
    bar_destroy(&b);
}

// The converged step satisfies M a + (alpha M + beta K(u)) v + f(u) = load with K of the end's u, and Newton's
// iterations stay few with local damping: its matrix has the derivative of K(u) v.
static void test_local_damping_balance(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_NEOHOOKEAN, 3e5, 0.3);
    bar          b;
    bar_create(&b, FEM_T4, size, cells, &m);
    bar_pull(&b, "x1", 0, 10, -40);
    solver_options o = solver_default_options();
    o.damping_mass = 1, o.damping_stiffness = 0.03, o.damping_local = true, o.time_step = 0.02;
    solver_full *solver = make_solver(&b, &o);
    solver_full_set_load(solver, b.load);
    run(solver, 15);
    const solver_state *s = solver_full_state(solver);
    fem_sparse          K = {0}, M = {0};
    double             *r = fem_alloc((size_t)b.n, sizeof *r), largest = 0, error = 0;
    assert_ok(fem_body_matrix(b.body, &K));
    assert_ok(fem_body_matrix(b.body, &M));
    fem_body_mass(b.body, o.mass, &M);
    fem_body_evaluate(b.body, s->u, NULL, r, &K);
    largest = largest_entry(b.n, r);
    fem_sparse_multiply(&M, 1, s->a, b.work);
    dense_axpy(b.n, 1, b.work, r);
    fem_sparse_multiply(&M, 1, s->v, b.work);
    dense_axpy(b.n, o.damping_mass, b.work, r);
    fem_sparse_multiply(&K, 1, s->v, b.work);
    dense_axpy(b.n, o.damping_stiffness, b.work, r);
    double  damping = o.damping_stiffness * largest_entry(b.n, b.work);
    double *reaction = b.work;
    solver_full_reactions(solver, reaction);
    double reaction_error = 0;
    for (int i = 0; i < b.n; i++) {
        if (!b.fixed[i])
            error = fmax(error, fabs(r[i] - b.load[i]));
        else
            reaction_error = fmax(reaction_error, fabs(r[i] - b.load[i] - reaction[i]));
    }
    double per_step = solver_full_report(solver).newton_iterations / 15.0;
    printf("  balance %.1e, reactions %.1e of the largest force; damping is %.2f of it; %.1f iterations a step\n",
           error / largest, reaction_error / largest, damping / largest, per_step);
    assert_true(damping > 0.05 * largest);
    assert_true(error < 1e-8 * largest);
    assert_true(reaction_error < 1e-11 * largest);
    assert_true(per_step < 6);
    fem_free(r);
    fem_sparse_destroy(&K);
    fem_sparse_destroy(&M);
    solver_full_destroy(solver);
    bar_destroy(&b);
}

// ---- motion ------------------------------------------------------------------------------------------------------

// A free body falls as g t^2 / 2 and stays as it is; forces have no effect on its shape under gravity.
static void test_free_fall(void **unused) {
    (void)unused;
    const double g[3] = {1, 2, -9.81};
    fem_material m = soft_material(FEM_NEOHOOKEAN, 1e6, 0.3);
    bar          b;
    bar_create(&b, FEM_T4, size, cells, &m);
    assert_ok(solver_add_gravity(b.body, g, b.load));
    solver_options o = solver_default_options();
    solver_full   *solver = NULL;
    o.time_step = 0.01;
    assert_ok(solver_full_create(&solver, b.body, NULL, &o));
    solver_full_set_load(solver, b.load);
    run(solver, 100);
    const solver_state *s = solver_full_state(solver);
    double              error = 0;
    for (int i = 0; i < b.n; i++) error = fmax(error, fabs(s->u[i] - g[i % 3] * s->time * s->time / 2));
    printf("  after 1 s: %.1e m off a fall of %.3f m\n", error, -s->u[2]);
    assert_true(error < 1e-7);
    solver_full_destroy(solver);
    bar_destroy(&b);
}

// Supports that move slowly by 1 m take the body along; momentum balances: load + reactions = sum of M a.
static void test_moving_supports(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_STVK, 1e6, 0.3);
    bar          b;
    bar_create(&b, FEM_H8, size, cells, &m);
    solver_options o = solver_default_options();
    o.time_step = 0.02;
    o.damping_mass = 2; // the swinging that remains fades
    solver_full *solver = make_solver(&b, &o);
    double       worst = 0;
    fem_sparse   M = {0};
    assert_ok(fem_body_matrix(b.body, &M));
    fem_body_mass(b.body, o.mass, &M);
    double *Ma = fem_alloc((size_t)b.n, sizeof *Ma);
    for (int k = 1; k <= 600; k++) {
        double s = fmin(1, k * o.time_step / 8), path = s * s * s * (10 - 15 * s + 6 * s * s); // smooth from 0 to 1
        for (int i = 0; i < b.n; i++) b.work[i] = i % 3 == 1 ? path : 0;
        solver_full_prescribe(solver, b.work);
        assert_ok(solver_full_step(solver));
        const solver_state *state = solver_full_state(solver);
        double              inertia[3], reaction[3], drag[3];
        solver_full_reactions(solver, b.work);
        total_force(b.n, b.work, reaction);
        fem_sparse_multiply(&M, 1, state->a, Ma);
        total_force(b.n, Ma, inertia);
        fem_sparse_multiply(&M, 1, state->v, Ma);
        total_force(b.n, Ma, drag);
        for (int axis = 0; axis < 3; axis++)
            worst = fmax(worst, fabs(inertia[axis] + o.damping_mass * drag[axis] - reaction[axis]));
    }
    double error = 0;
    for (int i = 0; i < b.n; i++) error = fmax(error, fabs(solver_full_state(solver)->u[i] - (i % 3 == 1)));
    printf("  body arrives within %.1e m of 1 m; momentum balance %.1e N\n", error, worst);
    assert_true(error < 1e-3);
    assert_true(worst < 1e-6);
    fem_free(Ma);
    fem_sparse_destroy(&M);
    solver_full_destroy(solver);
    bar_destroy(&b);
}

// Heavily damped motion ends in the static solution.
static void test_rest_is_static_solution(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_NEOHOOKEAN, 1e6, 0.3);
    bar          b;
    bar_create(&b, FEM_H8, size, cells, &m);
    bar_pull(&b, "x1", 0, 0, -40);
    solver_options o = solver_default_options();
    o.integrator = SOLVER_BACKWARD_EULER;
    o.time_step = 0.5;
    solver_full *moving = make_solver(&b, &o), *still = make_solver(&b, &o);
    solver_full_set_load(moving, b.load);
    solver_full_set_load(still, b.load);
    run(moving, 60);
    assert_ok(solver_full_static(still, NULL));
    double error = test_relative_error(b.n, solver_full_state(moving)->u, solver_full_state(still)->u);
    printf("  end of a damped motion against statics: %.1e\n", error);
    assert_true(error < 1e-7);
    // and the static solution does not move
    run(still, 5);
    assert_true(test_relative_error(b.n, solver_full_state(still)->u, solver_full_state(moving)->u) < 1e-7);
    solver_full_destroy(moving);
    solver_full_destroy(still);
    bar_destroy(&b);
}

// ---- failure -----------------------------------------------------------------------------------------------------

typedef struct kept_state {
    double  time;
    double *u, *v, *a;
} kept_state;
static kept_state keep(const bar *b, const solver_full *solver) {
    const solver_state *s = solver_full_state(solver);
    size_t              n = (size_t)b->n;
    return (kept_state){s->time, fem_copy(s->u, n, sizeof(double)), fem_copy(s->v, n, sizeof(double)),
                        fem_copy(s->a, n, sizeof(double))};
}
static void assert_unchanged(const bar *b, const solver_full *solver, const kept_state *kept) {
    const solver_state *s = solver_full_state(solver);
    assert_true(s->time == kept->time);
    assert_memory_equal(s->u, kept->u, (size_t)b->n * sizeof(double));
    assert_memory_equal(s->v, kept->v, (size_t)b->n * sizeof(double));
    assert_memory_equal(s->a, kept->a, (size_t)b->n * sizeof(double));
}
static void drop(kept_state *kept) {
    fem_free(kept->u);
    fem_free(kept->v);
    fem_free(kept->a);
}

// A failed step leaves the state bit by bit, and the solver goes on as if it had not been tried.
static void test_failed_step_changes_nothing(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_NEOHOOKEAN, 3e5, 0.3);
    bar          b;
    bar_create(&b, FEM_H8, size, cells, &m);
    bar_pull(&b, "x1", 0, 0, -40);
    double *bad = fem_copy(b.load, (size_t)b.n, sizeof *bad);
    for (int pcg = 0; pcg < 2; pcg++) {
        solver_options o = solver_default_options();
        o.time_step = 0.02;
        o.linear = pcg ? SOLVER_PCG : SOLVER_DIRECT;
        solver_full *solver = make_solver(&b, &o), *undisturbed = make_solver(&b, &o);
        solver_full_set_load(solver, b.load);
        solver_full_set_load(undisturbed, b.load);
        run(solver, 3);
        run(undisturbed, 4);
        kept_state kept = keep(&b, solver);

        // a load that is not a number
        bad[b.n - 1] = NAN;
        solver_full_set_load(solver, bad);
        assert_fails(solver_full_step(solver), FEM_BAD_INPUT, "load at vertex");
        assert_unchanged(&b, solver, &kept);
        bad[b.n - 1] = 1e300; // a load that overflows
        solver_full_set_load(solver, bad);
        assert_fails(solver_full_step(solver), FEM_UNSTABLE, "time step");
        printf("  %s\n", fem_message());
        assert_unchanged(&b, solver, &kept);
        bad[b.n - 1] = b.load[b.n - 1];

        solver_full_set_load(solver, b.load);
        assert_ok(solver_full_step(solver));
        assert_memory_equal(solver_full_state(solver)->u, solver_full_state(undisturbed)->u,
                            (size_t)b.n * sizeof(double));
        drop(&kept);
        solver_full_destroy(solver);
        solver_full_destroy(undisturbed);
    }
    // one Newton iteration is not enough
    solver_options o = solver_default_options();
    o.time_step = 0.1;
    o.newton_iterations = 1;
    solver_full *solver = make_solver(&b, &o);
    for (int i = 0; i < b.n; i++) b.work[i] = b.fixed[i] ? 0 : b.mesh.vertices[i / 3 * 3] * (i % 3 == 2 ? 5 : 0);
    assert_ok(solver_full_set_state(solver, 1.5, NULL, b.work));
    solver_full_set_load(solver, b.load);
    kept_state kept = keep(&b, solver);
    assert_fails(solver_full_step(solver), FEM_NO_CONVERGENCE, "t = 1.6 s");
    printf("  %s\n", fem_message());
    assert_unchanged(&b, solver, &kept);
    drop(&kept);
    solver_full_destroy(solver);
    fem_free(bad);
    bar_destroy(&b);
}

// A motion that cannot be followed is reported as unstable or not converging, with time, vertex, region and advice.
static void test_instability_is_reported(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_LINEAR, 1e6, 0.3);
    bar          b;
    bar_create(&b, FEM_H8, size, cells, &m);
    bar_pull(&b, "x1", 0, 0, -1);
    solver_options o = solver_default_options();
    o.newmark_beta = 1e-3; // conditionally stable, and the step is far above the limit
    o.time_step = 0.05;
    solver_full *solver = make_solver(&b, &o);
    solver_full_set_load(solver, b.load);
    fem_status status = FEM_OK;
    int        steps = 0;
    for (; steps < 400 && status == FEM_OK; steps++) status = solver_full_step(solver);
    printf("  after %d steps: %s\n", steps, fem_message());
    assert_int_equal(status, FEM_UNSTABLE);
    assert_non_null(strstr(fem_message(), "t = "));
    assert_non_null(strstr(fem_message(), "vertex"));
    assert_non_null(strstr(fem_message(), "region \"all\""));
    assert_non_null(strstr(fem_message(), "smaller time step"));
    assert_true(isfinite(solver_full_state(solver)->u[b.n - 1]));
    solver_full_destroy(solver);
    bar_destroy(&b);
}

// A slender beam with local damping, pushed hard in long steps: the residual has to grow before it falls, which a line
// search on it alone does not allow. It swings far; the damping is local, so its frequency stays near the linear one
// where damping by the stiffness of rest would let it creep back.
static void test_slender_beam_swings(void **unused) {
    (void)unused;
    const double slender[3] = {2.5, 0.3, 0.12};
    const int    few[3] = {20, 2, 1};
    fem_material m = soft_material(FEM_STVK, 1e9, 0.4);
    bar          b;
    bar_create(&b, FEM_H8, slender, few, &m);
    bar_pull(&b, "x1", 0, 0, 1e4);
    solver_options o = solver_default_options();
    o.time_step = 1.0 / 120, o.newton_tolerance = 1e-6, o.damping_stiffness = 5e-4, o.damping_local = true;
    solver_full *solver = make_solver(&b, &o);
    double      *none = fem_calloc((size_t)b.n, sizeof *none), mean[3], highest = 0, lowest = 0;
    for (int i = 0; i < 60; i++) {
        solver_full_set_load(solver, i < 12 ? b.load : none);
        assert_ok(solver_full_step(solver));
        bar_face_mean(&b, "x1", solver_full_state(solver)->u, mean);
        highest = fmax(highest, mean[2]), lowest = fmin(lowest, mean[2]);
    }
    printf("  a beam 2.5 m long swings from %.2f to %.2f m, %.1f iterations a step\n", highest, lowest,
           solver_full_report(solver).newton_iterations / 60.0);
    assert_true(highest > 1 && lowest < -1);
    solver_full_destroy(solver);
    fem_free(none);
    bar_destroy(&b);
}

// A step allocates nothing: it runs while every allocation fails, and the number of blocks stays.
static void test_step_allocates_nothing(void **unused) {
    (void)unused;
    for (int variant = 0; variant < 8; variant++) {
        fem_material m = soft_material(variant & 4 ? FEM_LINEAR : FEM_STVK, 1e6, 0.3);
        bar          b;
        bar_create(&b, variant & 1 ? FEM_H8 : FEM_T4, size, cells, &m);
        bar_pull(&b, "x1", 0, 0, -10);
        solver_options o = solver_default_options();
        o.linear = variant & 2 ? SOLVER_PCG : SOLVER_DIRECT;
        o.damping_stiffness = 0.01;
        o.damping_local = variant & 1;
        solver_full *solver = make_solver(&b, &o);
        solver_full_set_load(solver, b.load);
        long blocks = fem_memory_blocks();
        for (int k = 0; k < 3; k++) {
            fem_memory_fail_after(0);
            fem_status status = solver_full_step(solver);
            fem_memory_fail_after(-1);
            if (status != FEM_OK) fail_msg("variant %d, step %d: %s", variant, k, fem_message());
            assert_int_equal(fem_memory_blocks(), blocks);
        }
        fem_memory_fail_after(0);
        fem_status status = solver_full_static(solver, NULL);
        fem_memory_fail_after(-1);
        assert_int_equal(status, FEM_OK);
        solver_full_destroy(solver);
        bar_destroy(&b);
    }
    printf("  8 variants step while every allocation fails\n");
}

// Results do not depend on the number of threads.
static void test_threads_do_not_matter(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_STVK, 3e5, 0.3);
    bar          b;
    bar_create(&b, FEM_T4, size, cells, &m);
    bar_pull(&b, "x1", 0, 0, -40);
    double *u[2];
    for (int k = 0; k < 2; k++) {
        fem_set_threads(k == 0 ? 1 : 4);
        solver_options o = solver_default_options();
        o.linear = SOLVER_PCG;
        solver_full *solver = make_solver(&b, &o);
        solver_full_set_load(solver, b.load);
        run(solver, 5);
        u[k] = fem_copy(solver_full_state(solver)->u, (size_t)b.n, sizeof(double));
        solver_full_destroy(solver);
    }
    fem_set_threads(0);
    assert_memory_equal(u[0], u[1], (size_t)b.n * sizeof(double));
    printf("  1 and 4 threads: the same bits, largest displacement %.2e m\n", largest_entry(b.n, u[0]));
    assert_true(largest_entry(b.n, u[0]) > 0);
    fem_free(u[0]);
    fem_free(u[1]);
    bar_destroy(&b);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_energy_of_linear_body),
        cmocka_unit_test(test_energy_of_nonlinear_body),
        cmocka_unit_test(test_damping_rate),
        cmocka_unit_test(test_local_damping_balance),
        cmocka_unit_test(test_free_fall),
        cmocka_unit_test(test_moving_supports),
        cmocka_unit_test(test_rest_is_static_solution),
        cmocka_unit_test(test_failed_step_changes_nothing),
        cmocka_unit_test(test_instability_is_reported),
        cmocka_unit_test(test_slender_beam_swings),
        cmocka_unit_test(test_step_allocates_nothing),
        cmocka_unit_test(test_threads_do_not_matter),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
