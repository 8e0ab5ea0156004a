// Derivatives of tangent vibration modes: eq. 29 of [Barbic, James 2005],
//   (K - omega_i^2 M) phi_ij = (M psi_i psi_i^T - 1) g,  g = (H : psi_i) psi_j,  psi_i^T M phi_ij = 0.
//
// The matrix is indefinite, singular, and different for every i. In the span of the modes that are known, rigid motions
// included, the answer is a sum: -(psi_l^T g)/(omega_l^2 - omega_i^2) psi_l over l != i. On what is mass-orthogonal to
// them, all frequencies are above omega_i and the matrix is positive definite: conjugate gradients, preconditioned by
// K^-1, see eigenvalues 1 - omega_i^2/omega^2, that is between that of the first unknown mode and 1. All columns of a
// block go in step, so that the solves are block solves. The paper's MINRES on a regularised matrix would have no
// preconditioner.
#include "libmodes/internal.h"

#include <string.h>

enum { WIDTH = 32 }; // columns in step

struct modes_tangent {
    const modes_problem            *problem;
    modes_inverse                  *inverse;
    const modes_basis              *basis;
    const modes_derivative_options *options;
    modes_derivative_report        *report;
    int                             n, known; // rigid motions, then modes
    int                             rigid;
    double                         *Q, *MQ, *lambda;   // n x known, known
    double                         *R, *Z, *P, *A, *B; // n x WIDTH: residuals, preconditioned, directions, K P, M P
    double                         *coefficients;      // known x WIDTH
};

void modes_tangent_destroy(modes_tangent *t) {
    if (!t) return;
    fem_free(t->Q), fem_free(t->MQ), fem_free(t->lambda), fem_free(t->R), fem_free(t->coefficients);
    fem_free(t);
}

// eq. 29 holds for vibration modes only
static fem_status check_modes(const modes_tangent *t) {
    fem_status status = FEM_OK;
    double    *KU = fem_alloc((size_t)t->n * (size_t)t->basis->r, sizeof *KU);
    if (!KU) return fem_fail(FEM_NO_MEMORY, "no memory for tangent derivatives");
    fem_sparse_multiply(t->problem->K, t->basis->r, t->basis->U, KU);
    for (int j = 0; j < t->basis->r; j++) {
        const double *ku = KU + (size_t)j * (size_t)t->n, *mu = t->MQ + (size_t)(t->rigid + j) * (size_t)t->n;
        double        square = 0, whole = 0;
        for (int i = 0; i < t->n; i++) {
            if (t->problem->fixed && t->problem->fixed[i]) continue;
            double r = ku[i] - t->basis->omega2[j] * mu[i];
            square += r * r, whole += ku[i] * ku[i];
        }
        if (!(square <= 1e-10 * whole)) {
            status =
                fem_fail(FEM_BAD_INPUT,
                         "column %d of the basis is not a vibration mode (residual %.1e): tangent derivatives need "
                         "vibration modes, modal or inertia derivatives would do",
                         j, sqrt(square / whole));
            break;
        }
    }
    fem_free(KU);
    return status;
}

fem_status modes_tangent_create(modes_tangent **result, const modes_problem *problem, modes_inverse *inverse,
                                const modes_basis *basis, const modes_derivative_options *options,
                                modes_derivative_report *report) {
    fem_status     status = FEM_OK;
    double        *rigid = NULL;
    modes_tangent *t = fem_calloc(1, sizeof *t);
    if (!t) return fem_fail(FEM_NO_MEMORY, "no memory for tangent derivatives");
    *t = (modes_tangent){.problem = problem, .inverse = inverse, .basis = basis, .options = options, .report = report};
    FEM_TRY(modes_rigid(problem, &rigid, &t->rigid));
    t->n = basis->n, t->known = t->rigid + basis->r;
    size_t n = (size_t)t->n, known = (size_t)t->known;
    t->Q = fem_alloc(n * known, sizeof *t->Q);
    t->MQ = fem_alloc(n * known, sizeof *t->MQ);
    t->lambda = fem_calloc(known, sizeof *t->lambda);
    t->R = fem_alloc(5 * n * WIDTH, sizeof *t->R);
    t->coefficients = fem_alloc(known * WIDTH, sizeof *t->coefficients);
    if (!t->Q || !t->MQ || !t->lambda || !t->R || !t->coefficients) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for tangent derivatives of %d modes", basis->r);
        goto done;
    }
    t->Z = t->R + n * WIDTH, t->P = t->Z + n * WIDTH, t->A = t->P + n * WIDTH, t->B = t->A + n * WIDTH;
    if (t->rigid > 0) memcpy(t->Q, rigid, n * (size_t)t->rigid * sizeof *rigid);
    memcpy(t->Q + n * (size_t)t->rigid, basis->U, n * (size_t)basis->r * sizeof *rigid);
    memcpy(t->lambda + t->rigid, basis->omega2, (size_t)basis->r * sizeof *rigid);
    fem_sparse_multiply(problem->M, t->known, t->Q, t->MQ);
    FEM_TRY(check_modes(t));
done:
    fem_free(rigid);
    if (status == FEM_OK)
        *result = t;
    else
        modes_tangent_destroy(t);
    return status;
}

