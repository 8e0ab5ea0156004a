// Exact reduced forces of poses.
//
// U^T f(U q) is summed element by element in reduced form, g_e = V B^T P(B q): with B of a few elements made once, all
// poses go through it while it is in the second cache, and vectors of the length of the mesh are never made.
#include "libcubature/trainer.h"

#include <math.h>
#include <string.h>

// ---- the body ------------------------------------------------------------------------------------------------------

enum { TRANSPOSED_ROWS = 256 };

typedef struct turning {
    const double *U;
    double       *Ut;
    size_t        n, r, stride;
} turning;

static void turn_task(void *context, int index, int worker) {
    (void)worker;
    const turning *t = context;
    size_t         first = (size_t)index * TRANSPOSED_ROWS,
           end = first + TRANSPOSED_ROWS < t->n ? first + TRANSPOSED_ROWS : t->n;
    for (size_t l = 0; l < t->r; l++)
        for (size_t i = first; i < end; i++) t->Ut[i * t->stride + l] = t->U[l * t->n + i];
    for (size_t i = first; i < end; i++)
        for (size_t l = t->r; l < t->stride; l++) t->Ut[i * t->stride + l] = 0;
}

static int *order_by_material(const fem_mesh *mesh) {
    int *order = fem_alloc((size_t)mesh->element_count, sizeof *order), at = 0;
    for (int m = 0; order && m < mesh->material_count; m++)
        for (int e = 0; e < mesh->element_count; e++)
            if (mesh->regions[mesh->region[e]].material == m) order[at++] = e;
    return order;
}

void reduced_body_destroy(reduced_body *b) {
    fem_free(b->Ut);
    fem_free(b->constants);
    fem_free(b->order);
    fem_free(b->K0);
    fem_free(b->modes);
    fem_free(b->values);
    *b = (reduced_body){0};
}

fem_status reduced_body_create(reduced_body *result, const fem_body *body, int r, const double *U) {
    const fem_mesh *mesh = fem_body_mesh(body);
    if (r < 1 || r > CUBATURE_MOST_MODES)
        return fem_fail(FEM_BAD_INPUT, "cubature: %d modes, expected 1 to %d", r, CUBATURE_MOST_MODES);
    reduced_body b = {.body = body, .r = r, .U = U, .count = mesh->element_count};
    turning      t = {.U = U, .n = 3 * (size_t)mesh->vertex_count, .r = (size_t)r, .stride = basis_stride(r)};
    b.Ut = t.Ut = fem_alloc(t.n * t.stride, sizeof *b.Ut);
    b.constants = fem_alloc((size_t)mesh->material_count, sizeof *b.constants);
    b.order = order_by_material(mesh);
    if (!b.Ut || !b.constants || !b.order) {
        reduced_body_destroy(&b);
        return fem_fail(FEM_NO_MEMORY, "no memory for a basis of %zu x %d", t.n, r);
    }
    for (int m = 0; m < mesh->material_count; m++) fem_material_prepare(&b.constants[m], &mesh->materials[m]);
    fem_parallel_for((int)((t.n + TRANSPOSED_ROWS - 1) / TRANSPOSED_ROWS), turn_task, &t);
    *result = b;
    return FEM_OK;
}

fem_status reduced_body_modes(reduced_body *b) {
    fem_status     status = FEM_OK;
    size_t         r = (size_t)b->r;
    double         zero[CUBATURE_MOST_MODES] = {0}, *work = NULL;
    cubature_full *full = NULL;
    FEM_TRY(cubature_full_create(&full, b->body, b->r, b->U));
    cubature_forces forces = cubature_full_forces(full);
    work = fem_alloc(forces.work, sizeof *work);
    b->K0 = fem_alloc(r * r, sizeof *b->K0);
    b->values = fem_alloc(r, sizeof *b->values);
    if (!work || !b->K0 || !b->values) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the stiffness of %d modes", b->r);
        goto done;
    }
    forces.evaluate(forces.model, zero, NULL, NULL, b->K0, work);
    b->modes = fem_copy(b->K0, r * r, sizeof *b->K0);
    if (!b->modes) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the stiffness of %d modes", b->r);
        goto done;
    }
    FEM_TRY(dense_symmetric_eigen(b->r, b->modes, b->values));
done:
    cubature_full_destroy(full);
    fem_free(work);
    return status;
}

basis_rows reduced_body_rows(const reduced_body *b) {
    return (basis_rows){.values = b->Ut, .stride = basis_stride(b->r)};
}

double *pack_poses(int r, int count, const double *q) {
    size_t  modes = (size_t)r, blocks = ((size_t)count + 7) / 8;
    double *packed = fem_calloc(blocks * 8, modes * sizeof *packed);
    for (size_t t = 0; packed && t < (size_t)count; t++)
        for (size_t l = 0; l < modes; l++) packed[(t / 8 * modes + l) * 8 + t % 8] = q[t * modes + l];
    return packed;
}

fem_status create_sets(point_set **sets, const reduced_body *b, int elements) {
    int count = fem_threads(), materials = fem_body_mesh(b->body)->material_count;
    *sets = fem_calloc((size_t)count + 1, sizeof **sets); // the last stays empty and says where they end
    if (!*sets) return fem_fail(FEM_NO_MEMORY, "no memory for %d workers", count);
    int groups = (elements * points_per_element(b->body) + 7) / 8 + (materials < elements ? materials : elements);
    for (int i = 0; i < count; i++) {
        fem_status status = point_set_create(&(*sets)[i], b->r, groups, false);
        if (status != FEM_OK) return status;
    }
    return FEM_OK;
}

