// Modes of a stitched body made better by steps of inverse iteration.
#include "libmodes/stitch_search.h"

#include <string.h>

// One step of inverse iteration from Ritz vectors x of the space that was searched, all of which stand in the basis (X,
// with omega2 = L); x are the `wanted` columns of it that `pick` lists. E = K^-1 M x l, freed of X twice, is added to
// the space. K E is multiplied out: from K K^-1 M x it would follow but for rounding, which counts as E goes to zero.
// The first `count` Ritz vectors of [X, E] take the basis' place. away[j] (wanted) becomes |E_j|^2.
static const double settled = 1e-14; // |E|^2 below which what a step adds to a mode is taken for rounding
static const double apart = 1e-6;    // squared sine between two of them below which it is

static fem_status refine(stitch_search *q, int wanted, const int *pick, int count, double *away) {
    fem_status  status = FEM_OK;
    modes_basis better = {0};
    size_t      n = (size_t)q->n;
    int         p = q->basis.r, m = p + wanted, rank = 0;
    size_t      block = n * (size_t)wanted, square = (size_t)m * (size_t)m;
    double     *L = q->basis.omega2, begun = fem_seconds();
    double     *E = fem_alloc(block, sizeof *E), *work = fem_alloc(block, sizeof *work);
    double     *D = fem_alloc((size_t)m * (size_t)wanted, sizeof *D);
    double     *vectors = fem_alloc(square, sizeof *vectors), *values = fem_alloc((size_t)m, sizeof *values);
    fem_free(q->A), fem_free(q->G);
    q->m = m, q->A = fem_calloc(square, sizeof *q->A), q->G = fem_calloc(square, sizeof *q->G);
    if (!E || !work || !D || !vectors || !values || !q->A || !q->G) {
        status = stitch_no_memory(q->s, "modes");
        goto done;
    }
    for (int j = 0; j < wanted; j++) memcpy(E + (size_t)j * n, q->basis.U + (size_t)pick[j] * n, n * sizeof *E);
    modes_mass_multiply(&q->s->mass, wanted, E, work);
    FEM_TRY(stitch_solve(q->s, wanted, false, work, E));
    for (size_t i = 0; i < block; i++) E[i] *= L[pick[i / n]];
    for (int pass = 0; pass < 2; pass++) {
        modes_mass_multiply(&q->s->mass, wanted, E, work);
        FEM_TRY(tall_inner(q->n, p, wanted, q->basis.U, work, D));
        tall_add(q->n, p, wanted, -1, q->basis.U, D, E);
    }
    modes_mass_multiply(&q->s->mass, wanted, E, work);
    FEM_TRY(tall_inner(q->n, wanted, wanted, E, work, D));
    stitch_put_block(m, p, p, wanted, wanted, D, false, q->G);
    modes_stitched_multiply(q->s, wanted, E, work);
    FEM_TRY(tall_inner(q->n, wanted, wanted, E, work, D));
    stitch_put_block(m, p, p, wanted, wanted, D, false, q->A);
    FEM_TRY(tall_inner(q->n, p, wanted, q->basis.U, work, D));
    stitch_put_block(m, 0, p, p, wanted, D, true, q->A);
    for (int i = 0; i < p; i++) q->G[(size_t)i * (size_t)(m + 1)] = 1, q->A[(size_t)i * (size_t)(m + 1)] = L[i];
    for (int j = 0; j < wanted; j++) {
        size_t at = (size_t)(p + j);
        away[j] = q->G[at * (size_t)(m + 1)];
        if (away[j] > settled) continue;
        for (size_t i = 0; i < (size_t)m; i++) q->G[at * (size_t)m + i] = q->G[i * (size_t)m + at] = 0;
    }
    FEM_TRY(stitch_small_problem(q, apart, values, vectors, &rank));
    if (count > rank) count = rank;
    FEM_TRY(modes_basis_allocate(&better, q->n, count));
    for (int j = 0; j < count; j++) better.omega2[j] = fmax(values[j], 0);
    for (int k = 0; k < 2; k++) {
        int rows = k ? wanted : p;
        for (int j = 0; j < count; j++)
            for (int i = 0; i < rows; i++)
                q->G[(size_t)j * (size_t)rows + (size_t)i] = vectors[(size_t)j * (size_t)m + (size_t)(k * p + i)];
        tall_add(q->n, rows, count, 1, k ? E : q->basis.U, q->G, better.U);
    }
    modes_basis_destroy(&q->basis);
    q->basis = better;
    better = (modes_basis){0};
    q->report.solves += wanted;
    q->report.seconds_refine += fem_seconds() - begun;
done:
    modes_basis_destroy(&better);
    fem_free(E), fem_free(work), fem_free(D), fem_free(vectors), fem_free(values);
    return status;
}

