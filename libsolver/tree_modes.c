// Frequencies of the linearised coupled tree at rest: K q = w^2 M q, K block-diagonal, M the inertia of the whole tree.
//
// M is never made entry by entry: a pass up at rest with H = Mqq + t K leaves the factors with which tree_respond gives
// (M + t K)^-1 f in O(domains); free roots are then out of the way too (M is the Schur complement of their six
// motions). Small trees: t = 0, the columns of M^-1 one by one, and LAPACK. Big ones: a block Krylov space of
//     C = (M + t K)^-1 M = 1 - t (M + t K)^-1 K,
// which is self-adjoint in the product x^T K y and has the eigenvalues 1/(1 + t w^2), the lowest frequencies first. The
// wanted eigenvectors and the newest block are kept at a restart.
//
// Carried coordinates are not free: z = T x, from the roots down, with x the free ones, and K stands for T^T K T.
// Vectors keep room for them: displacements have what follows from x there, forces have zero.
#include "libsolver/tree_internal.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DENSE_LIMIT = 600, BLOCK = 8, RESTARTS = 60 };

typedef struct modes_work {
    solver_tree *tree;
    int          n;
    double     **K;     // of every class at rest, r x r
    double      *zero;  // n
    double      *z_all; // n: T x
    double (*b)[6], (*A)[6];
    // springs: K = blocks + G k G^T, and (B + t G k G^T)^-1 = B^-1 - Y (1/(t k) + G^T Y)^-1 Y^T, Y = B^-1 G
    int     rows;   // 3 springs
    double *G, *Y;  // n x rows
    double *k, *z;  // rows
    double *S;      // rows x rows, factor of 1/(t k) + G^T Y; not valid at t = 0
    bool    sprung; // t > 0
} modes_work;

static void work_destroy(modes_work *w) {
    for (int k = 0; w->K && k < w->tree->class_count; k++) fem_free(w->K[k]);
    fem_free(w->K);
    fem_free(w->zero);
    fem_free(w->z_all);
    fem_free(w->b);
    fem_free(w->A);
    fem_free(w->G), fem_free(w->Y), fem_free(w->k), fem_free(w->z), fem_free(w->S);
}

static fem_status work_create(modes_work *w, solver_tree *tree) {
    *w = (modes_work){.tree = tree, .n = tree->dofs};
    size_t count = (size_t)tree->count;
    w->K = fem_calloc((size_t)tree->class_count, sizeof *w->K);
    w->zero = fem_calloc((size_t)tree->dofs, sizeof *w->zero);
    w->z_all = fem_calloc((size_t)tree->dofs, sizeof *w->z_all);
    w->b = fem_calloc(count, sizeof *w->b);
    w->A = fem_calloc(count, sizeof *w->A);
    size_t n = (size_t)tree->dofs, rows = 3 * (size_t)tree->spring_count;
    w->rows = (int)rows;
    w->G = fem_alloc(n * rows, sizeof *w->G), w->Y = fem_alloc(n * rows, sizeof *w->Y);
    w->k = fem_alloc(rows, sizeof *w->k), w->z = fem_alloc(rows, sizeof *w->z);
    w->S = fem_alloc(rows * rows, sizeof *w->S);
    if (!w->K || !w->zero || !w->z_all || !w->b || !w->A || !w->G || !w->Y || !w->k || !w->z || !w->S)
        return fem_fail(FEM_NO_MEMORY, "frequencies of %d domains", tree->count);
    for (int k = 0; k < tree->class_count; k++) {
        const cubature_forces *forces = &tree->classes[k].forces;
        size_t                 r = (size_t)tree->classes[k].inertia->r;
        w->K[k] = fem_calloc(r * r, sizeof(double));
        if (!w->K[k]) return fem_fail(FEM_NO_MEMORY, "frequencies of %d domains", tree->count);
        if (r > 0) forces->evaluate(forces->model, w->zero, NULL, NULL, w->K[k], tree->work[0].forces);
    }
    return FEM_OK;
}

static double stiffness_factor(const tree_domain *domain) {
    return domain->scale * domain->scale * domain->scale * domain->stiffness;
}

