// Gram-Schmidt in the mass inner product.
//
// The block method works on panels X of at most 32 columns, twice ("twice is enough", Kahan in Parlett 1980):
//     C = (M U)^T X,  X -= U C,  Y = M X,  G = X^T Y = R^T R,  X <- X R^-1,  M U grows by Y R^-1.
// Everything that is long is a matrix product. [Stathopoulos, Wu 2002: CholQR]. A pivot of G that rounding has eaten
// says nothing about its column; the panel then ends before it, and the column opens the next one, where what it
// shares with the others is subtracted from it explicitly. So dependence is seen far below the square root of the
// machine precision, at which a Gram matrix is blind.
#include "libmodes/krylov_internal.h"

#include <string.h>

modes_orthogonalise_options modes_orthogonalise_default_options(void) {
    return (modes_orthogonalise_options){.dependence = 1e-8, .threshold = 0.001};
}

const char *modes_gram_schmidt_name(modes_gram_schmidt method) {
    static const char *const names[] = {"block", "mgs", "rmgs"};
    return names[method];
}

static fem_status check_options(const modes_orthogonalise_options *o, int capacity) {
    if (capacity < 1) return fem_fail(FEM_BAD_INPUT, "orthogonalise: %d columns, expected > 0", capacity);
    if ((int)o->method < 0 || o->method > MODES_GRAM_SCHMIDT_REDUCED)
        return fem_fail(FEM_BAD_INPUT, "orthogonalise.method is %d, expected 0 to 2", (int)o->method);
    if (o->passes < 0) return fem_fail(FEM_BAD_INPUT, "orthogonalise.passes is %d, expected >= 0", o->passes);
    if (!(o->dependence >= 1e-14 && o->dependence < 1))
        return fem_fail(FEM_BAD_INPUT, "orthogonalise.dependence is %g, expected 1e-14 <= dependence < 1",
                        o->dependence);
    if (!(o->threshold >= 0 && o->threshold < 1))
        return fem_fail(FEM_BAD_INPUT, "orthogonalise.threshold is %g, expected 0 <= threshold < 1", o->threshold);
    if (o->samples < 0) return fem_fail(FEM_BAD_INPUT, "orthogonalise.samples is %d, expected >= 0", o->samples);
    return FEM_OK;
}

// 3 |S| numbers a column must be well above the number of columns, or columns would depend on each other on the sample.
static fem_status prepare_sample(modes_orthogonaliser *o, const modes_problem *problem) {
    fem_status status = FEM_OK;
    int        wanted = o->options.samples;
    if (wanted == 0) wanted = (int)fmax(20 * log((double)o->n), 4.0 * o->capacity);
    FEM_TRY(modes_sample_create(&o->sample, problem, wanted));
    if (3L * o->sample.count < 2L * o->capacity) {
        status =
            fem_fail(FEM_BAD_INPUT,
                     "orthogonalise: a sample of %d nodes is too small for %d columns; %d nodes, or another method, "
                     "would do",
                     o->sample.count, o->capacity, 2 * o->capacity);
        goto done;
    }
    o->report.samples = o->sample.count;
    o->S = fem_alloc(3 * (size_t)o->sample.count * (size_t)o->capacity, sizeof *o->S);
    if (!o->S) status = fem_fail(FEM_NO_MEMORY, "no memory for a sample of %d nodes", o->sample.count);
done:
    return status;
}

fem_status modes_orthogonaliser_create(modes_orthogonaliser **result, const modes_problem *problem,
                                       const modes_orthogonalise_options *options, int capacity, double *U) {
    fem_status            status = check_options(options, capacity);
    modes_orthogonaliser *o = NULL;
    double                begin = fem_seconds();
    if (status != FEM_OK) return status;
    o = fem_calloc(1, sizeof *o);
    if (!o) return fem_fail(FEM_NO_MEMORY, "no memory for an orthogonalisation");
    *o = (modes_orthogonaliser){.options = *options, .n = 3 * problem->M->n, .capacity = capacity, .U = U};
    if (o->options.passes == 0) o->options.passes = options->method == MODES_GRAM_SCHMIDT_MASS ? 1 : 2;
    FEM_TRY(modes_mass_create(&o->mass, problem->M));
    if (options->method == MODES_GRAM_SCHMIDT_REDUCED) {
        FEM_TRY(prepare_sample(o, problem));
    } else {
        o->MU = fem_alloc((size_t)o->n * (size_t)capacity, sizeof *o->MU);
        if (!o->MU) {
            status = fem_fail(FEM_NO_MEMORY, "no memory to orthogonalise %d columns of length %d", capacity, o->n);
            goto done;
        }
    }
    o->report.seconds = fem_seconds() - begin;
done:
    if (status == FEM_OK)
        *result = o;
    else
        modes_orthogonaliser_destroy(o);
    return status;
}

