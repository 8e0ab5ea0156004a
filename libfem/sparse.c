// Symmetric matrices of 3x3 blocks: pattern from the mesh, sums, products.
#include "libfem/internal.h"

#include <stdlib.h>
#include <string.h>

void fem_sparse_destroy(fem_sparse *A) {
    if (!A) return;
    fem_free(A->row_start);
    fem_free(A->column);
    fem_free(A->value);
    *A = (fem_sparse){0};
}

static fem_status allocate(fem_sparse *A, int n, int blocks) {
    *A = (fem_sparse){.n = n, .blocks = blocks};
    A->row_start = fem_alloc((size_t)n + 1, sizeof *A->row_start);
    A->column = fem_alloc((size_t)blocks, sizeof *A->column);
    A->value = fem_calloc(9 * (size_t)blocks, sizeof *A->value);
    if (!A->row_start || !A->column || !A->value) {
        fem_sparse_destroy(A);
        return fem_fail(FEM_NO_MEMORY, "no memory for a sparse matrix of %d x %d blocks with %d stored", n, n, blocks);
    }
    return FEM_OK;
}

fem_status fem_sparse_from_mesh(fem_sparse *A, const fem_mesh *mesh) {
    fem_status status = FEM_OK;
    int       *start = NULL, *adjacent = NULL, n = mesh->vertex_count;
    fem_sparse B = {0};
    FEM_TRY(fem_mesh_vertex_graph(mesh, &start, &adjacent));
    FEM_TRY(allocate(&B, n, n + start[n] / 2)); // the graph is symmetric and has no loops
    int k = 0;
    for (int i = 0; i < n; i++) {
        B.row_start[i] = k;
        B.column[k++] = i;
        for (int j = start[i]; j < start[i + 1]; j++)
            if (adjacent[j] > i) B.column[k++] = adjacent[j];
    }
    B.row_start[n] = k;
    fem_sparse_destroy(A);
    *A = B;
done:
    fem_free(start);
    fem_free(adjacent);
    return status;
}

fem_status fem_sparse_copy(fem_sparse *A, const fem_sparse *B) {
    fem_sparse copy;
    fem_status status = allocate(&copy, B->n, B->blocks);
    if (status != FEM_OK) return status;
    memcpy(copy.row_start, B->row_start, ((size_t)B->n + 1) * sizeof *B->row_start);
    memcpy(copy.column, B->column, (size_t)B->blocks * sizeof *B->column);
    if (B->value) memcpy(copy.value, B->value, 9 * (size_t)B->blocks * sizeof *B->value);
    fem_sparse_destroy(A);
    *A = copy;
    return FEM_OK;
}

void fem_sparse_zero(fem_sparse *A) { memset(A->value, 0, 9 * (size_t)A->blocks * sizeof *A->value); }

void fem_sparse_scale(fem_sparse *A, double alpha) {
    for (size_t i = 0; i < 9 * (size_t)A->blocks; i++) A->value[i] *= alpha;
}

void fem_sparse_axpy(fem_sparse *A, double alpha, const fem_sparse *B) {
    for (size_t i = 0; i < 9 * (size_t)A->blocks; i++) A->value[i] += alpha * B->value[i];
}

