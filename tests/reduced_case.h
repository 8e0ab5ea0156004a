// What the tests of reduced bodies share: a body with a basis, and reduced forces by plain projection of the full ones.
#ifndef LIMBER_TEST_REDUCED_CASE_H
#define LIMBER_TEST_REDUCED_CASE_H

#include "tests/solver_case.h"

// f = U^T f(U q), K = U^T K(U q) U: slow, and right as long as libfem is. One thread at a time.
typedef struct plain_forces {
    const fem_body *body;
    int             n, r;
    const double   *U;
    double         *u, *f, *KU; // n, n, n x r
    fem_sparse      K;
    cubature_forces forces;
} plain_forces;

static inline void plain_evaluate(const void *model, const double *q, double *energy, double *f, double *K,
                                  double *work) {
    plain_forces *p = (plain_forces *)(uintptr_t)model; // its buffers are scratch
    (void)work;
    dense_gemv_set(p->n, p->r, 1, p->U, q, p->u);
    fem_body_evaluate(p->body, p->u, energy, f ? p->f : NULL, K ? &p->K : NULL);
    if (f) dense_gemv_t_set(p->n, p->r, 1, p->U, p->f, f);
    if (!K) return;
    fem_sparse_multiply(&p->K, p->r, p->U, p->KU);
    dense_gemm(true, false, p->r, p->r, p->n, 1, p->U, p->KU, 0, K);
    for (int i = 0; i < p->r; i++) // symmetric to the last bit
        for (int j = 0; j < i; j++) K[i * p->r + j] = K[j * p->r + i];
}

static inline void plain_create(plain_forces *p, const fem_body *body, int r, const double *U) {
    *p = (plain_forces){.body = body, .n = 3 * fem_body_mesh(body)->vertex_count, .r = r, .U = U};
    p->u = fem_alloc((size_t)p->n, sizeof(double));
    p->f = fem_alloc((size_t)p->n, sizeof(double));
    p->KU = fem_alloc((size_t)p->n * (size_t)r, sizeof(double));
    assert_ok(fem_body_matrix(body, &p->K));
    p->forces = (cubature_forces){.r = r, .evaluate = plain_evaluate, .model = p};
}

static inline void plain_destroy(plain_forces *p) {
    fem_free(p->u);
    fem_free(p->f);
    fem_free(p->KU);
    fem_sparse_destroy(&p->K);
}

// A bar, held at x = 0 or free, with its lowest vibration modes; StVK by its polynomial, which is quick, others
// plainly.
typedef struct reduced_bar {
    bar                 b;
    modes_basis         basis;
    plain_forces        plain;
    cubature_polynomial polynomial;
    cubature_forces     forces;
} reduced_bar;

static inline void reduced_bar_create(reduced_bar *c, fem_element type, const double size[3], const int cells[3],
                                      const fem_material *material, bool held, int count) {
    *c = (reduced_bar){0};
    bar_create(&c->b, type, size, cells, material);
    if (!held) memset(c->b.fixed, 0, (size_t)c->b.n);
    fem_sparse K = {0}, M = {0};
    assert_ok(fem_body_matrix(c->b.body, &K));
    assert_ok(fem_body_matrix(c->b.body, &M));
    fem_body_evaluate(c->b.body, c->b.load, NULL, NULL, &K); // the load is zero still: at rest
    fem_body_mass(c->b.body, FEM_MASS_CONSISTENT, &M);
    modes_problem         problem = {.mesh = &c->b.mesh, .K = &K, .M = &M, .fixed = c->b.fixed};
    modes_lanczos_options options = modes_lanczos_default_options();
    options.count = count;
    assert_ok(modes_lanczos(&problem, &options, NULL, &c->basis, NULL));
    fem_sparse_destroy(&K);
    fem_sparse_destroy(&M);
    plain_create(&c->plain, c->b.body, count, c->basis.U);
    c->forces = c->plain.forces;
    if (material->kind != FEM_STVK) return;
    cubature_polynomial_options polynomial_options = cubature_polynomial_default_options();
    assert_ok(cubature_polynomial_create(&c->polynomial, c->b.body, count, c->basis.U, &polynomial_options, NULL));
    c->forces = cubature_polynomial_forces(&c->polynomial);
}

static inline void reduced_bar_destroy(reduced_bar *c) {
    plain_destroy(&c->plain);
    cubature_polynomial_destroy(&c->polynomial);
    modes_basis_destroy(&c->basis);
    bar_destroy(&c->b);
}

// All of the free space: U = L^-T on the free degrees of freedom, M = L L^T there, so that U^T M U = I. Caller frees.
static inline double *whole_basis(const bar *b, fem_mass_kind kind, int *count) {
    fem_sparse M = {0};
    assert_ok(fem_body_matrix(b->body, &M));
    fem_body_mass(b->body, kind, &M);
    int  r = 0;
    int *free_dofs = malloc((size_t)b->n * sizeof *free_dofs);
    assert_non_null(free_dofs);
    for (int i = 0; i < b->n; i++)
        if (!b->fixed[i]) free_dofs[r++] = i;
    double *L = fem_calloc((size_t)r * (size_t)r, sizeof *L), *U = fem_calloc((size_t)b->n * (size_t)r, sizeof *U);
    double *unit = fem_calloc((size_t)b->n, sizeof *unit), *column = fem_calloc((size_t)b->n, sizeof *column);
    for (int j = 0; j < r; j++) {
        unit[free_dofs[j]] = 1;
        fem_sparse_multiply(&M, 1, unit, column);
        unit[free_dofs[j]] = 0;
        for (int i = 0; i < r; i++) L[j * r + i] = column[free_dofs[i]];
    }
    assert_ok(dense_cholesky(r, L));
    for (int l = 0; l < r; l++) { // L^T x = e_l, backwards
        double *x = U + (size_t)l * (size_t)b->n;
        for (int i = r - 1; i >= 0; i--) {
            double sum = i == l;
            for (int k = i + 1; k < r; k++) sum -= L[i * r + k] * x[free_dofs[k]];
            x[free_dofs[i]] = sum / L[i * r + i];
        }
    }
    fem_free(L), fem_free(unit), fem_free(column), free(free_dofs);
    fem_sparse_destroy(&M);
    *count = r;
    return U;
}

#endif
