// .glb files in: container, JSON, meshes, nodes, skins, animation. Every index is checked where it is read, every
// accessor against the bytes that there are. Not read: sparse accessors, data outside the file, required extensions
// other than KHR_mesh_quantization. Materials keep colour, picture (PNG), cut-off and sides.
#include "libscene/model_reader.h"

#include <string.h>

// ---- nodes ------------------------------------------------------------------------------------------------------

static fem_status read_node(const model_reader *r, const cJSON *json, model_node *node) {
    fem_status   status = FEM_OK;
    scene_model *m = r->model;
    *node = (model_node){.parent = -1, .rotation = {0, 0, 0, 1}, .scale = {1, 1, 1}};
    node->name = model_get_name(json);
    if (!node->name) return fem_fail(FEM_NO_MEMORY, "%s: no memory for a name", r->path);
    FEM_TRY(model_get_index(r, json, "mesh", m->mesh_count, &node->mesh));
    FEM_TRY(model_get_index(r, json, "skin", m->skin_count, &node->skin));
    node->has_matrix = model_get(json, "matrix") != NULL;
    FEM_TRY(model_get_numbers(r, json, "matrix", 16, node->matrix));
    FEM_TRY(model_get_numbers(r, json, "translation", 3, node->translation));
    FEM_TRY(model_get_numbers(r, json, "rotation", 4, node->rotation));
    FEM_TRY(model_get_numbers(r, json, "scale", 3, node->scale));
    if (model_get(json, "weights") && node->mesh >= 0) {
        int count = m->meshes[node->mesh].target_count;
        node->weights = fem_calloc((size_t)count, sizeof *node->weights);
        if (!node->weights) return fem_fail(FEM_NO_MEMORY, "%s: no memory for weights", r->path);
        FEM_TRY(model_get_numbers(r, json, "weights", count, node->weights));
    }
done:
    return status;
}

// Parents, each node having one at most, and an order in which they come first; a loop has none.
static fem_status order_nodes(const model_reader *r, const cJSON **json) {
    scene_model *m = r->model;
    int          ordered = 0;
    for (int i = 0; i < m->node_count; i++) {
        const cJSON *children = model_get(json[i], "children");
        if (children && !cJSON_IsArray(children)) return model_bad(r, children, "children", "a list");
        for (const cJSON *c = children ? children->child : NULL; c; c = c->next) {
            if (!cJSON_IsNumber(c) || !(c->valuedouble >= 0 && c->valuedouble < m->node_count))
                return model_bad(r, c, "a child that is no node", "one");
            int child = (int)c->valuedouble;
            if (m->nodes[child].parent >= 0) return model_bad(r, c, "a node with two parents", "one at most");
            m->nodes[child].parent = i;
        }
    }
    for (int i = 0; i < m->node_count; i++)
        if (m->nodes[i].parent < 0) m->order[ordered++] = i;
    for (int k = 0; k < ordered; k++)
        for (const cJSON *c = model_get(json[m->order[k]], "children") ? model_get(json[m->order[k]], "children")->child
                                                                       : NULL;
             c; c = c->next)
            m->order[ordered++] = (int)c->valuedouble;
    return ordered == m->node_count ? FEM_OK : model_bad(r, r->root, "nodes in a loop", "a tree");
}

static fem_status read_skin(const model_reader *r, const cJSON *json, int node_count, model_skin *skin) {
    const cJSON   *joints = model_get(json, "joints");
    int            count = cJSON_IsArray(joints) ? cJSON_GetArraySize(joints) : 0;
    model_accessor a;
    if (count == 0) return model_bad(r, json, "a skin without joints", "some");
    fem_status status = model_get_attribute(r, json, "inverseBindMatrices", 16, (size_t)count, &a);
    if (status != FEM_OK) return status;
    skin->joints = fem_alloc((size_t)count, sizeof *skin->joints);
    skin->inverse = fem_alloc(12 * (size_t)count, sizeof *skin->inverse);
    skin->transforms = fem_alloc(12 * (size_t)count, sizeof *skin->transforms);
    if (!skin->joints || !skin->inverse || !skin->transforms)
        return fem_fail(FEM_NO_MEMORY, "%s: no memory for %d joints", r->path, count);
    for (const cJSON *j = joints->child; j; j = j->next) {
        if (!cJSON_IsNumber(j) || !(j->valuedouble >= 0 && j->valuedouble < node_count))
            return model_bad(r, j, "a joint that is no node", "one");
        size_t k = (size_t)skin->joint_count++;
        skin->joints[k] = (int)j->valuedouble;
        for (int i = 0; i < 12; i++)
            skin->inverse[12 * k + (size_t)i] = a.count > 0 ? model_number(&a, k, 4 * (i % 4) + i / 4) : i % 5 == 0;
    }
    return FEM_OK;
}

