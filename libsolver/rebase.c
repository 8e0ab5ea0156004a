// A change of basis in flight.
#include "libsolver/reduced_internal.h"

// y = U'^T M U x, and the share of |U x| that is lost
static void carry(int from, int to, const double *T, const double *x, double *y, double *lost) {
    dense_gemv_set(to, from, 1, T, x, y);
    double whole = dense_norm(from, x), kept = dense_norm(to, y);
    *lost = whole > 0 ? sqrt(fmax(0, 1 - kept * kept / (whole * whole))) : 0;
}

// Modes of K(0) that a step does not resolve, h omega > 2, go where the pull leaves them, pull / omega^2; the others
// stay.
static fem_status settle(const solver_reduced *solver, const double *pull, double *q) {
    int        r = solver->r;
    double     h = solver->options.time_step;
    fem_status status = FEM_OK;
    double *V = fem_copy(solver->K0, (size_t)r * (size_t)r, sizeof *V), *work = fem_alloc(3 * (size_t)r, sizeof *work);
    if (!V || !work) {
        status = fem_fail(FEM_NO_MEMORY, "solver: %d modes", r);
        goto done;
    }
    double *omega2 = work, *c = omega2 + r, *p = c + r;
    FEM_TRY(dense_symmetric_eigen(r, V, omega2));
    dense_gemv_t_set(r, r, 1, V, q, c);
    dense_gemv_t_set(r, r, 1, V, pull, p);
    for (int i = 0; i < r; i++) {
        double z = h * h * fmax(omega2[i], 0) / 4, share = 1 - 1 / (1 + z * z * z * z); // steep, but without a corner
        c[i] = share > 0 ? share * (p[i] / omega2[i] - c[i]) : 0;
    }
    dense_gemv_add(r, r, 1, V, c, q);
done:
    fem_free(V), fem_free(work);
    return status;
}

static double whole_energy(const solver_reduced *solver) {
    solver_energies energies;
    solver_reduced_energies(solver, &energies);
    return energies.kinetic + energies.strain;
}

static fem_status check_bases(const solver_reduced *solver, const modes_basis *from, const modes_basis *to,
                              const fem_sparse *M, const cubature_forces *forces) {
    if (from->r != solver->r || forces->r != to->r)
        return fem_fail(FEM_BAD_INPUT, "solver: from %d to %d modes, but the body has %d and the new forces %d",
                        from->r, to->r, solver->r, forces->r);
    if (from->n != to->n || 3 * M->n != from->n)
        return fem_fail(FEM_BAD_INPUT, "solver: bases with %d and %d rows and a mass matrix of %d", from->n, to->n,
                        3 * M->n);
    return FEM_OK;
}

fem_status solver_reduced_rebase(solver_reduced **solver, const modes_basis *from, const modes_basis *to,
                                 const fem_sparse *M, const cubature_forces *forces, const double *springs,
                                 const double *pull, solver_rebase_report *report) {
    fem_status                status = FEM_OK;
    solver_reduced           *old = *solver, *made = NULL;
    const solver_coordinates *s = &old->state;
    solver_rebase_report      r = {0};
    double                   *MU = NULL, *T = NULL, *q = NULL;
    FEM_TRY(check_bases(old, from, to, M, forces));
    MU = fem_alloc((size_t)from->n * (size_t)from->r, sizeof *MU);
    T = fem_alloc((size_t)to->r * (size_t)from->r, sizeof *T), q = fem_alloc(3 * (size_t)to->r, sizeof *q);
    if (!MU || !T || !q) {
        status = fem_fail(FEM_NO_MEMORY, "solver: %d and %d modes", from->r, to->r);
        goto done;
    }
    double *dq = q + to->r, *work = dq + to->r;
    fem_sparse_multiply(M, from->r, from->U, MU);
    dense_gemm(true, false, to->r, from->r, from->n, 1, to->U, MU, 0, T);
    carry(from->r, to->r, T, s->q, q, &r.lost_place);
    carry(from->r, to->r, T, s->dq, dq, &r.lost_velocity);
    FEM_TRY(solver_reduced_create(&made, forces, NULL, &old->options));
    FEM_TRY(solver_reduced_set_state(made, s->time, q, dq));
    r.energy_before = whole_energy(old), r.energy_after = whole_energy(made);
    if (pull) { // for small strains: where they are not, the way may lead uphill
        solver_copy(to->r, q, work);
        FEM_TRY(settle(made, pull, work));
        FEM_TRY(solver_reduced_set_state(made, s->time, work, dq));
        double settled = whole_energy(made);
        if (settled <= r.energy_after)
            r.energy_after = settled, solver_copy(to->r, work, q);
        else
            FEM_TRY(solver_reduced_set_state(made, s->time, q, dq));
    }
    if (springs) {
        dense_gemv_set(to->r, to->r, 1, springs, q, work);
        r.springs = dense_dot(to->r, q, work) / 2;
    }
    r.unexplained = r.energy_after - r.springs - r.energy_before;
    if (!isfinite(r.energy_after)) {
        status = fem_fail(FEM_UNSTABLE, "solver: the energy in the new basis is not finite");
        goto done;
    }
    solver_reduced_destroy(old);
    *solver = made;
    made = NULL;
    if (report) *report = r;
done:
    solver_reduced_destroy(made);
    fem_free(MU), fem_free(T), fem_free(q);
    return status;
}
