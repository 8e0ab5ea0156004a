// Generated meshes: valid, conforming, closed, as large as they should be, with the names that were promised; and what
// cannot be made is refused with a reason.
#include "tests/examine.h"

// ---- box -------------------------------------------------------------------------------------------------------

// a box has its exact volume, all its cells alike, and its six sides as sets
static void test_box(void **state) {
    (void)state;
    const double low[3] = {-1, 2, 0.5}, high[3] = {2, 3, 1};
    const int    cells[3] = {6, 3, 2};
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        fem_mesh mesh = {0};
        assert_ok(fem_generate_box(&mesh, (fem_element)type, low, high, cells));
        double volume = examine("box 6x3x2", &mesh, 2, true);
        assert_true(fabs(volume - 1.5) < 1e-14);
        assert_int_equal(mesh.vertex_count, 7 * 4 * 3);
        assert_int_equal(mesh.element_count, 36 * (type == FEM_T4 ? 6 : 1));
        static const char *names[6] = {"x0", "x1", "y0", "y1", "z0", "z1"};
        const int          counts[6] = {12, 12, 21, 21, 28, 28};
        for (int s = 0; s < 6; s++) {
            const fem_set *set = fem_mesh_vertex_set(&mesh, names[s]);
            assert_non_null(set);
            assert_int_equal(set->count, counts[s]);
            for (int i = 0; i < set->count; i++)
                assert_true(mesh.vertices[3 * set->items[i] + s / 2] == (s % 2 ? high : low)[s / 2]);
        }
        fem_mesh_destroy(&mesh);
    }
}

static void test_box_refuses(void **state) {
    (void)state;
    const double zero[3] = {0, 0, 0}, one[3] = {1, 1, 1}, flat[3] = {1, 0, 1}, nan[3] = {1, NAN, 1};
    fem_mesh     mesh = {0};
    assert_fails(fem_generate_box(&mesh, FEM_H8, zero, flat, (int[]){1, 1, 1}), FEM_BAD_INPUT, "box: the y extent");
    assert_fails(fem_generate_box(&mesh, FEM_H8, zero, nan, (int[]){1, 1, 1}), FEM_BAD_INPUT, "not finite");
    assert_fails(fem_generate_box(&mesh, FEM_H8, zero, one, (int[]){1, 0, 1}), FEM_BAD_INPUT, "0 cells along y");
    assert_fails(fem_generate_box(&mesh, FEM_H8, zero, one, (int[]){100000, 100000, 100000}), FEM_BAD_INPUT,
                 "1e+15 elements");
    assert_fails(fem_generate_box(&mesh, FEM_T4, zero, one, (int[]){1000, 1000, 10}), FEM_BAD_INPUT, "6e+07 elements");
    assert_null(mesh.vertices);
}

// ---- tube ------------------------------------------------------------------------------------------------------

static const double zigzag[] = {0, 0, 0, 1, 0, 0, 1.6, 0.8, 0, 1.6, 1.6, 0.9, 2.5, 1.6, 0.9}; // 5 points
static const double fifth[] = {0.2, 0.2, 0.2, 0.2, 0.2};

static double polyline_length(int points, const double *x) {
    double length = 0;
    for (int i = 1; i < points; i++) length += vec3_distance(x + 3 * i, x + 3 * i - 3);
    return length;
}

// mitred bends keep the volume pi r^2 L of the straight tube; a polygon in a circle misses it by O(h^2)
static void test_tube_volume(void **state) {
    (void)state;
    double exact = M_PI * 0.04 * polyline_length(5, zigzag);
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        double error[3];
        for (int level = 0; level < 3; level++) {
            fem_mesh mesh = {0};
            fem_tube tube = {5, zigzag, fifth, 3 << level, 0};
            assert_ok(fem_generate_tube(&mesh, (fem_element)type, &tube));
            error[level] = fabs(examine("tube with three bends", &mesh, 2, true) - exact) / exact;
            assert_true(quality_dihedral(&mesh) > 10);
            fem_mesh_destroy(&mesh);
        }
        printf("tube volume: errors %.2e %.2e %.2e, orders %.2f %.2f\n", error[0], error[1], error[2],
               log2(error[0] / error[1]), log2(error[1] / error[2]));
        assert_true(log2(error[1] / error[2]) > 1.7);
    }
}

