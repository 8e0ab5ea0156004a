// Scenes of several objects, and of objects with children: groups and copies are expanded into instances of parts, and
// all instances together become one more part, whose mesh is what probes, actions and files see.
#include "libscene/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INSTANCES_MOST = 1000000, ELEMENTS_MOST = 100000000, GROUP_DEPTH = 16, NAME_MOST = 200 };

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

// ---- placements
// ------------------------------------------------------------------------------------------------------

static void make_placement(solver_placement *at, const double translation[3], const double rotation[3], double scale) {
    memcpy(at->p, translation, sizeof at->p);
    mat3_exp(at->Q, rotation);
    at->scale = scale;
}

static fem_status read_places(expansion *x, const raw_object *raw, solver_placement *rows) {
    int row = 0;
    for (const cJSON *item = raw->places->child; item; item = item->next, row++) {
        double       numbers[7];
        const cJSON *number = item->child;
        for (int i = 0; i < 7; i++, number = number->next) numbers[i] = number->valuedouble;
        if (!(numbers[6] > 0)) {
            reader_enter(x->reader, "places");
            reader_enter_index(x->reader, row);
            return reader_fail(x->reader, item, "the scale, its last number, is %g, expected > 0", numbers[6]);
        }
        make_placement(&rows[row], numbers, numbers + 3, numbers[6]);
    }
    return FEM_OK;
}

static void make_repeats(const raw_repeat *raw, solver_placement *rows) {
    solver_placement step;
    make_placement(&step, raw->translation, raw->rotation, raw->scale);
    solver_placement_identity(&rows[0]);
    for (int k = 1; k < raw->count; k++) solver_placement_compose(&rows[k], &rows[k - 1], &step);
}

// The part's x axis along n, turned at random.
static void random_frame(const double n[3], double tilt, uint64_t *state, double Q[9]) {
    double a[3], b[3], out[3], other[3] = {0, 0, 0};
    double around = 2 * M_PI * solver_random(state), angle = tilt * sqrt(solver_random(state)),
           turn = 2 * M_PI * solver_random(state);
    other[fabs(n[0]) < 0.7 ? 0 : 1] = 1;
    vec3_cross(a, n, other);
    vec3_normalize(a);
    vec3_cross(b, n, a);
    for (int i = 0; i < 3; i++) out[i] = cos(angle) * n[i] + sin(angle) * (cos(around) * a[i] + sin(around) * b[i]);
    vec3_cross(a, out, b);
    if (vec3_norm(a) < 0.1) vec3_cross(a, out, other);
    vec3_normalize(a);
    vec3_cross(b, out, a);
    for (int i = 0; i < 3; i++) {
        double y = cos(turn) * a[i] + sin(turn) * b[i], z = cos(turn) * b[i] - sin(turn) * a[i];
        Q[3 * i] = out[i], Q[3 * i + 1] = y, Q[3 * i + 2] = z;
    }
}

static bool inside(const raw_scatter *raw, const double x[3]) {
    bool in = true;
    for (int i = 0; i < 3; i++) {
        if (!isnan(raw->low[i])) in = in && x[i] >= raw->low[i];
        if (!isnan(raw->high[i])) in = in && x[i] <= raw->high[i];
    }
    return in;
}

