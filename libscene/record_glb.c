// The .glb file of a run: see record_glb.h. The surface is cut up by limbs and coloured by materials; its vertices move
// with the elements that they lie in, those of the skin of a body without limbs with their own vertex.
#include "libscene/record_glb.h"

#include "libscene/class.h"
#include "libscene/trail.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    COMMON_TARGETS = 8, // that every program shows
    FRAMES_MOST = 2000, // of a motion without modes, whose frames are kept
};
static const double FRAME_TOLERANCE = 2e-5; // of the size, likewise

// The surface of a limb, or of the whole body, as the writer wants it.
typedef struct limb_surface {
    int          limb;
    int          vertex_count, triangle_count, patch_count;
    double      *positions, *uv, *modes;
    int         *place, *triangles;
    int         *from; // per vertex: which it is of the surface that it was taken from
    scene_patch *patches;
} limb_surface;

// Where surfaces come from: the whole body, or a part that has instances.
typedef struct surface_source {
    const fem_mesh    *mesh;
    fem_surface        skin;    // of the mesh, where it has no surface of its own
    const fem_surface *shown;   // that or the part's
    int               *element; // per triangle: of the mesh, that which is under its middle
    int               *look;    // per material of the mesh and then of the surface
} surface_source;

struct scene_record_glb {
    const scene    *s;
    char           *path;
    int             source_count;
    surface_source *sources;                     // of the body, or per part; without instances all zeros
    int             surface_count, figure_count; // a figure shows a surface; its limb is that of the surface, or
    bool            shared;                      // its own number: instances show the surfaces of their parts
    limb_surface   *parts;
    int             look_count;
    scene_look     *looks;
    scene_surface  *surfaces;
    scene_figure   *figures;
    scene_pose     *poses;
    scene_glb      *glb; // limbs: open from the beginning
    // without limbs: where the surface is in the mesh, and what it did
    fem_embedding embedding;
    int           frames;
    size_t        times_room, kept_room;
    double       *times, *kept; // 3 per vertex and frame
    // with checkpoints: what a frame has, a pose per figure and then q, or 3 per vertex
    scene_trail *trail;
    size_t       width;
    double      *row;
};

static void surface_destroy(limb_surface *p) {
    fem_free(p->positions), fem_free(p->uv), fem_free(p->modes), fem_free(p->place);
    fem_free(p->triangles), fem_free(p->patches), fem_free(p->from);
}

void scene_record_glb_destroy(scene_record_glb *r) {
    if (!r) return;
    scene_glb_abandon(r->glb);
    scene_trail_destroy(r->trail);
    fem_free(r->row);
    for (int i = 0; r->parts && i < r->surface_count; i++) surface_destroy(&r->parts[i]);
    for (int i = 0; r->sources && i < r->source_count; i++) {
        fem_surface_destroy(&r->sources[i].skin);
        fem_free(r->sources[i].element), fem_free(r->sources[i].look);
    }
    fem_free(r->sources);
    fem_embedding_destroy(&r->embedding);
    fem_free(r->path), fem_free(r->parts), fem_free(r->looks), fem_free(r->surfaces), fem_free(r->figures);
    fem_free(r->poses), fem_free(r->times), fem_free(r->kept);
    fem_free(r);
}

static fem_status no_memory(const scene_record_glb *r) {
    return fem_fail(FEM_NO_MEMORY, "%s: no memory to write it", r->path);
}

// ---- surfaces ------------------------------------------------------------------------------------------------------

// The element under each triangle's middle says whose it is and how it looks.
static fem_status find_elements(const scene_record_glb *r, surface_source *source) {
    fem_status         status = FEM_OK;
    const fem_surface *surface = source->shown;
    fem_embedding      middles = {0};
    size_t             count = (size_t)surface->triangle_count;
    double            *middle = fem_calloc(3 * count, sizeof *middle);
    if (!middle) return no_memory(r);
    for (size_t t = 0; t < count; t++)
        for (int k = 0; k < 3; k++)
            vec3_axpy(middle + 3 * t, 1.0 / 3, surface->vertices + 3 * (size_t)surface->triangles[3 * t + (size_t)k]);
    FEM_TRY(fem_embed_points(&middles, source->mesh, surface->triangle_count, middle));
    source->element = middles.element;
    middles.element = NULL;
done:
    fem_embedding_destroy(&middles);
    fem_free(middle);
    return status;
}

