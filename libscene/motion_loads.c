// What the motions of trees have in common: loads at vertices, changes of stiffness, the step, states. See motion.h.
#include "libscene/internal.h"
#include "libscene/motion.h"

#include <string.h>

static fem_status apply_loads(scene_tree_motion *m, double time) {
    fem_status status = FEM_OK;
    size_t     n = 3 * (size_t)m->loaded;
    if (n == 0) return FEM_OK;
    memset(m->total, 0, n * sizeof *m->total);
    for (int i = 0; i < m->s->action_count; i++) {
        const scene_action *a = &m->s->actions[i];
        double              factor = scene_is_load(a->kind) ? scene_load_factor(a, time) : 0;
        if (factor != 0) dense_axpy((int)n, factor, m->loads + (size_t)i * n, m->total);
    }
    for (int k = 0; k < m->loaded; k++) FEM_TRY(solver_tree_set_force(m->tree, m->points[k], m->total + 3 * (size_t)k));
done:
    return status;
}

// Of a forest the action has a list of instances, of a tree one domain or all.
fem_status scene_tree_motion_stiffen(scene_tree_motion *m, double time) {
    fem_status status = FEM_OK;
    bool       forest = m->s->forest.count > 0;
    for (int k = 0; k < m->s->action_count; k++) {
        const scene_action *a = &m->s->actions[k];
        bool                stiffness = a->kind == SCENE_STIFFNESS;
        double              factor = stiffness ? a->factor : a->factor * a->factor;
        if ((!stiffness && a->kind != SCENE_FREQUENCY) || m->done[k] || time < a->start) continue;
        for (int i = 0; forest && i < a->load.on.count; i++)
            FEM_TRY(solver_tree_set_stiffness(m->tree, a->load.on.items[i], factor));
        for (int i = 0; !forest && i < m->s->tree.domains.count; i++)
            if (a->domain < 0 || a->domain == i) FEM_TRY(solver_tree_set_stiffness(m->tree, i, factor));
        m->done[k] = true;
    }
done:
    return status;
}

