// Inertia integrals of a domain, and the blocks of its equations of motion; the formulas stand in inertia.h.
//
// The integrals are those of the discrete body: with the mass matrix M_ab (consistent or lumped, scalar for each pair
// of vertices) and nodal fields g, h
//     int rho g h^T = sum_ab M_ab g_a h_b^T,   int rho g = sum_a (M 1)_a g_a,
// which for the consistent mass is the exact integral of the interpolated fields. All second moments come from one
// product: the r + 1 fields are the modes and, last, the rest positions X.
#include "libsolver/internal.h"

#include <limits.h>

enum { VERTEX_BLOCK = 512, FIELD_BLOCK = 8 };

// ---- life --------------------------------------------------------------------------------------------------------

void solver_inertia_destroy(solver_inertia *inertia) {
    fem_free(inertia->S1);
    fem_free(inertia->W5);
    fem_free(inertia->W7);
    fem_free(inertia->Mqq);
    *inertia = (solver_inertia){0};
}

static fem_status allocate(solver_inertia *inertia, int r) {
    size_t n = (size_t)r;
    *inertia = (solver_inertia){.r = r};
    inertia->S1 = fem_calloc(3 * n, sizeof(double));
    inertia->W5 = fem_calloc(9 * n, sizeof(double));
    inertia->W7 = fem_calloc(n * n, 9 * sizeof(double));
    inertia->Mqq = fem_calloc(n * n, sizeof(double));
    if (inertia->S1 && inertia->W5 && inertia->W7 && inertia->Mqq) return FEM_OK;
    solver_inertia_destroy(inertia);
    return fem_fail(FEM_NO_MEMORY, "inertia of %d modes", r);
}

fem_status solver_inertia_copy(solver_inertia *copy, const solver_inertia *inertia) {
    solver_inertia next;
    fem_status     status = allocate(&next, inertia->r);
    if (status != FEM_OK) return status;
    size_t r = (size_t)inertia->r;
    next.m = inertia->m;
    for (int k = 0; k < 3; k++) next.s0[k] = inertia->s0[k];
    for (int k = 0; k < 9; k++) next.Z0[k] = inertia->Z0[k];
    for (size_t k = 0; k < 3 * r; k++) next.S1[k] = inertia->S1[k];
    for (size_t k = 0; k < 9 * r; k++) next.W5[k] = inertia->W5[k];
    for (size_t k = 0; k < 9 * r * r; k++) next.W7[k] = inertia->W7[k];
    for (size_t k = 0; k < r * r; k++) next.Mqq[k] = inertia->Mqq[k];
    *copy = next;
    return FEM_OK;
}

// X -> X - c:  int rho U_l (X - c)^T = W5_l - S1_l c^T,   Z0 - s0 c^T - c s0^T + m c c^T,   s0 - m c
void solver_inertia_recentre(solver_inertia *inertia, const double c[3]) {
    for (int l = 0; l < inertia->r; l++)
        for (int k = 0; k < 9; k++) inertia->W5[9 * l + k] -= inertia->S1[3 * l + k / 3] * c[k % 3];
    for (int k = 0; k < 9; k++) {
        int i = k / 3, j = k % 3;
        inertia->Z0[k] += inertia->m * c[i] * c[j] - inertia->s0[i] * c[j] - c[i] * inertia->s0[j];
    }
    vec3_axpy(inertia->s0, -inertia->m, c);
}

// ---- the integrals -----------------------------------------------------------------------------------------------

// Fields are the columns of U and, last, the rest positions.
typedef struct fields {
    int           r, vertices;
    const double *U, *X;
} fields;

static const double *field(const fields *f, int l) {
    return l < f->r ? f->U + 3 * (size_t)f->vertices * (size_t)l : f->X;
}

