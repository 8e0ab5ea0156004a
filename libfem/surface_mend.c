// Putting a surface right: vertices at one place are one, and edges tell which triangles go on in which.
#include "libfem/surface_mend.h"
#include "libfem/mesh_draft.h"

#include <stdlib.h>
#include <string.h>

// A side of a triangle.
typedef struct side {
    int  low, high; // welded vertices
    int  triangle;
    bool upward; // the triangle goes from low to high
} side;

typedef struct mending {
    fem_mended *m;
    int        *welded; // per vertex: the first at its place
    side       *sides;  // 3 per triangle, those of an edge together
    int (*across)[3];   // per triangle: its neighbours over edges of two triangles, -1
} mending;

static bool same_place(const void *context, int entry, const void *key) {
    return memcmp((const double *)context + 3 * (size_t)entry, key, 3 * sizeof(double)) == 0;
}

// The lowest vertex at each place. Entries of the table are vertices, so those that are not the first leave gaps.
static fem_status weld(mending *w, const fem_surface *surface) {
    fem_status status = FEM_OK;
    fem_table  table = {0};
    for (int v = 0; v < surface->vertex_count; v++) {
        double x[3];
        for (int k = 0; k < 3; k++) {
            x[k] = surface->vertices[3 * (size_t)v + (size_t)k];
            if (!(fabs(x[k]) < 1e100)) {
                status = fem_fail(FEM_BAD_INPUT, "vertex %d of the surface: its %c is %g, expected below 1e100", v,
                                  "xyz"[k], x[k]);
                goto done;
            }
            x[k] += 0.0; // minus zero is zero
            w->m->vertices[3 * (size_t)v + (size_t)k] = x[k];
        }
        FEM_TRY(fem_table_enter(&table, x, sizeof x, same_place, w->m->vertices, v, &w->welded[v]));
    }
done:
    fem_table_destroy(&table);
    return status;
}

static double triangle_area(const fem_mended *m, const int *v) {
    double a[3], b[3], n[3];
    vec3_sub(a, m->vertices + 3 * (size_t)v[1], m->vertices + 3 * (size_t)v[0]);
    vec3_sub(b, m->vertices + 3 * (size_t)v[2], m->vertices + 3 * (size_t)v[0]);
    vec3_cross(n, a, b);
    return vec3_norm(n) / 2;
}

static fem_status take_triangles(mending *w, const fem_surface *surface, fem_mesher_report *report) {
    for (int t = 0; t < surface->triangle_count; t++) {
        int *v = w->m->triangles + 3 * (size_t)w->m->triangle_count;
        for (int k = 0; k < 3; k++) {
            int corner = surface->triangles[3 * (size_t)t + (size_t)k];
            if (corner < 0 || corner >= surface->vertex_count)
                return fem_fail(FEM_BAD_INPUT, "triangle %d of the surface has a vertex %d, expected 0 .. %d", t,
                                corner, surface->vertex_count - 1);
            v[k] = w->welded[corner];
        }
        double area = triangle_area(w->m, v);
        if (v[0] == v[1] || v[1] == v[2] || v[2] == v[0] || !(area > 0)) {
            report->degenerate++;
            continue;
        }
        w->m->triangle_count++;
    }
    if (w->m->triangle_count == 0) return fem_fail(FEM_BAD_INPUT, "no triangle of the surface has an area");
    return FEM_OK;
}

// ---- triangles from both sides ---------------------------------------------------------------------------------

typedef struct corners {
    int  sorted[3], triangle;
    bool even; // the order of the corners is an even permutation
} corners;

static int compare_corners(const void *a, const void *b) {
    const corners *x = a, *y = b;
    for (int k = 0; k < 3; k++)
        if (x->sorted[k] != y->sorted[k]) return x->sorted[k] < y->sorted[k] ? -1 : 1;
    if (x->even != y->even) return x->even ? -1 : 1;
    return (x->triangle > y->triangle) - (x->triangle < y->triangle);
}

static corners sorted_corners(const int *v, int triangle) {
    corners c = {.sorted = {v[0], v[1], v[2]}, .triangle = triangle, .even = true};
    for (int i = 1; i < 3; i++)
        for (int k = i; k > 0 && c.sorted[k] < c.sorted[k - 1]; k--) {
            int corner = c.sorted[k];
            c.sorted[k] = c.sorted[k - 1], c.sorted[k - 1] = corner, c.even = !c.even;
        }
    return c;
}

