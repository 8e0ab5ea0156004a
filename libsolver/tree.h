// A tree of reduced domains that move as one body [Barbič and Zhao 2011, P1]: every domain deforms in its own few modes
// inside a frame that follows the interface to its parent. What hangs on an interface is felt by the parent exactly
// (`articulated`, as in Featherstone's algorithm for rigid links), at a cost linear in the number of domains, or by one
// of P1's two lumps.
//
// A class is what instances share: inertia, forces, interfaces to children, all in the coordinates of the class, whose
// origin is the centroid of its interface to the parent (for a root: its frame). An instance is a domain: a class at an
// interface of its parent, with a scale and a stiffness of its own. Frames carry no scale. A point with rest position X
// and rows U (of the class) is at p + Q s (X + U q) in the world.
#ifndef LIMBER_SOLVER_TREE_H
#define LIMBER_SOLVER_TREE_H

#include "libcubature/cubature.h"
#include "libdomain/domain.h"
#include "libsolver/contact.h" // solver_frame_motion is declared there
#include "libsolver/inertia.h"

typedef struct solver_tree_class {
    const char             *name;    // for messages
    const solver_inertia   *inertia; // r = 0: a rigid domain
    cubature_forces         forces;  // of the r modes; not read when r = 0
    const cubature_batch   *batch;   // the same forces for many instances at once, or NULL
    int                     interface_count;
    const domain_interface *interfaces;                      // one per place where a child can hang, r modes each
    double                  damping_mass, damping_stiffness; // Rayleigh: D = alpha M + beta K(q), 1/s and s
    // The last `carried` of the r coordinates are shapes of the interface to the parent: they are not free but move
    // with it (frame.h). Every interface at which the class hangs carries as many. 0: the interface is rigid.
    int carried;
} solver_tree_class;
enum { SOLVER_MOST_CARRIED = 64 };

typedef enum solver_root { SOLVER_ROOT_FIXED, SOLVER_ROOT_DRIVEN, SOLVER_ROOT_FREE } solver_root;

typedef struct solver_tree_instance {
    const char *name; // for messages; NULL: "domain 17"
    int         class_index;
    int         parent;    // index of an instance, or -1: a root
    int         interface; // of the parent's class; not read for roots
    double      scale;     // absolute
    double      stiffness; // factor on the forces of the class; frequencies go with its root
    solver_root root;      // what moves a root; not read for others. The modes of a free root hold no rigid motion
} solver_tree_instance;

// What a parent feels of the subtree behind an interface: P1's mass at the interface (L1), a mass at the subtree's
// centre (L2), or all of it (L3). L1 and L2 couple one way only, so they do not conserve momentum.
typedef enum solver_subtree { SOLVER_ARTICULATED, SOLVER_CENTER, SOLVER_INTERFACE } solver_subtree;
typedef enum solver_tree_integrator { SOLVER_TREE_MIDPOINT, SOLVER_TREE_NEWMARK } solver_tree_integrator;

typedef struct solver_tree_options {
    double                 time_step; // s, > 0
    solver_subtree         subtree;
    solver_tree_integrator integrator;
    int                    passes;       // midpoint: 2; 1 is the cheap mode, which extrapolates velocities. 1 .. 8
    int                    passes_most;  // midpoint with two passes or more: as many where they do not settle; 8. To 64
    int                    halvings;     // of a step whose passes do not settle or fail, one after the other; 5. To 10
    double                 theta;        // midpoint: part of the step at which it is evaluated; 0.5, up to 0.6 damps
    double                 newmark_beta; // 1/4
    double                 newmark_gamma; // 1/2
    bool                   plain;         // one domain at a time: slow, the reference for the kernels
} solver_tree_options;
solver_tree_options solver_tree_default_options(void);
fem_status          solver_tree_check_options(const solver_tree_options *options);

typedef struct solver_tree solver_tree;

