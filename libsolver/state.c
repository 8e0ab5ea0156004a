// The complete states of the solvers as numbers, for checkpoints. Each state is listed once, in its `transfer`;
// counting it, saving it and restoring it all go by that list. Numbers that are refused leave the solver as it was.
#include "libsolver/reduced_internal.h"
#include "libsolver/tree_internal.h"

// Counts numbers; besides copies them out of the solver (to) or into it (from).
typedef struct transfer {
    size_t        count;
    double       *to;
    const double *from;
} transfer;

static void pass(transfer *t, size_t n, double *mine) {
    for (size_t i = 0; t->to && i < n; i++) t->to[t->count + i] = mine[i];
    for (size_t i = 0; t->from && i < n; i++) mine[i] = t->from[t->count + i];
    t->count += n;
}

static void pass_flag(transfer *t, bool *mine) {
    double value = *mine;
    pass(t, 1, &value);
    if (t->from) *mine = value != 0;
}

static fem_status refuse(const char *why) { return fem_fail(FEM_BAD_INPUT, "solver: the state to restore %s", why); }

// Finite, and flags (which come first) are flags.
static fem_status check_numbers(size_t count, const double *numbers, int flags) {
    for (size_t i = 0; i < count; i++)
        if (!isfinite(numbers[i])) return refuse("is not finite");
    for (int i = 0; i < flags; i++)
        if (numbers[i] != 0 && numbers[i] != 1) return refuse("is none of this solver");
    return FEM_OK;
}

// ---- full space --------------------------------------------------------------------------------------------------

static void transfer_full(solver_full *solver, transfer *t) {
    size_t n = (size_t)solver->n;
    pass_flag(t, &solver->acceleration_known);
    pass(t, 1, &solver->state.time);
    pass(t, n, solver->state.u);
    pass(t, n, solver->state.v);
    pass(t, n, solver->state.a);
}

size_t solver_full_state_size(const solver_full *solver) {
    transfer t = {0};
    transfer_full((solver_full *)solver, &t); // only counts
    return t.count;
}

void solver_full_save_state(const solver_full *solver, double *numbers) {
    transfer_full((solver_full *)solver, &(transfer){.to = numbers}); // only reads
}

fem_status solver_full_restore_state(solver_full *solver, const double *numbers) {
    fem_status status = check_numbers(solver_full_state_size(solver), numbers, 1);
    if (status != FEM_OK) return status;
    transfer_full(solver, &(transfer){.from = numbers});
    solver_copy(solver->n, solver->state.u, solver->prescribed);
    return FEM_OK;
}

// ---- held bodies -------------------------------------------------------------------------------------------------

static void transfer_reduced(solver_reduced *solver, transfer *t) {
    size_t r = (size_t)solver->r;
    pass_flag(t, &solver->acceleration_known);
    pass_flag(t, &solver->budget_known);
    pass(t, 1, &solver->budget);
    pass(t, 1, &solver->state.time);
    pass(t, r, solver->state.q);
    pass(t, r, solver->state.dq);
    pass(t, r, solver->state.ddq);
}

size_t solver_reduced_state_size(const solver_reduced *solver) {
    transfer t = {0};
    transfer_reduced((solver_reduced *)solver, &t);
    return t.count;
}

void solver_reduced_save_state(const solver_reduced *solver, double *numbers) {
    transfer_reduced((solver_reduced *)solver, &(transfer){.to = numbers});
}

fem_status solver_reduced_restore_state(solver_reduced *solver, const double *numbers) {
    fem_status status = check_numbers(solver_reduced_state_size(solver), numbers, 2);
    if (status == FEM_OK) transfer_reduced(solver, &(transfer){.from = numbers});
    return status;
}

// ---- free bodies -------------------------------------------------------------------------------------------------

enum { FREE_FLAGS = 2 }; // Q comes behind them

