// What the tests of derivatives, condensing and warping share: small bodies of every material with their matrices, and
// dense algebra on their free degrees of freedom.
#ifndef LIMBER_TEST_MODES_CASE_H
#define LIMBER_TEST_MODES_CASE_H

#include "tests/support.h"

#include <math.h>

typedef struct sample {
    fem_mesh       mesh;
    fem_body      *body;
    fem_sparse     K, M;
    unsigned char *fixed;
    int            n; // 3 * vertices
    modes_problem  problem;
    modes_inverse *inverse;
    modes_basis    basis;
} sample;

static inline fem_material sample_material(fem_material_kind kind) {
    fem_material m = fem_material_default();
    m.kind = kind;
    m.young3[0] = 1.5e6, m.young3[1] = 0.8e6, m.young3[2] = 1.1e6; // not isotropic when orthotropic
    return m;
}

static inline void sample_finish(sample *s, bool held, int modes) {
    fem_body_options options = fem_body_default_options();
    s->n = 3 * s->mesh.vertex_count;
    assert_ok(fem_body_create(&s->body, &s->mesh, &options));
    assert_ok(fem_body_matrix(s->body, &s->K));
    assert_ok(fem_body_matrix(s->body, &s->M));
    double *zero = fem_calloc((size_t)s->n, sizeof *zero);
    fem_body_evaluate(s->body, zero, NULL, NULL, &s->K);
    fem_body_mass(s->body, FEM_MASS_CONSISTENT, &s->M);
    fem_free(zero);
    s->fixed = fem_calloc((size_t)s->n, 1);
    const fem_set *side = fem_mesh_vertex_set(&s->mesh, "x0");
    for (int i = 0; held && i < side->count; i++) memset(s->fixed + 3 * side->items[i], 1, 3);
    s->problem = (modes_problem){.mesh = &s->mesh, .K = &s->K, .M = &s->M, .fixed = s->fixed};
    assert_ok(modes_inverse_create(&s->inverse, &s->problem, MODES_BORDER_MASS));
    if (modes == 0) return;
    modes_lanczos_options lanczos = modes_lanczos_default_options();
    lanczos.count = modes;
    assert_ok(modes_lanczos(&s->problem, &lanczos, NULL, &s->basis, NULL));
}

// A crooked box, so that no two frequencies agree. The problem points into the sample: do not move it.
static inline void sample_create(sample *s, fem_element type, const int cells[3], fem_material_kind kind, bool held,
                                 int modes) {
    const double low[3] = {0, 0, 0}, high[3] = {0.3 * cells[0], 0.25 * cells[1], 0.2 * cells[2]};
    fem_material material = sample_material(kind);
    *s = (sample){0};
    assert_ok(fem_generate_box(&s->mesh, type, low, high, cells));
    for (int i = 0; i < 3 * s->mesh.vertex_count; i++) s->mesh.vertices[i] += 0.02 * sin(7.0 * i);
    assert_ok(fem_mesh_set_material(&s->mesh, &material));
    sample_finish(s, held, modes);
}

static inline void sample_destroy(sample *s) {
    modes_inverse_destroy(s->inverse);
    modes_basis_destroy(&s->basis);
    fem_sparse_destroy(&s->K), fem_sparse_destroy(&s->M);
    fem_body_destroy(s->body);
    fem_mesh_destroy(&s->mesh);
    fem_free(s->fixed);
}

// Free degrees of freedom in order; returns their number.
static inline int sample_free(const sample *s, int *dofs) {
    int m = 0;
    for (int i = 0; i < s->n; i++)
        if (!s->fixed[i]) dofs[m++] = i;
    return m;
}

// Dense copy of a sparse matrix on the free degrees of freedom (m x m, allocated), column by column.
static inline double *sample_dense(const sample *s, const fem_sparse *A, int m, const int *dofs) {
    double *D = fem_alloc((size_t)m * (size_t)m, sizeof *D), *x = fem_calloc((size_t)s->n, sizeof *x),
           *y = fem_alloc((size_t)s->n, sizeof *y);
    for (int j = 0; j < m; j++) {
        x[dofs[j]] = 1;
        fem_sparse_multiply(A, 1, x, y);
        x[dofs[j]] = 0;
        for (int i = 0; i < m; i++) D[(size_t)j * (size_t)m + (size_t)i] = y[dofs[i]];
    }
    fem_free(x), fem_free(y);
    return D;
}

static inline double mass_product(const sample *s, const double *x, const double *y) {
    double *z = fem_alloc((size_t)s->n, sizeof *z);
    fem_sparse_multiply(&s->M, 1, y, z);
    double product = dense_dot(s->n, x, z);
    fem_free(z);
    return product;
}

static inline double *column(const double *X, int n, int j) { return (double *)X + (size_t)j * (size_t)n; }

static inline const char *element_name(fem_element type) { return type == FEM_T4 ? "T4" : "H8"; }

#endif
