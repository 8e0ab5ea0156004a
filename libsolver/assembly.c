// From a decomposed mesh to classes, instances and springs; see assembly.h.
#include "libsolver/assembly.h"
#include "libsolver/assembly_internal.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

solver_assembly_options solver_assembly_default_options(void) {
    return (solver_assembly_options){.class = solver_class_default_options(),
                                     .damping_stiffness = SOLVER_DAMPING_BY_RATIO,
                                     .damping_ratio = 0.01,
                                     .collar = 1,
                                     .carried = SOLVER_MOST_CARRIED,
                                     .carried_tolerance = 0.03,
                                     .whole_modes = 22,
                                     .spring_stiffness = 20,
                                     .spring_damping = 1,
                                     .spring_points = 12};
}

solver_domain_options solver_assembly_domain_options(const solver_assembly_options *o) {
    return (solver_domain_options){.modes = o->total > 0 ? SOLVER_MODES_SHARED : o->class.modes,
                                   .derivatives = o->class.recipe.derivatives,
                                   .forces = o->class.forces,
                                   .stiffness = 1,
                                   .damping_mass = o->damping_mass,
                                   .damping_stiffness = o->damping_stiffness};
}

// ---- mode counts ---------------------------------------------------------------------------------------------------

static double share_of(int elements) { return log(elements > 2 ? elements : 2); }

// Whole parts again and again, since those that are full leave theirs to the others; what is left when parts are
// smaller than one goes to the first.
void solver_share_modes(int total, int count, const int *elements, const int *most, const bool *take, int *out) {
    int left = total, given = 1;
    for (int i = 0; i < count; i++)
        if (take[i]) out[i] = 0;
    while (left > 0 && given > 0) {
        double sum = 0;
        int    room = left;
        for (int i = 0; i < count; i++)
            if (take[i] && out[i] < most[i]) sum += share_of(elements[i]);
        given = 0;
        for (int i = 0; i < count; i++) {
            if (!take[i] || out[i] >= most[i]) continue;
            int part = (int)(room * share_of(elements[i]) / sum);
            if (part > most[i] - out[i]) part = most[i] - out[i];
            out[i] += part, given += part;
        }
        left -= given;
        for (int i = 0; i < count && given == 0 && left > 0; i++)
            if (take[i] && out[i] < most[i]) out[i]++, left--;
    }
    for (int i = 0; i < count; i++)
        if (take[i] && out[i] == 0 && most[i] > 0) out[i] = 1;
}

static fem_status choose_modes(assembly_work *w) {
    fem_status status = FEM_OK;
    int        count = w->tree->count, total = w->options->total;
    int       *most = fem_alloc((size_t)count, sizeof *most), *elements = fem_alloc((size_t)count, sizeof *elements);
    bool      *take = fem_alloc((size_t)count, sizeof *take);
    if (!most || !elements || !take) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d domains", count);
        goto done;
    }
    for (int i = 0; i < count; i++) {
        const domain_part *part = &w->parts[i];
        int                held = i == 0 ? w->root_fixed_count : part->interface_count;
        most[i] = solver_class_most_modes(part->mesh.vertex_count, held);
        elements[i] = part->mesh.element_count;
        take[i] = w->domains[i].modes == SOLVER_MODES_SHARED;
        if (take[i]) continue;
        w->modes[i] = w->domains[i].modes;
        total -= w->modes[i];
        if (w->modes[i] > most[i]) {
            status = fem_fail(FEM_BAD_INPUT,
                              "%s: %d modes were asked for, but it has at most %d (%d elements, %d of its %d vertices "
                              "are held); fewer modes for it, or a total that is shared out, would do",
                              w->tree->name[i], w->modes[i], most[i], elements[i], held, part->mesh.vertex_count);
            goto done;
        }
    }
    solver_share_modes(total > 0 ? total : 0, count, elements, most, take, w->modes);
done:
    fem_free(most), fem_free(elements), fem_free(take);
    return status;
}

// ---- masses of subtrees --------------------------------------------------------------------------------------------