static fem_status make_scatter(expansion *x, const cJSON *node, const raw_scatter *raw, int parent,
                               solver_placement *rows) {
    fem_status        status = FEM_OK;
    const scene_part *part = &x->s->parts[x->s->forest.instances[parent].part];
    if (part->whole > 0) part = &x->s->parts[part->whole - 1]; // on all of a body that is cut
    const fem_mesh *mesh = &part->mesh;
    int            *triangles = NULL, *element = NULL, count = 0, region = -1;
    double         *sum = NULL, total = 0;
    uint64_t        state = (uint64_t)raw->seed;
    const cJSON    *section = cJSON_GetObjectItemCaseSensitive(node, "scatter");
    size_t          length = reader_enter(x->reader, "scatter");
    if (raw->largest < raw->smallest)
        return reader_fail(x->reader, section, "its largest scale %g is below the smallest, %g", raw->largest,
                           raw->smallest);
    if (raw->region)
        FEM_TRY(scene_find_region(x->reader, cJSON_GetObjectItemCaseSensitive(section, "region"), raw->region, mesh,
                                  &region));
    FEM_TRY(fem_mesh_surface(mesh, &count, &triangles, &element));
    sum = fem_alloc((size_t)count, sizeof *sum);
    if (!sum) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d triangles", count);
        goto done;
    }
    for (size_t t = 0; t < (size_t)count; t++) {
        const double *a = mesh->vertices + 3 * (size_t)triangles[3 * t],
                     *b = mesh->vertices + 3 * (size_t)triangles[3 * t + 1],
                     *c = mesh->vertices + 3 * (size_t)triangles[3 * t + 2];
        double u[3], v[3], n[3], middle[3];
        vec3_sub(u, b, a), vec3_sub(v, c, a);
        vec3_cross(n, u, v);
        for (int i = 0; i < 3; i++) middle[i] = (a[i] + b[i] + c[i]) / 3;
        if ((region < 0 || mesh->region[element[t]] == region) && inside(raw, middle)) total += vec3_norm(n) / 2;
        sum[t] = total;
    }
    if (!(total > 0)) {
        status = reader_fail(x->reader, section, "there is no surface of the part \"%s\" there", part->name);
        goto done;
    }
    for (int k = 0; k < raw->count; k++) {
        double at = total * solver_random(&state), s = sqrt(solver_random(&state)), r = solver_random(&state), n[3];
        int    low = 0, high = count - 1;
        while (low < high) { // the first with sum > at
            int middle = low + (high - low) / 2;
            if (sum[middle] > at)
                high = middle;
            else
                low = middle + 1;
        }
        const double *a = mesh->vertices + 3 * (size_t)triangles[3 * (size_t)low],
                     *b = mesh->vertices + 3 * (size_t)triangles[3 * (size_t)low + 1],
                     *c = mesh->vertices + 3 * (size_t)triangles[3 * (size_t)low + 2];
        double u[3], v[3];
        vec3_sub(u, b, a), vec3_sub(v, c, a);
        vec3_cross(n, u, v);
        vec3_normalize(n);
        for (int i = 0; i < 3; i++)
            rows[k].p[i] = (1 - s) * a[i] + s * (1 - r) * b[i] + s * r * c[i] - raw->depth * n[i];
        random_frame(n, raw->tilt, &state, rows[k].Q);
        rows[k].scale = raw->smallest + (raw->largest - raw->smallest) * solver_random(&state);
    }
    reader_leave(x->reader, length);
done:
    fem_free(triangles), fem_free(element), fem_free(sum);
    return status;
}

