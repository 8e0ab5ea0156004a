// What the tests of the tree share: small trees whose domains are mass points that move in smooth random fields, and
// the motion of those points composed anew, without the library and in complex numbers, so that a step of 1e-20 i gives
// exact derivatives.
#ifndef LIMBER_TEST_TREE_CASE_H
#define LIMBER_TEST_TREE_CASE_H

#include "libsolver/tree_internal.h"
#include "tests/support.h"

#include <complex.h>
#undef I // complex.h's; the tests have inertias of that name
#define i_unit _Complex_I

typedef double complex number;

enum { CASE_POINTS = 25, CASE_ENDS = 12, CASE_MODES = 6, CASE_DOMAINS = 8 };

// f = K q + cubic |q|^2 q, the gradient of q.K q/2 + cubic |q|^4/4
typedef struct case_forces {
    int    r;
    double K[CASE_MODES * CASE_MODES], cubic;
} case_forces;

static inline void case_evaluate(const void *model, const double *q, double *energy, double *f, double *K,
                                 double *work) {
    const case_forces *m = model;
    int                r = m->r;
    double             q2 = dense_dot(r, q, q);
    (void)work;
    if (energy) *energy = 0.25 * m->cubic * q2 * q2;
    for (int i = 0; i < r; i++) {
        double Kq = dense_dot(r, m->K + i * r, q);
        if (energy) *energy += 0.5 * q[i] * Kq;
        if (f) f[i] = Kq + m->cubic * q2 * q[i];
        for (int j = 0; K && j < r; j++)
            K[i * r + j] = m->K[i * r + j] + m->cubic * (2 * q[i] * q[j] + (i == j ? q2 : 0));
    }
}

typedef struct case_domain {
    int            r, parent;
    bool           flat;
    double         scale;
    double         mass[CASE_POINTS], X[CASE_POINTS][3], U[CASE_POINTS][3][CASE_MODES];
    double         field1[CASE_MODES][3], field2[CASE_MODES][9];
    double         end[CASE_ENDS][3], end_rows[CASE_ENDS][3][CASE_MODES], weight[CASE_ENDS], rest[9]; // in the parent
    case_forces    forces;
    solver_inertia inertia;
    double S1[3 * CASE_MODES], W5[9 * CASE_MODES], W7[9 * CASE_MODES * CASE_MODES], Mqq[CASE_MODES * CASE_MODES];
    domain_interface interfaces[CASE_DOMAINS]; // to its children, in their order
    int              interface_count;
    int              carried;                              // the last of the r coordinates
    double           patterns[3 * CASE_ENDS * CASE_MODES]; // that measure them, 3 points x carried
} case_domain;

typedef struct tree_case {
    int         count, dofs;
    uint64_t    seed;
    case_domain d[CASE_DOMAINS];
    int         offset[CASE_DOMAINS + 1];
} tree_case;

// ---- the library's data -----------------------------------------------------------------------------------------

// Integrals as sums over the mass points.
static inline void case_integrals(case_domain *d) {
    int r = d->r;
    d->inertia = (solver_inertia){.r = r, .S1 = d->S1, .W5 = d->W5, .W7 = d->W7, .Mqq = d->Mqq};
    memset(d->S1, 0, sizeof d->S1), memset(d->W5, 0, sizeof d->W5);
    memset(d->W7, 0, sizeof d->W7), memset(d->Mqq, 0, sizeof d->Mqq);
    for (int n = 0; n < CASE_POINTS; n++) {
        double m = d->mass[n], *X = d->X[n];
        d->inertia.m += m;
        for (int k = 0; k < 3; k++) d->inertia.s0[k] += m * X[k];
        for (int k = 0; k < 9; k++) d->inertia.Z0[k] += m * X[k / 3] * X[k % 3];
        for (int l = 0; l < r; l++) {
            for (int k = 0; k < 3; k++) d->S1[3 * l + k] += m * d->U[n][k][l];
            for (int k = 0; k < 9; k++) d->W5[9 * l + k] += m * d->U[n][k / 3][l] * X[k % 3];
            for (int p = 0; p < r; p++)
                for (int k = 0; k < 9; k++) {
                    double value = m * d->U[n][k / 3][l] * d->U[n][k % 3][p];
                    d->W7[9 * (r * p + l) + k] += value;
                    if (k % 4 == 0) d->Mqq[r * p + l] += value;
                }
        }
    }
}

