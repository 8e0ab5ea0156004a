// A mesh on its way in from another program's file: vertices and elements with numbers of their own, groups of
// elements, named sets; quadratic elements come as their corners.
#include "libfem/internal.h"
#include "libfem/mesh_draft.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

void fem_draft_destroy(fem_draft *d) {
    fem_numbers_destroy(&d->vertex_numbers);
    fem_numbers_destroy(&d->element_numbers);
    for (int i = 0; i < d->set_count; i++) {
        fem_free(d->sets[i].name);
        fem_free(d->sets[i].items);
    }
    fem_free(d->sets);
    fem_mesh_destroy(&d->mesh);
    *d = (fem_draft){0};
}

// ---- remarks ---------------------------------------------------------------------------------------------------

void fem_remarks_destroy(fem_remarks *remarks) {
    for (int i = 0; i < remarks->count; i++) fem_free(remarks->items[i]);
    fem_free(remarks->items);
    *remarks = (fem_remarks){0};
}

fem_status fem_remark(fem_remarks *remarks, const char *format, ...) {
    enum { MOST_REMARKS = 100 };
    char    text[1024];
    va_list arguments;
    if (!remarks || remarks->count == MOST_REMARKS) return FEM_OK;
    int length = snprintf(text, sizeof text, "%.400s: ", remarks->path ? remarks->path : "");
    va_start(arguments, format);
    fem_format(text + length, sizeof text - (size_t)length, format, arguments);
    va_end(arguments);
    fem_status status =
        fem_grow((void **)&remarks->items, &remarks->capacity, (size_t)remarks->count + 1, sizeof *remarks->items);
    if (status != FEM_OK) return status;
    char *copy = fem_copy_string(text);
    if (!copy) return fem_fail(FEM_NO_MEMORY, "no memory for a remark");
    remarks->items[remarks->count++] = copy;
    return FEM_OK;
}

// ---- vertices and elements -------------------------------------------------------------------------------------

fem_status fem_draft_reserve_vertices(fem_draft *d, long long count) {
    if (count > FEM_MOST_VERTICES - d->mesh.vertex_count)
        return fem_fail(FEM_BAD_INPUT, "%s: has more than %d vertices", d->path, FEM_MOST_VERTICES);
    return fem_grow((void **)&d->mesh.vertices, &d->vertex_capacity, 3 * (size_t)(d->mesh.vertex_count + count),
                    sizeof(double));
}

fem_status fem_draft_vertex(fem_draft *d, long long number, const double x[3]) {
    fem_status status = fem_draft_reserve_vertices(d, 1);
    if (status == FEM_OK) status = fem_numbers_add(&d->vertex_numbers, number);
    if (status != FEM_OK) return status;
    memcpy(d->mesh.vertices + 3 * (size_t)d->mesh.vertex_count++, x, 3 * sizeof *x);
    return FEM_OK;
}

fem_status fem_draft_close_vertices(fem_draft *d) {
    long long  twice = -1;
    fem_status status = fem_numbers_close(&d->vertex_numbers, &twice);
    if (status == FEM_OK && twice >= 0)
        return fem_fail(FEM_BAD_INPUT, "%s: two vertices have the number %lld", d->path, twice);
    return status;
}

fem_status fem_draft_type(fem_draft *d, fem_element type, char *why, size_t size) {
    if (d->typed && d->mesh.type != type) {
        snprintf(why, size, "tetrahedra and hexahedra together: one kind in a mesh is supported");
        return FEM_BAD_INPUT;
    }
    d->typed = true;
    d->mesh.type = type;
    return FEM_OK;
}

fem_status fem_draft_reserve_elements(fem_draft *d, long long count) {
    size_t     width = (size_t)fem_element_vertices(d->mesh.type);
    fem_status status = FEM_OK;
    if (count > FEM_MOST_ELEMENTS - d->mesh.element_count)
        return fem_fail(FEM_BAD_INPUT, "%s: has more than %d elements", d->path, FEM_MOST_ELEMENTS);
    size_t needed = (size_t)(d->mesh.element_count + count);
    FEM_TRY(fem_grow((void **)&d->mesh.elements, &d->element_capacity, width * needed, sizeof(int)));
    FEM_TRY(fem_grow((void **)&d->mesh.region, &d->group_capacity, needed, sizeof(int)));
done:
    return status;
}

