// Branching bodies on a voxel grid: sizes, regions, hinges, refusals; and the split of hexahedra into tetrahedra.
#include "tests/examine.h"

// ---- pieces ----------------------------------------------------------------------------------------------------

static double capsule_volume(double length, double a, double b) { // hull of two balls: cone and two caps
    double k = (b - a) / length, c = 1 - k * k, low = a * (1 - k), high = b * (1 + k);
    return M_PI * length * c / 3 * c * (a * a + a * b + b * b) + M_PI * low * low * (3 * a - low) / 3 +
           M_PI * high * high * (3 * b - high) / 3;
}

// a slanting tapered capsule: the number of voxels follows its volume. Counting centres has an error between first and
// second order that jumps about, so the order is fitted to the mean over several positions of each size.
static void test_capsule_volume(void **state) {
    (void)state;
    uint64_t random = 3;
    double   exact = capsule_volume(1, 0.3, 0.15), mean[3] = {0, 0, 0};
    for (int level = 0; level < 3; level++)
        for (int trial = 0; trial < 8; trial++) {
            double axis[3] = {test_random(&random), test_random(&random), test_random(&random)};
            vec3_normalize(axis);
            fem_piece piece = {"limb", FEM_CAPSULE, {0.1, 0.2, 0.3}, {0.1 + axis[0], 0.2 + axis[1], 0.3 + axis[2]},
                               0.3,    0.15};
            fem_mesh  mesh = {0};
            assert_ok(
                fem_generate_pieces(&mesh, FEM_H8, 1, &piece, 0.05 / (1 << level) * (1 + 0.1 * test_random(&random))));
            mean[level] += fabs(examine("capsule", &mesh, 2, trial == 0) / exact - 1) / 8;
            fem_mesh_destroy(&mesh);
        }
    double order = log2(mean[0] / mean[2]) / 2;
    printf("capsule volume: mean errors %.2e %.2e %.2e, order %.2f\n", mean[0], mean[1], mean[2], order);
    assert_true(order > 0.9);
}

static const fem_piece fork[] = {
    {.name = "handle", .shape = FEM_BOX, .a = {-0.1, -0.1, 0}, .b = {0.1, 0.1, 1}},
    {.name = "knob", .shape = FEM_BALL, .a = {0, 0, 1.1}, .radius_a = 0.25},
    {.name = "left", .shape = FEM_CAPSULE, .a = {0, 0, 1.1}, .b = {-0.7, 0.2, 1.9}, .radius_a = 0.12, .radius_b = 0.06},
    {.name = "right",
     .shape = FEM_CAPSULE,
     .a = {0, 0, 1.1},
     .b = {0.7, -0.3, 1.8},
     .radius_a = 0.12,
     .radius_b = 0.06},
};

// a branching body conforms, has one region per piece, and the sides of its bounding box as sets
static void test_fork(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        fem_mesh mesh = {0};
        assert_ok(fem_generate_pieces(&mesh, (fem_element)type, 4, fork, 0.04));
        examine("fork", &mesh, 2, true);
        assert_int_equal(mesh.region_count, 4);
        int counts[4] = {0, 0, 0, 0};
        for (int e = 0; e < mesh.element_count; e++) counts[mesh.region[e]]++;
        for (int p = 0; p < 4; p++) {
            assert_string_equal(mesh.regions[p].name, fork[p].name);
            assert_true(counts[p] > 10);
        }
        assert_true(set_count(&mesh, "z0") >= 25 && set_count(&mesh, "x1") >= 4);
        fem_mesh_destroy(&mesh);
    }
}

// a box of whole voxels is exact, and boxes side by side leave no gap and share no voxel
static void test_boxes(void **state) {
    (void)state;
    const fem_piece boxes[] = {{"a", FEM_BOX, {0, 0, 0}, {0.3, 0.2, 0.2}, 0, 0},
                               {"b", FEM_BOX, {0.3, 0, 0}, {0.7, 0.1, 0.3}, 0, 0}};
    fem_mesh        mesh = {0};
    assert_ok(fem_generate_pieces(&mesh, FEM_H8, 2, boxes, 0.1));
    double volume = examine("two boxes", &mesh, 2, true);
    assert_true(fabs(volume - (0.012 + 0.012)) < 1e-12);
    assert_int_equal(mesh.element_count, 24);
    fem_mesh_destroy(&mesh);
}

