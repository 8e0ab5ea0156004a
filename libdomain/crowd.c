// Classes, copies and what hangs on what: see crowd.h.
#include "libdomain/crowd.h"

#include "libdomain/decompose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES_MOST = 50000 };

typedef struct box {
    double low[3], high[3];
} box;

typedef struct crowd_work {
    const fem_mesh             *mesh;
    const domain_crowd_options *options;
    domain_crowd               *c;
    box                        *boxes;         // per piece
    int                        *element_start; // per piece and one more
    int                        *elements;      // of all pieces, one after the other
    int                        *touching; // per piece: the most of its vertices that touch a piece of the level before
    int                        *touched;  // of a place in copies.vertices: 1 when it is a root point or held
    int                        *local;    // per vertex of the mesh: its number in the model of its shape
} crowd_work;

static fem_status no_memory(const crowd_work *w) {
    return fem_fail(FEM_NO_MEMORY, "no memory for the pieces of %d elements", w->mesh->element_count);
}

void domain_crowd_destroy(domain_crowd *c) {
    for (int k = 0; k < c->class_count; k++) {
        if (c->meshes) fem_mesh_destroy(&c->meshes[k]);
        if (c->fixed) fem_free(c->fixed[k]);
    }
    domain_copies_destroy(&c->copies);
    fem_free(c->class_of), fem_free(c->shape), fem_free(c->uses), fem_free(c->meshes);
    fem_free(c->fixed_count), fem_free(c->fixed), fem_free(c->parent), fem_free(c->order);
    *c = (domain_crowd){0};
}

// ---- pieces --------------------------------------------------------------------------------------------------------

static int size_of(const crowd_work *w, int piece) { return w->c->copies.start[piece + 1] - w->c->copies.start[piece]; }

static const double *vertex_of(const crowd_work *w, int place) {
    return w->mesh->vertices + 3 * (size_t)w->c->copies.vertices[place];
}

