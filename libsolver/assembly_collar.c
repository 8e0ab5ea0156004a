// A domain with a collar of its children, in which its basis is made.
//
// By itself a domain ends at its interfaces, and the end of a body gives way under a load as no section inside one
// does: with bases made so, the chains and plants of the tests came out 1 to 10% too soft. The modes are therefore made
// in the domain and the first elements of its children, as far as an interface is wide, loads act there, and only the
// part in the domain is kept. (Multiscale finite elements know this as oversampling: Hou and Wu 1997.)
#include "libsolver/assembly_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_LAYERS = 2 };
static const double REACH = 2.0; // interface radii

static int compare_ints(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static int place_of(int number, int count, const int *list) {
    const int *found = bsearch(&number, list, (size_t)count, sizeof *list, compare_ints);
    return found ? (int)(found - list) : -1;
}

// Root of the mean squared distance of an interface's vertices from its middle.
static double radius_of(const assembly_work *w, int child) {
    const domain_points *points = &w->tree->interfaces;
    double               sum = 0, weight = 0;
    for (int i = points->start[child]; i < points->start[child + 1]; i++) {
        double d = vec3_distance(w->mesh->vertices + 3 * (size_t)points->vertices[i], w->a->origin[child]);
        sum += points->weights[i] * d * d, weight += points->weights[i];
    }
    return sqrt(sum / weight);
}

static double distance_of(const fem_mesh *mesh, const int *corners, int width, const double from[3]) {
    double least = INFINITY;
    for (int k = 0; k < width; k++) least = fmin(least, vec3_distance(mesh->vertices + 3 * (size_t)corners[k], from));
    return least;
}

// Elements of a child around its interface, layer by layer, as numbers of the whole mesh; returns how many.
// reached: per vertex of the child, 0 before.
static int gather_layers(const assembly_work *w, int child, int *elements, unsigned char *taken,
                         unsigned char *reached) {
    const domain_part *part = &w->parts[child];
    const fem_mesh    *mesh = &part->mesh;
    int                width = fem_element_vertices(mesh->type), count = 0, before = -1;
    double             reach = REACH * radius_of(w, child);
    for (int i = 0; i < part->interface_count; i++) reached[part->interface[i]] = 1;
    for (int layer = 1; count > before; layer++) {
        before = count;
        for (int e = 0; e < mesh->element_count; e++) {
            const int *corners = mesh->elements + (size_t)e * (size_t)width;
            bool       touches = false;
            for (int k = 0; k < width; k++)
                touches = touches || (reached[corners[k]] > 0 && reached[corners[k]] <= layer);
            if (taken[e] || !touches) continue;
            if (layer > LEAST_LAYERS && distance_of(mesh, corners, width, w->a->origin[child]) > reach) continue;
            taken[e] = 1;
            elements[count++] = w->tree->elements[w->tree->element_start[child] + e];
            for (int k = 0; k < width; k++)
                if (reached[corners[k]] == 0) reached[corners[k]] = (unsigned char)(layer < 250 ? layer + 1 : 251);
        }
        if (layer >= 250) break;
    }
    return count;
}

// All elements of the domain and of the collars, ascending.
static fem_status gather_elements(const assembly_work *w, int domain, int **elements, int *count) {
    fem_status         status = FEM_OK;
    const domain_part *part = &w->parts[domain];
    size_t             room = (size_t)part->mesh.element_count, most = 0, vertices = 0;
    unsigned char     *taken = NULL, *reached = NULL;
    for (int i = 0; i < part->child_count; i++) {
        const fem_mesh *child = &w->parts[part->children[i]].mesh;
        room += (size_t)child->element_count;
        most = most > (size_t)child->element_count ? most : (size_t)child->element_count;
        vertices = vertices > (size_t)child->vertex_count ? vertices : (size_t)child->vertex_count;
    }
    *elements = fem_alloc(room, sizeof **elements);
    taken = fem_alloc(most, 1), reached = fem_alloc(vertices, 1);
    if (!*elements || !taken || !reached) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the collar of %s", w->tree->name[domain]);
        goto done;
    }
    *count = part->mesh.element_count;
    memcpy(*elements, w->tree->elements + w->tree->element_start[domain], (size_t)*count * sizeof **elements);
    for (int i = 0; i < part->child_count; i++) {
        memset(taken, 0, most), memset(reached, 0, vertices);
        *count += gather_layers(w, part->children[i], *elements + *count, taken, reached);
    }
    qsort(*elements, (size_t)*count, sizeof **elements, compare_ints);
done:
    fem_free(taken), fem_free(reached);
    return status;
}

// The place of a child in the collar: those of the child's vertices that the domain does not have. Others stay.
static fem_status make_place(const assembly_work *w, int domain, const solver_place *from, int child,
                             const int *vertices, int count, solver_place *place) {
    const domain_part *part = &w->parts[domain];
    int               *items;
    *place = *from;
    place->count = 0;
    place->weights = NULL;
    place->vertices = items =
        fem_alloc((size_t)(child >= 0 && count > from->count ? count : from->count), sizeof *items);
    if (!items) return fem_fail(FEM_NO_MEMORY, "no memory for the collar of %s", w->tree->name[domain]);
    for (int v = 0; child >= 0 && v < count; v++)
        if (domain_part_local(&w->parts[child], vertices[v]) >= 0 && domain_part_local(part, vertices[v]) < 0)
            items[place->count++] = v;
    if (place->count >= 3) return FEM_OK;
    for (int i = 0; i < from->count; i++) // a spring, or a child without further vertices
        items[i] = place_of(part->vertices[from->vertices[i]], count, vertices);
    place->count = from->count;
    return FEM_OK;
}

fem_status assembly_make_collar(const assembly_work *w, int domain, int place_count, const solver_place *places,
                                solver_collar *result, bool *made) {
    fem_status         status = FEM_OK;
    const domain_part *part = &w->parts[domain];
    solver_collar      collar = {0};
    int               *elements = NULL, *vertices = NULL, count = 0;
    *made = false;
    if (part->child_count == 0) return FEM_OK;
    FEM_TRY(gather_elements(w, domain, &elements, &count));
    FEM_TRY(domain_submesh(&collar.mesh, &vertices, w->mesh, count, elements));
    collar.vertices = fem_alloc((size_t)part->mesh.vertex_count, sizeof *collar.vertices);
    collar.places = fem_calloc((size_t)place_count, sizeof *collar.places);
    if (!collar.vertices || !collar.places) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the collar of %s", w->tree->name[domain]);
        goto done;
    }
    for (int v = 0; v < part->mesh.vertex_count; v++)
        collar.vertices[v] = place_of(part->vertices[v], collar.mesh.vertex_count, vertices);
    for (int i = 0; i < place_count; i++) {
        collar.place_count++;
        FEM_TRY(make_place(w, domain, &places[i], i < part->child_count ? part->children[i] : -1, vertices,
                           collar.mesh.vertex_count, &collar.places[i]));
    }
    for (size_t v = 0; v < (size_t)collar.mesh.vertex_count; v++)
        vec3_axpy(collar.mesh.vertices + 3 * v, -1, w->a->origin[domain]);
    *result = collar;
    collar = (solver_collar){0};
    *made = true;
done:
    solver_collar_destroy(&collar);
    fem_free(elements), fem_free(vertices);
    return status;
}