// voxels that meet along an edge or at a corner are joined; random scatters of overlapping balls make manifolds
static void test_hinges(void **state) {
    (void)state;
    const fem_piece edge[] = {{"a", FEM_BOX, {0, 0, 0}, {1, 1, 1}, 0, 0}, {"b", FEM_BOX, {1, 1, 0}, {2, 2, 1}, 0, 0}};
    const fem_piece corner[] = {{"a", FEM_BOX, {0, 0, 0}, {1, 1, 1}, 0, 0}, {"b", FEM_BOX, {1, 1, 1}, {2, 2, 2}, 0, 0}};
    fem_mesh        mesh = {0}, again = {0};
    assert_ok(fem_generate_pieces(&mesh, FEM_H8, 2, edge, 1));
    examine("two voxels at an edge", &mesh, 2, true);
    assert_int_equal(mesh.element_count, 3);
    assert_ok(fem_generate_pieces(&mesh, FEM_T4, 2, corner, 1));
    examine("two voxels at a corner", &mesh, 2, true);
    assert_int_equal(mesh.element_count, 4 * 6);

    uint64_t random = 5;
    int      made = 0, apart = 0;
    for (int trial = 0; trial < 60; trial++) {
        enum { BALLS = 40 };
        fem_piece balls[BALLS];
        char      names[BALLS][16];
        for (int i = 0; i < BALLS; i++) {
            snprintf(names[i], sizeof names[i], "b%d", i);
            balls[i] = (fem_piece){.name = names[i], .shape = FEM_BALL, .radius_a = i == 0 ? 0.45 : 0.1};
            test_random_fill(&random, 3, 0.5, balls[i].a);
        }
        // one piece after another, without those that are covered or apart
        int        count = BALLS;
        fem_status status = fem_generate_pieces(&mesh, FEM_H8, count, balls, 0.07);
        while (status == FEM_BAD_INPUT && count > 1) {
            const char *quoted = strchr(fem_message(), '"') + 1;
            int         bad = 0;
            while (strncmp(quoted, balls[bad].name, strlen(balls[bad].name)) != 0 ||
                   quoted[strlen(balls[bad].name)] != '"')
                bad++;
            memmove(balls + bad, balls + bad + 1, (size_t)(--count - bad) * sizeof *balls);
            apart++;
            status = fem_generate_pieces(&mesh, FEM_H8, count, balls, 0.07);
        }
        assert_ok(status);
        int triangles, *list;
        assert_ok(fem_mesh_surface(&mesh, &triangles, &list, NULL));
        int euler = surface_euler(&mesh, triangles, list); // handles and hollows are allowed, hinges are not
        fem_free(list);
        examine("balls", &mesh, euler, false);
        assert_ok(fem_generate_pieces(&again, FEM_H8, count, balls, 0.07)); // deterministic
        assert_int_equal(again.element_count, mesh.element_count);
        assert_memory_equal(again.elements, mesh.elements, 8 * (size_t)mesh.element_count * sizeof(int));
        made++;
    }
    printf("scattered balls: %d bodies, %d balls refused (covered or apart)\n", made, apart);
    fem_mesh_destroy(&mesh), fem_mesh_destroy(&again);
}

