// A domain with a collar of what hangs on it: the elements below each of its interfaces to children that lie within
// some distance, as good as massless. Inside the whole body an interface is braced by the child; the domain by itself
// ends there and gives way. Deformation of the interface fades over about its own width (Saint-Venant), so a collar of
// that depth braces it nearly as the whole child does.
#include "libdomain/decompose_internal.h"

#include <stdlib.h>
#include <string.h>

// Of the densities; not zero, so that masses stay positive.
#define COLLAR_DENSITY 1e-6

typedef struct collar_work {
    const fem_mesh    *mesh;
    const domain_tree *tree;
    const int         *start, *around; // elements around a vertex, compressed
    unsigned char     *taken;          // per element
    size_t             capacity;
    int                count, *elements;
} collar_work;

// Is `domain` the child or below it? Levels fall by one from child to parent.
static bool below(const domain_tree *tree, int domain, int child) {
    while (tree->level[domain] > tree->level[child]) domain = tree->parent[domain];
    return domain == child;
}

static fem_status take(collar_work *w, int element) {
    fem_status status = fem_grow((void **)&w->elements, &w->capacity, (size_t)w->count + 1, sizeof *w->elements);
    if (status != FEM_OK) return status;
    w->taken[element] = 1;
    w->elements[w->count++] = element;
    return FEM_OK;
}

// Square of the distance from the middle of an element to the nearest of the interface's vertices.
static double distance2(const collar_work *w, int element, int count, const int *vertices) {
    int    width = fem_element_vertices(w->mesh->type);
    double middle[3] = {0}, best = INFINITY;
    for (int k = 0; k < width; k++)
        vec3_axpy(middle, 1.0 / width,
                  w->mesh->vertices + 3 * (size_t)w->mesh->elements[(size_t)element * (size_t)width + (size_t)k]);
    for (int i = 0; i < count; i++) {
        double d[3];
        vec3_sub(d, middle, w->mesh->vertices + 3 * (size_t)vertices[i]);
        best = fmin(best, vec3_dot(d, d));
    }
    return best;
}

