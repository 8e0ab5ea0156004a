// Reduced StVK polynomials against the full mesh they came from, against themselves (derivatives, edits, truncation,
// threads, scale) and against VegaFEM's.
#include "tests/polynomial_case.h"

#include <cjson/cJSON.h>

static const int small_cells[3] = {5, 4, 3};

// V, f, K of one set of forces at q, in one allocation each
typedef struct answer {
    double V, *f, *K;
} answer;

static answer evaluate(cubature_forces forces, const double *q) {
    size_t  r = (size_t)forces.r;
    double *work = fem_alloc(forces.work, sizeof *work);
    answer  a = {.f = fem_alloc(r, sizeof *a.f), .K = fem_alloc(r * r, sizeof *a.K)};
    assert_non_null(work), assert_non_null(a.f), assert_non_null(a.K);
    forces.evaluate(forces.model, q, &a.V, a.f, a.K, work);
    // what is not wanted changes nothing in what is
    double V, *f = fem_alloc(r, sizeof *f), *K = fem_alloc(r * r, sizeof *K);
    forces.evaluate(forces.model, q, &V, NULL, NULL, work);
    assert_true(V == a.V);
    forces.evaluate(forces.model, q, NULL, f, NULL, work);
    assert_memory_equal(f, a.f, r * sizeof *f);
    forces.evaluate(forces.model, q, NULL, NULL, K, work);
    assert_memory_equal(K, a.K, r * r * sizeof *K);
    fem_free(f), fem_free(K), fem_free(work);
    return a;
}

static answer evaluate_plain(const cubature_polynomial *p, const double *q) {
    size_t r = (size_t)p->r;
    answer a = {.f = fem_alloc(r, sizeof *a.f), .K = fem_alloc(r * r, sizeof *a.K)};
    assert_non_null(a.f), assert_non_null(a.K);
    cubature_polynomial_plain(p, q, &a.V, a.f, a.K);
    return a;
}

static void free_answer(answer *a) { fem_free(a->f), fem_free(a->K); }

static double answer_error(int r, const answer *x, const answer *y) {
    double error = fmax(test_relative_error(r, x->f, y->f), test_relative_error(r * r, x->K, y->K));
    return fmax(error, fabs(x->V / y->V - 1));
}

// ---- against the full mesh
// -------------------------------------------------------------------------------------------

// f(q), K(q), V(q) equal U^T f(Uq), U^T K(Uq) U, W(Uq) to 1e-10 at large amplitude, by the fast kernels and the plain
// loops
static void check_full(const char *name, fem_element type, case_materials kind, int quadrature, int r) {
    polynomial_case     c;
    cubature_polynomial p = {0};
    uint64_t            seed = 5;
    double              q[40], worst = 0, worst_plain = 0;
    case_create(&c, type, kind, quadrature, r, small_cells, 1);
    case_polynomial(&c, &p);
    assert_int_equal(p.group_count, kind == CASE_MIXED ? 3 : 2);
    assert_int_equal(p.set_count, kind == CASE_ISOTROPIC ? 4 : kind == CASE_ORTHOTROPIC ? 18 : 13);
    double ratio = 0;
    for (int pose = 0; pose < 5; pose++) {
        test_random_fill(&seed, r, pose == 0 ? 0.01 : pose, q);
        answer full = evaluate(cubature_full_forces(c.full), q);
        answer fast = evaluate(cubature_polynomial_forces(&p), q);
        answer plain = evaluate_plain(&p, q);
        worst = fmax(worst, answer_error(r, &fast, &full));
        worst_plain = fmax(worst_plain, answer_error(r, &plain, &full));
        // the pose is far from linear: K(q) is not K(0)
        double zero[40] = {0};
        answer rest = evaluate(cubature_full_forces(c.full), zero);
        ratio = fmax(ratio, dense_norm(r * r, full.K) / dense_norm(r * r, rest.K));
        free_answer(&full), free_answer(&fast), free_answer(&plain), free_answer(&rest);
    }
    printf("  %-28s r = %2d, |K(q)|/|K(0)| up to %.0f: fast %.1e plain %.1e\n", name, r, ratio, worst, worst_plain);
    assert_true(ratio > 3);
    assert_true(worst < 1e-10 && worst_plain < 1e-10);
    cubature_polynomial_destroy(&p);
    case_destroy(&c);
}

