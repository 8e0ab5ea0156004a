// Materials: names, checks, constants, and the evaluation at one point.
#include "libfem/internal.h"

#include <string.h>

static const char *const kind_names[FEM_MATERIAL_KINDS] = {"linear",     "stvk",          "orthotropic",
                                                           "neohookean", "mooney-rivlin", "arruda-boyce"};

const char *fem_material_kind_name(fem_material_kind kind) { return kind_names[kind]; }

bool fem_material_kind_from_name(fem_material_kind *kind, const char *name) {
    for (int i = 0; i < FEM_MATERIAL_KINDS; i++)
        if (strcmp(kind_names[i], name) == 0) {
            *kind = (fem_material_kind)i;
            return true;
        }
    return false;
}

fem_material fem_material_default(void) {
    return (fem_material){.name = "unspecified",
                          .kind = FEM_STVK,
                          .density = 1000,
                          .young = 1e6,
                          .poisson = 0.3,
                          .young3 = {1e6, 1e6, 1e6},
                          .poisson3 = {0.3, 0.3, 0.3},
                          .shear3 = {1e6 / 2.6, 1e6 / 2.6, 1e6 / 2.6},
                          .frame = {1, 0, 0, 0, 1, 0, 0, 0, 1},
                          .mu01 = 1e5,
                          .mu10 = 1e5,
                          .v1 = 1e6,
                          .mu = 4e5,
                          .chain = 8,
                          .bulk = 1e6,
                          .inversion_threshold = 0.1};
}

bool fem_material_is_default(const fem_material *m) {
    fem_material none = fem_material_default();
    return strcmp(m->name, none.name) == 0 && m->kind == none.kind && m->density == none.density &&
           m->young == none.young && m->poisson == none.poisson;
}

// Compliance of an orthotropic material in its own axes, upper left 3x3: 1/E_i on the diagonal, -nu_ij/E_i off it.
static void orthotropic_compliance(const fem_material *m, double S[9]) {
    const double *E = m->young3, *nu = m->poisson3; // nu12 nu23 nu31
    S[0] = 1 / E[0], S[4] = 1 / E[1], S[8] = 1 / E[2];
    S[1] = S[3] = -nu[0] / E[0];
    S[5] = S[7] = -nu[1] / E[1];
    S[2] = S[6] = -nu[2] / E[2];
}

static fem_status check_positive(const fem_material *m, const char *field, double value) {
    if (!(value > 0) || !isfinite(value))
        return fem_fail(FEM_BAD_INPUT, "material \"%s\": %s is %g, expected > 0", m->name, field, value);
    return FEM_OK;
}

static fem_status check_orthotropic(const fem_material *m) {
    static const char *const young[] = {"E1", "E2", "E3"}, *const shear[] = {"G12", "G23", "G31"};
    static const char *const poisson[] = {"nu12", "nu23", "nu31"};
    fem_status               status = FEM_OK;
    for (int i = 0; i < 3; i++) {
        FEM_TRY(check_positive(m, young[i], m->young3[i]));
        FEM_TRY(check_positive(m, shear[i], m->shear3[i]));
        if (!isfinite(m->poisson3[i]))
            return fem_fail(FEM_BAD_INPUT, "material \"%s\": %s is not a finite number", m->name, poisson[i]);
    }
    double S[9], scaled[9], minor; // scaled by sqrt(E_i E_j): ones on the diagonal, so that the test has no units
    orthotropic_compliance(m, S);
    for (int i = 0; i < 9; i++) scaled[i] = S[i] * sqrt(m->young3[i / 3]) * sqrt(m->young3[i % 3]);
    minor = fmin(fmin(1 - scaled[1] * scaled[1], 1 - scaled[5] * scaled[5]), 1 - scaled[2] * scaled[2]);
    if (!(minor > 0) || !(mat3_det(scaled) > 1e-12))
        return fem_fail(
            FEM_BAD_INPUT,
            "material \"%s\": nu12 = %g, nu23 = %g, nu31 = %g do not fit E1, E2, E3: the energy would not be "
            "positive; expected nu_ij^2 < E_i/E_j for each pair and a positive determinant",
            m->name, m->poisson3[0], m->poisson3[1], m->poisson3[2]);
    double RRt[9];
    mat3_mul_nt(RRt, m->frame, m->frame);
    for (int i = 0; i < 9; i++)
        if (!(fabs(RRt[i] - (i % 4 == 0)) < 1e-6))
            return fem_fail(FEM_BAD_INPUT,
                            "material \"%s\": the material axes are not at right angles or not of length 1", m->name);
done:
    return status;
}

