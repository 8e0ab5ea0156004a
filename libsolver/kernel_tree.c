// The pieces of a pass over the tree for the domains of a block, eight side by side. Compiled once per vector width
// (SIMD_SUFFIX) and chosen at run time. The plain versions of the same sums, which say what is computed and why, are
// tree_frames.c, tree_up.c, tree_down.c and, for one interface, libdomain.
//
// Layout: each number of the 8 domains is one `real`, a vector of 8 doubles; with AVX-512 that is one register. What is
// the same for all of them (integrals of the class) is broadcast from memory. Sums over the modes of the parent, which
// differs from lane to lane, are done lane by lane with the vectors along the modes instead.
#include "libsolver/tree_internal.h"

#include <string.h>

#define JOIN2(a, b) a##b
#define JOIN(a, b)  JOIN2(a, b)

typedef double real __attribute__((vector_size(64), may_alias));
typedef long   mask __attribute__((vector_size(64)));

#if defined(__clang__)
#define UNROLL    _Pragma("clang loop unroll(full)")
#define UNROLL_12 UNROLL
#else
#define UNROLL    _Pragma("GCC unroll 9")
#define UNROLL_12 _Pragma("GCC unroll 12")
#endif
#define INLINE static inline __attribute__((always_inline))

INLINE real  real_set(double x) { return (real){x, x, x, x, x, x, x, x}; }
INLINE real  real_where(mask m, real x) { return (real)(m & (mask)x); } // 0 elsewhere
INLINE real *lanes_of(double (*field)[LANES]) { return (real *)field; }
INLINE real *vectors(double *x) { return (real *)x; }

INLINE void cross(real *c, const real *a, const real *b) {
    real x = a[1] * b[2] - a[2] * b[1], y = a[2] * b[0] - a[0] * b[2], z = a[0] * b[1] - a[1] * b[0];
    c[0] = x, c[1] = y, c[2] = z;
}
INLINE void multiply(real *C, const real *A, const real *B) { // C = A B
    UNROLL for (int i = 0; i < 9; i++) C[i] =
        A[i / 3 * 3] * B[i % 3] + A[i / 3 * 3 + 1] * B[3 + i % 3] + A[i / 3 * 3 + 2] * B[6 + i % 3];
}
INLINE void multiply_nt(real *C, const real *A, const real *B) { // C = A B^T
    UNROLL for (int i = 0; i < 9; i++) C[i] =
        A[i / 3 * 3] * B[i % 3 * 3] + A[i / 3 * 3 + 1] * B[i % 3 * 3 + 1] + A[i / 3 * 3 + 2] * B[i % 3 * 3 + 2];
}
INLINE void multiply_vector(real *y, const real *A, const real *x) {
    UNROLL for (int i = 0; i < 3; i++) y[i] = A[3 * i] * x[0] + A[3 * i + 1] * x[1] + A[3 * i + 2] * x[2];
}
INLINE void multiply_t_vector(real *y, const real *A, const real *x) {
    UNROLL for (int i = 0; i < 3; i++) y[i] = A[i] * x[0] + A[3 + i] * x[1] + A[6 + i] * x[2];
}
INLINE void twice_skew(real *g, const real *A) { g[0] = A[7] - A[5], g[1] = A[2] - A[6], g[2] = A[3] - A[1]; }

// to[l] = lane by lane the l-th of r numbers; `from` is that of lane 0, those of the next lane follow. Unused lanes: 0.
INLINE void gather(int r, int count, const double *from, double *to) {
    if (count < LANES) memset(to, 0, (size_t)r * LANES * sizeof *to);
    for (int lane = 0; lane < count; lane++)
        for (int l = 0; l < r; l++) to[l * LANES + lane] = from[lane * r + l];
}

// ---- frames -----------------------------------------------------------------------------------------------------

// L = A R^T, P = (tr(L) I - L)^-1; the mask says where all of that is safe (polar.c)
INLINE mask inverse_of_stretch(const real *A, const real *R, real *L, real *P) {
    real G[6]; // 00 11 22 01 02 12
    multiply_nt(L, A, R);
    real trace = L[0] + L[4] + L[8];
    G[0] = trace - L[0], G[1] = trace - L[4], G[2] = trace - L[8];
    G[3] = -0.5 * (L[1] + L[3]), G[4] = -0.5 * (L[2] + L[6]), G[5] = -0.5 * (L[5] + L[7]);
    real C00 = G[1] * G[2] - G[5] * G[5], C11 = G[0] * G[2] - G[4] * G[4], C22 = G[0] * G[1] - G[3] * G[3];
    real C01 = G[4] * G[5] - G[3] * G[2], C02 = G[3] * G[5] - G[4] * G[1], C12 = G[3] * G[4] - G[0] * G[5];
    real det = G[0] * C00 + G[3] * C01 + G[4] * C02, e2 = C00 + C11 + C22, scale = 1 / det;
    P[0] = C00 * scale, P[4] = C11 * scale, P[8] = C22 * scale;
    P[1] = P[3] = C01 * scale, P[2] = P[6] = C02 * scale, P[5] = P[7] = C12 * scale;
    return (mask)(trace > real_set(0)) & (mask)(e2 > 1e-4 * trace * trace) &
           (mask)(det > DOMAIN_POLAR_GAP * trace * e2);
}

// R <- cayley(d) R, and a step towards orthonormal rows
INLINE void turn(const real *d, real *R) {
    real h[3] = {0.5 * d[0], 0.5 * d[1], 0.5 * d[2]}, s = 2 / (1 + h[0] * h[0] + h[1] * h[1] + h[2] * h[2]);
    real C[9], B[9], N[9];
    C[0] = 1 - s * (h[1] * h[1] + h[2] * h[2]), C[1] = s * (h[0] * h[1] - h[2]), C[2] = s * (h[0] * h[2] + h[1]);
    C[3] = s * (h[0] * h[1] + h[2]), C[4] = 1 - s * (h[0] * h[0] + h[2] * h[2]), C[5] = s * (h[1] * h[2] - h[0]);
    C[6] = s * (h[0] * h[2] - h[1]), C[7] = s * (h[1] * h[2] + h[0]), C[8] = 1 - s * (h[0] * h[0] + h[1] * h[1]);
    multiply(B, C, R);
    multiply_nt(N, B, B);
    UNROLL for (int i = 0; i < 9; i++) N[i] = (i % 4 == 0 ? 1.5 : 0) - 0.5 * N[i];
    multiply(R, N, B);
}

