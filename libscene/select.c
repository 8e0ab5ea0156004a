// Vertex selections: a set's name, an object (numbers, file, region, box, plane, half-space, ball, nearest), or a list
// of those, which means all of them together. Geometry is that of rest, and a selection must not come out empty.
#include "libscene/internal.h"

#include <math.h>
#include <string.h>

// What lies on a border by rounding belongs to it: this share of the bounding box's diagonal.
static const double BORDER = 1e-9, PLANE = 1e-6;

typedef struct bounds {
    double low[3], high[3], diagonal;
} bounds;

static bounds mesh_bounds(const fem_mesh *mesh) {
    bounds b = {.low = {INFINITY, INFINITY, INFINITY}, .high = {-INFINITY, -INFINITY, -INFINITY}};
    for (int v = 0; v < mesh->vertex_count; v++)
        for (int i = 0; i < 3; i++) {
            b.low[i] = fmin(b.low[i], mesh->vertices[3 * v + i]);
            b.high[i] = fmax(b.high[i], mesh->vertices[3 * v + i]);
        }
    b.diagonal = vec3_distance(b.low, b.high);
    return b;
}

static void mark_all(unsigned char *marked, int count, const int *items) {
    for (int i = 0; i < count; i++) marked[items[i]] = 1;
}

static fem_status mark_set(scene_reader *reader, const cJSON *node, const fem_mesh *mesh, unsigned char *marked) {
    const fem_set *set = fem_mesh_vertex_set(mesh, node->valuestring);
    if (set) {
        mark_all(marked, set->count, set->items);
        return FEM_OK;
    }
    scene_suggestion s;
    suggestion_start(&s, node->valuestring);
    for (int i = 0; i < mesh->vertex_set_count; i++) suggestion_offer(&s, mesh->vertex_sets[i].name);
    return reader_fail(reader, node, "the mesh has no vertex set \"%.60s\"%s", node->valuestring, suggestion_text(&s));
}

static fem_status mark_numbers(scene_reader *reader, const cJSON *list, const fem_mesh *mesh, unsigned char *marked) {
    int first = mesh->file_base, last = mesh->file_base + mesh->vertex_count - 1, index = 0;
    for (const cJSON *item = list->child; item; item = item->next, index++) {
        double number = item->valuedouble;
        if (number < first || number > last) {
            reader_enter(reader, "vertices");
            reader_enter_index(reader, index);
            return reader_fail(reader, item, "is %.0f, but the mesh's vertices have the numbers %d to %d", number,
                               first, last);
        }
        marked[(int)number - first] = 1;
    }
    return FEM_OK;
}

static fem_status mark_file(scene_reader *reader, const cJSON *node, const char *file, const fem_mesh *mesh,
                            unsigned char *marked) {
    fem_status status = FEM_OK;
    char      *path = NULL;
    int       *items = NULL, count = 0;
    FEM_TRY(scene_relative_path(&path, reader, file));
    status = fem_vertex_list_read(&items, &count, path, mesh->file_base, mesh->vertex_count);
    if (status != FEM_OK) {
        reader_enter(reader, "file");
        status = reader_prefix(reader, cJSON_GetObjectItemCaseSensitive(node, "file"), status);
        goto done;
    }
    mark_all(marked, count, items);
done:
    fem_free(items);
    fem_free(path);
    return status;
}

static fem_status mark_region(scene_reader *reader, const cJSON *node, const char *name, const fem_mesh *mesh,
                              unsigned char *marked) {
    int region = fem_mesh_region_index(mesh, name), width = fem_element_vertices(mesh->type);
    if (region < 0) {
        scene_suggestion s;
        suggestion_start(&s, name);
        for (int i = 0; i < mesh->region_count; i++) suggestion_offer(&s, mesh->regions[i].name);
        reader_enter(reader, "region");
        return reader_fail(reader, cJSON_GetObjectItemCaseSensitive(node, "region"),
                           "the mesh has no region \"%.60s\"%s", name, suggestion_text(&s));
    }
    for (int e = 0; e < mesh->element_count; e++)
        if (mesh->region[e] == region) mark_all(marked, width, mesh->elements + (size_t)e * (size_t)width);
    return FEM_OK;
}

