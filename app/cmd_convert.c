// `limber convert`: a mesh or surface from one file format to another, by the endings of the names.
// What the new format could not hold is found by reading the new file again and comparing.
#include "app/app.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

static bool ends_with(const char *text, const char *ending) {
    size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && strcmp(text + length - tail, ending) == 0;
}

static bool is_surface(const char *path) { return ends_with(path, ".obj") || ends_with(path, ".obj.gz"); }

static bool same_material(const fem_material *a, const fem_material *b) {
    if (a->kind != b->kind || a->density != b->density) return false;
    switch (a->kind) {
    case FEM_ORTHOTROPIC:
        return memcmp(a->young3, b->young3, sizeof a->young3) == 0 &&
               memcmp(a->poisson3, b->poisson3, sizeof a->poisson3) == 0 &&
               memcmp(a->shear3, b->shear3, sizeof a->shear3) == 0 && memcmp(a->frame, b->frame, sizeof a->frame) == 0;
    case FEM_MOONEY_RIVLIN:
        return a->mu01 == b->mu01 && a->mu10 == b->mu10 && a->v1 == b->v1;
    case FEM_ARRUDA_BOYCE:
        return a->mu == b->mu && a->chain == b->chain && a->bulk == b->bulk;
    default:
        return a->young == b->young && a->poisson == b->poisson;
    }
}

// What was lost: a remark each on standard error, or the items of a list in the JSON.
typedef struct losses {
    const char *out;  // name of the new file
    app_json   *json; // NULL: remarks
} losses;

__attribute__((format(printf, 2, 3))) static void lost(const losses *l, const char *format, ...) {
    char    text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (l->json)
        app_json_text(l->json, NULL, text);
    else
        app_note("lost: %s; %s does not hold it", text, l->out);
}

static void compare_materials(const losses *l, const fem_mesh *before, const fem_mesh *after) {
    if (!app_mesh_has_material(before)) return;
    int changed = 0;
    for (int e = 0; e < before->element_count && e < after->element_count; e++) {
        const fem_material *a = &before->materials[before->regions[before->region[e]].material];
        const fem_material *b = &after->materials[after->regions[after->region[e]].material];
        changed += !same_material(a, b);
    }
    if (changed > 0) lost(l, "the material of %d elements", changed);
}

static void compare_regions(const losses *l, const fem_mesh *before, const fem_mesh *after) {
    for (int i = 0; i < before->region_count; i++) {
        if (before->region_count == 1 && after->region_count == 1) continue; // one region is no division
        if (fem_mesh_region_index(after, before->regions[i].name) < 0)
            lost(l, "region \"%s\"", before->regions[i].name);
    }
}

static void compare_sets(const losses *l, const char *what, int count, const fem_set *sets, const fem_mesh *after,
                         const fem_set *(*find)(const fem_mesh *, const char *)) {
    for (int i = 0; i < count; i++) {
        const fem_set *kept = find(after, sets[i].name);
        if (!kept || kept->count != sets[i].count) lost(l, "%s set \"%s\" of %d", what, sets[i].name, sets[i].count);
    }
}

static void compare_positions(const losses *l, const fem_mesh *before, const fem_mesh *after) {
    double largest = 0, change = 0;
    for (int i = 0; i < 3 * before->vertex_count && i < 3 * after->vertex_count; i++) {
        largest = fmax(largest, fabs(before->vertices[i]));
        change = fmax(change, fabs(before->vertices[i] - after->vertices[i]));
    }
    if (change > 0) lost(l, "the last digits of positions, up to %.2g of the largest", change / largest);
}

static void compare(const losses *l, const fem_mesh *before, const fem_mesh *after) {
    if (is_surface(l->out)) {
        lost(l, "everything inside: elements, materials, regions and sets");
        return;
    }
    compare_positions(l, before, after);
    compare_regions(l, before, after);
    compare_materials(l, before, after);
    compare_sets(l, "vertex", before->vertex_set_count, before->vertex_sets, after, fem_mesh_vertex_set);
    compare_sets(l, "element", before->element_set_count, before->element_sets, after, fem_mesh_element_set);
}

static void begin_json(app_json *json, const char *out, int vertices, const char *cells, int count) {
    app_json_begin(json, stdout);
    app_json_object(json, NULL);
    app_json_text(json, "file", out);
    app_json_integer(json, "vertices", vertices);
    app_json_integer(json, cells, count);
    app_json_array(json, "lost");
}

static fem_status convert_mesh(const char *in, const char *out, bool as_json, bool *writing, int *exit_code) {
    fem_status status = FEM_OK;
    fem_mesh   before = {0}, after = {0};
    app_json   json;
    losses     l = {.out = out, .json = as_json ? &json : NULL};
    FEM_TRY(fem_mesh_read(&before, in));
    *writing = true;
    FEM_TRY(fem_mesh_write(&before, out));
    if (!is_surface(out)) FEM_TRY(fem_mesh_read(&after, out));
    if (as_json)
        begin_json(&json, out, before.vertex_count, "elements", before.element_count);
    else
        printf("%s: %d vertices, %d %s elements\n", out, before.vertex_count, before.element_count,
               before.type == FEM_T4 ? "T4" : "H8");
    compare(&l, &before, &after);
    if (as_json) *exit_code = app_json_finish(&json);
done:
    fem_mesh_destroy(&before);
    fem_mesh_destroy(&after);
    return status;
}

static fem_status convert_surface(const char *in, const char *out, bool as_json, bool *writing, int *exit_code) {
    fem_status  status = FEM_OK;
    fem_surface surface = {0};
    app_json    json;
    if (!is_surface(out))
        return fem_fail(FEM_BAD_INPUT, "%s is a surface and %s holds bodies; a surface converts to .obj only", in, out);
    FEM_TRY(fem_surface_read(&surface, in));
    *writing = true;
    FEM_TRY(fem_surface_write(&surface, out));
    if (as_json) {
        begin_json(&json, out, surface.vertex_count, "triangles", surface.triangle_count);
        *exit_code = app_json_finish(&json);
    } else {
        printf("%s: %d vertices, %d triangles\n", out, surface.vertex_count, surface.triangle_count);
    }
done:
    fem_surface_destroy(&surface);
    return status;
}

static int run(int argc, char **argv) {
    bool             json = false, writing = false;
    const app_option options[] = {
        {"--json", NULL, APP_FLAG, &json, 0, 0, NULL, "one JSON object on standard output"},
    };
    app_words words;
    int       exit_code;
    if (!app_parse(&command_convert, argc, argv, sizeof options / sizeof *options, options, 2, 2, &words, &exit_code))
        return exit_code;
    const char *in = words.items[0], *out = words.items[1];
    exit_code = APP_DONE;
    fem_status status = is_surface(in) ? convert_surface(in, out, json, &writing, &exit_code)
                                       : convert_mesh(in, out, json, &writing, &exit_code);
    if (status == FEM_OK) return exit_code;
    return writing ? app_fail_output(status) : app_fail(status);
}

const app_command command_convert = {"convert", "A mesh from one file format to another, by the ending of the name",
                                     "IN OUT [--json]", "limber convert turtle.veg turtle.vtu", run};
