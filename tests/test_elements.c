// Elements and assembly: derivatives by differences with the observed order, patch test, rigid motion, balance, mass,
// and the fast kernels against the plain ones at every vector width; for all materials, T4 and H8 with both
// quadratures.
#include "tests/support.h"

#include <math.h>

typedef struct sample {
    fem_mesh  mesh;
    fem_body *body;
    int       n; // 3 vertices
    double   *u, *a, *b;
} sample;

// A box of 5 x 4 x 3 cells whose inner vertices are moved about, with two materials of one kind, in a bent pose.
static void make_sample(sample *s, fem_element type, fem_material_kind kind, int quadrature, bool plain) {
    *s = (sample){0};
    const double     low[3] = {0, 0, 0}, high[3] = {1.25, 0.8, 0.6};
    const int        cells[3] = {5, 4, 3};
    uint64_t         seed = 21;
    fem_body_options options = fem_body_default_options();
    assert_ok(fem_generate_box(&s->mesh, type, low, high, cells));
    for (int v = 0; v < s->mesh.vertex_count; v++) {
        double *x = s->mesh.vertices + 3 * v;
        bool    inside = true;
        for (int i = 0; i < 3; i++) inside = inside && x[i] > low[i] + 1e-9 && x[i] < high[i] - 1e-9;
        for (int i = 0; i < 3; i++) x[i] += inside ? 0.03 * test_random(&seed) : 0;
    }
    fem_material m = fem_material_default();
    m.kind = kind;
    m.young = 3, m.poisson = 0.3, m.density = 2;
    m.young3[0] = 6, m.young3[1] = 3, m.young3[2] = 2;
    m.poisson3[0] = 0.3, m.poisson3[1] = 0.25, m.poisson3[2] = 0.1;
    m.shear3[0] = 1, m.shear3[1] = 0.8, m.shear3[2] = 1.2;
    m.mu01 = 0.3, m.mu10 = 0.8, m.v1 = 2, m.mu = 0.9, m.chain = 5, m.bulk = 2.5;
    assert_ok(fem_mesh_set_material(&s->mesh, &m));
    // a second region with twice the stiffness and three times the density
    fem_material *materials = fem_alloc(2, sizeof *materials);
    fem_region   *regions = fem_alloc(2, sizeof *regions);
    assert_non_null(materials);
    assert_non_null(regions);
    materials[0] = materials[1] = m;
    materials[1].young *= 2, materials[1].mu *= 2, materials[1].mu10 *= 2, materials[1].density *= 3;
    for (int i = 0; i < 3; i++) materials[1].young3[i] *= 2;
    fem_free(s->mesh.materials);
    s->mesh.materials = materials, s->mesh.material_count = 2;
    regions[0] = s->mesh.regions[0];
    regions[1] = (fem_region){.name = fem_copy_string("stiff"), .material = 1};
    fem_free(s->mesh.regions);
    s->mesh.regions = regions, s->mesh.region_count = 2;
    for (int e = 0; e < s->mesh.element_count; e += 3) s->mesh.region[e] = 1;
    assert_ok(fem_mesh_check(&s->mesh));
    options.quadrature = quadrature;
    options.plain = plain;
    assert_ok(fem_body_create(&s->body, &s->mesh, &options));
    s->n = 3 * s->mesh.vertex_count;
    s->u = fem_alloc((size_t)s->n, sizeof(double)), s->a = fem_alloc((size_t)s->n, sizeof(double));
    s->b = fem_alloc((size_t)s->n, sizeof(double));
    for (int v = 0; v < s->mesh.vertex_count; v++) { // bend, twist and a little noise
        const double *x = s->mesh.vertices + 3 * v;
        double        angle = 0.6 * x[0];
        s->u[3 * v] = -sin(angle) * x[2] * 0.8 + 0.1 * x[0];
        s->u[3 * v + 1] = 0.2 * x[0] * x[2];
        s->u[3 * v + 2] = 0.3 * x[0] * x[0] - 0.1 * x[1] * x[2];
        for (int i = 0; i < 3; i++) s->u[3 * v + i] += 0.01 * test_random(&seed);
    }
    test_random_fill(&seed, s->n, 0.1, s->a);
    test_random_fill(&seed, s->n, 0.1, s->b);
}