// Which material a triangle has: one of the mesh, or, after those, one that its surface names.
static int material_of(const surface_source *source, int triangle) {
    const fem_surface *surface = source->shown;
    if (surface->material && surface->material[triangle] >= 0)
        return source->mesh->material_count + surface->material[triangle];
    return source->mesh->regions[source->mesh->region[source->element[triangle]]].material;
}

static fem_status open_source(const scene_record_glb *r, const scene_part *part, surface_source *source) {
    fem_status status = FEM_OK;
    source->mesh = &part->mesh;
    source->shown = &part->surface;
    if (part->surface.vertex_count == 0) {
        FEM_TRY(part->skin ? scene_surface_of(&source->skin, NULL, source->mesh, part->skin_count, part->skin)
                           : fem_surface_of_mesh(&source->skin, source->mesh));
        source->shown = &source->skin;
    }
    FEM_TRY(find_elements(r, source));
    source->look =
        fem_calloc((size_t)(source->mesh->material_count + source->shown->material_count), sizeof *source->look);
    if (!source->look) return no_memory(r);
    for (int t = 0; t < source->shown->triangle_count; t++) source->look[material_of(source, t)] = 1;
done:
    return status;
}

static scene_look make_look(const char *name, int index) {
    static const double colours[][3] = {{0.34, 0.17, 0.08}, {0.16, 0.33, 0.07}, {0.55, 0.14, 0.22},
                                        {0.10, 0.24, 0.45}, {0.62, 0.42, 0.10}, {0.45, 0.45, 0.42}};
    scene_look          look = {.name = name, .roughness = 0.7};
    memcpy(look.colour, colours[(size_t)index % (sizeof colours / sizeof *colours)], sizeof look.colour);
    return look;
}

// Colours for the materials that can be seen, in their order; those of one name look alike. The scene has no say in it.
static fem_status make_looks(scene_record_glb *r) {
    size_t most = 0;
    for (int k = 0; k < r->source_count; k++)
        if (r->sources[k].mesh)
            most += (size_t)(r->sources[k].mesh->material_count + r->sources[k].shown->material_count);
    r->looks = fem_calloc(most, sizeof *r->looks);
    if (!r->looks) return no_memory(r);
    for (int k = 0; k < r->source_count; k++) {
        surface_source *source = &r->sources[k];
        if (!source->mesh) continue;
        int own = source->mesh->material_count, count = own + source->shown->material_count;
        for (int i = 0; i < count; i++) {
            const char *name = i < own ? source->mesh->materials[i].name : source->shown->materials[i - own];
            int         look = 0;
            if (!source->look[i]) continue;
            while (look < r->look_count && strcmp(r->looks[look].name, name) != 0) look++;
            if (look == r->look_count) r->looks[r->look_count++] = make_look(name, look);
            source->look[i] = look;
        }
    }
    return FEM_OK;
}

// Vertices of a limb while they are found: those at one place are a list, one for each texture coordinate.
typedef struct vertex_lists {
    int *first; // per vertex of the surface, or -1
    int *next;  // per vertex of the limb, or -1
    int *uv;    // likewise: its texture coordinate, or -1
} vertex_lists;

static int find_vertex(vertex_lists *lists, const fem_surface *surface, int v, int uv, const double origin[3],
                       limb_surface *p) {
    for (int k = lists->first[v]; k >= 0; k = lists->next[k])
        if (lists->uv[k] == uv) return k;
    int k = p->vertex_count++;
    vec3_sub(p->positions + 3 * (size_t)k, surface->vertices + 3 * (size_t)v, origin);
    lists->uv[k] = uv;
    p->from[k] = v;
    if (lists->first[v] < 0) {
        lists->first[v] = k, lists->next[k] = -1;
    } else { // behind the first, which the normals are kept at
        lists->next[k] = lists->next[lists->first[v]];
        lists->next[lists->first[v]] = k;
    }
    if (!p->uv) return k;
    p->place[k] = lists->first[v];
    for (size_t i = 0; i < 2; i++) p->uv[2 * (size_t)k + i] = uv < 0 ? 0 : surface->uv[2 * (size_t)uv + i];
    return k;
}

