// A scene's body in the modes of its part: held, or free with a rigid motion of its own.
// Loads are projected once, so that a step costs what the modes cost and not what the mesh does.
#include "libscene/class.h"
#include "libscene/internal.h"
#include "libscene/motion.h"
#include "libscene/stitching.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct reduced_motion {
    scene_motion    base;
    const scene    *s;
    const fem_mesh *mesh;
    const fem_body *body;
    scene_class    *first;       // the class of the part
    scene_class *class;          // that the body has now: the same, or its own after a stitch
    solver_inertia      inertia; // of a free body
    solver_reduced     *held;    // one of these two
    solver_free        *free;
    solver_contact     *contact;   // NULL without obstacles
    double             *gravity;   // held: r, U^T f
    double             *weight;    // held, where materials change: r per region, gravity at density 1
    double             *density;   // per region, where materials change
    double             *loads;     // held: r per action, U^T f in full
    double             *load;      // held: r, of the present time
    bool               *changed;   // per action: this change of material has been made
    double             *M;         // r x r, after a change of density
    double             *u, *v;     // 3 per vertex
    double             *row;       // 3 x r: rows of the basis at a vertex
    scene_forces        forces;    // free: loads as forces at vertices
    scene_stitching    *stitching; // NULL: the body stays as it is
    double              stitched;  // up to this time its changes are made
    double             *state;     // with it: 2 x 3 per vertex, displacements and velocities at the last change
    int                 carries; // the change, from 1, whose class has columns for what its modes lack of that; 0: none
    size_t              change_room;
    const fem_progress *progress;
    char              **notes;
} reduced_motion;

static void destroy(scene_motion *motion) {
    reduced_motion *m = (reduced_motion *)motion;
    solver_reduced_destroy(m->held);
    solver_free_destroy(m->free);
    solver_contact_destroy(m->contact);
    solver_inertia_destroy(&m->inertia);
    if (m->class != m->first) scene_class_destroy(m->class);
    scene_class_destroy(m->first);
    scene_stitching_destroy(m->stitching);
    for (int i = 0; i < m->base.change_count; i++) scene_change_destroy(&m->base.changes[i]);
    fem_free(m->base.changes);
    fem_free(m->gravity), fem_free(m->weight), fem_free(m->density), fem_free(m->loads), fem_free(m->load),
        fem_free(m->changed);
    fem_free(m->M), fem_free(m->u), fem_free(m->v), fem_free(m->row), fem_free(m->state);
    scene_forces_destroy(&m->forces);
    fem_free(m);
}

// ---- state -------------------------------------------------------------------------------------------------------

static void show_held(reduced_motion *m) {
    const solver_coordinates *state = solver_reduced_state(m->held);
    const modes_basis        *basis = &m->class->basis;
    dense_gemv_set(basis->n, basis->r, 1, basis->U, state->q, m->u);
    dense_gemv_set(basis->n, basis->r, 1, basis->U, state->dq, m->v);
}

// u = p + Q y - X and v = v_p + Q (w x y + U dq), y = X - c + U q
static void show_free(reduced_motion *m) {
    const solver_motion *state = solver_free_state(m->free);
    const modes_basis   *basis = &m->class->basis;
    dense_gemv_set(basis->n, basis->r, 1, basis->U, state->q, m->u);
    dense_gemv_set(basis->n, basis->r, 1, basis->U, state->dq, m->v);
    for (int i = 0; i < m->mesh->vertex_count; i++) {
        const double *X = m->mesh->vertices + 3 * (size_t)i;
        double       *u = m->u + 3 * (size_t)i, *v = m->v + 3 * (size_t)i, y[3], turned[3], rate[3];
        for (int k = 0; k < 3; k++) y[k] = X[k] - state->centre[k] + u[k];
        vec3_cross(rate, state->w, y);
        vec3_axpy(rate, 1, v);
        mat3_mul_vec(turned, state->Q, y);
        mat3_mul_vec(v, state->Q, rate);
        for (int k = 0; k < 3; k++) u[k] = state->p[k] + turned[k] - X[k], v[k] += state->v[k];
    }
}

static void show(scene_motion *motion) {
    reduced_motion *m = (reduced_motion *)motion;
    if (m->held)
        show_held(m);
    else
        show_free(m);
}