static void test_full_mesh(void **state) {
    (void)state;
    const int r[] = {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 23, 24, 25};
    for (size_t i = 0; i < sizeof r / sizeof *r; i++) check_full("T4 isotropic", FEM_T4, CASE_ISOTROPIC, 2, r[i]);
    check_full("T4 orthotropic", FEM_T4, CASE_ORTHOTROPIC, 2, 6);
    check_full("T4 mixed", FEM_T4, CASE_MIXED, 2, 10);
    check_full("H8, 8 points, isotropic", FEM_H8, CASE_ISOTROPIC, 2, 9);
    check_full("H8, 8 points, orthotropic", FEM_H8, CASE_ORTHOTROPIC, 2, 6);
    check_full("H8, 8 points, mixed", FEM_H8, CASE_MIXED, 2, 7);
    check_full("H8, 27 points, isotropic", FEM_H8, CASE_ISOTROPIC, 3, 9);
    check_full("H8, 27 points, mixed", FEM_H8, CASE_MIXED, 3, 7);
}

// every vector width gives the same
static void test_widths(void **state) {
    (void)state;
    polynomial_case c;
    double          q[20];
    uint64_t        seed = 15;
    case_create(&c, FEM_T4, CASE_MIXED, 2, 20, small_cells, 1);
    test_random_fill(&seed, 20, 2, q);
    answer full = evaluate(cubature_full_forces(c.full), q);
    for (fem_simd level = FEM_SIMD_BASELINE; level <= FEM_SIMD_AVX512; level++) {
        cubature_polynomial p = {0};
        setenv("LIMBER_SIMD", fem_simd_name(level), 1);
        case_polynomial(&c, &p);
        answer fast = evaluate(cubature_polynomial_forces(&p), q);
        double error = answer_error(20, &fast, &full);
        printf("  %s: %.1e\n", fem_simd_name(fem_simd_level()), error);
        assert_true(error < 1e-10);
        free_answer(&fast);
        cubature_polynomial_destroy(&p);
    }
    unsetenv("LIMBER_SIMD");
    free_answer(&full);
    case_destroy(&c);
}

// ---- against itself
// --------------------------------------------------------------------------------------------------

