// Linear inertia modes: the Krylov space of K^-1 M over a few seeds, with one factorisation and block solves.
// [Craig, Hale 1988; Yang et al. 2013; P0 section 4.1]
//
//     U_1 = [K^-1 F, K^-1 M U_0],   U_m = K^-1 M U_(m-1),   each block made orthonormal to all before it.
//
// U_0 are the seeds and F the unit wrenches on interfaces with other bodies. A dependent column is dropped, and what it
// would have led to with it: columns wait in one queue, each one's successor joins at the end, so that the recursion
// goes on with whatever is left, and fails when nothing is. A body that is not held is treated by the bordered inverse
// of inverse.c. Rigid seeds are of no use to it: their load M U_0 is a rigid one, which the border takes away (with the
// mass border all of it, with the plain border all but an artefact of the mesh).
#include "libmodes/krylov_internal.h"

#include <string.h>

modes_krylov_options modes_krylov_default_options(void) {
    return (modes_krylov_options){
        .count = 20, .fields = 6, .random_state = 1, .orthogonalise = modes_orthogonalise_default_options()};
}

typedef struct krylov {
    const modes_problem        *problem;
    const modes_krylov_options *options;
    const fem_progress         *progress;
    modes_inverse              *inverse;
    bool                        own_inverse;
    modes_mass                  mass;
    modes_orthogonaliser       *orthogonaliser;
    modes_basis                 basis;
    unsigned                    seeds;
    int                         have; // columns of the basis so far
    modes_krylov_report         report;
} krylov;

// ---- what can be wrong before anything is computed -----------------------------------------------------------------

static fem_status check_options(const modes_krylov_options *o) {
    if (o->count < 1) return fem_fail(FEM_BAD_INPUT, "krylov.count is %d, expected > 0", o->count);
    if (o->seeds & ~(unsigned)(MODES_SEED_RIGID | MODES_SEED_QUADRATIC | MODES_SEED_RANDOM))
        return fem_fail(FEM_BAD_INPUT, "krylov.seeds is 0x%x, which has unknown bits", o->seeds);
    if (o->fields < 1) return fem_fail(FEM_BAD_INPUT, "krylov.fields is %d, expected > 0", o->fields);
    if (o->vector_count < 0 || (o->vector_count > 0 && !o->vectors))
        return fem_fail(FEM_BAD_INPUT, "krylov.vector_count is %d, expected >= 0 and as many vectors", o->vector_count);
    if (o->interface_count < 0 || (o->interface_count > 0 && !o->interfaces))
        return fem_fail(FEM_BAD_INPUT, "krylov.interface_count is %d, expected >= 0 and as many interfaces",
                        o->interface_count);
    if (o->interface_seeds < 0)
        return fem_fail(FEM_BAD_INPUT, "krylov.interface_seeds is %d, expected >= 0", o->interface_seeds);
    if (o->norm != MODES_NORM_MASS && o->norm != MODES_NORM_ENERGY)
        return fem_fail(FEM_BAD_INPUT, "krylov.norm is %d, expected 0 or 1", (int)o->norm);
    return FEM_OK;
}

// What is wrong is said before the long computation.
static fem_status prepare(krylov *k) {
    fem_status                  status = FEM_OK;
    const modes_krylov_options *o = k->options;
    modes_supports              supports;
    FEM_TRY(check_options(o));
    FEM_TRY(modes_check_body(k->problem, &supports));
    FEM_TRY(modes_check_count(&supports, o->count));
    if (o->seeds & MODES_SEED_RIGID)
        FEM_TRY(modes_check_held(&supports, "rigid seeds need a body that is held (a free one they would not deform)",
                                 "; or quadratic or random seeds, vectors or interfaces would do"));
    if (o->inverse) {
        const modes_problem *other = o->inverse->problem;
        if (other->K != k->problem->K || other->M != k->problem->M || other->fixed != k->problem->fixed) {
            status = fem_fail(FEM_BAD_INPUT, "krylov.inverse belongs to another problem");
            goto done;
        }
    }
    k->seeds = o->seeds;
    if (k->seeds == 0 && o->vector_count == 0) k->seeds = supports.rigid > 0 ? MODES_SEED_QUADRATIC : MODES_SEED_RIGID;
    FEM_TRY(fem_progress_report(k->progress, "factorisation", 0));
    if (o->inverse)
        k->inverse = o->inverse;
    else
        FEM_TRY(modes_inverse_create(&k->inverse, k->problem, o->border));
    k->own_inverse = !o->inverse;
    k->report.free_dofs = supports.free_dofs;
    k->report.rigid = supports.rigid;
    k->report.seconds_factor = modes_inverse_get_report(k->inverse).seconds_factor;
done:
    return status;
}