static fem_status mark_box(scene_reader *reader, const cJSON *corners, const fem_mesh *mesh, double border,
                           unsigned char *marked) {
    double low[3], high[3];
    reader_vector(corners->child, low);
    reader_vector(corners->child->next, high);
    for (int i = 0; i < 3; i++)
        if (low[i] > high[i]) {
            reader_enter(reader, "box");
            return reader_fail(reader, corners, "runs from %g to %g along %c, expected the lower corner first", low[i],
                               high[i], "xyz"[i]);
        }
    for (int v = 0; v < mesh->vertex_count; v++) {
        const double *x = mesh->vertices + 3 * (size_t)v;
        bool          inside = true;
        for (int i = 0; i < 3; i++) inside = inside && x[i] >= low[i] - border && x[i] <= high[i] + border;
        if (inside) marked[v] = 1;
    }
    return FEM_OK;
}

static fem_status mark_plane(scene_reader *reader, const cJSON *node, const char *key, const raw_plane *plane,
                             const fem_mesh *mesh, double diagonal, bool half, unsigned char *marked) {
    double normal[3] = {plane->normal[0], plane->normal[1], plane->normal[2]};
    double tolerance = plane->tolerance > 0 ? plane->tolerance : PLANE * diagonal;
    if (!(vec3_norm(normal) > 1e-12)) {
        reader_enter(reader, key);
        reader_enter(reader, "normal");
        const cJSON *section = cJSON_GetObjectItemCaseSensitive(node, key);
        return reader_fail(reader, cJSON_GetObjectItemCaseSensitive(section, "normal"),
                           "has length 0, expected a direction");
    }
    vec3_normalize(normal);
    for (int v = 0; v < mesh->vertex_count; v++) {
        double offset[3];
        vec3_sub(offset, mesh->vertices + 3 * (size_t)v, plane->point);
        double distance = vec3_dot(offset, normal);
        if (distance >= -tolerance && (half || distance <= tolerance)) marked[v] = 1;
    }
    return FEM_OK;
}

static void mark_ball(const raw_ball *ball, const fem_mesh *mesh, double border, unsigned char *marked) {
    for (int v = 0; v < mesh->vertex_count; v++)
        if (vec3_distance(mesh->vertices + 3 * (size_t)v, ball->centre) <= ball->radius + border) marked[v] = 1;
}

static void mark_nearest(const double point[3], const fem_mesh *mesh, unsigned char *marked) {
    int nearest = 0;
    for (int v = 1; v < mesh->vertex_count; v++)
        if (vec3_distance(mesh->vertices + 3 * (size_t)v, point) <
            vec3_distance(mesh->vertices + 3 * (size_t)nearest, point))
            nearest = v;
    marked[nearest] = 1;
}

static fem_status mark_instance(scene_reader *reader, const cJSON *node, const raw_selection *raw, const fem_mesh *mesh,
                                unsigned char *marked) {
    fem_status   status = FEM_OK;
    const scene *s = reader->scene;
    size_t       length = reader_enter(reader, "instance");
    if (!s || scene_members(s)->count == 0 || mesh != &s->parts[s->object].mesh)
        return reader_fail(reader, cJSON_GetObjectItemCaseSensitive(node, "instance"),
                           "has no meaning here: actions and probes of scenes with several objects have instances");
    FEM_TRY(scene_check_instance(reader, cJSON_GetObjectItemCaseSensitive(node, "instance"), s, raw->instance));
    reader_leave(reader, length);
    const scene_forest *members = scene_members(s);
    for (int i = 0; i < members->count; i++) {
        if (!scene_instance_is(members, i, raw->instance)) continue;
        const scene_part *part = &s->parts[members->instances[i].part];
        const fem_set    *set = raw->set ? fem_mesh_vertex_set(&part->mesh, raw->set) : NULL;
        unsigned char    *own = marked + members->vertex[i];
        if (!raw->set) memset(own, 1, (size_t)part->mesh.vertex_count);
        for (int k = 0; set && k < set->count; k++) own[set->items[k]] = 1;
        const fem_mesh *whole = part->whole > 0 ? &s->parts[part->whole - 1].mesh : NULL;
        if (!raw->set || set || (whole && fem_mesh_vertex_set(whole, raw->set))) continue;
        scene_suggestion suggestion;
        suggestion_start(&suggestion, raw->set);
        for (int k = 0; k < part->mesh.vertex_set_count; k++)
            suggestion_offer(&suggestion, part->mesh.vertex_sets[k].name);
        reader_enter(reader, "set");
        return reader_fail(reader, cJSON_GetObjectItemCaseSensitive(node, "set"),
                           "the part \"%s\" has no vertex set \"%.60s\"%s", part->name, raw->set,
                           suggestion_text(&suggestion));
    }
done:
    return status;
}