// Newton's method from the rotation R; gives the lanes where it has found the nearest one, with L and P.
static mask polar(const real *A, real *R, real *L, real *P) {
    mask good = inverse_of_stretch(A, R, L, P), small;
    for (int k = 0; k < 6; k++) {
        real g[3], d[3];
        twice_skew(g, L);
        multiply_vector(d, P, g);
        real size = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
        small = (mask)(size < real_set(1e-10)); // the next error is of the order of the cube
        good &= (mask)(size < real_set(1));
        UNROLL for (int i = 0; i < 3; i++) d[i] = real_where(good, d[i]);
        turn(d, R);
        good &= inverse_of_stretch(A, R, L, P);
        mask open = good & ~small;
        bool more = false;
        for (int i = 0; i < LANES; i++) more = more || open[i];
        if (!more) break;
    }
    return good & small;
}

#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
// The sums of the elements of 8 vectors, side by side.
INLINE real sums_of(const real *v) {
    real two[4], four[2];
    UNROLL for (int i = 0; i < 4; i++) two[i] = SHUFFLE(v[2 * i], v[2 * i + 1], 0, 8, 2, 10, 4, 12, 6, 14) +
                                                SHUFFLE(v[2 * i], v[2 * i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    UNROLL for (int i = 0; i < 2; i++) four[i] = SHUFFLE(two[2 * i], two[2 * i + 1], 0, 1, 8, 9, 4, 5, 12, 13) +
                                                 SHUFFLE(two[2 * i], two[2 * i + 1], 2, 3, 10, 11, 6, 7, 14, 15);
    return SHUFFLE(four[0], four[1], 0, 1, 2, 3, 8, 9, 10, 11) + SHUFFLE(four[0], four[1], 4, 5, 6, 7, 12, 13, 14, 15);
}

// Numbers from v * LANES on of n, zeros behind them.
INLINE real part_of(const double *x, int n, int v) {
    real part = real_set(0);
    int  left = n - v * LANES;
    if (left >= LANES)
        memcpy(&part, x + v * LANES, sizeof part);
    else
        for (int i = 0; i < left; i++) part[i] = x[v * LANES + i];
    return part;
}

// Sums of `rows` rows of an interface times q and dq, as partial sums along the modes.
INLINE void sums_of_rows(int rows, int width, int r, const real *row, const double *q, const double *dq, real *x,
                         real *y) {
    UNROLL_12 for (int i = 0; i < rows; i++) x[i] = y[i] = real_set(0);
    for (int v = 0; v < width; v++) {
        real at = part_of(q, r, v), to = part_of(dq, r, v);
        UNROLL_12 for (int i = 0; i < rows; i++) {
            real f = row[i * width + v];
            x[i] += f * at, y[i] += f * to;
        }
    }
}

// Sums over the modes of the parents, with q and dq, of the 12 rows of a and F, or 9 of flat interfaces. An interface
// is mostly the only one of its kind: reading it is what takes time.
static void sums_over_modes(const solver_tree *tree, const tree_block *block, const double *q, const double *dq,
                            real *sum, real *rate) {
    real part[24][LANES];
    memset(part, 0, sizeof part);
    for (int lane = block->roots; lane < block->count; lane++) { // roots come first
        const tree_domain      *domain = &tree->domains[block->first + lane], *parent = &tree->domains[domain->parent];
        const domain_interface *interface = &tree->classes[parent->class_index].interfaces[domain->interface];
        const real             *row = (const real *)interface->a;
        int                     width = interface->stride / LANES;
        real                    x[12], y[12];
        if (lane + 1 < block->count) {
            const tree_domain      *next = domain + 1, *above = &tree->domains[next->parent];
            const domain_interface *other = &tree->classes[above->class_index].interfaces[next->interface];
            const real             *ahead = (const real *)other->a;
            for (int i = 0; i < (other->flat ? 9 : 12) * width; i++) __builtin_prefetch(ahead + i);
        }
        const double *here = q + parent->offset, *speed = dq + parent->offset;
        if (interface->flat) {
            sums_of_rows(9, width, parent->r, row, here, speed, x, y);
            UNROLL for (int i = 9; i < 12; i++) x[i] = y[i] = real_set(0);
        } else
            sums_of_rows(12, width, parent->r, row, here, speed, x, y);
        UNROLL_12 for (int i = 0; i < 12; i++) part[i][lane] = x[i], part[12 + i][lane] = y[i];
    }
    for (int i = 0; i < 12; i++) sum[i] = sums_of(part[i]), rate[i] = sums_of(part[12 + i]);
}

// W of one lane, from `columns` columns of F.
INLINE void turning_rows(int columns, const domain_interface *interface, const double b[27], double *out) {
    int         width = interface->stride / LANES;
    const real *f = (const real *)interface->F;
    real       *W = (real *)out;
    for (int v = 0; v < width; v++) {
        real x[9];
        UNROLL for (int i = 0; i < 3 * columns; i++) x[i] = f[i * width + v];
        UNROLL for (int i = 0; i < 3; i++) {
            real sum = real_set(0);
            UNROLL for (int k = 0; k < columns; k++) {
                sum += b[9 * k + 3 * i] * x[3 * k] + b[9 * k + 3 * i + 1] * x[3 * k + 1] +
                       b[9 * k + 3 * i + 2] * x[3 * k + 2];
            }
            W[i * width + v] = sum;
        }
    }
}

// W of every lane: W_l = sum_k B_k f_k^l with B_k = P ([r_k] + what the third column of a flat interface makes of it)
static void gradients(const solver_tree *tree, tree_block *block, const real *F, const real *fit, const real *P) {
    real flat = *(real *)block->lanes->flat, C[9], B[3][9], n[3] = {fit[2], fit[5], fit[8]};
    real n1 = n[0] * F[0] + n[1] * F[1] + n[2] * F[2], n2 = n[0] * F[3] + n[1] * F[4] + n[2] * F[5];
    UNROLL for (int k = 0; k < 3; k++) {
        C[0] = C[4] = C[8] = real_set(0);
        C[1] = -fit[6 + k], C[2] = fit[3 + k], C[3] = fit[6 + k], C[5] = -fit[k], C[6] = -fit[3 + k], C[7] = fit[k];
        if (k < 2) UNROLL
        for (int i = 0; i < 9; i++) {
            if (k == 0)
                C[i] += flat * ((i % 4 == 0 ? n2 : real_set(0)) - F[3 + i / 3] * n[i % 3]);
            else
                C[i] += flat * (F[i / 3] * n[i % 3] - (i % 4 == 0 ? n1 : real_set(0)));
        }
        multiply(B[k], P, C);
    }
    for (int lane = block->roots; lane < block->count; lane++) {
        const tree_domain       *domain = &tree->domains[block->first + lane];
        const solver_tree_class *c = &tree->classes[tree->domains[domain->parent].class_index];
        const domain_interface  *interface = &c->interfaces[domain->interface];
        double                   b[27];
        for (int i = 0; i < 27; i++) b[i] = B[i / 9][i % 9][lane];
        if (interface->flat)
            turning_rows(2, interface, b, domain->W);
        else
            turning_rows(3, interface, b, domain->W);
    }
}

// Lanes that Newton's method has not solved, one by one.
static void mend(tree_block *block, mask good, const real *A, real *fit, real *L, real *P) {
    for (int lane = block->roots; lane < block->count; lane++) {
        domain_polar polar_of_lane;
        double       a[9];
        block->flags[lane] = 0;
        for (int i = 0; i < 9; i++) a[i] = A[i][lane];
        if (!good[lane]) {
            domain_polar_decompose(&polar_of_lane, a, NULL);
            block->flags[lane] = polar_of_lane.flags;
            for (int i = 0; i < 9; i++)
                fit[i][lane] = polar_of_lane.R[i], L[i][lane] = polar_of_lane.L[i], P[i][lane] = polar_of_lane.P[i];
        } else if (!(mat3_det(a) > 0))
            block->flags[lane] = DOMAIN_REFLECTED;
    }
}

static void frames(const solver_tree *tree, tree_block *block, const double *q, const double *dq) {
    tree_lanes *lanes = block->lanes;
    real        F[9], dF[9], A[9], L[9], fit[9], P[9], D[9], g[3], w[3], t[3], u[3], third[3], s[12], r[12];
    real        above = *(real *)lanes->above, flat = *(real *)lanes->flat;
    sums_over_modes(tree, block, q, dq, s, r);
    for (int i = 0; i < 3; i++) {
        lanes_of(lanes->x)[i] = lanes_of(lanes->rest_x)[i] + above * s[i];
        lanes_of(lanes->v)[i] = above * r[i];
    }
    for (int i = 0; i < 9; i++) F[i] = lanes_of(lanes->rest_F)[i] + s[3 + i], dF[i] = r[3 + i];
    cross(t, F, F + 3);
    for (int i = 0; i < 3; i++) F[6 + i] += flat * t[i];
    cross(t, dF, F + 3);
    cross(u, F, dF + 3);
    cross(third, dF, dF + 3);
    for (int i = 0; i < 3; i++) dF[6 + i] += flat * (t[i] + u[i]), third[i] *= 2 * flat;
    for (int i = 0; i < 9; i++) A[i] = F[3 * (i % 3) + i / 3], fit[i] = lanes_of(lanes->fit)[i];
    mend(block, polar(A, fit, L, P), A, fit, L, P);
    for (int i = 0; i < 9; i++) {
        lanes_of(lanes->F)[i] = F[i], lanes_of(lanes->fit)[i] = fit[i];
        A[i] = dF[3 * (i % 3) + i / 3]; // dA from here on
    }
    multiply(lanes_of(lanes->R), fit, lanes_of(lanes->rest_turn));
    multiply_nt(D, A, fit);
    twice_skew(g, D);
    multiply_vector(w, P, g);
    // B = ddA R^T - [w] D, X = D - [w] L; g = 2 skew(B) - (tr(X) I - X) w
    real B[9], X[9], Xw[3], trace;
    UNROLL for (int j = 0; j < 3; j++) {
        real column[3] = {D[j], D[3 + j], D[6 + j]}, left[3] = {L[j], L[3 + j], L[6 + j]};
        cross(t, w, column);
        cross(u, w, left);
        UNROLL for (int i = 0; i < 3; i++) {
            B[3 * i + j] = third[i] * fit[3 * j + 2] - t[i];
            X[3 * i + j] = column[i] - u[i];
        }
    }
    twice_skew(g, B);
    multiply_vector(Xw, X, w);
    trace = X[0] + X[4] + X[8];
    for (int i = 0; i < 3; i++) g[i] += Xw[i] - trace * w[i], lanes_of(lanes->turn)[i] = w[i];
    multiply_vector(lanes_of(lanes->bias), P, g);
    gradients(tree, block, F, fit, P);
}

// Numbers of the parents of a block's lanes.
#define GATHER_ABOVE(n, field, out)                                                                                    \
    for (int lane = 0; lane < LANES; lane++) {                                                                         \
        const tree_domain *parent =                                                                                    \
            &tree->domains[tree->domains[block->first + (lane < block->count ? lane : 0)].parent];                     \
        const tree_lanes *from = tree->blocks[parent->block].lanes;                                                    \
        for (int i = 0; i < (n); i++) (out)[i][lane] = from->field[i][parent->lane];                                   \
    }

static void velocities(const solver_tree *tree, tree_block *block, bool poses) {
    tree_lanes *lanes = block->lanes;
    real        w[3], t[3], u[3], *x = lanes_of(lanes->x), *v = lanes_of(lanes->v), *rate = lanes_of(lanes->turn);
    real       *R = lanes_of(lanes->R), *c = lanes_of(lanes->c);
    GATHER_ABOVE(3, w, w)
    cross(t, w, x);
    cross(u, w, t);
    real spin[3] = {t[0], t[1], t[2]};
    cross(t, w, v);
    for (int i = 0; i < 3; i++) c[i] = u[i] + 2 * t[i];
    cross(t, w, rate);
    for (int i = 0; i < 3; i++) c[3 + i] = t[i] + lanes_of(lanes->bias)[i], u[i] = w[i] + rate[i];
    multiply_t_vector(lanes_of(lanes->w), R, u);
    if (!poses) return;
    real Q[9], p[3], V[3];
    GATHER_ABOVE(9, Q, Q)
    GATHER_ABOVE(3, p, p)
    GATHER_ABOVE(3, V, V)
    multiply(lanes_of(lanes->Q), Q, R);
    multiply_vector(t, Q, x);
    for (int i = 0; i < 3; i++) lanes_of(lanes->p)[i] = p[i] + t[i], spin[i] += v[i];
    multiply_vector(t, Q, spin);
    for (int i = 0; i < 3; i++) lanes_of(lanes->V)[i] = V[i] + t[i];
}

// ---- up: the equation -------------------------------------------------------------------------------------------

// Inertia of the domains themselves: Mrq, Mrr, -b_r, and minus b_q in the last row.
static void own_inertia(const solver_inertia *inertia, const tree_lanes *lanes, const double *q_lanes,
                        const double *dq_lanes, double *E) {
    int         r = inertia->r;
    const real *q = (const real *)q_lanes, *dq = (const real *)dq_lanes, *w = (const real *)lanes->w;
    real        s1 = *(const real *)lanes->scale, s3 = s1 * s1 * s1, s4 = s3 * s1, s5 = s4 * s1;
    real        s[3], Z[6], N[9], rate[3]; // Z: 00 11 22 01 02 12
    real        w2 = w[0] * w[0] + w[1] * w[1] + w[2] * w[2];
    UNROLL for (int k = 0; k < 3; k++) s[k] = real_set(inertia->s0[k]), rate[k] = real_set(0);
    UNROLL for (int k = 0; k < 9; k++) N[k] = real_set(0);
    static const int at[6] = {0, 4, 8, 1, 2, 5}, other[6] = {0, 4, 8, 3, 6, 7};
    UNROLL for (int k = 0; k < 6; k++) Z[k] = real_set(inertia->Z0[at[k]]);
    for (int l = 0; l < r; l++) {
        const double *W5 = inertia->W5 + 9 * l, *S1 = inertia->S1 + 3 * l;
        real          P[9], C[3], N_l[9], Nw[3];
        UNROLL for (int k = 0; k < 9; k++) P[k] = real_set(0);
        UNROLL for (int k = 0; k < 3; k++) C[k] = real_set(0);
        for (int p = 0; p < r; p++) { // sum_p q_p W7_lp, sum_p dq_p 2 skew(W7_lp)
            const double *W7 = inertia->W7 + 9 * ((size_t)r * (size_t)p + (size_t)l);
            real          x = q[p], y = dq[p];
            UNROLL for (int k = 0; k < 9; k++) P[k] += W7[k] * x;
            C[0] += (W7[7] - W7[5]) * y, C[1] += (W7[2] - W7[6]) * y, C[2] += (W7[3] - W7[1]) * y;
        }
        UNROLL for (int k = 0; k < 9; k++) N_l[k] = W5[k] + P[k];
        UNROLL for (int k = 0; k < 6; k++) Z[k] += q[l] * (N_l[at[k]] + W5[other[k]]);
        UNROLL for (int k = 0; k < 9; k++) N[k] += dq[l] * N_l[k];
        UNROLL for (int k = 0; k < 3; k++) {
            s[k] += S1[k] * q[l], rate[k] += S1[k] * dq[l];
            *(real *)(E + TREE_E(r + k, l)) = S1[k] * s4;
        }
        *(real *)(E + TREE_E(r + 3, l)) = s5 * (N_l[7] - N_l[5]);
        *(real *)(E + TREE_E(r + 4, l)) = s5 * (N_l[2] - N_l[6]);
        *(real *)(E + TREE_E(r + 5, l)) = s5 * (N_l[3] - N_l[1]);
        multiply_vector(Nw, N_l, w);
        real b = w[0] * Nw[0] + w[1] * Nw[1] + w[2] * Nw[2] - (N_l[0] + N_l[4] + N_l[8]) * w2 +
                 2 * (C[0] * w[0] + C[1] * w[1] + C[2] * w[2]);
        *(real *)(E + TREE_E(r + 6, l)) = -s5 * b;
    }
    // Mrr = [m, -[s]; [s], tr(Z) - Z]; b_v = w x (w x s) + 2 w x S1 dq, b_w = -w x (Z w) + 2 (tr(N) - N) w
    real trace = Z[0] + Z[1] + Z[2], zero = real_set(0), m = inertia->m * s3, t[3], u[3], full[9], b[6];
    for (int k = 0; k < 3; k++) {
        for (int j = 0; j <= k; j++) *(real *)(E + TREE_E(r + k, r + j)) = j == k ? m : zero;
        *(real *)(E + TREE_E(r + 3 + k, r + k)) = zero;
    }
    for (int k = 0; k < 3; k++) {
        int next = (k + 1) % 3, last = (k + 2) % 3;
        *(real *)(E + TREE_E(r + 3 + last, r + next)) = s4 * s[k];
        *(real *)(E + TREE_E(r + 3 + next, r + last)) = -s4 * s[k];
        *(real *)(E + TREE_E(r + 3 + k, r + 3 + k)) = s5 * (trace - Z[k]);
    }
    *(real *)(E + TREE_E(r + 4, r + 3)) = -s5 * Z[3];
    *(real *)(E + TREE_E(r + 5, r + 3)) = -s5 * Z[4];
    *(real *)(E + TREE_E(r + 5, r + 4)) = -s5 * Z[5];
    cross(t, w, s);
    cross(b, w, t);
    cross(t, w, rate);
    full[0] = Z[0], full[4] = Z[1], full[8] = Z[2];
    full[1] = full[3] = Z[3], full[2] = full[6] = Z[4], full[5] = full[7] = Z[5];
    UNROLL for (int k = 0; k < 3; k++) b[k] = s4 * (b[k] + 2 * t[k]);
    multiply_vector(t, full, w);
    cross(u, w, t);
    multiply_vector(t, N, w);
    trace = N[0] + N[4] + N[8];
    UNROLL for (int k = 0; k < 3; k++) b[3 + k] = s5 * (2 * (trace * w[k] - t[k]) - u[k]);
    for (int k = 0; k < 6; k++)
        *(real *)(E + TREE_E(r + 6, r + k)) = lanes_of((double(*)[LANES])lanes->wrench)[k] - b[k];
    *(real *)(E + TREE_E(r + 6, r + 6)) = zero;
}

// H in the place of K, and the forces of the modes added to the last row.
static void own_forces(const tree_block *block, const solver_inertia *inertia, const tree_evaluation *at,
                       const double *v_lanes, const double *rate_lanes, const double *modal_lanes, double *product) {
    int               r = block->r;
    const tree_lanes *lanes = block->lanes;
    const real       *v = (const real *)v_lanes, *rate = (const real *)rate_lanes, *modal = (const real *)modal_lanes;
    real              s = *(const real *)lanes->scale, s5 = s * s * s * s * s;
    real              alpha = *(const real *)lanes->damping_mass;
    real              beta = *(const real *)lanes->damping_stiffness + block->calm;
    real              mass = s5 * (1 + at->c_damping * alpha), stiff = at->c_stiffness + at->c_damping * beta;
    real              drag = s5 * alpha, *y = vectors(product); // y = K v + alpha M rate
    mask              used = (mask)(*(const real *)lanes->used > real_set(0));
    for (int i = 0; i < r; i++) {
        real sum = real_set(0), *row = (real *)(block->E + TREE_E(i, 0)), vi = v[i], ri = rate[i] * drag;
        for (int j = 0; j < i; j++) {
            real K = real_where(used, row[j]), M = real_set(inertia->Mqq[i * r + j]);
            sum += K * v[j] + M * (drag * rate[j]);
            y[j] += K * vi + M * ri;
            row[j] = mass * M + stiff * K;
        }
        real K = real_where(used, row[i]), M = real_set(inertia->Mqq[i * r + i]);
        y[i] = sum + K * vi + M * ri;
        row[i] = mass * M + stiff * K;
    }
    for (int l = 0; l < r; l++)
        *(real *)(block->E + TREE_E(r + 6, l)) += modal[l] - real_where(used, vectors(block->f)[l]) - y[l];
}

// What hangs on one domain, summed over its children with the vectors along its modes: rows l of J^T I J (p <= l is
// used), 6 rows of X^T I J, J^T h; then X^T I X and X^T h.
static void sum_children(const solver_tree *tree, const tree_domain *domain, double *sum, double shifted[27]) {
    const domain_interface *interfaces = tree->classes[domain->class_index].interfaces;
    int                     r = domain->r, width = (r + LANES - 1) / LANES;
    real *M = vectors(sum), *rq = M + (size_t)r * (size_t)width, *bq = rq + 6 * width, *IJ = bq + width;
    real *V = IJ + 6 * width;
    memset(sum, 0, (size_t)(r + 7) * (size_t)width * sizeof *M);
    for (int k = 0; k < 27; k++) shifted[k] = 0;
    for (int k = 0; k < domain->child_count; k++) {
        const tree_domain      *child = &tree->domains[domain->children[k]];
        const domain_interface *interface = &interfaces[child->interface];
        tree_lanes             *lanes = tree->blocks[child->block].lanes;
        const real             *a = (const real *)interface->a, *W = (const real *)child->W;
        double                  I[36], h[6], x[3];
        int                     carried = child->carried;
        tree_carried_inertia    w;
        if (carried > 0) tree_carried_up(tree, child, &w);
        if (k + 1 < domain->child_count) { // they are read once a pass, from anywhere
            const tree_domain *next = &tree->domains[domain->children[k + 1]];
            for (int i = 0; i < 3 * width; i++) {
                __builtin_prefetch((const real *)interfaces[next->interface].a + i);
                __builtin_prefetch((const real *)next->W + i);
            }
        }
        for (int i = 0; i < 6; i++)
            for (int j = 0; j < 6; j++) I[6 * i + j] = lanes->I[SYM6(i, j)][child->lane];
        lane_get(6, lanes->h, child->lane, h);
        lane_get(3, lanes->x, child->lane, x);
        for (int i = 0; i < SYM6_SIZE; i++) shifted[i] += lanes->shifted[i][child->lane];
        for (int i = 0; i < 6; i++) shifted[21 + i] += lanes->shifted_h[i][child->lane];
        for (int v = 0; v < width; v++) {
            real J[6], y[6];
            UNROLL for (int i = 0; i < 3; i++) J[i] = domain->scale * a[i * width + v], J[3 + i] = W[i * width + v];
            UNROLL for (int i = 0; i < 6; i++) {
                y[i] = I[6 * i] * J[0] + I[6 * i + 1] * J[1] + I[6 * i + 2] * J[2] + I[6 * i + 3] * J[3] +
                       I[6 * i + 4] * J[4] + I[6 * i + 5] * J[5];
            }
            for (int c = 0; c < carried; c++) { // Irw P, and V = Iwr J + Iww P
                const double *column = w.Irw + 6 * c, *row = w.Iww + c * carried;
                const real   *P = (const real *)child->P;
                real          p = P[c * width + v], sum_of = real_set(0);
                UNROLL for (int i = 0; i < 6; i++) y[i] += column[i] * p, sum_of += column[i] * J[i];
                for (int b = 0; b < carried; b++) sum_of += row[b] * P[b * width + v];
                V[c * width + v] = sum_of;
                bq[v] += w.h[c] * p;
            }
            UNROLL for (int i = 0; i < 6; i++) IJ[i * width + v] = y[i];
            bq[v] += h[0] * J[0] + h[1] * J[1] + h[2] * J[2] + h[3] * J[3] + h[4] * J[4] + h[5] * J[5];
            UNROLL for (int i = 0; i < 3; i++) rq[i * width + v] += y[i];
            rq[3 * width + v] += y[3] + x[1] * y[2] - x[2] * y[1];
            rq[4 * width + v] += y[4] + x[2] * y[0] - x[0] * y[2];
            rq[5 * width + v] += y[5] + x[0] * y[1] - x[1] * y[0];
        }
        const double *rows = interface->a;
        size_t        stride = (size_t)interface->stride;
        for (int l = 0; l < r; l++) {
            double J[6];
            for (size_t i = 0; i < 3; i++)
                J[i] = domain->scale * rows[stride * i + (size_t)l], J[3 + i] = child->W[stride * i + (size_t)l];
            for (int v = 0; v <= l / LANES; v++)
                M[l * width + v] += J[0] * IJ[v] + J[1] * IJ[width + v] + J[2] * IJ[2 * width + v] +
                                    J[3] * IJ[3 * width + v] + J[4] * IJ[4 * width + v] + J[5] * IJ[5 * width + v];
            for (int c = 0; c < carried; c++) {
                double p = child->P[stride * (size_t)c + (size_t)l];
                for (int v = 0; v <= l / LANES; v++) M[l * width + v] += p * V[c * width + v];
            }
        }
    }
}

// Adds that to the equations of a block.
static void add_children(const solver_tree *tree, const tree_block *block, double *sum) {
    int    r = block->r, stride = (r + LANES - 1) / LANES * LANES;
    double shifted[27];
    for (int lane = 0; lane < block->count; lane++) {
        const tree_domain *domain = &tree->domains[block->first + lane];
        double            *E = block->E + lane, *rq = sum + r * stride, *bq = rq + 6 * stride;
        if (domain->child_count == 0) continue;
        sum_children(tree, domain, sum, shifted);
        for (int i = 0; i < r; i++) {
            double *row = E + TREE_E(i, 0);
            for (int j = 0; j <= i; j++) row[j * LANES] += sum[i * stride + j];
        }
        for (int k = 0; k < 6; k++) {
            double *row = E + TREE_E(r + k, 0);
            for (int l = 0; l < r; l++) row[l * LANES] += rq[k * stride + l];
            for (int j = 0; j <= k; j++) row[(r + j) * LANES] += shifted[SYM6(j, k)];
        }
        double *last = E + TREE_E(r + 6, 0);
        for (int l = 0; l < r; l++) last[l * LANES] -= bq[l];
        for (int k = 0; k < 6; k++) last[(r + k) * LANES] -= shifted[21 + k];
    }
}

// ---- up: the elimination ----------------------------------------------------------------------------------------

// Rows i0 .. of a tile of up to 4 x 4 entries, less what the columns before `columns_before` take from them;
// left[jj][m] is D_m L_jm. Sixteen sums stay in registers.
INLINE void tile_sums(int rows, int columns, int before, double *E, int i0, int j0, const real *left, int stride,
                      real sum[4][4]) {
    const real *row[4];
    UNROLL for (int i = 0; i < rows; i++) {
        row[i] = (const real *)(E + TREE_E(i0 + i, 0));
        UNROLL for (int j = 0; j < columns; j++) sum[i][j] = i0 + i >= j0 + j ? row[i][j0 + j] : real_set(0);
    }
    for (int m = 0; m < before; m++) {
        real y[4];
        UNROLL for (int j = 0; j < columns; j++) y[j] = left[j * stride + m];
        UNROLL for (int i = 0; i < rows; i++) {
            real x = row[i][m];
            UNROLL for (int j = 0; j < columns; j++) sum[i][j] -= x * y[j];
        }
    }
}

// Finishes a tile whose columns are pivots: L (unit) and D of the tile's own columns are in the diagonal tile.
INLINE void tile_finish(int rows, int columns, double *E, int i0, int j0, real sum[4][4], const real *inverse) {
    UNROLL for (int j = 0; j < columns; j++) {
        UNROLL for (int k = 0; k < j; k++) {
            real L = *(const real *)(E + TREE_E(j0 + j, j0 + k));
            UNROLL for (int i = 0; i < rows; i++) sum[i][j] -= sum[i][k] * L;
        }
    }
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int j = 0; j < columns; j++) * (real *)(E + TREE_E(i0 + i, j0 + j)) = sum[i][j] * inverse[j];
    }
}

