// Scenes of several objects, and of objects with children: groups and copies are expanded into instances of parts, and
// all instances together become one more part, whose mesh is what probes, actions and files see.
#include "libscene/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP_DEPTH = 16 };

// An object whose part was taken apart: its classes are parts from `first` on.
typedef struct taken_apart {
    const cJSON *node;
    int          first;
    domain_crowd crowd;
} taken_apart;

typedef struct expansion {
    scene_reader    *reader;
    const raw_scene *raw;
    scene           *s;
    size_t           room, motion_room, node_room;
    const cJSON    **nodes; // per instance: its object
    const char      *stack[GROUP_DEPTH];
    int              depth;
    double (*centre)[3]; // per part
    int          apart_count;
    taken_apart *apart;
    int          cut_count;
    size_t       cut_room;
    scene_cut   *cuts;
} expansion;

void scene_forest_destroy(scene_forest *forest) {
    for (int i = 0; i < forest->count; i++) fem_free((char *)(size_t)forest->instances[i].name);
    fem_free(forest->instances), fem_free(forest->motion), fem_free(forest->vertex), fem_free(forest->element);
    fem_free(forest->parts);
    scene_stitched_destroy(forest);
    *forest = (scene_forest){0};
}

// "leaf", "leaf.3", "branch.2/leaf.3" and "oak/branch.2/leaf.3" all mean oak/branch.2/leaf.3; "mast", "mast.1" and
// "mast.1.0" all mean mast.1.0, the first domain of a copy.
bool scene_instance_is(const scene_forest *forest, int instance, const char *name) {
    const char *path = forest->instances[instance].name;
    size_t      length = strlen(path), wanted = strlen(name);
    for (int i = 0; i < 3; i++) {
        size_t number = 0;
        while (number < length && path[length - 1 - number] >= '0' && path[length - 1 - number] <= '9') number++;
        if (wanted <= length && strncmp(path + length - wanted, name, wanted) == 0 &&
            (wanted == length || path[length - wanted - 1] == '/'))
            return true;
        if (number == 0 || number == length || path[length - 1 - number] != '.') return false;
        length -= number + 1; // without the number of the copy
    }
    return false;
}

const scene_forest *scene_members(const scene *s) { return s->members.count > 0 ? &s->members : &s->forest; }

fem_status scene_check_instance(const scene_reader *reader, const cJSON *node, const scene *s, const char *name) {
    scene_suggestion    suggestion;
    const scene_forest *members = scene_members(s);
    for (int i = 0; i < members->count; i++)
        if (scene_instance_is(members, i, name)) return FEM_OK;
    suggestion_start(&suggestion, name);
    for (int i = 0; i < members->count && i < 1000; i++) {
        const char *slash = strrchr(members->instances[i].name, '/');
        suggestion_offer(&suggestion, slash ? slash + 1 : members->instances[i].name);
    }
    return reader_fail(reader, node, "there is no instance \"%.60s\"%s", name, suggestion_text(&suggestion));
}

// ---- which scenes are meant
// ------------------------------------------------------------------------------------------

bool scene_is_forest(const raw_scene *raw) {
    static const char *const keys[] = {"group",     "scale",   "places",   "repeat", "scatter",   "stiffness",
                                       "frequency", "damping", "children", "reach",  "components"};
    const cJSON             *object = raw->objects->child;
    if (object->next) return true;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (cJSON_GetObjectItemCaseSensitive(object, keys[i])) return true;
    // a held reduced body that is placed
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(object, "part");
    const cJSON *part = cJSON_IsString(name) ? cJSON_GetObjectItemCaseSensitive(raw->parts, name->valuestring) : NULL;
    return raw->solver.method == SCENE_REDUCED && part && cJSON_GetObjectItemCaseSensitive(part, "fixed") &&
           !cJSON_GetObjectItemCaseSensitive(object, "decompose") &&
           (cJSON_GetObjectItemCaseSensitive(object, "translation") ||
            cJSON_GetObjectItemCaseSensitive(object, "rotation"));
}

// ---- instances
// -------------------------------------------------------------------------------------------------------

