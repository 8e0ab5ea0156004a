// Isosurface stuffing [Labelle and Shewchuk 2007], all elements of one size.
//
// The body-centred cubic lattice joins each point with 14 others: 6 of its own kind along the axes (long edges) and 8
// of the other kind (short edges, sqrt(3)/2 as long). Between two neighbours of a kind along an axis lie four
// tetrahedra, each with one edge of the ring of four points of the other kind around the middle: all tetrahedra of the
// lattice are alike, two long edges opposite each other and four short ones.
//
// 1. Every edge between an inside and an outside point has a cut point.
// 2. A point with a cut point too near (the ratios of stuffing.h) is drawn to the nearest: it lies on the surface then,
//    and its edges lose their cut points.
// 3. Every tetrahedron with a point inside becomes the part of it that is inside: itself, or one, two or three
//    tetrahedra between points and cut points. A face of two inside points p, q and one outside n leaves a
//    quadrilateral, which both of its tetrahedra cut by the same diagonal:
//    - where one of the two cut edges is long, the diagonal that ends in its cut point;
//    - where pq is long, the diagonal from the one of p, q whose way to n goes down along an even number of axes. One
//      of the two does, since their ways differ in the direction of one axis (the paper's parity rule).
#include "libfem/stuffing.h"

#include <string.h>

enum { WAYS = 7, BATCH = 256 }; // edges of a point in positive directions; its others are the opposites

static const int ways[WAYS][3] = {{2, 0, 0}, {0, 2, 0}, {0, 0, 2}, {1, 1, 1}, {1, 1, -1}, {1, -1, 1}, {1, -1, -1}};

static bool is_long(int way) { return way < 3; }

typedef struct stuffing {
    fem_lattice *lattice;
    ptrdiff_t    step[2][WAYS]; // from a point of a kind to the next along a way, in numbers
    ptrdiff_t    back[2][WAYS]; // and against it
    int         *active;        // per point: its place in the lists below, -1: no edge of it is cut
    size_t      *points;        // of the active ones, ascending
    double (*cuts)[WAYS];       // where its edges are cut, from its side, -1: nowhere
    int (*cut_numbers)[WAYS];   // vertices of the mesh, -1: none yet
    double (*drawn)[3];         // place of a point of sign 0
    int             active_count;
    size_t          active_capacity;
    int            *numbers; // per point: its vertex of the mesh, -1: none yet
    fem_lattice_cut cut;
    void           *context;
    double         *vertices; // of the mesh
    int            *elements;
    size_t          vertex_capacity, element_capacity;
    int             vertex_count, element_count;
} stuffing;

size_t fem_lattice_count(const fem_lattice *l) { return 2 * (size_t)l->n[0] * (size_t)l->n[1] * (size_t)l->n[2]; }

void fem_lattice_point(const fem_lattice *l, size_t number, double x[3]) {
    size_t cell = number / 2, i[3] = {cell % (size_t)l->n[0], cell / (size_t)l->n[0] % (size_t)l->n[1],
                                      cell / (size_t)l->n[0] / (size_t)l->n[1]};
    for (int k = 0; k < 3; k++) x[k] = l->low[k] + l->size * ((double)i[k] + 0.5 * (double)(number % 2));
}

// ---- edges and their cuts --------------------------------------------------------------------------------------

// A short step from kind 0 goes to the cell above or below, from kind 1 to its upper or lower corner.
static void set_steps(stuffing *s) {
    ptrdiff_t stride[3] = {2, 2 * (ptrdiff_t)s->lattice->n[0],
                           2 * (ptrdiff_t)s->lattice->n[0] * (ptrdiff_t)s->lattice->n[1]};
    for (int kind = 0; kind < 2; kind++)
        for (int w = 0; w < WAYS; w++)
            for (int sense = 1; sense >= -1; sense -= 2) {
                ptrdiff_t sum = is_long(w) ? 0 : kind == 0 ? 1 : -1;
                for (int k = 0; k < 3; k++) {
                    int d = sense * ways[w][k];
                    if (is_long(w))
                        sum += d / 2 * stride[k];
                    else
                        sum += (kind == 0 ? (d > 0 ? 0 : -1) : (d > 0 ? 1 : 0)) * stride[k];
                }
                *(sense > 0 ? &s->step[kind][w] : &s->back[kind][w]) = sum;
            }
}

