// Scenes of several objects: instances of parts in one tree. u and v are of the mesh of all instances together.
#include "libscene/class.h"
#include "libscene/forest_motion.h"
#include "libscene/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- classes -------------------------------------------------------------------------------------------------------

fem_status scene_make_forest(solver_forest **made, const scene *s, const fem_progress *progress, char **notes,
                             scene_result *result) {
    fem_status          status = FEM_OK;
    const scene_forest *f = &s->forest;
    solver_forest      *forest = NULL;
    FEM_TRY(solver_forest_create(&forest, f->part_count, f->parts, f->count, f->instances, NULL));
    FEM_TRY(scene_precompute_forest(s, forest, progress, notes, result));
    if (result) scene_report_forest(s, forest, result);
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

static void destroy(scene_motion *motion) {
    forest_motion *m = (forest_motion *)motion;
    scene_tree_motion_end(&m->common);
    forest_end_stitching(m);
    solver_forest_destroy(m->forest);
    fem_free(m->drives), fem_free(m->space), fem_free(m->shown);
    fem_free(m);
}

static void show_task(void *context, int i, int worker) {
    forest_motion *m = context;
    (void)worker;
    size_t at = 3 * (size_t)m->common.s->forest.vertex[i], end = 3 * (size_t)m->common.s->forest.vertex[i + 1];
    solver_forest_show(m->forest, m->common.tree, i, m->common.u + at, m->common.v + at, m->space + at);
    for (size_t k = at; k < end; k++) m->common.u[k] -= m->common.mesh->vertices[k];
}

static void show(scene_motion *motion) {
    forest_motion *m = (forest_motion *)motion;
    for (int i = 0; i < m->forest->count; i++)
        solver_tree_frame(m->common.tree, i, &m->shown[i]); // and poses are known
    fem_parallel_for(m->forest->count, show_task, m);
}

static scene_limb limb(const scene_motion *motion, int i) {
    const forest_motion *m = (const forest_motion *)motion;
    int                  part = m->common.s->forest.instances[i].part;
    const solver_class  *c = m->forest->classes[part];
    scene_limb           of = {.name = m->common.s->forest.instances[i].name,
                               .mesh = &c->mesh,
                               .r = c->basis.r,
                               .U = c->basis.U,
                               .shape = part,
                               .scale = m->forest->world[i].scale};
    memcpy(of.origin, m->forest->origin[part], sizeof of.origin);
    return of;
}

static const double *pose(const scene_motion *motion, int i, scene_pose *to) {
    const forest_motion *m = (const forest_motion *)motion;
    memcpy(to->p, m->shown[i].p, sizeof to->p);
    memcpy(to->Q, m->shown[i].Q, sizeof to->Q);
    return solver_tree_q(m->common.tree, i);
}

static void report(const scene_motion *motion, scene_result *result) {
    const forest_motion *m = (const forest_motion *)motion;
    scene_report_forest(m->common.s, m->forest, result);
    scene_tree_motion_report(&m->common, result);
}

static void drive_root(void *context, double time, solver_frame_motion *motion) {
    const forest_drive *d = context;
    scene_drive_at(d->move, d->rest.p, d->rest.Q, d->h, time, motion);
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

static fem_status find_point(scene_tree_motion *common, int vertex, int *point) {
    const forest_motion *m = (const forest_motion *)common;
    int                  instance = instance_of(&common->s->forest, vertex);
    return solver_forest_point(m->forest, common->tree, instance, vertex - common->s->forest.vertex[instance], point);
}

// Samples of an instance: the surface of its part, in its own size.
static fem_status make_samples(const forest_motion *m, int instance, const double *area, solver_samples *samples) {
    const solver_class *c = m->forest->classes[m->common.s->forest.instances[instance].part];
    const modes_basis  *basis = solver_forest_basis(m->forest, instance);
    size_t              r = (size_t)basis->r, vertices = (size_t)c->mesh.vertex_count, n = (size_t)basis->n;
    double              scale = m->forest->world[instance].scale;
    *samples = (solver_samples){.r = basis->r};
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
            for (size_t l = 0; l < r; l++) samples->U[(3 * k + i) * r + l] = scale * basis->U[n * l + 3 * v + i];
        }
    }
    return FEM_OK;
}

