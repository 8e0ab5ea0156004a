// Energy, stress and tangent of eight points side by side. Compiled once per vector width and chosen at run time; the
// same formulas one point at a time are in material.c.
#include "libfem/lanes.h"

void JOIN(fem_material_lanes, SIMD_SUFFIX)(const fem_material_constants *c, const double *H, double *W, double *P,
                                           double *D) {
    real h[9], w, p[9], d[81];
    for (int i = 0; i < 9; i++) h[i] = load(H + 8 * i);
    material_evaluate(c, h, W ? &w : NULL, P ? p : NULL, D ? d : NULL);
    if (W) store(W, w);
    for (int i = 0; P && i < 9; i++) store(P + 8 * i, p[i]);
    for (int i = 0; D && i < 81; i++) store(D + 8 * i, d[i]);
}