// K is symmetric; f is the derivative of V and K that of f, to second order; and Euler's theorem for the parts of
// degree 2, 3, 4: f = (K0 + K1/2 + K2/3) q, V = q^T (K0/2 + K1/6 + K2/12) q
static void test_derivatives(void **state) {
    (void)state;
    enum { R = 11 };
    polynomial_case     c;
    cubature_polynomial p = {0};
    uint64_t            seed = 8;
    double              q[R], d[R], order[2], error[2][2];
    case_create(&c, FEM_H8, CASE_MIXED, 2, R, small_cells, 1);
    case_polynomial(&c, &p);
    cubature_forces forces = cubature_polynomial_forces(&p);
    test_random_fill(&seed, R, 1.5, q);
    test_random_fill(&seed, R, 1, d);
    answer here = evaluate(forces, q);
    double slope = dense_dot(R, here.f, d), Kd[R];
    dense_gemv_set(R, R, 1, here.K, d, Kd);
    for (int k = 0; k < 2; k++) {
        double h = k ? 5e-3 : 1e-2, ahead[R], behind[R];
        for (int i = 0; i < R; i++) ahead[i] = q[i] + h * d[i], behind[i] = q[i] - h * d[i];
        answer a = evaluate(forces, ahead), b = evaluate(forces, behind);
        error[0][k] = fabs((a.V - b.V) / (2 * h) - slope) / fabs(slope);
        for (int i = 0; i < R; i++) ahead[i] = (a.f[i] - b.f[i]) / (2 * h);
        error[1][k] = test_relative_error(R, ahead, Kd);
        free_answer(&a), free_answer(&b);
    }
    for (int i = 0; i < 2; i++) order[i] = log2(error[i][0] / error[i][1]);
    printf("  dV: %.1e, order %.3f; df: %.1e, order %.3f\n", error[0][1], order[0], error[1][1], order[1]);
    assert_true(order[0] > 1.95 && order[0] < 2.05 && order[1] > 1.95 && order[1] < 2.05);
    for (int a = 0; a < R; a++)
        for (int b = 0; b < R; b++) assert_true(here.K[a + b * R] == here.K[b + a * R]);
    // the three degrees from K at 0, q and -q
    double zero[R] = {0}, minus[R], F[R * R], E[R * R], f[R], Eq[R];
    for (int i = 0; i < R; i++) minus[i] = -q[i];
    answer rest = evaluate(forces, zero), opposite = evaluate(forces, minus);
    for (int i = 0; i < R * R; i++) {
        double K0 = rest.K[i], K1 = (here.K[i] - opposite.K[i]) / 2, K2 = (here.K[i] + opposite.K[i]) / 2 - K0;
        F[i] = K0 + K1 / 2 + K2 / 3;
        E[i] = K0 / 2 + K1 / 6 + K2 / 12;
    }
    dense_gemv_set(R, R, 1, F, q, f);
    dense_gemv_set(R, R, 1, E, q, Eq);
    double euler = fmax(test_relative_error(R, f, here.f), fabs(dense_dot(R, q, Eq) / here.V - 1));
    printf("  Euler's theorem: %.1e; V(0) = %g, |f(0)| = %g\n", euler, rest.V, dense_norm(R, rest.f));
    assert_true(euler < 1e-13 && rest.V == 0 && dense_norm(R, rest.f) == 0);
    free_answer(&here), free_answer(&rest), free_answer(&opposite);
    cubature_polynomial_destroy(&p);
    case_destroy(&c);
}

// other constants at run time equal precomputing with them, and the reduced mass equals U^T M U
static void test_edit(void **state) {
    (void)state;
    enum { R = 8 };
    polynomial_case     c;
    cubature_polynomial p = {0}, again = {0}, before = {0};
    case_create(&c, FEM_T4, CASE_MIXED, 2, R, small_cells, 1);
    case_polynomial(&c, &p);
    for (int round = 0; round < 2; round++) {
        double     M[R * R], reference[R * R], *MU = fem_alloc((size_t)c.n * R, 8);
        fem_sparse mass = {0};
        assert_ok(fem_body_matrix(c.body, &mass));
        fem_body_mass(c.body, FEM_MASS_CONSISTENT, &mass);
        fem_sparse_multiply(&mass, R, c.U, MU);
        dense_gemm(true, false, R, R, c.n, 1, c.U, MU, 0, reference);
        cubature_polynomial_mass(&p, M);
        double error = test_relative_error(R * R, M, reference);
        printf("  mass: %.1e\n", error);
        assert_true(error < 1e-13);
        fem_sparse_destroy(&mass), fem_free(MU);
        if (round == 1) break;
        // all constants of all groups
        assert_ok(cubature_polynomial_truncate(&before, &p, R));
        for (int g = 0; g < 3; g++) {
            fem_material m = p.groups[g].material;
            m.young *= 2.5 + g, m.poisson = 0.1 + 0.15 * g, m.density *= 0.3;
            for (int i = 0; i < 3; i++) m.young3[i] *= 1.5 + i, m.shear3[i] *= 3 - i, m.poisson3[i] *= 0.5;
            assert_ok(cubature_polynomial_set_material(&p, g, &m));
            for (int k = 0; k < c.mesh.material_count; k++)
                if (strcmp(c.mesh.materials[k].name, m.name) == 0) c.mesh.materials[k] = m;
        }
        fem_body_destroy(c.body);
        fem_body_options options = fem_body_default_options();
        assert_ok(fem_body_create(&c.body, &c.mesh, &options));
    }
    case_polynomial(&c, &again);
    double change = test_relative_error((int)p.count, before.coefficients, p.coefficients);
    double error = test_relative_error((int)p.count, p.coefficients, again.coefficients);
    printf("  edited against precomputed again: %.1e; the edit changed them by %.2f\n", error, change);
    assert_true(change > 0.3 && error < 1e-14);
    cubature_polynomial_destroy(&p), cubature_polynomial_destroy(&again), cubature_polynomial_destroy(&before);
    case_destroy(&c);
}

