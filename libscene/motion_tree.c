// A scene's body as a tree of domains. Loads act at the vertices, contact on each domain by itself.
#include "libscene/class.h"
#include "libscene/internal.h"
#include "libscene/motion.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

// ---- classes and their cache ---------------------------------------------------------------------------------------

typedef struct cache_context {
    const scene    *s;
    char          **notes;
    bool            kept; // all classes are in the cache
    pthread_mutex_t lock; // of the notes and of `kept`
} cache_context;

static void note(cache_context *c, const char *what, bool kept) {
    char text[1200];
    snprintf(text, sizeof text, "%.1000s; %s", fem_message(), what);
    pthread_mutex_lock(&c->lock);
    c->kept = c->kept && kept;
    (void)scene_add_note(c->notes, text); // a note that finds no memory is lost, nothing else
    pthread_mutex_unlock(&c->lock);
}

// Domains have the name of their part, instances that of their class, which is a part.
static const char *cache_name(const cache_context *c, const solver_class *class) {
    return c->s->forest.count > 0 ? class->name : c->s->parts[c->s->object].name;
}

static const cubature_training_options *class_training(const cache_context *c, const solver_class *class) {
    const scene_part *part = &c->s->parts[c->s->object];
    for (int i = 0; i < c->s->part_count; i++)
        if (strcmp(c->s->parts[i].name, cache_name(c, class)) == 0) part = &c->s->parts[i];
    return &part->training;
}

static bool load_class(void *context, fem_hash key, solver_class *class) {
    cache_context *c = context;
    char          *path = NULL;
    scene_stored   stored = {
          .basis = &class->basis, .polynomial = &class->polynomial, .rule = &class->rule, .training = &class->training};
    bool       cubature = class->kind == SOLVER_FORCES_CUBATURE;
    fem_status status = scene_cache_path(&path, c->s->cache, cache_name(c, class), key);
    if (status == FEM_OK)
        status = scene_class_read(&stored, &class->mesh, class->kind == SOLVER_FORCES_POLYNOMIAL,
                                  cubature ? class_training(c, class) : NULL, key, path);
    if (status == FEM_BAD_INPUT) note(c, "it is computed again", true);
    if (status != FEM_OK) {
        modes_basis_destroy(&class->basis);
        cubature_polynomial_destroy(&class->polynomial);
        cubature_rule_destroy(&class->rule);
        class->basis.n = 3 * class->mesh.vertex_count;
    }
    fem_free(path);
    return status == FEM_OK;
}

static void save_class(void *context, fem_hash key, const solver_class *class) {
    cache_context           *c = context;
    char                    *path = NULL;
    modes_basis              basis = class->basis;
    cubature_polynomial      polynomial = class->polynomial;
    cubature_rule            rule = class->rule;
    cubature_training_report training = class->training;
    scene_stored             stored = {
                    .basis = &basis, .polynomial = &polynomial, .rule = rule.count > 0 ? &rule : NULL, .training = &training};
    char       text[1200];
    fem_status status = scene_cache_path(&path, c->s->cache, cache_name(c, class), key);
    if (status == FEM_OK) status = scene_class_write(&stored, key, path);
    if (status != FEM_OK) note(c, "the class is not kept", false);
    if (status == FEM_OK && rule.count > 0) {
        snprintf(text, sizeof text, "%.1100s.vtu", path);
        if (scene_cubature_write(&rule, &class->mesh, text) != FEM_OK)
            note(c, "the chosen elements are not shown", true);
    }
    fem_free(path);
}

fem_status scene_assemble(solver_assembly **assembly, const scene *s, const fem_progress *progress, char **notes,
                          bool *kept) {
    const scene_part  *part = &s->parts[s->object];
    cache_context      context = {.s = s, .notes = notes, .kept = true, .lock = PTHREAD_MUTEX_INITIALIZER};
    solver_class_store store = {.load = load_class, .save = save_class, .context = &context};
    fem_status         status =
        solver_assembly_create(assembly, &part->mesh, &s->tree.domains, part->fixed.count, part->fixed.items,
                               &s->tree.assembly, s->cache ? &store : NULL, progress);
    if (kept) *kept = context.kept;
    if (status == FEM_OK) status = scene_note_rules(s, (*assembly)->count, (*assembly)->classes, notes);
    if (status != FEM_OK && status != FEM_STOPPED) fem_fail_prefix(status, "%s: part \"%s\": ", s->path, part->name);
    return status;
}

