// Contact: distances, the bounded-deformation tree, forces against brute force, their cost, failures.
#include "tests/contact_case.h"

// ---- geometry ----------------------------------------------------------------------------------------------------

// The normal is the gradient of the distance, and the distance changes by no more than the way between two points.
static void test_distances(void **unused) {
    (void)unused;
    uint64_t        seed = 1;
    const double    centre[3] = {0.1, 0.2, -0.1}, half[3] = {0.5, 0.3, 0.7}, up[3] = {1, 2, -0.5};
    solver_obstacle obstacles[3] = {solver_plane(centre, up), solver_box(centre, half), solver_sphere(centre, 0.6)};
    random_rotation(&seed, obstacles[1].axes);
    for (int kind = 0; kind < 3; kind++) {
        double worst = 0, steepest = 0, lowest = 0;
        int    inside = 0;
        for (int k = 0; k < 2000; k++) {
            double x[3], n[3], other[3], ignored[3], e = 1e-6, gradient[3];
            test_random_fill(&seed, 3, 1, x), test_random_fill(&seed, 3, 1, other);
            double d = solver_obstacle_distance(obstacles + kind, x, n);
            inside += d < 0, lowest = fmin(lowest, d);
            for (int i = 0; i < 3; i++) {
                double ahead[3] = {x[0], x[1], x[2]}, behind[3] = {x[0], x[1], x[2]};
                ahead[i] += e, behind[i] -= e;
                gradient[i] = (solver_obstacle_distance(obstacles + kind, ahead, ignored) -
                               solver_obstacle_distance(obstacles + kind, behind, ignored)) /
                              (2 * e);
            }
            // inside a box the nearest face changes along planes: few points straddle one
            if (fabs(vec3_norm(gradient) - 1) < 1e-3) worst = fmax(worst, vec3_distance(gradient, n));
            assert_true(fabs(vec3_norm(n) - 1) < 1e-12);
            double slope =
                fabs(d - solver_obstacle_distance(obstacles + kind, other, ignored)) / vec3_distance(x, other);
            steepest = fmax(steepest, slope);
        }
        printf("  %s: normal off by %.1e, steepest slope %.3f, %d of 2000 points inside, deepest %.2f\n",
               kind == 0   ? "plane"
               : kind == 1 ? "box"
                           : "sphere",
               worst, steepest, inside, -lowest);
        assert_true(worst < 1e-6 && steepest <= 1 + 1e-12 && steepest > 0.9 && inside > 50);
    }
    double n[3];
    assert_true(solver_obstacle_distance(obstacles + 2, centre, n) == -0.6 && vec3_norm(n) == 1);
}

// Samples cover the surface with its area, a quarter of a face for each corner of an H8.
static void test_samples(void **unused) {
    (void)unused;
    for (int type = 0; type < 2; type++) {
        block  b;
        double area = 0, moment[2] = {0};
        block_create(&b, type ? FEM_H8 : FEM_T4, 2, 2, 1e6);
        for (int i = 0; i < b.samples.count; i++) {
            area += b.samples.area[i];
            if (type && b.samples.X[3 * i + 2] == 0) { // with what edges share with the sides
                for (int k = 0; k < 2; k++) moment[k] += b.samples.area[i] * (b.samples.X[3 * i + k] - size[k] / 2);
            }
            assert_memory_equal(b.samples.X + 3 * i, b.c.b.mesh.vertices + 3 * b.samples.vertex[i], 3 * sizeof(double));
            for (int k = 0; k < 3; k++)
                for (int l = 0; l < 2; l++)
                    assert_true(b.samples.U[(3 * i + k) * 2 + l] ==
                                b.c.basis.U[l * b.c.b.n + 3 * b.samples.vertex[i] + k]);
        }
        double whole = 2 * (size[0] * size[1] + size[0] * size[2] + size[1] * size[2]);
        printf("  %s: %d samples, area %.15g of %g\n", type ? "H8" : "T4", b.samples.count, area, whole);
        assert_true(fabs(area - whole) < 1e-12);
        assert_true(fabs(moment[0]) + fabs(moment[1]) < 1e-12);
        block_destroy(&b);
    }
}

