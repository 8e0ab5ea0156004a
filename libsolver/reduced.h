// Reduced bodies: u = U q with few coordinates q, integrated densely in microseconds. A held body has only q; a free
// one has a rigid motion besides. Forces come from a cubature_forces, external loads projected or as wrenches. Barbic
// and James 2005 (held); Barbic and Zhao 2011 and Terzopoulos and Witkin 1988 (free).
#ifndef LIMBER_SOLVER_REDUCED_H
#define LIMBER_SOLVER_REDUCED_H

#include "libsolver/solver.h"
#include "libsolver/inertia.h"
#include "libsolver/contact.h"

// How the linear system of a step is solved. K of a modal cubature rule is not symmetric: the direct solve takes its
// symmetric part, the Krylov solve takes it as it is, and P0's conjugate gradients (appendix C), which see products
// K p as differences of forces, assume that it is symmetric enough. Both iterations are preconditioned by the matrix at
// rest, factorised once; where one fails the step is solved directly.
typedef enum solver_reduced_solve {
    SOLVER_SOLVE_DIRECT,
    SOLVER_SOLVE_JACOBIAN_FREE, // conjugate gradients, K never made
    SOLVER_SOLVE_KRYLOV,        // BiCGSTAB [van der Vorst 1992], products K p exactly
} solver_reduced_solve;

typedef struct solver_reduced_options {
    double            time_step;        // s, > 0
    solver_integrator integrator;       // held: Newmark, backward Euler, central differences
                                        // free: midpoint, Newmark, backward Euler
    double newmark_beta, newmark_gamma; // 1/4, 1/2
    double damping_mass;                // Rayleigh alpha, 1/s; of a free body's deformation, not of its rigid motion
    double damping_stiffness;           // Rayleigh beta, s
    bool   damping_local;               // D = alpha M + beta K(q); false: beta K(0)
    int    newton_iterations;           // 1: semi-implicit. More, held: until the tolerance, else the step is refused;
                                        // free: until the tolerance, at most so many
    double               newton_tolerance; // held: |residual| over the largest force; free: change of the accelerations
    solver_reduced_solve solve;            // held, implicit; free bodies are solved directly
    double               solve_tolerance;  // of the iterations: |residual| over that at the start
    int                  line_search;      // held: halvings at most when newton_iterations > 1
    bool conserve_momentum; // free: after the step w is corrected (by O(h^3)) so that the angular momentum
                            // changes by the moment of the loads exactly
} solver_reduced_options;
solver_reduced_options solver_reduced_default_options(void); // held: Newmark, semi-implicit, local damping
solver_reduced_options solver_free_default_options(void);    // midpoint, two iterations, momentum conserved
// "solver.time_step is -0.01, expected > 0"
fem_status solver_reduced_check_options(const solver_reduced_options *options);
fem_status solver_free_check_options(const solver_reduced_options *options);

typedef struct solver_step_report {
    int steps, newton_iterations, line_search_steps, factorisations; // since creation
    int solve_iterations, solve_fallbacks; // of the Krylov methods, since creation; steps that went to the direct one
    int shifts;      // system matrices that were not positive definite and got a multiple of the mass, since creation
    double residual; // relative, of the last step with newton_iterations > 1
    double stable_step; // s, of central differences at rest: 2 / largest angular frequency; 0 for other integrators
    double seconds_force, seconds_contact, seconds_solve, seconds_step; // the last includes the others
} solver_step_report;

// ---- held bodies ------------------------------------------------------------------------------------------------

// M ddq + D dq + f(q) = load (+ contact)
typedef struct solver_reduced solver_reduced;

// M: r x r, column-major, positive definite; NULL = identity (a mass-orthonormal basis). The forces must outlive the
// solver. A step above the stability limit of central differences is refused.
fem_status solver_reduced_create(solver_reduced **solver, const cubature_forces *forces, const double *M,
                                 const solver_reduced_options *options);
void       solver_reduced_destroy(solver_reduced *solver);
// To be called when the model behind the forces has changed (material edits), or the mass (NULL: as it was).
fem_status solver_reduced_changed(solver_reduced *solver, const double *M);

// A failed call leaves the state as it was, bit by bit.
typedef struct solver_coordinates {
    double  time;
    double *q, *dq, *ddq; // r each
} solver_coordinates;
const solver_coordinates *solver_reduced_state(const solver_reduced *solver);
fem_status solver_reduced_set_state(solver_reduced *solver, double time, const double *q, const double *dq); // NULL = 0
// The complete state as numbers, as for the full space (solver.h); loads, contact and changes of the model, which come
// before, are the caller's to make again.
size_t     solver_reduced_state_size(const solver_reduced *solver);
void       solver_reduced_save_state(const solver_reduced *solver, double *numbers);
fem_status solver_reduced_restore_state(solver_reduced *solver, const double *numbers);

// U^T force, r numbers, held until changed. Copied.
void solver_reduced_set_load(solver_reduced *solver, const double *load);
// The samples' rows must have r columns. NULL: no contact. The contact must outlive its use, and serves one solver.
fem_status solver_reduced_set_contact(solver_reduced *solver, solver_contact *contact);

