// Skeletons of plants: files, checks, and points on their centrelines. See skeleton.h.
#include "libscene/glb_internal.h"
#include "libscene/internal.h"
#include "libscene/skeleton.h"
#include "libscene/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BRANCHES = 1000000, MOST_LEAVES = 10000000, MOST_POINTS = 100000 };

void scene_skeleton_destroy(scene_skeleton *skeleton) {
    for (int i = 0; i < skeleton->branch_count; i++) {
        fem_free(skeleton->branches[i].points);
        fem_free(skeleton->branches[i].radii);
    }
    fem_free(skeleton->branches);
    fem_free(skeleton->leaves);
    *skeleton = (scene_skeleton){0};
}

// ---- centrelines ------------------------------------------------------------------------------------------------

double scene_branch_length(const scene_branch *branch) {
    double length = 0;
    for (int i = 1; i < branch->point_count; i++)
        length += vec3_distance(branch->points + 3 * (size_t)i, branch->points + 3 * (size_t)(i - 1));
    return length;
}

void scene_branch_at(const scene_branch *branch, double t, double point[3], double direction[3], double *radius) {
    double left = fmin(fmax(t, 0), 1) * scene_branch_length(branch);
    int    last = branch->point_count - 2, i = 0;
    double step = 0;
    for (; i <= last; i++) {
        step = vec3_distance(branch->points + 3 * (size_t)(i + 1), branch->points + 3 * (size_t)i);
        if (left <= step || i == last) break;
        left -= step;
    }
    const double *a = branch->points + 3 * (size_t)i, *b = a + 3;
    double        share = step > 0 ? fmin(left / step, 1) : 0;
    vec3_sub(direction, b, a);
    for (int k = 0; k < 3; k++) point[k] = a[k] + share * direction[k];
    vec3_normalize(direction);
    *radius = branch->radii[i] + share * (branch->radii[i + 1] - branch->radii[i]);
}

// ---- what is refused ------------------------------------------------------------------------------------------

static fem_status check_branch(const scene_skeleton *s, int i) {
    const scene_branch *b = &s->branches[i];
    if (b->parent < -1 || b->parent >= i)
        return fem_fail(FEM_BAD_INPUT, "branch %d: its parent is %d, expected -1 or a branch that comes before it", i,
                        b->parent);
    if (!(b->t >= 0 && b->t <= 1)) return fem_fail(FEM_BAD_INPUT, "branch %d: t is %g, expected 0 to 1", i, b->t);
    if (b->point_count < 2)
        return fem_fail(FEM_BAD_INPUT, "branch %d: %d points, expected two or more", i, b->point_count);
    for (int k = 0; k < b->point_count; k++) {
        const double *p = b->points + 3 * (size_t)k;
        bool          tip = k == b->point_count - 1;
        for (int a = 0; a < 3; a++)
            if (!(fabs(p[a]) < 1e6))
                return fem_fail(FEM_BAD_INPUT, "branch %d, point %d: %g m is no place", i, k, p[a]);
        if (!(b->radii[k] > 0 || (tip && b->radii[k] == 0)) || !(b->radii[k] < 1e3))
            return fem_fail(FEM_BAD_INPUT, "branch %d, point %d: the radius is %g m, expected > 0", i, k, b->radii[k]);
        if (k > 0 && !(vec3_distance(p, p - 3) > 0))
            return fem_fail(FEM_BAD_INPUT, "branch %d: points %d and %d are the same", i, k - 1, k);
    }
    return FEM_OK;
}

// How far a point is from a centreline, and the radius at the nearest place.
static double distance_to(const scene_branch *b, const double p[3], double *radius) {
    double least = INFINITY;
    for (size_t k = 0; k + 1 < (size_t)b->point_count; k++) {
        const double *a = b->points + 3 * k;
        double        d[3], to[3], at[3];
        vec3_sub(d, a + 3, a), vec3_sub(to, p, a);
        double share = fmin(1, fmax(0, vec3_dot(to, d) / vec3_dot(d, d)));
        memcpy(at, a, sizeof at);
        vec3_axpy(at, share, d);
        double distance = vec3_distance(p, at);
        if (distance >= least) continue;
        least = distance;
        *radius = (1 - share) * b->radii[k] + share * b->radii[k + 1];
    }
    return least;
}

// What begins far from its parent cannot hang there: beyond the bark by more than a part of its own length.
static fem_status check_reach(const scene_skeleton *s, const char *kind, int index, int parent, const double p[3],
                              double own) {
    double radius = 0, distance = distance_to(&s->branches[parent], p, &radius), reach = 2 * radius + own;
    if (distance <= reach) return FEM_OK;
    return fem_fail(FEM_BAD_INPUT,
                    "%s %d: begins %.4g m away from branch %d, on which it stands, expected at most %.4g m; its place, "
                    "its parent or the unit is wrong",
                    kind, index, distance, parent, reach);
}

