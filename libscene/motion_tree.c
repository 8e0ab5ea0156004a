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
    scene_stored   stored = {.basis = &class->basis,
                             .polynomial = &class->polynomial,
                             .rule = &class->rule,
                             .training = &class->training,
                             .whole_count = &class->whole_count,
                             .whole = &class->whole};
    bool           cubature = class->kind == SOLVER_FORCES_CUBATURE;
    fem_status     status = scene_cache_path(&path, c->s->cache, cache_name(c, class), key);
    if (status == FEM_OK)
        status = scene_class_read(&stored, &class->mesh, class->kind == SOLVER_FORCES_POLYNOMIAL,
                                  cubature ? class_training(c, class) : NULL, key, path);
    if (status == FEM_BAD_INPUT) note(c, "it is computed again", true);
    if (status != FEM_OK) {
        modes_basis_destroy(&class->basis);
        cubature_polynomial_destroy(&class->polynomial);
        cubature_rule_destroy(&class->rule);
        fem_free(class->whole);
        class->whole = NULL, class->whole_count = 0;
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
    int                      whole_count = class->whole_count;
    double                  *whole = class->whole;
    scene_stored             stored = {.basis = &basis,
                                       .polynomial = &polynomial,
                                       .rule = rule.count > 0 ? &rule : NULL,
                                       .training = &training,
                                       .whole_count = &whole_count,
                                       .whole = &whole};
    char                     text[1200];
    fem_status               status = scene_cache_path(&path, c->s->cache, cache_name(c, class), key);
    if (status == FEM_OK) status = scene_class_write(&stored, key, path);
    if (status != FEM_OK) note(c, "the class is not kept", false);
    if (status == FEM_OK && rule.count > 0) {
        snprintf(text, sizeof text, "%.1100s.vtu", path);
        if (scene_cubature_write(&rule, &class->mesh, text) != FEM_OK)
            note(c, "the chosen elements are not shown", true);
    }
    fem_free(path);
}

// Where the classes of a scene are kept, and the memory that they may be made in.
typedef struct class_making {
    cache_context      context;
    solver_class_store store;
    solver_room       *room;
} class_making;

static fem_status begin_making(class_making *m, const scene *s, char **notes) {
    m->context = (cache_context){.s = s, .notes = notes, .kept = true, .lock = PTHREAD_MUTEX_INITIALIZER};
    m->store = (solver_class_store){.load = load_class, .save = save_class, .context = &m->context};
    m->room = NULL;
    return s->memory > 0 ? solver_room_create(&m->room, s->memory) : FEM_OK;
}

static void end_making(class_making *m, scene_result *result) {
    if (result) result->kept = m->context.kept;
    if (result && m->room) result->room = solver_room_get_report(m->room);
    solver_room_destroy(m->room);
}

fem_status scene_assemble(solver_assembly **assembly, const scene *s, const fem_progress *progress, char **notes,
                          scene_result *result) {
    const scene_part       *part = &s->parts[s->object];
    solver_assembly_options options = s->tree.assembly;
    class_making            m;
    fem_status              status = begin_making(&m, s, notes);
    options.class.room = m.room;
    if (status == FEM_OK)
        status = solver_assembly_create(assembly, &part->mesh, &s->tree.domains, part->fixed.count, part->fixed.items,
                                        &options, s->cache ? &m.store : NULL, progress);
    end_making(&m, result);
    if (status == FEM_OK) status = scene_note_rules(s, (*assembly)->count, (*assembly)->classes, notes);
    if (status == FEM_OK && result) scene_report_assembly(s, *assembly, result);
    if (status != FEM_OK && status != FEM_STOPPED) fem_fail_prefix(status, "%s: part \"%s\": ", s->path, part->name);
    return status;
}