static int compare_ints(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

// Does an element have a face among these vertices (ascending)? Elements that touch by an edge or a vertex would hang
// there loosely.
static bool has_face(const fem_mesh *mesh, int element, int count, const int *vertices) {
    int width = fem_element_vertices(mesh->type), common = 0;
    for (int k = 0; k < width; k++)
        common += bsearch(&mesh->elements[(size_t)element * (size_t)width + (size_t)k], vertices, (size_t)count,
                          sizeof *vertices, compare_ints) != NULL;
    return common >= (mesh->type == FEM_T4 ? 3 : 4);
}

// Elements around a vertex that have a face on `from` and, where reach2 is not negative, lie within reach.
static fem_status take_around(collar_work *w, int child, int vertex, int from_count, const int *from, double reach2,
                              int count, const int *interface) {
    for (int k = w->start[vertex]; k < w->start[vertex + 1]; k++) {
        int e = w->around[k];
        if (w->taken[e] || !below(w->tree, w->tree->element_domain[e], child)) continue;
        if (!has_face(w->mesh, e, from_count, from)) continue;
        if (reach2 >= 0 && distance2(w, e, count, interface) > reach2) continue;
        fem_status status = take(w, e);
        if (status != FEM_OK) return status;
    }
    return FEM_OK;
}

static fem_status take_collar(collar_work *w, int child, double depth) {
    fem_status           status = FEM_OK;
    const domain_points *points = &w->tree->interfaces;
    int                  count = points->start[child + 1] - points->start[child];
    const int           *vertices = points->vertices + points->start[child];
    const double        *weights = points->weights + points->start[child];
    int                  first = w->count, width = fem_element_vertices(w->mesh->type);
    double               centre[3] = {0}, total = 0, radius2 = 0;
    for (int i = 0; i < count; i++) {
        vec3_axpy(centre, weights[i], w->mesh->vertices + 3 * (size_t)vertices[i]);
        total += weights[i];
    }
    for (int k = 0; k < 3; k++) centre[k] /= total;
    for (int i = 0; i < count; i++) {
        double d = vec3_distance(centre, w->mesh->vertices + 3 * (size_t)vertices[i]);
        radius2 += weights[i] / total * d * d;
    }
    for (int i = 0; i < count; i++) FEM_TRY(take_around(w, child, vertices[i], count, vertices, -1, 0, NULL));
    for (int k = first; k < w->count; k++) {
        int corners[8];
        memcpy(corners, w->mesh->elements + (size_t)w->elements[k] * (size_t)width, (size_t)width * sizeof *corners);
        qsort(corners, (size_t)width, sizeof *corners, compare_ints);
        for (int c = 0; c < width; c++)
            FEM_TRY(take_around(w, child, corners[c], width, corners, depth * depth * radius2, count, vertices));
    }
done:
    return status;
}

// Every region and material a second time, the latter with next to no density.
static fem_status add_light_regions(fem_mesh *mesh) {
    int           regions = mesh->region_count, materials = mesh->material_count;
    fem_material *m = fem_realloc(mesh->materials, 2 * (size_t)materials, sizeof *m);
    if (m) mesh->materials = m;
    fem_region *r = fem_realloc(mesh->regions, 2 * (size_t)regions, sizeof *r);
    if (r) mesh->regions = r;
    if (!m || !r) return fem_fail(FEM_NO_MEMORY, "no memory for the regions of a collar");
    for (int i = 0; i < materials; i++) m[materials + i] = m[i], m[materials + i].density *= COLLAR_DENSITY;
    mesh->material_count = 2 * materials;
    for (int i = 0; i < regions; i++) {
        r[regions + i] = (fem_region){fem_copy_string(r[i].name), materials + r[i].material};
        if (!r[regions + i].name) return fem_fail(FEM_NO_MEMORY, "no memory for the regions of a collar");
        mesh->region_count++;
    }
    return FEM_OK;
}

// own: the domain; collar: its elements' mesh, `vertices` their numbers in the whole. Joined, the domain first; further
// vertices get their numbers in the whole into `whole`.
static fem_status join(fem_mesh *out, const domain_part *own, const fem_mesh *collar, const int *vertices, int *whole) {
    fem_status status = FEM_OK;
    fem_mesh   mesh = {0};
    int        width = fem_element_vertices(own->mesh.type), further = 0, regions = own->mesh.region_count;
    size_t     own_vertices = (size_t)own->mesh.vertex_count, own_elements = (size_t)own->mesh.element_count;
    int       *number = fem_alloc((size_t)collar->vertex_count, sizeof *number);
    if (!number) return fem_fail(FEM_NO_MEMORY, "no memory for a collar");
    for (int v = 0; v < collar->vertex_count; v++) {
        number[v] = domain_part_local(own, vertices[v]);
        if (number[v] >= 0) continue;
        whole[further] = vertices[v];
        number[v] = own->mesh.vertex_count + further++;
    }
    FEM_TRY(fem_mesh_allocate(&mesh, own->mesh.type, own->mesh.vertex_count + further,
                              own->mesh.element_count + collar->element_count));
    FEM_TRY(domain_copy_regions(&mesh, &own->mesh));
    FEM_TRY(add_light_regions(&mesh));
    memcpy(mesh.vertices, own->mesh.vertices, 3 * own_vertices * sizeof *mesh.vertices);
    memcpy(mesh.elements, own->mesh.elements, own_elements * (size_t)width * sizeof *mesh.elements);
    memcpy(mesh.region, own->mesh.region, own_elements * sizeof *mesh.region);
    for (int v = 0; v < collar->vertex_count; v++)
        memcpy(mesh.vertices + 3 * (size_t)number[v], collar->vertices + 3 * (size_t)v, 3 * sizeof *mesh.vertices);
    for (size_t i = 0; i < (size_t)collar->element_count * (size_t)width; i++)
        mesh.elements[own_elements * (size_t)width + i] = number[collar->elements[i]];
    for (size_t i = 0; i < (size_t)collar->element_count; i++)
        mesh.region[own_elements + i] = regions + collar->region[i];
    *out = mesh, mesh = (fem_mesh){0};
done:
    fem_mesh_destroy(&mesh);
    fem_free(number);
    return status;
}

fem_status domain_part_surround(fem_mesh *out, int **numbers, const domain_part *part, const fem_mesh *mesh,
                                const domain_tree *tree, const int *start, const int *around, double depth) {
    fem_status  status = FEM_OK;
    collar_work w = {.mesh = mesh, .tree = tree, .start = start, .around = around};
    fem_mesh    collar = {0};
    int        *vertices = NULL, *whole = NULL;
    w.taken = fem_calloc((size_t)mesh->element_count, 1);
    if (!w.taken) return fem_fail(FEM_NO_MEMORY, "no memory for a collar");
    for (int i = 0; i < part->child_count; i++) FEM_TRY(take_collar(&w, part->children[i], depth));
    qsort(w.elements, (size_t)w.count, sizeof *w.elements, compare_ints);
    FEM_TRY(domain_submesh(&collar, &vertices, mesh, w.count, w.elements));
    whole = fem_alloc((size_t)collar.vertex_count, sizeof *whole);
    if (!whole) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a collar");
        goto done;
    }
    FEM_TRY(join(out, part, &collar, vertices, whole));
    *numbers = whole, whole = NULL;
done:
    fem_mesh_destroy(&collar);
    fem_free(whole), fem_free(vertices), fem_free(w.elements), fem_free(w.taken);
    return status;
}
