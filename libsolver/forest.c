// Instances of parts: placements, what hangs where, classes, and the tree. See forest.h.
#include "libsolver/forest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void solver_placement_identity(solver_placement *at) {
    *at = (solver_placement){.Q = {1, 0, 0, 0, 1, 0, 0, 0, 1}, .scale = 1};
}

static void place(const solver_placement *at, const double X[3], double x[3]) {
    double turned[3];
    mat3_mul_vec(turned, at->Q, X);
    for (int i = 0; i < 3; i++) x[i] = at->p[i] + at->scale * turned[i];
}

// X = Q^T (x - p) / scale
void solver_placement_invert(solver_placement *inverse, const solver_placement *at) {
    solver_placement made = {.scale = 1 / at->scale};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) made.Q[3 * i + k] = at->Q[3 * k + i];
    mat3_mul_vec(made.p, made.Q, at->p);
    for (int i = 0; i < 3; i++) made.p[i] *= -made.scale;
    *inverse = made;
}

void solver_placement_compose(solver_placement *c, const solver_placement *a, const solver_placement *b) {
    solver_placement made = {.scale = a->scale * b->scale};
    place(a, b->p, made.p);
    mat3_mul(made.Q, a->Q, b->Q);
    *c = made;
}

static const char *name_of(const solver_forest *f, int instance, char text[96]) {
    if (f->given[instance].name)
        snprintf(text, 96, "\"%.80s\"", f->given[instance].name);
    else
        snprintf(text, 96, "instance %d", instance);
    return text;
}

// ---- parts ---------------------------------------------------------------------------------------------------------

static double diagonal(const fem_mesh *mesh) {
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (size_t v = 0; v < (size_t)mesh->vertex_count; v++)
        for (int i = 0; i < 3; i++) {
            low[i] = fmin(low[i], mesh->vertices[3 * v + (size_t)i]);
            high[i] = fmax(high[i], mesh->vertices[3 * v + (size_t)i]);
        }
    return vec3_distance(low, high);
}

double solver_default_reach(const fem_mesh *mesh, double scale) { return 0.1 * diagonal(mesh) * scale; }

double solver_mesh_mass(const fem_mesh *mesh, double centre[3]) {
    int    width = fem_element_vertices(mesh->type);
    double mass = 0, moment[3] = {0};
    for (int e = 0; e < mesh->element_count; e++) {
        double m = fem_element_volume(mesh, e) * mesh->materials[mesh->regions[mesh->region[e]].material].density;
        for (int c = 0; c < width; c++)
            vec3_axpy(moment, m / width,
                      mesh->vertices + 3 * (size_t)mesh->elements[(size_t)e * (size_t)width + (size_t)c]);
        mass += m;
    }
    for (int i = 0; i < 3; i++) centre[i] = moment[i] / mass;
    return mass;
}

// Where the frame is: at the mean of what holds the part, or at its centre.
static void measure_part(solver_forest *f, int part) {
    const solver_part *p = &f->parts[part];
    double            *origin = f->origin[part];
    f->mass[part] = solver_mesh_mass(p->mesh, f->centre[part]);
    if (p->fixed_count == 0) {
        memcpy(origin, f->centre[part], 3 * sizeof *origin);
        return;
    }
    for (int k = 0; k < p->fixed_count; k++)
        vec3_axpy(origin, 1.0 / p->fixed_count, p->mesh->vertices + 3 * (size_t)p->fixed[k]);
}

static fem_status check_parts(const solver_forest *f) {
    for (int k = 0; k < f->part_count; k++) {
        const solver_part *p = &f->parts[k];
        for (int i = 0; i < p->fixed_count; i++)
            if (p->fixed[i] < 0 || p->fixed[i] >= p->mesh->vertex_count)
                return fem_fail(FEM_BAD_INPUT, "part \"%s\": vertex %d is fixed, expected 0 to %d", p->name,
                                p->fixed[i], p->mesh->vertex_count - 1);
    }
    return FEM_OK;
}

