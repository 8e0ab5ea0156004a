// Time steps of the tree: order, conservation, stiffness, scale, threads, failure.
#include "tests/tree_case.h"

static const int parents4[4] = {-1, 0, 0, 1}, modes4[4] = {3, 4, 2, 3};

// A free tree in fast motion.
static void start_flight(tree_case *c, solver_tree *tree, double amplitude, double speed) {
    double              q[32], dq[32];
    solver_frame_motion root = {0};
    uint64_t            seed = 99;
    test_random_fill(&seed, c->dofs, amplitude, q);
    test_random_fill(&seed, c->dofs, speed, dq);
    test_random_fill(&seed, 3, 0.8, root.v);
    test_random_fill(&seed, 3, 1.5, root.w);
    mat3_identity(root.Q);
    case_set_state(c, tree, q, dq);
    assert_ok(solver_tree_set_root(tree, 0, &root));
}

static void run(solver_tree *tree, int steps) {
    for (int k = 0; k < steps; k++) assert_ok(solver_tree_step(tree));
}

// Root pose and all q as one vector of 12 + dofs.
static void configuration(const tree_case *c, solver_tree *tree, double *out) {
    solver_frame_motion root;
    solver_tree_frame(tree, 0, &root);
    memcpy(out, root.p, sizeof root.p);
    memcpy(out + 3, root.Q, sizeof root.Q);
    for (int i = 0; i < c->count; i++)
        memcpy(out + 12 + c->offset[i], solver_tree_q(tree, i), (size_t)c->d[i].r * sizeof *out);
}

static double distance(int n, const double *x, const double *y) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (x[i] - y[i]) * (x[i] - y[i]);
    return sqrt(sum);
}

// ---- accuracy ---------------------------------------------------------------------------------------------------

// Every scheme is second order on a damped free tree in gravity; the midpoint rule beats Newmark.
static void test_order(void **unused) {
    (void)unused;
    const double gravity[3] = {0, -9.81, 0}, duration = 0.4;
    tree_case    c;
    double       reference[64], end[64], error[4][3];
    const char  *names[4] = {"midpoint, 2 passes", "midpoint, 1 pass", "midpoint, 3 passes", "Newmark, 2 passes"};
    case_create(&c, 7, 4, parents4, modes4, 3, 8);
    for (int variant = -1; variant < 4; variant++) {
        double order = 0;
        for (int k = 0; k < (variant < 0 ? 1 : 3); k++) {
            solver_tree_options o = solver_tree_default_options();
            int                 steps = variant < 0 ? 6400 : 100 << k;
            o.time_step = duration / steps;
            o.passes = variant < 0 ? 3 : variant == 1 ? 1 : variant == 2 ? 3 : 2;
            if (variant == 3) o.integrator = SOLVER_TREE_NEWMARK;
            solver_tree *tree = case_tree(&c, SOLVER_ROOT_FREE, &o, 0.02);
            solver_tree_set_gravity(tree, gravity);
            start_flight(&c, tree, 0.1, 0.5);
            run(tree, steps);
            configuration(&c, tree, variant < 0 ? reference : end);
            if (variant >= 0) error[variant][k] = distance(12 + c.dofs, end, reference);
            solver_tree_destroy(tree);
        }
        if (variant < 0) continue;
        order = log2(error[variant][1] / error[variant][2]);
        printf("   %-20s errors %.1e %.1e %.1e, order %.2f\n", names[variant], error[variant][0], error[variant][1],
               error[variant][2], order);
        assert_true(fabs(order - 2) < 0.25);
    }
    assert_true(error[0][2] < error[3][2]);
    case_destroy(&c);
}

