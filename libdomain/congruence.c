// Copies among the pieces of a mesh: see congruence.h.
//
// Centre and radius of gyration of the vertices give translation and scale. Two vertices of the model, the farthest
// from the centre and the farthest from the line through both, fix the rotation once their images are known: every pair
// of vertices of the piece at the same radii and the same distance is tried, and a try counts only when it puts all
// vertices and all elements onto each other. The best rotation of all pairs of vertices then is the answer, so that
// noise is averaged.
#include "libdomain/congruence.h"

#include "libdomain/frame.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct radius_of {
    double radius; // from the centre, over the radius of gyration
    int    vertex; // of the piece
} radius_of;

typedef struct element_key {
    int corners[8]; // ascending, of the piece; -1 behind those of a T4
    int material;
} element_key;

typedef struct piece {
    int          count, elements;
    const int   *vertices; // of the mesh
    double      *x;        // 3 per vertex: from the centre, over the radius of gyration
    double       centre[3], size;
    radius_of   *order; // by radius
    element_key *keys;  // ascending
} piece;

void domain_copies_destroy(domain_copies *c) {
    fem_free(c->piece), fem_free(c->class_of), fem_free(c->model), fem_free(c->start), fem_free(c->vertices);
    fem_free(c->p), fem_free(c->Q), fem_free(c->scale), fem_free(c->error);
    *c = (domain_copies){0};
}

static void piece_destroy(piece *p) {
    fem_free(p->x), fem_free(p->order), fem_free(p->keys);
    *p = (piece){0};
}

static int compare_radii(const void *a, const void *b) {
    const radius_of *x = a, *y = b;
    if (x->radius != y->radius) return x->radius < y->radius ? -1 : 1;
    return (x->vertex > y->vertex) - (x->vertex < y->vertex);
}

static int compare_ints(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static int compare_keys(const void *a, const void *b) { return memcmp(a, b, sizeof(element_key)); }

// ---- pieces --------------------------------------------------------------------------------------------------------

static int find_root(int *parent, int v) {
    while (parent[v] != v) v = parent[v] = parent[parent[v]];
    return v;
}

// Elements that share a vertex are of one piece. Fills count, piece, start and vertices (ascending).
static fem_status find_pieces(domain_copies *c, const fem_mesh *mesh) {
    fem_status status = FEM_OK;
    size_t     n = (size_t)mesh->vertex_count, width = (size_t)fem_element_vertices(mesh->type);
    int       *parent = fem_alloc(n, sizeof *parent), *number = fem_alloc(n, sizeof *number), used = 0;
    c->piece = fem_alloc((size_t)mesh->element_count, sizeof *c->piece);
    if (!parent || !number || !c->piece) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the pieces of %d elements", mesh->element_count);
        goto done;
    }
    for (size_t v = 0; v < n; v++) parent[v] = (int)v, number[v] = -1;
    for (size_t e = 0; e < (size_t)mesh->element_count; e++)
        for (size_t k = 1; k < width; k++) {
            int a = find_root(parent, mesh->elements[e * width]), b = find_root(parent, mesh->elements[e * width + k]);
            parent[a > b ? a : b] = a < b ? a : b;
        }
    for (size_t e = 0; e < (size_t)mesh->element_count; e++) {
        int root = find_root(parent, mesh->elements[e * width]);
        if (number[root] < 0) number[root] = c->count++;
        c->piece[e] = number[root];
    }
    c->start = fem_calloc((size_t)c->count + 2, sizeof *c->start);
    if (!c->start) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d pieces", c->count);
        goto done;
    }
    for (size_t v = 0; v < n; v++) {
        int of = number[find_root(parent, (int)v)];
        if (of >= 0) c->start[of + 2]++, used++;
    }
    for (int i = 0; i < c->count; i++) c->start[i + 2] += c->start[i + 1];
    c->vertices = fem_alloc((size_t)used, sizeof *c->vertices);
    if (!c->vertices) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d vertices", used);
        goto done;
    }
    for (size_t v = 0; v < n; v++) {
        int of = number[find_root(parent, (int)v)];
        if (of >= 0) c->vertices[c->start[of + 1]++] = (int)v;
    }
