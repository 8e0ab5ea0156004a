// Interface frames: polar decomposition with gradient and Hessian, thick and flat interfaces, hard cases.
#include "tests/support.h"

#include <cjson/cJSON.h>
#include <math.h>

static uint64_t seed;

static double random_number(void) { return test_random(&seed); }

static double difference(int n, const double *x, const double *y) {
    double largest = 0;
    for (int i = 0; i < n; i++) largest = fmax(largest, fabs(x[i] - y[i]));
    return largest;
}

// R of a rotation vector, by Rodrigues' formula
static void rotation(const double t[3], double R[9]) {
    double angle = vec3_norm(t), s = angle > 0 ? sin(angle) / angle : 1,
           c = angle > 0 ? (1 - cos(angle)) / angle / angle : 0;
    double X[9] = {0, -t[2], t[1], t[2], 0, -t[0], -t[1], t[0], 0}, XX[9];
    mat3_mul(XX, X, X);
    for (int i = 0; i < 9; i++) R[i] = (i % 4 == 0) + s * X[i] + c * XX[i];
}

static void random_rotation(double size, double R[9]) {
    double t[3];
    test_random_fill(&seed, 3, size, t);
    rotation(t, R);
}

// ([dw] + [w]^2) R, or [w] R when dw is NULL
static void derivative_of_rotation(const double w[3], const double *dw, const double R[9], double out[9]) {
    double X[9] = {0, -w[2], w[1], w[2], 0, -w[0], -w[1], w[0], 0}, Y[9];
    if (dw) {
        mat3_mul(Y, X, X);
        Y[1] -= dw[2], Y[2] += dw[1], Y[3] += dw[2], Y[5] -= dw[0], Y[6] -= dw[1], Y[7] += dw[0];
        mat3_mul(out, Y, R);
    } else
        mat3_mul(out, X, R);
}

// ---- VegaFEM ----------------------------------------------------------------------------------------------------

static void numbers(const cJSON *json, const char *prefix, const char *key, int count, double *out) {
    char name[64];
    snprintf(name, sizeof name, "%s%s", prefix, key);
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(json, name), *entry;
    assert_non_null(array);
    assert_int_equal(cJSON_GetArraySize(array), count);
    int k = 0;
    cJSON_ArrayForEach(entry, array) out[k++] = entry->valuedouble;
}

// Rotation, stretch, first and second derivatives of VegaFEM's polar decomposition, to 1e-9.
static void test_vega(void **unused) {
    (void)unused;
    const char *path = test_data("reference/vega/polar_decomposition_gradient.json");
    if (!path) return;
    char  *text = NULL;
    size_t size;
    assert_ok(fem_file_read(&text, &size, path));
    cJSON *json = cJSON_Parse(text);
    assert_non_null(json);
    fem_free(text);
    double dA[9], ddA[9], worst = 0;
    numbers(json, "", "MDot", 9, dA);
    numbers(json, "", "MDotDot", 9, ddA);
    for (int k = 1; k <= 3; k++) {
        char         prefix[8];
        double       A[9], Q[9], S[9], omega[3], domega[3], QDot[9], QDotDot[9], w[3], dw[3], out[9], L[9];
        domain_polar polar;
        snprintf(prefix, sizeof prefix, "M%d_", k);
        numbers(json, prefix, "M", 9, A);
        numbers(json, prefix, "Q", 9, Q);
        numbers(json, prefix, "S", 9, S);
        numbers(json, prefix, "omega", 3, omega);
        numbers(json, prefix, "omegaDot", 3, domega);
        numbers(json, prefix, "QDot", 9, QDot);
        numbers(json, prefix, "QDotDot", 9, QDotDot);
        domain_polar_decompose(&polar, A, NULL);
        domain_polar_first(&polar, dA, w);
        domain_polar_second(&polar, dA, ddA, w, dw);
        double error = fmax(difference(9, polar.R, Q), fmax(difference(3, w, omega), difference(3, dw, domega)));
        mat3_mul(L, Q, S); // = A; R S R^T = A R^T
        mat3_mul_nt(out, L, Q);
        error = fmax(error, difference(9, polar.L, out));
        derivative_of_rotation(w, NULL, polar.R, out);
        error = fmax(error, difference(9, out, QDot));
        derivative_of_rotation(w, dw, polar.R, out);
        error = fmax(error, difference(9, out, QDotDot));
        worst = fmax(worst, error);
    }
    printf("   VegaFEM's polar decompositions and their derivatives: largest difference %.1e\n", worst);
    assert_true(worst < 1e-9);
    cJSON_Delete(json);
}

