// A model at a time: channels, node transforms, morph targets, skins.
#include "libscene/glb_internal.h"
#include "libscene/model_internal.h"

#include <string.h>

void scene_model_times(const scene_model *model, double *begin, double *end) {
    *begin = model->begin, *end = model->end;
}

bool scene_model_node_vertices(const scene_model *model, const char *name, int *first, int *count) {
    for (int i = 0; i < model->node_count; i++)
        if (strcmp(model->nodes[i].name, name) == 0 && model->nodes[i].vertex_count > 0) {
            *first = model->nodes[i].first_vertex, *count = model->nodes[i].vertex_count;
            return true;
        }
    return false;
}

// ---- channels ---------------------------------------------------------------------------------------------------

// Key at or before a time, and how far it is to the next (0 outside the keys).
static size_t find_key(const model_accessor *input, double time, double *fraction, double *span) {
    size_t low = 0, high = input->count - 1;
    *fraction = *span = 0;
    if (time <= model_number(input, 0, 0)) return 0;
    if (time >= model_number(input, high, 0)) return high;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (model_number(input, middle, 0) <= time)
            low = middle;
        else
            high = middle;
    }
    double from = model_number(input, low, 0);
    *span = model_number(input, high, 0) - from;
    *fraction = (time - from) / *span;
    return low;
}

// Number j of key `key`; which: 0 in-tangent, 1 value, 2 out-tangent (cubic splines have all three).
static double key_value(const model_channel *c, int width, size_t key, int which, int j) {
    size_t item = c->interpolation == MODEL_CUBIC ? 3 * key + (size_t)which : key;
    if (c->path == MODEL_WEIGHTS) return model_number(&c->output, item * (size_t)width + (size_t)j, 0);
    return model_number(&c->output, item, j);
}

// Spherical interpolation, the short way.
static void slerp(double q[4], const double a[4], const double b[4], double t) {
    double cosine = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3], sign = cosine < 0 ? -1 : 1;
    double angle = acos(fmin(fabs(cosine), 1)), wa = 1 - t, wb = t;
    if (angle > 1e-4) wa = sin((1 - t) * angle) / sin(angle), wb = sin(t * angle) / sin(angle);
    for (int i = 0; i < 4; i++) q[i] = wa * a[i] + sign * wb * b[i];
}

static void evaluate(const model_channel *c, int width, double time, double *value) {
    double t, span;
    size_t key = find_key(&c->input, time, &t, &span);
    if (c->interpolation == MODEL_STEP) t = 0;
    if (t == 0) {
        for (int j = 0; j < width; j++) value[j] = key_value(c, width, key, 1, j);
    } else if (c->interpolation == MODEL_CUBIC) {
        double t2 = t * t, t3 = t2 * t;
        for (int j = 0; j < width; j++)
            value[j] = (2 * t3 - 3 * t2 + 1) * key_value(c, width, key, 1, j) +
                       span * (t3 - 2 * t2 + t) * key_value(c, width, key, 2, j) +
                       (3 * t2 - 2 * t3) * key_value(c, width, key + 1, 1, j) +
                       span * (t3 - t2) * key_value(c, width, key + 1, 0, j);
    } else if (c->path == MODEL_ROTATION) {
        double a[4], b[4];
        for (int j = 0; j < 4; j++) a[j] = key_value(c, 4, key, 1, j), b[j] = key_value(c, 4, key + 1, 1, j);
        slerp(value, a, b, t);
    } else {
        for (int j = 0; j < width; j++)
            value[j] = (1 - t) * key_value(c, width, key, 1, j) + t * key_value(c, width, key + 1, 1, j);
    }
}

// ---- transforms: 12 numbers, rows of [A | b] --------------------------------------------------------------------

static void multiply(double C[12], const double A[12], const double B[12]) {
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++)
            C[4 * i + j] =
                A[4 * i] * B[j] + A[4 * i + 1] * B[4 + j] + A[4 * i + 2] * B[8 + j] + (j == 3 ? A[4 * i + 3] : 0);
}

static void local_transform(const model_node *node, double A[12]) {
    if (node->has_matrix) {
        for (int i = 0; i < 12; i++) A[i] = node->matrix[4 * (i % 4) + i / 4];
        return;
    }
    double R[9], norm = 0;
    for (int i = 0; i < 4; i++) norm += node->rotation[i] * node->rotation[i];
    quaternion_to_matrix(R, norm > 1e-12 ? node->rotation : (const double[]){0, 0, 0, 1});
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) A[4 * i + j] = R[3 * i + j] * node->scale[j];
        A[4 * i + 3] = node->translation[i];
    }
}

