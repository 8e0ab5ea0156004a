// Union of capsules, boxes and balls on one voxel grid.
//
// owner[voxel] is 0 or 1 + the piece that it belongs to. After the pieces are entered, hinges are mended (voxels.h).
#include "libfem/voxels.h"

#include <stdlib.h>
#include <string.h>

// A centre that lies on the boundary of a piece to within rounding must not be decided by it; in voxels.
static const double TOLERANCE = 1e-6;

static void voxel_centre(const fem_voxels *g, const int i[3], double centre[3]) {
    for (int k = 0; k < 3; k++) centre[k] = g->low[k] + (i[k] + 0.5) * g->size;
}

// ---- pieces ----------------------------------------------------------------------------------------------------

static fem_status check_piece(const fem_piece *p, int number) {
    if (!p->name || !p->name[0]) return fem_fail(FEM_BAD_INPUT, "piece %d (from 0) has no name", number);
    for (int k = 0; k < 3; k++)
        if (!(fabs(p->a[k]) < 1e100) || (p->shape != FEM_BALL && !(fabs(p->b[k]) < 1e100)))
            return fem_fail(FEM_BAD_INPUT, "piece \"%s\": its %c is not a finite number", p->name, "xyz"[k]);
    switch (p->shape) {
    case FEM_BOX:
        for (int k = 0; k < 3; k++)
            if (p->a[k] == p->b[k])
                return fem_fail(FEM_BAD_INPUT, "piece \"%s\": the box has no extent along %c", p->name, "xyz"[k]);
        return FEM_OK;
    case FEM_CAPSULE:
        if (!(p->radius_b > 0) || !(p->radius_b < 1e100))
            return fem_fail(FEM_BAD_INPUT, "piece \"%s\": radius_b is %g, expected > 0", p->name, p->radius_b);
        // fall through
    case FEM_BALL:
        if (!(p->radius_a > 0) || !(p->radius_a < 1e100))
            return fem_fail(FEM_BAD_INPUT, "piece \"%s\": radius_a is %g, expected > 0", p->name, p->radius_a);
        return FEM_OK;
    }
    return fem_fail(FEM_BAD_INPUT, "piece \"%s\": unknown shape %d", p->name, (int)p->shape);
}

// Box around the part of a piece between t0 and t1 along a capsule's axis.
static void piece_bounds(const fem_piece *p, double t0, double t1, double low[3], double high[3]) {
    for (int k = 0; k < 3; k++) {
        if (p->shape == FEM_BOX) low[k] = fmin(p->a[k], p->b[k]), high[k] = fmax(p->a[k], p->b[k]);
        if (p->shape == FEM_BALL) low[k] = p->a[k] - p->radius_a, high[k] = p->a[k] + p->radius_a;
        if (p->shape != FEM_CAPSULE) continue;
        double x0 = (1 - t0) * p->a[k] + t0 * p->b[k], x1 = (1 - t1) * p->a[k] + t1 * p->b[k];
        double r0 = (1 - t0) * p->radius_a + t0 * p->radius_b, r1 = (1 - t1) * p->radius_a + t1 * p->radius_b;
        low[k] = fmin(x0 - r0, x1 - r1), high[k] = fmax(x0 + r0, x1 + r1);
    }
}

// Hull of two balls: the balls along the axis whose radius goes linearly from one to the other. With y along the axis
// and rho across it, |(rho, y - s)| - r(s) is smallest at s = y + rho k / sqrt(1 - k^2), k the slope of r.
static bool in_capsule(const fem_piece *p, const double x[3], double tolerance) {
    double d[3], e[3];
    vec3_sub(d, p->b, p->a);
    vec3_sub(e, x, p->a);
    double length = vec3_norm(d), k = length > 0 ? (p->radius_b - p->radius_a) / length : 0;
    double y = length > 0 ? vec3_dot(d, e) / length : 0, rho = sqrt(fmax(0, vec3_dot(e, e) - y * y)), s;
    if (length == 0 || fabs(k) >= 1)
        s = p->radius_b > p->radius_a ? length : 0; // one ball is inside the other
    else
        s = fmax(0, fmin(length, y + rho * k / sqrt(1 - k * k)));
    double radius = length > 0 ? p->radius_a + k * s : fmax(p->radius_a, p->radius_b);
    return hypot(rho, y - s) <= radius + tolerance;
}