// ---- animation --------------------------------------------------------------------------------------------------

static int choice(const cJSON *text, int count, const char *const *words, int fallback) {
    for (int i = 0; i < count && cJSON_IsString(text); i++)
        if (strcmp(text->valuestring, words[i]) == 0) return i;
    return text ? -1 : fallback;
}

static fem_status read_channel(const model_reader *r, const cJSON *json, int sampler_count, const cJSON **samplers,
                               model_channel *c) {
    static const char *const paths[] = {"translation", "rotation", "scale", "weights"};
    static const char *const kinds[] = {"LINEAR", "STEP", "CUBICSPLINE"};
    fem_status               status = FEM_OK;
    scene_model             *m = r->model;
    const cJSON             *target = model_get(json, "target");
    int                      sampler;
    FEM_TRY(model_get_index(r, target, "node", m->node_count, &c->node));
    FEM_TRY(model_get_index(r, json, "sampler", sampler_count, &sampler));
    c->path = choice(model_get(target, "path"), 4, paths, -1);
    if (c->node < 0 || c->path < 0) return c->node = -1, FEM_OK; // what an extension moves
    if (sampler < 0) return model_bad(r, json, "a channel without sampler", "one");
    c->interpolation = choice(model_get(samplers[sampler], "interpolation"), 3, kinds, MODEL_LINEAR);
    if (c->interpolation < 0)
        return model_bad(r, samplers[sampler], "an unknown interpolation", "LINEAR, STEP or CUBICSPLINE");
    FEM_TRY(model_get_attribute(r, samplers[sampler], "input", 1, 1, &c->input));
    size_t per_key = 1;
    int    width = c->path == MODEL_ROTATION ? 4 : c->path == MODEL_WEIGHTS ? 1 : 3;
    if (c->path == MODEL_WEIGHTS) {
        if (m->nodes[c->node].mesh < 0) return model_bad(r, json, "weights of a node without mesh", "one with");
        per_key = (size_t)m->meshes[m->nodes[c->node].mesh].target_count;
    }
    if (c->interpolation == MODEL_CUBIC) per_key *= 3;
    if (c->input.count == 0) return model_bad(r, json, "a sampler without times", "some");
    FEM_TRY(model_get_attribute(r, samplers[sampler], "output", width, per_key * c->input.count, &c->output));
    if (c->output.count == 0 && per_key > 0) return model_bad(r, json, "a sampler without values", "some");
    for (size_t i = 0; i < c->input.count; i++) {
        double time = model_number(&c->input, i, 0);
        if (i > 0 && !(time > model_number(&c->input, i - 1, 0)))
            return model_bad(r, json, "times that do not ascend", "ascending");
        m->begin = fmin(m->begin, time), m->end = fmax(m->end, time);
    }
done:
    return status;
}

static fem_status read_animation(const model_reader *r) {
    fem_status    status = FEM_OK;
    scene_model  *m = r->model;
    const cJSON **animations = NULL, **channels = NULL, **samplers = NULL;
    int           count, channel_count, sampler_count;
    FEM_TRY(model_get_list(r, r->root, "animations", &count, &animations));
    if (count == 0) goto done;
    FEM_TRY(model_get_list(r, animations[0], "channels", &channel_count, &channels));
    FEM_TRY(model_get_list(r, animations[0], "samplers", &sampler_count, &samplers));
    m->channels = fem_calloc((size_t)channel_count, sizeof *m->channels);
    if (!m->channels) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory for %d channels", r->path, channel_count);
        goto done;
    }
    m->begin = INFINITY, m->end = -INFINITY;
    for (int i = 0; i < channel_count; i++) {
        FEM_TRY(read_channel(r, channels[i], sampler_count, samplers, &m->channels[m->channel_count]));
        if (m->channels[m->channel_count].node >= 0) m->channel_count++;
    }
    if (!(m->begin <= m->end)) m->begin = m->end = 0;
done:
    fem_free(animations), fem_free(channels), fem_free(samplers);
    return status;
}

// ---- the whole --------------------------------------------------------------------------------------------------