// X -= Q (M Q)^T X, or for forces X -= M Q Q^T X
static void project(modes_tangent *t, bool forces, int columns, double *X) {
    dense_gemm(true, false, t->known, columns, t->n, 1, forces ? t->Q : t->MQ, X, 0, t->coefficients);
    dense_gemm(false, false, t->n, columns, t->known, -1, forces ? t->MQ : t->Q, t->coefficients, 1, X);
}

static fem_status precondition(modes_tangent *t, int columns, const double *from, double *to) {
    memcpy(to, from, (size_t)t->n * (size_t)columns * sizeof *to);
    fem_status status = modes_inverse_solve(t->inverse, columns, to, to);
    if (status == FEM_OK) project(t, false, columns, to);
    return status;
}

// The part in the span of the known modes, added to X; `coefficients` hold psi_l^T (-g).
static void add_known(modes_tangent *t, int columns, const fem_pair *pair, double *X) {
    for (int c = 0; c < columns; c++) {
        int    i = t->rigid + pair[c].a;
        bool   repeated = false;
        double lambda = t->lambda[i], *d = t->coefficients + (size_t)c * (size_t)t->known;
        for (int l = 0; l < t->known; l++) {
            double gap = t->lambda[l] - lambda;
            bool   close = fabs(gap) <= 1e-6 * lambda;
            repeated = repeated || (close && l != i);
            d[l] = close ? 0 : d[l] / gap;
        }
        t->report->repeated += repeated;
    }
    dense_gemm(false, false, t->n, columns, t->known, 1, t->Q, t->coefficients, 1, X);
}

// Conjugate gradients in step; right-hand sides in t->R, X starts at 0.
static fem_status iterate(modes_tangent *t, int columns, const fem_pair *pair, double *X) {
    fem_status status = FEM_OK;
    int        n = t->n, iteration = 0;
    double     rz[WIDTH], first[WIDTH];
    memset(X, 0, (size_t)n * (size_t)columns * sizeof *X);
    FEM_TRY(precondition(t, columns, t->R, t->Z));
    memcpy(t->P, t->Z, (size_t)n * (size_t)columns * sizeof *t->P);
    for (int c = 0; c < columns; c++)
        rz[c] = first[c] = dense_dot(n, t->R + (size_t)c * (size_t)n, t->Z + (size_t)c * (size_t)n);
    for (;; iteration++) {
        bool ready = true;
        for (int c = 0; c < columns; c++)
            ready = ready && rz[c] <= t->options->tolerance * t->options->tolerance * first[c];
        if (ready) break;
        if (iteration == t->options->iterations) {
            status = fem_fail(FEM_NO_CONVERGENCE,
                              "tangent derivatives did not converge in %d iterations: the last modes of the basis have "
                              "nearly the frequency of a mode outside; more modes in the basis would do",
                              iteration);
            goto done;
        }
        fem_sparse_multiply(t->problem->K, columns, t->P, t->A);
        fem_sparse_multiply(t->problem->M, columns, t->P, t->B);
        for (int c = 0; c < columns; c++) {
            size_t  offset = (size_t)c * (size_t)n;
            double *p = t->P + offset, *a = t->A + offset, *r = t->R + offset;
            if (rz[c] <= t->options->tolerance * t->options->tolerance * first[c]) continue;
            dense_axpy(n, -t->basis->omega2[pair[c].a], t->B + offset, a); // (K - omega_i^2 M) p
            double curvature = dense_dot(n, p, a);
            if (!(curvature > 0)) {
                status = fem_fail(FEM_BAD_INPUT,
                                  "mode %d of the basis has the frequency of a mode outside of it, or a lower one is "
                                  "missing; one mode more or fewer would do",
                                  pair[c].a);
                goto done;
            }
            dense_axpy(n, rz[c] / curvature, p, X + offset);
            dense_axpy(n, -rz[c] / curvature, a, r);
        }
        project(t, true, columns, t->R); // rounding would bring the known modes back
        FEM_TRY(precondition(t, columns, t->R, t->Z));
        for (int c = 0; c < columns; c++) {
            size_t offset = (size_t)c * (size_t)n;
            double next = dense_dot(n, t->R + offset, t->Z + offset);
            if (rz[c] <= t->options->tolerance * t->options->tolerance * first[c]) continue;
            dense_scale(n, next / rz[c], t->P + offset);
            dense_axpy(n, 1, t->Z + offset, t->P + offset);
            rz[c] = next;
        }
    }
done:
    if (iteration > t->report->iterations) t->report->iterations = iteration;
    return status;
}

fem_status modes_tangent_solve(modes_tangent *t, int pairs, const fem_pair *pair, double *X) {
    fem_status status = FEM_OK;
    for (int first = 0; first < pairs; first += WIDTH) {
        int     columns = pairs - first < WIDTH ? pairs - first : WIDTH;
        double *x = X + (size_t)first * (size_t)t->n;
        memcpy(t->R, x, (size_t)t->n * (size_t)columns * sizeof *x);
        project(t, true, columns, t->R);
        // the coefficients of -g are wanted again after the iteration
        double *kept = fem_copy(t->coefficients, (size_t)t->known * (size_t)columns, sizeof *kept);
        if (!kept) return fem_fail(FEM_NO_MEMORY, "no memory for tangent derivatives of %d modes", t->basis->r);
        status = iterate(t, columns, pair + first, x);
        memcpy(t->coefficients, kept, (size_t)t->known * (size_t)columns * sizeof *kept);
        fem_free(kept);
        if (status != FEM_OK) return status;
        add_known(t, columns, pair + first, x);
    }
    return FEM_OK;
}
