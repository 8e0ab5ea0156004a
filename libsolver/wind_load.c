// Forces of the wind on a tree, for eight instances of a class at once: they are the blocks of the tree, and what they
// feel is written where the tree keeps it (kernel_wind.c).
//
// A leaf weighs less than the air that passes it in a step, so a force held over the step would throw it about:
// explicit steps must stay below 2 m / (rho C A |w|). The force is therefore that of the end of the step, to first
// order: f - h D a, D = -df/dv >= 0 (solver_tree_set_resistance). The direction of the normal stays explicit, since it
// belongs to positions. A body that stands still feels exactly f.
#include "libsolver/tree_internal.h"
#include "libsolver/wind_internal.h"

#include <string.h>

struct solver_wind_load {
    const solver_wind         *wind;
    int                        class_count, count;
    const solver_wind_surface *surfaces;
    double                   **fall; // per class: see rest_fall
    wind_kernels               kernels;
    double                     turning; // rad/s
};

void solver_wind_load_destroy(solver_wind_load *load) {
    if (!load) return;
    for (int c = 0; load->fall && c < load->class_count; c++) fem_free(load->fall[c]);
    fem_free(load->fall);
    fem_free(load);
}

// How much a sample moves along n when modes and frame of its domain do: (s U^T n; n; y x n). y: its place in the axes
// of the frame.
static void motion_row(const solver_wind_surface *s, size_t sample, double scale, const double y[3], const double n[3],
                       double *row) {
    size_t r = (size_t)s->r, rows = 3 * (size_t)s->count;
    for (size_t l = 0; l < r; l++) row[l] = scale * vec3_dot(s->rows + l * rows + 3 * sample, n);
    memcpy(row + r, n, 3 * sizeof *n);
    vec3_cross(row + r + 3, y, n);
}

// S += factor row row^T
static void add_square(size_t n, double factor, const double *row, double *S) {
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) *S++ += factor * row[i] * row[j];
}

// Sum over the samples of area times J^T J at rest, J their motion by modes and frame: what friction resists with.
static fem_status rest_fall(const solver_wind_surface *s, double **fall) {
    size_t  n = (size_t)s->r + 6;
    double *work = NULL;
    *fall = fem_calloc(n * (n + 1) / 2, sizeof **fall);
    work = fem_alloc(n, sizeof *work);
    if (!*fall || !work) {
        fem_free(work);
        return fem_fail(FEM_NO_MEMORY, "wind: no memory for %zu coordinates", n);
    }
    for (size_t k = 0; k < (size_t)s->count; k++)
        for (int a = 0; a < 3; a++) {
            double axis[3] = {a == 0, a == 1, a == 2};
            motion_row(s, k, 1, s->X + 3 * k, axis, work);
            add_square(n, vec3_norm(s->area + 3 * k), work, *fall);
        }
    fem_free(work);
    return FEM_OK;
}

fem_status solver_wind_load_create(solver_wind_load **created, const solver_wind *wind, int class_count,
                                   const solver_wind_surface *surfaces, int count) {
    fem_status        status = FEM_OK;
    solver_wind_load *load = fem_calloc(1, sizeof *load);
    if (!load) return fem_fail(FEM_NO_MEMORY, "wind: no memory for its loads");
    *load = (solver_wind_load){.wind = wind, .class_count = class_count, .count = count, .surfaces = surfaces};
    load->kernels = wind_choose_kernels();
    load->fall = fem_calloc((size_t)class_count, sizeof *load->fall);
    if (!load->fall) {
        status = fem_fail(FEM_NO_MEMORY, "wind: no memory for %d classes", class_count);
        goto done;
    }
    for (int c = 0; c < class_count; c++)
        if (surfaces[c].count > 0) FEM_TRY(rest_fall(&surfaces[c], &load->fall[c]));
    *created = load;
    load = NULL;
done:
    solver_wind_load_destroy(load);
    return status;
}

typedef struct apply_context {
    solver_wind_load *load;
    solver_tree      *tree;
    bool              besides;
    wind_now          now;
} apply_context;

