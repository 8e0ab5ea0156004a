// Nonlinear statics: Newton's method along a path of loads.
//
// At fraction s of the path the load is (1 - s) f(u_0) + s load and the supports stand at u_0 + s (prescribed - u_0),
// so the state u_0 that the solution starts from balances s = 0 exactly, whatever it is.
//
// A load step is first tried boldly, then with the line search (solver_newton_boldly), and if that fails too the load
// step is halved, to be doubled again after a success.
#include "libsolver/internal.h"

// The load (into solver->external) and the place of the supports (into `target`) at a fraction of the path.
static void place_on_path(solver_full *solver, double fraction, double *target) {
    const double *start = solver->state.u;
    for (int i = 0; i < solver->n; i++) {
        solver->external[i] = (1 - fraction) * solver->first[i] + fraction * solver->load[i];
        target[i] = solver->fixed[i] ? start[i] + fraction * (solver->prescribed[i] - start[i]) : 0;
        if (fraction == 1 && solver->fixed[i]) target[i] = solver->prescribed[i];
    }
}

// One load step from `reached` (n). solver->u gets the solution.
static fem_status load_step(solver_full *solver, double fraction, const double *reached) {
    double        *target = solver->rate; // statics has no use for the vectors of the dynamics
    solver_balance balance = {.dynamic = false};
    place_on_path(solver, fraction, target);
    return solver_newton_boldly(solver, &balance, reached, target);
}

fem_status solver_full_static(solver_full *solver, const fem_progress *progress) {
    fem_status            status = FEM_OK;
    const solver_options *o = &solver->options;
    double               *reached = solver->velocity; // u at the end of the last good load step
    double                done_fraction = 0, longest = 1.0 / o->load_steps, length = longest;
    int                   halvings = 0;
    FEM_TRY(solver_check_loads(solver));
    if (solver->rigid_free > 0) {
        status = fem_fail(FEM_BAD_INPUT,
                          "the body is not held: %d rigid motions are free%s; fix at least three vertices that are not "
                          "on a line%s",
                          solver->rigid_free, solver->pieces > 1 ? " in its separate pieces" : "",
                          solver->pieces > 1 ? ", in every piece" : "");
        goto done;
    }
    solver->report.load_steps = solver->report.load_halvings = 0;
    solver_copy(solver->n, solver->state.u, reached);
    fem_body_evaluate(solver->body, reached, NULL, solver->first, NULL);

    while (done_fraction < 1) {
        FEM_TRY(fem_progress_report(progress, "statics", done_fraction));
        double fraction = done_fraction + length;
        if (fraction > 1 - 1e-9) fraction = 1;
        status = load_step(solver, fraction, reached);
        if (status == FEM_OK) {
            solver_copy(solver->n, solver->u, reached);
            done_fraction = fraction;
            length = fmin(longest, 2 * length);
            if (halvings > 0) halvings--;
            solver->report.load_steps++;
        } else if (solver_may_retry(solver, status) && halvings < o->load_halvings) {
            halvings++;
            length /= 2;
            solver->report.load_halvings++;
        } else {
            fem_fail_prefix(status, "after %.3g%% of the load: ", 100 * done_fraction);
            goto done;
        }
    }
    FEM_TRY(fem_progress_report(progress, "statics", 1));
    for (int i = 0; i < solver->n; i++) {
        solver->state.u[i] = reached[i];
        solver->state.v[i] = solver->state.a[i] = 0;
    }
    solver->acceleration_known = false;
done:
    return status;
}