fem_status scene_precompute_forest(const scene *s, solver_forest *forest, const fem_progress *progress, char **notes,
                                   bool *kept) {
    cache_context      context = {.s = s, .notes = notes, .kept = true, .lock = PTHREAD_MUTEX_INITIALIZER};
    solver_class_store store = {.load = load_class, .save = save_class, .context = &context};
    fem_status         status = solver_forest_precompute(forest, s->cache ? &store : NULL, progress);
    if (kept) *kept = context.kept;
    if (status == FEM_OK) status = scene_note_rules(s, forest->part_count, forest->classes, notes);
    return status;
}

void scene_report_assembly(const scene *s, const solver_assembly *a, scene_result *result) {
    result->domains = a->count;
    result->cached_domains = a->cached;
    result->modes = a->modes;
    result->cached = a->cached > 0;
    result->seconds_modes = a->seconds_modes;
    result->seconds_forces = a->seconds_forces;
    for (int i = 0; i < a->count; i++)
        if (a->classes[i]->basis.r > 0 && !a->classes[i]->cached) result->cached = false;
    scene_report_rules(s, a->count, a->classes, result);
}

// ---- the motion ----------------------------------------------------------------------------------------------------

typedef struct tree_motion {
    scene_motion      base;
    const scene      *s;
    const fem_mesh   *mesh;
    solver_assembly  *assembly;
    solver_tree      *tree;
    const scene_move *drive; // of a driven root, or NULL
    int              *point; // per vertex: of the tree, or -1
    double           *loads; // per action: 3 per vertex; NULL for those that are no load
    double           *total; // 3 per vertex
    bool             *done;  // per action: this change of stiffness has been made
    scene_contacts    contacts;
    scene_wind       *wind; // or NULL
    double           *u, *v;
    double            seconds;
    int               steps;
} tree_motion;

static void destroy(scene_motion *motion) {
    tree_motion *m = (tree_motion *)motion;
    scene_contacts_destroy(&m->contacts);
    scene_wind_destroy(m->wind);
    solver_tree_destroy(m->tree);
    solver_assembly_destroy(m->assembly);
    fem_free(m->point), fem_free(m->loads), fem_free(m->total), fem_free(m->done);
    fem_free(m->u), fem_free(m->v);
    fem_free(m);
}

static void show(scene_motion *motion) {
    tree_motion *m = (tree_motion *)motion;
    solver_assembly_show(m->assembly, m->tree, m->u, m->v);
}

static scene_limb limb(const scene_motion *motion, int domain) {
    const tree_motion     *m = (const tree_motion *)motion;
    const solver_assembly *a = m->assembly;
    const solver_class    *c = a->classes[a->instances[domain].class_index];
    scene_limb of = {.name = m->s->tree.domains.name[domain], .mesh = &c->mesh, .r = c->basis.r, .U = c->basis.U};
    memcpy(of.origin, a->origin[domain], sizeof of.origin);
    return of;
}

static const double *pose(const scene_motion *motion, int domain, scene_pose *to) {
    const tree_motion *m = (const tree_motion *)motion;
    memcpy(to->p, m->assembly->shown[domain].p, sizeof to->p);
    memcpy(to->Q, m->assembly->shown[domain].Q, sizeof to->Q);
    return solver_tree_q(m->tree, domain);
}

static void energies(const scene_motion *motion, solver_energies *e) {
    const tree_motion   *m = (const tree_motion *)motion;
    solver_tree_energies t;
    solver_tree_get_energies(m->tree, &t);
    *e = (solver_energies){.kinetic = t.kinetic, .strain = t.strain + t.springs, .load = t.potential};
    for (int v = 0; m->total && v < m->mesh->vertex_count; v++) { // where the domain has the vertex that the load is on
        double x[3], u[3];
        if (m->point[v] < 0) continue;
        solver_tree_point(m->tree, m->point[v], x, NULL);
        vec3_sub(u, x, m->mesh->vertices + 3 * (size_t)v);
        e->load -= vec3_dot(m->total + 3 * (size_t)v, u);
    }
}

