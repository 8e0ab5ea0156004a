// Surfaces in Wavefront .obj: v, vt, f and usemtl lines. Polygons become fans; normal indices are checked for form and
// left out; groups, material files, smoothing, lines and points are passed over; free-form geometry is refused by name.
#include "libfem/mesh_formats.h"

#include <string.h>

enum { MATERIALS_MOST = 10000 };

typedef struct obj_reader {
    fem_text    scan;
    fem_surface surface;
    size_t      vertex_capacity, triangle_capacity, uv_capacity, corner_capacity, name_capacity, material_capacity;
    int         material; // of the faces that come; -1: none
} obj_reader;

static fem_status read_vertex(obj_reader *r) {
    fem_status   status = FEM_OK;
    fem_surface *s = &r->surface;
    double       ignored;
    if (s->vertex_count == FEM_MOST_VERTICES)
        return fem_text_fail(&r->scan, "more than %d vertices", FEM_MOST_VERTICES);
    FEM_TRY(fem_grow((void **)&s->vertices, &r->vertex_capacity, 3 * ((size_t)s->vertex_count + 1), sizeof(double)));
    for (int k = 0; k < 3; k++)
        FEM_TRY(fem_text_double(&r->scan, "a coordinate", &s->vertices[3 * (size_t)s->vertex_count + (size_t)k]));
    for (int i = 0; i < 4 && !fem_text_at_line_end(&r->scan); i++) // a weight or a colour
        FEM_TRY(fem_text_double(&r->scan, "a weight or a colour", &ignored));
    s->vertex_count++;
done:
    return status;
}

static fem_status read_texture(obj_reader *r) {
    fem_status   status = FEM_OK;
    fem_surface *s = &r->surface;
    double       ignored;
    if (s->uv_count == FEM_MOST_VERTICES)
        return fem_text_fail(&r->scan, "more than %d texture coordinates", FEM_MOST_VERTICES);
    FEM_TRY(fem_grow((void **)&s->uv, &r->uv_capacity, 2 * ((size_t)s->uv_count + 1), sizeof(double)));
    double *uv = s->uv + 2 * (size_t)s->uv_count;
    uv[1] = 0;
    FEM_TRY(fem_text_double(&r->scan, "a texture coordinate", &uv[0]));
    if (!fem_text_at_line_end(&r->scan)) FEM_TRY(fem_text_double(&r->scan, "a texture coordinate", &uv[1]));
    if (!fem_text_at_line_end(&r->scan)) FEM_TRY(fem_text_double(&r->scan, "a texture coordinate", &ignored));
    s->uv_count++;
done:
    return status;
}

// The rest of the line is the name, blanks and all; without one faces have no material again.
static fem_status read_material(obj_reader *r) {
    fem_status   status = FEM_OK;
    fem_surface *s = &r->surface;
    fem_word     name = {0};
    char        *copy = NULL;
    if (!fem_text_at_line_end(&r->scan)) name = fem_text_take(&r->scan);
    while (!fem_text_at_line_end(&r->scan)) {
        fem_word more = fem_text_take(&r->scan);
        name.length = (size_t)(more.at + more.length - name.at);
    }
    r->material = -1;
    if (name.length == 0) return FEM_OK;
    for (int i = 0; i < s->material_count && r->material < 0; i++)
        if (strlen(s->materials[i]) == name.length && memcmp(s->materials[i], name.at, name.length) == 0)
            r->material = i;
    if (r->material >= 0) return FEM_OK;
    if (s->material_count == MATERIALS_MOST) return fem_text_fail(&r->scan, "more than %d materials", MATERIALS_MOST);
    FEM_TRY(fem_grow((void **)&s->materials, &r->name_capacity, (size_t)s->material_count + 1, sizeof(char *)));
    copy = fem_alloc(name.length + 1, 1);
    if (!copy) return fem_fail(FEM_NO_MEMORY, "no memory for the name of a material");
    memcpy(copy, name.at, name.length);
    copy[name.length] = 0;
    r->material = s->material_count;
    s->materials[s->material_count++] = copy;
done:
    return status;
}

