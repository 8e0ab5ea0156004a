// Embedding of points in a mesh: the nearest element of each point (that contains it, as a rule) and its weights.
//
// The elements are in a tree of boxes. A point is first sought in the elements whose boxes contain it, with a cheap
// test; only when none has it the nearest element is sought, nearer boxes first, leaving out those that are farther
// away than the best element so far.
#include "libfem/box_tree.h"

#include <limits.h>
#include <string.h>

enum { BATCH = 512 };

// A point this near to an element, in units of the element's size, lies inside: it may be one of its own vertices.
static const double INSIDE = 1e-9;

typedef struct tree {
    const fem_mesh *mesh;
    fem_box_tree    boxes; // of its elements
} tree;

typedef struct nearest {
    int    element;
    double square; // squared distance, 0 inside
    double weights[8];
} nearest;

// ---- the tree --------------------------------------------------------------------------------------------------

static fem_box element_box(const fem_mesh *mesh, int element) {
    int        width = fem_element_vertices(mesh->type);
    const int *v = mesh->elements + (size_t)element * (size_t)width;
    fem_box    b;
    fem_box_empty(&b);
    for (int k = 0; k < width; k++)
        fem_box_add(&b, mesh->vertices + 3 * (size_t)v[k], mesh->vertices + 3 * (size_t)v[k]);
    return b;
}

static fem_status tree_create(tree *t, const fem_mesh *mesh) {
    fem_box *boxes = fem_alloc((size_t)mesh->element_count, sizeof *boxes);
    if (!boxes) return fem_fail(FEM_NO_MEMORY, "no memory for the boxes of %d elements", mesh->element_count);
    for (int e = 0; e < mesh->element_count; e++) boxes[e] = element_box(mesh, e);
    t->mesh = mesh;
    fem_status status = fem_box_tree_create(&t->boxes, mesh->element_count, boxes);
    fem_free(boxes);
    return status;
}

// ---- tetrahedra ------------------------------------------------------------------------------------------------

// Barycentric weights, which go on linearly outside.
static void tetrahedron_weights(const fem_mesh *mesh, const int *v, const double p[3], double *weights) {
    double e[3][3], d[3], n[3];
    for (int k = 0; k < 3; k++)
        vec3_sub(e[k], mesh->vertices + 3 * (size_t)v[k + 1], mesh->vertices + 3 * (size_t)v[0]);
    vec3_sub(d, p, mesh->vertices + 3 * (size_t)v[0]);
    for (int k = 0; k < 3; k++) {
        vec3_cross(n, e[(k + 1) % 3], e[(k + 2) % 3]);
        weights[k + 1] = vec3_dot(n, d) / vec3_dot(n, e[k]);
    }
    weights[0] = 1 - weights[1] - weights[2] - weights[3];
}

static double tetrahedron_distance(const fem_mesh *mesh, const int *v, const double p[3],
                                   const double *weights) { // squared
    static const int faces[4][3] = {{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}};
    double           square = INFINITY;
    for (int k = 0; k < 4; k++) { // the nearest point lies on a face that p is behind
        if (weights[k] >= 0) continue;
        const double *x[3];
        for (int i = 0; i < 3; i++) x[i] = mesh->vertices + 3 * (size_t)v[faces[k][i]];
        square = fmin(square, fem_triangle_distance(p, x[0], x[1], x[2]));
    }
    return square < INFINITY ? square : 0;
}

// ---- hexahedra -------------------------------------------------------------------------------------------------

// Weights of the corners at t in the unit cube, and r = p - x(t), J = dx/dt (row-major).
static void hexahedron_evaluate(double (*x)[3], const double t[3], const double p[3], double weights[8], double r[3],
                                double J[9]) {
    static const int at[8][3] = {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0},
                                 {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}};
    for (int i = 0; i < 3; i++) r[i] = p[i];
    for (int i = 0; i < 9; i++) J[i] = 0;
    for (int c = 0; c < 8; c++) {
        double f[3], g[3];
        for (int k = 0; k < 3; k++) f[k] = at[c][k] ? t[k] : 1 - t[k], g[k] = at[c][k] ? 1 : -1;
        double slope[3] = {g[0] * f[1] * f[2], f[0] * g[1] * f[2], f[0] * f[1] * g[2]};
        weights[c] = f[0] * f[1] * f[2];
        for (int i = 0; i < 3; i++) {
            r[i] -= weights[c] * x[c][i];
            for (int k = 0; k < 3; k++) J[3 * i + k] += x[c][i] * slope[k];
        }
    }
}

