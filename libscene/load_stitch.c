// Seams of parts, and the actions that stitch, unstitch and cut them. What each action does to the body as it is then
// is worked out when the scene is read, so that nothing of it can be refused in the middle of a run.
#include "libscene/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Springs this much stiffer than the material hold as if grown together.
static const double GROWN = 1000;

void scene_seams_destroy(scene_part *part) {
    for (int i = 0; i < part->seam_count; i++) fem_free(part->seams[i].name), fem_free(part->seams[i].pairs);
    fem_free(part->seams);
    part->seams = NULL, part->seam_count = 0;
}

// ---- seams -------------------------------------------------------------------------------------------------------

static fem_status read_plane(scene_reader *reader, const cJSON *node, const raw_seam *raw, fem_mesh *mesh,
                             scene_seam *seam) {
    fem_status     status = FEM_OK;
    scene_vertices within = {0};
    unsigned char *marked = NULL;
    if (!(vec3_norm(raw->plane.normal) > 0)) {
        reader_enter(reader, "normal");
        return reader_fail(reader, cJSON_GetObjectItemCaseSensitive(node, "normal"), "has no direction");
    }
    if (raw->plane.within) {
        size_t length = reader_enter(reader, "within");
        FEM_TRY(scene_select(reader, raw->plane.within, mesh, &within));
        reader_leave(reader, length);
        marked = fem_calloc((size_t)mesh->vertex_count, 1);
        if (!marked) {
            status = fem_fail(FEM_NO_MEMORY, "no memory for a selection");
            goto done;
        }
        for (int i = 0; i < within.count; i++) marked[within.items[i]] = 1;
    }
    FEM_TRY(reader_prefix(
        reader, node,
        fem_mesh_cut_plane(mesh, raw->plane.point, raw->plane.normal, marked, &seam->count, &seam->pairs)));
done:
    fem_free(within.items);
    fem_free(marked);
    return status;
}

static fem_status read_between(scene_reader *reader, const cJSON *node, const raw_seam *raw, fem_mesh *mesh,
                               scene_seam *seam) {
    fem_status  status = FEM_OK;
    const char *names[2] = {raw->between.a, raw->between.b}, *keys[2] = {"a", "b"};
    int         region[2], count = 0, *elements = NULL, *faces = NULL, kept = 0;
    for (int k = 0; k < 2; k++) {
        size_t length = reader_enter(reader, keys[k]);
        FEM_TRY(scene_find_region(reader, cJSON_GetObjectItemCaseSensitive(node, keys[k]), names[k], mesh, &region[k]));
        reader_leave(reader, length);
    }
    FEM_TRY(fem_mesh_inner_faces(mesh, &count, &elements, &faces));
    size_t width = mesh->type == FEM_T4 ? 3 : 4;
    for (int f = 0; f < count; f++) {
        int a = mesh->region[elements[2 * (size_t)f]], b = mesh->region[elements[2 * (size_t)f + 1]];
        if (a == b || (a != region[0] && a != region[1]) || (b != region[0] && b != region[1])) continue;
        memmove(faces + (size_t)kept++ * width, faces + (size_t)f * width, width * sizeof *faces);
    }
    if (kept == 0)
        status =
            reader_fail(reader, node, "the regions \"%.60s\" and \"%.60s\" have no face in common", names[0], names[1]);
    else
        status = reader_prefix(reader, node, fem_mesh_cut(mesh, kept, faces, &seam->count, &seam->pairs));
done:
    fem_free(elements);
    fem_free(faces);
    return status;
}

// A list of vertex numbers as the mesh file counts them, `width` to an item. Caller frees.
static fem_status read_numbers(scene_reader *reader, const cJSON *node, const fem_mesh *mesh, int width, int *count,
                               int **numbers) {
    int given = cJSON_GetArraySize(node), i = 0;
    if (given % width != 0)
        return reader_fail(reader, node, "has %d vertices, expected %d for each %s", given, width,
                           width == 2 ? "pair" : "face");
    int *items = fem_alloc((size_t)given, sizeof *items);
    if (!items) return fem_fail(FEM_NO_MEMORY, "no memory for %d vertices", given);
    for (const cJSON *item = node->child; item; item = item->next, i++) {
        items[i] = (int)item->valuedouble - mesh->file_base;
        if (items[i] >= 0 && items[i] < mesh->vertex_count) continue;
        reader_enter_index(reader, i);
        fem_free(items);
        return reader_fail(reader, item, "is %g, expected a vertex, %d to %d", item->valuedouble, mesh->file_base,
                           mesh->vertex_count - 1 + mesh->file_base);
    }
    *count = given / width, *numbers = items;
    return FEM_OK;
}