done:
    fem_free(parent), fem_free(number);
    return status;
}

// `local`: per vertex of the mesh, work space.
static fem_status make_piece(piece *p, const domain_copies *c, const fem_mesh *mesh, int index, int element_count,
                             const int *elements, int *local) {
    size_t width = (size_t)fem_element_vertices(mesh->type);
    *p = (piece){.count = c->start[index + 1] - c->start[index],
                 .elements = element_count,
                 .vertices = c->vertices + c->start[index]};
    size_t n = (size_t)p->count;
    p->x = fem_alloc(3 * n, sizeof *p->x);
    p->order = fem_alloc(n, sizeof *p->order);
    p->keys = fem_alloc((size_t)element_count, sizeof *p->keys);
    if (!p->x || !p->order || !p->keys)
        return fem_fail(FEM_NO_MEMORY, "no memory for a piece of %d vertices", p->count);
    for (size_t v = 0; v < n; v++) {
        local[p->vertices[v]] = (int)v;
        vec3_axpy(p->centre, 1.0 / p->count, mesh->vertices + 3 * (size_t)p->vertices[v]);
    }
    for (size_t v = 0; v < n; v++) {
        vec3_sub(p->x + 3 * v, mesh->vertices + 3 * (size_t)p->vertices[v], p->centre);
        p->size += vec3_dot(p->x + 3 * v, p->x + 3 * v) / p->count;
    }
    p->size = sqrt(p->size);
    for (size_t v = 0; v < n; v++) {
        for (size_t k = 0; k < 3; k++) p->x[3 * v + k] /= p->size;
        p->order[v] = (radius_of){vec3_norm(p->x + 3 * v), (int)v};
    }
    qsort(p->order, n, sizeof *p->order, compare_radii);
    for (size_t i = 0; i < (size_t)element_count; i++) {
        size_t       e = (size_t)elements[i];
        element_key *key = &p->keys[i];
        *key = (element_key){.corners = {-1, -1, -1, -1, -1, -1, -1, -1}};
        key->material = mesh->regions[mesh->region[e]].material;
        for (size_t k = 0; k < width; k++) key->corners[k] = local[mesh->elements[e * width + k]];
        qsort(key->corners, width, sizeof *key->corners, compare_ints);
    }
    qsort(p->keys, (size_t)element_count, sizeof *p->keys, compare_keys);
    return FEM_OK;
}

// ---- one piece on another ------------------------------------------------------------------------------------------

