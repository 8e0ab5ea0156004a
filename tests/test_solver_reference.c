// Statics and dynamics against CalculiX, where the shared data are.
#include "tests/solver_case.h"

#include <cjson/cJSON.h>

// A reference case: its JSON, the mesh it names with its supports, and a body of the StVK material it gives.
typedef struct reference {
    cJSON *json;
    bar    bar;
} reference;

static const cJSON *member(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!item) fail_msg("the reference has no \"%s\"", name);
    return item;
}

// The files name meshes as "public/meshes/..."; the data folder is what they call public.
static void data_path(const cJSON *name, char path[1024]) {
    const char *text = cJSON_GetStringValue(name);
    assert_non_null(text);
    if (strncmp(text, "public/", 7) == 0) text += 7;
    snprintf(path, 1024, "%s", test_data(text));
}

static bool reference_read(reference *r, const char *relative, const char *fixed_key) {
    const char *found = test_data(relative);
    char        path[1024], *text = NULL;
    size_t      size = 0;
    int        *held = NULL, held_count = 0;
    *r = (reference){0};
    if (!found) return false;
    snprintf(path, sizeof path, "%s", found);
    assert_ok(fem_file_read(&text, &size, path));
    r->json = cJSON_Parse(text);
    assert_non_null(r->json);
    fem_free(text);

    bar             *b = &r->bar;
    fem_material     material = soft_material(FEM_STVK, 1e7, 0.3);
    fem_body_options options = fem_body_default_options();
    assert_int_equal(options.quadrature, 2); // CalculiX's C3D8
    const cJSON *given = cJSON_GetObjectItemCaseSensitive(r->json, "materials_rho_E_nu");
    if (given) {
        material.density = cJSON_GetArrayItem(cJSON_GetArrayItem(given, 0), 0)->valuedouble;
        material.young = cJSON_GetArrayItem(cJSON_GetArrayItem(given, 0), 1)->valuedouble;
        material.poisson = cJSON_GetArrayItem(cJSON_GetArrayItem(given, 0), 2)->valuedouble;
    }
    data_path(member(r->json, "mesh"), path);
    assert_ok(fem_mesh_read(&b->mesh, path));
    assert_ok(fem_mesh_set_material(&b->mesh, &material));
    assert_ok(fem_body_create(&b->body, &b->mesh, &options));
    b->n = 3 * b->mesh.vertex_count;
    b->fixed = fem_calloc((size_t)b->n, 1);
    b->load = fem_calloc((size_t)b->n, sizeof *b->load);
    b->work = fem_calloc((size_t)b->n, sizeof *b->work);
    data_path(member(r->json, fixed_key), path);
    assert_ok(fem_vertex_list_read(&held, &held_count, path, 1, b->mesh.vertex_count));
    assert_true(held_count > 0);
    for (int k = 0; k < 3 * held_count; k++) b->fixed[3 * held[k / 3] + k % 3] = 1;
    fem_free(held);
    return true;
}

static void reference_destroy(reference *r) {
    cJSON_Delete(r->json);
    bar_destroy(&r->bar);
}

// A list of 1-based vertices, as 0-based; caller frees.
static int *vertex_list(const reference *r, const cJSON *list, int *count) {
    *count = cJSON_GetArraySize(list);
    int *items = fem_alloc((size_t)*count, sizeof *items);
    for (int k = 0; k < *count; k++) {
        items[k] = cJSON_GetArrayItem(list, k)->valueint - 1;
        assert_true(items[k] >= 0 && items[k] < r->bar.mesh.vertex_count);
    }
    return items;
}

// ---- statics -----------------------------------------------------------------------------------------------------

// Rows "vertex ux uy uz" behind a comment line into u
static void read_displacements(const reference *r, const char *path, double *u) {
    char  *text = NULL;
    size_t size = 0;
    int    rows = 0;
    assert_ok(fem_file_read(&text, &size, path));
    for (char *line = text; line && *line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (*line == '#' || *line == 0) continue;
        char *at = line;
        long  vertex = strtol(at, &at, 10);
        assert_true(vertex >= 1 && vertex <= r->bar.mesh.vertex_count);
        for (int k = 0; k < 3; k++) u[3 * (vertex - 1) + k] = strtod(at, &at);
        rows++;
    }
    assert_int_equal(rows, r->bar.mesh.vertex_count);
    fem_free(text);
}

