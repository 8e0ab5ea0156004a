// Nodes, elements and sets of an input deck. Sets and elements may stand before what they name, so numbers are looked
// up at the end.
#include "libfem/mesh_inp.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MOST_RANGES = 1 << 24 }; // in all: sets of sets multiply

// ---- sets ------------------------------------------------------------------------------------------------------

static int set_at(const inp_reader *r, bool of_elements, bool assembly, const char *name) {
    for (int i = 0; i < r->set_count; i++)
        if (r->sets[i].of_elements == of_elements && r->sets[i].assembly == assembly && inp_same(r->sets[i].name, name))
            return i;
    return -1;
}

static fem_status named_set(inp_reader *r, bool of_elements, const char *name, int *set) {
    *set = set_at(r, of_elements, r->assembly, name);
    if (*set >= 0) return FEM_OK;
    if (r->set_count == FEM_MOST_NAMES) return fem_text_fail(r->scan, "more than %d sets", FEM_MOST_NAMES);
    fem_status status = fem_grow((void **)&r->sets, &r->set_capacity, (size_t)r->set_count + 1, sizeof *r->sets);
    if (status != FEM_OK) return status;
    r->sets[r->set_count] = (inp_set){.of_elements = of_elements, .assembly = r->assembly};
    memcpy(r->sets[r->set_count].name, name, INP_NAME);
    *set = r->set_count++;
    return FEM_OK;
}

// A number that goes on where the last range ends makes that longer.
static fem_status add_range(inp_reader *r, int set, inp_range range) {
    inp_set   *s = &r->sets[set];
    inp_range *last = s->count > 0 ? &s->ranges[s->count - 1] : NULL;
    if (last && range.first == range.last && last->step == 1 && !last->generated && last->last < range.first &&
        range.first - last->last == 1 && last->of_elements == range.of_elements) {
        last->last = range.first;
        return FEM_OK;
    }
    if (++r->range_count > MOST_RANGES)
        return fem_text_fail(r->scan, "the sets have more than %d entries in all", MOST_RANGES);
    fem_status status = fem_grow((void **)&s->ranges, &s->capacity, (size_t)s->count + 1, sizeof *s->ranges);
    if (status == FEM_OK) s->ranges[s->count++] = range;
    return status;
}

static fem_status add_number(inp_reader *r, int set, int number) {
    return set < 0 ? FEM_OK : add_range(r, set, (inp_range){.first = number, .last = number, .step = 1});
}

// FIRST, LAST, STEP
static fem_status read_generate(inp_reader *r, int set) {
    fem_status status = FEM_OK;
    long long  first = 0, last = 0, step = 1;
    FEM_TRY(fem_text_int(r->scan, "the first number", 1, INT_MAX, &first));
    FEM_TRY(fem_text_int(r->scan, "the last number", first, INT_MAX, &last));
    if (!fem_text_at_line_end(r->scan)) FEM_TRY(fem_text_int(r->scan, "the step", 1, INT_MAX, &step));
    FEM_TRY(fem_text_end_line(r->scan));
    last -= (last - first) % step;
    FEM_TRY(add_range(r, set, (inp_range){(int)first, (int)last, (int)step, .generated = true}));
done:
    return status;
}

// A set that stands above, in the assembly or the part, by the name in capitals or not; -1: there is none.
static int set_above(const inp_reader *r, bool of_elements, fem_word word) {
    char name[INP_NAME] = "";
    if (word.length == 0 || word.length >= sizeof name) return -1;
    memcpy(name, word.at, word.length);
    int set = set_at(r, of_elements, r->assembly, name);
    return set >= 0 ? set : set_at(r, of_elements, !r->assembly, name);
}

static fem_status add_set(inp_reader *r, int set, int other) {
    fem_status status = FEM_OK;
    int        count = r->sets[other].count;
    bool       nodes_of = r->sets[other].of_elements && !r->sets[set].of_elements;
    for (int i = 0; i < count; i++) {
        inp_range range = r->sets[other].ranges[i];
        range.of_elements = range.of_elements || nodes_of;
        FEM_TRY(add_range(r, set, range));
    }
done:
    return status;
}

static bool is_number(fem_word word) {
    return word.length > 0 && (isdigit((unsigned char)*word.at) || *word.at == '-' || *word.at == '+');
}

