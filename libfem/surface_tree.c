// Searches among the triangles of a surface.
#include "libfem/surface_tree.h"

#include <string.h>

// A node farther away than this many of its radii is taken as a whole.
static const double FAR = 3;

enum { MOST_CROSSINGS = 64 };

void fem_surface_tree_destroy(fem_surface_tree *t) {
    fem_box_tree_destroy(&t->boxes);
    fem_free(t->corners), fem_free(t->moments);
    *t = (fem_surface_tree){0};
}

// ---- moments ---------------------------------------------------------------------------------------------------

static void area_vector(const double *x, double n[3]) {
    double a[3], b[3];
    vec3_sub(a, x + 3, x), vec3_sub(b, x + 6, x);
    vec3_cross(n, a, b);
    for (int k = 0; k < 3; k++) n[k] /= 2;
}

static void add_spread(double spread[9], const double from[3], const double to[3], const double n[3]) {
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) spread[3 * i + k] += (to[i] - from[i]) * n[k];
}

static void leaf_moments(const fem_surface_tree *t, int leaf, fem_surface_moments *m, double *area) {
    size_t first = (size_t)leaf * FEM_BOX_LEAF, end = first + FEM_BOX_LEAF;
    if (end > (size_t)t->boxes.count) end = (size_t)t->boxes.count;
    double middle[3], n[3];
    for (size_t i = first; i < end; i++) {
        const double *x = t->corners + 9 * i;
        area_vector(x, n);
        double size = vec3_norm(n) + 1e-300;
        *area += size;
        for (int k = 0; k < 3; k++) m->centre[k] += size * (x[k] + x[3 + k] + x[6 + k]) / 3, m->sum[k] += n[k];
    }
    for (int k = 0; k < 3 && *area > 0; k++) m->centre[k] /= *area;
    for (size_t i = first; i < end; i++) {
        const double *x = t->corners + 9 * i;
        area_vector(x, n);
        for (int k = 0; k < 3; k++) middle[k] = (x[k] + x[3 + k] + x[6 + k]) / 3;
        add_spread(m->spread, m->centre, middle, n);
    }
}

static void join_moments(const fem_surface_moments child[2], const double area[2], fem_surface_moments *m) {
    for (int c = 0; c < 2; c++)
        for (int k = 0; k < 3; k++)
            m->centre[k] += area[c] * child[c].centre[k] / (area[0] + area[1]), m->sum[k] += child[c].sum[k];
    for (int c = 0; c < 2; c++) {
        if (child[c].radius < 0) continue;
        for (int k = 0; k < 9; k++) m->spread[k] += child[c].spread[k];
        add_spread(m->spread, m->centre, child[c].centre, child[c].sum);
    }
}

static fem_status set_moments(fem_surface_tree *t) {
    int     leaves = t->boxes.leaves, nodes = 2 * leaves - 1;
    double *area = fem_calloc((size_t)nodes, sizeof *area);
    t->moments = fem_calloc((size_t)nodes, sizeof *t->moments);
    if (!area || !t->moments) {
        fem_free(area);
        return fem_fail(FEM_NO_MEMORY, "no memory for the moments of %d nodes", nodes);
    }
    for (int node = nodes - 1; node >= 0; node--) {
        fem_surface_moments *m = &t->moments[node];
        const fem_box       *b = &t->boxes.boxes[node];
        if (node >= leaves - 1) {
            leaf_moments(t, node - (leaves - 1), m, &area[node]);
        } else {
            area[node] = area[2 * node + 1] + area[2 * node + 2];
            if (area[node] > 0) join_moments(&t->moments[2 * node + 1], &area[2 * node + 1], m);
        }
        double corner[3];
        for (int k = 0; k < 3; k++) corner[k] = fmax(b->high[k] - m->centre[k], m->centre[k] - b->low[k]);
        m->radius = area[node] > 0 ? vec3_norm(corner) : -1;
    }
    fem_free(area);
    return FEM_OK;
}

fem_status fem_surface_tree_create(fem_surface_tree *t, int count, const int *triangles, const double *vertices) {
    fem_status status = FEM_OK;
    fem_box   *boxes = fem_alloc((size_t)count, sizeof *boxes);
    *t = (fem_surface_tree){0};
    t->corners = fem_alloc((size_t)count, 9 * sizeof *t->corners);
    if (!boxes || !t->corners) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a search tree of %d triangles", count);
        goto done;
    }
    for (size_t i = 0; i < (size_t)count; i++) {
        fem_box_empty(&boxes[i]);
        for (int k = 0; k < 3; k++) {
            const double *x = vertices + 3 * (size_t)triangles[3 * i + (size_t)k];
            fem_box_add(&boxes[i], x, x);
        }
    }
    FEM_TRY(fem_box_tree_create(&t->boxes, count, boxes));
    for (size_t i = 0; i < (size_t)count; i++)
        for (size_t k = 0; k < 3; k++)
            memcpy(t->corners + 9 * i + 3 * k, vertices + 3 * (size_t)triangles[3 * (size_t)t->boxes.order[i] + k],
                   3 * sizeof(double));
    FEM_TRY(set_moments(t));
