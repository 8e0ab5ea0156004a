// One time step of a held reduced body: M ddq + D dq + f(q) = load + contact, D = alpha M + beta K(q) or beta K(0).
//
// Newmark and backward Euler with the coefficients of step.c (Barbic and James 2005, appendix C):
//     ddq = a1 d - a2 dq_n - a3 ddq_n,   dq = a4 d + a5 dq_n + a6 ddq_n,   d = q - q_n,
//     residual(q) = M (ddq + alpha dq) + beta K dq + f(q) - load - contact,
//     H = (a1 + alpha a4) M + beta a4 K + K(q) + contact.
// The change of K in the local damping is left out of H, as in the paper: Newton then converges linearly, by a factor
// of the order of h. Semi-implicit means one iteration and no look at the residual. With local stiffness damping one
// iteration from q_n would be first order, since the damping matrix would be that of q_n; it starts from where the step
// is likely to end (guess_step), which makes K(q) right to second order. Contact is linearised there, too: from q_n a
// semi-implicit step would not see an obstacle that is reached within it.
//
// Stiff contact (contact.h) is kept out of Newmark's accelerations and acts with constant force over the step,
//     q = Newmark's q + h^2/2 a_c,   dq = Newmark's dq + h a_c,   M a_c = contact at the end of the step,
// (Kane, Repetto, Ortiz and Marsden 1999). In terms of d this multiplies the contact in residual and H by 1/(2 beta),
// leaves ddq - a_c/(2 beta) as the acceleration without contact, and adds h (1 - gamma/(2 beta)) a_c to dq.
//
// Central differences (Newmark with beta = 0, gamma = 1/2): q is explicit, and
//     (M + h/2 D) ddq = load - f(q) - D (dq_n + h/2 ddq_n),   dq = dq_n + h/2 (ddq_n + ddq).
//
// Nothing is written to the state before the step has succeeded.
#include "libsolver/reduced_internal.h"

#include <float.h>
#include <stdio.h>

typedef struct reduced_point {
    double norm;      // |residual|
    double largest;   // norm of the largest force in the balance
    double potential; // whose gradient the residual is, less a constant; Newton only, see has_potential
} reduced_point;

// ---- forces ------------------------------------------------------------------------------------------------------

// f(q), K(q) and V(q) into solver->force, solver->K and *energy, which may be NULL
static void internal_forces(solver_reduced *solver, const double *q, bool stiffness, double *energy) {
    double began = fem_seconds();
    solver->forces.evaluate(solver->forces.model, q, energy, solver->force, stiffness ? solver->K : NULL, solver->work);
    solver->report.seconds_force += fem_seconds() - began;
}

// contact at (q, dq), `elapsed` after the start of the step, into contact_force and E = weight_K K + weight_D D
static void contact_forces(solver_reduced *solver, const double *q, const double *dq, double elapsed, double weight_K,
                           double weight_D, bool again) {
    int                 r = solver->r;
    double              lag = solver->contact_stiff ? solver->options.time_step / 2 : 0;
    solver_contact_view view = {.elapsed = elapsed, .lag = lag, .again = again, .q = q, .dq = dq};
    double              began = fem_seconds();
    for (int i = 0; i < r; i++) solver->contact_force[i] = 0;
    for (int i = 0; i < r * r; i++) solver->E[i] = 0;
    solver_contact_evaluate(solver->contact, &view, weight_K, weight_D, solver->contact_force, solver->E);
    solver->report.seconds_contact += fem_seconds() - began;
}

static double contact_weight(const solver_reduced *solver) {
    return solver->contact_stiff ? 1 / (2 * solver->options.newmark_beta) : 1;
}

static const double *damping_stiffness(const solver_reduced *solver) {
    return solver->options.damping_local ? solver->K : solver->K0;
}