static fem_status check_instance(const solver_forest *f, int i) {
    const solver_forest_instance *g = &f->given[i];
    char                          name[96];
    double                        product[9];
    bool                          finite = isfinite(g->at.p[0] + g->at.p[1] + g->at.p[2]);
    name_of(f, i, name);
    if (g->part < 0 || g->part >= f->part_count)
        return fem_fail(FEM_BAD_INPUT, "%s: part %d, expected 0 to %d", name, g->part, f->part_count - 1);
    if (g->parent < -1 || g->parent >= i)
        return fem_fail(FEM_BAD_INPUT, "%s: its parent %d must come before it", name, g->parent);
    if (!(g->at.scale > 0 && isfinite(g->at.scale)))
        return fem_fail(FEM_BAD_INPUT, "%s: the scale is %g, expected > 0", name, g->at.scale);
    mat3_mul_nt(product, g->at.Q, g->at.Q);
    for (int k = 0; k < 9; k++) finite = finite && fabs(product[k] - (k % 4 == 0)) < 1e-6;
    if (!finite || mat3_det(g->at.Q) < 0)
        return fem_fail(FEM_BAD_INPUT, "%s: is not placed by a rotation and a finite translation", name);
    if (!(g->stiffness > 0 && isfinite(g->stiffness)))
        return fem_fail(FEM_BAD_INPUT, "%s: the stiffness factor is %g, expected > 0", name, g->stiffness);
    if (g->parent >= 0 && f->parts[g->part].fixed_count < 3)
        return fem_fail(FEM_BAD_INPUT,
                        "%s: hangs on another part, but its own part \"%s\" has %d vertices that hold it, expected "
                        "three or more that do not lie on a line",
                        name, f->parts[g->part].name, f->parts[g->part].fixed_count);
    return FEM_OK;
}

// ---- what hangs where ----------------------------------------------------------------------------------------------

typedef struct attachment_slot {
    fem_hash key;
    int      attachment; // -1: free
} attachment_slot;

static fem_hash attachment_key(int part, int child, const solver_placement *at) {
    const int parts[2] = {part, child};
    fem_hash  hash = fem_hash_add((fem_hash){0}, parts, sizeof parts);
    return fem_hash_add(hash, at, sizeof *at);
}

// Children of one part that hang at the same place of instances of another share an interface.
static fem_status find_attachments(solver_forest *f) {
    fem_status status = FEM_OK;
    size_t     room = 0, slots = 16;
    while (slots < 2 * (size_t)f->count) slots *= 2;
    attachment_slot *table = fem_alloc(slots, sizeof *table);
    int             *counts = fem_calloc((size_t)f->part_count, sizeof *counts);
    if (!table || !counts) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d instances", f->count);
        goto done;
    }
    for (size_t i = 0; i < slots; i++) table[i].attachment = -1;
    for (int i = 0; i < f->count; i++) {
        const solver_forest_instance *g = &f->given[i];
        f->hangs[i] = -1;
        if (g->parent < 0) continue;
        int      part = f->given[g->parent].part;
        fem_hash key = attachment_key(part, g->part, &g->at);
        size_t   slot = key.low & (slots - 1);
        while (table[slot].attachment >= 0 && !fem_hash_equal(table[slot].key, key)) slot = (slot + 1) & (slots - 1);
        if (table[slot].attachment < 0) {
            FEM_TRY(fem_grow((void **)&f->attachments, &room, (size_t)f->attachment_count + 1, sizeof *f->attachments));
            f->attachments[f->attachment_count] =
                (solver_attachment){.part = part, .child = g->part, .at = g->at, .interface = counts[part]++};
            table[slot] = (attachment_slot){key, f->attachment_count++};
        }
        f->hangs[i] = table[slot].attachment;
    }
done:
    fem_free(table), fem_free(counts);
    return status;
}

