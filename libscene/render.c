// The renderer: stage, camera, depth maps of the lights and of the screen, then shading.
#include "libscene/render_internal.h"

#include <math.h>

static const double DEGREE = 0.017453292519943295;

// ---- stage and camera -------------------------------------------------------------------------------------------

scene_stage scene_stage_empty(void) {
    return (scene_stage){.low = {INFINITY, INFINITY, INFINITY}, .high = {-INFINITY, -INFINITY, -INFINITY}};
}

void scene_stage_add(scene_stage *stage, const scene_drawing *drawing) {
    for (size_t i = 0; i < 3 * (size_t)drawing->vertex_count; i++) {
        stage->low[i % 3] = fmin(stage->low[i % 3], (double)drawing->positions[i]);
        stage->high[i % 3] = fmax(stage->high[i % 3], (double)drawing->positions[i]);
    }
    if (!(stage->low[0] <= stage->high[0])) return;
    for (int i = 0; i < 3; i++) stage->centre[i] = (stage->low[i] + stage->high[i]) / 2;
    stage->radius = fmax(vec3_distance(stage->low, stage->high) / 2, 1e-9);
}

// Unit vector to a place in the sky.
static void direction_of(double azimuth, double elevation, double d[3]) {
    d[0] = cos(elevation * DEGREE) * sin(azimuth * DEGREE);
    d[1] = sin(elevation * DEGREE);
    d[2] = cos(elevation * DEGREE) * cos(azimuth * DEGREE);
}

static void camera_axes(const double eye[3], const double target[3], double right[3], double down[3],
                        double forward[3]) {
    const double up[3] = {0, 1, 0}, other[3] = {0, 0, -1};
    vec3_sub(forward, target, eye);
    vec3_normalize(forward);
    vec3_cross(right, forward, fabs(forward[1]) > 0.9999 ? other : up);
    vec3_normalize(right);
    vec3_cross(down, forward, right);
}

// The eye moves away along its direction until all corners of the box are inside the picture.
scene_camera scene_camera_fit(const scene_stage *stage, int width, int height, double azimuth, double elevation,
                              double zoom, double field) {
    scene_camera camera = {.field = field};
    double       back[3], right[3], down[3], forward[3], distance = 0, tangent = tan(field * DEGREE / 2);
    direction_of(azimuth, elevation, back);
    const double eye[3] = {stage->centre[0] + back[0], stage->centre[1] + back[1], stage->centre[2] + back[2]};
    camera_axes(eye, stage->centre, right, down, forward);
    for (int corner = 0; corner < 8; corner++) {
        double d[3];
        for (int i = 0; i < 3; i++) d[i] = (corner >> i & 1 ? stage->high[i] : stage->low[i]) - stage->centre[i];
        double aside = fabs(vec3_dot(d, right)) / (tangent * width / height), high = fabs(vec3_dot(d, down)) / tangent;
        distance = fmax(distance, fmax(aside, high) - vec3_dot(d, forward));
    }
    distance = fmax(1.06 * distance, 1e-6 * stage->radius) / zoom;
    for (int i = 0; i < 3; i++) {
        camera.target[i] = stage->centre[i];
        camera.eye[i] = stage->centre[i] + distance * back[i];
    }
    return camera;
}

// ---- life -------------------------------------------------------------------------------------------------------

scene_render_options scene_render_default_options(void) {
    return (scene_render_options){.width = 1280,
                                  .height = 720,
                                  .samples = 2,
                                  .sun_azimuth = -50,
                                  .sun_elevation = 42,
                                  .shadow_size = 3072,
                                  .sky_directions = 24,
                                  .ground = true,
                                  .ground_colour = {0.13, 0.16, 0.07}};
}

static fem_status check_options(const scene_render_options *o) {
    if (o->width < 1 || o->height < 1 || o->width > 16384 || o->height > 16384)
        return fem_fail(FEM_BAD_INPUT, "the picture is %d x %d, expected 1 to 16384 pixels a side", o->width,
                        o->height);
    if (o->samples < 1 || o->samples > 4) return fem_fail(FEM_BAD_INPUT, "samples is %d, expected 1 to 4", o->samples);
    if (o->shadow_size < 16 || o->shadow_size > 16384)
        return fem_fail(FEM_BAD_INPUT, "shadow_size is %d, expected 16 to 16384", o->shadow_size);
    if (o->sky_directions < 0 || o->sky_directions > RENDER_MOST_SKY)
        return fem_fail(FEM_BAD_INPUT, "sky_directions is %d, expected 0 to %d", o->sky_directions, RENDER_MOST_SKY);
    if (!(o->sun_elevation >= 5 && o->sun_elevation <= 90) || !isfinite(o->sun_azimuth))
        return fem_fail(FEM_BAD_INPUT, "the sun's elevation is %g degrees, expected 5 to 90", o->sun_elevation);
    return FEM_OK;
}

static fem_status make_map(render_map *map, int width, int height, bool triangles) {
    *map = (render_map){.width = width, .height = height};
    size_t texels = (size_t)width * (size_t)height;
    map->nearness = fem_alloc(texels, sizeof *map->nearness);
    if (triangles) map->triangle = fem_alloc(texels, sizeof *map->triangle);
    if (!map->nearness || (triangles && !map->triangle))
        return fem_fail(FEM_NO_MEMORY, "no memory for a picture of %d x %d", width, height);
    return FEM_OK;
}

static void destroy_map(render_map *map) {
    fem_free(map->nearness);
    fem_free(map->triangle);
}

