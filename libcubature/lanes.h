// Eight doubles side by side: what the kernels that are compiled once per vector width share.
#ifndef LIMBER_CUBATURE_LANES_H
#define LIMBER_CUBATURE_LANES_H

#include "libcubature/internal.h"

#include <string.h>

#define JOIN2(a, b) a##b
#define JOIN(a, b)  JOIN2(a, b)

typedef double real __attribute__((vector_size(64)));

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

static inline real load(const double *memory) {
    real x;
    memcpy(&x, memory, sizeof x);
    return x;
}
static inline void store(double *memory, real x) { memcpy(memory, &x, sizeof x); }
static inline real splat(double x) { return (real){x, x, x, x, x, x, x, x}; }

// Rows of the 8 x 8 matrix become columns.
static inline void transpose(real x[8]) {
    real y[8];
    UNROLL for (int i = 0; i < 8; i += 2) {
        y[i] = __builtin_shufflevector(x[i], x[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
        y[i + 1] = __builtin_shufflevector(x[i], x[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    }
    UNROLL for (int i = 0; i < 8; i++) {
        const int j = i & ~2;
        x[i] = i & 2 ? __builtin_shufflevector(y[j], y[j + 2], 2, 3, 10, 11, 6, 7, 14, 15)
                     : __builtin_shufflevector(y[j], y[j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    }
    UNROLL for (int i = 0; i < 8; i++) {
        const int j = i & ~4;
        y[i] = i & 4 ? __builtin_shufflevector(x[j], x[j + 4], 4, 5, 6, 7, 12, 13, 14, 15)
                     : __builtin_shufflevector(x[j], x[j + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    }
    UNROLL for (int i = 0; i < 8; i++) x[i] = y[i];
}

#endif
