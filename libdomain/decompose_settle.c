// Settles labels: which domain is the root, what must be joined or refused.
#include "libdomain/decompose_internal.h"

#include <stdio.h>
#include <string.h>

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

fem_status domain_mark_held(domain_work *w, const domain_options *o) {
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

// ---- the root --------------------------------------------------------------------------------------------------

// The domain that has most of the gathered vertices, or the most central one; of equals the larger.
static fem_status choose_root(domain_work *w, int *root) {
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

// Parts at equal distance from the root (or an end: layers around a centre would be shells) that hang together from
// there on lie on a loop. Joining them leaves a tree of layers, where joining whole loops would leave little of what
// METIS cuts.
fem_status domain_join_layers(domain_work *w) {
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
    if (!w->some) count = domain_graph_steps(&w->graph, queue[count - 1], steps, queue); // from an end of a free body
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
static fem_status refuse_apart(domain_work *w, int node, const int *steps) {
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

static fem_status check_connected(domain_work *w) {
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
static fem_status refuse_single(const domain_work *w) {
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
static fem_status join_weak(domain_work *w, int *forest, bool *joined) {
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

static fem_status refuse_loop(const domain_work *w, int edge) {
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
static fem_status join_loops(domain_work *w, int *forest, bool *joined) {
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
static fem_status join_feet(domain_work *w, int *forest, bool *joined) {
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

// Domains all of whose vertices lie on the interface to their parent join it: they have nothing to deform by, and
// would hold the interface rigidly.
static fem_status join_bare(domain_work *w, int *forest, bool *joined) {
    if (w->given) return FEM_OK;
    fem_status     status = FEM_OK;
    int           *start = NULL, *tops = NULL;
    unsigned char *own = fem_calloc((size_t)w->graph.nodes, 1);
    if (!own) return fem_fail(FEM_NO_MEMORY, "decompose: no memory for %d domains", w->graph.nodes);
    FEM_TRY(domain_tops(&w->topology, &w->labels, &w->graph, &w->span, &start, &tops));
    for (int i = 0; i < start[w->topology.mesh->vertex_count]; i++) own[tops[i]] = 1;
    for (int i = 0; i < w->graph.nodes; i++) {
        if (own[i] || i == w->span.root) continue;
        *joined |= domain_join(forest, i, domain_graph_other(&w->graph, w->span.parent_edge[i], i));
    }
done:
    fem_free(start), fem_free(tops), fem_free(own);
    return status;
}

// Repeats until nothing is joined any more: every round joins domains, so it ends.
fem_status domain_settle(domain_work *w) {
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
            FEM_TRY(join_bare(w, forest, &joined));
        }
        if (joined) FEM_TRY(domain_labels_join(&w->labels, n, forest));
    }
done:
    fem_free(forest);
    return status;
}
