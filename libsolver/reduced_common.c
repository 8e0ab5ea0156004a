// What held and free reduced bodies share: options, the factorisation with a shift, checks and messages.
#include "libsolver/reduced_internal.h"

solver_reduced_options solver_reduced_default_options(void) {
    return (solver_reduced_options){
        .time_step = 1.0 / 120,
        .integrator = SOLVER_NEWMARK,
        .newmark_beta = 0.25,
        .newmark_gamma = 0.5,
        .damping_local = true,
        .newton_iterations = 1,
        .newton_tolerance = 1e-9,
        .solve_tolerance = 1e-6,
        .line_search = 8,
    };
}

solver_reduced_options solver_free_default_options(void) {
    solver_reduced_options o = solver_reduced_default_options();
    o.integrator = SOLVER_MIDPOINT;
    o.newton_iterations = 2;
    o.conserve_momentum = true;
    return o;
}

static fem_status real_out_of_range(const char *name, double value, const char *rule) {
    return fem_fail(FEM_BAD_INPUT, "solver.%s is %g, expected %s", name, value, rule);
}

static fem_status count_out_of_range(const char *name, int value, const char *rule) {
    return fem_fail(FEM_BAD_INPUT, "solver.%s is %d, expected %s", name, value, rule);
}

// comparisons are written so that a NaN fails them
static fem_status check_common(const solver_reduced_options *o) {
    if (!(o->time_step > 0 && isfinite(o->time_step))) return real_out_of_range("time_step", o->time_step, "> 0");
    if (!(o->newmark_beta > 0 && o->newmark_beta <= 1))
        return real_out_of_range("newmark_beta", o->newmark_beta, "in (0, 1]");
    if (!(o->newmark_gamma > 0 && o->newmark_gamma <= 1))
        return real_out_of_range("newmark_gamma", o->newmark_gamma, "in (0, 1]");
    if (!(o->damping_mass >= 0 && isfinite(o->damping_mass)))
        return real_out_of_range("damping_mass", o->damping_mass, ">= 0");
    if (!(o->damping_stiffness >= 0 && isfinite(o->damping_stiffness)))
        return real_out_of_range("damping_stiffness", o->damping_stiffness, ">= 0");
    if (o->newton_iterations < 1) return count_out_of_range("newton_iterations", o->newton_iterations, ">= 1");
    if (!(o->newton_tolerance > 0 && o->newton_tolerance < 1))
        return real_out_of_range("newton_tolerance", o->newton_tolerance, "in (0, 1)");
    if ((int)o->solve < 0 || o->solve > SOLVER_SOLVE_KRYLOV)
        return count_out_of_range("solve", (int)o->solve, "direct (0), Jacobian-free (1) or Krylov (2)");
    if (!(o->solve_tolerance > 0 && o->solve_tolerance < 1))
        return real_out_of_range("solve_tolerance", o->solve_tolerance, "in (0, 1)");
    if (o->line_search < 0 || o->line_search > 60)
        return count_out_of_range("line_search", o->line_search, "from 0 to 60");
    return FEM_OK;
}

fem_status solver_reduced_check_options(const solver_reduced_options *o) {
    if ((int)o->integrator < 0 || o->integrator > SOLVER_CENTRAL_DIFFERENCES)
        return count_out_of_range("integrator", (int)o->integrator,
                                  "Newmark (0), backward Euler (1) or central differences (2) for a held body");
    return check_common(o);
}

fem_status solver_free_check_options(const solver_reduced_options *o) {
    if (o->integrator != SOLVER_NEWMARK && o->integrator != SOLVER_BACKWARD_EULER && o->integrator != SOLVER_MIDPOINT)
        return count_out_of_range("integrator", (int)o->integrator,
                                  "Newmark (0), backward Euler (1) or the midpoint rule (3) for a free body");
    if (o->solve != SOLVER_SOLVE_DIRECT)
        return count_out_of_range("solve", (int)o->solve, "direct (0) for a free body");
    return check_common(o);
}

