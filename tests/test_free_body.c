// Free bodies: rigid motion against Euler's equations, conservation, orders, agreement with the full space, failures.
#include "tests/reduced_case.h"

static solver_free *make(const solver_inertia *inertia, const cubature_forces *forces,
                         const solver_reduced_options *o) {
    solver_free *solver = NULL;
    assert_ok(solver_free_create(&solver, inertia, forces, o));
    return solver;
}

static void run(solver_free *solver, int steps) {
    for (int k = 0; k < steps; k++) assert_ok(solver_free_step(solver));
}

static double distance(int n, const double *x, const double *y) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (x[i] - y[i]) * (x[i] - y[i]);
    return sqrt(sum);
}

static void rotation(const double a[3], double R[9]) { // by the power series of exp([a])
    double A[9] = {0, -a[2], a[1], a[2], 0, -a[0], -a[1], a[0], 0}, term[9], next[9];
    mat3_identity(term), mat3_identity(R);
    for (int k = 1; k < 60; k++) {
        mat3_mul(next, term, A);
        for (int i = 0; i < 9; i++) term[i] = next[i] / k, R[i] += term[i];
    }
}

static void set_integrator(solver_reduced_options *o, int variant) {
    static const solver_integrator kinds[] = {SOLVER_MIDPOINT, SOLVER_MIDPOINT, SOLVER_MIDPOINT,      SOLVER_MIDPOINT,
                                              SOLVER_NEWMARK,  SOLVER_NEWMARK,  SOLVER_BACKWARD_EULER};
    static const int               iterations[] = {2, 2, 1, 3, 2, 2, 2};
    o->integrator = kinds[variant], o->newton_iterations = iterations[variant];
    o->conserve_momentum = variant != 1 && variant != 5;
}
static const char *names[] = {
    "midpoint", "midpoint, momentum uncorrected", "midpoint, one iteration", "midpoint, three iterations",
    "Newmark",  "Newmark, momentum uncorrected",  "backward Euler"};
enum { INTEGRATORS = 7 };

// ---- rigid -------------------------------------------------------------------------------------------------------

// A symmetric top without torque (J1 = J2): with W = w3 (J3 - J1) / J1 the body's w is
//     (A cos W t, A sin W t, w3),   Q(t) = exp([L/J1] t) exp([e3] (w3 - J3 w3 / J1) t),   L = Q J w constant.
static void test_symmetric_top(void **unused) {
    (void)unused;
    fem_mesh       mesh = {0};
    const double   low[3] = {1, 2, 3}, high[3] = {1.4, 2.4, 3.9};
    const int      cells[3] = {2, 2, 2};
    fem_body      *body = NULL;
    solver_inertia inertia;
    assert_ok(fem_generate_box(&mesh, FEM_T4, low, high, cells));
    fem_body_options body_options = fem_body_default_options();
    assert_ok(fem_body_create(&body, &mesh, &body_options));
    assert_ok(solver_inertia_create(&inertia, body, FEM_MASS_CONSISTENT, 0, NULL));
    double m = inertia.m, J1 = m * (0.4 * 0.4 + 0.9 * 0.9) / 12, J3 = m * (0.4 * 0.4 + 0.4 * 0.4) / 12;
    double amplitude = 1.5, w3 = 4, time = 2, W = w3 * (J3 - J1) / J1;
    double w_end[3] = {amplitude * cos(W * time), amplitude * sin(W * time), w3}, Q_end[9], first[9], second[9];
    double L[3] = {amplitude * time, 0, J3 * w3 / J1 * time}, spin[3] = {0, 0, (w3 - J3 * w3 / J1) * time};
    rotation(L, first), rotation(spin, second);
    mat3_mul(Q_end, first, second);
    for (int variant = 0; variant < INTEGRATORS; variant++) {
        double error[2][2];
        for (int k = 0; k < 2; k++) {
            solver_reduced_options o = solver_free_default_options();
            set_integrator(&o, variant);
            int steps = (variant == 6 ? 4000 : 500) << k;
            o.time_step = time / steps;
            solver_free  *solver = make(&inertia, NULL, &o);
            const double  w[3] = {amplitude, 0, w3}, v[3] = {0.3, -0.1, 0.2};
            const double *c = solver_free_state(solver)->centre;
            assert_true(fabs(c[0] - 1.2) + fabs(c[1] - 2.2) + fabs(c[2] - 3.45) < 1e-12);
            assert_ok(solver_free_set_state(solver, &(solver_motion_start){.w = w, .v = v}));
            run(solver, steps);
            const solver_motion *s = solver_free_state(solver);
            error[k][0] = distance(3, s->w, w_end);
            error[k][1] = distance(9, s->Q, Q_end);
            double p[3];
            for (int i = 0; i < 3; i++) p[i] = c[i] + time * v[i];
            assert_true(distance(3, s->p, p) < 1e-11 && distance(3, s->v, v) < 1e-12);
            solver_free_destroy(solver);
        }
        double order_w = log2(error[0][0] / error[1][0]), order_Q = log2(error[0][1] / error[1][1]);
        printf("  %-31s w off by %.1e, %.1e (order %.2f), Q by %.1e, %.1e (order %.2f)\n", names[variant], error[0][0],
               error[1][0], order_w, error[0][1], error[1][1], order_Q);
        double wanted = variant == 6 ? 0.9 : 1.9;
        assert_true(order_w > wanted || error[1][0] < 1e-10);
        assert_true(order_Q > wanted && error[1][1] < 0.02);
    }
    solver_inertia_destroy(&inertia);
    fem_body_destroy(body);
    fem_mesh_destroy(&mesh);
}

