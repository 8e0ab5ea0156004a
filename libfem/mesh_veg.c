// Vega's .veg: the reader. docs/formats.md lists what is read and what is refused.
// The file is a sequence of keyword lines (*VERTICES, *ELEMENTS, *MATERIAL, *SET, *REGION, *INCLUDE), each followed by
// its data. We differ from VegaFEM's own reader in that nothing is skipped in silence: numbers must be whole and
// consecutive, names defined once and before they are used, and every element must be in a region as soon as there are
// regions.
#include "libfem/mesh_formats.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST_NAMES = 10000,      // sets, regions and materials
    MOST_SET_ITEMS = 1 << 28 // in all: ranges multiply
};

typedef struct veg_reader {
    fem_sources sources;
    fem_text   *scan;          // of the file that is being read
    bool        in_vertex_set; // lines that begin with #: are data
    fem_mesh    mesh;
    bool        has_vertices, has_elements;
    int         element_base;
    size_t      set_items;
    size_t      material_capacity, region_capacity, region_set_capacity;
    int        *region_set; // per region: its element set, -1 for allElements
} veg_reader;

// ---- lines -----------------------------------------------------------------------------------------------------

static bool begins(const fem_text *scan, const char *text) {
    size_t length = strlen(text);
    return (size_t)(scan->end - scan->at) >= length && memcmp(scan->at, text, length) == 0;
}

// To the next word, over blank lines and comments; our own vertex sets hide from Vega in comments.
static bool advance(fem_text *scan, bool in_vertex_set) {
    while (fem_text_at_line_end(scan)) {
        if (begins(scan, "#*VERTEXSET")) {
            scan->at += 1;
            return true;
        }
        if (in_vertex_set && begins(scan, "#:")) {
            scan->at += 2;
            continue;
        }
        if (scan->at == scan->end) return false;
        fem_text_leave_line(scan);
    }
    return true;
}

// Goes to the next line with data, through *INCLUDEs; *more is false at the end of the main file.
static fem_status next_line(veg_reader *r, bool *more) {
    for (;;) {
        if (advance(r->scan, r->in_vertex_set)) {
            if (!fem_word_is(fem_text_peek(r->scan), "*INCLUDE")) break;
            fem_text_take(r->scan);
            fem_status status = fem_sources_include(&r->sources, fem_text_rest(r->scan), '#');
            if (status != FEM_OK) return status;
        } else if (r->sources.depth == 1) {
            *more = false;
            return FEM_OK;
        } else {
            fem_sources_pop(&r->sources);
        }
        r->scan = fem_sources_top(&r->sources);
    }
    *more = true;
    return FEM_OK;
}

// Like next_line; false also at a keyword.
static fem_status next_data(veg_reader *r, bool *more) {
    fem_status status = next_line(r, more);
    if (status == FEM_OK && *more && *r->scan->at == '*') *more = false;
    return status;
}

// Name in the rest of a line, without any blanks, as Vega takes it.
static fem_status take_name(const fem_text *scan, fem_word word, char *name, size_t size) {
    size_t length = 0;
    for (size_t i = 0; i < word.length; i++) {
        char c = word.at[i];
        if (c == ' ' || c == '\t' || c == '\r' || c == ',') continue;
        if (c == 0) return fem_text_fail(scan, "a name has a zero byte");
        if (length + 1 == size) return fem_text_fail(scan, "a name has more than %zu letters", size - 1);
        name[length++] = c;
    }
    name[length] = 0;
    if (length == 0) return fem_text_fail(scan, "expected a name, found the end of the line");
    return FEM_OK;
}

// ---- vertices and elements -------------------------------------------------------------------------------------

// "N WIDTH ...": how many lines follow. WIDTH may be left out; the numbers behind it count columns to skip.
static fem_status read_header(veg_reader *r, const char *keyword, int width, int most, int *count, int *extra) {
    fem_status status = FEM_OK;
    bool       more;
    long long  value, columns = 0;
    FEM_TRY(next_data(r, &more));
    if (!more) {
        status = fem_text_fail(r->scan, "%s: expected the number of lines that follow", keyword);
        goto done;
    }
    FEM_TRY(fem_text_int(r->scan, "the number of lines", 1, most, &value));
    *count = (int)value;
    if (!fem_text_at_line_end(r->scan)) {
        FEM_TRY(fem_text_int(r->scan, "the second number of the header", 0, INT_MAX, &value));
        if (value != width) {
            status =
                fem_text_fail(r->scan, "%s: %lld numbers a line are not supported, expected %d", keyword, value, width);
            goto done;
        }
    }
    while (!fem_text_at_line_end(r->scan)) {
        FEM_TRY(fem_text_int(r->scan, "a number of further columns", 0, 100, &value));
        columns += value;
    }
    *extra = (int)columns;
done:
    return status;
}

