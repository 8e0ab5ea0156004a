// What factor.c and its kernel tell each other.
#ifndef LIMBER_FACTOR_INTERNAL_H
#define LIMBER_FACTOR_INTERNAL_H

#include "libfem/internal.h"

enum {
    FACTOR_LANES = 8,   // right-hand sides in one vector
    FACTOR_VECTORS = 3, // most vectors side by side: 8 columns of L times 3 vectors are 24 of AVX-512's 32 registers
};

// L by supernodes, as CHOLMOD stores it. Supernode s has the columns first[s] .. first[s + 1] - 1, which share the rows
// row[row_start[s]] .. row[row_start[s + 1] - 1]; the first of those rows are the columns themselves. Its values are a
// dense column-major matrix of all its rows times its columns at value_start[s]; above its diagonal they mean nothing.
typedef struct fem_supernodes {
    long          count;
    const long   *first, *row_start, *value_start, *row;
    const long   *dof; // degree of freedom of a row
    const double *value;
    const long   *list; // the `count` supernodes that are meant, ascending; NULL for all
} fem_supernodes;
// Of an analysed matrix; `value` is NULL before it is factored.
fem_supernodes fem_factor_supernodes(const fem_factor *factor);

typedef enum factor_half { FACTOR_FORWARD = 1, FACTOR_BACKWARD = 2, FACTOR_BOTH = 3 } factor_half;

// X <- L^-T L^-1 X, or half of it. X is row-major, one row of `vectors` x FACTOR_LANES right-hand sides for each row of
// L; work: as many such rows as the tallest supernode has.
typedef void (*supernode_kernel)(const fem_supernodes *L, factor_half halves, int vectors, double *X, double *work);
void fem_supernode_solve_baseline(const fem_supernodes *L, factor_half halves, int vectors, double *X, double *work);
void fem_supernode_solve_avx2(const fem_supernodes *L, factor_half halves, int vectors, double *X, double *work);
void fem_supernode_solve_avx512(const fem_supernodes *L, factor_half halves, int vectors, double *X, double *work);
supernode_kernel fem_supernode_kernel(void);                   // for this processor
long             fem_factor_tallest(const fem_factor *factor); // most rows of a supernode
int              fem_factor_vertices(const fem_factor *factor);

// A solve whose right-hand sides are interleaved by FACTOR_LANES: entry (dof, c) at X[dof * FACTOR_LANES + c], in
// place; fixed entries become 0. For a caller that keeps its vectors so. Runs on the calling thread.
fem_status fem_factor_solve_lanes(fem_factor *factor, double *X);

// CHOLMOD's own solve, the plain version of fem_factor_solve.
fem_status fem_factor_solve_plain(fem_factor *factor, int columns, const double *B, double *X);

#endif
