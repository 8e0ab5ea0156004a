// The training matrix, column by column.
#include "libcubature/trainer.h"

#include <math.h>
#include <string.h>

enum { SET_ELEMENTS = 8 };

void trainer_destroy(trainer *t) {
    fem_free(t->q);
    fem_free(t->scale);
    fem_free(t->mode_scale);
    fem_free(t->b);
    destroy_sets(t->sets);
    reduced_body_destroy(&t->turned);
    fem_free(t->W);
    *t = (trainer){0};
}

// The basis of the modes.
static fem_status turn(trainer *t) {
    const reduced_body *b = t->reduced;
    int                 n = 3 * fem_body_mesh(b->body)->vertex_count;
    t->W = fem_alloc((size_t)n, (size_t)b->r * sizeof *t->W);
    if (!t->W) return fem_fail(FEM_NO_MEMORY, "no memory for a basis of %d x %d", n, b->r);
    dense_gemm(false, false, n, b->r, b->r, 1, b->U, b->modes, 0, t->W);
    return reduced_body_create(&t->turned, b->body, b->r, t->W);
}

// y = modes^T x, or x as it is
static void turn_vector(const trainer *t, const double *x, double *y) {
    if (t->W)
        dense_gemv_t_set(t->r, t->r, 1, t->reduced->modes, x, y);
    else
        memcpy(y, x, (size_t)t->r * sizeof *y);
}

bool has_force(double squares, int poses) { return squares > 1e-20 * poses; }

static const reduced_body *body_of(const trainer *t) { return t->W ? &t->turned : t->reduced; }

fem_status trainer_create(trainer *result, const reduced_body *reduced, const cubature_poses *poses, bool balanced,
                          bool modal) {
    fem_status status = FEM_OK;
    int        r = reduced->r;
    trainer    t = {.reduced = reduced, .body = reduced->body, .r = r, .set_elements = SET_ELEMENTS};
    size_t     modes = (size_t)r;
    double    *used = fem_alloc((size_t)poses->count, modes * sizeof *used), turned[CUBATURE_MOST_MODES];
    t.stride = ((size_t)poses->count + 7) / 8 * 8;
    t.rows = t.stride * modes;
    t.scale = fem_calloc(t.stride, sizeof *t.scale);
    t.mode_scale = fem_alloc(modes, sizeof *t.mode_scale);
    t.b = fem_calloc(t.rows, sizeof *t.b);
    if (!used || !t.scale || !t.mode_scale || !t.b) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d training poses", poses->count);
        goto done;
    }
    if (reduced->modes && balanced && !modal) FEM_TRY(turn(&t));
    for (size_t p = 0; p < (size_t)poses->count; p++) {
        const double *f = poses->f + p * modes;
        double        norm = dense_norm(r, f);
        if (!(norm > 0) || !isfinite(norm) || !isfinite(1 / norm)) {
            t.dropped++;
            continue;
        }
        size_t at = (size_t)t.poses++;
        t.scale[at] = 1 / norm;
        turn_vector(&t, poses->q + p * modes, used + at * modes);
        turn_vector(&t, f, turned);
        for (size_t l = 0; l < modes; l++) t.b[l * t.stride + at] = turned[l] / norm;
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
        t.mode_scale[l] = balanced && has_force(size * size, t.poses) ? 1 / size : 1;
        dense_scale((int)t.stride, t.mode_scale[l], t.b + l * t.stride);
    }
    t.b_norm = dense_norm((int)t.rows, t.b);
    t.q = pack_poses(r, t.poses, used);
    if (!t.q) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d training poses", poses->count);
        goto done;
    }
    FEM_TRY(create_sets(&t.sets, reduced, SET_ELEMENTS));
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
                             .constants = t->reduced->constants,
                             .scale = t->scale,
                             .mode_scale = t->mode_scale,
                             .row_stride = t->stride,
                             .columns = columns};
    memset(A, 0, (size_t)count * t->rows * sizeof *A);
    for (int i = 0; i < count; i++) columns[i] = A + (size_t)i * t->rows;
    point_set_fill(set, t->body, reduced_body_rows(body_of(t)), count, elements);
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
