// The level tree of a domain: how the distance from its seeds branches.
//
// 1. Distance: Dijkstra over the vertices of the domain, smoothed, averaged over elements. A flood from the seeds that
//    always goes on with the lowest element, and never counts one lower than the one it came from, makes it monotone:
//    from every element a way leads down to the seeds through faces.
// 2. Level tree: with the distance rounded to levels, the nodes are the connected sets C of elements at level k or
//    above (those that have an element of level k itself). Two such sets are nested or apart, so they form a tree: the
//    join tree of the distance [Carr, Snoeyink & Axen 2003, Computing contour trees in all dimensions]. A limb is a
//    branch of it.
#include "libdomain/decompose_cut.h"

#include <limits.h>
#include <string.h>

// ---- heap ------------------------------------------------------------------------------------------------------

static bool heap_before(const domain_heap *h, int a, int b) {
    return h->key[a] < h->key[b] || (h->key[a] == h->key[b] && a < b);
}

static void heap_put(domain_heap *h, int at, int item) { h->item[at] = item, h->place[item] = at; }

static void heap_rise(domain_heap *h, int at) {
    int item = h->item[at];
    for (; at > 0 && heap_before(h, item, h->item[(at - 1) / 2]); at = (at - 1) / 2)
        heap_put(h, at, h->item[(at - 1) / 2]);
    heap_put(h, at, item);
}

// The key of the item is new or lower than it was.
void domain_heap_push(domain_heap *h, int item) {
    if (h->place[item] < 0) heap_put(h, h->count++, item);
    heap_rise(h, h->place[item]);
}

int domain_heap_pop(domain_heap *h) {
    int first = h->item[0], item = h->item[--h->count], at = 0;
    h->place[first] = -1;
    if (h->count == 0) return first;
    for (int child; (child = 2 * at + 1) < h->count; at = child) {
        if (child + 1 < h->count && heap_before(h, h->item[child + 1], h->item[child])) child++;
        if (!heap_before(h, h->item[child], item)) break;
        heap_put(h, at, h->item[child]);
    }
    heap_put(h, at, item);
    return first;
}

// ---- the cutter ------------------------------------------------------------------------------------------------

fem_status domain_cutter_create(domain_cutter **out, const domain_topology *t) {
    size_t         vertices = (size_t)t->mesh->vertex_count, elements = (size_t)t->mesh->element_count;
    size_t         most = vertices > elements ? vertices : elements;
    domain_cutter *c = fem_calloc(1, sizeof *c);
    if (!c) return fem_fail(FEM_NO_MEMORY, "decompose: no memory to cut");
    c->t = t;
    c->queue.item = fem_alloc(most, sizeof *c->queue.item), c->queue.place = fem_alloc(most, sizeof *c->queue.place);
    c->distance = fem_alloc(vertices, sizeof *c->distance), c->smooth = fem_alloc(vertices, sizeof *c->smooth);
    c->share = fem_alloc(vertices, sizeof *c->share);
    c->local = fem_alloc(elements, sizeof *c->local), c->flooded = fem_alloc(elements, sizeof *c->flooded);
    c->seen = fem_alloc(vertices, sizeof *c->seen), c->place = fem_alloc(vertices, sizeof *c->place);
    if (!c->queue.item || !c->queue.place || !c->distance || !c->smooth || !c->share || !c->local || !c->flooded ||
        !c->seen || !c->place) {
        domain_cutter_destroy(c);
        return fem_fail(FEM_NO_MEMORY, "decompose: no memory to cut %zu elements", elements);
    }
    for (size_t i = 0; i < most; i++) c->queue.place[i] = -1;
    for (size_t v = 0; v < vertices; v++) c->distance[v] = INFINITY;
    for (size_t e = 0; e < elements; e++) c->local[e] = -1;
    *out = c;
    return FEM_OK;
}

void domain_cutter_destroy(domain_cutter *c) {
    if (!c) return;
    fem_free(c->queue.item), fem_free(c->queue.place), fem_free(c->distance), fem_free(c->smooth), fem_free(c->share);
    fem_free(c->local), fem_free(c->flooded), fem_free(c->seen), fem_free(c->place);
    fem_free(c);
}

