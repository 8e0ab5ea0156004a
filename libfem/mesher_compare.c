// What the mesher's elements are like: crumbs and hinges, pinches, and distances between the surfaces.
#include "libfem/mesher_internal.h"

#include <limits.h>
#include <string.h>

// ---- crumbs ----------------------------------------------------------------------------------------------------

enum { CRUMB = 24 }; // as many tetrahedra meet at a point of the lattice

// Parts of elements that share faces: number of each element's part. `sizes` of the parts is allocated.
static fem_status face_parts(const fem_mesh *mesh, int *part, int *count, int **sizes_out) {
    fem_status status = FEM_OK;
    int       *start = NULL, *adjacent = NULL, *list = NULL, *sizes = NULL, n = mesh->element_count;
    size_t     capacity = 0;
    FEM_TRY(fem_mesh_element_graph(mesh, &start, &adjacent));
    list = fem_alloc((size_t)n, sizeof *list);
    if (!list) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the parts of %d elements", n);
        goto done;
    }
    *count = 0;
    for (int e = 0; e < n; e++) part[e] = -1;
    for (int first = 0; first < n; first++) {
        int length = 0;
        if (part[first] >= 0) continue;
        FEM_TRY(fem_grow((void **)&sizes, &capacity, (size_t)*count + 1, sizeof *sizes));
        list[length++] = first, part[first] = *count;
        for (int at = 0; at < length; at++)
            for (int i = start[list[at]]; i < start[list[at] + 1]; i++)
                if (part[adjacent[i]] < 0) part[adjacent[i]] = *count, list[length++] = adjacent[i];
        sizes[(*count)++] = length;
    }
    *sizes_out = sizes, sizes = NULL;
done:
    fem_free(start), fem_free(adjacent), fem_free(list), fem_free(sizes);
    return status;
}

// Which parts share a vertex with another. `seen` per vertex: 1 + a part at it.
static void mark_hanging(const fem_mesh *mesh, const int *part, int *seen, bool *hangs) {
    size_t width = (size_t)fem_element_vertices(mesh->type);
    memset(seen, 0, (size_t)mesh->vertex_count * sizeof *seen);
    for (size_t i = 0; i < (size_t)mesh->element_count * width; i++) {
        int v = mesh->elements[i], p = part[i / width];
        if (seen[v] > 0 && seen[v] != p + 1) hangs[p] = hangs[seen[v] - 1] = true;
        seen[v] = p + 1;
    }
}

// Leaves out the elements of marked parts, and the vertices that only they had. `number` per vertex.
static void drop_parts(fem_mesh *mesh, const int *part, const bool *drop, int *number) {
    size_t width = (size_t)fem_element_vertices(mesh->type);
    int    kept = 0, vertices = 0;
    memset(number, 0, (size_t)mesh->vertex_count * sizeof *number);
    for (int e = 0; e < mesh->element_count; e++) {
        if (drop[part[e]]) continue;
        memmove(mesh->elements + (size_t)kept * width, mesh->elements + (size_t)e * width, width * sizeof(int));
        kept++;
    }
    mesh->element_count = kept;
    for (size_t i = 0; i < (size_t)kept * width; i++) number[mesh->elements[i]] = 1;
    for (int v = 0; v < mesh->vertex_count; v++) {
        if (number[v] == 0) continue;
        memmove(mesh->vertices + 3 * (size_t)vertices, mesh->vertices + 3 * (size_t)v, 3 * sizeof(double));
        number[v] = vertices++;
    }
    mesh->vertex_count = vertices;
    for (size_t i = 0; i < (size_t)kept * width; i++) mesh->elements[i] = number[mesh->elements[i]];
}