// The whole displacement field under a dead tip load agrees with CalculiX to 1e-5 of the largest displacement.
static void compare_static(const char *name) {
    char      relative[256], path[1024];
    reference r;
    snprintf(relative, sizeof relative, "reference/static/%s.json", name);
    if (!reference_read(&r, relative, "fixed_vertices_file")) return;
    const cJSON *load = member(r.json, "load");
    double       force[3];
    int          count;
    int         *vertices = vertex_list(&r, member(load, "vertices_1based"), &count);
    for (int k = 0; k < 3; k++) force[k] = cJSON_GetArrayItem(member(load, "force"), k)->valuedouble;
    solver_add_vertex_force(count, vertices, force, r.bar.load);
    snprintf(relative, sizeof relative, "reference/static/%s",
             cJSON_GetStringValue(member(r.json, "displacement_file")));
    snprintf(path, sizeof path, "%s", test_data(relative));
    read_displacements(&r, path, r.bar.work);

    for (int pcg = 0; pcg < 2; pcg++) {
        solver_options o = solver_default_options();
        solver_full   *solver = NULL;
        o.linear = pcg ? SOLVER_PCG : SOLVER_DIRECT;
        assert_ok(solver_full_create(&solver, r.bar.body, r.bar.fixed, &o));
        solver_full_set_load(solver, r.bar.load);
        assert_ok(solver_full_static(solver, NULL));
        solver_energies e;
        solver_full_energies(solver, &e);
        const double *u = solver_full_state(solver)->u;
        double        largest = 0, error = 0;
        for (int v = 0; v < r.bar.mesh.vertex_count; v++) {
            largest = fmax(largest, vec3_norm(r.bar.work + 3 * v));
            error = fmax(error, vec3_distance(u + 3 * v, r.bar.work + 3 * v));
        }
        double energy = member(r.json, "own_stvk_strain_energy")->valuedouble;
        printf("  %s, %s: %.1e of the largest displacement %.4f m; energy %.1e; %d iterations\n", name,
               pcg ? "PCG" : "direct", error / largest, largest, e.strain / energy - 1,
               solver_full_report(solver).newton_iterations);
        assert_true(fabs(largest - member(r.json, "calculix_max_displacement_norm")->valuedouble) < 1e-6 * largest);
        assert_true(error < 1e-5 * largest);
        assert_true(fabs(e.strain / energy - 1) < 1e-6);
        solver_full_destroy(solver);
    }
    fem_free(vertices);
    reference_destroy(&r);
}

static void test_static_tets(void **unused) {
    (void)unused;
    compare_static("cantilever_2k_P4");
}
static void test_static_hexes(void **unused) {
    (void)unused;
    compare_static("cantilever_hex_360_P4");
}

// ---- dynamics ----------------------------------------------------------------------------------------------------

// The tip of a cantilever that is loaded suddenly follows CalculiX's to 1e-3 of its largest displacement. CalculiX is
// off most in the first step, by 7e-5. The other columns of the file are another program's Newmark, which like this one
// starts from M a = load, and is met to the digits that are printed.
static void test_transient(void **unused) {
    (void)unused;
    reference r;
    if (!reference_read(&r, "reference/dynamic/cantilever_hex_360_step_P0.5.json", "fixed")) return;
    int          count;
    int         *tip = vertex_list(&r, member(r.json, "tip_vertices_1based"), &count);
    const double force[3] = {0, 0, -0.5};
    solver_add_vertex_force(count, tip, force, r.bar.load);
    solver_options o = solver_default_options();
    solver_full   *solver = NULL;
    o.time_step = member(r.json, "dt")->valuedouble;
    assert_ok(solver_full_create(&solver, r.bar.body, r.bar.fixed, &o));
    solver_full_set_load(solver, r.bar.load);

    const cJSON *rows = member(r.json, "rows"), *row;
    const char  *columns[] = {"t",      "ccx_ux", "ccx_uy",      "ccx_uz",           "own_ux",
                              "own_uy", "own_uz", "own_kinetic", "own_strain_energy"};
    for (int k = 0; k < 9; k++)
        assert_string_equal(cJSON_GetStringValue(cJSON_GetArrayItem(member(r.json, "columns"), k)), columns[k]);
    double largest = 0, error = 0, own_error = 0, energy = 0, energy_error = 0;
    int    steps = 0;
    cJSON_ArrayForEach(row, rows) {
        double value[9], mean[3] = {0};
        for (int k = 0; k < 9; k++) value[k] = cJSON_GetArrayItem(row, k)->valuedouble;
        assert_ok(solver_full_step(solver));
        const solver_state *s = solver_full_state(solver);
        assert_true(fabs(s->time - value[0]) < 1e-9);
        for (int k = 0; k < count; k++) vec3_axpy(mean, 1.0 / count, s->u + 3 * (size_t)tip[k]);
        solver_energies e;
        solver_full_energies(solver, &e);
        largest = fmax(largest, vec3_norm(value + 1));
        error = fmax(error, vec3_distance(mean, value + 1));
        own_error = fmax(own_error, vec3_distance(mean, value + 4));
        energy = fmax(energy, value[8]);
        energy_error = fmax(energy_error, fmax(fabs(e.kinetic - value[7]), fabs(e.strain - value[8])));
        steps++;
    }
    printf("  %d steps, tip up to %.4f m: CalculiX %.1e, other Newmark %.1e, its energies %.1e\n", steps, largest,
           error / largest, own_error / largest, energy_error / energy);
    assert_int_equal(steps, 100);
    assert_true(error < 1e-3 * largest);
    assert_true(own_error < 1e-5 * largest);
    assert_true(energy_error < 1e-4 * energy);
    fem_free(tip);
    solver_full_destroy(solver);
    reference_destroy(&r);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_static_tets),
        cmocka_unit_test(test_static_hexes),
        cmocka_unit_test(test_transient),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
