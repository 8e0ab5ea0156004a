// Decomposition: labels from sets, regions, METIS or level sets, made into a tree of domains.
#include "libdomain/decompose_internal.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

domain_options domain_default_options(void) { return (domain_options){.method = DOMAIN_GEODESIC, .count = 10}; }

static void work_destroy(domain_work *w) {
    domain_topology_destroy(&w->topology);
    domain_labels_destroy(&w->labels);
    domain_graph_destroy(&w->graph);
    domain_span_destroy(&w->span);
    fem_free(w->held);
}

// ---- labels from sets, regions, METIS --------------------------------------------------------------------------

// Elements in no set get the label behind the last; it is split into pieces later. names: sets and "rest".
static fem_status label_sets(domain_work *w, int *number) {
    const fem_mesh *mesh = w->topology.mesh;
    int             sets = mesh->element_set_count;
    if (sets == 0) return fem_fail(FEM_BAD_INPUT, "decompose: the mesh has no element sets to make domains of");
    for (int e = 0; e < mesh->element_count; e++) number[e] = sets;
    for (int s = 0; s < sets; s++)
        for (int i = 0; i < mesh->element_sets[s].count; i++) {
            int *at = &number[mesh->element_sets[s].items[i]];
            if (*at < sets)
                return fem_fail(FEM_BAD_INPUT, "decompose: element %d is in set \"%s\" and in set \"%s\"",
                                mesh->element_sets[s].items[i] + mesh->file_base, mesh->element_sets[*at].name,
                                mesh->element_sets[s].name);
            *at = s;
        }
    return FEM_OK;
}

// A set that is not in one piece, which splitting has shown by a second label of the same origin, is refused.
static fem_status refuse_pieces(domain_work *w, int sets) {
    const fem_mesh *mesh = w->topology.mesh;
    fem_status      status = FEM_OK;
    int *first = fem_alloc((size_t)sets + 1, sizeof *first), *label = fem_alloc((size_t)sets + 1, sizeof *label);
    if (!first || !label) {
        status = fem_fail(FEM_NO_MEMORY, "decompose: no memory for %d sets", sets);
        goto done;
    }
    for (int i = 0; i <= sets; i++) first[i] = -1;
    for (int e = 0; e < mesh->element_count; e++) {
        int at = w->labels.label[e], origin = w->labels.origin[at];
        if (origin >= sets) continue;
        if (first[origin] < 0) first[origin] = e, label[origin] = at;
        if (label[origin] == at) continue;
        char name[64];
        domain_label_name(name, &w->labels, at, w->names);
        status = fem_fail(FEM_BAD_INPUT,
                          "decompose: %s is not in one piece: no way through faces leads from element %d to element %d",
                          name, first[origin] + mesh->file_base, e + mesh->file_base);
        goto done;
    }
done:
    fem_free(first), fem_free(label);
    return status;
}

// METIS on the dual graph.
static fem_status label_metis(domain_work *w, int parts) {
    fem_status status = FEM_OK;
    int        n = w->topology.mesh->element_count, *start = NULL, *adjacent = NULL;
    int       *part = fem_alloc((size_t)n, sizeof *part);
    if (!part) {
        status = fem_fail(FEM_NO_MEMORY, "decompose: no memory for the labels of %d elements", n);
        goto done;
    }
    FEM_TRY(fem_mesh_element_graph(w->topology.mesh, &start, &adjacent));
    FEM_TRY(fem_graph_partition(n, start, adjacent, parts, part));
    FEM_TRY(domain_labels_set(&w->labels, n, part, parts, NULL));
    FEM_TRY(domain_labels_split(&w->labels, &w->topology));
done:
    fem_free(part), fem_free(start), fem_free(adjacent);
    return status;
}

// ---- cutting what is too large ---------------------------------------------------------------------------------

// The next part always goes to the domain with the largest parts. `whole`: per element; domains that were found to have
// no further cut get none.
static void share_out(const domain_work *w, int wanted, const unsigned char *whole, const int *first, int *share) {
    for (int i = 0; i < w->labels.count; i++) share[i] = 1;
    for (int given = w->labels.count; given < wanted; given++) {
        int best = -1;
        for (int i = 0; i < w->labels.count; i++) {
            if (whole[first[i]] || w->labels.size[i] < (share[i] + 1) * w->least) continue;
            if (best < 0 || (double)w->labels.size[i] / share[i] > (double)w->labels.size[best] / share[best]) best = i;
        }
        if (best < 0) return;
        share[best]++;
    }
}

