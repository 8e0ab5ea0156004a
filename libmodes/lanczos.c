// Vibration modes by ARPACK's implicitly restarted Lanczos method in shift-invert mode: the one place that calls
// ARPACK. [Lehoucq, Sorensen, Yang 1998]
//
// Vectors have the full length with zeros on fixed degrees of freedom. The operator is K^-1 M, for a body that is not
// held the pseudo-inverse of inverse.c, so that rigid motions never enter the iteration and no shift has to be guessed:
// a shift near zero would make the factor ill-conditioned, a large one slow, and either would need the rigid modes
// sorted out.
#include "libmodes/internal.h"

#include <arpack/arpack.h>
#include <pthread.h>
#include <string.h>

enum {
    DENSE_DOFS = 300,    // below this LAPACK's dense solver is as fast, and gives every mode
    MOST_VECTORS = 40000 // ARPACK counts its work space, the square of this, with int
};

static pthread_mutex_t arpack_lock = PTHREAD_MUTEX_INITIALIZER; // ARPACK keeps its state in static variables

modes_lanczos_options modes_lanczos_default_options(void) {
    return (modes_lanczos_options){.count = 10, .tolerance = 1e-12, .max_restarts = 1000};
}

// ---- dense, for small bodies ---------------------------------------------------------------------------------------

static void add_dense(const fem_sparse *A, const int *number, int m, double *D) {
    for (int i = 0; i < A->n; i++)
        for (int k = A->row_start[i]; k < A->row_start[i + 1]; k++)
            for (int e = 0; e < 9; e++) {
                int row = number[3 * i + e / 3], column = number[3 * A->column[k] + e % 3];
                if (row < 0 || column < 0) continue;
                D[(size_t)column * (size_t)m + (size_t)row] = D[(size_t)row * (size_t)m + (size_t)column] =
                    A->value[9 * (size_t)k + (size_t)e];
            }
}

static fem_status solve_dense(const modes_inverse *inverse, modes_basis *basis) {
    fem_status status = FEM_OK;
    int        n = inverse->n, m = inverse->report.free_dofs, next = 0;
    int       *number = fem_alloc((size_t)n, sizeof *number);
    double    *K = fem_calloc((size_t)m * (size_t)m, sizeof *K), *M = fem_calloc((size_t)m * (size_t)m, sizeof *M);
    double    *values = fem_alloc((size_t)m, sizeof *values);
    if (!number || !K || !M || !values) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a dense eigenproblem of size %d", m);
        goto done;
    }
    for (int i = 0; i < n; i++) number[i] = inverse->fixed[i] ? -1 : next++;
    add_dense(inverse->problem->K, number, m, K);
    add_dense(inverse->problem->M, number, m, M);
    FEM_TRY(dense_generalized_eigen(m, K, M, values));
    for (int j = 0; j < basis->r; j++) {
        int k = j + inverse->report.rigid; // the rigid motions are the lowest
        basis->omega2[j] = values[k];
        for (int i = 0; i < n; i++)
            if (number[i] >= 0)
                basis->U[(size_t)j * (size_t)n + (size_t)i] = K[(size_t)k * (size_t)m + (size_t)number[i]];
    }
done:
    fem_free(number);
    fem_free(K);
    fem_free(M);
    fem_free(values);
    return status;
}

// ---- ARPACK --------------------------------------------------------------------------------------------------------

static void mass_product(const modes_inverse *inverse, const double *x, double *y) { // y = M x, zero where fixed
    fem_sparse_multiply(inverse->problem->M, 1, x, y);
    for (int i = 0; i < inverse->n; i++)
        if (inverse->fixed[i]) y[i] = 0;
}

// A start vector that has a part of every mode: pseudo-random, the same each time, one inverse away from rough.
static void start_vector(const modes_inverse *inverse, double *x) {
    unsigned state = 1;
    for (int i = 0; i < inverse->n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = inverse->fixed[i] ? 0 : (double)(state >> 8) / 8388608.0 - 1;
    }
    modes_inverse_project(inverse, 1, x);
}

