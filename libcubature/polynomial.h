// Reduced St. Venant-Kirchhoff forces, exactly: the energy of u = U q is a quartic polynomial of q [Barbic and James
// 2005], and so is that of an orthotropic material that is linear in the Green strain. With q_-1 = 1,
//
//   V(q) = sum over r > l >= k >= 0 and k >= j >= i >= -1 of c_ijkl q_i q_j q_k q_l
//
// so that every monomial of degree 2, 3, 4 stands once. c is stored with l outermost and i innermost: for each (l, k)
// the rows j = -1 .. k of a lower triangle, row j being i = -1 .. j. What belongs to the first r' modes is therefore
// the beginning of the array, and V, f = dV/dq and K = df/dq are evaluated straight from it.
//
// c is linear in the elastic constants: c = sum over sets of weight x set. A material group (one per material of the
// mesh that has elements) has
//   isotropic StVK: 2 sets,  V = lambda/2 tr(E)^2 + mu E:E, weights lambda/2 and mu
//   orthotropic:    9 sets,  the squares of e1 e2 e3 g12 g23 g31 e1+e2 e2+e3 e3+e1 (Green strain in material axes, g
//                   engineering shear), weights 1/2 (C11 - C12 - C31), ..., 1/2 C44, ..., 1/2 C12, ...
// which is what lets E, nu and density be changed at run time (P4 6.5) at the cost of a sum.
#ifndef LIMBER_POLYNOMIAL_H
#define LIMBER_POLYNOMIAL_H

#include "libmodes/modes.h"

enum {
    CUBATURE_MOST_MODES = 1000, // no memory would do for more, and sizes stay far from overflow
    CUBATURE_PADDING = 16,      // zeros behind the coefficients, which vector loads may touch
};

typedef struct cubature_group {
    fem_material material; // present constants; its kind, and an orthotropic one's frame, stay
    int          first_set, set_count;
} cubature_group;

// Plain arrays, so that it can be written to a file and read back.
typedef struct cubature_polynomial {
    int             r;
    size_t          count; // coefficients: cubature_polynomial_count(r)
    int             group_count;
    cubature_group *groups;
    int             set_count;
    double         *sets;         // set_count x count, set after set
    double         *mass;         // group_count x r x r: int U^T U over the group, consistent, at density 1
    double         *coefficients; // count + CUBATURE_PADDING: the sum over the sets with their present weights
} cubature_polynomial;

typedef struct cubature_polynomial_options {
    size_t memory_limit; // bytes for coefficients and work space; what needs more is refused. 2 GB
} cubature_polynomial_options;
cubature_polynomial_options cubature_polynomial_default_options(void);

// U is n x r, column-major; every material of the body's elements is stvk or orthotropic. Runs on all threads; the
// result does not depend on their number.
fem_status cubature_polynomial_create(cubature_polynomial *polynomial, const fem_body *body, int r, const double *U,
                                      const cubature_polynomial_options *options, const fem_progress *progress);
void       cubature_polynomial_destroy(cubature_polynomial *polynomial); // leaves it empty
// All arrays, zeroed, for whoever fills them himself.
fem_status cubature_polynomial_allocate(cubature_polynomial *polynomial, int r, int group_count, int set_count);
// Makes `coefficients` from the sets and the groups' materials.
void cubature_polynomial_sum(cubature_polynomial *polynomial);

// The same body with its first `modes` modes only; nothing is integrated again.
fem_status cubature_polynomial_truncate(cubature_polynomial *result, const cubature_polynomial *polynomial, int modes);
// Gives a group other constants (a density too) and sums again. FEM_BAD_INPUT, and nothing changed, when the material
// is not valid, is of another kind, or has other axes.
fem_status cubature_polynomial_set_material(cubature_polynomial *polynomial, int group, const fem_material *material);
// M = sum of density x mass over the groups: r x r, column-major.
void cubature_polynomial_mass(const cubature_polynomial *polynomial, double *M);

static inline size_t cubature_polynomial_count(int r) { // C(r+4, 4) - 1 - r
    size_t n = (size_t)r;
    return (n + 1) * (n + 2) / 2 * (n + 3) / 3 * (n + 4) / 4 - 1 - n;
}
// Where the block of (l, k), l >= k >= 0, begins: the triangle of all j and i.
static inline size_t cubature_polynomial_block(int k, int l) {
    size_t n = (size_t)k;
    return cubature_polynomial_count(l) + (n + 1) * (n + 2) / 2 * (n + 3) / 3 - 1;
}
// Place of c_ijkl, -1 <= i <= j <= k <= l, 0 <= k.
static inline size_t cubature_polynomial_index(int i, int j, int k, int l) {
    size_t row = (size_t)(j + 1);
    return cubature_polynomial_block(k, l) + row * (row + 1) / 2 + (size_t)(i + 1);
}

// One instance, textbook loops: the reference of the fast kernels. K is r x r, column-major; NULL is skipped.
void cubature_polynomial_plain(const cubature_polynomial *polynomial, const double *q, double *energy, double *f,
                               double *K);

#endif
