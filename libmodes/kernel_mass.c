// Rows of the product of the mass matrix, a number per pair of vertices, with up to eight columns. Compiled once per
// vector width (SIMD_SUFFIX) and chosen at run time. The plain version is fem_sparse_multiply.
//
// A number of M, broadcast, meets the three components of a vertex as one vector of four; the fourth lane is of the
// next vertex and is never stored. The last vertex of all has no next one, and comes last in the rows that have it.
#include "libmodes/krylov_internal.h"

#include <string.h>

#define JOIN2(a, b) a##b
#define JOIN(a, b)  JOIN2(a, b)

typedef double quad __attribute__((vector_size(32)));

#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

INLINE void product(const modes_mass *mass, const int columns, int begin, int end, const double *X, double *Y,
                    size_t apart) {
    const size_t n = 3 * (size_t)mass->M->n;
    const int    last = mass->M->n - 1;
    for (int i = begin; i < end; i++, Y += 3) {
        quad sum[8];
        int  k = mass->start[i], stop = mass->start[i + 1];
        bool at_end = stop > k && mass->column[stop - 1] == last;
        UNROLL for (int c = 0; c < columns; c++) sum[c] = (quad){0};
        for (stop -= at_end; k < stop; k++) {
            const double *x = X + 3 * (size_t)mass->column[k];
            const double  a = mass->value[k];
            UNROLL for (int c = 0; c < columns; c++) {
                quad xc;
                memcpy(&xc, x + (size_t)c * n, sizeof xc);
                sum[c] += a * xc;
            }
        }
        UNROLL for (int c = 0; at_end && c < columns; c++) {
            const double *x = X + (size_t)c * n + 3 * (size_t)last;
            sum[c] += mass->value[k] * (quad){x[0], x[1], x[2], 0};
        }
        UNROLL for (int c = 0; c < columns; c++) memcpy(Y + (size_t)c * apart, &sum[c], 3 * sizeof *Y);
    }
}

void JOIN(modes_mass_rows, SIMD_SUFFIX)(const modes_mass *mass, int columns, int begin, int end, const double *X,
                                        double *Y, size_t apart) {
    const size_t n = 3 * (size_t)mass->M->n;
    int          c = 0;
    for (; c + 8 <= columns; c += 8) product(mass, 8, begin, end, X + (size_t)c * n, Y + (size_t)c * apart, apart);
    for (; c + 4 <= columns; c += 4) product(mass, 4, begin, end, X + (size_t)c * n, Y + (size_t)c * apart, apart);
    for (; c + 2 <= columns; c += 2) product(mass, 2, begin, end, X + (size_t)c * n, Y + (size_t)c * apart, apart);
    if (c < columns) product(mass, 1, begin, end, X + (size_t)c * n, Y + (size_t)c * apart, apart);
}
