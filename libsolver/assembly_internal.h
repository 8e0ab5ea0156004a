// What the files of the assembly tell each other.
#ifndef LIMBER_ASSEMBLY_INTERNAL_H
#define LIMBER_ASSEMBLY_INTERNAL_H

#include "libsolver/assembly.h"

// One side of a closure or a foot: its vertices, in a few groups.
typedef struct assembly_tie {
    int     domain, count;
    int    *vertices; // local
    double *areas;    // m^2; 0 at hinges and feet
    int     groups;
    int    *group;  // per vertex
    bool    wrench; // do the vertices carry wrenches? three or more, not on a line
} assembly_tie;

typedef struct assembly_work {
    const fem_mesh                *mesh;
    const domain_tree             *tree;
    const solver_assembly_options *options;
    const solver_class_store      *store;
    solver_assembly               *a;
    domain_part                   *parts;                 // per domain
    solver_domain_options         *domains;               // per domain
    int                           *modes;                 // per domain
    double                        *mass;                  // per domain: of its subtree, kg
    double (*moment)[3];                                  // likewise: mass x centre
    double (*second)[9];                                  // likewise: sum of mass x x^T
    fem_mesh              *around;                        // per domain: with its collar; empty: none
    int                  **around_vertices;               // numbers of the collar's further vertices in the mesh
    int                    fixed_count;                   // of the mesh
    const int             *fixed;                         //
    struct assembly_seeds *seeds;                         // NULL: none
    double               **pull;                          // per domain: how it pulls on its parent; NULL: not known
    int                    root_fixed_count, *root_fixed; // local vertices of the root
    int                    tie_count;                     // two per closure, then one per foot
    assembly_tie          *ties;
} assembly_work;

// Collars of all domains, and how they pull on their parents.
fem_status assembly_find_pulls(assembly_work *w);
// The rigid inertia of a domain and all below it about the domain's origin, 6 x 6.
void assembly_inertia(const assembly_work *w, int domain, double J[36]);
// The sides of closures and feet, and then the springs between them (joints of the assembly).
fem_status assembly_find_ties(assembly_work *w);
fem_status assembly_make_joints(assembly_work *w);

// Does a domain follow how its parent deforms the interface?
bool assembly_carried(const assembly_work *w, int domain);
// What its parent, whose class is there, does to the interface of a domain. rows, frame and stiffness are
// allocated.
fem_status assembly_carrier(const assembly_work *w, int domain, solver_carrier *carrier);
// After the class of the domain is made: the interface of its parent carries it.
fem_status assembly_attach(assembly_work *w, int domain);

// Modes of the whole mesh, found when a domain first asks for them.
typedef struct assembly_seeds assembly_seeds;
fem_status                    assembly_seeds_create(assembly_work *w);
void                          assembly_seeds_destroy(assembly_seeds *seeds);
bool                          assembly_seeds_lost(const assembly_seeds *seeds); // were they looked for in vain?
typedef struct assembly_seeds_of {
    assembly_work *w;
    int            domain;
} assembly_seeds_of;
solver_seeds assembly_seeds_for(assembly_seeds_of *of);
// Damping by ratio, for a tree that is complete.
fem_status assembly_damp(const solver_assembly *a, solver_tree *tree);

// Which vertices each instance shares with its parent.
fem_status assembly_find_seams(solver_assembly *a);
// Out of the values of all copies, 3 each, those of the vertices of the mesh.
void assembly_join(const solver_assembly *a, const double *copies, double *values);

#endif
