// VTK's legacy .vtk: the reader. An unstructured grid of tetrahedra or of hexahedra, as text or as bytes, with the
// cells of versions up to 4 (each with its count) or from 5 on (offsets and connectivity). The file is walked once to
// find its arrays; then they are read where they are. Cells of lower dimension are passed over.
#include "libfem/mesh_draft.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { VTK_NAME = 256 };
typedef enum vtk_section { DATASET, CELL_DATA, POINT_DATA } vtk_section;

typedef struct vtk_array {
    vtk_section section;
    char        name[VTK_NAME];
    fem_scalar  type;
    long long   components, tuples;
    fem_feed    feed; // stands at its first number
} vtk_array;

typedef struct vtk_reader {
    fem_feed    feed; // `binary` says how arrays are written; keywords are text
    bool        binary;
    fem_draft   draft;
    bool        new_cells; // offsets and connectivity
    long long   cells;
    vtk_section section;
    long long   tuples; // of the section
    size_t      count, capacity;
    vtk_array  *arrays;
    char       *kept; // per cell: 1 when it is an element
    int         passed_over;
} vtk_reader;

// ---- arrays ----------------------------------------------------------------------------------------------------

static bool type_named(fem_word word, fem_scalar *type) {
    static const struct {
        const char *name;
        fem_scalar  type;
    } types[] = {{"unsigned_char", {'u', 1}}, {"char", {'i', 1}},          {"unsigned_short", {'u', 2}},
                 {"short", {'i', 2}},         {"unsigned_int", {'u', 4}},  {"int", {'i', 4}},
                 {"unsigned_long", {'u', 8}}, {"long", {'i', 8}},          {"float", {'f', 4}},
                 {"double", {'f', 8}},        {"vtkIdType", {'i', 4}},     {"vtktypeint64", {'i', 8}},
                 {"vtktypeint32", {'i', 4}},  {"vtktypeuint64", {'u', 8}}, {"vtktypeuint8", {'u', 1}},
                 {"vtktypeint8", {'i', 1}},   {"vtktypeuint32", {'u', 4}}};
    char text[32] = "";
    for (size_t i = 0; i < word.length && i < sizeof text - 1; i++) text[i] = word.at[i];
    if (strncasecmp(text, "vtktype", 7) == 0) // VTK writes them in either case
        for (char *c = text; *c; c++) *c = (char)tolower((unsigned char)*c);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(text) == word.length && strcmp(text, types[i].name) == 0) {
            *type = types[i].type;
            return true;
        }
    return false;
}

// The next number of an array; as text they go on over lines.
static fem_status next_int(vtk_array *a, const char *what, long long low, long long high, long long *value) {
    if (!a->feed.binary) fem_text_next(&a->feed.text);
    if (a->type.kind != 'f') return fem_feed_int(&a->feed, a->type, what, low, high, value);
    double     x = 0;
    fem_status status = fem_feed_double(&a->feed, a->type, what, &x);
    if (status != FEM_OK) return status;
    if (x != floor(x) || x < (double)low || x > (double)high)
        return fem_feed_fail(&a->feed, "%s is %g, expected an integer from %lld to %lld", what, x, low, high);
    *value = (long long)x;
    return FEM_OK;
}

static fem_status next_double(vtk_array *a, const char *what, double *value) {
    if (!a->feed.binary) fem_text_next(&a->feed.text);
    return fem_feed_double(&a->feed, a->type, what, value);
}

// Goes over `count` numbers that stand at the feed.
static fem_status skip_numbers(vtk_reader *r, fem_scalar type, long long count) {
    fem_text   *text = &r->feed.text;
    const char *bytes;
    if (r->binary) {
        fem_status status = FEM_OK;
        r->feed.binary = true;
        status = fem_feed_plausible(&r->feed, "the length of an array", count, (size_t)type.size);
        if (status == FEM_OK) status = fem_feed_bytes(&r->feed, "an array", (size_t)count * (size_t)type.size, &bytes);
        r->feed.binary = false;
        return status;
    }
    for (long long i = 0; i < count; i++) {
        if (!fem_text_next(text)) return fem_text_fail(text, "an array has %lld numbers, expected %lld", i, count);
        fem_text_take(text);
    }
    return FEM_OK;
}