// rhs -= alpha M v + beta K v
static void subtract_damping(solver_reduced *solver, const double *v, double *rhs) {
    const solver_reduced_options *o = &solver->options;
    int                           r = solver->r;
    if (o->damping_mass > 0) dense_gemv_add(r, r, -o->damping_mass, solver->M, v, rhs);
    if (o->damping_stiffness > 0) dense_gemv_add(r, r, -o->damping_stiffness, damping_stiffness(solver), v, rhs);
}

// ddq at the start of the step, M ddq = load + contact - D dq - f(q), into solver->first
static void first_acceleration(solver_reduced *solver) {
    const solver_coordinates *s = &solver->state;
    int                       r = solver->r;
    bool                      local = solver->options.damping_stiffness > 0 && solver->options.damping_local;
    internal_forces(solver, s->q, local, NULL);
    for (int i = 0; i < r; i++) solver->first[i] = solver->load[i] - solver->force[i];
    if (solver->contact && !solver->contact_stiff) {
        contact_forces(solver, s->q, s->dq, 0, 0, 0, false);
        dense_axpy(r, 1, solver->contact_force, solver->first);
    }
    subtract_damping(solver, s->dq, solver->first);
    dense_cholesky_solve(r, solver->M_factor, 1, solver->first);
}

// ---- the implicit balance ----------------------------------------------------------------------------------------

// Everything of the balance that does not depend on the new q.
static void start_balance(solver_reduced *solver, const solver_coefficients *c, const double *ddq_n) {
    const double *dq_n = solver->state.dq, alpha = solver->options.damping_mass;
    for (int i = 0; i < solver->r; i++) {
        solver->acceleration_start[i] = -c->a2 * dq_n[i] - c->a3 * ddq_n[i];
        solver->velocity_start[i] = c->a5 * dq_n[i] + c->a6 * ddq_n[i];
        solver->rate_start[i] = solver->acceleration_start[i] + alpha * solver->velocity_start[i];
    }
}

// The residual is the gradient of
//     P(q) = V(q) - load . q + d . (M rate(q) + M rate(q_n)) / 2 + beta d . (K(0) v(q) + K(0) v(q_n)) / 2,
// rate = ddq + alpha dq, unless the damping is local, there is contact, or f is no gradient. Far from the solution
// |residual| may have to grow while P falls.
static bool has_potential(const solver_reduced *solver) {
    return !solver->contact && !solver->forces.nonconservative &&
           !(solver->options.damping_stiffness > 0 && solver->options.damping_local);
}

static double potential(solver_reduced *solver, const solver_coefficients *c, const double *q, double energy) {
    const solver_reduced_options *o = &solver->options;
    int                           r = solver->r;
    double *d = solver->difference, *sum = solver->product, P = energy - dense_dot(r, solver->load, q);
    for (int i = 0; i < r; i++) d[i] = q[i] - solver->state.q[i];
    // rate(q) + rate(q_n) = 2 rate(q_n) + (a1 + alpha a4) d, and v likewise
    for (int i = 0; i < r; i++) sum[i] = 2 * solver->rate_start[i] + (c->a1 + o->damping_mass * c->a4) * d[i];
    dense_gemv_set(r, r, 0.5, solver->M, sum, solver->image);
    P += dense_dot(r, d, solver->image);
    if (o->damping_stiffness > 0) {
        for (int i = 0; i < r; i++) sum[i] = 2 * solver->velocity_start[i] + c->a4 * d[i];
        dense_gemv_set(r, r, o->damping_stiffness / 2, solver->K0, sum, solver->image);
        P += dense_dot(r, d, solver->image);
    }
    return P;
}

// The contact of the predicted end of the step, linearised from there to q.
static void predicted_contact(solver_reduced *solver, const solver_coefficients *c, const double *q) {
    int     r = solver->r;
    double *end = solver->trial, *rate = solver->product;
    for (int i = 0; i < r; i++) {
        end[i] = solver->state.q[i] + solver->guess[i];
        rate[i] = c->a4 * solver->guess[i] + solver->velocity_start[i];
    }
    contact_forces(solver, end, rate, solver->options.time_step, 1, c->a4, false);
    for (int i = 0; i < r; i++) end[i] = q[i] - end[i];
    dense_gemv_add(r, r, -1, solver->E, end, solver->contact_force);
}