// Step that reduces |r - J step|^2 over the coordinates that are free, the others keep their place. A singular system
// gives a step along the gradient.
static void free_step(const double J[9], const double r[3], const bool free[3], double step[3]) {
    double A[9], B[9], g[3];
    for (int i = 0; i < 3; i++) {
        g[i] = free[i] ? J[i] * r[0] + J[3 + i] * r[1] + J[6 + i] * r[2] : 0;
        for (int k = 0; k < 3; k++) {
            double product = J[i] * J[k] + J[3 + i] * J[3 + k] + J[6 + i] * J[6 + k];
            A[3 * i + k] = free[i] && free[k] ? product : (i == k ? 1.0 : 0.0);
        }
    }
    double trace = A[0] + A[4] + A[8];
    if (mat3_inverse(B, A) != 0)
        mat3_mul_vec(step, B, g);
    else
        for (int i = 0; i < 3; i++) step[i] = g[i] / trace;
}

// Gauss-Newton for the nearest point of the hexahedron, t kept in the unit cube: a coordinate that lies on a wall and
// wants to leave is held. Inside, where J can be inverted, this is Newton's method for x(t) = p. Returns |p - x(t)|^2.
static double hexahedron_search(double (*x)[3], const double p[3], double size, double t[3], double weights[8]) {
    double r[3], J[9];
    hexahedron_evaluate(x, t, p, weights, r, J);
    double square = vec3_dot(r, r);
    for (int iteration = 0; iteration < 30 && square > 1e-30 * size * size; iteration++) {
        bool   free[3];
        double step[3], next[3], next_weights[8], next_r[3], next_J[9], reduced = square;
        for (int k = 0; k < 3; k++) {
            double pull = J[k] * r[0] + J[3 + k] * r[1] + J[6 + k] * r[2]; // downhill direction of t[k]
            free[k] = !((t[k] <= 0 && pull < 0) || (t[k] >= 1 && pull > 0));
        }
        free_step(J, r, free, step);
        if (fmax(fabs(step[0]), fmax(fabs(step[1]), fabs(step[2]))) < 1e-13) break;
        double length = 1;
        for (int half = 0; half < 12; half++, length /= 2) {
            for (int k = 0; k < 3; k++) next[k] = fmax(0, fmin(1, t[k] + length * step[k]));
            hexahedron_evaluate(x, next, p, next_weights, next_r, next_J);
            reduced = vec3_dot(next_r, next_r);
            if (reduced < square) break;
        }
        if (!(reduced < square)) break;
        bool settled = square - reduced <= 1e-12 * square;
        square = reduced;
        for (int k = 0; k < 3; k++) t[k] = next[k], r[k] = next_r[k];
        for (int k = 0; k < 8; k++) weights[k] = next_weights[k];
        for (int k = 0; k < 9; k++) J[k] = next_J[k];
        if (settled) break;
    }
    return square;
}

// Newton's method for x(t) = p, given up as soon as it leaves the neighbourhood of the element: a quick test that finds
// nearly all points that lie inside.
static bool hexahedron_contains(const fem_mesh *mesh, const int *v, const double p[3], double size, double *weights) {
    double x[8][3], t[3] = {0.5, 0.5, 0.5}, r[3], J[9], inverse[9], step[3];
    for (int c = 0; c < 8; c++)
        for (int k = 0; k < 3; k++) x[c][k] = mesh->vertices[3 * (size_t)v[c] + (size_t)k];
    for (int iteration = 0; iteration < 12; iteration++) {
        hexahedron_evaluate(x, t, p, weights, r, J);
        if (mat3_inverse(inverse, J) == 0) return false;
        mat3_mul_vec(step, inverse, r);
        bool settled = true;
        for (int k = 0; k < 3; k++) {
            t[k] += step[k];
            if (!(fabs(t[k] - 0.5) < 1.5)) return false;
            settled = settled && fabs(step[k]) < 1e-8; // the step after this would be of the order 1e-16
        }
        if (!settled) continue;
        for (int k = 0; k < 3; k++) t[k] = fmax(0, fmin(1, t[k]));
        hexahedron_evaluate(x, t, p, weights, r, J);
        return vec3_dot(r, r) <= INSIDE * INSIDE * size * size;
    }
    return false;
}

