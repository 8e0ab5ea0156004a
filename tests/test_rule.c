// Evaluation of cubature rules: against the full mesh, against textbook loops, against differences; batches.
#include "tests/rule_case.h"

enum { R = 7 };
static const int cells[3] = {3, 2, 2};

static const struct {
    fem_element       type;
    int               count;
    fem_material_kind kinds[3];
} bodies[] = {
    {FEM_T4, 1, {FEM_STVK}},
    {FEM_T4, 3, {FEM_NEOHOOKEAN, FEM_MOONEY_RIVLIN, FEM_ARRUDA_BOYCE}},
    {FEM_H8, 2, {FEM_NEOHOOKEAN, FEM_ORTHOTROPIC}},
    {FEM_H8, 1, {FEM_MOONEY_RIVLIN}},
    {FEM_T4, 2, {FEM_LINEAR, FEM_STVK}},
};
enum { BODIES = sizeof bodies / sizeof *bodies };

static void body_create(polynomial_case *c, int body) {
    rule_case_create(c, bodies[body].type, bodies[body].count, bodies[body].kinds, R, cells);
}

static double *work_for(const cubature_forces *forces) {
    double *work = fem_alloc(forces->work + 1, sizeof *work);
    assert_non_null(work);
    return work;
}

// All elements with weight 1 are the body itself.
static void test_all_elements(void **state) {
    (void)state;
    for (int body = 0; body < BODIES; body++) {
        polynomial_case c;
        cubature_rule   rule;
        uint64_t        seed = 4;
        double          q[R], e, f[R], K[R * R], e0, f0[R], K0[R * R];
        body_create(&c, body);
        rule_case_rule(&c, 1, false, &rule);
        cubature_forces forces = cubature_rule_forces(&rule), full = cubature_full_forces(c.full);
        double         *work = work_for(&forces);
        test_random_fill(&seed, R, 0.15, q);
        forces.evaluate(forces.model, q, &e, f, K, work);
        full.evaluate(full.model, q, &e0, f0, K0, c.work);
        double ef = test_relative_error(R, f, f0), eK = test_relative_error(R * R, K, K0);
        print_message("body %d: |f| %.2g, errors of energy %.1e, f %.1e, K %.1e\n", body, dense_norm(R, f0),
                      fabs(e / e0 - 1), ef, eK);
        assert_true(dense_norm(R, f0) > 1e-3 && e0 > 1e-4);
        assert_true(fabs(e / e0 - 1) < 1e-10 && ef < 1e-10 && eK < 1e-10);
        fem_free(work);
        cubature_rule_destroy(&rule);
        case_destroy(&c);
    }
}

// Fast against textbook loops, weighted; K of a modal rule is the symmetric part of the textbook's, which differs.
static void test_plain(void **state) {
    (void)state;
    for (int body = 0; body < BODIES; body++)
        for (int modal = 0; modal < 2; modal++) {
            polynomial_case c;
            cubature_rule   rule;
            uint64_t        seed = 5;
            double          q[R], p[R], e, f[R], K[R * R], Kp[R], e0, f0[R], K0[R * R], S[R * R], Kp0[R], skew = 0;
            body_create(&c, body);
            rule_case_rule(&c, 3, modal, &rule);
            cubature_forces forces = cubature_rule_forces(&rule);
            double         *work = work_for(&forces);
            test_random_fill(&seed, R, 0.2, q);
            test_random_fill(&seed, R, 1, p);
            forces.evaluate(forces.model, q, &e, f, K, work);
            forces.product(forces.model, q, p, Kp, work);
            cubature_rule_plain(&rule, q, &e0, f0, K0);
            dense_gemv_set(R, R, 1, K0, p, Kp0);
            for (int i = 0; i < R; i++)
                for (int j = 0; j < R; j++) {
                    S[i * R + j] = (K0[i * R + j] + K0[j * R + i]) / 2;
                    skew = fmax(skew, fabs(K0[i * R + j] - K0[j * R + i]));
                }
            double ef = test_relative_error(R, f, f0), eK = test_relative_error(R * R, K, S);
            double ep = test_relative_error(R, Kp, Kp0);
            skew /= dense_norm(R * R, K0);
            print_message("body %d, %s: errors %.1e %.1e %.1e, product %.1e; asymmetry %.1e\n", body,
                          modal ? "modal" : "one weight", fabs(e / e0 - 1), ef, eK, ep, skew);
            assert_true(fabs(e / e0 - 1) < 1e-11 && ef < 1e-11 && eK < 1e-11 && ep < 1e-11);
            assert_true(modal ? skew > 1e-3 : skew < 1e-13);
            assert_true(forces.nonconservative == (modal == 1));
            fem_free(work);
            cubature_rule_destroy(&rule);
            case_destroy(&c);
        }
}

// f is the gradient of the energy and K its derivative, to second order; a modal rule's product is the derivative of f.
static double difference_error(const cubature_forces *forces, const double *q, double step, bool energy, double *work) {
    double f[R], K[R * R], worst = 0, size = 0;
    forces->evaluate(forces->model, q, NULL, f, K, work);
    for (int i = 0; i < R; i++) {
        double p[R], m[R], fp[R], fm[R], ep, em, column[R], unit[R] = {0};
        memcpy(p, q, sizeof p), memcpy(m, q, sizeof m);
        p[i] += step, m[i] -= step, unit[i] = 1;
        forces->evaluate(forces->model, p, &ep, fp, NULL, work);
        forces->evaluate(forces->model, m, &em, fm, NULL, work);
        forces->product(forces->model, q, unit, column, work);
        size = fmax(size, energy ? fabs(f[i]) : dense_norm(R, column));
        if (energy) worst = fmax(worst, fabs((ep - em) / (2 * step) - f[i]));
        for (int j = 0; !energy && j < R; j++) worst = fmax(worst, fabs((fp[j] - fm[j]) / (2 * step) - column[j]));
    }
    return worst / size;
}

