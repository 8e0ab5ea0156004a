// How good the modes of a stitched body are, without the true ones, and when to make them anew.
//
// K^-1 M damps what a mode has of higher ones by omega_j^2 / omega_k^2. So the Ritz vectors of [U, K^-1 M U, (K^-1 M)^2
// G], G random, are much closer to the true modes than those of U: what U has of them estimates what it has of the true
// modes, and their frequencies stand for the true ones. Random fields find modes that U has nothing of.
#include "libmodes/stitch_internal.h"

#include <stdio.h>
#include <string.h>

modes_rebuild_rule modes_rebuild_default_rule(void) {
    return (modes_rebuild_rule){.modes = 20, .error = 0.01, .share = 0.99, .probes = 6};
}

void modes_stitch_quality_destroy(modes_stitch_quality *quality) {
    fem_free(quality->residual), fem_free(quality->error), fem_free(quality->share);
    *quality = (modes_stitch_quality){0};
}

// |K^ x - omega^2 M x| in the M^-1 norm, over omega^2; |x| is 1 in the M norm
static fem_status residuals(modes_stitched *s, const modes_basis *basis, int count, double *residual) {
    fem_status status = FEM_OK;
    size_t     n = (size_t)s->n;
    double    *X = fem_alloc(3 * n * (size_t)count, sizeof *X), *MX = X ? X + n * (size_t)count : NULL;
    if (!X) return stitch_no_memory(s, "residuals");
    modes_stitched_multiply(s, count, basis->U, X);
    modes_mass_multiply(&s->mass, count, basis->U, MX);
    for (size_t i = 0; i < (size_t)count * n; i++) {
        X[i] -= basis->omega2[i / n] * MX[i];
        if (s->inverse->fixed[i % n]) X[i] = 0;
    }
    FEM_TRY(stitch_mass_solve(s, count, X, 1e-3, X + 2 * n * (size_t)count));
    for (int j = 0; j < count; j++) {
        double square = dense_dot(s->n, X + (size_t)j * n, X + (2 * (size_t)count + (size_t)j) * n);
        residual[j] = basis->omega2[j] > 0 ? sqrt(fmax(square, 0)) / basis->omega2[j] : INFINITY;
    }
done:
    fem_free(X);
    return status;
}

// Z (n x wide) = [U, K^-1 M U, (K^-1 M)^2 G]
static fem_status improve(modes_stitched *s, const modes_basis *basis, int count, int probes, double *Z) {
    fem_status status = FEM_OK;
    size_t     n = (size_t)s->n;
    int        wide = count > probes ? count : probes;
    double    *MX = fem_alloc(n * (size_t)wide, sizeof *MX), *G = Z + 2 * (size_t)count * n;
    unsigned   state = 12345;
    if (!MX) return stitch_no_memory(s, "probes");
    memcpy(Z, basis->U, (size_t)count * n * sizeof *Z);
    modes_mass_multiply(&s->mass, count, basis->U, MX);
    FEM_TRY(modes_stitched_solve(s, count, MX, Z + (size_t)count * n));
    for (size_t i = 0; i < (size_t)probes * n; i++) {
        state = state * 1664525u + 1013904223u;
        G[i] = s->inverse->fixed[i % n] ? 0 : (double)(state >> 8) / 8388608.0 - 1;
    }
    for (int k = 0; k < 2 && probes > 0; k++) {
        modes_mass_multiply(&s->mass, probes, G, MX);
        FEM_TRY(modes_stitched_solve(s, probes, MX, G));
    }
done:
    fem_free(MX);
    return status;
}

