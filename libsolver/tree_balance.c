// Steps that keep the energy where speeds change a lot within them.
//
// Inertia depends on the coordinates: T = v.M(q) v/2, v being dq and the velocities of free roots. The midpoint rule
//     M(q_m) dv + h (dM/dt v_m - dT/dq(q_m, v_m)) = h f,   v_m = (v_0 + v_1)/2,   dv = v_1 - v_0
// does not change T by the work of f. The difference is
//     v_m.((M_1 + M_0)/2 - M_m) dv + dv.(M_1 - M_0) dv/8 + ...,
// nothing to speak of for slow motion. But of a mode that turns by a radian in a step, or by many, dv is as large as v:
// its energy grows and falls with M although nothing pays for it, and where no damping takes it away it grows without
// bound. What does balance is the change of the momenta p = M v, with the discrete gradient of v_0.M(q) v_1/2:
//     p_1 - p_0 = h (dT/dq(q_m, v_m) - dT/dq(q_m, dv/2) + f):
// times v_m it is T_1 - T_0 = h v_m.f, exactly but for third derivatives of M. It is of second order like the rule
// itself, and keeps the momentum of a free tree exactly. Forces balance by their mean over the way (tree_settle.c);
// where carried shapes w(q) of interfaces are strained these are applied with the mean of dw/dq over the way, by
// Simpson's rule, which is w_1 - w_0 times the force to fifth order.
//
// A pass is left as it is, but for loads: those that its own inertia takes at the accelerations of the pass before,
// less what the equation above asks for. When passes have settled it holds. All is O(domains): a way down for the
// velocities V = (v; w) of all frames that u makes,
//     V_k = R^T (v + w x x + s a u;  w + W u),
// and a way up with the momenta (f; t) = dT/dV_k of all that hangs on a frame, in the axes of its parent, and those of
// what it carries, pi = dT/d(dw), dw = P u:
//     p_l += s a_l.f + W_l.t + pi.P_l,
//     dT/dq_l += s a_l.(f x w) - W_l.((R v_k) x f + w x t) + t.(change of W_l along u) + pi.(change of P_l along u).
// The change of W_l along u stands there because d(W u)/dq_l is that + W_l x W u.
#include "libsolver/tree_internal.h"

#include <string.h>

static const domain_interface *interface_of(const solver_tree *tree, const tree_domain *domain) {
    return &tree->classes[tree->domains[domain->parent].class_index].interfaces[domain->interface];
}

// One domain of a level after the other, or several at a time.
typedef struct level_task {
    solver_tree *tree;
    int          first;
    void (*each)(solver_tree *tree, const tree_domain *domain, const void *context, tree_work *work);
    const void *context;
} level_task;

static void run_segment(void *context, int index, int worker) {
    level_task         *task = context;
    const tree_segment *segment = &task->tree->segments[task->first + index];
    const tree_domain  *domain = &task->tree->domains[task->tree->blocks[segment->block].first + segment->first];
    for (int k = 0; k < segment->count; k++)
        task->each(task->tree, &domain[k], task->context, &task->tree->work[worker]);
}

static void run_levels(level_task task, int from, int to) {
    for (int level = from; level != to; level += from < to ? 1 : -1) {
        task.first = task.tree->level_segment[level];
        tree_parallel(task.tree, task.tree->level_segment[level + 1] - task.first, run_segment, &task);
    }
}

// R^T (X V + J u) of a child, u of its parent; then R^T c besides, for accelerations.
static void follow_parent(const solver_tree *tree, const tree_domain *domain, const double *u, bool with_c,
                          double out[6]) {
    const tree_domain      *parent = &tree->domains[domain->parent];
    const domain_interface *interface = interface_of(tree, domain);
    tree_lanes             *lanes = tree->blocks[domain->block].lanes;
    size_t                  stride = (size_t)interface->stride;
    double                  V[6], R[9], x[3], t[3];
    lane_get(6, tree->blocks[parent->block].lanes->V6, parent->lane, V);
    lane_get(3, lanes->x, domain->lane, x);
    lane_get(9, lanes->R, domain->lane, R);
    vec3_cross(t, V + 3, x);
    for (size_t i = 0; i < 3; i++) {
        V[i] += t[i] + parent->scale * dense_dot(parent->r, interface->a + stride * i, u + parent->offset);
        V[3 + i] += dense_dot(parent->r, domain->W + stride * i, u + parent->offset);
    }
    for (int i = 0; with_c && i < 6; i++) V[i] += lanes->c[i][domain->lane];
    mat3_mul_t_vec(out, R, V);
    mat3_mul_t_vec(out + 3, R, V + 3);
}