// ---- derivatives of frames --------------------------------------------------------------------------------------

enum { POINTS = 14, MODES = 5 };

typedef struct sample {
    double           points[3 * POINTS], weights[POINTS], rows[3 * POINTS * MODES], rest[9];
    domain_interface interface;
} sample;

static void make_sample(sample *s, bool flat, double amplitude) {
    double turn[9];
    random_rotation(2, turn);
    for (int k = 0; k < POINTS; k++) {
        double local[3] = {random_number(), 0.6 * random_number(), flat ? 0 : 0.8 * random_number()};
        mat3_mul_vec(s->points + 3 * k, turn, local);
        s->points[3 * k] += 2;
        s->weights[k] = 1 + 0.5 * random_number();
    }
    test_random_fill(&seed, 3 * POINTS * MODES, amplitude, s->rows);
    for (int l = 0; l < MODES; l++) // a part that turns the interface, so that R moves
        for (int k = 0; k < POINTS; k++) {
            double axis[3] = {l == 0, l == 1, l == 2}, u[3];
            vec3_cross(u, axis, s->points + 3 * k);
            vec3_axpy(s->rows + 3 * (POINTS * l + k), 0.7, u);
        }
    random_rotation(2, s->rest);
    assert_ok(domain_interface_create(&s->interface, POINTS, s->points, s->weights, MODES, s->rows, s->rest));
    assert_int_equal(s->interface.flat, flat);
}

// The pose along q + t dq, without any warm start.
static void pose_at(const sample *s, const double *q, const double *dq, double t, double *x, double *R) {
    double       moved[MODES];
    domain_frame frame;
    for (int l = 0; l < MODES; l++) moved[l] = q[l] + t * dq[l];
    domain_frame_pose(&s->interface, moved, NULL, &frame);
    memcpy(x, frame.x, sizeof frame.x);
    memcpy(R, frame.R, sizeof frame.R);
}

// v, w, bias and W against centred differences of the pose, to second order in the step, on thick and flat interfaces.
static void test_derivatives(void **unused) {
    (void)unused;
    seed = 3;
    for (int flat = 0; flat < 2; flat++) {
        sample       s;
        domain_frame frame;
        double       q[MODES], dq[MODES], error[3][2], exact[2][9], W[3 * 8], w[3];
        make_sample(&s, flat, 0.3);
        test_random_fill(&seed, MODES, 0.5, q);
        test_random_fill(&seed, MODES, 1, dq);
        domain_frame_motion(&s.interface, q, dq, NULL, &frame);
        assert_int_equal(frame.polar.flags, 0);
        derivative_of_rotation(frame.w, NULL, frame.R, exact[0]);
        derivative_of_rotation(frame.w, frame.bias, frame.R, exact[1]);
        for (int k = 0; k < 2; k++) {
            double step = k ? 1e-3 : 2e-3, x[3][3], R[3][9], first[9], second[9], v[3];
            for (int side = 0; side < 3; side++) pose_at(&s, q, dq, (side - 1) * step, x[side], R[side]);
            for (int i = 0; i < 9; i++) {
                first[i] = (R[2][i] - R[0][i]) / (2 * step);
                second[i] = (R[2][i] - 2 * R[1][i] + R[0][i]) / (step * step);
            }
            for (int i = 0; i < 3; i++) v[i] = (x[2][i] - x[0][i]) / (2 * step);
            error[0][k] = difference(9, first, exact[0]);
            error[1][k] = difference(9, second, exact[1]);
            error[2][k] = difference(3, v, frame.v);
        }
        double deviation = domain_frame_deviation(&frame), order[2];
        for (int i = 0; i < 2; i++) order[i] = log2(error[i][0] / error[i][1]);
        printf("   %s interface: |F - R|/|R| %.2f, dR error %.1e order %.2f, ddR error %.1e order %.2f, |ddR| %.1f\n",
               flat ? "flat " : "thick", deviation, error[0][1], order[0], error[1][1], order[1],
               dense_norm(9, exact[1]));
        assert_true(dense_norm(9, exact[1]) > 0.1 && deviation > 0.01);
        assert_true(fabs(order[0] - 2) < 0.1 && fabs(order[1] - 2) < 0.1);
        assert_true(error[2][1] < 1e-9);
        // W dq = w, for each mode alone too
        domain_frame_gradient(&s.interface, &frame, W);
        for (int i = 0; i < 3; i++) w[i] = dense_dot(MODES, W + 8 * i, dq);
        assert_true(difference(3, w, frame.w) < 1e-13);
        for (int l = 0; l < MODES; l++) {
            double       unit[MODES] = {0}, column[3] = {W[l], W[8 + l], W[16 + l]};
            domain_frame one;
            unit[l] = 1;
            domain_frame_motion(&s.interface, q, unit, frame.polar.R, &one);
            assert_true(difference(3, column, one.w) < 1e-13);
        }
        for (int l = MODES; l < 8; l++) assert_true(W[l] == 0 && W[8 + l] == 0 && W[16 + l] == 0);
        domain_interface_destroy(&s.interface);
    }
}

