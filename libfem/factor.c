// Sparse Cholesky factorisation: the one place that calls CHOLMOD. [Chen, Davis, Hager, Rajamanickam 2008]
//
// The matrix arrives as upper block rows; block row i is also block column i of the lower half, so the scalar columns
// that CHOLMOD wants are written in one sweep without any map. The order comes from METIS on the graph of vertices,
// which is a third of the size of the graph of degrees of freedom, and each vertex's free dofs stay together.
#include "libfem/internal.h"

#include <suitesparse/cholmod.h>
#include <stdio.h>
#include <string.h>

enum { MOST_COLUMNS = 32 }; // right-hand sides solved together: more gain nothing and cost memory

struct fem_factor {
    cholmod_common    common;
    cholmod_sparse   *A; // lower half without the fixed dofs, values of the latest factorisation
    cholmod_factor   *L;
    cholmod_dense    *X, *Y, *E, *B; // solution, work space and right-hand sides, kept between solves
    int               n;             // vertices
    long             *dof;           // 3n: column of a degree of freedom, -1 for a fixed one
    long             *column;        // free_dofs: degree of freedom of a column
    long             *permutation;
    bool              factorised;
    fem_factor_report report;
};

void fem_cholmod_version(char text[32]) {
    int version[3] = {0};
    cholmod_l_version(version);
    snprintf(text, 32, "%d.%d.%d", version[0], version[1], version[2]);
}

static fem_status cholmod_failure(const cholmod_common *common, const char *what) {
    if (common->status == CHOLMOD_OUT_OF_MEMORY || common->status == CHOLMOD_TOO_LARGE)
        return fem_fail(FEM_NO_MEMORY, "no memory for the %s of the stiffness matrix", what);
    return fem_fail(FEM_BAD_INPUT, "CHOLMOD refused the %s (status %d)", what, common->status);
}

// Order of the free columns: METIS on the vertices that have a free dof, each followed by its dofs.
static fem_status order_columns(fem_factor *f, const fem_sparse *A) {
    fem_status status = FEM_OK;
    int       *number = fem_alloc((size_t)A->n, sizeof *number); // vertex -> graph vertex or -1
    int       *vertex = fem_alloc((size_t)A->n, sizeof *vertex); // and back
    int       *start = fem_calloc((size_t)A->n + 2, sizeof *start), *adjacent = NULL, *order = NULL;
    int        count = 0;
    if (!number || !vertex || !start) goto no_memory;
    for (int v = 0; v < A->n; v++) {
        const long *d = f->dof + 3 * (size_t)v;
        bool        free_vertex = d[0] >= 0 || d[1] >= 0 || d[2] >= 0;
        number[v] = free_vertex ? count : -1;
        if (free_vertex) vertex[count++] = v;
    }
    // degree of g at start[g + 2], then sums, then filling moves start[g + 1] to its end
    for (int i = 0; i < A->n; i++)
        for (int k = A->row_start[i] + 1; k < A->row_start[i + 1]; k++)
            if (number[i] >= 0 && number[A->column[k]] >= 0) start[number[i] + 2]++, start[number[A->column[k]] + 2]++;
    for (int g = 0; g < count; g++) start[g + 2] += start[g + 1];
    adjacent = fem_alloc((size_t)start[count + 1], sizeof *adjacent);
    order = fem_alloc((size_t)count, sizeof *order);
    if (!adjacent || !order) goto no_memory;
    for (int i = 0; i < A->n; i++)
        for (int k = A->row_start[i] + 1; k < A->row_start[i + 1]; k++) {
            int a = number[i], b = number[A->column[k]];
            if (a >= 0 && b >= 0) adjacent[start[a + 1]++] = b, adjacent[start[b + 1]++] = a;
        }
    FEM_TRY(fem_graph_order(count, start, adjacent, order));
    long next = 0;
    for (int k = 0; k < count; k++)
        for (int c = 0; c < 3; c++) {
            long column = f->dof[3 * (size_t)vertex[order[k]] + (size_t)c];
            if (column >= 0) f->permutation[next++] = column;
        }
    goto done;
no_memory:
    status = fem_fail(FEM_NO_MEMORY, "no memory to order %d vertices", A->n);
done:
    fem_free(number), fem_free(vertex), fem_free(start), fem_free(adjacent), fem_free(order);
    return status;
}

