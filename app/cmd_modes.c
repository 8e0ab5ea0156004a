// `limber modes`: a basis of a mesh: its lowest vibration modes (one of the two gauges with which the numerics are
// compared with other programs), or Krylov modes, derivatives, sketches, condensed to what is asked for; and its
// quality.
#include "app/modes_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

typedef struct settings {
    app_material_options material;
    fem_body_options     body;
    modes_settings       modes;
    const char          *mass, *matrices, *rotations;
    app_list             write;
    int                  threads;
    bool                 json, quiet;
} settings;

typedef struct findings {
    modes_basis         basis;
    modes_quality       quality;
    modes_recipe_report report;
    fem_hash            key;
    double              mass; // kg
    double              seconds_read, seconds_assemble, seconds_sketch, seconds_examine;
} findings;

// The problem with what it stands on.
typedef struct workpiece {
    const fem_mesh *mesh;
    fem_body       *body;
    fem_sparse      K, M;
    unsigned char  *fixed;
    modes_problem   problem;
} workpiece;

// --young and --poisson over a mesh whose own material knows neither: the tangent at rest is that of any isotropic one.
static void prefer_isotropic(const fem_mesh *mesh, app_material_options *material) {
    if (isnan(material->young) && isnan(material->poisson)) return;
    for (int i = 0; i < mesh->material_count; i++) {
        fem_material_kind kind = mesh->materials[i].kind;
        if (kind != FEM_LINEAR && kind != FEM_STVK && kind != FEM_NEOHOOKEAN) material->kind = "stvk";
    }
}

static void workpiece_destroy(workpiece *w) {
    fem_free(w->fixed);
    fem_sparse_destroy(&w->K);
    fem_sparse_destroy(&w->M);
    fem_body_destroy(w->body);
}

static fem_status assemble(workpiece *w, const fem_mesh *mesh, const settings *s, findings *found) {
    fem_status    status = FEM_OK;
    size_t        dofs = 3 * (size_t)mesh->vertex_count;
    double       *u = fem_calloc(dofs, sizeof *u); // rest
    fem_mass_kind mass = s->mass && strcmp(s->mass, "lumped") == 0 ? FEM_MASS_LUMPED : FEM_MASS_CONSISTENT;
    double        begun = fem_seconds();
    w->mesh = mesh;
    w->fixed = fem_calloc(dofs, 1);
    if (!w->fixed || !u) {
        status = fem_fail(FEM_NO_MEMORY, "modes: %d vertices", mesh->vertex_count);
        goto done;
    }
    if (s->modes.fix) FEM_TRY(modes_read_fixed(mesh, s->modes.fix, w->fixed));
    FEM_TRY(fem_body_create(&w->body, mesh, &s->body));
    FEM_TRY(fem_body_matrix(w->body, &w->K));
    FEM_TRY(fem_body_matrix(w->body, &w->M));
    fem_body_evaluate(w->body, u, NULL, NULL, &w->K);
    fem_body_mass(w->body, mass, &w->M);
    w->problem = (modes_problem){.mesh = mesh, .K = &w->K, .M = &w->M, .fixed = s->modes.fix ? w->fixed : NULL};
    found->mass = fem_body_total_mass(w->body);
    found->seconds_assemble = fem_seconds() - begun;
    found->key = fem_hash_add(fem_mesh_hash(mesh), w->fixed, dofs);
    found->key = fem_hash_add(found->key, &mass, sizeof mass);
    found->key = fem_hash_add(found->key, &s->body.quadrature, sizeof s->body.quadrature);
done:
    fem_free(u);
    return status;
}