// Outside a hexahedron embedding ends at its surface: the weights go on along the gradients there.
static void extrapolate(const fem_mesh *mesh, const int *vertices, const double p[3], double *weights) {
    static const int at[8][3] = {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0},
                                 {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}};
    double           t[3] = {0}, x[3] = {0}, dN[8][3], J[9] = {0}, inverse[9], d[3], step[3] = {0};
    for (int c = 0; c < 8; c++) {
        vec3_axpy(x, weights[c], mesh->vertices + 3 * (size_t)vertices[c]);
        for (int i = 0; i < 3; i++) t[i] += at[c][i] * weights[c];
    }
    vec3_sub(d, p, x);
    if (vec3_norm(d) == 0) return;
    for (int c = 0; c < 8; c++) {
        const double *X = mesh->vertices + 3 * (size_t)vertices[c];
        double        one[3];
        for (int i = 0; i < 3; i++) one[i] = at[c][i] ? t[i] : 1 - t[i];
        for (int i = 0; i < 3; i++) dN[c][i] = (at[c][i] ? 1 : -1) * one[(i + 1) % 3] * one[(i + 2) % 3];
        for (int i = 0; i < 9; i++) J[i] += X[i / 3] * dN[c][i % 3];
    }
    if (mat3_inverse(inverse, J) == 0) return;
    mat3_mul_vec(step, inverse, d);
    for (int c = 0; c < 8; c++) weights[c] += vec3_dot(dN[c], step);
}

static void attachment_point(const solver_forest *f, const solver_attachment *a, int k, double x[3]) {
    const solver_part *child = &f->parts[a->child];
    place(&a->at, child->mesh->vertices + 3 * (size_t)child->fixed[k], x);
}

static fem_status embed_roots(solver_forest *f, int part, double *farthest) {
    fem_status      status = FEM_OK;
    const fem_mesh *mesh = f->parts[part].mesh;
    size_t          count = 0;
    for (int k = 0; k < f->attachment_count; k++)
        if (f->attachments[k].part == part) {
            f->attachments[k].first = (int)count;
            count += (size_t)f->parts[f->attachments[k].child].fixed_count;
            if (count > 100000000)
                return fem_fail(FEM_BAD_INPUT, "part \"%s\": too much hangs on it", f->parts[part].name);
        }
    if (count == 0) return FEM_OK;
    double *x = fem_alloc(3 * count, sizeof *x);
    if (!x) return fem_fail(FEM_NO_MEMORY, "no memory for %zu root points", count);
    for (int k = 0; k < f->attachment_count; k++)
        for (int i = 0; f->attachments[k].part == part && i < f->parts[f->attachments[k].child].fixed_count; i++)
            attachment_point(f, &f->attachments[k], i, x + 3 * (size_t)(f->attachments[k].first + i));
    FEM_TRY(fem_embed_points(&f->points[part], mesh, (int)count, x));
    for (int k = 0; k < f->attachment_count; k++)
        for (int i = 0; f->attachments[k].part == part && i < f->parts[f->attachments[k].child].fixed_count; i++) {
            size_t at = (size_t)(f->attachments[k].first + i);
            farthest[k] = fmax(farthest[k], fem_embedding_distance(&f->points[part], mesh, (int)at, x + 3 * at));
        }
    for (size_t i = 0; mesh->type == FEM_H8 && i < count; i++)
        extrapolate(mesh, f->points[part].vertices + 8 * i, x + 3 * i, f->points[part].weights + 8 * i);
done:
    fem_free(x);
    return status;
}

static fem_status attach(solver_forest *f, int *offender) {
    fem_status status = FEM_OK;
    double    *farthest = fem_calloc((size_t)f->attachment_count, sizeof *farthest), *size = NULL;
    size = fem_alloc((size_t)f->part_count, sizeof *size);
    if (!farthest || !size) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d places", f->attachment_count);
        goto done;
    }
    for (int k = 0; k < f->part_count; k++) {
        size[k] = solver_default_reach(f->parts[k].mesh, 1);
        FEM_TRY(embed_roots(f, k, farthest));
    }
    for (int i = 0; i < f->count; i++) {
        const solver_forest_instance *g = &f->given[i];
        if (f->hangs[i] < 0) continue;
        double reach = g->reach > 0 ? g->reach : size[g->part] * g->at.scale;
        if (farthest[f->hangs[i]] <= reach) continue;
        char name[96], parent[96];
        *offender = i;
        status = fem_fail(FEM_BAD_INPUT,
                          "%s is too far from %s to hang on it: its root is %.4g m away (in the coordinates of the "
                          "part \"%s\"), expected at most %.4g (a larger \"reach\" would do)",
                          name_of(f, i, name), name_of(f, g->parent, parent), farthest[f->hangs[i]],
                          f->parts[f->given[g->parent].part].name, reach);
        goto done;
    }
