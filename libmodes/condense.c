// PCA, randomized PCA and random projection of a pool of candidates.
//
// Candidates are used as Y D: Y mass-normalised columns, D the weights. PCA never factors M: with G = Y^T M Y (all ones
// on the diagonal) and its pivoted Cholesky factor G = L L^T, Q = Y L^-T is mass-orthonormal and Y D = Q (L^T D), so the
// singular values are those of the small matrix L^T D. The weights may span ten orders of magnitude; since they enter
// after G, small singular values keep their digits, which those of D G D would lose.
#include "libmodes/internal.h"

#include <string.h>

static const double independent = 1e-12; // squared sine below which a candidate counts as one of those before it

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
    int                           n, m, r;
    double                       *Y, *MY;    // n x m: mass-normalised candidates; their products with M (PCA)
    double                       *weights;   // m
    double                       *U, *MU;    // n x r (at first, for the sketch, more)
    double                       *small;     // work
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

// ---- weights ---------------------------------------------------------------------------------------------------------

// y = M x in the metric: the mass matrix, or its row sums.
static fem_status metric_products(const condensation *c, int columns, const double *X, double *MX) {
    fem_sparse_multiply(c->problem->M, columns, X, MX);
    if (c->options->metric == MODES_METRIC_MASS) return FEM_OK;
    double *ones = fem_alloc(2 * (size_t)c->n, sizeof *ones);
    if (!ones) return no_memory(c);
    for (int i = 0; i < c->n; i++) ones[i] = 1;
    fem_sparse_multiply(c->problem->M, 1, ones, ones + c->n);
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < c->n; i++)
            MX[(size_t)j * (size_t)c->n + (size_t)i] = ones[c->n + i] * X[(size_t)j * (size_t)c->n + (size_t)i];
    fem_free(ones);
    return FEM_OK;
}

static double frequency_weight(const modes_origin *origin, const double *omega2) {
    double weight = 1;
    for (int k = 0; k <= origin->order; k++) weight *= omega2[0] / omega2[origin->mode[k]];
    return weight;
}

// Y and the weights. A candidate that is zero gets weight 0. With the lumped metric the weights are those of the mass
// norm, as VegaFEM's: Y is normalised by the metric, and the ratio of the norms goes into the weight.
static fem_status weigh(condensation *c, const double *omega2) {
    fem_status    status = FEM_OK;
    int           n = c->n;
    modes_scaling scaling = c->options->scaling;
    double       *Kx = fem_alloc((size_t)n, sizeof *Kx), *norms = fem_alloc((size_t)c->m, sizeof *norms);
    double        smallest = INFINITY;
    if (!Kx || !norms) {
        status = no_memory(c);
        goto done;
    }
    memcpy(c->Y, c->pool->X, (size_t)n * (size_t)c->m * sizeof *c->Y);
    fem_sparse_multiply(c->problem->M, c->m, c->Y, c->MY);
    for (int j = 0; j < c->m; j++) {
        const double *x = c->Y + (size_t)j * (size_t)n;
        double        square = dense_dot(n, x, c->MY + (size_t)j * (size_t)n);
        norms[j] = square > 0 ? sqrt(square) : 0;
        if (!isfinite(square)) {
            status = fem_fail(FEM_BAD_INPUT, "candidate %d is not finite", j);
            goto done;
        }
        c->weights[j] = scaling == MODES_SCALE_NONE ? norms[j] : norms[j] > 0;
        if (scaling == MODES_SCALE_FREQUENCY) c->weights[j] *= frequency_weight(&c->pool->origin[j], omega2);
        if (scaling == MODES_SCALE_RAYLEIGH && square > 0) {
            fem_sparse_multiply(c->problem->K, 1, x, Kx);
            c->weights[j] = square / dense_dot(n, x, Kx);
            smallest = fmin(smallest, 1 / c->weights[j]);
        }
    }
    for (int j = 0; scaling == MODES_SCALE_RAYLEIGH && j < c->m; j++) c->weights[j] *= smallest;
    if (c->options->metric == MODES_METRIC_LUMPED) FEM_TRY(metric_products(c, c->m, c->Y, c->MY));
    for (int j = 0; j < c->m; j++) {
        double *x = c->Y + (size_t)j * (size_t)n, *mx = c->MY + (size_t)j * (size_t)n;
        double  norm = sqrt(fmax(dense_dot(n, x, mx), 0));
        if (norms[j] > 0) c->weights[j] *= norm / norms[j];
        dense_scale(n, norm > 0 ? 1 / norm : 0, x);
        dense_scale(n, norm > 0 ? 1 / norm : 0, mx);
    }
done:
    fem_free(Kx), fem_free(norms);
    return status;
}