static fem_status add_instance(expansion *x, const cJSON *node, const raw_object *raw, const char *name, int part,
                               int parent, const solver_placement *at) {
    fem_status    status = FEM_OK;
    scene_forest *f = &x->s->forest;
    bool          exact = x->s->parts[part].fixed.count > 0 || x->s->parts[part].whole > 0 ||
                 cJSON_GetObjectItemCaseSensitive(node, "components");
    size_t needed = (size_t)f->count + 1;
    char  *copy = NULL;
    if (needed > SCENE_INSTANCES_MOST)
        return reader_fail(x->reader, node, "makes more than %d instances", SCENE_INSTANCES_MOST);
    FEM_TRY(fem_grow((void **)&f->instances, &x->room, needed, sizeof *f->instances));
    FEM_TRY(fem_grow((void **)&f->motion, &x->motion_room, needed, sizeof *f->motion));
    FEM_TRY(fem_grow((void **)&x->nodes, &x->node_room, needed, sizeof *x->nodes));
    copy = fem_copy_string(name);
    if (!copy) return fem_fail(FEM_NO_MEMORY, "no memory for an instance");
    solver_forest_instance *i = &f->instances[f->count];
    *i = (solver_forest_instance){.name = copy,
                                  .part = part,
                                  .parent = parent,
                                  .at = *at,
                                  .stiffness = 1,
                                  .damping_mass = raw->damping.mass,
                                  .damping_stiffness = raw->damping.stiffness,
                                  .reach = raw->reach};
    if (!isnan(raw->stiffness)) i->stiffness = raw->stiffness;
    if (!isnan(raw->frequency)) i->stiffness = raw->frequency * raw->frequency;
    memcpy(f->motion[f->count], raw->velocity, 3 * sizeof(double));
    memcpy(f->motion[f->count] + 3, raw->spin, 3 * sizeof(double));
    if (!exact) { // a free body turns about its centre
        double turned[3];
        mat3_mul_vec(turned, at->Q, x->centre[part]);
        for (int k = 0; k < 3; k++) i->at.p[k] += x->centre[part][k] - at->scale * turned[k];
    }
    x->nodes[f->count++] = node;
done:
    return status;
}

static fem_status expand(expansion *x, const cJSON *list, int parent, const solver_placement *base, const char *path);

static solver_placement piece_placement(const domain_copies *copies, int piece) {
    solver_placement at = {.scale = copies->scale[piece]};
    memcpy(at.p, copies->p[piece], sizeof at.p);
    memcpy(at.Q, copies->Q[piece], sizeof at.Q);
    return at;
}

// An instance for each piece, those that it hangs on first: "NAME/c1.7" is the eighth copy of class 1.
static fem_status expand_components(expansion *x, const cJSON *node, const raw_object *raw, const solver_placement *at,
                                    const char *path) {
    fem_status         status = FEM_OK;
    const taken_apart *of = x->apart;
    while (of->node != node) of++;
    const domain_crowd *crowd = &of->crowd;
    int                *instance = fem_alloc((size_t)crowd->copies.count, sizeof *instance);
    int                *copy = fem_calloc((size_t)crowd->class_count, sizeof *copy);
    if (!instance || !copy) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d pieces", crowd->copies.count);
        goto done;
    }
    for (int k = 0; k < crowd->copies.count; k++) {
        int              piece = crowd->order[k], class = crowd->class_of[piece], parent = crowd->parent[piece];
        solver_placement own = piece_placement(&crowd->copies, piece), of_parent, there;
        char             name[SCENE_NAME_MOST + 32];
        if (parent < 0)
            solver_placement_compose(&there, at, &own);
        else {
            of_parent = piece_placement(&crowd->copies, parent);
            solver_placement_invert(&of_parent, &of_parent);
            solver_placement_compose(&there, &of_parent, &own);
        }
        int written = crowd->uses[class] > 1 ? snprintf(name, sizeof name, "%s/c%d.%d", path, class, copy[class]++)
                                             : snprintf(name, sizeof name, "%s/c%d", path, class);
        if (written >= SCENE_NAME_MOST) {
            status = reader_fail(x->reader, node, "the name \"%.60s...\" with those above it is too long", name);
            goto done;
        }
        instance[piece] = x->s->forest.count;
        FEM_TRY(add_instance(x, node, raw, name, of->first + class, parent < 0 ? -1 : instance[parent], &there));
    }
