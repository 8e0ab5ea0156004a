// TetGen's pair .node and .ele [Si, TetGen manual, "File formats"]: tetrahedra, numbered from 0 or 1.
// The attribute of an element is its region ("region_2" for attribute 2), a nonzero marker of a vertex a vertex set
// ("marker_1"). The format has no names, no materials and no other sets: those are not written.
#include "libfem/mesh_draft.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_GROUPS = 10000 };

// Lines of a file that are numbered; what the header says of them.
typedef struct tetgen_table {
    char     *text;
    fem_text  scan;
    long long count, second, third, fourth; // the numbers of the header; 0 when they are left out
    int       base;                         // number of the first line
} tetgen_table;

static fem_status open_table(tetgen_table *t, const char *path, const char *what, int most) {
    fem_status status = FEM_OK;
    size_t     size = 0;
    long long *numbers[4] = {&t->count, &t->second, &t->third, &t->fourth};
    FEM_TRY(fem_file_read(&t->text, &size, path));
    t->scan = fem_text_open(path, t->text, size, '#', false);
    if (!fem_text_next(&t->scan)) {
        status = fem_text_fail(&t->scan, "expected the number of %s, found the end of the file", what);
        goto done;
    }
    FEM_TRY(fem_text_int(&t->scan, "the count in the header", 1, most, &t->count));
    for (int i = 1; i < 4 && !fem_text_at_line_end(&t->scan); i++)
        FEM_TRY(fem_text_int(&t->scan, "a number of the header", 0, 1000, numbers[i]));
    FEM_TRY(fem_text_end_line(&t->scan));
    // the shortest line has a number and a column or more; a false count must not take memory
    if (t->count > (long long)(t->scan.end - t->scan.at) / 8 + 1)
        status = fem_text_fail(&t->scan, "announces %lld %s, more than the file has room for", t->count, what);
done:
    return status;
}

// To line i and over its number.
static fem_status begin_line(tetgen_table *t, const char *what, int i) {
    long long number;
    if (!fem_text_next(&t->scan)) return fem_text_fail(&t->scan, "announces %lld %s, found %d", t->count, what, i);
    fem_status status = fem_text_int(&t->scan, "the number of the line", 0, INT_MAX, &number);
    if (status != FEM_OK) return status;
    if (i == 0 && number > 1) return fem_text_fail(&t->scan, "the first number is %lld, expected 0 or 1", number);
    if (i == 0) t->base = (int)number;
    if (number != (long long)i + t->base)
        return fem_text_fail(&t->scan, "the number of the line is %lld, expected %lld: they must count on", number,
                             (long long)i + t->base);
    return FEM_OK;
}

static fem_status finish_table(tetgen_table *t) {
    if (fem_text_next(&t->scan)) return fem_text_expected(&t->scan, "the end of the file");
    return FEM_OK;
}

// ---- groups: equal values become one set or region -------------------------------------------------------------

typedef struct tetgen_group {
    double value;
    int    item;
} tetgen_group;

