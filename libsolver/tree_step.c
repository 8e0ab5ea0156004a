// Time steps of the tree.
//
// Implicit midpoint (theta = 1/2), linearised about the best guess of the middle, twice by default:
//     q_start = q + theta h dq,  dq_start = dq;  first guess q_m = q + theta h (dq_m of the step before), dq_m = dq,
//     w_m = w pass: f_q = load - f(q_m) - K (q_start - q_m) - D dq,  H = Mqq + theta h D + theta^2 h^2 K  ->  ddq, a,
//     al q_m = q_start + theta^2 h^2 ddq,  dq_m = dq + theta h ddq,  w_m = w + theta h al,  Q_m = Q exp([theta h w_m])
//     at last q += h dq_m,  dq += h ddq,  Q = Q exp([h w_m]),  w += h al,  p += h (v + theta h a),  v += h a
// K has the weight theta^2 h^2 because q_m - q_start = theta^2 h^2 ddq. It is second order, keeps the energy of
// undamped trees, and bears stiff modes that are excited. One pass is second order too when dq_m and w_m are
// extrapolated with the accelerations of the step before. Theta above 1/2 damps.
// The guess q_m = q_start would be as good for slow modes, but the speed of a stiff mode that turns by several radians
// in a step says nothing about where it goes: the cubic forces there are enormous, two passes end anywhere, and a plant
// in gusts with steps of 1/30 s blew up. dq_m = dq - (1 - theta) h ddq is what the mode really moved by.
//
// Newmark (P1), with two passes: q_start = q + h dq + h^2 (1/2 - beta) ddq, dq_start = dq + h (1 - gamma) ddq,
// H = Mqq + gamma h D + beta h^2 K, first guess q + h dq + h^2/2 ddq, all at the end of the step.
#include "libsolver/tree_internal.h"

#include <string.h>

// Q exp([t])
static void turned(const double Q[9], const double t[3], double out[9]) {
    double angle2 = vec3_dot(t, t), angle = sqrt(angle2), s, c, X[9] = {0, -t[2], t[1], t[2], 0, -t[0], -t[1], t[0], 0};
    if (angle < 1e-4)
        s = 1 - angle2 / 6, c = 0.5 - angle2 / 24;
    else
        s = sin(angle) / angle, c = (1 - cos(angle)) / angle2;
    double XX[9], E[9];
    mat3_mul(XX, X, X);
    for (int i = 0; i < 9; i++) E[i] = (i % 4 == 0) + s * X[i] + c * XX[i];
    mat3_mul(out, Q, E);
}

// How positions and velocities of a pass follow from its accelerations: q_trial = q_start + position ddq, ...
typedef struct step_weights {
    double position, velocity;         // of the accelerations of the pass
    double at;                         // part of the step at which the pass is evaluated
    double old_position, old_velocity; // of the accelerations of the step before (Newmark)
} step_weights;

static step_weights weights_of(const solver_tree_options *o) {
    double h = o->time_step;
    if (o->integrator == SOLVER_TREE_NEWMARK)
        return (step_weights){.position = o->newmark_beta * h * h,
                              .velocity = o->newmark_gamma * h,
                              .at = 1,
                              .old_position = (0.5 - o->newmark_beta) * h * h,
                              .old_velocity = (1 - o->newmark_gamma) * h};
    return (step_weights){.position = o->theta * o->theta * h * h, .velocity = o->theta * h, .at = o->theta};
}

// ---- roots ------------------------------------------------------------------------------------------------------

// Where a free root is when the pass is evaluated, for accelerations a, al: the same rules as for q and dq.
static void free_root_trial(tree_root *root, const step_weights *w, double h, const double a[3], const double al[3],
                            double position, double velocity) {
    const solver_frame_motion *s = &root->state;
    for (int i = 0; i < 3; i++) {
        root->trial.p[i] = s->p[i] + w->at * h * s->v[i] + w->old_position * s->a[i] + position * a[i];
        root->trial.v[i] = s->v[i] + w->old_velocity * s->a[i] + velocity * a[i];
        root->trial.w[i] = s->w[i] + w->old_velocity * s->al[i] + velocity * al[i];
        root->turn[i] = w->at * h * s->w[i] + w->old_position * s->al[i] + position * al[i];
    }
    turned(s->Q, root->turn, root->trial.Q);
}