static scene_limb limb(const scene_motion *motion, int index) {
    (void)index;
    const reduced_motion *m = (const reduced_motion *)motion;
    const modes_basis    *basis = &m->class->basis;
    return (scene_limb){.name = m->s->parts[m->s->object].name, .mesh = m->mesh, .r = basis->r, .U = basis->U};
}

// A free body stands at p + Q (X - c + U q).
static const double *pose(const scene_motion *motion, int index, scene_pose *to) {
    (void)index;
    const reduced_motion *m = (const reduced_motion *)motion;
    double                turned[3];
    *to = (scene_pose){.Q = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    if (m->held) return solver_reduced_state(m->held)->q;
    const solver_motion *state = solver_free_state(m->free);
    memcpy(to->Q, state->Q, sizeof to->Q);
    mat3_mul_vec(turned, state->Q, state->centre);
    vec3_sub(to->p, state->p, turned);
    return state->q;
}

static void energies(const scene_motion *motion, solver_energies *e) {
    const reduced_motion *m = (const reduced_motion *)motion;
    if (m->held) {
        solver_reduced_energies(m->held, e);
        return;
    }
    solver_motion_energies of_motion;
    solver_free_energies(m->free, &of_motion);
    *e = (solver_energies){.kinetic = of_motion.kinetic, .strain = of_motion.strain, .load = of_motion.potential};
}

static void report(const scene_motion *motion, scene_result *result) {
    const reduced_motion *m = (const reduced_motion *)motion;
    result->modes = m->class->basis.r;
    result->cached = m->class->cached;
    result->seconds_modes = m->class->seconds_modes;
    result->seconds_forces = m->class->seconds_forces;
    result->training = m->class->training;
    result->step = m->held ? solver_reduced_report(m->held) : solver_free_report(m->free);
    result->solver.newton_iterations = result->step.newton_iterations;
    result->solver.residual = result->step.residual;
    if (m->contact) result->contact = solver_contact_get_report(m->contact);
    if (m->contact) scene_contact_force(m->contact, m->s->obstacle_count, result->contact_force);
}

// ---- what happens at a time ----------------------------------------------------------------------------------------

// The scene gives each region its own material when some change; a region without elements has no group.
static fem_status set_region_material(reduced_motion *m, const scene_action *a) {
    fem_status status = FEM_OK;
    for (int region = 0, group = 0; region < m->mesh->region_count; region++) {
        bool used = false;
        for (int e = 0; e < m->mesh->element_count && !used; e++) used = m->mesh->region[e] == region;
        if (used && (a->region < 0 || a->region == region)) {
            FEM_TRY(cubature_polynomial_set_material(&m->class->polynomial, group, &a->material));
            m->density[region] = a->material.density;
        }
        group += used;
    }
done:
    return status;
}

// gravity = sum over regions of density x weight
static void sum_weights(reduced_motion *m) {
    int r = m->class->basis.r;
    memset(m->gravity, 0, (size_t)r * sizeof *m->gravity);
    for (int region = 0; region < m->mesh->region_count; region++)
        dense_axpy(r, m->density[region], m->weight + (size_t)region * (size_t)r, m->gravity);
}

static fem_status change_materials(reduced_motion *m, double time) {
    fem_status status = FEM_OK;
    bool       any = false;
    for (int i = 0; i < m->s->action_count; i++) {
        const scene_action *a = &m->s->actions[i];
        if (a->kind != SCENE_MATERIAL || m->changed[i] || time < a->start) continue;
        FEM_TRY(set_region_material(m, a));
        m->changed[i] = any = true;
    }
    if (!any) return FEM_OK;
    if (m->free) return solver_free_changed(m->free, NULL);                                 // the density is as it was
    if (m->s->solver.mass == FEM_MASS_LUMPED) return solver_reduced_changed(m->held, NULL); // as well
    sum_weights(m);
    cubature_polynomial_mass(&m->class->polynomial, m->M);
    FEM_TRY(solver_reduced_changed(m->held, m->M));
done:
    return status;
}

static fem_status move_obstacles(reduced_motion *m, double from, double to) {
    fem_status status = FEM_OK;
    for (int i = 0; i < m->s->obstacle_count; i++) {
        if (m->s->obstacles[i].move.count == 0) continue;
        solver_obstacle moved = scene_obstacle_at(&m->s->obstacles[i], from, to);
        FEM_TRY(solver_contact_move(m->contact, i, &moved));
    }
done:
    return status;
}

static void load_held(reduced_motion *m, double time) {
    int r = m->class->basis.r;
    memcpy(m->load, m->gravity, (size_t)r * sizeof *m->load);
    for (int i = 0; i < m->s->action_count; i++) {
        double factor = scene_is_load(m->s->actions[i].kind) ? scene_load_factor(&m->s->actions[i], time) : 0;
        if (factor != 0) dense_axpy(r, factor, m->loads + (size_t)i * (size_t)r, m->load);
    }
    solver_reduced_set_load(m->held, m->load);
}

// Dead loads of a free body act at their vertices, so that they turn and move it too.
static fem_status load_free(reduced_motion *m, double time) {
    fem_status         status = FEM_OK;
    const modes_basis *basis = &m->class->basis;
    solver_free_clear_loads(m->free);
    for (int i = 0; i < m->s->action_count; i++) {
        const scene_action *a = &m->s->actions[i];
        double              factor = scene_is_load(a->kind) ? scene_load_factor(a, time) : 0;
        const double       *loads = m->forces.loads + (size_t)basis->n * (size_t)i;
        if (factor == 0) continue;
        for (int k = 0; k < a->load.on.count; k++) {
            size_t v = 3 * (size_t)a->load.on.items[k];
            double force[3] = {factor * loads[v], factor * loads[v + 1], factor * loads[v + 2]};
            for (int c = 0; c < 3; c++)
                for (int l = 0; l < basis->r; l++)
                    m->row[c * basis->r + l] = basis->U[(size_t)l * (size_t)basis->n + v + (size_t)c];
            FEM_TRY(solver_free_add_force(m->free, m->mesh->vertices + v, m->row, force));
        }
    }
done:
    return status;
}

static fem_status make_changes(reduced_motion *m, double time);
static fem_status go_home(reduced_motion *m);

static fem_status step(scene_motion *motion, double time) {
    fem_status      status = FEM_OK;
    reduced_motion *m = (reduced_motion *)motion;
    FEM_TRY(move_obstacles(m, motion->time, time));
    FEM_TRY(change_materials(m, time));
    FEM_TRY(make_changes(m, time));
    if (m->held) {
        load_held(m, time);
        FEM_TRY(solver_reduced_step(m->held));
        FEM_TRY(go_home(m));
    } else {
        FEM_TRY(load_free(m, time));
        FEM_TRY(solver_free_step(m->free));
    }
    motion->time = time;
done:
    return status;
}

// ---- checkpoints ---------------------------------------------------------------------------------------------------

// Of a stitched body also the state at its last change, on which its basis depends; its size is that of the present
// class.
static size_t change_size(const reduced_motion *m) { return m->stitching ? 1 + 2 * (size_t)m->class->basis.n : 0; }

static size_t state_size(const scene_motion *motion) {
    const reduced_motion *m = (const reduced_motion *)motion;
    return change_size(m) + (m->held ? solver_reduced_state_size(m->held) : solver_free_state_size(m->free));
}

static void save(const scene_motion *motion, double *numbers) {
    const reduced_motion *m = (const reduced_motion *)motion;
    if (m->stitching) {
        numbers[0] = m->carries;
        memcpy(numbers + 1, m->state, (change_size(m) - 1) * sizeof *numbers);
    }
    if (m->held)
        solver_reduced_save_state(m->held, numbers + change_size(m));
    else
        solver_free_save_state(m->free, numbers);
}

static fem_status make_change(reduced_motion *m, double time, const double *state, bool carry);

// The changes up to a time, each as it was made: the last one from the state that it had then.
static fem_status repeat(scene_motion *motion, int steps, size_t size, const double *numbers) {
    fem_status      status = FEM_OK;
    reduced_motion *m = (reduced_motion *)motion;
    double          time = steps * m->s->solver.time_step;
    if (!m->stitching) return FEM_OK;
    if (size < change_size(m)) return fem_fail(FEM_BAD_INPUT, "its state has %zu numbers", size);
    for (size_t i = 0; i < change_size(m); i++)
        if (!isfinite(numbers[i])) return fem_fail(FEM_BAD_INPUT, "its state is not finite");
    for (double next = scene_next_change(m->s, m->stitched); next <= time; next = scene_next_change(m->s, next)) {
        bool carry = numbers[0] == m->base.change_count + 1;
        FEM_TRY(make_change(m, next, carry ? numbers + 1 : NULL, carry));
        m->stitched = next;
    }
done:
    return status;
}

// Changes of materials are made once more in their order, which decides what is left of each.
static fem_status restore(scene_motion *motion, int steps, const double *numbers) {
    fem_status      status = FEM_OK;
    reduced_motion *m = (reduced_motion *)motion;
    double          h = m->s->solver.time_step;
    for (int k = 1; k <= steps; k++) FEM_TRY(change_materials(m, k * h));
    if (m->stitching) memcpy(m->state, numbers + 1, (change_size(m) - 1) * sizeof *numbers);
    numbers += change_size(m);
    if (m->held) {
        load_held(m, steps * h);
        FEM_TRY(solver_reduced_restore_state(m->held, numbers));
    } else {
        FEM_TRY(solver_free_restore_state(m->free, numbers));
    }
    motion->time = steps * h;
done:
    return status;
}

// ---- making --------------------------------------------------------------------------------------------------------

static fem_status allocate(reduced_motion *m) {
    size_t n = (size_t)m->class->basis.n, r = (size_t)m->class->basis.r, actions = (size_t)m->s->action_count;
    m->gravity = fem_calloc(r, sizeof *m->gravity);
    m->loads = fem_calloc(r * actions, sizeof *m->loads);
    m->load = fem_calloc(r, sizeof *m->load);
    m->changed = fem_calloc(actions, sizeof *m->changed);
    m->M = fem_calloc(r * r, sizeof *m->M);
    m->u = fem_calloc(n, sizeof *m->u);
    m->v = fem_calloc(n, sizeof *m->v);
    m->row = fem_calloc(3 * r, sizeof *m->row);
    if (!m->gravity || !m->loads || !m->load || !m->changed || !m->M || !m->u || !m->v || !m->row)
        return fem_fail(FEM_NO_MEMORY, "no memory for a reduced body of %zu modes", r);
    m->base.u = m->u, m->base.v = m->v;
    return FEM_OK;
}

// U^T of gravity and of each load in full.
static fem_status project_loads(const reduced_motion *m, const modes_basis *basis, double *gravity, double *loads) {
    fem_status   status = FEM_OK;
    scene_forces forces = {0};
    FEM_TRY(scene_forces_create(&forces, m->s, m->body));
    dense_gemv_t_set(basis->n, basis->r, 1, basis->U, forces.gravity, gravity);
    for (int i = 0; i < m->s->action_count; i++)
        dense_gemv_t_set(basis->n, basis->r, 1, basis->U, forces.loads + (size_t)basis->n * (size_t)i,
                         loads + (size_t)basis->r * (size_t)i);
done:
    scene_forces_destroy(&forces);
    return status;
}

// Gravity on each region alone, at density 1, so that a change of density changes the weight.
static fem_status project_weights(reduced_motion *m) {
    fem_status         status = FEM_OK;
    const modes_basis *basis = &m->class->basis;
    fem_mesh           mesh = {0};
    fem_body          *alone = NULL;
    int                regions = m->mesh->region_count;
    m->weight = fem_calloc((size_t)regions * (size_t)basis->r, sizeof *m->weight);
    m->density = fem_calloc((size_t)regions, sizeof *m->density);
    if (!m->weight || !m->density) return fem_fail(FEM_NO_MEMORY, "no memory for the weight of %d regions", regions);
    FEM_TRY(fem_mesh_copy(&mesh, m->mesh));
    for (int region = 0; region < regions; region++) {
        fem_body_options options = fem_body_default_options();
        options.quadrature = m->s->parts[m->s->object].quadrature;
        m->density[region] = m->mesh->materials[m->mesh->regions[region].material].density;
        for (int i = 0; i < mesh.material_count; i++)
            mesh.materials[i].density = i == mesh.regions[region].material ? 1 : 1e-200;
        FEM_TRY(fem_body_create(&alone, &mesh, &options));
        memset(m->u, 0, (size_t)basis->n * sizeof *m->u); // not used yet
        FEM_TRY(solver_add_gravity(alone, m->s->gravity, m->u));
        dense_gemv_t_set(basis->n, basis->r, 1, basis->U, m->u, m->weight + (size_t)region * (size_t)basis->r);
        fem_body_destroy(alone);
        alone = NULL;
    }
done:
    fem_body_destroy(alone);
    fem_mesh_destroy(&mesh);
    return status;
}

static fem_status make_contact(const reduced_motion *m, const modes_basis *basis, solver_contact **contact) {
    fem_status      status = FEM_OK;
    solver_samples  samples = {0};
    solver_contact *made = NULL;
    int             number = 0;
    if (m->s->obstacle_count == 0) return FEM_OK;
    FEM_TRY(solver_samples_create(&samples, m->mesh, basis->r, basis->U));
    FEM_TRY(solver_contact_create(&made, &samples, &m->s->contact));
    for (int i = 0; i < m->s->obstacle_count; i++)
        FEM_TRY(solver_contact_add(made, &m->s->obstacles[i].shape, &number));
    *contact = made;
    made = NULL;
done:
    solver_contact_destroy(made);
    solver_samples_destroy(&samples);
    return status;
}

static fem_status use_contact(reduced_motion *m) {
    if (!m->contact) return FEM_OK;
    return m->held ? solver_reduced_set_contact(m->held, m->contact) : solver_free_set_contact(m->free, m->contact);
}

static fem_status make_free(reduced_motion *m, const fem_body *body) {
    fem_status   status = FEM_OK;
    const scene *s = m->s;
    scene_class *class = m->class;
    double Q[9], p[3], w[3];
    FEM_TRY(scene_forces_create(&m->forces, s, body));
    FEM_TRY(solver_inertia_create(&m->inertia, body, s->solver.mass, class->basis.r, class->basis.U));
    FEM_TRY(solver_free_create(&m->free, &m->inertia, &class->forces, &s->reduced));
    mat3_exp(Q, s->rotation);
    const solver_motion *rest = solver_free_state(m->free);
    for (int i = 0; i < 3; i++) p[i] = rest->centre[i] + s->translation[i];
    for (int i = 0; i < 3; i++) w[i] = Q[i] * s->spin[0] + Q[3 + i] * s->spin[1] + Q[6 + i] * s->spin[2]; // Q^T spin
    FEM_TRY(solver_free_set_state(m->free, &(solver_motion_start){.p = p, .v = s->velocity, .Q = Q, .w = w}));
    solver_free_set_gravity(m->free, s->gravity);
done:
    return status;
}

// ---- stitches -------------------------------------------------------------------------------------------------------

// Another class, and the motion carried over into it. All or nothing.
static fem_status take_class(reduced_motion *m, scene_class *class, const scene_passage *passage,
                             solver_rebase_report *report) {
    fem_status      status = FEM_OK;
    solver_contact *contact = NULL;
    size_t          r = (size_t) class->basis.r, actions = (size_t)m->s->action_count;
    double         *gravity = fem_calloc(r, sizeof *gravity), *load = fem_calloc(r, sizeof *load);
    double         *loads = fem_calloc(r * actions, sizeof *loads), *M = fem_calloc(r * r, sizeof *M);
    double         *row = fem_calloc(3 * r, sizeof *row);
    if (!gravity || !load || !loads || !M || !row) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a reduced body of %zu modes", r);
        goto done;
    }
    FEM_TRY(project_loads(m, &class->basis, gravity, loads));
    FEM_TRY(make_contact(m, &class->basis, &contact));
    FEM_TRY(solver_reduced_rebase(&m->held, &m->class->basis, &class->basis, scene_stitching_problem(m->stitching)->M,
                                  &class->forces, passage->springs, passage->pull, report));
    // from here on nothing fails
    if (m->class != m->first) scene_class_destroy(m->class);
    solver_contact_destroy(m->contact);
    fem_free(m->gravity), fem_free(m->load), fem_free(m->loads), fem_free(m->M), fem_free(m->row);
    m->class = class, m->contact = contact;
    m->gravity = gravity, m->load = load, m->loads = loads, m->M = M, m->row = row;
    gravity = load = loads = M = row = NULL, contact = NULL;
    (void)use_contact(m); // made for this class, it is not refused
done:
    fem_free(gravity), fem_free(load), fem_free(loads), fem_free(M), fem_free(row);
    solver_contact_destroy(contact);
    return status;
}

