// All figures as one mesh on a skin: a joint per figure, at most four weights a vertex that sum to 1.
//
// Vertices stand where they are in the first frame, which is the bind pose. A figure's bending has no place in a joint:
// its vertices lean on the joints of the figures that it shares vertices with instead. Their weights solve
//     min over w >= 0, sum w = 1 of  sum over frames | sum_j w_j T_j(t) T_j(0)^-1 x(0) - x(t) |^2
// over its own joint and at most three of those neighbours, for frames spread over the motion: all subsets are tried,
// each with its normal equations. Rigid figures come out with weight 1. Copies of a vertex get the same weights, so
// that seams stay closed.
#include "libscene/glb_internal.h"

#include <stdlib.h>
#include <string.h>

enum { INFLUENCES = 4, MOST_JOINTS = 65535, SAMPLES = 24 };

void glb_skin_destroy(glb_skin *skin) {
    fem_free(skin->positions), fem_free(skin->uv), fem_free(skin->place), fem_free(skin->triangles),
        fem_free(skin->patches);
    fem_free(skin->joints), fem_free(skin->weights), fem_free(skin->first);
    fem_free(skin->inverse);
    fem_free(skin->mesh.mode), fem_free(skin->mesh.q_low), fem_free(skin->mesh.q_up);
    *skin = (glb_skin){0};
}

static fem_status no_memory(const scene_glb *glb) {
    return fem_fail(FEM_NO_MEMORY, "%s: no memory for its skin", glb->path);
}

// Place of a figure in a row of the spool, as readers of the file will have it.
static void stored_pose(const scene_glb *glb, const char *row, int figure, scene_pose *pose) {
    const glb_group *g = &glb->groups[glb->figures[figure].surface];
    size_t           place = (size_t)glb->place[figure];
    float            p[3];
    int16_t          packed[4];
    double           turn[4];
    memcpy(p, row + g->translations + 12 * place, sizeof p);
    memcpy(packed, row + g->rotations + 8 * place, sizeof packed);
    for (int i = 0; i < 3; i++) pose->p[i] = (double)p[i];
    quaternion_unpack(turn, packed);
    quaternion_to_matrix(pose->Q, turn);
}

// x = p + Q s (X + U q) of a vertex in a row
static void place_vertex(const scene_glb *glb, const char *row, const scene_pose *pose, int figure, size_t v,
                         double x[3]) {
    const scene_figure  *f = &glb->figures[figure];
    const scene_surface *s = &glb->surfaces[f->surface];
    size_t               r = (size_t)s->r, n3 = 3 * (size_t)s->vertex_count;
    const char          *values = row + glb->groups[f->surface].q + 4 * (size_t)glb->place[figure] * r;
    double               y[3];
    memcpy(y, s->positions + 3 * v, sizeof y);
    for (size_t l = 0; l < r; l++) {
        float q;
        memcpy(&q, values + 4 * l, sizeof q);
        vec3_axpy(y, (double)q, s->modes + l * n3 + 3 * v);
    }
    for (int i = 0; i < 3; i++) y[i] *= f->scale;
    mat3_mul_vec(x, pose->Q, y);
    vec3_axpy(x, 1, pose->p);
}

// ---- geometry -----------------------------------------------------------------------------------------------------

