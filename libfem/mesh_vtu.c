// VTK's .vtu: the reader. One Piece of tetrahedra (10) or of hexahedra (12), or of their quadratic kin (24, 25);
// docs/formats.md gives the conventions by which regions, materials and sets are kept.
#include "libfem/mesh_draft.h"
#include "libfem/mesh_vtu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAMES = 10000, MOST_SET_ENTRIES = 1 << 28 }; // in all: arrays may share their bytes

// ---- cells -----------------------------------------------------------------------------------------------------

static const char *cell_name(long long type) {
    static const char *const names[] = {"empty cell",       "vertex",         "poly vertex", "line",  "poly line",
                                        "triangle",         "triangle strip", "polygon",     "pixel", "quad",
                                        "tetrahedron",      "voxel",          "hexahedron",  "wedge", "pyramid",
                                        "pentagonal prism", "hexagonal prism"};
    if (type >= 0 && type < (long long)(sizeof names / sizeof *names)) return names[type];
    return type == 24 ? "quadratic tetrahedron" : type == 25 ? "quadratic hexahedron" : "higher-order or unknown cell";
}

static fem_status find_array(const vtu_document *d, vtu_section section, const char *name, const char *where,
                             const vtu_array **array) {
    *array = vtu_document_find(d, section, name);
    if (*array) return FEM_OK;
    return fem_fail(FEM_BAD_INPUT, "%s:%lld: the Piece has no array \"%s\" in %s", d->path, d->piece_line,
                    name ? name : "of points", where);
}

// `nodes` is the number of vertices of a cell: more than the corners when it is quadratic.
static fem_status read_type(const vtu_document *d, fem_element *element, int *nodes) {
    fem_status       status = FEM_OK;
    const vtu_array *array;
    int             *types = NULL;
    FEM_TRY(find_array(d, VTU_CELLS, "types", "Cells", &array));
    FEM_TRY(vtu_array_integers(d, array, (size_t)d->cells, &types));
    for (long long e = 0; e < d->cells; e++) {
        if (types[e] != 10 && types[e] != 12 && types[e] != 24 && types[e] != 25) {
            status = vtu_array_fail(d, array, "cell %lld is a %s (%d), expected tetrahedra (10) or hexahedra (12)", e,
                                    cell_name(types[e]), types[e]);
            goto done;
        }
        if (types[e] != types[0]) {
            status = vtu_array_fail(d, array, "cell %lld is a %s among %s cells: one kind in a mesh is supported", e,
                                    cell_name(types[e]), cell_name(types[0]));
            goto done;
        }
    }
    *element = types[0] == 10 || types[0] == 24 ? FEM_T4 : FEM_H8;
    *nodes = types[0] == 10 ? 4 : types[0] == 12 ? 8 : types[0] == 24 ? 10 : 20;
done:
    fem_free(types);
    return status;
}

static fem_status read_cells(const vtu_document *d, fem_mesh *mesh, fem_element element, int width, double **points) {
    fem_status       status = FEM_OK;
    const vtu_array *array;
    int             *offsets = NULL, *corners = NULL;
    size_t           corner_count = (size_t)d->cells * (size_t)width, kept = (size_t)fem_element_vertices(element);
    FEM_TRY(find_array(d, VTU_CELLS, "offsets", "Cells", &array));
    FEM_TRY(vtu_array_integers(d, array, (size_t)d->cells, &offsets));
    for (long long e = 0; e < d->cells; e++)
        if (offsets[e] != (e + 1) * width) {
            status = vtu_array_fail(d, array, "entry %lld is %d, expected %lld: %d vertices a cell", e, offsets[e],
                                    (e + 1) * width, width);
            goto done;
        }
    fem_free(offsets), offsets = NULL;
    FEM_TRY(find_array(d, VTU_CELLS, "connectivity", "Cells", &array));
    FEM_TRY(vtu_array_integers(d, array, corner_count, &corners));
    for (size_t i = 0; i < corner_count; i++)
        if (corners[i] < 0 || corners[i] >= d->points) {
            status = vtu_array_fail(d, array, "cell %zu has the vertex %d, expected 0 to %lld", i / (size_t)width,
                                    corners[i], d->points - 1);
            goto done;
        }
    FEM_TRY(fem_mesh_allocate(mesh, element, 1, (int)d->cells)); // the points are there already
    mesh->vertex_count = (int)d->points;
    for (size_t i = 0; i < corner_count; i++) // the corners come first
        if (i % (size_t)width < kept) mesh->elements[i / (size_t)width * kept + i % (size_t)width] = corners[i];
    fem_free(mesh->vertices);
    mesh->vertices = *points;
    *points = NULL;
done:
    fem_free(offsets);
    fem_free(corners);
    return status;
}

// ---- regions, materials, sets ----------------------------------------------------------------------------------

static fem_status find_notes(const vtu_document *d, fem_mesh *mesh, bool *found) {
    fem_status       status = FEM_OK;
    const vtu_array *array = vtu_document_find(d, VTU_FIELD_DATA, VTU_NOTES);
    int             *letters = NULL;
    char            *text = NULL, *place = NULL;
    *found = array != NULL;
    if (!array) return FEM_OK;
    if (array->tuples < 0) return vtu_array_fail(d, array, "NumberOfTuples is missing");
    size_t count = (size_t)array->tuples, room = strlen(d->path) + 64;
    FEM_TRY(vtu_array_integers(d, array, count, &letters));
    text = fem_calloc(count + 1, 1);
    place = fem_calloc(room, 1);
    if (!text || !place) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory for its notes", d->path);
        goto done;
    }
    for (size_t i = 0; i < count; i++) text[i] = (char)(unsigned char)letters[i];
    snprintf(place, room, "%s: FieldData \"" VTU_NOTES "\"", d->path);
    fem_text scan = fem_text_open(place, text, count, 0, false);
    FEM_TRY(fem_notes_read(mesh, &scan, NULL));