// The triangles of a limb, by look, with vertices of their own. `of` is the domain of each element; NULL: all are its.
static fem_status collect(const scene_record_glb *r, const surface_source *source, const int *of, int domain,
                          const double origin[3], limb_surface *p) {
    fem_status         status = FEM_OK;
    const fem_surface *surface = source->shown;
    size_t             triangles = 0;
    for (int t = 0; t < surface->triangle_count; t++) triangles += !of || of[source->element[t]] == domain;
    vertex_lists lists = {.first = fem_alloc((size_t)surface->vertex_count, sizeof(int)),
                          .next = fem_alloc(3 * triangles, sizeof(int)),
                          .uv = fem_alloc(3 * triangles, sizeof(int))};
    p->triangles = fem_alloc(3 * triangles, sizeof *p->triangles);
    p->positions = fem_alloc(9 * triangles, sizeof *p->positions); // at most three vertices each
    p->patches = fem_alloc((size_t)r->look_count, sizeof *p->patches);
    p->from = fem_alloc(3 * triangles, sizeof *p->from);
    if (surface->corners) {
        p->uv = fem_alloc(6 * triangles, sizeof *p->uv);
        p->place = fem_alloc(3 * triangles, sizeof *p->place);
    }
    if (!lists.first || !lists.next || !lists.uv || !p->triangles || !p->positions || !p->patches || !p->from ||
        (surface->corners && (!p->uv || !p->place))) {
        status = no_memory(r);
        goto done;
    }
    for (int v = 0; v < surface->vertex_count; v++) lists.first[v] = -1;
    for (int look = 0; look < r->look_count; look++) {
        scene_patch patch = {.first = p->triangle_count, .look = look};
        for (int t = 0; t < surface->triangle_count; t++) {
            if (source->look[material_of(source, t)] != look || (of && of[source->element[t]] != domain)) continue;
            for (size_t k = 0; k < 3; k++)
                p->triangles[3 * (size_t)p->triangle_count + k] =
                    find_vertex(&lists, surface, surface->triangles[3 * (size_t)t + k],
                                surface->corners ? surface->corners[3 * (size_t)t + k] : -1, origin, p);
            p->triangle_count++;
        }
        patch.count = p->triangle_count - patch.first;
        if (patch.count > 0) p->patches[p->patch_count++] = patch;
    }
done:
    fem_free(lists.first), fem_free(lists.next), fem_free(lists.uv);
    return status;
}

static fem_status make_modes(const scene_record_glb *r, const scene_limb *limb, limb_surface *p) {
    fem_status    status = FEM_OK;
    fem_embedding embedding = {0};
    size_t        n = 3 * (size_t)limb->mesh->vertex_count, rows = 3 * (size_t)p->vertex_count;
    FEM_TRY(fem_embed_points(&embedding, limb->mesh, p->vertex_count, p->positions));
    p->modes = fem_alloc(rows * (size_t)limb->r, sizeof *p->modes);
    if (!p->modes) {
        status = no_memory(r);
        goto done;
    }
    for (size_t l = 0; l < (size_t)limb->r; l++) fem_embedding_apply(&embedding, limb->U + l * n, p->modes + l * rows);
done:
    fem_embedding_destroy(&embedding);
    return status;
}

// Adds a surface; its number.
static int add_surface(scene_record_glb *r, const char *name, int modes, const limb_surface *p) {
    int k = r->surface_count++;
    r->parts[k] = *p;
    r->surfaces[k] = (scene_surface){.name = name,
                                     .vertex_count = p->vertex_count,
                                     .positions = p->positions,
                                     .uv = p->uv,
                                     .place = p->place,
                                     .triangle_count = p->triangle_count,
                                     .triangles = p->triangles,
                                     .patch_count = p->patch_count,
                                     .patches = p->patches,
                                     .r = modes,
                                     .modes = p->modes};
    return k;
}

// Adds the surface of a limb, and the figure that shows it; limbs without triangles have none.
static fem_status add_limb(scene_record_glb *r, const scene_motion *motion, int index) {
    fem_status   status = FEM_OK;
    scene_limb   limb = {.name = r->s->parts[r->s->object].name};
    const int   *of = motion->limb_count < 2 ? NULL : r->s->tree.domains.element_domain;
    limb_surface p = {.limb = index};
    if (motion->limb_count > 0) limb = motion->limb(motion, index);
    FEM_TRY(collect(r, &r->sources[0], of, index, limb.origin, &p));
    if (p.triangle_count == 0) goto done;
    if (motion->limb_count > 0) FEM_TRY(make_modes(r, &limb, &p));
    int k = add_surface(r, limb.name, limb.r, &p);
    r->figures[r->figure_count++] = (scene_figure){.name = limb.name, .surface = k, .scale = 1};
    r->width += (size_t)limb.r;
    p = (limb_surface){0};
done:
    surface_destroy(&p);
    return status;
}

