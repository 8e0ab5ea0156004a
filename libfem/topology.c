// Faces and the outer surface, adjacency, components.
// Everything is linear in the size of the mesh: faces are matched by a radix sort of their sorted vertices, graphs are
// built by counting, components by union-find. The mesh must have valid indices (fem_mesh_check).
#include "libfem/fem.h"

#include <limits.h>
#include <string.h>

static const int *corners_of(const fem_mesh *mesh, int element) {
    return mesh->elements + (size_t)element * (size_t)fem_element_vertices(mesh->type);
}

// ---- faces -----------------------------------------------------------------------------------------------------

// Faces with their vertices counter-clockwise as seen from outside.
static const int tetrahedron_faces[4][3] = {{0, 2, 1}, {0, 1, 3}, {1, 2, 3}, {0, 3, 2}};
static const int hexahedron_faces[6][4] = {{0, 3, 2, 1}, {4, 5, 6, 7}, {0, 1, 5, 4},
                                           {1, 2, 6, 5}, {2, 3, 7, 6}, {3, 0, 4, 7}};

static int faces_of(fem_element type) { return type == FEM_T4 ? 4 : 6; }
static int face_width(fem_element type) { return type == FEM_T4 ? 3 : 4; }

// Vertices of face `face` = faces_of(type) * element + local, outward.
static void face_vertices(const fem_mesh *mesh, int face, int *vertices) {
    int        faces = faces_of(mesh->type), width = face_width(mesh->type);
    const int *v = corners_of(mesh, face / faces);
    const int *local = mesh->type == FEM_T4 ? tetrahedron_faces[face % faces] : hexahedron_faces[face % faces];
    for (int k = 0; k < width; k++) vertices[k] = v[local[k]];
}

static void sort_few(int count, int *items) {
    for (int i = 1; i < count; i++)
        for (int k = i; k > 0 && items[k] < items[k - 1]; k--) {
            int item = items[k];
            items[k] = items[k - 1], items[k - 1] = item;
        }
}

// One pass of the radix sort: orders faces by entry `digit` of their keys, keeping the order of equals.
static void sort_pass(int count, int width, const int *keys, int digit, int vertex_count, int *bucket, const int *from,
                      int *to) {
    memset(bucket, 0, ((size_t)vertex_count + 1) * sizeof *bucket);
    for (int i = 0; i < count; i++) bucket[keys[(size_t)i * (size_t)width + (size_t)digit] + 1]++;
    for (int v = 0; v < vertex_count; v++) bucket[v + 1] += bucket[v];
    for (int i = 0; i < count; i++) {
        int face = from[i];
        to[bucket[keys[(size_t)face * (size_t)width + (size_t)digit]]++] = face;
    }
}

// partner[face] is the face of another element on the same vertices, or -1 on the surface. Allocated.
static fem_status match_faces(const fem_mesh *mesh, int **partner_out) {
    fem_status status = FEM_OK;
    int        width = face_width(mesh->type), faces = faces_of(mesh->type);
    size_t     total = (size_t)mesh->element_count * (size_t)faces;
    if (total > INT_MAX)
        return fem_fail(FEM_BAD_INPUT, "%d elements are too many to match their faces", mesh->element_count);
    int  count = (int)total;
    int *keys = fem_alloc(total * (size_t)width, sizeof *keys); // sorted vertices of each face
    int *order = fem_alloc(total, sizeof *order), *other = fem_alloc(total, sizeof *other);
    int *bucket = fem_alloc((size_t)mesh->vertex_count + 1, sizeof *bucket);
    int *partner = fem_alloc(total, sizeof *partner);
    if (!keys || !order || !other || !bucket || !partner) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the faces of %d elements", mesh->element_count);
        goto done;
    }
    for (int i = 0; i < count; i++) {
        int *key = keys + (size_t)i * (size_t)width;
        face_vertices(mesh, i, key);
        sort_few(width, key);
        order[i] = i;
        partner[i] = -1;
    }
    for (int digit = width - 1; digit >= 0; digit--) {
        sort_pass(count, width, keys, digit, mesh->vertex_count, bucket, order, other);
        int *swap = order;
        order = other, other = swap;
    }
    for (int i = 0; i + 1 < count; i++) {
        int a = order[i], b = order[i + 1];
        if (memcmp(keys + (size_t)a * (size_t)width, keys + (size_t)b * (size_t)width, (size_t)width * sizeof *keys) !=
            0)
            continue;
        if (partner[a] >= 0) {
            status = fem_fail(FEM_BAD_INPUT, "elements %lld, %lld and %lld share one face: at most two may",
                              fem_mesh_element_number(mesh, partner[a] / faces),
                              fem_mesh_element_number(mesh, a / faces), fem_mesh_element_number(mesh, b / faces));
            goto done;
        }
        partner[a] = b, partner[b] = a;
    }
    *partner_out = partner;
    partner = NULL;