// ---- free flight -------------------------------------------------------------------------------------------------

typedef struct flyer {
    reduced_bar    c;
    solver_inertia inertia;
} flyer;

static const double size[3] = {1, 0.25, 0.18};
static const int    cells[3] = {4, 1, 1};

static void flyer_create(flyer *f, int r) {
    fem_material m = soft_material(FEM_STVK, 2e5, 0.3);
    reduced_bar_create(&f->c, FEM_H8, size, cells, &m, false, r);
    assert_ok(solver_inertia_create(&f->inertia, f->c.b.body, FEM_MASS_CONSISTENT, r, f->c.basis.U));
}

static void flyer_destroy(flyer *f) {
    solver_inertia_destroy(&f->inertia);
    reduced_bar_destroy(&f->c);
}

// Tumbles and swings: rigid and elastic motion of about the same energy.
static void launch(solver_free *solver, int r) {
    double       dq[64] = {0}, q[64] = {0};
    const double w[3] = {2, 5, -3}, v[3] = {0.5, 1, -2};
    for (int l = 0; l < r; l++) dq[l] = (l % 2 ? -8.0 : 8.0) / (1 + l), q[l] = 0.05 / (1 + l);
    assert_ok(solver_free_set_state(solver, &(solver_motion_start){.w = w, .v = v, .q = q, .dq = dq}));
}

