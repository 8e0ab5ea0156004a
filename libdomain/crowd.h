// A mesh of many pieces, such as a plant whose branches and leaves were modelled one by one, as classes that are made
// once and copies of them that hang on each other [Barbič and Zhao 2011, section 5].
//
// Pieces that are copies of each other (congruence.h) and are held at the same vertices are a class. Those with
// vertices of `fixed` are held there; all others hang on the piece that they touch: pieces are taken up level by level,
// starting at those that are held, each by the one of the level before that most of its vertices touch, which are its
// root. Without `fixed` vertices every piece is a free body.
#ifndef LIMBER_CROWD_H
#define LIMBER_CROWD_H

#include "libdomain/congruence.h"

typedef struct domain_crowd {
    domain_copies copies;      // pieces, their shapes, and where they are
    int           class_count; //
    int          *class_of;    // per piece
    int          *shape;       // per class: of copies
    int          *uses;        // per class: pieces
    fem_mesh     *meshes;      // per class: that of the model of its shape, as the mesh has it
    int          *fixed_count; // per class
    int         **fixed;       // likewise: vertices of its mesh that hold it; of free pieces none
    int          *parent;      // per piece, or -1
    int          *order;       // all pieces, parents before what hangs on them
} domain_crowd;

typedef struct domain_crowd_options {
    double     tolerance; // of copies, as of domain_find_copies
    double     reach; // how far pieces may be apart and touch, m; 0: a fiftieth of the diagonal of the one that hangs
    int        fixed_count;
    const int *fixed; // vertices of the mesh
} domain_crowd_options;

// FEM_BAD_INPUT names a piece that touches no other, by its place. An empty result is all zeros; it is replaced on
// success only.
fem_status domain_find_crowd(domain_crowd *crowd, const fem_mesh *mesh, const domain_crowd_options *options);
void       domain_crowd_destroy(domain_crowd *crowd); // leaves it empty

#endif
