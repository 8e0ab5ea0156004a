// Surfaces in .ply (Stanford), as text or as bytes of either order: the header names elements and their properties; of
// vertices x, y, z are read, of faces the list vertex_indices. Polygons become fans, the rest is passed over.
#include "libfem/mesh_draft.h"

#include <limits.h>
#include <string.h>

enum { MOST_PROPERTIES = 256 };
typedef enum ply_use { PASS_OVER, COORDINATE_X, COORDINATE_Y, COORDINATE_Z, CORNERS } ply_use;
typedef enum ply_kind { OTHER, VERTEX, FACE } ply_kind;

typedef struct ply_property {
    fem_scalar type, length; // length.size 0: no list
    ply_use    use;
} ply_property;

typedef struct ply_element {
    ply_kind  kind;
    long long count;
    int       first, properties; // into the list
} ply_element;

typedef struct ply_reader {
    fem_feed     feed;
    bool         binary;
    fem_surface  surface;
    size_t       vertex_capacity, triangle_capacity;
    ply_element  elements[16];
    int          element_count, property_count;
    ply_property properties[MOST_PROPERTIES];
} ply_reader;

// ---- header ----------------------------------------------------------------------------------------------------

static bool type_named(fem_word word, fem_scalar *type) {
    static const struct {
        const char *name, *other;
        fem_scalar  type;
    } types[] = {{"char", "int8", {'i', 1}},     {"uchar", "uint8", {'u', 1}},   {"short", "int16", {'i', 2}},
                 {"ushort", "uint16", {'u', 2}}, {"int", "int32", {'i', 4}},     {"uint", "uint32", {'u', 4}},
                 {"float", "float32", {'f', 4}}, {"double", "float64", {'f', 8}}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (fem_word_is(word, types[i].name) || fem_word_is(word, types[i].other)) {
            *type = types[i].type;
            return true;
        }
    return false;
}

static fem_status take_type(ply_reader *r, fem_scalar *type) {
    fem_word word = fem_text_take(&r->feed.text);
    char     quote[FEM_QUOTE];
    if (type_named(word, type)) return FEM_OK;
    return fem_text_fail(&r->feed.text, "unknown type %s of a property", fem_quote(quote, word.at, word.length));
}

static fem_status read_format(ply_reader *r) {
    fem_text *text = &r->feed.text;
    fem_word  form = fem_text_take(text), version = fem_text_take(text);
    bool      little = fem_word_is(form, "binary_little_endian"), big = fem_word_is(form, "binary_big_endian");
    if (!(little || big || fem_word_is(form, "ascii")) || !fem_word_is(version, "1.0"))
        return fem_text_fail(text, "expected \"format ascii 1.0\" or binary_little_endian or binary_big_endian");
    r->binary = little || big;
    r->feed.swapped = r->binary && little != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    return FEM_OK;
}

static fem_status read_element_line(ply_reader *r) {
    fem_text    *text = &r->feed.text;
    fem_word     name = fem_text_take(text);
    ply_element *e = &r->elements[r->element_count];
    if (r->element_count == (int)(sizeof r->elements / sizeof *r->elements))
        return fem_text_fail(text, "more than %d elements", r->element_count);
    *e = (ply_element){.first = r->property_count};
    e->kind = fem_word_is(name, "vertex") ? VERTEX : fem_word_is(name, "face") ? FACE : OTHER;
    for (int i = 0; i < r->element_count; i++)
        if (e->kind != OTHER && r->elements[i].kind == e->kind) return fem_text_fail(text, "an element comes twice");
    r->element_count++;
    return fem_text_int(text, "the number of the elements", 0, FEM_MOST_VERTICES, &e->count);
}

static fem_status read_property(ply_reader *r) {
    fem_status   status = FEM_OK;
    fem_text    *text = &r->feed.text;
    ply_property p = {0};
    if (r->element_count == 0) return fem_text_fail(text, "a property must come after an element");
    if (r->property_count == MOST_PROPERTIES) return fem_text_fail(text, "more than %d properties", MOST_PROPERTIES);
    ply_element *e = &r->elements[r->element_count - 1];
    if (fem_word_is(fem_text_peek(text), "list")) {
        fem_text_take(text);
        FEM_TRY(take_type(r, &p.length));
        if (p.length.kind == 'f') {
            status = fem_text_fail(text, "the length of a list is no integer");
            goto done;
        }
    }
    FEM_TRY(take_type(r, &p.type));
    fem_word name = fem_text_take(text);
    bool     list = p.length.size > 0;
    if (e->kind == VERTEX && !list && name.length == 1 && *name.at >= 'x' && *name.at <= 'z')
        p.use = (ply_use)(COORDINATE_X + (*name.at - 'x'));
    if (e->kind == FACE && list && (fem_word_is(name, "vertex_indices") || fem_word_is(name, "vertex_index")))
        p.use = CORNERS;
    if (p.use == CORNERS && p.type.kind == 'f') {
        status = fem_text_fail(text, "the corners of a face are no integers");
        goto done;
    }
    for (int i = e->first; i < r->property_count && p.use != PASS_OVER; i++)
        if (r->properties[i].use == p.use) {
            status = fem_text_fail(text, "a property comes twice");
            goto done;
        }
    r->properties[r->property_count++] = p;
    e->properties++;
done:
    return status;
}

static fem_status check_header(ply_reader *r) {
    int coordinates = 0, corners = 0;
    for (int i = 0; i < r->property_count; i++) {
        coordinates += r->properties[i].use >= COORDINATE_X && r->properties[i].use <= COORDINATE_Z;
        corners += r->properties[i].use == CORNERS;
    }
    if (coordinates != 3) return fem_text_fail(&r->feed.text, "the vertices have no x, y and z");
    if (corners != 1)
        return fem_text_fail(&r->feed.text, "has no faces with a list of vertex_indices: a cloud of points?");
    return FEM_OK;
}

static fem_status read_header(ply_reader *r) {
    fem_status status = FEM_OK;
    fem_text  *text = &r->feed.text;
    char       quote[FEM_QUOTE];
    bool       has_format = false;
    if (!fem_word_is(fem_text_take(text), "ply")) return fem_text_fail(text, "expected \"ply\" at the beginning");
    FEM_TRY(fem_text_end_line(text));
    while (fem_text_next(text)) {
        fem_word word = fem_text_take(text);
        if (fem_word_is(word, "end_header")) {
            if (!has_format) {
                status = fem_text_fail(text, "the header has no format");
                goto done;
            }
            FEM_TRY(check_header(r));
            FEM_TRY(fem_text_end_line(text));
            fem_text_leave_line(text);
            r->feed.binary = r->binary;
            goto done;
        }
        if (fem_word_is(word, "comment") || fem_word_is(word, "obj_info")) {
            fem_text_leave_line(text);
            continue;
        }
        if (fem_word_is(word, "format")) {
            has_format = true;
            FEM_TRY(read_format(r));
        } else if (fem_word_is(word, "element")) {
            FEM_TRY(read_element_line(r));
        } else if (fem_word_is(word, "property")) {
            FEM_TRY(read_property(r));
        } else {
            status = fem_text_fail(text, "expected element, property or end_header, found %s",
                                   fem_quote(quote, word.at, word.length));
            goto done;
        }
        FEM_TRY(fem_text_end_line(text));
    }
    status = fem_text_fail(text, "the header has no end_header");
done:
    return status;
}

// ---- data ------------------------------------------------------------------------------------------------------

// A coordinate may be an integer; what is passed over may be anything, nan too.
static fem_status take_number(ply_reader *r, fem_scalar type, bool needed, double *value) {
    const char *bytes;
    long long   whole = 0;
    if (!needed && r->feed.binary) return fem_feed_bytes(&r->feed, "a property", (size_t)type.size, &bytes);
    if (!needed) {
        if (fem_text_take(&r->feed.text).length == 0) return fem_text_expected(&r->feed.text, "a property");
        return FEM_OK;
    }
    if (type.kind == 'f') return fem_feed_double(&r->feed, type, "a coordinate", value);
    fem_status status = fem_feed_int(&r->feed, type, "a coordinate", LLONG_MIN, LLONG_MAX, &whole);
    *value = (double)whole;
    return status;
}

static fem_status read_corners(ply_reader *r, fem_scalar type, long long count) {
    fem_status   status = FEM_OK;
    fem_surface *s = &r->surface;
    long long    corner = 0;
    int          first = 0, last = 0;
    if (count < 3) return fem_feed_fail(&r->feed, "a face has %lld corners, expected 3 or more", count);
    for (long long i = 0; i < count; i++) {
        FEM_TRY(fem_feed_int(&r->feed, type, "a corner of a face", 0, s->vertex_count - 1, &corner));
        if (i == 0) first = (int)corner;
        if (i >= 2) {
            if (s->triangle_count == FEM_MOST_ELEMENTS) {
                status = fem_feed_fail(&r->feed, "more than %d triangles", FEM_MOST_ELEMENTS);
                goto done;
            }
            FEM_TRY(fem_grow((void **)&s->triangles, &r->triangle_capacity, 3 * ((size_t)s->triangle_count + 1),
                             sizeof(int)));
            int *t = s->triangles + 3 * (size_t)s->triangle_count++;
            t[0] = first, t[1] = last, t[2] = (int)corner;
        }
        last = (int)corner;
    }
done:
    return status;
}

static fem_status read_item(ply_reader *r, const ply_element *e, double x[3]) {
    fem_status status = FEM_OK;
    double     ignored;
    FEM_TRY(fem_feed_begin(&r->feed, "an element"));
    for (int i = 0; i < e->properties; i++) {
        const ply_property *p = &r->properties[e->first + i];
        long long           count = 1;
        if (p->length.size > 0) FEM_TRY(fem_feed_int(&r->feed, p->length, "the length of a list", 0, INT_MAX, &count));
        if (p->use == CORNERS) {
            FEM_TRY(read_corners(r, p->type, count));
            continue;
        }
        bool needed = p->use != PASS_OVER;
        for (long long k = 0; k < count; k++)
            FEM_TRY(take_number(r, p->type, needed, needed ? &x[p->use - COORDINATE_X] : &ignored));
    }
    FEM_TRY(fem_feed_end(&r->feed));
done:
    return status;
}

static fem_status read_elements(ply_reader *r, const ply_element *e) {
    fem_status   status = FEM_OK;
    fem_surface *s = &r->surface;
    double       x[3] = {0};
    if (e->properties == 0) return FEM_OK;
    FEM_TRY(fem_feed_plausible(&r->feed, "the number of elements", e->count, 1));
    for (long long i = 0; i < e->count; i++) {
        FEM_TRY(read_item(r, e, x));
        if (e->kind != VERTEX) continue;
        FEM_TRY(
            fem_grow((void **)&s->vertices, &r->vertex_capacity, 3 * ((size_t)s->vertex_count + 1), sizeof(double)));
        memcpy(s->vertices + 3 * (size_t)s->vertex_count++, x, sizeof x);
    }
done:
    return status;
}

fem_status fem_surface_read_ply(fem_surface *surface, const char *path) {
    fem_status status = FEM_OK;
    char      *text = NULL;
    size_t     size = 0;
    ply_reader r = {0};
    FEM_TRY(fem_file_read(&text, &size, path));
    r.feed = fem_feed_open(path, text, size, 0);
    FEM_TRY(read_header(&r));
    for (int i = 0; i < r.element_count; i++) FEM_TRY(read_elements(&r, &r.elements[i]));
    if (r.binary ? fem_feed_left(&r.feed) > 0 : fem_text_next(&r.feed.text)) {
        status = fem_feed_fail(&r.feed, "expected the end of the file");
        goto done;
    }
    if (r.surface.triangle_count == 0) {
        status = fem_feed_fail(&r.feed, "the surface has no faces");
        goto done;
    }
    fem_surface_destroy(surface);
    *surface = r.surface;
    r.surface = (fem_surface){0};
done:
    fem_surface_destroy(&r.surface);
    fem_free(text);
    return status;
}
