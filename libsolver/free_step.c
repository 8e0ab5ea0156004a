// One time step of a free reduced body: rigid motion and deformation coupled by the blocks of inertia.h.
//
// Every rule evaluates the equations of motion once per step, at a stage whose place and velocities depend on the
// accelerations A = (a; al; ddq) there:
//     place = predicted + c2 A,   velocity = predicted + c1 A.
//     midpoint        predicted place x + h/2 v, velocity v;   c1 = h/2, c2 = h^2/4;   then x += h velocity, v += h A
//     Newmark         x + h v + h^2 (1/2 - beta) A_n, v + h (1 - gamma) A_n;   c1 = gamma h, c2 = beta h^2
//     backward Euler  x + h v, v;   c1 = h, c2 = h^2;   of the last two the stage is the end of the step
// Orientations are Q exp([angle]), the angle predicted and corrected like a place. A is found by Newton's method:
// forces are linearised about the stage of the last A (0 at first),
//     f(q) ~ f(q_s) + c2 K (ddq - ddq_s),   D dq ~ D(q_s) (dq_predicted + c1 ddq),   contact ~ f_c - E_c (A - A_s),
// while the inertia and its biases are taken at the last stage. Two iterations are second order. One is only first
// order, unless the velocities in the biases are extrapolated with the accelerations of the step before, which is done.
// The linear system is solved by elimination of the modes:
//     H = Mqq + c1 D + c2 K + E_qq,   T = H^-1 Mrq^T,   g = H^-1 rhs_q,   (Mrr - Mrq T) (a; al) = rhs_r - Mrq g.
// Gravity is a uniform acceleration, so the system is solved for a - gravity.
#include "libsolver/reduced_internal.h"

typedef struct free_stage {
    double c1, c2, elapsed;
    double p[3], v[3], w[3], angle[3]; // predicted; q and dq are in the solver
    // at the stage
    double place[3], velocity[3], spin[3], Q[9];
    double gravity[3]; // in the axes of the frame
    double loads[6];   // wrench in the axes of the frame, without gravity and contact
    double wrench[6];  // all that acts on the body: force and moment about the frame's origin, world axes
} free_stage;

// ---- places and loads --------------------------------------------------------------------------------------------

// Place, velocities and orientation for the accelerations A (world a, al, ddq).
static void place_stage(solver_free *solver, free_stage *st, const double *A) {
    double angle[3], turn[9];
    for (int k = 0; k < 3; k++) {
        st->place[k] = st->p[k] + st->c2 * A[k];
        st->velocity[k] = st->v[k] + st->c1 * A[k];
        st->spin[k] = st->w[k] + st->c1 * A[3 + k];
        angle[k] = st->angle[k] + st->c2 * A[3 + k];
    }
    solver_rotation(angle, turn);
    mat3_mul(st->Q, solver->state.Q, turn);
    mat3_mul_vec_t(st->gravity, st->Q, solver->gravity);
    for (int i = 0; i < solver->r; i++) {
        solver->q[i] = solver->q_predicted[i] + st->c2 * A[6 + i];
        solver->dq[i] = solver->dq_predicted[i] + st->c1 * A[6 + i];
    }
}

// A force f at a point y of the frame with rows U: e_r += (f; y x f), e_q += U^T f
static void add_point_loads(solver_free *solver, const free_stage *st, double e_r[6], double *e_q) {
    int    r = solver->r;
    size_t width = 6 + 3 * (size_t)r;
    for (int point = 0; point < solver->point_count; point++) {
        const double *load = solver->points + (size_t)point * width, *rows = load + 6;
        double        f[3], moment[3], y[3] = {load[0], load[1], load[2]};
        mat3_mul_vec_t(f, st->Q, load + 3);
        for (int k = 0; k < 3; k++)
            for (int l = 0; l < r; l++) {
                y[k] += rows[k * r + l] * solver->q[l];
                e_q[l] += rows[k * r + l] * f[k];
            }
        vec3_cross(moment, y, f);
        vec3_axpy(e_r, 1, f);
        vec3_axpy(e_r + 3, 1, moment);
    }
}