// Mass, mass x centre and (where wanted) sum of mass x x^T with the mass of an element at its middle.
static void element_masses(const fem_mesh *mesh, int domain, const domain_tree *tree, double *mass, double centre[3],
                           double *second) {
    int width = fem_element_vertices(mesh->type);
    *mass = centre[0] = centre[1] = centre[2] = 0;
    for (int k = tree->element_start[domain]; k < tree->element_start[domain + 1]; k++) {
        int    e = tree->elements[k];
        double m = fem_element_volume(mesh, e) * mesh->materials[mesh->regions[mesh->region[e]].material].density;
        double middle[3] = {0};
        for (int c = 0; c < width; c++)
            vec3_axpy(middle, 1.0 / width,
                      mesh->vertices + 3 * (size_t)mesh->elements[(size_t)e * (size_t)width + (size_t)c]);
        vec3_axpy(centre, m, middle);
        for (int i = 0; second && i < 9; i++) second[i] += m * middle[i / 3] * middle[i % 3];
        *mass += m;
    }
}

// mass[i], moment[i] of the subtrees; children stand behind their parents.
static void subtree_masses(assembly_work *w) {
    for (int i = 0; i < w->tree->count; i++)
        element_masses(w->mesh, i, w->tree, &w->mass[i], w->moment[i], w->second[i]);
    for (int i = w->tree->count - 1; i > 0; i--) {
        w->mass[w->tree->parent[i]] += w->mass[i];
        vec3_axpy(w->moment[w->tree->parent[i]], 1, w->moment[i]);
        dense_axpy(9, 1, w->second[i], w->second[w->tree->parent[i]]);
    }
    w->a->mass = w->mass[0];
    for (int k = 0; k < 3; k++) w->a->centre[k] = w->moment[0][k] / w->mass[0];
}

// ---- one domain ----------------------------------------------------------------------------------------------------

// Where the frame of a domain is at rest: the weighted centroid of its interface, the mean of what is fixed, or the
// centre of a free root.
static void frame_origin(const assembly_work *w, int domain, double origin[3]) {
    const domain_part *part = &w->parts[domain];
    double             sum = 0;
    origin[0] = origin[1] = origin[2] = 0;
    if (domain == 0 && w->root_fixed_count == 0) {
        double mass;
        element_masses(w->mesh, 0, w->tree, &mass, origin, NULL);
        for (int k = 0; k < 3; k++) origin[k] /= mass;
        return;
    }
    int        count = domain == 0 ? w->root_fixed_count : part->interface_count;
    const int *vertices = domain == 0 ? w->root_fixed : part->interface;
    for (int i = 0; i < count; i++) {
        double weight = domain == 0 ? 1 : part->interface_weights[i];
        vec3_axpy(origin, weight, part->mesh.vertices + 3 * (size_t)vertices[i]);
        sum += weight;
    }
    for (int k = 0; k < 3; k++) origin[k] /= sum;
}

// Interfaces to the children, then the places of springs.
static int gather_places(const assembly_work *w, int domain, solver_place *places) {
    const domain_part *part = &w->parts[domain];
    int                count = 0;
    for (int i = 0; i < part->child_count; i++) {
        int    child = part->children[i], from = part->child_points.start[i];
        double centre[3], *moment = w->moment[child];
        for (int k = 0; k < 3; k++) centre[k] = moment[k] / w->mass[child];
        places[count++] = (solver_place){.count = part->child_points.start[i + 1] - from,
                                         .vertices = part->child_points.vertices + from,
                                         .weights = part->child_points.weights + from,
                                         .mass = w->mass[child],
                                         .lever = vec3_distance(centre, w->a->origin[child]),
                                         .child = true,
                                         .pull = w->pull[child],
                                         .carried = assembly_carried(w, child)};
        assembly_inertia(w, child, places[count - 1].inertia);
    }
    for (int k = 0; k < w->tie_count; k++)
        if (w->ties[k].domain == domain && w->ties[k].wrench)
            places[count++] =
                (solver_place){.count = w->ties[k].count, .vertices = w->ties[k].vertices, .mass = w->a->mass};
    return count;
}