static void pose_nodes(scene_model *m, double time) {
    for (int i = 0; i < m->node_count; i++) {
        const model_node *node = &m->nodes[i];
        if (node->mesh < 0) continue;
        const model_mesh *mesh = &m->meshes[node->mesh];
        memcpy(m->morph + m->morph_at[i], node->weights ? node->weights : mesh->weights,
               (size_t)mesh->target_count * sizeof *m->morph);
    }
    for (int i = 0; i < m->channel_count; i++) {
        const model_channel *c = &m->channels[i];
        model_node          *node = &m->nodes[c->node];
        if (c->path == MODEL_TRANSLATION) evaluate(c, 3, time, node->translation);
        if (c->path == MODEL_ROTATION) evaluate(c, 4, time, node->rotation);
        if (c->path == MODEL_SCALE) evaluate(c, 3, time, node->scale);
        if (c->path == MODEL_WEIGHTS)
            evaluate(c, m->meshes[node->mesh].target_count, time, m->morph + m->morph_at[c->node]);
    }
    for (int k = 0; k < m->node_count; k++) {
        int    i = m->order[k], parent = m->nodes[i].parent;
        double local[12];
        local_transform(&m->nodes[i], local);
        if (parent < 0)
            memcpy(m->world + 12 * (size_t)i, local, sizeof local);
        else
            multiply(m->world + 12 * (size_t)i, m->world + 12 * (size_t)parent, local);
    }
    for (int k = 0; k < m->skin_count; k++)
        for (size_t j = 0; j < (size_t)m->skins[k].joint_count; j++)
            multiply(m->skins[k].transforms + 12 * j, m->world + 12 * (size_t)m->skins[k].joints[j],
                     m->skins[k].inverse + 12 * j);
}

// ---- vertices ---------------------------------------------------------------------------------------------------

// x = A X and n = cof(A) N for a vertex
static void place_vertex(const double A[12], const double X[3], const double N[3], float *x, float *n) {
    double rows[9] = {A[0], A[1], A[2], A[4], A[5], A[6], A[8], A[9], A[10]}, normal[3];
    for (int i = 0; i < 3; i++) x[i] = (float)(vec3_dot(rows + 3 * i, X) + A[4 * i + 3]);
    for (int i = 0; i < 3; i++) { // cofactors: right for any scaling
        double c[3];
        vec3_cross(c, rows + 3 * ((i + 1) % 3), rows + 3 * ((i + 2) % 3));
        normal[i] = vec3_dot(c, N);
    }
    vec3_normalize(normal);
    for (int i = 0; i < 3; i++) n[i] = (float)normal[i];
}

// A = the weighted sum of the transforms of a vertex's joints
static void blend_joints(const model_primitive *p, size_t v, const double *joints, double A[12]) {
    memset(A, 0, 12 * sizeof *A);
    for (size_t k = 4 * v; k < 4 * v + 4; k++)
        for (int i = 0; i < 12; i++) A[i] += (double)p->weights[k] * joints[12 * (size_t)p->joints[k] + (size_t)i];
}

// `joints`: transforms of the skin's joints (world times inverse bind), or NULL.
static void pose_primitive(scene_model *m, int node, const model_primitive *p, size_t first, const double *joints) {
    scene_drawing *d = &m->drawing;
    const double  *weights = m->morph + m->morph_at[node];
    size_t         n = (size_t)p->vertex_count, n3 = 3 * n;
    for (size_t v = 0; v < n; v++) {
        double X[3], N[3], A[12];
        for (size_t i = 0; i < 3; i++) X[i] = (double)p->positions[3 * v + i], N[i] = (double)p->normals[3 * v + i];
        for (size_t k = 0; k < (size_t)p->target_count; k++) {
            const float *dx = p->deltas + 2 * k * n3 + 3 * v, *dn = dx + n3;
            for (int i = 0; i < 3; i++) X[i] += weights[k] * (double)dx[i], N[i] += weights[k] * (double)dn[i];
        }
        bool skinned = joints && p->joints;
        if (skinned) blend_joints(p, v, joints, A);
        place_vertex(skinned ? A : m->world + 12 * (size_t)node, X, N, d->positions + 3 * (first + v),
                     d->normals + 3 * (first + v));
    }
}

static void pose_node(void *context, int index, int worker) {
    (void)worker;
    scene_model      *m = context;
    const model_node *node = &m->nodes[index];
    if (node->mesh < 0) return;
    const model_mesh *mesh = &m->meshes[node->mesh];
    const double     *joints = node->skin >= 0 ? m->skins[node->skin].transforms : NULL;
    size_t            first = (size_t)node->first_vertex;
    for (int k = 0; k < mesh->primitive_count; k++) {
        pose_primitive(m, index, &mesh->primitives[k], first, joints);
        first += (size_t)mesh->primitives[k].vertex_count;
    }
}

fem_status scene_model_pose(scene_model *m, double time, const scene_drawing **drawing) {
    if (!isfinite(time)) return fem_fail(FEM_BAD_INPUT, "%s: the time is %g", m->path, time);
    pose_nodes(m, time);
    fem_parallel_for(m->node_count, pose_node, m);
    *drawing = &m->drawing;
    return FEM_OK;
}
