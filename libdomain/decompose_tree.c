// The result of a decomposition: domains in level order, interfaces, owners, closures, report.
#include "libdomain/decompose_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void points_destroy(domain_points *points) {
    fem_free(points->start), fem_free(points->vertices), fem_free(points->weights);
    *points = (domain_points){0};
}

void domain_tree_destroy(domain_tree *tree) {
    if (!tree) return;
    for (int i = 0; tree->name && i < tree->count; i++) fem_free(tree->name[i]);
    fem_free(tree->parent), fem_free(tree->level), fem_free(tree->name);
    fem_free(tree->element_start), fem_free(tree->elements), fem_free(tree->element_domain);
    fem_free(tree->vertex_owner), fem_free(tree->closure_pair), fem_free(tree->ground_domain);
    points_destroy(&tree->interfaces), points_destroy(&tree->closures), points_destroy(&tree->grounds);
    *tree = (domain_tree){0};
}

// What is read, and scratch.
typedef struct writer {
    const domain_topology *t;
    const domain_labels   *labels;
    const domain_graph    *g;
    const domain_span     *span;
    const unsigned char   *held;
    int                   *place;            // per label: its place in level order
    int                   *top_start, *tops; // per vertex
    unsigned char         *mark;             // per vertex
    double                *sum;              // per vertex
} writer;

static fem_status no_memory(const writer *w) {
    return fem_fail(FEM_NO_MEMORY, "decompose: no memory for a tree of %d domains", w->labels->count);
}

// ---- domains ---------------------------------------------------------------------------------------------------

// Domains of one origin after the first get a number behind the name.
static fem_status write_names(domain_tree *tree, const writer *w, const char *const *names) {
    int most = 0;
    for (int i = 0; i < tree->count; i++)
        if (w->labels->origin[i] > most) most = w->labels->origin[i];
    int *used = fem_calloc((size_t)most + 1, sizeof *used); // per origin: domains so far
    if (!used) return no_memory(w);
    for (int i = 0; i < tree->count; i++) {
        int    origin = w->labels->origin[w->span->order[i]];
        size_t size = names && origin >= 0 ? strlen(names[origin]) + 16 : 32;
        tree->name[i] = fem_alloc(size, 1);
        if (!tree->name[i]) {
            fem_free(used);
            return no_memory(w);
        }
        if (!names || origin < 0)
            snprintf(tree->name[i], size, "domain %d", i);
        else if (used[origin]++ == 0)
            snprintf(tree->name[i], size, "%s", names[origin]);
        else
            snprintf(tree->name[i], size, "%s %d", names[origin], used[origin]);
    }
    fem_free(used);
    return FEM_OK;
}

static fem_status write_domains(domain_tree *tree, const writer *w) {
    size_t n = (size_t)tree->count, elements = (size_t)tree->element_count;
    tree->parent = fem_alloc(n, sizeof(int)), tree->level = fem_alloc(n, sizeof(int));
    tree->name = fem_calloc(n, sizeof *tree->name);
    tree->element_start = fem_calloc(n + 2, sizeof(int)), tree->elements = fem_alloc(elements, sizeof(int));
    tree->element_domain = fem_alloc(elements, sizeof(int));
    if (!tree->parent || !tree->level || !tree->name || !tree->element_start || !tree->elements ||
        !tree->element_domain)
        return no_memory(w);
    for (int i = 0; i < tree->count; i++) {
        int label = w->span->order[i], edge = w->span->parent_edge[label];
        tree->parent[i] = edge < 0 ? -1 : w->place[domain_graph_other(w->g, edge, label)];
        tree->level[i] = w->span->level[label];
        tree->element_start[i + 2] = w->labels->size[label];
    }
    for (int i = 0; i < tree->count; i++) tree->element_start[i + 2] += tree->element_start[i + 1];
    for (int e = 0; e < tree->element_count; e++) {
        tree->element_domain[e] = w->place[w->labels->label[e]];
        tree->elements[tree->element_start[tree->element_domain[e] + 1]++] = e;
    }
    return FEM_OK;
}

// The top nearest to the root owns the vertex.
static fem_status write_owners(domain_tree *tree, const writer *w) {
    tree->vertex_owner = fem_alloc((size_t)tree->vertex_count, sizeof *tree->vertex_owner);
    if (!tree->vertex_owner) return no_memory(w);
    for (int v = 0; v < tree->vertex_count; v++) {
        int owner = -1;
        for (int i = w->top_start[v]; i < w->top_start[v + 1]; i++)
            if (owner < 0 || w->place[w->tops[i]] < owner) owner = w->place[w->tops[i]];
        tree->vertex_owner[v] = owner;
    }
    return FEM_OK;
}

