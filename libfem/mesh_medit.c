// MEDIT's .mesh (text) and .meshb (bytes): the reader [Frey, MEDIT: an interactive mesh visualization software, 2001;
// Marechal, libMeshb]. A file is a sequence of keywords with their tables. References of elements are regions
// ("region_2"), nonzero references of vertices, edges, triangles and quadrilaterals are vertex sets ("triangles_3").
#include "libfem/mesh_draft.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

// A table of elements: its keyword, its number in bytes, nodes of each, how many of those are corners.
typedef struct medit_table {
    const char *keyword, *prefix; // of the sets; NULL: these are the elements of the mesh
    int         code, nodes, corners;
    const char *quadratic;
} medit_table;
static const medit_table tables[] = {{"Edges", "edges", 5, 2, 2, NULL},
                                     {"Triangles", "triangles", 6, 3, 3, NULL},
                                     {"Quadrilaterals", "quadrilaterals", 7, 4, 4, NULL},
                                     {"Tetrahedra", NULL, 8, 4, 4, NULL},
                                     {"Hexahedra", NULL, 10, 8, 8, NULL},
                                     {"TrianglesP2", "triangles", 24, 6, 3, NULL},
                                     {"EdgesP2", "edges", 25, 3, 2, NULL},
                                     {"QuadrilateralsQ2", "quadrilaterals", 27, 9, 4, NULL},
                                     {"TetrahedraP2", NULL, 30, 10, 4, "ten-node tetrahedral"},
                                     {"HexahedraQ2", NULL, 33, 27, 8, "27-node hexahedral"},
                                     {"Prisms", NULL, 9, 6, 0, NULL},
                                     {"Pentahedra", NULL, 9, 6, 0, NULL},
                                     {"Pyramids", NULL, 49, 5, 0, NULL}};
enum { TABLES = sizeof tables / sizeof *tables, DIMENSION = 3, VERTICES = 4, END = 54 };

typedef struct medit_mark { // a set of the draft by what it marks
    const char *prefix;
    long long   reference;
    int         set;
} medit_mark;

typedef struct medit_reader {
    fem_feed    feed;
    fem_draft   draft;
    fem_scalar  integer, real, position;
    bool        has_dimension, has_vertices;
    medit_mark *marks;
    size_t      mark_count, mark_capacity;
    fem_table   mark_table;
} medit_reader;

// ---- marks -----------------------------------------------------------------------------------------------------

static bool same_mark(const void *context, int entry, const void *key) {
    const medit_mark *mark = (const medit_mark *)context + entry, *wanted = key;
    return mark->prefix == wanted->prefix && mark->reference == wanted->reference;
}

static fem_status set_of_mark(medit_reader *r, const char *prefix, long long reference, int *set) {
    fem_status status = FEM_OK;
    medit_mark key;
    char       name[64];
    int        entry = 0;
    memset(&key, 0, sizeof key); // the bytes between its fields are hashed too
    key.prefix = prefix;
    key.reference = reference;
    FEM_TRY(fem_grow((void **)&r->marks, &r->mark_capacity, r->mark_count + 1, sizeof *r->marks));
    FEM_TRY(fem_table_enter(&r->mark_table, &key, sizeof key, same_mark, r->marks, (int)r->mark_count, &entry));
    if (entry == (int)r->mark_count) {
        r->marks[r->mark_count++] = key;
        snprintf(name, sizeof name, "%s_%lld", prefix, reference);
        FEM_TRY(fem_draft_set_named(&r->draft, false, name, &r->marks[entry].set));
    }
    *set = r->marks[entry].set;
done:
    return status;
}

// ---- tables ----------------------------------------------------------------------------------------------------

static fem_status take_int(medit_reader *r, const char *what, long long low, long long high, long long *value) {
    return fem_feed_int(&r->feed, r->integer, what, low, high, value);
}

static fem_status read_count(medit_reader *r, const char *what, int most, size_t smallest, long long *count) {
    fem_status status = FEM_OK;
    FEM_TRY(fem_feed_begin(&r->feed, what));
    FEM_TRY(take_int(r, what, 0, most, count));
    FEM_TRY(fem_feed_end(&r->feed));
    FEM_TRY(fem_feed_plausible(&r->feed, what, *count, smallest));
done:
    return status;
}