static void free_sample(sample *s) {
    fem_body_destroy(s->body);
    fem_mesh_destroy(&s->mesh);
    fem_free(s->u), fem_free(s->a), fem_free(s->b);
}

static void for_all(void (*check)(fem_element, fem_material_kind, int)) {
    for (int kind = 0; kind < FEM_MATERIAL_KINDS; kind++) {
        check(FEM_T4, (fem_material_kind)kind, 2);
        check(FEM_H8, (fem_material_kind)kind, 2);
        check(FEM_H8, (fem_material_kind)kind, 3);
    }
}

static const char *label(fem_element type, fem_material_kind kind, int quadrature) {
    static char text[64];
    snprintf(text, sizeof text, "%s %s",
             type == FEM_T4    ? "T4   "
             : quadrature == 2 ? "H8/2 "
                               : "H8/3 ",
             fem_material_kind_name(kind));
    return text;
}

// ---- derivatives --------------------------------------------------------------------------------------------------

static double *moved(const sample *s, double h) {
    double *u = fem_copy(s->u, (size_t)s->n, sizeof *u);
    assert_non_null(u);
    for (int i = 0; i < s->n; i++) u[i] += h * s->a[i];
    return u;
}

static void difference_errors(const sample *s, double h, double error[3]) {
    fem_sparse K = {0};
    double     W[2], *f[2], *Kb[2], *force = fem_alloc((size_t)s->n, 8), *product = fem_alloc((size_t)s->n, 8);
    assert_ok(fem_body_matrix(s->body, &K));
    for (int side = 0; side < 2; side++) {
        double *u = moved(s, side ? h : -h);
        f[side] = fem_alloc((size_t)s->n, 8), Kb[side] = fem_alloc((size_t)s->n, 8);
        fem_body_evaluate(s->body, u, &W[side], f[side], &K);
        fem_sparse_multiply(&K, 1, s->b, Kb[side]);
        fem_free(u);
    }
    fem_body_evaluate(s->body, s->u, NULL, force, &K);
    assert_true(dense_norm(s->n, force) > 1e-2);
    error[0] = fabs((W[1] - W[0]) / (2 * h) - dense_dot(s->n, force, s->a)) /
               (dense_norm(s->n, force) * dense_norm(s->n, s->a));
    for (int i = 0; i < s->n; i++) {
        f[1][i] = (f[1][i] - f[0][i]) / (2 * h);
        Kb[1][i] = (Kb[1][i] - Kb[0][i]) / (2 * h);
    }
    fem_sparse_multiply(&K, 1, s->a, product);
    error[1] = test_relative_error(s->n, f[1], product);
    fem_body_second(s->body, s->u, s->a, s->b, product);
    error[2] = dense_norm(s->n, product) > 0 ? test_relative_error(s->n, product, Kb[1]) : 0;
    for (int side = 0; side < 2; side++) fem_free(f[side]), fem_free(Kb[side]);
    fem_free(force), fem_free(product);
    fem_sparse_destroy(&K);
}

static void check_derivatives(fem_element type, fem_material_kind kind, int quadrature) {
    static const char *const names[] = {"f against W", "K against f", "(H:a)b against K"};
    sample                   s;
    make_sample(&s, type, kind, quadrature, false);
    double coarse[3], fine[3];
    difference_errors(&s, 0.04, coarse);
    difference_errors(&s, 0.02, fine);
    printf("  %-20s", label(type, kind, quadrature));
    for (int i = 0; i < 3; i++) {
        double order = log2(coarse[i] / fine[i]);
        printf("  %s %.1e order %.2f", names[i], fine[i], order);
        if (coarse[i] > 1e-10) assert_true(order > 1.9 && order < 2.3);
    }
    printf("\n");
    free_sample(&s);
}
// the force is the gradient of the energy, the stiffness that of the force, (H:a)b that of the stiffness: second order
static void test_derivatives(void **state) { (void)state, for_all(check_derivatives); }

// ---- fast against plain --------------------------------------------------------------------------------------------

