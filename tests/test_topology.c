// Volumes, surface, graphs, components and quality, against direct definitions on small meshes.
#include "tests/support.h"

#include <math.h>

// A box of cells whose vertices are shaken by `shake` of a cell.
static fem_mesh shaken_box(fem_element type, int cells, double shake) {
    fem_mesh mesh = {0};
    uint64_t random = 17;
    assert_ok(fem_generate_box(&mesh, type, (double[]){0, 0, 0}, (double[]){1, 1, 1}, (int[]){cells, cells, cells}));
    for (int i = 0; i < 3 * mesh.vertex_count; i++) mesh.vertices[i] += shake / cells * test_random(&random);
    return mesh;
}

// det J of the trilinear map at (a, b, c)
static double jacobian(const fem_mesh *mesh, int element, double a, double b, double c) {
    static const int at[8][3] = {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0},
                                 {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}};
    double           J[9] = {0};
    for (int k = 0; k < 8; k++) {
        double t[3] = {a, b, c}, f[3], g[3];
        for (int i = 0; i < 3; i++) f[i] = at[k][i] ? t[i] : 1 - t[i], g[i] = at[k][i] ? 1 : -1;
        double slope[3] = {g[0] * f[1] * f[2], f[0] * g[1] * f[2], f[0] * f[1] * g[2]};
        for (int i = 0; i < 9; i++) J[i] += mesh->vertices[3 * mesh->elements[8 * element + k] + i / 3] * slope[i % 3];
    }
    return mat3_det(J);
}

// the volume of a hexahedron is the integral of det J, which 2 x 2 x 2 Gauss points give exactly
static void test_hexahedron_volume(void **state) {
    (void)state;
    fem_mesh mesh = shaken_box(FEM_H8, 4, 0.35);
    double   error = 0, spread = 0, p = 0.5 - 0.5 / sqrt(3), q = 1 - p;
    for (int e = 0; e < mesh.element_count; e++) {
        double volume = 0;
        for (int k = 0; k < 8; k++) volume += jacobian(&mesh, e, k & 1 ? p : q, k & 2 ? p : q, k & 4 ? p : q) / 8;
        error = fmax(error, fabs(volume - fem_element_volume(&mesh, e)) * 64);
        spread = fmax(spread, fabs(volume * 64 - 1));
    }
    printf("hexahedron volume: %.1e from Gauss quadrature, elements differ by %.2f\n", error, spread);
    assert_true(spread > 0.1);
    assert_true(error < 1e-13);
    fem_mesh_destroy(&mesh);
}

// the sign of a volume tells the orientation
static void test_signed_volume(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        fem_mesh mesh = shaken_box((fem_element)type, 2, 0.1);
        double   volume = fem_element_volume(&mesh, 0);
        for (int i = 0; i < mesh.vertex_count; i++) mesh.vertices[3 * i] *= -1;
        assert_true(volume > 0);
        assert_true(fabs(fem_element_volume(&mesh, 0) + volume) < 1e-15);
        fem_quality q;
        assert_ok(fem_mesh_quality(&mesh, &q));
        printf("mirrored mesh: volumes %g to %g, shape %g\n", q.min_volume, q.max_volume, q.min_shape);
        assert_true(q.max_volume < 0 && q.min_shape < 0);
        fem_mesh_destroy(&mesh);
    }
}

