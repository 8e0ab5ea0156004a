// The tree of domains against brute force: accelerations of small random trees from the Jacobian of every mass point.
#include "tests/tree_case.h"

enum { MOST = 6 + CASE_DOMAINS * CASE_MODES, ALL = 3 * CASE_POINTS * CASE_DOMAINS };

// A state of motion, and forces in world axes on every mass point.
typedef struct motion {
    double p[3], Q[9], v[3], w[3], q[MOST], dq[MOST], force[ALL], gravity[3];
} motion;

static void random_motion(tree_case *c, motion *m, double amplitude) {
    double t[3];
    *m = (motion){.gravity = {0, -9.81, 1}};
    test_random_fill(&c->seed, 3, 1, t);
    case_rotation(t, m->Q);
    test_random_fill(&c->seed, 3, 1, m->p);
    test_random_fill(&c->seed, 3, 1, m->v);
    test_random_fill(&c->seed, 3, 1.5, m->w);
    test_random_fill(&c->seed, c->dofs, amplitude, m->q);
    test_random_fill(&c->seed, c->dofs, 1.5, m->dq);
    for (int i = 0; i < 3 * CASE_POINTS * c->count; i += 3 * 9) test_random_fill(&c->seed, 3, 3, m->force + i);
}

// Velocities of all points along xi = (v, w, dq) (t + i 1e-20)
static void rates(const tree_case *c, const motion *m, double t, double *rate) {
    number xi[MOST], at[MOST], x[ALL];
    for (int k = 0; k < 3; k++) xi[k] = m->v[k], xi[3 + k] = m->w[k];
    for (int l = 0; l < c->dofs; l++) xi[6 + l] = m->dq[l];
    for (int k = 0; k < 6 + c->dofs; k++) at[k] = xi[k] * (t + 1e-20 * i_unit) + (k >= 6 ? m->q[k - 6] : 0);
    c_points(c, m->p, m->Q, at, x);
    for (int k = 0; k < 3 * CASE_POINTS * c->count; k++) rate[k] = cimag(x[k]) / 1e-20;
}

// Accelerations (ddp world, dw, ddq) by assembly: M = sum m J^T J, bias = sum m J^T (second derivative along the
// motion), elastic forces on q, and `extra` forces on (p, rotation, q) unless it is NULL. When `driven` gives the
// root's six, only ddq is solved for.
static void brute_force(const tree_case *c, const motion *m, const double *driven, double *out) {
    static double J[ALL * MOST], bias[ALL], M[MOST * MOST];
    static double change[MOST][MOST], all[MOST]; // of all coordinates, what is carried among them
    int           n = 6 + c->dofs, points = CASE_POINTS * c->count;
    for (int k = 0; k < n; k++) {
        number xi[MOST] = {0}, x[ALL];
        for (int l = 0; l < c->dofs; l++) xi[6 + l] = m->q[l];
        xi[k] += 1e-20 * i_unit;
        c_points(c, m->p, m->Q, xi, x);
        for (int i = 0; i < 3 * points; i++) J[k * 3 * points + i] = cimag(x[i]) / 1e-20;
        c_complete(c, xi + 6);
        for (int l = 0; l < c->dofs; l++) all[l] = creal(xi[6 + l]), change[k][l] = cimag(xi[6 + l]) / 1e-20;
    }
    static double side[2][ALL];
    const double  weights[3] = {64.0 / 45, -20.0 / 45, 1.0 / 45}, steps[3] = {1e-3, 2e-3, 4e-3};
    memset(bias, 0, sizeof bias);
    for (int k = 0; k < 3; k++) { // Richardson: the error is of sixth order
        rates(c, m, steps[k], side[0]);
        rates(c, m, -steps[k], side[1]);
        for (int i = 0; i < 3 * points; i++) bias[i] += weights[k] * (side[0][i] - side[1][i]) / (2 * steps[k]);
    }
    double rhs[MOST] = {0};
    for (int k = 0; k < n; k++) {
        for (int i = 0; i < 3 * points; i++) {
            double mass = case_point_mass(c, i / 3);
            rhs[k] += J[k * 3 * points + i] * (m->force[i] + mass * (m->gravity[i % 3] - bias[i]));
        }
        for (int l = 0; l < n; l++) {
            M[n * k + l] = 0;
            for (int i = 0; i < 3 * points; i++)
                M[n * k + l] += case_point_mass(c, i / 3) * J[k * 3 * points + i] * J[l * 3 * points + i];
        }
    }
    for (int i = 0; i < c->count; i++) {
        double f[CASE_MODES], s = c->d[i].scale;
        int    own = c->d[i].r - c->d[i].carried;
        case_evaluate(&c->d[i].forces, all + c->offset[i], NULL, f, NULL, NULL);
        for (int k = 0; k < n; k++)
            for (int l = 0; l < c->d[i].r; l++) rhs[k] -= change[k][c->offset[i] + l] * s * s * s * f[l];
        for (int l = own; l < c->d[i].r; l++) { // these columns are zero: they are no coordinates
            int place = 6 + c->offset[i] + l;
            M[place * (n + 1)] = 1, rhs[place] = 0;
        }
    }
    if (!driven) {
        assert_ok(dense_cholesky(n, M));
        dense_cholesky_solve(n, M, 1, rhs);
        memcpy(out, rhs, (size_t)n * sizeof *out);
        return;
    }
    static double inner[MOST * MOST];
    int           r = c->dofs;
    for (int k = 0; k < r; k++) {
        for (int l = 0; l < r; l++) inner[r * k + l] = M[n * (6 + k) + 6 + l];
        out[6 + k] = rhs[6 + k];
        for (int l = 0; l < 6; l++) out[6 + k] -= M[n * (6 + k) + l] * driven[l];
    }
    if (r == 0) return;
    assert_ok(dense_cholesky(r, inner));
    dense_cholesky_solve(r, inner, 1, out + 6);
}

