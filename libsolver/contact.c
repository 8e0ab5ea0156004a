// Penalty contact: detection with the bounded-deformation tree, forces, and their matrix.
//
// A ball of the tree is kept for an obstacle when the distance of its centre is below its radius: a signed distance
// changes by no more than the way between two points, so what is left out has no sample below the surface. One descent
// serves up to 64 obstacles, each with a bit in a mask.
//
// The generalised force of f (axes of the frame) at y is G^T f, G = [I, -[y], U] of a free body, G = U of a held one.
// With the forces of contact.h the matrix is the sum over contacts of
//     G^T (w_n n n^T + w_t (I - n n^T)) G,   w_n = weight_K k + weight_D c,   w_t = weight_D mu f_n / sqrt(v_t^2 +
//     v_s^2):
// friction by its secant, the turning of n and y left out. It is symmetric and positive; it is gathered as B^T B over
// blocks of rows sqrt(w_n) n^T G and sqrt(w_t) t^T G.
#include "libsolver/contact_internal.h"

#include <stdint.h>

enum { ROW_BLOCK = 96 };

struct solver_contact {
    solver_contact_options options;
    solver_samples         samples; // in the order of the tree
    solver_bounds          tree;
    int                    obstacle_count;
    size_t                 obstacle_capacity, moved_capacity, load_capacity;
    solver_obstacle       *obstacles, *moved; // as given, and at the instant of the evaluation
    solver_contact_load   *loads;
    int                   *stack;      // nodes to visit
    uint64_t              *stack_mask; // obstacles that they may touch
    double                *rows;       // (6 + r) x ROW_BLOCK: rows of B, one after the other
    int                    row_count;
    double                 power;
    solver_contact_report  report;
};

// ---- life --------------------------------------------------------------------------------------------------------

solver_contact_options solver_contact_default_options(void) {
    return (solver_contact_options){.stiffness = 1e7, .damping = 1e4, .friction = 0.3, .slip_velocity = 1e-3};
}

fem_status solver_contact_check_options(const solver_contact_options *o) {
    const char *name = NULL, *rule = ">= 0";
    double      value = 0;
    if (!(o->stiffness > 0 && isfinite(o->stiffness)))
        name = "stiffness", value = o->stiffness, rule = "> 0";
    else if (!(o->damping >= 0 && isfinite(o->damping)))
        name = "damping", value = o->damping;
    else if (!(o->friction >= 0 && isfinite(o->friction)))
        name = "friction", value = o->friction;
    else if (!(o->slip_velocity > 0 && isfinite(o->slip_velocity)))
        name = "slip_velocity", value = o->slip_velocity, rule = "> 0";
    if (name) return fem_fail(FEM_BAD_INPUT, "contact.%s is %g, expected %s", name, value, rule);
    return FEM_OK;
}

static fem_status check_samples(const solver_samples *s) {
    if (s->count < 1 || s->r < 0)
        return fem_fail(FEM_BAD_INPUT, "contact: %d samples with %d modes, expected at least one sample", s->count,
                        s->r);
    for (int i = 0; i < s->count; i++)
        if (!solver_all_finite(3, s->X + 3 * (size_t)i) || !(s->area[i] > 0 && isfinite(s->area[i])) ||
            !solver_all_finite(3 * s->r, s->U + 3 * (size_t)i * (size_t)s->r))
            return fem_fail(FEM_BAD_INPUT, "contact: sample %d is not finite or has no area", i);
    return FEM_OK;
}