fem_status fem_mesher_clean(fem_mesh *mesh, fem_mesher_report *report) {
    fem_status status = FEM_OK;
    int        count = 0, *sizes = NULL, *seen = NULL, small = 0;
    int       *part = fem_alloc((size_t)mesh->element_count, sizeof *part);
    bool      *hangs = NULL, *drop = NULL;
    seen = fem_alloc((size_t)mesh->vertex_count, sizeof *seen);
    if (!part || !seen) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the parts of %d elements", mesh->element_count);
        goto done;
    }
    FEM_TRY(face_parts(mesh, part, &count, &sizes));
    if (count == 1) goto done;
    hangs = fem_calloc((size_t)count, sizeof *hangs);
    drop = fem_calloc((size_t)count, sizeof *drop);
    if (!hangs || !drop) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d parts", count);
        goto done;
    }
    mark_hanging(mesh, part, seen, hangs);
    for (int p = 0; p < count; p++) {
        drop[p] = hangs[p] && sizes[p] < CRUMB;
        small += drop[p];
    }
    if (small == count) memset(drop, 0, (size_t)count * sizeof *drop);
    for (int p = 0; p < count; p++)
        if (drop[p]) report->crumbs++, report->crumb_elements += sizes[p], sizes[p] = 0;
    if (report->crumbs > 0) {
        drop_parts(mesh, part, drop, seen);
        fem_free(sizes);
        sizes = NULL;
        FEM_TRY(face_parts(mesh, part, &count, &sizes));
        memset(hangs, 0, (size_t)count * sizeof *hangs);
        mark_hanging(mesh, part, seen, hangs);
    }
    int largest = 0;
    for (int p = 1; p < count; p++) largest = sizes[p] > sizes[largest] ? p : largest;
    for (int p = 0; p < count; p++) report->hinged_parts += hangs[p] && p != largest;
done:
    fem_free(part), fem_free(seen), fem_free(sizes), fem_free(hangs), fem_free(drop);
    return status;
}

// ---- pinches ---------------------------------------------------------------------------------------------------

enum { MOST_AROUND = 256 };

// Do the triangles around a vertex close to one ring? Each gives an edge of the ring; every other vertex must have two
// and all must hang together.
static bool is_ring(int count, const int (*edges)[2]) {
    int from = edges[0][0], at = edges[0][1], length = 1, last = 0;
    while (at != from && length <= count) {
        int next = -1, found = 0;
        for (int i = 0; i < count; i++)
            if (edges[i][0] == at) next = i, found++;
        if (found != 1) return false;
        last = next, at = edges[last][1], length++;
    }
    return at == from && length == count;
}

// Vertices of a closed surface around which more than one ring of triangles goes. Marks all vertices that it has.
static fem_status count_pinches(const fem_mesh *mesh, int triangle_count, const int *triangles, unsigned char *mark,
                                int *pinches) {
    int *start = fem_calloc((size_t)mesh->vertex_count + 2, sizeof *start);
    int *around = fem_alloc((size_t)triangle_count, 3 * sizeof *around);
    if (!start || !around) {
        fem_free(start), fem_free(around);
        return fem_fail(FEM_NO_MEMORY, "no memory for %d surface triangles", triangle_count);
    }
    for (size_t i = 0; i < 3 * (size_t)triangle_count; i++) start[triangles[i] + 2]++;
    for (int v = 0; v < mesh->vertex_count; v++) start[v + 2] += start[v + 1];
    for (size_t i = 0; i < 3 * (size_t)triangle_count; i++) around[start[triangles[i] + 1]++] = (int)i;
    for (int v = 0; v < mesh->vertex_count; v++) {
        int edges[MOST_AROUND][2], count = start[v + 1] - start[v];
        if (count < 1) continue;
        mark[v] = 1;
        for (int i = 0; i < count && i < MOST_AROUND; i++) {
            int        at = around[start[v] + i];
            const int *t = triangles + 3 * (size_t)(at / 3);
            edges[i][0] = t[(at + 1) % 3], edges[i][1] = t[(at + 2) % 3];
        }
        *pinches += count > MOST_AROUND || !is_ring(count, (const int(*)[2])edges);
    }
    fem_free(start), fem_free(around);
    return FEM_OK;
}

// ---- distances -------------------------------------------------------------------------------------------------

enum { BATCH = 64, MOST_CUTS = 4096, MOST_SAMPLES = 20000000 };