static fem_status read_faces(scene_reader *reader, const raw_seam *raw, fem_mesh *mesh, scene_seam *seam) {
    fem_status status = FEM_OK;
    int        count = 0, *faces = NULL;
    FEM_TRY(read_numbers(reader, raw->faces, mesh, mesh->type == FEM_T4 ? 3 : 4, &count, &faces));
    FEM_TRY(reader_prefix(reader, raw->faces, fem_mesh_cut(mesh, count, faces, &seam->count, &seam->pairs)));
done:
    fem_free(faces);
    return status;
}

static fem_status read_match(scene_reader *reader, const cJSON *node, const raw_seam *raw, scene_part *part,
                             scene_seam *seam) {
    fem_status     status = FEM_OK;
    scene_vertices sides[2] = {{0}, {0}};
    const cJSON   *nodes[2] = {raw->match.a, raw->match.b};
    const char    *keys[2] = {"a", "b"};
    unsigned char *fixed = fem_calloc(3 * (size_t)part->mesh.vertex_count, 1);
    if (!fixed) return fem_fail(FEM_NO_MEMORY, "no memory for %d vertices", part->mesh.vertex_count);
    for (int i = 0; i < part->fixed.count; i++) memset(fixed + 3 * (size_t)part->fixed.items[i], 1, 3);
    for (int k = 0; k < 2; k++) {
        size_t length = reader_enter(reader, keys[k]);
        FEM_TRY(scene_select(reader, nodes[k], &part->mesh, &sides[k]));
        reader_leave(reader, length);
    }
    FEM_TRY(fem_mesh_match(&part->mesh, sides[0].count, sides[0].items, sides[1].count, sides[1].items,
                           raw->match.tolerance, &seam->count, &seam->pairs));
    if (seam->count == 0)
        status = reader_fail(reader, node,
                             "no vertex of \"a\" has one of \"b\" within %g m, expected surfaces that lie closer or a "
                             "larger \"tolerance\"",
                             raw->match.tolerance);
    else
        status = reader_prefix(reader, node, fem_mesh_align(&part->mesh, seam->count, seam->pairs, fixed));
done:
    fem_free(sides[0].items), fem_free(sides[1].items), fem_free(fixed);
    return status;
}

// `late`: those that need to know what is fixed
static fem_status read_seams(scene_reader *reader, const cJSON *node, bool late, scene_part *part) {
    fem_status status = FEM_OK;
    int        index = 0;
    size_t     length = reader_enter(reader, "seams");
    for (const cJSON *item = node->child; item; item = item->next, index++) {
        raw_seam    raw = {0};
        scene_seam *seam = &part->seams[index];
        size_t      inner = reader_enter(reader, item->string);
        FEM_TRY(reader_table(reader, item, &scene_seam_table, &raw));
        const scene_key *key = &scene_seam_table.keys[raw.variant];
        const cJSON     *section = cJSON_GetObjectItemCaseSensitive(item, key->name);
        if ((raw.variant == SEAM_MATCH || raw.variant == SEAM_PAIRS) == late) {
            reader_enter(reader, key->name);
            if (raw.variant == SEAM_PLANE) FEM_TRY(read_plane(reader, section, &raw, &part->mesh, seam));
            if (raw.variant == SEAM_BETWEEN) FEM_TRY(read_between(reader, section, &raw, &part->mesh, seam));
            if (raw.variant == SEAM_FACES) FEM_TRY(read_faces(reader, &raw, &part->mesh, seam));
            if (raw.variant == SEAM_MATCH) FEM_TRY(read_match(reader, section, &raw, part, seam));
            if (raw.variant == SEAM_PAIRS)
                FEM_TRY(read_numbers(reader, raw.pairs, &part->mesh, 2, &seam->count, &seam->pairs));
            seam->given = raw.variant == SEAM_PAIRS;
        }
        reader_leave(reader, inner);
    }
    reader_leave(reader, length);
done:
    return status;
}