// The diagonal tile: columns x columns. The inverse pivots and the smallest pivot.
INLINE void tile_diagonal(int columns, double *E, int j0, real sum[4][4], real *inverse, real *least) {
    UNROLL for (int j = 0; j < columns; j++) {
        UNROLL for (int k = 0; k < j; k++) { // sum[j][k] is still L D there
            real L = sum[j][k] * inverse[k];
            UNROLL for (int i = j; i < columns; i++) sum[i][j] -= sum[i][k] * L;
        }
        inverse[j] = 1 / sum[j][j];
        *least = real_where((mask)(*least < sum[j][j]), *least) + real_where(~(mask)(*least < sum[j][j]), sum[j][j]);
    }
    UNROLL for (int i = 0; i < columns; i++) {
        UNROLL for (int j = 0; j < i; j++) * (real *)(E + TREE_E(j0 + i, j0 + j)) = sum[i][j] * inverse[j];
        *(real *)(E + TREE_E(j0 + i, j0 + i)) = sum[i][i];
    }
}

#define EACH_SIZE(n, CALL)                                                                                             \
    switch (n) {                                                                                                       \
    case 4:                                                                                                            \
        CALL(4);                                                                                                       \
        break;                                                                                                         \
    case 3:                                                                                                            \
        CALL(3);                                                                                                       \
        break;                                                                                                         \
    case 2:                                                                                                            \
        CALL(2);                                                                                                       \
        break;                                                                                                         \
    default:                                                                                                           \
        CALL(1);                                                                                                       \
        break;                                                                                                         \
    }