void destroy_sets(point_set *sets) {
    for (int i = 0; sets && sets[i].B; i++) point_set_destroy(&sets[i]);
    fem_free(sets);
}

// ---- forces --------------------------------------------------------------------------------------------------------

enum { SET_POINTS = 64, MOST_CHUNKS = 64 };

typedef struct force_work {
    const reduced_body *b;
    cubature_kernels    kernels;
    const double       *q; // blocks of eight poses
    int                 elements, chunks, blocks, set_elements;
    point_set          *sets;     // per worker
    double             *sums;     // per chunk: r x 8 blocks
    double             *smallest; // per chunk: 8 blocks
    int                *halvings; // per chunk: 8 blocks
} force_work;

static void force_task(void *context, int chunk, int worker) {
    force_work *w = context;
    point_set  *set = &w->sets[worker];
    size_t      poses = 8 * (size_t)w->blocks, r = (size_t)w->b->r;
    point_task  task = {.set = set, .constants = w->b->constants, .row_stride = poses};
    task.sums = w->sums + (size_t)chunk * poses * r;
    task.smallest = w->smallest + (size_t)chunk * poses;
    task.halvings = w->halvings + (size_t)chunk * poses;
    for (size_t t = 0; t < poses; t++) task.smallest[t] = INFINITY;
    int begin = (int)((long)w->elements * chunk / w->chunks), end = (int)((long)w->elements * (chunk + 1) / w->chunks);
    for (int first = begin; first < end; first += w->set_elements) {
        int count = end - first < w->set_elements ? end - first : w->set_elements;
        point_set_fill(set, w->b->body, reduced_body_rows(w->b), count, w->b->order + first);
        for (int group = 0; group < set->groups; group += SUM_GROUPS)
            for (int block = 0; block < w->blocks; block++) {
                task.first = 8 * (size_t)block;
                task.q = w->q + task.first * r;
                w->kernels.point_sums(&task, group,
                                      set->groups - group < SUM_GROUPS ? set->groups - group : SUM_GROUPS);
            }
    }
}

// Chunks in their order, whatever the number of threads.
static void gather(const force_work *w, int count, double *f, double *smallest, int *halvings) {
    size_t poses = 8 * (size_t)w->blocks, modes = (size_t)w->b->r, chunks = (size_t)w->chunks;
    for (size_t t = 0; t < (size_t)count; t++) {
        double least = INFINITY;
        int    most = 0;
        for (size_t l = 0; l < modes; l++) {
            double sum = 0;
            for (size_t chunk = 0; chunk < chunks; chunk++) sum += w->sums[(chunk * modes + l) * poses + t];
            f[t * modes + l] = sum;
        }
        for (size_t chunk = 0; chunk < chunks; chunk++) {
            if (!(w->smallest[chunk * poses + t] >= least)) least = w->smallest[chunk * poses + t];
            if (w->halvings[chunk * poses + t] > most) most = w->halvings[chunk * poses + t];
        }
        if (smallest) smallest[t] = least;
        if (halvings) halvings[t] = most;
    }
}

fem_status pose_forces(const reduced_body *b, int count, const double *q, double *f, double *smallest, int *halvings) {
    fem_status status = FEM_OK;
    int        elements = b->count, points = points_per_element(b->body);
    force_work w = {.b = b, .elements = elements, .kernels = cubature_choose_kernels()};
    double    *packed = NULL;
    if (count < 1) return fem_fail(FEM_BAD_INPUT, "cubature: no training pose");
    size_t poses = ((size_t)count + 7) / 8 * 8;
    w.blocks = (int)(poses / 8);
    w.set_elements = SET_POINTS / points > 4 ? SET_POINTS / points : 4;
    w.chunks = elements / SET_POINTS + 1 < MOST_CHUNKS ? elements / SET_POINTS + 1 : MOST_CHUNKS;
    w.sums = fem_calloc((size_t)w.chunks * poses, (size_t)b->r * sizeof *w.sums);
    w.smallest = fem_alloc((size_t)w.chunks * poses, sizeof *w.smallest);
    w.halvings = fem_calloc((size_t)w.chunks * poses, sizeof *w.halvings);
    w.q = packed = pack_poses(b->r, count, q);
    if (!w.sums || !w.smallest || !w.halvings || !packed) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the forces of %d poses", count);
        goto done;
    }
    FEM_TRY(create_sets(&w.sets, b, w.set_elements));
    fem_parallel_for(w.chunks, force_task, &w);
    gather(&w, count, f, smallest, halvings);
done:
    destroy_sets(w.sets);
    fem_free(w.sums);
    fem_free(w.smallest);
    fem_free(w.halvings);
    fem_free(packed);
    return status;
}

fem_status cubature_pose_forces(const fem_body *body, int r, const double *U, int count, const double *q, double *f,
                                double *smallest) {
    reduced_body b = {0};
    fem_status   status = reduced_body_create(&b, body, r, U);
    if (status == FEM_OK) status = pose_forces(&b, count, q, f, smallest, NULL);
    reduced_body_destroy(&b);
    return status;
}
