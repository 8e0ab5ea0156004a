// Surfaces in .stl, as text or as bytes: triangles with coordinates of their own. Corners with equal coordinates are
// joined. Normals follow from the order of the corners and are not read.
#include "libfem/mesh_draft.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { HEAD = 84, TRIANGLE = 50 }; // of the form in bytes

typedef struct stl_reader {
    fem_feed    feed;
    fem_surface surface;
    size_t      vertex_capacity, triangle_capacity;
    fem_table   table;
    int         corner; // of the triangle that is being read
} stl_reader;

// Some write SOLID.
static bool is_word(fem_word word, const char *text) {
    return strlen(text) == word.length && strncasecmp(word.at, text, word.length) == 0;
}

static bool same_vertex(const void *context, int entry, const void *key) {
    return memcmp((const double *)context + 3 * (size_t)entry, key, 3 * sizeof(double)) == 0;
}

static fem_status add_corner(stl_reader *r, double x[3]) {
    fem_status   status = FEM_OK;
    fem_surface *s = &r->surface;
    int          vertex = 0;
    for (int k = 0; k < 3; k++) x[k] += 0.0; // minus zero is zero
    if (s->triangle_count == FEM_MOST_ELEMENTS)
        return fem_feed_fail(&r->feed, "more than %d triangles", s->triangle_count);
    FEM_TRY(fem_grow((void **)&s->vertices, &r->vertex_capacity, 3 * ((size_t)s->vertex_count + 1), sizeof(double)));
    FEM_TRY(fem_grow((void **)&s->triangles, &r->triangle_capacity, 3 * ((size_t)s->triangle_count + 1), sizeof(int)));
    FEM_TRY(fem_table_enter(&r->table, x, 3 * sizeof *x, same_vertex, s->vertices, s->vertex_count, &vertex));
    if (vertex == s->vertex_count) memcpy(s->vertices + 3 * (size_t)s->vertex_count++, x, 3 * sizeof *x);
    s->triangles[3 * (size_t)s->triangle_count + (size_t)r->corner] = vertex;
    r->corner = (r->corner + 1) % 3;
    s->triangle_count += r->corner == 0;
done:
    return status;
}

// 80 letters, the number of triangles, then each: normal and corners as floats, two bytes of no meaning.
static fem_status read_bytes(stl_reader *r, long long count) {
    fem_status  status = FEM_OK;
    const char *ignored;
    double      x[3];
    FEM_TRY(fem_feed_bytes(&r->feed, "the head", HEAD, &ignored));
    for (long long i = 0; i < count; i++) {
        FEM_TRY(fem_feed_bytes(&r->feed, "a normal", 12, &ignored));
        for (int corner = 0; corner < 3; corner++) {
            for (int k = 0; k < 3; k++) FEM_TRY(fem_feed_double(&r->feed, (fem_scalar){'f', 4}, "a coordinate", &x[k]));
            FEM_TRY(add_corner(r, x));
        }
        FEM_TRY(fem_feed_bytes(&r->feed, "the attribute", 2, &ignored));
    }
done:
    return status;
}

static fem_status expect(fem_text *text, const char *first, const char *second) {
    char what[64];
    fem_text_next(text);
    fem_word word = fem_text_peek(text);
    if (is_word(word, first)) {
        fem_text_take(text);
        if (!second || is_word(fem_text_peek(text), second)) {
            if (second) fem_text_take(text);
            return FEM_OK;
        }
    }
    snprintf(what, sizeof what, "%s%s%s", first, second ? " " : "", second ? second : "");
    return fem_text_expected(text, what);
}

static void skip_line(fem_text *text) {
    while (!fem_text_at_line_end(text)) fem_text_take(text);
}

static fem_status read_facet(stl_reader *r) {
    fem_status status = FEM_OK;
    fem_text  *text = &r->feed.text;
    double     x[3];
    skip_line(text); // the normal
    FEM_TRY(expect(text, "outer", "loop"));
    for (int corner = 0; corner < 3; corner++) {
        FEM_TRY(expect(text, "vertex", NULL));
        for (int k = 0; k < 3; k++) FEM_TRY(fem_text_double(text, "a coordinate", &x[k]));
        FEM_TRY(fem_text_end_line(text));
        FEM_TRY(add_corner(r, x));
    }
    FEM_TRY(expect(text, "endloop", NULL));
    FEM_TRY(expect(text, "endfacet", NULL));
    FEM_TRY(fem_text_end_line(text));
done:
    return status;
}

static fem_status read_text(stl_reader *r) {
    fem_status status = FEM_OK;
    fem_text  *text = &r->feed.text;
    while (fem_text_next(text)) {
        FEM_TRY(expect(text, "solid", NULL));
        skip_line(text); // its name
        while (fem_text_next(text) && is_word(fem_text_peek(text), "facet")) {
            fem_text_take(text);
            FEM_TRY(read_facet(r));
        }
        FEM_TRY(expect(text, "endsolid", NULL));
        skip_line(text);
    }
done:
    return status;
}

static long long announced(const char *bytes) {
    return fem_scalar_int(bytes + HEAD - 4, (fem_scalar){'u', 4}, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

// Text begins with "solid", but the head of bytes may too: those are told by their size, or else by the zero bytes that
// the number of their triangles has.
static bool is_text(const fem_feed *feed, const char *bytes, size_t whole) {
    size_t size = fem_feed_left(feed);
    if (whole >= HEAD && whole == HEAD + TRIANGLE * (size_t)announced(bytes)) return false;
    return size >= 5 && strncasecmp(feed->text.at, "solid", 5) == 0 &&
           !memchr(feed->text.at, 0, size < HEAD ? size : HEAD);
}

// How many triangles the head announces, which the file must hold; what some programs write behind them is passed over.
static fem_status check_size(const char *path, const char *bytes, size_t size, fem_remarks *remarks, long long *count) {
    if (size < HEAD)
        return fem_fail(FEM_BAD_INPUT, "%s: is no .stl: neither \"solid\" at the beginning nor 84 + 50 N bytes", path);
    *count = announced(bytes);
    size_t needed = HEAD + TRIANGLE * (size_t)*count;
    if (size < needed)
        return fem_fail(FEM_BAD_INPUT,
                        "%s: is no .stl, or was cut short: its head announces %lld triangles, but it has bytes of %zu",
                        path, *count, (size - HEAD) / TRIANGLE);
    if (size == needed) return FEM_OK;
    return fem_remark(remarks, "%zu bytes behind its %lld triangles are passed over", size - needed, *count);
}

fem_status fem_surface_read_stl(fem_surface *surface, const char *path, fem_remarks *remarks) {
    fem_status status = FEM_OK;
    char      *text = NULL;
    size_t     size = 0;
    long long  count = 0;
    stl_reader r = {0};
    FEM_TRY(fem_file_read(&text, &size, path));
    r.feed = fem_feed_open(path, text, size, 0);
    if (is_text(&r.feed, text, size)) {
        FEM_TRY(read_text(&r));
    } else {
        r.feed.text.at = text; // no mark before UTF-8
        r.feed.binary = true;
        r.feed.swapped = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
        FEM_TRY(check_size(path, text, size, remarks, &count));
        FEM_TRY(read_bytes(&r, count));
    }
    if (r.surface.triangle_count == 0) {
        status = fem_fail(FEM_BAD_INPUT, "%s: the surface has no triangles", path);
        goto done;
    }
    fem_surface_destroy(surface);
    *surface = r.surface;
    r.surface = (fem_surface){0};
done:
    fem_surface_destroy(&r.surface);
    fem_table_destroy(&r.table);
    fem_free(text);
    return status;
}