static fem_status add_array(vtk_reader *r, const char *name, fem_scalar type, long long components, long long tuples) {
    fem_status status = FEM_OK;
    if (components > 0 && tuples > LLONG_MAX / 64 / components)
        return fem_text_fail(&r->feed.text, "array \"%s\" has too many numbers", name);
    if (r->count >= 4 * FEM_MOST_NAMES) return fem_text_fail(&r->feed.text, "there are too many arrays");
    if (r->binary) fem_text_leave_line(&r->feed.text);
    FEM_TRY(fem_grow((void **)&r->arrays, &r->capacity, r->count + 1, sizeof *r->arrays));
    vtk_array *a = &r->arrays[r->count];
    *a = (vtk_array){.section = r->section, .type = type, .components = components, .tuples = tuples, .feed = r->feed};
    a->feed.binary = r->binary;
    snprintf(a->name, sizeof a->name, "%s", name);
    FEM_TRY(skip_numbers(r, type, components * tuples));
    r->count++;
done:
    return status;
}

static vtk_array *find_array(vtk_reader *r, vtk_section section, const char *name) {
    for (size_t i = 0; i < r->count; i++)
        if (r->arrays[i].section == section && strcmp(r->arrays[i].name, name) == 0) return &r->arrays[i];
    return NULL;
}

// ---- keywords --------------------------------------------------------------------------------------------------

static fem_status take_type(vtk_reader *r, fem_scalar *type) {
    fem_word word = fem_text_take(&r->feed.text);
    char     quote[FEM_QUOTE];
    if (type_named(word, type)) return FEM_OK;
    return fem_text_fail(&r->feed.text, "arrays of type %s are not supported", fem_quote(quote, word.at, word.length));
}