static double largest_norm(int n, const double *x, const double *y, const double *z) {
    return fmax(dense_norm(n, x), fmax(dense_norm(n, y), dense_norm(n, z)));
}

// residual(q) into solver->residual and how large it is; dq, K and the contact's E are left in the solver.
// Semi-implicit steps need no potential.
static reduced_point evaluate(solver_reduced *solver, const solver_coefficients *c, const double *q, bool again) {
    const solver_reduced_options *o = &solver->options;
    int                           r = solver->r;
    double                        slope = c->a1 + o->damping_mass * c->a4, *residual = solver->residual, energy = 0;
    double                       *rate = solver->ddq; // ddq itself follows from q at the end of the step
    bool                          newton = o->newton_iterations > 1, judged = newton && has_potential(solver);
    reduced_point                 point = {0};
    bool                          direct = o->solve == SOLVER_SOLVE_DIRECT;
    internal_forces(solver, q, direct, judged ? &energy : NULL);
    for (int i = 0; i < r; i++) {
        double d = q[i] - solver->state.q[i];
        rate[i] = slope * d + solver->rate_start[i];
        solver->dq[i] = c->a4 * d + solver->velocity_start[i];
    }
    // residual = M rate + beta K dq + f - load - contact
    dense_gemv_set(r, r, 1, solver->M, rate, residual);
    if (newton) point.largest = largest_norm(r, residual, solver->force, solver->load);
    for (int i = 0; i < r; i++) residual[i] += solver->force[i] - solver->load[i];
    if (o->damping_stiffness > 0) {
        if (direct || !o->damping_local)
            dense_gemv_set(r, r, 1, damping_stiffness(solver), solver->dq, solver->damping);
        else
            solver_reduced_product(solver, q, solver->force, solver->dq, solver->damping);
        for (int i = 0; i < r; i++) solver->product[i] = o->damping_stiffness * solver->damping[i];
        dense_axpy(r, 1, solver->product, residual);
        if (newton) point.largest = fmax(point.largest, dense_norm(r, solver->product));
    }
    if (solver->contact) {
        if (newton)
            contact_forces(solver, q, solver->dq, o->time_step, 1, c->a4, again);
        else
            predicted_contact(solver, c, q);
        dense_axpy(r, -contact_weight(solver), solver->contact_force, residual);
        if (newton) point.largest = fmax(point.largest, dense_norm(r, solver->contact_force));
    }
    if (newton) point.norm = dense_norm(r, residual);
    if (judged) point.potential = potential(solver, c, q, energy);
    return point;
}

// Newton's increment for what was evaluated last, at q, into solver->step.
static fem_status newton_step(solver_reduced *solver, const solver_coefficients *c, const double *q) {
    const solver_reduced_options *o = &solver->options;
    int                           r = solver->r, size = r * r;
    double                        began = fem_seconds(), slope = c->a1 + o->damping_mass * c->a4;
    double                        stiffness = 1 + (o->damping_local ? o->damping_stiffness * c->a4 : 0);
    double                        constant = o->damping_local ? 0 : o->damping_stiffness * c->a4;
    if (o->solve != SOLVER_SOLVE_DIRECT) {
        bool solved = solver_reduced_iterate(solver, q, slope, stiffness, constant);
        solver->report.seconds_solve += fem_seconds() - began;
        if (solved) {
            solver->report.newton_iterations++;
            return FEM_OK;
        }
        solver->report.solve_fallbacks++;
        internal_forces(solver, q, true, NULL);
        began = fem_seconds();
    }
    for (int i = 0; i < size; i++) solver->H[i] = slope * solver->M[i] + stiffness * solver->K[i];
    if (constant > 0) dense_axpy(size, constant, solver->K0, solver->H);
    if (solver->contact) dense_axpy(size, contact_weight(solver), solver->E, solver->H);
    fem_status status = solver_factorise_shifted(r, solver->H, solver->M, solver->matrix, &solver->report);
    if (status == FEM_OK) {
        for (int i = 0; i < r; i++) solver->step[i] = -solver->residual[i];
        dense_cholesky_solve(r, solver->H, 1, solver->step);
        solver->report.newton_iterations++;
    }
    solver->report.seconds_solve += fem_seconds() - began;
    return status;
}

