// Modal warping: linear modes that turn. [Choi, Ko 2005]
// A chapter of modes.h: include that.
#ifndef LIMBER_MODES_WARP_H
#define LIMBER_MODES_WARP_H

// Each mode has a rotation field, half the curl of its displacement, so the rotation vector at a vertex is linear in q,
//   w = Psi q. While q grows from 0 in proportion, a vertex is carried along in axes that turn with it:
//   u = (integral over s in [0, 1] of exp([s w])) (U q)_vertex.
// For small q this is U q; where a mode turns a part of the body, that part keeps its size, which U q inflates.
typedef struct modes_warp {
    int     n, r;
    double *Psi; // n x r, column-major: rotation vectors of the modes at the vertices, 1/m
} modes_warp;

// The curl at a vertex is the mean over its elements, weighted with their volumes; vertices without elements get 0.
fem_status modes_warp_create(modes_warp *warp, const fem_mesh *mesh, const modes_basis *basis);
void       modes_warp_destroy(modes_warp *warp); // leaves it empty
// u (n) for reduced coordinates q (r). `work` holds n doubles. Allocates nothing.
void modes_warp_displacement(const modes_warp *warp, const modes_basis *basis, const double *q, double *work,
                             double *u);
// The matrix above for one rotation vector, row-major: u = W(w) (U q)
void modes_warp_matrix(const double w[3], double W[9]);

#endif
