// Energy, force and stiffness of one instance straight from the coefficients of the energy. Compiled once per vector
// width; the textbook version is cubature_polynomial_plain.
//
// With Q = (1, q), indices of Q from 0, the energy is a sum over (l, k) of q_l q_k sigma_lk, where
//   sigma = sum_j Q_j s_j,   s_j = sum_(i <= j) c_ij Q_i   (c the triangle of the block (l, k)).
// A monomial has six pairs of places; derivatives by them are, with w_i = sum_(j >= i) c_ij Q_j + s_i,
//   (l, k): sigma     (l, i) and (l, j): q_k w     (k, i) and (k, j): q_l w     (j, i): q_l q_k c
// They are added to one triangle T (row >= column), and K = T + T^T gives squares their factor 2.
// c is read once, three multiplications a coefficient: r^4/8 in all against r^4/4 for K as a matrix times the monomials
// of degree 2, and a sixth of its memory.
#include "libcubature/internal.h"

#include <string.h>

#define JOIN2(a, b) a##b
#define JOIN(a, b)  JOIN2(a, b)

void JOIN(cubature_evaluate, SIMD_SUFFIX)(const void *model, const double *q, double *energy, double *f, double *K,
                                          double *work) {
    const cubature_polynomial *p = model;
    int                        r = p->r;
    size_t                     row = evaluate_row(r);
    double                    *Q = work, *w = Q + row, *g = w + row, *T = g + row;
    const double              *c = p->coefficients;
    double                     V = 0;
    Q[0] = 1;
    memcpy(Q + 1, q, (size_t)r * sizeof *Q);
    memset(g, 0, row * sizeof *g);
    memset(T, 0, (size_t)((r + 1) * (r + 2) / 2) * sizeof *T);
    for (int l = 1; l <= r; l++)
        for (int k = 1; k <= l; k++) {
            double product = Q[l] * Q[k], sigma = 0;
            int    size = (k + 1) * (k + 2) / 2;
            if (K)
                for (int i = 0; i < size; i++) T[i] += product * c[i];
            for (int i = 0; i <= k; i++) w[i] = 0;
            for (int j = 0; j <= k; j++) {
                double s = 0;
                for (int i = 0; i <= j; i++) {
                    s += c[i] * Q[i];
                    w[i] += c[i] * Q[j];
                }
                w[j] += s;
                sigma += s * Q[j];
                c += j + 1;
            }
            V += product * sigma;
            g[l] += Q[k] * sigma;
            g[k] += Q[l] * sigma;
            for (int i = 0; i <= k; i++) g[i] += product * w[i];
            if (K) {
                double *Tl = T + l * (l + 1) / 2, *Tk = T + k * (k + 1) / 2;
                Tl[k] += sigma;
                for (int i = 0; i <= k; i++) Tl[i] += Q[k] * w[i], Tk[i] += Q[l] * w[i];
            }
        }
    if (energy) *energy = V;
    if (f) memcpy(f, g + 1, (size_t)r * sizeof *f);
    for (int b = 0; K && b < r; b++)
        for (int a = 0; a <= b; a++) {
            double value = T[(b + 1) * (b + 2) / 2 + a + 1];
            K[a + b * r] = K[b + a * r] = a == b ? 2 * value : value;
        }
}
