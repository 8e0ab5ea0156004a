// Training of cubature rules: poses and their forces, the three methods on poses that were held out, incremental
// generation, checkpoints, bad input.
#include "libcubature/fit.h"
#include "tests/rule_case.h"

enum { R = 6 };

// A leaf-shaped body with four holes would do as well; what matters: many elements, smooth modes, any material.
static void body_create(polynomial_case *c, fem_material_kind kind) {
    const int cells[3] = {8, 5, 4};
    rule_case_create(c, FEM_T4, 1, &kind, R, cells);
}

static const double rayleigh[R] = {1, 1.5, 2, 3, 4, 6};

static void sample(const polynomial_case *c, double amplitude, unsigned seed, int count, cubature_poses *poses) {
    assert_ok(cubature_poses_sample(poses, c->body, R, c->U, rayleigh, amplitude, 1, seed, count, NULL));
}

static void test_forces(void **state) {
    (void)state;
    polynomial_case   c;
    cubature_poses    poses;
    fem_material_kind kinds[2] = {FEM_NEOHOOKEAN, FEM_STVK};
    const int         cells[3] = {4, 3, 2};
    double            worst = 0, least = INFINITY, deepest = 1;
    for (int type = 0; type < 2; type++) {
        rule_case_create(&c, type ? FEM_H8 : FEM_T4, 2, kinds, R, cells);
        sample(&c, 0.3, 3, 19, &poses);
        cubature_forces full = cubature_full_forces(c.full);
        double          f[R], smallest[19], *u = fem_alloc((size_t)c.n, sizeof *u);
        assert_ok(cubature_pose_forces(c.body, R, c.U, 19, poses.q, poses.f, smallest));
        for (int t = 0; t < 19; t++) {
            full.evaluate(full.model, poses.q + R * t, NULL, f, NULL, c.work);
            worst = fmax(worst, test_relative_error(R, poses.f + R * t, f));
            least = fmin(least, dense_norm(R, f));
            dense_gemv_set(c.n, R, 1, c.U, poses.q + R * t, u);
            double J = fem_body_min_jacobian(c.body, u, NULL);
            worst = fmax(worst, fabs(smallest[t] / J - 1));
            assert_true(J > 0 && J < 1);
            deepest = fmin(deepest, J);
        }
        fem_free(u);
        cubature_poses_destroy(&poses);
        case_destroy(&c);
    }
    print_message("forces and det F against the full mesh: %.1e, smallest force %.2g, det F down to %.2f\n", worst,
                  least, deepest);
    assert_true(worst < 1e-11 && least > 1e-3 && deepest < 0.8);
}

// sigma_i = c / sqrt(Q_i), the amplitude gives the displacement asked for, and the numbers do not depend on threads.
static void test_gaussian(void **state) {
    (void)state;
    polynomial_case c;
    cubature_poses  poses, again;
    enum { COUNT = 2000 };
    double amplitude, most[COUNT];
    body_create(&c, FEM_STVK);
    assert_ok(cubature_amplitude(c.body, R, c.U, rayleigh, 0.02, 1, &amplitude));
    sample(&c, amplitude, 5, COUNT, &poses);
    double *u = fem_alloc((size_t)c.n, sizeof *u);
    for (int l = 0; l < R; l++) {
        double mean = 0, square = 0, sigma = amplitude / sqrt(rayleigh[l]);
        for (int t = 0; t < COUNT; t++) mean += poses.q[R * t + l] / COUNT;
        for (int t = 0; t < COUNT; t++) square += poses.q[R * t + l] * poses.q[R * t + l] / COUNT;
        print_message("mode %d: mean %.3f, deviation %.3f of sigma\n", l, mean / sigma, sqrt(square) / sigma);
        assert_true(fabs(mean) < 4 * sigma / sqrt(COUNT) && fabs(sqrt(square) / sigma - 1) < 0.08);
    }
    for (int t = 0; t < COUNT; t++) {
        dense_gemv_set(c.n, R, 1, c.U, poses.q + R * t, u);
        most[t] = 0;
        for (int v = 0; v < c.n / 3; v++) most[t] = fmax(most[t], vec3_norm(u + 3 * v));
    }
    int below = 0;
    for (int t = 0; t < COUNT; t++) below += most[t] < 0.02;
    print_message("%d of %d poses move less than asked for\n", below, COUNT);
    assert_true(below > COUNT / 4 && below < 3 * COUNT / 4);
    fem_set_threads(1);
    sample(&c, amplitude, 5, COUNT, &again);
    fem_set_threads(0);
    assert_memory_equal(poses.f, again.f, COUNT * R * sizeof(double));
    cubature_poses_destroy(&poses), cubature_poses_destroy(&again);
    fem_free(u);
    case_destroy(&c);
}