// Marks the elements where the distance starts: at the interface to the parent, or, in the root, at gathered vertices.
static void mark_seeds(const domain_work *w, int domain, int count, const int *elements, unsigned char *seed) {
    const domain_topology *t = &w->topology;
    const fem_mesh        *mesh = t->mesh;
    int                    width = fem_element_vertices(mesh->type), edge = w->span.parent_edge[domain];
    if (edge >= 0) {
        for (int i = w->graph.face_start[edge]; i < w->graph.face_start[edge + 1]; i++)
            for (int side = 0; side < 2; side++) {
                int e = t->pair[2 * (size_t)w->graph.faces[i] + (size_t)side];
                if (w->labels.label[e] == domain) seed[e] = 1;
            }
        return;
    }
    for (int i = 0; i < count; i++)
        for (int k = 0; k < width; k++)
            if (w->held[mesh->elements[(size_t)elements[i] * (size_t)width + (size_t)k]] == DOMAIN_GATHERED)
                seed[elements[i]] = 1;
}

// Cuts one domain; new parts are numbered from *next on.
static fem_status cut_domain(const domain_work *w, domain_cutter *cutter, int domain, int wanted, int needed, int count,
                             const int *elements, unsigned char *seed, int *number, int *next, unsigned char *whole) {
    fem_status          status = FEM_OK;
    const domain_graph *g = &w->graph;
    int                 patches = g->start[domain + 1] - g->start[domain], total = 0, parts = 0;
    int                *start = fem_alloc((size_t)patches + 1, sizeof *start), *faces = NULL;
    int                *part = fem_alloc((size_t)count, sizeof *part);
    for (int i = g->start[domain]; i < g->start[domain + 1]; i++)
        total += g->face_start[g->incident[i] + 1] - g->face_start[g->incident[i]];
    faces = fem_alloc((size_t)total, sizeof *faces);
    if (!start || !faces || !part) {
        status = fem_fail(FEM_NO_MEMORY, "decompose: no memory to cut %d elements", count);
        goto done;
    }
    total = 0;
    for (int i = 0; i < patches; i++) {
        int edge = g->incident[g->start[domain] + i];
        start[i] = total;
        for (int k = g->face_start[edge]; k < g->face_start[edge + 1]; k++) faces[total++] = g->faces[k];
    }
    start[patches] = total;
    mark_seeds(w, domain, count, elements, seed);
    domain_cut cut = {.element_count = count,
                      .elements = elements,
                      .seed = seed,
                      .wanted = wanted,
                      .needed = needed,
                      .least = w->least,
                      .loops = w->loops == DOMAIN_LOOPS_SPRINGS,
                      .patch_count = patches,
                      .patch_start = start,
                      .patch_faces = faces};
    FEM_TRY(domain_cutter_run(cutter, &cut, part, &parts));
    for (int i = 0; i < count; i++) {
        if (part[i] > 0) number[elements[i]] = *next + part[i] - 1;
        seed[elements[i]] = 0;
        whole[elements[i]] |= parts < wanted;
    }
    *next += parts - 1;
done:
    fem_free(start), fem_free(faces), fem_free(part);
    return status;
}