static const int *corners_of(const fem_mesh *mesh, int element) {
    return mesh->elements + (size_t)element * (size_t)fem_element_vertices(mesh->type);
}

// ---- 1. distance -----------------------------------------------------------------------------------------------

static void forget_distance(domain_cutter *c, const domain_cut *cut) {
    int width = fem_element_vertices(c->t->mesh->type);
    for (int i = 0; i < cut->element_count; i++)
        for (int k = 0; k < width; k++) c->distance[corners_of(c->t->mesh, cut->elements[i])[k]] = INFINITY;
}

// Runs the queue empty; steps lead from a vertex to all vertices of its elements in the domain.
// Returns the vertex that was reached last.
static int spread(domain_cutter *c) {
    const fem_mesh *mesh = c->t->mesh;
    int             width = fem_element_vertices(mesh->type), last = -1;
    c->queue.key = c->distance;
    while (c->queue.count > 0) {
        int v = last = domain_heap_pop(&c->queue);
        for (int i = c->t->around_start[v]; i < c->t->around_start[v + 1]; i++) {
            if (c->local[c->t->around[i]] < 0) continue;
            const int *corners = corners_of(mesh, c->t->around[i]);
            for (int k = 0; k < width; k++) {
                int    w = corners[k];
                double d =
                    c->distance[v] + vec3_distance(mesh->vertices + 3 * (size_t)v, mesh->vertices + 3 * (size_t)w);
                if (d < c->distance[w]) c->distance[w] = d, domain_heap_push(&c->queue, w);
            }
        }
    }
    return last;
}

static void start_at(domain_cutter *c, int vertex) {
    c->queue.key = c->distance;
    if (c->distance[vertex] == 0) return;
    c->distance[vertex] = 0;
    domain_heap_push(&c->queue, vertex);
}

// Each vertex becomes the mean of its elements' means, a few times: Dijkstra's ways along edges are zigzag.
static void smooth_distance(domain_cutter *c, const domain_cut *cut, int passes) {
    const fem_mesh *mesh = c->t->mesh;
    int             width = fem_element_vertices(mesh->type);
    for (int pass = 0; pass < passes; pass++) {
        for (int i = 0; i < cut->element_count; i++)
            for (int k = 0; k < width; k++) {
                int v = corners_of(mesh, cut->elements[i])[k];
                c->smooth[v] = 0, c->share[v] = 0;
            }
        for (int i = 0; i < cut->element_count; i++) {
            const int *v = corners_of(mesh, cut->elements[i]);
            double     mean = 0;
            for (int k = 0; k < width; k++) mean += c->distance[v[k]] / width;
            for (int k = 0; k < width; k++) c->smooth[v[k]] += mean, c->share[v[k]]++;
        }
        for (int i = 0; i < cut->element_count; i++)
            for (int k = 0; k < width; k++) {
                int v = corners_of(mesh, cut->elements[i])[k];
                c->distance[v] = c->smooth[v] / c->share[v];
            }
    }
}

// flooded[e]: the distance, made monotone. Seeds are 0. `waiting` marks what is or was in the queue.
static void flood(domain_cutter *c, const domain_cut *cut, const unsigned char *seed, unsigned char *reached) {
    const domain_topology *t = c->t;
    int                    width = fem_element_vertices(t->mesh->type);
    c->queue.key = c->flooded;
    for (int i = 0; i < cut->element_count; i++) {
        if (!seed[i]) continue;
        c->flooded[cut->elements[i]] = 0;
        reached[i] = 1;
        domain_heap_push(&c->queue, cut->elements[i]);
    }
    while (c->queue.count > 0) {
        int e = domain_heap_pop(&c->queue);
        for (int i = t->face_start[e]; i < t->face_start[e + 1]; i++) {
            int other = domain_across(t, t->faces[i], e);
            if (c->local[other] < 0 || reached[c->local[other]]) continue;
            double mean = 0;
            for (int k = 0; k < width; k++) mean += c->distance[corners_of(t->mesh, other)[k]] / width;
            c->flooded[other] = fmax(mean, c->flooded[e]);
            reached[c->local[other]] = 1;
            domain_heap_push(&c->queue, other);
        }
    }
}

