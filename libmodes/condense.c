// PCA, randomized PCA and random projection of a pool of candidates.
//
// Candidates X are used as X S D: S makes them unit vectors, D holds the weights. PCA never factors M: with
// G = S X^T M X S (ones on the diagonal) and its pivoted Cholesky factor G = L L^T, Q = X S L^-T is mass-orthonormal
// and X S D = Q (L^T D), so the singular values are those of the small matrix L^T D. The weights may span ten orders of
// magnitude; since they enter after G, small singular values keep their digits, which those of D G D would lose.
//
// Only the pool, the basis and a panel of columns are ever held.
#include "libmodes/krylov_internal.h"

#include <string.h>

static const double independent = 1e-12; // squared sine below which a candidate counts as one of those before it

// Columns U = X S C are as orthogonal as G is exact: E = C^T dG C, at most |dG| times the sums of the sizes of two
// columns' coefficients, which grow where unit candidates cancel. An entry of G, at most 1, is off by rounding.
static const double rounding = 4.4e-16, orthogonal = 1e-13;

modes_condense_options modes_condense_default_options(void) {
    return (modes_condense_options){.method = MODES_PCA,
                                    .scaling = MODES_SCALE_FREQUENCY,
                                    .metric = MODES_METRIC_MASS,
                                    .r = 30,
                                    .oversampling = 10,
                                    .power_iterations = 1,
                                    .seed = 1};
}

typedef struct condensation {
    const modes_problem          *problem;
    const modes_pool             *pool;
    const modes_condense_options *options;
    const fem_progress           *progress;
    modes_mass                    mass;
    int                           n, m, r; // r: columns of U that count
    double                       *scale;   // m: S, 1 over the norm in the metric, 0 for a candidate that is zero
    double                       *weights; // m: D
    double                       *G;       // m x m: X^T M X in the metric (PCA)
    double                       *panel;   // n x MODES_PANEL
    double                       *U;       // n x width
    int                           width;   // r, or the columns of the sketch, or (PCA by energy) m
    int                           trusted; // first columns that are orthonormal as they are, and (PCA)
    double                        trust;   // how much at least
    modes_condense_report         report;
} condensation;

static fem_status no_memory(const condensation *c) {
    return fem_fail(FEM_NO_MEMORY, "no memory to condense %d candidates of %d degrees of freedom", c->m, c->n);
}

static fem_status check_options(const modes_condense_options *o, const modes_pool *pool, const double *omega2) {
    if (pool->count < 1) return fem_fail(FEM_BAD_INPUT, "there are no candidates to condense");
    if (o->r < 0 || o->r > pool->count)
        return fem_fail(FEM_BAD_INPUT, "condense.r is %d, expected at most the %d candidates", o->r, pool->count);
    if (!(o->energy >= 0 && o->energy <= 1))
        return fem_fail(FEM_BAD_INPUT, "condense.energy is %g, expected 0 <= energy <= 1", o->energy);
    if (o->r == 0 && o->energy == 0)
        return fem_fail(FEM_BAD_INPUT, "condense.r and condense.energy are both 0: give one of them");
    if (o->r == 0 && o->method != MODES_PCA)
        return fem_fail(FEM_BAD_INPUT, "condense.r is 0: random methods need the number of columns beforehand");
    if (o->energy > 0 && o->method == MODES_RANDOM_PROJECTION)
        return fem_fail(FEM_BAD_INPUT, "condense.energy is %g, but a random projection has no singular values; give r",
                        o->energy);
    if (o->oversampling < 0 || o->power_iterations < 0)
        return fem_fail(FEM_BAD_INPUT, "condense.oversampling is %d and power_iterations %d, expected >= 0",
                        o->oversampling, o->power_iterations);
    if (o->metric != MODES_METRIC_MASS && o->method != MODES_PCA)
        return fem_fail(FEM_BAD_INPUT, "condense.metric: only PCA can use the lumped mass");
    for (int j = 0; o->scaling == MODES_SCALE_FREQUENCY && j < pool->count; j++) {
        if (!omega2 || pool->origin[j].order < 0)
            return fem_fail(FEM_BAD_INPUT,
                            "candidate %d has no frequency to be scaled by; another condense.scaling would do", j);
        for (int k = 0; k <= pool->origin[j].order; k++)
            if (!(omega2[pool->origin[j].mode[k]] > 0))
                return fem_fail(FEM_BAD_INPUT, "omega2[%d] is %g, expected > 0: leave rigid modes out",
                                pool->origin[j].mode[k], omega2[pool->origin[j].mode[k]]);
    }
    return FEM_OK;
}