// A surface for each part that is used, which all its instances show.
static fem_status add_instances(scene_record_glb *r, const scene_motion *motion) {
    fem_status   status = FEM_OK;
    int         *surface = fem_alloc((size_t)r->source_count, sizeof *surface);
    limb_surface p = {0};
    if (!surface) return no_memory(r);
    for (int k = 0; k < r->source_count; k++) surface[k] = -1;
    for (int i = 0; i < motion->limb_count; i++) {
        scene_limb limb = motion->limb(motion, i);
        if (surface[limb.shape] < 0) {
            FEM_TRY(collect(r, &r->sources[limb.shape], NULL, 0, limb.origin, &p));
            FEM_TRY(make_modes(r, &limb, &p));
            surface[limb.shape] = add_surface(r, r->s->parts[limb.shape].name, limb.r, &p);
            p = (limb_surface){0};
        }
        r->figures[r->figure_count++] =
            (scene_figure){.name = limb.name, .surface = surface[limb.shape], .scale = limb.scale};
        r->width += (size_t)limb.r;
    }
done:
    fem_free(surface);
    surface_destroy(&p);
    return status;
}

// A body without limbs: where the vertices of its surface are in the mesh. Those of its own skin are vertices of the
// mesh, so that the sides of a cut stay apart.
static fem_status embed_whole(scene_record_glb *r) {
    fem_status            status = FEM_OK;
    const surface_source *source = &r->sources[0];
    const limb_surface   *p = &r->parts[0];
    fem_embedding         skin = {0};
    size_t                count = (size_t)p->vertex_count;
    if (source->shown != &source->skin)
        return fem_embed_points(&r->embedding, source->mesh, p->vertex_count, p->positions);
    FEM_TRY(fem_embed_skin(&skin, source->mesh));
    size_t width = (size_t)skin.width;
    r->embedding = (fem_embedding){.point_count = p->vertex_count, .width = skin.width};
    r->embedding.vertices = fem_alloc(count * width, sizeof *skin.vertices);
    r->embedding.weights = fem_alloc(count * width, sizeof *skin.weights);
    r->embedding.element = fem_alloc(count, sizeof *skin.element);
    if (!r->embedding.vertices || !r->embedding.weights || !r->embedding.element) {
        status = no_memory(r);
        goto done;
    }
    for (size_t k = 0; k < count; k++) {
        size_t v = (size_t)p->from[k];
        memcpy(r->embedding.vertices + k * width, skin.vertices + v * width, width * sizeof *skin.vertices);
        memcpy(r->embedding.weights + k * width, skin.weights + v * width, width * sizeof *skin.weights);
        r->embedding.element[k] = skin.element[v];
    }
done:
    fem_embedding_destroy(&skin);
    return status;
}

static fem_status make_surfaces(scene_record_glb *r, const scene_motion *motion) {
    fem_status   status = FEM_OK;
    const scene *s = r->s;
    size_t       figures = motion->limb_count > 0 ? (size_t)motion->limb_count : 1;
    r->source_count = r->shared ? s->forest.part_count : 1;
    size_t surfaces = r->shared ? (size_t)r->source_count : figures;
    r->sources = fem_calloc((size_t)r->source_count, sizeof *r->sources);
    r->parts = fem_calloc(surfaces, sizeof *r->parts);
    r->surfaces = fem_calloc(surfaces, sizeof *r->surfaces);
    r->figures = fem_calloc(figures, sizeof *r->figures);
    r->poses = fem_calloc(figures, sizeof *r->poses);
    if (!r->sources || !r->parts || !r->surfaces || !r->figures || !r->poses) return no_memory(r);
    if (!r->shared) FEM_TRY(open_source(r, &s->parts[s->object], &r->sources[0]));
    for (int i = 0; r->shared && i < s->forest.count; i++) {
        int part = s->forest.instances[i].part;
        if (!r->sources[part].mesh) FEM_TRY(open_source(r, &s->parts[part], &r->sources[part]));
    }
    FEM_TRY(make_looks(r));
    if (r->shared) return add_instances(r, motion);
    for (size_t i = 0; i < figures; i++) FEM_TRY(add_limb(r, motion, (int)i));
    if (motion->limb_count == 0) FEM_TRY(embed_whole(r));
done:
    return status;
}