// A number, or the name of a set that stands above; in an assembly "INSTANCE." may stand before either.
static fem_status read_member(inp_reader *r, int set) {
    fem_status status = FEM_OK;
    fem_word   word = fem_text_peek(r->scan);
    bool       of_elements = r->sets[set].of_elements;
    size_t     prefix = strlen(r->instance) + 1;
    long long  number = 0;
    int        other = is_number(word) ? -1 : set_above(r, of_elements, word);
    char       quote[FEM_QUOTE];
    if (other < 0 && prefix > 1 && word.length > prefix && word.at[prefix - 1] == '.' &&
        strncasecmp(word.at, r->instance, prefix - 1) == 0) {
        word.at += prefix, word.length -= prefix;
        r->scan->at = word.at;
        if (!is_number(word)) other = set_above(r, of_elements, word);
    }
    if (is_number(word)) {
        FEM_TRY(fem_text_int(r->scan, "a member of the set", 1, INT_MAX, &number));
        FEM_TRY(add_number(r, set, (int)number));
        goto done;
    }
    if (other < 0 || other == set) {
        status = fem_text_fail(r->scan, "expected a number or a set that stands above, found %s",
                               fem_quote(quote, word.at, word.length));
        goto done;
    }
    r->scan->at += word.length;
    FEM_TRY(add_set(r, set, other));
done:
    return status;
}

// *NSET, ELSET=NAME: the nodes of those elements.
static fem_status add_nodes_of(inp_reader *r, const inp_keyword *k, int set) {
    char       name[INP_NAME];
    fem_status status = inp_name(r, k, "ELSET", name);
    if (status != FEM_OK) return status;
    int other = set_above(r, true, (fem_word){name, strlen(name)});
    if (other < 0) return fem_text_fail(r->scan, "*NSET: there is no element set %s above", name);
    return add_set(r, set, other);
}

fem_status inp_read_set(inp_reader *r, const inp_keyword *k, bool of_elements) {
    fem_status status = FEM_OK;
    char       name[INP_NAME];
    int        set = 0;
    bool       more, generate = inp_parameter(k, "GENERATE") != NULL;
    FEM_TRY(inp_check_parameters(r, k,
                                 of_elements ? ",ELSET,GENERATE,INSTANCE,INTERNAL,UNSORTED,"
                                             : ",NSET,ELSET,GENERATE,INSTANCE,INTERNAL,UNSORTED,"));
    FEM_TRY(inp_name(r, k, of_elements ? "ELSET" : "NSET", name));
    FEM_TRY(named_set(r, of_elements, name, &set));
    r->sets[set].listed = true;
    if (!of_elements && inp_parameter(k, "ELSET")) FEM_TRY(add_nodes_of(r, k, set));
    for (;;) {
        FEM_TRY(inp_next_data(r, &more));
        if (!more) goto done;
        if (generate) FEM_TRY(read_generate(r, set));
        while (!fem_text_at_line_end(r->scan)) FEM_TRY(read_member(r, set));
    }
done:
    return status;
}

// The set that a *NODE or *ELEMENT line names in passing; -1: none.
static fem_status passing_set(inp_reader *r, const inp_keyword *k, bool of_elements, int *set) {
    char name[INP_NAME];
    *set = -1;
    if (!inp_parameter(k, of_elements ? "ELSET" : "NSET")) return FEM_OK;
    fem_status status = inp_name(r, k, of_elements ? "ELSET" : "NSET", name);
    if (status != FEM_OK) return status;
    status = named_set(r, of_elements, name, set);
    if (status == FEM_OK && !of_elements) r->sets[*set].listed = true;
    return status;
}

// Lines until the next keyword, or to the end of the file: as many nodes or elements may follow.
static long long data_lines(const fem_text *scan, bool to_end) {
    long long   lines = 1;
    const char *at = scan->at;
    while (at < scan->end && (at = memchr(at, '\n', (size_t)(scan->end - at))) && (to_end || at[1] != '*'))
        at++, lines++;
    return lines;
}

// When the deck is read again: the second of the number that came twice is where it is refused.
static fem_status check_wanted(inp_reader *r, bool of_elements, long long number) {
    if (number != r->wanted || of_elements != r->wanted_element || ++r->wanted_seen < 2) return FEM_OK;
    return fem_text_fail(r->scan, "two %s have the number %lld", of_elements ? "elements" : "nodes", number);
}

// ---- nodes -----------------------------------------------------------------------------------------------------