static fem_status make_geometry(scene_glb *glb) {
    glb_skin *skin = &glb->skin;
    size_t    vertices = 0, triangles = 0, n = (size_t)glb->figure_count;
    bool      uv = false, shared = false;
    for (size_t i = 0; i < n; i++) {
        const scene_surface *s = &glb->surfaces[glb->figures[i].surface];
        vertices += (size_t)s->vertex_count, triangles += (size_t)s->triangle_count;
        uv |= s->uv != NULL, shared |= s->place != NULL;
    }
    if (vertices > INT32_MAX / 4 || triangles > INT32_MAX / 4)
        return fem_fail(FEM_BAD_INPUT, "%s: a skin of %zu vertices is too large; without skin instances share theirs",
                        glb->path, vertices);
    skin->vertex_count = (int)vertices, skin->triangle_count = (int)triangles;
    skin->first = fem_alloc(n + 1, sizeof *skin->first);
    skin->positions = fem_alloc(3 * vertices, sizeof *skin->positions);
    if (uv) skin->uv = fem_calloc(2 * vertices, sizeof *skin->uv);
    if (shared) skin->place = fem_alloc(vertices, sizeof *skin->place);
    skin->triangles = fem_alloc(3 * triangles, sizeof *skin->triangles);
    skin->patches = fem_alloc((size_t)glb->look_count, sizeof *skin->patches);
    skin->joints = fem_calloc(INFLUENCES * vertices, sizeof *skin->joints);
    skin->weights = fem_calloc(INFLUENCES * vertices, sizeof *skin->weights);
    skin->inverse = fem_alloc(16 * n, sizeof *skin->inverse);
    if (!skin->first || !skin->positions || (uv && !skin->uv) || (shared && !skin->place) || !skin->triangles ||
        !skin->patches || !skin->joints || !skin->weights || !skin->inverse)
        return no_memory(glb);
    size_t at = 0;
    for (int i = 0; i < glb->figure_count; i++) {
        const scene_surface *s = &glb->surfaces[glb->figures[i].surface];
        scene_pose           pose;
        skin->first[i] = (int)at;
        stored_pose(glb, glb->first_row, i, &pose);
        if (s->uv) memcpy(skin->uv + 2 * at, s->uv, 2 * (size_t)s->vertex_count * sizeof *s->uv);
        for (size_t v = 0; shared && v < (size_t)s->vertex_count; v++)
            skin->place[at + v] = (int)at + (s->place ? s->place[v] : (int)v);
        for (size_t v = 0; v < (size_t)s->vertex_count; v++, at++)
            place_vertex(glb, glb->first_row, &pose, i, v, skin->positions + 3 * at);
    }
    skin->first[n] = (int)at;
    size_t corner = 0;
    for (int look = 0; look < glb->look_count; look++) {
        scene_patch patch = {.first = (int)(corner / 3), .look = look};
        for (int i = 0; i < glb->figure_count; i++) {
            const scene_surface *s = &glb->surfaces[glb->figures[i].surface];
            for (int k = 0; k < s->patch_count; k++) {
                const scene_patch *p = &s->patches[k];
                for (size_t c = 3 * (size_t)p->first; p->look == look && c < 3 * ((size_t)p->first + (size_t)p->count);
                     c++)
                    skin->triangles[corner++] = skin->first[i] + s->triangles[c];
            }
        }
        patch.count = (int)(corner / 3) - patch.first;
        if (patch.count > 0) skin->patches[skin->patch_count++] = patch;
    }
    return FEM_OK;
}

// ---- neighbours ---------------------------------------------------------------------------------------------------

typedef struct spot { // a vertex on a line through space
    double along;
    int    vertex, figure;
} spot;

static int compare_spots(const void *a, const void *b) {
    const spot *x = a, *y = b;
    return x->along != y->along ? (x->along < y->along ? -1 : 1) : (x->vertex > y->vertex) - (x->vertex < y->vertex);
}

// Per figure at most three others that have vertices at the places of its own, the first that are found; twin[v]: the
// first vertex at its place.
static fem_status find_neighbours(const scene_glb *glb, double size, int *neighbours, int *twin) {
    static const double line[3] = {0.5773, 0.3717, 0.7272};
    const glb_skin     *skin = &glb->skin;
    size_t              n = (size_t)skin->vertex_count;
    double              near = 1e-4 * size; // stored turns have 16 bits, and domains a gap
    spot               *spots = fem_alloc(n, sizeof *spots);
    if (!spots) return no_memory(glb);
    for (int i = 0; i < glb->figure_count; i++)
        for (int v = skin->first[i]; v < skin->first[i + 1]; v++)
            spots[v] = (spot){vec3_dot(line, skin->positions + 3 * (size_t)v), v, i};
    for (size_t v = 0; v < n; v++) twin[v] = (int)v;
    for (int i = 0; i < (INFLUENCES - 1) * glb->figure_count; i++) neighbours[i] = -1;
    qsort(spots, n, sizeof *spots, compare_spots);
    for (size_t a = 0; a < n; a++)
        for (size_t b = a + 1; b < n && spots[b].along - spots[a].along <= near; b++) {
            if (spots[a].figure == spots[b].figure) continue;
            int v = spots[a].vertex, w = spots[b].vertex;
            if (vec3_distance(skin->positions + 3 * (size_t)v, skin->positions + 3 * (size_t)w) > near) continue;
            int low = twin[v] < twin[w] ? twin[v] : twin[w];
            twin[v] = twin[w] = low;
            for (int side = 0; side < 2; side++) {
                int  own = side ? spots[b].figure : spots[a].figure, other = side ? spots[a].figure : spots[b].figure;
                int *list = neighbours + (INFLUENCES - 1) * (size_t)own;
                for (int k = 0; k < INFLUENCES - 1; k++) {
                    if (list[k] >= 0 && list[k] != other) continue;
                    list[k] = other;
                    break;
                }
            }
        }
    fem_free(spots);
    return FEM_OK;
}

