// Sparse Cholesky factorisation: the one place that calls CHOLMOD. [Chen, Davis, Hager, Rajamanickam 2008]
//
// The matrix arrives as upper block rows; block row i is also block column i of the lower half, so the scalar columns
// that CHOLMOD wants are written in one sweep without any map. The order comes from METIS on the graph of vertices,
// which is a third of the size of the graph of degrees of freedom, and each vertex's free dofs stay together.
// Several right-hand sides are solved by kernel_supernodes.c on CHOLMOD's factor; CHOLMOD's own solve serves one,
// and is the plain version.
#include "libfem/factor_internal.h"

#include <suitesparse/cholmod.h>
#include <stdio.h>
#include <string.h>

enum {
    PLAIN_COLUMNS = 32, // right-hand sides that CHOLMOD solves together: more gain nothing and cost memory
    FEW_COLUMNS = 1,    // so many are left to CHOLMOD: seven of eight lanes of the kernel would be empty
};

struct fem_factor {
    cholmod_common    common;
    cholmod_sparse   *A; // lower half without the fixed dofs, values of the latest factorisation
    cholmod_factor   *L;
    cholmod_dense    *X, *Y, *E, *B; // solution, work space and right-hand sides, kept between solves
    int               n;             // vertices
    long             *dof;           // 3n: column of a degree of freedom, -1 for a fixed one
    long             *column;        // free_dofs: degree of freedom of a column
    long             *permutation;
    long             *order;      // free_dofs: degree of freedom of a row of L
    long              tallest;    // most rows of a supernode
    double           *work;       // of the block solve, kept between solves
    size_t            work_count; // its length
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
    f->order = fem_alloc(dofs, sizeof *f->order);
    if (!f->dof || !f->column || !f->permutation || !f->order) {
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
    for (size_t i = 0; i < columns; i++) f->order[i] = f->column[((const long *)f->L->Perm)[i]];
    const long *row_start = f->L->pi;
    for (size_t s = 0; s < f->L->nsuper; s++)
        if (row_start[s + 1] - row_start[s] > f->tallest) f->tallest = row_start[s + 1] - row_start[s];
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
    fem_free(f->order);
    fem_free(f->work);
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

// ---- solving -------------------------------------------------------------------------------------------------------

static fem_status check_factorised(const fem_factor *f) {
    if (f->factorised) return FEM_OK;
    return fem_fail(FEM_BAD_INPUT, "a solve was asked of a factor that holds no factorisation");
}

fem_status fem_factor_solve_plain(fem_factor *f, int columns, const double *B, double *X) {
    cholmod_common *cm = &f->common;
    size_t          n = 3 * (size_t)f->n, m = (size_t)f->report.free_dofs;
    fem_status      status = check_factorised(f);
    if (status != FEM_OK) return status;
    for (int first = 0; first < columns; first += PLAIN_COLUMNS) {
        size_t count = (size_t)(columns - first < PLAIN_COLUMNS ? columns - first : PLAIN_COLUMNS);
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

supernode_kernel fem_supernode_kernel(void) {
#if defined(__x86_64__)
    fem_simd level = fem_simd_level();
    if (level == FEM_SIMD_AVX512) return fem_supernode_solve_avx512;
    if (level == FEM_SIMD_AVX2) return fem_supernode_solve_avx2;
#endif
    return fem_supernode_solve_baseline;
}

fem_supernodes fem_factor_supernodes(const fem_factor *f) {
    return (fem_supernodes){.count = (long)f->L->nsuper,
                            .first = f->L->super,
                            .row_start = f->L->pi,
                            .value_start = f->L->px,
                            .row = f->L->s,
                            .dof = f->order,
                            .value = f->L->x};
}

// Doubles of work space for a block of so many lanes: the right-hand sides in L's order, and a supernode's rows.
static size_t block_work(const fem_factor *f, int lanes) {
    return (size_t)lanes * ((size_t)f->report.free_dofs + (size_t)f->tallest);
}

static fem_status reserve_work(fem_factor *f, size_t count) {
    if (count <= f->work_count) return FEM_OK;
    fem_free(f->work);
    f->work = fem_alloc(count, sizeof *f->work);
    f->work_count = f->work ? count : 0;
    if (!f->work) return fem_fail(FEM_NO_MEMORY, "no memory for right-hand sides of %d unknowns", f->report.free_dofs);
    return FEM_OK;
}

typedef struct block_solve {
    fem_factor      *f;
    fem_supernodes   L;
    supernode_kernel kernel;
    factor_half      halves;
    int              columns, width; // in all, and of a block
    const double    *B;              // columns of length 3n, behind the forward half free_dofs in L's order
    double          *X;              // likewise, before the backward half
} block_solve;

// One block: its columns become rows in L's order, unused lanes are zero.
static void solve_block(void *context, int block, int worker) {
    const block_solve *w = context;
    const fem_factor  *f = w->f;
    int                first = block * w->width, rest = w->columns - first;
    bool               begins = w->halves & FACTOR_FORWARD, ends = w->halves & FACTOR_BACKWARD;
    size_t m = (size_t)f->report.free_dofs, in = begins ? 3 * (size_t)f->n : m, out = ends ? 3 * (size_t)f->n : m,
           count = (size_t)(rest < w->width ? rest : w->width);
    int     vectors = ((int)count + FACTOR_LANES - 1) / FACTOR_LANES;
    size_t  lanes = (size_t)vectors * FACTOR_LANES;
    double *rows = f->work + (size_t)worker * block_work(f, w->width);
    for (size_t i = 0; i < m; i++) {
        const double *b = w->B + (size_t)first * in + (begins ? (size_t)f->order[i] : i);
        for (size_t c = 0; c < lanes; c++) rows[i * lanes + c] = c < count ? b[c * in] : 0;
    }
    w->kernel(&w->L, w->halves, vectors, rows, rows + m * lanes);
    for (size_t c = 0; c < count && ends; c++) memset(w->X + ((size_t)first + c) * out, 0, out * sizeof *w->X);
    for (size_t i = 0; i < m; i++) {
        double *x = w->X + (size_t)first * out + (ends ? (size_t)f->order[i] : i);
        for (size_t c = 0; c < count; c++) x[c * out] = rows[i * lanes + c];
    }
}

// Blocks as wide as the kernel takes them, or narrower when that gives each thread one. A column's result does not
// depend on its block.
static fem_status solve_blocks(fem_factor *f, factor_half halves, int columns, const double *B, double *X) {
    fem_status status = check_factorised(f);
    if (status != FEM_OK) return status;
    int threads = fem_threads(), vectors = (columns + FACTOR_LANES - 1) / FACTOR_LANES;
    int each = (vectors + threads - 1) / threads;
    if (each > FACTOR_VECTORS) each = FACTOR_VECTORS;
    if (each < 1) each = 1;
    block_solve work = {.f = f,
                        .L = fem_factor_supernodes(f),
                        .kernel = fem_supernode_kernel(),
                        .halves = halves,
                        .columns = columns,
                        .width = each * FACTOR_LANES,
                        .B = B,
                        .X = X};
    int         blocks = (vectors + each - 1) / each;
    status = reserve_work(f, (size_t)(blocks < threads ? blocks : threads) * block_work(f, work.width));
    if (status == FEM_OK) fem_parallel_for(blocks, solve_block, &work);
    return status;
}

fem_status fem_factor_solve(fem_factor *f, int columns, const double *B, double *X) {
    if (columns <= FEW_COLUMNS) return fem_factor_solve_plain(f, columns, B, X);
    return solve_blocks(f, FACTOR_BOTH, columns, B, X);
}

fem_status fem_factor_forward(fem_factor *f, int columns, const double *B, double *Y) {
    return solve_blocks(f, FACTOR_FORWARD, columns, B, Y);
}

fem_status fem_factor_backward(fem_factor *f, int columns, const double *Y, double *X) {
    return solve_blocks(f, FACTOR_BACKWARD, columns, Y, X);
}

long fem_factor_tallest(const fem_factor *f) { return f->tallest; }
int  fem_factor_vertices(const fem_factor *f) { return f->n; }

fem_status fem_factor_solve_lanes(fem_factor *f, double *X) {
    fem_status status = check_factorised(f);
    if (status == FEM_OK) status = reserve_work(f, block_work(f, FACTOR_LANES));
    if (status != FEM_OK) return status;
    size_t         m = (size_t)f->report.free_dofs, bytes = FACTOR_LANES * sizeof *X;
    double        *rows = f->work;
    fem_supernodes L = fem_factor_supernodes(f);
    for (size_t i = 0; i < m; i++) memcpy(rows + i * FACTOR_LANES, X + f->order[i] * FACTOR_LANES, bytes);
    fem_supernode_kernel()(&L, FACTOR_BOTH, 1, rows, rows + m * FACTOR_LANES);
    memset(X, 0, 3 * (size_t)f->n * bytes);
    for (size_t i = 0; i < m; i++) memcpy(X + f->order[i] * FACTOR_LANES, rows + i * FACTOR_LANES, bytes);
    return FEM_OK;
}

fem_factor_report fem_factor_get_report(const fem_factor *factor) { return factor->report; }

// Gram-Schmidt on the rows of R, each time taking the row that is farthest from those taken before. For a free body
// these are three far-apart vertices (3-2-1).
fem_status fem_factor_hold(int n, int r, const double *R, unsigned char *held) {
    double *rows = fem_alloc((size_t)n * (size_t)r, sizeof *rows); // row-major copy of R, what is left of each row
    if (!rows) return fem_fail(FEM_NO_MEMORY, "no memory to choose supports for %d rigid motions", r);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < r; j++) rows[(size_t)i * (size_t)r + (size_t)j] = R[(size_t)j * (size_t)n + (size_t)i];
    for (int step = 0; step < r; step++) {
        int    best = -1;
        double largest = 0;
        for (int i = 0; i < n; i++) {
            double square = dense_dot(r, rows + (size_t)i * (size_t)r, rows + (size_t)i * (size_t)r);
            if (!held[i] && square > largest) largest = square, best = i;
        }
        if (best < 0) break; // cannot happen: the columns of R are independent
        held[best] = 1;
        double *row = rows + (size_t)best * (size_t)r;
        dense_scale(r, 1 / sqrt(largest), row);
        for (int i = 0; i < n; i++) {
            double *other = rows + (size_t)i * (size_t)r;
            if (i != best) dense_axpy(r, -dense_dot(r, row, other), row, other);
        }
        memset(row, 0, (size_t)r * sizeof *row);
    }
    fem_free(rows);
    return FEM_OK;
}
