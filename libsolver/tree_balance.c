// Energy of undamped trees whose modes are too fast for the step.
//
// Inertia depends on the coordinates: T = v.M(q) v/2, v being dq and the velocities of free roots. Of the midpoint rule
//     M(q_m) a + b(q_m, v_m) = f,   v_m = (v_0 + v_1)/2,   v_1 - v_0 = h a
// T does not change by the work of f. What it has too much is
//     E = T_1 - T_0 - h v_m.(M_m a + b_m) = v_m.((M_1 + M_0)/2 - M_m) h a + h a.(M_1 - M_0) h a/8 + ...,
// nothing to speak of for slow motion. But of a mode that turns by a radian in a step, or by many, h a is as large as
// v: its energy grows and falls with M although nothing pays for it, and where no damping takes it away it grows
// without bound. E is measured, and the fast modes give it back at the end of the step:
//     v_1 += alpha d,   T(v_1 + alpha d) = T(v_1) - E,   d = v_1 - H^-1 M v_1,   H = M + h^2/4 K of the last pass.
// d is v_1 for modes that the step does not resolve and next to nothing, (h w/2)^2 v_1, for those that it does. H d is
// h^2/4 K v_1, forces between modes, which leave the momentum of a free tree alone. Each root has its own E and alpha.
// Energy is then kept up to what is left of the equations where passes stop.
//
// To change momenta by the discrete gradient of T instead, which balances too, is worse: it has unresolved modes push
// slow ones the wrong way, by v_0.(dM/dq) v_1/2 with v_1 = -v_0, they take up energy, and passes do not settle.
//
// Forces balance by their mean over the way (tree_settle.c). Those of carried shapes w(q) of interfaces act on the
// parent with the mean of dw/dq over the way, by Simpson's rule, which is w_1 - w_0 times the force to fifth order; the
// rest goes to E.
//
// All is O(domains). Velocities V = (v; w) of all frames that u makes come down from the roots,
//     V_k = R^T (v + w x x + s a u;  w + W u).
#include "libsolver/tree_internal.h"

#include <string.h>

static const double MOST_ALPHA = 0.5; // more, and a mode could turn round

static const domain_interface *interface_of(const solver_tree *tree, const tree_domain *domain) {
    return &tree->classes[tree->domains[domain->parent].class_index].interfaces[domain->interface];
}

// One domain of a level after the other, or several at a time.
typedef struct level_task {
    solver_tree *tree;
    int          first;
    void (*each)(solver_tree *tree, tree_domain *domain, const void *context, tree_work *work);
    const void *context;
} level_task;

static void run_segment(void *context, int index, int worker) {
    level_task         *task = context;
    const tree_segment *segment = &task->tree->segments[task->first + index];
    tree_domain        *domain = &task->tree->domains[task->tree->blocks[segment->block].first + segment->first];
    for (int k = 0; k < segment->count; k++)
        task->each(task->tree, &domain[k], task->context, &task->tree->work[worker]);
}

static void run_levels(level_task task) {
    for (int level = 0; level < task.tree->levels; level++) {
        task.first = task.tree->level_segment[level];
        tree_parallel(task.tree, task.tree->level_segment[level + 1] - task.first, run_segment, &task);
    }
}

// R^T (X V + J u) of a child; V stands in `of` of the parent and goes there. Then R^T c besides, for accelerations.
static void follow_parent(const solver_tree *tree, const tree_domain *domain, int of, const double *u, bool with_c) {
    const tree_domain      *parent = &tree->domains[domain->parent];
    const domain_interface *interface = interface_of(tree, domain);
    tree_lanes             *lanes = tree->blocks[domain->block].lanes;
    size_t                  stride = (size_t)interface->stride;
    double                  V[6], R[9], x[3], t[3], out[6];
    lane_get(6, tree->blocks[parent->block].lanes->motion[of], parent->lane, V);
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
    lane_put(6, lanes->motion[of], domain->lane, out);
}