// ---- interfaces ------------------------------------------------------------------------------------------------

// The patches of some edges as lists of points; edge -1 makes an empty list.
static fem_status write_patches(domain_points *points, const writer *w, int count, const int *edges) {
    size_t most = 0;
    for (int i = 0; i < count; i++)
        if (edges[i] >= 0) most += (size_t)(w->g->face_start[edges[i] + 1] - w->g->face_start[edges[i]]);
    most *= (size_t)w->t->width;
    points->count = count;
    points->start = fem_calloc((size_t)count + 1, sizeof *points->start);
    points->vertices = fem_alloc(most, sizeof *points->vertices);
    points->weights = fem_alloc(most, sizeof *points->weights);
    if (!points->start || !points->vertices || !points->weights) return no_memory(w);
    for (int i = 0; i < count; i++) {
        int at = points->start[i], found = 0;
        if (edges[i] >= 0) {
            int first = w->g->face_start[edges[i]], last = w->g->face_start[edges[i] + 1];
            found = domain_patch_points(w->t, last - first, w->g->faces + first, w->mark, w->sum, points->vertices + at,
                                        points->weights + at);
        }
        points->start[i + 1] = at + found;
    }
    return FEM_OK;
}

static fem_status write_interfaces(domain_tree *tree, const writer *w) {
    fem_status status = FEM_OK;
    int       *edges = fem_alloc((size_t)tree->count, sizeof *edges);
    if (!edges) return no_memory(w);
    for (int i = 0; i < tree->count; i++) edges[i] = w->span->parent_edge[w->span->order[i]];
    FEM_TRY(write_patches(&tree->interfaces, w, tree->count, edges));
done:
    fem_free(edges);
    return status;
}

// ---- closures --------------------------------------------------------------------------------------------------

typedef struct hinge {
    int a, b, vertex; // domains, ascending
} hinge;

static int compare_hinges(const void *x, const void *y) {
    const hinge *p = x, *q = y;
    if (p->a != q->a) return p->a < q->a ? -1 : 1;
    if (p->b != q->b) return p->b < q->b ? -1 : 1;
    return (p->vertex > q->vertex) - (p->vertex < q->vertex);
}

// Which closures (of those made of patches) have a vertex; compressed per vertex.
static fem_status list_closures(const domain_tree *tree, const writer *w, int **start_out, int **list_out) {
    const domain_points *c = &tree->closures;
    int                  total = c->start[c->count];
    int                 *start = fem_calloc((size_t)tree->vertex_count + 2, sizeof *start);
    int                 *list = fem_alloc((size_t)total, sizeof *list);
    if (!start || !list) {
        fem_free(start), fem_free(list);
        return no_memory(w);
    }
    for (int i = 0; i < total; i++) start[c->vertices[i] + 2]++;
    for (int v = 0; v < tree->vertex_count; v++) start[v + 2] += start[v + 1];
    for (int k = 0; k < c->count; k++)
        for (int i = c->start[k]; i < c->start[k + 1]; i++) list[start[c->vertices[i] + 1]++] = k;
    *start_out = start, *list_out = list;
    return FEM_OK;
}

