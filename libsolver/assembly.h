// A mesh and its decomposition made into what a solver_tree needs: a class for each domain, the instances that hang on
// each other, springs where loops were cut open and where the body stands on the ground a second time, and where each
// vertex of the mesh is to be found.
//
//     domain_decompose(&domains, &mesh, &cut);
//     solver_assembly_create(&assembly, &mesh, &domains, fixed_count, fixed, &options, NULL, NULL);
//     solver_assembly_tree(&tree, assembly, &tree_options);
//     ... solver_tree_step(tree); solver_assembly_show(assembly, tree, u, v);
#ifndef LIMBER_SOLVER_ASSEMBLY_H
#define LIMBER_SOLVER_ASSEMBLY_H

#include "libsolver/class.h"

// What one domain has of its own.
typedef struct solver_domain_options {
    int                modes;             // 0: rigid; SOLVER_MODES_SHARED: its share
    int                derivatives;       // orders in its basis, as recipe.derivatives
    solver_forces_kind forces;            //
    double             stiffness;         // factor on its forces, > 0; frequencies go with its root
    double             damping_mass;      // Rayleigh's alpha, 1/s
    double             damping_stiffness; // Rayleigh's beta, s; SOLVER_DAMPING_BY_RATIO: what damping_ratio asks for
} solver_domain_options;
#define SOLVER_DAMPING_BY_RATIO (-1.0)
enum { SOLVER_MODES_SHARED = -1 };

typedef struct solver_assembly_options {
    // Modes: `total` of all domains, shared out in proportion to log(elements) (Barbič and Zhao 2011, section 5), at
    // least one each and never more than a domain has; 0: `class.modes` in each, refused where a domain has fewer.
    int total;
    solver_class_options class;
    double damping_mass, damping_stiffness; // as of one domain
    // Ratio of the lowest mode of the whole tree that damping by ratio gives it (assembly_damping.c), 0.01.
    double damping_ratio;
    // Interfaces are braced by a collar of what hangs there, so many radii deep, while the modes are made
    // (assembly_interfaces.c). 0: not, as in P1.
    double collar;
    // A domain follows how its parent deforms the interface in at most so many shapes, those that would strain it by
    // more than a part of the parent's energy (solver_carrier). 0: interfaces are rigid, as in P1; the collar then
    // braces them in motion too, and frames follow how children pull there.
    int    carried;
    double carried_tolerance;
    // So many of the lowest modes of the whole mesh are found, and what each domain has of them comes first in its
    // basis (assembly_seeds.c). 0: none.
    int whole_modes;
    // Springs: `spring_stiffness` times what an element of the material there has (E A / h); damped critically with the
    // mass at their points, times `spring_damping`.
    double                       spring_stiffness, spring_damping;
    int                          spring_points; // groups of vertices of one closure or foot, at most
    const solver_domain_options *domains;       // one for each domain of the tree, over the above; NULL: none
} solver_assembly_options;
solver_assembly_options solver_assembly_default_options(void); // 20 modes each on average, damping by ratio
// The above as the options of one domain.
solver_domain_options solver_assembly_domain_options(const solver_assembly_options *options);

// A spring of an assembly: between the means of groups of vertices of two instances, or of one and the world.
typedef struct solver_joint_end {
    int     instance; // -1: the world
    double  X[3];     // class coordinates
    double *rows;     // 3 x r, row-major
} solver_joint_end;
typedef struct solver_joint {
    solver_joint_end ends[2];
    double           anchor[3]; // where it is at rest, in the coordinates of the mesh
    double           stiffness, damping;
    int              closure, ground; // list of the domain_tree that it comes from, or -1
} solver_joint;

typedef struct solver_assembly {
    int                   class_count;
    solver_class        **classes;
    solver_tree_class    *tree_classes;
    int                   count; // instances; those of a decomposed mesh are its domains in the same order
    solver_tree_instance *instances;
    bool                 *by_ratio;      // per instance: is its stiffness damping that of damping_ratio?
    double                damping_ratio; //
    double (*origin)[3]; // of each instance's frame at rest, in the coordinates of the mesh; axes are those of the mesh
    int           **local; // of each instance: vertex of the mesh for each of its own
    int             vertex_count;
    const fem_mesh *mesh;   // not owned
    const double   *rest;   // of the mesh: 3 per vertex; not owned
    int            *owner;  // per vertex of the mesh: the instance whose motion it has, -1: it is in no element
    int            *vertex; // per vertex of the mesh: its number in the owner's class
    int             joint_count;
    solver_joint   *joints;
    double          mass, centre[3]; // of the whole, at rest
    bool            held;            // has the root fixed vertices?
    bool            whole_lost;      // no modes of the whole helped: its stiffness is singular to rounding
    int             modes;           // in all
    int             carried;         // shapes of interfaces, in all, besides the modes
    int             cached;          // classes that came from the store
    double          seconds, seconds_modes, seconds_forces, seconds_rest; // whole; the parts are sums over the threads
    // Copies: the vertices of all instances, one instance after the other. A vertex of the mesh is shown as the sum of
    // its copies with their weights (assembly_seams.c).
    int    *first;       // per instance and one more: its first copy
    int    *seam_start;  // per instance and one more: the vertices that it shares with its parent,
    int    *seam_vertex; // as the parent's class counts them,
    int    *seam_local;  // and as its own does
    int    *join_start;  // per vertex of the mesh and one more
    int    *join_copy;
    double *join_weight;
    bool    warped; // is any domain?
    // work space of solver_assembly_show
    double              *copies; // displacements, then velocities, 3 per copy
    solver_frame_motion *shown;
} solver_assembly;

