// Scenes of several objects: instances of parts in one tree. u and v are of the mesh of all instances together.
#include "libscene/class.h"
#include "libscene/internal.h"
#include "libscene/motion.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- classes -------------------------------------------------------------------------------------------------------

fem_status scene_make_forest(solver_forest **made, const scene *s, bool precompute, const fem_progress *progress,
                             char **notes, bool *kept) {
    fem_status          status = FEM_OK;
    const scene_forest *f = &s->forest;
    solver_forest      *forest = NULL;
    FEM_TRY(solver_forest_create(&forest, f->part_count, f->parts, f->count, f->instances, NULL));
    if (precompute) FEM_TRY(scene_precompute_forest(s, forest, progress, notes, kept));
    *made = forest;
    forest = NULL;
done:
    solver_forest_destroy(forest);
    if (status != FEM_OK && status != FEM_STOPPED) fem_fail_prefix(status, "%s: ", s->path);
    return status;
}

void scene_report_forest(const scene *s, const solver_forest *f, scene_result *result) {
    int deformable = 0;
    for (int k = 0; k < f->part_count; k++) deformable += f->classes[k] && f->classes[k]->basis.r > 0;
    result->domains = f->count;
    result->cached_domains = f->cached;
    result->modes = f->modes;
    result->cached = f->cached == deformable;
    result->seconds_modes = f->seconds_modes;
    result->seconds_forces = f->seconds_forces;
    scene_report_rules(s, f->part_count, f->classes, result);
}

// ---- the motion ----------------------------------------------------------------------------------------------------

// What a driven root follows.
typedef struct forest_drive {
    const scene_move   *move;
    solver_frame_motion rest;
    double              h;
} forest_drive;

typedef struct forest_motion {
    scene_motion         base;
    const scene         *s;
    const fem_mesh      *mesh; // of all
    solver_forest       *forest;
    solver_tree         *tree;
    forest_drive        *drives; // per instance; move NULL: not driven
    int                 *point;  // per vertex of all: of the tree, or -1; NULL: there are no loads
    int                 *loaded; // vertices with points
    int                  loaded_count;
    double              *loads; // per action: 3 per loaded vertex
    double              *total; // 3 per loaded vertex
    bool                *done;  // per action: this change of stiffness has been made
    scene_contacts       contacts;
    scene_wind          *wind; // or NULL
    double              *u, *v, *space;
    solver_frame_motion *shown; // per instance
    double               seconds;
    int                  steps;
} forest_motion;

static void destroy(scene_motion *motion) {
    forest_motion *m = (forest_motion *)motion;
    scene_contacts_destroy(&m->contacts);
    scene_wind_destroy(m->wind);
    solver_tree_destroy(m->tree);
    solver_forest_destroy(m->forest);
    fem_free(m->drives), fem_free(m->point), fem_free(m->loaded), fem_free(m->loads), fem_free(m->total);
    fem_free(m->done);
    fem_free(m->u), fem_free(m->v), fem_free(m->space), fem_free(m->shown);
    fem_free(m);
}

static void show_task(void *context, int i, int worker) {
    forest_motion *m = context;
    (void)worker;
    size_t at = 3 * (size_t)m->s->forest.vertex[i], end = 3 * (size_t)m->s->forest.vertex[i + 1];
    solver_forest_show(m->forest, m->tree, i, m->u + at, m->v + at, m->space + at);
    for (size_t k = at; k < end; k++) m->u[k] -= m->mesh->vertices[k];
}

static void show(scene_motion *motion) {
    forest_motion *m = (forest_motion *)motion;
    for (int i = 0; i < m->forest->count; i++) solver_tree_frame(m->tree, i, &m->shown[i]); // and poses are known
    fem_parallel_for(m->forest->count, show_task, m);
}