static size_t go(size_t point, ptrdiff_t step) { return (size_t)((ptrdiff_t)point + step); }

// The outermost two layers of points are outside, so that steps from a point with any neighbour inside stay in range.
static void clear_border(fem_lattice *l) {
    size_t at = 0;
    for (int k = 0; k < l->n[2]; k++)
        for (int j = 0; j < l->n[1]; j++)
            for (int i = 0; i < l->n[0]; i++, at += 2)
                if (i < 2 || j < 2 || k < 2 || i >= l->n[0] - 2 || j >= l->n[1] - 2 || k >= l->n[2] - 2)
                    l->sign[at] = l->sign[at + 1] = -1;
}

static bool has_opposite(const stuffing *s, size_t point) {
    const signed char *sign = s->lattice->sign;
    size_t             kind = point % 2;
    for (int w = 0; w < WAYS; w++)
        if (sign[go(point, s->step[kind][w])] != sign[point] || sign[go(point, s->back[kind][w])] != sign[point])
            return true;
    return false;
}

static fem_status list_active(stuffing *s) {
    fem_status status = FEM_OK;
    const int *n = s->lattice->n;
    for (int k = 1; k < n[2] - 1; k++)
        for (int j = 1; j < n[1] - 1; j++)
            for (int i = 1; i < n[0] - 1; i++)
                for (int kind = 0; kind < 2; kind++) {
                    size_t point =
                        2 * (((size_t)k * (size_t)n[1] + (size_t)j) * (size_t)n[0] + (size_t)i) + (size_t)kind;
                    if (!has_opposite(s, point)) continue;
                    FEM_TRY(fem_grow((void **)&s->points, &s->active_capacity, (size_t)s->active_count + 1,
                                     sizeof *s->points));
                    s->active[point] = s->active_count;
                    s->points[s->active_count++] = point;
                }
done:
    return status;
}

static void cut_batch(void *context, int batch, int worker) {
    (void)worker;
    stuffing          *s = context;
    const signed char *sign = s->lattice->sign;
    for (int a = batch * BATCH; a < s->active_count && a < (batch + 1) * BATCH; a++)
        for (int w = 0; w < WAYS; w++) {
            size_t point = s->points[a], other = go(point, s->step[point % 2][w]);
            s->cuts[a][w] = -1;
            if (sign[other] == sign[point]) continue;
            double t = sign[point] > 0 ? s->cut(s->context, point, other) : 1 - s->cut(s->context, other, point);
            s->cuts[a][w] = fmax(0, fmin(1, t));
        }
}

// Where the edge that leaves a point along or against a way is cut, as a share of its length; -1: it is not.
static double cut_from(const stuffing *s, size_t point, int way, bool along) {
    size_t other = go(point, along ? s->step[point % 2][way] : s->back[point % 2][way]);
    if (s->lattice->sign[point] * s->lattice->sign[other] != -1) return -1;
    return along ? s->cuts[s->active[point]][way] : 1 - s->cuts[s->active[other]][way];
}

static void draw_points(stuffing *s) {
    for (int a = 0; a < s->active_count; a++) {
        size_t point = s->points[a];
        double nearest = INFINITY, move[3] = {0, 0, 0};
        for (int w = 0; w < WAYS; w++)
            for (int along = 0; along < 2; along++) {
                double t = cut_from(s, point, w, along), length = is_long(w) ? 1 : sqrt(3) / 2;
                if (t < 0 || t >= (is_long(w) ? FEM_STUFFING_LONG : FEM_STUFFING_SHORT) || t * length >= nearest)
                    continue;
                nearest = t * length;
                for (int k = 0; k < 3; k++) move[k] = (along ? t : -t) * s->lattice->size * 0.5 * ways[w][k];
            }
        if (nearest == INFINITY) continue;
        fem_lattice_point(s->lattice, point, s->drawn[a]);
        for (int k = 0; k < 3; k++) s->drawn[a][k] += move[k];
        s->lattice->sign[point] = 0;
    }
}

// ---- the mesh --------------------------------------------------------------------------------------------------

static fem_status add_vertex(stuffing *s, const double x[3], int *number) {
    fem_status status =
        fem_grow((void **)&s->vertices, &s->vertex_capacity, 3 * ((size_t)s->vertex_count + 1), sizeof *s->vertices);
    if (status != FEM_OK) return status;
    memcpy(s->vertices + 3 * (size_t)s->vertex_count, x, 3 * sizeof *x);
    *number = s->vertex_count++;
    return FEM_OK;
}