// One corner: V, V/T, V//N or V/T/N, each from 1, or negative and counted from the last. *texture: -1 without T.
static fem_status read_corner(obj_reader *r, int *vertex, int *texture) {
    fem_word    word = fem_text_take(&r->scan);
    const char *part = word.at, *end = word.at + word.length;
    char        quote[FEM_QUOTE];
    long long   index[2] = {0, 0}, number = 0;
    for (int i = 0; part <= end; i++) {
        const char *slash = part < end ? memchr(part, '/', (size_t)(end - part)) : NULL;
        size_t      length = (size_t)((slash ? slash : end) - part);
        bool        may_be_empty = i == 1 && slash;
        bool        good = i < 3 && (fem_parse_int(part, length, &number) ? number != 0 : may_be_empty && length == 0);
        if (!good)
            return fem_text_fail(&r->scan, "expected a corner such as 7, 7/1, 7//3 or 7/1/3, found %s",
                                 fem_quote(quote, word.at, word.length));
        if (i < 2 && length > 0) index[i] = number;
        if (!slash) break;
        part = slash + 1;
    }
    int count = r->surface.vertex_count, textures = r->surface.uv_count;
    if (index[0] < -count || index[0] > count)
        return fem_text_fail(&r->scan, "vertex %lld of a face, but only %d vertices stand above it", index[0], count);
    if (index[1] < -textures || index[1] > textures)
        return fem_text_fail(&r->scan, "texture coordinate %lld of a face, but only %d stand above it", index[1],
                             textures);
    *vertex = (int)(index[0] > 0 ? index[0] - 1 : index[0] + count);
    *texture = (int)(index[1] > 0 ? index[1] - 1 : index[1] < 0 ? index[1] + textures : -1);
    return FEM_OK;
}

static fem_status read_face(obj_reader *r) {
    fem_status   status = FEM_OK;
    fem_surface *s = &r->surface;
    int          first[2] = {0}, last[2] = {0}, corner[2] = {0}, corners = 0; // vertex, texture
    while (!fem_text_at_line_end(&r->scan)) {
        FEM_TRY(read_corner(r, &corner[0], &corner[1]));
        if (corners == 0) memcpy(first, corner, sizeof first);
        if (corners >= 2) {
            if (s->triangle_count == FEM_MOST_ELEMENTS) {
                status = fem_text_fail(&r->scan, "more than %d triangles", FEM_MOST_ELEMENTS);
                goto done;
            }
            FEM_TRY(fem_grow((void **)&s->triangles, &r->triangle_capacity, 3 * ((size_t)s->triangle_count + 1),
                             sizeof(int)));
            FEM_TRY(
                fem_grow((void **)&s->corners, &r->corner_capacity, 3 * ((size_t)s->triangle_count + 1), sizeof(int)));
            FEM_TRY(fem_grow((void **)&s->material, &r->material_capacity, (size_t)s->triangle_count + 1, sizeof(int)));
            int *t = s->triangles + 3 * (size_t)s->triangle_count, *uv = s->corners + 3 * (size_t)s->triangle_count;
            t[0] = first[0], t[1] = last[0], t[2] = corner[0];
            uv[0] = first[1], uv[1] = last[1], uv[2] = corner[1];
            s->material[s->triangle_count++] = r->material;
        }
        memcpy(last, corner, sizeof last);
        if (corners < 3) corners++;
    }
    if (corners < 3) status = fem_text_fail(&r->scan, "a face has %d corners, expected 3 or more", corners);
done:
    return status;
}

static fem_status read_lines(obj_reader *r) {
    static const char *const passed_over[] = {"vn",       "vp",       "g",      "o",          "s",        "mg",
                                              "mtllib",   "usemap",   "maplib", "l",          "p",        "bevel",
                                              "c_interp", "d_interp", "lod",    "shadow_obj", "trace_obj"};
    fem_status               status = FEM_OK;
    char                     quote[FEM_QUOTE];
    while (fem_text_next(&r->scan)) {
        fem_word word = fem_text_take(&r->scan);
        size_t   i = 0, count = sizeof passed_over / sizeof *passed_over;
        if (fem_word_is(word, "v"))
            FEM_TRY(read_vertex(r));
        else if (fem_word_is(word, "f") || fem_word_is(word, "fo"))
            FEM_TRY(read_face(r));
        else if (fem_word_is(word, "vt"))
            FEM_TRY(read_texture(r));
        else if (fem_word_is(word, "usemtl"))
            FEM_TRY(read_material(r));
        else {
            while (i < count && !fem_word_is(word, passed_over[i])) i++;
            if (i == count) {
                status = fem_text_fail(&r->scan, "%s is not supported, expected v and f lines",
                                       fem_quote(quote, word.at, word.length));
                goto done;
            }
            while (!fem_text_at_line_end(&r->scan)) fem_text_take(&r->scan);
        }
        FEM_TRY(fem_text_end_line(&r->scan));
    }
done:
    return status;
}

fem_status fem_surface_read_obj(fem_surface *surface, const char *path) {
    fem_status status = FEM_OK;
    char      *text = NULL;
    size_t     size = 0;
    obj_reader r = {.material = -1};
    FEM_TRY(fem_file_read(&text, &size, path));
    r.scan = fem_text_open(path, text, size, '#', false);
    r.scan.continued = true;
    FEM_TRY(read_lines(&r));
    if (r.surface.triangle_count == 0) {
        status = fem_text_fail(&r.scan, "the surface has no faces");
        goto done;
    }
    if (r.surface.uv_count == 0) fem_free(r.surface.corners), r.surface.corners = NULL;
    if (r.surface.material_count == 0) fem_free(r.surface.material), r.surface.material = NULL;
    fem_surface_destroy(surface);
    *surface = r.surface;
    r.surface = (fem_surface){0};
done:
    fem_surface_destroy(&r.surface);
    fem_free(text);
    return status;
}

