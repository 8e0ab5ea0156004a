// Reduced forces of many instances that share a class. Instances stand side by side in blocks of eight: each
// number of a block is a vector of eight doubles, one per instance, so that one coefficient, read once, serves eight or
// sixteen of them. Unused lanes of the last block must hold finite numbers (zeros).
//
// What is evaluated of a polynomial is K = K0 + K1(q) + K2(q, q) alone, as a matrix (one row per pair a <= b) times the
// monomials of degree 1 and 2; by Euler's theorem f = (K0 + K1/2 + K2/3) q and V = q^T (K0/2 + K1/6 + K2/12) q.
#ifndef LIMBER_BATCH_H
#define LIMBER_BATCH_H

#include "libcubature/polynomial.h"
#include "libcubature/rule.h"

enum { CUBATURE_LANES = 8 };

static inline int cubature_blocks(int instances) { return (instances + CUBATURE_LANES - 1) / CUBATURE_LANES; }
static inline int cubature_pairs(int r) { return r * (r + 1) / 2; }

// The rows of K of one class, packed for the kernels.
typedef struct cubature_batch cubature_batch;
fem_status                    cubature_batch_create(cubature_batch **batch, const cubature_polynomial *polynomial);
// The same by a rule, which must outlive the batch. K of a modal rule is the symmetric part.
fem_status cubature_batch_create_rule(cubature_batch **batch, const cubature_rule *rule);
void       cubature_batch_destroy(cubature_batch *batch);
// Takes over the coefficients of a polynomial of the same size, after its materials have changed. Not for rules.
void   cubature_batch_update(cubature_batch *batch, const cubature_polynomial *polynomial);
size_t cubature_batch_work(const cubature_batch *batch); // doubles of work space, 64-byte aligned

// For each of `blocks` blocks:
//   q       r x 8
//   factor  8: multiplies energy, force and stiffness of an instance (s^3 of a scale s, a stiffness factor); NULL = 1
//   energy  8
//   f       r x 8
//   K       r (r + 1) / 2 x 8, entry (a, b), a <= b, at b (b + 1) / 2 + a
// energy, f, K: NULL is skipped. Allocates nothing; safe from several threads when `work` differs.
void cubature_batch_evaluate(const cubature_batch *batch, int blocks, const double *q, const double *factor,
                             double *energy, double *f, double *K, double *work);

#endif
