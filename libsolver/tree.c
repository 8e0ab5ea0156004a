// The tree of domains: options, checks, order, memory.
#include "libsolver/tree_internal.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- options ----------------------------------------------------------------------------------------------------

solver_tree_options solver_tree_default_options(void) {
    return (solver_tree_options){
        .time_step = 1.0 / 120,
        .subtree = SOLVER_ARTICULATED,
        .integrator = SOLVER_TREE_MIDPOINT,
        .passes = 2,
        .passes_most = 8,
        .halvings = 5,
        .theta = 0.5,
        .newmark_beta = 0.25,
        .newmark_gamma = 0.5,
    };
}

fem_status solver_tree_check_options(const solver_tree_options *o) {
    // comparisons are written so that a NaN fails them
    if (!(o->time_step > 0 && isfinite(o->time_step)))
        return fem_fail(FEM_BAD_INPUT, "solver.time_step is %g, expected > 0", o->time_step);
    if ((int)o->subtree < 0 || o->subtree > SOLVER_INTERFACE)
        return fem_fail(FEM_BAD_INPUT, "solver.subtree is %d, expected articulated (0), center (1) or interface (2)",
                        (int)o->subtree);
    if ((int)o->integrator < 0 || o->integrator > SOLVER_TREE_NEWMARK)
        return fem_fail(FEM_BAD_INPUT, "solver.integrator is %d, expected midpoint (0) or Newmark (1)",
                        (int)o->integrator);
    if (o->passes < 1 || o->passes > 8)
        return fem_fail(FEM_BAD_INPUT, "solver.passes is %d, expected from 1 to 8", o->passes);
    if (o->passes_most < 1 || o->passes_most > 64)
        return fem_fail(FEM_BAD_INPUT, "solver.passes_most is %d, expected from 1 to 64", o->passes_most);
    if (o->halvings < 0 || o->halvings > 10)
        return fem_fail(FEM_BAD_INPUT, "solver.halvings is %d, expected from 0 to 10", o->halvings);
    if (!(o->theta >= 0.5 && o->theta <= 1))
        return fem_fail(FEM_BAD_INPUT, "solver.theta is %g, expected from 0.5 to 1", o->theta);
    if (!(o->newmark_beta > 0 && o->newmark_beta <= 1))
        return fem_fail(FEM_BAD_INPUT, "solver.newmark_beta is %g, expected in (0, 1]", o->newmark_beta);
    if (!(o->newmark_gamma > 0 && o->newmark_gamma <= 1))
        return fem_fail(FEM_BAD_INPUT, "solver.newmark_gamma is %g, expected in (0, 1]", o->newmark_gamma);
    return FEM_OK;
}

// ---- checks -----------------------------------------------------------------------------------------------------

static fem_status check_class(const solver_tree_class *c, int index) {
    char        number[32];
    const char *name = c->name ? c->name : (snprintf(number, sizeof number, "%d", index), number);
    if (!c->inertia) return fem_fail(FEM_BAD_INPUT, "class %s: it has no inertia", name);
    int r = c->inertia->r;
    if (r < 0 || r > 1000) return fem_fail(FEM_BAD_INPUT, "class %s: %d modes, expected 0 to 1000", name, r);
    if (!(c->inertia->m > 0)) return fem_fail(FEM_BAD_INPUT, "class %s: mass %g, expected > 0", name, c->inertia->m);
    if (r > 0 && (!c->forces.evaluate || c->forces.r != r))
        return fem_fail(FEM_BAD_INPUT, "class %s: forces of %d modes, expected %d", name,
                        c->forces.evaluate ? c->forces.r : 0, r);
    for (int k = 0; k < c->interface_count; k++)
        if (c->interfaces[k].r != r)
            return fem_fail(FEM_BAD_INPUT, "class %s: interface %d has %d modes, expected %d", name, k,
                            c->interfaces[k].r, r);
    if (c->carried < 0 || c->carried > r || c->carried > SOLVER_MOST_CARRIED)
        return fem_fail(FEM_BAD_INPUT, "class %s: %d carried coordinates, expected 0 to %d", name, c->carried,
                        r < SOLVER_MOST_CARRIED ? r : SOLVER_MOST_CARRIED);
    if (!(c->damping_mass >= 0 && isfinite(c->damping_mass)))
        return fem_fail(FEM_BAD_INPUT, "class %s: damping_mass is %g, expected >= 0", name, c->damping_mass);
    if (!(c->damping_stiffness >= 0 && isfinite(c->damping_stiffness)))
        return fem_fail(FEM_BAD_INPUT, "class %s: damping_stiffness is %g, expected >= 0", name, c->damping_stiffness);
    return FEM_OK;
}

