// Options of the full-space solver: defaults, and a check that names field, value and rule.
#include "libsolver/solver.h"

solver_options solver_default_options(void) {
    return (solver_options){
        .time_step = 1.0 / 120,
        .integrator = SOLVER_NEWMARK,
        .newmark_beta = 0.25,
        .newmark_gamma = 0.5,
        .damping_local = true,
        .mass = FEM_MASS_CONSISTENT,
        .newton_iterations = 30,
        .newton_tolerance = 1e-9,
        .line_search = 8,
        .load_steps = 1,
        .load_halvings = 8,
        .linear = SOLVER_DIRECT,
        .pcg_tolerance = 1e-8,
    };
}

static fem_status real_out_of_range(const char *name, double value, const char *rule) {
    return fem_fail(FEM_BAD_INPUT, "solver.%s is %g, expected %s", name, value, rule);
}

static fem_status count_out_of_range(const char *name, int value, const char *rule) {
    return fem_fail(FEM_BAD_INPUT, "solver.%s is %d, expected %s", name, value, rule);
}

fem_status solver_check_options(const solver_options *o) {
    // comparisons are written so that a NaN fails them
    if (!(o->time_step > 0 && isfinite(o->time_step))) return real_out_of_range("time_step", o->time_step, "> 0");
    if ((int)o->integrator < 0 || o->integrator > SOLVER_BACKWARD_EULER)
        return count_out_of_range("integrator", (int)o->integrator, "Newmark (0) or backward Euler (1)");
    if (!(o->newmark_beta > 0 && o->newmark_beta <= 1))
        return real_out_of_range("newmark_beta", o->newmark_beta, "in (0, 1]");
    if (!(o->newmark_gamma > 0 && o->newmark_gamma <= 1))
        return real_out_of_range("newmark_gamma", o->newmark_gamma, "in (0, 1]");
    if (!(o->damping_mass >= 0 && isfinite(o->damping_mass)))
        return real_out_of_range("damping_mass", o->damping_mass, ">= 0");
    if (!(o->damping_stiffness >= 0 && isfinite(o->damping_stiffness)))
        return real_out_of_range("damping_stiffness", o->damping_stiffness, ">= 0");
    if ((int)o->mass < 0 || o->mass > FEM_MASS_LUMPED)
        return count_out_of_range("mass", (int)o->mass, "consistent (0) or lumped (1)");
    if (o->newton_iterations < 1) return count_out_of_range("newton_iterations", o->newton_iterations, ">= 1");
    if (!(o->newton_tolerance > 0 && o->newton_tolerance < 1))
        return real_out_of_range("newton_tolerance", o->newton_tolerance, "in (0, 1)");
    if (o->line_search < 0 || o->line_search > 60)
        return count_out_of_range("line_search", o->line_search, "from 0 to 60");
    if (o->load_steps < 1) return count_out_of_range("load_steps", o->load_steps, ">= 1");
    if (o->load_halvings < 0 || o->load_halvings > 30)
        return count_out_of_range("load_halvings", o->load_halvings, "from 0 to 30");
    if ((int)o->linear < 0 || o->linear > SOLVER_PCG)
        return count_out_of_range("linear", (int)o->linear, "direct (0) or pcg (1)");
    if (!(o->pcg_tolerance > 0 && o->pcg_tolerance < 1))
        return real_out_of_range("pcg_tolerance", o->pcg_tolerance, "in (0, 1)");
    if (o->pcg_iterations < 0) return count_out_of_range("pcg_iterations", o->pcg_iterations, ">= 0");
    return FEM_OK;
}