// ---- life ----------------------------------------------------------------------------------------------------------

static fem_status open_glb(scene_record_glb *r) {
    return scene_glb_create(&r->glb, r->path, r->look_count, r->looks, r->surface_count, r->surfaces, r->figure_count,
                            r->figures, &r->s->glb);
}

// ---- frames --------------------------------------------------------------------------------------------------------

static fem_status keep_frame(scene_record_glb *r, double time) {
    fem_status status = FEM_OK;
    size_t     frames = (size_t)r->frames;
    FEM_TRY(fem_grow((void **)&r->times, &r->times_room, frames + 1, sizeof *r->times));
    FEM_TRY(fem_grow((void **)&r->kept, &r->kept_room, (frames + 1) * r->width, sizeof *r->kept));
    memcpy(r->kept + frames * r->width, r->row, r->width * sizeof *r->row);
    r->times[r->frames++] = time;
done:
    return status;
}

// The frame that r->row holds.
static fem_status put_row(scene_record_glb *r, double time) {
    if (!r->glb) return keep_frame(r, time);
    memcpy(r->poses, r->row, (size_t)r->figure_count * sizeof *r->poses);
    fem_status status =
        scene_glb_frame(r->glb, time, r->poses, r->row + (size_t)r->figure_count * (sizeof *r->poses / sizeof *r->row));
    r->frames += status == FEM_OK;
    return status;
}

fem_status scene_record_glb_frame(scene_record_glb *r, const scene_motion *motion) {
    fem_status status = FEM_OK;
    double    *q = r->row + (size_t)r->figure_count * (sizeof *r->poses / sizeof *r->row);
    for (int i = 0; r->glb && i < r->figure_count; i++) {
        size_t        count = (size_t)r->surfaces[r->figures[i].surface].r;
        scene_pose    pose;
        const double *from = motion->pose(motion, r->shared ? i : r->parts[i].limb, &pose);
        memcpy(r->row + (size_t)i * (sizeof pose / sizeof *r->row), &pose, sizeof pose);
        if (count > 0) memcpy(q, from, count * sizeof *q);
        q += count;
    }
    if (!r->glb) fem_embedding_apply(&r->embedding, motion->u, r->row);
    FEM_TRY(put_row(r, motion->time));
    if (r->trail) FEM_TRY(scene_trail_add(r->trail, r->row));
done:
    return status;
}

typedef struct replay {
    scene_record_glb *r;
    const double     *times;
} replay;

static fem_status take_row(void *context, int frame, const double *row) {
    replay *p = context;
    memcpy(p->r->row, row, p->r->width * sizeof *row);
    return put_row(p->r, p->times[frame]);
}

// The frames of a checkpoint, and where those that come are kept.
static fem_status begin_frames(scene_record_glb *r, const char *folder, const scene_checkpoint *checkpoint) {
    fem_status status = FEM_OK;
    replay     p = {r, checkpoint ? checkpoint->times : NULL};
    char      *path = scene_trail_path(r->s, folder);
    if (!path) return no_memory(r);
    if (checkpoint && checkpoint->trail_width != r->width) {
        status = fem_fail(FEM_BAD_INPUT, "%s: its frames have %zu numbers, expected %zu", path, checkpoint->trail_width,
                          r->width);
        goto done;
    }
    if (checkpoint) FEM_TRY(scene_trail_read(path, checkpoint, take_row, &p));
    if (r->s->checkpoint > 0) FEM_TRY(scene_trail_create(&r->trail, path, r->width, checkpoint));
done:
    fem_free(path);
    return status;
}

fem_status scene_record_glb_describe(const scene_record_glb *r, scene_checkpoint *checkpoint) {
    return scene_trail_describe(r->trail, checkpoint);
}