fem_status stitch_ritz(modes_stitched *s, int columns, int count, double *Z, double *values) {
    fem_status                  status = FEM_OK;
    size_t                      n = (size_t)s->n;
    int                         rank = 0;
    modes_orthogonalise_options options = modes_orthogonalise_default_options();
    double                     *KZ = fem_alloc(n * (size_t)columns, sizeof *KZ),
           *A = fem_alloc((size_t)columns * (size_t)columns, sizeof *A);
    double *all = fem_alloc((size_t)columns, sizeof *all);
    if (!KZ || !A || !all) {
        status = stitch_no_memory(s, "probes");
        goto done;
    }
    FEM_TRY(modes_orthogonalise(s->problem, &options, columns, Z, &rank, NULL));
    modes_stitched_multiply(s, rank, Z, KZ);
    FEM_TRY(tall_inner(s->n, rank, rank, Z, KZ, A));
    FEM_TRY(dense_symmetric_eigen(rank, A, all));
    memcpy(values, all, (size_t)count * sizeof *values); // rank >= count: the first columns are independent
    FEM_TRY(tall_right(s->n, rank, count, A, Z));
done:
    fem_free(KZ), fem_free(A), fem_free(all);
    return status;
}

static void judge(const modes_rebuild_rule *rule, modes_stitch_quality *q) {
    int error_at = 0, share_at = 0;
    q->least_share = 1;
    for (int j = 0; j < q->count; j++) {
        if (q->error[j] > q->worst_error) q->worst_error = q->error[j], error_at = j;
        if (q->share[j] < q->least_share) q->least_share = q->share[j], share_at = j;
    }
    q->rebuild = !(q->worst_error <= rule->error && q->least_share >= rule->share);
    if (!(q->worst_error <= rule->error))
        snprintf(q->reason, sizeof q->reason, "frequency %d is about %.3g %% off, the rule allows %.3g %%",
                 error_at + 1, 100 * q->worst_error, 100 * rule->error);
    else if (q->rebuild)
        snprintf(q->reason, sizeof q->reason, "about %.3g %% of mode %d is in the basis, the rule wants %.3g %%",
                 100 * q->least_share, share_at + 1, 100 * rule->share);
}

fem_status modes_stitched_examine(modes_stitched *s, const modes_basis *basis, const modes_rebuild_rule *rule,
                                  modes_stitch_quality *result) {
    fem_status           status = FEM_OK;
    double               begun = fem_seconds();
    modes_stitch_quality q = {0};
    double              *Z = NULL, *values = NULL;
    if (rule->modes < 1 || rule->probes < 0 || !(rule->error >= 0) || !(rule->share >= 0 && rule->share <= 1))
        return fem_fail(FEM_BAD_INPUT,
                        "rebuild: %d modes, %d probes, error %g, share %g; expected > 0, >= 0, >= 0, 0 to 1",
                        rule->modes, rule->probes, rule->error, rule->share);
    if (basis->n != s->n) return fem_fail(FEM_BAD_INPUT, "modes with %d rows for a body with %d", basis->n, s->n);
    q.count = rule->modes < basis->r ? rule->modes : basis->r;
    int columns = 2 * q.count + rule->probes;
    q.residual = fem_calloc((size_t)q.count, sizeof *q.residual);
    q.error = fem_calloc((size_t)q.count, sizeof *q.error);
    q.share = fem_calloc((size_t)q.count, sizeof *q.share);
    values = fem_alloc((size_t)q.count, sizeof *values);
    Z = fem_alloc((size_t)columns * (size_t)s->n, sizeof *Z);
    if (!q.residual || !q.error || !q.share || !values || !Z) {
        status = stitch_no_memory(s, "quality");
        goto done;
    }
    FEM_TRY(residuals(s, basis, q.count, q.residual));
    FEM_TRY(improve(s, basis, q.count, rule->probes, Z));
    FEM_TRY(stitch_ritz(s, columns, q.count, Z, values));
    FEM_TRY(modes_coverage(s->problem, basis->r, basis->U, q.count, Z, q.share));
    for (int j = 0; j < q.count; j++)
        q.error[j] = values[j] > 0 ? fabs(sqrt(basis->omega2[j] / values[j]) - 1) : INFINITY;
    judge(rule, &q);
    q.seconds = fem_seconds() - begun;
    modes_stitch_quality_destroy(result);
    *result = q;
    q = (modes_stitch_quality){0};
done:
    modes_stitch_quality_destroy(&q);
    fem_free(Z), fem_free(values);
    return status;
}