// ---- velocities, momenta and the derivative of the kinetic energy ---------------------------------------------------

// What a sweep is about: velocities tree->u, and V of the roots, at q.
typedef struct sweep {
    const double *q;
    double        gradient; // times dT/dq goes to the loads
    double       *p;        // momenta of the coordinates that are not carried, those of the others 0; or NULL
} sweep;

static void velocity_of(solver_tree *tree, const tree_domain *domain, const void *context, tree_work *work) {
    double V[6];
    (void)context, (void)work;
    follow_parent(tree, domain, tree->u, false, V);
    lane_put(6, tree->blocks[domain->block].lanes->V6, domain->lane, V);
    tree_carried_down(tree, domain, 0, tree->u);
}

// y = 2 skew(A): the vector with [y] = A - A^T
static void twice_skew(double y[3], const double A[9]) { y[0] = A[7] - A[5], y[1] = A[2] - A[6], y[2] = A[3] - A[1]; }

// pi.(change of P_l along u). With B = sum_s pi_s B_s (frame.h), C = B R^T, dC = dB R^T - C [turn] it is
// 2 skew(dC).W_l + 2 skew(C).(change of W_l) + dR:B^l; the first two are left to the caller.
static void add_carried(const domain_interface *interface, const double *pi, const double R[9], const double *q,
                        const double *u, const double turn[3], double by_W[3], double by_change[3], double *gradient) {
    size_t        stride = (size_t)interface->stride, n = (size_t)interface->carried;
    const double *rest = interface->B + 9 * n * stride;
    double        B[9] = {0}, dB[9] = {0}, C[9], dC[9], Cw[9], g[3], dR[9];
    double        X[9] = {0, -turn[2], turn[1], turn[2], 0, -turn[0], -turn[1], turn[0], 0};
    mat3_mul(dR, X, R);
    for (size_t s = 0; s < n; s++)
        for (size_t e = 0; e < 9; e++) {
            const double *row = interface->B + (9 * s + e) * stride;
            B[e] += pi[s] * (rest[9 * s + e] + dense_dot(interface->r, row, q));
            dB[e] += pi[s] * dense_dot(interface->r, row, u);
            dense_axpy(interface->r, pi[s] * dR[e], row, gradient);
        }
    mat3_mul_nt(C, B, R);
    mat3_mul_nt(dC, dB, R);
    mat3_mul(Cw, C, X);
    for (int e = 0; e < 9; e++) dC[e] -= Cw[e];
    twice_skew(g, C);
    vec3_axpy(by_change, 1, g);
    twice_skew(g, dC);
    vec3_axpy(by_W, 1, g);
}

// What hangs on one interface adds to the momenta of the domain.
static void add_momenta(const solver_tree *tree, const tree_domain *domain, const tree_domain *child, const double f[3],
                        const double t[3], double momentum[6], double *modal) {
    const domain_interface *interface = interface_of(tree, child);
    tree_lanes             *lanes = tree->blocks[child->block].lanes;
    size_t                  stride = (size_t)interface->stride;
    double                  x[3], moment[3];
    lane_get(3, lanes->x, child->lane, x);
    vec3_cross(moment, x, f);
    for (size_t i = 0; i < 3; i++) {
        momentum[i] += f[i], momentum[3 + i] += t[i] + moment[i];
        dense_axpy(domain->r, domain->scale * f[i], interface->a + stride * i, modal);
        dense_axpy(domain->r, t[i], child->W + stride * i, modal);
    }
    for (size_t s = 0; s < (size_t)child->carried; s++)
        dense_axpy(domain->r, child->pi[s], child->P + stride * s, modal);
}

