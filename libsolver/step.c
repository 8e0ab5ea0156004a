// One implicit time step, Newton to tolerance.
//
// Newmark with a1 .. a6 (beta and gamma are Newmark's here, h the step):
//     a = a1 (u - u_n) - a2 v_n - a3 a_n,   a1 = 1/(beta h^2), a2 = 1/(beta h), a3 = (1 - 2 beta)/(2 beta),
//     v = a4 (u - u_n) + a5 v_n + a6 a_n,   a4 = gamma/(beta h), a5 = 1 - gamma/beta, a6 = (1 - gamma/(2 beta)) h.
// Backward Euler is v = (u - u_n)/h, a = (v - v_n)/h: a1 = 1/h^2, a2 = a4 = 1/h, the others 0.
// The balance holds at the end of the step, with the damping of the end's K. Nothing is written to the state before the
// step has succeeded.
#include "libsolver/internal.h"

solver_coefficients solver_step_coefficients(solver_integrator integrator, double h, double beta, double gamma) {
    if (integrator == SOLVER_BACKWARD_EULER) return (solver_coefficients){.a1 = 1 / (h * h), .a2 = 1 / h, .a4 = 1 / h};
    return (solver_coefficients){
        .a1 = 1 / (beta * h * h),
        .a2 = 1 / (beta * h),
        .a3 = (1 - 2 * beta) / (2 * beta),
        .a4 = gamma / (beta * h),
        .a5 = 1 - gamma / beta,
        .a6 = (1 - gamma / (2 * beta)) * h,
    };
}

// a from M a = load - D v - f(u), with a = 0 at the supports, into solver->first
static fem_status first_acceleration(solver_full *solver) {
    const solver_options *o = &solver->options;
    const solver_state   *s = &solver->state;
    int                   n = solver->n;
    bool                  local = o->damping_stiffness > 0 && o->damping_local;
    double               *rhs = solver->residual;
    fem_body_evaluate(solver->body, s->u, NULL, solver->force, local ? &solver->K : NULL);
    fem_sparse_multiply(&solver->M, 1, s->v, solver->mass_force);
    for (int i = 0; i < n; i++) rhs[i] = solver->load[i] - solver->force[i] - o->damping_mass * solver->mass_force[i];
    if (o->damping_stiffness > 0) {
        fem_sparse_multiply(local ? &solver->K : &solver->K0, 1, s->v, solver->damping_force);
        dense_axpy(n, -o->damping_stiffness, solver->damping_force, rhs);
    }
    // the mass matrix is so well conditioned that some twenty iterations reach rounding; its preconditioner takes the
    // place of the tangent's
    if (!solver->system.factor) solver->prepared = SOLVER_PREPARED_NOTHING;
    fem_status status = solver_system_iterate(&solver->system, &solver->M, 1e-14, rhs, solver->first);
    if (status != FEM_OK) fem_fail_prefix(status, "acceleration at t = %g s: ", s->time);
    return status;
}

// Everything of the balance that does not depend on the new u.
static void start_balance(solver_full *solver, const solver_coefficients *c, const double *a_n) {
    const solver_options *o = &solver->options;
    const double         *v_n = solver->state.v;
    for (int i = 0; i < solver->n; i++) {
        solver->acceleration_start[i] = -c->a2 * v_n[i] - c->a3 * a_n[i];
        solver->velocity_start[i] = c->a5 * v_n[i] + c->a6 * a_n[i];
        solver->rate_start[i] = solver->acceleration_start[i] + o->damping_mass * solver->velocity_start[i];
    }
    fem_sparse_multiply(&solver->M, 1, solver->rate_start, solver->mass_start);
    if (o->damping_stiffness > 0 && !o->damping_local)
        fem_sparse_multiply(&solver->K0, 1, solver->velocity_start, solver->damping_start);
}

// A body that flew apart: some vertex is a thousand times the body's size away from where the body is on average.
static int vertex_far_away(const solver_full *solver) {
    double mean[3] = {0};
    int    used = 0;
    for (int v = 0; v < solver->n / 3; v++)
        if (solver->used[v]) used++, vec3_axpy(mean, 1, solver->u + 3 * (size_t)v);
    for (int k = 0; k < 3; k++) mean[k] /= used;
    for (int v = 0; v < solver->n / 3; v++)
        if (solver->used[v] && !(vec3_distance(solver->u + 3 * (size_t)v, mean) <= 1000 * solver->extent)) return v;
    return -1;
}

fem_status solver_full_step(solver_full *solver) {
    fem_status            status = FEM_OK;
    solver_state         *s = &solver->state;
    const solver_options *o = &solver->options;
    solver_coefficients   c = solver_step_coefficients(o->integrator, o->time_step, o->newmark_beta, o->newmark_gamma);
    const double         *a_n = s->a;
    double                end = s->time + solver->options.time_step;
    solver_balance        balance = {.dynamic = true, .a1 = c.a1, .a4 = c.a4, .start = s->u, .time = end};
    FEM_TRY(solver_check_loads(solver));
    if (!solver->acceleration_known && (c.a3 != 0 || c.a6 != 0)) {
        FEM_TRY(first_acceleration(solver));
        a_n = solver->first;
    }
    start_balance(solver, &c, a_n);
    solver_copy(solver->n, solver->load, solver->external);
    solver_copy(solver->n, s->u, solver->u);
    if (o->damping_stiffness > 0 && o->damping_local) // no potential that a line search could lower
        FEM_TRY(solver_newton_boldly(solver, &balance, s->u, solver->prescribed));
    else
        FEM_TRY(solver_newton(solver, &balance, solver->prescribed));
    int lost = vertex_far_away(solver);
    if (lost >= 0) {
        status = solver_fail_at(solver, FEM_UNSTABLE, &balance, lost, "the body flew apart");
        goto done;
    }
    for (int i = 0; i < solver->n; i++) {
        double d = solver->u[i] - s->u[i];
        s->u[i] = solver->u[i];
        s->v[i] = c.a4 * d + solver->velocity_start[i];
        s->a[i] = c.a1 * d + solver->acceleration_start[i];
    }
    s->time = end;
    solver->acceleration_known = true;
done:
    return status;
}
