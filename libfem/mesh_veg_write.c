// Vega's .veg: the writer, numbers from 1.
// A region becomes "*REGION SET, MATERIAL". Later regions override earlier ones, so a set of the region's name serves
// when it holds the region and nothing of an earlier one; else a set is written for it. Vega has no vertex sets: ours
// stand in comments (#*VERTEXSET NAME, then lines that begin with #:), which Vega skips and our reader knows.
#include "libfem/mesh_formats.h"

#include <stdio.h>
#include <string.h>

static bool is_plain(const char *name) {
    if (!name[0] || name[0] == '*' || strlen(name) > 200) return false;
    for (; *name; name++)
        if ((unsigned char)*name <= ' ' || *name == ',' || *name == '#') return false;
    return true;
}

static fem_status check_names(const fem_mesh *mesh) {
    const char *bad = NULL;
    for (int i = 0; i < mesh->material_count && !bad; i++)
        if (!is_plain(mesh->materials[i].name)) bad = mesh->materials[i].name;
    for (int i = 0; i < mesh->region_count && !bad; i++)
        if (!is_plain(mesh->regions[i].name)) bad = mesh->regions[i].name;
    for (int i = 0; i < mesh->element_set_count && !bad; i++)
        if (!is_plain(mesh->element_sets[i].name)) bad = mesh->element_sets[i].name;
    for (int i = 0; i < mesh->vertex_set_count && !bad; i++)
        if (!is_plain(mesh->vertex_sets[i].name)) bad = mesh->vertex_sets[i].name;
    for (int i = 0; i < mesh->region_count && !bad; i++)
        if (fem_mesh_region_index(mesh, mesh->regions[i].name) != i)
            return fem_fail(FEM_BAD_INPUT, "two regions are called \"%.100s\", which .veg cannot hold",
                            mesh->regions[i].name);
    const fem_set *whole = fem_mesh_element_set(mesh, "allElements");
    if (whole && whole->count != mesh->element_count)
        return fem_fail(FEM_BAD_INPUT, "the set \"allElements\" must hold all elements: .veg has it built in");
    if (!bad) return FEM_OK;
    return fem_fail(
        FEM_BAD_INPUT,
        "the name \"%.100s\" is empty, too long, begins with * or has a blank, a comma or #, which .veg cannot hold",
        bad);
}

static void put_items(fem_file *file, const char *line_start, int count, const int *items) {
    for (int i = 0; i < count; i++) {
        if (i % 10 == 0) fem_file_print(file, "%s%s", i > 0 ? "\n" : "", line_start);
        if (i % 10 > 0) fem_file_put(file, " ", 1);
        char text[FEM_DIGITS];
        fem_file_put(file, text, (size_t)fem_format_int(text, (long long)items[i] + 1));
        fem_file_put(file, ",", 1);
    }
    if (count > 0) fem_file_put(file, "\n", 1);
}

static void put_geometry(fem_file *file, const fem_mesh *mesh) {
    int width = fem_element_vertices(mesh->type);
    fem_file_print(file, "*VERTICES\n%d 3 0 0\n", mesh->vertex_count);
    for (int v = 0; v < mesh->vertex_count; v++) {
        char text[FEM_DIGITS];
        fem_file_put(file, text, (size_t)fem_format_int(text, (long long)v + 1));
        for (int k = 0; k < 3; k++) fem_file_put_double(file, ' ', mesh->vertices[3 * (size_t)v + (size_t)k]);
        fem_file_put(file, "\n", 1);
    }
    fem_file_print(file, "\n*ELEMENTS\n%s\n%d %d 0\n", mesh->type == FEM_T4 ? "TET" : "CUBIC", mesh->element_count,
                   width);
    for (int e = 0; e < mesh->element_count; e++) {
        char text[FEM_DIGITS];
        fem_file_put(file, text, (size_t)fem_format_int(text, (long long)e + 1));
        for (int a = 0; a < width; a++)
            fem_file_put_int(file, ' ', (long long)mesh->elements[(size_t)e * (size_t)width + (size_t)a] + 1);
        fem_file_put(file, "\n", 1);
    }
}

// Two materials may share a name in a mesh, not in a file: the later ones get their number behind it.
static void material_name(const fem_mesh *mesh, int index, char name[96]) {
    bool taken = false;
    for (int i = 0; i < index; i++) taken = taken || strcmp(mesh->materials[i].name, mesh->materials[index].name) == 0;
    if (taken)
        snprintf(name, 96, "%.48s_%d", mesh->materials[index].name, index + 1);
    else
        snprintf(name, 96, "%s", mesh->materials[index].name);
}

