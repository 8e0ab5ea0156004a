// A grid of voxels: mending its hinges, and its hexahedra.
#include "libfem/voxels.h"

#include <string.h>

static const double MOST_VOXELS = 4e8; // of the grid, full or not: four bytes each

// A side that is a whole number of voxels to within rounding has that number.
static const double TOLERANCE = 1e-6;

fem_status fem_voxels_create(fem_voxels *g, const double low[3], const double high[3], double size) {
    double n[3], cells = 1, volume = 1;
    for (int k = 0; k < 3; k++) {
        n[k] = fmax(1, ceil((high[k] - low[k]) / size - TOLERANCE));
        cells *= n[k], volume *= high[k] - low[k];
    }
    if (!(cells <= MOST_VOXELS))
        return fem_fail(FEM_BAD_INPUT, "voxels of %g make a grid of %.3g voxels, at most %.3g: about %.3g would do",
                        size, cells, MOST_VOXELS, 1.05 * fmax(size, cbrt(volume / MOST_VOXELS)));
    *g = (fem_voxels){.n = {(int)n[0], (int)n[1], (int)n[2]}, .size = size};
    for (int k = 0; k < 3; k++) g->low[k] = (low[k] + high[k]) / 2 - n[k] * size / 2;
    g->owner = fem_calloc((size_t)cells, sizeof *g->owner);
    if (!g->owner) return fem_fail(FEM_NO_MEMORY, "no memory for a grid of %.3g voxels", cells);
    return FEM_OK;
}

// ---- hinges ----------------------------------------------------------------------------------------------------

// The block at grid point i holds the voxels i - 1 and i along each axis, as the bits x + 2y + 4z of a mask.
static unsigned block_mask(const fem_voxels *g, const int i[3]) {
    unsigned mask = 0;
    for (int c = 0; c < 8; c++) {
        int v[3] = {i[0] - 1 + (c & 1), i[1] - 1 + (c >> 1 & 1), i[2] - 1 + (c >> 2)};
        if (v[0] < 0 || v[1] < 0 || v[2] < 0 || v[0] >= g->n[0] || v[1] >= g->n[1] || v[2] >= g->n[2]) continue;
        mask |= (g->owner[fem_voxel_index(g, v)] != 0) * (1u << c);
    }
    return mask;
}

// Latecki's two critical configurations.
static bool well_composed(unsigned mask) {
    for (int axis = 0; axis < 3; axis++)
        for (int side = 0; side < 2; side++) { // the four voxels around each of the six edges at the grid point
            unsigned p = 1u << (axis + 1) % 3, q = 1u << (axis + 2) % 3, first = side ? 1u << axis : 0;
            unsigned around = 1u << first | 1u << (first + p) | 1u << (first + q) | 1u << (first + p + q);
            unsigned diagonal = 1u << first | 1u << (first + p + q);
            if ((mask & around) == diagonal || (mask & around) == (around & ~diagonal)) return false;
        }
    for (int corner = 0; corner < 4; corner++) {
        unsigned pair = 1u << corner | 1u << (7 - corner);
        if (mask == pair || mask == (0xffu & ~pair)) return false;
    }
    return true;
}

typedef struct repair {
    fem_voxels *grid;
    bool        good[256]; // by mask
    int (*list)[3];        // grid points whose blocks have to be looked at again
    size_t count, capacity, filled;
} repair;

// Number of bad blocks around a voxel.
static int bad_around(const repair *r, const int voxel[3]) {
    int bad = 0;
    for (int c = 0; c < 8; c++) {
        int point[3] = {voxel[0] + (c & 1), voxel[1] + (c >> 1 & 1), voxel[2] + (c >> 2)};
        bad += !r->good[block_mask(r->grid, point)];
    }
    return bad;
}

// Fills the empty voxel of a bad block that leaves the fewest bad blocks around it, and lists those blocks. It goes to
// the first of the pieces in the block.
static fem_status fill_one(repair *r, const int point[3]) {
    fem_voxels *g = r->grid;
    int         best[3] = {0, 0, 0}, fewest = 9, owner = 0;
    for (int c = 0; c < 8; c++) {
        int v[3] = {point[0] - 1 + (c & 1), point[1] - 1 + (c >> 1 & 1), point[2] - 1 + (c >> 2)};
        if (v[0] < 0 || v[1] < 0 || v[2] < 0 || v[0] >= g->n[0] || v[1] >= g->n[1] || v[2] >= g->n[2]) continue;
        int *here = &g->owner[fem_voxel_index(g, v)];
        if (*here != 0) {
            if (owner == 0 || *here < owner) owner = *here;
            continue;
        }
        *here = 1; // on trial
        int bad = bad_around(r, v);
        *here = 0;
        if (bad < fewest) fewest = bad, memcpy(best, v, sizeof best);
    }
    fem_status status = fem_grow((void **)&r->list, &r->capacity, r->count + 8, sizeof *r->list);
    if (status != FEM_OK) return status;
    g->owner[fem_voxel_index(g, best)] = owner;
    r->filled++;
    for (int c = 0; c < 8; c++) {
        int *next = r->list[r->count++];
        next[0] = best[0] + (c & 1), next[1] = best[1] + (c >> 1 & 1), next[2] = best[2] + (c >> 2);
    }
    return FEM_OK;
}