// Static shapes under the loads, then what is kept of them.
static fem_status sketch(const workpiece *w, const settings *s, const modes_recipe *recipe,
                         const fem_progress *progress, findings *found) {
    fem_status     status = FEM_OK;
    int            count = 0;
    size_t         n = 3 * (size_t)w->mesh->vertex_count;
    double        *loads = NULL, *u = NULL, begun = fem_seconds();
    solver_options options = solver_default_options();
    FEM_TRY(modes_read_loads(w->mesh, s->modes.load_file, &s->modes.loads, &loads, &count));
    u = fem_calloc(n * (size_t)count, sizeof *u);
    if (!u) {
        status = fem_fail(FEM_NO_MEMORY, "modes: a sketch of %d loads", count);
        goto done;
    }
    FEM_TRY(solver_sketch(w->body, w->fixed, &options, count, loads, progress, u));
    found->seconds_sketch = fem_seconds() - begun;
    FEM_TRY(modes_build_sketch(&w->problem, count, u, recipe, &found->basis, &found->report));
    for (size_t i = 0; i < n; i++) found->report.free_dofs += !w->fixed[i];
done:
    fem_free(loads);
    fem_free(u);
    return status;
}

static fem_status find_modes(const workpiece *w, const settings *s, modes_recipe *recipe, const fem_progress *progress,
                             findings *found) {
    fem_status      status = FEM_OK;
    modes_interface interfaces[sizeof s->modes.interfaces.items / sizeof *s->modes.interfaces.items];
    double         *vectors = NULL;
    FEM_TRY(modes_read_interfaces(w->mesh, &s->modes.interfaces, interfaces));
    recipe->krylov.interface_count = s->modes.interfaces.count;
    recipe->krylov.interfaces = interfaces;
    if (s->modes.vectors)
        FEM_TRY(modes_read_vectors(w->mesh, s->modes.vectors, &vectors, &recipe->krylov.vector_count));
    recipe->krylov.vectors = vectors;
    if (strcmp(s->modes.method, "sketch") == 0)
        FEM_TRY(sketch(w, s, recipe, progress, found));
    else
        FEM_TRY(modes_build(&w->problem, w->body, recipe, NULL, progress, &found->basis, &found->report));
    double begun = fem_seconds();
    FEM_TRY(modes_examine(&w->problem, &found->basis, &found->quality));
    found->seconds_examine = fem_seconds() - begun;
done:
    fem_free(vectors);
    return status;
}

static double frequency(double omega2) { return sqrt(fmax(omega2, 0)) / (2 * acos(-1)); }

// The mesh with a field for each column of X: "mode_1", "mode_2", ... m/sqrt(kg), or "rotation_1", ... 1/sqrt(kg).
static fem_status write_fields(const fem_mesh *mesh, const char *name, int columns, const double *X, const char *path) {
    fem_status status = FEM_OK;
    fem_field *fields = fem_calloc((size_t)columns, sizeof *fields);
    char(*names)[24] = fem_calloc((size_t)columns, sizeof *names);
    if (!fields || !names) {
        status = fem_fail(FEM_NO_MEMORY, "modes: %d fields", columns);
        goto done;
    }
    for (int i = 0; i < columns; i++) {
        snprintf(names[i], sizeof names[i], "%s_%d", name, i + 1);
        fields[i] = (fem_field){names[i], 3, X + (size_t)i * 3 * (size_t)mesh->vertex_count, false};
    }
    FEM_TRY(fem_mesh_write_vtu(mesh, path, NULL, columns, fields));
done:
    fem_free(fields);
    fem_free(names);
    return status;
}

static bool ends_with(const char *path, const char *ending) {
    size_t length = strlen(path), tail = strlen(ending);
    return length > tail && strcmp(path + length - tail, ending) == 0;
}

// The rotation field of each mode, for modal warping.
static fem_status write_rotations(const fem_mesh *mesh, const modes_basis *basis, const char *path) {
    fem_status status = FEM_OK;
    modes_warp warp = {0};
    FEM_TRY(modes_warp_create(&warp, mesh, basis));
    if (ends_with(path, ".vtu"))
        FEM_TRY(write_fields(mesh, "rotation", warp.r, warp.Psi, path));
    else
        FEM_TRY(fem_matrix_write(path, warp.n, warp.r, warp.Psi));
done:
    modes_warp_destroy(&warp);
    return status;
}

