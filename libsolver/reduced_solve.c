// The linear system of a step without making K: P0 appendix C's Jacobian-free conjugate gradients, and BiCGSTAB for a K
// that is not symmetric. Both are preconditioned by mass M + (stiffness + constant) K(0), factorised once.
#include "libsolver/reduced_internal.h"

typedef struct linear_system {
    solver_reduced *solver;
    const double   *q;
    double          mass, stiffness, constant;
} linear_system;

// P0 eq. 16 sets eps = 1e-6 sqrt(1 + |q|) / |p|, which has units; what matters is that eps p is small beside q, or at
// rest beside what the step will be. The scale of that is |q| + h |dq| + |P^-1 residual|.
static double difference_scale(const solver_reduced *solver, const double *q) {
    double h = solver->options.time_step, *guess = solver->krylov[7];
    solver_copy(solver->r, solver->residual, guess);
    if (solver->P_mass > 0) dense_cholesky_solve(solver->r, solver->P, 1, guess);
    double scale = dense_norm(solver->r, q) + h * dense_norm(solver->r, solver->dq);
    return solver->P_mass > 0 ? scale + dense_norm(solver->r, guess) : scale;
}

static void difference_product(solver_reduced *solver, const double *q, const double *force, const double *p,
                               double *y) {
    int    r = solver->r;
    double size = dense_norm(r, p), scale = difference_scale(solver, q), *moved = solver->krylov[7];
    for (int i = 0; i < r; i++) y[i] = 0;
    if (!(size > 0) || !(scale > 0)) return;
    double eps = 1e-6 * scale / size;
    for (int i = 0; i < r; i++) moved[i] = q[i] + eps * p[i];
    solver->forces.evaluate(solver->forces.model, moved, NULL, y, NULL, solver->work);
    for (int i = 0; i < r; i++) y[i] = (y[i] - force[i]) / eps;
}

void solver_reduced_product(solver_reduced *solver, const double *q, const double *force, const double *p, double *y) {
    if (solver->options.solve == SOLVER_SOLVE_KRYLOV && solver->forces.product)
        solver->forces.product(solver->forces.model, q, p, y, solver->work);
    else
        difference_product(solver, q, force, p, y);
}

// y = H p
static void multiply(const linear_system *s, const double *p, double *y) {
    solver_reduced *solver = s->solver;
    int             r = solver->r;
    solver_reduced_product(solver, s->q, solver->force, p, y);
    dense_scale(r, s->stiffness, y);
    dense_gemv_add(r, r, s->mass, solver->M, p, y);
    if (s->constant > 0) dense_gemv_add(r, r, s->constant, solver->K0, p, y);
    if (solver->contact) {
        bool stiff = solver->contact_stiff;
        dense_gemv_add(r, r, stiff ? 1 / (2 * solver->options.newmark_beta) : 1, solver->E, p, y);
    }
}

static void precondition(const solver_reduced *solver, const double *x, double *y) {
    solver_copy(solver->r, x, y);
    dense_cholesky_solve(solver->r, solver->P, 1, y);
}

bool solver_reduced_prepare(solver_reduced *solver, double mass, double stiffness) {
    int size = solver->r * solver->r;
    if (solver->P_mass == mass && solver->P_stiffness == stiffness) return true;
    for (int i = 0; i < size; i++) solver->P[i] = mass * solver->M[i] + stiffness * solver->K0[i];
    solver->P_mass = solver->P_stiffness = 0;
    if (dense_cholesky(solver->r, solver->P) != FEM_OK) return false;
    solver->P_mass = mass, solver->P_stiffness = stiffness;
    return true;
}

// H x = b, x = 0 at first and b = -residual; true when |b - H x| fell below the tolerance.
static bool conjugate_gradients(const linear_system *s, double *x) {
    solver_reduced *solver = s->solver;
    int             r = solver->r, most = 2 * r + 20;
    double         *rest = solver->krylov[0], *z = solver->krylov[1], *p = solver->krylov[2], *Hp = solver->krylov[3];
    for (int i = 0; i < r; i++) x[i] = 0, rest[i] = -solver->residual[i];
    double enough = solver->options.solve_tolerance * dense_norm(r, rest);
    precondition(solver, rest, z);
    solver_copy(r, z, p);
    double rz = dense_dot(r, rest, z);
    for (int k = 0; k < most; k++) {
        if (dense_norm(r, rest) <= enough) return true;
        multiply(s, p, Hp);
        double curvature = dense_dot(r, p, Hp);
        if (!(curvature > 0)) return false;
        double alpha = rz / curvature;
        dense_axpy(r, alpha, p, x);
        dense_axpy(r, -alpha, Hp, rest);
        precondition(solver, rest, z);
        double next = dense_dot(r, rest, z), beta = next / rz;
        rz = next;
        for (int i = 0; i < r; i++) p[i] = z[i] + beta * p[i];
        solver->report.solve_iterations++;
    }
    return dense_norm(r, rest) <= enough;
}

static bool bicgstab(const linear_system *s, double *x) {
    solver_reduced *solver = s->solver;
    int             r = solver->r, most = 2 * r + 20;
    double         *rest = solver->krylov[0], *shadow = solver->krylov[1], *p = solver->krylov[2];
    double         *v = solver->krylov[3], *hat = solver->krylov[4], *t = solver->krylov[5];
    double          rho = 1, alpha = 1, omega = 1;
    for (int i = 0; i < r; i++) x[i] = p[i] = v[i] = 0, shadow[i] = rest[i] = -solver->residual[i];
    double enough = solver->options.solve_tolerance * dense_norm(r, rest);
    for (int k = 0; k < most; k++) {
        if (dense_norm(r, rest) <= enough) return true;
        double next = dense_dot(r, shadow, rest), beta = next / rho * (alpha / omega);
        if (!(next != 0) || !isfinite(beta)) return false;
        rho = next;
        for (int i = 0; i < r; i++) p[i] = rest[i] + beta * (p[i] - omega * v[i]);
        precondition(solver, p, hat);
        multiply(s, hat, v);
        alpha = rho / dense_dot(r, shadow, v);
        if (!isfinite(alpha)) return false;
        dense_axpy(r, alpha, hat, x);
        dense_axpy(r, -alpha, v, rest);
        solver->report.solve_iterations++;
        if (dense_norm(r, rest) <= enough) return true;
        precondition(solver, rest, hat);
        multiply(s, hat, t);
        omega = dense_dot(r, t, rest) / dense_dot(r, t, t);
        if (!isfinite(omega) || omega == 0) return false;
        dense_axpy(r, omega, hat, x);
        dense_axpy(r, -omega, t, rest);
    }
    return dense_norm(r, rest) <= enough;
}

bool solver_reduced_iterate(solver_reduced *solver, const double *q, double mass, double stiffness, double constant) {
    linear_system s = {.solver = solver, .q = q, .mass = mass, .stiffness = stiffness, .constant = constant};
    if (!solver_all_finite(solver->r, solver->residual) || !solver_reduced_prepare(solver, mass, stiffness + constant))
        return false;
    bool solved = solver->options.solve == SOLVER_SOLVE_KRYLOV ? bicgstab(&s, solver->step)
                                                               : conjugate_gradients(&s, solver->step);
    return solved && solver_all_finite(solver->r, solver->step);
}