// T^T y: what is carried becomes forces of those that carry it.
static void gather_carried(const modes_work *w, double *y) {
    const solver_tree *tree = w->tree;
    for (int k = tree->count - 1; tree->carried > 0 && k >= 0; k--) {
        const tree_domain *domain = &tree->domains[tree->order[k]];
        if (domain->carried == 0) continue;
        const tree_domain *parent = &tree->domains[domain->parent];
        size_t             stride = (size_t)tree->classes[parent->class_index].interfaces[domain->interface].stride;
        double            *carried = y + domain->offset + domain->own;
        for (size_t s = 0; s < (size_t)domain->carried; s++) {
            dense_axpy(parent->r, carried[s], domain->P + stride * s, y + parent->offset);
            carried[s] = 0;
        }
    }
}

// Y = T^T K T X, X of `columns`; what is carried in X is not read
static void multiply_stiffness(const modes_work *w, int columns, const double *X, double *Y) {
    for (int k = 0; k < columns; k++) {
        const double *x = X + (size_t)k * (size_t)w->n;
        double       *y = Y + (size_t)k * (size_t)w->n;
        memcpy(w->z_all, x, (size_t)w->n * sizeof *x);
        tree_carried_down_all(w->tree, 0, w->z_all);
        for (int i = 0; i < w->tree->count; i++) {
            const tree_domain *domain = &w->tree->domains[i];
            if (domain->r > 0)
                dense_gemv_set(domain->r, domain->r, stiffness_factor(domain), w->K[domain->class_index],
                               w->z_all + domain->offset, y + domain->offset);
        }
        gather_carried(w, y);
    }
    for (int c = 0; w->rows > 0 && c < columns; c++) {
        dense_gemv_t_set(w->n, w->rows, 1, w->G, X + (size_t)c * (size_t)w->n, w->z);
        for (int i = 0; i < w->rows; i++) w->z[i] *= w->k[i];
        dense_gemv_add(w->n, w->rows, 1, w->G, w->z, Y + (size_t)c * (size_t)w->n);
    }
}

// Without springs.
static void solve_tree(const modes_work *w, double *x) {
    memset(w->b, 0, (size_t)w->tree->count * sizeof *w->b);
    tree_respond(w->tree, x, w->b, w->A);
}

// x = (M + t K)^-1 x, one column
static void solve(const modes_work *w, double *x) {
    solve_tree(w, x);
    if (!w->sprung) return;
    dense_gemv_t_set(w->n, w->rows, 1, w->G, x, w->z);
    dense_cholesky_solve(w->rows, w->S, 1, w->z);
    dense_gemv_add(w->n, w->rows, -1, w->Y, w->z, x);
}

static fem_status factorise_springs(modes_work *w, double t) {
    fem_status status = FEM_OK;
    size_t     n = (size_t)w->n, rows = (size_t)w->rows;
    w->sprung = false;
    if (rows == 0) return FEM_OK;
    FEM_TRY(tree_spring_rows(w->tree, w->zero, w->G, w->k));
    if (!(t > 0)) return FEM_OK;
    memcpy(w->Y, w->G, n * rows * sizeof *w->Y);
    for (size_t i = 0; i < rows; i++) solve_tree(w, w->Y + i * n);
    dense_gemm(true, false, w->rows, w->rows, w->n, 1, w->G, w->Y, 0, w->S);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < i; j++)
            w->S[i * rows + j] = w->S[j * rows + i] = 0.5 * (w->S[i * rows + j] + w->S[j * rows + i]);
    for (size_t i = 0; i < rows; i++) w->S[i * (rows + 1)] += 1 / (t * fmax(w->k[i], 1e-300));
    FEM_TRY(dense_cholesky(w->rows, w->S));
    w->sprung = true;
done:
    return status;
}

// Frames, inertia and factors at rest, with H = Mqq + t K; nothing moves and no loads act.
static fem_status factorise_at_rest(modes_work *w, double t) {
    fem_status      status = FEM_OK;
    solver_tree    *tree = w->tree;
    tree_evaluation at = {
        .q = w->zero, .dq = w->zero, .q_start = w->zero, .dq_start = w->zero, .c_stiffness = t, .time = tree->time};
    for (int k = 0; k < tree->root_count; k++) {
        tree->roots[k].trial = tree->roots[k].state;
        for (int i = 0; i < 3; i++) tree->roots[k].trial.w[i] = 0;
    }
    tree->poses_known = false;
    tree_relative_frames(tree, &at);
    tree_velocities(tree, false, false);
    for (int k = 0; k < tree->block_count; k++)
        memset(tree->blocks[k].lanes->wrench, 0, sizeof tree->blocks[k].lanes->wrench);
    memset(tree->modal, 0, (size_t)tree->dofs * sizeof *tree->modal);
    tree_forces(tree, &at);
    FEM_TRY(tree_up(tree, &at));
    FEM_TRY(factorise_springs(w, t));
done:
    return status;
}