done:
    fem_free(instance), fem_free(copy);
    return status;
}

// An instance for each domain, "NAME.0" the root. What hangs on the object hangs on the domain that is nearest.
static fem_status expand_cut(expansion *x, const cJSON *node, const raw_object *raw, const solver_placement *at,
                             int parent, const char *path) {
    fem_status       status = FEM_OK;
    scene_forest    *f = &x->s->forest;
    const scene_cut *cut = x->cuts;
    solver_placement identity, there = *at;
    int              root = f->count;
    while (cut->node != node) cut++;
    solver_placement_identity(&identity);
    double arm[3], turned[3], *whole = x->centre[cut->part];
    bool   free_body = x->s->parts[cut->part].fixed.count == 0;
    mat3_mul_vec(turned, at->Q, whole);
    for (int k = 0; free_body && k < 3; k++) there.p[k] += whole[k] - at->scale * turned[k]; // turns about its centre
    for (int i = 0; i < cut->tree.count; i++) {
        char name[SCENE_NAME_MOST + 32];
        if (snprintf(name, sizeof name, "%s.%d", path, i) >= SCENE_NAME_MOST)
            return reader_fail(x->reader, node, "the name \"%.60s...\" with those above it is too long", name);
        FEM_TRY(add_instance(x, node, raw, name, cut->first + i, i == 0 ? parent : root + cut->tree.parent[i],
                             i == 0 ? &there : &identity));
        solver_forest_instance      *n = &f->instances[root + i];
        const solver_domain_options *own = &cut->own[i];
        n->stiffness *= own->stiffness;
        if (own->damping_mass >= 0) n->damping_mass = own->damping_mass;
        if (own->damping_stiffness >= 0) n->damping_stiffness = own->damping_stiffness;
        if (i > 0)
            n->reach = 0;
        else if (n->reach == 0) // as of the whole
            n->reach = solver_default_reach(&x->s->parts[cut->part].mesh, at->scale);
        if (i > 0) memset(f->motion[root + i], 0, sizeof f->motion[root + i]);
    }
    // the velocity that is given is that of the centre of the whole
    vec3_sub(arm, x->centre[cut->first], whole);
    mat3_mul_vec(turned, at->Q, arm);
    vec3_cross(arm, f->motion[root] + 3, turned);
    vec3_axpy(f->motion[root], at->scale, arm);
    if (!raw->children) goto done;
    size_t length = reader_enter(x->reader, "children");
    int    first = f->count;
    FEM_TRY(expand(x, raw->children, root, &identity, path));
    FEM_TRY(reader_prefix(x->reader, node, scene_cut_hang(x->s, cut, root, first)));
    reader_leave(x->reader, length);
done:
    return status;
}

static fem_status expand_group(expansion *x, const cJSON *node, const raw_object *raw, int parent,
                               const solver_placement *at, const char *path) {
    fem_status   status = FEM_OK;
    raw_group    group = {0};
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(x->raw->groups, raw->group);
    const cJSON *key = cJSON_GetObjectItemCaseSensitive(node, "group");
    char         kept[sizeof x->reader->path];
    if (!found) {
        scene_suggestion suggestion;
        suggestion_start(&suggestion, raw->group);
        for (const cJSON *g = x->raw->groups ? x->raw->groups->child : NULL; g; g = g->next)
            suggestion_offer(&suggestion, g->string);
        reader_enter(x->reader, "group");
        return reader_fail(x->reader, key, "unknown group \"%.60s\"%s", raw->group, suggestion_text(&suggestion));
    }
    for (int i = 0; i < x->depth; i++)
        if (strcmp(x->stack[i], found->string) == 0) {
            reader_enter(x->reader, "group");
            return reader_fail(x->reader, key, "the group \"%.60s\" contains itself", raw->group);
        }
    if (x->depth == GROUP_DEPTH) return reader_fail(x->reader, key, "groups in groups go %d deep at most", GROUP_DEPTH);
    x->stack[x->depth++] = found->string;
    memcpy(kept, x->reader->path, sizeof kept);
    reader_leave(x->reader, 0);
    reader_enter(x->reader, "groups");
    reader_enter(x->reader, found->string);
    FEM_TRY(reader_table(x->reader, found, &scene_group_table, &group));
    reader_enter(x->reader, "objects");
    FEM_TRY(expand(x, group.objects, parent, at, path));
    memcpy(x->reader->path, kept, sizeof kept);
    x->depth--;
done:
    return status;
}

