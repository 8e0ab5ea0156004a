// Linear systems of the full-space solver: CHOLMOD's factor, or conjugate gradients with the inverse of the 3x3
// diagonal blocks as preconditioner. Fixed degrees of freedom are left out: vectors are kept zero there, which makes A
// act as its free part, and the diagonal blocks get unit rows there.
#include "libsolver/internal.h"

fem_status solver_system_create(solver_system *system, const fem_sparse *pattern, const unsigned char *fixed,
                                const solver_options *options, double *work) {
    size_t n = 3 * (size_t)pattern->n;
    int    free_count = 0;
    for (size_t i = 0; i < n; i++) free_count += !fixed[i];
    *system = (solver_system){.n = (int)n, .fixed = fixed, .tolerance = options->pcg_tolerance};
    system->r = work, system->z = work + n, system->p = work + 2 * n, system->Ap = work + 3 * n;
    system->block_inverse = work + 4 * n; // 9 per vertex = 3 n
    system->max_iterations = options->pcg_iterations;
    if (system->max_iterations == 0) system->max_iterations = 1000 + (int)(10 * sqrt((double)free_count));
    if (options->linear == SOLVER_DIRECT && free_count > 0) return fem_factor_create(&system->factor, pattern, fixed);
    return FEM_OK;
}

void solver_system_destroy(solver_system *system) {
    fem_factor_destroy(system->factor);
    *system = (solver_system){0};
}

// B = A^-1 for a symmetric positive definite 3x3 matrix; false when it is not (Sylvester: its leading minors).
static bool invert_block(double B[9], const double A[9]) {
    bool positive = A[0] > 0 && A[0] * A[4] - A[1] * A[3] > 0 && mat3_det(A) > 0;
    if (positive) mat3_inverse(B, A);
    return positive;
}

static fem_status prepare_preconditioner(solver_system *system, const fem_sparse *A) {
    for (int v = 0; v < A->n; v++) {
        const double        *block = A->value + 9 * (size_t)A->row_start[v]; // the diagonal block comes first
        const unsigned char *fixed = system->fixed + 3 * (size_t)v;
        double               free_block[9];
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                free_block[3 * i + j] = fixed[i] || fixed[j] ? (double)(i == j) : block[3 * i + j];
        if (!invert_block(system->block_inverse + 9 * (size_t)v, free_block))
            return fem_fail(FEM_INDEFINITE, "the matrix is not positive definite: the diagonal block of vertex %d", v);
    }
    return FEM_OK;
}

fem_status solver_system_prepare(solver_system *system, const fem_sparse *A) {
    return system->factor ? fem_factor_factorise(system->factor, A) : prepare_preconditioner(system, A);
}

// z = B r with the inverse diagonal blocks B
static void precondition(const solver_system *system, const double *r, double *z) {
    for (int v = 0; v < system->n / 3; v++)
        mat3_mul_vec(z + 3 * (size_t)v, system->block_inverse + 9 * (size_t)v, r + 3 * (size_t)v);
}

static void clear_fixed(const solver_system *system, double *x) {
    for (int i = 0; i < system->n; i++)
        if (system->fixed[i]) x[i] = 0;
}

// Conjugate gradients from x = 0 until |b - A x| <= tolerance |b|.  [Hestenes & Stiefel 1952]
static fem_status conjugate_gradients(solver_system *system, const fem_sparse *A, double tolerance, const double *b,
                                      double *x) {
    int n = system->n;
    system->gave_up = false;
    double *r = system->r, *z = system->z, *p = system->p, *Ap = system->Ap;
    for (int i = 0; i < n; i++) x[i] = 0;
    solver_copy(n, b, r);
    clear_fixed(system, r);
    double target = tolerance * dense_norm(n, r), norm = dense_norm(n, r);
    if (!isfinite(norm)) return fem_fail(FEM_UNSTABLE, "the right-hand side is not finite");
    if (norm == 0) return FEM_OK;
    precondition(system, r, z);
    solver_copy(n, z, p);
    double rz = dense_dot(n, r, z);

    for (int iteration = 0; iteration < system->max_iterations; iteration++) {
        fem_sparse_multiply(A, 1, p, Ap);
        clear_fixed(system, Ap);
        double curvature = dense_dot(n, p, Ap);
        if (!isfinite(curvature)) return fem_fail(FEM_UNSTABLE, "conjugate gradients overflow");
        if (!(curvature > 0)) return fem_fail(FEM_INDEFINITE, "the matrix is not positive definite");
        double alpha = rz / curvature;
        dense_axpy(n, alpha, p, x);
        dense_axpy(n, -alpha, Ap, r);
        system->iterations++;
        norm = dense_norm(n, r);
        if (norm <= target) return FEM_OK;
        precondition(system, r, z);
        double rz_next = dense_dot(n, r, z), beta = rz_next / rz;
        rz = rz_next;
        for (int i = 0; i < n; i++) p[i] = z[i] + beta * p[i];
    }
    system->gave_up = true;
    return fem_fail(FEM_NO_CONVERGENCE,
                    "conjugate gradients reached %.1e of the right-hand side in %d iterations, not %.1e; raise "
                    "solver.pcg_iterations or take the direct solver",
                    norm / (target / tolerance), system->max_iterations, tolerance);
}

fem_status solver_system_solve(solver_system *system, const fem_sparse *A, const double *b, double *x) {
    if (system->factor) return fem_factor_solve(system->factor, 1, b, x);
    return conjugate_gradients(system, A, system->tolerance, b, x);
}

fem_status solver_system_iterate(solver_system *system, const fem_sparse *A, double tolerance, const double *b,
                                 double *x) {
    fem_status status = prepare_preconditioner(system, A);
    if (status == FEM_OK) status = conjugate_gradients(system, A, tolerance, b, x);
    return status;
}