// And to the derivative by its coordinates; V is that of the domain.
static void add_gradient(const solver_tree *tree, const tree_domain *domain, const tree_domain *child,
                         const double V[6], const double f[3], const double t[3], const double *q, double *gradient) {
    const domain_interface *interface = interface_of(tree, child);
    tree_lanes             *lanes = tree->blocks[child->block].lanes;
    size_t                  stride = (size_t)interface->stride;
    const double           *u = tree->u + domain->offset;
    double                  R[9], v_k[3], v[3], c[3], turn[3], by_a[3], by_W[3], by_change[3] = {t[0], t[1], t[2]};
    domain_frame            frame;
    lane_get(9, lanes->R, child->lane, R);
    lane_get(3, lanes->V6, child->lane, v_k);
    mat3_mul_vec(v, R, v_k);
    vec3_cross(by_a, f, V + 3);
    vec3_cross(by_W, f, v);
    vec3_cross(c, t, V + 3);
    for (size_t i = 0; i < 3; i++) {
        by_W[i] += c[i];
        turn[i] = dense_dot(domain->r, child->W + stride * i, u);
    }
    if (child->carried > 0) {
        double pi[SOLVER_MOST_CARRIED];
        for (int s = 0; s < child->carried; s++) pi[s] = domain->scale / child->scale * child->pi[s];
        add_carried(interface, pi, R, q, u, turn, by_W, by_change, gradient);
    }
    for (size_t i = 0; i < 3; i++) {
        dense_axpy(domain->r, domain->scale * by_a[i], interface->a + stride * i, gradient);
        dense_axpy(domain->r, by_W[i], child->W + stride * i, gradient);
    }
    lane_get(9, lanes->F, child->lane, frame.F);
    lane_get(9, lanes->fit, child->lane, frame.polar.R);
    lane_get(9, lanes->P, child->lane, frame.polar.P);
    domain_frame_gradient_change(interface, &frame, u, turn, by_change, gradient);
}

static void derivatives_of(solver_tree *tree, const tree_domain *domain, const void *context, tree_work *work) {
    const sweep          *s = context;
    const solver_inertia *inertia = tree->classes[domain->class_index].inertia;
    tree_lanes           *lanes = tree->blocks[domain->block].lanes;
    const double         *q = s->q + domain->offset, *u = tree->u + domain->offset;
    double                V[6], v[3], momentum[6], c = domain->scale, c4 = c * c * c * c, c5 = c4 * c;
    int                   r = domain->r, own = domain->own;
    lane_get(6, lanes->V6, domain->lane, V);
    for (int i = 0; i < 3; i++) v[i] = V[i] / c; // then everything is that of the class times c^4, c^5
    solver_inertia_derivatives(inertia, q, v, V + 3, u, momentum, work->modal, work->gradient, work->inertia);
    for (int i = 0; i < 6; i++) momentum[i] *= i < 3 ? c4 : c5;
    dense_scale(r, c5, work->modal);
    dense_scale(r, c5, work->gradient);
    for (int k = 0; k < domain->child_count; k++) {
        const tree_domain *child = &tree->domains[domain->children[k]];
        tree_lanes        *below = tree->blocks[child->block].lanes;
        double             R[9], own_axes[6], f[3], t[3];
        lane_get(9, below->R, child->lane, R);
        lane_get(6, below->momentum, child->lane, own_axes);
        mat3_mul_vec(f, R, own_axes);
        mat3_mul_vec(t, R, own_axes + 3);
        add_momenta(tree, domain, child, f, t, momentum, work->modal);
        if (s->gradient != 0 && r > 0) add_gradient(tree, domain, child, V, f, t, q, work->gradient);
    }
    lane_put(6, lanes->momentum, domain->lane, momentum);
    for (int k = 0; k < domain->carried; k++) domain->pi[k] = work->modal[own + k];
    for (int l = 0; s->p && l < r; l++) s->p[domain->offset + (size_t)l] = l < own ? work->modal[l] : 0;
    dense_axpy(r, s->gradient, work->gradient, tree->modal + domain->offset);
    if (domain->parent >= 0) return;
    double turn[3]; // v of a root is held in world axes: when the root turns, V changes
    vec3_cross(turn, momentum, V);
    for (int i = 0; i < 3; i++) lanes->wrench[3 + i][domain->lane] += s->gradient * turn[i];
}

