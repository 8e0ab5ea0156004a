// Sections of Gmsh's .msh 4.1: entities with their physical groups; nodes and elements in blocks, one entity each.
// Numbers are text, or int, size_t and double as bytes.
#include "libfem/mesh_msh.h"

#include <limits.h>

enum { MOST_NUMBER = INT_MAX };

static fem_status take_int(msh_reader *r, const char *what, long long low, long long high, long long *value) {
    return fem_feed_int(&r->feed, FEM_INT32, what, low, high, value);
}
static fem_status take_size(msh_reader *r, const char *what, long long high, long long *value) {
    return fem_feed_int(&r->feed, r->size, what, 0, high, value);
}

// One entity: tag, its point or its bounding box, physical groups, and (but for points) the entities that bound it.
static fem_status read_entity(msh_reader *r, int dimension) {
    fem_status status = FEM_OK;
    long long  tag = 0, count = 0, physical = 0;
    double     ignored;
    int        entity = 0, index = 0, before = r->entity_count;
    FEM_TRY(fem_feed_begin(&r->feed, "an entity"));
    FEM_TRY(take_int(r, "the tag of an entity", INT_MIN, INT_MAX, &tag));
    for (int i = 0; i < (dimension == 0 ? 3 : 6); i++)
        FEM_TRY(fem_feed_double(&r->feed, FEM_FLOAT64, "a bound of the entity", &ignored));
    FEM_TRY(msh_entity_tagged(r, dimension, tag, 0, &entity));
    if (r->entity_count == before) {
        status = fem_feed_fail(&r->feed, "entity %lld of dimension %d is defined twice", tag, dimension);
        goto done;
    }
    FEM_TRY(take_size(r, "the number of physical groups", FEM_MOST_NAMES, &count));
    for (long long i = 0; i < count; i++) {
        FEM_TRY(take_int(r, "a physical group", INT_MIN, INT_MAX, &physical));
        FEM_TRY(msh_physical_tagged(r, dimension, physical < 0 ? -physical : physical, &index));
        FEM_TRY(msh_entity_add_physical(r, entity, index));
    }
    if (dimension > 0) {
        FEM_TRY(take_size(r, "the number of bounding entities", MOST_NUMBER, &count));
        for (long long i = 0; i < count; i++) FEM_TRY(take_int(r, "a bounding entity", INT_MIN, INT_MAX, &physical));
    }
    FEM_TRY(fem_feed_end(&r->feed));
done:
    return status;
}

fem_status msh_read_entities_4(msh_reader *r) {
    fem_status status = FEM_OK;
    long long  counts[4] = {0};
    FEM_TRY(fem_feed_begin(&r->feed, "the numbers of entities"));
    for (int k = 0; k < 4; k++) FEM_TRY(take_size(r, "the number of entities", MOST_NUMBER, &counts[k]));
    FEM_TRY(fem_feed_end(&r->feed));
    for (int k = 0; k < 4; k++)
        for (long long i = 0; i < counts[k]; i++) FEM_TRY(read_entity(r, k));
done:
    return status;
}

// Of $Nodes and $Elements: blocks, items, smallest and largest number.
static fem_status read_header(msh_reader *r, const char *what, int most, size_t smallest, long long *blocks,
                              long long *items) {
    fem_status status = FEM_OK;
    long long  ignored;
    FEM_TRY(fem_feed_begin(&r->feed, "the header of the section"));
    FEM_TRY(take_size(r, "the number of blocks", INT_MAX, blocks));
    FEM_TRY(take_size(r, what, most, items));
    for (int i = 0; i < 2; i++) FEM_TRY(take_size(r, "the smallest or largest number", LLONG_MAX, &ignored));
    FEM_TRY(fem_feed_end(&r->feed));
    FEM_TRY(fem_feed_plausible(&r->feed, what, *items, smallest));
done:
    return status;
}