// Loads, internal forces and damping: solver->rhs and solver->H, with everything that modes feel but inertia and
// contact
static void modal_forces(solver_free *solver, free_stage *st, const double *A) {
    const solver_reduced_options *o = &solver->options;
    int                           r = solver->r, size = r * r;
    double                        began = fem_seconds();
    double                        moment[3];
    for (int k = 0; k < 6; k++) st->loads[k] = 0;
    for (int i = 0; i < r; i++) solver->rhs[i] = 0;
    add_point_loads(solver, st, st->loads, solver->rhs);
    mat3_mul_vec_t(moment, st->Q, solver->torque);
    vec3_axpy(st->loads + 3, 1, moment);
    if (r == 0) return;
    solver->forces.evaluate(solver->forces.model, solver->q, NULL, solver->force, solver->K, solver->work);
    solver->report.seconds_force += fem_seconds() - began;

    const double *Kd = o->damping_local ? solver->K : solver->K0, *M = solver->inertia.Mqq;
    // rhs = e_q - f - D dq_predicted + c2 K ddq
    dense_axpy(r, -1, solver->force, solver->rhs);
    if (o->damping_mass > 0) dense_gemv_add(r, r, -o->damping_mass, M, solver->dq_predicted, solver->rhs);
    if (o->damping_stiffness > 0) dense_gemv_add(r, r, -o->damping_stiffness, Kd, solver->dq_predicted, solver->rhs);
    if (st->c2 > 0) dense_gemv_add(r, r, st->c2, solver->K, A + 6, solver->rhs);
    // H = M + c1 D + c2 K
    for (int i = 0; i < size; i++) solver->H[i] = (1 + st->c1 * o->damping_mass) * M[i] + st->c2 * solver->K[i];
    if (o->damping_stiffness > 0) dense_axpy(size, st->c1 * o->damping_stiffness, Kd, solver->H);
}

// Contact into contact_force and E, with E (A - gravity) added to the former, A in the axes of the frame. Soft contact
// belongs to the stage. Stiff contact with the midpoint rule is that of the end of the step, x + h v + h^2/2 A and
// v + h A, its arms about the frame's origin there; force and moment are turned into the axes of the stage.
static void contact_forces(solver_free *solver, const free_stage *st, const double *A, bool again) {
    const solver_motion *s = &solver->state;
    int                  n = 6 + solver->r;
    double               began = fem_seconds(), v[3], *shift = solver->contact_guess;
    free_stage           end = *st;
    bool                 late = solver->contact_stiff && solver->options.integrator == SOLVER_MIDPOINT && st->c1 > 0;
    solver_copy(solver->r, solver->q, solver->q_contact);
    solver_copy(solver->r, solver->dq, solver->dq_contact);
    if (late) {
        double h = solver->options.time_step, angle[3], turn[9];
        end.c1 = end.elapsed = h, end.c2 = h * h / 2;
        for (int k = 0; k < 3; k++) {
            end.place[k] = s->p[k] + h * s->v[k] + end.c2 * A[k];
            end.velocity[k] = s->v[k] + h * A[k];
            end.spin[k] = s->w[k] + h * A[3 + k];
            angle[k] = h * s->w[k] + end.c2 * A[3 + k];
        }
        solver_rotation(angle, turn);
        mat3_mul(end.Q, s->Q, turn);
        for (int i = 0; i < solver->r; i++) {
            solver->q_contact[i] = s->q[i] + h * s->dq[i] + end.c2 * A[6 + i];
            solver->dq_contact[i] = s->dq[i] + h * A[6 + i];
        }
    }
    solver_contact_view view = {.elapsed = end.elapsed,
                                .lag = late ? solver->options.time_step / 2 : 0,
                                .again = again,
                                .p = end.place,
                                .Q = end.Q,
                                .axes = st->Q,
                                .v = v,
                                .w = end.spin,
                                .centre = s->centre,
                                .q = solver->q_contact,
                                .dq = solver->dq_contact};
    mat3_mul_vec_t(v, end.Q, end.velocity);
    for (int i = 0; i < n; i++) solver->contact_force[i] = 0;
    for (int i = 0; i < n * n; i++) solver->E[i] = 0;
    solver_contact_evaluate(solver->contact, &view, end.c2, end.c1, solver->contact_force, solver->E);
    for (int i = 3; i < n; i++) shift[i] = A[i];
    mat3_mul_vec_t(shift, st->Q, A);
    vec3_axpy(shift, -1, st->gravity);
    dense_gemv_add(n, n, 1, solver->E, shift, solver->contact_force);
    solver->report.seconds_contact += fem_seconds() - began;
}

// ---- the coupled system ------------------------------------------------------------------------------------------

