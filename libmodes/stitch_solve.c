// Solves of a stitched body with the factor of the body without stitches; the equations are in stitch_internal.h.
#include "libmodes/stitch_internal.h"

#include <string.h>

static bool is_scaled(const modes_stitched *s) {
    for (int d = 0; d < s->domains; d++)
        if (s->factor[d] != 1) return true;
    return false;
}

// Per domain the inverse is 1/factor of the original's, half of it 1/root.
static void scale_half(const modes_stitched *s, int columns, double *X) {
    size_t n = (size_t)s->n;
    if (!is_scaled(s)) return;
    for (size_t i = 0; i < (size_t)columns * n; i++)
        if (s->domain[i % n / 3] >= 0) X[i] /= sqrt(s->factor[s->domain[i % n / 3]]);
}

// Y (rows x columns) = half of G B: freed of rigid load, B being work space afterwards, then L^-1
static fem_status go_forward(modes_stitched *s, int columns, double *B, double *Y) {
    fem_status           status = FEM_OK;
    const modes_inverse *inverse = s->inverse;
    int                  rigid = inverse->report.rigid;
    double              *T = fem_alloc((size_t)rigid * (size_t)columns + 1, sizeof *T);
    if (!T) return stitch_no_memory(s, "loads");
    if (rigid > 0) {
        FEM_TRY(tall_inner(s->n, rigid, columns, inverse->R, B, T));
        tall_add(s->n, rigid, columns, -1, inverse->BR, T, B);
    }
    scale_half(s, columns, B);
    if (s->rows > 0) FEM_TRY(fem_factor_forward(inverse->factor, columns, B, Y));
done:
    fem_free(T);
    return status;
}

// X = the other half: L^-T, then freed of rigid motion
static fem_status go_backward(modes_stitched *s, int columns, const double *Y, double *X) {
    fem_status           status = FEM_OK;
    const modes_inverse *inverse = s->inverse;
    int                  rigid = inverse->report.rigid;
    double              *T = fem_alloc((size_t)rigid * (size_t)columns + 1, sizeof *T);
    if (!T) return stitch_no_memory(s, "loads");
    if (s->rows > 0)
        FEM_TRY(fem_factor_backward(inverse->factor, columns, Y, X));
    else
        memset(X, 0, (size_t)columns * (size_t)s->n * sizeof *X);
    scale_half(s, columns, X);
    if (rigid > 0) {
        FEM_TRY(tall_inner(s->n, rigid, columns, inverse->BR, X, T));
        tall_add(s->n, rigid, columns, -1, inverse->R, T, X);
    }
    s->report.solves += columns;
done:
    fem_free(T);
    return status;
}

enum { STITCHES_OF_HALF = FEM_HALF_COLUMNS / 3 };

// Halves of the stitches that have none yet.
static fem_status add_halves(modes_stitched *s) {
    fem_status status = FEM_OK;
    int        added = s->count - s->ready, halves = (added + STITCHES_OF_HALF - 1) / STITCHES_OF_HALF, next = 0;
    int *columns = fem_alloc((size_t)halves, sizeof *columns), *start = fem_alloc((size_t)halves + 1, sizeof *start);
    fem_half_entry *entries = fem_alloc(6 * (size_t)added, sizeof *entries);
    if (!columns || !start || !entries) {
        status = stitch_no_memory(s, "static answers");
        goto done;
    }
    FEM_TRY(fem_grow((void **)&s->halves, &s->half_capacity, (size_t)(s->half_count + halves), sizeof *s->halves));
    for (int h = 0; h < halves; h++) {
        int first = h * STITCHES_OF_HALF, count = added - first < STITCHES_OF_HALF ? added - first : STITCHES_OF_HALF;
        columns[h] = 3 * count, start[h] = next;
        for (int k = 0; k < 3 * count; k++)
            for (int end = 0; end < 2; end++) {
                const modes_stitch *stitch = &s->stitches[s->ready + first + k / 3];
                int                 vertex = end ? stitch->b : stitch->a, dof = 3 * vertex + k % 3;
                double              value = (end ? -1 : 1) / sqrt(s->factor[s->domain[vertex]]);
                if (!s->inverse->fixed[dof])
                    entries[next++] = (fem_half_entry){.column = k, .dof = dof, .value = value};
            }
    }
    start[halves] = next;
    for (int h = 0; h < halves; h++) s->halves[s->half_count + h] = (fem_half){.columns = columns[h]};
    if (s->rows > 0)
        FEM_TRY(fem_half_create(s->inverse->factor, halves, columns, start, entries, s->halves + s->half_count));
    s->half_count += halves;
done:
    fem_free(columns), fem_free(start), fem_free(entries);
    return status;
}