static void check_fast(fem_element type, fem_material_kind kind, int quadrature) {
    sample     fast, plain;
    fem_sparse K = {0}, L = {0};
    double     W, V, *f, *g;
    make_sample(&fast, type, kind, quadrature, false);
    make_sample(&plain, type, kind, quadrature, true);
    f = fem_alloc((size_t)fast.n, 8), g = fem_alloc((size_t)fast.n, 8);
    assert_ok(fem_body_matrix(fast.body, &K));
    assert_ok(fem_body_matrix(plain.body, &L));
    fem_body_evaluate(plain.body, plain.u, &V, g, &L);
    printf("  %-20s", label(type, kind, quadrature));
    for (fem_simd level = FEM_SIMD_BASELINE; level <= FEM_SIMD_AVX512; level++) {
        assert_int_equal(setenv("LIMBER_SIMD", fem_simd_name(level), 1), 0);
        if (fem_simd_level() != level) continue; // this processor has no such registers
        fem_body_evaluate(fast.body, fast.u, &W, f, &K);
        double force_error = test_relative_error(fast.n, f, g),
               stiffness_error = test_relative_error(9 * K.blocks, K.value, L.value);
        printf("  %s: W %.0e f %.0e K %.0e", fem_simd_name(level), fabs(W / V - 1), force_error, stiffness_error);
        assert_true(fabs(W / V - 1) < 1e-13 && force_error < 1e-12 && stiffness_error < 1e-13);
        if (kind != FEM_LINEAR) {
            double *h = fem_alloc((size_t)fast.n, 8);
            fem_body_second(plain.body, plain.u, plain.a, plain.b, h);
            fem_body_second(fast.body, fast.u, fast.a, fast.b, f);
            assert_true(test_relative_error(fast.n, f, h) < 1e-12);
            fem_free(h);
        }
    }
    unsetenv("LIMBER_SIMD");
    printf("\n");
    fem_free(f), fem_free(g);
    fem_sparse_destroy(&K), fem_sparse_destroy(&L);
    free_sample(&fast), free_sample(&plain);
}
// the kernels of every vector width agree with the plain loops
static void test_fast_equals_plain(void **state) { (void)state, for_all(check_fast); }

// each result alone is the same as all of them together, and none depends on the number of threads, to the last bit
static void test_threads(void **state) {
    (void)state;
    fem_mesh         mesh = {0};
    fem_body        *body = NULL;
    fem_body_options options = fem_body_default_options();
    const double     low[3] = {0, 0, 0}, high[3] = {2, 1, 1};
    const int        cells[3] = {16, 10, 10};
    assert_ok(fem_generate_box(&mesh, FEM_T4, low, high, cells));
    assert_ok(fem_body_create(&body, &mesh, &options));
    int        n = 3 * mesh.vertex_count;
    uint64_t   seed = 1;
    double    *u = fem_alloc((size_t)n, 8), *f[3], W[3], alone;
    fem_sparse K[3] = {{0}};
    test_random_fill(&seed, n, 0.02, u);
    for (int t = 0; t < 3; t++) {
        fem_set_threads(t + 1);
        f[t] = fem_alloc((size_t)n, 8);
        assert_ok(fem_body_matrix(body, &K[t]));
        fem_body_evaluate(body, u, &W[t], f[t], &K[t]);
        assert_true(W[t] == W[0]);
        assert_memory_equal(f[t], f[0], (size_t)n * 8);
        assert_memory_equal(K[t].value, K[0].value, 72 * (size_t)K[0].blocks);
    }
    fem_body_evaluate(body, u, &alone, NULL, NULL);
    assert_true(alone == W[0]);
    fem_body_evaluate(body, u, NULL, f[1], NULL);
    assert_memory_equal(f[1], f[0], (size_t)n * 8);
    printf("  %d elements, W = %.15g with 1, 2 and 3 threads\n", mesh.element_count, W[0]);
    fem_set_threads(0);
    for (int t = 0; t < 3; t++) fem_free(f[t]), fem_sparse_destroy(&K[t]);
    fem_free(u);
    fem_body_destroy(body);
    fem_mesh_destroy(&mesh);
}

// ---- physics -------------------------------------------------------------------------------------------------------