static inline void case_field(const case_domain *d, const double X[3], double U[3][CASE_MODES]) {
    for (int l = 0; l < d->r; l++)
        for (int k = 0; k < 3; k++) U[k][l] = X[0] * (d->field1[l][k] + vec3_dot(d->field2[l] + 3 * k, X));
}

static inline void case_rotation(const double t[3], double R[9]) {
    double angle = vec3_norm(t), s = angle > 0 ? sin(angle) / angle : 1;
    double c = angle > 0 ? (1 - cos(angle)) / angle / angle : 0;
    double X[9] = {0, -t[2], t[1], t[2], 0, -t[0], -t[1], t[0], 0}, XX[9];
    mat3_mul(XX, X, X);
    for (int i = 0; i < 9; i++) R[i] = (i % 4 == 0) + s * X[i] + c * XX[i];
}

static inline void case_points_and_rows(const case_domain *d, int r, double *points, double *rows) {
    for (int n = 0; n < CASE_ENDS; n++)
        for (int k = 0; k < 3; k++) {
            points[3 * n + k] = d->end[n][k];
            for (int l = 0; l < r; l++) rows[3 * (CASE_ENDS * l + n) + k] = d->end_rows[n][k][l];
        }
}

static inline void case_interface(tree_case *c, int child) {
    case_domain *d = &c->d[child], *parent = &c->d[d->parent];
    double       rows[3 * CASE_ENDS * CASE_MODES], points[3 * CASE_ENDS];
    case_points_and_rows(d, parent->r, points, rows);
    assert_ok(domain_interface_create(&parent->interfaces[parent->interface_count++], CASE_ENDS, points, d->weight,
                                      parent->r, rows, d->rest));
    assert_int_equal(parent->interfaces[parent->interface_count - 1].flat, d->flat);
}

// A random tree: `parents` and modes of each domain; interfaces of odd children are flat. Stiffness around `stiff`.
static inline void case_create(tree_case *c, uint64_t seed, int count, const int *parents, const int *modes,
                               double stiff, double cubic) {
    *c = (tree_case){.count = count, .seed = seed};
    for (int i = 0; i < count; i++) {
        case_domain *d = &c->d[i];
        d->r = modes[i], d->parent = parents[i], d->scale = 1, d->flat = i % 2;
        c->offset[i] = c->dofs, c->dofs += d->r;
        test_random_fill(&c->seed, 3 * CASE_MODES, 0.5, d->field1[0]);
        test_random_fill(&c->seed, 9 * CASE_MODES, 0.5, d->field2[0]);
        for (int n = 0; n < CASE_POINTS; n++) {
            test_random_fill(&c->seed, 3, 0.3, d->X[n]);
            d->X[n][0] = 0.5 + 0.5 * test_random(&c->seed);
            d->mass[n] = (1 + 0.5 * test_random(&c->seed)) / CASE_POINTS;
            case_field(d, d->X[n], d->U[n]);
        }
        d->forces = (case_forces){.r = d->r, .cubic = cubic};
        double B[CASE_MODES * CASE_MODES];
        test_random_fill(&c->seed, d->r * d->r, 1.5, B);
        dense_gemm(true, false, d->r, d->r, d->r, 2 * stiff, B, B, 0, d->forces.K);
        for (int l = 0; l < d->r; l++) d->forces.K[l * (d->r + 1)] += 6 * stiff;
        case_integrals(d);
    }
    c->offset[count] = c->dofs;
    for (int i = 0; i < count; i++) {
        case_domain *d = &c->d[i];
        if (d->parent < 0) continue;
        double axis[3], tilt[9], place[3] = {1, 0.15 * i - 0.2, 0.1};
        test_random_fill(&c->seed, 3, 1, axis);
        case_rotation(axis, tilt);
        for (int n = 0; n < CASE_ENDS; n++) {
            double local[3], turned[3];
            test_random_fill(&c->seed, 3, 0.2, local);
            if (d->flat) local[2] = 0;
            mat3_mul_vec(turned, tilt, local);
            for (int k = 0; k < 3; k++) d->end[n][k] = place[k] + turned[k];
            d->weight[n] = 0.75 + 0.25 * test_random(&c->seed);
            case_field(&c->d[d->parent], d->end[n], d->end_rows[n]);
        }
        test_random_fill(&c->seed, 3, 1, axis);
        case_rotation(axis, d->rest);
        case_interface(c, i);
    }
}

