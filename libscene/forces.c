// Loads and prescribed motions of a scene at a time.
#include "libscene/internal.h"

#include <math.h>
#include <string.h>

double scene_load_factor(const scene_action *action, double time) {
    if (time < action->start) return 0;
    if (isinf(time)) return 1; // statics
    double up = action->ramp > 0 ? fmin((time - action->start) / action->ramp, 1) : 1;
    if (time <= action->end) return up;
    double reached = action->ramp > 0 ? fmin((action->end - action->start) / action->ramp, 1) : 1;
    double down = action->ramp > 0 ? fmax(1 - (time - action->end) / action->ramp, 0) : 0;
    return fmin(reached, down);
}

// Where the motion is at a time: between the keyframes around it, at rest up to time 0, at the last one for ever after.
scene_keyframe scene_move_at(const scene_move *move, double time) {
    static const scene_keyframe rest = {0};
    const scene_keyframe       *from = &rest, *to = move->keyframes;
    int                         next = 0;
    if (time < 0) return rest; // what differences at the start look back to
    while (next < move->count && move->keyframes[next].time <= time) from = &move->keyframes[next++];
    if (next == move->count) return *from;
    to = &move->keyframes[next];
    double s = (time - from->time) / (to->time - from->time);
    if (move->smooth) s = s * s * (3 - 2 * s);
    scene_keyframe at = {.time = time};
    for (int i = 0; i < 3; i++) {
        at.translation[i] = (1 - s) * from->translation[i] + s * to->translation[i];
        at.rotation[i] = (1 - s) * from->rotation[i] + s * to->rotation[i];
    }
    return at;
}

// The pose of a driven root, as differences over a step tell it: a jump of the velocity at a keyframe becomes the
// acceleration of one step, and the body feels all of it.
static void drive_pose(const scene_move *move, const double origin[3], const double turned[9], double time, double p[3],
                       double Q[9]) {
    scene_keyframe at = scene_move_at(move, time);
    double         R[9], arm[3], moved[3];
    mat3_exp(R, at.rotation);
    mat3_mul(Q, R, turned);
    vec3_sub(arm, origin, move->centre);
    mat3_mul_vec(moved, R, arm);
    for (int i = 0; i < 3; i++) p[i] = move->centre[i] + moved[i] + at.translation[i];
}

// w h = log(Q(t - h/2)^T Q(t + h/2)), in the axes of the root
static void drive_spin(const scene_move *move, const double origin[3], const double turned[9], double time, double h,
                       double w[3]) {
    double p[3], before[9], after[9], D[9];
    drive_pose(move, origin, turned, time - h / 2, p, before);
    drive_pose(move, origin, turned, time + h / 2, p, after);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            D[3 * i + j] = 0;
            for (int k = 0; k < 3; k++) D[3 * i + j] += before[3 * k + i] * after[3 * k + j];
        }
    double axis[3] = {(D[7] - D[5]) / 2, (D[2] - D[6]) / 2, (D[3] - D[1]) / 2}, sine = vec3_norm(axis);
    double cosine = (D[0] + D[4] + D[8] - 1) / 2, angle = atan2(sine, cosine), factor = sine > 1e-9 ? angle / sine : 1;
    for (int i = 0; i < 3; i++) w[i] = factor * axis[i] / h;
}

void scene_drive_at(const scene_move *move, const double origin[3], const double turned[9], double h, double time,
                    solver_frame_motion *motion) {
    double before[3], after[3], far_before[3], far_after[3], Q[9], w[2][3];
    drive_pose(move, origin, turned, time, motion->p, motion->Q);
    drive_pose(move, origin, turned, time - h / 2, before, Q);
    drive_pose(move, origin, turned, time + h / 2, after, Q);
    drive_pose(move, origin, turned, time - h, far_before, Q);
    drive_pose(move, origin, turned, time + h, far_after, Q);
    drive_spin(move, origin, turned, time, h, motion->w);
    drive_spin(move, origin, turned, time - h / 2, h, w[0]);
    drive_spin(move, origin, turned, time + h / 2, h, w[1]);
    for (int i = 0; i < 3; i++) {
        motion->v[i] = (after[i] - before[i]) / h;
        motion->a[i] = (far_after[i] - 2 * motion->p[i] + far_before[i]) / (h * h);
        motion->al[i] = (w[1][i] - w[0][i]) / h;
    }
}

// u = R (X - c) + c + t - X
static void displace(const double R[9], const double centre[3], const double translation[3], const double X[3],
                     double u[3]) {
    double arm[3], turned[3];
    vec3_sub(arm, X, centre);
    mat3_mul_vec(turned, R, arm);
    for (int i = 0; i < 3; i++) u[i] = turned[i] - arm[i] + translation[i];
}

void scene_move_point(const scene_move *move, double time, const double X[3], double displacement[3]) {
    scene_keyframe at = scene_move_at(move, time);
    double         R[9];
    mat3_exp(R, at.rotation);
    displace(R, move->centre, at.translation, X, displacement);
}

