// Newton's method for one load step or one time step.
//
// Residual  r(u) = M (a + alpha v) + beta K v + f(u) - external,  K = K(0) or, with local damping, K(u),
// matrix    T(u) = (a1 + alpha a4) M + beta a4 K + K(u)  (+ beta H(u):v with local damping).
// H = dK/du is symmetric in all its slots, so d(K(u) v) = (H:du) v = (H:v) du, and H:v is the symmetric matrix dK/du
// along v. It is taken as the difference (K(u + e v) - K(u)) / e with e max|v| = 1e-6 of an element's size, which is
// good to about six digits: convergence stays as fast as with the exact matrix, and the residual itself is never
// approximated.
//
// Without local damping r is the gradient of the potential
//     P(u) = W(u) - external . u + 1/2 d . (M rate(u) + M rate(u_n)) + beta/2 d . (K(0) v(u) + K(0) v(u_n)),  d = u -
//     u_n,
// where rate = a + alpha v. The line search accepts a step that lowers P enough (Armijo) or lowers |r|: near the
// solution P is flat within rounding and only |r| can tell, far from it |r| may have to grow while P falls.
//
// A matrix that is not positive definite gets a multiple of the diagonal of K(0), ten times larger until it works: the
// step is then still a direction of descent of P.
//
// The supports move in the first iteration: the increment solves the linearised balance with their motion on the
// right-hand side, so that it spreads over the body instead of crushing the elements beside the supports.
#include "libsolver/internal.h"

#include <float.h>
#include <stdio.h>

// What is known at a point u.
typedef struct newton_point {
    double potential; // P(u) less a constant; with local damping it means nothing
    double norm;      // |r| over the free degrees of freedom
    double largest;   // norm of the largest force in the balance
} newton_point;

// ---- messages ----------------------------------------------------------------------------------------------------

static const char *region_of_vertex(const fem_mesh *mesh, int vertex) {
    int corners = fem_element_vertices(mesh->type);
    for (int e = 0; e < mesh->element_count; e++)
        for (int k = 0; k < corners; k++)
            if (mesh->elements[(size_t)corners * (size_t)e + (size_t)k] == vertex)
                return mesh->regions[mesh->region[e]].name;
    return "none";
}

fem_status solver_fail_at(const solver_full *solver, fem_status status, const solver_balance *balance, int vertex,
                          const char *what) {
    const fem_mesh *mesh = solver->mesh;
    char            when[64] = "statics", inverted[128] = "";
    int             element = 0;
    double          smallest = fem_body_min_jacobian(solver->body, solver->u, &element);
    if (smallest <= 0)
        snprintf(inverted, sizeof inverted, ", element %lld is turned inside out",
                 fem_mesh_element_number(mesh, element));
    if (!balance->dynamic)
        return fem_fail(status,
                        "%s: %s at vertex %d (region \"%s\")%s; try more load steps, a smaller load, or a "
                        "neo-Hookean material, which resists inversion",
                        when, what, vertex + mesh->file_base, region_of_vertex(mesh, vertex), inverted);
    snprintf(when, sizeof when, "t = %g s", balance->time);
    return fem_fail(status,
                    "%s: %s at vertex %d (region \"%s\")%s; try a smaller time step (now %g s), more damping, "
                    "smaller loads or slower supports, or a neo-Hookean material, which resists inversion",
                    when, what, vertex + mesh->file_base, region_of_vertex(mesh, vertex), inverted,
                    solver->options.time_step);
}

// The vertex with the largest or the first non-finite entry.
static int worst_vertex(int n, const double *x) {
    int    worst = 0;
    double largest = 0;
    for (int i = 0; i < n; i++) {
        if (!isfinite(x[i])) return i / 3;
        if (fabs(x[i]) > largest) largest = fabs(x[i]), worst = i / 3;
    }
    return worst;
}

static fem_status fail_slowly(const solver_full *solver, const solver_balance *balance, const newton_point *point,
                              const char *why) {
    char what[160];
    snprintf(what, sizeof what, "%s, the residual is %.1e of the largest force and largest", why,
             point->norm / fmax(point->largest, DBL_MIN));
    return solver_fail_at(solver, FEM_NO_CONVERGENCE, balance, worst_vertex(solver->n, solver->residual), what);
}

static fem_status fail_not_finite(const solver_full *solver, const solver_balance *balance, const double *residual) {
    return solver_fail_at(solver, FEM_UNSTABLE, balance, worst_vertex(solver->n, residual), "the force is not finite");
}