// Puts a motion into the library's tree: state, root, and every point force as a point of its domain.
static void set_motion(const tree_case *c, const motion *m, solver_tree *tree) {
    solver_frame_motion root = {0};
    memcpy(root.p, m->p, sizeof root.p), memcpy(root.Q, m->Q, sizeof root.Q);
    memcpy(root.v, m->v, sizeof root.v), memcpy(root.w, m->w, sizeof root.w);
    case_set_state(c, tree, m->q, m->dq);
    if (tree->roots[0].kind != SOLVER_ROOT_DRIVEN) assert_ok(solver_tree_set_root(tree, 0, &root));
    solver_tree_set_gravity(tree, m->gravity);
    for (int n = 0; n < CASE_POINTS * c->count; n++) {
        const case_domain *d = &c->d[n / CASE_POINTS];
        int                point;
        double             rows[3 * CASE_MODES];
        if (vec3_norm(m->force + 3 * n) == 0) continue;
        for (int k = 0; k < 3; k++)
            for (int l = 0; l < d->r; l++) rows[d->r * k + l] = d->U[n % CASE_POINTS][k][l];
        assert_ok(solver_tree_add_point(tree, n / CASE_POINTS, d->X[n % CASE_POINTS], rows, &point));
        assert_ok(solver_tree_set_force(tree, point, m->force + 3 * n));
    }
}

// (ddp, dw, ddq) of the library's tree
static void library(const tree_case *c, solver_tree *tree, double *out) {
    assert_ok(tree_accelerations(tree));
    for (int k = 0; k < 3; k++) out[k] = tree->roots[0].state.a[k], out[3 + k] = tree->roots[0].state.al[k];
    for (int i = 0; i < c->count; i++)
        for (int l = 0; l < c->d[i].r; l++) // what is carried is compared by what it does
            out[6 + c->offset[i] + l] =
                l >= c->d[i].r - c->d[i].carried ? 0 : tree->ddq[tree->domains[tree->sorted[i]].offset + (size_t)l];
}

static void given_motion(void *context, double time, solver_frame_motion *given) {
    (void)time;
    *given = *(solver_frame_motion *)context;
}

static const struct {
    const char *name;
    int         count, parents[CASE_DOMAINS], modes[CASE_DOMAINS];
    double      scale[CASE_DOMAINS];
    int         carried[CASE_DOMAINS];
} shapes[] = {
    {"four domains", 4, {-1, 0, 0, 1}, {3, 4, 2, 3}, {1, 1, 1, 1}, {0}},
    {"scaled", 4, {-1, 0, 0, 1}, {3, 4, 2, 3}, {1.3, 0.6, 1.7, 0.9}, {0}},
    {"rigid inside", 4, {-1, 0, 0, 1}, {3, 0, 2, 3}, {1, 1, 1, 1}, {0}},
    {"rigid root", 4, {-1, 0, 0, 1}, {0, 2, 4, 0}, {1, 1, 1, 1}, {0}},
    {"all rigid", 4, {-1, 0, 0, 1}, {0, 0, 0, 0}, {1, 1, 1, 1}, {0}},
    {"bush", 7, {-1, 0, 0, 0, 1, 1, 4}, {4, 3, 2, 5, 2, 0, 3}, {1, 0.8, 0.5, 1, 0.7, 1, 0.6}, {0}},
    {"carried", 4, {-1, 0, 0, 1}, {3, 4, 2, 3}, {1, 1, 1, 1}, {0, 2, 1, 1}},
    {"carried bush",
     7,
     {-1, 0, 0, 0, 1, 1, 4},
     {4, 6, 2, 5, 2, 0, 3},
     {1, 0.8, 0.5, 1, 0.7, 1, 0.6},
     {0, 3, 1, 2, 2, 0, 1}},
};

