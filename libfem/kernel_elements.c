// Energy, force, stiffness and (H : a) b of 8 elements side by side. Compiled once per vector width (SIMD_SUFFIX) and
// chosen at run time. The textbook version of the same sums is body_plain.c.
//
// Layout: each quantity of the 8 elements is one `real`, a vector of 8 doubles; with AVX-512 that is one register.
// T4: F is constant, so one evaluation per element; 6 of the 10 blocks (those of vertices 1, 2, 3) are computed, the
// rest follows from zero row sums, K_0b = -sum_a K_ab. H8: a loop over Gauss points, gradients made on the way, since
// storing them (192 doubles an element) costs more to read than to make. Sums go straight into the global arrays:
// element matrices are never stored.
#include "libfem/body_internal.h"
#include "libfem/lanes.h"

// x[3 a + i] = component i of vertex a of each lane's element
static inline void gather(real *x, const double *field, const int *vertices, int width) {
    for (int a = 0; a < width; a++)
        for (int lane = 0; lane < LANES; lane++) {
            const double *p = field + 3 * (size_t)vertices[a * LANES + lane];
            for (int i = 0; i < 3; i++) x[3 * a + i][lane] = p[i];
        }
}

static inline void scatter_force(double *force, const real *f, const int *vertices, int width, int count) {
    for (int lane = 0; lane < count; lane++)
        for (int a = 0; a < width; a++) {
            double *p = force + 3 * (size_t)vertices[a * LANES + lane];
            for (int i = 0; i < 3; i++) p[i] += f[3 * a + i][lane];
        }
}

