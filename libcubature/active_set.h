// The columns that are in use in a nonnegative least-squares problem, with the Cholesky factor of their Gram matrix,
// which is updated as columns come and go: a step costs k^2 in place of k^3. Shared by nnls.c and by the greedy choice
// of elements. [Lawson and Hanson 1974, chapter 23; the factor by rows: Golub and Van Loan, 6.5]
#ifndef LIMBER_ACTIVE_SET_H
#define LIMBER_ACTIVE_SET_H

#include "libcubature/cubature.h"

typedef struct active_set {
    int     count, capacity;
    int    *column; // count: what the caller calls them
    double *L;      // capacity x capacity, row-major, lower: G = L L^T of the columns in use
    double *c;      // count: a_i . b
    double *x;      // count: present solution, > 0
    double *z;      // count: work space
} active_set;

static inline size_t active_set_doubles(int capacity) { return (size_t)capacity * ((size_t)capacity + 4) + 8; }
// Takes active_set_doubles(capacity) doubles from `memory`.
void active_set_place(active_set *set, int capacity, double *memory);
// Appends a column with inner products g[0 .. count) with those in use, |a|^2 and a . b. Its x is 0. False, and nothing
// changed, when it depends on them: less than `independent` of |a|^2 is new.
bool active_set_append(active_set *set, int column, const double *g, double norm2, double a_dot_b, double independent);
// Moves x to the least-squares solution of the columns in use, dropping one by one those that would become negative.
// Returns the number of dropped columns.
int active_set_settle(active_set *set);
// x = (L L^T)^-1 rhs
void active_set_solve(const active_set *set, const double *rhs, double *x);

#endif