static fem_status step(scene_motion *motion, double time) {
    fem_status         status = FEM_OK;
    scene_tree_motion *m = (scene_tree_motion *)motion;
    double             begun = fem_seconds(), h = m->s->tree.options.time_step;
    FEM_TRY(scene_tree_motion_stiffen(m, time - h));
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

static void energies(const scene_motion *motion, solver_energies *e) {
    const scene_tree_motion *m = (const scene_tree_motion *)motion;
    solver_tree_energies     t;
    solver_tree_get_energies(m->tree, &t);
    *e = (solver_energies){.kinetic = t.kinetic, .strain = t.strain + t.springs, .load = t.potential};
    for (int k = 0; k < m->loaded; k++) { // where the piece has the vertex that the load is on
        double x[3], u[3];
        solver_tree_point(m->tree, m->points[k], x, NULL);
        vec3_sub(u, x, m->mesh->vertices + 3 * (size_t)m->vertices[k]);
        e->load -= vec3_dot(m->total + 3 * (size_t)k, u);
    }
}

static size_t state_size(const scene_motion *motion) {
    return solver_tree_state_size(((const scene_tree_motion *)motion)->tree);
}

static void save(const scene_motion *motion, double *numbers) {
    solver_tree_save_state(((const scene_tree_motion *)motion)->tree, numbers);
}

static fem_status restore(scene_motion *motion, int steps, const double *numbers) {
    fem_status         status = FEM_OK;
    scene_tree_motion *m = (scene_tree_motion *)motion;
    double             h = m->s->tree.options.time_step;
    for (int k = 0; k < steps; k++)
        FEM_TRY(scene_tree_motion_stiffen(m, (k + 1) * h - h)); // as the steps did, in order
    if (steps > 0) FEM_TRY(apply_loads(m, steps * h - h / 2));
    FEM_TRY(solver_tree_restore_state(m->tree, numbers));
    motion->time = steps * h;
done:
    return status;
}

fem_status scene_tree_motion_begin(scene_tree_motion *m, const scene *s) {
    size_t vertices = (size_t)s->parts[s->object].mesh.vertex_count;
    m->s = s;
    m->mesh = &s->parts[s->object].mesh;
    m->base.step = step, m->base.energies = energies;
    m->base.state_size = state_size, m->base.save = save, m->base.restore = restore;
    m->u = fem_calloc(3 * vertices, sizeof *m->u);
    m->v = fem_calloc(3 * vertices, sizeof *m->v);
    m->done = fem_calloc((size_t)s->action_count, sizeof *m->done);
    if (!m->u || !m->v || !m->done) return fem_fail(FEM_NO_MEMORY, "no memory for %zu vertices", vertices);
    m->base.u = m->u, m->base.v = m->v;
    return FEM_OK;
}

void scene_tree_motion_report(const scene_tree_motion *m, scene_result *result) {
    result->tree = solver_tree_get_report(m->tree);
    result->step.steps = m->steps;
    result->step.shifts = result->tree.shifts;
    result->step.seconds_step = m->seconds;
    scene_contacts_report(&m->contacts, result);
}

void scene_tree_motion_end(scene_tree_motion *m) {
    scene_contacts_destroy(&m->contacts);
    scene_wind_destroy(m->wind);
    solver_tree_destroy(m->tree);
    fem_free(m->vertices), fem_free(m->points), fem_free(m->loads), fem_free(m->total), fem_free(m->done);
    fem_free(m->u), fem_free(m->v);
}

// The vertices that loads act on, with their points.
static fem_status find_loaded(scene_tree_motion *m, scene_find_point *at) {
    fem_status     status = FEM_OK;
    size_t         vertices = (size_t)m->mesh->vertex_count;
    unsigned char *marked = fem_calloc(vertices, 1);
    m->vertices = fem_alloc(vertices, sizeof *m->vertices);
    m->points = fem_alloc(vertices, sizeof *m->points);
    if (!marked || !m->vertices || !m->points) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for loads on %zu vertices", vertices);
        goto done;
    }
    for (int i = 0; i < m->s->action_count; i++) {
        const scene_action *a = &m->s->actions[i];
        for (int k = 0; scene_is_load(a->kind) && k < a->load.on.count; k++) marked[a->load.on.items[k]] = 1;
    }
    for (size_t v = 0; v < vertices; v++) {
        int point = -1;
        if (!marked[v]) continue;
        FEM_TRY(at(m, (int)v, &point));
        if (point >= 0) m->vertices[m->loaded] = (int)v, m->points[m->loaded++] = point;
    }
done:
    fem_free(marked);
    return status;
}

fem_status scene_tree_motion_load(scene_tree_motion *m, const fem_body *body, scene_find_point *at) {
    fem_status       status = FEM_OK;
    fem_body_options options = fem_body_default_options();
    fem_body        *own = NULL; // for its masses and surface only
    double          *full = NULL;
    size_t           n = 3 * (size_t)m->mesh->vertex_count;
    bool             any = false;
    for (int i = 0; i < m->s->action_count; i++) any = any || scene_is_load(m->s->actions[i].kind);
    if (!any) return FEM_OK;
    FEM_TRY(find_loaded(m, at));
    if (!body) FEM_TRY(fem_body_create(&own, m->mesh, &options));
    full = fem_alloc(n, sizeof *full);
    m->loads = fem_calloc(3 * (size_t)m->loaded * (size_t)m->s->action_count, sizeof *m->loads);
    m->total = fem_calloc(3 * (size_t)m->loaded, sizeof *m->total);
    if (!full || !m->loads || !m->total) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for loads on %d vertices", m->loaded);
        goto done;
    }
    for (int i = 0; i < m->s->action_count; i++) {
        const scene_action *a = &m->s->actions[i];
        if (!scene_is_load(a->kind)) continue;
        memset(full, 0, n * sizeof *full);
        FEM_TRY(scene_load_force(&a->load, body ? body : own, full));
        for (size_t k = 0; k < (size_t)m->loaded; k++)
            memcpy(m->loads + 3 * ((size_t)i * (size_t)m->loaded + k), full + 3 * (size_t)m->vertices[k],
                   3 * sizeof *full);
    }
done:
    fem_body_destroy(own);
    fem_free(full);
    return status;
}
