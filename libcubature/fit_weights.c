// Weights of given elements, and modal cubature, which needs nothing else: evenly spread elements, as many as the error
// asks for, and r independent nonnegative least-squares problems, solved in parallel (P0 section 5).
#include "libcubature/fit.h"

#include <math.h>
#include <string.h>

void fitted_destroy(fitted *f) {
    fem_free(f->elements);
    fem_free(f->weights);
    *f = (fitted){0};
}

double fit_fraction(double error, double target) {
    if (!(error > 0)) return 1;
    return fmin(1, fmax(0, log(error) / log(target)));
}

static fem_status fitted_allocate(fitted *f, int count, int per_element, bool modal) {
    *f = (fitted){.count = count, .modal = modal};
    f->elements = fem_alloc((size_t)count, sizeof *f->elements);
    f->weights = fem_calloc((size_t)count, (size_t)per_element * sizeof *f->weights);
    if (f->elements && f->weights) return FEM_OK;
    fitted_destroy(f);
    return fem_fail(FEM_NO_MEMORY, "no memory for %d weights", count);
}

// Leaves out elements whose weights are all zero.
static void drop_unused(fitted *f, int per_element) {
    int    kept = 0;
    size_t width = (size_t)per_element;
    for (int i = 0; i < f->count; i++) {
        bool used = false;
        for (size_t j = 0; j < width; j++) used = used || f->weights[(size_t)i * width + j] > 0;
        if (!used) continue;
        f->elements[kept] = f->elements[i];
        memmove(f->weights + (size_t)kept * width, f->weights + (size_t)i * width, width * sizeof *f->weights);
        kept++;
    }
    f->count = kept;
}

typedef struct modal_work {
    const trainer *t;
    int            count;
    const double  *A;
    size_t         work_size;
    double        *work;            // per worker
    double        *x;               // r x count
    double        *residual, *size; // r: |A w - b|, |b| of each mode
    fem_status    *status;          // r
} modal_work;

static void modal_task(void *context, int mode, int worker) {
    modal_work           *w = context;
    const trainer        *t = w->t;
    cubature_nnls_options options = cubature_nnls_default_options();
    cubature_nnls_report  report = {0};
    const double         *b = t->b + (size_t)mode * t->stride;
    w->status[mode] =
        cubature_nnls((int)t->stride, w->count, w->A + (size_t)mode * t->stride, (int)t->rows, b, &options,
                      w->x + (size_t)mode * (size_t)w->count, w->work + (size_t)worker * w->work_size, &report);
    w->size[mode] = dense_norm((int)t->stride, b);
    w->residual[mode] = report.residual * w->size[mode];
}

fem_status fit_modal_weights(const trainer *t, int count, const int *elements, fitted *result) {
    fem_status status = FEM_OK;
    size_t     r = (size_t)t->r, n = (size_t)count, workers = (size_t)fem_threads();
    modal_work w = {.t = t, .count = count, .work_size = cubature_nnls_work((int)t->stride, count)};
    fitted     f = {0};
    double    *A = fem_alloc(n * t->rows, sizeof *A);
    w.work = fem_alloc(workers * w.work_size, sizeof *w.work);
    w.x = fem_alloc(r * n, sizeof *w.x);
    w.residual = fem_alloc(2 * r, sizeof *w.residual);
    w.status = fem_alloc(r, sizeof *w.status);
    if (!A || !w.work || !w.x || !w.residual || !w.status) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a training matrix of %zu x %d", t->rows, count);
        goto done;
    }
    FEM_TRY(fitted_allocate(&f, count, t->r, true));
    w.A = A, w.size = w.residual + r;
    trainer_columns(t, count, elements, A);
    fem_parallel_for(t->r, modal_task, &w);
    double sum = 0, shares = 0;
    int    counted = 0;
    for (size_t l = 0; l < r; l++) {
        if (w.status[l] != FEM_OK) {
            status = fem_fail(w.status[l], "cubature: the weights of mode %zu of %zu did not converge", l + 1, r);
            goto done;
        }
        sum += w.residual[l] * w.residual[l];
        if (w.size[l] > 0) shares += w.residual[l] / w.size[l], counted++;
        for (size_t i = 0; i < n; i++) f.weights[i * r + l] = w.x[l * n + i];
    }
    memcpy(f.elements, elements, n * sizeof *elements);
    f.error = sqrt(sum) / t->b_norm;
    f.modal_error = counted > 0 ? shares / counted : 0;
    drop_unused(&f, t->r);
    *result = f;
    f = (fitted){0};
