// Evenly spread elements: a grid of cubic cells over the body (P0 section 5: the voxels of its sparse inner product),
// and of each occupied cell the element nearest to a point in its middle that is drawn at random. Nearest to the centre
// itself would be a bad choice: where the body is as thin as a cell those elements all lie along its axis, and bending
// hardly strains them.
#include "libcubature/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POINT_SEED = 31 };
static const double MIDDLE = 0.8; // of the edge of a cell: where its point may lie

typedef struct grid {
    double *centre; // elements x 3
    int     elements;
    double  low[3], high[3];
    int     cells[3];
    double  edge;
    int    *best; // cells: element, or -1
    size_t  capacity;
    double *distance; // cells: of the element to the cell's point
    size_t  distance_capacity;
} grid;

static void element_centre(const fem_mesh *mesh, int element, double x[3]) {
    int width = fem_element_vertices(mesh->type);
    x[0] = x[1] = x[2] = 0;
    for (int a = 0; a < width; a++)
        vec3_axpy(x, 1.0 / width,
                  mesh->vertices + 3 * (size_t)mesh->elements[(size_t)element * (size_t)width + (size_t)a]);
}

static size_t cell_of(const grid *g, int element, int cell[3]) {
    for (int k = 0; k < 3; k++) {
        cell[k] = (int)((g->centre[3 * (size_t)element + (size_t)k] - g->low[k]) / g->edge);
        if (cell[k] >= g->cells[k]) cell[k] = g->cells[k] - 1;
    }
    return ((size_t)cell[2] * (size_t)g->cells[1] + (size_t)cell[1]) * (size_t)g->cells[0] + (size_t)cell[0];
}

static double distance_to_point(const grid *g, int element, const int cell[3], size_t index) {
    double point[3];
    for (size_t k = 0; k < 3; k++)
        point[k] = g->low[k] + g->edge * (cell[k] + 0.5 + MIDDLE * (random_uniform(POINT_SEED, 3 * index + k) - 0.5));
    return vec3_distance(g->centre + 3 * (size_t)element, point);
}

// Cells of the given edge; *occupied of them have elements.
static fem_status fill_grid(grid *g, double edge, int *occupied) {
    size_t total = 1;
    g->edge = edge;
    for (int k = 0; k < 3; k++) {
        g->cells[k] = (int)fmin(1000, floor((g->high[k] - g->low[k]) / edge) + 1);
        total *= (size_t)g->cells[k];
    }
    fem_status status = fem_grow((void **)&g->best, &g->capacity, total, sizeof *g->best);
    if (status != FEM_OK) return status;
    memset(g->best, 0xff, total * sizeof *g->best);
    *occupied = 0;
    for (int e = 0; e < g->elements; e++) {
        int  cell[3];
        int *best = &g->best[cell_of(g, e, cell)];
        *occupied += *best < 0;
        *best = e;
    }
    return FEM_OK;
}