static const char *instance_name(const solver_tree_instance *instances, int k, char number[32]) {
    if (instances[k].name) return instances[k].name;
    snprintf(number, 32, "domain %d", k);
    return number;
}

static fem_status check_instance(int class_count, const solver_tree_class *classes, int count,
                                 const solver_tree_instance *instances, int k) {
    const solver_tree_instance *i = &instances[k];
    char                        number[32];
    const char                 *name = instance_name(instances, k, number);
    if (i->class_index < 0 || i->class_index >= class_count)
        return fem_fail(FEM_BAD_INPUT, "%s: class %d, expected 0 to %d", name, i->class_index, class_count - 1);
    if (i->parent < -1 || i->parent >= count || i->parent == k)
        return fem_fail(FEM_BAD_INPUT, "%s: parent %d, expected -1 or another of the %d domains", name, i->parent,
                        count);
    if (!(i->scale > 0 && isfinite(i->scale)))
        return fem_fail(FEM_BAD_INPUT, "%s: scale %g, expected > 0", name, i->scale);
    if (!(i->stiffness > 0 && isfinite(i->stiffness)))
        return fem_fail(FEM_BAD_INPUT, "%s: stiffness factor %g, expected > 0", name, i->stiffness);
    if (i->parent < 0) {
        if ((int)i->root < 0 || i->root > SOLVER_ROOT_FREE)
            return fem_fail(FEM_BAD_INPUT, "%s: root %d, expected fixed (0), driven (1) or free (2)", name,
                            (int)i->root);
        if (classes[i->class_index].carried > 0)
            return fem_fail(FEM_BAD_INPUT, "%s: a root whose class has %d carried coordinates, expected none", name,
                            classes[i->class_index].carried);
        return FEM_OK;
    }
    int parent_class = instances[i->parent].class_index;
    if (parent_class < 0 || parent_class >= class_count) return FEM_OK; // the parent's own check tells
    if (i->interface < 0 || i->interface >= classes[parent_class].interface_count)
        return fem_fail(FEM_BAD_INPUT, "%s: interface %d of its parent, whose class has %d", name, i->interface,
                        classes[parent_class].interface_count);
    int carries = classes[parent_class].interfaces[i->interface].carried;
    if (carries != classes[i->class_index].carried)
        return fem_fail(FEM_BAD_INPUT, "%s: its class has %d carried coordinates, the interface carries %d", name,
                        classes[i->class_index].carried, carries);
    return FEM_OK;
}

// ---- order ------------------------------------------------------------------------------------------------------

// Names the domains of a loop: some unreached domain, and its ancestors until one comes again.
static fem_status fail_loop(int count, const solver_tree_instance *instances, const int *level) {
    char text[300], number[32];
    int  k = 0, used = 0;
    while (level[k] >= 0) k++;
    for (int step = 0; step < count; step++) k = instances[k].parent; // surely on the loop now
    int start = k;
    for (int i = instances[k].parent; i != k; i = instances[i].parent) start = i < start ? i : start;
    k = start;
    text[0] = 0;
    do {
        int more = snprintf(text + used, sizeof text - (size_t)used, "%s -> ", instance_name(instances, k, number));
        if (more < 0 || used + more >= (int)sizeof text - 40) {
            snprintf(text + used, sizeof text - (size_t)used, "... -> ");
            break;
        }
        used += more;
        k = instances[k].parent;
    } while (k != start);
    return fem_fail(FEM_BAD_INPUT, "the parents of the domains form a loop: %s%s; join them by springs instead", text,
                    instance_name(instances, start, number));
}