// PREFIX_K.mtx and PREFIX_M.mtx, whole, and what their rows mean.
static fem_status write_matrices(const workpiece *w, const char *prefix) {
    fem_status status = FEM_OK;
    fem_file  *file = NULL;
    char       path[1024];
    int        written = snprintf(path, sizeof path, "%s_K.mtx", prefix);
    if (written < 0 || (size_t)written + 8 > sizeof path)
        return fem_fail(FEM_BAD_INPUT, "--matrices: the name is too long");
    FEM_TRY(fem_sparse_write(&w->K, path));
    snprintf(path, sizeof path, "%s_M.mtx", prefix);
    FEM_TRY(fem_sparse_write(&w->M, path));
    snprintf(path, sizeof path, "%s_dofs.csv", prefix);
    FEM_TRY(fem_file_create(&file, path));
    fem_file_print(file,
                   "row,vertex,axis,fixed,x,y,z\n"); // rows from 1, as Matrix Market counts; vertices as the mesh file
    for (int i = 0; i < 3 * w->mesh->vertex_count; i++) {
        const double *x = w->mesh->vertices + 3 * (size_t)(i / 3);
        fem_file_print(file, "%d,%d,%c,%d,%.17g,%.17g,%.17g\n", i + 1, i / 3 + w->mesh->file_base, "xyz"[i % 3],
                       w -> fixed[i], x[0], x[1], x[2]);
    }
    FEM_TRY(fem_file_commit(file));
done:
    return status;
}

static fem_status write_results(const workpiece *w, const settings *s, const findings *found) {
    fem_status         status = FEM_OK;
    const modes_basis *basis = &found->basis;
    for (int i = 0; i < s->write.count; i++) FEM_TRY(fem_file_try(s->write.items[i])); // all before the first
    if (s->rotations) FEM_TRY(fem_file_try(s->rotations));
    for (int i = 0; i < s->write.count; i++) {
        const char *path = s->write.items[i];
        if (ends_with(path, ".vtu"))
            FEM_TRY(write_fields(w->mesh, "mode", basis->r, basis->U, path));
        else if (ends_with(path, ".basis"))
            FEM_TRY(modes_basis_write(basis, found->key, path));
        else
            FEM_TRY(fem_matrix_write(path, basis->n, basis->r, basis->U));
    }
    if (s->rotations) FEM_TRY(write_rotations(w->mesh, basis, s->rotations));
    if (s->matrices) FEM_TRY(write_matrices(w, s->matrices));
done:
    return status;
}

// The stages of the way, in seconds: those that this basis went through.
typedef struct stage {
    const char *name, *title;
    double      seconds;
    bool        taken;
} stage;
enum { STAGES = 14 };

static void list_stages(const settings *s, const findings *f, stage stages[STAGES]) {
    const modes_recipe_report *r = &f->report;
    bool        krylov = strcmp(s->modes.method, "krylov") == 0, sketch = strcmp(s->modes.method, "sketch") == 0;
    bool        derivatives = s->modes.derivatives > 0;
    const stage all[STAGES] = {
        {"read", "read", f->seconds_read, true},
        {"assemble", "assemble", f->seconds_assemble, true},
        {"factor", "factor", r->seconds_factor, !sketch},
        {"iterate", "iterate", r->seconds_linear, !sketch},
        {"solve", "of it solve", r->krylov.seconds_solve, krylov},
        {"orthogonalise", "orthogonalise", r->krylov.seconds_orthogonalise, krylov},
        {"ritz", "Ritz step", r->krylov.seconds_ritz, krylov},
        {"krylov_report", "residuals", r->krylov.seconds_report, krylov},
        {"sketch", "sketch", f->seconds_sketch, sketch},
        {"derivatives", "derivatives", r->seconds_derivatives, derivatives},
        {"right_sides", "of it right-hand sides", r->derivatives.seconds_right, derivatives},
        {"derivative_solve", "solve", r->derivatives.seconds_solve, derivatives},
        {"condense", "condense", r->seconds_condense, derivatives || sketch},
        {"examine", "examine", f->seconds_examine, true},
    };
    memcpy(stages, all, sizeof all);
}

