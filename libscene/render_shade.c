// Light: for every sample of the screen, what is there (a triangle, the ground, the sky) and how it looks.
//
// The sun is a light without extent whose shadow map is read at several places around a point, which makes the edge
// soft. The sky is asked for from a number of directions, each with a small depth map of its own: what part of the
// hemisphere a point sees is the mean over them, weighted with the cosine. That is what makes a crown dark inside.
// Thin things (double-sided) let a part of the sunlight through. Colours are linear until they are tone-mapped.
#include "libscene/render_internal.h"

#include <math.h>

typedef struct colour {
    float r, g, b;
} colour;

static colour mix(colour a, colour b, float t) {
    return (colour){a.r + t * (b.r - a.r), a.g + t * (b.g - a.g), a.b + t * (b.b - a.b)};
}
static colour times(colour a, colour b) { return (colour){a.r * b.r, a.g * b.g, a.b * b.b}; }
static colour add(colour a, float s, colour b) { return (colour){a.r + s * b.r, a.g + s * b.g, a.b + s * b.b}; }
static float  dot(const float a[3], const float b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
static float  clamp(float x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
static float  smooth(float low, float high, float x) {
     float t = clamp((x - low) / (high - low));
     return t * t * (3 - 2 * t);
}

static const colour SUNLIGHT = {3.3f, 3.0f, 2.55f}, ZENITH = {0.16f, 0.36f, 0.85f}, HORIZON = {0.95f, 1.05f, 1.15f};
static const colour SKYLIGHT = {0.55f, 0.66f, 0.85f}, THROUGH = {0.9f, 1.0f, 0.35f};

static colour sky_colour(const scene_renderer *r, const float direction[3]) {
    float  up = clamp(direction[1]), toward = clamp(dot(direction, r->sun));
    colour c = mix(HORIZON, ZENITH, powf(up, 0.42f));
    float  t3 = toward * toward * toward, t6 = t3 * t3;
    c = add(c, 0.25f * t6 * t6, (colour){1, 0.85f, 0.6f});
    if (toward < 0.98f) return c; // the disc is less than 1e-12 there
    return add(c, 3 * powf(toward, 1500), (colour){1, 0.95f, 0.85f});
}

// 1 when nothing of a light's map is nearer to the light than the point by more than `bias`.
static float lit(const render_map *map, float x, float y, float nearness, float bias) {
    if (!(x >= 0 && y >= 0 && x < (float)map->width && y < (float)map->height)) return 1;
    return map->nearness[(size_t)y * (size_t)map->width + (size_t)x] > nearness + bias ? 0 : 1;
}

// A number in [0, 1) that looks random, from two.
static float scramble(uint32_t x, uint32_t y) {
    uint32_t h = x * 0x9e3779b1u ^ y * 0x85ebca77u;
    h ^= h >> 15, h *= 0x2c1b3c6du, h ^= h >> 12, h *= 0x297a2d39u, h ^= h >> 15;
    return (float)(h >> 8) / 16777216;
}

enum { TAPS = RENDER_TAPS };

static float sun_visibility(const scene_renderer *r, const float x[3], const float n[3], float turn) {
    const render_map *map = &r->sun_map;
    float             texel = 1 / r->sun_view.scale, p[3], sum = 0, point[3];
    for (int i = 0; i < 3; i++) point[i] = x[i] + 2 * texel * n[i];
    render_project(&r->sun_view, point, p);
    float cosine = cosf(6.2831853f * turn), sine = sinf(6.2831853f * turn);
    for (int k = 0; k < TAPS; k++) { // the spiral, turned differently for each sample
        float x0 = r->taps[2 * k], y0 = r->taps[2 * k + 1];
        sum += lit(map, p[0] + cosine * x0 - sine * y0, p[1] + sine * x0 + cosine * y0, p[2], 2 * texel);
    }
    return sum / TAPS;
}

// Part of the sky that a point with this normal sees, cosine-weighted.
static float sky_visibility(const scene_renderer *r, const float x[3], const float n[3], float jitter_x,
                            float jitter_y) {
    int count = r->options.sky_directions;
    if (count == 0) return 1;
    // all these maps have one centre and one scale
    const render_view *view = &r->sky_views[0];
    float              texel = 1 / view->scale, d[3], seen = 0, all = 1e-6f;
    float              cosine[RENDER_MOST_SKY], px[RENDER_MOST_SKY], py[RENDER_MOST_SKY], depth[RENDER_MOST_SKY];
    for (int i = 0; i < 3; i++) d[i] = x[i] + 1.5f * texel * n[i] - view->eye[i];
    for (int k = 0; k < count; k++) {
        const float(*a)[RENDER_MOST_SKY] = r->sky_axes;
        cosine[k] = -(n[0] * a[6][k] + n[1] * a[7][k] + n[2] * a[8][k]); // forward is away from the light
        px[k] = view->centre_x + jitter_x + view->scale * (a[0][k] * d[0] + a[1][k] * d[1] + a[2][k] * d[2]);
        py[k] = view->centre_y + jitter_y + view->scale * (a[3][k] * d[0] + a[4][k] * d[1] + a[5][k] * d[2]);
        depth[k] = a[6][k] * d[0] + a[7][k] * d[1] + a[8][k] * d[2];
    }
    for (int k = 0; k < count; k++) {
        if (cosine[k] <= 0.02f) continue;
        all += cosine[k];
        seen += cosine[k] * lit(&r->sky_maps[k], px[k], py[k], -depth[k], 1.5f * texel);
    }
    return seen / all;
}

typedef struct surface_point {
    float  x[3], n[3], toward_eye[3];
    colour albedo;
    float  roughness;
    bool   thin;
} surface_point;

static colour shade_point(const scene_renderer *r, const surface_point *s, uint32_t px, uint32_t py) {
    float turn = scramble(px, py), sun = dot(s->n, r->sun), out[3];
    float jx = 2 * (scramble(px + 77, py) - 0.5f), jy = 2 * (scramble(px, py + 177) - 0.5f);
    float facing = sun < 0 && s->thin ? -1.0f : 1.0f;
    for (int i = 0; i < 3; i++) out[i] = facing * s->n[i];
    float  visible = (sun > 0 || s->thin) ? sun_visibility(r, s->x, out, turn) : 0;
    float  sky = sky_visibility(r, s->x, s->n, jx, jy);
    colour light = {0, 0, 0};
    light = add(light, visible * clamp(sun), SUNLIGHT);
    float half_up = 0.5f + 0.5f * s->n[1];
    light = add(light, sky * (0.35f + 0.65f * half_up), SKYLIGHT);
    const double *g = r->options.ground_colour; // what the ground throws back
    light = add(light, 0.55f * (1 - half_up) * (0.3f + 0.7f * sky),
                (colour){(float)g[0] * 2.2f, (float)g[1] * 2.2f, (float)g[2] * 2.0f});
    colour c = times(s->albedo, light);
    if (s->thin) c = add(c, 0.45f * visible * clamp(-sun), times(times(s->albedo, THROUGH), SUNLIGHT));
    if (s->roughness < 0.95f && sun > 0) { // Blinn's highlight
        float h[3] = {r->sun[0] + s->toward_eye[0], r->sun[1] + s->toward_eye[1], r->sun[2] + s->toward_eye[2]};
        float length = sqrtf(dot(h, h)) + 1e-6f, shine = 2 / (s->roughness * s->roughness * s->roughness + 0.01f);
        c = add(c, visible * 0.04f * (shine + 2) / 8 * powf(clamp(dot(h, s->n) / length), shine), SUNLIGHT);
    }
    return c;
}

// What the camera sees through a point of the screen, as a ray.
static void screen_ray(const render_view *view, float x, float y, float direction[3]) {
    float right = (x - view->centre_x) / view->scale, down = (y - view->centre_y) / view->scale, length = 0;
    for (int i = 0; i < 3; i++) {
        direction[i] = right * view->axes[i] + down * view->axes[3 + i] + view->axes[6 + i];
        length += direction[i] * direction[i];
    }
    for (int i = 0; i < 3; i++) direction[i] /= sqrtf(length);
}

static colour shade_background(const scene_renderer *r, const float ray[3], uint32_t px, uint32_t py) {
    colour sky = sky_colour(r, ray);
    float  above = r->view.eye[1] - r->ground_height;
    if (!r->options.ground || ray[1] > -1e-4f || above <= 0) return sky;
    float         far = above / -ray[1], away[3], level = HUGE_VALF;
    surface_point s = {.n = {0, 1, 0}, .roughness = 1};
    for (int i = 0; i < 3; i++) s.x[i] = r->view.eye[i] + far * ray[i], s.toward_eye[i] = -ray[i];
    for (int i = 0; i < 3; i++) away[i] = s.x[i] - r->centre[i];
    level = sqrtf(away[0] * away[0] + away[2] * away[2]) / r->radius;
    float fade = smooth(2.5f, 26, level);
    if (fade >= 1) return mix(sky, HORIZON, 0.5f);
    const double *g = r->options.ground_colour;
    // a little unevenness, so that the ground has a scale
    float grain = scramble((uint32_t)(int32_t)floorf(s.x[0] / r->radius * 300),
                           (uint32_t)(int32_t)floorf(s.x[2] / r->radius * 300));
    float tone = 0.96f + 0.08f * grain * clamp(1.5f - level / 3);
    s.albedo = (colour){(float)g[0] * tone, (float)g[1] * tone, (float)g[2] * tone};
    float horizon[3] = {ray[0], 0, ray[2]};
    return mix(shade_point(r, &s, px, py), sky_colour(r, horizon), fade);
}

static colour shade_triangle(const scene_renderer *r, uint32_t triangle, float sx, float sy, const float ray[3],
                             uint32_t px, uint32_t py) {
    const scene_drawing *d = r->drawing;
    const int           *corner = d->triangles + 3 * (size_t)triangle;
    const float         *p[3];
    for (int k = 0; k < 3; k++) p[k] = r->scratch.projected + 3 * (size_t)corner[k];
    float area = (p[1][0] - p[0][0]) * (p[2][1] - p[0][1]) - (p[1][1] - p[0][1]) * (p[2][0] - p[0][0]);
    float w[3], sum = 0, uv[2] = {0, 0};
    w[1] = ((sx - p[0][0]) * (p[2][1] - p[0][1]) - (sy - p[0][1]) * (p[2][0] - p[0][0])) / area;
    w[2] = ((sy - p[0][1]) * (p[1][0] - p[0][0]) - (sx - p[0][0]) * (p[1][1] - p[0][1])) / area;
    w[0] = 1 - w[1] - w[2];
    for (int k = 0; k < 3; k++) w[k] *= p[k][2], sum += w[k]; // perspective
    const scene_paint *paint = &d->paints[d->paint[triangle]];
    surface_point      s = {.albedo = {paint->colour[0], paint->colour[1], paint->colour[2]},
                            .roughness = (float)paint->roughness,
                            .thin = paint->double_sided};
    for (int k = 0; k < 3; k++) {
        size_t v = (size_t)corner[k];
        for (size_t i = 0; i < 3; i++)
            s.x[i] += w[k] / sum * d->positions[3 * v + i], s.n[i] += w[k] / sum * d->normals[3 * v + i];
        uv[0] += w[k] / sum * d->uv[2 * v], uv[1] += w[k] / sum * d->uv[2 * v + 1];
    }
    float length = sqrtf(dot(s.n, s.n)) + 1e-12f, side = dot(s.n, ray) > 0 ? -1.0f : 1.0f;
    for (int i = 0; i < 3; i++) s.n[i] *= side / length, s.toward_eye[i] = -ray[i];
    if (paint->image >= 0) {
        float texel[4];
        render_sample_image(&d->images[paint->image], uv, texel);
        s.albedo = times(s.albedo, (colour){texel[0], texel[1], texel[2]});
    }
    colour c = shade_point(r, &s, px, py);
    // air: what is behind the front of the stage lies in a little haze
    float away[3] = {s.x[0] - r->centre[0], s.x[1] - r->centre[1], s.x[2] - r->centre[2]};
    float air = 1 - expf(-(1 + dot(away, r->view.axes + 6) / r->radius) / 60);
    return mix(c, HORIZON, clamp(air));
}

// Filmic curve [Narkowicz 2015], then the display's.
static float tone(float x) {
    x *= 0.62f;
    return clamp(x * (2.51f * x + 0.03f) / (x * (2.43f * x + 0.59f) + 0.14f));
}
static uint8_t to_srgb(float x) {
    float c = x <= 0.0031308f ? 12.92f * x : 1.055f * powf(x, 1 / 2.4f) - 0.055f;
    return (uint8_t)lrintf(255 * clamp(c));
}

static void shade_row(void *context, int row, int worker) {
    (void)worker;
    scene_renderer *r = context;
    int             samples = r->options.samples;
    float           share = 1 / (float)(samples * samples);
    for (int column = 0; column < r->options.width; column++) {
        float sum[3] = {0, 0, 0};
        for (int k = 0; k < samples * samples; k++) {
            uint32_t x = (uint32_t)(column * samples + k % samples), y = (uint32_t)(row * samples + k / samples);
            size_t   at = (size_t)y * (size_t)r->screen.width + x;
            float    ray[3], sx = (float)x + 0.5f, sy = (float)y + 0.5f;
            screen_ray(&r->view, sx, sy, ray);
            colour c = r->screen.nearness[at] > 0 ? shade_triangle(r, r->screen.triangle[at], sx, sy, ray, x, y)
                                                  : shade_background(r, ray, x, y);
            sum[0] += share * tone(c.r), sum[1] += share * tone(c.g), sum[2] += share * tone(c.b);
        }
        uint8_t *pixel = r->image.pixels + 4 * ((size_t)row * (size_t)r->options.width + (size_t)column);
        for (int i = 0; i < 3; i++) pixel[i] = to_srgb(sum[i]);
        pixel[3] = 255;
    }
}

void render_shade(scene_renderer *renderer) {
    for (int k = 0; k < TAPS; k++) { // a spiral of golden angles, texels
        float radius = 3.2f * sqrtf(((float)k + 0.5f) / TAPS), angle = 2.399963f * (float)k;
        renderer->taps[2 * k] = radius * cosf(angle), renderer->taps[2 * k + 1] = radius * sinf(angle);
    }
    for (int k = 0; k < renderer->options.sky_directions; k++)
        for (int i = 0; i < 9; i++) renderer->sky_axes[i][k] = renderer->sky_views[k].axes[i];
    fem_parallel_for(renderer->options.height, shade_row, renderer);
}
