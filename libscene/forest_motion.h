// The motion of several objects, and the part of it that stitches single instances (forest_stitching.c).
#ifndef LIMBER_SCENE_FOREST_MOTION_H
#define LIMBER_SCENE_FOREST_MOTION_H

#include "libscene/motion.h"
#include "libscene/stitching.h"

// What a driven root follows.
typedef struct forest_drive {
    const scene_move   *move;
    solver_frame_motion rest;
    double              h;
} forest_drive;

typedef struct forest_motion {
    scene_tree_motion    common;
    solver_forest       *forest;
    forest_drive        *drives; // per instance; move NULL: not driven
    double              *space;
    solver_frame_motion *shown; // per instance
    // instances that are stitched
    int                 own_count;
    struct forest_own  *own;
    scene_motion        plain; // the functions of a forest that is not
    size_t              change_room;
    const fem_progress *progress;
    char              **notes;
} forest_motion;

// The tree of the forest as it is now, with its loads, contact and wind; the instances stand at rest. The old ones are
// not touched: whoever replaces them keeps a copy of m->common.
fem_status forest_build_tree(forest_motion *m);
void       forest_leave_tree(scene_tree_motion *common); // frees these

// Prepares what the scene stitches, and makes the changes of time 0.
fem_status forest_begin_stitching(forest_motion *m);
void       forest_end_stitching(forest_motion *m); // after the tree is gone

#endif