void scene_renderer_destroy(scene_renderer *r) {
    if (!r) return;
    destroy_map(&r->screen);
    destroy_map(&r->sun_map);
    render_scratch_destroy(&r->scratch);
    for (int k = 0; k < RENDER_MOST_SKY; k++) destroy_map(&r->sky_maps[k]);
    for (int k = 0; k < r->worker_count; k++) render_scratch_destroy(&r->worker_scratch[k]);
    fem_free(r->worker_scratch);
    scene_image_destroy(&r->image);
    fem_free(r);
}

fem_status scene_renderer_create(scene_renderer **renderer, const scene_render_options *options) {
    fem_status status = check_options(options);
    if (status != FEM_OK) return status;
    scene_renderer *r = fem_calloc(1, sizeof *r);
    if (!r) return fem_fail(FEM_NO_MEMORY, "no memory for the renderer");
    const scene_render_options *o = options;
    double                      sun[3];
    r->options = *o;
    direction_of(o->sun_azimuth, o->sun_elevation, sun);
    for (int i = 0; i < 3; i++) r->sun[i] = (float)sun[i];
    for (int k = 0; k < o->sky_directions; k++) { // evenly over the hemisphere, by golden angles
        double y = (k + 0.5) / o->sky_directions, across = sqrt(1 - y * y), angle = 2.39996322972865332 * k;
        r->sky[3 * k] = (float)(across * cos(angle)), r->sky[3 * k + 1] = (float)y,
                   r->sky[3 * k + 2] = (float)(across * sin(angle));
        FEM_TRY(make_map(&r->sky_maps[k], RENDER_SKY_SIZE, RENDER_SKY_SIZE, false));
    }
    FEM_TRY(make_map(&r->screen, o->width * o->samples, o->height * o->samples, true));
    FEM_TRY(make_map(&r->sun_map, o->shadow_size, o->shadow_size, false));
    r->image = (scene_image){.width = o->width, .height = o->height};
    r->image.pixels = fem_alloc((size_t)o->width * (size_t)o->height, 4);
    if (!r->image.pixels) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a picture of %d x %d", o->width, o->height);
        goto done;
    }
    *renderer = r;
    r = NULL;
done:
    scene_renderer_destroy(r);
    return status;
}

// ---- a picture --------------------------------------------------------------------------------------------------

static void set_view(scene_renderer *r, const scene_camera *camera) {
    double right[3], down[3], forward[3];
    camera_axes(camera->eye, camera->target, right, down, forward);
    for (int i = 0; i < 3; i++) {
        r->view.eye[i] = (float)camera->eye[i];
        r->view.axes[i] = (float)right[i], r->view.axes[3 + i] = (float)down[i],
        r->view.axes[6 + i] = (float)forward[i];
    }
    r->view.perspective = true;
    r->view.scale = (float)(r->screen.height / (2 * tan(camera->field * DEGREE / 2)));
    r->view.centre_x = (float)r->screen.width / 2, r->view.centre_y = (float)r->screen.height / 2;
}

// One direction a task: each has a map of its own, each worker its scratch.
static void fill_sky(void *context, int k, int worker) {
    scene_renderer *r = context;
    r->sky_status[k] =
        render_map_fill(&r->sky_maps[k], &r->sky_views[k], r->drawing, false, &r->worker_scratch[worker]);
}

// Scratch for as many workers as there are now.
static fem_status make_room(scene_renderer *r) {
    int threads = fem_threads();
    if (threads <= r->worker_count) return FEM_OK;
    render_scratch *more = fem_realloc(r->worker_scratch, (size_t)threads, sizeof *more);
    if (!more) return fem_fail(FEM_NO_MEMORY, "no memory for %d threads", threads);
    for (int k = r->worker_count; k < threads; k++) more[k] = (render_scratch){0};
    r->worker_scratch = more, r->worker_count = threads;
    return FEM_OK;
}

fem_status scene_renderer_draw(scene_renderer *r, const scene_drawing *drawing, const scene_stage *stage,
                               const scene_camera *camera, const scene_image **image) {
    fem_status status = FEM_OK;
    if (!(stage->radius > 0) || !isfinite(stage->radius))
        return fem_fail(FEM_BAD_INPUT, "there is nothing to see: the stage is empty");
    if (!(camera->field > 0 && camera->field < 170) || !(vec3_distance(camera->eye, camera->target) > 0))
        return fem_fail(FEM_BAD_INPUT, "the camera's field is %g degrees, expected 0 to 170, and a target",
                        camera->field);
    r->drawing = drawing;
    r->radius = (float)stage->radius, r->ground_height = (float)stage->low[1];
    for (int i = 0; i < 3; i++) r->centre[i] = (float)stage->centre[i];
    set_view(r, camera);
    const double sun[3] = {r->sun[0], r->sun[1], r->sun[2]};
    render_light_view(&r->sun_view, stage, sun, r->options.shadow_size);
    for (int k = 0; k < r->options.sky_directions; k++) {
        const double sky[3] = {r->sky[3 * k], r->sky[3 * k + 1], r->sky[3 * k + 2]};
        render_light_view(&r->sky_views[k], stage, sky, RENDER_SKY_SIZE);
    }
    FEM_TRY(make_room(r));
    FEM_TRY(render_map_fill(&r->sun_map, &r->sun_view, drawing, true, &r->scratch));
    fem_parallel_for(r->options.sky_directions, fill_sky, r);
    for (int k = 0; k < r->options.sky_directions; k++)
        if (r->sky_status[k] != FEM_OK) {
            status = fem_fail(r->sky_status[k], "no memory for the light of the sky");
            goto done;
        }
    FEM_TRY(render_map_fill(&r->screen, &r->view, drawing, true, &r->scratch)); // last: shading needs its projection
    render_shade(r);
    *image = &r->image;
done:
    return status;
}