fem_status modes_condense_size(const modes_condense_options *o, int n, int candidates, double *bytes) {
    enum { MOST = 20000 }; // dgesdd's work, 5 rank^2 numbers, is counted by an int
    const double number = sizeof(double);
    double       m = candidates, rank = fmin(m, n), columns = o->r > 0 ? o->r : rank;
    if (o->method == MODES_RANDOMIZED_PCA) columns = fmin(m, columns + o->oversampling);
    *bytes = number * n * (MODES_PANEL + 2 * columns); // the columns, and M times them
    if (o->method != MODES_PCA) {
        *bytes += number * m * columns;
        return FEM_OK;
    }
    *bytes += number * (4 * m * m + 5 * rank * rank); // G, L, T, W of pca()
    *bytes += number * (TALL_PANELS + 1) * m * fmin(m, MASS_GRAM_WIDTH);
    if (rank > MOST)
        return fem_fail(FEM_BAD_INPUT,
                        "PCA of %d candidates of %d degrees of freedom, expected at most %d of either; randomized PCA "
                        "or fewer candidates would do",
                        candidates, n, MOST);
    return FEM_OK;
}

// ---- weights and the Gram matrix -----------------------------------------------------------------------------------

static double frequency_weight(const modes_origin *origin, const double *omega2) {
    double weight = 1;
    for (int k = 0; k <= origin->order; k++) weight *= omega2[0] / omega2[origin->mode[k]];
    return weight;
}

// Row sums of M
static fem_status lumped_masses(const condensation *c, double **masses) {
    double *ones = fem_alloc((size_t)c->n, sizeof *ones);
    *masses = fem_alloc((size_t)c->n, sizeof **masses);
    if (!ones || !*masses) {
        fem_free(ones);
        return no_memory(c);
    }
    for (int i = 0; i < c->n; i++) ones[i] = 1;
    modes_mass_multiply(&c->mass, 1, ones, *masses);
    fem_free(ones);
    return FEM_OK;
}

// Columns first .. first + columns of X^T (M X) with the lumped mass, M X in the panel, down to the diagonal; then
// mirrored.
static fem_status add_gram(condensation *c, int first, int columns) {
    int     end = first + columns;
    double *part = fem_alloc((size_t)end * (size_t)columns, sizeof *part);
    if (!part) return no_memory(c);
    fem_status status = tall_inner(c->n, end, columns, c->pool->X, c->panel, part);
    for (int j = 0; status == FEM_OK && j < columns; j++)
        for (int i = 0; i <= first + j; i++)
            c->G[(size_t)(first + j) * (size_t)c->m + (size_t)i] =
                c->G[(size_t)i * (size_t)c->m + (size_t)(first + j)] = part[(size_t)j * (size_t)end + (size_t)i];
    fem_free(part);
    return status;
}

// What a panel of candidates gives: mass norms, Rayleigh quotients (1 over them, into the weights), the lumped Gram
// matrix. That of the mass is there already, and has the norms.
static fem_status weigh_panel(condensation *c, int first, int columns, const double *lumped, double *norms) {
    fem_status    status = FEM_OK;
    size_t        n = (size_t)c->n;
    const double *X = c->pool->X + (size_t)first * n;
    bool          known = c->G && !lumped;
    if (!known) modes_mass_multiply(&c->mass, columns, X, c->panel);
    for (int j = 0; j < columns; j++) {
        double square = known ? c->G[(size_t)(first + j) * (size_t)(c->m + 1)]
                              : dense_dot(c->n, X + (size_t)j * n, c->panel + (size_t)j * n);
        if (!isfinite(square)) return fem_fail(FEM_BAD_INPUT, "candidate %d is not finite", first + j);
        norms[first + j] = square > 0 ? sqrt(square) : 0;
        c->scale[first + j] = norms[first + j] > 0 ? 1 / norms[first + j] : 0;
    }
    for (int j = 0; lumped && j < columns; j++) {
        double *y = c->panel + (size_t)j * n;
        for (size_t i = 0; i < n; i++) y[i] = lumped[i] * X[(size_t)j * n + i];
        double square = dense_dot(c->n, X + (size_t)j * n, y);
        c->scale[first + j] = square > 0 ? 1 / sqrt(square) : 0;
    }
    if (c->G && lumped) FEM_TRY(add_gram(c, first, columns));
    if (c->options->scaling == MODES_SCALE_RAYLEIGH) {
        fem_sparse_multiply(c->problem->K, columns, X, c->panel);
        for (int j = 0; j < columns; j++) {
            double energy = dense_dot(c->n, X + (size_t)j * n, c->panel + (size_t)j * n), norm = norms[first + j];
            c->weights[first + j] = energy > 0 ? norm * norm / energy : 0;
        }
    }
done:
    return status;
}