// Fills flooded. Without seeds the distance starts at an end of the domain: the vertex farthest from any.
static void find_distance(domain_cutter *c, const domain_cut *cut, unsigned char *seed, unsigned char *reached) {
    const fem_mesh *mesh = c->t->mesh;
    int             width = fem_element_vertices(mesh->type), end = -1;
    bool            some = false;
    for (int i = 0; i < cut->element_count; i++) {
        seed[i] = cut->seed && cut->seed[cut->elements[i]];
        for (int k = 0; seed[i] && k < width; k++) start_at(c, corners_of(mesh, cut->elements[i])[k]);
        some = some || seed[i];
    }
    if (!some) {
        start_at(c, corners_of(mesh, cut->elements[0])[0]);
        end = spread(c);
        forget_distance(c, cut);
        start_at(c, end);
        for (int i = c->t->around_start[end]; i < c->t->around_start[end + 1]; i++)
            if (c->local[c->t->around[i]] >= 0) seed[c->local[c->t->around[i]]] = 1;
    }
    spread(c);
    smooth_distance(c, cut, 4);
    flood(c, cut, seed, reached);
    forget_distance(c, cut);
}

// ---- 2. level tree ---------------------------------------------------------------------------------------------

typedef struct level_work {
    int           *level;                     // per element of the domain
    int            levels;                    //
    int           *element_start, *by_level;  // elements of a level
    int           *crossing_start, *crossing; // faces that cross from below a level to it or above it
    int           *forest, *latest;           // per element: union-find, and the node of a set so far
    int           *touched, touched_count;    // nodes that became part of a larger one at this level
    int           *sorted, *forest2, *bucket; // for patches
    unsigned char *seed, *reached;            // per element
} level_work;

void domain_levels_destroy(domain_levels *tree) {
    fem_free(tree->parent), fem_free(tree->weight), fem_free(tree->volume), fem_free(tree->area),
        fem_free(tree->patches);
    fem_free(tree->node_of);
    *tree = (domain_levels){0};
}

static void level_work_destroy(level_work *w) {
    fem_free(w->level), fem_free(w->element_start), fem_free(w->by_level), fem_free(w->crossing_start);
    fem_free(w->crossing), fem_free(w->forest), fem_free(w->latest), fem_free(w->touched), fem_free(w->sorted);
    fem_free(w->forest2), fem_free(w->bucket), fem_free(w->seed), fem_free(w->reached);
}

// Is face f of element e inside the domain, and e the one that answers for it?
static bool own_face(const domain_cutter *c, int f, int e) {
    return c->t->pair[2 * (size_t)f] == e && c->local[domain_across(c->t, f, e)] >= 0;
}

// Levels a half of the mean step between neighbours apart, or wider, so that faces cross eight levels on average at
// most and the levels are not more than a few per element.
static void choose_levels(const domain_cutter *c, const domain_cut *cut, level_work *w) {
    double step = 0, top = 0;
    int    faces = 0;
    for (int i = 0; i < cut->element_count; i++) {
        int e = cut->elements[i];
        top = fmax(top, c->flooded[e]);
        for (int k = c->t->face_start[e]; k < c->t->face_start[e + 1]; k++) {
            if (!own_face(c, c->t->faces[k], e)) continue;
            step += fabs(c->flooded[e] - c->flooded[domain_across(c->t, c->t->faces[k], e)]);
            faces++;
        }
    }
    double width = faces > 0 ? 0.5 * step / faces : 1;
    width = fmax(width, top / (4.0 * cut->element_count + 1));
    for (int i = 0; i < cut->element_count; i++)
        w->level[i] = width > 0 ? (int)(c->flooded[cut->elements[i]] / width) : 0;
    w->levels = (width > 0 ? (int)(top / width) : 0) + 1;
}