// One material everywhere, displacement u = G x: every element has the same stress, so nothing acts on inner vertices.
static void check_patch(fem_element type, fem_material_kind kind, int quadrature) {
    sample s;
    make_sample(&s, type, kind, quadrature, false);
    const double G[9] = {0.1, 0.05, -0.02, 0.03, -0.08, 0.04, 0.02, -0.06, 0.07};
    double      *f = fem_alloc((size_t)s.n, 8), W, inner = 0, outer = 0, density, P[9], F[9], volume = 1.25 * 0.8 * 0.6;
    fem_material_constants c;
    for (int e = 0; e < s.mesh.element_count; e++) s.mesh.region[e] = 0;
    fem_body_destroy(s.body);
    fem_body_options options = fem_body_default_options();
    options.quadrature = quadrature;
    assert_ok(fem_body_create(&s.body, &s.mesh, &options));
    for (int v = 0; v < s.mesh.vertex_count; v++) mat3_mul_vec(s.u + 3 * v, G, s.mesh.vertices + 3 * v);
    fem_body_evaluate(s.body, s.u, &W, f, NULL);
    for (int v = 0; v < s.mesh.vertex_count; v++) {
        const double *x = s.mesh.vertices + 3 * v;
        bool          inside =
            x[0] > 1e-9 && x[1] > 1e-9 && x[2] > 1e-9 && x[0] < 1.25 - 1e-9 && x[1] < 0.8 - 1e-9 && x[2] < 0.6 - 1e-9;
        if (inside)
            inner = fmax(inner, vec3_norm(f + 3 * v));
        else
            outer = fmax(outer, vec3_norm(f + 3 * v));
    }
    for (int i = 0; i < 9; i++) F[i] = G[i] + (i % 4 == 0);
    fem_material_prepare(&c, &s.mesh.materials[0]);
    fem_material_evaluate(&c, F, &density, P, NULL);
    printf("  %-20s inner force %.1e of the outer, energy over W(F) V - 1 = %.1e\n", label(type, kind, quadrature),
           inner / outer, W / (density * volume) - 1);
    assert_true(outer > 1e-3 && inner < 1e-12 * outer);
    assert_true(fabs(W / (density * volume) - 1) < 1e-12);
    fem_free(f);
    free_sample(&s);
}
// patch test: constant stress is reproduced on an irregular mesh
static void test_patch(void **state) { (void)state, for_all(check_patch); }

static void check_rigid(fem_element type, fem_material_kind kind, int quadrature) {
    sample s;
    make_sample(&s, type, kind, quadrature, false);
    double c = cos(1.1), sn = sin(1.1), R[9] = {c, -sn, 0, sn, c, 0, 0, 0, 1}, t[3] = {0.4, -2, 1};
    if (kind == FEM_LINEAR) { // small strain knows infinitesimal rotations only
        const double W[9] = {1, -0.3, 0.2, 0.3, 1, -0.1, -0.2, 0.1, 1};
        memcpy(R, W, sizeof R);
    }
    double *f = fem_alloc((size_t)s.n, 8), *g = fem_alloc((size_t)s.n, 8);
    fem_body_evaluate(s.body, s.u, NULL, g, NULL); // a deformed pose, for scale
    for (int v = 0; v < s.mesh.vertex_count; v++) {
        mat3_mul_vec(s.u + 3 * v, R, s.mesh.vertices + 3 * v);
        for (int i = 0; i < 3; i++) s.u[3 * v + i] += t[i] - s.mesh.vertices[3 * v + i];
    }
    fem_body_evaluate(s.body, s.u, NULL, f, NULL);
    printf("  %-20s |f| of a rigid motion %.1e of that of the bent pose\n", label(type, kind, quadrature),
           dense_norm(s.n, f) / dense_norm(s.n, g));
    assert_true(dense_norm(s.n, f) < 1e-13 * dense_norm(s.n, g) + 1e-13);
    fem_free(f), fem_free(g);
    free_sample(&s);
}
// a rigid motion causes no force
static void test_rigid(void **state) { (void)state, for_all(check_rigid); }

