// `limber modes`: the lowest vibration modes of a mesh, K x = omega^2 M x at rest.
// One of the two gauges with which the numerics are compared with other programs.
#include "app/app.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct settings {
    app_material_options material;
    fem_body_options     body;
    int                  count, threads;
    const char          *method, *fix, *mass, *write;
    bool                 json, quiet;
} settings;

typedef struct findings {
    modes_basis  basis;
    modes_report report;
    double       mass; // kg
    double       seconds_read, seconds_assemble;
} findings;

// --young and --poisson over a mesh whose own material knows neither: the tangent at rest is that of any isotropic one.
static void prefer_isotropic(const fem_mesh *mesh, app_material_options *material) {
    if (isnan(material->young) && isnan(material->poisson)) return;
    for (int i = 0; i < mesh->material_count; i++) {
        fem_material_kind kind = mesh->materials[i].kind;
        if (kind != FEM_LINEAR && kind != FEM_STVK && kind != FEM_NEOHOOKEAN) material->kind = "stvk";
    }
}

// Marks all three degrees of freedom of the vertices in a file, or of the set behind "set:".
static fem_status mark_fixed(const fem_mesh *mesh, const char *fix, unsigned char *fixed) {
    fem_status status = FEM_OK;
    int       *items = NULL, count = 0;
    if (strncmp(fix, "set:", 4) == 0) {
        const fem_set *set = fem_mesh_vertex_set(mesh, fix + 4);
        if (!set) return fem_fail(FEM_BAD_INPUT, "--fix: the mesh has no vertex set \"%s\"", fix + 4);
        for (int i = 0; i < set->count; i++) memset(fixed + 3 * set->items[i], 1, 3);
        return FEM_OK;
    }
    FEM_TRY(fem_vertex_list_read(&items, &count, fix, mesh->file_base, mesh->vertex_count));
    for (int i = 0; i < count; i++) memset(fixed + 3 * items[i], 1, 3);
done:
    fem_free(items);
    return status;
}

static fem_status find_modes(const fem_mesh *mesh, const settings *s, const fem_progress *progress, findings *found) {
    fem_status     status = FEM_OK;
    fem_body      *body = NULL;
    fem_sparse     K = {0}, M = {0};
    size_t         dofs = 3 * (size_t)mesh->vertex_count;
    unsigned char *fixed = fem_calloc(dofs, 1);
    double        *u = fem_calloc(dofs, sizeof *u); // rest
    double         begun = fem_seconds();
    if (!fixed || !u) {
        status = fem_fail(FEM_NO_MEMORY, "modes: %d vertices", mesh->vertex_count);
        goto done;
    }
    if (s->fix) FEM_TRY(mark_fixed(mesh, s->fix, fixed));
    FEM_TRY(fem_body_create(&body, mesh, &s->body));
    FEM_TRY(fem_body_matrix(body, &K));
    FEM_TRY(fem_body_matrix(body, &M));
    fem_body_evaluate(body, u, NULL, NULL, &K);
    fem_body_mass(body, s->mass && strcmp(s->mass, "lumped") == 0 ? FEM_MASS_LUMPED : FEM_MASS_CONSISTENT, &M);
    found->mass = fem_body_total_mass(body);
    found->seconds_assemble = fem_seconds() - begun;

    modes_problem         problem = {.mesh = mesh, .K = &K, .M = &M, .fixed = s->fix ? fixed : NULL};
    modes_lanczos_options options = modes_lanczos_default_options();
    options.count = s->count;
    FEM_TRY(modes_lanczos(&problem, &options, progress, &found->basis, &found->report));
done:
    fem_free(fixed);
    fem_free(u);
    fem_sparse_destroy(&K);
    fem_sparse_destroy(&M);
    fem_body_destroy(body);
    return status;
}

static double frequency(double omega2) { return sqrt(fmax(omega2, 0)) / (2 * acos(-1)); }

// The mesh with a field "mode_1", "mode_2", ... for each mode, m/sqrt(kg).
static fem_status write_modes(const fem_mesh *mesh, const modes_basis *basis, const char *path) {
    fem_status status = FEM_OK;
    fem_field *fields = fem_calloc((size_t)basis->r, sizeof *fields);
    char(*names)[24] = fem_calloc((size_t)basis->r, sizeof *names);
    if (!fields || !names) {
        status = fem_fail(FEM_NO_MEMORY, "modes: %d fields", basis->r);
        goto done;
    }
    for (int i = 0; i < basis->r; i++) {
        snprintf(names[i], sizeof names[i], "mode_%d", i + 1);
        fields[i] = (fem_field){names[i], 3, basis->U + (size_t)i * (size_t)basis->n, false};
    }
    FEM_TRY(fem_mesh_write_vtu(mesh, path, NULL, basis->r, fields));
done:
    fem_free(fields);
    fem_free(names);
    return status;
}

static int print_json(const fem_mesh *mesh, const findings *f) {
    app_json json;
    app_json_begin(&json, stdout);
    app_json_object(&json, NULL);
    app_json_integer(&json, "vertices", mesh->vertex_count);
    app_json_integer(&json, "elements", mesh->element_count);
    app_json_integer(&json, "free_dofs", f->report.free_dofs);
    app_json_number(&json, "mass", f->mass);
    app_json_numbers(&json, "eigenvalues", f->basis.r, f->basis.omega2);
    app_json_array(&json, "frequencies_hz");
    for (int i = 0; i < f->basis.r; i++) app_json_number(&json, NULL, frequency(f->basis.omega2[i]));
    app_json_end(&json);
    app_json_numbers(&json, "residuals", f->basis.r, f->report.residuals);
    app_json_object(&json, "seconds");
    app_json_number(&json, "read", f->seconds_read);
    app_json_number(&json, "assemble", f->seconds_assemble);
    app_json_number(&json, "factor", f->report.seconds_factor);
    app_json_number(&json, "iterate", f->report.seconds_iterate);
    return app_json_finish(&json);
}

