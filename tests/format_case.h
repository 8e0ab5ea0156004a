// What the tests of mesh files of other programs share: the mesh that most of these hold, sets, remarks.
#ifndef LIMBER_TEST_FORMAT_CASE_H
#define LIMBER_TEST_FORMAT_CASE_H

#include "tests/support.h"

// The mesh that most of them hold: two tetrahedra, five vertices, whose numbers may be 7 apart.
static const double two_vertices[5][3] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1.5, 1, 1}};
static const int    two_elements[2][4] = {{0, 1, 2, 3}, {1, 2, 3, 4}};

static inline void assert_two(const fem_mesh *m) {
    assert_int_equal(m->type, FEM_T4);
    assert_int_equal(m->vertex_count, 5);
    assert_int_equal(m->element_count, 2);
    assert_memory_equal(m->vertices, two_vertices, sizeof two_vertices);
    assert_memory_equal(m->elements, two_elements, sizeof two_elements);
}

static inline void assert_set(const fem_set *set, int count, const int *items) {
    assert_non_null(set);
    assert_int_equal(set->count, count);
    assert_memory_equal(set->items, items, (size_t)count * sizeof *items);
}
#define ITEMS(...)                                                                                                     \
    (int)(sizeof(int[]){__VA_ARGS__} / sizeof(int)), (int[]) { __VA_ARGS__ }

// Reads a mesh and expects a remark that contains `text` (NULL: none at all).
static inline void read_with_remark(fem_mesh *mesh, const char *path, const char *text) {
    fem_remarks remarks = {0};
    bool        found = false;
    assert_ok(fem_mesh_read_remarks(mesh, path, &remarks));
    for (int i = 0; i < remarks.count; i++) {
        assert_true(strncmp(remarks.items[i], path, strlen(path)) == 0);
        found = found || (text && strstr(remarks.items[i], text));
    }
    if (text ? !found : remarks.count > 0)
        fail_msg("%s: expected the remark \"%s\", found %d, first \"%s\"", path, text ? text : "", remarks.count,
                 remarks.count ? remarks.items[0] : "");
    fem_remarks_destroy(&remarks);
}

// Each allocation of the reader fails in turn: it says so, leaks nothing and leaves the mesh that was there. Returns
// how many there were.
static inline long fail_reading_mesh(const char *path) {
    long     failures = 0;
    fem_mesh mesh = {0};
    assert_ok(fem_generate_box(&mesh, FEM_H8, (double[]){0, 0, 0}, (double[]){1, 1, 1}, (int[]){1, 1, 1}));
    for (;; failures++) {
        fem_remarks remarks = {0};
        long        blocks = fem_memory_blocks();
        fem_memory_fail_after(failures);
        fem_status status = fem_mesh_read_remarks(&mesh, path, &remarks);
        fem_memory_fail_after(-1);
        fem_remarks_destroy(&remarks);
        if (status == FEM_OK) break;
        if (status != FEM_NO_MEMORY) fail_msg("%s after %ld: %s", path, failures, fem_message());
        assert_int_equal(fem_memory_blocks(), blocks);
        assert_true(mesh.type == FEM_H8 && mesh.element_count == 1);
    }
    fem_mesh_destroy(&mesh);
    return failures;
}

#endif