static fem_status make_rigid_half(modes_stitched *s) {
    size_t  rigid = (size_t)s->inverse->report.rigid, n = (size_t)s->n;
    double *MR = fem_copy(s->inverse->BR, n * rigid, sizeof *MR);
    double *V = fem_alloc((size_t)s->rows * rigid + 1, sizeof *V);
    if (!MR || !V) {
        fem_free(MR), fem_free(V);
        return stitch_no_memory(s, "rigid motions");
    }
    scale_half(s, (int)rigid, MR);
    fem_status status = s->rows > 0 ? fem_factor_forward(s->inverse->factor, (int)rigid, MR, V) : FEM_OK;
    fem_free(MR);
    if (status == FEM_OK)
        s->V = V;
    else
        fem_free(V);
    return status;
}

typedef struct flexibility_work {
    const modes_stitched *s;
    const int            *first; // per half: its first column
    double               *F;
    int                   m;
    bool                 *failed; // per half
} flexibility_work;

static void flexibility_task(void *context, int j, int worker) {
    flexibility_work *w = context;
    (void)worker;
    for (int i = 0; i <= j && !w->failed[j]; i++)
        if (fem_half_inner(&w->s->halves[i], &w->s->halves[j],
                           w->F + (size_t)w->first[j] * (size_t)w->m + (size_t)w->first[i], w->m) != FEM_OK)
            w->failed[j] = true;
}

// Half of G B is W - V beta^T with W = L^-1 B, V = L^-1 M R, beta = B^T R:
// F = W^T W - Z beta^T - beta Z^T + beta V^T V beta^T, Z = W^T V
static fem_status free_of_rigid(const modes_stitched *s, const int *first, int m, double *F) {
    fem_status status = FEM_OK;
    int        rigid = s->inverse->report.rigid;
    size_t     size = (size_t)m * (size_t)rigid;
    double    *beta = fem_alloc(3 * size + (size_t)rigid * (size_t)rigid, sizeof *beta);
    if (!beta) return stitch_no_memory(s, "rigid motions");
    double *Z = beta + size, *P = Z + size, *VV = P + size;
    stitch_differences(s, 0, s->count, rigid, s->inverse->R, beta);
    for (int h = 0; h < s->half_count; h++)
        FEM_TRY(fem_half_project(&s->halves[h], s->rows, rigid, s->V, Z + first[h], m));
    FEM_TRY(tall_inner(s->rows, rigid, rigid, s->V, s->V, VV));
    dense_gemm(false, false, m, rigid, rigid, -0.5, beta, VV, 0, P); // F -= (Z + P) beta^T + its transpose
    dense_axpy((int)size, 1, Z, P);
    dense_gemm(false, true, m, m, rigid, -1, P, beta, 1, F);
    dense_gemm(false, true, m, m, rigid, -1, beta, P, 1, F);
done:
    fem_free(beta);
    return status;
}

