// Parts of a mesh as meshes of their own.
#include "libdomain/decompose_internal.h"

#include <stdlib.h>
#include <string.h>

static int compare_ints(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

int domain_place_of(int number, int count, const int *list) {
    const int *found = bsearch(&number, list, (size_t)count, sizeof *list, compare_ints);
    return found ? (int)(found - list) : -1;
}

// The members of the sets among `whole` (ascending numbers of the whole mesh), by their places; sets without any are
// left out. The cost is that of the part, not that of the whole: a body may have 10,000 domains.
static fem_status keep_sets(fem_mesh *part, int set_count, const fem_set *sets, int whole_count, const int *whole,
                            int *items, fem_status (*add)(fem_mesh *, const char *, int, const int *)) {
    for (int s = 0; s < set_count; s++) {
        int count = 0;
        for (int i = 0; i < whole_count; i++)
            if (domain_place_of(whole[i], sets[s].count, sets[s].items) >= 0) items[count++] = i;
        fem_status status = count > 0 ? add(part, sets[s].name, count, items) : FEM_OK;
        if (status != FEM_OK) return status;
    }
    return FEM_OK;
}

fem_status domain_copy_regions(fem_mesh *part, const fem_mesh *mesh) {
    fem_material *materials = fem_copy(mesh->materials, (size_t)mesh->material_count, sizeof *materials);
    fem_region   *regions = fem_calloc((size_t)mesh->region_count, sizeof *regions);
    bool          complete = materials && regions;
    for (int i = 0; complete && i < mesh->region_count; i++) {
        regions[i] = (fem_region){fem_copy_string(mesh->regions[i].name), mesh->regions[i].material};
        complete = regions[i].name;
    }
    if (!complete) {
        for (int i = 0; regions && i < mesh->region_count; i++) fem_free(regions[i].name);
        fem_free(materials), fem_free(regions);
        return fem_fail(FEM_NO_MEMORY, "no memory for the %d regions of a part of a mesh", mesh->region_count);
    }
    for (int i = 0; i < part->region_count; i++) fem_free(part->regions[i].name);
    fem_free(part->materials), fem_free(part->regions);
    part->materials = materials, part->material_count = mesh->material_count;
    part->regions = regions, part->region_count = mesh->region_count;
    return FEM_OK;
}

// The vertices of the elements, ascending without repeats; returns how many. `vertices` has room for all corners.
static int collect_vertices(const fem_mesh *mesh, int element_count, const int *elements, int *vertices) {
    int width = fem_element_vertices(mesh->type), corners = element_count * width, count = 0;
    for (int i = 0; i < corners; i++)
        vertices[i] = mesh->elements[(size_t)elements[i / width] * (size_t)width + (size_t)(i % width)];
    qsort(vertices, (size_t)corners, sizeof *vertices, compare_ints);
    for (int i = 0; i < corners; i++)
        if (i == 0 || vertices[i] != vertices[i - 1]) vertices[count++] = vertices[i];
    return count;
}

fem_status domain_submesh(fem_mesh *out, int **vertices_out, const fem_mesh *mesh, int element_count,
                          const int *elements) {
    for (int i = 0; i < element_count; i++)
        if (elements[i] < 0 || elements[i] >= mesh->element_count || (i > 0 && elements[i] <= elements[i - 1]))
            return fem_fail(FEM_BAD_INPUT,
                            "part of a mesh: entry %d of the elements is %d, expected them ascending in 0..%d", i,
                            elements[i], mesh->element_count - 1);
    fem_status status = FEM_OK;
    fem_mesh   part = {0};
    int        width = fem_element_vertices(mesh->type);
    size_t     corners = (size_t)element_count * (size_t)width;
    int       *vertices = fem_alloc(corners, sizeof *vertices), *items = fem_alloc(corners, sizeof *items);
    if (!vertices || !items) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a part of %d elements", element_count);
        goto done;
    }
    int count = collect_vertices(mesh, element_count, elements, vertices);
    FEM_TRY(fem_mesh_allocate(&part, mesh->type, count, element_count));
    FEM_TRY(domain_copy_regions(&part, mesh));
    part.file_base = mesh->file_base;
    for (int v = 0; v < count; v++)
        memcpy(part.vertices + 3 * (size_t)v, mesh->vertices + 3 * (size_t)vertices[v], 3 * sizeof *part.vertices);
    for (int i = 0; i < element_count; i++) {
        part.region[i] = mesh->region[elements[i]];
        for (int k = 0; k < width; k++)
            part.elements[(size_t)i * (size_t)width + (size_t)k] =
                domain_place_of(mesh->elements[(size_t)elements[i] * (size_t)width + (size_t)k], count, vertices);
    }
    FEM_TRY(
        keep_sets(&part, mesh->vertex_set_count, mesh->vertex_sets, count, vertices, items, fem_mesh_add_vertex_set));
    FEM_TRY(keep_sets(&part, mesh->element_set_count, mesh->element_sets, element_count, elements, items,
                      fem_mesh_add_element_set));
    fem_mesh_destroy(out);
    *out = part, part = (fem_mesh){0};
    *vertices_out = vertices, vertices = NULL;
done:
    fem_mesh_destroy(&part);
    fem_free(vertices), fem_free(items);
    return status;
}

