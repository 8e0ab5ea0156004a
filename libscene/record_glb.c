// The .glb file of a run: see record_glb.h. The surface is cut up by limbs and coloured by materials; its vertices move
// with the elements that they lie in, those of the skin with their own vertex.
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
    double      *positions, *modes;
    int         *triangles;
    scene_patch *patches;
} limb_surface;

struct scene_record_glb {
    const scene   *s;
    char          *path;
    fem_surface    skin;
    int            surface_count, figure_count; // a figure shows a surface; its limb is that of the surface, or
    bool           shared;                      // its own number: instances show the surfaces of their parts
    limb_surface  *parts;
    int            look_count, *look; // per material of the mesh: its look
    scene_look    *looks;
    scene_surface *surfaces;
    scene_figure  *figures;
    scene_pose    *poses;
    scene_glb     *glb; // limbs: open from the beginning
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
    fem_free(p->positions), fem_free(p->modes), fem_free(p->triangles), fem_free(p->patches);
}

void scene_record_glb_destroy(scene_record_glb *r) {
    if (!r) return;
    scene_glb_abandon(r->glb);
    scene_trail_destroy(r->trail);
    fem_free(r->row);
    for (int i = 0; r->parts && i < r->surface_count; i++) surface_destroy(&r->parts[i]);
    fem_surface_destroy(&r->skin);
    fem_embedding_destroy(&r->embedding);
    fem_free(r->path), fem_free(r->parts), fem_free(r->look), fem_free(r->looks), fem_free(r->surfaces),
        fem_free(r->figures);
    fem_free(r->poses), fem_free(r->times), fem_free(r->kept);
    fem_free(r);
}

static fem_status no_memory(const scene_record_glb *r) {
    return fem_fail(FEM_NO_MEMORY, "%s: no memory to write it", r->path);
}

// ---- surfaces ------------------------------------------------------------------------------------------------------

static const fem_surface *whole_surface(const scene_record_glb *r) {
    return r->skin.vertex_count > 0 ? &r->skin : &r->s->surface;
}

// The element under each triangle's middle says whose it is and how it looks. Caller frees *element.
static fem_status find_elements(const scene_record_glb *r, int **element) {
    fem_status         status = FEM_OK;
    const fem_surface *surface = whole_surface(r);
    fem_embedding      middles = {0};
    size_t             count = (size_t)surface->triangle_count;
    double            *middle = fem_calloc(3 * count, sizeof *middle);
    if (!middle) return no_memory(r);
    for (size_t t = 0; t < count; t++)
        for (int k = 0; k < 3; k++)
            vec3_axpy(middle + 3 * t, 1.0 / 3, surface->vertices + 3 * (size_t)surface->triangles[3 * t + (size_t)k]);
    FEM_TRY(fem_embed_points(&middles, &r->s->parts[r->s->object].mesh, surface->triangle_count, middle));
    *element = middles.element;
    middles.element = NULL;
done:
    fem_embedding_destroy(&middles);
    fem_free(middle);
    return status;
}

static int look_of(const scene_record_glb *r, int element) {
    const fem_mesh *mesh = &r->s->parts[r->s->object].mesh;
    return r->look[mesh->regions[mesh->region[element]].material];
}

static scene_look make_look(const char *name, int index) {
    static const double colours[][3] = {{0.34, 0.17, 0.08}, {0.16, 0.33, 0.07}, {0.55, 0.14, 0.22},
                                        {0.10, 0.24, 0.45}, {0.62, 0.42, 0.10}, {0.45, 0.45, 0.42}};
    scene_look          look = {.name = name, .roughness = 0.7};
    memcpy(look.colour, colours[(size_t)index % (sizeof colours / sizeof *colours)], sizeof look.colour);
    return look;
}

