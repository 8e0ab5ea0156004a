// Labels of elements: joined, split into pieces, listed; and whose a vertex is.
#include "libdomain/decompose_internal.h"

#include <stdio.h>
#include <string.h>

int domain_find(int *forest, int i) {
    while (forest[i] != i) {
        forest[i] = forest[forest[i]];
        i = forest[i];
    }
    return i;
}

bool domain_join(int *forest, int a, int b) {
    a = domain_find(forest, a), b = domain_find(forest, b);
    if (a == b) return false;
    if (a < b)
        forest[b] = a;
    else
        forest[a] = b;
    return true;
}

fem_status domain_labels_create(domain_labels *labels, int element_count) {
    size_t n = (size_t)element_count;
    *labels = (domain_labels){.count = 1, .label = fem_calloc(n, sizeof(int)), .origin = fem_alloc(n, sizeof(int))};
    labels->size = fem_calloc(n, sizeof *labels->size);
    if (!labels->label || !labels->origin || !labels->size) {
        domain_labels_destroy(labels);
        return fem_fail(FEM_NO_MEMORY, "decompose: no memory for the labels of %d elements", element_count);
    }
    labels->origin[0] = -1;
    labels->size[0] = element_count;
    return FEM_OK;
}

void domain_labels_destroy(domain_labels *labels) {
    fem_free(labels->label), fem_free(labels->origin), fem_free(labels->size);
    *labels = (domain_labels){0};
}

fem_status domain_labels_set(domain_labels *labels, int element_count, const int *number, int number_count,
                             const int *origin) {
    int *renumbered = fem_alloc((size_t)number_count, sizeof *renumbered);
    if (!renumbered) return fem_fail(FEM_NO_MEMORY, "decompose: no memory for %d labels", number_count);
    for (int i = 0; i < number_count; i++) renumbered[i] = -1;
    labels->count = 0;
    for (int e = 0; e < element_count; e++) {
        int *label = &renumbered[number[e]];
        if (*label < 0) {
            *label = labels->count++;
            labels->origin[*label] = origin ? origin[number[e]] : -1;
            labels->size[*label] = 0;
        }
        labels->label[e] = *label;
        labels->size[*label]++;
    }
    fem_free(renumbered);
    return FEM_OK;
}

fem_status domain_labels_join(domain_labels *labels, int element_count, int *forest) {
    int *largest = fem_alloc((size_t)labels->count, sizeof *largest); // per root: the largest label that it joins
    int *renumbered = fem_alloc((size_t)labels->count, sizeof *renumbered);
    if (!largest || !renumbered) {
        fem_free(largest), fem_free(renumbered);
        return fem_fail(FEM_NO_MEMORY, "decompose: no memory to join %d labels", labels->count);
    }
    int count = 0;
    for (int i = 0; i < labels->count; i++) { // the root is the lowest, so it comes first
        int root = domain_find(forest, i);
        if (root == i)
            renumbered[i] = count++, largest[i] = i;
        else if (labels->size[i] > labels->size[largest[root]])
            largest[root] = i;
        renumbered[i] = renumbered[root];
    }
    // all origins are read before the first is written
    for (int i = 0; i < labels->count; i++)
        if (forest[i] == i) largest[i] = labels->origin[largest[i]];
    for (int i = 0; i < labels->count; i++)
        if (forest[i] == i) labels->origin[renumbered[i]] = largest[i];
    memset(labels->size, 0, (size_t)labels->count * sizeof *labels->size);
    for (int e = 0; e < element_count; e++) {
        labels->label[e] = renumbered[labels->label[e]];
        labels->size[labels->label[e]]++;
    }
    labels->count = count;
    fem_free(largest), fem_free(renumbered);
    return FEM_OK;
}

fem_status domain_labels_split(domain_labels *labels, const domain_topology *t) {
    fem_status status = FEM_OK;
    int        n = t->mesh->element_count, count = 0;
    int       *piece = fem_alloc((size_t)n, sizeof *piece), *queue = fem_alloc((size_t)n, sizeof *queue);
    int       *origin = fem_alloc((size_t)n, sizeof *origin);
    if (!piece || !queue || !origin) {
        status = fem_fail(FEM_NO_MEMORY, "decompose: no memory for the pieces of %d elements", n);
        goto done;
    }
    for (int e = 0; e < n; e++) piece[e] = -1;
    for (int e = 0; e < n; e++) {
        if (piece[e] >= 0) continue;
        int found = 0;
        piece[e] = count, queue[found++] = e;
        for (int at = 0; at < found; at++)
            for (int i = t->face_start[queue[at]]; i < t->face_start[queue[at] + 1]; i++) {
                int other = domain_across(t, t->faces[i], queue[at]);
                if (piece[other] < 0 && labels->label[other] == labels->label[e])
                    piece[other] = count, queue[found++] = other;
            }
        origin[count++] = labels->origin[labels->label[e]];
    }
    FEM_TRY(domain_labels_set(labels, n, piece, count, origin));
done:
    fem_free(piece), fem_free(queue), fem_free(origin);
    return status;
}