static fem_status iterate(modes_inverse *inverse, const modes_lanczos_options *o, const fem_progress *progress,
                          int vectors, modes_basis *basis, modes_report *report) {
    fem_status status = FEM_OK;
    a_int      n = inverse->n, count = basis->r, ido = 0, info = 1, iparam[11] = {0}, ipntr[11] = {0};
    a_int      lworkl = vectors * (vectors + 8);
    double    *resid = fem_alloc((size_t)n, sizeof *resid), *V = fem_alloc((size_t)n * (size_t)vectors, sizeof *V);
    double    *workd = fem_calloc(3 * (size_t)n, sizeof *workd), *workl = fem_calloc((size_t)lworkl, sizeof *workl);
    double    *right = fem_alloc((size_t)n, sizeof *right);
    a_int     *select = fem_calloc((size_t)vectors, sizeof *select);
    if (!resid || !V || !workd || !workl || !right || !select) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d Lanczos vectors of length %d", vectors, (int)n);
        goto done;
    }
    start_vector(inverse, resid);
    iparam[0] = 1, iparam[2] = o->max_restarts, iparam[3] = 1, iparam[6] = 3;
    for (;;) {
        dsaupd_c(&ido, "G", n, "LM", count, o->tolerance, resid, vectors, V, n, iparam, ipntr, workd, workl, lworkl,
                 &info);
        double *x = workd + ipntr[0] - 1, *y = workd + ipntr[1] - 1;
        if (ido == -1 || ido == 1) {
            if (ido == -1)
                mass_product(inverse, x, right);
            else
                memcpy(right, workd + ipntr[2] - 1, (size_t)n * sizeof *right);
            FEM_TRY(modes_inverse_solve(inverse, 1, right, y));
            report->solves++;
            if (report->solves % 8 == 0) // ARPACK does not tell how far it is: after m solves, about m of 3 ncv
                FEM_TRY(fem_progress_report(progress, "Lanczos iteration",
                                            report->solves / (report->solves + 1.0 * vectors)));
        } else if (ido == 2) {
            mass_product(inverse, x, y);
        } else {
            break;
        }
    }
    report->restarts = iparam[2];
    if (info < 0 || iparam[4] < count) {
        status = fem_fail(FEM_NO_CONVERGENCE,
                          "Lanczos found %d of %d modes after %d restarts (ARPACK's info %d); more vectors, a larger "
                          "tolerance or fewer modes would do",
                          (int)iparam[4], (int)count, (int)iparam[2], (int)info);
        goto done;
    }
    dseupd_c(1, "A", select, basis->omega2, V, n, 0, "G", n, "LM", count, o->tolerance, resid, vectors, V, n, iparam,
             ipntr, workd, workl, lworkl, &info);
    if (info != 0)
        status = fem_fail(FEM_NO_CONVERGENCE, "ARPACK could not extract the modes (info %d)", (int)info);
    else
        memcpy(basis->U, V, (size_t)n * (size_t)count * sizeof *V);
done:
    fem_free(resid), fem_free(V), fem_free(workd), fem_free(workl), fem_free(right), fem_free(select);
    return status;
}

// ---- finish --------------------------------------------------------------------------------------------------------

// Ascending (ARPACK's order is nearly so), mass-normalised, omega^2 by the Rayleigh quotient; residuals and
// orthogonality.
static fem_status finish(const modes_inverse *inverse, modes_basis *basis, modes_report *report) {
    fem_status status = FEM_OK;
    int        n = basis->n, r = basis->r;
    size_t     size = (size_t)n * (size_t)r;
    double    *KU = fem_alloc(size, sizeof *KU), *MU = fem_alloc(size, sizeof *MU);
    double    *gram = fem_alloc((size_t)r * (size_t)r, sizeof *gram);
    report->residuals = fem_calloc((size_t)r, sizeof *report->residuals);
    if (!KU || !MU || !gram || !report->residuals) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the residuals of %d modes", r);
        goto done;
    }
    for (int j = 1; j < r; j++) // insertion sort, columns swapped along
        for (int k = j; k > 0 && basis->omega2[k] < basis->omega2[k - 1]; k--) {
            double value = basis->omega2[k], *a = basis->U + (size_t)k * (size_t)n, *b = a - n;
            basis->omega2[k] = basis->omega2[k - 1], basis->omega2[k - 1] = value;
            for (int i = 0; i < n; i++) value = a[i], a[i] = b[i], b[i] = value;
        }
    fem_sparse_multiply(inverse->problem->M, r, basis->U, MU);
    fem_sparse_multiply(inverse->problem->K, r, basis->U, KU);
    for (int j = 0; j < r; j++) {
        double *u = basis->U + (size_t)j * (size_t)n, *ku = KU + (size_t)j * (size_t)n,
               *mu = MU + (size_t)j * (size_t)n;
        double norm = sqrt(dense_dot(n, u, mu)), square = 0, whole = 0;
        dense_scale(n, 1 / norm, u), dense_scale(n, 1 / norm, ku), dense_scale(n, 1 / norm, mu);
        basis->omega2[j] = dense_dot(n, u, ku);
        for (int i = 0; i < n; i++) {
            if (inverse->fixed[i]) continue; // reactions
            double d = ku[i] - basis->omega2[j] * mu[i];
            square += d * d, whole += ku[i] * ku[i];
        }
        report->residuals[j] = sqrt(square / whole);
    }
    dense_gemm(true, false, r, r, n, 1, basis->U, MU, 0, gram);
    for (int j = 0; j < r * r; j++)
        report->orthogonality = fmax(report->orthogonality, fabs(gram[j] - (j % (r + 1) == 0)));