static void transfer_free(solver_free *solver, transfer *t) {
    solver_motion *s = &solver->state;
    size_t         r = (size_t)solver->r;
    pass_flag(t, &solver->acceleration_known);
    pass_flag(t, &solver->budget_known);
    pass(t, 9, s->Q);
    pass(t, 1, &solver->budget);
    pass(t, 1, &s->time);
    pass(t, 3, s->p);
    pass(t, 3, s->v);
    pass(t, 3, s->w);
    pass(t, 3, s->a);
    pass(t, 3, s->al);
    pass(t, 6, solver->wrench);
    pass(t, r, s->q);
    pass(t, r, s->dq);
    pass(t, r, s->ddq);
}

size_t solver_free_state_size(const solver_free *solver) {
    transfer t = {0};
    transfer_free((solver_free *)solver, &t);
    return t.count;
}

void solver_free_save_state(const solver_free *solver, double *numbers) {
    transfer_free((solver_free *)solver, &(transfer){.to = numbers});
}

fem_status solver_free_restore_state(solver_free *solver, const double *numbers) {
    fem_status status = check_numbers(solver_free_state_size(solver), numbers, FREE_FLAGS);
    if (status != FEM_OK) return status;
    if (!solver_is_rotation(numbers + FREE_FLAGS)) return refuse("has an orientation that is not a rotation");
    transfer_free(solver, &(transfer){.from = numbers});
    return FEM_OK;
}

// ---- trees -------------------------------------------------------------------------------------------------------

enum { TREE_FLAGS = 2, TREE_ROOT = 24 }; // roots come behind the flags, Q first

static void pass_lanes(transfer *t, int n, double (*lanes)[LANES], int lane) {
    for (int i = 0; i < n; i++) pass(t, 1, &lanes[i][lane]);
}

static void transfer_root(solver_frame_motion *s, transfer *t) {
    pass(t, 9, s->Q);
    pass(t, 3, s->p);
    pass(t, 3, s->v);
    pass(t, 3, s->w);
    pass(t, 3, s->a);
    pass(t, 3, s->al);
}

// `fit` is where the polar decomposition of the next pass starts from; the frames beside it are those of the present
// state, if they are known, and would come out a last bit different if they were made again.
static void transfer_tree(solver_tree *tree, transfer *t) {
    size_t n = (size_t)tree->dofs;
    pass_flag(t, &tree->accelerations_known);
    pass_flag(t, &tree->poses_known);
    for (int k = 0; k < tree->root_count; k++) transfer_root(&tree->roots[k].state, t);
    pass(t, 1, &tree->time);
    pass(t, 1, &tree->last_step);
    pass(t, n, tree->q);
    pass(t, n, tree->dq);
    pass(t, n, tree->ddq);
    for (int k = 0; k < tree->spring_count; k++) {
        pass(t, 3, tree->springs[k].force);
        pass(t, 3, tree->springs[k].acceleration);
    }
    if (tree->compliance.L) { // kept from step to step
        size_t size = 9 * (size_t)tree->spring_count * (size_t)tree->spring_count;
        double excess = tree->compliance.excess, known = tree->compliance.known;
        pass(t, 1, &known);
        pass(t, 1, &excess);
        if (t->from) tree->compliance.known = known != 0, tree->compliance.excess = (int)excess;
        pass(t, 1, &tree->compliance.c_stiffness);
        pass(t, 1, &tree->compliance.c_damping);
        pass(t, size, tree->compliance.L);
    }
    for (int k = 0; k < tree->block_count; k++)
        for (int lane = 0; lane < tree->blocks[k].count; lane++) {
            tree_lanes *lanes = tree->blocks[k].lanes;
            pass_lanes(t, 9, lanes->fit, lane);
            pass_lanes(t, 9, lanes->F, lane);
            pass_lanes(t, 3, lanes->p, lane);
            pass_lanes(t, 9, lanes->Q, lane);
            pass_lanes(t, 3, lanes->V, lane);
            pass_lanes(t, 3, lanes->w, lane);
        }
}