// Every sample lies in the ball of every node above it, for every q; and the balls are not absurdly large.
static void test_tree_is_conservative(void **unused) {
    (void)unused;
    block b;
    enum { R = 9 };
    block_create(&b, FEM_T4, 5, R, 1e6);
    solver_bounds tree;
    uint64_t      seed = 3;
    double        q[R], closest = INFINITY, loosest = 0;
    long          tested = 0;
    assert_ok(solver_bounds_create(&tree, &b.samples));
    for (int trial = 0; trial < 40; trial++) {
        test_random_fill(&seed, R, pow(10, -4 + trial / 8.0), q); // up to deformations far beyond the body
        for (int l = 0; l < R && trial % 2; l++) // one mode by itself: there the bound is nearly reached
            if (l != trial / 2 % R) q[l] = 0;
        for (int node = 0; node < tree.node_count; node++) {
            double ball[4], farthest = 0;
            solver_bounds_ball(&tree, node, q, ball);
            for (int i = tree.nodes[node].first; i < tree.nodes[node].first + tree.nodes[node].count; i++) {
                int    s = tree.order[i];
                double x[3];
                for (int k = 0; k < 3; k++) {
                    x[k] = b.samples.X[3 * s + k];
                    for (int l = 0; l < R; l++) x[k] += b.samples.U[(3 * s + k) * R + l] * q[l];
                }
                farthest = fmax(farthest, vec3_distance(x, ball));
                tested++;
            }
            closest = fmin(closest, ball[3] - farthest);
            loosest = fmax(loosest, ball[3] / farthest);
            assert_true(farthest <= ball[3] * (1 + 1e-13));
        }
    }
    // the children of a node share out its samples
    for (int node = 0; node < tree.node_count; node++) {
        const solver_bounds_node *n = tree.nodes + node;
        if (n->right < 0) continue;
        assert_int_equal(n[1].first, n->first);
        assert_int_equal(n[1].first + n[1].count, tree.nodes[n->right].first);
        assert_int_equal(n[1].count + tree.nodes[n->right].count, n->count);
    }
    printf("  %d samples, %d nodes, depth %d, %ld sample-ball pairs inside; radius up to %.1f times the needed\n",
           b.samples.count, tree.node_count, tree.depth, tested, loosest);
    assert_true(loosest < 20 && closest < 1e-3 && tree.depth < 12);
    solver_bounds_destroy(&tree);
    block_destroy(&b);
}

// ---- forces ------------------------------------------------------------------------------------------------------

// The same by looking at every sample and obstacle, in world coordinates, with explicit Jacobians.
typedef struct brute {
    int    contacts;
    double f[64], E[64 * 64], deepest;
} brute;