// The number that a line begins with: the first decides between 0 and 1, the others count on.
static fem_status read_number(veg_reader *r, const char *what, int i, int *base) {
    long long  number;
    fem_status status = fem_text_int(r->scan, what, 0, INT_MAX, &number);
    if (status != FEM_OK) return status;
    if (i == 0 && number > 1) return fem_text_fail(r->scan, "%s is %lld, expected 0 or 1 for the first", what, number);
    if (i == 0) *base = (int)number;
    if (number != (long long)i + *base)
        return fem_text_fail(r->scan, "%s is %lld, expected %lld: they must count on", what, number,
                             (long long)i + *base);
    return FEM_OK;
}

static fem_status skip_columns(fem_text *scan, int count) {
    double ignored;
    for (int i = 0; i < count; i++) {
        fem_status status = fem_text_double(scan, "a further column", &ignored);
        if (status != FEM_OK) return status;
    }
    return fem_text_end_line(scan);
}

// Lines that the rest of this file can hold at most, so that a false count does not take memory.
static size_t plausible(const fem_text *scan, int count, size_t shortest_line) {
    size_t room = (size_t)(scan->end - scan->at) / shortest_line + 1;
    return room < (size_t)count ? room : (size_t)count;
}

static fem_status read_vertices(veg_reader *r) {
    fem_status status = FEM_OK;
    size_t     capacity = 0;
    int        count = 0, extra = 0;
    bool       more;
    if (r->has_vertices) return fem_text_fail(r->scan, "*VERTICES comes twice");
    r->has_vertices = true;
    FEM_TRY(fem_text_end_line(r->scan));
    FEM_TRY(read_header(r, "*VERTICES", 3, FEM_MOST_VERTICES, &count, &extra));
    FEM_TRY(fem_grow((void **)&r->mesh.vertices, &capacity, 3 * plausible(r->scan, count, 8), sizeof(double)));
    for (int i = 0; i < count; i++) {
        FEM_TRY(next_data(r, &more));
        if (!more) {
            status = fem_text_fail(r->scan, "*VERTICES announces %d vertices, found %d", count, i);
            goto done;
        }
        FEM_TRY(fem_grow((void **)&r->mesh.vertices, &capacity, 3 * ((size_t)i + 1), sizeof(double)));
        FEM_TRY(read_number(r, "the vertex number", i, &r->mesh.file_base));
        for (int k = 0; k < 3; k++)
            FEM_TRY(fem_text_double(r->scan, "a coordinate", &r->mesh.vertices[3 * (size_t)i + (size_t)k]));
        FEM_TRY(skip_columns(r->scan, extra));
    }
    r->mesh.vertex_count = count;
done:
    return status;
}

static fem_status read_element_type(veg_reader *r) {
    bool       more;
    char       quote[FEM_QUOTE];
    fem_status status = next_data(r, &more);
    if (status != FEM_OK) return status;
    if (!more) return fem_text_fail(r->scan, "*ELEMENTS: expected TET or CUBIC");
    fem_word type = fem_text_take(r->scan);
    if (fem_word_is(type, "TET") || fem_word_is(type, "TETS"))
        r->mesh.type = FEM_T4;
    else if (fem_word_is(type, "CUBIC") || fem_word_is(type, "CUBES"))
        r->mesh.type = FEM_H8;
    else
        return fem_text_fail(r->scan, "elements of type %s are not supported, expected TET or CUBIC",
                             fem_quote(quote, type.at, type.length));
    return fem_text_end_line(r->scan);
}

