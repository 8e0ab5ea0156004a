// The .glb file out of the frames that were spooled: plan, JSON, then the binary chunk, view after view.
#include "libscene/glb_internal.h"

#include <string.h>

enum { HEADER = 12, CHUNK_HEADER = 8, GATHER = 1 << 25 }; // bytes; GATHER: of tracks that are put together at a time

// ---- the plan -------------------------------------------------------------------------------------------------

static size_t padded(size_t bytes) { return (bytes + 3) / 4 * 4; }

fem_status glb_plan_view(glb_plan *plan, size_t bytes, int stride, int target, int *view) {
    fem_status status =
        fem_grow((void **)&plan->views, &plan->view_room, (size_t)plan->view_count + 1, sizeof *plan->views);
    if (status != FEM_OK) return status;
    plan->views[plan->view_count] =
        (glb_view){.offset = plan->bytes, .length = bytes, .stride = stride, .target = target};
    plan->bytes += padded(bytes);
    *view = plan->view_count++;
    return FEM_OK;
}

fem_status glb_plan_accessor(glb_plan *plan, const glb_accessor *accessor, int *number) {
    fem_status status = fem_grow((void **)&plan->accessors, &plan->accessor_room, (size_t)plan->accessor_count + 1,
                                 sizeof *plan->accessors);
    if (status != FEM_OK) return status;
    plan->accessors[plan->accessor_count] = *accessor;
    plan->accessors[plan->accessor_count].view = plan->view_count - 1;
    *number = plan->accessor_count++;
    return FEM_OK;
}

void glb_plan_destroy(glb_plan *plan) {
    fem_free(plan->views);
    fem_free(plan->accessors);
    *plan = (glb_plan){0};
}

// Modes that move something are kept: more than a millionth of the size of the surface, which no weight of 16 bits
// could show anyway when others move more.
static fem_status choose_targets(scene_glb *glb, int s) {
    const scene_surface *surface = &glb->surfaces[s];
    const glb_group     *g = &glb->groups[s];
    glb_mesh            *mesh = &glb->meshes[s];
    size_t               r = (size_t)surface->r;
    mesh->mode = fem_alloc(r, sizeof *mesh->mode);
    mesh->q_low = fem_alloc(r, sizeof *mesh->q_low), mesh->q_up = fem_alloc(r, sizeof *mesh->q_up);
    if (!mesh->mode || !mesh->q_low || !mesh->q_up)
        return fem_fail(FEM_NO_MEMORY, "%s: no memory to write it", glb->path);
    double size = glb_surface_size(surface);
    for (int l = 0; l < surface->r && !glb->options.skin; l++) { // a skin has joints alone
        if (!(((double)g->high[l] - (double)g->low[l]) * glb_mode_size(surface, l) > 1e-6 * size)) continue;
        mesh->mode[mesh->targets] = l;
        mesh->q_low[mesh->targets] = g->low[l];
        mesh->q_up[mesh->targets++] = g->high[l];
    }
    return FEM_OK;
}