// A wall between two bodies is doubled too, and rightly: only where all triangles are, the surface is meant to be seen
// from both sides and says nothing about where its inside is.
static fem_status drop_doubles(mending *w, fem_mesher_report *report) {
    int     *triangles = w->m->triangles, n = w->m->triangle_count, kept = 0;
    corners *list = fem_alloc((size_t)n, sizeof *list);
    if (!list) return fem_fail(FEM_NO_MEMORY, "no memory for %d triangles", n);
    for (int t = 0; t < n; t++) list[t] = sorted_corners(triangles + 3 * (size_t)t, t);
    qsort(list, (size_t)n, sizeof *list, compare_corners);
    bool all = n % 2 == 0;
    for (int i = 0; i + 1 < n && all; i += 2)
        all =
            memcmp(list[i].sorted, list[i + 1].sorted, sizeof list[i].sorted) == 0 && list[i].even != list[i + 1].even;
    for (int i = 0; i < n && all; i += 2)
        triangles[3 * (size_t)(list[i].triangle > list[i + 1].triangle ? list[i].triangle : list[i + 1].triangle)] = -1;
    for (int t = 0; t < n && all; t++)
        if (triangles[3 * (size_t)t] >= 0)
            memmove(triangles + 3 * (size_t)kept++, triangles + 3 * (size_t)t, 3 * sizeof *triangles);
    if (all) w->m->triangle_count = kept, report->doubled = n - kept;
    fem_free(list);
    return FEM_OK;
}

// ---- edges -----------------------------------------------------------------------------------------------------

static int compare_sides(const void *a, const void *b) {
    const side *x = a, *y = b;
    if (x->high != y->high) return x->high < y->high ? -1 : 1;
    return (x->triangle > y->triangle) - (x->triangle < y->triangle);
}

// Sides by their lower vertex, then sorted among those of one vertex.
static fem_status list_sides(mending *w, int vertex_count) {
    int  n = w->m->triangle_count;
    int *start = fem_calloc((size_t)vertex_count + 1, sizeof *start);
    w->sides = fem_alloc((size_t)n, 3 * sizeof *w->sides);
    if (!start || !w->sides) {
        fem_free(start);
        return fem_fail(FEM_NO_MEMORY, "no memory for the edges of %d triangles", n);
    }
    for (int pass = 0; pass < 2; pass++) {
        for (int t = 0; t < n; t++)
            for (int k = 0; k < 3; k++) {
                int a = w->m->triangles[3 * (size_t)t + (size_t)k];
                int b = w->m->triangles[3 * (size_t)t + (size_t)(k + 1) % 3];
                int low = a < b ? a : b;
                if (pass == 0)
                    start[low + 1]++;
                else
                    w->sides[start[low]++] = (side){low, a < b ? b : a, t, a < b};
            }
        for (int v = 0; v < vertex_count && pass == 0; v++) start[v + 1] += start[v];
    }
    for (int v = 0; v < vertex_count; v++) { // start[v] is the end of v's by now
        int first = v > 0 ? start[v - 1] : 0;
        qsort(w->sides + first, (size_t)(start[v] - first), sizeof *w->sides, compare_sides);
    }
    fem_free(start);
    return FEM_OK;
}

// Goes through the edges: those that are open, and the pairs of triangles that face different ways.
static void look_at_edges(mending *w, int *open, int *opposed) {
    int n = 3 * w->m->triangle_count;
    *open = *opposed = 0;
    for (int i = 0, end; i < n; i = end) {
        int balance = 0;
        for (end = i; end < n && w->sides[end].low == w->sides[i].low && w->sides[end].high == w->sides[i].high; end++)
            balance += w->sides[end].upward ? 1 : -1;
        *open += balance != 0;
        if (end - i == 2 && w->across) {
            for (int k = 0; k < 2; k++) {
                int *free = w->across[w->sides[i + k].triangle];
                while (*free >= 0) free++;
                *free = w->sides[i + 1 - k].triangle;
            }
        }
        *opposed += end - i == 2 && balance != 0;
    }
}

// ---- orientation -----------------------------------------------------------------------------------------------

static void turn_triangle(int *v) {
    int corner = v[1];
    v[1] = v[2], v[2] = corner;
}

static double signed_volume(const fem_mended *m, int triangle, const double origin[3]) {
    const int *v = m->triangles + 3 * (size_t)triangle;
    double     a[3], b[3], c[3], n[3];
    vec3_sub(a, m->vertices + 3 * (size_t)v[0], origin);
    vec3_sub(b, m->vertices + 3 * (size_t)v[1], origin);
    vec3_sub(c, m->vertices + 3 * (size_t)v[2], origin);
    vec3_cross(n, b, c);
    return vec3_dot(a, n) / 6;
}

// Do two neighbours face the same way: do they go along their common edge in different directions?
static bool agree(const int *v, const int *u) {
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            if (v[i] == u[(k + 1) % 3] && v[(i + 1) % 3] == u[k]) return true;
    return false;
}