static void test_derivatives(void **state) {
    (void)state;
    for (int modal = 0; modal < 2; modal++)
        for (int energy = 0; energy < 2 - modal; energy++) {
            polynomial_case c;
            cubature_rule   rule;
            uint64_t        seed = 6;
            double          q[R];
            body_create(&c, 1);
            rule_case_rule(&c, 4, modal, &rule);
            cubature_forces forces = cubature_rule_forces(&rule);
            double         *work = work_for(&forces);
            test_random_fill(&seed, R, 0.2, q);
            double e1 = difference_error(&forces, q, 2e-3, energy, work);
            double e2 = difference_error(&forces, q, 1e-3, energy, work);
            print_message("%s, %s: errors %.1e %.1e, order %.2f\n", modal ? "modal" : "one weight",
                          energy ? "force from energy" : "product from force", e1, e2, log2(e1 / e2));
            assert_true(log2(e1 / e2) > 1.9 && e2 < 1e-3);
            fem_free(work);
            cubature_rule_destroy(&rule);
            case_destroy(&c);
        }
}

static void test_batch(void **state) {
    (void)state;
    for (int modal = 0; modal < 2; modal++) {
        polynomial_case c;
        cubature_rule   rule;
        cubature_batch *batch = NULL;
        uint64_t        seed = 8;
        enum { BLOCKS = 3, PAIRS = R * (R + 1) / 2 };
        double q[BLOCKS * R * 8], factor[BLOCKS * 8], e[BLOCKS * 8], f[BLOCKS * R * 8], K[BLOCKS * PAIRS * 8],
            worst = 0;
        body_create(&c, 2);
        rule_case_rule(&c, 3, modal, &rule);
        assert_ok(cubature_batch_create_rule(&batch, &rule));
        cubature_forces forces = cubature_rule_forces(&rule);
        double         *work = work_for(&forces), *lanes = fem_alloc(cubature_batch_work(batch), sizeof *lanes);
        test_random_fill(&seed, BLOCKS * R * 8, 0.2, q);
        for (int i = 0; i < BLOCKS * 8; i++) factor[i] = 1 + 0.1 * i;
        cubature_batch_evaluate(batch, BLOCKS, q, factor, e, f, K, lanes);
        for (int i = 0; i < BLOCKS * 8; i++) {
            double one[R], e1, f1[R], K1[R * R], w = factor[i];
            int    b = i / 8, lane = i % 8;
            for (int l = 0; l < R; l++) one[l] = q[(b * R + l) * 8 + lane];
            forces.evaluate(forces.model, one, &e1, f1, K1, work);
            worst = fmax(worst, fabs(e[i] / (w * e1) - 1));
            for (int l = 0; l < R; l++)
                worst = fmax(worst, fabs(f[(b * R + l) * 8 + lane] - w * f1[l]) / (w * dense_norm(R, f1)));
            for (int j = 0, pair = 0; j < R; j++)
                for (int l = 0; l <= j; l++, pair++)
                    worst = fmax(worst, fabs(K[(b * PAIRS + pair) * 8 + lane] - w * K1[j * R + l]) /
                                            (w * dense_norm(R * R, K1)));
        }
        print_message("%s: 24 instances against one at a time %.1e\n", modal ? "modal" : "one weight", worst);
        assert_true(worst < 1e-12);
        fem_free(work), fem_free(lanes);
        cubature_batch_destroy(batch);
        cubature_rule_destroy(&rule);
        case_destroy(&c);
    }
}

static void test_bad_rules(void **state) {
    (void)state;
    polynomial_case c;
    cubature_rule   rule = {0};
    body_create(&c, 0);
    const int    twice[2] = {3, 3}, outside[1] = {c.mesh.element_count};
    const double ones[2] = {1, 1}, negative[1] = {-1}, undefined[1] = {NAN};
    assert_fails(cubature_rule_create(&rule, c.body, R, c.U, 2, twice, false, ones), FEM_BAD_INPUT, "ascending");
    assert_fails(cubature_rule_create(&rule, c.body, R, c.U, 1, outside, false, ones), FEM_BAD_INPUT, "ascending");
    assert_fails(cubature_rule_create(&rule, c.body, R, c.U, 1, twice, false, negative), FEM_BAD_INPUT, "weight");
    assert_fails(cubature_rule_create(&rule, c.body, R, c.U, 1, twice, false, undefined), FEM_BAD_INPUT, "weight");
    assert_fails(cubature_rule_create(&rule, c.body, R, c.U, 0, twice, false, ones), FEM_BAD_INPUT, "0 elements");
    int failures = 0;
    for (long allowed = 0;; allowed++) {
        fem_memory_fail_after(allowed);
        fem_status status = cubature_rule_create(&rule, c.body, R, c.U, 1, twice, false, ones);
        fem_memory_fail_after(-1);
        if (status == FEM_OK) break;
        assert_int_equal(status, FEM_NO_MEMORY);
        failures++;
    }
    print_message("%d allocations can fail\n", failures);
    assert_true(failures > 5);
    cubature_rule_destroy(&rule);
    case_destroy(&c);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_elements), cmocka_unit_test(test_plain),     cmocka_unit_test(test_derivatives),
        cmocka_unit_test(test_batch),        cmocka_unit_test(test_bad_rules),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
