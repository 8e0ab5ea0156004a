// `limber info`: what a mesh or scene file holds, and (--machine) what this machine offers.
#include "app/app.h"

#include <math.h>
#include <string.h>

static double element_density(const fem_mesh *mesh, int element) {
    return mesh->materials[mesh->regions[mesh->region[element]].material].density;
}

// kg; integrates the density element by element
static double mesh_mass(const fem_mesh *mesh) {
    double mass = 0;
    for (int e = 0; e < mesh->element_count; e++) mass += element_density(mesh, e) * fem_element_volume(mesh, e);
    return mass;
}

static int region_elements(const fem_mesh *mesh, int region) {
    int count = 0;
    for (int e = 0; e < mesh->element_count; e++) count += mesh->region[e] == region;
    return count;
}

// The parameters that a material's kind reads, one call each.
typedef void (*visitor)(void *context, const char *name, const char *unit, int count, const double *values);

static void visit_material(const fem_material *m, visitor visit, void *context) {
    visit(context, "density", "kg/m^3", 1, &m->density);
    switch (m->kind) {
    case FEM_ORTHOTROPIC:
        visit(context, "young3", "Pa", 3, m->young3);
        visit(context, "poisson3", "", 3, m->poisson3);
        visit(context, "shear3", "Pa", 3, m->shear3);
        visit(context, "frame", "", 9, m->frame);
        break;
    case FEM_MOONEY_RIVLIN:
        visit(context, "mu01", "Pa", 1, &m->mu01);
        visit(context, "mu10", "Pa", 1, &m->mu10);
        visit(context, "v1", "Pa", 1, &m->v1);
        break;
    case FEM_ARRUDA_BOYCE:
        visit(context, "mu", "Pa", 1, &m->mu);
        visit(context, "chain", "", 1, &m->chain);
        visit(context, "bulk", "Pa", 1, &m->bulk);
        break;
    default:
        visit(context, "young", "Pa", 1, &m->young);
        visit(context, "poisson", "", 1, &m->poisson);
        break;
    }
}

// ---- text ---------------------------------------------------------------------------------------------------------

static void print_parameter(void *context, const char *name, const char *unit, int count, const double *values) {
    (void)context;
    printf(", %s", name);
    for (int i = 0; i < count; i++) printf(" %g", values[i]);
    if (unit[0]) printf(" %s", unit);
}

static void print_sets(const char *what, int count, const fem_set *sets) {
    for (int i = 0; i < count; i++) app_print("%s set   %s: %d\n", what, sets[i].name, sets[i].count);
}

static void print_mesh(const char *path, const fem_mesh *mesh, const fem_quality *q) {
    printf("%s: %d vertices, %d %s elements\n", path, mesh->vertex_count, mesh->element_count,
           mesh->type == FEM_T4 ? "T4" : "H8");
    printf("bounding box  %g %g %g .. %g %g %g m\n", q->low[0], q->low[1], q->low[2], q->high[0], q->high[1],
           q->high[2]);
    printf("volume        %.8g m^3\n", q->volume);
    if (app_mesh_has_material(mesh))
        printf("mass          %.8g kg\n", mesh_mass(mesh));
    else
        printf("mass          unknown: the file has no material\n");
    for (int i = 0; i < mesh->material_count && app_mesh_has_material(mesh); i++) {
        const fem_material *m = &mesh->materials[i];
        app_print("material      %s: %s", m->name, fem_material_kind_name(m->kind));
        visit_material(m, print_parameter, NULL);
        printf("\n");
    }
    for (int i = 0; i < mesh->region_count; i++)
        app_print("region        %s: %d elements of %s\n", mesh->regions[i].name, region_elements(mesh, i),
                  mesh->materials[mesh->regions[i].material].name);
    print_sets("vertex ", mesh->vertex_set_count, mesh->vertex_sets);
    print_sets("element", mesh->element_set_count, mesh->element_sets);
    printf("components    %d, vertices without element %d\n", q->components, q->unused_vertices);
    printf("quality       element volumes %.3g .. %.3g m^3, dihedral angles %.1f .. %.1f degrees\n", q->min_volume,
           q->max_volume, q->min_dihedral, q->max_dihedral);
    printf("              worst %s %.3f (1 is best), element %lld\n",
           mesh->type == FEM_T4 ? "mean ratio" : "scaled Jacobian", q->min_shape,
           fem_mesh_element_number(mesh, q->worst_element));
}

// ---- JSON ---------------------------------------------------------------------------------------------------------