done:
    fem_free(boxes);
    if (status != FEM_OK) fem_surface_tree_destroy(t);
    return status;
}

// ---- distance --------------------------------------------------------------------------------------------------

double fem_surface_distance(const fem_surface_tree *t, const double p[3]) {
    int    stack[FEM_BOX_DEPTH], depth = 0, leaves = t->boxes.leaves;
    double best = INFINITY;
    stack[depth++] = 0;
    while (depth > 0) {
        int node = stack[--depth];
        if (fem_box_distance(&t->boxes.boxes[node], p) >= best) continue;
        if (node >= leaves - 1) {
            size_t first = (size_t)(node - (leaves - 1)) * FEM_BOX_LEAF;
            for (size_t i = first; i < first + FEM_BOX_LEAF && i < (size_t)t->boxes.count; i++) {
                const double *x = t->corners + 9 * i;
                if (fem_box_distance(&t->boxes.own[i], p) >= best) continue;
                best = fmin(best, fem_triangle_distance(p, x, x + 3, x + 6)); // NaN of a degenerate one is passed over
            }
            continue;
        }
        int near_child = 2 * node + 1, far_child = near_child + 1;
        if (fem_box_distance(&t->boxes.boxes[far_child], p) < fem_box_distance(&t->boxes.boxes[near_child], p))
            near_child++, far_child--;
        stack[depth++] = far_child;
        stack[depth++] = near_child;
    }
    return best;
}

// ---- winding number --------------------------------------------------------------------------------------------

// Half the solid angle of a triangle [van Oosterom and Strackee 1983].
static double half_solid_angle(const double *x, const double p[3]) {
    double a[3], b[3], c[3], n[3];
    vec3_sub(a, x, p), vec3_sub(b, x + 3, p), vec3_sub(c, x + 6, p);
    double la = vec3_norm(a), lb = vec3_norm(b), lc = vec3_norm(c);
    vec3_cross(n, b, c);
    double above = vec3_dot(a, n);
    double below = la * lb * lc + vec3_dot(a, b) * lc + vec3_dot(b, c) * la + vec3_dot(c, a) * lb;
    return above == 0 && below == 0 ? 0 : atan2(above, below);
}

// 4 pi times the winding number of a far node: with r = c - p,
// sum . r / |r|^3 + spread : (I / |r|^3 - 3 r r^T / |r|^5).
static double far_angle(const fem_surface_moments *m, const double r[3], double square) {
    double cube = 1 / (square * sqrt(square)), Sr[3], trace = m->spread[0] + m->spread[4] + m->spread[8];
    mat3_mul_vec(Sr, m->spread, r);
    return cube * (vec3_dot(m->sum, r) + trace - 3 * vec3_dot(r, Sr) / square);
}

double fem_surface_winding(const fem_surface_tree *t, const double p[3]) {
    int    stack[FEM_BOX_DEPTH], depth = 0, leaves = t->boxes.leaves;
    double angle = 0;
    stack[depth++] = 0;
    while (depth > 0) {
        int                        node = stack[--depth];
        const fem_surface_moments *m = &t->moments[node];
        double                     r[3];
        if (m->radius < 0) continue;
        vec3_sub(r, m->centre, p);
        double square = vec3_dot(r, r);
        if (square > FAR * FAR * m->radius * m->radius) {
            angle += far_angle(m, r, square);
        } else if (node >= leaves - 1) {
            size_t first = (size_t)(node - (leaves - 1)) * FEM_BOX_LEAF;
            for (size_t i = first; i < first + FEM_BOX_LEAF && i < (size_t)t->boxes.count; i++)
                angle += 2 * half_solid_angle(t->corners + 9 * i, p);
        } else {
            stack[depth++] = 2 * node + 2;
            stack[depth++] = 2 * node + 1;
        }
    }
    return angle / (4 * M_PI);
}

// ---- crossings -------------------------------------------------------------------------------------------------

typedef struct crossing {
    double t, change; // of the winding number
} crossing;

// Does the box meet the line p + t d, 0 <= t <= 1?
static bool box_meets(const fem_box *b, const double p[3], const double d[3]) {
    double first = 0, last = 1;
    for (int k = 0; k < 3; k++) {
        if (d[k] == 0) {
            if (p[k] < b->low[k] || p[k] > b->high[k]) return false;
            continue;
        }
        double t0 = (b->low[k] - p[k]) / d[k], t1 = (b->high[k] - p[k]) / d[k];
        first = fmax(first, fmin(t0, t1) - 1e-12), last = fmin(last, fmax(t0, t1) + 1e-12);
    }
    return first <= last;
}

