// Loads on the domains of a tree: gravity, wrenches, forces at points. Gravity is no load here: it enters through the
// roots' acceleration (tree_down.c).
#include "libsolver/tree_internal.h"

#include <string.h>

void solver_tree_set_gravity(solver_tree *tree, const double gravity[3]) {
    for (int i = 0; i < 3; i++) tree->gravity[i] = gravity[i];
}

fem_status tree_reserve_load(const solver_tree *tree, tree_block *block) {
    if (!block->load) block->load = fem_calloc((6 + (size_t)block->r) * LANES, sizeof *block->load);
    if (!block->load) return fem_fail(FEM_NO_MEMORY, "load of domain %d", tree->domains[block->first].user);
    return FEM_OK;
}

fem_status tree_reserve_resistance(const solver_tree *tree, tree_block *block) {
    size_t size = ((size_t)block->r + 6) * ((size_t)block->r + 7) / 2;
    if (!block->S) block->S = fem_calloc(size * LANES, sizeof *block->S);
    if (!block->S) return fem_fail(FEM_NO_MEMORY, "resistance of domain %d", tree->domains[block->first].user);
    return FEM_OK;
}

static fem_status put_load(solver_tree *tree, int instance, double keep, const double *wrench, const double *modal) {
    if (instance < 0 || instance >= tree->count)
        return fem_fail(FEM_BAD_INPUT, "domain %d, expected 0 to %d", instance, tree->count - 1);
    tree_domain *domain = &tree->domains[tree->sorted[instance]];
    for (int i = 0; wrench && i < 6; i++)
        if (!isfinite(wrench[i])) return fem_fail(FEM_BAD_INPUT, "domain %d: the wrench is not finite", instance);
    for (int l = 0; modal && l < domain->r; l++)
        if (!isfinite(modal[l])) return fem_fail(FEM_BAD_INPUT, "domain %d: the modal force is not finite", instance);
    if (!domain->load) {
        if (!wrench && !modal) return FEM_OK;
        tree_block *block = &tree->blocks[domain->block];
        fem_status  status = tree_reserve_load(tree, block);
        if (status != FEM_OK) return status;
        domain->load = block->load + domain->lane;
    }
    for (int i = 0; i < 6 + domain->r; i++) {
        double *entry = domain->load + i * LANES, more = i < 6 ? (wrench ? wrench[i] : 0) : modal ? modal[i - 6] : 0;
        *entry = keep * *entry + more;
    }
    return FEM_OK;
}

fem_status solver_tree_set_load(solver_tree *tree, int instance, const double *wrench, const double *modal) {
    return put_load(tree, instance, 0, wrench, modal);
}

fem_status solver_tree_add_load(solver_tree *tree, int instance, const double *wrench, const double *modal) {
    return put_load(tree, instance, 1, wrench, modal);
}

static fem_status put_resistance(solver_tree *tree, int instance, const double *S, bool besides) {
    if (instance < 0 || instance >= tree->count)
        return fem_fail(FEM_BAD_INPUT, "domain %d, expected 0 to %d", instance, tree->count - 1);
    tree_domain *domain = &tree->domains[tree->sorted[instance]];
    size_t       r = (size_t)domain->r, size = (r + 6) * (r + 7) / 2;
    for (size_t k = 0; S && k < size; k++)
        if (!isfinite(S[k])) return fem_fail(FEM_BAD_INPUT, "domain %d: the resistance is not finite", instance);
    tree_block *block = &tree->blocks[domain->block];
    if (!domain->resistance) {
        if (!S) return FEM_OK;
        fem_status status = tree_reserve_resistance(tree, block);
        if (status != FEM_OK) return status;
        domain->resistance = block->S + domain->lane;
    }
    for (size_t k = 0; k < size; k++) {
        double *entry = domain->resistance + k * LANES;
        *entry = (besides ? *entry : 0) + (S ? S[k] : 0);
    }
    return FEM_OK;
}