// Where something is: what lies in the same place comes to stand together when these are sorted.
typedef struct place {
    float key[8];
    int   index;
} place;

static int compare_places(const void *first, const void *second) {
    const place *a = first, *b = second;
    for (int i = 0; i < 8; i++)
        if (a->key[i] != b->key[i]) return a->key[i] < b->key[i] ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

static place place_of_branch(const scene_branch *b, int index) {
    const double *low = b->points, *tip = low + 3 * ((size_t)b->point_count - 1);
    return (place){{(float)low[0], (float)low[1], (float)low[2], (float)tip[0], (float)tip[1], (float)tip[2],
                    (float)scene_branch_length(b), (float)b->point_count},
                   index};
}

static place place_of_leaf(const scene_leaf *l, int index) {
    return (place){{(float)l->p[0], (float)l->p[1], (float)l->p[2], (float)l->Q[0], (float)l->Q[4], (float)l->Q[8],
                    (float)l->Q[1], (float)l->length},
                   index};
}

static bool alike(const double *a, const double *b, size_t count, double size) {
    for (size_t i = 0; i < count; i++)
        if (!(fabs(a[i] - b[i]) <= 1e-6 * size)) return false;
    return true;
}

// Two branches, or two leaves, in one place are the same one twice.
static fem_status check_copies(const scene_skeleton *s, bool leaves) {
    int    count = leaves ? s->leaf_count : s->branch_count;
    place *places = fem_alloc((size_t)count, sizeof *places);
    if (!places) return fem_fail(FEM_NO_MEMORY, "no memory for the places of %d branches or leaves", count);
    for (int i = 0; i < count; i++)
        places[i] = leaves ? place_of_leaf(&s->leaves[i], i) : place_of_branch(&s->branches[i], i);
    qsort(places, (size_t)count, sizeof *places, compare_places);
    fem_status status = FEM_OK;
    for (int i = 1; i < count && status == FEM_OK; i++) {
        int  first = places[i - 1].index, second = places[i].index;
        bool same = true;
        for (int k = 0; k < 8; k++) same = same && places[i - 1].key[k] == places[i].key[k];
        if (same && leaves) same = alike(s->leaves[first].Q, s->leaves[second].Q, 9, 1);
        if (same && !leaves) {
            const scene_branch *b = &s->branches[first];
            same = alike(b->points, s->branches[second].points, 3 * (size_t)b->point_count, scene_branch_length(b));
        }
        if (same)
            status = fem_fail(FEM_BAD_INPUT, "%s %d: is at the same place as %s %d, expected one of them",
                              leaves ? "leaf" : "branch", second, leaves ? "leaf" : "branch", first);
    }
    fem_free(places);
    return status;
}

fem_status scene_skeleton_check(const scene_skeleton *s) {
    fem_status status = FEM_OK;
    if (s->branch_count < 1) return fem_fail(FEM_BAD_INPUT, "the plant has no branch");
    for (int i = 0; i < s->branch_count && status == FEM_OK; i++) {
        const scene_branch *b = &s->branches[i];
        status = check_branch(s, i);
        if (status == FEM_OK && b->parent >= 0)
            status = check_reach(s, "branch", i, b->parent, b->points, scene_branch_length(b) / 2);
    }
    for (int i = 0; i < s->leaf_count && status == FEM_OK; i++) {
        const scene_leaf *l = &s->leaves[i];
        bool              finite = true;
        for (int a = 0; a < 3; a++) finite = finite && fabs(l->p[a]) < 1e6;
        for (int a = 0; a < 9; a++) finite = finite && fabs(l->Q[a]) <= 1.0001;
        if (l->branch < 0 || l->branch >= s->branch_count)
            status = fem_fail(FEM_BAD_INPUT, "leaf %d: branch %d, expected 0 to %d", i, l->branch, s->branch_count - 1);
        else if (!finite)
            status = fem_fail(FEM_BAD_INPUT, "leaf %d: its place or its axes are not finite", i);
        else if (!(l->length > 0 && l->width > 0 && l->length < 1e3 && l->width < 1e3))
            status = fem_fail(FEM_BAD_INPUT, "leaf %d: %g x %g m, expected > 0", i, l->length, l->width);
        else
            status = check_reach(s, "leaf", i, l->branch, l->p, 2 * l->length);
    }
    if (status == FEM_OK) status = check_copies(s, false);
    if (status == FEM_OK) status = check_copies(s, true);
    return status;
}

// ---- reading ----------------------------------------------------------------------------------------------------

typedef struct skeleton_reader {
    const char *path;
    double      unit;
} skeleton_reader;

static fem_status bad(const skeleton_reader *r, const cJSON *at, const char *what, const char *expected) {
    return fem_fail(FEM_BAD_INPUT, "%s:%d: %s, expected %s", r->path, at->valueint, what, expected);
}

static fem_status read_int(const skeleton_reader *r, const cJSON *object, const char *key, int low, int high,
                           int *value) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!cJSON_IsNumber(item) || item->valuedouble != floor(item->valuedouble) || item->valuedouble < low ||
        item->valuedouble > high)
        return bad(r, item ? item : object, key, "a whole number in its range");
    *value = (int)item->valuedouble;
    return FEM_OK;
}