done:
    fem_free(A);
    fem_free(w.work);
    fem_free(w.x);
    fem_free(w.residual);
    fem_free(w.status);
    fitted_destroy(&f);
    return status;
}

fem_status fit_single_weights(const trainer *t, int count, const int *elements, fitted *result) {
    fem_status            status = FEM_OK;
    size_t                n = (size_t)count;
    fitted                f = {0};
    cubature_nnls_options options = cubature_nnls_default_options();
    cubature_nnls_report  report;
    double               *A = fem_alloc(n * t->rows, sizeof *A),
           *work = fem_alloc(cubature_nnls_work((int)t->rows, count), sizeof *work);
    if (!A || !work) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a training matrix of %zu x %d", t->rows, count);
        goto done;
    }
    FEM_TRY(fitted_allocate(&f, count, 1, false));
    trainer_columns(t, count, elements, A);
    memcpy(f.elements, elements, n * sizeof *elements);
    FEM_TRY(cubature_nnls((int)t->rows, count, A, (int)t->rows, t->b, &options, f.weights, work, &report));
    f.error = report.residual;
    drop_unused(&f, 1);
    *result = f;
    f = (fitted){0};
done:
    fem_free(A);
    fem_free(work);
    fitted_destroy(&f);
    return status;
}

// More and more elements until the error is reached, then back between the last two counts.
fem_status fit_modal(const trainer *t, const cubature_training_options *o, const fem_progress *progress,
                     fitted *result) {
    fem_status      status = FEM_OK;
    const fem_mesh *mesh = fem_body_mesh(t->body);
    int             most = o->elements > 0 && o->elements < mesh->element_count ? o->elements : mesh->element_count;
    int             wanted = 4, below = 0, count = 0;
    fitted          f = {0}, best = {0};
    int            *elements = fem_alloc((size_t)mesh->element_count, sizeof *elements);
    if (!elements) return fem_fail(FEM_NO_MEMORY, "no memory for a sample of elements");
    if (most > 2 * t->poses / 3 + 1)
        most = 2 * t->poses / 3 + 1; // fewer poses would not determine the weights (P0 6.2)
    if (wanted > most) wanted = most;
    for (bool reached = false;;) {
        FEM_TRY(cubature_sample_elements(mesh, wanted, elements, &count));
        FEM_TRY(fit_modal_weights(t, count, elements, &f));
        bool good = f.error <= o->error;
        if (good || !best.elements || (best.error > o->error && f.error < best.error)) {
            fitted_destroy(&best);
            best = f;
        } else {
            fitted_destroy(&f);
        }
        f = (fitted){0};
        FEM_TRY(fem_progress_report(progress, "cubature weights", fit_fraction(best.error, o->error)));
        reached = reached || good;
        if (!reached) {
            below = wanted;
            if (wanted == most) break;
            wanted = wanted + wanted / 2 + 1 < most ? wanted + wanted / 2 + 1 : most;
        } else {
            if (!good) below = wanted;
            if (best.count - below <= 1 + best.count / 12) break;
            wanted = (best.count + below) / 2;
        }
    }
    *result = best;
    best = (fitted){0};
done:
    fem_free(elements);
    fitted_destroy(&best);
    fitted_destroy(&f);
    return status;
}