// One round: every domain that is due is cut into its share of the parts that are missing. Half of the parts that are
// wanted are needed.
static fem_status cut_large(domain_work *w, int wanted, unsigned char *whole) {
    fem_status     status = FEM_OK;
    int            n = w->topology.mesh->element_count, *start = NULL, *elements = NULL, next = w->labels.count;
    size_t         count = (size_t)w->labels.count;
    int           *number = fem_copy(w->labels.label, (size_t)n, sizeof *number);
    int           *first = fem_alloc(count, sizeof *first), *share = fem_alloc(count, sizeof *share);
    int           *needed = fem_alloc(count, sizeof *needed);
    unsigned char *seed = fem_calloc((size_t)n, 1);
    domain_cutter *cutter = NULL;
    if (!number || !first || !share || !needed || !seed) {
        status = fem_fail(FEM_NO_MEMORY, "decompose: no memory to cut %d elements", n);
        goto done;
    }
    FEM_TRY(domain_labels_lists(&w->labels, n, &start, &elements));
    FEM_TRY(domain_cutter_create(&cutter, &w->topology));
    for (int i = 0; i < w->labels.count; i++) first[i] = elements[start[i]];
    share_out(w, wanted, whole, first, share);
    share_out(w, (wanted + 1) / 2, whole, first, needed);
    for (int i = 0; i < w->labels.count; i++)
        if (share[i] > 1)
            FEM_TRY(cut_domain(w, cutter, i, share[i], needed[i], start[i + 1] - start[i], elements + start[i], seed,
                               number, &next, whole));
    if (next > w->labels.count) FEM_TRY(domain_labels_set(&w->labels, n, number, next, NULL));
done:
    fem_free(number), fem_free(first), fem_free(share), fem_free(needed), fem_free(seed);
    fem_free(start), fem_free(elements);
    domain_cutter_destroy(cutter);
    return status;
}

// Cuts and settles until there are as many domains as wanted, or no more come. Settling joins again what became a loop
// after all; when it joins more than was cut, the labels before stay.
static fem_status cut_until(domain_work *w, int wanted) {
    fem_status     status = FEM_OK;
    int            n = w->topology.mesh->element_count;
    int           *before = fem_alloc((size_t)n, sizeof *before);
    unsigned char *whole = fem_calloc((size_t)n, 1);
    enum { ROUNDS = 6 };
    if (!before || !whole) {
        status = fem_fail(FEM_NO_MEMORY, "decompose: no memory to cut %d elements", n);
        goto done;
    }
    for (int round = 0; round < ROUNDS && w->labels.count < wanted; round++) {
        int count = w->labels.count;
        memcpy(before, w->labels.label, (size_t)n * sizeof *before);
        if (count < (wanted + 1) / 2) memset(whole, 0, (size_t)n);
        FEM_TRY(cut_large(w, wanted, whole));
        if (w->labels.count == count) break;
        FEM_TRY(domain_settle(w));
        if (w->labels.count >= count) continue;
        FEM_TRY(domain_labels_set(&w->labels, n, before, count, NULL));
        FEM_TRY(domain_settle(w));
        break;
    }
done:
    fem_free(before), fem_free(whole);
    return status;
}

// ---- the whole -------------------------------------------------------------------------------------------------

static fem_status check_options(const fem_mesh *mesh, const domain_options *o) {
    bool automatic = o->method == DOMAIN_GEODESIC || o->method == DOMAIN_METIS;
    int  most = mesh->element_count > 1 ? mesh->element_count / 2 : 1;
    if (automatic && (o->count < 1 || o->count > most))
        return fem_fail(FEM_BAD_INPUT, "domains.count is %d, expected 1 to %d, half of the elements", o->count, most);
    if (o->fixed_count < 0 || (o->fixed_count > 0 && !o->fixed))
        return fem_fail(FEM_BAD_INPUT, "domains.fixed_count is %d, expected >= 0 and as many vertices", o->fixed_count);
    return FEM_OK;
}

static fem_status work_create(domain_work *w, const fem_mesh *mesh, const domain_options *o) {
    fem_status status = FEM_OK;
    FEM_TRY(domain_topology_create(&w->topology, mesh));
    FEM_TRY(domain_labels_create(&w->labels, mesh->element_count));
    FEM_TRY(domain_mark_held(w, o));
    w->loops = o->loops != DOMAIN_LOOPS_DEFAULT ? o->loops : w->given ? DOMAIN_LOOPS_REFUSE : DOMAIN_LOOPS_MERGE;
done:
    return status;
}

static fem_status finish(domain_tree *tree, domain_work *w, int asked, double begun) {
    fem_status status = domain_tree_write(tree, &w->topology, &w->labels, &w->graph, &w->span, w->held, w->names);
    if (status != FEM_OK) return status;
    tree->report.asked = asked;
    tree->report.merged = w->begun_with > tree->count ? w->begun_with - tree->count : 0;
    tree->report.loops = w->loops == DOMAIN_LOOPS_SPRINGS ? w->graph.edges - w->graph.nodes + 1 : w->loop_count;
    tree->report.seconds = fem_seconds() - begun;
    return FEM_OK;
}

