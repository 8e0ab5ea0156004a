// Bodies in contact: rest, bounce, stiff springs, friction, reactions, moving obstacles.
#include "tests/contact_case.h"

typedef struct fall {
    block           b;
    solver_contact *contact;
    solver_free    *solver;
} fall;

static void fall_create(fall *f, int r, double young, const solver_contact_options *co, const solver_reduced_options *o,
                        solver_obstacle ground) {
    block_create(&f->b, FEM_H8, 2, r, young);
    f->contact = make_contact(&f->b.samples, co);
    add(f->contact, ground);
    f->solver = NULL;
    assert_ok(solver_free_create(&f->solver, &f->b.inertia, &f->b.c.forces, o));
    assert_ok(solver_free_set_gravity(f->solver, gravity));
    assert_ok(solver_free_set_contact(f->solver, f->contact));
}

static void fall_destroy(fall *f) {
    solver_free_destroy(f->solver);
    solver_contact_destroy(f->contact);
    block_destroy(&f->b);
}

// Dropped with damping, a body comes to rest where the springs carry its weight. Also with springs so stiff that an
// explicit force would be unstable at this step a thousand times over.
static void test_rest(void **unused) {
    (void)unused;
    for (int variant = 0; variant < 3; variant++) {
        solver_contact_options co = {
            .stiffness = variant ? 1e10 : 1e7, .damping = 1e5, .friction = 0.3, .slip_velocity = 1e-3};
        solver_reduced_options o = solver_free_default_options();
        fall                   f;
        o.time_step = 2e-3, o.damping_stiffness = 5e-3;
        if (variant == 2) o.integrator = SOLVER_BACKWARD_EULER;
        fall_create(&f, 5, 2e6, &co, &o, floor_at(-0.01));
        for (int k = 0; k < 2000; k++) assert_ok(solver_free_step(f.solver));
        const solver_motion   *s = solver_free_state(f.solver);
        solver_motion_energies e;
        solver_free_energies(f.solver, &e);
        solver_contact_report report = solver_contact_get_report(f.contact);
        solver_contact_load   load = solver_contact_get_load(f.contact, 0);
        // the weight over the spring of all touching samples; the bottom carries area also of the sides it shares edges
        // with
        double area = 0, weight = f.b.inertia.m * 9.81, sag = 0;
        for (int i = 0; i < f.b.samples.count; i++) {
            if (f.b.samples.X[3 * i + 2] > 1e-9) continue;
            double x[3];
            solver_free_point(f.solver, f.b.samples.X + 3 * i, f.b.samples.U + 15 * i, x, NULL);
            if (x[2] >= -0.01) continue; // the bottom is not flat: it bulges by more than the depth of stiff contact
            area += f.b.samples.area[i];
            sag += f.b.samples.area[i] * (-0.01 - x[2]);
        }
        double omega_h = sqrt(co.stiffness * area / f.b.inertia.m) * o.time_step;
        printf(
            "  k %.0e Pa/m (step x contact frequency = %.1f): mean depth %.6e m, weight / stiffness %.6e m, force %.6f "
            "of the weight, speed %.0e m/s, %d contacts\n",
            co.stiffness, omega_h, sag / area, weight / (co.stiffness * area), load.force[2] / -weight, vec3_norm(s->v),
            report.contacts);
        assert_true(variant ? report.contacts >= 3 : report.contacts == 15);
        assert_int_equal(report.kinds[SOLVER_PLANE], report.contacts);
        assert_true(fabs(sag / (weight / co.stiffness) - 1) < 1e-4);
        assert_true(fabs(load.force[2] / -weight - 1) < 1e-4);
        assert_true(vec3_norm(s->v) < 1e-4 && e.kinetic < 1e-6);
        assert_true(variant == 0 || omega_h > 10);
        fall_destroy(&f);
    }
}

