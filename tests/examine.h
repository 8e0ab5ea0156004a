// An independent judge of meshes: conformity by sorting faces, closed surfaces by sorting edges, orientation by the
// divergence theorem. Slow and plain; it shares nothing with the code that it judges.
#ifndef LIMBER_TEST_EXAMINE_H
#define LIMBER_TEST_EXAMINE_H

#include "tests/support.h"

#include <math.h>

static inline int compare_keys(const void *a, const void *b) {
    const int *x = a, *y = b;
    for (int k = 0; k < 4; k++)
        if (x[k] != y[k]) return x[k] < y[k] ? -1 : 1;
    return 0;
}

static inline void sort4(int *v) {
    for (int i = 0; i < 4; i++)
        for (int k = i + 1; k < 4; k++)
            if (v[k] < v[i]) {
                int t = v[i];
                v[i] = v[k], v[k] = t;
            }
}

// Faces as sets of vertices: each is in one element or in two. Returns the number of those in one.
static inline int outer_faces(const fem_mesh *mesh) {
    static const int tet[4][4] = {{0, 1, 2, -1}, {0, 1, 3, -1}, {0, 2, 3, -1}, {1, 2, 3, -1}};
    static const int hex[6][4] = {{0, 1, 2, 3}, {4, 5, 6, 7}, {0, 1, 4, 5}, {2, 3, 6, 7}, {1, 2, 5, 6}, {0, 3, 4, 7}};
    int              faces = mesh->type == FEM_T4 ? 4 : 6, width = fem_element_vertices(mesh->type), outer = 0;
    int              count = faces * mesh->element_count;
    int(*keys)[4] = malloc((size_t)count * sizeof *keys);
    assert_non_null(keys);
    for (int e = 0; e < mesh->element_count; e++)
        for (int f = 0; f < faces; f++) {
            int *key = keys[e * faces + f];
            for (int k = 0; k < 4; k++) {
                int local = mesh->type == FEM_T4 ? tet[f][k] : hex[f][k];
                key[k] = local < 0 ? -1 : mesh->elements[e * width + local];
            }
            sort4(key);
        }
    qsort(keys, (size_t)count, sizeof *keys, compare_keys);
    for (int i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && compare_keys(keys[i], keys[next]) == 0;) next++;
        assert_in_range(next - i, 1, 2);
        outer += next - i == 1;
    }
    free(keys);
    return outer;
}

// Directed edges of the surface: each once, and its reverse once. Returns the surface's Euler number.
static inline int surface_euler(const fem_mesh *mesh, int count, const int *triangles) {
    int(*keys)[4] = malloc(3 * (size_t)count * sizeof *keys);
    char *used = calloc((size_t)mesh->vertex_count, 1);
    int   vertices = 0;
    assert_non_null(keys), assert_non_null(used);
    for (int t = 0; t < count; t++)
        for (int k = 0; k < 3; k++) {
            int a = triangles[3 * t + k], b = triangles[3 * t + (k + 1) % 3], *key = keys[3 * t + k];
            key[0] = a < b ? a : b, key[1] = a < b ? b : a, key[2] = a < b, key[3] = 0;
            if (!used[a]) used[a] = 1, vertices++;
        }
    qsort(keys, 3 * (size_t)count, sizeof *keys, compare_keys);
    assert_int_equal(3 * count % 2, 0);
    for (int i = 0; i < 3 * count; i += 2) { // pairs: same ends, opposite directions, and no third
        assert_int_equal(keys[i][0], keys[i + 1][0]);
        assert_int_equal(keys[i][1], keys[i + 1][1]);
        assert_int_equal(keys[i][2], 0);
        assert_int_equal(keys[i + 1][2], 1);
        if (i + 2 < 3 * count) assert_true(keys[i + 2][0] != keys[i][0] || keys[i + 2][1] != keys[i][1]);
    }
    free(keys), free(used);
    return vertices - 3 * count / 2 + count;
}

// Volume inside the surface by the divergence theorem: positive only if triangles look outward.
static inline double enclosed_volume(const fem_mesh *mesh, int count, const int *triangles) {
    double volume = 0;
    for (int t = 0; t < count; t++) {
        const double *a = mesh->vertices + 3 * triangles[3 * t], *b = mesh->vertices + 3 * triangles[3 * t + 1];
        const double *c = mesh->vertices + 3 * triangles[3 * t + 2];
        double        n[3];
        vec3_cross(n, b, c);
        volume += vec3_dot(a, n) / 6;
    }
    return volume;
}

// Everything that holds for every generated mesh; Euler number 2 (no handles) unless told otherwise. Returns its
// volume.
static inline double examine(const char *what, const fem_mesh *mesh, int euler, bool print) {
    int count, *triangles;
    assert_ok(fem_mesh_check(mesh));
    assert_ok(fem_mesh_surface(mesh, &count, &triangles, NULL));
    assert_int_equal(outer_faces(mesh) * (mesh->type == FEM_T4 ? 1 : 2), count);
    assert_int_equal(surface_euler(mesh, count, triangles), euler);
    fem_quality q;
    assert_ok(fem_mesh_quality(mesh, &q));
    assert_int_equal(q.components, 1);
    assert_int_equal(q.unused_vertices, 0);
    // curved faces of an H8 are not their triangles, so its surface encloses a slightly different volume
    double enclosed = enclosed_volume(mesh, count, triangles);
    assert_true(fabs(enclosed - q.volume) < (mesh->type == FEM_T4 ? 1e-9 : 0.05) * q.volume);
    if (print)
        printf("%-28s %s %7d elements, volume %.6g, dihedral %.1f..%.1f, shape %.3f\n", what,
               mesh->type == FEM_T4 ? "T4" : "H8", mesh->element_count, q.volume, q.min_dihedral, q.max_dihedral,
               q.min_shape);
    fem_free(triangles);
    return q.volume;
}

static inline double quality_dihedral(const fem_mesh *mesh) {
    fem_quality q;
    assert_ok(fem_mesh_quality(mesh, &q));
    return q.min_dihedral;
}

static inline int set_count(const fem_mesh *mesh, const char *name) {
    const fem_set *set = fem_mesh_vertex_set(mesh, name);
    if (!set) fail_msg("no vertex set \"%s\"", name);
    return set->count;
}

#endif