static scene_limb limb(const scene_motion *motion, int i) {
    const forest_motion *m = (const forest_motion *)motion;
    const solver_class  *c = m->forest->classes[m->s->forest.instances[i].part];
    return (scene_limb){.name = m->s->forest.instances[i].name,
                        .mesh = &c->mesh,
                        .r = c->basis.r,
                        .U = c->basis.U,
                        .shape = m->s->forest.instances[i].part,
                        .scale = m->forest->world[i].scale};
}

static const double *pose(const scene_motion *motion, int i, scene_pose *to) {
    const forest_motion *m = (const forest_motion *)motion;
    memcpy(to->p, m->shown[i].p, sizeof to->p);
    memcpy(to->Q, m->shown[i].Q, sizeof to->Q);
    return solver_tree_q(m->tree, i);
}

static void energies(const scene_motion *motion, solver_energies *e) {
    const forest_motion *m = (const forest_motion *)motion;
    solver_tree_energies t;
    solver_tree_get_energies(m->tree, &t);
    *e = (solver_energies){.kinetic = t.kinetic, .strain = t.strain + t.springs, .load = t.potential};
    for (int k = 0; k < m->loaded_count; k++) {
        double x[3], u[3];
        solver_tree_point(m->tree, m->point[m->loaded[k]], x, NULL);
        vec3_sub(u, x, m->mesh->vertices + 3 * (size_t)m->loaded[k]);
        e->load -= vec3_dot(m->total + 3 * (size_t)k, u);
    }
}

static void report(const scene_motion *motion, scene_result *result) {
    const forest_motion *m = (const forest_motion *)motion;
    scene_report_forest(m->s, m->forest, result);
    result->tree = solver_tree_get_report(m->tree);
    result->step.steps = m->steps;
    result->step.shifts = result->tree.shifts;
    result->step.seconds_step = m->seconds;
    scene_contacts_report(&m->contacts, result);
}

// ---- what happens at a time ----------------------------------------------------------------------------------------

static void drive_root(void *context, double time, solver_frame_motion *motion) {
    const forest_drive *d = context;
    scene_drive_at(d->move, d->rest.p, d->rest.Q, d->h, time, motion);
}

static fem_status apply_loads(forest_motion *m, double time) {
    fem_status status = FEM_OK;
    size_t     n = 3 * (size_t)m->loaded_count;
    if (n == 0) return FEM_OK;
    memset(m->total, 0, n * sizeof *m->total);
    for (int i = 0; i < m->s->action_count; i++) {
        const scene_action *a = &m->s->actions[i];
        double              factor = scene_is_load(a->kind) ? scene_load_factor(a, time) : 0;
        if (factor != 0) dense_axpy((int)n, factor, m->loads + (size_t)i * n, m->total);
    }
    for (int k = 0; k < m->loaded_count; k++)
        FEM_TRY(solver_tree_set_force(m->tree, m->point[m->loaded[k]], m->total + 3 * (size_t)k));
done:
    return status;
}

static fem_status change_stiffness(forest_motion *m, double time) {
    fem_status status = FEM_OK;
    for (int k = 0; k < m->s->action_count; k++) {
        const scene_action *a = &m->s->actions[k];
        bool                stiffness = a->kind == SCENE_STIFFNESS;
        if ((!stiffness && a->kind != SCENE_FREQUENCY) || m->done[k] || time < a->start) continue;
        for (int i = 0; i < a->load.on.count; i++)
            FEM_TRY(
                solver_tree_set_stiffness(m->tree, a->load.on.items[i], stiffness ? a->factor : a->factor * a->factor));
        m->done[k] = true;
    }
done:
    return status;
}

static fem_status step(scene_motion *motion, double time) {
    fem_status     status = FEM_OK;
    forest_motion *m = (forest_motion *)motion;
    double         begun = fem_seconds(), h = m->s->tree.options.time_step;
    FEM_TRY(change_stiffness(m, time - h));
    FEM_TRY(apply_loads(m, time - h / 2));
    FEM_TRY(scene_contacts_apply(&m->contacts, time - h, time));
    if (m->wind)
        FEM_TRY(scene_wind_step(m->wind, m->tree, m->contacts.count > 0 && !m->contacts.implicit));
    else
        FEM_TRY(solver_tree_step(m->tree));
    motion->time = time;
    m->steps++;
done:
    m->seconds += fem_seconds() - begun;
    return status;
}