static void test_pieces_refuse(void **state) {
    (void)state;
    fem_mesh  mesh = {0};
    fem_piece p[2] = {{"trunk", FEM_CAPSULE, {0, 0, 0}, {0, 0, 1}, 0.1, 0.1},
                      {"twig", FEM_BALL, {3, 0, 0}, {0, 0, 0}, 0.2, 0}};
    assert_fails(fem_generate_pieces(&mesh, FEM_H8, 2, p, 0.05), FEM_BAD_INPUT,
                 "pieces: piece \"twig\" is not connected with \"trunk\"");
    p[1].a[0] = 0, p[1].radius_a = 0.05;
    assert_fails(fem_generate_pieces(&mesh, FEM_H8, 2, p, 0.05), FEM_BAD_INPUT, "\"twig\" lies inside earlier pieces");
    p[1] = (fem_piece){"wire", FEM_CAPSULE, {0, 0, 0.5}, {1, 0.7, 0.8}, 0.004, 0.004};
    assert_fails(fem_generate_pieces(&mesh, FEM_H8, 2, p, 0.09), FEM_BAD_INPUT, "\"wire\"");
    printf("%s\n", fem_message());
    p[1] = (fem_piece){"dust", FEM_BALL, {0.2311, 0.1, 0.5}, {0, 0, 0}, 0.001, 0};
    assert_fails(fem_generate_pieces(&mesh, FEM_H8, 2, p, 0.1), FEM_BAD_INPUT, "\"dust\" is too thin");
    // the voxel size that the message names does give the piece voxels, wherever the grid lies
    double voxel = 0;
    assert_int_equal(sscanf(strstr(fem_message(), "voxels of 0.00"), "voxels of %lf", &voxel), 1);
    fem_status status = fem_generate_pieces(&mesh, FEM_H8, 1, &p[1], voxel);
    assert_int_equal(status, FEM_OK);
    fem_mesh_destroy(&mesh);
    p[1] = (fem_piece){"slanted", FEM_CAPSULE, {0, 0, 0.5}, {1, 0.73, 0.81}, 0.02, 0.02};
    assert_fails(fem_generate_pieces(&mesh, FEM_H8, 2, p, 0.05), FEM_BAD_INPUT, "\"slanted\" falls apart");
    printf("%s\n", fem_message());
    assert_int_equal(sscanf(strstr(fem_message(), ": voxels of "), ": voxels of %lf", &voxel), 1);
    assert_ok(fem_generate_pieces(&mesh, FEM_H8, 2, p, voxel));
    fem_mesh_destroy(&mesh);
    p[1] = p[0];
    assert_fails(fem_generate_pieces(&mesh, FEM_H8, 2, p, 0.05), FEM_BAD_INPUT, "two pieces are named \"trunk\"");
    p[1].name = "";
    assert_fails(fem_generate_pieces(&mesh, FEM_H8, 2, p, 0.05), FEM_BAD_INPUT, "piece 1 (from 0) has no name");
    p[1].name = "x", p[1].radius_b = -1;
    assert_fails(fem_generate_pieces(&mesh, FEM_H8, 2, p, 0.05), FEM_BAD_INPUT, "radius_b is -1");
    p[1].radius_b = 1, p[1].b[1] = NAN;
    assert_fails(fem_generate_pieces(&mesh, FEM_H8, 2, p, 0.05), FEM_BAD_INPUT, "its y is not a finite number");
    assert_fails(fem_generate_pieces(&mesh, FEM_H8, 0, p, 0.05), FEM_BAD_INPUT, "0 pieces");
    assert_fails(fem_generate_pieces(&mesh, FEM_H8, 1, p, 0), FEM_BAD_INPUT, "voxel is 0");
    assert_fails(fem_generate_pieces(&mesh, FEM_H8, 1, p, 1e-7), FEM_BAD_INPUT, "make a grid of");
    printf("%s\n", fem_message());
    p[1] = (fem_piece){"flat", FEM_BOX, {0, 0, 0}, {1, 0, 1}, 0, 0};
    assert_fails(fem_generate_pieces(&mesh, FEM_H8, 2, p, 0.05), FEM_BAD_INPUT, "no extent along y");
}

// ---- splitting and memory --------------------------------------------------------------------------------------