fem_status fem_surface_write(const fem_surface *surface, const char *path) {
    fem_file *file = NULL;
    if (!fem_path_ends(path, ".obj"))
        return fem_fail(FEM_BAD_INPUT, "%s: unknown kind of surface, expected .obj or .obj.gz", path);
    for (size_t i = 0; i < 3 * (size_t)surface->triangle_count; i++)
        if (surface->triangles[i] < 0 || surface->triangles[i] >= surface->vertex_count)
            return fem_fail(FEM_BAD_INPUT, "%s: triangle %zu: vertex %d is outside 0..%d", path, i / 3,
                            surface->triangles[i], surface->vertex_count - 1);
    for (size_t i = 0; surface->corners && i < 3 * (size_t)surface->triangle_count; i++)
        if (surface->corners[i] < -1 || surface->corners[i] >= surface->uv_count)
            return fem_fail(FEM_BAD_INPUT, "%s: triangle %zu: texture coordinate %d is outside 0..%d", path, i / 3,
                            surface->corners[i], surface->uv_count - 1);
    for (int t = 0; surface->material && t < surface->triangle_count; t++)
        if (surface->material[t] < -1 || surface->material[t] >= surface->material_count)
            return fem_fail(FEM_BAD_INPUT, "%s: triangle %d: material %d is outside 0..%d", path, t,
                            surface->material[t], surface->material_count - 1);
    fem_status status = fem_file_create(&file, path);
    if (status != FEM_OK) return status;
    for (int v = 0; v < surface->vertex_count; v++) {
        fem_file_put(file, "v", 1);
        for (int k = 0; k < 3; k++) fem_file_put_double(file, ' ', surface->vertices[3 * (size_t)v + (size_t)k]);
        fem_file_put(file, "\n", 1);
    }
    for (int i = 0; i < surface->uv_count; i++) {
        fem_file_put(file, "vt", 2);
        for (int k = 0; k < 2; k++) fem_file_put_double(file, ' ', surface->uv[2 * (size_t)i + (size_t)k]);
        fem_file_put(file, "\n", 1);
    }
    int material = -1;
    for (int t = 0; t < surface->triangle_count; t++) {
        if (surface->material && surface->material[t] != material) {
            material = surface->material[t];
            fem_file_print(file, "usemtl%s%s\n", material < 0 ? "" : " ",
                           material < 0 ? "" : surface->materials[material]);
        }
        fem_file_put(file, "f", 1);
        for (size_t k = 0; k < 3; k++) {
            fem_file_put_int(file, ' ', (long long)surface->triangles[3 * (size_t)t + k] + 1);
            int uv = surface->corners ? surface->corners[3 * (size_t)t + k] : -1;
            if (uv >= 0) fem_file_put_int(file, '/', (long long)uv + 1);
        }
        fem_file_put(file, "\n", 1);
    }
    return fem_file_commit(file);
}

fem_status fem_surface_of_mesh(fem_surface *result, const fem_mesh *mesh) {
    fem_status  status = FEM_OK;
    fem_surface surface = {0};
    int        *number = NULL; // of a mesh vertex on the surface, from 1
    FEM_TRY(fem_mesh_surface(mesh, &surface.triangle_count, &surface.triangles, NULL));
    number = fem_calloc((size_t)mesh->vertex_count, sizeof *number);
    surface.vertices = fem_alloc(3 * (size_t)mesh->vertex_count, sizeof *surface.vertices);
    if (!number || !surface.vertices) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the surface of %d vertices", mesh->vertex_count);
        goto done;
    }
    for (size_t i = 0; i < 3 * (size_t)surface.triangle_count; i++) number[surface.triangles[i]] = 1;
    for (int v = 0; v < mesh->vertex_count; v++)
        if (number[v]) {
            memcpy(surface.vertices + 3 * (size_t)surface.vertex_count, mesh->vertices + 3 * (size_t)v,
                   3 * sizeof(double));
            number[v] = ++surface.vertex_count;
        }
    for (size_t i = 0; i < 3 * (size_t)surface.triangle_count; i++)
        surface.triangles[i] = number[surface.triangles[i]] - 1;
    fem_surface_destroy(result);
    *result = surface;
    surface = (fem_surface){0};
done:
    fem_free(number);
    fem_surface_destroy(&surface);
    return status;
}

fem_status fem_mesh_write_obj(const fem_mesh *mesh, const char *path) {
    fem_status  status = FEM_OK;
    fem_surface surface = {0};
    FEM_TRY(fem_surface_of_mesh(&surface, mesh));
    FEM_TRY(fem_surface_write(&surface, path));
done:
    fem_surface_destroy(&surface);
    return status;
}