static fem_status make_class(assembly_work *w, int domain) {
    fem_status           status = FEM_OK;
    domain_part         *part = &w->parts[domain];
    fem_mesh             mesh = {0};
    solver_class_options o = w->options->class;
    solver_place        *places = fem_alloc((size_t)(part->child_count + w->tie_count), sizeof *places);
    if (!places) return fem_fail(FEM_NO_MEMORY, "no memory for the places of a domain");
    int               place_count = gather_places(w, domain, places);
    solver_carrier    carrier = {0};
    assembly_seeds_of of = {.w = w, .domain = domain};
    solver_seeds      seeds;
    if (w->seeds) seeds = assembly_seeds_for(&of), o.seeds = &seeds;
    if (assembly_carried(w, domain)) {
        FEM_TRY(assembly_carrier(w, domain, &carrier));
        o.carrier = &carrier;
    }
    o.modes = w->modes[domain];
    o.forces = w->domains[domain].forces;
    o.recipe.derivatives = w->domains[domain].derivatives;
    FEM_TRY(fem_mesh_copy(&mesh, &part->mesh));
    for (size_t v = 0; v < (size_t)mesh.vertex_count; v++) vec3_axpy(mesh.vertices + 3 * v, -1, w->a->origin[domain]);
    fem_mesh *around = &w->around[domain];
    for (size_t v = 0; v < (size_t)around->vertex_count; v++)
        vec3_axpy(around->vertices + 3 * v, -1, w->a->origin[domain]);
    FEM_TRY(solver_class_create(&w->a->classes[domain], w->tree->name[domain], &mesh, around,
                                domain == 0 ? w->root_fixed_count : part->interface_count,
                                domain == 0 ? w->root_fixed : part->interface, place_count, places, &o, w->store,
                                NULL));
    if (o.carrier) FEM_TRY(assembly_attach(w, domain));
done:
    fem_mesh_destroy(&mesh);
    fem_free((void *)(uintptr_t)carrier.rows), fem_free((void *)(uintptr_t)carrier.frame),
        fem_free((void *)(uintptr_t)carrier.stiffness);
    fem_free(places);
    if (status != FEM_OK && status != FEM_STOPPED) fem_fail_prefix(status, "%s: ", w->tree->name[domain]);
    return status;
}

// ---- all domains, side by side -------------------------------------------------------------------------------------

static fem_status class_job(void *context, int domain) { return make_class(context, domain); }

// Level by level, since what a domain follows comes from its parent.
static fem_status make_classes(assembly_work *w, const fem_progress *progress) {
    int         count = w->tree->count;
    solver_job *jobs = fem_calloc((size_t)count, sizeof *jobs);
    if (!jobs) return fem_fail(FEM_NO_MEMORY, "no memory for %d domains", count);
    for (int i = 0; i < count; i++)
        jobs[i] = (solver_job){.elements = w->parts[i].mesh.element_count,
                               .level = w->options->carried > 0 ? w->tree->level[i] : 0,
                               .serial = w->options->class.recipe.method == MODES_LANCZOS};
    solver_making making = {.count = count, .jobs = jobs, .stage = "domains", .make = class_job, .context = w};
    fem_status    status = solver_make(&making, progress);
    fem_free(jobs);
    return status;
}

// ---- parts, instances, vertices ------------------------------------------------------------------------------------

typedef struct part_tasks {
    assembly_work *w;
    fem_status    *status;
} part_tasks;

static void part_task(void *context, int domain, int worker) {
    (void)worker;
    part_tasks *t = context;
    t->status[domain] = domain_part_create(&t->w->parts[domain], t->w->mesh, t->w->tree, domain);
}

static fem_status make_parts(assembly_work *w) {
    fem_status status = FEM_OK;
    int        count = w->tree->count;
    part_tasks t = {.w = w, .status = fem_calloc((size_t)count, sizeof *t.status)};
    if (!t.status) return fem_fail(FEM_NO_MEMORY, "no memory for %d domains", count);
    fem_parallel_for(count, part_task, &t);
    for (int i = 0; i < count && status == FEM_OK; i++)
        if (t.status[i] != FEM_OK) status = fem_fail(t.status[i], "no memory for %s", w->tree->name[i]);
    fem_free(t.status);
    return status;
}

