// VTK's .vtu: the reader. One Piece of tetrahedra (10) or of hexahedra (12); docs/formats.md gives the conventions by
// which regions, materials and sets are kept.
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

static fem_status read_type(const vtu_document *d, fem_element *element) {
    fem_status       status = FEM_OK;
    const vtu_array *array;
    long long       *types = NULL;
    FEM_TRY(find_array(d, VTU_CELLS, "types", "Cells", &array));
    FEM_TRY(vtu_array_integers(d, array, (size_t)d->cells, &types));
    for (long long e = 0; e < d->cells; e++) {
        if (types[e] != 10 && types[e] != 12) {
            status = vtu_array_fail(d, array, "cell %lld is a %s (%lld), expected tetrahedra (10) or hexahedra (12)", e,
                                    cell_name(types[e]), types[e]);
            goto done;
        }
        if (types[e] != types[0]) {
            status = vtu_array_fail(d, array, "cell %lld is a %s among %s cells: one kind in a mesh is supported", e,
                                    cell_name(types[e]), cell_name(types[0]));
            goto done;
        }
    }
    *element = types[0] == 10 ? FEM_T4 : FEM_H8;
done:
    fem_free(types);
    return status;
}

static fem_status read_cells(const vtu_document *d, fem_mesh *mesh, fem_element element, double **points) {
    fem_status       status = FEM_OK;
    const vtu_array *array;
    long long       *offsets = NULL, *corners = NULL;
    int              width = fem_element_vertices(element);
    size_t           corner_count = (size_t)d->cells * (size_t)width;
    FEM_TRY(find_array(d, VTU_CELLS, "offsets", "Cells", &array));
    FEM_TRY(vtu_array_integers(d, array, (size_t)d->cells, &offsets));
    for (long long e = 0; e < d->cells; e++)
        if (offsets[e] != (e + 1) * width) {
            status = vtu_array_fail(d, array, "entry %lld is %lld, expected %lld: %d vertices a cell", e, offsets[e],
                                    (e + 1) * width, width);
            goto done;
        }
    FEM_TRY(find_array(d, VTU_CELLS, "connectivity", "Cells", &array));
    FEM_TRY(vtu_array_integers(d, array, corner_count, &corners));
    for (size_t i = 0; i < corner_count; i++)
        if (corners[i] < 0 || corners[i] >= d->points) {
            status = vtu_array_fail(d, array, "cell %zu has the vertex %lld, expected 0 to %lld", i / (size_t)width,
                                    corners[i], d->points - 1);
            goto done;
        }
    FEM_TRY(fem_mesh_allocate(mesh, element, (int)d->points, (int)d->cells));
    for (size_t i = 0; i < corner_count; i++) mesh->elements[i] = (int)corners[i];
    fem_free(mesh->vertices);
    mesh->vertices = *points;
    *points = NULL;
done:
    fem_free(offsets);
    fem_free(corners);
    return status;
}

// ---- regions, materials, sets ----------------------------------------------------------------------------------

static void drop_regions(fem_mesh *mesh) {
    for (int i = 0; i < mesh->region_count; i++) fem_free(mesh->regions[i].name);
    fem_free(mesh->regions);
    mesh->regions = NULL;
    mesh->region_count = 0;
}

static fem_status add_region(fem_mesh *mesh, size_t *capacity, const char *name, int material) {
    fem_status status =
        fem_grow((void **)&mesh->regions, capacity, (size_t)mesh->region_count + 1, sizeof *mesh->regions);
    if (status != FEM_OK) return status;
    char *copy = fem_copy_string(name);
    if (!copy) return fem_fail(FEM_NO_MEMORY, "no memory for a region");
    mesh->regions[mesh->region_count++] = (fem_region){copy, material};
    return FEM_OK;
}

static fem_status read_note_name(fem_text *scan, char *name, size_t size) {
    fem_word word = fem_text_rest(scan);
    if (word.length == 0 || word.length >= size || memchr(word.at, 0, word.length))
        return fem_text_fail(scan, "expected a name of 1 to %zu letters", size - 1);
    memset(name, 0, size); // nothing remains behind the name
    memcpy(name, word.at, word.length);
    return FEM_OK;
}

static fem_status read_material_note(fem_text *scan, fem_material *material) {
    fem_status status = FEM_OK;
    char       kind[32] = "", quote[FEM_QUOTE];
    double    *numbers[VTU_MATERIAL_NUMBERS];
    fem_word   word = fem_text_take(scan);
    *material = fem_material_default();
    if (word.length < sizeof kind) memcpy(kind, word.at, word.length);
    if (!fem_material_kind_from_name(&material->kind, kind)) {
        status = fem_text_fail(scan, "unknown kind of material %s", fem_quote(quote, word.at, word.length));
        goto done;
    }
    vtu_material_numbers(material, numbers);
    for (int i = 0; i < VTU_MATERIAL_NUMBERS; i++)
        FEM_TRY(fem_text_double(scan, "a parameter of the material", numbers[i]));
    FEM_TRY(read_note_name(scan, material->name, sizeof material->name));
    status = fem_material_check(material);
    if (status != FEM_OK) fem_fail_prefix(status, "%s:%lld: ", scan->path, scan->line);
done:
    return status;
}