static fem_status read_elements(veg_reader *r) {
    fem_status status = FEM_OK;
    size_t     capacity = 0;
    int        count = 0, extra = 0;
    bool       more;
    if (r->has_elements) return fem_text_fail(r->scan, "*ELEMENTS comes twice");
    if (!r->has_vertices) return fem_text_fail(r->scan, "*ELEMENTS must come after *VERTICES");
    r->has_elements = true;
    FEM_TRY(fem_text_end_line(r->scan));
    FEM_TRY(read_element_type(r));
    size_t width = (size_t)fem_element_vertices(r->mesh.type);
    int    low = r->mesh.file_base, high = low + r->mesh.vertex_count - 1;
    FEM_TRY(read_header(r, "*ELEMENTS", (int)width, FEM_MOST_ELEMENTS, &count, &extra));
    FEM_TRY(
        fem_grow((void **)&r->mesh.elements, &capacity, width * plausible(r->scan, count, 2 * width + 2), sizeof(int)));
    for (int i = 0; i < count; i++) {
        FEM_TRY(next_data(r, &more));
        if (!more) {
            status = fem_text_fail(r->scan, "*ELEMENTS announces %d elements, found %d", count, i);
            goto done;
        }
        FEM_TRY(fem_grow((void **)&r->mesh.elements, &capacity, width * ((size_t)i + 1), sizeof(int)));
        FEM_TRY(read_number(r, "the element number", i, &r->element_base));
        for (size_t a = 0; a < width; a++) {
            long long vertex;
            FEM_TRY(fem_text_int(r->scan, "a vertex of the element", low, high, &vertex));
            r->mesh.elements[width * (size_t)i + a] = (int)vertex - low;
        }
        FEM_TRY(skip_columns(r->scan, extra));
    }
    r->mesh.region = fem_alloc((size_t)count, sizeof(int));
    if (!r->mesh.region) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory for %d elements", r->scan->path, count);
        goto done;
    }
    for (int e = 0; e < count; e++) r->mesh.region[e] = -1;
    r->mesh.element_count = count;
    r->mesh.element_base = r->element_base;
done:
    return status;
}

// ---- materials -------------------------------------------------------------------------------------------------

static int find_material(const fem_mesh *mesh, const char *name) {
    for (int i = 0; i < mesh->material_count; i++)
        if (strcmp(mesh->materials[i].name, name) == 0) return i;
    return -1;
}

static fem_status add_material(veg_reader *r, const fem_material *material) {
    fem_mesh  *m = &r->mesh;
    fem_status status =
        fem_grow((void **)&m->materials, &r->material_capacity, (size_t)m->material_count + 1, sizeof *m->materials);
    if (status == FEM_OK) m->materials[m->material_count++] = *material;
    return status;
}

static fem_status read_material(veg_reader *r) {
    fem_status   status = FEM_OK;
    fem_material material = fem_material_default();
    bool         more;
    memset(material.name, 0, sizeof material.name); // nothing remains of the default's name
    FEM_TRY(take_name(r->scan, fem_text_rest(r->scan), material.name, sizeof material.name));
    if (find_material(&r->mesh, material.name) >= 0) {
        status = fem_text_fail(r->scan, "material \"%s\" is defined twice", material.name);
        goto done;
    }
    if (r->mesh.material_count == MOST_NAMES) {
        status = fem_text_fail(r->scan, "more than %d materials", MOST_NAMES);
        goto done;
    }
    FEM_TRY(next_data(r, &more));
    if (!more) {
        status = fem_text_fail(r->scan, "material \"%s\": expected its parameters", material.name);
        goto done;
    }
    FEM_TRY(fem_veg_read_material(r->scan, &material));
    FEM_TRY(add_material(r, &material));
done:
    return status;
}

// ---- sets and regions ------------------------------------------------------------------------------------------

// One entry of a set: a number, or FIRST-LAST.
static fem_status read_range(fem_text *scan, const char *what, int low, int high, long long range[2]) {
    fem_word    word = fem_text_peek(scan);
    const char *dash = word.length > 1 ? memchr(word.at + 1, '-', word.length - 1) : NULL;
    char        quote[FEM_QUOTE];
    size_t      head = dash ? (size_t)(dash - word.at) : word.length;
    bool        good = fem_parse_int(word.at, head, &range[0]);
    range[1] = range[0];
    if (good && dash) good = fem_parse_int(dash + 1, word.length - head - 1, &range[1]) && range[0] <= range[1];
    if (!good)
        return fem_text_fail(scan, "expected %s numbers or ranges, found %s", what,
                             fem_quote(quote, word.at, word.length));
    if (range[0] < low || range[1] > high)
        return fem_text_fail(scan, "%s %s is outside %d..%d", what, fem_quote(quote, word.at, word.length), low, high);
    scan->at += word.length;
    return FEM_OK;
}