// With the lumped metric the weights still refer to the mass norm, as VegaFEM's do.
static fem_status weigh(condensation *c, const double *omega2) {
    fem_status status = FEM_OK;
    double    *norms = fem_alloc((size_t)c->m, sizeof *norms), *lumped = NULL, largest = 0;
    if (!norms) return no_memory(c);
    if (c->options->metric == MODES_METRIC_LUMPED) FEM_TRY(lumped_masses(c, &lumped));
    for (int first = 0, known = 0; first < c->m; first += MODES_PANEL) {
        FEM_TRY(fem_progress_report(c->progress, "weighing candidates", first / (double)c->m));
        if (c->G && !lumped && known < first + MODES_PANEL && known < c->m) { // widths are multiples of a panel
            int end = known + modes_mass_gram_width(&c->mass);
            if (end > c->m) end = c->m;
            FEM_TRY(modes_mass_gram_columns(&c->mass, known, end, c->pool->X, c->m, c->G));
            known = end;
        }
        FEM_TRY(weigh_panel(c, first, c->m - first < MODES_PANEL ? c->m - first : MODES_PANEL, lumped, norms));
    }
    for (int j = 0; j < c->m; j++) largest = fmax(largest, c->weights[j]);
    for (int j = 0; j < c->m; j++) {
        if (c->options->scaling == MODES_SCALE_RAYLEIGH)
            c->weights[j] /= largest > 0 ? largest : 1;
        else if (c->options->scaling == MODES_SCALE_NONE)
            c->weights[j] = norms[j];
        else
            c->weights[j] = 1;
        if (c->options->scaling == MODES_SCALE_FREQUENCY)
            c->weights[j] *= frequency_weight(&c->pool->origin[j], omega2);
        if (c->scale[j] * norms[j] > 0)
            c->weights[j] /= c->scale[j] * norms[j]; // 1 unless the metric is lumped
        else
            c->weights[j] = 0;
    }
done:
    fem_free(norms), fem_free(lumped);
    return status;
}

// ---- PCA -----------------------------------------------------------------------------------------------------------

int modes_pivoted_cholesky(int m, const double *G, double least, double *L, int *pivots) {
    double *work = L + (size_t)m * (size_t)m;
    memcpy(L, G, (size_t)m * (size_t)m * sizeof *L);
    int rank = dense_pivoted_cholesky(m, L, least, pivots, work);
    for (int k = 0; k < rank; k++) { // rows back into the order of G
        double *column = L + (size_t)k * (size_t)m;
        memcpy(work, column, (size_t)m * sizeof *work);
        for (int i = 0; i < m; i++) column[pivots[i]] = i < k ? 0 : work[i];
    }
    return rank;
}

// How many columns: r, or fewer when the energy is reached before.
static fem_status choose_columns(condensation *c, int available, double total) {
    const modes_condense_options *o = c->options;
    double                        kept = 0;
    int                           r = o->r;
    if (o->energy > 0) {
        int most = o->r > 0 && o->r < available ? o->r : available;
        for (r = 0; r < most && !(kept >= o->energy * total && r > 0); r++)
            kept += c->report.singular[r] * c->report.singular[r];
    } else if (r > available) {
        return fem_fail(FEM_BAD_INPUT,
                        "%d columns were asked for, but the %d candidates span only %d dimensions to working precision",
                        o->r, c->m, available);
    }
    c->r = r;
    return FEM_OK;
}

static double total_energy(const condensation *c) {
    double total = 0;
    for (int j = 0; j < c->m; j++) total += c->weights[j] * c->weights[j];
    return total;
}