// Without forces: both momenta and the energy, their drift against the step.
static void test_conservation(void **unused) {
    (void)unused;
    flyer f;
    enum { R = 6 };
    flyer_create(&f, R);
    for (int variant = 0; variant < 6; variant++) {
        double drift[2][3] = {{0}}, deformation = 0;
        for (int k = 0; k < 2; k++) {
            solver_reduced_options o = solver_free_default_options();
            set_integrator(&o, variant);
            o.time_step = 1e-3 / (1 << k);
            solver_free           *solver = make(&f.inertia, &f.c.forces, &o);
            solver_motion_energies start, e;
            launch(solver, R);
            solver_free_energies(solver, &start);
            double energy = start.kinetic + start.strain;
            for (int step = 0; step < 1000 << k; step++) {
                assert_ok(solver_free_step(solver));
                solver_free_energies(solver, &e);
                drift[k][0] = fmax(drift[k][0], distance(3, e.momentum, start.momentum) / vec3_norm(start.momentum));
                drift[k][1] = fmax(drift[k][1], distance(3, e.spin, start.spin) / vec3_norm(start.spin));
                drift[k][2] = fmax(drift[k][2], fabs((e.kinetic + e.strain) / energy - 1));
                deformation = fmax(deformation, e.strain / energy);
            }
            solver_free_destroy(solver);
        }
        double spin_order = log2(drift[0][1] / drift[1][1]), energy_order = log2(drift[0][2] / drift[1][2]);
        printf("  %-31s momentum %.0e, angular %.1e, %.1e (order %.2f), energy %.1e, %.1e (order %.2f)\n",
               names[variant], drift[0][0], drift[0][1], drift[1][1], drift[0][1] > 1e-10 ? spin_order : NAN,
               drift[0][2], drift[1][2], energy_order);
        assert_true(deformation > 0.1);
        assert_true(drift[0][0] < 1e-11);
        if (variant != 1 && variant != 5)
            assert_true(drift[0][1] < 1e-11);
        else
            assert_true(spin_order > 1.8 && drift[0][1] < 1e-2);
        assert_true(energy_order > 1.8 && drift[0][2] < 0.03);
    }
    flyer_destroy(&f);
}

static void test_orders(void **unused) {
    (void)unused;
    flyer f;
    enum { R = 4 };
    flyer_create(&f, R);
    double load_rows[3 * R];
    for (int k = 0; k < 3; k++)
        for (int l = 0; l < R; l++) load_rows[k * R + l] = f.c.basis.U[l * f.c.b.n + k]; // of vertex 0
    double exact[3 + 9 + R] = {0};
    for (int variant = -1; variant < INTEGRATORS; variant++) {
        double error[2] = {0};
        for (int k = 0; k < 2; k++) {
            if (variant < 0 && k == 1) continue;
            solver_reduced_options o = solver_free_default_options();
            set_integrator(&o, variant < 0 ? 3 : variant);
            o.damping_mass = 1, o.damping_stiffness = 2e-3;
            int steps = variant < 0 ? 6400 : (variant == 6 ? 800 : 200) << k;
            o.time_step = 0.2 / steps;
            const double gravity[3] = {0, 0, -9.81}, force[3] = {20, 10, 40}, torque[3] = {2, -1, 1};
            solver_free *solver = make(&f.inertia, &f.c.forces, &o);
            launch(solver, R);
            assert_ok(solver_free_set_gravity(solver, gravity));
            assert_ok(solver_free_add_force(solver, f.c.b.mesh.vertices, load_rows, force));
            assert_ok(solver_free_add_torque(solver, torque));
            run(solver, steps);
            const solver_motion *s = solver_free_state(solver);
            double               end[3 + 9 + R];
            memcpy(end, s->p, sizeof s->p), memcpy(end + 3, s->Q, sizeof s->Q), memcpy(end + 12, s->q, R * sizeof *end);
            if (variant < 0)
                memcpy(exact, end, sizeof end);
            else
                error[k] = distance(3 + 9 + R, end, exact);
            solver_free_destroy(solver);
        }
        if (variant < 0) continue;
        double order = log2(error[0] / error[1]), wanted = variant == 6 ? 1 : 2;
        printf("  %-31s errors %.2e %.2e, order %.2f\n", names[variant], error[0], error[1], order);
        assert_true(fabs(order - wanted) < 0.2);
    }
    flyer_destroy(&f);
}

