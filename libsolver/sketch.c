// Static solutions of a recorded list of loads.
#include "libsolver/internal.h"

#include <stdio.h>
#include <string.h>

// Progress of one load within the list.
typedef struct nested_progress {
    const fem_progress *outer;
    int                 index, count;
} nested_progress;

static bool report_nested(void *context, const char *what, double fraction) {
    (void)what;
    const nested_progress *p = context;
    return fem_progress_report(p->outer, "sketch", (p->index + fraction) / p->count) == FEM_OK;
}

// What a start from elsewhere cannot mend.
static bool is_final(fem_status status) {
    return status == FEM_OK || status == FEM_STOPPED || status == FEM_NO_MEMORY || status == FEM_BAD_INPUT;
}

static fem_status solve_load(solver_full *solver, const double *load, const fem_progress *progress, bool warm,
                             int *restarts) {
    fem_status status = FEM_OK;
    solver_full_set_load(solver, load);
    if (warm) {
        status = solver_full_static(solver, progress);
        if (is_final(status)) return status;
        ++*restarts;
    }
    status = solver_full_set_state(solver, 0, NULL, NULL);
    return status == FEM_OK ? solver_full_static(solver, progress) : status;
}

// `solved` NULL: every load must have a solution.
static fem_status solve_list(const fem_body *body, const unsigned char *fixed, const solver_options *options, int count,
                             const double *loads, const fem_progress *progress, double *shapes, int *solved,
                             solver_sketch_report *report) {
    fem_status   status = FEM_OK, first_failure = FEM_OK;
    size_t       n = 3 * (size_t)fem_body_mesh(body)->vertex_count;
    solver_full *solver = NULL;
    double       begin = fem_seconds();
    if (count < 1) return fem_fail(FEM_BAD_INPUT, "a list of %d loads, expected at least one", count);
    FEM_TRY(solver_full_create(&solver, body, fixed, options));
    for (int k = 0; k < count; k++) {
        nested_progress nested = {.outer = progress, .index = k, .count = count};
        fem_progress    inner = {.report = report_nested, .context = &nested};
        status = solve_load(solver, loads + (size_t)k * n, &inner, report->solved > 0, &report->restarts);
        if (status == FEM_OK) {
            memcpy(shapes + (size_t)report->solved * n, solver_full_state(solver)->u, n * sizeof *shapes);
            if (solved) solved[report->solved] = k;
            report->solved++;
            continue;
        }
        if (status == FEM_STOPPED || status == FEM_NO_MEMORY) goto done;
        fem_fail_prefix(status, "load %d of %d: ", k + 1, count);
        if (!solved) goto done;
        if (first_failure == FEM_OK) snprintf(report->message, sizeof report->message, "%s", fem_message());
        if (first_failure == FEM_OK) first_failure = status;
    }
    status = FEM_OK;
    if (report->solved == 0)
        status = fem_fail(first_failure, "none of %d loads has a solution; the first: %s", count, report->message);
    report->seconds = fem_seconds() - begin;
done:
    solver_full_destroy(solver);
    return status;
}

fem_status solver_sketch(const fem_body *body, const unsigned char *fixed, const solver_options *options, int count,
                         const double *loads, const fem_progress *progress, double *shapes) {
    solver_sketch_report report = {0};
    return solve_list(body, fixed, options, count, loads, progress, shapes, NULL, &report);
}

fem_status solver_sketch_solvable(const fem_body *body, const unsigned char *fixed, const solver_options *options,
                                  int count, const double *loads, const fem_progress *progress, double *shapes,
                                  int *solved, solver_sketch_report *report) {
    solver_sketch_report own = {0};
    fem_status           status = solve_list(body, fixed, options, count, loads, progress, shapes, solved, &own);
    if (status == FEM_OK && report) *report = own;
    return status;
}
