// `limber convert`: a mesh or surface from one file format to another, by the endings of the names.
// What the new format could not hold is found by reading the new file again and comparing.
#include "app/app.h"

#include <math.h>
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

static void note_materials(const fem_mesh *before, const fem_mesh *after, const char *out) {
    if (!app_mesh_has_material(before)) return;
    int changed = 0;
    for (int e = 0; e < before->element_count && e < after->element_count; e++) {
        const fem_material *a = &before->materials[before->regions[before->region[e]].material];
        const fem_material *b = &after->materials[after->regions[after->region[e]].material];
        changed += !same_material(a, b);
    }
    if (changed > 0) app_note("lost: the material of %d elements; %s does not hold it", changed, out);
}

static void note_regions(const fem_mesh *before, const fem_mesh *after, const char *out) {
    for (int i = 0; i < before->region_count; i++) {
        if (before->region_count == 1 && after->region_count == 1) continue; // one region is no division
        if (fem_mesh_region_index(after, before->regions[i].name) < 0)
            app_note("lost: region \"%s\"; %s does not hold it", before->regions[i].name, out);
    }
}

static void note_sets(const char *what, int count, const fem_set *sets, const fem_mesh *after,
                      const fem_set *(*find)(const fem_mesh *, const char *), const char *out) {
    for (int i = 0; i < count; i++) {
        const fem_set *kept = find(after, sets[i].name);
        if (!kept || kept->count != sets[i].count)
            app_note("lost: %s set \"%s\" of %d; %s does not hold it", what, sets[i].name, sets[i].count, out);
    }
}

static void note_rounding(const fem_mesh *before, const fem_mesh *after, const char *out) {
    double largest = 0, change = 0;
    for (int i = 0; i < 3 * before->vertex_count && i < 3 * after->vertex_count; i++) {
        largest = fmax(largest, fabs(before->vertices[i]));
        change = fmax(change, fabs(before->vertices[i] - after->vertices[i]));
    }
    if (change > 0) app_note("lost: positions were rounded by up to %.2g of the largest in %s", change / largest, out);
}

static fem_status convert_mesh(const char *in, const char *out, bool *writing) {
    fem_status status = FEM_OK;
    fem_mesh   before = {0}, after = {0};
    FEM_TRY(fem_mesh_read(&before, in));
    *writing = true;
    FEM_TRY(fem_mesh_write(&before, out));
    printf("%s: %d vertices, %d %s elements\n", out, before.vertex_count, before.element_count,
           before.type == FEM_T4 ? "T4" : "H8");
    if (is_surface(out)) {
        app_note("lost: everything inside; a surface holds no elements, materials, regions or sets");
        goto done;
    }
    FEM_TRY(fem_mesh_read(&after, out));
    note_rounding(&before, &after, out);
    note_regions(&before, &after, out);
    note_materials(&before, &after, out);
    note_sets("vertex", before.vertex_set_count, before.vertex_sets, &after, fem_mesh_vertex_set, out);
    note_sets("element", before.element_set_count, before.element_sets, &after, fem_mesh_element_set, out);
done:
    fem_mesh_destroy(&before);
    fem_mesh_destroy(&after);
    return status;
}

static fem_status convert_surface(const char *in, const char *out, bool *writing) {
    fem_status  status = FEM_OK;
    fem_surface surface = {0};
    if (!is_surface(out))
        return fem_fail(FEM_BAD_INPUT, "%s is a surface and %s holds bodies; a surface converts to .obj only", in, out);
    FEM_TRY(fem_surface_read(&surface, in));
    *writing = true;
    FEM_TRY(fem_surface_write(&surface, out));
    printf("%s: %d vertices, %d triangles\n", out, surface.vertex_count, surface.triangle_count);
done:
    fem_surface_destroy(&surface);
    return status;
}

static int run(int argc, char **argv) {
    app_words words;
    int       exit_code;
    if (!app_parse(&command_convert, argc, argv, 0, NULL, 2, 2, &words, &exit_code)) return exit_code;
    const char *in = words.items[0], *out = words.items[1];
    bool        writing = false;
    fem_status  status = is_surface(in) ? convert_surface(in, out, &writing) : convert_mesh(in, out, &writing);
    return writing ? app_fail_output(status) : app_fail(status);
}

const app_command command_convert = {"convert", "A mesh from one file format to another, by the ending of the name",
                                     "IN OUT", "limber convert turtle.veg turtle.vtu", run};