// Thick: A(q) of P1 eq. 2 to 4, summed directly, has the same rotation. Flat: theory's in-plane fit, summed directly.
static void test_definition(void **unused) {
    (void)unused;
    seed = 9;
    for (int flat = 0; flat < 2; flat++) {
        sample s;
        double q[MODES], x[3] = {0}, a[3] = {0}, total = 0, B[9] = {0}, C[9] = {0}, I[9], A[9], y[3 * POINTS];
        make_sample(&s, flat, 0.2);
        test_random_fill(&seed, MODES, 0.6, q);
        for (int k = 0; k < POINTS; k++) {
            for (int i = 0; i < 3; i++) {
                y[3 * k + i] = s.points[3 * k + i];
                for (int l = 0; l < MODES; l++) y[3 * k + i] += s.rows[3 * (POINTS * l + k) + i] * q[l];
                x[i] += s.weights[k] * s.points[3 * k + i], a[i] += s.weights[k] * y[3 * k + i];
            }
            total += s.weights[k];
        }
        for (int i = 0; i < 3; i++) x[i] /= total, a[i] /= total;
        double normal[3] = {s.interface.T[2], s.interface.T[5], s.interface.T[8]};
        for (int k = 0; k < POINTS; k++)
            for (int i = 0; i < 9; i++) {
                B[i] += s.weights[k] * (y[3 * k + i / 3] - a[i / 3]) * (s.points[3 * k + i % 3] - x[i % 3]);
                C[i] += s.weights[k] * (s.points[3 * k + i / 3] - x[i / 3]) * (s.points[3 * k + i % 3] - x[i % 3]);
            }
        if (flat) { // C+ = (C + N N^T)^-1 - N N^T; then the cross product as the image of the normal
            for (int i = 0; i < 9; i++) C[i] += normal[i / 3] * normal[i % 3];
            mat3_inverse(I, C);
            for (int i = 0; i < 9; i++) I[i] -= normal[i / 3] * normal[i % 3];
            mat3_mul(A, B, I);
            double t1[3] = {s.interface.T[0], s.interface.T[3], s.interface.T[6]}, t2[3], b1[3], b2[3], c[3];
            vec3_cross(t2, normal, t1);
            mat3_mul_vec(b1, A, t1);
            mat3_mul_vec(b2, A, t2);
            vec3_cross(c, b1, b2);
            for (int i = 0; i < 9; i++) A[i] += c[i / 3] * normal[i % 3];
        } else {
            mat3_inverse(I, C);
            mat3_mul(A, B, I);
        }
        domain_frame frame;
        domain_polar polar;
        double       R[9];
        domain_frame_pose(&s.interface, q, NULL, &frame);
        mat3_mul(I, A, s.rest); // A of P1 has the rest rotation on the right
        domain_polar_decompose(&polar, I, NULL);
        memcpy(R, polar.R, sizeof R);
        double error = fmax(difference(9, frame.R, R), difference(3, frame.x, a));
        printf("   %s interface against direct sums: %.1e\n", flat ? "flat " : "thick", error);
        assert_true(error < 1e-12);
        domain_interface_destroy(&s.interface);
    }
}