// ---- lumped levels: domain by domain ----------------------------------------------------------------------------

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// H = Mqq with the lumps of the children, from its factor; then K q = w^2 H q
static fem_status lumped(modes_work *w, int count, double *omega) {
    fem_status   status = FEM_OK;
    solver_tree *tree = w->tree;
    int          found = 0;
    double      *all = fem_alloc((size_t)w->n, sizeof *all);
    if (!all) {
        status = fem_fail(FEM_NO_MEMORY, "frequencies of %d domains", tree->count);
        goto done;
    }
    FEM_TRY(factorise_at_rest(w, 0));
    for (int i = 0; i < tree->count; i++) {
        const tree_domain *domain = &tree->domains[i];
        const double      *L = tree->blocks[domain->block].E + domain->lane;
        double            *H = tree->work[0].H, *K = tree->work[0].K;
        int                r = domain->own, all_of = domain->r;
        for (int a = 0; a < r; a++)
            for (int b = 0; b <= a; b++) {
                double sum = 0;
                for (int k = 0; k <= b; k++) {
                    double D = L[TREE_E(k, k)];
                    double left = k == a ? 1 : L[TREE_E(a, k)];
                    double right = k == b ? 1 : L[TREE_E(b, k)];
                    sum += left * D * right;
                }
                H[a * r + b] = H[b * r + a] = sum;
            }
        for (int k = 0; k < r * r; k++)
            K[k] = stiffness_factor(domain) * w->K[domain->class_index][k / r * all_of + k % r];
        if (r > 0) FEM_TRY(dense_generalized_eigen(r, K, H, all + found));
        found += r;
    }
    qsort(all, (size_t)found, sizeof *all, compare);
    for (int k = 0; k < count; k++) omega[k] = sqrt(fmax(all[k], 0));
done:
    fem_free(all);
    return status;
}

// ---- small trees ------------------------------------------------------------------------------------------------

// Columns of M^-1, then M, then K x = w^2 M x, of the free coordinates.
static fem_status dense(modes_work *w, int count, double *omega, double *shapes) {
    fem_status         status = FEM_OK;
    const solver_tree *tree = w->tree;
    size_t             all = (size_t)w->n, n = (size_t)solver_tree_free(tree), found = 0;
    double            *inverse = fem_calloc(n * n, sizeof *inverse), *M = fem_calloc(n * n, sizeof *M);
    double            *K = fem_calloc(n * n, sizeof *K), *values = fem_alloc(n, sizeof *values);
    double            *x = fem_alloc(all, sizeof *x), *y = fem_alloc(all, sizeof *y);
    size_t            *place = fem_alloc(n, sizeof *place); // of the free ones among all
    if (!inverse || !M || !K || !values || !x || !y || !place) {
        status = fem_fail(FEM_NO_MEMORY, "frequencies of %d coordinates", w->n);
        goto done;
    }
    for (int i = 0; i < tree->count; i++)
        for (size_t l = 0; l < (size_t)tree->domains[i].own; l++) place[found++] = tree->domains[i].offset + l;
    FEM_TRY(factorise_at_rest(w, 0));
    for (size_t k = 0; k < n; k++) {
        memset(x, 0, all * sizeof *x);
        x[place[k]] = M[k * n + k] = 1;
        multiply_stiffness(w, 1, x, y);
        solve(w, x);
        for (size_t i = 0; i < n; i++) inverse[k * n + i] = x[place[i]], K[k * n + i] = y[place[i]];
    }
    for (size_t k = 0; k < n; k++) // rounding
        for (size_t i = 0; i < k; i++)
            inverse[k * n + i] = inverse[i * n + k] = 0.5 * (inverse[k * n + i] + inverse[i * n + k]);
    FEM_TRY(dense_cholesky((int)n, inverse));
    dense_cholesky_solve((int)n, inverse, (int)n, M);
    FEM_TRY(dense_generalized_eigen((int)n, K, M, values));
    for (int k = 0; k < count; k++) {
        omega[k] = sqrt(fmax(values[k], 0));
        for (size_t i = 0; shapes && i < n; i++) // x^T M x = 1 becomes x^T K x = 1
            shapes[(size_t)k * all + place[i]] = K[(size_t)k * n + i] / (omega[k] > 0 ? omega[k] : 1);
    }
done:
    fem_free(inverse), fem_free(M), fem_free(K), fem_free(values);
    fem_free(x), fem_free(y), fem_free(place);
    return status;
}

