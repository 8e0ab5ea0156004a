// The tree of an assembly, and where its vertices are.
#include "libsolver/assembly_internal.h"
#include "libsolver/tree_internal.h"

#include <string.h>

// ---- points and springs --------------------------------------------------------------------------------------------

fem_status solver_assembly_local_point(const solver_assembly *a, solver_tree *tree, int instance, int vertex,
                                       int *point) {
    const solver_class *c = a->classes[a->instances[instance].class_index];
    size_t              r = (size_t)c->basis.r, n = (size_t)c->basis.n;
    double             *rows = fem_alloc(3 * r, sizeof *rows);
    if (!rows) return fem_fail(FEM_NO_MEMORY, "no memory for a point of %zu modes", r);
    for (size_t i = 0; i < 3; i++)
        for (size_t l = 0; l < r; l++) rows[i * r + l] = c->basis.U[n * l + 3 * (size_t)vertex + i];
    fem_status status =
        solver_tree_add_point(tree, instance, c->mesh.vertices + 3 * (size_t)vertex, r > 0 ? rows : NULL, point);
    fem_free(rows);
    return status;
}

fem_status solver_assembly_point(const solver_assembly *a, solver_tree *tree, int vertex, int *point) {
    if (vertex < 0 || vertex >= a->vertex_count || a->owner[vertex] < 0)
        return fem_fail(FEM_BAD_INPUT, "vertex %d is in no domain", vertex);
    return solver_assembly_local_point(a, tree, a->owner[vertex], a->vertex[vertex], point);
}

static fem_status add_joints(const solver_assembly *a, solver_tree *tree) {
    fem_status status = FEM_OK;
    for (int k = 0; k < a->joint_count; k++) {
        const solver_joint     *joint = &a->joints[k];
        const solver_joint_end *from = &joint->ends[0], *to = &joint->ends[1];
        solver_spring           spring = {.b = -1, .stiffness = joint->stiffness, .damping = joint->damping};
        memcpy(spring.anchor, joint->anchor, sizeof spring.anchor);
        FEM_TRY(solver_tree_add_point(tree, from->instance, from->X, from->rows, &spring.a));
        if (to->instance >= 0) FEM_TRY(solver_tree_add_point(tree, to->instance, to->X, to->rows, &spring.b));
        FEM_TRY(solver_tree_add_spring(tree, &spring));
    }
done:
    return status;
}

void solver_assembly_place(const solver_assembly *a, const double rotation[9], const double translation[3],
                           const double velocity[3], const double spin[3], solver_frame_motion *motion) {
    double arm[3], turned[3], turn[3];
    *motion = (solver_frame_motion){0};
    vec3_sub(arm, a->origin[0], a->centre);
    mat3_mul_vec(turned, rotation, arm);
    vec3_cross(turn, spin, turned);
    memcpy(motion->Q, rotation, sizeof motion->Q);
    for (int i = 0; i < 3; i++) {
        motion->p[i] = a->centre[i] + translation[i] + turned[i];
        motion->v[i] = velocity[i] + turn[i];
        for (int k = 0; k < 3; k++) motion->w[i] += rotation[3 * k + i] * spin[k];
    }
}

fem_status solver_assembly_tree(solver_tree **result, const solver_assembly *a, bool driven,
                                const solver_tree_options *options) {
    fem_status            status = FEM_OK;
    solver_tree          *tree = NULL;
    solver_frame_motion   start;
    static const double   identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, zero[3] = {0};
    solver_tree_instance *instances = fem_copy(a->instances, (size_t)a->count, sizeof *instances);
    if (!instances) return fem_fail(FEM_NO_MEMORY, "no memory for %d domains", a->count);
    if (driven && a->held) instances[0].root = SOLVER_ROOT_DRIVEN;
    FEM_TRY(solver_tree_create(&tree, a->class_count, a->tree_classes, a->count, instances, options));
    solver_assembly_place(a, identity, zero, zero, zero, &start);
    if (instances[0].root != SOLVER_ROOT_DRIVEN) FEM_TRY(solver_tree_set_root(tree, 0, &start));
    FEM_TRY(add_joints(a, tree));
    FEM_TRY(assembly_damp(a, tree));
    *result = tree;
    tree = NULL;
done:
    fem_free(instances);
    solver_tree_destroy(tree);
    return status;
}

// ---- positions -----------------------------------------------------------------------------------------------------