// ---- the first block -----------------------------------------------------------------------------------------------

static fem_status solve(krylov *k, int columns, double *B, double *X) {
    double     begin = fem_seconds();
    fem_status status = modes_inverse_solve(k->inverse, columns, B, X);
    k->report.seconds_solve += fem_seconds() - begin;
    k->report.solves += columns;
    return status;
}

// B = M U_0 with columns of unit mass norm. The load of a rigid motion that the supports allow is zero but for
// rounding, which a solution would blow up: it becomes zero. U_0 is work space afterwards.
static fem_status seed_loads(krylov *k, int columns, double *U0, double *B) {
    int     n = k->basis.n;
    double *before = fem_alloc((size_t)columns, sizeof *before);
    if (!before) return fem_fail(FEM_NO_MEMORY, "no memory for %d seeds", columns);
    modes_mass_multiply(&k->mass, columns, U0, B);
    for (int c = 0; c < columns; c++) {
        double *u = U0 + (size_t)c * (size_t)n, *b = B + (size_t)c * (size_t)n, square = dense_dot(n, u, b);
        if (square > 0) dense_scale(n, 1 / sqrt(square), b);
        before[c] = dense_norm(n, u);
    }
    modes_inverse_project(k->inverse, columns, U0);
    for (int c = 0; c < columns; c++)
        if (!(dense_norm(n, U0 + (size_t)c * (size_t)n) > 1e-8 * before[c]))
            memset(B + (size_t)c * (size_t)n, 0, (size_t)n * sizeof *B);
    fem_free(before);
    return FEM_OK;
}

// X = K^-1 F <- its `keep` largest combinations; F holds the loads and is work space afterwards.
static fem_status solve_and_compress(krylov *k, int columns, int keep, double *F, double *X, double *share) {
    fem_status status = FEM_OK;
    memcpy(X, F, (size_t)k->basis.n * (size_t)columns * sizeof *X);
    *share = 1;
    FEM_TRY(solve(k, columns, X, X));
    if (keep == columns) goto done;
    if (k->options->norm == MODES_NORM_MASS) modes_mass_multiply(&k->mass, columns, X, F); // else F^T X = X^T K X
    FEM_TRY(modes_compress(k->basis.n, columns, keep, F, X, share));
done:
    return status;
}

// Static responses of the interfaces, weighted, compressed to `keep`, in X.
static fem_status interface_block(krylov *k, int keep, double *X) {
    fem_status status = FEM_OK;
    int        n = k->basis.n, columns = 6 * k->options->interface_count;
    double    *F = fem_alloc((size_t)n * (size_t)columns, sizeof *F);
    if (!F) return fem_fail(FEM_NO_MEMORY, "no memory for the wrenches on %d interfaces", k->options->interface_count);
    for (int i = 0; i < k->options->interface_count; i++) {
        double force, moment, *wrenches = F + 6 * (size_t)i * (size_t)n;
        status = modes_interface_wrenches(k->problem, k->options->interfaces + i, wrenches);
        if (status == FEM_OK) status = modes_interface_scale(k->problem, k->options->interfaces + i, &force, &moment);
        if (status != FEM_OK) {
            fem_fail_prefix(status, "interface %d: ", i);
            goto done;
        }
        for (int c = 0; c < 6; c++) dense_scale(n, c < 3 ? force : moment, wrenches + (size_t)c * (size_t)n);
    }
    FEM_TRY(solve_and_compress(k, columns, keep, F, X, &k->report.interface_share));
    k->report.interface_kept = keep;
done:
    fem_free(F);
    return status;
}