// Moves solver->q by the largest of 1, 1/2, 1/4 .. of the step that lowers the residual or the potential; boldly: by 1.
static fem_status line_search(solver_reduced *solver, const solver_coefficients *c, bool bold, reduced_point *point) {
    double scale = 1, slope = dense_dot(solver->r, solver->residual, solver->step);
    bool   judged = has_potential(solver), always = bold || solver->options.line_search == 0;
    for (int halving = 0; halving <= solver->options.line_search; halving++, scale /= 2) {
        if (halving > 0) solver->report.line_search_steps++;
        for (int i = 0; i < solver->r; i++) solver->trial[i] = solver->q[i] + scale * solver->step[i];
        reduced_point next = evaluate(solver, c, solver->trial, false);
        bool          lower = next.norm <= (1 - 1e-4 * scale) * point->norm;
        bool          downhill = judged && next.potential <= point->potential + 1e-4 * scale * slope;
        if (isfinite(next.norm) && (lower || downhill || always)) {
            solver_copy(solver->r, solver->trial, solver->q);
            *point = next;
            return FEM_OK;
        }
        if (halving == solver->options.line_search && !isfinite(next.norm)) return FEM_UNSTABLE;
    }
    return FEM_NO_CONVERGENCE;
}

// What rounding leaves of |residual|: q carries an error of one unit, and so does what it is multiplied with.
static double rounding_floor(const solver_reduced *solver, const solver_coefficients *c) {
    int    r = solver->r;
    double q = dense_norm(r, solver->q) + solver->options.time_step * dense_norm(r, solver->dq);
    double slope = c->a1 + solver->options.damping_mass * c->a4;
    double floor = 16 * DBL_EPSILON * q * (dense_norm(r * r, solver->K0) + slope * dense_norm(r * r, solver->M));
    if (solver->contact) floor += 16 * solver_contact_noise(solver->contact);
    return floor + 4 * dense_norm(r, solver->rest_force);
}

static fem_status fail_newton(const solver_reduced *solver, fem_status status, const char *why) {
    return fem_fail(
        status,
        "t = %g s: %s, the residual of the reduced body (r = %d) is %.1e of the largest force; try a smaller "
        "time step (now %g s), more Newton iterations (now %d) or a Newton tolerance above %g",
        solver->state.time + solver->options.time_step, why, solver->r, solver->report.residual,
        solver->options.time_step, solver->options.newton_iterations, solver->options.newton_tolerance);
}

// With contact the force has a kink where a sample comes to touch, and |residual| says little about the way there:
// whole steps, each contact kept as long as it pushes in the linearised answer.
static void contact_step(solver_reduced *solver, const solver_coefficients *c, reduced_point *point) {
    solver_contact_settle(solver->contact, NULL, solver->step);
    dense_axpy(solver->r, 1, solver->step, solver->q);
    *point = evaluate(solver, c, solver->q, true);
}

static bool converged(const solver_reduced *solver, const solver_coefficients *c, const reduced_point *point) {
    double enough = fmax(solver->options.newton_tolerance * point->largest, rounding_floor(solver, c));
    if (solver->contact && solver_contact_pull(solver->contact) > enough) return false;
    return point->norm <= enough;
}