void modes_orthogonaliser_destroy(modes_orthogonaliser *o) {
    if (!o) return;
    modes_mass_destroy(&o->mass);
    modes_sample_destroy(&o->sample);
    fem_free(o->S);
    fem_free(o->MU);
    fem_free(o);
}

void modes_close_gap(int n, int behind, double *X) {
    if (behind > 0) memmove(X, X + n, (size_t)n * (size_t)behind * sizeof *X);
}

// ---- two-pass block Gram-Schmidt -----------------------------------------------------------------------------------

typedef struct panel {
    int     remaining, b; // columns still to be decided, and those of them that are in the panel
    double *C;            // count x b
    double  G[MODES_PANEL * MODES_PANEL], T[MODES_PANEL * MODES_PANEL];
    double  before[MODES_PANEL]; // squared mass norms that the columns came with; negative: not known yet
} panel;

// X -= U (M U)^T X, Y = M X, G = X^T Y. A column's norm follows from Pythagoras when it is seen for the first time.
static fem_status project(modes_orthogonaliser *o, panel *p) {
    fem_status status = FEM_OK;
    double    *X = o->U + (size_t)o->count * (size_t)o->n, *Y = o->MU + (size_t)o->count * (size_t)o->n;
    if (o->count > 0) FEM_TRY(tall_inner(o->n, o->count, p->b, o->MU, X, p->C));
    tall_add(o->n, o->count, p->b, -1, o->U, p->C, X);
    modes_mass_multiply(&o->mass, p->b, X, Y);
    FEM_TRY(tall_inner(o->n, p->b, p->b, X, Y, p->G));
    for (int j = 0; j < p->b; j++) {
        double *c = p->C + (size_t)j * (size_t)o->count, square = p->G[j * p->b + j];
        if (!isfinite(square)) {
            status = fem_fail(FEM_BAD_INPUT, "orthogonalise: a column is not finite");
            goto done;
        }
        if (p->before[j] < 0) p->before[j] = square + dense_dot(o->count, c, c);
    }
done:
    return status;
}

// Drops the columns of which subtraction left too little, from X, Y and G, and closes the gaps.
static void drop_dependent(modes_orthogonaliser *o, panel *p) {
    size_t  n = (size_t)o->n;
    double *X = o->U + (size_t)o->count * n, *Y = o->MU + (size_t)o->count * n;
    int     kept[MODES_PANEL], m = 0, b = p->b;
    for (int j = 0; j < b; j++) {
        if (!(p->G[j * b + j] > o->options.dependence * o->options.dependence * p->before[j])) continue;
        if (m < j) {
            memcpy(X + (size_t)m * n, X + (size_t)j * n, n * sizeof *X);
            memcpy(Y + (size_t)m * n, Y + (size_t)j * n, n * sizeof *Y);
            p->before[m] = p->before[j];
        }
        kept[m++] = j;
    }
    if (m == b) return;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++) p->G[i * m + j] = p->G[kept[i] * b + kept[j]]; // never ahead of what is read
    memmove(X + (size_t)m * n, X + (size_t)b * n, (size_t)(p->remaining - b) * n * sizeof *X);
    for (int j = m; j < MODES_PANEL; j++) p->before[j] = -1;
    p->remaining -= b - m;
    p->b = m;
}

// Keeps as many of the remaining columns as can be decided together, and drops those that depend on U.
static fem_status take_panel(modes_orthogonaliser *o, panel *p) {
    fem_status   status = FEM_OK;
    size_t       n = (size_t)o->n;
    double      *X = o->U + (size_t)o->count * n, *Y = o->MU + (size_t)o->count * n;
    const double eaten = 1e-12; // of a diagonal entry, left in its pivot: cancellation to four digits
    p->b = p->remaining < MODES_PANEL ? p->remaining : MODES_PANEL;
    for (int pass = 0; pass < o->options.passes; pass++) {
        double least[MODES_PANEL];
        FEM_TRY(project(o, p));
        if (pass == 0) drop_dependent(o, p);
        if (p->b == 0) goto done;
        for (int j = 0; j < p->b; j++)
            least[j] = pass == 0 ? o->options.dependence * o->options.dependence * p->before[j] : 0;
        p->b = tall_cholesky_inverse(p->b, p->G, eaten, least, p->T);
        FEM_TRY(tall_right(o->n, p->b, p->b, p->T, X));
        FEM_TRY(tall_right(o->n, p->b, p->b, p->T, Y));
    }
    o->count += p->b;
    p->remaining -= p->b;
    for (int j = 0; j < MODES_PANEL; j++) p->before[j] = j + p->b < MODES_PANEL ? p->before[j + p->b] : -1;
done:
    return status;
}