static void put_root(solver_tree *tree, const tree_root *root, int of, const double Q[9], const double v[3],
                     const double w[3]) {
    const tree_domain *domain = &tree->domains[root->domain];
    double             V[6] = {0, 0, 0, w[0], w[1], w[2]};
    mat3_mul_t_vec(V, Q, v);
    lane_put(6, tree->blocks[domain->block].lanes->motion[of], domain->lane, V);
}

// ---- kinetic energy at one end --------------------------------------------------------------------------------------

// At q, with the frames that the blocks hold: T of u, and with d also u.M d and T of d, into `share`.
typedef struct moving {
    const double *q;
    double       *u, *d; // d: NULL for none
} moving;

static void kinetic_of(solver_tree *tree, tree_domain *domain, const void *context, tree_work *work) {
    const moving         *m = context;
    const solver_inertia *inertia = tree->classes[domain->class_index].inertia;
    tree_lanes           *lanes = tree->blocks[domain->block].lanes;
    solver_inertia_blocks blocks = {.Mrq = work->Mrq, .b_q = work->b_q};
    double                V[2][6], momentum[6], c = domain->scale, c5 = c * c * c * c * c, none[6] = {0};
    double               *u[2] = {m->u, m->d};
    int                   r = domain->r;
    for (int k = 0; k < 2 && u[k]; k++) {
        if (domain->parent >= 0) {
            follow_parent(tree, domain, k, u[k], false);
            tree_carried_down(tree, domain, 0, u[k]);
        }
        lane_get(6, lanes->motion[k], domain->lane, V[k]);
        for (int i = 0; i < 3; i++) V[k][i] /= c; // then everything is that of the class times c^5
        u[k] += domain->offset;
    }
    solver_inertia_evaluate(inertia, m->q + domain->offset, NULL, NULL, &blocks, work->inertia);
    domain->share[0] = c5 * solver_inertia_momentum(inertia, &blocks, V[0], V[0] + 3, u[0], momentum);
    if (!m->d) return;
    double cross = dense_dot(6, momentum, V[1]);
    if (r > 0) dense_gemv_set(r, r, 1, inertia->Mqq, u[0], work->modal);
    for (int l = 0; l < r; l++) cross += u[1][l] * (work->modal[l] + dense_dot(6, blocks.Mrq + 6 * l, V[0]));
    domain->share[1] = c5 * cross;
    domain->share[2] = c5 * solver_inertia_momentum(inertia, &blocks, V[1], V[1] + 3, u[1], none);
}

// Sums over the domains of each root
enum { START, END, CROSS, SQUARE, POWER, STRAIN }; // T_0, T_1, v_1.M d, T of d, v_m.(M a + b), what strain has too much
static void sum_shares(solver_tree *tree, int first, int count) {
    for (int i = 0; i < tree->count; i++)
        for (int k = 0; k < count; k++) tree->roots[tree->domains[i].top].sums[first + k] += tree->domains[i].share[k];
}

// ---- the work of a step ---------------------------------------------------------------------------------------------