enum { MOST_STEPS = 4 };
// A step squares about what a mode lacks of the true one, |E|^2 (oball of the benchmark: 0.74, 0.04, 0.0002); but a
// mode that the space had nothing of is only found by it. Automatic refinement ends with the step that changes no
// frequency of the first STITCH_JUDGED by more than `steady`, or with a further one that leaves less than `lacking` of
// each; modes that lack less than `close_enough` before a step need no other.
static const double steady = 3e-3, lacking = 0.005, close_enough = 1e-3;

// The old modes are all that there are below the highest of them, in a domain that was made softer or stiffer times its
// factor: what is above that of the softest domain is not to be expected of them.
double stitch_known_up_to(const stitch_search *q) {
    const modes_stitched *s = q->s;
    double                highest = 0, softest = INFINITY;
    for (int j = 0; j < q->r; j++) {
        const double *u = q->old->U + (size_t)j * (size_t)q->n;
        int           most = 0;
        for (int i = 0; i < q->n; i++)
            if (fabs(u[i]) > fabs(u[most])) most = i;
        double factor = s->domain[most / 3] >= 0 ? s->factor[s->domain[most / 3]] : 1;
        highest = fmax(highest, q->old->omega2[j] / factor);
    }
    for (int d = 0; d < s->domains; d++) softest = fmin(softest, s->factor[d]);
    return highest * softest;
}

fem_status stitch_refine(stitch_search *q) {
    fem_status status = FEM_OK;
    int        count = q->count, judged = count < STITCH_JUDGED ? count : STITCH_JUDGED, wanted = count;
    int        most = q->options->refine >= 0 ? q->options->refine : MOST_STEPS;
    int       *pick = fem_alloc((size_t)count, sizeof *pick);
    double    *away = fem_alloc(2 * (size_t)count, sizeof *away), *before = away ? away + count : NULL;
    if (!pick || !away) {
        status = stitch_no_memory(q->s, "modes");
        goto done;
    }
    for (int j = 0; j < count; j++) pick[j] = j;
    for (int step = 0; step < most && wanted > 0; step++) {
        double lacks = 0, change = 0;
        int    left = 0;
        memcpy(before, q->basis.omega2, (size_t)judged * sizeof *before);
        FEM_TRY(refine(q, wanted, pick, q->basis.r + wanted, away));
        q->report.refined++;
        for (int k = 0; k < wanted; k++) {
            if (pick[k] < judged) lacks = fmax(lacks, away[k] * away[k]);
            if (q->options->refine >= 0 || away[k] > close_enough) pick[left++] = pick[k];
        }
        wanted = left;
        for (int j = 0; j < judged; j++)
            if (q->basis.omega2[j] > 0) change = fmax(change, sqrt(before[j] / q->basis.omega2[j]) - 1);
        if (q->options->refine < 0 && (change < steady || (step > 0 && lacks < lacking))) break;
    }
    if (q->basis.r > count) { // the others were there to be refined with
        q->basis.r = count;
        double *U = fem_realloc(q->basis.U, (size_t)q->n * (size_t)count, sizeof *U);
        if (U) q->basis.U = U;
    }
done:
    fem_free(pick), fem_free(away);
    return status;
}