static void skip_blanks(fem_text *scan) { // a zero byte stands at the end
    while (*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\r') scan->at++;
}

// Coordinates that are left out, between commas or at the end of the line, are 0; one comma at least shows that the
// line is whole.
static fem_status read_coordinates(fem_text *scan, double x[3]) {
    for (int i = 0; i < 3; i++) {
        skip_blanks(scan);
        bool comma = *scan->at == ',';
        if (comma) scan->at++, skip_blanks(scan);
        x[i] = 0;
        if (comma && *scan->at == ',') continue;
        if ((comma || i > 0) && (scan->at == scan->end || *scan->at == '\n')) continue;
        fem_status status = fem_text_double(scan, "a coordinate", &x[i]);
        if (status != FEM_OK) return status;
    }
    return FEM_OK;
}

fem_status inp_read_nodes(inp_reader *r, const inp_keyword *k) {
    fem_status      status = FEM_OK;
    long long       number = 0;
    double          x[3];
    int             set = -1;
    bool            more;
    const fem_word *system = inp_parameter(k, "SYSTEM");
    if (system && !fem_word_is(*system, "R") && !fem_word_is(*system, "r"))
        return fem_text_fail(r->scan, "*NODE: only rectangular coordinates are supported");
    FEM_TRY(inp_check_parameters(r, k, ",NSET,SYSTEM,INPUT,"));
    FEM_TRY(passing_set(r, k, false, &set));
    FEM_TRY(inp_follow_input(r, k));
    FEM_TRY(fem_draft_reserve_vertices(&r->draft, data_lines(r->scan, false)));
    for (;;) {
        FEM_TRY(inp_next_data(r, &more));
        if (!more) goto done;
        FEM_TRY(fem_text_int(r->scan, "the number of a node", 1, INT_MAX, &number));
        FEM_TRY(check_wanted(r, false, number));
        FEM_TRY(read_coordinates(r->scan, x));
        FEM_TRY(fem_text_end_line(r->scan));
        FEM_TRY(fem_draft_vertex(&r->draft, number, x));
        FEM_TRY(add_number(r, set, (int)number));
    }
done:
    return status;
}

// ---- elements --------------------------------------------------------------------------------------------------

typedef struct inp_type {
    char family[12];
    int  nodes, corners;
    bool solid;
} inp_type;

// Adds the name of a type to a list of them, once.
static void note_type(char list[120], const char *name) {
    char   entry[24];
    size_t used = strlen(list);
    snprintf(entry, sizeof entry, "%.20s", name);
    for (const char *at = list; (at = strstr(at, entry)); at++) // B31 is no part of B31H
        if (!isalnum((unsigned char)at[strlen(entry)]) && (at == list || at[-1] == ' ')) return;
    if (used + strlen(entry) + 3 < 120) snprintf(list + used, 120 - used, "%s%s", used ? ", " : "", entry);
}

// Solids, and what has no volume: faces and lines that others write beside them, shells, beams, springs, masses.
static fem_status element_type(inp_reader *r, const inp_keyword *k, inp_type *type) {
    static const inp_type types[] = {
        {"C3D4", 4, 4, true},      {"C3D8", 8, 8, true},      {"C3D10", 10, 4, true},   {"C3D20", 20, 8, true},
        {"C3D27", 27, 8, true},    {"M3D9", 9, 4, false},     {"T3D2", 2, 2, false},    {"T3D3", 3, 2, false},
        {"B31", 2, 2, false},      {"B32", 3, 2, false},      {"CPS3", 3, 3, false},    {"CPS4", 4, 4, false},
        {"CPS6", 6, 3, false},     {"CPS8", 8, 4, false},     {"CPE3", 3, 3, false},    {"CPE4", 4, 4, false},
        {"CPE6", 6, 3, false},     {"CPE8", 8, 4, false},     {"S3", 3, 3, false},      {"S4", 4, 4, false},
        {"S6", 6, 3, false},       {"S8", 8, 4, false},       {"M3D3", 3, 3, false},    {"M3D4", 4, 4, false},
        {"M3D6", 6, 3, false},     {"M3D8", 8, 4, false},     {"SFM3D3", 3, 3, false},  {"SFM3D4", 4, 4, false},
        {"STRI3", 3, 3, false},    {"STRI65", 6, 3, false},   {"R3D3", 3, 3, false},    {"R3D4", 4, 4, false},
        {"SFM3D6", 6, 3, false},   {"SFM3D8", 8, 4, false},   {"S4R5", 4, 4, false},    {"S8R5", 8, 4, false},
        {"S9R5", 9, 4, false},     {"DS3", 3, 3, false},      {"DS4", 4, 4, false},     {"DS6", 6, 3, false},
        {"DS8", 8, 4, false},      {"CAX3", 3, 3, false},     {"CAX4", 4, 4, false},    {"CAX6", 6, 3, false},
        {"CAX8", 8, 4, false},     {"T2D2", 2, 2, false},     {"T2D3", 3, 2, false},    {"B21", 2, 2, false},
        {"B22", 3, 2, false},      {"B23", 2, 2, false},      {"B33", 2, 2, false},     {"PIPE21", 2, 2, false},
        {"PIPE22", 3, 2, false},   {"PIPE31", 2, 2, false},   {"PIPE32", 3, 2, false},  {"FRAME2D", 2, 2, false},
        {"FRAME3D", 2, 2, false},  {"R2D2", 2, 2, false},     {"RB2D2", 2, 2, false},   {"RB3D2", 2, 2, false},
        {"CONN2D2", 2, 2, false},  {"CONN3D2", 2, 2, false},  {"GAPUNI", 2, 2, false},  {"GAPCYL", 2, 2, false},
        {"GAPSPHER", 2, 2, false}, {"MASS", 1, 1, false},     {"ROTARYI", 1, 1, false}, {"DCOUP2D", 1, 1, false},
        {"DCOUP3D", 1, 1, false},  {"SPRING1", 1, 1, false},  {"SPRING2", 2, 2, false}, {"SPRINGA", 2, 2, false},
        {"DASHPOT1", 1, 1, false}, {"DASHPOT2", 2, 2, false}, {"DASHPOTA", 2, 2, false}};
    char       name[INP_NAME];
    fem_status status = inp_name(r, k, "TYPE", name);
    if (status != FEM_OK) return status;
    for (char *c = name; *c; c++) *c = (char)toupper((unsigned char)*c);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        size_t length = strlen(types[i].family);
        if (strncmp(name, types[i].family, length) != 0) continue;
        bool letters = true; // behind the number: R, I, H, M, T
        for (const char *c = name + length; *c; c++) letters = letters && isalpha((unsigned char)*c);
        if (!letters) continue;
        if (name[length] && types[i].solid) note_type(r->variants, name);
        if (!types[i].solid) note_type(r->flat_types, name);
        *type = types[i];
        return FEM_OK;
    }
    return fem_text_fail(r->scan, "elements of type %s are not supported, expected C3D4, C3D8, C3D10 or C3D20", name);
}

