// Animated models out of .glb files (glTF 2.0), posed at a time: nodes, morph targets and skins. Anyone's file, so
// nothing in it is trusted.
#ifndef LIMBER_MODEL_H
#define LIMBER_MODEL_H

#include "libfem/fem.h"

#include <stdint.h>

typedef struct scene_image {
    int      width, height;
    uint8_t *pixels; // red, green, blue, alpha; sRGB; rows from the top
} scene_image;

typedef struct scene_paint {
    char  *name;
    float  colour[4];    // linear
    float  alpha_cutoff; // fragments below are not there; 0: everything is
    int    image;        // of the model, or -1
    bool   double_sided;
    double roughness;
} scene_paint;

// All triangles of a model at one moment, in the file's own axes and units.
typedef struct scene_drawing {
    int          vertex_count, triangle_count;
    float       *positions, *normals; // 3 per vertex
    float       *uv;                  // 2 per vertex; zeros where a mesh has none
    int         *triangles;           // 3 per triangle
    int         *paint;               // per triangle: index into paints
    int          paint_count, image_count;
    scene_paint *paints;
    scene_image *images;
} scene_drawing;

typedef struct scene_model scene_model;
fem_status                 scene_model_read(scene_model **model, const char *path);
void                       scene_model_destroy(scene_model *model);
// Times of the first and last key of its animation, s; both 0 when nothing moves.
void scene_model_times(const scene_model *model, double *begin, double *end);
// Triangles at a time (before the first key as there, after the last likewise). The drawing belongs to the model and
// holds until the next call.
fem_status scene_model_pose(scene_model *model, double time, const scene_drawing **drawing);
// The vertices of a node of that name are first .. first + count - 1 of the drawing; false when it has none.
bool scene_model_node_vertices(const scene_model *model, const char *name, int *first, int *count);

#endif
