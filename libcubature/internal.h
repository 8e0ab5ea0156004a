// What libcubature's own files tell each other.
#ifndef LIMBER_CUBATURE_INTERNAL_H
#define LIMBER_CUBATURE_INTERNAL_H

#include "libcubature/cubature.h"

// ---- Gram matrices of strain monomials (precompute.c, kernel_gram.c) -----------------------------------------------

enum {
    GRAM_PANEL = 24, // columns that stand side by side in Z: three vectors of eight
    TILE_PANELS = 4,
    GRAM_TILE = TILE_PANELS * GRAM_PANEL, // columns of a tile of the Gram matrix
    MOST_ROWS = 9,
};

// A number that one integration point contributes: sum of factor x strain, up to three of e1 e2 e3 g12 g23 g31.
typedef struct strain_row {
    int    terms, strain[3];
    double factor[3];
} strain_row;

// Columns of Z: the mode `high` alone (low = -1), the product of two modes, or nothing (high = -1).
typedef struct strain_column {
    int low, high;
} strain_column;

// One block of integration points. Z is panel after panel, each rows x GRAM_PANEL, row-major; row number is
// (kind of row) x points + point.
typedef struct gram_block {
    int                  points, width; // points: a multiple of 8; vertices of an element
    int                  modes;         // rounded up to a multiple of 8
    const double        *Ut;            // n x modes, row-major: the basis, zero past r
    const double        *frame;         // axes of the material as columns, or NULL for those of the body
    int                 *vertices;      // points x 8: of the point's element
    double              *g;             // points x 24: gradients of its shape functions
    double              *root;          // points: w^(1/4), w the integration weight; 0 at unused points
    double              *H;             // modes x 9 x points: w^(1/4) R^T (grad u) R of each mode, R the frame
    int                  row_count;
    const strain_row    *rows;
    int                  column_count, panels; // modes and pairs; in panels of GRAM_PANEL, the last one filled with 0
    const strain_column *columns;              // panels x GRAM_PANEL
    double              *Z;
} gram_block;

// ---- kernels, chosen at run time -----------------------------------------------------------------------------------

struct point_task;
struct eight_points;

typedef struct cubature_kernels {
    // H at eight points from `first` on
    void (*mode_gradients)(const gram_block *block, int first);
    // fills one panel of Z
    void (*strain_panel)(const gram_block *block, int panel);
    // G += Z_s^T Z_t over the rows of kinds first .. first + count - 1; tiles s <= t, G is GRAM_TILE^2, row-major
    void (*gram_tile)(const gram_block *block, int first, int count, int s, int t, double *G);
    void (*evaluate)(const void *polynomial, const double *q, double *energy, double *f, double *K, double *work);
    void (*batch)(const cubature_batch *batch, int blocks, const double *q, const double *factor, double *energy,
                  double *f, double *K, double *work);
    // rules (points.h, rule.h)
    void (*point_gradients)(const struct eight_points *at, size_t row_stride, int r, double *B, size_t stride);
    void (*point_forces)(const struct point_task *task, int group);
    void (*point_sums)(const struct point_task *task, int first_group, int groups);
    void (*rule_force)(const cubature_rule *rule, const double *q, double *energy, double *f, double *T, double *work);
    void (*rule_product)(const cubature_rule *rule, const double *q, const double *p, double *Kp, double *work);
    void (*rule_block)(const cubature_rule *rule, const double *q, double *energy, double *f, double *K, double *work);
} cubature_kernels;

// Those of this processor (kernels.c).
cubature_kernels cubature_choose_kernels(void);