static void json_parameter(void *context, const char *name, const char *unit, int count, const double *values) {
    (void)unit;
    if (count == 1)
        app_json_number(context, name, values[0]);
    else
        app_json_numbers(context, name, count, values);
}

static void json_sets(app_json *json, const char *key, int count, const fem_set *sets) {
    app_json_array(json, key);
    for (int i = 0; i < count; i++) {
        app_json_object(json, NULL);
        app_json_text(json, "name", sets[i].name);
        app_json_integer(json, "count", sets[i].count);
        app_json_end(json);
    }
    app_json_end(json);
}

static void json_materials(app_json *json, const fem_mesh *mesh) {
    app_json_array(json, "materials");
    for (int i = 0; i < mesh->material_count && app_mesh_has_material(mesh); i++) {
        app_json_object(json, NULL);
        app_json_text(json, "name", mesh->materials[i].name);
        app_json_text(json, "kind", fem_material_kind_name(mesh->materials[i].kind));
        visit_material(&mesh->materials[i], json_parameter, json);
        app_json_end(json);
    }
    app_json_end(json);
}

static void json_regions(app_json *json, const fem_mesh *mesh) {
    app_json_array(json, "regions");
    for (int i = 0; i < mesh->region_count; i++) {
        app_json_object(json, NULL);
        app_json_text(json, "name", mesh->regions[i].name);
        app_json_integer(json, "elements", region_elements(mesh, i));
        app_json_text(json, "material", mesh->materials[mesh->regions[i].material].name);
        app_json_end(json);
    }
    app_json_end(json);
}

static void json_quality(app_json *json, const fem_mesh *mesh, const fem_quality *q) {
    app_json_object(json, "quality");
    app_json_number(json, "min_volume", q->min_volume);
    app_json_number(json, "max_volume", q->max_volume);
    app_json_number(json, "min_dihedral_degrees", q->min_dihedral);
    app_json_number(json, "max_dihedral_degrees", q->max_dihedral);
    app_json_number(json, "min_shape", q->min_shape);
    app_json_integer(json, "worst_element", fem_mesh_element_number(mesh, q->worst_element));
    app_json_end(json);
}

// The members of an object that describes a mesh.
static void json_mesh(app_json *json, const fem_mesh *mesh, const fem_quality *q) {
    app_json_text(json, "element", mesh->type == FEM_T4 ? "T4" : "H8");
    app_json_integer(json, "vertices", mesh->vertex_count);
    app_json_integer(json, "elements", mesh->element_count);
    app_json_integer(json, "components", q->components);
    app_json_integer(json, "unused_vertices", q->unused_vertices);
    app_json_numbers(json, "low", 3, q->low);
    app_json_numbers(json, "high", 3, q->high);
    app_json_number(json, "volume", q->volume);
    app_json_number(json, "mass", app_mesh_has_material(mesh) ? mesh_mass(mesh) : (double)NAN);
    json_materials(json, mesh);
    json_regions(json, mesh);
    json_sets(json, "vertex_sets", mesh->vertex_set_count, mesh->vertex_sets);
    json_sets(json, "element_sets", mesh->element_set_count, mesh->element_sets);
    json_quality(json, mesh, q);
}

// ---- the machine --------------------------------------------------------------------------------------------------

static int print_machine(bool as_json) {
    fem_machine m;
    fem_machine_describe(&m);
    if (!as_json) {
        printf("limber        %s, built by %s\n", LIMBER_VERSION, m.compiler);
        printf("cores         %d, threads %d\n", m.cores, m.threads);
        printf("kernels       %s\n", fem_simd_name(m.simd));
        printf("BLAS          %s\n", m.blas_version);
        printf("  kernels     %s%s%s\n", m.blas_kernels, m.blas_advice ? ", better: OPENBLAS_CORETYPE=" : "",
               m.blas_advice ? m.blas_advice : "");
        printf("  dgemm       %s\n", m.blas_file);
        printf("  ARPACK's    %s\n", m.arpack_blas);
        printf("CHOLMOD       %s\n", m.cholmod_version);
        printf("METIS         %s\n", m.metis_version);
        printf("ARPACK        %s\n", m.arpack_file);
        printf("LAPACK        %s\n", m.lapack_version);
        return APP_DONE;
    }
    app_json json;
    app_json_begin(&json, stdout);
    app_json_object(&json, NULL);
    app_json_text(&json, "limber", LIMBER_VERSION);
    app_json_text(&json, "compiler", m.compiler);
    app_json_integer(&json, "cores", m.cores);
    app_json_integer(&json, "threads", m.threads);
    app_json_text(&json, "kernels", fem_simd_name(m.simd));
    app_json_text(&json, "blas_version", m.blas_version);
    app_json_text(&json, "blas_kernels", m.blas_kernels);
    app_json_text(&json, "blas_advice", m.blas_advice ? m.blas_advice : "");
    app_json_text(&json, "blas_file", m.blas_file);
    app_json_text(&json, "arpack_blas", m.arpack_blas);
    app_json_text(&json, "cholmod", m.cholmod_version);
    app_json_text(&json, "metis", m.metis_version);
    app_json_text(&json, "arpack_file", m.arpack_file);
    app_json_text(&json, "lapack", m.lapack_version);
    return app_json_finish(&json);
}

