// The tree of an assembly, and where its vertices are.
#include "libsolver/assembly.h"

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
    *result = tree;
    tree = NULL;
done:
    fem_free(instances);
    solver_tree_destroy(tree);
    return status;
}

// ---- positions -----------------------------------------------------------------------------------------------------

// Displacements in the axes of the class: U q, or warped.
static void deform(const solver_class *c, const double *q, double *work, double *y) {
    if (c->basis.r == 0)
        memset(y, 0, (size_t)c->basis.n * sizeof *y);
    else if (c->kind == SOLVER_FORCES_WARPED)
        modes_warp_displacement(&c->warp, &c->basis, q, work, y);
    else
        dense_gemv_set(c->basis.n, c->basis.r, 1, c->basis.U, q, y);
}

// x = p + Q (X + y), v = dp + Q (w x (X + y) + U dq), both minus what they are at rest
static void place_vertex(const solver_frame_motion *frame, const double origin[3], const double X[3], const double y[3],
                         const double dy[3], double u[3], double *v) {
    double local[3] = {X[0] + y[0], X[1] + y[1], X[2] + y[2]}, rate[3];
    mat3_mul_vec(u, frame->Q, local);
    for (int i = 0; i < 3; i++) u[i] += frame->p[i] - origin[i] - X[i];
    if (!v) return;
    vec3_cross(rate, frame->w, local);
    for (int i = 0; i < 3; i++) rate[i] += dy[i];
    mat3_mul_vec(v, frame->Q, rate);
    for (int i = 0; i < 3; i++) v[i] += frame->v[i];
}

// Into the instance's own arrays, or (`whole`) those of its vertices that it owns into those of the mesh.
static void show_one(const solver_assembly *a, solver_tree *tree, int instance, bool whole, double *u, double *v) {
    const solver_class *c = a->classes[a->instances[instance].class_index];
    double             *y = a->work[instance], *dy = y + c->basis.n;
    solver_frame_motion frame;
    solver_tree_frame(tree, instance, &frame);
    deform(c, solver_tree_q(tree, instance), dy, y);
    if (c->basis.r > 0)
        dense_gemv_set(c->basis.n, c->basis.r, 1, c->basis.U, solver_tree_dq(tree, instance), dy);
    else
        memset(dy, 0, (size_t)c->basis.n * sizeof *dy);
    for (size_t k = 0; k < (size_t)c->mesh.vertex_count; k++) {
        size_t to = whole ? (size_t)a->local[instance][k] : k;
        if (!whole || a->owner[to] == instance)
            place_vertex(&frame, a->origin[instance], c->mesh.vertices + 3 * k, y + 3 * k, dy + 3 * k, u + 3 * to,
                         v ? v + 3 * to : NULL);
    }
}

void solver_assembly_show_instance(const solver_assembly *a, solver_tree *tree, int instance, double *u, double *v) {
    show_one(a, tree, instance, false, u, v);
}

typedef struct show_tasks {
    const solver_assembly *a;
    solver_tree           *tree;
    double                *u, *v;
} show_tasks;

static void show_task(void *context, int instance, int worker) {
    (void)worker;
    const show_tasks *t = context;
    show_one(t->a, t->tree, instance, true, t->u, t->v);
}

void solver_assembly_show(const solver_assembly *a, solver_tree *tree, double *u, double *v) {
    show_tasks          t = {.a = a, .tree = tree, .u = u, .v = v};
    solver_frame_motion first;
    for (int i = 0; i < a->vertex_count; i++)
        if (a->owner[i] < 0) {
            memset(u + 3 * (size_t)i, 0, 3 * sizeof *u);
            if (v) memset(v + 3 * (size_t)i, 0, 3 * sizeof *v);
        }
    solver_tree_frame(tree, 0, &first); // the pass over the tree; look-ups from here on
    fem_parallel_for(a->count, show_task, &t);
}
