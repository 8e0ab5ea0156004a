// Abaqus' and CalculiX' .inp: the reader. Keywords that define the body are read (*NODE, *ELEMENT, *NSET, *ELSET,
// *MATERIAL with *ELASTIC and *DENSITY, *ORIENTATION, *SOLID SECTION, *INCLUDE); those that would change it in ways
// that are not followed are refused; the others, the analysis above all, are passed over.
#include "libfem/mesh_inp.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

// ---- lines -----------------------------------------------------------------------------------------------------

bool inp_same(const char *a, const char *b) {
    for (; *a && *b; a++, b++)
        if (toupper((unsigned char)*a) != toupper((unsigned char)*b)) return false;
    return *a == *b;
}

static void take_top(inp_reader *r) {
    r->scan = fem_sources_top(&r->sources);
    r->scan->fortran = true;
}

// To the next line that is neither blank nor a comment; false at the end of the last file.
static bool next_line(inp_reader *r) {
    for (;;) {
        if (fem_text_next(r->scan)) {
            if (memcmp(r->scan->at, "**", 2) != 0) return true; // a zero byte stands behind the last
            fem_text_leave_line(r->scan);
        } else if (r->sources.depth == 1) {
            return false;
        } else {
            fem_sources_pop(&r->sources);
            take_top(r);
        }
    }
}

const fem_word *inp_parameter(const inp_keyword *k, const char *name) {
    for (int i = 0; i < k->count; i++)
        if (strcmp(k->parameters[i].name, name) == 0) return &k->parameters[i].value;
    return NULL;
}

fem_status inp_check_parameters(inp_reader *r, const inp_keyword *k, const char *known) {
    for (int i = 0; i < k->count; i++) {
        char wanted[sizeof k->parameters[0].name + 2];
        snprintf(wanted, sizeof wanted, ",%s,", k->parameters[i].name);
        if (!strstr(known, wanted))
            return fem_text_fail(r->scan, "*%s: %s is not supported, expected %.*s", k->name, k->parameters[i].name,
                                 (int)strlen(known) - 2, known + 1);
    }
    return FEM_OK;
}

static fem_word without_quotes(fem_word word) {
    bool quoted = word.length > 2 && word.at[0] == '"' && word.at[word.length - 1] == '"';
    return quoted ? (fem_word){word.at + 1, word.length - 2} : word;
}

fem_status inp_follow_input(inp_reader *r, const inp_keyword *k) {
    const fem_word *input = inp_parameter(k, "INPUT");
    if (!input) return FEM_OK;
    fem_status status = fem_sources_include(&r->sources, without_quotes(*input), 0);
    if (status == FEM_OK) take_top(r);
    return status;
}

fem_status inp_name(inp_reader *r, const inp_keyword *k, const char *name, char text[INP_NAME]) {
    const fem_word *value = inp_parameter(k, name);
    if (!value || value->length == 0) return fem_text_fail(r->scan, "*%s needs %s=", k->name, name);
    fem_word inner = without_quotes(*value);
    if (inner.length >= INP_NAME || memchr(inner.at, 0, inner.length))
        return fem_text_fail(r->scan, "*%s: %s= has more than %d letters", k->name, name, INP_NAME - 1);
    memset(text, 0, INP_NAME); // nothing remains behind the name
    memcpy(text, inner.at, inner.length);
    return FEM_OK;
}

// A piece of a keyword line between commas, without blanks around it.
static fem_word take_piece(fem_text *scan) {
    const char *at = scan->at, *stop;
    bool        quoted = false;
    for (; at < scan->end && *at != '\n' && (quoted || *at != ','); at++) quoted ^= *at == '"';
    stop = at;
    while (scan->at < stop && isspace((unsigned char)*scan->at)) scan->at++;
    fem_word piece = {scan->at, (size_t)(stop - scan->at)};
    while (piece.length > 0 && isspace((unsigned char)piece.at[piece.length - 1])) piece.length--;
    scan->at = stop;
    return piece;
}

// In capitals, runs of blanks as one; false when it is too long.
static bool capitals(fem_word word, char *text, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < word.length; i++) {
        unsigned char c = (unsigned char)word.at[i];
        if (c == 0 || used + 1 >= size) return false;
        if (isspace(c) && used > 0 && text[used - 1] == ' ') continue;
        text[used++] = isspace(c) ? ' ' : (char)toupper(c);
    }
    text[used] = 0;
    return used > 0;
}

