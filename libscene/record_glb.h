// The .glb file of a run: the motion of its surface, for other programs and for `limber render`.
// Bodies that move in modes are written as they are, one figure per limb; others as the principal components of their
// frames. docs/animation.md says which.
#ifndef LIMBER_SCENE_RECORD_GLB_H
#define LIMBER_SCENE_RECORD_GLB_H

#include "libscene/checkpoint.h"
#include "libscene/motion.h"

typedef struct scene_record_glb scene_record_glb;

// The folder is there. Removes FOLDER/NAME.glb of an earlier run. The motion must outlive the record. FEM_BAD_INPUT
// when there will be more frames than a motion without modes can have. From a checkpoint (may be NULL): begins with its
// frames.
fem_status scene_record_glb_create(scene_record_glb **record, const scene *s, const char *folder,
                                   const scene_motion *motion, int frames, const scene_checkpoint *checkpoint,
                                   char **notes);
// Keeps what a run that goes on needs of the frames so far, and tells the checkpoint.
fem_status scene_record_glb_describe(const scene_record_glb *record, scene_checkpoint *checkpoint);
// The state as of the last `show` is the next frame.
fem_status scene_record_glb_frame(scene_record_glb *record, const scene_motion *motion);
// Writes the file from the frames so far, none: nothing; *frames: those that it has. More morph targets than every
// program shows: a note says so.
fem_status scene_record_glb_commit(scene_record_glb *record, int *frames, char **notes);
void       scene_record_glb_destroy(scene_record_glb *record); // accepts NULL

// Frames as few components (frames.c): A (n x frames) = mean + U q, each column to within `tolerance` in the 2-norm,
// and so each of its entries. A gets the mean taken off. *U: n x *r; *q: r per frame. The caller frees.
fem_status scene_compress_frames(int n, int frames, double *A, double tolerance, double *mean, int *r, double **U,
                                 double **q);

#endif
