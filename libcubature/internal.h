// What libcubature's own files tell each other.
#ifndef LIMBER_CUBATURE_INTERNAL_H
#define LIMBER_CUBATURE_INTERNAL_H

#include "libcubature/cubature.h"

// ---- Gram matrices of strain monomials (precompute.c, kernel_gram.c) -----------------------------------------------

enum { GRAM_TILE = 48 }; // columns of a tile of the Gram matrix

// A row that one integration point contributes: scale x (sum of up to three of e1 e2 e3 g12 g23 g31).
typedef struct strain_row {
    int    terms, strain[3];
    double scale;
} strain_row;

// One block of integration points. Z is rows x columns, column-major; row (row kind) x points + point.
typedef struct gram_block {
    int               r;
    int               points; // a multiple of 8; unused ones have zero gradients
    int               row_count;
    const strain_row *rows;
    const double     *root; // points: w^(1/4), w the integration weight
    const double     *H;    // r x 9 x points: w^(1/4) x displacement gradients of the modes, row-major 3x3
    int               columns, tiles;
    double           *Z;
    double           *G; // upper tiles (s, t), s <= t, at t (t + 1) / 2 + s; each GRAM_TILE^2, column-major
} gram_block;

typedef struct cubature_kernels {
    // columns of Z of mode j: the linear one, and the products with modes 0 .. j
    void (*strain_columns)(const gram_block *block, int j);
    // G_st += Z_s^T Z_t
    void (*gram_tile)(const gram_block *block, int s, int t);
    void (*evaluate)(const void *polynomial, const double *q, double *energy, double *f, double *K, double *work);
} cubature_kernels;

// Those of this processor (kernels.c).
cubature_kernels cubature_choose_kernels(void);

#define CUBATURE_DECLARE_KERNELS(level)                                                                                \
    void cubature_strain_columns_##level(const gram_block *block, int j);                                              \
    void cubature_gram_tile_##level(const gram_block *block, int s, int t);                                            \
    void cubature_evaluate_##level(const void *polynomial, const double *q, double *energy, double *f, double *K,      \
                                   double *work);
CUBATURE_DECLARE_KERNELS(baseline)
CUBATURE_DECLARE_KERNELS(avx2)
CUBATURE_DECLARE_KERNELS(avx512)

// ---- one instance (kernel_evaluate.c) ------------------------------------------------------------------------------

// Work space of evaluate, in doubles: 1 and q behind it, padded; then the triangle in which K is summed, with rows for
// the 1 as well; then one row of the contracted block and its row sums.
static inline size_t evaluate_row(int r) { return ((size_t)r + 1 + 7) / 8 * 8; }
static inline size_t evaluate_work(int r) {
    size_t row = evaluate_row(r), n = (size_t)r;
    return 3 * row + 8 * row + ((n + 1) * (n + 2) / 2 + 7) / 8 * 8 + 8;
}

#endif
