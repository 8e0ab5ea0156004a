// Depth maps: triangles are projected, sorted into bands of rows, and each band is filled by itself, so that threads
// share nothing and the nearest triangle (the first of equals) wins whatever their number.
#include "libscene/render_internal.h"

#include <math.h>
#include <string.h>

enum { BAND = 32 }; // rows

// of numbers that are no NaN: one instruction each, where fminf and fmaxf are calls
static inline float least(float a, float b) { return a < b ? a : b; }
static inline float most(float a, float b) { return a > b ? a : b; }

void render_scratch_destroy(render_scratch *scratch) {
    fem_free(scratch->projected);
    fem_free(scratch->bins);
    fem_free(scratch->starts);
    *scratch = (render_scratch){0};
}

static float from_srgb(uint8_t value) {
    float c = (float)value / 255;
    return c * c * (0.7f + 0.3f * c); // within 0.01 of the standard's curve
}

void render_sample_image(const scene_image *image, const float uv[2], float colour[4]) {
    float x = (uv[0] - floorf(uv[0])) * (float)image->width - 0.5f;
    float y = (uv[1] - floorf(uv[1])) * (float)image->height - 0.5f;
    float fx = floorf(x), fy = floorf(y), tx = x - fx, ty = y - fy;
    memset(colour, 0, 4 * sizeof *colour);
    for (int k = 0; k < 4; k++) {
        int i = ((int)fx + k % 2 + image->width) % image->width, j = ((int)fy + k / 2 + image->height) % image->height;
        float          weight = (k % 2 ? tx : 1 - tx) * (k / 2 ? ty : 1 - ty);
        const uint8_t *pixel = image->pixels + 4 * ((size_t)j * (size_t)image->width + (size_t)i);
        for (int c = 0; c < 3; c++) colour[c] += weight * from_srgb(pixel[c]);
        colour[3] += weight * (float)pixel[3] / 255;
    }
}

void render_light_view(render_view *view, const scene_stage *stage, const double direction[3], int size) {
    double forward[3] = {-direction[0], -direction[1], -direction[2]};
    double aside[3] = {0, 1, 0}, right[3], down[3];
    if (fabs(forward[1]) > 0.99) aside[0] = 1, aside[1] = 0;
    vec3_cross(right, forward, aside);
    vec3_normalize(right);
    vec3_cross(down, forward, right);
    for (int i = 0; i < 3; i++) {
        view->eye[i] = (float)stage->centre[i];
        view->axes[i] = (float)right[i], view->axes[3 + i] = (float)down[i], view->axes[6 + i] = (float)forward[i];
    }
    view->perspective = false;
    view->scale = (float)(0.49 * size / stage->radius);
    view->centre_x = view->centre_y = (float)size / 2;
}

// ---- filling ----------------------------------------------------------------------------------------------------

typedef struct filling {
    render_map          *map;
    const render_view   *view;
    const scene_drawing *drawing;
    render_scratch      *scratch;
    int                  bands;
} filling;

enum { VERTICES_A_TASK = 16384 };

static void project_some(void *context, int index, int worker) {
    (void)worker;
    const filling *f = context;
    size_t         first = (size_t)index * VERTICES_A_TASK, end = first + VERTICES_A_TASK;
    if (end > (size_t)f->drawing->vertex_count) end = (size_t)f->drawing->vertex_count;
    for (size_t v = first; v < end; v++) {
        float *p = f->scratch->projected + 3 * v;
        render_project(f->view, f->drawing->positions + 3 * v, p);
        bool seen = isfinite(p[0]) && isfinite(p[1]) && isfinite(p[2]) && (!f->view->perspective || p[2] > 0);
        if (!seen) p[0] = p[1] = p[2] = NAN;
    }
}

// First and last band of a triangle; false when it is outside the map or behind the camera.
static bool find_bands(const filling *f, int triangle, int *first, int *last) {
    const int   *corner = f->drawing->triangles + 3 * (size_t)triangle;
    const float *a = f->scratch->projected + 3 * (size_t)corner[0], *b = f->scratch->projected + 3 * (size_t)corner[1],
                *c = f->scratch->projected + 3 * (size_t)corner[2];
    if (isnan(a[2] + b[2] + c[2])) return false;
    float low = least(a[1], least(b[1], c[1])), high = most(a[1], most(b[1], c[1]));
    float left = least(a[0], least(b[0], c[0])), right = most(a[0], most(b[0], c[0]));
    if (high < 0 || low >= (float)f->map->height || right < 0 || left >= (float)f->map->width) return false;
    *first = low > 0 ? (int)low / BAND : 0;
    *last = high < (float)f->map->height ? (int)high / BAND : f->bands - 1;
    return *last < f->bands ? true : (*last = f->bands - 1, true);
}

static fem_status sort_triangles(filling *f) {
    fem_status      status = FEM_OK;
    render_scratch *s = f->scratch;
    size_t          bands = (size_t)f->bands;
    int             first, last;
    FEM_TRY(fem_grow((void **)&s->starts, &s->starts_room, bands + 1, sizeof *s->starts));
    memset(s->starts, 0, (bands + 1) * sizeof *s->starts);
    for (int t = 0; t < f->drawing->triangle_count; t++)
        if (find_bands(f, t, &first, &last))
            for (int b = first; b <= last; b++) s->starts[b + 1]++;
    for (size_t b = 0; b < bands; b++) s->starts[b + 1] += s->starts[b];
    FEM_TRY(fem_grow((void **)&s->bins, &s->bins_room, s->starts[bands] + 1, sizeof *s->bins));
    for (int t = 0; t < f->drawing->triangle_count; t++)
        if (find_bands(f, t, &first, &last))
            for (int b = first; b <= last; b++) s->bins[s->starts[b]++] = t;
    for (size_t b = bands; b > 0; b--) s->starts[b] = s->starts[b - 1]; // where each began
    s->starts[0] = 0;
done:
    return status;
}

