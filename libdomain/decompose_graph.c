// The graph of domains: nodes are labels, edges are patches of shared faces. Loops, centre, spanning tree.
#include "libdomain/decompose_internal.h"

#include <stdlib.h>
#include <string.h>

// ---- the mesh as faces -----------------------------------------------------------------------------------------

// Triangle: a third of its area each. Quadrilateral: the bilinear patch by 2 x 2 Gauss points, exact where it is flat.
double domain_face_weights(const domain_topology *topology, int face, double weights[4]) {
    const int    *v = topology->corners + (size_t)face * (size_t)topology->width;
    const double *x[4] = {0};
    double        a[3], b[3], n[3], area = 0;
    for (int k = 0; k < topology->width; k++) x[k] = topology->mesh->vertices + 3 * (size_t)v[k], weights[k] = 0;
    if (topology->width == 3) {
        vec3_sub(a, x[1], x[0]), vec3_sub(b, x[2], x[0]), vec3_cross(n, a, b);
        for (int k = 0; k < 3; k++) weights[k] = vec3_norm(n) / 6;
        return vec3_norm(n) / 2;
    }
    const double p = 0.5 - 0.5 / sqrt(3);
    for (int point = 0; point < 4; point++) {
        double s = point & 1 ? p : 1 - p, t = point & 2 ? p : 1 - p;
        double N[4] = {(1 - s) * (1 - t), s * (1 - t), s * t, (1 - s) * t};
        for (int i = 0; i < 3; i++) {
            a[i] = (1 - t) * (x[1][i] - x[0][i]) + t * (x[2][i] - x[3][i]);
            b[i] = (1 - s) * (x[3][i] - x[0][i]) + s * (x[2][i] - x[1][i]);
        }
        vec3_cross(n, a, b);
        for (int k = 0; k < 4; k++) weights[k] += N[k] * vec3_norm(n) / 4;
        area += vec3_norm(n) / 4;
    }
    return area;
}

fem_status domain_topology_create(domain_topology *topology, const fem_mesh *mesh) {
    fem_status      status = FEM_OK;
    domain_topology t = {.mesh = mesh, .width = mesh->type == FEM_T4 ? 3 : 4};
    size_t          n = (size_t)mesh->element_count;
    FEM_TRY(fem_mesh_inner_faces(mesh, &t.face_count, &t.pair, &t.corners));
    FEM_TRY(fem_mesh_vertex_elements(mesh, &t.around_start, &t.around));
    t.area = fem_alloc((size_t)t.face_count, sizeof *t.area);
    t.face_start = fem_calloc(n + 2, sizeof *t.face_start);
    t.faces = fem_alloc(2 * (size_t)t.face_count, sizeof *t.faces);
    if (!t.area || !t.face_start || !t.faces) {
        status = fem_fail(FEM_NO_MEMORY, "decompose: no memory for the faces of %d elements", mesh->element_count);
        goto done;
    }
    for (int i = 0; i < 2 * t.face_count; i++) t.face_start[t.pair[i] + 2]++;
    for (size_t e = 0; e < n; e++) t.face_start[e + 2] += t.face_start[e + 1];
    for (int i = 0; i < 2 * t.face_count; i++) t.faces[t.face_start[t.pair[i] + 1]++] = i / 2;
    for (int f = 0; f < t.face_count; f++) {
        double weights[4];
        t.area[f] = domain_face_weights(&t, f, weights);
    }
    *topology = t;
    t = (domain_topology){0};
done:
    domain_topology_destroy(&t);
    return status;
}

void domain_topology_destroy(domain_topology *t) {
    fem_free(t->pair), fem_free(t->corners), fem_free(t->area), fem_free(t->face_start), fem_free(t->faces);
    fem_free(t->around_start), fem_free(t->around);
    *t = (domain_topology){0};
}

// ---- building --------------------------------------------------------------------------------------------------

// Orders faces by one end of their pair of nodes, keeping the order of equals. bucket: nodes + 1.
static void sort_by_node(int count, const int *from, const int *node, int nodes, int *bucket, int *to) {
    memset(bucket, 0, ((size_t)nodes + 1) * sizeof *bucket);
    for (int i = 0; i < count; i++) bucket[node[from[i]] + 1]++;
    for (int k = 0; k < nodes; k++) bucket[k + 1] += bucket[k];
    for (int i = 0; i < count; i++) to[bucket[node[from[i]]]++] = from[i];
}

typedef struct patch_work {
    int *low, *high;    // per face: its two nodes
    int *order, *other; // faces that lie between nodes
    int *forest;        // per place in `order`
    int *seen, *place;  // per vertex: group that saw it last, and where
    int *bucket;
} patch_work;