static double *copies_u(const solver_assembly *a, int instance) { return a->copies + 3 * (size_t)a->first[instance]; }
static double *copies_v(const solver_assembly *a, int instance) {
    return a->copies + 3 * ((size_t)a->first[a->count] + (size_t)a->first[instance]);
}

// Displacements in the axes of the class: U q, or warped. U dq beside it.
static void deform(const solver_assembly *a, solver_tree *tree, int instance) {
    const solver_class *c = a->classes[a->instances[instance].class_index];
    const double       *q = solver_tree_q(tree, instance), *dq = solver_tree_dq(tree, instance);
    double             *y = copies_u(a, instance), *dy = copies_v(a, instance);
    if (c->basis.r == 0) {
        memset(y, 0, (size_t)c->basis.n * sizeof *y);
        memset(dy, 0, (size_t)c->basis.n * sizeof *dy);
        return;
    }
    if (c->kind == SOLVER_FORCES_WARPED)
        modes_warp_displacement(&c->warp, &c->basis, q, dy, y);
    else
        dense_gemv_set(c->basis.n, c->basis.r, 1, c->basis.U, q, y);
    dense_gemv_set(c->basis.n, c->basis.r, 1, c->basis.U, dq, dy);
}

// x = p + Q (X + y), v = dp + Q (w x (X + y) + dy), both minus what they are at rest; u may be y, and v dy.
static void place_vertex(const solver_frame_motion *frame, const double origin[3], const double X[3], const double y[3],
                         const double dy[3], double u[3], double v[3]) {
    double local[3] = {X[0] + y[0], X[1] + y[1], X[2] + y[2]}, rate[3];
    vec3_cross(rate, frame->w, local);
    for (int i = 0; i < 3; i++) rate[i] += dy[i];
    mat3_mul_vec(u, frame->Q, local);
    mat3_mul_vec(v, frame->Q, rate);
    for (int i = 0; i < 3; i++) u[i] += frame->p[i] - origin[i] - X[i], v[i] += frame->v[i];
}

// ---- warped parents ------------------------------------------------------------------------------------------------

// The rotation that takes the points x - x0 nearest to y - y0, from the sums S of (y - y0)(x - x0)^T: Horn's
// quaternion, which is at home with flat sets of points too.
static void nearest_rotation(const double S[9], double R[9]) {
    double N[16] = {S[0] + S[4] + S[8], 0, 0,           0,           S[7] - S[5],
                    S[0] - S[4] - S[8], 0, 0,           S[2] - S[6], S[1] + S[3],
                    S[4] - S[0] - S[8], 0, S[3] - S[1], S[2] + S[6], S[5] + S[7],
                    S[8] - S[0] - S[4]};
    double values[4];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++) N[4 * j + i] = N[4 * i + j];
    for (int i = 0; i < 9; i++) R[i] = i % 4 == 0;
    if (dense_symmetric_eigen(4, N, values) != FEM_OK) return;
    const double *k = N + 12; // of the largest eigenvalue
    double        w = k[0], x = k[1], y = k[2], z = k[3];
    const double  turned[9] = {1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),
                               2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                               2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)};
    memcpy(R, turned, sizeof turned);
}

// The frames of the solver hang on U q. Where the parent is shown warped, what hangs on it follows its warped
// interface: the rigid motion (R, t), in the parent's axes, that takes the interface as U q has it nearest to that.
static void follow_warp(const solver_assembly *a, solver_tree *tree, int child, double R[9], double t[3]) {
    int                 parent = a->instances[child].parent;
    const solver_class *c = a->classes[a->instances[parent].class_index];
    const double       *q = solver_tree_q(tree, parent), *shown = copies_u(a, parent);
    double              plain0[3] = {0}, warped0[3] = {0}, S[9] = {0}, turned[3];
    int                 begin = a->seam_start[child], end = a->seam_start[child + 1];
    for (int pass = 0; pass < 2; pass++) {
        for (int k = begin; k < end; k++) {
            size_t v = 3 * (size_t)a->seam_vertex[k];
            double plain[3], warped[3];
            for (size_t i = 0; i < 3; i++) {
                double X = c->mesh.vertices[v + i];
                plain[i] = X, warped[i] = X + shown[v + i];
                for (int l = 0; l < c->basis.r; l++)
                    plain[i] += c->basis.U[(size_t)c->basis.n * (size_t)l + v + i] * q[l];
            }
            if (pass == 0) {
                vec3_axpy(plain0, 1.0 / (end - begin), plain);
                vec3_axpy(warped0, 1.0 / (end - begin), warped);
                continue;
            }
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 3; j++) S[3 * i + j] += (warped[i] - warped0[i]) * (plain[j] - plain0[j]);
        }
    }
    nearest_rotation(S, R);
    mat3_mul_vec(turned, R, plain0);
    vec3_sub(t, warped0, turned);
}

