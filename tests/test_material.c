// Materials: each derivative against centred differences of the one before it, with the observed order; symmetries; the
// guard against inversion; checks of parameters.
#include "tests/support.h"

#include <math.h>

static fem_material sample_material(fem_material_kind kind) {
    fem_material m = fem_material_default();
    double       c = cos(0.7), s = sin(0.7), frame[9] = {c, -s, 0, s, c, 0, 0, 0, 1};
    m.kind = kind;
    m.young = 2.5, m.poisson = 0.35;
    m.young3[0] = 10, m.young3[1] = 3, m.young3[2] = 1.5;
    m.poisson3[0] = 0.4, m.poisson3[1] = 0.3, m.poisson3[2] = 0.05;
    m.shear3[0] = 1.1, m.shear3[1] = 0.7, m.shear3[2] = 0.9;
    memcpy(m.frame, frame, sizeof frame);
    m.mu01 = 0.6, m.mu10 = 0.9, m.v1 = 2;
    m.mu = 0.8, m.chain = 4, m.bulk = 3;
    assert_ok(fem_material_check(&m));
    return m;
}

static void random_gradient(uint64_t *seed, double amplitude, double F[9]) {
    do {
        for (int i = 0; i < 9; i++) F[i] = (i % 4 == 0) + amplitude * test_random(seed);
    } while (mat3_det(F) < 0.3);
}

static double dot(int n, const double *a, const double *b) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

typedef struct errors {
    double P, D, Q; // error of each derivative against the difference of the one before, relative
} errors;

static errors difference_errors(const fem_material_constants *c, const double F[9], const double A[9],
                                const double B[9], double h) {
    double Fp[9], Fm[9], Wp, Wm, W, P[9], D[81], Q[9], Pp[9], Pm[9], Dp[81], Dm[81], difference[9], exact[9];
    errors e;
    for (int i = 0; i < 9; i++) Fp[i] = F[i] + h * A[i], Fm[i] = F[i] - h * A[i];
    fem_material_evaluate(c, F, &W, P, D);
    fem_material_evaluate(c, Fp, &Wp, Pp, Dp);
    fem_material_evaluate(c, Fm, &Wm, Pm, Dm);
    fem_material_second(c, F, A, B, Q);
    e.P = fabs((Wp - Wm) / (2 * h) - dot(9, P, A)) / (dense_norm(9, P) * dense_norm(9, A));
    for (int p = 0; p < 9; p++) difference[p] = (Pp[p] - Pm[p]) / (2 * h), exact[p] = dot(9, D + 9 * p, A);
    e.D = test_relative_error(9, difference, exact);
    for (int p = 0; p < 9; p++) difference[p] = (dot(9, Dp + 9 * p, B) - dot(9, Dm + 9 * p, B)) / (2 * h);
    e.Q = test_relative_error(9, Q, difference);
    return e;
}

static void check_order(const char *what, double coarse, double fine) {
    double order = log2(coarse / fine);
    printf("    %s: error %.1e, order %.2f\n", what, fine, order);
    if (coarse > 1e-11 || fine > 1e-11)
        assert_true(order > 1.9 && order < 2.3); // exact where the energy is a low polynomial
}

// P is the derivative of W, D of P, and the second derivative of D, each to second order in the step of the difference
static void test_derivatives(void **state) {
    (void)state;
    for (int kind = 0; kind < FEM_MATERIAL_KINDS; kind++) {
        fem_material_constants c;
        fem_material           m = sample_material((fem_material_kind)kind);
        uint64_t               seed = 7;
        double                 F[9], A[9], B[9], P[9];
        fem_material_prepare(&c, &m);
        printf("  %s\n", fem_material_kind_name(m.kind));
        for (int trial = 0; trial < 3; trial++) {
            random_gradient(&seed, 0.4, F);
            test_random_fill(&seed, 9, 1, A);
            test_random_fill(&seed, 9, 1, B);
            fem_material_evaluate(&c, F, NULL, P, NULL);
            assert_true(dense_norm(9, P) > 1e-2); // the state is not trivial
            errors coarse = difference_errors(&c, F, A, B, 4e-3), fine = difference_errors(&c, F, A, B, 2e-3);
            check_order("P  against W", coarse.P, fine.P);
            check_order("D  against P", coarse.D, fine.D);
            if (m.kind != FEM_LINEAR) check_order("D2 against D", coarse.Q, fine.Q);
        }
    }
}