static fem_status fail_linear(const solver_full *solver, const solver_balance *balance, fem_status status) {
    if (status == FEM_INDEFINITE)
        return solver_fail_at(solver, status, balance, worst_vertex(solver->n, solver->residual),
                              "the tangent stiffness is not positive definite, whatever is added to its diagonal, and "
                              "the residual is largest");
    if (status == FEM_UNSTABLE) return fail_not_finite(solver, balance, solver->residual);
    return balance->dynamic ? fem_fail_prefix(status, "t = %g s: ", balance->time) : status;
}

// ---- residual ----------------------------------------------------------------------------------------------------

// r(u) and what belongs to it; force, velocity and, with local damping, K(u) are left in the solver
static newton_point evaluate(solver_full *solver, const solver_balance *balance, const double *u, double *residual) {
    const solver_options *o = &solver->options;
    int                   n = solver->n;
    double                began = fem_seconds(), energy = 0;
    bool                  damped = balance->dynamic && o->damping_stiffness > 0, local = damped && o->damping_local;

    fem_body_evaluate(solver->body, u, &energy, solver->force, local ? &solver->K : NULL);
    newton_point point = {.potential = energy - dense_dot(n, solver->external, u)};
    point.largest = fmax(dense_norm(n, solver->force), dense_norm(n, solver->external));
    for (int i = 0; i < n; i++) residual[i] = solver->force[i] - solver->external[i];

    if (balance->dynamic) {
        double rate_slope = balance->a1 + o->damping_mass * balance->a4;
        for (int i = 0; i < n; i++) {
            double d = u[i] - balance->start[i];
            solver->rate[i] = rate_slope * d + solver->rate_start[i];
            solver->velocity[i] = balance->a4 * d + solver->velocity_start[i];
        }
        // r += M (a + alpha v)
        fem_sparse_multiply(&solver->M, 1, solver->rate, solver->mass_force);
        dense_axpy(n, 1, solver->mass_force, residual);
        point.largest = fmax(point.largest, dense_norm(n, solver->mass_force));
        for (int i = 0; i < n; i++)
            point.potential += (u[i] - balance->start[i]) * (solver->mass_force[i] + solver->mass_start[i]) / 2;
    }
    if (damped) {
        // r += beta K v
        fem_sparse_multiply(local ? &solver->K : &solver->K0, 1, solver->velocity, solver->damping_force);
        dense_axpy(n, o->damping_stiffness, solver->damping_force, residual);
        point.largest = fmax(point.largest, o->damping_stiffness * dense_norm(n, solver->damping_force));
        for (int i = 0; i < n && !local; i++)
            point.potential += o->damping_stiffness / 2 * (u[i] - balance->start[i]) *
                               (solver->damping_force[i] + solver->damping_start[i]);
    }
    for (int i = 0; i < n; i++)
        if (solver->fixed[i]) residual[i] = 0;
    point.norm = dense_norm(n, residual);
    solver->report.seconds_assemble += fem_seconds() - began;
    return point;
}

static bool is_finite(const newton_point *point) { return isfinite(point->norm) && isfinite(point->potential); }

// What rounding leaves of |r|: F carries an error of one unit in 1 (stress times the size of an element) and u - u_n
// one unit in u.
static double rounding_floor(const solver_full *solver, const solver_balance *balance) {
    double largest = 0, slope = balance->dynamic ? balance->a1 + solver->options.damping_mass * balance->a4 : 0;
    for (int i = 0; i < solver->n; i++) largest = fmax(largest, fabs(solver->u[i]));
    return 16 * DBL_EPSILON * (solver->rest_norm * (solver->cell + largest) + slope * solver->mass_norm * largest);
}

// ---- matrix ------------------------------------------------------------------------------------------------------

// T = K(u) + beta H(u):v by the difference along v; K(u) and v are those of the last evaluation
static double assemble_along_velocity(solver_full *solver) {
    double fastest = 0;
    for (int i = 0; i < solver->n; i++) fastest = fmax(fastest, fabs(solver->velocity[i]));
    if (fastest == 0) {
        fem_sparse_zero(&solver->T);
        return 1;
    }
    double step = 1e-6 * solver->cell / fastest, weight = solver->options.damping_stiffness / step;
    solver_copy(solver->n, solver->u, solver->trial);
    dense_axpy(solver->n, step, solver->velocity, solver->trial);
    fem_body_evaluate(solver->body, solver->trial, NULL, NULL, &solver->T);
    fem_sparse_scale(&solver->T, weight);
    return 1 - weight; // factor of K(u) that is still to be added
}

