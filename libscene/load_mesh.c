// The mesh of a part: from a file, or from one of libfem's generators.
#include "libscene/internal.h"

#include <string.h>

// A body beyond this does not fit into the index types of the solver; sizes are checked before they are multiplied.
static const double MOST_ELEMENTS = 5e7;

fem_status scene_relative_path(char **path, const scene_reader *reader, const char *relative) {
    const char *slash = relative[0] == '/' ? NULL : strrchr(reader->file, '/');
    size_t      folder = slash ? (size_t)(slash - reader->file) + 1 : 0, length = strlen(relative);
    char       *joined = fem_alloc(folder + length + 1, 1);
    if (!joined) return fem_fail(FEM_NO_MEMORY, "no memory for a path of %zu characters", folder + length);
    memcpy(joined, reader->file, folder);
    memcpy(joined + folder, relative, length + 1);
    *path = joined;
    return FEM_OK;
}

static fem_status read_file(scene_reader *reader, const cJSON *node, fem_mesh *mesh) {
    fem_status status = FEM_OK;
    char      *path = NULL;
    FEM_TRY(scene_relative_path(&path, reader, node->valuestring));
    status = reader_prefix(reader, node, fem_mesh_read_remarks(mesh, path, reader->remarks));
done:
    fem_free(path);
    return status;
}

static fem_status generate_box(scene_reader *reader, const cJSON *node, const raw_box *box, fem_mesh *mesh) {
    for (int i = 0; i < 3; i++)
        if (!(box->high[i] > box->low[i])) {
            reader_enter(reader, "high");
            return reader_fail(reader, cJSON_GetObjectItemCaseSensitive(node, "high"),
                               "is %g along %c, expected more than the %g of \"low\"", box->high[i], "xyz"[i],
                               box -> low[i]);
        }
    double cells = (double)box->cells[0] * box->cells[1] * box->cells[2];
    if (cells * (box->element == FEM_T4 ? 6 : 1) > MOST_ELEMENTS) {
        reader_enter(reader, "cells");
        return reader_fail(reader, cJSON_GetObjectItemCaseSensitive(node, "cells"),
                           "makes %g cells, expected at most %g", cells,
                           MOST_ELEMENTS / (box->element == FEM_T4 ? 6 : 1));
    }
    return reader_prefix(reader, node,
                         fem_generate_box(mesh, (fem_element)box->element, box->low, box->high, box->cells));
}

// The radii of a tube or a capsule: one for all, or `count` of them.
static fem_status read_radii(scene_reader *reader, const cJSON *node, int count, double *radii) {
    int given = cJSON_IsArray(node) ? cJSON_GetArraySize(node) : 0, i = 0;
    if (given > 0 && given != count) {
        reader_enter(reader, "radius");
        return reader_fail(reader, node, "has %d item%s, expected one number or %d items", given, given == 1 ? "" : "s",
                           count);
    }
    for (i = 0; i < count; i++) radii[i] = node->valuedouble;
    i = 0;
    for (const cJSON *item = given > 0 ? node->child : NULL; item; item = item->next) radii[i++] = item->valuedouble;
    return FEM_OK;
}

static fem_status generate_tube(scene_reader *reader, const cJSON *node, const raw_tube *raw, fem_mesh *mesh) {
    fem_status status = FEM_OK;
    int        count = cJSON_GetArraySize(raw->points), i = 0;
    double    *points = fem_alloc(4 * (size_t)count, sizeof *points), *radii = points + 3 * (size_t)count;
    if (!points) return fem_fail(FEM_NO_MEMORY, "no memory for a tube of %d points", count);
    if (count < 2) {
        reader_enter(reader, "points");
        status = reader_fail(reader, raw->points, "has one point, expected at least two");
        goto done;
    }
    for (const cJSON *item = raw->points->child; item; item = item->next) reader_vector(item, points + 3 * (size_t)i++);
    FEM_TRY(read_radii(reader, raw->radius, count, radii));
    fem_tube tube = {.points = count, .centre = points, .radius = radii, .rings = raw->rings, .segment = raw->segment};
    status = reader_prefix(reader, node, fem_generate_tube(mesh, (fem_element)raw->element, &tube));
done:
    fem_free(points);
    return status;
}