// (a - gravity; al; ddq) in the axes of the frame into solver->acceleration. Blocks, H and rhs are ready.
static fem_status solve_coupled(solver_free *solver, const free_stage *st) {
    int        r = solver->r, n = 6 + r;
    double     began = fem_seconds(), I[36], right[6], *Mrq = solver->blocks.Mrq, *T = solver->T;
    double    *x = solver->acceleration;
    fem_status status = FEM_OK;
    for (int i = 0; i < 6; i++) right[i] = st->loads[i] - solver->blocks.b_r[i];
    for (int i = 0; i < r; i++) solver->rhs[i] -= solver->blocks.b_q[i];
    for (int i = 0; i < 36; i++) I[i] = solver->blocks.Mrr[i];
    if (solver->contact) {
        for (int j = 0; j < 6; j++)
            for (int i = 0; i < 6; i++) I[6 * j + i] += solver->E[(size_t)n * (size_t)j + (size_t)i];
        for (int l = 0; l < r; l++) {
            const double *column = solver->E + (size_t)n * (size_t)(6 + l);
            for (int i = 0; i < 6; i++) Mrq[6 * l + i] += column[i];
            for (int i = 0; i < r; i++) solver->H[(size_t)r * (size_t)l + (size_t)i] += column[6 + i];
        }
        dense_axpy(6, 1, solver->contact_force, right);
        dense_axpy(r, 1, solver->contact_force + 6, solver->rhs);
    }
    if (r > 0) {
        FEM_TRY(solver_factorise_shifted(r, solver->H, solver->inertia.Mqq, solver->kept, &solver->report));
        for (int l = 0; l < r; l++) {
            for (int i = 0; i < 6; i++) T[(size_t)r * (size_t)i + (size_t)l] = Mrq[6 * l + i];
            T[6 * (size_t)r + (size_t)l] = solver->rhs[l];
        }
        dense_cholesky_solve(r, solver->H, 7, T); // T = H^-1 Mrq^T and, last, g
        dense_gemm(false, false, 6, 6, r, -1, Mrq, T, 1, I);
        dense_gemv_add(6, r, -1, Mrq, T + 6 * (size_t)r, right);
    }
    FEM_TRY(dense_cholesky(6, I));
    dense_cholesky_solve(6, I, 1, right);
    for (int i = 0; i < 6; i++) x[i] = right[i];
    for (int i = 0; i < r; i++) x[6 + i] = T[6 * (size_t)r + (size_t)i];
    if (r > 0) dense_gemv_add(r, 6, -1, T, right, x + 6);
    solver->report.newton_iterations++;
done:
    solver->report.seconds_solve += fem_seconds() - began;
    return status;
}

// Everything that acts at the stage, for the balance of momentum: contact is what the linearised solution has.
static void total_wrench(solver_free *solver, free_stage *st) {
    int    n = 6 + solver->r;
    double wrench[6], weight_moment[3], m = solver->inertia.m;
    for (int i = 0; i < 6; i++) wrench[i] = st->loads[i];
    if (solver->contact)
        for (int i = 0; i < 6; i++) {
            wrench[i] += solver->contact_force[i];
            for (int j = 0; j < n; j++)
                wrench[i] -= solver->E[(size_t)n * (size_t)j + (size_t)i] * solver->acceleration[j];
        }
    // gravity: m g at the centre of mass, s x g; s from [s], the lower left of Mrr
    const double *Mrr = solver->blocks.Mrr, s[3] = {Mrr[6 + 5], Mrr[12 + 3], Mrr[4]};
    vec3_cross(weight_moment, s, st->gravity);
    vec3_axpy(wrench, m, st->gravity);
    vec3_axpy(wrench + 3, 1, weight_moment);
    mat3_mul_vec(st->wrench, st->Q, wrench);
    mat3_mul_vec(st->wrench + 3, st->Q, wrench + 3);
}

