// Modes of a stitched body from those of the body before, in three forms. [Mukherjee et al. 2016, section 4.1] and two
// of ours.
//
// All look in the span of W = [R1, U, E]: the rigid motions that are tied now, the old modes, and columns E. With the
// Cholesky factor of M the paper's P is an orthonormal basis of the part of L^-1 A that L^T U has not; L^-T P, which is
// all that is needed of it, spans the part of M^-1 A that U has not, in the mass inner product: no factor of M.
//
// The small matrices W^T M W and W^T K^ W need few long products. E = M^-1 B: M E = B. E = K^-1 B (K of the stitches
// before): K E = B but for rigid load. E is first freed of [R1, U], from then on by small matrices where nothing
// cancels.
#include "libmodes/stitch_search.h"

#include <string.h>

const char *modes_stitch_form_name(modes_stitch_form form) {
    return form == MODES_STITCH_LOWRANK ? "lowrank" : form == MODES_STITCH_RITZ ? "ritz" : "attachment";
}

modes_stitch_options modes_stitch_default_options(void) {
    return (modes_stitch_options){.form = MODES_STITCH_ATTACHMENT, .refine = -1};
}

// ---- the search space -------------------------------------------------------------------------------------------

static fem_status no_memory(const stitch_search *q) { return stitch_no_memory(q->s, "modes"); }

static void search_destroy(stitch_search *q) {
    stitch_coupling_destroy(&q->before);
    fem_free(q->R), fem_free(q->T), fem_free(q->W), fem_free(q->MW), fem_free(q->A), fem_free(q->G);
    modes_basis_destroy(&q->basis);
}

// X (n x 3 per stitch) = B of the fresh stitches
static void unit_springs(const stitch_search *q, double *X) {
    size_t n = (size_t)q->n;
    memset(X, 0, 3 * (size_t)q->fresh * n * sizeof *X);
    for (int k = 0; k < q->fresh; k++)
        for (int i = 0; i < 3; i++) {
            double unit[3] = {i == 0, i == 1, i == 2};
            stitch_spread(q->s, q->options->since + k, 1, 1, 1, unit, X + (3 * (size_t)k + (size_t)i) * n);
        }
}

// E = M^-1 B. Blocks of M are multiples of the identity, so one solution serves the three directions.
static fem_status mass_responses(stitch_search *q) {
    fem_status status = FEM_OK;
    size_t     n = (size_t)q->n;
    double    *B = NULL, *X = NULL;
    if (!q->s->mass.start) { // they are not
        B = fem_alloc((size_t)q->enriched * n, sizeof *B);
        if (!B) return no_memory(q);
        unit_springs(q, B);
        FEM_TRY(stitch_mass_solve(q->s, q->enriched, B, 1e-13, q->E));
        goto done;
    }
    B = fem_calloc((size_t)q->fresh * n, sizeof *B), X = fem_alloc((size_t)q->fresh * n, sizeof *X);
    if (!B || !X) {
        status = no_memory(q);
        goto done;
    }
    for (int k = 0; k < q->fresh; k++) {
        const double ones[3] = {1, 1, 1};
        stitch_spread(q->s, q->options->since + k, 1, 1, 1, ones, B + (size_t)k * n);
    }
    FEM_TRY(stitch_mass_solve(q->s, q->fresh, B, 1e-13, X));
    memset(q->E, 0, (size_t)q->enriched * n * sizeof *q->E);
    for (int k = 0; k < q->fresh; k++)
        for (size_t i = 0; i < n; i++) q->E[(3 * (size_t)k + i % 3) * n + i] = X[(size_t)k * n + i];
done:
    fem_free(B), fem_free(X);
    return status;
}

// ---- which static answers -----------------------------------------------------------------------------------------

// F (3 fresh x 3 fresh) = B^T K^-1 B of the fresh stitches B, K with those before. *tall (3 count x 3 fresh) and *c
// (tied before x 3 fresh): K^-1 B = G [all stitches] tall + R c.
typedef struct static_system {
    double *F, *tall, *c;
} static_system;

static void static_system_destroy(static_system *y) { fem_free(y->F), fem_free(y->tall), fem_free(y->c); }