static fem_status add_element(stuffing *s, bool turned, int a, int b, int c, int d) {
    fem_status status =
        fem_grow((void **)&s->elements, &s->element_capacity, 4 * ((size_t)s->element_count + 1), sizeof *s->elements);
    if (status != FEM_OK) return status;
    int *v = s->elements + 4 * (size_t)s->element_count++;
    v[0] = a, v[1] = b, v[2] = turned ? d : c, v[3] = turned ? c : d;
    return FEM_OK;
}

// Vertex of the mesh at a point of the lattice.
static fem_status vertex_at(stuffing *s, size_t point, int *number) {
    double x[3];
    if (s->numbers[point] < 0) {
        fem_lattice_point(s->lattice, point, x);
        fem_status status =
            add_vertex(s, s->lattice->sign[point] == 0 ? s->drawn[s->active[point]] : x, &s->numbers[point]);
        if (status != FEM_OK) return status;
    }
    *number = s->numbers[point];
    return FEM_OK;
}

// The way from one point to a neighbour, and whether it goes along it.
static int way_between(const stuffing *s, size_t from, size_t to, bool *along) {
    ptrdiff_t difference = (ptrdiff_t)to - (ptrdiff_t)from;
    for (int w = 0; w < WAYS; w++) {
        *along = difference == s->step[from % 2][w];
        if (*along || difference == s->back[from % 2][w]) return w;
    }
    return -1;
}

// Vertex at the cut point of an edge.
static fem_status vertex_between(stuffing *s, size_t p, size_t q, int *number) {
    bool   along;
    int    w = way_between(s, p, q, &along);
    size_t first = along ? p : q;
    int   *known = &s->cut_numbers[s->active[first]][w];
    if (*known < 0) {
        double x[3];
        fem_lattice_point(s->lattice, first, x);
        for (int k = 0; k < 3; k++) x[k] += s->cuts[s->active[first]][w] * s->lattice->size * 0.5 * ways[w][k];
        fem_status status = add_vertex(s, x, known);
        if (status != FEM_OK) return status;
    }
    *number = *known;
    return FEM_OK;
}

// Of the quadrilateral that the face p, q, n leaves: does the diagonal start at p (and end in the cut of qn)?
static bool diagonal_from(const stuffing *s, size_t p, size_t q, size_t n) {
    bool p_along, q_along;
    int  pn = way_between(s, p, n, &p_along), qn = way_between(s, q, n, &q_along);
    if (is_long(pn)) return false;
    if (is_long(qn)) return true;
    int down = 0;
    for (int k = 0; k < 3; k++) down += (p_along ? ways[pn][k] : -ways[pn][k]) < 0;
    return down % 2 == 0;
}

// The prism between the triangles x and y, each vertex of x under that of y, (x0, x1, x2, y0) of positive volume unless
// turned. before[i][j]: the diagonal between the vertices i and j starts at x_i and ends at y_j. They must order 0,
// 1, 2.
static fem_status add_prism(stuffing *s, bool turned, const int x[3], const int y[3], bool before[3][3]) {
    fem_status status = FEM_OK;
    int        place[3] = {0, 0, 0}, order[3] = {0, 0, 0};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) place[i] += j != i && before[j][i];
    for (int i = 0; i < 3; i++) order[place[i]] = i;
    int p = order[0], q = order[1], r = order[2];
    if ((q - p + 3) % 3 != 1) turned = !turned; // an odd permutation
    FEM_TRY(add_element(s, turned, x[p], x[q], x[r], y[r]));
    FEM_TRY(add_element(s, turned, x[p], x[q], y[r], y[q]));
    FEM_TRY(add_element(s, turned, x[p], y[p], y[q], y[r]));
done:
    return status;
}

static double diagonal_square(const stuffing *s, int a, int b) {
    double d[3];
    vec3_sub(d, s->vertices + 3 * (size_t)a, s->vertices + 3 * (size_t)b);
    return vec3_dot(d, d);
}