// The nodes of an element go on over as many lines as they need.
static fem_status read_element_nodes(inp_reader *r, const inp_type *type, int *nodes) {
    fem_status status = FEM_OK;
    bool       more;
    long long  node = 0;
    int        count = type->nodes;
    for (int i = 0; i < count; i++) {
        if (fem_text_at_line_end(r->scan)) {
            FEM_TRY(inp_next_data(r, &more));
            if (!more) {
                status = fem_text_fail(r->scan, "an element has %d nodes, expected %d", i, count);
                goto done;
            }
        }
        FEM_TRY(fem_text_int(r->scan, "a node of the element", 1, INT_MAX, &node));
        nodes[i] = (int)node;
    }
    if (type->corners == 2 && !fem_text_at_line_end(r->scan)) // how a beam is turned
        FEM_TRY(fem_text_int(r->scan, "a node of the element", 1, INT_MAX, &node));
    FEM_TRY(fem_text_end_line(r->scan));
done:
    return status;
}

static fem_status add_face(inp_reader *r, long long number, const inp_type *type, const int *nodes) {
    fem_status status = FEM_OK;
    if (r->face_count == FEM_MOST_ELEMENTS) return fem_text_fail(r->scan, "more than %d faces", FEM_MOST_ELEMENTS);
    FEM_TRY(fem_grow((void **)&r->faces, &r->face_capacity, r->face_count + 1, sizeof *r->faces));
    FEM_TRY(fem_numbers_add(&r->face_numbers, number));
    inp_face *face = &r->faces[r->face_count++];
    face->count = type->corners;
    memcpy(face->corners, nodes, (size_t)type->corners * sizeof *nodes);
    if (type->nodes == 3 && type->corners == 2) face->corners[1] = nodes[2]; // lines: end, middle, end
done:
    return status;
}

