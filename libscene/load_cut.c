// An object that is cut into domains beside other objects, or with children: its domains become parts of the scene,
// and instances that hang on each other at the interfaces as any child does, by their shared vertices. Interfaces move
// rigidly then [Barbič and Zhao 2011]; a body that stands alone also follows how they deform (assembly.h).
#include "libscene/internal.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void scene_cut_destroy(scene_cut *cut) {
    domain_tree_destroy(&cut->tree);
    fem_free(cut->own);
    *cut = (scene_cut){0};
}

// Springs and modal warping are of bodies that stand alone.
static fem_status check(const scene_reader *reader, const cJSON *node, const raw_decompose *raw, const scene_cut *cut,
                        const scene_part *part) {
    const char *wrong = NULL;
    bool        warped = false;
    for (int i = 0; i < cut->tree.count; i++) warped = warped || cut->own[i].forces == SOLVER_FORCES_WARPED;
    if (cut->tree.closures.count > 0)
        wrong = "its loops are closed by springs (\"loops\": \"merge\" would do)";
    else if (cut->tree.grounds.count > 0)
        wrong = "its feet stand on springs (\"feet\": \"merge\" would do)";
    else if (!raw->wrenches)
        wrong = "\"wrenches\" is false";
    else if (part->surface.vertex_count > 0)
        wrong = "its part has a \"surface\"";
    else if (warped)
        wrong = "a domain has \"warped\" forces";
    if (!wrong) return FEM_OK;
    return reader_fail(reader, node,
                       "%s, which only an object that stands alone, without children and copies, may have", wrong);
}

// Modes of each domain: as asked for, or its share of the total.
static fem_status share_modes(const scene *s, const scene_cut *cut, const domain_part *pieces, int *modes) {
    fem_status status = FEM_OK;
    size_t     count = (size_t)cut->tree.count;
    int        total = s->tree.assembly.total;
    int       *most = fem_alloc(count, sizeof *most), *elements = fem_alloc(count, sizeof *elements);
    bool      *take = fem_alloc(count, sizeof *take);
    if (!most || !elements || !take) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %zu domains", count);
        goto done;
    }
    for (size_t i = 0; i < count; i++) {
        most[i] = scene_domain_most_modes(&s->parts[cut->part], &pieces[i], (int)i);
        elements[i] = pieces[i].mesh.element_count;
        take[i] = cut->own[i].modes == SOLVER_MODES_SHARED;
        modes[i] = take[i] ? 0 : cut->own[i].modes;
        total -= modes[i];
    }
    solver_share_modes(total > 0 ? total : 0, (int)count, elements, most, take, modes);
done:
    fem_free(most), fem_free(elements), fem_free(take);
    return status;
}

// Vertices of sets belong to the domain nearest to the root, so that none is counted twice.
static void keep_own_vertices(const domain_tree *tree, int domain, const int *vertices, fem_mesh *mesh) {
    for (int k = 0; k < mesh->vertex_set_count; k++) {
        fem_set *set = &mesh->vertex_sets[k];
        int      kept = 0;
        for (int i = 0; i < set->count; i++)
            if (tree->vertex_owner[vertices[set->items[i]]] == domain) set->items[kept++] = set->items[i];
        set->count = kept;
    }
}

// The surface of the whole: triangles, and the element of each.
typedef struct outside {
    int count, *triangles, *element;
} outside;

// What of it is the domain's: wind and contact do not see its cuts.
static fem_status find_skin(const domain_tree *tree, int domain, const domain_part *piece, const outside *o,
                            scene_part *part) {
    for (int t = 0; t < o->count; t++) part->skin_count += tree->element_domain[o->element[t]] == domain;
    part->skin = fem_alloc(3 * (size_t)part->skin_count + 1, sizeof *part->skin);
    if (!part->skin) return fem_fail(FEM_NO_MEMORY, "no memory for %d triangles", part->skin_count);
    int *to = part->skin;
    for (int t = 0; t < o->count; t++)
        for (int k = 0; tree->element_domain[o->element[t]] == domain && k < 3; k++)
            *to++ = domain_part_local(piece, o->triangles[3 * (size_t)t + (size_t)k]);
    return FEM_OK;
}