// Four (or fewer) columns from j0 on, of all rows from i0 on.
INLINE void pivot_columns(int columns, int n, double *E, int j0, const real *left, int stride, real *least) {
    real sum[4][4], inverse[4];
    tile_sums(columns, columns, j0, E, j0, j0, left, stride, sum);
    tile_diagonal(columns, E, j0, sum, inverse, least);
    int i0 = j0 + columns;
    for (; i0 + 4 <= n; i0 += 4) {
        tile_sums(4, columns, j0, E, i0, j0, left, stride, sum);
        tile_finish(4, columns, E, i0, j0, sum, inverse);
    }
#define REST(rows)                                                                                                     \
    tile_sums(rows, columns, j0, E, i0, j0, left, stride, sum), tile_finish(rows, columns, E, i0, j0, sum, inverse)
    if (i0 < n) EACH_SIZE(n - i0, REST)
#undef REST
}

// The same for columns that are no pivots: only the sums.
INLINE void left_columns(int columns, int n, int r, double *E, int j0, const real *left, int stride) {
    real sum[4][4];
    int  i0 = j0;
    for (; i0 + 4 <= n; i0 += 4) {
        tile_sums(4, columns, r, E, i0, j0, left, stride, sum);
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < columns && j0 + j <= i0 + i; j++) *(real *)(E + TREE_E(i0 + i, j0 + j)) = sum[i][j];
    }
    for (; i0 < n; i0++) {
        tile_sums(1, columns, r, E, i0, j0, left, stride, sum);
        for (int j = 0; j < columns && j0 + j <= i0; j++) *(real *)(E + TREE_E(i0, j0 + j)) = sum[0][j];
    }
}