static fem_status generate_leaf(scene_reader *reader, const cJSON *node, const raw_leaf *raw, fem_mesh *mesh) {
    fem_leaf leaf = {.length = raw->length,
                     .width = raw->width,
                     .thickness = raw->thickness,
                     .petiole_length = raw->petiole_length,
                     .petiole_width = raw->petiole_width,
                     .cells = raw->cells,
                     .layers = raw->layers};
    if (raw->petiole_length > 0 && !(raw->petiole_width > 0))
        return reader_fail(reader, node, "\"petiole_width\" must be > 0 m when there is a petiole");
    return reader_prefix(reader, node, fem_generate_leaf(mesh, (fem_element)raw->element, &leaf));
}

static fem_status read_piece(scene_reader *reader, const cJSON *node, fem_piece *piece) {
    fem_status status = FEM_OK;
    raw_piece  raw = {0};
    double     radii[2];
    FEM_TRY(reader_table(reader, node, &scene_piece_table, &raw));
    *piece = (fem_piece){.name = raw.name};
    if (raw.variant == PIECE_CAPSULE) {
        size_t length = reader_enter(reader, "capsule");
        piece->shape = FEM_CAPSULE;
        reader_vector(raw.capsule.ends->child, piece->a);
        reader_vector(raw.capsule.ends->child->next, piece->b);
        FEM_TRY(read_radii(reader, raw.capsule.radius, 2, radii));
        piece->radius_a = radii[0], piece->radius_b = radii[1];
        reader_leave(reader, length);
    } else if (raw.variant == PIECE_BOX) {
        piece->shape = FEM_BOX;
        reader_vector(raw.box->child, piece->a);
        reader_vector(raw.box->child->next, piece->b);
    } else {
        piece->shape = FEM_BALL;
        memcpy(piece->a, raw.ball.centre, sizeof piece->a);
        piece->radius_a = raw.ball.radius;
    }
done:
    return status;
}

static fem_status generate_pieces(scene_reader *reader, const cJSON *node, const raw_pieces *raw, fem_mesh *mesh) {
    fem_status status = FEM_OK;
    int        count = cJSON_GetArraySize(raw->shapes), i = 0;
    fem_piece *pieces = fem_calloc((size_t)count, sizeof *pieces);
    if (!pieces) return fem_fail(FEM_NO_MEMORY, "no memory for %d pieces", count);
    size_t length = reader_enter(reader, "shapes");
    for (const cJSON *item = raw->shapes->child; item; item = item->next, i++) {
        size_t outer = reader_enter_index(reader, i);
        FEM_TRY(read_piece(reader, item, &pieces[i]));
        reader_leave(reader, outer);
    }
    reader_leave(reader, length);
    status = reader_prefix(reader, node,
                           fem_generate_shell(mesh, (fem_element)raw->element, count, pieces, raw->voxel, raw->shell));
done:
    fem_free(pieces);
    return status;
}

fem_status scene_read_mesh(scene_reader *reader, const cJSON *node, fem_mesh *mesh) {
    fem_status status = FEM_OK;
    raw_mesh   raw = {0};
    if (cJSON_IsString(node)) return read_file(reader, node, mesh);
    FEM_TRY(reader_table(reader, node, &scene_mesh_table, &raw));
    const scene_key *key = &scene_mesh_table.keys[raw.variant];
    const cJSON     *section = cJSON_GetObjectItemCaseSensitive(node, key->name);
    size_t           length = reader_enter(reader, key->name);
    switch (raw.variant) {
    case MESH_BOX:
        FEM_TRY(generate_box(reader, section, &raw.box, mesh));
        break;
    case MESH_TUBE:
        FEM_TRY(generate_tube(reader, section, &raw.tube, mesh));
        break;
    case MESH_LEAF:
        FEM_TRY(generate_leaf(reader, section, &raw.leaf, mesh));
        break;
    case MESH_SPHERE:
        FEM_TRY(reader_prefix(reader, section,
                              fem_generate_sphere(mesh, (fem_element)raw.sphere.element, raw.sphere.centre,
                                                  raw.sphere.radius, raw.sphere.cells)));
        break;
    default:
        FEM_TRY(generate_pieces(reader, section, &raw.pieces, mesh));
        break;
    }
    reader_leave(reader, length);
done:
    return status;
}