static fem_status read_set(veg_reader *r, bool of_vertices) {
    fem_status status = FEM_OK;
    fem_mesh  *m = &r->mesh;
    int       *items = NULL;
    size_t     capacity = 0, count = 0;
    bool       more;
    char       name[256];
    int base = of_vertices ? m->file_base : r->element_base, total = of_vertices ? m->vertex_count : m->element_count;
    FEM_TRY(take_name(r->scan, fem_text_rest(r->scan), name, sizeof name));
    if (!r->has_elements) {
        status = fem_text_fail(r->scan, "set \"%s\" must come after *ELEMENTS", name);
        goto done;
    }
    if (of_vertices ? fem_mesh_vertex_set(m, name) != NULL
                    : fem_mesh_element_set(m, name) != NULL || strcmp(name, "allElements") == 0) {
        status = fem_text_fail(r->scan, "set \"%s\" is defined twice (allElements is always there)", name);
        goto done;
    }
    if (m->element_set_count + m->vertex_set_count >= MOST_NAMES) {
        status = fem_text_fail(r->scan, "more than %d sets", MOST_NAMES);
        goto done;
    }
    r->in_vertex_set = of_vertices;
    for (;;) {
        FEM_TRY(next_data(r, &more));
        if (!more) break;
        while (!fem_text_at_line_end(r->scan)) {
            long long range[2] = {0};
            FEM_TRY(read_range(r->scan, of_vertices ? "vertex" : "element", base, base + total - 1, range));
            r->set_items += (size_t)(range[1] - range[0] + 1);
            if (r->set_items > MOST_SET_ITEMS) {
                status = fem_text_fail(r->scan, "the sets have more than %d entries in all", MOST_SET_ITEMS);
                goto done;
            }
            FEM_TRY(fem_grow((void **)&items, &capacity, count + (size_t)(range[1] - range[0] + 1), sizeof *items));
            for (long long i = range[0]; i <= range[1]; i++) items[count++] = (int)(i - base);
        }
    }
    FEM_TRY(of_vertices ? fem_mesh_add_vertex_set(m, name, (int)count, items)
                        : fem_mesh_add_element_set(m, name, (int)count, items));
done:
    r->in_vertex_set = false;
    fem_free(items);
    return status;
}

// Index of the region of a set, made when it is new: a later *REGION on the same set replaces the earlier.
static fem_status region_of_set(veg_reader *r, int set, int *index) {
    fem_mesh  *m = &r->mesh;
    fem_status status = FEM_OK;
    for (int i = 0; i < m->region_count; i++)
        if (r->region_set[i] == set) {
            *index = i;
            return FEM_OK;
        }
    if (m->region_count == MOST_NAMES) return fem_text_fail(r->scan, "more than %d regions", MOST_NAMES);
    size_t needed = (size_t)m->region_count + 1;
    FEM_TRY(fem_grow((void **)&m->regions, &r->region_capacity, needed, sizeof *m->regions));
    FEM_TRY(fem_grow((void **)&r->region_set, &r->region_set_capacity, needed, sizeof *r->region_set));
    char *name = fem_copy_string(set >= 0 ? m->element_sets[set].name : "allElements");
    if (!name) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory for a region", r->scan->path);
        goto done;
    }
    r->region_set[m->region_count] = set;
    m->regions[m->region_count].name = name;
    *index = m->region_count++;
done:
    return status;
}

// "SET, MATERIAL": later regions override earlier ones.
static fem_status read_region(veg_reader *r) {
    fem_status status = FEM_OK;
    fem_mesh  *m = &r->mesh;
    bool       more;
    char       set_name[256], material_name[256];
    int        set = -1, index = 0;
    FEM_TRY(fem_text_end_line(r->scan));
    FEM_TRY(next_data(r, &more));
    fem_word    rest = more ? fem_text_rest(r->scan) : (fem_word){r->scan->at, 0};
    const char *comma = memchr(rest.at, ',', rest.length);
    if (!comma) {
        status = fem_text_fail(r->scan, "*REGION: expected SET, MATERIAL");
        goto done;
    }
    FEM_TRY(take_name(r->scan, (fem_word){rest.at, (size_t)(comma - rest.at)}, set_name, sizeof set_name));
    FEM_TRY(take_name(r->scan, (fem_word){comma, (size_t)(rest.at + rest.length - comma)}, material_name,
                      sizeof material_name));
    int material = find_material(m, material_name);
    if (material < 0) {
        status = fem_text_fail(r->scan, "*REGION: material \"%.60s\" is not defined above", material_name);
        goto done;
    }
    if (strcmp(set_name, "allElements") != 0) {
        const fem_set *found = fem_mesh_element_set(m, set_name);
        if (!found) {
            status = fem_text_fail(r->scan, "*REGION: set \"%.60s\" is not defined above", set_name);
            goto done;
        }
        set = (int)(found - m->element_sets);
    } else if (!r->has_elements) {
        status = fem_text_fail(r->scan, "*REGION must come after *ELEMENTS");
        goto done;
    }
    FEM_TRY(region_of_set(r, set, &index));
    m->regions[index].material = material;
    int count = set >= 0 ? m->element_sets[set].count : m->element_count;
    for (int i = 0; i < count; i++) m->region[set >= 0 ? m->element_sets[set].items[i] : i] = index;
done:
    return status;
}