// The mesh must outlive the assembly; the tree of domains need not. `fixed`: the vertices that the tree was made with.
// Domains are made side by side on all threads; the result does not depend on their number. `store` may be NULL: see
// class.h; classes that are done when something fails or progress says stop are in it. Messages name the domain.
fem_status solver_assembly_create(solver_assembly **assembly, const fem_mesh *mesh, const domain_tree *domains,
                                  int fixed_count, const int *fixed, const solver_assembly_options *options,
                                  const solver_class_store *store, const fem_progress *progress);
void       solver_assembly_destroy(solver_assembly *assembly);

// A tree with its roots in place and its springs, at rest. A held root is fixed, or driven when asked. The assembly
// must outlive it. Damping by ratio looks for the lowest frequency of the tree first.
fem_status solver_assembly_tree(solver_tree **tree, const solver_assembly *assembly, bool driven,
                                const solver_tree_options *options);

// How the coupled model stands beside the modes of the whole mesh that its domains were made with.
typedef struct solver_assembly_check {
    int    count;        // modes that were compared; 0: there is nothing to compare with
    int    mode;         // the one that is off most
    double omega, whole; // its angular frequency in the coupled model, and of the whole mesh
    int    domain;       // where that comes from, as far as can be said
    double left;         // part of the mode's energy that this domain has no shapes for
    bool   soft;         // the frequency is too low: the domain does not follow all that its parent does
} solver_assembly_check;
// Nothing is compared where the model is meant to differ: rigid domains, factors on stiffness; nor where there were no
// modes of the whole (whole_modes, Lanczos bases).
// At most `most` modes, the lowest, are compared; two of those of the whole never are.
fem_status solver_assembly_examine(const solver_assembly *assembly, solver_tree *tree, int most,
                                   solver_assembly_check *check);

// A point of a tree (solver_tree_add_point) at a vertex of the mesh, or at a local vertex of an instance.
fem_status solver_assembly_point(const solver_assembly *assembly, solver_tree *tree, int vertex, int *point);
fem_status solver_assembly_local_point(const solver_assembly *assembly, solver_tree *tree, int instance, int vertex,
                                       int *point);
// How the copies of an interface vertex, which differ by the gap between two domains, become one vertex. (P1, section
// 6)
typedef enum solver_seams {
    SOLVER_SEAMS_C0,    // their mean
    SOLVER_SEAMS_C1,    // near interfaces a moving least squares fit over both domains, so that slopes go on too
    SOLVER_SEAMS_OWNER, // the vertex moves with the domain nearest to the root
} solver_seams;
// An assembly begins with C0. When it fails all is as it was.
fem_status solver_assembly_set_seams(solver_assembly *assembly, solver_seams seams);
// Displacement and velocity of all vertices of the mesh, 3 each; v may be NULL. What hangs on a warped domain is shown
// where its warped interface is. Changes work space of the assembly only.
void solver_assembly_show(const solver_assembly *assembly, solver_tree *tree, double *u, double *v);
// The same of the vertices of one instance, as it has them itself: 3 per local vertex, NULL = not.
void solver_assembly_show_instance(const solver_assembly *assembly, solver_tree *tree, int instance, double *u,
                                   double *v);
// Where the frame of the root is when the body at rest is turned about the point c and then moved, and moves on.
void solver_assembly_place(const solver_assembly *assembly, const double rotation[9], const double translation[3],
                           const double velocity[3], const double spin[3], solver_frame_motion *motion);

// Shares `total` modes out by log(elements): out[i] <= most[i], >= 1 where most[i] > 0, only where `take` says so.
void solver_share_modes(int total, int count, const int *elements, const int *most, const bool *take, int *out);

#endif
