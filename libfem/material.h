// Materials: strain energy density W(F), its derivatives P = dW/dF, dP/dF, and d2P/dF2 : (A, B).
#ifndef LIMBER_MATERIAL_H
#define LIMBER_MATERIAL_H

#include "libfem/base.h"

typedef enum fem_material_kind {
    FEM_LINEAR,        // small strain: W = lambda/2 tr(e)^2 + mu e:e, e = sym(F) - I
    FEM_STVK,          // W = lambda/2 tr(E)^2 + mu E:E
    FEM_ORTHOTROPIC,   // StVK with nine constants in a material frame
    FEM_NEOHOOKEAN,    // W = mu/2 (I1 - 3) - mu ln J + lambda/2 (ln J)^2
    FEM_MOONEY_RIVLIN, // W = mu01/2 ((I1^2 - tr C^2) J^-4/3 - 6) + mu10 (I1 J^-2/3 - 3) + v1 (J - 1)^2
    FEM_ARRUDA_BOYCE,  // W = mu sum_i c_i N^(1-i) (I1bar^i - 3^i) + k/2 (J - 1)^2
    FEM_MATERIAL_KINDS
} fem_material_kind;

typedef struct fem_material {
    char              name[64];
    fem_material_kind kind;
    double            density;         // kg/m^3
    double            young, poisson;  // linear, StVK, Neo-Hookean: Pa, -
    double            young3[3];       // orthotropic: E1 E2 E3, Pa
    double            poisson3[3];     // orthotropic: nu12 nu23 nu31
    double            shear3[3];       // orthotropic: G12 G23 G31, Pa
    double            frame[9];        // orthotropic: columns are the material axes in body axes (a rotation)
    double            mu01, mu10, v1;  // Mooney-Rivlin, Pa
    double            mu, chain, bulk; // Arruda-Boyce: Pa, N (links of a chain), Pa
    // Below this J = det F, what depends on J alone in the last three materials goes on as its second-order Taylor
    // polynomial, so that inverted elements keep finite energy, force and stiffness. (0, 1).
    double inversion_threshold;
} fem_material;

// StVK with E = 1e6 Pa, nu = 0.3, 1000 kg/m^3; every other field has a valid value too. Its name, "unspecified", is
// that of a material that nobody chose: files that say "default" mean it.
fem_material fem_material_default(void);
bool         fem_material_is_default(const fem_material *material); // name and numbers are those of the default
// FEM_BAD_INPUT names the field, its value and the rule.
fem_status  fem_material_check(const fem_material *material);
const char *fem_material_kind_name(fem_material_kind kind);                         // "stvk", "mooney-rivlin", ...
bool        fem_material_kind_from_name(fem_material_kind *kind, const char *name); // false when unknown

// What the formulas need, worked out once. `C` is the 6x6 elasticity in body axes, order xx yy zz xy yz zx with
// engineering shear, symmetric; linear, StVK and orthotropic use it.
typedef struct fem_material_constants {
    fem_material_kind kind;
    double            lambda, mu;
    double            C[36];
    double            mu01, mu10, v1;
    double            arruda[5], bulk; // mu c_i N^(1-i)
    double            J0;              // inversion threshold
} fem_material_constants;
void fem_material_prepare(fem_material_constants *constants, const fem_material *material);

// Matrices are row-major 3x3; D is 9x9, symmetric, entry (3i+j, 3k+l) = dP_ij/dF_kl. Results that are NULL are skipped.
void fem_material_evaluate(const fem_material_constants *c, const double F[9], double *W, double P[9], double D[81]);
// Q = d2P/dF2 : (A, B)
void fem_material_second(const fem_material_constants *c, const double F[9], const double A[9], const double B[9],
                         double Q[9]);

// The same for eight points of one material side by side: each number is a vector of eight doubles, one per point.
// H = F - I is 9 x 8, W 8, P 9 x 8, D 81 x 8. The version for this processor is chosen once and then called.
typedef void (*fem_material_lanes)(const fem_material_constants *c, const double *H, double *W, double *P, double *D);
fem_material_lanes fem_material_choose_lanes(void);

#endif