// One iteration: the accelerations (world a; al; ddq) into solver->acceleration, from those in A. `bias` are the
// accelerations by which the velocities in the inertial biases are predicted.
static fem_status iterate(solver_free *solver, free_stage *st, const double *A, const double *bias, bool again) {
    int r = solver->r;
    place_stage(solver, st, A);
    modal_forces(solver, st, A);
    if (solver->contact) contact_forces(solver, st, A, again);
    double w[3];
    for (int k = 0; k < 3; k++) w[k] = st->w[k] + st->c1 * bias[3 + k];
    for (int i = 0; i < r; i++) solver->product[i] = solver->dq_predicted[i] + st->c1 * bias[6 + i];
    solver_inertia_evaluate(&solver->inertia, solver->q, solver->product, w, &solver->blocks, solver->inertia_work);
    fem_status status = solve_coupled(solver, st);
    if (status != FEM_OK) return status;
    total_wrench(solver, st);
    if (solver->contact) {
        for (int i = 0; i < 6 + r; i++) solver->contact_guess[i] = solver->acceleration[i] - solver->contact_guess[i];
        solver_contact_settle(solver->contact, solver->contact_guess, solver->contact_guess + 6);
    }
    double a[3];
    vec3_axpy(solver->acceleration, 1, st->gravity);
    mat3_mul_vec(a, st->Q, solver->acceleration);
    for (int k = 0; k < 3; k++) solver->acceleration[k] = a[k];
    return FEM_OK;
}

// ---- the step ----------------------------------------------------------------------------------------------------

// Accelerations at the start of the step into solver->last: an explicit evaluation there.
static fem_status first_acceleration(solver_free *solver) {
    const solver_motion *s = &solver->state;
    int                  n = 6 + solver->r;
    free_stage           st = {0};
    for (int k = 0; k < 3; k++) st.p[k] = s->p[k], st.v[k] = s->v[k], st.w[k] = s->w[k];
    solver_copy(solver->r, s->q, solver->q_predicted);
    solver_copy(solver->r, s->dq, solver->dq_predicted);
    for (int i = 0; i < n; i++) solver->guess[i] = 0;
    fem_status status = iterate(solver, &st, solver->guess, solver->guess, false);
    solver_copy(n, solver->acceleration, solver->last);
    for (int k = 0; k < 6; k++) solver->wrench[k] = st.wrench[k];
    return status;
}

// Accelerations of the step before into solver->last, where the rule needs them.
static fem_status recall_accelerations(solver_free *solver) {
    const solver_motion *s = &solver->state;
    bool needed = solver->options.integrator == SOLVER_NEWMARK || solver->options.newton_iterations == 1;
    if (needed && !solver->acceleration_known) return first_acceleration(solver);
    for (int k = 0; k < 3; k++) solver->last[k] = s->a[k], solver->last[3 + k] = s->al[k];
    solver_copy(solver->r, s->ddq, solver->last + 6);
    return FEM_OK;
}

static void predict(solver_free *solver, free_stage *st) {
    const solver_reduced_options *o = &solver->options;
    const solver_motion          *s = &solver->state;
    const double                 *A = solver->last;
    double                        h = o->time_step, place_v = h, place_A = 0, velocity_A = 0;
    st->c1 = h, st->c2 = h * h;
    if (o->integrator == SOLVER_MIDPOINT) {
        place_v = st->c1 = h / 2;
        st->c2 = h * h / 4;
    } else if (o->integrator == SOLVER_NEWMARK) {
        st->c1 = o->newmark_gamma * h;
        st->c2 = o->newmark_beta * h * h;
        place_A = (0.5 - o->newmark_beta) * h * h;
        velocity_A = (1 - o->newmark_gamma) * h;
    }
    st->elapsed = place_v;
    for (int k = 0; k < 3; k++) {
        st->p[k] = s->p[k] + place_v * s->v[k] + place_A * A[k];
        st->v[k] = s->v[k] + velocity_A * A[k];
        st->angle[k] = place_v * s->w[k] + place_A * A[3 + k];
        st->w[k] = s->w[k] + velocity_A * A[3 + k];
    }
    for (int i = 0; i < solver->r; i++) {
        solver->q_predicted[i] = s->q[i] + place_v * s->dq[i] + place_A * A[6 + i];
        solver->dq_predicted[i] = s->dq[i] + velocity_A * A[6 + i];
    }
}

// The iterations: accelerations into solver->acceleration, and the stage that belongs to them.
static fem_status find_accelerations(solver_free *solver, free_stage *st) {
    const solver_reduced_options *o = &solver->options;
    int                           n = 6 + solver->r;
    double                       *A = solver->guess;
    for (int i = 0; i < n; i++) A[i] = 0;
    for (int iteration = 0; iteration < o->newton_iterations; iteration++) {
        fem_status status = iterate(solver, st, A, o->newton_iterations == 1 ? solver->last : A, iteration > 0);
        if (status != FEM_OK) return status;
        double change = 0;
        for (int i = 0; i < n; i++) {
            double d = solver->acceleration[i] - A[i];
            change += d * d;
            A[i] = solver->acceleration[i];
        }
        double size = dense_norm(n, A);
        solver->report.residual = size > 0 ? sqrt(change) / size : 0;
        if (solver->report.residual <= o->newton_tolerance &&
            !(solver->contact && solver_contact_pull(solver->contact) > 0))
            break;
    }
    place_stage(solver, st, A);
    return FEM_OK;
}

