// Gmsh's .msh: the reader. Versions 2.2 and 4.1, as text or as bytes [Gmsh manual, "MSH file format"]. Physical groups
// of volumes become regions or element sets, those of surfaces, curves and points become vertex sets.
#include "libfem/mesh_msh.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

const msh_kind *msh_kind_of(long long type) {
    static const msh_kind kinds[] = {[1] = {"lines", 1, 2, 2},
                                     [2] = {"triangles", 2, 3, 3},
                                     [3] = {"quadrangles", 2, 4, 4},
                                     [4] = {"tetrahedra", 3, 4, 4},
                                     [5] = {"hexahedra", 3, 8, 8},
                                     [6] = {"prisms", 3, 6, 0},
                                     [7] = {"pyramids", 3, 5, 0},
                                     [8] = {"lines of 3 nodes", 1, 3, 2},
                                     [9] = {"triangles of 6 nodes", 2, 6, 3},
                                     [10] = {"quadrangles of 9 nodes", 2, 9, 4},
                                     [11] = {"ten-node tetrahedral", 3, 10, 4},
                                     [12] = {"27-node hexahedral", 3, 27, 8},
                                     [13] = {"prisms of 18 nodes", 3, 18, 0},
                                     [14] = {"pyramids of 14 nodes", 3, 14, 0},
                                     [15] = {"points", 0, 1, 1},
                                     [16] = {"quadrangles of 8 nodes", 2, 8, 4},
                                     [17] = {"twenty-node hexahedral", 3, 20, 8},
                                     [18] = {"prisms of 15 nodes", 3, 15, 0},
                                     [19] = {"pyramids of 13 nodes", 3, 13, 0}};
    if (type < 1 || type >= (long long)(sizeof kinds / sizeof *kinds)) return NULL;
    return &kinds[type];
}

// ---- physical groups and entities ------------------------------------------------------------------------------

typedef struct msh_key {
    long long dimension, tag, physical;
} msh_key;

static bool same_physical(const void *context, int entry, const void *key) {
    const msh_physical *p = (const msh_physical *)context + entry;
    const msh_key      *k = key;
    return p->dimension == k->dimension && p->tag == k->tag;
}

static bool same_entity(const void *context, int entry, const void *key) {
    const msh_entity *e = (const msh_entity *)context + entry;
    const msh_key    *k = key;
    return e->dimension == k->dimension && e->tag == k->tag && e->physical == k->physical;
}

fem_status msh_physical_tagged(msh_reader *r, int dimension, long long tag, int *index) {
    fem_status status = FEM_OK;
    msh_key    key = {dimension, tag, 0};
    FEM_TRY(
        fem_grow((void **)&r->physicals, &r->physical_capacity, (size_t)r->physical_count + 1, sizeof *r->physicals));
    FEM_TRY(
        fem_table_enter(&r->physical_table, &key, sizeof key, same_physical, r->physicals, r->physical_count, index));
    if (*index == r->physical_count)
        r->physicals[r->physical_count++] = (msh_physical){.dimension = dimension, .tag = tag, .set = -1, .region = -1};
done:
    return status;
}

fem_status msh_entity_tagged(msh_reader *r, int dimension, long long tag, long long physical, int *index) {
    fem_status status = FEM_OK;
    msh_key    key = {dimension, tag, physical};
    FEM_TRY(fem_grow((void **)&r->entities, &r->entity_capacity, (size_t)r->entity_count + 1, sizeof *r->entities));
    FEM_TRY(fem_table_enter(&r->entity_table, &key, sizeof key, same_entity, r->entities, r->entity_count, index));
    if (*index == r->entity_count)
        r->entities[r->entity_count++] =
            (msh_entity){.dimension = dimension, .tag = tag, .physical = physical, .first = r->member_count};
done:
    return status;
}

// The groups of an entity are added before another entity is made.
fem_status msh_entity_add_physical(msh_reader *r, int entity, int physical) {
    msh_entity *e = &r->entities[entity];
    for (int i = 0; i < e->count; i++)
        if (r->members[e->first + i] == physical) return FEM_OK;
    fem_status status =
        fem_grow((void **)&r->members, &r->member_capacity, (size_t)r->member_count + 1, sizeof *r->members);
    if (status != FEM_OK) return status;
    r->members[r->member_count++] = physical;
    e->count++;
    return FEM_OK;
}

// ---- elements --------------------------------------------------------------------------------------------------