// V of the roots, of velocities (v world; w)
static void put_root(solver_tree *tree, const tree_root *root, const double Q[9], const double v[3],
                     const double w[3]) {
    const tree_domain *domain = &tree->domains[root->domain];
    double             V[6] = {0, 0, 0, w[0], w[1], w[2]};
    mat3_mul_t_vec(V, Q, v);
    lane_put(6, tree->blocks[domain->block].lanes->V6, domain->lane, V);
}

void tree_kinetic_sweep(solver_tree *tree, const double *q, double gradient, double *p) {
    sweep s = {.q = q, .gradient = gradient, .p = p};
    run_levels((level_task){.tree = tree, .each = velocity_of}, 1, tree->levels);
    run_levels((level_task){.tree = tree, .each = derivatives_of, .context = &s}, tree->levels - 1, -1);
}

// ---- one end of the step --------------------------------------------------------------------------------------------

// Momenta and P at one end, from q, dq and where the roots are.
static void at_end(solver_tree *tree, double *q, double *dq, bool last, double *p) {
    tree_evaluation at = {.q = q, .dq = dq, .q_start = q, .dq_start = dq};
    tree_relative_frames(tree, &at);
    for (int i = 0; i < tree->dofs; i++) tree->u[i] = dq[i];
    for (int k = 0; k < tree->root_count; k++) {
        const solver_frame_motion *m = last ? &tree->roots[k].end : &tree->roots[k].state;
        put_root(tree, &tree->roots[k], m->Q, m->v, m->w);
    }
    tree_kinetic_sweep(tree, q, 0, p);
    for (int k = 0; k < tree->root_count; k++) { // in world axes
        tree_root                 *root = &tree->roots[k];
        const tree_domain         *domain = &tree->domains[root->domain];
        const solver_frame_motion *m = last ? &root->end : &root->state;
        double                     own_axes[6], *out = root->momentum[last];
        lane_get(6, tree->blocks[domain->block].lanes->momentum, domain->lane, own_axes);
        mat3_mul_vec(out, m->Q, own_axes);
        mat3_mul_vec(out + 3, m->Q, own_axes + 3);
    }
    for (int i = 0; i < tree->count; i++) {
        const tree_domain *domain = &tree->domains[i];
        if (domain->carried == 0) continue;
        size_t size = (size_t)domain->carried * (size_t)interface_of(tree, domain)->stride;
        if (size > 0) memcpy(domain->P_ends + (last ? size : 0), domain->P, size * sizeof *domain->P);
    }
}

void tree_balance_start(solver_tree *tree) { at_end(tree, tree->q, tree->dq, false, tree->p_start); }
void tree_balance_end(solver_tree *tree) { at_end(tree, tree->q_end, tree->dq_end, true, tree->p_end); }

// ---- the loads ------------------------------------------------------------------------------------------------------

// What inertia takes of one domain by itself, at the accelerations of the pass before, becomes a load.
static void add_inertial_force(solver_tree *tree, const tree_domain *domain, const void *context, tree_work *work) {
    const tree_evaluation *at = context;
    const solver_inertia  *inertia = tree->classes[domain->class_index].inertia;
    tree_lanes            *lanes = tree->blocks[domain->block].lanes;
    solver_inertia_blocks  blocks = {.Mrq = work->Mrq, .b_q = work->b_q};
    double                 A[6], w[3], F[6], c = domain->scale, c4 = c * c * c * c, c5 = c4 * c;
    int                    r = domain->r, lane = domain->lane;
    if (domain->parent < 0) {
        const tree_root *root = &tree->roots[domain->root];
        mat3_mul_t_vec(A, root->trial.Q, root->trial.a);
        memcpy(A + 3, root->trial.al, 3 * sizeof *A);
    } else {
        follow_parent(tree, domain, tree->ddq_trial, true, A);
        tree_carried_down(tree, domain, 1, tree->ddq_trial);
    }
    lane_put(6, lanes->V6, lane, A);
    lane_get(3, lanes->w, lane, w);
    for (int i = 0; i < 3; i++) A[i] /= c;
    const double *ddq = tree->ddq_trial + domain->offset;
    solver_inertia_evaluate(inertia, at->q + domain->offset, at->dq + domain->offset, w, &blocks, work->inertia);
    dense_gemv_set(6, 6, 1, blocks.Mrr, A, F);
    if (r > 0) dense_gemv_add(r, r, 1, inertia->Mqq, ddq, blocks.b_q);
    for (int l = 0; l < r; l++) {
        const double *column = blocks.Mrq + 6 * l;
        tree->modal[domain->offset + (size_t)l] += c5 * (blocks.b_q[l] + dense_dot(6, column, A));
        for (int i = 0; i < 6; i++) F[i] += ddq[l] * column[i];
    }
    for (int i = 0; i < 6; i++) lanes->wrench[i][lane] += (i < 3 ? c4 : c5) * (F[i] + blocks.b_r[i]);
}