bool solver_all_finite(int n, const double *x) {
    for (int i = 0; i < n && x; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

fem_status solver_check_forces(const cubature_forces *forces, int r) {
    if (!forces && r > 0) return fem_fail(FEM_BAD_INPUT, "solver: the body has %d modes but no forces", r);
    if (forces && forces->r != r)
        return fem_fail(FEM_BAD_INPUT, "solver: the forces have %d modes, the body %d", forces->r, r);
    return FEM_OK;
}

fem_status solver_check_contact(const solver_contact *contact, int r) {
    if (contact && solver_contact_modes(contact) != r)
        return fem_fail(FEM_BAD_INPUT, "solver: the contact's samples have %d modes, the body %d",
                        solver_contact_modes(contact), r);
    return FEM_OK;
}

bool solver_is_rotation(const double Q[9]) {
    double QQ[9];
    mat3_mul_nt(QQ, Q, Q);
    for (int k = 0; k < 9; k++)
        if (!(fabs(QQ[k] - (k % 4 == 0)) < 1e-6)) return false;
    return mat3_det(Q) > 0;
}

// The nearest rotation, for a matrix that is one up to rounding: Q (3 I - Q^T Q) / 2 doubles the correct digits.
void solver_rotation_clean(double Q[9]) {
    double QQ[9], C[9], R[9];
    for (int step = 0; step < 2; step++) {
        mat3_mul_nt(QQ, Q, Q); // Q Q^T, as good
        for (int k = 0; k < 9; k++) C[k] = ((k % 4 == 0 ? 3 : 0) - QQ[k]) / 2;
        mat3_mul(R, C, Q);
        for (int k = 0; k < 9; k++) Q[k] = R[k];
    }
}

// Rodrigues: R = I + sin(t)/t [a] + (1 - cos(t))/t^2 [a]^2, t = |a|; the second factor as sin^2(t/2) / (t^2/2)
void solver_rotation(const double a[3], double R[9]) {
    double t = vec3_norm(a), first = 1, second = 0.5;
    if (t > 1e-8) {
        double half = sin(t / 2) / (t / 2);
        first = sin(t) / t;
        second = half * half / 2;
    }
    const double A[9] = {0, -a[2], a[1], a[2], 0, -a[0], -a[1], a[0], 0};
    double       AA[9];
    mat3_mul(AA, A, A);
    for (int k = 0; k < 9; k++) R[k] = (k % 4 == 0) + first * A[k] + second * AA[k];
}

static double trace(int r, const double *A) {
    double sum = 0;
    for (int i = 0; i < r; i++) sum += fabs(A[(size_t)i * (size_t)(r + 1)]);
    return sum;
}

fem_status solver_factorise_shifted(int r, double *H, const double *M, double *kept, solver_step_report *report) {
    int    size = r * r;
    double scale = trace(r, H) / trace(r, M);
    if (r == 0) return FEM_OK;
    solver_copy(size, H, kept);
    report->factorisations++;
    fem_status status = dense_cholesky(r, H);
    if (status == FEM_OK) return FEM_OK;
    if (!solver_all_finite(size, kept)) return fem_fail(FEM_UNSTABLE, "the stiffness is not finite");
    report->shifts++;
    for (double tau = 1e-4; tau < 1e9 && status == FEM_INDEFINITE; tau *= 10) {
        for (int i = 0; i < size; i++) H[i] = kept[i] + tau * scale * M[i];
        report->factorisations++;
        status = dense_cholesky(r, H);
    }
    return status;
}

fem_status solver_fail_diverged(double time, int r, const solver_reduced_options *options, double kinetic,
                                double budget, const char *advice) {
    const char *common = "a smaller time step, more damping or smaller loads";
    if (!isfinite(kinetic))
        return fem_fail(FEM_UNSTABLE,
                        "t = %g s: the motion of the reduced body (r = %d, step %g s) is no longer finite; try %s%s",
                        time, r, options->time_step, common, advice);
    return fem_fail(FEM_UNSTABLE,
                    "t = %g s: the reduced body (r = %d, step %g s) diverges: its kinetic energy is %.3g J where its "
                    "start and its loads account for %.3g J; try %s%s",
                    time, r, options->time_step, kinetic, budget, common, advice);
}