// left[jj][m] = D_m L_(j0+jj) m
INLINE void scaled_rows(int columns, int before, const double *E, int j0, real *left, int stride) {
    for (int j = 0; j < columns; j++) {
        const real *row = (const real *)(E + TREE_E(j0 + j, 0));
        for (int m = 0; m < before; m++) left[j * stride + m] = row[m] * *(const real *)(E + TREE_E(m, m));
    }
}

// E of r + 7 rows: the first r pivots. The smallest pivot of each lane.
static real eliminate(int r, double *E, double *work) {
    real *left = vectors(work), least = real_set(INFINITY);
    int   n = r + 7, stride = r + 7;
    for (int j0 = 0; j0 < r; j0 += 4) {
        int columns = r - j0 < 4 ? r - j0 : 4;
        scaled_rows(columns, j0, E, j0, left, stride);
#define PIVOTS(c) pivot_columns(c, n, E, j0, left, stride, &least)
        EACH_SIZE(columns, PIVOTS)
#undef PIVOTS
    }
    scaled_rows(4, r, E, r, left, stride);
    left_columns(4, n, r, E, r, left, stride);
    scaled_rows(2, r, E, r + 4, left, stride);
    left_columns(2, n, r, E, r + 4, left, stride);
    return least;
}

// Is I, in the last rows of E, positive semidefinite? `size` has tr of the mass and of the moment of inertia without
// the modes. The pivots of Gauss, where they are not negligible.
static mask is_inertia(int r, const double *E, const real size[2]) {
    real P[6][6];
    mask good = (mask)(real_set(0) == real_set(0));
    for (int i = 0; i < 6; i++)
        for (int j = 0; j <= i; j++) P[i][j] = *(const real *)(E + TREE_E(r + i, r + j));
    UNROLL for (int j = 0; j < 6; j++) {
        real least = 1e-9 * size[j / 3];
        good &= (mask)(P[j][j] >= -least);
        real inverse = real_where((mask)(P[j][j] > least), 1 / P[j][j]);
        UNROLL for (int i = j + 1; i < 6; i++) {
            real factor = P[i][j] * inverse;
            UNROLL for (int k = j + 1; k <= i; k++) P[i][k] -= factor * P[k][j];
        }
    }
    return good;
}