// old: weights of the accelerations of the step before in the first guess
static void start_root(tree_root *root, const solver_tree *tree, const step_weights *w, const tree_weights *old,
                       double time) {
    double h = tree->options.time_step;
    if (root->kind == SOLVER_ROOT_DRIVEN) {
        if (root->drive) root->drive(root->context, time, &root->trial);
    } else if (root->kind == SOLVER_ROOT_FIXED) {
        root->trial = root->state;
        for (int i = 0; i < 3; i++) root->trial.a[i] = root->trial.al[i] = 0;
    } else {
        free_root_trial(root, w, h, root->state.a, root->state.al, old->position, old->velocity);
    }
}

static void finish_root(tree_root *root, const solver_tree *tree, const step_weights *w, double end) {
    double               h = tree->options.time_step;
    solver_frame_motion *s = &root->state, next = *s;
    const double        *a = root->trial.a, *al = root->trial.al;
    if (root->kind == SOLVER_ROOT_FIXED) return;
    if (root->kind == SOLVER_ROOT_DRIVEN) {
        if (root->drive) root->drive(root->context, end, s);
        return;
    }
    double turn[3];
    bool   newmark = tree->options.integrator == SOLVER_TREE_NEWMARK;
    for (int i = 0; i < 3; i++) {
        if (newmark) {
            next.p[i] = root->trial.p[i];
            next.v[i] = root->trial.v[i];
            next.w[i] = root->trial.w[i];
            turn[i] = root->turn[i];
        } else {
            next.p[i] = s->p[i] + h * (s->v[i] + w->velocity * a[i]);
            next.v[i] = s->v[i] + h * a[i];
            next.w[i] = s->w[i] + h * al[i];
            turn[i] = h * root->trial.w[i];
        }
        next.a[i] = a[i], next.al[i] = al[i];
    }
    turned(s->Q, turn, next.Q);
    // rounding would make Q drift from a rotation over millions of steps
    domain_polar polar;
    domain_polar_decompose(&polar, next.Q, next.Q);
    for (int i = 0; i < 9; i++) next.Q[i] = polar.R[i];
    *s = next;
}

// ---- the step ---------------------------------------------------------------------------------------------------

// Clock of the report's parts.
static void lap(double *start, double *sum) {
    double now = fem_seconds();
    *sum += now - *start;
    *start = now;
}

// Accelerations at the trial point, into ddq_trial and the roots' trial.a, trial.al.
static fem_status pass(solver_tree *tree, tree_evaluation *at, const tree_weights *old) {
    fem_status          status = FEM_OK;
    solver_tree_report *report = &tree->report;
    double              clock = fem_seconds();
    bool                poses = tree_needs_poses(tree);
    tree->poses_known = false;
    at->apart = tree_tips_apart(tree);
    tree_relative_frames(tree, at);
    tree_velocities(tree, poses, at->apart);
    lap(&clock, &report->seconds_frames);
    if (at->apart) tree_tips(tree, at, poses);
    clock = fem_seconds();
    tree_gather_loads(tree, at);
    if (at->q_to) tree_gather_carried(tree);
    if (at->resists) tree_gather_contact(tree);
    lap(&clock, &report->seconds_rest);
    tree_forces(tree, at);
    lap(&clock, &report->seconds_forces);
    FEM_TRY(tree_up(tree, at));
    lap(&clock, &report->seconds_up);
    FEM_TRY(tree_down(tree, at->time, tree->ddq_trial));
    if (tree->spring_count > 0) tree_carried_down_all(tree, 0, tree->ddq_trial); // springs want G acc alone
    if (tree->spring_count > 0) tree_add_springs(tree, at, old, tree->ddq_trial);
    lap(&clock, &report->seconds_down);
done:
    return status;
}

