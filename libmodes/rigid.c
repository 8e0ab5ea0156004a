// Rigid motions that the supports of a body allow.
#include "libmodes/internal.h"

#include <string.h>

// The six rigid fields of one component about its centre, rotations scaled by its size so that all six are comparable.
typedef struct rigid_frame {
    double centre[3], size;
} rigid_frame;

static void rigid_row(const rigid_frame *frame, const double *x, int direction, double row[6]) {
    double d[3];
    memset(row, 0, 6 * sizeof *row);
    row[direction] = 1;
    for (int i = 0; i < 3; i++) d[i] = (x[i] - frame->centre[i]) / frame->size;
    // rotation about axis k moves the point by e_k x d
    int j = (direction + 1) % 3, k = (direction + 2) % 3;
    row[3 + j] = d[k];
    row[3 + k] = -d[j];
}

static rigid_frame component_frame(const fem_mesh *mesh, const int *component, int c) {
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (int v = 0; v < mesh->vertex_count; v++)
        for (int i = 0; component[v] == c && i < 3; i++) {
            low[i] = fmin(low[i], mesh->vertices[3 * (size_t)v + (size_t)i]);
            high[i] = fmax(high[i], mesh->vertices[3 * (size_t)v + (size_t)i]);
        }
    rigid_frame frame = {.size = vec3_distance(low, high)};
    for (int i = 0; i < 3; i++) frame.centre[i] = 0.5 * (low[i] + high[i]);
    return frame;
}

// Combinations of the six fields that vanish on the held degrees of freedom: the null space of their rows' Gram matrix.
static fem_status allowed_motions(const modes_problem *p, const unsigned char *fixed, const int *component, int c,
                                  const rigid_frame *frame, double motions[36], int *count) {
    double     gram[36] = {0}, values[6], row[6];
    fem_status status = FEM_OK;
    for (int v = 0; v < p->mesh->vertex_count; v++) {
        if (component[v] != c) continue;
        for (int i = 0; i < 3; i++) {
            if (!fixed[3 * (size_t)v + (size_t)i]) continue;
            rigid_row(frame, p->mesh->vertices + 3 * (size_t)v, i, row);
            for (int a = 0; a < 36; a++) gram[a] += row[a / 6] * row[a % 6];
        }
    }
    FEM_TRY(dense_symmetric_eigen(6, gram, values));
    *count = 0;
    for (int a = 0; a < 6; a++)
        if (values[a] <= 1e-14 * values[5]) memcpy(motions + 6 * (*count)++, gram + 6 * a, 6 * sizeof *motions);
done:
    return status;
}

// R <- R L^-T with R^T M R = L L^T
static fem_status mass_orthonormalise(const fem_sparse *M, int n, int count, double *R) {
    fem_status status = FEM_OK;
    double     gram[36];
    double    *MR = fem_alloc((size_t)n * (size_t)count, sizeof *MR);
    if (!MR) return fem_fail(FEM_NO_MEMORY, "no memory for %d rigid motions", count);
    fem_sparse_multiply(M, count, R, MR);
    dense_gemm(true, false, count, count, n, 1, R, MR, 0, gram);
    FEM_TRY(dense_cholesky(count, gram));
    for (int j = 0; j < count; j++) {
        for (int k = 0; k < j; k++)
            dense_axpy(n, -gram[k * count + j], R + (size_t)k * (size_t)n, R + (size_t)j * (size_t)n);
        dense_scale(n, 1 / gram[j * count + j], R + (size_t)j * (size_t)n);
    }
done:
    fem_free(MR);
    return status;
}

fem_status modes_rigid_of_components(const modes_problem *p, const unsigned char *fixed, const int *component,
                                     int components, double **result, int *result_count) {
    fem_status status = FEM_OK;
    double    *R = NULL, motions[36], row[6];
    size_t     n = 3 * (size_t)p->mesh->vertex_count, capacity = 0;
    int        total = 0, count = 0;
    for (int c = 0; c < components; c++) {
        bool empty = true; // joined with another
        for (int v = 0; v < p->mesh->vertex_count && empty; v++) empty = component[v] != c;
        if (empty) continue;
        rigid_frame frame = component_frame(p->mesh, component, c);
        FEM_TRY(allowed_motions(p, fixed, component, c, &frame, motions, &count));
        if (count == 0) continue;
        FEM_TRY(fem_grow((void **)&R, &capacity, (size_t)(total + count) * n, sizeof *R));
        double *added = R + (size_t)total * n;
        memset(added, 0, (size_t)count * n * sizeof *R);
        for (int v = 0; v < p->mesh->vertex_count; v++)
            for (int i = 0; component[v] == c && i < 3; i++) {
                if (fixed[3 * (size_t)v + (size_t)i]) continue; // exactly zero there
                rigid_row(&frame, p->mesh->vertices + 3 * (size_t)v, i, row);
                for (int m = 0; m < count; m++)
                    for (int a = 0; a < 6; a++)
                        added[(size_t)m * n + 3 * (size_t)v + (size_t)i] += motions[6 * m + a] * row[a];
            }
        FEM_TRY(mass_orthonormalise(p->M, (int)n, count, added));
        total += count;
    }
    *result = R;
    *result_count = total;
    R = NULL;
done:
    fem_free(R);
    return status;
}

fem_status modes_rigid(const modes_problem *p, double **R, int *count) {
    fem_status     status = FEM_OK;
    int            components = 0, *component = fem_alloc((size_t)p->mesh->vertex_count, sizeof *component);
    unsigned char *fixed = fem_calloc(3 * (size_t)p->mesh->vertex_count, 1);
    if (!component || !fixed) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the components of %d vertices", p->mesh->vertex_count);
        goto done;
    }
    if (p->fixed) memcpy(fixed, p->fixed, 3 * (size_t)p->mesh->vertex_count);
    FEM_TRY(fem_mesh_components(p->mesh, component, &components));
    FEM_TRY(modes_rigid_of_components(p, fixed, component, components, R, count));
done:
    fem_free(component);
    fem_free(fixed);
    return status;
}