// Columns of the lower half. With values NULL only counts are taken; row indices and values otherwise.
static void fill_columns(const fem_factor *f, const fem_sparse *A, long *start, long *rows, double *values) {
    long next = 0, column = 0;
    for (int i = 0; i < A->n; i++)
        for (int c = 0; c < 3; c++) {
            if (f->dof[3 * (size_t)i + (size_t)c] < 0) continue;
            if (start) start[column] = next;
            column++;
            for (int k = A->row_start[i]; k < A->row_start[i + 1]; k++) {
                const long   *d = f->dof + 3 * (size_t)A->column[k];
                const double *block = A->value + 9 * (size_t)k + 3 * c;
                for (int e = k == A->row_start[i] ? c : 0; e < 3; e++) {
                    if (d[e] < 0) continue;
                    if (rows) rows[next] = d[e];
                    if (values) values[next] = block[e];
                    next++;
                }
            }
        }
    if (start) start[column] = next;
}

static long count_entries(const fem_factor *f, const fem_sparse *A) {
    long entries = 0;
    for (int i = 0; i < A->n; i++)
        for (int c = 0; c < 3; c++) {
            if (f->dof[3 * (size_t)i + (size_t)c] < 0) continue;
            for (int k = A->row_start[i]; k < A->row_start[i + 1]; k++) {
                const long *d = f->dof + 3 * (size_t)A->column[k];
                for (int e = k == A->row_start[i] ? c : 0; e < 3; e++) entries += d[e] >= 0;
            }
        }
    return entries;
}

fem_status fem_factor_create(fem_factor **factor, const fem_sparse *pattern, const unsigned char *fixed) {
    fem_status  status = FEM_OK;
    fem_factor *f = fem_calloc(1, sizeof *f);
    if (!f) return fem_fail(FEM_NO_MEMORY, "no memory for a factor");
    if (!cholmod_l_start(&f->common)) {
        fem_free(f);
        return fem_fail(FEM_NO_MEMORY, "CHOLMOD did not start");
    }
    cholmod_common *cm = &f->common;
    cm->print = 0;
    cm->nmethods = 1;
    cm->method[0].ordering = CHOLMOD_GIVEN;
    cm->postorder = true;
    cm->supernodal = CHOLMOD_SUPERNODAL;
    f->n = pattern->n;
    size_t dofs = 3 * (size_t)pattern->n, columns = 0;
    f->dof = fem_alloc(dofs, sizeof *f->dof);
    f->column = fem_alloc(dofs, sizeof *f->column);
    f->permutation = fem_alloc(dofs, sizeof *f->permutation);
    if (!f->dof || !f->column || !f->permutation) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a factor of %zu unknowns", dofs);
        goto done;
    }
    for (size_t d = 0; d < dofs; d++) {
        bool held = fixed && fixed[d];
        f->dof[d] = held ? -1 : (long)columns;
        if (!held) f->column[columns++] = (long)d;
    }
    if (columns == 0) {
        status = fem_fail(FEM_BAD_INPUT, "every degree of freedom is fixed: nothing is left to solve for");
        goto done;
    }
    f->report.free_dofs = (int)columns;
    double begin = fem_seconds();
    FEM_TRY(order_columns(f, pattern));
    f->report.seconds_order = fem_seconds() - begin;

    begin = fem_seconds();
    long entries = count_entries(f, pattern);
    f->A = cholmod_l_allocate_sparse(columns, columns, (size_t)entries, true, true, -1, CHOLMOD_REAL, cm);
    if (!f->A) {
        status = cholmod_failure(cm, "copy");
        goto done;
    }
    fill_columns(f, pattern, f->A->p, f->A->i, NULL);
    f->L = cholmod_l_analyze_p(f->A, f->permutation, NULL, 0, cm);
    if (!f->L) {
        status = cholmod_failure(cm, "analysis");
        goto done;
    }
    f->report.seconds_analyse = fem_seconds() - begin;
    f->report.entries = cm->lnz;
    f->report.flops = cm->fl;
