// Cuts one domain into parts along level sets of the distance from its seeds.
//
// 1. Distance: Dijkstra over the vertices of the domain, smoothed, averaged over elements. A flood from the seeds that
//    always goes on with the lowest element, and never counts one lower than the one it came from, makes it monotone:
//    from every element a way leads down to the seeds through faces.
// 2. Level tree: with the distance rounded to levels, the nodes are the connected sets C of elements at level k or
//    above (those that have an element of level k itself). Two such sets are nested or apart, so they form a tree, and
//    any choice of them cuts the domain into a tree of parts: the faces around C all lead to lower elements, which
//    belong to the part around C and to no other. This is the join tree of the distance [Carr, Snoeyink & Axen 2003,
//    Computing contour trees in all dimensions]; a limb is a branch of it. Where the body has a handle the faces around
//    C fall into several patches: such sets are left out unless loops are allowed.
// 3. Cuts: the largest part is cut in two where the area of the cut is least for what it cuts off, again and again.
#include "libdomain/decompose_internal.h"

#include <limits.h>
#include <string.h>

// ---- heap ------------------------------------------------------------------------------------------------------

// Items by key, the lowest first, of equals the lower item.
typedef struct heap {
    int           count;
    int          *item, *place; // place[i] of item i; -1: not in the heap
    const double *key;
} heap;

static bool heap_before(const heap *h, int a, int b) {
    return h->key[a] < h->key[b] || (h->key[a] == h->key[b] && a < b);
}

static void heap_put(heap *h, int at, int item) { h->item[at] = item, h->place[item] = at; }

static void heap_rise(heap *h, int at) {
    int item = h->item[at];
    for (; at > 0 && heap_before(h, item, h->item[(at - 1) / 2]); at = (at - 1) / 2)
        heap_put(h, at, h->item[(at - 1) / 2]);
    heap_put(h, at, item);
}

// The key of the item is new or lower than it was.
static void heap_push(heap *h, int item) {
    if (h->place[item] < 0) heap_put(h, h->count++, item);
    heap_rise(h, h->place[item]);
}

static int heap_pop(heap *h) {
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

struct domain_cutter {
    const domain_topology *t;
    heap                   queue;
    double                *distance;     // per vertex, m; INFINITY outside the domain
    double                *smooth;       // per vertex
    int                   *share;        // per vertex: elements of the domain around it
    int                   *local;        // per element: its place in the domain, -1 outside
    double                *flooded;      // per element, m
    int                   *seen, *place; // per vertex, for patches
};

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
        int v = last = heap_pop(&c->queue);
        for (int i = c->t->around_start[v]; i < c->t->around_start[v + 1]; i++) {
            if (c->local[c->t->around[i]] < 0) continue;
            const int *corners = corners_of(mesh, c->t->around[i]);
            for (int k = 0; k < width; k++) {
                int    w = corners[k];
                double d =
                    c->distance[v] + vec3_distance(mesh->vertices + 3 * (size_t)v, mesh->vertices + 3 * (size_t)w);
                if (d < c->distance[w]) c->distance[w] = d, heap_push(&c->queue, w);
            }
        }
    }
    return last;
}

