// The free reduced body's life: creation, state, loads, energies. Its step is in free_step.c.
#include "libsolver/reduced_internal.h"

// ---- creation ----------------------------------------------------------------------------------------------------

static fem_status carve(solver_free *solver) {
    size_t r = (size_t)solver->r, n = r + 6, bytes = 0;
    struct {
        double **place;
        size_t   size;
    } parts[] = {
        {&solver->K0, r * r},
        {&solver->K, r * r},
        {&solver->H, r * r},
        {&solver->kept, r * r},
        {&solver->E, n * n},
        {&solver->T, 7 * r},
        {&solver->blocks.Mrq, 6 * r},
        {&solver->blocks.b_q, r},
        {&solver->inertia_work, SOLVER_INERTIA_WORK(r)},
        {&solver->work, solver->forces.work},
        {&solver->state.q, r},
        {&solver->state.dq, r},
        {&solver->state.ddq, r},
        {&solver->rest_force, r},
        {&solver->q, r},
        {&solver->dq, r},
        {&solver->q_predicted, r},
        {&solver->dq_predicted, r},
        {&solver->q_contact, r},
        {&solver->dq_contact, r},
        {&solver->force, r},
        {&solver->rhs, r},
        {&solver->product, r},
        {&solver->contact_force, n},
        {&solver->acceleration, n},
        {&solver->contact_guess, n},
        {&solver->guess, n},
        {&solver->last, n},
    };
    size_t count = sizeof parts / sizeof *parts;
    for (size_t k = 0; k < count; k++) bytes += FEM_SCRATCH_BYTES(parts[k].size, sizeof(double));
    fem_status status = fem_scratch_create(&solver->scratch, bytes);
    if (status != FEM_OK) return status;
    for (size_t k = 0; k < count; k++) {
        double *part = fem_scratch_take(&solver->scratch, parts[k].size, sizeof(double));
        for (size_t i = 0; i < parts[k].size; i++) part[i] = 0;
        *parts[k].place = part;
    }
    return FEM_OK;
}

// The mass matrix over rigid motions and modes is singular when a combination of modes is a rigid motion. Its distance
// from that is the angle between the two spaces: cos^2 is the largest eigenvalue of Mrq Mqq^-1 Mrq^T x = cos^2 Mrr x at
// rest. Mass-orthogonal modes have cos = 0.
static fem_status check_rigid_fields(const solver_inertia *inertia) {
    int                   r = inertia->r;
    fem_status            status = FEM_OK;
    double                C[36], cos2[6];
    solver_inertia_blocks blocks = {0};
    double               *work = fem_calloc((size_t)r + 1, 32 * sizeof *work); // 18 of inertia, Mrq, its transpose, q
    double               *factor = fem_copy(inertia->Mqq, (size_t)r * (size_t)r, sizeof *factor);
    if (!work || !factor) {
        status = fem_fail(FEM_NO_MEMORY, "solver: inertia of %d modes", r);
        goto done;
    }
    double *Mqr = work + 18 * r, *q = Mqr + 6 * r;
    blocks.Mrq = q + r, blocks.b_q = blocks.Mrq + 6 * r;
    solver_inertia_evaluate(inertia, q, NULL, NULL, &blocks, work);
    status = dense_cholesky(r, factor);
    if (status != FEM_OK) {
        fem_fail_prefix(status, "solver: the reduced mass matrix: ");
        goto done;
    }
    for (int l = 0; l < r; l++)
        for (int k = 0; k < 6; k++) Mqr[k * r + l] = blocks.Mrq[6 * l + k];
    dense_cholesky_solve(r, factor, 6, Mqr);
    dense_gemm(false, false, 6, 6, r, 1, blocks.Mrq, Mqr, 0, C);
    status = dense_generalized_eigen(6, C, blocks.Mrr, cos2);
    if (status == FEM_INDEFINITE)
        status = fem_fail(FEM_BAD_INPUT, "solver: a free body needs mass and extent in all three dimensions");
    if (status == FEM_OK && !(cos2[5] < 0.98))
        status = fem_fail(FEM_BAD_INPUT,
                          "solver: the modes of a free body contain a rigid motion (a combination of them is rigid to "
                          "%.4g of its mass norm), which the body would have twice; leave rigid modes out and make the "
                          "others mass-orthogonal to rigid motions",
                          sqrt(cos2[5]));
done:
    fem_free(work);
    fem_free(factor);
    return status;
}