static fem_status keep_singular(condensation *c, int count, const double *values) {
    c->report.singular_count = count;
    c->report.singular = fem_copy(values, (size_t)count, sizeof *values);
    return c->report.singular ? FEM_OK : no_memory(c);
}

static fem_status allocate_columns(condensation *c, int width) {
    c->width = width;
    c->U = fem_alloc((size_t)c->n * (size_t)width, sizeof *c->U);
    return c->U ? FEM_OK : no_memory(c);
}

static void measure_energy(condensation *c) { // of the first r singular values
    double kept = 0;
    for (int k = 0; k < c->r; k++) kept += c->report.singular[k] * c->report.singular[k];
    c->report.energy_kept = kept / total_energy(c);
}

// Coefficients C (m x r) of unit candidates: as far as they are small, columns need no polishing.
static void trust_columns(condensation *c, const double *C) {
    for (; c->trusted < c->r; c->trusted++) {
        double sum = 0;
        for (int j = 0; j < c->m; j++) sum += fabs(C[(size_t)c->trusted * (size_t)c->m + (size_t)j]);
        if (!(rounding * sum * sum <= orthogonal)) break;
        c->trust = fmax(c->trust, rounding * sum * sum);
    }
}

static fem_status pca(condensation *c) {
    fem_status status = FEM_OK;
    int        m = c->m, n = c->n, rank = 0;
    size_t     square = (size_t)m * (size_t)m;
    int       *pivots = fem_alloc((size_t)m, sizeof *pivots);
    double    *G = c->G, *L = fem_alloc(square + 2 * (size_t)m, sizeof *L);
    double    *T = fem_alloc(square, sizeof *T), *W = fem_alloc(square, sizeof *W);
    double    *singular = fem_alloc((size_t)m, sizeof *singular);
    if (!pivots || !L || !T || !W || !singular) {
        status = no_memory(c);
        goto done;
    }
    for (int j = 0; j < m; j++)
        for (int i = 0; i < m; i++) G[(size_t)j * (size_t)m + (size_t)i] *= c->scale[i] * c->scale[j];
    rank = c->report.rank = modes_pivoted_cholesky(m, G, independent, L, pivots);
    for (int k = 0; k < rank; k++) // T = D L, m x rank
        for (int j = 0; j < m; j++)
            T[(size_t)k * (size_t)m + (size_t)j] = c->weights[j] * L[(size_t)k * (size_t)m + (size_t)j];
    FEM_TRY(dense_svd(m, rank, T, singular, W)); // row i of W: left singular vector i of L^T D in terms of Q
    FEM_TRY(keep_singular(c, rank, singular));
    FEM_TRY(choose_columns(c, rank, total_energy(c)));
    measure_energy(c);
    // U = Q W_r^T = X S L_p^-T W_r^T: back substitution with the rows of the pivots
    memset(G, 0, square * sizeof *G); // now m x r: coefficients of the candidates
    for (int i = 0; i < c->r; i++)
        for (int k = rank - 1; k >= 0; k--) {
            double sum = W[(size_t)k * (size_t)rank + (size_t)i];
            for (int l = k + 1; l < rank; l++)
                sum -= L[(size_t)k * (size_t)m + (size_t)pivots[l]] * G[(size_t)i * (size_t)m + (size_t)pivots[l]];
            G[(size_t)i * (size_t)m + (size_t)pivots[k]] = sum / L[(size_t)k * (size_t)m + (size_t)pivots[k]];
        }
    if (c->options->metric == MODES_METRIC_MASS) trust_columns(c, G);
    for (int i = 0; i < c->r; i++)
        for (int j = 0; j < m; j++) G[(size_t)i * (size_t)m + (size_t)j] *= c->scale[j];
    FEM_TRY(allocate_columns(c, c->r));
    tall_product(n, m, c->r, c->pool->X, G, c->U);
done:
    fem_free(pivots), fem_free(L), fem_free(T), fem_free(W), fem_free(singular);
    return status;
}

// ---- random methods ------------------------------------------------------------------------------------------------

static double uniform(uint64_t *state) { // in (0, 1]
    return (double)(modes_random_bits(state) + 1) / 9007199254740992.0;
}

static double gaussian(uint64_t *state) { // Box, Muller 1958
    double radius = sqrt(-2 * log(uniform(state)));
    return radius * cos(6.283185307179586 * uniform(state));
}