// ---- PCA -------------------------------------------------------------------------------------------------------------

// G = L L^T with pivots, L m x rank (column-major, leading dimension m, rows in the order of the candidates).
static int pivoted_cholesky(int m, const double *G, double *L, int *pivots) {
    double *left = L + (size_t)m * (size_t)m; // what is left of the diagonal
    int     rank = 0;
    for (int j = 0; j < m; j++) left[j] = G[(size_t)j * (size_t)m + (size_t)j];
    for (; rank < m; rank++) {
        int best = 0;
        for (int j = 1; j < m; j++)
            if (left[j] > left[best]) best = j;
        if (!(left[best] > independent)) break;
        double *column = L + (size_t)rank * (size_t)m, root = sqrt(left[best]);
        memcpy(column, G + (size_t)best * (size_t)m, (size_t)m * sizeof *column);
        for (int k = 0; k < rank; k++)
            dense_axpy(m, -L[(size_t)k * (size_t)m + (size_t)best], L + (size_t)k * (size_t)m, column);
        dense_scale(m, 1 / root, column);
        for (int k = 0; k < rank; k++) column[pivots[k]] = 0; // exactly triangular
        for (int j = 0; j < m; j++) left[j] -= column[j] * column[j];
        left[best] = 0;
        pivots[rank] = best;
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
        return fem_fail(FEM_BAD_INPUT, "%d columns were asked for, but the %d candidates span only %d dimensions", o->r,
                        c->m, available);
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

static fem_status pca(condensation *c) {
    fem_status status = FEM_OK;
    int        m = c->m, n = c->n, rank = 0;
    size_t     square = (size_t)m * (size_t)m;
    int       *pivots = fem_alloc((size_t)m, sizeof *pivots);
    double    *G = fem_alloc(square, sizeof *G), *L = fem_alloc(square + (size_t)m, sizeof *L);
    double    *T = fem_alloc(square, sizeof *T), *W = fem_alloc(square, sizeof *W);
    double    *singular = fem_alloc((size_t)m, sizeof *singular);
    if (!pivots || !G || !L || !T || !W || !singular) {
        status = no_memory(c);
        goto done;
    }
    dense_gemm(true, false, m, m, n, 1, c->Y, c->MY, 0, G);
    rank = c->report.rank = pivoted_cholesky(m, G, L, pivots);
    for (int k = 0; k < rank; k++) // T = D L, m x rank
        for (int j = 0; j < m; j++)
            T[(size_t)k * (size_t)m + (size_t)j] = c->weights[j] * L[(size_t)k * (size_t)m + (size_t)j];
    FEM_TRY(dense_svd(m, rank, T, singular, W)); // row i of W: left singular vector i of L^T D in terms of Q
    FEM_TRY(keep_singular(c, rank, singular));
    FEM_TRY(choose_columns(c, rank, total_energy(c)));
    // U = Q W_r^T = Y_p L_p^-T W_r^T: back substitution with the rows of the pivots
    memset(G, 0, square * sizeof *G); // now m x r: coefficients of the candidates
    for (int i = 0; i < c->r; i++)
        for (int k = rank - 1; k >= 0; k--) {
            double sum = W[(size_t)k * (size_t)rank + (size_t)i];
            for (int l = k + 1; l < rank; l++)
                sum -= L[(size_t)k * (size_t)m + (size_t)pivots[l]] * G[(size_t)i * (size_t)m + (size_t)pivots[l]];
            G[(size_t)i * (size_t)m + (size_t)pivots[k]] = sum / L[(size_t)k * (size_t)m + (size_t)pivots[k]];
        }
    dense_gemm(false, false, n, c->r, m, 1, c->Y, G, 0, c->U);
done:
    fem_free(pivots), fem_free(G), fem_free(L), fem_free(T), fem_free(W), fem_free(singular);
    return status;
}