fem_status fem_voxels_repair(fem_voxels *g, size_t *filled) {
    fem_status status = FEM_OK;
    repair     r = {.grid = g};
    int        i[3];
    for (unsigned mask = 0; mask < 256; mask++) r.good[mask] = well_composed(mask);
    for (i[2] = 0; i[2] <= g->n[2]; i[2]++)
        for (i[1] = 0; i[1] <= g->n[1]; i[1]++)
            for (i[0] = 0; i[0] <= g->n[0]; i[0]++) {
                // a fill lists the blocks around it, this one too, until they are all good
                if (!r.good[block_mask(g, i)]) FEM_TRY(fill_one(&r, i));
                while (r.count > 0) {
                    int point[3];
                    memcpy(point, r.list[--r.count], sizeof point);
                    if (!r.good[block_mask(g, point)]) FEM_TRY(fill_one(&r, point));
                }
            }
    *filled = r.filled;
done:
    fem_free(r.list);
    return status;
}

// ---- the mesh --------------------------------------------------------------------------------------------------

static int count_vertices(const fem_voxels *g) {
    int i[3], count = 0; // at most 8 for each of 50 million voxels
    for (i[2] = 0; i[2] <= g->n[2]; i[2]++)
        for (i[1] = 0; i[1] <= g->n[1]; i[1]++)
            for (i[0] = 0; i[0] <= g->n[0]; i[0]++) count += block_mask(g, i) != 0;
    return count;
}

// Numbers the grid points of one plane that belong to a full voxel, and places them.
static void number_plane(const fem_voxels *g, int z, int *plane, int *next, double *vertices) {
    int i[3] = {0, 0, z};
    for (i[1] = 0; i[1] <= g->n[1]; i[1]++)
        for (i[0] = 0; i[0] <= g->n[0]; i[0]++, plane++) {
            if (block_mask(g, i) == 0) continue;
            for (int k = 0; k < 3; k++) vertices[3 * (size_t)*next + (size_t)k] = g->low[k] + i[k] * g->size;
            *plane = (*next)++;
        }
}

// Voxels between two numbered planes.
static void fill_slab(const fem_voxels *g, int z, const int *below, const int *above, int *element, fem_mesh *mesh) {
    int i[3] = {0, 0, z}, row = g->n[0] + 1;
    for (i[1] = 0; i[1] < g->n[1]; i[1]++)
        for (i[0] = 0; i[0] < g->n[0]; i[0]++) {
            int owner = g->owner[fem_voxel_index(g, i)], at = i[1] * row + i[0];
            if (owner == 0) continue;
            int hexahedron[8] = {below[at], below[at + 1], below[at + 1 + row], below[at + row],
                                 above[at], above[at + 1], above[at + 1 + row], above[at + row]};
            memcpy(mesh->elements + 8 * (size_t)*element, hexahedron, sizeof hexahedron);
            mesh->region[(*element)++] = owner - 1;
        }
}

static fem_status fill_mesh(const fem_voxels *g, fem_mesh *mesh) {
    size_t points = ((size_t)g->n[0] + 1) * ((size_t)g->n[1] + 1);
    int   *planes[2] = {fem_alloc(points, sizeof(int)), fem_alloc(points, sizeof(int))}, vertex = 0, element = 0;
    if (!planes[0] || !planes[1]) {
        fem_free(planes[0]), fem_free(planes[1]);
        return fem_fail(FEM_NO_MEMORY, "no memory for a plane of %zu grid points", points);
    }
    for (int z = 0; z <= g->n[2]; z++) {
        number_plane(g, z, planes[z % 2], &vertex, mesh->vertices);
        if (z > 0) fill_slab(g, z - 1, planes[(z + 1) % 2], planes[z % 2], &element, mesh);
    }
    fem_free(planes[0]), fem_free(planes[1]);
    return FEM_OK;
}

fem_status fem_voxels_mesh(const fem_voxels *grid, double full, fem_mesh *mesh) {
    fem_status status = FEM_OK;
    FEM_TRY(fem_mesh_allocate(mesh, FEM_H8, count_vertices(grid), (int)full));
    FEM_TRY(fill_mesh(grid, mesh));
done:
    return status;
}