done:
    fem_free(farthest), fem_free(size);
    return status;
}

// ---- masses of subtrees --------------------------------------------------------------------------------------------

static fem_status find_masses(solver_forest *f) {
    double(*moment)[3] = fem_calloc((size_t)f->count, sizeof *moment); // mass x centre, world
    if (!moment) return fem_fail(FEM_NO_MEMORY, "no memory for %d instances", f->count);
    for (int i = 0; i < f->count; i++) {
        const solver_placement *w = &f->world[i];
        double                  centre[3];
        int                     part = f->given[i].part;
        place(w, f->centre[part], centre);
        f->total[i] = f->mass[part] * w->scale * w->scale * w->scale;
        vec3_axpy(moment[i], f->total[i], centre);
    }
    for (int i = f->count - 1; i >= 0; i--) {
        int parent = f->given[i].parent;
        if (parent < 0) continue;
        f->total[parent] += f->total[i];
        vec3_axpy(moment[parent], 1, moment[i]);
        solver_attachment *a = &f->attachments[f->hangs[i]];
        double             s = f->world[parent].scale, origin[3], centre[3], mass = f->total[i] / (s * s * s);
        place(&f->world[i], f->origin[f->given[i].part], origin);
        for (int k = 0; k < 3; k++) centre[k] = moment[i][k] / f->total[i];
        if (mass > a->mass) a->mass = mass, a->lever = vec3_distance(centre, origin) / s;
    }
    fem_free(moment);
    return FEM_OK;
}

// ---- life ----------------------------------------------------------------------------------------------------------

static fem_status allocate(solver_forest *f, const solver_part *parts, const solver_forest_instance *instances) {
    size_t n = (size_t)f->count, k = (size_t)f->part_count;
    f->parts = fem_copy(parts, k, sizeof *parts);
    f->given = fem_copy(instances, n, sizeof *instances);
    f->origin = fem_calloc(k, sizeof *f->origin);
    f->centre = fem_calloc(k, sizeof *f->centre);
    f->mass = fem_calloc(k, sizeof *f->mass);
    f->uses = fem_calloc(k, sizeof *f->uses);
    f->points = fem_calloc(k, sizeof *f->points);
    f->classes = fem_calloc(k, sizeof *f->classes);
    f->tree_classes = fem_calloc(k, sizeof *f->tree_classes);
    f->interfaces = fem_calloc(k, sizeof *f->interfaces);
    f->interface_count = fem_calloc(k, sizeof *f->interface_count);
    f->world = fem_alloc(n, sizeof *f->world);
    f->hangs = fem_alloc(n, sizeof *f->hangs);
    f->total = fem_calloc(n, sizeof *f->total);
    f->instances = fem_calloc(n, sizeof *f->instances);
    f->own = fem_calloc(n, sizeof *f->own);
    if (f->parts && f->given && f->origin && f->centre && f->mass && f->uses && f->points && f->classes &&
        f->tree_classes && f->interfaces && f->interface_count && f->world && f->hangs && f->total && f->instances &&
        f->own)
        return FEM_OK;
    return fem_fail(FEM_NO_MEMORY, "no memory for %d instances of %d parts", f->count, f->part_count);
}

fem_status solver_forest_create(solver_forest **forest, int part_count, const solver_part *parts, int count,
                                const solver_forest_instance *instances, int *offender) {
    fem_status     status = FEM_OK;
    int            ignored, *bad = offender ? offender : &ignored;
    solver_forest *f = NULL;
    *bad = -1;
    if (part_count < 1 || count < 1) return fem_fail(FEM_BAD_INPUT, "there is no part or no instance");
    f = fem_calloc(1, sizeof *f);
    if (!f) return fem_fail(FEM_NO_MEMORY, "no memory for instances");
    f->part_count = part_count, f->count = count;
    FEM_TRY(allocate(f, parts, instances));
    FEM_TRY(check_parts(f));
    for (int i = 0; i < count; i++) {
        *bad = i;
        FEM_TRY(check_instance(f, i));
        f->uses[f->given[i].part]++;
        if (f->given[i].parent < 0)
            f->world[i] = f->given[i].at;
        else
            solver_placement_compose(&f->world[i], &f->world[f->given[i].parent], &f->given[i].at);
    }
    *bad = -1;
    for (int k = 0; k < part_count; k++) measure_part(f, k);
    FEM_TRY(find_attachments(f));
    FEM_TRY(attach(f, bad));
    FEM_TRY(find_masses(f));
    *forest = f;
    f = NULL;
done:
    solver_forest_destroy(f);
    return status;
}