done:
    fem_free(keys), fem_free(order), fem_free(other), fem_free(bucket), fem_free(partner);
    return status;
}

// Appends the triangles of a face. A quadrilateral is cut by the diagonal through its lowest vertex, as
// fem_mesh_split_hexahedra does, so that the surface of an H8 mesh is that of its tetrahedra.
static int face_triangles(const fem_mesh *mesh, int face, int *triangles) {
    int v[4], width = face_width(mesh->type), lowest = 0;
    face_vertices(mesh, face, v);
    for (int k = 1; width == 4 && k < 4; k++)
        if (v[k] < v[lowest]) lowest = k;
    for (int t = 0; t < width - 2; t++) {
        triangles[3 * t] = v[lowest];
        triangles[3 * t + 1] = v[(lowest + t + 1) % width];
        triangles[3 * t + 2] = v[(lowest + t + 2) % width];
    }
    return width - 2;
}

fem_status fem_mesh_surface(const fem_mesh *mesh, int *triangle_count, int **triangles, int **element) {
    fem_status status = FEM_OK;
    int       *partner = NULL, *list = NULL, *under = NULL;
    int        faces = faces_of(mesh->type), count = 0, per_face = face_width(mesh->type) - 2;
    FEM_TRY(match_faces(mesh, &partner));
    int    total = mesh->element_count * faces; // match_faces checked that it fits
    size_t outer = 0;
    for (int i = 0; i < total; i++) outer += partner[i] < 0;
    if (outer * (size_t)per_face > INT_MAX / 3) {
        status = fem_fail(FEM_BAD_INPUT, "%zu surface triangles are too many", outer * (size_t)per_face);
        goto done;
    }
    list = fem_alloc(outer * (size_t)per_face, 3 * sizeof *list);
    under = fem_alloc(outer * (size_t)per_face, sizeof *under);
    if (!list || !under) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %zu surface faces", outer);
        goto done;
    }
    for (int i = 0; i < total; i++) {
        if (partner[i] >= 0) continue;
        for (int t = 0; t < per_face; t++) under[count + t] = i / faces;
        count += face_triangles(mesh, i, list + 3 * (size_t)count);
    }
    *triangle_count = count;
    *triangles = list, list = NULL;
    if (element) *element = under, under = NULL;
done:
    fem_free(partner), fem_free(list), fem_free(under);
    return status;
}