// ---- up: what the parent feels ----------------------------------------------------------------------------------

// I from E into the parent's axes (R of a root is the identity), b likewise.
static void hand_up(const tree_block *block) {
    tree_lanes *lanes = block->lanes;
    int         r = block->r;
    real        M[36], b[6], *I = lanes_of(lanes->I);
    const real *R = lanes_of(lanes->R);
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j <= i; j++) M[6 * i + j] = M[6 * j + i] = *(const real *)(block->E + TREE_E(r + i, r + j));
        b[i] = -*(const real *)(block->E + TREE_E(r + 6, r + i));
    }
    {
        for (int corner = 0; corner < 3; corner++) { // upper left, upper right, lower right
            real *at = M + (corner == 0 ? 0 : corner == 1 ? 3 : 21), A[9], B[9];
            for (int i = 0; i < 9; i++) A[i] = at[6 * (i / 3) + i % 3];
            multiply(B, R, A);
            multiply_nt(A, B, R);
            for (int i = 0; i < 9; i++) at[6 * (i / 3) + i % 3] = A[i];
        }
        real t[6];
        multiply_vector(t, R, b);
        multiply_vector(t + 3, R, b + 3);
        for (int i = 0; i < 6; i++) b[i] = t[i];
    }
    for (int i = 0; i < 6; i++) {
        for (int j = i; j < 6; j++) I[SYM6(i, j)] = M[6 * i + j];
        lanes_of(lanes->b)[i] = b[i];
    }
}