// Of one domain, where the last pass was evaluated: v_m.(M a + b); and its part of M v_1, as loads.
static void power_of(solver_tree *tree, tree_domain *domain, const void *context, tree_work *work) {
    const solver_inertia *inertia = tree->classes[domain->class_index].inertia;
    tree_lanes           *lanes = tree->blocks[domain->block].lanes;
    solver_inertia_blocks blocks = {.Mrq = work->Mrq, .b_q = work->b_q};
    const double         *u = tree->u + domain->offset, *ddq = tree->ddq_trial + domain->offset;
    double                A[6], V[6], w[3], F[6], c = domain->scale, c5 = c * c * c * c * c, power = 0;
    double               *end = tree->dq_end + domain->offset, V1[6], momentum[6], *load = tree->kick + domain->offset;
    int                   r = domain->r, lane = domain->lane;
    (void)context;
    if (domain->parent >= 0) {
        follow_parent(tree, domain, 0, tree->u, false);
        follow_parent(tree, domain, 1, tree->ddq_trial, true);
        follow_parent(tree, domain, 2, tree->dq_end, false);
        tree_carried_down(tree, domain, 0, tree->u);
        tree_carried_down(tree, domain, 1, tree->ddq_trial);
        tree_carried_down(tree, domain, 0, tree->dq_end);
    }
    lane_get(6, lanes->motion[0], lane, V);
    lane_get(6, lanes->motion[1], lane, A);
    lane_get(6, lanes->motion[2], lane, V1);
    lane_get(3, lanes->w, lane, w);
    for (int i = 0; i < 3; i++) A[i] /= c, V[i] /= c, V1[i] /= c;
    solver_inertia_evaluate(inertia, tree->q_pass + domain->offset, tree->dq_pass + domain->offset, w, &blocks,
                            work->inertia);
    solver_inertia_momentum(inertia, &blocks, V1, V1 + 3, end, momentum);
    for (int i = 0; i < 6; i++) tree->kick_b[domain - tree->domains][i] = -(i < 3 ? c5 / c : c5) * momentum[i];
    if (r > 0) dense_gemv_set(r, r, c5, inertia->Mqq, end, load);
    for (int l = 0; l < r; l++) load[l] += c5 * dense_dot(6, blocks.Mrq + 6 * l, V1);
    dense_gemv_set(6, 6, 1, blocks.Mrr, A, F);
    if (r > 0) dense_gemv_add(r, r, 1, inertia->Mqq, ddq, blocks.b_q);
    for (int l = 0; l < r; l++) {
        const double *column = blocks.Mrq + 6 * l;
        power += u[l] * (blocks.b_q[l] + dense_dot(6, column, A));
        dense_axpy(6, ddq[l], column, F);
    }
    for (int i = 0; i < 6; i++) power += V[i] * (F[i] + blocks.b_r[i]);
    domain->share[0] = c5 * power;
}

// What the strain of carried shapes changed by, less what their forces took
static void strain_of(solver_tree *tree, tree_domain *domain, const void *context, tree_work *work) {
    double h = tree->options.time_step;
    (void)context, (void)work;
    domain->share[0] = 0;
    if (domain->carried == 0) return;
    const tree_domain *parent = &tree->domains[domain->parent];
    const double      *f = tree->blocks[domain->block].f + (size_t)domain->own * LANES + (size_t)domain->lane;
    size_t             stride = (size_t)interface_of(tree, domain)->stride, n = (size_t)domain->carried;
    for (size_t s = 0; s < n; s++) {
        size_t        i = domain->offset + (size_t)domain->own + s;
        const double *P0 = domain->P_ends + s * stride, *P1 = P0 + n * stride, *dq = tree->dq_trial + parent->offset;
        double        ends = dense_dot(parent->r, P0, dq) + dense_dot(parent->r, P1, dq);
        domain->share[0] += f[s * LANES] * (tree->q_end[i] - tree->q[i] - h * (ends + 4 * tree->dq_trial[i]) / 6);
    }
}

// ---- carried shapes -------------------------------------------------------------------------------------------------

// Frames at one end, and P there.
static void carried_at(solver_tree *tree, bool last) {
    double         *q = last ? tree->q_end : tree->q, *dq = last ? tree->dq_end : tree->dq;
    tree_evaluation at = {.q = q, .dq = dq, .q_start = q, .dq_start = dq};
    tree_relative_frames(tree, &at);
    for (int i = 0; i < tree->count; i++) {
        const tree_domain *domain = &tree->domains[i];
        if (domain->carried == 0) continue;
        size_t size = (size_t)domain->carried * (size_t)interface_of(tree, domain)->stride;
        if (size > 0) memcpy(domain->P_ends + (last ? size : 0), domain->P, size * sizeof *domain->P);
    }
}
void tree_carried_start(solver_tree *tree) { carried_at(tree, false); }
void tree_carried_end(solver_tree *tree) { carried_at(tree, true); }