static void patch_work_destroy(patch_work *w) {
    fem_free(w->low), fem_free(w->high), fem_free(w->order), fem_free(w->other), fem_free(w->forest);
    fem_free(w->seen), fem_free(w->place), fem_free(w->bucket);
}

// Joins the faces order[first .. last-1], all between the same two nodes, that have a vertex in common.
static void join_patches(const domain_topology *t, patch_work *w, int first, int last) {
    for (int i = first; i < last; i++) w->forest[i] = i;
    for (int i = first; i < last; i++) {
        const int *v = t->corners + (size_t)w->order[i] * (size_t)t->width;
        for (int k = 0; k < t->width; k++) {
            if (w->seen[v[k]] == first)
                domain_join(w->forest, i, w->place[v[k]]);
            else
                w->seen[v[k]] = first, w->place[v[k]] = i;
        }
    }
}

// Appends the patches of one group as edges; their faces go to `g->faces` patch by patch.
static void append_patches(domain_graph *g, const domain_topology *t, patch_work *w, int first, int last) {
    int  begin = g->edges;
    int *edge = w->other; // per place: edge of the patch; order's twin is free by now
    for (int i = first; i < last; i++) {
        int root = domain_find(w->forest, i);
        if (root == i) {
            int face = w->order[i];
            g->pair[2 * (size_t)g->edges] = w->low[face], g->pair[2 * (size_t)g->edges + 1] = w->high[face];
            g->area[g->edges] = 0;
            g->face_start[g->edges + 1] = 0;
            edge[i] = g->edges++;
        } else
            edge[i] = edge[root];
        g->area[edge[i]] += t->area[w->order[i]];
        g->face_start[edge[i] + 1]++;
    }
    for (int e = begin; e < g->edges; e++) g->face_start[e + 1] += g->face_start[e];
    for (int i = last - 1; i >= first; i--) g->faces[--g->face_start[edge[i] + 1]] = w->order[i];
    // every end has moved to the beginning of its patch: put it back
    for (int e = begin; e < g->edges; e++) g->face_start[e + 1] = e + 1 < g->edges ? g->face_start[e + 2] : last;
}

static fem_status list_incident(domain_graph *g) {
    g->start = fem_calloc((size_t)g->nodes + 2, sizeof *g->start);
    g->incident = fem_alloc(2 * (size_t)g->edges, sizeof *g->incident);
    if (!g->start || !g->incident) return fem_fail(FEM_NO_MEMORY, "decompose: no memory for %d domains", g->nodes);
    for (int i = 0; i < 2 * g->edges; i++) g->start[g->pair[i] + 2]++;
    for (int k = 0; k < g->nodes; k++) g->start[k + 2] += g->start[k + 1];
    for (int i = 0; i < 2 * g->edges; i++) g->incident[g->start[g->pair[i] + 1]++] = i / 2;
    return FEM_OK;
}

fem_status domain_graph_create(domain_graph *graph, const domain_topology *t, const domain_labels *labels) {
    fem_status   status = FEM_OK;
    domain_graph g = {.nodes = labels->count};
    patch_work   w = {0};
    int          count = 0;
    size_t       faces = (size_t)t->face_count, vertices = (size_t)t->mesh->vertex_count;
    w.low = fem_alloc(faces, sizeof *w.low), w.high = fem_alloc(faces, sizeof *w.high);
    w.order = fem_alloc(faces, sizeof *w.order), w.other = fem_alloc(faces, sizeof *w.other);
    w.forest = fem_alloc(faces, sizeof *w.forest);
    w.seen = fem_alloc(vertices, sizeof *w.seen), w.place = fem_alloc(vertices, sizeof *w.place);
    w.bucket = fem_alloc((size_t)g.nodes + 1, sizeof *w.bucket);
    if (!w.low || !w.high || !w.order || !w.other || !w.forest || !w.seen || !w.place || !w.bucket) {
        status = fem_fail(FEM_NO_MEMORY, "decompose: no memory for the graph of %d domains", g.nodes);
        goto done;
    }
    for (int f = 0; f < t->face_count; f++) {
        int a = labels->label[t->pair[2 * (size_t)f]], b = labels->label[t->pair[2 * (size_t)f + 1]];
        w.low[f] = a < b ? a : b, w.high[f] = a < b ? b : a;
        if (a != b) w.order[count++] = f;
    }
    sort_by_node(count, w.order, w.high, g.nodes, w.bucket, w.other);
    sort_by_node(count, w.other, w.low, g.nodes, w.bucket, w.order);
    g.pair = fem_alloc((size_t)count, 2 * sizeof *g.pair); // a patch has at least one face
    g.area = fem_alloc((size_t)count, sizeof *g.area);
    g.face_start = fem_alloc((size_t)count + 1, sizeof *g.face_start);
    g.faces = fem_alloc((size_t)count, sizeof *g.faces);
    if (!g.pair || !g.area || !g.face_start || !g.faces) {
        status = fem_fail(FEM_NO_MEMORY, "decompose: no memory for %d faces between domains", count);
        goto done;
    }
    g.face_start[0] = 0;
    for (size_t v = 0; v < vertices; v++) w.seen[v] = -1;
    for (int first = 0, last; first < count; first = last) {
        int low = w.low[w.order[first]], high = w.high[w.order[first]];
        for (last = first + 1; last < count && w.low[w.order[last]] == low && w.high[w.order[last]] == high;) last++;
        join_patches(t, &w, first, last);
        append_patches(&g, t, &w, first, last);
    }
    FEM_TRY(list_incident(&g));
    *graph = g;
    g = (domain_graph){0};
done:
    patch_work_destroy(&w);
    domain_graph_destroy(&g);
    return status;
}

