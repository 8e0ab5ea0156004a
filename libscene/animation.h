// Motion for other programs: surfaces that many figures share, and the frames of those figures, written as glTF 2.0
// (.glb). A vertex with rest position X and mode rows U stands at p + Q s (X + U q) in a frame.
#ifndef LIMBER_ANIMATION_H
#define LIMBER_ANIMATION_H

#include "libsolver/solver.h"

// How a surface looks. docs/animation.md says what the renderer makes of it.
typedef struct scene_look {
    const char *name;         // of the material
    double      colour[3];    // linear, 0 .. 1
    double      roughness;    // 0 .. 1
    bool        double_sided; // thin things: leaves, cloth
} scene_look;

// Triangles first .. first + count - 1 of a surface, in one look.
typedef struct scene_patch {
    int first, count;
    int look;
} scene_patch;

// Surface of a class, in class coordinates, with the modes of the class at its vertices. Nothing is copied.
typedef struct scene_surface {
    const char   *name;
    int           vertex_count;
    const double *positions; // 3 per vertex, m
    const double *uv;        // 2 per vertex, or NULL
    const int    *place;     // per vertex: the first one at the same place, whose normal it shares, such as where
                             // UVs are cut; NULL: every vertex is by itself
    int                triangle_count;
    const int         *triangles; // 3 per triangle, counter-clockwise from outside
    int                patch_count;
    const scene_patch *patches; // every triangle in exactly one, in order
    int                r;
    const double      *modes; // 3 vertex_count x r, column-major
} scene_surface;

// An instance of a surface.
typedef struct scene_figure {
    const char *name; // NULL: "SURFACE 17"
    int         surface;
    double      scale; // > 0
} scene_figure;

typedef struct scene_pose {
    double p[3], Q[9]; // of the frame, in the world
} scene_pose;

typedef enum scene_up { SCENE_UP_Y, SCENE_UP_Z } scene_up;

typedef struct scene_glb_options {
    scene_up up;   // axis of the simulated world that points up; in the file it is y, as glTF wants
    double   unit; // length of a unit of the file, m: 1, or 0.01 for programs that count centimetres
    bool     skin; // one mesh on a skin, a joint per figure, at most four weights a vertex; modes are approximated
} scene_glb_options;
scene_glb_options scene_glb_default_options(void);

typedef struct scene_glb_report {
    int    frames;
    int    targets;         // the most morph targets of a surface; readers need only support eight
    int    left_out;        // modes without motion that can be seen, of all surfaces
    double bytes;           // of the file
    double skin_error;      // root mean square over frames of the worst vertex, of the size; 0 without skin
    double low[3], high[3]; // box around everything in all frames, m, world axes
} scene_glb_report;

// A file that grows frame by frame: frames go to an unnamed file beside it, and the .glb is made of them in the end,
// since the range of every mode must be known before its first weight can be written. Memory does not grow with the
// number of frames but for 28 bytes each. Surfaces, figures, looks and their names must outlive the writer.
typedef struct scene_glb scene_glb;
fem_status               scene_glb_create(scene_glb **glb, const char *path, int look_count, const scene_look *looks,
                                          int surface_count, const scene_surface *surfaces, int figure_count,
                                          const scene_figure *figures, const scene_glb_options *options);
// The next frame: a pose per figure, and their q one after the other. Times ascend.
fem_status scene_glb_frame(scene_glb *glb, double time, const scene_pose *poses, const double *q);
// Writes the file from the frames so far and destroys the writer, whether or not that succeeds. `report` may be NULL.
fem_status scene_glb_commit(scene_glb *glb, scene_glb_report *report);
void       scene_glb_abandon(scene_glb *glb); // accepts NULL

#endif
