// Eight doubles side by side, and the formulas of the materials for them: what the kernels of elements and of materials
// share. For files that are compiled once per vector width.
#ifndef LIMBER_LANES_H
#define LIMBER_LANES_H

#include "libfem/internal.h"

#include <string.h>

#define JOIN2(a, b) a##b
#define JOIN(a, b)  JOIN2(a, b)

typedef double real __attribute__((vector_size(64)));
typedef long   mask __attribute__((vector_size(64)));

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 9")
#endif

static inline real real_set(double x) { return (real){x, x, x, x, x, x, x, x}; }
static inline real real_log1p(real x) {
    for (int i = 0; i < 8; i++) x[i] = log1p(x[i]);
    return x;
}
static inline real real_inverse_cbrt(real x) {
    for (int i = 0; i < 8; i++) x[i] = 1 / cbrt(x[i]);
    return x;
}
static inline real real_where(mask m, real x, real y) { return (real)((m & (mask)x) | (~m & (mask)y)); }
static inline real real_min(real x, double y) { return real_where((mask)(x < real_set(y)), x, real_set(y)); }
static inline real real_max(real x, double y) { return real_where((mask)(x > real_set(y)), x, real_set(y)); }
static inline real real_zero_where_negative(real x, real y) {
    return real_where((mask)(y < real_set(0)), real_set(0), x);
}

#include "libfem/material_formulas.inc"

static inline real load(const double *memory) {
    real x;
    memcpy(&x, memory, sizeof x);
    return x;
}
static inline void store(double *memory, real x) { memcpy(memory, &x, sizeof x); }

#endif