static void test_inverted_poses(void **state) {
    (void)state;
    polynomial_case c;
    cubature_poses  poses;
    int             inverted = 0;
    double          smallest[40], least = INFINITY;
    body_create(&c, FEM_NEOHOOKEAN);
    assert_ok(cubature_poses_sample(&poses, c.body, R, c.U, rayleigh, 2, 1, 5, 40, &inverted));
    assert_ok(cubature_pose_forces(c.body, R, c.U, 40, poses.q, poses.f, smallest));
    for (int t = 0; t < 40; t++) least = fmin(least, smallest[t]);
    print_message("%d of 40 poses inverted an element and were made smaller; smallest det F now %.3f\n", inverted,
                  least);
    assert_true(inverted > 10 && least > 0);
    // none was made smaller than it had to be: the double of each that was shrunk inverts an element; and they are what
    // one would draw, times a power of two
    cubature_poses drawn = {.r = R, .count = 40, .q = fem_alloc(40 * R, sizeof(double))};
    int            shrunk = 0;
    for (int i = 0; i < 40 * R; i++) {
        drawn.q[i] = 2 / sqrt(rayleigh[i % R]) * random_normal(5, (unsigned long)i);
        poses.q[i] *= 2;
    }
    assert_ok(cubature_pose_forces(c.body, R, c.U, 40, poses.q, poses.f, smallest));
    for (int t = 0; t < 40; t++) {
        double ratio = drawn.q[R * t] / poses.q[R * t], power = log2(ratio);
        assert_true(fabs(power - round(power)) < 1e-9 && power > -1.5);
        for (int l = 0; l < R; l++)
            assert_true(fabs(drawn.q[R * t + l] - ratio * poses.q[R * t + l]) < 1e-12 * fabs(drawn.q[R * t + l]));
        if (power < -0.5) continue; // not shrunk
        shrunk++;
        assert_true(!(smallest[t] > 0));
    }
    assert_int_equal(shrunk, inverted);
    for (int i = 0; i < 40 * R; i++) poses.q[i] /= 2;
    cubature_poses_destroy(&drawn);
    // given poses are taken as they are, and counted
    for (int i = 0; i < 40 * R; i++) poses.q[i] *= 4;
    cubature_training_options o = cubature_training_default_options();
    cubature_training_report  report;
    cubature_rule             rule;
    o.given = poses.q, o.given_count = 40, o.held_out = 0, o.error = 0.2;
    assert_ok(cubature_train(&rule, c.body, R, c.U, rayleigh, &o, NULL, &report));
    print_message("given: %d inverted, error %.3f with %d elements\n", report.inverted, report.fit_error, rule.count);
    assert_true(report.inverted > 0 && report.poses == 40 && isfinite(report.fit_error));
    cubature_rule_destroy(&rule);
    cubature_poses_destroy(&poses);
    case_destroy(&c);
}