// Tries the middle first; then, for a curved element whose distance may have several minima, the nearest corner.
static double hexahedron_nearest(const fem_mesh *mesh, const int *v, const double p[3], double size, double *weights) {
    static const double at[8][3] = {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0},
                                    {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}};
    double              x[8][3], t[3] = {0.5, 0.5, 0.5}, other[8], nearest_corner = INFINITY;
    int                 corner = 0;
    for (int c = 0; c < 8; c++) {
        const double *at_corner = mesh->vertices + 3 * (size_t)v[c];
        for (int k = 0; k < 3; k++) x[c][k] = at_corner[k];
        double distance = vec3_distance(at_corner, p);
        if (distance < nearest_corner) nearest_corner = distance, corner = c;
    }
    double square = hexahedron_search(x, p, size, t, weights);
    if (square <= INSIDE * INSIDE * size * size) return square;
    for (int k = 0; k < 3; k++) t[k] = at[corner][k];
    double second = hexahedron_search(x, p, size, t, other);
    if (second < square) {
        square = second;
        for (int k = 0; k < 8; k++) weights[k] = other[k];
    }
    return square;
}

// ---- search ----------------------------------------------------------------------------------------------------

static const int *corners_of(const fem_mesh *mesh, int element) {
    return mesh->elements + (size_t)element * (size_t)fem_element_vertices(mesh->type);
}

static bool try_inside(const fem_mesh *mesh, int element, const fem_box *b, const double p[3], nearest *best) {
    const int *v = corners_of(mesh, element);
    if (!fem_box_contains(b, p)) return false;
    best->element = element;
    if (mesh->type == FEM_H8) return hexahedron_contains(mesh, v, p, vec3_distance(b->low, b->high), best->weights);
    tetrahedron_weights(mesh, v, p, best->weights);
    return best->weights[0] >= 0 && best->weights[1] >= 0 && best->weights[2] >= 0 && best->weights[3] >= 0;
}

static void try_nearest(const fem_mesh *mesh, int element, const fem_box *b, const double p[3], nearest *best) {
    const int *v = corners_of(mesh, element);
    if (fem_box_distance(b, p) > best->square) return;
    double weights[8], size = vec3_distance(b->low, b->high), square;
    if (mesh->type == FEM_T4) {
        tetrahedron_weights(mesh, v, p, weights);
        square = tetrahedron_distance(mesh, v, p, weights);
    } else {
        square = hexahedron_nearest(mesh, v, p, size, weights);
    }
    if (square <= INSIDE * INSIDE * size * size) square = 0;
    if (square > best->square || (square == best->square && element > best->element)) return;
    best->element = element;
    best->square = square;
    for (int k = 0; k < fem_element_vertices(mesh->type); k++) best->weights[k] = weights[k];
}

static bool find_inside(const tree *t, const double p[3], nearest *best) {
    int stack[FEM_BOX_DEPTH], depth = 0;
    if (fem_box_contains(&t->boxes.boxes[0], p)) stack[depth++] = 0;
    while (depth > 0) {
        int node = stack[--depth];
        if (node < t->boxes.leaves - 1) {
            for (int child = 2 * node + 2; child > 2 * node; child--)
                if (fem_box_contains(&t->boxes.boxes[child], p)) stack[depth++] = child;
            continue;
        }
        size_t first = (size_t)(node - (t->boxes.leaves - 1)) * FEM_BOX_LEAF;
        for (size_t i = first; i < first + FEM_BOX_LEAF && i < (size_t)t->mesh->element_count; i++)
            if (try_inside(t->mesh, t->boxes.order[i], &t->boxes.own[i], p, best)) return true;
    }
    return false;
}