// dT/dq(q_m, v_m) - dT/dq(q_m, dv/2)
static void add_kinetic_forces(solver_tree *tree, const tree_evaluation *at) {
    for (int half = 0; half < 2; half++) {
        for (int i = 0; i < tree->dofs; i++)
            tree->u[i] = half ? 0.5 * (tree->dq_end[i] - tree->dq[i]) : 0.5 * (tree->dq_end[i] + tree->dq[i]);
        for (int k = 0; k < tree->root_count; k++) {
            const tree_root           *root = &tree->roots[k];
            const solver_frame_motion *a = &root->state, *b = &root->end;
            double                     v[3], w[3], sign = half ? -1 : 1;
            for (int i = 0; i < 3; i++)
                v[i] = 0.5 * (b->v[i] + sign * a->v[i]), w[i] = 0.5 * (b->w[i] + sign * a->w[i]);
            put_root(tree, root, root->trial.Q, v, w);
        }
        tree_kinetic_sweep(tree, at->q, half ? -1 : 1, NULL);
    }
}

// Forces of carried shapes act on the parent by P(q_m); by Simpson's rule they should by (P_0 + 4 P_m + P_1)/6.
static void add_carried_forces(solver_tree *tree) {
    for (int i = 0; i < tree->count; i++) {
        const tree_domain *domain = &tree->domains[i];
        if (domain->carried == 0) continue;
        const tree_domain *parent = &tree->domains[domain->parent];
        const double      *f = tree->blocks[domain->block].f + (size_t)domain->own * LANES + (size_t)domain->lane;
        size_t             stride = (size_t)interface_of(tree, domain)->stride, n = (size_t)domain->carried;
        for (size_t s = 0; s < n; s++) {
            const double *P = domain->P + s * stride, *P0 = domain->P_ends + s * stride, *P1 = P0 + n * stride;
            double       *out = tree->modal + parent->offset, sixth = f[s * LANES] / 6;
            for (int l = 0; l < parent->r; l++) out[l] -= sixth * (P0[l] + P1[l] - 2 * P[l]);
        }
    }
}

void tree_gather_balance(solver_tree *tree, const tree_evaluation *at) {
    double h = tree->options.time_step;
    run_levels((level_task){.tree = tree, .each = add_inertial_force, .context = at}, 0, tree->levels);
    add_kinetic_forces(tree, at);
    add_carried_forces(tree);
    for (int i = 0; i < tree->dofs; i++) tree->modal[i] -= (tree->p_end[i] - tree->p_start[i]) / h;
    for (int k = 0; k < tree->root_count; k++) {
        const tree_root   *root = &tree->roots[k];
        const tree_domain *domain = &tree->domains[root->domain];
        double             rate[6], own_axes[6];
        for (int i = 0; i < 6; i++) rate[i] = (root->momentum[1][i] - root->momentum[0][i]) / h;
        mat3_mul_t_vec(own_axes, root->trial.Q, rate);
        mat3_mul_t_vec(own_axes + 3, root->trial.Q, rate + 3);
        for (int i = 0; i < 6; i++) tree->blocks[domain->block].lanes->wrench[i][domain->lane] -= own_axes[i];
    }
}