// ---- files --------------------------------------------------------------------------------------------------------

static fem_status describe_mesh(const char *path, bool as_json, int *exit_code) {
    fem_status  status = FEM_OK;
    fem_mesh    mesh = {0};
    fem_remarks remarks = {0};
    fem_quality quality;
    FEM_TRY(fem_mesh_read_remarks(&mesh, path, &remarks));
    FEM_TRY(fem_mesh_quality(&mesh, &quality));
    if (as_json) {
        app_json json;
        app_json_begin(&json, stdout);
        app_json_object(&json, NULL);
        json_mesh(&json, &mesh, &quality);
        app_json_remarks(&json, &remarks);
        *exit_code = app_json_finish(&json);
    } else {
        print_mesh(path, &mesh, &quality);
        app_note_remarks(&remarks);
    }
done:
    fem_remarks_destroy(&remarks);
    fem_mesh_destroy(&mesh);
    return status;
}

// Modes that a domain asks for; the share of a total is known only when the classes are made.
static void modes_text(const scene *s, int domain, char text[16]) {
    int modes = s->tree.own[domain].modes;
    if (modes == SOLVER_MODES_SHARED)
        snprintf(text, 16, "share");
    else
        snprintf(text, 16, "%d", modes);
}

static double interface_area(const domain_tree *t, int domain) {
    double area = 0;
    for (int k = t->interfaces.start[domain]; k < t->interfaces.start[domain + 1]; k++)
        area += t->interfaces.weights[k];
    return area;
}

static void json_tree(app_json *json, const scene *s) {
    const domain_tree *t = &s->tree.domains;
    app_json_object(json, "tree");
    app_json_integer(json, "domains", t->count);
    app_json_integer(json, "depth", t->report.depth);
    app_json_integer(json, "total_modes", s->tree.assembly.total);
    app_json_number(json, "damping_ratio", s->tree.damping_ratio);
    app_json_integer(json, "closures", t->closures.count);
    app_json_integer(json, "grounds", t->grounds.count);
    app_json_array(json, "list");
    for (int i = 0; i < t->count; i++) {
        app_json_object(json, NULL);
        app_json_text(json, "name", t->name[i]);
        app_json_integer(json, "parent", t->parent[i]);
        app_json_integer(json, "level", t->level[i]);
        app_json_integer(json, "elements", t->element_start[i + 1] - t->element_start[i]);
        app_json_integer(json, "modes", s->tree.own[i].modes);
        app_json_text(json, "forces", solver_forces_name(s->tree.own[i].forces));
        app_json_number(json, "stiffness", s->tree.own[i].stiffness);
        app_json_number(json, "interface_area", interface_area(t, i));
        app_json_end(json);
    }
    app_json_end(json);
    app_json_end(json);
}

static void print_tree(const scene *s) {
    const domain_tree *t = &s->tree.domains;
    char               few[SCENE_CUT_TEXT];
    printf("\ntree          %d domains, depth %d, %d to %d elements each\n", t->count, t->report.depth,
           t->report.smallest, t->report.largest);
    if (scene_cut_text(s, few)) printf("              %s\n", few);
    if (scene_held_text(s, few)) printf("              %s\n", few);
    if (s->tree.assembly.total > 0) printf("modes         %d in all, shared out by size\n", s->tree.assembly.total);
    if (s->tree.damping_ratio > 0)
        printf("damping       %.3g%% of the lowest mode, by stiffness\n", 100 * s->tree.damping_ratio);
    if (t->closures.count + t->grounds.count > 0)
        printf("springs       %d closures of loops, %d further feet\n", t->closures.count, t->grounds.count);
    printf("  number  level  parent  elements  modes  forces      stiffness  interface m^2  name\n");
    for (int i = 0; i < t->count; i++) {
        char modes[16];
        modes_text(s, i, modes);
        printf("  %6d  %5d  %6d  %8d  %5s  %-10s  %9.4g  %13.6g  %*s%s\n", i, t->level[i], t->parent[i],
               t->element_start[i + 1] - t->element_start[i], modes,
               s->tree.own[i].modes == 0 ? "rigid" : solver_forces_name(s->tree.own[i].forces),
               s->tree.own[i].stiffness, interface_area(t, i), t->level[i] < 20 ? t->level[i] : 20, "", t->name[i]);
    }
}