static nearest find_nearest(const tree *t, const double p[3]) {
    nearest best = {.element = INT_MAX, .square = 0};
    if (find_inside(t, p, &best)) return best;
    best = (nearest){.element = INT_MAX, .square = INFINITY};
    struct {
        int    node;
        double square;
    } stack[FEM_BOX_DEPTH];
    int depth = 0;
    stack[depth].node = 0, stack[depth++].square = fem_box_distance(&t->boxes.boxes[0], p);
    while (depth > 0 && best.square > 0) {
        depth--;
        int node = stack[depth].node;
        if (stack[depth].square > best.square) continue;
        if (node >= t->boxes.leaves - 1) {
            size_t first = (size_t)(node - (t->boxes.leaves - 1)) * FEM_BOX_LEAF;
            for (size_t i = first; i < first + FEM_BOX_LEAF && i < (size_t)t->mesh->element_count; i++)
                try_nearest(t->mesh, t->boxes.order[i], &t->boxes.own[i], p, &best);
            continue;
        }
        int    near_child = 2 * node + 1, far_child = near_child + 1;
        double near_square = fem_box_distance(&t->boxes.boxes[near_child], p),
               far_square = fem_box_distance(&t->boxes.boxes[far_child], p);
        if (far_square < near_square) {
            double square = near_square;
            near_square = far_square, far_square = square;
            near_child++, far_child--;
        }
        if (far_square < INFINITY) stack[depth].node = far_child, stack[depth++].square = far_square;
        stack[depth].node = near_child, stack[depth++].square = near_square;
    }
    return best;
}

typedef struct job {
    const tree    *tree;
    const double  *points;
    fem_embedding *embedding;
    int           *outside; // per batch
} job;

static void embed_batch(void *context, int batch, int worker) {
    (void)worker;
    job            *j = context;
    const fem_mesh *mesh = j->tree->mesh;
    fem_embedding  *m = j->embedding;
    size_t          width = (size_t)m->width;
    for (int i = batch * BATCH; i < m->point_count && i < (batch + 1) * BATCH; i++) {
        nearest found = find_nearest(j->tree, j->points + 3 * (size_t)i);
        m->element[i] = found.element;
        j->outside[batch] += found.square > 0;
        for (size_t k = 0; k < width; k++) {
            m->vertices[(size_t)i * width + k] = mesh->elements[(size_t)found.element * width + k];
            m->weights[(size_t)i * width + k] = found.weights[k];
        }
    }
}

static fem_status check_points(int count, const double *points) {
    // indices of the last batch must fit; distances are squared
    if (count < 0 || count > INT_MAX - BATCH) return fem_fail(FEM_BAD_INPUT, "%d points cannot be embedded", count);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 3; k++)
            if (!(fabs(points[3 * (size_t)i + (size_t)k]) < 1e150))
                return fem_fail(FEM_BAD_INPUT, "point %d: coordinate %c is %g, expected a finite number below 1e150", i,
                                "xyz"[k], points[3 * (size_t)i + (size_t)k]);
    return FEM_OK;
}

fem_status fem_embed_points(fem_embedding *embedding, const fem_mesh *mesh, int point_count, const double *points) {
    fem_status    status = FEM_OK;
    tree          search = {0};
    fem_embedding m = {.point_count = point_count, .width = fem_element_vertices(mesh->type)};
    int          *outside = NULL;
    FEM_TRY(check_points(point_count, points));
    if (mesh->element_count < 1) {
        status = fem_fail(FEM_BAD_INPUT, "points cannot be embedded in a mesh without elements");
        goto done;
    }
    int batches = (point_count + BATCH - 1) / BATCH;
    m.vertices = fem_alloc((size_t)point_count * (size_t)m.width, sizeof *m.vertices);
    m.weights = fem_alloc((size_t)point_count * (size_t)m.width, sizeof *m.weights);
    m.element = fem_alloc((size_t)point_count, sizeof *m.element);
    outside = fem_calloc((size_t)batches, sizeof *outside);
    if (!m.vertices || !m.weights || !m.element || !outside) {
        status = fem_fail(FEM_NO_MEMORY, "no memory to embed %d points", point_count);
        goto done;
    }
    FEM_TRY(tree_create(&search, mesh));
    fem_parallel_for(batches, embed_batch, &(job){&search, points, &m, outside});
    for (int i = 0; i < batches; i++) m.outside += outside[i];
    fem_embedding_destroy(embedding);
    *embedding = m;
    m = (fem_embedding){0};
done:
    fem_free(outside);
    fem_box_tree_destroy(&search.boxes);
    fem_embedding_destroy(&m);
    return status;
}

