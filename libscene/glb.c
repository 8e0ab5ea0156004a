// The .glb writer, while frames come: checks, the spool, ranges of modes, bounds. glb_write.c makes the file of it.
#include "libscene/glb_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

scene_glb_options scene_glb_default_options(void) { return (scene_glb_options){.up = SCENE_UP_Y, .unit = 1}; }

// ---- what is refused ------------------------------------------------------------------------------------------

static bool all_finite(size_t count, const double *x) {
    for (size_t i = 0; i < count; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

static fem_status check_patches(const scene_surface *s, int look_count) {
    long long next = 0;
    for (int k = 0; k < s->patch_count; k++) {
        const scene_patch *p = &s->patches[k];
        if (p->look < 0 || p->look >= look_count)
            return fem_fail(FEM_BAD_INPUT, "surface \"%s\", patch %d: look %d, expected 0 to %d", s->name, k, p->look,
                            look_count - 1);
        if (p->first != next || p->count < 1)
            return fem_fail(FEM_BAD_INPUT, "surface \"%s\", patch %d: %d triangles from %d, expected some from %lld",
                            s->name, k, p->count, p->first, next);
        next += p->count;
    }
    if (next == s->triangle_count) return FEM_OK;
    return fem_fail(FEM_BAD_INPUT, "surface \"%s\": its patches have %lld triangles, it has %d", s->name, next,
                    s->triangle_count);
}

static fem_status check_surface(const scene_surface *s, int look_count) {
    if (s->vertex_count < 3 || s->triangle_count < 1 || s->r < 0)
        return fem_fail(FEM_BAD_INPUT, "surface \"%s\": %d vertices, %d triangles, %d modes, expected a surface",
                        s->name, s->vertex_count, s->triangle_count, s->r);
    size_t n3 = 3 * (size_t)s->vertex_count;
    if (n3 > SIZE_MAX / sizeof(double) / ((size_t)s->r + 1) || s->triangle_count > INT32_MAX / 3)
        return fem_fail(FEM_BAD_INPUT, "surface \"%s\": too large", s->name);
    for (size_t i = 0; i < 3 * (size_t)s->triangle_count; i++)
        if (s->triangles[i] < 0 || s->triangles[i] >= s->vertex_count)
            return fem_fail(FEM_BAD_INPUT, "surface \"%s\", triangle %zu: vertex %d, expected 0 to %d", s->name, i / 3,
                            s->triangles[i], s->vertex_count - 1);
    if (!all_finite(n3, s->positions) || !all_finite((size_t)s->r * n3, s->modes) ||
        (s->uv && !all_finite(2 * (size_t)s->vertex_count, s->uv)))
        return fem_fail(FEM_BAD_INPUT, "surface \"%s\": has numbers that are not finite", s->name);
    for (int v = 0; s->place && v < s->vertex_count; v++)
        if (s->place[v] < 0 || s->place[v] > v || s->place[s->place[v]] != s->place[v])
            return fem_fail(FEM_BAD_INPUT,
                            "surface \"%s\", vertex %d: at the place of %d, expected the first vertex there", s->name,
                            v, s->place[v]);
    return check_patches(s, look_count);
}

const char *glb_figure_name(const scene_glb *glb, int figure, char *buffer, size_t size) {
    const scene_figure *f = &glb->figures[figure];
    if (f->name) return f->name;
    snprintf(buffer, size, "%s %d", glb->surfaces[f->surface].name, figure);
    return buffer;
}

static fem_status check_figures(const scene_glb *glb) {
    char name[128];
    for (int i = 0; i < glb->figure_count; i++) {
        const scene_figure *f = &glb->figures[i];
        if (f->surface < 0 || f->surface >= glb->surface_count)
            return fem_fail(FEM_BAD_INPUT, "figure %d: surface %d, expected 0 to %d", i, f->surface,
                            glb->surface_count - 1);
        if (!(f->scale > 0) || !isfinite(f->scale))
            return fem_fail(FEM_BAD_INPUT, "figure \"%s\": scale %g, expected > 0",
                            glb_figure_name(glb, i, name, sizeof name), f->scale);
    }
    return FEM_OK;
}

static fem_status check_input(const scene_glb *glb) {
    fem_status status = FEM_OK;
    if (glb->look_count < 1 || glb->surface_count < 1 || glb->figure_count < 1)
        return fem_fail(FEM_BAD_INPUT, "%s: %d looks, %d surfaces, %d figures, expected some", glb->path,
                        glb->look_count, glb->surface_count, glb->figure_count);
    if (!(glb->options.unit > 0) || !isfinite(glb->options.unit))
        return fem_fail(FEM_BAD_INPUT, "%s: the unit is %g m, expected > 0", glb->path, glb->options.unit);
    for (int i = 0; i < glb->surface_count && status == FEM_OK; i++)
        status = check_surface(&glb->surfaces[i], glb->look_count);
    if (status == FEM_OK) status = glb_skin_check(glb);
    return status == FEM_OK ? check_figures(glb) : status;
}

// ---- the spool ------------------------------------------------------------------------------------------------

// An unnamed file in the folder of the result, which is where there must be room anyway.
static fem_status open_spool(scene_glb *glb) {
    size_t size = strlen(glb->path) + 16;
    char  *name = fem_alloc(size, 1);
    if (!name) return fem_fail(FEM_NO_MEMORY, "%s: no memory to write it", glb->path);
    snprintf(name, size, "%s.XXXXXX", glb->path);
    glb->spool = mkostemp(name, O_CLOEXEC);
    fem_status status = FEM_OK;
    if (glb->spool < 0)
        status = fem_fail(FEM_IO, "%s: cannot be created: %s", glb->path, strerror(errno));
    else
        unlink(name);
    fem_free(name);
    return status;
}

static fem_status spool_write(scene_glb *glb, const char *bytes, size_t size) {
    while (size > 0) {
        ssize_t done = write(glb->spool, bytes, size);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return fem_fail(FEM_IO, "%s: cannot be written: %s", glb->path, strerror(errno));
        bytes += done;
        size -= (size_t)done;
    }
    return FEM_OK;
}

fem_status glb_spool_read(const scene_glb *glb, int frame, size_t offset, size_t bytes, void *to) {
    off_t at = (off_t)frame * (off_t)glb->row_bytes + (off_t)offset;
    for (char *target = to; bytes > 0;) {
        ssize_t done = pread(glb->spool, target, bytes, at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0)
            return fem_fail(FEM_IO, "%s: its frames cannot be read again: %s", glb->path,
                            done < 0 ? strerror(errno) : "the file is short");
        target += done, at += done;
        bytes -= (size_t)done;
    }
    return FEM_OK;
}

// ---- life -----------------------------------------------------------------------------------------------------

void scene_glb_abandon(scene_glb *glb) {
    if (!glb) return;
    for (int i = 0; i < glb->surface_count; i++) {
        if (glb->groups) {
            fem_free(glb->groups[i].figures);
            fem_free(glb->groups[i].low);
            fem_free(glb->groups[i].high);
        }
        if (glb->meshes) {
            fem_free(glb->meshes[i].mode);
            fem_free(glb->meshes[i].q_low);
            fem_free(glb->meshes[i].q_up);
        }
    }
    if (glb->spool >= 0) close(glb->spool);
    fem_file_abandon(glb->file);
    glb_plan_destroy(&glb->plan);
    glb_skin_destroy(&glb->skin);
    void *arrays[] = {glb->path, glb->groups, glb->q_start, glb->place, glb->row,    glb->first_row, glb->moves,
                      glb->last, glb->boxes,  glb->box_at,  glb->times, glb->bounds, glb->meshes,    glb->channels};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) fem_free(arrays[i]);
    fem_free(glb);
}

// Figures by surface, and where each part of a frame lies in the spool.
static fem_status make_groups(scene_glb *glb) {
    size_t q = 0, row = 0;
    for (int i = 0; i < glb->figure_count; i++) {
        glb_group *g = &glb->groups[glb->figures[i].surface];
        glb->place[i] = g->count++;
        glb->q_start[i] = q;
        q += (size_t)glb->surfaces[glb->figures[i].surface].r;
    }
    for (int s = 0; s < glb->surface_count; s++) {
        glb_group *g = &glb->groups[s];
        size_t     count = (size_t)g->count, r = (size_t)glb->surfaces[s].r;
        g->figures = fem_alloc(count, sizeof *g->figures);
        g->low = fem_alloc(r, sizeof *g->low), g->high = fem_alloc(r, sizeof *g->high);
        if (!g->figures || !g->low || !g->high) return fem_fail(FEM_NO_MEMORY, "%s: no memory to write it", glb->path);
        for (size_t l = 0; l < r; l++) g->low[l] = count > 0 ? INFINITY : 0, g->high[l] = count > 0 ? -INFINITY : 0;
        g->translations = row, row += 12 * count;
        g->rotations = row, row += 8 * count;
        g->q = row, row += 4 * r * count;
    }
    for (int i = 0; i < glb->figure_count; i++) glb->groups[glb->figures[i].surface].figures[glb->place[i]] = i;
    glb->row_bytes = row;
    return FEM_OK;
}

// Boxes around the rest shape and around the displacements of each mode, from which those of frames follow.
static void make_boxes(scene_glb *glb) {
    for (int s = 0; s < glb->surface_count; s++) {
        const scene_surface *surface = &glb->surfaces[s];
        size_t               n3 = 3 * (size_t)surface->vertex_count;
        for (int l = 0; l <= surface->r; l++) {
            const double *x = l == 0 ? surface->positions : surface->modes + (size_t)(l - 1) * n3;
            double       *box = glb->boxes + glb->box_at[s] + 6 * (size_t)l;
            for (size_t i = 0; i < 3; i++) box[i] = box[3 + i] = x[i];
            for (size_t i = 0; i < n3; i++)
                box[i % 3] = fmin(box[i % 3], x[i]), box[3 + i % 3] = fmax(box[3 + i % 3], x[i]);
        }
    }
}

fem_status scene_glb_create(scene_glb **created, const char *path, int look_count, const scene_look *looks,
                            int surface_count, const scene_surface *surfaces, int figure_count,
                            const scene_figure *figures, const scene_glb_options *options) {
    fem_status status = FEM_OK;
    scene_glb *glb = fem_calloc(1, sizeof *glb);
    if (!glb) return fem_fail(FEM_NO_MEMORY, "%s: no memory to write it", path);
    *glb = (scene_glb){.look_count = look_count,
                       .surface_count = surface_count,
                       .figure_count = figure_count,
                       .looks = looks,
                       .surfaces = surfaces,
                       .figures = figures,
                       .spool = -1};
    glb->options = options ? *options : scene_glb_default_options();
    glb->path = fem_copy_string(path);
    if (!glb->path) {
        glb->surface_count = 0;
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory to write it", path);
        goto done;
    }
    FEM_TRY(check_input(glb));
    size_t n = (size_t)figure_count, count = (size_t)surface_count, boxes = 0;
    glb->box_at = fem_alloc(count, sizeof *glb->box_at);
    for (size_t s = 0; s < count && glb->box_at; s++) glb->box_at[s] = boxes, boxes += 6 * ((size_t)surfaces[s].r + 1);
    glb->groups = fem_calloc(count, sizeof *glb->groups);
    glb->meshes = fem_calloc(count, sizeof *glb->meshes);
    glb->q_start = fem_alloc(n, sizeof *glb->q_start);
    glb->place = fem_alloc(n, sizeof *glb->place);
    glb->moves = fem_calloc(2 * n, sizeof *glb->moves);
    glb->last = fem_calloc(4 * n, sizeof *glb->last);
    glb->channels = fem_alloc(3 * n, sizeof *glb->channels);
    glb->boxes = fem_alloc(boxes, sizeof *glb->boxes);
    if (!glb->box_at || !glb->groups || !glb->meshes || !glb->q_start || !glb->place || !glb->moves || !glb->last ||
        !glb->channels || !glb->boxes) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory for %d figures", path, figure_count);
        goto done;
    }
    FEM_TRY(make_groups(glb));
    make_boxes(glb);
    glb->row = fem_alloc(glb->row_bytes, 1);
    glb->first_row = fem_alloc(glb->row_bytes, 1);
    if (!glb->row || !glb->first_row) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory for %d figures", path, figure_count);
        goto done;
    }
    FEM_TRY(open_spool(glb));
    *created = glb;
    glb = NULL;
