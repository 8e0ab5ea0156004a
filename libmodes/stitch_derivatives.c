// Derivatives of the modes of a stitched body: some new, the others from right-hand sides that are at hand.
// [Mukherjee et al. 2016, section 4.2]. Old ones are taken lowest frequencies first, which the paper leaves open.
#include "libmodes/stitch_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

void modes_rights_destroy(modes_rights *rights) {
    fem_free(rights->pairs), fem_free(rights->X), fem_free(rights->load);
    *rights = (modes_rights){0};
}

typedef struct weighed_pair {
    double   weight;
    fem_pair pair;
} weighed_pair;

static int compare_pairs(const void *x, const void *y) {
    const weighed_pair *p = x, *q = y;
    if (p->weight != q->weight) return p->weight < q->weight ? -1 : 1;
    return p->pair.a != q->pair.a ? p->pair.a - q->pair.a : p->pair.b - q->pair.b;
}

fem_status modes_lowest_pairs(int r, const double *omega2, int count, fem_pair *pairs) {
    if (r < 1 || r > 40000 || count < 0 || count > (long)r * (r + 1) / 2)
        return fem_fail(FEM_BAD_INPUT, "%d derivatives of %d modes, expected 0 to %ld", count, r,
                        (long)r * (r + 1) / 2);
    size_t        total = (size_t)r * (size_t)(r + 1) / 2, k = 0;
    weighed_pair *all = fem_alloc(total, sizeof *all);
    if (!all) return fem_fail(FEM_NO_MEMORY, "no memory for %zu pairs of modes", total);
    for (int i = 0; i < r; i++)
        for (int j = i; j < r; j++) all[k++] = (weighed_pair){omega2[i] * omega2[j], {.a = i, .b = j}};
    qsort(all, total, sizeof *all, compare_pairs);
    for (int i = 0; i < count; i++) pairs[i] = all[i].pair;
    fem_free(all);
    return FEM_OK;
}

enum { RIGHT_BLOCK = 64 }; // pairs of one sweep over the elements

// out = -(H : a) b for a list of pairs
static fem_status right_sides(const fem_body *body, const modes_basis *basis, int count, const fem_pair *pairs,
                              double *out) {
    fem_status status = FEM_OK;
    int        used = 0; // modes that the pairs name: others would only be carried along
    for (int p = 0; p < count; p++) {
        int last = pairs[p].a > pairs[p].b ? pairs[p].a : pairs[p].b;
        if (last >= used) used = last + 1;
    }
    size_t n = (size_t)basis->n;
    for (int k = 0; k < count; k += RIGHT_BLOCK)
        FEM_TRY(fem_body_second_pairs(body, used, basis->U, used, basis->U,
                                      count - k < RIGHT_BLOCK ? count - k : RIGHT_BLOCK, pairs + k,
                                      out + (size_t)k * n));
    for (size_t i = 0; i < (size_t)count * n; i++) out[i] = -out[i];
done:
    return status;
}

fem_status modes_rights_create(modes_rights *result, const fem_body *body, modes_inverse *inverse,
                               const modes_basis *basis, int count) {
    fem_status   status = FEM_OK;
    modes_rights made = {.n = basis->n, .count = count, .rigid = inverse->report.rigid};
    if (count < 1) return fem_fail(FEM_BAD_INPUT, "%d right-hand sides, expected at least one", count);
    if (basis->n != 3 * fem_body_mesh(body)->vertex_count || basis->n != inverse->n)
        return fem_fail(FEM_BAD_INPUT, "modes with %d rows for a body of %d vertices", basis->n,
                        fem_body_mesh(body)->vertex_count);
    made.pairs = fem_alloc((size_t)count, sizeof *made.pairs);
    made.X = fem_alloc((size_t)count * (size_t)basis->n, sizeof *made.X);
    made.load = fem_alloc((size_t)count * (size_t)made.rigid + 1, sizeof *made.load);
    if (!made.pairs || !made.X || !made.load) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d right-hand sides", count);
        goto done;
    }
    FEM_TRY(modes_lowest_pairs(basis->r, basis->omega2, count, made.pairs));
    FEM_TRY(right_sides(body, basis, count, made.pairs, made.X));
    if (made.rigid > 0) FEM_TRY(tall_inner(made.n, made.rigid, count, inverse->R, made.X, made.load));
    FEM_TRY(modes_inverse_solve(inverse, count, made.X, made.X));
    modes_rights_destroy(result);
    *result = made;
    made = (modes_rights){0};
done:
    modes_rights_destroy(&made);
    return status;
}

modes_hybrid_options modes_hybrid_default_options(void) { return (modes_hybrid_options){.modes = 6, .kept = -1}; }