// An interface that turns rigidly has exactly that rotation, however far, tilted or twisted (P1's extra point halves
// tilts), and small turns give W = the axis.
static void test_rigid_turn(void **unused) {
    (void)unused;
    seed = 5;
    double worst = 0;
    for (int flat = 0; flat < 2; flat++)
        for (int trial = 0; trial < 6; trial++) {
            sample s;
            make_sample(&s, flat, 0);
            double           axis[3], turn[9], rows[3 * POINTS * 4] = {0}, one[4] = {1, 0, 0, 0}, zero[4] = {0}, R[9];
            double           W[3 * 8];
            domain_interface interface;
            domain_frame     frame;
            test_random_fill(&seed, 3, 1.5, axis);
            rotation(axis, turn);
            for (int k = 0; k < POINTS; k++) {
                double moved[3];
                mat3_mul_vec(moved, turn, s.points + 3 * k);
                for (int i = 0; i < 3; i++) rows[3 * k + i] = moved[i] - s.points[3 * k + i] + 0.3;
                for (int l = 1; l < 4; l++) {
                    double unit[3] = {l == 1, l == 2, l == 3};
                    vec3_cross(rows + 3 * (POINTS * l + k), unit, s.points + 3 * k);
                }
            }
            assert_ok(domain_interface_create(&interface, POINTS, s.points, s.weights, 4, rows, s.rest));
            domain_frame_pose(&interface, one, NULL, &frame);
            mat3_mul(R, turn, s.rest);
            worst = fmax(worst, difference(9, R, frame.R));
            domain_frame_pose(&interface, zero, NULL, &frame);
            worst = fmax(worst, difference(9, s.rest, frame.R));
            domain_frame_gradient(&interface, &frame, W);
            for (int l = 1; l < 4; l++)
                for (int i = 0; i < 3; i++) worst = fmax(worst, fabs(W[8 * i + l] - (i == l - 1)));
            domain_interface_destroy(&interface);
            domain_interface_destroy(&s.interface);
        }
    printf("   rigid turns, thick and flat, up to 150 degrees: %.1e\n", worst);
    assert_true(worst < 1e-12);
}

// ---- the rotation where it is hard to tell ----------------------------------------------------------------------

static double alignment(const double A[9], const double R[9]) { return dense_dot(9, A, R); }

// A = U diag(s) V^T with random rotations
static void with_singular_values(const double s[3], double A[9]) {
    double U[9], V[9], D[9];
    random_rotation(3, U);
    random_rotation(3, V);
    for (int i = 0; i < 9; i++) D[i] = U[i] * s[i % 3];
    mat3_mul_nt(A, D, V);
}

// Whatever A is, R is a rotation, none nearby is nearer, and it is flagged where it is reflected or hardly defined.
static void test_hard(void **unused) {
    (void)unused;
    seed = 17;
    static const struct {
        double s[3];
        int    flags;
    } cases[] = {
        {{1.2, 1, 0.8}, 0},
        {{1, 1, 1e-9}, 0},
        {{1, 0.9, -0.3}, DOMAIN_REFLECTED},
        {{1, 0.9, -0.8995}, DOMAIN_REFLECTED | DOMAIN_NEAR_SINGULAR},
        {{1, 1, -1}, DOMAIN_REFLECTED | DOMAIN_NEAR_SINGULAR},
        {{1, 1e-9, 1e-9}, DOMAIN_NEAR_SINGULAR | DOMAIN_REFLECTED},
        {{1, 0, 0}, DOMAIN_NEAR_SINGULAR | DOMAIN_REFLECTED},
        {{0, 0, 0}, DOMAIN_NEAR_SINGULAR | DOMAIN_REFLECTED},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int trial = 0; trial < 20; trial++) {
            double       A[9], N[9], nudge[9], other[9], dA[9], w[3], dw[3];
            domain_polar polar;
            with_singular_values(cases[c].s, A);
            domain_polar_decompose(&polar, A, NULL);
            mat3_mul_nt(N, polar.R, polar.R);
            for (int i = 0; i < 9; i++) assert_true(fabs(N[i] - (i % 4 == 0)) < 1e-14);
            assert_true(fabs(mat3_det(polar.R) - 1) < 1e-14);
            assert_true(fabs(alignment(A, polar.R) - (cases[c].s[0] + cases[c].s[1] + cases[c].s[2])) < 1e-13);
            for (int k = 0; k < 10; k++) {
                random_rotation(k < 5 ? 0.01 : 3, nudge);
                mat3_mul(other, nudge, polar.R);
                assert_true(alignment(A, other) <= alignment(A, polar.R) + 1e-13);
            }
            // det A of a singular matrix has the sign of its rounding
            int told = fabs(cases[c].s[1] * cases[c].s[2]) < 1e-15 ? polar.flags | DOMAIN_REFLECTED : polar.flags;
            if (told != cases[c].flags) fail_msg("case %zu: flags %d, expected %d", c, told, cases[c].flags);
            test_random_fill(&seed, 9, 1, dA);
            domain_polar_first(&polar, dA, w);
            domain_polar_second(&polar, dA, NULL, w, dw);
            assert_true(vec3_norm(w) < 4e6 && isfinite(vec3_norm(dw)));
        }
}

