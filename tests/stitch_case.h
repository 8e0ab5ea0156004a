// What the tests of stitching share: two bars face to face, one held and one free, and a slow full eigen-solve of the
// stitched body.
#ifndef LIMBER_TEST_STITCH_CASE_H
#define LIMBER_TEST_STITCH_CASE_H

#include "tests/modes_sample.h"

typedef struct two_bars {
    sample       both;    // the union, not joined
    fem_mesh     part[2]; // each alone
    int          count;   // stitches that would join them
    modes_stitch stitches[64];
    double       stiffness; // of the material at the seam, about E h
} two_bars;

static inline void two_bars_create(two_bars *t, int along, int across, bool held) {
    const int cells[3] = {along, across, across};
    *t = (two_bars){0};
    for (int p = 0; p < 2; p++) {
        const double low[3] = {0.1 * along * p, 0, 0}, high[3] = {0.1 * along * (p + 1), 0.1 * across, 0.09 * across};
        assert_ok(fem_generate_box(&t->part[p], FEM_T4, low, high, cells));
    }
    const fem_mesh *parts[2] = {&t->part[0], &t->part[1]};
    const char     *names[2] = {"left", "right"};
    assert_ok(fem_mesh_join(&t->both.mesh, 2, parts, names));
    sample_matrices(&t->both);
    if (held) sample_hold(&t->both, "left.x0");
    const fem_set *a = fem_mesh_vertex_set(&t->both.mesh, "left.x1"),
                  *b = fem_mesh_vertex_set(&t->both.mesh, "right.x0");
    int pair_count, *pairs;
    assert_ok(fem_mesh_match(&t->both.mesh, a->count, a->items, b->count, b->items, 1e-9, &pair_count, &pairs));
    assert_int_equal(pair_count, (across + 1) * (across + 1));
    assert_true(pair_count <= 64);
    t->stiffness = 0.1 * t->both.mesh.materials[0].young;
    t->count = pair_count;
    for (int i = 0; i < pair_count; i++) t->stitches[i] = (modes_stitch){pairs[2 * i], pairs[2 * i + 1], t->stiffness};
    fem_free(pairs);
}

static inline void two_bars_destroy(two_bars *t) {
    sample_free(&t->both);
    fem_mesh_destroy(&t->part[0]), fem_mesh_destroy(&t->part[1]);
}

// The modes of the body with these stitches by a dense eigen-solve; rigid ones left out. An independent path: springs
// are added entry by entry.
static inline void full_modes(const sample *p, int count, const modes_stitch *stitches, int rigid, int wanted,
                              modes_basis *basis) {
    int     n = p->n, m = 0, *dofs = fem_alloc((size_t)n, sizeof *dofs);
    double *K = sample_dense(&p->K), *M = sample_dense(&p->M), *values;
    for (int s = 0; s < count; s++)
        for (int i = 0; i < 3; i++) {
            size_t a = 3 * (size_t)stitches[s].a + (size_t)i, b = 3 * (size_t)stitches[s].b + (size_t)i;
            K[a * (size_t)n + a] += stitches[s].stiffness, K[b * (size_t)n + b] += stitches[s].stiffness;
            K[a * (size_t)n + b] -= stitches[s].stiffness, K[b * (size_t)n + a] -= stitches[s].stiffness;
        }
    for (int i = 0; i < n; i++)
        if (!p->fixed[i]) dofs[m++] = i;
    for (int j = 0; j < m; j++)
        for (int i = 0; i < m; i++) {
            K[(size_t)j * (size_t)m + (size_t)i] = K[(size_t)dofs[j] * (size_t)n + (size_t)dofs[i]];
            M[(size_t)j * (size_t)m + (size_t)i] = M[(size_t)dofs[j] * (size_t)n + (size_t)dofs[i]];
        }
    values = fem_alloc((size_t)m, sizeof *values);
    assert_ok(dense_generalized_eigen(m, K, M, values));
    assert_ok(modes_basis_allocate(basis, n, wanted));
    for (int j = 0; j < wanted; j++) {
        basis->omega2[j] = values[rigid + j];
        for (int i = 0; i < m; i++)
            basis->U[(size_t)j * (size_t)n + (size_t)dofs[i]] = K[(size_t)(rigid + j) * (size_t)m + (size_t)i];
    }
    fem_free(K), fem_free(M), fem_free(values), fem_free(dofs);
}

// Modes of the bars alone, padded: the old modes.
static inline void old_modes(const sample *p, int count, modes_basis *basis) {
    modes_lanczos_options options = modes_lanczos_default_options();
    options.count = count;
    assert_ok(modes_lanczos(&p->problem, &options, NULL, basis, NULL));
}

// Largest error of the first `count` frequencies, and the smallest share of these modes in the span of `basis`.
static inline void judge(const sample *p, const modes_basis *basis, const modes_basis *truth, int count, double *error,
                         double *share) {
    double *covered = fem_alloc((size_t)count, sizeof *covered);
    assert_ok(modes_coverage(&p->problem, basis->r, basis->U, count, truth->U, covered));
    *error = 0, *share = 1;
    for (int j = 0; j < count; j++) {
        *error = fmax(*error, fabs(sqrt(basis->omega2[j] / truth->omega2[j]) - 1));
        *share = fmin(*share, covered[j]);
    }
    fem_free(covered);
}

#endif