// Boxes are half open, so that boxes side by side share no voxel and leave none out.
static bool contains(const fem_piece *p, const double x[3], double tolerance) {
    if (p->shape == FEM_CAPSULE) return in_capsule(p, x, tolerance);
    if (p->shape == FEM_BALL) return vec3_distance(x, p->a) <= p->radius_a + tolerance;
    for (int k = 0; k < 3; k++) {
        double low = fmin(p->a[k], p->b[k]), high = fmax(p->a[k], p->b[k]);
        if (x[k] < low - tolerance || x[k] >= high - tolerance) return false;
    }
    return true;
}

// Enters the voxels of a piece that no earlier piece has; `inside`: it has voxels, `own`: it gets some.
// A long capsule is taken in chunks, since the box around a slanting one is mostly empty.
static void enter_piece(fem_voxels *g, const fem_piece *p, int number, bool *inside, bool *own) {
    double length = p->shape == FEM_CAPSULE ? vec3_distance(p->a, p->b) : 0;
    double chunk = fmax(fmax(p->radius_a, p->radius_b), 4 * g->size);
    int    chunks = (int)fmax(1, fmin(ceil(length / chunk), 1e6));
    for (int c = 0; c < chunks; c++) {
        double low[3], high[3], x[3];
        int    first[3], last[3], i[3];
        piece_bounds(p, (double)c / chunks, (c + 1.0) / chunks, low, high);
        for (int k = 0; k < 3; k++) {
            first[k] = (int)fmax(0, floor((low[k] - g->low[k]) / g->size) - 1);
            last[k] = (int)fmin(g->n[k] - 1, ceil((high[k] - g->low[k]) / g->size));
        }
        for (i[2] = first[2]; i[2] <= last[2]; i[2]++)
            for (i[1] = first[1]; i[1] <= last[1]; i[1]++)
                for (i[0] = first[0]; i[0] <= last[0]; i[0]++) {
                    int *owner = &g->owner[fem_voxel_index(g, i)];
                    if (*owner == number + 1) continue;
                    voxel_centre(g, i, x);
                    if (!contains(p, x, TOLERANCE * g->size)) continue;
                    *inside = true;
                    if (*owner == 0) *owner = number + 1, *own = true;
                }
    }
}

// Voxels this small put a centre into the piece wherever the grid lies: half the diagonal of a voxel fits into the
// largest ball of a round piece, its edge into the thinnest side of a box.
static double sufficient_voxel(const fem_piece *p) {
    if (p->shape == FEM_BALL) return 2 * p->radius_a / sqrt(3);
    if (p->shape == FEM_CAPSULE) return 2 * fmax(p->radius_a, p->radius_b) / sqrt(3);
    return fmin(fabs(p->b[0] - p->a[0]), fmin(fabs(p->b[1] - p->a[1]), fabs(p->b[2] - p->a[2])));
}

static int compare_names(const void *a, const void *b) {
    const fem_piece *x = *(const fem_piece *const *)a, *y = *(const fem_piece *const *)b;
    return strcmp(x->name, y->name);
}

static fem_status check_pieces(int count, const fem_piece *pieces, double voxel) {
    fem_status        status = FEM_OK;
    const fem_piece **by_name = NULL;
    if (count < 1) return fem_fail(FEM_BAD_INPUT, "%d pieces, expected at least 1", count);
    if (!(voxel > 0) || !isfinite(voxel)) return fem_fail(FEM_BAD_INPUT, "voxel is %g, expected > 0", voxel);
    for (int p = 0; p < count; p++) FEM_TRY(check_piece(&pieces[p], p));
    by_name = fem_alloc((size_t)count, sizeof *by_name);
    if (!by_name) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d pieces", count);
        goto done;
    }
    for (int p = 0; p < count; p++) by_name[p] = &pieces[p];
    qsort(by_name, (size_t)count, sizeof *by_name, compare_names);
    for (int p = 1; p < count; p++)
        if (strcmp(by_name[p]->name, by_name[p - 1]->name) == 0) {
            status =
                fem_fail(FEM_BAD_INPUT, "two pieces are named \"%s\": each needs a name of its own", by_name[p]->name);
            goto done;
        }
done:
    fem_free(by_name);
    return status;
}

