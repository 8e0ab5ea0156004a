// The basis of a reduced part as a scene describes it.
#include "libscene/internal.h"

#include <string.h>

void scene_modes_destroy(scene_modes *modes) {
    for (int i = 0; i < modes->load_count; i++) fem_free(modes->loads[i].on.items);
    fem_free(modes->loads);
    fem_free(modes->file);
    *modes = (scene_modes){0};
}

static fem_status read_sketch(scene_reader *reader, const cJSON *node, const scene_part *part, scene_modes *modes) {
    fem_status status = FEM_OK;
    int        count = cJSON_GetArraySize(node);
    size_t     length = reader_enter(reader, "sketch");
    modes->loads = fem_calloc((size_t)count, sizeof *modes->loads);
    if (!modes->loads) return fem_fail(FEM_NO_MEMORY, "no memory for %d loads", count);
    for (const cJSON *item = node->child; item; item = item->next) {
        raw_sketch     raw = {0};
        scene_loading *load = &modes->loads[modes->load_count];
        size_t         inner = reader_enter_index(reader, modes->load_count++);
        FEM_TRY(reader_table(reader, item, &scene_sketch_table, &raw));
        const double *vectors[] = {raw.force, raw.traction, &raw.pressure, raw.acceleration};
        FEM_TRY(scene_read_load(reader, raw.on, (scene_action_kind)raw.variant, vectors[raw.variant], part, load));
        reader_leave(reader, inner);
    }
    reader_leave(reader, length);
done:
    return status;
}

// How many linear modes the derivatives of each order are made of.
static fem_status read_orders(scene_reader *reader, const cJSON *node, const raw_modes *raw, modes_recipe *recipe) {
    int    order = 0;
    size_t length = reader_enter(reader, "orders");
    for (const cJSON *item = node ? node->child : NULL; item; item = item->next, order++) {
        reader_leave(reader, length);
        reader_enter(reader, "orders");
        reader_enter_index(reader, order);
        if (order >= raw->derivatives)
            return reader_fail(reader, item, "is for derivatives of order %d, but \"derivatives\" is %d", order + 1,
                               raw->derivatives);
        int most = order == 0 ? recipe->linear : recipe->modes[order - 1];
        if ((int)item->valuedouble > most)
            return reader_fail(reader, item, "is %d, expected at most the %d %s", (int)item->valuedouble, most,
                               order == 0 ? "linear modes" : "of the order below");
        recipe->modes[order] = (int)item->valuedouble;
    }
    reader_leave(reader, length);
    return FEM_OK;
}

fem_status scene_read_modes(scene_reader *reader, const cJSON *node, const raw_modes *raw, const scene_part *part,
                            scene_modes *modes) {
    static const unsigned seeds[] = {0, MODES_SEED_RIGID, MODES_SEED_QUADRATIC, MODES_SEED_RANDOM};
    fem_status            status = FEM_OK;
    modes_recipe         *recipe = &modes->recipe;
    size_t                length = reader_enter(reader, "modes");
    modes->method = (scene_modes_method)raw->method;
    *recipe = modes_default_recipe(modes->method == SCENE_MODES_LANCZOS ? MODES_LANCZOS : MODES_KRYLOV);
    recipe->count = raw->count;
    recipe->derivatives = raw->derivatives;
    recipe->linear = raw->linear > 0 ? raw->linear : raw->derivatives > 0 && raw->count > 12 ? 12 : raw->count;
    modes->linear = raw->linear > 0;
    FEM_TRY(read_orders(reader, raw->orders, raw, recipe));
    recipe->condense = (modes_condense_method)raw->condense;
    recipe->energy = raw->energy;
    recipe->krylov.seeds = seeds[raw->seeds];
    recipe->krylov.orthogonalise.method = (modes_gram_schmidt)raw->orthogonalise;
    if (raw->derivatives == 0 && recipe->linear < raw->count && raw->linear > 0) {
        reader_enter(reader, "linear");
        return reader_fail(reader, cJSON_GetObjectItemCaseSensitive(node, "linear"),
                           "is %d, but without derivatives the %d modes of \"count\" are all linear", raw->linear,
                           raw->count);
    }
    if (modes->method == SCENE_MODES_FILE) FEM_TRY(scene_relative_path(&modes->file, reader, raw->file));
    if (modes->method == SCENE_MODES_SKETCH) {
        if (part->fixed.count == 0)
            return reader_fail(reader, node,
                               "a sketch needs a part with \"fixed\" vertices that hold it under its loads");
        FEM_TRY(read_sketch(reader, raw->sketch, part, modes));
    }
    reader_leave(reader, length);
done:
    return status;
}