// Colours for the materials that can be seen, in their order; the scene has no say in it.
static fem_status make_looks(scene_record_glb *r, const int *element) {
    const fem_mesh *mesh = &r->s->parts[r->s->object].mesh;
    r->look = fem_calloc((size_t)mesh->material_count, sizeof *r->look);
    r->looks = fem_calloc((size_t)mesh->material_count, sizeof *r->looks);
    if (!r->look || !r->looks) return no_memory(r);
    for (int t = 0; t < whole_surface(r)->triangle_count; t++)
        r->look[mesh->regions[mesh->region[element[t]]].material] = 1;
    for (int i = 0; i < mesh->material_count; i++) {
        if (!r->look[i]) continue;
        r->looks[r->look_count] = make_look(mesh->materials[i].name, r->look_count);
        r->look[i] = r->look_count++;
    }
    return FEM_OK;
}

// The triangles of a limb (domain -1: all), by look, with vertices of their own. `number`: per vertex of the surface,
// work space.
static fem_status collect(const scene_record_glb *r, int domain, const int *element, const double origin[3],
                          int *number, limb_surface *p) {
    const fem_surface *surface = whole_surface(r);
    const int         *of = domain < 0 ? NULL : r->s->tree.domains.element_domain;
    int                triangles = 0;
    for (int t = 0; t < surface->triangle_count; t++) triangles += !of || of[element[t]] == domain;
    for (int v = 0; v < surface->vertex_count; v++) number[v] = -1;
    p->triangles = fem_alloc(3 * (size_t)triangles, sizeof *p->triangles);
    p->positions = fem_alloc(9 * (size_t)triangles, sizeof *p->positions); // at most three vertices each
    p->patches = fem_alloc((size_t)r->look_count, sizeof *p->patches);
    if (!p->triangles || !p->positions || !p->patches) return no_memory(r);
    for (int look = 0; look < r->look_count; look++) {
        scene_patch patch = {.first = p->triangle_count, .look = look};
        for (int t = 0; t < surface->triangle_count; t++) {
            if (look_of(r, element[t]) != look || (of && of[element[t]] != domain)) continue;
            for (size_t k = 0; k < 3; k++) {
                int v = surface->triangles[3 * (size_t)t + k];
                if (number[v] < 0) {
                    number[v] = p->vertex_count++;
                    vec3_sub(p->positions + 3 * (size_t)number[v], surface->vertices + 3 * (size_t)v, origin);
                }
                p->triangles[3 * (size_t)p->triangle_count + k] = number[v];
            }
            p->triangle_count++;
        }
        patch.count = p->triangle_count - patch.first;
        if (patch.count > 0) p->patches[p->patch_count++] = patch;
    }
    return FEM_OK;
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

// Adds the surface of a limb, and the figure that shows it; limbs without triangles have none.
static fem_status add_limb(scene_record_glb *r, const scene_motion *motion, int index, const int *element,
                           int *number) {
    fem_status   status = FEM_OK;
    scene_limb   limb = {.name = r->s->parts[r->s->object].name};
    bool         whole = motion->limb_count < 2;
    limb_surface p = {.limb = index};
    if (motion->limb_count > 0) limb = motion->limb(motion, index);
    FEM_TRY(collect(r, whole ? -1 : index, element, limb.origin, number, &p));
    if (p.triangle_count == 0) goto done;
    if (motion->limb_count > 0) FEM_TRY(make_modes(r, &limb, &p));
    int k = r->surface_count++;
    r->parts[k] = p;
    r->surfaces[k] = (scene_surface){.name = limb.name,
                                     .vertex_count = p.vertex_count,
                                     .positions = p.positions,
                                     .triangle_count = p.triangle_count,
                                     .triangles = p.triangles,
                                     .patch_count = p.patch_count,
                                     .patches = p.patches,
                                     .r = limb.r,
                                     .modes = p.modes};
    r->figures[r->figure_count++] = (scene_figure){.name = limb.name, .surface = k, .scale = 1};
    p = (limb_surface){0};
done:
    surface_destroy(&p);
    return status;
}

// ---- instances -----------------------------------------------------------------------------------------------------

// The skin of a part, by material, in the coordinates of its class. looks[i] is that of material i of the part.
static fem_status part_surface(const scene_record_glb *r, const scene_limb *limb, const int *looks, limb_surface *p) {
    fem_status      status = FEM_OK;
    const fem_mesh *mesh = limb->mesh;
    size_t          n = 3 * (size_t)mesh->vertex_count, modes = (size_t)limb->r;
    int            *triangles = NULL, *element = NULL, *number = NULL, count = 0;
    FEM_TRY(fem_mesh_surface(mesh, &count, &triangles, &element));
    number = fem_alloc(n / 3, sizeof *number);
    p->triangles = fem_alloc(3 * (size_t)count, sizeof *p->triangles);
    p->positions = fem_alloc(n, sizeof *p->positions);
    p->patches = fem_alloc((size_t)mesh->material_count, sizeof *p->patches);
    if (!number || !p->triangles || !p->positions || !p->patches) {
        status = no_memory(r);
        goto done;
    }
    for (size_t v = 0; v < n / 3; v++) number[v] = -1;
    for (int material = 0; material < mesh->material_count; material++) {
        scene_patch patch = {.first = p->triangle_count, .look = looks[material]};
        for (int t = 0; t < count; t++) {
            if (mesh->regions[mesh->region[element[t]]].material != material) continue;
            for (size_t k = 0; k < 3; k++) {
                int v = triangles[3 * (size_t)t + k];
                if (number[v] < 0) {
                    number[v] = p->vertex_count++;
                    memcpy(p->positions + 3 * (size_t)number[v], mesh->vertices + 3 * (size_t)v, 3 * sizeof(double));
                }
                p->triangles[3 * (size_t)p->triangle_count + k] = number[v];
            }
            p->triangle_count++;
        }
        patch.count = p->triangle_count - patch.first;
        if (patch.count > 0) p->patches[p->patch_count++] = patch;
    }
    p->modes = fem_alloc(3 * (size_t)p->vertex_count * modes + 1, sizeof *p->modes);
    if (!p->modes) {
        status = no_memory(r);
        goto done;
    }
    for (size_t v = 0; v < n / 3; v++)
        for (size_t l = 0; number[v] >= 0 && l < modes; l++)
            memcpy(p->modes + 3 * ((size_t)p->vertex_count * l + (size_t)number[v]), limb->U + n * l + 3 * v,
                   3 * sizeof(double));
done:
    fem_free(triangles), fem_free(element), fem_free(number);
    return status;
}

// A surface for each part that is used, which all its instances show.
static fem_status make_shared_surfaces(scene_record_glb *r, const scene_motion *motion) {
    fem_status      status = FEM_OK;
    const scene    *s = r->s;
    const fem_mesh *all = &s->parts[s->object].mesh;
    size_t          parts = (size_t)s->forest.part_count, count = (size_t)motion->limb_count;
    int *surface = fem_alloc(parts, sizeof *surface), *first = fem_alloc(parts, sizeof *first), materials = 0;
    r->parts = fem_calloc(parts, sizeof *r->parts);
    r->surfaces = fem_calloc(parts, sizeof *r->surfaces);
    r->figures = fem_calloc(count, sizeof *r->figures);
    r->poses = fem_calloc(count, sizeof *r->poses);
    r->look = fem_calloc((size_t)all->material_count, sizeof *r->look);
    r->looks = fem_calloc((size_t)all->material_count, sizeof *r->looks);
    if (!surface || !first || !r->parts || !r->surfaces || !r->figures || !r->poses || !r->look || !r->looks) {
        status = no_memory(r);
        goto done;
    }
    for (int i = 0; i < all->material_count; i++) { // materials of one name look alike
        r->look[i] = -1;
        for (int k = 0; k < i && r->look[i] < 0; k++)
            if (strcmp(all->materials[k].name, all->materials[i].name) == 0) r->look[i] = r->look[k];
        if (r->look[i] >= 0) continue;
        r->looks[r->look_count] = make_look(all->materials[i].name, r->look_count);
        r->look[i] = r->look_count++;
    }
    for (size_t k = 0; k < parts; k++) {
        surface[k] = -1;
        first[k] = materials;
        materials += s->parts[k].mesh.material_count;
    }
    for (int i = 0; i < motion->limb_count; i++) {
        scene_limb limb = motion->limb(motion, i);
        if (surface[limb.shape] < 0) {
            limb_surface *p = &r->parts[r->surface_count];
            surface[limb.shape] = r->surface_count++;
            FEM_TRY(part_surface(r, &limb, r->look + first[limb.shape], p));
            r->surfaces[surface[limb.shape]] = (scene_surface){.name = s->parts[limb.shape].name,
                                                               .vertex_count = p->vertex_count,
                                                               .positions = p->positions,
                                                               .triangle_count = p->triangle_count,
                                                               .triangles = p->triangles,
                                                               .patch_count = p->patch_count,
                                                               .patches = p->patches,
                                                               .r = limb.r,
                                                               .modes = p->modes};
        }
        r->figures[r->figure_count++] =
            (scene_figure){.name = limb.name, .surface = surface[limb.shape], .scale = limb.scale};
        r->width += (size_t)limb.r;
    }
done:
    fem_free(surface), fem_free(first);
    return status;
}

// A body without limbs: where the vertices of its surface are in the mesh. Those of its own skin, whose numbers in the
// picture are given, are vertices of the mesh.
static fem_status embed_whole(scene_record_glb *r, const int *number) {
    fem_status      status = FEM_OK;
    const fem_mesh *mesh = &r->s->parts[r->s->object].mesh;
    fem_embedding   skin = {0};
    size_t          count = (size_t)r->parts[0].vertex_count;
    if (r->skin.vertex_count == 0)
        return fem_embed_points(&r->embedding, mesh, r->parts[0].vertex_count, r->parts[0].positions);
    FEM_TRY(fem_embed_skin(&skin, mesh));
    size_t width = (size_t)skin.width;
    r->embedding = (fem_embedding){.point_count = (int)count, .width = skin.width};
    r->embedding.vertices = fem_alloc(count * width, sizeof *skin.vertices);
    r->embedding.weights = fem_alloc(count * width, sizeof *skin.weights);
    r->embedding.element = fem_alloc(count, sizeof *skin.element);
    if (!r->embedding.vertices || !r->embedding.weights || !r->embedding.element) {
        status = no_memory(r);
        goto done;
    }
    for (size_t v = 0; v < (size_t)skin.point_count; v++) {
        if (number[v] < 0) continue;
        size_t k = (size_t)number[v];
        memcpy(r->embedding.vertices + k * width, skin.vertices + v * width, width * sizeof *skin.vertices);
        memcpy(r->embedding.weights + k * width, skin.weights + v * width, width * sizeof *skin.weights);
        r->embedding.element[k] = skin.element[v];
    }
done:
    fem_embedding_destroy(&skin);
    return status;
}

static fem_status make_surfaces(scene_record_glb *r, const scene_motion *motion) {
    fem_status status = FEM_OK;
    int       *element = NULL, *number = NULL, most = motion->limb_count > 0 ? motion->limb_count : 1;
    if (r->shared) return make_shared_surfaces(r, motion);
    if (r->s->surface.vertex_count == 0) FEM_TRY(fem_surface_of_mesh(&r->skin, &r->s->parts[r->s->object].mesh));
    FEM_TRY(find_elements(r, &element));
    FEM_TRY(make_looks(r, element));
    number = fem_alloc((size_t)whole_surface(r)->vertex_count, sizeof *number);
    r->parts = fem_calloc((size_t)most, sizeof *r->parts);
    r->surfaces = fem_calloc((size_t)most, sizeof *r->surfaces);
    r->figures = fem_calloc((size_t)most, sizeof *r->figures);
    r->poses = fem_calloc((size_t)most, sizeof *r->poses);
    if (!number || !r->parts || !r->surfaces || !r->figures || !r->poses) {
        status = no_memory(r);
        goto done;
    }
    for (int i = 0; i < most; i++) FEM_TRY(add_limb(r, motion, i, element, number));
    for (int i = 0; i < r->surface_count; i++) r->width += (size_t)r->surfaces[i].r;
    if (motion->limb_count == 0) FEM_TRY(embed_whole(r, number));
done:
    fem_free(element), fem_free(number);
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