static double largest(int n, const double *x, const double *y) {
    double most = 0;
    for (int i = 0; i < n; i++) most = fmax(most, fabs(x[i] - (y ? y[i] : 0)));
    return most;
}

// L3 is exact: free and driven roots, thick and flat interfaces, rigid domains, scales, gravity and forces on points.
static void test_brute_force(void **unused) {
    (void)unused;
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        tree_case           c;
        motion              m;
        solver_tree_options o = solver_tree_default_options();
        double              exact[MOST], found[MOST], driven[6], error[3], scale[3];
        case_create(&c, 11 + k, shapes[k].count, shapes[k].parents, shapes[k].modes, 1, 5);
        for (int i = 0; i < c.count; i++) c.d[i].scale = shapes[k].scale[i];
        case_carry(&c, shapes[k].carried);
        random_motion(&c, &m, 0.3);
        for (int drive = 0; drive < 3; drive++) { // the third: driven, without kernels
            o.plain = drive == 2;
            solver_tree        *tree = case_tree(&c, drive ? SOLVER_ROOT_DRIVEN : SOLVER_ROOT_FREE, &o, 0);
            solver_frame_motion given = {0};
            set_motion(&c, &m, tree);
            if (drive) {
                test_random_fill(&c.seed, 6, 2, driven);
                memcpy(given.p, m.p, sizeof given.p), memcpy(given.Q, m.Q, sizeof given.Q);
                memcpy(given.v, m.v, sizeof given.v), memcpy(given.w, m.w, sizeof given.w);
                memcpy(given.a, driven, sizeof given.a), memcpy(given.al, driven + 3, sizeof given.al);
                assert_ok(solver_tree_set_drive(tree, 0, given_motion, &given));
            }
            brute_force(&c, &m, drive ? driven : NULL, exact);
            library(&c, tree, found);
            int from = drive ? 6 : 0, n = 6 + c.dofs - from;
            error[drive] = largest(n, found + from, exact + from), scale[drive] = largest(n, exact + from, NULL);
            solver_tree_destroy(tree);
        }
        printf("   %-12s %2d coordinates: free error %.1e of %.0f, driven %.1e of %.0f\n", shapes[k].name, c.dofs,
               error[0], scale[0], error[1], scale[1]);
        for (int i = 0; i < 3; i++) assert_true(error[i] <= 1e-9 * scale[i]);
        case_destroy(&c);
    }
}

// Positions and velocities of points, from the frames of the library, against the composed motion.
static void test_frames(void **unused) {
    (void)unused;
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        tree_case           c;
        motion              m;
        solver_tree_options o = solver_tree_default_options();
        number              xi[MOST] = {0}, x[ALL];
        static double       rate[ALL];
        double              error[2] = {0};
        case_create(&c, 31 + k, shapes[k].count, shapes[k].parents, shapes[k].modes, 1, 5);
        for (int i = 0; i < c.count; i++) c.d[i].scale = shapes[k].scale[i];
        case_carry(&c, shapes[k].carried);
        random_motion(&c, &m, 0.3);
        for (int i = 0; i < 3 * CASE_POINTS * c.count; i++) m.force[i] = 1; // every point becomes a point of the tree
        solver_tree *tree = case_tree(&c, SOLVER_ROOT_FREE, &o, 0);
        set_motion(&c, &m, tree);
        for (int l = 0; l < c.dofs; l++) xi[6 + l] = m.q[l];
        c_points(&c, m.p, m.Q, xi, x);
        rates(&c, &m, 0, rate);
        for (int n = 0; n < CASE_POINTS * c.count; n++) {
            double place[3], velocity[3];
            solver_tree_point(tree, n, place, velocity);
            for (int i = 0; i < 3; i++) {
                error[0] = fmax(error[0], fabs(place[i] - creal(x[3 * n + i])));
                error[1] = fmax(error[1], fabs(velocity[i] - rate[3 * n + i]));
            }
        }
        printf("   %-12s positions %.1e, velocities %.1e\n", shapes[k].name, error[0], error[1]);
        assert_true(error[0] < 1e-13 && error[1] < 1e-12);
        solver_tree_destroy(tree);
        case_destroy(&c);
    }
}