static fem_status plan_surface(scene_glb *glb, const scene_surface *surface, glb_mesh *mesh) {
    fem_status status = FEM_OK;
    glb_plan  *plan = &glb->plan;
    size_t     vertices = (size_t)surface->vertex_count, width = vertices > 65535 ? 4 : 2;
    int        view, number;
    // patch after patch, each beginning on a multiple of 4, which is one of its width too
    for (int k = 0; k < surface->patch_count; k++) {
        size_t       corners = 3 * (size_t)surface->patches[k].count;
        glb_accessor indices = {.count = corners, .component = width == 4 ? GLTF_UINT : GLTF_USHORT, .type = "SCALAR"};
        FEM_TRY(glb_plan_view(plan, width * corners, 0, GLTF_INDICES, &view));
        FEM_TRY(glb_plan_accessor(plan, &indices, &number));
        if (k == 0) mesh->indices = number;
    }
    glb_accessor vectors = {.count = vertices, .component = GLTF_FLOAT, .type = "VEC3"};
    FEM_TRY(glb_plan_view(plan, 12 * vertices, 0, GLTF_VERTICES, &view));
    vectors.bounds = 3; // set when the numbers are known
    FEM_TRY(glb_plan_accessor(plan, &vectors, &mesh->positions));
    vectors.bounds = 0;
    FEM_TRY(glb_plan_view(plan, 12 * vertices, 0, GLTF_VERTICES, &view));
    FEM_TRY(glb_plan_accessor(plan, &vectors, &mesh->normals));
    mesh->uv = -1;
    if (surface->uv) {
        glb_accessor uv = {.count = vertices, .component = GLTF_FLOAT, .type = "VEC2"};
        FEM_TRY(glb_plan_view(plan, 8 * vertices, 0, GLTF_VERTICES, &view));
        FEM_TRY(glb_plan_accessor(plan, &uv, &mesh->uv));
    }
    if (mesh->targets > 0)
        FEM_TRY(glb_plan_view(plan, 24 * vertices * (size_t)mesh->targets, 12, GLTF_VERTICES, &view));
    for (int k = 0; k < 2 * mesh->targets; k++) {
        vectors.offset = 12 * vertices * (size_t)k;
        vectors.bounds = k % 2 == 0 ? 3 : 0;
        FEM_TRY(glb_plan_accessor(plan, &vectors, &number));
        if (k == 0) mesh->deltas = number;
    }
done:
    return status;
}

// The kinds of tracks that a figure can have.
enum { TRANSLATION, ROTATION, WEIGHTS, KINDS };

static size_t track_width(const scene_glb *glb, int kind, int s) { // bytes a frame in the file
    return kind == TRANSLATION ? 12 : kind == ROTATION ? 8 : 2 * (size_t)glb->meshes[s].targets;
}

static bool has_track(const scene_glb *glb, int kind, int figure) {
    if (glb->frames < 2) return false;
    if (kind == WEIGHTS) return glb->meshes[glb->figures[figure].surface].targets > 0;
    return glb->moves[kind == TRANSLATION ? figure : glb->figure_count + figure];
}

static fem_status plan_tracks(scene_glb *glb, int s, int kind) {
    fem_status       status = FEM_OK;
    const glb_group *g = &glb->groups[s];
    size_t           frames = (size_t)glb->frames, bytes = frames * track_width(glb, kind, s), tracks = 0;
    int              view;
    for (int i = 0; i < g->count; i++) tracks += has_track(glb, kind, g->figures[i]);
    if (tracks == 0) return FEM_OK;
    FEM_TRY(glb_plan_view(&glb->plan, bytes * tracks, 0, 0, &view));
    glb_accessor accessor = {.count = frames, .component = GLTF_FLOAT, .type = "VEC3"};
    if (kind == ROTATION) accessor.component = GLTF_SHORT, accessor.normalized = true, accessor.type = "VEC4";
    if (kind == WEIGHTS) {
        accessor.component = GLTF_USHORT, accessor.normalized = true, accessor.type = "SCALAR";
        accessor.count = frames * (size_t)glb->meshes[s].targets;
    }
    for (int i = 0; i < g->count; i++) {
        if (!has_track(glb, kind, g->figures[i])) continue;
        FEM_TRY(glb_plan_accessor(&glb->plan, &accessor, &glb->channels[KINDS * g->figures[i] + kind]));
        accessor.offset += bytes;
    }
done:
    return status;
}