void solver_forest_destroy(solver_forest *f) {
    if (!f) return;
    for (int k = 0; k < f->part_count; k++) {
        for (int i = 0; f->interfaces && f->interfaces[k] && i < f->interface_count[k]; i++)
            domain_interface_destroy(&f->interfaces[k][i]);
        if (f->interfaces) fem_free(f->interfaces[k]);
        if (f->classes) solver_class_destroy(f->classes[k]);
        if (f->points) fem_embedding_destroy(&f->points[k]);
    }
    fem_free(f->parts), fem_free(f->given), fem_free(f->origin), fem_free(f->centre), fem_free(f->mass);
    fem_free(f->uses), fem_free(f->points), fem_free(f->classes), fem_free(f->tree_classes), fem_free(f->interfaces);
    fem_free(f->interface_count), fem_free(f->world), fem_free(f->hangs), fem_free(f->total);
    fem_free(f->instances), fem_free(f->attachments), fem_free(f->own);
    fem_free(f);
}

// ---- classes -------------------------------------------------------------------------------------------------------

// Wrenches of what is heavy enough to bend the part enter its basis; so many places at most, the heaviest.
enum { PLACES_MOST = 24 };
static const double HEAVY = 0.02; // of the part's own mass

typedef struct place_list {
    int          count;
    solver_place places[PLACES_MOST];
    int         *vertices[PLACES_MOST];
} place_list;

static void place_list_destroy(place_list *list) {
    for (int i = 0; i < list->count; i++) fem_free(list->vertices[i]);
    list->count = 0;
}

static int compare_ints(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

// The corners of the elements that hold the root points.
static fem_status add_place(const solver_forest *f, const solver_attachment *a, place_list *list) {
    const fem_embedding *e = &f->points[a->part];
    int                  room = f->parts[a->child].fixed_count * e->width, count = 0;
    int                 *vertices = fem_alloc((size_t)room, sizeof *vertices);
    if (!vertices) return fem_fail(FEM_NO_MEMORY, "no memory for a place of %d vertices", room);
    memcpy(vertices, e->vertices + (size_t)a->first * (size_t)e->width, (size_t)room * sizeof *vertices);
    qsort(vertices, (size_t)room, sizeof *vertices, compare_ints);
    for (int i = 0; i < room; i++)
        if (i == 0 || vertices[i] != vertices[i - 1]) vertices[count++] = vertices[i];
    list->vertices[list->count] = vertices;
    list->places[list->count++] =
        (solver_place){.count = count, .vertices = vertices, .mass = a->mass, .lever = a->lever};
    return FEM_OK;
}

static fem_status find_places(const solver_forest *f, int part, place_list *list) {
    fem_status status = FEM_OK;
    double     least = HEAVY * f->mass[part], last = INFINITY;
    int        last_index = -1;
    list->count = 0;
    while (list->count < PLACES_MOST) { // the next in order of mass, then of number
        int next = -1;
        for (int k = 0; k < f->attachment_count; k++) {
            const solver_attachment *a = &f->attachments[k];
            if (a->part != part || a->mass < least || a->mass > last || (a->mass == last && k <= last_index)) continue;
            if (next < 0 || a->mass > f->attachments[next].mass) next = k;
        }
        if (next < 0) break;
        last = f->attachments[next].mass, last_index = next;
        FEM_TRY(add_place(f, &f->attachments[next], list));
    }
done:
    return status;
}

static fem_status make_class(solver_forest *f, int part, const solver_class_store *store, solver_room *room) {
    fem_status           status = FEM_OK;
    const solver_part   *p = &f->parts[part];
    fem_mesh             mesh = {0};
    place_list           list = {0};
    solver_class_options o = p->options;
    o.batch = f->uses[part] > 1;
    o.room = room;
    FEM_TRY(find_places(f, part, &list));
    FEM_TRY(fem_mesh_copy(&mesh, p->mesh));
    for (size_t v = 0; v < (size_t)mesh.vertex_count; v++) vec3_axpy(mesh.vertices + 3 * v, -1, f->origin[part]);
    FEM_TRY(solver_class_create(&f->classes[part], p->name, &mesh, NULL, p->fixed_count, p->fixed, list.count,
                                list.places, &o, store, NULL));
done:
    fem_mesh_destroy(&mesh);
    place_list_destroy(&list);
    if (status != FEM_OK && status != FEM_STOPPED) fem_fail_prefix(status, "part \"%s\": ", p->name);
    return status;
}

// Rows of the basis at the root points, interpolated.
static fem_status make_interface(const solver_forest *f, const solver_attachment *a, domain_interface *interface) {
    const solver_class  *c = f->classes[a->part];
    const fem_embedding *e = &f->points[a->part];
    size_t     count = (size_t)f->parts[a->child].fixed_count, r = (size_t)c->basis.r, width = (size_t)e->width;
    double    *points = fem_alloc(3 * count, sizeof *points), *rows = fem_calloc(3 * count * r, sizeof *rows);
    fem_status status = FEM_OK;
    if (!points || !rows) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for an interface");
        goto done;
    }
    for (size_t k = 0; k < count; k++) {
        size_t at = (size_t)a->first + k;
        attachment_point(f, a, (int)k, points + 3 * k);
        vec3_axpy(points + 3 * k, -1, f->origin[a->part]);
        for (size_t l = 0; l < r; l++)
            for (size_t v = 0; v < width; v++)
                vec3_axpy(rows + 3 * (count * l + k), e->weights[at * width + v],
                          c->basis.U + (size_t)c->basis.n * l + 3 * (size_t)e->vertices[at * width + v]);
    }
    FEM_TRY(domain_interface_create(interface, (int)count, points, NULL, (int)r, rows, a->at.Q));
done:
    fem_free(points), fem_free(rows);
    return status;
}