// ---- weights ------------------------------------------------------------------------------------------------------

// Solves the n x n system in place by elimination with pivots; false when it has no answer.
static bool eliminate(int n, double A[4][4], double b[4]) {
    for (int k = 0; k < n; k++) {
        int pivot = k;
        for (int i = k + 1; i < n; i++)
            if (fabs(A[i][k]) > fabs(A[pivot][k])) pivot = i;
        if (!(fabs(A[pivot][k]) > 0)) return false;
        for (int j = 0; j < n; j++) {
            double keep = A[k][j];
            A[k][j] = A[pivot][j], A[pivot][j] = keep;
        }
        double keep = b[k];
        b[k] = b[pivot], b[pivot] = keep;
        for (int i = k + 1; i < n; i++) {
            double factor = A[i][k] / A[k][k];
            for (int j = k; j < n; j++) A[i][j] -= factor * A[k][j];
            b[i] -= factor * b[k];
        }
    }
    for (int k = n - 1; k >= 0; k--) {
        for (int j = k + 1; j < n; j++) b[k] -= A[k][j] * b[j];
        b[k] /= A[k][k];
    }
    return true;
}

// G: products of the differences e_j = y_j - x of the candidates. Minimises w^T G w with w >= 0, sum w = 1; fewer
// joints win unless more make it better. `none`: a square of a distance that does not count.
static double best_weights(int count, double G[INFLUENCES][INFLUENCES], double none, double w[INFLUENCES]) {
    double best = G[0][0];
    for (int k = 0; k < INFLUENCES; k++) w[k] = k == 0;
    for (int bits = 2; bits < 1 << count; bits++) {
        int    set[INFLUENCES], n = 0;
        double A[4][4], b[4] = {1, 1, 1, 1}, sum = 0, value = 0;
        for (int k = 0; k < count; k++)
            if (bits >> k & 1) set[n++] = k;
        for (int i = 0; i < n; i++) // G w = a multiple of ones; a little on the diagonal, where candidates agree
            for (int j = 0; j < n; j++) A[i][j] = G[set[i]][set[j]] + (i == j ? 1e-9 * G[set[i]][set[i]] + none : 0);
        if (!eliminate(n, A, b)) continue;
        bool inside = true;
        for (int i = 0; i < n; i++) sum += b[i];
        for (int i = 0; i < n; i++) inside &= b[i] >= 0 && isfinite(b[i]);
        if (!inside || !(sum > 0)) continue;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) value += b[i] * b[j] * G[set[i]][set[j]] / (sum * sum);
        if (!(value < best - none)) continue;
        best = value;
        for (int k = 0; k < INFLUENCES; k++) w[k] = 0;
        for (int i = 0; i < n; i++) w[set[i]] = b[i] / sum;
    }
    return best;
}

static void turn_back(double y[3], const double Q[9], const double x[3]) { // y = Q^T x
    for (int i = 0; i < 3; i++) y[i] = Q[i] * x[0] + Q[3 + i] * x[1] + Q[6 + i] * x[2];
}

// y = T(t) T(0)^-1 x; the scale cancels
static void move_with(const scene_pose *from, const scene_pose *to, const double x[3], double y[3]) {
    double d[3], local[3];
    vec3_sub(d, x, from->p);
    turn_back(local, from->Q, d);
    mat3_mul_vec(y, to->Q, local);
    vec3_axpy(y, 1, to->p);
}

typedef struct fitting {
    scene_glb  *glb;
    int         samples;
    const char *rows;            // of the sampled frames
    scene_pose *poses, *binding; // per sample and figure; per figure in the first frame
    const int  *neighbours;
    double      size, *error; // per figure
} fitting;