done:
    scene_glb_abandon(glb);
    return status;
}

// ---- frames ---------------------------------------------------------------------------------------------------

// Adds the box of a figure: intervals of X + sum U_l q_l, then the eight corners turned into the world.
static void grow_bounds(const scene_glb *glb, int figure, const scene_pose *pose, const double *q, double bounds[6]) {
    const scene_figure *f = &glb->figures[figure];
    const double       *box = glb->boxes + glb->box_at[f->surface];
    double              local[6];
    memcpy(local, box, sizeof local);
    for (int l = 0; l < glb->surfaces[f->surface].r; l++) {
        const double *mode = box + 6 * ((size_t)l + 1);
        for (int i = 0; i < 3; i++) {
            local[i] += q[l] * mode[q[l] > 0 ? i : 3 + i];
            local[3 + i] += q[l] * mode[q[l] > 0 ? 3 + i : i];
        }
    }
    for (int corner = 0; corner < 8; corner++) {
        double x[3], y[3];
        for (int i = 0; i < 3; i++) x[i] = f->scale * local[corner >> i & 1 ? 3 + i : i];
        mat3_mul_vec(y, pose->Q, x);
        for (int i = 0; i < 3; i++) {
            bounds[i] = fmin(bounds[i], pose->p[i] + y[i]);
            bounds[3 + i] = fmax(bounds[3 + i], pose->p[i] + y[i]);
        }
    }
}

