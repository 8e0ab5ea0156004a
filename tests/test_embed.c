// Embedding of points: the right element, weights that reproduce positions and linear fields, nearest elements outside.
#include "tests/support.h"

#include <math.h>

static fem_mesh shaken_box(fem_element type, int cells, double shake) {
    fem_mesh mesh = {0};
    uint64_t random = 23;
    assert_ok(fem_generate_box(&mesh, type, (double[]){0, 0, 0}, (double[]){1, 1, 1}, (int[]){cells, cells, cells}));
    for (int v = 0; v < mesh.vertex_count; v++)
        for (int k = 0; k < 3; k++) {
            double *x = &mesh.vertices[3 * v + k], d = shake / cells * test_random(&random);
            if (*x > 0 && *x < 1) *x += d; // the box stays a box
        }
    assert_ok(fem_mesh_check(&mesh));
    return mesh;
}

static double position_error(const fem_embedding *m, const fem_mesh *mesh, const double *points) {
    double *x = malloc(3 * (size_t)m->point_count * sizeof *x), error = 0;
    assert_non_null(x);
    fem_embedding_apply(m, mesh->vertices, x);
    for (int i = 0; i < 3 * m->point_count; i++) error = fmax(error, fabs(x[i] - points[i]));
    free(x);
    return error;
}

// inside: no weight is negative, positions and a linear field come back exactly
static void test_inside(void **state) {
    (void)state;
    enum { POINTS = 20000 };
    double *points = malloc(3 * POINTS * sizeof *points), *field, *values = malloc(3 * POINTS * sizeof *values);
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        fem_mesh      mesh = shaken_box((fem_element)type, 9, 0.2);
        fem_embedding m = {0};
        uint64_t      random = 1;
        for (int i = 0; i < 3 * POINTS; i++) points[i] = 0.5 + 0.5 * test_random(&random);
        assert_ok(fem_embed_points(&m, &mesh, POINTS, points));
        double error = position_error(&m, &mesh, points), lowest = 0, sums = 0;
        for (int i = 0; i < POINTS; i++) {
            double sum = 0;
            for (int k = 0; k < m.width; k++) {
                double w = m.weights[i * m.width + k];
                lowest = fmin(lowest, w), sum += w;
                assert_int_equal(m.vertices[i * m.width + k], mesh.elements[m.element[i] * m.width + k]);
            }
            sums = fmax(sums, fabs(sum - 1));
        }
        field = malloc(3 * (size_t)mesh.vertex_count * sizeof *field);
        for (int v = 0; v < mesh.vertex_count; v++)
            for (int k = 0; k < 3; k++)
                field[3 * v + k] = k + 2 * mesh.vertices[3 * v] - (k + 1) * mesh.vertices[3 * v + 2];
        fem_embedding_apply(&m, field, values);
        double linear = 0;
        for (int i = 0; i < POINTS; i++)
            for (int k = 0; k < 3; k++)
                linear = fmax(linear, fabs(values[3 * i + k] - (k + 2 * points[3 * i] - (k + 1) * points[3 * i + 2])));
        printf("%s: positions %.1e, linear field %.1e, lowest weight %.1e, sums %.1e, outside %d\n",
               type == FEM_T4 ? "T4" : "H8", error, linear, lowest, sums, m.outside);
        assert_true(error < 1e-9 && linear < 1e-8 && lowest > -1e-7 && sums < 1e-12);
        assert_int_equal(m.outside, 0);
        free(field);
        fem_embedding_destroy(&m);
        fem_mesh_destroy(&mesh);
    }
    free(points), free(values);
}

// a mesh's own vertices lie inside, each with weight 1 at itself
static void test_vertices(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        fem_mesh      mesh = {0};
        fem_embedding m = {0};
        assert_ok(fem_generate_sphere(&mesh, (fem_element)type, (double[]){5, 6, 7}, 2, 9));
        assert_ok(fem_embed_points(&m, &mesh, mesh.vertex_count, mesh.vertices));
        double error = 0;
        for (int v = 0; v < mesh.vertex_count; v++)
            for (int k = 0; k < m.width; k++)
                error = fmax(error, fabs(m.weights[v * m.width + k] - (m.vertices[v * m.width + k] == v)));
        printf("%s: own vertices to %.1e, outside %d\n", type == FEM_T4 ? "T4" : "H8", error, m.outside);
        assert_true(error < 1e-7);
        assert_int_equal(m.outside, 0);
        fem_embedding_destroy(&m);
        fem_mesh_destroy(&mesh);
    }
}