static void assemble_tangent(solver_full *solver, const solver_balance *balance) {
    const solver_options *o = &solver->options;
    double                began = fem_seconds();
    bool                  damped = balance->dynamic && o->damping_stiffness > 0;
    if (damped && o->damping_local) {
        double weight = assemble_along_velocity(solver);
        fem_sparse_axpy(&solver->T, weight + o->damping_stiffness * balance->a4, &solver->K);
    } else {
        fem_body_evaluate(solver->body, solver->u, NULL, NULL, &solver->T);
        if (damped) fem_sparse_axpy(&solver->T, o->damping_stiffness * balance->a4, &solver->K0);
    }
    if (balance->dynamic) fem_sparse_axpy(&solver->T, balance->a1 + o->damping_mass * balance->a4, &solver->M);
    solver->report.seconds_assemble += fem_seconds() - began;
}

static void shift_diagonal(solver_full *solver, double amount) {
    for (int v = 0; v < solver->T.n; v++)
        for (int k = 0; k < 3; k++)
            solver->T.value[9 * (size_t)solver->T.row_start[v] + 4 * (size_t)k] +=
                amount * solver->rest_diagonal[3 * v + k];
}

static fem_status solve_timed(solver_full *solver, bool fresh, const double *b, double *x) {
    fem_status status = FEM_OK;
    double     began = fem_seconds();
    if (fresh) {
        status = solver_system_prepare(&solver->system, &solver->T);
        if (solver->system.factor) solver->report.factorisations++;
        solver->report.seconds_factorise += fem_seconds() - began;
        began = fem_seconds();
    }
    if (status == FEM_OK) status = solver_system_solve(&solver->system, &solver->T, b, x);
    solver->report.pcg_iterations = solver->system.iterations;
    solver->report.seconds_solve += fem_seconds() - began;
    return status;
}

// x = (T + shift)^-1 b with the smallest shift of the sequence 0, 1e-4, 1e-3 .. 1e2 that makes the matrix positive
// definite
static fem_status solve_shifted(solver_full *solver, const solver_balance *balance, bool fresh, const double *b,
                                double *x) {
    fem_status status = solve_timed(solver, fresh, b, x);
    if (status != FEM_INDEFINITE || balance->bold) return status;
    solver->report.shifts++;
    double shift = 0;
    for (double next = 1e-4; next < 200 && status == FEM_INDEFINITE; next *= 10) {
        shift_diagonal(solver, next - shift);
        shift = next;
        status = solve_timed(solver, true, b, x);
    }
    solver->prepared = SOLVER_PREPARED_NOTHING; // T is no longer the matrix of a linear body
    return status;
}

// Makes T(u) ready unless a linear body's is still there. Returns whether it has to be factorised.
static bool refresh_tangent(solver_full *solver, const solver_balance *balance) {
    int wanted = balance->dynamic ? SOLVER_PREPARED_DYNAMIC : SOLVER_PREPARED_STATIC;
    if (solver->linear && solver->prepared == wanted) return false;
    assemble_tangent(solver, balance);
    solver->prepared = solver->linear ? wanted : SOLVER_PREPARED_NOTHING;
    return true;
}

// Newton's increment for the residual at u into the free entries of solver->step; its fixed entries hold the motion of
// the supports, which is zero unless they are moving
static fem_status newton_step(solver_full *solver, const solver_balance *balance, bool moving) {
    int        n = solver->n;
    fem_status status = FEM_OK;
    bool       fresh = refresh_tangent(solver, balance);
    double    *rhs = solver->trial; // free until the line search
    if (moving) fem_sparse_multiply(&solver->T, 1, solver->step, rhs);
    for (int i = 0; i < n; i++) {
        rhs[i] = -solver->residual[i] - (moving ? rhs[i] : 0);
        if (solver->fixed[i]) rhs[i] = 0;
    }
    double *increment = solver->trial_residual; // likewise
    if (solver->free_count > 0) {
        status = solve_shifted(solver, balance, fresh, rhs, increment);
        if (status != FEM_OK) solver->prepared = SOLVER_PREPARED_NOTHING;
    }
    if (status != FEM_OK) return status;
    for (int i = 0; i < n; i++)
        if (!solver->fixed[i]) solver->step[i] = increment[i];
    return FEM_OK;
}

// ---- iteration ---------------------------------------------------------------------------------------------------