done:
    fem_free(KU), fem_free(MU), fem_free(gram);
    return status;
}

static fem_status check_options(const modes_lanczos_options *o) {
    if (o->count < 1) return fem_fail(FEM_BAD_INPUT, "modes.count is %d, expected > 0", o->count);
    if (!(o->tolerance >= 0 && o->tolerance < 1))
        return fem_fail(FEM_BAD_INPUT, "modes.tolerance is %g, expected 0 <= tolerance < 1", o->tolerance);
    if (o->max_restarts < 1) return fem_fail(FEM_BAD_INPUT, "modes.max_restarts is %d, expected > 0", o->max_restarts);
    if (o->vectors != 0 && o->vectors <= o->count)
        return fem_fail(FEM_BAD_INPUT, "modes.vectors is %d, expected more than count (%d), or 0", o->vectors,
                        o->count);
    return FEM_OK;
}

fem_status modes_lanczos(const modes_problem *problem, const modes_lanczos_options *options,
                         const fem_progress *progress, modes_basis *result, modes_report *result_report) {
    fem_status     status = FEM_OK;
    modes_inverse *inverse = NULL;
    modes_basis    basis = {0};
    modes_report   report = {0};
    modes_supports supports;
    FEM_TRY(check_options(options));
    FEM_TRY(modes_check_body(problem, &supports));
    FEM_TRY(modes_check_count(&supports, options->count));
    FEM_TRY(fem_progress_report(progress, "factorisation", 0));
    if (options->inverse)
        inverse = options->inverse;
    else
        FEM_TRY(modes_inverse_create(&inverse, problem, MODES_BORDER_MASS));
    if (inverse->border != MODES_BORDER_MASS) { // its K^-1 M would not be symmetric in the mass inner product
        status = fem_fail(FEM_BAD_INPUT, "modes.inverse has the plain border, expected the mass border");
        goto done;
    }
    int available = inverse->report.free_dofs - inverse->report.rigid;
    report.free_dofs = inverse->report.free_dofs;
    report.rigid = inverse->report.rigid;
    report.seconds_factor = inverse->report.seconds_factor;
    double begin = fem_seconds();
    int    vectors = options->vectors
                         ? options->vectors
                         : (2 * options->count > options->count + 32 ? 2 * options->count : options->count + 32);
    if (vectors > available) vectors = available;
    if (vectors > MOST_VECTORS) {
        status = fem_fail(FEM_BAD_INPUT, "%d modes need %d Lanczos vectors, expected at most %d: ask for fewer",
                          options->count, vectors, MOST_VECTORS);
        goto done;
    }
    FEM_TRY(modes_basis_allocate(&basis, inverse->n, options->count));
    if (available <= DENSE_DOFS || vectors < options->count + 2) {
        FEM_TRY(solve_dense(inverse, &basis));
    } else {
        report.vectors = vectors;
        pthread_mutex_lock(&arpack_lock);
        status = iterate(inverse, options, progress, vectors, &basis, &report);
        pthread_mutex_unlock(&arpack_lock);
        if (status != FEM_OK) goto done;
    }
    FEM_TRY(finish(inverse, &basis, &report));
    FEM_TRY(modes_check_stiff(problem, &basis));
    report.seconds_iterate = fem_seconds() - begin;
    modes_basis_destroy(result);
    *result = basis;
    basis = (modes_basis){0};
    if (result_report) {
        *result_report = report;
        report.residuals = NULL;
    }
done:
    fem_free(report.residuals);
    modes_basis_destroy(&basis);
    if (!options->inverse) modes_inverse_destroy(inverse);
    return status;
}
