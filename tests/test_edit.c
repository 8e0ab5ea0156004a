// Changes of meshes: joining, cutting, matching, aligning.
#include "tests/examine.h"

static void make_box(fem_mesh *mesh, fem_element type, int cells, double shift) {
    const double low[3] = {shift, 0, 0}, high[3] = {shift + 1, 1, 1};
    const int    count[3] = {cells, cells, cells};
    assert_ok(fem_generate_box(mesh, type, low, high, count));
}

static double volume_of(const fem_mesh *mesh, int *components) {
    fem_quality q;
    assert_ok(fem_mesh_check(mesh));
    assert_ok(fem_mesh_quality(mesh, &q));
    *components = q.components;
    return q.volume;
}

static void test_join(void **state) {
    (void)state;
    for (fem_element type = FEM_T4; type <= FEM_H8; type++) {
        fem_mesh        a = {0}, b = {0}, both = {0};
        int             components;
        const fem_mesh *parts[2] = {&a, &b};
        const char     *names[2] = {"left", "right"};
        make_box(&a, type, 2, 0), make_box(&b, type, 3, 1);
        b.materials[0].young = 5;
        assert_ok(fem_mesh_join(&both, 2, parts, names));
        assert_true(fabs(volume_of(&both, &components) - 2) < 1e-12);
        assert_int_equal(components, 2);
        assert_int_equal(set_count(&both, "left.x1"), 9);
        const fem_set *set = fem_mesh_vertex_set(&both, "right.x0");
        assert_int_equal(set->count, 16);
        for (int i = 0; i < set->count; i++) assert_true(both.vertices[3 * set->items[i]] == 1 && set->items[i] >= 27);
        int region = fem_mesh_region_index(&both, "right.all");
        assert_true(region >= 0 && both.materials[both.regions[region].material].young == 5);
        assert_int_equal(both.region[both.element_count - 1], region);
        assert_ok(fem_mesh_join(&both, 2, parts, NULL)); // equal names become one
        assert_int_equal(set_count(&both, "x0"), 9 + 16);
        assert_int_equal(both.region_count, 1);
        fem_mesh_destroy(&a), fem_mesh_destroy(&b), fem_mesh_destroy(&both);
    }
    fem_mesh        a = {0}, b = {0}, both = {0};
    const fem_mesh *parts[2] = {&a, &b};
    make_box(&a, FEM_T4, 1, 0), make_box(&b, FEM_H8, 1, 0);
    assert_fails(fem_mesh_join(&both, 2, parts, NULL), FEM_BAD_INPUT, "only meshes of one element type");
    fem_mesh_destroy(&a), fem_mesh_destroy(&b);
}

// Each copy lies where its original does; welding them gives the old mesh back.
static void check_pairs(const fem_mesh *cut, const fem_mesh *before, int count, const int *pairs) {
    int width = fem_element_vertices(cut->type);
    assert_int_equal(cut->vertex_count, before->vertex_count + count);
    int *original = malloc((size_t)cut->vertex_count * sizeof *original);
    for (int v = 0; v < cut->vertex_count; v++) original[v] = v < before->vertex_count ? v : -1;
    for (int p = 0; p < count; p++) {
        assert_int_equal(pairs[2 * p + 1], before->vertex_count + p);
        assert_in_range(pairs[2 * p], 0, before->vertex_count - 1);
        original[pairs[2 * p + 1]] = pairs[2 * p];
        for (int i = 0; i < 3; i++)
            assert_true(cut->vertices[3 * pairs[2 * p] + i] == cut->vertices[3 * pairs[2 * p + 1] + i]);
    }
    for (int i = 0; i < width * cut->element_count; i++)
        assert_int_equal(original[cut->elements[i]], before->elements[i]);
    free(original);
}

