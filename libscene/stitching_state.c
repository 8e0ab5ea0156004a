// The stitches and factors that a body has at a time: actions in the order of their times, and all of them or none.
#include "libscene/stitching_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_change(const scene *s, const scene_action *a) {
    return a->kind == SCENE_STITCH || a->kind == SCENE_UNSTITCH || a->kind == SCENE_CUT ||
           (a->kind == SCENE_STIFFNESS && s->tree.domains.count == 0 && s->forest.count == 0);
}

bool scene_has_stitching(const scene *s) {
    for (int i = 0; i < s->action_count; i++)
        if (is_change(s, &s->actions[i])) return true;
    return false;
}

double scene_next_change(const scene *s, double time) {
    double next = INFINITY;
    for (int i = 0; i < s->action_count; i++)
        if (is_change(s, &s->actions[i]) && s->actions[i].start > time) next = fmin(next, s->actions[i].start);
    return next;
}

typedef struct wanted_state {
    int           count;
    modes_stitch *stitches; // with room for all
    double       *factor;   // per domain
} wanted_state;

static bool same_ends(const modes_stitch *x, const modes_stitch *y) {
    return (x->a == y->a && x->b == y->b) || (x->a == y->b && x->b == y->a);
}

int stitching_find(int count, const modes_stitch *list, const modes_stitch *stitch) {
    for (int i = 0; i < count; i++)
        if (same_ends(&list[i], stitch)) return i;
    return -1;
}

static void apply_action(const scene_stitching *t, const scene_action *a, wanted_state *w) {
    if (a->kind == SCENE_STIFFNESS) {
        for (int d = 0; d < modes_stitched_domains(t->stitched) && a->within.count == 0; d++) w->factor[d] = a->factor;
        for (int i = 0; i < a->within.count; i++) {
            int d = modes_stitched_domain_of(t->stitched, a->within.items[i]);
            if (d >= 0) w->factor[d] = a->factor;
        }
        return;
    }
    for (int i = 0; i < a->stitch_count; i++) {
        if (a->kind == SCENE_STITCH) {
            w->stitches[w->count++] = a->stitches[i];
            continue;
        }
        int k = stitching_find(w->count, w->stitches, &a->stitches[i]);
        if (k < 0) continue;
        memmove(w->stitches + k, w->stitches + k + 1, (size_t)(w->count - k - 1) * sizeof *w->stitches);
        w->count--;
    }
}

// In the order of their times, as they were planned.
static fem_status find_state(const scene_stitching *t, double time, wanted_state *w) {
    const scene *s = t->s;
    size_t       room = (size_t)s->grown_count + 1;
    int          domains = modes_stitched_domains(t->stitched);
    for (int i = 0; i < s->action_count; i++) room += (size_t)s->actions[i].stitch_count;
    w->stitches = fem_alloc(room, sizeof *w->stitches), w->factor = fem_alloc((size_t)domains, sizeof *w->factor);
    if (!w->stitches || !w->factor) return fem_fail(FEM_NO_MEMORY, "no memory for %zu stitches", room);
    for (int d = 0; d < domains; d++) w->factor[d] = 1;
    if (s->grown_count > 0) memcpy(w->stitches, s->grown, (size_t)s->grown_count * sizeof *w->stitches);
    w->count = s->grown_count;
    for (double at = scene_next_change(s, -1); at <= time; at = scene_next_change(s, at))
        for (int i = 0; i < s->action_count; i++)
            if (is_change(s, &s->actions[i]) && s->actions[i].start == at) apply_action(t, &s->actions[i], w);
    return FEM_OK;
}

// From the present state to another; the caller repairs what a failure leaves half done.
static fem_status move_to(scene_stitching *t, const wanted_state *w, bool *changed) {
    fem_status    status = FEM_OK;
    modes_stitch *list = fem_alloc((size_t)modes_stitched_count(t->stitched) + (size_t)w->count + 1, sizeof *list);
    int           gone = 0, more = 0;
    if (!list) return fem_fail(FEM_NO_MEMORY, "no memory for %d stitches", w->count);
    for (int d = 0; d < modes_stitched_domains(t->stitched); d++) {
        if (modes_stitched_factor(t->stitched, d) == w->factor[d]) continue;
        FEM_TRY(modes_stitched_scale(t->stitched, d, w->factor[d]));
        *changed = true;
    }
    const modes_stitch *now = modes_stitched_list(t->stitched);
    for (int i = 0; i < modes_stitched_count(t->stitched); i++) {
        int k = stitching_find(w->count, w->stitches, &now[i]);
        if (k < 0 || w->stitches[k].stiffness != now[i].stiffness) list[gone++] = now[i];
    }
    if (gone > 0) FEM_TRY(modes_stitched_remove(t->stitched, gone, list));
    now = modes_stitched_list(t->stitched);
    for (int i = 0; i < w->count; i++)
        if (stitching_find(modes_stitched_count(t->stitched), now, &w->stitches[i]) < 0) list[more++] = w->stitches[i];
    if (more > 0) FEM_TRY(modes_stitched_add(t->stitched, more, list));
    *changed = *changed || gone > 0 || more > 0;
done:
    fem_free(list);
    return status;
}

fem_status scene_stitching_set(scene_stitching *t, double time, bool *changed) {
    fem_status   status = FEM_OK;
    wanted_state w = {0}, old = {.count = modes_stitched_count(t->stitched)};
    int          domains = modes_stitched_domains(t->stitched);
    bool         any = false;
    *changed = false;
    old.stitches = fem_copy(modes_stitched_list(t->stitched), (size_t)old.count, sizeof *old.stitches);
    old.factor = fem_alloc((size_t)domains, sizeof *old.factor);
    if (!old.stitches || !old.factor) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d stitches", old.count);
        goto done;
    }
    for (int d = 0; d < domains; d++) old.factor[d] = modes_stitched_factor(t->stitched, d);
    FEM_TRY(find_state(t, time, &w));
    status = move_to(t, &w, &any);
    if (status != FEM_OK) {
        char message[1024];
        bool back = false;
        snprintf(message, sizeof message, "%s", fem_message());
        move_to(t, &old, &back);
        status = fem_fail(status, "%s", message);
        goto done;
    }
    *changed = any;
done:
    fem_free(w.stitches), fem_free(w.factor), fem_free(old.stitches), fem_free(old.factor);
    return status;
}
