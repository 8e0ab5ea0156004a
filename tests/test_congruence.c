// Copies among the pieces of a mesh: known ones with noise, turned, scaled, their vertices and elements shuffled, are
// found with their transforms; mirror images, other shapes and other materials are not taken for copies.
#include "tests/support.h"

#include <math.h>
#include <string.h>

enum { COPIES = 12 };

static double random_number(void) {
    static unsigned long long state = 12345;
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(state >> 11) / 9007199254740992.0;
}

static void shuffle(int count, int *order) {
    for (int i = 0; i < count; i++) order[i] = i;
    for (int i = count - 1; i > 0; i--) {
        int k = (int)(random_number() * (i + 1)), kept = order[i];
        order[i] = order[k], order[k] = kept;
    }
}

typedef struct crowd {
    fem_mesh mesh;
    int      kind[COPIES], start[COPIES + 1], *vertex; // vertex: of the copy's model, per vertex of the mesh
    double   p[COPIES][3], Q[COPIES][9], scale[COPIES];
} crowd;

// Copies of two bent tubes (the second a mirror image of the first when asked) at random places.
static void make_crowd(crowd *c, bool mirrored, double noise) {
    fem_mesh     models[2] = {{0}};
    const double curves[2][9] = {{0, 0, 0, 0.1, 0, 0.5, 0.4, 0.3, 0.9}, {0, 0, 0, 0.3, 0, 0.5, 0, 0.1, 1.2}};
    const double radius[3] = {0.1, 0.08, 0.05};
    int          vertices = 0, elements = 0;
    for (int k = 0; k < 2; k++) {
        fem_tube tube = {.points = 3, .centre = curves[mirrored ? 0 : k], .radius = radius, .rings = 2, .segment = 0.1};
        assert_ok(fem_generate_tube(&models[k], FEM_T4, &tube));
        for (size_t v = 0; mirrored && k == 1 && v < (size_t)models[k].vertex_count; v++)
            models[k].vertices[3 * v + 1] = -models[k].vertices[3 * v + 1];
        for (size_t e = 0; mirrored && k == 1 && e < (size_t)models[k].element_count; e++) {
            int *corner = models[k].elements + 4 * e, kept = corner[0];
            corner[0] = corner[1], corner[1] = kept;
        }
    }
    for (int i = 0; i < COPIES; i++) {
        c->kind[i] = i % 3 == 1;
        c->start[i] = vertices;
        vertices += models[c->kind[i]].vertex_count, elements += models[c->kind[i]].element_count;
    }
    c->start[COPIES] = vertices;
    assert_ok(fem_mesh_allocate(&c->mesh, FEM_T4, vertices, elements));
    c->vertex = fem_alloc((size_t)vertices, sizeof(int));
    size_t element = 0;
    for (int i = 0; i < COPIES; i++) {
        const fem_mesh *m = &models[c->kind[i]];
        double          turn[3], x[3];
        int            *order = fem_alloc((size_t)m->vertex_count, sizeof(int));
        int            *turned = fem_alloc((size_t)m->element_count, sizeof(int));
        shuffle(m->vertex_count, order);
        shuffle(m->element_count, turned);
        for (int k = 0; k < 3; k++) turn[k] = 3 * (random_number() - 0.5), c->p[i][k] = 10 * random_number();
        mat3_exp(c->Q[i], turn);
        c->scale[i] = 0.5 + random_number();
        for (int v = 0; v < m->vertex_count; v++) { // vertex v of the model becomes vertex order[v]
            double *to = c->mesh.vertices + 3 * (size_t)(c->start[i] + order[v]);
            mat3_mul_vec(x, c->Q[i], m->vertices + 3 * (size_t)v);
            for (int k = 0; k < 3; k++) to[k] = c->p[i][k] + c->scale[i] * (x[k] + noise * 2 * (random_number() - 0.5));
            c->vertex[c->start[i] + order[v]] = v;
        }
        for (int e = 0; e < m->element_count; e++, element++)
            for (size_t k = 0; k < 4; k++)
                c->mesh.elements[4 * element + (k ^ (e % 2 ? 3u : 0u))] = // corners in another even order
                    c->start[i] + order[m->elements[4 * (size_t)turned[e] + k]];
        fem_free(order), fem_free(turned);
    }
    for (int k = 0; k < 2; k++) fem_mesh_destroy(&models[k]);
}

static void crowd_destroy(crowd *c) {
    fem_mesh_destroy(&c->mesh);
    fem_free(c->vertex);
}