static fem_status read_parameter(inp_reader *r, inp_keyword *k, fem_word piece) {
    const char *equals = memchr(piece.at, '=', piece.length);
    fem_word    name = {piece.at, equals ? (size_t)(equals - piece.at) : piece.length}, value = {piece.at, 0};
    char        quote[FEM_QUOTE];
    if (equals) value = (fem_word){equals + 1, piece.length - name.length - 1};
    while (value.length > 0 && isspace((unsigned char)*value.at)) value.at++, value.length--;
    while (name.length > 0 && isspace((unsigned char)name.at[name.length - 1])) name.length--;
    if (k->count == INP_PARAMETERS) return fem_text_fail(r->scan, "*%s has more than %d parameters", k->name, k->count);
    if (name.length == 0 || !isalpha((unsigned char)*name.at) ||
        !capitals(name, k->parameters[k->count].name, sizeof k->parameters[0].name))
        return fem_text_fail(r->scan, "*%s: expected a parameter, found %s", k->name,
                             fem_quote(quote, piece.at, piece.length));
    k->parameters[k->count++].value = value;
    return FEM_OK;
}

// A comma at the end of the line goes on with the next.
static fem_status read_keyword(inp_reader *r, inp_keyword *k) {
    fem_status status = FEM_OK;
    fem_text  *scan = r->scan;
    char       quote[FEM_QUOTE];
    k->count = 0;
    scan->at++; // the star
    fem_word name = take_piece(scan);
    if (!capitals(name, k->name, sizeof k->name))
        return fem_text_fail(scan, "expected a keyword, found %s", fem_quote(quote, name.at, name.length));
    while (scan->at < scan->end && *scan->at == ',') {
        scan->at++;
        fem_word piece = take_piece(scan);
        if (piece.length == 0 && scan->at < scan->end && *scan->at == '\n') {
            fem_text_leave_line(scan);
            piece = take_piece(scan);
        }
        if (piece.length > 0) FEM_TRY(read_parameter(r, k, piece));
    }
done:
    return status;
}

fem_status inp_next_data(inp_reader *r, bool *more) {
    for (;;) {
        *more = next_line(r);
        if (!*more || *r->scan->at != '*') return FEM_OK;
        fem_text    before = *r->scan;
        inp_keyword k;
        fem_status  status = read_keyword(r, &k);
        if (status != FEM_OK) return status;
        if (strcmp(k.name, "INCLUDE") != 0) {
            *r->scan = before;
            *more = false;
            return FEM_OK;
        }
        if (!inp_parameter(&k, "INPUT")) return fem_text_fail(r->scan, "*INCLUDE needs the name of a file");
        status = inp_follow_input(r, &k);
        if (status != FEM_OK) return status;
    }
}

// ---- keywords --------------------------------------------------------------------------------------------------

static fem_status skip_data(inp_reader *r, const char *refused) {
    fem_status status = FEM_OK;
    bool       more;
    for (;;) {
        FEM_TRY(inp_next_data(r, &more));
        if (!more) goto done;
        if (refused) {
            status = fem_text_fail(r->scan, "%s", refused);
            goto done;
        }
        fem_text_leave_line(r->scan);
    }
done:
    return status;
}

static void note_passed_over(inp_reader *r, const char *name) {
    char   entry[INP_NAME + 4];
    size_t used = strlen(r->passed_over);
    snprintf(entry, sizeof entry, "*%s, ", name);
    if (strstr(r->passed_over, entry) || used + strlen(entry) >= sizeof r->passed_over - 4) return;
    memcpy(r->passed_over + used, entry, strlen(entry) + 1);
}

static fem_status read_flat(inp_reader *r, const inp_keyword *k) {
    bool part = strcmp(k->name, "PART") == 0, instance = strcmp(k->name, "INSTANCE") == 0;
    if ((part || instance) && inp_parameter(k, "NAME")) {
        fem_status status = inp_name(r, k, "NAME", part ? r->part : r->instance);
        if (status != FEM_OK) return status;
    }
    if (strcmp(k->name, "ASSEMBLY") == 0) r->assembly = true;
    if (strcmp(k->name, "END ASSEMBLY") == 0) r->assembly = false;
    r->parts += part;
    r->instances += instance;
    if (r->parts > 1 || r->instances > 1)
        return fem_text_fail(r->scan, "more than one *%s is not supported: write the deck flat", k->name);
    return skip_data(r, instance ? "an *INSTANCE that is moved is not supported: write the deck flat" : NULL);
}

