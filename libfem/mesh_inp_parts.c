// Nodes, elements and sets of an input deck. Sets and elements may stand before what they name, so numbers are looked
// up at the end.
#include "libfem/mesh_inp.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { MOST_RANGES = 1 << 24 }; // in all: sets of sets multiply

// ---- sets ------------------------------------------------------------------------------------------------------

static int set_at(const inp_reader *r, bool of_elements, bool assembly, const char *name) {
    for (int i = 0; i < r->set_count; i++)
        if (r->sets[i].of_elements == of_elements && r->sets[i].assembly == assembly && inp_same(r->sets[i].name, name))
            return i;
    return -1;
}

fem_status inp_named_set(inp_reader *r, bool of_elements, const char *name, int *set) {
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
        range.first - last->last == 1) {
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
    return set < 0 ? FEM_OK : add_range(r, set, (inp_range){number, number, 1, false});
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
    FEM_TRY(add_range(r, set, (inp_range){(int)first, (int)last, (int)step, true}));
done:
    return status;
}

// A number, or the name of a set that stands above.
static fem_status read_member(inp_reader *r, int set) {
    fem_status status = FEM_OK;
    fem_word   word = fem_text_peek(r->scan);
    long long  number = 0;
    char       name[INP_NAME] = "", quote[FEM_QUOTE];
    if (word.length > 0 && (isdigit((unsigned char)*word.at) || *word.at == '-' || *word.at == '+')) {
        FEM_TRY(fem_text_int(r->scan, "a member of the set", 1, INT_MAX, &number));
        FEM_TRY(add_number(r, set, (int)number));
        goto done;
    }
    if (word.length < sizeof name) memcpy(name, word.at, word.length);
    int other = set_at(r, r->sets[set].of_elements, r->assembly, name);
    if (other < 0) other = set_at(r, r->sets[set].of_elements, !r->assembly, name);
    if (other < 0 || other == set) {
        status = fem_text_fail(r->scan, "expected a number or a set that stands above, found %s",
                               fem_quote(quote, word.at, word.length));
        goto done;
    }
    r->scan->at += word.length;
    int count = r->sets[other].count;
    for (int i = 0; i < count; i++) FEM_TRY(add_range(r, set, r->sets[other].ranges[i]));
done:
    return status;
}

fem_status inp_read_set(inp_reader *r, const inp_keyword *k, bool of_elements) {
    fem_status status = FEM_OK;
    char       name[INP_NAME];
    int        set = 0;
    bool       more, generate = inp_parameter(k, "GENERATE") != NULL;
    FEM_TRY(inp_check_parameters(r, k,
                                 of_elements ? ",ELSET,GENERATE,INSTANCE,INTERNAL,UNSORTED,"
                                             : ",NSET,GENERATE,INSTANCE,INTERNAL,UNSORTED,"));
    FEM_TRY(inp_name(r, k, of_elements ? "ELSET" : "NSET", name));
    FEM_TRY(inp_named_set(r, of_elements, name, &set));
    r->sets[set].listed = true;
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
    status = inp_named_set(r, of_elements, name, set);
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

// ---- nodes -----------------------------------------------------------------------------------------------------

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
        for (int i = 0; i < 3; i++) FEM_TRY(fem_text_double(r->scan, "a coordinate", &x[i]));
        FEM_TRY(fem_text_end_line(r->scan));
        FEM_TRY(fem_draft_vertex(&r->draft, number, x));
        FEM_TRY(add_number(r, set, (int)number));
    }
done:
    return status;
}

// ---- elements --------------------------------------------------------------------------------------------------

typedef struct inp_type {
    char family[8];
    int  nodes, corners;
    bool solid;
} inp_type;