// a tapered straight tube converges to the frustum, and its ends are where they should be
static void test_tube_taper(void **state) {
    (void)state;
    const double line[] = {0, 0, 0, 0, 1, 1}, radius[] = {0.3, 0.1};
    double       exact = M_PI * sqrt(2) / 3 * (0.09 + 0.03 + 0.01), error[2];
    for (int level = 0; level < 2; level++) {
        fem_mesh mesh = {0};
        fem_tube tube = {2, line, radius, 3 << level, 0.2};
        assert_ok(fem_generate_tube(&mesh, FEM_H8, &tube));
        error[level] = fabs(examine("tapered tube", &mesh, 2, true) - exact) / exact;
        const fem_set *ends[2] = {fem_mesh_vertex_set(&mesh, "root"), fem_mesh_vertex_set(&mesh, "tip")};
        const fem_set *side = fem_mesh_vertex_set(&mesh, "surface");
        assert_non_null(ends[0]), assert_non_null(ends[1]), assert_non_null(side);
        for (int end = 0; end < 2; end++) {
            assert_int_equal(ends[end]->count, ends[0]->count);
            for (int i = 0; i < ends[end]->count; i++) {
                const double *x = mesh.vertices + 3 * ends[end]->items[i];
                assert_true(vec3_distance(x, line + 3 * end) < radius[end] * (1 + 1e-12));
                assert_true(fabs(x[1] + x[2] - 2 * end) < 1e-12); // in the plane across the axis
            }
        }
        for (int i = 0; i < side->count; i++) { // exactly on the cone
            const double *x = mesh.vertices + 3 * side->items[i];
            double        along = (x[1] + x[2]) / 2, across = hypot(x[0], (x[1] - x[2]) / sqrt(2));
            assert_true(fabs(across - (0.3 - 0.2 * along)) < 1e-12);
        }
        fem_mesh_destroy(&mesh);
    }
    printf("frustum volume: errors %.2e %.2e, order %.2f\n", error[0], error[1], log2(error[0] / error[1]));
    assert_true(log2(error[0] / error[1]) > 1.7);
}

// sections do not twist: along a helix-like polyline, the frame turns by less than the bends; on a planar polyline the
// section's points keep their height over the plane
static void test_tube_twist(void **state) {
    (void)state;
    enum { POINTS = 21 };
    double centre[3 * POINTS], radius[POINTS];
    for (int i = 0; i < POINTS; i++) {
        double angle = 1.5 * M_PI * i / (POINTS - 1);
        centre[3 * i] = cos(angle), centre[3 * i + 1] = sin(angle), centre[3 * i + 2] = 0;
        radius[i] = 0.2;
    }
    fem_mesh mesh = {0};
    fem_tube tube = {POINTS, centre, radius, 3, 0};
    assert_ok(fem_generate_tube(&mesh, FEM_H8, &tube));
    examine("three quarters of a ring", &mesh, 2, true);
    int    section = set_count(&mesh, "root");
    double twist = 0;
    for (int v = section; v < mesh.vertex_count; v++)
        twist = fmax(twist, fabs(mesh.vertices[3 * v + 2] - mesh.vertices[3 * (v % section) + 2]));
    printf("planar tube: points leave their height by %.1e\n", twist);
    assert_true(twist < 1e-12);
    fem_mesh_destroy(&mesh);
}

