// A small tree with motion of its own making, for tests of .glb files: a branch class (tube, bending and torsion modes)
// and a leaf class (plate, two modes), figures with turns, scales and smooth motion in time.
#ifndef LIMBER_TEST_GLB_CASE_H
#define LIMBER_TEST_GLB_CASE_H

#include "tests/support.h"

#include <math.h>

enum { CASE_LOOKS = 2, CASE_SURFACES = 2, CASE_BRANCH_MODES = 3, CASE_LEAF_MODES = 2 };

typedef struct glb_case {
    scene_look    looks[CASE_LOOKS];
    scene_surface surfaces[CASE_SURFACES];
    scene_patch   patches[CASE_SURFACES];
    double       *memory[2 * CASE_SURFACES];
    int          *triangles[CASE_SURFACES];
    int           figure_count, q_count;
    scene_figure *figures;
    scene_pose   *poses;
    double       *q;
} glb_case;

// A grid of (around + 1 or around) x (along + 1) vertices: a tube when `around` closes, else a plate.
static inline void case_surface(glb_case *c, int s, bool tube, int around, int along) {
    int     ring = tube ? around : around + 1, n = ring * (along + 1), t = 0;
    double *x = malloc(sizeof *x * 3 * (size_t)n), *U = calloc((size_t)(3 * n * 3), sizeof *U);
    int    *triangles = malloc(sizeof *triangles * (size_t)(6 * around * along));
    for (int k = 0; k <= along; k++)
        for (int i = 0; i < ring; i++) {
            double *p = x + 3 * (k * ring + i), s1 = (double)k / along, angle = 2 * M_PI * i / around;
            double  radius = 0.1 * (1 - 0.7 * s1);
            p[1] = tube ? 2 * s1 : s1 * 0.3;
            p[0] = tube ? radius * cos(angle) : 0.1 * ((double)i / around - 0.5) * (0.4 + sin(3 * s1));
            p[2] = tube ? radius * sin(angle) : 0.02 * s1 * s1;
            double *a = U + 3 * (k * ring + i), *b = a + 3 * n, *d = b + 3 * n;
            a[0] = s1 * s1, b[2] = s1 * s1; // bending both ways, torsion
            if (tube) d[0] = -p[2] * s1 * 3, d[2] = p[0] * s1 * 3;
        }
    for (int k = 0; k < along; k++)
        for (int i = 0; i < around; i++) {
            int a = k * ring + i, b = k * ring + (i + 1) % ring, corners[6] = {a, a + ring, b, b, a + ring, b + ring};
            memcpy(triangles + 3 * t, corners, sizeof corners);
            t += 2;
        }
    c->memory[2 * s] = x, c->memory[2 * s + 1] = U, c->triangles[s] = triangles;
    c->patches[s] = (scene_patch){0, t, s};
    c->surfaces[s] = (scene_surface){.name = tube ? "branch" : "leaf",
                                     .vertex_count = n,
                                     .positions = x,
                                     .triangle_count = t,
                                     .triangles = triangles,
                                     .patch_count = 1,
                                     .patches = &c->patches[s],
                                     .r = tube ? CASE_BRANCH_MODES : CASE_LEAF_MODES,
                                     .modes = U};
}

static inline void case_create(glb_case *c, int branches, int leaves) {
    *c = (glb_case){.looks = {{"bark", {0.2, 0.12, 0.07}, 0.9, false}, {"leaf", {0.15, 0.3, 0.05}, 0.7, true}}};
    case_surface(c, 0, true, 12, 20);
    case_surface(c, 1, false, 4, 8);
    c->figure_count = branches + leaves;
    c->figures = calloc((size_t)c->figure_count, sizeof *c->figures);
    c->poses = calloc((size_t)c->figure_count, sizeof *c->poses);
    for (int i = 0; i < c->figure_count; i++) {
        c->figures[i] = (scene_figure){.surface = i >= branches,

                                       .scale = i == 0 ? 1 : 0.5 + 0.1 * (i % 6)};
        c->q_count += c->surfaces[i >= branches].r;
    }
    c->q = calloc((size_t)c->q_count, sizeof *c->q);
}

static inline void case_destroy(glb_case *c) {
    for (int i = 0; i < 2 * CASE_SURFACES; i++) free(c->memory[i]);
    for (int i = 0; i < CASE_SURFACES; i++) free(c->triangles[i]);
    free(c->figures), free(c->poses), free(c->q);
}

// Poses and q at a time; figure 0 stands still but for its modes. `amplitude` of the modes.
static inline void case_move(glb_case *c, double time, double amplitude) {
    int at = 0;
    for (int i = 0; i < c->figure_count; i++) {
        int    r = c->surfaces[c->figures[i].surface].r;
        double phase = 1.7 * i, turn[3] = {1.5 * sin(phase), 2 * cos(2 * phase), 1.3 * sin(3 * phase)};
        for (int k = 0; k < 3 && i > 0; k++) turn[k] += 0.4 * sin(2 * time + phase + k);
        if (i == 0) turn[0] = turn[1] = turn[2] = 0;
        mat3_exp(c->poses[i].Q, turn);
        double radius = 1.5 * sqrt((double)(i % 97) / 97);
        c->poses[i].p[0] = i == 0 ? 0 : radius * cos(phase) + 0.1 * sin(1.3 * time + phase);
        c->poses[i].p[1] = i == 0 ? 0 : 1 + radius * sin(0.7 * phase);
        c->poses[i].p[2] = i == 0 ? 0 : radius * sin(phase) + 0.05 * cos(time + phase);
        for (int l = 0; l < r; l++) c->q[at++] = amplitude * (0.2 + 0.1 * l) * sin((1 + l) * time + phase + l);
    }
}

// True position of a vertex of a figure.
static inline void case_vertex(const glb_case *c, int figure, int q_start, int v, double x[3]) {
    const scene_figure  *f = &c->figures[figure];
    const scene_surface *s = &c->surfaces[f->surface];
    double               y[3];
    for (int i = 0; i < 3; i++) {
        y[i] = s->positions[3 * v + i];
        for (int l = 0; l < s->r; l++)
            y[i] += s->modes[(size_t)l * 3 * (size_t)s->vertex_count + (size_t)(3 * v + i)] * c->q[q_start + l];
        y[i] *= f->scale;
    }
    mat3_mul_vec(x, c->poses[figure].Q, y);
    for (int i = 0; i < 3; i++) x[i] += c->poses[figure].p[i];
}

// Writes `frames` frames of the case at `rate` per second.
static inline fem_status case_write(glb_case *c, const char *path, int frames, double rate, double amplitude,
                                    const scene_glb_options *options, scene_glb_report *report) {
    scene_glb *glb = NULL;
    fem_status status = scene_glb_create(&glb, path, CASE_LOOKS, c->looks, CASE_SURFACES, c->surfaces, c->figure_count,
                                         c->figures, options);
    for (int f = 0; f < frames && status == FEM_OK; f++) {
        case_move(c, f / rate, amplitude);
        status = scene_glb_frame(glb, f / rate, c->poses, c->q);
    }
    if (status != FEM_OK) {
        scene_glb_abandon(glb);
        return status;
    }
    return scene_glb_commit(glb, report);
}

#endif