fem_status tree_accelerations(solver_tree *tree) {
    tree_evaluation at = {.q = tree->q, .dq = tree->dq, .q_start = tree->q, .dq_start = tree->dq, .time = tree->time};
    tree_weights    none = {0};
    for (int k = 0; k < tree->root_count; k++) tree->roots[k].trial = tree->roots[k].state;
    fem_status status = pass(tree, &at, &none);
    if (status != FEM_OK) return status;
    for (int i = 0; i < tree->dofs; i++) tree->ddq[i] = tree->ddq_trial[i];
    for (int k = 0; k < tree->root_count; k++) {
        tree_root *root = &tree->roots[k];
        for (int i = 0; i < 3; i++) root->state.a[i] = root->trial.a[i], root->state.al[i] = root->trial.al[i];
    }
    tree->accelerations_known = true;
    return FEM_OK;
}

// The first guess; gives the weights with which the accelerations of the step before are in it.
static tree_weights start_trial(solver_tree *tree, const step_weights *w) {
    double       h = tree->options.time_step, ahead = w->at * h;
    tree_weights old = {0};
    bool         at_state = false;                         // the first step knows no accelerations
    if (tree->options.integrator == SOLVER_TREE_NEWMARK) { // as if they went on
        old = (tree_weights){w->position, w->velocity};
    } else if (tree->accelerations_known) {
        old.position = -ahead * (1 - w->at) * tree->last_step;
        if (tree->options.passes == 1) old.velocity = w->velocity;
    } else {
        at_state = tree->options.passes > 1 && tree->spring_count == 0;
    }
    for (int i = 0; i < tree->dofs; i++) {
        tree->q_start[i] = tree->q[i] + ahead * tree->dq[i] + w->old_position * tree->ddq[i];
        tree->dq_start[i] = tree->dq[i] + w->old_velocity * tree->ddq[i];
        tree->q_trial[i] = at_state ? tree->q[i] : tree->q_start[i] + old.position * tree->ddq[i];
        tree->dq_trial[i] = tree->dq_start[i] + old.velocity * tree->ddq[i];
    }
    for (int k = 0; k < tree->root_count; k++) start_root(&tree->roots[k], tree, w, &old, tree->time + ahead);
    return old;
}

static void update_trial(solver_tree *tree, const step_weights *w) {
    for (int i = 0; i < tree->dofs; i++) {
        tree->q_trial[i] = tree->q_start[i] + w->position * tree->ddq_trial[i];
        tree->dq_trial[i] = tree->dq_start[i] + w->velocity * tree->ddq_trial[i];
    }
    for (int k = 0; k < tree->root_count; k++) {
        tree_root *root = &tree->roots[k];
        if (root->kind == SOLVER_ROOT_FREE)
            free_root_trial(root, w, tree->options.time_step, root->trial.a, root->trial.al, w->position, w->velocity);
    }
}

// Where the trial point says that the step ends, for the midpoint rule.
static void set_end(solver_tree *tree) {
    double h = tree->options.time_step;
    for (int i = 0; i < tree->dofs; i++) {
        tree->dq_end[i] = tree->dq[i] + h * tree->ddq_trial[i];
        tree->q_end[i] = tree->q[i] + h * tree->dq_trial[i];
    }
    for (int k = 0; k < tree->root_count; k++) {
        tree_root *root = &tree->roots[k];
        double     turn[3];
        root->end = root->state;
        if (root->kind == SOLVER_ROOT_DRIVEN && root->drive) root->drive(root->context, tree->time + h, &root->end);
        if (root->kind != SOLVER_ROOT_FREE) continue;
        for (int i = 0; i < 3; i++) {
            root->end.v[i] += h * root->trial.a[i], root->end.w[i] += h * root->trial.al[i];
            turn[i] = h * root->trial.w[i];
        }
        turned(root->state.Q, turn, root->end.Q);
    }
}

