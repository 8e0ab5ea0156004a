// What tests and benchmarks of trees made of meshes share: a class from a mesh that is held at one end, with a basis of
// inertia modes and the shapes that unit wrenches on its interfaces make (theory: interface-aware Krylov seeds).
#ifndef LIMBER_TEST_TREE_BODY_H
#define LIMBER_TEST_TREE_BODY_H

#include "libscene/scene.h"

#include <string.h>

// f = K q
typedef struct body_forces {
    int     r;
    double *K;
} body_forces;

static inline void body_evaluate(const void *model, const double *q, double *energy, double *f, double *K,
                                 double *work) {
    const body_forces *m = model;
    size_t             r = (size_t)m->r;
    (void)work;
    if (energy) *energy = 0;
    for (size_t i = 0; i < r; i++) {
        double sum = 0;
        for (size_t j = 0; j < r; j++) sum += m->K[i * r + j] * q[j];
        if (energy) *energy += 0.5 * q[i] * sum;
        if (f) f[i] = sum;
    }
    if (K) memcpy(K, m->K, r * r * sizeof *K);
}

typedef struct tree_body {
    fem_mesh          mesh;
    fem_body         *body;
    fem_sparse        K, M;
    unsigned char    *fixed;
    int               n, r;
    double           *U; // n x r
    body_forces       forces;
    solver_inertia    inertia;
    domain_interface *interfaces;
    int               interface_count;
} tree_body;

// The six rigid motions about c, restricted to `vertices` (NULL: all), as columns of n.
static inline void tree_body_rigid(const tree_body *b, const double c[3], int count, const int *vertices, double *R) {
    memset(R, 0, 6 * (size_t)b->n * sizeof *R);
    for (int k = 0; k < (vertices ? count : b->mesh.vertex_count); k++) {
        int           v = vertices ? vertices[k] : k;
        const double *X = b->mesh.vertices + 3 * (size_t)v;
        for (int i = 0; i < 3; i++) {
            double axis[3] = {i == 0, i == 1, i == 2}, d[3] = {X[0] - c[0], X[1] - c[1], X[2] - c[2]}, u[3];
            vec3_cross(u, axis, d);
            R[(size_t)b->n * (size_t)i + 3 * (size_t)v + (size_t)i] = 1;
            for (int k2 = 0; k2 < 3; k2++) R[(size_t)b->n * (size_t)(3 + i) + 3 * (size_t)v + (size_t)k2] = u[k2];
        }
    }
}

static inline void tree_body_centroid(const fem_mesh *mesh, const fem_set *set, double c[3]) {
    c[0] = c[1] = c[2] = 0;
    for (int k = 0; k < set->count; k++) vec3_axpy(c, 1.0 / set->count, mesh->vertices + 3 * (size_t)set->items[k]);
}

// Ritz vectors of the span of B (n x m): U^T M U = 1, U^T K U = diag(omega2); the r lowest.
static inline fem_status tree_body_ritz(tree_body *b, int m, double *B, int r) {
    fem_status status = FEM_OK;
    size_t     n = (size_t)b->n;
    double    *AB = fem_alloc(n * (size_t)m, sizeof *AB), *k = fem_alloc((size_t)m * (size_t)m, sizeof *k);
    double    *mm = fem_alloc((size_t)m * (size_t)m, sizeof *mm), *values = fem_alloc((size_t)m, sizeof *values);
    b->U = fem_alloc(n * (size_t)r, sizeof *b->U);
    b->forces.K = fem_calloc((size_t)r * (size_t)r, sizeof(double));
    if (!AB || !k || !mm || !values || !b->U || !b->forces.K) {
        status = fem_fail(FEM_NO_MEMORY, "tree body");
        goto done;
    }
    for (int j = 0; j < m; j++) { // unit columns
        double *x = B + n * (size_t)j;
        fem_sparse_multiply(&b->M, 1, x, AB);
        dense_scale(b->n, 1 / sqrt(dense_dot(b->n, x, AB)), x);
    }
    fem_sparse_multiply(&b->M, m, B, AB);
    dense_gemm(true, false, m, m, b->n, 1, B, AB, 0, mm);
    fem_sparse_multiply(&b->K, m, B, AB);
    dense_gemm(true, false, m, m, b->n, 1, B, AB, 0, k);
    FEM_TRY(dense_generalized_eigen(m, k, mm, values));
    dense_gemm(false, false, b->n, r, m, 1, B, k, 0, b->U);
    for (int l = 0; l < r; l++) b->forces.K[l * (r + 1)] = values[l];
    b->r = b->forces.r = r;
done:
    fem_free(AB);
    fem_free(k);
    fem_free(mm);
    fem_free(values);
    return status;
}