static void put_figure(scene_glb *glb, int figure, const scene_pose *pose, const double *q) {
    int        surface = glb->figures[figure].surface, r = glb->surfaces[surface].r;
    glb_group *g = &glb->groups[surface];
    size_t     place = (size_t)glb->place[figure], at_p = g->translations + 12 * place, at_q = g->rotations + 8 * place;
    float      p[3] = {(float)pose->p[0], (float)pose->p[1], (float)pose->p[2]};
    double     turn[4], *last = glb->last + 4 * (size_t)figure, same = 0;
    int16_t    packed[4];
    quaternion_from_matrix(turn, pose->Q);
    for (int i = 0; i < 4; i++) same += turn[i] * last[i];
    for (int i = 0; i < 4; i++) last[i] = same < 0 ? -turn[i] : turn[i]; // the short way from frame to frame
    quaternion_pack(packed, last);
    memcpy(glb->row + at_p, p, 12);
    memcpy(glb->row + at_q, packed, 8);
    float *values = (float *)(void *)(glb->row + g->q) + place * (size_t)r;
    for (int l = 0; l < r; l++) {
        values[l] = (float)q[l];
        g->low[l] = fminf(g->low[l], values[l]), g->high[l] = fmaxf(g->high[l], values[l]);
    }
    if (glb->frames == 0) return;
    if (memcmp(glb->row + at_p, glb->first_row + at_p, 12) != 0) glb->moves[figure] = true;
    if (memcmp(glb->row + at_q, glb->first_row + at_q, 8) != 0) glb->moves[glb->figure_count + figure] = true;
}