// Trained rules of one weight an element are balanced by the modes of K(0): the error against textbook sums. The basis
// is turned first, so that its columns are none of them.
static void test_balanced_by_modes(void **state) {
    (void)state;
    enum { COUNT = 24 };
    polynomial_case c;
    cubature_poses  poses;
    body_create(&c, FEM_MOONEY_RIVLIN);
    double zero[R] = {0}, V[R * R], values[R], f[R], top = 0, columns_top = 0;
    assert_ok(cubature_poses_sample(&poses, c.body, R, c.U, rayleigh, 0.3, 1, 5, COUNT, NULL));
    cubature_forces full = cubature_full_forces(c.full);
    full.evaluate(full.model, zero, NULL, NULL, V, c.work);
    assert_ok(dense_symmetric_eigen(R, V, values));
    for (int method = 0; method < 3; method++) {
        cubature_training_options o = cubature_training_default_options();
        cubature_training_report  report;
        cubature_rule             rule;
        o.method = (cubature_method)method, o.given = poses.q, o.given_count = COUNT, o.held_out = 0, o.error = 0.1;
        assert_ok(cubature_train(&rule, c.body, R, c.U, rayleigh, &o, NULL, &report));
        top = columns_top = 0;
        for (int l = 0; l < R; l++) {
            double d2 = 0, f2 = 0, column_d2 = 0, column_f2 = 0;
            for (int t = 0; t < COUNT; t++) {
                double d = 0, g = 0, norm = dense_norm(R, poses.f + R * t);
                cubature_rule_plain(&rule, poses.q + R * t, NULL, f, NULL);
                dense_axpy(R, -1, poses.f + R * t, f);
                for (int i = 0; i < R; i++) d += V[R * l + i] * f[i], g += V[R * l + i] * poses.f[R * t + i];
                d2 += d * d / norm / norm, f2 += g * g / norm / norm;
                column_d2 += f[l] * f[l] / norm / norm,
                    column_f2 += poses.f[R * t + l] * poses.f[R * t + l] / norm / norm;
            }
            top += d2 / f2 / R, columns_top += column_d2 / column_f2 / R;
        }
        double by_modes = sqrt(top), by_columns = sqrt(columns_top);
        print_message("%s: %.4f, by modes %.4f, by columns %.4f\n", cubature_method_name(o.method), report.fit_error,
                      by_modes, by_columns);
        assert_true(fabs((method == CUBATURE_MODAL ? by_columns : by_modes) / report.fit_error - 1) < 1e-6);
        assert_true(fabs(by_modes / by_columns - 1) > 1e-3);
        cubature_rule_destroy(&rule);
    }
    cubature_poses_destroy(&poses);
    case_destroy(&c);
}

// Nothing holds the body, and its columns span translations without being them: these have neither force nor stiffness,
// and are left out of balanced errors and of the poses near rest.
static void test_free_body(void **state) {
    (void)state;
    enum { COUNT = 40 };
    polynomial_case c;
    cubature_poses  poses, small;
    reduced_body    reduced;
    body_create(&c, FEM_NEOHOOKEAN);
    for (int i = 0; i < c.n; i++) { c.U[i] = c.U[2 * c.n + i] + (i % 3 == 0 ? 0.5 : 0); }
    assert_ok(reduced_body_create(&reduced, c.body, R, c.U));
    assert_ok(reduced_body_modes(&reduced));
    assert_true(fabs(reduced.values[0]) < 1e-13 * reduced.values[R - 1] &&
                reduced.values[1] > 1e-4 * reduced.values[2]);
    reduced.values[0] = fabs(reduced.values[0]) + 1e-16 * reduced.values[R - 1]; // as rounding may leave it
    assert_ok(poses_small(&small, &reduced, 0.3));
    assert_int_equal(small.count, R - 1);
    cubature_poses_destroy(&small);
    sample(&c, 0.3, 5, COUNT, &poses);
    for (int method = 0; method < 3; method++) {
        cubature_training_options o = cubature_training_default_options();
        cubature_training_report  report;
        cubature_rule             rule;
        o.method = (cubature_method)method, o.given = poses.q, o.given_count = COUNT, o.held_out = 0, o.error = 0.1;
        assert_ok(cubature_train(&rule, c.body, R, c.U, rayleigh, &o, NULL, &report));
        double error = rule_error(&rule, &poses, true, method == CUBATURE_MODAL ? NULL : reduced.modes);
        print_message("free, %s: fit %.4f, %d elements\n", cubature_method_name(o.method), report.fit_error,
                      rule.count);
        assert_true(report.reached && fabs(error / report.fit_error - 1) < 1e-6);
        cubature_rule_destroy(&rule);
    }
    cubature_poses_destroy(&poses);
    reduced_body_destroy(&reduced);
    case_destroy(&c);
}