static int hexadecimal(char c) {
    return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

// Blanks and the like are written as %20.
static fem_status take_name(vtk_reader *r, char name[VTK_NAME]) {
    fem_word word = fem_text_take(&r->feed.text);
    size_t   used = 0;
    for (size_t i = 0; i < word.length; i++) {
        int c = (unsigned char)word.at[i], high, low;
        if (c == '%' && i + 2 < word.length && (high = hexadecimal(word.at[i + 1])) >= 0 &&
            (low = hexadecimal(word.at[i + 2])) >= 0) {
            c = 16 * high + low;
            i += 2;
        }
        if (used + 1 == VTK_NAME || c == 0)
            return fem_text_fail(&r->feed.text, "a name is too long or has a zero byte");
        name[used++] = (char)c;
    }
    name[used] = 0;
    return used > 0 ? FEM_OK : fem_text_fail(&r->feed.text, "expected the name of an array");
}

static fem_status take_count(vtk_reader *r, const char *what, long long most, long long *count) {
    return fem_text_int(&r->feed.text, what, 0, most, count);
}

static fem_status read_points(vtk_reader *r) {
    fem_status status = FEM_OK;
    fem_scalar type = {0};
    long long  count = 0;
    FEM_TRY(take_count(r, "the number of points", FEM_MOST_VERTICES, &count));
    FEM_TRY(take_type(r, &type));
    FEM_TRY(fem_text_end_line(&r->feed.text));
    FEM_TRY(add_array(r, "POINTS", type, 3, count));
done:
    return status;
}

// "CELLS N SIZE", then numbers; or, from version 5 on, two arrays with lines of their own.
static fem_status read_cells(vtk_reader *r) {
    fem_status status = FEM_OK;
    fem_scalar type = {0};
    fem_text  *text = &r->feed.text;
    long long  count = 0, size = 0;
    FEM_TRY(take_count(r, "the number of cells", (long long)FEM_MOST_ELEMENTS + 1, &count));
    FEM_TRY(take_count(r, "the size of the cells", LLONG_MAX / 64, &size));
    FEM_TRY(fem_text_end_line(text));
    fem_text before = *text;
    fem_text_next(text);
    if (!fem_word_is(fem_text_take(text), "OFFSETS")) {
        *text = before;
        r->cells = count;
        FEM_TRY(add_array(r, "CELLS", FEM_INT32, 1, size));
        goto done;
    }
    if (count == 0) {
        status = fem_text_fail(text, "has no cells");
        goto done;
    }
    r->new_cells = true;
    r->cells = count - 1;
    FEM_TRY(take_type(r, &type));
    FEM_TRY(fem_text_end_line(text));
    FEM_TRY(add_array(r, "OFFSETS", type, 1, count));
    fem_text_next(text);
    if (!fem_word_is(fem_text_take(text), "CONNECTIVITY")) {
        status = fem_text_fail(text, "expected CONNECTIVITY behind OFFSETS");
        goto done;
    }
    FEM_TRY(take_type(r, &type));
    FEM_TRY(fem_text_end_line(text));
    FEM_TRY(add_array(r, "CELLS", type, 1, size));
done:
    return status;
}

static fem_status read_cell_types(vtk_reader *r) {
    fem_status status = FEM_OK;
    long long  count = 0;
    FEM_TRY(take_count(r, "the number of cell types", FEM_MOST_ELEMENTS, &count));
    FEM_TRY(fem_text_end_line(&r->feed.text));
    FEM_TRY(add_array(r, "CELL_TYPES", FEM_INT32, 1, count));
done:
    return status;
}

// Goes to the next blank line.
static void skip_metadata(fem_text *text) {
    do fem_text_leave_line(text);
    while (!fem_text_at_line_end(text));
}

static fem_status read_field(vtk_reader *r) {
    fem_status status = FEM_OK;
    fem_scalar type = {0};
    fem_text  *text = &r->feed.text;
    char       name[VTK_NAME];
    long long  arrays = 0, components = 0, tuples = 0;
    FEM_TRY(take_name(r, name));
    FEM_TRY(take_count(r, "the number of arrays", FEM_MOST_NAMES, &arrays));
    FEM_TRY(fem_text_end_line(text));
    for (long long i = 0; i < arrays; i++) {
        fem_text_next(text);
        if (fem_word_is(fem_text_peek(text), "METADATA")) { // of the array before
            skip_metadata(text);
            fem_text_next(text);
        }
        FEM_TRY(take_name(r, name));
        FEM_TRY(take_count(r, "the number of components", INT_MAX, &components));
        FEM_TRY(take_count(r, "the number of tuples", INT_MAX, &tuples));
        FEM_TRY(take_type(r, &type));
        FEM_TRY(fem_text_end_line(text));
        FEM_TRY(add_array(r, name, type, components, tuples));
    }
done:
    return status;
}

// "SCALARS NAME TYPE [COMPONENTS]", then "LOOKUP_TABLE NAME"; and the attributes with a fixed number of components.
static fem_status read_attribute(vtk_reader *r, fem_word keyword) {
    fem_status status = FEM_OK;
    fem_text  *text = &r->feed.text;
    fem_scalar type = {0};
    char       name[VTK_NAME];
    long long  components = fem_word_is(keyword, "VECTORS") || fem_word_is(keyword, "NORMALS") ? 3
                            : fem_word_is(keyword, "TENSORS")                                  ? 9
                            : fem_word_is(keyword, "TENSORS6")                                 ? 6
                                                                                               : 1;
    bool       scalars = fem_word_is(keyword, "SCALARS");
    FEM_TRY(take_name(r, name));
    if (fem_word_is(keyword, "TEXTURE_COORDINATES")) FEM_TRY(take_count(r, "the dimension", 3, &components));
    FEM_TRY(take_type(r, &type));
    if (scalars && !fem_text_at_line_end(text)) FEM_TRY(take_count(r, "the number of components", 4, &components));
    FEM_TRY(fem_text_end_line(text));
    if (scalars) {
        fem_text before = *text;
        fem_text_next(text);
        if (fem_word_is(fem_text_peek(text), "LOOKUP_TABLE"))
            while (!fem_text_at_line_end(text)) fem_text_take(text);
        else
            *text = before;
    }
    FEM_TRY(add_array(r, name, type, components, r->tuples));
done:
    return status;
}

// Colours are bytes, or numbers from 0 to 1 as text.
static fem_status read_colours(vtk_reader *r, bool table) {
    fem_status status = FEM_OK;
    char       name[VTK_NAME];
    long long  number = 0;
    FEM_TRY(take_name(r, name));
    FEM_TRY(take_count(r, "the number of colours", INT_MAX, &number));
    FEM_TRY(fem_text_end_line(&r->feed.text));
    FEM_TRY(add_array(r, "", (fem_scalar){'u', 1}, table ? 4 : number, table ? number : r->tuples));
done:
    return status;
}

static fem_status read_keyword(vtk_reader *r, fem_word word) {
    static const char *const attributes[] = {"SCALARS",   "VECTORS",    "NORMALS",      "TENSORS",
                                             "TENSORS6",  "GLOBAL_IDS", "PEDIGREE_IDS", "TEXTURE_COORDINATES",
                                             "EDGE_FLAGS"};
    fem_text                *text = &r->feed.text;
    char                     quote[FEM_QUOTE];
    if (fem_word_is(word, "POINTS")) return read_points(r);
    if (fem_word_is(word, "CELLS")) return read_cells(r);
    if (fem_word_is(word, "CELL_TYPES")) return read_cell_types(r);
    if (fem_word_is(word, "FIELD")) return read_field(r);
    if (fem_word_is(word, "CELL_DATA") || fem_word_is(word, "POINT_DATA")) {
        r->section = fem_word_is(word, "CELL_DATA") ? CELL_DATA : POINT_DATA;
        fem_status status = take_count(r, "the number of values", FEM_MOST_VERTICES, &r->tuples);
        return status == FEM_OK ? fem_text_end_line(text) : status;
    }
    if (fem_word_is(word, "METADATA")) {
        skip_metadata(text);
        return FEM_OK;
    }
    if (r->section != DATASET) {
        for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
            if (fem_word_is(word, attributes[i])) return read_attribute(r, word);
        if (fem_word_is(word, "COLOR_SCALARS")) return read_colours(r, false);
        if (fem_word_is(word, "LOOKUP_TABLE")) return read_colours(r, true);
    }
    return fem_text_fail(text, "unknown keyword %s", fem_quote(quote, word.at, word.length));
}

static fem_status read_head(vtk_reader *r) {
    fem_status        status = FEM_OK;
    fem_text         *text = &r->feed.text;
    static const char magic[] = "# vtk DataFile Version ";
    char              quote[FEM_QUOTE];
    if (fem_feed_left(&r->feed) < strlen(magic) || memcmp(text->at, magic, strlen(magic)) != 0)
        return fem_text_fail(text, "expected \"%s\" at the beginning", magic);
    fem_text_leave_line(text);
    fem_text_leave_line(text); // the title
    fem_word form = fem_text_take(text);
    r->binary = fem_word_is(form, "BINARY");
    r->feed.swapped = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__; // the big end comes first, always
    if (!r->binary && !fem_word_is(form, "ASCII"))
        return fem_text_fail(text, "expected ASCII or BINARY, found %s", fem_quote(quote, form.at, form.length));
    FEM_TRY(fem_text_end_line(text));
    fem_text_next(text);
    fem_word dataset = fem_text_take(text), kind = fem_text_take(text);
    if (!fem_word_is(dataset, "DATASET") || !fem_word_is(kind, "UNSTRUCTURED_GRID")) {
        status = fem_text_fail(text, "expected DATASET UNSTRUCTURED_GRID, found %s",
                               fem_quote(quote, dataset.length ? kind.at : dataset.at, kind.length));
        goto done;
    }
    FEM_TRY(fem_text_end_line(text));
    while (fem_text_next(text)) FEM_TRY(read_keyword(r, fem_text_take(text)));
done:
    return status;
}

// ---- points and cells ------------------------------------------------------------------------------------------

static fem_status find_needed(vtk_reader *r, const char *name, vtk_array **array) {
    *array = find_array(r, DATASET, name);
    return *array ? FEM_OK : fem_fail(FEM_BAD_INPUT, "%s: has no %s", r->draft.path, name);
}

static fem_status make_points(vtk_reader *r) {
    fem_status status = FEM_OK;
    vtk_array *points = NULL;
    double     x[3];
    FEM_TRY(find_needed(r, "POINTS", &points));
    FEM_TRY(fem_draft_reserve_vertices(&r->draft, points->tuples));
    for (long long i = 0; i < points->tuples; i++) {
        for (int k = 0; k < 3; k++) FEM_TRY(next_double(points, "a coordinate", &x[k]));
        FEM_TRY(fem_draft_vertex(&r->draft, i, x));
    }
done:
    return status;
}

// Corners of a cell that is read, 0 for one that is passed over, -1 for one that is refused; nodes -1: any number.
static int cell_corners(long long type, int *nodes, const char **quadratic) {
    static const signed char of_types[] = {0, 1, -1, 2, -1, 3, -1, -1, 4, 4,  4,  0, 8, 0, 0,
                                           0, 0, 0,  0, 0,  0, 3,  6,  8, 10, 20, 0, 0, 9, 27};
    *quadratic = type == 24 ? "ten-node tetrahedral" : type == 25 ? "twenty-node hexahedral" : NULL;
    if (type == 29) *quadratic = "27-node hexahedral";
    *nodes = type >= 0 && type < (long long)sizeof of_types ? of_types[type] : 0;
    bool flat = (type >= 0 && type <= 9) || (type >= 21 && type <= 23) || type == 28;
    if (flat) return 0;
    return *nodes == 0 ? -1 : type == 10 || type == 24 ? 4 : 8;
}

// How many nodes cell i has: told before them, or by the offsets.
static fem_status next_width(vtk_reader *r, vtk_array *cells, vtk_array *offsets, long long *behind, long long *width) {
    long long  end = 0;
    fem_status status;
    if (!r->new_cells) return next_int(cells, "the number of points of a cell", 0, INT_MAX, width);
    status = next_int(offsets, "an offset", *behind, cells->tuples, &end);
    if (status != FEM_OK) return status;
    *width = end - *behind;
    *behind = end;
    return FEM_OK;
}

static fem_status make_cell(vtk_reader *r, vtk_array *cells, long long i, long long type, long long width) {
    fem_status  status = FEM_OK;
    fem_draft  *d = &r->draft;
    const char *quadratic = NULL;
    char        why[128];
    int         nodes = 0, corners[8], count = cell_corners(type, &nodes, &quadratic);
    long long   point = 0;
    if (count < 0)
        return fem_feed_fail(&cells->feed, "cell %lld has the type %lld, expected tetrahedra (10) or hexahedra (12)", i,
                             type);
    if (nodes >= 0 && width != nodes)
        return fem_feed_fail(&cells->feed, "cell %lld of type %lld has %lld points, expected %d", i, type, width,
                             nodes);
    for (long long k = 0; k < width; k++) {
        FEM_TRY(next_int(cells, "a point of a cell", 0, d->mesh.vertex_count - 1, &point));
        if (k < count) corners[k] = (int)point;
    }
    r->kept[i] = count > 0;
    r->passed_over += count == 0;
    if (count == 0) goto done;
    bool fresh = !d->typed;
    if (fem_draft_type(d, count == 4 ? FEM_T4 : FEM_H8, why, sizeof why) != FEM_OK) {
        status = fem_feed_fail(&cells->feed, "%s", why);
        goto done;
    }
    if (fresh) FEM_TRY(fem_draft_reserve_elements(d, r->cells - i)); // as many types were found in the file
    d->quadratic += quadratic != NULL;
    if (quadratic) d->quadratic_name = quadratic;
    FEM_TRY(fem_draft_element(d, i, corners, 0));
done:
    return status;
}

static fem_status make_cells(vtk_reader *r) {
    fem_status status = FEM_OK;
    vtk_array *cells = NULL, *types = NULL, *offsets = NULL;
    long long  type = 0, width = 0, behind = 0;
    FEM_TRY(find_needed(r, "CELLS", &cells));
    FEM_TRY(find_needed(r, "CELL_TYPES", &types));
    if (r->new_cells) FEM_TRY(find_needed(r, "OFFSETS", &offsets));
    if (types->tuples != r->cells) {
        status =
            fem_fail(FEM_BAD_INPUT, "%s: has %lld cells and %lld cell types", r->draft.path, r->cells, types->tuples);
        goto done;
    }
    r->kept = fem_calloc((size_t)r->cells, 1);
    if (!r->kept) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory for %lld cells", r->draft.path, r->cells);
        goto done;
    }
    if (offsets) FEM_TRY(next_int(offsets, "the first offset", 0, 0, &behind));
    long long used = 0;
    for (long long i = 0; i < r->cells; i++) {
        FEM_TRY(next_int(types, "the type of a cell", 0, INT_MAX, &type));
        FEM_TRY(next_width(r, cells, offsets, &behind, &width));
        used += width + !r->new_cells;
        if (used > cells->tuples) {
            status = fem_feed_fail(&cells->feed, "the cells have more than the %lld numbers announced", cells->tuples);
            goto done;
        }
        FEM_TRY(make_cell(r, cells, i, type, width));
    }
    if (used != cells->tuples)
        status = fem_feed_fail(&cells->feed, "the cells have %lld numbers, announced are %lld", used, cells->tuples);
done:
    return status;
}

