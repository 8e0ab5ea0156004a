// Internal to libfem: isosurface stuffing, from the signs of a body-centred cubic lattice to tetrahedra.
#ifndef LIMBER_STUFFING_H
#define LIMBER_STUFFING_H

#include "libfem/fem.h"

// Two cubic grids, the second (kind 1) in the middle of the cells of the first (kind 0). Point (i, j, k) of a kind lies
// at low + size (i + kind/2, j + kind/2, k + kind/2) and has the number 2 ((k n1 + j) n0 + i) + kind.
typedef struct fem_lattice {
    int          n[3]; // points of each kind along the axes
    double       low[3], size;
    signed char *sign; // 2 n0 n1 n2: 1 inside, -1 outside; where the first or last two of an axis are not -1, they are
                       // made so
} fem_lattice;

size_t fem_lattice_count(const fem_lattice *lattice);
void   fem_lattice_point(const fem_lattice *lattice, size_t number, double x[3]);

// Where the surface cuts the edge from a point inside to one outside: 0 at the first, 1 at the second. Called from
// several threads.
typedef double (*fem_lattice_cut)(void *context, size_t inside, size_t outside);

// Ratios of an edge's length: a surface that cuts it nearer to an end than this draws the end to it. With these every
// dihedral angle lies between 10.78 and 164.74 degrees, whatever the signs and cuts are: the bounds that the paper's
// abstract claims, 10.7 and 164.8 [Labelle and Shewchuk 2007, Isosurface stuffing: fast tetrahedral meshes with good
// dihedral angles]. The ratios themselves are ours: where the worst cases balance, found by trying signs and cuts at
// random, as the test does; no proof. The pair 0.24999 and 0.41189, which other implementations quote from the paper,
// gives 9.31 and 161.65 with the stencils here: flatter angles are cut off at the price of sharper ones.
#define FEM_STUFFING_LONG  0.2851
#define FEM_STUFFING_SHORT 0.3988

// Fills `mesh` with T4, one region "all". Changes the signs: 0 is a point that was drawn to the surface. A lattice
// without a point inside gives an empty mesh.
fem_status fem_stuff_lattice(fem_mesh *mesh, fem_lattice *lattice, fem_lattice_cut cut, void *context);

#endif
