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

fem_status modes_inverse_create(modes_inverse **result, const modes_problem *problem, modes_border border) {
    fem_status     status = FEM_OK;
    int            vertices = problem->mesh->vertex_count, components = 0;
    modes_inverse *inverse = fem_calloc(1, sizeof *inverse);
    int           *component = fem_alloc((size_t)vertices, sizeof *component);
    unsigned char *held = fem_alloc(3 * (size_t)vertices, 1);
    if (!inverse || !component || !held) goto no_memory;
    *inverse = (modes_inverse){.problem = problem, .border = border, .n = 3 * vertices};
    inverse->fixed = fem_calloc((size_t)inverse->n, 1);
    if (!inverse->fixed) goto no_memory;
    modes_inverse_report *report = &inverse->report;
    FEM_TRY(fem_mesh_components(problem->mesh, component, &components));
    for (int i = 0; i < inverse->n; i++) {
        inverse->fixed[i] = (problem->fixed && problem->fixed[i]) || component[i / 3] < 0;
        report->free_dofs += !inverse->fixed[i];
    }
    if (report->free_dofs == 0) {
        status = fem_fail(FEM_BAD_INPUT, "every degree of freedom is fixed: there is nothing that could vibrate");
        goto done;
    }
    FEM_TRY(modes_rigid_of_components(problem, inverse->fixed, component, components, &inverse->R, &report->rigid));
    memcpy(held, inverse->fixed, (size_t)inverse->n);
    if (report->rigid > 0) {
        FEM_TRY(prepare_border(inverse));
        FEM_TRY(fem_factor_hold(inverse->n, report->rigid, inverse->R, held));
    }
    double begin = fem_seconds();
    if (report->free_dofs > report->rigid) {
        FEM_TRY(fem_factor_create(&inverse->factor, problem->K, held));
        FEM_TRY(fem_factor_factorise(inverse->factor, problem->K));
        report->factor = fem_factor_get_report(inverse->factor);
    }
    report->seconds_factor = fem_seconds() - begin;
    goto done;
no_memory:
    status = fem_fail(FEM_NO_MEMORY, "no memory for the modes of %d vertices", vertices);
done:
    fem_free(component);
    fem_free(held);
    if (status == FEM_OK)
        *result = inverse;
    else
        modes_inverse_destroy(inverse);
    return status;
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
    fem_status status = fem_factor_solve(inverse->factor, columns, B, X);
    if (status == FEM_OK && r > 0) modes_inverse_project(inverse, columns, X);
    return status;
}
