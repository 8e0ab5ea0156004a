// Instances of parts that are stitched while the others stay as they are: which of them an action means, and what each
// does. An instance is planned as a scene of its part alone, with the actions that mean it.
#include "libscene/internal.h"

#include <stdio.h>
#include <string.h>

static bool is_change(const scene_action *a) {
    return a->kind == SCENE_STITCH || a->kind == SCENE_UNSTITCH || a->kind == SCENE_CUT;
}

// ---- actions -------------------------------------------------------------------------------------------------------

// "INSTANCE/SEAM", or "SEAM" of all instances: what is behind the last stroke.
static const char *seam_of(const char *name) {
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static int seam_index(const scene_part *part, const char *name) {
    for (int i = 0; i < part->seam_count; i++)
        if (strcmp(part->seams[i].name, name) == 0) return i;
    return -1;
}

// What makes that an instance cannot be stitched, or NULL.
static const char *unstitchable(const scene_forest *f, const scene_part *part, int instance) {
    if (part->fixed.count == 0) return "stands free; what is stitched has \"fixed\" vertices";
    for (int i = 0; i < f->count; i++)
        if (f->instances[i].parent == instance) return "carries others; only what nothing hangs on is stitched";
    return NULL;
}

// The instances that an action means, into load.on: those of the name whose part has the seam, and of these the ones
// that the selection touches.
fem_status scene_find_stitched(scene_reader *reader, const cJSON *node, const char *name, const scene *s,
                               scene_action *action) {
    fem_status          status = FEM_OK;
    const scene_forest *f = &s->forest;
    const char         *seam = seam_of(name);
    char                prefix[200];
    scene_suggestion    suggestion;
    bool                all = seam == name;
    snprintf(prefix, sizeof prefix, "%.*s", all ? 0 : (int)(seam - name - 1), name);
    if (!all) FEM_TRY(scene_check_instance(reader, node, s, prefix));
    suggestion_start(&suggestion, seam);
    action->load.on.items = fem_alloc((size_t)f->count, sizeof *action->load.on.items);
    if (!action->load.on.items) return fem_fail(FEM_NO_MEMORY, "no memory for an action");
    for (int i = 0; i < f->count; i++) {
        const scene_part *part = &s->parts[f->instances[i].part];
        if (!all && !scene_instance_is(f, i, prefix)) continue;
        for (int k = 0; k < part->seam_count; k++) suggestion_offer(&suggestion, part->seams[k].name);
        if (seam_index(part, seam) < 0) continue;
        const char *wrong = unstitchable(f, part, i);
        if (wrong) return reader_fail(reader, node, "\"%.60s\" %s", f->instances[i].name, wrong);
        FEM_TRY(scene_check_stitched_modes(reader, node, part));
        action->load.on.items[action->load.on.count++] = i;
    }
    if (action->load.on.count == 0)
        return reader_fail(reader, node, "no instance%s%.60s has a seam \"%.60s\"%s", all ? "" : " ", prefix, seam,
                           suggestion_text(&suggestion));
done:
    return status;
}

// Leaves out the instances of which nothing is selected.
fem_status scene_narrow_stitched(const scene_reader *reader, const cJSON *node, const scene *s, scene_action *action) {
    scene_vertices *on = &action->load.on;
    int             kept = 0;
    for (int k = 0; k < on->count; k++) {
        bool touched = false;
        for (int v = 0; v < action->within.count && !touched; v++)
            touched = action->within.items[v] >= s->forest.vertex[on->items[k]] &&
                      action->within.items[v] < s->forest.vertex[on->items[k] + 1];
        if (touched) on->items[kept++] = on->items[k];
    }
    on->count = kept;
    return kept > 0 ? FEM_OK : reader_fail(reader, node, "selects nothing of the instances that are meant");
}

// ---- the plan -----------------------------------------------------------------------------------------------------

static void destroy_alone(scene *alone) {
    if (!alone) return;
    for (int i = 0; i < alone->action_count; i++)
        fem_free(alone->actions[i].within.items), fem_free(alone->actions[i].stitches);
    fem_free(alone->actions), fem_free(alone->grown);
    fem_free(alone);
}

void scene_stitched_destroy(scene_forest *forest) {
    for (int i = 0; i < forest->stitched_count; i++) destroy_alone(forest->stitched[i].alone);
    fem_free(forest->stitched);
    forest->stitched = NULL, forest->stitched_count = 0;
}

static bool means(const scene_action *a, int instance) {
    for (int i = 0; i < a->load.on.count; i++)
        if (a->load.on.items[i] == instance) return true;
    return false;
}

// The length of its part is so much in the world.
static double scale_of(const scene_forest *f, int instance) {
    double scale = 1;
    for (int i = instance; i >= 0; i = f->instances[i].parent) scale *= f->instances[i].at.scale;
    return scale;
}

// An action as it is for one instance: vertices are those of the part, and springs have N/m in the world, where the
// forces of the class act times the stiffness of the instance and the scale.
static fem_status copy_action(const scene *s, const cJSON *node, const scene_action *from, int instance,
                              scene_action *to) {
    const scene_forest *f = &s->forest;
    const char         *key = from->kind == SCENE_STITCH ? "stitch" : from->kind == SCENE_UNSTITCH ? "unstitch" : "cut";
    *to = *from;
    to->load = (scene_loading){0}, to->within = (scene_vertices){0};
    to->seam = seam_index(&s->parts[f->instances[instance].part],
                          seam_of(cJSON_GetObjectItemCaseSensitive(node, key)->valuestring));
    to->spring /= scale_of(f, instance) * f->instances[instance].stiffness;
    if (from->within.count == 0) return FEM_OK;
    to->within.items = fem_alloc((size_t)from->within.count, sizeof *to->within.items);
    if (!to->within.items) return fem_fail(FEM_NO_MEMORY, "no memory for a selection");
    for (int i = 0; i < from->within.count; i++)
        if (from->within.items[i] >= f->vertex[instance] && from->within.items[i] < f->vertex[instance + 1])
            to->within.items[to->within.count++] = from->within.items[i] - f->vertex[instance];
    return FEM_OK;
}

static fem_status plan_instance(scene_reader *reader, const cJSON *actions, const scene *s, int instance,
                                scene **made) {
    fem_status status = FEM_OK;
    int       *number = fem_alloc((size_t)s->action_count, sizeof *number);
    scene     *alone = fem_alloc(1, sizeof *alone);
    if (!number || !alone) {
        fem_free(alone), fem_free(number);
        return fem_fail(FEM_NO_MEMORY, "no memory for a stitched instance");
    }
    *alone = *s; // borrowed, but for what follows
    alone->object = s->forest.instances[instance].part;
    alone->forest = alone->members = (scene_forest){0};
    alone->grown = NULL, alone->grown_count = alone->action_count = 0;
    alone->actions = fem_calloc((size_t)s->action_count, sizeof *alone->actions);
    if (!alone->actions) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a stitched instance");
        goto done;
    }
    for (int i = 0; i < s->action_count; i++) {
        const scene_action *a = &s->actions[i];
        const cJSON        *node = cJSON_GetArrayItem(actions, i);
        if ((a->kind == SCENE_STIFFNESS || a->kind == SCENE_FREQUENCY) && means(a, instance)) {
            status = reader_fail(reader, node,
                                 "actions[%d]: \"%.60s\" is stitched, and its springs would become stiffer with it; "
                                 "what is stitched keeps its stiffness",
                                 i, s->forest.instances[instance].name);
            goto done;
        }
        if (!is_change(a) || !means(a, instance)) continue;
        number[alone->action_count] = i;
        FEM_TRY(copy_action(s, node, a, instance, &alone->actions[alone->action_count++]));
    }
    FEM_TRY(scene_plan_body(reader, actions, number, alone));
    *made = alone;
    alone = NULL;
done:
    destroy_alone(alone);
    fem_free(number);
    return status;
}

fem_status scene_plan_instances(scene_reader *reader, const cJSON *actions, scene *s) {
    fem_status    status = FEM_OK;
    scene_forest *f = &s->forest;
    size_t        room = 0;
    for (int i = 0; i < f->count; i++) {
        bool any = false;
        for (int k = 0; k < s->action_count && !any; k++) any = is_change(&s->actions[k]) && means(&s->actions[k], i);
        if (!any) continue;
        FEM_TRY(fem_grow((void **)&f->stitched, &room, (size_t)f->stitched_count + 1, sizeof *f->stitched));
        f->stitched[f->stitched_count] = (scene_stitched){.instance = i};
        f->stitched_count++;
        FEM_TRY(plan_instance(reader, actions, s, i, &f->stitched[f->stitched_count - 1].alone));
    }
done:
    return status;
}