static fem_status enter_pieces(fem_voxels *g, int count, const fem_piece *pieces) {
    for (int p = 0; p < count; p++) {
        bool inside = false, own = false;
        enter_piece(g, &pieces[p], p, &inside, &own);
        if (own) continue;
        if (inside)
            return fem_fail(FEM_BAD_INPUT,
                            "piece \"%s\" lies inside earlier pieces and gets no voxel of its own: "
                            "put it before them or leave it out",
                            pieces[p].name);
        return fem_fail(FEM_BAD_INPUT,
                        "piece \"%s\" is too thin for voxels of %g and gets none: voxels of %.3g or less would do",
                        pieces[p].name, g->size, 0.999 * sufficient_voxel(&pieces[p]));
    }
    return FEM_OK;
}

static fem_status lay_grid(fem_voxels *g, int count, const fem_piece *pieces, double voxel) {
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (int p = 0; p < count; p++) {
        double a[3], b[3];
        piece_bounds(&pieces[p], 0, 1, a, b);
        for (int k = 0; k < 3; k++) low[k] = fmin(low[k], a[k]), high[k] = fmax(high[k], b[k]);
    }
    return fem_voxels_create(g, low, high, voxel);
}

// ---- connection ------------------------------------------------------------------------------------------------

// Floods the body by faces from the first voxel of the first piece; what is reached has its owner negated.
static fem_status flood(fem_voxels *g) {
    fem_status status = FEM_OK;
    size_t     cells = (size_t)g->n[0] * (size_t)g->n[1] * (size_t)g->n[2], first = 0, count = 0, capacity = 0;
    int(*list)[3] = NULL;
    while (first < cells && g->owner[first] != 1) first++;
    FEM_TRY(fem_grow((void **)&list, &capacity, 1, sizeof *list));
    size_t plane = (size_t)g->n[0] * (size_t)g->n[1];
    list[0][0] = (int)(first % (size_t)g->n[0]);
    list[0][1] = (int)(first % plane / (size_t)g->n[0]);
    list[0][2] = (int)(first / plane);
    count = 1;
    g->owner[first] *= -1;
    while (count > 0) {
        int at[3];
        memcpy(at, list[--count], sizeof at);
        FEM_TRY(fem_grow((void **)&list, &capacity, count + 6, sizeof *list));
        for (int side = 0; side < 6; side++) {
            int next[3] = {at[0], at[1], at[2]}, axis = side / 2;
            next[axis] += side % 2 ? 1 : -1;
            if (next[axis] < 0 || next[axis] >= g->n[axis]) continue;
            int *owner = &g->owner[fem_voxel_index(g, next)];
            if (*owner <= 0) continue;
            *owner *= -1;
            memcpy(list[count++], next, sizeof next);
        }
    }
done:
    fem_free(list);
    return status;
}

static fem_status check_connected(fem_voxels *g, const fem_piece *pieces, double *full) {
    fem_status status = FEM_OK;
    size_t     cells = (size_t)g->n[0] * (size_t)g->n[1] * (size_t)g->n[2];
    int        apart = 0; // first piece with a voxel that was not reached, from 1
    bool       in_part = false;
    FEM_TRY(flood(g));
    *full = 0;
    for (size_t i = 0; i < cells; i++) {
        *full += g->owner[i] != 0;
        if (g->owner[i] > 0 && (apart == 0 || g->owner[i] < apart)) apart = g->owner[i];
    }
    for (size_t i = 0; i < cells; i++) {
        in_part = in_part || (apart > 0 && g->owner[i] == -apart);
        if (g->owner[i] < 0) g->owner[i] *= -1;
    }
    if (apart == 0) goto done;
    const fem_piece *p = &pieces[apart - 1];
    if (in_part && p->shape == FEM_CAPSULE)
        status = fem_fail(FEM_BAD_INPUT, "piece \"%s\" falls apart on voxels of %g: voxels of %.3g or less would do",
                          p->name, g->size, 0.999 * 2 * fmin(p->radius_a, p->radius_b) / sqrt(3));
    else
        status = fem_fail(FEM_BAD_INPUT, "piece \"%s\" is not connected with \"%s\": let it overlap a piece that is",
                          p->name, pieces[0].name);
done:
    return status;
}

// ---- the mesh --------------------------------------------------------------------------------------------------