// ---- checkpoints ---------------------------------------------------------------------------------------------------

static size_t state_size(const scene_motion *motion) {
    return solver_tree_state_size(((const forest_motion *)motion)->tree);
}

static void save(const scene_motion *motion, double *numbers) {
    solver_tree_save_state(((const forest_motion *)motion)->tree, numbers);
}

static fem_status restore(scene_motion *motion, int steps, const double *numbers) {
    fem_status     status = FEM_OK;
    forest_motion *m = (forest_motion *)motion;
    double         h = m->s->tree.options.time_step;
    for (int k = 0; k < steps; k++) FEM_TRY(change_stiffness(m, (k + 1) * h - h)); // as the steps did, in their order
    if (steps > 0) FEM_TRY(apply_loads(m, steps * h - h / 2));
    FEM_TRY(solver_tree_restore_state(m->tree, numbers));
    motion->time = steps * h;
done:
    return status;
}

// ---- creation ------------------------------------------------------------------------------------------------------

static int instance_of(const scene_forest *f, int vertex) {
    int low = 0, high = f->count - 1;
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        if (f->vertex[middle] <= vertex)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static fem_status make_loads(forest_motion *m) {
    fem_status status = FEM_OK;
    size_t     n = 3 * (size_t)m->mesh->vertex_count;
    fem_body  *body = NULL;
    double    *full = NULL;
    bool       any = false;
    for (int i = 0; i < m->s->action_count; i++) any = any || scene_is_load(m->s->actions[i].kind);
    if (!any) return FEM_OK;
    fem_body_options options = fem_body_default_options();
    FEM_TRY(fem_body_create(&body, m->mesh, &options)); // for its masses and surface only
    full = fem_calloc(n, sizeof *full);
    m->point = fem_alloc(n / 3, sizeof *m->point);
    m->loaded = fem_alloc(n / 3, sizeof *m->loaded);
    if (!full || !m->point || !m->loaded) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for loads on %zu vertices", n / 3);
        goto done;
    }
    for (size_t v = 0; v < n / 3; v++) m->point[v] = -1;
    for (int i = 0; i < m->s->action_count; i++) {
        const scene_action *a = &m->s->actions[i];
        for (int k = 0; scene_is_load(a->kind) && k < a->load.on.count; k++) {
            int v = a->load.on.items[k], instance = instance_of(&m->s->forest, v);
            if (m->point[v] >= 0) continue;
            FEM_TRY(solver_forest_point(m->forest, m->tree, instance, v - m->s->forest.vertex[instance], &m->point[v]));
            m->loaded[m->loaded_count++] = v;
        }
    }
    m->loads = fem_calloc(3 * (size_t)m->loaded_count * (size_t)m->s->action_count, sizeof *m->loads);
    m->total = fem_calloc(3 * (size_t)m->loaded_count, sizeof *m->total);
    if (!m->loads || !m->total) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for loads on %zu vertices", n / 3);
        goto done;
    }
    for (int i = 0; i < m->s->action_count; i++) {
        const scene_action *a = &m->s->actions[i];
        if (!scene_is_load(a->kind)) continue;
        memset(full, 0, n * sizeof *full);
        FEM_TRY(scene_load_force(&a->load, body, full));
        for (size_t k = 0; k < (size_t)m->loaded_count; k++)
            memcpy(m->loads + 3 * ((size_t)i * (size_t)m->loaded_count + k), full + 3 * (size_t)m->loaded[k],
                   3 * sizeof *full);
    }
done:
    fem_body_destroy(body);
    fem_free(full);
    return status;
}