fem_status stitch_responses(modes_stitched *s) {
    fem_status status = FEM_OK;
    size_t     m = 3 * (size_t)s->count;
    int        added = 3 * (s->count - s->ready), before = s->half_count, next = 0;
    double    *F = NULL;
    int       *first = NULL;
    bool      *failed = NULL;
    if (added <= 0) return FEM_OK;
    FEM_TRY(add_halves(s));
    if (s->inverse->report.rigid > 0 && !s->V) status = make_rigid_half(s);
    F = fem_calloc(m * m, sizeof *F), first = fem_alloc((size_t)s->half_count, sizeof *first);
    failed = fem_calloc((size_t)s->half_count, sizeof *failed);
    if (status == FEM_OK && (!F || !first || !failed)) status = stitch_no_memory(s, "static answers");
    if (status == FEM_OK && s->rows > 0) {
        for (int h = 0; h < s->half_count; h++) first[h] = next, next += s->halves[h].columns;
        flexibility_work work = {.s = s, .first = first, .F = F, .m = (int)m, .failed = failed};
        fem_parallel_for(s->half_count, flexibility_task, &work);
        for (int h = 0; h < s->half_count; h++)
            if (failed[h]) status = stitch_no_memory(s, "static answers");
        for (size_t j = 0; j < m; j++)
            for (size_t i = 0; i < j; i++) F[i * m + j] = F[j * m + i];
        if (status == FEM_OK && s->inverse->report.rigid > 0) status = free_of_rigid(s, first, (int)m, F);
    }
    if (status != FEM_OK) { // as before
        while (s->half_count > before) fem_half_destroy(&s->halves[--s->half_count]);
        goto done;
    }
    fem_free(s->F);
    s->F = F, F = NULL, s->ready = s->count;
    s->report.solves += added;
done:
    fem_free(F), fem_free(first), fem_free(failed);
    return status;
}

// Of rigid motions: what stitches see of them (3 ready each), and room for their shares in so many columns.
static fem_status rigid_shares(const modes_stitched *s, int columns, double **beta, double **P) {
    int rigid = s->inverse->report.rigid;
    *beta = fem_alloc(3 * (size_t)s->ready * (size_t)rigid + 1, sizeof **beta);
    *P = fem_alloc((size_t)rigid * (size_t)columns + 1, sizeof **P);
    if (!*beta || !*P) return stitch_no_memory(s, "forces");
    if (rigid > 0) stitch_differences(s, 0, s->ready, rigid, s->inverse->R, *beta);
    return FEM_OK;
}

// Y (rows x columns) -= half of G B T
static fem_status subtract_half(const modes_stitched *s, int columns, const double *T, double *Y) {
    fem_status status = FEM_OK;
    int        m = 3 * s->ready, rigid = s->inverse->report.rigid, first = 0;
    double    *beta = NULL, *P = NULL;
    FEM_TRY(rigid_shares(s, columns, &beta, &P));
    for (int h = 0; h < s->half_count; first += s->halves[h++].columns)
        FEM_TRY(fem_half_subtract(&s->halves[h], s->rows, columns, T + first, m, Y));
    if (rigid > 0) {
        dense_gemm(true, false, rigid, columns, m, 1, beta, T, 0, P);
        tall_add(s->rows, rigid, columns, 1, s->V, P, Y);
    }
done:
    fem_free(beta), fem_free(P);
    return status;
}

// T (3 ready x columns) = (half of G B)^T Y
static fem_status project_half(const modes_stitched *s, int columns, const double *Y, double *T) {
    fem_status status = FEM_OK;
    int        m = 3 * s->ready, rigid = s->inverse->report.rigid, first = 0;
    double    *beta = NULL, *P = NULL;
    FEM_TRY(rigid_shares(s, columns, &beta, &P));
    for (int h = 0; h < s->half_count; first += s->halves[h++].columns)
        FEM_TRY(fem_half_project(&s->halves[h], s->rows, columns, Y, T + first, m));
    if (rigid > 0) {
        FEM_TRY(tall_inner(s->rows, rigid, columns, s->V, Y, P));
        dense_gemm(false, false, m, columns, rigid, -1, beta, P, 1, T);
    }
done:
    fem_free(beta), fem_free(P);
    return status;
}

void stitch_coupling_destroy(stitch_coupling *c) {
    fem_free(c->R), fem_free(c->S), fem_free(c->Q), fem_free(c->H);
    *c = (stitch_coupling){0};
}