// Where a step stops making passes it is as good as settled: within a hundredth of its way of what eight passes give.
static void test_settled(void **unused) {
    (void)unused;
    static const double times[3] = {0.01, 0.03, 0.06};
    for (int k = 0; k < 3; k++) {
        tree_case           c;
        solver_tree_options o = solver_tree_default_options(), exact = o;
        double              before[64], after[64], wanted[64], numbers[256], worst = 0;
        o.time_step = exact.time_step = times[k], exact.passes = 8, o.halvings = exact.halvings = 0;
        case_create(&c, 7, 4, parents4, modes4, 3, 8);
        solver_tree *tree = case_tree(&c, SOLVER_ROOT_FREE, &o, 0.02),
                    *other = case_tree(&c, SOLVER_ROOT_FREE, &exact, 0.02);
        assert_true(solver_tree_state_size(tree) <= 256);
        start_flight(&c, tree, 0.1, 0.5);
        run(tree, 1); // the first has no guess
        int passes = solver_tree_get_report(tree).extra_passes;
        for (int step = 0; step < 50; step++) {
            configuration(&c, tree, before);
            solver_tree_save_state(tree, numbers);
            assert_ok(solver_tree_restore_state(other, numbers));
            run(tree, 1), run(other, 1);
            configuration(&c, tree, after), configuration(&c, other, wanted);
            worst = fmax(worst, distance(c.dofs, after + 12, wanted + 12) / distance(c.dofs, before + 12, wanted + 12));
        }
        printf("   steps of %g s: off by at most %.1e of the way, %.2f passes\n", times[k], worst,
               2 + (solver_tree_get_report(tree).extra_passes - passes) / 50.0);
        assert_true(worst < 0.01);
        solver_tree_destroy(tree), solver_tree_destroy(other);
        case_destroy(&c);
    }
}

// Free flight without damping: momentum, angular momentum and energy drift with the square of the step. Where the
// energy is balanced it is kept to rounding.
static void conservation(bool carried, bool balanced) {
    tree_case c;
    double    drift[4][3];
    const int last[4] = {0, 1, 1, 2};
    case_create(&c, 3, 4, parents4, modes4, 3, 8);
    for (int i = 0; balanced && i < 4; i++) c.d[i].scale = 0.8 + 0.15 * i;
    if (carried) case_carry(&c, last);
    for (int k = 0; k < 4; k++) {
        solver_tree_options  o = solver_tree_default_options();
        solver_tree_energies e, start;
        int                  steps = 50 << k;
        o.time_step = 0.5 / steps;
        if (balanced) o.passes = 8; // until rounding is what is left
        solver_tree *tree = case_tree(&c, SOLVER_ROOT_FREE, &o, 0);
        tree->always_balanced = balanced;
        start_flight(&c, tree, 0.08, 0.4);
        solver_tree_get_energies(tree, &start);
        run(tree, steps);
        solver_tree_get_energies(tree, &e);
        drift[k][0] = distance(3, e.momentum, start.momentum) / vec3_norm(start.momentum);
        drift[k][1] = distance(3, e.spin, start.spin) / vec3_norm(start.spin);
        drift[k][2] = fabs(e.kinetic + e.strain - start.kinetic - start.strain) / (start.kinetic + start.strain);
        // the centre of mass moves with the momentum at all times, to the same order
        double expected[3];
        for (int i = 0; i < 3; i++) expected[i] = start.centre[i] + 0.5 * start.momentum[i] / start.mass;
        printf("   h = %.4f: momentum %.1e, spin %.1e, energy %.1e, centre %.1e\n", o.time_step, drift[k][0],
               drift[k][1], drift[k][2], distance(3, expected, e.centre));
        solver_tree_destroy(tree);
    }
    for (int i = 0; i < 3; i++) {
        double order = log2(drift[2][i] / drift[3][i]);
        if (balanced && i == 2) continue;
        printf("   order of drift %d: %.2f\n", i, order);
        assert_true(order > 1.7);
    }
    // in the longest steps the fast modes have not always as much to give
    for (int k = 0; balanced && k < 4; k++) assert_true(drift[k][2] < (k == 0 ? 1e-4 : 1e-12));
    assert_true(drift[3][0] < 1e-4 && drift[3][1] < 1e-4 && drift[3][2] < 1e-3);
    case_destroy(&c);
}

