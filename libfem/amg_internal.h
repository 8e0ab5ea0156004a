// What the files of the multigrid solver tell each other.
//
// Eight right-hand sides go in lockstep: vectors are interleaved, entry (dof, c) at x[8 dof + c]. On every level the
// matrix is scaled on both sides by the Cholesky factors of its 3x3 diagonal blocks, A_ij <- L_i^-1 A_ij L_j^-T, so
// that these blocks are the identity: smoothers need no diagonal, and the values suit single precision whatever the
// units. The preconditioner runs in single precision; conjugate gradients and the matrix in them are double.
#ifndef LIMBER_AMG_INTERNAL_H
#define LIMBER_AMG_INTERNAL_H

#include "libfem/amg.h"
#include "libfem/factor_internal.h"

enum {
    LANES = FACTOR_LANES, // right-hand sides in lockstep
    RIGID = 6,            // coarse unknowns of an aggregate
    PAD = 8,              // during set-up, rows of 6 are padded to a vector of 8
};

// All blocks of all rows, columns ascending.
typedef struct amg_matrix {
    int     n;      // block rows
    int    *start;  // n + 1
    int    *column; // block column
    float  *value;  // 9 per block, row-major
    double *exact;  // likewise; on coarse levels only during set-up
} amg_matrix;

// Prolongation: row i interpolates from the aggregates node[start[i]] ..; and the same entries by aggregate.
typedef struct amg_transfer {
    int     n, coarse;                          // block rows, aggregates
    int    *start;                              // n + 1
    int    *node;                               // aggregate of an entry
    float  *value;                              // 3 x 6 per entry, row-major
    double *exact;                              // 3 x PAD per entry, during set-up
    int    *back_start, *back_row, *back_entry; // entries of an aggregate: their rows (ascending) and numbers
} amg_transfer;

typedef struct amg_level {
    amg_matrix   A;
    double      *scale;  // 9 per row: L_i^-T, so that the unscaled vector is scale times the scaled one
    double       radius; // estimate of the largest eigenvalue of A
    amg_transfer P;
    float       *r, *d, *e, *x; // residual, two directions, solution
} amg_level;

typedef enum amg_operation {
    AMG_APPLY,     // Q = A P in double, sums += P Q
    AMG_POWER,     // e = A d, sums += e e
    AMG_FIRST,     // d = r - c A r, e = c1 r + c2 d, x = c r + e: two steps of smoothing from zero
    AMG_SMOOTH,    // r -= A d, e = c2 r, x += e
    AMG_LAST,      // x += c1 d + c2 (r - A d)
    AMG_RESIDUAL,  // r -= A d
    AMG_RESTRICT,  // coarse = P^T r, chunks of aggregates
    AMG_PROLONG,   // d = P coarse, x += d
    AMG_DOT,       // sums += R x
    AMG_DIRECTION, // P = x + factor P
    AMG_ADVANCE,   // X += factor P, R -= factor Q, r = R
    AMG_PRODUCT,   // set-up: rows of A P
    AMG_GALERKIN,  // set-up: 6x6 blocks of P^T (A P), chunks of aggregates
} amg_operation;

// One operation over chunks of rows. Sums are kept per chunk and lane and added in order, so nothing depends on
// threads.
typedef struct amg_work {
    amg_operation       operation;
    int                 count, step; // rows or aggregates, and how many a chunk has
    const amg_matrix   *A;
    const amg_transfer *transfer;
    float              *r, *d, *e, *x, *coarse;
    double             *P, *Q, *R, *X;
    float               c, c1, c2;
    double              factor[LANES];
    double             *sums; // LANES per chunk
    // set-up
    const int *product_start, *product_node; // pattern of A P, by rows
    double    *product;                      // 3 x PAD per entry
    const int *coarse_start, *coarse_node;   // pattern of the upper half of the coarse matrix, by aggregates
    double    *blocks;                       // 6 x PAD per entry
    int       *position;                     // per worker: place of an aggregate, `transfer->coarse` each
} amg_work;

typedef void (*amg_kernel)(const amg_work *work, int chunk, int worker);
void fem_amg_kernel_baseline(const amg_work *work, int chunk, int worker);
void fem_amg_kernel_avx2(const amg_work *work, int chunk, int worker);
void fem_amg_kernel_avx512(const amg_work *work, int chunk, int worker);

enum { AMG_ROWS = 512, AMG_NODES = 16 }; // rows and aggregates in a chunk
static inline int amg_chunks(int count, int step) { return (count + step - 1) / step; }
void              amg_run(const amg_work *work); // all chunks, on all threads

struct fem_amg {
    fem_amg_options options;
    fem_amg_report  report;
    int             n;                     // block rows
    int             level_count;           // without the coarsest
    amg_level       level[FEM_AMG_LEVELS]; // the one behind the last has only r and x
    fem_factor     *factor;                // of the coarsest matrix; NULL when nothing is free there
    int             coarse;                // its block rows
    double         *lanes;                 // its right-hand sides
    int             null_count;            // of its null space
    double         *null;                  // 3 coarse x null_count, orthonormal, row-major
    unsigned char  *fixed;                 // 3 n
    double         *X, *R, *P, *Q;         // of conjugate gradients
    double         *sums;
};

// ---- set-up (amg_setup.c, amg_aggregate.c, amg_coarsen.c)

// What a level is made from.
typedef struct amg_problem {
    fem_sparse     A;
    bool           borrowed; // A is somebody else's
    unsigned char *fixed;    // 3 n
    double        *B;        // 3 x 6 per block row, row-major: what the six rigid motions do to it
    double        *Z;        // 3 n x null_count, column-major: the null space
    int            null_count;
} amg_problem;
void amg_problem_destroy(amg_problem *problem);

// The scaled matrix of a level; B and Z become those of the scaled unknowns.
fem_status amg_scale(amg_level *level, amg_problem *problem, bool finest);
// Its largest eigenvalue; uses d, e, and sums of AMG_ROWS chunks.
fem_status amg_radius(amg_level *level, double *sums);
// Prolongation and the next coarser problem. points: 3 per row of the finest level, NULL on coarser ones.
fem_status amg_coarsen(amg_level *level, const double *points, const amg_problem *fine, amg_problem *coarse);
// aggregate[i] = aggregate of row i, or -1 for a row without neighbours
fem_status amg_aggregate(const amg_matrix *A, const double *points, int *aggregate, int *count);
// Multiplies the columns of P by the scale of the next level (NULL: 1), and rounds it.
fem_status amg_finish_transfer(amg_transfer *P, const double *coarse_scale);
void       amg_level_destroy(amg_level *level);

#endif
