// The held reduced body's life: creation, state, loads, energies. Its steps are in reduced_step.c.
#include "libsolver/reduced_internal.h"

// Every vector and matrix is carved from one block, so that a step allocates nothing.
static fem_status carve(solver_reduced *solver) {
    double   **matrices[] = {&solver->M, &solver->M_factor, &solver->K0,     &solver->K,
                             &solver->H, &solver->E,        &solver->matrix, &solver->P};
    double   **vectors[] = {&solver->state.q,
                            &solver->state.dq,
                            &solver->state.ddq,
                            &solver->load,
                            &solver->rest_force,
                            &solver->q,
                            &solver->dq,
                            &solver->ddq,
                            &solver->force,
                            &solver->contact_force,
                            &solver->residual,
                            &solver->step,
                            &solver->trial,
                            &solver->difference,
                            &solver->guess,
                            &solver->rate_start,
                            &solver->velocity_start,
                            &solver->acceleration_start,
                            &solver->first,
                            &solver->product,
                            &solver->image,
                            &solver->damping,
                            &solver->krylov[0],
                            &solver->krylov[1],
                            &solver->krylov[2],
                            &solver->krylov[3],
                            &solver->krylov[4],
                            &solver->krylov[5],
                            &solver->krylov[6],
                            &solver->krylov[7]};
    size_t     r = (size_t)solver->r, matrix_count = sizeof matrices / sizeof *matrices;
    size_t     vector_count = sizeof vectors / sizeof *vectors;
    fem_status status =
        fem_scratch_create(&solver->scratch, matrix_count * FEM_SCRATCH_BYTES(r * r, sizeof(double)) +
                                                 vector_count * FEM_SCRATCH_BYTES(r, sizeof(double)) +
                                                 FEM_SCRATCH_BYTES(solver->forces.work, sizeof(double)));
    if (status != FEM_OK) return status;
    for (size_t k = 0; k < matrix_count; k++) *matrices[k] = fem_scratch_take(&solver->scratch, r * r, sizeof(double));
    for (size_t k = 0; k < vector_count; k++) {
        *vectors[k] = fem_scratch_take(&solver->scratch, r, sizeof(double));
        for (size_t i = 0; i < r; i++) (*vectors[k])[i] = 0;
    }
    solver->work = fem_scratch_take(&solver->scratch, solver->forces.work, sizeof(double));
    return FEM_OK;
}

// K(0) and f(0) into K0 and rest_force
static fem_status measure_rest(solver_reduced *solver, double *K0, double *rest_force) {
    int r = solver->r;
    for (int i = 0; i < r; i++) solver->trial[i] = 0;
    solver->forces.evaluate(solver->forces.model, solver->trial, NULL, rest_force, K0, solver->work);
    if (!solver_all_finite(r * r, K0) || !solver_all_finite(r, rest_force))
        return fem_fail(FEM_BAD_INPUT, "solver: the reduced forces at rest are not finite");
    return FEM_OK;
}

// The largest angular frequency at rest sets the largest stable step of central differences: h < 2 / omega.
static fem_status find_stable_step(const solver_reduced *solver, const double *M, const double *K0, double *step) {
    int        r = solver->r;
    size_t     size = (size_t)r * (size_t)r;
    fem_status status = FEM_OK;
    double    *A = fem_copy(K0, size, sizeof *A), *B = fem_copy(M, size, sizeof *B);
    double    *omega2 = fem_alloc((size_t)r, sizeof *omega2);
    if (!A || !B || !omega2) {
        status = fem_fail(FEM_NO_MEMORY, "solver: frequencies of %d modes", r);
        goto done;
    }
    FEM_TRY(dense_generalized_eigen(r, A, B, omega2));
    *step = omega2[r - 1] > 0 ? 2 / sqrt(omega2[r - 1]) : INFINITY;
    if (solver->options.time_step > *step)
        status = fem_fail(FEM_BAD_INPUT,
                          "the time step is %g s, expected < %g: central differences are stable up to 2 / omega, and "
                          "omega of the highest of %d modes is %g 1/s; use fewer modes or Newmark",
                          solver->options.time_step, *step, r, 2 / *step);
done:
    fem_free(A);
    fem_free(B);
    fem_free(omega2);
    return status;
}

// Central differences and backward Euler treat contact of any stiffness alike.
static bool is_contact_stiff(const solver_reduced *solver) {
    double h = solver->options.time_step;
    return solver->contact && solver->options.integrator == SOLVER_NEWMARK &&
           h * h * solver_contact_rate(solver->contact, solver->M, 0) > 1;
}

