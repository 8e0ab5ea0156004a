// `limber convert`: a mesh or surface from one file format to another, by the endings of the names.
// What the new format could not hold is found by reading the new file again and comparing.
#include "app/app.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

// Equal but for the last digits: some formats keep other constants, from which ours follow.
static bool same(int count, const double *a, const double *b) {
    for (int i = 0; i < count; i++)
        if (!(fabs(a[i] - b[i]) <= 1e-12 * fmax(fabs(a[i]), fabs(b[i])))) return false;
    return true;
}

static bool same_material(const fem_material *a, const fem_material *b) {
    if (a->kind != b->kind || !same(1, &a->density, &b->density)) return false;
    switch (a->kind) {
    case FEM_ORTHOTROPIC:
        for (int i = 0; i < 9; i++) // entries near zero: to the size of the others, which is one
            if (!(fabs(a->frame[i] - b->frame[i]) <= 1e-12)) return false;
        return same(3, a->young3, b->young3) && same(3, a->poisson3, b->poisson3) && same(3, a->shear3, b->shear3);
    case FEM_MOONEY_RIVLIN:
        return same(1, &a->mu01, &b->mu01) && same(1, &a->mu10, &b->mu10) && same(1, &a->v1, &b->v1);
    case FEM_ARRUDA_BOYCE:
        return same(1, &a->mu, &b->mu) && same(1, &a->chain, &b->chain) && same(1, &a->bulk, &b->bulk);
    default:
        return same(1, &a->young, &b->young) && same(1, &a->poisson, &b->poisson);
    }
}

// What was lost: a remark each on standard error, or the items of a list in the JSON.
typedef struct losses {
    const char *out;  // name of the new file
    app_json   *json; // NULL: remarks
} losses;

__attribute__((format(printf, 2, 3))) static void lost(const losses *l, const char *format, ...) {
    char    text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (l->json)
        app_json_text(l->json, NULL, text);
    else
        app_note("lost: %s; %s does not hold it", text, l->out);
}

static void compare_materials(const losses *l, const fem_mesh *before, const fem_mesh *after) {
    if (!app_mesh_has_material(before)) return;
    int changed = 0;
    for (int e = 0; e < before->element_count && e < after->element_count; e++) {
        const fem_material *a = &before->materials[before->regions[before->region[e]].material];
        const fem_material *b = &after->materials[after->regions[after->region[e]].material];
        changed += !same_material(a, b);
    }
    if (changed > 0) lost(l, "the material of %d elements", changed);
}

// A region is kept when one of its name has the same elements. The only one of a body that nobody named is no division.
static void compare_regions(const losses *l, const fem_mesh *before, const fem_mesh *after) {
    if (before->region_count == 1 && after->region_count == 1 && strcmp(before->regions[0].name, "all") == 0) return;
    for (int i = 0; i < before->region_count; i++) {
        int  kept = fem_mesh_region_index(after, before->regions[i].name);
        bool moved = false;
        for (int e = 0; e < before->element_count && e < after->element_count && kept >= 0; e++)
            moved = moved || (before->region[e] == i) != (after->region[e] == kept);
        if (kept < 0 || moved) lost(l, "region \"%s\"", before->regions[i].name);
    }
}

static void compare_sets(const losses *l, const char *what, int count, const fem_set *sets, const fem_mesh *after,
                         const fem_set *(*find)(const fem_mesh *, const char *)) {
    for (int i = 0; i < count; i++) {
        const fem_set *kept = find(after, sets[i].name);
        size_t         size = (size_t)sets[i].count * sizeof *sets[i].items;
        if (!kept || kept->count != sets[i].count || (size > 0 && memcmp(kept->items, sets[i].items, size) != 0))
            lost(l, "%s set \"%s\" of %d", what, sets[i].name, sets[i].count);
    }
}

static void compare_positions(const losses *l, const fem_mesh *before, const fem_mesh *after) {
    double largest = 0, change = 0;
    for (int i = 0; i < 3 * before->vertex_count && i < 3 * after->vertex_count; i++) {
        largest = fmax(largest, fabs(before->vertices[i]));
        change = fmax(change, fabs(before->vertices[i] - after->vertices[i]));
    }
    if (change > 0) lost(l, "the last digits of positions, up to %.2g of the largest", change / largest);
}

static void compare(const losses *l, const fem_mesh *before, const fem_mesh *after) {
    if (fem_path_is_surface(l->out)) {
        lost(l, "everything inside: elements, materials, regions and sets");
        return;
    }
    compare_positions(l, before, after);
    compare_regions(l, before, after);
    compare_materials(l, before, after);
    compare_sets(l, "vertex", before->vertex_set_count, before->vertex_sets, after, fem_mesh_vertex_set);
    compare_sets(l, "element", before->element_set_count, before->element_sets, after, fem_mesh_element_set);
}

