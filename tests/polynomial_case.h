// A body with a basis, for the tests of reduced forces: a box whose inner vertices are moved about, with up to three
// materials, and modes that are random cubic fields with some noise, so that q of order 1 gives strains of order 1.
#ifndef LIMBER_TEST_POLYNOMIAL_CASE_H
#define LIMBER_TEST_POLYNOMIAL_CASE_H

#include "tests/support.h"
#include "libcubature/cubature.h"

#include <math.h>

typedef struct polynomial_case {
    fem_mesh       mesh;
    fem_body      *body;
    int            n, r;
    double        *U;
    cubature_full *full;
    double        *work; // for full and polynomial forces
} polynomial_case;

typedef enum case_materials { CASE_ISOTROPIC, CASE_ORTHOTROPIC, CASE_MIXED } case_materials;

// Two groups of one kind, or one of each with a third; every third element belongs to the next.
static inline void case_set_materials(fem_mesh *mesh, case_materials kind) {
    int           count = kind == CASE_MIXED ? 3 : 2;
    fem_material *materials = fem_alloc(4, sizeof *materials);
    fem_region   *regions = fem_alloc(4, sizeof *regions);
    double        s = sin(0.4), c = cos(0.4);
    double        frame[9] = {c, -s, 0, s * 0.6, c * 0.6, -0.8, s * 0.8, c * 0.8, 0.6}; // a rotation
    assert_non_null(materials), assert_non_null(regions);
    for (int i = 0; i < 4; i++) { // the fourth has no elements
        fem_material m = fem_material_default();
        snprintf(m.name, sizeof m.name, "m%d", i);
        m.kind = kind == CASE_ISOTROPIC || (kind == CASE_MIXED && i != 1) ? FEM_STVK : FEM_ORTHOTROPIC;
        m.young = 3 + 2 * i, m.poisson = 0.3 + 0.1 * (i == 1), m.density = 2 + i;
        m.young3[0] = 6 + i, m.young3[1] = 3, m.young3[2] = 2;
        m.poisson3[0] = 0.3, m.poisson3[1] = 0.25, m.poisson3[2] = 0.1;
        m.shear3[0] = 1, m.shear3[1] = 0.8, m.shear3[2] = 1.2 + i;
        memcpy(m.frame, frame, sizeof frame);
        materials[i] = m;
        regions[i] = (fem_region){.name = fem_copy_string(m.name), .material = i};
    }
    for (int i = 0; i < mesh->region_count; i++) fem_free(mesh->regions[i].name);
    fem_free(mesh->materials), fem_free(mesh->regions);
    mesh->materials = materials, mesh->material_count = 4;
    mesh->regions = regions, mesh->region_count = 4;
    for (int e = 0; e < mesh->element_count; e++) mesh->region[e] = e / 3 % count;
    assert_ok(fem_mesh_check(mesh));
}

static inline void case_fill_modes(polynomial_case *c) {
    uint64_t seed = 77;
    for (int j = 0; j < c->r; j++) {
        double a[60];
        test_random_fill(&seed, 60, 0.5, a);
        for (int v = 0; v < c->mesh.vertex_count; v++) {
            const double *x = c->mesh.vertices + 3 * v;
            for (int i = 0; i < 3; i++) {
                double *k = a + 20 * i, sum = 0;
                for (int d = 0; d < 3; d++)
                    sum += x[d] * (k[d] + x[(d + 1) % 3] * (k[3 + d] + x[d] * k[6 + d]) + x[d] * x[d] * k[9 + d]);
                c->U[(size_t)j * (size_t)c->n + (size_t)(3 * v + i)] = sum + 0.01 * test_random(&seed);
            }
        }
    }
}

static inline void case_create(polynomial_case *c, fem_element type, case_materials kind, int quadrature, int r,
                               const int cells[3], double scale) {
    *c = (polynomial_case){.r = r};
    const double     low[3] = {0, 0, 0}, high[3] = {1.25, 0.8, 0.6};
    uint64_t         seed = 21;
    fem_body_options options = fem_body_default_options();
    options.quadrature = quadrature;
    assert_ok(fem_generate_box(&c->mesh, type, low, high, cells));
    for (int v = 0; v < c->mesh.vertex_count; v++) {
        double *x = c->mesh.vertices + 3 * v;
        bool    inside = true;
        for (int i = 0; i < 3; i++) inside = inside && x[i] > low[i] + 1e-9 && x[i] < high[i] - 1e-9;
        for (int i = 0; i < 3; i++) x[i] += inside ? 0.03 * test_random(&seed) : 0;
    }
    case_set_materials(&c->mesh, kind);
    c->n = 3 * c->mesh.vertex_count;
    c->U = fem_alloc((size_t)c->n * (size_t)r, sizeof *c->U);
    assert_non_null(c->U);
    case_fill_modes(c);
    for (int i = 0; i < c->n; i++) c->mesh.vertices[i] *= scale; // the modes are those of the unscaled body
    assert_ok(fem_body_create(&c->body, &c->mesh, &options));
    assert_ok(cubature_full_create(&c->full, c->body, r, c->U));
    c->work = fem_alloc(cubature_full_forces(c->full).work, sizeof *c->work);
    assert_non_null(c->work);
}

static inline void case_destroy(polynomial_case *c) {
    cubature_full_destroy(c->full);
    fem_body_destroy(c->body);
    fem_mesh_destroy(&c->mesh);
    fem_free(c->U), fem_free(c->work);
}

static inline void case_polynomial(polynomial_case *c, cubature_polynomial *p) {
    cubature_polynomial_options options = cubature_polynomial_default_options();
    assert_ok(cubature_polynomial_create(p, c->body, c->r, c->U, &options, NULL));
}

#endif