// Level of every instance, by following the children from the roots; -1: not reached.
static fem_status find_levels(int count, const solver_tree_instance *instances, int *level) {
    fem_status status = FEM_OK;
    int        found = 0;
    int       *start = fem_calloc((size_t)count + 2, sizeof *start), *child = fem_alloc((size_t)count, sizeof *child);
    int       *queue = fem_alloc((size_t)count, sizeof *queue);
    if (!start || !child || !queue) {
        status = fem_fail(FEM_NO_MEMORY, "tree of %d domains", count);
        goto done;
    }
    for (int k = 0; k < count; k++)
        if (instances[k].parent >= 0) start[instances[k].parent + 2]++;
    for (int k = 0; k <= count; k++) start[k + 1] += start[k];
    for (int k = 0; k < count; k++)
        if (instances[k].parent >= 0) child[start[instances[k].parent + 1]++] = k;
    for (int k = 0; k < count; k++) {
        level[k] = instances[k].parent < 0 ? 0 : -1;
        if (level[k] == 0) queue[found++] = k;
    }
    for (int taken = 0; taken < found; taken++)
        for (int i = start[queue[taken]]; i < start[queue[taken] + 1]; i++) {
            level[child[i]] = level[queue[taken]] + 1;
            queue[found++] = child[i];
        }
    if (found < count) status = fail_loop(count, instances, level);
done:
    fem_free(start);
    fem_free(child);
    fem_free(queue);
    return status;
}

typedef struct sort_key {
    int level, class_index, user;
} sort_key;

static int compare_keys(const void *a, const void *b) {
    const sort_key *x = a, *y = b;
    if (x->class_index != y->class_index) return x->class_index < y->class_index ? -1 : 1;
    if (x->level != y->level) return x->level < y->level ? -1 : 1;
    return (x->user > y->user) - (x->user < y->user);
}

// domains (user, class, parent, children, offset ...), levels and blocks, but for the memory in the arena
static fem_status sort_domains(solver_tree *tree) {
    fem_status                  status = FEM_OK;
    int                         count = tree->count, dofs = 0;
    const solver_tree_instance *instances = tree->instances;
    int                        *level = fem_alloc((size_t)count, sizeof *level);
    sort_key                   *keys = fem_alloc((size_t)count, sizeof *keys);
    if (!level || !keys) {
        status = fem_fail(FEM_NO_MEMORY, "tree of %d domains", count);
        goto done;
    }
    FEM_TRY(find_levels(count, instances, level));
    for (int k = 0; k < count; k++) {
        keys[k] = (sort_key){.level = level[k], .class_index = instances[k].class_index, .user = k};
        if (level[k] + 1 > tree->levels) tree->levels = level[k] + 1;
    }
    qsort(keys, (size_t)count, sizeof *keys, compare_keys);
    for (int i = 0; i < count; i++) tree->sorted[keys[i].user] = i;
    for (int i = 0; i < count; i++) {
        const solver_tree_instance *instance = &instances[keys[i].user];
        const solver_tree_class    *c = &tree->classes[instance->class_index];
        tree_domain                *domain = &tree->domains[i];
        if (c->inertia->r > INT_MAX - dofs) {
            status = fem_fail(FEM_BAD_INPUT, "the tree has more than %d degrees of freedom", INT_MAX);
            goto done;
        }
        *domain = (tree_domain){
            .user = keys[i].user,
            .class_index = instance->class_index,
            .parent = instance->parent < 0 ? -1 : tree->sorted[instance->parent],
            .interface = instance->parent < 0 ? -1 : instance->interface,
            .level = keys[i].level,
            .r = c->inertia->r,
            .carried = c->carried,
            .own = c->inertia->r - c->carried,
            .offset = (size_t)dofs,
            .scale = instance->scale,
            .stiffness = instance->stiffness,
            .damping_mass = c->damping_mass,
            .damping_stiffness = c->damping_stiffness,
            .root = -1,
        };
        dofs += c->inertia->r;
        tree->carried += c->carried;
        if (domain->parent < 0) tree->root_count++;
    }
    tree->dofs = dofs;
    for (int i = 0; i < count; i++)
        if (tree->domains[i].parent >= 0) tree->domains[tree->domains[i].parent].child_count++;
    // children in the caller's order
    int *next = tree->children;
    for (int i = 0; i < count; i++) {
        tree->domains[i].children = next;
        next += tree->domains[i].child_count;
        tree->domains[i].child_count = 0;
    }
    for (int k = 0; k < count; k++) {
        int i = tree->sorted[k], parent = tree->domains[i].parent;
        if (parent < 0) continue;
        tree_domain *domain = &tree->domains[parent];
        tree->children[domain->children - tree->children + domain->child_count++] = i;
    }
done:
    fem_free(level);
    fem_free(keys);
    return status;
}