fem_status fem_mesh_inner_faces(const fem_mesh *mesh, int *face_count, int **elements, int **vertices) {
    fem_status status = FEM_OK;
    int       *partner = NULL, *pairs = NULL, *corners = NULL;
    int        faces = faces_of(mesh->type), width = face_width(mesh->type), count = 0;
    FEM_TRY(match_faces(mesh, &partner));
    int total = mesh->element_count * faces; // match_faces checked that it fits
    for (int i = 0; i < total; i++) count += partner[i] > i;
    pairs = fem_alloc((size_t)count, 2 * sizeof *pairs);
    corners = fem_alloc((size_t)count, (size_t)width * sizeof *corners);
    if (!pairs || !corners) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the %d inner faces of %d elements", count, mesh->element_count);
        goto done;
    }
    int f = 0;
    for (int i = 0; i < total; i++) {
        if (partner[i] <= i) continue;
        pairs[2 * (size_t)f] = i / faces, pairs[2 * (size_t)f + 1] = partner[i] / faces;
        face_vertices(mesh, i, corners + (size_t)f * (size_t)width);
        f++;
    }
    *face_count = count;
    *elements = pairs, pairs = NULL;
    *vertices = corners, corners = NULL;
done:
    fem_free(partner), fem_free(pairs), fem_free(corners);
    return status;
}

// ---- graphs ----------------------------------------------------------------------------------------------------

fem_status fem_mesh_element_graph(const fem_mesh *mesh, int **start_out, int **adjacent_out) {
    fem_status status = FEM_OK;
    int        faces = faces_of(mesh->type), n = mesh->element_count;
    int       *partner = NULL, *adjacent = NULL;
    int       *start = fem_alloc((size_t)n + 1, sizeof *start);
    if (!start) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the graph of %d elements", n);
        goto done;
    }
    FEM_TRY(match_faces(mesh, &partner));
    // Two elements that share two faces (possible, if odd) are neighbours once.
    int count = 0;
    start[0] = 0;
    for (int pass = 0; pass < 2; pass++) {
        count = 0;
        for (int e = 0; e < n; e++) {
            int around[6], found = 0;
            for (int f = 0; f < faces; f++)
                if (partner[e * faces + f] >= 0) around[found++] = partner[e * faces + f] / faces;
            sort_few(found, around);
            for (int i = 0; i < found; i++) {
                if (i > 0 && around[i] == around[i - 1]) continue;
                if (adjacent) adjacent[count] = around[i];
                count++;
            }
            start[e + 1] = count;
        }
        if (!adjacent) adjacent = fem_alloc((size_t)count, sizeof *adjacent);
        if (!adjacent) {
            status = fem_fail(FEM_NO_MEMORY, "no memory for the graph of %d elements", n);
            goto done;
        }
    }
    *start_out = start, start = NULL;
    *adjacent_out = adjacent, adjacent = NULL;
done:
    fem_free(partner), fem_free(start), fem_free(adjacent);
    return status;
}

fem_status fem_mesh_vertex_elements(const fem_mesh *mesh, int **start_out, int **elements_out) {
    int    width = fem_element_vertices(mesh->type), n = mesh->vertex_count;
    size_t total = (size_t)mesh->element_count * (size_t)width;
    if (total > INT_MAX)
        return fem_fail(FEM_BAD_INPUT, "%d elements are too many to list around vertices", mesh->element_count);
    int *start = fem_calloc((size_t)n + 2, sizeof *start), *elements = fem_alloc(total, sizeof *elements);
    if (!start || !elements) {
        fem_free(start), fem_free(elements);
        return fem_fail(FEM_NO_MEMORY, "no memory for the elements around %d vertices", n);
    }
    // start[v + 1] runs from the first slot of v to that of v + 1 while the slots are filled
    for (size_t i = 0; i < total; i++) start[mesh->elements[i] + 2]++;
    for (int v = 0; v < n; v++) start[v + 2] += start[v + 1];
    for (size_t i = 0; i < total; i++) elements[start[mesh->elements[i] + 1]++] = (int)(i / (size_t)width);
    *start_out = start;
    *elements_out = elements;
    return FEM_OK;
}

// Counts the neighbours of v and lists them in `found` unless that is NULL; mark[w] == v says that w was counted.
static int neighbours_of(const fem_mesh *mesh, const int *start, const int *elements, int v, int *mark, int *found) {
    int width = fem_element_vertices(mesh->type), count = 0;
    mark[v] = v;
    for (int i = start[v]; i < start[v + 1]; i++) {
        const int *corner = corners_of(mesh, elements[i]);
        for (int k = 0; k < width; k++) {
            if (mark[corner[k]] == v) continue;
            mark[corner[k]] = v;
            if (found) found[count] = corner[k];
            count++;
        }
    }
    return count;
}

