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
//
// In an iteration the force must not be judged by the new place alone: a body that turns by the first answer leaves a
// stiff obstacle by more than the depth of its springs, the next evaluation has no contact and lets it through, and so
// on. A contact whose force in the linearised answer is a push is therefore kept in the next evaluation, whatever its
// sign there; one that would pull is let go (the active set of a linear complementarity problem).
#include "libsolver/contact_internal.h"

#include <float.h>
#include <stdint.h>

enum { ROW_BLOCK = 96 };

// A sample that feels an obstacle, and its force as a function of a change dA of the accelerations:
// normal - weight (rigid . da + arm . dal + modal . U dddq).
typedef struct contact_pair {
    int    sample, number;
    int    next; // another pair of the same sample, or -1
    double normal, weight;
    double modal[3], rigid[3], arm[3];
} contact_pair;

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
    contact_pair          *pairs; // of the last evaluation, as many as there are samples at most
    int                    pair_count;
    int                   *first_pair; // per sample: the first of its pairs that were kept, when `stamp` is that of now
    long                  *stamp;      // per sample: number of an evaluation
    double                 power, pull, noise;
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
    contact->pairs = fem_alloc((size_t)samples->count, sizeof *contact->pairs);
    contact->first_pair = fem_alloc((size_t)samples->count, sizeof *contact->first_pair);
    contact->stamp = fem_calloc((size_t)samples->count, sizeof *contact->stamp);
    if (!contact->stack || !contact->stack_mask || !contact->rows || !contact->pairs || !contact->first_pair ||
        !contact->stamp) {
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
    fem_free(contact->pairs);
    fem_free(contact->first_pair);
    fem_free(contact->stamp);
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

int solver_contact_modes(const solver_contact *contact) { return contact->samples.r; }
// A soft body resists with each mode by itself, k sum_s area_s |U_s,l|^2 / M_ll, a free one also as a whole, k A / m.
double solver_contact_rate(const solver_contact *contact, const double *M, double mass) {
    const solver_samples *s = &contact->samples;
    int                   r = s->r;
    double                rate = 0, area = 0;
    for (int i = 0; i < s->count; i++) area += s->area[i];
    if (mass > 0) rate = area / mass;
    for (int l = 0; l < r; l++) {
        double sum = 0;
        for (int i = 0; i < s->count; i++)
            for (int k = 0; k < 3; k++) {
                double U = s->U[(3 * (size_t)i + (size_t)k) * (size_t)r + (size_t)l];
                sum += s->area[i] * U * U;
            }
        rate = fmax(rate, sum / M[(size_t)l * (size_t)(r + 1)]);
    }
    return contact->options.stiffness * rate;
}

double                solver_contact_pull(const solver_contact *contact) { return contact->pull; }
double                solver_contact_noise(const solver_contact *contact) { return contact->noise; }
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

// A direction in the world, as the modes and as the rigid motion see it.
typedef struct contact_axes {
    double modal[3], rigid[3], arm[3]; // arm: lever x rigid
} contact_axes;

static void turn(const contact_pass *pass, const double lever[3], const double d[3], contact_axes *a) {
    for (int k = 0; k < 3; k++) a->modal[k] = d[k], a->rigid[k] = a->arm[k] = 0;
    if (!pass->lead) return;
    mat3_mul_vec_t(a->modal, pass->view->Q, d);
    mat3_mul_vec_t(a->rigid, pass->view->axes, d);
    vec3_cross(a->arm, lever, a->rigid);
}

// row of B: sqrt(weight) d^T G, which has -d^T [y] = (y x d)^T in the place of the turning
static void add_row(contact_pass *pass, const double *U, const contact_axes *a, double weight) {
    solver_contact *contact = pass->contact;
    int             r = contact->samples.r;
    double          root = sqrt(weight);
    double         *row = contact->rows + (size_t)pass->n * (size_t)contact->row_count++;
    for (int k = 0; k < 3 && pass->lead; k++) row[k] = root * a->rigid[k], row[3 + k] = root * a->arm[k];
    for (int l = 0; l < r; l++)
        row[pass->lead + l] = root * (a->modal[0] * U[l] + a->modal[1] * U[r + l] + a->modal[2] * U[2 * r + l]);
    if (contact->row_count == ROW_BLOCK) flush_rows(pass);
}

// rows for two directions across n
static void add_friction_rows(contact_pass *pass, const double lever[3], const double *U, const double n[3],
                              double weight) {
    double       t[3] = {0}, b[3];
    contact_axes a;
    t[fabs(n[0]) < 0.6 ? 0 : 1] = 1;
    vec3_axpy(t, -vec3_dot(t, n), n);
    vec3_normalize(t);
    vec3_cross(b, n, t);
    turn(pass, lever, t, &a);
    add_row(pass, U, &a, weight);
    turn(pass, lever, b, &a);
    add_row(pass, U, &a, weight);
}

// f += G^T force
static void add_force(contact_pass *pass, const double lever[3], const double *U, const double force[3]) {
    int          r = pass->contact->samples.r;
    contact_axes a;
    turn(pass, lever, force, &a);
    if (pass->lead) {
        vec3_axpy(pass->f, 1, a.rigid);
        vec3_axpy(pass->f + 3, 1, a.arm);
    }
    for (int l = 0; l < r; l++)
        pass->f[pass->lead + l] += a.modal[0] * U[l] + a.modal[1] * U[r + l] + a.modal[2] * U[2 * r + l];
}

static void remember_pair(solver_contact *contact, int sample, int number, const contact_axes *a, double normal,
                          double weight) {
    if (contact->pair_count == contact->samples.count) return;
    contact_pair *pair = contact->pairs + contact->pair_count++;
    *pair = (contact_pair){.sample = sample, .number = number, .next = -1, .normal = normal, .weight = weight};
    for (int k = 0; k < 3; k++) pair->modal[k] = a->modal[k], pair->rigid[k] = a->rigid[k], pair->arm[k] = a->arm[k];
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

// Where a sample is.
typedef struct contact_place {
    int    sample;
    double y[3], x[3]; // in the frame, in the world
} contact_place;

static void count_contact(solver_contact *contact, int number, double area, double depth) {
    contact->report.contacts++;
    contact->report.kinds[contact->moved[number].kind]++;
    contact->report.depth = fmax(contact->report.depth, depth);
    contact->report.energy += area * contact->options.stiffness * depth * depth / 2;
    contact->loads[number].contacts++;
}

// A sample `depth` below the surface of an obstacle with normal n (world); one that is kept may be above it or pull.
static void touch(contact_pass *pass, const contact_place *place, int number, double depth, const double n[3],
                  bool kept) {
    solver_contact               *contact = pass->contact;
    const solver_contact_options *o = &contact->options;
    const solver_obstacle        *obstacle = contact->moved + number;
    solver_contact_load          *load = contact->loads + number;
    const double                 *U = contact->samples.U + 3 * (size_t)place->sample * (size_t)contact->samples.r;
    double                        area = contact->samples.area[place->sample], damping = o->damping;
    double                        arm[3], ground[3], v[3], force[3], torque[3], lever[3] = {0};
    vec3_sub(arm, place->x, obstacle->position);
    vec3_cross(ground, obstacle->angular, arm);
    vec3_axpy(ground, 1, obstacle->velocity);
    sample_velocity(pass, place->y, U, v);
    vec3_axpy(v, -1, ground);
    if (depth > 0) count_contact(contact, number, area, depth);
    damping += o->stiffness * pass->view->lag;
    double closing = vec3_dot(v, n), normal = area * (o->stiffness * depth - damping * closing);
    if (normal <= 0 && !kept) return; // leaves faster than the spring can push
    contact->pull = fmax(contact->pull, -normal);
    vec3_axpy(v, -closing, n);
    double friction = o->friction * fmax(normal, 0) / fmax(vec3_norm(v), o->slip_velocity);
    for (int k = 0; k < 3; k++) force[k] = normal * n[k] - friction * v[k];
    contact->power += vec3_dot(force, ground);
    vec3_axpy(load->force, -1, force);
    vec3_cross(torque, arm, force);
    vec3_axpy(load->torque, -1, torque);
    if (pass->lead) { // x - p in the axes of the rigid motion
        vec3_sub(arm, place->x, pass->view->p);
        mat3_mul_vec_t(lever, pass->view->axes, arm);
    }
    add_force(pass, lever, U, force);
    double       weight = area * (pass->weight_K * o->stiffness + pass->weight_D * damping);
    contact_axes axes;
    turn(pass, lever, n, &axes);
    remember_pair(contact, place->sample, number, &axes, normal, weight);
    contact->noise += DBL_EPSILON * weight * vec3_norm(place->x) * dense_norm(3 * contact->samples.r, U);
    if (!pass->E) return;
    if (weight > 0) add_row(pass, U, &axes, weight);
    if (pass->weight_D * friction > 0) add_friction_rows(pass, lever, U, n, pass->weight_D * friction);
}

// ---- detection ---------------------------------------------------------------------------------------------------

static void place_sample(const contact_pass *pass, int sample, contact_place *place) {
    const solver_contact      *contact = pass->contact;
    const solver_contact_view *view = pass->view;
    int                        r = contact->samples.r;
    const double *X = contact->samples.X + 3 * (size_t)sample, *U = contact->samples.U + 3 * (size_t)sample * (size_t)r;
    place->sample = sample;
    for (int k = 0; k < 3; k++) {
        place->y[k] = X[k] - (view->centre ? view->centre[k] : 0);
        for (int l = 0; l < r; l++) place->y[k] += U[k * r + l] * view->q[l];
    }
    to_world(view, place->y, place->x);
}

// Was this pair evaluated already, because it was kept?
static bool is_kept(const solver_contact *contact, int sample, int number) {
    if (contact->stamp[sample] != contact->report.evaluations) return false;
    for (int i = contact->first_pair[sample]; i >= 0; i = contact->pairs[i].next)
        if (contact->pairs[i].number == number) return true;
    return false;
}

static void test_samples(contact_pass *pass, const solver_bounds_node *node, int first_obstacle, uint64_t mask) {
    solver_contact *contact = pass->contact;
    for (int i = node->first; i < node->first + node->count; i++) {
        contact_place place;
        double        n[3];
        place_sample(pass, i, &place);
        contact->report.samples++;
        for (uint64_t left = mask; left; left &= left - 1) {
            int    number = first_obstacle + __builtin_ctzll(left);
            double distance = solver_obstacle_distance(contact->moved + number, place.x, n);
            if (distance < 0 && !is_kept(contact, i, number)) touch(pass, &place, number, -distance, n, false);
        }
    }
}

// The pairs of the last evaluation that solver_contact_settle left; each writes itself to the place of an earlier one.
static void touch_kept(contact_pass *pass, int count) {
    solver_contact *contact = pass->contact;
    for (int i = 0; i < count; i++) {
        int           sample = contact->pairs[i].sample, number = contact->pairs[i].number;
        contact_place place;
        double        n[3];
        place_sample(pass, sample, &place);
        double distance = solver_obstacle_distance(contact->moved + number, place.x, n);
        touch(pass, &place, number, -distance, n, true);
        int written = contact->pair_count - 1;
        if (contact->stamp[sample] == contact->report.evaluations)
            contact->pairs[written].next = contact->first_pair[sample];
        contact->first_pair[sample] = written;
        contact->stamp[sample] = contact->report.evaluations;
    }
}

void solver_contact_settle(solver_contact *contact, const double *rigid, const double *modes) {
    static const double still[6] = {0};
    int                 count = 0, r = contact->samples.r;
    if (!rigid) rigid = still;
    for (int i = 0; i < contact->pair_count; i++) {
        const contact_pair *pair = contact->pairs + i;
        const double       *U = contact->samples.U + 3 * (size_t)pair->sample * (size_t)r;
        double              way = vec3_dot(pair->rigid, rigid) + vec3_dot(pair->arm, rigid + 3);
        for (int k = 0; k < 3; k++) way += pair->modal[k] * dense_dot(r, U + k * r, modes);
        if (pair->normal - pair->weight * way > 0) contact->pairs[count++] = *pair;
    }
    contact->pair_count = count;
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
    contact->power = contact->pull = contact->noise = 0;
    contact->row_count = 0;
    int kept = view->again ? contact->pair_count : 0;
    contact->pair_count = 0;
    touch_kept(&pass, kept);
    for (int first = 0; first < contact->obstacle_count; first += 64) {
        int left = contact->obstacle_count - first;
        descend(&pass, first, left >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << left) - 1);
    }
    if (contact->row_count > 0) flush_rows(&pass);
    contact->report.total_spheres = before.total_spheres + contact->report.spheres;
    contact->report.total_contacts = before.total_contacts + contact->report.contacts;
}
