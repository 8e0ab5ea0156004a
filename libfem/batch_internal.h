// The kernels behind libfem/batch.h.
#ifndef LIMBER_FEM_BATCH_INTERNAL_H
#define LIMBER_FEM_BATCH_INTERNAL_H

#include "libfem/batch.h"

unsigned char fem_batch_solve_baseline(int n, double *A, double *b);
unsigned char fem_batch_solve_avx2(int n, double *A, double *b);
unsigned char fem_batch_solve_avx512(int n, double *A, double *b);

#endif