static void report(const scene_motion *motion, scene_result *result) {
    const tree_motion *m = (const tree_motion *)motion;
    scene_report_assembly(m->s, m->assembly, result);
    result->tree = solver_tree_get_report(m->tree);
    for (int i = 0; i < m->assembly->count && result->damping_stiffness == 0; i++) {
        double mass;
        if (m->assembly->by_ratio[i]) solver_tree_get_damping(m->tree, i, &mass, &result->damping_stiffness);
    }
    result->step.steps = m->steps;
    result->step.shifts = result->tree.shifts;
    result->step.seconds_step = m->seconds;
    scene_contacts_report(&m->contacts, result);
}

// ---- what happens at a time ----------------------------------------------------------------------------------------

static void drive_root(void *context, double time, solver_frame_motion *motion) {
    static const double unturned[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    const tree_motion  *m = context;
    scene_drive_at(m->drive, m->assembly->origin[0], unturned, m->s->tree.options.time_step, time, motion);
}

static fem_status apply_loads(tree_motion *m, double time) {
    fem_status status = FEM_OK;
    size_t     n = 3 * (size_t)m->mesh->vertex_count;
    if (!m->loads) return FEM_OK;
    memset(m->total, 0, n * sizeof *m->total);
    for (int i = 0; i < m->s->action_count; i++) {
        const scene_action *a = &m->s->actions[i];
        double              factor = scene_is_load(a->kind) ? scene_load_factor(a, time) : 0;
        if (factor != 0) dense_axpy((int)n, factor, m->loads + (size_t)i * n, m->total);
    }
    for (int v = 0; v < m->mesh->vertex_count; v++)
        if (m->point[v] >= 0) FEM_TRY(solver_tree_set_force(m->tree, m->point[v], m->total + 3 * (size_t)v));
done:
    return status;
}

static fem_status change_stiffness(tree_motion *m, double time) {
    fem_status status = FEM_OK;
    for (int k = 0; k < m->s->action_count; k++) {
        const scene_action *a = &m->s->actions[k];
        bool                stiffness = a->kind == SCENE_STIFFNESS;
        if ((!stiffness && a->kind != SCENE_FREQUENCY) || m->done[k] || time < a->start) continue;
        for (int i = 0; i < m->assembly->count; i++)
            if (a->domain < 0 || a->domain == i)
                FEM_TRY(solver_tree_set_stiffness(m->tree, i, stiffness ? a->factor : a->factor * a->factor));
        m->done[k] = true;
    }
done:
    return status;
}

static fem_status step(scene_motion *motion, double time) {
    fem_status   status = FEM_OK;
    tree_motion *m = (tree_motion *)motion;
    double       begun = fem_seconds(), h = m->s->tree.options.time_step;
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
    return solver_tree_state_size(((const tree_motion *)motion)->tree);
}

static void save(const scene_motion *motion, double *numbers) {
    solver_tree_save_state(((const tree_motion *)motion)->tree, numbers);
}

static fem_status restore(scene_motion *motion, int steps, const double *numbers) {
    fem_status   status = FEM_OK;
    tree_motion *m = (tree_motion *)motion;
    double       h = m->s->tree.options.time_step;
    for (int k = 0; k < steps; k++) FEM_TRY(change_stiffness(m, (k + 1) * h - h)); // as the steps did, in their order
    if (steps > 0) FEM_TRY(apply_loads(m, steps * h - h / 2));
    FEM_TRY(solver_tree_restore_state(m->tree, numbers));
    motion->time = steps * h;
done:
    return status;
}

// ---- creation ------------------------------------------------------------------------------------------------------

static fem_status make_loads(tree_motion *m, const fem_body *body) {
    fem_status status = FEM_OK;
    size_t     n = 3 * (size_t)m->mesh->vertex_count;
    bool       any = false;
    for (int i = 0; i < m->s->action_count; i++) any = any || scene_is_load(m->s->actions[i].kind);
    if (!any) return FEM_OK;
    m->loads = fem_calloc(n * (size_t)m->s->action_count, sizeof *m->loads);
    m->total = fem_calloc(n, sizeof *m->total);
    m->point = fem_alloc(n / 3, sizeof *m->point);
    if (!m->loads || !m->total || !m->point)
        return fem_fail(FEM_NO_MEMORY, "no memory for loads on %zu vertices", n / 3);
    for (size_t v = 0; v < n / 3; v++) m->point[v] = -1;
    for (int i = 0; i < m->s->action_count; i++) {
        const scene_action *a = &m->s->actions[i];
        if (!scene_is_load(a->kind)) continue;
        FEM_TRY(scene_load_force(&a->load, body, m->loads + n * (size_t)i));
        for (int k = 0; k < a->load.on.count; k++) {
            int v = a->load.on.items[k];
            if (m->point[v] < 0 && m->assembly->owner[v] >= 0)
                FEM_TRY(solver_assembly_point(m->assembly, m->tree, v, &m->point[v]));
        }
    }
done:
    return status;
}

// The surface of the whole body that a domain owns, as samples of its class.
static fem_status make_samples(const tree_motion *m, int domain, const double *area, solver_samples *samples) {
    const solver_assembly *a = m->assembly;
    const solver_class    *c = a->classes[a->instances[domain].class_index];
    size_t                 r = (size_t)c->basis.r, vertices = (size_t)c->mesh.vertex_count, n = (size_t)c->basis.n;
    *samples = (solver_samples){.r = c->basis.r};
    samples->X = fem_alloc(3 * vertices, sizeof(double));
    samples->U = fem_alloc(3 * vertices * r, sizeof(double));
    samples->area = fem_alloc(vertices, sizeof(double));
    if (!samples->X || !samples->U || !samples->area) return fem_fail(FEM_NO_MEMORY, "no memory for contact");
    for (size_t v = 0; v < vertices; v++) {
        int whole = a->local[domain][v];
        if (a->owner[whole] != domain || !(area[whole] > 0)) continue;
        size_t k = (size_t)samples->count++;
        samples->area[k] = area[whole];
        for (size_t i = 0; i < 3; i++) {
            samples->X[3 * k + i] = c->mesh.vertices[3 * v + i];
            for (size_t l = 0; l < r; l++) samples->U[(3 * k + i) * r + l] = c->basis.U[n * l + 3 * v + i];
        }
    }
    return FEM_OK;
}

static fem_status make_domain_contact(tree_motion *m, int domain, const double *area) {
    fem_status          status = FEM_OK;
    solver_samples      samples = {0};
    const solver_class *c = m->assembly->classes[domain];
    FEM_TRY(make_samples(m, domain, area, &samples));
    FEM_TRY(scene_contacts_add(&m->contacts, domain, &samples, c->inertia.Mqq, c->inertia.m));
done:
    solver_samples_destroy(&samples);
    return status;
}

static fem_status make_contact(tree_motion *m, char **notes) {
    fem_status status = FEM_OK;
    int        most = 0;
    double    *area = NULL;
    if (m->s->obstacle_count == 0) return FEM_OK;
    for (int i = 0; i < m->assembly->count; i++)
        if (m->assembly->classes[i]->basis.r > most) most = m->assembly->classes[i]->basis.r;
    FEM_TRY(scene_contacts_create(&m->contacts, m->s, m->tree, m->assembly->count, most));
    FEM_TRY(scene_vertex_areas(m->mesh, &area));
    for (int i = 0; i < m->assembly->count; i++) FEM_TRY(make_domain_contact(m, i, area));
    FEM_TRY(scene_contacts_note(&m->contacts, "domains", notes));
done:
    fem_free(area);
    return status;
}

// Each domain feels the wind on the surface of the whole body that belongs to its elements.
static fem_status make_wind(tree_motion *m) {
    fem_status             status = FEM_OK;
    const solver_assembly *a = m->assembly;
    const scene_part      *part = &m->s->parts[m->s->object];
    int                    count = 0, *triangles = NULL, *own = NULL, *local = NULL;
    scene_sail            *sails = NULL;
    if (!m->s->windy) return FEM_OK;
    FEM_TRY(fem_mesh_surface(m->mesh, &count, &triangles, NULL));
    sails = fem_calloc((size_t)a->class_count, sizeof *sails);
    own = fem_alloc(3 * (size_t)count, sizeof *own);
    local = fem_alloc((size_t)m->mesh->vertex_count, sizeof *local);
    if (!sails || !own || !local) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for wind on %d triangles", count);
        goto done;
    }
    int used = 0;
    for (int i = 0; i < a->count; i++) { // a triangle goes to the first domain that has all of it
        const solver_class *c = a->classes[a->instances[i].class_index];
        scene_sail         *sail = &sails[a->instances[i].class_index];
        int                 first = used;
        for (int v = 0; v < m->mesh->vertex_count; v++) local[v] = -1;
        for (int v = 0; v < c->mesh.vertex_count; v++) local[a->local[i][v]] = v;
        for (int t = 0; t < count; t++) {
            int *corner = triangles + 3 * (size_t)t;
            if (corner[0] < 0 || local[corner[0]] < 0 || local[corner[1]] < 0 || local[corner[2]] < 0) continue;
            for (int k = 0; k < 3; k++) own[3 * (size_t)used + (size_t)k] = local[corner[k]];
            corner[0] = -1;
            used++;
        }
        *sail = (scene_sail){.mesh = &c->mesh, .triangles = own + 3 * (size_t)first, .basis = &c->basis};
        sail->triangle_count = used - first;
        sail->drag = part->drag;
    }
    FEM_TRY(scene_wind_create(&m->wind, m->s, a->class_count, sails, a->count, a->instances));
done:
    fem_free(triangles), fem_free(own), fem_free(local), fem_free(sails);
    return status;
}