// any number of rings makes a good tube
static void test_tube_rings(void **state) {
    (void)state;
    const double line[] = {0, 0, 0, 0, 0, 3}, radius[] = {1, 1};
    for (int type = FEM_T4; type <= FEM_H8; type++)
        for (int rings = 1; rings <= 9; rings++) {
            fem_mesh mesh = {0};
            fem_tube tube = {2, line, radius, rings, 0};
            assert_ok(fem_generate_tube(&mesh, (fem_element)type, &tube));
            examine("tube of 1..9 rings", &mesh, 2, true);
            assert_true(quality_dihedral(&mesh) > (type == FEM_T4 ? 15 : 50));
            fem_mesh_destroy(&mesh);
        }
}

// random walks with random radii are either refused for a tight bend or good meshes
static void test_tube_random(void **state) {
    (void)state;
    uint64_t random = 7;
    int      made = 0, refused = 0;
    for (int trial = 0; trial < 300; trial++) {
        double centre[18], radius[6];
        test_random_fill(&random, 18, 1, centre);
        for (int i = 0; i < 6; i++) radius[i] = 0.15 * (1.05 + test_random(&random)) / (1 + trial % 3);
        fem_mesh   mesh = {0};
        fem_tube   tube = {6, centre, radius, 1 + trial % 4, trial % 2 ? 0.3 : 0};
        fem_status status = fem_generate_tube(&mesh, trial % 5 ? FEM_T4 : FEM_H8, &tube);
        if (status == FEM_OK)
            examine("random tube", &mesh, 2, false), made++;
        else {
            assert_int_equal(status, FEM_BAD_INPUT);
            if (!strstr(fem_message(), "bend")) fail_msg("trial %d: %s", trial, fem_message());
            refused++;
        }
        fem_mesh_destroy(&mesh);
    }
    printf("random tubes: %d made, %d refused for their bends\n", made, refused);
    assert_true(made > 50 && refused > 10);
}

static void test_tube_refuses(void **state) {
    (void)state;
    fem_mesh     mesh = {0};
    const double line[] = {0, 0, 0, 0, 0, 1, 0, 0, 1}, back[] = {0, 0, 0, 0, 0, 1, 0, 0, 0.5};
    const double hook[] = {0, 0, 0, 1, 0, 0, 1.1, 0.2, 0, 1, 0.4, 0}, one[] = {1, 1, 1, 1}, zero[] = {1, 0, 1};
    const double wild[] = {0, 0, 0, 0, INFINITY, 0}, quarter[] = {0.25, 0.25, 0.25, 0.25};
    assert_fails(fem_generate_tube(&mesh, FEM_H8, &(fem_tube){1, line, one, 2, 0}), FEM_BAD_INPUT, "tube: 1 points");
    assert_fails(fem_generate_tube(&mesh, FEM_H8, &(fem_tube){3, line, one, 2, 0}), FEM_BAD_INPUT,
                 "point 2 (from 0) repeats");
    assert_fails(fem_generate_tube(&mesh, FEM_H8, &(fem_tube){2, line, zero, 2, 0}), FEM_BAD_INPUT, "its radius is 0");
    assert_fails(fem_generate_tube(&mesh, FEM_H8, &(fem_tube){2, wild, one, 2, 0}), FEM_BAD_INPUT,
                 "coordinate y is inf");
    assert_fails(fem_generate_tube(&mesh, FEM_H8, &(fem_tube){2, line, one, 0, 0}), FEM_BAD_INPUT, "0 rings");
    assert_fails(fem_generate_tube(&mesh, FEM_H8, &(fem_tube){2, line, one, 2, -1}), FEM_BAD_INPUT, "segment is -1");
    assert_fails(fem_generate_tube(&mesh, FEM_H8, &(fem_tube){2, line, one, 2, 1e-12}), FEM_BAD_INPUT,
                 "elements would be made");
    assert_fails(fem_generate_tube(&mesh, FEM_T4, &(fem_tube){2, line, one, 5000, 0}), FEM_BAD_INPUT,
                 "elements would be made");
    assert_fails(fem_generate_tube(&mesh, FEM_H8, &(fem_tube){3, back, one, 2, 0}), FEM_BAD_INPUT,
                 "bend of 180 degrees");
    assert_fails(fem_generate_tube(&mesh, FEM_H8, &(fem_tube){4, hook, quarter, 2, 0}), FEM_BAD_INPUT, "too tight");
    printf("%s\n", fem_message());
    // what the message offers does help: radii times the number that it names
    double share = 0, thinner[4];
    assert_int_equal(sscanf(strstr(fem_message(), "at most ") + 8, "%lf", &share), 1);
    assert_true(share > 0.01 && share < 1);
    for (int i = 0; i < 4; i++) thinner[i] = 0.98 * share * quarter[i];
    fem_status status = fem_generate_tube(&mesh, FEM_H8, &(fem_tube){4, hook, thinner, 2, 0});
    for (int tries = 0; status != FEM_OK && tries < 3; tries++) { // once for each bend at most
        assert_int_equal(sscanf(strstr(fem_message(), "at most ") + 8, "%lf", &share), 1);
        for (int i = 0; i < 4; i++) thinner[i] *= 0.98 * share;
        status = fem_generate_tube(&mesh, FEM_H8, &(fem_tube){4, hook, thinner, 2, 0});
    }
    assert_ok(status);
    examine("hook, thinner", &mesh, 2, true);
    fem_mesh_destroy(&mesh);
}

