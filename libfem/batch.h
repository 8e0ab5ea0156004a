// Dense algebra for many small systems side by side: blocks of eight matrices, each entry a vector of eight doubles,
// one per matrix (lane). Symmetric matrices are packed: entry (a, b), a <= b, stands at b (b + 1) / 2 + a, times 8.
#ifndef LIMBER_FEM_BATCH_H
#define LIMBER_FEM_BATCH_H

#include "libfem/base.h"

enum { FEM_LANES = 8 };

// A = L D L^T in place and A x = b, for one block: A is n (n + 1) / 2 x 8, b is n x 8 and becomes x. Returns the bits
// of the lanes that have a pivot that is not above 0 (or not a number): their x is of no use, the other lanes are not
// touched by it. Lanes that stand for nothing should hold the identity. Allocates nothing, safe from several threads.
typedef unsigned char (*fem_batch_solver)(int n, double *A, double *b);
// That of this processor, for those who go block by block.
fem_batch_solver fem_batch_choose_solver(void);

// `blocks` blocks, one after the other; bad[block] gets the bits. Returns the number of bad lanes.
int fem_batch_solve(int n, int blocks, double *A, double *b, unsigned char *bad);

#endif
