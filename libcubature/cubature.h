// libcubature: forces in reduced coordinates q, u = U q.
#ifndef LIMBER_CUBATURE_H
#define LIMBER_CUBATURE_H

#include "libmodes/modes.h"
#include "libcubature/polynomial.h" // StVK by precomputed polynomials
#include "libcubature/batch.h"      // the same for many instances at once
#include "libcubature/rule.h"       // any material by a few weighted elements
#include "libcubature/nnls.h"       // nonnegative least squares
#include "libcubature/training.h"   // poses, and the choice of elements and weights

// What a reduced integrator needs of a class: V(q), f = dV/dq, K = df/dq (r x r, column-major, both halves); NULL is
// skipped. Returns nothing, allocates nothing; safe from several threads when `work` differs.
typedef struct cubature_forces {
    int    r;
    size_t work; // doubles of work space that evaluate needs
    void (*evaluate)(const void *model, const double *q, double *energy, double *f, double *K, double *work);
    const void *model;
    // Kp = (df/dq) p without making K; NULL where that is no gain
    void (*product)(const void *model, const double *q, const double *p, double *Kp, double *work);
    bool nonconservative; // f has no potential and df/dq is not symmetric (modal cubature): K is its symmetric part,
                          // the energy the work along the straight way from rest; `product` gives df/dq as it is
} cubature_forces;

// StVK, exactly, by its polynomial, which must outlive the forces and may change its materials meanwhile. The fastest
// kernels of this processor are chosen here.
cubature_forces cubature_polynomial_forces(const cubature_polynomial *polynomial);

// Any material by a rule, which must outlive the forces.
cubature_forces cubature_rule_forces(const cubature_rule *rule);

// ---- the plain references ------------------------------------------------------------------------------------------

// f = K0 q. K0 is r x r, column-major, symmetric; it must outlive the forces.
typedef struct cubature_linear {
    int           r;
    const double *K0;
} cubature_linear;
cubature_forces cubature_linear_forces(const cubature_linear *linear);

// V(Uq), U^T f(Uq), U^T K(Uq) U through the elements of a body: any material, the cost of the full mesh.
// The body must outlive it; U (n x r, column-major) is copied.
typedef struct cubature_full cubature_full;
fem_status                   cubature_full_create(cubature_full **full, const fem_body *body, int r, const double *U);
void                         cubature_full_destroy(cubature_full *full);
cubature_forces              cubature_full_forces(const cubature_full *full);

#include "libcubature/stitched.h" // forces of a body that was changed

#endif