// Samples of an instance: the surface of its part, in its own size.
static fem_status make_samples(const forest_motion *m, int instance, const double *area, solver_samples *samples) {
    const solver_class *c = m->forest->classes[m->s->forest.instances[instance].part];
    size_t              r = (size_t)c->basis.r, vertices = (size_t)c->mesh.vertex_count, n = (size_t)c->basis.n;
    double              scale = m->forest->world[instance].scale;
    *samples = (solver_samples){.r = c->basis.r};
    samples->X = fem_alloc(3 * vertices, sizeof(double));
    samples->U = fem_alloc(3 * vertices * r + 1, sizeof(double));
    samples->area = fem_alloc(vertices, sizeof(double));
    if (!samples->X || !samples->U || !samples->area) return fem_fail(FEM_NO_MEMORY, "no memory for contact");
    for (size_t v = 0; v < vertices; v++) {
        if (!(area[v] > 0)) continue;
        size_t k = (size_t)samples->count++;
        samples->area[k] = scale * scale * area[v];
        for (size_t i = 0; i < 3; i++) {
            samples->X[3 * k + i] = scale * c->mesh.vertices[3 * v + i];
            for (size_t l = 0; l < r; l++) samples->U[(3 * k + i) * r + l] = scale * c->basis.U[n * l + 3 * v + i];
        }
    }
    return FEM_OK;
}

static fem_status make_instance_contact(forest_motion *m, int instance, const double *area) {
    fem_status          status = FEM_OK;
    solver_samples      samples = {0};
    const solver_class *c = m->forest->classes[m->s->forest.instances[instance].part];
    double              s = m->forest->world[instance].scale, cube = s * s * s;
    size_t              r = (size_t)c->basis.r;
    double             *M = fem_copy(c->inertia.Mqq, r * r + 0, sizeof *M);
    if (!M && r > 0) return fem_fail(FEM_NO_MEMORY, "no memory for contact");
    for (size_t i = 0; i < r * r; i++) M[i] *= cube * s * s; // as x = p + Q s (X + U q)
    FEM_TRY(make_samples(m, instance, area, &samples));
    FEM_TRY(scene_contacts_add(&m->contacts, instance, &samples, M, cube * c->inertia.m));
done:
    fem_free(M);
    solver_samples_destroy(&samples);
    return status;
}

static fem_status make_contact(forest_motion *m, char **notes) {
    fem_status status = FEM_OK;
    int        most = 0;
    double   **area = NULL;
    if (m->s->obstacle_count == 0) return FEM_OK;
    for (int k = 0; k < m->forest->part_count; k++)
        if (m->forest->classes[k] && m->forest->classes[k]->basis.r > most) most = m->forest->classes[k]->basis.r;
    area = fem_calloc((size_t)m->forest->part_count, sizeof *area);
    if (!area) return fem_fail(FEM_NO_MEMORY, "no memory for contact");
    FEM_TRY(scene_contacts_create(&m->contacts, m->s, m->tree, m->forest->count, most));
    for (int k = 0; k < m->forest->part_count; k++)
        if (m->forest->classes[k]) FEM_TRY(scene_vertex_areas(&m->forest->classes[k]->mesh, &area[k]));
    for (int i = 0; i < m->forest->count; i++)
        FEM_TRY(make_instance_contact(m, i, area[m->s->forest.instances[i].part]));
    FEM_TRY(scene_contacts_note(&m->contacts, "instances", notes));
done:
    for (int k = 0; area && k < m->forest->part_count; k++) fem_free(area[k]);
    fem_free(area);
    return status;
}

// Each instance feels the wind on all of its part's surface.
static fem_status make_wind(forest_motion *m) {
    static const modes_basis none = {0};
    fem_status               status = FEM_OK;
    const solver_forest     *f = m->forest;
    if (!m->s->windy) return FEM_OK;
    scene_sail *sails = fem_calloc((size_t)f->part_count, sizeof *sails);
    if (!sails) return fem_fail(FEM_NO_MEMORY, "no memory for wind on %d parts", f->part_count);
    for (int k = 0; k < f->part_count; k++) {
        sails[k] = (scene_sail){.basis = &none};
        if (!f->classes[k]) continue;
        sails[k].mesh = &f->classes[k]->mesh;
        sails[k].basis = &f->classes[k]->basis;
        sails[k].drag = m->s->parts[k].drag;
    }
    FEM_TRY(scene_wind_create(&m->wind, m->s, f->part_count, sails, f->count, f->instances));
done:
    fem_free(sails);
    return status;
}