static fem_status make_plan(scene_glb *glb) {
    fem_status status = FEM_OK;
    int        view;
    for (int i = 0; i < KINDS * glb->figure_count; i++) glb->channels[i] = -1;
    for (int s = 0; s < glb->surface_count; s++) {
        FEM_TRY(choose_targets(glb, s));
        if (!glb->options.skin) FEM_TRY(plan_surface(glb, &glb->surfaces[s], &glb->meshes[s]));
    }
    if (glb->options.skin) {
        FEM_TRY(glb_skin_create(glb));
        FEM_TRY(plan_surface(glb, &glb->skin.surface, &glb->skin.mesh));
        FEM_TRY(glb_skin_plan(glb));
    }
    size_t       frames = (size_t)glb->frames;
    glb_accessor times = {.count = frames, .component = GLTF_FLOAT, .type = "SCALAR", .bounds = 1};
    times.low[0] = glb->times[0], times.high[0] = glb->times[frames - 1];
    FEM_TRY(glb_plan_view(&glb->plan, 4 * frames, 0, 0, &view));
    FEM_TRY(glb_plan_accessor(&glb->plan, &times, &glb->time));
    glb_accessor bounds = {.count = 2 * frames, .component = GLTF_FLOAT, .type = "VEC3"};
    FEM_TRY(glb_plan_view(&glb->plan, 24 * frames, 0, 0, &view));
    FEM_TRY(glb_plan_accessor(&glb->plan, &bounds, &glb->bounds_accessor));
    for (int s = 0; s < glb->surface_count; s++)
        for (int kind = 0; kind < KINDS; kind++) FEM_TRY(plan_tracks(glb, s, kind));
done:
    return status;
}

// ---- the data -------------------------------------------------------------------------------------------------

void glb_put(scene_glb *glb, const void *bytes, size_t size) {
    fem_file_put(glb->file, bytes, size);
    glb->written += size;
}

static void pad(scene_glb *glb) {
    static const char zeros[4];
    glb_put(glb, zeros, padded(glb->written) - glb->written);
}

fem_status glb_begin_view(scene_glb *glb, int view) {
    pad(glb);
    if (view < glb->plan.view_count && glb->plan.views[view].offset == glb->written) return FEM_OK;
    return fem_fail(FEM_IO, "%s: view %d is not where it was planned", glb->path, view);
}

static fem_status put_indices(scene_glb *glb, const scene_surface *surface, const glb_mesh *mesh) {
    fem_status status = FEM_OK;
    for (int k = 0; k < surface->patch_count; k++) {
        const scene_patch *patch = &surface->patches[k];
        FEM_TRY(glb_begin_view(glb, glb->plan.accessors[mesh->indices + k].view));
        for (size_t i = 3 * (size_t)patch->first; i < 3 * ((size_t)patch->first + (size_t)patch->count); i++) {
            uint32_t wide = (uint32_t)surface->triangles[i];
            uint16_t narrow = (uint16_t)wide;
            if (surface->vertex_count > 65535)
                glb_put(glb, &wide, 4);
            else
                glb_put(glb, &narrow, 2);
        }
    }
done:
    return status;
}

static fem_status put_surface(scene_glb *glb, const scene_surface *surface, const glb_mesh *mesh,
                              const glb_form *form) {
    fem_status status = FEM_OK;
    size_t     n = (size_t)surface->vertex_count;
    FEM_TRY(put_indices(glb, surface, mesh));
    FEM_TRY(glb_begin_view(glb, glb->plan.accessors[mesh->positions].view));
    glb_put(glb, form->positions, 12 * n);
    FEM_TRY(glb_begin_view(glb, glb->plan.accessors[mesh->normals].view));
    glb_put(glb, form->normals, 12 * n);
    if (surface->uv) {
        FEM_TRY(glb_begin_view(glb, glb->plan.accessors[mesh->uv].view));
        for (size_t v = 0; v < n; v++) { // glTF counts v from the top
            float uv[2] = {(float)surface->uv[2 * v], (float)(1 - surface->uv[2 * v + 1])};
            glb_put(glb, uv, sizeof uv);
        }
    }
    if (mesh->targets > 0) {
        FEM_TRY(glb_begin_view(glb, glb->plan.accessors[mesh->deltas].view));
        glb_put(glb, form->deltas, 24 * n * (size_t)mesh->targets);
    }
done:
    return status;
}

