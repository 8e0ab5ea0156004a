// Springs of length zero between points of domains, or between a point and the world: they close loops and root trees
// at several places. Implicit, and coupled through the whole tree, so that stiff springs are stable and hold.
//
// With d = x_a - x_b at the trial point, where the accelerations of the pass before entered by the weights P', V',
//     f = -k (d + G (P acc - P' acc')) - c (dd/dt + G (V acc - V' acc')),   G = dd/d(coordinates),
// is the force on a that belongs to the new trial point. Let y = G acc. The accelerations are linear in the loads,
// acc = acc_0 + Y f for the tree without springs, so with e = k P + c V, e' = k P' + c V'
//     (1/e + G Y G^T) f = (-k d - c dd/dt + e' y')/e - G acc_0,
// symmetric and positive, solved by conjugate gradients: each product is a pass up and down the tree with vectors only,
// O(domains). Without more there would be as many iterations as the springs have independent directions;
// tree_compliance.c has a factor of the matrix, of this step or an earlier one, with which a few do.
// What the vector passes need is left by the pass itself: T, the factor of H, and the inertia of free roots.
#include "libsolver/tree_internal.h"

#include <string.h>

fem_status solver_tree_add_spring(solver_tree *tree, const solver_spring *spring) {
    fem_status status = FEM_OK;
    size_t     n = (size_t)tree->dofs, count = (size_t)tree->count;
    if (tree->options.subtree != SOLVER_ARTICULATED)
        return fem_fail(FEM_BAD_INPUT,
                        "springs need solver.subtree articulated: the lumped levels couple one way only");
    if (spring->a < 0 || spring->a >= tree->point_count || spring->b < -1 || spring->b >= tree->point_count ||
        spring->a == spring->b)
        return fem_fail(FEM_BAD_INPUT,
                        "spring between points %d and %d, expected two of the %d points, or -1 as second", spring->a,
                        spring->b, tree->point_count);
    if (!(spring->stiffness >= 0 && isfinite(spring->stiffness) && spring->damping >= 0 && isfinite(spring->damping)))
        return fem_fail(FEM_BAD_INPUT, "spring: stiffness %g and damping %g, expected >= 0", spring->stiffness,
                        spring->damping);
    if (spring->b < 0 && !isfinite(spring->anchor[0] + spring->anchor[1] + spring->anchor[2]))
        return fem_fail(FEM_BAD_INPUT, "spring: the anchor is not finite");
    FEM_TRY(fem_grow((void **)&tree->springs, &tree->spring_capacity, (size_t)tree->spring_count + 1,
                     sizeof *tree->springs));
    if (!tree->spring_modal) tree->spring_modal = fem_alloc(n, sizeof *tree->spring_modal);
    if (!tree->spring_b) tree->spring_b = fem_alloc(count, sizeof *tree->spring_b);
    if (!tree->spring_A) tree->spring_A = fem_alloc(count, sizeof *tree->spring_A);
    if (!tree->spring_modal || !tree->spring_b || !tree->spring_A) {
        status = fem_fail(FEM_NO_MEMORY, "springs on %d domains", tree->count);
        goto done;
    }
    tree->springs[tree->spring_count++] = (tree_spring){.s = *spring};
    status = tree_compliance_reserve(tree);
    if (status != FEM_OK) tree->spring_count--;
done:
    return status;
}

// d and its rate for the frames that the blocks hold
static void strain(const solver_tree *tree, const solver_spring *s, const double *q, const double *dq, double d[3],
                   double rate[3]) {
    double y[3] = {s->anchor[0], s->anchor[1], s->anchor[2]}, v[3] = {0};
    tree_point_motion(tree, &tree->points[s->a], q, dq, d, rate);
    if (s->b >= 0) tree_point_motion(tree, &tree->points[s->b], q, dq, y, v);
    for (int i = 0; i < 3; i++) d[i] -= y[i], rate[i] -= v[i];
}

double tree_spring_energy(const solver_tree *tree, const tree_spring *spring) {
    double d[3], rate[3];
    strain(tree, &spring->s, tree->q, tree->dq, d, rate);
    return 0.5 * spring->s.stiffness * vec3_dot(d, d);
}

