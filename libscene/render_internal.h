// Inside libscene only: what the parts of the renderer share.
#ifndef LIMBER_RENDER_INTERNAL_H
#define LIMBER_RENDER_INTERNAL_H

#include "libscene/render.h"

// ---- views and depth maps (render_raster.c) ---------------------------------------------------------------------

// How a point becomes a place in a map. Axes are rows of a rotation: right, down, forward. Nearness is linear across
// a triangle on the screen and larger for what is nearer: 1 / depth with perspective, -depth without.
typedef struct render_view {
    float eye[3], axes[9];
    float scale;              // texels per unit; with perspective: times depth
    float centre_x, centre_y; // texels
    bool  perspective;
} render_view;

typedef struct render_map {
    int       width, height;
    float    *nearness; // -INFINITY: nothing is there
    uint32_t *triangle; // NULL: not kept
} render_map;

typedef struct render_scratch {
    float  *projected; // 3 per vertex: x, y, nearness; NAN: behind the camera
    size_t  projected_room;
    int    *bins; // triangles, band after band
    size_t  bins_room;
    size_t *starts; // per band
    size_t  starts_room;
} render_scratch;
void render_scratch_destroy(render_scratch *scratch);

static inline void render_project(const render_view *view, const float x[3], float p[3]) {
    float d[3] = {x[0] - view->eye[0], x[1] - view->eye[1], x[2] - view->eye[2]};
    float right = view->axes[0] * d[0] + view->axes[1] * d[1] + view->axes[2] * d[2];
    float down = view->axes[3] * d[0] + view->axes[4] * d[1] + view->axes[5] * d[2];
    float depth = view->axes[6] * d[0] + view->axes[7] * d[1] + view->axes[8] * d[2];
    float scale = view->perspective ? view->scale / depth : view->scale;
    p[0] = view->centre_x + scale * right;
    p[1] = view->centre_y + scale * down;
    p[2] = view->perspective ? 1 / depth : -depth;
}

// Fills a map with what is nearest. `threads`: bands of the map at once; else all by the calling thread.
fem_status render_map_fill(render_map *map, const render_view *view, const scene_drawing *drawing, bool threads,
                           render_scratch *scratch);
// Colour (linear) and alpha of a paint's picture at uv; repeats.
void render_sample_image(const scene_image *image, const float uv[2], float colour[4]);

// A view along `direction` (towards the light, unit) that holds the ball of the stage in `size` texels.
void render_light_view(render_view *view, const scene_stage *stage, const double direction[3], int size);

// ---- the renderer -------------------------------------------------------------------------------------------------

enum { RENDER_MOST_SKY = 64, RENDER_SKY_SIZE = 512, RENDER_TAPS = 10 };

struct scene_renderer {
    scene_render_options options;
    scene_image          image;
    render_map           screen, sun_map, sky_maps[RENDER_MOST_SKY];
    render_view          view, sun_view, sky_views[RENDER_MOST_SKY];
    render_scratch       scratch;
    int                  worker_count;
    render_scratch      *worker_scratch; // per worker, for the maps of the sky
    fem_status           sky_status[RENDER_MOST_SKY];
    float                sun[3], sky[3 * RENDER_MOST_SKY]; // directions to the lights
    float                taps[2 * RENDER_TAPS];            // places around a point where the sun's map is read, texels
    float                sky_axes[9][RENDER_MOST_SKY];     // those of sky_views, direction after direction
    float                ground_height, radius, centre[3];
    // during a picture
    const scene_drawing *drawing;
};

// Shades all samples and averages them to pixels (render_shade.c).
void render_shade(scene_renderer *renderer);

#endif