// The end of the step, in *end and in the solver's q and dq.
static void finish(solver_free *solver, const free_stage *st, solver_motion *end) {
    const solver_motion *s = &solver->state;
    const double        *A = solver->acceleration;
    double               h = solver->options.time_step, angle[3], turn[9];
    bool                 midpoint = solver->options.integrator == SOLVER_MIDPOINT;
    *end = *s;
    end->time = s->time + h;
    for (int k = 0; k < 3; k++) {
        end->a[k] = A[k], end->al[k] = A[3 + k];
        end->p[k] = midpoint ? s->p[k] + h * st->velocity[k] : st->place[k];
        end->v[k] = midpoint ? s->v[k] + h * A[k] : st->velocity[k];
        end->w[k] = midpoint ? s->w[k] + h * A[3 + k] : st->spin[k];
        angle[k] = h * st->spin[k];
    }
    solver_rotation(angle, turn);
    if (midpoint)
        mat3_mul(end->Q, s->Q, turn);
    else
        for (int k = 0; k < 9; k++) end->Q[k] = st->Q[k];
    solver_rotation_clean(end->Q);
    if (!midpoint) return; // q and dq are those of the stage
    for (int i = 0; i < solver->r; i++) {
        solver->q[i] = s->q[i] + h * solver->dq[i];
        solver->dq[i] = s->dq[i] + h * A[6 + i];
    }
}

// (P; H about the frame's origin) in world axes; the blocks of that place are left in the solver. Returns the kinetic
// energy.
static double world_momentum(solver_free *solver, const solver_motion *at, const double *q, const double *dq,
                             double momentum[6]) {
    double local[6], v[3];
    solver_inertia_evaluate(&solver->inertia, q, NULL, NULL, &solver->blocks, solver->inertia_work);
    mat3_mul_vec_t(v, at->Q, at->v);
    double kinetic = solver_inertia_momentum(&solver->inertia, &solver->blocks, v, at->w, dq, local);
    mat3_mul_vec(momentum, at->Q, local);
    mat3_mul_vec(momentum + 3, at->Q, local + 3);
    return kinetic;
}

// Corrects v and w of the end so that the momenta changed by the impulse of the step: with P* and H* what they should
// be (H about the frame's origin at the end), [m I, -[s]; [s], J] (dv; dw) = (P* - P; H* - H) in the frame's axes.
// Moments of the balance are about the frame's origin at the start.
static fem_status correct_momentum(solver_free *solver, const free_stage *st, solver_motion *end) {
    const solver_reduced_options *o = &solver->options;
    const solver_motion          *s = &solver->state;
    double                        before[6], after[6], impulse[6], arm[3], moment[3], missing[6], local[6], turned[3];
    double                        late = o->integrator == SOLVER_NEWMARK ? o->newmark_gamma : 1;
    world_momentum(solver, s, s->q, s->dq, before);
    world_momentum(solver, end, solver->q, solver->dq, after);
    vec3_sub(arm, st->place, s->p);
    vec3_cross(moment, arm, st->wrench);
    for (int k = 0; k < 6; k++) {
        double stage = st->wrench[k] + (k < 3 ? 0 : moment[k - 3]);
        impulse[k] = o->time_step * (late < 1 ? late * stage + (1 - late) * solver->wrench[k] : stage);
    }
    for (int k = 0; k < 3; k++) missing[k] = before[k] + impulse[k] - after[k];
    vec3_sub(arm, end->p, s->p);
    for (int k = 0; k < 3; k++) turned[k] = before[k] + impulse[k]; // P*
    vec3_cross(moment, arm, turned);
    for (int k = 3; k < 6; k++) missing[k] = before[k] + impulse[k] - moment[k - 3] - after[k];
    mat3_mul_vec_t(local, end->Q, missing);
    mat3_mul_vec_t(local + 3, end->Q, missing + 3);
    fem_status status = dense_cholesky(6, solver->blocks.Mrr);
    if (status != FEM_OK) return status;
    dense_cholesky_solve(6, solver->blocks.Mrr, 1, local);
    mat3_mul_vec(turned, end->Q, local);
    vec3_axpy(end->v, 1, turned);
    vec3_axpy(end->w, 1, local + 3);
    return FEM_OK;
}