void tree_gather_carried(solver_tree *tree) {
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

// ---- a step ---------------------------------------------------------------------------------------------------------

// d of all, and of the free roots
static void choose_direction(solver_tree *tree) {
    tree_respond(tree, tree->kick, tree->kick_b, tree->kick_A);
    for (int i = 0; i < tree->dofs; i++) tree->kick[i] = tree->dq_end[i] - tree->kick[i];
    for (int k = 0; k < tree->root_count; k++) {
        tree_root    *root = &tree->roots[k];
        const double *A = tree->kick_A[root->domain];
        double        turned[3];
        mat3_mul_vec(turned, root->Q_pass, A);
        for (int i = 0; i < 3; i++)
            root->kick[i] = root->end.v[i] - turned[i], root->kick[3 + i] = root->end.w[i] - A[3 + i];
    }
}

static void at_end(solver_tree *tree, bool last) {
    double         *q = last ? tree->q_end : tree->q, *dq = last ? tree->dq_end : tree->dq;
    tree_evaluation at = {.q = q, .dq = dq, .q_start = q, .dq_start = dq};
    moving          m = {.q = q, .u = dq, .d = last ? tree->kick : NULL};
    tree_relative_frames(tree, &at);
    for (int k = 0; k < tree->root_count; k++) {
        tree_root                 *root = &tree->roots[k];
        const solver_frame_motion *end = last ? &root->end : &root->state;
        put_root(tree, root, 0, end->Q, end->v, end->w);
        put_root(tree, root, 1, end->Q, root->kick, root->kick + 3);
    }
    run_levels((level_task){.tree = tree, .each = kinetic_of, .context = &m});
    sum_shares(tree, last ? END : START, last ? 3 : 1);
}

// The small root of square x^2 + slope x + excess = 0, the change of T that is nearest to -excess where there is none
static double solve(double square, double slope, double excess) {
    double under = slope * slope - 4 * square * excess;
    if (!(slope > 0)) return 0;
    double alpha = under > 0 ? -2 * excess / (slope + sqrt(under)) : -slope / (2 * square);
    return isfinite(alpha) ? fmax(-MOST_ALPHA, fmin(MOST_ALPHA, alpha)) : 0;
}

void tree_balance(solver_tree *tree) {
    double h = tree->options.time_step;
    for (int k = 0; k < tree->root_count; k++) {
        tree_root *root = &tree->roots[k];
        memset(root->sums, 0, sizeof root->sums);
        put_root(tree, root, 0, root->Q_pass, root->trial.v, root->trial.w);
        put_root(tree, root, 1, root->Q_pass, root->trial.a, root->trial.al);
        put_root(tree, root, 2, root->Q_pass, root->end.v, root->end.w);
    }
    memcpy(tree->u, tree->dq_trial, (size_t)tree->dofs * sizeof *tree->u);
    run_levels((level_task){.tree = tree, .each = power_of});
    sum_shares(tree, POWER, 1);
    choose_direction(tree);
    at_end(tree, false);
    at_end(tree, true);
    run_levels((level_task){.tree = tree, .each = strain_of});
    sum_shares(tree, STRAIN, 1);
    for (int k = 0; k < tree->root_count; k++) {
        tree_root    *root = &tree->roots[k];
        const double *s = root->sums;
        double        excess = s[END] - s[START] - h * s[POWER] + s[STRAIN];
        root->alpha = root->unresolved ? solve(s[SQUARE], s[CROSS], excess) : 0;
        for (int i = 0; i < 6; i++) root->kick[i] *= root->alpha;
    }
    for (int i = 0; i < tree->count; i++)
        dense_scale(tree->domains[i].r, tree->roots[tree->domains[i].top].alpha, tree->kick + tree->domains[i].offset);
}