static int print_text(const fem_mesh *mesh, const findings *f) {
    printf("%d vertices, %d elements, %d free degrees of freedom, %.6g kg\n", mesh->vertex_count, mesh->element_count,
           f->report.free_dofs, f->mass);
    if (f->report.rigid > 0) printf("%d rigid motions are left out\n", f->report.rigid);
    printf("\n mode      frequency Hz    eigenvalue 1/s^2   residual\n");
    for (int i = 0; i < f->basis.r; i++)
        printf("%5d  %16.8g  %18.10g  %9.2g\n", i + 1, frequency(f->basis.omega2[i]), f->basis.omega2[i],
               f->report.residuals[i]);
    printf("\nseconds: read %.3f, assemble %.3f, factor %.3f, iterate %.3f\n", f->seconds_read, f->seconds_assemble,
           f->report.seconds_factor, f->report.seconds_iterate);
    return APP_DONE;
}

// The rules that the option parser does not know. Returns APP_DONE or, after a message, APP_BAD_INPUT.
static int check_settings(const settings *s) {
    if (s->count == 0) return app_usage_error(&command_modes, "--count K is needed: how many modes");
    if (strcmp(s->method, "lanczos") != 0)
        return app_usage_error(&command_modes, "--method is \"%s\", this version has lanczos", s->method);
    if (s->mass && strcmp(s->mass, "consistent") != 0 && strcmp(s->mass, "lumped") != 0)
        return app_usage_error(&command_modes, "--mass is \"%s\", expected consistent or lumped", s->mass);
    if (s->write) {
        const char *dot = strrchr(s->write, '.');
        if (!dot || strcmp(dot, ".vtu") != 0)
            return app_usage_error(&command_modes, "--write is \"%s\", expected a name that ends in .vtu", s->write);
    }
    return APP_DONE;
}

static int run(int argc, char **argv) {
    settings         s = {.material = app_material_none(), .body = fem_body_default_options(), .method = "lanczos"};
    const app_option options[] = {
        {"--count", "-n", APP_INT, &s.count, 1, 1e9, "K", "number of modes, without the rigid ones"},
        {"--method", NULL, APP_TEXT, &s.method, 0, 0, "NAME", "lanczos (the default)"},
        {"--fix", NULL, APP_TEXT, &s.fix, 0, 0, "FILE|set:NAME",
         "held vertices: numbers as the mesh file counts them, or a vertex set of the mesh; default: a free body"},
        {"--young", NULL, APP_NUMBER, &s.material.young, 0, 0, "E",
         "Young's modulus, Pa; default: the mesh file's own"},
        {"--poisson", NULL, APP_NUMBER, &s.material.poisson, 0, 0, "NU",
         "Poisson's ratio; default: the mesh file's own"},
        {"--density", NULL, APP_NUMBER, &s.material.density, 0, 0, "RHO", "kg/m^3; default: the mesh file's own"},
        {"--mass", NULL, APP_TEXT, &s.mass, 0, 0, "KIND", "consistent (the default) or lumped"},
        {"--quadrature", NULL, APP_INT, &s.body.quadrature, 2, 3, "2|3", "H8: Gauss points per direction; default 2"},
        {"--write", NULL, APP_TEXT, &s.write, 0, 0, "FILE.vtu", "the modes as fields on the mesh"},
        {"--threads", NULL, APP_INT, &s.threads, 0, 256, "N", "default: one per core"},
        {"--quiet", "-q", APP_FLAG, &s.quiet, 0, 0, NULL, "no progress"},
        {"--json", NULL, APP_FLAG, &s.json, 0, 0, NULL, "one JSON object on standard output"},
    };
    app_words words;
    int       exit_code;
    if (!app_parse(&command_modes, argc, argv, sizeof options / sizeof *options, options, 1, 1, &words, &exit_code))
        return exit_code;
    if ((exit_code = check_settings(&s)) != APP_DONE) return exit_code;
    fem_set_threads(s.threads);

    fem_status   status = FEM_OK;
    bool         writing = false;
    fem_mesh     mesh = {0};
    findings     found = {0};
    app_progress progress;
    app_progress_begin(&progress, s.quiet, NULL, 0);
    double begun = fem_seconds();
    FEM_TRY(fem_mesh_read(&mesh, words.items[0]));
    prefer_isotropic(&mesh, &s.material);
    FEM_TRY(app_material_apply(&mesh, words.items[0], true, &s.material));
    found.seconds_read = fem_seconds() - begun;
    FEM_TRY(find_modes(&mesh, &s, &progress.callback, &found));
    writing = true;
    if (s.write) FEM_TRY(write_modes(&mesh, &found.basis, s.write));
    app_progress_end(&progress);
    exit_code = s.json ? print_json(&mesh, &found) : print_text(&mesh, &found);
done:
    app_progress_end(&progress);
    if (status != FEM_OK) exit_code = writing ? app_fail_output(status) : app_fail(status);
    fem_free(found.report.residuals);
    modes_basis_destroy(&found.basis);
    fem_mesh_destroy(&mesh);
    return exit_code;
}

const app_command command_modes = {"modes", "Lowest vibration modes of a mesh, free or held",
                                   "MESH --count K [OPTIONS]",
                                   "limber modes beam.veg --count 10 --method lanczos --fix beam.bou --json", run};