static fem_status make_static_system(stitch_search *q, static_system *y) {
    modes_stitched *s = q->s;
    int             rows = 3 * q->fresh, m = 3 * s->count, before = 3 * q->options->since, tied = q->before.tied;
    y->F = fem_alloc((size_t)rows * (size_t)rows, sizeof *y->F);
    y->tall = fem_calloc((size_t)m * (size_t)rows, sizeof *y->tall);
    y->c = fem_calloc((size_t)tied * (size_t)rows + 1, sizeof *y->c);
    double *P = fem_alloc((size_t)rows * (size_t)tied + 1, sizeof *P);
    double *t = fem_alloc((size_t)before * (size_t)rows + 1, sizeof *t);
    if (!y->F || !y->tall || !y->c || !P || !t) {
        fem_free(P), fem_free(t);
        return no_memory(q);
    }
    for (int j = 0; j < rows; j++) {
        const double *f = s->F + (size_t)(before + j) * (size_t)m;
        memcpy(y->F + (size_t)j * (size_t)rows, f + before, (size_t)rows * sizeof *f);
        memcpy(t + (size_t)j * (size_t)before, f, (size_t)before * sizeof *f);
        y->tall[(size_t)j * (size_t)m + (size_t)(before + j)] = 1;
    }
    if (before > 0) {
        if (tied > 0) stitch_differences(s, q->options->since, q->fresh, tied, q->before.R, P); // B^T R1
        for (int j = 0; j < rows; j++)
            for (int i = 0; i < tied; i++) y->c[j * tied + i] = P[i * rows + j];
        stitch_coupling_forces(&q->before, rows, t, y->c);
        for (int j = 0; j < rows; j++)
            for (int i = 0; i < before; i++)
                y->tall[(size_t)j * (size_t)m + (size_t)i] = -t[(size_t)j * (size_t)before + (size_t)i];
        dense_gemm_part(false, false, rows, rows, before, -1, s->F + before, m, t, before, 1, y->F, rows);
        if (tied > 0) dense_gemm(false, false, rows, rows, tied, 1, P, y->c, 1, y->F);
    }
    for (int j = 0; j < rows; j++)
        for (int i = 0; i < j; i++)
            y->F[(size_t)j * (size_t)rows + (size_t)i] = y->F[(size_t)i * (size_t)rows + (size_t)j] =
                (y->F[(size_t)j * (size_t)rows + (size_t)i] + y->F[(size_t)i * (size_t)rows + (size_t)j]) / 2;
    fem_free(P), fem_free(t);
    return FEM_OK;
}

// Not all static answers are needed: of 3 loads at each of many stitches, modes use few combinations. A mode z of
// [R1, U] pulls on the springs with the forces t = S^-1 P z, P = B^T [R1, U], where each spring is in series with
// what of its ends' flexibility U has not, S = D^-1 + F - P L^-1 P^T [MacNeal 1971]. The answers to these forces are
// what K^-1 M [R1, U] has beside [R1, U] itself, a step of inverse iteration. With |z|_K = 1 the energy of an answer
// is the part of a mode's energy that it can lower: combinations below `negligible` are left out.
static const double negligible = 1e-8;

static fem_status choose_loads(stitch_search *q, const static_system *y, bool true_modes) {
    fem_status status = FEM_OK;
    int        rows = 3 * q->fresh, base = q->tied + q->r, e = 0;
    size_t     square = (size_t)rows * (size_t)rows, size = (size_t)rows * (size_t)base,
           small = (size_t)base * (size_t)base;
    double *P = fem_alloc(3 * size + (size_t)base, sizeof *P), *A = fem_calloc(2 * small, sizeof *A);
    double *X = fem_copy(y->F, square, sizeof *X), *S = fem_alloc(square, sizeof *S); // X: what U has not
    if (!P || !A || !X || !S) {
        status = no_memory(q);
        goto done;
    }
    double *H = P + size, *XH = H + size, *values = XH + size, *N = A + small, *t = P + (size_t)rows * (size_t)q->tied;
    if (q->tied > 0) stitch_differences(q->s, q->options->since, q->fresh, q->tied, q->R, P);
    stitch_differences(q->s, q->options->since, q->fresh, q->r, q->old->U, t);
    if (true_modes) {
        for (size_t i = 0; i < (size_t)rows * (size_t)q->r; i++) XH[i] = t[i] / q->old->omega2[i / (size_t)rows];
        dense_gemm(false, true, rows, rows, q->r, -1, XH, t, 1, X);
    }
    memcpy(S, X, square * sizeof *S), memcpy(H, P, size * sizeof *H);
    for (int i = 0; i < rows; i++)
        S[(size_t)i * (size_t)(rows + 1)] += 1 / q->s->stitches[q->options->since + i / 3].stiffness;
    FEM_TRY(dense_cholesky(rows, S));
    dense_cholesky_solve(rows, S, base, H);
    dense_gemm(true, false, base, base, rows, 1, P, H, 0, A); // [0, L] + P^T S^-1 P
    for (int j = 0; j < q->r; j++) A[(size_t)(q->tied + j) * (size_t)(base + 1)] += q->old->omega2[j];
    FEM_TRY(dense_symmetric_eigen(base, A, values));
    for (size_t i = 0; i < small; i++) A[i] /= sqrt(fmax(values[i / (size_t)base], 1e-14 * values[base - 1]));
    dense_gemm(false, false, rows, base, base, 1, H, A, 0, P); // the forces of the modes
    dense_gemm(false, false, rows, base, rows, 1, X, P, 0, XH);
    dense_gemm(true, false, base, base, rows, 1, P, XH, 0, N);
    FEM_TRY(dense_symmetric_eigen(base, N, values));
    while (e < base && values[base - 1 - e] > negligible) e++;
    if (base + e < q->count || rows <= e) goto done; // all of them
    q->T = fem_alloc((size_t)rows * (size_t)e + 1, sizeof *q->T);
    if (!q->T) {
        status = no_memory(q);
        goto done;
    }
    q->enriched = e;
    for (int k = 0; k < e; k++) // largest first
        for (int i = 0; i < base; i++)
            A[(size_t)k * (size_t)base + (size_t)i] =
                N[(size_t)(base - 1 - k) * (size_t)base + (size_t)i] / sqrt(values[base - 1 - k]);
    if (e > 0) dense_gemm(false, false, rows, e, base, 1, P, A, 0, q->T);
done:
    fem_free(P), fem_free(A), fem_free(X), fem_free(S);
    return status;
}