// ---- leaf ------------------------------------------------------------------------------------------------------

// volume of the documented outline, to second order; petiole and blade share their vertices and have their regions
static void test_leaf(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        double error[3];
        for (int level = 0; level < 3; level++) {
            fem_leaf leaf = {0.08, 0.05, 0.0005, 0.03, 0.004, 8 << level, 1 + level};
            fem_mesh mesh = {0};
            assert_ok(fem_generate_leaf(&mesh, (fem_element)type, &leaf));
            double volume = examine("leaf", &mesh, 2, true), base = 0, reach = 0;
            for (int v = 0; v < mesh.vertex_count; v++) {
                const double *x = mesh.vertices + 3 * v;
                if (fabs(x[0] - 0.03) < 1e-12) base = fmax(base, 2 * x[1]);
                reach = fmax(reach, fabs(x[1]));
            }
            assert_true(fabs(reach - 0.025) < 1e-12);
            assert_true(base >= 0.004 && base <= 0.4 * 0.05 + 1e-12);
            double tip = 0.15 * 0.05;
            double area = 0.08 * ((base + tip) / 2 + (0.05 - base) / M_PI + (0.05 - tip) / M_PI) + 0.03 * 0.004;
            error[level] = fabs(volume - 0.0005 * area) / (0.0005 * area);
            const fem_set *root = fem_mesh_vertex_set(&mesh, "root");
            assert_non_null(root);
            for (int i = 0; i < root->count; i++) assert_true(mesh.vertices[3 * root->items[i]] == 0);
            assert_true(set_count(&mesh, "tip") > 0);
            assert_int_equal(set_count(&mesh, "top"), mesh.vertex_count / (2 + level));
            assert_int_equal(set_count(&mesh, "bottom"), mesh.vertex_count / (2 + level));
            int blade = fem_mesh_region_index(&mesh, "blade"), petiole = fem_mesh_region_index(&mesh, "petiole");
            assert_true(blade >= 0 && petiole >= 0);
            int width = fem_element_vertices(mesh.type);
            for (int e = 0; e < mesh.element_count; e++) {
                double x = 0;
                for (int k = 0; k < width; k++) x += mesh.vertices[3 * mesh.elements[e * width + k]] / width;
                assert_int_equal(mesh.region[e], x < 0.03 ? petiole : blade);
            }
            fem_mesh_destroy(&mesh);
        }
        printf("leaf volume: errors %.2e %.2e %.2e, orders %.2f %.2f\n", error[0], error[1], error[2],
               log2(error[0] / error[1]), log2(error[1] / error[2]));
        assert_true(log2(error[1] / error[2]) > 1.7);
    }
}