// U = X S D T, T m x columns, scaled in place
static void combine(condensation *c, int columns, double *T) {
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < c->m; i++) T[(size_t)j * (size_t)c->m + (size_t)i] *= c->scale[i] * c->weights[i];
    tall_product(c->n, c->m, columns, c->pool->X, T, c->U);
}

// Vector by vector, in two passes. Weighted columns lie so close together that what is new in one can be a millionth of
// it: the Gram matrix of a block could not tell that from rounding. One of which less than 1e-9 is new is dropped: it
// would be made of the rounding errors of those before it.
// Columns that are nearly orthogonal, whatever their lengths, go in blocks, which is faster.
static fem_status orthonormalise(condensation *c, int columns, bool nearly, int *rank) {
    modes_orthogonalise_options options = modes_orthogonalise_default_options();
    modes_orthogonalise_report  report = {0};
    if (!nearly) options.method = MODES_GRAM_SCHMIDT_MASS, options.passes = 2, options.dependence = 1e-9;
    fem_status status = modes_orthogonalise(c->problem, &options, columns, c->U, rank, &report);
    c->report.orthogonality = report.orthogonality;
    return status;
}

// T (m x columns) = D S X^T M U
static fem_status project_candidates(condensation *c, int columns, double *T) {
    fem_status status = FEM_OK;
    for (int first = 0; first < columns; first += MODES_PANEL) {
        int part = columns - first < MODES_PANEL ? columns - first : MODES_PANEL;
        modes_mass_multiply(&c->mass, part, c->U + (size_t)first * (size_t)c->n, c->panel);
        FEM_TRY(tall_inner(c->n, c->m, part, c->pool->X, c->panel, T + (size_t)first * (size_t)c->m));
    }
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < c->m; i++) T[(size_t)j * (size_t)c->m + (size_t)i] *= c->scale[i] * c->weights[i];
done:
    return status;
}

// Orthonormal columns of a small matrix, by Gram-Schmidt twice; a column that depends on the others becomes zero.
static void orthonormalise_small(int m, int columns, double *T) {
    for (int j = 0; j < columns; j++) {
        double *x = T + (size_t)j * (size_t)m, before = dense_norm(m, x);
        for (int pass = 0; pass < 2; pass++)
            for (int k = 0; k < j; k++) {
                const double *y = T + (size_t)k * (size_t)m;
                dense_axpy(m, -dense_dot(m, x, y), y, x);
            }
        double norm = dense_norm(m, x);
        dense_scale(m, norm > 1e-14 * before ? 1 / norm : 0, x);
    }
}

// Range finder with power iterations, then the exact decomposition within the range (Halko et al. 2011, algorithms 4.3
// and 5.1), in the mass inner product. Power iterations are orthonormalised on their small side, among the candidates:
// the vectors that come out of that are nearly the singular vectors, and so their long images are nearly orthogonal.
static fem_status randomized_pca(condensation *c) {
    fem_status status = FEM_OK;
    int        m = c->m, columns = c->options->r + c->options->oversampling, rank = 0;
    uint64_t   state = c->options->seed;
    if (columns > m) columns = m;
    size_t  sketch = (size_t)columns;
    double *T = fem_alloc((size_t)m * sketch, sizeof *T), *W = fem_alloc(sketch * sketch, sizeof *W);
    double *singular = fem_alloc(sketch, sizeof *singular);
    FEM_TRY(allocate_columns(c, columns));
    if (!T || !W || !singular) {
        status = no_memory(c);
        goto done;
    }
    for (size_t k = 0; k < (size_t)m * sketch; k++) T[k] = gaussian(&state);
    combine(c, columns, T);
    for (int k = 0; k < c->options->power_iterations; k++) {
        FEM_TRY(fem_progress_report(c->progress, "randomized PCA", k / (1.0 + c->options->power_iterations)));
        FEM_TRY(project_candidates(c, columns, T));
        orthonormalise_small(m, columns, T);
        combine(c, columns, T);
    }
    FEM_TRY(orthonormalise(c, columns, c->options->power_iterations > 0, &rank));
    FEM_TRY(project_candidates(c, rank, T));
    FEM_TRY(dense_svd(m, rank, T, singular, W));
    c->report.rank = rank;
    FEM_TRY(keep_singular(c, rank, singular));
    FEM_TRY(choose_columns(c, rank, total_energy(c)));
    measure_energy(c);
    for (int i = 0; i < c->r; i++) // rows of W are the vectors
        for (int k = 0; k < rank; k++)
            T[(size_t)i * (size_t)rank + (size_t)k] = W[(size_t)k * (size_t)rank + (size_t)i];
    FEM_TRY(tall_right(c->n, rank, c->r, T, c->U));
done:
    fem_free(T), fem_free(W), fem_free(singular);
    return status;
}