// A domain flew apart when its root mean square displacement is a thousand times its size, both by mass. The one that
// flew farthest is named.
static fem_status check_trial(const solver_tree *tree, double time) {
    double farthest = 0;
    int    lost = 0;
    for (int i = 0; i < tree->count; i++) {
        const tree_domain    *domain = &tree->domains[i];
        const solver_inertia *inertia = tree->classes[domain->class_index].inertia;
        const double         *q = tree->q_trial + domain->offset, *ddq = tree->ddq_trial + domain->offset;
        double                size2 = inertia->Z0[0] + inertia->Z0[4] + inertia->Z0[8], moved2 = 0;
        for (int l = 0; l < domain->r; l++) {
            moved2 += inertia->Mqq[l * (domain->r + 1)] * q[l] * q[l];
            if (!isfinite(q[l]) || !isfinite(ddq[l]))
                return tree_fail(tree, FEM_UNSTABLE, i, time,
                                 "its motion is no longer finite; a smaller step or more damping would do");
        }
        if (moved2 > farthest * size2) farthest = moved2 / size2, lost = i;
    }
    if (farthest > 1e6)
        return tree_fail(tree, FEM_UNSTABLE, lost, time,
                         "it is displaced by a thousand times its size; a smaller step or more damping would do");
    for (int k = 0; k < tree->root_count; k++) {
        const tree_root *root = &tree->roots[k];
        for (int i = 0; i < 3; i++)
            if (!isfinite(root->trial.p[i]) || !isfinite(root->trial.w[i]) || !isfinite(root->trial.a[i]))
                return tree_fail(tree, FEM_UNSTABLE, root->domain, time, "the motion of the root is no longer finite");
    }
    return FEM_OK;
}

static void count_flags(solver_tree *tree) {
    tree->report.reflected = tree->report.near_singular = 0;
    for (int k = 0; k < tree->block_count; k++)
        for (int lane = 0; lane < tree->blocks[k].count; lane++) {
            tree->report.reflected += (tree->blocks[k].flags[lane] & DOMAIN_REFLECTED) != 0;
            tree->report.near_singular += (tree->blocks[k].flags[lane] & DOMAIN_NEAR_SINGULAR) != 0;
        }
}

// Passes at the trial point until it has settled; the state stays as it is.
static fem_status try_step(solver_tree *tree, const step_weights *w, bool *settled) {
    fem_status                 status = FEM_OK;
    const solver_tree_options *o = &tree->options;
    bool                       newmark = o->integrator == SOLVER_TREE_NEWMARK, more = !newmark && o->passes > 1;
    double                     h = o->time_step;
    tree_evaluation            at = {.q = tree->q_trial,
                                     .dq = tree->dq_trial,
                                     .q_start = tree->q_start,
                                     .dq_start = tree->dq_start,
                                     .c_damping = w->velocity,
                                     .c_stiffness = w->position,
                                     .time = tree->time + w->at * h,
                                     .resists = true,
                                     .q_from = tree->q,
                                     .spread = newmark ? 0 : 0.5 / sqrt(3) / o->theta};
    bool                       contact = tree->touching;
    if (contact) tree_contact_start(tree);
    tree_weights old = start_trial(tree, w);
    tree->balance = tree->always_balanced && more;
    for (int k = 0; k < tree->block_count; k++) tree->blocks[k].mean = false, tree->blocks[k].calm = 0;
    for (int k = 0; k < tree->root_count; k++) tree->roots[k].unresolved = tree->balance;
    tree->change = 0;
    for (int k = 0; k < o->passes || (more && !*settled && k < o->passes_most); k++) {
        tree_choose_means(tree, &at);
        if (tree->balance && tree->carried > 0 && k > 0) { // the first pass says where the step goes
            if (!at.q_to) tree_carried_start(tree);
            set_end(tree);
            tree_carried_end(tree);
            at.q_to = tree->q_end;
        }
        FEM_TRY(pass(tree, &at, &old));
        memcpy(tree->q_pass, tree->q_trial, (size_t)tree->dofs * sizeof *tree->q_pass);
        memcpy(tree->dq_pass, tree->dq_trial, (size_t)tree->dofs * sizeof *tree->dq_pass);
        for (int n = 0; n < tree->root_count; n++)
            memcpy(tree->roots[n].Q_pass, tree->roots[n].trial.Q, sizeof tree->roots[n].Q_pass);
        update_trial(tree, w);
        old = (tree_weights){w->position, w->velocity};
        bool pushing = !contact || tree_contact_settle(tree);
        if (more) *settled = tree_settled(tree) && pushing && k + 1 >= o->passes;
        tree->report.extra_passes += k >= o->passes;
    }
    if (!more) *settled = true;
    FEM_TRY(check_trial(tree, tree->time + h));
done:
    return status;
}