static fem_status read_points(const skeleton_reader *r, const cJSON *object, scene_branch *b) {
    const cJSON *points = cJSON_GetObjectItemCaseSensitive(object, "points"),
                *radii = cJSON_GetObjectItemCaseSensitive(object, "radii");
    if (!cJSON_IsArray(points) || !cJSON_IsArray(radii))
        return bad(r, object, "a branch without points or radii", "lists");
    int count = cJSON_GetArraySize(points);
    if (count != cJSON_GetArraySize(radii)) return bad(r, radii, "another number of radii than of points", "one each");
    if (count < 2 || count > MOST_POINTS) return bad(r, points, "a centreline of that many points", "2 to 100000");
    b->points = fem_alloc(3 * (size_t)count, sizeof *b->points), b->radii = fem_alloc((size_t)count, sizeof *b->radii);
    if (!b->points || !b->radii) return fem_fail(FEM_NO_MEMORY, "%s: no memory for %d points", r->path, count);
    for (const cJSON *p = points->child, *q = radii->child; p && q; p = p->next, q = q->next) {
        if (!cJSON_IsArray(p) || cJSON_GetArraySize(p) != 3 || !cJSON_IsNumber(q))
            return bad(r, p, "a point or its radius", "[x, y, z] and a number");
        size_t k = (size_t)b->point_count++;
        int    a = 0;
        for (const cJSON *x = p->child; x; x = x->next) {
            if (!cJSON_IsNumber(x)) return bad(r, x, "a coordinate that is no number", "one");
            b->points[3 * k + (size_t)a++] = r->unit * x->valuedouble;
        }
        b->radii[k] = r->unit * q->valuedouble;
    }
    return FEM_OK;
}

static fem_status read_branch(const skeleton_reader *r, const cJSON *object, int index, scene_branch *b) {
    fem_status   status = FEM_OK;
    const cJSON *t = cJSON_GetObjectItemCaseSensitive(object, "t");
    int          id = -1;
    if (!cJSON_IsObject(object)) return bad(r, object, "a branch", "an object");
    FEM_TRY(read_int(r, object, "id", 0, MOST_BRANCHES, &id));
    if (id != index) return bad(r, object, "branches whose id is not their place in the list", "0, 1, 2, ...");
    FEM_TRY(read_int(r, object, "parent", -1, MOST_BRANCHES, &b->parent));
    FEM_TRY(read_int(r, object, "level", 0, 1000, &b->level));
    if (!cJSON_IsNumber(t)) return bad(r, object, "a branch without t", "a share of its parent's length, 0 to 1");
    b->t = t->valuedouble;
    FEM_TRY(read_points(r, object, b));
done:
    return status;
}

static fem_status read_leaf(const skeleton_reader *r, const cJSON *list, scene_leaf *leaf) {
    double numbers[10] = {0};
    int    count = 0;
    if (!cJSON_IsArray(list)) return bad(r, list, "a leaf", "a list");
    for (const cJSON *x = list->child; x && count < 10; x = x->next) {
        if (!cJSON_IsNumber(x)) return bad(r, x, "a leaf with something that is no number", "numbers");
        numbers[count++] = x->valuedouble;
    }
    if (count < 9 || cJSON_GetArraySize(list) > 10)
        return bad(r, list, "a leaf with another number of entries",
                   "[branch, px, py, pz, qx, qy, qz, qw, size(, width)]");
    double norm = 0;
    for (int k = 4; k < 8; k++) norm += numbers[k] * numbers[k];
    if (!(norm > 0.5 && norm < 2)) return bad(r, list, "a leaf whose quaternion has not the length 1", "one that has");
    if (!(numbers[0] >= 0 && numbers[0] <= MOST_BRANCHES) || numbers[0] != floor(numbers[0]))
        return bad(r, list, "a leaf on no branch", "the number of one");
    leaf->branch = (int)numbers[0];
    for (int k = 0; k < 3; k++) leaf->p[k] = r->unit * numbers[1 + k];
    quaternion_to_matrix(leaf->Q, numbers + 4);
    leaf->length = r->unit * numbers[8], leaf->width = count == 10 ? r->unit * numbers[9] : leaf->length;
    return FEM_OK;
}

