// Inside libsolver only: the waves that turbulence is made of.
#ifndef LIMBER_SOLVER_WIND_INTERNAL_H
#define LIMBER_SOLVER_WIND_INTERNAL_H

#include "libsolver/wind.h"

// u = sum of A cos(k.x + phase) + B sin(k.x + phase), A and B across k
typedef struct wind_wave {
    double k[3], phase, A[3], B[3];
} wind_wave;

enum { WIND_BANDS = 32, WIND_WAVES = 3 * WIND_BANDS, WIND_BLOCK = 8 };

struct solver_wind {
    solver_wind_options options;
    double              along[3], up[3]; // unit, orthogonal
    wind_wave           waves[WIND_WAVES];
};

// Sums the waves at eight points: x and u are 3 x 8, x of the eight first. phases: per wave, at the time that is meant.
typedef void (*wind_sum)(const wind_wave *waves, const double *phases, const double *x, double *u);
void solver_wind_sum_baseline(const wind_wave *waves, const double *phases, const double *x, double *u);
void solver_wind_sum_avx2(const wind_wave *waves, const double *phases, const double *x, double *u);
void solver_wind_sum_avx512(const wind_wave *waves, const double *phases, const double *x, double *u);

#endif