// The loads T, and how to answer them.
static fem_status prepare_answers(stitch_search *q, bool true_modes, static_system *y) {
    fem_status status = FEM_OK;
    int        rows = 3 * q->fresh;
    FEM_TRY(stitch_responses(q->s));
    if (q->options->since > 0) FEM_TRY(stitch_coupling_create(q->s, q->options->since, &q->before));
    FEM_TRY(make_static_system(q, y));
    q->enriched = rows;
    if (rows > q->tied + q->r) FEM_TRY(choose_loads(q, y, true_modes));
    if (q->T) goto done;
    q->T = fem_calloc((size_t)rows * (size_t)rows + 1, sizeof *q->T);
    if (!q->T) return no_memory(q);
    for (int i = 0; i < rows; i++) q->T[(size_t)i * (size_t)(rows + 1)] = 1;
done:
    return status;
}

// E = K^-1 B T with the stitches before
static fem_status static_responses(stitch_search *q, const static_system *y) {
    fem_status status = FEM_OK;
    int        rows = 3 * q->fresh, m = 3 * q->s->count, tied = q->before.tied;
    double    *T = fem_alloc((size_t)m * (size_t)q->enriched + 1, sizeof *T);
    double    *c = fem_alloc((size_t)tied * (size_t)q->enriched + 1, sizeof *c);
    if (!T || !c) {
        status = no_memory(q);
        goto done;
    }
    if (q->enriched == 0) goto done;
    dense_gemm(false, false, m, q->enriched, rows, 1, y->tall, q->T, 0, T);
    FEM_TRY(stitch_answers(q->s, q->enriched, T, q->E));
    if (tied > 0) {
        dense_gemm(false, false, tied, q->enriched, rows, 1, y->c, q->T, 0, c);
        tall_add(q->n, tied, q->enriched, 1, q->before.R, c, q->E);
    }
done:
    fem_free(T), fem_free(c);
    return status;
}

// Room for [R1, U] and E, of which `front` columns are filled by the caller; and E.
static fem_status fill_answers(stitch_search *q, int front, const static_system *y) {
    size_t n = (size_t)q->n, columns = (size_t)(q->tied + q->r + q->enriched);
    q->m = (int)columns;
    q->W = fem_alloc(n * (size_t)(front + q->enriched) + 1, sizeof *q->W);
    q->A = fem_calloc(columns * columns, sizeof *q->A), q->G = fem_calloc(columns * columns, sizeof *q->G);
    if (!q->W || !q->A || !q->G) return no_memory(q);
    q->E = q->W + n * (size_t)front;
    return q->options->form == MODES_STITCH_ATTACHMENT ? static_responses(q, y) : mass_responses(q);
}