// ---- big trees --------------------------------------------------------------------------------------------------

typedef struct krylov {
    int     n, most; // rows, columns that there is room for
    double *V, *KV, *CV;
    double *T, *small, *values; // most x most, most
} krylov;

static void krylov_destroy(krylov *s) {
    fem_free(s->V), fem_free(s->KV), fem_free(s->CV), fem_free(s->T), fem_free(s->small), fem_free(s->values);
}

static fem_status krylov_create(krylov *s, int n, int most) {
    size_t size = (size_t)n * ((size_t)most + BLOCK + 1), square = (size_t)most * (size_t)most;
    *s = (krylov){.n = n, .most = most};
    s->V = fem_alloc(size, sizeof(double)), s->KV = fem_alloc(size, sizeof(double));
    s->CV = fem_alloc(size, sizeof(double)), s->T = fem_alloc(square, sizeof(double));
    s->small = fem_alloc(size > square ? size : square, sizeof(double)),
    s->values = fem_alloc((size_t)most, sizeof(double));
    if (s->V && s->KV && s->CV && s->T && s->small && s->values) return FEM_OK;
    return fem_fail(FEM_NO_MEMORY, "frequencies of %d coordinates", n);
}

// Makes columns from..to-1 of V K-orthonormal to all before them and to each other, drops those that depend on the
// others, and gives the number of columns that are left in all.
static int orthonormalise(const modes_work *w, krylov *s, int from, int to) {
    size_t n = (size_t)s->n;
    int    kept = from;
    for (int k = from; k < to; k++) {
        double *v = s->V + n * (size_t)kept, *Kv = s->KV + n * (size_t)kept, before, after;
        if (k != kept) memcpy(v, s->V + n * (size_t)k, n * sizeof *v);
        multiply_stiffness(w, 1, v, Kv);
        before = sqrt(fmax(dense_dot(s->n, v, Kv), 0));
        for (int pass = 0; pass < 2; pass++) {
            dense_gemv_t_set(s->n, kept, 1, s->KV, v, s->values); // values serves as work space here
            dense_gemv_add(s->n, kept, -1, s->V, s->values, v);
        }
        multiply_stiffness(w, 1, v, Kv);
        after = sqrt(fmax(dense_dot(s->n, v, Kv), 0));
        if (!(after > 1e-10 * before)) continue;
        dense_scale(s->n, 1 / after, v);
        dense_scale(s->n, 1 / after, Kv);
        kept++;
    }
    return kept;
}

// CV = V - t (M + t K)^-1 K V for columns from..to-1
static void apply(const modes_work *w, krylov *s, double t, int from, int to) {
    size_t n = (size_t)s->n;
    for (int k = from; k < to; k++) {
        double *c = s->CV + n * (size_t)k, *v = s->V + n * (size_t)k;
        memcpy(c, s->KV + n * (size_t)k, n * sizeof *c);
        solve(w, c);
        for (size_t i = 0; i < n; i++) c[i] = v[i] - t * c[i];
    }
}

// Rotates the first m columns of A by the m x k matrix Z.
static void rotate(krylov *s, double *A, int m, int k, const double *Z) {
    dense_gemm(false, false, s->n, k, m, 1, A, Z, 0, s->small);
    memcpy(A, s->small, (size_t)s->n * (size_t)k * sizeof *A);
}

// Rayleigh and Ritz in the first m columns: the `keep` largest eigenvalues come first, V, KV, CV are rotated to their
// vectors. Z is the caller's: m x m.
static fem_status ritz(krylov *s, int m, int keep, double *Z) {
    dense_gemm(true, false, m, m, s->n, 1, s->KV, s->CV, 0, s->T);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < i; j++) s->T[j * m + i] = s->T[i * m + j] = 0.5 * (s->T[j * m + i] + s->T[i * m + j]);
    fem_status status = dense_symmetric_eigen(m, s->T, s->values);
    if (status != FEM_OK) return status;
    for (int k = 0; k < keep; k++)
        memcpy(Z + (size_t)k * (size_t)m, s->T + (size_t)(m - 1 - k) * (size_t)m, (size_t)m * sizeof *Z);
    rotate(s, s->V, m, keep, Z);
    rotate(s, s->KV, m, keep, Z);
    rotate(s, s->CV, m, keep, Z);
    for (int k = 0; k < m / 2; k++) {
        double other = s->values[m - 1 - k];
        s->values[m - 1 - k] = s->values[k], s->values[k] = other;
    }
    return FEM_OK;
}