// Without damping and friction the body bounces with its energy, up to an error that falls with the step.
static void test_bounce(void **unused) {
    (void)unused;
    double growth[2], loss[2];
    int    bounces = 0;
    for (int k = 0; k < 2; k++) {
        solver_contact_options co = {.stiffness = 1e6, .damping = 0, .friction = 0, .slip_velocity = 1e-3};
        solver_reduced_options o = solver_free_default_options();
        fall                   f;
        o.time_step = 1e-3 / (1 << (2 * k)), o.newton_iterations = 4;
        fall_create(&f, 5, 2e6, &co, &o, floor_at(-0.1));
        const double p[3] = {0.3, 0.2, 0.2}, angle[3] = {0.2, 0.3, 0};
        double       Q[9];
        solver_rotation(angle, Q); // on an edge: it will tumble
        assert_ok(solver_free_set_state(f.solver, &(solver_motion_start){.p = p, .Q = Q}));
        solver_motion_energies e;
        solver_free_energies(f.solver, &e);
        double start = e.kinetic + e.strain + e.potential, scale = 0;
        bool   touching = false;
        growth[k] = loss[k] = 0, bounces = 0;
        double bottom = f.b.inertia.m * 9.81 * -0.1; // potential on the ground
        scale = e.potential - bottom;
        for (int step = 0; step < 1500 << (2 * k); step++) {
            assert_ok(solver_free_step(f.solver));
            solver_free_energies(f.solver, &e);
            solver_contact_report report = solver_contact_get_report(f.contact);
            bounces += report.contacts == 0 && touching;
            touching = report.contacts > 0;
            if (touching) continue; // the springs' energy is that of the middle of the step
            double change = (e.kinetic + e.strain + e.potential - start) / scale;
            growth[k] = fmax(growth[k], change), loss[k] = fmax(loss[k], -change);
        }
        printf("  h = %.1e: %d bounces, energy grows by at most %.1e and falls by %.1e of the height it fell from\n",
               o.time_step, bounces, growth[k], loss[k]);
        assert_true(bounces >= 2);
        fall_destroy(&f);
    }
    assert_true(growth[0] < 1e-3 && growth[1] < 1e-4 && loss[0] < 1e-3 && loss[1] < 1e-4);
}

// Springs of any stiffness against the same step, without any damping: energy never comes from nothing.
static double falling_energy(double k, int iterations) {
    solver_contact_options co = {.stiffness = k, .damping = 0, .friction = 0, .slip_velocity = 1e-3};
    solver_reduced_options o = solver_free_default_options();
    fall                   f;
    o.time_step = 2e-3, o.newton_iterations = iterations;
    fall_create(&f, 5, 2e6, &co, &o, floor_at(-0.1));
    const double p[3] = {0.3, 0.2, 0.2}, angle[3] = {0.2, 0.3, 0}; // on an edge
    double       Q[9], highest = 0, ground = f.b.inertia.m * 9.81 * 0.1;
    solver_rotation(angle, Q);
    assert_ok(solver_free_set_state(f.solver, &(solver_motion_start){.p = p, .Q = Q}));
    solver_motion_energies e;
    solver_free_energies(f.solver, &e);
    double start = e.potential + ground;
    for (int step = 0; step < 600; step++) {
        assert_ok(solver_free_step(f.solver));
        solver_free_energies(f.solver, &e);
        double energy = e.kinetic + e.strain + e.potential + ground;
        if (solver_contact_get_report(f.contact).contacts == 0) highest = fmax(highest, energy / start);
    }
    assert_true(solver_contact_get_report(f.contact).total_contacts > 10);
    fall_destroy(&f);
    return highest;
}

// A held bar that swings against a block.
static double swinging_energy(const reduced_bar *c, const solver_samples *samples, double k, int iterations) {
    solver_contact_options co = {.stiffness = k, .damping = 0, .friction = 0, .slip_velocity = 1e-3};
    solver_reduced_options o = solver_reduced_default_options();
    o.time_step = 2e-3, o.newton_iterations = iterations;
    solver_contact *contact = make_contact(samples, &co);
    const double    centre[3] = {0.9, 0.1, -0.3}, half[3] = {0.2, 0.3, 0.29};
    add(contact, solver_box(centre, half));
    solver_reduced *solver = NULL;
    assert_ok(solver_reduced_create(&solver, &c->forces, NULL, &o));
    assert_ok(solver_reduced_set_contact(solver, contact));
    double dq[8] = {c->basis.U[c->b.n - 1] > 0 ? -3.0 : 3.0}, highest = 0; // down
    assert_ok(solver_reduced_set_state(solver, 0, NULL, dq));
    for (int step = 0; step < 300; step++) {
        assert_ok(solver_reduced_step(solver));
        solver_energies e;
        solver_reduced_energies(solver, &e);
        if (solver_contact_get_report(contact).contacts == 0) highest = fmax(highest, (e.kinetic + e.strain) / 4.5);
    }
    assert_true(solver_contact_get_report(contact).total_contacts > 10);
    solver_reduced_destroy(solver);
    solver_contact_destroy(contact);
    return highest;
}

