// Vertices of two surfaces that belong together, and their alignment.
#include "libfem/internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct placed {
    double x;
    int    vertex;
} placed;

static int compare_placed(const void *a, const void *b) {
    const placed *p = a, *q = b;
    if (p->x != q->x) return p->x < q->x ? -1 : 1;
    return (p->vertex > q->vertex) - (p->vertex < q->vertex);
}

// Vertices sorted along x, so that those near a point are few.
static placed *sort_along_x(const fem_mesh *mesh, int count, const int *vertices) {
    placed *sorted = fem_alloc((size_t)count, sizeof *sorted);
    for (int i = 0; sorted && i < count; i++)
        sorted[i] = (placed){mesh->vertices[3 * (size_t)vertices[i]], vertices[i]};
    if (sorted) qsort(sorted, (size_t)count, sizeof *sorted, compare_placed);
    return sorted;
}

// The nearest of the sorted vertices, other than v itself, within the tolerance; -1 when there is none.
static int nearest(const fem_mesh *mesh, int count, const placed *sorted, int v, double tolerance) {
    const double *x = mesh->vertices + 3 * (size_t)v;
    int           low = 0, high = count, best = -1;
    double        least = tolerance;
    while (low < high) { // first that is not left of x - tolerance
        int middle = (low + high) / 2;
        if (sorted[middle].x < x[0] - tolerance)
            low = middle + 1;
        else
            high = middle;
    }
    for (int i = low; i < count && sorted[i].x <= x[0] + tolerance; i++) {
        double distance = vec3_distance(x, mesh->vertices + 3 * (size_t)sorted[i].vertex);
        if (sorted[i].vertex != v && (distance < least || (distance == least && (best < 0 || sorted[i].vertex < best))))
            least = distance, best = sorted[i].vertex;
    }
    return best;
}

fem_status fem_mesh_match(const fem_mesh *mesh, int a_count, const int *a, int b_count, const int *b, double tolerance,
                          int *pair_count, int **pairs) {
    fem_status status = FEM_OK;
    int        count = 0;
    placed    *from = NULL, *to = NULL;
    int       *list = NULL;
    if (!(tolerance >= 0) || !isfinite(tolerance))
        return fem_fail(FEM_BAD_INPUT, "tolerance of matching is %g m, expected >= 0", tolerance);
    for (int i = 0; i < a_count + b_count; i++) {
        int v = i < a_count ? a[i] : b[i - a_count];
        if (v < 0 || v >= mesh->vertex_count)
            return fem_fail(FEM_BAD_INPUT, "matching: vertex %d, expected %d to %d", v + mesh->file_base,
                            mesh->file_base, mesh->vertex_count - 1 + mesh->file_base);
    }
    from = sort_along_x(mesh, a_count, a), to = sort_along_x(mesh, b_count, b);
    list = fem_alloc((size_t)a_count, 2 * sizeof *list);
    if (!from || !to || !list) {
        status = fem_fail(FEM_NO_MEMORY, "no memory to match %d with %d vertices", a_count, b_count);
        goto done;
    }
    for (int i = 0; i < a_count; i++) {
        int other = nearest(mesh, b_count, to, a[i], tolerance);
        if (other < 0 || nearest(mesh, a_count, from, other, tolerance) != a[i]) continue;
        list[2 * count] = a[i], list[2 * count + 1] = other;
        count++;
    }
    *pair_count = count, *pairs = list;
    list = NULL;
done:
    fem_free(from), fem_free(to), fem_free(list);
    return status;
}

// ---- alignment ------------------------------------------------------------------------------------------------------

static int root_of(int *parent, int i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
}

static bool is_fixed(const unsigned char *fixed, int v) {
    return fixed && (fixed[3 * (size_t)v] || fixed[3 * (size_t)v + 1] || fixed[3 * (size_t)v + 2]);
}

// Middle of each group of vertices: sum[4 g] .. of fixed ones when there are any.
static void sum_groups(const fem_mesh *mesh, int *parent, const unsigned char *fixed, double *sum) {
    for (int pass = 0; pass < 2; pass++) // fixed ones first; others only where there are none
        for (int v = 0; v < mesh->vertex_count; v++) {
            double *s = sum + 4 * (size_t)root_of(parent, v);
            if ((pass == 0) != is_fixed(fixed, v) || (pass == 1 && s[3] < 0)) continue;
            vec3_axpy(s, 1, mesh->vertices + 3 * (size_t)v);
            s[3] += pass == 0 ? -1 : 1;
        }
}

fem_status fem_mesh_align(fem_mesh *mesh, int pair_count, const int *pairs, const unsigned char *fixed) {
    fem_status status = FEM_OK;
    int        n = mesh->vertex_count;
    int       *parent = fem_alloc((size_t)n, sizeof *parent);
    double    *sum = fem_calloc(4 * (size_t)n, sizeof *sum), *before = NULL;
    before = fem_copy(mesh->vertices, 3 * (size_t)n, sizeof *before);
    if (!parent || !sum || !before) {
        status = fem_fail(FEM_NO_MEMORY, "no memory to align %d pairs of vertices", pair_count);
        goto done;
    }
    for (int v = 0; v < n; v++) parent[v] = v;
    for (int p = 0; p < 2 * pair_count; p++)
        if (pairs[p] < 0 || pairs[p] >= n) {
            status = fem_fail(FEM_BAD_INPUT, "aligning: vertex %d, expected %d to %d", pairs[p] + mesh->file_base,
                              mesh->file_base, n - 1 + mesh->file_base);
            goto done;
        }
    for (int p = 0; p < pair_count; p++) {
        int a = root_of(parent, pairs[2 * p]), b = root_of(parent, pairs[2 * p + 1]);
        parent[a > b ? a : b] = a < b ? a : b;
    }
    sum_groups(mesh, parent, fixed, sum);
    for (int p = 0; p < 2 * pair_count; p++) {
        int     v = pairs[p];
        double *s = sum + 4 * (size_t)root_of(parent, v),
               x[3] = {s[0] / fabs(s[3]), s[1] / fabs(s[3]), s[2] / fabs(s[3])};
        if (is_fixed(fixed, v) && vec3_distance(x, before + 3 * (size_t)v) > 1e-12 * vec3_norm(x)) {
            status = fem_fail(FEM_BAD_INPUT, "aligning: vertex %d is fixed, and so is one that it shall meet elsewhere",
                              v + mesh->file_base);
            goto done;
        }
        if (!is_fixed(fixed, v)) memcpy(mesh->vertices + 3 * (size_t)v, x, sizeof x);
    }
    status = fem_mesh_check(mesh);
    if (status != FEM_OK) fem_fail_prefix(status, "aligning vertices: ");
done:
    if (status != FEM_OK && before) memcpy(mesh->vertices, before, 3 * (size_t)n * sizeof *before);
    fem_free(parent), fem_free(sum), fem_free(before);
    return status;
}