// J, kinetic and of strain
static double present_energy(const reduced_motion *m) {
    solver_energies e;
    solver_reduced_energies(m->held, &e);
    return e.kinetic + fabs(e.strain);
}

// One change: the class of the body as it is then, from a state (NULL: at rest); `carry`: nothing of it is lost. A
// change that cannot be made leaves everything as it was.
static fem_status make_change(reduced_motion *m, double time, const double *state, bool carry) {
    fem_status status = FEM_OK;
    scene_class *class = NULL;
    scene_passage passage = {0};
    bool          changed = false;
    double        energy = 0;
    scene_change  change = {0};
    FEM_TRY(scene_stitching_set(m->stitching, time, &changed));
    if (!changed) goto done;
    FEM_TRY(fem_grow((void **)&m->base.changes, &m->change_room, (size_t)m->base.change_count + 1,
                     sizeof *m->base.changes));
    if (state) FEM_TRY(scene_stitching_energy(m->stitching, state, &energy));
    FEM_TRY(scene_stitching_class(m->stitching, state, carry, m->progress, &class, &passage, &change));
    change.time = time;
    FEM_TRY(take_class(m, class ? class : m->first, &passage, &change.state));
    scene_stitching_commit(m->stitching);
    m->carries = class && class->carried && carry ? m->base.change_count + 1 : 0;
    class = NULL;
    // of the shape before: gaps that the new basis has closed were work of the springs
    change.state.springs = energy;
    change.state.unexplained = change.state.energy_after - change.state.energy_before - energy;
    (void)scene_note_change(&change, m->notes); // a note that finds no memory is lost, nothing else
    m->base.changes[m->base.change_count++] = change;
    change = (scene_change){0};
done:
    if (status != FEM_OK) { // back to the springs that the present class has
        char message[1024];
        snprintf(message, sizeof message, "%s", fem_message());
        scene_stitching_set(m->stitching, m->stitched, &changed);
        fem_fail(status, "%s", message);
    }
    if (class != m->first) scene_class_destroy(class);
    scene_passage_destroy(&passage);
    scene_change_destroy(&change);
    return status;
}