static int compare_groups(const void *a, const void *b) {
    const tetgen_group *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

static int group_end(const tetgen_group *groups, int count, int start) {
    int end = start;
    while (end < count && groups[end].value == groups[start].value) end++;
    return end;
}

static void group_name(char name[64], const char *prefix, double value) {
    char text[FEM_DIGITS];
    fem_format_double(text, value);
    snprintf(name, 64, "%s_%s", prefix, text);
}

static fem_status add_marker_sets(fem_mesh *mesh, const char *path, int count, tetgen_group *markers) {
    fem_status status = FEM_OK;
    int       *items = fem_alloc((size_t)count, sizeof *items);
    int        sets = 0;
    if (!items) return fem_fail(FEM_NO_MEMORY, "%s: no memory for the markers", path);
    qsort(markers, (size_t)count, sizeof *markers, compare_groups);
    for (int start = 0, end; start < count; start = end) {
        char name[64];
        end = group_end(markers, count, start);
        if (markers[start].value == 0) continue;
        if (++sets > MOST_GROUPS) {
            status = fem_fail(FEM_BAD_INPUT, "%s: more than %d different markers", path, MOST_GROUPS);
            goto done;
        }
        for (int i = start; i < end; i++) items[i - start] = markers[i].item;
        group_name(name, "marker", markers[start].value);
        FEM_TRY(fem_mesh_add_vertex_set(mesh, name, end - start, items));
    }
done:
    fem_free(items);
    return status;
}

static fem_status make_regions(fem_mesh *mesh, const char *path, tetgen_group *attributes) {
    fem_status  status = FEM_OK;
    int         count = mesh->element_count, regions = 0;
    fem_region *list = NULL;
    qsort(attributes, (size_t)count, sizeof *attributes, compare_groups);
    for (int start = 0; start < count; start = group_end(attributes, count, start)) regions++;
    if (regions > MOST_GROUPS) return fem_fail(FEM_BAD_INPUT, "%s: more than %d different regions", path, MOST_GROUPS);
    list = fem_calloc((size_t)regions, sizeof *list);
    if (!list) return fem_fail(FEM_NO_MEMORY, "%s: no memory for %d regions", path, regions);
    int index = 0;
    for (int start = 0, end; start < count; start = end, index++) {
        char name[64];
        end = group_end(attributes, count, start);
        group_name(name, "region", attributes[start].value);
        list[index].name = fem_copy_string(name);
        if (!list[index].name) {
            status = fem_fail(FEM_NO_MEMORY, "%s: no memory for %d regions", path, regions);
            goto done;
        }
        for (int i = start; i < end; i++) mesh->region[attributes[i].item] = index;
    }
    for (int i = 0; i < mesh->region_count; i++) fem_free(mesh->regions[i].name);
    fem_free(mesh->regions);
    mesh->regions = list;
    mesh->region_count = regions;
    list = NULL;
done:
    for (int i = 0; list && i < regions; i++) fem_free(list[i].name);
    fem_free(list);
    return status;
}

// ---- reading ---------------------------------------------------------------------------------------------------

static fem_status read_nodes(fem_mesh *mesh, tetgen_table *t) {
    fem_status    status = FEM_OK;
    double        ignored;
    tetgen_group *markers = t->fourth ? fem_calloc((size_t)mesh->vertex_count, sizeof *markers) : NULL;
    if (t->fourth && !markers) return fem_fail(FEM_NO_MEMORY, "%s: no memory for the markers", t->scan.path);
    for (int v = 0; v < mesh->vertex_count; v++) {
        FEM_TRY(begin_line(t, "vertices", v));
        for (int k = 0; k < 3; k++)
            FEM_TRY(fem_text_double(&t->scan, "a coordinate", &mesh->vertices[3 * (size_t)v + (size_t)k]));
        for (long long i = 0; i < t->third; i++) FEM_TRY(fem_text_double(&t->scan, "an attribute", &ignored));
        if (markers) {
            markers[v].item = v;
            FEM_TRY(fem_text_double(&t->scan, "the boundary marker", &markers[v].value));
        }
        FEM_TRY(fem_text_end_line(&t->scan));
    }
    FEM_TRY(finish_table(t));
    mesh->file_base = t->base;
    if (markers) FEM_TRY(add_marker_sets(mesh, t->scan.path, mesh->vertex_count, markers));
done:
    fem_free(markers);
    return status;
}

static fem_status read_tetrahedra(fem_mesh *mesh, tetgen_table *t) {
    fem_status    status = FEM_OK;
    double        ignored;
    int           low = mesh->file_base, high = low + mesh->vertex_count - 1;
    tetgen_group *attributes = t->third ? fem_calloc((size_t)mesh->element_count, sizeof *attributes) : NULL;
    if (t->third && !attributes) return fem_fail(FEM_NO_MEMORY, "%s: no memory for the attributes", t->scan.path);
    for (int e = 0; e < mesh->element_count; e++) {
        FEM_TRY(begin_line(t, "tetrahedra", e));
        for (int a = 0; a < (t->second == 10 ? 10 : 4); a++) { // the corners come first
            long long vertex;
            FEM_TRY(fem_text_int(&t->scan, "a vertex of the tetrahedron", low, high, &vertex));
            if (a < 4) mesh->elements[4 * (size_t)e + (size_t)a] = (int)vertex - low;
        }
        for (long long i = 0; i < t->third; i++) // the first attribute is the region
            FEM_TRY(fem_text_double(&t->scan, "an attribute", i == 0 ? &attributes[e].value : &ignored));
        if (attributes) attributes[e].item = e;
        FEM_TRY(fem_text_end_line(&t->scan));
    }
    FEM_TRY(finish_table(t));
    mesh->element_base = t->base;
    if (attributes) FEM_TRY(make_regions(mesh, t->scan.path, attributes));
done:
    fem_free(attributes);
    return status;
}

// The name with another ending, .gz as in `path`; for reading also without or with it, whichever is there.
static char *with_ending(const char *path, const char *ending, bool must_exist) {
    bool   packed = fem_path_is_gz(path);
    size_t stem = strlen(path) - (packed ? 3 : 0);
    while (path[stem - 1] != '.') stem--;
    stem--;
    size_t room = stem + strlen(ending) + 4;
    char  *name = fem_calloc(room, 1);
    if (!name) return NULL;
    snprintf(name, room, "%.*s%s%s", (int)stem, path, ending, packed ? ".gz" : "");
    if (must_exist && access(name, F_OK) != 0) {
        snprintf(name, room, "%.*s%s%s", (int)stem, path, ending, packed ? "" : ".gz");
        if (access(name, F_OK) != 0) snprintf(name, room, "%.*s%s%s", (int)stem, path, ending, packed ? ".gz" : "");
    }
    return name;
}

fem_status fem_mesh_read_tetgen(fem_mesh *mesh, const char *path, fem_remarks *remarks) {
    fem_status   status = FEM_OK;
    fem_mesh     m = {0};
    tetgen_table nodes = {0}, tetrahedra = {0};
    char        *node_path = with_ending(path, ".node", true), *ele_path = with_ending(path, ".ele", true);
    if (!node_path || !ele_path) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory for its name", path);
        goto done;
    }
    FEM_TRY(open_table(&nodes, node_path, "vertices", FEM_MOST_VERTICES));
    if (nodes.second != 3 && nodes.second != 0) {
        status =
            fem_text_fail(&nodes.scan, "vertices with %lld coordinates are not supported, expected 3", nodes.second);
        goto done;
    }
    FEM_TRY(open_table(&tetrahedra, ele_path, "tetrahedra", FEM_MOST_ELEMENTS));
    if (tetrahedra.second != 4 && tetrahedra.second != 10 && tetrahedra.second != 0) {
        status = fem_text_fail(&tetrahedra.scan, "tetrahedra with %lld vertices are not supported, expected 4 or 10",
                               tetrahedra.second);
        goto done;
    }
    FEM_TRY(fem_mesh_allocate(&m, FEM_T4, (int)nodes.count, (int)tetrahedra.count));
    FEM_TRY(read_nodes(&m, &nodes));
    FEM_TRY(read_tetrahedra(&m, &tetrahedra));
    if (tetrahedra.second == 10)
        FEM_TRY(fem_mesh_keep_corners(&m, NULL, m.element_count, "ten-node tetrahedral", remarks));
    status = fem_mesh_check(&m);
    if (status != FEM_OK) {
        fem_fail_prefix(status, "%s: ", ele_path);
        goto done;
    }
    fem_mesh_destroy(mesh);
    *mesh = m;
    m = (fem_mesh){0};
done:
    fem_mesh_destroy(&m);
    fem_free(nodes.text);
    fem_free(tetrahedra.text);
    fem_free(node_path);
    fem_free(ele_path);
    return status;
}

