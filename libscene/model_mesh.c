// Meshes and materials of a .glb file.
#include "libscene/model_reader.h"

#include <string.h>

// ---- meshes -----------------------------------------------------------------------------------------------------

static void copy_floats(const model_accessor *a, size_t count, float *to) {
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < a->width; k++) to[i * (size_t)a->width + (size_t)k] = (float)model_number(a, i, k);
}

// A small file can name the same bytes as the vertices of a million meshes.
static fem_status count_bytes(const model_reader *r, const cJSON *json, double bytes) {
    r->model->stored += bytes;
    return r->model->stored < 8e9 ? FEM_OK
                                  : model_bad(r, json, "vertices and morph targets of more than 8 GB", "fewer");
}

static fem_status read_triangles(const model_reader *r, const cJSON *json, model_primitive *p) {
    model_accessor a;
    size_t         mode;
    fem_status     status = model_get_size(r, json, "mode", 4, 6, &mode);
    if (status == FEM_OK) status = model_get_attribute(r, json, "indices", 1, 0, &a);
    if (status != FEM_OK) return status;
    bool   indexed = model_get(json, "indices") != NULL;
    size_t corners = indexed ? a.count : (size_t)p->vertex_count;
    if (mode != 4) return model_bad(r, json, "points, lines, strips or fans", "triangles (mode 4)");
    status = count_bytes(r, json, 4 * (double)corners);
    if (status != FEM_OK) return status;
    p->triangle_count = (int)(corners / 3);
    p->triangles = fem_alloc(3 * (size_t)p->triangle_count, sizeof *p->triangles);
    if (!p->triangles) return fem_fail(FEM_NO_MEMORY, "%s: no memory for %d triangles", r->path, p->triangle_count);
    for (size_t i = 0; i < 3 * (size_t)p->triangle_count; i++) {
        double vertex = indexed ? model_number(&a, i, 0) : (double)i;
        if (!(vertex >= 0 && vertex < p->vertex_count)) return model_bad(r, json, "a corner that is no vertex", "one");
        p->triangles[i] = (int)vertex;
    }
    return FEM_OK;
}

// Area-weighted, for meshes that come without.
static void make_normals(model_primitive *p) {
    memset(p->normals, 0, 3 * (size_t)p->vertex_count * sizeof *p->normals);
    for (int t = 0; t < p->triangle_count; t++) {
        const int *c = p->triangles + 3 * (size_t)t;
        double     a[3], b[3], n[3];
        for (size_t i = 0; i < 3; i++) {
            double x0 = (double)p->positions[3 * (size_t)c[0] + i];
            a[i] = (double)p->positions[3 * (size_t)c[1] + i] - x0;
            b[i] = (double)p->positions[3 * (size_t)c[2] + i] - x0;
        }
        vec3_cross(n, a, b);
        for (int k = 0; k < 3; k++)
            for (size_t i = 0; i < 3; i++) p->normals[3 * (size_t)c[k] + i] += (float)n[i];
    }
}

static fem_status read_skinning(const model_reader *r, const cJSON *attributes, model_primitive *p) {
    model_accessor joints, weights;
    size_t         n = (size_t)p->vertex_count;
    fem_status     status = model_get_attribute(r, attributes, "JOINTS_0", 4, n, &joints);
    if (status == FEM_OK) status = model_get_attribute(r, attributes, "WEIGHTS_0", 4, n, &weights);
    if (status != FEM_OK || joints.count == 0 || weights.count == 0) return status;
    p->joints = fem_alloc(4 * n, sizeof *p->joints), p->weights = fem_alloc(4 * n, sizeof *p->weights);
    if (!p->joints || !p->weights) return fem_fail(FEM_NO_MEMORY, "%s: no memory for %zu vertices", r->path, n);
    copy_floats(&weights, n, p->weights);
    for (size_t i = 0; i < 4 * n; i++) {
        double joint = model_number(&joints, i / 4, (int)(i % 4));
        p->joints[i] = joint >= 0 && joint < 1e6 ? (int)joint : 0; // against the skin when a node uses both
    }
    return FEM_OK;
}