static double peak_bytes(void) { // of the whole process
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? 1024.0 * (double)usage.ru_maxrss : NAN;
}

static int print_json(const fem_mesh *mesh, const settings *s, const findings *f) {
    const modes_recipe_report *r = &f->report;
    stage                      stages[STAGES];
    app_json                   json;
    list_stages(s, f, stages);
    app_json_begin(&json, stdout);
    app_json_object(&json, NULL);
    app_json_integer(&json, "vertices", mesh->vertex_count);
    app_json_integer(&json, "elements", mesh->element_count);
    app_json_integer(&json, "free_dofs", r->free_dofs);
    app_json_number(&json, "mass", f->mass);
    app_json_numbers(&json, "eigenvalues", f->basis.r, f->quality.ritz);
    app_json_array(&json, "frequencies_hz");
    for (int i = 0; i < f->basis.r; i++) app_json_number(&json, NULL, frequency(f->quality.ritz[i]));
    app_json_end(&json);
    app_json_numbers(&json, "residuals", f->basis.r, f->quality.residuals);
    app_json_object(&json, "seconds");
    for (int i = 0; i < STAGES; i++)
        if (stages[i].taken) app_json_number(&json, stages[i].name, stages[i].seconds);
    app_json_end(&json);
    app_json_object(&json, "basis");
    app_json_text(&json, "method", s->modes.method);
    app_json_integer(&json, "modes", f->basis.r);
    app_json_integer(&json, "rigid_motions", r->rigid);
    app_json_integer(&json, "candidates", r->candidates);
    if (r->candidates > 0) app_json_number(&json, "energy_kept", r->energy_kept);
    app_json_numbers(&json, "rayleigh", f->basis.r, f->quality.rayleigh);
    app_json_number(&json, "orthogonality", f->quality.orthogonality);
    if (strcmp(s->modes.method, "krylov") == 0) {
        app_json_object(&json, "krylov");
        app_json_integer(&json, "seeds", r->krylov.seeds);
        app_json_integer(&json, "blocks", r->krylov.blocks);
        app_json_integer(&json, "solves", r->krylov.solves);
        app_json_integer(&json, "dropped", r->krylov.dropped);
        app_json_text(&json, "orthogonalise", s->modes.orthogonalise ? s->modes.orthogonalise : "block");
        app_json_integer(&json, "samples", r->krylov.orthogonalise.samples);
        if (s->modes.interfaces.count > 0) app_json_integer(&json, "interface_responses", r->krylov.interface_kept);
        app_json_end(&json);
    }
    if (strcmp(s->modes.method, "sketch") != 0) {
        app_json_object(&json, "inverse");
        app_json_text(&json, "method", r->inverse.method == MODES_INVERSE_AMG ? "amg" : "factor");
        app_json_number(&json, "bytes", r->inverse.bytes);
        app_json_integer(&json, "solves", r->inverse.solves);
        if (r->inverse.method == MODES_INVERSE_AMG) app_json_integer(&json, "iterations", r->inverse.iterations);
        app_json_end(&json);
    }
    app_json_number(&json, "peak_bytes", peak_bytes());
    return app_json_finish(&json);
}