typedef struct hybrid {
    modes_stitched     *s;
    const fem_body     *body;
    const modes_basis  *basis, *old;
    const modes_rights *rights;
    modes_pool          pool;
    double             *omega2;
    modes_hybrid_report report;
} hybrid;

static fem_status allocate(hybrid *h) {
    int    r = h->basis->r, count = r + h->report.fresh + h->report.kept;
    size_t n = (size_t)h->basis->n;
    h->pool = (modes_pool){.n = h->basis->n, .count = count};
    h->pool.X = fem_alloc((size_t)count * n, sizeof *h->pool.X);
    h->pool.origin = fem_calloc((size_t)count, sizeof *h->pool.origin);
    h->omega2 = fem_alloc((size_t)r + (size_t)(h->old ? h->old->r : 0), sizeof *h->omega2);
    if (!h->pool.X || !h->pool.origin || !h->omega2)
        return fem_fail(FEM_NO_MEMORY, "no memory for %d candidates", count);
    memcpy(h->pool.X, h->basis->U, (size_t)r * n * sizeof *h->pool.X);
    memcpy(h->omega2, h->basis->omega2, (size_t)r * sizeof *h->omega2);
    for (int j = 0; j < r; j++) h->pool.origin[j] = (modes_origin){.mode = {j}};
    if (h->old) memcpy(h->omega2 + r, h->old->omega2, (size_t)h->old->r * sizeof *h->omega2);
    return FEM_OK;
}

// F = -(H : psi_i) psi_j of the lowest new modes
static fem_status fresh_right_sides(hybrid *h, int modes, double *F) {
    fem_status status = FEM_OK;
    int        fresh = h->report.fresh, k = 0;
    size_t     n = (size_t)h->basis->n;
    double     begun = fem_seconds();
    fem_pair  *pairs = fem_alloc((size_t)fresh + 1, sizeof *pairs);
    if (!pairs) return fem_fail(FEM_NO_MEMORY, "no memory for %d right-hand sides", fresh);
    for (int i = 0; i < modes; i++)
        for (int j = i; j < modes; j++) pairs[k++] = (fem_pair){.a = i, .b = j};
    FEM_TRY(right_sides(h->body, h->basis, fresh, pairs, F));
    for (int p = 0; p < fresh; p++)
        h->pool.origin[h->basis->r + p] = (modes_origin){.order = 1, .mode = {pairs[p].a, pairs[p].b}};
    for (size_t i = 0; i < (size_t)fresh * n; i++) { // H is as stiff as its domain
        int domain = h->s->domain[i % n / 3];
        if (domain >= 0) F[i] *= h->s->factor[domain];
    }
    h->report.seconds_right = fem_seconds() - begun;
done:
    fem_free(pairs);
    return status;
}

static double factor_of_motion(const modes_stitched *s, const double *R) { // each moves one domain
    int i = 0;
    while (i < s->n - 1 && R[i] == 0) i++;
    return s->domain[i / 3] >= 0 ? s->factor[s->domain[i / 3]] : 1;
}

// Forces T (3 stitches x kept) of the springs for the old right-hand sides, and rigid motions w (tied x kept). G F is
// there, with whatever factors the domains have: H and K go with them alike. The loads of rigid motions do not.
static fem_status old_forces(hybrid *h, double *T, double *w) {
    fem_status      status = FEM_OK;
    modes_stitched *s = h->s;
    int             kept = h->report.kept, r = h->basis->r, rigid = h->rights->rigid, tied = s->whole.tied;
    size_t          n = (size_t)s->n;
    double         *load = fem_alloc((size_t)rigid * (size_t)kept + 1, sizeof *load);
    double         *turn = fem_alloc((size_t)rigid * (size_t)tied + 1, sizeof *turn);
    double         *MR = fem_alloc(n * (size_t)tied + 1, sizeof *MR);
    if (!load || !turn || !MR) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d old derivatives", kept);
        goto done;
    }
    for (int p = 0; p < kept; p++) {
        fem_pair pair = h->rights->pairs[p];
        h->pool.origin[r + h->report.fresh + p] = (modes_origin){.order = 1, .mode = {r + pair.a, r + pair.b}};
    }
    if (tied > 0) { // R1 = R (R^T M R1), so R1^T F = (R^T M R1)^T R^T F
        for (int i = 0; i < rigid; i++)
            for (int p = 0; p < kept; p++)
                load[p * rigid + i] =
                    factor_of_motion(s, s->inverse->R + (size_t)i * n) * h->rights->load[p * rigid + i];
        modes_mass_multiply(&s->mass, tied, s->whole.R, MR);
        FEM_TRY(tall_inner(s->n, rigid, tied, s->inverse->R, MR, turn));
        dense_gemm(true, false, tied, kept, rigid, 1, turn, load, 0, w);
    }
    stitch_differences(s, 0, s->count, kept, h->rights->X, T);
    stitch_coupling_forces(&s->whole, kept, T, w);