// Cuts through a layer of cubes leave single elements between the halves, which nothing holds and which ring by
// themselves: a remark says how many pieces are so small, and where the first is.
static fem_status remark_splinters(scene_reader *reader, const scene_part *part) {
    enum { SPLINTER = 24 };
    fem_status      status = FEM_OK;
    const fem_mesh *mesh = &part->mesh;
    size_t          width = (size_t)fem_element_vertices(mesh->type);
    int             count = 0, pieces = 0, elements = 0, at = -1;
    int            *component = fem_alloc((size_t)mesh->vertex_count, sizeof *component), *size = NULL;
    if (!component) return fem_fail(FEM_NO_MEMORY, "no memory for %d vertices", mesh->vertex_count);
    FEM_TRY(fem_mesh_components(mesh, component, &count));
    size = fem_calloc((size_t)count + 1, sizeof *size);
    if (!size) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d pieces", count);
        goto done;
    }
    for (int e = 0; e < mesh->element_count; e++) size[component[mesh->elements[(size_t)e * width]]]++;
    for (int c = 0; c < count; c++)
        if (size[c] > 0 && size[c] < SPLINTER) pieces++, elements += size[c];
    for (int v = 0; v < mesh->vertex_count && at < 0; v++)
        if (component[v] >= 0 && size[component[v]] < SPLINTER) at = v;
    if (pieces == 0) goto done;
    const double *x = mesh->vertices + 3 * (size_t)at;
    char          text[512];
    fem_remarks  *remarks = reader->remarks;
    snprintf(
        text, sizeof text,
        "%.200s: part \"%.60s\": its seams leave %d loose piece%s of fewer than %d elements (%d in all), the first "
        "at %g %g %g m: a plane that lies between layers of elements leaves none",
        reader->file, part->name, pieces, pieces == 1 ? "" : "s", SPLINTER, elements, x[0], x[1], x[2]);
    FEM_TRY(fem_grow((void **)&remarks->items, &remarks->capacity, (size_t)remarks->count + 1, sizeof *remarks->items));
    remarks->items[remarks->count] = fem_copy_string(text);
    if (remarks->items[remarks->count])
        remarks->count++;
    else
        status = fem_fail(FEM_NO_MEMORY, "no memory for a remark");
done:
    fem_free(component), fem_free(size);
    return status;
}

fem_status scene_read_seams(scene_reader *reader, const cJSON *node, scene_part *part) {
    int count = cJSON_GetArraySize(node);
    part->seams = fem_calloc((size_t)count, sizeof *part->seams);
    if (!part->seams) return fem_fail(FEM_NO_MEMORY, "no memory for %d seams", count);
    size_t length = reader_enter(reader, "seams");
    for (const cJSON *item = node->child; item; item = item->next) {
        size_t     inner = reader_enter(reader, item->string);
        fem_status status = reader_check_name(reader, item, item->string);
        if (status != FEM_OK) return status;
        part->seams[part->seam_count].name = fem_copy_string(item->string);
        if (!part->seams[part->seam_count].name) return fem_fail(FEM_NO_MEMORY, "no memory for a seam");
        part->seam_count++;
        reader_leave(reader, inner);
    }
    reader_leave(reader, length);
    fem_status status = read_seams(reader, node, false, part);
    return status == FEM_OK ? remark_splinters(reader, part) : status;
}

fem_status scene_match_seams(scene_reader *reader, const cJSON *node, scene_part *part) {
    return read_seams(reader, node, true, part);
}

// ---- actions -------------------------------------------------------------------------------------------------------