// Turns that are no rotations would come out as something else without a word.
static bool is_rotation(const double Q[9]) {
    double product[9];
    mat3_mul_nt(product, Q, Q);
    for (int i = 0; i < 9; i++)
        if (!(fabs(product[i] - (i % 4 == 0)) < 1e-6)) return false;
    return mat3_det(Q) > 0;
}

static fem_status check_frame(const scene_glb *glb, double time, const scene_pose *poses, const double *q) {
    char name[128];
    if (!isfinite(time) || (glb->frames > 0 && !((float)time > glb->times[glb->frames - 1])))
        return fem_fail(FEM_BAD_INPUT, "%s: frame %d at %g s does not come after the one before", glb->path,
                        glb->frames, time);
    for (int i = 0; i < glb->figure_count; i++) {
        size_t r = (size_t)glb->surfaces[glb->figures[i].surface].r;
        bool   finite = all_finite(3, poses[i].p) && all_finite(r, q + glb->q_start[i]);
        for (int k = 0; k < 3 && finite; k++) finite = fabs(poses[i].p[k]) < 1e30;
        for (size_t l = 0; l < r && finite; l++) finite = fabs(q[glb->q_start[i] + l]) < 1e30;
        if (!finite || !is_rotation(poses[i].Q))
            return fem_fail(FEM_UNSTABLE, "%s: frame %d, figure \"%s\": %s", glb->path, glb->frames,
                            glb_figure_name(glb, i, name, sizeof name),
                            finite ? "its turn is not a rotation" : "its motion is not finite");
    }
    return FEM_OK;
}

fem_status scene_glb_frame(scene_glb *glb, double time, const scene_pose *poses, const double *q) {
    fem_status status = FEM_OK;
    size_t     frames = (size_t)glb->frames;
    double     bounds[6] = {INFINITY, INFINITY, INFINITY, -INFINITY, -INFINITY, -INFINITY};
    FEM_TRY(check_frame(glb, time, poses, q));
    FEM_TRY(fem_grow((void **)&glb->times, &glb->times_room, frames + 1, sizeof *glb->times));
    FEM_TRY(fem_grow((void **)&glb->bounds, &glb->bounds_room, 6 * (frames + 1), sizeof *glb->bounds));
    for (int i = 0; i < glb->figure_count; i++) {
        put_figure(glb, i, &poses[i], q + glb->q_start[i]);
        grow_bounds(glb, i, &poses[i], q + glb->q_start[i], bounds);
    }
    FEM_TRY(spool_write(glb, glb->row, glb->row_bytes));
    if (frames == 0) memcpy(glb->first_row, glb->row, glb->row_bytes);
    glb->times[frames] = (float)time;
    for (int i = 0; i < 6; i++) glb->bounds[6 * frames + (size_t)i] = (float)bounds[i];
    glb->frames++;
done:
    return status;
}