// D and the second derivative are symmetric, as derivatives of an energy must be
static void test_symmetry(void **state) {
    (void)state;
    uint64_t seed = 3;
    double   worst = 0;
    for (int kind = 0; kind < FEM_MATERIAL_KINDS; kind++) {
        fem_material_constants c;
        fem_material           m = sample_material((fem_material_kind)kind);
        double                 F[9], D[81], A[9], B[9], C[9], Q1[9], Q2[9], Q3[9];
        fem_material_prepare(&c, &m);
        random_gradient(&seed, 0.4, F);
        fem_material_evaluate(&c, F, NULL, NULL, D);
        for (int p = 0; p < 81; p++) worst = fmax(worst, fabs(D[p] - D[9 * (p % 9) + p / 9]));
        test_random_fill(&seed, 9, 1, A), test_random_fill(&seed, 9, 1, B), test_random_fill(&seed, 9, 1, C);
        fem_material_second(&c, F, A, B, Q1);
        fem_material_second(&c, F, B, A, Q2);
        fem_material_second(&c, F, A, C, Q3);
        for (int i = 0; i < 9; i++) worst = fmax(worst, fabs(Q1[i] - Q2[i]));
        worst = fmax(worst, fabs(dot(9, Q1, C) - dot(9, Q3, B)));
    }
    printf("  largest asymmetry %.1e\n", worst);
    assert_true(worst < 1e-12);
}

static void rotation(double R[9], double x, double y, double z, double angle) {
    double axis[3] = {x, y, z}, c = cos(angle), s = sin(angle);
    vec3_normalize(axis);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) R[3 * i + j] = c * (i == j) + (1 - c) * axis[i] * axis[j];
    R[1] -= s * axis[2], R[2] += s * axis[1], R[3] += s * axis[2];
    R[5] -= s * axis[0], R[6] -= s * axis[1], R[7] += s * axis[0];
}

// a rotation costs nothing, and a rotation after the deformation changes no energy (all but the small-strain material);
// a rotation before it changes none for isotropic materials
static void test_objectivity(void **state) {
    (void)state;
    double   R[9], F[9], RF[9], FR[9], W, W1, W2, P[9];
    uint64_t seed = 11;
    rotation(R, 1, 2, -0.5, 2.1);
    for (int kind = FEM_STVK; kind < FEM_MATERIAL_KINDS; kind++) {
        fem_material_constants c;
        fem_material           m = sample_material((fem_material_kind)kind);
        fem_material_prepare(&c, &m);
        fem_material_evaluate(&c, R, &W, P, NULL);
        random_gradient(&seed, 0.3, F);
        mat3_mul(RF, R, F), mat3_mul(FR, F, R);
        printf("  %-13s W(R) %.1e |P(R)| %.1e", fem_material_kind_name(m.kind), W, dense_norm(9, P));
        assert_true(fabs(W) < 1e-13 && dense_norm(9, P) < 1e-13);
        fem_material_evaluate(&c, F, &W, NULL, NULL);
        fem_material_evaluate(&c, RF, &W1, NULL, NULL);
        fem_material_evaluate(&c, FR, &W2, NULL, NULL);
        printf("  W(RF)/W(F) - 1 = %.1e  W(FR)/W(F) - 1 = %.1e\n", W1 / W - 1, W2 / W - 1);
        assert_true(W > 1e-3 && fabs(W1 / W - 1) < 1e-12);
        if (m.kind == FEM_ORTHOTROPIC)
            assert_true(fabs(W2 / W - 1) > 1e-3);
        else
            assert_true(fabs(W2 / W - 1) < 1e-12);
    }
}