// Blocks, segments and the order by levels.
static fem_status make_blocks(solver_tree *tree) {
    int n = tree->count;
    tree->blocks = fem_calloc((size_t)n, sizeof *tree->blocks);
    tree->segments = fem_calloc((size_t)n, sizeof *tree->segments);
    tree->order = fem_calloc((size_t)n, sizeof *tree->order);
    tree->level_segment = fem_calloc((size_t)tree->levels + 2, sizeof *tree->level_segment);
    int *start = fem_calloc((size_t)tree->levels + 2, sizeof *start); // of the levels in `order`
    if (!tree->blocks || !tree->segments || !tree->order || !tree->level_segment || !start) {
        fem_free(start);
        return fem_fail(FEM_NO_MEMORY, "tree of %d domains", n);
    }
    for (int i = 0; i < n; i++) {
        tree_domain *domain = &tree->domains[i];
        bool         same = i > 0 && domain->class_index == domain[-1].class_index;
        if (!same || domain[-1].lane == LANES - 1)
            tree->blocks[tree->block_count++] = (tree_block){.class_index = domain->class_index,
                                                             .first = i,
                                                             .r = domain->r,
                                                             .own = domain->own,
                                                             .offset = domain->offset,
                                                             .failed = -1};
        tree_block *block = &tree->blocks[tree->block_count - 1];
        domain->block = tree->block_count - 1, domain->lane = block->count++;
        block->roots += domain->parent < 0;
        if (domain->lane == 0 || domain->level != domain[-1].level) tree->level_segment[domain->level + 2]++;
        start[domain->level + 2]++;
    }
    for (int level = 0; level <= tree->levels; level++) {
        start[level + 1] += start[level];
        tree->level_segment[level + 1] += tree->level_segment[level];
    }
    tree->segment_count = tree->level_segment[tree->levels + 1];
    for (int i = 0; i < n; i++) {
        const tree_domain *domain = &tree->domains[i];
        int                level = domain->level;
        tree->order[start[level + 1]++] = i;
        if (domain->lane == 0 || level != domain[-1].level)
            tree->segments[tree->level_segment[level + 1]++] =
                (tree_segment){.block = domain->block, .first = domain->lane};
        tree_segment *segment = &tree->segments[tree->level_segment[level + 1] - 1];
        segment->count++;
        segment->together =
            segment->count == tree->blocks[domain->block].count && segment->count > TREE_FEW && domain->carried == 0;
    }
    fem_free(start);
    return FEM_OK;
}