static fem_status find_seam(scene_reader *reader, const cJSON *node, const char *name, const scene_part *part,
                            int *seam) {
    scene_suggestion suggestion;
    for (*seam = 0; *seam < part->seam_count; ++*seam)
        if (strcmp(part->seams[*seam].name, name) == 0) return FEM_OK;
    if (part->seam_count == 0) return reader_fail(reader, node, "the part \"%.60s\" has no \"seams\"", part->name);
    suggestion_start(&suggestion, name);
    for (int i = 0; i < part->seam_count; i++) suggestion_offer(&suggestion, part->seams[i].name);
    return reader_fail(reader, node, "the part has no such seam%s", suggestion_text(&suggestion));
}

fem_status scene_check_stitched_modes(const scene_reader *reader, const cJSON *node, const scene_part *part) {
    if (part->modes.method == SCENE_MODES_LANCZOS || part->modes.method == SCENE_MODES_KRYLOV) return FEM_OK;
    return reader_fail(reader, node,
                       "stitching brings modes up to date, expected \"modes\": {\"method\": \"lanczos\"} or "
                       "\"krylov\" in parts.%.60s",
                       part->name);
}

fem_status scene_read_stitch(scene_reader *reader, const cJSON *node, const raw_action *raw, const scene *s,
                             scene_action *action) {
    fem_status        status = FEM_OK;
    const scene_part *part = &s->parts[s->object];
    const char       *name = raw->stitch ? raw->stitch : raw->unstitch ? raw->unstitch : raw->cut;
    const char       *key = raw->stitch ? "stitch" : raw->unstitch ? "unstitch" : raw->cut ? "cut" : "stiffness";
    bool              forest = s->forest.count > 0;
    if (s->method != SCENE_REDUCED || s->tree.domains.count > 0 || (!forest && part->fixed.count == 0))
        return reader_fail(reader, node,
                           "only reduced bodies that are not cut into domains and have \"fixed\" vertices are "
                           "stitched, expected %s",
                           s->method != SCENE_REDUCED  ? "\"solver\": {\"method\": \"reduced\"}"
                           : s->tree.domains.count > 0 ? "an object without \"decompose\""
                                                       : "\"fixed\" in its part");
    if (!forest) FEM_TRY(scene_check_stitched_modes(reader, node, part));
    size_t length = reader_enter(reader, key);
    if (name && forest)
        FEM_TRY(scene_find_stitched(reader, cJSON_GetObjectItemCaseSensitive(node, key), name, s, action));
    if (name && !forest)
        FEM_TRY(find_seam(reader, cJSON_GetObjectItemCaseSensitive(node, key), name, part, &action->seam));
    reader_leave(reader, length);
    if (raw->domain) {
        reader_enter(reader, "domain");
        return reader_fail(reader, cJSON_GetObjectItemCaseSensitive(node, "domain"),
                           "the body is not cut into domains, expected \"within\"");
    }
    if (action->kind == SCENE_STIFFNESS &&
        !(raw->stiffness >= 1 / MODES_STITCH_RANGE && raw->stiffness <= MODES_STITCH_RANGE)) {
        reader_enter(reader, key);
        return reader_fail(reader, cJSON_GetObjectItemCaseSensitive(node, key),
                           "is %g, expected %g to %g of a body that is stitched", raw->stiffness,
                           1 / MODES_STITCH_RANGE, MODES_STITCH_RANGE);
    }
    action->spring = raw->spring, action->count = raw->count, action->factor = raw->stiffness;
    if (raw->within) {
        length = reader_enter(reader, "within");
        FEM_TRY(scene_select(reader, raw->within, &part->mesh, &action->within));
        if (forest) FEM_TRY(scene_narrow_stitched(reader, raw->within, s, action));
        reader_leave(reader, length);
    }
done:
    return status;
}

// ---- the plan ------------------------------------------------------------------------------------------------------

static bool is_change(const scene_action *a) {
    return a->kind == SCENE_STITCH || a->kind == SCENE_UNSTITCH || a->kind == SCENE_CUT;
}

typedef struct plan {
    scene_reader  *reader;
    scene         *s;
    scene_part    *part;
    modes_problem  problem;
    unsigned char *fixed; // 3 per vertex
    int            count; // stitches at the time that is being looked at
    size_t         capacity;
    modes_stitch  *list;
    const int     *number; // of the actions in the file; NULL: as they come
} plan;