// The last `carried` coordinates of each domain become carried, by random patterns.
static inline void case_carry(tree_case *c, const int *carried) {
    int used[CASE_DOMAINS] = {0};
    for (int i = 1; i < c->count; i++) {
        case_domain *d = &c->d[i], *parent = &c->d[d->parent];
        double       rows[3 * CASE_ENDS * CASE_MODES], points[3 * CASE_ENDS];
        d->carried = carried[i];
        case_points_and_rows(d, parent->r, points, rows);
        test_random_fill(&c->seed, 3 * CASE_ENDS * d->carried, 0.6, d->patterns);
        assert_ok(domain_interface_set_carried(&parent->interfaces[used[d->parent]++], CASE_ENDS, points, rows,
                                               d->carried, d->patterns));
    }
}

static inline void case_destroy(tree_case *c) {
    for (int i = 0; i < c->count; i++)
        for (int k = 0; k < c->d[i].interface_count; k++) domain_interface_destroy(&c->d[i].interfaces[k]);
}

// The tree of the library; one class per domain.
static inline solver_tree *case_tree(tree_case *c, solver_root root, const solver_tree_options *options,
                                     double damping_stiffness) {
    solver_tree_class    classes[CASE_DOMAINS];
    solver_tree_instance instances[CASE_DOMAINS];
    int                  used[CASE_DOMAINS] = {0};
    for (int i = 0; i < c->count; i++) {
        case_domain *d = &c->d[i];
        classes[i] = (solver_tree_class){.name = "sample",
                                         .inertia = &d->inertia,
                                         .forces = {.r = d->r, .evaluate = case_evaluate, .model = &d->forces},
                                         .interface_count = d->interface_count,
                                         .interfaces = d->interfaces,
                                         .damping_stiffness = damping_stiffness,
                                         .carried = d->carried};
        instances[i] = (solver_tree_instance){.class_index = i,
                                              .parent = d->parent,
                                              .interface = d->parent < 0 ? 0 : used[d->parent]++,
                                              .scale = d->scale,
                                              .stiffness = 1,
                                              .root = root};
    }
    solver_tree *tree = NULL;
    assert_ok(solver_tree_create(&tree, c->count, classes, c->count, instances, options));
    return tree;
}

static inline void case_set_state(const tree_case *c, solver_tree *tree, const double *q, const double *dq) {
    for (int i = 0; i < c->count; i++)
        assert_ok(solver_tree_set_state(tree, i, q + c->offset[i], dq ? dq + c->offset[i] : NULL));
}

// ---- the same motion composed without the library ---------------------------------------------------------------