// the polynomial of the first modes is that of the truncated basis
static void test_truncation(void **state) {
    (void)state;
    polynomial_case     c;
    cubature_polynomial p = {0}, t = {0}, direct = {0};
    case_create(&c, FEM_T4, CASE_MIXED, 2, 18, small_cells, 1);
    case_polynomial(&c, &p);
    for (int modes = 1; modes <= 18; modes += modes == 1 ? 6 : 11) { // 1, 7, 18
        c.r = modes;
        case_polynomial(&c, &direct);
        assert_ok(cubature_polynomial_truncate(&t, &p, modes));
        assert_int_equal(t.count, cubature_polynomial_count(modes));
        double sets = test_relative_error((int)t.count * t.set_count, t.sets, direct.sets);
        double sum = test_relative_error((int)t.count, t.coefficients, direct.coefficients);
        double mass = test_relative_error(3 * modes * modes, t.mass, direct.mass);
        printf("  %2d of 18 modes: sets %.1e, sum %.1e, mass %.1e\n", modes, sets, sum, mass);
        assert_true(sets < 1e-13 && sum < 1e-13 && mass < 1e-13);
        cubature_polynomial_destroy(&t), cubature_polynomial_destroy(&direct);
    }
    assert_fails(cubature_polynomial_truncate(&t, &p, 19), FEM_BAD_INPUT, "expected 1 to 18");
    assert_fails(cubature_polynomial_truncate(&t, &p, 0), FEM_BAD_INPUT, "expected 1 to 18");
    cubature_polynomial_destroy(&p);
    case_destroy(&c);
}

// bit by bit the same with 1, 2, 3 and 5 threads
static void test_threads(void **state) {
    (void)state;
    const int           cells[3] = {7, 5, 4};
    polynomial_case     c;
    cubature_polynomial one = {0};
    case_create(&c, FEM_T4, CASE_MIXED, 2, 13, cells, 1);
    fem_set_threads(1);
    case_polynomial(&c, &one);
    for (int threads = 2; threads <= 5; threads += threads == 2 ? 1 : 2) {
        cubature_polynomial p = {0};
        fem_set_threads(threads);
        case_polynomial(&c, &p);
        assert_memory_equal(p.sets, one.sets, (size_t)p.set_count * p.count * sizeof *p.sets);
        assert_memory_equal(p.coefficients, one.coefficients, p.count * sizeof *p.coefficients);
        assert_memory_equal(p.mass, one.mass, (size_t)(p.group_count * 13 * 13) * sizeof *p.mass);
        cubature_polynomial_destroy(&p);
    }
    fem_set_threads(0);
    printf("  %zu coefficients in %d sets: equal with 1, 2, 3, 5 threads\n", one.count, one.set_count);
    cubature_polynomial_destroy(&one);
    case_destroy(&c);
}