static fem_status read_targets(const model_reader *r, const cJSON *json, model_primitive *p) {
    fem_status    status = FEM_OK;
    const cJSON **targets = NULL;
    size_t        n3 = 3 * (size_t)p->vertex_count;
    FEM_TRY(model_get_list(r, json, "targets", &p->target_count, &targets));
    FEM_TRY(count_bytes(r, json, (double)p->target_count * (double)n3 * 8));
    p->deltas = fem_calloc(2 * n3 * (size_t)p->target_count, sizeof *p->deltas);
    if (!p->deltas) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory for %d morph targets", r->path, p->target_count);
        goto done;
    }
    for (int k = 0; k < p->target_count; k++) {
        model_accessor a;
        FEM_TRY(model_get_attribute(r, targets[k], "POSITION", 3, (size_t)p->vertex_count, &a));
        if (a.count > 0) copy_floats(&a, (size_t)p->vertex_count, p->deltas + 2 * (size_t)k * n3);
        FEM_TRY(model_get_attribute(r, targets[k], "NORMAL", 3, (size_t)p->vertex_count, &a));
        if (a.count > 0) copy_floats(&a, (size_t)p->vertex_count, p->deltas + (2 * (size_t)k + 1) * n3);
    }
done:
    fem_free(targets);
    return status;
}

static fem_status read_primitive(const model_reader *r, const cJSON *json, model_primitive *p) {
    fem_status     status = FEM_OK;
    const cJSON   *attributes = model_get(json, "attributes");
    model_accessor positions, normals, uv;
    if (!cJSON_IsObject(attributes) || !model_get(attributes, "POSITION"))
        return model_bad(r, json, "a primitive without positions", "attributes with POSITION");
    FEM_TRY(model_get_attribute(r, attributes, "POSITION", 3, 1, &positions));
    if (positions.count > MODEL_MOST_VERTICES) return model_bad(r, json, "more than 100 million vertices", "fewer");
    p->vertex_count = (int)positions.count;
    size_t n = positions.count;
    FEM_TRY(count_bytes(r, json, 64 * (double)n));
    FEM_TRY(model_get_attribute(r, attributes, "NORMAL", 3, n, &normals));
    FEM_TRY(model_get_attribute(r, attributes, "TEXCOORD_0", 2, n, &uv));
    p->positions = fem_alloc(3 * n, sizeof *p->positions), p->normals = fem_alloc(3 * n, sizeof *p->normals);
    if (uv.count > 0) p->uv = fem_alloc(2 * n, sizeof *p->uv);
    if (!p->positions || !p->normals || (uv.count > 0 && !p->uv))
        return fem_fail(FEM_NO_MEMORY, "%s: no memory for %zu vertices", r->path, n);
    copy_floats(&positions, n, p->positions);
    if (uv.count > 0) copy_floats(&uv, n, p->uv);
    FEM_TRY(read_triangles(r, json, p));
    if (normals.count > 0)
        copy_floats(&normals, n, p->normals);
    else
        make_normals(p);
    FEM_TRY(read_targets(r, json, p));
    FEM_TRY(read_skinning(r, attributes, p));
    FEM_TRY(model_get_index(r, json, "material", r->model->drawing.paint_count - 1, &p->paint));
    if (p->paint < 0) p->paint = r->model->drawing.paint_count - 1; // the last is glTF's default
done:
    return status;
}

fem_status model_read_mesh(const model_reader *r, const cJSON *json, model_mesh *mesh) {
    fem_status    status = FEM_OK;
    const cJSON **items = NULL;
    int           count;
    FEM_TRY(model_get_list(r, json, "primitives", &count, &items));
    mesh->primitives = fem_calloc((size_t)count, sizeof *mesh->primitives);
    if (!mesh->primitives) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory for %d primitives", r->path, count);
        goto done;
    }
    for (int i = 0; i < count; i++) {
        mesh->primitive_count++;
        FEM_TRY(read_primitive(r, items[i], &mesh->primitives[i]));
        if (i > 0 && mesh->primitives[i].target_count != mesh->primitives[0].target_count) {
            status = model_bad(r, items[i], "primitives with different numbers of targets", "the same in all");
            goto done;
        }
    }
    mesh->target_count = count > 0 ? mesh->primitives[0].target_count : 0;
    mesh->weights = fem_calloc((size_t)mesh->target_count, sizeof *mesh->weights);
    if (!mesh->weights) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory for weights", r->path);
        goto done;
    }
    FEM_TRY(model_get_numbers(r, json, "weights", mesh->target_count, mesh->weights));