static fem_status read_vertices(medit_reader *r) {
    fem_status status = FEM_OK;
    long long  count = 0, reference = 0;
    double     x[3];
    int        set = 0;
    if (r->has_vertices) return fem_feed_fail(&r->feed, "Vertices come twice");
    if (!r->has_dimension) return fem_feed_fail(&r->feed, "Vertices must come after Dimension");
    r->has_vertices = true;
    size_t smallest = r->feed.binary ? (size_t)(3 * r->real.size + r->integer.size) : 8;
    FEM_TRY(read_count(r, "the number of vertices", FEM_MOST_VERTICES, smallest, &count));
    FEM_TRY(fem_draft_reserve_vertices(&r->draft, count));
    for (long long i = 0; i < count; i++) {
        FEM_TRY(fem_feed_begin(&r->feed, "a vertex"));
        for (int k = 0; k < 3; k++) FEM_TRY(fem_feed_double(&r->feed, r->real, "a coordinate", &x[k]));
        FEM_TRY(take_int(r, "the reference of the vertex", INT_MIN, INT_MAX, &reference));
        FEM_TRY(fem_feed_end(&r->feed));
        FEM_TRY(fem_draft_vertex(&r->draft, i + 1, x));
        if (reference == 0) continue;
        FEM_TRY(set_of_mark(r, "vertices", reference, &set));
        FEM_TRY(fem_draft_set_add(&r->draft, set, (int)i));
    }
done:
    return status;
}

static fem_status add_element(medit_reader *r, const medit_table *t, const long long *nodes, long long reference) {
    fem_status status = FEM_OK;
    int        corners[8], set = 0;
    for (int k = 0; k < t->corners; k++) corners[k] = (int)nodes[k] - 1;
    if (!t->prefix) {
        r->draft.quadratic += t->quadratic != NULL;
        if (t->quadratic) r->draft.quadratic_name = t->quadratic;
        return fem_draft_element(&r->draft, (long long)r->draft.mesh.element_count + 1, corners, (int)reference);
    }
    if (reference == 0) return FEM_OK;
    FEM_TRY(set_of_mark(r, t->prefix, reference, &set));
    for (int k = 0; k < t->corners; k++) FEM_TRY(fem_draft_set_add(&r->draft, set, corners[k]));
done:
    return status;
}

static fem_status read_table(medit_reader *r, const medit_table *t) {
    fem_status status = FEM_OK;
    long long  count = 0, nodes[27], reference = 0;
    char       why[128];
    size_t     smallest = (size_t)(t->nodes + 1) * (r->feed.binary ? (size_t)r->integer.size : 2);
    FEM_TRY(read_count(r, "the number of elements", FEM_MOST_ELEMENTS, smallest, &count));
    if (count == 0) return FEM_OK;
    if (t->corners == 0)
        return fem_feed_fail(&r->feed, "%s are not supported, expected Tetrahedra or Hexahedra", t->keyword);
    if (!r->has_vertices) return fem_feed_fail(&r->feed, "%s must come after Vertices", t->keyword);
    if (!t->prefix) {
        if (fem_draft_type(&r->draft, t->corners == 4 ? FEM_T4 : FEM_H8, why, sizeof why) != FEM_OK)
            return fem_feed_fail(&r->feed, "%s", why);
        FEM_TRY(fem_draft_reserve_elements(&r->draft, count));
    }
    for (long long i = 0; i < count; i++) {
        FEM_TRY(fem_feed_begin(&r->feed, "an element"));
        for (int k = 0; k < t->nodes; k++)
            FEM_TRY(take_int(r, "a vertex of the element", 1, r->draft.mesh.vertex_count, &nodes[k]));
        FEM_TRY(take_int(r, "the reference of the element", INT_MIN, INT_MAX, &reference));
        FEM_TRY(fem_feed_end(&r->feed));
        FEM_TRY(add_element(r, t, nodes, reference));
    }
done:
    return status;
}

static fem_status read_dimension(medit_reader *r) {
    fem_status status = FEM_OK;
    long long  dimension = 0;
    FEM_TRY(fem_feed_begin(&r->feed, "the dimension"));
    FEM_TRY(fem_feed_int(&r->feed, FEM_INT32, "the dimension", 3, 3, &dimension));
    FEM_TRY(fem_feed_end(&r->feed));
    r->has_dimension = true;
done:
    return status;
}

// ---- keywords --------------------------------------------------------------------------------------------------