static fem_status place_root(tree_motion *m) {
    fem_status          status = FEM_OK;
    solver_frame_motion start;
    double              Q[9];
    if (m->drive) return solver_tree_set_drive(m->tree, 0, drive_root, m);
    if (m->assembly->held) return FEM_OK;
    mat3_exp(Q, m->s->rotation);
    solver_assembly_place(m->assembly, Q, m->s->translation, m->s->velocity, m->s->spin, &start);
    FEM_TRY(solver_tree_set_root(m->tree, 0, &start));
done:
    return status;
}

fem_status scene_motion_tree(scene_motion **motion, const scene *s, const fem_body *body, const fem_progress *progress,
                             char **notes) {
    fem_status   status = FEM_OK;
    tree_motion *m = fem_calloc(1, sizeof *m);
    if (!m) return fem_fail(FEM_NO_MEMORY, "no memory for a run");
    m->s = s;
    m->mesh = &s->parts[s->object].mesh;
    m->base = (scene_motion){.step = step,
                             .show = show,
                             .energies = energies,
                             .report = report,
                             .destroy = destroy,
                             .state_size = state_size,
                             .save = save,
                             .restore = restore};
    for (int i = 0; i < s->action_count; i++)
        if (s->actions[i].kind == SCENE_MOVE) m->drive = &s->actions[i].move;
    FEM_TRY(scene_assemble(&m->assembly, s, progress, notes, NULL));
    FEM_TRY(solver_assembly_set_seams(m->assembly, s->seams));
    m->u = fem_calloc(3 * (size_t)m->mesh->vertex_count, sizeof *m->u);
    m->v = fem_calloc(3 * (size_t)m->mesh->vertex_count, sizeof *m->v);
    m->done = fem_calloc((size_t)s->action_count, sizeof *m->done);
    if (!m->u || !m->v || !m->done) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d vertices", m->mesh->vertex_count);
        goto done;
    }
    m->base.u = m->u, m->base.v = m->v;
    m->base.limb = limb, m->base.pose = pose;
    m->base.limb_count = m->assembly->warped ? 0 : m->assembly->count; // warped domains do not move as U q
    FEM_TRY(solver_assembly_tree(&m->tree, m->assembly, m->drive != NULL, &s->tree.options));
    FEM_TRY(place_root(m));
    solver_tree_set_gravity(m->tree, s->gravity);
    FEM_TRY(make_loads(m, body));
    FEM_TRY(make_contact(m, notes));
    FEM_TRY(make_wind(m));
    FEM_TRY(change_stiffness(m, 0));
    *motion = &m->base;
    m = NULL;
done:
    if (m) destroy(&m->base);
    return status;
}