static fem_status fill_space(stitch_search *q, const static_system *y) {
    fem_status status = FEM_OK;
    size_t     n = (size_t)q->n;
    int        base = q->tied + q->r;
    FEM_TRY(fill_answers(q, base, y));
    q->MW = fem_alloc(n * (size_t)base, sizeof *q->MW);
    if (!q->MW) return no_memory(q);
    if (q->tied > 0) memcpy(q->W, q->R, n * (size_t)q->tied * sizeof *q->W);
    memcpy(q->W + n * (size_t)q->tied, q->old->U, n * (size_t)q->r * sizeof *q->W);
    modes_mass_multiply(&q->s->mass, base, q->W, q->MW);
done:
    return status;
}

// ---- the small matrices -----------------------------------------------------------------------------------------

void stitch_put_block(int m, int row, int column, int rows, int columns, const double *part, bool mirrored, double *A) {
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < rows; i++) {
            A[(size_t)(column + j) * (size_t)m + (size_t)(row + i)] = part[(size_t)j * (size_t)rows + (size_t)i];
            if (mirrored)
                A[(size_t)(row + i) * (size_t)m + (size_t)(column + j)] = part[(size_t)j * (size_t)rows + (size_t)i];
        }
}

// E -= [R1, U] C
static fem_status free_enrichment(stitch_search *q, double *C) {
    fem_status status = FEM_OK;
    int        base = q->tied + q->r;
    FEM_TRY(tall_inner(q->n, base, q->enriched, q->MW, q->E, C));
    tall_add(q->n, base, q->enriched, -1, q->W, C, q->E);
done:
    return status;
}

// A with the stitches before, and E as it comes: K [R1, U] by products, K R1 = 0, and K K^-1 B T = B T but for rigid
// load, which E has no part in.
static fem_status matrix_before(stitch_search *q) {
    fem_status status = FEM_OK;
    int        base = q->tied + q->r, m = q->m, since = q->options->since;
    size_t     n = (size_t)q->n;
    bool       known = q->options->form == MODES_STITCH_ATTACHMENT; // K E
    int        wide = base > q->enriched ? base : q->enriched, rows = 3 * q->fresh;
    double    *difference = fem_alloc((size_t)rows * (size_t)q->enriched + 1, sizeof *difference);
    double    *KW = fem_calloc(n * (size_t)(known ? base : wide), sizeof *KW),
           *part = fem_alloc((size_t)wide * (size_t)wide, sizeof *part);
    if (!KW || !part || !difference) {
        status = no_memory(q);
        goto done;
    }
    stitch_multiply(q->s, since, q->r, q->W + n * (size_t)q->tied, KW + n * (size_t)q->tied);
    FEM_TRY(tall_inner(q->n, base, base, q->W, KW, part));
    stitch_put_block(m, 0, 0, base, base, part, false, q->A);
    if (q->enriched == 0) goto done;
    FEM_TRY(tall_inner(q->n, base, q->enriched, KW, q->E, part));
    stitch_put_block(m, 0, base, base, q->enriched, part, true, q->A);
    if (known) {
        stitch_differences(q->s, since, q->fresh, q->enriched, q->E, difference);
        dense_gemm(true, false, q->enriched, q->enriched, rows, 1, q->T, difference, 0, part);
    } else {
        stitch_multiply(q->s, since, q->enriched, q->E, KW);
        FEM_TRY(tall_inner(q->n, q->enriched, q->enriched, q->E, KW, part));
    }
    stitch_put_block(m, base, base, q->enriched, q->enriched, part, false, q->A);
done:
    fem_free(KW), fem_free(part), fem_free(difference);
    return status;
}

// A <- T^T A T with T = [I, -C; 0, I]
static void congruence(const stitch_search *q, const double *C) {
    int base = q->tied + q->r, m = q->m, e = q->enriched;
    // columns of E: A_E -= A_base C; then rows likewise
    dense_gemm_part(false, false, m, e, base, -1, q->A, m, C, base, 1, q->A + (size_t)base * (size_t)m, m);
    dense_gemm_part(true, false, e, m, base, -1, C, base, q->A, m, 1, q->A + base, m);
}

// A += (B^T W)^T D (B^T W) over the fresh stitches
static fem_status add_springs(stitch_search *q) {
    int     first = q->options->since, rows = 3 * q->fresh, m = q->m;
    double *T = fem_alloc((size_t)rows * (size_t)m + 1, sizeof *T);
    if (!T) return no_memory(q);
    stitch_differences(q->s, first, q->fresh, m, q->W, T);
    for (int j = 0; j < m; j++)
        for (int i = 0; i < rows; i++)
            T[(size_t)j * (size_t)rows + (size_t)i] *= sqrt(q->s->stitches[first + i / 3].stiffness);
    if (rows > 0) dense_gemm(true, false, m, m, rows, 1, T, T, 1, q->A);
    fem_free(T);
    return FEM_OK;
}