// Incremental Gaussian poses, and one near rest for each mode.
static void test_near_rest(void **state) {
    (void)state;
    polynomial_case c;
    cubature_poses  poses;
    reduced_body    reduced;
    double          off = 0, K0[R * R], zero[R] = {0};
    body_create(&c, FEM_NEOHOOKEAN);
    assert_ok(reduced_body_create(&reduced, c.body, R, c.U));
    assert_ok(reduced_body_modes(&reduced));
    assert_ok(poses_small(&poses, &reduced, 0.3));
    cubature_forces full = cubature_full_forces(c.full);
    full.evaluate(full.model, zero, NULL, NULL, K0, c.work);
    assert_true(test_relative_error(R * R, reduced.K0, K0) < 1e-13 && poses.count == R);
    for (int k = 0; k < R; k++) {
        double f[R];
        dense_gemv_set(R, R, 1, K0, poses.q + R * k, f);
        off = fmax(off, test_relative_error(R, poses.f + R * k, f));
        assert_true(fabs(dense_norm(R, f) / (3e-5 * sqrt(reduced.values[k])) - 1) < 1e-9);
        for (int i = 0; i < k; i++)
            assert_true(fabs(dense_dot(R, poses.f + R * i, poses.q + R * k)) <
                        1e-3 * dense_dot(R, poses.f + R * k, poses.q + R * k));
    }
    print_message("forces near rest within %.1e of K(0) q\n", off);
    assert_true(off < 1e-3);
    cubature_poses_destroy(&poses);
    reduced_body_destroy(&reduced);
    cubature_training_options o = cubature_training_default_options();
    cubature_training_report  report;
    cubature_rule             rule;
    o.loaded = false, o.error = 0.1;
    for (int fixed = 0; fixed < 2; fixed++) { // none with a number that was asked for, none of a modal rule
        int made[2];
        o.poses = 50 * fixed;
        for (int modal = 0; modal < 2; modal++) {
            o.method = modal ? CUBATURE_MODAL : CUBATURE_EMPIRICAL;
            assert_ok(cubature_train(&rule, c.body, R, c.U, rayleigh, &o, NULL, &report));
            made[modal] = report.poses;
            cubature_rule_destroy(&rule);
        }
        assert_int_equal(made[0], fixed ? 50 : made[1] + R);
        assert_true(!fixed || made[1] == 50);
    }
    case_destroy(&c);
}

static void test_methods(void **state) {
    (void)state;
    polynomial_case c;
    cubature_poses  poses, others;
    body_create(&c, FEM_MOONEY_RIVLIN);
    sample(&c, 0.12, 1, 200, &poses);
    sample(&c, 0.12, 2, 150, &others);
    for (int method = 0; method < 3; method++)
        for (int level = 0; level < 2; level++) {
            cubature_training_options o = cubature_training_default_options();
            cubature_training_report  report;
            cubature_rule             rule;
            o.method = (cubature_method)method;
            o.error = level ? 0.01 : 0.1;
            assert_ok(cubature_fit(&rule, c.body, R, c.U, &poses, &o, NULL, &report));
            double fit = cubature_rule_error(&rule, &poses, true), held_out = cubature_rule_error(&rule, &others, true);
            print_message("%s, error %g: %d of %d elements, fit %.4f (measured %.4f), held out %.4f\n",
                          cubature_method_name(o.method), o.error, rule.count, c.mesh.element_count, report.fit_error,
                          fit, held_out);
            assert_true(report.reached && report.fit_error <= o.error);
            assert_true(fabs(fit / report.fit_error - 1) < 1e-6); // the rule does what the fit says
            assert_true(held_out < 2 * o.error);
            assert_true(rule.count < c.mesh.element_count / 4 && rule.modal == (o.method == CUBATURE_MODAL));
            cubature_rule_destroy(&rule);
        }
    cubature_poses_destroy(&poses), cubature_poses_destroy(&others);
    case_destroy(&c);
}