// Blocks on which nothing hangs.
static fem_status find_tips(solver_tree *tree) {
    tree->tips = fem_calloc((size_t)tree->segment_count, sizeof *tree->tips);
    if (!tree->tips) return fem_fail(FEM_NO_MEMORY, "tree of %d domains", tree->count);
    for (int k = 0; k < tree->segment_count; k++) {
        tree_block *block = &tree->blocks[tree->segments[k].block];
        block->tips = tree->segments[k].together && block->roots == 0;
        for (int lane = 0; lane < block->count; lane++)
            block->tips = block->tips && tree->domains[block->first + lane].child_count == 0;
        if (block->tips) tree->tips[tree->tip_count++] = k;
    }
    return FEM_OK;
}

// ---- memory -----------------------------------------------------------------------------------------------------

// Hands out pieces of the arena, or adds up their sizes when there is no memory yet.
typedef struct carver {
    fem_scratch *arena; // NULL: count only
    size_t       bytes;
    bool         overflow;
} carver;

static void *carve(carver *c, size_t count, size_t size) {
    if (count > 0 && size > (SIZE_MAX / 4 - c->bytes) / count) c->overflow = true;
    if (c->overflow) return NULL;
    c->bytes += FEM_SCRATCH_BYTES(count, size);
    return c->arena ? fem_scratch_take(c->arena, count, size) : NULL;
}

static void carve_work(solver_tree *tree, carver *c) {
    size_t most = 0, forces = 0;
    for (int k = 0; k < tree->class_count; k++) {
        size_t r = (size_t)tree->classes[k].inertia->r;
        most = r > most ? r : most;
        size_t batch = tree->classes[k].batch ? cubature_batch_work(tree->classes[k].batch) : 0;
        if (r > 0 && tree->classes[k].forces.work > forces) forces = tree->classes[k].forces.work;
        if (batch > forces) forces = batch;
    }
    size_t wide = (most + LANES - 1) / LANES * LANES;
    for (int k = 0; k < tree->worker_count; k++) {
        tree_work w = {
            .H = carve(c, most * most, sizeof(double)),
            .K = carve(c, most * most, sizeof(double)),
            .Mrq = carve(c, 6 * most, sizeof(double)),
            .IJ = carve(c, 6 * most, sizeof(double)),
            .f_q = carve(c, most, sizeof(double)),
            .b_q = carve(c, most, sizeof(double)),
            .v = carve(c, most, sizeof(double)),
            .f = carve(c, most, sizeof(double)),
            .E = carve(c, (most + 7) * (most + 8) / 2, sizeof(double)),
            .inertia = carve(c, SOLVER_INERTIA_WORK(most), sizeof(double)),
            .carried = carve(c, SOLVER_MOST_CARRIED * most, sizeof(double)),
            .forces = carve(c, forces, sizeof(double)),
            .modal = carve(c, most, sizeof(double)),
            .place = carve(c, most, sizeof(double)),
            .f2 = carve(c, 2 * most * LANES, sizeof(double)),
            .K2 = carve(c, most * (most + 1) * LANES, sizeof(double)),
            .lanes = carve(c, (10 * most + 28) * LANES, sizeof(double)),
            .sum = carve(c, (wide + 13 + SOLVER_MOST_CARRIED) * wide, sizeof(double)),
            .square = carve(c, (most + 7) * (wide + LANES), sizeof(double)),
        };
        if (c->arena) tree->work[k] = w;
    }
}