static void fit_figure(void *context, int figure, int worker) {
    (void)worker;
    const fitting *f = context;
    scene_glb     *glb = f->glb;
    glb_skin      *skin = &glb->skin;
    size_t         figures = (size_t)glb->figure_count;
    int            joint[INFLUENCES] = {figure}, count = 1;
    double         none = 1e-12 * f->size * f->size * f->samples;
    for (int k = 0; k < INFLUENCES - 1; k++)
        if (f->neighbours[(INFLUENCES - 1) * (size_t)figure + (size_t)k] >= 0)
            joint[count++] = f->neighbours[(INFLUENCES - 1) * (size_t)figure + (size_t)k];
    for (int v = skin->first[figure]; v < skin->first[figure + 1]; v++) {
        const double *x0 = skin->positions + 3 * (size_t)v;
        double        G[INFLUENCES][INFLUENCES] = {{0}}, w[INFLUENCES], own = 0;
        for (size_t t = 0; t < (size_t)f->samples; t++) {
            double            x[3], e[INFLUENCES][3];
            const scene_pose *poses = f->poses + t * figures;
            place_vertex(glb, f->rows + t * glb->row_bytes, &poses[figure], figure, (size_t)(v - skin->first[figure]),
                         x);
            for (int k = 0; k < count; k++) {
                move_with(&f->binding[joint[k]], &poses[joint[k]], x0, e[k]);
                vec3_axpy(e[k], -1, x);
            }
            for (int i = 0; i < count; i++)
                for (int j = 0; j < count; j++) G[i][j] += vec3_dot(e[i], e[j]);
        }
        own = best_weights(count, G, none, w);
        f->error[figure] = fmax(f->error[figure], sqrt(fmax(own, 0) / f->samples));
        for (int k = 0, at = 0; k < count; k++) {
            if (!(w[k] > 0)) continue;
            skin->joints[INFLUENCES * (size_t)v + (size_t)at] = (uint16_t)joint[k];
            skin->weights[INFLUENCES * (size_t)v + (size_t)at++] = (float)w[k];
        }
    }
}

// Weights that readers add up to 1: the largest takes what rounding left.
static void finish_weights(glb_skin *skin, const int *twin) {
    for (size_t v = 0; v < (size_t)skin->vertex_count; v++) {
        float *w = skin->weights + INFLUENCES * v;
        if (twin[v] != (int)v) {
            memcpy(w, skin->weights + INFLUENCES * (size_t)twin[v], INFLUENCES * sizeof *w);
            memcpy(skin->joints + INFLUENCES * v, skin->joints + INFLUENCES * (size_t)twin[v],
                   INFLUENCES * sizeof *skin->joints);
            continue; // twins come first and are finished
        }
        int    largest = 0;
        double rest = 1;
        for (int k = 0; k < INFLUENCES; k++) largest = w[k] > w[largest] ? k : largest;
        for (int k = 0; k < INFLUENCES; k++) rest -= k == largest ? 0 : (double)w[k];
        w[largest] = (float)rest;
    }
}

// Inverse of root times joint in the first frame: column-major, as in the file. root = R / unit.
static void invert_joint(const scene_glb *glb, const scene_pose *pose, double scale, float M[16]) {
    double b[3];
    turn_back(b, pose->Q, pose->p);
    for (int j = 0; j < 3; j++) { // column j of Q^T R^T: Q^T times where axis j of the file points in the simulation
        double axis[3] = {j == 0, j == 1, j == 2}, column[3];
        if (glb->options.up == SCENE_UP_Z) axis[1] = j == 2 ? -1 : 0, axis[2] = j == 1;
        turn_back(column, pose->Q, axis);
        for (int i = 0; i < 3; i++) M[4 * j + i] = (float)(column[i] * glb->options.unit / scale);
        M[12 + j] = (float)(-b[j] / scale), M[4 * j + 3] = 0;
    }
    M[15] = 1;
}

// Positions go from the simulation's axes to those of the file.
static void turn_positions(scene_glb *glb) {
    double *x = glb->skin.positions;
    for (size_t v = 0; v < (size_t)glb->skin.vertex_count; v++, x += 3) {
        if (glb->options.up == SCENE_UP_Z) {
            double y = x[1];
            x[1] = x[2], x[2] = -y;
        }
        for (int i = 0; i < 3; i++) x[i] /= glb->options.unit;
    }
}

