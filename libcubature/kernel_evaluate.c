// Energy, force and stiffness of one instance straight from the coefficients of the energy. Compiled once per vector
// width; the textbook version is cubature_polynomial_plain.
//
// With Q = (1, q), indices of Q from 0, the energy is homogeneous: V = sum over (l, k) of Q_l Q_k sigma_lk, where
// sigma_lk = sum over the block's triangle of c_ij Q_i Q_j. A monomial has six pairs of places; with
//   P^a = sum over blocks (l, k) that have l or k (or both, then twice) equal to a, of c times the other Q
// the second derivatives are, added to one triangle T (row >= column),
//   (l, k): sigma_lk     (l or k, i or j), row a: w_i = sum_j (P^a_ij + P^a_ji) Q_j     (j, i): 1/2 sum_a Q_a P^a
// The Hessian is T + T^T, which gives squares their factor 2; its rows and columns past 0 are K, and by Euler's theorem
// the gradient is Hessian Q / 3 and V = gradient Q / 4.
// A block of coefficients is one run of numbers, read once and multiplied three times, without regard to its rows:
// r^4/8 products in all against r^4/4 for K as a matrix times monomials of degree 2, and a sixth of its memory.
#include "libcubature/internal.h"

#include <string.h>

#define JOIN2(a, b) a##b
#define JOIN(a, b)  JOIN2(a, b)

typedef double real __attribute__((vector_size(64)));
typedef long   mask __attribute__((vector_size(64)));

static inline real load(const double *memory) {
    real x;
    memcpy(&x, memory, sizeof x);
    return x;
}
static inline void store(double *memory, real x) { memcpy(memory, &x, sizeof x); }
static inline void add(double *memory, real x) { store(memory, load(memory) + x); }

// The first `count` (0 to 8) of eight numbers, zeros behind them.
static inline real first_of(real x, size_t count) {
    static const long ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    mask              m;
    memcpy(&m, ones + 8 - count, sizeof m);
    return (real)((mask)x & m);
}

// The sums over the lanes of eight vectors, side by side.
static inline real lane_sums(const double *v) {
    real y[4], z[2];
    for (int i = 0; i < 4; i++) {
        real a = load(v + 16 * i), b = load(v + 16 * i + 8);
        y[i] = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14) +
               __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
    }
    for (int i = 0; i < 2; i++)
        z[i] = __builtin_shufflevector(y[2 * i], y[2 * i + 1], 0, 1, 8, 9, 4, 5, 12, 13) +
               __builtin_shufflevector(y[2 * i], y[2 * i + 1], 2, 3, 10, 11, 6, 7, 14, 15);
    return __builtin_shufflevector(z[0], z[1], 0, 1, 2, 3, 8, 9, 10, 11) +
           __builtin_shufflevector(z[0], z[1], 4, 5, 6, 7, 12, 13, 14, 15);
}

// Blocks (l, k) and (l, k + 1), or one alone: their shares in P^l and P^k, and sigma, spread over the lanes. What
// follows a block in its last vector is cut off.
typedef struct block {
    const double *c;
    size_t        size;
    double        Qk, *Pk;
    real          sigma;
} block;

static inline void add_block(block *b, const double *X, double Ql, double *Pl) {
    size_t i = 0;
    for (; i + 8 <= b->size; i += 8) {
        real x = load(b->c + i);
        b->sigma += x * load(X + i);
        add(Pl + i, b->Qk * x);
        add(b->Pk + i, Ql * x);
    }
    real x = first_of(load(b->c + i), b->size - i);
    b->sigma += x * load(X + i);
    add(Pl + i, b->Qk * x);
    add(b->Pk + i, Ql * x);
}

// a is the smaller one
static inline void add_two_blocks(block *a, block *b, const double *X, double Ql, double *Pl) {
    size_t i = 0;
    for (; i + 8 <= a->size; i += 8) {
        real x = load(a->c + i), y = load(b->c + i), z = load(X + i);
        a->sigma += x * z;
        b->sigma += y * z;
        add(Pl + i, a->Qk * x + b->Qk * y);
        add(a->Pk + i, Ql * x);
        add(b->Pk + i, Ql * y);
    }
    real x = first_of(load(a->c + i), a->size - i);
    a->sigma += x * load(X + i);
    add(a->Pk + i, Ql * x);
    real both = a->Qk * x;
    for (; i + 8 <= b->size; i += 8) {
        real y = load(b->c + i);
        b->sigma += y * load(X + i);
        add(Pl + i, both + b->Qk * y);
        add(b->Pk + i, Ql * y);
        both = (real){0};
    }
    real y = first_of(load(b->c + i), b->size - i);
    b->sigma += y * load(X + i);
    add(Pl + i, both + b->Qk * y);
    add(b->Pk + i, Ql * y);
}

