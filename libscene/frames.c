// The frames of a motion as few components: with A = U S V^T of the frames without their mean, V and S^2 are the
// eigenvectors and eigenvalues of A^T A, which is as small as the number of frames. What is left out of frame f has the
// norm sqrt(sum_l>r S_l^2 V_fl^2), so that the number of components follows from the error that is allowed.
#include "libscene/record_glb.h"

#include <math.h>

// Fewest components, counted from the largest, with which every frame is as good as it must be.
static int count_components(int frames, const double *V, const double *values, double tolerance) {
    int most = 0;
    for (int f = 0; f < frames; f++) {
        double left = 0;
        for (int l = 0; l < frames && frames - l > most; l++) { // smallest first
            double part = V[(size_t)l * (size_t)frames + (size_t)f];
            left += fmax(values[l], 0) * part * part;
            if (left > tolerance * tolerance) most = frames - l;
        }
    }
    return most;
}

static void take_mean(int n, int frames, double *A, double *mean) {
    size_t rows = (size_t)n;
    for (size_t i = 0; i < rows; i++) mean[i] = 0;
    for (size_t f = 0; f < (size_t)frames; f++)
        for (size_t i = 0; i < rows; i++) mean[i] += A[f * rows + i] / frames;
    for (size_t f = 0; f < (size_t)frames; f++)
        for (size_t i = 0; i < rows; i++) A[f * rows + i] -= mean[i];
}

fem_status scene_compress_frames(int n, int frames, double *A, double tolerance, double *mean, int *r, double **U,
                                 double **q) {
    fem_status status = FEM_OK;
    size_t     count = (size_t)frames;
    double    *V = fem_alloc(count * count, sizeof *V), *values = fem_alloc(count, sizeof *values);
    *U = *q = NULL;
    if (!V || !values) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the components of %d frames", frames);
        goto done;
    }
    take_mean(n, frames, A, mean);
    dense_gemm(true, false, frames, frames, n, 1, A, A, 0, V);
    FEM_TRY(dense_symmetric_eigen(frames, V, values));
    *r = count_components(frames, V, values, tolerance);
    *U = fem_alloc((size_t)n * (size_t)*r, sizeof **U);
    *q = fem_alloc(count * (size_t)*r, sizeof **q);
    if (!*U || !*q) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d components", *r);
        goto done;
    }
    for (int k = 0; k < *r; k++) { // largest first; U_k = A v_k / s_k, q_fk = s_k v_kf
        const double *v = V + (count - 1 - (size_t)k) * count;
        double        s = sqrt(values[frames - 1 - k]);
        dense_gemv_set(n, frames, 1 / s, A, v, *U + (size_t)k * (size_t)n);
        for (size_t f = 0; f < count; f++) (*q)[f * (size_t)*r + (size_t)k] = s * v[f];
    }
done:
    if (status != FEM_OK) {
        fem_free(*U), fem_free(*q);
        *U = *q = NULL;
    }
    fem_free(V), fem_free(values);
    return status;
}