// C3D4, C3D8, C3D10, C3D20, C3D27; the faces and lines that others write beside them: letters, then the number of
// nodes.
static fem_status element_type(inp_reader *r, const inp_keyword *k, inp_type *type) {
    static const inp_type types[] = {
        {"C3D4", 4, 4, true},   {"C3D8", 8, 8, true},    {"C3D10", 10, 4, true},  {"C3D20", 20, 8, true},
        {"C3D27", 27, 8, true}, {"M3D9", 9, 4, false},   {"T3D2", 2, 2, false},   {"T3D3", 3, 2, false},
        {"B31", 2, 2, false},   {"B32", 3, 2, false},    {"CPS3", 3, 3, false},   {"CPS4", 4, 4, false},
        {"CPS6", 6, 3, false},  {"CPS8", 8, 4, false},   {"CPE3", 3, 3, false},   {"CPE4", 4, 4, false},
        {"CPE6", 6, 3, false},  {"CPE8", 8, 4, false},   {"S3", 3, 3, false},     {"S4", 4, 4, false},
        {"S6", 6, 3, false},    {"S8", 8, 4, false},     {"M3D3", 3, 3, false},   {"M3D4", 4, 4, false},
        {"M3D6", 6, 3, false},  {"M3D8", 8, 4, false},   {"SFM3D3", 3, 3, false}, {"SFM3D4", 4, 4, false},
        {"STRI3", 3, 3, false}, {"STRI65", 6, 3, false}, {"R3D3", 3, 3, false},   {"R3D4", 4, 4, false}};
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
        size_t used = strlen(r->variants);
        if (name[length] && types[i].solid && !strstr(r->variants, name) && strlen(name) < 16 &&
            used + 20 < sizeof r->variants)
            snprintf(r->variants + used, sizeof r->variants - used, "%s%s", used ? ", " : "", name);
        *type = types[i];
        return FEM_OK;
    }
    return fem_text_fail(r->scan, "elements of type %s are not supported, expected C3D4, C3D8, C3D10 or C3D20", name);
}

// The nodes of an element go on over as many lines as they need.
static fem_status read_element_nodes(inp_reader *r, int count, int *nodes) {
    fem_status status = FEM_OK;
    bool       more;
    long long  node = 0;
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
        FEM_TRY(read_element_nodes(r, type.nodes, nodes));
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

// One number of a set: *face_set is the vertex set for its faces, made when the first comes.
static fem_status resolve_number(inp_reader *r, const inp_set *s, int number, int *face_set) {
    fem_status status = FEM_OK;
    fem_draft *d = &r->draft;
    int        index = fem_numbers_find(s->of_elements ? &d->element_numbers : &d->vertex_numbers, number);
    if (index >= 0) return fem_draft_set_add(d, s->draft_set, index);
    index = s->of_elements ? fem_numbers_find(&r->face_numbers, number) : -1;
    if (index < 0)
        return fem_fail(FEM_BAD_INPUT, "%s: set %s: there is no %s %d", d->path, s->name,
                        s->of_elements ? "element" : "node", number);
    if (*face_set < 0) FEM_TRY(fem_draft_set_named(d, false, s->name, face_set));
    FEM_TRY(add_face_vertices(r, *face_set, index));
done:
    return status;
}

// Of the numbers that GENERATE names, those that are there; decks leave gaps in their numbers.
static fem_status resolve_generated(inp_reader *r, const inp_set *s, inp_range range, int *face_set) {
    fem_status         status = FEM_OK;
    const fem_draft   *d = &r->draft;
    const fem_numbers *lists[] = {s->of_elements ? &d->element_numbers : &d->vertex_numbers, &r->face_numbers};
    const size_t       counts[] = {(size_t)(s->of_elements ? d->mesh.element_count : d->mesh.vertex_count),
                             s->of_elements ? r->face_count : 0};
    bool               any = false;
    for (int k = 0; k < 2; k++) {
        long long wanted = (range.last - range.first) / range.step + 1;
        bool      wide = wanted > (long long)counts[k]; // then what is there is looked through
        for (long long i = 0; i < (wide ? (long long)counts[k] : wanted); i++) {
            long long n = wide ? fem_numbers_at(lists[k], (int)i) : range.first + i * range.step;
            if (n < range.first || n > range.last || (n - range.first) % range.step != 0) continue;
            if (!wide && fem_numbers_find(lists[k], n) < 0) continue;
            FEM_TRY(resolve_number(r, s, (int)n, face_set));
            any = true;
        }
    }
    if (!any)
        status = fem_fail(FEM_BAD_INPUT, "%s: set %s: there is no %s from %d to %d", d->path, s->name,
                          s->of_elements ? "element" : "node", range.first, range.last);
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
            FEM_TRY(resolve_number(r, s, (int)n, &face_set));
    }
    s->only_faces = face_set >= 0 && r->draft.sets[s->draft_set].count == 0;
done:
    return status;
}

fem_status inp_resolve(inp_reader *r) {
    fem_status status = FEM_OK;
    long long  twice = -1;
    FEM_TRY(fem_draft_close_vertices(&r->draft));
    FEM_TRY(fem_numbers_close(&r->draft.element_numbers, &twice));
    if (twice < 0) FEM_TRY(fem_numbers_close(&r->face_numbers, &twice));
    if (twice >= 0) {
        status = fem_fail(FEM_BAD_INPUT, "%s: two elements have the number %lld", r->draft.path, twice);
        goto done;
    }
    FEM_TRY(resolve_corners(r));
    for (int i = 0; i < r->set_count; i++) FEM_TRY(resolve_set(r, &r->sets[i]));
done:
    return status;
}
