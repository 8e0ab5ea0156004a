// The waves of turbulence at eight points side by side. Compiled once per vector width.
#include "libsolver/wind_internal.h"

#include <string.h>

#define JOIN2(a, b) a##b
#define JOIN(a, b)  JOIN2(a, b)

typedef double  real __attribute__((vector_size(64)));
typedef int64_t whole __attribute__((vector_size(64)));

static inline real load(const double *memory) {
    real x;
    memcpy(&x, memory, sizeof x);
    return x;
}

// Sine and cosine to 1e-10: reduced to a quarter turn around zero, where Taylor's polynomials serve.
static inline void sine_cosine(real x, real *sine, real *cosine) {
    const real shift = (real){0} + 6755399441055744.0; // 1.5 * 2^52: adding it rounds to a whole number
    real       turns = x * 0.63661977236758134 + shift;
    whole      quarter;
    memcpy(&quarter, &turns, sizeof quarter); // its last bits count quarters
    turns -= shift;
    real y = (x - turns * 1.5707963267948966) - turns * 6.123233995736766e-17, z = y * y;
    real s = y + y * z * (-1 / 6.0 + z * (1 / 120.0 + z * (-1 / 5040.0 + z * (1 / 362880.0 - z / 39916800.0))));
    real c =
        1 + z * (-0.5 + z * (1 / 24.0 + z * (-1 / 720.0 + z * (1 / 40320.0 + z * (-1 / 3628800.0 + z / 479001600.0)))));
    whole odd = -(quarter & 1), s_bits, c_bits, sign = (whole){0} + INT64_MIN;
    memcpy(&s_bits, &s, sizeof s), memcpy(&c_bits, &c, sizeof c);
    whole s_out = ((s_bits & ~odd) | (c_bits & odd)) ^ (sign & -((quarter >> 1) & 1));
    whole c_out = ((c_bits & ~odd) | (s_bits & odd)) ^ (sign & -(((quarter + 1) >> 1) & 1));
    memcpy(sine, &s_out, sizeof s), memcpy(cosine, &c_out, sizeof c);
}

void JOIN(solver_wind_sum, SIMD_SUFFIX)(const wind_wave *waves, const double *phases, const double *x, double *u) {
    real px = load(x), py = load(x + WIND_BLOCK), pz = load(x + 2 * WIND_BLOCK);
    real sum[3] = {{0}, {0}, {0}};
    for (int i = 0; i < WIND_WAVES; i++) {
        const wind_wave *w = &waves[i];
        real             s, c;
        sine_cosine(px * w->k[0] + py * w->k[1] + pz * w->k[2] + phases[i], &s, &c);
        for (int k = 0; k < 3; k++) sum[k] += w->A[k] * c + w->B[k] * s;
    }
    memcpy(u, sum, sizeof sum);
}
