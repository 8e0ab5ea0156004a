// Life of a mesh, its named sets, and the check that every reader and generator ends with.
#include "libfem/internal.h"

#include <stdlib.h>
#include <string.h>

static void destroy_sets(int count, fem_set *sets) {
    for (int i = 0; i < count; i++) {
        fem_free(sets[i].name);
        fem_free(sets[i].items);
    }
    fem_free(sets);
}

void fem_mesh_destroy(fem_mesh *mesh) {
    if (!mesh) return;
    for (int i = 0; i < mesh->region_count; i++) fem_free(mesh->regions[i].name);
    fem_free(mesh->regions);
    destroy_sets(mesh->vertex_set_count, mesh->vertex_sets);
    destroy_sets(mesh->element_set_count, mesh->element_sets);
    fem_free(mesh->vertices);
    fem_free(mesh->elements);
    fem_free(mesh->region);
    fem_free(mesh->materials);
    fem_free(mesh->element_numbers);
    *mesh = (fem_mesh){0};
}

static fem_status copy_sets(int *count, fem_set **copies, int set_count, const fem_set *sets) {
    *copies = fem_calloc((size_t)set_count, sizeof **copies);
    if (!*copies) return fem_fail(FEM_NO_MEMORY, "no memory for %d sets", set_count);
    *count = set_count;
    for (int i = 0; i < set_count; i++) {
        fem_set *copy = &(*copies)[i];
        copy->count = sets[i].count;
        copy->name = fem_copy_string(sets[i].name);
        copy->items = fem_copy(sets[i].items, (size_t)sets[i].count, sizeof *sets[i].items);
        if (!copy->name || !copy->items) return fem_fail(FEM_NO_MEMORY, "no memory for the set \"%s\"", sets[i].name);
    }
    return FEM_OK;
}

fem_status fem_mesh_copy(fem_mesh *copy, const fem_mesh *mesh) {
    fem_status status = FEM_OK;
    fem_mesh   m = {.type = mesh->type,
                    .vertex_count = mesh->vertex_count,
                    .element_count = mesh->element_count,
                    .material_count = mesh->material_count,
                    .file_base = mesh->file_base,
                    .element_base = mesh->element_base};
    size_t     corners = (size_t)mesh->element_count * (size_t)fem_element_vertices(mesh->type);
    m.vertices = fem_copy(mesh->vertices, 3 * (size_t)mesh->vertex_count, sizeof *m.vertices);
    m.elements = fem_copy(mesh->elements, corners, sizeof *m.elements);
    m.region = fem_copy(mesh->region, (size_t)mesh->element_count, sizeof *m.region);
    m.materials = fem_copy(mesh->materials, (size_t)mesh->material_count, sizeof *m.materials);
    m.regions = fem_calloc((size_t)mesh->region_count, sizeof *m.regions);
    if (mesh->element_numbers)
        m.element_numbers = fem_copy(mesh->element_numbers, (size_t)mesh->element_count, sizeof *m.element_numbers);
    if (!m.vertices || !m.elements || !m.region || !m.materials || !m.regions ||
        (mesh->element_numbers && !m.element_numbers)) {
        status = fem_fail(FEM_NO_MEMORY, "no memory to copy a mesh of %d elements", mesh->element_count);
        goto done;
    }
    m.region_count = mesh->region_count;
    for (int i = 0; i < mesh->region_count; i++) {
        m.regions[i] =
            (fem_region){.name = fem_copy_string(mesh->regions[i].name), .material = mesh->regions[i].material};
        if (!m.regions[i].name) {
            status = fem_fail(FEM_NO_MEMORY, "no memory for the region \"%s\"", mesh->regions[i].name);
            goto done;
        }
    }
    FEM_TRY(copy_sets(&m.vertex_set_count, &m.vertex_sets, mesh->vertex_set_count, mesh->vertex_sets));
    FEM_TRY(copy_sets(&m.element_set_count, &m.element_sets, mesh->element_set_count, mesh->element_sets));
    fem_mesh_destroy(copy);
    *copy = m;
    m = (fem_mesh){0};
done:
    fem_mesh_destroy(&m);
    return status;
}

fem_status fem_mesh_allocate(fem_mesh *mesh, fem_element type, int vertex_count, int element_count) {
    // dofs and scatter maps are counted with int: 3 n and 36 entries an H8 must fit
    enum { MOST_VERTICES = 700000000, MOST_ELEMENTS = 50000000 };
    if (vertex_count < 1 || vertex_count > MOST_VERTICES)
        return fem_fail(FEM_BAD_INPUT, "the mesh has %d vertices, expected 1 to %d", vertex_count, MOST_VERTICES);
    if (element_count < 1 || element_count > MOST_ELEMENTS)
        return fem_fail(FEM_BAD_INPUT, "the mesh has %d elements, expected 1 to %d", element_count, MOST_ELEMENTS);
    fem_mesh m = {.type = type, .vertex_count = vertex_count, .element_count = element_count};
    m.vertices = fem_calloc(3 * (size_t)vertex_count, sizeof *m.vertices);
    m.elements = fem_calloc((size_t)element_count * (size_t)fem_element_vertices(type), sizeof *m.elements);
    m.region = fem_calloc((size_t)element_count, sizeof *m.region);
    m.regions = fem_calloc(1, sizeof *m.regions);
    m.materials = fem_calloc(1, sizeof *m.materials);
    if (m.regions) m.region_count = 1, m.regions[0].name = fem_copy_string("all");
    if (!m.vertices || !m.elements || !m.region || !m.materials || !m.regions || !m.regions[0].name) {
        fem_mesh_destroy(&m);
        return fem_fail(FEM_NO_MEMORY, "no memory for a mesh of %d vertices and %d elements", vertex_count,
                        element_count);
    }
    m.material_count = 1;
    m.materials[0] = fem_material_default();
    fem_mesh_destroy(mesh);
    *mesh = m;
    return FEM_OK;
}

