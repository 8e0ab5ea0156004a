// Instances that are stitched while they move with others. Such an instance leaves the batch of its part: it gets a
// class of its own, the tree is made anew around it, and the others take over their state bit by bit. When its stitches
// are gone and it moves within the modes of its part again it returns.
#include "libscene/forest_motion.h"
#include "libscene/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct forest_own {
    int              instance;
    const scene     *alone;  // the part, with the actions that mean the instance
    scene_class      shared; // the class of the part; nothing of it is owned
    scene_stitching *stitching;
    scene_class *class; // its own, as that in the forest; NULL: it has that of its part
    double  made;       // up to this time its changes are made
    int     count;      // changes so far
    int     carries;    // the change, from 1, whose class has columns for what its modes lack of `state`; 0: none
    double *state;      // 2 x 3 per vertex: displacements and velocities in the frame of the part at the last change
    // what comes next, until it is taken
    bool              changed;
    bool              noted; // it is a change, not the way home
    scene_class      *next;
    solver_own_class *next_class;
    double           *next_q; // coordinates and rates
    int               next_carries;
    scene_change      change;
} forest_own;

// ---- notes ---------------------------------------------------------------------------------------------------------

fem_status scene_note_change(const scene_change *c, char **notes) {
    char text[900];
    int  used = snprintf(text, sizeof text, "at %.4g s%s%.100s: %d stitches, ", c->time, c->instance ? ", " : "",
                        c->instance ? c->instance : "", c->stitches);
    if (c->first)
        used += snprintf(text + used, sizeof text - (size_t)used, "the body has its first modes again");
    else
        used += snprintf(text + used, sizeof text - (size_t)used, "%s modes in %.3g s", scene_stitch_form_name(c->form),
                         c->seconds_modes);
    if (c->quality.count > 0)
        used +=
            snprintf(text + used, sizeof text - (size_t)used,
                     "; of %d frequencies the worst is about %.2g %% off, of the true modes at most %.2g %% is not in "
                     "the basis%s%s%s",
                     c->quality.count, 100 * c->quality.worst_error, 100 * fmax(0, 1 - c->quality.least_share),
                     c->quality.rebuild ? "; " : "", c->quality.rebuild ? c->quality.reason : "",
                     c->rebuilt           ? ": made anew"
                     : c->quality.rebuild ? ": they should be made anew"
                                          : "");
    if (c->forces.mean > 0)
        used += snprintf(text + used, sizeof text - (size_t)used, "; old forces are %.3g %% off, %s",
                         100 * c->forces.mean, c->reused ? "used again" : "made anew");
    if (used < 0) return FEM_OK;
    return scene_add_note(notes, text);
}

// ---- one instance --------------------------------------------------------------------------------------------------

static const modes_basis *basis_of(const forest_motion *m, const forest_own *o) {
    return solver_forest_basis(m->forest, o->instance);
}

static cubature_forces forces_of(const forest_motion *m, const forest_own *o) {
    return m->forest->own[o->instance] ? m->forest->own[o->instance]->forces : o->shared.forces;
}

static void drop_next(forest_own *o) {
    solver_own_class_destroy(o->next_class);
    scene_class_destroy(o->next);
    scene_change_destroy(&o->change);
    fem_free(o->next_q);
    o->next_class = NULL, o->next = NULL, o->next_q = NULL;
    o->changed = o->noted = false;
}