static fem_status list_levels(const domain_cutter *c, const domain_cut *cut, level_work *w) {
    size_t n = (size_t)cut->element_count, levels = (size_t)w->levels, total = 0;
    w->element_start = fem_calloc(levels + 2, sizeof(int)), w->by_level = fem_alloc(n, sizeof(int));
    w->crossing_start = fem_calloc(levels + 2, sizeof(int));
    if (!w->element_start || !w->by_level || !w->crossing_start)
        return fem_fail(FEM_NO_MEMORY, "decompose: no memory for %d levels", w->levels);
    for (int i = 0; i < cut->element_count; i++) w->element_start[w->level[i] + 2]++;
    for (int k = 0; k < w->levels; k++) w->element_start[k + 2] += w->element_start[k + 1];
    for (int i = 0; i < cut->element_count; i++) w->by_level[w->element_start[w->level[i] + 1]++] = i;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < cut->element_count; i++) {
            int e = cut->elements[i];
            for (int k = c->t->face_start[e]; k < c->t->face_start[e + 1]; k++) {
                int f = c->t->faces[k];
                if (!own_face(c, f, e)) continue;
                int a = w->level[i], b = w->level[c->local[domain_across(c->t, f, e)]];
                int low = a < b ? a : b, high = a < b ? b : a;
                for (int level = low + 1; level <= high; level++) {
                    if (pass == 0)
                        w->crossing_start[level + 2]++, total++;
                    else
                        w->crossing[w->crossing_start[level + 1]++] = f;
                }
            }
        }
        if (pass == 1) break;
        if (total > INT_MAX) return fem_fail(FEM_BAD_INPUT, "decompose: %zu crossings of levels are too many", total);
        for (int k = 0; k < w->levels; k++) w->crossing_start[k + 2] += w->crossing_start[k + 1];
        w->crossing = fem_alloc(total, sizeof *w->crossing);
        w->sorted = fem_alloc(total, sizeof *w->sorted), w->forest2 = fem_alloc(total, sizeof *w->forest2);
        if (!w->crossing || !w->sorted || !w->forest2)
            return fem_fail(FEM_NO_MEMORY, "decompose: no memory for %zu crossings of levels", total);
    }
    return FEM_OK;
}

// Joins the sets of two elements; nodes that they were until now are noted.
static void join_sets(level_work *w, int a, int b) {
    a = domain_find(w->forest, a), b = domain_find(w->forest, b);
    if (a == b) return;
    if (w->latest[a] >= 0) w->touched[w->touched_count++] = w->latest[a];
    if (w->latest[b] >= 0) w->touched[w->touched_count++] = w->latest[b];
    domain_join(w->forest, a, b);
    w->latest[a] = w->latest[b] = -1;
}

// Adds the elements of level k and makes the nodes of the sets that they are in. `member` of a node is one of its
// elements, kept in `parent` until the parent is known.
static void add_level(const domain_cutter *c, const domain_cut *cut, level_work *w, domain_levels *tree, int k,
                      int *member) {
    w->touched_count = 0;
    for (int i = w->element_start[k]; i < w->element_start[k + 1]; i++) {
        int at = w->by_level[i], e = cut->elements[at];
        for (int j = c->t->face_start[e]; j < c->t->face_start[e + 1]; j++) {
            int other = c->local[domain_across(c->t, c->t->faces[j], e)];
            if (other >= 0 && w->level[other] >= k) join_sets(w, at, other);
        }
    }
    for (int i = w->element_start[k]; i < w->element_start[k + 1]; i++) {
        int at = w->by_level[i], root = domain_find(w->forest, at);
        if (w->latest[root] < 0) {
            tree->parent[tree->nodes] = -1, tree->weight[tree->nodes] = 0, tree->volume[tree->nodes] = 0;
            tree->area[tree->nodes] = 0, tree->patches[tree->nodes] = 0;
            member[tree->nodes] = at;
            w->latest[root] = tree->nodes++;
        }
        tree->node_of[at] = w->latest[root];
        tree->weight[w->latest[root]]++;
        tree->volume[w->latest[root]] += fem_element_volume(c->t->mesh, cut->elements[at]);
    }
    for (int i = 0; i < w->touched_count; i++)
        tree->parent[w->touched[i]] = w->latest[domain_find(w->forest, member[w->touched[i]])];
}