// Component i of `count` columns over `height` vertices from `first`, packed as three height x count matrices.
static void pack(const double *column, int first, int height, int place, int count, double *packed) {
    for (int i = 0; i < 3; i++) {
        double *to = packed + (size_t)i * VERTEX_BLOCK * (size_t)count + (size_t)height * (size_t)place;
        for (int v = 0; v < height; v++) to[v] = column[3 * (size_t)(first + v) + (size_t)i];
    }
}

// Work space of the second moments, for r + 1 fields.
typedef struct moments {
    double *MX;     // 3 vertices x FIELD_BLOCK: M times a block of fields
    double *left;   // 3 of VERTEX_BLOCK x (r + 1)
    double *right;  // 3 of VERTEX_BLOCK x FIELD_BLOCK
    double *second; // 9 of (r + 1) x FIELD_BLOCK: entry (l, p) of matrix 3 i + j is int rho g_l,i g_p,j
} moments;

// second moments of all fields with the `count` ones from `first` on
static void second_moments(const fields *f, const fem_sparse *M, int first, int count, const moments *w) {
    int    all = f->r + 1;
    size_t n = 3 * (size_t)f->vertices, size = (size_t)all * (size_t)count;
    for (int p = 0; p < count; p++) fem_sparse_multiply(M, 1, field(f, first + p), w->MX + n * (size_t)p);
    for (size_t k = 0; k < 9 * size; k++) w->second[k] = 0;
    for (int v = 0; v < f->vertices; v += VERTEX_BLOCK) {
        int height = f->vertices - v < VERTEX_BLOCK ? f->vertices - v : VERTEX_BLOCK;
        for (int l = 0; l < all; l++) pack(field(f, l), v, height, l, all, w->left);
        for (int p = 0; p < count; p++) pack(w->MX + n * (size_t)p, v, height, p, count, w->right);
        for (int k = 0; k < 9; k++)
            dense_gemm(true, false, all, count, height, 1, w->left + (size_t)(k / 3) * VERTEX_BLOCK * (size_t)all,
                       w->right + (size_t)(k % 3) * VERTEX_BLOCK * (size_t)count, 1, w->second + (size_t)k * size);
    }
}

// Distributes the second moments with field p.
static void keep_moments(solver_inertia *inertia, int p, const double *second, size_t size) {
    int r = inertia->r;
    for (int l = 0; l <= r; l++)
        for (int k = 0; k < 9; k++) {
            double value = second[(size_t)k * size + (size_t)l];
            if (p < r && l < r) inertia->W7[9 * ((size_t)r * (size_t)p + (size_t)l) + (size_t)k] = value;
            if (p == r && l < r) inertia->W5[9 * l + k] = value;
            if (p == r && l == r) inertia->Z0[k] = value;
        }
}

static void first_moments(solver_inertia *inertia, const fields *f, const double *masses) {
    for (int v = 0; v < f->vertices; v++) {
        inertia->m += masses[v];
        vec3_axpy(inertia->s0, masses[v], f->X + 3 * (size_t)v);
    }
    for (int l = 0; l < f->r; l++)
        for (int v = 0; v < f->vertices; v++) vec3_axpy(inertia->S1 + 3 * l, masses[v], field(f, l) + 3 * (size_t)v);
}

static fem_status check_basis(const fields *f) {
    if (f->r < 0) return fem_fail(FEM_BAD_INPUT, "inertia: %d modes, expected >= 0", f->r);
    if (f->vertices > INT_MAX / 3)
        return fem_fail(FEM_BAD_INPUT, "inertia: %d vertices are more than can be numbered", f->vertices);
    for (int l = 0; l < f->r; l++)
        for (int i = 0; i < 3 * f->vertices; i++)
            if (!isfinite(field(f, l)[i])) return fem_fail(FEM_BAD_INPUT, "inertia: mode %d is not finite", l + 1);
    return FEM_OK;
}