// Of the domains around a vertex that are tops, which are joined by neither tree nor closures? Those and the owner are
// hinged together by the vertex alone. `forest` and `seen` are per domain.
static fem_status find_hinges(const domain_tree *tree, const writer *w, hinge **hinges, size_t *count) {
    fem_status status = FEM_OK;
    int       *start = NULL, *list = NULL;
    int *forest = fem_alloc((size_t)tree->count, sizeof *forest), *seen = fem_alloc((size_t)tree->count, sizeof *seen);
    size_t capacity = 0;
    if (!forest || !seen) {
        status = no_memory(w);
        goto done;
    }
    FEM_TRY(list_closures(tree, w, &start, &list));
    for (int i = 0; i < tree->count; i++) seen[i] = -1;
    for (int v = 0; v < tree->vertex_count; v++) {
        int first = w->top_start[v], last = w->top_start[v + 1];
        if (last - first < 2) continue;
        for (int i = first; i < last; i++) {
            int top = w->place[w->tops[i]];
            forest[top] = top, seen[top] = v;
        }
        for (int i = start[v]; i < start[v + 1]; i++) {
            int end[2];
            for (int k = 0; k < 2; k++) // up to the domain that does not hold v on the interface to its parent
                for (end[k] = tree->closure_pair[2 * (size_t)list[i] + (size_t)k]; seen[end[k]] != v;)
                    end[k] = tree->parent[end[k]];
            domain_join(forest, end[0], end[1]);
        }
        for (int i = first; i < last; i++) {
            int top = w->place[w->tops[i]];
            if (domain_find(forest, top) != top || top == tree->vertex_owner[v]) continue; // the owner is the lowest
            FEM_TRY(fem_grow((void **)hinges, &capacity, *count + 1, sizeof **hinges));
            (*hinges)[(*count)++] = (hinge){tree->vertex_owner[v], top, v};
        }
    }
    if (*count > 0) qsort(*hinges, *count, sizeof **hinges, compare_hinges);
done:
    fem_free(forest), fem_free(seen), fem_free(start), fem_free(list);
    return status;
}

// Appends lists of weight 0 for the hinges, one per pair of domains.
static fem_status append_hinges(domain_tree *tree, const writer *w, size_t count, const hinge *hinges) {
    domain_points *c = &tree->closures;
    size_t         lists = (size_t)c->count, points = (size_t)c->start[c->count];
    for (size_t i = 0; i < count; i++)
        lists += i == 0 || hinges[i].a != hinges[i - 1].a || hinges[i].b != hinges[i - 1].b;
    int *start = fem_realloc(c->start, lists + 1, sizeof *start);
    if (start) c->start = start;
    int *pair = fem_realloc(tree->closure_pair, 2 * lists, sizeof *pair);
    if (pair) tree->closure_pair = pair;
    int *vertices = fem_realloc(c->vertices, points + count, sizeof *vertices);
    if (vertices) c->vertices = vertices;
    double *weights = fem_realloc(c->weights, points + count, sizeof *weights);
    if (weights) c->weights = weights;
    if (!start || !pair || !vertices || !weights) return no_memory(w);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || hinges[i].a != hinges[i - 1].a || hinges[i].b != hinges[i - 1].b) {
            pair[2 * (size_t)c->count] = hinges[i].a, pair[2 * (size_t)c->count + 1] = hinges[i].b;
            c->count++;
            start[c->count] = start[c->count - 1];
        }
        vertices[start[c->count]] = hinges[i].vertex;
        weights[start[c->count]++] = 0;
    }
    return FEM_OK;
}

static fem_status write_closures(domain_tree *tree, const writer *w) {
    fem_status status = FEM_OK;
    hinge     *hinges = NULL;
    size_t     hinge_count = 0;
    int        count = 0, *edges = fem_alloc((size_t)w->g->edges, sizeof *edges);
    if (!edges) return no_memory(w);
    for (int e = 0; e < w->g->edges; e++) {
        const int *pair = w->g->pair + 2 * (size_t)e;
        if (w->span->parent_edge[pair[0]] != e && w->span->parent_edge[pair[1]] != e) edges[count++] = e;
    }
    FEM_TRY(write_patches(&tree->closures, w, count, edges));
    tree->closure_pair = fem_alloc((size_t)count, 2 * sizeof *tree->closure_pair);
    if (!tree->closure_pair) {
        status = no_memory(w);
        goto done;
    }
    for (int i = 0; i < count; i++) {
        int a = w->place[w->g->pair[2 * (size_t)edges[i]]], b = w->place[w->g->pair[2 * (size_t)edges[i] + 1]];
        tree->closure_pair[2 * (size_t)i] = a < b ? a : b, tree->closure_pair[2 * (size_t)i + 1] = a < b ? b : a;
    }
    FEM_TRY(find_hinges(tree, w, &hinges, &hinge_count));
    if (hinge_count > 0) FEM_TRY(append_hinges(tree, w, hinge_count, hinges));
done:
    fem_free(edges), fem_free(hinges);
    return status;
}

// ---- the ground ------------------------------------------------------------------------------------------------