// The first place in the order with a radius of at least this.
static int first_at(const piece *p, double radius) {
    int low = 0, high = p->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (p->order[middle].radius < radius)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Axes of two vectors: the first, the second made perpendicular, their product; columns.
static void axes_of(const double a[3], const double b[3], double Q[9]) {
    double x[3] = {a[0], a[1], a[2]}, y[3] = {b[0], b[1], b[2]}, z[3];
    vec3_normalize(x);
    vec3_axpy(y, -vec3_dot(x, y), x);
    vec3_normalize(y);
    vec3_cross(z, x, y);
    for (int i = 0; i < 3; i++) Q[3 * i] = x[i], Q[3 * i + 1] = y[i], Q[3 * i + 2] = z[i];
}

// Vertices of the model that fix a rotation; false when all lie on a line.
static bool find_marks(const piece *m, int marks[2]) {
    double best = 0;
    marks[0] = m->order[m->count - 1].vertex;
    marks[1] = -1;
    for (int v = 0; v < m->count; v++) {
        double cross[3];
        vec3_cross(cross, m->x + 3 * (size_t)marks[0], m->x + 3 * (size_t)v);
        if (vec3_norm(cross) > best * (1 + 1e-9)) best = vec3_norm(cross), marks[1] = v;
    }
    return marks[1] >= 0 && best > 1e-6;
}

// match[v]: the vertex of p at R times vertex v of m. False when one has none, or two have the same.
static bool match_vertices(const piece *m, const piece *p, const double R[9], double tolerance, int *match,
                           int *taken) {
    for (int v = 0; v < p->count; v++) taken[v] = 0;
    for (int v = 0; v < m->count; v++) {
        double x[3], best = tolerance;
        mat3_mul_vec(x, R, m->x + 3 * (size_t)v);
        double radius = vec3_norm(x);
        match[v] = -1;
        for (int k = first_at(p, radius - tolerance); k < p->count && p->order[k].radius <= radius + tolerance; k++) {
            double distance = vec3_distance(p->x + 3 * (size_t)p->order[k].vertex, x);
            if (distance <= best) best = distance, match[v] = p->order[k].vertex;
        }
        if (match[v] < 0 || taken[match[v]]++) return false;
    }
    return true;
}

static bool match_elements(const piece *m, const piece *p, const int *match, element_key *keys) {
    for (int e = 0; e < m->elements; e++) {
        int width = 0;
        keys[e] = m->keys[e];
        for (; width < 8 && keys[e].corners[width] >= 0; width++)
            keys[e].corners[width] = match[keys[e].corners[width]];
        qsort(keys[e].corners, (size_t)width, sizeof(int), compare_ints);
    }
    qsort(keys, (size_t)m->elements, sizeof *keys, compare_keys);
    return memcmp(keys, p->keys, (size_t)m->elements * sizeof *keys) == 0;
}

static bool same_radii(const piece *m, const piece *p, double tolerance) {
    for (int k = 0; k < m->count; k++)
        if (fabs(m->order[k].radius - p->order[k].radius) > tolerance) return false;
    return true;
}

// Is p a copy of m? Then match has the vertices.
static bool find_match(const piece *m, const piece *p, double tolerance, int *match, int *taken, element_key *keys) {
    int marks[2];
    if (m->count != p->count || m->elements != p->elements || !same_radii(m, p, tolerance) || !find_marks(m, marks))
        return false;
    const double *a = m->x + 3 * (size_t)marks[0], *b = m->x + 3 * (size_t)marks[1];
    double        own[9], other[9], R[9], ra = vec3_norm(a), rb = vec3_norm(b), apart = vec3_distance(a, b);
    axes_of(a, b, own);
    for (int i = first_at(p, ra - tolerance); i < p->count && p->order[i].radius <= ra + tolerance; i++)
        for (int k = first_at(p, rb - tolerance); k < p->count && p->order[k].radius <= rb + tolerance; k++) {
            const double *c = p->x + 3 * (size_t)p->order[i].vertex, *d = p->x + 3 * (size_t)p->order[k].vertex;
            if (i == k || fabs(vec3_distance(c, d) - apart) > 2 * tolerance) continue;
            axes_of(c, d, other);
            mat3_mul_nt(R, other, own);
            // two vertices that are off by the tolerance turn the others by more
            if (match_vertices(m, p, R, 8 * tolerance, match, taken) && match_elements(m, p, match, keys)) return true;
        }
    return false;
}

// The rotation and the scale that fit all vertices best, and what they leave.
static void fit(const piece *m, const piece *p, const int *match, domain_copies *c, int index) {
    domain_polar polar;
    double       A[9] = {0}, along = 0, square = 0, turned[3];
    for (int v = 0; v < m->count; v++) {
        const double *from = m->x + 3 * (size_t)v, *to = p->x + 3 * (size_t)match[v];
        for (int i = 0; i < 9; i++) A[i] += to[i / 3] * from[i % 3];
    }
    domain_polar_decompose(&polar, A, NULL);
    memcpy(c->Q[index], polar.R, sizeof polar.R);
    for (int v = 0; v < m->count; v++) {
        mat3_mul_vec(turned, polar.R, m->x + 3 * (size_t)v);
        along += vec3_dot(turned, p->x + 3 * (size_t)match[v]);
        square += vec3_dot(turned, turned);
    }
    double ratio = along / square;
    c->scale[index] = ratio * p->size / m->size;
    mat3_mul_vec(turned, polar.R, m->centre);
    for (int i = 0; i < 3; i++) c->p[index][i] = p->centre[i] - c->scale[index] * turned[i];
    c->error[index] = 0;
    for (int v = 0; v < m->count; v++) {
        mat3_mul_vec(turned, polar.R, m->x + 3 * (size_t)v);
        for (int i = 0; i < 3; i++) turned[i] *= ratio;
        c->error[index] = fmax(c->error[index], p->size * vec3_distance(turned, p->x + 3 * (size_t)match[v]));
    }
}

// ---- all -----------------------------------------------------------------------------------------------------------

static fem_status classify(domain_copies *c, piece *pieces, double tolerance, int most, int most_elements) {
    fem_status   status = FEM_OK;
    int         *match = fem_alloc((size_t)most, sizeof *match), *taken = fem_alloc((size_t)most, sizeof *taken);
    int         *order = fem_alloc((size_t)most, sizeof *order);
    element_key *keys = fem_alloc((size_t)most_elements, sizeof *keys);
    if (!match || !taken || !order || !keys) {
        status = fem_fail(FEM_NO_MEMORY, "no memory to compare pieces of %d vertices", most);
        goto done;
    }
    for (int i = 0; i < c->count; i++) {
        int class = 0;
        while (class < c->class_count &&
               !find_match(&pieces[c->model[class]], &pieces[i], tolerance, match, taken, keys))
            class ++;
        c->class_of[i] = class;
        if (class == c->class_count) {
            c->model[c->class_count++] = i;
            for (int v = 0; v < pieces[i].count; v++) match[v] = v;
        }
        fit(&pieces[c->model[class]], &pieces[i], match, c, i);
        for (int v = 0; v < pieces[i].count; v++) order[v] = pieces[i].vertices[match[v]];
        memcpy(c->vertices + c->start[i], order, (size_t)pieces[i].count * sizeof *order);
    }
done:
    fem_free(match), fem_free(taken), fem_free(order), fem_free(keys);
    return status;
}

fem_status domain_find_copies(domain_copies *copies, const fem_mesh *mesh, double tolerance) {
    fem_status    status = FEM_OK;
    domain_copies c = {0};
    piece        *pieces = NULL;
    int          *local = NULL, *first = NULL, *elements = NULL, most = 0, most_elements = 0;
    if (!(tolerance > 0 && tolerance <= 0.01))
        return fem_fail(FEM_BAD_INPUT, "the tolerance of copies is %g, expected > 0 and <= 0.01", tolerance);
    FEM_TRY(find_pieces(&c, mesh));
    size_t n = (size_t)c.count;
    c.class_of = fem_calloc(n, sizeof *c.class_of), c.model = fem_calloc(n, sizeof *c.model);
    c.p = fem_calloc(n, sizeof *c.p), c.Q = fem_calloc(n, sizeof *c.Q);
    c.scale = fem_calloc(n, sizeof *c.scale), c.error = fem_calloc(n, sizeof *c.error);
    pieces = fem_calloc(n, sizeof *pieces);
    local = fem_alloc((size_t)mesh->vertex_count, sizeof *local);
    first = fem_calloc(n + 2, sizeof *first);
    elements = fem_alloc((size_t)mesh->element_count, sizeof *elements);
    if (!c.class_of || !c.model || !c.p || !c.Q || !c.scale || !c.error || !pieces || !local || !first || !elements) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d pieces", c.count);
        goto done;
    }
    for (int e = 0; e < mesh->element_count; e++) first[c.piece[e] + 2]++;
    for (int i = 0; i < c.count; i++) first[i + 2] += first[i + 1];
    for (int e = 0; e < mesh->element_count; e++) elements[first[c.piece[e] + 1]++] = e;
    for (int i = 0; i < c.count; i++) {
        FEM_TRY(make_piece(&pieces[i], &c, mesh, i, first[i + 1] - first[i], elements + first[i], local));
        if (pieces[i].count > most) most = pieces[i].count;
        if (pieces[i].elements > most_elements) most_elements = pieces[i].elements;
    }
    FEM_TRY(classify(&c, pieces, tolerance, most, most_elements));
    domain_copies_destroy(copies);
    *copies = c;
    c = (domain_copies){0};
done:
    for (int i = 0; pieces && i < c.count; i++) piece_destroy(&pieces[i]);
    if (pieces && status == FEM_OK)
        for (int i = 0; i < copies->count; i++) piece_destroy(&pieces[i]);
    fem_free(pieces), fem_free(local), fem_free(first), fem_free(elements);
    domain_copies_destroy(&c);
    return status;
}