static fem_status find_root_fixed(assembly_work *w, int fixed_count, const int *fixed) {
    w->root_fixed = fem_alloc((size_t)fixed_count, sizeof *w->root_fixed);
    if (!w->root_fixed) return fem_fail(FEM_NO_MEMORY, "no memory for %d fixed vertices", fixed_count);
    for (int i = 0; i < fixed_count; i++) {
        if (fixed[i] < 0 || fixed[i] >= w->mesh->vertex_count)
            return fem_fail(FEM_BAD_INPUT, "vertex %d is fixed, expected 0 to %d", fixed[i], w->mesh->vertex_count - 1);
        int local = domain_part_local(&w->parts[0], fixed[i]);
        if (local >= 0) w->root_fixed[w->root_fixed_count++] = local;
    }
    if (fixed_count > 0 && w->root_fixed_count == 0)
        return fem_fail(FEM_BAD_INPUT,
                        "none of the %d fixed vertices is in the root of the tree: was it made with them?",
                        fixed_count);
    return FEM_OK;
}

static void fill_instances(assembly_work *w) {
    solver_assembly *a = w->a;
    for (int i = 0; i < a->count; i++) {
        int parent = w->tree->parent[i];
        a->tree_classes[i] = solver_class_in_tree(a->classes[i]);
        a->tree_classes[i].damping_mass = w->domains[i].damping_mass;
        a->by_ratio[i] = w->domains[i].damping_stiffness == SOLVER_DAMPING_BY_RATIO;
        a->tree_classes[i].damping_stiffness = a->by_ratio[i] ? 0 : w->domains[i].damping_stiffness;
        a->instances[i] = (solver_tree_instance){.name = a->classes[i]->name,
                                                 .class_index = i,
                                                 .parent = parent,
                                                 .interface = parent < 0 ? 0 : i - w->parts[parent].children[0],
                                                 .scale = 1,
                                                 .stiffness = w->domains[i].stiffness,
                                                 .root = a->held ? SOLVER_ROOT_FIXED : SOLVER_ROOT_FREE};
        a->modes += a->classes[i]->basis.r - a->classes[i]->carried;
        a->carried += a->classes[i]->carried;
        a->cached += a->classes[i]->cached;
        a->seconds_modes += a->classes[i]->seconds_modes;
        a->seconds_forces += a->classes[i]->seconds_forces;
        a->seconds_rest += a->classes[i]->seconds_rest;
    }
}

static void fill_vertices(assembly_work *w) {
    solver_assembly *a = w->a;
    for (int v = 0; v < a->vertex_count; v++) a->owner[v] = a->vertex[v] = -1;
    for (int i = 0; i < a->count; i++) {
        domain_part *part = &w->parts[i];
        for (int k = 0; k < part->mesh.vertex_count; k++) {
            int v = part->vertices[k];
            if (w->tree->vertex_owner[v] == i) a->owner[v] = i, a->vertex[v] = k;
        }
        a->local[i] = part->vertices;
        part->vertices = NULL;
    }
}

static fem_status allocate(assembly_work *w) {
    solver_assembly *a = w->a;
    size_t           count = (size_t)w->tree->count, vertices = (size_t)w->mesh->vertex_count;
    a->classes = fem_calloc(count, sizeof *a->classes);
    a->tree_classes = fem_calloc(count, sizeof *a->tree_classes);
    a->instances = fem_calloc(count, sizeof *a->instances);
    a->origin = fem_calloc(count, sizeof *a->origin);
    a->by_ratio = fem_calloc(count, sizeof *a->by_ratio);
    a->damping_ratio = w->options->damping_ratio;
    a->local = fem_calloc(count, sizeof *a->local);
    a->first = fem_calloc(count + 1, sizeof *a->first);
    a->shown = fem_calloc(count, sizeof *a->shown);
    a->owner = fem_alloc(vertices, sizeof *a->owner);
    a->vertex = fem_alloc(vertices, sizeof *a->vertex);
    w->parts = fem_calloc(count, sizeof *w->parts);
    w->modes = fem_calloc(count, sizeof *w->modes);
    w->mass = fem_calloc(count, sizeof *w->mass);
    w->moment = fem_calloc(count, sizeof *w->moment);
    w->second = fem_calloc(count, sizeof *w->second);
    w->around = fem_calloc(count, sizeof *w->around);
    w->around_vertices = fem_calloc(count, sizeof *w->around_vertices);
    w->pull = fem_calloc(count, sizeof *w->pull);
    solver_domain_options *domains = fem_calloc(count, sizeof *domains);
    w->domains = domains;
    if (!a->classes || !a->tree_classes || !a->instances || !a->origin || !a->by_ratio || !a->local || !a->first ||
        !a->shown || !a->owner || !a->vertex || !w->parts || !w->modes || !w->mass || !w->moment || !w->second ||
        !w->around || !w->around_vertices || !w->pull || !domains)
        return fem_fail(FEM_NO_MEMORY, "no memory for %zu domains", count);
    a->count = a->class_count = (int)count;
    for (size_t i = 0; i < count; i++)
        domains[i] = w->options->domains ? w->options->domains[i] : solver_assembly_domain_options(w->options);
    a->vertex_count = (int)vertices;
    a->mesh = w->mesh;
    a->rest = w->mesh->vertices;
    return FEM_OK;
}