fem_status fem_draft_element(fem_draft *d, long long number, const int *corners, int group) {
    size_t     width = (size_t)fem_element_vertices(d->mesh.type);
    fem_status status = fem_draft_reserve_elements(d, 1);
    if (status == FEM_OK) status = fem_numbers_add(&d->element_numbers, number);
    if (status != FEM_OK) return status;
    memcpy(d->mesh.elements + width * (size_t)d->mesh.element_count, corners, width * sizeof *corners);
    d->mesh.region[d->mesh.element_count++] = group;
    return FEM_OK;
}

// ---- names -----------------------------------------------------------------------------------------------------

fem_status fem_draft_set_named(fem_draft *d, bool of_elements, const char *name, int *set) {
    for (int i = 0; i < d->set_count; i++)
        if (d->sets[i].of_elements == of_elements && strcmp(d->sets[i].name, name) == 0) {
            *set = i;
            return FEM_OK;
        }
    if (d->set_count == FEM_MOST_NAMES)
        return fem_fail(FEM_BAD_INPUT, "%s: has more than %d sets", d->path, FEM_MOST_NAMES);
    fem_status status = fem_grow((void **)&d->sets, &d->set_capacity, (size_t)d->set_count + 1, sizeof *d->sets);
    if (status != FEM_OK) return status;
    char *copy = fem_copy_string(name);
    if (!copy) return fem_fail(FEM_NO_MEMORY, "%s: no memory for a set", d->path);
    d->sets[d->set_count] = (fem_draft_set){.name = copy, .of_elements = of_elements};
    *set = d->set_count++;
    return FEM_OK;
}

fem_status fem_draft_set_add(fem_draft *d, int set, int item) {
    fem_draft_set *s = &d->sets[set];
    if (s->count > 0 && s->items[s->count - 1] == item) return FEM_OK;
    if (++d->set_items > FEM_MOST_SET_ITEMS)
        return fem_fail(FEM_BAD_INPUT, "%s: its sets have more than %d entries in all", d->path, FEM_MOST_SET_ITEMS);
    fem_status status = fem_grow((void **)&s->items, &s->capacity, (size_t)s->count + 1, sizeof *s->items);
    if (status == FEM_OK) s->items[s->count++] = item;
    return status;
}

void fem_draft_set_drop(fem_draft *d, int set) {
    fem_free(d->sets[set].name);
    fem_free(d->sets[set].items);
    d->set_count--;
    memmove(d->sets + set, d->sets + set + 1, (size_t)(d->set_count - set) * sizeof *d->sets);
}

fem_status fem_draft_region(fem_draft *d, const char *name, int material, int *index) {
    fem_mesh *m = &d->mesh;
    if (m->region_count == FEM_MOST_NAMES)
        return fem_fail(FEM_BAD_INPUT, "%s: has more than %d regions", d->path, FEM_MOST_NAMES);
    fem_status status =
        fem_grow((void **)&m->regions, &d->region_capacity, (size_t)m->region_count + 1, sizeof *m->regions);
    if (status != FEM_OK) return status;
    char *copy = fem_copy_string(name);
    if (!copy) return fem_fail(FEM_NO_MEMORY, "%s: no memory for a region", d->path);
    m->regions[m->region_count] = (fem_region){copy, material};
    *index = m->region_count++;
    return FEM_OK;
}

fem_status fem_draft_material(fem_draft *d, const fem_material *material, int *index) {
    fem_mesh *m = &d->mesh;
    if (m->material_count == FEM_MOST_NAMES)
        return fem_fail(FEM_BAD_INPUT, "%s: has more than %d materials", d->path, FEM_MOST_NAMES);
    fem_status status =
        fem_grow((void **)&m->materials, &d->material_capacity, (size_t)m->material_count + 1, sizeof *m->materials);
    if (status != FEM_OK) return status;
    m->materials[m->material_count] = *material;
    *index = m->material_count++;
    return FEM_OK;
}

// ---- the end ---------------------------------------------------------------------------------------------------

static void move_sets(int count, fem_set *sets, const int *place) {
    for (int i = 0; i < count; i++) {
        int used = 0;
        for (int k = 0; k < sets[i].count; k++)
            if (place[sets[i].items[k]] >= 0) sets[i].items[used++] = place[sets[i].items[k]];
        sets[i].count = used;
    }
}

