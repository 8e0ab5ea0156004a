// A level of the multigrid solver: the matrix scaled by its diagonal blocks, all rows whole, and its largest
// eigenvalue.
#include "libfem/amg_internal.h"

#include <limits.h>
#include <string.h>

void amg_problem_destroy(amg_problem *problem) {
    if (!problem->borrowed) fem_sparse_destroy(&problem->A);
    fem_free(problem->fixed);
    fem_free(problem->B);
    fem_free(problem->Z);
    *problem = (amg_problem){0};
}

void amg_level_destroy(amg_level *level) {
    amg_matrix   *A = &level->A;
    amg_transfer *P = &level->P;
    fem_free(A->start), fem_free(A->column), fem_free(A->value), fem_free(A->exact);
    fem_free(P->start), fem_free(P->node), fem_free(P->value), fem_free(P->exact);
    fem_free(P->back_start), fem_free(P->back_row), fem_free(P->back_entry);
    fem_free(level->scale);
    fem_free(level->r), fem_free(level->d), fem_free(level->e), fem_free(level->x);
    *level = (amg_level){0};
}

// D = L L^T of a diagonal block without its fixed dofs, which become rows of the identity. inverse = L^-1.
// A pivot below `smallest` is a failure, or with `drop` makes its dof a fixed one.
static bool factor_block(const double *D, unsigned char *fixed, double smallest, bool drop, double L[9],
                         double inverse[9]) {
    mat3_identity(L);
    for (int j = 0; j < 3; j++) {
        if (fixed[j]) continue;
        double pivot = D[4 * j];
        for (int k = 0; k < j; k++) pivot -= L[3 * j + k] * L[3 * j + k];
        if (!(pivot > smallest)) {
            if (!drop) return false;
            fixed[j] = 1;
            for (int k = 0; k < j; k++) L[3 * j + k] = 0;
            continue;
        }
        L[4 * j] = sqrt(pivot);
        for (int i = j + 1; i < 3; i++) {
            if (fixed[i]) continue;
            double sum = D[3 * i + j];
            for (int k = 0; k < j; k++) sum -= L[3 * i + k] * L[3 * j + k];
            L[3 * i + j] = sum / L[4 * j];
        }
    }
    mat3_inverse(inverse, L);
    return true;
}

// B <- L^T B, Z <- L^T Z: a null vector of A is L^-T times one of the scaled matrix.
static void scale_near_null(amg_problem *p, int i, const double L[9]) {
    double y[3];
    for (int column = 0; column < RIGID; column++) {
        double *b = p->B + 18 * (size_t)i + column;
        for (int c = 0; c < 3; c++) y[c] = L[c] * b[0] + L[3 + c] * b[RIGID] + L[6 + c] * b[2 * RIGID];
        for (int c = 0; c < 3; c++) b[c * RIGID] = p->fixed[3 * i + c] ? 0 : y[c];
    }
    for (int column = 0; column < p->null_count; column++) {
        double *z = p->Z + 3 * ((size_t)column * (size_t)p->A.n + (size_t)i);
        for (int c = 0; c < 3; c++) y[c] = L[c] * z[0] + L[3 + c] * z[1] + L[6 + c] * z[2];
        for (int c = 0; c < 3; c++) z[c] = p->fixed[3 * i + c] ? 0 : y[c];
    }
}

// out = L_i^-1 A_ij L_j^-T without fixed rows and columns
static void scale_block(double out[9], const double *block, const double *left, const double *right,
                        const unsigned char *fixed_i, const unsigned char *fixed_j) {
    double clean[9], half[9];
    for (int e = 0; e < 9; e++) clean[e] = fixed_i[e / 3] || fixed_j[e % 3] ? 0 : block[e];
    mat3_mul(half, left, clean);
    mat3_mul_nt(out, half, right);
}

static bool whole_block_fixed(const unsigned char *fixed, int i) {
    return fixed[3 * i] && fixed[3 * i + 1] && fixed[3 * i + 2];
}