fem_status solver_tree_set_resistance(solver_tree *tree, int instance, const double *S) {
    return put_resistance(tree, instance, S, false);
}

fem_status solver_tree_add_resistance(solver_tree *tree, int instance, const double *S) {
    return put_resistance(tree, instance, S, true);
}

fem_status solver_tree_add_point(solver_tree *tree, int instance, const double X[3], const double *rows, int *point) {
    fem_status status = FEM_OK;
    if (instance < 0 || instance >= tree->count)
        return fem_fail(FEM_BAD_INPUT, "domain %d, expected 0 to %d", instance, tree->count - 1);
    int    domain = tree->sorted[instance];
    size_t n = 3 * (size_t)tree->domains[domain].r;
    FEM_TRY(
        fem_grow((void **)&tree->points, &tree->point_capacity, (size_t)tree->point_count + 1, sizeof *tree->points));
    FEM_TRY(fem_grow((void **)&tree->point_rows, &tree->row_capacity, tree->row_count + n, sizeof *tree->point_rows));
    tree->points[tree->point_count] = (tree_point){.domain = domain, .X = {X[0], X[1], X[2]}, .rows = tree->row_count};
    if (n > 0) memcpy(tree->point_rows + tree->row_count, rows, n * sizeof *rows);
    tree->row_count += n;
    *point = tree->point_count++;
done:
    return status;
}

static fem_status check_point(const solver_tree *tree, int point) {
    if (point >= 0 && point < tree->point_count) return FEM_OK;
    return fem_fail(FEM_BAD_INPUT, "point %d, expected 0 to %d", point, tree->point_count - 1);
}

fem_status solver_tree_set_force(solver_tree *tree, int point, const double force[3]) {
    fem_status status = check_point(tree, point);
    if (status != FEM_OK) return status;
    if (!isfinite(force[0]) || !isfinite(force[1]) || !isfinite(force[2]))
        return fem_fail(FEM_BAD_INPUT, "point %d: the force is not finite", point);
    for (int i = 0; i < 3; i++) tree->points[point].force[i] = force[i];
    return FEM_OK;
}

// y = s (X + U q) in the axes of the domain
void tree_local_position(const solver_tree *tree, const tree_point *point, const double *q, double y[3]) {
    const tree_domain *domain = &tree->domains[point->domain];
    const double      *rows = tree->point_rows + point->rows;
    for (int i = 0; i < 3; i++)
        y[i] = domain->scale * (point->X[i] + dense_dot(domain->r, rows + i * domain->r, q + domain->offset));
}

void tree_point_motion(const solver_tree *tree, const tree_point *point, const double *q, const double *dq, double x[3],
                       double v[3]) {
    const tree_domain *domain = &tree->domains[point->domain];
    const double      *rows = tree->point_rows + point->rows;
    tree_lanes        *lanes = tree->blocks[domain->block].lanes;
    double             y[3], Q[9], w[3], rate[3];
    tree_local_position(tree, point, q, y);
    lane_get(9, lanes->Q, domain->lane, Q);
    mat3_mul_vec(x, Q, y);
    for (int i = 0; i < 3; i++) x[i] += lanes->p[i][domain->lane];
    if (!v) return;
    lane_get(3, lanes->w, domain->lane, w);
    vec3_cross(rate, w, y);
    for (int i = 0; i < 3; i++)
        rate[i] += domain->scale * dense_dot(domain->r, rows + i * domain->r, dq + domain->offset);
    mat3_mul_vec(v, Q, rate);
    for (int i = 0; i < 3; i++) v[i] += lanes->V[i][domain->lane];
}

void solver_tree_point(solver_tree *tree, int index, double x[3], double v[3]) {
    tree_update_motion(tree);
    tree_point_motion(tree, &tree->points[index], tree->q, tree->dq, x, v);
}

bool tree_forces_points(const solver_tree *tree) {
    for (int k = 0; k < tree->point_count; k++)
        if (vec3_dot(tree->points[k].force, tree->points[k].force) > 0) return true;
    return false;
}