// ---- regions and sets ------------------------------------------------------------------------------------------

static fem_status check_data(vtk_reader *r, const vtk_array *a, long long tuples) {
    if (a->components == 1 && a->tuples == tuples) return FEM_OK;
    return fem_fail(FEM_BAD_INPUT, "%s: array \"%s\" has %lld values of %lld components, expected %lld of 1",
                    r->draft.path, a->name, a->tuples, a->components, tuples);
}

static fem_status follow_notes(vtk_reader *r, vtk_array *a) {
    fem_status status = FEM_OK;
    long long  letter = 0;
    size_t     size = (size_t)(a->components * a->tuples);
    char       place[300], *text = fem_calloc(size + 1, 1);
    if (!text) return fem_fail(FEM_NO_MEMORY, "%s: no memory for its notes", r->draft.path);
    for (size_t i = 0; i < size; i++) {
        FEM_TRY(next_int(a, "a letter of the notes", 0, 255, &letter));
        text[i] = (char)(unsigned char)letter;
    }
    snprintf(place, sizeof place, "%.270s: its notes", r->draft.path);
    fem_text scan = fem_text_open(place, text, size, 0, false);
    FEM_TRY(fem_notes_read(&r->draft.mesh, &scan, NULL));
done:
    fem_free(text);
    return status;
}

