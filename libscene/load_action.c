// Actions of a scene: loads on selections, and prescribed motions with their keyframes.
#include "libscene/internal.h"

#include <math.h>
#include <string.h>

static fem_status read_keyframe(scene_reader *reader, const cJSON *node, const scene_keyframe *before, bool dynamic,
                                scene_keyframe *frame) {
    fem_status status = FEM_OK;
    FEM_TRY(reader_table(reader, node, &scene_keyframe_table, frame));
    if (before && !(frame->time > before->time)) {
        reader_enter(reader, "time");
        return reader_fail(reader, cJSON_GetObjectItemCaseSensitive(node, "time"),
                           "is %g, expected more than the %g of the keyframe before", frame->time, before->time);
    }
    bool moved = vec3_norm(frame->translation) > 0 || vec3_norm(frame->rotation) > 0;
    if (dynamic && frame->time == 0 && moved)
        return reader_fail(reader, node, "is not at rest, but every motion starts at rest at time 0");
done:
    return status;
}

static void mean_position(const fem_mesh *mesh, const scene_vertices *on, double mean[3]) {
    mean[0] = mean[1] = mean[2] = 0;
    for (int i = 0; i < on->count; i++) vec3_axpy(mean, 1.0 / on->count, mesh->vertices + 3 * (size_t)on->items[i]);
}

fem_status scene_read_keyframes(scene_reader *reader, const cJSON *node, bool dynamic, scene_move *move) {
    fem_status status = FEM_OK;
    int        count = cJSON_GetArraySize(node), i = 0;
    size_t     length = reader_enter(reader, "keyframes");
    move->keyframes = fem_calloc((size_t)count, sizeof *move->keyframes);
    if (!move->keyframes) return fem_fail(FEM_NO_MEMORY, "no memory for %d keyframes", count);
    for (const cJSON *item = node->child; item; item = item->next, i++) {
        size_t inner = reader_enter_index(reader, i);
        FEM_TRY(read_keyframe(reader, item, i > 0 ? &move->keyframes[i - 1] : NULL, dynamic, &move->keyframes[i]));
        reader_leave(reader, inner);
    }
    move->count = count;
    reader_leave(reader, length);
done:
    return status;
}

static fem_status read_move(scene_reader *reader, const raw_move *raw, const fem_mesh *mesh, const scene_vertices *on,
                            bool dynamic, scene_move *move) {
    fem_status status = FEM_OK;
    size_t     outer = reader_enter(reader, "move");
    move->smooth = raw->interpolation == 1;
    if (isnan(raw->centre[0]))
        mean_position(mesh, on, move->centre);
    else
        memcpy(move->centre, raw->centre, sizeof move->centre);
    FEM_TRY(scene_read_keyframes(reader, raw->keyframes, dynamic, move));
    reader_leave(reader, outer);
done:
    return status;
}

// A load on held vertices only, or on vertices that span no surface, would do nothing without a word.
static fem_status check_load(scene_reader *reader, const cJSON *on, const scene_part *part, const scene_loading *load) {
    fem_status status = FEM_OK;
    int        held = 0;
    for (int i = 0, k = 0; i < load->on.count; i++) {
        while (k < part->fixed.count && part->fixed.items[k] < load->on.items[i]) k++;
        held += k < part->fixed.count && part->fixed.items[k] == load->on.items[i];
    }
    if (held == load->on.count)
        return reader_fail(reader, on, "selects only vertices that are fixed, where a load has no effect");
    if (load->kind == SCENE_FORCE || load->kind == SCENE_ACCELERATION) return FEM_OK;
    double  area, unit[3] = {1, 0, 0};
    double *force = fem_calloc(3 * (size_t)part->mesh.vertex_count, sizeof *force);
    if (!force) return fem_fail(FEM_NO_MEMORY, "no memory for a load on %d vertices", part->mesh.vertex_count);
    status = solver_add_surface_load(&part->mesh, load->on.count, load->on.items, unit, 0, force, &area);
    if (status == FEM_BAD_INPUT)
        status = reader_fail(reader, on, "selects %d of the vertices, but no face of the surface with all its corners",
                             load->on.count);
    fem_free(force);
    return status;
}

fem_status scene_read_load(scene_reader *reader, const cJSON *on, scene_action_kind kind, const double *vector,
                           const scene_part *part, scene_loading *load) {
    fem_status status = FEM_OK;
    size_t     length = reader_enter(reader, "on");
    load->kind = kind;
    memcpy(load->vector, vector, (kind == SCENE_PRESSURE ? 1 : 3) * sizeof *vector);
    FEM_TRY(scene_select(reader, on, &part->mesh, &load->on));
    FEM_TRY(check_load(reader, on, part, load));
    reader_leave(reader, length);
done:
    return status;
}