// The mesh is taken over. `root`: name of the vertex set that is held and whose centroid becomes the origin (NULL: a
// free body, origin at its centre). `ends`: names of the vertex sets where children hang, with the rotation of each
// child's frame (NULL = none). seeds: inertia modes and 6 wrenches per end; else vibration modes. r: 0 = all seeds.
typedef struct tree_body_options {
    const char  *root;
    int          end_count;
    const char **ends;
    const double (*rest)[9];
    bool seeds;
    int  r;
} tree_body_options;

static inline fem_status tree_body_seeds(tree_body *b, const tree_body_options *o, modes_inverse *inverse, double *B) {
    size_t  n = (size_t)b->n;
    double  zero[3] = {0}, *R = B; // M R into the first six columns
    double *rigid = fem_alloc(6 * n, sizeof *rigid);
    if (!rigid) return fem_fail(FEM_NO_MEMORY, "tree body");
    tree_body_rigid(b, zero, 0, NULL, rigid);
    fem_sparse_multiply(&b->M, 6, rigid, R);
    fem_free(rigid);
    for (int e = 0; e < o->end_count; e++) {
        const fem_set *set = fem_mesh_vertex_set(&b->mesh, o->ends[e]);
        double         c[3];
        tree_body_centroid(&b->mesh, set, c);
        tree_body_rigid(b, c, set->count, set->items, B + 6 * n * (size_t)(1 + e));
    }
    return modes_inverse_solve(inverse, 6 * (1 + o->end_count), B, B);
}

static inline fem_status tree_body_basis(tree_body *b, const tree_body_options *o) {
    fem_status     status = FEM_OK;
    modes_problem  problem = {.mesh = &b->mesh, .K = &b->K, .M = &b->M, .fixed = b->fixed};
    modes_inverse *inverse = NULL;
    modes_basis    basis = {0};
    double        *B = NULL;
    if (o->seeds) {
        int m = 6 * (1 + o->end_count);
        B = fem_alloc((size_t)b->n * (size_t)m, sizeof *B);
        if (!B) {
            status = fem_fail(FEM_NO_MEMORY, "tree body");
            goto done;
        }
        FEM_TRY(modes_inverse_create(&inverse, &problem, MODES_BORDER_MASS));
        FEM_TRY(tree_body_seeds(b, o, inverse, B));
        FEM_TRY(tree_body_ritz(b, m, B, o->r > 0 && o->r < m ? o->r : m));
    } else {
        modes_lanczos_options lanczos = modes_lanczos_default_options();
        lanczos.count = o->r;
        FEM_TRY(modes_lanczos(&problem, &lanczos, NULL, &basis, NULL));
        FEM_TRY(tree_body_ritz(b, basis.r, basis.U, basis.r));
    }
done:
    modes_inverse_destroy(inverse);
    modes_basis_destroy(&basis);
    fem_free(B);
    return status;
}