// ---- writing ---------------------------------------------------------------------------------------------------

// From 1; the attribute, written when there are several regions, is the number of the region, from 1.
static void put_pair(fem_file *nodes, fem_file *tetrahedra, const fem_mesh *mesh) {
    bool with_region = mesh->region_count > 1;
    char text[FEM_DIGITS];
    fem_file_print(nodes, "%d 3 0 0\n", mesh->vertex_count);
    for (int v = 0; v < mesh->vertex_count; v++) {
        fem_file_put(nodes, text, (size_t)fem_format_int(text, (long long)v + 1));
        for (int k = 0; k < 3; k++) fem_file_put_double(nodes, ' ', mesh->vertices[3 * (size_t)v + (size_t)k]);
        fem_file_put(nodes, "\n", 1);
    }
    fem_file_print(tetrahedra, "%d 4 %d\n", mesh->element_count, with_region);
    for (int e = 0; e < mesh->element_count; e++) {
        fem_file_put(tetrahedra, text, (size_t)fem_format_int(text, (long long)e + 1));
        for (int a = 0; a < 4; a++)
            fem_file_put_int(tetrahedra, ' ', (long long)mesh->elements[4 * (size_t)e + (size_t)a] + 1);
        if (with_region) fem_file_put_int(tetrahedra, ' ', (long long)mesh->region[e] + 1);
        fem_file_put(tetrahedra, "\n", 1);
    }
}

fem_status fem_mesh_write_tetgen(const fem_mesh *mesh, const char *path) {
    fem_status status = FEM_OK;
    fem_file  *nodes = NULL, *tetrahedra = NULL;
    char      *node_path = NULL, *ele_path = NULL;
    if (mesh->type != FEM_T4)
        return fem_fail(FEM_BAD_INPUT, "%s: TetGen's format has no hexahedra: write .veg or .vtu", path);
    status = fem_mesh_check(mesh);
    if (status != FEM_OK) return fem_fail_prefix(status, "%s: ", path);
    node_path = with_ending(path, ".node", false);
    ele_path = with_ending(path, ".ele", false);
    if (!node_path || !ele_path) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory for its name", path);
        goto done;
    }
    FEM_TRY(fem_file_create(&nodes, node_path));
    FEM_TRY(fem_file_create(&tetrahedra, ele_path));
    put_pair(nodes, tetrahedra, mesh);
    status = fem_file_commit(nodes);
    nodes = NULL;
    if (status != FEM_OK) goto done;
    status = fem_file_commit(tetrahedra);
    tetrahedra = NULL;
done:
    fem_file_abandon(nodes);
    fem_file_abandon(tetrahedra);
    fem_free(node_path);
    fem_free(ele_path);
    return status;
}