void scene_model_destroy(scene_model *m) {
    if (!m) return;
    for (int i = 0; i < m->mesh_count; i++) {
        for (int k = 0; k < m->meshes[i].primitive_count; k++) {
            model_primitive *p = &m->meshes[i].primitives[k];
            void *arrays[] = {p->positions, p->normals, p->uv, p->deltas, p->triangles, p->joints, p->weights};
            for (size_t a = 0; a < sizeof arrays / sizeof *arrays; a++) fem_free(arrays[a]);
        }
        fem_free(m->meshes[i].primitives), fem_free(m->meshes[i].weights);
    }
    for (int i = 0; i < m->node_count; i++) fem_free(m->nodes[i].name), fem_free(m->nodes[i].weights);
    for (int i = 0; i < m->skin_count; i++)
        fem_free(m->skins[i].joints), fem_free(m->skins[i].inverse), fem_free(m->skins[i].transforms);
    scene_drawing *d = &m->drawing;
    for (int i = 0; i < d->paint_count; i++) fem_free(d->paints[i].name);
    for (int i = 0; i < d->image_count; i++) fem_free(d->images[i].pixels);
    void *arrays[] = {m->path,     m->memory,    m->meshes, m->nodes,    m->order,     m->skins,
                      m->channels, m->world,     m->morph,  m->morph_at, d->positions, d->normals,
                      d->uv,       d->triangles, d->paint,  d->paints,   d->images};
    for (size_t a = 0; a < sizeof arrays / sizeof *arrays; a++) fem_free(arrays[a]);
    fem_free(m);
}

// Room for everything that is drawn: each node with a mesh has vertices of its own in the drawing.
static fem_status make_drawing(const model_reader *r) {
    scene_model   *m = r->model;
    scene_drawing *d = &m->drawing;
    double         vertices = 0, triangles = 0;
    size_t         morph = 0;
    for (int i = 0; i < m->node_count; i++) {
        model_node *node = &m->nodes[i];
        node->first_vertex = (int)vertices;
        m->morph_at[i] = morph;
        if (node->mesh < 0) continue;
        const model_mesh *mesh = &m->meshes[node->mesh];
        morph += (size_t)mesh->target_count;
        for (int k = 0; k < mesh->primitive_count; k++) {
            const model_primitive *p = &mesh->primitives[k];
            vertices += p->vertex_count, triangles += p->triangle_count;
            for (size_t v = 0; p->joints && node->skin >= 0 && v < 4 * (size_t)p->vertex_count; v++)
                if (p->joints[v] >= m->skins[node->skin].joint_count)
                    return model_bad(r, r->root, "a vertex with a joint that its skin does not have",
                                     "one of the skin");
        }
        if (vertices > MODEL_MOST_VERTICES || triangles > MODEL_MOST_VERTICES)
            return model_bad(r, r->root, "more than 100 million vertices or triangles to draw", "fewer");
        node->vertex_count = (int)vertices - node->first_vertex;
    }
    size_t n = (size_t)vertices, t = (size_t)triangles;
    d->positions = fem_alloc(3 * n, sizeof *d->positions), d->normals = fem_alloc(3 * n, sizeof *d->normals);
    d->uv = fem_calloc(2 * n, sizeof *d->uv);
    d->triangles = fem_alloc(3 * t, sizeof *d->triangles), d->paint = fem_alloc(t, sizeof *d->paint);
    m->morph = fem_alloc(morph, sizeof *m->morph);
    if (!d->positions || !d->normals || !d->uv || !d->triangles || !d->paint || !m->morph)
        return fem_fail(FEM_NO_MEMORY, "%s: no memory for %zu vertices", r->path, n);
    size_t vertex = 0, triangle = 0;
    for (int i = 0; i < m->node_count; i++)
        for (int k = 0; m->nodes[i].mesh >= 0 && k < m->meshes[m->nodes[i].mesh].primitive_count; k++) {
            const model_primitive *p = &m->meshes[m->nodes[i].mesh].primitives[k];
            if (p->uv) memcpy(d->uv + 2 * vertex, p->uv, 2 * (size_t)p->vertex_count * sizeof *p->uv);
            for (size_t c = 0; c < 3 * (size_t)p->triangle_count; c++)
                d->triangles[3 * triangle + c] = (int)vertex + p->triangles[c];
            for (int c = 0; c < p->triangle_count; c++) d->paint[triangle++] = p->paint;
            vertex += (size_t)p->vertex_count;
        }
    d->vertex_count = (int)n, d->triangle_count = (int)t;
    return FEM_OK;
}