static void print_way(const settings *s, const findings *f) {
    const modes_recipe_report *r = &f->report;
    if (r->rigid > 0) printf("%d rigid motions are left out\n", r->rigid);
    if (strcmp(s->modes.method, "krylov") == 0) {
        printf("%d seeds, %d blocks, %d solutions, %d dependent columns dropped\n", r->krylov.seeds, r->krylov.blocks,
               r->krylov.solves, r->krylov.dropped);
        if (r->krylov.orthogonalise.samples > 0)
            printf("inner products over a sample of %d vertices\n", r->krylov.orthogonalise.samples);
        if (s->modes.interfaces.count > 0)
            printf("%d responses to %d wrenches on interfaces keep %.6g of their weight\n", r->krylov.interface_kept,
                   6 * s->modes.interfaces.count, r->krylov.interface_share);
    }
    if (strcmp(s->modes.method, "sketch") != 0) {
        printf("inverse of K: %s, %.3g GB", r->inverse.method == MODES_INVERSE_AMG ? "multigrid" : "factor",
               r->inverse.bytes * 1e-9);
        if (r->inverse.method == MODES_INVERSE_AMG) printf(", at most %d iterations", r->inverse.iterations);
        printf("\n");
    }
    if (r->candidates > 0)
        printf("%d modes out of %d %s keep %.8g of their energy\n", f->basis.r, r->candidates,
               strcmp(s->modes.method, "sketch") == 0 ? "shapes" : "linear modes and derivatives", r->energy_kept);
}

static int print_text(const fem_mesh *mesh, const settings *s, const findings *f) {
    stage stages[STAGES];
    list_stages(s, f, stages);
    printf("%d vertices, %d elements, %d free degrees of freedom, %.6g kg\n", mesh->vertex_count, mesh->element_count,
           f->report.free_dofs, f->mass);
    print_way(s, f);
    printf("orthogonality: |U^T M U - I| is at most %.1e\n", f->quality.orthogonality);
    printf("\n mode      frequency Hz    eigenvalue 1/s^2   residual    Rayleigh quotient of the column\n");
    for (int i = 0; i < f->basis.r; i++)
        printf("%5d  %16.8g  %18.10g  %9.2g  %18.10g\n", i + 1, frequency(f->quality.ritz[i]), f->quality.ritz[i],
               f->quality.residuals[i], f->quality.rayleigh[i]);
    printf("\nseconds:");
    for (int i = 0; i < STAGES; i++)
        if (stages[i].taken) printf("%s %s %.3f", i > 0 ? "," : "", stages[i].title, stages[i].seconds);
    printf("\nmemory at most %.3g GB\n", peak_bytes() * 1e-9);
    return APP_DONE;
}

// ---- scenes -------------------------------------------------------------------------------------------------------

static int print_scene_json(const scene_frequencies *f, double seconds_read) {
    app_json json;
    app_json_begin(&json, stdout);
    app_json_object(&json, NULL);
    app_json_integer(&json, "vertices", f->vertices);
    app_json_integer(&json, "elements", f->elements);
    app_json_integer(&json, "free_dofs", f->free_dofs);
    app_json_number(&json, "mass", f->mass);
    app_json_numbers(&json, "eigenvalues", f->count, f->eigenvalues);
    app_json_array(&json, "frequencies_hz");
    for (int i = 0; i < f->count; i++) app_json_number(&json, NULL, frequency(f->eigenvalues[i]));
    app_json_end(&json);
    app_json_numbers(&json, "residuals", f->count, f->residuals);
    app_json_object(&json, "seconds");
    app_json_number(&json, "read", seconds_read);
    app_json_number(&json, "prepare", f->seconds_prepare);
    app_json_number(&json, "solve", f->seconds_solve);
    app_json_end(&json);
    app_json_integer(&json, "dofs", f->dofs);
    app_json_integer(&json, "domains", f->domains);
    return app_json_finish(&json);
}

static int print_scene_text(const scene_frequencies *f, double seconds_read) {
    printf("%d vertices, %d elements, %d free degrees of freedom, %.6g kg\n", f->vertices, f->elements, f->free_dofs,
           f->mass);
    if (f->domains > 0) printf("%d domains with %d modes\n", f->domains, f->dofs);
    printf("\n mode      frequency Hz    eigenvalue 1/s^2   residual\n");
    for (int i = 0; i < f->count; i++)
        printf("%5d  %16.8g  %18.10g  %9.2g\n", i + 1, frequency(f->eigenvalues[i]), f->eigenvalues[i],
               f->residuals[i]);
    printf("\nseconds: read %.3f, prepare %.3f, solve %.3f\n", seconds_read, f->seconds_prepare, f->seconds_solve);
    return fflush(stdout) == 0 ? APP_DONE : APP_FAILED;
}