fem_status fem_embed_skin(fem_embedding *embedding, const fem_mesh *mesh) {
    fem_status    status = FEM_OK;
    fem_embedding m = {.width = fem_element_vertices(mesh->type)};
    size_t        width = (size_t)m.width;
    int           triangles = 0, *corners = NULL, *element = NULL;
    FEM_TRY(fem_mesh_surface(mesh, &triangles, &corners, NULL));
    element =
        fem_alloc((size_t)mesh->vertex_count, sizeof *element); // on the surface: one that has the vertex, else -1
    if (!element) goto no_memory;
    for (int v = 0; v < mesh->vertex_count; v++) element[v] = -1;
    for (size_t i = 0; i < 3 * (size_t)triangles; i++) element[corners[i]] = 0;
    for (size_t i = 0; i < (size_t)mesh->element_count * width; i++)
        if (element[mesh->elements[i]] >= 0) element[mesh->elements[i]] = (int)(i / width);
    for (int v = 0; v < mesh->vertex_count; v++) m.point_count += element[v] >= 0;
    m.vertices = fem_alloc((size_t)m.point_count * width, sizeof *m.vertices);
    m.weights = fem_calloc((size_t)m.point_count * width, sizeof *m.weights);
    m.element = fem_alloc((size_t)m.point_count, sizeof *m.element);
    if (!m.vertices || !m.weights || !m.element) goto no_memory;
    for (int v = 0, k = 0; v < mesh->vertex_count; v++) {
        if (element[v] < 0) continue;
        const int *of = mesh->elements + (size_t)element[v] * width;
        m.element[k] = element[v];
        memcpy(m.vertices + (size_t)k * width, of, width * sizeof *of);
        for (size_t i = 0; i < width; i++) m.weights[(size_t)k * width + i] = of[i] == v;
        k++;
    }
    fem_embedding_destroy(embedding);
    *embedding = m;
    m = (fem_embedding){0};
    goto done;
no_memory:
    status = fem_fail(FEM_NO_MEMORY, "no memory to embed the surface of %d vertices", mesh->vertex_count);
done:
    fem_free(corners), fem_free(element);
    fem_embedding_destroy(&m);
    return status;
}

void fem_embedding_apply(const fem_embedding *embedding, const double *field, double *out) {
    size_t width = (size_t)embedding->width;
    for (size_t i = 0; i < (size_t)embedding->point_count; i++) {
        double value[3] = {0, 0, 0};
        for (size_t k = 0; k < width; k++)
            vec3_axpy(value, embedding->weights[i * width + k], field + 3 * (size_t)embedding->vertices[i * width + k]);
        for (size_t k = 0; k < 3; k++) out[3 * i + k] = value[k];
    }
}

void fem_embedding_destroy(fem_embedding *embedding) {
    if (!embedding) return;
    fem_free(embedding->vertices), fem_free(embedding->weights), fem_free(embedding->element);
    *embedding = (fem_embedding){0};
}

double fem_embedding_distance(const fem_embedding *e, const fem_mesh *mesh, int point, const double p[3]) {
    size_t width = (size_t)e->width, first = (size_t)point * width;
    double x[3] = {0}, sum = 0;
    for (size_t k = first; k < first + width; k++) sum += fmax(e->weights[k], 0);
    for (size_t k = first; k < first + width; k++)
        vec3_axpy(x, fmax(e->weights[k], 0) / sum, mesh->vertices + 3 * (size_t)e->vertices[k]);
    return vec3_distance(x, p);
}