static void brute_force(brute *out, const solver_samples *s, const solver_contact_options *o, int count,
                        const solver_obstacle *obstacles, const solver_contact_view *view, double wK, double wD) {
    int lead = view->p ? 6 : 0, n = lead + s->r;
    memset(out, 0, sizeof *out);
    for (int i = 0; i < s->count; i++)
        for (int b = 0; b < count; b++) {
            double G[3][64] = {{0}}, y[3], x[3], v[3] = {0}, N[3], nu[64];
            for (int k = 0; k < 3; k++) {
                y[k] = s->X[3 * i + k] - (view->centre ? view->centre[k] : 0);
                for (int l = 0; l < s->r; l++) y[k] += s->U[(3 * i + k) * s->r + l] * view->q[l];
            }
            // world velocity = G nu, nu = (v, w, dq) in the axes of the frame
            for (int k = 0; k < 3; k++) x[k] = view->p ? view->p[k] : y[k];
            for (int k = 0; k < 3 && lead; k++)
                for (int j = 0; j < 3; j++) {
                    const double cross[9] = {0, y[2], -y[1], -y[2], 0, y[0], y[1], -y[0], 0}; // -[y]
                    x[k] += view->Q[3 * k + j] * y[j];
                    G[k][j] = view->Q[3 * k + j];
                    for (int c = 0; c < 3; c++) G[k][3 + c] += view->Q[3 * k + j] * cross[3 * j + c];
                    for (int l = 0; l < s->r; l++) G[k][6 + l] += view->Q[3 * k + j] * s->U[(3 * i + j) * s->r + l];
                }
            for (int k = 0; k < 3 && !lead; k++)
                for (int l = 0; l < s->r; l++) G[k][l] = s->U[(3 * i + k) * s->r + l];
            for (int j = 0; j < n; j++) nu[j] = j >= lead ? view->dq[j - lead] : j < 3 ? view->v[j] : view->w[j - 3];
            for (int k = 0; k < 3; k++)
                for (int j = 0; j < n; j++) v[k] += G[k][j] * nu[j];
            double d = solver_obstacle_distance(obstacles + b, x, N), arm[3], ground[3], f[3], A[9];
            if (d >= 0) continue;
            vec3_sub(arm, x, obstacles[b].position);
            vec3_cross(ground, obstacles[b].angular, arm);
            for (int k = 0; k < 3; k++) v[k] -= ground[k] + obstacles[b].velocity[k];
            double v_n = vec3_dot(v, N), f_n = s->area[i] * (-d * o->stiffness - o->damping * v_n);
            out->contacts++, out->deepest = fmax(out->deepest, -d);
            if (f_n <= 0) continue;
            vec3_axpy(v, -v_n, N);
            double viscosity = o->friction * f_n / fmax(vec3_norm(v), o->slip_velocity);
            for (int k = 0; k < 3; k++) f[k] = f_n * N[k] - viscosity * v[k];
            for (int k = 0; k < 9; k++) {
                double nn = N[k / 3] * N[k % 3];
                A[k] = s->area[i] * (wK * o->stiffness + wD * o->damping) * nn + wD * viscosity * ((k % 4 == 0) - nn);
            }
            for (int a = 0; a < n; a++)
                for (int k = 0; k < 3; k++) {
                    out->f[a] += G[k][a] * f[k];
                    for (int c = 0; c < n; c++)
                        for (int m = 0; m < 3; m++) out->E[c * n + a] += G[k][a] * A[3 * k + m] * G[m][c];
                }
        }
}