// K^-1 M U_0, the largest `keep` combinations when there are more seeds than modes, in X.
static fem_status inertia_block(krylov *k, int columns, int keep, double *X) {
    fem_status status = FEM_OK;
    int        n = k->basis.n, fields = columns - k->options->vector_count;
    double     share, *U0 = fem_alloc((size_t)n * (size_t)columns, sizeof *U0);
    if (!U0) return fem_fail(FEM_NO_MEMORY, "no memory for %d seeds", columns);
    modes_seed_fields(k->problem, k->inverse->fixed, k->seeds, k->options->fields, k->options->random_state, U0);
    for (int c = 0; c < k->options->vector_count; c++)
        for (int i = 0; i < n; i++)
            U0[(size_t)(fields + c) * (size_t)n + (size_t)i] =
                k->inverse->fixed[i] ? 0 : k->options->vectors[(size_t)c * (size_t)n + (size_t)i];
    FEM_TRY(seed_loads(k, columns, U0, X));
    memcpy(U0, X, (size_t)n * (size_t)columns * sizeof *X);
    FEM_TRY(solve_and_compress(k, columns, keep, U0, X, &share));
done:
    fem_free(U0);
    return status;
}

static fem_status orthogonalise(krylov *k, int columns, int *kept) {
    double     begin = fem_seconds();
    fem_status status = modes_orthogonaliser_add(k->orthogonaliser, columns, kept);
    k->report.seconds_orthogonalise += fem_seconds() - begin;
    k->report.blocks++;
    k->report.dropped += columns - *kept;
    k->have += *kept;
    return status;
}

static int smaller(int a, int b) { return a < b ? a : b; }

static fem_status first_block(krylov *k) {
    const modes_krylov_options *o = k->options;
    fem_status                  status = FEM_OK;
    int                         n = k->basis.n, kept = 0, wrenches = 6 * o->interface_count;
    int                         most = o->interface_seeds > 0 ? smaller(o->interface_seeds, o->count) : o->count;
    int                         from_interfaces = smaller(wrenches, most), own = modes_seed_count(k->seeds, o->fields);
    int     columns = own + o->vector_count, from_seeds = smaller(columns, o->count - from_interfaces);
    int     width = wrenches > columns ? wrenches : columns;
    double *X = fem_alloc((size_t)n * (size_t)width, sizeof *X);
    if (!X) return fem_fail(FEM_NO_MEMORY, "no memory for %d seeds", width);
    if (from_interfaces > 0) {
        FEM_TRY(interface_block(k, from_interfaces, X));
        memcpy(k->basis.U, X, (size_t)n * (size_t)from_interfaces * sizeof *X);
    }
    if (from_seeds > 0) {
        FEM_TRY(inertia_block(k, columns, from_seeds, X));
        memcpy(k->basis.U + (size_t)n * (size_t)from_interfaces, X, (size_t)n * (size_t)from_seeds * sizeof *X);
    }
    k->report.seeds = from_interfaces + from_seeds;
    FEM_TRY(orthogonalise(k, k->report.seeds, &kept));
    if (kept == 0)
        status = fem_fail(FEM_BAD_INPUT,
                          "none of the %d seeds deforms the body: their loads are zero or rigid; other "
                          "seeds would do",
                          k->report.seeds);
done:
    fem_free(X);
    return status;
}

// ---- the recursion -------------------------------------------------------------------------------------------------