// Rows of the scaled matrix: going through the upper half in order, row j first receives its blocks left of the
// diagonal, ascending, then its own.
static fem_status fill_rows(amg_matrix *M, const fem_sparse *A, const unsigned char *fixed, const double *inverse) {
    int n = A->n;
    *M = (amg_matrix){.n = n};
    M->start = fem_calloc((size_t)n + 2, sizeof *M->start);
    if (!M->start) goto no_memory;
    size_t blocks = (size_t)n;
    for (int i = 0; i < n; i++)
        for (int k = A->row_start[i] + 1; k < A->row_start[i + 1]; k++)
            blocks += whole_block_fixed(fixed, i) || whole_block_fixed(fixed, A->column[k]) ? 0 : 2;
    if (blocks > INT_MAX) return fem_fail(FEM_BAD_INPUT, "a matrix of %zu blocks is too large for multigrid", blocks);
    for (int i = 0; i < n; i++) {
        M->start[i + 2]++;
        for (int k = A->row_start[i] + 1; k < A->row_start[i + 1]; k++)
            if (!whole_block_fixed(fixed, i) && !whole_block_fixed(fixed, A->column[k]))
                M->start[i + 2]++, M->start[A->column[k] + 2]++;
    }
    for (int i = 0; i < n; i++) M->start[i + 2] += M->start[i + 1];
    M->column = fem_alloc(blocks, sizeof *M->column);
    M->exact = fem_alloc(9 * blocks, sizeof *M->exact);
    M->value = fem_alloc(9 * blocks, sizeof *M->value);
    if (!M->column || !M->exact || !M->value) goto no_memory;
    for (int i = 0; i < n; i++) {
        int own = M->start[i + 1]++;
        M->column[own] = i;
        mat3_identity(M->exact + 9 * (size_t)own);
        for (int k = A->row_start[i] + 1; k < A->row_start[i + 1]; k++) {
            int j = A->column[k];
            if (whole_block_fixed(fixed, i) || whole_block_fixed(fixed, j)) continue;
            int     here = M->start[i + 1]++, there = M->start[j + 1]++;
            double *a = M->exact + 9 * (size_t)here, *b = M->exact + 9 * (size_t)there;
            M->column[here] = j, M->column[there] = i;
            scale_block(a, A->value + 9 * (size_t)k, inverse + 9 * (size_t)i, inverse + 9 * (size_t)j, fixed + 3 * i,
                        fixed + 3 * j);
            for (int e = 0; e < 9; e++) b[e] = a[3 * (e % 3) + e / 3];
        }
    }
    for (size_t e = 0; e < 9 * blocks; e++) M->value[e] = (float)M->exact[e];
    return FEM_OK;
no_memory:
    return fem_fail(FEM_NO_MEMORY, "no memory for a multigrid matrix of %d block rows", n);
}

fem_status amg_scale(amg_level *level, amg_problem *p, bool finest) {
    fem_status        status = FEM_OK;
    const fem_sparse *A = &p->A;
    int               n = A->n;
    double           *inverse = fem_alloc(9 * (size_t)n, sizeof *inverse), L[9];
    level->scale = fem_alloc(9 * (size_t)n, sizeof *level->scale);
    if (!inverse || !level->scale) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a multigrid level of %d block rows", n);
        goto done;
    }
    for (int i = 0; i < n; i++) {
        const double *D = A->value + 9 * (size_t)A->row_start[i];
        double       *inv = inverse + 9 * (size_t)i, *scale = level->scale + 9 * (size_t)i;
        // coarse matrices come from a unit diagonal: what is at rounding level there is a null vector of its own
        double smallest = finest ? 1e-14 * fmax(D[0], fmax(D[4], D[8])) : 1e-12;
        if (!factor_block(D, p->fixed + 3 * i, smallest, !finest, L, inv)) {
            status = fem_fail(FEM_INDEFINITE,
                              "the matrix is not positive definite: the diagonal block of vertex %d is not", i);
            goto done;
        }
        for (int e = 0; e < 9; e++) scale[e] = inv[3 * (e % 3) + e / 3];
        scale_near_null(p, i, L);
    }
    FEM_TRY(fill_rows(&level->A, A, p->fixed, inverse));
done:
    fem_free(inverse);
    return status;
}

// The largest eigenvalue from below by the power method on eight vectors, with a margin that Chebyshev smoothing needs:
// beyond its interval it would amplify.
fem_status amg_radius(amg_level *level, double *sums) {
    size_t   count = 3 * LANES * (size_t)level->A.n;
    unsigned state = 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        level->d[i] = (float)(state >> 8) / 8388608.0f - 1;
    }
    int    chunks = amg_chunks(level->A.n, AMG_ROWS);
    double largest = 1, total[LANES];
    for (int step = 0; step < 12; step++) {
        amg_run(&(amg_work){.operation = AMG_POWER,
                            .count = level->A.n,
                            .step = AMG_ROWS,
                            .A = &level->A,
                            .d = level->d,
                            .e = level->e,
                            .sums = sums});
        memset(total, 0, sizeof total);
        for (int k = 0; k < chunks * LANES; k++) total[k % LANES] += sums[k];
        for (int c = 0; c < LANES; c++) {
            if (!isfinite(total[c])) return fem_fail(FEM_BAD_INPUT, "the matrix has entries that are not finite");
            if (step > 0) largest = fmax(largest, sqrt(total[c]));
            total[c] = total[c] > 0 ? 1 / sqrt(total[c]) : 0;
        }
        for (size_t i = 0; i < count; i++) level->d[i] = (float)total[i % LANES] * level->e[i];
    }
    level->radius = 1.1 * largest;
    return FEM_OK;
}
