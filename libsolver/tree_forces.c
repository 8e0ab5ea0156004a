// Internal forces and stiffness of all domains: f and K of a class at the q of each instance, times s^3 and the
// instance's stiffness factor, with the lanes of a block side by side. K takes the place in the equation where H is
// then made.
#include "libsolver/tree_internal.h"

#include <string.h>

typedef struct forces_context {
    solver_tree           *tree;
    const tree_evaluation *at;
} forces_context;

// All lanes at once. K comes as the kernels want it: entry (a, b), a <= b, at b (b + 1)/2 + a.
static void batch_forces(const solver_tree *tree, tree_block *block, const tree_evaluation *at, tree_work *work) {
    _Alignas(64) double factor[LANES] = {0};
    double             *q = work->lanes;
    int                 r = block->r;
    memset(q, 0, (size_t)r * LANES * sizeof *q);
    for (int lane = 0; lane < block->count; lane++) {
        const tree_domain *domain = &tree->domains[block->first + lane];
        factor[lane] = domain->scale * domain->scale * domain->scale * domain->stiffness;
        for (int l = 0; l < r; l++) q[l * LANES + lane] = at->q[domain->offset + (size_t)l];
    }
    cubature_batch_evaluate(tree->classes[block->class_index].batch, 1, q, factor, NULL, block->f, block->E,
                            work->forces);
}

static void block_forces(solver_tree *tree, tree_block *block, const tree_evaluation *at, tree_work *work) {
    const cubature_forces *forces = &tree->classes[block->class_index].forces;
    int                    r = block->r;
    if (r > 0 && block->count > 1 && tree->classes[block->class_index].batch) {
        batch_forces(tree, block, at, work);
        return;
    }
    for (int lane = 0; r > 0 && lane < block->count; lane++) {
        const tree_domain *domain = &tree->domains[block->first + lane];
        double             s = domain->scale, factor = s * s * s * domain->stiffness;
        forces->evaluate(forces->model, at->q + domain->offset, NULL, work->f, work->K, work->forces);
        for (int i = 0; i < r; i++) {
            block->f[i * LANES + lane] = factor * work->f[i];
            for (int j = 0; j <= i; j++) block->E[TREE_E(i, j) + (size_t)lane] = factor * work->K[j * r + i];
        }
    }
}

static void forces_task(void *context, int index, int worker) {
    forces_context *task = context;
    block_forces(task->tree, &task->tree->blocks[index], task->at, &task->tree->work[worker]);
}

void tree_forces(solver_tree *tree, const tree_evaluation *at) {
    forces_context task = {.tree = tree, .at = at};
    if (tree->options.plain || tree->options.subtree != SOLVER_ARTICULATED) return; // the plain version has its own
    tree_parallel(tree, tree->block_count, forces_task, &task);
}