static fem_status check_object(expansion *x, const cJSON *node, const raw_object *raw, int parent, int part) {
    static const char *const names[] = {"velocity", "spin"};
    bool                     free_root = parent < 0 && part >= 0 && x->s->parts[part].fixed.count == 0;
    if (cJSON_GetObjectItemCaseSensitive(node, "components")) {
        if (cJSON_GetObjectItemCaseSensitive(node, "decompose"))
            return reader_fail(x->reader, node, "expected only one of \"components\" and \"decompose\"");
        static const char *const others[] = {"children", "reach", "scatter"};
        if (parent >= 0 || x->depth > 0)
            return reader_fail(x->reader, node,
                               "\"components\" is for entries of \"objects\", not for children and members of groups");
        for (int i = 0; i < 3; i++)
            if (cJSON_GetObjectItemCaseSensitive(node, others[i]))
                return reader_fail(x->reader, node, "\"%s\" has no meaning beside \"components\": its pieces say it",
                                   others[i]);
    }
    if (!isnan(raw->stiffness) && !isnan(raw->frequency))
        return reader_fail(x->reader, node,
                           "has \"stiffness\" and \"frequency\", which are the same thing, expected one");
    if (raw->name) {
        size_t     length = reader_enter(x->reader, "name");
        fem_status status = reader_check_name(x->reader, cJSON_GetObjectItemCaseSensitive(node, "name"), raw->name);
        if (status != FEM_OK) return status;
        reader_leave(x->reader, length);
    }
    for (int i = 0; i < 2; i++)
        if (!free_root && cJSON_GetObjectItemCaseSensitive(node, names[i]))
            return reader_fail(x->reader, node, "\"%s\" has no meaning: only a body without supports starts with one",
                               names[i]);
    if (parent >= 0 && part >= 0 && x->s->parts[part].fixed.count == 0)
        return reader_fail(x->reader, node,
                           "hangs on another object, but its part \"%s\" has no \"fixed\" vertices, which would be its "
                           "root",
                           x->s->parts[part].name);
    return FEM_OK;
}

static fem_status expand_object(expansion *x, const cJSON *node, int parent, const solver_placement *base,
                                const char *path) {
    fem_status        status = FEM_OK;
    raw_object        raw = {0};
    int               count = 0, part = -1;
    solver_placement *rows = NULL, own;
    FEM_TRY(reader_table(x->reader, node, &scene_object_table, &raw));
    if (raw.variant == OBJECT_PART) FEM_TRY(scene_find_part(x->reader, node, raw.part, x->s, &part));
    FEM_TRY(check_object(x, node, &raw, parent, part));
    scene_make_placement(&own, raw.translation, raw.rotation, raw.scale);
    FEM_TRY(scene_make_copies(x->reader, x->s, node, &raw, parent, &count, &rows));
    const char *name = raw.name ? raw.name : raw.variant == OBJECT_PART ? raw.part : raw.group;
    for (int k = 0; k < count; k++) {
        solver_placement at;
        char             full[SCENE_NAME_MOST];
        solver_placement_compose(&at, &own, &rows[k]);
        solver_placement_compose(&at, base, &at);
        const char *slash = path[0] ? "/" : "";
        int         written = count > 1 ? snprintf(full, sizeof full, "%s%s%s.%d", path, slash, name, k)
                                        : snprintf(full, sizeof full, "%s%s%s", path, slash, name);
        if (written >= SCENE_NAME_MOST) {
            status = reader_fail(x->reader, node, "the name \"%.60s...\" with those above it is too long", full);
            goto done;
        }
        if (raw.variant == OBJECT_GROUP) {
            FEM_TRY(expand_group(x, node, &raw, parent, &at, full));
            continue;
        }
        if (cJSON_GetObjectItemCaseSensitive(node, "components")) {
            FEM_TRY(expand_components(x, node, &raw, &at, full));
            continue;
        }
        if (cJSON_GetObjectItemCaseSensitive(node, "decompose")) {
            FEM_TRY(expand_cut(x, node, &raw, &at, parent, full));
            continue;
        }
        FEM_TRY(add_instance(x, node, &raw, full, part, parent, &at));
        if (!raw.children) continue;
        solver_placement identity;
        size_t           length = reader_enter(x->reader, "children");
        solver_placement_identity(&identity);
        FEM_TRY(expand(x, raw.children, x->s->forest.count - 1, &identity, full));
        reader_leave(x->reader, length);
    }
done:
    fem_free(rows);
    return status;
}

