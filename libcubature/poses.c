// Training poses and their exact reduced forces.
//
// U^T f(U q) is summed element by element in reduced form, g_e = V B^T P(B q): with B of eight elements made once, all
// poses go through it while it is in the first cache, and vectors of the length of the mesh are never made.
#include "libcubature/trainer.h"

#include <math.h>
#include <string.h>

void cubature_poses_destroy(cubature_poses *poses) {
    fem_free(poses->q);
    fem_free(poses->f);
    *poses = (cubature_poses){0};
}

// ---- random numbers ------------------------------------------------------------------------------------------------

// splitmix64 of the index [Steele, Lea, Flood 2014]
double random_uniform(unsigned seed, unsigned long index) {
    uint64_t z = ((uint64_t)seed << 40) + (uint64_t)index * 0x9e3779b97f4a7c15u + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return ((double)(z >> 11) + 0.5) / 9007199254740992.0;
}

double random_normal(unsigned seed, unsigned long index) { // Box and Muller
    double u = random_uniform(seed, 2 * index), v = random_uniform(seed, 2 * index + 1);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

// ---- forces --------------------------------------------------------------------------------------------------------

enum { CHUNK_ELEMENTS = 64, MOST_CHUNKS = 64 };

typedef struct force_work {
    const fem_body         *body;
    cubature_kernels        kernels;
    fem_material_constants *constants;
    const double           *Ut, *q; // q: blocks of eight poses
    int                    *order;  // elements by material
    int                     elements, chunks, r, blocks;
    point_set              *sets;     // per worker
    double                 *sums;     // per chunk: r x 8 blocks
    double                 *smallest; // per chunk: 8 blocks
} force_work;

static void force_task(void *context, int chunk, int worker) {
    force_work *w = context;
    point_set  *set = &w->sets[worker];
    size_t      poses = 8 * (size_t)w->blocks;
    point_task  task = {.set = set, .constants = w->constants, .row_stride = poses};
    task.sums = w->sums + (size_t)chunk * poses * (size_t)w->r;
    task.smallest = w->smallest + (size_t)chunk * poses;
    for (size_t t = 0; t < poses; t++) task.smallest[t] = INFINITY;
    int begin = (int)((long)w->elements * chunk / w->chunks), end = (int)((long)w->elements * (chunk + 1) / w->chunks);
    for (int first = begin; first < end; first += CHUNK_ELEMENTS) {
        int count = end - first < CHUNK_ELEMENTS ? end - first : CHUNK_ELEMENTS;
        point_set_fill(set, w->body, w->Ut, count, w->order + first);
        for (int group = 0; group < set->groups; group++)
            for (int block = 0; block < w->blocks; block++) {
                task.first = 8 * (size_t)block;
                task.q = w->q + task.first * (size_t)w->r;
                w->kernels.point_forces(&task, group);
            }
    }
}

// Poses eight by eight, r x 8 each; the last block is filled up with zeros.
static double *pack_poses(int r, int count, const double *q) {
    size_t  modes = (size_t)r, blocks = ((size_t)count + 7) / 8;
    double *packed = fem_calloc(blocks * 8, modes * sizeof *packed);
    for (size_t t = 0; packed && t < (size_t)count; t++)
        for (size_t l = 0; l < modes; l++) packed[(t / 8 * modes + l) * 8 + t % 8] = q[t * modes + l];
    return packed;
}

static fem_status create_sets(point_set **sets, const fem_body *body, int r, int elements) {
    int count = fem_threads();
    *sets = fem_calloc((size_t)count + 1, sizeof **sets); // the last stays empty and says where they end
    if (!*sets) return fem_fail(FEM_NO_MEMORY, "no memory for %d workers", count);
    double weight[27], g[27][24];
    int    points = fem_body_points(body, 0, weight, g), materials = fem_body_mesh(body)->material_count;
    int    groups = (elements * points + 7) / 8 + (materials < elements ? materials : elements);
    for (int i = 0; i < count; i++) {
        fem_status status = point_set_create(&(*sets)[i], r, groups, false);
        if (status != FEM_OK) return status;
    }
    return FEM_OK;
}

static void destroy_sets(point_set *sets) {
    for (int i = 0; sets && sets[i].B; i++) point_set_destroy(&sets[i]);
    fem_free(sets);
}

static fem_material_constants *prepare_materials(const fem_mesh *mesh) {
    fem_material_constants *c = fem_alloc((size_t)mesh->material_count, sizeof *c);
    for (int m = 0; c && m < mesh->material_count; m++) fem_material_prepare(&c[m], &mesh->materials[m]);
    return c;
}

static int *order_by_material(const fem_mesh *mesh) {
    int *order = fem_alloc((size_t)mesh->element_count, sizeof *order), at = 0;
    for (int m = 0; order && m < mesh->material_count; m++)
        for (int e = 0; e < mesh->element_count; e++)
            if (mesh->regions[mesh->region[e]].material == m) order[at++] = e;
    return order;
}

fem_status cubature_pose_forces(const fem_body *body, int r, const double *U, int count, const double *q, double *f,
                                double *smallest) {
    fem_status      status = FEM_OK;
    const fem_mesh *mesh = fem_body_mesh(body);
    force_work      w = {.body = body, .r = r, .elements = mesh->element_count, .kernels = cubature_choose_kernels()};
    double         *Ut = NULL, *packed = NULL;
    if (count < 1) return fem_fail(FEM_BAD_INPUT, "cubature: no training pose");
    size_t poses = ((size_t)count + 7) / 8 * 8, modes = (size_t)r;
    w.blocks = (int)(poses / 8);
    w.chunks = mesh->element_count / CHUNK_ELEMENTS + 1;
    if (w.chunks > MOST_CHUNKS) w.chunks = MOST_CHUNKS;
    w.constants = prepare_materials(mesh);
    w.order = order_by_material(mesh);
    w.sums = fem_calloc((size_t)w.chunks * poses, modes * sizeof *w.sums);
    w.smallest = fem_alloc((size_t)w.chunks * poses, sizeof *w.smallest);
    packed = pack_poses(r, count, q);
    if (!w.constants || !w.order || !w.sums || !w.smallest || !packed) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the forces of %d poses", count);
        goto done;
    }
    FEM_TRY(cubature_transpose_basis(&Ut, body, r, U));
    FEM_TRY(create_sets(&w.sets, body, r, CHUNK_ELEMENTS));
    w.Ut = Ut, w.q = packed;
    fem_parallel_for(w.chunks, force_task, &w);
    for (size_t t = 0; t < (size_t)count; t++) { // chunks in their order, whatever the number of threads
        double least = INFINITY;
        for (size_t l = 0; l < modes; l++) {
            double sum = 0;
            for (size_t chunk = 0; chunk < (size_t)w.chunks; chunk++) sum += w.sums[(chunk * modes + l) * poses + t];
            f[t * modes + l] = sum;
        }
        for (size_t chunk = 0; chunk < (size_t)w.chunks; chunk++)
            if (!(w.smallest[chunk * poses + t] >= least)) least = w.smallest[chunk * poses + t];
        if (smallest) smallest[t] = least;
    }
done:
    destroy_sets(w.sets);
    fem_free(w.constants);
    fem_free(w.order);
    fem_free(w.sums);
    fem_free(w.smallest);
    fem_free(packed);
    fem_free(Ut);
    return status;
}

