// Small symmetric systems side by side: the choice of the kernel, and the loop over blocks.
#include "libfem/batch_internal.h"

fem_batch_solver fem_batch_choose_solver(void) {
#if defined(__x86_64__)
    fem_simd level = fem_simd_level();
    if (level == FEM_SIMD_AVX2) return fem_batch_solve_avx2;
    if (level == FEM_SIMD_AVX512) return fem_batch_solve_avx512;
#endif
    return fem_batch_solve_baseline;
}

int fem_batch_solve(int n, int blocks, double *A, double *b, unsigned char *bad) {
    fem_batch_solver solver = fem_batch_choose_solver();
    size_t           entries = (size_t)n * ((size_t)n + 1) / 2 * FEM_LANES;
    int              count = 0;
    for (int block = 0; block < blocks; block++) {
        bad[block] = solver(n, A + (size_t)block * entries, b + (size_t)block * (size_t)n * FEM_LANES);
        count += __builtin_popcount(bad[block]);
    }
    return count;
}