// Frames as they are shown: those of the solver, but behind a warped parent. Parents stand before their children.
static void shown_frames(const solver_assembly *a, solver_tree *tree) {
    for (int i = 0; i < a->count; i++) {
        int                  parent = a->instances[i].parent;
        solver_frame_motion *shown = &a->shown[i], own;
        solver_tree_frame(tree, i, &own);
        *shown = own;
        if (!a->warped || parent < 0) continue;
        solver_frame_motion of_parent;
        const solver_class *c = a->classes[a->instances[parent].class_index];
        double R[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, t[3] = {0}, P[9], relative[9], arm[3], local[3], turned[3], turn[9];
        if (c->kind == SOLVER_FORCES_WARPED && c->basis.r > 0) follow_warp(a, tree, i, R, t);
        solver_tree_frame(tree, parent, &of_parent);
        mat3_mul(P, a->shown[parent].Q, R); // shown Q_i = shown Q_parent R (Q_parent^T Q_i)
        vec3_sub(arm, own.p, of_parent.p);
        mat3_mul_t_vec(local, of_parent.Q, arm);
        for (int r = 0; r < 3; r++)
            for (int k = 0; k < 3; k++) {
                relative[3 * r + k] = 0;
                for (int j = 0; j < 3; j++) relative[3 * r + k] += of_parent.Q[3 * j + r] * own.Q[3 * j + k];
            }
        mat3_mul(shown->Q, P, relative);
        mat3_mul_vec(turned, P, local);
        mat3_mul_vec(arm, a->shown[parent].Q, t);
        for (int k = 0; k < 3; k++) shown->p[k] = a->shown[parent].p[k] + arm[k] + turned[k];
        for (int r = 0; r < 3; r++) // what turns the frame turns its velocity
            for (int k = 0; k < 3; k++) turn[3 * r + k] = vec3_dot(shown->Q + 3 * r, own.Q + 3 * k);
        mat3_mul_vec(shown->v, turn, own.v);
    }
}

// ---- the whole -----------------------------------------------------------------------------------------------------

typedef struct show_tasks {
    const solver_assembly *a;
    solver_tree           *tree;
} show_tasks;

static void deform_task(void *context, int instance, int worker) {
    (void)worker;
    const show_tasks *t = context;
    deform(t->a, t->tree, instance);
}

static void place_task(void *context, int instance, int worker) {
    (void)worker;
    const solver_assembly *a = ((const show_tasks *)context)->a;
    const solver_class    *c = a->classes[a->instances[instance].class_index];
    double                *u = copies_u(a, instance), *v = copies_v(a, instance);
    for (size_t k = 0; k < 3 * (size_t)c->mesh.vertex_count; k += 3)
        place_vertex(&a->shown[instance], a->origin[instance], c->mesh.vertices + k, u + k, v + k, u + k, v + k);
}

static void show_copies(const solver_assembly *a, solver_tree *tree) {
    show_tasks          t = {.a = a, .tree = tree};
    solver_frame_motion first;
    solver_tree_frame(tree, 0, &first); // the pass over the tree; look-ups from here on
    fem_parallel_for(a->count, deform_task, &t);
    shown_frames(a, tree);
    fem_parallel_for(a->count, place_task, &t);
}

void solver_assembly_show_instance(const solver_assembly *a, solver_tree *tree, int instance, double *u, double *v) {
    size_t n = 3 * (size_t)(a->first[instance + 1] - a->first[instance]);
    show_copies(a, tree);
    if (u) memcpy(u, copies_u(a, instance), n * sizeof *u);
    if (v) memcpy(v, copies_v(a, instance), n * sizeof *v);
}

void solver_assembly_show(const solver_assembly *a, solver_tree *tree, double *u, double *v) {
    show_copies(a, tree);
    assembly_join(a, a->copies, u);
    if (v) assembly_join(a, a->copies + 3 * (size_t)a->first[a->count], v);
}