// One figure's track of a kind out of the rows that were gathered for its group; `stride` bytes from frame to frame.
static void put_track(scene_glb *glb, int s, int kind, const char *from, size_t stride) {
    const glb_mesh *mesh = &glb->meshes[s];
    for (int frame = 0; frame < glb->frames; frame++, from += stride) {
        if (kind != WEIGHTS) {
            glb_put(glb, from, track_width(glb, kind, s));
            continue;
        }
        const float *q = (const float *)(const void *)from;
        for (int t = 0; t < mesh->targets; t++) {
            float    low = mesh->q_low[t], up = mesh->q_up[t];
            double   weight = ((double)q[mesh->mode[t]] - (double)low) / ((double)up - (double)low);
            uint16_t packed = (uint16_t)lround(65535 * fmin(fmax(weight, 0), 1));
            glb_put(glb, &packed, 2);
        }
    }
}

// Tracks lie figure by figure in the file and frame by frame in the spool: as many figures at a time are gathered as
// fit into memory that does not grow with them.
static fem_status put_tracks(scene_glb *glb, int s, int kind) {
    fem_status       status = FEM_OK;
    const glb_group *g = &glb->groups[s];
    char            *gathered = NULL;
    size_t           width = kind == TRANSLATION ? 12 : kind == ROTATION ? 8 : 4 * (size_t)glb->surfaces[s].r;
    size_t           start = kind == TRANSLATION ? g->translations : kind == ROTATION ? g->rotations : g->q;
    size_t           frames = (size_t)glb->frames, count = (size_t)g->count;
    size_t           together = width > 0 ? GATHER / (width * frames) : 0;
    bool             begun = false;
    together = together < 1 ? 1 : together < count ? together : count;
    for (size_t i = 0; i < count; i++) begun |= has_track(glb, kind, g->figures[i]);
    if (!begun) return FEM_OK;
    gathered = fem_alloc(together * frames, width);
    if (!gathered) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory for %d frames", glb->path, glb->frames);
        goto done;
    }
    begun = false;
    for (size_t from = 0; from < count; from += together) {
        size_t group = from + together < count ? together : count - from;
        for (int frame = 0; frame < glb->frames; frame++)
            FEM_TRY(glb_spool_read(glb, frame, start + from * width, group * width,
                                   gathered + (size_t)frame * group * width));
        for (size_t i = 0; i < group; i++) {
            int figure = g->figures[from + i];
            if (!has_track(glb, kind, figure)) continue;
            if (!begun) FEM_TRY(glb_begin_view(glb, glb->plan.accessors[glb->channels[KINDS * figure + kind]].view));
            begun = true;
            put_track(glb, s, kind, gathered + i * width, group * width);
        }
    }
done:
    fem_free(gathered);
    return status;
}

// Extremes of vectors, as the accessor of positions must have them.
static void set_bounds(glb_accessor *accessor, size_t count, const float *x) {
    for (int i = 0; i < 3; i++) accessor->low[i] = accessor->high[i] = x[i];
    for (size_t i = 0; i < 3 * count; i++) {
        accessor->low[i % 3] = fminf(accessor->low[i % 3], x[i]);
        accessor->high[i % 3] = fmaxf(accessor->high[i % 3], x[i]);
    }
}

static fem_status put_binary(scene_glb *glb, const glb_form *forms) {
    fem_status status = FEM_OK;
    for (int s = 0; s < glb->surface_count && !glb->options.skin; s++)
        FEM_TRY(put_surface(glb, &glb->surfaces[s], &glb->meshes[s], &forms[s]));
    if (glb->options.skin) {
        FEM_TRY(put_surface(glb, &glb->skin.surface, &glb->skin.mesh, &forms[0]));
        FEM_TRY(glb_skin_put(glb));
    }
    FEM_TRY(glb_begin_view(glb, glb->plan.accessors[glb->time].view));
    glb_put(glb, glb->times, 4 * (size_t)glb->frames);
    FEM_TRY(glb_begin_view(glb, glb->plan.accessors[glb->bounds_accessor].view));
    glb_put(glb, glb->bounds, 24 * (size_t)glb->frames);
    for (int s = 0; s < glb->surface_count; s++)
        for (int kind = 0; kind < KINDS; kind++) FEM_TRY(put_tracks(glb, s, kind));
    pad(glb);
done:
    return status;
}