typedef struct comparison {
    const fem_surface_tree *to;
    int                     triangle_count;
    const int              *triangles;
    const double           *vertices;
    int                     vertex_count;
    int                    *owner;       // per vertex: the triangle that samples it
    double                  spacing;     // of samples: the size, unless those would be too many
    double                  size, limit; // of elements, and of what is lost
    double                 *furthest;    // per triangle: distance of its worst sample
    double                 *sum, *lost;  // distance times area, and area beyond the limit and outside
    double                 *lost_most;   // distance of the worst sample of those, or -1
    double (*place)[3];                  // and where that is
} comparison;

// A triangle as an origin, its longest edge, another edge from there, and into how many parts they are cut: so that a
// needle is not cut across as often as along.
typedef struct cut_triangle {
    const double *origin;
    double        along[3], aside[3], area;
    int           m, k;
} cut_triangle;

static cut_triangle cut_for_samples(const comparison *c, size_t t) {
    const double *x[3];
    double        longest = -1, n[3];
    int           first = 0;
    cut_triangle  cut;
    for (size_t i = 0; i < 3; i++) x[i] = c->vertices + 3 * (size_t)c->triangles[3 * t + i];
    for (int i = 0; i < 3; i++) {
        double length = vec3_distance(x[i], x[(i + 1) % 3]);
        if (length > longest) longest = length, first = i;
    }
    cut.origin = x[first];
    vec3_sub(cut.along, x[(first + 1) % 3], x[first]), vec3_sub(cut.aside, x[(first + 2) % 3], x[first]);
    vec3_cross(n, cut.along, cut.aside);
    cut.area = vec3_norm(n) / 2;
    cut.m = (int)fmax(1, fmin(MOST_CUTS, ceil(longest / c->spacing)));
    cut.k = (int)fmax(1, fmin(MOST_CUTS, ceil(2 * cut.area / longest / c->spacing)));
    return cut;
}

// Sample i of m k: the middles of the parts of a parallelogram, of which the triangle is half; the other half is folded
// onto it. A triangle that is not cut is sampled in its middle.
static void place_sample(const cut_triangle *cut, int i, double p[3]) {
    double u = (i % cut->m + 0.5) / cut->m, v = (i / cut->m + 0.5) / cut->k;
    if (u + v > 1) u = 1 - u, v = 1 - v;
    if (cut->m * cut->k == 1) u = v = 1.0 / 3;
    for (int a = 0; a < 3; a++) p[a] = cut->origin[a] + u * cut->along[a] + v * cut->aside[a];
}

static void take_sample(comparison *c, size_t t, const double p[3], double area) {
    double distance = sqrt(fem_surface_distance(c->to, p));
    c->furthest[t] = fmax(c->furthest[t], distance);
    c->sum[t] += area * distance;
    // deep inside lies what other parts of the surface cover: nothing is lost there
    if (distance <= c->limit || fem_surface_winding(c->to, p) > 0.5) return;
    c->lost[t] += area;
    if (distance > c->lost_most[t]) c->lost_most[t] = distance, memcpy(c->place[t], p, 3 * sizeof *p);
}

// Its corners, each for one of the triangles around, and the parts.
static void sample_triangle(comparison *c, size_t t) {
    cut_triangle cut = cut_for_samples(c, t);
    double       p[3];
    c->furthest[t] = c->lost_most[t] = -1;
    for (size_t k = 0; k < 3; k++) {
        int v = c->triangles[3 * t + k];
        if (c->owner[v] == (int)t) take_sample(c, t, c->vertices + 3 * (size_t)v, 0);
    }
    for (int i = 0; i < cut.m * cut.k; i++) {
        place_sample(&cut, i, p);
        take_sample(c, t, p, cut.area / ((double)cut.m * cut.k));
    }
}

static void sample_batch(void *context, int batch, int worker) {
    (void)worker;
    comparison *c = context;
    for (int t = batch * BATCH; t < c->triangle_count && t < (batch + 1) * BATCH; t++) sample_triangle(c, (size_t)t);
}