// The body of a scene, as the scene simulates it: full, reduced, or cut into domains.
static int run_scene(const char *path, const settings *given, int count, const app_list *overrides) {
    fem_status        status = FEM_OK;
    int               exit_code = APP_DONE;
    scene            *s = NULL;
    scene_frequencies found = {0};
    app_progress      progress;
    char              usual[512];
    double            begun = fem_seconds(), read;
    app_progress_begin(&progress, given->quiet, NULL, 0);
    FEM_TRY(scene_load(&s, path, overrides->count, overrides->items));
    FEM_TRY(scene_set_cache(s, app_cache_folder(NULL, usual, sizeof usual)));
    read = fem_seconds() - begun;
    FEM_TRY(scene_find_frequencies(s, count, &progress.callback, &found));
    app_progress_end(&progress);
    app_print_notes(found.notes);
    exit_code = given->json ? print_scene_json(&found, read) : print_scene_text(&found, read);
done:
    app_progress_end(&progress);
    if (status != FEM_OK) exit_code = app_fail(status);
    scene_frequencies_destroy(&found);
    scene_destroy(s);
    return exit_code;
}

// The rules that the option parser does not know. Returns APP_DONE or, after a message, APP_BAD_INPUT.
static int check_settings(const settings *s) {
    static const char *const endings[] = {".vtu", ".npy", ".mtx", ".basis"};
    if (s->modes.count == 0) return app_usage_error(&command_modes, "--count K is needed: how many modes");
    if (s->mass && strcmp(s->mass, "consistent") != 0 && strcmp(s->mass, "lumped") != 0)
        return app_usage_error(&command_modes, "--mass is \"%s\", expected consistent or lumped", s->mass);
    for (int i = 0; i < s->write.count; i++) {
        bool known = false;
        for (int k = 0; k < 4; k++) known = known || ends_with(s->write.items[i], endings[k]);
        if (!known)
            return app_usage_error(&command_modes,
                                   "--write is \"%s\", expected a name that ends in .vtu, .npy, .mtx or .basis",
                                   s->write.items[i]);
    }
    if (s->rotations &&
        !(ends_with(s->rotations, ".vtu") || ends_with(s->rotations, ".npy") || ends_with(s->rotations, ".mtx")))
        return app_usage_error(&command_modes, "--rotations is \"%s\", expected a name that ends in .vtu, .npy or .mtx",
                               s->rotations);
    return APP_DONE;
}