done:
    fem_free(load), fem_free(turn), fem_free(MR);
    return status;
}

// Forces T (m x *columns) as T = Q Z with fewer columns Q, which take T's place: seams answer in few ways. By the
// singular vectors in the norm of the answers' energy, T^T F T with each column scaled to one; what is left out of it
// is at rounding. Z is *columns x the columns of T.
static const double alike = 1e-13;

static fem_status compress_forces(const modes_stitched *s, double *T, double *Z, int *columns) {
    fem_status status = FEM_OK;
    int        m = 3 * s->count, k = *columns, rank = 0;
    size_t     size = (size_t)m * (size_t)k, square = (size_t)k * (size_t)k;
    double    *FT = fem_alloc(size + 1, sizeof *FT), *N = fem_alloc(2 * square + 2 * (size_t)k + 1, sizeof *N);
    if (!FT || !N) {
        status = stitch_no_memory(s, "old derivatives");
        goto done;
    }
    double *values = N + square, *norm = values + k, *V = norm + k;
    dense_gemm(false, false, m, k, m, 1, s->F, T, 0, FT);
    dense_gemm(true, false, k, k, m, 1, T, FT, 0, N);
    for (int j = 0; j < k; j++) norm[j] = sqrt(fmax(N[(size_t)j * (size_t)(k + 1)], 0));
    for (size_t i = 0; i < square; i++) {
        double scale = norm[i / (size_t)k] * norm[i % (size_t)k];
        N[i] = scale > 0 ? N[i] / scale : 0;
    }
    FEM_TRY(dense_symmetric_eigen(k, N, values));
    while (rank < k && values[k - 1 - rank] > alike * values[k - 1]) rank++;
    for (int i = 0; i < rank; i++) // T diag(1 / norm) V = Q
        for (int j = 0; j < k; j++) {
            double v = N[(size_t)(k - 1 - i) * (size_t)k + (size_t)j];
            V[(size_t)i * (size_t)k + (size_t)j] = norm[j] > 0 ? v / norm[j] : 0;
            Z[(size_t)j * (size_t)rank + (size_t)i] = v * norm[j];
        }
    dense_gemm(false, false, m, rank, k, 1, T, V, 0, FT);
    memcpy(T, FT, (size_t)m * (size_t)rank * sizeof *T);
    *columns = rank;
done:
    fem_free(FT), fem_free(N);
    return status;
}

// New ones are solved for; old ones are there and change by static answers and rigid motions.
static fem_status make_derivatives(hybrid *h, int modes, double *X) {
    fem_status      status = FEM_OK;
    modes_stitched *s = h->s;
    int             fresh = h->report.fresh, kept = h->report.kept, loads = s->count > 0 ? kept : 0, m = 3 * s->count;
    size_t          n = (size_t)s->n;
    double *T = fem_alloc((size_t)m * (size_t)kept + 1, sizeof *T), *F = fem_alloc(n * (size_t)fresh + 1, sizeof *F);
    double *Z = fem_calloc((size_t)kept * (size_t)kept + 1, sizeof *Z), *Y = NULL;
    double *w = fem_alloc((size_t)s->whole.tied * (size_t)kept + 1, sizeof *w), begun;
    if (!T || !F || !Z || !w) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d derivatives", fresh + kept);
        goto done;
    }
    if (fresh > 0) FEM_TRY(fresh_right_sides(h, modes, F));
    begun = fem_seconds();
    if (kept > 0) FEM_TRY(old_forces(h, T, w));
    if (loads > 0) FEM_TRY(compress_forces(s, T, Z, &loads));
    h->report.loads = loads;
    h->report.seconds_old = fem_seconds() - begun;
    begun = fem_seconds();
    Y = fem_alloc(n * (size_t)(fresh + loads) + 1, sizeof *Y);
    if (!Y) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d derivatives", fresh + loads);
        goto done;
    }
    FEM_TRY(stitch_solve_beside(s, fresh, F, loads, T, Y));
    for (size_t i = 0; i < n * (size_t)fresh; i++) X[i] = s->inverse->fixed[i % n] ? 0 : Y[i];
    h->report.seconds_solve = fem_seconds() - begun;
    begun = fem_seconds();
    if (kept > 0) {
        double *old = X + n * (size_t)fresh;
        memcpy(old, h->rights->X, (size_t)kept * n * sizeof *X);
        if (loads > 0) tall_add(s->n, loads, kept, -1, Y + n * (size_t)fresh, Z, old);
        if (s->whole.tied > 0) tall_add(s->n, s->whole.tied, kept, 1, s->whole.R, w, old);
    }
    h->report.seconds_old += fem_seconds() - begun;
