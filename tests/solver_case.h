// What the tests of the full-space solver share: a bar held at x = 0, and small independent checks.
#ifndef LIMBER_TEST_SOLVER_CASE_H
#define LIMBER_TEST_SOLVER_CASE_H

#include "tests/support.h"

#include <math.h>

// A box along x with one material, the face x = 0 held.
typedef struct bar {
    fem_mesh       mesh;
    fem_body      *body;
    int            n; // 3 * vertices
    unsigned char *fixed;
    double        *load; // n, zero
    double        *work; // n
} bar;

static inline void bar_create(bar *b, fem_element type, const double size[3], const int cells[3],
                              const fem_material *material) {
    *b = (bar){0};
    double           low[3] = {0, 0, 0};
    fem_body_options options = fem_body_default_options();
    assert_ok(fem_generate_box(&b->mesh, type, low, size, cells));
    assert_ok(fem_mesh_set_material(&b->mesh, material));
    assert_ok(fem_body_create(&b->body, &b->mesh, &options));
    b->n = 3 * b->mesh.vertex_count;
    b->fixed = fem_calloc((size_t)b->n, 1);
    b->load = fem_calloc((size_t)b->n, sizeof *b->load);
    b->work = fem_calloc((size_t)b->n, sizeof *b->work);
    assert_true(b->fixed && b->load && b->work);
    const fem_set *base = fem_mesh_vertex_set(&b->mesh, "x0");
    assert_non_null(base);
    for (int k = 0; k < base->count; k++)
        for (int axis = 0; axis < 3; axis++) b->fixed[3 * base->items[k] + axis] = 1;
}

static inline void bar_destroy(bar *b) {
    fem_body_destroy(b->body);
    fem_mesh_destroy(&b->mesh);
    fem_free(b->fixed);
    fem_free(b->load);
    fem_free(b->work);
}

// Adds a force in total to the vertices of a face.
static inline void bar_pull(bar *b, const char *face, double x, double y, double z) {
    const fem_set *set = fem_mesh_vertex_set(&b->mesh, face);
    const double   total[3] = {x, y, z};
    solver_add_vertex_force(set->count, set->items, total, b->load);
}

static inline fem_material soft_material(fem_material_kind kind, double young, double poisson) {
    fem_material m = fem_material_default();
    m.kind = kind, m.young = young, m.poisson = poisson, m.density = 1000;
    return m;
}

// Mean displacement of a face.
static inline void bar_face_mean(const bar *b, const char *face, const double *u, double mean[3]) {
    const fem_set *set = fem_mesh_vertex_set(&b->mesh, face);
    mean[0] = mean[1] = mean[2] = 0;
    for (int k = 0; k < set->count; k++) vec3_axpy(mean, 1.0 / set->count, u + 3 * (size_t)set->items[k]);
}

static inline double largest_entry(int n, const double *x) {
    double largest = 0;
    for (int i = 0; i < n; i++) largest = fmax(largest, fabs(x[i]));
    return largest;
}

// Sum of vectors, 3 per vertex.
static inline void total_force(int n, const double *f, double sum[3]) {
    sum[0] = sum[1] = sum[2] = 0;
    for (int i = 0; i < n; i++) sum[i % 3] += f[i];
}

#endif