static void test_stiff_contact(void **unused) {
    (void)unused;
    const double bar_size[3] = {1, 0.2, 0.1};
    const int    cells[3] = {8, 2, 1};
    fem_material m = soft_material(FEM_STVK, 1e6, 0.3);
    reduced_bar  c;
    reduced_bar_create(&c, FEM_H8, bar_size, cells, &m, true, 5);
    solver_samples samples;
    assert_ok(solver_samples_create(&samples, &c.b.mesh, 5, c.basis.U));
    for (int variant = 0; variant < 4; variant++) {
        bool   held = variant > 1;
        int    iterations = variant == 1 ? 2 : variant == 3 ? 60 : 1;
        double worst = 0;
        printf("  %s, %2d iterations, energy at most, for k from 1e6 to 1e11 Pa/m:", held ? "held" : "free",
               iterations);
        for (double k = 1e6; k < 2e11; k *= 10) {
            double energy = held ? swinging_energy(&c, &samples, k, iterations) : falling_energy(k, iterations);
            worst = fmax(worst, energy);
            printf(" %.4f", energy);
        }
        printf("\n");
        assert_true(worst < 1.02);
    }
    // Newmark's rule for free bodies has no way to treat stiff contact, and says so
    solver_contact_options co = {.stiffness = 1e10, .damping = 0, .friction = 0, .slip_velocity = 1e-3};
    solver_reduced_options o = solver_free_default_options();
    block                  b;
    solver_free           *solver = NULL;
    o.integrator = SOLVER_NEWMARK, o.time_step = 2e-3;
    block_create(&b, FEM_H8, 1, 2, 1e6);
    solver_contact *contact = make_contact(&b.samples, &co);
    assert_ok(solver_free_create(&solver, &b.inertia, &b.c.forces, &o));
    assert_fails(solver_free_set_contact(solver, contact), FEM_BAD_INPUT, "Newmark's rule would gain energy");
    solver_free_destroy(solver);
    solver_contact_destroy(contact);
    block_destroy(&b);
    solver_samples_destroy(&samples);
    reduced_bar_destroy(&c);
}

// A block on a slope of 20 degrees: below the friction angle it creeps slower than v_s, above it slides with
// g (sin - mu cos).
static void test_slope(void **unused) {
    (void)unused;
    double       angle = 20 * acos(-1.0) / 180;
    const double point[3] = {0}, normal[3] = {sin(angle), 0, cos(angle)}, turn[3] = {0, angle, 0};
    for (int variant = 0; variant < 3; variant++) {
        double                 mu = variant == 0 ? 0.5 : variant == 1 ? 0.2 : 0;
        solver_contact_options co = {.stiffness = 1e7, .damping = 1e5, .friction = mu, .slip_velocity = 1e-3};
        solver_reduced_options o = solver_free_default_options();
        fall                   f;
        o.time_step = 1e-3, o.damping_stiffness = 5e-3, o.newton_iterations = 3;
        fall_create(&f, 4, 2e6, &co, &o, solver_plane(point, normal));
        double Q[9], p[3];
        solver_rotation(turn, Q);
        for (int k = 0; k < 3; k++) p[k] = (size[2] / 2 - 1e-4) * normal[k];
        assert_ok(solver_free_set_state(f.solver, &(solver_motion_start){.p = p, .Q = Q}));
        for (int k = 0; k < 500; k++) assert_ok(solver_free_step(f.solver));
        solver_motion_energies e[2];
        solver_free_energies(f.solver, &e[0]);
        for (int k = 0; k < 500; k++) assert_ok(solver_free_step(f.solver));
        solver_free_energies(f.solver, &e[1]);
        const double down[3] = {cos(angle), 0, -sin(angle)};
        double       speed[2], m = f.b.inertia.m, expected = 9.81 * (sin(angle) - mu * cos(angle));
        for (int k = 0; k < 2; k++) speed[k] = vec3_dot(e[k].momentum, down) / m;
        double acceleration = (speed[1] - speed[0]) / 0.5;
        printf("  mu = %.1f, tan(slope) = %.3f: speed %.2e then %.2e m/s, acceleration %.5f (sliding: %.5f) m/s2\n", mu,
               tan(angle), speed[0], speed[1], acceleration, expected);
        if (mu > tan(angle))
            assert_true(speed[1] > 0 && speed[1] < 1e-3 && fabs(acceleration) < 1e-3);
        else
            assert_true(speed[1] > 0.5 && fabs(acceleration / expected - 1) < 0.01);
        fall_destroy(&f);
    }
}

