// The three makers of cubature_forces: polynomial, linear, and through the full mesh.
#include "libcubature/internal.h"

#include <pthread.h>
#include <string.h>

cubature_forces cubature_polynomial_forces(const cubature_polynomial *p) {
    return (cubature_forces){
        .r = p->r, .work = evaluate_work(p->r), .evaluate = cubature_choose_kernels().evaluate, .model = p};
}

// ---- linear --------------------------------------------------------------------------------------------------------

static void evaluate_linear(const void *model, const double *q, double *energy, double *f, double *K, double *work) {
    const cubature_linear *linear = model;
    double                *Kq = f ? f : work;
    if (f || energy) dense_gemv_set(linear->r, linear->r, 1, linear->K0, q, Kq);
    if (energy) *energy = dense_dot(linear->r, q, Kq) / 2;
    if (K) memcpy(K, linear->K0, (size_t)linear->r * (size_t)linear->r * sizeof *K);
}

cubature_forces cubature_linear_forces(const cubature_linear *linear) {
    return (cubature_forces){.r = linear->r, .work = (size_t)linear->r, .evaluate = evaluate_linear, .model = linear};
}

// ---- through the mesh ----------------------------------------------------------------------------------------------

struct cubature_full {
    const fem_body  *body;
    int              n, r;
    double          *U;
    fem_sparse       pattern; // of K; its values stand in the work space
    pthread_mutex_t *lock;    // a body sums its energy in memory of its own: one at a time
    pthread_mutex_t  own_lock;
};

void cubature_full_destroy(cubature_full *full) {
    if (!full) return;
    if (full->lock) pthread_mutex_destroy(full->lock);
    fem_sparse_destroy(&full->pattern);
    fem_free(full->U);
    fem_free(full);
}

fem_status cubature_full_create(cubature_full **result, const fem_body *body, int r, const double *U) {
    fem_status status = FEM_OK;
    int        n = 3 * fem_body_mesh(body)->vertex_count;
    if (r < 1 || r > n)
        return fem_fail(FEM_BAD_INPUT, "%d modes for a body of %d degrees of freedom: expected 1 to %d", r, n, n);
    cubature_full *full = fem_calloc(1, sizeof *full);
    if (!full) return fem_fail(FEM_NO_MEMORY, "no memory for reduced forces through the mesh");
    full->body = body, full->n = n, full->r = r;
    full->U = fem_copy(U, (size_t)n * (size_t)r, sizeof *U);
    if (!full->U) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a basis of %d x %d", n, r);
        goto done;
    }
    FEM_TRY(fem_body_matrix(body, &full->pattern));
    fem_free(full->pattern.value);
    full->pattern.value = NULL;
    if (pthread_mutex_init(&full->own_lock, NULL) != 0) {
        status = fem_fail(FEM_NO_MEMORY, "the system has no lock left");
        goto done;
    }
    full->lock = &full->own_lock;
done:
    if (status == FEM_OK)
        *result = full;
    else
        cubature_full_destroy(full);
    return status;
}

static void evaluate_full(const void *model, const double *q, double *energy, double *f, double *K, double *work) {
    const cubature_full *full = model;
    int                  n = full->n, r = full->r;
    size_t               length = (size_t)n;
    fem_sparse           stiffness = full->pattern;
    double              *u = work, *force = u + length, *product = force + length;
    stiffness.value = product + length * (size_t)r;
    dense_gemv_set(n, r, 1, full->U, q, u);
    pthread_mutex_lock(full->lock);
    fem_body_evaluate(full->body, u, energy, f ? force : NULL, K ? &stiffness : NULL);
    pthread_mutex_unlock(full->lock);
    if (f) dense_gemv_t_set(n, r, 1, full->U, force, f);
    if (K) {
        fem_sparse_multiply(&stiffness, r, full->U, product);
        dense_gemm(true, false, r, r, n, 1, full->U, product, 0, K);
        for (int i = 0; i < r; i++)
            for (int j = 0; j < i; j++) K[i * r + j] = K[j * r + i] = (K[i * r + j] + K[j * r + i]) / 2;
    }
}

cubature_forces cubature_full_forces(const cubature_full *full) {
    size_t n = (size_t)full->n, r = (size_t)full->r;
    return (cubature_forces){.r = full->r,
                             .work = 2 * n + n * r + 9 * (size_t)full->pattern.blocks,
                             .evaluate = evaluate_full,
                             .model = full};
}