// the surface of a cube of n^3 cells: 12 n^2 triangles; each lies in the element that is named and looks away from it
static void test_surface(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        fem_mesh mesh = shaken_box((fem_element)type, 5, 0);
        int      count, *triangles, *element, width = fem_element_vertices(mesh.type);
        assert_ok(fem_mesh_surface(&mesh, &count, &triangles, &element));
        assert_int_equal(count, 12 * 25);
        double area = 0;
        for (int t = 0; t < count; t++) {
            const int    *v = triangles + 3 * t, *corners = mesh.elements + width * element[t];
            const double *x[3] = {mesh.vertices + 3 * v[0], mesh.vertices + 3 * v[1], mesh.vertices + 3 * v[2]};
            double        a[3], b[3], n[3], out[3] = {0, 0, 0};
            int           shared = 0;
            for (int k = 0; k < width; k++) {
                for (int i = 0; i < 3; i++) shared += corners[k] == v[i];
                vec3_axpy(out, -1.0 / width, mesh.vertices + 3 * corners[k]);
            }
            assert_int_equal(shared, 3);
            for (int i = 0; i < 3; i++) vec3_axpy(out, 1.0 / 3, x[i]);
            vec3_sub(a, x[1], x[0]), vec3_sub(b, x[2], x[0]), vec3_cross(n, a, b);
            assert_true(vec3_dot(n, out) > 0);
            area += vec3_norm(n) / 2;
            if (t > 0) assert_true(element[t] >= element[t - 1]);
        }
        printf("cube: %d triangles of area %.15g\n", count, area);
        assert_true(fabs(area - 6) < 1e-12);
        fem_free(triangles), fem_free(element);
        fem_mesh_destroy(&mesh);
    }
}

// three elements on one face are refused, with their numbers as the file has them
static void test_surface_refuses(void **state) {
    (void)state;
    fem_mesh mesh = {0};
    int      count, *triangles = NULL, *start = NULL;
    assert_ok(fem_mesh_allocate(&mesh, FEM_T4, 6, 3));
    const int elements[12] = {0, 1, 2, 3, 0, 2, 1, 4, 0, 1, 2, 5};
    memcpy(mesh.elements, elements, sizeof elements);
    mesh.file_base = 1, mesh.element_base = 1;
    assert_fails(fem_mesh_surface(&mesh, &count, &triangles, NULL), FEM_BAD_INPUT,
                 "elements 1, 2 and 3 share one face");
    assert_fails(fem_mesh_element_graph(&mesh, &start, &triangles), FEM_BAD_INPUT, "share one face");
    assert_null(triangles);
    fem_mesh_destroy(&mesh);
}

static int shared_vertices(const fem_mesh *mesh, int a, int b) {
    int width = fem_element_vertices(mesh->type), shared = 0;
    for (int i = 0; i < width; i++)
        for (int k = 0; k < width; k++) shared += mesh->elements[a * width + i] == mesh->elements[b * width + k];
    return shared;
}

static bool has_vertex(const fem_mesh *mesh, int element, int vertex) {
    int width = fem_element_vertices(mesh->type);
    for (int i = 0; i < width; i++)
        if (mesh->elements[element * width + i] == vertex) return true;
    return false;
}

// graphs are what their definitions say, entry by entry, in ascending order
static void test_graphs(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        fem_mesh mesh = shaken_box((fem_element)type, 3, 0);
        int     *start, *list, n = mesh.vertex_count, m = mesh.element_count, width = fem_element_vertices(mesh.type);
        bool    *near = calloc((size_t)n * (size_t)n, sizeof *near);
        assert_non_null(near);
        assert_ok(fem_mesh_element_graph(&mesh, &start, &list));
        int position = 0;
        for (int e = 0; e < m; e++) {
            assert_int_equal(start[e], position);
            for (int f = 0; f < m; f++)
                if (e != f && shared_vertices(&mesh, e, f) == (type == FEM_T4 ? 3 : 4))
                    assert_int_equal(list[position++], f);
        }
        assert_int_equal(start[m], position);
        int element_edges = position;
        fem_free(start), fem_free(list);

        assert_ok(fem_mesh_vertex_elements(&mesh, &start, &list));
        position = 0;
        for (int v = 0; v < n; v++) {
            assert_int_equal(start[v], position);
            for (int e = 0; e < m; e++)
                if (has_vertex(&mesh, e, v)) assert_int_equal(list[position++], e);
        }
        assert_int_equal(start[n], position);
        fem_free(start), fem_free(list);

        for (int e = 0; e < m; e++)
            for (int i = 0; i < width * width; i++)
                near[mesh.elements[e * width + i / width] * n + mesh.elements[e * width + i % width]] = true;
        assert_ok(fem_mesh_vertex_graph(&mesh, &start, &list));
        position = 0;
        for (int v = 0; v < n; v++) {
            assert_int_equal(start[v], position);
            for (int w = 0; w < n; w++)
                if (v != w && near[v * n + w]) assert_int_equal(list[position++], w);
        }
        assert_int_equal(start[n], position);
        printf("%s: %d neighbours of elements, %d of vertices\n", type == FEM_T4 ? "T4" : "H8", element_edges,
               position);
        fem_free(start), fem_free(list), free(near);
        fem_mesh_destroy(&mesh);
    }
}