// What the body gains the obstacles lose: momentum, and angular momentum about a fixed point.
static void test_reaction(void **unused) {
    (void)unused;
    solver_contact_options co = {.stiffness = 1e6, .damping = 1e3, .friction = 0.5, .slip_velocity = 0.05};
    for (int variant = 0; variant < 2; variant++) {
        solver_reduced_options o = solver_free_default_options();
        fall                   f;
        o.time_step = 1e-3, o.newton_iterations = 60, o.newton_tolerance = 1e-13;
        if (variant) o.integrator = SOLVER_BACKWARD_EULER;
        fall_create(&f, 4, 2e6, &co, &o, floor_at(-0.01));
        const double ball[3] = {0.6, 0.2, 0.15}, v[3] = {0.5, 0, -1}, w[3] = {0.5, 1, 2};
        add(f.contact, solver_sphere(ball, 0.1)); // in its way
        assert_ok(solver_free_set_state(f.solver, &(solver_motion_start){.v = v, .w = w}));
        double worst[2] = {0}, largest[2] = {0};
        int    steps = 0;
        for (int k = 0; k < 60; k++) {
            solver_motion_energies before, after;
            solver_free_energies(f.solver, &before);
            assert_ok(solver_free_step(f.solver));
            solver_free_energies(f.solver, &after);
            double force[3] = {0}, moment[3] = {0}, change[2][3], L[2][3], m = f.b.inertia.m;
            for (int i = 0; i < 2; i++) {
                solver_contact_load load = solver_contact_get_load(f.contact, i);
                double              arm[3];
                const double        floor_point[3] = {0, 0, -0.01};
                vec3_cross(arm, i ? ball : floor_point, load.force);
                vec3_axpy(force, -1, load.force);
                vec3_axpy(moment, -1, load.torque), vec3_axpy(moment, -1, arm);
                steps += load.contacts > 0;
            }
            vec3_axpy(force, m, gravity);
            double middle[3], weight[3], arm[3]; // gravity acts where the centre of mass was at the stage
            for (int i = 0; i < 3; i++)
                middle[i] = variant ? after.centre[i]
                                    : before.centre[i] + o.time_step / 4 * (before.momentum[i] + after.momentum[i]) / m,
                weight[i] = m * gravity[i];
            vec3_cross(arm, middle, weight);
            vec3_axpy(moment, 1, arm);
            for (int side = 0; side < 2; side++) {
                const solver_motion_energies *e = side ? &after : &before;
                vec3_cross(L[side], e->centre, e->momentum);
                vec3_axpy(L[side], 1, e->spin);
            }
            for (int i = 0; i < 3; i++) {
                change[0][i] = (after.momentum[i] - before.momentum[i]) / o.time_step;
                change[1][i] = (L[1][i] - L[0][i]) / o.time_step;
            }
            worst[0] = fmax(worst[0], vec3_distance(change[0], force)), largest[0] = fmax(largest[0], vec3_norm(force));
            worst[1] = fmax(worst[1], vec3_distance(change[1], moment)),
            largest[1] = fmax(largest[1], vec3_norm(moment));
        }
        printf("  %s: momentum and reactions agree to %.1e of %.0f N, moments to %.1e of %.0f N m, over %d touching "
               "pairs\n",
               variant ? "backward Euler" : "midpoint", worst[0] / largest[0], largest[0], worst[1] / largest[1],
               largest[1], steps);
        assert_true(steps > 20 && largest[0] > 500);
        assert_true(worst[0] < 1e-6 * largest[0] && worst[1] < 1e-6 * largest[1]);
        fall_destroy(&f);
    }
}

// A belt carries a body along until both have one speed.
static void test_belt(void **unused) {
    (void)unused;
    solver_contact_options co = {.stiffness = 1e7, .damping = 1e5, .friction = 0.4, .slip_velocity = 1e-3};
    solver_reduced_options o = solver_free_default_options();
    fall                   f;
    solver_obstacle        belt = floor_at(1e-5);
    belt.velocity[0] = 0.5, belt.velocity[1] = 0.2;
    o.time_step = 1e-3, o.damping_stiffness = 5e-3;
    fall_create(&f, 3, 2e6, &co, &o, belt);
    for (int k = 0; k < 100; k++) assert_ok(solver_free_step(f.solver));
    solver_motion_energies e;
    solver_free_energies(f.solver, &e);
    double early = hypot(e.momentum[0], e.momentum[1]) / f.b.inertia.m;
    for (int k = 0; k < 900; k++) assert_ok(solver_free_step(f.solver));
    solver_free_energies(f.solver, &e);
    double m = f.b.inertia.m;
    printf("  belt at (0.5, 0.2) m/s: %.4f m/s after 0.1 s (mu g t = %.4f), then (%.6f, %.6f)\n", early, 0.4 * 0.981,
           e.momentum[0] / m, e.momentum[1] / m);
    assert_true(fabs(early / (0.4 * 0.981) - 1) < 0.05);
    assert_true(fabs(e.momentum[0] / m - 0.5) < 1e-3 && fabs(e.momentum[1] / m - 0.2) < 1e-3);
    fall_destroy(&f);
}