fem_status fem_material_check(const fem_material *m) {
    fem_status status = FEM_OK;
    FEM_TRY(check_positive(m, "density", m->density));
    switch (m->kind) {
    case FEM_LINEAR:
    case FEM_STVK:
    case FEM_NEOHOOKEAN:
        FEM_TRY(check_positive(m, "Young's modulus", m->young));
        if (!(m->poisson > -1 && m->poisson < 0.5))
            return fem_fail(FEM_BAD_INPUT, "material \"%s\": Poisson's ratio is %g, expected -1 < nu < 0.5", m->name,
                            m->poisson);
        break;
    case FEM_ORTHOTROPIC:
        FEM_TRY(check_orthotropic(m));
        break;
    case FEM_MOONEY_RIVLIN:
        if (!(m->mu01 >= 0 && m->mu10 >= 0 && m->mu01 + m->mu10 > 0) || !isfinite(m->mu01 + m->mu10))
            return fem_fail(FEM_BAD_INPUT, "material \"%s\": mu01 = %g and mu10 = %g, expected >= 0 and not both 0",
                            m->name, m->mu01, m->mu10);
        FEM_TRY(check_positive(m, "v1", m->v1));
        break;
    case FEM_ARRUDA_BOYCE:
        FEM_TRY(check_positive(m, "mu", m->mu));
        FEM_TRY(check_positive(m, "N (chain)", m->chain));
        FEM_TRY(check_positive(m, "k (bulk)", m->bulk));
        break;
    default:
        return fem_fail(FEM_BAD_INPUT, "material \"%s\": unknown kind %d", m->name, (int)m->kind);
    }
    if (!(m->inversion_threshold > 0 && m->inversion_threshold < 1))
        return fem_fail(FEM_BAD_INPUT, "material \"%s\": the inversion threshold is %g, expected 0 < J0 < 1", m->name,
                        m->inversion_threshold);
done:
    return status;
}

static const int voigt[6][2] = {{0, 0}, {1, 1}, {2, 2}, {0, 1}, {1, 2}, {2, 0}};

static int voigt_index(int i, int j) {
    for (int v = 0; v < 6; v++)
        if ((voigt[v][0] == i && voigt[v][1] == j) || (voigt[v][0] == j && voigt[v][1] == i)) return v;
    return -1;
}

// C in body axes: C_ijkl = R_ia R_jb R_kc R_ld C'_abcd, C' from the inverse compliance and the shear moduli.
static void rotate_elasticity(const fem_material *m, double C[36]) {
    double local[36] = {0}, S[9], block[9];
    orthotropic_compliance(m, S);
    mat3_inverse(block, S);
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) local[6 * i + j] = block[3 * i + j];
        local[7 * (3 + i)] = m->shear3[i];
    }
    const double *R = m->frame;
    for (int v = 0; v < 6; v++)
        for (int w = 0; w < 6; w++) {
            int    i = voigt[v][0], j = voigt[v][1], k = voigt[w][0], l = voigt[w][1];
            double sum = 0;
            for (int abcd = 0; abcd < 81; abcd++) {
                int a = abcd / 27, b = abcd / 9 % 3, c = abcd / 3 % 3, d = abcd % 3;
                sum += R[3 * i + a] * R[3 * j + b] * R[3 * k + c] * R[3 * l + d] *
                       local[6 * voigt_index(a, b) + voigt_index(c, d)];
            }
            C[6 * v + w] = sum;
        }
}

void fem_material_prepare(fem_material_constants *c, const fem_material *m) {
    *c = (fem_material_constants){.kind = m->kind,
                                  .lambda = m->poisson * m->young / ((1 + m->poisson) * (1 - 2 * m->poisson)),
                                  .mu = m->young / (2 * (1 + m->poisson)),
                                  .mu01 = m->mu01,
                                  .mu10 = m->mu10,
                                  .v1 = m->v1,
                                  .bulk = m->bulk,
                                  .J0 = m->inversion_threshold};
    // series of the inverse Langevin function [Arruda and Boyce 1993, eq. 20]
    static const double arruda[5] = {1.0 / 2, 1.0 / 20, 11.0 / 1050, 19.0 / 7000, 519.0 / 673750};
    for (int i = 0; i < 5; i++) c->arruda[i] = m->mu * arruda[i] * pow(m->chain, -i);
    if (m->kind == FEM_ORTHOTROPIC) rotate_elasticity(m, c->C);
}

// ---- evaluation at eight points ------------------------------------------------------------------------------------

fem_material_lanes fem_material_choose_lanes(void) {
#if defined(__x86_64__)
    fem_simd level = fem_simd_level();
    if (level == FEM_SIMD_AVX2) return fem_material_lanes_avx2;
    if (level == FEM_SIMD_AVX512) return fem_material_lanes_avx512;
#endif
    return fem_material_lanes_baseline;
}

// ---- evaluation at one point: the formulas with real = double ------------------------------------------------------

typedef double     real;
static inline real real_set(double x) { return x; }
static inline real real_log1p(real x) { return log1p(x); }
static inline real real_inverse_cbrt(real x) { return 1 / cbrt(x); }
static inline real real_min(real x, double y) { return x < y ? x : y; }
static inline real real_max(real x, double y) { return x > y ? x : y; }
static inline real real_zero_where_negative(real x, real y) { return y < 0 ? 0 : x; }

#include "libfem/material_formulas.inc"

void fem_material_evaluate(const fem_material_constants *c, const double F[9], double *W, double P[9], double D[81]) {
    double H[9];
    for (int i = 0; i < 9; i++) H[i] = F[i] - (i % 4 == 0);
    material_evaluate(c, H, W, P, D);
}

void fem_material_second(const fem_material_constants *c, const double F[9], const double A[9], const double B[9],
                         double Q[9]) {
    double H[9];
    for (int i = 0; i < 9; i++) H[i] = F[i] - (i % 4 == 0);
    material_second(c, H, A, B, Q);
}
