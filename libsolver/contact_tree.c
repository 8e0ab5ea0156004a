// The bounded-deformation tree over the samples of a surface: built top-down by halving the longest side of the box
// around the samples at rest. The tree keeps its shape for every q; only the balls that are visited are refitted.
#include "libsolver/contact_internal.h"

enum { LEAF_SAMPLES = 8 };

void solver_bounds_destroy(solver_bounds *tree) {
    fem_free(tree->nodes);
    fem_free(tree->balls);
    fem_free(tree->order);
    *tree = (solver_bounds){0};
}

// The middle and the largest distance from it, of the points at `point(k) = base + stride order[k]`.
static void bound(int count, const int *order, const double *base, size_t stride, size_t step, double ball[4]) {
    double low[3], high[3], largest = 0;
    for (int k = 0; k < 3; k++) low[k] = INFINITY, high[k] = -INFINITY;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 3; k++) {
            double x = base[(size_t)order[i] * stride + (size_t)k * step];
            low[k] = fmin(low[k], x), high[k] = fmax(high[k], x);
        }
    for (int k = 0; k < 3; k++) ball[k] = (low[k] + high[k]) / 2;
    for (int i = 0; i < count; i++) {
        double square = 0;
        for (int k = 0; k < 3; k++) {
            double d = base[(size_t)order[i] * stride + (size_t)k * step] - ball[k];
            square += d * d;
        }
        largest = fmax(largest, square);
    }
    ball[3] = sqrt(largest) * (1 + 1e-12); // rounding must not leave a sample outside
}

// Puts the samples with the smaller coordinates first: quickselect of the middle one.
static void split(int count, int *order, const double *X, int axis) {
    int low = 0, high = count - 1, middle = count / 2;
    while (low < high) {
        double pivot = X[3 * (size_t)order[(low + high) / 2] + (size_t)axis];
        int    i = low, j = high;
        while (i <= j) {
            while (X[3 * (size_t)order[i] + (size_t)axis] < pivot) i++;
            while (X[3 * (size_t)order[j] + (size_t)axis] > pivot) j--;
            if (i > j) break;
            int swap = order[i];
            order[i++] = order[j], order[j--] = swap;
        }
        if (middle <= j)
            high = j;
        else if (middle >= i)
            low = i;
        else
            return;
    }
}

static int longest_side(int count, const int *order, const double *X) {
    int    longest = 0;
    double length = -1;
    for (int k = 0; k < 3; k++) {
        double low = INFINITY, high = -INFINITY;
        for (int i = 0; i < count; i++) {
            low = fmin(low, X[3 * (size_t)order[i] + (size_t)k]);
            high = fmax(high, X[3 * (size_t)order[i] + (size_t)k]);
        }
        if (high - low > length) length = high - low, longest = k;
    }
    return longest;
}

static int grow(solver_bounds *tree, const solver_samples *samples, int first, int count, int level) {
    int     number = tree->node_count++, r = tree->r;
    int    *order = tree->order + first;
    double *balls = tree->balls + (size_t)number * 4 * (size_t)(1 + r);
    tree->nodes[number] = (solver_bounds_node){.first = first, .count = count, .right = -1};
    if (level > tree->depth) tree->depth = level;
    bound(count, order, samples->X, 3, 1, balls);
    for (int l = 0; l < r; l++) bound(count, order, samples->U + l, 3 * (size_t)r, (size_t)r, balls + 4 * (1 + l));
    if (count <= LEAF_SAMPLES) return number;
    split(count, order, samples->X, longest_side(count, order, samples->X));
    grow(tree, samples, first, count / 2, level + 1);
    tree->nodes[number].right = grow(tree, samples, first + count / 2, count - count / 2, level + 1);
    return number;
}

// A node with more than LEAF_SAMPLES is halved, so a leaf has at least LEAF_SAMPLES / 2 of them.
fem_status solver_bounds_create(solver_bounds *result, const solver_samples *samples) {
    size_t        count = (size_t)samples->count, nodes = 2 * (count / (LEAF_SAMPLES / 2) + 1);
    solver_bounds tree = {.r = samples->r};
    tree.order = fem_alloc(count, sizeof *tree.order);
    tree.nodes = fem_alloc(nodes, sizeof *tree.nodes);
    tree.balls = fem_alloc(nodes, 4 * (1 + (size_t)samples->r) * sizeof *tree.balls);
    if (!tree.order || !tree.nodes || !tree.balls) {
        solver_bounds_destroy(&tree);
        return fem_fail(FEM_NO_MEMORY, "contact: a tree over %d samples with %d modes", samples->count, samples->r);
    }
    for (int i = 0; i < samples->count; i++) tree.order[i] = i;
    grow(&tree, samples, 0, samples->count, 1);
    *result = tree;
    return FEM_OK;
}

void solver_bounds_ball(const solver_bounds *tree, int node, const double *q, double ball[4]) {
    const double *b = tree->balls + (size_t)node * 4 * (size_t)(1 + tree->r);
    for (int k = 0; k < 4; k++) ball[k] = b[k];
    for (int l = 0; l < tree->r; l++) {
        b += 4;
        for (int k = 0; k < 3; k++) ball[k] += q[l] * b[k];
        ball[3] += fabs(q[l]) * b[3];
    }
}
