// Other programs' answers, where the shared data are: VegaFEM's StVK energies, forces, stiffness, (H:a)b, masses and
// eigenvalues, FreeFem++'s T4 and CalculiX's H8 frequencies.
#include "tests/support.h"

#include <cjson/cJSON.h>
#include <math.h>

static cJSON *read_json(const char *relative) {
    const char *path = test_data(relative);
    if (!path) return NULL;
    char  *text = NULL;
    size_t size;
    assert_ok(fem_file_read(&text, &size, path));
    cJSON *json = cJSON_Parse(text);
    fem_free(text);
    assert_non_null(json);
    return json;
}

static const cJSON *item(const cJSON *json, const char *key) {
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(json, key);
    if (!found) fail_msg("no \"%s\" in the reference", key);
    return found;
}
static double      number(const cJSON *json, const char *key) { return item(json, key)->valuedouble; }
static const char *text(const cJSON *json, const char *key) { return item(json, key)->valuestring; }
static int         numbers(const cJSON *json, const char *key, int most, double *out) {
            int          count = 0;
            const cJSON *entry;
            cJSON_ArrayForEach(entry, item(json, key)) if (count < most) out[count++] = entry->valuedouble;
            return count;
}

typedef struct model {
    fem_mesh   mesh;
    fem_body  *body;
    fem_sparse K, M;
    int        n;
} model;

static void load_model(model *m, const char *mesh, int quadrature) {
    *m = (model){0};
    fem_body_options options = fem_body_default_options();
    options.quadrature = quadrature;
    assert_ok(fem_mesh_read(&m->mesh, test_data(mesh)));
    assert_ok(fem_body_create(&m->body, &m->mesh, &options));
    assert_ok(fem_body_matrix(m->body, &m->K));
    assert_ok(fem_body_matrix(m->body, &m->M));
    m->n = 3 * m->mesh.vertex_count;
}

static void free_model(model *m) {
    fem_sparse_destroy(&m->K), fem_sparse_destroy(&m->M);
    fem_body_destroy(m->body);
    fem_mesh_destroy(&m->mesh);
}

static double *filled(int n, double amplitude, double (*f)(double)) {
    double *x = fem_alloc((size_t)n, 8);
    for (int i = 0; i < n; i++) x[i] = amplitude * f(i);
    return x;
}

static void check(const char *what, double ours, double theirs, double tolerance) {
    printf("    %-26s %.3g: %.1e\n", what, theirs, fabs(ours / theirs - 1));
    assert_true(fabs(ours / theirs - 1) <= tolerance);
}

static const char *const vega_models[] = {"beam3_tet", "beam3_vox", "simpleBridge_tet", "turtle", "turtle_homogeneous"};

// energies, forces, stiffness norms and (H:a)b of VegaFEM to 1e-9 (its cubes are integrated exactly: quadrature 3)
static void test_vega_forces(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof vega_models / sizeof *vega_models; k++) {
        char path[256];
        snprintf(path, sizeof path, "reference/vega/%s.json", vega_models[k]);
        cJSON *r = read_json(path);
        if (!r) return;
        model  m;
        double energy, head[30], low[3] = {INFINITY, INFINITY, INFINITY};
        load_model(&m, text(r, "mesh_file"), 3);
        printf("  %s: %d vertices, %d elements\n", vega_models[k], m.mesh.vertex_count, m.mesh.element_count);
        assert_int_equal(m.mesh.vertex_count, (int)number(r, "num_vertices"));
        assert_int_equal(m.mesh.element_count, (int)number(r, "num_elements"));
        double *u = filled(m.n, number(r, "disp_amplitude"), sin), *c = filled(m.n, 1, cos), *s = filled(m.n, 1, sin);
        double *f = fem_alloc((size_t)m.n, 8), *zero = fem_calloc((size_t)m.n, 8), *Kc = fem_alloc((size_t)m.n, 8);
        fem_body_evaluate(m.body, u, &energy, f, &m.K);
        check("energy", energy, number(r, "strain_energy"), 1e-9);
        check("|f|", dense_norm(m.n, f), number(r, "fint_norm2"), 1e-9);
        numbers(r, "fint_first30", 30, head);
        double head_error = test_relative_error(30, f, head);
        printf("    first 30 forces: %.1e\n", head_error);
        assert_true(head_error < 1e-9);
        check("|K(u)|", fem_sparse_norm(&m.K), number(r, "K_at_u_frobenius"), 1e-9);
        fem_sparse_multiply(&m.K, 1, c, Kc);
        check("|K(u) cos|", dense_norm(m.n, Kc), number(r, "K_at_u_times_cos_i_norm2"), 1e-9);
        fem_body_evaluate(m.body, zero, NULL, NULL, &m.K);
        check("|K(0)|", fem_sparse_norm(&m.K), number(r, "K_rest_frobenius"), 1e-9);
        fem_body_second(m.body, zero, s, c, f);
        check("|(H(0):sin) cos|", dense_norm(m.n, f), number(r, "hessian0_sin_cos_norm2"), 1e-9);
        numbers(r, "hessian0_sin_cos_first30", 30, head);
        head_error = test_relative_error(30, f, head);
        printf("    first 30 of (H:a)b: %.1e\n", head_error);
        assert_true(head_error < 1e-9);
        // the smooth state
        double L = number(r, "bbox_diagonal_L");
        for (int i = 0; i < m.n; i++) low[i % 3] = fmin(low[i % 3], m.mesh.vertices[i]);
        for (int i = 0; i < m.n; i++) {
            int d = (i + 1) % 3;
            u[i] = 0.05 * L * sin(2 * 3.14159265358979323846 * (m.mesh.vertices[i - i % 3 + d] - low[d]) / L);
        }
        fem_body_evaluate(m.body, u, &energy, f, &m.K);
        check("smooth energy", energy, number(r, "smooth_strain_energy"), 1e-9);
        check("smooth |f|", dense_norm(m.n, f), number(r, "smooth_fint_norm2"), 1e-9);
        check("smooth |K|", fem_sparse_norm(&m.K), number(r, "smooth_K_frobenius"), 1e-9);
        // masses; Vega's table for cubes is 9.3e-8 too small
        double mass_tolerance = m.mesh.type == FEM_T4 ? 1e-12 : 2e-7;
        fem_body_mass(m.body, FEM_MASS_CONSISTENT, &m.M);
        check("|M|", fem_sparse_norm(&m.M), number(r, "consistent_mass_frobenius_3nx3n"), mass_tolerance);
        fem_body_vertex_masses(m.body, f);
        check("|lumped masses|", dense_norm(m.mesh.vertex_count, f), number(r, "lumped_vertex_masses_norm2"),
              mass_tolerance);
        check("total mass", fem_body_total_mass(m.body), number(r, "total_mass_getMass"), 1e-12);
        fem_free(u), fem_free(c), fem_free(s), fem_free(f), fem_free(zero), fem_free(Kc);
        free_model(&m);
        cJSON_Delete(r);
    }
}