static fem_status newton(solver_reduced *solver, const solver_coefficients *c, bool bold) {
    fem_status    status = FEM_OK;
    reduced_point point = evaluate(solver, c, solver->q, false);
    for (int iteration = 0;; iteration++) {
        if (!isfinite(point.norm)) return fail_newton(solver, FEM_UNSTABLE, "the force is not finite");
        solver->report.residual = point.largest > 0 ? point.norm / point.largest : 0;
        if (converged(solver, c, &point)) return FEM_OK;
        if (iteration == solver->options.newton_iterations)
            return fail_newton(solver, FEM_NO_CONVERGENCE, "Newton's iteration ran out of iterations");
        status = newton_step(solver, c, solver->q);
        if (status != FEM_OK) return fail_newton(solver, status, "the system matrix cannot be factorised");
        if (solver->contact)
            contact_step(solver, c, &point);
        else
            status = line_search(solver, c, bold, &point);
        if (status != FEM_OK) return fail_newton(solver, status, "Newton's iteration found nothing better");
    }
}

// Without a potential a line search sees only |residual|, which has to grow at first when a slender body bends: whole
// steps are tried before it. [Compare solver_newton_boldly.]
static fem_status newton_from_start(solver_reduced *solver, const solver_coefficients *c) {
    fem_status status = FEM_NO_CONVERGENCE;
    if (!has_potential(solver)) status = newton(solver, c, true);
    if (status == FEM_OK || solver->contact) return status;
    solver_copy(solver->r, solver->state.q, solver->q);
    return newton(solver, c, false);
}

// x^T M x; solver->product is work space.
static double mass_square(solver_reduced *solver, const double *x) {
    dense_gemv_set(solver->r, solver->r, 1, solver->M, x, solver->product);
    return dense_dot(solver->r, x, solver->product);
}

// Where the step is likely to end, d = h dq + h^2/2 ddq + O(h^3), into solver->guess. That as it stands where the step
// resolves ddq: h ddq has little of the energy that there is, from the start and the loads. A spring that was tied
// across a gap has h omega of a hundred and more, and h^2/2 ddq would throw the body out of reach: then the step of the
// same rule with the stiffness of rest and unchanged loads, which takes 1 / (1 + (h omega)^2/4) of it. (Not always: of
// a body that is bent far, the stiffness of rest holds the wrong directions.)
#define RESOLVED 0.1
static void guess_step(solver_reduced *solver, const solver_coefficients *c, const double *ddq_n) {
    const solver_reduced_options *o = &solver->options;
    int                           r = solver->r;
    const double                 *dq_n = solver->state.dq;
    double                       *d = solver->guess, *rate = solver->product, *kick = solver->image, h = o->time_step;
    double                        available = solver->budget + h * h / 2 * fabs(dense_dot(r, solver->load, ddq_n));
    if (h * h / 2 * mass_square(solver, ddq_n) < RESOLVED * available) {
        for (int i = 0; i < r; i++) d[i] = h * (dq_n[i] + h / 2 * ddq_n[i]);
        return;
    }
    for (int i = 0; i < r; i++) {
        rate[i] = (1 - c->a5) * dq_n[i] - c->a6 * ddq_n[i];
        kick[i] = c->a2 * dq_n[i] + (c->a3 + 1) * ddq_n[i] + o->damping_mass * rate[i];
    }
    dense_gemv_set(r, r, 1, solver->M, kick, d);
    dense_gemv_add(r, r, o->damping_stiffness, solver->K0, rate, d);
    if (solver_reduced_prepare(solver, c->a1 + o->damping_mass * c->a4, 1 + o->damping_stiffness * c->a4))
        dense_cholesky_solve(r, solver->P, 1, d);
    else
        for (int i = 0; i < r; i++) d[i] = h * dq_n[i];
}