// Of one driven domain: Mqq ddq = -f(q) - sum m U^T (a + al x y + w x (w x y) + 2 w x U dq), P1 eq. 13, summed over the
// points.
static void test_system_forces(void **unused) {
    (void)unused;
    tree_case           c;
    motion              m;
    const int           parents[1] = {-1}, modes[1] = {5};
    solver_tree_options o = solver_tree_default_options();
    solver_frame_motion given = {0};
    double              found[MOST], rhs[CASE_MODES], left[CASE_MODES], a[3];
    case_create(&c, 5, 1, parents, modes, 1, 5);
    random_motion(&c, &m, 0.3);
    memset(m.force, 0, sizeof m.force);
    test_random_fill(&c.seed, 3, 2, given.a);
    test_random_fill(&c.seed, 3, 2, given.al);
    memcpy(given.Q, m.Q, sizeof given.Q), memcpy(given.w, m.w, sizeof given.w);
    solver_tree *tree = case_tree(&c, SOLVER_ROOT_DRIVEN, &o, 0);
    set_motion(&c, &m, tree);
    assert_ok(solver_tree_set_drive(tree, 0, given_motion, &given));
    library(&c, tree, found);
    const case_domain *d = &c.d[0];
    case_evaluate(&d->forces, m.q, NULL, rhs, NULL, NULL);
    for (int l = 0; l < 5; l++) rhs[l] = -rhs[l], left[l] = dense_dot(5, d->Mqq + 5 * l, found + 6);
    for (int i = 0; i < 3; i++) // a - gravity in the axes of the frame
        a[i] = m.Q[i] * (given.a[0] - m.gravity[0]) + m.Q[3 + i] * (given.a[1] - m.gravity[1]) +
               m.Q[6 + i] * (given.a[2] - m.gravity[2]);
    for (int n = 0; n < CASE_POINTS; n++) {
        double y[3], rate[3], t[3], u[3], total[3];
        for (int i = 0; i < 3; i++) {
            y[i] = d->X[n][i] + dense_dot(5, d->U[n][i], m.q);
            rate[i] = dense_dot(5, d->U[n][i], m.dq);
            total[i] = a[i];
        }
        vec3_cross(t, given.al, y);
        vec3_axpy(total, 1, t);
        vec3_cross(t, m.w, y);
        vec3_cross(u, m.w, t);
        vec3_axpy(total, 1, u);
        vec3_cross(t, m.w, rate);
        vec3_axpy(total, 2, t);
        for (int l = 0; l < 5; l++)
            for (int i = 0; i < 3; i++) rhs[l] -= d->mass[n] * d->U[n][i][l] * total[i];
    }
    printf("   system forces: error %.1e of %.1f\n", largest(5, left, rhs), largest(5, rhs, NULL));
    assert_true(largest(5, left, rhs) < 1e-13 * largest(5, rhs, NULL));
    solver_tree_destroy(tree);
    case_destroy(&c);
}

// L1 is exact when the child is a mass point at the interface, L2 when it is one anywhere, with a force on it. L1 is
// not exact for the latter, nor L2 for a body.
static void test_lumps(void **unused) {
    (void)unused;
    for (int body = 0; body < 3; body++) { // a point at the interface, a point elsewhere, a rigid body
        tree_case           c;
        motion              m;
        const int           parents[2] = {-1, 0}, modes[2] = {4, 0};
        double              ddq[3][MOST];
        solver_frame_motion given = {0};
        case_create(&c, 5, 2, parents, modes, 1, 5);
        double place[3] = {body ? 0.4 : 0, body ? -0.3 : 0, body ? 0.2 : 0};
        for (int n = 0; n < CASE_POINTS && body < 2; n++) memcpy(c.d[1].X[n], place, sizeof place);
        case_integrals(&c.d[1]);
        random_motion(&c, &m, 0.3);
        test_random_fill(&c.seed, 3, 2, given.a);
        test_random_fill(&c.seed, 3, 2, given.al);
        memcpy(given.Q, m.Q, sizeof given.Q), memcpy(given.w, m.w, sizeof given.w);
        for (int level = SOLVER_ARTICULATED; level <= SOLVER_INTERFACE; level++) {
            solver_tree_options o = solver_tree_default_options();
            o.subtree = (solver_subtree)level;
            solver_tree *tree = case_tree(&c, SOLVER_ROOT_DRIVEN, &o, 0);
            set_motion(&c, &m, tree);
            assert_ok(solver_tree_set_drive(tree, 0, given_motion, &given));
            library(&c, tree, ddq[level]);
            solver_tree_destroy(tree);
        }
        double      size = largest(4, ddq[0] + 6, NULL);
        double      l2 = largest(4, ddq[1] + 6, ddq[0] + 6) / size, l1 = largest(4, ddq[2] + 6, ddq[0] + 6) / size;
        const char *names[] = {"point at the interface", "point elsewhere", "rigid body"};
        printf("   %-22s L1 differs from L3 by %.1e, L2 by %.1e\n", names[body], l1, l2);
        assert_true(body == 0 ? l1 < 1e-13 : l1 > 1e-2);
        assert_true(body <= 1 ? l2 < 1e-13 : l2 > 1e-3);
        case_destroy(&c);
    }
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_brute_force),
        cmocka_unit_test(test_system_forces),
        cmocka_unit_test(test_lumps),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