static int compare_ints(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

// The elements of the occupied cells.
static fem_status collect(grid *g, int *elements, int *count) {
    size_t     total = (size_t)g->cells[0] * (size_t)g->cells[1] * (size_t)g->cells[2];
    fem_status status = fem_grow((void **)&g->distance, &g->distance_capacity, total, sizeof *g->distance);
    if (status != FEM_OK) return status;
    for (size_t c = 0; c < total; c++) g->distance[c] = INFINITY;
    for (int e = 0; e < g->elements; e++) {
        int    cell[3];
        size_t index = cell_of(g, e, cell);
        double distance = distance_to_point(g, e, cell, index);
        if (distance < g->distance[index]) g->distance[index] = distance, g->best[index] = e;
    }
    *count = 0;
    for (size_t c = 0; c < total; c++)
        if (g->best[c] >= 0) elements[(*count)++] = g->best[c];
    qsort(elements, (size_t)*count, sizeof *elements, compare_ints);
    return FEM_OK;
}

fem_status cubature_sample_elements(const fem_mesh *mesh, int wanted, int *elements, int *count) {
    fem_status status = FEM_OK;
    int        E = mesh->element_count, occupied = 0;
    grid       g = {.elements = E, .low = {INFINITY, INFINITY, INFINITY}, .high = {-INFINITY, -INFINITY, -INFINITY}};
    if (wanted < 1) return fem_fail(FEM_BAD_INPUT, "cubature: %d elements wanted, expected >= 1", wanted);
    if (wanted >= E) {
        for (int e = 0; e < E; e++) elements[e] = e;
        *count = E;
        return FEM_OK;
    }
    double *centre = fem_alloc((size_t)E, 3 * sizeof *centre), volume = 1, edge, low = 0, high = INFINITY;
    if (!centre) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the centres of %d elements", E);
        goto done;
    }
    g.centre = centre;
    for (int e = 0; e < E; e++) {
        element_centre(mesh, e, centre + 3 * (size_t)e);
        for (int k = 0; k < 3; k++) {
            g.low[k] = fmin(g.low[k], centre[3 * (size_t)e + (size_t)k]);
            g.high[k] = fmax(g.high[k], centre[3 * (size_t)e + (size_t)k]);
        }
    }
    for (int k = 0; k < 3; k++) volume *= fmax(g.high[k] - g.low[k], 1e-30);
    edge = fmax(cbrt(volume / wanted), 1e-30);
    // the number of cells falls with the edge, roughly as its cube: secant steps between bounds, from the side of fewer
    for (int step = 0; step < 24; step++) {
        FEM_TRY(fill_grid(&g, edge, &occupied));
        if (occupied == wanted || (occupied < wanted && occupied >= wanted - wanted / 50)) break;
        if (occupied < wanted)
            high = edge;
        else
            low = edge;
        double next = edge * cbrt((double)occupied / wanted);
        if (!(next > low * 1.0001) || !(next < high / 1.0001)) next = isinf(high) ? edge * 1.3 : (low + high) / 2;
        edge = next;
        if (isfinite(high) && high - low < 1e-4 * high) break;
    }
    if (occupied > wanted) FEM_TRY(fill_grid(&g, isfinite(high) ? high : 2 * edge, &occupied));
    while (occupied > wanted) FEM_TRY(fill_grid(&g, g.edge * 1.05, &occupied));
    FEM_TRY(collect(&g, elements, count));
done:
    fem_free(centre);
    fem_free(g.best);
    fem_free(g.distance);
    return status;
}

// ---- what each of them stands for ----------------------------------------------------------------------------------

enum { SHARE_CHUNK = 512 };

typedef struct sharing {
    const fem_body *body;
    int             count;
    const int      *elements;
    const double   *centre; // count x 3
    int            *owner;  // of each element: place in the list
    double         *volume; // of each element
} sharing;

static int material_of(const fem_mesh *mesh, int element) { return mesh->regions[mesh->region[element]].material; }

static void share_task(void *context, int index, int worker) {
    (void)worker;
    const sharing  *s = context;
    const fem_mesh *mesh = fem_body_mesh(s->body);
    int end = (index + 1) * SHARE_CHUNK < mesh->element_count ? (index + 1) * SHARE_CHUNK : mesh->element_count;
    for (int e = index * SHARE_CHUNK; e < end; e++) {
        double weight[27], g[27][24], x[3], nearest = INFINITY;
        int    points = fem_body_points(s->body, e, weight, g);
        bool   alike = false;
        s->volume[e] = 0;
        for (int k = 0; k < points; k++) s->volume[e] += weight[k];
        element_centre(mesh, e, x);
        for (int i = 0; i < s->count; i++) {
            double distance = vec3_distance(x, s->centre + 3 * (size_t)i);
            bool   same = material_of(mesh, e) == material_of(mesh, s->elements[i]);
            if ((alike && !same) || (alike == same && distance >= nearest)) continue;
            nearest = distance, alike = same, s->owner[e] = i;
        }
    }
}

fem_status sample_shares(const fem_body *body, int count, const int *elements, double *shares) {
    const fem_mesh *mesh = fem_body_mesh(body);
    int             E = mesh->element_count;
    sharing         s = {.body = body, .count = count, .elements = elements};
    double         *centre = fem_alloc((size_t)count, 3 * sizeof *centre);
    s.owner = fem_calloc((size_t)E, sizeof *s.owner);
    s.volume = fem_alloc((size_t)E, sizeof *s.volume);
    fem_status status =
        centre && s.owner && s.volume ? FEM_OK : fem_fail(FEM_NO_MEMORY, "no memory for the volumes of %d elements", E);
    if (status == FEM_OK) {
        for (int i = 0; i < count; i++) element_centre(mesh, elements[i], centre + 3 * (size_t)i), shares[i] = 0;
        s.centre = centre;
        fem_parallel_for((E + SHARE_CHUNK - 1) / SHARE_CHUNK, share_task, &s);
        for (int e = 0; e < E; e++) shares[s.owner[e]] += s.volume[e] / s.volume[elements[s.owner[e]]];
    }
    fem_free(centre);
    fem_free(s.owner);
    fem_free(s.volume);
    return status;
}