static fem_status expand(expansion *x, const cJSON *list, int parent, const solver_placement *base, const char *path) {
    fem_status status = FEM_OK;
    int        index = 0;
    for (const cJSON *item = list->child; item; item = item->next) {
        size_t length = reader_enter_index(x->reader, index++);
        FEM_TRY(expand_object(x, item, parent, base, path));
        reader_leave(x->reader, length);
    }
done:
    return status;
}

// ---- the parts
// -------------------------------------------------------------------------------------------------------

static fem_status check_part(scene_reader *reader, const scene *s, const cJSON *node, const scene_part *part) {
    size_t length = reader_enter(reader, "parts");
    reader_enter(reader, part->name);
    if (part->modes.method == SCENE_MODES_SKETCH || part->modes.method == SCENE_MODES_FILE)
        return reader_fail(reader, node, "its modes are a %s, but the bases of instances are \"krylov\" or \"lanczos\"",
                           part->modes.method == SCENE_MODES_FILE ? "file" : "sketch");
    // of a domain its cut has looked at its own elements
    for (int i = 0; part->whole == 0 && part->forces == SCENE_POLYNOMIAL && i < part->mesh.region_count; i++) {
        fem_material_kind kind = part->mesh.materials[part->mesh.regions[i].material].kind;
        if (kind != FEM_STVK && kind != FEM_ORTHOTROPIC)
            return reader_fail(reader, node,
                               "the material of the region \"%.60s\" is %s, which has no polynomial; stvk and "
                               "orthotropic have, and forces \"cubature\", \"full\" or \"linear\" take any material",
                               part->mesh.regions[i].name, fem_material_kind_name(kind));
    }
    if (part->poses)
        return reader_fail(reader, node,
                           "its training poses are given, but those of instances are made; \"sampling\": \"loads\" or "
                           "\"gaussian\" would do");
    int most = solver_class_most_modes(part->mesh.vertex_count, part->fixed.count);
    if (part->modes.recipe.count > most)
        return reader_fail(reader, node, "%d modes were asked for, but it has at most %d", part->modes.recipe.count,
                           most);
    if (part->mesh.type != s->parts[s->forest.instances[0].part].mesh.type)
        return reader_fail(reader, node,
                           "is of %s, the part \"%s\" is not: all parts of a scene with several objects "
                           "have one kind of elements",
                           part->mesh.type == FEM_T4 ? "tetrahedra" : "hexahedra",
                           s->parts[s->forest.instances[0].part].name);
    reader_leave(reader, length);
    return FEM_OK;
}

static solver_part make_part(const scene *s, const scene_part *part) {
    solver_part p = {.name = part->name,
                     .mesh = &part->mesh,
                     .fixed_count = part->fixed.count,
                     .fixed = part->fixed.items,
                     .options = solver_class_default_options(),
                     .damping_mass = s->solver.damping_mass,
                     .damping_stiffness = s->solver.damping_stiffness};
    p.options.recipe = part->modes.recipe;
    p.options.recipe.keep = true;
    if (!part->modes.linear) p.options.recipe.linear = 0; // by what hangs on it
    p.options.modes = part->modes.recipe.count;
    p.options.forces = scene_forces_in_tree(part->forces);
    p.options.training = part->training;
    p.options.quadrature = part->quadrature;
    p.options.mass = s->solver.mass;
    return p;
}

// ---- two at one place
// ------------------------------------------------------------------------------------------------

typedef struct place_of {
    double x[3];
    int    part, instance;
} place_of;

static int compare_places(const void *first, const void *second) {
    const place_of *a = first, *b = second;
    if (a->part != b->part) return a->part < b->part ? -1 : 1;
    for (int i = 0; i < 3; i++)
        if (a->x[i] != b->x[i]) return a->x[i] < b->x[i] ? -1 : 1;
    return (a->instance > b->instance) - (a->instance < b->instance);
}