static void test_conservation(void **unused) {
    (void)unused;
    for (int balanced = 0; balanced < 2; balanced++) {
        conservation(false, balanced);
        conservation(true, balanced); // some coordinates are carried by the interfaces
    }
}

// Energies and momenta of the library against sums over the mass points.
static void test_energies(void **unused) {
    (void)unused;
    tree_case            c;
    solver_tree_options  o = solver_tree_default_options();
    solver_tree_energies e;
    number               xi[6 + 32], x[3 * CASE_POINTS * 4];
    double               kinetic = 0, P[3] = {0}, H[3] = {0}, strain = 0;
    const double         gravity[3] = {1, 2, -9}, unit[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    double               potential = 0;
    case_create(&c, 5, 4, parents4, modes4, 3, 8);
    for (int i = 0; i < 4; i++) c.d[i].scale = 0.7 + 0.2 * i;
    solver_tree *tree = case_tree(&c, SOLVER_ROOT_FREE, &o, 0);
    start_flight(&c, tree, 0.2, 1);
    solver_tree_set_gravity(tree, gravity);
    solver_tree_get_energies(tree, &e);
    for (int k = 0; k < 3; k++)
        xi[k] = 1e-20 * i_unit * tree->roots[0].state.v[k], xi[3 + k] = 1e-20 * i_unit * tree->roots[0].state.w[k];
    for (int i = 0; i < 4; i++) {
        double one, s = c.d[i].scale;
        case_evaluate(&c.d[i].forces, solver_tree_q(tree, i), &one, NULL, NULL, NULL);
        strain += s * s * s * one;
        for (int l = 0; l < c.d[i].r; l++)
            xi[6 + c.offset[i] + l] = solver_tree_q(tree, i)[l] + 1e-20 * i_unit * solver_tree_dq(tree, i)[l];
    }
    c_points(&c, tree->roots[0].state.p, unit, xi, x);
    for (int n = 0; n < 4 * CASE_POINTS; n++) {
        double m = case_point_mass(&c, n), v[3], y[3], t[3];
        for (int k = 0; k < 3; k++) v[k] = cimag(x[3 * n + k]) / 1e-20, y[k] = creal(x[3 * n + k]);
        vec3_cross(t, y, v);
        kinetic += 0.5 * m * vec3_dot(v, v);
        potential -= m * vec3_dot(gravity, y);
        vec3_axpy(P, m, v);
        vec3_axpy(H, m, t);
    }
    double error = fmax(fmax(fabs(kinetic - e.kinetic), fabs(strain - e.strain)), fabs(potential - e.potential));
    error = fmax(error, fmax(distance(3, P, e.momentum), distance(3, H, e.spin)));
    printf("   energies and momenta against the points: %.1e (kinetic %.2f)\n", error, e.kinetic);
    assert_true(error < 1e-12 && e.kinetic > 0.1);
    solver_tree_destroy(tree);
    case_destroy(&c);
}

// ---- stability --------------------------------------------------------------------------------------------------

// Modes spread over `spread` in stiffness, all given the same speed: the stiffest turn thousands of radians in a step.
static double stiff_run(double spread, int steps, double theta, int passes, double *h_omega, double *worst) {
    tree_case           c;
    solver_tree_options o = solver_tree_default_options();
    case_create(&c, 7, 4, parents4, modes4, 0.3, 1);
    double most = 0;
    for (int i = 0; i < c.count; i++) {
        case_domain *d = &c.d[i];
        int          r = d->r;
        for (int k = 0; k < r; k++)
            for (int l = 0; l < r; l++) d->forces.K[k * r + l] *= pow(spread, 0.5 * (k + l) / (r - 1));
        double K[36], M[36], w2[6];
        memcpy(K, d->forces.K, sizeof K), memcpy(M, d->Mqq, sizeof M);
        assert_ok(dense_generalized_eigen(r, K, M, w2));
        most = fmax(most, sqrt(w2[r - 1]));
    }
    o.time_step = 0.01, o.theta = theta, o.passes = passes;
    *h_omega = o.time_step * most;
    solver_tree *tree = case_tree(&c, SOLVER_ROOT_FREE, &o, 0);
    start_flight(&c, tree, 0, 1);
    solver_tree_energies e, start;
    solver_tree_get_energies(tree, &start);
    *worst = 0;
    for (int k = 0; k < steps; k++) {
        assert_ok(solver_tree_step(tree));
        if (k % 50) continue;
        solver_tree_get_energies(tree, &e);
        *worst = fmax(*worst, (e.kinetic + e.strain) / (start.kinetic + start.strain));
    }
    solver_tree_get_energies(tree, &e);
    solver_tree_destroy(tree);
    case_destroy(&c);
    return (e.kinetic + e.strain) / (start.kinetic + start.strain);
}

// Stiff modes that are excited on purpose do not make the midpoint rule diverge, and 10,000 undamped steps keep the
// energy bounded.
static void test_stiff(void **unused) {
    (void)unused;
    static const double spreads[] = {1, 1e2, 1e4, 1e6, 1e8, 1e10};
    for (size_t k = 0; k < sizeof spreads / sizeof *spreads; k++) {
        double h_omega, worst, last = stiff_run(spreads[k], 1000, 0.5, 2, &h_omega, &worst);
        printf("   h w_max = %8.1f: energy after 1,000 steps %.3f, largest %.3f\n", h_omega, last, worst);
        assert_true(worst < 1.02 && last > 0.97);
    }
    double h_omega, worst, last = stiff_run(1e4, 10000, 0.5, 2, &h_omega, &worst);
    printf("   h w_max = %8.1f: energy after 10,000 steps %.3f, largest %.3f\n", h_omega, last, worst);
    assert_true(worst < 1.02 && last > 0.97);
    last = stiff_run(1e4, 1000, 0.55, 2, &h_omega, &worst);
    printf("   h w_max = %8.1f, theta 0.55: energy after 1,000 steps %.3f, largest %.3f\n", h_omega, last, worst);
    assert_true(worst < 1.1 && last < 1);
}

// ---- equivalences -----------------------------------------------------------------------------------------------

// A scaled instance moves like an instance of a class that was scaled before its integrals were made.
static void test_scale(void **unused) {
    (void)unused;
    const double        gravity[3] = {0, -9.81, 0}, scales[4] = {1.3, 0.6, 1.7, 0.9};
    solver_tree_options o = solver_tree_default_options();
    double              end[2][64];
    for (int before = 0; before < 2; before++) {
        tree_case c;
        case_create(&c, 7, 4, parents4, modes4, 3, 8);
        for (int i = 0; i < 4; i++) {
            case_domain *d = &c.d[i];
            double       s = scales[i], above = d->parent < 0 ? 1 : scales[d->parent];
            if (!before) {
                d->scale = s;
                continue;
            }
            for (int n = 0; n < CASE_POINTS; n++) {
                d->mass[n] *= s * s * s;
                for (int k = 0; k < 3; k++) {
                    d->X[n][k] *= s;
                    for (int l = 0; l < d->r; l++) d->U[n][k][l] *= s;
                }
            }
            for (int k = 0; k < d->r * d->r; k++) d->forces.K[k] *= s * s * s;
            d->forces.cubic *= s * s * s;
            case_integrals(d);
            if (d->parent < 0) continue;
            for (int n = 0; n < CASE_ENDS; n++)
                for (int k = 0; k < 3; k++) {
                    d->end[n][k] *= above;
                    for (int l = 0; l < c.d[d->parent].r; l++) d->end_rows[n][k][l] *= above;
                }
        }
        if (before) { // the interfaces again
            case_destroy(&c);
            for (int i = 0; i < 4; i++) c.d[i].interface_count = 0;
            for (int i = 1; i < 4; i++) case_interface(&c, i);
        }
        o.time_step = 0.005;
        solver_tree *tree = case_tree(&c, SOLVER_ROOT_FREE, &o, 0.01);
        solver_tree_set_gravity(tree, gravity);
        start_flight(&c, tree, 0.1, 0.5);
        run(tree, 60);
        configuration(&c, tree, end[before]);
        solver_tree_destroy(tree);
        case_destroy(&c);
    }
    double error = distance(24, end[0], end[1]);
    printf("   scaled instances against scaled classes after 60 steps: %.1e\n", error);
    assert_true(error < 1e-11);
}

// A stiffness factor set at run time is that of the forces; a frequency factor is its root.
static void test_factors(void **unused) {
    (void)unused;
    solver_tree_options o = solver_tree_default_options();
    double              end[3][64];
    for (int variant = 0; variant < 3; variant++) {
        tree_case c;
        case_create(&c, 7, 4, parents4, modes4, 3, 8);
        if (variant == 0)
            for (int k = 0; k < 16; k++) c.d[1].forces.K[k] *= 2.25;
        if (variant == 0) c.d[1].forces.cubic *= 2.25;
        solver_tree *tree = case_tree(&c, SOLVER_ROOT_FREE, &o, 0.01);
        if (variant == 1) assert_ok(solver_tree_set_stiffness(tree, 1, 2.25));
        if (variant == 2) assert_ok(solver_tree_set_frequency(tree, 1, 1.5));
        start_flight(&c, tree, 0.1, 0.5);
        run(tree, 20);
        configuration(&c, tree, end[variant]);
        solver_tree_destroy(tree);
        case_destroy(&c);
    }
    assert_true(distance(24, end[0], end[1]) < 1e-12 && distance(24, end[0], end[2]) < 1e-12);
}

// A tree of rigid domains turns like one rigid body: Euler's equations for the composite inertia, integrated finely.
static void test_rigid(void **unused) {
    (void)unused;
    const int           none[4] = {0};
    tree_case           c;
    solver_tree_options o = solver_tree_default_options();
    number              xi[6] = {0}, x[3 * CASE_POINTS * 4];
    const double        zero[3] = {0}, unit[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    double              mass = 0, centre[3] = {0}, J[9] = {0}, error[2];
    case_create(&c, 7, 4, parents4, none, 1, 0);
    c_points(&c, zero, unit, xi, x);
    for (int n = 0; n < 4 * CASE_POINTS; n++) {
        double m = case_point_mass(&c, n);
        mass += m;
        for (int k = 0; k < 3; k++) centre[k] += m * creal(x[3 * n + k]);
    }
    for (int k = 0; k < 3; k++) centre[k] /= mass;
    for (int n = 0; n < 4 * CASE_POINTS; n++) {
        double m = case_point_mass(&c, n), y[3];
        for (int k = 0; k < 3; k++) y[k] = creal(x[3 * n + k]) - centre[k];
        for (int k = 0; k < 9; k++) J[k] += m * ((k % 4 == 0 ? vec3_dot(y, y) : 0) - y[k / 3] * y[k % 3]);
    }
    for (int k = 0; k < 2; k++) {
        int steps = 200 << k, fine = 20000;
        o.time_step = 1.0 / steps;
        solver_tree *tree = case_tree(&c, SOLVER_ROOT_FREE, &o, 0);
        start_flight(&c, tree, 0, 0);
        double w[3], Q[9], Ji[9], h = 1.0 / fine;
        memcpy(w, tree->roots[0].state.w, sizeof w);
        memcpy(Q, unit, sizeof Q);
        mat3_inverse(Ji, J);
        for (int n = 0; n < fine; n++) { // midpoint rule, explicit, by two stages
            double Jw[3], t[3], al[3], mid[3], turn[9], next[9];
            mat3_mul_vec(Jw, J, w);
            vec3_cross(t, Jw, w);
            mat3_mul_vec(al, Ji, t);
            for (int i = 0; i < 3; i++) mid[i] = w[i] + 0.5 * h * al[i];
            mat3_mul_vec(Jw, J, mid);
            vec3_cross(t, Jw, mid);
            mat3_mul_vec(al, Ji, t);
            for (int i = 0; i < 3; i++) w[i] += h * al[i], mid[i] *= h;
            case_rotation(mid, turn);
            mat3_mul(next, Q, turn);
            memcpy(Q, next, sizeof Q);
        }
        run(tree, steps);
        error[k] = distance(9, tree->roots[0].state.Q, Q);
        solver_tree_destroy(tree);
    }
    printf("   rigid tree against Euler's equations: %.1e %.1e, order %.2f\n", error[0], error[1],
           log2(error[0] / error[1]));
    assert_true(fabs(log2(error[0] / error[1]) - 2) < 0.2 && error[1] < 1e-4);
    case_destroy(&c);
}

// Bit by bit the same with one, two and three threads.
static void test_threads(void **unused) {
    (void)unused;
    double end[3][64];
    for (int k = 0; k < 3; k++) {
        tree_case           c;
        solver_tree_options o = solver_tree_default_options();
        fem_set_threads(k + 1);
        const int parents[8] = {-1, 0, 0, 0, 0, 1, 2, 3}, modes[8] = {3, 4, 2, 3, 4, 2, 3, 1};
        case_create(&c, 7, 8, parents, modes, 3, 8);
        solver_tree *tree = case_tree(&c, SOLVER_ROOT_FREE, &o, 0.01);
        start_flight(&c, tree, 0.1, 0.5);
        run(tree, 20);
        configuration(&c, tree, end[k]);
        solver_tree_destroy(tree);
        case_destroy(&c);
    }
    fem_set_threads(0);
    assert_memory_equal(end[0], end[1], 34 * sizeof(double));
    assert_memory_equal(end[0], end[2], 34 * sizeof(double));
}

// A driven root that repeats the motion of a free one makes the same motion of the domains.
typedef struct recorded {
    int                 count;
    double              h;
    solver_frame_motion at[64]; // of the middle (odd) and the end (even) of steps
} recorded;
static void replay(void *context, double time, solver_frame_motion *motion) {
    recorded *r = context;
    *motion = r->at[(int)lround(2 * time / r->h)];
}
static void test_driven(void **unused) {
    (void)unused;
    tree_case           c;
    solver_tree_options o = solver_tree_default_options();
    recorded            r = {.h = o.time_step};
    double              end[2][64];
    case_create(&c, 7, 4, parents4, modes4, 3, 8);
    solver_tree *free = case_tree(&c, SOLVER_ROOT_FREE, &o, 0.01);
    start_flight(&c, free, 0.1, 0.5);
    r.at[0] = free->roots[0].state;
    o.passes = 8; // the accelerations of the last pass are then those of the trial point
    free->options.passes = 8;
    for (int k = 0; k < 20; k++) {
        run(free, 1);
        r.at[2 * k + 1] = free->roots[0].trial;
        r.at[2 * k + 2] = free->roots[0].state;
    }
    configuration(&c, free, end[0]);
    solver_tree *driven = case_tree(&c, SOLVER_ROOT_DRIVEN, &o, 0.01);
    assert_ok(solver_tree_set_drive(driven, 0, replay, &r));
    for (int i = 0; i < 4; i++) {
        uint64_t seed = 99;
        double   q[32], dq[32];
        test_random_fill(&seed, c.dofs, 0.1, q);
        test_random_fill(&seed, c.dofs, 0.5, dq);
        assert_ok(solver_tree_set_state(driven, i, q + c.offset[i], dq + c.offset[i]));
    }
    run(driven, 20);
    configuration(&c, driven, end[1]);
    printf("   driven as a free root moved: %.1e\n", distance(24, end[0], end[1]));
    assert_true(distance(24, end[0], end[1]) < 1e-7);
    solver_tree_destroy(free);
    solver_tree_destroy(driven);
    case_destroy(&c);
}

// ---- failure ----------------------------------------------------------------------------------------------------

// A force that grows without bound: the step fails with domain, time and reason, and the state is what it was.
static void test_divergence(void **unused) {
    (void)unused;
    tree_case           c;
    solver_tree_options o = solver_tree_default_options();
    double              before[64], after[64], time = 0;
    fem_status          status = FEM_OK;
    case_create(&c, 7, 4, parents4, modes4, 3, 8);
    c.d[3].forces.cubic = -1e6; // pushes away
    solver_tree *tree = case_tree(&c, SOLVER_ROOT_FREE, &o, 0);
    start_flight(&c, tree, 0.1, 0.5);
    for (int k = 0; k < 2000 && status == FEM_OK; k++) {
        configuration(&c, tree, before);
        time = solver_tree_time(tree);
        status = solver_tree_step(tree);
    }
    assert_int_equal(status, FEM_UNSTABLE);
    printf("   %s\n", fem_message());
    assert_non_null(strstr(fem_message(), "times its size"));
    assert_non_null(strstr(fem_message(), "t = "));
    assert_true(solver_tree_get_report(tree).shifts > 0);
    assert_true(solver_tree_time(tree) == time);
    configuration(&c, tree, after);
    assert_memory_equal(before, after, 24 * sizeof(double));
    // a force that is not a number names its domain
    c.d[3].forces.cubic = NAN;
    assert_fails(solver_tree_step(tree), FEM_UNSTABLE, "domain 3");
    configuration(&c, tree, after);
    assert_memory_equal(before, after, 24 * sizeof(double));
    // made tame again, it goes on
    c.d[3].forces.cubic = 8;
    start_flight(&c, tree, 0.1, 0.5);
    run(tree, 3);
    solver_tree_destroy(tree);
    case_destroy(&c);
}

static void test_bad_input(void **unused) {
    (void)unused;
    tree_case           c;
    solver_tree_options o = solver_tree_default_options();
    solver_tree        *tree = NULL;
    case_create(&c, 7, 4, parents4, modes4, 3, 8);
    solver_tree_class    classes[1] = {{.name = "stem",
                                        .inertia = &c.d[0].inertia,
                                        .forces = {.r = 3, .evaluate = case_evaluate, .model = &c.d[0].forces},
                                        .interface_count = 2,
                                        .interfaces = c.d[0].interfaces}};
    solver_tree_instance good = {.scale = 1, .stiffness = 1, .parent = -1}, list[4] = {good, good, good, good};
    list[1].parent = 2, list[2].parent = 3, list[3].parent = 1;
    assert_fails(solver_tree_create(&tree, 1, classes, 4, list, &o), FEM_BAD_INPUT,
                 "loop: domain 1 -> domain 2 -> domain 3 -> domain 1");
    list[1].name = "left", list[2].name = "right";
    assert_fails(solver_tree_create(&tree, 1, classes, 4, list, &o), FEM_BAD_INPUT, "left -> right -> domain 3");
    list[3].parent = 0, list[3].interface = 2;
    assert_fails(solver_tree_create(&tree, 1, classes, 4, list, &o), FEM_BAD_INPUT, "interface 2 of its parent");
    list[3].interface = 1, list[3].scale = -1;
    assert_fails(solver_tree_create(&tree, 1, classes, 4, list, &o), FEM_BAD_INPUT, "scale -1");
    list[3].scale = 1, list[3].stiffness = NAN;
    assert_fails(solver_tree_create(&tree, 1, classes, 4, list, &o), FEM_BAD_INPUT, "stiffness factor nan");
    list[3].stiffness = 1, list[3].class_index = 1;
    assert_fails(solver_tree_create(&tree, 1, classes, 4, list, &o), FEM_BAD_INPUT, "class 1");
    list[3].class_index = 0, list[3].parent = 7;
    assert_fails(solver_tree_create(&tree, 1, classes, 4, list, &o), FEM_BAD_INPUT, "parent 7");
    list[3].parent = 0;
    classes[0].forces.r = 5;
    assert_fails(solver_tree_create(&tree, 1, classes, 4, list, &o), FEM_BAD_INPUT, "forces of 5 modes, expected 3");
    classes[0].forces.r = 3;
    o.time_step = 0;
    assert_fails(solver_tree_create(&tree, 1, classes, 4, list, &o), FEM_BAD_INPUT, "solver.time_step is 0");
    o.time_step = 0.01, o.theta = 0.4;
    assert_fails(solver_tree_create(&tree, 1, classes, 4, list, &o), FEM_BAD_INPUT, "solver.theta is 0.4");
    o.theta = 0.5;
    assert_null(tree);
    // every allocation may fail
    long allowed = 0;
    for (fem_status status = FEM_NO_MEMORY; status != FEM_OK; allowed++) {
        assert_true(allowed < 100);
        fem_memory_fail_after(allowed);
        status = solver_tree_create(&tree, 1, classes, 4, list, &o);
        fem_memory_fail_after(-1);
        if (status != FEM_OK) assert_int_equal(status, FEM_NO_MEMORY);
    }
    assert_true(allowed > 10);
    assert_int_equal(solver_tree_depth(tree), 4);
    int    point;
    double X[3] = {0}, rows[9] = {0}, force[3] = {NAN, 0, 0};
    assert_fails(solver_tree_add_point(tree, 4, X, rows, &point), FEM_BAD_INPUT, "domain 4");
    assert_fails(solver_tree_set_force(tree, 0, force), FEM_BAD_INPUT, "point 0");
    assert_ok(solver_tree_add_point(tree, 3, X, rows, &point));
    assert_fails(solver_tree_set_force(tree, 0, force), FEM_BAD_INPUT, "not finite");
    assert_fails(solver_tree_set_stiffness(tree, 0, -1), FEM_BAD_INPUT, "stiffness factor -1");
    assert_fails(solver_tree_set_drive(tree, 0, replay, NULL), FEM_BAD_INPUT, "not a driven root");
    solver_spring spring = {.a = 0, .b = 0, .stiffness = 1};
    assert_fails(solver_tree_add_spring(tree, &spring), FEM_BAD_INPUT, "points 0 and 0");
    spring.b = -1, spring.stiffness = -1;
    assert_fails(solver_tree_add_spring(tree, &spring), FEM_BAD_INPUT, "stiffness -1");
    spring.stiffness = 1;
    fem_memory_fail_after(1);
    fem_status status = solver_tree_add_spring(tree, &spring);
    fem_memory_fail_after(-1);
    assert_int_equal(status, FEM_NO_MEMORY);
    // a step allocates nothing
    assert_ok(solver_tree_add_spring(tree, &spring));
    fem_memory_fail_after(0);
    status = solver_tree_step(tree);
    fem_memory_fail_after(-1);
    assert_int_equal(status, FEM_OK);
    solver_tree_destroy(tree);
    case_destroy(&c);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),    cmocka_unit_test(test_settled),    cmocka_unit_test(test_conservation),
        cmocka_unit_test(test_energies), cmocka_unit_test(test_stiff),      cmocka_unit_test(test_scale),
        cmocka_unit_test(test_factors),  cmocka_unit_test(test_rigid),      cmocka_unit_test(test_threads),
        cmocka_unit_test(test_driven),   cmocka_unit_test(test_divergence), cmocka_unit_test(test_bad_input),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