// Classes, with all they point to, must outlive the tree; the instances are copied. Parents may come after their
// children; a loop is refused by name.
fem_status solver_tree_create(solver_tree **tree, int class_count, const solver_tree_class *classes, int count,
                              const solver_tree_instance *instances, const solver_tree_options *options);
void       solver_tree_destroy(solver_tree *tree);

int solver_tree_count(const solver_tree *tree); // instances
int solver_tree_dofs(const solver_tree *tree);  // sum of r, roots' rigid motions not counted
int solver_tree_free(const solver_tree *tree);  // of them those that are not carried
int solver_tree_depth(const solver_tree *tree); // levels

// ---- state ------------------------------------------------------------------------------------------------------

double        solver_tree_time(const solver_tree *tree);
const double *solver_tree_q(const solver_tree *tree, int instance);
const double *solver_tree_dq(const solver_tree *tree, int instance);
// NULL = 0. Of q and dq what is carried is not read; it follows from the parents at the next step or look at a frame.
fem_status solver_tree_set_state(solver_tree *tree, int instance, const double *q, const double *dq);
// The complete state of all domains, roots and springs as numbers, as for the full space (solver.h); loads, stiffnesses
// and drives are the caller's to give again, before.
size_t     solver_tree_state_size(const solver_tree *tree);
void       solver_tree_save_state(const solver_tree *tree, double *numbers);
fem_status solver_tree_restore_state(solver_tree *tree, const double *numbers);
// The state of another tree of the same instances, with their stiffnesses and dampings, bit by bit; an instance whose
// class has another number of modes there comes to rest, for solver_tree_set_state. FEM_BAD_INPUT for other instances
// or springs.
fem_status solver_tree_take_state(solver_tree *tree, const solver_tree *from);
// As solver_tree_set_state, but what is known of the accelerations of all others stays known.
fem_status solver_tree_replace_state(solver_tree *tree, int instance, const double *q, const double *dq);

// Motion of a root's frame: p, v, a in world axes; w (dQ = Q [w]) and al = dw/dt in the axes of the frame.
struct solver_frame_motion {
    double p[3], Q[9];
    double v[3], w[3];
    double a[3], al[3];
};
// A fixed root stands still at p, Q; a free one starts with p, Q, v, w.
fem_status solver_tree_set_root(solver_tree *tree, int instance, const solver_frame_motion *motion);
// Where a driven root is at a time. Called in the middle and at the end of every step.
typedef void (*solver_drive)(void *context, double time, solver_frame_motion *motion);
fem_status solver_tree_set_drive(solver_tree *tree, int instance, solver_drive drive, void *context);

// World pose and velocity of a domain's frame in the present state: v world, w in the axes of the frame.
// One pass over the tree after each change of state, then look-ups.
void solver_tree_frame(solver_tree *tree, int instance, solver_frame_motion *motion);
// How far the interface to the parent is from moving rigidly (P1 fig. 3); 0 for roots.
double solver_tree_deviation(solver_tree *tree, int instance);

// ---- changes at run time ----------------------------------------------------------------------------------------

fem_status solver_tree_set_stiffness(solver_tree *tree, int instance, double factor);
fem_status solver_tree_set_frequency(solver_tree *tree, int instance, double factor); // stiffness = factor^2
fem_status solver_tree_set_damping(solver_tree *tree, int instance, double damping_mass, double damping_stiffness);
void       solver_tree_get_damping(const solver_tree *tree, int instance, double *mass, double *stiffness);
fem_status solver_tree_set_time_step(solver_tree *tree, double time_step);
double     solver_tree_time_step(const solver_tree *tree);

// ---- loads: held until changed, during steps evaluated where the step is ----------------------------------------