// The samples in the order of the tree, so that those of a leaf lie side by side.
static fem_status sort_samples(solver_contact *contact, const solver_samples *from) {
    solver_samples *to = &contact->samples;
    size_t          count = (size_t)from->count, r = (size_t)from->r;
    *to = (solver_samples){.count = from->count, .r = from->r};
    to->X = fem_alloc(count, 3 * sizeof(double));
    to->U = fem_alloc(count, 3 * r * sizeof(double));
    to->area = fem_alloc(count, sizeof(double));
    if (!to->X || !to->U || !to->area)
        return fem_fail(FEM_NO_MEMORY, "contact: %d samples with %d modes", from->count, from->r);
    for (size_t i = 0; i < count; i++) {
        size_t k = (size_t)contact->tree.order[i];
        to->area[i] = from->area[k];
        for (size_t j = 0; j < 3; j++) to->X[3 * i + j] = from->X[3 * k + j];
        for (size_t j = 0; j < 3 * r; j++) to->U[3 * r * i + j] = from->U[3 * r * k + j];
    }
    return FEM_OK;
}

fem_status solver_contact_create(solver_contact **result, const solver_samples *samples,
                                 const solver_contact_options *options) {
    fem_status      status = FEM_OK;
    solver_contact *contact = NULL;
    FEM_TRY(solver_contact_check_options(options));
    FEM_TRY(check_samples(samples));
    contact = fem_calloc(1, sizeof *contact);
    if (!contact) {
        status = fem_fail(FEM_NO_MEMORY, "contact: %d samples", samples->count);
        goto done;
    }
    contact->options = *options;
    FEM_TRY(solver_bounds_create(&contact->tree, samples));
    FEM_TRY(sort_samples(contact, samples));
    size_t depth = (size_t)contact->tree.depth + 1;
    contact->stack = fem_alloc(depth, sizeof *contact->stack);
    contact->stack_mask = fem_alloc(depth, sizeof *contact->stack_mask);
    contact->rows = fem_alloc(6 + (size_t)samples->r, ROW_BLOCK * sizeof(double));
    if (!contact->stack || !contact->stack_mask || !contact->rows) {
        status = fem_fail(FEM_NO_MEMORY, "contact: %d samples", samples->count);
        goto done;
    }
    *result = contact;
    contact = NULL;
done:
    solver_contact_destroy(contact);
    return status;
}

void solver_contact_destroy(solver_contact *contact) {
    if (!contact) return;
    solver_samples_destroy(&contact->samples);
    solver_bounds_destroy(&contact->tree);
    fem_free(contact->obstacles);
    fem_free(contact->moved);
    fem_free(contact->loads);
    fem_free(contact->stack);
    fem_free(contact->stack_mask);
    fem_free(contact->rows);
    fem_free(contact);
}

static fem_status check_obstacle(const solver_obstacle *o, int number) {
    if ((int)o->kind < 0 || (int)o->kind >= SOLVER_OBSTACLE_KINDS)
        return fem_fail(FEM_BAD_INPUT, "contact: obstacle %d is of kind %d, expected plane (0), box (1) or sphere (2)",
                        number, (int)o->kind);
    if (!solver_all_finite(3, o->position) || !solver_all_finite(3, o->velocity) || !solver_all_finite(3, o->angular))
        return fem_fail(FEM_BAD_INPUT, "contact: the motion of obstacle %d is not finite", number);
    if (!solver_is_rotation(o->axes))
        return fem_fail(FEM_BAD_INPUT, "contact: the axes of obstacle %d are not a rotation%s", number,
                        o->kind == SOLVER_PLANE ? "; a plane needs a normal" : "");
    for (int k = 0; k < (o->kind == SOLVER_BOX ? 3 : o->kind == SOLVER_SPHERE ? 1 : 0); k++)
        if (!(o->size[k] > 0 && isfinite(o->size[k])))
            return fem_fail(FEM_BAD_INPUT, "contact: a size of obstacle %d is %g, expected > 0", number, o->size[k]);
    return FEM_OK;
}