static fem_status find_corners(msh_reader *r, const msh_kind *kind, const long long *nodes, int corners[8]) {
    for (int k = 0; k < kind->corners; k++) {
        corners[k] = fem_numbers_find(&r->draft.vertex_numbers, nodes[k]);
        if (corners[k] < 0)
            return fem_feed_fail(&r->feed, "an element has the node %lld, which is not in $Nodes", nodes[k]);
    }
    return FEM_OK;
}

static fem_status add_volume(msh_reader *r, const msh_kind *kind, long long number, const int corners[8], int entity) {
    fem_status status = FEM_OK;
    fem_draft *d = &r->draft;
    bool       fresh = !d->typed;
    char       why[128];
    if (fem_draft_type(d, kind->corners == 4 ? FEM_T4 : FEM_H8, why, sizeof why) != FEM_OK)
        return fem_feed_fail(&r->feed, "%s", why);
    if (fresh) { // what is left of the file bounds what is believed
        size_t    smallest = (size_t)kind->nodes * (r->feed.binary ? 4 : 2);
        long long most = (long long)(fem_feed_left(&r->feed) / smallest) + 1;
        FEM_TRY(fem_draft_reserve_elements(d, most < r->elements_left ? most : r->elements_left));
    }
    if (kind->nodes > kind->corners) {
        d->quadratic++;
        d->quadratic_name = kind->name;
    }
    FEM_TRY(fem_draft_element(d, number, corners, entity));
done:
    return status;
}

const char *msh_physical_name(const msh_physical *p, char made[64]) {
    static const char *const prefix[] = {"point", "curve", "surface", "volume"};
    if (p->name) return p->name;
    snprintf(made, 64, "%s_%lld", prefix[p->dimension], p->tag);
    return made;
}

static fem_status vertex_set(msh_reader *r, int physical) {
    char          made[64];
    msh_physical *p = &r->physicals[physical];
    return fem_draft_set_named(&r->draft, false, msh_physical_name(p, made), &p->set);
}

fem_status msh_element(msh_reader *r, const msh_kind *kind, long long number, const long long *nodes, int entity) {
    fem_status  status = FEM_OK;
    msh_entity *e = &r->entities[entity];
    int         corners[8];
    if (kind->corners == 0)
        return fem_feed_fail(&r->feed, "%s are not supported, expected tetrahedra or hexahedra", kind->name);
    FEM_TRY(find_corners(r, kind, nodes, corners));
    e->elements++;
    if (kind->dimension == 3) {
        FEM_TRY(add_volume(r, kind, number, corners, entity));
        goto done;
    }
    if (e->count == 0) r->passed_over++;
    for (int i = 0; i < e->count; i++) {
        int physical = r->members[e->first + i];
        if (r->physicals[physical].set < 0) FEM_TRY(vertex_set(r, physical));
        for (int k = 0; k < kind->corners; k++)
            FEM_TRY(fem_draft_set_add(&r->draft, r->physicals[physical].set, corners[k]));
    }
done:
    return status;
}

// ---- sections --------------------------------------------------------------------------------------------------

// "VERSION FILE-TYPE DATA-SIZE"; as bytes, the number 1 follows and tells their order.
static fem_status read_format(msh_reader *r) {
    fem_status status = FEM_OK;
    double     version = 0;
    long long  binary = 0, size = 0;
    fem_text  *text = &r->feed.text;
    FEM_TRY(fem_feed_begin(&r->feed, "the version of the format"));
    FEM_TRY(fem_text_double(text, "the version of the format", &version));
    if (version != 2.2 && version != 4.1) {
        status = fem_text_fail(text, "version %g is not supported, expected 2.2 or 4.1 (gmsh FILE -save -format msh41)",
                               version);
        goto done;
    }
    FEM_TRY(fem_text_int(text, "the file type", 0, 1, &binary));
    FEM_TRY(fem_text_int(text, "the size of data", 4, 8, &size));
    FEM_TRY(fem_text_end_line(text));
    r->is_4 = version == 4.1;
    if (size != 8 && !(r->is_4 && size == 4)) {
        status = fem_text_fail(text, "the size of data is %lld, expected 8", size);
        goto done;
    }
    r->size = (fem_scalar){'u', (int)size};
    if (!binary) goto done;
    fem_text_leave_line(text);
    r->feed.binary = true;
    const char *one = NULL;
    FEM_TRY(fem_feed_bytes(&r->feed, "the number 1", 4, &one));
    r->feed.swapped = fem_scalar_int(one, FEM_INT32, false) != 1;
    if (fem_scalar_int(one, FEM_INT32, r->feed.swapped) != 1) status = fem_feed_fail(&r->feed, "expected the number 1");
done:
    return status;
}

