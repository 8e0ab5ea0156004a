// Frames of all domains relative to their parents, then angular velocities and world poses from the roots down.
//
// In the axes of the parent i, with x and v scaled and turn = W dq, bias = dW dq (P1 eq. 12 and the recursion of
// frames):
//     w_k = R^T (w_i + turn),
//     c = (w_i x (w_i x x) + 2 w_i x v;  w_i x turn + bias): what the frame of k is accelerated by, besides A_i and
//     ddq_i.
#include "libsolver/tree_internal.h"

typedef struct frames_task {
    solver_tree           *tree;
    const tree_evaluation *at;
    int                    first;
    bool                   poses, apart;
} frames_task;

static void relative_frame(const frames_task *task, tree_block *block, int lane) {
    solver_tree            *tree = task->tree;
    const tree_domain      *domain = &tree->domains[block->first + lane], *parent = &tree->domains[domain->parent];
    const domain_interface *interface = &tree->classes[parent->class_index].interfaces[domain->interface];
    tree_lanes             *lanes = block->lanes;
    domain_frame            frame;
    double                  guess[9];
    lane_get(9, lanes->fit, lane, guess);
    domain_frame_motion(interface, task->at->q + parent->offset, task->at->dq + parent->offset, guess, &frame);
    for (int i = 0; i < 3; i++) frame.x[i] *= parent->scale, frame.v[i] *= parent->scale;
    lane_put(3, lanes->x, lane, frame.x);
    lane_put(9, lanes->R, lane, frame.R);
    lane_put(3, lanes->v, lane, frame.v);
    lane_put(3, lanes->turn, lane, frame.w);
    lane_put(3, lanes->bias, lane, frame.bias);
    lane_put(9, lanes->F, lane, frame.F);
    lane_put(9, lanes->fit, lane, frame.polar.R);
    domain_frame_gradient(interface, &frame, domain->W);
    block->flags[lane] = frame.polar.flags;
}

static void relative_frames_task(void *context, int index, int worker) {
    frames_task *task = context;
    tree_block  *block = &task->tree->blocks[index];
    (void)worker;
    if (block->roots == block->count || (task->at->apart && block->tips)) return;
    if (!task->tree->options.plain) {
        task->tree->kernels.frames(task->tree, block, task->at->q, task->at->dq);
        return;
    }
    for (int lane = block->roots; lane < block->count; lane++) relative_frame(task, block, lane); // roots come first
}

// w, dw, their start and P of one domain, from its frame and from its parent's coordinates.
static void carry(const frames_task *task, tree_lanes *lanes, int lane, tree_domain *domain) {
    solver_tree            *tree = task->tree;
    const tree_domain      *parent = &tree->domains[domain->parent];
    const domain_interface *interface = &tree->classes[parent->class_index].interfaces[domain->interface];
    const tree_evaluation  *at = task->at;
    size_t                  n = (size_t)domain->carried, place = domain->offset + (size_t)domain->own;
    size_t                  stride = (size_t)interface->stride;
    double                  R[9], turn[3], bias[3], *w = domain->carried_bias + n, *dw = w + n;
    lane_get(9, lanes->R, lane, R);
    lane_get(3, lanes->turn, lane, turn);
    lane_get(3, lanes->bias, lane, bias);
    domain_carried out = {.w = w, .dw = dw, .bias = domain->carried_bias, .grad = domain->P};
    domain_interface_carry(interface, R, turn, bias, domain->W, at->q + parent->offset, at->dq + parent->offset,
                           parent->scale / domain->scale, &out);
    for (size_t s = 0; s < n; s++) { // the start before q and dq, which may be the same
        const double *P = domain->P + s * stride, *q = at->q + parent->offset, *q_start = at->q_start + parent->offset;
        double        ahead = w[s] - at->c_stiffness * out.bias[s], rate = -at->c_damping * out.bias[s];
        for (int l = 0; l < parent->r; l++) ahead += P[l] * (q_start[l] - q[l]);
        rate += dense_dot(parent->r, P, at->dq_start + parent->offset);
        at->q_start[place + s] = ahead, at->dq_start[place + s] = rate;
        at->q[place + s] = w[s], at->dq[place + s] = dw[s];
    }
}

static void carried_frames_task(void *context, int index, int worker) {
    frames_task        *task = context;
    solver_tree        *tree = task->tree;
    const tree_segment *segment = &tree->segments[task->first + index];
    tree_block         *block = &tree->blocks[segment->block];
    (void)worker;
    bool whole = segment->count == block->count && !tree->options.plain;
    if (whole) tree->kernels.frames(tree, block, task->at->q, task->at->dq);
    for (int lane = segment->first; lane < segment->first + segment->count; lane++) {
        tree_domain *domain = &tree->domains[block->first + lane];
        if (!whole) relative_frame(task, block, lane);
        if (domain->carried > 0) carry(task, block->lanes, lane, domain);
    }
}