// R_ij = sqrt(3) x { +1: 1/6, 0: 4/6, -1: 1/6 }; the product is not orthonormal, whatever the papers hope.
static fem_status random_projection(condensation *c) {
    fem_status status = FEM_OK;
    int        m = c->m, r = c->options->r;
    uint64_t   state = c->options->seed;
    double    *T = fem_alloc((size_t)m * (size_t)r, sizeof *T);
    if (!T) return no_memory(c);
    FEM_TRY(allocate_columns(c, r));
    for (size_t k = 0; k < (size_t)m * (size_t)r; k++) {
        double x = uniform(&state);
        T[k] = x <= 1.0 / 6 ? sqrt(3) : x <= 2.0 / 6 ? -sqrt(3) : 0;
    }
    combine(c, r, T);
    c->r = r;
done:
    fem_free(T);
    return status;
}

// ---- finish --------------------------------------------------------------------------------------------------------

static fem_status finish(condensation *c, modes_basis *basis) {
    fem_status status = FEM_OK;
    int        n = c->n, rank = 0;
    double    *T = NULL;
    if (c->options->method == MODES_PCA) { // nearly orthonormal by construction
        status = modes_mass_polish(&c->mass, c->trusted, c->r, c->U, &c->report.orthogonality);
        c->report.orthogonality = fmax(c->report.orthogonality, c->trust);
        c->report.polished = c->r - c->trusted;
        rank = status == FEM_OK ? c->r : 0;
        if (status == FEM_INDEFINITE) status = FEM_OK;
        FEM_TRY(status);
    } else {
        FEM_TRY(orthonormalise(c, c->r, c->options->method != MODES_RANDOM_PROJECTION, &rank));
    }
    if (rank < c->r) {
        status = fem_fail(FEM_BAD_INPUT, "%d columns were asked for, but only %d of them are independent", c->r, rank);
        goto done;
    }
    *basis = (modes_basis){.n = n, .r = c->r};
    basis->omega2 = fem_alloc((size_t)c->r, sizeof *basis->omega2);
    basis->U = c->r == c->width ? c->U : fem_realloc(c->U, (size_t)n * (size_t)c->r, sizeof *c->U);
    if (basis->U) c->U = NULL;
    if (!basis->omega2 || !basis->U) {
        status = no_memory(c);
        goto done;
    }
    memset(basis->omega2, 0, (size_t)c->r * sizeof *basis->omega2);
    for (int first = 0; first < c->r && !c->options->no_frequencies; first += MODES_PANEL) {
        int     columns = c->r - first < MODES_PANEL ? c->r - first : MODES_PANEL;
        double *u = basis->U + (size_t)first * (size_t)n;
        fem_sparse_multiply(c->problem->K, columns, u, c->panel);
        for (int j = 0; j < columns; j++)
            basis->omega2[first + j] = dense_dot(n, u + (size_t)j * (size_t)n, c->panel + (size_t)j * (size_t)n);
    }
    if (c->options->method == MODES_RANDOM_PROJECTION) {
        T = fem_alloc((size_t)c->m * (size_t)c->r, sizeof *T);
        if (!T) {
            status = no_memory(c);
            goto done;
        }
        c->U = basis->U;
        status = project_candidates(c, c->r, T);
        c->U = NULL;
        c->report.energy_kept = pow(dense_norm(c->m * c->r, T), 2) / total_energy(c);
        c->report.rank = c->r;
    }
done:
    fem_free(T);
    return status;
}