// a body scaled by s with the same modes in class coordinates, u = s U q: M takes s^5, V s^3 (theory.md 2)
static void test_scale(void **state) {
    (void)state;
    enum { R = 6 };
    const double        s = 1.7;
    polynomial_case     unit, scaled;
    cubature_polynomial p = {0}, ps = {0};
    case_create(&unit, FEM_H8, CASE_MIXED, 2, R, small_cells, 1);
    case_create(&scaled, FEM_H8, CASE_MIXED, 2, R, small_cells, s);
    for (int i = 0; i < scaled.n * R; i++) scaled.U[i] *= s;
    case_polynomial(&unit, &p), case_polynomial(&scaled, &ps);
    double M[R * R], Ms[R * R], *expected = fem_copy(p.coefficients, p.count, sizeof *expected);
    cubature_polynomial_mass(&p, M), cubature_polynomial_mass(&ps, Ms);
    for (int i = 0; i < R * R; i++) M[i] *= s * s * s * s * s;
    for (size_t i = 0; i < p.count; i++) expected[i] *= s * s * s;
    double error = test_relative_error((int)p.count, ps.coefficients, expected);
    double mass = test_relative_error(R * R, Ms, M);
    printf("  s = %g: coefficients %.1e, mass %.1e\n", s, error, mass);
    assert_true(error < 1e-13 && mass < 1e-13);
    fem_free(expected);
    cubature_polynomial_destroy(&p), cubature_polynomial_destroy(&ps);
    case_destroy(&unit), case_destroy(&scaled);
}

// linear forces: K0 q and its energy
static void test_linear(void **state) {
    (void)state;
    enum { R = 5 };
    polynomial_case     c;
    cubature_polynomial p = {0};
    double              q[R], zero[R] = {0};
    uint64_t            seed = 4;
    case_create(&c, FEM_T4, CASE_ISOTROPIC, 2, R, small_cells, 1);
    case_polynomial(&c, &p);
    answer          rest = evaluate(cubature_polynomial_forces(&p), zero);
    cubature_linear linear = {.r = R, .K0 = rest.K};
    test_random_fill(&seed, R, 1e-6, q);
    answer small = evaluate(cubature_polynomial_forces(&p), q), other = evaluate(cubature_linear_forces(&linear), q);
    double error = answer_error(R, &other, &small);
    printf("  at |q| = 1e-6 linear and StVK differ by %.1e\n", error);
    assert_true(error < 1e-4 && error > 1e-9);
    assert_memory_equal(other.K, rest.K, sizeof(double) * R * R);
    free_answer(&rest), free_answer(&small), free_answer(&other);
    cubature_polynomial_destroy(&p);
    case_destroy(&c);
}

// ---- VegaFEM
// ---------------------------------------------------------------------------------------------------------

static const cJSON *item(const cJSON *json, const char *key) {
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(json, key);
    if (!found) fail_msg("no \"%s\" in the reference", key);
    return found;
}
static void numbers(const cJSON *json, const char *key, int count, double *out) {
    const cJSON *list = item(json, key);
    assert_int_equal(cJSON_GetArraySize(list), count);
    for (int i = 0; i < count; i++) out[i] = cJSON_GetArrayItem(list, i)->valuedouble;
}

// Coefficient of q_i q_j q_k (i <= j <= k, -1 = absent) in force `a`: that of the energy's monomial times the exponent
// of q_a in it.
static double force_coefficient(const cubature_polynomial *p, int a, int i, int j, int k) {
    int m[4] = {i, j, k, a}, exponent = 0;
    for (int x = 3; x > 0 && m[x] < m[x - 1]; x--) {
        int t = m[x];
        m[x] = m[x - 1], m[x - 1] = t;
    }
    for (int x = 0; x < 4; x++) exponent += m[x] == a;
    return exponent * p->coefficients[cubature_polynomial_index(m[0], m[1], m[2], m[3])];
}