// ---- domains ---------------------------------------------------------------------------------------------------

int domain_part_local(const domain_part *part, int vertex) {
    return domain_place_of(vertex, part->mesh.vertex_count, part->vertices);
}

// The first domain whose parent is `domain` or a later one. Parents ascend in level order, so children stand together.
static int first_child(const domain_tree *tree, int domain) {
    int low = 0, high = tree->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (tree->parent[middle] < domain)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// The interface of a child, or of the domain itself, in local vertices.
static void copy_interface(const domain_part *part, const domain_points *from, int list, int *vertices,
                           double *weights) {
    for (int i = from->start[list]; i < from->start[list + 1]; i++) {
        vertices[i - from->start[list]] = domain_part_local(part, from->vertices[i]);
        weights[i - from->start[list]] = from->weights[i];
    }
}

fem_status domain_part_create(domain_part *out, const fem_mesh *mesh, const domain_tree *tree, int domain) {
    if (domain < 0 || domain >= tree->count)
        return fem_fail(FEM_BAD_INPUT, "there is no domain %d, expected 0 to %d", domain, tree->count - 1);
    if (tree->element_count != mesh->element_count || tree->vertex_count != mesh->vertex_count)
        return fem_fail(FEM_BAD_INPUT, "the tree is of a mesh of %d elements, this one has %d", tree->element_count,
                        mesh->element_count);
    fem_status           status = FEM_OK;
    const domain_points *from = &tree->interfaces;
    domain_part          p = {0};
    int                  first = first_child(tree, domain), last = first_child(tree, domain + 1);
    size_t               total = (size_t)(from->start[last] - from->start[first]);
    FEM_TRY(domain_submesh(&p.mesh, &p.vertices, mesh, tree->element_start[domain + 1] - tree->element_start[domain],
                           tree->elements + tree->element_start[domain]));
    p.child_count = last - first;
    p.interface_count = from->start[domain + 1] - from->start[domain];
    p.interface = fem_alloc((size_t)p.interface_count, sizeof *p.interface);
    p.interface_weights = fem_alloc((size_t)p.interface_count, sizeof *p.interface_weights);
    p.on_interface = fem_calloc((size_t)p.mesh.vertex_count, 1);
    p.children = fem_alloc((size_t)p.child_count, sizeof *p.children);
    p.child_points.count = p.child_count;
    p.child_points.start = fem_calloc((size_t)p.child_count + 1, sizeof *p.child_points.start);
    p.child_points.vertices = fem_alloc(total, sizeof *p.child_points.vertices);
    p.child_points.weights = fem_alloc(total, sizeof *p.child_points.weights);
    if (!p.interface || !p.interface_weights || !p.on_interface || !p.children || !p.child_points.start ||
        !p.child_points.vertices || !p.child_points.weights) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for domain %d of %d elements", domain, p.mesh.element_count);
        goto done;
    }
    copy_interface(&p, from, domain, p.interface, p.interface_weights);
    for (int i = 0; i < p.interface_count; i++) p.on_interface[p.interface[i]] = 1;
    for (int i = first; i < last; i++) {
        int at = from->start[i] - from->start[first];
        p.children[i - first] = i;
        p.child_points.start[i - first + 1] = from->start[i + 1] - from->start[first];
        copy_interface(&p, from, i, p.child_points.vertices + at, p.child_points.weights + at);
    }
    domain_part_destroy(out);
    *out = p, p = (domain_part){0};
done:
    domain_part_destroy(&p);
    return status;
}

void domain_part_destroy(domain_part *part) {
    if (!part) return;
    fem_mesh_destroy(&part->mesh);
    fem_free(part->vertices), fem_free(part->interface), fem_free(part->interface_weights),
        fem_free(part->on_interface);
    fem_free(part->children), fem_free(part->child_points.start), fem_free(part->child_points.vertices);
    fem_free(part->child_points.weights);
    *part = (domain_part){0};
}