static void test_incremental(void **state) {
    (void)state;
    polynomial_case c;
    body_create(&c, FEM_STVK);
    for (int recentre = 0; recentre < 2; recentre++) {
        cubature_training_options o = cubature_training_default_options();
        cubature_training_report  report;
        cubature_rule             rule;
        o.method = CUBATURE_MODAL;
        o.recentre = recentre, o.loaded = false;
        o.error = 0.05;
        assert_ok(cubature_train(&rule, c.body, R, c.U, rayleigh, &o, NULL, &report));
        print_message("recentred %d: %d poses in %d batches, %d elements, fit %.4f, held out %.4f\n", recentre,
                      report.poses, report.batches, rule.count, report.fit_error, report.held_out_error);
        assert_true(report.batches > 1 && report.poses > 36 && report.poses < o.most_poses);
        assert_true(report.held_out_error < 0.15 && report.held_out_error > 0);
        // the poses by themselves are those of the training: they give the same rule
        cubature_training_report alone, given;
        cubature_poses           poses;
        cubature_rule            again;
        assert_ok(cubature_poses_generate(&poses, c.body, R, c.U, rayleigh, &o, NULL, &alone));
        assert_true(poses.count == report.poses && alone.poses == report.poses && alone.batches == report.batches);
        assert_ok(cubature_fit(&again, c.body, R, c.U, &poses, &o, NULL, &given));
        assert_int_equal(again.count, rule.count);
        assert_memory_equal(again.elements, rule.elements, (size_t)rule.count * sizeof *rule.elements);
        assert_true(given.fit_error == report.fit_error);
        cubature_rule_destroy(&again);
        cubature_poses_destroy(&poses);
        cubature_rule_destroy(&rule);
        // an error that needs more elements than so many poses allow: more poses
        o.error = 0.001, o.settled = 0.5;
        assert_ok(cubature_poses_generate(&poses, c.body, R, c.U, rayleigh, &o, NULL, &alone));
        cubature_poses_destroy(&poses);
        assert_ok(cubature_train(&rule, c.body, R, c.U, rayleigh, &o, NULL, &report));
        print_message("error %g: %d poses, %d at first, %d elements, fit %.5f\n", o.error, report.poses, alone.poses,
                      rule.count, report.fit_error);
        assert_true(report.reached && report.poses > alone.poses && rule.count > 2 * alone.poses / 3 + 1);
        cubature_rule_destroy(&rule);
        o.most_poses = alone.poses + 5;
        assert_ok(cubature_train(&rule, c.body, R, c.U, rayleigh, &o, NULL, &report));
        assert_true(!report.reached && report.poses == alone.poses + 5);
        cubature_rule_destroy(&rule);
    }
    case_destroy(&c);
}

// Springs besides the elements: poses answer loads with both, and the forces that a rule is fitted to are the elements'
// alone. Weights fitted again from a rule of the same body do for it, and a modal rule is refused.
static void test_springs(void **state) {
    (void)state;
    enum { COUNT = 30 };
    polynomial_case c;
    cubature_poses  poses;
    reduced_body    reduced;
    loading         plain, tied;
    double          p[R], S[R * R], mean = 0, without = 0, twice[R * R];
    int             inverted = 0;
    body_create(&c, FEM_NEOHOOKEAN);
    assert_ok(reduced_body_create(&reduced, c.body, R, c.U));
    assert_ok(reduced_body_modes(&reduced));
    assert_ok(loading_create(&plain, &reduced, NULL, 0.1, 1));
    memcpy(S, plain.K0, sizeof S);
    for (int i = 0; i < R * R; i++) twice[i] = 2 * S[i];
    assert_ok(loading_create(&tied, &reduced, S, 0.1, 1));
    assert_true(test_relative_error(R * R, tied.K0, twice) < 1e-14);
    assert_ok(loading_poses(&tied, 3, COUNT, NULL, &poses, &inverted));
    for (int t = 0; t < COUNT; t++) {
        loading_draw(&tied, 3, t, p);
        double size = loading_size(&tied, p);
        dense_axpy(R, -1, poses.f + R * t, p);
        without += loading_size(&tied, p) / size / COUNT;
        dense_gemv_add(R, R, -1, S, poses.q + R * t, p);
        mean += loading_size(&tied, p) / size / COUNT;
    }
    printf("with springs forces miss loads by %.2g, elements alone by %.2g\n", mean, without);
    assert_true(mean < 0.03 && without > 0.2);
    cubature_poses_destroy(&poses);
    cubature_training_options o = cubature_training_default_options();
    cubature_training_report  report;
    cubature_rule             rule, again = {0};
    o.error = 0.05, o.poses = 60, o.held_out = 20;
    assert_ok(cubature_train(&rule, c.body, R, c.U, rayleigh, &o, NULL, &report));
    o.springs = S;
    assert_ok(cubature_refit(&again, c.body, R, c.U, &rule, &o, &report));
    printf("fitted again: %d elements of %d and others, %.3f off at fresh poses\n", again.count, rule.count,
           report.held_out_error);
    assert_true(again.count > 0 && report.held_out_error > 0 && report.held_out_error < 0.1);
    // balanced by modes, in the fit as in what is told of it: at the poses that it was fitted to
    loading_destroy(&tied);
    assert_ok(loading_create(&tied, &reduced, S, o.displacement * sqrt(1.25 * 1.25 + 0.8 * 0.8 + 0.6 * 0.6), o.seed));
    assert_ok(loading_poses(&tied, o.seed, report.poses, NULL, &poses, &inverted));
    double by_modes = rule_error(&again, &poses, true, reduced.modes);
    double by_columns = cubature_rule_error(&again, &poses, true);
    print_message("fit %.6f, by modes %.6f, by columns %.6f\n", report.fit_error, by_modes, by_columns);
    assert_true(fabs(by_modes / report.fit_error - 1) < 1e-6 && fabs(by_columns / by_modes - 1) > 1e-3);
    cubature_poses_destroy(&poses), loading_destroy(&plain), loading_destroy(&tied), reduced_body_destroy(&reduced);
    cubature_rule_destroy(&again);
    rule.modal = true;
    assert_int_equal(cubature_refit(&again, c.body, R, c.U, &rule, &o, &report), FEM_BAD_INPUT);
    rule.modal = false;
    cubature_rule_destroy(&rule);
    case_destroy(&c);
}