// Numbers per element that were given, as labels; those below `strict` must be in one piece.
static fem_status take_given(domain_work *w, const int *number, int count, int strict) {
    fem_status status = FEM_OK;
    int       *origin = fem_alloc((size_t)count, sizeof *origin);
    if (!origin) return fem_fail(FEM_NO_MEMORY, "decompose: no memory for %d labels", count);
    for (int i = 0; i < count; i++) origin[i] = i;
    FEM_TRY(domain_labels_set(&w->labels, w->topology.mesh->element_count, number, count, origin));
    FEM_TRY(domain_labels_split(&w->labels, &w->topology));
    FEM_TRY(refuse_pieces(w, strict));
    w->begun_with = w->labels.count;
    FEM_TRY(domain_settle(w));
done:
    fem_free(origin);
    return status;
}

static fem_status decompose_given(domain_tree *tree, const fem_mesh *mesh, const domain_options *o) {
    fem_status   status = FEM_OK;
    domain_work  w = {.given = true};
    bool         sets = o->method == DOMAIN_SETS;
    int          count = sets ? mesh->element_set_count + 1 : mesh->region_count;
    int         *number = fem_alloc((size_t)mesh->element_count, sizeof *number);
    const char **names = fem_calloc((size_t)count, sizeof *names);
    double       begun = fem_seconds();
    if (!number || !names) {
        status = fem_fail(FEM_NO_MEMORY, "decompose: no memory for the labels of %d elements", mesh->element_count);
        goto done;
    }
    FEM_TRY(work_create(&w, mesh, o));
    for (int i = 0; i < count; i++)
        names[i] = !sets ? mesh->regions[i].name : i + 1 < count ? mesh->element_sets[i].name : "rest";
    w.names = names;
    if (sets)
        FEM_TRY(label_sets(&w, number));
    else
        memcpy(number, mesh->region, (size_t)mesh->element_count * sizeof *number);
    FEM_TRY(take_given(&w, number, count, sets ? count - 1 : 0));
    FEM_TRY(finish(tree, &w, 0, begun));
done:
    work_destroy(&w);
    fem_free(number), fem_free(names);
    return status;
}

fem_status domain_tree_from_labels(domain_tree *tree, const fem_mesh *mesh, const int *label, int label_count,
                                   const char *const *names, const domain_options *o) {
    fem_status  status = FEM_OK;
    domain_work w = {.given = true, .names = names};
    double      begun = fem_seconds();
    if (o->fixed_count < 0 || (o->fixed_count > 0 && !o->fixed) || label_count < 1)
        return fem_fail(FEM_BAD_INPUT, "decompose: %d labels and %d held vertices, expected >= 1 and >= 0", label_count,
                        o->fixed_count);
    for (int e = 0; e < mesh->element_count; e++)
        if (label[e] < 0 || label[e] >= label_count)
            return fem_fail(FEM_BAD_INPUT, "decompose: the label of element %d is %d, expected 0 to %d",
                            e + mesh->file_base, label[e], label_count - 1);
    FEM_TRY(work_create(&w, mesh, o));
    FEM_TRY(take_given(&w, label, label_count, label_count));
    FEM_TRY(finish(tree, &w, 0, begun));
done:
    work_destroy(&w);
    return status;
}

fem_status domain_decompose(domain_tree *tree, const fem_mesh *mesh, const domain_options *o) {
    fem_status  status = FEM_OK;
    domain_work w = {0};
    double      begun = fem_seconds();
    FEM_TRY(check_options(mesh, o));
    if (o->method == DOMAIN_SETS || o->method == DOMAIN_REGIONS) return decompose_given(tree, mesh, o);
    FEM_TRY(work_create(&w, mesh, o));
    // domains of less than a fifth of the mean join a neighbour; two elements are the least
    w.least = mesh->element_count / o->count / 5;
    if (w.least < 2) w.least = 2;
    if (o->method == DOMAIN_METIS) {
        FEM_TRY(label_metis(&w, o->count));
        if (w.loops == DOMAIN_LOOPS_MERGE) FEM_TRY(domain_join_layers(&w));
    }
    w.begun_with = o->count;
    FEM_TRY(domain_settle(&w));
    FEM_TRY(cut_until(&w, o->count));
    FEM_TRY(finish(tree, &w, o->count, begun));
done:
    work_destroy(&w);
    return status;
}