static void test_brute_force(void **unused) {
    (void)unused;
    block b;
    enum { R = 5, OBSTACLES = 70 };
    block_create(&b, FEM_T4, 4, R, 1e6);
    uint64_t               seed = 8;
    solver_contact_options o = {.stiffness = 2e5, .damping = 300, .friction = 0.4, .slip_velocity = 0.01};
    solver_contact        *contact = make_contact(&b.samples, &o);
    solver_obstacle        obstacles[OBSTACLES];
    for (int i = 0; i < OBSTACLES; i++) { // more than one mask holds
        double position[3], half[3];
        test_random_fill(&seed, 3, 1.0, position), test_random_fill(&seed, 3, 0.05, half);
        for (int k = 0; k < 3; k++) half[k] = 0.08 + half[k];
        obstacles[i] = i % 2 ? solver_box(position, half) : solver_sphere(position, half[0]);
        random_rotation(&seed, obstacles[i].axes);
        test_random_fill(&seed, 3, 1, obstacles[i].velocity), test_random_fill(&seed, 3, 1, obstacles[i].angular);
        add(contact, obstacles[i]);
    }
    const double low[3] = {0, 0, -0.35}, up[3] = {0.1, 0.2, 1};
    obstacles[0] = solver_plane(low, up);
    assert_ok(solver_contact_move(contact, 0, obstacles));
    double worst_f = 0, worst_E = 0;
    int    contacts = 0, fewest = 1000000;
    long   looked = 0, all = 0;
    for (int trial = 0; trial < 60; trial++) {
        static brute expected;
        double       q[R], dq[R], p[3], Q[9], v[3], w[3], centre[3] = {0.3, 0.2, 0.15}, f[64] = {0}, E[64 * 64] = {0};
        int          n = trial % 2 ? R : 6 + R;
        test_random_fill(&seed, R, 0.4, q), test_random_fill(&seed, R, 1, dq);
        test_random_fill(&seed, 3, 0.5, p), test_random_fill(&seed, 3, 1, v), test_random_fill(&seed, 3, 1, w);
        random_rotation(&seed, Q);
        solver_contact_view view = {.p = p, .Q = Q, .axes = Q, .v = v, .w = w, .centre = centre, .q = q, .dq = dq};
        if (trial % 2) view = (solver_contact_view){.q = q, .dq = dq};
        solver_contact_evaluate(contact, &view, 0.3, 0.07, f, E);
        brute_force(&expected, &b.samples, &o, OBSTACLES, obstacles, &view, 0.3, 0.07);
        solver_contact_report report = solver_contact_get_report(contact);
        assert_int_equal(report.contacts, expected.contacts);
        assert_int_equal(report.kinds[0] + report.kinds[1] + report.kinds[2], expected.contacts);
        assert_true(report.depth == expected.deepest || fabs(report.depth / expected.deepest - 1) < 1e-12);
        worst_f = fmax(worst_f, test_relative_error(n, f, expected.f));
        worst_E = fmax(worst_E, test_relative_error(n * n, E, expected.E));
        contacts += report.contacts;
        if (report.contacts < fewest) fewest = report.contacts;
        looked += report.samples, all += b.samples.count;
    }
    printf("  60 poses, %d contacts (at least %d), the same as brute force; forces %.1e, matrix %.1e\n", contacts,
           fewest, worst_f, worst_E);
    assert_true(contacts > 1000 && worst_f < 1e-11 && worst_E < 1e-11);
    assert_true(looked > 0 && all > 0);
    solver_contact_destroy(contact);
    block_destroy(&b);
}

// E is the derivative of the force where nothing is left out: a plane, without friction, active samples that stay so.
static void test_matrix(void **unused) {
    (void)unused;
    block b;
    enum { R = 4 };
    block_create(&b, FEM_H8, 3, R, 1e6);
    solver_contact_options o = {.stiffness = 1e6, .damping = 1e4, .friction = 0, .slip_velocity = 1};
    solver_contact        *contact = make_contact(&b.samples, &o);
    const double           point[3] = {0, 0, 0.05}, up[3] = {0, 0, 1};
    add(contact, solver_plane(point, up));
    for (int which = 0; which < 2; which++) { // K, then D
        double  q[R] = {0.01, -0.02, 0.005, 0.01}, dq[R] = {0.01, 0, -0.01, 0}, E[R * R] = {0}, f[2][R], K[R * R];
        double *x = which ? dq : q, e = 1e-7;
        for (int l = 0; l < R; l++) {
            for (int side = 0; side < 2; side++) {
                double kept = x[l];
                x[l] += side ? e : -e;
                solver_contact_view view = {.q = q, .dq = dq};
                memset(f[side], 0, sizeof f[side]);
                solver_contact_evaluate(contact, &view, 0, 0, f[side], NULL);
                x[l] = kept;
            }
            for (int i = 0; i < R; i++) K[l * R + i] = -(f[1][i] - f[0][i]) / (2 * e);
        }
        solver_contact_view view = {.q = q, .dq = dq};
        solver_contact_evaluate(contact, &view, !which, which, f[0], E);
        printf("  %s of %d contacts: %.1e from differences\n", which ? "damping" : "stiffness",
               solver_contact_get_report(contact).contacts, test_relative_error(R * R, E, K));
        assert_true(solver_contact_get_report(contact).contacts > 10);
        assert_true(test_relative_error(R * R, E, K) < 1e-7);
    }
    solver_contact_destroy(contact);
    block_destroy(&b);
}