static fem_status recur(krylov *k) {
    fem_status status = FEM_OK;
    int        n = k->basis.n, count = k->options->count, source = 0, kept = 0;
    int        width = smaller(k->have, MODES_PANEL);
    double    *B = fem_alloc((size_t)n * (size_t)width, sizeof *B);
    if (!B) return fem_fail(FEM_NO_MEMORY, "no memory for %d right-hand sides", width);
    while (k->have < count) {
        int columns = smaller(width, smaller(count - k->have, k->have - source));
        if (columns == 0) {
            status =
                fem_fail(FEM_BAD_INPUT,
                         "the Krylov space of these seeds has only %d dimensions, %d modes were asked for: more or "
                         "other seeds (random ones, for instance) would do",
                         k->have, count);
            goto done;
        }
        FEM_TRY(fem_progress_report(k->progress, "Krylov block", (double)k->have / count));
        modes_orthogonaliser_mass(k->orthogonaliser, source, columns, B);
        FEM_TRY(solve(k, columns, B, k->basis.U + (size_t)k->have * (size_t)n));
        FEM_TRY(orthogonalise(k, columns, &kept));
        source += columns;
    }
done:
    fem_free(B);
    return status;
}

// ---- Rayleigh quotients, Ritz step, residuals ----------------------------------------------------------------------

typedef fem_status (*panel_function)(krylov *k, int first, int columns, const double *KU, void *context);

// Calls a function with K U for a few columns at a time.
static fem_status for_stiffness(krylov *k, panel_function function, void *context) {
    fem_status status = FEM_OK;
    int        n = k->basis.n, r = k->basis.r, most = smaller(r, MODES_PANEL);
    double    *KU = fem_alloc((size_t)n * (size_t)most, sizeof *KU);
    if (!KU) return fem_fail(FEM_NO_MEMORY, "no memory for the stiffness of %d modes", r);
    for (int first = 0; first < r; first += most) {
        int columns = smaller(most, r - first);
        fem_sparse_multiply(k->problem->K, columns, k->basis.U + (size_t)first * (size_t)n, KU);
        FEM_TRY(function(k, first, columns, KU, context));
    }
done:
    fem_free(KU);
    return status;
}

static fem_status reduced_stiffness(krylov *k, int first, int columns, const double *KU, void *context) {
    double *reduced = context; // r x r
    return tall_inner(k->basis.n, k->basis.r, columns, k->basis.U, KU, reduced + (size_t)first * (size_t)k->basis.r);
}

// Without a Ritz step omega^2 is the Rayleigh quotient. MU is n x MODES_PANEL, or NULL when no residuals are wanted.
static fem_status measure(krylov *k, int first, int columns, const double *KU, void *context) {
    double *MU = context;
    size_t  n = (size_t)k->basis.n;
    if (MU) modes_mass_multiply(&k->mass, columns, k->basis.U + (size_t)first * n, MU);
    for (size_t c = 0; c < (size_t)columns; c++) {
        size_t j = (size_t)first + c;
        double square = 0, whole = 0;
        if (!k->options->ritz)
            k->basis.omega2[j] = k->report.rayleigh[j] = dense_dot(k->basis.n, k->basis.U + j * n, KU + c * n);
        for (size_t i = 0; MU && i < n; i++) {
            if (k->inverse->fixed[i]) continue; // reactions
            double force = KU[c * n + i], d = force - k->basis.omega2[j] * MU[c * n + i];
            square += d * d, whole += force * force;
        }
        k->report.residuals[j] = whole > 0 ? sqrt(square / whole) : 0;
    }
    return FEM_OK;
}

// U^T K U = V D V^T, U <- U V, omega^2 = D
static fem_status ritz(krylov *k) {
    fem_status status = FEM_OK;
    int        n = k->basis.n, r = k->basis.r;
    double    *T = fem_alloc((size_t)r * (size_t)r, sizeof *T);
    if (!T) return fem_fail(FEM_NO_MEMORY, "no memory for a Ritz step of %d modes", r);
    FEM_TRY(for_stiffness(k, reduced_stiffness, T));
    for (size_t j = 0; j < (size_t)r; j++) k->report.rayleigh[j] = T[j * (size_t)r + j];
    FEM_TRY(dense_symmetric_eigen(r, T, k->basis.omega2));
    FEM_TRY(tall_right(n, r, r, T, k->basis.U));
done:
    fem_free(T);
    return status;
}