// What separates words in .veg and .inp becomes _ in names; equal names stay equal. Counts those that change.
typedef struct plain_names {
    int  changed;
    char example[64]; // the first of them, as it was
} plain_names;

static void make_plain(plain_names *p, char *name) {
    char before[sizeof p->example];
    bool changed = false;
    snprintf(before, sizeof before, "%s", name);
    for (char *c = name; *c; c++)
        if ((unsigned char)*c <= ' ' || strchr(",=\"#", *c) || (c == name && *c == '*')) *c = '_', changed = true;
    if (changed && p->changed++ == 0) memcpy(p->example, before, sizeof before);
}

static plain_names make_names_plain(fem_mesh *mesh) {
    plain_names p = {0};
    for (int i = 0; i < mesh->material_count; i++) make_plain(&p, mesh->materials[i].name);
    for (int i = 0; i < mesh->region_count; i++) make_plain(&p, mesh->regions[i].name);
    for (int i = 0; i < mesh->vertex_set_count; i++) make_plain(&p, mesh->vertex_sets[i].name);
    for (int i = 0; i < mesh->element_set_count; i++) make_plain(&p, mesh->element_sets[i].name);
    return p;
}

static bool is_kind(const char *path, const char *ending) { // also with .gz behind it
    size_t length = strlen(path), tail = strlen(ending);
    if (length > 3 && strcasecmp(path + length - 3, ".gz") == 0) length -= 3;
    return length > tail && strncasecmp(path + length - tail, ending, tail) == 0;
}

static void begin_json(app_json *json, const char *out, int vertices, const char *cells, int count,
                       const fem_remarks *remarks) {
    app_json_begin(json, stdout);
    app_json_object(json, NULL);
    app_json_text(json, "file", out);
    app_json_integer(json, "vertices", vertices);
    app_json_integer(json, cells, count);
    app_json_remarks(json, remarks);
    app_json_array(json, "lost");
}

typedef struct conversion {
    const char *in, *out;
    bool        as_json, as_text; // what is printed, what is written
    bool        writing;          // a failure now is one of the output
    int         exit_code;
} conversion;

static fem_status convert_mesh(conversion *c) {
    fem_status  status = FEM_OK;
    fem_mesh    before = {0}, after = {0};
    fem_remarks remarks = {0};
    app_json    json;
    const char *out = c->out;
    losses      l = {.out = out, .json = c->as_json ? &json : NULL};
    plain_names names = {0};
    FEM_TRY(fem_mesh_read_remarks(&before, c->in, &remarks));
    if (is_kind(out, ".veg") || is_kind(out, ".inp")) names = make_names_plain(&before);
    c->writing = true;
    FEM_TRY(c->as_text ? fem_mesh_write_text(&before, out) : fem_mesh_write(&before, out));
    if (!fem_path_is_surface(out)) FEM_TRY(fem_mesh_read(&after, out));
    if (c->as_json) {
        begin_json(&json, out, before.vertex_count, "elements", before.element_count, &remarks);
    } else {
        printf("%s: %d vertices, %d %s elements\n", out, before.vertex_count, before.element_count,
               before.type == FEM_T4 ? "T4" : "H8");
        app_note_remarks(&remarks);
    }
    if (names.changed > 0)
        lost(&l, "blanks and separators in %d names, such as \"%s\", which have _ there", names.changed, names.example);
    compare(&l, &before, &after);
    if (c->as_json) c->exit_code = app_json_finish(&json);
done:
    fem_remarks_destroy(&remarks);
    fem_mesh_destroy(&before);
    fem_mesh_destroy(&after);
    return status;
}

// Appends a word to a list, "a, b, c", where it is not there yet and has room.
static void list_word(char *list, size_t room, const char *word, size_t length) {
    for (const char *at = list; *at; at += strspn(at, ", ")) {
        size_t other = strcspn(at, ",");
        if (other == length && memcmp(at, word, length) == 0) return;
        at += other;
    }
    size_t used = strlen(list);
    if (used + length + 3 < room) snprintf(list + used, room - used, "%s%.*s", used ? ", " : "", (int)length, word);
}

