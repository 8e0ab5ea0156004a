// Springs of an assembly: where loops were cut open, and where the body stands on the ground beside its root.
//
// A closure is a patch of shared vertices that has a copy in each of two domains. Its vertices are gathered in a few
// groups, and springs hold the means of the groups together. (Springs on all vertices would leave the domains, which
// have but a few modes, nothing to bend with.) A spring is as stiff as a layer of the material there, a fraction of an
// element thick: k = f E A / h, with E the modulus of pulling without contraction, A the area of the group, h the size
// of an element.
#include "libsolver/assembly_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- groups --------------------------------------------------------------------------------------------------------

// Groups around up to `most` vertices, each the farthest from those before; the first is the farthest from the middle.
static int make_groups(const fem_mesh *mesh, int count, const int *vertices, int most, int *group, double *distance) {
    double middle[3] = {0};
    int    taken = 0;
    for (int i = 0; i < count; i++) vec3_axpy(middle, 1.0 / count, mesh->vertices + 3 * (size_t)vertices[i]);
    for (int i = 0; i < count; i++) distance[i] = vec3_distance(middle, mesh->vertices + 3 * (size_t)vertices[i]);
    for (; taken < most && taken < count; taken++) {
        int best = 0;
        for (int i = 1; i < count; i++)
            if (distance[i] > distance[best] * (1 + 1e-9)) best = i;
        for (int i = 0; i < count; i++) {
            double d =
                vec3_distance(mesh->vertices + 3 * (size_t)vertices[i], mesh->vertices + 3 * (size_t)vertices[best]);
            if (taken == 0 || d < distance[i]) distance[i] = d, group[i] = taken;
        }
        group[best] = taken;
    }
    return taken;
}

// Do the vertices span more than a line?
static bool spread(const fem_mesh *mesh, const assembly_tie *tie) {
    double middle[3] = {0}, J[9] = {0}, trace;
    for (int i = 0; i < tie->count; i++)
        vec3_axpy(middle, 1.0 / tie->count, mesh->vertices + 3 * (size_t)tie->vertices[i]);
    for (int i = 0; i < tie->count; i++) {
        double d[3];
        vec3_sub(d, mesh->vertices + 3 * (size_t)tie->vertices[i], middle);
        for (int k = 0; k < 9; k++) J[k] += (k % 4 == 0 ? vec3_dot(d, d) : 0) - d[k / 3] * d[k % 3];
    }
    trace = J[0] + J[4] + J[8];
    return tie->count >= 3 && mat3_det(J) > 1e-6 * trace * trace * trace;
}

// A side of list `list`: the same groups, whichever domain looks at them. Hinges and feet have no area: alike.
static fem_status make_tie(const assembly_work *w, const domain_points *points, int list, int domain,
                           assembly_tie *tie) {
    fem_status status = FEM_OK;
    int        from = points->start[list], count = points->start[list + 1] - from;
    double    *distance = fem_alloc((size_t)count, sizeof *distance);
    *tie = (assembly_tie){.domain = domain, .count = count};
    tie->vertices = fem_alloc((size_t)count, sizeof *tie->vertices);
    tie->group = fem_calloc((size_t)count, sizeof *tie->group);
    tie->areas = fem_alloc((size_t)count, sizeof *tie->areas);
    if (!distance || !tie->vertices || !tie->group || !tie->areas) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the springs of %s", w->tree->name[domain]);
        goto done;
    }
    tie->groups = make_groups(w->mesh, count, points->vertices + from, w->options->spring_points, tie->group, distance);
    for (int i = 0; i < count; i++) {
        tie->vertices[i] = domain_part_local(&w->parts[domain], points->vertices[from + i]);
        tie->areas[i] = points->weights[from + i];
    }
    tie->wrench = spread(&w->parts[domain].mesh, tie);
done:
    fem_free(distance);
    return status;
}

fem_status assembly_find_ties(assembly_work *w) {
    fem_status         status = FEM_OK;
    const domain_tree *tree = w->tree;
    int                closures = tree->closures.count, grounds = tree->grounds.count;
    w->ties = fem_calloc(2 * (size_t)closures + (size_t)grounds, sizeof *w->ties);
    if (!w->ties) return fem_fail(FEM_NO_MEMORY, "no memory for the springs of %d closures", closures);
    for (int k = 0; k < 2 * closures; k++) {
        w->tie_count++;
        FEM_TRY(make_tie(w, &tree->closures, k / 2, tree->closure_pair[k], &w->ties[k]));
    }
    for (int k = 0; k < grounds; k++) {
        w->tie_count++;
        FEM_TRY(make_tie(w, &tree->grounds, k, tree->ground_domain[k], &w->ties[2 * closures + k]));
    }
done:
    return status;
}

// ---- stiffness -----------------------------------------------------------------------------------------------------

typedef struct corner {
    double volume, mass, modulus; // of a vertex: its shares of the elements around it, and their largest modulus
} corner;

static double modulus(const fem_material *material) {
    static const double    identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    fem_material_constants constants;
    double                 P[9], D[81];
    fem_material_prepare(&constants, material);
    fem_material_evaluate(&constants, identity, NULL, P, D);
    return fmax(D[0], fmax(D[40], D[80]));
}

