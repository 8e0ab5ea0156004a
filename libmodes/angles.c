// How much of one basis another one has: principal angles and coverage, in the mass inner product.
#include "libmodes/krylov_internal.h"

#include <string.h>

// C = A^T M B, and the part of B that A does not have: E = B - A C (n x b).
static fem_status split(const modes_mass *mass, int a, const double *A, int b, const double *B, double *C, double *E) {
    int        n = 3 * mass->M->n;
    fem_status status = FEM_OK;
    modes_mass_multiply(mass, b, B, E);
    FEM_TRY(tall_inner(n, a, b, A, E, C));
    memcpy(E, B, (size_t)n * (size_t)b * sizeof *E);
    tall_add(n, a, b, -1, A, C, E);
done:
    return status;
}

fem_status modes_principal_angles(const modes_problem *problem, int a, const double *A, int b, const double *B,
                                  double *angles) {
    if (b > a) return modes_principal_angles(problem, b, B, a, A, angles);
    fem_status status = FEM_OK;
    modes_mass mass = {0};
    size_t     n = 3 * (size_t)problem->M->n;
    double    *C = fem_alloc((size_t)a * (size_t)b, sizeof *C), *E = fem_alloc(n * (size_t)b, sizeof *E);
    double    *G = fem_alloc((size_t)b * (size_t)b, sizeof *G);
    double    *sine = fem_alloc((size_t)b, sizeof *sine), *cosine = fem_alloc((size_t)b, sizeof *cosine);
    if (!C || !E || !G || !sine || !cosine) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the angles between %d and %d columns", a, b);
        goto done;
    }
    FEM_TRY(modes_mass_create(&mass, problem->M));
    FEM_TRY(split(&mass, a, A, b, B, C, E));
    FEM_TRY(modes_mass_gram(&mass, 0, b, E, G)); // sin^2, ascending
    FEM_TRY(dense_symmetric_eigen(b, G, sine));
    FEM_TRY(dense_svd(a, b, C, cosine, NULL)); // descending
    for (int j = 0; j < b; j++) {
        double s = sqrt(fmax(sine[j], 0));
        angles[j] = s < 0.7 ? asin(s) : acos(fmin(cosine[j], 1));
    }
done:
    modes_mass_destroy(&mass);
    fem_free(C), fem_free(E), fem_free(G), fem_free(sine), fem_free(cosine);
    return status;
}

fem_status modes_coverage(const modes_problem *problem, int a, const double *A, int b, const double *B,
                          double *covered) {
    fem_status status = FEM_OK;
    modes_mass mass = {0};
    double    *C = fem_alloc((size_t)a * (size_t)b, sizeof *C);
    double    *E = fem_alloc(3 * (size_t)problem->M->n * (size_t)b, sizeof *E);
    if (!C || !E) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the coverage of %d columns", b);
        goto done;
    }
    FEM_TRY(modes_mass_create(&mass, problem->M));
    FEM_TRY(split(&mass, a, A, b, B, C, E));
    for (int j = 0; j < b; j++) covered[j] = dense_dot(a, C + (size_t)j * (size_t)a, C + (size_t)j * (size_t)a);
done:
    modes_mass_destroy(&mass);
    fem_free(C), fem_free(E);
    return status;
}