// (step x contact frequency)^2: above 1 contact is stiff
static double contact_rate(const solver_free *solver, const solver_contact *contact) {
    double h = solver->options.time_step;
    return contact ? h * h * solver_contact_rate(contact, solver->inertia.Mqq, solver->inertia.m) : 0;
}

// Takes the inertia, about its centre of mass, and the present model of the forces; changes the solver only on success.
static fem_status adopt(solver_free *solver, const solver_inertia *inertia) {
    fem_status     status = FEM_OK;
    int            r = solver->r;
    solver_inertia next = {0};
    double         c[3];
    if (!(inertia->m > 0 && isfinite(inertia->m))) {
        status = fem_fail(FEM_BAD_INPUT, "solver: the mass of a free body is %g kg, expected > 0", inertia->m);
        goto done;
    }
    FEM_TRY(solver_inertia_copy(&next, inertia));
    for (int k = 0; k < 3; k++) c[k] = inertia->s0[k] / inertia->m;
    solver_inertia_recentre(&next, c);
    FEM_TRY(check_rigid_fields(&next));
    if (r > 0) {
        for (int i = 0; i < r; i++) solver->q[i] = 0;
        solver->forces.evaluate(solver->forces.model, solver->q, NULL, solver->force, solver->K, solver->work);
        if (!solver_all_finite(r * r, solver->K) || !solver_all_finite(r, solver->force)) {
            status = fem_fail(FEM_BAD_INPUT, "solver: the reduced forces at rest are not finite");
            goto done;
        }
        solver_copy(r * r, solver->K, solver->K0);
        solver_copy(r, solver->force, solver->rest_force);
    }
    solver_inertia_destroy(&solver->inertia);
    solver->inertia = next;
    next = (solver_inertia){0};
    // the frame moves to the new centre of mass: p + Q (c' - c), v + Q (w x (c' - c))
    solver_motion *s = &solver->state;
    double         shift[3], turned[3], swing[3];
    vec3_sub(shift, c, s->centre);
    mat3_mul_vec(turned, s->Q, shift);
    vec3_axpy(s->p, 1, turned);
    vec3_cross(swing, s->w, shift);
    mat3_mul_vec(turned, s->Q, swing);
    vec3_axpy(s->v, 1, turned);
    for (int k = 0; k < solver->point_count; k++)
        vec3_axpy(solver->points + (size_t)k * (6 + 3 * (size_t)r), -1, shift);
    for (int k = 0; k < 3; k++) s->centre[k] = c[k];
    solver->contact_stiff = contact_rate(solver, solver->contact) > 1;
    solver->acceleration_known = solver->budget_known = false;
done:
    solver_inertia_destroy(&next);
    return status;
}

fem_status solver_free_create(solver_free **result, const solver_inertia *inertia, const cubature_forces *forces,
                              const solver_reduced_options *options) {
    fem_status   status = FEM_OK;
    solver_free *solver = NULL;
    FEM_TRY(solver_free_check_options(options));
    FEM_TRY(solver_check_forces(forces, inertia->r));
    solver = fem_calloc(1, sizeof *solver);
    if (!solver) {
        status = fem_fail(FEM_NO_MEMORY, "solver: a free body of %d modes", inertia->r);
        goto done;
    }
    if (forces) solver->forces = *forces;
    solver->options = *options;
    solver->r = inertia->r;
    mat3_identity(solver->state.Q);
    FEM_TRY(carve(solver));
    FEM_TRY(adopt(solver, inertia)); // from p = c = 0 to p = c
    *result = solver;
    solver = NULL;
done:
    solver_free_destroy(solver);
    return status;
}

