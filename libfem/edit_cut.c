// Cuts: faces between elements are opened, vertices doubled where the elements around them come apart.
#include "libfem/internal.h"

#include <stdlib.h>
#include <string.h>

static int face_corners(fem_element type) { return type == FEM_T4 ? 3 : 4; }

static int compare_faces(const void *x, const void *y) { // sorted vertices, then the number of the face
    const int *p = x, *q = y;
    for (int k = 0; k < 4; k++)
        if (p[k] != q[k]) return p[k] < q[k] ? -1 : 1;
    return 0;
}

static void sort_corners(int width, const int *vertices, int key[5]) {
    for (int k = 0; k < 4; k++) key[k] = k < width ? vertices[k] : -1;
    for (int i = 1; i < width; i++)
        for (int k = i; k > 0 && key[k] < key[k - 1]; k--) {
            int t = key[k];
            key[k] = key[k - 1], key[k - 1] = t;
        }
}

typedef struct cutting {
    const fem_mesh *mesh;
    int             width;                           // corners of a face
    int             face_count, *elements, *corners; // of the inner faces
    unsigned char  *open;                            // per inner face
    int            *start, *around;                  // inner faces around each vertex of an opened one
} cutting;

static void cutting_destroy(cutting *c) {
    fem_free(c->elements), fem_free(c->corners), fem_free(c->open), fem_free(c->start), fem_free(c->around);
}

// Marks the inner faces that have the given vertices.
static fem_status find_faces(cutting *c, int face_count, const int *faces) {
    fem_status status = FEM_OK;
    int(*keys)[5] = fem_alloc((size_t)c->face_count, sizeof *keys), key[5] = {0};
    if (!keys) return fem_fail(FEM_NO_MEMORY, "no memory for %d inner faces", c->face_count);
    for (int f = 0; f < c->face_count; f++) {
        sort_corners(c->width, c->corners + (size_t)f * (size_t)c->width, keys[f]);
        keys[f][4] = f;
    }
    qsort(keys, (size_t)c->face_count, sizeof *keys, compare_faces);
    for (int f = 0; f < face_count; f++) {
        const int *vertices = faces + (size_t)f * (size_t)c->width;
        sort_corners(c->width, vertices, key);
        int *found = bsearch(key, keys, (size_t)c->face_count, sizeof *keys, compare_faces);
        if (!found) {
            int base = c->mesh->file_base;
            status =
                fem_fail(FEM_BAD_INPUT, "cut: face %d (vertices %d, %d, %d%s) does not lie between two elements", f + 1,
                         vertices[0] + base, vertices[1] + base, vertices[2] + base, c->width == 4 ? ", .." : "");
            goto done;
        }
        c->open[found[4]] = 1;
    }
done:
    fem_free(keys);
    return status;
}

// The inner faces around each vertex, compressed; only of vertices on opened faces.
static fem_status list_around(cutting *c) {
    int            n = c->mesh->vertex_count;
    unsigned char *on = fem_calloc((size_t)n, 1);
    c->start = fem_calloc((size_t)n + 2, sizeof *c->start);
    if (!on || !c->start) goto no_memory;
    size_t corners = (size_t)c->face_count * (size_t)c->width;
    for (size_t i = 0; i < corners; i++)
        if (c->open[i / (size_t)c->width]) on[c->corners[i]] = 1;
    int *next = c->start + 1;
    for (size_t i = 0; i < corners; i++) next[c->corners[i] + 1] += on[c->corners[i]];
    for (int v = 1; v <= n; v++) next[v] += next[v - 1];
    c->around = fem_alloc((size_t)next[n], sizeof *c->around);
    if (!c->around) goto no_memory;
    for (size_t i = 0; i < corners; i++)
        if (on[c->corners[i]]) c->around[next[c->corners[i]]++] = (int)(i / (size_t)c->width);
    fem_free(on);
    return FEM_OK;
no_memory:
    fem_free(on);
    return fem_fail(FEM_NO_MEMORY, "no memory to cut a mesh of %d vertices", n);
}

