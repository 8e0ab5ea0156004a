// Aggregates of the rows of a multigrid level.
//
// Roots are taken in the order of the nodes, each more than `reach` edges from those before; then every node joins the
// root that is nearest over strong connections. That gives round aggregates of even size in one sweep over the graph.
// A node is one row on the finest level (a vertex), and the two rows of an aggregate on coarser ones. A reach of three
// on the finest level (about 40 vertices an aggregate) makes the coarse matrix, whose rows are long, a tenth of the
// finest; a reach of two needs fewer iterations but twice the time for each, and more memory.
//
// Where cells are flat or long, smoothing works along their short edges only, so aggregates must not reach beyond
// those: an edge is strong when it is not much longer than the shortest one at its ends, and its block is not small
// (materials of different stiffness). Blocks alone do not tell: those of a flat H8 are as large along its faces as
// across.
#include "libfem/amg_internal.h"

#include <string.h>

enum {
    FINEST_REACH = 3,
    REACH = 2,
    FEW_NODES = 3, // smaller aggregates are joined to their strongest neighbour
};
static const double WEAK = 0.1; // norm of a weak block; the diagonal blocks are the identity
static const double FAR = 2;    // length of a weak edge over the shortest one

typedef struct node_graph {
    int            n;        // nodes
    int           *start;    // n + 1
    int           *adjacent; // neighbours, itself not among them
    float         *strength; // of the connection: the largest Frobenius norm of its blocks
    unsigned char *strong;
} node_graph;

static void destroy_graph(node_graph *g) {
    fem_free(g->start), fem_free(g->adjacent), fem_free(g->strength), fem_free(g->strong);
}

static float block_norm(const double *a) {
    double sum = 0;
    for (int e = 0; e < 9; e++) sum += a[e] * a[e];
    return (float)sqrt(sum);
}

// Neighbours of nodes from those of their rows, each once.
static fem_status make_graph(node_graph *g, const amg_matrix *A, int width) {
    int  n = A->n / width;
    int *place = fem_alloc((size_t)n, sizeof *place); // where a neighbour of the current node stands
    *g = (node_graph){.n = n};
    g->start = fem_alloc((size_t)n + 1, sizeof *g->start);
    g->adjacent = fem_alloc((size_t)A->start[A->n], sizeof *g->adjacent);
    g->strength = fem_alloc((size_t)A->start[A->n], sizeof *g->strength);
    g->strong = fem_alloc((size_t)A->start[A->n], 1);
    if (!place || !g->start || !g->adjacent || !g->strength || !g->strong) {
        fem_free(place);
        return fem_fail(FEM_NO_MEMORY, "no memory for the graph of %d multigrid nodes", n);
    }
    for (int v = 0; v < n; v++) place[v] = -1;
    int count = 0;
    for (int v = 0; v < n; v++) {
        g->start[v] = count;
        for (int k = A->start[v * width]; k < A->start[(v + 1) * width]; k++) {
            int   other = A->column[k] / width;
            float norm = block_norm(A->exact + 9 * (size_t)k);
            if (other == v || norm == 0) continue;
            if (place[other] < g->start[v]) {
                place[other] = count;
                g->adjacent[count] = other;
                g->strength[count++] = norm;
            } else if (norm > g->strength[place[other]]) {
                g->strength[place[other]] = norm;
            }
        }
        for (int k = g->start[v]; k < count; k++) g->strong[k] = g->strength[k] > (float)WEAK;
    }
    g->start[n] = count;
    fem_free(place);
    return FEM_OK;
}

static fem_status weaken_long_edges(node_graph *g, const double *points) {
    double *shortest = fem_alloc((size_t)g->n, sizeof *shortest);
    if (!shortest) return fem_fail(FEM_NO_MEMORY, "no memory for the graph of %d multigrid nodes", g->n);
    for (int v = 0; v < g->n; v++) {
        shortest[v] = INFINITY;
        for (int k = g->start[v]; k < g->start[v + 1]; k++)
            shortest[v] = fmin(shortest[v], vec3_distance(points + 3 * (size_t)v, points + 3 * (size_t)g->adjacent[k]));
    }
    for (int v = 0; v < g->n; v++)
        for (int k = g->start[v]; k < g->start[v + 1]; k++) {
            double length = vec3_distance(points + 3 * (size_t)v, points + 3 * (size_t)g->adjacent[k]);
            if (length > FAR * fmax(shortest[v], shortest[g->adjacent[k]])) g->strong[k] = 0;
        }
    fem_free(shortest);
    return FEM_OK;
}