static fem_status read_node_block(msh_reader *r, long long left, long long *count) {
    fem_status status = FEM_OK;
    long long  dimension = 0, tag, parametric = 0, number = 0;
    double     x[3], ignored;
    fem_draft *d = &r->draft;
    FEM_TRY(fem_feed_begin(&r->feed, "a block of nodes"));
    FEM_TRY(take_int(r, "the dimension of the entity", 0, 3, &dimension));
    FEM_TRY(take_int(r, "the tag of the entity", INT_MIN, INT_MAX, &tag));
    FEM_TRY(take_int(r, "the mark of parametric nodes", 0, 1, &parametric));
    FEM_TRY(take_size(r, "the number of nodes in the block", left, count));
    FEM_TRY(fem_feed_end(&r->feed));
    int first = d->mesh.vertex_count;
    for (long long i = 0; i < *count; i++) { // all numbers come before all coordinates
        FEM_TRY(fem_feed_begin(&r->feed, "the number of a node"));
        FEM_TRY(take_size(r, "the number of a node", MOST_NUMBER, &number));
        FEM_TRY(fem_feed_end(&r->feed));
        FEM_TRY(fem_draft_vertex(d, number, (double[3]){0}));
    }
    for (long long i = 0; i < *count; i++) {
        FEM_TRY(fem_feed_begin(&r->feed, "a node"));
        for (int k = 0; k < 3; k++) FEM_TRY(fem_feed_double(&r->feed, FEM_FLOAT64, "a coordinate", &x[k]));
        for (long long k = 0; parametric && k < dimension; k++)
            FEM_TRY(fem_feed_double(&r->feed, FEM_FLOAT64, "a parametric coordinate", &ignored));
        FEM_TRY(fem_feed_end(&r->feed));
        for (int k = 0; k < 3; k++) d->mesh.vertices[3 * (size_t)(first + i) + (size_t)k] = x[k];
    }
done:
    return status;
}

fem_status msh_read_nodes_4(msh_reader *r) {
    fem_status status = FEM_OK;
    long long  blocks = 0, count = 0, used = 0, in_block = 0;
    FEM_TRY(read_header(r, "the number of nodes", FEM_MOST_VERTICES, r->feed.binary ? 32 : 6, &blocks, &count));
    FEM_TRY(fem_draft_reserve_vertices(&r->draft, count));
    for (long long b = 0; b < blocks; b++) {
        FEM_TRY(read_node_block(r, count - used, &in_block));
        used += in_block;
    }
    if (used != count) status = fem_feed_fail(&r->feed, "$Nodes announces %lld nodes, found %lld", count, used);
done:
    return status;
}

static fem_status read_element_block(msh_reader *r, long long left, long long *count) {
    fem_status status = FEM_OK;
    long long  dimension = 0, tag = 0, type = 0, number = 0, nodes[32];
    int        entity = 0;
    FEM_TRY(fem_feed_begin(&r->feed, "a block of elements"));
    FEM_TRY(take_int(r, "the dimension of the entity", 0, 3, &dimension));
    FEM_TRY(take_int(r, "the tag of the entity", INT_MIN, INT_MAX, &tag));
    FEM_TRY(take_int(r, "the type of the elements", 1, INT_MAX, &type));
    const msh_kind *kind = msh_kind_of(type);
    if (!kind) {
        status = fem_feed_fail(&r->feed, MSH_NO_KIND, type);
        goto done;
    }
    FEM_TRY(take_size(r, "the number of elements in the block", left, count));
    FEM_TRY(fem_feed_end(&r->feed));
    FEM_TRY(msh_entity_tagged(r, (int)dimension, tag, 0, &entity));
    if (kind->dimension != dimension) {
        status = fem_feed_fail(&r->feed, "a block of %s on an entity of dimension %lld", kind->name, dimension);
        goto done;
    }
    for (long long i = 0; i < *count; i++) {
        FEM_TRY(fem_feed_begin(&r->feed, "an element"));
        FEM_TRY(take_size(r, "the number of an element", MOST_NUMBER, &number));
        for (int k = 0; k < kind->nodes; k++) FEM_TRY(take_size(r, "a node of the element", MOST_NUMBER, &nodes[k]));
        FEM_TRY(msh_element(r, kind, number, nodes, entity));
        FEM_TRY(fem_feed_end(&r->feed));
    }
done:
    return status;
}

fem_status msh_read_elements_4(msh_reader *r) {
    fem_status status = FEM_OK;
    long long  blocks = 0, count = 0, used = 0, in_block = 0;
    FEM_TRY(read_header(r, "the number of elements", FEM_MOST_ELEMENTS, r->feed.binary ? 16 : 4, &blocks, &count));
    for (long long b = 0; b < blocks; b++) {
        r->elements_left = count - used;
        FEM_TRY(read_element_block(r, count - used, &in_block));
        used += in_block;
    }
    if (used != count) status = fem_feed_fail(&r->feed, "$Elements announces %lld elements, found %lld", count, used);
done:
    return status;
}
