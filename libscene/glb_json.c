// The JSON chunk of a .glb: written from the plan, compact, since a thousand figures have thousands of channels.
#include "libscene/glb_internal.h"

#include <string.h>

// "key":[a,b,c] after whatever stands before; `digits` significant
static void put_numbers(scene_text *t, const char *key, int count, const double *values, int digits) {
    scene_text_print(t, ",\"%s\":[", key);
    for (int i = 0; i < count; i++) {
        if (i > 0) scene_text_put(t, ",", 1);
        scene_text_number(t, values[i], digits);
    }
    scene_text_put(t, "]", 1);
}

// Opens "key":[ of a list at the top level.
static void open_list(scene_text *t, const char *key) { scene_text_print(t, ",\n\"%s\":[", key); }
static void next(scene_text *t, int index) { scene_text_print(t, "%s", index > 0 ? ",\n" : "\n"); }

static void put_views(const glb_plan *plan, scene_text *t) {
    open_list(t, "bufferViews");
    for (int i = 0; i < plan->view_count; i++) {
        const glb_view *v = &plan->views[i];
        next(t, i);
        scene_text_print(t, "{\"buffer\":0,\"byteOffset\":%zu,\"byteLength\":%zu", v->offset, v->length);
        if (v->stride) scene_text_print(t, ",\"byteStride\":%d", v->stride);
        if (v->target) scene_text_print(t, ",\"target\":%d", v->target);
        scene_text_put(t, "}", 1);
    }
    scene_text_put(t, "]", 1);
}

static void put_accessors(const glb_plan *plan, scene_text *t) {
    open_list(t, "accessors");
    for (int i = 0; i < plan->accessor_count; i++) {
        const glb_accessor *a = &plan->accessors[i];
        next(t, i);
        scene_text_print(t, "{\"bufferView\":%d", a->view);
        if (a->offset > 0) scene_text_print(t, ",\"byteOffset\":%zu", a->offset);
        scene_text_print(t, ",\"componentType\":%d,\"count\":%zu,\"type\":\"%s\"", a->component, a->count, a->type);
        if (a->normalized) scene_text_print(t, ",\"normalized\":true");
        double low[3] = {a->low[0], a->low[1], a->low[2]}, high[3] = {a->high[0], a->high[1], a->high[2]};
        if (a->bounds > 0) put_numbers(t, "min", a->bounds, low, 9), put_numbers(t, "max", a->bounds, high, 9);
        scene_text_put(t, "}", 1);
    }
    scene_text_put(t, "]", 1);
}

static void put_materials(const scene_glb *glb, scene_text *t) {
    open_list(t, "materials");
    for (int i = 0; i < glb->look_count; i++) {
        const scene_look *look = &glb->looks[i];
        double            colour[4] = {look->colour[0], look->colour[1], look->colour[2], 1};
        next(t, i);
        scene_text_print(t, "{\"name\":");
        scene_text_string(t, look->name);
        scene_text_print(t, ",\"pbrMetallicRoughness\":{\"metallicFactor\":0");
        put_numbers(t, "baseColorFactor", 4, colour, 6);
        scene_text_print(t, ",\"roughnessFactor\":");
        scene_text_number(t, look->roughness, 6);
        scene_text_print(t, "}%s}", look->double_sided ? ",\"doubleSided\":true" : "");
    }
    scene_text_put(t, "]", 1);
}

static void put_targets(const glb_mesh *mesh, scene_text *t) {
    scene_text_print(t, ",\"targets\":[");
    for (int k = 0; k < mesh->targets; k++)
        scene_text_print(t, "%s{\"POSITION\":%d,\"NORMAL\":%d}", k > 0 ? "," : "", mesh->deltas + 2 * k,
                         mesh->deltas + 2 * k + 1);
    scene_text_put(t, "]", 1);
}

static void put_meshes(const scene_glb *glb, scene_text *t) {
    bool skin = glb->options.skin;
    open_list(t, "meshes");
    for (int s = 0; s < (skin ? 1 : glb->surface_count); s++) {
        const scene_surface *surface = skin ? &glb->skin.surface : &glb->surfaces[s];
        const glb_mesh      *mesh = skin ? &glb->skin.mesh : &glb->meshes[s];
        next(t, s);
        scene_text_print(t, "{\"name\":");
        scene_text_string(t, surface->name);
        scene_text_print(t, ",\"primitives\":[");
        for (int k = 0; k < surface->patch_count; k++) {
            scene_text_print(t, "%s{\"attributes\":{\"POSITION\":%d,\"NORMAL\":%d", k > 0 ? "," : "", mesh->positions,
                             mesh->normals);
            if (mesh->uv >= 0) scene_text_print(t, ",\"TEXCOORD_0\":%d", mesh->uv);
            if (skin) scene_text_print(t, ",\"JOINTS_0\":%d,\"WEIGHTS_0\":%d", mesh->joints, mesh->skin_weights);
            scene_text_print(t, "},\"indices\":%d,\"material\":%d", mesh->indices + k, surface->patches[k].look);
            if (mesh->targets > 0) put_targets(mesh, t);
            scene_text_put(t, "}", 1);
        }
        scene_text_put(t, "]", 1);
        if (mesh->targets > 0) {
            scene_text_print(t, ",\"extras\":{\"targetNames\":[");
            for (int k = 0; k < mesh->targets; k++)
                scene_text_print(t, "%s\"mode %d\"", k > 0 ? "," : "", mesh->mode[k] + 1);
            scene_text_print(t, "]}");
        }
        scene_text_put(t, "}", 1);
    }
    scene_text_put(t, "]", 1);
}

