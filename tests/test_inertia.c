// Inertia of a domain: the integrals against direct quadrature, the blocks against the motion of its material points.
#include "tests/support.h"

#include <math.h>

typedef struct sample {
    fem_mesh  mesh;
    fem_body *body;
    int       n, r;
    double   *U;
} sample;

static void sample_create(sample *s, fem_element type, int r, uint64_t seed) {
    const double low[3] = {-0.2, 0.1, 0.3}, high[3] = {0.9, 0.7, 0.8};
    const int    cells[3] = {3, 2, 2};
    *s = (sample){.r = r};
    assert_ok(fem_generate_box(&s->mesh, type, low, high, cells));
    fem_material m = fem_material_default();
    m.density = 850;
    assert_ok(fem_mesh_set_material(&s->mesh, &m));
    if (type == FEM_T4) // no symmetry; hexahedra stay boxes, so that the quadrature below is exact
        for (int v = 0; v < s->mesh.vertex_count; v++) {
            double *x = s->mesh.vertices + 3 * v;
            x[0] += 0.1 * x[1] * x[2], x[2] += 0.2 * x[0] * x[0];
        }
    assert_ok(fem_mesh_check(&s->mesh));
    fem_body_options options = fem_body_default_options();
    assert_ok(fem_body_create(&s->body, &s->mesh, &options));
    s->n = 3 * s->mesh.vertex_count;
    s->U = fem_alloc((size_t)s->n * (size_t)r, sizeof *s->U);
    test_random_fill(&seed, s->n * r, 1, s->U);
}

static void sample_destroy(sample *s) {
    fem_body_destroy(s->body);
    fem_mesh_destroy(&s->mesh);
    fem_free(s->U);
}

// ---- direct quadrature -------------------------------------------------------------------------------------------

// Adds w phi psi^T of the fields at one point; N are the shape functions of the element's vertices there.
static void add_point(solver_inertia *sum, const sample *s, const int *v, int corners, const double *N, double w) {
    double X[3] = {0}, fields[16][3] = {{0}};
    for (int a = 0; a < corners; a++) {
        vec3_axpy(X, N[a], s->mesh.vertices + 3 * v[a]);
        for (int l = 0; l < s->r; l++) vec3_axpy(fields[l], N[a], s->U + (size_t)l * (size_t)s->n + 3 * (size_t)v[a]);
    }
    sum->m += w;
    vec3_axpy(sum->s0, w, X);
    for (int k = 0; k < 9; k++) sum->Z0[k] += w * X[k / 3] * X[k % 3];
    for (int l = 0; l < s->r; l++) {
        vec3_axpy(sum->S1 + 3 * l, w, fields[l]);
        for (int k = 0; k < 9; k++) sum->W5[9 * l + k] += w * fields[l][k / 3] * X[k % 3];
        for (int p = 0; p < s->r; p++)
            for (int k = 0; k < 9; k++) sum->W7[9 * (p * s->r + l) + k] += w * fields[l][k / 3] * fields[p][k % 3];
    }
}

// T4: the four-point rule, exact for quadratics. H8 (boxes): 3 x 3 x 3 Gauss points.
static void quadrature(solver_inertia *sum, const sample *s, double density) {
    for (int e = 0; e < s->mesh.element_count; e++) {
        double volume = fem_element_volume(&s->mesh, e);
        if (s->mesh.type == FEM_T4) {
            double far = (5 - sqrt(5.0)) / 20, near = 1 - 3 * far;
            for (int k = 0; k < 4; k++) {
                double N[4] = {far, far, far, far};
                N[k] = near;
                add_point(sum, s, s->mesh.elements + 4 * e, 4, N, density * volume / 4);
            }
            continue;
        }
        const double point[3] = {0.5 - sqrt(0.15), 0.5, 0.5 + sqrt(0.15)}, weight[3] = {5. / 18, 8. / 18, 5. / 18};
        for (int g = 0; g < 27; g++) {
            double x = point[g % 3], y = point[g / 3 % 3], z = point[g / 9];
            double w = density * volume * weight[g % 3] * weight[g / 3 % 3] * weight[g / 9];
            double N[8] = {(1 - x) * (1 - y) * (1 - z), x * (1 - y) * (1 - z), x * y * (1 - z), (1 - x) * y * (1 - z),
                           (1 - x) * (1 - y) * z,       x * (1 - y) * z,       x * y * z,       (1 - x) * y * z};
            add_point(sum, s, s->mesh.elements + 8 * e, 8, N, w);
        }
    }
}