static void put_words(scene_glb *glb, int count, const uint32_t *words) {
    for (int i = 0; i < count; i++) { // little-endian, whatever the machine
        unsigned char bytes[4] = {(unsigned char)words[i], (unsigned char)(words[i] >> 8),
                                  (unsigned char)(words[i] >> 16), (unsigned char)(words[i] >> 24)};
        fem_file_put(glb->file, bytes, 4);
    }
}

static void fill_report(const scene_glb *glb, double bytes, scene_glb_report *report) {
    *report = (scene_glb_report){.frames = glb->frames, .bytes = bytes, .skin_error = glb->skin.error};
    for (int s = 0; s < glb->surface_count; s++) {
        if (glb->meshes[s].targets > report->targets) report->targets = glb->meshes[s].targets;
        report->left_out += glb->surfaces[s].r - glb->meshes[s].targets;
    }
    for (int i = 0; i < 3; i++) report->low[i] = INFINITY, report->high[i] = -INFINITY;
    for (size_t f = 0; f < (size_t)glb->frames; f++)
        for (size_t i = 0; i < 3; i++) {
            report->low[i] = fmin(report->low[i], (double)glb->bounds[6 * f + i]);
            report->high[i] = fmax(report->high[i], (double)glb->bounds[6 * f + 3 + i]);
        }
}

static fem_status write_file(scene_glb *glb, scene_glb_report *report) {
    fem_status status = FEM_OK;
    scene_text json = {0};
    glb_form  *forms = fem_calloc((size_t)glb->surface_count, sizeof *forms);
    if (!forms) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory to write it", glb->path);
        goto done;
    }
    FEM_TRY(make_plan(glb));
    bool skin = glb->options.skin;
    for (int s = 0; s < (skin ? 1 : glb->surface_count); s++) {
        const scene_surface *surface = skin ? &glb->skin.surface : &glb->surfaces[s];
        const glb_mesh      *mesh = skin ? &glb->skin.mesh : &glb->meshes[s];
        size_t               n = (size_t)surface->vertex_count;
        FEM_TRY(glb_form_create(&forms[s], surface, mesh, glb->groups[s].low, glb->groups[s].high));
        set_bounds(&glb->plan.accessors[mesh->positions], n, forms[s].positions);
        for (int t = 0; t < mesh->targets; t++)
            set_bounds(&glb->plan.accessors[mesh->deltas + 2 * t], n, forms[s].deltas + 6 * n * (size_t)t);
    }
    FEM_TRY(glb_json(glb, &json));
    while (json.length % 4 != 0 && json.status == FEM_OK) scene_text_put(&json, " ", 1);
    FEM_TRY(json.status);
    double bytes = HEADER + 2.0 * CHUNK_HEADER + (double)json.length + (double)glb->plan.bytes;
    if (bytes > UINT32_MAX) {
        status = fem_fail(FEM_BAD_INPUT, "%s: %.1f GB are more than a .glb can hold; write fewer frames", glb->path,
                          bytes / 1e9);
        goto done;
    }
    FEM_TRY(fem_file_create(&glb->file, glb->path));
    put_words(glb, 5, (const uint32_t[]){GLB_MAGIC, 2, (uint32_t)bytes, (uint32_t)json.length, GLB_CHUNK_JSON});
    fem_file_put(glb->file, json.text, json.length);
    put_words(glb, 2, (const uint32_t[]){(uint32_t)glb->plan.bytes, GLB_CHUNK_BIN});
    FEM_TRY(put_binary(glb, forms));
    fem_file *file = glb->file;
    glb->file = NULL;
    FEM_TRY(fem_file_commit(file));
    if (report) fill_report(glb, bytes, report);
done:
    for (int s = 0; forms && s < glb->surface_count; s++) glb_form_destroy(&forms[s]);
    fem_free(forms);
    fem_free(json.text);
    return status;
}

fem_status scene_glb_commit(scene_glb *glb, scene_glb_report *report) {
    fem_status status = glb->frames == 0 ? fem_fail(FEM_BAD_INPUT, "%s: there are no frames to write", glb->path)
                                         : write_file(glb, report);
    scene_glb_abandon(glb);
    return status;
}