// at rest, StVK and Neo-Hookean have the stiffness of the small-strain material; Mooney-Rivlin has mu = mu01 + mu10
// times 2 and bulk modulus 2 v1; Arruda-Boyce has the shear modulus of its series and bulk modulus k
static void test_small_strain_limit(void **state) {
    (void)state;
    double                 identity[9], D[81], L[81];
    fem_material           linear = sample_material(FEM_LINEAR);
    fem_material_constants c;
    mat3_identity(identity);
    for (int kind = FEM_STVK; kind < FEM_MATERIAL_KINDS; kind++) {
        fem_material m = sample_material((fem_material_kind)kind), equal = linear;
        double       mu = 0, bulk = 0;
        if (kind == FEM_ORTHOTROPIC) { // isotropic constants in a turned frame
            for (int i = 0; i < 3; i++)
                m.young3[i] = m.young, m.poisson3[i] = m.poisson, m.shear3[i] = m.young / (2 * (1 + m.poisson));
        } else if (kind == FEM_MOONEY_RIVLIN) {
            mu = 2 * (m.mu01 + m.mu10), bulk = 2 * m.v1;
        } else if (kind == FEM_ARRUDA_BOYCE) { // mu_0 = 2 dW/dI1 at rest = 2 mu sum i c_i (3/N)^(i-1)
            const double series[5] = {1.0 / 2, 1.0 / 20, 11.0 / 1050, 19.0 / 7000, 519.0 / 673750};
            for (int i = 1; i <= 5; i++) mu += 2 * m.mu * i * series[i - 1] * pow(3 / m.chain, i - 1);
            bulk = m.bulk;
        }
        if (mu > 0) {
            equal.young = 9 * bulk * mu / (3 * bulk + mu);
            equal.poisson = (3 * bulk - 2 * mu) / (2 * (3 * bulk + mu));
        }
        fem_material_prepare(&c, &equal);
        fem_material_evaluate(&c, identity, NULL, NULL, L);
        fem_material_prepare(&c, &m);
        fem_material_evaluate(&c, identity, NULL, NULL, D);
        double error = test_relative_error(81, D, L);
        printf("  %-13s stiffness at rest against the linear one: %.1e\n", fem_material_kind_name(m.kind), error);
        assert_true(error < 1e-12);
    }
}

// pulled along its first axis, an orthotropic material shows E1, nu12 and nu13 = nu31 E1/E3
static void test_orthotropic_constants(void **state) {
    (void)state;
    fem_material           m = sample_material(FEM_ORTHOTROPIC);
    fem_material_constants c;
    mat3_identity(m.frame);
    fem_material_prepare(&c, &m);
    // strain of a uniaxial stress s along axis 1: e1 = s/E1, e2 = -nu12 e1, e3 = -nu13 e1 with nu13/E1 = nu31/E3
    double e1 = 1e-7, e2 = -m.poisson3[0] * e1, e3 = -m.poisson3[2] / m.young3[2] * m.young3[0] * e1;
    double F[9] = {1 + e1, 0, 0, 0, 1 + e2, 0, 0, 0, 1 + e3}, P[9];
    fem_material_evaluate(&c, F, NULL, P, NULL);
    printf("  E1 %.8f, stress across the axis %.1e of that along it\n", P[0] / e1, fmax(fabs(P[4]), fabs(P[8])) / P[0]);
    assert_true(fabs(P[0] / e1 / m.young3[0] - 1) < 1e-6);
    assert_true(fmax(fabs(P[4]), fabs(P[8])) < 1e-6 * P[0]);
    double G[9] = {1, 1e-7, 0, 0, 1, 0, 0, 0, 1};
    fem_material_evaluate(&c, G, NULL, P, NULL);
    assert_true(fabs(P[1] / 1e-7 / m.shear3[0] - 1) < 1e-6);
}