// By the singular vectors of B^T R.
fem_status stitch_split_rigid(const modes_stitched *s, int first, int count, int rigid, const double *R,
                              double **turned, int *tied) {
    fem_status status = FEM_OK;
    int        rows = 3 * count > rigid ? 3 * count : rigid; // zero rows do not change the singular vectors
    size_t     n = (size_t)s->n, square = (size_t)rigid * (size_t)rigid;
    *turned = NULL, *tied = 0;
    if (rigid == 0) return FEM_OK;
    double *T = fem_calloc((size_t)rows * (size_t)rigid, sizeof *T);
    double *part = fem_alloc(3 * (size_t)count + 1, sizeof *part);
    double *singular = fem_alloc((size_t)rigid, sizeof *singular),
           *result = fem_calloc(n * (size_t)rigid, sizeof *result);
    double *Vt = fem_calloc(square, sizeof *Vt), *V = fem_calloc(square, sizeof *V);
    if (!T || !part || !singular || !result || !Vt || !V) {
        status = stitch_no_memory(s, "rigid motions");
        goto done;
    }
    for (int j = 0; j < rigid; j++) {
        stitch_differences(s, first, count, 1, R + (size_t)j * n, part);
        memcpy(T + (size_t)j * (size_t)rows, part, 3 * (size_t)count * sizeof *T);
    }
    FEM_TRY(dense_svd(rows, rigid, T, singular, Vt));
    double moved = 0; // what differences are small beside; ends of stitches may lie on the axis of a motion
    for (size_t i = 0; i < n * (size_t)rigid; i++) moved = fmax(moved, fabs(R[i]));
    for (int j = 0; j < rigid; j++) {
        *tied += singular[j] > 1e-8 * moved;
        for (int i = 0; i < rigid; i++)
            V[(size_t)j * (size_t)rigid + (size_t)i] = Vt[(size_t)i * (size_t)rigid + (size_t)j];
    }
    tall_add(s->n, rigid, rigid, 1, R, V, result);
    *turned = result;
    result = NULL;
done:
    fem_free(T), fem_free(part), fem_free(singular), fem_free(result), fem_free(Vt), fem_free(V);
    return status;
}

fem_status stitch_coupling_create(modes_stitched *s, int stitches, stitch_coupling *result) {
    fem_status      status = FEM_OK;
    int             m = 3 * stitches;
    stitch_coupling c = {.stitches = stitches};
    FEM_TRY(stitch_split_rigid(s, 0, stitches, s->inverse->report.rigid, s->inverse->R, &c.R, &c.tied));
    c.loose = s->inverse->report.rigid - c.tied;
    c.S = fem_alloc((size_t)m * (size_t)m, sizeof *c.S);
    c.Q = fem_alloc((size_t)m * (size_t)c.tied, sizeof *c.Q);
    c.H = fem_alloc((size_t)c.tied * (size_t)c.tied, sizeof *c.H);
    double *P = fem_alloc((size_t)m * (size_t)c.tied, sizeof *P);
    if (!c.S || !c.Q || !c.H || !P) {
        fem_free(P);
        status = stitch_no_memory(s, "small system");
        goto done;
    }
    if (m > 0) {
        for (int j = 0; j < m; j++)
            memcpy(c.S + (size_t)j * (size_t)m, s->F + 3 * (size_t)j * (size_t)s->ready, (size_t)m * sizeof *c.S);
        for (int i = 0; i < m; i++) c.S[(size_t)i * (size_t)m + (size_t)i] += 1 / s->stitches[i / 3].stiffness;
        status = dense_cholesky(m, c.S);
        if (status == FEM_OK && c.tied > 0) {
            stitch_differences(s, 0, stitches, c.tied, c.R, P);
            memcpy(c.Q, P, (size_t)m * (size_t)c.tied * sizeof *P);
            dense_cholesky_solve(m, c.S, c.tied, c.Q);
            dense_gemm(true, false, c.tied, c.tied, m, 1, P, c.Q, 0, c.H);
            status = dense_cholesky(c.tied, c.H);
        }
        if (status != FEM_OK) fem_fail_prefix(status, "the system of %d stitches: ", stitches);
    }
    fem_free(P);
    if (status != FEM_OK) goto done;
    *result = c;
    c = (stitch_coupling){0};
done:
    stitch_coupling_destroy(&c);
    return status;
}

void stitch_coupling_forces(const stitch_coupling *c, int columns, double *t, double *w) {
    int m = 3 * c->stitches, tied = c->tied;
    if (m == 0) return;
    if (tied > 0) { // H c = R1^T f - Q^T g
        dense_gemm(true, false, tied, columns, m, -1, c->Q, t, 1, w);
        dense_cholesky_solve(tied, c->H, columns, w);
    }
    dense_cholesky_solve(m, c->S, columns, t); // t = S^-1 g + Q c
    if (tied > 0) dense_gemm(false, false, m, columns, tied, 1, c->Q, w, 1, t);
}