// ---- instances, by part and level
// ------------------------------------------------------------------------------------

enum { FOREST_LEVELS = 64 };

typedef struct forest_row {
    int    level, part, count;
    double smallest, largest; // scales
} forest_row;

// Rows by level, then by part. Caller frees.
static int forest_rows(const scene *s, forest_row **rows) {
    const scene_forest *f = &s->forest;
    int                 parts = f->part_count, count = 0;
    int                *level = fem_calloc((size_t)f->count, sizeof *level);
    double             *scale = fem_calloc((size_t)f->count, sizeof *scale);
    forest_row         *all = fem_calloc((size_t)parts * FOREST_LEVELS, sizeof *all);
    for (int i = 0; level && scale && all && i < f->count; i++) {
        int parent = f->instances[i].parent;
        level[i] = parent < 0 ? 0 : level[parent] + (level[parent] < FOREST_LEVELS - 1);
        scale[i] = f->instances[i].at.scale * (parent < 0 ? 1 : scale[parent]);
        forest_row *row = &all[level[i] * parts + f->instances[i].part];
        row->level = level[i], row->part = f->instances[i].part;
        row->smallest = row->count == 0 || scale[i] < row->smallest ? scale[i] : row->smallest;
        row->largest = row->count == 0 || scale[i] > row->largest ? scale[i] : row->largest;
        row->count++;
    }
    for (int i = 0; level && scale && all && i < parts * FOREST_LEVELS; i++)
        if (all[i].count > 0) all[count++] = all[i];
    fem_free(level), fem_free(scale);
    *rows = all;
    return count;
}

static void json_forest(app_json *json, const scene *s) {
    forest_row *rows = NULL;
    int         count = forest_rows(s, &rows), modes = 0;
    for (int i = 0; i < s->forest.count; i++) modes += s->forest.parts[s->forest.instances[i].part].options.modes;
    app_json_object(json, "forest");
    app_json_integer(json, "instances", s->forest.count);
    app_json_integer(json, "modes", modes);
    app_json_integer(json, "elements", s->parts[s->object].mesh.element_count);
    app_json_array(json, "list");
    for (int i = 0; i < count; i++) {
        app_json_object(json, NULL);
        app_json_integer(json, "level", rows[i].level);
        app_json_text(json, "part", s->parts[rows[i].part].name);
        app_json_integer(json, "instances", rows[i].count);
        app_json_integer(json, "elements", s->parts[rows[i].part].mesh.element_count);
        app_json_integer(json, "modes", s->forest.parts[rows[i].part].options.modes);
        app_json_number(json, "smallest_scale", rows[i].smallest);
        app_json_number(json, "largest_scale", rows[i].largest);
        app_json_end(json);
    }
    app_json_end(json);
    app_json_end(json);
    fem_free(rows);
}

static void print_forest(const scene *s) {
    forest_row *rows = NULL;
    int         count = forest_rows(s, &rows), modes = 0;
    for (int i = 0; i < s->forest.count; i++) modes += s->forest.parts[s->forest.instances[i].part].options.modes;
    printf("\ninstances     %d, with %d modes and %d elements in all\n", s->forest.count, modes,
           s->parts[s->object].mesh.element_count);
    printf("  level  instances  elements  modes  forces           scale  part\n");
    for (int i = 0; i < count; i++) {
        char scale[48];
        if (rows[i].smallest == rows[i].largest)
            snprintf(scale, sizeof scale, "%.3g", rows[i].smallest);
        else
            snprintf(scale, sizeof scale, "%.3g-%.3g", rows[i].smallest, rows[i].largest);
        const solver_part *part = &s->forest.parts[rows[i].part];
        printf("  %5d  %9d  %8d  %5d  %-10s  %10s  %*s%s\n", rows[i].level, rows[i].count, part->mesh->element_count,
               part->options.modes, solver_forces_name(part->options.forces), scale,
               rows[i].level < 20 ? rows[i].level : 20, "", part->name);
    }
    fem_free(rows);
}