static void test_integrals(void **unused) {
    (void)unused;
    for (int type = 0; type < 2; type++) {
        sample         s;
        solver_inertia inertia, sum;
        sample_create(&s, type ? FEM_H8 : FEM_T4, 10, 5); // more modes than a block of columns
        assert_ok(solver_inertia_create(&inertia, s.body, FEM_MASS_CONSISTENT, s.r, s.U));
        assert_ok(solver_inertia_copy(&sum, &inertia));
        sum.m = 0;
        memset(sum.s0, 0, sizeof sum.s0), memset(sum.Z0, 0, sizeof sum.Z0);
        memset(sum.S1, 0, 3 * (size_t)s.r * sizeof(double));
        memset(sum.W5, 0, 9 * (size_t)s.r * sizeof(double));
        memset(sum.W7, 0, 9 * (size_t)s.r * (size_t)s.r * sizeof(double));
        quadrature(&sum, &s, 850);
        double errors[] = {fabs(inertia.m / sum.m - 1),
                           test_relative_error(3, inertia.s0, sum.s0),
                           test_relative_error(9, inertia.Z0, sum.Z0),
                           test_relative_error(3 * s.r, inertia.S1, sum.S1),
                           test_relative_error(9 * s.r, inertia.W5, sum.W5),
                           test_relative_error(9 * s.r * s.r, inertia.W7, sum.W7)};
        printf("  %s: m %.1e, s0 %.1e, Z0 %.1e, S1 %.1e, W5 %.1e, W7 %.1e from quadrature\n", type ? "H8" : "T4",
               errors[0], errors[1], errors[2], errors[3], errors[4], errors[5]);
        for (int k = 0; k < 6; k++) assert_true(errors[k] < 1e-12);
        for (int l = 0; l < s.r; l++)
            for (int p = 0; p < s.r; p++) {
                const double *W = inertia.W7 + 9 * (p * s.r + l);
                assert_true(fabs(inertia.Mqq[p * s.r + l] - W[0] - W[4] - W[8]) < 1e-12 * fabs(W[0]) + 1e-12);
            }
        solver_inertia_destroy(&inertia), solver_inertia_destroy(&sum);
        sample_destroy(&s);
    }
}

// ---- the blocks --------------------------------------------------------------------------------------------------

// A motion through a given state at t = 0: q(t), p(t) quadratic, Q(t) = Q0 exp([w t + al t^2 / 2]), whose angular
// velocity and acceleration at t = 0 are w and al.
typedef struct motion {
    double Q0[9], a[3], w[3], al[3];     // a, w, al in the axes of the frame
    double q[16], dq[16], ddq[16], v[3]; // v likewise
} motion;

static void rotation(const double a[3], double R[9]) { // by the power series of exp([a])
    double A[9] = {0, -a[2], a[1], a[2], 0, -a[0], -a[1], a[0], 0}, term[9], next[9];
    mat3_identity(term), mat3_identity(R);
    for (int k = 1; k < 30; k++) {
        mat3_mul(next, term, A);
        for (int i = 0; i < 9; i++) term[i] = next[i] / k, R[i] += term[i];
    }
}

// World positions of all vertices at time t.
static void positions(const sample *s, const motion *m, double t, double *x) {
    double angle[3], turn[9], Q[9], p[3];
    for (int k = 0; k < 3; k++) {
        angle[k] = t * m->w[k] + t * t / 2 * m->al[k];
        p[k] = t * m->v[k] + t * t / 2 * m->a[k];
    }
    rotation(angle, turn);
    mat3_mul(Q, m->Q0, turn);
    for (int v = 0; v < s->n / 3; v++) {
        double y[3], turned[3], origin[3];
        for (int k = 0; k < 3; k++) {
            y[k] = s->mesh.vertices[3 * v + k];
            for (int l = 0; l < s->r; l++)
                y[k] += s->U[l * s->n + 3 * v + k] * (m->q[l] + t * m->dq[l] + t * t / 2 * m->ddq[l]);
        }
        mat3_mul_vec(turned, Q, y);
        mat3_mul_vec(origin, m->Q0, p); // v and a are in the axes at t = 0
        for (int k = 0; k < 3; k++) x[3 * v + k] = turned[k] + origin[k];
    }
}