fem_status solver_contact_add(solver_contact *contact, const solver_obstacle *obstacle, int *number) {
    fem_status status = FEM_OK;
    size_t     needed = (size_t)contact->obstacle_count + 1;
    FEM_TRY(check_obstacle(obstacle, contact->obstacle_count));
    FEM_TRY(fem_grow((void **)&contact->obstacles, &contact->obstacle_capacity, needed, sizeof *contact->obstacles));
    FEM_TRY(fem_grow((void **)&contact->moved, &contact->moved_capacity, needed, sizeof *contact->moved));
    FEM_TRY(fem_grow((void **)&contact->loads, &contact->load_capacity, needed, sizeof *contact->loads));
    contact->obstacles[contact->obstacle_count] = *obstacle;
    contact->loads[contact->obstacle_count] = (solver_contact_load){0};
    if (number) *number = contact->obstacle_count;
    contact->obstacle_count++;
done:
    return status;
}

fem_status solver_contact_move(solver_contact *contact, int number, const solver_obstacle *obstacle) {
    if (number < 0 || number >= contact->obstacle_count)
        return fem_fail(FEM_BAD_INPUT, "contact: there is no obstacle %d, there are %d", number,
                        contact->obstacle_count);
    fem_status status = check_obstacle(obstacle, number);
    if (status == FEM_OK) contact->obstacles[number] = *obstacle;
    return status;
}

int                   solver_contact_modes(const solver_contact *contact) { return contact->samples.r; }
double                solver_contact_power(const solver_contact *contact) { return contact->power; }
solver_contact_report solver_contact_get_report(const solver_contact *contact) { return contact->report; }
solver_contact_load   solver_contact_get_load(const solver_contact *contact, int number) {
      bool known = number >= 0 && number < contact->obstacle_count;
      return known ? contact->loads[number] : (solver_contact_load){0};
}

// ---- forces ------------------------------------------------------------------------------------------------------

// What one evaluation hands down.
typedef struct contact_pass {
    solver_contact            *contact;
    const solver_contact_view *view;
    double                     weight_K, weight_D;
    double                    *f, *E;
    int                        n, lead; // size of f; numbers of the rigid motion in front of the modes: 6 or 0
} contact_pass;

static void to_world(const solver_contact_view *view, const double y[3], double x[3]) {
    if (!view->p) {
        for (int k = 0; k < 3; k++) x[k] = y[k];
        return;
    }
    mat3_mul_vec(x, view->Q, y);
    vec3_axpy(x, 1, view->p);
}

static void flush_rows(contact_pass *pass) {
    solver_contact *contact = pass->contact;
    dense_gemm(false, true, pass->n, pass->n, contact->row_count, 1, contact->rows, contact->rows, 1, pass->E);
    contact->row_count = 0;
}

// row of B: sqrt(weight) d^T G for a direction d in the axes of the frame
static void add_row(contact_pass *pass, const double y[3], const double *U, const double d[3], double weight) {
    solver_contact *contact = pass->contact;
    int             r = contact->samples.r;
    double          root = sqrt(weight), arm[3];
    double         *row = contact->rows + (size_t)pass->n * (size_t)contact->row_count++;
    if (pass->lead) {
        vec3_cross(arm, y, d); // -d^T [y] = (y x d)^T
        for (int k = 0; k < 3; k++) row[k] = root * d[k], row[3 + k] = root * arm[k];
    }
    for (int l = 0; l < r; l++) row[pass->lead + l] = root * (d[0] * U[l] + d[1] * U[r + l] + d[2] * U[2 * r + l]);
    if (contact->row_count == ROW_BLOCK) flush_rows(pass);
}

static void add_matrix(contact_pass *pass, const double y[3], const double *U, const double n[3], double w_n,
                       double w_t) {
    double t[3] = {0}, b[3];
    if (w_n > 0) add_row(pass, y, U, n, w_n);
    if (!(w_t > 0)) return;
    t[fabs(n[0]) < 0.6 ? 0 : 1] = 1;
    vec3_axpy(t, -vec3_dot(t, n), n);
    vec3_normalize(t);
    vec3_cross(b, n, t);
    add_row(pass, y, U, t, w_t);
    add_row(pass, y, U, b, w_t);
}

