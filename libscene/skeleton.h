// Plants as skeletons: branches as centrelines with radii, each on its parent, and leaves. Read from files of the form
// "tree-skeleton-1" (docs/plants.md), written as such, or grown.
#ifndef LIMBER_SKELETON_H
#define LIMBER_SKELETON_H

#include "libfem/fem.h"

#include <stdint.h>

typedef struct scene_branch {
    int     parent;      // index of a branch that comes before, or -1: a trunk
    int     level;       // 0 for a trunk
    double  t;           // where it begins on the parent's centreline, as a share of its length
    int     point_count; // at least two
    double *points;      // 3 per point, from base to tip, m
    double *radii;       // 1 per point, m
} scene_branch;

typedef struct scene_leaf {
    int    branch;
    double p[3];          // where its petiole begins
    double Q[9];          // its axes: x across, y from petiole to tip, z the normal
    double length, width; // m
} scene_leaf;

typedef struct scene_skeleton {
    int           branch_count, leaf_count;
    size_t        branch_room, leaf_room;
    scene_branch *branches;
    scene_leaf   *leaves;
} scene_skeleton;

void scene_skeleton_destroy(scene_skeleton *skeleton); // leaves it empty
// Parents come before children, at least two points each, nothing of length or radius zero (a tip may have radius 0),
// all finite; branches and leaves begin on their parents: at most two of its radii and half of the branch's
// length, or two lengths of the leaf, away from its centreline. The message names the first offender.
fem_status scene_skeleton_check(const scene_skeleton *skeleton);
// unit: length of one of the file's, m.
fem_status scene_skeleton_read(scene_skeleton *skeleton, const char *path, double unit);
fem_status scene_skeleton_write(const scene_skeleton *skeleton, const char *path); // metres
// Point and direction (unit) of a centreline at a share of its length, and the radius there.
void   scene_branch_at(const scene_branch *branch, double t, double point[3], double direction[3], double *radius);
double scene_branch_length(const scene_branch *branch);

// Plants of our own: radii by the pipe model (the cross-section of a branch is that of what it carries), phyllotaxis by
// the golden angle or in pairs, branches that bend up or down, taper. The same seed gives the same plant.
typedef enum scene_species {
    SCENE_OAK,
    SCENE_MAPLE,
    SCENE_BIRCH,
    SCENE_PINE,
    SCENE_FLOWER,
    SCENE_SPECIES
} scene_species;
const char *scene_species_name(scene_species species);
bool        scene_species_from_name(scene_species *species, const char *name);
fem_status  scene_skeleton_grow(scene_skeleton *skeleton, scene_species species, uint64_t seed);

// ---- scenes of plants (plant.c) -----------------------------------------------------------------------------------

// A skeleton as a scene file of instances: branches of a few classes by quantised shape, each a tapered tube, and
// leaves of one class, with wood and leaf of a species, in wind. z points up.
typedef struct scene_plant_options {
    scene_species wood;
    int           classes;                  // of branches, at most; the trunks have one of their own
    bool          distinct;                 // every branch and every leaf is a class of its own, with its own shape
    bool          mooney;                   // Mooney-Rivlin materials with forces by cubature, for branches and leaves
    int           branch_modes, leaf_modes; // of a class
    bool          hex;                      // branches of hexahedra, not tetrahedra
    int           rings, segments;          // cells of a branch from axis to surface, and along it
    double        leaf_thickness;           // m: with the density it gives the mass
    double        leaf_frequency;           // Hz: lowest of a leaf of mean size that is held at its petiole
    double        leaf_scale;               // factor on leaves
    int           leaves;                   // at most, evenly taken from the skeleton's; -1: all
    int           leaf_cells;               // cells of a leaf along its blade
    double        cubature_error;           // with `mooney`
    bool          gaussian;                 // training poses are Gaussian, as in P0, not answers to loads
    int           leaf_derivatives;         // orders of derivatives in the basis of a leaf (with `mooney`)
    double        wind;                     // m/s at 10 m; 0: none
    int           seed;                     // of the wind
    double        seconds;                  // of the run
    const char   *title;                    // or NULL
} scene_plant_options;
scene_plant_options scene_plant_default_options(void);
typedef struct scene_plant_report {
    int    branches, leaves, classes, elements; // elements: of all instances
    int    stubs;         // branches too short to be one; what they carried stands on their parents
    double height, worst; // m; worst: how far a point of a branch is from where the skeleton had it
} scene_plant_report;
fem_status scene_plant_write(const scene_skeleton *skeleton, const scene_plant_options *options, const char *path,
                             scene_plant_report *report);

#endif