static void carve_all(solver_tree *tree, carver *c) {
    size_t   n = (size_t)tree->dofs;
    double **vectors[] = {&tree->q,       &tree->dq,       &tree->ddq,       &tree->q_trial, &tree->dq_trial,
                          &tree->q_start, &tree->dq_start, &tree->ddq_trial, &tree->modal,   &tree->q_pass,
                          &tree->kept.q,  &tree->kept.dq,  &tree->kept.ddq,  &tree->q_end,   &tree->dq_end,
                          &tree->dq_pass, &tree->u,        &tree->kick};
    for (size_t k = 0; k < sizeof vectors / sizeof *vectors; k++) {
        double *v = carve(c, n, sizeof *v);
        if (c->arena) *vectors[k] = v;
    }
    for (int k = 0; k < tree->block_count; k++) {
        tree_block *block = &tree->blocks[k];
        size_t      r = (size_t)block->r;
        block->lanes = carve(c, 1, sizeof *block->lanes);
        block->E = carve(c, (r + 7) * (r + 8) / 2 * LANES, sizeof(double));
        block->f = carve(c, r * LANES, sizeof(double));
    }
    for (int i = 0; i < tree->count; i++) {
        tree_domain *domain = &tree->domains[i];
        if (domain->parent < 0) continue;
        int    class_index = tree->domains[domain->parent].class_index;
        size_t stride = (size_t)tree->classes[class_index].interfaces[domain->interface].stride;
        domain->W = carve(c, 3 * stride, sizeof(double));
        domain->P = carve(c, (size_t)domain->carried * stride, sizeof(double));
        domain->carried_bias = carve(c, 3 * (size_t)domain->carried, sizeof(double));
        domain->P_ends = carve(c, 2 * (size_t)domain->carried * stride, sizeof(double));
    }
    tree->kick_b = carve(c, (size_t)tree->count, sizeof *tree->kick_b);
    tree->kick_A = carve(c, (size_t)tree->count, sizeof *tree->kick_A);
    for (int k = 0; k < tree->class_count; k++) {
        double *K0 = carve(c, (size_t)tree->classes[k].inertia->r, sizeof *K0);
        if (c->arena) tree->class_K0[k] = K0;
    }
    carve_work(tree, c);
}

static fem_status make_arena(solver_tree *tree) {
    carver count = {0};
    carve_all(tree, &count);
    if (count.overflow) return fem_fail(FEM_NO_MEMORY, "tree of %d domains", tree->count);
    fem_status status = fem_scratch_create(&tree->arena, count.bytes);
    if (status != FEM_OK) return fem_fail_prefix(status, "tree of %d domains: ", tree->count);
    memset(tree->arena.memory, 0, tree->arena.size);
    carver take = {.arena = &tree->arena};
    carve_all(tree, &take);
    return FEM_OK;
}

// Lanes start with the rest pose, the unused ones too, so that whatever is computed on them is finite.
static void start_lanes(solver_tree *tree) {
    for (int k = 0; k < tree->block_count; k++) {
        tree_block *block = &tree->blocks[k];
        for (int lane = 0; lane < LANES; lane++) {
            const tree_domain *domain = &tree->domains[block->first + (lane < block->count ? lane : 0)];
            tree_lanes        *lanes = block->lanes;
            double             unit[9];
            mat3_identity(unit);
            lane_put(9, lanes->R, lane, unit);
            lane_put(9, lanes->Q, lane, unit);
            lanes->scale[lane] = domain->scale;
            lanes->damping_mass[lane] = domain->damping_mass,
            lanes->damping_stiffness[lane] = domain->damping_stiffness;
            lanes->used[lane] = lane < block->count;
            if (domain->parent < 0) { // a frame that does not move in its parent, since there is none
                lane_put(9, lanes->fit, lane, unit);
                lane_put(9, lanes->rest_F, lane, unit);
                lane_put(9, lanes->rest_turn, lane, unit);
                continue;
            }
            const tree_domain      *parent = &tree->domains[domain->parent];
            const domain_interface *interface = &tree->classes[parent->class_index].interfaces[domain->interface];
            lanes->above[lane] = parent->scale, lanes->flat[lane] = interface->flat;
            lane_put(9, lanes->fit, lane, interface->T);
            lane_put(9, lanes->rest_turn, lane, interface->turn);
            for (int i = 0; i < 3; i++) lanes->rest_x[i][lane] = parent->scale * interface->x[i];
            for (int column = 0; column < 3; column++) // the third column of a flat one is made of the other two
                for (int i = 0; i < 3; i++)
                    lanes->rest_F[3 * column + i][lane] =
                        interface->flat && column == 2 ? 0 : interface->T[3 * i + column];
        }
    }
}