// One iteration, from q_n or, with local stiffness damping, from where the step is likely to end. Where that was a bad
// guess, which is seen by how far the iteration goes beside the step itself, there are more.
#define GOOD_GUESS 0.05
enum { MOST_GUESSES = 4 };
static fem_status semi_implicit(solver_reduced *solver, const solver_coefficients *c, const double *ddq_n) {
    const solver_reduced_options *o = &solver->options;
    bool                          ahead = o->damping_stiffness > 0 && o->damping_local, good = !ahead;
    if (ahead || solver->contact) guess_step(solver, c, ddq_n);
    if (ahead) dense_axpy(solver->r, 1, solver->guess, solver->q);
    for (int iteration = 0; iteration == 0 || (!good && iteration < MOST_GUESSES); iteration++) {
        evaluate(solver, c, solver->q, false);
        fem_status status = newton_step(solver, c, solver->q);
        if (status != FEM_OK) return fem_fail_prefix(status, "t = %g s: ", solver->state.time + o->time_step);
        dense_axpy(solver->r, 1, solver->step, solver->q);
        if (good) continue;
        for (int i = 0; i < solver->r; i++) solver->trial[i] = solver->q[i] - solver->state.q[i];
        good = mass_square(solver, solver->step) <= GOOD_GUESS * GOOD_GUESS * mass_square(solver, solver->trial);
    }
    // what the linearised balance took as the contact
    if (solver->contact) dense_gemv_add(solver->r, solver->r, -1, solver->E, solver->step, solver->contact_force);
    return FEM_OK;
}

static fem_status implicit_step(solver_reduced *solver, const double *ddq_n) {
    const solver_reduced_options *o = &solver->options;
    solver_coefficients c = solver_step_coefficients(o->integrator, o->time_step, o->newmark_beta, o->newmark_gamma);
    start_balance(solver, &c, ddq_n);
    solver_copy(solver->r, solver->state.q, solver->q);
    fem_status status = o->newton_iterations > 1 ? newton_from_start(solver, &c) : semi_implicit(solver, &c, ddq_n);
    if (status != FEM_OK) return status;
    for (int i = 0; i < solver->r; i++) {
        double d = solver->q[i] - solver->state.q[i];
        solver->dq[i] = c.a4 * d + solver->velocity_start[i];
        solver->ddq[i] = c.a1 * d + solver->acceleration_start[i];
    }
    if (solver->contact_stiff) {
        double *a_c = solver->contact_force; // M a_c = contact
        dense_cholesky_solve(solver->r, solver->M_factor, 1, a_c);
        dense_axpy(solver->r, -contact_weight(solver), a_c, solver->ddq);
        dense_axpy(solver->r, o->time_step * (1 - o->newmark_gamma * contact_weight(solver)), a_c, solver->dq);
    }
    return FEM_OK;
}

// ---- central differences -----------------------------------------------------------------------------------------

static fem_status central_step(solver_reduced *solver, const double *ddq_n) {
    const solver_reduced_options *o = &solver->options;
    const solver_coordinates     *s = &solver->state;
    int                           r = solver->r, size = r * r;
    double                        h = o->time_step;
    bool                          stiff = o->damping_stiffness > 0;
    for (int i = 0; i < r; i++) {
        solver->dq[i] = s->dq[i] + h / 2 * ddq_n[i];
        solver->q[i] = s->q[i] + h * solver->dq[i];
    }
    internal_forces(solver, solver->q, stiff && o->damping_local, NULL);
    for (int i = 0; i < r; i++) solver->ddq[i] = solver->load[i] - solver->force[i];
    if (solver->contact) {
        contact_forces(solver, solver->q, solver->dq, h, 0, 0, false);
        dense_axpy(r, 1, solver->contact_force, solver->ddq);
    }
    subtract_damping(solver, solver->dq, solver->ddq);
    double began = fem_seconds();
    // (M + h/2 D) ddq = what is there now; without stiffness in D the factor of M serves
    if (stiff) {
        for (int i = 0; i < size; i++)
            solver->H[i] = (1 + h / 2 * o->damping_mass) * solver->M[i] +
                           h / 2 * o->damping_stiffness * damping_stiffness(solver)[i];
        fem_status status = solver_factorise_shifted(r, solver->H, solver->M, solver->matrix, &solver->report);
        if (status != FEM_OK) return fem_fail_prefix(status, "t = %g s: ", s->time + h);
    } else {
        dense_scale(r, 1 / (1 + h / 2 * o->damping_mass), solver->ddq);
    }
    dense_cholesky_solve(r, stiff ? solver->H : solver->M_factor, 1, solver->ddq);
    for (int i = 0; i < r; i++) solver->dq[i] += h / 2 * solver->ddq[i];
    solver->report.seconds_solve += fem_seconds() - began;
    return FEM_OK;
}

