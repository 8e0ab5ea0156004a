// Internal to libfem: a grid of voxels, some of them full, and the hexahedra that they are.
#ifndef LIMBER_VOXELS_H
#define LIMBER_VOXELS_H

#include "libfem/generate.h"

typedef struct fem_voxels {
    int    n[3];
    double low[3], size;
    int   *owner; // n[0] * n[1] * n[2], x fastest: 0 or 1 + the region that the voxel belongs to
} fem_voxels;

static inline size_t fem_voxel_index(const fem_voxels *g, const int i[3]) {
    return ((size_t)i[2] * (size_t)g->n[1] + (size_t)i[1]) * (size_t)g->n[0] + (size_t)i[0];
}

// An empty grid of voxels around the middle of the box; its owners are allocated.
fem_status fem_voxels_create(fem_voxels *grid, const double low[3], const double high[3], double size);

// Fills voxels until the body is well-composed [Latecki 1997, 3D well-composed pictures]: no two of the four voxels
// around an edge, and no two of the eight around a grid point, are diagonal neighbours that differ from all others
// there. Then no voxels meet only along an edge or at a corner, and the surface is a manifold. Filling never leaves the
// bounding box of the body, so it ends; it goes through the grid in a fixed order, so the result depends on the input
// alone. `filled` counts.
fem_status fem_voxels_repair(fem_voxels *grid, size_t *filled);

// Hexahedra of the full voxels, whose number is `full`; their regions are the owners, to be named.
fem_status fem_voxels_mesh(const fem_voxels *grid, double full, fem_mesh *mesh);

#endif