fem_status fem_mesh_keep_corners(fem_mesh *m, fem_numbers *numbers, int quadratic, const char *name,
                                 fem_remarks *remarks) {
    fem_status status = FEM_OK;
    size_t     corners = (size_t)m->element_count * (size_t)fem_element_vertices(m->type);
    int       *place = fem_calloc((size_t)m->vertex_count, sizeof *place), kept = 0;
    if (!place) return fem_fail(FEM_NO_MEMORY, "no memory for %d vertices", m->vertex_count);
    for (size_t i = 0; i < corners; i++) place[m->elements[i]] = 1;
    for (int v = 0; v < m->vertex_count; v++) kept += place[v];
    int dropped = m->vertex_count - kept;
    if (dropped > 0 && numbers) FEM_TRY(fem_numbers_spell(numbers)); // they no longer count on
    FEM_TRY(fem_remark(remarks, "%d %s elements are read as their corners; %d vertices that are no corner are left out",
                       quadratic, name, dropped));
    kept = 0;
    for (int v = 0; v < m->vertex_count; v++) {
        if (!place[v]) {
            place[v] = -1;
            continue;
        }
        memmove(m->vertices + 3 * (size_t)kept, m->vertices + 3 * (size_t)v, 3 * sizeof(double));
        if (numbers && numbers->list) numbers->list[kept] = numbers->list[v];
        place[v] = kept++;
    }
    m->vertex_count = kept;
    for (size_t i = 0; i < corners; i++) m->elements[i] = place[m->elements[i]];
    move_sets(m->vertex_set_count, m->vertex_sets, place);
done:
    fem_free(place);
    return status;
}

static fem_status make_sets(fem_draft *d) {
    fem_status status = FEM_OK;
    for (int i = 0; i < d->set_count; i++) {
        fem_draft_set *s = &d->sets[i];
        status = s->of_elements ? fem_mesh_add_element_set(&d->mesh, s->name, s->count, s->items)
                                : fem_mesh_add_vertex_set(&d->mesh, s->name, s->count, s->items);
        if (status != FEM_OK) return fem_fail_prefix(status, "%s: ", d->path);
        fem_free(s->items), s->items = NULL; // the mesh has its own
        s->count = 0, s->capacity = 0;
    }
    return FEM_OK;
}

static fem_status note_numbers(fem_draft *d) {
    const fem_numbers *n = &d->vertex_numbers;
    if (!n->list && (n->first == 0 || n->first == 1)) {
        d->mesh.file_base = (int)n->first;
        return FEM_OK;
    }
    d->mesh.file_base = 1;
    return fem_remark(d->remarks,
                      "its vertices do not count from 1 without gaps: here they have the numbers 1 to %d, in the order "
                      "of the file",
                      d->mesh.vertex_count);
}

fem_status fem_draft_finish(fem_draft *d, fem_mesh *mesh) {
    fem_status   status = FEM_OK;
    fem_mesh    *m = &d->mesh;
    fem_material unspecified = fem_material_default();
    int          index;
    if (m->vertex_count == 0 || m->element_count == 0)
        return fem_fail(FEM_BAD_INPUT, "%s: has no %s", d->path,
                        m->vertex_count == 0 ? "vertices" : "tetrahedra or hexahedra");
    FEM_TRY(make_sets(d));
    if (d->quadratic > 0)
        FEM_TRY(fem_mesh_keep_corners(m, &d->vertex_numbers, d->quadratic, d->quadratic_name, d->remarks));
    FEM_TRY(note_numbers(d));
    if (m->material_count == 0) FEM_TRY(fem_draft_material(d, &unspecified, &index));
    if (m->region_count == 0) {
        FEM_TRY(fem_draft_region(d, "all", 0, &index));
        memset(m->region, 0, (size_t)m->element_count * sizeof *m->region);
    }
    fem_numbering vertices = {d->vertex_numbers.first, d->vertex_numbers.list};
    m->element_base = d->element_numbers.first;
    m->element_numbers = d->element_numbers.list;
    d->element_numbers.list = NULL; // the mesh has it
    status = fem_mesh_check_numbered(m, vertices);
    if (status != FEM_OK) {
        fem_fail_prefix(status, "%s: ", d->path);
        goto done;
    }
    fem_mesh_destroy(mesh);
    *mesh = *m;
    *m = (fem_mesh){0};
done:
    return status;
}