// Coordinates in another class. An instance of scale s and stiffness k has the energy s^5 dq^2/2 + s^3 k V(q): that of
// its class, with rates s dq / sqrt(k) and steps of h sqrt(k) / s, times s^3 k.
static fem_status carry_over(const forest_motion *m, forest_own *o, const scene_class *class,
                             const scene_passage *passage, solver_rebase_report *report) {
    fem_status                status = FEM_OK;
    const solver_coordinates *state;
    const scene_class        *to = class ? class : &o->shared;
    solver_reduced           *held = NULL;
    solver_reduced_options    options = solver_reduced_default_options();
    const modes_basis        *from = basis_of(m, o);
    cubature_forces           old = forces_of(m, o);
    double  s = m->forest->world[o->instance].scale, k = m->forest->given[o->instance].stiffness, rate = sqrt(k) / s;
    double *dq = fem_copy(solver_tree_dq(m->common.tree, o->instance), (size_t)from->r, sizeof *dq);
    int     r = to->basis.r;
    o->next_q = fem_alloc(2 * (size_t)r, sizeof *o->next_q);
    if (!dq || !o->next_q) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d modes", r);
        goto done;
    }
    for (int i = 0; i < from->r; i++) dq[i] /= rate;
    options.time_step = m->common.s->tree.options.time_step * rate;
    FEM_TRY(solver_reduced_create(&held, &old, NULL, &options));
    FEM_TRY(solver_reduced_set_state(held, 0, solver_tree_q(m->common.tree, o->instance), dq));
    FEM_TRY(solver_reduced_rebase(&held, from, &to->basis, scene_stitching_problem(o->stitching)->M, &to->forces,
                                  passage->springs, passage->pull, report));
    state = solver_reduced_state(held);
    for (int i = 0; i < r; i++) o->next_q[i] = state->q[i], o->next_q[r + i] = rate * state->dq[i];
    report->energy_before *= s * s * s * k, report->energy_after *= s * s * s * k;
    report->springs *= s * s * s * k, report->unexplained *= s * s * s * k;
done:
    solver_reduced_destroy(held);
    fem_free(dq);
    return status;
}

// What comes next for an instance that is changed at a time, from a state (NULL: at rest); `carry`: nothing of it is
// lost. It is not taken yet; a failure leaves everything as it was.
static fem_status prepare(forest_motion *m, forest_own *o, double time, const double *state, bool carry) {
    fem_status    status = FEM_OK;
    scene_passage passage = {0};
    bool          back;
    double        energy = 0, s = m->forest->world[o->instance].scale, k = m->forest->given[o->instance].stiffness;
    FEM_TRY(scene_stitching_set(o->stitching, time, &o->changed));
    if (!o->changed) goto done;
    if (state) FEM_TRY(scene_stitching_energy(o->stitching, state, &energy));
    FEM_TRY(scene_stitching_class(o->stitching, state, carry, m->progress, &o->next, &passage, &o->change));
    FEM_TRY(carry_over(m, o, o->next, &passage, &o->change.state));
    if (o->next)
        FEM_TRY(solver_own_class_create(&o->next_class, m->forest, o->instance, &o->next->basis, &o->next->forces));
    o->next_carries = o->next && o->next->carried && carry ? o->count + 1 : 0;
    o->noted = true;
    o->change.time = time, o->change.instance = m->common.s->forest.instances[o->instance].name;
    solver_rebase_report *r = &o->change.state;
    r->springs = s * s * s * k * energy;
    r->unexplained = r->energy_after - r->energy_before - r->springs;
done:
    scene_passage_destroy(&passage);
    if (status != FEM_OK) {
        char message[1024];
        snprintf(message, sizeof message, "%s", fem_message());
        drop_next(o);
        scene_stitching_set(o->stitching, o->made, &back);
        fem_fail(status, "%s: %s", m->common.s->forest.instances[o->instance].name, message);
    }
    return status;
}

// s^5 dq^2/2 + s^3 k V of the instance, J, and of the columns that carry what the modes lack, for small strains
static fem_status find_energies(const forest_motion *m, const forest_own *o, double *whole, double *carried) {
    const modes_basis *basis = basis_of(m, o);
    cubature_forces    forces = forces_of(m, o);
    const double *q = solver_tree_q(m->common.tree, o->instance), *dq = solver_tree_dq(m->common.tree, o->instance);
    double        s = m->forest->world[o->instance].scale, k = m->forest->given[o->instance].stiffness, strain = 0;
    double       *work = fem_alloc(forces.work + 1, sizeof *work);
    if (!work) return fem_fail(FEM_NO_MEMORY, "no memory for %d modes", basis->r);
    forces.evaluate(forces.model, q, &strain, NULL, NULL, work);
    fem_free(work);
    *whole = s * s * s * k * fabs(strain), *carried = 0;
    for (int j = 0; j < basis->r; j++) {
        double kinetic = pow(s, 5) * dq[j] * dq[j] / 2;
        *whole += kinetic;
        if (o->class && o->class->carried && o->class->carried[j])
            *carried += kinetic + s * s * s * k * basis->omega2[j] * q[j] * q[j] / 2;
    }
    return FEM_OK;
}