// ---- the step ----------------------------------------------------------------------------------------------------

// The energy that the state has before the first step.
static void open_budget(solver_reduced *solver) {
    solver_energies energies;
    solver_reduced_energies(solver, &energies);
    solver->budget = energies.kinetic + fabs(energies.strain);
    if (solver->contact) {
        contact_forces(solver, solver->state.q, solver->state.dq, 0, 0, 0, false);
        solver->budget += solver_contact_get_report(solver->contact).energy;
    }
}

// The kinetic energy of the step's end against what loads and obstacles can have given; the new budget in *budget.
static fem_status check_energy(solver_reduced *solver, double *budget) {
    int    r = solver->r;
    double load_work = 0, rest_work = 0;
    for (int i = 0; i < r; i++) {
        double d = solver->q[i] - solver->state.q[i];
        load_work += solver->load[i] * d;
        rest_work += solver->rest_force[i] * d;
    }
    *budget = solver->budget + fabs(load_work) + fabs(rest_work);
    if (solver->contact) *budget += solver->options.time_step * fabs(solver_contact_power(solver->contact));
    dense_gemv_set(r, r, 1, solver->M, solver->dq, solver->product);
    double kinetic = dense_dot(r, solver->dq, solver->product) / 2;
    if (!solver_all_finite(r, solver->q) || !solver_all_finite(r, solver->ddq)) kinetic = NAN;
    if (kinetic <= SOLVER_ENERGY_EXCESS * *budget) return FEM_OK;
    char advice[160] = "";
    if (solver->options.integrator == SOLVER_CENTRAL_DIFFERENCES)
        snprintf(
            advice, sizeof advice,
            "; central differences are stable up to %.3g s at rest and less where the body stiffens, or use Newmark",
            solver->report.stable_step);
    else if (solver->options.newton_iterations == 1)
        snprintf(advice, sizeof advice, ", or more than one Newton iteration");
    return solver_fail_diverged(solver->state.time + solver->options.time_step, r, &solver->options, kinetic, *budget,
                                advice);
}

fem_status solver_reduced_step(solver_reduced *solver) {
    const solver_reduced_options *o = &solver->options;
    solver_coordinates           *s = &solver->state;
    fem_status                    status = FEM_OK;
    double                        began = fem_seconds(), budget = 0;
    const double                 *ddq_n = s->ddq;
    if (!solver_all_finite(solver->r, solver->load)) {
        status = fem_fail(FEM_BAD_INPUT, "t = %g s: the reduced load is not finite", s->time);
        goto done;
    }
    if (!solver->budget_known) open_budget(solver);
    if (!solver->acceleration_known && o->integrator != SOLVER_BACKWARD_EULER) {
        first_acceleration(solver);
        ddq_n = solver->first;
    }
    FEM_TRY(o->integrator == SOLVER_CENTRAL_DIFFERENCES ? central_step(solver, ddq_n) : implicit_step(solver, ddq_n));
    FEM_TRY(check_energy(solver, &budget));
    solver_copy(solver->r, solver->q, s->q);
    solver_copy(solver->r, solver->dq, s->dq);
    solver_copy(solver->r, solver->ddq, s->ddq);
    s->time += o->time_step;
    solver->acceleration_known = solver->budget_known = true;
    solver->budget = budget;
    solver->report.steps++;
done:
    solver->report.seconds_step += fem_seconds() - began;
    return status;
}
