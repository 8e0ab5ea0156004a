// libsolver: statics and dynamics. Here the full space, the ground truth for everything that is reduced; below it the
// reduced bodies (reduced.h), their inertia (inertia.h) and contact (contact.h), which this header brings in.
// u, v, a and forces are 3 per vertex, xyz interleaved.
#ifndef LIMBER_SOLVER_H
#define LIMBER_SOLVER_H

#include "libcubature/cubature.h"

// The full space knows the first two; central differences and the midpoint rule are for reduced bodies.
typedef enum solver_integrator {
    SOLVER_NEWMARK,
    SOLVER_BACKWARD_EULER,
    SOLVER_CENTRAL_DIFFERENCES,
    SOLVER_MIDPOINT
} solver_integrator;
typedef enum solver_linear { SOLVER_DIRECT, SOLVER_PCG } solver_linear;

typedef struct solver_options {
    // dynamics
    double            time_step;         // s, > 0
    solver_integrator integrator;        // Newmark by default
    double            newmark_beta;      // 1/4
    double            newmark_gamma;     // 1/2
    double            damping_mass;      // Rayleigh alpha, 1/s
    double            damping_stiffness; // Rayleigh beta, s
    bool              damping_local;     // D = alpha M + beta K(u); false: beta K(0)
    fem_mass_kind     mass;              // consistent
    // Newton
    int    newton_iterations; // at most, per step or load step
    double newton_tolerance;  // |residual| relative to the largest force in the balance
    int    line_search;       // halvings at most, statics and dynamics; 0 = none
    int    load_steps;        // statics: the load is applied in this many equal steps
    int    load_halvings;     // statics: a load step that fails is halved, at most this many times in a row
    // linear systems
    solver_linear linear;
    double        pcg_tolerance;  // relative
    int           pcg_iterations; // at most; 0 = 10 x sqrt of the unknowns + 1000
} solver_options;
solver_options solver_default_options(void);
fem_status     solver_check_options(const solver_options *options); // "solver.time_step is -0.01, expected > 0"

typedef struct solver_report {
    int    newton_iterations, line_search_steps, pcg_iterations, factorisations; // since creation
    int    shifts;        // Newton matrices that were not positive definite and got a diagonal shift, since creation
    int    load_steps;    // of the last static solution; more than options.load_steps when some were halved
    int    load_halvings; // of the last static solution
    double residual;      // last relative residual
    double seconds_assemble, seconds_factorise, seconds_solve;
} solver_report;

typedef struct solver_full solver_full;

// `fixed`: 3 per vertex, nonzero = prescribed (held, or moved by solver_full_prescribe); NULL = none. Vertices without
// elements stay where they are and must not carry a load. The body must outlive the solver.
// Materials that are all FEM_LINEAR make the tangent constant: it is factorised once.
fem_status solver_full_create(solver_full **solver, const fem_body *body, const unsigned char *fixed,
                              const solver_options *options);
void       solver_full_destroy(solver_full *solver);

// State, readable at any time; a failed call leaves it as it was, bit by bit.
typedef struct solver_state {
    double  time;
    double *u, *v, *a;
} solver_state;
const solver_state *solver_full_state(const solver_full *solver);
// NULL = 0. The supports then stay where u has them, until solver_full_prescribe.
fem_status solver_full_set_state(solver_full *solver, double time, const double *u, const double *v);
// The complete state as numbers, for checkpoints (state.c): a solver of the same body and options that takes them goes
// on bit by bit as this one would. Loads and prescribed displacements are not among them. Numbers that are not finite
// are refused and change nothing.
size_t     solver_full_state_size(const solver_full *solver);
void       solver_full_save_state(const solver_full *solver, double *numbers);
fem_status solver_full_restore_state(solver_full *solver, const double *numbers);

// Dead loads in N, 3 per vertex, held until changed. Copied.
void solver_full_set_load(solver_full *solver, const double *force);
// Prescribed displacements for the end of the next step (only entries of fixed degrees of freedom are read). Copied.
void solver_full_prescribe(solver_full *solver, const double *displacement);

// Newton's method to the equilibrium under the present load and prescribed displacements, from the present state, whose
// internal force is taken as the load at the start of the load steps. The body is then at rest: v = a = 0, same time.
// A body whose supports leave rigid motions free is refused.
fem_status solver_full_static(solver_full *solver, const fem_progress *progress);
// One time step. The acceleration at the first step follows from the equation of motion. Allocates nothing (CHOLMOD has
// memory of its own). Supports that were prescribed get velocity and acceleration from the integrator's formulas.
fem_status solver_full_step(solver_full *solver);

// Energies of the present state, J: kinetic, strain, and -(load . u).
typedef struct solver_energies {
    double kinetic, strain, load;
} solver_energies;
void solver_full_energies(const solver_full *solver, solver_energies *energies);
// What the supports exert on the body in the present state, N, 3 per vertex: M a + D v + f(u) - load at the fixed
// degrees of freedom, 0 elsewhere.
void          solver_full_reactions(const solver_full *solver, double *reaction);
solver_report solver_full_report(const solver_full *solver);

// ---- loads: each adds to `force` ---------------------------------------------------------------------------------

// Body force density x acceleration, by the consistent mass.
fem_status solver_add_gravity(const fem_body *body, const double gravity[3], double *force);
// A total force spread equally over vertices.
void solver_add_vertex_force(int count, const int *vertices, const double total[3], double *force);
// A traction (Pa, dead, may be NULL) plus a pressure against the outward rest normal (Pa, dead), on the surface faces
// whose three (T4) or four (H8) vertices all belong to the list, integrated with the element's own shape functions.
// *area gets the loaded area; FEM_BAD_INPUT when it is zero.
fem_status solver_add_surface_load(const fem_mesh *mesh, int count, const int *vertices, const double traction[3],
                                   double pressure, double *force, double *area);

#include "libsolver/inertia.h"
#include "libsolver/contact.h"
#include "libsolver/reduced.h"
#include "libsolver/sketch.h"
#include "libsolver/tree.h"
#include "libsolver/class.h"
#include "libsolver/assembly.h"
#include "libsolver/forest.h"
#include "libsolver/wind.h"
#include "libsolver/wind.h"

#endif