done:
    fem_free(items);
    return status;
}

// ---- materials --------------------------------------------------------------------------------------------------

// A picture that is stored in the file; other kinds than PNG are left out.
static fem_status read_image(const model_reader *r, const cJSON *json, scene_image *image) {
    int                  view;
    const unsigned char *data;
    size_t               length, stride;
    fem_status           status = model_get_index(r, json, "bufferView", r->view_count, &view);
    if (status != FEM_OK || view < 0) return status;
    status = model_get_view(r, view, &data, &length, &stride);
    if (status == FEM_OK && length > 8 && memcmp(data, "\x89PNG", 4) == 0) {
        status = model_image_read(image, data, length);
        if (status != FEM_OK) fem_fail_prefix(status, "%s:%d: ", r->path, json->valueint);
    }
    return status;
}

static fem_status read_paint(const model_reader *r, const cJSON *json, int texture_count, const cJSON **textures,
                             scene_paint *paint) {
    fem_status   status = FEM_OK;
    const cJSON *pbr = model_get(json, "pbrMetallicRoughness"), *texture = model_get(pbr, "baseColorTexture");
    const cJSON *mode = model_get(json, "alphaMode");
    double       colour[4] = {1, 1, 1, 1}, cutoff = 0.5;
    int          index;
    paint->name = model_get_name(json);
    if (!paint->name) return fem_fail(FEM_NO_MEMORY, "%s: no memory for a name", r->path);
    FEM_TRY(model_get_numbers(r, pbr, "baseColorFactor", 4, colour));
    for (int i = 0; i < 4; i++) paint->colour[i] = (float)fmin(fmax(colour[i], 0), 1);
    const cJSON *roughness = model_get(pbr, "roughnessFactor"), *cut = model_get(json, "alphaCutoff");
    paint->roughness = cJSON_IsNumber(roughness) ? fmin(fmax(roughness->valuedouble, 0), 1) : 1;
    if (cJSON_IsNumber(cut)) cutoff = fmin(fmax(cut->valuedouble, 0), 1);
    bool opaque = !cJSON_IsString(mode) || strcmp(mode->valuestring, "OPAQUE") == 0;
    paint->alpha_cutoff = opaque ? 0 : (float)cutoff;
    paint->double_sided = cJSON_IsTrue(model_get(json, "doubleSided"));
    if (texture) {
        FEM_TRY(model_get_index(r, texture, "index", texture_count, &index));
        if (index >= 0)
            FEM_TRY(model_get_index(r, textures[index], "source", r->model->drawing.image_count, &paint->image));
    }
    if (paint->image >= 0 && !r->model->drawing.images[paint->image].pixels) paint->image = -1;
done:
    return status;
}

fem_status model_read_paints(model_reader *r) {
    fem_status     status = FEM_OK;
    scene_drawing *d = &r->model->drawing;
    const cJSON  **images = NULL, **textures = NULL, **materials = NULL;
    int            image_count, texture_count, count;
    FEM_TRY(model_get_list(r, r->root, "images", &image_count, &images));
    FEM_TRY(model_get_list(r, r->root, "textures", &texture_count, &textures));
    FEM_TRY(model_get_list(r, r->root, "materials", &count, &materials));
    d->images = fem_calloc((size_t)image_count, sizeof *d->images);
    d->paints = fem_calloc((size_t)count + 1, sizeof *d->paints);
    if (!d->images || !d->paints) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory for %d materials", r->path, count);
        goto done;
    }
    for (int i = 0; i < image_count; i++) {
        d->image_count++;
        FEM_TRY(read_image(r, images[i], &d->images[i]));
    }
    for (int i = 0; i <= count; i++) {
        d->paints[i] = (scene_paint){.colour = {1, 1, 1, 1}, .image = -1, .roughness = 1};
        d->paint_count++;
        if (i < count) FEM_TRY(read_paint(r, materials[i], texture_count, textures, &d->paints[i]));
    }
done:
    fem_free(images), fem_free(textures), fem_free(materials);
    return status;
}