static int json_scene(const scene *s, int parts, const fem_quality *qualities) {
    app_json json;
    app_json_begin(&json, stdout);
    app_json_object(&json, NULL);
    app_json_text(&json, "scene", s->name);
    app_json_text(&json, "title", s->title ? s->title : "");
    app_json_text(&json, "method", scene_method_name(s->method));
    app_json_integer(&json, "frames", s->frames);
    app_json_numbers(&json, "gravity", 3, s->gravity);
    app_json_integer(&json, "actions", s->action_count);
    app_json_integer(&json, "probes", s->probe_count);
    app_json_text(&json, "object", s->parts[s->object].name);
    if (s->tree.domains.count > 0) json_tree(&json, s);
    if (s->forest.count > 0) json_forest(&json, s);
    app_json_array(&json, "parts");
    for (int i = 0; i < parts; i++) {
        app_json_object(&json, NULL);
        app_json_text(&json, "name", s->parts[i].name);
        app_json_integer(&json, "fixed_vertices", s->parts[i].fixed.count);
        json_mesh(&json, &s->parts[i].mesh, &qualities[i]);
        app_json_end(&json);
    }
    return app_json_finish(&json);
}

static void print_scene(const scene *s, int parts, const fem_quality *qualities) {
    app_print("%s: scene %s%s%s\n", s->path, s->name, s->title ? ", " : "", s->title ? s->title : "");
    printf("method        %s", scene_method_name(s->method));
    if (s->method != SCENE_STATIC)
        printf(", %d frames of 1/%g s, %d steps each", s->frames, s->rate, s->steps_per_frame);
    printf("\ngravity       %g %g %g m/s^2\n", s->gravity[0], s->gravity[1], s->gravity[2]);
    printf("actions       %d\nprobes        %d\n", s->action_count, s->probe_count);
    if (s->forest.count == 0) printf("object        part %s\n", s->parts[s->object].name);
    if (s->tree.domains.count > 0) print_tree(s);
    if (s->forest.count > 0) print_forest(s);
    for (int i = 0; i < parts; i++) {
        printf("\n");
        print_mesh(s->parts[i].name, &s->parts[i].mesh, &qualities[i]);
        printf("fixed         %d vertices\n", s->parts[i].fixed.count);
    }
}

static fem_status describe_scene(const char *path, bool as_json, int *exit_code) {
    fem_status   status = FEM_OK;
    scene       *s = NULL;
    fem_quality *qualities = NULL; // per part
    FEM_TRY(scene_load(&s, path, 0, NULL));
    qualities = fem_calloc((size_t)s->part_count, sizeof *qualities);
    if (!qualities) {
        status = fem_fail(FEM_NO_MEMORY, "info: %d parts", s->part_count);
        goto done;
    }
    int parts = s->forest.count > 0 ? s->forest.part_count : s->part_count; // but that of all instances
    for (int i = 0; i < parts; i++) FEM_TRY(fem_mesh_quality(&s->parts[i].mesh, &qualities[i]));
    if (as_json)
        *exit_code = json_scene(s, parts, qualities);
    else
        print_scene(s, parts, qualities);
    app_note_remarks(&s->remarks);
done:
    fem_free(qualities);
    scene_destroy(s);
    return status;
}

static int run(int argc, char **argv) {
    bool             json = false, machine = false;
    const app_option options[] = {
        {"--machine", NULL, APP_FLAG, &machine, 0, 0, NULL, "processor, threads and libraries instead of a file"},
        {"--json", NULL, APP_FLAG, &json, 0, 0, NULL, "one JSON object on standard output"},
    };
    app_words words;
    int       exit_code;
    if (!app_parse(&command_info, argc, argv, sizeof options / sizeof *options, options, 0, 1, &words, &exit_code))
        return exit_code;
    if (machine && words.count == 0) return print_machine(json);
    if (machine || words.count == 0) return app_usage_error(&command_info, "expected a file, or --machine alone");

    exit_code = APP_DONE;
    const char *path = words.items[0];
    fem_status  status =
        app_is_scene(path) ? describe_scene(path, json, &exit_code) : describe_mesh(path, json, &exit_code);
    return status == FEM_OK ? exit_code : app_fail(status);
}

const app_command command_info = {"info",
                                  "What a mesh or scene file holds, or what this machine offers",
                                  "MESH|SCENE [--json] | --machine [--json]",
                                  "limber info turtle.veg",
                                  run,
                                  "MESH is .veg .vegb .node .ele .vtu .vtk .msh .mesh .meshb or .inp, with or "
                                  "without .gz behind it; SCENE is .json.\n"};