// any proportions make a valid leaf
static void test_leaf_range(void **state) {
    (void)state;
    uint64_t random = 11;
    int      made = 0;
    for (int trial = 0; trial < 300; trial++) {
        double   width = exp(3 * test_random(&random));
        fem_leaf leaf = {.length = exp(3 * test_random(&random)),
                         .width = width,
                         .thickness = exp(-4 + 3 * test_random(&random)),
                         .petiole_length = trial % 3 ? exp(2 * test_random(&random)) : 0,
                         .petiole_width = width * exp(-3 + 3 * test_random(&random)),
                         .cells = 1 + trial % 7,
                         .layers = 1 + trial % 3};
        fem_mesh mesh = {0};
        assert_ok(fem_generate_leaf(&mesh, trial % 2 ? FEM_T4 : FEM_H8, &leaf));
        examine("random leaf", &mesh, 2, false);
        assert_int_equal(mesh.region_count, trial % 3 ? 2 : 1);
        assert_true(set_count(&mesh, "root") > 0);
        fem_mesh_destroy(&mesh);
        made++;
    }
    printf("random leaves: %d made\n", made);
}

static void test_leaf_refuses(void **state) {
    (void)state;
    fem_mesh       mesh = {0};
    const fem_leaf good = {0.08, 0.05, 0.0005, 0.03, 0.004, 8, 1};
    fem_leaf       leaf = good;
    leaf.width = -1;
    assert_fails(fem_generate_leaf(&mesh, FEM_H8, &leaf), FEM_BAD_INPUT, "leaf: width is -1");
    leaf = good, leaf.thickness = NAN;
    assert_fails(fem_generate_leaf(&mesh, FEM_H8, &leaf), FEM_BAD_INPUT, "thickness is ");
    leaf = good, leaf.petiole_width = 0.06;
    assert_fails(fem_generate_leaf(&mesh, FEM_H8, &leaf), FEM_BAD_INPUT,
                 "petiole_width is 0.06, expected at most the width 0.05");
    leaf = good, leaf.petiole_length = -0.1;
    assert_fails(fem_generate_leaf(&mesh, FEM_H8, &leaf), FEM_BAD_INPUT, "petiole_length is -0.1");
    leaf = good, leaf.cells = 0;
    assert_fails(fem_generate_leaf(&mesh, FEM_H8, &leaf), FEM_BAD_INPUT, "cells is 0");
    leaf = good, leaf.layers = 0;
    assert_fails(fem_generate_leaf(&mesh, FEM_H8, &leaf), FEM_BAD_INPUT, "layers is 0");
    leaf = good, leaf.cells = 2000000000;
    assert_fails(fem_generate_leaf(&mesh, FEM_H8, &leaf), FEM_BAD_INPUT, "elements would be made");
    leaf = good, leaf.petiole_length = 1e90;
    assert_fails(fem_generate_leaf(&mesh, FEM_H8, &leaf), FEM_BAD_INPUT, "elements would be made");
}

// ---- sphere ----------------------------------------------------------------------------------------------------