// Largest |C x - theta x| / theta over the first `count` columns, in the norm of K; the residuals are left behind the
// first `keep` columns of V, at most BLOCK of them, the unconverged first.
static double residuals(const modes_work *w, krylov *s, int count, int keep, int *open) {
    size_t n = (size_t)s->n;
    double worst = 0;
    int    placed = 0;
    for (int k = 0; k < keep; k++) {
        double *r = s->V + n * (size_t)(keep + placed), *Kr = s->KV + n * (size_t)(keep + placed);
        double *c = s->CV + n * (size_t)k, *v = s->V + n * (size_t)k;
        for (size_t i = 0; i < n; i++) r[i] = c[i] - s->values[k] * v[i];
        multiply_stiffness(w, 1, r, Kr);
        double size = sqrt(fmax(dense_dot(s->n, r, Kr), 0)) / fmax(s->values[k], 1e-300);
        if (k < count) worst = fmax(worst, size);
        if (size > 1e-9 && placed < BLOCK) placed++;
    }
    *open = placed;
    return worst;
}

static fem_status iterate(modes_work *w, krylov *s, int count, int keep, double *omega, double *Z) {
    fem_status status = FEM_OK;
    // a first t from the softest domain alone; the coupled tree is softer, which the first Ritz values tell
    double t = 0, scale = 0;
    for (int i = 0; i < w->tree->count; i++) {
        const tree_domain *domain = &w->tree->domains[i];
        const double      *K = w->K[domain->class_index], *M = w->tree->classes[domain->class_index].inertia->Mqq;
        for (int l = 0; l < domain->own; l++) {
            double s2 = domain->scale * domain->scale, place = (double)l * (domain->r + 1);
            t = fmax(t, s2 * M[(int)place] / (domain->stiffness * K[(int)place]));
        }
    }
    uint64_t random = 1;
    int      m = BLOCK < s->most ? BLOCK : s->most;
    for (int i = 0; i < m * s->n; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        s->V[i] = (double)(int32_t)(random >> 32) * 0x1p-31;
    }
    int from = 0;
    FEM_TRY(factorise_at_rest(w, t)); // springs' rows and P too
    for (int k = 0; k < m; k++) tree_carried_down_all(w->tree, 0, s->V + (size_t)k * (size_t)s->n);
    m = orthonormalise(w, s, 0, m);
    for (int restart = 0; restart < RESTARTS; restart++) {
        for (int first = from; m > first;) {
            apply(w, s, t, first, m);
            if (m == s->most) break;
            int more = m - first < s->most - m ? m - first : s->most - m;
            memcpy(s->V + (size_t)m * (size_t)s->n, s->CV + (size_t)first * (size_t)s->n,
                   (size_t)more * (size_t)s->n * sizeof(double));
            int next = orthonormalise(w, s, m, m + more);
            first = m, m = next;
        }
        int kept = keep < m ? keep : m;
        FEM_TRY(ritz(s, m, kept, Z));
        int    open;
        double worst = residuals(w, s, count < kept ? count : kept, kept, &open);
        scale = (1 / s->values[0] - 1) / t; // lowest w^2
        if (worst < 1e-8 || m == solver_tree_free(w->tree)) {
            for (int k = 0; k < count; k++) omega[k] = sqrt(fmax((1 / s->values[k] - 1) / t, 0));
            return FEM_OK;
        }
        if (scale > 0 && t * scale < 0.1) { // all wanted eigenvalues crowd at 1: a larger t spreads them
            t = 10 / scale;
            FEM_TRY(factorise_at_rest(w, t));
            apply(w, s, t, 0, kept);
        }
        from = kept;
        m = orthonormalise(w, s, kept, kept + (open < s->most - kept ? open : s->most - kept));
    }
    status = fem_fail(FEM_NO_CONVERGENCE, "frequencies of the tree: not found in %d restarts", RESTARTS);
done:
    return status;
}

