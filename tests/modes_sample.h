// What the tests of bases share: a small body with its matrices, and slow independent checks.
#ifndef LIMBER_TEST_MODES_SAMPLE_H
#define LIMBER_TEST_MODES_SAMPLE_H

#include "tests/support.h"

#include <math.h>

typedef struct sample {
    fem_mesh       mesh;
    fem_body      *body;
    fem_sparse     K, M;
    unsigned char *fixed;
    modes_problem  problem; // of this very struct: do not copy it
    int            n;
} sample;

// The mesh must be there.
static inline void sample_matrices(sample *p) {
    fem_body_options options = fem_body_default_options();
    p->n = 3 * p->mesh.vertex_count;
    assert_ok(fem_body_create(&p->body, &p->mesh, &options));
    assert_ok(fem_body_matrix(p->body, &p->K));
    assert_ok(fem_body_matrix(p->body, &p->M));
    double *u = fem_calloc((size_t)p->n, sizeof *u);
    p->fixed = fem_calloc((size_t)p->n, 1);
    assert_true(u && p->fixed);
    fem_body_evaluate(p->body, u, NULL, NULL, &p->K);
    fem_body_mass(p->body, FEM_MASS_CONSISTENT, &p->M);
    fem_free(u);
    p->problem = (modes_problem){.mesh = &p->mesh, .K = &p->K, .M = &p->M, .fixed = p->fixed};
}

// Cells of different lengths, so that no two bending modes have the same frequency.
static inline void sample_box(sample *p, fem_element type, int x, int y, int z, const fem_material *material) {
    const double low[3] = {0, 0, 0}, high[3] = {0.3 * x, 0.25 * y, 0.2 * z};
    const int    cells[3] = {x, y, z};
    *p = (sample){0};
    assert_ok(fem_generate_box(&p->mesh, type, low, high, cells));
    if (material) assert_ok(fem_mesh_set_material(&p->mesh, material));
    sample_matrices(p);
}

static inline void sample_hold(sample *p, const char *set) {
    const fem_set *side = fem_mesh_vertex_set(&p->mesh, set);
    assert_non_null(side);
    for (int i = 0; i < side->count; i++) memset(p->fixed + 3 * side->items[i], 1, 3);
}

static inline void sample_free(sample *p) {
    fem_sparse_destroy(&p->K), fem_sparse_destroy(&p->M);
    fem_body_destroy(p->body);
    fem_mesh_destroy(&p->mesh);
    fem_free(p->fixed);
}

// Two boxes side by side, not joined.
static inline void sample_two_boxes(sample *p) {
    sample a, b;
    *p = (sample){0};
    sample_box(&a, FEM_T4, 4, 3, 2, NULL);
    sample_box(&b, FEM_T4, 4, 3, 3, NULL);
    assert_ok(fem_mesh_allocate(&p->mesh, FEM_T4, a.mesh.vertex_count + b.mesh.vertex_count,
                                a.mesh.element_count + b.mesh.element_count));
    for (int i = 0; i < a.n; i++) p->mesh.vertices[i] = a.mesh.vertices[i];
    for (int i = 0; i < b.n; i++) p->mesh.vertices[a.n + i] = b.mesh.vertices[i] + (i % 3 == 0 ? 10 : 0);
    memcpy(p->mesh.elements, a.mesh.elements, 16 * (size_t)a.mesh.element_count);
    for (int i = 0; i < 4 * b.mesh.element_count; i++)
        p->mesh.elements[4 * a.mesh.element_count + i] = b.mesh.elements[i] + a.mesh.vertex_count;
    sample_free(&a), sample_free(&b);
    sample_matrices(p);
}

// The whole matrix, n x n, column by column.
static inline double *sample_dense(const fem_sparse *A) {
    int     n = 3 * A->n;
    double *D = fem_alloc((size_t)n * (size_t)n, sizeof *D), *x = fem_calloc((size_t)n, sizeof *x);
    assert_true(D && x);
    for (int j = 0; j < n; j++) {
        x[j] = 1;
        fem_sparse_multiply(A, 1, x, D + (size_t)j * (size_t)n);
        x[j] = 0;
    }
    fem_free(x);
    return D;
}

// Makes rows and columns of the fixed degrees of freedom those of the identity.
static inline void dense_hold(int n, const unsigned char *fixed, double *D) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            if (fixed[i] || fixed[j]) D[(size_t)j * (size_t)n + (size_t)i] = i == j;
}

// max |U^T M U - I|
static inline double mass_orthogonality(const sample *p, int r, const double *U) {
    double *MU = fem_alloc((size_t)p->n * (size_t)r, sizeof *MU), *G = fem_alloc((size_t)r * (size_t)r, sizeof *G);
    double  worst = 0;
    assert_true(MU && G);
    fem_sparse_multiply(&p->M, r, U, MU);
    dense_gemm(true, false, r, r, p->n, 1, U, MU, 0, G);
    for (int i = 0; i < r * r; i++) worst = fmax(worst, fabs(G[i] - (i % (r + 1) == 0)));
    fem_free(MU), fem_free(G);
    return worst;
}

// |x - U U^T M x| / |x| in the mass norm: what of x a mass-orthonormal basis does not have.
static inline double not_covered(const sample *p, int r, const double *U, const double *x) {
    double *y = fem_alloc((size_t)p->n, sizeof *y), *c = fem_alloc((size_t)r, sizeof *c), *z;
    z = fem_copy(x, (size_t)p->n, sizeof *x);
    assert_true(y && c && z);
    fem_sparse_multiply(&p->M, 1, x, y);
    double whole = dense_dot(p->n, x, y);
    dense_gemv_t_set(p->n, r, 1, U, y, c);
    dense_gemv_add(p->n, r, -1, U, c, z);
    fem_sparse_multiply(&p->M, 1, z, y);
    double rest = dense_dot(p->n, z, y);
    fem_free(y), fem_free(c), fem_free(z);
    return sqrt(fmax(rest, 0) / whole);
}

#endif