// Free bodies start with their motion, which is that of their centre, where their frame is; driven roots follow.
static fem_status place_roots(forest_motion *m) {
    fem_status status = FEM_OK;
    for (int i = 0; i < m->forest->count; i++) {
        const solver_forest_instance *g = &m->s->forest.instances[i];
        solver_frame_motion           start;
        if (g->parent >= 0) continue;
        solver_forest_frame(m->forest, i, &start);
        if (m->s->parts[g->part].fixed.count == 0) {
            const double *given = m->s->forest.motion[i];
            memcpy(start.v, given, sizeof start.v);
            for (int k = 0; k < 3; k++)
                start.w[k] = start.Q[k] * given[3] + start.Q[3 + k] * given[4] + start.Q[6 + k] * given[5];
            FEM_TRY(solver_tree_set_root(m->tree, i, &start));
        }
        for (int a = 0; a < m->s->action_count; a++) {
            const scene_action *action = &m->s->actions[a];
            if (action->kind != SCENE_MOVE) continue;
            for (int k = 0; k < action->load.on.count && !m->drives[i].move; k++)
                if (instance_of(&m->s->forest, action->load.on.items[k]) == i)
                    m->drives[i] = (forest_drive){&action->move, start, m->s->tree.options.time_step};
        }
        if (m->drives[i].move) FEM_TRY(solver_tree_set_drive(m->tree, i, drive_root, &m->drives[i]));
    }
done:
    return status;
}

fem_status scene_motion_forest(scene_motion **motion, const scene *s, const fem_progress *progress, char **notes) {
    fem_status     status = FEM_OK;
    forest_motion *m = fem_calloc(1, sizeof *m);
    if (!m) return fem_fail(FEM_NO_MEMORY, "no memory for a run");
    size_t vertices = (size_t)s->parts[s->object].mesh.vertex_count, count = (size_t)s->forest.count;
    m->s = s;
    m->mesh = &s->parts[s->object].mesh;
    m->base = (scene_motion){.step = step,
                             .show = show,
                             .energies = energies,
                             .report = report,
                             .destroy = destroy,
                             .state_size = state_size,
                             .save = save,
                             .restore = restore,
                             .limb = limb,
                             .pose = pose,
                             .limb_count = s->forest.count};
    FEM_TRY(scene_make_forest(&m->forest, s, true, progress, notes, NULL));
    m->u = fem_calloc(3 * vertices, sizeof *m->u);
    m->v = fem_calloc(3 * vertices, sizeof *m->v);
    m->space = fem_alloc(3 * vertices, sizeof *m->space);
    m->done = fem_calloc((size_t)s->action_count, sizeof *m->done);
    m->shown = fem_calloc(count, sizeof *m->shown);
    m->drives = fem_calloc(count, sizeof *m->drives);
    if (!m->u || !m->v || !m->space || !m->done || !m->shown || !m->drives) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %zu vertices", vertices);
        goto done;
    }
    m->base.u = m->u, m->base.v = m->v;
    FEM_TRY(solver_forest_tree(&m->tree, m->forest, &s->tree.options));
    FEM_TRY(place_roots(m));
    solver_tree_set_gravity(m->tree, s->gravity);
    FEM_TRY(make_loads(m));
    FEM_TRY(make_contact(m, notes));
    FEM_TRY(make_wind(m));
    FEM_TRY(change_stiffness(m, 0));
    *motion = &m->base;
    m = NULL;
done:
    if (m) destroy(&m->base);
    return status;
}
