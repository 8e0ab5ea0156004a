// What other formats have no place for: names of regions, materials, and sets where there are none, as lines of text
// that a format carries along. mesh_formats.h gives the grammar.
#include "libfem/mesh_draft.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MATERIAL_NUMBERS = 28 };
// Where the numbers of a material are, in the order of the notes.
static void material_numbers(fem_material *m, double *numbers[MATERIAL_NUMBERS]) {
    double **at = numbers;
    *at++ = &m->density, *at++ = &m->young, *at++ = &m->poisson;
    for (int i = 0; i < 3; i++) *at++ = &m->young3[i];
    for (int i = 0; i < 3; i++) *at++ = &m->poisson3[i];
    for (int i = 0; i < 3; i++) *at++ = &m->shear3[i];
    for (int i = 0; i < 9; i++) *at++ = &m->frame[i];
    *at++ = &m->mu01, *at++ = &m->mu10, *at++ = &m->v1;
    *at++ = &m->mu, *at++ = &m->chain, *at++ = &m->bulk;
    *at++ = &m->inversion_threshold;
}

// ---- reading ---------------------------------------------------------------------------------------------------

static void drop_regions(fem_mesh *mesh) {
    for (int i = 0; i < mesh->region_count; i++) fem_free(mesh->regions[i].name);
    fem_free(mesh->regions);
    mesh->regions = NULL;
    mesh->region_count = 0;
}

static fem_status add_region(fem_mesh *mesh, size_t *capacity, const char *name, int material) {
    fem_status status =
        fem_grow((void **)&mesh->regions, capacity, (size_t)mesh->region_count + 1, sizeof *mesh->regions);
    if (status != FEM_OK) return status;
    char *copy = fem_copy_string(name);
    if (!copy) return fem_fail(FEM_NO_MEMORY, "no memory for a region");
    mesh->regions[mesh->region_count++] = (fem_region){copy, material};
    return FEM_OK;
}

static fem_status read_note_name(fem_text *scan, char *name, size_t size) {
    fem_word word = fem_text_rest(scan);
    if (word.length == 0 || word.length >= size || memchr(word.at, 0, word.length))
        return fem_text_fail(scan, "expected a name of 1 to %zu letters", size - 1);
    memset(name, 0, size); // nothing remains behind the name
    memcpy(name, word.at, word.length);
    return FEM_OK;
}

static fem_status read_material_note(fem_text *scan, fem_material *material) {
    fem_status status = FEM_OK;
    char       kind[32] = "", quote[FEM_QUOTE];
    double    *numbers[MATERIAL_NUMBERS];
    fem_word   word = fem_text_take(scan);
    *material = fem_material_default();
    if (word.length < sizeof kind) memcpy(kind, word.at, word.length);
    if (!fem_material_kind_from_name(&material->kind, kind)) {
        status = fem_text_fail(scan, "unknown kind of material %s", fem_quote(quote, word.at, word.length));
        goto done;
    }
    material_numbers(material, numbers);
    for (int i = 0; i < MATERIAL_NUMBERS; i++)
        FEM_TRY(fem_text_double(scan, "a parameter of the material", numbers[i]));
    FEM_TRY(read_note_name(scan, material->name, sizeof material->name));
    status = fem_material_check(material);
    if (status != FEM_OK) fem_fail_prefix(status, "%s:%lld: ", scan->path, scan->line);
done:
    return status;
}

// Items of a set, over any number of lines that begin with ":".
static fem_status read_items(fem_text *scan, fem_draft *draft, int set, int limit) {
    fem_status status = FEM_OK;
    long long  item = 0;
    while (fem_text_next(scan) && fem_word_is(fem_text_peek(scan), ":")) {
        fem_text_take(scan);
        while (!fem_text_at_line_end(scan)) {
            FEM_TRY(fem_text_int(scan, "an item of the set", 1, limit, &item));
            FEM_TRY(fem_draft_set_add(draft, set, (int)item - 1));
        }
    }
done:
    return status;
}

static fem_status read_set(fem_text *scan, fem_draft *draft, bool of_elements) {
    fem_status status = FEM_OK;
    char       name[256];
    int        set = 0;
    if (!draft) return fem_text_fail(scan, "a set has no place here");
    FEM_TRY(read_note_name(scan, name, sizeof name));
    FEM_TRY(fem_draft_set_named(draft, of_elements, name, &set));
    FEM_TRY(read_items(scan, draft, set, of_elements ? draft->mesh.element_count : draft->mesh.vertex_count));
done:
    return status;
}

