// Penalty contact of reduced bodies with planes, boxes and spheres, detected with a bounded-deformation tree.
//
// A sample is a material point of the surface, x = X + U_s q (then placed by the rigid motion of a free body). A sample
// at depth d > 0 below the surface of an obstacle with outward normal n, moving at v relative to the obstacle, feels
//     f_n = max(0, k d - c v.n),   f_t = -mu f_n v_t / max(|v_t|, v_s),   k, c per area times the sample's area.
// Friction is regularised: below the friction angle a body creeps at a speed under v_s instead of sticking.
//
// Rules that keep energy (midpoint, Newmark) gain it from a spring that begins to act within a step, unless the step is
// small against the period of the contact. Contact is soft when h^2 k A / m < 1 for the body and its modes, A the whole
// surface; then it is treated like the other forces. Stiff contact acts at the end of the step with constant force over
// it (Kane et al. 1999) and with c + k h/2 in place of c: it loses energy, and comes to rest without chattering.
#ifndef LIMBER_SOLVER_CONTACT_H
#define LIMBER_SOLVER_CONTACT_H

#include "libcubature/cubature.h"

typedef enum solver_obstacle_kind { SOLVER_PLANE, SOLVER_BOX, SOLVER_SPHERE } solver_obstacle_kind;
#define SOLVER_OBSTACLE_KINDS 3

// A plane passes through `position` and its third axis points out of the solid; a box is centred there with half edges
// size[0..2] along its axes; a sphere has radius size[0]. Place and velocity are those at the start of the next step;
// during the step it moves on with that velocity. The caller places it for every step: one that has a velocity and is
// not placed anew is a conveyor belt.
typedef struct solver_obstacle {
    solver_obstacle_kind kind;
    double               position[3];
    double               axes[9]; // row-major rotation: columns are the obstacle's axes in the world
    double               size[3];
    double               velocity[3], angular[3]; // world axes
} solver_obstacle;
solver_obstacle solver_plane(const double point[3], const double normal[3]);
solver_obstacle solver_box(const double centre[3], const double half[3]);
solver_obstacle solver_sphere(const double centre[3], double radius);
// Signed distance of x from its surface, negative inside, and the outward normal there.
double solver_obstacle_distance(const solver_obstacle *obstacle, const double x[3], double normal[3]);

typedef struct solver_contact_options {
    double stiffness;     // k, N/m per m^2 of surface
    double damping;       // c, N s/m per m^2
    double friction;      // mu
    double slip_velocity; // v_s, m/s
} solver_contact_options;
solver_contact_options solver_contact_default_options(void);
fem_status             solver_contact_check_options(const solver_contact_options *options);

// Points of the surface with their rows of the basis.
typedef struct solver_samples {
    int     count, r;
    double *X;      // 3 per sample: rest positions
    double *U;      // 3 x r per sample, row-major
    double *area;   // per sample, m^2
    int    *vertex; // per sample: vertex of the mesh, or NULL
} solver_samples;
// The vertices of the mesh's surface, each with a third of the area of its triangles. U is 3 vertices x r,
// column-major.
fem_status solver_samples_create(solver_samples *samples, const fem_mesh *mesh, int r, const double *U);
void       solver_samples_destroy(solver_samples *samples); // leaves it empty

// The contact of one body: its samples (copied), the tree over them, and the obstacles.
typedef struct solver_contact solver_contact;
fem_status                    solver_contact_create(solver_contact **contact, const solver_samples *samples,
                                                    const solver_contact_options *options);
void                          solver_contact_destroy(solver_contact *contact);
// `obstacle` gets its number.
fem_status solver_contact_add(solver_contact *contact, const solver_obstacle *obstacle, int *number);
fem_status solver_contact_move(solver_contact *contact, int number, const solver_obstacle *obstacle);

// The contact of one domain of a tree as a load: force and moment about the frame's origin in the axes of the domain
// (6), then r modal forces, for the state that it will have after `ahead` seconds if nothing acts on it. The springs
// are damped by stiffness x lag besides, which keeps an explicit treatment from bouncing. Returns the contacts.
typedef struct solver_frame_motion solver_frame_motion;
int solver_contact_load_domain(solver_contact *contact, const solver_frame_motion *frame, const double *q,
                               const double *dq, double ahead, double lag, double *work, double *load);
// The square of the frequency with which the body would bounce on its springs, all of the surface in contact. M: r x r.
double solver_contact_rate(const solver_contact *contact, const double *M, double mass); // mass 0: held
#define SOLVER_CONTACT_WORK(r) (2 * (size_t)(r) + 8)

// What the body exerts on an obstacle, world axes: action and reaction.
typedef struct solver_contact_load {
    int    contacts;
    double force[3], torque[3]; // about the obstacle's position
} solver_contact_load;

// Of the last evaluation, which is that of the last iteration of the last step.
typedef struct solver_contact_report {
    int    contacts;                     // samples under the surface of an obstacle, counted for each obstacle
    int    kinds[SOLVER_OBSTACLE_KINDS]; // of them with planes, boxes, spheres
    int    spheres, samples;             // of the tree: refitted and tested; samples tested
    double depth;                        // deepest penetration, m
    double energy;                       // of the springs, J
    long   evaluations, total_spheres, total_contacts; // since creation
} solver_contact_report;
solver_contact_report solver_contact_get_report(const solver_contact *contact);
solver_contact_load   solver_contact_get_load(const solver_contact *contact, int number);

#endif