// What a surface file says beside shape, texture coordinates and materials: lines of an .obj, properties of a .ply. The
// normals of an .stl follow from its corners.
static void compare_surface(const losses *l, const char *in, const char *text) {
    static const char *const kept[] = {"v",       "vt", "f", "fo", "usemtl",         "ply",          "format",
                                       "element", "x",  "y", "z",  "vertex_indices", "vertex_index", "comment",
                                       "obj_info"};
    char                     words[300] = "";
    bool                     ply = is_kind(in, ".ply"), coloured = false;
    if (!ply && !is_kind(in, ".obj")) return;
    for (const char *line = text; *line; line += strcspn(line, "\r\n"), line += strspn(line, "\r\n")) {
        const char *word = line + strspn(line, " \t");
        size_t      length = strcspn(word, " \t\r\n");
        int         count = 0; // of words behind the first
        for (const char *next = word + length; count < 9; count++) {
            next += strspn(next, " \t");
            if (strchr("\r\n#", *next)) break;
            next += strcspn(next, " \t\r\n");
        }
        if (ply && length == 10 && memcmp(word, "end_header", 10) == 0) break;
        if (!ply) coloured = coloured || (length == 1 && *word == 'v' && count > 3);
        if (ply && length == 8 && memcmp(word, "property", 8) == 0) { // its name is the last word
            size_t end = strcspn(line, "\r\n");
            while (end > 0 && strchr(" \t", line[end - 1])) end--;
            for (word = line + end; word > line && !strchr(" \t", word[-1]);) word--;
            length = (size_t)(line + end - word);
        }
        bool known = !isalpha((unsigned char)*word);
        for (size_t i = 0; i < sizeof kept / sizeof *kept && !known; i++)
            known = strlen(kept[i]) == length && memcmp(kept[i], word, length) == 0;
        if (!known) list_word(words, sizeof words, word, length);
    }
    if (coloured) list_word(words, sizeof words, "colours or weights", 18);
    if (words[0]) lost(l, "%s", words);
}

static fem_status convert_surface(conversion *c) {
    fem_status  status = FEM_OK;
    fem_surface surface = {0};
    fem_remarks remarks = {0};
    app_json    json;
    char       *text = NULL;
    size_t      size;
    struct stat about;
    const char *in = c->in, *out = c->out;
    losses      l = {.out = out, .json = c->as_json ? &json : NULL};
    if (!fem_path_is_surface(out))
        return fem_fail(
            FEM_BAD_INPUT,
            "%s is a surface and %s holds bodies: `limber mesh` fills it; as a surface it converts to .obj only", in,
            out);
    FEM_TRY(fem_surface_read_remarks(&surface, in, &remarks));
    if (stat(in, &about) == 0 && S_ISREG(about.st_mode))
        FEM_TRY(fem_file_read(&text, &size, in)); // a pipe is empty now
    c->writing = true;
    FEM_TRY(fem_surface_write(&surface, out));
    if (c->as_json)
        begin_json(&json, out, surface.vertex_count, "triangles", surface.triangle_count, &remarks);
    else
        printf("%s: %d vertices, %d triangles\n", out, surface.vertex_count, surface.triangle_count);
    if (!c->as_json) app_note_remarks(&remarks);
    if (text) compare_surface(&l, in, text);
    if (c->as_json) c->exit_code = app_json_finish(&json);
done:
    fem_free(text);
    fem_remarks_destroy(&remarks);
    fem_surface_destroy(&surface);
    return status;
}

static int run(int argc, char **argv) {
    conversion       c = {.exit_code = APP_DONE};
    const app_option options[] = {
        {"--text", NULL, APP_FLAG, &c.as_text, 0, 0, NULL, "numbers as text where the format has both (.msh, .vtk)"},
        {"--json", NULL, APP_FLAG, &c.as_json, 0, 0, NULL, "one JSON object on standard output"},
    };
    app_words words;
    int       exit_code;
    if (!app_parse(&command_convert, argc, argv, sizeof options / sizeof *options, options, 2, 2, &words, &exit_code))
        return exit_code;
    c.in = words.items[0], c.out = words.items[1];
    fem_status status = fem_path_is_surface(c.in) ? convert_surface(&c) : convert_mesh(&c);
    if (status == FEM_OK) return c.exit_code;
    return c.writing ? app_fail_output(status) : app_fail(status);
}

const app_command command_convert = {
    "convert",
    "A mesh from one file format to another, by the ending of the name",
    "IN OUT [--text] [--json]",
    "limber convert turtle.veg turtle.vtu",
    run,
    "IN is a mesh: .veg .vegb .node .ele .vtu .vtk .msh .mesh .meshb .inp; or a surface: .obj .stl .ply.\n"
    "OUT is a mesh: .veg .node .ele .vtu .vtk .msh .mesh .inp; or .obj, the surface. .gz behind a name packs.\n"
    "What the new file cannot hold is said.\n"};