// Takes over the mesh of the piece, and its interface as the vertices that hold it.
static fem_status make_part(const scene *s, const scene_cut *cut, int domain, domain_part *piece, int modes,
                            const outside *surface, scene_part *part) {
    fem_status                   status = FEM_OK;
    const scene_part            *whole = &s->parts[cut->part];
    const solver_domain_options *own = &cut->own[domain];
    char                         name[96];
    snprintf(name, sizeof name, "%.60s.d%d", whole->name, domain);
    *part = scene_part_like(whole);
    part->whole = cut->part + 1;
    part->modes.recipe.count = modes;
    part->modes.recipe.derivatives = own->derivatives;
    for (int kind = 0; kind <= SCENE_CUBATURE; kind++)
        if (scene_forces_in_tree((scene_forces_kind)kind) == own->forces) part->forces = (scene_forces_kind)kind;
    part->name = fem_copy_string(name);
    part->fixed.items =
        fem_alloc((size_t)(domain == 0 ? whole->fixed.count : piece->interface_count) + 1, sizeof *part->fixed.items);
    if (!part->name || !part->fixed.items) return fem_fail(FEM_NO_MEMORY, "no memory for a domain");
    for (int k = 0; domain == 0 && k < whole->fixed.count; k++) {
        int local = domain_part_local(piece, whole->fixed.items[k]);
        if (local >= 0) part->fixed.items[part->fixed.count++] = local;
    }
    for (int k = 0; domain > 0 && k < piece->interface_count; k++)
        part->fixed.items[part->fixed.count++] = piece->interface[k];
    FEM_TRY(find_skin(&cut->tree, domain, piece, surface, part));
    keep_own_vertices(&cut->tree, domain, piece->vertices, &piece->mesh);
    part->mesh = piece->mesh;
    piece->mesh = (fem_mesh){0};
done:
    return status;
}

fem_status scene_read_cut(scene_reader *reader, const cJSON *object, const raw_decompose *raw, int part, scene *s,
                          scene_cut *cut) {
    fem_status   status = FEM_OK;
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(object, "decompose");
    int          kept = s->object, count = 0, *modes = NULL;
    outside      surface = {0};
    domain_part *pieces = NULL;
    double       damping[3] = {s->solver.damping_mass, s->solver.damping_stiffness, s->tree.damping_ratio};
    *cut = (scene_cut){.part = part, .first = s->part_count};
    s->object = part;
    s->solver.damping_mass = s->solver.damping_stiffness = -1, s->tree.damping_ratio = 0; // not given
    status = scene_read_decompose(reader, object, raw, s); // as of a body that stands alone, and taken from there
    s->solver.damping_mass = damping[0], s->solver.damping_stiffness = damping[1], s->tree.damping_ratio = damping[2];
    cut->tree = s->tree.domains, cut->own = s->tree.own;
    s->tree.domains = (domain_tree){0}, s->tree.own = NULL, s->tree.assembly.domains = NULL;
    s->object = kept;
    if (status != FEM_OK) goto done;
    size_t length = reader_enter(reader, "decompose");
    FEM_TRY(check(reader, node, raw, cut, &s->parts[part]));
    reader_leave(reader, length);
    count = cut->tree.count;
    pieces = fem_calloc((size_t)count, sizeof *pieces);
    modes = fem_calloc((size_t)count, sizeof *modes);
    if (!pieces || !modes) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d domains", count);
        goto done;
    }
    FEM_TRY(scene_grow_parts(s, count));
    const fem_mesh *mesh = &s->parts[part].mesh;
    FEM_TRY(fem_mesh_surface(mesh, &surface.count, &surface.triangles, &surface.element));
    for (int i = 0; i < count; i++) FEM_TRY(domain_part_create(&pieces[i], mesh, &cut->tree, i));
    FEM_TRY(share_modes(s, cut, pieces, modes));
    for (int i = 0; i < count; i++) {
        s->part_count++; // from here on scene_destroy frees what it holds
        FEM_TRY(make_part(s, cut, i, &pieces[i], modes[i], &surface, &s->parts[s->part_count - 1]));
        if (s->parts[s->part_count - 1].skin_count > 0) continue;
        length = reader_enter(reader, "decompose");
        FEM_TRY(reader_fail(reader, node,
                            "domain %d lies inside, with no surface to draw or touch, which only an object that stands "
                            "alone, without children and copies, may have (domains that reach the surface would do)",
                            i));
        reader_leave(reader, length);
    }