// Poses that answer loads have forces near to them; the loads have the covariance of K(0), and the poses go as far as
// was asked for.
static void test_loaded(void **state) {
    (void)state;
    enum { COUNT = 60, DRAWS = 4000 };
    polynomial_case c;
    cubature_poses  poses;
    reduced_body    reduced;
    loading         l;
    double          p[R], covariance[R * R] = {0}, worst = 0, mean = 0, bent = 0, most[COUNT];
    int             inverted = 0;
    body_create(&c, FEM_NEOHOOKEAN);
    double *u = fem_alloc((size_t)c.n, sizeof *u);
    assert_ok(reduced_body_create(&reduced, c.body, R, c.U));
    assert_ok(reduced_body_modes(&reduced));
    assert_ok(loading_create(&l, &reduced, NULL, 0.1, 1));
    for (int t = 0; t < DRAWS; t++) {
        loading_draw(&l, 3, t, p);
        for (int i = 0; i < R * R; i++) covariance[i] += p[i % R] * p[i / R] / DRAWS / (l.amplitude * l.amplitude);
    }
    double off = test_relative_error(R * R, covariance, l.K0);
    assert_ok(loading_poses(&l, 3, COUNT, NULL, &poses, &inverted));
    for (int t = 0; t < COUNT; t++) {
        double linear[R];
        loading_draw(&l, 3, t, p);
        double size = loading_size(&l, p);
        memcpy(linear, p, sizeof p);
        dense_cholesky_solve(R, l.L, 1, linear);
        bent = fmax(bent, test_relative_error(R, poses.q + R * t, linear));
        dense_axpy(R, -1, poses.f + R * t, p);
        double miss = loading_size(&l, p) / size;
        worst = fmax(worst, miss), mean += miss / COUNT;
        dense_gemv_set(c.n, R, 1, c.U, poses.q + R * t, u);
        most[t] = largest_displacement(c.n, u);
        for (int k = t; k > 0 && most[k] < most[k - 1]; k--) {
            double swap = most[k];
            most[k] = most[k - 1], most[k - 1] = swap;
        }
    }
    double median = most[COUNT / 2];
    printf("covariance of loads within %.2g of K(0); forces miss loads by %.2g, at most %.2g; poses differ from linear "
           "ones by up to %.2g; median displacement %.3g\n",
           off, mean, worst, bent, median);
    // the sample that they are found with is 5% off
    assert_true(off < 0.06 && mean < 0.055 && worst < 0.3 && bent > 0.1 && fabs(median / 0.1 - 1) < 0.3);
    cubature_poses_destroy(&poses);
    loading_destroy(&l);
    reduced_body_destroy(&reduced);
    fem_free(u);
    cubature_training_options o = cubature_training_default_options();
    cubature_training_report  report;
    cubature_rule             rule;
    o.poses = 60, o.error = 0.05, o.held_out = 40;
    assert_ok(cubature_train(&rule, c.body, R, c.U, rayleigh, &o, NULL, &report));
    printf("trained with loads: %d elements of %d, fit %.4f, held out %.4f\n", rule.count, c.mesh.element_count,
           report.fit_error, report.held_out_error);
    assert_true(report.reached && report.poses == 60 && rule.count < c.mesh.element_count / 2);
    assert_true(report.held_out_error > 0 && report.held_out_error < 0.15);
    cubature_rule_destroy(&rule);
    case_destroy(&c);
}