static int compare_ints(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static fem_status add_set(int *set_count, fem_set **sets, const char *kind, int limit, int file_base, const char *name,
                          int count, const int *items) {
    fem_status status = FEM_OK;
    fem_set    set = {0};
    for (int i = 0; i < *set_count; i++)
        if (strcmp((*sets)[i].name, name) == 0)
            return fem_fail(FEM_BAD_INPUT, "%s set \"%s\" is defined twice", kind, name);
    for (int i = 0; i < count; i++)
        if (items[i] < 0 || items[i] >= limit)
            return fem_fail(FEM_BAD_INPUT, "%s set \"%s\": %s %lld is outside %d..%d", kind, name, kind,
                            (long long)items[i] + file_base, file_base, limit - 1 + file_base);
    set.name = fem_copy_string(name);
    set.items = fem_copy(items, (size_t)count, sizeof *items);
    fem_set *larger = fem_alloc((size_t)*set_count + 1, sizeof *larger);
    if (!set.name || !set.items || !larger) {
        fem_free(set.name), fem_free(set.items), fem_free(larger);
        return fem_fail(FEM_NO_MEMORY, "no memory for the %s set \"%s\"", kind, name);
    }
    qsort(set.items, (size_t)count, sizeof *set.items, compare_ints);
    for (int i = 0; i < count; i++)
        if (i == 0 || set.items[i] != set.items[i - 1]) set.items[set.count++] = set.items[i];
    if (*set_count > 0) memcpy(larger, *sets, (size_t)*set_count * sizeof *larger);
    larger[*set_count] = set;
    fem_free(*sets);
    *sets = larger;
    (*set_count)++;
    return status;
}

fem_status fem_mesh_add_vertex_set(fem_mesh *mesh, const char *name, int count, const int *items) {
    return add_set(&mesh->vertex_set_count, &mesh->vertex_sets, "vertex", mesh->vertex_count, mesh->file_base, name,
                   count, items);
}
fem_status fem_mesh_add_element_set(fem_mesh *mesh, const char *name, int count, const int *items) {
    return add_set(&mesh->element_set_count, &mesh->element_sets, "element", mesh->element_count, mesh->file_base, name,
                   count, items);
}

static const fem_set *find_set(int count, const fem_set *sets, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(sets[i].name, name) == 0) return &sets[i];
    return NULL;
}
const fem_set *fem_mesh_vertex_set(const fem_mesh *mesh, const char *name) {
    return find_set(mesh->vertex_set_count, mesh->vertex_sets, name);
}
const fem_set *fem_mesh_element_set(const fem_mesh *mesh, const char *name) {
    return find_set(mesh->element_set_count, mesh->element_sets, name);
}

int fem_mesh_region_index(const fem_mesh *mesh, const char *name) {
    for (int i = 0; i < mesh->region_count; i++)
        if (strcmp(mesh->regions[i].name, name) == 0) return i;
    return -1;
}

fem_status fem_mesh_set_material(fem_mesh *mesh, const fem_material *material) {
    fem_status status = fem_material_check(material);
    if (status != FEM_OK) return status;
    fem_material *materials = fem_copy(material, 1, sizeof *material);
    if (!materials) return fem_fail(FEM_NO_MEMORY, "no memory for a material");
    fem_free(mesh->materials);
    mesh->materials = materials;
    mesh->material_count = 1;
    for (int i = 0; i < mesh->region_count; i++) mesh->regions[i].material = 0;
    return FEM_OK;
}

// Smallest Jacobian determinant at the eight corners of an H8: positive means that the element is not turned over.
static double smallest_corner(const fem_mesh *mesh, const int *v) {
    static const int edges[8][3] = {{1, 3, 4}, {2, 0, 5}, {3, 1, 6}, {0, 2, 7},
                                    {7, 5, 0}, {4, 6, 1}, {5, 7, 2}, {6, 4, 3}};
    double           smallest = INFINITY;
    for (int c = 0; c < 8; c++) {
        double J[9];
        for (int k = 0; k < 3; k++)
            vec3_sub(J + 3 * k, mesh->vertices + 3 * (size_t)v[edges[c][k]], mesh->vertices + 3 * (size_t)v[c]);
        smallest = fmin(smallest, mat3_det(J));
    }
    return smallest;
}

