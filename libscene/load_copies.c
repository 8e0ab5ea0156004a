// The copies of an object of a scene: rows of places, equal steps, and random places on the surface of the parent.
#include "libscene/internal.h"

#include <math.h>
#include <string.h>

void scene_make_placement(solver_placement *at, const double translation[3], const double rotation[3], double scale) {
    memcpy(at->p, translation, sizeof at->p);
    mat3_exp(at->Q, rotation);
    at->scale = scale;
}

static fem_status read_places(scene_reader *reader, const raw_object *raw, solver_placement *rows) {
    int row = 0;
    for (const cJSON *item = raw->places->child; item; item = item->next, row++) {
        double       numbers[7];
        const cJSON *number = item->child;
        for (int i = 0; i < 7; i++, number = number->next) numbers[i] = number->valuedouble;
        if (!(numbers[6] > 0)) {
            reader_enter(reader, "places");
            reader_enter_index(reader, row);
            return reader_fail(reader, item, "the scale, its last number, is %g, expected > 0", numbers[6]);
        }
        scene_make_placement(&rows[row], numbers, numbers + 3, numbers[6]);
    }
    return FEM_OK;
}

static void make_repeats(const raw_repeat *raw, solver_placement *rows) {
    solver_placement step;
    scene_make_placement(&step, raw->translation, raw->rotation, raw->scale);
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

static fem_status make_scatter(scene_reader *reader, const scene *s, const cJSON *node, const raw_scatter *raw,
                               int parent, solver_placement *rows) {
    fem_status        status = FEM_OK;
    const scene_part *part = &s->parts[s->forest.instances[parent].part];
    if (part->whole > 0) part = &s->parts[part->whole - 1]; // on all of a body that is cut
    const fem_mesh *mesh = &part->mesh;
    int            *triangles = NULL, *element = NULL, count = 0, region = -1;
    double         *sum = NULL, total = 0;
    uint64_t        state = (uint64_t)raw->seed;
    const cJSON    *section = cJSON_GetObjectItemCaseSensitive(node, "scatter");
    size_t          length = reader_enter(reader, "scatter");
    if (raw->largest < raw->smallest)
        return reader_fail(reader, section, "its largest scale %g is below the smallest, %g", raw->largest,
                           raw->smallest);
    if (raw->region)
        FEM_TRY(
            scene_find_region(reader, cJSON_GetObjectItemCaseSensitive(section, "region"), raw->region, mesh, &region));
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
        status = reader_fail(reader, section, "there is no surface of the part \"%s\" there", part->name);
        goto done;
    }
    for (int k = 0; k < raw->count; k++) {
        double at = total * solver_random(&state), share = sqrt(solver_random(&state)), r = solver_random(&state), n[3];
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
            rows[k].p[i] = (1 - share) * a[i] + share * (1 - r) * b[i] + share * r * c[i] - raw->depth * n[i];
        random_frame(n, raw->tilt, &state, rows[k].Q);
        rows[k].scale = raw->smallest + (raw->largest - raw->smallest) * solver_random(&state);
    }
    reader_leave(reader, length);
done:
    fem_free(triangles), fem_free(element), fem_free(sum);
    return status;
}

fem_status scene_make_copies(scene_reader *reader, const scene *s, const cJSON *node, const raw_object *raw, int parent,
                             int *count, solver_placement **rows) {
    fem_status status = FEM_OK;
    int        kinds = (raw->places != NULL) + (raw->repeat.count > 0) + (raw->scatter.count > 0);
    *count = raw->places              ? cJSON_GetArraySize(raw->places)
             : raw->repeat.count > 0  ? raw->repeat.count
             : raw->scatter.count > 0 ? raw->scatter.count
                                      : 1;
    if (kinds > 1) return reader_fail(reader, node, "expected only one of \"places\", \"repeat\" and \"scatter\"");
    if (raw->scatter.count > 0 && parent < 0)
        return reader_fail(reader, node, "\"scatter\" is for children, which stand on their parent's surface");
    static const char *const own[] = {"translation", "rotation", "scale"};
    for (int i = 0; raw->scatter.count > 0 && i < 3; i++)
        if (cJSON_GetObjectItemCaseSensitive(node, own[i]))
            return reader_fail(reader, node, "\"%s\" has no meaning beside \"scatter\"", own[i]);
    if (s->forest.count + *count > SCENE_INSTANCES_MOST)
        return reader_fail(reader, node, "makes more than %d instances", SCENE_INSTANCES_MOST);
    *rows = fem_alloc((size_t)*count, sizeof **rows);
    if (!*rows) return fem_fail(FEM_NO_MEMORY, "no memory for %d copies", *count);
    if (raw->places)
        FEM_TRY(read_places(reader, raw, *rows));
    else if (raw->repeat.count > 0)
        make_repeats(&raw->repeat, *rows);
    else if (raw->scatter.count > 0)
        FEM_TRY(make_scatter(reader, s, node, &raw->scatter, parent, *rows));
    else
        solver_placement_identity(*rows);
done:
    return status;
}