// A change in flight. An instance that has no stitches any more takes the class of its part again, unless that would
// lose some of its motion.
static fem_status change_now(forest_motion *m, forest_own *o, double time) {
    fem_status         status = FEM_OK, found = FEM_OK;
    const modes_basis *basis = basis_of(m, o);
    double             lost = INFINITY, whole = 0, carried;
    bool               changed = false, moves = false, back;
    size_t             n = (size_t)basis->n;
    double s = m->forest->world[o->instance].scale, k = m->forest->given[o->instance].stiffness, rate = sqrt(k) / s;
    FEM_TRY(scene_stitching_set(o->stitching, o->made, &back)); // a failure may have left it elsewhere
    FEM_TRY(scene_stitching_set(o->stitching, time, &changed));
    if (!changed) goto done;
    dense_gemv_set(basis->n, basis->r, 1, basis->U, solver_tree_q(m->common.tree, o->instance), o->state);
    dense_gemv_set(basis->n, basis->r, 1 / rate, basis->U, solver_tree_dq(m->common.tree, o->instance), o->state + n);
    for (size_t i = 0; i < 2 * n; i++) moves = moves || o->state[i] != 0;
    if (moves && scene_stitching_is_first(o->stitching))
        found = scene_stitching_lost(o->stitching, &o->shared.basis, o->state, &lost);
    FEM_TRY(scene_stitching_set(o->stitching, o->made, &back));
    FEM_TRY(found);
    FEM_TRY(find_energies(m, o, &whole, &carried));
    status = prepare(m, o, time, moves ? o->state : NULL, moves && !(s * s * s * k * lost <= SCENE_AT_HOME * whole));
done:
    return status;
}

// ---- all of them ---------------------------------------------------------------------------------------------------

// The classes that changed instances have and those that come next: what is out of use waits beside.
static void swap_classes(forest_motion *m) {
    for (int i = 0; i < m->own_count; i++) {
        forest_own *o = &m->own[i];
        if (!o->changed) continue;
        solver_own_class *now = m->forest->own[o->instance];
        scene_class *class = o->class;
        m->forest->own[o->instance] = o->next_class, o->next_class = now;
        o->class = o->next, o->next = class;
    }
}

// What comes next for some becomes what is: a new tree, in which the others go on as they were. All or nothing.
static fem_status take_next(forest_motion *m) {
    fem_status        status = FEM_OK;
    scene_tree_motion kept = m->common;
    bool              any = false;
    size_t            more = 0;
    for (int i = 0; i < m->own_count; i++) any = any || m->own[i].changed, more += m->own[i].noted;
    if (!any) return FEM_OK;
    FEM_TRY(fem_grow((void **)&m->common.base.changes, &m->change_room, (size_t)m->common.base.change_count + more,
                     sizeof *m->common.base.changes));
    kept.base = m->common.base;
    swap_classes(m);
    m->common.tree = NULL, m->common.wind = NULL, m->common.contacts = (scene_contacts){0};
    m->common.points = fem_alloc((size_t)m->common.loaded, sizeof *m->common.points);
    if (!m->common.points) status = fem_fail(FEM_NO_MEMORY, "no memory for loads on %d vertices", m->common.loaded);
    if (status == FEM_OK) status = forest_build_tree(m);
    if (status == FEM_OK) status = solver_tree_take_state(m->common.tree, kept.tree);
    for (int i = 0; status == FEM_OK && i < m->own_count; i++) {
        const forest_own *o = &m->own[i];
        if (o->changed)
            status = solver_tree_replace_state(m->common.tree, o->instance, o->next_q, o->next_q + basis_of(m, o)->r);
    }
    if (status != FEM_OK) {
        forest_leave_tree(&m->common);
        m->common = kept;
        swap_classes(m);
        goto done;
    }
    forest_leave_tree(&kept);
    for (int i = 0; i < m->own_count; i++) {
        forest_own *o = &m->own[i];
        if (!o->changed) continue;
        o->carries = o->next_carries;
        if (o->noted) {
            scene_stitching_commit(o->stitching);
            (void)scene_note_change(&o->change, m->notes); // a note that finds no memory is lost, nothing else
            m->common.base.changes[m->common.base.change_count++] = o->change;
            o->change = (scene_change){0};
            o->count++;
        }
        drop_next(o);
    }
done:
    return status;
}

