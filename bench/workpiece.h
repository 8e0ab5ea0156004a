// A body with what modes and reduced runs stand on, for the benchmarks that compare reduced with full motion.
#ifndef LIMBER_BENCH_WORKPIECE_H
#define LIMBER_BENCH_WORKPIECE_H

#include "bench/bench.h"
#include "bench/plot.h"

typedef struct workpiece {
    fem_mesh       mesh;
    fem_body      *body;
    fem_sparse     K, M;
    unsigned char *fixed; // NULL: free
    modes_problem  problem;
    int            n; // 3 x vertices
} workpiece;

// Takes over the mesh and `fixed`.
static inline void workpiece_create(workpiece *w, fem_mesh *mesh, unsigned char *fixed) {
    fem_body_options options = fem_body_default_options();
    *w = (workpiece){.mesh = *mesh, .fixed = fixed, .n = 3 * mesh->vertex_count};
    *mesh = (fem_mesh){0};
    double *u = fem_calloc((size_t)w->n, sizeof *u);
    bench_try(fem_body_create(&w->body, &w->mesh, &options));
    bench_try(fem_body_matrix(w->body, &w->K));
    bench_try(fem_body_matrix(w->body, &w->M));
    fem_body_evaluate(w->body, u, NULL, NULL, &w->K);
    fem_body_mass(w->body, FEM_MASS_CONSISTENT, &w->M);
    w->problem = (modes_problem){.mesh = &w->mesh, .K = &w->K, .M = &w->M, .fixed = fixed};
    fem_free(u);
}

static inline void workpiece_destroy(workpiece *w) {
    fem_sparse_destroy(&w->K);
    fem_sparse_destroy(&w->M);
    fem_body_destroy(w->body);
    fem_free(w->fixed);
    fem_mesh_destroy(&w->mesh);
}

// Vertices in a box, all three degrees of freedom held.
static inline unsigned char *workpiece_hold(const fem_mesh *mesh, const double low[3], const double high[3]) {
    unsigned char *fixed = fem_calloc(3 * (size_t)mesh->vertex_count, 1);
    for (int v = 0; fixed && v < mesh->vertex_count; v++) {
        bool inside = true;
        for (int k = 0; k < 3; k++) {
            double x = mesh->vertices[3 * (size_t)v + (size_t)k];
            inside = inside && x >= low[k] && x <= high[k];
        }
        if (inside) memset(fixed + 3 * (size_t)v, 1, 3);
    }
    return fixed;
}

// Vertices in a box; the caller frees the list.
static inline int *workpiece_select(const fem_mesh *mesh, const double low[3], const double high[3], int *count) {
    unsigned char *inside = workpiece_hold(mesh, low, high);
    int           *items = fem_alloc((size_t)mesh->vertex_count, sizeof *items);
    *count = 0;
    for (int v = 0; v < mesh->vertex_count; v++)
        if (inside[3 * v]) items[(*count)++] = v;
    fem_free(inside);
    return items;
}

// |x| in the mass norm
static inline double workpiece_norm(const workpiece *w, const double *x) {
    double *Mx = fem_alloc((size_t)w->n, sizeof *Mx);
    fem_sparse_multiply(&w->M, 1, x, Mx);
    double norm = sqrt(fmax(0, dense_dot(w->n, x, Mx)));
    fem_free(Mx);
    return norm;
}

// Reduced statics: f(q) = load by Newton's method in `steps` equal parts of the load, from q. False when it fails.
static inline bool bench_reduced_static(const cubature_forces *forces, const double *load, int steps, double *q) {
    int     r = forces->r;
    double *f = fem_alloc((size_t)r, sizeof *f), *K = fem_alloc((size_t)r * (size_t)r, sizeof *K);
    double *work = fem_alloc(forces->work + 1, sizeof *work), *d = fem_alloc((size_t)r, sizeof *d);
    bool    good = true;
    for (int s = 1; s <= steps && good; s++)
        for (int iteration = 0;; iteration++) {
            double size = 0, residual = 0;
            forces->evaluate(forces->model, q, NULL, f, K, work);
            for (int i = 0; i < r; i++) {
                d[i] = (double)s / steps * load[i] - f[i];
                residual += d[i] * d[i], size += load[i] * load[i];
            }
            if (residual < 1e-20 * size) break;
            good = iteration < 60 && dense_cholesky(r, K) == FEM_OK;
            if (!good) break;
            dense_cholesky_solve(r, K, 1, d);
            dense_axpy(r, 1, d, q);
        }
    fem_free(f), fem_free(K), fem_free(work), fem_free(d);
    return good;
}

#endif