// Newton's method from a rotation nearby gives the same as the eigenvectors, and from a far one too.
static void test_warm_start(void **unused) {
    (void)unused;
    seed = 23;
    double worst = 0;
    for (int trial = 0; trial < 500; trial++) {
        double       s[3] = {1 + 0.3 * random_number(), 1 + 0.3 * random_number(), 1 + 0.3 * random_number()};
        double       A[9], away[9], guess[9];
        domain_polar cold, warm;
        with_singular_values(s, A);
        domain_polar_decompose(&cold, A, NULL);
        random_rotation(trial % 2 ? 0.1 : 3, away);
        mat3_mul(guess, away, cold.R);
        domain_polar_decompose(&warm, A, guess);
        worst = fmax(worst, fmax(difference(9, warm.R, cold.R), difference(9, warm.P, cold.P)));
    }
    printf("   warm and cold starts differ by %.1e\n", worst);
    assert_true(worst < 1e-13);
    // a million warm starts do not wear the rotation out
    double R[9], N[9], A[9] = {1.1, 0.1, 0, -0.05, 0.9, 0.02, 0, 0.1, 1};
    mat3_identity(R);
    for (int k = 0; k < 100000; k++) {
        domain_polar polar;
        A[1] = 0.1 * sin(0.1 * k);
        domain_polar_decompose(&polar, A, R);
        memcpy(R, polar.R, sizeof R);
    }
    mat3_mul_nt(N, R, R);
    for (int i = 0; i < 9; i++) assert_true(fabs(N[i] - (i % 4 == 0)) < 1e-14);
}

// ---- bad input --------------------------------------------------------------------------------------------------

static void test_bad_input(void **unused) {
    (void)unused;
    double points[12] = {0, 0, 0, 1, 0, 0, 2, 0, 0, 3, 1e-7, 0}, weights[4] = {1, 1, -1, 1}, rows[12] = {0},
           rest[9] = {0};
    domain_interface interface = {0};
    assert_fails(domain_interface_create(&interface, 2, points, NULL, 1, rows, NULL), FEM_BAD_INPUT, "at least three");
    assert_fails(domain_interface_create(&interface, 4, points, NULL, 1, rows, NULL), FEM_BAD_INPUT, "on a line");
    points[10] = 1;
    assert_fails(domain_interface_create(&interface, 4, points, weights, 1, rows, NULL), FEM_BAD_INPUT,
                 "weight 2 is -1");
    assert_fails(domain_interface_create(&interface, 4, points, NULL, -1, rows, NULL), FEM_BAD_INPUT, "-1 modes");
    assert_fails(domain_interface_create(&interface, 4, points, NULL, 1, rows, rest), FEM_BAD_INPUT, "not a rotation");
    rows[3] = NAN;
    assert_fails(domain_interface_create(&interface, 4, points, NULL, 1, rows, NULL), FEM_BAD_INPUT, "not finite");
    rows[3] = 0, points[4] = INFINITY;
    assert_fails(domain_interface_create(&interface, 4, points, NULL, 1, rows, NULL), FEM_BAD_INPUT, "point 1");
    points[4] = 0;
    fem_memory_fail_after(0);
    fem_status status = domain_interface_create(&interface, 4, points, NULL, 1, rows, NULL);
    fem_memory_fail_after(-1);
    assert_int_equal(status, FEM_NO_MEMORY);
    assert_null(interface.a);
    assert_ok(domain_interface_create(&interface, 4, points, NULL, 0, NULL, NULL)); // a rigid parent
    domain_frame frame;
    domain_frame_motion(&interface, NULL, NULL, NULL, &frame);
    assert_true(vec3_norm(frame.w) == 0 && fabs(mat3_det(frame.R) - 1) < 1e-14);
    domain_interface_destroy(&interface);
    domain_interface_destroy(&interface);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vega),       cmocka_unit_test(test_derivatives), cmocka_unit_test(test_definition),
        cmocka_unit_test(test_rigid_turn), cmocka_unit_test(test_hard),        cmocka_unit_test(test_warm_start),
        cmocka_unit_test(test_bad_input),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