fem_status inp_read_elements(inp_reader *r, const inp_keyword *k) {
    fem_status status = FEM_OK;
    inp_type   type = {0};
    long long  number = 0;
    int        set = -1, nodes[27];
    bool       more;
    char       why[128];
    FEM_TRY(inp_check_parameters(r, k, ",TYPE,ELSET,INPUT,"));
    FEM_TRY(element_type(r, k, &type));
    FEM_TRY(passing_set(r, k, true, &set));
    FEM_TRY(inp_follow_input(r, k));
    for (;;) {
        FEM_TRY(inp_next_data(r, &more));
        if (!more) goto done;
        FEM_TRY(fem_text_int(r->scan, "the number of an element", 1, INT_MAX, &number));
        FEM_TRY(check_wanted(r, true, number));
        FEM_TRY(read_element_nodes(r, &type, nodes));
        FEM_TRY(add_number(r, set, (int)number));
        if (!type.solid) {
            FEM_TRY(add_face(r, number, &type, nodes));
            continue;
        }
        if (fem_draft_type(&r->draft, type.corners == 4 ? FEM_T4 : FEM_H8, why, sizeof why) != FEM_OK) {
            status = fem_text_fail(r->scan, "%s", why);
            goto done;
        }
        if (r->draft.mesh.element_count == 0) FEM_TRY(fem_draft_reserve_elements(&r->draft, data_lines(r->scan, true)));
        if (type.nodes > type.corners) {
            r->draft.quadratic++;
            r->draft.quadratic_name = type.nodes == 10   ? "ten-node tetrahedral"
                                      : type.nodes == 20 ? "twenty-node hexahedral"
                                                         : "27-node hexahedral";
        }
        FEM_TRY(fem_draft_element(&r->draft, number, nodes, -1));
    }
done:
    return status;
}

// ---- numbers to indices ----------------------------------------------------------------------------------------

static fem_status resolve_corners(inp_reader *r) {
    fem_mesh *m = &r->draft.mesh;
    size_t    width = (size_t)fem_element_vertices(m->type);
    for (int e = 0; e < m->element_count; e++)
        for (size_t a = 0; a < width; a++) {
            int *corner = &m->elements[width * (size_t)e + a];
            int  vertex = fem_numbers_find(&r->draft.vertex_numbers, *corner);
            if (vertex < 0)
                return fem_fail(FEM_BAD_INPUT, "%s: element %lld: there is no node %d", r->draft.path,
                                fem_numbers_at(&r->draft.element_numbers, e), *corner);
            *corner = vertex;
        }
    return FEM_OK;
}

static fem_status add_face_vertices(inp_reader *r, int set, int face) {
    fem_status status = FEM_OK;
    for (int i = 0; i < r->faces[face].count; i++) {
        int vertex = fem_numbers_find(&r->draft.vertex_numbers, r->faces[face].corners[i]);
        if (vertex < 0) {
            status = fem_fail(FEM_BAD_INPUT, "%s: element %lld: there is no node %d", r->draft.path,
                              fem_numbers_at(&r->face_numbers, face), r->faces[face].corners[i]);
            goto done;
        }
        FEM_TRY(fem_draft_set_add(&r->draft, set, vertex));
    }
done:
    return status;
}

// An element whose nodes are in the set.
static fem_status add_corners(inp_reader *r, int set, int element) {
    size_t width = (size_t)fem_element_vertices(r->draft.mesh.type);
    for (size_t a = 0; a < width; a++) {
        fem_status status = fem_draft_set_add(&r->draft, set, r->draft.mesh.elements[width * (size_t)element + a]);
        if (status != FEM_OK) return status;
    }
    return FEM_OK;
}

// One number of a set: *face_set is the vertex set for its faces, made when the first comes.
static fem_status resolve_number(inp_reader *r, const inp_set *s, bool elements, int number, int *face_set) {
    fem_status status = FEM_OK;
    fem_draft *d = &r->draft;
    int        index = fem_numbers_find(elements ? &d->element_numbers : &d->vertex_numbers, number);
    if (index >= 0)
        return elements && !s->of_elements ? add_corners(r, s->draft_set, index)
                                           : fem_draft_set_add(d, s->draft_set, index);
    index = elements ? fem_numbers_find(&r->face_numbers, number) : -1;
    if (index < 0)
        return fem_fail(FEM_BAD_INPUT, "%s: set %s: there is no %s %d", d->path, s->name, elements ? "element" : "node",
                        number);
    if (!s->of_elements) return add_face_vertices(r, s->draft_set, index);
    if (*face_set < 0) FEM_TRY(fem_draft_set_named(d, false, s->name, face_set));
    FEM_TRY(add_face_vertices(r, *face_set, index));
done:
    return status;
}