// Frequencies (Hz) or eigenvalues of a mesh against a list; `skip` entries of the list are rigid modes.
static void check_modes(const char *mesh, const char *fix, const cJSON *r, const char *key, int skip, bool eigenvalues,
                        double tolerance) {
    model  m;
    double theirs[64], worst = 0;
    int    count = numbers(r, key, 64, theirs) - skip, held = 0, *items = NULL;
    load_model(&m, mesh, 2);
    double        *u = fem_calloc((size_t)m.n, 8);
    unsigned char *fixed = fem_calloc((size_t)m.n, 1);
    fem_body_evaluate(m.body, u, NULL, NULL, &m.K);
    fem_body_mass(m.body, FEM_MASS_CONSISTENT, &m.M);
    if (fix) {
        assert_ok(fem_vertex_list_read(&items, &held, test_data(fix), m.mesh.file_base, m.mesh.vertex_count));
        for (int i = 0; i < held; i++) memset(fixed + 3 * (size_t)items[i], 1, 3);
    }
    modes_problem         problem = {.mesh = &m.mesh, .K = &m.K, .M = &m.M, .fixed = fixed};
    modes_lanczos_options options = modes_lanczos_default_options();
    modes_basis           basis = {0};
    modes_report          report;
    options.count = count;
    assert_ok(modes_lanczos(&problem, &options, NULL, &basis, &report));
    assert_int_equal(report.rigid, fix ? 0 : 6);
    for (int i = 0; i < count; i++) {
        double ours = eigenvalues ? basis.omega2[i] : sqrt(basis.omega2[i]) / (2 * 3.14159265358979323846);
        worst = fmax(worst, fabs(ours / theirs[skip + i] - 1));
    }
    printf("  %s, %d held, %d modes: %.1e (residual %.0e)\n", mesh, held, count, worst, report.residuals[count - 1]);
    assert_true(count >= 10 && worst < tolerance);
    modes_basis_destroy(&basis);
    fem_free(report.residuals), fem_free(u), fem_free(fixed), fem_free(items);
    free_model(&m);
}

// VegaFEM's eigenvalues, held and free; its cubes' mass is 9.3e-8 too small and its quadrature is exact on cubes, where
// two points a direction are exact for the stiffness at rest as well
static void test_vega_eigenvalues(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof vega_models / sizeof *vega_models; k++) {
        char path[256];
        snprintf(path, sizeof path, "reference/vega/%s.json", vega_models[k]);
        cJSON *r = read_json(path);
        if (!r) return;
        check_modes(text(r, "mesh_file"), text(r, "fixed_vertices_file"), r, "eigenvalues", 0, true, 1e-6);
        cJSON_Delete(r);
    }
    cJSON *r = read_json("reference/vega/beam3_tet_unconstrained.json");
    check_modes(text(r, "mesh_file"), NULL, r, "eigenvalues", 6, true, 1e-6);
    cJSON_Delete(r);
}

static const char *below_public(const char *path) { return strncmp(path, "public/", 7) == 0 ? path + 7 : path; }

static void check_frequencies(const char *name, const char *key, double tolerance) {
    char path[256], mesh[256], fix[256];
    snprintf(path, sizeof path, "reference/frequencies/%s.json", name);
    cJSON *r = read_json(path);
    if (!r) return;
    snprintf(mesh, sizeof mesh, "%s", below_public(text(r, "mesh")));
    snprintf(fix, sizeof fix, "%s", below_public(text(r, "fixed_vertices_file")));
    check_modes(mesh, fix, r, key, 0, false, tolerance);
    cJSON_Delete(r);
}

// FreeFem++'s consistent-mass T4 frequencies to 1e-6
static void test_freefem_frequencies(void **state) {
    (void)state;
    const char *names[] = {"beam3_tet", "bunny_5k", "cantilever_2k"};
    for (int i = 0; i < 3; i++) check_frequencies(names[i], "freefem_4.11_P1_consistent_mass_hz", 1e-6);
}

// CalculiX's H8 frequencies to 2e-6, the digits that it prints
static void test_calculix_frequencies(void **state) {
    (void)state;
    const char *names[] = {"beam3_hex", "cantilever_hex_360"};
    for (int i = 0; i < 2; i++) check_frequencies(names[i], "calculix_2.20_C3D8_hz", 2e-6);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vega_forces),
        cmocka_unit_test(test_vega_eigenvalues),
        cmocka_unit_test(test_freefem_frequencies),
        cmocka_unit_test(test_calculix_frequencies),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