// ---- vector passes ----------------------------------------------------------------------------------------------

// Force on a point, or its acceleration from the frame's A and ddq: G^T and G of one end.
static void push(solver_tree *tree, int index, double sign, const double force[3], const double *q) {
    const tree_point  *point = &tree->points[index];
    const tree_domain *domain = &tree->domains[point->domain];
    const double      *rows = tree->point_rows + point->rows;
    double             Q[9], f[3], y[3], torque[3], world[3] = {sign * force[0], sign * force[1], sign * force[2]};
    lane_get(9, tree->blocks[domain->block].lanes->Q, domain->lane, Q);
    mat3_mul_t_vec(f, Q, world);
    tree_local_position(tree, point, q, y);
    vec3_cross(torque, y, f);
    for (int i = 0; i < 3; i++) {
        tree->spring_b[point->domain][i] -= f[i];
        tree->spring_b[point->domain][3 + i] -= torque[i];
        dense_axpy(domain->r, domain->scale * f[i], rows + i * domain->r, tree->spring_modal + domain->offset);
    }
}

static void pull(const solver_tree *tree, int index, double sign, const double *q, const double *ddq, double y[3]) {
    const tree_point  *point = &tree->points[index];
    const tree_domain *domain = &tree->domains[point->domain];
    const double      *rows = tree->point_rows + point->rows, *A = tree->spring_A[point->domain];
    double             Q[9], arm[3], local[3], world[3];
    lane_get(9, tree->blocks[domain->block].lanes->Q, domain->lane, Q);
    tree_local_position(tree, point, q, arm);
    vec3_cross(local, A + 3, arm);
    for (int i = 0; i < 3; i++)
        local[i] += A[i] + domain->scale * dense_dot(domain->r, rows + i * domain->r, ddq + domain->offset);
    mat3_mul_vec(world, Q, local);
    vec3_axpy(y, sign, world);
}

// Accelerations that forces `v` of the springs make, into spring_modal (ddq) and spring_A.
static void respond(solver_tree *tree, const double *q, double *(*vector)(tree_spring *)) {
    memset(tree->spring_b, 0, (size_t)tree->count * sizeof *tree->spring_b);
    memset(tree->spring_modal, 0, (size_t)tree->dofs * sizeof *tree->spring_modal);
    for (int k = 0; k < tree->spring_count; k++) {
        tree_spring *spring = &tree->springs[k];
        push(tree, spring->s.a, 1, vector(spring), q);
        if (spring->s.b >= 0) push(tree, spring->s.b, -1, vector(spring), q);
    }
    tree_respond(tree, tree->spring_modal, tree->spring_b, tree->spring_A);
}

// y = G acc of every spring
static void relative(solver_tree *tree, const double *q, const double *ddq, double *(*vector)(tree_spring *)) {
    for (int k = 0; k < tree->spring_count; k++) {
        tree_spring *spring = &tree->springs[k];
        double      *y = vector(spring);
        y[0] = y[1] = y[2] = 0;
        pull(tree, spring->s.a, 1, q, ddq, y);
        if (spring->s.b >= 0) pull(tree, spring->s.b, -1, q, ddq, y);
    }
}

// Frames' accelerations without those of velocities: A of a root is what moves it (nothing moves a fixed one, and the
// motion of a driven one is given), in its axes.
static void accelerations_of(solver_tree *tree, const double *ddq) {
    for (int n = 0; n < tree->count; n++) {
        int                i = tree->order[n];
        const tree_domain *domain = &tree->domains[i];
        double            *A = tree->spring_A[i];
        if (domain->parent >= 0) {
            tree_vector_down(tree, i, ddq, tree->spring_A);
            continue;
        }
        const tree_root *root = &tree->roots[domain->root];
        memset(A, 0, 6 * sizeof *A);
        if (root->kind != SOLVER_ROOT_FREE) continue;
        mat3_mul_t_vec(A, root->trial.Q, root->trial.a);
        for (int k = 0; k < 3; k++) A[3 + k] = root->trial.al[k];
    }
}

