// The inverse of the stiffness matrix, also of a body that is not held.
#include "libmodes/internal.h"

#include <string.h>

void modes_inverse_destroy(modes_inverse *inverse) {
    if (!inverse) return;
    fem_free(inverse->fixed);
    fem_free(inverse->R);
    fem_free(inverse->BR);
    fem_free(inverse->work);
    fem_factor_destroy(inverse->factor);
    fem_amg_destroy(inverse->amg);
    fem_free(inverse);
}

// R comes mass-orthonormal; for the plain border its columns are made orthonormal, which keeps their span.
static fem_status prepare_border(modes_inverse *inverse) {
    int    n = inverse->n, r = inverse->report.rigid;
    size_t size = (size_t)n * (size_t)r;
    inverse->BR = fem_alloc(size, sizeof *inverse->BR);
    inverse->work = fem_alloc((size_t)r, sizeof *inverse->work);
    if (!inverse->BR || !inverse->work) return fem_fail(FEM_NO_MEMORY, "no memory for %d rigid motions", r);
    if (inverse->border == MODES_BORDER_MASS) {
        fem_sparse_multiply(inverse->problem->M, r, inverse->R, inverse->BR);
        return FEM_OK;
    }
    for (int pass = 0; pass < 2; pass++)
        for (int j = 0; j < r; j++) {
            double *x = inverse->R + (size_t)j * (size_t)n;
            for (int k = 0; k < j; k++) {
                double *y = inverse->R + (size_t)k * (size_t)n;
                dense_axpy(n, -dense_dot(n, x, y), y, x);
            }
            dense_scale(n, 1 / dense_norm(n, x), x);
        }
    memcpy(inverse->BR, inverse->R, size * sizeof *inverse->R);
    return FEM_OK;
}

static fem_status factorise(modes_inverse *inverse) {
    fem_status           status = FEM_OK;
    const modes_problem *problem = inverse->problem;
    unsigned char       *held = fem_copy(inverse->fixed, (size_t)inverse->n, 1);
    if (!held) return fem_fail(FEM_NO_MEMORY, "no memory for the supports of %d degrees of freedom", inverse->n);
    if (inverse->report.rigid > 0) FEM_TRY(fem_factor_hold(inverse->n, inverse->report.rigid, inverse->R, held));
    FEM_TRY(fem_factor_create(&inverse->factor, problem->K, held));
    FEM_TRY(fem_factor_factorise(inverse->factor, problem->K));
    inverse->report.factor = fem_factor_get_report(inverse->factor);
    inverse->report.bytes = inverse->report.factor.bytes;
done:
    fem_free(held);
    return status;
}

static fem_status make_multigrid(modes_inverse *inverse, const modes_inverse_options *o) {
    const modes_problem *problem = inverse->problem;
    fem_amg_options      options = {.tolerance = o->tolerance, .max_iterations = o->max_iterations};
    fem_status           status = fem_amg_create(&inverse->amg, problem->K, problem->mesh->vertices, inverse->fixed,
                                                 inverse->report.rigid, inverse->R, &options);
    if (status != FEM_OK) return status;
    inverse->report.amg = fem_amg_get_report(inverse->amg);
    inverse->report.bytes = inverse->report.amg.bytes;
    return FEM_OK;
}

modes_inverse_options modes_inverse_default_options(void) {
    return (modes_inverse_options){.tolerance = 1e-8, .max_iterations = 500, .solves = 30};
}

// Both take as long with 35 right-hand sides at 71,000 dofs, 53 at 138,000, 75 at 267,000, 170 at 645,000. Below 60,000
// a factor takes a second at most, and is exact.
modes_inverse_method modes_inverse_choose(int free_dofs, int solves) {
    return free_dofs > 60000 && solves < 15 + free_dofs / 4000.0 ? MODES_INVERSE_AMG : MODES_INVERSE_FACTOR;
}

static fem_status check_options(const modes_inverse_options *o) {
    if (!(o->tolerance > 0 && o->tolerance < 1))
        return fem_fail(FEM_BAD_INPUT, "inverse.tolerance is %g, expected 0 < tolerance < 1", o->tolerance);
    if (o->max_iterations < 1)
        return fem_fail(FEM_BAD_INPUT, "inverse.max_iterations is %d, expected > 0", o->max_iterations);
    if (o->solves < 1) return fem_fail(FEM_BAD_INPUT, "inverse.solves is %d, expected > 0", o->solves);
    return FEM_OK;
}

static int root_of(const int *parent, int i) {
    while (parent[i] != i) i = parent[i];
    return i;
}

// Components of the mesh between which K has entries, as of stitches, are one.
static fem_status join_components(const fem_sparse *K, int *component, int components) {
    int *parent = fem_alloc((size_t)components, sizeof *parent);
    if (!parent) return fem_fail(FEM_NO_MEMORY, "no memory for %d components", components);
    for (int c = 0; c < components; c++) parent[c] = c;
    for (int i = 0; i < K->n; i++)
        for (int k = K->row_start[i]; k < K->row_start[i + 1]; k++) {
            int a = component[i], b = component[K->column[k]];
            if (a < 0 || b < 0 || a == b) continue;
            a = root_of(parent, a), b = root_of(parent, b);
            parent[a > b ? a : b] = a < b ? a : b;
        }
    for (int i = 0; i < K->n; i++)
        if (component[i] >= 0) component[i] = root_of(parent, component[i]);
    fem_free(parent);
    return FEM_OK;
}