// ---- the whole file --------------------------------------------------------------------------------------------

static fem_status read_sections(veg_reader *r) {
    fem_status status = FEM_OK;
    bool       more;
    char       quote[FEM_QUOTE];
    for (;;) {
        FEM_TRY(next_line(r, &more));
        if (!more) return FEM_OK;
        if (*r->scan->at != '*') return fem_text_expected(r->scan, "a keyword such as *VERTICES or *SET");
        fem_word word = fem_text_take(r->scan);
        if (fem_word_is(word, "*VERTICES"))
            FEM_TRY(read_vertices(r));
        else if (fem_word_is(word, "*ELEMENTS"))
            FEM_TRY(read_elements(r));
        else if (fem_word_is(word, "*MATERIAL"))
            FEM_TRY(read_material(r));
        else if (fem_word_is(word, "*SET"))
            FEM_TRY(read_set(r, false));
        else if (fem_word_is(word, "*VERTEXSET"))
            FEM_TRY(read_set(r, true));
        else if (fem_word_is(word, "*REGION"))
            FEM_TRY(read_region(r));
        else
            return fem_text_fail(
                r->scan, "unknown keyword %s, expected *VERTICES, *ELEMENTS, *MATERIAL, *SET, *REGION or *INCLUDE",
                fem_quote(quote, word.at, word.length));
    }
done:
    return status;
}

// A file without *REGION is one region of its only material, or of Vega's default.
static fem_status complete_regions(veg_reader *r, const char *path) {
    fem_status status = FEM_OK;
    fem_mesh  *m = &r->mesh;
    int        index = 0;
    if (m->region_count == 0) {
        if (m->material_count > 1)
            return fem_fail(FEM_BAD_INPUT, "%s: has %d materials but no *REGION that says where they are", path,
                            m->material_count);
        fem_material material = fem_material_default();
        snprintf(material.name, sizeof material.name, "default");
        material.young = 1e9;
        material.poisson = 0.45;
        if (m->material_count == 0) FEM_TRY(add_material(r, &material));
        FEM_TRY(region_of_set(r, -1, &index));
        m->regions[index].material = 0;
        memset(m->region, 0, (size_t)m->element_count * sizeof *m->region);
    }
    for (int e = 0; e < m->element_count; e++)
        if (m->region[e] < 0)
            return fem_fail(FEM_BAD_INPUT, "%s: element %d is in no *REGION: put it into a set that has a material",
                            path, e + r->element_base);
    // what Vega calls allElements is our "all", unless a set has that name
    for (int i = 0; i < m->region_count; i++)
        if (r->region_set[i] < 0 && fem_mesh_region_index(m, "all") < 0) strcpy(m->regions[i].name, "all");
done:
    return status;
}

fem_status fem_mesh_read_veg(fem_mesh *mesh, const char *path, fem_remarks *remarks) {
    fem_status status = FEM_OK;
    veg_reader r = {0};
    (void)remarks; // nothing is passed over
    FEM_TRY(fem_sources_open(&r.sources, path, '#'));
    r.scan = fem_sources_top(&r.sources);
    FEM_TRY(read_sections(&r));
    if (!r.has_vertices || !r.has_elements) {
        status = fem_fail(FEM_BAD_INPUT, "%s: has no %s", path, r.has_vertices ? "*ELEMENTS" : "*VERTICES");
        goto done;
    }
    FEM_TRY(complete_regions(&r, path));
    status = fem_mesh_check(&r.mesh);
    if (status != FEM_OK) {
        fem_fail_prefix(status, "%s: ", path);
        goto done;
    }
    fem_mesh_destroy(mesh);
    *mesh = r.mesh;
    r.mesh = (fem_mesh){0};
done:
    fem_sources_close(&r.sources);
    fem_free(r.region_set);
    fem_mesh_destroy(&r.mesh);
    return status;
}
