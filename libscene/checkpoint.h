// A run's state on disk, from which a later run of the same scene goes on bit by bit: FOLDER/NAME.checkpoint, a checked
// binary file (libfem/store.h) of kind "checkpoint".
#ifndef LIMBER_SCENE_CHECKPOINT_H
#define LIMBER_SCENE_CHECKPOINT_H

#include "libscene/scene.h"

typedef struct scene_checkpoint {
    int           frames; // written so far; the state is that of the last
    int           steps;
    size_t        rows, row_width, state_size;
    const double *times;       // per frame
    const double *values;      // rows x row_width, of the CSV files
    const double *state;       // of the motion
    size_t        trail_width; // numbers that a frame of a .glb has beside the checkpoint (trail.h); 0: none are kept
    fem_hash      trail;       // of those of all frames
    fem_store     store;       // after reading: holds the arrays
} scene_checkpoint;

// Of all that determines a run: the scene with its overrides, except its title and output.frames, and what the files
// that it names hold. FEM_BAD_INPUT when a basis file is not there.
fem_status scene_checkpoint_key(const scene *s, fem_hash *key);
// FOLDER/NAME.checkpoint, allocated
char      *scene_checkpoint_path(const scene *s, const char *folder);
fem_status scene_checkpoint_write(const scene_checkpoint *checkpoint, const char *path, fem_hash key);
// FEM_BAD_INPUT, saying why, for anything but an undamaged checkpoint of this scene.
fem_status scene_checkpoint_read(scene_checkpoint *checkpoint, const scene *s, const char *path, fem_hash key);
void       scene_checkpoint_destroy(scene_checkpoint *checkpoint); // leaves it empty

// Numbers in a row of the CSV files: time, three energies, three of each probe.
size_t scene_row_width(const scene *s);

#endif