static fem_status compare_to(comparison *c) {
    size_t n = (size_t)c->triangle_count;
    c->furthest = fem_alloc(n, sizeof *c->furthest);
    c->place = fem_alloc(n, sizeof *c->place);
    c->sum = fem_calloc(n, sizeof *c->sum);
    c->lost = fem_calloc(n, sizeof *c->lost);
    c->lost_most = fem_alloc(n, sizeof *c->lost_most);
    c->owner = fem_alloc((size_t)c->vertex_count, sizeof *c->owner);
    if (!c->furthest || !c->place || !c->sum || !c->lost || !c->lost_most || !c->owner)
        return fem_fail(FEM_NO_MEMORY, "no memory to compare %zu triangles", n);
    for (size_t i = 0; i < 3 * n; i++) c->owner[c->triangles[i]] = (int)(i / 3);
    double samples = 0;
    c->spacing = c->size;
    for (size_t t = 0; t < n; t++) {
        cut_triangle cut = cut_for_samples(c, t);
        samples += (double)cut.m * cut.k;
    }
    c->spacing *= fmax(1, samples / MOST_SAMPLES);
    fem_parallel_for((c->triangle_count + BATCH - 1) / BATCH, sample_batch, c);
    return FEM_OK;
}

static void comparison_end(comparison *c) {
    fem_free(c->furthest), fem_free(c->place), fem_free(c->sum), fem_free(c->lost), fem_free(c->lost_most);
    fem_free(c->owner);
}

// The worst places, each at least four sizes from those before.
static void list_places(const comparison *c, fem_mesher_report *report) {
    while (report->place_count < FEM_MESHER_PLACES) {
        int worst = -1;
        for (int t = 0; t < c->triangle_count; t++) {
            bool apart = c->lost[t] > 0 && (worst < 0 || c->lost_most[t] > c->lost_most[worst]);
            for (int i = 0; i < report->place_count && apart; i++)
                apart = vec3_distance(c->place[t], report->places[i]) > 4 * c->size;
            if (apart) worst = t;
        }
        if (worst < 0) break;
        report->place_distance[report->place_count] = c->lost_most[worst];
        memcpy(report->places[report->place_count++], c->place[worst], sizeof report->places[0]);
    }
}

fem_status fem_mesher_compare(fem_mesh *mesh, const fem_mended *surface, const fem_surface_tree *tree, double size,
                              double limit, fem_mesher_report *report) {
    fem_status       status = FEM_OK;
    int             *triangles = NULL, count = 0, *items = NULL, on_surface = 0;
    fem_surface_tree skin = {0};
    double           begin = fem_seconds();
    comparison       there = {.triangle_count = surface->triangle_count,
                              .triangles = surface->triangles,
                              .vertices = surface->vertices,
                              .vertex_count = surface->vertex_count,
                              .size = size,
                              .limit = limit};
    comparison       back = {
              .to = tree, .vertices = mesh->vertices, .vertex_count = mesh->vertex_count, .size = size, .limit = limit};
    unsigned char *mark = fem_calloc((size_t)mesh->vertex_count, sizeof *mark);
    items = fem_alloc((size_t)mesh->vertex_count, sizeof *items);
    if (!mark || !items) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d vertices", mesh->vertex_count);
        goto done;
    }
    FEM_TRY(fem_mesh_surface(mesh, &count, &triangles, NULL));
    FEM_TRY(count_pinches(mesh, count, triangles, mark, &report->pinches));
    for (int v = 0; v < mesh->vertex_count; v++)
        if (mark[v]) items[on_surface++] = v;
    FEM_TRY(fem_mesh_add_vertex_set(mesh, "surface", on_surface, items));
    FEM_TRY(fem_surface_tree_create(&skin, count, triangles, mesh->vertices));
    there.to = &skin, back.triangle_count = count, back.triangles = triangles;
    FEM_TRY(compare_to(&there));
    FEM_TRY(compare_to(&back));
    for (int t = 0; t < there.triangle_count; t++) {
        report->to_mesh = fmax(report->to_mesh, there.furthest[t]);
        report->mean_to_mesh += there.sum[t] / report->area;
        report->lost_area += there.lost[t];
    }
    for (int t = 0; t < count; t++) report->to_surface = fmax(report->to_surface, back.furthest[t]);
    list_places(&there, report);
    report->seconds_distance = fem_seconds() - begin;
done:
    fem_free(mark), fem_free(items), fem_free(triangles);
    fem_surface_tree_destroy(&skin);
    comparison_end(&there), comparison_end(&back);
    return status;
}
