// Decomposition: labels from sets, regions, METIS or level sets, made into a tree of domains.
#include "libdomain/decompose_internal.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

domain_options domain_default_options(void) { return (domain_options){.method = DOMAIN_GEODESIC, .count = 10}; }

// All that the stages share.
typedef struct work {
    domain_topology    topology;
    domain_labels      labels;
    domain_graph       graph;
    domain_span        span;
    unsigned char     *held;  // per vertex: DOMAIN_FREE, DOMAIN_GATHERED or DOMAIN_GROUND
    bool               some;  // is any gathered?
    bool               given; // labels are the caller's: kept or refused, not repaired
    domain_loops       loops; // the default resolved
    int                least; // elements of a domain
    const char *const *names;
    int                begun_with, loop_count; // for the report
} work;

static void work_destroy(work *w) {
    domain_topology_destroy(&w->topology);
    domain_labels_destroy(&w->labels);
    domain_graph_destroy(&w->graph);
    domain_span_destroy(&w->span);
    fem_free(w->held);
}

// ---- held vertices ---------------------------------------------------------------------------------------------

// Groups of held vertices that share elements: forest over vertices.
static void join_held(const fem_mesh *mesh, const unsigned char *held, int *forest) {
    int width = fem_element_vertices(mesh->type);
    for (int v = 0; v < mesh->vertex_count; v++) forest[v] = v;
    for (int e = 0; e < mesh->element_count; e++) {
        const int *v = mesh->elements + (size_t)e * (size_t)width;
        int        first = -1;
        for (int k = 0; k < width; k++) {
            if (!held[v[k]]) continue;
            if (first >= 0) domain_join(forest, first, v[k]);
            first = v[k];
        }
    }
}

// Marks what becomes of every held vertex: gathered into the root, or, outside the largest group, tied to the ground.
static fem_status mark_held(work *w, const domain_options *o) {
    const fem_mesh *mesh = w->topology.mesh;
    fem_status      status = FEM_OK;
    int            *forest = fem_alloc((size_t)mesh->vertex_count, sizeof *forest), *size = NULL, largest = -1;
    w->held = fem_calloc((size_t)mesh->vertex_count, 1);
    size = fem_calloc((size_t)mesh->vertex_count, sizeof *size);
    if (!w->held || !forest || !size) {
        status = fem_fail(FEM_NO_MEMORY, "decompose: no memory for %d vertices", mesh->vertex_count);
        goto done;
    }
    for (int i = 0; i < o->fixed_count; i++) {
        int v = o->fixed[i];
        if (v < 0 || v >= mesh->vertex_count) {
            status =
                fem_fail(FEM_BAD_INPUT, "decompose: held vertex %lld is outside %d..%d", (long long)v + mesh->file_base,
                         mesh->file_base, mesh->vertex_count - 1 + mesh->file_base);
            goto done;
        }
        if (w->topology.around_start[v] < w->topology.around_start[v + 1]) w->held[v] = DOMAIN_GATHERED, w->some = true;
    }
    if (o->fixed_count > 0 && !w->some) {
        status =
            fem_fail(FEM_BAD_INPUT, "decompose: none of the %d held vertices belongs to an element", o->fixed_count);
        goto done;
    }
    if (o->feet == DOMAIN_FEET_MERGE) goto done;
    join_held(mesh, w->held, forest);
    for (int v = 0; v < mesh->vertex_count; v++) {
        if (!w->held[v]) continue;
        int root = domain_find(forest, v);
        size[root]++;
    }
    for (int v = 0; v < mesh->vertex_count; v++)
        if (size[v] > 0 && (largest < 0 || size[v] > size[largest])) largest = v;
    for (int v = 0; v < mesh->vertex_count; v++)
        if (w->held[v] && domain_find(forest, v) != largest) w->held[v] = DOMAIN_GROUND;
done:
    fem_free(forest), fem_free(size);
    return status;
}

// ---- labels from sets, regions, METIS --------------------------------------------------------------------------