// A change in flight. A body that has no stitches any more takes its first class again, unless that would lose some of
// its motion.
static fem_status change_now(reduced_motion *m, double time) {
    fem_status status = FEM_OK, found = FEM_OK;
    double     lost = INFINITY;
    bool       changed = false, moves = false, back;
    size_t     n = (size_t)m->class->basis.n;
    FEM_TRY(scene_stitching_set(m->stitching, m->stitched, &back)); // a failure may have left it elsewhere
    FEM_TRY(scene_stitching_set(m->stitching, time, &changed));
    if (!changed) goto done; // m->state stays that of the last one
    show_held(m);
    memcpy(m->state, m->u, n * sizeof *m->u), memcpy(m->state + n, m->v, n * sizeof *m->v);
    for (size_t i = 0; i < 2 * n; i++) moves = moves || m->state[i] != 0;
    if (moves && scene_stitching_is_first(m->stitching))
        found = scene_stitching_lost(m->stitching, &m->first->basis, m->state, &lost);
    FEM_TRY(scene_stitching_set(m->stitching, m->stitched, &back));
    FEM_TRY(found);
    bool carry = moves && !(lost <= SCENE_AT_HOME * present_energy(m));
    status = make_change(m, time, moves ? m->state : NULL, carry);
done:
    return status;
}