static void check_balance(fem_element type, fem_material_kind kind, int quadrature) {
    sample s;
    make_sample(&s, type, kind, quadrature, false);
    double *f = fem_alloc((size_t)s.n, 8), force[3] = {0}, moment[3] = {0}, size = 0;
    fem_body_evaluate(s.body, s.u, NULL, f, NULL);
    for (int v = 0; v < s.mesh.vertex_count; v++) {
        double x[3], m[3];
        for (int i = 0; i < 3; i++) x[i] = s.mesh.vertices[3 * v + i] + (kind == FEM_LINEAR ? 0 : s.u[3 * v + i]);
        vec3_cross(m, x, f + 3 * v);
        vec3_axpy(force, 1, f + 3 * v), vec3_axpy(moment, 1, m);
        size += vec3_norm(f + 3 * v);
    }
    printf("  %-20s resultant %.1e, moment %.1e of the sum of |f|\n", label(type, kind, quadrature),
           vec3_norm(force) / size, vec3_norm(moment) / size);
    assert_true(size > 0.1 && vec3_norm(force) < 1e-14 * size && vec3_norm(moment) < 1e-14 * size);
    fem_free(f);
    free_sample(&s);
}
// internal forces have no resultant and no moment
static void test_balance(void **state) { (void)state, for_all(check_balance); }

// K is symmetric positive semi-definite at rest with exactly the rigid motions in its null space
static void test_null_space(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        sample s;
        make_sample(&s, (fem_element)type, FEM_STVK, 2, false);
        fem_sparse K = {0};
        double    *dense = fem_calloc((size_t)s.n * (size_t)s.n, 8), *values = fem_alloc((size_t)s.n, 8),
               *column = fem_calloc((size_t)s.n, 8);
        assert_ok(fem_body_matrix(s.body, &K));
        memset(s.u, 0, (size_t)s.n * 8);
        fem_body_evaluate(s.body, s.u, NULL, NULL, &K);
        for (int j = 0; j < s.n; j++) {
            column[j] = 1;
            fem_sparse_multiply(&K, 1, column, dense + (size_t)j * (size_t)s.n);
            column[j] = 0;
        }
        double asymmetry = 0;
        for (int i = 0; i < s.n; i++)
            for (int j = 0; j < i; j++)
                asymmetry = fmax(asymmetry, fabs(dense[(size_t)j * (size_t)s.n + (size_t)i] -
                                                 dense[(size_t)i * (size_t)s.n + (size_t)j]));
        assert_ok(dense_symmetric_eigen(s.n, dense, values));
        printf("  %s: asymmetry %.0e; eigenvalues %.1e .. %.1e | %.3e .. %.3e\n", type == FEM_T4 ? "T4" : "H8",
               asymmetry, values[0], values[5], values[6], values[s.n - 1]);
        assert_true(asymmetry < 1e-14 * values[s.n - 1]);
        assert_true(fabs(values[0]) < 1e-13 * values[s.n - 1] && fabs(values[5]) < 1e-13 * values[s.n - 1]);
        assert_true(values[6] > 1e-5 * values[s.n - 1]);
        fem_free(dense), fem_free(values), fem_free(column);
        fem_sparse_destroy(&K);
        free_sample(&s);
    }
}

// ---- mass ----------------------------------------------------------------------------------------------------------