// Rows of the 8 x 8 matrix of lanes become columns: x[k][lane] -> x[lane][k]
static inline void transpose(real x[LANES]) {
    real y[LANES];
    UNROLL for (int i = 0; i < 8; i += 2) {
        y[i] = __builtin_shufflevector(x[i], x[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
        y[i + 1] = __builtin_shufflevector(x[i], x[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    }
    UNROLL for (int i = 0; i < 8; i++) {
        const int j = i & ~2;
        x[i] = i & 2 ? __builtin_shufflevector(y[j], y[j + 2], 2, 3, 10, 11, 6, 7, 14, 15)
                     : __builtin_shufflevector(y[j], y[j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    }
    UNROLL for (int i = 0; i < 8; i++) {
        const int j = i & ~4;
        y[i] = i & 4 ? __builtin_shufflevector(x[j], x[j + 4], 4, 5, 6, 7, 12, 13, 14, 15)
                     : __builtin_shufflevector(x[j], x[j + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    }
    UNROLL for (int i = 0; i < 8; i++) x[i] = y[i];
}

// Adds the blocks of all lanes. The first eight entries of a block go as one vector: the eight lanes' are transposed
// first. Lanes are the outer loop: neighbouring elements share blocks, and a sum that follows at once on a sum into the
// same place would wait for it.
static inline void scatter_blocks(double *values, real *K, const int *blocks, int pairs, int count) {
    for (int pair = 0; pair < pairs; pair++) transpose(K + 9 * pair);
    for (int lane = 0; lane < count; lane++)
        for (int pair = 0; pair < pairs; pair++) {
            const real *k = K + 9 * pair;
            int         block = blocks[pair * LANES + lane];
            double     *p = values + 9 * (size_t)(block < 0 ? ~block : block);
            real        added = k[lane];
            if (block < 0)
                added = __builtin_shufflevector(added, added, 0, 3, 6, 1, 4, 7, 2, 5); // the transposed block
            real   sum = load(p) + added;
            double last = p[8] + k[8][lane]; // both loads before the stores, or the second waits for the first
            memcpy(p, &sum, sizeof sum);
            p[8] = last;
        }
}

// H_ij = sum_a (x_a)_i (g_a)_j over vertices 1 .. 3 of a T4, x relative to vertex 0 (the gradients sum to zero)
static inline void tet_gradient(real H[9], const real x[12], const real g[9]) {
    UNROLL for (int i = 0; i < 3; i++) {
        real d1 = x[3 + i] - x[i], d2 = x[6 + i] - x[i], d3 = x[9 + i] - x[i];
        UNROLL for (int j = 0; j < 3; j++) H[3 * i + j] = d1 * g[j] + d2 * g[3 + j] + d3 * g[6 + j];
    }
}

// f_a = V P g_a, f_0 = -(f_1 + f_2 + f_3)
static inline void tet_force(real f[12], const real P[9], const real g[9], real volume) {
    UNROLL for (int i = 0; i < 3; i++) {
        real sum = real_set(0);
        UNROLL for (int a = 0; a < 3; a++) {
            real s = volume * (P[3 * i] * g[3 * a] + P[3 * i + 1] * g[3 * a + 1] + P[3 * i + 2] * g[3 * a + 2]);
            f[3 * (a + 1) + i] = s;
            sum += s;
        }
        f[i] = -sum;
    }
}

// K_ab = V [(g_a . S g_b) I + lambda y_a y_b^T + mu y_b y_a^T + mu (g_a . g_b) F F^T], y_a = F g_a: isotropic StVK
static inline void tet_blocks_stvk(real K[9 * T4_BLOCKS], const fem_material_constants *c, const real H[9],
                                   const real g[9], real volume) {
    real e[6], s[6], S[9], F[9], B[9], y[9], t[9];
    green_strain(e, H);
    elastic_stress(s, c, e, true);
    voigt_to_matrix(S, s);
    UNROLL for (int i = 0; i < 9; i++) F[i] = i % 4 == 0 ? H[i] + 1 : H[i];
    UNROLL for (int i = 0; i < 3; i++) UNROLL for (int k = 0; k < 3; k++) B[3 * i + k] =
        F[3 * i] * F[3 * k] + F[3 * i + 1] * F[3 * k + 1] + F[3 * i + 2] * F[3 * k + 2];
    UNROLL for (int a = 0; a < 3; a++) UNROLL for (int i = 0; i < 3; i++) {
        y[3 * a + i] = F[3 * i] * g[3 * a] + F[3 * i + 1] * g[3 * a + 1] + F[3 * i + 2] * g[3 * a + 2];
        t[3 * a + i] = volume * (S[3 * i] * g[3 * a] + S[3 * i + 1] * g[3 * a + 1] + S[3 * i + 2] * g[3 * a + 2]);
    }
    real lambda = c->lambda * volume, mu = c->mu * volume;
    UNROLL for (int a = 0; a < 3; a++) {
        real l[3], m[3]; // lambda y_a, mu y_a
        UNROLL for (int i = 0; i < 3; i++) l[i] = lambda * y[3 * a + i], m[i] = mu * y[3 * a + i];
        UNROLL for (int b = a; b < 3; b++) {
            real *k = K + 9 * pair_index(a + 1, b + 1, 4);
            real  stress = g[3 * a] * t[3 * b] + g[3 * a + 1] * t[3 * b + 1] + g[3 * a + 2] * t[3 * b + 2];
            real  gg = mu * (g[3 * a] * g[3 * b] + g[3 * a + 1] * g[3 * b + 1] + g[3 * a + 2] * g[3 * b + 2]);
            UNROLL for (int i = 0; i < 3; i++) UNROLL for (int j = 0; j < 3; j++) {
                real x = l[i] * y[3 * b + j] + y[3 * b + i] * m[j] + gg * B[3 * i + j];
                k[3 * i + j] = i == j ? x + stress : x;
            }
        }
    }
}

// K_ab[i][k] = V sum_jl g_a,j D_ij,kl g_b,l: any material
static inline void tet_blocks(real K[9 * T4_BLOCKS], const real D[81], const real g[9], real volume) {
    for (int b = 0; b < 3; b++) {
        real T[27]; // V D g_b
        for (int p = 0; p < 9; p++) UNROLL for (int k = 0; k < 3; k++) {
                const real *d = D + 9 * p + 3 * k;
                T[3 * p + k] = volume * (d[0] * g[3 * b] + d[1] * g[3 * b + 1] + d[2] * g[3 * b + 2]);
            }
        for (int a = 0; a <= b; a++) {
            real *block = K + 9 * pair_index(a + 1, b + 1, 4);
            UNROLL for (int i = 0; i < 3; i++) UNROLL for (int k = 0; k < 3; k++) block[3 * i + k] =
                g[3 * a] * T[9 * i + k] + g[3 * a + 1] * T[9 * i + 3 + k] + g[3 * a + 2] * T[9 * i + 6 + k];
        }
    }
}

// Blocks of vertex 0 from zero row sums; K_ba = K_ab^T.
static inline void tet_complete_blocks(real K[9 * T4_BLOCKS]) {
    UNROLL for (int e = 0; e < 9; e++) {
        const int t = 3 * (e % 3) + e / 3;
        K[9 + e] = -(K[9 * 4 + e] + K[9 * 5 + t] + K[9 * 6 + t]);     // (0,1) = -(11 + 21 + 31)
        K[9 * 2 + e] = -(K[9 * 5 + e] + K[9 * 7 + e] + K[9 * 8 + t]); // (0,2) = -(12 + 22 + 32)
        K[9 * 3 + e] = -(K[9 * 6 + e] + K[9 * 8 + e] + K[9 * 9 + e]); // (0,3) = -(13 + 23 + 33)
    }
    UNROLL for (int e = 0; e < 9; e++) {
        const int t = 3 * (e % 3) + e / 3; // the sum of transposes keeps the block symmetric to rounding
        K[e] = -(K[9 + t] + K[9 * 2 + t] + K[9 * 3 + t]);
    }
}

static void tet_group(const element_work *w, int group, double *energy) {
    const fem_body               *body = w->body;
    const element_group          *info = &body->groups[group];
    const fem_material_constants *c = &body->constants[info->material];
    const int                    *vertices = body->vertices + (size_t)group * 4 * LANES;
    real                          g[9], x[12], H[9], P[9], f[12], volume = load(body->volumes + (size_t)group * LANES);
    for (int i = 0; i < 9; i++) g[i] = load(body->gradients + ((size_t)group * 9 + (size_t)i) * LANES);
    gather(x, w->u, vertices, 4);
    tet_gradient(H, x, g);
    if (w->second) {
        real A[9], B[9];
        gather(x, w->a, vertices, 4);
        tet_gradient(A, x, g);
        gather(x, w->b, vertices, 4);
        tet_gradient(B, x, g);
        material_second(c, H, A, B, P);
        tet_force(f, P, g, volume);
        scatter_force(w->force, f, vertices, 4, info->count);
        return;
    }
    real W, D[81], K[9 * T4_BLOCKS];
    bool closed_form = c->kind == FEM_STVK;
    material_evaluate(c, H, w->energy ? &W : NULL, w->force ? P : NULL, w->stiffness && !closed_form ? D : NULL);
    if (w->energy) {
        W *= volume;
        for (int lane = 0; lane < info->count; lane++) *energy += W[lane];
    }
    if (w->force) {
        tet_force(f, P, g, volume);
        scatter_force(w->force, f, vertices, 4, info->count);
    }
    if (w->stiffness) {
        if (closed_form)
            tet_blocks_stvk(K, c, H, g, volume);
        else
            tet_blocks(K, D, g, volume);
        tet_complete_blocks(K);
        scatter_blocks(w->stiffness, K, body->blocks + (size_t)group * T4_BLOCKS * LANES, T4_BLOCKS, info->count);
    }
}

// Gradients of the shape functions at a Gauss point, g[3 a + j] = dN_a/dX_j; returns weight x det(dX/dxi).
static inline real hex_gradients(real g[24], const real X[24], const hex_point *point) {
    real J[9], A[9]; // J_ij = dX_i/dxi_j; A = cofactors of J, so that J^-T = A / det
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            real sum = X[i] * point->dN[0][j];
            for (int a = 1; a < 8; a++) sum += X[3 * a + i] * point->dN[a][j];
            J[3 * i + j] = sum;
        }
    real_tensor_cross(A, J, J);
    for (int i = 0; i < 9; i++) A[i] *= 0.5;
    real det = J[0] * A[0] + J[1] * A[1] + J[2] * A[2], over = 1 / det;
    for (int i = 0; i < 9; i++) A[i] *= over;
    for (int a = 0; a < 8; a++)
        for (int i = 0; i < 3; i++)
            g[3 * a + i] = A[3 * i] * point->dN[a][0] + A[3 * i + 1] * point->dN[a][1] + A[3 * i + 2] * point->dN[a][2];
    return det * point->weight;
}

static inline void hex_gradient(real H[9], const real x[24], const real g[24]) {
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            real sum = x[i] * g[j];
            for (int a = 1; a < 8; a++) sum += x[3 * a + i] * g[3 * a + j];
            H[3 * i + j] = sum;
        }
}

static inline void hex_add_force(real f[24], const real P[9], const real g[24], real weight) {
    for (int a = 0; a < 8; a++)
        for (int i = 0; i < 3; i++)
            f[3 * a + i] += weight * (P[3 * i] * g[3 * a] + P[3 * i + 1] * g[3 * a + 1] + P[3 * i + 2] * g[3 * a + 2]);
}

static inline void hex_add_blocks(real K[9 * H8_BLOCKS], const real D[81], const real g[24], real weight) {
    for (int b = 0; b < 8; b++) {
        real T[27], gb[3] = {weight * g[3 * b], weight * g[3 * b + 1], weight * g[3 * b + 2]};
        for (int p = 0; p < 9; p++) UNROLL for (int k = 0; k < 3; k++) {
                const real *d = D + 9 * p + 3 * k;
                T[3 * p + k] = d[0] * gb[0] + d[1] * gb[1] + d[2] * gb[2];
            }
        for (int a = 0; a <= b; a++) {
            real *block = K + 9 * pair_index(a, b, 8);
            UNROLL for (int i = 0; i < 3; i++) UNROLL for (int k = 0; k < 3; k++) block[3 * i + k] +=
                g[3 * a] * T[9 * i + k] + g[3 * a + 1] * T[9 * i + 3 + k] + g[3 * a + 2] * T[9 * i + 6 + k];
        }
    }
}

static void hex_group(const element_work *w, int group, const hex_point *points, int point_count, double *energy) {
    const fem_body               *body = w->body;
    const element_group          *info = &body->groups[group];
    const fem_material_constants *c = &body->constants[info->material];
    const int                    *vertices = body->vertices + (size_t)group * 8 * LANES;
    real                          X[24], u[24], a[24], b[24], f[24], K[9 * H8_BLOCKS], total = real_set(0);
    gather(X, body->mesh->vertices, vertices, 8);
    gather(u, w->u, vertices, 8);
    if (w->second) gather(a, w->a, vertices, 8), gather(b, w->b, vertices, 8);
    for (int i = 0; i < 24; i++) f[i] = real_set(0);
    if (w->stiffness)
        for (int i = 0; i < 9 * H8_BLOCKS; i++) K[i] = real_set(0);
    for (int p = 0; p < point_count; p++) {
        real g[24], H[9], P[9], D[81], W;
        real weight = hex_gradients(g, X, &points[p]);
        hex_gradient(H, u, g);
        if (w->second) {
            real A[9], B[9];
            hex_gradient(A, a, g);
            hex_gradient(B, b, g);
            material_second(c, H, A, B, P);
        } else {
            material_evaluate(c, H, w->energy ? &W : NULL, w->force ? P : NULL, w->stiffness ? D : NULL);
        }
        if (w->energy) total += weight * W;
        if (w->force) hex_add_force(f, P, g, weight);
        if (w->stiffness) hex_add_blocks(K, D, g, weight);
    }
    if (w->energy)
        for (int lane = 0; lane < info->count; lane++) *energy += total[lane];
    if (w->force) scatter_force(w->force, f, vertices, 8, info->count);
    if (w->stiffness)
        scatter_blocks(w->stiffness, K, body->blocks + (size_t)group * H8_BLOCKS * LANES, H8_BLOCKS, info->count);
}

void JOIN(fem_element_kernel, SIMD_SUFFIX)(const element_work *work, int chunk) {
    const fem_body *body = work->body;
    double          energy = 0;
    hex_point       points[27];
    double          values[27][8];
    int point_count = body->mesh->type == FEM_H8 ? fem_hex_points(body->options.quadrature, points, values) : 0;
    for (int group = chunk * body->chunk_groups; group < chunk_end(body, chunk); group++) {
        if (body->mesh->type == FEM_T4)
            tet_group(work, group, &energy);
        else
            hex_group(work, group, points, point_count, &energy);
    }
    if (work->energy) work->energy[chunk] = energy;
}
