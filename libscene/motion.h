// The ways in which the motion of a scene's body is computed, behind one face for the run.
#ifndef LIMBER_SCENE_MOTION_H
#define LIMBER_SCENE_MOTION_H

#include "libscene/scene.h"

// What every way offers; each begins with this struct.
typedef struct scene_motion scene_motion;
struct scene_motion {
    double        time;
    const double *u, *v; // 3 per vertex: displacement and velocity, as of the last `show`
    fem_status (*equilibrium)(scene_motion *motion, const fem_progress *progress); // NULL where there is none
    fem_status (*step)(scene_motion *motion, double time); // to that time, one step on; a failure leaves the state
    void (*show)(scene_motion *motion);
    void (*energies)(const scene_motion *motion, solver_energies *energies); // with the loads of the present time
    void (*report)(const scene_motion *motion, scene_result *result);
    void (*destroy)(scene_motion *motion);
};

// The body must outlive the motion. `fixed`: 3 per vertex.
fem_status scene_motion_full(scene_motion **motion, const scene *s, const fem_body *body, const unsigned char *fixed);
// Held and free bodies in the modes of their part; *notes as in class.h.
fem_status scene_motion_reduced(scene_motion **motion, const scene *s, const fem_body *body,
                                const fem_progress *progress, char **notes);

// A body cut into domains.
fem_status scene_motion_tree(scene_motion **motion, const scene *s, const fem_body *body, const fem_progress *progress,
                             char **notes);
// The classes of a scene's domains, from its cache where they are there.
fem_status scene_assemble(solver_assembly **assembly, const scene *s, const fem_progress *progress, char **notes);

void scene_report_assembly(const solver_assembly *assembly, scene_result *result);

#endif