// The stiffness of each mode at rest.
static void start_stiffness(solver_tree *tree) {
    tree_work *work = &tree->work[0];
    for (int k = 0; k < tree->class_count; k++) {
        const cubature_forces *forces = &tree->classes[k].forces;
        int                    r = tree->classes[k].inertia->r;
        if (r == 0) continue;
        memset(work->v, 0, (size_t)r * sizeof *work->v);
        forces->evaluate(forces->model, work->v, NULL, work->f, work->K, work->forces);
        for (int l = 0; l < r; l++) tree->class_K0[k][l] = fmax(0, work->K[l * (r + 1)]);
    }
}

static void start_roots(solver_tree *tree) {
    int k = 0;
    for (int i = 0; i < tree->count; i++) {
        if (tree->domains[i].parent >= 0) continue;
        tree->domains[i].root = k;
        tree_root *root = &tree->roots[k++];
        *root = (tree_root){.domain = i, .kind = tree->instances[tree->domains[i].user].root};
        mat3_identity(root->state.Q);
        root->trial = root->state;
    }
    for (int n = 0; n < tree->count; n++) { // parents come first
        tree_domain *domain = &tree->domains[tree->order[n]];
        domain->top = domain->parent < 0 ? domain->root : tree->domains[domain->parent].top;
    }
}

// ---- kernels ----------------------------------------------------------------------------------------------------

#define TREE_DECLARE_KERNELS(level) tree_kernels tree_kernels_##level(void);
TREE_DECLARE_KERNELS(baseline)
TREE_DECLARE_KERNELS(avx2)
TREE_DECLARE_KERNELS(avx512)

static tree_kernels tree_choose_kernels(void) {
#if defined(__x86_64__)
    fem_simd level = fem_simd_level();
    if (level == FEM_SIMD_AVX512) return tree_kernels_avx512();
    if (level == FEM_SIMD_AVX2) return tree_kernels_avx2();
#endif
    return tree_kernels_baseline();
}

// ---- life -------------------------------------------------------------------------------------------------------

static fem_status copy_model(solver_tree *tree, int class_count, const solver_tree_class *classes, int count,
                             const solver_tree_instance *instances) {
    tree->class_count = class_count, tree->count = count;
    tree->classes = fem_copy(classes, (size_t)class_count, sizeof *classes);
    tree->instances = fem_copy(instances, (size_t)count, sizeof *instances);
    for (int k = 0; tree->instances && k < count; k++) tree->instances[k].name = NULL; // until they are copied too
    tree->sorted = fem_calloc((size_t)count, sizeof *tree->sorted);
    tree->domains = fem_calloc((size_t)count, sizeof *tree->domains);
    tree->children = fem_calloc((size_t)count, sizeof *tree->children);
    if (!tree->classes || !tree->instances || !tree->sorted || !tree->domains || !tree->children)
        return fem_fail(FEM_NO_MEMORY, "tree of %d domains", count);
    for (int k = 0; k < count; k++) {
        if (!instances[k].name) continue;
        tree->instances[k].name = fem_copy_string(instances[k].name);
        if (!tree->instances[k].name) return fem_fail(FEM_NO_MEMORY, "tree of %d domains", count);
    }
    return FEM_OK;
}

