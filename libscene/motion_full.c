// Full-space statics and dynamics of a scene.
#include "libscene/internal.h"
#include "libscene/motion.h"

#include <math.h>
#include <string.h>

typedef struct full_motion {
    scene_motion base;
    const scene *s;
    solver_full *solver;
    scene_forces forces;
} full_motion;

static void destroy(scene_motion *motion) {
    full_motion *m = (full_motion *)motion;
    solver_full_destroy(m->solver);
    scene_forces_destroy(&m->forces);
    fem_free(m);
}

static void show(scene_motion *motion) {
    const solver_state *state = solver_full_state(((full_motion *)motion)->solver);
    motion->time = state->time;
    motion->u = state->u;
    motion->v = state->v;
}

static void apply_loads(full_motion *m, double time) {
    scene_forces_at(&m->forces, m->s, time);
    solver_full_set_load(m->solver, m->forces.total);
    solver_full_prescribe(m->solver, m->forces.motion);
}

static fem_status equilibrium(scene_motion *motion, const fem_progress *progress) {
    full_motion *m = (full_motion *)motion;
    apply_loads(m, INFINITY);
    return solver_full_static(m->solver, progress);
}

static fem_status step(scene_motion *motion, double time) {
    full_motion *m = (full_motion *)motion;
    apply_loads(m, time);
    fem_status status = solver_full_step(m->solver);
    motion->time = solver_full_state(m->solver)->time;
    return status;
}

static void energies(const scene_motion *motion, solver_energies *e) {
    solver_full_energies(((const full_motion *)motion)->solver, e);
}

static void report(const scene_motion *motion, scene_result *result) {
    result->solver = solver_full_report(((const full_motion *)motion)->solver);
}

static size_t state_size(const scene_motion *motion) {
    return solver_full_state_size(((const full_motion *)motion)->solver);
}

static void save(const scene_motion *motion, double *numbers) {
    solver_full_save_state(((const full_motion *)motion)->solver, numbers);
}

static fem_status restore(scene_motion *motion, int steps, const double *numbers) {
    full_motion *m = (full_motion *)motion;
    fem_status   status = solver_full_restore_state(m->solver, numbers);
    if (status == FEM_OK) apply_loads(m, steps * m->s->solver.time_step);
    return status;
}

// v = velocity + spin x (X - centre of mass)
static fem_status start_moving(full_motion *m, const fem_body *body) {
    const scene    *s = m->s;
    const fem_mesh *mesh = fem_body_mesh(body);
    size_t          count = (size_t)mesh->vertex_count;
    double *mass = fem_calloc(count, sizeof *mass), *v = fem_calloc(3 * count, sizeof *v), centre[3] = {0}, total = 0;
    fem_status status = FEM_OK;
    if (!mass || !v) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the velocities of %zu vertices", count);
        goto done;
    }
    fem_body_vertex_masses(body, mass);
    for (size_t i = 0; i < count; i++) vec3_axpy(centre, mass[i], mesh->vertices + 3 * i), total += mass[i];
    for (int k = 0; k < 3; k++) centre[k] /= total;
    for (size_t i = 0; i < count; i++) {
        double arm[3];
        if (!(mass[i] > 0)) continue; // a vertex without element stays
        vec3_sub(arm, mesh->vertices + 3 * i, centre);
        vec3_cross(v + 3 * i, s->spin, arm);
        vec3_axpy(v + 3 * i, 1, s->velocity);
    }
    status = solver_full_set_state(m->solver, 0, NULL, v);
done:
    fem_free(mass);
    fem_free(v);
    return status;
}

fem_status scene_motion_full(scene_motion **motion, const scene *s, const fem_body *body, const unsigned char *fixed) {
    fem_status   status = FEM_OK;
    full_motion *m = fem_calloc(1, sizeof *m);
    if (!m) return fem_fail(FEM_NO_MEMORY, "no memory for a run");
    m->s = s;
    m->base = (scene_motion){.equilibrium = equilibrium,
                             .step = step,
                             .show = show,
                             .energies = energies,
                             .report = report,
                             .destroy = destroy,
                             .state_size = state_size,
                             .save = save,
                             .restore = restore};
    FEM_TRY(scene_forces_create(&m->forces, s, body));
    FEM_TRY(solver_full_create(&m->solver, body, fixed, &s->solver));
    if (vec3_norm(s->velocity) > 0 || vec3_norm(s->spin) > 0) FEM_TRY(start_moving(m, body));
    scene_forces_at(&m->forces, s, 0); // for the energies of the first row
    solver_full_set_load(m->solver, m->forces.total);
    *motion = &m->base;
    m = NULL;
done:
    if (m) destroy(&m->base);
    return status;
}