// W^T M W with E freed of the rest: the blocks beside it are rounding, and are kept so that nothing is assumed.
static fem_status mass_matrix(stitch_search *q) {
    fem_status status = FEM_OK;
    int        base = q->tied + q->r, m = q->m;
    size_t     n = (size_t)q->n;
    double    *ME = fem_alloc(n * MODES_PANEL, sizeof *ME), *part = fem_alloc((size_t)m * (size_t)m, sizeof *part);
    if (!ME || !part) {
        status = no_memory(q);
        goto done;
    }
    FEM_TRY(tall_inner(q->n, base, base, q->W, q->MW, part));
    stitch_put_block(m, 0, 0, base, base, part, false, q->G);
    for (int first = base; first < m; first += MODES_PANEL) {
        int columns = m - first < MODES_PANEL ? m - first : MODES_PANEL, rows = first + columns;
        modes_mass_multiply(&q->s->mass, columns, q->W + n * (size_t)first, ME);
        FEM_TRY(tall_inner(q->n, rows, columns, q->W, ME, part));
        stitch_put_block(m, 0, first, rows, columns, part, true, q->G);
    }
done:
    fem_free(ME), fem_free(part);
    return status;
}

static fem_status make_matrices(stitch_search *q) {
    fem_status status = FEM_OK;
    int        base = q->tied + q->r, m = q->m;
    double    *C = fem_alloc((size_t)base * (size_t)q->enriched + 1, sizeof *C);
    if (!C) return no_memory(q);
    bool lowrank = q->options->form == MODES_STITCH_LOWRANK; // K is M U L U^T M
    for (int j = 0; lowrank && j < q->r; j++) q->A[(size_t)(q->tied + j) * (size_t)(m + 1)] = q->old->omega2[j];
    if (!lowrank) FEM_TRY(matrix_before(q));
    if (q->enriched > 0) FEM_TRY(free_enrichment(q, C));
    if (q->enriched > 0 && !lowrank) congruence(q, C);
    FEM_TRY(add_springs(q));
    FEM_TRY(mass_matrix(q));
done:
    fem_free(C);
    return status;
}

// ---- the small problem ------------------------------------------------------------------------------------------

static const double independent = 1e-12; // squared sine below which a column counts as one of the others
static const double reach_allowed = 1;   // squared frequencies beyond those that the old modes know

// A z = lambda G z in the independent part: G scaled to ones, P^T G P = L L^T, L^-1 A L^-T. Z is m x m.
fem_status stitch_small_problem(stitch_search *q, double least, double *values, double *Z, int *rank) {
    fem_status status = FEM_OK;
    int        m = q->m, k = 0;
    size_t     square = (size_t)m * (size_t)m;
    int       *pivots = fem_alloc((size_t)m, sizeof *pivots);
    double    *L = fem_alloc(square + 2 * (size_t)m, sizeof *L), *scale = fem_alloc((size_t)m, sizeof *scale);
    double    *T = fem_calloc(square, sizeof *T), *small = fem_alloc(square, sizeof *small),
           *product = fem_alloc(square, sizeof *product);
    if (!pivots || !L || !scale || !T || !small || !product) {
        status = no_memory(q);
        goto done;
    }
    for (int i = 0; i < m; i++) {
        double g = q->G[(size_t)i * (size_t)(m + 1)];
        scale[i] = g > 0 ? 1 / sqrt(g) : 0;
    }
    for (size_t i = 0; i < square; i++) q->G[i] *= scale[i % (size_t)m] * scale[i / (size_t)m];
    k = *rank = modes_pivoted_cholesky(m, q->G, least, L, pivots);
    // T (m x k) = S L_p^-T on the rows of the pivots: T^T G T = 1
    for (int j = 0; j < k; j++) {
        double *t = T + (size_t)j * (size_t)m;
        for (int i = j; i >= 0; i--) {
            double sum = i == j;
            for (int l = i + 1; l <= j; l++) sum -= L[(size_t)i * (size_t)m + (size_t)pivots[l]] * t[pivots[l]];
            t[pivots[i]] = sum / L[(size_t)i * (size_t)m + (size_t)pivots[i]];
        }
    }
    for (size_t i = 0; i < (size_t)k * (size_t)m; i++) T[i] *= scale[i % (size_t)m];
    dense_gemm(false, false, m, k, m, 1, q->A, T, 0, product);
    dense_gemm(true, false, k, k, m, 1, T, product, 0, small);
    for (int j = 0; j < k; j++)
        for (int i = 0; i < j; i++)
            small[(size_t)j * (size_t)k + (size_t)i] = small[(size_t)i * (size_t)k + (size_t)j] =
                (small[(size_t)j * (size_t)k + (size_t)i] + small[(size_t)i * (size_t)k + (size_t)j]) / 2;
    FEM_TRY(dense_symmetric_eigen(k, small, values));
    dense_gemm(false, false, m, k, k, 1, T, small, 0, Z);
done:
    fem_free(pivots), fem_free(L), fem_free(scale), fem_free(T), fem_free(small), fem_free(product);
    return status;
}

