// Pictures of a model without a GPU: a depth buffer, a sun with soft shadows, light of the sky with what hides it,
// ground, and the air between. y points up.
#ifndef LIMBER_RENDER_H
#define LIMBER_RENDER_H

#include "libscene/model.h"

fem_status scene_image_write(const scene_image *image, const char *path); // .png
void       scene_image_destroy(scene_image *image);                       // leaves it empty

// The space that pictures of a motion are about.
typedef struct scene_stage {
    double low[3], high[3]; // box around everything
    double centre[3], radius;
} scene_stage;
// Makes the stage hold a drawing too. Begin with scene_stage_empty.
scene_stage scene_stage_empty(void);
void        scene_stage_add(scene_stage *stage, const scene_drawing *drawing);

typedef struct scene_camera {
    double eye[3], target[3];
    double field; // vertical angle of view, degrees
} scene_camera;
// A camera that has all of the stage in its picture: azimuth (degrees around y, 0 = from +z), elevation (degrees above
// the horizon), zoom (1 fits, 2 is twice as near).
scene_camera scene_camera_fit(const scene_stage *stage, int width, int height, double azimuth, double elevation,
                              double zoom, double field);

typedef struct scene_render_options {
    int    width, height;              // pixels
    int    samples;                    // per pixel and axis, 1 .. 4: 2 means four a pixel
    double sun_azimuth, sun_elevation; // degrees, as of a camera; elevation 5 .. 90
    int    shadow_size;                // of the sun's map, texels a side
    int    sky_directions;             // from which the sky is asked for, 0 .. 64; 0: nothing hides it
    bool   ground;                     // a plane under the stage
    double ground_colour[3];           // linear
} scene_render_options;
scene_render_options scene_render_default_options(void);

typedef struct scene_renderer scene_renderer;
fem_status                    scene_renderer_create(scene_renderer **renderer, const scene_render_options *options);
void                          scene_renderer_destroy(scene_renderer *renderer);
// The picture belongs to the renderer and holds until the next call. Triangles that reach behind the camera are left
// out. The result does not depend on the number of threads.
fem_status scene_renderer_draw(scene_renderer *renderer, const scene_drawing *drawing, const scene_stage *stage,
                               const scene_camera *camera, const scene_image **image);

#endif