// Where an instance is: its middle, and for those with the same middle all of the placement counts. Domains stand for
// their whole, once.
static fem_status check_overlaps(expansion *x, const solver_forest *plan) {
    fem_status status = FEM_OK;
    int        count = 0;
    place_of  *places = fem_alloc((size_t)plan->count, sizeof *places);
    if (!places) return fem_fail(FEM_NO_MEMORY, "no memory for %d instances", plan->count);
    for (int i = 0; i < plan->count; i++) {
        const solver_placement *at = &plan->world[i];
        int    part = plan->given[i].part, whole = x->s->parts[part].whole, parent = plan->given[i].parent;
        double turned[3];
        if (whole > 0 && parent >= 0 && x->nodes[parent] == x->nodes[i]) continue;
        if (whole > 0) part = whole - 1;
        mat3_mul_vec(turned, at->Q, x->centre[part]);
        places[count] = (place_of){.part = part, .instance = i};
        for (int k = 0; k < 3; k++) // rounding errors are not distances
            places[count].x[k] = (double)(float)(at->p[k] + at->scale * turned[k]);
        count++;
    }
    qsort(places, (size_t)count, sizeof *places, compare_places);
    for (int i = 1; i < count && status == FEM_OK; i++) {
        const place_of *a = &places[i - 1], *b = &places[i];
        bool            same = a->part == b->part && memcmp(a->x, b->x, sizeof a->x) == 0;
        for (int k = 0; same && k < 9; k++)
            same = fabs(plan->world[a->instance].Q[k] - plan->world[b->instance].Q[k]) < 1e-6;
        same = same && fabs(plan->world[a->instance].scale / plan->world[b->instance].scale - 1) < 1e-6;
        if (same)
            status = reader_fail(x->reader, x->nodes[b->instance], "\"%s\" and \"%s\" are at the same place",
                                 plan->given[a->instance].name, plan->given[b->instance].name);
    }
    fem_free(places);
    return status;
}

// Where a part is in the file; a class of components or a domain, where its part is.
static const cJSON *part_node(const raw_scene *raw, const scene *s, int part) {
    char name[SCENE_NAME_MOST];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(s->parts[part].name, "."), s->parts[part].name);
    return cJSON_GetObjectItemCaseSensitive(raw->parts, name);
}

// Takes apart what is to be, before anything is placed: parts are added to the scene.
static fem_status take_apart(expansion *x, const cJSON *objects) {
    fem_status status = FEM_OK;
    int        count = 0, index = 0;
    for (const cJSON *node = objects->child; node; node = node->next)
        count += cJSON_GetObjectItemCaseSensitive(node, "components") != NULL;
    x->apart = fem_calloc((size_t)count, sizeof *x->apart);
    if (!x->apart) return fem_fail(FEM_NO_MEMORY, "no memory for %d objects", count);
    for (const cJSON *node = objects->child; node; node = node->next, index++) {
        raw_object raw = {0};
        int        part = -1;
        if (!cJSON_GetObjectItemCaseSensitive(node, "components")) continue;
        size_t length = reader_enter_index(x->reader, index);
        FEM_TRY(reader_table(x->reader, node, &scene_object_table, &raw));
        FEM_TRY(scene_find_part(x->reader, node, raw.part, x->s, &part));
        taken_apart *made = &x->apart[x->apart_count++];
        *made = (taken_apart){.node = node, .first = x->s->part_count};
        FEM_TRY(scene_read_components(x->reader, node, &raw.components, part, x->s, &made->crowd));
        reader_leave(x->reader, length);
    }
done:
    return status;
}