fem_status domain_labels_lists(const domain_labels *labels, int element_count, int **start_out, int **elements_out) {
    int *start = fem_alloc((size_t)labels->count + 1, sizeof *start);
    int *elements = fem_alloc((size_t)element_count, sizeof *elements);
    if (!start || !elements) {
        fem_free(start), fem_free(elements);
        return fem_fail(FEM_NO_MEMORY, "decompose: no memory to list %d elements", element_count);
    }
    start[labels->count] = element_count;
    for (int i = labels->count - 1; i >= 0; i--) start[i] = start[i + 1] - labels->size[i];
    // fill from behind: every start runs from the end of its list to its beginning
    for (int i = 0; i < labels->count; i++) start[i] += labels->size[i];
    for (int e = element_count - 1; e >= 0; e--) elements[--start[labels->label[e]]] = e;
    *start_out = start, *elements_out = elements;
    return FEM_OK;
}

void domain_label_name(char text[64], const domain_labels *labels, int label, const char *const *names) {
    if (names && labels->origin[label] >= 0)
        snprintf(text, 64, "\"%.50s\"", names[labels->origin[label]]);
    else
        snprintf(text, 64, "domain %d", labels->origin[label] >= 0 ? labels->origin[label] : label);
}

// ---- whose a vertex is -----------------------------------------------------------------------------------------

// The vertices on the interface of each node to its parent, turned round: the nodes that hold a vertex there.
static fem_status list_holders(const domain_topology *t, const domain_graph *g, const domain_span *span,
                               int **start_out, int **nodes_out) {
    fem_status status = FEM_OK;
    size_t     n = (size_t)t->mesh->vertex_count;
    int       *start = fem_calloc(n + 2, sizeof *start), *seen = fem_alloc(n, sizeof *seen), *nodes = NULL;
    if (!start || !seen) {
        status = fem_fail(FEM_NO_MEMORY, "decompose: no memory for the interfaces of %d domains", g->nodes);
        goto done;
    }
    for (int pass = 0; pass < 2; pass++) { // counts, then fills
        for (size_t v = 0; v < n; v++) seen[v] = -1;
        for (int node = 0; node < g->nodes; node++) {
            int edge = span->parent_edge[node];
            for (int i = edge < 0 ? 0 : g->face_start[edge]; edge >= 0 && i < g->face_start[edge + 1]; i++)
                for (int k = 0; k < t->width; k++) {
                    int v = t->corners[(size_t)g->faces[i] * (size_t)t->width + (size_t)k];
                    if (seen[v] == node) continue;
                    seen[v] = node;
                    if (pass == 0)
                        start[v + 2]++;
                    else
                        nodes[start[v + 1]++] = node;
                }
        }
        if (pass == 1) break;
        for (size_t v = 0; v < n; v++) start[v + 2] += start[v + 1];
        nodes = fem_alloc((size_t)start[n + 1], sizeof *nodes);
        if (!nodes) {
            status = fem_fail(FEM_NO_MEMORY, "decompose: no memory for the interfaces of %d domains", g->nodes);
            goto done;
        }
    }
    *start_out = start, start = NULL;
    *nodes_out = nodes, nodes = NULL;
done:
    fem_free(start), fem_free(seen), fem_free(nodes);
    return status;
}

fem_status domain_tops(const domain_topology *t, const domain_labels *labels, const domain_graph *g,
                       const domain_span *span, int **start_out, int **tops_out) {
    fem_status status = FEM_OK;
    int        n = t->mesh->vertex_count, *hold_start = NULL, *holders = NULL;
    int       *start = fem_alloc((size_t)n + 1, sizeof *start), *tops = NULL;
    int       *seen = fem_alloc((size_t)labels->count, sizeof *seen);
    if (!start || !seen) {
        status = fem_fail(FEM_NO_MEMORY, "decompose: no memory for the owners of %d vertices", n);
        goto done;
    }
    FEM_TRY(list_holders(t, g, span, &hold_start, &holders));
    for (int pass = 0; pass < 2; pass++) {
        int count = 0;
        for (int i = 0; i < labels->count; i++) seen[i] = -1;
        start[0] = 0;
        for (int v = 0; v < n; v++) {
            for (int i = hold_start[v]; i < hold_start[v + 1]; i++) seen[holders[i]] = v;
            for (int i = t->around_start[v]; i < t->around_start[v + 1]; i++) {
                int label = labels->label[t->around[i]];
                if (seen[label] == v) continue;
                seen[label] = v;
                if (pass == 1) tops[count] = label;
                count++;
            }
            start[v + 1] = count;
        }
        if (pass == 0) tops = fem_alloc((size_t)count, sizeof *tops);
        if (!tops) {
            status = fem_fail(FEM_NO_MEMORY, "decompose: no memory for the owners of %d vertices", n);
            goto done;
        }
    }
    *start_out = start, start = NULL;
    *tops_out = tops, tops = NULL;
done:
    fem_free(start), fem_free(tops), fem_free(seen), fem_free(hold_start), fem_free(holders);
    return status;
}
