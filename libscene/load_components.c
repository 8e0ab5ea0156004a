// The pieces of a part's mesh as parts and instances: libdomain/crowd.h finds them.
#include "libscene/internal.h"

#include <stdio.h>
#include <string.h>

fem_status scene_grow_parts(scene *s, int more) {
    scene_part *parts = fem_calloc((size_t)s->part_count + (size_t)more + 1, sizeof *parts);
    if (!parts) return fem_fail(FEM_NO_MEMORY, "no memory for %d parts", more);
    memcpy(parts, s->parts, (size_t)s->part_count * sizeof *parts);
    fem_free(s->parts);
    s->parts = parts;
    return FEM_OK;
}

scene_part scene_part_like(const scene_part *part) {
    return (scene_part){
        .quadrature = part->quadrature,
        .scale = part->scale,
        .modes = {.method = part->modes.method, .recipe = part->modes.recipe, .linear = part->modes.linear},
        .forces = part->forces,
        .training = part->training,
        .drag = part->drag};
}

// Modes of a class: of its own, or those of the part.
static fem_status count_modes(scene_reader *reader, const cJSON *section, const raw_components *raw, int class,
                              int classes, int *modes) {
    const cJSON *node = raw->modes;
    int          given = cJSON_IsArray(node) ? cJSON_GetArraySize(node) : 0;
    if (!node) return FEM_OK;
    if (cJSON_IsArray(node) && given != classes) {
        reader_enter(reader, "modes");
        return reader_fail(reader, cJSON_GetObjectItemCaseSensitive(section, "modes"),
                           "has %d item%s, expected one number or %d, one for each class", given, given == 1 ? "" : "s",
                           classes);
    }
    *modes = (int)(given > 0 ? cJSON_GetArrayItem(node, class)->valuedouble : node->valuedouble);
    return FEM_OK;
}

// A class as a part; mesh and fixed vertices are taken over.
static fem_status make_part(const scene_part *from, domain_crowd *crowd, int class, int modes, scene_part *part) {
    char name[96];
    snprintf(name, sizeof name, "%.60s.c%d", from->name, class);
    *part = scene_part_like(from);
    part->name = fem_copy_string(name);
    if (!part->name) return fem_fail(FEM_NO_MEMORY, "no memory for a part");
    part->modes.recipe.count = modes;
    part->mesh = crowd->meshes[class];
    crowd->meshes[class] = (fem_mesh){0};
    part->fixed = (scene_vertices){crowd->fixed_count[class], crowd->fixed[class]};
    crowd->fixed[class] = NULL;
    return FEM_OK;
}

fem_status scene_read_components(scene_reader *reader, const cJSON *object, const raw_components *raw, int part,
                                 scene *s, domain_crowd *crowd) {
    fem_status           status = FEM_OK;
    const cJSON         *section = cJSON_GetObjectItemCaseSensitive(object, "components");
    size_t               length = reader_enter(reader, "components");
    domain_crowd_options options = {.tolerance = raw->tolerance,
                                    .reach = raw->reach,
                                    .fixed_count = s->parts[part].fixed.count,
                                    .fixed = s->parts[part].fixed.items};
    if (s->parts[part].surface.vertex_count > 0)
        return reader_fail(reader, section, "its part \"%s\" has a \"surface\", which is not taken apart",
                           s->parts[part].name);
    if (s->parts[part].poses)
        return reader_fail(reader, section, "its part \"%s\" has training poses from a file, which are of the whole",
                           s->parts[part].name);
    FEM_TRY(reader_prefix(reader, section, domain_find_crowd(crowd, &s->parts[part].mesh, &options)));
    FEM_TRY(scene_grow_parts(s, crowd->class_count));
    for (int k = 0; k < crowd->class_count; k++) {
        int modes = s->parts[part].modes.recipe.count;
        FEM_TRY(count_modes(reader, section, raw, k, crowd->class_count, &modes));
        s->part_count++; // from here on scene_destroy frees what it holds
        FEM_TRY(make_part(&s->parts[part], crowd, k, modes, &s->parts[s->part_count - 1]));
    }
    reader_leave(reader, length);
done:
    return status;
}