static void apply_task(void *context, int index, int worker) {
    apply_context             *task = context;
    solver_tree               *tree = task->tree;
    tree_block                *block = &tree->blocks[index];
    const solver_wind_surface *surface = &task->load->surfaces[block->class_index];
    tree_lanes                *lanes = block->lanes;
    size_t                     r = (size_t)block->r;
    if (surface->count == 0) return;
    double *q = tree->work[worker].lanes, *dq = q + r * LANES;
    memset(q, 0, 2 * r * LANES * sizeof *q);
    for (size_t lane = 0; lane < (size_t)block->count; lane++)
        for (size_t l = 0; l < r; l++) {
            q[l * LANES + lane] = tree->q[block->offset + lane * r + l];
            dq[l * LANES + lane] = tree->dq[block->offset + lane * r + l];
        }
    if (!task->besides) {
        memset(block->load, 0, (6 + r) * LANES * sizeof *block->load);
        memset(block->S, 0, (r + 6) * (r + 7) / 2 * LANES * sizeof *block->S);
    }
    _Alignas(64) double turning[LANES] = {0}, mass[LANES];
    double              least = r > 0 ? INFINITY : 1;
    for (size_t l = 0; l < r; l++) least = fmin(least, tree->classes[block->class_index].inertia->Mqq[l * (r + 1)]);
    for (int lane = 0; lane < LANES; lane++) mass[lane] = least * pow(lanes->scale[lane], 5);
    wind_block b = {.surface = surface,
                    .fall = task->load->fall[block->class_index],
                    .step = tree->options.time_step,
                    .q = q,
                    .dq = dq,
                    .p = lanes->p[0],
                    .Q = lanes->Q[0],
                    .V = lanes->V[0],
                    .w = lanes->w[0],
                    .scale = lanes->scale,
                    .used = lanes->used,
                    .wrench = block->load,
                    .modal = block->load + 6 * LANES,
                    .S = block->S,
                    .mass = mass,
                    .turning = turning,
                    .row = dq + r * LANES};
    task->load->kernels.push(&task->now, &b);
    block->turning = 0;
    for (int lane = 0; r > 0 && lane < block->count; lane++) block->turning = fmax(block->turning, turning[lane]);
}

static fem_status apply(solver_wind_load *load, solver_tree *tree, bool besides) {
    fem_status    status = FEM_OK;
    apply_context task = {.load = load, .tree = tree, .besides = besides};
    if (tree->count != load->count || tree->class_count != load->class_count)
        return fem_fail(FEM_BAD_INPUT, "wind: made for %d instances of %d classes, the tree has %d of %d", load->count,
                        load->class_count, tree->count, tree->class_count);
    if (!isfinite(tree->time)) return fem_fail(FEM_BAD_INPUT, "wind: the time is %g", tree->time);
    for (int k = 0; k < tree->block_count; k++) {
        tree_block                *block = &tree->blocks[k];
        const solver_wind_surface *surface = &load->surfaces[block->class_index];
        if (surface->count == 0) continue;
        if (surface->r != block->r)
            return fem_fail(FEM_BAD_INPUT, "wind: a surface of %d modes, the class of %s has %d", surface->r,
                            tree->classes[block->class_index].name ? tree->classes[block->class_index].name : "it",
                            block->r);
        FEM_TRY(tree_reserve_load(tree, block));
        FEM_TRY(tree_reserve_resistance(tree, block));
        for (int lane = 0; lane < block->count; lane++) {
            tree_domain *domain = &tree->domains[block->first + lane];
            domain->load = block->load + lane, domain->resistance = block->S + lane;
        }
    }
    tree_update_motion(tree);
    wind_now_start(&task.now, load->wind, tree->time);
    tree_parallel(tree, tree->block_count, apply_task, &task);
    load->turning = 0;
    for (int k = 0; k < tree->block_count; k++)
        if (load->surfaces[tree->blocks[k].class_index].count > 0)
            load->turning = fmax(load->turning, sqrt(tree->blocks[k].turning));
done:
    return status;
}

fem_status solver_wind_load_apply(solver_wind_load *load, solver_tree *tree) { return apply(load, tree, false); }

fem_status solver_wind_load_add(solver_wind_load *load, solver_tree *tree) { return apply(load, tree, true); }

double solver_wind_load_turning(const solver_wind_load *load) { return load->turning; }