static void start_at(domain_cutter *c, int vertex) {
    c->queue.key = c->distance;
    if (c->distance[vertex] == 0) return;
    c->distance[vertex] = 0;
    heap_push(&c->queue, vertex);
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
        heap_push(&c->queue, cut->elements[i]);
    }
    while (c->queue.count > 0) {
        int e = heap_pop(&c->queue);
        for (int i = t->face_start[e]; i < t->face_start[e + 1]; i++) {
            int other = domain_across(t, t->faces[i], e);
            if (c->local[other] < 0 || reached[c->local[other]]) continue;
            double mean = 0;
            for (int k = 0; k < width; k++) mean += c->distance[corners_of(t->mesh, other)[k]] / width;
            c->flooded[other] = fmax(mean, c->flooded[e]);
            reached[c->local[other]] = 1;
            heap_push(&c->queue, other);
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

typedef struct level_tree {
    int     nodes;
    int    *parent;  // above its own number, so children come first; -1 for the last, which holds the seeds
    int    *weight;  // elements that are no descendant's
    double *volume;  // of these, m^3
    double *area;    // of the faces around the node and its descendants, m^2
    int    *patches; // that these faces fall into
    int    *node_of; // per element of the domain
} level_tree;

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

static void level_tree_destroy(level_tree *tree) {
    fem_free(tree->parent), fem_free(tree->weight), fem_free(tree->volume), fem_free(tree->area),
        fem_free(tree->patches);
    fem_free(tree->node_of);
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
static void add_level(const domain_cutter *c, const domain_cut *cut, level_work *w, level_tree *tree, int k,
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
static void measure_level(domain_cutter *c, level_work *w, level_tree *tree, int k, int first) {
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

static fem_status build_level_tree(domain_cutter *c, const domain_cut *cut, level_tree *tree) {
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

// ---- 3. cuts ---------------------------------------------------------------------------------------------------

// Forbids the cuts of the level tree that would divide a patch: those between its nodes. The lowest number is always
// that of a node whose descendants are done; it is divided from the others unless it is the only one left.
static fem_status keep_patches_whole(domain_cutter *c, const domain_cut *cut, const level_tree *tree,
                                     unsigned char *allowed) {
    double *key = fem_alloc((size_t)tree->nodes, sizeof *key);
    if (!key) return fem_fail(FEM_NO_MEMORY, "decompose: no memory for %d cuts", tree->nodes);
    for (int i = 0; i < tree->nodes; i++) key[i] = i;
    c->queue.key = key;
    for (int p = 0; p < cut->patch_count; p++) {
        for (int i = cut->patch_start[p]; i < cut->patch_start[p + 1]; i++) {
            int f = cut->patch_faces[i], a = c->local[c->t->pair[2 * (size_t)f]];
            heap_push(&c->queue, tree->node_of[a >= 0 ? a : c->local[c->t->pair[2 * (size_t)f + 1]]]);
        }
        while (c->queue.count > 1) {
            int node = heap_pop(&c->queue);
            allowed[node] = 0;
            heap_push(&c->queue, tree->parent[node]);
        }
        heap_pop(&c->queue);
    }
    fem_free(key);
    return FEM_OK;
}

// Parts thinner than this are avoided: thickness (volume over area of the widest interface) over width (root of that
// area). A slice between two interfaces that wide has hardly any motion of its own. What holds more than a part of
// LARGEST of the elements is cut all the same.
static const double THINNEST = 0.1, LARGEST = 0.35;

typedef struct part {
    int    begin, end; // its nodes in `members`, ascending
    int    size;       // elements
    double volume;     // m^3
    double widest;     // area of its largest interface so far, m^2
    int    cut;        // node whose set its best cut takes off, -1: it has none
    double merit;      // of that cut
} part;

typedef struct chooser {
    const domain_cut *cut;
    const level_tree *tree;
    unsigned char    *allowed;  // per node: may its set be cut off?
    int              *members;  // nodes by part
    double           *attached; // per node: area of the largest interface to a part that was cut off here
    int              *below;    // per node: elements of its part in its set
    double           *volume;   // per node: their volume
    double           *widest;   // per node: area of their largest interface
    double           *key;      // per part: order of cutting
    unsigned char    *moved;    // per node; 0 between uses
    int              *spare;    // per node
    double            thinnest;
} chooser;

static bool too_thin(double volume, double area, double thinnest) { return volume < thinnest * area * sqrt(area); }

// Finds the cut of a part that has the least area A for the n elements on its smaller side: least A / n^(2/3), which
// does not depend on the size of things. Parts are cut in the order of merit: large ones at their necks first.
static void find_best_cut(const chooser *c, part *p) {
    const level_tree *tree = c->tree;
    int               top = c->members[p->end - 1]; // the highest number is the node nearest to the seeds
    double            least_cost = INFINITY;
    double            thinnest = p->size > LARGEST * c->cut->element_count ? 0 : c->thinnest;
    p->cut = -1;
    for (int i = p->begin; i < p->end; i++) {
        int node = c->members[i];
        c->below[node] = tree->weight[node], c->volume[node] = tree->volume[node], c->widest[node] = c->attached[node];
    }
    for (int i = p->begin; i < p->end; i++) {
        int node = c->members[i], above = tree->parent[node], n = c->below[node];
        if (node == top) break;
        c->below[above] += n, c->volume[above] += c->volume[node];
        c->widest[above] = fmax(c->widest[above], c->widest[node]);
        if (n > p->size - n) n = p->size - n;
        if (!c->allowed[node] || n < c->cut->least) continue;
        double cost = tree->area[node] / cbrt((double)n * n);
        if (cost >= least_cost || too_thin(c->volume[node], fmax(tree->area[node], c->widest[node]), thinnest) ||
            too_thin(p->volume - c->volume[node], fmax(tree->area[node], p->widest), thinnest))
            continue;
        least_cost = cost;
        p->cut = node, p->merit = sqrt(p->size) / cost;
    }
}

// Moves the members of a part below `node` behind the others; returns the place of the first of them.
static int divide(chooser *c, int node, const part *p) {
    int kept = p->begin, count = 0;
    for (int i = p->end - 1; i >= p->begin; i--) { // parents first
        int at = c->members[i], above = c->tree->parent[at];
        c->moved[at] = at == node || (above >= 0 && c->moved[above]);
    }
    for (int i = p->begin; i < p->end; i++) {
        if (c->moved[c->members[i]])
            c->spare[count++] = c->members[i];
        else
            c->members[kept++] = c->members[i];
    }
    memcpy(c->members + kept, c->spare, (size_t)count * sizeof *c->spare);
    for (int i = 0; i < count; i++) c->moved[c->spare[i]] = 0;
    return kept;
}

// Divides a part by its best cut.
static void take_cut(chooser *c, part *from, part *off) {
    const level_tree *tree = c->tree;
    int               node = from->cut, above = tree->parent[node];
    double            area = tree->area[node];
    int               place = divide(c, node, from);
    *off = (part){.begin = place, .end = from->end, .size = 0, .widest = area};
    for (int i = place; i < from->end; i++) {
        off->size += tree->weight[c->members[i]], off->volume += tree->volume[c->members[i]];
        off->widest = fmax(off->widest, c->attached[c->members[i]]);
    }
    from->end = place, from->size -= off->size, from->volume -= off->volume;
    from->widest = fmax(from->widest, area);
    c->attached[above] = fmax(c->attached[above], area);
}

// Looks for the best cut of a part and enters it into the queue. Parts of more than a quarter of the domain come first,
// whatever the merit.
static void offer(domain_cutter *cutter, const chooser *c, part *parts, int index) {
    part  *p = &parts[index];
    double share = (double)p->size / c->cut->element_count;
    find_best_cut(c, p);
    if (p->cut < 0) return; // it stays as it is
    c->key[index] = share > 0.25 ? -1e300 * share : -p->merit;
    heap_push(&cutter->queue, index);
}

// Takes the best cut of all parts until there are as many as wanted or none is left; returns how many there are.
static int choose_cuts(domain_cutter *cutter, chooser *c, int count, int wanted, part *parts) {
    cutter->queue.key = c->key;
    for (int i = 0; i < count; i++) offer(cutter, c, parts, i);
    while (count < wanted && cutter->queue.count > 0) {
        int best = heap_pop(&cutter->queue);
        take_cut(c, &parts[best], &parts[count]);
        offer(cutter, c, parts, best);
        offer(cutter, c, parts, count++);
    }
    while (cutter->queue.count > 0) heap_pop(&cutter->queue);
    return count;
}

static fem_status chooser_create(chooser *c, const domain_cut *cut, const level_tree *tree) {
    size_t n = (size_t)tree->nodes;
    *c = (chooser){.cut = cut, .tree = tree, .thinnest = THINNEST};
    c->allowed = fem_alloc(n, 1), c->moved = fem_calloc(n, 1);
    c->members = fem_alloc(n, sizeof *c->members), c->below = fem_alloc(n, sizeof *c->below);
    c->spare = fem_alloc(n, sizeof *c->spare), c->attached = fem_calloc(n, sizeof *c->attached);
    c->volume = fem_alloc(n, sizeof *c->volume), c->widest = fem_alloc(n, sizeof *c->widest);
    c->key = fem_alloc((size_t)cut->wanted, sizeof *c->key);
    if (!c->allowed || !c->moved || !c->members || !c->below || !c->spare || !c->attached || !c->volume || !c->widest ||
        !c->key)
        return fem_fail(FEM_NO_MEMORY, "decompose: no memory for %d cuts", tree->nodes);
    for (int i = 0; i < tree->nodes; i++) c->allowed[i] = cut->loops || tree->patches[i] == 1, c->members[i] = i;
    return FEM_OK;
}

static void chooser_destroy(chooser *c) {
    fem_free(c->allowed), fem_free(c->moved), fem_free(c->members), fem_free(c->below), fem_free(c->spare);
    fem_free(c->attached), fem_free(c->volume), fem_free(c->widest), fem_free(c->key);
}

fem_status domain_cutter_run(domain_cutter *cutter, const domain_cut *cut, int *out, int *count) {
    fem_status status = FEM_OK;
    level_tree tree = {0};
    chooser    c = {0};
    part      *parts = fem_calloc((size_t)cut->wanted, sizeof *parts);
    if (!parts) return fem_fail(FEM_NO_MEMORY, "decompose: no memory for %d parts", cut->wanted);
    for (int i = 0; i < cut->element_count; i++) cutter->local[cut->elements[i]] = i;
    FEM_TRY(build_level_tree(cutter, cut, &tree));
    FEM_TRY(chooser_create(&c, cut, &tree));
    FEM_TRY(keep_patches_whole(cutter, cut, &tree, c.allowed));
    parts[0] = (part){.begin = 0, .end = tree.nodes, .size = cut->element_count};
    for (int i = 0; i < tree.nodes; i++) parts[0].volume += tree.volume[i];
    *count = choose_cuts(cutter, &c, 1, cut->wanted, parts);
    // thin slices only where there are less than half of the parts without them
    c.thinnest = 0;
    if (*count < (cut->wanted + 1) / 2) *count = choose_cuts(cutter, &c, *count, (cut->wanted + 1) / 2, parts);
    for (int i = 0; i < *count; i++)
        for (int k = parts[i].begin; k < parts[i].end; k++) c.below[c.members[k]] = i;
    for (int i = 0; i < cut->element_count; i++) out[i] = c.below[tree.node_of[i]];
done:
    for (int i = 0; i < cut->element_count; i++) cutter->local[cut->elements[i]] = -1;
    level_tree_destroy(&tree);
    chooser_destroy(&c);
    fem_free(parts);
    return status;
}
