// Internal to libfem: the steps of the mesher after its elements are there.
#ifndef LIMBER_MESHER_INTERNAL_H
#define LIMBER_MESHER_INTERNAL_H

#include "libfem/surface_mend.h"
#include "libfem/surface_tree.h"

// Leaves out crumbs: parts of fewer than 24 elements that hang by an edge or a vertex, unless all is crumbs. Counts
// what still hangs so.
fem_status fem_mesher_clean(fem_mesh *mesh, fem_mesher_report *report);

// The vertex set "surface", pinches of the mesh's surface, and its distances from the given one. What is
// farther away than `limit` is lost.
fem_status fem_mesher_compare(fem_mesh *mesh, const fem_mended *surface, const fem_surface_tree *tree, double size,
                              double limit, fem_mesher_report *report);

#endif
