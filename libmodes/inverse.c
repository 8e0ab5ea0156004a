// The inverse of the stiffness matrix, also of a body that is not held.
#include "libmodes/internal.h"

#include <string.h>

// Chooses as many degrees of freedom to hold as there are rigid motions: Gram-Schmidt on the rows of R, each time
// taking the row that is farthest from those taken before. For a free body these are three far-apart vertices (3-2-1).
static fem_status hold_rigid(const modes_inverse *inverse, unsigned char *held) {
    int n = inverse->n, r = inverse->rigid;
    double *rows = fem_alloc((size_t)n * (size_t)r, sizeof *rows); // row-major copy of R, what is left of each row
    if (!rows) return fem_fail(FEM_NO_MEMORY, "no memory to choose supports for %d rigid motions", r);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < r; j++)
            rows[(size_t)i * (size_t)r + (size_t)j] = inverse->R[(size_t)j * (size_t)n + (size_t)i];
    for (int step = 0; step < r; step++) {
        int best = -1;
        double largest = 0;
        for (int i = 0; i < n; i++) {
            double square = dense_dot(r, rows + (size_t)i * (size_t)r, rows + (size_t)i * (size_t)r);
            if (!held[i] && square > largest) largest = square, best = i;
        }
        if (best < 0) break; // cannot happen: the columns of R are independent
        held[best] = 1;
        double *row = rows + (size_t)best * (size_t)r;
        dense_scale(r, 1 / sqrt(largest), row);
        for (int i = 0; i < n; i++) {
            double *other = rows + (size_t)i * (size_t)r;
            if (i != best) dense_axpy(r, -dense_dot(r, row, other), row, other);
        }
        memset(row, 0, (size_t)r * sizeof *row);
    }
    fem_free(rows);
    return FEM_OK;
}

void modes_inverse_destroy(modes_inverse *inverse) {
    fem_free(inverse->fixed);
    fem_free(inverse->R);
    fem_free(inverse->MR);
    fem_free(inverse->work);
    fem_factor_destroy(inverse->factor);
    *inverse = (modes_inverse){0};
}

fem_status modes_inverse_create(modes_inverse *result, const modes_problem *problem) {
    fem_status status = FEM_OK;
    int vertices = problem->mesh->vertex_count, components = 0;
    modes_inverse inverse = {.problem = problem, .n = 3 * vertices};
    int *component = fem_alloc((size_t)vertices, sizeof *component);
    unsigned char *held = fem_alloc((size_t)inverse.n, 1);
    inverse.fixed = fem_calloc((size_t)inverse.n, 1);
    if (!component || !held || !inverse.fixed) goto no_memory;
    FEM_TRY(fem_mesh_components(problem->mesh, component, &components));
    for (int i = 0; i < inverse.n; i++) {
        inverse.fixed[i] = (problem->fixed && problem->fixed[i]) || component[i / 3] < 0;
        inverse.free_dofs += !inverse.fixed[i];
    }
    if (inverse.free_dofs == 0) {
        status = fem_fail(FEM_BAD_INPUT, "every degree of freedom is fixed: there is nothing that could vibrate");
        goto done;
    }
    FEM_TRY(modes_rigid_of_components(problem, inverse.fixed, component, components, &inverse.R, &inverse.rigid));
    memcpy(held, inverse.fixed, (size_t)inverse.n);
    if (inverse.rigid > 0) {
        inverse.MR = fem_alloc((size_t)inverse.n * (size_t)inverse.rigid, sizeof *inverse.MR);
        inverse.work = fem_alloc((size_t)inverse.rigid, sizeof *inverse.work);
        if (!inverse.MR || !inverse.work) goto no_memory;
        fem_sparse_multiply(problem->M, inverse.rigid, inverse.R, inverse.MR);
        FEM_TRY(hold_rigid(&inverse, held));
    }
    double begin = fem_seconds();
    if (inverse.free_dofs > inverse.rigid) {
        FEM_TRY(fem_factor_create(&inverse.factor, problem->K, held));
        FEM_TRY(fem_factor_factorise(inverse.factor, problem->K));
    }
    inverse.seconds_factor = fem_seconds() - begin;
    *result = inverse;
    inverse = (modes_inverse){0};
    goto done;
no_memory:
    status = fem_fail(FEM_NO_MEMORY, "no memory for the modes of %d vertices", vertices);
done:
    fem_free(component);
    fem_free(held);
    modes_inverse_destroy(&inverse);
    return status;
}

void modes_inverse_project(const modes_inverse *inverse, double *x) {
    if (inverse->rigid == 0) return;
    dense_gemv_t_set(inverse->n, inverse->rigid, 1, inverse->MR, x, inverse->work);
    dense_gemv_add(inverse->n, inverse->rigid, -1, inverse->R, inverse->work, x);
}

fem_status modes_inverse_solve(modes_inverse *inverse, int columns, double *B, double *X) {
    size_t n = (size_t)inverse->n;
    for (int c = 0; inverse->rigid > 0 && c < columns; c++) { // b -= M R R^T b
        dense_gemv_t_set(inverse->n, inverse->rigid, 1, inverse->R, B + (size_t)c * n, inverse->work);
        dense_gemv_add(inverse->n, inverse->rigid, -1, inverse->MR, inverse->work, B + (size_t)c * n);
    }
    fem_status status = fem_factor_solve(inverse->factor, columns, B, X);
    for (int c = 0; status == FEM_OK && c < columns; c++) modes_inverse_project(inverse, X + (size_t)c * n);
    return status;
}