// h = I c + b, X^T I X, X^T h
static void finish(tree_block *block) {
    tree_lanes *lanes = block->lanes;
    real  M[36], *I = lanes_of(lanes->I), *c = lanes_of(lanes->c), *x = lanes_of(lanes->x), *h = lanes_of(lanes->h);
    real *S = lanes_of(lanes->shifted), *s = lanes_of(lanes->shifted_h), t[3];
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < 6; j++) M[6 * i + j] = I[SYM6(i, j)];
        h[i] = lanes_of(lanes->b)[i] + M[6 * i] * c[0] + M[6 * i + 1] * c[1] + M[6 * i + 2] * c[2] +
               M[6 * i + 3] * c[3] + M[6 * i + 4] * c[4] + M[6 * i + 5] * c[5];
    }
    for (int i = 0; i < 6; i++) { // columns, as rows of the transpose: [x] of the upper half added to the lower
        cross(t, x, M + 6 * i);
        for (int k = 0; k < 3; k++) M[6 * i + 3 + k] += t[k];
    }
    for (int j = 0; j < 6; j++) {
        real column[3] = {M[j], M[6 + j], M[12 + j]};
        cross(t, x, column);
        for (int k = 0; k < 3; k++) M[6 * (3 + k) + j] += t[k];
    }
    for (int i = 0; i < 6; i++)
        for (int j = i; j < 6; j++) S[SYM6(i, j)] = M[6 * i + j];
    cross(t, x, h);
    for (int k = 0; k < 3; k++) s[k] = h[k], s[3 + k] = h[3 + k] + t[k];
}

// The equations of the domains of a block without their children.
static void own(const solver_tree *tree, tree_block *block, const tree_evaluation *at, tree_work *work) {
    const solver_inertia *inertia = tree->classes[block->class_index].inertia;
    int                   r = block->r, count = block->count;
    double               *q = work->lanes, *dq = q + r * LANES, *v = dq + r * LANES, *rate = v + r * LANES;
    double               *modal = rate + r * LANES, *product = modal + r * LANES;
    gather(r, count, at->q + block->offset, q);
    gather(r, count, at->dq + block->offset, dq);
    gather(r, count, at->q_start + block->offset, v);
    gather(r, count, at->dq_start + block->offset, rate);
    gather(r, count, tree->modal + block->offset, modal);
    real beta = *(real *)block->lanes->damping_stiffness + block->calm;
    for (int l = 0; l < r; l++) vectors(v)[l] += beta * vectors(rate)[l] - vectors(q)[l];
    own_inertia(inertia, block->lanes, q, dq, block->E);
    own_forces(block, inertia, at, v, rate, modal, product);
}

static bool up(const solver_tree *tree, tree_block *block, tree_work *work) {
    int r = block->r;
    add_children(tree, block, work->sum);
    real size[2] = {3 * *(real *)(block->E + TREE_E(r, r)), real_set(0)};
    for (int k = 3; k < 6; k++) size[1] += *(real *)(block->E + TREE_E(r + k, r + k));
    real least = eliminate(r, block->E, work->lanes);
    mask good = is_inertia(r, block->E, size);
    if (r > 0) good &= (mask)(least > real_set(0)) & (mask)(least < real_set(INFINITY));
    for (int lane = 0; lane < block->count; lane++)
        if (!good[lane]) return false;
    hand_up(block);
    finish(block);
    return true;
}

// ---- up: one domain ---------------------------------------------------------------------------------------------

// The first `own` pivots of E, n rows of `stride`, the vectors along the rows; column: n, padded like a row. What
// is right of the diagonal is not used and may be spoilt.
static bool eliminate_one(int own, int n, int stride, double *E, double *column) {
    real *c = vectors(column);
    memset(column, 0, (size_t)stride * sizeof *column);
    for (int k = 0; k < own; k++) {
        double pivot = E[k * stride + k], inverse = 1 / pivot;
        if (!(pivot > 0 && inverse > 0)) return false;
        column[k] = 0; // columns up to k are done
        for (int i = k + 1; i < n; i++) column[i] = E[i * stride + k];
        for (int i = k + 1; i < n; i++) {
            real  *row = vectors(E + i * stride);
            double L = column[i] * inverse;
            for (int v = (k + 1) / LANES; v <= i / LANES; v++) row[v] -= L * c[v];
            E[i * stride + k] = L;
        }
    }
    return true;
}