// Each stored block (i, j) serves twice: y_i += A_ij x_j and, off the diagonal, y_j += A_ij^T x_i.
static void multiply_one(const fem_sparse *A, const double *x, double *y) {
    memset(y, 0, 3 * (size_t)A->n * sizeof *y);
    for (int i = 0; i < A->n; i++) {
        const double *a = A->value + 9 * (size_t)A->row_start[i], *xi = x + 3 * (size_t)i;
        double        y0 = 0, y1 = 0, y2 = 0;
        for (int k = A->row_start[i]; k < A->row_start[i + 1]; k++, a += 9) {
            size_t        j = 3 * (size_t)A->column[k];
            const double *xj = x + j;
            y0 += a[0] * xj[0] + a[1] * xj[1] + a[2] * xj[2];
            y1 += a[3] * xj[0] + a[4] * xj[1] + a[5] * xj[2];
            y2 += a[6] * xj[0] + a[7] * xj[1] + a[8] * xj[2];
            if (k > A->row_start[i]) {
                y[j] += a[0] * xi[0] + a[3] * xi[1] + a[6] * xi[2];
                y[j + 1] += a[1] * xi[0] + a[4] * xi[1] + a[7] * xi[2];
                y[j + 2] += a[2] * xi[0] + a[5] * xi[1] + a[8] * xi[2];
            }
        }
        double *yi = y + 3 * (size_t)i;
        yi[0] += y0, yi[1] += y1, yi[2] += y2;
    }
}

// Eight columns side by side (kernel_sparse.c), as rows of eight lanes that are copied to and fro. Without memory for
// the copies columns are multiplied one by one.
enum { LANES = 8 };

typedef struct multiply_work {
    const fem_sparse *A;
    int               columns;
    const double     *X;
    double           *Y, *rows; // rows: per worker, of X and of Y
    void (*kernel)(const fem_sparse *A, const double *X, double *Y);
} multiply_work;

static void multiply_task(void *context, int column, int worker) {
    multiply_work *w = context;
    (void)worker;
    size_t offset = 3 * (size_t)w->A->n * (size_t)column;
    multiply_one(w->A, w->X + offset, w->Y + offset);
}

static void lanes_task(void *context, int panel, int worker) {
    multiply_work *w = context;
    size_t         n = 3 * (size_t)w->A->n, first = LANES * (size_t)panel, rest = (size_t)w->columns - first;
    size_t         count = rest < LANES ? rest : LANES;
    double        *x = w->rows + 2 * LANES * n * (size_t)worker, *y = x + LANES * n;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < LANES; c++) x[LANES * i + c] = c < count ? w->X[n * (first + c) + i] : 0;
    memset(y, 0, LANES * n * sizeof *y);
    w->kernel(w->A, x, y);
    for (size_t c = 0; c < count; c++)
        for (size_t i = 0; i < n; i++) w->Y[n * (first + c) + i] = y[LANES * i + c];
}

void fem_sparse_multiply(const fem_sparse *A, int columns, const double *X, double *Y) {
    multiply_work work = {.A = A, .columns = columns, .X = X, .Y = Y, .kernel = fem_sparse_lanes_baseline};
    int           panels = (columns + LANES - 1) / LANES, workers = fem_threads() < panels ? fem_threads() : panels;
#if defined(__x86_64__)
    fem_simd level = fem_simd_level();
    if (level == FEM_SIMD_AVX2) work.kernel = fem_sparse_lanes_avx2;
    if (level == FEM_SIMD_AVX512) work.kernel = fem_sparse_lanes_avx512;
#endif
    if (columns > 1) work.rows = fem_alloc(6 * LANES * (size_t)A->n, (size_t)workers * sizeof *work.rows);
    if (work.rows)
        fem_parallel_for(panels, lanes_task, &work);
    else
        fem_parallel_for(columns, multiply_task, &work);
    fem_free(work.rows);
}

double fem_sparse_norm(const fem_sparse *A) {
    double sum = 0;
    for (int i = 0; i < A->n; i++)
        for (int k = A->row_start[i]; k < A->row_start[i + 1]; k++) {
            const double *a = A->value + 9 * (size_t)k;
            double        square = 0;
            for (int e = 0; e < 9; e++) square += a[e] * a[e];
            sum += k == A->row_start[i] ? square : 2 * square;
        }
    return sqrt(sum);
}

int fem_sparse_find(const fem_sparse *A, int row, int column) {
    int low = A->row_start[row], high = A->row_start[row + 1];
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (A->column[middle] < column)
            low = middle + 1;
        else
            high = middle;
    }
    return low < A->row_start[row + 1] && A->column[low] == column ? low : -1;
}