// ---- Gaussian poses ------------------------------------------------------------------------------------------------

enum { AMPLITUDE_POSES = 33, MOST_HALVINGS = 12, SPREAD_SEED = 5000 };

static fem_status check_rayleigh(int r, const double *rayleigh) {
    for (int i = 0; i < r; i++)
        if (!(rayleigh[i] > 0) || !isfinite(rayleigh[i]))
            return fem_fail(
                FEM_BAD_INPUT,
                "cubature: the Rayleigh quotient of mode %d is %g, expected > 0: a mode without stiffness has "
                "no scale for its poses",
                i + 1, rayleigh[i]);
    return FEM_OK;
}

double largest_displacement(int n, const double *u) {
    double most = 0;
    for (int v = 0; v < n / 3; v++) most = fmax(most, vec3_norm(u + 3 * (size_t)v));
    return most;
}

fem_status cubature_amplitude(const fem_body *body, int r, const double *U, const double *rayleigh, double displacement,
                              unsigned seed, double *amplitude) {
    fem_status status = check_rayleigh(r, rayleigh);
    int        n = 3 * fem_body_mesh(body)->vertex_count;
    if (status != FEM_OK) return status;
    double *u = fem_alloc((size_t)n, sizeof *u), *q = fem_alloc((size_t)r, sizeof *q), most[AMPLITUDE_POSES];
    if (!u || !q) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a pose");
        goto done;
    }
    for (int t = 0; t < AMPLITUDE_POSES; t++) {
        for (int l = 0; l < r; l++) q[l] = random_normal(seed, (unsigned long)(t * r + l)) / sqrt(rayleigh[l]);
        dense_gemv_set(n, r, 1, U, q, u);
        most[t] = largest_displacement(n, u);
        for (int k = t; k > 0 && most[k] < most[k - 1]; k--) {
            double swap = most[k];
            most[k] = most[k - 1], most[k - 1] = swap;
        }
    }
    double median = most[AMPLITUDE_POSES / 2];
    if (median > 0 && isfinite(median))
        *amplitude = displacement / median;
    else
        status = fem_fail(FEM_BAD_INPUT, "cubature: the modes do not move the body");