static inline fem_status tree_body_interface(tree_body *b, const fem_set *set, const double *rest,
                                             domain_interface *interface) {
    size_t     count = (size_t)set->count;
    double    *points = fem_alloc(3 * count, sizeof *points);
    double    *rows = fem_alloc(3 * count * (size_t)b->r, sizeof *rows);
    fem_status status = points && rows ? FEM_OK : fem_fail(FEM_NO_MEMORY, "tree body");
    for (size_t k = 0; status == FEM_OK && k < count; k++)
        for (size_t i = 0; i < 3; i++) {
            size_t row = 3 * (size_t)set->items[k] + i;
            points[3 * k + i] = b->mesh.vertices[row];
            for (size_t l = 0; l < (size_t)b->r; l++) rows[3 * (count * l + k) + i] = b->U[(size_t)b->n * l + row];
        }
    if (status == FEM_OK) status = domain_interface_create(interface, set->count, points, NULL, b->r, rows, rest);
    fem_free(points);
    fem_free(rows);
    return status;
}

static inline void tree_body_destroy(tree_body *b) {
    for (int k = 0; k < b->interface_count; k++) domain_interface_destroy(&b->interfaces[k]);
    fem_free(b->interfaces);
    solver_inertia_destroy(&b->inertia);
    fem_free(b->forces.K);
    fem_free(b->U);
    fem_free(b->fixed);
    fem_sparse_destroy(&b->K);
    fem_sparse_destroy(&b->M);
    fem_body_destroy(b->body);
    fem_mesh_destroy(&b->mesh);
    *b = (tree_body){0};
}

static inline fem_status tree_body_create(tree_body *b, fem_mesh *mesh, const tree_body_options *o) {
    fem_status       status = FEM_OK;
    fem_body_options body_options = fem_body_default_options();
    double          *zero = NULL, origin[3] = {0};
    *b = (tree_body){.mesh = *mesh};
    *mesh = (fem_mesh){0};
    b->n = 3 * b->mesh.vertex_count;
    b->fixed = fem_calloc((size_t)b->n, 1);
    zero = fem_calloc((size_t)b->n, sizeof *zero);
    b->interfaces = fem_calloc((size_t)o->end_count, sizeof *b->interfaces);
    if (!b->fixed || !zero || !b->interfaces) {
        status = fem_fail(FEM_NO_MEMORY, "tree body");
        goto done;
    }
    if (o->root) {
        const fem_set *set = fem_mesh_vertex_set(&b->mesh, o->root);
        tree_body_centroid(&b->mesh, set, origin);
        for (int k = 0; k < set->count; k++) memset(b->fixed + 3 * (size_t)set->items[k], 1, 3);
    }
    for (int i = 0; i < b->n; i++) b->mesh.vertices[i] -= origin[i % 3];
    FEM_TRY(fem_body_create(&b->body, &b->mesh, &body_options));
    FEM_TRY(fem_body_matrix(b->body, &b->K));
    FEM_TRY(fem_body_matrix(b->body, &b->M));
    fem_body_evaluate(b->body, zero, NULL, NULL, &b->K);
    fem_body_mass(b->body, FEM_MASS_CONSISTENT, &b->M);
    if (o->seeds || o->r > 0) FEM_TRY(tree_body_basis(b, o));
    FEM_TRY(solver_inertia_create(&b->inertia, b->body, FEM_MASS_CONSISTENT, b->r, b->U));
    for (; b->interface_count < o->end_count; b->interface_count++)
        FEM_TRY(tree_body_interface(b, fem_mesh_vertex_set(&b->mesh, o->ends[b->interface_count]),
                                    o->rest ? o->rest[b->interface_count] : NULL, &b->interfaces[b->interface_count]));
done:
    fem_free(zero);
    if (status != FEM_OK) tree_body_destroy(b);
    return status;
}

static inline solver_tree_class tree_body_class(const tree_body *b, const char *name) {
    return (solver_tree_class){.name = name,
                               .inertia = &b->inertia,
                               .forces = {.r = b->r, .evaluate = body_evaluate, .model = &b->forces},
                               .interface_count = b->interface_count,
                               .interfaces = b->interfaces};
}

#endif
