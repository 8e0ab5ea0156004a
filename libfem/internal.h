// What libfem's own files tell each other.
#ifndef LIMBER_FEM_INTERNAL_H
#define LIMBER_FEM_INTERNAL_H

#include "libfem/fem.h"

// The numbers that a file gives to its vertices: a list, or NULL when they count on from the first.
typedef struct fem_numbering {
    long long        first;
    const long long *list;
} fem_numbering;
// fem_mesh_check with messages in those numbers.
fem_status fem_mesh_check_numbered(const fem_mesh *mesh, fem_numbering vertices);

// Versions of fem_material_lanes (kernel_material.c).
void fem_material_lanes_baseline(const fem_material_constants *c, const double *H, double *W, double *P, double *D);
void fem_material_lanes_avx2(const fem_material_constants *c, const double *H, double *W, double *P, double *D);
void fem_material_lanes_avx512(const fem_material_constants *c, const double *H, double *W, double *P, double *D);

// Versions of kernel_sparse.c: Y = A X for eight columns, rows of eight lanes; Y is zero before.
void fem_sparse_lanes_baseline(const fem_sparse *A, const double *X, double *Y);
void fem_sparse_lanes_avx2(const fem_sparse *A, const double *X, double *Y);
void fem_sparse_lanes_avx512(const fem_sparse *A, const double *X, double *Y);

void fem_cholmod_version(char text[32]);
void fem_metis_version(char text[32]);
void fem_lapack_version(char text[32]);

#endif
