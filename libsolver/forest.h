// Parts used many times: instances of a few classes, placed by rigid motions and uniform scales, that hang on each
// other or stand by themselves [Barbič and Zhao 2011, section 5]. From them a solver_tree is made.
//
// A part is a mesh with the vertices that hold it: of a part that stands by itself they are fixed to the world, of one
// that hangs on another they are its root, whose points are interpolated in the elements of the parent. A part without
// them is a free body. One class is made per part, whatever hangs on its instances: the class has an interface for each
// different place at which something hangs on one of them.
//
//     solver_forest_create(&forest, part_count, parts, count, instances, NULL);
//     solver_forest_precompute(forest, NULL, NULL, NULL);
//     solver_forest_tree(&tree, forest, &options);
#ifndef LIMBER_SOLVER_FOREST_H
#define LIMBER_SOLVER_FOREST_H

#include "libsolver/class.h"

typedef struct solver_part {
    const char          *name;
    const fem_mesh      *mesh; // not owned, as `fixed`
    int                  fixed_count;
    const int           *fixed;
    solver_class_options options;
    double               damping_mass, damping_stiffness; // Rayleigh's
} solver_part;

// x = p + scale Q X
typedef struct solver_placement {
    double p[3], Q[9], scale;
} solver_placement;
void solver_placement_identity(solver_placement *at);
void solver_placement_invert(solver_placement *inverse, const solver_placement *at); // may be the same
// c = a after b; c may be one of them
void solver_placement_compose(solver_placement *c, const solver_placement *a, const solver_placement *b);

// Mass of a mesh, and its centre.
double solver_mesh_mass(const fem_mesh *mesh, double centre[3]);

// How far root points may be from the parent where nothing else is said: a tenth of the diagonal of the child's box.
double solver_default_reach(const fem_mesh *mesh, double scale);

typedef struct solver_forest_instance {
    const char      *name; // not owned; NULL: "instance 17"
    int              part;
    int              parent;                          // an instance that comes before, or -1: it stands by itself
    solver_placement at;                              // in the coordinates of the parent's part, or of the world
    double           stiffness;                       // factor on its forces, > 0
    double           damping_mass, damping_stiffness; // of its own; negative: those of its part
    double reach;  // how far its root points may be from the parent, in the parent's coordinates; 0: the default
    bool   driven; // a held root that will be moved (solver_tree_set_drive)
} solver_forest_instance;

// Where children of one kind hang on a part.
typedef struct solver_attachment {
    int              part, child; // parts
    solver_placement at;
    int              interface; // of the part's class
    double           mass;      // the largest of what hangs there, its parent's scale made 1, kg
    double           lever;     // from the place to the centre of that mass, likewise, m
    int              first;     // of its points in the embedding of the part
} solver_attachment;

// What an instance has instead of the class of its part: another basis and its forces, in the same coordinates.
typedef struct solver_own_class {
    modes_basis     basis; // not owned, as what the forces point to
    cubature_forces forces;
    solver_inertia  inertia;
} solver_own_class;

typedef struct solver_forest {
    int          part_count;
    solver_part *parts;
    double (*origin)[3];           // per part: of its class in the coordinates of the part
    double (*centre)[3];           // per part: its centre of mass, likewise
    double                 *mass;  // per part, kg
    int                    *uses;  // per part: instances
    int                     count; //
    solver_forest_instance *given; // copied; names are not
    solver_placement       *world; // per instance: of its part at rest
    int                    *hangs; // per instance: its attachment, or -1
    int                     attachment_count;
    solver_attachment      *attachments;
    fem_embedding          *points; // per part: root points of all that hangs on it
    double                 *total;  // per instance: mass with all that hangs on it, kg
    // after solver_forest_precompute
    solver_class        **classes;      // per part; NULL: it has no instance
    solver_tree_class    *tree_classes; // per part
    domain_interface    **interfaces;   // per part
    int                  *interface_count;
    solver_tree_instance *instances;
    solver_own_class    **own;    // per instance: NULL, or what it has of its own; not owned
    int                   modes;  // in all
    int                   cached; // classes that came from the store
    int                   made;   // classes
    double                seconds, seconds_modes, seconds_forces, seconds_rest;
} solver_forest;

// Finds where everything is and what it hangs on; makes no class yet. FEM_BAD_INPUT names the instance, and `offender`
// (may be NULL) gets its number, or -1.
fem_status solver_forest_create(solver_forest **forest, int part_count, const solver_part *parts, int count,
                                const solver_forest_instance *instances, int *offender);
void       solver_forest_destroy(solver_forest *forest);

// Makes the classes, side by side on all threads; `store` as in class.h and `room` as in making.h may be NULL.
fem_status solver_forest_precompute(solver_forest *forest, const solver_class_store *store, solver_room *room,
                                    const fem_progress *progress);
// For an instance on which nothing hangs. It takes effect in trees that are made after it stands in `own` of the
// forest, and must outlive them.
fem_status         solver_own_class_create(solver_own_class **own, const solver_forest *forest, int instance,
                                           const modes_basis *basis, const cubature_forces *forces);
void               solver_own_class_destroy(solver_own_class *own);
const modes_basis *solver_forest_basis(const solver_forest *forest, int instance); // its own, or that of its part
// A tree in its place, at rest. The forest must outlive it. Its classes are those of parts that have instances, in
// their order, then those that instances have of their own.
fem_status solver_forest_tree(solver_tree **tree, const solver_forest *forest, const solver_tree_options *options);
// The frame of an instance at rest.
void solver_forest_frame(const solver_forest *forest, int instance, solver_frame_motion *motion);
// World positions and velocities of the vertices of an instance, 3 each; v may be NULL. work: 3 per vertex.
void solver_forest_show(const solver_forest *forest, solver_tree *tree, int instance, double *x, double *v,
                        double *work);
// A point of a tree at a vertex of an instance.
fem_status solver_forest_point(const solver_forest *forest, solver_tree *tree, int instance, int vertex, int *point);

#endif