static void find_boxes(crowd_work *w) {
    const domain_copies *copies = &w->c->copies;
    for (int i = 0; i < copies->count; i++) {
        box *b = &w->boxes[i];
        *b = (box){{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
        for (int k = copies->start[i]; k < copies->start[i + 1]; k++)
            for (int a = 0; a < 3; a++) {
                b->low[a] = fmin(b->low[a], vertex_of(w, k)[a]);
                b->high[a] = fmax(b->high[a], vertex_of(w, k)[a]);
            }
    }
}

static void find_elements(crowd_work *w) {
    const domain_copies *copies = &w->c->copies;
    for (int e = 0; e < w->mesh->element_count; e++) w->element_start[copies->piece[e] + 1]++;
    for (int i = 0; i < copies->count; i++) w->element_start[i + 1] += w->element_start[i];
    for (int e = 0; e < w->mesh->element_count; e++) w->elements[w->element_start[copies->piece[e]]++] = e;
    for (int i = copies->count; i > 0; i--) w->element_start[i] = w->element_start[i - 1];
    w->element_start[0] = 0;
}

static double reach_of(const crowd_work *w, int piece) {
    if (w->options->reach > 0) return w->options->reach;
    return 0.02 * vec3_distance(w->boxes[piece].low, w->boxes[piece].high);
}

// ---- what touches what ---------------------------------------------------------------------------------------------

static bool near_box(const box *b, const double x[3], double reach) {
    for (int a = 0; a < 3; a++)
        if (x[a] < b->low[a] - reach || x[a] > b->high[a] + reach) return false;
    return true;
}

static bool boxes_meet(const box *a, const box *b, double reach) {
    for (int k = 0; k < 3; k++)
        if (a->low[k] > b->high[k] + reach || b->low[k] > a->high[k] + reach) return false;
    return true;
}

// Do they hold a body: three or more that do not lie on a line?
static bool holds(const crowd_work *w, int count, const int *places) {
    const double *a, *b;
    double        far = 0, off = 0;
    int           second = 0;
    if (count < 3) return false;
    a = vertex_of(w, places[0]);
    for (int k = 1; k < count; k++)
        if (vec3_distance(a, vertex_of(w, places[k])) > far)
            far = vec3_distance(a, vertex_of(w, places[k])), second = k;
    b = vertex_of(w, places[second]);
    for (int k = 0; k < count; k++) {
        double ab[3], ac[3], n[3];
        vec3_sub(ab, b, a), vec3_sub(ac, vertex_of(w, places[k]), a);
        vec3_cross(n, ab, ac);
        off = fmax(off, vec3_norm(n) / fmax(far, 1e-300));
    }
    return off > 1e-3 * far;
}

// The vertices of a piece that touch another one, of those that were looked at; `first` .. `last` are its points.
static void consider(crowd_work *w, int parent, int piece, int first, int last, const int *places, const double *x,
                     const fem_mesh *mesh, const fem_embedding *e, int *found) {
    int count = 0;
    for (int k = first; k < last; k++)
        if (fem_embedding_distance(e, mesh, k, x + 3 * (size_t)k) <= reach_of(w, piece)) found[count++] = places[k];
    if (count <= w->touching[piece] || !holds(w, count, found)) return;
    w->touching[piece] = count;
    w->c->parent[piece] = parent;
    for (int k = w->c->copies.start[piece]; k < w->c->copies.start[piece + 1]; k++) w->touched[k] = 0;
    for (int k = 0; k < count; k++) w->touched[found[k]] = 1;
}

// What has no place yet and touches this piece. `free_pieces`: those without a place, `count` of them.
static fem_status touch(crowd_work *w, int parent, int count, const int *free_pieces) {
    fem_status    status = FEM_OK;
    fem_mesh      mesh = {0};
    fem_embedding e = {0};
    const box    *b = &w->boxes[parent];
    size_t        points = 0;
    int          *vertices = NULL, *places = NULL, *first = NULL, *found = NULL;
    double       *x = NULL;
    for (int i = 0; i < count; i++)
        if (boxes_meet(b, &w->boxes[free_pieces[i]], reach_of(w, free_pieces[i])))
            points += (size_t)size_of(w, free_pieces[i]);
    if (points == 0) return FEM_OK;
    places = fem_alloc(points, sizeof *places);
    found = fem_alloc(points, sizeof *found);
    first = fem_alloc((size_t)count + 1, sizeof *first);
    x = fem_alloc(3 * points, sizeof *x);
    if (!places || !found || !first || !x) {
        status = no_memory(w);
        goto done;
    }
    points = 0;
    for (int i = 0; i < count; i++) {
        int    piece = free_pieces[i];
        double reach = reach_of(w, piece);
        first[i] = (int)points;
        if (!boxes_meet(b, &w->boxes[piece], reach)) continue;
        for (int k = w->c->copies.start[piece]; k < w->c->copies.start[piece + 1]; k++) {
            if (!near_box(b, vertex_of(w, k), reach)) continue;
            memcpy(x + 3 * points, vertex_of(w, k), 3 * sizeof *x);
            places[points++] = k;
        }
    }
    first[count] = (int)points;
    if (points == 0) goto done;
    FEM_TRY(domain_submesh(&mesh, &vertices, w->mesh, w->element_start[parent + 1] - w->element_start[parent],
                           w->elements + w->element_start[parent]));
    FEM_TRY(fem_embed_points(&e, &mesh, (int)points, x));
    for (int i = 0; i < count; i++)
        consider(w, parent, free_pieces[i], first[i], first[i + 1], places, x, &mesh, &e, found);
done:
    fem_embedding_destroy(&e);
    fem_mesh_destroy(&mesh);
    fem_free(vertices), fem_free(places), fem_free(first), fem_free(found), fem_free(x);
    return status;
}

static fem_status fail_apart(const crowd_work *w, int piece) {
    const box *b = &w->boxes[piece];
    return fem_fail(FEM_BAD_INPUT,
                    "the piece at %.4g %.4g %.4g (%d vertices) touches no other that is held, within %.3g m and with "
                    "three vertices or more: a larger \"reach\" would do, or \"fixed\" vertices of its own",
                    (b->low[0] + b->high[0]) / 2, (b->low[1] + b->high[1]) / 2, (b->low[2] + b->high[2]) / 2,
                    size_of(w, piece), reach_of(w, piece));
}

// Level by level from those that are held.
static fem_status find_parents(crowd_work *w) {
    fem_status    status = FEM_OK;
    domain_crowd *c = w->c;
    int           count = c->copies.count, placed = 0, level = 0, left = 0;
    int          *open = fem_alloc((size_t)count, sizeof *open);
    bool         *held = fem_calloc((size_t)w->mesh->vertex_count, sizeof *held);
    if (!open || !held) {
        status = no_memory(w);
        goto done;
    }
    for (int k = 0; k < w->options->fixed_count; k++) held[w->options->fixed[k]] = true;
    for (int i = 0; i < count; i++) {
        bool any = w->options->fixed_count == 0;
        for (int k = c->copies.start[i]; k < c->copies.start[i + 1]; k++)
            if (held[c->copies.vertices[k]]) w->touched[k] = 1, any = true;
        c->parent[i] = -1;
        if (any)
            c->order[placed++] = i;
        else
            open[left++] = i;
    }
    while (left > 0) {
        int end = placed, still = 0;
        for (; level < end; level++) FEM_TRY(touch(w, c->order[level], left, open));
        for (int i = 0; i < left; i++)
            if (c->parent[open[i]] >= 0)
                c->order[placed++] = open[i];
            else
                open[still++] = open[i];
        if (still == left) {
            status = fail_apart(w, open[0]);
            goto done;
        }
        left = still;
    }
done:
    fem_free(open), fem_free(held);
    return status;
}

// ---- classes -------------------------------------------------------------------------------------------------------

// How alike two pieces of a shape are held: vertices of both over vertices of either. 1 where neither is.
static double likeness(const crowd_work *w, int a, int b) {
    int both = 0, either = 0, i = w->c->copies.start[a], k = w->c->copies.start[b];
    for (; i < w->c->copies.start[a + 1]; i++, k++) {
        both += w->touched[i] && w->touched[k];
        either += w->touched[i] || w->touched[k];
    }
    return either > 0 ? (double)both / either : 1;
}

// A piece is of the class whose first piece is held about as it is; the class is held where half of its pieces are.
static fem_status find_classes(crowd_work *w) {
    fem_status    status = FEM_OK;
    domain_crowd *c = w->c;
    size_t        count = (size_t)c->copies.count;
    int          *first = fem_alloc(count, sizeof *first), *votes = NULL; // per class: its first piece
    c->shape = fem_alloc(count, sizeof *c->shape);
    c->uses = fem_calloc(count, sizeof *c->uses);
    c->fixed_count = fem_calloc(count, sizeof *c->fixed_count);
    c->fixed = fem_calloc(count, sizeof *c->fixed);
    c->meshes = fem_calloc(count, sizeof *c->meshes);
    votes = fem_alloc((size_t)w->mesh->vertex_count, sizeof *votes);
    if (!first || !c->shape || !c->uses || !c->fixed_count || !c->fixed || !c->meshes || !votes) {
        status = no_memory(w);
        goto done;
    }
    for (int i = 0; i < c->copies.count; i++) {
        int k = 0;
        while (k < c->class_count && (c->shape[k] != c->copies.class_of[i] || likeness(w, first[k], i) < 0.5)) k++;
        if (k == c->class_count) first[k] = i, c->shape[k] = c->copies.class_of[i], c->class_count++;
        c->class_of[i] = k;
        c->uses[k]++;
    }
    for (int k = 0; k < c->class_count; k++) {
        int model = c->copies.model[c->shape[k]], size = size_of(w, model), *vertices = NULL, most = 0;
        memset(votes, 0, (size_t)size * sizeof *votes);
        for (int i = 0; i < c->copies.count; i++)
            for (int v = 0; c->class_of[i] == k && v < size; v++) votes[v] += w->touched[c->copies.start[i] + v];
        for (int v = 0; v < size; v++) most += 2 * votes[v] >= c->uses[k] && votes[v] > 0;
        FEM_TRY(domain_submesh(&c->meshes[k], &vertices, w->mesh, w->element_start[model + 1] - w->element_start[model],
                               w->elements + w->element_start[model]));
        for (int v = 0; v < c->meshes[k].vertex_count; v++) w->local[vertices[v]] = v;
        fem_free(vertices);
        c->fixed[k] = fem_alloc((size_t)most + 1, sizeof *c->fixed[k]);
        if (!c->fixed[k]) {
            status = no_memory(w);
            goto done;
        }
        for (int v = 0; v < size; v++)
            if (2 * votes[v] >= c->uses[k] && votes[v] > 0)
                c->fixed[k][c->fixed_count[k]++] = w->local[c->copies.vertices[c->copies.start[model] + v]];
    }
done:
    fem_free(first), fem_free(votes);
    return status;
}

static int compare_ints(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

fem_status domain_find_crowd(domain_crowd *crowd, const fem_mesh *mesh, const domain_crowd_options *options) {
    fem_status   status = FEM_OK;
    domain_crowd c = {0};
    crowd_work   w = {.mesh = mesh, .options = options, .c = &c};
    if (!(options->reach >= 0 && isfinite(options->reach)))
        return fem_fail(FEM_BAD_INPUT, "the reach of pieces is %g m, expected >= 0", options->reach);
    for (int k = 0; k < options->fixed_count; k++)
        if (options->fixed[k] < 0 || options->fixed[k] >= mesh->vertex_count)
            return fem_fail(FEM_BAD_INPUT, "vertex %d is fixed, expected 0 to %d", options->fixed[k],
                            mesh->vertex_count - 1);
    FEM_TRY(domain_find_copies(&c.copies, mesh, options->tolerance));
    size_t count = (size_t)c.copies.count;
    if (count > PIECES_MOST) {
        status = fem_fail(FEM_BAD_INPUT, "the mesh has %zu pieces, expected at most %d", count, PIECES_MOST);
        goto done;
    }
    w.boxes = fem_alloc(count, sizeof *w.boxes);
    w.element_start = fem_calloc(count + 1, sizeof *w.element_start);
    w.elements = fem_alloc((size_t)mesh->element_count, sizeof *w.elements);
    w.touching = fem_calloc(count, sizeof *w.touching);
    w.touched = fem_calloc((size_t)c.copies.start[count], sizeof *w.touched);
    w.local = fem_alloc((size_t)mesh->vertex_count, sizeof *w.local);
    c.class_of = fem_alloc(count, sizeof *c.class_of);
    c.parent = fem_alloc(count, sizeof *c.parent);
    c.order = fem_alloc(count, sizeof *c.order);
    if (!w.boxes || !w.element_start || !w.elements || !w.touching || !w.touched || !w.local || !c.class_of ||
        !c.parent || !c.order) {
        status = no_memory(&w);
        goto done;
    }
    find_boxes(&w);
    find_elements(&w);
    FEM_TRY(find_parents(&w));
    FEM_TRY(find_classes(&w));
    for (int k = 0; k < c.class_count; k++) qsort(c.fixed[k], (size_t)c.fixed_count[k], sizeof(int), compare_ints);
    domain_crowd_destroy(crowd);
    *crowd = c;
    c = (domain_crowd){0};
done:
    fem_free(w.boxes), fem_free(w.element_start), fem_free(w.elements), fem_free(w.touching), fem_free(w.touched);
    fem_free(w.local);
    domain_crowd_destroy(&c);
    return status;
}