// Where the figure is in the first frame; what never changes stands here alone.
static void put_place(const scene_glb *glb, int figure, scene_text *t) {
    const scene_figure *f = &glb->figures[figure];
    const glb_group    *g = &glb->groups[f->surface];
    const glb_mesh     *mesh = &glb->meshes[f->surface];
    size_t              place = (size_t)glb->place[figure];
    float               p[3];
    int16_t             packed[4];
    double              translation[3], turn[4], scale[3] = {f->scale, f->scale, f->scale};
    memcpy(p, glb->first_row + g->translations + 12 * place, sizeof p);
    memcpy(packed, glb->first_row + g->rotations + 8 * place, sizeof packed);
    for (int i = 0; i < 3; i++) translation[i] = (double)p[i];
    quaternion_unpack(turn, packed);
    put_numbers(t, "translation", 3, translation, 9);
    put_numbers(t, "rotation", 4, turn, 9);
    if (f->scale != 1) put_numbers(t, "scale", 3, scale, 9);
    if (mesh->targets == 0) return;
    const char *q = glb->first_row + g->q + 4 * place * (size_t)glb->surfaces[f->surface].r;
    scene_text_print(t, ",\"weights\":[");
    for (int k = 0; k < mesh->targets; k++) {
        float value;
        memcpy(&value, q + 4 * mesh->mode[k], sizeof value);
        double range = (double)mesh->q_up[k] - (double)mesh->q_low[k],
               weight = ((double)value - (double)mesh->q_low[k]) / range;
        if (k > 0) scene_text_put(t, ",", 1);
        scene_text_number(t, fmin(fmax(weight, 0), 1), 6);
    }
    scene_text_put(t, "]", 1);
}

// Node 0 turns and scales the world of the simulation into that of glTF; figure i is node i + 1.
static void put_nodes(const scene_glb *glb, scene_text *t) {
    double scale = 1 / glb->options.unit, scales[3] = {scale, scale, scale};
    double turn[4] = {-sqrt(0.5), 0, 0, sqrt(0.5)}; // z up: y' = z, z' = -y
    open_list(t, "nodes");
    next(t, 0);
    scene_text_print(t, "{\"name\":\"limber\"");
    if (glb->options.up == SCENE_UP_Z) put_numbers(t, "rotation", 4, turn, 9);
    if (glb->options.unit != 1) put_numbers(t, "scale", 3, scales, 9);
    scene_text_print(t, ",\"children\":[");
    for (int i = 0; i < glb->figure_count; i++) scene_text_print(t, "%s%d", i > 0 ? "," : "", i + 1);
    scene_text_print(t, "]}");
    for (int i = 0; i < glb->figure_count; i++) {
        char name[128];
        next(t, 1);
        scene_text_print(t, "{\"name\":");
        scene_text_string(t, glb_figure_name(glb, i, name, sizeof name));
        if (!glb->options.skin) scene_text_print(t, ",\"mesh\":%d", glb->figures[i].surface);
        put_place(glb, i, t);
        scene_text_put(t, "}", 1);
    }
    if (glb->options.skin) scene_text_print(t, ",\n{\"name\":\"body\",\"mesh\":0,\"skin\":0}");
    scene_text_put(t, "]", 1);
}

static void put_skin(const scene_glb *glb, scene_text *t) {
    open_list(t, "skins");
    scene_text_print(t, "{\"inverseBindMatrices\":%d,\"skeleton\":0,\"joints\":[", glb->skin.inverse_accessor);
    for (int i = 0; i < glb->figure_count; i++) scene_text_print(t, "%s%d", i > 0 ? "," : "", i + 1);
    scene_text_print(t, "]}]");
}

static void put_animation(const scene_glb *glb, scene_text *t) {
    static const char *const paths[] = {"translation", "rotation", "weights"};
    int                      samplers = 0;
    for (int i = 0; i < 3 * glb->figure_count; i++) samplers += glb->channels[i] >= 0;
    if (samplers == 0) return;
    open_list(t, "animations");
    scene_text_print(t, "{\"name\":\"motion\",\"channels\":[");
    for (int i = 0, k = 0; i < 3 * glb->figure_count; i++) {
        if (glb->channels[i] < 0) continue;
        next(t, k);
        scene_text_print(t, "{\"sampler\":%d,\"target\":{\"node\":%d,\"path\":\"%s\"}}", k++, i / 3 + 1, paths[i % 3]);
    }
    scene_text_print(t, "],\"samplers\":[");
    for (int i = 0, k = 0; i < 3 * glb->figure_count; i++) {
        if (glb->channels[i] < 0) continue;
        next(t, k++);
        scene_text_print(t, "{\"input\":%d,\"output\":%d}", glb->time, glb->channels[i]);
    }
    scene_text_print(t, "]}]");
}

fem_status glb_json(scene_glb *glb, scene_text *t) {
    scene_text_print(t, "{\"asset\":{\"version\":\"2.0\",\"generator\":\"limber " LIMBER_VERSION "\"},\n\"scene\":0,\n"
                        "\"scenes\":[{\"nodes\":[0");
    // readers ignore where a mesh on a skin stands, so it has no parent
    if (glb->options.skin) scene_text_print(t, ",%d", glb->figure_count + 1);
    scene_text_print(t, "],\"extras\":{\"frame_bounds\":%d,\"times\":%d}}]", glb->bounds_accessor, glb->time);
    put_nodes(glb, t);
    put_meshes(glb, t);
    if (glb->options.skin) put_skin(glb, t);
    put_materials(glb, t);
    put_animation(glb, t);
    put_accessors(&glb->plan, t);
    put_views(&glb->plan, t);
    open_list(t, "buffers");
    scene_text_print(t, "{\"byteLength\":%zu}]}", glb->plan.bytes);
    return t->status;
}
