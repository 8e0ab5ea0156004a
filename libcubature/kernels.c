// The choice of kernels at run time.
#include "libcubature/internal.h"

#define KERNELS(level)                                                                                                 \
    (cubature_kernels) {                                                                                               \
        .mode_gradients = cubature_mode_gradients_##level, .strain_panel = cubature_strain_panel_##level,              \
        .gram_tile = cubature_gram_tile_##level, .evaluate = cubature_evaluate_##level,                                \
        .batch = cubature_batch_##level, .point_gradients = cubature_point_gradients_##level,                          \
        .point_forces = cubature_point_forces_##level, .point_sums = cubature_point_sums_##level,                      \
        .rule_force = cubature_rule_force_##level, .rule_product = cubature_rule_product_##level,                      \
        .rule_block = cubature_rule_block_##level                                                                      \
    }

cubature_kernels cubature_choose_kernels(void) {
#if defined(__x86_64__)
    fem_simd level = fem_simd_level();
    if (level == FEM_SIMD_AVX2) return KERNELS(avx2);
    if (level == FEM_SIMD_AVX512) return KERNELS(avx512);
#endif
    return KERNELS(baseline);
}
