// Changes of a mesh: joining several, opening cuts, finding and aligning vertices that shall be stitched.
#ifndef LIMBER_EDIT_H
#define LIMBER_EDIT_H

#include "libfem/mesh.h"

// One mesh out of several of the same element type, which stay apart from each other: vertices and elements one part
// after the other. With names (NULL: none) regions and sets are called "part.region" and "part.set"; without, those of
// equal names become one.
fem_status fem_mesh_join(fem_mesh *mesh, int count, const fem_mesh *const *parts, const char *const *names);

// Opens faces between elements: vertices are doubled wherever the elements around them no longer hang together across
// faces. Copies stand behind the old vertices and belong to the same sets. `faces` has 3 (T4) or 4 (H8) vertices each,
// in any order. *pairs (allocated) lists each copy with its original, 2 per pair: stitching these closes the cut.
fem_status fem_mesh_cut(fem_mesh *mesh, int face_count, const int *faces, int *pair_count, int **pairs);
// Opens the faces between elements whose centres lie on either side of a plane, as far as all vertices of the face are
// marked in `within` (NULL: all are). FEM_BAD_INPUT when there is none.
fem_status fem_mesh_cut_plane(fem_mesh *mesh, const double point[3], const double normal[3],
                              const unsigned char *within, int *pair_count, int **pairs);

// Pairs of vertices, one of each list, that are nearest to each other and not farther apart than the tolerance; in the
// order of the first list. A vertex that stands in both lists is not paired with itself.
fem_status fem_mesh_match(const fem_mesh *mesh, int a_count, const int *a, int b_count, const int *b, double tolerance,
                          int *pair_count, int **pairs);
// Moves vertices that belong together by pairs to one place: the middle of them, or of those that are fixed (3 flags
// per vertex; NULL: none is). FEM_BAD_INPUT, and nothing moved, when an element would turn inside out or fixed vertices
// would have to move.
fem_status fem_mesh_align(fem_mesh *mesh, int pair_count, const int *pairs, const unsigned char *fixed);

#endif