static fem_status krylov_modes(modes_work *w, int count, double *omega, double *shapes) {
    fem_status status = FEM_OK;
    krylov     s = {0};
    int        keep = count + BLOCK, most = 3 * keep + 4 * BLOCK;
    double    *Z = NULL;
    if (most > solver_tree_free(w->tree)) most = solver_tree_free(w->tree);
    FEM_TRY(krylov_create(&s, w->n, most));
    Z = fem_alloc((size_t)most * (size_t)most, sizeof *Z);
    if (!Z) {
        status = fem_fail(FEM_NO_MEMORY, "frequencies of %d coordinates", w->n);
        goto done;
    }
    FEM_TRY(iterate(w, &s, count, keep < most ? keep : most, omega, Z));
    if (shapes) memcpy(shapes, s.V, (size_t)w->n * (size_t)count * sizeof *shapes);
done:
    krylov_destroy(&s);
    fem_free(Z);
    return status;
}

// ---- all --------------------------------------------------------------------------------------------------------

// From the sorted order of the domains to the caller's.
static fem_status reorder(const solver_tree *tree, int count, double *shapes) {
    size_t  n = (size_t)tree->dofs;
    double *column = fem_alloc(n, sizeof *column);
    if (!column) return fem_fail(FEM_NO_MEMORY, "shapes of %d coordinates", tree->dofs);
    for (int k = 0; k < count; k++) {
        double *x = shapes + n * (size_t)k, *to = x;
        memcpy(column, x, n * sizeof *x);
        for (int i = 0; i < tree->count; i++) {
            const tree_domain *domain = &tree->domains[tree->sorted[i]];
            memcpy(to, column + domain->offset, (size_t)domain->r * sizeof *x);
            to += domain->r;
        }
    }
    fem_free(column);
    return FEM_OK;
}

fem_status tree_frequencies(solver_tree *tree, int count, bool all_of_M, double *omega, double *shapes) {
    fem_status status = FEM_OK;
    modes_work w = {.tree = tree};
    bool       articulated = tree->options.subtree == SOLVER_ARTICULATED;
    int        coordinates = solver_tree_free(tree);
    if (count < 1 || count > coordinates) {
        status = fem_fail(FEM_BAD_INPUT, "%d frequencies of a tree with %d coordinates", count, coordinates);
        goto done;
    }
    if (!articulated && shapes) {
        status = fem_fail(FEM_BAD_INPUT, "shapes need solver.subtree articulated");
        goto done;
    }
    FEM_TRY(work_create(&w, tree));
    if (!articulated)
        FEM_TRY(lumped(&w, count, omega));
    else if (all_of_M)
        FEM_TRY(dense(&w, count, omega, shapes));
    else
        FEM_TRY(krylov_modes(&w, count, omega, shapes));
    for (int k = 0; shapes && k < count; k++) tree_carried_down_all(tree, 0, shapes + (size_t)k * (size_t)tree->dofs);
    if (shapes) FEM_TRY(reorder(tree, count, shapes));
done:
    work_destroy(&w);
    return status;
}

// |M^-1 K x - w^2 x| / (w^2 |x|), 2-norms
fem_status solver_tree_residuals(solver_tree *tree, int count, const double *omega, const double *shapes,
                                 double *residuals) {
    fem_status status = FEM_OK;
    modes_work w = {.tree = tree};
    double    *x = fem_alloc((size_t)tree->dofs, sizeof *x), *y = fem_alloc((size_t)tree->dofs, sizeof *y);
    FEM_TRY(work_create(&w, tree));
    if (!x || !y) {
        status = fem_fail(FEM_NO_MEMORY, "residuals of %d coordinates", tree->dofs);
        goto done;
    }
    FEM_TRY(factorise_at_rest(&w, 0));
    for (int k = 0; k < count; k++) {
        const double *from = shapes + (size_t)k * (size_t)tree->dofs;
        double        square = 0, whole = 0;
        for (int i = 0; i < tree->count; i++) { // to the sorted order
            const tree_domain *domain = &tree->domains[tree->sorted[i]];
            memcpy(x + domain->offset, from, (size_t)domain->r * sizeof *x);
            from += domain->r;
        }
        multiply_stiffness(&w, 1, x, y);
        solve(&w, y);
        for (int i = 0; i < tree->dofs; i++) {
            double wx = omega[k] * omega[k] * x[i];
            square += (y[i] - wx) * (y[i] - wx), whole += wx * wx;
        }
        residuals[k] = whole > 0 ? sqrt(square / whole) : 0;
    }
done:
    work_destroy(&w);
    fem_free(x), fem_free(y);
    return status;
}

fem_status solver_tree_frequencies(solver_tree *tree, int count, double *omega, double *shapes) {
    return tree_frequencies(tree, count, solver_tree_free(tree) <= DENSE_LIMIT, omega, shapes);
}