static void make_motion(motion *m, uint64_t seed) {
    double angle[3];
    test_random_fill(&seed, 3, 2, angle);
    rotation(angle, m->Q0);
    test_random_fill(&seed, 3, 1, m->a), test_random_fill(&seed, 3, 1, m->w), test_random_fill(&seed, 3, 1, m->al);
    test_random_fill(&seed, 3, 1, m->v);
    test_random_fill(&seed, 16, 0.3, m->q), test_random_fill(&seed, 16, 1, m->dq),
        test_random_fill(&seed, 16, 1, m->ddq);
}

// sum_ab M_ab G_a^T Q^T g_b over the vertices, G = [I, -[y], U]
static void project(const sample *s, const motion *m, const fem_sparse *M, const double *g, double *generalised) {
    double *Mg = fem_alloc((size_t)s->n, sizeof *Mg);
    memset(generalised, 0, (size_t)(6 + s->r) * sizeof *generalised);
    fem_sparse_multiply(M, 1, g, Mg);
    for (int v = 0; v < s->n / 3; v++) {
        double f[3] = {0}, y[3], moment[3];
        for (int i = 0; i < 3; i++)
            for (int k = 0; k < 3; k++) f[i] += m->Q0[3 * k + i] * Mg[3 * v + k];
        for (int k = 0; k < 3; k++) {
            y[k] = s->mesh.vertices[3 * v + k];
            for (int l = 0; l < s->r; l++) {
                y[k] += s->U[l * s->n + 3 * v + k] * m->q[l];
                generalised[6 + l] += s->U[l * s->n + 3 * v + k] * f[k];
            }
        }
        vec3_cross(moment, y, f);
        vec3_axpy(generalised, 1, f), vec3_axpy(generalised + 3, 1, moment);
    }
    fem_free(Mg);
}

// Virtual power: what the accelerations of all points make of the rigid motions and the modes is M A + b.
static void test_blocks(void **unused) {
    (void)unused;
    for (int variant = 0; variant < 2; variant++) {
        fem_mass_kind  kind = variant ? FEM_MASS_LUMPED : FEM_MASS_CONSISTENT;
        sample         s;
        solver_inertia inertia;
        motion         m;
        fem_sparse     M = {0};
        sample_create(&s, variant ? FEM_H8 : FEM_T4, 5, 7);
        make_motion(&m, 11);
        assert_ok(fem_body_matrix(s.body, &M));
        fem_body_mass(s.body, kind, &M);
        assert_ok(solver_inertia_create(&inertia, s.body, kind, s.r, s.U));
        double                Mrq[30], b_q[5], work[90], expected[11], velocity[11], direct[2][11], momentum[6];
        solver_inertia_blocks blocks = {.Mrq = Mrq, .b_q = b_q};
        solver_inertia_evaluate(&inertia, m.q, m.dq, m.w, &blocks, work);
        double A[6] = {m.a[0], m.a[1], m.a[2], m.al[0], m.al[1], m.al[2]};
        for (int i = 0; i < 6; i++) {
            expected[i] = blocks.b_r[i];
            for (int j = 0; j < 6; j++) expected[i] += blocks.Mrr[6 * j + i] * A[j];
            for (int l = 0; l < s.r; l++) expected[i] += Mrq[6 * l + i] * m.ddq[l];
        }
        for (int l = 0; l < s.r; l++) {
            expected[6 + l] = b_q[l];
            for (int i = 0; i < 6; i++) expected[6 + l] += Mrq[6 * l + i] * A[i];
            for (int p = 0; p < s.r; p++) expected[6 + l] += inertia.Mqq[p * s.r + l] * m.ddq[p];
        }
        // second and first differences of the positions
        double *x[3], *g = fem_alloc((size_t)s.n, sizeof *g), *rate = fem_alloc((size_t)s.n, sizeof *g), error[2];
        for (int k = 0; k < 3; k++) x[k] = fem_alloc((size_t)s.n, sizeof *x[k]);
        for (int refine = 0; refine < 2; refine++) {
            double e = 2e-3 / (1 << refine);
            for (int k = 0; k < 3; k++) positions(&s, &m, (k - 1) * e, x[k]);
            for (int i = 0; i < s.n; i++) {
                g[i] = (x[0][i] - 2 * x[1][i] + x[2][i]) / (e * e);
                rate[i] = (x[2][i] - x[0][i]) / (2 * e);
            }
            project(&s, &m, &M, g, direct[refine]);
            error[refine] = test_relative_error(6 + s.r, direct[refine], expected);
        }
        double order = log2(error[0] / error[1]), bias = 0;
        for (int i = 0; i < 6 + s.r; i++) bias = fmax(bias, fabs(i < 6 ? blocks.b_r[i] : b_q[i - 6]));
        printf("  %s: inertia forces from differences of the motion: %.1e, %.1e, order %.2f; largest bias %.2g\n",
               variant ? "H8, lumped" : "T4, consistent", error[0], error[1], order, bias);
        assert_true(bias > 1); // Coriolis and centrifugal terms were there
        assert_true(error[1] < 1e-5 && fabs(order - 2) < 0.05);

        double kinetic = solver_inertia_momentum(&inertia, &blocks, m.v, m.w, m.dq, momentum), direct_kinetic = 0;
        project(&s, &m, &M, rate, velocity);
        fem_sparse_multiply(&M, 1, rate, g);
        direct_kinetic = dense_dot(s.n, rate, g) / 2;
        printf("    momenta %.1e, kinetic energy %.1e from the points\n", test_relative_error(6, momentum, velocity),
               fabs(kinetic / direct_kinetic - 1));
        assert_true(test_relative_error(6, momentum, velocity) < 1e-5);
        assert_true(fabs(kinetic / direct_kinetic - 1) < 1e-5);
        for (int k = 0; k < 3; k++) fem_free(x[k]);
        fem_free(g), fem_free(rate);
        fem_sparse_destroy(&M);
        solver_inertia_destroy(&inertia);
        sample_destroy(&s);
    }
}

