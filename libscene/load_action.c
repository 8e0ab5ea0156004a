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

static fem_status read_move(scene_reader *reader, const raw_move *raw, const fem_mesh *mesh, bool dynamic,
                            scene_action *action) {
    fem_status status = FEM_OK;
    int        count = cJSON_GetArraySize(raw->keyframes), i = 0;
    size_t     outer = reader_enter(reader, "move"), length;
    action->smooth = raw->interpolation == 1;
    if (isnan(raw->centre[0]))
        mean_position(mesh, &action->on, action->centre);
    else
        memcpy(action->centre, raw->centre, sizeof action->centre);
    length = reader_enter(reader, "keyframes");
    action->keyframes = fem_calloc((size_t)count, sizeof *action->keyframes);
    if (!action->keyframes) return fem_fail(FEM_NO_MEMORY, "no memory for %d keyframes", count);
    for (const cJSON *item = raw->keyframes->child; item; item = item->next, i++) {
        size_t inner = reader_enter_index(reader, i);
        FEM_TRY(read_keyframe(reader, item, i > 0 ? &action->keyframes[i - 1] : NULL, dynamic, &action->keyframes[i]));
        reader_leave(reader, inner);
    }
    action->keyframe_count = count;
    reader_leave(reader, length);
    reader_leave(reader, outer);
done:
    return status;
}

// A load on held vertices only, or on vertices that span no surface, would do nothing without a word.
static fem_status check_load(scene_reader *reader, const cJSON *node, const raw_action *raw, const scene_part *part,
                             const scene_action *action) {
    fem_status status = FEM_OK;
    int        held = 0;
    for (int i = 0, k = 0; i < action->on.count; i++) {
        while (k < part->fixed.count && part->fixed.items[k] < action->on.items[i]) k++;
        held += k < part->fixed.count && part->fixed.items[k] == action->on.items[i];
    }
    if (held == action->on.count) {
        reader_enter(reader, "on");
        return reader_fail(reader, raw->on, "selects only vertices that are fixed, where a load has no effect");
    }
    if (!(raw->end > raw->start)) {
        reader_enter(reader, "end");
        return reader_fail(reader, cJSON_GetObjectItemCaseSensitive(node, "end"),
                           "is %g, expected more than the %g of \"start\"", raw->end, raw->start);
    }
    if (action->kind == SCENE_FORCE) return FEM_OK;
    double  area, unit[3] = {1, 0, 0};
    double *force = fem_calloc(3 * (size_t)part->mesh.vertex_count, sizeof *force);
    if (!force) return fem_fail(FEM_NO_MEMORY, "no memory for a load on %d vertices", part->mesh.vertex_count);
    status = solver_add_surface_load(&part->mesh, action->on.count, action->on.items, unit, 0, force, &area);
    if (status == FEM_BAD_INPUT) {
        reader_enter(reader, "on");
        status =
            reader_fail(reader, raw->on, "selects %d of the vertices, but no face of the surface with all its corners",
                        action->on.count);
    }
    fem_free(force);
    return status;
}

fem_status scene_read_action(scene_reader *reader, const cJSON *node, const scene_part *part, bool dynamic,
                             scene_action *action) {
    fem_status status = FEM_OK;
    raw_action raw = {0};
    FEM_TRY(reader_table(reader, node, &scene_action_table, &raw));
    action->kind = (scene_action_kind)raw.variant;
    action->start = raw.start, action->end = raw.end, action->ramp = raw.ramp;
    const double *vector = action->kind == SCENE_FORCE ? raw.force : raw.traction;
    memcpy(action->vector, vector, sizeof action->vector);
    if (action->kind == SCENE_PRESSURE) action->vector[0] = raw.pressure;
    size_t length = reader_enter(reader, "on");
    FEM_TRY(scene_select(reader, raw.on, &part->mesh, &action->on));
    reader_leave(reader, length);
    if (action->kind == SCENE_MOVE)
        FEM_TRY(read_move(reader, &raw.move, &part->mesh, dynamic, action));
    else
        FEM_TRY(check_load(reader, node, &raw, part, action));
done:
    return status;
}