// Cuts what is to be, in objects, their children and groups, before anything is placed.
static fem_status cut_objects(expansion *x, const cJSON *list) {
    fem_status status = FEM_OK;
    int        index = 0;
    for (const cJSON *node = cJSON_IsArray(list) ? list->child : NULL; node; node = node->next, index++) {
        raw_object   raw = {0};
        int          part = -1;
        size_t       length = reader_enter_index(x->reader, index), inner;
        const cJSON *children = cJSON_GetObjectItemCaseSensitive(node, "children");
        if (cJSON_GetObjectItemCaseSensitive(node, "decompose")) {
            FEM_TRY(reader_table(x->reader, node, &scene_object_table, &raw));
            FEM_TRY(scene_find_part(x->reader, node, raw.part, x->s, &part));
            FEM_TRY(fem_grow((void **)&x->cuts, &x->cut_room, (size_t)x->cut_count + 1, sizeof *x->cuts));
            scene_cut *cut = &x->cuts[x->cut_count++];
            status = scene_read_cut(x->reader, node, &raw.decompose, part, x->s, cut);
            cut->node = node;
            if (status != FEM_OK) goto done;
        }
        inner = reader_enter(x->reader, "children");
        FEM_TRY(cut_objects(x, children));
        reader_leave(x->reader, inner);
        reader_leave(x->reader, length);
    }
done:
    return status;
}

static fem_status cut_all(expansion *x) {
    fem_status   status = FEM_OK;
    const cJSON *groups = x->raw->groups;
    char         kept[sizeof x->reader->path];
    FEM_TRY(cut_objects(x, x->raw->objects));
    memcpy(kept, x->reader->path, sizeof kept);
    for (const cJSON *group = groups ? groups->child : NULL; group; group = group->next) {
        reader_leave(x->reader, 0);
        reader_enter(x->reader, "groups");
        reader_enter(x->reader, group->string);
        reader_enter(x->reader, "objects");
        FEM_TRY(cut_objects(x, cJSON_GetObjectItemCaseSensitive(group, "objects")));
    }
    memcpy(x->reader->path, kept, sizeof kept);
done:
    return status;
}

fem_status scene_read_forest(scene_reader *reader, const raw_scene *raw, scene *s) {
    fem_status       status = FEM_OK;
    scene_forest    *f = &s->forest;
    expansion        x = {.reader = reader, .raw = raw, .s = s};
    solver_forest   *plan = NULL;
    solver_placement identity;
    int              offender;
    bool            *used = NULL;
    size_t           length = reader_enter(reader, "objects");
    if (s->method != SCENE_REDUCED)
        return reader_fail(reader, raw->objects,
                           "several objects, children, copies and scales are for reduced bodies, expected \"solver\": "
                           "{\"method\": \"reduced\"}");
    FEM_TRY(take_apart(&x, raw->objects));
    FEM_TRY(cut_all(&x));
    f->part_count = s->part_count;
    f->parts = fem_calloc((size_t)f->part_count, sizeof *f->parts);
    x.centre = fem_calloc((size_t)f->part_count, sizeof *x.centre);
    if (!f->parts || !x.centre) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d parts", f->part_count);
        goto done;
    }
    for (int k = 0; k < f->part_count; k++) solver_mesh_mass(&s->parts[k].mesh, x.centre[k]);
    solver_placement_identity(&identity);
    FEM_TRY(expand(&x, raw->objects, -1, &identity, ""));
    for (int k = 0; k < f->part_count; k++) f->parts[k] = make_part(s, &s->parts[k]);
    reader_leave(reader, length);
    used = fem_calloc((size_t)f->part_count, sizeof *used);
    if (!used) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d parts", f->part_count);
        goto done;
    }
    for (int i = 0; i < f->count; i++) used[f->instances[i].part] = true;
    for (int k = 0; k < f->part_count; k++)
        if (used[k]) FEM_TRY(check_part(reader, s, part_node(raw, s, k), &s->parts[k]));
    reader_enter(reader, "objects");
    status = solver_forest_create(&plan, f->part_count, f->parts, f->count, f->instances, &offender);
    if (status == FEM_BAD_INPUT) reader_prefix(reader, offender >= 0 ? x.nodes[offender] : raw->objects, status);
    if (status != FEM_OK) goto done;
    FEM_TRY(check_overlaps(&x, plan));
    FEM_TRY(scene_compose_forest(reader, raw->objects, plan, s));
    reader_leave(reader, length);
done:
    solver_forest_destroy(plan);
    for (int i = 0; i < x.apart_count; i++) domain_crowd_destroy(&x.apart[i].crowd);
    for (int i = 0; i < x.cut_count; i++) scene_cut_destroy(&x.cuts[i]);
    fem_free(x.apart), fem_free(x.cuts);
    fem_free(x.nodes), fem_free(x.centre), fem_free(used);
    return status;
}
