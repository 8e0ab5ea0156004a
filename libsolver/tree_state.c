// State of the tree: reading and setting it, world frames, energies and momenta, and what may change at run time.
#include "libsolver/tree_internal.h"

static fem_status check_index(const solver_tree *tree, int instance) {
    if (instance >= 0 && instance < tree->count) return FEM_OK;
    return fem_fail(FEM_BAD_INPUT, "domain %d, expected 0 to %d", instance, tree->count - 1);
}

double        solver_tree_time(const solver_tree *tree) { return tree->time; }
const double *solver_tree_q(const solver_tree *tree, int instance) {
    return tree->q + tree->domains[tree->sorted[instance]].offset;
}
const double *solver_tree_dq(const solver_tree *tree, int instance) {
    return tree->dq + tree->domains[tree->sorted[instance]].offset;
}

fem_status solver_tree_set_state(solver_tree *tree, int instance, const double *q, const double *dq) {
    fem_status status = check_index(tree, instance);
    if (status != FEM_OK) return status;
    const tree_domain *domain = &tree->domains[tree->sorted[instance]];
    for (int l = 0; l < domain->r; l++)
        if ((q && !isfinite(q[l])) || (dq && !isfinite(dq[l])))
            return fem_fail(FEM_BAD_INPUT, "domain %d: coordinate %d or its rate is not finite", instance, l);
    for (int l = 0; l < domain->r; l++) {
        tree->q[domain->offset + (size_t)l] = q ? q[l] : 0;
        tree->dq[domain->offset + (size_t)l] = dq ? dq[l] : 0;
    }
    tree->accelerations_known = tree->poses_known = false;
    return FEM_OK;
}

// ---- roots ------------------------------------------------------------------------------------------------------

static fem_status find_root(solver_tree *tree, int instance, tree_root **root) {
    fem_status status = check_index(tree, instance);
    if (status != FEM_OK) return status;
    int index = tree->domains[tree->sorted[instance]].root;
    if (index < 0) return fem_fail(FEM_BAD_INPUT, "domain %d is not a root", instance);
    *root = &tree->roots[index];
    return FEM_OK;
}

fem_status solver_tree_set_root(solver_tree *tree, int instance, const solver_frame_motion *motion) {
    tree_root *root = NULL;
    double     N[9], error;
    fem_status status = find_root(tree, instance, &root);
    if (status != FEM_OK) return status;
    if (root->kind == SOLVER_ROOT_DRIVEN)
        return fem_fail(FEM_BAD_INPUT, "domain %d is driven, set its drive", instance);
    mat3_mul_nt(N, motion->Q, motion->Q);
    error = fabs(mat3_det(motion->Q) - 1);
    for (int i = 0; i < 9; i++) error = fmax(error, fabs(N[i] - (i % 4 == 0)));
    if (!(error < 1e-6)) return fem_fail(FEM_BAD_INPUT, "domain %d: Q is not a rotation", instance);
    for (int i = 0; i < 3; i++)
        if (!isfinite(motion->p[i] + motion->v[i] + motion->w[i]))
            return fem_fail(FEM_BAD_INPUT, "domain %d: position or velocity of the root is not finite", instance);
    bool free = root->kind == SOLVER_ROOT_FREE;
    for (int i = 0; i < 3; i++) {
        root->state.p[i] = motion->p[i];
        root->state.v[i] = free ? motion->v[i] : 0;
        root->state.w[i] = free ? motion->w[i] : 0;
        root->state.a[i] = root->state.al[i] = 0;
    }
    for (int i = 0; i < 9; i++) root->state.Q[i] = motion->Q[i];
    tree->accelerations_known = tree->poses_known = false;
    return FEM_OK;
}

fem_status solver_tree_set_drive(solver_tree *tree, int instance, solver_drive drive, void *context) {
    tree_root *root = NULL;
    fem_status status = find_root(tree, instance, &root);
    if (status != FEM_OK) return status;
    if (root->kind != SOLVER_ROOT_DRIVEN) return fem_fail(FEM_BAD_INPUT, "domain %d is not a driven root", instance);
    root->drive = drive, root->context = context;
    drive(context, tree->time, &root->state);
    tree->accelerations_known = tree->poses_known = false;
    return FEM_OK;
}

// ---- frames in the world ----------------------------------------------------------------------------------------

void tree_update_motion(solver_tree *tree) {
    if (tree->poses_known) return;
    for (int k = 0; k < tree->root_count; k++) tree->roots[k].trial = tree->roots[k].state;
    tree_evaluation at = {.q = tree->q, .dq = tree->dq, .q_start = tree->q, .dq_start = tree->dq, .time = tree->time};
    tree_relative_frames(tree, &at);
    tree_velocities(tree, true, false);
    tree->poses_known = true;
}

void solver_tree_frame(solver_tree *tree, int instance, solver_frame_motion *motion) {
    const tree_domain *domain = &tree->domains[tree->sorted[instance]];
    tree_lanes        *lanes = tree->blocks[domain->block].lanes;
    tree_update_motion(tree);
    *motion = (solver_frame_motion){0};
    lane_get(3, lanes->p, domain->lane, motion->p);
    lane_get(9, lanes->Q, domain->lane, motion->Q);
    lane_get(3, lanes->V, domain->lane, motion->v);
    lane_get(3, lanes->w, domain->lane, motion->w);
}

double solver_tree_deviation(solver_tree *tree, int instance) {
    const tree_domain *domain = &tree->domains[tree->sorted[instance]];
    tree_lanes        *lanes = tree->blocks[domain->block].lanes;
    domain_frame       frame;
    if (domain->parent < 0) return 0;
    tree_update_motion(tree);
    lane_get(9, lanes->F, domain->lane, frame.F);
    lane_get(9, lanes->fit, domain->lane, frame.polar.R);
    return domain_frame_deviation(&frame);
}