// inverted states have finite energy, force and stiffness that are still derivatives of each other, and energy, P and D
// are continuous where the guard begins
static void test_inversion_guard(void **state) {
    (void)state;
    for (int kind = FEM_NEOHOOKEAN; kind < FEM_MATERIAL_KINDS; kind++) {
        fem_material_constants c;
        fem_material           m = sample_material((fem_material_kind)kind);
        double   F[9] = {1.2, 0.1, 0, -0.2, 0.9, 0.1, 0.05, 0.1, -0.4}, A[9], B[9], W[2], P[2][9], D[2][81];
        uint64_t seed = 5;
        fem_material_prepare(&c, &m);
        assert_true(mat3_det(F) < -0.2);
        test_random_fill(&seed, 9, 1, A), test_random_fill(&seed, 9, 1, B);
        printf("  %s, J = %.2f\n", fem_material_kind_name(m.kind), mat3_det(F));
        errors coarse = difference_errors(&c, F, A, B, 4e-3), fine = difference_errors(&c, F, A, B, 2e-3);
        check_order("P  against W", coarse.P, fine.P);
        check_order("D  against P", coarse.D, fine.D);
        for (int side = 0; side < 2; side++) { // just above and just below J0
            double G[9] = {1, 0, 0, 0, 1, 0, 0, 0, m.inversion_threshold * (1 + (side ? -1e-10 : 1e-10))};
            fem_material_evaluate(&c, G, &W[side], P[side], D[side]);
        }
        double jump =
            fmax(fabs(W[1] / W[0] - 1), fmax(test_relative_error(9, P[1], P[0]), test_relative_error(81, D[1], D[0])));
        printf("    jump at J0: %.1e\n", jump);
        assert_true(jump < 1e-7);
        double flat[9] = {1, 0, 0, 0, 1, 0, 0, 0, 0};
        fem_material_evaluate(&c, flat, &W[0], P[0], D[0]);
        assert_true(isfinite(W[0]) && P[0][8] < 0); // pushes back out
    }
}

// wrong parameters are named
static void test_checks(void **state) {
    (void)state;
    fem_material m = fem_material_default();
    m.density = 0;
    assert_fails(fem_material_check(&m), FEM_BAD_INPUT, "density is 0, expected > 0");
    m = fem_material_default(), m.poisson = 0.5;
    assert_fails(fem_material_check(&m), FEM_BAD_INPUT, "Poisson's ratio is 0.5, expected -1 < nu < 0.5");
    m = fem_material_default(), m.young = NAN;
    assert_fails(fem_material_check(&m), FEM_BAD_INPUT, "Young's modulus is nan, expected > 0");
    m = sample_material(FEM_ORTHOTROPIC), m.poisson3[0] = 2;
    assert_fails(fem_material_check(&m), FEM_BAD_INPUT, "do not fit E1, E2, E3");
    m = sample_material(FEM_ORTHOTROPIC), m.frame[0] = 2;
    assert_fails(fem_material_check(&m), FEM_BAD_INPUT, "not at right angles");
    m = sample_material(FEM_MOONEY_RIVLIN), m.mu01 = m.mu10 = 0;
    assert_fails(fem_material_check(&m), FEM_BAD_INPUT, "not both 0");
    m = sample_material(FEM_ARRUDA_BOYCE), m.chain = -1;
    assert_fails(fem_material_check(&m), FEM_BAD_INPUT, "N (chain) is -1");
    m = sample_material(FEM_NEOHOOKEAN), m.inversion_threshold = 1;
    assert_fails(fem_material_check(&m), FEM_BAD_INPUT, "inversion threshold is 1");
    for (int kind = 0; kind < FEM_MATERIAL_KINDS; kind++) {
        fem_material_kind back;
        assert_true(fem_material_kind_from_name(&back, fem_material_kind_name((fem_material_kind)kind)) &&
                    (int)back == kind);
    }
    fem_material_kind none;
    assert_false(fem_material_kind_from_name(&none, "rubber"));
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_derivatives),
        cmocka_unit_test(test_symmetry),
        cmocka_unit_test(test_objectivity),
        cmocka_unit_test(test_small_strain_limit),
        cmocka_unit_test(test_orthotropic_constants),
        cmocka_unit_test(test_inversion_guard),
        cmocka_unit_test(test_checks),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