void tree_spring_push(solver_tree *tree, const solver_spring *s, int k, const double *q) {
    double force[3] = {k == 0, k == 1, k == 2};
    push(tree, s->a, 1, force, q);
    if (s->b >= 0) push(tree, s->b, -1, force, q);
}

// dd_k/dq of a spring at rest, without the motion of roots: the forces that a unit force of it makes of the modes. The
// frames are those of rest.
static void row(solver_tree *tree, const solver_spring *s, int k, const double *q, double *g) {
    memset(tree->spring_b, 0, (size_t)tree->count * sizeof *tree->spring_b);
    memset(tree->spring_modal, 0, (size_t)tree->dofs * sizeof *tree->spring_modal);
    tree_spring_push(tree, s, k, q);
    for (int n = tree->count - 1; n >= 0; n--) {
        const tree_domain *domain = &tree->domains[tree->order[n]];
        if (domain->parent >= 0) tree_vector_lift(tree, tree->order[n], tree->spring_modal, tree->spring_b);
    }
    memcpy(g, tree->spring_modal, (size_t)tree->dofs * sizeof *g);
}

fem_status tree_spring_rows(solver_tree *tree, const double *q, double *G, double *stiffness) {
    for (int k = 0; k < tree->spring_count; k++) {
        const solver_spring *s = &tree->springs[k].s;
        for (int i = 0; i < 3; i++) {
            size_t place = 3 * (size_t)k + (size_t)i;
            row(tree, s, i, q, G + place * (size_t)tree->dofs);
            stiffness[place] = s->stiffness;
        }
        int root = tree->points[s->a].domain;
        while (tree->domains[root].parent >= 0) root = tree->domains[root].parent;
        if (s->b < 0 && tree->roots[tree->domains[root].root].kind == SOLVER_ROOT_FREE)
            return fem_fail(
                FEM_BAD_INPUT,
                "frequencies of a free body that springs tie to the world are not there: hold its root, or, where "
                "they were wanted for damping by ratio, give the damping itself");
    }
    return FEM_OK;
}

// ---- conjugate gradients ----------------------------------------------------------------------------------------

static double *of_force(tree_spring *spring) { return spring->force; }
static double *of_image(tree_spring *spring) { return spring->image; }
static double *of_p(tree_spring *spring) { return spring->p; }
static double *of_acceleration(tree_spring *spring) { return spring->acceleration; }

// image = v/e + G Y G^T v; a spring with e = 0 has its force given, so its row is left out
static void product(solver_tree *tree, const tree_evaluation *at, double *(*vector)(tree_spring *)) {
    respond(tree, at->q, vector);
    relative(tree, at->q, tree->spring_modal, of_image);
    for (int k = 0; k < tree->spring_count; k++) {
        tree_spring *spring = &tree->springs[k];
        double       e = spring->s.stiffness * at->c_stiffness + spring->s.damping * at->c_damping;
        for (int i = 0; i < 3; i++) spring->image[i] = e > 0 ? spring->image[i] + vector(spring)[i] / e : 0;
    }
}

static double dot(const solver_tree *tree, double *(*x)(tree_spring *), double *(*y)(tree_spring *)) {
    double sum = 0;
    for (int k = 0; k < tree->spring_count; k++) sum += vec3_dot(x(&tree->springs[k]), y(&tree->springs[k]));
    return sum;
}

static double *of_r(tree_spring *spring) { return spring->r; }
static double *of_target(tree_spring *spring) { return spring->target; }

static double *of_z(tree_spring *spring) { return spring->z; }

// z = C^-1 r with the factor that is kept, or r
static void precondition(solver_tree *tree) {
    tree_compliance *c = &tree->compliance;
    for (int k = 0; k < tree->spring_count; k++) {
        const double *r = tree->springs[k].r;
        memcpy(c->known ? c->z + 3 * (size_t)k : tree->springs[k].z, r, 3 * sizeof *r);
    }
    if (!c->known) return;
    dense_cholesky_solve(3 * tree->spring_count, c->L, 1, c->z);
    for (int k = 0; k < tree->spring_count; k++) memcpy(tree->springs[k].z, c->z + 3 * (size_t)k, 3 * sizeof *c->z);
}