static void add_corners(const fem_mesh *mesh, double factor, corner *corners) {
    int width = fem_element_vertices(mesh->type);
    for (int e = 0; e < mesh->element_count; e++) {
        const fem_material *material = &mesh->materials[mesh->regions[mesh->region[e]].material];
        double              volume = fem_element_volume(mesh, e) / width, E = factor * modulus(material);
        for (int k = 0; k < width; k++) {
            corner *c = &corners[mesh->elements[(size_t)e * (size_t)width + (size_t)k]];
            c->volume += volume;
            c->mass += volume * material->density;
            c->modulus = fmax(c->modulus, E);
        }
    }
}

static fem_status domain_corners(const assembly_work *w, int domain, corner **corners) {
    const fem_mesh *mesh = &w->parts[domain].mesh;
    *corners = fem_calloc((size_t)mesh->vertex_count, sizeof **corners);
    if (!*corners) return fem_fail(FEM_NO_MEMORY, "no memory for the springs of %s", w->tree->name[domain]);
    add_corners(mesh, w->domains[domain].stiffness, *corners);
    return FEM_OK;
}

// The end of a spring in one domain: means over a group, in the coordinates of the class.
static fem_status make_end(const assembly_work *w, const assembly_tie *tie, const double *weights,
                           solver_joint_end *end) {
    const solver_class *c = w->a->classes[tie->domain];
    size_t              r = (size_t)c->basis.r, n = (size_t)c->basis.n;
    end->instance = tie->domain;
    end->rows = fem_calloc(3 * r, sizeof *end->rows);
    if (!end->rows) return fem_fail(FEM_NO_MEMORY, "no memory for a spring of %s", w->tree->name[tie->domain]);
    for (int i = 0; i < tie->count; i++) {
        size_t v = 3 * (size_t)tie->vertices[i];
        if (weights[i] == 0) continue;
        vec3_axpy(end->X, weights[i], c->mesh.vertices + v);
        for (size_t k = 0; k < 3; k++)
            for (size_t l = 0; l < r; l++) end->rows[k * r + l] += weights[i] * c->basis.U[n * l + v + k];
    }
    return FEM_OK;
}

// The spring of one group of a tie, between two sides or (b is NULL) to the ground.
static fem_status add_joint(assembly_work *w, const assembly_tie *a, const assembly_tie *b, int group,
                            const corner *left, const corner *right, double *weights, int list) {
    fem_status                     status = FEM_OK;
    const solver_assembly_options *o = w->options;
    double                         area = 0, h = 0, E = 0, mass = 0;
    solver_joint                  *joint = &w->a->joints[w->a->joint_count++];
    *joint = (solver_joint){
        .ends = {{.instance = a->domain}, {.instance = -1}}, .closure = b ? list : -1, .ground = b ? -1 : list};
    for (int i = 0; i < a->count; i++) {
        weights[i] = 0;
        if (a->group[i] != group) continue;
        corner one = left[a->vertices[i]], other = b ? right[b->vertices[i]] : one;
        double size = cbrt(0.5 * (one.volume + other.volume));
        weights[i] = a->areas[i] > 0 ? a->areas[i] : size * size;
        area += weights[i];
        h += weights[i] * size;
        E = fmax(E, fmax(one.modulus, other.modulus));
        mass += one.mass + (b ? other.mass : 0);
    }
    h /= area;
    for (int i = 0; i < a->count; i++) weights[i] /= area;
    joint->stiffness = o->spring_stiffness * E * area / h;
    joint->damping = 2 * o->spring_damping * sqrt(joint->stiffness * mass);
    FEM_TRY(make_end(w, a, weights, &joint->ends[0]));
    if (b) FEM_TRY(make_end(w, b, weights, &joint->ends[1]));
    for (int k = 0; k < 3; k++) joint->anchor[k] = joint->ends[0].X[k] + w->a->origin[a->domain][k];
done:
    return status;
}

static fem_status add_joints(assembly_work *w, const assembly_tie *a, const assembly_tie *b, int list) {
    fem_status status = FEM_OK;
    corner    *left = NULL, *right = NULL;
    double    *weights = fem_alloc((size_t)a->count, sizeof *weights);
    if (!weights) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the springs of %s", w->tree->name[a->domain]);
        goto done;
    }
    FEM_TRY(domain_corners(w, a->domain, &left));
    if (b) FEM_TRY(domain_corners(w, b->domain, &right));
    for (int group = 0; group < a->groups; group++) FEM_TRY(add_joint(w, a, b, group, left, right, weights, list));
done:
    fem_free(left), fem_free(right), fem_free(weights);
    return status;
}

fem_status assembly_make_joints(assembly_work *w) {
    fem_status status = FEM_OK;
    int        closures = w->tree->closures.count, count = 0;
    for (int k = 0; k < w->tie_count; k++) count += w->ties[k].groups;
    w->a->joints = fem_calloc((size_t)count, sizeof *w->a->joints);
    if (!w->a->joints) return fem_fail(FEM_NO_MEMORY, "no memory for %d springs", count);
    for (int k = 0; k < closures; k++) FEM_TRY(add_joints(w, &w->ties[2 * k], &w->ties[2 * k + 1], k));
    for (int k = 2 * closures; k < w->tie_count; k++) FEM_TRY(add_joints(w, &w->ties[k], NULL, k - 2 * closures));
done:
    return status;
}