// Held vertices that the root does not own, by owner.
static fem_status write_grounds(domain_tree *tree, const writer *w) {
    fem_status     status = FEM_OK;
    domain_points *p = &tree->grounds;
    int           *list_of = fem_alloc((size_t)tree->count, sizeof *list_of), *sizes = NULL, total = 0;
    sizes = fem_calloc((size_t)tree->count, sizeof *sizes);
    if (!list_of || !sizes) {
        status = no_memory(w);
        goto done;
    }
    for (int v = 0; v < tree->vertex_count; v++)
        if (w->held[v] && tree->vertex_owner[v] > 0) sizes[tree->vertex_owner[v]]++, total++;
    for (int i = 0; i < tree->count; i++) list_of[i] = sizes[i] > 0 ? p->count++ : -1;
    p->start = fem_calloc((size_t)p->count + 1, sizeof *p->start);
    p->vertices = fem_alloc((size_t)total, sizeof *p->vertices),
    p->weights = fem_calloc((size_t)total, sizeof *p->weights);
    tree->ground_domain = fem_alloc((size_t)p->count, sizeof *tree->ground_domain);
    if (!p->start || !p->vertices || !p->weights || !tree->ground_domain) {
        status = no_memory(w);
        goto done;
    }
    for (int i = 0; i < tree->count; i++) {
        if (list_of[i] < 0) continue;
        tree->ground_domain[list_of[i]] = i;
        p->start[list_of[i] + 1] = p->start[list_of[i]] + sizes[i];
        sizes[i] = p->start[list_of[i]]; // the next free place from here on
    }
    for (int v = 0; v < tree->vertex_count; v++)
        if (w->held[v] && tree->vertex_owner[v] > 0) p->vertices[sizes[tree->vertex_owner[v]]++] = v;
done:
    fem_free(list_of), fem_free(sizes);
    return status;
}

// ---- report ----------------------------------------------------------------------------------------------------

static void write_report(domain_tree *tree) {
    domain_report       *r = &tree->report;
    const domain_points *p = &tree->interfaces;
    *r = (domain_report){.domains = tree->count, .interfaces = tree->count - 1, .closures = tree->closures.count};
    r->grounds = tree->grounds.count;
    r->depth = tree->level[tree->count - 1];
    for (int i = 0; i < tree->count; i++) {
        int size = tree->element_start[i + 1] - tree->element_start[i];
        if (i == 0 || size < r->smallest) r->smallest = size;
        if (i == 0 || size > r->largest) r->largest = size;
        if (i == 0) continue;
        double area = 0;
        int    points = p->start[i + 1] - p->start[i];
        for (int k = p->start[i]; k < p->start[i + 1]; k++) area += p->weights[k];
        r->area += area;
        if (i == 1 || area < r->smallest_area) r->smallest_area = area;
        if (i == 1 || area > r->largest_area) r->largest_area = area;
        if (i == 1 || points < r->fewest_points) r->fewest_points = points;
    }
    r->largest_share = (double)r->largest / tree->element_count;
    r->imbalance = r->largest_share * tree->count;
}

fem_status domain_tree_write(domain_tree *out, const domain_topology *t, const domain_labels *labels,
                             const domain_graph *g, const domain_span *span, const unsigned char *held,
                             const char *const *names) {
    fem_status  status = FEM_OK;
    size_t      vertices = (size_t)t->mesh->vertex_count;
    writer      w = {.t = t, .labels = labels, .g = g, .span = span, .held = held};
    domain_tree tree = {
        .count = labels->count, .element_count = t->mesh->element_count, .vertex_count = t->mesh->vertex_count};
    w.place = fem_alloc((size_t)labels->count, sizeof *w.place);
    w.mark = fem_calloc(vertices, 1), w.sum = fem_alloc(vertices, sizeof *w.sum);
    if (!w.place || !w.mark || !w.sum) {
        status = no_memory(&w);
        goto done;
    }
    for (int i = 0; i < labels->count; i++) w.place[span->order[i]] = i;
    FEM_TRY(domain_tops(t, labels, g, span, &w.top_start, &w.tops));
    FEM_TRY(write_domains(&tree, &w));
    FEM_TRY(write_names(&tree, &w, names));
    FEM_TRY(write_owners(&tree, &w));
    FEM_TRY(write_interfaces(&tree, &w));
    FEM_TRY(write_closures(&tree, &w));
    FEM_TRY(write_grounds(&tree, &w));
    write_report(&tree);
    domain_tree_destroy(out);
    *out = tree;
    tree = (domain_tree){0};
done:
    fem_free(w.place), fem_free(w.mark), fem_free(w.sum), fem_free(w.top_start), fem_free(w.tops);
    domain_tree_destroy(&tree);
    return status;
}