#define CUBATURE_DECLARE_KERNELS(level)                                                                                \
    void cubature_mode_gradients_##level(const gram_block *block, int first);                                          \
    void cubature_strain_panel_##level(const gram_block *block, int panel);                                            \
    void cubature_gram_tile_##level(const gram_block *block, int first, int count, int s, int t, double *G);           \
    void cubature_evaluate_##level(const void *polynomial, const double *q, double *energy, double *f, double *K,      \
                                   double *work);                                                                      \
    void cubature_batch_##level(const cubature_batch *batch, int blocks, const double *q, const double *factor,        \
                                double *energy, double *f, double *K, double *work);                                   \
    void cubature_point_gradients_##level(const struct eight_points *at, size_t row_stride, int r, double *B,          \
                                          size_t stride);                                                              \
    void cubature_point_forces_##level(const struct point_task *task, int group);                                      \
    void cubature_point_sums_##level(const struct point_task *task, int first_group, int groups);                      \
    void cubature_rule_force_##level(const cubature_rule *rule, const double *q, double *energy, double *f, double *T, \
                                     double *work);                                                                    \
    void cubature_rule_product_##level(const cubature_rule *rule, const double *q, const double *p, double *Kp,        \
                                       double *work);                                                                  \
    void cubature_rule_block_##level(const cubature_rule *rule, const double *q, double *energy, double *f, double *K, \
                                     double *work);
CUBATURE_DECLARE_KERNELS(baseline)
CUBATURE_DECLARE_KERNELS(avx2)
CUBATURE_DECLARE_KERNELS(avx512)

// ---- one instance (kernel_evaluate.c) ------------------------------------------------------------------------------

// Work space of evaluate. Triangles are packed by rows. Arrays are rounded up to whole vectors of eight, so that no
// vector reaches from one into the next: a load that overlaps a store just made has to wait for it.
typedef struct evaluate_arrays {
    double *Q;    // r + 1: 1 and q
    double *row;  // r + 1
    double *sums; // (r + 1) x 8: sums that are still spread over eight lanes
    double *X;    // triangle of Q_i Q_j
    double *T;    // triangle in which the Hessian is summed
    double *P;    // triangles P^1 .. P^r, of 2 .. r + 1 rows
} evaluate_arrays;

static inline size_t evaluate_vectors(size_t count) { return (count + 7) / 8 * 8; }
static inline size_t evaluate_triangle(int rows) { return evaluate_vectors((size_t)rows * ((size_t)rows + 1) / 2); }
static inline size_t evaluate_carve(int r, double *work, evaluate_arrays *w) { // returns the size up to P
    size_t vector = evaluate_vectors((size_t)r + 1), matrix = evaluate_triangle(r + 1), size = 10 * vector + 2 * matrix;
    *w = (evaluate_arrays){.Q = work,
                           .row = work + vector,
                           .sums = work + 2 * vector,
                           .X = work + 10 * vector,
                           .T = work + 10 * vector + matrix,
                           .P = work + size};
    return size;
}
static inline size_t evaluate_work(int r) {
    evaluate_arrays w;
    size_t          size = evaluate_carve(r, NULL, &w);
    for (int a = 1; a <= r; a++) size += evaluate_triangle(a + 1);
    return size + 8; // zeros may be added behind a triangle
}

// ---- batches (batch.c, kernel_batch.c) -----------------------------------------------------------------------------

enum { BATCH_ROWS = 12 }; // rows of K that are packed together

typedef struct batch_pair {
    int a, b; // a <= b
} batch_pair;

struct cubature_batch {
    const cubature_rule *rule; // of a rule: nothing else but r, pair_count and kernels is used then
    int                  r, pair_count;
    int                  columns; // r + pair_count monomials
    int                  groups;  // of BATCH_ROWS rows
    cubature_kernels     kernels;
    double              *rows;  // groups x columns x BATCH_ROWS
    double              *K0;    // groups x BATCH_ROWS
    batch_pair          *pairs; // groups x BATCH_ROWS: what a row is
};

// ---- rules (rule.c) ------------------------------------------------------------------------------------------------

size_t rule_batch_work(const cubature_batch *batch);
void rule_batch_evaluate(const cubature_batch *batch, int blocks, const double *q, const double *factor, double *energy,
                         double *f, double *K, double *work);
#endif
