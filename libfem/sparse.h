// Symmetric matrices of 3x3 blocks, one block row per vertex, and their Cholesky factorisation.
#ifndef LIMBER_SPARSE_H
#define LIMBER_SPARSE_H

#include "libfem/mesh.h"

// Upper half: block row i holds the blocks (i, j) with j >= i, ascending, so the diagonal block comes first.
typedef struct fem_sparse {
    int     n;         // block rows (vertices); the matrix is 3n x 3n
    int     blocks;    // stored blocks
    int    *row_start; // n + 1
    int    *column;    // blocks
    double *value;     // 9 per block, row-major; diagonal blocks are stored whole
} fem_sparse;

fem_status fem_sparse_from_mesh(fem_sparse *A, const fem_mesh *mesh); // pattern of the mesh's vertex graph, zero values
fem_status fem_sparse_copy(fem_sparse *A, const fem_sparse *B);       // pattern and values (0 when B has none)
void       fem_sparse_destroy(fem_sparse *A);
void       fem_sparse_zero(fem_sparse *A);
void       fem_sparse_scale(fem_sparse *A, double alpha);
void       fem_sparse_axpy(fem_sparse *A, double alpha, const fem_sparse *B); // A += alpha B, same pattern

// Y = A X for `columns` vectors of length 3n stored one after the other; X and Y must not overlap
void   fem_sparse_multiply(const fem_sparse *A, int columns, const double *X, double *Y);
double fem_sparse_norm(const fem_sparse *A); // Frobenius norm of the whole 3n x 3n matrix
// Matrix Market file (.mtx, also .gz) of the lower half, for other programs.
fem_status fem_sparse_write(const fem_sparse *A, const char *path);
int fem_sparse_find(const fem_sparse *A, int row, int column); // index of block (row, column), row <= column, or -1

// A = L L^T without the fixed degrees of freedom, by CHOLMOD on METIS's ordering of the vertex graph.
// Order and analyse once, factorise many times, solve many right-hand sides at once.
typedef struct fem_factor fem_factor;

typedef struct fem_factor_report {
    int    free_dofs;
    double entries;                                           // nonzeros of L
    double flops;                                             // of one factorisation
    double bytes;                                             // held by the factor
    double seconds_order, seconds_analyse, seconds_factorise; // the last: of the latest factorisation
} fem_factor_report;

// `fixed` marks 3n degrees of freedom (nonzero = left out), or NULL for none.
fem_status fem_factor_create(fem_factor **factor, const fem_sparse *pattern, const unsigned char *fixed);
void       fem_factor_destroy(fem_factor *factor);
// FEM_INDEFINITE names the vertex whose pivot is not positive. The factor must not be used until a later call succeeds.
fem_status fem_factor_factorise(fem_factor *factor, const fem_sparse *A);
// Columns of length 3n; fixed entries of B are ignored and those of X become 0. X may be B.
fem_status        fem_factor_solve(fem_factor *factor, int columns, const double *B, double *X);
fem_factor_report fem_factor_get_report(const fem_factor *factor);

// The halves of a solve, for whoever has something to add between them: Y = L^-1 B and X = L^-T Y. Columns of Y have
// free_dofs rows, in L's own order; B and X are as above.
fem_status fem_factor_forward(fem_factor *factor, int columns, const double *B, double *Y);
fem_status fem_factor_backward(fem_factor *factor, int columns, const double *Y, double *X);

// L^-1 b of a b with few entries is zero but for the rows that these reach in the elimination tree: only those are
// computed and kept.
typedef struct fem_half {
    int     columns; // at most FEM_HALF_COLUMNS
    int     rows;    // that are kept
    int    *row;     // rows: which, of free_dofs, ascending
    double *W;       // rows x columns, column-major
} fem_half;
#define FEM_HALF_COLUMNS 24
typedef struct fem_half_entry {
    int    column, dof; // of 0 .. columns - 1, of 0 .. 3n - 1; an entry of a fixed dof counts for nothing
    double value;
} fem_half_entry;
// For `count` halves at once: half i has columns[i], and the entries start[i] .. start[i + 1] - 1. On failure all are
// left empty.
fem_status fem_half_create(fem_factor *factor, int count, const int *columns, const int *start,
                           const fem_half_entry *entries, fem_half *halves);
void       fem_half_destroy(fem_half *half); // leaves it empty
// T (a.columns x b.columns, leading dimension ld) = A^T B
fem_status fem_half_inner(const fem_half *a, const fem_half *b, double *T, int ld);
// T (half.columns x columns, leading dimension ld) = W^T Y, Y as of fem_factor_forward
fem_status fem_half_project(const fem_half *half, int free_dofs, int columns, const double *Y, double *T, int ld);
// Y -= W T
fem_status fem_half_subtract(const fem_half *half, int free_dofs, int columns, const double *T, int ld, double *Y);

// Makes a matrix with a null space definite: marks in `fixed` as many of its n dofs as the r columns of R (n each,
// independent, zero on dofs that are fixed already) are dimensions of it, well apart.
fem_status fem_factor_hold(int n, int r, const double *R, unsigned char *fixed);

// METIS, in one place: nested dissection of a graph (neighbours of v: adjacent[start[v]] .. , no self loops).
// order[k] is the vertex eliminated k-th.
fem_status fem_graph_order(int n, const int *start, const int *adjacent, int *order);

// Cuts a symmetric graph into `parts` parts of about equal size with few edges between them (METIS k-way): part[v] is
// 0 .. parts - 1. A graph of several components is cut component by component, each into its share of the parts; when
// there are more components than parts, whole components share a part. A part may stay empty where parts are small.
fem_status fem_graph_partition(int n, const int *start, const int *adjacent, int parts, int *part);

#endif