// Distance from a point to a tetrahedron by trying all faces, edges and corners: for each, the plane's nearest point
// counts if its weights are not negative.
static double slow_distance(const fem_mesh *mesh, int element, const double p[3]) {
    double best = INFINITY;
    for (int mask = 1; mask < 16; mask++) {
        int           chosen[4], n = 0;
        const double *x[4];
        for (int k = 0; k < 4; k++)
            if (mask >> k & 1) chosen[n++] = mesh->elements[4 * element + k];
        for (int k = 0; k < n; k++) x[k] = mesh->vertices + 3 * chosen[k];
        // normal equations of the weights of x[1] .. x[n-1], solved as 3x3 with ones for what is absent
        double A[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, B[9], g[3] = {0, 0, 0}, w[3], e[3][3], d[3];
        vec3_sub(d, p, x[0]);
        for (int k = 0; k + 1 < n; k++) vec3_sub(e[k], x[k + 1], x[0]), g[k] = vec3_dot(e[k], d);
        for (int i = 0; i + 1 < n; i++)
            for (int k = 0; k + 1 < n; k++) A[3 * i + k] = vec3_dot(e[i], e[k]);
        assert_true(mat3_inverse(B, A) != 0);
        mat3_mul_vec(w, B, g);
        double first = 1;
        bool   valid = true;
        for (int k = 0; k + 1 < n; k++) first -= w[k], valid = valid && w[k] >= 0, vec3_axpy(d, -w[k], e[k]);
        if (valid && first >= 0) best = fmin(best, vec3_norm(d));
    }
    return best;
}

// outside: the element is the nearest one, found by trying all; tetrahedra extrapolate, so positions still come back
static void test_outside_tetrahedra(void **state) {
    (void)state;
    enum { POINTS = 300 };
    double        points[3 * POINTS], worst = 0;
    uint64_t      random = 2;
    fem_mesh      mesh = shaken_box(FEM_T4, 4, 0.2);
    fem_embedding m = {0};
    int           outside = 0;
    for (int i = 0; i < 3 * POINTS; i++) points[i] = 0.5 + 1.5 * test_random(&random);
    assert_ok(fem_embed_points(&m, &mesh, POINTS, points));
    for (int i = 0; i < POINTS; i++) {
        double nearest = INFINITY;
        for (int e = 0; e < mesh.element_count; e++) nearest = fmin(nearest, slow_distance(&mesh, e, points + 3 * i));
        worst = fmax(worst, slow_distance(&mesh, m.element[i], points + 3 * i) - nearest);
        outside += nearest > 1e-9;
    }
    double error = position_error(&m, &mesh, points);
    printf("T4: %d of %d outside; nearest to %.1e, extrapolated positions to %.1e\n", outside, POINTS, worst, error);
    assert_true(worst < 1e-12 && error < 1e-11);
    assert_int_equal(outside, m.outside);
    assert_true(outside > 200 && outside < POINTS);
    fem_embedding_destroy(&m);
    fem_mesh_destroy(&mesh);
}

// outside hexahedra: weights are clamped, so the embedded position is the nearest point of the box
static void test_outside_hexahedra(void **state) {
    (void)state;
    enum { POINTS = 5000 };
    double       *points = malloc(3 * POINTS * sizeof *points), *nearest = malloc(3 * POINTS * sizeof *nearest);
    uint64_t      random = 3;
    fem_mesh      mesh = shaken_box(FEM_H8, 5, 0.2);
    fem_embedding m = {0};
    for (int i = 0; i < 3 * POINTS; i++) {
        points[i] = 0.5 + 1.5 * test_random(&random);
        nearest[i] = fmax(0, fmin(1, points[i]));
    }
    assert_ok(fem_embed_points(&m, &mesh, POINTS, points));
    double error = position_error(&m, &mesh, nearest), lowest = 0;
    for (int i = 0; i < POINTS * m.width; i++) lowest = fmin(lowest, m.weights[i]);
    printf("H8: %d of %d outside; nearest points to %.1e, lowest weight %g\n", m.outside, POINTS, error, lowest);
    assert_true(error < 1e-6 && lowest >= 0);
    assert_true(m.outside > POINTS / 2 && m.outside < POINTS);
    fem_embedding_destroy(&m);
    fem_mesh_destroy(&mesh);
    free(points), free(nearest);
}

// Newton's inversion works in strongly distorted hexahedra: points made from known coordinates are found in their
// element
static void test_distorted(void **state) {
    (void)state;
    uint64_t random = 4;
    int      tried = 0, found = 0;
    double   worst = 0;
    while (tried < 20000) {
        fem_mesh mesh = {0};
        assert_ok(fem_generate_box(&mesh, FEM_H8, (double[]){0, 0, 0}, (double[]){1, 1, 1}, (int[]){1, 1, 1}));
        for (int i = 0; i < 24; i++) mesh.vertices[i] += 0.45 * test_random(&random);
        double points[3 * 20] = {0};
        for (int i = 0; i < 20; i++) {
            double t[3] = {0.5 + 0.5 * test_random(&random), 0.5 + 0.5 * test_random(&random),
                           0.5 + 0.5 * test_random(&random)};
            for (int c = 0; c < 8; c++) { // box corners are numbered x + 2y + 4z
                double w = (c & 1 ? t[0] : 1 - t[0]) * (c & 2 ? t[1] : 1 - t[1]) * (c & 4 ? t[2] : 1 - t[2]);
                vec3_axpy(points + 3 * i, w, mesh.vertices + 3 * c);
            }
        }
        if (fem_mesh_check(&mesh) == FEM_OK) {
            fem_embedding m = {0};
            assert_ok(fem_embed_points(&m, &mesh, 20, points));
            worst = fmax(worst, position_error(&m, &mesh, points));
            found += 20 - m.outside, tried += 20;
            fem_embedding_destroy(&m);
        }
        fem_mesh_destroy(&mesh);
    }
    printf("distorted hexahedra: %d of %d points found inside, positions to %.1e\n", found, tried, worst);
    assert_int_equal(found, tried);
    assert_true(worst < 1e-8);
}

static void test_refuses(void **state) {
    (void)state;
    fem_mesh      mesh = shaken_box(FEM_T4, 2, 0), empty = {0};
    fem_embedding m = {0};
    double        points[6] = {0.5, 0.5, 0.5, 0.5, NAN, 0.5};
    assert_fails(fem_embed_points(&m, &mesh, 2, points), FEM_BAD_INPUT, "point 1: coordinate y");
    assert_fails(fem_embed_points(&m, &mesh, -1, points), FEM_BAD_INPUT, "-1 points");
    assert_fails(fem_embed_points(&m, &empty, 1, points), FEM_BAD_INPUT, "without elements");
    assert_null(m.element);
    assert_ok(fem_embed_points(&m, &mesh, 0, NULL));
    assert_int_equal(m.outside, 0);
    points[4] = 1e140; // far away, and squared: still an answer
    assert_ok(fem_embed_points(&m, &mesh, 2, points));
    assert_int_equal(m.outside, 1);
    long before = fem_memory_blocks(), n = 0;
    for (;; n++) {
        fem_memory_fail_after(n);
        fem_status status = fem_embed_points(&m, &mesh, 2, points);
        fem_memory_fail_after(-1);
        assert_int_equal(fem_memory_blocks(), before);
        if (status == FEM_OK) break;
        assert_int_equal(status, FEM_NO_MEMORY);
        assert_int_equal(m.point_count, 2);
    }
    printf("%ld refused allocations\n", n);
    assert_true(n > 3);
    fem_embedding_destroy(&m);
    fem_mesh_destroy(&mesh);
}

// a real surface in a mesh made from it: its points lie a little inside or outside, so nearly all weights stay small,
// and all positions come back
static void test_bunny(void **state) {
    (void)state;
    const char   *path = test_data("surfaces/bunny_hr.obj.gz");
    fem_mesh      mesh = {0};
    fem_surface   surface = {0};
    fem_embedding m = {0};
    if (!path) return;
    assert_ok(fem_surface_read(&surface, path));
    assert_ok(fem_mesh_read(&mesh, test_data("meshes/bunny_50k.veg.gz")));
    assert_ok(fem_embed_points(&m, &mesh, surface.vertex_count, surface.vertices));
    double error = position_error(&m, &mesh, surface.vertices);
    int    wild = 0;
    for (int i = 0; i < m.point_count; i++) {
        double largest = 0;
        for (int k = 0; k < 4; k++) largest = fmax(largest, fabs(m.weights[4 * i + k]));
        wild += largest > 2;
    }
    printf("bunny: %d points in %d elements, %d outside, %d with weights above 2, positions to %.1e\n", m.point_count,
           mesh.element_count, m.outside, wild, error);
    assert_true(m.point_count > 1000 && error < 1e-9);
    assert_true(wild < m.point_count / 100);
    fem_embedding_destroy(&m);
    fem_mesh_destroy(&mesh);
    fem_surface_destroy(&surface);
}

// 100,000 points in 100,000 elements, and the same answer with one thread
static void test_speed(void **state) {
    (void)state;
    enum { POINTS = 100000 };
    double  *points = malloc(3 * POINTS * sizeof *points);
    uint64_t random = 5;
    for (int i = 0; i < 3 * POINTS; i++) points[i] = 0.5 + 0.505 * test_random(&random);
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        fem_mesh      mesh = shaken_box((fem_element)type, type == FEM_T4 ? 26 : 47, 0.1);
        fem_embedding m = {0}, serial = {0};
        double        start = fem_seconds();
        assert_ok(fem_embed_points(&m, &mesh, POINTS, points));
        double wall = fem_seconds() - start, processor = fem_cpu_seconds();
        fem_set_threads(1);
        assert_ok(fem_embed_points(&serial, &mesh, POINTS, points));
        fem_set_threads(0);
        processor = fem_cpu_seconds() - processor;
        printf("%d points in %d %s: %.3f s; one thread: %.3f s of processor time; outside %d\n", POINTS,
               mesh.element_count, type == FEM_T4 ? "T4" : "H8", wall, processor, m.outside);
        assert_memory_equal(m.element, serial.element, POINTS * sizeof(int));
        assert_memory_equal(m.weights, serial.weights, (size_t)(POINTS * m.width) * sizeof(double));
        assert_int_equal(m.outside, serial.outside);
        fem_embedding_destroy(&m), fem_embedding_destroy(&serial);
        fem_mesh_destroy(&mesh);
    }
    free(points);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inside),
        cmocka_unit_test(test_vertices),
        cmocka_unit_test(test_outside_tetrahedra),
        cmocka_unit_test(test_outside_hexahedra),
        cmocka_unit_test(test_distorted),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_bunny),
        cmocka_unit_test(test_speed),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