// Modes that are not orthogonal to rigid motions (each here with a share of one) move the centre of mass; the equations
// are general and the momenta are kept.
static void test_general_modes(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_STVK, 2e5, 0.3);
    reduced_bar  c;
    enum { R = 3 };
    reduced_bar_create(&c, FEM_H8, size, cells, &m, false, R);
    for (int i = 0; i < c.b.n / 3; i++) {
        const double *x = c.b.mesh.vertices + 3 * i;
        double       *U = c.basis.U + 3 * i;
        U[0] += 0.05, U[2] -= 0.03;
        U[c.b.n] -= 0.05 * x[1], U[c.b.n + 1] += 0.05 * x[0];
        U[2 * c.b.n + 1] += 0.04;
    }
    solver_inertia inertia;
    assert_ok(solver_inertia_create(&inertia, c.b.body, FEM_MASS_CONSISTENT, R, c.basis.U));
    double drift[2] = {0};
    for (int k = 0; k < 2; k++) {
        solver_reduced_options o = solver_free_default_options();
        o.time_step = 5e-4 / (1 << k);
        solver_free *solver = make(&inertia, &c.plain.forces, &o);
        launch(solver, R);
        solver_motion_energies start, e;
        solver_free_energies(solver, &start);
        for (int step = 0; step < 600 << k; step++) {
            assert_ok(solver_free_step(solver));
            solver_free_energies(solver, &e);
            drift[k] = fmax(drift[k], fabs((e.kinetic + e.strain) / (start.kinetic + start.strain) - 1));
        }
        // angular momentum about a fixed point: of the spin, and of the centre of mass
        double P = distance(3, e.momentum, start.momentum) / vec3_norm(start.momentum);
        double S1 = dense_norm(3 * R, inertia.S1), orbit[2][3], path[3];
        vec3_cross(orbit[0], start.centre, start.momentum), vec3_cross(orbit[1], e.centre, e.momentum);
        vec3_axpy(orbit[0], 1, start.spin), vec3_axpy(orbit[1], 1, e.spin);
        double H = distance(3, orbit[1], orbit[0]) / vec3_norm(orbit[0]);
        // the centre of mass flies straight on
        for (int i = 0; i < 3; i++)
            path[i] = start.centre[i] + solver_free_state(solver)->time * start.momentum[i] / inertia.m;
        printf("  |S1| = %.2f: momentum %.0e, angular %.0e, centre of mass off by %.1e m, energy drift %.1e\n", S1, P,
               H, distance(3, e.centre, path), drift[k]);
        assert_true(S1 > 1 && P < 1e-12 && H < 1e-11 && distance(3, e.centre, path) < 1e-3);
        solver_free_destroy(solver);
    }
    assert_true(log2(drift[0] / drift[1]) > 1.7);
    solver_inertia_destroy(&inertia);
    reduced_bar_destroy(&c);
}