// Number of a vertex in its file.
static long long number_of(fem_numbering numbering, int index) {
    return numbering.list ? numbering.list[index] : numbering.first + index;
}

fem_status fem_mesh_check_numbered(const fem_mesh *mesh, fem_numbering vertices) {
    int base = mesh->file_base, width = fem_element_vertices(mesh->type);
    if (mesh->vertex_count < 1) return fem_fail(FEM_BAD_INPUT, "the mesh has no vertices");
    if (mesh->element_count < 1) return fem_fail(FEM_BAD_INPUT, "the mesh has no elements");
    for (int v = 0; v < mesh->vertex_count; v++)
        for (int k = 0; k < 3; k++)
            if (!isfinite(mesh->vertices[3 * (size_t)v + (size_t)k]))
                return fem_fail(FEM_BAD_INPUT, "vertex %lld: coordinate %c is not a finite number",
                                number_of(vertices, v), "xyz"[k]);
    for (int i = 0; i < mesh->region_count; i++)
        if (mesh->regions[i].material < 0 || mesh->regions[i].material >= mesh->material_count)
            return fem_fail(FEM_BAD_INPUT, "region \"%s\" has no material", mesh->regions[i].name);
    for (int i = 0; i < mesh->material_count; i++) {
        fem_status status = fem_material_check(&mesh->materials[i]);
        if (status != FEM_OK) return status;
    }
    for (int e = 0; e < mesh->element_count; e++) {
        const int *v = mesh->elements + (size_t)e * (size_t)width;
        for (int a = 0; a < width; a++) {
            if (v[a] < 0 || v[a] >= mesh->vertex_count)
                return fem_fail(FEM_BAD_INPUT, "element %lld: vertex %lld is outside %d..%d",
                                fem_mesh_element_number(mesh, e), (long long)v[a] + base, base,
                                mesh->vertex_count - 1 + base);
            for (int b = 0; b < a; b++)
                if (v[a] == v[b])
                    return fem_fail(FEM_BAD_INPUT, "element %lld: vertex %lld comes twice",
                                    fem_mesh_element_number(mesh, e), number_of(vertices, v[a]));
        }
        if (mesh->region[e] < 0 || mesh->region[e] >= mesh->region_count)
            return fem_fail(FEM_BAD_INPUT, "element %lld belongs to no region: give it a material",
                            fem_mesh_element_number(mesh, e));
        double volume = fem_element_volume(mesh, e);
        if (!(volume > 0))
            return fem_fail(FEM_BAD_INPUT,
                            "element %lld: its volume is %g, expected > 0 (are its vertices in the right order?)",
                            fem_mesh_element_number(mesh, e), volume);
        if (!isfinite(volume) || !isfinite(1 / volume))
            return fem_fail(FEM_BAD_INPUT,
                            "element %lld: its volume is %g, out of the range of numbers: scale the mesh",
                            fem_mesh_element_number(mesh, e), volume);
        if (mesh->type == FEM_H8 && !(smallest_corner(mesh, v) > 0))
            return fem_fail(
                FEM_BAD_INPUT,
                "element %lld: a corner of the hexahedron is turned over (are its vertices in the right order?)",
                fem_mesh_element_number(mesh, e));
    }
    return FEM_OK;
}

fem_status fem_mesh_check(const fem_mesh *mesh) {
    fem_numbering from_base = {.first = mesh->file_base};
    return fem_mesh_check_numbered(mesh, from_base);
}

// Fields one by one: the bytes between them mean nothing.
static fem_hash hash_material(fem_hash hash, const fem_material *m) {
    double numbers[] = {m->density, m->young, m->poisson, m->mu01, m->mu10,
                        m->v1,      m->mu,    m->chain,   m->bulk, m->inversion_threshold};
    hash = fem_hash_add(hash, &m->kind, sizeof m->kind);
    hash = fem_hash_add(hash, numbers, sizeof numbers);
    hash = fem_hash_add(hash, m->young3, sizeof m->young3);
    hash = fem_hash_add(hash, m->poisson3, sizeof m->poisson3);
    hash = fem_hash_add(hash, m->shear3, sizeof m->shear3);
    return fem_hash_add(hash, m->frame, sizeof m->frame);
}

fem_hash fem_mesh_hash(const fem_mesh *mesh) {
    size_t   elements = (size_t)mesh->element_count;
    fem_hash hash = fem_hash_add((fem_hash){0}, &mesh->type, sizeof mesh->type);
    hash = fem_hash_add(hash, mesh->vertices, 3 * (size_t)mesh->vertex_count * sizeof *mesh->vertices);
    hash = fem_hash_add(hash, mesh->elements,
                        elements * (size_t)fem_element_vertices(mesh->type) * sizeof *mesh->elements);
    hash = fem_hash_add(hash, mesh->region, elements * sizeof *mesh->region);
    for (int i = 0; i < mesh->region_count; i++)
        hash = hash_material(hash, &mesh->materials[mesh->regions[i].material]);
    return hash;
}