static void give_up(forest_motion *m, fem_status status) {
    char message[1024];
    bool back;
    snprintf(message, sizeof message, "%s", fem_message());
    for (int i = 0; i < m->own_count; i++) {
        drop_next(&m->own[i]);
        scene_stitching_set(m->own[i].stitching, m->own[i].made, &back);
    }
    fem_fail(status, "%s", message);
}

static double next_change(const forest_motion *m) {
    double next = INFINITY;
    for (int i = 0; i < m->own_count; i++) next = fmin(next, scene_next_change(m->own[i].alone, m->own[i].made));
    return next;
}

// All changes up to a time, one after the other. numbers: of a checkpoint, whose states the last ones started from.
static fem_status make_changes(forest_motion *m, double time, const double *numbers) {
    for (double next = next_change(m); next <= time; next = next_change(m)) {
        fem_status    status = FEM_OK;
        const double *saved = numbers;
        for (int i = 0; i < m->own_count && status == FEM_OK; i++) {
            forest_own *o = &m->own[i];
            if (scene_next_change(o->alone, o->made) == next) {
                bool carry = numbers && saved[0] == o->count + 1;
                status = numbers ? prepare(m, o, next, carry ? saved + 1 : NULL, carry) : change_now(m, o, next);
            }
            if (numbers) saved += 1 + 2 * (size_t)basis_of(m, o)->n;
        }
        if (status == FEM_OK) status = take_next(m);
        if (status != FEM_OK) {
            give_up(m, status);
            return status;
        }
        for (int i = 0; i < m->own_count; i++)
            if (scene_next_change(m->own[i].alone, m->own[i].made) == next) m->own[i].made = next;
    }
    return FEM_OK;
}

// The class of the part as soon as the columns that carry what it has not hold hardly any energy.
static fem_status go_home(forest_motion *m) {
    fem_status          status = FEM_OK;
    const scene_passage plain = {0};
    for (int i = 0; i < m->own_count; i++) {
        forest_own          *o = &m->own[i];
        double               whole, carried;
        solver_rebase_report report;
        if (!o->carries || !scene_stitching_is_first(o->stitching)) continue;
        FEM_TRY(find_energies(m, o, &whole, &carried));
        if (carried > SCENE_AT_HOME * whole) continue;
        FEM_TRY(carry_over(m, o, NULL, &plain, &report));
        o->changed = true, o->next_carries = 0;
    }
    status = take_next(m);
done:
    for (int i = 0; i < m->own_count && status != FEM_OK; i++) drop_next(&m->own[i]);
    return status;
}

// ---- the motion ----------------------------------------------------------------------------------------------------

static fem_status step(scene_motion *motion, double time) {
    fem_status     status = FEM_OK;
    forest_motion *m = (forest_motion *)motion;
    FEM_TRY(make_changes(m, time, NULL));
    FEM_TRY(m->plain.step(motion, time));
    status = go_home(m);
done:
    return status;
}