// One time step. Allocates nothing.
fem_status         solver_reduced_step(solver_reduced *solver);
void               solver_reduced_energies(const solver_reduced *solver, solver_energies *energies);
solver_step_report solver_reduced_report(const solver_reduced *solver);

// A body whose basis was changed while it moves (stitched, cut open, stiffened): the solver is replaced by one with the
// new forces and the state of the old one, carried over by projection in the mass inner product, q' = U'^T M U q and
// dq' likewise, which is the nearest motion that the new basis has. Time and options stay; loads and contact, which are
// rows of the old basis, are to be given anew. Both bases are mass-orthonormal. A failed call leaves the solver as it
// was.
typedef struct solver_rebase_report {
    double lost_place, lost_velocity; // part of |U q| and |U dq| (mass norm) that the new basis does not have
    double energy_before;             // J: kinetic + strain, with the old basis and forces
    double energy_after;              // with the new ones
    double springs;                   // J of these in new springs, for the shape as it is now; see rebase
    double unexplained;               // energy_after - springs - energy_before
} solver_rebase_report;
// `springs` (r x r of the new basis, or NULL) is the stiffness of springs that were added. `pull` (r, or NULL) is what
// the shape pulls with in the new basis, without these springs, U'^T K u: then modes that a time step does not resolve
// are not projected by mass but go where that pull leaves them. A stiff spring across a gap closes it so; by mass its
// modes would hold energies that are nowhere else. It is done only where it lowers the energy. Where nothing is new and
// nothing is lost both are the same.
fem_status solver_reduced_rebase(solver_reduced **solver, const modes_basis *from, const modes_basis *to,
                                 const fem_sparse *M, const cubature_forces *forces, const double *springs,
                                 const double *pull, solver_rebase_report *report);

// load += U^T f for forces at vertices, 3 each: the cost goes with their number.
void solver_project_forces(const modes_basis *basis, int count, const int *vertices, const double *forces,
                           double *load);

// ---- free bodies -------------------------------------------------------------------------------------------------

// World position of a material point: p + Q (X - c + U q), c the centre of mass at rest.
typedef struct solver_free solver_free;

// forces may be NULL when the inertia has no modes: a rigid body. Modes that move or turn the body as a whole are
// refused: use modes that are mass-orthogonal to the rigid motions (modes_lanczos, modes_inverse_project). Modes that
// are only partly so, as after a change of density, are allowed.
fem_status solver_free_create(solver_free **solver, const solver_inertia *inertia, const cubature_forces *forces,
                              const solver_reduced_options *options);
void       solver_free_destroy(solver_free *solver);
// To be called when the model behind the forces has changed, or the inertia (NULL: as it was). The body keeps its place
// and its velocities; p is then that of the new centre of mass at rest.
fem_status solver_free_changed(solver_free *solver, const solver_inertia *inertia);

// A failed call leaves the state as it was, bit by bit.
typedef struct solver_motion {
    double  time;
    double  p[3], v[3];   // of the frame, world axes
    double  Q[9];         // rotation to world axes, row-major
    double  w[3];         // angular velocity in the axes of the frame: dQ = Q [w]
    double  centre[3];    // c: the frame's origin in the coordinates of the mesh
    double  a[3], al[3];  // accelerations at the end of the last step; in its middle with the midpoint rule
    double *q, *dq, *ddq; // r each; ddq likewise
} solver_motion;
const solver_motion *solver_free_state(const solver_free *solver);
// What is NULL: p = c, Q = I, the rest 0. Q must be a rotation, to 1e-6.
typedef struct solver_motion_start {
    double        time;
    const double *p, *v, *Q, *w, *q, *dq;
} solver_motion_start;
fem_status solver_free_set_state(solver_free *solver, const solver_motion_start *start);
// The complete state as numbers, as for held bodies.
size_t     solver_free_state_size(const solver_free *solver);
void       solver_free_save_state(const solver_free *solver, double *numbers);
fem_status solver_free_restore_state(solver_free *solver, const double *numbers);

fem_status solver_free_set_gravity(solver_free *solver, const double gravity[3]); // m/s^2
fem_status solver_free_set_contact(solver_free *solver, solver_contact *contact); // as for held bodies
// Dead loads in world axes, held until cleared. A force acts at the material point with rest position X (coordinates of
// the mesh) and rows U_X (3 x r, row-major; NULL when r is 0), and follows it; a torque acts on the frame.
fem_status solver_free_add_force(solver_free *solver, const double X[3], const double *U_X, const double force[3]);
fem_status solver_free_add_torque(solver_free *solver, const double torque[3]);
void       solver_free_clear_loads(solver_free *solver);

// One time step. Allocates nothing.
fem_status solver_free_step(solver_free *solver);
// World position and velocity (may be NULL) of a material point.
void solver_free_point(const solver_free *solver, const double X[3], const double *U_X, double x[3], double *dx);

typedef struct solver_motion_energies {
    double kinetic, strain, potential; // J; potential: -m gravity . centre of mass
    double centre[3];                  // of mass, world axes
    double momentum[3];                // world axes
    double spin[3];                    // angular momentum about the centre of mass, world axes
} solver_motion_energies;
void               solver_free_energies(const solver_free *solver, solver_motion_energies *energies);
solver_step_report solver_free_report(const solver_free *solver);

#endif