static void take_values(stitch_search *q, const double *values) {
    for (int j = 0; j < q->basis.r; j++) q->basis.omega2[j] = fmax(values[j], 0);
}

// What rounding left of the combinations is taken out.
static fem_status polish(stitch_search *q) {
    fem_status status = modes_mass_polish(&q->s->mass, 0, q->basis.r, q->basis.U, &q->report.orthogonality);
    for (int j = 0; j < q->basis.r && status == FEM_OK; j++)
        if (!isfinite(q->basis.omega2[j]))
            status = fem_fail(FEM_INDEFINITE, "mode %d of the stitched body is not finite", j + 1);
    return status;
}

static fem_status combine(stitch_search *q, int count, const double *values, const double *Z) {
    fem_status status = FEM_OK;
    double     begun = fem_seconds();
    FEM_TRY(modes_basis_allocate(&q->basis, q->n, count));
    tall_add(q->n, q->m, count, 1, q->W, Z, q->basis.U);
    take_values(q, values);
    q->report.seconds_combine = fem_seconds() - begun;
done:
    return status;
}

// Of the rigid motions that the stitches before left alone, those that the fresh ones tie.
static fem_status tied_motions(stitch_search *q) {
    fem_status           status = FEM_OK;
    const modes_inverse *inverse = q->s->inverse;
    int                  since = q->options->since, tied = 0;
    double              *turned = NULL;
    if (q->options->rigid_out) return FEM_OK;
    FEM_TRY(stitch_split_rigid(q->s, 0, since, inverse->report.rigid, inverse->R, &turned, &tied));
    FEM_TRY(stitch_split_rigid(q->s, since, q->fresh, inverse->report.rigid - tied,
                               turned ? turned + (size_t)tied * (size_t)q->n : NULL, &q->R, &q->tied));
done:
    fem_free(turned);
    return status;
}

static fem_status check_options(const modes_stitched *s, const modes_basis *old, const modes_stitch_options *o) {
    if (old->n != s->n) return fem_fail(FEM_BAD_INPUT, "old modes with %d rows for a body with %d", old->n, s->n);
    if (old->r < 1) return fem_fail(FEM_BAD_INPUT, "stitching starts from old modes, expected at least one");
    if (o->refine < -1 || o->refine > 100)
        return fem_fail(FEM_BAD_INPUT, "stitch.refine is %d, expected 0 to 100, or -1", o->refine);
    if (o->count < 0) return fem_fail(FEM_BAD_INPUT, "stitch.count is %d, expected >= 0", o->count);
    if (o->since < 0 || o->since > s->count)
        return fem_fail(FEM_BAD_INPUT, "stitch.since is %d, but there are %d stitches", o->since, s->count);
    return FEM_OK;
}

// ---- from true modes -----------------------------------------------------------------------------------------------

// Are the old ones vibration modes of the body without stitches? x = sum of u_j / omega_j^2 has K x = M sum of u_j.
static fem_status are_true_modes(stitch_search *q, bool *answer) {
    size_t  n = (size_t)q->n;
    double *x = fem_calloc(4 * n, sizeof *x), square = 0, whole = 0;
    *answer = false;
    if (!x) return no_memory(q);
    double *sum = x + n, *Kx = sum + n, *Msum = Kx + n;
    for (int j = 0; j < q->r; j++) {
        const double *u = q->old->U + (size_t)j * n;
        if (!(q->old->omega2[j] > 0)) goto done;
        dense_axpy(q->n, 1 / q->old->omega2[j], u, x);
        dense_axpy(q->n, 1, u, sum);
    }
    stitch_multiply(q->s, 0, 1, x, Kx);
    modes_mass_multiply(&q->s->mass, 1, sum, Msum);
    for (size_t i = 0; i < n; i++) {
        if (q->s->inverse->fixed[i]) continue;
        square += (Kx[i] - Msum[i]) * (Kx[i] - Msum[i]), whole += Msum[i] * Msum[i];
    }
    *answer = square <= 1e-14 * whole;
done:
    fem_free(x);
    return FEM_OK;
}