fem_status scene_record_glb_create(scene_record_glb **record, const scene *s, const char *folder,
                                   const scene_motion *motion, int frames, const scene_checkpoint *checkpoint,
                                   char **notes) {
    fem_status status = FEM_OK;
    size_t     size = strlen(folder) + strlen(s->name) + 8;
    if (motion->limb_count == 0 && frames > FRAMES_MOST)
        return fem_fail(FEM_BAD_INPUT,
                        "%s: output.formats: \"glb\" keeps all frames of a motion without modes, %d here and at most "
                        "%d; fewer frames, \"method\": \"reduced\" or the format \"obj\" would do",
                        s->path, frames, FRAMES_MOST);
    if (motion->limb_count == 0 && s->glb.skin)
        return fem_fail(FEM_BAD_INPUT,
                        "%s: output.glb.skin: a skin has a joint per domain or instance, and this body moves as one "
                        "piece; \"decompose\" it, or do without the skin",
                        s->path);
    scene_record_glb *r = fem_calloc(1, sizeof *r);
    if (!r) return fem_fail(FEM_NO_MEMORY, "no memory for the results");
    r->s = s;
    r->shared = s->forest.count > 0;
    r->path = fem_alloc(size, 1);
    if (!r->path) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the results");
        goto done;
    }
    snprintf(r->path, size, "%s/%s.glb", folder, s->name);
    if (unlink(r->path) != 0 && errno != ENOENT) {
        status = fem_fail(FEM_IO, "%s: cannot replace it: %s", r->path, strerror(errno));
        goto done;
    }
    FEM_TRY(make_surfaces(r, motion));
    if (motion->limb_count > 0) {
        r->width += (size_t)r->figure_count * (sizeof *r->poses / sizeof *r->row);
        FEM_TRY(open_glb(r));
    } else {
        r->width = 3 * (size_t)r->parts[0].vertex_count;
    }
    if (motion->limb_count == 0 && s->tree.domains.count > 0)
        FEM_TRY(
            scene_add_note(notes, "the .glb shows the body as one piece, since warped domains do not move in modes"));
    r->row = fem_alloc(r->width, sizeof *r->row);
    if (!r->row) {
        status = no_memory(r);
        goto done;
    }
    FEM_TRY(begin_frames(r, folder, checkpoint));
    *record = r;
    r = NULL;
done:
    scene_record_glb_destroy(r);
    return status;
}

// The frames that were kept become components around their mean.
static fem_status put_kept_frames(scene_record_glb *r) {
    fem_status     status = FEM_OK;
    limb_surface  *p = &r->parts[0];
    scene_surface *surface = &r->surfaces[0];
    size_t         n = 3 * (size_t)p->vertex_count;
    double        *mean = fem_alloc(n, sizeof *mean), *q = NULL, low[3], high[3];
    if (!mean) return no_memory(r);
    for (int i = 0; i < 3; i++) low[i] = high[i] = p->positions[i];
    for (size_t i = 0; i < n; i++) {
        if (p->positions[i] < low[i % 3]) low[i % 3] = p->positions[i];
        if (p->positions[i] > high[i % 3]) high[i % 3] = p->positions[i];
    }
    FEM_TRY(scene_compress_frames((int)n, r->frames, r->kept, FRAME_TOLERANCE * vec3_distance(low, high), mean,
                                  &surface->r, &p->modes, &q));
    for (size_t i = 0; i < n; i++) p->positions[i] += mean[i];
    surface->modes = p->modes;
    FEM_TRY(open_glb(r));
    r->poses[0] = (scene_pose){.Q = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    for (int f = 0; f < r->frames; f++)
        FEM_TRY(scene_glb_frame(r->glb, r->times[f], r->poses, q + (size_t)f * (size_t)surface->r));
done:
    fem_free(mean), fem_free(q);
    return status;
}

fem_status scene_record_glb_commit(scene_record_glb *r, int *frames, char **notes) {
    fem_status       status = FEM_OK;
    scene_glb_report report;
    char             text[300];
    *frames = 0;
    if (r->frames == 0) return FEM_OK;
    if (!r->glb) FEM_TRY(put_kept_frames(r));
    scene_glb *glb = r->glb;
    r->glb = NULL;
    FEM_TRY(scene_glb_commit(glb, &report));
    *frames = r->frames;
    r->frames = 0;
    if (r->s->glb.skin) {
        snprintf(text, sizeof text,
                 "%.120s.glb: %d joints follow the motion to %.1e of the size; without skin it is exact", r->s->name,
                 r->figure_count, report.skin_error);
        FEM_TRY(scene_add_note(notes, text));
    }
    if (report.targets > COMMON_TARGETS) {
        snprintf(text, sizeof text,
                 "%.120s.glb has %d morph targets in a mesh; programs must show eight, Blender and limber render show "
                 "all; fewer modes would do",
                 r->s->name, report.targets);
        FEM_TRY(scene_add_note(notes, text));
    }
done:
    return status;
}