static fem_status block_add(modes_orthogonaliser *o, int columns) {
    fem_status status = FEM_OK;
    panel     *p = fem_calloc(1, sizeof *p);
    if (p) p->C = fem_alloc((size_t)o->capacity * MODES_PANEL, sizeof *p->C);
    if (!p || !p->C) {
        status = fem_fail(FEM_NO_MEMORY, "no memory to orthogonalise %d columns", columns);
        goto done;
    }
    p->remaining = columns;
    for (int j = 0; j < MODES_PANEL; j++) p->before[j] = -1;
    while (p->remaining > 0) FEM_TRY(take_panel(o, p));
done:
    if (p) fem_free(p->C);
    fem_free(p);
    return status;
}

// ---- modified Gram-Schmidt, vector by vector -----------------------------------------------------------------------

static fem_status mass_add(modes_orthogonaliser *o, int columns) {
    int n = o->n;
    for (int remaining = columns; remaining > 0; remaining--) {
        double *v = o->U + (size_t)o->count * (size_t)n, *Mv = o->MU + (size_t)o->count * (size_t)n, removed = 0;
        for (int pass = 0; pass < o->options.passes; pass++)
            for (int j = 0; j < o->count; j++) {
                double alpha = dense_dot(n, v, o->MU + (size_t)j * (size_t)n);
                dense_axpy(n, -alpha, o->U + (size_t)j * (size_t)n, v);
                removed += alpha * alpha;
            }
        modes_mass_multiply(&o->mass, 1, v, Mv);
        double square = dense_dot(n, v, Mv), smallest = o->options.dependence * o->options.dependence;
        if (!isfinite(square)) return fem_fail(FEM_BAD_INPUT, "orthogonalise: a column is not finite");
        if (square > smallest * (square + removed)) {
            dense_scale(n, 1 / sqrt(square), v);
            dense_scale(n, 1 / sqrt(square), Mv);
            o->count++;
        } else {
            modes_close_gap(n, remaining - 1, v);
        }
    }
    return FEM_OK;
}

// ---- what they share -----------------------------------------------------------------------------------------------

fem_status modes_orthogonaliser_add(modes_orthogonaliser *o, int columns, int *kept) {
    int        before = o->count;
    double     begin = fem_seconds();
    fem_status status = FEM_OK;
    if (columns < 0 || columns > o->capacity - o->count)
        return fem_fail(FEM_BAD_INPUT, "orthogonalise: %d columns after %d, but there is room for %d in all", columns,
                        o->count, o->capacity);
    if (o->options.method == MODES_GRAM_SCHMIDT_BLOCK)
        status = block_add(o, columns);
    else if (o->options.method == MODES_GRAM_SCHMIDT_MASS)
        status = mass_add(o, columns);
    else
        status = modes_reduced_add(o, columns);
    o->report.offered += columns;
    o->report.rank = o->count;
    o->report.seconds += fem_seconds() - begin;
    if (status == FEM_OK) *kept = o->count - before;
    return status;
}

void modes_orthogonaliser_mass(const modes_orthogonaliser *o, int first, int columns, double *B) {
    size_t offset = (size_t)first * (size_t)o->n;
    if (o->MU)
        memcpy(B, o->MU + offset, (size_t)columns * (size_t)o->n * sizeof *B);
    else
        modes_mass_multiply(&o->mass, columns, o->U + offset, B);
}

fem_status modes_orthogonaliser_finish(modes_orthogonaliser *o, modes_orthogonalise_report *report) {
    fem_status status = FEM_OK;
    double    *G = fem_alloc((size_t)o->count * (size_t)o->count, sizeof *G), begin = fem_seconds();
    if (!G) return fem_fail(FEM_NO_MEMORY, "no memory for the Gram matrix of %d columns", o->count);
    if (o->options.method == MODES_GRAM_SCHMIDT_REDUCED) {
        FEM_TRY(modes_reduced_finish(o));
        o->report.seconds += fem_seconds() - begin;
    }
    FEM_TRY(modes_mass_gram(&o->mass, 0, o->count, o->U, G));
    o->report.orthogonality = tall_distance_from_identity(o->count, G);
    if (report) *report = o->report;
done:
    fem_free(G);
    return status;
}

fem_status modes_orthogonalise(const modes_problem *problem, const modes_orthogonalise_options *options, int columns,
                               double *U, int *rank, modes_orthogonalise_report *report) {
    modes_orthogonaliser *o = NULL;
    int                   kept = 0;
    fem_status            status = modes_orthogonaliser_create(&o, problem, options, columns, U);
    if (status != FEM_OK) return status;
    FEM_TRY(modes_orthogonaliser_add(o, columns, &kept));
    FEM_TRY(modes_orthogonaliser_finish(o, report));
    *rank = kept;
done:
    modes_orthogonaliser_destroy(o);
    return status;
}
