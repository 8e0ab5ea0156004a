// A body that is stitched while it moves: what is held of it, and the class that it has after each change.
// Classes are immutable: a changed body gets a class of its own, and gets its first one back when all is undone.
#ifndef LIMBER_SCENE_STITCHING_H
#define LIMBER_SCENE_STITCHING_H

#include "libscene/class.h"

typedef struct scene_stitching scene_stitching;

bool scene_has_stitching(const scene *s);
// The time of the first change after `time`; INFINITY: there is none.
double scene_next_change(const scene *s, double time);

// Factorises, and makes the linear modes and derivatives of the body without stitches. `body` is the part's; `first` is
// the class of the body without stitches, whose forces are used again; NULL: none is made (linear modes only).
fem_status scene_stitching_create(scene_stitching **stitching, const scene *s, const fem_body *body,
                                  const scene_class *first, const fem_progress *progress);
void       scene_stitching_destroy(scene_stitching *stitching);
// The body as it is after all changes up to a time. All or nothing. *changed: it is not as it was.
fem_status scene_stitching_set(scene_stitching *stitching, double time, bool *changed);
bool       scene_stitching_is_first(const scene_stitching *stitching); // no stitches, no factors
int        scene_stitching_count(const scene_stitching *stitching);

// Linear modes in a form; processor seconds of that alone. `original` gives the old ones.
fem_status           scene_stitching_linear(scene_stitching *stitching, scene_stitch_form form, modes_basis *linear,
                                            double *seconds);
const modes_problem *scene_stitching_problem(const scene_stitching *stitching); // without stitches
fem_status           scene_stitching_quality(scene_stitching *stitching, const modes_basis *linear,
                                             modes_stitch_quality *quality);

// A body in several pieces has another class than its part's even without stitches: pieces that nothing holds can move
// and turn, and each piece has coordinates of its own. *class: NULL where the part's will do. The stitching keeps to
// the class that it began with; `begin` gives it the other one, which it must not outlive.
fem_status scene_stitching_first(scene_stitching *stitching, const fem_progress *progress, scene_class **class);
void       scene_stitching_begin(scene_stitching *stitching, const scene_class *first);

// A state is 2 x 3 per vertex: displacements, then velocities.
// J: what springs and stiffer pieces of the body as it is now hold in a displacement, less what those of the class that
// it has do.
fem_status scene_stitching_energy(const scene_stitching *stitching, const double *u, double *energy);
// J: what of a state is not in a basis would have, for small strains.
fem_status scene_stitching_lost(const scene_stitching *stitching, const modes_basis *basis, const double *state,
                                double *energy);

// What a motion needs on its way into a new class (solver_reduced_rebase).
typedef struct scene_passage {
    double *springs; // r x r: stiffness of its springs less that of those of the class before
    double *pull;    // r; NULL without a state
} scene_passage;
void scene_passage_destroy(scene_passage *passage); // leaves it empty

// A class for the body as it is now; NULL: it is as it was at first, and so is its class. With `carry` what of the
// state its modes do not have is carried in columns of its own, so that nothing of the motion is lost. state NULL: at
// rest.
fem_status scene_stitching_class(scene_stitching *stitching, const double *state, bool carry,
                                 const fem_progress *progress, scene_class **class, scene_passage *passage,
                                 scene_change *change);
// The body has the class that was made last.
void scene_stitching_commit(scene_stitching *stitching);

// A body without stitches is in its first class when that has all but this part of its energy.
#define SCENE_AT_HOME 1e-3
// A line for the user.
fem_status scene_note_change(const scene_change *change, char **notes);
// FOLDER/stitching.csv: a row for each change and mode that was looked at.
fem_status scene_changes_write(const char *folder, int count, const scene_change *changes);

#endif