static fem_status make_instance_contact(forest_motion *m, int instance, const double *area) {
    fem_status            status = FEM_OK;
    solver_samples        samples = {0};
    const solver_class   *c = m->forest->classes[m->common.s->forest.instances[instance].part];
    const solver_inertia *inertia = m->forest->own[instance] ? &m->forest->own[instance]->inertia : &c->inertia;
    double                s = m->forest->world[instance].scale, cube = s * s * s;
    size_t                r = (size_t)inertia->r;
    double               *M = fem_copy(inertia->Mqq, r * r, sizeof *M);
    if (!M && r > 0) return fem_fail(FEM_NO_MEMORY, "no memory for contact");
    for (size_t i = 0; i < r * r; i++) M[i] *= cube * s * s; // as x = p + Q s (X + U q)
    FEM_TRY(make_samples(m, instance, area, &samples));
    FEM_TRY(scene_contacts_add(&m->common.contacts, instance, &samples, M, cube * inertia->m));
done:
    fem_free(M);
    solver_samples_destroy(&samples);
    return status;
}

static fem_status make_contact(forest_motion *m) {
    fem_status status = FEM_OK;
    int        most = 0;
    double   **area = NULL;
    if (m->common.s->obstacle_count == 0) return FEM_OK;
    for (int i = 0; i < m->forest->count; i++)
        if (solver_forest_basis(m->forest, i)->r > most) most = solver_forest_basis(m->forest, i)->r;
    area = fem_calloc((size_t)m->forest->part_count, sizeof *area);
    if (!area) return fem_fail(FEM_NO_MEMORY, "no memory for contact");
    FEM_TRY(scene_contacts_create(&m->common.contacts, m->common.s, m->common.tree, m->forest->count, most));
    for (int k = 0; k < m->forest->part_count; k++)
        if (m->forest->classes[k])
            FEM_TRY(scene_vertex_areas(&m->forest->classes[k]->mesh, m->common.s->parts[k].skin_count,
                                       m->common.s->parts[k].skin, &area[k]));
    for (int i = 0; i < m->forest->count; i++)
        FEM_TRY(make_instance_contact(m, i, area[m->common.s->forest.instances[i].part]));
done:
    for (int k = 0; area && k < m->forest->part_count; k++) fem_free(area[k]);
    fem_free(area);
    return status;
}

// Each instance feels the wind on all of its part's surface.
static fem_status make_wind(forest_motion *m) {
    fem_status           status = FEM_OK;
    const solver_forest *f = m->forest;
    int                  count = 0;
    if (!m->common.s->windy) return FEM_OK;
    scene_sail *sails = fem_calloc((size_t)f->part_count + (size_t)m->own_count, sizeof *sails);
    if (!sails) return fem_fail(FEM_NO_MEMORY, "no memory for wind on %d parts", f->part_count);
    for (int k = 0; k < f->part_count; k++) // in the order of the tree's classes: parts without instances have none
        if (f->classes[k])
            sails[count++] = (scene_sail){.mesh = &f->classes[k]->mesh,
                                          .triangles = m->common.s->parts[k].skin,
                                          .triangle_count = m->common.s->parts[k].skin_count,
                                          .basis = &f->classes[k]->basis,
                                          .drag = m->common.s->parts[k].drag};
    for (int i = 0; i < f->count; i++) // and then those that instances have of their own
        if (f->own[i])
            sails[count++] = (scene_sail){.mesh = &f->classes[f->given[i].part]->mesh,
                                          .triangles = m->common.s->parts[f->given[i].part].skin,
                                          .triangle_count = m->common.s->parts[f->given[i].part].skin_count,
                                          .basis = &f->own[i]->basis,
                                          .drag = m->common.s->parts[f->given[i].part].drag};
    FEM_TRY(scene_wind_create(&m->common.wind, m->common.s, count, sails, f->count));
done:
    fem_free(sails);
    return status;
}