static void open_budget(solver_free *solver) {
    const solver_motion   *s = &solver->state;
    solver_motion_energies energies;
    solver_free_energies(solver, &energies);
    solver->budget = energies.kinetic + fabs(energies.strain);
    if (!solver->contact) return;
    double              v[3];
    solver_contact_view view = {
        .p = s->p, .Q = s->Q, .axes = s->Q, .v = v, .w = s->w, .centre = s->centre, .q = s->q, .dq = s->dq};
    mat3_mul_vec_t(v, s->Q, s->v);
    solver_contact_evaluate(solver->contact, &view, 0, 0, solver->contact_force, NULL);
    solver->budget += solver_contact_get_report(solver->contact).energy;
}

// What gravity and the loads did over the step, each part by its magnitude.
static double load_work(const solver_free *solver, const free_stage *st, const solver_motion *end) {
    const solver_motion *s = &solver->state;
    int                  r = solver->r;
    double               d[3], spin[3], work;
    vec3_sub(d, end->p, s->p);
    work = solver->inertia.m * fabs(vec3_dot(solver->gravity, d));
    mat3_mul_vec(spin, st->Q, st->spin);
    work += solver->options.time_step * fabs(vec3_dot(solver->torque, spin));
    for (int point = 0; point < solver->point_count; point++) {
        const double *load = solver->points + (size_t)point * (6 + 3 * (size_t)r), *rows = load + 6;
        double        from[3] = {load[0], load[1], load[2]}, to[3] = {load[0], load[1], load[2]}, turned[3];
        for (int k = 0; k < 3; k++) {
            from[k] += dense_dot(r, rows + k * r, s->q);
            to[k] += dense_dot(r, rows + k * r, solver->q);
        }
        mat3_mul_vec(turned, end->Q, to);
        for (int k = 0; k < 3; k++) to[k] = turned[k] + d[k];
        mat3_mul_vec(turned, s->Q, from);
        vec3_axpy(to, -1, turned);
        work += fabs(vec3_dot(load + 3, to));
    }
    return work;
}

static fem_status check_energy(solver_free *solver, const free_stage *st, const solver_motion *end, double *budget) {
    int    r = solver->r;
    double h = solver->options.time_step, rest_work = 0, momentum[6];
    for (int i = 0; i < r; i++) rest_work += solver->rest_force[i] * (solver->q[i] - solver->state.q[i]);
    *budget = solver->budget + load_work(solver, st, end) + fabs(rest_work);
    if (solver->contact) *budget += h * fabs(solver_contact_power(solver->contact));
    double kinetic = world_momentum(solver, end, solver->q, solver->dq, momentum);
    if (!solver_all_finite(r, solver->q) || !solver_all_finite(3, end->p) || !solver_all_finite(9, end->Q))
        kinetic = NAN;
    if (kinetic <= SOLVER_ENERGY_EXCESS * *budget) return FEM_OK;
    const char *advice = solver->options.newton_iterations < 3 ? ", or three Newton iterations" : "";
    return solver_fail_diverged(end->time, r, &solver->options, kinetic, *budget, advice);
}

fem_status solver_free_step(solver_free *solver) {
    fem_status     status = FEM_OK;
    solver_motion *s = &solver->state, end;
    free_stage     st = {0};
    double         began = fem_seconds(), budget = 0;
    if (!solver->budget_known) open_budget(solver);
    FEM_TRY(recall_accelerations(solver));
    predict(solver, &st);
    FEM_TRY(find_accelerations(solver, &st));
    finish(solver, &st, &end);
    if (solver->options.conserve_momentum) FEM_TRY(correct_momentum(solver, &st, &end));
    FEM_TRY(check_energy(solver, &st, &end, &budget));
    *s = end;
    solver_copy(solver->r, solver->q, s->q);
    solver_copy(solver->r, solver->dq, s->dq);
    solver_copy(solver->r, solver->acceleration + 6, s->ddq);
    for (int k = 0; k < 6; k++) solver->wrench[k] = st.wrench[k];
    solver->acceleration_known = solver->budget_known = true;
    solver->budget = budget;
    solver->report.steps++;
done:
    if (status != FEM_OK && status != FEM_UNSTABLE)
        fem_fail_prefix(status, "t = %g s: the free body (r = %d): ", s->time + solver->options.time_step, solver->r);
    solver->report.seconds_step += fem_seconds() - began;
    return status;
}