// total mass, momentum and the second moments int rho x_i x_j are those of the box (consistent), rows sum to the lumped
// mass
static void test_mass(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        sample s;
        make_sample(&s, (fem_element)type, FEM_STVK, 2, false);
        fem_sparse M = {0}, lumped = {0};
        double    *x = fem_alloc((size_t)s.n, 8), *Mx = fem_alloc((size_t)s.n, 8),
               *masses = fem_alloc((size_t)s.mesh.vertex_count, 8);
        for (int e = 0; e < s.mesh.element_count; e++) s.mesh.region[e] = 0;
        assert_ok(fem_body_matrix(s.body, &M));
        assert_ok(fem_body_matrix(s.body, &lumped));
        fem_body_mass(s.body, FEM_MASS_CONSISTENT, &M);
        fem_body_mass(s.body, FEM_MASS_LUMPED, &lumped);
        fem_body_vertex_masses(s.body, masses);
        const double edge[3] = {1.25, 0.8, 0.6};
        double       total = 2 * edge[0] * edge[1] * edge[2], worst = 0;
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) { // int rho x_i x_j with x_i in direction 0 of the field
                memset(x, 0, (size_t)s.n * 8);
                for (int v = 0; v < s.mesh.vertex_count; v++) x[3 * v] = s.mesh.vertices[3 * v + i];
                fem_sparse_multiply(&M, 1, x, Mx);
                double moment = 0, exact = i == j ? total * edge[i] * edge[i] / 3 : total * edge[i] * edge[j] / 4;
                for (int v = 0; v < s.mesh.vertex_count; v++) moment += s.mesh.vertices[3 * v + j] * Mx[3 * v];
                worst = fmax(worst, fabs(moment / exact - 1));
            }
        for (int i = 0; i < s.n; i++) x[i] = 1;
        fem_sparse_multiply(&M, 1, x, Mx);
        double row_error = 0, sum = 0;
        for (int v = 0; v < s.mesh.vertex_count; v++) {
            double diagonal = lumped.value[9 * (size_t)lumped.row_start[v]];
            row_error = fmax(row_error, fabs(Mx[3 * v] - masses[v]) + fabs(diagonal - masses[v]));
            sum += masses[v];
        }
        printf("  %s: second moments %.1e, row sums %.1e, total %.1e\n", type == FEM_T4 ? "T4" : "H8", worst, row_error,
               sum / total - 1);
        assert_true(worst < 1e-13 && row_error < 1e-14 * total && fabs(sum / total - 1) < 1e-13);
        assert_true(fabs(fem_body_total_mass(s.body) / total - 1) < 1e-13);
        fem_free(x), fem_free(Mx), fem_free(masses);
        fem_sparse_destroy(&M), fem_sparse_destroy(&lumped);
        free_sample(&s);
    }
}

// det F of a uniform stretch, and of an element that is turned over, which is named
static void test_min_jacobian(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        sample s;
        make_sample(&s, (fem_element)type, FEM_STVK, 2, false);
        int element = -1;
        for (int i = 0; i < s.n; i++) s.u[i] = 0.1 * s.mesh.vertices[i];
        double J = fem_body_min_jacobian(s.body, s.u, &element);
        printf("  smallest J %.15f, expected %.15f\n", J, 1.1 * 1.1 * 1.1);
        assert_true(fabs(J - 1.1 * 1.1 * 1.1) < 1e-12);
        for (int i = 0; i < s.n; i++) s.u[i] = 0;
        for (int i = 0; i < 3; i++) s.u[3 * s.mesh.elements[0] + i] = 3;
        assert_true(fem_body_min_jacobian(s.body, s.u, &element) < 0);
        assert_true(element >= 0);
        s.u[3 * s.mesh.elements[0]] = NAN; // is not lost behind the elements that follow
        assert_true(isnan(fem_body_min_jacobian(s.body, s.u, &element)));
        free_sample(&s);
    }
}

// a refused allocation anywhere in the creation of a body or its matrix is reported, and nothing is left behind
static void test_allocation_failure(void **state) {
    (void)state;
    fem_mesh         mesh = {0};
    const double     low[3] = {0, 0, 0}, high[3] = {1, 1, 1};
    const int        cells[3] = {2, 2, 2};
    fem_body_options options = fem_body_default_options();
    long             failures = 0;
    assert_ok(fem_generate_box(&mesh, FEM_H8, low, high, cells));
    for (long allowed = 0;; allowed++) {
        fem_body  *body = NULL;
        fem_sparse K = {0};
        long       before = fem_memory_blocks();
        fem_memory_fail_after(allowed);
        fem_status status = fem_body_create(&body, &mesh, &options);
        if (status == FEM_OK) status = fem_body_matrix(body, &K);
        fem_memory_fail_after(-1);
        fem_sparse_destroy(&K);
        fem_body_destroy(body);
        assert_int_equal(fem_memory_blocks(), before);
        if (status == FEM_OK) break;
        assert_int_equal(status, FEM_NO_MEMORY);
        failures++;
    }
    printf("  %ld allocations refused one after the other\n", failures);
    assert_true(failures > 10);
    fem_mesh_destroy(&mesh);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_derivatives),  cmocka_unit_test(test_fast_equals_plain),
        cmocka_unit_test(test_threads),      cmocka_unit_test(test_patch),
        cmocka_unit_test(test_rigid),        cmocka_unit_test(test_balance),
        cmocka_unit_test(test_null_space),   cmocka_unit_test(test_mass),
        cmocka_unit_test(test_min_jacobian), cmocka_unit_test(test_allocation_failure),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