done:
    if (status == FEM_OK)
        *factor = f;
    else
        fem_factor_destroy(f);
    return status;
}

void fem_factor_destroy(fem_factor *f) {
    if (!f) return;
    cholmod_l_free_sparse(&f->A, &f->common);
    cholmod_l_free_factor(&f->L, &f->common);
    cholmod_l_free_dense(&f->X, &f->common);
    cholmod_l_free_dense(&f->Y, &f->common);
    cholmod_l_free_dense(&f->E, &f->common);
    cholmod_l_free_dense(&f->B, &f->common);
    cholmod_l_finish(&f->common);
    fem_free(f->dof);
    fem_free(f->column);
    fem_free(f->permutation);
    fem_free(f);
}

fem_status fem_factor_factorise(fem_factor *f, const fem_sparse *A) {
    cholmod_common *cm = &f->common;
    double          begin = fem_seconds();
    f->factorised = false;
    fill_columns(f, A, NULL, NULL, f->A->x);
    if (!cholmod_l_factorize(f->A, f->L, cm) && cm->status != CHOLMOD_NOT_POSDEF)
        return cholmod_failure(cm, "factorisation");
    if (cm->status == CHOLMOD_NOT_POSDEF) {
        long dof = f->column[((const long *)f->L->Perm)[f->L->minor]];
        return fem_fail(FEM_INDEFINITE,
                        "the matrix is not positive definite: the pivot of vertex %ld, direction %c, is not positive",
                        dof / 3, "xyz"[dof % 3]);
    }
    // the smallest over the largest squared pivot of a singular matrix is at rounding level
    if (cholmod_l_rcond(f->L, cm) < 1e-15)
        return fem_fail(FEM_INDEFINITE, "the matrix is singular to working precision");
    f->factorised = true;
    f->report.seconds_factorise = fem_seconds() - begin;
    f->report.bytes = (double)cm->memory_inuse;
    return FEM_OK;
}

fem_status fem_factor_solve(fem_factor *f, int columns, const double *B, double *X) {
    cholmod_common *cm = &f->common;
    size_t          n = 3 * (size_t)f->n, m = (size_t)f->report.free_dofs;
    if (!f->factorised) return fem_fail(FEM_BAD_INPUT, "a solve was asked of a factor that holds no factorisation");
    for (int first = 0; first < columns; first += MOST_COLUMNS) {
        size_t count = (size_t)(columns - first < MOST_COLUMNS ? columns - first : MOST_COLUMNS);
        if (!f->B || f->B->ncol != count) {
            cholmod_l_free_dense(&f->B, cm);
            f->B = cholmod_l_allocate_dense(m, count, m, CHOLMOD_REAL, cm);
            if (!f->B) return cholmod_failure(cm, "right-hand sides");
        }
        double *packed = f->B->x;
        for (size_t c = 0; c < count; c++)
            for (size_t i = 0; i < m; i++) packed[c * m + i] = B[((size_t)first + c) * n + (size_t)f->column[i]];
        if (!cholmod_l_solve2(CHOLMOD_A, f->L, f->B, NULL, &f->X, NULL, &f->Y, &f->E, cm))
            return cholmod_failure(cm, "solution");
        const double *solved = f->X->x;
        for (size_t c = 0; c < count; c++) {
            double *x = X + ((size_t)first + c) * n;
            memset(x, 0, n * sizeof *x);
            for (size_t i = 0; i < m; i++) x[f->column[i]] = solved[c * m + i];
        }
    }
    return FEM_OK;
}

fem_factor_report fem_factor_get_report(const fem_factor *factor) { return factor->report; }
