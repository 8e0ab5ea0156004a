// Products with the mass matrix, many columns at a time.
#include "libmodes/krylov_internal.h"

#include <string.h>

enum { MASS_ROWS = 1024 }; // vertices of one task

void modes_mass_destroy(modes_mass *mass) {
    fem_free(mass->start);
    fem_free(mass->column);
    fem_free(mass->value);
    *mass = (modes_mass){0};
}

static bool is_scalar(const fem_sparse *M) {
    for (size_t k = 0; k < (size_t)M->blocks; k++) {
        const double *a = M->value + 9 * k;
        if (a[1] != 0 || a[2] != 0 || a[3] != 0 || a[5] != 0 || a[6] != 0 || a[7] != 0 || a[0] != a[4] || a[0] != a[8])
            return false;
    }
    return true;
}

static modes_mass_rows choose_rows(void) {
#if defined(__x86_64__)
    fem_simd level = fem_simd_level();
    if (level == FEM_SIMD_AVX2) return modes_mass_rows_avx2;
    if (level == FEM_SIMD_AVX512) return modes_mass_rows_avx512;
#endif
    return modes_mass_rows_baseline;
}

fem_status modes_mass_create(modes_mass *mass, const fem_sparse *M) {
    *mass = (modes_mass){.M = M, .rows = choose_rows()};
    if (!is_scalar(M)) return FEM_OK;
    int    n = M->n;
    size_t entries = 2 * (size_t)M->blocks - (size_t)n;
    mass->start = fem_calloc((size_t)n + 2, sizeof *mass->start);
    mass->column = fem_alloc(entries, sizeof *mass->column);
    mass->value = fem_alloc(entries, sizeof *mass->value);
    if (!mass->start || !mass->column || !mass->value) {
        modes_mass_destroy(mass);
        return fem_fail(FEM_NO_MEMORY, "no memory for the mass matrix of %d vertices", n);
    }
    int *next = mass->start + 1; // entries of row i at next[i + 1], then sums; filling moves next[i] to the row's end
    for (int i = 0; i < n; i++)
        for (int k = M->row_start[i]; k < M->row_start[i + 1]; k++) {
            next[i + 1]++;
            if (M->column[k] != i) next[M->column[k] + 1]++;
        }
    for (int i = 1; i <= n; i++) next[i] += next[i - 1];
    for (int i = 0; i < n; i++)
        for (int k = M->row_start[i]; k < M->row_start[i + 1]; k++) {
            int    j = M->column[k];
            double value = M->value[9 * (size_t)k];
            mass->column[next[i]] = j, mass->value[next[i]++] = value;
            if (j != i) mass->column[next[j]] = i, mass->value[next[j]++] = value;
        }
    return FEM_OK;
}

typedef struct mass_work {
    const modes_mass *mass;
    int               columns;
    const double     *X;
    double           *Y;
} mass_work;

static void multiply_task(void *context, int index, int worker) {
    mass_work *w = context;
    size_t     n = 3 * (size_t)w->mass->M->n;
    int        begin = index * MASS_ROWS, end = begin + MASS_ROWS < w->mass->M->n ? begin + MASS_ROWS : w->mass->M->n;
    (void)worker;
    w->mass->rows(w->mass, w->columns, begin, end, w->X, w->Y + 3 * (size_t)begin, n);
}

void modes_mass_multiply(const modes_mass *mass, int columns, const double *X, double *Y) {
    if (!mass->start) {
        fem_sparse_multiply(mass->M, columns, X, Y);
        return;
    }
    mass_work work = {.mass = mass, .columns = columns, .X = X, .Y = Y};
    fem_parallel_for((mass->M->n + MASS_ROWS - 1) / MASS_ROWS, multiply_task, &work);
}

// ---- Gram matrices -------------------------------------------------------------------------------------------------

// Of M U only a few rows are held, in the cache: they are multiplied with the same rows of U at once, so that U is read
// but twice, whatever its columns.
enum { GRAM_VERTICES = 1024, GRAM_COLUMNS = 64 };

typedef struct gram_work {
    const modes_mass *mass;
    int               end, first; // columns first .. end of G
    const double     *U;
    double           *partial, *rows;
} gram_work;

static void gram_task(void *context, int panel, int worker) {
    gram_work *w = context;
    int        vertices = w->mass->M->n, columns = w->end - w->first;
    int        begin = (int)((long)vertices * panel / TALL_PANELS);
    int        end = (int)((long)vertices * (panel + 1) / TALL_PANELS);
    size_t     n = 3 * (size_t)vertices;
    double    *Y = w->rows + (size_t)worker * 3 * GRAM_VERTICES * (size_t)columns;
    double    *G = w->partial + (size_t)panel * (size_t)w->end * (size_t)columns;
    for (; begin < end; begin += GRAM_VERTICES) {
        int           rows = 3 * (end - begin < GRAM_VERTICES ? end - begin : GRAM_VERTICES);
        const double *U = w->U + 3 * (size_t)begin;
        w->mass->rows(w->mass, columns, begin, begin + rows / 3, w->U + (size_t)w->first * n, Y, (size_t)rows);
        for (int j = 0; j < columns; j += GRAM_COLUMNS) { // down to the diagonal, but for small blocks on it
            int part = columns - j < GRAM_COLUMNS ? columns - j : GRAM_COLUMNS;
            dense_gemm_part(true, false, w->first + j + part, part, rows, 1, U, (int)n, Y + (size_t)j * (size_t)rows,
                            rows, 1, G + (size_t)j * (size_t)w->end, w->end);
        }
    }
}