fem_status solver_inertia_create(solver_inertia *result, const fem_body *body, fem_mass_kind mass, int r,
                                 const double *U) {
    const fem_mesh *mesh = fem_body_mesh(body);
    fields          f = {.r = r, .vertices = mesh->vertex_count, .U = U, .X = mesh->vertices};
    fem_status      status = FEM_OK;
    solver_inertia  inertia = {0};
    fem_sparse      M = {0};
    moments         w = {0};
    double         *masses = NULL;
    FEM_TRY(check_basis(&f));
    FEM_TRY(allocate(&inertia, r));
    FEM_TRY(fem_body_matrix(body, &M));
    fem_body_mass(body, mass, &M);
    size_t all = (size_t)r + 1;
    masses = fem_alloc((size_t)f.vertices, sizeof *masses);
    w.MX = fem_alloc((size_t)f.vertices, 3 * FIELD_BLOCK * sizeof(double));
    w.left = fem_alloc(all, 3 * VERTEX_BLOCK * sizeof(double));
    w.right = fem_alloc(3 * VERTEX_BLOCK * FIELD_BLOCK, sizeof(double));
    w.second = fem_alloc(all, 9 * FIELD_BLOCK * sizeof(double));
    if (!masses || !w.MX || !w.left || !w.right || !w.second) {
        status = fem_fail(FEM_NO_MEMORY, "inertia of %d modes over %d vertices", r, f.vertices);
        goto done;
    }
    fem_body_vertex_masses(body, masses); // M 1, whichever the mass matrix
    first_moments(&inertia, &f, masses);
    for (int p = 0; p <= r; p += FIELD_BLOCK) {
        int count = r + 1 - p < FIELD_BLOCK ? r + 1 - p : FIELD_BLOCK;
        second_moments(&f, &M, p, count, &w);
        for (int k = 0; k < count; k++) keep_moments(&inertia, p + k, w.second + all * (size_t)k, all * (size_t)count);
    }
    for (size_t k = 0; k < (size_t)r * (size_t)r; k++)
        inertia.Mqq[k] = inertia.W7[9 * k] + inertia.W7[9 * k + 4] + inertia.W7[9 * k + 8];
    *result = inertia;
    inertia = (solver_inertia){0};
done:
    solver_inertia_destroy(&inertia);
    fem_sparse_destroy(&M);
    fem_free(masses);
    fem_free(w.MX);
    fem_free(w.left);
    fem_free(w.right);
    fem_free(w.second);
    return status;
}

// ---- the blocks --------------------------------------------------------------------------------------------------

// y = 2 skew(A): the vector with [y] = A - A^T
static void twice_skew(double y[3], const double A[9]) {
    y[0] = A[7] - A[5];
    y[1] = A[2] - A[6];
    y[2] = A[3] - A[1];
}

// [m I, -[s]; [s], tr(Z) I - Z], column-major
static void rigid_block(double m, const double s[3], const double Z[9], double Mrr[36]) {
    double trace = Z[0] + Z[4] + Z[8];
    for (int i = 0; i < 36; i++) Mrr[i] = i % 7 == 0 && i < 21 ? m : 0;
    for (int i = 0; i < 3; i++) {
        int next = (i + 1) % 3, last = (i + 2) % 3;
        // [s] has s_i at (last, next) and -s_i at (next, last)
        Mrr[6 * next + 3 + last] = s[i], Mrr[6 * last + 3 + next] = -s[i];
        Mrr[6 * (3 + next) + last] = -s[i], Mrr[6 * (3 + last) + next] = s[i];
        for (int j = 0; j < 3; j++) Mrr[6 * (3 + j) + 3 + i] = (i == j ? trace : 0) - Z[3 * i + j];
    }
}