// f += G^T force; the obstacle feels the opposite
static void add_force(contact_pass *pass, const double y[3], const double *U, const double force[3]) {
    int    r = pass->contact->samples.r;
    double moment[3];
    if (pass->lead) {
        vec3_cross(moment, y, force);
        vec3_axpy(pass->f, 1, force);
        vec3_axpy(pass->f + 3, 1, moment);
    }
    for (int l = 0; l < r; l++)
        pass->f[pass->lead + l] += force[0] * U[l] + force[1] * U[r + l] + force[2] * U[2 * r + l];
}

// Velocity of a sample in world axes.
static void sample_velocity(const contact_pass *pass, const double y[3], const double *U, double v[3]) {
    const solver_contact_view *view = pass->view;
    int                        r = pass->contact->samples.r;
    double                     local[3] = {0};
    if (pass->lead) {
        vec3_cross(local, view->w, y);
        vec3_axpy(local, 1, view->v);
    }
    for (int k = 0; k < 3; k++)
        for (int l = 0; l < r; l++) local[k] += U[k * r + l] * view->dq[l];
    if (pass->lead)
        mat3_mul_vec(v, view->Q, local);
    else
        for (int k = 0; k < 3; k++) v[k] = local[k];
}

// One sample at y (frame), x (world), `depth` below the surface of an obstacle with normal n (world).
static void touch(contact_pass *pass, int sample, int number, const double y[3], const double x[3], double depth,
                  const double n[3]) {
    solver_contact               *contact = pass->contact;
    const solver_contact_options *o = &contact->options;
    const solver_obstacle        *obstacle = contact->moved + number;
    solver_contact_load          *load = contact->loads + number;
    const double                 *U = contact->samples.U + 3 * (size_t)sample * (size_t)contact->samples.r;
    double area = contact->samples.area[sample], arm[3], ground[3], v[3], force[3], torque[3], local[3], local_n[3];
    vec3_sub(arm, x, obstacle->position);
    vec3_cross(ground, obstacle->angular, arm);
    vec3_axpy(ground, 1, obstacle->velocity);
    sample_velocity(pass, y, U, v);
    vec3_axpy(v, -1, ground);
    double closing = vec3_dot(v, n), normal = area * (o->stiffness * depth - o->damping * closing), friction = 0;
    contact->report.contacts++;
    contact->report.kinds[obstacle->kind]++;
    contact->report.depth = fmax(contact->report.depth, depth);
    contact->report.energy += area * o->stiffness * depth * depth / 2;
    load->contacts++;
    if (normal <= 0) return; // leaves faster than the spring can push
    vec3_axpy(v, -closing, n);
    friction = o->friction * normal / sqrt(vec3_dot(v, v) + o->slip_velocity * o->slip_velocity);
    for (int k = 0; k < 3; k++) force[k] = normal * n[k] - friction * v[k];
    contact->power += vec3_dot(force, ground);
    vec3_axpy(load->force, -1, force);
    vec3_cross(torque, arm, force);
    vec3_axpy(load->torque, -1, torque);
    for (int k = 0; k < 3; k++) local[k] = force[k], local_n[k] = n[k];
    if (pass->lead) {
        mat3_mul_vec_t(local, pass->view->Q, force);
        mat3_mul_vec_t(local_n, pass->view->Q, n);
    }
    add_force(pass, y, U, local);
    if (pass->E)
        add_matrix(pass, y, U, local_n, area * (pass->weight_K * o->stiffness + pass->weight_D * o->damping),
                   pass->weight_D * friction);
}

// ---- detection ---------------------------------------------------------------------------------------------------