// Takes the mass (NULL: as it is) and the present model of the forces; the solver changes only on success.
static fem_status adopt(solver_reduced *solver, const double *M) {
    fem_status status = FEM_OK;
    int        r = solver->r, size = r * r;
    double    *mass = solver->matrix, *factor = solver->H, *K0 = solver->K, *rest_force = solver->residual;
    double     stable_step = 0;
    for (int i = 0; i < size; i++) mass[i] = M ? M[i] : solver->M[i];
    for (int i = 0; i < size; i++)
        if (!isfinite(mass[i]) || fabs(mass[i] - mass[i % r * r + i / r]) > 1e-9 * fabs(mass[i % r * (r + 1)])) {
            status = fem_fail(FEM_BAD_INPUT, "solver: the reduced mass matrix is not symmetric and finite (mode %d)",
                              i % r + 1);
            goto done;
        }
    solver_copy(size, mass, factor);
    status = dense_cholesky(r, factor);
    if (status != FEM_OK) {
        fem_fail_prefix(status, "solver: the reduced mass matrix: ");
        goto done;
    }
    FEM_TRY(measure_rest(solver, K0, rest_force));
    if (solver->options.integrator == SOLVER_CENTRAL_DIFFERENCES)
        FEM_TRY(find_stable_step(solver, mass, K0, &stable_step));
    solver_copy(size, mass, solver->M);
    solver_copy(size, factor, solver->M_factor);
    solver_copy(size, K0, solver->K0);
    solver_copy(r, rest_force, solver->rest_force);
    solver->report.stable_step = stable_step;
    solver->P_mass = solver->P_stiffness = 0;
    solver->contact_stiff = is_contact_stiff(solver);
    solver->acceleration_known = solver->budget_known = false;
done:
    return status;
}

fem_status solver_reduced_create(solver_reduced **result, const cubature_forces *forces, const double *M,
                                 const solver_reduced_options *options) {
    fem_status      status = FEM_OK;
    solver_reduced *solver = NULL;
    FEM_TRY(solver_reduced_check_options(options));
    if (forces->r < 1 || forces->r > 10000) {
        status = fem_fail(FEM_BAD_INPUT, "solver: %d modes, expected 1 to 10000 for a held body", forces->r);
        goto done;
    }
    solver = fem_calloc(1, sizeof *solver);
    if (!solver) {
        status = fem_fail(FEM_NO_MEMORY, "solver: %d modes", forces->r);
        goto done;
    }
    solver->forces = *forces;
    solver->options = *options;
    solver->r = forces->r;
    FEM_TRY(carve(solver));
    for (int i = 0; i < solver->r * solver->r; i++) solver->M[i] = i % (solver->r + 1) == 0;
    FEM_TRY(adopt(solver, M));
    *result = solver;
    solver = NULL;
done:
    solver_reduced_destroy(solver);
    return status;
}

void solver_reduced_destroy(solver_reduced *solver) {
    if (!solver) return;
    fem_scratch_destroy(&solver->scratch);
    fem_free(solver);
}

fem_status solver_reduced_changed(solver_reduced *solver, const double *M) { return adopt(solver, M); }

// ---- state and loads ---------------------------------------------------------------------------------------------

const solver_coordinates *solver_reduced_state(const solver_reduced *solver) { return &solver->state; }

fem_status solver_reduced_set_state(solver_reduced *solver, double time, const double *q, const double *dq) {
    if (!isfinite(time) || !solver_all_finite(solver->r, q) || !solver_all_finite(solver->r, dq))
        return fem_fail(FEM_BAD_INPUT, "solver: the state to start from is not finite");
    solver->state.time = time;
    for (int i = 0; i < solver->r; i++) {
        solver->state.q[i] = q ? q[i] : 0;
        solver->state.dq[i] = dq ? dq[i] : 0;
        solver->state.ddq[i] = 0;
    }
    solver->acceleration_known = solver->budget_known = false;
    return FEM_OK;
}

void solver_reduced_set_load(solver_reduced *solver, const double *load) { solver_copy(solver->r, load, solver->load); }

fem_status solver_reduced_set_contact(solver_reduced *solver, solver_contact *contact) {
    fem_status status = solver_check_contact(contact, solver->r);
    if (status != FEM_OK) return status;
    solver->contact = contact;
    solver->contact_stiff = is_contact_stiff(solver);
    solver->acceleration_known = solver->budget_known = false;
    return FEM_OK;
}

void solver_project_forces(const modes_basis *basis, int count, const int *vertices, const double *forces,
                           double *load) {
    for (int l = 0; l < basis->r; l++) {
        const double *column = basis->U + (size_t)basis->n * (size_t)l;
        for (int k = 0; k < count; k++) load[l] += vec3_dot(column + 3 * (size_t)vertices[k], forces + 3 * (size_t)k);
    }
}

// ---- what can be read --------------------------------------------------------------------------------------------

void solver_reduced_energies(const solver_reduced *solver, solver_energies *energies) {
    int                       r = solver->r;
    const solver_coordinates *s = &solver->state;
    solver->forces.evaluate(solver->forces.model, s->q, &energies->strain, NULL, NULL, solver->work);
    dense_gemv_set(r, r, 1, solver->M, s->dq, solver->product);
    energies->kinetic = dense_dot(r, s->dq, solver->product) / 2;
    energies->load = -dense_dot(r, solver->load, s->q);
}

solver_step_report solver_reduced_report(const solver_reduced *solver) { return solver->report; }