// Coordinates come from grid indices by one formula, so those of a plane are equal to the last bit.
static fem_status name_sides(fem_mesh *mesh) {
    double         low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    unsigned char *mark = fem_calloc((size_t)mesh->vertex_count, sizeof *mark);
    if (!mark) return fem_fail(FEM_NO_MEMORY, "no memory for %d vertices", mesh->vertex_count);
    for (size_t v = 0; v < 3 * (size_t)mesh->vertex_count; v++) {
        low[v % 3] = fmin(low[v % 3], mesh->vertices[v]);
        high[v % 3] = fmax(high[v % 3], mesh->vertices[v]);
    }
    for (size_t v = 0; v < 3 * (size_t)mesh->vertex_count; v++) {
        if (mesh->vertices[v] == low[v % 3]) mark[v / 3] |= (unsigned char)(1u << 2 * (v % 3));
        if (mesh->vertices[v] == high[v % 3]) mark[v / 3] |= (unsigned char)(2u << 2 * (v % 3));
    }
    fem_status status = fem_generate_sides(mesh, mark);
    fem_free(mark);
    return status;
}

// Empties every voxel that is farther than `layers` voxels from the outside, along diagonals too, so that what is left
// hangs together by faces.
static fem_status hollow(fem_voxels *g, int layers) {
    size_t cells = (size_t)g->n[0] * (size_t)g->n[1] * (size_t)g->n[2];
    int   *solid = fem_copy(g->owner, cells, sizeof *solid), i[3], j[3];
    if (!solid) return fem_fail(FEM_NO_MEMORY, "no memory for %zu voxels", cells);
    for (i[2] = 0; i[2] < g->n[2]; i[2]++)
        for (i[1] = 0; i[1] < g->n[1]; i[1]++)
            for (i[0] = 0; i[0] < g->n[0]; i[0]++) {
                bool inner = solid[fem_voxel_index(g, i)] != 0;
                for (int k = 0; inner && k < 3; k++) inner = i[k] >= layers && i[k] < g->n[k] - layers;
                for (j[2] = i[2] - layers; inner && j[2] <= i[2] + layers; j[2]++)
                    for (j[1] = i[1] - layers; inner && j[1] <= i[1] + layers; j[1]++)
                        for (j[0] = i[0] - layers; inner && j[0] <= i[0] + layers; j[0]++)
                            inner = solid[fem_voxel_index(g, j)] != 0;
                if (inner) g->owner[fem_voxel_index(g, i)] = 0;
            }
    fem_free(solid);
    return FEM_OK;
}

fem_status fem_generate_pieces(fem_mesh *mesh, fem_element type, int count, const fem_piece *pieces, double voxel) {
    return fem_generate_shell(mesh, type, count, pieces, voxel, 0);
}

fem_status fem_generate_shell(fem_mesh *mesh, fem_element type, int count, const fem_piece *pieces, double voxel,
                              int layers) {
    fem_status   status = FEM_OK;
    fem_mesh     hexahedra = {0};
    fem_voxels   g = {0};
    double       full = 0;
    size_t       filled = 0;
    const char **names = NULL;
    FEM_TRY(check_pieces(count, pieces, voxel));
    FEM_TRY(lay_grid(&g, count, pieces, voxel));
    FEM_TRY(enter_pieces(&g, count, pieces));
    FEM_TRY(fem_voxels_repair(&g, &filled));
    if (layers > 0) FEM_TRY(hollow(&g, layers));
    if (layers > 0) FEM_TRY(fem_voxels_repair(&g, &filled));
    FEM_TRY(check_connected(&g, pieces, &full));
    FEM_TRY(fem_generate_count(full, type));
    FEM_TRY(fem_voxels_mesh(&g, full, &hexahedra));
    names = fem_alloc((size_t)count, sizeof *names);
    if (!names) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d names", count);
        goto done;
    }
    for (int p = 0; p < count; p++) names[p] = pieces[p].name;
    FEM_TRY(fem_generate_regions(&hexahedra, count, names));
    FEM_TRY(name_sides(&hexahedra));
    FEM_TRY(fem_generate_finish(mesh, type, &hexahedra));
done:
    fem_free(names), fem_free(g.owner);
    fem_mesh_destroy(&hexahedra);
    return status == FEM_BAD_INPUT ? fem_fail_prefix(status, "pieces: ") : status;
}