// Free bodies start with their motion, which is that of their centre, where their frame is; driven roots follow.
static fem_status place_roots(forest_motion *m) {
    fem_status status = FEM_OK;
    for (int i = 0; i < m->forest->count; i++) {
        const solver_forest_instance *g = &m->common.s->forest.instances[i];
        solver_frame_motion           start;
        if (g->parent >= 0) continue;
        solver_forest_frame(m->forest, i, &start);
        if (m->common.s->parts[g->part].fixed.count == 0) {
            const double *given = m->common.s->forest.motion[i];
            memcpy(start.v, given, sizeof start.v);
            for (int k = 0; k < 3; k++)
                start.w[k] = start.Q[k] * given[3] + start.Q[3 + k] * given[4] + start.Q[6 + k] * given[5];
            FEM_TRY(solver_tree_set_root(m->common.tree, i, &start));
        }
        for (int a = 0; a < m->common.s->action_count; a++) {
            const scene_action *action = &m->common.s->actions[a];
            if (action->kind != SCENE_MOVE) continue;
            for (int k = 0; k < action->load.on.count && !m->drives[i].move; k++)
                if (instance_of(&m->common.s->forest, action->load.on.items[k]) == i)
                    m->drives[i] = (forest_drive){&action->move, start, m->common.s->tree.options.time_step};
        }
        if (m->drives[i].move) FEM_TRY(solver_tree_set_drive(m->common.tree, i, drive_root, &m->drives[i]));
    }
done:
    return status;
}

fem_status forest_build_tree(forest_motion *m) {
    fem_status         status = FEM_OK;
    scene_tree_motion *c = &m->common;
    FEM_TRY(solver_forest_tree(&c->tree, m->forest, &c->s->tree.options));
    FEM_TRY(place_roots(m));
    solver_tree_set_gravity(c->tree, c->s->gravity);
    for (int k = 0; k < c->loaded; k++) FEM_TRY(find_point(c, c->vertices[k], &c->points[k]));
    FEM_TRY(make_contact(m));
    FEM_TRY(make_wind(m));
done:
    return status;
}

void forest_leave_tree(scene_tree_motion *common) {
    scene_contacts_destroy(&common->contacts);
    scene_wind_destroy(common->wind);
    solver_tree_destroy(common->tree);
    fem_free(common->points);
}

fem_status scene_motion_forest(scene_motion **motion, const scene *s, const fem_progress *progress, char **notes) {
    fem_status     status = FEM_OK;
    forest_motion *m = fem_calloc(1, sizeof *m);
    if (!m) return fem_fail(FEM_NO_MEMORY, "no memory for a run");
    scene_tree_motion *c = &m->common;
    size_t             count = (size_t)s->forest.count;
    c->base = (scene_motion){
        .show = show, .report = report, .destroy = destroy, .limb = limb, .pose = pose, .limb_count = s->forest.count};
    FEM_TRY(scene_tree_motion_begin(c, s));
    FEM_TRY(scene_make_forest(&m->forest, s, progress, notes, NULL));
    m->space = fem_alloc(3 * (size_t)c->mesh->vertex_count, sizeof *m->space);
    m->shown = fem_calloc(count, sizeof *m->shown);
    m->drives = fem_calloc(count, sizeof *m->drives);
    if (!m->space || !m->shown || !m->drives) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %zu instances", count);
        goto done;
    }
    m->progress = progress, m->notes = notes;
    FEM_TRY(forest_build_tree(m));
    FEM_TRY(scene_tree_motion_load(c, NULL, find_point));
    FEM_TRY(scene_contacts_note(&c->contacts, "instances", notes));
    FEM_TRY(scene_tree_motion_stiffen(c, 0));
    if (s->forest.stitched_count > 0) FEM_TRY(forest_begin_stitching(m));
    *motion = &c->base;
    m = NULL;
done:
    if (m) destroy(&m->common.base);
    return status;
}
