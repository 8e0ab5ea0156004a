// Reduced modified Gram-Schmidt (P0 section 4.2 and Algorithm 2): inner products over a sample of nodes, and no
// subtraction where the cosine is small.
//
// Where the algorithm as printed cannot be meant: its line 2 must divide by the sample's norm; line 9 must subtract
// when |alpha| is at least the threshold, not below; alpha is a cosine, so line 10 must subtract alpha l v_j with l the
// norm of v_i at that time; and lines 12 to 16 belong to that subtraction, since without it the norm does not change.
// One pass leaves cosines near 1 (the errors of l and of what was left out add up), so the default is two. The result
// is orthonormal on the sample only; a Cholesky factorisation of U^T M U ends it.
//
// Cosines and norms need the sample alone. So the sample runs ahead, each column's combination of the columns before it
// is written down, and whole vectors follow with two matrix products a panel. `plain` subtracts vector by vector.
#include "libmodes/krylov_internal.h"

#include <string.h>

static void gather(const modes_sample *sample, const double *u, double *s) {
    for (int k = 0; k < sample->count; k++)
        for (int i = 0; i < 3; i++)
            s[3 * k + i] = sqrt(sample->weight[k]) * u[3 * (size_t)sample->vertex[k] + (size_t)i];
}

// Where subtractions and scalings of a column go to besides its sample.
typedef struct follower {
    modes_orthogonaliser *o;
    bool                  plain;
    double               *v;             // plain: the whole vector
    int                   before, width; // else: v = U d + X t, U of `before`, X of `width` columns
    double               *D, *T;         // before x width, width x width: columns of those finished in this panel
    double               *d, *t;         // of the column at hand
} follower;

static void follow_scale(const follower *f, double alpha) {
    if (f->plain) {
        dense_scale(f->o->n, alpha, f->v);
        return;
    }
    dense_scale(f->before, alpha, f->d);
    dense_scale(f->width, alpha, f->t);
}

static void follow_subtract(const follower *f, double alpha, int j) {
    if (f->plain) {
        dense_axpy(f->o->n, -alpha, f->o->U + (size_t)j * (size_t)f->o->n, f->v);
        return;
    }
    if (j < f->before) {
        f->d[j] -= alpha;
        return;
    }
    size_t k = (size_t)(j - f->before);
    dense_axpy(f->before, -alpha, f->D + k * (size_t)f->before, f->d);
    dense_axpy(f->width, -alpha, f->T + k * (size_t)f->width, f->t);
}

// One pass over a column whose sample is s: lines 2 and 6 to 18. Returns the fraction of its sample norm that was new.
static double reduced_pass(modes_orthogonaliser *o, const follower *f, int count, double *s) {
    int    m = 3 * o->sample.count;
    double norm = dense_norm(m, s), l = 1, left = 1;
    if (norm == 0) return 0;
    dense_scale(m, 1 / norm, s), follow_scale(f, 1 / norm);
    for (int j = 0; j < count; j++) {
        const double *sj = o->S + (size_t)j * (size_t)m;
        double        alpha = dense_dot(m, s, sj) / l;
        if (fabs(alpha) < o->options.threshold) {
            o->report.culled++;
            continue;
        }
        o->report.subtractions++;
        dense_axpy(m, -alpha * l, sj, s), follow_subtract(f, alpha * l, j);
        double rest = 1 - alpha * alpha;
        if (rest < 0.01) { // the incremental norm would lose its digits: evaluate it afresh
            double fresh = dense_norm(m, s);
            if (fresh == 0) return 0;
            dense_scale(m, 1 / fresh, s), follow_scale(f, 1 / fresh);
            left *= fresh, l = 1;
        } else {
            l *= sqrt(rest);
        }
    }
    dense_scale(m, 1 / l, s), follow_scale(f, 1 / l);
    return left * l;
}

// All passes over a column; true when enough of it was new.
static bool reduce_column(modes_orthogonaliser *o, const follower *f, int count, double *s) {
    double left = 1;
    for (int pass = 0; pass < o->options.passes; pass++) left *= reduced_pass(o, f, count, s);
    return left > o->options.dependence;
}

