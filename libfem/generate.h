// What the generators share: they build hexahedra, name regions and sets, and end with one function.
#ifndef LIMBER_GENERATE_H
#define LIMBER_GENERATE_H

#include "libfem/fem.h"

// Most elements that a generator makes, and the tetrahedra in the place of a hexahedron.
enum { FEM_GENERATE_MOST = 50000000, FEM_GENERATE_TETRAHEDRA = 6 };

// Refuses more elements than that when `cells` hexahedra are made into elements of this type.
fem_status fem_generate_count(double cells, fem_element type);

// Gives a mesh these regions, all with its first material.
fem_status fem_generate_regions(fem_mesh *mesh, int count, const char *const *names);

// Vertex set of all vertices whose mark has this bit; none is made when there are no such vertices.
fem_status fem_generate_set(fem_mesh *mesh, const char *name, const unsigned char *mark, unsigned bit);

// Vertex sets "x0" "x1" "y0" .. "z1" of the low and high sides of the axes, which are the bits 0 .. 5 of the marks.
fem_status fem_generate_sides(fem_mesh *mesh, const unsigned char *mark);

// Splits the hexahedra when tetrahedra are wanted, checks the result, and moves it into `mesh`.
fem_status fem_generate_finish(fem_mesh *mesh, fem_element type, fem_mesh *hexahedra);

// How the face of a square or cube of cells becomes round, for tubes (2 axes) and balls (3 axes).
// `grid` has entries in [-1, 1]; the largest magnitude among them says which ring or shell the point is on.
// Moves the point by `roundness` (0..1 at the outermost ring, less inside in proportion) from its square to its circle.
void fem_generate_rounded(int axes, const double *grid, double roundness, double *point);

#endif