// Moeller and Trumbore's test; a hit on an edge counts, for each of its triangles.
static bool triangle_crossed(const double *x, const double p[3], const double d[3], crossing *c) {
    double a[3], b[3], n[3], s[3], q[3];
    vec3_sub(a, x + 3, x), vec3_sub(b, x + 6, x), vec3_sub(s, p, x);
    vec3_cross(n, a, b);
    double det = -vec3_dot(d, n);
    if (det == 0) return false;
    vec3_cross(q, s, d);
    double u = vec3_dot(b, q) / det, v = -vec3_dot(a, q) / det, t = vec3_dot(s, n) / det;
    if (!(u >= -1e-12 && v >= -1e-12 && u + v <= 1 + 1e-12 && t >= 0 && t <= 1)) return false;
    *c = (crossing){t, det < 0 ? -1 : 1}; // along the normal: out of the body
    return true;
}

double fem_surface_exit(const fem_surface_tree *t, const double p[3], const double q[3], double winding) {
    crossing found[MOST_CROSSINGS];
    int      stack[FEM_BOX_DEPTH], depth = 0, leaves = t->boxes.leaves, count = 0;
    double   d[3];
    vec3_sub(d, q, p);
    stack[depth++] = 0;
    while (depth > 0) {
        int node = stack[--depth];
        if (!box_meets(&t->boxes.boxes[node], p, d)) continue;
        if (node < leaves - 1) {
            stack[depth++] = 2 * node + 2;
            stack[depth++] = 2 * node + 1;
            continue;
        }
        size_t first = (size_t)(node - (leaves - 1)) * FEM_BOX_LEAF;
        for (size_t i = first; i < first + FEM_BOX_LEAF && i < (size_t)t->boxes.count; i++) {
            if (!triangle_crossed(t->corners + 9 * i, p, d, &found[count])) continue;
            int at = count;
            for (crossing c = found[at]; at > 0 && found[at - 1].t > c.t; at--) // keeps them in order
                found[at] = found[at - 1], found[at - 1] = c;
            if (++count == MOST_CROSSINGS) return -1;
        }
    }
    for (int i = 0; i < count; i++) {
        winding += found[i].change;
        if (winding <= 0.5) return found[i].t;
    }
    return -1;
}

// Does the line along an axis through p pass the triangle, seen along that axis, or come near to it? Where is it then?
static bool near_line(const double *x, const fem_box *b, const double p[3], int axis, double *low, double *high) {
    int    u = (axis + 1) % 3, v = (axis + 2) % 3;
    double area[3], sum = 0, size = 0;
    for (int k = 0; k < 3; k++) {
        const double *a = x + 3 * k, *c = x + 3 * ((k + 1) % 3);
        area[k] = (a[u] - p[u]) * (c[v] - p[v]) - (a[v] - p[v]) * (c[u] - p[u]);
        sum += area[k], size += fabs(area[k]);
    }
    *low = b->low[axis], *high = b->high[axis];
    if (fabs(sum) <= 1e-6 * size) return true; // seen from its edge, or p is far: anywhere in its box
    for (int k = 0; k < 3; k++)
        if (area[k] / sum < -1e-6) return false;
    // the corner opposite to the edge k, k + 1 has the weight area[k] / sum
    double at = 0, slack = 1e-6 * (*high - *low);
    for (int k = 0; k < 3; k++) at += area[k] / sum * x[3 * ((k + 2) % 3) + axis];
    *low = at - slack, *high = at + slack;
    return true;
}

void fem_surface_mark_crossed(const fem_surface_tree *t, const double p[3], int axis, double step, int count,
                              unsigned char *crossed) {
    int stack[FEM_BOX_DEPTH], depth = 0, leaves = t->boxes.leaves, u = (axis + 1) % 3, v = (axis + 2) % 3;
    memset(crossed, 0, (size_t)count);
    stack[depth++] = 0;
    while (depth > 0) {
        int            node = stack[--depth];
        const fem_box *b = &t->boxes.boxes[node];
        double         slack = 1e-6 * step, low, high;
        if (p[u] < b->low[u] - slack || p[u] > b->high[u] + slack || p[v] < b->low[v] - slack ||
            p[v] > b->high[v] + slack)
            continue;
        if (node < leaves - 1) {
            stack[depth++] = 2 * node + 2;
            stack[depth++] = 2 * node + 1;
            continue;
        }
        size_t first = (size_t)(node - (leaves - 1)) * FEM_BOX_LEAF;
        for (size_t i = first; i < first + FEM_BOX_LEAF && i < (size_t)t->boxes.count; i++) {
            const fem_box *own = &t->boxes.own[i];
            if (p[u] < own->low[u] - slack || p[u] > own->high[u] + slack || p[v] < own->low[v] - slack ||
                p[v] > own->high[v] + slack || !near_line(t->corners + 9 * i, own, p, axis, &low, &high))
                continue;
            double from = floor((low - p[axis]) / step - 1e-6), to = floor((high - p[axis]) / step + 1e-6);
            for (int gap = (int)fmax(0, from); gap <= to && gap < count; gap++) crossed[gap] = 1;
        }
    }
}
