// How well the basis of a class shows the modes of the whole body that it was made with.
#include "libsolver/class_internal.h"

#include <string.h>

// Of the energy of each field in the piece, phi.K phi, what is left after the best fit by the columns, b.G^-1 b with
// G = U^T K U, b = U^T K phi. Rigid motions have no energy, so that the fit may use them too.
fem_status class_measure_seeds(solver_class *c, const fem_sparse *K, int count, const double *fields) {
    fem_status status = FEM_OK;
    size_t     n = (size_t)c->basis.n, r = (size_t)c->basis.r, all = (size_t)count;
    double    *G = fem_alloc(r * r, sizeof *G), *b = fem_alloc(r * all, sizeof *b), *product = NULL;
    product = fem_alloc(n * (r > all ? r : all), sizeof *product);
    if (!G || !b || !product) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %zu modes", r);
        goto done;
    }
    double *left = c->whole + all;
    fem_sparse_multiply(K, count, fields, product);
    for (size_t k = 0; k < all; k++) left[k] = dense_dot((int)n, fields + n * k, product + n * k);
    dense_gemm(true, false, (int)r, count, (int)n, 1, c->basis.U, product, 0, b);
    fem_sparse_multiply(K, (int)r, c->basis.U, product);
    dense_gemm(true, false, (int)r, (int)r, (int)n, 1, c->basis.U, product, 0, G);
    for (size_t i = 0; i < r; i++) G[i * (r + 1)] *= 1 + 1e-10; // columns may nearly depend on each other
    if (dense_cholesky((int)r, G) == FEM_OK) {
        memcpy(product, b, r * all * sizeof *b);
        dense_cholesky_solve((int)r, G, count, product);
        for (size_t k = 0; k < all; k++) {
            left[k] -= dense_dot((int)r, b + r * k, product + r * k);
            if (left[k] < 0) left[k] = 0;
        }
        c->whole_count = count;
    }
done:
    fem_free(G), fem_free(b), fem_free(product);
    return status;
}