// Two points inside, two outside.
static fem_status add_wedge(stuffing *s, bool turned, const size_t v[4]) {
    fem_status status = FEM_OK;
    int        x[3], y[3];
    bool       before[3][3] = {{false}};
    FEM_TRY(vertex_at(s, v[0], &x[0]));
    FEM_TRY(vertex_at(s, v[1], &y[0]));
    for (int k = 1; k < 3; k++) {
        FEM_TRY(vertex_between(s, v[0], v[k + 1], &x[k]));
        FEM_TRY(vertex_between(s, v[1], v[k + 1], &y[k]));
        before[0][k] = diagonal_from(s, v[0], v[1], v[k + 1]);
        before[k][0] = !before[0][k];
    }
    // The quadrilateral on the surface: whatever its neighbours do, so the shorter diagonal, unless that closes a
    // circle
    if (before[0][1] == before[0][2])
        before[1][2] = diagonal_square(s, x[1], y[2]) <= diagonal_square(s, x[2], y[1]);
    else
        before[1][2] = before[0][2];
    before[2][1] = !before[1][2];
    FEM_TRY(add_prism(s, turned, x, y, before));
done:
    return status;
}

// Three points inside, one outside.
static fem_status add_stump(stuffing *s, bool turned, const size_t v[4]) {
    fem_status status = FEM_OK;
    int        x[3], y[3];
    bool       before[3][3] = {{false}};
    for (int k = 0; k < 3; k++) {
        FEM_TRY(vertex_at(s, v[k], &x[k]));
        FEM_TRY(vertex_between(s, v[k], v[3], &y[k]));
        for (int other = 0; other < 3; other++)
            if (other != k) before[k][other] = diagonal_from(s, v[k], v[other], v[3]);
    }
    FEM_TRY(add_prism(s, turned, x, y, before));
done:
    return status;
}

// Two points inside, one on the surface, one outside: a pyramid.
static fem_status add_pyramid(stuffing *s, bool turned, const size_t v[4]) {
    fem_status status = FEM_OK;
    int        x[3], a, b;
    for (int k = 0; k < 3; k++) FEM_TRY(vertex_at(s, v[k], &x[k]));
    FEM_TRY(vertex_between(s, v[0], v[3], &a));
    FEM_TRY(vertex_between(s, v[1], v[3], &b));
    if (diagonal_from(s, v[0], v[1], v[3])) {
        FEM_TRY(add_element(s, turned, x[0], x[1], x[2], b));
        FEM_TRY(add_element(s, turned, x[0], b, x[2], a));
    } else {
        FEM_TRY(add_element(s, turned, x[0], x[1], x[2], a));
        FEM_TRY(add_element(s, turned, x[1], b, x[2], a));
    }
done:
    return status;
}

// One point inside: the others are on the surface or beyond it.
static fem_status add_corner(stuffing *s, bool turned, const size_t v[4]) {
    fem_status status = FEM_OK;
    int        x[4];
    FEM_TRY(vertex_at(s, v[0], &x[0]));
    for (int k = 1; k < 4; k++)
        FEM_TRY(s->lattice->sign[v[k]] == 0 ? vertex_at(s, v[k], &x[k]) : vertex_between(s, v[0], v[k], &x[k]));
    FEM_TRY(add_element(s, turned, x[0], x[1], x[2], x[3]));
done:
    return status;
}

// The part inside of a tetrahedron of the lattice, of positive volume.
static fem_status add_inside(stuffing *s, const size_t tetrahedron[4]) {
    fem_status         status = FEM_OK;
    const signed char *sign = s->lattice->sign;
    size_t             v[4];
    bool               turned = false;
    int                inside = 0, outside = 0, x[4];
    memcpy(v, tetrahedron, sizeof v);
    for (int k = 0; k < 4; k++) inside += sign[v[k]] > 0, outside += sign[v[k]] < 0;
    if (inside == 0) goto done;
    if (outside == 0) {
        for (int k = 0; k < 4; k++) FEM_TRY(vertex_at(s, v[k], &x[k]));
        FEM_TRY(add_element(s, false, x[0], x[1], x[2], x[3]));
        goto done;
    }
    for (int i = 1; i < 4; i++) // inside first, outside last
        for (int k = i; k > 0 && sign[v[k]] > sign[v[k - 1]]; k--) {
            size_t point = v[k];
            v[k] = v[k - 1], v[k - 1] = point, turned = !turned;
        }
    if (inside == 1)
        FEM_TRY(add_corner(s, turned, v));
    else if (inside == 3)
        FEM_TRY(add_stump(s, turned, v));
    else if (outside == 1)
        FEM_TRY(add_pyramid(s, turned, v));
    else
        FEM_TRY(add_wedge(s, turned, v));
done:
    return status;
}