fem_status solver_tree_create(solver_tree **result, int class_count, const solver_tree_class *classes, int count,
                              const solver_tree_instance *instances, const solver_tree_options *options) {
    fem_status   status = FEM_OK;
    solver_tree *tree = fem_calloc(1, sizeof *tree);
    if (!tree) return fem_fail(FEM_NO_MEMORY, "tree of %d domains", count);
    tree->options = *options;
    if (count < 1) {
        status = fem_fail(FEM_BAD_INPUT, "a tree of %d domains, expected at least one", count);
        goto done;
    }
    FEM_TRY(solver_tree_check_options(options));
    for (int k = 0; k < class_count; k++) FEM_TRY(check_class(&classes[k], k));
    for (int k = 0; k < count; k++) FEM_TRY(check_instance(class_count, classes, count, instances, k));
    FEM_TRY(copy_model(tree, class_count, classes, count, instances));
    FEM_TRY(sort_domains(tree));
    FEM_TRY(make_blocks(tree));
    FEM_TRY(find_tips(tree));
    tree->worker_count = fem_threads();
    tree->work = fem_calloc((size_t)tree->worker_count, sizeof *tree->work);
    tree->roots = fem_calloc((size_t)tree->root_count, sizeof *tree->roots);
    tree->class_K0 = fem_calloc((size_t)class_count, sizeof *tree->class_K0);
    if (!tree->work || !tree->roots || !tree->class_K0) {
        status = fem_fail(FEM_NO_MEMORY, "tree of %d domains", count);
        goto done;
    }
    FEM_TRY(make_arena(tree));
    start_lanes(tree);
    start_stiffness(tree);
    start_roots(tree);
    tree->kernels = tree_choose_kernels();
    *result = tree;
    tree = NULL;
done:
    solver_tree_destroy(tree);
    return status;
}

void solver_tree_destroy(solver_tree *tree) {
    if (!tree) return;
    for (int k = 0; tree->instances && k < tree->count; k++) fem_free((void *)(uintptr_t)tree->instances[k].name);
    for (int i = 0; tree->domains && i < tree->count; i++) {
        fem_free(tree->domains[i].contact_S);
        tree_contact_destroy(tree->domains[i].contact);
    }
    fem_free(tree->classes);
    fem_free(tree->instances);
    fem_free(tree->sorted);
    fem_free(tree->domains);
    fem_free(tree->children);
    for (int k = 0; tree->blocks && k < tree->block_count; k++)
        fem_free(tree->blocks[k].S), fem_free(tree->blocks[k].load);
    fem_free(tree->blocks);
    fem_free(tree->segments);
    fem_free(tree->order);
    fem_free(tree->level_segment);
    fem_free(tree->tips);
    fem_free(tree->roots);
    fem_free(tree->work);
    fem_free(tree->class_K0);
    fem_free(tree->points);
    fem_free(tree->point_rows);
    fem_free(tree->springs);
    fem_free(tree->spring_modal);
    fem_free(tree->spring_b);
    fem_free(tree->spring_A);
    tree_compliance_destroy(&tree->compliance);
    fem_scratch_destroy(&tree->arena);
    fem_free(tree);
}

int solver_tree_count(const solver_tree *tree) { return tree->count; }
int solver_tree_dofs(const solver_tree *tree) { return tree->dofs; }
int solver_tree_free(const solver_tree *tree) { return tree->dofs - tree->carried; }
int solver_tree_depth(const solver_tree *tree) { return tree->levels; }

solver_tree_report solver_tree_get_report(const solver_tree *tree) { return tree->report; }

// ---- what the other files use -----------------------------------------------------------------------------------

fem_status tree_fail(const solver_tree *tree, fem_status status, int domain, double time, const char *reason) {
    char                     number[32];
    const solver_tree_class *c = &tree->classes[tree->domains[domain].class_index];
    const char              *name = instance_name(tree->instances, tree->domains[domain].user, number);
    return fem_fail(status, "%s%s%s%s at t = %g s: %s", name, c->name ? " (class " : "", c->name ? c->name : "",
                    c->name ? ")" : "", time, reason);
}

void tree_parallel(const solver_tree *tree, int count, fem_task task, void *context) {
    if (count > 1 && fem_threads() <= tree->worker_count)
        fem_parallel_for(count, task, context);
    else
        for (int i = 0; i < count; i++) task(context, i, 0);
}
