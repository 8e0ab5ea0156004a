// The sample of nodes over which the reduced inner product sums (P0 section 4.2): the bounding box is cut into cubes;
// each cube that holds a part of the body gives the node nearest its centre, and its weight is the mass in the cube.
// The mass is that of the cube's nodes, lumped, so the weights add up to the mass of the body.
#include "libmodes/krylov_internal.h"

#include <string.h>

enum { ATTEMPTS = 8, MOST_CELLS = 1 << 24 };

typedef struct grid {
    double low[3], size;
    int    cells[3];
} grid;

void modes_sample_destroy(modes_sample *sample) {
    fem_free(sample->vertex);
    fem_free(sample->weight);
    *sample = (modes_sample){0};
}

static void lump(const fem_sparse *M, double *mass) {
    memset(mass, 0, (size_t)M->n * sizeof *mass);
    for (int i = 0; i < M->n; i++)
        for (int k = M->row_start[i]; k < M->row_start[i + 1]; k++) {
            const double *a = M->value + 9 * (size_t)k;
            double        third = (a[0] + a[4] + a[8]) / 3;
            mass[i] += third;
            if (M->column[k] != i) mass[M->column[k]] += third;
        }
}

static int cell_of(const grid *g, const double *x) {
    int index[3];
    for (int i = 0; i < 3; i++) {
        index[i] = (int)((x[i] - g->low[i]) / g->size);
        if (index[i] >= g->cells[i]) index[i] = g->cells[i] - 1; // the high side of the box
    }
    return (index[2] * g->cells[1] + index[1]) * g->cells[0] + index[0];
}

// Cubes of this size; false when there would be too many.
static bool cut(grid *g, const double high[3], double size) {
    double product = 1;
    g->size = size;
    for (int i = 0; i < 3; i++) {
        double cells = fmax(1, ceil((high[i] - g->low[i]) / size));
        product *= cells;
        if (product > MOST_CELLS) return false;
        g->cells[i] = (int)cells;
    }
    return true;
}

// slot[cell] = number of the occupied cell, -1 for an empty one
static fem_status occupy(const grid *g, const fem_mesh *mesh, const double *mass, int **result, int *occupied) {
    size_t cells = (size_t)g->cells[0] * (size_t)g->cells[1] * (size_t)g->cells[2];
    int   *slot = fem_alloc(cells, sizeof *slot);
    if (!slot) return fem_fail(FEM_NO_MEMORY, "no memory for a sample of nodes from %zu cubes", cells);
    for (size_t c = 0; c < cells; c++) slot[c] = -1;
    *occupied = 0;
    for (int v = 0; v < mesh->vertex_count; v++) {
        if (!(mass[v] > 0)) continue;
        int c = cell_of(g, mesh->vertices + 3 * (size_t)v);
        if (slot[c] < 0) slot[c] = (*occupied)++;
    }
    fem_free(*result);
    *result = slot;
    return FEM_OK;
}

// The number of occupied cubes goes with size^-3 (solid) to size^-1 (rod): the exponent that fits best is not needed,
// since a few corrections by the cube root come close from either side.
static fem_status choose_size(grid *g, const double high[3], const fem_mesh *mesh, const double *mass, int wanted,
                              int **slot, int *occupied) {
    fem_status status = FEM_OK;
    double     extent[3], size;
    grid       trial = *g;
    vec3_sub(extent, high, g->low);
    size = fmax(extent[0], fmax(extent[1], extent[2])) / cbrt((double)wanted);
    for (int attempt = 0; attempt < ATTEMPTS && cut(&trial, high, size); attempt++) {
        *g = trial;
        FEM_TRY(occupy(g, mesh, mass, slot, occupied));
        double ratio = (double)*occupied / wanted;
        if (ratio >= 1 && ratio < 1.15) break;
        size *= cbrt(ratio / 1.05);
    }
done:
    return status;
}

fem_status modes_sample_create(modes_sample *result, const modes_problem *problem, int wanted) {
    fem_status      status = FEM_OK;
    const fem_mesh *mesh = problem->mesh;
    modes_sample    sample = {0};
    int            *slot = NULL, occupied = 0, nodes = 0;
    double         *mass = fem_alloc((size_t)mesh->vertex_count, sizeof *mass), *distance = NULL;
    grid            g = {.low = {INFINITY, INFINITY, INFINITY}};
    double          high[3] = {-INFINITY, -INFINITY, -INFINITY};
    if (!mass) goto no_memory;
    lump(problem->M, mass);
    for (int v = 0; v < mesh->vertex_count; v++) {
        if (!(mass[v] > 0)) continue;
        nodes++;
        for (int i = 0; i < 3; i++) {
            g.low[i] = fmin(g.low[i], mesh->vertices[3 * (size_t)v + (size_t)i]);
            high[i] = fmax(high[i], mesh->vertices[3 * (size_t)v + (size_t)i]);
        }
    }
    if (nodes == 0) {
        status = fem_fail(FEM_BAD_INPUT, "the mass matrix is zero: the density must be positive");
        goto done;
    }
    FEM_TRY(choose_size(&g, high, mesh, mass, wanted < nodes ? wanted : nodes, &slot, &occupied));
    sample.count = occupied;
    sample.vertex = fem_alloc((size_t)occupied, sizeof *sample.vertex);
    sample.weight = fem_calloc((size_t)occupied, sizeof *sample.weight);
    distance = fem_alloc((size_t)occupied, sizeof *distance);
    if (!sample.vertex || !sample.weight || !distance) goto no_memory;
    for (int s = 0; s < occupied; s++) distance[s] = INFINITY;
    for (int v = 0; v < mesh->vertex_count; v++) {
        if (!(mass[v] > 0)) continue;
        const double *x = mesh->vertices + 3 * (size_t)v;
        int           c = cell_of(&g, x), s = slot[c];
        const int     index[3] = {c % g.cells[0], c / g.cells[0] % g.cells[1], c / g.cells[0] / g.cells[1]};
        double        centre[3];
        for (int i = 0; i < 3; i++) centre[i] = g.low[i] + (index[i] + 0.5) * g.size;
        double d = vec3_distance(x, centre);
        sample.weight[s] += mass[v];
        if (d < distance[s]) distance[s] = d, sample.vertex[s] = v;
    }
    *result = sample;
    sample = (modes_sample){0};
    goto done;
no_memory:
    status = fem_fail(FEM_NO_MEMORY, "no memory for a sample of %d nodes", wanted);
done:
    modes_sample_destroy(&sample);
    fem_free(slot);
    fem_free(mass);
    fem_free(distance);
    return status;
}