static bool stop_later(void *context, const char *what, double fraction) {
    (void)what, (void)fraction;
    return --*(int *)context > 0;
}

// Stopped at any moment and taken up again: the same rule as without.
static void test_checkpoint(void **state) {
    (void)state;
    polynomial_case           c;
    cubature_rule             whole, part;
    cubature_training_options o = cubature_training_default_options();
    cubature_training_report  report;
    char                      path[512];
    snprintf(path, sizeof path, "%s", test_temporary("training"));
    body_create(&c, FEM_STVK);
    o.method = CUBATURE_OPTIMIZED, o.error = 0.004, o.poses = 60, o.candidates = 100;
    assert_ok(cubature_train(&whole, c.body, R, c.U, rayleigh, &o, NULL, NULL));
    o.checkpoint = path, o.checkpoint_key = fem_hash_add((fem_hash){0}, "key", 3);
    int stops = 0;
    for (;;) {
        int          left = 5;
        fem_progress progress = {.report = stop_later, .context = &left};
        fem_status   status = cubature_train(&part, c.body, R, c.U, rayleigh, &o, &progress, &report);
        if (status == FEM_OK) break;
        assert_int_equal(status, FEM_STOPPED);
        assert_true(++stops < 40);
    }
    print_message("stopped %d times; %d elements, %d without stops\n", stops, part.count, whole.count);
    assert_true(stops > 1 && report.resumed);
    assert_int_equal(part.count, whole.count);
    assert_memory_equal(part.elements, whole.elements, (size_t)whole.count * sizeof(int));
    assert_true(test_relative_error(whole.count, part.weights, whole.weights) < 1e-9);
    cubature_rule_destroy(&part), cubature_rule_destroy(&whole);
    case_destroy(&c);
}

static void test_bad_input(void **state) {
    (void)state;
    polynomial_case           c;
    cubature_rule             rule = {0};
    cubature_training_report  report;
    cubature_training_options o = cubature_training_default_options();
    cubature_poses            none = {.r = R}, zero = {.r = R, .count = 3};
    double                    zeros[3 * R] = {0}, bad[R] = {1, 2, NAN};
    body_create(&c, FEM_STVK);
    assert_fails(cubature_fit(&rule, c.body, R, c.U, &none, &o, NULL, NULL), FEM_BAD_INPUT, "no training pose");
    zero.q = zeros, zero.f = zeros;
    assert_fails(cubature_fit(&rule, c.body, R, c.U, &zero, &o, NULL, NULL), FEM_BAD_INPUT, "all 3 training poses");
    o.given = zeros, o.given_count = 3;
    assert_fails(cubature_train(&rule, c.body, R, c.U, rayleigh, &o, NULL, NULL), FEM_BAD_INPUT, "zero or not finite");
    o.given = bad, o.given_count = 1;
    assert_fails(cubature_train(&rule, c.body, R, c.U, rayleigh, &o, NULL, NULL), FEM_BAD_INPUT,
                 "pose 1 is not finite");
    o.given_count = 0, o.loaded = false;
    const double soft[R] = {1, 0, 1, 1, 1, 1};
    assert_fails(cubature_train(&rule, c.body, R, c.U, soft, &o, NULL, NULL), FEM_BAD_INPUT, "mode 2 is 0");
    o.error = 0;
    assert_fails(cubature_train(&rule, c.body, R, c.U, rayleigh, &o, NULL, NULL), FEM_BAD_INPUT, "cubature.error is 0");
    o.error = 1e-9, o.elements = 12, o.poses = 50; // cannot be reached: the best of 12 elements, and said so
    for (int method = 0; method < 3; method++) {
        o.method = (cubature_method)method;
        assert_ok(cubature_train(&rule, c.body, R, c.U, rayleigh, &o, NULL, &report));
        print_message("%s, 12 elements at most: error %.3f with %d\n", cubature_method_name(o.method), report.fit_error,
                      rule.count);
        assert_true(!report.reached && rule.count <= 12 && rule.count > 4 && report.fit_error < 0.9);
        cubature_rule_destroy(&rule);
    }
    o.error = 0.3;
    for (int method = 0; method < 4; method++) { // the last: with loads
        int failures = 0;
        o.method = (cubature_method)(method % 3), o.loaded = method == 3;
        for (long allowed = 0;; allowed++) {
            fem_memory_fail_after(allowed);
            fem_status status = cubature_train(&rule, c.body, R, c.U, rayleigh, &o, NULL, NULL);
            fem_memory_fail_after(-1);
            if (status == FEM_OK) break;
            assert_int_equal(status, FEM_NO_MEMORY);
            failures++;
        }
        cubature_rule_destroy(&rule);
        print_message("%s: %d allocations can fail\n", cubature_method_name(o.method), failures);
        assert_true(failures > 30);
    }
    case_destroy(&c);
}