typedef struct notes_reader {
    fem_mesh      regions; // only those
    fem_material *materials;
    size_t        material_count, material_capacity, region_capacity;
} notes_reader;

static fem_status read_line(notes_reader *r, fem_text *scan, fem_draft *draft) {
    fem_status   status = FEM_OK;
    fem_word     word = fem_text_take(scan);
    fem_material material;
    long long    index = 0;
    char         name[256];
    if (r->material_count > FEM_MOST_NAMES || r->regions.region_count > FEM_MOST_NAMES)
        return fem_text_fail(scan, "more than %d regions or materials", FEM_MOST_NAMES);
    if (fem_word_is(word, "material")) {
        FEM_TRY(read_material_note(scan, &material));
        FEM_TRY(fem_grow((void **)&r->materials, &r->material_capacity, r->material_count + 1, sizeof *r->materials));
        r->materials[r->material_count++] = material;
    } else if (fem_word_is(word, "region")) {
        FEM_TRY(fem_text_int(scan, "the material of a region", 0, (long long)r->material_count - 1, &index));
        FEM_TRY(read_note_name(scan, name, sizeof name));
        FEM_TRY(add_region(&r->regions, &r->region_capacity, name, (int)index));
    } else if (fem_word_is(word, "vertexset") || fem_word_is(word, "elementset")) {
        FEM_TRY(read_set(scan, draft, fem_word_is(word, "elementset")));
    } else {
        status = fem_text_fail(scan, "expected \"material\" or \"region\"");
    }
done:
    return status;
}

fem_status fem_notes_read(fem_mesh *mesh, fem_text *scan, fem_draft *draft) {
    fem_status   status = FEM_OK;
    notes_reader r = {0};
    if (!fem_word_is(fem_text_rest(scan), FEM_NOTES_HEADER))
        return fem_text_fail(scan, "expected \"" FEM_NOTES_HEADER "\"");
    while (fem_text_next(scan)) FEM_TRY(read_line(&r, scan, draft));
    if (r.regions.region_count == 0) {
        status = fem_text_fail(scan, "has no region");
        goto done;
    }
    drop_regions(mesh);
    mesh->regions = r.regions.regions;
    mesh->region_count = r.regions.region_count;
    r.regions = (fem_mesh){0};
    fem_free(mesh->materials);
    mesh->materials = r.materials;
    mesh->material_count = (int)r.material_count;
    r.materials = NULL;
    if (draft) draft->region_capacity = r.region_capacity, draft->material_capacity = r.material_capacity;
done:
    fem_free(r.materials);
    fem_mesh_destroy(&r.regions);
    return status;
}

static bool same_value(const void *context, int entry, const void *key) {
    return ((const int *)context)[entry] == *(const int *)key;
}

static int compare_ints(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

// The different values of `region`, ascending; more than the most regions that there may be are not counted.
static fem_status different_values(const fem_mesh *mesh, int **list, int *count) {
    fem_status status = FEM_OK;
    fem_table  table = {0};
    int       *values = fem_alloc(FEM_MOST_NAMES + 1, sizeof *values), used = 0;
    if (!values) return fem_fail(FEM_NO_MEMORY, "no memory for the regions");
    for (int e = 0; e < mesh->element_count && used <= FEM_MOST_NAMES; e++) {
        int entry = 0;
        if (e > 0 && mesh->region[e] == mesh->region[e - 1]) continue;
        values[used] = mesh->region[e];
        FEM_TRY(fem_table_enter(&table, &mesh->region[e], sizeof(int), same_value, values, used, &entry));
        used += entry == used;
    }
    qsort(values, (size_t)used, sizeof *values, compare_ints);
    *list = values;
    *count = used;
    values = NULL;
done:
    fem_table_destroy(&table);
    fem_free(values);
    return status;
}

fem_status fem_regions_from_groups(fem_mesh *mesh) {
    fem_status status = FEM_OK;
    size_t     capacity = 0;
    fem_mesh   regions = {0};
    int       *values = NULL, count = 0;
    FEM_TRY(different_values(mesh, &values, &count));
    if (count > FEM_MOST_NAMES) {
        status = fem_fail(FEM_BAD_INPUT, "has more than %d different values", FEM_MOST_NAMES);
        goto done;
    }
    for (int i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, "region_%d", values[i]);
        FEM_TRY(add_region(&regions, &capacity, name, 0));
    }
    for (int e = 0; e < mesh->element_count; e++) {
        const int *at = bsearch(&mesh->region[e], values, (size_t)count, sizeof *values, compare_ints);
        mesh->region[e] = (int)(at - values);
    }
    drop_regions(mesh);
    mesh->regions = regions.regions;
    mesh->region_count = regions.region_count;
    regions = (fem_mesh){0};
done:
    fem_free(values);
    fem_mesh_destroy(&regions);
    return status;
}

