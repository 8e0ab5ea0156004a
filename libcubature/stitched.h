// Forces of a body that was changed: those of the body before in new coordinates, and what is linear besides.
// A chapter of cubature.h: include that.
#ifndef LIMBER_CUBATURE_STITCHED_H
#define LIMBER_CUBATURE_STITCHED_H

// V(q) = V_inner(T q) + q^T L q / 2. T (inner.r x r, column-major; NULL: identity) says where the new coordinates lie
// in the old ones, L (r x r, symmetric) holds springs and what T leaves out of the linear part. Inner forces of any
// kind: polynomials, cubature, all elements. T and L are copied; the inner model must outlive this.
typedef struct cubature_stitched cubature_stitched;
fem_status cubature_stitched_create(cubature_stitched **stitched, const cubature_forces *inner, int r, const double *T,
                                    const double *L);
void       cubature_stitched_destroy(cubature_stitched *stitched);
cubature_forces cubature_stitched_forces(const cubature_stitched *stitched);

// Forces of a body whose coordinates fall into blocks that know nothing of each other: the coordinates of forces[i]
// stand behind those of forces[i - 1]. The models must outlive this.
typedef struct cubature_pieces cubature_pieces;
fem_status      cubature_pieces_create(cubature_pieces **pieces, int count, const cubature_forces *forces);
void            cubature_pieces_destroy(cubature_pieces *pieces);
cubature_forces cubature_pieces_forces(const cubature_pieces *pieces);

// Forces of the body before reused for a new basis: T = U_old^T M U, L such that the linear part is K_new (r x r, U^T
// K^ U) exactly. What they miss is the nonlinear force of the part of U that U_old has not: check it.
fem_status cubature_reuse(cubature_stitched **stitched, const cubature_forces *old, const modes_basis *old_basis,
                          const fem_sparse *M, const modes_basis *basis, const double *K_new);

// Largest and mean |f - f_exact| / |f_exact|, of f_i / omega_i^2, over random poses (deviation amplitude / omega_i) and
// as many that answer loads of that size; a body that gives way counts 1. omega2 > 0; above 1e299: it stays at rest.
typedef struct cubature_check {
    double worst, mean;
} cubature_check;
fem_status cubature_compare(const cubature_forces *forces, const cubature_forces *exact, const double *omega2,
                            double amplitude, int poses, unsigned seed, cubature_check *check);

#endif