// A tiny body with all of its elastic modes is the full space in other coordinates: the same flight, to second order,
// with gravity and a force that follows a vertex.
static void test_full_space(void **unused) {
    (void)unused;
    fem_material m = soft_material(FEM_STVK, 2e5, 0.3);
    const int    tiny[3] = {2, 1, 1};
    reduced_bar  c;
    enum { R = 30 };
    reduced_bar_create(&c, FEM_H8, size, tiny, &m, false, R);
    solver_inertia inertia;
    assert_ok(solver_inertia_create(&inertia, c.b.body, FEM_MASS_CONSISTENT, R, c.basis.U));
    int          n = c.b.n, vertex = 5;
    const double gravity[3] = {0, 0, -9.81}, force[3] = {60, 20, 100}, w[3] = {2, 4, -3}, v[3] = {0.2, 0.4, 1};
    double       rows[3 * R], dq[R] = {2, -1.5, 1, 0.5}, *u = fem_alloc((size_t)n, sizeof *u), error[2];
    for (int k = 0; k < 3; k++)
        for (int l = 0; l < R; l++) rows[k * R + l] = c.basis.U[l * n + 3 * vertex + k];
    for (int refine = 0; refine < 2; refine++) {
        int                    steps = 60 << refine;
        double                 time = 0.1;
        solver_options         full_options = solver_default_options();
        solver_reduced_options o = solver_free_default_options();
        solver_full           *full = NULL;
        full_options.time_step = time / 1920, full_options.newton_tolerance = 1e-10;
        o.time_step = time / steps;
        solver_free *solver = make(&inertia, &c.forces, &o);
        assert_ok(solver_free_set_state(solver, &(solver_motion_start){.w = w, .v = v, .dq = dq}));
        assert_ok(solver_free_set_gravity(solver, gravity));
        assert_ok(solver_free_add_force(solver, c.b.mesh.vertices + 3 * vertex, rows, force));
        assert_ok(solver_full_create(&full, c.b.body, NULL, &full_options));
        dense_gemv_set(n, R, 1, c.basis.U, dq, u); // velocities of the start
        for (int i = 0; i < n / 3; i++) {
            double arm[3], turn[3];
            vec3_sub(arm, c.b.mesh.vertices + 3 * i, solver_free_state(solver)->centre);
            vec3_cross(turn, w, arm);
            vec3_axpy(u + 3 * i, 1, turn), vec3_axpy(u + 3 * i, 1, v);
        }
        assert_ok(solver_full_set_state(full, 0, NULL, u));
        memset(u, 0, (size_t)n * sizeof *u);
        assert_ok(solver_add_gravity(c.b.body, gravity, u));
        vec3_axpy(u + 3 * vertex, 1, force);
        solver_full_set_load(full, u);
        for (int k = 0; k < 1920; k++) assert_ok(solver_full_step(full));
        run(solver, steps);
        double largest = 0, strain = 0;
        error[refine] = 0;
        for (int i = 0; i < n / 3; i++) {
            double x[3], expected[3], row[3 * R];
            for (int k = 0; k < 3; k++) {
                for (int l = 0; l < R; l++) row[k * R + l] = c.basis.U[l * n + 3 * i + k];
                expected[k] = c.b.mesh.vertices[3 * i + k] + solver_full_state(full)->u[3 * i + k];
            }
            solver_free_point(solver, c.b.mesh.vertices + 3 * i, row, x, NULL);
            error[refine] = fmax(error[refine], distance(3, x, expected));
            largest = fmax(largest, vec3_norm(solver_full_state(full)->u + 3 * i));
        }
        strain = largest_entry(R, solver_free_state(solver)->q);
        printf("  %d steps: vertices within %.1e m of the full space after moving up to %.2f m, largest q %.2f\n",
               steps, error[refine], largest, strain);
        assert_true(largest > 0.2 && strain > 0.05);
        solver_free_destroy(solver);
        solver_full_destroy(full);
    }
    printf("    order %.2f\n", log2(error[0] / error[1]));
    assert_true(fabs(log2(error[0] / error[1]) - 2) < 0.3 && error[1] < 1e-3);
    fem_free(u);
    solver_inertia_destroy(&inertia);
    reduced_bar_destroy(&c);
}