// regions and sets survive the split, and an H8 surface is that of its tetrahedra
static void test_split(void **state) {
    (void)state;
    fem_mesh hexahedra = {0}, tets = {0};
    assert_ok(fem_generate_pieces(&hexahedra, FEM_H8, 4, fork, 0.06));
    assert_ok(fem_mesh_add_element_set(&hexahedra, "some", 3, (int[]){1, 5, 7}));
    assert_ok(fem_mesh_split_hexahedra(&tets, &hexahedra));
    assert_ok(fem_mesh_check(&tets));
    const fem_set *some = fem_mesh_element_set(&tets, "some");
    assert_non_null(some);
    assert_int_equal(some->count, 18);
    assert_int_equal(some->items[6], 30);
    for (int e = 0; e < tets.element_count; e++) assert_int_equal(tets.region[e], hexahedra.region[e / 6]);
    assert_int_equal(tets.vertex_set_count, hexahedra.vertex_set_count);
    int counts[2], *lists[2];
    assert_ok(fem_mesh_surface(&hexahedra, &counts[0], &lists[0], NULL));
    assert_ok(fem_mesh_surface(&tets, &counts[1], &lists[1], NULL));
    assert_int_equal(counts[0], counts[1]);
    for (int s = 0; s < 2; s++) { // as sets of triangles, each from its lowest vertex
        for (int t = 0; t < counts[s]; t++) {
            int *v = lists[s] + 3 * t, first = v[0] < v[1] ? (v[0] < v[2] ? 0 : 2) : (v[1] < v[2] ? 1 : 2);
            int  turned[3] = {v[first], v[(first + 1) % 3], v[(first + 2) % 3]};
            memcpy(v, turned, sizeof turned);
        }
    }
    int(*a)[4] = malloc((size_t)counts[0] * sizeof *a), (*b)[4] = malloc((size_t)counts[0] * sizeof *b);
    for (int t = 0; t < counts[0]; t++)
        for (int k = 0; k < 4; k++)
            a[t][k] = k < 3 ? lists[0][3 * t + k] : 0, b[t][k] = k < 3 ? lists[1][3 * t + k] : 0;
    qsort(a, (size_t)counts[0], sizeof *a, compare_keys);
    qsort(b, (size_t)counts[0], sizeof *b, compare_keys);
    assert_memory_equal(a, b, (size_t)counts[0] * sizeof *a);
    printf("%d surface triangles of the hexahedra are those of the tetrahedra\n", counts[0]);
    free(a), free(b);
    fem_free(lists[0]), fem_free(lists[1]);
    assert_fails(fem_mesh_split_hexahedra(&hexahedra, &tets), FEM_BAD_INPUT, "no hexahedra");
    fem_mesh_destroy(&hexahedra), fem_mesh_destroy(&tets);
}

// when memory runs out at any allocation, that is said, nothing leaks, and the old mesh stays
static void test_memory(void **state) {
    (void)state;
    const fem_piece edge[] = {{"a", FEM_BOX, {0, 0, 0}, {1, 1, 1}, 0, 0}, {"b", FEM_BOX, {1, 1, 0}, {2, 2, 1}, 0, 0}};
    fem_mesh        mesh = {0};
    assert_ok(fem_mesh_allocate(&mesh, FEM_H8, 1, 1));
    long before = fem_memory_blocks(), n = 0;
    for (;; n++) {
        fem_memory_fail_after(n);
        fem_status status = fem_generate_pieces(&mesh, FEM_T4, 2, edge, 0.25); // with hinges to repair
        fem_memory_fail_after(-1);
        if (status == FEM_OK) break;
        assert_int_equal(status, FEM_NO_MEMORY);
        assert_int_equal(fem_memory_blocks(), before);
        assert_int_equal(mesh.vertex_count, 1);
    }
    printf("%ld allocations, each refused once\n", n);
    assert_true(n > 20);
    examine("after the refusals", &mesh, 2, true);
    fem_mesh_destroy(&mesh);
}

// a million tetrahedra in about a second
static void test_speed(void **state) {
    (void)state;
    fem_mesh  mesh = {0};
    fem_piece ball = {"ball", FEM_BALL, {0, 0, 0}, {0, 0, 0}, 1, 0};
    double    start = fem_seconds();
    assert_ok(fem_generate_pieces(&mesh, FEM_T4, 1, &ball, 0.03));
    printf("pieces: %d tetrahedra in %.3f s\n", mesh.element_count, fem_seconds() - start);
    assert_true(mesh.element_count > 800000);
    fem_mesh_destroy(&mesh);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_capsule_volume), cmocka_unit_test(test_fork),          cmocka_unit_test(test_boxes),
        cmocka_unit_test(test_hinges),         cmocka_unit_test(test_pieces_refuse), cmocka_unit_test(test_split),
        cmocka_unit_test(test_memory),         cmocka_unit_test(test_speed),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