done:
    fem_free(u);
    fem_free(q);
    return status;
}

fem_status poses_shrink_inverted(cubature_poses *p, const fem_body *body, const double *U, double *smallest,
                                 int *inverted) {
    fem_status status = FEM_OK;
    size_t     r = (size_t)p->r;
    double    *q = fem_alloc((size_t)p->count, r * sizeof *q), *f = fem_alloc((size_t)p->count, r * sizeof *f);
    double    *J = fem_alloc((size_t)p->count, sizeof *J);
    int       *which = fem_alloc((size_t)p->count, sizeof *which);
    if (!q || !f || !J || !which) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d poses", p->count);
        goto done;
    }
    for (int halving = 0; halving < MOST_HALVINGS; halving++) {
        int bad = 0;
        for (int t = 0; t < p->count; t++) {
            if (smallest[t] > 0) continue;
            for (size_t l = 0; l < r; l++) q[(size_t)bad * r + l] = p->q[(size_t)t * r + l] / 2;
            which[bad++] = t;
        }
        if (inverted && halving == 0) *inverted = bad;
        if (bad == 0) break;
        FEM_TRY(cubature_pose_forces(body, p->r, U, bad, q, f, J));
        for (int i = 0; i < bad; i++) {
            memcpy(p->q + (size_t)which[i] * r, q + (size_t)i * r, r * sizeof *q);
            memcpy(p->f + (size_t)which[i] * r, f + (size_t)i * r, r * sizeof *f);
            smallest[which[i]] = J[i];
        }
    }
done:
    fem_free(q);
    fem_free(f);
    fem_free(J);
    fem_free(which);
    return status;
}

fem_status poses_normal(cubature_poses *result, const fem_body *body, int r, const double *U, const double *centre,
                        const double *sigma, double spread, unsigned seed, int first, int count, int *inverted) {
    fem_status     status = FEM_OK;
    cubature_poses p = {.r = r, .count = count};
    size_t         modes = (size_t)r;
    if (inverted) *inverted = 0;
    if (count < 1) return fem_fail(FEM_BAD_INPUT, "cubature: no training pose");
    p.q = fem_alloc((size_t)count, modes * sizeof *p.q);
    p.f = fem_alloc((size_t)count, modes * sizeof *p.f);
    double *smallest = fem_alloc((size_t)count, sizeof *smallest);
    if (!p.q || !p.f || !smallest) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d poses", count);
        goto done;
    }
    for (size_t t = 0; t < (size_t)count; t++) {
        double size = pow(spread, random_uniform(seed + SPREAD_SEED, (size_t)first + t));
        for (size_t l = 0; l < modes; l++)
            p.q[t * modes + l] =
                size * ((centre ? centre[l] : 0) + sigma[l] * random_normal(seed, ((size_t)first + t) * modes + l));
    }
    FEM_TRY(cubature_pose_forces(body, r, U, count, p.q, p.f, smallest));
    FEM_TRY(poses_shrink_inverted(&p, body, U, smallest, inverted));
done:
    fem_free(smallest);
    if (status == FEM_OK)
        *result = p;
    else
        cubature_poses_destroy(&p);
    return status;
}

fem_status cubature_poses_sample(cubature_poses *poses, const fem_body *body, int r, const double *U,
                                 const double *rayleigh, double amplitude, double spread, unsigned seed, int count,
                                 int *inverted) {
    fem_status status = check_rayleigh(r, rayleigh);
    if (status != FEM_OK) return status;
    double *sigma = fem_alloc((size_t)r, sizeof *sigma);
    if (!sigma) return fem_fail(FEM_NO_MEMORY, "no memory for %d modes", r);
    for (int l = 0; l < r; l++) sigma[l] = amplitude / sqrt(rayleigh[l]);
    status = poses_normal(poses, body, r, U, NULL, sigma, spread, seed, 0, count, inverted);
    fem_free(sigma);
    return status;
}

// ---- the training matrix -------------------------------------------------------------------------------------------

enum { SET_ELEMENTS = 8 };