// Gravity moves the centre of mass along the parabola; mass damping does not brake the rigid motion; forces change the
// momenta by their impulse.
static void test_loads(void **unused) {
    (void)unused;
    flyer f;
    enum { R = 4 };
    flyer_create(&f, R);
    solver_reduced_options o = solver_free_default_options();
    o.time_step = 2e-3, o.damping_mass = 20, o.damping_stiffness = 0.01;
    solver_free           *solver = make(&f.inertia, &f.c.forces, &o);
    solver_motion_energies start, e;
    const double           gravity[3] = {1, 0, -9.81}, rows[3 * R] = {0}, X[3] = {0.9, 0.1, 0.1};
    const double           force[3] = {3, -4, 1}, torque[3] = {0, 2, 5};
    launch(solver, R);
    assert_ok(solver_free_set_gravity(solver, gravity));
    solver_free_energies(solver, &start);
    run(solver, 500);
    solver_free_energies(solver, &e);
    double expected[3], t = 1.0;
    for (int k = 0; k < 3; k++)
        expected[k] = start.centre[k] + t * start.momentum[k] / f.inertia.m + t * t / 2 * gravity[k];
    printf("  parabola: %.1e m off; spin kept to %.0e under damping; elastic motion left: %.1e m kg^1/2/s\n",
           distance(3, e.centre, expected), distance(3, e.spin, start.spin) / vec3_norm(start.spin),
           dense_norm(R, solver_free_state(solver)->dq));
    assert_true(distance(3, e.centre, expected) < 1e-9);
    assert_true(distance(3, e.spin, start.spin) < 1e-10 * vec3_norm(start.spin));
    assert_true(dense_norm(R, solver_free_state(solver)->dq) < 0.5);

    // one step with a force at a point: its impulse and the moment of it about the centre of mass, to second order
    for (int k = 0; k < 3; k++) expected[k] = 0;
    assert_ok(solver_free_set_gravity(solver, expected));
    assert_ok(solver_free_add_force(solver, X, rows, force));
    assert_ok(solver_free_add_torque(solver, torque));
    solver_free_energies(solver, &start);
    double x[3], arm[3], moment[3], change[3];
    solver_free_point(solver, X, rows, x, NULL);
    assert_ok(solver_free_step(solver));
    solver_free_energies(solver, &e);
    vec3_sub(arm, x, start.centre);
    vec3_cross(moment, arm, force);
    vec3_axpy(moment, 1, torque);
    double linear = 0, angular = 0;
    for (int k = 0; k < 3; k++) {
        linear += pow(e.momentum[k] - start.momentum[k] - o.time_step * force[k], 2);
        change[k] = (e.spin[k] - start.spin[k]) / o.time_step;
    }
    angular = distance(3, change, moment) / vec3_norm(moment);
    printf("  impulse of a force %.0e, its moment about the centre of mass %.1e (the arm turns during the step)\n",
           sqrt(linear), angular);
    assert_true(sqrt(linear) < 1e-12 && angular < 0.02);
    solver_free_clear_loads(solver);
    solver_free_energies(solver, &start);
    run(solver, 10);
    solver_free_energies(solver, &e);
    assert_true(distance(3, e.momentum, start.momentum) < 1e-12 * vec3_norm(start.momentum));
    solver_free_destroy(solver);
    flyer_destroy(&f);
}