static fem_status mark_one(scene_reader *reader, const cJSON *node, const fem_mesh *mesh, const bounds *b,
                           unsigned char *marked) {
    raw_selection raw = {0};
    if (cJSON_IsString(node)) return mark_set(reader, node, mesh, marked);
    if (!cJSON_IsObject(node))
        return reader_fail(reader, node, "is %s, expected the name of a vertex set, or an object", json_kind(node));
    fem_status status = reader_table(reader, node, &scene_selection_table, &raw);
    if (status != FEM_OK) return status;
    switch (raw.variant) {
    case SELECT_VERTICES:
        return mark_numbers(reader, raw.vertices, mesh, marked);
    case SELECT_FILE:
        return mark_file(reader, node, raw.file, mesh, marked);
    case SELECT_REGION:
        return mark_region(reader, node, raw.region, mesh, marked);
    case SELECT_BOX:
        return mark_box(reader, raw.box, mesh, BORDER * b->diagonal, marked);
    case SELECT_PLANE:
        return mark_plane(reader, node, "plane", &raw.plane, mesh, b->diagonal, false, marked);
    case SELECT_HALFSPACE:
        return mark_plane(reader, node, "halfspace", &raw.halfspace, mesh, b->diagonal, true, marked);
    case SELECT_BALL:
        mark_ball(&raw.ball, mesh, BORDER * b->diagonal, marked);
        break;
    case SELECT_INSTANCE:
        return mark_instance(reader, node, &raw, mesh, marked);
    default:
        mark_nearest(raw.nearest, mesh, marked);
        break;
    }
    return FEM_OK;
}

static fem_status collect(const fem_mesh *mesh, const unsigned char *marked, int count, scene_vertices *vertices) {
    int *items = fem_alloc((size_t)count, sizeof *items), filled = 0;
    if (!items) return fem_fail(FEM_NO_MEMORY, "no memory for a selection of %d vertices", count);
    for (int v = 0; v < mesh->vertex_count; v++)
        if (marked[v]) items[filled++] = v;
    fem_free(vertices->items);
    *vertices = (scene_vertices){.count = count, .items = items};
    return FEM_OK;
}

fem_status scene_select(scene_reader *reader, const cJSON *node, const fem_mesh *mesh, scene_vertices *vertices) {
    fem_status     status = FEM_OK;
    int            index = 0, count = 0;
    bounds         b = mesh_bounds(mesh);
    unsigned char *marked = fem_calloc((size_t)mesh->vertex_count, 1);
    if (!marked) return fem_fail(FEM_NO_MEMORY, "no memory for a selection among %d vertices", mesh->vertex_count);
    if (cJSON_IsArray(node) && !node->child) {
        status = reader_fail(reader, node, "is an empty list, expected at least one selection");
        goto done;
    }
    if (!cJSON_IsArray(node)) FEM_TRY(mark_one(reader, node, mesh, &b, marked));
    for (const cJSON *item = cJSON_IsArray(node) ? node->child : NULL; item; item = item->next) {
        size_t length = reader_enter_index(reader, index++);
        FEM_TRY(mark_one(reader, item, mesh, &b, marked));
        reader_leave(reader, length);
    }
    for (int v = 0; v < mesh->vertex_count; v++) count += marked[v];
    if (count == 0) {
        status = reader_fail(reader, node,
                             "selects no vertex; the mesh lies between (%.6g, %.6g, %.6g) and (%.6g, %.6g, %.6g)",
                             b.low[0], b.low[1], b.low[2], b.high[0], b.high[1], b.high[2]);
        goto done;
    }
    FEM_TRY(collect(mesh, marked, count, vertices));
done:
    fem_free(marked);
    return status;
}