static bool among(const scene_vertices *within, int vertex) {
    int low = 0, high = within->count - 1;
    if (within->count == 0) return true;
    while (low <= high) {
        int middle = (low + high) / 2;
        if (within->items[middle] == vertex) return true;
        if (within->items[middle] < vertex)
            low = middle + 1;
        else
            high = middle - 1;
    }
    return false;
}

static int find_stitch(const plan *p, int a, int b) {
    for (int i = 0; i < p->count; i++)
        if ((p->list[i].a == a && p->list[i].b == b) || (p->list[i].a == b && p->list[i].b == a)) return i;
    return -1;
}

// The pairs of a seam that are (or are not) stitched now, as stitches. Those that a cut left between fixed vertices
// need none. Caller frees.
static fem_status collect(const plan *p, const scene_seam *seam, const scene_vertices *within, bool stitched,
                          double spring, int *count, modes_stitch **stitches) {
    modes_stitch *list = fem_alloc((size_t)seam->count, sizeof *list);
    if (!list) return fem_fail(FEM_NO_MEMORY, "no memory for %d stitches", seam->count);
    *count = 0;
    for (int i = 0; i < seam->count; i++) {
        int a = seam->pairs[2 * i], b = seam->pairs[2 * i + 1], known = find_stitch(p, a, b);
        if (!among(within, a) || !among(within, b) || (known >= 0) != stitched) continue;
        if (!seam->given && p->fixed[3 * a] && p->fixed[3 * b]) continue;
        double material = fmin(modes_stitch_material(&p->problem, a), modes_stitch_material(&p->problem, b));
        list[(*count)++] = stitched ? p->list[known] : (modes_stitch){a, b, spring > 0 ? spring : GROWN * material};
    }
    *stitches = list;
    return FEM_OK;
}

static fem_status append(plan *p, const cJSON *node, int count, const modes_stitch *stitches) {
    fem_status status = FEM_OK;
    FEM_TRY(fem_grow((void **)&p->list, &p->capacity, (size_t)p->count + (size_t)count, sizeof *p->list));
    memcpy(p->list + p->count, stitches, (size_t)count * sizeof *stitches);
    FEM_TRY(reader_prefix(p->reader, node, modes_stitches_check(&p->problem, p->count, count, p->list)));
    p->count += count;
done:
    return status;
}

static void take_out(plan *p, int count, const modes_stitch *stitches) {
    for (int i = 0; i < count; i++) {
        int k = find_stitch(p, stitches[i].a, stitches[i].b);
        memmove(p->list + k, p->list + k + 1, (size_t)(p->count - k - 1) * sizeof *p->list);
        p->count--;
    }
}

static fem_status plan_action(plan *p, const cJSON *node, scene_action *a) {
    fem_status        status = FEM_OK;
    const scene_seam *seam = &p->part->seams[a->seam];
    bool              adds = a->kind == SCENE_STITCH;
    const char       *key = adds ? "stitch" : a->kind == SCENE_UNSTITCH ? "unstitch" : "cut";
    node = cJSON_GetObjectItemCaseSensitive(node, key);
    reader_enter(p->reader, key);
    FEM_TRY(collect(p, seam, &a->within, !adds, a->spring, &a->stitch_count, &a->stitches));
    if (a->stitch_count == 0)
        return reader_fail(p->reader, node,
                           adds ? "nothing of the seam is open there at %g s, expected \"unstitch\" or \"cut\" before"
                                : "nothing of the seam is stitched there at %g s, expected \"stitch\" before",
                           a->start);
    if (adds && a->count > 0 && a->count < a->stitch_count) {
        for (int i = 0; i < a->count; i++) a->stitches[i] = a->stitches[(long)i * a->stitch_count / a->count];
        a->stitch_count = a->count;
    }
    if (adds)
        FEM_TRY(append(p, node, a->stitch_count, a->stitches));
    else
        take_out(p, a->stitch_count, a->stitches);
done:
    return status;
}