// two separate boxes, a vertex that belongs to nothing, a long chain whose numbers run backwards
static void test_components(void **state) {
    (void)state;
    fem_mesh mesh = {0};
    int      labels[9], count;
    assert_ok(fem_mesh_allocate(&mesh, FEM_T4, 9, 2));
    const int elements[8] = {8, 7, 6, 5, 3, 2, 1, 0};
    memcpy(mesh.elements, elements, sizeof elements);
    assert_ok(fem_mesh_components(&mesh, labels, &count));
    assert_int_equal(count, 2);
    const int expected[9] = {0, 0, 0, 0, -1, 1, 1, 1, 1};
    assert_memory_equal(labels, expected, sizeof labels);
    fem_quality q;
    assert_ok(fem_mesh_quality(&mesh, &q)); // all vertices in one place: nothing to divide by
    assert_int_equal(q.unused_vertices, 1);
    assert_true(q.min_shape == 0 && q.min_dihedral == 0);
    fem_mesh_destroy(&mesh);

    enum { LENGTH = 300000 };
    int *chain = malloc((LENGTH + 3) * sizeof *chain);
    assert_non_null(chain);
    assert_ok(fem_mesh_allocate(&mesh, FEM_T4, LENGTH + 3, LENGTH));
    for (int e = 0; e < LENGTH; e++)
        for (int k = 0; k < 4; k++) mesh.elements[4 * e + k] = LENGTH + 2 - e - k;
    double start = fem_seconds();
    assert_ok(fem_mesh_components(&mesh, chain, &count));
    printf("chain of %d elements: %d component in %.3f s\n", LENGTH, count, fem_seconds() - start);
    assert_int_equal(count, 1);
    free(chain);
    fem_mesh_destroy(&mesh);
}

// a regular tetrahedron has 70.53 degrees and shape 1; a cube 90 and 1; Kuhn's tetrahedra 45 and 90;
// a sheared box has the angle of the shear
static void test_quality(void **state) {
    (void)state;
    fem_mesh    mesh = {0};
    fem_quality q;
    assert_ok(fem_mesh_allocate(&mesh, FEM_T4, 4, 1));
    const double regular[12] = {1, 1, 1, -1, 1, -1, 1, -1, -1, -1, -1, 1};
    memcpy(mesh.vertices, regular, sizeof regular);
    for (int k = 0; k < 4; k++) mesh.elements[k] = k;
    assert_ok(fem_mesh_quality(&mesh, &q));
    printf("regular: dihedral %.4f, shape %.15f, volume %.15f\n", q.min_dihedral, q.min_shape, q.volume);
    assert_true(fabs(q.min_shape - 1) < 1e-14 && fabs(q.min_dihedral - acos(1.0 / 3) * 180 / M_PI) < 1e-10);
    assert_true(fabs(q.max_dihedral - q.min_dihedral) < 1e-10 && fabs(q.volume - 8.0 / 3) < 1e-14);
    fem_mesh_destroy(&mesh);

    mesh = shaken_box(FEM_T4, 3, 0);
    assert_ok(fem_mesh_quality(&mesh, &q));
    assert_true(fabs(q.min_dihedral - 45) < 1e-6 && fabs(q.max_dihedral - 90) < 1e-6 && fabs(q.volume - 1) < 1e-14);
    fem_mesh_destroy(&mesh);

    mesh = shaken_box(FEM_H8, 3, 0);
    assert_ok(fem_mesh_quality(&mesh, &q));
    assert_true(fabs(q.min_dihedral - 90) < 1e-6 && fabs(q.min_shape - 1) < 1e-14 && q.components == 1);
    for (int v = 0; v < mesh.vertex_count; v++) mesh.vertices[3 * v] += mesh.vertices[3 * v + 1]; // 45 degrees
    assert_ok(fem_mesh_quality(&mesh, &q));
    printf("sheared cube: dihedral %.4f..%.4f, scaled Jacobian %.6f\n", q.min_dihedral, q.max_dihedral, q.min_shape);
    assert_true(fabs(q.min_dihedral - 45) < 1e-6 && fabs(q.max_dihedral - 135) < 1e-6);
    assert_true(fabs(q.min_shape - sqrt(0.5)) < 1e-12 && fabs(q.high[0] - 2) < 1e-14 && q.low[0] == 0);
    fem_mesh_destroy(&mesh);
}