typedef struct class_tasks {
    solver_forest            *f;
    const solver_class_store *store;
    solver_room              *room;
    const int                *parts; // per job
} class_tasks;

static fem_status class_job(void *context, int job) {
    const class_tasks *t = context;
    return make_class(t->f, t->parts[job], t->store, t->room);
}

static fem_status make_classes(solver_forest *f, const solver_class_store *store, solver_room *room,
                               const fem_progress *progress) {
    fem_status  status = FEM_OK;
    int         count = 0, *parts = fem_alloc((size_t)f->part_count, sizeof *parts);
    solver_job *jobs = fem_calloc((size_t)f->part_count, sizeof *jobs);
    if (!parts || !jobs) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d parts", f->part_count);
        goto done;
    }
    for (int k = 0; k < f->part_count; k++) {
        if (f->uses[k] == 0) continue;
        parts[count] = k;
        jobs[count++] = (solver_job){.elements = f->parts[k].mesh->element_count,
                                     .serial = f->parts[k].options.recipe.method == MODES_LANCZOS};
    }
    class_tasks   tasks = {f, store, room, parts};
    solver_making making = {.count = count, .jobs = jobs, .stage = "classes", .make = class_job, .context = &tasks};
    FEM_TRY(solver_make(&making, progress));
done:
    fem_free(parts), fem_free(jobs);
    return status;
}

static void fill_instances(solver_forest *f) {
    for (int k = 0; k < f->part_count; k++) {
        const solver_class *c = f->classes[k];
        if (!c) continue;
        f->tree_classes[k] = solver_class_in_tree(c);
        f->tree_classes[k].interface_count = f->interface_count[k];
        f->tree_classes[k].interfaces = f->interfaces[k];
        f->tree_classes[k].damping_mass = f->parts[k].damping_mass;
        f->tree_classes[k].damping_stiffness = f->parts[k].damping_stiffness;
        f->made++, f->cached += c->cached;
        f->seconds_modes += c->seconds_modes;
        f->seconds_forces += c->seconds_forces;
        f->seconds_rest += c->seconds_rest;
    }
    for (int i = 0; i < f->count; i++) {
        const solver_forest_instance *g = &f->given[i];
        bool                          held = f->parts[g->part].fixed_count > 0;
        f->instances[i] =
            (solver_tree_instance){.name = g->name,
                                   .class_index = g->part,
                                   .parent = g->parent,
                                   .interface = f->hangs[i] < 0 ? 0 : f->attachments[f->hangs[i]].interface,
                                   .scale = f->world[i].scale,
                                   .stiffness = g->stiffness,
                                   .root = !held       ? SOLVER_ROOT_FREE
                                           : g->driven ? SOLVER_ROOT_DRIVEN
                                                       : SOLVER_ROOT_FIXED};
        f->modes += f->classes[g->part]->basis.r;
    }
}