// Regions and materials from the notes; the regions of the mesh are replaced.
static fem_status read_notes(fem_mesh *mesh, fem_text *scan) {
    fem_status    status = FEM_OK;
    fem_material *materials = NULL, material;
    size_t        material_capacity = 0, material_count = 0, region_capacity = 0;
    char          name[256];
    long long     index;
    if (!fem_word_is(fem_text_rest(scan), VTU_NOTES_HEADER))
        return fem_text_fail(scan, "expected \"" VTU_NOTES_HEADER "\"");
    drop_regions(mesh);
    while (fem_text_next(scan)) {
        fem_word word = fem_text_take(scan);
        if (material_count > MOST_NAMES || mesh->region_count > MOST_NAMES) {
            status = fem_text_fail(scan, "more than %d regions or materials", MOST_NAMES);
            goto done;
        }
        if (fem_word_is(word, "material")) {
            FEM_TRY(read_material_note(scan, &material));
            FEM_TRY(fem_grow((void **)&materials, &material_capacity, material_count + 1, sizeof *materials));
            materials[material_count++] = material;
        } else if (fem_word_is(word, "region")) {
            FEM_TRY(fem_text_int(scan, "the material of a region", 0, (long long)material_count - 1, &index));
            FEM_TRY(read_note_name(scan, name, sizeof name));
            FEM_TRY(add_region(mesh, &region_capacity, name, (int)index));
        } else {
            status = fem_text_fail(scan, "expected \"material\" or \"region\"");
            goto done;
        }
    }
    if (mesh->region_count == 0) {
        status = fem_text_fail(scan, "has no region");
        goto done;
    }
    fem_free(mesh->materials);
    mesh->materials = materials;
    mesh->material_count = (int)material_count;
    materials = NULL;
done:
    fem_free(materials);
    return status;
}

static fem_status find_notes(const vtu_document *d, fem_mesh *mesh, bool *found) {
    fem_status       status = FEM_OK;
    const vtu_array *array = vtu_document_find(d, VTU_FIELD_DATA, VTU_NOTES);
    long long       *letters = NULL;
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
    FEM_TRY(read_notes(mesh, &scan));
done:
    fem_free(letters);
    fem_free(text);
    fem_free(place);
    return status;
}

static int compare_values(const void *a, const void *b) {
    long long x = *(const long long *)a, y = *(const long long *)b;
    return (x > y) - (x < y);
}

// Without notes, each different value of the array "region" is a region.
static fem_status name_regions(const vtu_document *d, const vtu_array *array, fem_mesh *mesh, const long long *values) {
    fem_status status = FEM_OK;
    size_t     count = (size_t)mesh->element_count, distinct = 0, capacity = 0;
    long long *sorted = fem_copy(values, count, sizeof *values);
    if (!sorted) return fem_fail(FEM_NO_MEMORY, "%s: no memory for the regions", d->path);
    qsort(sorted, count, sizeof *sorted, compare_values);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || sorted[i] != sorted[i - 1]) sorted[distinct++] = sorted[i];
    if (distinct > MOST_NAMES) {
        status = vtu_array_fail(d, array, "has %zu different values, expected at most %d", distinct, MOST_NAMES);
        goto done;
    }
    drop_regions(mesh);
    for (size_t i = 0; i < distinct; i++) {
        char name[64];
        snprintf(name, sizeof name, "region_%lld", sorted[i]);
        FEM_TRY(add_region(mesh, &capacity, name, 0));
    }
    for (size_t e = 0; e < count; e++) {
        const long long *at = bsearch(&values[e], sorted, distinct, sizeof *sorted, compare_values);
        mesh->region[e] = (int)(at - sorted);
    }
done:
    fem_free(sorted);
    return status;
}

static fem_status read_regions(const vtu_document *d, fem_mesh *mesh) {
    fem_status       status = FEM_OK;
    const vtu_array *array = vtu_document_find(d, VTU_CELL_DATA, "region");
    long long       *values = NULL;
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
        FEM_TRY(name_regions(d, array, mesh, values));
        goto done;
    }
    for (long long e = 0; e < d->cells; e++) {
        if (values[e] < 0 || values[e] >= mesh->region_count) {
            status = vtu_array_fail(d, array, "cell %lld is in region %lld, expected 0 to %d", e, values[e],
                                    mesh->region_count - 1);
            goto done;
        }
        mesh->region[e] = (int)values[e];
    }
done:
    fem_free(values);
    return status;
}

static fem_status read_sets(const vtu_document *d, fem_mesh *mesh) {
    fem_status status = FEM_OK;
    size_t     prefix = strlen(VTU_SET_PREFIX), entries = 0;
    long long *values = NULL;
    int       *items = NULL;
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

fem_status fem_mesh_read_vtu(fem_mesh *mesh, const char *path) {
    fem_status       status = FEM_OK;
    vtu_document     d = {0};
    fem_mesh         m = {0};
    double          *points = NULL;
    const vtu_array *array;
    fem_element      element = FEM_T4;
    FEM_TRY(vtu_document_open(&d, path));
    FEM_TRY(read_type(&d, &element));
    FEM_TRY(find_array(&d, VTU_POINTS, NULL, "Points", &array));
    if (array->components != 3) {
        status = vtu_array_fail(&d, array, "has %lld components, expected 3", array->components);
        goto done;
    }
    FEM_TRY(vtu_array_doubles(&d, array, 3 * (size_t)d.points, &points));
    FEM_TRY(read_cells(&d, &m, element, &points));
    FEM_TRY(read_regions(&d, &m));
    FEM_TRY(read_sets(&d, &m));
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