fem_status fem_mesh_vertex_graph(const fem_mesh *mesh, int **start_out, int **adjacent_out) {
    fem_status status = FEM_OK;
    int        n = mesh->vertex_count;
    int       *around_start = NULL, *around = NULL, *adjacent = NULL;
    int       *start = fem_calloc((size_t)n + 2, sizeof *start), *mark = fem_alloc((size_t)n, sizeof *mark);
    int       *found = fem_alloc((size_t)n, sizeof *found);
    if (!start || !mark || !found) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the graph of %d vertices", n);
        goto done;
    }
    FEM_TRY(fem_mesh_vertex_elements(mesh, &around_start, &around));
    for (int v = 0; v < n; v++) mark[v] = -1;
    for (int v = 0; v < n; v++) {
        int count = neighbours_of(mesh, around_start, around, v, mark, NULL);
        if (count > INT_MAX - start[v + 1]) {
            status = fem_fail(FEM_BAD_INPUT, "the graph of %d vertices has too many edges", n);
            goto done;
        }
        start[v + 2] = start[v + 1] + count;
    }
    adjacent = fem_alloc((size_t)start[n + 1], sizeof *adjacent);
    if (!adjacent) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the graph of %d vertices", n);
        goto done;
    }
    // The graph is symmetric: handing each v, ascending, to all its neighbours gives every list in ascending order.
    for (int v = 0; v < n; v++) mark[v] = -1;
    for (int v = 0; v < n; v++) {
        int count = neighbours_of(mesh, around_start, around, v, mark, found);
        for (int i = 0; i < count; i++) adjacent[start[found[i] + 1]++] = v;
    }
    *start_out = start, start = NULL;
    *adjacent_out = adjacent, adjacent = NULL;
done:
    fem_free(start), fem_free(mark), fem_free(found), fem_free(around_start), fem_free(around), fem_free(adjacent);
    return status;
}

// ---- components ------------------------------------------------------------------------------------------------

// Root of v's tree; halves the path on the way.
static int find_root(int *parent, int v) {
    while (parent[v] != v) {
        parent[v] = parent[parent[v]];
        v = parent[v];
    }
    return v;
}

fem_status fem_mesh_components(const fem_mesh *mesh, int *vertex_component, int *component_count) {
    int  n = mesh->vertex_count, width = fem_element_vertices(mesh->type), count = 0;
    int *parent = fem_alloc((size_t)n, sizeof *parent), *label = fem_alloc((size_t)n, sizeof *label);
    if (!parent || !label) {
        fem_free(parent), fem_free(label);
        return fem_fail(FEM_NO_MEMORY, "no memory for the components of %d vertices", n);
    }
    for (int v = 0; v < n; v++) parent[v] = v, label[v] = -1, vertex_component[v] = -1;
    for (int e = 0; e < mesh->element_count; e++) {
        const int *v = corners_of(mesh, e);
        int        root = find_root(parent, v[0]);
        vertex_component[v[0]] = 0; // used
        for (int k = 1; k < width; k++) {
            int other = find_root(parent, v[k]);
            vertex_component[v[k]] = 0;
            // the lower root wins: with the halving of paths this keeps trees shallow and results simple
            if (other < root)
                parent[root] = other, root = other;
            else
                parent[other] = root;
        }
    }
    for (int v = 0; v < n; v++) { // numbered by their lowest vertex
        if (vertex_component[v] < 0) continue;
        int root = find_root(parent, v);
        if (label[root] < 0) label[root] = count++;
        vertex_component[v] = label[root];
    }
    *component_count = count;
    fem_free(parent), fem_free(label);
    return FEM_OK;
}