// The inertia about another point is that of a mesh that was moved.
static void test_recentre(void **unused) {
    (void)unused;
    sample         s;
    solver_inertia inertia, moved;
    const double   c[3] = {0.3, -0.7, 0.2};
    sample_create(&s, FEM_T4, 4, 3);
    assert_ok(solver_inertia_create(&inertia, s.body, FEM_MASS_CONSISTENT, s.r, s.U));
    solver_inertia_recentre(&inertia, c);
    for (int i = 0; i < s.n; i++) s.mesh.vertices[i] -= c[i % 3];
    assert_ok(solver_inertia_create(&moved, s.body, FEM_MASS_CONSISTENT, s.r, s.U));
    double s0 = test_relative_error(3, inertia.s0, moved.s0), Z0 = test_relative_error(9, inertia.Z0, moved.Z0);
    double W5 = test_relative_error(9 * s.r, inertia.W5, moved.W5);
    printf("  about another point: s0 %.1e, Z0 %.1e, W5 %.1e from a moved mesh\n", s0, Z0, W5);
    assert_true(s0 < 1e-12 && Z0 < 1e-12 && W5 < 1e-12);
    solver_inertia_destroy(&inertia), solver_inertia_destroy(&moved);
    sample_destroy(&s);
}

static void test_failures(void **unused) {
    (void)unused;
    sample         s;
    solver_inertia inertia = {0};
    sample_create(&s, FEM_T4, 3, 3);
    fem_set_threads(1);
    int failures = 0;
    for (long allowed = 0;; allowed++) {
        fem_memory_fail_after(allowed);
        fem_status status = solver_inertia_create(&inertia, s.body, FEM_MASS_CONSISTENT, s.r, s.U);
        fem_memory_fail_after(-1);
        if (status == FEM_OK) break;
        assert_int_equal(status, FEM_NO_MEMORY);
        assert_null(inertia.W7);
        failures++;
    }
    fem_set_threads(0);
    printf("  %d failing allocations, each reported, none leaked\n", failures);
    assert_true(failures > 5);
    solver_inertia_destroy(&inertia);
    s.U[7] = NAN;
    assert_fails(solver_inertia_create(&inertia, s.body, FEM_MASS_CONSISTENT, s.r, s.U), FEM_BAD_INPUT,
                 "mode 1 is not finite");
    assert_fails(solver_inertia_create(&inertia, s.body, FEM_MASS_CONSISTENT, -1, s.U), FEM_BAD_INPUT, "-1 modes");
    assert_ok(solver_inertia_create(&inertia, s.body, FEM_MASS_CONSISTENT, 0, NULL)); // a rigid body
    assert_true(fabs(inertia.m - fem_body_total_mass(s.body)) < 1e-12 * inertia.m);
    solver_inertia_destroy(&inertia);
    sample_destroy(&s);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integrals),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_recentre),
        cmocka_unit_test(test_failures),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