// ---- writing ---------------------------------------------------------------------------------------------------

typedef struct notes_writer {
    char  *text;
    size_t size, capacity;
} notes_writer;

static fem_status note(notes_writer *w, const char *text) {
    size_t     length = strlen(text);
    fem_status status = fem_grow((void **)&w->text, &w->capacity, w->size + length, 1);
    if (status != FEM_OK) return status;
    memcpy(w->text + w->size, text, length);
    w->size += length;
    return FEM_OK;
}

// A name ends its line, so blanks inside are safe; around it they would be lost, and a newline would end it early.
static fem_status note_name(notes_writer *w, const char *name, size_t most) {
    fem_status status = FEM_OK;
    size_t     length = strlen(name);
    bool       good = length > 0 && length <= most && name[0] != ' ' && name[length - 1] != ' ';
    for (const char *c = name; *c; c++) good = good && (unsigned char)*c >= ' ';
    if (!good)
        return fem_fail(FEM_BAD_INPUT,
                        "the name \"%.100s\" is empty, too long, has blanks around it or control characters", name);
    FEM_TRY(note(w, " "));
    FEM_TRY(note(w, name));
    FEM_TRY(note(w, "\n"));
done:
    return status;
}

static fem_status note_sets(notes_writer *w, const char *keyword, int count, const fem_set *sets) {
    fem_status status = FEM_OK;
    char       number[FEM_DIGITS];
    for (int i = 0; i < count; i++) {
        FEM_TRY(note(w, keyword));
        FEM_TRY(note_name(w, sets[i].name, 255));
        for (int k = 0; k < sets[i].count; k++) {
            FEM_TRY(note(w, k % 10 > 0 ? " " : k > 0 ? "\n: " : ": "));
            fem_format_int(number, (long long)sets[i].items[k] + 1);
            FEM_TRY(note(w, number));
        }
        if (sets[i].count > 0) FEM_TRY(note(w, "\n"));
    }
done:
    return status;
}

static fem_status note_mesh(notes_writer *w, const fem_mesh *mesh, bool with_sets) {
    fem_status status = FEM_OK;
    char       number[FEM_DIGITS];
    FEM_TRY(note(w, FEM_NOTES_HEADER "\n"));
    for (int i = 0; i < mesh->material_count; i++) {
        fem_material material = mesh->materials[i];
        double      *numbers[MATERIAL_NUMBERS];
        material_numbers(&material, numbers);
        FEM_TRY(note(w, "material "));
        FEM_TRY(note(w, fem_material_kind_name(material.kind)));
        for (int k = 0; k < MATERIAL_NUMBERS; k++) {
            fem_format_double(number, *numbers[k]);
            FEM_TRY(note(w, " "));
            FEM_TRY(note(w, number));
        }
        FEM_TRY(note_name(w, material.name, sizeof material.name - 1));
    }
    for (int i = 0; i < mesh->region_count; i++) {
        fem_format_int(number, mesh->regions[i].material);
        FEM_TRY(note(w, "region "));
        FEM_TRY(note(w, number));
        FEM_TRY(note_name(w, mesh->regions[i].name, 255));
    }
    if (with_sets) FEM_TRY(note_sets(w, "vertexset", mesh->vertex_set_count, mesh->vertex_sets));
    if (with_sets) FEM_TRY(note_sets(w, "elementset", mesh->element_set_count, mesh->element_sets));
done:
    return status;
}

fem_status fem_notes_make(char **notes, size_t *size, const fem_mesh *mesh, bool with_sets) {
    notes_writer w = {0};
    fem_status   status = note_mesh(&w, mesh, with_sets);
    if (status != FEM_OK) {
        fem_free(w.text);
        return status;
    }
    *notes = w.text;
    *size = w.size;
    return FEM_OK;
}