// every number of cells makes a ball; its volume converges to second order and its worst angle does not degrade
static void test_sphere(void **state) {
    (void)state;
    const double centre[3] = {1, -2, 3};
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        double error[3];
        for (int cells = 1; cells <= 13; cells++) {
            fem_mesh mesh = {0};
            assert_ok(fem_generate_sphere(&mesh, (fem_element)type, centre, 0.5, cells));
            examine("ball of 1..13 cells", &mesh, 2, true);
            assert_true(cells < 4 || quality_dihedral(&mesh) > (type == FEM_T4 ? 12 : 45));
            fem_mesh_destroy(&mesh);
        }
        for (int level = 0; level < 3; level++) {
            fem_mesh mesh = {0};
            assert_ok(fem_generate_sphere(&mesh, (fem_element)type, centre, 0.5, 8 << level));
            error[level] = fabs(examine("ball", &mesh, 2, true) / (M_PI / 6) - 1);
            const fem_set *surface = fem_mesh_vertex_set(&mesh, "surface");
            assert_non_null(surface);
            for (int i = 0; i < surface->count; i++)
                assert_true(fabs(vec3_distance(mesh.vertices + 3 * surface->items[i], centre) - 0.5) < 1e-14);
            assert_int_equal(set_count(&mesh, "x0"), set_count(&mesh, "z1"));
            fem_mesh_destroy(&mesh);
        }
        printf("ball volume: errors %.2e %.2e %.2e, orders %.2f %.2f\n", error[0], error[1], error[2],
               log2(error[0] / error[1]), log2(error[1] / error[2]));
        assert_true(log2(error[1] / error[2]) > 1.7);
    }
    fem_mesh mesh = {0};
    assert_fails(fem_generate_sphere(&mesh, FEM_H8, centre, 0, 4), FEM_BAD_INPUT, "sphere: its radius is 0");
    assert_fails(fem_generate_sphere(&mesh, FEM_H8, centre, 1, 0), FEM_BAD_INPUT, "0 cells across");
    assert_fails(fem_generate_sphere(&mesh, FEM_T4, centre, 1, 1000), FEM_BAD_INPUT, "elements would be made");
    assert_fails(fem_generate_sphere(&mesh, FEM_H8, (double[]){0, 0, NAN}, 1, 4), FEM_BAD_INPUT, "z of its centre");
}

static fem_status make(int which, fem_mesh *mesh) {
    const double zero[3] = {0, 0, 0}, one[3] = {1, 1, 1};
    switch (which) {
    case 0:
        return fem_generate_box(mesh, FEM_T4, zero, one, (int[]){2, 2, 2});
    case 1:
        return fem_generate_tube(mesh, FEM_T4, &(fem_tube){5, zigzag, fifth, 2, 0});
    case 2:
        return fem_generate_leaf(mesh, FEM_T4, &(fem_leaf){0.08, 0.05, 0.0005, 0.03, 0.004, 4, 1});
    default:
        return fem_generate_sphere(mesh, FEM_T4, zero, 1, 4);
    }
}

// when memory runs out at any allocation, generators say so, leak nothing and leave the old mesh alone
static void test_memory(void **state) {
    (void)state;
    for (int which = 0; which < 4; which++) {
        fem_mesh mesh = {0};
        assert_ok(fem_mesh_allocate(&mesh, FEM_H8, 1, 1));
        long before = fem_memory_blocks(), n = 0;
        for (;; n++) {
            fem_memory_fail_after(n);
            fem_status status = make(which, &mesh);
            fem_memory_fail_after(-1);
            if (status == FEM_OK) break;
            assert_int_equal(status, FEM_NO_MEMORY);
            assert_int_equal(fem_memory_blocks(), before);
            assert_int_equal(mesh.vertex_count, 1);
        }
        printf("generator %d: %ld allocations, each refused once\n", which, n);
        assert_true(n > 5);
        examine("after the refusals", &mesh, 2, false);
        fem_mesh_destroy(&mesh);
    }
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_box),         cmocka_unit_test(test_box_refuses),  cmocka_unit_test(test_tube_volume),
        cmocka_unit_test(test_tube_taper),  cmocka_unit_test(test_tube_twist),   cmocka_unit_test(test_tube_rings),
        cmocka_unit_test(test_tube_random), cmocka_unit_test(test_tube_refuses), cmocka_unit_test(test_leaf),
        cmocka_unit_test(test_leaf_range),  cmocka_unit_test(test_leaf_refuses), cmocka_unit_test(test_sphere),
        cmocka_unit_test(test_memory),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