// The work goes with the contacts: on finer and finer surfaces a ball that touches about as many samples visits about
// as many spheres, while a tree that is far away costs one.
static void test_cost(void **unused) {
    (void)unused;
    int visited[3], touched[3], samples[3];
    for (int k = 0; k < 3; k++) {
        fem_mesh     mesh = {0};
        const int    cells[3] = {12 << k, 8 << k, 6 << k};
        const double low[3] = {0, 0, 0};
        assert_ok(fem_generate_box(&mesh, FEM_H8, low, size, cells));
        int     n = 3 * mesh.vertex_count;
        double *U = fem_alloc(2 * (size_t)n, sizeof *U), q[2] = {0.02, -0.03};
        for (int i = 0; i < n; i++) {
            const double *x = mesh.vertices + i / 3 * 3;
            U[i] = i % 3 == 2 ? x[0] * x[0] : 0, U[n + i] = i % 3 == 1 ? sin(4 * x[0]) : 0;
        }
        solver_samples         s;
        solver_contact_options o = solver_contact_default_options();
        assert_ok(solver_samples_create(&s, &mesh, 2, U));
        solver_contact *contact = make_contact(&s, &o);
        double       radius = 0.06 / (1 << k), centre[3] = {0.31, 0.2 - 0.03 * sin(4 * 0.31), 0.3 + 0.02 * 0.31 * 0.31};
        double       f[2] = {0}, dq[2] = {0};
        const double away[3] = {5, 5, 5};
        add(contact, solver_sphere(centre, radius));
        solver_contact_view view = {.q = q, .dq = dq};
        solver_contact_evaluate(contact, &view, 0, 0, f, NULL);
        solver_contact_report report = solver_contact_get_report(contact);
        visited[k] = report.spheres, touched[k] = report.contacts, samples[k] = s.count;
        printf("  %7d samples: %d contacts, %d spheres visited, %d samples tested\n", s.count, report.contacts,
               report.spheres, report.samples);
        solver_obstacle far_away = solver_sphere(away, 0.1);
        assert_ok(solver_contact_move(contact, 0, &far_away));
        solver_contact_evaluate(contact, &view, 0, 0, f, NULL);
        assert_int_equal(solver_contact_get_report(contact).spheres, 1);
        solver_contact_destroy(contact);
        solver_samples_destroy(&s);
        fem_free(U);
        fem_mesh_destroy(&mesh);
    }
    assert_true(touched[0] > 1 && samples[2] > 12 * samples[0]);
    // a few spheres more for each level of the tree, no more
    double levels = log2((double)samples[2] / samples[0]);
    assert_true(visited[2] < visited[0] * (double)touched[2] / touched[0] + 12 * levels);
}

// ---- what can go wrong -------------------------------------------------------------------------------------------

