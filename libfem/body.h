// A body: a mesh with its materials, ready for assembly. Forces are +dW/du; u, f are 3 per vertex, xyz interleaved.
// Fast kernels work on 8 elements side by side and run on all threads; results do not depend on the thread count.
#ifndef LIMBER_BODY_H
#define LIMBER_BODY_H

#include "libfem/mesh.h"
#include "libfem/sparse.h"

typedef struct fem_body fem_body;

typedef struct fem_body_options {
    int  quadrature; // Gauss points per direction of an H8: 2 (default) or 3
    bool plain;      // textbook loops, one element at a time: slow, the reference for the fast kernels
} fem_body_options;
fem_body_options fem_body_default_options(void);

// The mesh must have passed fem_mesh_check and must outlive the body.
fem_status      fem_body_create(fem_body **body, const fem_mesh *mesh, const fem_body_options *options);
void            fem_body_destroy(fem_body *body);
const fem_mesh *fem_body_mesh(const fem_body *body);

// An all-zero matrix with the pattern of the body's stiffness and mass. Filled matrices must have this pattern.
fem_status fem_body_matrix(const fem_body *body, fem_sparse *A);

// W(u), f(u) = dW/du, K(u) = df/du in one pass; what is NULL is skipped. The energy is summed in the body's own memory:
// one call at a time that asks for it.
void fem_body_evaluate(const fem_body *body, const double *u, double *energy, double *force, fem_sparse *stiffness);
// out = (H(u) : a) b, H = dK/du
void fem_body_second(const fem_body *body, const double *u, const double *a, const double *b, double *out);
// out[:, p] = (H(0) : a_i) b_j with i = pair[p].a, j = pair[p].b, for many pairs at once: A is n x a_columns, B (which
// may be A) n x b_columns, out n x pairs, all column-major with n = 3 * vertices. Fast when pairs that share their a
// have neighbouring b; work space is about as large as A, B and out together.
typedef struct fem_pair {
    int a, b; // columns of A and B
} fem_pair;
fem_status fem_body_second_pairs(const fem_body *body, int a_columns, const double *A, int b_columns, const double *B,
                                 int pairs, const fem_pair *pair, double *out);
// Smallest det F over all integration points, and its element; NAN where u is.
double fem_body_min_jacobian(const fem_body *body, const double *u, int *element);

typedef enum fem_mass_kind { FEM_MASS_CONSISTENT, FEM_MASS_LUMPED } fem_mass_kind;
void   fem_body_mass(const fem_body *body, fem_mass_kind kind, fem_sparse *mass); // kg
void   fem_body_vertex_masses(const fem_body *body, double *masses);              // lumped, 1 per vertex
double fem_body_total_mass(const fem_body *body);

// For those who integrate by themselves. Integration points of an element: gradients of its shape functions,
// g[p][3 a + j] = dN_a/dX_j, and weight x volume. Returns their number: 1 for a T4, 8 or 27 (by the body's quadrature)
// for an H8.
int fem_body_points(const fem_body *body, int element, double weight[27], double g[27][24]);
// m[8 a + b] = int N_a N_b over an element, without the density.
void fem_body_element_mass(const fem_body *body, int element, double m[64]);

#endif