static fem_status check(const assembly_work *w) {
    const solver_assembly_options *o = w->options;
    if (w->tree->vertex_count != w->mesh->vertex_count || w->tree->element_count != w->mesh->element_count)
        return fem_fail(FEM_BAD_INPUT, "the tree is of a mesh of %d elements, this one has %d", w->tree->element_count,
                        w->mesh->element_count);
    if (!(o->collar >= 0 && isfinite(o->collar)))
        return fem_fail(FEM_BAD_INPUT, "the collar is %g radii deep, expected >= 0", o->collar);
    if (o->carried < 0 || o->carried > SOLVER_MOST_CARRIED)
        return fem_fail(FEM_BAD_INPUT, "interfaces deform in %d shapes, expected 0 to %d", o->carried,
                        SOLVER_MOST_CARRIED);
    if (!(o->carried_tolerance >= 0 && isfinite(o->carried_tolerance)))
        return fem_fail(FEM_BAD_INPUT, "the tolerance of interfaces is %g, expected >= 0", o->carried_tolerance);
    if (o->whole_modes < 0) return fem_fail(FEM_BAD_INPUT, "%d modes of the whole body, expected >= 0", o->whole_modes);
    if (!(o->damping_ratio >= 0 && o->damping_ratio <= 1))
        return fem_fail(FEM_BAD_INPUT, "damping: the ratio of the lowest mode is %g, expected from 0 to 1",
                        o->damping_ratio);
    if (o->total < 0) return fem_fail(FEM_BAD_INPUT, "modes.total is %d, expected >= 0", o->total);
    if (!(o->spring_stiffness > 0 && isfinite(o->spring_stiffness) && o->spring_damping >= 0 &&
          isfinite(o->spring_damping)))
        return fem_fail(FEM_BAD_INPUT, "springs: stiffness %g and damping %g, expected > 0 and >= 0",
                        o->spring_stiffness, o->spring_damping);
    if (o->spring_points < 3)
        return fem_fail(FEM_BAD_INPUT, "springs: %d points, expected 3 or more", o->spring_points);
    for (int i = 0; i < w->tree->count; i++) {
        const solver_domain_options *d = &w->domains[i];
        if (!(d->stiffness > 0 && isfinite(d->stiffness)))
            return fem_fail(FEM_BAD_INPUT, "%s: the stiffness factor is %g, expected > 0", w->tree->name[i],
                            d->stiffness);
        if (d->derivatives < 0 || d->derivatives > MODES_MOST_ORDER)
            return fem_fail(FEM_BAD_INPUT, "%s: derivatives of order %d, expected 0 to %d", w->tree->name[i],
                            d->derivatives, MODES_MOST_ORDER);
        bool by_ratio = d->damping_stiffness == SOLVER_DAMPING_BY_RATIO;
        if (!(d->damping_mass >= 0 && (d->damping_stiffness >= 0 || by_ratio) &&
              isfinite(d->damping_mass + d->damping_stiffness)))
            return fem_fail(FEM_BAD_INPUT, "%s: damping %g and %g, expected >= 0", w->tree->name[i], d->damping_mass,
                            d->damping_stiffness);
        if (d->modes < SOLVER_MODES_SHARED || (d->modes == SOLVER_MODES_SHARED && o->total < 1))
            return fem_fail(FEM_BAD_INPUT, "%s: %d modes, expected 0 or more%s", w->tree->name[i], d->modes,
                            d->modes == SOLVER_MODES_SHARED ? ", or a total to share out" : "");
    }
    return FEM_OK;
}