// The first class as soon as the columns that carry what it has not hold hardly any energy.
static fem_status go_home(reduced_motion *m) {
    if (!m->carries || !scene_stitching_is_first(m->stitching)) return FEM_OK;
    const solver_coordinates *state = solver_reduced_state(m->held);
    double                    energy = 0;
    for (int j = 0; j < m->class->basis.r; j++)
        if (m->class->carried[j])
            energy += state->dq[j] * state->dq[j] / 2 + m->class->basis.omega2[j] * state->q[j] * state->q[j] / 2;
    if (energy > SCENE_AT_HOME * present_energy(m)) return FEM_OK;
    const scene_passage plain = {0};
    fem_status          status = take_class(m, m->first, &plain, NULL);
    if (status == FEM_OK) m->carries = 0;
    return status;
}

// All changes up to a time, one after the other: each is a class.
static fem_status make_changes(reduced_motion *m, double time) {
    if (!m->stitching) return FEM_OK;
    if (m->stitched < 0) { // what is there from the beginning
        fem_status status = make_change(m, 0, NULL, false);
        if (status != FEM_OK) return status;
        m->stitched = 0;
    }
    double next = scene_next_change(m->s, m->stitched);
    while (next <= time) {
        fem_status status = change_now(m, next);
        if (status != FEM_OK) return status;
        m->stitched = next;
        next = scene_next_change(m->s, next);
    }
    return FEM_OK;
}