// The copies of an object, inside its own placement. Caller frees.
static fem_status make_rows(expansion *x, const cJSON *node, const raw_object *raw, int parent, int *count,
                            solver_placement **rows) {
    fem_status status = FEM_OK;
    int        kinds = (raw->places != NULL) + (raw->repeat.count > 0) + (raw->scatter.count > 0);
    *count = raw->places              ? cJSON_GetArraySize(raw->places)
             : raw->repeat.count > 0  ? raw->repeat.count
             : raw->scatter.count > 0 ? raw->scatter.count
                                      : 1;
    if (kinds > 1) return reader_fail(x->reader, node, "expected only one of \"places\", \"repeat\" and \"scatter\"");
    if (raw->scatter.count > 0 && parent < 0)
        return reader_fail(x->reader, node, "\"scatter\" is for children, which stand on their parent's surface");
    static const char *const own[] = {"translation", "rotation", "scale"};
    for (int i = 0; raw->scatter.count > 0 && i < 3; i++)
        if (cJSON_GetObjectItemCaseSensitive(node, own[i]))
            return reader_fail(x->reader, node, "\"%s\" has no meaning beside \"scatter\"", own[i]);
    if (x->s->forest.count + *count > INSTANCES_MOST)
        return reader_fail(x->reader, node, "makes more than %d instances", INSTANCES_MOST);
    *rows = fem_alloc((size_t)*count, sizeof **rows);
    if (!*rows) return fem_fail(FEM_NO_MEMORY, "no memory for %d copies", *count);
    if (raw->places)
        FEM_TRY(read_places(x, raw, *rows));
    else if (raw->repeat.count > 0)
        make_repeats(&raw->repeat, *rows);
    else if (raw->scatter.count > 0)
        FEM_TRY(make_scatter(x, node, &raw->scatter, parent, *rows));
    else
        solver_placement_identity(*rows);
done:
    return status;
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
    if (needed > INSTANCES_MOST) return reader_fail(x->reader, node, "makes more than %d instances", INSTANCES_MOST);
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
        char             name[NAME_MOST + 32];
        if (parent < 0)
            solver_placement_compose(&there, at, &own);
        else {
            of_parent = piece_placement(&crowd->copies, parent);
            solver_placement_invert(&of_parent, &of_parent);
            solver_placement_compose(&there, &of_parent, &own);
        }
        int written = crowd->uses[class] > 1 ? snprintf(name, sizeof name, "%s/c%d.%d", path, class, copy[class]++)
                                             : snprintf(name, sizeof name, "%s/c%d", path, class);
        if (written >= NAME_MOST) {
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
        char name[NAME_MOST + 32];
        if (snprintf(name, sizeof name, "%s.%d", path, i) >= NAME_MOST)
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
    make_placement(&own, raw.translation, raw.rotation, raw.scale);
    FEM_TRY(make_rows(x, node, &raw, parent, &count, &rows));
    const char *name = raw.name ? raw.name : raw.variant == OBJECT_PART ? raw.part : raw.group;
    for (int k = 0; k < count; k++) {
        solver_placement at;
        char             full[NAME_MOST];
        solver_placement_compose(&at, &own, &rows[k]);
        solver_placement_compose(&at, base, &at);
        const char *slash = path[0] ? "/" : "";
        int         written = count > 1 ? snprintf(full, sizeof full, "%s%s%s.%d", path, slash, name, k)
                                        : snprintf(full, sizeof full, "%s%s%s", path, slash, name);
        if (written >= NAME_MOST) {
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

// ---- all together
// ----------------------------------------------------------------------------------------------------

static fem_status count_all(const scene_reader *reader, const cJSON *node, scene *s, double *vertices, double *elements,
                            int *fixed) {
    scene_forest *f = &s->forest;
    *vertices = *elements = *fixed = 0;
    for (int i = 0; i < f->count; i++) {
        const scene_part *part = &s->parts[f->instances[i].part];
        *vertices += part->mesh.vertex_count;
        *elements += part->mesh.element_count;
        if (*elements > ELEMENTS_MOST || *vertices > ELEMENTS_MOST)
            return reader_fail(reader, node, "the %d instances have more than %d elements together, expected fewer",
                               f->count, ELEMENTS_MOST);
        if (f->instances[i].parent < 0) *fixed += part->fixed.count;
    }
    return FEM_OK;
}

// Regions and materials of all parts, one after the other; a region gets the name of its part.
static fem_status copy_regions(const scene *s, fem_mesh *mesh, int *first) {
    int regions = 0, materials = 0;
    for (int k = 0; k < s->forest.part_count; k++) {
        int whole = s->parts[k].whole; // a domain has those of its whole, which comes before it
        first[k] = whole > 0 ? first[whole - 1] : regions;
        if (whole > 0) continue;
        regions += s->parts[k].mesh.region_count;
        materials += s->parts[k].mesh.material_count;
    }
    for (int i = 0; i < mesh->region_count; i++) fem_free(mesh->regions[i].name);
    fem_free(mesh->regions), fem_free(mesh->materials);
    mesh->region_count = mesh->material_count = 0;
    mesh->regions = fem_calloc((size_t)regions, sizeof *mesh->regions);
    mesh->materials = fem_calloc((size_t)materials, sizeof *mesh->materials);
    if (!mesh->regions || !mesh->materials) return fem_fail(FEM_NO_MEMORY, "no memory for %d regions", regions);
    for (int k = 0; k < s->forest.part_count; k++) {
        const fem_mesh *of = &s->parts[k].mesh;
        if (s->parts[k].whole > 0) continue;
        for (int i = 0; i < of->region_count; i++) {
            char name[200];
            snprintf(name, sizeof name, of->region_count == 1 ? "%s" : "%s.%s", s->parts[k].name, of->regions[i].name);
            fem_region *r = &mesh->regions[mesh->region_count];
            *r =
                (fem_region){.name = fem_copy_string(name), .material = mesh->material_count + of->regions[i].material};
            if (!r->name) return fem_fail(FEM_NO_MEMORY, "no memory for a region");
            mesh->region_count++;
        }
        memcpy(mesh->materials + mesh->material_count, of->materials,
               (size_t)of->material_count * sizeof *of->materials);
        mesh->material_count += of->material_count;
    }
    return FEM_OK;
}

static void copy_instance(const scene *s, const solver_forest *plan, int i, const int *first_region, scene_part *all) {
    const scene_forest     *f = &s->forest;
    const scene_part       *part = &s->parts[f->instances[i].part];
    const solver_placement *at = &plan->world[i];
    size_t                  width = (size_t)fem_element_vertices(part->mesh.type);
    double                 *to = all->mesh.vertices + 3 * (size_t)f->vertex[i];
    for (size_t v = 0; v < (size_t)part->mesh.vertex_count; v++) {
        double turned[3];
        mat3_mul_vec(turned, at->Q, part->mesh.vertices + 3 * v);
        for (size_t k = 0; k < 3; k++) to[3 * v + k] = at->p[k] + at->scale * turned[k];
    }
    for (size_t e = 0; e < (size_t)part->mesh.element_count; e++) {
        size_t into = (size_t)f->element[i] + e;
        all->mesh.region[into] = first_region[f->instances[i].part] + part->mesh.region[e];
        for (size_t k = 0; k < width; k++)
            all->mesh.elements[into * width + k] = f->vertex[i] + part->mesh.elements[e * width + k];
    }
    for (int k = 0; f->instances[i].parent < 0 && k < part->fixed.count; k++)
        all->fixed.items[all->fixed.count++] = f->vertex[i] + part->fixed.items[k];
}

// The last part: all instances as one mesh.
static fem_status compose(scene_reader *reader, const cJSON *node, const solver_forest *plan, scene *s) {
    fem_status    status = FEM_OK;
    scene_forest *f = &s->forest;
    scene_part   *all = &s->parts[s->part_count];
    int          *first_region = NULL, fixed;
    double        vertices, elements;
    FEM_TRY(count_all(reader, node, s, &vertices, &elements, &fixed));
    *all = (scene_part){.quadrature = 2, .scale = 1};
    s->object = s->part_count++;
    all->name = fem_copy_string("all");
    all->fixed.items = fem_alloc((size_t)fixed + 1, sizeof *all->fixed.items);
    f->vertex = fem_alloc((size_t)f->count + 1, sizeof *f->vertex);
    f->element = fem_alloc((size_t)f->count + 1, sizeof *f->element);
    first_region = fem_alloc((size_t)f->part_count, sizeof *first_region);
    if (!all->name || !all->fixed.items || !f->vertex || !f->element || !first_region) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d instances", f->count);
        goto done;
    }
    f->vertex[0] = f->element[0] = 0;
    for (int i = 0; i < f->count; i++) {
        const fem_mesh *mesh = &s->parts[f->instances[i].part].mesh;
        f->vertex[i + 1] = f->vertex[i] + mesh->vertex_count;
        f->element[i + 1] = f->element[i] + mesh->element_count;
    }
    FEM_TRY(fem_mesh_allocate(&all->mesh, s->parts[f->instances[0].part].mesh.type, (int)vertices, (int)elements));
    FEM_TRY(copy_regions(s, &all->mesh, first_region));
    for (int i = 0; i < f->count; i++) copy_instance(s, plan, i, first_region, all);
done:
    fem_free(first_region);
    return status;
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
    char name[NAME_MOST];
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
    FEM_TRY(compose(reader, raw->objects, plan, s));
    reader_leave(reader, length);
done:
    solver_forest_destroy(plan);
    for (int i = 0; i < x.apart_count; i++) domain_crowd_destroy(&x.apart[i].crowd);
    for (int i = 0; i < x.cut_count; i++) scene_cut_destroy(&x.cuts[i]);
    fem_free(x.apart), fem_free(x.cuts);
    fem_free(x.nodes), fem_free(x.centre), fem_free(used);
    return status;
}

// ---- objects that are stitched together
// ----------------------------------------------------------------------------

static fem_status check_member(const scene_reader *reader, const cJSON *node, const scene *s, int i) {
    const solver_forest_instance *g = &s->forest.instances[i];
    const scene_part             *part = &s->parts[g->part], *first = &s->parts[s->forest.instances[0].part];
    const char                   *wrong = NULL;
    bool                          moves = false;
    for (int k = 0; k < 6; k++) moves = moves || s->forest.motion[i][k] != 0;
    if (g->parent >= 0)
        wrong = "hangs on another";
    else if (g->stiffness != 1)
        wrong = "has a stiffness of its own";
    else if (g->damping_mass >= 0 || g->damping_stiffness >= 0)
        wrong = "has a damping of its own";
    else if (moves)
        wrong = "starts with a velocity";
    else if (part->modes.method != first->modes.method || part->forces != first->forces)
        wrong = "has another kind of modes or forces than the first";
    if (!wrong) return FEM_OK;
    return reader_fail(reader, node, "\"%s\" %s, which objects that are stitched together (\"seams\") do not have",
                       g->name, wrong);
}

// Seams of the parts, as often as there are objects of them: "object/seam".
static fem_status copy_seams(const scene *s, scene_part *all) {
    const scene_forest *f = &s->members;
    size_t              count = 0;
    for (int i = 0; i < f->count; i++) count += (size_t)s->parts[f->instances[i].part].seam_count;
    scene_seam *grown = fem_realloc(all->seams, (size_t)all->seam_count + count + 1, sizeof *grown);
    if (!grown) return fem_fail(FEM_NO_MEMORY, "no memory for %zu seams", count);
    all->seams = grown;
    for (int i = 0; i < f->count; i++) {
        const scene_part *part = &s->parts[f->instances[i].part];
        for (int k = 0; k < part->seam_count; k++) {
            const scene_seam *from = &part->seams[k];
            scene_seam       *to = &all->seams[all->seam_count];
            size_t            size = strlen(f->instances[i].name) + strlen(from->name) + 2;
            *to = (scene_seam){.count = from->count, .given = from->given, .name = fem_alloc(size, 1)};
            to->pairs = fem_copy(from->pairs, 2 * (size_t)from->count, sizeof *to->pairs);
            all->seam_count++;
            if (!to->name || !to->pairs) return fem_fail(FEM_NO_MEMORY, "no memory for a seam");
            snprintf(to->name, size, "%s/%s", f->instances[i].name, from->name);
            for (int v = 0; v < 2 * to->count; v++) to->pairs[v] += f->vertex[i];
        }
    }
    return FEM_OK;
}

fem_status scene_join_forest(scene_reader *reader, const raw_scene *raw, scene *s) {
    fem_status        status = FEM_OK;
    scene_part       *all = &s->parts[s->object];
    const scene_part *first = &s->parts[s->forest.instances[0].part];
    size_t            length = reader_enter(reader, "objects");
    for (int i = 0; i < s->forest.count; i++) FEM_TRY(check_member(reader, raw->objects, s, i));
    reader_leave(reader, length);
    all->modes = (scene_modes){.method = first->modes.method, .recipe = first->modes.recipe};
    all->forces = first->forces, all->quadrature = first->quadrature, all->training = first->training;
    all->modes.recipe.linear = all->modes.recipe.count = 0;
    for (int i = 0; i < s->forest.count; i++) {
        const modes_recipe *recipe = &s->parts[s->forest.instances[i].part].modes.recipe;
        all->modes.recipe.linear += recipe->linear, all->modes.recipe.count += recipe->count;
    }
    s->members = s->forest;
    s->forest = (scene_forest){0};
    FEM_TRY(scene_read_seams(reader, raw->seams, all));
    FEM_TRY(scene_match_seams(reader, raw->seams, all));
    FEM_TRY(copy_seams(s, all));
done:
    return status;
}