// May this element set (NULL: all elements) stand for the region?
static bool set_serves(const fem_mesh *mesh, int region, const fem_set *set) {
    int inside = 0, all = 0, count = set ? set->count : mesh->element_count;
    for (int i = 0; i < count; i++) {
        int other = mesh->region[set ? set->items[i] : i];
        if (other < region) return false;
        inside += other == region;
    }
    for (int e = 0; e < mesh->element_count; e++) all += mesh->region[e] == region;
    return inside == all;
}

// Name of the set that stands for a region; *make says that it must be written.
static void region_set_name(const fem_mesh *mesh, int region, char name[256], bool *make) {
    const char    *wanted = mesh->regions[region].name;
    const fem_set *set = fem_mesh_element_set(mesh, wanted);
    bool           whole = strcmp(wanted, "all") == 0 || strcmp(wanted, "allElements") == 0;
    *make = false;
    snprintf(name, 256, "%s", wanted);
    if (set && set_serves(mesh, region, set)) return;
    if (whole && !set && set_serves(mesh, region, NULL)) {
        snprintf(name, 256, "allElements");
        return;
    }
    *make = true;
    for (int i = 1; fem_mesh_element_set(mesh, name) || strcmp(name, "allElements") == 0; i++)
        snprintf(name, 256, "%.200s_region%d", wanted, i);
}

static fem_status put_regions(fem_file *file, const fem_mesh *mesh) {
    fem_status status = FEM_OK;
    char       set[256], material[96];
    bool       make;
    int       *items = fem_alloc((size_t)mesh->element_count, sizeof *items);
    if (!items) return fem_fail(FEM_NO_MEMORY, "no memory for the elements of a region");
    for (int r = 0; r < mesh->region_count; r++) {
        region_set_name(mesh, r, set, &make);
        if (!make) continue;
        int count = 0;
        for (int e = 0; e < mesh->element_count; e++)
            if (mesh->region[e] == r) items[count++] = e;
        fem_file_print(file, "\n*SET %s\n", set);
        put_items(file, "", count, items);
    }
    for (int r = 0; r < mesh->region_count; r++) {
        region_set_name(mesh, r, set, &make);
        material_name(mesh, mesh->regions[r].material, material);
        fem_file_print(file, "\n*REGION\n%s, %s\n", set, material);
    }
    fem_free(items);
    return status;
}

static fem_status put_mesh(fem_file *file, const fem_mesh *mesh) {
    fem_status status = FEM_OK;
    char       name[96];
    fem_file_print(file, "# Vega mesh: %d vertices, %d elements\n\n", mesh->vertex_count, mesh->element_count);
    put_geometry(file, mesh);
    for (int i = 0; i < mesh->material_count; i++) {
        material_name(mesh, i, name);
        FEM_TRY(fem_veg_write_material(file, name, &mesh->materials[i]));
    }
    for (int i = 0; i < mesh->element_set_count; i++) {
        const fem_set *set = &mesh->element_sets[i];
        if (strcmp(set->name, "allElements") == 0) continue; // built in
        fem_file_print(file, "\n*SET %s\n", set->name);
        put_items(file, "", set->count, set->items);
    }
    FEM_TRY(put_regions(file, mesh));
    for (int i = 0; i < mesh->vertex_set_count; i++) {
        fem_file_print(file, "\n#*VERTEXSET %s\n", mesh->vertex_sets[i].name);
        put_items(file, "#: ", mesh->vertex_sets[i].count, mesh->vertex_sets[i].items);
    }
done:
    return status;
}

fem_status fem_mesh_write_veg(const fem_mesh *mesh, const char *path) {
    fem_file  *file = NULL;
    fem_status status = fem_mesh_check(mesh);
    if (status == FEM_OK) status = check_names(mesh);
    if (status != FEM_OK) return fem_fail_prefix(status, "%s: ", path);
    FEM_TRY(fem_file_create(&file, path));
    status = put_mesh(file, mesh);
    if (status != FEM_OK) {
        fem_fail_prefix(status, "%s: ", path);
        goto done;
    }
    status = fem_file_commit(file);
    file = NULL;
done:
    fem_file_abandon(file);
    return status;
}