static fem_status read_text(medit_reader *r) {
    fem_status status = FEM_OK;
    fem_text  *text = &r->feed.text;
    long long  version;
    char       quote[FEM_QUOTE];
    if (!fem_text_next(text) || !fem_word_is(fem_text_take(text), "MeshVersionFormatted"))
        return fem_text_fail(text, "expected MeshVersionFormatted at the beginning");
    fem_text_next(text);
    FEM_TRY(fem_text_int(text, "the version", 1, 4, &version));
    while (fem_text_next(text)) {
        fem_word word = fem_text_peek(text);
        if (!isalpha((unsigned char)word.at[0])) {
            status = fem_text_expected(text, "a keyword such as Vertices");
            goto done;
        }
        text->at += word.length;
        int i = 0;
        while (i < TABLES && !fem_word_is(word, tables[i].keyword)) i++;
        if (i < TABLES) {
            FEM_TRY(read_table(r, &tables[i]));
        } else if (fem_word_is(word, "Vertices")) {
            FEM_TRY(read_vertices(r));
        } else if (fem_word_is(word, "Dimension")) {
            FEM_TRY(read_dimension(r));
        } else if (fem_word_is(word, "End")) {
            if (fem_text_next(text)) status = fem_text_expected(text, "nothing behind End");
            goto done;
        } else { // of no use here: to the next keyword
            FEM_TRY(
                fem_remark(r->draft.remarks, "the table %s is passed over", fem_quote(quote, word.at, word.length)));
            do fem_text_leave_line(text);
            while (fem_text_next(text) && !isalpha((unsigned char)*text->at));
        }
    }
    FEM_TRY(fem_remark(r->draft.remarks, "its last line, End, is missing: was it cut short?"));
done:
    return status;
}

// The number 1 tells the order of the bytes; then the version: 1 has floats, 3 and more have wide positions, 4 has wide
// integers. Each keyword is followed by the position of the next.
static fem_status read_bytes(medit_reader *r) {
    fem_status  status = FEM_OK;
    const char *one = NULL;
    long long   version = 0, code = 0, next = 0;
    r->feed.binary = true;
    FEM_TRY(fem_feed_bytes(&r->feed, "the number 1", 4, &one));
    r->feed.swapped = fem_scalar_int(one, FEM_INT32, false) != 1;
    if (fem_scalar_int(one, FEM_INT32, r->feed.swapped) != 1) {
        status = fem_feed_fail(&r->feed, "expected the number 1 at the beginning");
        goto done;
    }
    FEM_TRY(fem_feed_int(&r->feed, FEM_INT32, "the version", 1, 4, &version));
    r->real = (fem_scalar){'f', version == 1 ? 4 : 8};
    r->integer = version == 4 ? FEM_INT64 : FEM_INT32;
    r->position = version >= 3 ? FEM_INT64 : FEM_INT32;
    long long size = (long long)(r->feed.text.end - r->feed.start);
    for (;;) {
        FEM_TRY(fem_feed_int(&r->feed, FEM_INT32, "a keyword", 1, INT_MAX, &code));
        if (code == END) goto done;
        FEM_TRY(fem_feed_int(&r->feed, r->position, "the position of the next keyword", 0, size, &next));
        int i = 0;
        while (i < TABLES && tables[i].code != code) i++;
        if (i < TABLES)
            FEM_TRY(read_table(r, &tables[i]));
        else if (code == VERTICES)
            FEM_TRY(read_vertices(r));
        else if (code == DIMENSION)
            FEM_TRY(read_dimension(r));
        else
            FEM_TRY(fem_remark(r->draft.remarks, "the table with the code %lld is passed over", code));
        if (next == 0) goto done;
        if (next < r->feed.text.at - r->feed.start) {
            status =
                fem_feed_fail(&r->feed, "the next keyword is said to be at byte %lld, expected it further on", next);
            goto done;
        }
        r->feed.text.at = r->feed.start + next;
    }
done:
    return status;
}

// ---- regions ---------------------------------------------------------------------------------------------------

// Our own notes stand in comments, "#: ".
static fem_status collect_notes(const medit_reader *r, char **notes, size_t *size) {
    static const char mark[] = "\n#: ";
    const char       *at = r->feed.start, *end = r->feed.text.end;
    size_t            used = 0;
    *notes = NULL;
    at = memmem(at, (size_t)(end - at), mark, 4); // they stand at the end: what is before takes no memory
    if (!at) return FEM_OK;
    *notes = fem_calloc((size_t)(end - at) + 1, 1);
    if (!*notes) return fem_fail(FEM_NO_MEMORY, "%s: no memory for its notes", r->draft.path);
    while ((at = memmem(at, (size_t)(end - at), mark, 4))) {
        at += 4;
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t      length = (size_t)((stop ? stop : end) - at);
        memcpy(*notes + used, at, length);
        used += length;
        (*notes)[used++] = '\n';
        at += length;
    }
    *size = used;
    return FEM_OK;
}

