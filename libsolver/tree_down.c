// The pass from the roots to the leaves: A of the roots, then ddq = L^-T (g - T^T A) of each domain and A = R^T (X A_i
// + J ddq_i
// + c) of its children.
#include "libsolver/tree_internal.h"

typedef struct down_context {
    solver_tree *tree;
    double      *ddq;
    int          first;
} down_context;

fem_status tree_free_root(const solver_tree *tree, const tree_domain *domain, const double b[6], double A[6]) {
    tree_lanes *lanes = tree->blocks[domain->block].lanes;
    bool        lumped = tree->options.subtree != SOLVER_ARTICULATED;
    double      I[36];
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < 6; j++) I[6 * i + j] = (lumped ? lanes->rigid : lanes->I)[SYM6(i, j)][domain->lane];
        A[i] = -b[i];
    }
    if (dense_cholesky(6, I) != FEM_OK) return FEM_INDEFINITE;
    dense_cholesky_solve(6, I, 1, A);
    return FEM_OK;
}

// A of a root: what moves it, less gravity, which everything in the tree then feels.
static fem_status root_acceleration(solver_tree *tree, tree_root *root, double time) {
    const tree_domain *domain = &tree->domains[root->domain];
    tree_lanes        *lanes = tree->blocks[domain->block].lanes;
    const double      *Q = root->trial.Q;
    double             A[6], fall[3];
    if (root->kind == SOLVER_ROOT_FREE) {
        double b[6];
        lane_get(6, tree->options.subtree == SOLVER_ARTICULATED ? lanes->b : lanes->rigid_b, domain->lane, b);
        if (tree_free_root(tree, domain, b, A) != FEM_OK)
            return tree_fail(tree, FEM_UNSTABLE, root->domain, time, "the inertia of the whole tree is not positive");
        mat3_mul_vec(root->trial.a, Q, A);
        for (int i = 0; i < 3; i++) root->trial.a[i] += tree->gravity[i], root->trial.al[i] = A[3 + i];
    } else {
        vec3_sub(fall, root->trial.a, tree->gravity);
        mat3_mul_t_vec(A, Q, fall);
        for (int i = 0; i < 3; i++) A[3 + i] = root->trial.al[i];
    }
    lane_put(6, lanes->A, domain->lane, A);
    return FEM_OK;
}

// A of a domain from its parent's
static void child_acceleration(solver_tree *tree, tree_lanes *lanes, const tree_domain *domain, const double *ddq) {
    const tree_domain      *parent = &tree->domains[domain->parent];
    const domain_interface *interface = &tree->classes[parent->class_index].interfaces[domain->interface];
    size_t                  stride = (size_t)interface->stride;
    double                  above[6], x[3], R[9], t[3], sum[6], A[6];
    lane_get(6, tree->blocks[parent->block].lanes->A, parent->lane, above);
    lane_get(3, lanes->x, domain->lane, x);
    lane_get(9, lanes->R, domain->lane, R);
    lane_get(6, lanes->c, domain->lane, sum);
    vec3_cross(t, above + 3, x);
    for (size_t i = 0; i < 3; i++) {
        const double *modes = ddq + parent->offset;
        sum[i] += above[i] + t[i] + parent->scale * dense_dot(parent->r, interface->a + stride * i, modes);
        sum[3 + i] += above[3 + i] + dense_dot(parent->r, domain->W + stride * i, modes);
    }
    mat3_mul_t_vec(A, R, sum);
    mat3_mul_t_vec(A + 3, R, sum + 3);
    lane_put(6, lanes->A, domain->lane, A);
}

void tree_carried_down(const solver_tree *tree, const tree_domain *domain, double bias, double *ddq) {
    if (domain->carried == 0) return;
    const tree_domain *parent = &tree->domains[domain->parent];
    size_t             stride = (size_t)tree->classes[parent->class_index].interfaces[domain->interface].stride;
    for (size_t s = 0; s < (size_t)domain->carried; s++)
        ddq[domain->offset + (size_t)domain->own + s] =
            dense_dot(parent->r, domain->P + s * stride, ddq + parent->offset) + bias * domain->carried_bias[s];
}

void tree_carried_down_all(const solver_tree *tree, double bias, double *ddq) {
    for (int k = 0; tree->carried > 0 && k < tree->count; k++)
        tree_carried_down(tree, &tree->domains[tree->order[k]], bias, ddq);
}

void tree_modes(const tree_block *block, int lane, const double A[6], double *ddq) {
    const double *E = block->E + lane;
    int           r = block->r, own = block->own;
    for (int l = 0; l < own; l++) {
        ddq[l] = E[TREE_E(r + 6, l)];
        for (int s = own; s < r; s++) ddq[l] -= E[TREE_E(s, l)] * ddq[s];
        for (int k = 0; k < 6; k++) ddq[l] -= E[TREE_E(r + k, l)] * A[k];
    }
    for (int i = own - 1; i >= 0; i--)
        for (int j = 0; j < i; j++) ddq[j] -= E[TREE_E(i, j)] * ddq[i];
}

static void down_task(void *context, int index, int worker) {
    down_context       *task = context;
    solver_tree        *tree = task->tree;
    const tree_segment *segment = &tree->segments[task->first + index];
    tree_block         *block = &tree->blocks[segment->block];
    if (segment->together && !tree->options.plain) {
        tree->kernels.down(tree, block, task->ddq, &tree->work[worker]);
        return;
    }
    for (int lane = segment->first; lane < segment->first + segment->count; lane++) {
        const tree_domain *domain = &tree->domains[block->first + lane];
        double             A[6];
        if (domain->parent >= 0) child_acceleration(tree, block->lanes, domain, task->ddq);
        tree_carried_down(tree, domain, 1, task->ddq);
        lane_get(6, block->lanes->A, lane, A);
        tree_modes(block, lane, A, task->ddq + domain->offset);
    }
}

fem_status tree_down(solver_tree *tree, double time, double *ddq) {
    for (int k = 0; k < tree->root_count; k++) {
        fem_status status = root_acceleration(tree, &tree->roots[k], time);
        if (status != FEM_OK) return status;
    }
    for (int level = 0; level < tree->levels; level++) {
        down_context task = {.tree = tree, .ddq = ddq, .first = tree->level_segment[level]};
        tree_parallel(tree, tree->level_segment[level + 1] - task.first, down_task, &task);
    }
    return FEM_OK;
}
