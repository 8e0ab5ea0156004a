// Products of matrices with very many rows and few columns. BLAS is single-threaded here, the rows are shared out.
#include "libmodes/krylov_internal.h"

#include <string.h>

typedef struct tall_work {
    int           n, a, b;
    double        alpha, beta;
    const double *A, *C;
    double       *X, *partial;
} tall_work;

static int panel_begin(int n, int panel) { return (int)((long)n * panel / TALL_PANELS); }

static void inner_task(void *context, int panel, int worker) {
    tall_work *w = context;
    int        begin = panel_begin(w->n, panel), rows = panel_begin(w->n, panel + 1) - begin;
    (void)worker;
    dense_gemm_part(true, false, w->a, w->b, rows, 1, w->A + begin, w->n, w->C + begin, w->n, 0,
                    w->partial + (size_t)panel * (size_t)w->a * (size_t)w->b, w->a);
}

fem_status tall_inner(int n, int a, int b, const double *A, const double *B, double *C) {
    size_t  size = (size_t)a * (size_t)b;
    double *partial = fem_alloc(TALL_PANELS * size, sizeof *partial);
    if (!partial) return fem_fail(FEM_NO_MEMORY, "no memory for the inner products of %d with %d columns", a, b);
    tall_work work = {.n = n, .a = a, .b = b, .A = A, .C = B, .partial = partial};
    fem_parallel_for(TALL_PANELS, inner_task, &work);
    memcpy(C, partial, size * sizeof *C);
    for (size_t panel = 1; panel < TALL_PANELS; panel++) dense_axpy((int)size, 1, partial + panel * size, C);
    fem_free(partial);
    return FEM_OK;
}

static void add_task(void *context, int panel, int worker) {
    tall_work *w = context;
    int        begin = panel_begin(w->n, panel), rows = panel_begin(w->n, panel + 1) - begin;
    (void)worker;
    dense_gemm_part(false, false, rows, w->b, w->a, w->alpha, w->A + begin, w->n, w->C, w->a, w->beta, w->X + begin,
                    w->n);
}

void tall_add(int n, int a, int b, double alpha, const double *A, const double *C, double *X) {
    if (a == 0) return;
    tall_work work = {.n = n, .a = a, .b = b, .alpha = alpha, .beta = 1, .A = A, .C = C, .X = X};
    fem_parallel_for(TALL_PANELS, add_task, &work);
}

void tall_product(int n, int a, int b, const double *A, const double *C, double *X) {
    tall_work work = {.n = n, .a = a, .b = b, .alpha = 1, .A = A, .C = C, .X = X};
    fem_parallel_for(TALL_PANELS, add_task, &work);
}

enum { RIGHT_ROWS = 512 }; // rows that are copied and multiplied at a time: they stay in the cache

static void right_task(void *context, int panel, int worker) {
    tall_work *w = context;
    int        end = panel_begin(w->n, panel + 1);
    double    *copy = w->partial + (size_t)worker * RIGHT_ROWS * (size_t)w->b;
    for (int begin = panel_begin(w->n, panel); begin < end; begin += RIGHT_ROWS) {
        int rows = end - begin < RIGHT_ROWS ? end - begin : RIGHT_ROWS;
        for (int j = 0; j < w->b; j++)
            memcpy(copy + (size_t)j * (size_t)rows, w->X + (size_t)j * (size_t)w->n + begin,
                   (size_t)rows * sizeof *copy);
        dense_gemm_part(false, false, rows, w->a, w->b, 1, copy, rows, w->C, w->b, 0, w->X + begin, w->n);
    }
}

fem_status tall_right(int n, int b, int columns, const double *T, double *X) {
    double *copies = fem_alloc((size_t)fem_threads() * RIGHT_ROWS * (size_t)b, sizeof *copies);
    if (!copies) return fem_fail(FEM_NO_MEMORY, "no memory for a product with a %d x %d matrix", b, columns);
    tall_work work = {.n = n, .a = columns, .b = b, .C = T, .X = X, .partial = copies};
    fem_parallel_for(TALL_PANELS, right_task, &work);
    fem_free(copies);
    return FEM_OK;
}

static void right_upper_task(void *context, int panel, int worker) {
    tall_work    *w = context;
    int           begin = panel_begin(w->n, panel), rows = panel_begin(w->n, panel + 1) - begin, behind = w->b - w->a;
    const double *T = w->C + (size_t)w->a * (size_t)w->b; // columns that change anything
    double       *X = w->X + begin, *changed = X + (size_t)w->a * (size_t)w->n;
    (void)worker;
    dense_multiply_upper(rows, behind, T + w->a, w->b, changed, w->n);
    dense_gemm_part(false, false, rows, behind, w->a, 1, X, w->n, T, w->b, 1, changed, w->n);
}

void tall_right_upper(int n, int kept, int b, const double *T, double *X) {
    tall_work work = {.n = n, .a = kept, .b = b, .C = T, .X = X};
    fem_parallel_for(TALL_PANELS, right_upper_task, &work);
}

// G = R^T R column by column, and T = R^-1 beside it: the columns of T are what is left of the unit vectors when
// Gram-Schmidt orthonormalises them in the inner product of G.
int tall_cholesky_inverse(int b, const double *G, double eaten, const double *least, double *T) {
    int m = 0;
    for (; m < b; m++) {
        const double *g = G + (size_t)m * (size_t)b;
        double       *t = T + (size_t)m * (size_t)b; // leading dimension b until the end
        double        pivot = g[m];
        memset(t, 0, (size_t)b * sizeof *t);
        t[m] = 1;
        for (int j = 0; j < m; j++) {
            double *tj = T + (size_t)j * (size_t)b, r = dense_dot(j + 1, tj, g); // R_jm = (T^T G)_jm
            pivot -= r * r;
            dense_axpy(j + 1, -r, tj, t);
        }
        if (!(pivot > eaten * g[m]) || (least && !(pivot > least[m]))) break;
        dense_scale(m + 1, 1 / sqrt(pivot), t);
    }
    for (int j = 1; j < m; j++) memmove(T + (size_t)j * (size_t)m, T + (size_t)j * (size_t)b, (size_t)m * sizeof *T);
    return m;
}

double tall_distance_from_identity(int b, const double *G) {
    double largest = 0;
    for (size_t i = 0; i < (size_t)b * (size_t)b; i++) largest = fmax(largest, fabs(G[i] - (i % ((size_t)b + 1) == 0)));
    return largest;
}