// Of each stitched instance also the state at its last change, on which its basis depends.
static size_t change_size(const forest_motion *m) {
    size_t size = 0;
    for (int i = 0; i < m->own_count; i++) size += 1 + 2 * (size_t)m->own[i].shared.basis.n;
    return size;
}

static size_t state_size(const scene_motion *motion) {
    const forest_motion *m = (const forest_motion *)motion;
    return change_size(m) + m->plain.state_size(motion);
}

static void save(const scene_motion *motion, double *numbers) {
    const forest_motion *m = (const forest_motion *)motion;
    for (int i = 0; i < m->own_count; i++) {
        size_t n = 2 * (size_t)m->own[i].shared.basis.n;
        numbers[0] = m->own[i].carries;
        memcpy(numbers + 1, m->own[i].state, n * sizeof *numbers);
        numbers += 1 + n;
    }
    m->plain.save(motion, numbers);
}

// The changes of these steps, each as it was made.
static fem_status repeat(scene_motion *motion, int steps, size_t size, const double *numbers) {
    forest_motion *m = (forest_motion *)motion;
    if (size < change_size(m)) return fem_fail(FEM_BAD_INPUT, "its state has %zu numbers", size);
    for (size_t i = 0; i < change_size(m); i++)
        if (!isfinite(numbers[i])) return fem_fail(FEM_BAD_INPUT, "its state is not finite");
    return make_changes(m, steps * m->common.s->tree.options.time_step, numbers);
}

static fem_status restore(scene_motion *motion, int steps, const double *numbers) {
    forest_motion *m = (forest_motion *)motion;
    for (int i = 0; i < m->own_count; i++) {
        size_t n = 2 * (size_t)m->own[i].shared.basis.n;
        memcpy(m->own[i].state, numbers + 1, n * sizeof *numbers);
        numbers += 1 + n;
    }
    return m->plain.restore(motion, steps, numbers);
}

static fem_status begin_own(forest_motion *m, const scene_stitched *stitched, forest_own *o) {
    fem_status          status = FEM_OK;
    const solver_class *c = m->forest->classes[m->forest->given[stitched->instance].part];
    o->instance = stitched->instance, o->alone = stitched->alone;
    o->shared = (scene_class){.basis = c->basis, .forces = c->forces, .rule = c->rule, .cached = c->cached};
    o->state = fem_calloc(2 * (size_t)c->basis.n, sizeof *o->state);
    if (!o->state) return fem_fail(FEM_NO_MEMORY, "no memory for %d vertices", c->mesh.vertex_count);
    FEM_TRY(scene_stitching_create(&o->stitching, o->alone, c->body, &o->shared, m->progress));
    status = prepare(m, o, 0, NULL, false);
done:
    return status;
}

fem_status forest_begin_stitching(forest_motion *m) {
    fem_status          status = FEM_OK;
    scene_motion       *base = &m->common.base;
    const scene_forest *f = &m->common.s->forest;
    m->plain = *base;
    m->own = fem_calloc((size_t)f->stitched_count, sizeof *m->own);
    if (!m->own) return fem_fail(FEM_NO_MEMORY, "no memory for %d stitched instances", f->stitched_count);
    base->step = step, base->state_size = state_size, base->save = save;
    base->restore = restore, base->repeat = repeat;
    base->limb_count = 0; // bases are not the same for all frames
    for (int i = 0; i < f->stitched_count; i++) {
        m->own_count = i + 1;
        FEM_TRY(begin_own(m, &f->stitched[i], &m->own[i]));
    }
    status = take_next(m);
done:
    return status;
}

void forest_end_stitching(forest_motion *m) {
    for (int i = 0; i < m->own_count; i++) {
        forest_own *o = &m->own[i];
        drop_next(o);
        solver_own_class_destroy(m->forest->own[o->instance]);
        scene_class_destroy(o->class);
        scene_stitching_destroy(o->stitching);
        fem_free(o->state);
    }
    for (int i = 0; i < m->common.base.change_count; i++) scene_change_destroy(&m->common.base.changes[i]);
    fem_free(m->common.base.changes);
    fem_free(m->own);
}