static void plain_add(modes_orthogonaliser *o, int columns) {
    for (int remaining = columns; remaining > 0; remaining--) {
        double  *v = o->U + (size_t)o->count * (size_t)o->n, *s = o->S + 3 * (size_t)o->sample.count * (size_t)o->count;
        follower f = {.o = o, .plain = true, .v = v};
        gather(&o->sample, v, s);
        if (reduce_column(o, &f, o->count, s))
            o->count++;
        else
            modes_close_gap(o->n, remaining - 1, v);
    }
}

static fem_status panel_add(modes_orthogonaliser *o, int width, double *D, double *T) {
    fem_status status = FEM_OK;
    double    *X = o->U + (size_t)o->count * (size_t)o->n;
    int        kept = 0, before = o->count;
    for (int j = 0; j < width; j++) {
        double  *s = o->S + 3 * (size_t)o->sample.count * (size_t)(before + kept);
        follower f = {.o = o, .before = before, .width = width, .D = D, .T = T};
        f.d = D + (size_t)kept * (size_t)before, f.t = T + (size_t)kept * (size_t)width;
        memset(f.d, 0, (size_t)before * sizeof *f.d);
        memset(f.t, 0, (size_t)width * sizeof *f.t);
        f.t[j] = 1;
        gather(&o->sample, X + (size_t)j * (size_t)o->n, s);
        kept += reduce_column(o, &f, before + kept, s);
    }
    FEM_TRY(tall_right(o->n, width, kept, T, X));
    tall_add(o->n, before, kept, 1, o->U, D, X);
    o->count += kept;
done:
    return status;
}

fem_status modes_reduced_add(modes_orthogonaliser *o, int columns) {
    fem_status status = FEM_OK;
    if (o->options.plain) {
        plain_add(o, columns);
        return FEM_OK;
    }
    double *D = fem_alloc((size_t)o->capacity * MODES_PANEL, sizeof *D);
    double *T = fem_alloc(MODES_PANEL * MODES_PANEL, sizeof *T);
    if (!D || !T) {
        status = fem_fail(FEM_NO_MEMORY, "no memory to orthogonalise %d columns", columns);
        goto done;
    }
    for (int first = 0; first < columns; first += MODES_PANEL) {
        int width = columns - first < MODES_PANEL ? columns - first : MODES_PANEL;
        int before = o->count;
        FEM_TRY(panel_add(o, width, D, T));
        int dropped = before + width - o->count, behind = columns - first - width;
        if (dropped > 0 && behind > 0)
            memmove(o->U + (size_t)o->count * (size_t)o->n, o->U + (size_t)(before + width) * (size_t)o->n,
                    (size_t)behind * (size_t)o->n * sizeof *o->U);
    }
done:
    fem_free(D), fem_free(T);
    return status;
}

fem_status modes_reduced_finish(modes_orthogonaliser *o) {
    fem_status status = FEM_OK;
    int        r = o->count, m = 3 * o->sample.count;
    double    *G = fem_alloc((size_t)r * (size_t)r, sizeof *G), *T = fem_alloc((size_t)r * (size_t)r, sizeof *T);
    if (!G || !T) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the Gram matrix of %d columns", r);
        goto done;
    }
    dense_gemm(true, false, r, r, m, 1, o->S, o->S, 0, G);
    o->report.sample_orthogonality = tall_distance_from_identity(r, G);
    FEM_TRY(modes_mass_gram(&o->mass, 0, r, o->U, G));
    int independent = tall_cholesky_inverse(r, G, 1e-12, NULL, T);
    if (independent < r) {
        status =
            fem_fail(FEM_INDEFINITE,
                     "orthogonalise: column %d of %d depends on those before it, which a sample of %d nodes did not "
                     "show; more samples, or another method, would do",
                     independent + 1, r, o->sample.count);
        goto done;
    }
    FEM_TRY(tall_right(o->n, r, r, T, o->U));
done:
    fem_free(G), fem_free(T);
    return status;
}
