// Domains on which nothing hangs: the leaves of a plant, most of what it has. What a pass knows of a block of eight is
// some 50 KB, so that going over all blocks once for every piece of a pass fetches all of it each time from beyond the
// caches. Nothing waits for tips but their parents' equations, hence one block after the other goes through all pieces.
#include "libsolver/tree_internal.h"

typedef struct tips_context {
    solver_tree           *tree;
    const tree_evaluation *at;
    bool                   poses;
} tips_context;

// Looking at the clock takes time, too: every eighth block is asked.
enum { TIMED = 8, PIECES = 4 };

static void tips_task(void *context, int index, int worker) {
    tips_context       *task = context;
    solver_tree        *tree = task->tree;
    const tree_segment *segment = &tree->segments[tree->tips[index]];
    tree_block         *block = &tree->blocks[segment->block];
    tree_work          *work = &tree->work[worker];
    bool                timed = index % TIMED == 0;
    double              clock[PIECES + 1];
    block->failed = -1, block->shifts = block->plain = 0;
    if (timed) clock[0] = fem_seconds();
    tree->kernels.frames(tree, block, task->at->q, task->at->dq);
    tree->kernels.velocities(tree, block, task->poses);
    if (timed) clock[1] = fem_seconds();
    tree_block_loads(tree, block, task->at);
    if (timed) clock[2] = fem_seconds();
    tree_block_forces(tree, block, task->at, work);
    if (timed) clock[3] = fem_seconds();
    tree_block_own(tree, block, task->at, work);
    tree_segment_up(tree, segment, task->at, true, work);
    if (timed) clock[4] = fem_seconds();
    for (int i = 0; timed && i < PIECES; i++) work->seconds[i] += clock[i + 1] - clock[i];
}

bool tree_tips_apart(const solver_tree *tree) {
    bool fast = !tree->options.plain && tree->options.subtree == SOLVER_ARTICULATED;
    // what is carried goes from level to level; springs, points and contact want all frames before all loads
    return fast && tree->carried == 0 && tree->spring_count == 0 && !tree->touching && !tree_forces_points(tree);
}

void tree_tips(solver_tree *tree, const tree_evaluation *at, bool poses) {
    tips_context        task = {.tree = tree, .at = at, .poses = poses};
    solver_tree_report *report = &tree->report;
    double             *sums[PIECES] = {&report->seconds_frames, &report->seconds_rest, &report->seconds_forces,
                                        &report->seconds_up};
    double              clock = fem_seconds(), pieces[PIECES] = {0}, all = 0;
    for (int k = 0; k < tree->worker_count; k++)
        for (int i = 0; i < PIECES; i++) tree->work[k].seconds[i] = 0;
    tree_parallel(tree, tree->tip_count, tips_task, &task);
    for (int k = 0; k < tree->worker_count; k++)
        for (int i = 0; i < PIECES; i++) pieces[i] += tree->work[k].seconds[i], all += tree->work[k].seconds[i];
    clock = fem_seconds() - clock;
    for (int i = 0; all > 0 && i < PIECES; i++) *sums[i] += clock * pieces[i] / all;
}