// Another material at run time: a reduced body with polynomials, and the same kind of material.
static fem_status read_material_change(scene_reader *reader, const cJSON *node, const raw_action *raw, const scene *s,
                                       int material_count, const fem_material *materials, scene_action *action) {
    fem_status        status = FEM_OK;
    const scene_part *part = &s->parts[s->object];
    const fem_mesh   *mesh = &part->mesh;
    const cJSON      *name = cJSON_GetObjectItemCaseSensitive(node, "material");
    int               index = 0;
    if (s->method != SCENE_REDUCED || part->forces != SCENE_POLYNOMIAL || s->tree.domains.count > 0 ||
        s->forest.count > 0)
        return reader_fail(
            reader, node,
            "a material changes at run time only with \"method\": \"reduced\" and polynomial forces, in one "
            "piece; domains change their \"stiffness\"");
    action->region = -1;
    if (raw->region) {
        size_t length = reader_enter(reader, "region");
        FEM_TRY(scene_find_region(reader, cJSON_GetObjectItemCaseSensitive(node, "region"), raw->region, mesh,
                                  &action->region));
        reader_leave(reader, length);
    }
    size_t length = reader_enter(reader, "material");
    FEM_TRY(scene_find_material(reader, name, material_count, materials, &index));
    action->material = materials[index];
    for (int i = 0; i < mesh->region_count; i++) {
        const fem_material *now = &mesh->materials[mesh->regions[i].material];
        if ((action->region < 0 || action->region == i) && now->kind != action->material.kind)
            return reader_fail(reader, name, "is %s, but the region \"%.60s\" is %s, and the type cannot change",
                               fem_material_kind_name(action->material.kind), mesh->regions[i].name,
                               fem_material_kind_name(now->kind));
        bool heavier = now->density != action->material.density;
        if ((action->region < 0 || action->region == i) && heavier &&
            (part->fixed.count == 0 || s->solver.mass == FEM_MASS_LUMPED))
            return reader_fail(
                reader, name,
                "has another density, which changes at run time only for held bodies with the consistent mass");
    }
    reader_leave(reader, length);
done:
    return status;
}

// Another stiffness of a domain, or of all, at run time.
static fem_status read_stiffness_change(scene_reader *reader, const cJSON *node, const raw_action *raw, const scene *s,
                                        scene_action *action) {
    fem_status status = FEM_OK;
    if (s->forest.count > 0) {
        const cJSON *on = cJSON_GetObjectItemCaseSensitive(node, "domain");
        size_t       length = reader_enter(reader, "domain");
        action->factor = action->kind == SCENE_STIFFNESS ? raw->stiffness : raw->frequency;
        if (raw->domain) FEM_TRY(scene_check_instance(reader, on, s, raw->domain));
        action->load.on.items = fem_alloc((size_t)s->forest.count, sizeof *action->load.on.items);
        if (!action->load.on.items) return fem_fail(FEM_NO_MEMORY, "no memory for an action");
        for (int i = 0; i < s->forest.count; i++)
            if (!raw->domain || scene_instance_is(&s->forest, i, raw->domain))
                action->load.on.items[action->load.on.count++] = i;
        reader_leave(reader, length);
        return FEM_OK;
    }
    if (s->tree.domains.count == 0)
        return reader_fail(reader, node,
                           "only domains change their stiffness, expected an object with \"decompose\", or a "
                           "part with \"seams\"");
    if (raw->within) {
        reader_enter(reader, "within");
        return reader_fail(reader, raw->within, "has no meaning in a tree of domains, expected \"domain\"");
    }
    action->factor = action->kind == SCENE_STIFFNESS ? raw->stiffness : raw->frequency;
    action->domain = -1;
    if (raw->domain) {
        size_t length = reader_enter(reader, "domain");
        FEM_TRY(scene_find_domain(reader, cJSON_GetObjectItemCaseSensitive(node, "domain"), raw->domain,
                                  &s->tree.domains, &action->domain));
        reader_leave(reader, length);
    }
done:
    return status;
}

fem_status scene_read_action(scene_reader *reader, const cJSON *node, const scene *s, int material_count,
                             const fem_material *materials, scene_action *action) {
    fem_status        status = FEM_OK;
    raw_action        raw = {0};
    const scene_part *part = &s->parts[s->object];
    FEM_TRY(reader_table(reader, node, &scene_action_table, &raw));
    action->kind = (scene_action_kind)raw.variant;
    action->start = raw.start, action->end = raw.end, action->ramp = raw.ramp;
    if (action->kind == SCENE_MATERIAL)
        return read_material_change(reader, node, &raw, s, material_count, materials, action);
    action->seam = -1;
    bool stitch = action->kind == SCENE_STITCH || action->kind == SCENE_UNSTITCH || action->kind == SCENE_CUT;
    if (stitch ||
        (action->kind == SCENE_STIFFNESS && s->tree.domains.count == 0 && s->forest.count == 0 && part->seam_count > 0))
        return scene_read_stitch(reader, node, &raw, s, action);
    if (action->kind == SCENE_STIFFNESS || action->kind == SCENE_FREQUENCY)
        return read_stiffness_change(reader, node, &raw, s, action);
    if (action->kind == SCENE_MOVE) {
        size_t length = reader_enter(reader, "on");
        FEM_TRY(scene_select(reader, raw.on, &part->mesh, &action->load.on));
        reader_leave(reader, length);
        return read_move(reader, &raw.move, &part->mesh, &action->load.on, s->method != SCENE_STATIC, &action->move);
    }
    const double *vectors[] = {raw.force, raw.traction, &raw.pressure, raw.acceleration};
    FEM_TRY(scene_read_load(reader, raw.on, action->kind, vectors[action->kind], part, &action->load));
    if (!(raw.end > raw.start)) {
        reader_enter(reader, "end");
        return reader_fail(reader, cJSON_GetObjectItemCaseSensitive(node, "end"),
                           "is %g, expected more than the %g of \"start\"", raw.end, raw.start);
    }
done:
    return status;
}