static void conjugate_gradients(solver_tree *tree, const tree_evaluation *at) {
    double limit = 1e-20 * dot(tree, of_target, of_target); // squared norms
    int    enough = 4, iteration = 0;                       // more than that says that the factor grows old
    if (!tree_compliance_is_for(tree, at)) tree_compliance_make(tree, at);
    product(tree, at, of_force);
    for (int k = 0; k < tree->spring_count; k++) {
        tree_spring *spring = &tree->springs[k];
        for (int i = 0; i < 3; i++) spring->r[i] = spring->target[i] - spring->image[i];
    }
    precondition(tree);
    for (int k = 0; k < tree->spring_count; k++) memcpy(tree->springs[k].p, tree->springs[k].z, sizeof(double[3]));
    double rz = dot(tree, of_r, of_z);
    for (; dot(tree, of_r, of_r) > limit && iteration < 3 * tree->spring_count + 30; iteration++) {
        product(tree, at, of_p);
        double curvature = dot(tree, of_p, of_image);
        if (!(curvature > 0)) break;
        double step = rz / curvature, before = rz;
        for (int k = 0; k < tree->spring_count; k++) {
            tree_spring *spring = &tree->springs[k];
            vec3_axpy(spring->force, step, spring->p);
            vec3_axpy(spring->r, -step, spring->image);
        }
        precondition(tree);
        rz = dot(tree, of_r, of_z);
        for (int k = 0; k < tree->spring_count; k++) {
            tree_spring *spring = &tree->springs[k];
            for (int i = 0; i < 3; i++) spring->p[i] = spring->z[i] + rz / before * spring->p[i];
        }
    }
    tree->report.spring_iterations += iteration;
    if (iteration > enough) tree->compliance.excess += iteration - enough;
}

void tree_add_springs(solver_tree *tree, const tree_evaluation *at, const tree_weights *old, double *ddq) {
    bool implicit = false;
    for (int k = 0; k < tree->spring_count; k++) { // the right-hand side without G acc_0; y' is still there
        tree_spring *spring = &tree->springs[k];
        double       stiffness = spring->s.stiffness, damping = spring->s.damping, d[3], rate[3];
        double       e = stiffness * at->c_stiffness + damping * at->c_damping;
        double       before = stiffness * old->position + damping * old->velocity;
        strain(tree, &spring->s, at->q, at->dq, d, rate);
        for (int i = 0; i < 3; i++) {
            double force = -stiffness * d[i] - damping * rate[i];
            if (before != 0) force += before * spring->acceleration[i];
            if (e > 0)
                spring->target[i] = force / e;
            else
                spring->force[i] = force, spring->target[i] = 0;
        }
        implicit = implicit || e > 0;
    }
    accelerations_of(tree, ddq);
    relative(tree, at->q, ddq, of_acceleration);
    for (int k = 0; k < tree->spring_count; k++) {
        tree_spring *spring = &tree->springs[k];
        double       e = spring->s.stiffness * at->c_stiffness + spring->s.damping * at->c_damping;
        for (int i = 0; e > 0 && i < 3; i++) spring->target[i] -= spring->acceleration[i];
    }
    if (implicit) conjugate_gradients(tree, at);
    respond(tree, at->q, of_force);
    for (int i = 0; i < tree->dofs; i++) ddq[i] += tree->spring_modal[i];
    for (int k = 0; k < tree->root_count; k++) {
        tree_root *root = &tree->roots[k];
        double    *A = tree->spring_A[root->domain], a[3];
        if (root->kind != SOLVER_ROOT_FREE) continue;
        mat3_mul_vec(a, root->trial.Q, A);
        for (int i = 0; i < 3; i++) root->trial.a[i] += a[i], root->trial.al[i] += A[3 + i];
    }
    accelerations_of(tree, ddq);
    relative(tree, at->q, ddq, of_acceleration);
}