void solver_free_destroy(solver_free *solver) {
    if (!solver) return;
    solver_inertia_destroy(&solver->inertia);
    fem_scratch_destroy(&solver->scratch);
    fem_free(solver->points);
    fem_free(solver);
}

fem_status solver_free_changed(solver_free *solver, const solver_inertia *inertia) {
    if (inertia && inertia->r != solver->r)
        return fem_fail(FEM_BAD_INPUT, "solver: the new inertia has %d modes, the body %d", inertia->r, solver->r);
    if (inertia) return adopt(solver, inertia);
    // as it was: the copy about its own centre would look like one about the origin, so it is put back there
    solver_inertia same;
    fem_status     status = solver_inertia_copy(&same, &solver->inertia);
    if (status != FEM_OK) return status;
    double back[3] = {-solver->state.centre[0], -solver->state.centre[1], -solver->state.centre[2]};
    solver_inertia_recentre(&same, back);
    status = adopt(solver, &same);
    solver_inertia_destroy(&same);
    return status;
}

// ---- state and loads ---------------------------------------------------------------------------------------------

const solver_motion *solver_free_state(const solver_free *solver) { return &solver->state; }

fem_status solver_free_set_state(solver_free *solver, const solver_motion_start *start) {
    solver_motion *s = &solver->state;
    int            r = solver->r;
    if (!isfinite(start->time) || !solver_all_finite(3, start->p) || !solver_all_finite(3, start->v) ||
        !solver_all_finite(3, start->w) || !solver_all_finite(r, start->q) || !solver_all_finite(r, start->dq))
        return fem_fail(FEM_BAD_INPUT, "solver: the state to start from is not finite");
    if (start->Q && !solver_is_rotation(start->Q))
        return fem_fail(FEM_BAD_INPUT, "solver: the orientation to start from is not a rotation");
    s->time = start->time;
    for (int k = 0; k < 3; k++) {
        s->p[k] = start->p ? start->p[k] : s->centre[k];
        s->v[k] = start->v ? start->v[k] : 0;
        s->w[k] = start->w ? start->w[k] : 0;
        s->a[k] = s->al[k] = 0;
    }
    for (int k = 0; k < 9; k++) s->Q[k] = start->Q ? start->Q[k] : k % 4 == 0;
    solver_rotation_clean(s->Q);
    for (int i = 0; i < r; i++) {
        s->q[i] = start->q ? start->q[i] : 0;
        s->dq[i] = start->dq ? start->dq[i] : 0;
        s->ddq[i] = 0;
    }
    solver->acceleration_known = solver->budget_known = false;
    return FEM_OK;
}

fem_status solver_free_set_gravity(solver_free *solver, const double gravity[3]) {
    if (!solver_all_finite(3, gravity)) return fem_fail(FEM_BAD_INPUT, "solver: gravity is not finite");
    for (int k = 0; k < 3; k++) solver->gravity[k] = gravity[k];
    return FEM_OK;
}

fem_status solver_free_set_contact(solver_free *solver, solver_contact *contact) {
    fem_status status = solver_check_contact(contact, solver->r);
    if (status != FEM_OK) return status;
    double rate = contact_rate(solver, contact);
    if (rate > 1 && solver->options.integrator == SOLVER_NEWMARK)
        return fem_fail(FEM_BAD_INPUT,
                        "solver: Newmark's rule would gain energy from contact this stiff (step x contact frequency is "
                        "%.2g, expected < 1); use the midpoint rule, backward Euler or a smaller time step",
                        sqrt(rate));
    solver->contact_stiff = rate > 1;
    solver->contact = contact;
    solver->budget_known = false;
    return FEM_OK;
}