// Seams that an action cuts are there from the beginning.
static fem_status plan_grown(plan *p, const cJSON *node, const scene_action *a) {
    fem_status           status = FEM_OK;
    const scene_seam    *seam = &p->part->seams[a->seam];
    const scene_vertices all = {0};
    int                  count = 0;
    modes_stitch        *stitches = NULL;
    FEM_TRY(collect(p, seam, &all, false, 0, &count, &stitches)); // none when another action cuts it too
    reader_enter(p->reader, "cut");
    if (count > 0) FEM_TRY(append(p, cJSON_GetObjectItemCaseSensitive(node, "cut"), count, stitches));
done:
    fem_free(stitches);
    return status;
}

static fem_status plan_all(plan *p, const cJSON *actions) {
    fem_status status = FEM_OK;
    scene     *s = p->s;
    size_t     length = reader_enter(p->reader, "actions");
    for (int i = 0; i < s->action_count; i++) {
        int number = p->number ? p->number[i] : i;
        if (s->actions[i].kind != SCENE_CUT) continue;
        size_t inner = reader_enter_index(p->reader, number);
        FEM_TRY(plan_grown(p, cJSON_GetArrayItem(actions, number), &s->actions[i]));
        reader_leave(p->reader, inner);
    }
    s->grown = fem_copy(p->list, (size_t)p->count, sizeof *p->list);
    if (!s->grown) return fem_fail(FEM_NO_MEMORY, "no memory for %d stitches", p->count);
    s->grown_count = p->count;
    double after = -1; // actions at that time and before are planned
    for (;;) {
        double next = INFINITY;
        for (int i = 0; i < s->action_count; i++)
            if (is_change(&s->actions[i]) && s->actions[i].start > after) next = fmin(next, s->actions[i].start);
        if (isinf(next)) break;
        for (int i = 0; i < s->action_count; i++) {
            if (!is_change(&s->actions[i]) || s->actions[i].start != next) continue;
            int    number = p->number ? p->number[i] : i;
            size_t inner = reader_enter_index(p->reader, number);
            FEM_TRY(plan_action(p, cJSON_GetArrayItem(actions, number), &s->actions[i]));
            reader_leave(p->reader, inner);
        }
        after = next;
    }
    reader_leave(p->reader, length);
done:
    return status;
}

fem_status scene_plan_body(scene_reader *reader, const cJSON *actions, const int *number, scene *s) {
    fem_status       status = FEM_OK;
    scene_part      *part = &s->parts[s->object];
    plan             p = {.reader = reader, .s = s, .part = part, .number = number};
    fem_sparse       K = {0};
    fem_body        *body = NULL;
    double          *u = NULL;
    fem_body_options options = fem_body_default_options();
    size_t           n = 3 * (size_t)part->mesh.vertex_count;
    options.quadrature = part->quadrature;
    p.fixed = fem_calloc(n, 1);
    u = fem_calloc(n, sizeof *u);
    if (!p.fixed || !u) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %zu degrees of freedom", n);
        goto done;
    }
    for (int i = 0; i < part->fixed.count; i++) memset(p.fixed + 3 * (size_t)part->fixed.items[i], 1, 3);
    FEM_TRY(fem_body_create(&body, &part->mesh, &options));
    FEM_TRY(fem_body_matrix(body, &K));
    fem_body_evaluate(body, u, NULL, NULL, &K);
    p.problem = (modes_problem){.mesh = &part->mesh, .K = &K, .fixed = p.fixed};
    FEM_TRY(plan_all(&p, actions));
done:
    fem_free(p.list), fem_free(p.fixed), fem_free(u);
    fem_sparse_destroy(&K);
    fem_body_destroy(body);
    return status;
}

fem_status scene_plan_stitches(scene_reader *reader, const cJSON *actions, scene *s) {
    bool stitches = false;
    for (int i = 0; i < s->action_count; i++) stitches = stitches || is_change(&s->actions[i]);
    if (!stitches) return FEM_OK;
    for (int i = 0; i < s->action_count; i++)
        if (s->actions[i].kind == SCENE_MATERIAL)
            return reader_fail(reader, cJSON_GetArrayItem(actions, i),
                               "actions[%d]: a body that is stitched keeps its materials, expected \"stiffness\"", i);
    return s->forest.count > 0 ? scene_plan_instances(reader, actions, s) : scene_plan_body(reader, actions, NULL, s);
}