static fem_status gram_of_any(const modes_mass *mass, int first, int end, const double *U, double *part) {
    int     n = 3 * mass->M->n;
    double *Y = fem_alloc((size_t)n * (size_t)(end - first), sizeof *Y);
    if (!Y) return fem_fail(FEM_NO_MEMORY, "no memory for the Gram matrix of %d columns", end);
    modes_mass_multiply(mass, end - first, U + (size_t)first * (size_t)n, Y);
    fem_status status = tall_inner(n, end, end - first, U, Y, part);
    fem_free(Y);
    return status;
}

static fem_status gram_of_scalar(const modes_mass *mass, int first, int end, const double *U, double *part) {
    size_t    columns = (size_t)(end - first), size = (size_t)end * columns;
    double   *rows = fem_alloc((size_t)fem_threads() * 3 * GRAM_VERTICES * columns, sizeof *rows);
    double   *partial = fem_calloc(TALL_PANELS * size, sizeof *partial);
    gram_work work = {.mass = mass, .end = end, .first = first, .U = U, .partial = partial, .rows = rows};
    if (rows && partial) {
        fem_parallel_for(TALL_PANELS, gram_task, &work);
        memcpy(part, partial, size * sizeof *part);
        for (size_t panel = 1; panel < TALL_PANELS; panel++) dense_axpy((int)size, 1, partial + panel * size, part);
    }
    bool made = rows && partial;
    fem_free(rows), fem_free(partial);
    return made ? FEM_OK : fem_fail(FEM_NO_MEMORY, "no memory for the Gram matrix of %d columns", end);
}

fem_status modes_mass_gram_columns(const modes_mass *mass, int first, int end, const double *U, int r, double *G) {
    fem_status status = FEM_OK;
    double    *part = fem_alloc((size_t)end * (size_t)(end - first) + 1, sizeof *part);
    if (!part) return fem_fail(FEM_NO_MEMORY, "no memory for the Gram matrix of %d columns", r);
    FEM_TRY(mass->start ? gram_of_scalar(mass, first, end, U, part) : gram_of_any(mass, first, end, U, part));
    for (int j = first; j < end; j++)
        for (int i = 0; i <= j; i++)
            G[(size_t)j * (size_t)r + (size_t)i] = G[(size_t)i * (size_t)r + (size_t)j] =
                part[(size_t)(j - first) * (size_t)end + (size_t)i];
done:
    fem_free(part);
    return status;
}

fem_status modes_mass_gram(const modes_mass *mass, int first, int r, const double *U, double *G) {
    fem_status status = FEM_OK;
    int        width = modes_mass_gram_width(mass);
    for (; status == FEM_OK && first < r; first += width)
        status = modes_mass_gram_columns(mass, first, r - first < width ? r : first + width, U, r, G);
    return status;
}

// Cholesky QR [Stathopoulos, Wu 2002]. Its error is rounding times the condition of the Gram matrix, so of columns that
// are orthonormal to a tenth one pass leaves rounding, which needs no second look.
fem_status modes_mass_polish(const modes_mass *mass, int first, int r, double *U, double *orthogonality) {
    const double good = 1e-13, small = 0.1, eaten = 1e-10;
    fem_status   status = FEM_OK;
    size_t       square = (size_t)r * (size_t)r;
    double      *G = fem_alloc(3 * square + 1, sizeof *G), *T = G ? G + square : NULL, *GT = G ? T + square : NULL;
    if (!G) return fem_fail(FEM_NO_MEMORY, "no memory for the Gram matrix of %d columns", r);
    *orthogonality = 0;
    for (int pass = 0; pass < 3 && first < r; pass++) {
        for (size_t i = 0; i < square; i++) G[i] = i % ((size_t)r + 1) == 0;
        FEM_TRY(modes_mass_gram(mass, first, r, U, G));
        *orthogonality = tall_distance_from_identity(r, G);
        if (*orthogonality <= good) break;
        if (!isfinite(*orthogonality) || tall_cholesky_inverse(r, G, eaten, NULL, T) < r) {
            status = fem_fail(FEM_INDEFINITE, "%d columns are dependent, or not finite", r);
            break;
        }
        tall_right_upper(3 * mass->M->n, first, r, T, U);
        if (*orthogonality > small) continue;
        dense_gemm(false, false, r, r, r, 1, G, T, 0, GT);
        dense_gemm(true, false, r, r, r, 1, T, GT, 0, G);
        *orthogonality = tall_distance_from_identity(r, G);
        break;
    }
done:
    fem_free(G);
    return status;
}