static fem_status read_physical_name(msh_reader *r) {
    fem_status status = FEM_OK;
    fem_text  *text = &r->feed.text;
    long long  dimension = 0, tag = 0;
    int        index = 0;
    FEM_TRY(fem_feed_begin(&r->feed, "a physical group"));
    FEM_TRY(fem_text_int(text, "the dimension of the group", 0, 3, &dimension));
    FEM_TRY(fem_text_int(text, "the tag of the group", 0, INT_MAX, &tag));
    fem_word name = fem_text_rest(text);
    if (name.length < 3 || name.length > 257 || name.at[0] != '"' || name.at[name.length - 1] != '"' ||
        memchr(name.at, 0, name.length)) {
        status = fem_text_fail(text, "expected the name of the group in quotes, of 1 to 255 letters");
        goto done;
    }
    FEM_TRY(msh_physical_tagged(r, (int)dimension, tag, &index));
    msh_physical *p = &r->physicals[index];
    if (p->name || p->set >= 0) {
        status = fem_text_fail(text, "group %lld of dimension %lld has two names", tag, dimension);
        goto done;
    }
    p->name = fem_calloc(name.length - 1, 1);
    if (!p->name) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory for a name", text->path);
        goto done;
    }
    memcpy(p->name, name.at + 1, name.length - 2);
    if (dimension < 3) FEM_TRY(vertex_set(r, index)); // in the order of the names, also when it is empty
done:
    return status;
}

static fem_status read_physical_names(msh_reader *r) {
    fem_status status = FEM_OK;
    long long  count = 0;
    FEM_TRY(fem_feed_begin(&r->feed, "the number of names"));
    FEM_TRY(fem_text_int(&r->feed.text, "the number of names", 0, FEM_MOST_NAMES, &count));
    FEM_TRY(fem_text_end_line(&r->feed.text));
    for (long long i = 0; i < count; i++) FEM_TRY(read_physical_name(r));
done:
    return status;
}

// From the current place to the line $EndNAME, which stays.
static fem_status skip_section(msh_reader *r, fem_word name, fem_text *inside) {
    char end[80];
    int  length = snprintf(end, sizeof end, "\n$End%.*s", (int)name.length, name.at);
    fem_text_leave_line(&r->feed.text);
    *inside = r->feed.text;
    const char *start = r->feed.text.at - 1; // an empty section ends at once
    const char *stop = memmem(start, (size_t)(r->feed.text.end - start), end, (size_t)length);
    char        quote[FEM_QUOTE];
    if (!stop) return fem_text_fail(&r->feed.text, "section %s has no end", fem_quote(quote, name.at, name.length));
    inside->end = stop + 1;
    while (r->feed.text.at < stop + 1) fem_text_leave_line(&r->feed.text);
    return FEM_OK;
}

static fem_status read_nodes(msh_reader *r) {
    fem_status status = FEM_OK;
    if (r->has_nodes) return fem_text_fail(&r->feed.text, "$Nodes comes twice");
    r->has_nodes = true;
    FEM_TRY(r->is_4 ? msh_read_nodes_4(r) : msh_read_nodes_2(r));
    FEM_TRY(fem_draft_close_vertices(&r->draft));
done:
    return status;
}

static fem_status read_elements(msh_reader *r) {
    if (r->has_elements) return fem_text_fail(&r->feed.text, "$Elements comes twice");
    if (!r->has_nodes) return fem_text_fail(&r->feed.text, "$Elements must come after $Nodes");
    r->has_elements = true;
    return r->is_4 ? msh_read_elements_4(r) : msh_read_elements_2(r);
}

// What stands between $NAME and $EndNAME. Numbers may be bytes in three of the sections, names and marks are text.
static fem_status read_section(msh_reader *r, fem_word name, bool binary) {
    fem_status status = FEM_OK;
    fem_text   inside;
    char       quote[FEM_QUOTE];
    bool       nodes = fem_word_is(name, "Nodes"), elements = fem_word_is(name, "Elements");
    bool       entities = r->is_4 && fem_word_is(name, "Entities");
    if (nodes || elements || entities) {
        if (binary && (r->is_4 || nodes || elements)) {
            if (r->is_4) fem_text_leave_line(&r->feed.text);
            r->feed.binary = true;
        }
        status = nodes ? read_nodes(r) : elements ? read_elements(r) : msh_read_entities_4(r);
        r->feed.binary = false;
    } else if (fem_word_is(name, "PhysicalNames")) {
        status = read_physical_names(r);
    } else if (fem_word_is(name, "PartitionedEntities")) {
        status = fem_text_fail(&r->feed.text, "the mesh is partitioned, which is not supported: save it whole");
    } else if (fem_word_is(name, "Limber")) {
        r->has_notes = true;
        status = skip_section(r, name, &r->notes);
    } else {
        FEM_TRY(skip_section(r, name, &inside));
        FEM_TRY(fem_remark(r->draft.remarks, "section %s is passed over", fem_quote(quote, name.at, name.length)));
    }
done:
    return status;
}