// ---- energies ---------------------------------------------------------------------------------------------------

// Kinetic energy and momenta of one domain from its blocks, scaled as in tree_up.c.
static void add_domain(solver_tree *tree, const tree_domain *domain, solver_tree_energies *e) {
    const solver_tree_class *c = &tree->classes[domain->class_index];
    const double            *q = tree->q + domain->offset, *dq = tree->dq + domain->offset;
    tree_lanes              *lanes = tree->blocks[domain->block].lanes;
    tree_work               *work = &tree->work[0];
    solver_inertia_blocks    blocks = {.Mrq = work->Mrq, .b_q = work->b_q};
    double                   Q[9], p[3], v_world[3], v[3], w[3], momentum[6], strain = 0, s = domain->scale;
    lane_get(9, lanes->Q, domain->lane, Q);
    lane_get(3, lanes->p, domain->lane, p);
    lane_get(3, lanes->V, domain->lane, v_world);
    lane_get(3, lanes->w, domain->lane, w);
    mat3_mul_t_vec(v, Q, v_world);
    for (int i = 0; i < 3; i++) v[i] /= s; // then everything is that of the class times s^4, s^5
    solver_inertia_evaluate(c->inertia, q, dq, w, &blocks, work->inertia);
    double s3 = s * s * s, s4 = s3 * s, s5 = s4 * s, m = s3 * c->inertia->m;
    e->kinetic += s5 * solver_inertia_momentum(c->inertia, &blocks, v, w, dq, momentum);
    if (domain->r > 0) c->forces.evaluate(c->forces.model, q, &strain, NULL, NULL, work->forces);
    e->strain += s3 * domain->stiffness * strain;
    // first moment s = m c is in the lower left corner of Mrr as [s], which is column-major here
    double first[3] = {blocks.Mrr[6 * 1 + 5], blocks.Mrr[6 * 2 + 3], blocks.Mrr[6 * 0 + 4]}, centre[3], P[3], H[3],
           t[3];
    for (int i = 0; i < 3; i++) momentum[i] *= s4, momentum[3 + i] *= s5;
    mat3_mul_vec(centre, Q, first);
    mat3_mul_vec(P, Q, momentum);
    mat3_mul_vec(H, Q, momentum + 3);
    vec3_cross(t, p, P);
    e->mass += m;
    for (int i = 0; i < 3; i++) {
        e->centre[i] += m * p[i] + s4 * centre[i];
        e->momentum[i] += P[i];
        e->spin[i] += H[i] + t[i];
    }
}

void solver_tree_get_energies(solver_tree *tree, solver_tree_energies *energies) {
    *energies = (solver_tree_energies){0};
    tree_update_motion(tree);
    for (int i = 0; i < tree->count; i++) add_domain(tree, &tree->domains[i], energies);
    energies->potential = -vec3_dot(tree->gravity, energies->centre);
    for (int i = 0; i < 3; i++) energies->centre[i] /= energies->mass;
    for (int k = 0; k < tree->spring_count; k++) energies->springs += tree_spring_energy(tree, &tree->springs[k]);
}

// ---- changes at run time ----------------------------------------------------------------------------------------

fem_status solver_tree_set_stiffness(solver_tree *tree, int instance, double factor) {
    fem_status status = check_index(tree, instance);
    if (status != FEM_OK) return status;
    if (!(factor > 0 && isfinite(factor)))
        return fem_fail(FEM_BAD_INPUT, "domain %d: stiffness factor %g, expected > 0", instance, factor);
    tree->domains[tree->sorted[instance]].stiffness = factor;
    return FEM_OK;
}

fem_status solver_tree_set_frequency(solver_tree *tree, int instance, double factor) {
    if (!(factor > 0 && isfinite(factor)))
        return fem_fail(FEM_BAD_INPUT, "domain %d: frequency factor %g, expected > 0", instance, factor);
    return solver_tree_set_stiffness(tree, instance, factor * factor);
}

fem_status solver_tree_set_damping(solver_tree *tree, int instance, double damping_mass, double damping_stiffness) {
    fem_status status = check_index(tree, instance);
    if (status != FEM_OK) return status;
    if (!(damping_mass >= 0 && isfinite(damping_mass) && damping_stiffness >= 0 && isfinite(damping_stiffness)))
        return fem_fail(FEM_BAD_INPUT, "domain %d: damping %g, %g, expected >= 0", instance, damping_mass,
                        damping_stiffness);
    tree_domain *domain = &tree->domains[tree->sorted[instance]];
    tree_lanes  *lanes = tree->blocks[domain->block].lanes;
    domain->damping_mass = lanes->damping_mass[domain->lane] = damping_mass;
    domain->damping_stiffness = lanes->damping_stiffness[domain->lane] = damping_stiffness;
    return FEM_OK;
}

void solver_tree_get_damping(const solver_tree *tree, int instance, double *mass, double *stiffness) {
    const tree_domain *domain = &tree->domains[tree->sorted[instance]];
    *mass = domain->damping_mass, *stiffness = domain->damping_stiffness;
}

fem_status solver_tree_set_time_step(solver_tree *tree, double time_step) {
    solver_tree_options options = tree->options;
    options.time_step = time_step;
    fem_status status = solver_tree_check_options(&options);
    if (status == FEM_OK) tree->options = options;
    return status;
}

double solver_tree_time_step(const solver_tree *tree) { return tree->options.time_step; }