// Of the numbers that GENERATE names, those that are there; decks leave gaps in their numbers.
static fem_status resolve_generated(inp_reader *r, const inp_set *s, inp_range range, int *face_set) {
    fem_status         status = FEM_OK;
    const fem_draft   *d = &r->draft;
    const bool         elements = s->of_elements || range.of_elements;
    const fem_numbers *lists[] = {elements ? &d->element_numbers : &d->vertex_numbers, &r->face_numbers};
    const size_t       counts[] = {(size_t)(elements ? d->mesh.element_count : d->mesh.vertex_count),
                             elements ? r->face_count : 0};
    bool               any = false;
    for (int k = 0; k < 2; k++) {
        long long wanted = (range.last - range.first) / range.step + 1;
        bool      wide = wanted > (long long)counts[k]; // then what is there is looked through
        for (long long i = 0; i < (wide ? (long long)counts[k] : wanted); i++) {
            long long n = wide ? fem_numbers_at(lists[k], (int)i) : range.first + i * range.step;
            if (n < range.first || n > range.last || (n - range.first) % range.step != 0) continue;
            if (!wide && fem_numbers_find(lists[k], n) < 0) continue;
            FEM_TRY(resolve_number(r, s, elements, (int)n, face_set));
            any = true;
        }
    }
    if (!any)
        status = fem_fail(FEM_BAD_INPUT, "%s: set %s: there is no %s from %d to %d", d->path, s->name,
                          elements ? "element" : "node", range.first, range.last);
done:
    return status;
}

// A set of the part whose name the assembly uses too gets the name of the part before it, as decks write it.
static fem_status name_of_set(const inp_reader *r, const inp_set *s, char name[2 * INP_NAME]) {
    bool both = !s->assembly && set_at(r, s->of_elements, true, s->name) >= 0;
    snprintf(name, 2 * INP_NAME, "%s%s%s", both ? (r->part[0] ? r->part : "part") : "", both ? "." : "", s->name);
    return both ? fem_remark(r->draft.remarks, "the part and the assembly have a set %s: that of the part is %s",
                             s->name, name)
                : FEM_OK;
}

// A set of faces or lines becomes the vertex set of its name, a set of solids an element set.
static fem_status resolve_set(inp_reader *r, inp_set *s) {
    fem_status status = FEM_OK;
    int        face_set = -1;
    char       name[2 * INP_NAME];
    FEM_TRY(name_of_set(r, s, name));
    FEM_TRY(fem_draft_set_named(&r->draft, s->of_elements, name, &s->draft_set));
    for (int i = 0; i < s->count; i++) {
        inp_range range = s->ranges[i];
        if (range.generated) FEM_TRY(resolve_generated(r, s, range, &face_set));
        for (long long n = range.first; n <= range.last && !range.generated; n++)
            FEM_TRY(resolve_number(r, s, s->of_elements || range.of_elements, (int)n, &face_set));
    }
    s->only_faces = face_set >= 0 && r->draft.sets[s->draft_set].count == 0;
done:
    return status;
}

// Sections may stand before their sets, and outside of the assembly that has these.
static fem_status find_sets_of_sections(inp_reader *r) {
    for (size_t i = 0; i < r->section_count; i++) {
        inp_section *s = &r->sections[i];
        s->set = set_at(r, true, s->assembly, s->set_name);
        if (s->set < 0) s->set = set_at(r, true, !s->assembly, s->set_name);
        if (s->set < 0)
            return fem_fail(FEM_BAD_INPUT, "%s: the section of %s has no elements: there is no such set", r->draft.path,
                            s->set_name);
        r->sets[s->set].has_section = true;
    }
    return FEM_OK;
}

fem_status inp_resolve(inp_reader *r, long long *twice, bool *of_elements) {
    fem_status status = FEM_OK;
    *of_elements = false;
    FEM_TRY(fem_numbers_close(&r->draft.vertex_numbers, twice));
    if (*twice >= 0) goto done;
    *of_elements = true;
    FEM_TRY(fem_numbers_close(&r->draft.element_numbers, twice));
    if (*twice < 0) FEM_TRY(fem_numbers_close(&r->face_numbers, twice));
    if (*twice >= 0) goto done;
    FEM_TRY(find_sets_of_sections(r));
    FEM_TRY(resolve_corners(r));
    for (int i = 0; i < r->set_count; i++) FEM_TRY(resolve_set(r, &r->sets[i]));
done:
    return status;
}