void scene_fixed_dofs(const scene *s, unsigned char *fixed) {
    const scene_part *part = &s->parts[s->object];
    memset(fixed, 0, 3 * (size_t)part->mesh.vertex_count);
    for (int i = 0; i < part->fixed.count; i++) memset(fixed + 3 * (size_t)part->fixed.items[i], 1, 3);
    for (int a = 0; a < s->action_count; a++)
        for (int i = 0; s->actions[a].kind == SCENE_MOVE && i < s->actions[a].load.on.count; i++)
            memset(fixed + 3 * (size_t)s->actions[a].load.on.items[i], 1, 3);
}

void scene_forces_destroy(scene_forces *forces) {
    fem_free(forces->gravity);
    fem_free(forces->loads);
    fem_free(forces->total);
    fem_free(forces->motion);
    *forces = (scene_forces){0};
}

// f = M a at the vertices that are named, M with its rows summed up.
static fem_status add_body_load(const scene_loading *load, const fem_body *body, double *force) {
    double *mass = fem_calloc((size_t)fem_body_mesh(body)->vertex_count, sizeof *mass);
    if (!mass) return fem_fail(FEM_NO_MEMORY, "no memory for a body load");
    fem_body_vertex_masses(body, mass);
    for (int k = 0; k < load->on.count; k++) {
        int v = load->on.items[k];
        vec3_axpy(force + 3 * (size_t)v, mass[v], load->vector);
    }
    fem_free(mass);
    return FEM_OK;
}

fem_status scene_load_force(const scene_loading *load, const fem_body *body, double *force) {
    const fem_mesh *mesh = fem_body_mesh(body);
    double          area;
    if (load->kind == SCENE_ACCELERATION) return add_body_load(load, body, force);
    if (load->kind == SCENE_TRACTION)
        return solver_add_surface_load(mesh, load->on.count, load->on.items, load->vector, 0, force, &area);
    if (load->kind == SCENE_PRESSURE)
        return solver_add_surface_load(mesh, load->on.count, load->on.items, NULL, load->vector[0], force, &area);
    solver_add_vertex_force(load->on.count, load->on.items, load->vector, force);
    return FEM_OK;
}

bool scene_is_load(scene_action_kind kind) {
    return kind == SCENE_FORCE || kind == SCENE_TRACTION || kind == SCENE_PRESSURE || kind == SCENE_ACCELERATION;
}

solver_obstacle scene_obstacle_at(const scene_obstacle *o, double from, double to) {
    scene_keyframe  a = scene_move_at(&o->move, from), b = scene_move_at(&o->move, to);
    solver_obstacle moved = o->shape;
    double          R[9];
    mat3_exp(R, a.rotation);
    mat3_mul(moved.axes, R, o->shape.axes);
    vec3_axpy(moved.position, 1, a.translation);
    for (int k = 0; k < 3; k++) {
        moved.velocity[k] = (b.translation[k] - a.translation[k]) / (to - from);
        moved.angular[k] = (b.rotation[k] - a.rotation[k]) / (to - from); // keyframes turn about one axis
    }
    return moved;
}

void scene_contact_force(const solver_contact *contact, int obstacles, double force[3]) {
    for (int k = 0; k < obstacles; k++) vec3_axpy(force, -1, solver_contact_get_load(contact, k).force);
}

fem_status scene_forces_create(scene_forces *forces, const scene *s, const fem_body *body) {
    fem_status      status = FEM_OK;
    const fem_mesh *mesh = &s->parts[s->object].mesh;
    size_t          n = 3 * (size_t)mesh->vertex_count;
    scene_forces    f = {.n = (int)n};
    f.gravity = fem_calloc(n, sizeof *f.gravity);
    f.loads = fem_calloc(n * (size_t)s->action_count, sizeof *f.loads);
    f.total = fem_calloc(n, sizeof *f.total);
    f.motion = fem_calloc(n, sizeof *f.motion);
    if (!f.gravity || !f.loads || !f.total || !f.motion) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d loads on %d vertices", s->action_count, mesh->vertex_count);
        goto done;
    }
    if (vec3_norm(s->gravity) > 0) FEM_TRY(solver_add_gravity(body, s->gravity, f.gravity));
    for (int i = 0; i < s->action_count; i++) {
        if (scene_is_load(s->actions[i].kind))
            FEM_TRY(scene_load_force(&s->actions[i].load, body, f.loads + n * (size_t)i));
    }
    *forces = f;
    f = (scene_forces){0};
done:
    scene_forces_destroy(&f);
    return status;
}

void scene_forces_at(scene_forces *forces, const scene *s, double time) {
    const fem_mesh *mesh = &s->parts[s->object].mesh;
    memcpy(forces->total, forces->gravity, (size_t)forces->n * sizeof *forces->total);
    for (int i = 0; i < s->action_count; i++) {
        const scene_action *a = &s->actions[i];
        double              factor = scene_is_load(a->kind) ? scene_load_factor(a, time) : 0;
        if (factor != 0) dense_axpy(forces->n, factor, forces->loads + (size_t)forces->n * (size_t)i, forces->total);
        if (a->kind != SCENE_MOVE) continue;
        scene_keyframe at = scene_move_at(&a->move, time);
        double         R[9];
        mat3_exp(R, at.rotation);
        for (int k = 0; k < a->load.on.count; k++) {
            size_t v = 3 * (size_t)a->load.on.items[k];
            displace(R, a->move.centre, at.translation, mesh->vertices + v, forces->motion + v);
        }
    }
}