// The array that says where the regions are: ours, or what other programs call theirs.
static vtk_array *region_array(vtk_reader *r) {
    static const char *const names[] = {"region",        "gmsh:physical", "medit:ref",
                                        "CellEntityIds", "MaterialIds",   "material"};
    vtk_array               *found = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++) found = find_array(r, CELL_DATA, names[i]);
    return found;
}

static fem_status make_regions(vtk_reader *r) {
    fem_status status = FEM_OK;
    fem_mesh  *m = &r->draft.mesh;
    vtk_array *notes = find_array(r, DATASET, "limber"), *regions = region_array(r);
    long long  value = 0;
    int        element = 0;
    bool       one = true;
    if (notes) FEM_TRY(follow_notes(r, notes));
    if (!regions) {
        if (m->region_count > 1)
            status = fem_fail(FEM_BAD_INPUT, "%s: names %d regions, but has no cell array \"region\"", r->draft.path,
                              m->region_count);
        goto done;
    }
    FEM_TRY(check_data(r, regions, r->cells));
    for (long long i = 0; i < r->cells; i++) {
        bool bounded = notes && r->kept[i];
        FEM_TRY(next_int(regions, "the region of a cell", bounded ? 0 : INT_MIN,
                         bounded ? m->region_count - 1 : INT_MAX, &value));
        if (r->kept[i]) m->region[element++] = (int)value;
    }
    for (int e = 1; e < m->element_count; e++) one = one && m->region[e] == m->region[0];
    if (m->element_count == 0) goto done;                      // refused later
    if (!notes && one && strcmp(regions->name, "region") != 0) // every program writes some number
        memset(m->region, 0, (size_t)m->element_count * sizeof *m->region);
    else if (!notes)
        status = fem_regions_from_groups(m);
    if (status != FEM_OK) fem_fail_prefix(status, "%s: array \"%s\": ", r->draft.path, regions->name);
done:
    return status;
}