void domain_graph_destroy(domain_graph *g) {
    fem_free(g->pair), fem_free(g->area), fem_free(g->face_start), fem_free(g->faces);
    fem_free(g->start), fem_free(g->incident);
    *g = (domain_graph){0};
}

// ---- steps, loops, centre --------------------------------------------------------------------------------------

int domain_graph_steps(const domain_graph *g, int from, int *steps, int *queue) {
    int count = 0;
    for (int k = 0; k < g->nodes; k++) steps[k] = -1;
    steps[from] = 0, queue[count++] = from;
    for (int at = 0; at < count; at++)
        for (int i = g->start[queue[at]]; i < g->start[queue[at] + 1]; i++) {
            int other = domain_graph_other(g, g->incident[i], queue[at]);
            if (steps[other] < 0) steps[other] = steps[queue[at]] + 1, queue[count++] = other;
        }
    return count;
}

// [Tarjan 1974, A note on finding the bridges of a graph] with a stack of our own. `entered` counts nodes as they are
// found; low[v] is the earliest node that v's part of the search reaches without the edge it came by, so that edge is a
// bridge when low[v] is v itself. Of two patches of a pair only one is the edge one came by.
fem_status domain_graph_bridges(const domain_graph *g, unsigned char *bridge) {
    fem_status status = FEM_OK;
    size_t     n = (size_t)g->nodes;
    int       *entered = fem_alloc(n, sizeof *entered), *low = fem_alloc(n, sizeof *low);
    int *came = fem_alloc(n, sizeof *came), *next = fem_alloc(n, sizeof *next), *stack = fem_alloc(n, sizeof *stack);
    if (!entered || !low || !came || !next || !stack) {
        status = fem_fail(FEM_NO_MEMORY, "decompose: no memory to look for loops among %d domains", g->nodes);
        goto done;
    }
    int clock = 0;
    for (int k = 0; k < g->nodes; k++) entered[k] = -1;
    memset(bridge, 0, (size_t)g->edges);
    for (int root = 0; root < g->nodes; root++) {
        if (entered[root] >= 0) continue;
        int top = 0;
        stack[top++] = root;
        entered[root] = low[root] = clock++, came[root] = -1, next[root] = g->start[root];
        while (top > 0) {
            int v = stack[top - 1];
            if (next[v] < g->start[v + 1]) {
                int edge = g->incident[next[v]++], w = domain_graph_other(g, edge, v);
                if (edge == came[v]) continue;
                if (entered[w] < 0) {
                    entered[w] = low[w] = clock++, came[w] = edge, next[w] = g->start[w];
                    stack[top++] = w;
                } else if (entered[w] < low[v])
                    low[v] = entered[w];
                continue;
            }
            top--;
            if (came[v] < 0) continue;
            int above = domain_graph_other(g, came[v], v);
            if (low[v] == entered[v]) bridge[came[v]] = 1;
            if (low[v] < low[above]) low[above] = low[v];
        }
    }
done:
    fem_free(entered), fem_free(low), fem_free(came), fem_free(next), fem_free(stack);
    return status;
}

// The shortest way from one end of the edge to the other that does not use it.
fem_status domain_graph_loop(const domain_graph *g, int edge, int **nodes, int *count) {
    int  from = g->pair[2 * (size_t)edge], to = g->pair[2 * (size_t)edge + 1], found = 0;
    int *came = fem_alloc((size_t)g->nodes, sizeof *came), *queue = fem_alloc((size_t)g->nodes, sizeof *queue);
    if (!came || !queue) {
        fem_free(came), fem_free(queue);
        return fem_fail(FEM_NO_MEMORY, "decompose: no memory to name a loop of domains");
    }
    for (int k = 0; k < g->nodes; k++) came[k] = -1;
    came[to] = to, queue[found++] = to;
    for (int at = 0; at < found && came[from] < 0; at++)
        for (int i = g->start[queue[at]]; i < g->start[queue[at] + 1]; i++) {
            int other = domain_graph_other(g, g->incident[i], queue[at]);
            if (g->incident[i] != edge && came[other] < 0) came[other] = queue[at], queue[found++] = other;
        }
    found = 0;
    for (int k = from; k >= 0; k = k == to ? -1 : came[k]) queue[found++] = k;
    *nodes = queue, *count = found;
    fem_free(came);
    return FEM_OK;
}