void trainer_destroy(trainer *t) {
    fem_free(t->Ut);
    fem_free(t->q);
    fem_free(t->scale);
    fem_free(t->mode_scale);
    fem_free(t->b);
    fem_free(t->constants);
    destroy_sets(t->sets);
    *t = (trainer){0};
}

fem_status trainer_create(trainer *result, const fem_body *body, int r, const double *U, const cubature_poses *poses,
                          bool balanced) {
    fem_status status = FEM_OK;
    trainer    t = {.body = body, .r = r, .set_elements = SET_ELEMENTS};
    size_t     modes = (size_t)r;
    double    *used = fem_alloc((size_t)poses->count, modes * sizeof *used);
    t.stride = ((size_t)poses->count + 7) / 8 * 8;
    t.rows = t.stride * modes;
    t.scale = fem_calloc(t.stride, sizeof *t.scale);
    t.mode_scale = fem_alloc(modes, sizeof *t.mode_scale);
    t.b = fem_calloc(t.rows, sizeof *t.b);
    t.constants = prepare_materials(fem_body_mesh(body));
    if (!used || !t.scale || !t.mode_scale || !t.b || !t.constants) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d training poses", poses->count);
        goto done;
    }
    for (size_t p = 0; p < (size_t)poses->count; p++) {
        const double *f = poses->f + p * modes;
        double        norm = dense_norm(r, f);
        if (!(norm > 0) || !isfinite(norm) || !isfinite(1 / norm)) {
            t.dropped++;
            continue;
        }
        size_t at = (size_t)t.poses++;
        t.scale[at] = 1 / norm;
        memcpy(used + at * modes, poses->q + p * modes, modes * sizeof *used);
        for (size_t l = 0; l < modes; l++) t.b[l * t.stride + at] = f[l] / norm;
    }
    if (t.poses == 0) {
        status = fem_fail(FEM_BAD_INPUT,
                          poses->count == 0 ? "cubature: no training pose"
                                            : "cubature: the forces of all %d training poses are zero or not finite",
                          poses->count);
        goto done;
    }
    for (size_t l = 0; l < modes; l++) {
        double size = dense_norm((int)t.stride, t.b + l * t.stride);
        t.mode_scale[l] = balanced && size > 0 ? 1 / size : 1;
        dense_scale((int)t.stride, t.mode_scale[l], t.b + l * t.stride);
    }
    t.b_norm = dense_norm((int)t.rows, t.b);
    t.q = pack_poses(r, t.poses, used);
    if (!t.q) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d training poses", poses->count);
        goto done;
    }
    FEM_TRY(cubature_transpose_basis(&t.Ut, body, r, U));
    FEM_TRY(create_sets(&t.sets, body, r, SET_ELEMENTS));
done:
    fem_free(used);
    if (status == FEM_OK)
        *result = t;
    else
        trainer_destroy(&t);
    return status;
}

void trainer_some_columns(const trainer *t, int worker, int count, const int *elements, double *A) {
    cubature_kernels kernels = cubature_choose_kernels();
    point_set       *set = &t->sets[worker];
    double          *columns[SET_ELEMENTS];
    point_task       task = {.set = set,
                             .constants = t->constants,
                             .scale = t->scale,
                             .mode_scale = t->mode_scale,
                             .row_stride = t->stride,
                             .columns = columns};
    memset(A, 0, (size_t)count * t->rows * sizeof *A);
    for (int i = 0; i < count; i++) columns[i] = A + (size_t)i * t->rows;
    point_set_fill(set, t->body, t->Ut, count, elements);
    for (int group = 0; group < set->groups; group++)
        for (size_t first = 0; first < (size_t)t->poses; first += 8) {
            task.first = first;
            task.q = t->q + first * (size_t)t->r;
            kernels.point_forces(&task, group);
        }
}

typedef struct columns_work {
    const trainer *trainer;
    int            count;
    const int     *elements;
    double        *A;
} columns_work;

static void columns_task(void *context, int index, int worker) {
    const columns_work *w = context;
    int                 first = index * SET_ELEMENTS, count = w->count - first;
    trainer_some_columns(w->trainer, worker, count < SET_ELEMENTS ? count : SET_ELEMENTS, w->elements + first,
                         w->A + (size_t)first * w->trainer->rows);
}

void trainer_columns(const trainer *t, int count, const int *elements, double *A) {
    columns_work w = {.trainer = t, .count = count, .elements = elements, .A = A};
    fem_parallel_for((count + SET_ELEMENTS - 1) / SET_ELEMENTS, columns_task, &w);
}