static const double lost = 1e-9; // squared sine below which nothing of a static answer is left beside the modes

// Static answers Y = K^-1 B T beside true modes need one long product, Y^T M Y: with t = B^T u and F = B^T K^-1 B
//     U^T M U = 1, U^T K U = L, U^T M Y = L^-1 t^T T =: C, U^T K Y = t^T T, Y^T K Y = T^T F T,
// and rigid motions are orthogonal to both. Freed of U, E = Y - U C: E^T M E = Y^T M Y - C^T C,
// E^T K E = T^T F T - C^T L C, U^T K E = 0, B^T E = F T - t C. C is r x e.
static fem_status true_matrices(stitch_search *q, const static_system *y, double *C) {
    fem_status      status = FEM_OK;
    modes_stitched *s = q->s;
    int             base = q->tied + q->r, m = q->m, e = q->enriched, r = q->r, rows = 3 * q->fresh;
    size_t          n = (size_t)q->n, height = (size_t)rows;
    double *D = fem_calloc(height * (size_t)m, sizeof *D), *part = fem_alloc((size_t)e * (size_t)e + 1, sizeof *part);
    double *MY = fem_alloc(n * MODES_PANEL, sizeof *MY), *LC = fem_alloc((size_t)r * (size_t)e + 1, sizeof *LC);
    if (!D || !part || !MY || !LC) {
        status = no_memory(q);
        goto done;
    }
    double *t = D + height * (size_t)q->tied, *DE = D + height * (size_t)base; // B^T [R1, U, Y], then of E
    if (q->tied > 0) stitch_differences(s, 0, q->fresh, q->tied, q->R, D);
    stitch_differences(s, 0, q->fresh, r, q->old->U, t);
    for (int i = 0; i < base; i++) q->G[(size_t)i * (size_t)(m + 1)] = 1;
    for (int i = 0; i < r; i++) q->A[(size_t)(q->tied + i) * (size_t)(m + 1)] = q->old->omega2[i];
    if (e > 0) {
        dense_gemm(false, false, rows, e, rows, 1, y->F, q->T, 0, DE);
        dense_gemm(true, false, r, e, rows, 1, t, q->T, 0, LC);
        for (size_t i = 0; i < (size_t)r * (size_t)e; i++) C[i] = LC[i] / q->old->omega2[i % (size_t)r];
        dense_gemm(true, false, e, e, rows, 1, q->T, DE, 0, part);
        dense_gemm(true, false, e, e, r, -1, C, LC, 1, part);
        stitch_put_block(m, base, base, e, e, part, false, q->A);
        dense_gemm(false, false, rows, e, r, -1, t, C, 1, DE);
    }
    for (int j = 0; j < m; j++)
        for (int i = 0; i < rows; i++) D[(size_t)j * height + (size_t)i] *= sqrt(s->stitches[i / 3].stiffness);
    dense_gemm(true, false, m, m, rows, 1, D, D, 1, q->A);
    for (int first = 0; first < e; first += MODES_PANEL) {
        int columns = e - first < MODES_PANEL ? e - first : MODES_PANEL, end = first + columns;
        modes_mass_multiply(&s->mass, columns, q->E + n * (size_t)first, MY);
        FEM_TRY(tall_inner(q->n, end, columns, q->E, MY, part));
        stitch_put_block(m, base, base + first, end, columns, part, true, q->G);
    }
    for (int k = 0; k < e; k++) part[k] = q->G[(size_t)(base + k) * (size_t)(m + 1)];
    if (e > 0) dense_gemm_part(true, false, e, e, r, -1, C, r, C, r, 1, q->G + (size_t)base * (size_t)(m + 1), m);
    for (int k = 0; k < e; k++) { // what is left of an answer that the modes have almost whole is rounding
        int at = base + k;
        if (q->G[(size_t)at * (size_t)(m + 1)] > lost * part[k]) continue;
        for (int i = 0; i < m; i++)
            q->G[(size_t)at * (size_t)m + (size_t)i] = q->G[(size_t)i * (size_t)m + (size_t)at] = 0;
    }
done:
    fem_free(D), fem_free(part), fem_free(MY), fem_free(LC);
    return status;
}