void tree_relative_frames(solver_tree *tree, const tree_evaluation *at) {
    frames_task task = {.tree = tree, .at = at};
    if (tree->carried == 0) {
        tree_parallel(tree, tree->block_count, relative_frames_task, &task);
        return;
    }
    for (int level = 1; level < tree->levels; level++) { // what is carried on one level moves the next
        task.first = tree->level_segment[level];
        tree_parallel(tree, tree->level_segment[level + 1] - task.first, carried_frames_task, &task);
    }
}

// c of one domain
static void bias_acceleration(tree_lanes *lanes, int lane, const double w[3]) {
    double x[3], v[3], turn[3], wx[3], c[6], t[3];
    lane_get(3, lanes->x, lane, x);
    lane_get(3, lanes->v, lane, v);
    lane_get(3, lanes->turn, lane, turn);
    vec3_cross(wx, w, x);
    vec3_cross(c, w, wx);
    vec3_cross(t, w, v);
    vec3_axpy(c, 2, t);
    vec3_cross(c + 3, w, turn);
    for (int i = 0; i < 3; i++) c[3 + i] += lanes->bias[i][lane];
    lane_put(6, lanes->c, lane, c);
}

// Pose and velocity in the world: p_k = p_i + Q_i x, Q_k = Q_i R, V_k = V_i + Q_i (w_i x x + v)
static void world_frame(tree_lanes *lanes, int lane, tree_lanes *above, int parent_lane) {
    double Q[9], R[9], x[3], w[3], C[9], d[3], local[3], V[3];
    lane_get(9, above->Q, parent_lane, Q);
    lane_get(3, above->w, parent_lane, w);
    lane_get(9, lanes->R, lane, R);
    lane_get(3, lanes->x, lane, x);
    mat3_mul(C, Q, R);
    mat3_mul_vec(d, Q, x);
    vec3_cross(local, w, x);
    for (int i = 0; i < 3; i++) local[i] += lanes->v[i][lane];
    mat3_mul_vec(V, Q, local);
    lane_put(9, lanes->Q, lane, C);
    for (int i = 0; i < 3; i++) {
        lanes->p[i][lane] = above->p[i][parent_lane] + d[i];
        lanes->V[i][lane] = above->V[i][parent_lane] + V[i];
    }
}

static void velocities_task(void *context, int index, int worker) {
    frames_task        *task = context;
    solver_tree        *tree = task->tree;
    const tree_segment *segment = &tree->segments[task->first + index];
    tree_block         *block = &tree->blocks[segment->block];
    tree_lanes         *lanes = block->lanes;
    (void)worker;
    if (task->apart && block->tips) return;
    if (segment->together && !tree->options.plain) {
        tree->kernels.velocities(tree, block, task->poses);
        return;
    }
    for (int lane = segment->first; lane < segment->first + segment->count; lane++) {
        const tree_domain *domain = &tree->domains[block->first + lane];
        const tree_domain *parent = &tree->domains[domain->parent];
        tree_lanes        *above = tree->blocks[parent->block].lanes;
        double             R[9], w[3], sum[3];
        lane_get(9, lanes->R, lane, R);
        lane_get(3, above->w, parent->lane, w);
        for (int i = 0; i < 3; i++) sum[i] = w[i] + lanes->turn[i][lane];
        bias_acceleration(lanes, lane, w);
        mat3_mul_t_vec(w, R, sum);
        lane_put(3, lanes->w, lane, w);
        if (!task->poses) continue;
        world_frame(lanes, lane, above, parent->lane);
    }
}

void tree_velocities(solver_tree *tree, bool poses, bool apart) {
    for (int k = 0; k < tree->root_count; k++) {
        const tree_root   *root = &tree->roots[k];
        const tree_domain *domain = &tree->domains[root->domain];
        tree_lanes        *lanes = tree->blocks[domain->block].lanes;
        lane_put(3, lanes->w, domain->lane, root->trial.w);
        lane_put(3, lanes->p, domain->lane, root->trial.p);
        lane_put(9, lanes->Q, domain->lane, root->trial.Q);
        lane_put(3, lanes->V, domain->lane, root->trial.v);
    }
    for (int level = 1; level < tree->levels; level++) {
        frames_task task = {.tree = tree, .first = tree->level_segment[level], .poses = poses, .apart = apart};
        tree_parallel(tree, tree->level_segment[level + 1] - task.first, velocities_task, &task);
    }
}
