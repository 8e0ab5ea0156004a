// The insides of reduced bodies, shared by the files that make them.
#ifndef LIMBER_SOLVER_REDUCED_INTERNAL_H
#define LIMBER_SOLVER_REDUCED_INTERNAL_H

#include "libsolver/internal.h"

// ---- rotations (reduced_common.c) ------------------------------------------------------------------------------

// R = exp([angle])
void solver_rotation(const double angle[3], double R[9]);
bool solver_is_rotation(const double Q[9]); // to 1e-6
// The rotation next to a matrix that is one up to rounding.
void               solver_rotation_clean(double Q[9]);
static inline void mat3_mul_vec_t(double y[3], const double A[9], const double x[3]) { // y = A^T x
    for (int i = 0; i < 3; i++) y[i] = A[i] * x[0] + A[3 + i] * x[1] + A[6 + i] * x[2];
}

// ---- contact (contact.c) -----------------------------------------------------------------------------------------

// Where a body is when its contact is evaluated. A free body has a frame: p and Q place it, v (of the frame's origin)
// and w are its velocities in its own axes, and samples sit at X - centre + U q in it. Force and moment (about p) on
// the rigid motion are wanted in `axes`, which may be those of another instant. For a held body p is NULL.
typedef struct solver_contact_view {
    double elapsed; // s since the start of the step, by which obstacles have moved on
    double lag;     // s: the springs are damped by stiffness x lag besides. Without it a stiff contact reverses the
                    // velocity with every step for ever; with h/2 place and velocity are at rest in two steps
    bool          again; // another iteration: contacts that solver_contact_settle left are kept
    const double *p, *Q, *axes, *v, *w, *centre;
    const double *q, *dq;
} solver_contact_view;

// f += generalised contact force, E += weight_K K + weight_D D with K = -df/dq and D = -df/ddq made symmetric: no
// geometric terms, friction by its secant. Sizes are n and n x n, n = r, or 6 + r for a free body: first the force and
// the moment about the frame's origin. E may be NULL. Allocates nothing.
void solver_contact_evaluate(solver_contact *contact, const solver_contact_view *view, double weight_K, double weight_D,
                             double *f, double *E);
int  solver_contact_modes(const solver_contact *contact); // r of its samples
// After the linearised system was solved: keeps of the contacts of the last evaluation those that push in its answer.
// rigid (da; dal; NULL when held) and modes (r) say how far the answer is from what was evaluated: accelerations, when
// the weights of the evaluation were those of accelerations, or q.
void solver_contact_settle(solver_contact *contact, const double *rigid, const double *modes);
// N: the largest pull of a kept contact in the last evaluation. An answer with pulls is not yet one.
double solver_contact_pull(const solver_contact *contact);
// What one unit of rounding in the places of the samples makes of the generalised force of the modes.
double solver_contact_noise(const solver_contact *contact);
double solver_contact_power(const solver_contact *contact); // W that the moving obstacles put into the body

// ---- what held and free bodies share (reduced_common.c) ----------------------------------------------------------

// Factorises H (r x r, lower triangle; overwritten by L). If it is not positive definite it becomes H + tau M for the
// smallest tau of a growing sequence: M acts as a smaller time step would. `kept` (r x r) is work space.
// FEM_UNSTABLE when H is not finite.
fem_status solver_factorise_shifted(int r, double *H, const double *M, double *kept, solver_step_report *report);

// Energy that the body may have: what it had at the start plus what loads did. Kinetic energy of more than a hundred
// times that means divergence.
#define SOLVER_ENERGY_EXCESS 100.0
fem_status solver_fail_diverged(double time, int r, const solver_reduced_options *options, double kinetic,
                                double budget, const char *advice);

bool solver_all_finite(int n, const double *x); // x may be NULL
// Refuses what cannot be the forces or the contact of a body with r modes.
fem_status solver_check_forces(const cubature_forces *forces, int r);
fem_status solver_check_contact(const solver_contact *contact, int r);

// ---- held bodies -------------------------------------------------------------------------------------------------

struct solver_reduced {
    cubature_forces        forces;
    solver_reduced_options options;
    int                    r;
    solver_contact        *contact;
    bool                   contact_stiff; // acts at the end of the step, and is not part of state.ddq
    solver_coordinates     state;
    bool                   acceleration_known; // state.ddq satisfies the equation of motion
    bool                   budget_known;
    double                 budget; // J
    solver_step_report     report;

    fem_scratch scratch;               // one block for what follows
    double     *M, *M_factor, *K0;     // r x r
    double     *K, *H, *E, *matrix;    // r x r: K(q), system matrix, of contact, work space
    double     *load, *rest_force;     // r: f(0), which is rounding
    double     *q, *dq, *ddq;          // Newton's iterate and what follows from it
    double     *force, *contact_force; // f(q), contact
    double     *residual, *step;
    double     *trial;
    double     *rate_start, *velocity_start, *acceleration_start; // a + alpha v, v, a for q = q_n
    double     *first;                                            // ddq at the start of the step
    double     *guess;                                            // where the step is likely to end, less q_n
    double     *difference, *product, *image;                     // work space
    double     *work;                                             // of the forces
    double     *P;                                                // r x r: factor of the matrix at rest
    double      P_mass, P_stiffness;                              // what it was made with; 0: not yet
    // of the Krylov methods (reduced_solve.c)
    double *krylov[8]; // r each
    double *damping;   // r: K dq without K
};

// solver->step from H step = -residual at solver->q, by the method of the options; `mass` and `stiffness` multiply M
// and K(q) in H, `constant` K(0). False when the iteration failed: nothing was changed then but work space.
bool solver_reduced_iterate(solver_reduced *solver, const double *q, double mass, double stiffness, double constant);
// solver->P from mass M + stiffness K(0), unless it is there; false: not positive definite.
bool solver_reduced_prepare(solver_reduced *solver, double mass, double stiffness);
// y = K(q) p without K, by the forces' own product or by a difference (P0 eq. 15). force: f(q).
void solver_reduced_product(solver_reduced *solver, const double *q, const double *force, const double *p, double *y);

// ---- free bodies -------------------------------------------------------------------------------------------------

struct solver_free {
    cubature_forces        forces; // r = 0 and no function for a rigid body
    solver_reduced_options options;
    int                    r;
    solver_inertia         inertia; // about the centre of mass at rest
    solver_contact        *contact;
    bool                   contact_stiff; // acts at the end of the step
    solver_motion          state;
    bool                   acceleration_known, budget_known;
    double                 budget;
    solver_step_report     report;
    double                 gravity[3], torque[3];
    int                    point_count; // point loads: 6 + 3 r numbers each: X - c, force, rows
    size_t                 point_capacity;
    double                *points;
    double                 wrench[6]; // of the loads at the end of the last step, about p, world axes (Newmark)

    fem_scratch           scratch;                                     // one block for what follows
    double               *K0, *K, *H, *kept;                           // r x r
    double               *E;                                           // (6 + r) x (6 + r): of contact
    double               *T;                                           // r x 7: H^-1 (Mrq^T, rhs)
    double               *q, *dq, *q_predicted, *dq_predicted;         // r, of the stage
    double               *q_contact, *dq_contact;                      // r
    double               *rest_force, *force, *rhs, *product;          // r
    double               *contact_force, *acceleration, *guess, *last; // 6 + r; the last step's accelerations
    double               *contact_guess;                               // 6 + r: those that contact was evaluated with
    solver_inertia_blocks blocks;
    double               *work, *inertia_work;
};

#endif