static void test_failures(void **unused) {
    (void)unused;
    block b;
    enum { R = 3 };
    block_create(&b, FEM_H8, 1, R, 1e6);
    solver_contact_options o = solver_contact_default_options();
    solver_contact        *contact = NULL;
    o.stiffness = 0;
    assert_fails(solver_contact_create(&contact, &b.samples, &o), FEM_BAD_INPUT,
                 "contact.stiffness is 0, expected > 0");
    o = solver_contact_default_options(), o.damping = -1;
    assert_fails(solver_contact_create(&contact, &b.samples, &o), FEM_BAD_INPUT, "contact.damping is -1");
    o = solver_contact_default_options(), o.friction = NAN;
    assert_fails(solver_contact_create(&contact, &b.samples, &o), FEM_BAD_INPUT, "contact.friction");
    o = solver_contact_default_options(), o.slip_velocity = 0;
    assert_fails(solver_contact_create(&contact, &b.samples, &o), FEM_BAD_INPUT, "contact.slip_velocity is 0");
    o = solver_contact_default_options();
    solver_samples none = {0};
    assert_fails(solver_contact_create(&contact, &none, &o), FEM_BAD_INPUT, "at least one sample");
    double kept = b.samples.X[4];
    b.samples.X[4] = NAN;
    assert_fails(solver_contact_create(&contact, &b.samples, &o), FEM_BAD_INPUT, "sample 1 is not finite");
    b.samples.X[4] = kept;
    int failures = 0;
    for (long allowed = 0;; allowed++) {
        fem_memory_fail_after(allowed);
        fem_status status = solver_contact_create(&contact, &b.samples, &o);
        fem_memory_fail_after(-1);
        if (status == FEM_OK) break;
        assert_int_equal(status, FEM_NO_MEMORY);
        failures++;
    }
    for (long allowed = 0;; allowed++) {
        solver_samples samples = {0};
        fem_memory_fail_after(allowed);
        fem_status status = solver_samples_create(&samples, &b.c.b.mesh, R, b.c.basis.U);
        fem_memory_fail_after(-1);
        solver_samples_destroy(&samples);
        if (status == FEM_OK) break;
        assert_int_equal(status, FEM_NO_MEMORY);
        failures++;
    }
    solver_obstacle ground = floor_at(0), bad = ground;
    for (long allowed = 0;; allowed++) {
        fem_memory_fail_after(allowed);
        fem_status status = solver_contact_add(contact, &ground, NULL);
        fem_memory_fail_after(-1);
        if (status == FEM_OK) break;
        failures++;
    }
    printf("  %d failing allocations\n", failures);
    const double nowhere[3] = {0}, half[3] = {1, 0, 1};
    bad = solver_plane(nowhere, nowhere);
    assert_fails(solver_contact_add(contact, &bad, NULL), FEM_BAD_INPUT, "a plane needs a normal");
    bad = solver_box(nowhere, half);
    assert_fails(solver_contact_add(contact, &bad, NULL), FEM_BAD_INPUT, "a size of obstacle 1 is 0");
    bad = solver_sphere(nowhere, -1);
    assert_fails(solver_contact_add(contact, &bad, NULL), FEM_BAD_INPUT, "a size of obstacle 1 is -1");
    bad = ground, bad.velocity[1] = NAN;
    assert_fails(solver_contact_move(contact, 0, &bad), FEM_BAD_INPUT, "motion of obstacle 0 is not finite");
    bad = ground, bad.kind = 7;
    assert_fails(solver_contact_move(contact, 0, &bad), FEM_BAD_INPUT, "of kind 7");
    assert_fails(solver_contact_move(contact, 3, &ground), FEM_BAD_INPUT, "no obstacle 3");

    // another number of modes is refused; a step allocates nothing
    solver_inertia rigid;
    solver_free   *solver = NULL;
    assert_ok(solver_inertia_create(&rigid, b.c.b.body, FEM_MASS_CONSISTENT, 0, NULL));
    solver_reduced_options so = solver_free_default_options();
    assert_ok(solver_free_create(&solver, &rigid, NULL, &so));
    assert_fails(solver_free_set_contact(solver, contact), FEM_BAD_INPUT, "samples have 3 modes, the body 0");
    solver_free_destroy(solver);
    solver_inertia_destroy(&rigid);
    assert_ok(solver_free_create(&solver, &b.inertia, &b.c.forces, &so));
    assert_ok(solver_free_set_contact(solver, contact));
    assert_ok(solver_free_set_gravity(solver, gravity));
    for (int k = 0; k < 20; k++) {
        fem_memory_fail_after(0);
        fem_status status = solver_free_step(solver);
        fem_memory_fail_after(-1);
        assert_int_equal(status, FEM_OK);
    }
    assert_true(solver_contact_get_report(contact).total_contacts > 0);
    solver_free_destroy(solver);
    solver_contact_destroy(contact);
    block_destroy(&b);
}

int main(int argc, char **argv) {
    (void)argc;
    fem_set_threads(1); // bodies this small are done before a second thread wakes up
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distances),   cmocka_unit_test(test_samples), cmocka_unit_test(test_tree_is_conservative),
        cmocka_unit_test(test_brute_force), cmocka_unit_test(test_matrix),  cmocka_unit_test(test_cost),
        cmocka_unit_test(test_failures),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