// A change of density at one end: the body stays where it is, and the new motion conserves the new momenta.
static void test_changed_inertia(void **unused) {
    (void)unused;
    flyer f;
    enum { R = 4 };
    flyer_create(&f, R);
    solver_reduced_options o = solver_free_default_options();
    o.time_step = 1e-3;
    solver_free *solver = make(&f.inertia, &f.c.forces, &o);
    launch(solver, R);
    run(solver, 50);
    const double X[3] = {0.3, 0.2, 0.1};
    double       rows[3 * R], x[2][3], dx[2][3];
    uint64_t     seed = 2;
    test_random_fill(&seed, 3 * R, 0.1, rows);
    solver_free_point(solver, X, rows, x[0], dx[0]);
    // as if the density rose linearly along x: M' = M (1 + x), by a mesh with two materials
    fem_mesh heavy = {0};
    assert_ok(fem_mesh_copy(&heavy, &f.c.b.mesh));
    heavy.materials[0].density *= 3;
    fem_body        *body = NULL;
    fem_body_options body_options = fem_body_default_options();
    assert_ok(fem_body_create(&body, &heavy, &body_options));
    solver_inertia more, both;
    assert_ok(solver_inertia_create(&more, body, FEM_MASS_CONSISTENT, R, f.c.basis.U));
    assert_ok(solver_inertia_copy(&both, &more));
    both.s0[0] += 0.3 * both.m; // and a centre of mass elsewhere
    both.Z0[0] += 2 * 0.3 * more.s0[0] + 0.09 * both.m, both.Z0[1] += 0.3 * more.s0[1], both.Z0[2] += 0.3 * more.s0[2];
    both.Z0[3] = both.Z0[1], both.Z0[6] = both.Z0[2];
    assert_ok(solver_free_changed(solver, &both));
    solver_free_point(solver, X, rows, x[1], dx[1]);
    printf("  after the change: place %.0e, velocity %.0e; centre moved by %.2f\n", distance(3, x[0], x[1]),
           distance(3, dx[0], dx[1]), solver_free_state(solver)->centre[0] - f.inertia.s0[0] / f.inertia.m);
    assert_true(distance(3, x[0], x[1]) < 1e-13 && distance(3, dx[0], dx[1]) < 1e-13);
    solver_motion_energies start, e;
    solver_free_energies(solver, &start);
    run(solver, 50);
    solver_free_energies(solver, &e);
    assert_true(distance(3, e.momentum, start.momentum) < 1e-12 * vec3_norm(start.momentum));
    assert_ok(solver_free_changed(solver, NULL)); // as it was
    solver_free_point(solver, X, rows, x[0], NULL);
    assert_ok(solver_free_changed(solver, NULL));
    solver_free_point(solver, X, rows, x[1], NULL);
    assert_true(distance(3, x[0], x[1]) < 1e-13);
    solver_inertia wrong = more;
    wrong.r = 3;
    assert_fails(solver_free_changed(solver, &wrong), FEM_BAD_INPUT, "3 modes, the body 4");
    solver_free_destroy(solver);
    solver_inertia_destroy(&more), solver_inertia_destroy(&both);
    fem_body_destroy(body);
    fem_mesh_destroy(&heavy);
    flyer_destroy(&f);
}

// ---- what can go wrong -------------------------------------------------------------------------------------------

static void break_when_bent(const void *model, const double *q, double *energy, double *f, double *K, double *work) {
    (void)work;
    double k = fabs(q[0]) > 0.2 ? NAN : *(const double *)model;
    if (energy) *energy = k * q[0] * q[0] / 2;
    if (f) *f = k * q[0];
    if (K) *K = k;
}