// $MeshFormat comes once, before what it tells how to read; comments may stand before it.
static fem_status check_place(msh_reader *r, fem_word name, bool has_format) {
    static const char *const later[] = {"Nodes", "Elements", "Entities", "PhysicalNames", "PartitionedEntities"};
    if (fem_word_is(name, "MeshFormat"))
        return has_format ? fem_text_fail(&r->feed.text, "$MeshFormat comes twice") : FEM_OK;
    if (!has_format && fem_word_is(name, "NOD"))
        return fem_text_fail(&r->feed.text,
                             "version 1 is not supported, expected 2.2 or 4.1 (gmsh FILE -save -format msh41)");
    for (size_t i = 0; i < sizeof later / sizeof *later && !has_format; i++)
        if (fem_word_is(name, later[i]))
            return fem_text_fail(&r->feed.text, "expected $MeshFormat before $%s", later[i]);
    return FEM_OK;
}

static fem_status read_sections(msh_reader *r) {
    fem_status status = FEM_OK;
    fem_text  *text = &r->feed.text;
    bool       has_format = false, binary = false;
    char       quote[FEM_QUOTE];
    while (fem_text_next(text)) {
        fem_word word = fem_text_take(text);
        if (word.at[0] != '$' || word.length < 2 || word.length > 64 || memchr(word.at, 0, word.length)) {
            text->at = word.at;
            return fem_text_expected(text, "a section such as $Nodes");
        }
        FEM_TRY(fem_text_end_line(text));
        fem_word name = {word.at + 1, word.length - 1};
        FEM_TRY(check_place(r, name, has_format));
        if (fem_word_is(name, "MeshFormat")) {
            FEM_TRY(read_format(r));
            binary = r->feed.binary;
            r->feed.binary = false;
            has_format = true;
        } else {
            FEM_TRY(read_section(r, name, binary));
        }
        fem_text_next(text);
        fem_word end = fem_text_take(text);
        if (end.length != name.length + 4 || memcmp(end.at, "$End", 4) != 0 ||
            memcmp(end.at + 4, name.at, name.length) != 0) {
            status = fem_text_fail(text, "expected $End%.*s, found %s", (int)name.length, name.at,
                                   fem_quote(quote, end.at, end.length));
            goto done;
        }
        FEM_TRY(fem_text_end_line(text));
    }
done:
    return status;
}

static void destroy_reader(msh_reader *r) {
    for (int i = 0; i < r->physical_count; i++) fem_free(r->physicals[i].name);
    fem_free(r->physicals);
    fem_free(r->entities);
    fem_free(r->members);
    fem_table_destroy(&r->physical_table);
    fem_table_destroy(&r->entity_table);
    fem_draft_destroy(&r->draft);
}

fem_status fem_mesh_read_msh(fem_mesh *mesh, const char *path, fem_remarks *remarks) {
    fem_status status = FEM_OK;
    char      *text = NULL;
    size_t     size = 0;
    msh_reader r = {.draft = {.path = path, .remarks = remarks}};
    FEM_TRY(fem_file_read(&text, &size, path));
    r.feed = fem_feed_open(path, text, size, 0);
    FEM_TRY(read_sections(&r));
    if (!r.has_nodes || !r.has_elements) {
        status = fem_fail(FEM_BAD_INPUT, "%s: has no %s", path, r.has_nodes ? "$Elements" : "$Nodes");
        goto done;
    }
    if (r.passed_over > 0)
        FEM_TRY(fem_remark(remarks, "%d points, lines and faces in no physical group are passed over", r.passed_over));
    FEM_TRY(msh_make_groups(&r));
    fem_free(text), text = NULL; // the check needs no text
    FEM_TRY(fem_draft_finish(&r.draft, mesh));
done:
    fem_free(text);
    destroy_reader(&r);
    return status;
}