// row = (P + P^T) Q, P a triangle of n rows; row is written up to whole vectors
static inline void product(size_t n, const double *P, const double *Q, double *row, double *sums) {
    for (size_t i = 0; i < n; i += 8) {
        real          sum = {0}, Qi = load(Q + i);
        const double *Pj = P + i * (i + 1) / 2 + i;
        for (size_t j = i; j < n; Pj += ++j) {
            real x = j < i + 7 ? first_of(load(Pj), j - i + 1) : load(Pj);
            sum += Q[j] * x;
            store(sums + 8 * j, i > 0 ? load(sums + 8 * j) + x * Qi : x * Qi);
        }
        store(row + i, sum);
    }
    for (size_t j = 0; j < n; j += 8) add(row + j, lane_sums(sums + 8 * j));
}

// All blocks: P, and sigma in the places (l, k) of T.
static inline void add_blocks(size_t n, const double *c, const evaluate_arrays *w) {
    double *Pl = w->P, *Tl = w->T + 1;
    for (size_t l = 1; l < n; l++) {
        double *Pk = w->P, Ql = w->Q[l];
        size_t  own = evaluate_triangle((int)l + 1);
        for (size_t i = 0; i <= own; i += 8) store(Pl + i, (real){0}); // met here for the first time
        for (size_t k = 1; k < l; k += 2) {
            size_t size = (k + 1) * (k + 2) / 2, next = size + k + 2;
            block  a = {.c = c, .size = size, .Qk = w->Q[k], .Pk = Pk};
            block  b = {.c = c + size, .size = next, .Qk = w->Q[k + 1], .Pk = Pk + evaluate_vectors(size)};
            add_two_blocks(&a, &b, w->X, Ql, Pl);
            store(w->sums + 8 * k, a.sigma);
            store(w->sums + 8 * k + 8, b.sigma);
            c += size + next;
            Pk = b.Pk + evaluate_vectors(next);
        }
        if (l % 2 == 1) {
            block a = {.c = c, .size = (l + 1) * (l + 2) / 2, .Qk = Ql, .Pk = Pl};
            add_block(&a, w->X, Ql, Pl);
            store(w->sums + 8 * l, a.sigma);
            c += a.size;
        }
        for (size_t k = 0; k <= l; k += 8) store(w->row + k, lane_sums(w->sums + 8 * k));
        for (size_t k = 1; k <= l; k++) Tl[k] = w->row[k];
        Tl += l + 1;
        Pl += own;
    }
}

// What follows from P: rows of T, and all of T.
static inline void add_products(size_t n, const evaluate_arrays *w) {
    const double *P = w->P;
    double       *Ta = w->T + 1;
    for (size_t a = 1; a < n; a++) {
        product(a + 1, P, w->Q, w->row, w->sums);
        for (size_t i = 0; i <= a; i++) Ta[i] += w->row[i];
        Ta += a + 1;
        P += evaluate_triangle((int)a + 1);
    }
    P = w->P;
    for (size_t a = 1; a < n; a++) {
        size_t size = evaluate_triangle((int)a + 1);
        for (size_t i = 0; i < size; i += 8) add(w->T + i, 0.5 * w->Q[a] * load(P + i));
        P += size;
    }
}

void JOIN(cubature_evaluate, SIMD_SUFFIX)(const void *model, const double *q, double *energy, double *f, double *K,
                                          double *work) {
    const cubature_polynomial *p = model;
    const size_t               r = (size_t)p->r, n = r + 1;
    evaluate_arrays            w;
    memset(work, 0, evaluate_carve(p->r, work, &w) * sizeof *work);
    w.Q[0] = 1;
    memcpy(w.Q + 1, q, r * sizeof *q);
    double *X = w.X;
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i <= j; i++) *X++ = w.Q[i] * w.Q[j];
    add_blocks(n, p->coefficients, &w);
    add_products(n, &w);
    if (f || energy) {
        product(n, w.T, w.Q, w.row, w.sums); // 3 x the gradient
        double V = 0;
        for (size_t i = 0; i < n; i++) V += w.row[i] * w.Q[i];
        if (energy) *energy = V * (1.0 / 12);
        for (size_t i = 0; f && i < r; i++) f[i] = w.row[i + 1] * (1.0 / 3);
    }
    const double *T = w.T + 1;
    for (size_t b = 0; K && b < r; b++) {
        for (size_t a = 0; a < b; a++) K[a + b * r] = K[b + a * r] = T[a + 1];
        K[b + b * r] = 2 * T[b + 1];
        T += b + 2;
    }
}