fem_status modes_inverse_create_with(modes_inverse **result, const modes_problem *problem,
                                     const modes_inverse_options *options) {
    fem_status     status = check_options(options);
    int            vertices = problem->mesh->vertex_count, components = 0;
    modes_inverse *inverse = NULL;
    int           *component = NULL;
    if (status != FEM_OK) return status;
    inverse = fem_calloc(1, sizeof *inverse);
    component = fem_alloc((size_t)vertices, sizeof *component);
    if (!inverse || !component) goto no_memory;
    *inverse = (modes_inverse){.problem = problem, .border = options->border, .n = 3 * vertices};
    inverse->fixed = fem_calloc((size_t)inverse->n, 1);
    if (!inverse->fixed) goto no_memory;
    modes_inverse_report *report = &inverse->report;
    FEM_TRY(fem_mesh_components(problem->mesh, component, &components));
    FEM_TRY(join_components(problem->K, component, components));
    for (int i = 0; i < inverse->n; i++) {
        inverse->fixed[i] = (problem->fixed && problem->fixed[i]) || component[i / 3] < 0;
        report->free_dofs += !inverse->fixed[i];
    }
    if (report->free_dofs == 0) {
        status = fem_fail(FEM_BAD_INPUT, "every degree of freedom is fixed: there is nothing that could vibrate");
        goto done;
    }
    FEM_TRY(modes_rigid_of_components(problem, inverse->fixed, component, components, &inverse->R, &report->rigid));
    if (report->rigid > 0) FEM_TRY(prepare_border(inverse));
    report->method = options->method;
    if (report->method == MODES_INVERSE_AUTOMATIC)
        report->method = modes_inverse_choose(report->free_dofs, options->solves);
    double begin = fem_seconds();
    if (report->free_dofs > report->rigid)
        FEM_TRY(modes_explain_singular(problem, report->method == MODES_INVERSE_AMG ? make_multigrid(inverse, options)
                                                                                    : factorise(inverse)));
    report->seconds_factor = fem_seconds() - begin;
    goto done;
no_memory:
    status = fem_fail(FEM_NO_MEMORY, "no memory for the modes of %d vertices", vertices);
done:
    fem_free(component);
    if (status == FEM_OK)
        *result = inverse;
    else
        modes_inverse_destroy(inverse);
    return status;
}

fem_status modes_inverse_create(modes_inverse **result, const modes_problem *problem, modes_border border) {
    modes_inverse_options options = modes_inverse_default_options();
    options.border = border;
    options.method = MODES_INVERSE_FACTOR;
    return modes_inverse_create_with(result, problem, &options);
}

modes_inverse_report modes_inverse_get_report(const modes_inverse *inverse) { return inverse->report; }

void modes_inverse_project(const modes_inverse *inverse, int columns, double *X) {
    int n = inverse->n, r = inverse->report.rigid;
    for (int c = 0; c < columns; c++) {
        double *x = X + (size_t)c * (size_t)n;
        for (int i = 0; i < n; i++)
            if (inverse->fixed[i]) x[i] = 0;
        if (r == 0) continue;
        dense_gemv_t_set(n, r, 1, inverse->BR, x, inverse->work); // x -= R (B R)^T x
        dense_gemv_add(n, r, -1, inverse->R, inverse->work, x);
    }
}

fem_status modes_inverse_solve(modes_inverse *inverse, int columns, double *B, double *X) {
    int n = inverse->n, r = inverse->report.rigid;
    for (int c = 0; r > 0 && c < columns; c++) { // b -= B R R^T b
        double *b = B + (size_t)c * (size_t)n;
        dense_gemv_t_set(n, r, 1, inverse->R, b, inverse->work);
        dense_gemv_add(n, r, -1, inverse->BR, inverse->work, b);
    }
    fem_status            status = FEM_OK;
    modes_inverse_report *report = &inverse->report;
    double                begin = fem_seconds();
    if (inverse->amg) {
        status = modes_explain_singular(inverse->problem, fem_amg_solve(inverse->amg, columns, B, X));
        report->amg = fem_amg_get_report(inverse->amg);
        if (report->amg.iterations > report->iterations) report->iterations = report->amg.iterations;
        report->error = fmax(report->error, report->amg.error);
    } else if (inverse->factor) {
        status = fem_factor_solve(inverse->factor, columns, B, X);
    } else { // a body that can only move rigidly
        memset(X, 0, (size_t)columns * (size_t)n * sizeof *X);
    }
    report->seconds_solve += fem_seconds() - begin;
    report->solves += columns;
    if (status == FEM_OK && r > 0) modes_inverse_project(inverse, columns, X);
    return status;
}