fem_status stitch_couple(modes_stitched *s) {
    fem_status status = FEM_OK;
    if (s->coupled) return FEM_OK;
    FEM_TRY(stitch_responses(s));
    FEM_TRY(stitch_coupling_create(s, s->count, &s->whole));
    s->coupled = true;
done:
    return status;
}

fem_status modes_stitched_get_report(modes_stitched *s, modes_stitched_report *report) {
    fem_status status = stitch_couple(s);
    if (status != FEM_OK) return status;
    s->report.loose = s->whole.loose;
    *report = s->report;
    return FEM_OK;
}

// b -= M R0 R0^T b, and zero where fixed
static fem_status free_of_loose(const modes_stitched *s, int columns, double *B) {
    fem_status    status = FEM_OK;
    size_t        n = (size_t)s->n;
    int           loose = s->whole.loose;
    const double *R0 = s->whole.R ? s->whole.R + (size_t)s->whole.tied * n : NULL;
    double       *MR = NULL, *T = NULL;
    for (size_t i = 0; i < (size_t)columns * n; i++)
        if (s->inverse->fixed[i % n]) B[i] = 0;
    if (loose == 0) return FEM_OK;
    MR = fem_alloc(n * (size_t)loose, sizeof *MR), T = fem_alloc((size_t)loose * (size_t)columns, sizeof *T);
    if (!MR || !T) {
        status = stitch_no_memory(s, "loads");
        goto done;
    }
    modes_mass_multiply(&s->mass, loose, R0, MR);
    FEM_TRY(tall_inner(s->n, loose, columns, R0, B, T));
    tall_add(s->n, loose, columns, -1, MR, T, B);
done:
    fem_free(MR), fem_free(T);
    return status;
}

// X = [K^-1 F, G B T] for `columns` of F, which are free of loose motions, and `loads` of T: one way back for both. F
// is kept, `work` has its size.
static fem_status solve_once(modes_stitched *s, int columns, const double *F, double *work, int loads, const double *T,
                             double *X) {
    fem_status status = FEM_OK;
    int        tied = s->whole.tied, m = 3 * s->ready;
    size_t     solved = (size_t)s->rows * (size_t)columns, size = (size_t)s->rows * (size_t)(columns + loads);
    double    *w = fem_alloc((size_t)tied * (size_t)columns + 1, sizeof *w);
    double    *t = fem_alloc((size_t)m * (size_t)columns + 1, sizeof *t), *Y = fem_alloc(size + 1, sizeof *Y);
    if (!w || !t || !Y) {
        status = stitch_no_memory(s, "loads");
        goto done;
    }
    if (columns > 0) {
        if (tied > 0) FEM_TRY(tall_inner(s->n, tied, columns, s->whole.R, F, w));
        memcpy(work, F, (size_t)columns * (size_t)s->n * sizeof *F);
        FEM_TRY(go_forward(s, columns, work, Y));
    }
    if (columns > 0 && m > 0) {
        FEM_TRY(project_half(s, columns, Y, t));
        stitch_coupling_forces(&s->whole, columns, t, w);
        FEM_TRY(subtract_half(s, columns, t, Y));
    }
    if (loads > 0) {
        memset(Y + solved, 0, (size - solved) * sizeof *Y);
        FEM_TRY(subtract_half(s, loads, T, Y + solved));
        for (size_t i = solved; i < size; i++) Y[i] = -Y[i];
    }
    FEM_TRY(go_backward(s, columns + loads, Y, X));
    if (columns > 0 && tied > 0) tall_add(s->n, tied, columns, 1, s->whole.R, w, X);
done:
    fem_free(w), fem_free(t), fem_free(Y);
    return status;
}

fem_status stitch_answers(modes_stitched *s, int loads, const double *T, double *X) {
    return solve_once(s, 0, NULL, NULL, loads, T, X);
}

