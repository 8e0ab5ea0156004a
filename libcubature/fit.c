// From poses to a rule: errors of rules at poses, and the fits of all methods.
#include "libcubature/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- errors --------------------------------------------------------------------------------------------------------

double pose_error(const cubature_forces *forces, const double *q, const double *f, double *work) {
    double *approximate = work, norm = dense_norm(forces->r, f);
    if (!(norm > 0) || !isfinite(norm)) return -1;
    forces->evaluate(forces->model, q, NULL, approximate, NULL, work + forces->r);
    dense_axpy(forces->r, -1, f, approximate);
    return dense_norm(forces->r, approximate) / norm;
}

double *error_work(const cubature_forces *forces) {
    return fem_alloc(forces->work + (size_t)forces->r, sizeof(double));
}

double rule_error(const cubature_rule *rule, const cubature_poses *poses, bool balanced, const double *modes) {
    cubature_forces forces = cubature_rule_forces(rule);
    size_t          r = (size_t)rule->r;
    double         *work = error_work(&forces), *sums = fem_calloc(2 * r, sizeof *sums), top = 0, bottom = 0;
    double          d[CUBATURE_MOST_MODES], g[CUBATURE_MOST_MODES];
    int             used = 0;
    for (int t = 0; work && sums && t < poses->count; t++) {
        const double *f = poses->f + (size_t)t * r, norm = dense_norm(rule->r, f);
        if (pose_error(&forces, poses->q + (size_t)t * r, f, work) < 0) continue;
        used++;
        memcpy(d, work, r * sizeof *d); // f~ - f
        memcpy(g, f, r * sizeof *g);
        if (modes)
            dense_gemv_t_set(rule->r, rule->r, 1, modes, work, d), dense_gemv_t_set(rule->r, rule->r, 1, modes, f, g);
        for (size_t l = 0; l < r; l++) {
            sums[l] += d[l] * d[l] / (norm * norm);
            sums[r + l] += g[l] * g[l] / (norm * norm);
        }
    }
    for (size_t l = 0; work && sums && l < r; l++) {
        double size = balanced && has_force(sums[r + l], used) ? sums[r + l] : 1;
        if (!(sums[r + l] > 0)) continue;
        top += sums[l] / size;
        bottom += sums[r + l] / size;
    }
    fem_free(work);
    fem_free(sums);
    return bottom > 0 ? sqrt(top / bottom) : NAN;
}

double cubature_rule_error(const cubature_rule *rule, const cubature_poses *poses, bool balanced) {
    return rule_error(rule, poses, balanced, NULL);
}

// ---- fits ----------------------------------------------------------------------------------------------------------

typedef struct weighted_element {
    int element, place;
} weighted_element;

static int compare_elements(const void *a, const void *b) {
    return ((const weighted_element *)a)->element - ((const weighted_element *)b)->element;
}

fem_status rule_of(cubature_rule *rule, const trainer *t, const fitted *f) {
    fem_status        status = FEM_OK;
    size_t            width = f->modal ? (size_t)t->r : 1, n = (size_t)f->count;
    weighted_element *order = fem_alloc(n, sizeof *order);
    int              *elements = fem_alloc(n, sizeof *elements);
    double           *weights = fem_alloc(n, width * sizeof *weights);
    if (!order || !elements || !weights) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a rule of %d elements", f->count);
        goto done;
    }
    for (int i = 0; i < f->count; i++) order[i] = (weighted_element){.element = f->elements[i], .place = i};
    qsort(order, n, sizeof *order, compare_elements);
    for (size_t i = 0; i < n; i++) {
        elements[i] = order[i].element;
        memcpy(weights + i * width, f->weights + (size_t)order[i].place * width, width * sizeof *weights);
    }
    FEM_TRY(cubature_rule_create(rule, t->body, t->r, t->reduced->U, f->count, elements, f->modal, weights));
done:
    fem_free(order);
    fem_free(elements);
    fem_free(weights);
    return status;
}

static void describe(cubature_training_report *report, const trainer *t, const fitted *f, double seconds) {
    if (!report) return;
    report->poses = t->poses;
    report->dropped = t->dropped;
    report->elements = f->count;
    report->fit_error = f->error;
    report->modal_error = f->modal_error;
    report->seconds_fit = seconds;
}

fem_status fit_from(cubature_rule *rule, const trainer *t, const cubature_training_options *options,
                    const fem_progress *progress, const fitted *start, fitted *f, cubature_training_report *report) {
    fem_status status = FEM_OK;
    double     begun = fem_seconds();
    FEM_TRY(options->method == CUBATURE_MODAL       ? fit_modal(t, options, progress, f)
            : options->method == CUBATURE_EMPIRICAL ? fit_empirical(t, options, progress, f)
                                                    : fit_optimized(t, options, progress, start, f));
    if (f->count == 0) {
        status = fem_fail(FEM_NO_CONVERGENCE, "cubature: no element has a force along those of the training poses");
        goto done;
    }
    FEM_TRY(rule_of(rule, t, f));
    describe(report, t, f, fem_seconds() - begun);
    if (report) report->reached = f->error <= options->error;
done:
    return status;
}

fem_status fit_rule(cubature_rule *rule, const reduced_body *reduced, const cubature_poses *poses,
                    const cubature_training_options *options, const fem_progress *progress,
                    cubature_training_report *report) {
    fem_status status = FEM_OK;
    trainer    t = {0};
    fitted     f = {0};
    FEM_TRY(cubature_training_check(options));
    FEM_TRY(trainer_create(&t, reduced, poses, options->balanced, options->method == CUBATURE_MODAL));
    FEM_TRY(fit_from(rule, &t, options, progress, NULL, &f, report));
done:
    fitted_destroy(&f);
    trainer_destroy(&t);
    return status;
}

fem_status cubature_fit(cubature_rule *rule, const fem_body *body, int r, const double *U, const cubature_poses *poses,
                        const cubature_training_options *options, const fem_progress *progress,
                        cubature_training_report *report) {
    reduced_body reduced = {0};
    fem_status   status = reduced_body_create(&reduced, body, r, U);
    if (status == FEM_OK) status = fit_rule(rule, &reduced, poses, options, progress, report);
    reduced_body_destroy(&reduced);
    return status;
}

fem_status fit_weights(cubature_rule *rule, const reduced_body *reduced, const cubature_poses *poses, int count,
                       const int *elements, bool modal, bool balanced, cubature_training_report *report) {
    fem_status status = FEM_OK;
    trainer    t = {0};
    fitted     f = {0};
    double     begun = fem_seconds();
    FEM_TRY(trainer_create(&t, reduced, poses, balanced, modal));
    FEM_TRY(modal ? fit_modal_weights(&t, count, elements, &f) : fit_single_weights(&t, count, elements, &f));
    if (f.count == 0) {
        status = fem_fail(FEM_NO_CONVERGENCE, "cubature: no element has a force along those of the training poses");
        goto done;
    }
    FEM_TRY(rule_of(rule, &t, &f));
    describe(report, &t, &f, fem_seconds() - begun);
done:
    fitted_destroy(&f);
    trainer_destroy(&t);
    return status;
}

fem_status cubature_fit_weights(cubature_rule *rule, const fem_body *body, int r, const double *U,
                                const cubature_poses *poses, int count, const int *elements, bool modal, bool balanced,
                                cubature_training_report *report) {
    reduced_body reduced = {0};
    fem_status   status = reduced_body_create(&reduced, body, r, U);
    if (status == FEM_OK) status = fit_weights(rule, &reduced, poses, count, elements, modal, balanced, report);
    reduced_body_destroy(&reduced);
    return status;
}