fem_status solver_free_add_force(solver_free *solver, const double X[3], const double *U_X, const double force[3]) {
    size_t r = (size_t)solver->r, width = 6 + 3 * r;
    if (!solver_all_finite(3, X) || !solver_all_finite(3 * solver->r, U_X) || !solver_all_finite(3, force))
        return fem_fail(FEM_BAD_INPUT, "solver: a point load is not finite");
    fem_status status = fem_grow((void **)&solver->points, &solver->point_capacity, (size_t)solver->point_count + 1,
                                 width * sizeof(double));
    if (status != FEM_OK) return status;
    double *point = solver->points + (size_t)solver->point_count * width;
    for (int k = 0; k < 3; k++) {
        point[k] = X[k] - solver->state.centre[k];
        point[3 + k] = force[k];
    }
    for (size_t k = 0; k < 3 * r; k++) point[6 + k] = U_X[k];
    solver->point_count++;
    return FEM_OK;
}

fem_status solver_free_add_torque(solver_free *solver, const double torque[3]) {
    if (!solver_all_finite(3, torque)) return fem_fail(FEM_BAD_INPUT, "solver: a torque is not finite");
    vec3_axpy(solver->torque, 1, torque);
    return FEM_OK;
}

void solver_free_clear_loads(solver_free *solver) {
    solver->point_count = 0;
    for (int k = 0; k < 3; k++) solver->torque[k] = 0;
}

// ---- what can be read --------------------------------------------------------------------------------------------

void solver_free_point(const solver_free *solver, const double X[3], const double *U_X, double x[3], double *dx) {
    const solver_motion *s = &solver->state;
    double               y[3], rate[3], turned[3];
    vec3_sub(y, X, s->centre);
    for (int k = 0; k < 3; k++)
        for (int l = 0; l < solver->r; l++) y[k] += U_X[k * solver->r + l] * s->q[l];
    vec3_cross(rate, s->w, y);
    for (int k = 0; k < 3; k++)
        for (int l = 0; l < solver->r; l++) rate[k] += U_X[k * solver->r + l] * s->dq[l];
    mat3_mul_vec(turned, s->Q, y);
    for (int k = 0; k < 3; k++) x[k] = s->p[k] + turned[k];
    if (!dx) return;
    mat3_mul_vec(turned, s->Q, rate);
    for (int k = 0; k < 3; k++) dx[k] = s->v[k] + turned[k];
}

void solver_free_energies(const solver_free *solver, solver_motion_energies *energies) {
    const solver_motion  *s = &solver->state;
    solver_inertia_blocks blocks = solver->blocks; // shares its memory
    double                v[3], momentum[6], offset[3], mass = solver->inertia.m, arm[3], turned[3];
    energies->strain = 0;
    if (solver->r > 0) solver->forces.evaluate(solver->forces.model, s->q, &energies->strain, NULL, NULL, solver->work);
    solver_inertia_evaluate(&solver->inertia, s->q, NULL, NULL, &blocks, solver->inertia_work);
    mat3_mul_vec_t(v, s->Q, s->v);
    energies->kinetic = solver_inertia_momentum(&solver->inertia, &blocks, v, s->w, s->dq, momentum);
    // the centre of mass is at s / m in the frame; [s] is the lower left of Mrr
    const double s_m[3] = {blocks.Mrr[6 * 1 + 5] / mass, blocks.Mrr[6 * 2 + 3] / mass, blocks.Mrr[6 * 0 + 4] / mass};
    mat3_mul_vec(offset, s->Q, s_m);
    for (int k = 0; k < 3; k++) energies->centre[k] = s->p[k] + offset[k];
    energies->potential = -mass * vec3_dot(solver->gravity, energies->centre);
    mat3_mul_vec(energies->momentum, s->Q, momentum);
    vec3_cross(arm, s_m, momentum);
    for (int k = 0; k < 3; k++) turned[k] = momentum[3 + k] - arm[k];
    mat3_mul_vec(energies->spin, s->Q, turned);
}

solver_step_report solver_free_report(const solver_free *solver) { return solver->report; }
