// A class: all that is computed once about a piece of a body and shared by its instances in a tree: basis, reduced
// forces, inertia, and the interfaces at which other pieces hang.
//
// The mesh is in the coordinates of the class: for a piece that hangs on another the origin is the centroid of the
// interface to it, whose vertices are held and do not move.
#ifndef LIMBER_SOLVER_CLASS_H
#define LIMBER_SOLVER_CLASS_H

#include "libsolver/making.h"
#include "libsolver/tree.h"

typedef enum solver_forces_kind {
    SOLVER_FORCES_POLYNOMIAL, // StVK and orthotropic, exactly
    SOLVER_FORCES_LINEAR,     // small strain
    SOLVER_FORCES_FULL,       // through all elements: any material, slow
    SOLVER_FORCES_WARPED,     // small strain, shown by modal warping
    SOLVER_FORCES_CUBATURE,   // a few weighted elements: any material
} solver_forces_kind;
const char *solver_forces_name(solver_forces_kind kind); // "polynomial", "linear", "full", "warped", "cubature"

// Points through which a class meets others. Wrenches on them enter the basis.
typedef struct solver_place {
    int           count; // three or more, not on a line
    const int    *vertices;
    const double *weights;     // > 0, m^2; NULL: alike
    double        mass;        // of what hangs there, kg: which places count more when there are many (modes_interface)
    double        lever;       // from here to the centre of that mass, m; 0: the radius of the place itself
    bool          child;       // a child can hang here: it gets an interface; else it is for springs
    const double *rest;        // rotation of the child's frame, NULL: none
    double        inertia[36]; // 6 x 6 about the middle of the place, of what hangs there; all 0: by mass and lever
    const double *pull;        // how the child pulls (domain_interface_set_pull), 3 points x 6; NULL: not known
    bool          carried;     // the child follows how the place deforms (solver_carrier), so that no collar braces it
} solver_place;

// How the parent of a class deforms the interface between them, at the vertices that are held. The class gets more
// shapes, at most `most`, each with the static response of the class to it: first what the seeds do there, then, of
// what the coordinates of the parent do, that which would strain the class by more than `tolerance` of the parent's
// energy.
typedef struct solver_carrier {
    int           count;     // coordinates of the parent
    const double *rows;      // 3 held vertices x count, in the axes of the class, without the motion of the frame
    const double *frame;     // 3 held vertices x 6: rows of the frame, whose origin is that of the class
    const double *stiffness; // count x count, of the parent at rest
    double        tolerance;
    int           most; // up to SOLVER_MOST_CARRIED
} solver_carrier;

// Fields of the whole body, such as its modes, whose part in a piece comes first in its basis (modes_recipe.given).
// They are asked for only when the class is not in the store.
typedef struct solver_seeds {
    int      count;
    fem_hash key; // of all that determines them
    // fields: 3 vertices x count, of the piece with its collar, of unit energy in the whole, allocated; omega2: their
    // squared frequencies, count. *fields NULL: there are none after all.
    fem_status (*find)(void *context, double **fields, double *omega2);
    double (*bytes)(void *context); // that finding them takes, by estimate; asked only where memory is limited
    void *context;
} solver_seeds;

typedef struct solver_class_options {
    int                modes;  // 0: rigid
    int                spare;  // so many more where the seeds need them, at most
    solver_forces_kind forces; //
    fem_mass_kind      mass;
    int                quadrature; // of hexahedra
    bool               batch;      // also prepare for many instances at once (polynomial, cubature without a collar)
    // How the basis is made. `count` is not read. `linear` 0: chosen, six and six for each place and at least half of
    // all modes, at most two thirds. Without nonlinear forces there are no derivatives.
    modes_recipe              recipe;
    bool                      wrenches; // Krylov modes also start from unit wrenches on the places
    cubature_training_options training; // of cubature; its checkpoint and given poses are not read
    const solver_carrier     *carrier;  // NULL: the interface to the parent is rigid
    const solver_seeds       *seeds;    // NULL: none
    solver_room              *room;     // NULL: no limit of memory
} solver_class_options;
// 20 modes, polynomial, Krylov modes and their first derivatives, all linear modes kept, wrenches
solver_class_options solver_class_default_options(void);

typedef struct solver_class {
    char                    *name;
    fem_mesh                 mesh;
    unsigned char           *fixed; // 3 per vertex; NULL: nothing is held
    fem_body                *body;
    cubature_polynomial      bracing;    // the energy of the collar, part of the forces; r = 0: none
    modes_basis              basis;      // r = 0: rigid, U is NULL
    int                      carried;    // of its r columns, the last ones: shapes of the interface to the parent
    double                  *coupling;   // polynomial forces: r x carried, K of all columns with the carried ones
    double                  *patterns;   // that measure them (domain_interface_set_carried), 3 held vertices x carried
    solver_forces_kind       kind;       //
    cubature_polynomial      polynomial; // SOLVER_FORCES_POLYNOMIAL
    cubature_batch          *batch;      // or NULL
    double                  *K0;         // linear and warped: r x r
    cubature_linear          linear;     // of K0
    cubature_full           *full;       // SOLVER_FORCES_FULL
    cubature_rule            rule;       // SOLVER_FORCES_CUBATURE
    cubature_training_report training;   // likewise
    modes_warp               warp;       // SOLVER_FORCES_WARPED
    cubature_forces          forces;     // of whichever it is, with those of the collar
    cubature_forces          unbraced;   // full and cubature: without
    solver_inertia           inertia;
    int                      whole_count;     // seeds that it was made with, 0: none or not known
    double                  *whole;           // 2 x whole_count: their omega^2; energy that the piece has no shapes for
    int                      interface_count; // places with `child`, in their order
    domain_interface        *interfaces;
    bool                     cached; // basis and polynomial came from the store
    double                   seconds_modes, seconds_forces, seconds_rest;
} solver_class;

// Where classes are looked up and kept, by a hash of all that determines them. `load` fills basis and polynomial, or
// elements and weights of the rule with its training report, and says whether it did; it has already allowed for
// whatever is wrong with what it found. Called from several threads.
typedef struct solver_class_store {
    bool (*load)(void *context, fem_hash key, solver_class *class);
    void (*save)(void *context, fem_hash key, const solver_class *class);
    void *context;
} solver_class_store;

// The mesh is taken over. `around`: the same with its collar (domain_part_surround), in which the basis is made and
// which braces the interfaces; NULL or empty: none. `fixed` are vertices; none: a free piece, whose modes hold no rigid
// motion. FEM_BAD_INPUT when there are more modes than the piece has, or when its supports leave rigid motions.
fem_status solver_class_create(solver_class **class, const char *name, fem_mesh *mesh, const fem_mesh *around,
                               int fixed_count, const int *fixed, int place_count, const solver_place *places,
                               const solver_class_options *options, const solver_class_store *store,
                               const fem_progress *progress);
void       solver_class_destroy(solver_class *class);
// What the tree wants of it; Rayleigh damping is added by the caller.
solver_tree_class solver_class_in_tree(const solver_class *class);
// The most modes that a piece can have.
int solver_class_most_modes(int vertex_count, int fixed_count);

#endif
