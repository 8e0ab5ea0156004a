// `limber evaluate`: energy, force and stiffness of a body at a given displacement, nothing constrained.
// One of the two gauges with which the numerics are compared with other programs.
#include "app/app.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct evaluation {
    double energy;
    double force_norm, force_sum[3];
    double stiffness_norm; // Frobenius, of the whole 3n x 3n tangent
    double seconds_read, seconds_create, seconds_evaluate;
} evaluation;

typedef struct settings {
    app_material_options material;
    fem_body_options     body;
    const char          *displacement;
    int                  threads;
    bool                 json;
} settings;

// u_i = A D sin(i), i the 0-based degree of freedom, D the diagonal of the bounding box
static fem_status sine_displacement(const fem_mesh *mesh, const char *amplitude, double *u) {
    char  *end;
    double A = strtod(amplitude, &end);
    if (end == amplitude || *end || !isfinite(A))
        return fem_fail(FEM_BAD_INPUT, "--displacement is \"sin:%s\", expected a number behind sin:", amplitude);
    double low[3], high[3];
    for (int k = 0; k < 3; k++) low[k] = high[k] = mesh->vertices[k];
    for (int i = 0; i < 3 * mesh->vertex_count; i++) {
        low[i % 3] = fmin(low[i % 3], mesh->vertices[i]);
        high[i % 3] = fmax(high[i % 3], mesh->vertices[i]);
    }
    double D = vec3_distance(low, high);
    for (int i = 0; i < 3 * mesh->vertex_count; i++) u[i] = A * D * sin(i);
    return FEM_OK;
}

// Three numbers of one line, which `end` ends; false when there is anything else on it.
static bool read_three(const char *line, const char *end, double x[3]) {
    for (int k = 0; k < 3; k++) {
        char *next;
        x[k] = strtod(line, &next);
        if (next == line || next > end || !isfinite(x[k])) return false;
        line = next;
    }
    while (line < end && (*line == ' ' || *line == '\t' || *line == '\r')) line++;
    return line == end;
}

// One "x y z" line per vertex in file order; blank lines and lines that start with # are skipped.
static fem_status file_displacement(const fem_mesh *mesh, const char *path, double *u) {
    fem_status status = FEM_OK;
    char      *text = NULL;
    size_t     size = 0;
    FEM_TRY(fem_file_read(&text, &size, path));
    int  vertex = 0;
    long number = 0;
    for (const char *line = text; line < text + size;) {
        const char *end = memchr(line, '\n', (size_t)(text + size - line));
        if (!end) end = text + size;
        number++;
        const char *first = line + strspn(line, " \t\r");
        if (first < end && *first != '#') {
            if (vertex == mesh->vertex_count) {
                status = fem_fail(FEM_BAD_INPUT, "%s:%ld: one line too many, the mesh has %d vertices", path, number,
                                  mesh->vertex_count);
                goto done;
            }
            if (!read_three(line, end, u + 3 * vertex)) {
                status = fem_fail(FEM_BAD_INPUT, "%s:%ld: expected three finite numbers x y z", path, number);
                goto done;
            }
            vertex++;
        }
        line = end + 1;
    }
    if (vertex != mesh->vertex_count)
        status = fem_fail(FEM_BAD_INPUT, "%s:%ld: the file ends after %d of %d vertices", path, number, vertex,
                          mesh->vertex_count);
done:
    fem_free(text);
    return status;
}

// Fills `result` and the force f (3 per vertex).
static fem_status evaluate(const fem_mesh *mesh, const settings *s, double *u, double *f, evaluation *result) {
    fem_status status = FEM_OK;
    fem_body  *body = NULL;
    fem_sparse K = {0};
    if (strncmp(s->displacement, "sin:", 4) == 0)
        FEM_TRY(sine_displacement(mesh, s->displacement + 4, u));
    else
        FEM_TRY(file_displacement(mesh, s->displacement, u));

    double begun = fem_seconds();
    FEM_TRY(fem_body_create(&body, mesh, &s->body));
    FEM_TRY(fem_body_matrix(body, &K));
    double created = fem_seconds();
    fem_body_evaluate(body, u, &result->energy, f, &K);
    result->seconds_create = created - begun;
    result->seconds_evaluate = fem_seconds() - created;

    result->force_norm = dense_norm(3 * mesh->vertex_count, f);
    for (int i = 0; i < 3 * mesh->vertex_count; i++) result->force_sum[i % 3] += f[i];
    result->stiffness_norm = fem_sparse_norm(&K);
    if (!isfinite(result->energy) || !isfinite(result->force_norm) || !isfinite(result->stiffness_norm))
        status = fem_fail(FEM_UNSTABLE, "energy, force or stiffness is not finite at this displacement");
done:
    fem_sparse_destroy(&K);
    fem_body_destroy(body);
    return status;
}

static int print_json(const evaluation *e, int dofs, const double *f) {
    app_json json;
    app_json_begin(&json, stdout);
    app_json_object(&json, NULL);
    app_json_number(&json, "energy", e->energy);
    app_json_number(&json, "force_norm", e->force_norm);
    app_json_numbers(&json, "force_sum", 3, e->force_sum);
    app_json_numbers(&json, "force_head", dofs < 30 ? dofs : 30, f);
    app_json_number(&json, "stiffness_norm", e->stiffness_norm);
    app_json_object(&json, "seconds");
    app_json_number(&json, "read", e->seconds_read);
    app_json_number(&json, "create", e->seconds_create);
    app_json_number(&json, "evaluate", e->seconds_evaluate);
    return app_json_finish(&json);
}