// A held bar pressed by a ball that comes down, stays and goes: at rest the ball feels what bends the bar.
static void test_held_bar(void **unused) {
    (void)unused;
    const double bar_size[3] = {1, 0.2, 0.1};
    const int    cells[3] = {8, 2, 1};
    fem_material m = soft_material(FEM_STVK, 1e6, 0.3);
    reduced_bar  c;
    enum { R = 6 };
    reduced_bar_create(&c, FEM_H8, bar_size, cells, &m, true, R);
    solver_samples samples;
    assert_ok(solver_samples_create(&samples, &c.b.mesh, R, c.basis.U));
    for (int variant = 0; variant < 3; variant++) {
        solver_contact_options co = {.stiffness = 1e7, .damping = 1e3, .friction = 0, .slip_velocity = 1e-3};
        solver_contact        *contact = make_contact(&samples, &co);
        double                 top = 0.1, radius = 0.15, h = 1e-3;
        const double           start[3] = {0.95, 0.1, top + radius + 0.02};
        solver_obstacle        ball = solver_sphere(start, radius);
        add(contact, ball);
        solver_reduced_options o = solver_reduced_default_options();
        o.time_step = h, o.damping_mass = 2, o.damping_stiffness = 5e-3;
        if (variant == 1) o.newton_iterations = 40;
        if (variant == 2) o.integrator = SOLVER_CENTRAL_DIFFERENCES, o.time_step = h /= 4;
        solver_reduced *solver = NULL;
        assert_ok(solver_reduced_create(&solver, &c.forces, NULL, &o));
        assert_ok(solver_reduced_set_contact(solver, contact));
        int    down = (int)(0.4 / h), rest = (int)(2 / h);
        double force = 0, tip = 0;
        for (int k = 0; k < down + rest + down; k++) { // 0.08 m down, wait, up again
            double speed = k < down ? -0.2 : k < down + rest ? 0 : 0.3;
            ball.velocity[2] = speed;
            assert_ok(solver_contact_move(contact, 0, &ball));
            assert_ok(solver_reduced_step(solver));
            ball.position[2] += h * speed;
            if (k != down + rest - 1) continue;
            force = -solver_contact_get_load(contact, 0).force[2];
            double f[R], expected[R] = {0};
            c.plain.forces.evaluate(c.plain.forces.model, solver_reduced_state(solver)->q, NULL, f, NULL, NULL);
            solver_contact_view view = {.q = solver_reduced_state(solver)->q, .dq = solver_reduced_state(solver)->dq};
            solver_contact_evaluate(contact, &view, 0, 0, expected, NULL);
            printf(
                "  %s: ball feels %.3f N up, %d contacts, depth %.2e m; internal and contact forces balance to %.0e\n",
                variant == 0   ? "semi-implicit"
                : variant == 1 ? "Newton"
                               : "central differences",
                -force, solver_contact_get_report(contact).contacts, solver_contact_get_report(contact).depth,
                test_relative_error(R, expected, f));
            assert_true(test_relative_error(R, expected, f) < 0.02);
            for (int v = 0; v < c.b.n / 3; v++)
                for (int l = 0; l < R; l++)
                    tip = fmin(tip, c.basis.U[l * c.b.n + 3 * v + 2] * solver_reduced_state(solver)->q[l]);
        }
        assert_true(force > 1 || -force > 1);
        assert_true(tip < -0.02);
        assert_int_equal(solver_contact_get_report(contact).contacts, 0); // the ball has gone
        assert_true(solver_reduced_report(solver).seconds_contact > 0);
        solver_reduced_destroy(solver);
        solver_contact_destroy(contact);
    }
    solver_samples_destroy(&samples);
    reduced_bar_destroy(&c);
}

int main(int argc, char **argv) {
    (void)argc;
    fem_set_threads(1); // bodies this small are done before a second thread wakes up
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rest),     cmocka_unit_test(test_bounce),   cmocka_unit_test(test_stiff_contact),
        cmocka_unit_test(test_slope),    cmocka_unit_test(test_reaction), cmocka_unit_test(test_belt),
        cmocka_unit_test(test_held_bar),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