void solver_tree_set_gravity(solver_tree *tree, const double gravity[3]);
// Wrench (force; torque about the frame's origin) in the axes of the domain, and r modal forces. NULL = 0.
fem_status solver_tree_set_load(solver_tree *tree, int instance, const double *wrench, const double *modal);
fem_status solver_tree_add_load(solver_tree *tree, int instance, const double *wrench, const double *modal); // besides
// How the load of a domain falls when it gives way, so that steps may be long although it is strong: during a step it
// is load - S (ddq; a; al), the accelerations of modes and frame. Forces f that depend on velocities with df/dv = -D
// have S = h D: then they are those of the end of the step. S: (r + 6)(r + 7)/2 numbers, lower triangle row by row,
// modes before force before torque, positive semidefinite. NULL = 0. The lumped levels read the part of the modes only.
fem_status solver_tree_set_resistance(solver_tree *tree, int instance, const double *S);
fem_status solver_tree_add_resistance(solver_tree *tree, int instance, const double *S); // besides
// Contact of a domain, implicit (L3 with the midpoint rule); its samples are in the coordinates of the class times
// the scale of the domain, X and U, and it must outlive the tree. The caller places its obstacles before every step.
// NULL: none.
fem_status solver_tree_set_contact(solver_tree *tree, int instance, solver_contact *contact);
// A point of a domain: X and rows U (3 x r, row-major, NULL for r = 0) in class coordinates; copied. Gives its number.
fem_status solver_tree_add_point(solver_tree *tree, int instance, const double X[3], const double *rows, int *point);
fem_status solver_tree_set_force(solver_tree *tree, int point, const double force[3]); // world axes, N
void       solver_tree_point(solver_tree *tree, int point, double x[3], double v[3]);  // world; v may be NULL

// Spring of length zero between two points, or between a point and a place in the world (b = -1): it closes a loop, or
// roots the tree at a second place. Treated implicitly, coupled through the whole tree.
typedef struct solver_spring {
    int    a, b;
    double anchor[3];          // b = -1: in the world
    double stiffness, damping; // N/m, N s/m
} solver_spring;
fem_status solver_tree_add_spring(solver_tree *tree, const solver_spring *spring);

// ---- time -------------------------------------------------------------------------------------------------------

// One time step. Allocates nothing. When it fails the state is as it was; the message names domain, time and reason.
fem_status solver_tree_step(solver_tree *tree);

typedef struct solver_tree_report {
    int    steps;
    int    reflected, near_singular; // interfaces so flagged in the last step
    int    shifts;                   // domains whose matrix was not positive definite and got a shift, since creation
    int    extra_passes;             // beyond options.passes, since creation
    int    halved;                   // parts of steps that were taken in halves, since creation
    int    unsettled;                // parts of steps that did not settle even so, since creation
    int    plain;                    // domains that the kernels left to the plain version, since creation
    int    spring_iterations;        // conjugate gradients on springs, since creation
    int    spring_factors;           // and how often their matrix was factorised
    double seconds_frames, seconds_forces, seconds_up, seconds_down, seconds_rest; // since creation
} solver_tree_report;
solver_tree_report solver_tree_get_report(const solver_tree *tree);

typedef struct solver_tree_energies {
    double kinetic, strain, potential, springs; // J; potential: -m gravity . centre of mass
    double momentum[3];                         // world axes
    double spin[3];                             // angular momentum about the world's origin, world axes
    double mass, centre[3];
} solver_tree_energies;
void solver_tree_get_energies(solver_tree *tree, solver_tree_energies *energies);

// ---- the linearised coupled model -------------------------------------------------------------------------------

// The `count` lowest angular frequencies (rad/s, ascending) of small motions around rest (q = 0), without loads; rigid
// motions of free roots are left out. With L1 and L2 the coupling goes one way, so they are those of the domains one by
// one. `shapes` (dofs x count, instance after instance in the caller's order, q^T K q = 1) may be NULL; with L1 and L2
// it must be. Springs count with their stiffness.
fem_status solver_tree_frequencies(solver_tree *tree, int count, double *omega, double *shapes);
// |M^-1 K x - omega^2 x| / |omega^2 x| of each of these shapes: what the search for them has left.
fem_status solver_tree_residuals(solver_tree *tree, int count, const double *omega, const double *shapes,
                                 double *residuals);

#endif