bool tree_needs_poses(const solver_tree *tree) {
    if (tree->spring_count > 0 || tree->touching) return true;
    for (int i = 0; vec3_dot(tree->gravity, tree->gravity) > 0 && i < tree->count; i++)
        if (tree->domains[i].resistance) return true;
    return tree_forces_points(tree);
}

// e_r += (f; y x f), e_q += s U^T f, with f the force in the axes of the domain
static void add_point_force(solver_tree *tree, const tree_point *point, const double force[3], const double *q) {
    const tree_domain *domain = &tree->domains[point->domain];
    const double      *rows = tree->point_rows + point->rows;
    tree_lanes        *lanes = tree->blocks[domain->block].lanes;
    double             Q[9], f[3], y[3], torque[3];
    lane_get(9, lanes->Q, domain->lane, Q);
    mat3_mul_t_vec(f, Q, force);
    tree_local_position(tree, point, q, y);
    vec3_cross(torque, y, f);
    for (int i = 0; i < 3; i++) {
        lanes->wrench[i][domain->lane] += f[i];
        lanes->wrench[3 + i][domain->lane] += torque[i];
        dense_axpy(domain->r, domain->scale * f[i], rows + i * domain->r, tree->modal + domain->offset);
    }
}

// Frames have the acceleration -g when they rest: what S makes of that is taken back.
static void take_back(solver_tree *tree, tree_block *block) {
    size_t r = (size_t)block->r;
    double g[3][LANES];
    for (int i = 0; i < 3; i++)
        for (int lane = 0; lane < LANES; lane++) {
            g[i][lane] = 0;
            for (int j = 0; j < 3; j++) g[i][lane] += block->lanes->Q[3 * j + i][lane] * tree->gravity[j];
        }
    for (size_t row = 0; row < r + 6; row++) {
        double change[LANES] = {0};
        for (size_t i = 0; i < 3; i++) { // columns of the force
            size_t        low = row < r + i ? row : r + i, high = row < r + i ? r + i : row;
            const double *entry = block->S + (high * (high + 1) / 2 + low) * LANES;
            for (int lane = 0; lane < LANES; lane++) change[lane] += entry[lane] * g[i][lane];
        }
        if (row < r)
            for (size_t lane = 0; lane < (size_t)block->count; lane++)
                tree->modal[block->offset + lane * r + row] -= change[lane];
        else
            for (int lane = 0; lane < LANES; lane++) block->lanes->wrench[row - r][lane] -= change[lane];
    }
}

void tree_block_loads(solver_tree *tree, tree_block *block, const tree_evaluation *at) {
    bool   lumped = tree->options.subtree != SOLVER_ARTICULATED;
    size_t r = (size_t)block->r;
    if (block->load) { // 0 where there is none
        memcpy(block->lanes->wrench, block->load, sizeof block->lanes->wrench);
        for (size_t lane = 0; lane < (size_t)block->count; lane++)
            for (size_t l = 0; l < r; l++)
                tree->modal[block->offset + lane * r + l] = block->load[(6 + l) * LANES + lane];
    } else {
        memset(block->lanes->wrench, 0, sizeof block->lanes->wrench);
        memset(tree->modal + block->offset, 0, r * (size_t)block->count * sizeof *tree->modal);
    }
    if (at->resists && block->S && !lumped && vec3_dot(tree->gravity, tree->gravity) > 0) take_back(tree, block);
}

void tree_gather_loads(solver_tree *tree, const tree_evaluation *at) {
    for (int k = 0; k < tree->block_count; k++)
        if (!(at->apart && tree->blocks[k].tips)) tree_block_loads(tree, &tree->blocks[k], at);
    for (int k = 0; k < tree->point_count; k++) {
        const tree_point *point = &tree->points[k];
        if (vec3_dot(point->force, point->force) > 0) add_point_force(tree, point, point->force, at->q);
    }
}