// Accepts u + s step for the largest s = 1, 1/2, 1/4 .. that lowers the potential or the residual. FEM_NO_CONVERGENCE
// when none does, FEM_UNSTABLE when not even the smallest has finite forces; neither sets a message.
static fem_status line_search(solver_full *solver, const solver_balance *balance, newton_point *point) {
    const solver_options *o = &solver->options;
    bool                  has_potential = !(balance->dynamic && o->damping_stiffness > 0 && o->damping_local);
    bool                  always = balance->bold || o->line_search == 0;
    double                slope = dense_dot(solver->n, solver->residual, solver->step), scale = 1;
    fem_status            status = FEM_UNSTABLE;
    for (int halving = 0; halving <= (always ? 0 : o->line_search); halving++, scale /= 2) {
        if (halving > 0) solver->report.line_search_steps++;
        solver_copy(solver->n, solver->u, solver->trial);
        dense_axpy(solver->n, scale, solver->step, solver->trial);
        newton_point next = evaluate(solver, balance, solver->trial, solver->trial_residual);
        bool         lower = next.norm <= (1 - 1e-4 * scale) * point->norm;
        bool         downhill = has_potential && next.potential <= point->potential + 1e-4 * scale * slope;
        if (is_finite(&next) && (always || lower || downhill)) {
            double *u = solver->u, *residual = solver->residual;
            solver->u = solver->trial, solver->trial = u;
            solver->residual = solver->trial_residual, solver->trial_residual = residual;
            *point = next;
            return FEM_OK;
        }
        status = is_finite(&next) ? FEM_NO_CONVERGENCE : FEM_UNSTABLE;
    }
    return status;
}

// The increment of the supports into solver->step (zero elsewhere); whether there is any.
static bool support_motion(solver_full *solver, const double *target) {
    bool moving = false;
    for (int i = 0; i < solver->n; i++) {
        solver->step[i] = solver->fixed[i] ? target[i] - solver->u[i] : 0;
        moving = moving || solver->step[i] != 0;
    }
    return moving;
}

fem_status solver_newton(solver_full *solver, const solver_balance *balance, const double *target) {
    const solver_options *o = &solver->options;
    bool                  moving = support_motion(solver, target);
    int                   limit = o->newton_iterations;
    if (balance->bold && limit > SOLVER_BOLD_ITERATIONS) limit = SOLVER_BOLD_ITERATIONS;
    newton_point point = evaluate(solver, balance, solver->u, solver->residual);
    double       previous = INFINITY;
    for (int iteration = 0;; iteration++) {
        if (!is_finite(&point)) return fail_not_finite(solver, balance, solver->residual);
        solver->report.residual = point.norm > 0 ? point.norm / point.largest : 0;
        if (!moving) {
            if (point.norm <= o->newton_tolerance * point.largest) return FEM_OK;
            if (point.norm > previous / 2 && point.norm <= rounding_floor(solver, balance)) return FEM_OK;
        }
        if (iteration == limit) return fail_slowly(solver, balance, &point, "Newton's method ran out of iterations");
        fem_status status = newton_step(solver, balance, moving);
        if (status != FEM_OK) return fail_linear(solver, balance, status);
        solver->report.newton_iterations++;
        previous = point.norm;
        if (moving) {
            for (int i = 0; i < solver->n; i++) {
                solver->u[i] = solver->fixed[i] ? target[i] : solver->u[i] + solver->step[i];
                if (solver->fixed[i]) solver->step[i] = 0; // they have arrived
            }
            point = evaluate(solver, balance, solver->u, solver->residual);
            previous = INFINITY;
            moving = false;
            continue;
        }
        status = line_search(solver, balance, &point);
        if (status != FEM_OK && point.norm <= rounding_floor(solver, balance)) return FEM_OK;
        if (status == FEM_UNSTABLE) return fail_not_finite(solver, balance, solver->trial_residual);
        if (status != FEM_OK)
            return fail_slowly(solver, balance, &point, "no fraction of Newton's step lowers the residual");
    }
}

// A shorter step or another way to it helps Newton, not conjugate gradients.
bool solver_may_retry(const solver_full *solver, fem_status status) {
    return !solver->system.gave_up &&
           (status == FEM_NO_CONVERGENCE || status == FEM_INDEFINITE || status == FEM_UNSTABLE);
}

// A slender beam that bends stretches at first: its potential rises a thousandfold, and falls again in the next
// iterations; descent takes three times as many.
fem_status solver_newton_boldly(solver_full *solver, solver_balance *balance, const double *from,
                                const double *target) {
    int element;
    for (int cautious = solver->options.line_search == 0; cautious < 2; cautious++) {
        balance->bold = !cautious;
        solver_copy(solver->n, from, solver->u);
        fem_status status = solver_newton(solver, balance, target);
        bool       inverted = status == FEM_OK && !cautious && !solver->linear &&
                        fem_body_min_jacobian(solver->body, solver->u, &element) <= 0;
        if (cautious || (!inverted && !solver_may_retry(solver, status))) return status;
    }
    return FEM_OK;
}