static void test_failures(void **unused) {
    (void)unused;
    flyer f;
    enum { R = 3 };
    flyer_create(&f, R);
    solver_reduced_options o = solver_free_default_options();
    solver_free           *solver = NULL;
    // rigid modes: the third mode becomes a rotation
    double *U = fem_copy(f.c.basis.U, (size_t)f.c.b.n * R, sizeof *U);
    for (int i = 0; i < f.c.b.n / 3; i++) {
        const double *x = f.c.b.mesh.vertices + 3 * i;
        U[2 * f.c.b.n + 3 * i] = -x[1], U[2 * f.c.b.n + 3 * i + 1] = x[0], U[2 * f.c.b.n + 3 * i + 2] = 0;
    }
    solver_inertia rigid;
    assert_ok(solver_inertia_create(&rigid, f.c.b.body, FEM_MASS_CONSISTENT, R, U));
    assert_fails(solver_free_create(&solver, &rigid, &f.c.forces, &o), FEM_BAD_INPUT, "contain a rigid motion");
    printf("  %s\n", fem_message());
    fem_free(U);
    solver_inertia_destroy(&rigid);
    assert_fails(solver_free_create(&solver, &f.inertia, NULL, &o), FEM_BAD_INPUT, "3 modes but no forces");
    cubature_forces two = f.c.forces;
    two.r = 2;
    assert_fails(solver_free_create(&solver, &f.inertia, &two, &o), FEM_BAD_INPUT, "the forces have 2 modes");
    solver_inertia nothing = {0};
    assert_fails(solver_free_create(&solver, &nothing, NULL, &o), FEM_BAD_INPUT, "mass of a free body is 0");
    nothing.m = 1;
    double none[1] = {0};
    nothing.S1 = nothing.W5 = nothing.W7 = nothing.Mqq = none;
    assert_fails(solver_free_create(&solver, &nothing, NULL, &o), FEM_BAD_INPUT, "extent in all three dimensions");

    int failures = 0;
    for (long allowed = 0;; allowed++) {
        fem_memory_fail_after(allowed);
        fem_status status = solver_free_create(&solver, &f.inertia, &f.c.forces, &o);
        fem_memory_fail_after(-1);
        if (status == FEM_OK) break;
        assert_int_equal(status, FEM_NO_MEMORY);
        failures++;
    }
    printf("  %d failing allocations\n", failures);
    assert_true(failures > 5);
    launch(solver, R);
    const double X[3] = {0}, rows[3 * R] = {0}, force[3] = {1, 2, 3};
    fem_memory_fail_after(0);
    assert_int_equal(solver_free_add_force(solver, X, rows, force), FEM_NO_MEMORY);
    fem_memory_fail_after(-1);
    assert_ok(solver_free_add_force(solver, X, rows, force));
    long blocks = fem_memory_blocks();
    fem_memory_fail_after(0);
    fem_status status = solver_free_step(solver);
    fem_memory_fail_after(-1);
    assert_int_equal(status, FEM_OK);
    assert_int_equal(fem_memory_blocks(), blocks);
    const double bad[9] = {1, 0, 0, 0, 1, 0, 0, 0, 2}, infinite[3] = {INFINITY};
    assert_fails(solver_free_set_state(solver, &(solver_motion_start){.Q = bad}), FEM_BAD_INPUT, "not a rotation");
    assert_fails(solver_free_set_state(solver, &(solver_motion_start){.w = infinite}), FEM_BAD_INPUT, "not finite");
    assert_fails(solver_free_add_force(solver, X, rows, infinite), FEM_BAD_INPUT, "not finite");
    assert_fails(solver_free_add_torque(solver, infinite), FEM_BAD_INPUT, "not finite");
    assert_fails(solver_free_set_gravity(solver, infinite), FEM_BAD_INPUT, "not finite");
    solver_free_destroy(solver);

    // a step that fails leaves the state bit by bit
    double          k = 50;
    cubature_forces breaking = {.r = 1, .evaluate = break_when_bent, .model = &k};
    solver_inertia  one;
    assert_ok(solver_inertia_create(&one, f.c.b.body, FEM_MASS_CONSISTENT, 1, f.c.basis.U));
    o.time_step = 0.01;
    solver = make(&one, &breaking, &o);
    const double dq = 5, w[3] = {1, 2, 3};
    assert_ok(solver_free_set_state(solver, &(solver_motion_start){.w = w, .dq = &dq}));
    solver_motion before = {0};
    double        q[3];
    for (int step = 0; step < 100; step++) {
        before = *solver_free_state(solver);
        q[0] = before.q[0], q[1] = before.dq[0], q[2] = before.ddq[0];
        status = solver_free_step(solver);
        if (status != FEM_OK) break;
    }
    printf("  %s\n", fem_message());
    assert_int_equal(status, FEM_UNSTABLE);
    assert_memory_equal(&before, solver_free_state(solver), sizeof before);
    assert_true(before.q[0] == q[0] && before.dq[0] == q[1] && before.ddq[0] == q[2] && before.time > 0);
    solver_free_destroy(solver);
    solver_inertia_destroy(&one);
    flyer_destroy(&f);
}

int main(int argc, char **argv) {
    (void)argc;
    fem_set_threads(1); // bodies this small are done before a second thread wakes up
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_symmetric_top),   cmocka_unit_test(test_conservation), cmocka_unit_test(test_orders),
        cmocka_unit_test(test_general_modes),   cmocka_unit_test(test_full_space),   cmocka_unit_test(test_loads),
        cmocka_unit_test(test_changed_inertia), cmocka_unit_test(test_failures),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