static void test_samples(contact_pass *pass, const solver_bounds_node *node, int first_obstacle, uint64_t mask) {
    solver_contact            *contact = pass->contact;
    const solver_contact_view *view = pass->view;
    int                        r = contact->samples.r;
    for (int i = node->first; i < node->first + node->count; i++) {
        const double *X = contact->samples.X + 3 * (size_t)i, *U = contact->samples.U + 3 * (size_t)i * (size_t)r;
        double        y[3], x[3], n[3];
        for (int k = 0; k < 3; k++) {
            y[k] = X[k] - (view->centre ? view->centre[k] : 0);
            for (int l = 0; l < r; l++) y[k] += U[k * r + l] * view->q[l];
        }
        to_world(view, y, x);
        contact->report.samples++;
        for (uint64_t left = mask; left; left &= left - 1) {
            int    number = first_obstacle + __builtin_ctzll(left);
            double distance = solver_obstacle_distance(contact->moved + number, x, n);
            if (distance < 0) touch(pass, i, number, y, x, -distance, n);
        }
    }
}

// Obstacles of the mask that the ball of a node may touch.
static uint64_t still_near(contact_pass *pass, int node, int first_obstacle, uint64_t mask) {
    const solver_contact *contact = pass->contact;
    double                ball[4], x[3], n[3];
    uint64_t              near = 0;
    solver_bounds_ball(&contact->tree, node, pass->view->q, ball);
    if (pass->view->centre) vec3_axpy(ball, -1, pass->view->centre);
    to_world(pass->view, ball, x);
    // what rounding may do to the place of a ball far from the origin
    double slack = 1e-13 * (fabs(x[0]) + fabs(x[1]) + fabs(x[2]));
    for (uint64_t left = mask; left; left &= left - 1) {
        int number = first_obstacle + __builtin_ctzll(left);
        if (solver_obstacle_distance(contact->moved + number, x, n) <= ball[3] + slack) near |= left & -left;
    }
    return near;
}

static void descend(contact_pass *pass, int first_obstacle, uint64_t all) {
    solver_contact *contact = pass->contact;
    int             height = 0;
    contact->stack[height] = 0, contact->stack_mask[height++] = all;
    while (height > 0) {
        int                       number = contact->stack[--height];
        const solver_bounds_node *node = contact->tree.nodes + number;
        uint64_t                  mask = still_near(pass, number, first_obstacle, contact->stack_mask[height]);
        contact->report.spheres++;
        if (!mask) continue;
        if (node->right < 0) {
            test_samples(pass, node, first_obstacle, mask);
            continue;
        }
        contact->stack[height] = node->right, contact->stack_mask[height++] = mask;
        contact->stack[height] = number + 1, contact->stack_mask[height++] = mask;
    }
}

// The obstacles after `elapsed` of the step.
static void move_obstacles(solver_contact *contact, double elapsed) {
    for (int i = 0; i < contact->obstacle_count; i++) {
        const solver_obstacle *from = contact->obstacles + i;
        solver_obstacle       *to = contact->moved + i;
        double                 angle[3], turn[9];
        *to = *from;
        vec3_axpy(to->position, elapsed, from->velocity);
        for (int k = 0; k < 3; k++) angle[k] = elapsed * from->angular[k];
        solver_rotation(angle, turn);
        mat3_mul(to->axes, turn, from->axes);
        contact->loads[i] = (solver_contact_load){0};
    }
}

void solver_contact_evaluate(solver_contact *contact, const solver_contact_view *view, double weight_K, double weight_D,
                             double *f, double *E) {
    solver_contact_report before = contact->report;
    int                   lead = view->p ? 6 : 0;
    contact_pass          pass = {.contact = contact,
                                  .view = view,
                                  .weight_K = weight_K,
                                  .weight_D = weight_D,
                                  .f = f,
                                  .E = E,
                                  .n = lead + contact->samples.r,
                                  .lead = lead};
    move_obstacles(contact, view->elapsed);
    contact->report = (solver_contact_report){.evaluations = before.evaluations + 1};
    contact->power = 0;
    contact->row_count = 0;
    for (int first = 0; first < contact->obstacle_count; first += 64) {
        int left = contact->obstacle_count - first;
        descend(&pass, first, left >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << left) - 1);
    }
    if (contact->row_count > 0) flush_rows(&pass);
    contact->report.total_spheres = before.total_spheres + contact->report.spheres;
    contact->report.total_contacts = before.total_contacts + contact->report.contacts;
}