// What is held of the body, and its first class: of a body in several pieces another one than the part's.
static fem_status begin_stitching(reduced_motion *m) {
    fem_status   status = FEM_OK;
    scene_class *first = NULL;
    m->stitched = -1;
    m->state = fem_calloc(6 * (size_t)m->mesh->vertex_count, sizeof *m->state);
    if (!m->state) return fem_fail(FEM_NO_MEMORY, "no memory for %d vertices", m->mesh->vertex_count);
    FEM_TRY(scene_stitching_create(&m->stitching, m->s, m->body, m->first, m->progress));
    FEM_TRY(scene_stitching_first(m->stitching, m->progress, &first));
    if (!first) return FEM_OK;
    scene_class_destroy(m->first);
    m->first = first;
    scene_stitching_begin(m->stitching, first);
done:
    return status;
}

fem_status scene_motion_reduced(scene_motion **motion, const scene *s, const fem_body *body,
                                const fem_progress *progress, char **notes) {
    fem_status        status = FEM_OK;
    const scene_part *part = &s->parts[s->object];
    reduced_motion   *m = fem_calloc(1, sizeof *m);
    if (!m) return fem_fail(FEM_NO_MEMORY, "no memory for a run");
    m->s = s;
    m->mesh = &part->mesh;
    m->base = (scene_motion){.step = step,
                             .show = show,
                             .energies = energies,
                             .report = report,
                             .destroy = destroy,
                             .state_size = state_size,
                             .save = save,
                             .repeat = repeat,
                             .restore = restore};
    m->base.limb_count = 1, m->base.limb = limb, m->base.pose = pose;
    m->body = body, m->progress = progress, m->notes = notes;
    FEM_TRY(scene_class_create(&m->first, part, body, s->solver.mass, s->cache, progress, notes));
    if (scene_has_stitching(s)) FEM_TRY(begin_stitching(m));
    m->class = m->first;
    FEM_TRY(allocate(m));
    bool changes = false;
    for (int i = 0; i < s->action_count; i++) changes = changes || s->actions[i].kind == SCENE_MATERIAL;
    if (changes) FEM_TRY(project_weights(m));
    if (part->fixed.count > 0) {
        FEM_TRY(project_loads(m, &m->class->basis, m->gravity, m->loads));
        FEM_TRY(solver_reduced_create(&m->held, &m->class->forces, m->class->M, &s->reduced));
    } else {
        FEM_TRY(make_free(m, body));
    }
    FEM_TRY(change_materials(m, 0));
    FEM_TRY(make_contact(m, &m->class->basis, &m->contact));
    FEM_TRY(use_contact(m));
    if (m->stitching) {
        m->base.limb_count = 0; // its basis is not one for all frames
        FEM_TRY(make_changes(m, 0));
    }
    if (m->held) load_held(m, 0);
    *motion = &m->base;
    m = NULL;
done:
    if (m && m->class) fem_fail_prefix(status, "part \"%s\": ", part->name); // the class names its part itself
    if (m) destroy(&m->base);
    return status;
}