// Is the picture of the paint there at a place of the triangle? w: weights of the corners on the screen.
static bool is_there(const filling *f, int triangle, const scene_paint *paint, const float w[3]) {
    const int *corner = f->drawing->triangles + 3 * (size_t)triangle;
    float      uv[2] = {0, 0}, colour[4], sum = 0;
    for (int k = 0; k < 3; k++) {
        float weight = w[k];
        if (f->view->perspective) weight *= f->scratch->projected[3 * (size_t)corner[k] + 2];
        uv[0] += weight * f->drawing->uv[2 * (size_t)corner[k]],
            uv[1] += weight * f->drawing->uv[2 * (size_t)corner[k] + 1];
        sum += weight;
    }
    uv[0] /= sum, uv[1] /= sum;
    render_sample_image(&f->drawing->images[paint->image], uv, colour);
    return colour[3] * paint->colour[3] >= paint->alpha_cutoff;
}

static inline int round_up(float x) { return (int)x + ((float)(int)x < x); } // x >= 0

static void fill_triangle(const filling *f, int triangle, int row_low, int row_high) {
    const int         *corner = f->drawing->triangles + 3 * (size_t)triangle;
    const float       *a = f->scratch->projected + 3 * (size_t)corner[0];
    const float       *b = f->scratch->projected + 3 * (size_t)corner[1];
    const float       *c = f->scratch->projected + 3 * (size_t)corner[2];
    const scene_paint *paint = &f->drawing->paints[f->drawing->paint[triangle]];
    bool               masked = paint->alpha_cutoff > 0 && paint->image >= 0;
    float              area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
    if (!(fabsf(area) > 1e-12f)) return; // or a corner is behind the camera
    float left = least(a[0], least(b[0], c[0])), right = most(a[0], most(b[0], c[0]));
    float top = least(a[1], least(b[1], c[1])), bottom = most(a[1], most(b[1], c[1]));
    if (!(right >= 0.5f && bottom >= (float)row_low + 0.5f && left < (float)f->map->width && top < (float)row_high))
        return;
    // first and last centre of a texel inside; what is rounded is >= 0, where a cast rounds down
    int x0 = left > 0.5f ? round_up(left - 0.5f) : 0, y0 = top > (float)row_low + 0.5f ? round_up(top - 0.5f) : row_low;
    int x1 = right < (float)f->map->width ? (int)(right - 0.5f) : f->map->width - 1;
    int y1 = bottom < (float)row_high ? (int)(bottom - 0.5f) : row_high - 1;
    if (x0 > x1 || y0 > y1) return; // between the centres, as most are in a small map
    float inverse = 1 / area;
    float ux = (c[1] - a[1]) * inverse, uy = -(c[0] - a[0]) * inverse; // weight of b = ux dx + uy dy
    float vx = -(b[1] - a[1]) * inverse, vy = (b[0] - a[0]) * inverse; // weight of c
    for (int y = y0; y <= y1; y++) {
        float  dy = (float)y + 0.5f - a[1], dx = (float)x0 + 0.5f - a[0];
        float  wb0 = ux * dx + uy * dy, wc0 = vx * dx + vy * dy;
        float *nearness = f->map->nearness + (size_t)y * (size_t)f->map->width;
        for (int x = x0; x <= x1; x++) {
            float wb = wb0 + (float)(x - x0) * ux, wc = wc0 + (float)(x - x0) * vx, wa = 1 - wb - wc;
            if (wa < 0 || wb < 0 || wc < 0) continue;
            float near = wa * a[2] + wb * b[2] + wc * c[2];
            if (!(near > nearness[x]) || (masked && !is_there(f, triangle, paint, (const float[]){wa, wb, wc})))
                continue;
            nearness[x] = near;
            if (f->map->triangle) f->map->triangle[(size_t)y * (size_t)f->map->width + (size_t)x] = (uint32_t)triangle;
        }
    }
}

static void clear_rows(const render_map *map, int low, int high) {
    size_t width = (size_t)map->width;
    for (size_t i = (size_t)low * width; i < (size_t)high * width; i++) map->nearness[i] = -INFINITY;
}

static void fill_band(void *context, int band, int worker) {
    (void)worker;
    const filling *f = context;
    int            low = band * BAND, high = low + BAND < f->map->height ? low + BAND : f->map->height;
    clear_rows(f->map, low, high);
    for (size_t k = f->scratch->starts[band]; k < f->scratch->starts[band + 1]; k++)
        fill_triangle(f, f->scratch->bins[k], low, high);
}

fem_status render_map_fill(render_map *map, const render_view *view, const scene_drawing *drawing, bool threads,
                           render_scratch *scratch) {
    fem_status status = FEM_OK;
    filling    f = {map, view, drawing, scratch, (map->height + BAND - 1) / BAND};
    int        tasks = (drawing->vertex_count + VERTICES_A_TASK - 1) / VERTICES_A_TASK;
    FEM_TRY(fem_grow((void **)&scratch->projected, &scratch->projected_room, 3 * (size_t)drawing->vertex_count + 1,
                     sizeof *scratch->projected));
    if (!threads) { // in their order, which is that within a band
        for (int i = 0; i < tasks; i++) project_some(&f, i, 0);
        clear_rows(map, 0, map->height);
        for (int t = 0; t < drawing->triangle_count; t++) fill_triangle(&f, t, 0, map->height);
        goto done;
    }
    fem_parallel_for(tasks, project_some, &f);
    FEM_TRY(sort_triangles(&f));
    fem_parallel_for(f.bands, fill_band, &f);
done:
    return status;
}