// The twelve tetrahedra between a point of kind 1 and its upper neighbours along the axes.
static fem_status add_around(stuffing *s, size_t point) {
    static const int ring[4][2] = {{-1, -1}, {1, -1}, {1, 1}, {-1, 1}};
    fem_status       status = FEM_OK;
    for (int axis = 0; axis < 3; axis++) {
        size_t corner[4];
        for (int r = 0; r < 4; r++) {
            int way[3];
            way[axis] = 1, way[(axis + 1) % 3] = ring[r][0], way[(axis + 2) % 3] = ring[r][1];
            bool along = way[0] > 0;
            int  w = 3 + (along ? way[1] < 0 : way[1] > 0) * 2 + (along ? way[2] < 0 : way[2] > 0);
            corner[r] = go(point, along ? s->step[1][w] : s->back[1][w]);
        }
        for (int r = 0; r < 4; r++)
            FEM_TRY(add_inside(s, (size_t[]){point, go(point, s->step[1][axis]), corner[r], corner[(r + 1) % 4]}));
    }
done:
    return status;
}

static fem_status add_elements(stuffing *s) {
    fem_status status = FEM_OK;
    const int *n = s->lattice->n;
    for (int k = 1; k < n[2] - 1; k++)
        for (int j = 1; j < n[1] - 1; j++)
            for (int i = 1; i < n[0] - 1; i++)
                FEM_TRY(add_around(s, 2 * (((size_t)k * (size_t)n[1] + (size_t)j) * (size_t)n[0] + (size_t)i) + 1));
done:
    return status;
}

static fem_status allocate_points(stuffing *s) {
    size_t count = fem_lattice_count(s->lattice);
    s->active = fem_alloc(count, sizeof *s->active);
    s->numbers = fem_alloc(count, sizeof *s->numbers);
    if (!s->active || !s->numbers) return fem_fail(FEM_NO_MEMORY, "no memory for a lattice of %zu points", count);
    memset(s->active, 0xff, count * sizeof *s->active); // all -1
    memset(s->numbers, 0xff, count * sizeof *s->numbers);
    return FEM_OK;
}

static fem_status allocate_active(stuffing *s) {
    size_t count = (size_t)s->active_count;
    s->cuts = fem_alloc(count, sizeof *s->cuts);
    s->cut_numbers = fem_alloc(count, sizeof *s->cut_numbers);
    s->drawn = fem_alloc(count, sizeof *s->drawn);
    if (!s->cuts || !s->cut_numbers || !s->drawn)
        return fem_fail(FEM_NO_MEMORY, "no memory for %zu points of a lattice near the surface", count);
    memset(s->cut_numbers, 0xff, count * sizeof *s->cut_numbers);
    return FEM_OK;
}

static fem_status make_mesh(const stuffing *s, fem_mesh *mesh) {
    fem_status status = FEM_OK;
    fem_mesh   made = {0};
    if (s->element_count == 0) {
        fem_mesh_destroy(mesh);
        goto done;
    }
    FEM_TRY(fem_mesh_allocate(&made, FEM_T4, s->vertex_count, s->element_count));
    memcpy(made.vertices, s->vertices, 3 * (size_t)s->vertex_count * sizeof *made.vertices);
    memcpy(made.elements, s->elements, 4 * (size_t)s->element_count * sizeof *made.elements);
    fem_mesh_destroy(mesh);
    *mesh = made;
done:
    return status;
}

fem_status fem_stuff_lattice(fem_mesh *mesh, fem_lattice *lattice, fem_lattice_cut cut, void *context) {
    fem_status status = FEM_OK;
    stuffing   s = {.lattice = lattice, .cut = cut, .context = context};
    set_steps(&s);
    clear_border(lattice);
    FEM_TRY(allocate_points(&s));
    FEM_TRY(list_active(&s));
    FEM_TRY(allocate_active(&s));
    fem_parallel_for((s.active_count + BATCH - 1) / BATCH, cut_batch, &s);
    draw_points(&s);
    FEM_TRY(add_elements(&s));
    FEM_TRY(make_mesh(&s, mesh));
done:
    fem_free(s.active), fem_free(s.numbers), fem_free(s.points), fem_free(s.cuts), fem_free(s.cut_numbers);
    fem_free(s.drawn), fem_free(s.vertices), fem_free(s.elements);
    return status;
}