size_t solver_tree_state_size(const solver_tree *tree) {
    transfer t = {0};
    transfer_tree((solver_tree *)tree, &t);
    return t.count;
}

void solver_tree_save_state(const solver_tree *tree, double *numbers) {
    transfer_tree((solver_tree *)tree, &(transfer){.to = numbers});
}

fem_status solver_tree_restore_state(solver_tree *tree, const double *numbers) {
    fem_status status = check_numbers(solver_tree_state_size(tree), numbers, TREE_FLAGS);
    if (status != FEM_OK) return status;
    for (int k = 0; k < tree->root_count; k++)
        if (!solver_is_rotation(numbers + TREE_FLAGS + (size_t)k * TREE_ROOT))
            return refuse("has an orientation that is not a rotation");
    transfer_tree(tree, &(transfer){.from = numbers});
    return FEM_OK;
}

// ---- from tree to tree ---------------------------------------------------------------------------------------------

static void take_domain(solver_tree *tree, const solver_tree *from, int instance) {
    tree_domain       *d = &tree->domains[tree->sorted[instance]];
    const tree_domain *o = &from->domains[from->sorted[instance]];
    tree_lanes        *lanes = tree->blocks[d->block].lanes, *old = from->blocks[o->block].lanes;
    double            *to[3] = {tree->q, tree->dq, tree->ddq}, *of[3] = {from->q, from->dq, from->ddq};
    for (int k = 0; k < 3; k++)
        for (size_t l = 0; l < (size_t)d->r; l++) to[k][d->offset + l] = d->r == o->r ? of[k][o->offset + l] : 0;
    d->stiffness = o->stiffness;
    d->damping_mass = lanes->damping_mass[d->lane] = o->damping_mass;
    d->damping_stiffness = lanes->damping_stiffness[d->lane] = o->damping_stiffness;
    for (int i = 0; i < 9; i++) {
        lanes->fit[i][d->lane] = old->fit[i][o->lane], lanes->F[i][d->lane] = old->F[i][o->lane];
        lanes->Q[i][d->lane] = old->Q[i][o->lane];
    }
    for (int i = 0; i < 3; i++) {
        lanes->p[i][d->lane] = old->p[i][o->lane], lanes->V[i][d->lane] = old->V[i][o->lane];
        lanes->w[i][d->lane] = old->w[i][o->lane];
    }
    if (d->root >= 0) tree->roots[d->root].state = from->roots[o->root].state;
}

fem_status solver_tree_take_state(solver_tree *tree, const solver_tree *from) {
    bool same = tree->count == from->count && tree->spring_count == 0 && from->spring_count == 0;
    for (int i = 0; same && i < tree->count; i++)
        same = tree->instances[i].parent == from->instances[i].parent &&
               tree->instances[i].root == from->instances[i].root &&
               tree->instances[i].scale == from->instances[i].scale;
    if (!same) return fem_fail(FEM_BAD_INPUT, "the state of a tree of other instances, or of one with springs");
    for (int i = 0; i < tree->count; i++) take_domain(tree, from, i);
    tree->time = from->time, tree->last_step = from->last_step;
    tree->accelerations_known = from->accelerations_known, tree->poses_known = from->poses_known;
    return FEM_OK;
}

fem_status solver_tree_replace_state(solver_tree *tree, int instance, const double *q, const double *dq) {
    bool       accelerations = tree->accelerations_known, poses = tree->poses_known;
    fem_status status = solver_tree_set_state(tree, instance, q, dq);
    if (status != FEM_OK) return status;
    const tree_domain *d = &tree->domains[tree->sorted[instance]];
    for (size_t l = 0; l < (size_t)d->r; l++) tree->ddq[d->offset + l] = 0;
    tree->accelerations_known = accelerations;
    tree->poses_known = poses && d->child_count == 0; // frames of children follow it
    return FEM_OK;
}