static fem_status read_lists(const skeleton_reader *r, const cJSON *root, scene_skeleton *s) {
    fem_status   status = FEM_OK;
    const cJSON *format = cJSON_GetObjectItemCaseSensitive(root, "format");
    const cJSON *branches = cJSON_GetObjectItemCaseSensitive(root, "branches");
    const cJSON *leaves = cJSON_GetObjectItemCaseSensitive(root, "leaves");
    if (!cJSON_IsString(format) || strcmp(format->valuestring, "tree-skeleton-1") != 0)
        return bad(r, root, "no \"format\": \"tree-skeleton-1\"", "that");
    if (!cJSON_IsArray(branches) || (leaves && !cJSON_IsArray(leaves)))
        return bad(r, root, "\"branches\" or \"leaves\" is no list", "lists");
    if (cJSON_GetArraySize(branches) > MOST_BRANCHES || cJSON_GetArraySize(leaves) > MOST_LEAVES)
        return bad(r, branches, "more than a million branches or ten million leaves", "fewer");
    for (const cJSON *b = branches->child; b; b = b->next) {
        size_t at = (size_t)s->branch_count;
        FEM_TRY(fem_grow((void **)&s->branches, &s->branch_room, at + 1, sizeof *s->branches));
        s->branches[s->branch_count++] = (scene_branch){0};
        FEM_TRY(read_branch(r, b, (int)at, &s->branches[at]));
    }
    for (const cJSON *l = leaves ? leaves->child : NULL; l; l = l->next) {
        FEM_TRY(fem_grow((void **)&s->leaves, &s->leaf_room, (size_t)s->leaf_count + 1, sizeof *s->leaves));
        FEM_TRY(read_leaf(r, l, &s->leaves[s->leaf_count]));
        s->leaf_count++;
    }
done:
    return status;
}

fem_status scene_skeleton_read(scene_skeleton *skeleton, const char *path, double unit) {
    fem_status      status = FEM_OK;
    skeleton_reader r = {path, unit};
    scene_skeleton  s = {0};
    cJSON          *root = NULL;
    char           *text = NULL;
    size_t          size;
    if (!(unit > 0 && unit < 1e6)) return fem_fail(FEM_BAD_INPUT, "%s: the unit is %g m, expected > 0", path, unit);
    FEM_TRY(fem_file_read(&text, &size, path));
    FEM_TRY(json_parse(&root, path, text, size));
    FEM_TRY(read_lists(&r, root, &s));
    status = scene_skeleton_check(&s);
    if (status != FEM_OK) {
        fem_fail_prefix(status, "%s: ", path);
        goto done;
    }
    scene_skeleton_destroy(skeleton);
    *skeleton = s;
    s = (scene_skeleton){0};
done:
    cJSON_Delete(root);
    fem_free(text);
    scene_skeleton_destroy(&s);
    return status;
}

// ---- writing ----------------------------------------------------------------------------------------------------

static void put_vector(fem_file *file, int count, const double *x) {
    for (int i = 0; i < count; i++) fem_file_print(file, "%s%.17g", i > 0 ? "," : "", x[i]);
}

fem_status scene_skeleton_write(const scene_skeleton *s, const char *path) {
    fem_file  *file = NULL;
    fem_status status = scene_skeleton_check(s);
    if (status == FEM_OK) status = fem_file_create(&file, path);
    if (status != FEM_OK) return status;
    fem_file_print(file, "{\"format\":\"tree-skeleton-1\",\"units\":\"m\",\"up\":\"+y\",\n\"branches\":[");
    for (int i = 0; i < s->branch_count; i++) {
        const scene_branch *b = &s->branches[i];
        fem_file_print(file, "%s\n{\"id\":%d,\"parent\":%d,\"level\":%d,\"t\":%.17g,\"points\":[", i > 0 ? "," : "", i,
                       b->parent, b->level, b->t);
        for (int k = 0; k < b->point_count; k++) {
            fem_file_print(file, "%s[", k > 0 ? "," : "");
            put_vector(file, 3, b->points + 3 * (size_t)k);
            fem_file_print(file, "]");
        }
        fem_file_print(file, "],\"radii\":[");
        put_vector(file, b->point_count, b->radii);
        fem_file_print(file, "]}");
    }
    fem_file_print(file, "],\n\"leaves\":[");
    for (int i = 0; i < s->leaf_count; i++) {
        const scene_leaf *l = &s->leaves[i];
        double            q[4], numbers[9];
        quaternion_from_matrix(q, l->Q);
        memcpy(numbers, l->p, 3 * sizeof *numbers), memcpy(numbers + 3, q, sizeof q);
        numbers[7] = l->length, numbers[8] = l->width;
        fem_file_print(file, "%s\n[%d,", i > 0 ? "," : "", l->branch);
        put_vector(file, 9, numbers);
        fem_file_print(file, "]");
    }
    fem_file_print(file, "]}\n");
    return fem_file_commit(file);
}
