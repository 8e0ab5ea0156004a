// Rigid motions that the supports of a body allow.
#include "libmodes/internal.h"

#include <string.h>

// The six rigid fields of one component about its centre, rotations scaled by its size so that all six are comparable.
typedef struct rigid_frame {
    double centre[3], size;
} rigid_frame;

// One component of the mesh. `motions` gathers the Gram matrix of the rigid fields on what is held, then holds `count`
// combinations of the fields that the supports allow, six numbers each.
typedef struct rigid_piece {
    rigid_frame frame;
    double      low[3], high[3], motions[36];
    int         count;
} rigid_piece;

// A body in very many loose pieces has very many rigid motions, each as long as the body.
enum { MOST_RIGID = 600 };

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

static void component_frames(const fem_mesh *mesh, const int *component, int components, rigid_piece *pieces) {
    for (int c = 0; c < components; c++)
        for (int i = 0; i < 3; i++) pieces[c].low[i] = INFINITY, pieces[c].high[i] = -INFINITY;
    for (int v = 0; v < mesh->vertex_count; v++) {
        if (component[v] < 0) continue;
        rigid_piece *p = pieces + component[v];
        for (int i = 0; i < 3; i++) {
            p->low[i] = fmin(p->low[i], mesh->vertices[3 * (size_t)v + (size_t)i]);
            p->high[i] = fmax(p->high[i], mesh->vertices[3 * (size_t)v + (size_t)i]);
        }
    }
    for (int c = 0; c < components; c++) {
        pieces[c].frame.size = vec3_distance(pieces[c].low, pieces[c].high);
        for (int i = 0; i < 3; i++) pieces[c].frame.centre[i] = 0.5 * (pieces[c].low[i] + pieces[c].high[i]);
    }
}

// Combinations of the six fields that vanish on the held degrees of freedom: the null space of their rows' Gram matrix.
static fem_status allowed_motions(const modes_problem *p, const unsigned char *fixed, const int *component,
                                  int components, rigid_piece *pieces) {
    fem_status status = FEM_OK;
    double     values[6], row[6];
    for (int v = 0; v < p->mesh->vertex_count; v++) {
        if (component[v] < 0) continue;
        rigid_piece *piece = pieces + component[v];
        for (int i = 0; i < 3; i++) {
            if (!fixed[3 * (size_t)v + (size_t)i]) continue;
            rigid_row(&piece->frame, p->mesh->vertices + 3 * (size_t)v, i, row);
            for (int a = 0; a < 36; a++) piece->motions[a] += row[a / 6] * row[a % 6];
        }
    }
    for (int c = 0; c < components; c++) {
        double *motions = pieces[c].motions;
        if (pieces[c].low[0] > pieces[c].high[0]) continue; // joined with another: it has no vertices
        FEM_TRY(dense_symmetric_eigen(6, motions, values));
        for (int a = 0; a < 6; a++)
            if (values[a] <= 1e-14 * values[5])
                memmove(motions + 6 * pieces[c].count++, motions + 6 * a, 6 * sizeof *motions);
    }
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

// The motions of one piece, mass-orthonormal, into `added` (n x piece->count).
static fem_status fill_motions(const modes_problem *p, const unsigned char *fixed, const int *component, int c,
                               const rigid_piece *piece, double *added) {
    size_t n = 3 * (size_t)p->mesh->vertex_count;
    double row[6];
    memset(added, 0, (size_t)piece->count * n * sizeof *added);
    for (int v = 0; v < p->mesh->vertex_count; v++)
        for (int i = 0; component[v] == c && i < 3; i++) {
            if (fixed[3 * (size_t)v + (size_t)i]) continue; // exactly zero there
            rigid_row(&piece->frame, p->mesh->vertices + 3 * (size_t)v, i, row);
            for (int m = 0; m < piece->count; m++)
                for (int a = 0; a < 6; a++)
                    added[(size_t)m * n + 3 * (size_t)v + (size_t)i] += piece->motions[6 * m + a] * row[a];
        }
    return mass_orthonormalise(p->M, (int)n, piece->count, added);
}

fem_status modes_rigid_of_components(const modes_problem *p, const unsigned char *fixed, const int *component,
                                     int components, double **result, int *result_count) {
    fem_status   status = FEM_OK;
    double      *R = NULL;
    size_t       n = 3 * (size_t)p->mesh->vertex_count;
    int          total = 0;
    rigid_piece *pieces = fem_calloc((size_t)components, sizeof *pieces);
    if (!pieces) return fem_fail(FEM_NO_MEMORY, "no memory for %d components", components);
    component_frames(p->mesh, component, components, pieces);
    FEM_TRY(allowed_motions(p, fixed, component, components, pieces));
    for (int c = 0; c < components; c++) {
        total += pieces[c].count;
        if (total <= MOST_RIGID) continue;
        status = fem_fail(FEM_BAD_INPUT,
                          "the mesh falls into %d pieces that are not joined, and the supports leave more than %d "
                          "rigid motions; join the pieces or hold them",
                          components, MOST_RIGID);
        goto done;
    }
    if (total > 0) {
        R = fem_alloc((size_t)total * n, sizeof *R);
        if (!R) {
            status = fem_fail(FEM_NO_MEMORY, "no memory for %d rigid motions", total);
            goto done;
        }
    }
    for (int c = 0, first = 0; c < components; first += pieces[c++].count)
        if (pieces[c].count > 0) FEM_TRY(fill_motions(p, fixed, component, c, pieces + c, R + (size_t)first * n));
    *result = R;
    *result_count = total;
    R = NULL;
done:
    fem_free(pieces);
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