done:
    fem_free(letters);
    fem_free(text);
    fem_free(place);
    return status;
}

static fem_status read_regions(const vtu_document *d, fem_mesh *mesh) {
    fem_status       status = FEM_OK;
    const vtu_array *array = vtu_document_find(d, VTU_CELL_DATA, "region");
    int             *values = NULL;
    bool             noted = false;
    FEM_TRY(find_notes(d, mesh, &noted));
    if (!array) {
        if (mesh->region_count > 1)
            status = fem_fail(FEM_BAD_INPUT, "%s: names %d regions, but has no cell array \"region\"", d->path,
                              mesh->region_count);
        goto done;
    }
    FEM_TRY(vtu_array_integers(d, array, (size_t)d->cells, &values));
    if (!noted) {
        memcpy(mesh->region, values, (size_t)d->cells * sizeof *values);
        status = fem_regions_from_groups(mesh);
        if (status != FEM_OK) fem_fail_prefix(status, "%s:%lld: array \"region\": ", d->path, array->line);
        goto done;
    }
    for (long long e = 0; e < d->cells; e++) {
        if (values[e] < 0 || values[e] >= mesh->region_count) {
            status = vtu_array_fail(d, array, "cell %lld is in region %d, expected 0 to %d", e, values[e],
                                    mesh->region_count - 1);
            goto done;
        }
        mesh->region[e] = values[e];
    }
done:
    fem_free(values);
    return status;
}

static fem_status read_sets(const vtu_document *d, fem_mesh *mesh) {
    fem_status status = FEM_OK;
    size_t     prefix = strlen(VTU_SET_PREFIX), entries = 0;
    int       *values = NULL, *items = NULL;
    for (size_t i = 0; i < d->array_count; i++) {
        const vtu_array *array = &d->arrays[i];
        bool             on_points = array->section == VTU_POINT_DATA;
        if ((!on_points && array->section != VTU_CELL_DATA) || strncmp(array->name, VTU_SET_PREFIX, prefix) != 0)
            continue;
        size_t count = (size_t)(on_points ? d->points : d->cells);
        int    used = 0;
        entries += count;
        if (entries > MOST_SET_ENTRIES || mesh->vertex_set_count + mesh->element_set_count >= MOST_NAMES) {
            status = vtu_array_fail(d, array, "there are too many sets, expected at most %d with %d entries in all",
                                    MOST_NAMES, MOST_SET_ENTRIES);
            goto done;
        }
        FEM_TRY(vtu_array_integers(d, array, count, &values));
        items = fem_alloc(count, sizeof *items);
        if (!items) {
            status = fem_fail(FEM_NO_MEMORY, "%s: no memory for the set \"%s\"", d->path, array->name);
            goto done;
        }
        for (size_t k = 0; k < count; k++)
            if (values[k] != 0) items[used++] = (int)k;
        const char *name = array->name + prefix;
        status = on_points ? fem_mesh_add_vertex_set(mesh, name, used, items)
                           : fem_mesh_add_element_set(mesh, name, used, items);
        if (status != FEM_OK) {
            fem_fail_prefix(status, "%s:%lld: ", d->path, array->line);
            goto done;
        }
        fem_free(values), values = NULL;
        fem_free(items), items = NULL;
    }
done:
    fem_free(values);
    fem_free(items);
    return status;
}

fem_status fem_mesh_read_vtu(fem_mesh *mesh, const char *path, fem_remarks *remarks) {
    fem_status       status = FEM_OK;
    vtu_document     d = {0};
    fem_mesh         m = {0};
    double          *points = NULL;
    const vtu_array *array;
    fem_element      element = FEM_T4;
    int              nodes = 0;
    FEM_TRY(vtu_document_open(&d, path));
    FEM_TRY(read_type(&d, &element, &nodes));
    FEM_TRY(find_array(&d, VTU_POINTS, NULL, "Points", &array));
    if (array->components != 3) {
        status = vtu_array_fail(&d, array, "has %lld components, expected 3", array->components);
        goto done;
    }
    FEM_TRY(vtu_array_doubles(&d, array, 3 * (size_t)d.points, &points));
    FEM_TRY(read_cells(&d, &m, element, nodes, &points));
    FEM_TRY(read_regions(&d, &m));
    FEM_TRY(read_sets(&d, &m));
    if (nodes > fem_element_vertices(element))
        FEM_TRY(fem_mesh_keep_corners(&m, NULL, m.element_count,
                                      element == FEM_T4 ? "ten-node tetrahedral" : "twenty-node hexahedral", remarks));
    status = fem_mesh_check(&m);
    if (status != FEM_OK) {
        fem_fail_prefix(status, "%s: ", path);
        goto done;
    }
    fem_mesh_destroy(mesh);
    *mesh = m;
    m = (fem_mesh){0};
done:
    fem_free(points);
    fem_mesh_destroy(&m);
    vtu_document_destroy(&d);
    return status;
}