fem_status solver_forest_precompute(solver_forest *f, const solver_class_store *store, solver_room *room,
                                    const fem_progress *progress) {
    fem_status status = FEM_OK;
    double     begun = fem_seconds();
    if (f->made > 0) return FEM_OK;
    FEM_TRY(make_classes(f, store, room, progress));
    for (int k = 0; k < f->attachment_count; k++) f->interface_count[f->attachments[k].part]++;
    for (int k = 0; k < f->part_count; k++) {
        f->interfaces[k] = fem_calloc((size_t)f->interface_count[k], sizeof *f->interfaces[k]);
        if (!f->interfaces[k]) {
            status = fem_fail(FEM_NO_MEMORY, "no memory for %d interfaces", f->interface_count[k]);
            goto done;
        }
    }
    for (int k = 0; k < f->attachment_count; k++) {
        const solver_attachment *a = &f->attachments[k];
        status = make_interface(f, a, &f->interfaces[a->part][a->interface]);
        if (status != FEM_OK) {
            fem_fail_prefix(status, "part \"%s\", where a part \"%s\" hangs: ", f->parts[a->part].name,
                            f->parts[a->child].name);
            goto done;
        }
    }
    fill_instances(f);
    f->seconds = fem_seconds() - begun;
done:
    return status;
}

// ---- the tree ------------------------------------------------------------------------------------------------------

void solver_forest_frame(const solver_forest *f, int instance, solver_frame_motion *motion) {
    const solver_placement *w = &f->world[instance];
    *motion = (solver_frame_motion){0};
    place(w, f->origin[f->given[instance].part], motion->p);
    memcpy(motion->Q, w->Q, sizeof motion->Q);
}

fem_status solver_own_class_create(solver_own_class **made, const solver_forest *f, int instance,
                                   const modes_basis *basis, const cubature_forces *forces) {
    fem_status          status = FEM_OK;
    const solver_class *c = f->classes[f->given[instance].part];
    solver_own_class   *own = fem_calloc(1, sizeof *own);
    if (!own) return fem_fail(FEM_NO_MEMORY, "no memory for a class");
    own->basis = *basis, own->forces = *forces;
    if (basis->n != c->basis.n || forces->r != basis->r) {
        status = fem_fail(FEM_BAD_INPUT, "a basis of %d rows and %d columns for a part with %d rows, forces of %d",
                          basis->n, basis->r, c->basis.n, forces->r);
        goto done;
    }
    FEM_TRY(solver_inertia_create(&own->inertia, c->body, f->parts[f->given[instance].part].options.mass, basis->r,
                                  basis->U));
    *made = own;
    own = NULL;
done:
    solver_own_class_destroy(own);
    return status;
}

void solver_own_class_destroy(solver_own_class *own) {
    if (!own) return;
    solver_inertia_destroy(&own->inertia);
    fem_free(own);
}

const modes_basis *solver_forest_basis(const solver_forest *f, int instance) {
    return f->own[instance] ? &f->own[instance]->basis : &f->classes[f->given[instance].part]->basis;
}