done:
    for (int i = 0; pieces && i < count; i++) domain_part_destroy(&pieces[i]);
    fem_free(pieces), fem_free(modes), fem_free(surface.triangles), fem_free(surface.element);
    return status;
}

// The root of an instance in the coordinates of its parent, 3 per vertex, and after those its middle.
static void place_root(const scene *s, const solver_forest_instance *child, double *x) {
    const scene_part *part = &s->parts[child->part];
    size_t            count = (size_t)part->fixed.count;
    double           *middle = x + 3 * count;
    for (size_t k = 0; k < count; k++, x += 3) {
        double turned[3];
        mat3_mul_vec(turned, child->at.Q, part->mesh.vertices + 3 * (size_t)part->fixed.items[k]);
        for (int i = 0; i < 3; i++) x[i] = child->at.p[i] + child->at.scale * turned[i];
        vec3_axpy(middle, 1.0 / (double)count, x);
    }
}

// On the domain at the middle of its root. The rest of the root may reach over a cut, and follows that domain too.
fem_status scene_cut_hang(scene *s, const scene_cut *cut, int root, int first) {
    fem_status              status = FEM_OK;
    const fem_mesh         *mesh = &s->parts[cut->part].mesh;
    solver_forest_instance *instances = s->forest.instances;
    fem_embedding           at = {0};
    size_t                  points = 0, next = 0;
    double                 *x = NULL;
    for (int i = first; i < s->forest.count; i++)
        if (instances[i].parent == root) points += (size_t)s->parts[instances[i].part].fixed.count + 1;
    if (points > INT_MAX) return fem_fail(FEM_BAD_INPUT, "its children have %zu root vertices together", points);
    x = fem_calloc(points, 3 * sizeof *x);
    if (!x) return fem_fail(FEM_NO_MEMORY, "no memory for roots of %zu vertices", points);
    for (int i = first; i < s->forest.count; i++) {
        if (instances[i].parent != root) continue;
        place_root(s, &instances[i], x + 3 * next);
        next += (size_t)s->parts[instances[i].part].fixed.count + 1;
    }
    FEM_TRY(fem_embed_points(&at, mesh, (int)points, x));
    next = 0;
    for (int i = first; i < s->forest.count; i++) {
        solver_forest_instance *child = &instances[i];
        if (child->parent != root) continue;
        const scene_part *part = &s->parts[child->part];
        size_t            middle = next + (size_t)part->fixed.count;
        double            farthest = 0, width = 0;
        double            reach = child->reach > 0 ? child->reach : solver_default_reach(&part->mesh, child->at.scale);
        for (; next < middle; next++) {
            farthest = fmax(farthest, fem_embedding_distance(&at, mesh, (int)next, x + 3 * next));
            width = fmax(width, vec3_distance(x + 3 * next, x + 3 * middle));
        }
        if (farthest <= reach) child->reach = reach + width;
        child->parent = root + cut->tree.element_domain[at.element[middle]];
        next++;
    }
done:
    fem_free(x);
    fem_embedding_destroy(&at);
    return status;
}
