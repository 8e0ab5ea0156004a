// (H(0) : a_i) b_j for many pairs in one sweep over the elements, pairs side by side. Compiled once per vector width
// (SIMD_SUFFIX) and chosen at run time. The textbook version is a loop over fem_body_second.
//
// At rest every frame-indifferent material without stress has P = F S(E) with S(0) = 0, so with A, B the displacement
// gradients, e their symmetric parts and S_A = C : e_A
//   d2P : (A, B) = A S_B + B S_A + C : sym(A^T B) + S''(e_A, e_B),
// and for an isotropic material S'' has three constants (the third-order elastic constants of [Toupin, Bernstein 1961])
//   S''(a, b) = n1 tr a tr b I + 2 n2 ((a : b) I + tr a b + tr b a) + 4 n3 (a b + b a),
// all zero when the energy is quadratic in E.
//
// Layout: fields come row-major, all columns of a degree of freedom side by side. An element's geometry and the
// gradients of all columns are made once; a slot then takes one a and eight neighbouring b, so that one gradient is a
// broadcast and the other a plain load, and its sums go into the rows of `out` as whole vectors.
#include "libfem/body_internal.h"

#include <string.h>

#define JOIN2(a, b) a##b
#define JOIN(a, b)  JOIN2(a, b)

typedef double real __attribute__((vector_size(64)));

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 9")
#endif

static inline real real_set(double x) { return (real){x, x, x, x, x, x, x, x}; }
static inline real load(const double *memory) {
    real x;
    memcpy(&x, memory, sizeof x);
    return x;
}
static inline void store(double *memory, real x) { memcpy(memory, &x, sizeof x); }

// Voigt order xx yy zz xy yz zx; place[i][j] is where entry (i, j) of a symmetric matrix stands.
static const int place[3][3] = {{0, 3, 5}, {3, 1, 4}, {5, 4, 2}};

// s = C : e, engineering shear
static inline void stress(real s[6], const rest_elasticity *c, const real e[6], bool isotropic) {
    if (isotropic) {
        real pressure = c->lambda * (e[0] + e[1] + e[2]);
        UNROLL for (int v = 0; v < 6; v++) s[v] = v < 3 ? pressure + 2 * c->mu * e[v] : c->mu * e[v];
        return;
    }
    UNROLL for (int v = 0; v < 6; v++) {
        s[v] = c->C[6 * v] * e[0];
        UNROLL for (int w = 1; w < 6; w++) s[v] += c->C[6 * v + w] * e[w];
    }
}

static inline void symmetric_part(real e[6], const real A[9]) { // tensor shear
    UNROLL for (int i = 0; i < 3; i++) UNROLL for (int j = i; j < 3; j++) e[place[i][j]] =
        0.5 * (A[3 * i + j] + A[3 * j + i]);
}

static inline void add_third_order(real s[6], const rest_elasticity *c, const real A[9], const real B[9]) {
    real a[6], b[6];
    symmetric_part(a, A);
    symmetric_part(b, B);
    real trace_a = a[0] + a[1] + a[2], trace_b = b[0] + b[1] + b[2];
    real dot = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + 2 * (a[3] * b[3] + a[4] * b[4] + a[5] * b[5]);
    real sphere = c->third[0] * trace_a * trace_b + 2 * c->third[1] * dot;
    UNROLL for (int i = 0; i < 3; i++) UNROLL for (int j = i; j < 3; j++) {
        const int v = place[i][j];
        real      product = real_set(0);
        UNROLL for (int k = 0; k < 3; k++) product += a[place[i][k]] * b[place[k][j]] + b[place[i][k]] * a[place[k][j]];
        s[v] += 2 * c->third[1] * (trace_a * b[v] + trace_b * a[v]) + 4 * c->third[2] * product;
        if (i == j) s[v] += sphere;
    }
}

// d2P : (A, B) at F = I
__attribute__((always_inline)) static inline void rest_second(real P[9], const rest_elasticity *c, const real A[9],
                                                              const real sA[6], const real B[9], const real sB[6],
                                                              bool isotropic, bool third) {
    real e[6], t[6];
    UNROLL for (int i = 0; i < 3; i++) UNROLL for (int j = i; j < 3; j++) {
        real product = A[i] * B[j] + A[3 + i] * B[3 + j] + A[6 + i] * B[6 + j];
        if (i != j) product += B[i] * A[j] + B[3 + i] * A[3 + j] + B[6 + i] * A[6 + j];
        e[place[i][j]] = product;
    }
    stress(t, c, e, isotropic);
    if (third) add_third_order(t, c, A, B);
    UNROLL for (int i = 0; i < 3; i++) UNROLL for (int j = 0; j < 3; j++) {
        real sum = t[place[i][j]];
        UNROLL for (int k = 0; k < 3; k++) sum += A[3 * i + k] * sB[place[k][j]] + B[3 * i + k] * sA[place[k][j]];
        P[3 * i + j] = sum;
    }
}

enum { FIELD = 15 }; // rows of a field at an integration point: 9 of the gradient, 6 of its stress