done:
    fem_free(T), fem_free(F), fem_free(Z), fem_free(w), fem_free(Y);
    return status;
}

static fem_status check_hybrid(const hybrid *h, const modes_hybrid_options *o) {
    if (h->basis->n != h->s->n || fem_body_mesh(h->body)->vertex_count != h->s->n / 3)
        return fem_fail(FEM_BAD_INPUT, "modes with %d rows and a body of %d vertices for a stitched body of %d",
                        h->basis->n, fem_body_mesh(h->body)->vertex_count, h->s->n / 3);
    if (o->modes < 0 || o->modes > h->basis->r)
        return fem_fail(FEM_BAD_INPUT, "hybrid.modes is %d, expected 0 to the %d modes", o->modes, h->basis->r);
    if (o->kept < -1 || (o->kept > 0 && (!h->rights || o->kept > h->rights->count)))
        return fem_fail(FEM_BAD_INPUT, "hybrid.kept is %d, but there are %d old right-hand sides", o->kept,
                        h->rights ? h->rights->count : 0);
    if (h->rights && (h->rights->n != h->s->n || h->rights->rigid != h->s->inverse->report.rigid || !h->old))
        return fem_fail(FEM_BAD_INPUT, "the old right-hand sides do not belong to this body, or its modes are missing");
    for (int p = 0; h->rights && p < h->rights->count; p++)
        if (h->rights->pairs[p].a >= h->old->r || h->rights->pairs[p].b >= h->old->r)
            return fem_fail(FEM_BAD_INPUT, "right-hand side %d is not of the %d old modes", p + 1, h->old->r);
    return FEM_OK;
}

fem_status modes_stitched_derivatives(modes_stitched *s, const fem_body *body, const modes_basis *basis,
                                      const modes_rights *rights, const modes_basis *old,
                                      const modes_hybrid_options *options, modes_pool *pool, double **omega2,
                                      modes_hybrid_report *report) {
    fem_status status = FEM_OK;
    hybrid     h = {.s = s, .body = body, .basis = basis, .old = old, .rights = rights};
    FEM_TRY(check_hybrid(&h, options));
    h.report.fresh = options->modes * (options->modes + 1) / 2;
    h.report.kept = options->kept >= 0 ? options->kept : rights ? (int)(0.4 * rights->count) : 0;
    FEM_TRY(allocate(&h));
    double *X = h.pool.X + (size_t)basis->r * (size_t)s->n;
    FEM_TRY(stitch_couple(s));
    FEM_TRY(make_derivatives(&h, options->modes, X));
    modes_pool_destroy(pool);
    *pool = h.pool, *omega2 = h.omega2;
    h.pool = (modes_pool){0}, h.omega2 = NULL;
    if (report) *report = h.report;
done:
    fem_free(h.omega2);
    modes_pool_destroy(&h.pool);
    return status;
}

fem_status modes_stitched_rayleigh(const modes_stitched *s, modes_basis *basis) {
    size_t  n = (size_t)s->n;
    double *X = fem_alloc(2 * n * MODES_PANEL, sizeof *X), *MX = X ? X + n * MODES_PANEL : NULL;
    if (!X) return stitch_no_memory(s, "Rayleigh quotients");
    if (basis->n != s->n) {
        fem_free(X);
        return fem_fail(FEM_BAD_INPUT, "modes with %d rows for a body with %d", basis->n, s->n);
    }
    for (int first = 0; first < basis->r; first += MODES_PANEL) {
        int           columns = basis->r - first < MODES_PANEL ? basis->r - first : MODES_PANEL;
        const double *U = basis->U + (size_t)first * n;
        modes_stitched_multiply(s, columns, U, X);
        modes_mass_multiply(&s->mass, columns, U, MX);
        for (int j = 0; j < columns; j++)
            basis->omega2[first + j] = dense_dot(s->n, U + (size_t)j * n, X + (size_t)j * n) /
                                       dense_dot(s->n, U + (size_t)j * n, MX + (size_t)j * n);
    }
    fem_free(X);
    return FEM_OK;
}

fem_status modes_stitched_springs(const modes_stitched *s, int r, const double *U, double *L) {
    int     rows = 3 * s->count;
    double *T = fem_alloc((size_t)rows * (size_t)r + 1, sizeof *T);
    if (!T) return stitch_no_memory(s, "springs");
    stitch_differences(s, 0, s->count, r, U, T);
    for (int j = 0; j < r; j++)
        for (int i = 0; i < rows; i++) T[(size_t)j * (size_t)rows + (size_t)i] *= sqrt(s->stitches[i / 3].stiffness);
    memset(L, 0, (size_t)r * (size_t)r * sizeof *L);
    if (rows > 0) dense_gemm(true, false, r, r, rows, 1, T, T, 0, L);
    fem_free(T);
    return FEM_OK;
}