// Turns triangles until neighbours agree, one connected patch after the other, and each patch outwards.
static fem_status orient(mending *w) {
    int  *v = w->m->triangles, n = w->m->triangle_count;
    int  *list = fem_alloc((size_t)n, sizeof *list);
    bool *seen = fem_calloc((size_t)n, sizeof *seen);
    if (!list || !seen) {
        fem_free(list), fem_free(seen);
        return fem_fail(FEM_NO_MEMORY, "no memory to orient %d triangles", n);
    }
    for (int first = 0; first < n; first++) {
        int    count = 0, turned = 0;
        double volume = 0, origin[3];
        if (seen[first]) continue;
        memcpy(origin, w->m->vertices + 3 * (size_t)v[3 * (size_t)first], sizeof origin);
        list[count++] = first, seen[first] = true;
        for (int at = 0; at < count; at++) {
            volume += signed_volume(w->m, list[at], origin);
            for (int k = 0; k < 3; k++) {
                int next = w->across[list[at]][k];
                if (next < 0 || seen[next]) continue;
                if (!agree(v + 3 * (size_t)list[at], v + 3 * (size_t)next))
                    turn_triangle(v + 3 * (size_t)next), turned++;
                seen[next] = true, list[count++] = next;
            }
        }
        for (int i = 0; i < count && volume < 0; i++) turn_triangle(v + 3 * (size_t)list[i]);
        w->m->turned_over += volume < 0 ? count - turned : turned;
    }
    fem_free(list), fem_free(seen);
    return FEM_OK;
}

static fem_status mend_orientation(mending *w, int vertex_count, fem_mesher_report *report) {
    fem_status status = FEM_OK;
    int        opposed = 0;
    FEM_TRY(list_sides(w, vertex_count));
    look_at_edges(w, &report->open_edges, &opposed);
    if (opposed == 0 && report->doubled == 0) goto done;
    w->across = fem_alloc((size_t)w->m->triangle_count, sizeof *w->across);
    if (!w->across) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d triangles", w->m->triangle_count);
        goto done;
    }
    memset(w->across, 0xff, (size_t)w->m->triangle_count * sizeof *w->across); // all -1
    look_at_edges(w, &report->open_edges, &opposed);
    FEM_TRY(orient(w));
    fem_free(w->across), fem_free(w->sides);
    w->across = NULL, w->sides = NULL;
    FEM_TRY(list_sides(w, vertex_count));
    look_at_edges(w, &report->open_edges, &opposed);
done:
    return status;
}

static void measure(mending *w, fem_mesher_report *report) {
    const double *origin = w->m->vertices + 3 * (size_t)w->m->triangles[0];
    for (int t = 0; t < w->m->triangle_count; t++) {
        report->area += triangle_area(w->m, w->m->triangles + 3 * (size_t)t);
        report->volume += signed_volume(w->m, t, origin);
    }
    report->turned = report->volume < 0;
    report->volume = fabs(report->volume);
    for (int t = 0; t < w->m->triangle_count && report->turned; t++) turn_triangle(w->m->triangles + 3 * (size_t)t);
}

fem_status fem_surface_mend(fem_mended *mended, const fem_surface *surface, fem_mesher_report *report) {
    fem_status status = FEM_OK;
    fem_mended m = {.vertex_count = surface->vertex_count};
    mending    w = {.m = &m};
    if (surface->triangle_count < 1 || surface->vertex_count < 1)
        return fem_fail(FEM_BAD_INPUT, "the surface has no triangles");
    m.triangles = fem_alloc((size_t)surface->triangle_count, 3 * sizeof *m.triangles);
    m.vertices = fem_alloc((size_t)surface->vertex_count, 3 * sizeof *m.vertices);
    w.welded = fem_alloc((size_t)surface->vertex_count, sizeof *w.welded);
    if (!m.triangles || !m.vertices || !w.welded) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a surface of %d triangles", surface->triangle_count);
        goto done;
    }
    FEM_TRY(weld(&w, surface));
    FEM_TRY(take_triangles(&w, surface, report));
    FEM_TRY(drop_doubles(&w, report));
    FEM_TRY(mend_orientation(&w, surface->vertex_count, report));
    measure(&w, report);
    *mended = m;
    m = (fem_mended){0};
done:
    fem_free(w.welded), fem_free(w.sides), fem_free(w.across);
    fem_mended_destroy(&m);
    return status;
}

void fem_mended_destroy(fem_mended *mended) {
    fem_free(mended->triangles), fem_free(mended->vertices);
    *mended = (fem_mended){0};
}