static fem_status follow_notes(medit_reader *r, const char *notes, size_t size) {
    fem_mesh  *m = &r->draft.mesh;
    char       place[300];
    fem_text   scan;
    fem_status status;
    snprintf(place, sizeof place, "%.280s: its notes", r->draft.path);
    scan = fem_text_open(place, notes, size, 0, false);
    status = fem_notes_read(m, &scan, &r->draft);
    for (int e = 0; status == FEM_OK && e < m->element_count; e++) {
        if (m->region[e] < 1 || m->region[e] > m->region_count)
            return fem_fail(FEM_BAD_INPUT, "%s: element %d has the reference %d, but the notes have regions 1 to %d",
                            r->draft.path, e + 1, m->region[e], m->region_count);
        m->region[e]--;
    }
    return status;
}

static fem_status make_regions(medit_reader *r) {
    fem_status status = FEM_OK;
    fem_mesh  *m = &r->draft.mesh;
    char      *notes = NULL;
    size_t     size = 0;
    bool       plain = true;
    if (!r->feed.binary) FEM_TRY(collect_notes(r, &notes, &size));
    if (notes) {
        FEM_TRY(follow_notes(r, notes, size));
        goto done;
    }
    for (int e = 0; e < m->element_count; e++) plain = plain && m->region[e] == 0;
    if (plain) goto done;
    status = fem_regions_from_groups(m);
    if (status != FEM_OK) fem_fail_prefix(status, "%s: references: ", r->draft.path);
done:
    fem_free(notes);
    return status;
}

fem_status fem_mesh_read_medit(fem_mesh *mesh, const char *path, fem_remarks *remarks) {
    fem_status   status = FEM_OK;
    char        *text = NULL;
    size_t       size = 0;
    medit_reader r = {.draft = {.path = path, .remarks = remarks}};
    FEM_TRY(fem_file_read(&text, &size, path));
    r.feed = fem_feed_open(path, text, size, '#');
    r.feed.text.fortran = true;
    FEM_TRY(fem_path_ends(path, ".meshb") ? read_bytes(&r) : read_text(&r));
    FEM_TRY(fem_draft_close_vertices(&r.draft));
    FEM_TRY(make_regions(&r));
    fem_free(text), text = NULL;
    FEM_TRY(fem_draft_finish(&r.draft, mesh));
done:
    fem_free(text);
    fem_free(r.marks);
    fem_table_destroy(&r.mark_table);
    fem_draft_destroy(&r.draft);
    return status;
}

// ---- writing ---------------------------------------------------------------------------------------------------

// Text; the references of elements are their regions, from 1. What MEDIT has no place for stands in comments.
static void put_mesh(fem_file *file, const fem_mesh *mesh) {
    size_t width = (size_t)fem_element_vertices(mesh->type);
    char   text[FEM_DIGITS];
    fem_file_print(file, "MeshVersionFormatted 2\n\nDimension 3\n\nVertices\n%d\n", mesh->vertex_count);
    for (int v = 0; v < mesh->vertex_count; v++) {
        const double *x = mesh->vertices + 3 * (size_t)v;
        fem_file_put(file, text, (size_t)fem_format_double(text, x[0]));
        fem_file_put_double(file, ' ', x[1]);
        fem_file_put_double(file, ' ', x[2]);
        fem_file_put(file, " 0\n", 3);
    }
    fem_file_print(file, "\n%s\n%d\n", mesh->type == FEM_T4 ? "Tetrahedra" : "Hexahedra", mesh->element_count);
    for (int e = 0; e < mesh->element_count; e++) {
        const int *v = mesh->elements + width * (size_t)e;
        fem_file_put(file, text, (size_t)fem_format_int(text, (long long)v[0] + 1));
        for (size_t a = 1; a < width; a++) fem_file_put_int(file, ' ', (long long)v[a] + 1);
        fem_file_put_int(file, ' ', (long long)mesh->region[e] + 1);
        fem_file_put(file, "\n", 1);
    }
    fem_file_put(file, "\n", 1);
}

fem_status fem_mesh_write_medit(const fem_mesh *mesh, const char *path) {
    fem_file  *file = NULL;
    char      *notes = NULL;
    size_t     size = 0;
    fem_status status = fem_mesh_check(mesh);
    if (status == FEM_OK) status = fem_notes_make(&notes, &size, mesh, true);
    if (status != FEM_OK) {
        fem_fail_prefix(status, "%s: ", path);
        goto done;
    }
    FEM_TRY(fem_file_create(&file, path));
    put_mesh(file, mesh);
    for (const char *at = notes, *stop; at < notes + size; at = stop + 1) {
        stop = memchr(at, '\n', (size_t)(notes + size - at)); // every line of the notes has its end
        fem_file_put(file, "#: ", 3);
        fem_file_put(file, at, (size_t)(stop + 1 - at));
    }
    fem_file_print(file, "\nEnd\n");
    status = fem_file_commit(file);
done:
    fem_free(notes);
    return status;
}