// Elements in no set get the label behind the last; it is split into pieces later. names: sets and "rest".
static fem_status label_sets(work *w, int *number) {
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
static fem_status refuse_pieces(work *w, int sets) {
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
static fem_status label_metis(work *w, int parts) {
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

// ---- settling: one piece each, no loops, a root, feet gathered ---------------------------------------------------

// The domain that has most of the gathered vertices, or the most central one; of equals the larger.
static fem_status choose_root(work *w, int *root) {
    const domain_topology *t = &w->topology;
    if (!w->some) return domain_graph_centre(&w->graph, w->labels.size, root);
    int  n = w->labels.count;
    int *count = fem_calloc((size_t)n, sizeof *count), *seen = fem_alloc((size_t)n, sizeof *seen);
    if (!count || !seen) {
        fem_free(count), fem_free(seen);
        return fem_fail(FEM_NO_MEMORY, "decompose: no memory for %d domains", n);
    }
    for (int i = 0; i < n; i++) seen[i] = -1;
    for (int v = 0; v < t->mesh->vertex_count; v++)
        for (int i = t->around_start[v]; w->held[v] == DOMAIN_GATHERED && i < t->around_start[v + 1]; i++) {
            int label = w->labels.label[t->around[i]];
            if (seen[label] != v) seen[label] = v, count[label]++;
        }
    *root = 0;
    for (int i = 1; i < n; i++)
        if (count[i] > count[*root] || (count[i] == count[*root] && w->labels.size[i] > w->labels.size[*root]))
            *root = i;
    fem_free(count), fem_free(seen);
    return FEM_OK;
}

// Parts at equal distance from the root that hang together from there on lie on a loop. Joining them leaves a tree of
// layers, where joining whole loops would leave little of what METIS cuts.
static fem_status join_layers(work *w) {
    fem_status status = FEM_OK;
    int        n = w->labels.count, root, *steps = NULL, *queue = NULL, *sets = NULL, *forest = NULL, *first = NULL;
    FEM_TRY(domain_graph_create(&w->graph, &w->topology, &w->labels));
    FEM_TRY(choose_root(w, &root));
    steps = fem_alloc((size_t)n, sizeof *steps), queue = fem_alloc((size_t)n, sizeof *queue);
    sets = fem_alloc((size_t)n, sizeof *sets), forest = fem_alloc((size_t)n, sizeof *forest);
    first = fem_alloc((size_t)n, sizeof *first);
    if (!steps || !queue || !sets || !forest || !first) {
        status = fem_fail(FEM_NO_MEMORY, "decompose: no memory for %d parts", n);
        goto done;
    }
    int count = domain_graph_steps(&w->graph, root, steps, queue);
    for (int i = 0; i < n; i++) sets[i] = forest[i] = i, first[i] = -1;
    for (int end = count, begin; end > 0; end = begin) { // from the farthest layer to the root
        int layer = steps[queue[end - 1]];
        for (begin = end; begin > 0 && steps[queue[begin - 1]] == layer;) begin--;
        for (int i = begin; i < end; i++)
            for (int k = w->graph.start[queue[i]]; k < w->graph.start[queue[i] + 1]; k++) {
                int other = domain_graph_other(&w->graph, w->graph.incident[k], queue[i]);
                if (steps[other] >= layer) domain_join(sets, queue[i], other);
            }
        for (int i = begin; i < end; i++) first[domain_find(sets, queue[i])] = -1;
        for (int i = begin; i < end; i++) { // those of this layer that hang together from here on become one
            int set = domain_find(sets, queue[i]);
            if (first[set] < 0)
                first[set] = queue[i];
            else
                domain_join(forest, first[set], queue[i]);
        }
    }
    FEM_TRY(domain_labels_join(&w->labels, w->topology.mesh->element_count, forest));
done:
    fem_free(steps), fem_free(queue), fem_free(sets), fem_free(forest), fem_free(first);
    domain_graph_destroy(&w->graph);
    return status;
}

// Two parts in how many points? For the message about domains that no face joins to the others.
static fem_status refuse_apart(work *w, int node, const int *steps) {
    const domain_topology *t = &w->topology;
    const fem_mesh        *mesh = t->mesh;
    int                    points = 0, other = -1;
    char                   name[64], other_name[64];
    for (int v = 0; v < mesh->vertex_count; v++) {
        int  found = -1;
        bool inside = false;
        for (int i = t->around_start[v]; i < t->around_start[v + 1]; i++) {
            int label = w->labels.label[t->around[i]];
            if (label == node) inside = true;
            if (steps[label] >= 0 && (other < 0 || label == other)) found = label;
        }
        if (inside && found >= 0) points++, other = found;
    }
    domain_label_name(name, &w->labels, node, w->names);
    if (w->given && other >= 0) {
        domain_label_name(other_name, &w->labels, other, w->names);
        return fem_fail(FEM_BAD_INPUT,
                        "decompose: %s touches %s in %d point%s and shares no face with it: an interface needs three "
                        "points that are not on a line",
                        name, other_name, points, points == 1 ? "" : "s");
    }
    int e = 0;
    while (w->labels.label[e] != node) e++;
    return fem_fail(FEM_BAD_INPUT,
                    "decompose: the body does not hang together through faces: nothing leads to element %d%s%s",
                    e + mesh->file_base, w->given ? " of " : "", w->given ? name : "");
}

static fem_status check_connected(work *w) {
    fem_status status = FEM_OK;
    size_t     n = (size_t)w->graph.nodes;
    int       *steps = fem_alloc(n, sizeof *steps), *queue = fem_alloc(n, sizeof *queue), largest = 0;
    if (!steps || !queue) {
        status = fem_fail(FEM_NO_MEMORY, "decompose: no memory for %d domains", w->graph.nodes);
        goto done;
    }
    for (int i = 1; i < w->graph.nodes; i++)
        if (w->labels.size[i] > w->labels.size[largest]) largest = i;
    if (domain_graph_steps(&w->graph, largest, steps, queue) < w->graph.nodes) {
        int apart = 0;
        while (steps[apart] >= 0) apart++;
        status = refuse_apart(w, apart, steps);
    }
done:
    fem_free(steps), fem_free(queue);
    return status;
}

// A given domain has at least two elements. (One that we cut joins the neighbour that it shares most area with.)
static fem_status refuse_single(const work *w) {
    for (int i = 0; i < w->labels.count; i++) {
        if (w->labels.size[i] > 1 || w->labels.count == 1) continue;
        char name[64];
        int  e = 0;
        while (w->labels.label[e] != i) e++;
        domain_label_name(name, &w->labels, i, w->names);
        return fem_fail(FEM_BAD_INPUT, "decompose: %s has one element, %d: a domain needs at least two", name,
                        e + w->topology.mesh->file_base);
    }
    return FEM_OK;
}

// The points of a patch nearly lie on a line when the second eigenvalue of their covariance is below 1e-6 of the first.
static bool nearly_line(const domain_topology *t, int face_count, const int *faces) {
    double centre[3] = {0, 0, 0}, C[9] = {0}, area = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < face_count; i++) {
            double weights[4];
            double face_area = domain_face_weights(t, faces[i], weights);
            if (pass == 0) area += face_area;
            for (int k = 0; k < t->width; k++) {
                int           v = t->corners[(size_t)faces[i] * (size_t)t->width + (size_t)k];
                const double *x = t->mesh->vertices + 3 * (size_t)v;
                if (pass == 0) {
                    vec3_axpy(centre, weights[k], x);
                    continue;
                }
                double d[3];
                vec3_sub(d, x, centre);
                for (int j = 0; j < 9; j++) C[j] += weights[k] * d[j / 3] * d[j % 3];
            }
        }
        if (!(area > 0)) return true;
        for (int k = 0; pass == 0 && k < 3; k++) centre[k] /= area;
    }
    // eigenvalues a >= b >= c >= 0: the sum of the principal 2x2 minors is ab + ac + bc, between ab and 3 ab
    double trace = C[0] + C[4] + C[8];
    double minors = C[0] * C[4] - C[1] * C[1] + C[0] * C[8] - C[2] * C[2] + C[4] * C[8] - C[5] * C[5];
    return !(minors > 1e-6 * trace * trace);
}

// Joins what must not stay by itself: domains that are too small, to the neighbour with the largest common area, and
// pairs whose interface is nearly a line. The forest is over labels; returns whether anything was joined.
static fem_status join_weak(work *w, int *forest, bool *joined) {
    const domain_graph *g = &w->graph;
    for (int e = 0; e < g->edges; e++) {
        if (!nearly_line(&w->topology, g->face_start[e + 1] - g->face_start[e], g->faces + g->face_start[e])) continue;
        if (w->given) {
            char a[64], b[64];
            domain_label_name(a, &w->labels, g->pair[2 * (size_t)e], w->names);
            domain_label_name(b, &w->labels, g->pair[2 * (size_t)e + 1], w->names);
            return fem_fail(FEM_BAD_INPUT, "decompose: the points of the interface of %s and %s lie on a line", a, b);
        }
        *joined |= domain_join(forest, g->pair[2 * (size_t)e], g->pair[2 * (size_t)e + 1]);
    }
    for (int i = 0; !w->given && i < g->nodes; i++) {
        if (w->labels.size[i] >= w->least) continue;
        int best = -1;
        for (int k = g->start[i]; k < g->start[i + 1]; k++)
            if (best < 0 || g->area[g->incident[k]] > g->area[best]) best = g->incident[k];
        if (best >= 0) *joined |= domain_join(forest, i, domain_graph_other(g, best, i));
    }
    return FEM_OK;
}

static fem_status refuse_loop(const work *w, int edge) {
    char       text[512], name[64];
    size_t     length = 0;
    int       *nodes = NULL, count = 0;
    fem_status status = domain_graph_loop(&w->graph, edge, &nodes, &count);
    if (status != FEM_OK) return status;
    text[0] = 0;
    for (int i = 0; i < count; i++) {
        bool skip = count > 6 && i >= 3 && i < count - 2;
        if (skip && i > 3) continue;
        domain_label_name(name, &w->labels, nodes[i], w->names);
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", i ? " - " : "", skip ? "..." : name);
    }
    domain_label_name(name, &w->labels, nodes[0], w->names);
    fem_free(nodes);
    if (count == 2)
        return fem_fail(FEM_BAD_INPUT,
                        "decompose: the domains form a loop: %s meet in several separate interfaces; merge loops or "
                        "close them by springs",
                        text);
    return fem_fail(FEM_BAD_INPUT, "decompose: %d domains form a loop: %s - %s; merge loops or close them by springs",
                    count, text, name);
}

// Loops: merged, refused, or left to the spanning tree.
static fem_status join_loops(work *w, int *forest, bool *joined) {
    if (w->graph.edges < w->graph.nodes || w->loops == DOMAIN_LOOPS_SPRINGS) return FEM_OK; // a tree
    fem_status     status = FEM_OK;
    unsigned char *bridge = fem_alloc((size_t)w->graph.edges, 1);
    if (!bridge) return fem_fail(FEM_NO_MEMORY, "decompose: no memory for %d interfaces", w->graph.edges);
    FEM_TRY(domain_graph_bridges(&w->graph, bridge));
    for (int e = 0; e < w->graph.edges; e++) {
        if (bridge[e]) continue;
        if (w->loops == DOMAIN_LOOPS_REFUSE) {
            status = refuse_loop(w, e);
            goto done;
        }
        *joined |= domain_join(forest, w->graph.pair[2 * (size_t)e], w->graph.pair[2 * (size_t)e + 1]);
    }
    w->loop_count += w->graph.edges - w->graph.nodes + 1;
done:
    fem_free(bridge);
    return status;
}

// Domains that own gathered vertices, and all above them, join the root.
static fem_status join_feet(work *w, int *forest, bool *joined) {
    if (!w->some) return FEM_OK;
    fem_status status = FEM_OK;
    int       *start = NULL, *tops = NULL;
    FEM_TRY(domain_tops(&w->topology, &w->labels, &w->graph, &w->span, &start, &tops));
    for (int v = 0; v < w->topology.mesh->vertex_count; v++)
        for (int i = start[v]; w->held[v] == DOMAIN_GATHERED && i < start[v + 1]; i++)
            for (int node = tops[i]; node != w->span.root && domain_join(forest, node, w->span.root);) {
                node = domain_graph_other(&w->graph, w->span.parent_edge[node], node);
                *joined = true;
            }
done:
    fem_free(start), fem_free(tops);
    return status;
}

// Repeats until nothing is joined any more: every round joins domains, so it ends.
static fem_status settle(work *w) {
    fem_status status = FEM_OK;
    int        n = w->topology.mesh->element_count, root;
    int       *forest = fem_alloc((size_t)n, sizeof *forest);
    if (!forest) return fem_fail(FEM_NO_MEMORY, "decompose: no memory for %d labels", w->labels.count);
    if (w->given)
        FEM_TRY(refuse_single(w));
    else
        FEM_TRY(domain_labels_split(&w->labels, &w->topology));
    for (bool joined = true; joined;) {
        joined = false;
        for (int i = 0; i < w->labels.count; i++) forest[i] = i;
        domain_graph_destroy(&w->graph);
        domain_span_destroy(&w->span);
        FEM_TRY(domain_graph_create(&w->graph, &w->topology, &w->labels));
        FEM_TRY(check_connected(w));
        FEM_TRY(join_weak(w, forest, &joined));
        if (!joined) FEM_TRY(join_loops(w, forest, &joined));
        if (!joined) {
            FEM_TRY(choose_root(w, &root));
            FEM_TRY(domain_span_create(&w->span, &w->graph, root));
            FEM_TRY(join_feet(w, forest, &joined));
        }
        if (joined) FEM_TRY(domain_labels_join(&w->labels, n, forest));
    }
done:
    fem_free(forest);
    return status;
}

// ---- cutting what is too large ---------------------------------------------------------------------------------

// The next part always goes to the domain with the largest parts; none that was found to have no further cut.
static void share_out(const work *w, int wanted, const unsigned char *final, const int *first, int *share) {
    for (int i = 0; i < w->labels.count; i++) share[i] = 1;
    for (int given = w->labels.count; given < wanted; given++) {
        int best = -1;
        for (int i = 0; i < w->labels.count; i++) {
            if (final[first[i]] || w->labels.size[i] < (share[i] + 1) * w->least) continue;
            if (best < 0 || (double)w->labels.size[i] / share[i] > (double)w->labels.size[best] / share[best]) best = i;
        }
        if (best < 0) return;
        share[best]++;
    }
}

// Marks the elements where the distance starts: at the interface to the parent, or, in the root, at gathered vertices.
static void mark_seeds(const work *w, int domain, int count, const int *elements, unsigned char *seed) {
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
static fem_status cut_domain(const work *w, domain_cutter *cutter, int domain, int wanted, int count,
                             const int *elements, unsigned char *seed, int *number, int *next, unsigned char *final) {
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
                      .least = w->least,
                      .loops = w->loops == DOMAIN_LOOPS_SPRINGS,
                      .patch_count = patches,
                      .patch_start = start,
                      .patch_faces = faces};
    FEM_TRY(domain_cutter_run(cutter, &cut, part, &parts));
    for (int i = 0; i < count; i++) {
        if (part[i] > 0) number[elements[i]] = *next + part[i] - 1;
        seed[elements[i]] = 0;
        if (parts < wanted) final[elements[i]] = 1;
    }
    *next += parts - 1;
done:
    fem_free(start), fem_free(faces), fem_free(part);
    return status;
}

// One round: every domain that is due is cut into its share of the parts that are missing.
static fem_status cut_large(work *w, int wanted, unsigned char *final) {
    fem_status     status = FEM_OK;
    int            n = w->topology.mesh->element_count, *start = NULL, *elements = NULL, next = w->labels.count;
    int           *number = fem_copy(w->labels.label, (size_t)n, sizeof *number), *first = NULL;
    int           *share = fem_alloc((size_t)w->labels.count, sizeof *share);
    unsigned char *seed = fem_calloc((size_t)n, 1);
    domain_cutter *cutter = NULL;
    first = fem_alloc((size_t)w->labels.count, sizeof *first);
    if (!number || !share || !seed || !first) {
        status = fem_fail(FEM_NO_MEMORY, "decompose: no memory to cut %d elements", n);
        goto done;
    }
    FEM_TRY(domain_labels_lists(&w->labels, n, &start, &elements));
    FEM_TRY(domain_cutter_create(&cutter, &w->topology));
    for (int i = 0; i < w->labels.count; i++) first[i] = elements[start[i]];
    share_out(w, wanted, final, first, share);
    for (int i = 0; i < w->labels.count; i++)
        if (share[i] > 1)
            FEM_TRY(cut_domain(w, cutter, i, share[i], start[i + 1] - start[i], elements + start[i], seed, number,
                               &next, final));
    FEM_TRY(domain_labels_set(&w->labels, n, number, next, NULL));
done:
    fem_free(number), fem_free(share), fem_free(seed), fem_free(first), fem_free(start), fem_free(elements);
    domain_cutter_destroy(cutter);
    return status;
}

// Cuts and settles until there are as many domains as wanted, or no more come. Settling joins again what became a loop
// after all, so a round may gain nothing; then the labels before it stay.
static fem_status cut_until(work *w, int wanted) {
    fem_status     status = FEM_OK;
    int            n = w->topology.mesh->element_count;
    int           *before = fem_alloc((size_t)n, sizeof *before);
    unsigned char *final = fem_calloc((size_t)n, 1);
    if (!before || !final) {
        status = fem_fail(FEM_NO_MEMORY, "decompose: no memory to cut %d elements", n);
        goto done;
    }
    enum { ROUNDS = 6 };
    for (int round = 0; round < ROUNDS && w->labels.count < wanted; round++) {
        int count = w->labels.count;
        memcpy(before, w->labels.label, (size_t)n * sizeof *before);
        FEM_TRY(cut_large(w, wanted, final));
        FEM_TRY(settle(w));
        if (w->labels.count < count) {
            FEM_TRY(domain_labels_set(&w->labels, n, before, count, NULL));
            FEM_TRY(settle(w));
            break;
        }
    }
done:
    fem_free(before), fem_free(final);
    return status;
}

// ---- the whole -------------------------------------------------------------------------------------------------

static fem_status check_options(const fem_mesh *mesh, const domain_options *o) {
    bool automatic = o->method == DOMAIN_GEODESIC || o->method == DOMAIN_METIS;
    if (automatic && (o->count < 1 || o->count > mesh->element_count / 2))
        return fem_fail(FEM_BAD_INPUT, "domains.count is %d, expected 1 to %d, half of the elements", o->count,
                        mesh->element_count / 2);
    if (o->fixed_count < 0 || (o->fixed_count > 0 && !o->fixed))
        return fem_fail(FEM_BAD_INPUT, "domains.fixed_count is %d, expected >= 0 and as many vertices", o->fixed_count);
    return FEM_OK;
}

static fem_status work_create(work *w, const fem_mesh *mesh, const domain_options *o) {
    fem_status status = FEM_OK;
    FEM_TRY(domain_topology_create(&w->topology, mesh));
    FEM_TRY(domain_labels_create(&w->labels, mesh->element_count));
    FEM_TRY(mark_held(w, o));
    w->loops = o->loops != DOMAIN_LOOPS_DEFAULT ? o->loops : w->given ? DOMAIN_LOOPS_REFUSE : DOMAIN_LOOPS_MERGE;
done:
    return status;
}

static fem_status finish(domain_tree *tree, work *w, int asked, double begun) {
    fem_status status = domain_tree_write(tree, &w->topology, &w->labels, &w->graph, &w->span, w->held, w->names);
    if (status != FEM_OK) return status;
    tree->report.asked = asked;
    tree->report.merged = w->begun_with > tree->count ? w->begun_with - tree->count : 0;
    tree->report.loops = w->loops == DOMAIN_LOOPS_SPRINGS ? w->graph.edges - w->graph.nodes + 1 : w->loop_count;
    tree->report.seconds = fem_seconds() - begun;
    return FEM_OK;
}

// Numbers per element that were given, as labels; those below `strict` must be in one piece.
static fem_status take_given(work *w, const int *number, int count, int strict) {
    fem_status status = FEM_OK;
    int       *origin = fem_alloc((size_t)count, sizeof *origin);
    if (!origin) return fem_fail(FEM_NO_MEMORY, "decompose: no memory for %d labels", count);
    for (int i = 0; i < count; i++) origin[i] = i;
    FEM_TRY(domain_labels_set(&w->labels, w->topology.mesh->element_count, number, count, origin));
    FEM_TRY(domain_labels_split(&w->labels, &w->topology));
    FEM_TRY(refuse_pieces(w, strict));
    w->begun_with = w->labels.count;
    FEM_TRY(settle(w));
done:
    fem_free(origin);
    return status;
}

static fem_status decompose_given(domain_tree *tree, const fem_mesh *mesh, const domain_options *o) {
    fem_status   status = FEM_OK;
    work         w = {.given = true};
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
    fem_status status = FEM_OK;
    work       w = {.given = true, .names = names};
    double     begun = fem_seconds();
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
    fem_status status = FEM_OK;
    work       w = {0};
    double     begun = fem_seconds();
    FEM_TRY(check_options(mesh, o));
    if (o->method == DOMAIN_SETS || o->method == DOMAIN_REGIONS) return decompose_given(tree, mesh, o);
    FEM_TRY(work_create(&w, mesh, o));
    // domains of less than a fifth of the mean join a neighbour; two elements are the least
    w.least = mesh->element_count / o->count / 5;
    if (w.least < 2) w.least = 2;
    if (o->method == DOMAIN_METIS) {
        FEM_TRY(label_metis(&w, o->count));
        if (w.loops == DOMAIN_LOOPS_MERGE) FEM_TRY(join_layers(&w));
    }
    w.begun_with = o->count;
    FEM_TRY(settle(&w));
    FEM_TRY(cut_until(&w, o->count));
    FEM_TRY(finish(tree, &w, o->count, begun));
done:
    work_destroy(&w);
    return status;
}