static int print_text(const evaluation *e) {
    printf("energy          %.12g J\n", e->energy);
    printf("force norm      %.12g N\n", e->force_norm);
    printf("force sum       %.3g %.3g %.3g N\n", e->force_sum[0], e->force_sum[1], e->force_sum[2]);
    printf("stiffness norm  %.12g N/m\n", e->stiffness_norm);
    printf("seconds         read %.3f, create %.3f, evaluate %.4f\n", e->seconds_read, e->seconds_create,
           e->seconds_evaluate);
    return APP_DONE;
}

static int run(int argc, char **argv) {
    settings         s = {.material = app_material_none(), .body = fem_body_default_options()};
    const app_option options[] = {
        {"--material", NULL, APP_TEXT, &s.material.kind, 0, 0, "KIND",
         "linear, stvk, orthotropic, neohookean, mooney-rivlin or arruda-boyce; default: the mesh file's own"},
        {"--young", NULL, APP_NUMBER, &s.material.young, 0, 0, "E", "linear, stvk, neohookean: Young's modulus, Pa"},
        {"--poisson", NULL, APP_NUMBER, &s.material.poisson, 0, 0, "NU", "linear, stvk, neohookean: Poisson's ratio"},
        {"--density", NULL, APP_NUMBER, &s.material.density, 0, 0, "RHO", "kg/m^3; has no part in the results"},
        {"--mu01", NULL, APP_NUMBER, &s.material.mu01, 0, 0, "MU01", "mooney-rivlin, Pa"},
        {"--mu10", NULL, APP_NUMBER, &s.material.mu10, 0, 0, "MU10", "mooney-rivlin, Pa"},
        {"--v1", NULL, APP_NUMBER, &s.material.v1, 0, 0, "V1", "mooney-rivlin: resistance to volume change, Pa"},
        {"--mu", NULL, APP_NUMBER, &s.material.mu, 0, 0, "MU", "arruda-boyce: shear modulus, Pa"},
        {"--chain", "-N", APP_NUMBER, &s.material.chain, 0, 0, "N", "arruda-boyce: links of a chain"},
        {"--bulk", "-k", APP_NUMBER, &s.material.bulk, 0, 0, "K", "arruda-boyce: bulk modulus, Pa"},
        {"--young3", NULL, APP_TEXT, &s.material.young3, 0, 0, "E1,E2,E3", "orthotropic, Pa"},
        {"--poisson3", NULL, APP_TEXT, &s.material.poisson3, 0, 0, "N12,N23,N31", "orthotropic"},
        {"--shear3", NULL, APP_TEXT, &s.material.shear3, 0, 0, "G12,G23,G31", "orthotropic, Pa"},
        {"--frame", NULL, APP_TEXT, &s.material.frame, 0, 0, "R11,...,R33",
         "orthotropic: rotation, row by row, whose columns are the material axes"},
        {"--quadrature", NULL, APP_INT, &s.body.quadrature, 2, 3, "2|3", "H8: Gauss points per direction; default 2"},
        {"--displacement", "-u", APP_TEXT, &s.displacement, 0, 0, "FILE|sin:A",
         "a line \"x y z\" per vertex, or u_i = A D sin(i), D the diagonal of the bounding box"},
        {"--plain", NULL, APP_FLAG, &s.body.plain, 0, 0, NULL, "textbook loops, the reference for the fast kernels"},
        {"--threads", NULL, APP_INT, &s.threads, 0, 256, "N", "default: one per core"},
        {"--json", NULL, APP_FLAG, &s.json, 0, 0, NULL, "one JSON object on standard output"},
    };
    app_words words;
    int       exit_code;
    if (!app_parse(&command_evaluate, argc, argv, sizeof options / sizeof *options, options, 1, 1, &words, &exit_code))
        return exit_code;
    if (!s.displacement) return app_usage_error(&command_evaluate, "--displacement FILE or sin:A is needed");
    fem_set_threads(s.threads);

    fem_status status = FEM_OK;
    fem_mesh   mesh = {0};
    double    *u = NULL, *f = NULL;
    evaluation result = {0};
    double     begun = fem_seconds();
    FEM_TRY(app_read_mesh(&mesh, words.items[0]));
    FEM_TRY(app_material_apply(&mesh, words.items[0], false, &s.material));
    result.seconds_read = fem_seconds() - begun;
    u = fem_calloc((size_t)mesh.vertex_count, 3 * sizeof *u);
    f = fem_calloc((size_t)mesh.vertex_count, 3 * sizeof *f);
    if (!u || !f) {
        status = fem_fail(FEM_NO_MEMORY, "evaluate: %d vertices", mesh.vertex_count);
        goto done;
    }
    FEM_TRY(evaluate(&mesh, &s, u, f, &result));
    exit_code = s.json ? print_json(&result, 3 * mesh.vertex_count, f) : print_text(&result);
done:
    if (status != FEM_OK) exit_code = app_fail(status);
    fem_free(u);
    fem_free(f);
    fem_mesh_destroy(&mesh);
    return exit_code;
}

const app_command command_evaluate = {"evaluate",
                                      "Energy, force and stiffness of a mesh at a given displacement",
                                      "MESH --displacement FILE|sin:A [OPTIONS]",
                                      "limber evaluate beam.veg --material stvk --displacement sin:0.05 --json",
                                      run,
                                      NULL};