fem_status scene_precompute_forest(const scene *s, solver_forest *forest, const fem_progress *progress, char **notes,
                                   scene_result *result) {
    class_making m;
    fem_status   status = begin_making(&m, s, notes);
    if (status == FEM_OK) status = solver_forest_precompute(forest, s->cache ? &m.store : NULL, m.room, progress);
    end_making(&m, result);
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

// ---- what is to be known of the model ------------------------------------------------------------------------------

enum { FEW = 2 }; // of the domains asked for, less than one in so many is worth a word

bool scene_cut_text(const scene *s, char text[SCENE_CUT_TEXT]) {
    const domain_report *r = &s->tree.domains.report;
    const char          *why = s->parts[s->object].fixed.count > 0
                                   ? "loops, or fixed vertices on several limbs, keep it together; \"loops\": \"springs\" and "
                                     "\"feet\": \"springs\" would do"
                               : r->loops > 0 ? "loops were merged; \"loops\": \"springs\" would do"
                                              : "it has few limbs that could be cut across";
    if (FEW * s->tree.domains.count >= r->asked) return false;
    snprintf(text, SCENE_CUT_TEXT, "%d of %d domains remain, the largest with %.0f%% of the elements: %s",
             s->tree.domains.count, r->asked, 100 * r->largest_share, why);
    return true;
}

bool scene_held_text(const scene *s, char text[SCENE_CUT_TEXT]) {
    const scene_tree *t = &s->tree;
    char              others[40] = "";
    if (t->held_count == 0) return false;
    if (t->held_count > 1)
        snprintf(others, sizeof others, " and %d other%s", t->held_count - 1, t->held_count > 2 ? "s" : "");
    snprintf(text, SCENE_CUT_TEXT,
             "\"%.60s\"%s: all vertices lie on the interface to the parent, so that it is rigid; in one region or set "
             "with the parent it would bend, and \"modes\": 0 says that it shall not",
             t->domains.name[t->held_first], others);
    return true;
}

static fem_status note_cut(const scene *s, char **notes) {
    fem_status status = FEM_OK;
    char       cut[SCENE_CUT_TEXT], text[SCENE_CUT_TEXT + 20];
    for (int k = 0; k < 2 && status == FEM_OK; k++) {
        if (!(k == 0 ? scene_cut_text(s, cut) : scene_held_text(s, cut))) continue;
        snprintf(text, sizeof text, "decompose: %s", cut);
        status = scene_add_note(notes, text);
    }
    return status;
}

fem_status scene_note_model(const scene *s, const solver_assembly *a, solver_tree *tree, int count, char **notes) {
    static const double   enough = 0.01, turn = 6.283185307179586;
    char                  text[800], where[400];
    solver_assembly_check check;
    solver_tree          *own = NULL;
    fem_status            status = note_cut(s, notes);
    if (status == FEM_OK && a->whole_lost)
        status = scene_add_note(notes, "decompose: the whole mesh's stiffness is singular to rounding, so that its "
                                       "modes neither helped to make the domains nor can be compared with theirs");
    if (status == FEM_OK && !tree) status = solver_assembly_tree(&own, a, false, &s->tree.options);
    if (status == FEM_OK) status = solver_assembly_examine(a, tree ? tree : own, count, &check);
    solver_tree_destroy(own);
    if (status == FEM_OK && check.count > 0 && check.count < count && count > SCENE_MODEL_MODES) {
        snprintf(
            text, sizeof text,
            "decompose: the domains are made for the lowest %d frequencies; those beyond are not compared with the "
            "whole mesh's, and higher the fewer modes there are",
            check.count);
        status = scene_add_note(notes, text);
    }
    if (status != FEM_OK || check.count == 0 || fabs(check.omega / check.whole - 1) <= enough) return status;
    const solver_class *c = a->classes[a->instances[check.domain].class_index];
    if (s->tree.options.subtree != SOLVER_ARTICULATED)
        snprintf(where, sizeof where, "the solver's \"subtree\": \"articulated\" would do");
    else if (check.soft)
        snprintf(
            where, sizeof where,
            "\"%.60s\" hangs on a wide interface, whose deformation it follows in %d shapes only; another \"count\" "
            "or \"method\" of the cut would do",
            c->name, c->carried);
    else
        snprintf(where, sizeof where,
                 "\"%.60s\" has no shapes for %.2g%% of that mode's energy; more \"modes\" for it (now %d) would do",
                 c->name, 100 * check.left, c->basis.r - c->carried);
    snprintf(text, sizeof text,
             "decompose: of the lowest %d frequencies of the coupled model, number %d is off by %.2g%% (%.4g Hz, the "
             "whole mesh has %.4g): %s",
             check.count, check.mode + 1, 100 * fabs(check.omega / check.whole - 1), check.omega / turn,
             check.whole / turn, where);
    return scene_add_note(notes, text);
}

// ---- the motion ----------------------------------------------------------------------------------------------------

typedef struct tree_motion {
    scene_tree_motion common;
    solver_assembly  *assembly;
    const scene_move *drive; // of a driven root, or NULL
} tree_motion;

static void destroy(scene_motion *motion) {
    tree_motion *m = (tree_motion *)motion;
    scene_tree_motion_end(&m->common);
    solver_assembly_destroy(m->assembly);
    fem_free(m);
}

static void show(scene_motion *motion) {
    tree_motion *m = (tree_motion *)motion;
    solver_assembly_show(m->assembly, m->common.tree, m->common.u, m->common.v);
}

static scene_limb limb(const scene_motion *motion, int domain) {
    const tree_motion     *m = (const tree_motion *)motion;
    const solver_assembly *a = m->assembly;
    const solver_class    *c = a->classes[a->instances[domain].class_index];
    scene_limb             of = {
                    .name = m->common.s->tree.domains.name[domain], .mesh = &c->mesh, .r = c->basis.r, .U = c->basis.U};
    memcpy(of.origin, a->origin[domain], sizeof of.origin);
    return of;
}

static const double *pose(const scene_motion *motion, int domain, scene_pose *to) {
    const tree_motion *m = (const tree_motion *)motion;
    memcpy(to->p, m->assembly->shown[domain].p, sizeof to->p);
    memcpy(to->Q, m->assembly->shown[domain].Q, sizeof to->Q);
    return solver_tree_q(m->common.tree, domain);
}

static void report(const scene_motion *motion, scene_result *result) {
    const tree_motion *m = (const tree_motion *)motion;
    scene_report_assembly(m->common.s, m->assembly, result);
    for (int i = 0; i < m->assembly->count && result->damping_stiffness == 0; i++) {
        double mass;
        if (m->assembly->by_ratio[i]) solver_tree_get_damping(m->common.tree, i, &mass, &result->damping_stiffness);
    }
    scene_tree_motion_report(&m->common, result);
}

static void drive_root(void *context, double time, solver_frame_motion *motion) {
    static const double unturned[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    const tree_motion  *m = context;
    scene_drive_at(m->drive, m->assembly->origin[0], unturned, m->common.s->tree.options.time_step, time, motion);
}

// ---- creation ------------------------------------------------------------------------------------------------------

static fem_status find_point(scene_tree_motion *common, int vertex, int *point) {
    const tree_motion *m = (const tree_motion *)common;
    if (m->assembly->owner[vertex] < 0) return FEM_OK;
    return solver_assembly_point(m->assembly, common->tree, vertex, point);
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
    FEM_TRY(scene_contacts_add(&m->common.contacts, domain, &samples, c->inertia.Mqq, c->inertia.m));
done:
    solver_samples_destroy(&samples);
    return status;
}

static fem_status make_contact(tree_motion *m, char **notes) {
    fem_status status = FEM_OK;
    int        most = 0;
    double    *area = NULL;
    if (m->common.s->obstacle_count == 0) return FEM_OK;
    for (int i = 0; i < m->assembly->count; i++)
        if (m->assembly->classes[i]->basis.r > most) most = m->assembly->classes[i]->basis.r;
    FEM_TRY(scene_contacts_create(&m->common.contacts, m->common.s, m->common.tree, m->assembly->count, most));
    FEM_TRY(scene_vertex_areas(m->common.mesh, 0, NULL, &area));
    for (int i = 0; i < m->assembly->count; i++) FEM_TRY(make_domain_contact(m, i, area));
    FEM_TRY(scene_contacts_note(&m->common.contacts, "domains", notes));
done:
    fem_free(area);
    return status;
}

// Each domain feels the wind on the surface of the whole body that belongs to its elements.
static fem_status make_wind(tree_motion *m) {
    fem_status             status = FEM_OK;
    const solver_assembly *a = m->assembly;
    const scene_part      *part = &m->common.s->parts[m->common.s->object];
    int                    count = 0, *triangles = NULL, *own = NULL, *local = NULL;
    scene_sail            *sails = NULL;
    if (!m->common.s->windy) return FEM_OK;
    FEM_TRY(fem_mesh_surface(m->common.mesh, &count, &triangles, NULL));
    sails = fem_calloc((size_t)a->class_count, sizeof *sails);
    own = fem_alloc(3 * (size_t)count, sizeof *own);
    local = fem_alloc((size_t)m->common.mesh->vertex_count, sizeof *local);
    if (!sails || !own || !local) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for wind on %d triangles", count);
        goto done;
    }
    int used = 0;
    for (int i = 0; i < a->count; i++) { // a triangle goes to the first domain that has all of it
        const solver_class *c = a->classes[a->instances[i].class_index];
        scene_sail         *sail = &sails[a->instances[i].class_index];
        int                 first = used;
        for (int v = 0; v < m->common.mesh->vertex_count; v++) local[v] = -1;
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
    FEM_TRY(scene_wind_create(&m->common.wind, m->common.s, a->class_count, sails, a->count));
done:
    fem_free(triangles), fem_free(own), fem_free(local), fem_free(sails);
    return status;
}

static fem_status place_root(tree_motion *m) {
    fem_status          status = FEM_OK;
    solver_frame_motion start;
    double              Q[9];
    if (m->drive) return solver_tree_set_drive(m->common.tree, 0, drive_root, m);
    if (m->assembly->held) return FEM_OK;
    mat3_exp(Q, m->common.s->rotation);
    solver_assembly_place(m->assembly, Q, m->common.s->translation, m->common.s->velocity, m->common.s->spin, &start);
    FEM_TRY(solver_tree_set_root(m->common.tree, 0, &start));
done:
    return status;
}

fem_status scene_motion_tree(scene_motion **motion, const scene *s, const fem_body *body, const fem_progress *progress,
                             char **notes) {
    fem_status   status = FEM_OK;
    tree_motion *m = fem_calloc(1, sizeof *m);
    if (!m) return fem_fail(FEM_NO_MEMORY, "no memory for a run");
    scene_tree_motion *c = &m->common;
    c->base = (scene_motion){.show = show, .report = report, .destroy = destroy, .limb = limb, .pose = pose};
    for (int i = 0; i < s->action_count; i++)
        if (s->actions[i].kind == SCENE_MOVE) m->drive = &s->actions[i].move;
    FEM_TRY(scene_tree_motion_begin(c, s));
    FEM_TRY(scene_assemble(&m->assembly, s, progress, notes, NULL));
    FEM_TRY(solver_assembly_set_seams(m->assembly, s->seams));
    c->base.limb_count = m->assembly->warped ? 0 : m->assembly->count; // warped domains do not move as U q
    FEM_TRY(solver_assembly_tree(&c->tree, m->assembly, m->drive != NULL, &s->tree.options));
    // on a tree of its own: where frames were found before, rotations start from there, to rounding
    if (m->assembly->cached < m->assembly->count)
        FEM_TRY(scene_note_model(s, m->assembly, NULL, SCENE_MODEL_MODES, notes));
    FEM_TRY(place_root(m));
    solver_tree_set_gravity(c->tree, s->gravity);
    FEM_TRY(scene_tree_motion_load(c, body, find_point));
    FEM_TRY(make_contact(m, notes));
    FEM_TRY(make_wind(m));
    FEM_TRY(scene_tree_motion_stiffen(c, 0));
    *motion = &c->base;
    m = NULL;
done:
    if (m) destroy(&m->common.base);
    return status;
}