static fem_status call(int which, const fem_mesh *mesh, int *labels) {
    int        *a = NULL, *b = NULL, count;
    fem_quality q;
    fem_status  status = which == 0   ? fem_mesh_surface(mesh, &count, &a, &b)
                         : which == 1 ? fem_mesh_element_graph(mesh, &a, &b)
                         : which == 2 ? fem_mesh_vertex_graph(mesh, &a, &b)
                         : which == 3 ? fem_mesh_vertex_elements(mesh, &a, &b)
                         : which == 4 ? fem_mesh_components(mesh, labels, &count)
                                      : fem_mesh_quality(mesh, &q);
    if (status != FEM_OK) assert_true(!a && !b);
    fem_free(a), fem_free(b);
    return status;
}

// every allocation fails once: nothing is lost, nothing is half done
static void test_memory(void **state) {
    (void)state;
    fem_mesh mesh = shaken_box(FEM_H8, 2, 0);
    int      labels[27];
    long     before = fem_memory_blocks(), walked = 0;
    for (int which = 0; which < 6; which++)
        for (long n = 0;; n++, walked++) {
            fem_memory_fail_after(n);
            fem_status status = call(which, &mesh, labels);
            fem_memory_fail_after(-1);
            assert_int_equal(fem_memory_blocks(), before);
            if (status == FEM_OK) break;
            assert_int_equal(status, FEM_NO_MEMORY);
        }
    printf("%ld refused allocations\n", walked);
    assert_true(walked > 15);
    fem_mesh_destroy(&mesh);
}

// linear time: a million tetrahedra; printed is processor time, which should stay below a second each
static void test_speed(void **state) {
    (void)state;
    fem_mesh mesh = shaken_box(FEM_T4, 56, 0.1);
    int      count, *a, *b;
    double   t0 = fem_cpu_seconds();
    assert_ok(fem_mesh_surface(&mesh, &count, &a, &b));
    double t1 = fem_cpu_seconds();
    fem_free(a), fem_free(b);
    assert_ok(fem_mesh_vertex_graph(&mesh, &a, &b));
    double t2 = fem_cpu_seconds();
    fem_free(a), fem_free(b);
    assert_ok(fem_mesh_element_graph(&mesh, &a, &b));
    double t3 = fem_cpu_seconds();
    fem_free(a), fem_free(b);
    fem_quality q;
    assert_ok(fem_mesh_quality(&mesh, &q));
    printf("%d tetrahedra: surface %.2f s, vertex graph %.2f s, element graph %.2f s, quality %.2f s\n",
           mesh.element_count, t1 - t0, t2 - t1, t3 - t2, fem_cpu_seconds() - t3);
    assert_int_equal(count, 12 * 56 * 56);
    fem_mesh_destroy(&mesh);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hexahedron_volume),
        cmocka_unit_test(test_signed_volume),
        cmocka_unit_test(test_surface),
        cmocka_unit_test(test_surface_refuses),
        cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_components),
        cmocka_unit_test(test_quality),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_speed),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