static inline void c_mul(number C[9], const number A[9], const number B[9]) {
    for (int i = 0; i < 9; i++) {
        C[i] = 0;
        for (int k = 0; k < 3; k++) C[i] += A[3 * (i / 3) + k] * B[3 * k + i % 3];
    }
}
static inline void c_cross(number c[3], const number a[3], const number b[3]) {
    for (int i = 0; i < 3; i++) c[i] = a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3];
}
static inline void c_inverse_transpose(number B[9], const number A[9]) {
    number det = 0;
    for (int i = 0; i < 3; i++) c_cross(B + 3 * i, A + 3 * ((i + 1) % 3), A + 3 * ((i + 2) % 3));
    for (int i = 0; i < 3; i++) det += A[i] * B[i];
    for (int i = 0; i < 9; i++) B[i] /= det;
}
// rotation of A by Higham's iteration R <- (R + R^-T)/2, which is analytic
static inline void c_polar(const number A[9], number R[9]) {
    memcpy(R, A, 9 * sizeof *R);
    for (int k = 0; k < 30; k++) {
        number B[9];
        c_inverse_transpose(B, R);
        for (int i = 0; i < 9; i++) R[i] = 0.5 * (R[i] + B[i]);
    }
}
static inline void c_exp(const number t[3], number E[9]) {
    number a2 = t[0] * t[0] + t[1] * t[1] + t[2] * t[2], s, c, X[9] = {0, -t[2], t[1], t[2], 0, -t[0], -t[1], t[0], 0},
           XX[9];
    if (cabs(a2) < 1e-4)
        s = 1 - a2 / 6 + a2 * a2 / 120, c = 0.5 - a2 / 24 + a2 * a2 / 720;
    else
        s = csin(csqrt(a2)) / csqrt(a2), c = (1 - ccos(csqrt(a2))) / a2;
    c_mul(XX, X, X);
    for (int i = 0; i < 9; i++) E[i] = (i % 4 == 0) + s * X[i] + c * XX[i];
}

// x and R of the frame of `child` in its parent for the parent's q, from the points themselves: best linear map of the
// interface, and for flat ones the cross product as the image of the normal.
static inline void c_frame(const tree_case *c, int child, const number *q, number x[3], number R[9]) {
    const case_domain *d = &c->d[child], *parent = &c->d[d->parent];
    double             total = 0, mean[3] = {0}, C[9] = {0}, Ci[9], N[3] = {0};
    number             y[CASE_ENDS][3], B[9] = {0}, A[9] = {0};
    for (int k = 0; k < 3; k++) x[k] = 0;
    for (int n = 0; n < CASE_ENDS; n++) {
        for (int k = 0; k < 3; k++) {
            y[n][k] = d->end[n][k];
            for (int l = 0; l < parent->r; l++) y[n][k] += d->end_rows[n][k][l] * q[l];
            mean[k] += d->weight[n] * d->end[n][k], x[k] += d->weight[n] * y[n][k];
        }
        total += d->weight[n];
    }
    for (int k = 0; k < 3; k++) mean[k] /= total, x[k] /= total;
    for (int n = 0; n < CASE_ENDS; n++)
        for (int k = 0; k < 9; k++) {
            B[k] += d->weight[n] * (y[n][k / 3] - x[k / 3]) * (d->end[n][k % 3] - mean[k % 3]);
            C[k] += d->weight[n] * (d->end[n][k / 3] - mean[k / 3]) * (d->end[n][k % 3] - mean[k % 3]);
        }
    if (d->flat) { // normal of the first three points
        double a[3], b[3];
        vec3_sub(a, d->end[1], d->end[0]);
        vec3_sub(b, d->end[2], d->end[0]);
        vec3_cross(N, a, b);
        vec3_normalize(N);
        for (int k = 0; k < 9; k++) C[k] += N[k / 3] * N[k % 3];
    }
    mat3_inverse(Ci, C);
    for (int k = 0; k < 9; k++) Ci[k] -= N[k / 3] * N[k % 3]; // thick: N = 0
    for (int k = 0; k < 9; k++)
        for (int m = 0; m < 3; m++) A[k] += B[3 * (k / 3) + m] * Ci[3 * m + k % 3];
    if (d->flat) {
        double t1[3] = {N[1], -N[0], 0}, t2[3];
        if (fabs(N[2]) > 0.9) t1[0] = 0, t1[1] = N[2], t1[2] = -N[1];
        vec3_normalize(t1);
        vec3_cross(t2, N, t1);
        number b1[3] = {0}, b2[3] = {0}, image[3];
        for (int k = 0; k < 9; k++) b1[k / 3] += A[k] * t1[k % 3], b2[k / 3] += A[k] * t2[k % 3];
        c_cross(image, b1, b2);
        for (int k = 0; k < 9; k++) A[k] += image[k / 3] * N[k % 3];
    }
    number rest[9], all[9];
    for (int k = 0; k < 9; k++) rest[k] = d->rest[k];
    c_mul(all, A, rest);
    c_polar(all, R);
}