static fem_status dispatch(inp_reader *r, const inp_keyword *k) {
    static const char *const refused[] = {
        "NGEN", "NFILL", "NCOPY", "NMAP", "ELGEN", "ELCOPY", "SYSTEM", "SUBMODEL", "SYMMETRIC MODEL GENERATION"};
    static const char *const flat[] = {"PART", "END PART", "ASSEMBLY", "END ASSEMBLY", "INSTANCE", "END INSTANCE"};
    const char              *name = k->name;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strcmp(name, refused[i]) == 0)
            return fem_text_fail(r->scan, "*%s is not supported: write the nodes and elements that it makes", name);
    for (size_t i = 0; i < sizeof flat / sizeof *flat; i++)
        if (strcmp(name, flat[i]) == 0) return read_flat(r, k);
    if (strcmp(name, "NODE") == 0) return inp_read_nodes(r, k);
    if (strcmp(name, "ELEMENT") == 0) return inp_read_elements(r, k);
    if (strcmp(name, "NSET") == 0) return inp_read_set(r, k, false);
    if (strcmp(name, "ELSET") == 0) return inp_read_set(r, k, true);
    if (strcmp(name, "MATERIAL") == 0) return inp_read_material(r, k);
    if (strcmp(name, "ELASTIC") == 0) return inp_read_elastic(r, k);
    if (strcmp(name, "DENSITY") == 0) return inp_read_density(r);
    if (strcmp(name, "ORIENTATION") == 0) return inp_read_orientation(r, k);
    if (strcmp(name, "SOLID SECTION") == 0) return inp_read_section(r, k);
    if (strcmp(name, "HEADING") != 0) note_passed_over(r, name);
    return skip_data(r, NULL);
}

static fem_status read_deck(inp_reader *r) {
    fem_status  status = FEM_OK;
    inp_keyword k;
    bool        more;
    for (;;) {
        FEM_TRY(inp_next_data(r, &more)); // follows includes
        if (more) {
            status = fem_text_expected(r->scan, "a keyword such as *NODE");
            goto done;
        }
        if (!next_line(r)) goto done;
        FEM_TRY(read_keyword(r, &k));
        FEM_TRY(dispatch(r, &k));
    }
done:
    return status;
}

static void destroy_reader(inp_reader *r) {
    for (int i = 0; i < r->set_count; i++) fem_free(r->sets[i].ranges);
    fem_free(r->sets);
    fem_free(r->faces);
    fem_numbers_destroy(&r->face_numbers);
    fem_free(r->materials);
    fem_free(r->orientations);
    fem_free(r->sections);
    fem_sources_close(&r->sources);
    fem_draft_destroy(&r->draft);
}

// Reads the deck again to say in which line the second node or element of this number stands.
static fem_status refuse_twice(const char *path, long long number, bool of_elements) {
    inp_reader r = {.draft = {.path = path}, .current = -1, .wanted = number, .wanted_element = of_elements};
    fem_status status = fem_sources_open(&r.sources, path, 0);
    if (status == FEM_OK) {
        take_top(&r);
        status = read_deck(&r);
    }
    destroy_reader(&r);
    if (status != FEM_OK) return status;
    return fem_fail(FEM_BAD_INPUT, "%s: two %s have the number %lld", path, of_elements ? "elements" : "nodes", number);
}

fem_status fem_mesh_read_inp(fem_mesh *mesh, const char *path, fem_remarks *remarks) {
    fem_status status = FEM_OK;
    inp_reader r = {.draft = {.path = path, .remarks = remarks}, .current = -1, .wanted = -1};
    long long  twice = -1;
    bool       of_elements = false;
    FEM_TRY(fem_sources_open(&r.sources, path, 0));
    take_top(&r);
    FEM_TRY(read_deck(&r));
    fem_sources_close(&r.sources); // the text has been read
    if (r.passed_over[0]) {
        r.passed_over[strlen(r.passed_over) - 2] = 0; // the last comma
        FEM_TRY(fem_remark(remarks, "passed over: %s", r.passed_over));
    }
    if (r.variants[0])
        FEM_TRY(fem_remark(remarks, "elements of type %s are read as if without the letters", r.variants));
    if (r.flat_types[0])
        FEM_TRY(fem_remark(remarks, "elements of type %s have no volume: of them only the sets are read, as vertices",
                           r.flat_types));
    FEM_TRY(inp_resolve(&r, &twice, &of_elements));
    if (twice >= 0) {
        status = refuse_twice(path, twice, of_elements);
        goto done;
    }
    FEM_TRY(inp_make_regions(&r));
    FEM_TRY(fem_draft_finish(&r.draft, mesh));
done:
    destroy_reader(&r);
    return status;
}