static fem_status finish(krylov *k, bool with_residuals) {
    fem_status status = FEM_OK;
    double     begin = fem_seconds(), *MU = NULL;
    double     before = k->orthogonaliser->report.seconds;
    FEM_TRY(modes_orthogonaliser_finish(k->orthogonaliser, &k->report.orthogonalise));
    k->report.seconds_orthogonalise += k->report.orthogonalise.seconds - before;
    modes_orthogonaliser_destroy(k->orthogonaliser); // its M U is not needed any more
    k->orthogonaliser = NULL;
    if (k->options->ritz) {
        double begin_ritz = fem_seconds();
        FEM_TRY(ritz(k));
        k->report.seconds_ritz = fem_seconds() - begin_ritz;
    }
    if (with_residuals) {
        MU = fem_alloc((size_t)k->basis.n * (size_t)smaller(k->basis.r, MODES_PANEL), sizeof *MU);
        if (!MU) {
            status = fem_fail(FEM_NO_MEMORY, "no memory for the residuals of %d modes", k->basis.r);
            goto done;
        }
    }
    if (with_residuals || !k->options->ritz) FEM_TRY(for_stiffness(k, measure, MU));
    k->report.seconds_report =
        fem_seconds() - begin - k->report.seconds_ritz - (k->report.orthogonalise.seconds - before);
done:
    fem_free(MU);
    return status;
}

static fem_status allocate(krylov *k) {
    int    n = 3 * k->problem->mesh->vertex_count, r = k->options->count;
    size_t rows = (size_t)n;
    k->basis = (modes_basis){.n = n, .r = r};
    k->basis.U = fem_alloc(rows * (size_t)r, sizeof *k->basis.U);
    k->basis.omega2 = fem_alloc((size_t)r, sizeof *k->basis.omega2);
    k->report.rayleigh = fem_calloc((size_t)r, sizeof *k->report.rayleigh);
    k->report.residuals = fem_calloc((size_t)r, sizeof *k->report.residuals);
    if (!k->basis.U || !k->basis.omega2 || !k->report.rayleigh || !k->report.residuals)
        return fem_fail(FEM_NO_MEMORY, "no memory for %d modes of %d degrees of freedom", r, n);
    return FEM_OK;
}

fem_status modes_krylov(const modes_problem *problem, const modes_krylov_options *options, const fem_progress *progress,
                        modes_basis *basis, modes_krylov_report *report) {
    fem_status status = FEM_OK;
    krylov     k = {.problem = problem, .options = options, .progress = progress};
    FEM_TRY(prepare(&k));
    FEM_TRY(allocate(&k));
    FEM_TRY(modes_mass_create(&k.mass, problem->M));
    FEM_TRY(
        modes_orthogonaliser_create(&k.orthogonaliser, problem, &options->orthogonalise, options->count, k.basis.U));
    k.report.seconds_orthogonalise = k.orthogonaliser->report.seconds;
    FEM_TRY(first_block(&k));
    FEM_TRY(recur(&k));
    FEM_TRY(finish(&k, report != NULL));
    FEM_TRY(modes_check_stiff(problem, &k.basis));
    modes_basis_destroy(basis);
    *basis = k.basis;
    k.basis = (modes_basis){0};
    if (report) {
        *report = k.report;
        k.report.rayleigh = k.report.residuals = NULL;
    }
done:
    fem_free(k.report.rayleigh);
    fem_free(k.report.residuals);
    modes_basis_destroy(&k.basis);
    modes_orthogonaliser_destroy(k.orthogonaliser);
    modes_mass_destroy(&k.mass);
    if (k.own_inverse) modes_inverse_destroy(k.inverse);
    return status;
}