// A plane through the middle: two bodies. The same within half of the box: one body with a slit whose front stays
// whole.
static void test_cut(void **state) {
    (void)state;
    for (fem_element type = FEM_T4; type <= FEM_H8; type++) {
        const double  point[3] = {0.5, 0.5, 0.5}, normal[3] = {1, 0, 0};
        fem_mesh      mesh = {0}, before = {0};
        int           count, *pairs, components, *front = NULL, triangles, *surface;
        unsigned char within[125];
        make_box(&mesh, type, 4, 0), make_box(&before, type, 4, 0);
        assert_int_equal(mesh.vertex_count, 125);
        assert_ok(fem_mesh_cut_plane(&mesh, point, normal, NULL, &count, &pairs));
        assert_int_equal(count, 25);
        check_pairs(&mesh, &before, count, pairs);
        assert_true(fabs(volume_of(&mesh, &components) - 1) < 1e-12);
        assert_int_equal(components, 2);
        assert_int_equal(set_count(&mesh, "y0"), 30); // copies belong to the sets of their originals
        fem_free(pairs);
        fem_mesh_destroy(&mesh);
        make_box(&mesh, type, 4, 0);
        for (int v = 0; v < 125; v++) within[v] = mesh.vertices[3 * v + 1] < 0.6;
        assert_ok(fem_mesh_cut_plane(&mesh, point, normal, within, &count, &pairs));
        check_pairs(&mesh, &before, count, pairs);
        volume_of(&mesh, &components);
        assert_int_equal(components, 1);
        assert_int_equal(count, 10); // y = 0 and 1/4; the front at y = 1/2 stays whole
        for (int p = 0; p < count; p++) assert_true(mesh.vertices[3 * pairs[2 * p] + 1] < 0.3);
        assert_ok(fem_mesh_surface(&mesh, &triangles, &surface, NULL));
        assert_int_equal(surface_euler(&mesh, triangles, surface), 2);
        assert_int_equal(triangles, 6 * 16 * 2 + 2 * 2 * 4 * 2); // two sides of 2 x 4 squares more
        fem_free(surface), fem_free(pairs), fem_free(front);
        // a face that is none, and a face of the surface
        int face[4] = {0, 1, 2, 3};
        assert_fails(fem_mesh_cut(&mesh, 1, face, &count, &pairs), FEM_BAD_INPUT, "does not lie between two elements");
        const double far[3] = {9, 0, 0};
        assert_fails(fem_mesh_cut_plane(&mesh, far, normal, NULL, &count, &pairs), FEM_BAD_INPUT, "opens no face");
        fem_mesh_destroy(&mesh), fem_mesh_destroy(&before);
    }
}

// One inner face of the middle: no vertex comes apart, the mesh stays as it is. All faces of one element: it comes out.
static void test_cut_faces(void **state) {
    (void)state;
    fem_mesh mesh = {0}, before = {0};
    int      face_count, *elements, *faces, count, *pairs, components;
    make_box(&mesh, FEM_T4, 3, 0), make_box(&before, FEM_T4, 3, 0);
    assert_ok(fem_mesh_inner_faces(&mesh, &face_count, &elements, &faces));
    int middle = -1, chosen = 0, around[12];
    for (int f = 0; f < face_count && middle < 0; f++) {
        bool inside = true;
        for (int k = 0; k < 9; k++) inside &= fabs(mesh.vertices[3 * faces[3 * f + k / 3] + k % 3] - 0.5) < 0.4;
        if (inside) middle = f;
    }
    assert_true(middle >= 0);
    assert_ok(fem_mesh_cut(&mesh, 1, faces + 3 * middle, &count, &pairs));
    assert_int_equal(count, 0);
    check_pairs(&mesh, &before, count, pairs);
    fem_free(pairs);
    int element = elements[2 * middle];
    for (int f = 0; f < face_count; f++)
        if (elements[2 * f] == element || elements[2 * f + 1] == element) {
            memcpy(around + 3 * chosen, faces + 3 * f, 3 * sizeof *faces);
            int turned = around[3 * chosen]; // in any order
            around[3 * chosen] = around[3 * chosen + 2], around[3 * chosen + 2] = turned;
            chosen++;
        }
    assert_int_equal(chosen, 4);
    assert_ok(fem_mesh_cut(&mesh, 4, around, &count, &pairs));
    check_pairs(&mesh, &before, count, pairs);
    volume_of(&mesh, &components);
    printf("an element cut out: %d copies, %d components\n", count, components);
    assert_int_equal(components, 2);
    fem_free(pairs), fem_free(elements), fem_free(faces);
    fem_mesh_destroy(&mesh), fem_mesh_destroy(&before);
}

