// Which pieces of a mesh are copies of each other [Barbič and Zhao 2011, section 5]: connected pieces that a rotation,
// a translation and a uniform scale bring onto each other, whatever the order of their vertices and elements, up to a
// tolerance. Mirror images are no copies.
#ifndef LIMBER_CONGRUENCE_H
#define LIMBER_CONGRUENCE_H

#include "libfem/fem.h"

typedef struct domain_copies {
    int  count;       // pieces, in the order of their first elements
    int *piece;       // per element of the mesh
    int  class_count; //
    int *class_of;    // per piece
    int *model;       // per class: the piece that the others are copies of, the first
    int *start;       // per piece and one more: into `vertices`
    int *vertices;    // of each piece, those of the mesh; vertex k of a piece is the copy of vertex k of its model
    double (*p)[3];   // per piece: a vertex X of the model is at p + scale Q X
    double (*Q)[9];   //
    double *scale;    //
    double *error;    // per piece: the largest distance of a vertex from there, m
} domain_copies;

// `tolerance`: how far vertices may be from their places, as a share of the piece's radius of gyration; > 0, at most
// 0.01. Pieces of different materials are different. An empty result is all zeros; it is replaced on success only.
fem_status domain_find_copies(domain_copies *copies, const fem_mesh *mesh, double tolerance);
void       domain_copies_destroy(domain_copies *copies); // leaves it empty

#endif