fem_status modes_condense(const modes_problem *problem, const modes_pool *pool, const double *omega2,
                          const modes_condense_options *options, const fem_progress *progress, modes_basis *result,
                          modes_condense_report *report) {
    fem_status   status = check_options(options, pool, omega2);
    modes_basis  basis = {0};
    condensation c = {.problem = problem, .pool = pool, .options = options, .progress = progress};
    if (status != FEM_OK) return status;
    if (pool->n != 3 * problem->mesh->vertex_count)
        return fem_fail(FEM_BAD_INPUT, "candidates with %d rows for a problem of %d vertices", pool->n,
                        problem->mesh->vertex_count);
    double bytes;
    c.n = pool->n, c.m = c.report.candidates = pool->count;
    status = modes_condense_size(options, c.n, c.m, &bytes);
    if (status != FEM_OK) return status;
    double begin = fem_seconds();
    c.scale = fem_alloc((size_t)c.m, sizeof *c.scale);
    c.weights = fem_calloc((size_t)c.m, sizeof *c.weights);
    c.panel = fem_alloc((size_t)c.n * MODES_PANEL, sizeof *c.panel);
    if (options->method == MODES_PCA) c.G = fem_alloc((size_t)c.m * (size_t)c.m, sizeof *c.G);
    if (!c.scale || !c.weights || !c.panel || (options->method == MODES_PCA && !c.G)) {
        status = no_memory(&c);
        goto done;
    }
    FEM_TRY(modes_mass_create(&c.mass, problem->M));
    FEM_TRY(weigh(&c, omega2));
    if (!(total_energy(&c) > 0)) {
        status = fem_fail(FEM_BAD_INPUT, "all %d candidates are zero: there is nothing to condense", c.m);
        goto done;
    }
    double middle = fem_seconds();
    FEM_TRY(options->method == MODES_PCA              ? pca(&c)
            : options->method == MODES_RANDOMIZED_PCA ? randomized_pca(&c)
                                                      : random_projection(&c));
    double end = fem_seconds();
    FEM_TRY(finish(&c, &basis));
    c.report.seconds_scale = middle - begin;
    c.report.seconds_condense = end - middle;
    c.report.seconds_finish = fem_seconds() - end;
    modes_basis_destroy(result);
    *result = basis;
    basis = (modes_basis){0};
    if (report) {
        *report = c.report;
        c.report.singular = NULL;
    }
done:
    modes_basis_destroy(&basis);
    modes_mass_destroy(&c.mass);
    fem_free(c.scale), fem_free(c.weights), fem_free(c.panel), fem_free(c.G), fem_free(c.U);
    fem_free(c.report.singular);
    return status;
}

fem_status modes_pool_errors(const modes_problem *problem, const modes_pool *pool, const modes_basis *basis,
                             double *errors) {
    fem_status status = FEM_OK;
    modes_mass mass = {0};
    int        n = pool->n, r = basis->r;
    double    *X = fem_alloc((size_t)n * MODES_PANEL, sizeof *X), *Y = fem_alloc((size_t)n * MODES_PANEL, sizeof *Y);
    double    *C = fem_alloc((size_t)r * MODES_PANEL, sizeof *C);
    if (!X || !Y || !C) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the errors of %d candidates", pool->count);
        goto done;
    }
    FEM_TRY(modes_mass_create(&mass, problem->M));
    for (int first = 0; first < pool->count; first += MODES_PANEL) {
        int columns = pool->count - first < MODES_PANEL ? pool->count - first : MODES_PANEL;
        memcpy(X, pool->X + (size_t)first * (size_t)n, (size_t)n * (size_t)columns * sizeof *X);
        modes_mass_multiply(&mass, columns, X, Y);
        for (int j = 0; j < columns; j++)
            errors[first + j] = dense_dot(n, X + (size_t)j * (size_t)n, Y + (size_t)j * (size_t)n);
        for (int pass = 0; pass < 2; pass++) { // twice: the second takes out what rounding left
            FEM_TRY(tall_inner(n, r, columns, basis->U, Y, C));
            tall_add(n, r, columns, -1, basis->U, C, X);
            modes_mass_multiply(&mass, columns, X, Y);
        }
        for (int j = 0; j < columns; j++) {
            double left = dense_dot(n, X + (size_t)j * (size_t)n, Y + (size_t)j * (size_t)n);
            errors[first + j] = errors[first + j] > 0 ? sqrt(fmax(left, 0) / errors[first + j]) : 0;
        }
    }
done:
    fem_free(X), fem_free(Y), fem_free(C);
    modes_mass_destroy(&mass);
    return status;
}