// The middle of a longest way: exact on trees, near it on graphs.
fem_status domain_graph_centre(const domain_graph *g, const int *size, int *centre) {
    int *steps = fem_alloc((size_t)g->nodes, sizeof *steps), *queue = fem_alloc((size_t)g->nodes, sizeof *queue);
    int *back = fem_alloc((size_t)g->nodes, sizeof *back);
    if (!steps || !queue || !back) {
        fem_free(steps), fem_free(queue), fem_free(back);
        return fem_fail(FEM_NO_MEMORY, "decompose: no memory for the centre of %d domains", g->nodes);
    }
    int count = domain_graph_steps(g, 0, steps, queue), end = queue[count - 1];
    count = domain_graph_steps(g, end, steps, queue);
    int other = queue[count - 1], length = steps[other];
    domain_graph_steps(g, other, back, queue);
    int best = end;
    for (int k = 0; k < g->nodes; k++) { // of the nodes on a longest way, those in its middle
        if (steps[k] < 0 || steps[k] + back[k] != length || (steps[k] != length / 2 && back[k] != length / 2)) continue;
        bool middle = steps[best] + back[best] == length && (steps[best] == length / 2 || back[best] == length / 2);
        if (!middle || size[k] > size[best]) best = k;
    }
    *centre = best;
    fem_free(steps), fem_free(queue), fem_free(back);
    return FEM_OK;
}

// ---- spanning tree ---------------------------------------------------------------------------------------------

fem_status domain_span_create(domain_span *span, const domain_graph *g, int root) {
    size_t      n = (size_t)g->nodes;
    domain_span s = {.root = root, .level = fem_alloc(n, sizeof(int)), .parent_edge = fem_alloc(n, sizeof(int))};
    s.order = fem_alloc(n, sizeof *s.order);
    if (!s.level || !s.parent_edge || !s.order) {
        domain_span_destroy(&s);
        return fem_fail(FEM_NO_MEMORY, "decompose: no memory for a tree of %d domains", g->nodes);
    }
    domain_graph_steps(g, root, s.level, s.order);
    for (int k = 0; k < g->nodes; k++) {
        s.parent_edge[k] = -1;
        for (int i = g->start[k]; i < g->start[k + 1]; i++) {
            int edge = g->incident[i];
            if (s.level[domain_graph_other(g, edge, k)] != s.level[k] - 1) continue;
            if (s.parent_edge[k] < 0 || g->area[edge] > g->area[s.parent_edge[k]]) s.parent_edge[k] = edge;
        }
    }
    int count = 0;
    s.order[count++] = root;
    for (int at = 0; at < count; at++) // edges of a node are ordered by the other node
        for (int i = g->start[s.order[at]]; i < g->start[s.order[at] + 1]; i++) {
            int other = domain_graph_other(g, g->incident[i], s.order[at]);
            if (s.parent_edge[other] == g->incident[i] && s.level[other] > s.level[s.order[at]])
                s.order[count++] = other;
        }
    *span = s;
    return FEM_OK;
}

void domain_span_destroy(domain_span *s) {
    fem_free(s->level), fem_free(s->parent_edge), fem_free(s->order);
    *s = (domain_span){0};
}

// ---- vertices of patches ---------------------------------------------------------------------------------------

static int compare_ints(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

int domain_patch_points(const domain_topology *t, int face_count, const int *faces, unsigned char *mark, double *sum,
                        int *vertices, double *weights) {
    int count = 0;
    for (int i = 0; i < face_count; i++) {
        const int *v = t->corners + (size_t)faces[i] * (size_t)t->width;
        double     share[4];
        domain_face_weights(t, faces[i], share);
        for (int k = 0; k < t->width; k++) {
            if (!mark[v[k]]) mark[v[k]] = 1, sum[v[k]] = 0, vertices[count++] = v[k];
            sum[v[k]] += share[k];
        }
    }
    qsort(vertices, (size_t)count, sizeof *vertices, compare_ints);
    for (int i = 0; i < count; i++) weights[i] = sum[vertices[i]], mark[vertices[i]] = 0;
    return count;
}