static int compare_int(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static int root_of(const int *parent, int i) {
    while (parent[i] != i) i = parent[i];
    return i;
}

static int find_element(int count, const int *elements, int element) {
    int low = 0, high = count - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (elements[middle] < element)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Groups of the elements around v (ascending) that hang together across closed faces: parent[] as a forest whose roots
// are the lowest of each group.
static void group_around(const cutting *c, int v, int count, const int *elements, int *parent) {
    for (int i = 0; i < count; i++) parent[i] = i;
    for (int k = c->start[v]; k < c->start[v + 1]; k++) {
        int f = c->around[k];
        if (c->open[f]) continue;
        int a = root_of(parent, find_element(count, elements, c->elements[2 * (size_t)f]));
        int b = root_of(parent, find_element(count, elements, c->elements[2 * (size_t)f + 1]));
        parent[a > b ? a : b] = a < b ? a : b;
    }
}

// Adds the copy of each doubled vertex to the sets of its original.
static fem_status grow_sets(fem_mesh *mesh, int pair_count, const int *pairs) {
    for (int s = 0; s < mesh->vertex_set_count; s++) {
        fem_set *set = &mesh->vertex_sets[s];
        int     *items = fem_alloc((size_t)set->count + (size_t)pair_count, sizeof *items), count = set->count;
        if (!items) return fem_fail(FEM_NO_MEMORY, "no memory for the set \"%s\"", set->name);
        memcpy(items, set->items, (size_t)count * sizeof *items);
        for (int p = 0; p < pair_count; p++)
            if (bsearch(&pairs[2 * p], set->items, (size_t)set->count, sizeof *items, compare_int))
                items[count++] = pairs[2 * p + 1]; // higher than all, ascending
        fem_free(set->items);
        set->items = items, set->count = count;
    }
    return FEM_OK;
}

// The mesh's elements with copies of vertices; copies are numbered from the old vertex count on.
static fem_status double_vertices(const cutting *c, fem_mesh *mesh, int *pair_count, int **pairs) {
    fem_status status = FEM_OK;
    int        n = mesh->vertex_count, width = fem_element_vertices(mesh->type), most = 0, count = 0;
    int       *start = NULL, *elements = NULL, *parent = NULL, *list = NULL;
    size_t     capacity = 0;
    FEM_TRY(fem_mesh_vertex_elements(c->mesh, &start, &elements));
    for (int v = 0; v < n; v++) most = start[v + 1] - start[v] > most ? start[v + 1] - start[v] : most;
    parent = fem_alloc(2 * (size_t)most + 1, sizeof *parent);
    if (!parent) {
        status = fem_fail(FEM_NO_MEMORY, "no memory to cut a mesh of %d vertices", n);
        goto done;
    }
    int *copy = parent + most;
    for (int v = 0; v < n; v++) {
        if (c->start[v] == c->start[v + 1]) continue;
        int around = start[v + 1] - start[v];
        group_around(c, v, around, elements + start[v], parent);
        for (int i = 0; i < around; i++) {
            int group = root_of(parent, i);
            copy[i] = v;
            if (group == 0) continue; // the first keeps the vertex
            if (group == i) {
                FEM_TRY(fem_grow((void **)&list, &capacity, 2 * (size_t)count + 2, sizeof *list));
                list[2 * count] = v, list[2 * count + 1] = n + count;
                copy[i] = n + count++;
            } else {
                copy[i] = copy[group];
            }
            int *corner = mesh->elements + (size_t)elements[start[v] + i] * (size_t)width;
            for (int k = 0; k < width; k++)
                if (corner[k] == v) corner[k] = copy[i];
        }
    }
    *pair_count = count;
    *pairs = list;
    list = NULL;
done:
    fem_free(start), fem_free(elements), fem_free(parent), fem_free(list);
    return status;
}

static fem_status open_marked(cutting *c, fem_mesh *mesh, int *pair_count, int **pairs) {
    fem_status status = FEM_OK;
    fem_mesh   made = {0};
    int       *list = NULL, count = 0;
    FEM_TRY(list_around(c));
    FEM_TRY(fem_mesh_copy(&made, mesh));
    FEM_TRY(double_vertices(c, &made, &count, &list));
    double *vertices = fem_realloc(made.vertices, 3 * ((size_t)made.vertex_count + (size_t)count), sizeof *vertices);
    if (!vertices) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d vertices", made.vertex_count + count);
        goto done;
    }
    made.vertices = vertices;
    for (int p = 0; p < count; p++)
        memcpy(vertices + 3 * (size_t)list[2 * p + 1], vertices + 3 * (size_t)list[2 * p], 3 * sizeof *vertices);
    made.vertex_count += count;
    FEM_TRY(grow_sets(&made, count, list));
    fem_mesh_destroy(mesh);
    *mesh = made;
    made = (fem_mesh){0};
    *pair_count = count, *pairs = list;
    list = NULL;
done:
    fem_mesh_destroy(&made);
    fem_free(list);
    return status;
}

static fem_status cutting_create(cutting *c, const fem_mesh *mesh) {
    fem_status status = FEM_OK;
    *c = (cutting){.mesh = mesh, .width = face_corners(mesh->type)};
    FEM_TRY(fem_mesh_inner_faces(mesh, &c->face_count, &c->elements, &c->corners));
    c->open = fem_calloc((size_t)c->face_count, 1);
    if (!c->open) status = fem_fail(FEM_NO_MEMORY, "no memory for %d inner faces", c->face_count);
done:
    return status;
}

fem_status fem_mesh_cut(fem_mesh *mesh, int face_count, const int *faces, int *pair_count, int **pairs) {
    fem_status status = FEM_OK;
    cutting    c = {0};
    if (face_count < 1) return fem_fail(FEM_BAD_INPUT, "cut: %d faces, expected at least one", face_count);
    FEM_TRY(cutting_create(&c, mesh));
    FEM_TRY(find_faces(&c, face_count, faces));
    FEM_TRY(open_marked(&c, mesh, pair_count, pairs));
done:
    cutting_destroy(&c);
    return status;
}

static bool is_above(const fem_mesh *mesh, int element, const double point[3], const double normal[3]) {
    int    width = fem_element_vertices(mesh->type);
    double height = 0;
    for (int k = 0; k < width; k++) {
        const double *x = mesh->vertices + 3 * (size_t)mesh->elements[(size_t)element * (size_t)width + (size_t)k];
        double        d[3];
        vec3_sub(d, x, point);
        height += vec3_dot(d, normal);
    }
    return height > 0;
}

fem_status fem_mesh_cut_plane(fem_mesh *mesh, const double point[3], const double normal[3],
                              const unsigned char *within, int *pair_count, int **pairs) {
    fem_status status = FEM_OK;
    cutting    c = {0};
    int        opened = 0;
    FEM_TRY(cutting_create(&c, mesh));
    for (int f = 0; f < c.face_count; f++) {
        bool inside = true;
        for (int k = 0; within && k < c.width; k++)
            inside &= within[c.corners[(size_t)f * (size_t)c.width + (size_t)k]];
        c.open[f] = inside && is_above(mesh, c.elements[2 * (size_t)f], point, normal) !=
                                  is_above(mesh, c.elements[2 * (size_t)f + 1], point, normal);
        opened += c.open[f];
    }
    if (opened == 0)
        status = fem_fail(FEM_BAD_INPUT, "the cut opens no face: no two elements lie on either side of its plane%s",
                          within ? " where it may cut" : "");
    else
        FEM_TRY(open_marked(&c, mesh, pair_count, pairs));
done:
    cutting_destroy(&c);
    return status;
}