static fem_status make_set(vtk_reader *r, vtk_array *a) {
    fem_status status = FEM_OK;
    bool       of_elements = a->section == CELL_DATA;
    int        set = 0, element = 0;
    long long  value = 0, tuples = of_elements ? r->cells : r->draft.mesh.vertex_count;
    FEM_TRY(check_data(r, a, tuples));
    FEM_TRY(fem_draft_set_named(&r->draft, of_elements, a->name + 4, &set));
    for (long long i = 0; i < tuples; i++) {
        FEM_TRY(next_int(a, "a member of a set", INT_MIN, INT_MAX, &value));
        int item = of_elements ? element : (int)i;
        if (value != 0 && (!of_elements || r->kept[i])) FEM_TRY(fem_draft_set_add(&r->draft, set, item));
        if (of_elements) element += r->kept[i];
    }
done:
    return status;
}

static fem_status make_sets(vtk_reader *r) {
    fem_status       status = FEM_OK;
    const vtk_array *regions = region_array(r);
    char             names[300] = "";
    for (size_t i = 0; i < r->count; i++) {
        vtk_array *a = &r->arrays[i];
        if (a->section == DATASET || a == regions || !a->name[0]) continue;
        if (strncmp(a->name, "set:", 4) == 0 && a->name[4]) {
            FEM_TRY(make_set(r, a));
        } else if (strlen(names) + strlen(a->name) + 3 < sizeof names) {
            if (names[0]) strcat(names, ", ");
            strcat(names, a->name);
        }
    }
    if (names[0]) FEM_TRY(fem_remark(r->draft.remarks, "arrays that are passed over: %s", names));
    if (r->passed_over > 0)
        FEM_TRY(
            fem_remark(r->draft.remarks, "%d cells that are points, lines or faces are passed over", r->passed_over));
done:
    return status;
}

fem_status fem_mesh_read_vtk(fem_mesh *mesh, const char *path, fem_remarks *remarks) {
    fem_status status = FEM_OK;
    char      *text = NULL;
    size_t     size = 0;
    vtk_reader r = {.draft = {.path = path, .remarks = remarks}};
    FEM_TRY(fem_file_read(&text, &size, path));
    r.feed = fem_feed_open(path, text, size, 0);
    FEM_TRY(read_head(&r));
    FEM_TRY(make_points(&r));
    FEM_TRY(fem_draft_close_vertices(&r.draft));
    FEM_TRY(make_cells(&r));
    FEM_TRY(make_regions(&r));
    FEM_TRY(make_sets(&r));
    fem_free(text), text = NULL;
    FEM_TRY(fem_draft_finish(&r.draft, mesh));
done:
    fem_free(text);
    fem_free(r.arrays);
    fem_free(r.kept);
    fem_draft_destroy(&r.draft);
    return status;
}
