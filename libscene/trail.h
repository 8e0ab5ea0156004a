// The frames of a .glb beside a checkpoint: FOLDER/NAME.checkpoint.frames, a row of numbers for each frame, from which
// a run that goes on makes the file again. The checkpoint knows their hash, so that nothing else is taken for them.
#ifndef LIMBER_SCENE_TRAIL_H
#define LIMBER_SCENE_TRAIL_H

#include "libscene/checkpoint.h"

typedef struct scene_trail scene_trail;

// FOLDER/NAME.checkpoint.frames, allocated
char *scene_trail_path(const scene *s, const char *folder);
// A new file, instead of an old one, or one that goes on behind the frames of a checkpoint.
fem_status scene_trail_create(scene_trail **trail, const char *path, size_t width, const scene_checkpoint *from);
fem_status scene_trail_add(scene_trail *trail, const double *row);
// Brings the rows to the disk and tells the checkpoint about them.
fem_status scene_trail_describe(scene_trail *trail, scene_checkpoint *checkpoint);
void       scene_trail_destroy(scene_trail *trail); // accepts NULL

// Goes through the rows of a checkpoint; `take` may be NULL. FEM_BAD_INPUT when the file is not there or not the one
// that the checkpoint was made with, which is known after the last row only.
typedef fem_status scene_trail_row(void *context, int frame, const double *row);
fem_status scene_trail_read(const char *path, const scene_checkpoint *from, scene_trail_row *take, void *context);

#endif