// Is the 6 x 6 corner from row r on positive semidefinite? As is_inertia.
static bool is_inertia_one(int r, int stride, const double *E, const double size[2]) {
    double P[6][6];
    for (int i = 0; i < 6; i++)
        for (int j = 0; j <= i; j++) P[i][j] = E[(r + i) * stride + r + j];
    for (int j = 0; j < 6; j++) {
        double least = 1e-9 * size[j / 3];
        if (!(P[j][j] >= -least)) return false;
        if (P[j][j] <= least) continue;
        for (int i = j + 1; i < 6; i++)
            for (int k = j + 1; k <= i; k++) P[i][k] -= P[i][j] / P[j][j] * P[k][j];
    }
    return true;
}

static void add_children_one(const solver_tree *tree, const tree_domain *domain, double *sum, int stride, double *E) {
    int    r = domain->r, width = (r + LANES - 1) / LANES * LANES;
    double shifted[27], *rq = sum + r * width, *bq = rq + 6 * width;
    sum_children(tree, domain, sum, shifted);
    for (int i = 0; i < r; i++)
        for (int j = 0; j <= i; j++) E[i * stride + j] += sum[i * width + j];
    for (int k = 0; k < 6; k++) {
        for (int l = 0; l < r; l++) E[(r + k) * stride + l] += rq[k * width + l];
        for (int j = 0; j <= k; j++) E[(r + k) * stride + r + j] += shifted[SYM6(j, k)];
        E[(r + 6) * stride + r + k] -= shifted[21 + k];
    }
    for (int l = 0; l < r; l++) E[(r + 6) * stride + l] -= bq[l];
}

static bool up_lane(const solver_tree *tree, tree_block *block, int lane, tree_work *work) {
    const tree_domain *domain = &tree->domains[block->first + lane];
    int                r = block->r, n = r + 7, stride = (n + LANES - 1) / LANES * LANES;
    double            *E = work->square, *place = block->E + lane, size[2] = {0}, I[36], b[6];
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) E[i * stride + j] = place[TREE_E(i, j)];
    if (domain->child_count > 0) add_children_one(tree, domain, work->sum, stride, E);
    for (int k = 0; k < 6; k++) size[k / 3] += E[(r + k) * (stride + 1)];
    if (!eliminate_one(block->own, n, stride, E, work->lanes) || !is_inertia_one(r, stride, E, size)) return false;
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) place[TREE_E(i, j)] = E[i * stride + j];
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j <= i; j++) I[6 * i + j] = I[6 * j + i] = E[(r + i) * stride + r + j];
        b[i] = -E[(r + 6) * stride + r + i];
    }
    tree_hand_up(tree, domain, I, b);
    return true;
}

// ---- down -------------------------------------------------------------------------------------------------------

// J ddq of the parents, six numbers a lane, but for the scale of the first three
static void parents_modes(const solver_tree *tree, const tree_block *block, const double *ddq, real sum[6]) {
    real part[6][LANES];
    memset(part, 0, sizeof part);
    for (int lane = 0; lane < block->count; lane++) {
        const tree_domain      *domain = &tree->domains[block->first + lane], *parent = &tree->domains[domain->parent];
        const domain_interface *interface = &tree->classes[parent->class_index].interfaces[domain->interface];
        const real             *a = (const real *)interface->a, *W = (const real *)domain->W;
        int                     width = interface->stride / LANES;
        real                    x[6];
        UNROLL for (int i = 0; i < 6; i++) x[i] = real_set(0);
        for (int v = 0; v < width; v++) {
            real at = part_of(ddq + parent->offset, parent->r, v);
            UNROLL for (int i = 0; i < 3; i++) x[i] += a[i * width + v] * at, x[3 + i] += W[i * width + v] * at;
        }
        UNROLL for (int i = 0; i < 6; i++) part[i][lane] = x[i];
    }
    for (int i = 0; i < 6; i++) sum[i] = sums_of(part[i]);
}

// A of the lanes from those of their parents: R^T (X A + J ddq + c)
static void accelerations(const solver_tree *tree, tree_block *block, const double *ddq) {
    tree_lanes *lanes = block->lanes;
    real        above[6], t[3], a[3], al[3], s[6], scale = *(real *)lanes->above;
    const real *x = lanes_of(lanes->x), *R = lanes_of(lanes->R);
    parents_modes(tree, block, ddq, s);
    GATHER_ABOVE(6, A, above)
    cross(t, above + 3, x);
    for (int i = 0; i < 3; i++) {
        a[i] = above[i] + t[i] + scale * s[i] + lanes_of(lanes->c)[i];
        al[i] = above[3 + i] + s[3 + i] + lanes_of(lanes->c)[3 + i];
    }
    multiply_t_vector(lanes_of(lanes->A), R, a);
    multiply_t_vector(lanes_of(lanes->A) + 3, R, al);
}

static void down(const solver_tree *tree, tree_block *block, double *ddq, tree_work *work) {
    int         r = block->r;
    real       *x = vectors(work->lanes);
    const real *A = lanes_of(block->lanes->A);
    if (block->roots == 0) accelerations(tree, block, ddq);
    for (int l = 0; l < r; l++) {
        real sum = *(const real *)(block->E + TREE_E(r + 6, l));
        UNROLL for (int k = 0; k < 6; k++) sum -= *(const real *)(block->E + TREE_E(r + k, l)) * A[k];
        x[l] = sum;
    }
    for (int i = r - 1; i >= 0; i--) {
        const real *row = (const real *)(block->E + TREE_E(i, 0));
        real        xi = x[i];
        for (int j = 0; j < i; j++) x[j] -= row[j] * xi;
    }
    for (int lane = 0; lane < block->count; lane++)
        for (int l = 0; l < r; l++) ddq[block->offset + (size_t)(lane * r + l)] = work->lanes[l * LANES + lane];
}

tree_kernels JOIN(tree_kernels, SIMD_SUFFIX)(void);
tree_kernels JOIN(tree_kernels, SIMD_SUFFIX)(void) {
    return (tree_kernels){
        .frames = frames, .own = own, .velocities = velocities, .up = up, .down = down, .up_lane = up_lane};
}