// classes, transforms and vertices of known copies
static void check_crowd(double noise, double tolerance) {
    crowd         c = {.vertex = NULL};
    domain_copies found = {0};
    double        worst = 0, error = 0;
    make_crowd(&c, false, noise);
    assert_ok(fem_mesh_check(&c.mesh));
    assert_ok(domain_find_copies(&found, &c.mesh, tolerance));
    assert_int_equal(found.count, COPIES);
    assert_int_equal(found.class_count, 2);
    for (int i = 0; i < COPIES; i++) {
        int           model = found.model[found.class_of[i]];
        const double *Q = found.Q[i];
        double        wanted[9], x[3];
        assert_int_equal(c.kind[i], c.kind[model]);
        assert_true(fabs(found.scale[i] * c.scale[model] / c.scale[i] - 1) < 10 * noise + 1e-12);
        mat3_mul_nt(wanted, c.Q[i], c.Q[model]);
        for (int k = 0; k < 9; k++) worst = fmax(worst, fabs(Q[k] - wanted[k]));
        error = fmax(error, found.error[i]);
        for (int k = found.start[i]; k < found.start[i + 1]; k++) { // the copies of vertices
            int a = found.vertices[found.start[model] + k - found.start[i]], b = found.vertices[k];
            assert_int_equal(c.vertex[a], c.vertex[b]);
            mat3_mul_vec(x, Q, c.mesh.vertices + 3 * (size_t)a);
            for (int j = 0; j < 3; j++)
                assert_true(fabs(found.p[i][j] + found.scale[i] * x[j] - c.mesh.vertices[3 * (size_t)b + (size_t)j]) <=
                            found.error[i] * (1 + 1e-9) + 1e-12);
        }
    }
    printf("noise %.0e: rotations off by %.1e, vertices by %.1e m\n", noise, worst, error);
    assert_true(worst < 10 * noise + 1e-12 && error < 6 * noise + 1e-12);
    assert_true(noise == 0 || error > noise / 10); // the noise was there
    domain_copies_destroy(&found);
    crowd_destroy(&c);
}

static void test_copies(void **state) {
    (void)state;
    check_crowd(0, 1e-6);
    check_crowd(1e-8, 1e-6);
    check_crowd(1e-4, 3e-3);
}

static void test_mirror_images(void **state) {
    (void)state;
    crowd         c = {.vertex = NULL};
    domain_copies found = {0};
    make_crowd(&c, true, 0);
    assert_ok(domain_find_copies(&found, &c.mesh, 1e-6));
    assert_int_equal(found.class_count, 2);
    for (int i = 0; i < COPIES; i++) assert_int_equal(c.kind[i], c.kind[found.model[found.class_of[i]]]);
    domain_copies_destroy(&found);
    crowd_destroy(&c);
}

// a box has many symmetries: any of them will do, and noise above the tolerance makes strangers
static void test_symmetry_and_noise(void **state) {
    (void)state;
    fem_mesh      mesh = {0};
    domain_copies found = {0};
    const double  low[3] = {0, 0, 0}, high[3] = {1, 1, 1};
    const int     cells[3] = {3, 3, 3};
    fem_mesh      box = {0};
    assert_ok(fem_generate_box(&box, FEM_H8, low, high, cells));
    int n = box.vertex_count, m = box.element_count;
    assert_ok(fem_mesh_allocate(&mesh, FEM_H8, 2 * n, 2 * m));
    for (int v = 0; v < n; v++) {
        const double *x = box.vertices + 3 * (size_t)v;
        double        other[3] = {5 - 2 * x[1], 2 * x[0], 2 * x[2]};
        memcpy(mesh.vertices + 3 * (size_t)v, x, 3 * sizeof(double));
        memcpy(mesh.vertices + 3 * (size_t)(n + v), other, sizeof other);
    }
    for (int k = 0; k < 8 * m; k++) mesh.elements[k] = box.elements[k], mesh.elements[8 * m + k] = n + box.elements[k];
    assert_ok(domain_find_copies(&found, &mesh, 1e-6));
    assert_int_equal(found.class_count, 1);
    assert_true(fabs(found.scale[1] - 2) < 1e-12 && found.error[1] < 1e-12);
    mesh.vertices[3 * n] += 0.01; // one corner
    assert_ok(domain_find_copies(&found, &mesh, 1e-4));
    assert_int_equal(found.class_count, 2);
    mesh.vertices[3 * n] -= 0.01;
    assert_int_equal(domain_find_copies(&found, &mesh, 0), FEM_BAD_INPUT);
    assert_non_null(strstr(fem_message(), "tolerance"));
    assert_int_equal(found.class_count, 2); // as it was
    domain_copies_destroy(&found);
    fem_mesh_destroy(&mesh);
    fem_mesh_destroy(&box);
}

static void test_allocation_failures(void **state) {
    (void)state;
    crowd c = {.vertex = NULL};
    int   survived = 0;
    make_crowd(&c, false, 0);
    for (long allowed = 0;; allowed++) {
        domain_copies found = {0};
        fem_memory_fail_after(allowed);
        fem_status status = domain_find_copies(&found, &c.mesh, 1e-6);
        fem_memory_fail_after(-1);
        domain_copies_destroy(&found);
        if (status == FEM_OK) break;
        assert_int_equal(status, FEM_NO_MEMORY);
        survived++;
    }
    printf("%d failing allocations survived\n", survived);
    assert_true(survived > 10);
    crowd_destroy(&c);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_mirror_images),
        cmocka_unit_test(test_symmetry_and_noise),
        cmocka_unit_test(test_allocation_failures),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