fem_status glb_skin_create(scene_glb *glb) {
    fem_status status = FEM_OK;
    glb_skin  *skin = &glb->skin;
    size_t     n = (size_t)glb->figure_count;
    int       *neighbours = NULL, *twin = NULL;
    char      *rows = NULL;
    double    *error = NULL, low[3], high[3];
    fitting    f = {.glb = glb, .samples = glb->frames < SAMPLES ? glb->frames : SAMPLES};
    FEM_TRY(make_geometry(glb));
    for (int i = 0; i < 3; i++) low[i] = high[i] = skin->positions[i];
    for (size_t i = 0; i < 3 * (size_t)skin->vertex_count; i++)
        low[i % 3] = fmin(low[i % 3], skin->positions[i]), high[i % 3] = fmax(high[i % 3], skin->positions[i]);
    f.size = vec3_distance(low, high);
    neighbours = fem_alloc((INFLUENCES - 1) * n, sizeof *neighbours);
    twin = fem_alloc((size_t)skin->vertex_count, sizeof *twin);
    rows = fem_alloc((size_t)f.samples, glb->row_bytes);
    f.poses = fem_alloc((size_t)f.samples * n, sizeof *f.poses);
    f.binding = fem_alloc(n, sizeof *f.binding);
    error = fem_calloc(n, sizeof *error);
    if (!neighbours || !twin || !rows || !f.poses || !f.binding || !error) {
        status = no_memory(glb);
        goto done;
    }
    FEM_TRY(find_neighbours(glb, f.size, neighbours, twin));
    f.rows = rows, f.neighbours = neighbours, f.error = error;
    for (int i = 0; i < glb->figure_count; i++) stored_pose(glb, glb->first_row, i, &f.binding[i]);
    for (int t = 0; t < f.samples; t++) { // evenly, the last frame among them
        int   frame = f.samples < 2 ? 0 : (int)((long long)t * (glb->frames - 1) / (f.samples - 1));
        char *row = rows + (size_t)t * glb->row_bytes;
        FEM_TRY(glb_spool_read(glb, frame, 0, glb->row_bytes, row));
        for (int i = 0; i < glb->figure_count; i++) stored_pose(glb, row, i, &f.poses[(size_t)t * n + (size_t)i]);
    }
    fem_parallel_for(glb->figure_count, fit_figure, &f);
    finish_weights(skin, twin);
    for (size_t i = 0; i < n; i++) {
        skin->error = fmax(skin->error, error[i] / fmax(f.size, 1e-300));
        invert_joint(glb, &f.binding[i], glb->figures[i].scale, skin->inverse + 16 * i);
    }
    turn_positions(glb);
    skin->surface = (scene_surface){.name = "body",
                                    .vertex_count = skin->vertex_count,
                                    .positions = skin->positions,
                                    .uv = skin->uv,
                                    .place = skin->place,
                                    .triangle_count = skin->triangle_count,
                                    .triangles = skin->triangles,
                                    .patch_count = skin->patch_count,
                                    .patches = skin->patches};
done:
    fem_free(neighbours), fem_free(twin), fem_free(rows), fem_free(f.poses), fem_free(f.binding);
    fem_free(error);
    return status;
}

fem_status glb_skin_check(const scene_glb *glb) {
    if (!glb->options.skin || glb->figure_count <= MOST_JOINTS) return FEM_OK;
    return fem_fail(FEM_BAD_INPUT, "%s: a skin of %d joints, one per figure, expected at most %d; do without the skin",
                    glb->path, glb->figure_count, MOST_JOINTS);
}

// ---- in the file --------------------------------------------------------------------------------------------------

fem_status glb_skin_plan(scene_glb *glb) {
    fem_status   status = FEM_OK;
    glb_skin    *skin = &glb->skin;
    size_t       n = (size_t)skin->vertex_count, figures = (size_t)glb->figure_count;
    int          view;
    glb_accessor joints = {.count = n, .component = GLTF_USHORT, .type = "VEC4"};
    glb_accessor weights = {.count = n, .component = GLTF_FLOAT, .type = "VEC4"};
    glb_accessor inverse = {.count = figures, .component = GLTF_FLOAT, .type = "MAT4"};
    FEM_TRY(glb_plan_view(&glb->plan, 8 * n, 0, GLTF_VERTICES, &view));
    FEM_TRY(glb_plan_accessor(&glb->plan, &joints, &skin->mesh.joints));
    FEM_TRY(glb_plan_view(&glb->plan, 16 * n, 0, GLTF_VERTICES, &view));
    FEM_TRY(glb_plan_accessor(&glb->plan, &weights, &skin->mesh.skin_weights));
    FEM_TRY(glb_plan_view(&glb->plan, 64 * figures, 0, 0, &view));
    FEM_TRY(glb_plan_accessor(&glb->plan, &inverse, &skin->inverse_accessor));
done:
    return status;
}

fem_status glb_skin_put(scene_glb *glb) {
    fem_status      status = FEM_OK;
    const glb_skin *skin = &glb->skin;
    size_t          n = (size_t)skin->vertex_count;
    FEM_TRY(glb_begin_view(glb, glb->plan.accessors[skin->mesh.joints].view));
    glb_put(glb, skin->joints, 8 * n);
    FEM_TRY(glb_begin_view(glb, glb->plan.accessors[skin->mesh.skin_weights].view));
    glb_put(glb, skin->weights, 16 * n);
    FEM_TRY(glb_begin_view(glb, glb->plan.accessors[skin->inverse_accessor].view));
    glb_put(glb, skin->inverse, 64 * (size_t)glb->figure_count);
done:
    return status;
}