fem_status solver_forest_tree(solver_tree **made, const solver_forest *f, const solver_tree_options *options) {
    fem_status   status = FEM_OK;
    solver_tree *tree = NULL;
    size_t       room = (size_t)f->part_count;
    int          count = 0;
    for (int i = 0; i < f->count; i++) room += f->own[i] != NULL;
    solver_tree_class    *classes = fem_alloc(room, sizeof *classes);
    int                  *index = fem_alloc((size_t)f->part_count, sizeof *index);
    solver_tree_instance *instances = fem_copy(f->instances, (size_t)f->count, sizeof *instances);
    if (!classes || !index || !instances) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d instances", f->count);
        goto done;
    }
    for (int k = 0; k < f->part_count; k++) // parts without instances have no class
        if (f->classes[k]) index[k] = count, classes[count++] = f->tree_classes[k];
    for (int i = 0; i < f->count; i++) {
        const solver_tree_class *of_part = &f->tree_classes[instances[i].class_index];
        instances[i].class_index = index[instances[i].class_index];
        if (!f->own[i]) continue;
        instances[i].class_index = count;
        classes[count++] = (solver_tree_class){.name = of_part->name,
                                               .inertia = &f->own[i]->inertia,
                                               .forces = f->own[i]->forces,
                                               .damping_mass = of_part->damping_mass,
                                               .damping_stiffness = of_part->damping_stiffness};
    }
    FEM_TRY(solver_tree_create(&tree, count, classes, f->count, instances, options));
    for (int i = 0; i < f->count; i++) {
        const solver_forest_instance *g = &f->given[i];
        if (g->damping_mass >= 0 || g->damping_stiffness >= 0)
            FEM_TRY(solver_tree_set_damping(
                tree, i, g->damping_mass >= 0 ? g->damping_mass : f->parts[g->part].damping_mass,
                g->damping_stiffness >= 0 ? g->damping_stiffness : f->parts[g->part].damping_stiffness));
        if (g->parent >= 0 || f->instances[i].root == SOLVER_ROOT_DRIVEN) continue;
        solver_frame_motion start;
        solver_forest_frame(f, i, &start);
        FEM_TRY(solver_tree_set_root(tree, i, &start));
    }
    *made = tree;
    tree = NULL;
done:
    solver_tree_destroy(tree);
    fem_free(classes), fem_free(index), fem_free(instances);
    return status;
}

// x = p + Q s (X + U q), dx = V + Q (w x s (X + U q) + s U dq)
void solver_forest_show(const solver_forest *f, solver_tree *tree, int instance, double *x, double *v, double *work) {
    const solver_class *c = f->classes[f->given[instance].part];
    const modes_basis  *basis = solver_forest_basis(f, instance);
    int                 n = 3 * c->mesh.vertex_count, r = basis->r;
    double              scale = f->world[instance].scale;
    solver_frame_motion m;
    solver_tree_frame(tree, instance, &m);
    if (v && r > 0) dense_gemv_set(n, r, 1, basis->U, solver_tree_dq(tree, instance), v);
    if (v && r == 0) memset(v, 0, (size_t)n * sizeof *v);
    memcpy(work, c->mesh.vertices, (size_t)n * sizeof *work);
    if (r > 0) dense_gemv_add(n, r, 1, basis->U, solver_tree_q(tree, instance), work);
    for (size_t i = 0; i < (size_t)n; i += 3) {
        double turned[3], local[3];
        mat3_mul_vec(turned, m.Q, work + i);
        for (size_t k = 0; k < 3; k++) x[i + k] = m.p[k] + scale * turned[k];
        if (!v) continue;
        vec3_cross(local, m.w, work + i);
        vec3_axpy(local, 1, v + i);
        mat3_mul_vec(turned, m.Q, local);
        for (size_t k = 0; k < 3; k++) v[i + k] = m.v[k] + scale * turned[k];
    }
}

fem_status solver_forest_point(const solver_forest *f, solver_tree *tree, int instance, int vertex, int *point) {
    const solver_class *c = f->classes[f->given[instance].part];
    const modes_basis  *basis = solver_forest_basis(f, instance);
    size_t              r = (size_t)basis->r;
    double             *rows = fem_alloc(3 * r + 1, sizeof *rows);
    if (!rows) return fem_fail(FEM_NO_MEMORY, "no memory for a point");
    for (size_t i = 0; i < 3; i++)
        for (size_t l = 0; l < r; l++) rows[i * r + l] = basis->U[(size_t)basis->n * l + 3 * (size_t)vertex + i];
    fem_status status =
        solver_tree_add_point(tree, instance, c->mesh.vertices + 3 * (size_t)vertex, r > 0 ? rows : NULL, point);
    fem_free(rows);
    return status;
}
