#include "libsolver/solver.h"
#include <string.h>
fem_status solver_sketch(const fem_body *body, const unsigned char *fixed, const solver_options *options, int count,
                         const double *loads, const fem_progress *progress, double *u) {
    fem_status   status = FEM_OK;
    solver_full *solver = NULL;
    size_t       n = 3 * (size_t)fem_body_mesh(body)->vertex_count;
    FEM_TRY(solver_full_create(&solver, body, fixed, options));
    for (int i = 0; i < count; i++) {
        FEM_TRY(fem_progress_report(progress, "sketch", (double)i / count));
        FEM_TRY(solver_full_set_state(solver, 0, NULL, NULL));
        solver_full_set_load(solver, loads + n * (size_t)i);
        status = solver_full_static(solver, NULL);
        if (status != FEM_OK) {
            fem_fail_prefix(status, "load %d of the sketch: ", i + 1);
            goto done;
        }
        memcpy(u + n * (size_t)i, solver_full_state(solver)->u, n * sizeof *u);
    }
done:
    solver_full_destroy(solver);
    return status;
}