// The modes: [R1, U, Y] with Z of U less C times Z of E
static fem_status combine_true(stitch_search *q, int count, const double *values, double *Z, const double *C) {
    fem_status status = FEM_OK;
    int        m = q->m, base = q->tied + q->r, rows[3] = {q->tied, q->r, q->enriched}, first[3] = {0, q->tied, base};
    const double *columns[3] = {q->R, q->old->U, q->E};
    double       *part = fem_alloc((size_t)m * (size_t)count, sizeof *part), begun = fem_seconds();
    if (!part) return no_memory(q);
    if (q->enriched > 0)
        dense_gemm_part(false, false, q->r, count, q->enriched, -1, C, q->r, Z + base, m, 1, Z + q->tied, m);
    FEM_TRY(modes_basis_allocate(&q->basis, q->n, count));
    for (int k = 0; k < 3; k++) {
        for (int j = 0; j < count; j++)
            for (int i = 0; i < rows[k]; i++)
                part[(size_t)j * (size_t)rows[k] + (size_t)i] = Z[(size_t)j * (size_t)m + (size_t)(first[k] + i)];
        if (rows[k] > 0) tall_add(q->n, rows[k], count, 1, columns[k], part, q->basis.U);
    }
    take_values(q, values);
    q->report.seconds_combine = fem_seconds() - begun;
done:
    fem_free(part);
    return status;
}

// ---- all of it ----------------------------------------------------------------------------------------------------

fem_status modes_stitched_modes(modes_stitched *s, const modes_basis *old, const modes_stitch_options *options,
                                modes_basis *basis, modes_stitch_report *report) {
    fem_status    status = check_options(s, old, options);
    stitch_search q = {.s = s, .old = old, .options = options, .n = s->n, .r = old->r};
    double       *values = NULL, *Z = NULL, *C = NULL;
    int           rank = 0, count = options->count > 0 ? options->count : old->r;
    if (status != FEM_OK) return status;
    bool          attachment = options->form == MODES_STITCH_ATTACHMENT, true_modes = false;
    static_system answers = {0};
    q.fresh = s->count - options->since, q.enriched = 3 * q.fresh, q.count = count;
    double begun = fem_seconds();
    FEM_TRY(tied_motions(&q));
    if (attachment && options->since == 0 && q.fresh > 0) FEM_TRY(are_true_modes(&q, &true_modes));
    if (attachment) FEM_TRY(prepare_answers(&q, true_modes, &answers));
    FEM_TRY(true_modes ? fill_answers(&q, 0, &answers) : fill_space(&q, &answers));
    C = fem_alloc((size_t)q.r * (size_t)q.enriched + 1, sizeof *C);
    if (!C) {
        status = no_memory(&q);
        goto done;
    }
    q.report.seconds_enrich = fem_seconds() - begun;
    begun = fem_seconds();
    FEM_TRY(true_modes ? true_matrices(&q, &answers, C) : make_matrices(&q));
    values = fem_alloc((size_t)q.m, sizeof *values), Z = fem_alloc((size_t)q.m * (size_t)q.m, sizeof *Z);
    if (!values || !Z) {
        status = no_memory(&q);
        goto done;
    }
    FEM_TRY(stitch_small_problem(&q, independent, values, Z, &rank));
    q.report.dimension = rank, q.report.dropped = q.m - rank;
    q.report.seconds_project = fem_seconds() - begun;
    if (count > rank) {
        status = fem_fail(FEM_BAD_INPUT, "%d modes were asked for, but %d old modes and %d stitches span only %d",
                          count, old->r, q.fresh, rank);
        goto done;
    }
    int judged = count < STITCH_JUDGED ? count : STITCH_JUDGED;
    q.report.reach = attachment ? values[judged - 1] / stitch_known_up_to(&q) : 0;
    bool beyond = attachment && !options->rigid_out && count <= q.tied + q.r && q.report.reach > reach_allowed;
    bool refined = options->refine > 0 || (options->refine < 0 && beyond);
    int  made = refined ? rank : count; // all of the space is kept to be refined
    FEM_TRY(true_modes ? combine_true(&q, made, values, Z, C) : combine(&q, made, values, Z));
    if (refined) FEM_TRY(stitch_refine(&q));
    FEM_TRY(polish(&q));
    modes_basis_destroy(basis);
    *basis = q.basis;
    q.basis = (modes_basis){0};
    if (report) *report = q.report;
done:
    fem_free(values), fem_free(Z), fem_free(C);
    static_system_destroy(&answers);
    search_destroy(&q);
    return status;
}
