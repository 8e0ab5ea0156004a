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

fem_status modes_mass_create(modes_mass *mass, const fem_sparse *M) {
    *mass = (modes_mass){.M = M};
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

// rows begin .. end of `columns` (at most 4) columns that stand n apart
static inline void multiply_rows(const modes_mass *mass, int columns, size_t n, int begin, int end, const double *X,
                                 double *Y) {
    for (int i = begin; i < end; i++) {
        double sum[12] = {0};
        for (int k = mass->start[i]; k < mass->start[i + 1]; k++) {
            const double *x = X + 3 * (size_t)mass->column[k];
            double        value = mass->value[k];
            for (int c = 0; c < columns; c++)
                for (int e = 0; e < 3; e++) sum[3 * c + e] += value * x[(size_t)c * n + (size_t)e];
        }
        for (int c = 0; c < columns; c++) memcpy(Y + (size_t)c * n + 3 * (size_t)i, sum + 3 * c, 3 * sizeof *sum);
    }
}

static void multiply_task(void *context, int index, int worker) {
    mass_work *w = context;
    size_t     n = 3 * (size_t)w->mass->M->n;
    int        begin = index * MASS_ROWS, end = begin + MASS_ROWS < w->mass->M->n ? begin + MASS_ROWS : w->mass->M->n;
    (void)worker;
    int c = 0;
    for (; c + 4 <= w->columns; c += 4)
        multiply_rows(w->mass, 4, n, begin, end, w->X + (size_t)c * n, w->Y + (size_t)c * n);
    for (; c + 2 <= w->columns; c += 2)
        multiply_rows(w->mass, 2, n, begin, end, w->X + (size_t)c * n, w->Y + (size_t)c * n);
    if (c < w->columns) multiply_rows(w->mass, 1, n, begin, end, w->X + (size_t)c * n, w->Y + (size_t)c * n);
}

void modes_mass_multiply(const modes_mass *mass, int columns, const double *X, double *Y) {
    if (!mass->start) {
        fem_sparse_multiply(mass->M, columns, X, Y);
        return;
    }
    mass_work work = {.mass = mass, .columns = columns, .X = X, .Y = Y};
    fem_parallel_for((mass->M->n + MASS_ROWS - 1) / MASS_ROWS, multiply_task, &work);
}

fem_status modes_mass_gram(const modes_mass *mass, int r, const double *U, double *G) {
    fem_status status = FEM_OK;
    int        n = 3 * mass->M->n, most = r < MODES_PANEL ? r : MODES_PANEL;
    double    *Y = fem_alloc((size_t)n * (size_t)most, sizeof *Y);
    if (!Y) return fem_fail(FEM_NO_MEMORY, "no memory for the Gram matrix of %d columns", r);
    for (int first = 0; first < r; first += most) {
        int columns = r - first < most ? r - first : most;
        modes_mass_multiply(mass, columns, U + (size_t)first * (size_t)n, Y);
        FEM_TRY(tall_inner(n, r, columns, U, Y, G + (size_t)first * (size_t)r));
    }
done:
    fem_free(Y);
    return status;
}

// Cholesky QR [Stathopoulos, Wu 2002]. Of columns that are orthonormal to d, one pass leaves d^2 and rounding.
fem_status modes_mass_polish(const modes_mass *mass, int r, double *U, double *orthogonality) {
    const double good = 1e-13, small = 1e-6, eaten = 1e-10;
    fem_status   status = FEM_OK;
    size_t       square = (size_t)r * (size_t)r;
    double      *G = fem_alloc(3 * square + 1, sizeof *G), *T = G ? G + square : NULL, *GT = G ? T + square : NULL;
    if (!G) return fem_fail(FEM_NO_MEMORY, "no memory for the Gram matrix of %d columns", r);
    for (int pass = 0; pass < 3; pass++) {
        FEM_TRY(modes_mass_gram(mass, r, U, G));
        *orthogonality = tall_distance_from_identity(r, G);
        if (*orthogonality <= good) break;
        if (!isfinite(*orthogonality) || tall_cholesky_inverse(r, G, eaten, NULL, T) < r) {
            status = fem_fail(FEM_INDEFINITE, "%d columns are dependent, or not finite", r);
            break;
        }
        FEM_TRY(tall_right(3 * mass->M->n, r, r, T, U));
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