// Marks what is at most `reach` strong edges from the root.
static void cover(const node_graph *g, int root, int reach, unsigned char *covered, int *stamp, int *queue) {
    int count = 0, from = 0;
    covered[root] = 1, stamp[root] = root;
    queue[count++] = root;
    for (int depth = 0; depth < reach; depth++)
        for (int end = count; from < end; from++)
            for (int k = g->start[queue[from]]; k < g->start[queue[from] + 1]; k++) {
                int other = g->adjacent[k];
                if (!g->strong[k] || stamp[other] == root) continue;
                covered[other] = 1, stamp[other] = root;
                queue[count++] = other;
            }
}

// Each node the label of its nearest root: breadth first from all roots at once.
static void join_nearest(const node_graph *g, int *label, int *queue, int roots) {
    for (int from = 0, count = roots; from < count; from++)
        for (int k = g->start[queue[from]]; k < g->start[queue[from] + 1]; k++) {
            int other = g->adjacent[k];
            if (!g->strong[k] || label[other] >= 0) continue;
            label[other] = label[queue[from]];
            queue[count++] = other;
        }
}

// Aggregates of fewer than FEW_NODES nodes go to the neighbour that is most strongly connected, when there is one.
static void join_small(const node_graph *g, int *label, int *size) {
    for (int v = 0; v < g->n; v++) {
        if (label[v] < 0 || size[label[v]] >= FEW_NODES) continue;
        int   best = -1;
        float most = 0;
        for (int k = g->start[v]; k < g->start[v + 1]; k++)
            if (label[g->adjacent[k]] != label[v] && label[g->adjacent[k]] >= 0 && g->strength[k] > most)
                most = g->strength[k], best = g->adjacent[k];
        if (best < 0) continue;
        size[label[v]]--;
        label[v] = label[best];
        size[label[v]]++;
    }
}

fem_status amg_aggregate(const amg_matrix *A, const double *points, int *aggregate, int *count) {
    fem_status     status = FEM_OK;
    int            width = points ? 1 : 2, n = A->n / width, roots = 0;
    node_graph     g = {0};
    int           *label = fem_alloc((size_t)n, sizeof *label), *queue = fem_alloc((size_t)n, sizeof *queue);
    int           *root = fem_alloc((size_t)n, sizeof *root), *stamp = fem_alloc((size_t)n, sizeof *stamp);
    unsigned char *covered = fem_calloc((size_t)n, 1);
    if (!label || !queue || !root || !stamp || !covered) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the aggregates of %d multigrid nodes", n);
        goto done;
    }
    FEM_TRY(make_graph(&g, A, width));
    if (points) FEM_TRY(weaken_long_edges(&g, points));
    for (int v = 0; v < n; v++) label[v] = stamp[v] = -1;
    for (int v = 0; v < n; v++) {
        if (covered[v] || g.start[v] == g.start[v + 1]) continue;
        cover(&g, v, points ? FINEST_REACH : REACH, covered, stamp, queue);
        label[v] = roots;
        root[roots++] = v;
    }
    memcpy(queue, root, (size_t)roots * sizeof *root);
    join_nearest(&g, label, queue, roots);
    int *size = root; // the roots are done with
    memset(size, 0, (size_t)roots * sizeof *size);
    for (int v = 0; v < n; v++)
        if (label[v] >= 0) size[label[v]]++;
    join_small(&g, label, size);
    *count = 0;
    for (int a = 0; a < roots; a++) stamp[a] = size[a] > 0 ? (*count)++ : -1; // numbers without gaps
    for (int i = 0; i < A->n; i++) aggregate[i] = label[i / width] < 0 ? -1 : stamp[label[i / width]];
done:
    destroy_graph(&g);
    fem_free(label), fem_free(queue), fem_free(root), fem_free(stamp), fem_free(covered);
    return status;
}