static int run(int argc, char **argv) {
    settings s = {
        .material = app_material_none(), .body = fem_body_default_options(), .modes = modes_settings_default()};
    modes_settings  *m = &s.modes;
    app_list         overrides = {0};
    const app_option options[] = {
        {"--count", "-n", APP_INT, &m->count, 1, 1e9, "K", "number of modes, without the rigid ones"},
        {"--method", NULL, APP_TEXT, &m->method, 0, 0, "NAME",
         "lanczos (the default): vibration modes; krylov: inertia modes, many times faster; sketch: shapes under "
         "loads"},
        {"--fix", NULL, APP_TEXT, &m->fix, 0, 0, "FILE|set:NAME",
         "held vertices: numbers as the mesh file counts them, or a vertex set of the mesh; default: a free body"},
        {"--young", NULL, APP_NUMBER, &s.material.young, 0, 0, "E",
         "Young's modulus, Pa; default: the mesh file's own"},
        {"--poisson", NULL, APP_NUMBER, &s.material.poisson, 0, 0, "NU",
         "Poisson's ratio; default: the mesh file's own"},
        {"--density", NULL, APP_NUMBER, &s.material.density, 0, 0, "RHO", "kg/m^3; default: the mesh file's own"},
        {"--mass", NULL, APP_TEXT, &s.mass, 0, 0, "KIND", "consistent (the default) or lumped"},
        {"--quadrature", NULL, APP_INT, &s.body.quadrature, 2, 3, "2|3", "H8: Gauss points per direction; default 2"},
        {"--derivatives", NULL, APP_INT, &m->derivatives, 0, 3, "N",
         "derivatives of the linear modes up to this order; default 0"},
        {"--linear", NULL, APP_TEXT, &m->linear, 0, 0, "N[,N2[,N3]]",
         "linear modes that these are derivatives of, default 12; orders 2 and 3 of the first N2 and N3 alone"},
        {"--kind", NULL, APP_TEXT, &m->kind, 0, 0, "NAME",
         "of derivatives: modal (the default with lanczos), inertia (with krylov), tangent"},
        {"--condense", NULL, APP_TEXT, &m->condense, 0, 0, "NAME",
         "candidates to K columns: pca (the default), randomized, projection"},
        {"--scaling", NULL, APP_TEXT, &m->scaling, 0, 0, "NAME",
         "of candidates before that: frequency (the default), rayleigh, unit (mass-normalised), none"},
        {"--metric", NULL, APP_TEXT, &m->metric, 0, 0, "NAME", "of pca: mass (the default) or lumped, as VegaFEM's"},
        {"--energy", NULL, APP_NUMBER, &m->energy, 1e-6, 1, "F",
         "fewer than K columns where these keep the fraction F"},
        {"--seeds", NULL, APP_TEXT, &m->seeds, 0, 0, "LIST", "krylov: rigid, quadratic, random, or of x,y,z,rx,ry,rz"},
        {"--fields", NULL, APP_INT, &m->fields, 1, 1000, "N", "krylov: quadratic or random fields; default 6"},
        {"--random", NULL, APP_INT, &m->random_state, 1, 1e9, "N", "krylov: other random numbers for these"},
        {"--vectors", NULL, APP_TEXT, &m->vectors, 0, 0, "FILE",
         "krylov: seeds of your own, a column each: .npy or .mtx, rows x y z of vertex after vertex"},
        {"--interface", NULL, APP_LIST, &m->interfaces, 0, 0, "SET[:KG]",
         "krylov: the responses to six wrenches on this vertex set too; KG: what hangs on it, its weight in what "
         "follows"},
        {"--interface-seeds", NULL, APP_INT, &m->interface_seeds, 1, 1e6, "N",
         "krylov: the best N combinations of all these responses; default: all"},
        {"--interface-norm", NULL, APP_TEXT, &m->norm, 0, 0, "NAME",
         "krylov: best in this norm: mass (the default) or energy"},
        {"--orthogonalise", NULL, APP_TEXT, &m->orthogonalise, 0, 0, "NAME",
         "krylov: block (the default), mgs, rmgs (over a sample)"},
        {"--threshold", NULL, APP_NUMBER, &m->threshold, 0, 1, "C", "rmgs: cosines below are left; default 0.001"},
        {"--samples", NULL, APP_INT, &m->samples, 1, 1e9, "N", "rmgs: vertices in the sample; default: chosen by size"},
        {"--border", NULL, APP_TEXT, &m->border, 0, 0, "NAME", "krylov, free bodies: mass (the default) or plain"},
        {"--inverse", NULL, APP_TEXT, &m->inverse, 0, 0, "NAME",
         "factor, amg (multigrid), or automatic by size (the default)"},
        {"--tolerance", NULL, APP_NUMBER, &m->tolerance, 1e-14, 0.1, "T",
         "of multigrid, relative, in energy; default 1e-8"},
        {"--load", NULL, APP_LIST, &m->loads, 0, 0, "WHERE:fx,fy,fz",
         "sketch: a vertex set or number, and a force in N"},
        {"--loads", NULL, APP_TEXT, &m->load_file, 0, 0, "FILE",
         "sketch: recorded loads, one in each line; what stands in one line acts together"},
        {"--distance", NULL, APP_NUMBER, &m->distance, 0, 0.999, "F",
         "sketch: shapes closer than this part of the largest count once; default 0.001"},
        {"--write", NULL, APP_LIST, &s.write, 0, 0, "FILE",
         "the modes as .vtu, .npy, .mtx (rows: dofs) or .basis (for scenes)"},
        {"--rotations", NULL, APP_TEXT, &s.rotations, 0, 0, "FILE",
         "the rotation field of each mode, for modal warping, as .vtu, .npy or .mtx"},
        {"--matrices", NULL, APP_TEXT, &s.matrices, 0, 0, "PREFIX",
         "PREFIX_K.mtx, PREFIX_M.mtx, and their rows' meaning in PREFIX_dofs.csv"},
        {"--set", NULL, APP_LIST, &overrides, 0, 0, "KEY=VALUE", "of a scene: overrides it"},
        {"--threads", NULL, APP_INT, &s.threads, 0, 256, "N", "default: one per core"},
        {"--quiet", "-q", APP_FLAG, &s.quiet, 0, 0, NULL, "no progress"},
        {"--json", NULL, APP_FLAG, &s.json, 0, 0, NULL, "one JSON object on standard output"},
    };
    app_words    words;
    int          exit_code;
    modes_recipe recipe;
    if (!app_parse(&command_modes, argc, argv, sizeof options / sizeof *options, options, 1, 1, &words, &exit_code))
        return exit_code;
    if ((exit_code = check_settings(&s)) != APP_DONE) return exit_code;
    if ((exit_code = modes_settings_recipe(m, &recipe)) != APP_DONE) return exit_code;
    fem_set_threads(s.threads);
    if (app_is_scene(words.items[0])) return run_scene(words.items[0], &s, m->count, &overrides);
    if (overrides.count > 0)
        return app_usage_error(&command_modes, "--set is for scenes, and %s is none", words.items[0]);

    fem_status   status = FEM_OK;
    bool         writing = false;
    fem_mesh     mesh = {0};
    workpiece    work = {0};
    findings     found = {0};
    app_progress progress;
    app_progress_begin(&progress, s.quiet, NULL, 0);
    double begun = fem_seconds();
    FEM_TRY(app_read_mesh(&mesh, words.items[0]));
    prefer_isotropic(&mesh, &s.material);
    FEM_TRY(app_material_apply(&mesh, words.items[0], true, &s.material));
    found.seconds_read = fem_seconds() - begun;
    FEM_TRY(assemble(&work, &mesh, &s, &found));
    FEM_TRY(find_modes(&work, &s, &recipe, &progress.callback, &found));
    writing = true;
    FEM_TRY(write_results(&work, &s, &found));
    app_progress_end(&progress);
    if (m->fix && found.report.rigid > 0)
        app_note("the supports leave %d rigid motions, which are left out of the modes", found.report.rigid);
    exit_code = s.json ? print_json(&mesh, &s, &found) : print_text(&mesh, &s, &found);
done:
    app_progress_end(&progress);
    if (status != FEM_OK) exit_code = writing ? app_fail_output(status) : app_fail(status);
    workpiece_destroy(&work);
    modes_quality_destroy(&found.quality);
    modes_basis_destroy(&found.basis);
    fem_mesh_destroy(&mesh);
    return exit_code;
}

const app_command command_modes = {
    "modes",
    "Vibration modes, or a basis of Krylov modes and derivatives, of a mesh",
    "MESH|SCENE --count K [OPTIONS]",
    "limber modes beam.veg --count 10 --method lanczos --fix beam.bou --json",
    run,
    "Of a SCENE (.json) only --count, --set, --threads, --quiet and --json are read: its "
    "body in small vibrations, full, reduced, or cut into domains.\n"};