// The state becomes what the trial point says of the end of the step.
static void take_step(solver_tree *tree, const step_weights *w, double end) {
    bool   newmark = tree->options.integrator == SOLVER_TREE_NEWMARK;
    double h = tree->options.time_step;
    for (int i = 0; i < tree->dofs; i++) {
        tree->q[i] = newmark ? tree->q_trial[i] : tree->q[i] + h * tree->dq_trial[i];
        tree->dq[i] = newmark ? tree->dq_trial[i] : tree->dq[i] + h * tree->ddq_trial[i];
        tree->ddq[i] = tree->ddq_trial[i];
    }
    for (int k = 0; k < tree->root_count; k++) finish_root(&tree->roots[k], tree, w, end);
    for (int i = 0; tree->balance && i < tree->dofs; i++) // what is carried is known better at the end
        tree->q[i] = tree->q_end[i], tree->dq[i] += tree->kick[i];
    for (int k = 0; tree->balance && k < tree->root_count; k++)
        for (int i = 0; i < 3; i++)
            tree->roots[k].state.v[i] += tree->roots[k].kick[i],
                tree->roots[k].state.w[i] += tree->roots[k].kick[3 + i];
    tree->time = end, tree->last_step = h;
    tree->accelerations_known = true;
}

// Springs have changed what they know of the pass before.
static void forget_trial(solver_tree *tree) {
    for (int k = 0; k < tree->spring_count; k++) {
        tree_spring *spring = &tree->springs[k];
        for (int i = 0; i < 3; i++) spring->force[i] = spring->start[i], spring->acceleration[i] = spring->start[3 + i];
    }
}
static void remember_start(solver_tree *tree) {
    for (int k = 0; k < tree->spring_count; k++) {
        tree_spring *spring = &tree->springs[k];
        for (int i = 0; i < 3; i++) spring->start[i] = spring->force[i], spring->start[3 + i] = spring->acceleration[i];
    }
}

fem_status solver_tree_step(solver_tree *tree) {
    fem_status status = FEM_OK;
    bool       newmark = tree->options.integrator == SOLVER_TREE_NEWMARK;
    double     h = tree->options.time_step, begun = tree->time;
    int        most = newmark || tree->options.passes == 1 ? 0 : tree->options.halvings, depth = 0;
    long       parts = 1L << most, part = 0; // the step in its smallest parts, and how many of them are done
    double     clock = fem_seconds();
    if (newmark && !tree->accelerations_known) FEM_TRY(tree_accelerations(tree));
    tree_keep(tree);
    lap(&clock, &tree->report.seconds_rest);
    while (part < parts) {
        bool settled = false;
        long length = parts >> depth;
        tree->options.time_step = h * (double)length / (double)parts;
        step_weights w = weights_of(&tree->options);
        remember_start(tree);
        status = try_step(tree, &w, &settled);
        if ((status == FEM_UNSTABLE || (status == FEM_OK && !settled)) && depth < most) {
            forget_trial(tree);
            tree->report.halved++;
            depth++;
            continue;
        }
        if (status != FEM_OK) goto done;
        clock = fem_seconds();
        tree->report.unsettled += !settled;
        part += length;
        if (tree->balance) {
            set_end(tree);
            tree_balance(tree);
        }
        take_step(tree, &w, begun + h * (double)part / (double)parts);
        while (depth > 0 && part % (parts >> (depth - 1)) == 0) depth--; // a longer one may do again
        lap(&clock, &tree->report.seconds_rest);
    }
    tree->report.steps++;
    count_flags(tree);
done:
    tree->options.time_step = h;
    if (status != FEM_OK) tree_bring_back(tree);
    tree->poses_known = false;
    if (tree->carried > 0) tree_update_motion(tree); // q holds what is carried
    return status;
}
