// Internal forces and stiffness of all domains: f and K of a class at the q of each instance, times s^3 and the
// instance's stiffness factor, with the lanes of a block side by side. K takes the place in the equation where H is
// then made.
#include "libsolver/tree_internal.h"

#include <string.h>

typedef struct forces_context {
    solver_tree           *tree;
    const tree_evaluation *at;
} forces_context;

// q + step (q - q_from) of one domain; where the end is known, the same about the middle of the way to it: what is
// carried does not go there in a straight line
static const double *place_of(const tree_domain *domain, const tree_evaluation *at, double step, double *place) {
    const double *q = at->q + domain->offset;
    if (step == 0) return q;
    const double *from = at->q_from + domain->offset, *to = at->q_to ? at->q_to + domain->offset : NULL;
    for (size_t l = 0; l < (size_t)domain->r; l++)
        place[l] = to ? 0.5 * (from[l] + to[l] + step * (to[l] - from[l])) : q[l] + step * (q[l] - from[l]);
    return place;
}

// All lanes at once, at one place, or at the two places q +- step (q - q_from), which share the reading of the
// coefficients: f and K of the second follow on those of the first. K comes as the kernels want it: entry (a, b),
// a <= b, at b (b + 1)/2 + a.
static void batch_forces(const solver_tree *tree, const tree_block *block, const tree_evaluation *at, double step,
                         double *f, double *K, tree_work *work) {
    _Alignas(64) double factor[2 * LANES] = {0};
    double             *q = work->lanes;
    int                 r = block->r, places = step == 0 ? 1 : 2;
    memset(q, 0, (size_t)(places * r) * LANES * sizeof *q);
    for (int lane = 0; lane < block->count; lane++) {
        const tree_domain *domain = &tree->domains[block->first + lane];
        double             s = domain->scale;
        factor[lane] = factor[LANES + lane] = s * s * s * domain->stiffness;
        for (int k = 0; k < places; k++) {
            const double *place = place_of(domain, at, k == 0 ? step : -step, work->place);
            for (int l = 0; l < r; l++) q[(k * r + l) * LANES + lane] = place[l];
        }
    }
    cubature_batch_evaluate(tree->classes[block->class_index].batch, places, q, factor, NULL, f, K, work->forces);
}

// Means over the two places, K that of df/dq with q_from fixed.
static void mean(size_t n, const double *f1, const double *f2, double *f, size_t size, double spread, const double *K1,
                 const double *K2, double *K) {
    for (size_t i = 0; i < n; i++) f[i] = 0.5 * (f1[i] + f2[i]);
    for (size_t i = 0; i < size; i++) K[i] = 0.5 * ((1 + spread) * K1[i] + (1 - spread) * K2[i]);
}

void tree_domain_forces(const solver_tree *tree, const tree_domain *domain, const tree_evaluation *at, double *f,
                        double *K, tree_work *work) {
    const cubature_forces *forces = &tree->classes[domain->class_index].forces;
    double                 step = tree->blocks[domain->block].mean ? at->spread : 0;
    size_t                 r = (size_t)domain->r;
    forces->evaluate(forces->model, place_of(domain, at, step, work->place), NULL, f, K, work->forces);
    if (step == 0) return;
    forces->evaluate(forces->model, place_of(domain, at, -step, work->place), NULL, work->f2, work->K2, work->forces);
    mean(r, f, work->f2, f, r * r, step, K, work->K2, K);
}

void tree_block_forces(solver_tree *tree, tree_block *block, const tree_evaluation *at, tree_work *work) {
    size_t r = (size_t)block->r;
    double step = block->mean ? at->spread : 0;
    if (r > 0 && block->count > 1 && tree->classes[block->class_index].batch) {
        size_t n = r * LANES, size = r * (r + 1) / 2 * LANES;
        batch_forces(tree, block, at, step, step == 0 ? block->f : work->f2, step == 0 ? block->E : work->K2, work);
        if (step == 0) return;
        mean(n, work->f2, work->f2 + n, block->f, size, step, work->K2, work->K2 + size, block->E);
        return;
    }
    for (int lane = 0; r > 0 && lane < block->count; lane++) {
        const tree_domain *domain = &tree->domains[block->first + lane];
        double             s = domain->scale, factor = s * s * s * domain->stiffness;
        tree_domain_forces(tree, domain, at, work->f, work->K, work);
        for (size_t i = 0; i < r; i++) {
            block->f[i * LANES + (size_t)lane] = factor * work->f[i];
            for (size_t j = 0; j <= i; j++) block->E[TREE_E(i, j) + (size_t)lane] = factor * work->K[j * r + i];
        }
    }
}

static void forces_task(void *context, int index, int worker) {
    forces_context *task = context;
    tree_block     *block = &task->tree->blocks[index];
    if (task->at->apart && block->tips) return;
    tree_block_forces(task->tree, block, task->at, &task->tree->work[worker]);
}

void tree_forces(solver_tree *tree, const tree_evaluation *at) {
    forces_context task = {.tree = tree, .at = at};
    if (tree->options.plain || tree->options.subtree != SOLVER_ARTICULATED) return; // the plain version has its own
    tree_parallel(tree, tree->block_count, forces_task, &task);
}