// b_v and b_w; N = sum_l dq_l N_l, S1dq = S1 dq
static void rigid_bias(const double s[3], const double Z[9], const double N[9], const double S1dq[3], const double w[3],
                       double b_r[6]) {
    double ws[3], Zw[3], Nw[3], wS[3], wZw[3], trace = N[0] + N[4] + N[8];
    vec3_cross(ws, w, s);
    vec3_cross(b_r, w, ws);
    vec3_cross(wS, w, S1dq);
    vec3_axpy(b_r, 2, wS);
    mat3_mul_vec(Zw, Z, w); // w x (J w) = -w x (Z w)
    vec3_cross(wZw, w, Zw);
    mat3_mul_vec(Nw, N, w);
    for (int k = 0; k < 3; k++) b_r[3 + k] = -wZw[k] + 2 * (trace * w[k] - Nw[k]);
}

void solver_inertia_evaluate(const solver_inertia *inertia, const double *q, const double *dq, const double *w,
                             solver_inertia_blocks *blocks, double *work) {
    static const double still[3] = {0};
    int                 r = inertia->r;
    double             *W7q = work, *W7dq = work + 9 * (size_t)r; // 9 r: sum_p q_p W7_lp, sum_p dq_p W7_lp
    double              s[3], Z[9], N[9] = {0}, S1dq[3] = {0};
    bool                moving = r > 0 && dq != NULL;
    if (!w) w = still;
    if (r > 0) dense_gemv_set(9 * r, r, 1, inertia->W7, q, W7q);
    if (moving) dense_gemv_set(9 * r, r, 1, inertia->W7, dq, W7dq);
    for (int k = 0; k < 3; k++) s[k] = inertia->s0[k];
    for (int k = 0; k < 9; k++) Z[k] = inertia->Z0[k];
    for (int l = 0; l < r; l++) {
        const double *W5 = inertia->W5 + 9 * l, *S1 = inertia->S1 + 3 * l, *P = W7q + 9 * l;
        double       *column = blocks->Mrq + 6 * l, N_l[9], Nw[3], coriolis[3];
        vec3_axpy(s, q[l], S1);
        for (int k = 0; k < 9; k++) {
            N_l[k] = W5[k] + P[k];
            Z[k] += q[l] * (W5[k] + W5[3 * (k % 3) + k / 3] + P[k]);
        }
        for (int k = 0; k < 3; k++) column[k] = S1[k];
        twice_skew(column + 3, N_l);
        mat3_mul_vec(Nw, N_l, w);
        blocks->b_q[l] = vec3_dot(w, Nw) - (N_l[0] + N_l[4] + N_l[8]) * vec3_dot(w, w);
        if (!moving) continue;
        for (int k = 0; k < 9; k++) N[k] += dq[l] * N_l[k];
        vec3_axpy(S1dq, dq[l], S1);
        twice_skew(coriolis, W7dq + 9 * l);
        blocks->b_q[l] += 2 * vec3_dot(coriolis, w);
    }
    rigid_block(inertia->m, s, Z, blocks->Mrr);
    rigid_bias(s, Z, N, S1dq, w, blocks->b_r);
}

double solver_inertia_momentum(const solver_inertia *inertia, const solver_inertia_blocks *blocks, const double v[3],
                               const double w[3], const double *dq, double momentum[6]) {
    int    r = inertia->r;
    double velocity[6] = {v[0], v[1], v[2], w[0], w[1], w[2]}, twice = 0;
    dense_gemv_set(6, 6, 1, blocks->Mrr, velocity, momentum);
    // 2 T = (v; w)^T Mrr (v; w) + 2 (v; w)^T Mrq dq + dq^T Mqq dq
    for (int i = 0; i < 6; i++) twice += velocity[i] * momentum[i];
    for (int l = 0; l < r; l++) {
        const double *column = blocks->Mrq + 6 * l;
        twice += dq[l] * (2 * dense_dot(6, column, velocity) + dense_dot(r, inertia->Mqq + (size_t)r * (size_t)l, dq));
        for (int i = 0; i < 6; i++) momentum[i] += dq[l] * column[i];
    }
    return twice / 2;
}