static void check_vega(const char *name) {
    enum { R = 6 };
    char path[256];
    snprintf(path, sizeof path, "reference/vega/%s.json", name);
    const char *file = test_data(path);
    if (!file) return;
    char  *text = NULL;
    size_t size;
    assert_ok(fem_file_read(&text, &size, file));
    cJSON *json = cJSON_Parse(text);
    fem_free(text);
    assert_non_null(json);
    fem_mesh         mesh = {0};
    fem_body        *body = NULL;
    fem_body_options body_options = fem_body_default_options();
    body_options.quadrature = 3; // VegaFEM integrates its cubes exactly
    assert_ok(fem_mesh_read(&mesh, test_data(item(json, "mesh_file")->valuestring)));
    assert_ok(fem_body_create(&body, &mesh, &body_options));
    int     n = 3 * mesh.vertex_count;
    double *U = fem_alloc((size_t)n * R, 8), L = item(json, "bbox_diagonal_L")->valuedouble;
    for (int j = 0; j < R; j++)
        for (int i = 0; i < n; i++) U[j * n + i] = 0.01 * L * sin((i + 1.0) * (j + 1.0));
    cubature_polynomial         p = {0};
    cubature_polynomial_options options = cubature_polynomial_default_options();
    double                      q[R], f[R], K[R * R], first[20], ours[20], norm2[3] = {0}, worst = 0;
    assert_ok(cubature_polynomial_create(&p, body, R, U, &options, NULL));
    numbers(json, "reduced6_q", R, q), numbers(json, "reduced6_force", R, f);
    numbers(json, "reduced6_stiffness_colmajor", R * R, K), numbers(json, "reduced6_cubic_coef_first20", 20, first);
    answer a = evaluate(cubature_polynomial_forces(&p), q);
    double force = test_relative_error(R, a.f, f), stiffness = test_relative_error(R * R, a.K, K);
    for (int out = 0; out < R; out++)
        for (int k = 0, cubic = 0; k < R; k++) {
            norm2[0] += pow(force_coefficient(&p, out, -1, -1, k), 2);
            for (int j = k; j < R; j++) { // lexicographic, as VegaFEM stores them
                norm2[1] += pow(force_coefficient(&p, out, -1, k, j), 2);
                for (int i = j; i < R; i++, cubic++) {
                    double value = force_coefficient(&p, out, k, j, i);
                    norm2[2] += value * value;
                    if (out == 0 && cubic < 20) ours[cubic] = value;
                }
            }
        }
    const char *keys[] = {"reduced6_linear_coef_norm2", "reduced6_quadratic_coef_norm2", "reduced6_cubic_coef_norm2"};
    for (int d = 0; d < 3; d++) worst = fmax(worst, fabs(sqrt(norm2[d]) / item(json, keys[d])->valuedouble - 1));
    double head = test_relative_error(20, ours, first);
    printf("  %-24s force %.1e, stiffness %.1e, first coefficients %.1e, norms of all %.1e\n", name, force, stiffness,
           head, worst);
    assert_true(force < 1e-9 && stiffness < 1e-9 && head < 1e-9 && worst < 1e-9);
    free_answer(&a);
    cubature_polynomial_destroy(&p);
    fem_free(U);
    fem_body_destroy(body);
    fem_mesh_destroy(&mesh);
    cJSON_Delete(json);
}

static void test_vega(void **state) {
    (void)state;
    const char *names[] = {"beam3_tet", "beam3_vox",          "simpleBridge_tet",
                           "turtle",    "turtle_homogeneous", "beam3_tet_unconstrained"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) check_vega(names[i]);
}

// ---- refusals
// --------------------------------------------------------------------------------------------------------

static bool stop_at_once(void *context, const char *what, double fraction) {
    (void)what, (void)fraction;
    return ++*(int *)context < 3;
}