static void work_destroy(assembly_work *w) {
    for (int i = 0; w->parts && i < w->tree->count; i++) domain_part_destroy(&w->parts[i]);
    for (int i = 0; w->around && i < w->tree->count; i++) fem_mesh_destroy(&w->around[i]);
    for (int i = 0; w->pull && i < w->tree->count; i++) fem_free(w->pull[i]);
    for (int i = 0; w->around_vertices && i < w->tree->count; i++) fem_free(w->around_vertices[i]);
    fem_free(w->around_vertices);
    assembly_seeds_destroy(w->seeds);
    fem_free(w->second), fem_free(w->around), fem_free(w->pull);
    for (int k = 0; k < w->tie_count; k++)
        fem_free(w->ties[k].vertices), fem_free(w->ties[k].areas), fem_free(w->ties[k].group);
    fem_free(w->parts), fem_free(w->modes), fem_free(w->mass), fem_free(w->moment);
    fem_free(w->root_fixed), fem_free(w->ties), fem_free(w->domains);
}

fem_status solver_assembly_create(solver_assembly **assembly, const fem_mesh *mesh, const domain_tree *domains,
                                  int fixed_count, const int *fixed, const solver_assembly_options *options,
                                  const solver_class_store *store, const fem_progress *progress) {
    fem_status    status = FEM_OK;
    assembly_work w = {
        .mesh = mesh, .tree = domains, .options = options, .store = store, .fixed_count = fixed_count, .fixed = fixed};
    double begun = fem_seconds();
    if (domains->count < 1) return fem_fail(FEM_BAD_INPUT, "the tree of domains is empty");
    w.a = fem_calloc(1, sizeof *w.a);
    if (!w.a) return fem_fail(FEM_NO_MEMORY, "no memory for a body of domains");
    FEM_TRY(allocate(&w));
    FEM_TRY(check(&w));
    FEM_TRY(make_parts(&w));
    FEM_TRY(find_root_fixed(&w, fixed_count, fixed));
    w.a->held = w.root_fixed_count > 0;
    subtree_masses(&w);
    for (int i = 0; i < w.a->count; i++) frame_origin(&w, i, w.a->origin[i]);
    FEM_TRY(choose_modes(&w));
    FEM_TRY(assembly_find_ties(&w));
    FEM_TRY(assembly_find_pulls(&w));
    if (options->whole_modes > 0) FEM_TRY(assembly_seeds_create(&w));
    FEM_TRY(make_classes(&w, progress));
    w.a->whole_lost = assembly_seeds_lost(w.seeds);
    FEM_TRY(assembly_make_joints(&w));
    fill_instances(&w);
    fill_vertices(&w);
    for (int i = 0; i < w.a->count; i++) {
        const solver_class *c = w.a->classes[i];
        w.a->first[i + 1] = w.a->first[i] + c->mesh.vertex_count;
        w.a->warped = w.a->warped || (c->kind == SOLVER_FORCES_WARPED && c->basis.r > 0);
    }
    w.a->copies = fem_calloc(6 * (size_t)w.a->first[w.a->count], sizeof *w.a->copies);
    if (!w.a->copies) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d vertices", w.a->first[w.a->count]);
        goto done;
    }
    FEM_TRY(assembly_find_seams(w.a));
    FEM_TRY(solver_assembly_set_seams(w.a, SOLVER_SEAMS_C0));
    w.a->seconds = fem_seconds() - begun;
    *assembly = w.a;
    w.a = NULL;
done:
    work_destroy(&w);
    solver_assembly_destroy(w.a);
    return status;
}

void solver_assembly_destroy(solver_assembly *a) {
    if (!a) return;
    for (int i = 0; i < a->count; i++) {
        solver_class_destroy(a->classes[i]);
        fem_free(a->local[i]);
    }
    fem_free(a->classes), fem_free(a->tree_classes), fem_free(a->instances), fem_free(a->origin);
    fem_free(a->by_ratio);
    fem_free(a->local), fem_free(a->owner), fem_free(a->vertex), fem_free(a->first), fem_free(a->shown);
    fem_free(a->seam_start), fem_free(a->seam_vertex), fem_free(a->seam_local), fem_free(a->copies);
    fem_free(a->join_start), fem_free(a->join_copy), fem_free(a->join_weight);
    for (int k = 0; k < a->joint_count; k++) fem_free(a->joints[k].ends[0].rows), fem_free(a->joints[k].ends[1].rows);
    fem_free(a->joints);
    fem_free(a);
}