// Evenly spread: no two in one cell of half the grid's edge is not asked; that all are different, in range and as many.
static void test_sample(void **state) {
    (void)state;
    polynomial_case c;
    body_create(&c, FEM_STVK);
    int *elements = fem_alloc((size_t)c.mesh.element_count, sizeof *elements);
    for (int wanted = 1; wanted <= c.mesh.element_count; wanted *= 3) {
        int count = 0;
        assert_ok(cubature_sample_elements(&c.mesh, wanted, elements, &count));
        for (int i = 1; i < count; i++) assert_true(elements[i] > elements[i - 1]);
        assert_true(count >= 1 && count <= wanted && 3 * count >= wanted && elements[count - 1] < c.mesh.element_count);
    }
    fem_free(elements);
    case_destroy(&c);
}

// A slender body whose cells are as large as it is thick: the elements of a sample must lie at every depth of it. Those
// nearest to the centres of cells would all lie along the axis, and know nothing of bending.
static void test_sample_of_slender_body(void **state) {
    (void)state;
    fem_mesh     mesh = {0};
    const double low[3] = {0, 0, 0}, high[3] = {80, 1, 1};
    const int    cells[3] = {320, 4, 4};
    int          count = 0, parts[4] = {0};
    assert_ok(fem_generate_box(&mesh, FEM_T4, low, high, cells));
    int *elements = fem_alloc((size_t)mesh.element_count, sizeof *elements);
    assert_ok(cubature_sample_elements(&mesh, 90, elements, &count));
    for (int i = 0; i < count; i++) {
        double y = 0;
        for (int a = 0; a < 4; a++) y += mesh.vertices[3 * (size_t)mesh.elements[4 * elements[i] + a] + 1] / 4;
        parts[(int)(4 * y)]++;
    }
    print_message("%d elements, in the quarters of the thickness: %d %d %d %d\n", count, parts[0], parts[1], parts[2],
                  parts[3]);
    assert_true(count >= 60 && count <= 90);
    for (int k = 0; k < 4; k++) assert_true(parts[k] >= 6);
    fem_free(elements);
    fem_mesh_destroy(&mesh);
}

// Errors are shown in percent without exponents, at and above 100% too.
static void test_error_digits(void **state) {
    (void)state;
    static const struct {
        double      error;
        const char *shown;
    } cases[] = {{0.00988, "0.99"}, {0.0313, "3.1"}, {0.954, "95"}, {0.996, "99.6"},
                 {1, "100"},        {29.31, "2931"}, {0, "0"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[40];
        snprintf(text, sizeof text, "%.*g", cubature_error_digits(cases[i].error), 100 * cases[i].error);
        assert_string_equal(text, cases[i].shown);
    }
    assert_in_range(cubature_error_digits(INFINITY), 2, 15);
    assert_in_range(cubature_error_digits(NAN), 2, 15);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forces),
        cmocka_unit_test(test_gaussian),
        cmocka_unit_test(test_inverted_poses),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_balanced_by_modes),
        cmocka_unit_test(test_free_body),
        cmocka_unit_test(test_near_rest),
        cmocka_unit_test(test_incremental),
        cmocka_unit_test(test_springs),
        cmocka_unit_test(test_loaded),
        cmocka_unit_test(test_checkpoint),
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_sample_of_slender_body),
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_error_digits),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