static void test_refusals(void **state) {
    (void)state;
    polynomial_case             c;
    cubature_polynomial         p = {0};
    cubature_polynomial_options options = cubature_polynomial_default_options();
    case_create(&c, FEM_T4, CASE_MIXED, 2, 4, small_cells, 1);
    assert_fails(cubature_polynomial_create(&p, c.body, 0, c.U, &options, NULL), FEM_BAD_INPUT, "0 modes");
    assert_fails(cubature_polynomial_create(&p, c.body, c.n + 1, c.U, &options, NULL), FEM_BAD_INPUT, "degrees of");
    // too large: the figure, and what would do
    double *wide = fem_calloc((size_t)c.n * 200, 8);
    assert_fails(cubature_polynomial_create(&p, c.body, 200, wide, &options, NULL), FEM_NO_MEMORY, "GB");
    printf("  %s\n", fem_message());
    assert_fails(cubature_polynomial_create(&p, c.body, 1 << 30, wide, &options, NULL), FEM_BAD_INPUT, "expected 1 to");
    wide[5] = NAN;
    assert_fails(cubature_polynomial_create(&p, c.body, 1, wide, &options, NULL), FEM_BAD_INPUT, "not finite");
    fem_free(wide);
    int          calls = 0;
    fem_progress progress = {.report = stop_at_once, .context = &calls};
    assert_int_equal(cubature_polynomial_create(&p, c.body, 4, c.U, &options, &progress), FEM_STOPPED);
    assert_null(p.sets);
    // other materials, named
    for (int kind = 0; kind < FEM_MATERIAL_KINDS; kind++) {
        if (kind == FEM_STVK || kind == FEM_ORTHOTROPIC) continue;
        c.mesh.materials[2].kind = (fem_material_kind)kind;
        assert_fails(cubature_polynomial_create(&p, c.body, 4, c.U, &options, NULL), FEM_BAD_INPUT,
                     fem_material_kind_name((fem_material_kind)kind));
        assert_non_null(strstr(fem_message(), "\"m2\""));
        assert_non_null(strstr(fem_message(), "cubature"));
    }
    printf("  %s\n", fem_message());
    c.mesh.materials[2].kind = FEM_STVK;
    c.mesh.materials[3].kind = FEM_NEOHOOKEAN; // of no element: no matter
    case_polynomial(&c, &p);
    // edits that cannot be, and leave the polynomial as it was
    double      *copy = fem_copy(p.coefficients, p.count, 8);
    fem_material m = p.groups[0].material, turned = p.groups[1].material;
    m.poisson = 0.5;
    assert_fails(cubature_polynomial_set_material(&p, 0, &m), FEM_BAD_INPUT, "Poisson");
    m = p.groups[0].material, m.kind = FEM_NEOHOOKEAN;
    assert_fails(cubature_polynomial_set_material(&p, 0, &m), FEM_BAD_INPUT, "neohookean");
    mat3_identity(turned.frame);
    assert_fails(cubature_polynomial_set_material(&p, 1, &turned), FEM_BAD_INPUT, "axes");
    assert_fails(cubature_polynomial_set_material(&p, 3, &m), FEM_BAD_INPUT, "group 3");
    assert_memory_equal(copy, p.coefficients, p.count * 8);
    fem_free(copy);
    cubature_polynomial_destroy(&p);
    case_destroy(&c);
}

static void test_allocation_failure(void **state) {
    (void)state;
    polynomial_case c;
    long            failures = 0;
    case_create(&c, FEM_T4, CASE_MIXED, 2, 4, small_cells, 1);
    cubature_polynomial_options options = cubature_polynomial_default_options();
    for (long allowed = 0;; allowed++) {
        cubature_polynomial p = {0}, t = {0};
        cubature_full      *full = NULL;
        long                before = fem_memory_blocks();
        fem_memory_fail_after(allowed);
        fem_status status = cubature_polynomial_create(&p, c.body, 4, c.U, &options, NULL);
        if (status == FEM_OK) status = cubature_polynomial_truncate(&t, &p, 3);
        if (status == FEM_OK) status = cubature_full_create(&full, c.body, 4, c.U);
        fem_memory_fail_after(-1);
        cubature_polynomial_destroy(&p), cubature_polynomial_destroy(&t);
        cubature_full_destroy(full);
        assert_int_equal(fem_memory_blocks(), before);
        if (status == FEM_OK) break;
        assert_int_equal(status, FEM_NO_MEMORY);
        failures++;
    }
    printf("  %ld allocations refused one after the other\n", failures);
    assert_true(failures > 15);
    case_destroy(&c);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_mesh),
        cmocka_unit_test(test_widths),
        cmocka_unit_test(test_derivatives),
        cmocka_unit_test(test_edit),
        cmocka_unit_test(test_truncation),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_vega),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_allocation_failure),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
