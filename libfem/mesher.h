// From a surface to a volumetric mesh.
#ifndef LIMBER_MESHER_H
#define LIMBER_MESHER_H

#include "libfem/mesh.h"

// Stuffing: tetrahedra of good shape that follow the surface. Voxels: cubes, or six tetrahedra each, with a stepped
// surface.
typedef enum fem_mesher_method { FEM_STUFFING, FEM_VOXELS } fem_mesher_method;

typedef struct fem_mesher_options {
    fem_mesher_method method;
    fem_element       type; // FEM_H8: with voxels only
    double            size; // of a cell of the lattice, which is also its longest edge; of a voxel
} fem_mesher_options;

enum { FEM_MESHER_PLACES = 6 };

typedef struct fem_mesher_report {
    // the surface
    int    open_edges;   // where it does not go on, or goes on turned over; 0: it is closed
    int    doubled;      // triangles that were there from both sides
    int    degenerate;   // triangles without an area
    bool   turned;       // it faced inwards
    double area, volume; // of what is left, the volume as signed triangles enclose it
    // the mesh
    int crumbs, crumb_elements; // parts of a few elements that hung by an edge or a vertex and were left out
    int hinged_parts;           // parts that hang by an edge or a vertex on others
    int pinches;                // vertices of its surface around which more than one sheet goes
    int filled;                 // voxels that were added so that none meet only along an edge or at a corner
    // how they differ; samples no farther apart than the size
    double to_mesh, to_surface; // largest distance from the surface to the mesh's, and back
    double mean_to_mesh;        // over the area
    double lost_area;           // of the surface that is farther from the mesh's than half a size (voxels: a size)
    int    place_count;         // where that is worst, at least four sizes apart
    double places[FEM_MESHER_PLACES][3], place_distance[FEM_MESHER_PLACES];
    double seconds_signs, seconds_elements, seconds_distance; // wall clock
} fem_mesher_report;

// Fills the surface. The inside is where the generalised winding number is above a half [Jacobson, Kavan and
// Sorkine-Hornung 2013], so that holes are closed smoothly and overlapping parts unite; triangles that are doubled or
// turned over are put right first. The mesh has one region "all" and the vertex set "surface". Remarks (may be NULL)
// say what was wrong with the surface and what the size loses. Too small or too large a size is refused before memory
// is taken.
fem_status fem_mesh_fill_surface(fem_mesh *mesh, const fem_surface *surface, const fem_mesher_options *options,
                                 fem_mesher_report *report, fem_remarks *remarks);

// About how many elements a size makes: from the volume that the surface encloses.
double fem_mesher_estimate(const fem_surface *surface, const fem_mesher_options *options);

// Vega's .interp: a line "i v1 w1 v2 w2 ..." for each point, all from 0.
fem_status fem_embedding_write(const fem_embedding *embedding, const char *path);

#endif