fem_status stitch_solve_beside(modes_stitched *s, int columns, double *B, int loads, const double *T, double *X) {
    fem_status status = FEM_OK;
    double    *work = NULL;
    FEM_TRY(stitch_couple(s));
    work = fem_alloc((size_t)s->n * (size_t)columns + 1, sizeof *work);
    if (!work) {
        status = stitch_no_memory(s, "solutions");
        goto done;
    }
    FEM_TRY(free_of_loose(s, columns, B));
    FEM_TRY(solve_once(s, columns, B, work, loads, T, X));
done:
    fem_free(work);
    return status;
}

enum { SOLVE_COLUMNS = 64 }; // at a time: bounds the work space
static const double refine_above = 1e-11;

static double largest_entry(const modes_stitched *s) { // of K^; diagonal blocks come first in their rows
    const fem_sparse *K = s->problem->K;
    double            largest = 0;
    for (int v = 0; v < K->n; v++)
        for (int i = 0; s->domain[v] >= 0 && i < 9; i += 4)
            largest = fmax(largest, s->factor[s->domain[v]] * K->value[9 * (size_t)K->row_start[v] + (size_t)i]);
    for (int k = 0; k < s->count; k++) largest = fmax(largest, s->stitches[k].stiffness);
    return largest;
}

static fem_status solve_panel(modes_stitched *s, int columns, bool checked, double *B, double *work, double *X) {
    fem_status status = FEM_OK;
    size_t     n = (size_t)s->n;
    int        rough = 0;
    double    *correction = work + (size_t)columns * n, rounding = 1e-15 * largest_entry(s); // of K^ x, per |x|
    FEM_TRY(free_of_loose(s, columns, B));
    FEM_TRY(solve_once(s, columns, B, work, 0, NULL, X));
    for (int pass = 0; pass < 2 && checked; pass++) {
        double worst = 0;
        modes_stitched_multiply(s, columns, X, work);
        rough = 0;
        for (int c = 0; c < columns; c++) {
            double square = 0, whole = 0;
            for (size_t i = (size_t)c * n; i < ((size_t)c + 1) * n; i++) {
                work[i] = s->inverse->fixed[i % n] ? 0 : B[i] - work[i];
                square += work[i] * work[i], whole += B[i] * B[i];
            }
            double residual = whole > 0 ? sqrt(square / whole) : 0;
            rough += residual > refine_above && sqrt(square) > rounding * dense_norm(s->n, X + (size_t)c * n);
            worst = fmax(worst, residual);
        }
        s->report.residual = fmax(s->report.residual, worst);
        if (!isfinite(worst))
            return fem_fail(FEM_INDEFINITE, "the system of %d stitches has no finite solution", s->count);
        if (pass == 1 || rough == 0) break;
        s->report.residual = 0; // of the answer, not of the first attempt
        s->report.refined += columns;
        FEM_TRY(solve_once(s, columns, work, correction + (size_t)columns * n, 0, NULL, correction));
        for (size_t i = 0; i < (size_t)columns * n; i++) X[i] += correction[i];
    }
    for (size_t i = 0; i < (size_t)columns * n; i++)
        if (s->inverse->fixed[i % n]) X[i] = 0;
done:
    return status;
}

fem_status stitch_solve(modes_stitched *s, int columns, bool checked, double *B, double *X) {
    fem_status status = FEM_OK;
    size_t     n = (size_t)s->n;
    int        panel = columns < SOLVE_COLUMNS ? columns : SOLVE_COLUMNS;
    double    *work = NULL, begun = fem_seconds();
    FEM_TRY(stitch_couple(s));
    work = fem_alloc(3 * n * (size_t)panel, sizeof *work);
    if (!work) {
        status = stitch_no_memory(s, "solutions");
        goto done;
    }
    s->report.residual = 0;
    for (int first = 0; first < columns; first += panel) {
        int part = columns - first < panel ? columns - first : panel;
        FEM_TRY(solve_panel(s, part, checked, B + (size_t)first * n, work, X + (size_t)first * n));
    }
done:
    s->report.seconds_solve += fem_seconds() - begun;
    fem_free(work);
    return status;
}

fem_status modes_stitched_solve(modes_stitched *s, int columns, double *B, double *X) {
    return stitch_solve(s, columns, true, B, X);
}