// The faces around the nodes first .. nodes-1, which were made at level k: their area, and how many patches they form.
static void measure_level(domain_cutter *c, level_work *w, domain_levels *tree, int k, int first) {
    const domain_topology *t = c->t;
    int                    fresh = tree->nodes - first, count = 0;
    for (int i = 0; i <= fresh; i++) w->bucket[i] = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = w->crossing_start[k]; i < w->crossing_start[k + 1]; i++) {
            int f = w->crossing[i], a = c->local[t->pair[2 * (size_t)f]], b = c->local[t->pair[2 * (size_t)f + 1]];
            int node = w->latest[domain_find(w->forest, w->level[a] > w->level[b] ? a : b)];
            if (node < first) continue; // a set that has no element of this level
            if (pass == 0)
                tree->area[node] += t->area[f], w->bucket[node - first + 1]++;
            else
                w->sorted[w->bucket[node - first]++] = f;
        }
        for (int i = 0; pass == 0 && i < fresh; i++) w->bucket[i + 1] += w->bucket[i];
    }
    for (int i = 0; i < fresh; i++) { // bucket[i] has become the end of node i
        for (; count < w->bucket[i]; count++) {
            const int *v = t->corners + (size_t)w->sorted[count] * (size_t)t->width;
            w->forest2[count] = count;
            tree->patches[first + i]++;
            for (int j = 0; j < t->width; j++) {
                if (c->seen[v[j]] == first + i)
                    tree->patches[first + i] -= domain_join(w->forest2, count, c->place[v[j]]);
                c->seen[v[j]] = first + i, c->place[v[j]] = count;
            }
        }
    }
}

fem_status domain_levels_create(domain_levels *tree, domain_cutter *c, const domain_cut *cut) {
    fem_status status = FEM_OK;
    level_work w = {0};
    int        width = fem_element_vertices(c->t->mesh->type);
    size_t     n = (size_t)cut->element_count;
    int       *member = fem_alloc(n, sizeof *member);
    w.level = fem_alloc(n, sizeof *w.level), w.forest = fem_alloc(n, sizeof *w.forest);
    w.latest = fem_alloc(n, sizeof *w.latest), w.touched = fem_alloc(2 * n, sizeof *w.touched);
    w.bucket = fem_alloc(n + 1, sizeof *w.bucket);
    w.seed = fem_calloc(n, 1), w.reached = fem_calloc(n, 1);
    tree->parent = fem_alloc(n, sizeof *tree->parent), tree->weight = fem_alloc(n, sizeof *tree->weight);
    tree->volume = fem_alloc(n, sizeof *tree->volume);
    tree->area = fem_alloc(n, sizeof *tree->area), tree->patches = fem_alloc(n, sizeof *tree->patches);
    tree->node_of = fem_alloc(n, sizeof *tree->node_of);
    if (!member || !w.level || !w.forest || !w.latest || !w.touched || !w.bucket || !w.seed || !w.reached ||
        !tree->parent || !tree->weight || !tree->volume || !tree->area || !tree->patches || !tree->node_of) {
        status = fem_fail(FEM_NO_MEMORY, "decompose: no memory to cut %d elements", cut->element_count);
        goto done;
    }
    find_distance(c, cut, w.seed, w.reached);
    choose_levels(c, cut, &w);
    FEM_TRY(list_levels(c, cut, &w));
    for (int i = 0; i < cut->element_count; i++) w.forest[i] = i, w.latest[i] = -1;
    for (int i = 0; i < cut->element_count; i++)
        for (int k = 0; k < width; k++) c->seen[corners_of(c->t->mesh, cut->elements[i])[k]] = -1;
    for (int k = w.levels - 1; k >= 0; k--) {
        int first = tree->nodes;
        add_level(c, cut, &w, tree, k, member);
        measure_level(c, &w, tree, k, first);
    }
done:
    level_work_destroy(&w);
    fem_free(member);
    return status;
}
