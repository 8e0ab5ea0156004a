// Sections of Gmsh's .msh 2.2: a line a node, a line an element with its tags (physical group, entity, partitions). As
// bytes, elements come in blocks of one type. An element in several physical groups is written once for each.
#include "libfem/mesh_msh.h"

#include <limits.h>

static fem_status take_int(msh_reader *r, const char *what, long long low, long long high, long long *value) {
    return fem_feed_int(&r->feed, FEM_INT32, what, low, high, value);
}

// The count that a section begins with is a line of text in both forms.
static fem_status read_count(msh_reader *r, const char *what, int most, size_t smallest, long long *count) {
    fem_status status = FEM_OK;
    bool       binary = r->feed.binary;
    r->feed.binary = false;
    FEM_TRY(fem_feed_begin(&r->feed, what));
    FEM_TRY(fem_feed_int(&r->feed, FEM_INT32, what, 1, most, count));
    FEM_TRY(fem_feed_end(&r->feed));
    if (binary) fem_text_leave_line(&r->feed.text);
    r->feed.binary = binary;
    FEM_TRY(fem_feed_plausible(&r->feed, what, *count, smallest));
done:
    r->feed.binary = binary;
    return status;
}

fem_status msh_read_nodes_2(msh_reader *r) {
    fem_status status = FEM_OK;
    long long  count = 0, number = 0;
    double     x[3];
    FEM_TRY(read_count(r, "the number of nodes", FEM_MOST_VERTICES, r->feed.binary ? 28 : 8, &count));
    FEM_TRY(fem_draft_reserve_vertices(&r->draft, count));
    for (long long i = 0; i < count; i++) {
        FEM_TRY(fem_feed_begin(&r->feed, "a node"));
        FEM_TRY(take_int(r, "the number of a node", 0, INT_MAX, &number));
        for (int k = 0; k < 3; k++) FEM_TRY(fem_feed_double(&r->feed, FEM_FLOAT64, "a coordinate", &x[k]));
        FEM_TRY(fem_feed_end(&r->feed));
        FEM_TRY(fem_draft_vertex(&r->draft, number, x));
    }
done:
    return status;
}

static fem_status read_tags(msh_reader *r, const msh_kind *kind, long long tags, int *entity) {
    fem_status status = FEM_OK;
    long long  physical = 0, tag = 0, ignored;
    int        before = r->entity_count, index = 0;
    for (long long i = 0; i < tags; i++)
        FEM_TRY(take_int(r, "a tag of the element", INT_MIN, INT_MAX, i == 0 ? &physical : i == 1 ? &tag : &ignored));
    FEM_TRY(msh_entity_tagged(r, kind->dimension, tag, physical, entity));
    if (r->entity_count > before && physical != 0) {
        FEM_TRY(msh_physical_tagged(r, kind->dimension, physical < 0 ? -physical : physical, &index));
        FEM_TRY(msh_entity_add_physical(r, *entity, index));
    }
done:
    return status;
}

static fem_status take_kind(msh_reader *r, const msh_kind **kind) {
    long long  type = 0;
    fem_status status = take_int(r, "the type of the element", 1, INT_MAX, &type);
    if (status != FEM_OK) return status;
    *kind = msh_kind_of(type);
    return *kind ? FEM_OK : fem_feed_fail(&r->feed, MSH_NO_KIND, type);
}

static fem_status read_body(msh_reader *r, const msh_kind *kind, long long number, long long tags) {
    fem_status status = FEM_OK;
    long long  nodes[32];
    int        entity = 0;
    FEM_TRY(read_tags(r, kind, tags, &entity));
    for (int k = 0; k < kind->nodes; k++) FEM_TRY(take_int(r, "a node of the element", 0, INT_MAX, &nodes[k]));
    FEM_TRY(msh_element(r, kind, number, nodes, entity));
done:
    return status;
}

static fem_status read_line(msh_reader *r) {
    fem_status      status = FEM_OK;
    long long       number = 0, tags = 0;
    const msh_kind *kind = NULL;
    FEM_TRY(fem_feed_begin(&r->feed, "an element"));
    FEM_TRY(take_int(r, "the number of an element", 0, INT_MAX, &number));
    FEM_TRY(take_kind(r, &kind));
    FEM_TRY(take_int(r, "the number of tags", 0, 1000, &tags));
    FEM_TRY(read_body(r, kind, number, tags));
    FEM_TRY(fem_feed_end(&r->feed));
done:
    return status;
}

// As bytes: type, how many elements follow, how many tags each has; then number, tags and nodes of each.
static fem_status read_block(msh_reader *r, long long left, long long *count) {
    fem_status      status = FEM_OK;
    long long       number = 0, tags = 0;
    const msh_kind *kind = NULL;
    FEM_TRY(take_kind(r, &kind));
    FEM_TRY(take_int(r, "the number of elements in the block", 1, left, count));
    FEM_TRY(take_int(r, "the number of tags", 0, 1000, &tags));
    for (long long i = 0; i < *count; i++) {
        FEM_TRY(take_int(r, "the number of an element", 0, INT_MAX, &number));
        FEM_TRY(read_body(r, kind, number, tags));
    }
done:
    return status;
}

fem_status msh_read_elements_2(msh_reader *r) {
    fem_status status = FEM_OK;
    long long  count = 0, in_block = 0;
    FEM_TRY(read_count(r, "the number of elements", FEM_MOST_ELEMENTS, 4, &count));
    for (long long used = 0; used < count; used += in_block) {
        in_block = 1;
        r->elements_left = count - used;
        FEM_TRY(r->feed.binary ? read_block(r, count - used, &in_block) : read_line(r));
    }
done:
    return status;
}