// Gradient and stress of eight columns at a time: field is FIELD x `columns`
static inline void fill_field(double *field, const rest_elasticity *c, const double *rows, int columns, const int *v,
                              const double (*g)[3], int width, bool isotropic) {
    for (int k = 0; k < columns; k += LANES) {
        real H[9], e[6], s[6];
        UNROLL for (int i = 0; i < 9; i++) H[i] = real_set(0);
        for (int a = 0; a < width; a++) UNROLL for (int i = 0; i < 3; i++) {
                real x = load(rows + (3 * (size_t)v[a] + (size_t)i) * (size_t)columns + k);
                UNROLL for (int j = 0; j < 3; j++) H[3 * i + j] += x * g[a][j];
            }
        UNROLL for (int i = 0; i < 3; i++) UNROLL for (int j = i; j < 3; j++) e[place[i][j]] =
            i == j ? H[4 * i] : H[3 * i + j] + H[3 * j + i];
        stress(s, c, e, isotropic);
        UNROLL for (int i = 0; i < 9; i++) store(field + i * columns + k, H[i]);
        UNROLL for (int i = 0; i < 6; i++) store(field + (9 + i) * columns + k, s[i]);
    }
}

__attribute__((always_inline)) static inline void add_slot(const second_work *w, const rest_elasticity *c, int slot,
                                                           const double *a_field, const double *b_field, const int *v,
                                                           const double (*g)[3], double weight, int width,
                                                           bool isotropic, bool third) {
    const second_slot *s = &w->slots[slot];
    real               A[9], sA[6], B[9], sB[6], P[9];
    UNROLL for (int i = 0; i < 9; i++) {
        A[i] = real_set(weight * a_field[i * w->a_columns + s->a]);
        B[i] = load(b_field + i * w->b_columns + s->b);
    }
    UNROLL for (int i = 0; i < 6; i++) {
        sA[i] = real_set(weight * a_field[(9 + i) * w->a_columns + s->a]);
        sB[i] = load(b_field + (9 + i) * w->b_columns + s->b);
    }
    rest_second(P, c, A, sA, B, sB, isotropic, third);
    size_t stride = (size_t)w->slot_count * LANES;
    for (int a = 0; a < width; a++) UNROLL for (int i = 0; i < 3; i++) {
            double *p = w->out + (3 * (size_t)v[a] + (size_t)i) * stride + (size_t)slot * LANES;
            store(p, load(p) + P[3 * i] * g[a][0] + P[3 * i + 1] * g[a][1] + P[3 * i + 2] * g[a][2]);
        }
}

// Always inlined, so that `width`, `isotropic` and `third` are constants in each of its copies.
__attribute__((always_inline)) static inline void sweep_slots(const second_work *w, const rest_elasticity *c,
                                                              const int *v, const double (*g)[3], double weight,
                                                              double *a_field, double *b_field, int width,
                                                              bool isotropic, bool third) {
    fill_field(a_field, c, w->a_rows, w->a_columns, v, g, width, isotropic);
    fill_field(b_field, c, w->b_rows, w->b_columns, v, g, width, isotropic);
    for (int slot = 0; slot < w->slot_count; slot++)
        add_slot(w, c, slot, a_field, b_field, v, g, weight, width, isotropic, third);
}

static inline void add_point(const second_work *w, const rest_elasticity *c, const int *v, const double (*g)[3],
                             double weight, int width, double *a_field, double *b_field) {
    if (!c->isotropic)
        sweep_slots(w, c, v, g, weight, a_field, b_field, width, false, false);
    else if (c->has_third)
        sweep_slots(w, c, v, g, weight, a_field, b_field, width, true, true);
    else
        sweep_slots(w, c, v, g, weight, a_field, b_field, width, true, false);
}

// Shape-function gradients at a Gauss point of an H8; returns weight x det(dX/dxi).
static double hex_gradients(double g[8][3], const double *X, const int *v, const hex_point *point) {
    double J[9] = {0}, inverse[9];
    for (int a = 0; a < 8; a++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) J[3 * i + j] += X[3 * (size_t)v[a] + (size_t)i] * point->dN[a][j];
    double det = mat3_inverse(inverse, J);
    for (int a = 0; a < 8; a++)
        for (int j = 0; j < 3; j++)
            g[a][j] =
                point->dN[a][0] * inverse[j] + point->dN[a][1] * inverse[3 + j] + point->dN[a][2] * inverse[6 + j];
    return det * point->weight;
}

void JOIN(fem_second_kernel, SIMD_SUFFIX)(const second_work *w, int chunk) {
    const fem_body *body = w->body;
    hex_point       points[27];
    double          values[27][8], g[8][3];
    double          a_field[FIELD * SECOND_COLUMNS], b_field[FIELD * SECOND_COLUMNS];
    int             point_count = body->width == 8 ? fem_hex_points(body->options.quadrature, points, values) : 1;
    for (int group = chunk * body->chunk_groups; group < chunk_end(body, chunk); group++) {
        const rest_elasticity *c = &w->elasticity[body->groups[group].material];
        if (c->linear) continue;
        for (int lane = 0; lane < body->groups[group].count; lane++) {
            int v[8];
            for (int a = 0; a < body->width; a++) v[a] = body->vertices[(group * body->width + a) * LANES + lane];
            if (body->width == 8) {
                for (int p = 0; p < point_count; p++) {
                    double weight = hex_gradients(g, body->mesh->vertices, v, &points[p]);
                    add_point(w, c, v, (const double(*)[3])g, weight, 8, a_field, b_field);
                }
                continue;
            }
            for (int j = 0; j < 3; j++) {
                for (int a = 1; a < 4; a++)
                    g[a][j] = body->gradients[((size_t)group * 9 + (size_t)(3 * (a - 1) + j)) * LANES + (size_t)lane];
                g[0][j] = -(g[1][j] + g[2][j] + g[3][j]);
            }
            add_point(w, c, v, (const double(*)[3])g, body->volumes[(size_t)group * LANES + (size_t)lane], 4, a_field,
                      b_field);
        }
    }
}