// Two boxes with a rough gap: matched as by trying all pairs, aligned to the middle, never through a fixed vertex.
static void test_match_and_align(void **state) {
    (void)state;
    fem_mesh        a = {0}, b = {0}, both = {0};
    const fem_mesh *parts[2] = {&a, &b};
    const char     *names[2] = {"a", "b"};
    uint64_t        seed = 3;
    int             count, *pairs;
    make_box(&a, FEM_T4, 4, 0), make_box(&b, FEM_T4, 4, 1);
    assert_ok(fem_mesh_join(&both, 2, parts, names));
    const fem_set *left = fem_mesh_vertex_set(&both, "a.x1"), *right = fem_mesh_vertex_set(&both, "b.x0");
    for (int i = 0; i < right->count; i++)
        for (int k = 0; k < 3; k++) both.vertices[3 * right->items[i] + k] += 0.02 * test_random(&seed);
    assert_ok(fem_mesh_match(&both, left->count, left->items, right->count, right->items, 0.04, &count, &pairs));
    assert_int_equal(count, 25);
    for (int p = 0; p < count; p++) {
        double least = INFINITY;
        int    nearest = -1;
        for (int i = 0; i < right->count; i++) {
            double d = vec3_distance(both.vertices + 3 * pairs[2 * p], both.vertices + 3 * right->items[i]);
            if (d < least) least = d, nearest = right->items[i];
        }
        assert_int_equal(nearest, pairs[2 * p + 1]);
    }
    unsigned char *fixed = calloc(3 * (size_t)both.vertex_count, 1);
    fixed[3 * pairs[0]] = 1;
    double kept[3];
    memcpy(kept, both.vertices + 3 * pairs[0], sizeof kept);
    assert_ok(fem_mesh_align(&both, count, pairs, fixed));
    for (int p = 0; p < count; p++)
        assert_true(vec3_distance(both.vertices + 3 * pairs[2 * p], both.vertices + 3 * pairs[2 * p + 1]) == 0);
    assert_memory_equal(kept, both.vertices + 3 * pairs[0], sizeof kept);
    fem_free(pairs);
    assert_ok(fem_mesh_match(&both, left->count, left->items, right->count, right->items, 0, &count, &pairs));
    assert_int_equal(count, 25); // tolerance 0: exactly in place
    // fixed vertices do not move; elements do not turn inside out; nothing moves when refused
    double *before = fem_copy(both.vertices, 3 * (size_t)both.vertex_count, sizeof *before);
    int     apart[2] = {left->items[0], right->items[24]};
    fixed[3 * apart[0]] = fixed[3 * apart[1]] = 1;
    assert_fails(fem_mesh_align(&both, 1, apart, fixed), FEM_BAD_INPUT, "is fixed, and so is one");
    int inside_out[2] = {fem_mesh_vertex_set(&both, "a.x0")->items[0], right->items[24]};
    assert_fails(fem_mesh_align(&both, 1, inside_out, NULL), FEM_BAD_INPUT, "aligning vertices: ");
    assert_memory_equal(before, both.vertices, 3 * (size_t)both.vertex_count * sizeof *before);
    int outside[2] = {0, both.vertex_count};
    assert_fails(fem_mesh_align(&both, 1, outside, NULL), FEM_BAD_INPUT, "aligning: vertex");
    assert_fails(fem_mesh_match(&both, 1, outside + 1, 1, outside, 1, &count, &pairs), FEM_BAD_INPUT,
                 "matching: vertex");
    assert_fails(fem_mesh_match(&both, 1, outside, 1, outside, -1, &count, &pairs), FEM_BAD_INPUT, "expected >= 0");
    free(fixed);
    fem_free(before), fem_free(pairs);
    fem_mesh_destroy(&a), fem_mesh_destroy(&b), fem_mesh_destroy(&both);
}

static void test_no_memory(void **state) {
    (void)state;
    fem_mesh        a = {0}, b = {0};
    const fem_mesh *parts[2] = {&a, &b};
    const double    point[3] = {0.5, 0.5, 0.5}, normal[3] = {1, 0, 0};
    make_box(&a, FEM_T4, 2, 0), make_box(&b, FEM_T4, 2, 1);
    long allowed = 0;
    for (bool done = false; !done; allowed++) {
        fem_mesh both = {0};
        int      count = 0, *pairs = NULL, matched = 0, *list = NULL;
        fem_memory_fail_after(allowed);
        fem_status status = fem_mesh_join(&both, 2, parts, NULL);
        int        vertices = both.vertex_count;
        if (status == FEM_OK) status = fem_mesh_cut_plane(&both, point, normal, NULL, &count, &pairs);
        if (status != FEM_OK) assert_int_equal(both.vertex_count, vertices);
        if (status == FEM_OK) status = fem_mesh_match(&both, 8, both.elements, 8, both.elements, 1, &matched, &list);
        if (status == FEM_OK) status = fem_mesh_align(&both, count, pairs, NULL);
        fem_memory_fail_after(-1);
        assert_true(status == FEM_OK || status == FEM_NO_MEMORY);
        done = status == FEM_OK;
        fem_free(pairs), fem_free(list);
        fem_mesh_destroy(&both);
    }
    printf("%ld allocations refused in turn\n", allowed);
    assert_true(allowed > 40);
    fem_mesh_destroy(&a), fem_mesh_destroy(&b);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_join),      cmocka_unit_test(test_cut),
        cmocka_unit_test(test_cut_faces), cmocka_unit_test(test_match_and_align),
        cmocka_unit_test(test_no_memory),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