// What is carried, from the coordinates of the parents: displacements of the interface's points in the axes of the
// child, measured by the patterns. Parents come first.
static inline void c_complete(const tree_case *c, number *q) {
    for (int i = 1; i < c->count; i++) {
        const case_domain *d = &c->d[i], *parent = &c->d[d->parent];
        number             x[3], R[9], rest[3] = {0}, *w = q + c->offset[i] + d->r - d->carried;
        double             total = 0;
        c_frame(c, i, q + c->offset[d->parent], x, R);
        for (int n = 0; n < CASE_ENDS; n++) {
            total += d->weight[n];
            for (int k = 0; k < 3; k++) rest[k] += d->weight[n] * d->end[n][k];
        }
        for (int s = 0; s < d->carried; s++) {
            w[s] = 0;
            for (int n = 0; n < CASE_ENDS; n++)
                for (int k = 0; k < 3; k++) { // entry k in the axes of the child
                    number y = 0;
                    for (int m = 0; m < 3; m++) {
                        number at = d->end[n][m] - x[m];
                        for (int l = 0; l < parent->r; l++) at += d->end_rows[n][m][l] * q[c->offset[d->parent] + l];
                        y += R[3 * m + k] * at - d->rest[3 * m + k] * (d->end[n][m] - rest[m] / total);
                    }
                    w[s] += parent->scale / d->scale * d->patterns[3 * (CASE_ENDS * s + n) + k] * y;
                }
        }
    }
}

// World frames for generalized coordinates xi = (dp, rotation vector, q) at a root pose p, Q.
static inline void c_frames(const tree_case *c, const double p[3], const double Q[9], const number *xi, number P[][3],
                            number F[][9]) {
    number E[9], Q0[9];
    for (int k = 0; k < 9; k++) Q0[k] = Q[k];
    c_exp(xi + 3, E);
    for (int k = 0; k < 3; k++) P[0][k] = p[k] + xi[k];
    c_mul(F[0], Q0, E);
    for (int i = 1; i < c->count; i++) { // parents come first
        int    parent = c->d[i].parent;
        number x[3], R[9];
        c_frame(c, i, xi + 6 + c->offset[parent], x, R);
        c_mul(F[i], F[parent], R);
        for (int k = 0; k < 3; k++) {
            P[i][k] = P[parent][k];
            for (int m = 0; m < 3; m++) P[i][k] += c->d[parent].scale * F[parent][3 * k + m] * x[m];
        }
    }
}

// Positions of all mass points, 3 each.
static inline void c_points(const tree_case *c, const double p[3], const double Q[9], const number *given,
                            number *out) {
    number P[CASE_DOMAINS][3], F[CASE_DOMAINS][9], xi[6 + CASE_DOMAINS * CASE_MODES];
    memcpy(xi, given, (size_t)(6 + c->dofs) * sizeof *xi);
    c_complete(c, xi + 6);
    c_frames(c, p, Q, xi, P, F);
    for (int i = 0; i < c->count; i++)
        for (int n = 0; n < CASE_POINTS; n++) {
            number y[3];
            for (int k = 0; k < 3; k++) {
                y[k] = c->d[i].X[n][k];
                for (int l = 0; l < c->d[i].r; l++) y[k] += c->d[i].U[n][k][l] * xi[6 + c->offset[i] + l];
            }
            for (int k = 0; k < 3; k++) {
                number sum = P[i][k];
                for (int m = 0; m < 3; m++) sum += c->d[i].scale * F[i][3 * k + m] * y[m];
                *out++ = sum;
            }
        }
}

static inline double case_point_mass(const tree_case *c, int n) { // n-th of all points
    const case_domain *d = &c->d[n / CASE_POINTS];
    return d->mass[n % CASE_POINTS] * d->scale * d->scale * d->scale;
}

#endif