static uint32_t word_at(const char *bytes) {
    const unsigned char *b = (const unsigned char *)bytes;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

// The two chunks of the container.
static fem_status open_container(model_reader *r, size_t size, const char **json, size_t *json_size) {
    const char *file = r->model->memory;
    if (size < 20 || word_at(file) != GLB_MAGIC)
        return fem_fail(FEM_BAD_INPUT, "%s: is no .glb file: it does not begin with \"glTF\"", r->path);
    if (word_at(file + 4) != 2)
        return fem_fail(FEM_BAD_INPUT, "%s: is version %u of glTF, expected 2", r->path, word_at(file + 4));
    size_t total = word_at(file + 8), first = word_at(file + 12);
    if (total > size || total < 20 || first > total - 20 || word_at(file + 16) != GLB_CHUNK_JSON)
        return fem_fail(FEM_BAD_INPUT, "%s: is cut off or damaged: its sizes do not fit", r->path);
    *json = file + 20, *json_size = first;
    size_t at = 20 + (first + 3) / 4 * 4;
    if (at + 8 > total) return FEM_OK;
    size_t second = word_at(file + at);
    if (word_at(file + at + 4) != GLB_CHUNK_BIN) return FEM_OK;
    if (second > total - at - 8)
        return fem_fail(FEM_BAD_INPUT, "%s: is cut off or damaged: its sizes do not fit", r->path);
    r->binary = (const unsigned char *)file + at + 8;
    r->binary_size = second;
    return FEM_OK;
}

static fem_status check_extensions(const model_reader *r) {
    const cJSON *required = model_get(r->root, "extensionsRequired");
    for (const cJSON *name = cJSON_IsArray(required) ? required->child : NULL; name; name = name->next)
        if (!cJSON_IsString(name) || strcmp(name->valuestring, "KHR_mesh_quantization") != 0)
            return model_bad(r, name, "a required extension",
                             "none but KHR_mesh_quantization; export without compression");
    return FEM_OK;
}

static fem_status read_model(model_reader *r) {
    fem_status    status = FEM_OK;
    scene_model  *m = r->model;
    const cJSON **meshes = NULL, **nodes = NULL, **skins = NULL;
    int           mesh_count, node_count, skin_count;
    if (!cJSON_IsObject(r->root)) return model_bad(r, r->root, "no object", "one");
    FEM_TRY(check_extensions(r));
    FEM_TRY(model_get_list(r, r->root, "bufferViews", &r->view_count, &r->views));
    FEM_TRY(model_get_list(r, r->root, "accessors", &r->accessor_count, &r->accessors));
    FEM_TRY(model_get_list(r, r->root, "meshes", &mesh_count, &meshes));
    FEM_TRY(model_get_list(r, r->root, "nodes", &node_count, &nodes));
    FEM_TRY(model_get_list(r, r->root, "skins", &skin_count, &skins));
    FEM_TRY(model_read_paints(r));
    m->meshes = fem_calloc((size_t)mesh_count, sizeof *m->meshes);
    m->nodes = fem_calloc((size_t)node_count, sizeof *m->nodes);
    m->skins = fem_calloc((size_t)skin_count, sizeof *m->skins);
    m->order = fem_alloc((size_t)node_count, sizeof *m->order);
    m->morph_at = fem_alloc((size_t)node_count, sizeof *m->morph_at);
    m->world = fem_alloc(12 * (size_t)node_count, sizeof *m->world);
    if (!m->meshes || !m->nodes || !m->skins || !m->order || !m->morph_at || !m->world) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory for %d nodes", r->path, node_count);
        goto done;
    }
    for (int i = 0; i < mesh_count; i++) {
        m->mesh_count++;
        FEM_TRY(model_read_mesh(r, meshes[i], &m->meshes[i]));
    }
    for (int i = 0; i < skin_count; i++) {
        m->skin_count++;
        FEM_TRY(read_skin(r, skins[i], node_count, &m->skins[i]));
    }
    for (int i = 0; i < node_count; i++) {
        m->node_count++;
        FEM_TRY(read_node(r, nodes[i], &m->nodes[i]));
    }
    FEM_TRY(order_nodes(r, nodes));
    FEM_TRY(read_animation(r));
    FEM_TRY(make_drawing(r));
done:
    fem_free(meshes), fem_free(nodes), fem_free(skins);
    return status;
}

fem_status scene_model_read(scene_model **model, const char *path) {
    fem_status   status = FEM_OK;
    model_reader r = {.path = path};
    cJSON       *root = NULL;
    const char  *json = NULL;
    size_t       size, json_size = 0;
    r.model = fem_calloc(1, sizeof *r.model);
    if (!r.model) return fem_fail(FEM_NO_MEMORY, "%s: no memory to read it", path);
    r.model->path = fem_copy_string(path);
    if (!r.model->path) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory to read it", path);
        goto done;
    }
    FEM_TRY(fem_file_read(&r.model->memory, &size, path));
    FEM_TRY(open_container(&r, size, &json, &json_size));
    FEM_TRY(json_parse(&root, path, json, json_size));
    r.root = root;
    FEM_TRY(read_model(&r));
    *model = r.model;
    r.model = NULL;
done:
    cJSON_Delete(root);
    fem_free(r.accessors), fem_free(r.views);
    scene_model_destroy(r.model);
    return status;
}
