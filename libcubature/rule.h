// A cubature rule: the reduced force of a body as a weighted sum over few of its elements [An, Kim, James 2008],
//
//   f(q) ~ sum_e w_e g_e(q),   g_e = sum over the points of e of V B^T P(B q),   B q = grad(U q) at the point,
//
// for any material. With one weight an element, f is the gradient of sum_e w_e V_e and K = sum w_e B^T (dP/dF) B is
// symmetric. A modal rule [Yang et al. 2015, P0 section 5] has one weight an element and a reduced coordinate: row j of
// f and K takes w_e^j. It then has no energy, and K is not symmetric.
//
// Everything is stored side by side for eight points of one material, so that strain, stress and tangent are vector
// operations, and K one matrix product.
// A chapter of cubature.h: include that.
#ifndef LIMBER_RULE_H
#define LIMBER_RULE_H

#include "libmodes/modes.h"

typedef struct cubature_rule {
    int     r;
    int     count;    // elements
    int    *elements; // count: of the mesh, ascending
    bool    modal;
    double *weights; // count, or count x r with the weights of an element together; >= 0

    int                     groups;         // of eight points
    double                 *B;              // 72 groups x r, column-major: entry 72 g + 8 (3 i + j) + lane is du_i/dX_j
    double                 *C;              // the same with each entry times its weight: modal rules; else NULL
    double                 *scale;          // 8 groups: weight of the point x volume (x w_e, not in a modal rule)
    int                    *material;       // groups: of the constants
    int                     material_count; // of the mesh
    fem_material_constants *constants;
} cubature_rule;

// U is n x r, column-major. The elements must be ascending; weights as above. Body and basis are not needed afterwards.
fem_status cubature_rule_create(cubature_rule *rule, const fem_body *body, int r, const double *U, int count,
                                const int *elements, bool modal, const double *weights);
void       cubature_rule_destroy(cubature_rule *rule); // leaves it empty

// One instance, textbook loops, K as it is: the reference of the fast kernels. NULL is skipped. The energy of a modal
// rule is the work of f along the straight way from rest to q, which for the other rules is the energy.
void cubature_rule_plain(const cubature_rule *rule, const double *q, double *energy, double *f, double *K);

#endif
