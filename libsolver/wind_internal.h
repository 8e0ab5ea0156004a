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

// Gusts of WIND_GUSTS periods around a time; those of the period `first` + i begin at begin[i].
enum { WIND_GUSTS = 16 };
typedef struct wind_now {
    const solver_wind *wind;
    double             time;
    double             phases[WIND_WAVES]; // reduced, so that they stay exact
    double             first, begin[WIND_GUSTS], strength[WIND_GUSTS];
} wind_now;
void wind_now_start(wind_now *now, const solver_wind *wind, double time);
// Share by which gusts raise the wind at s seconds behind the point where the clock began.
double wind_gust_factor(const solver_wind *wind, double s);

// Eight instances of a class side by side: the forces of the air in their present state. Arrays are rows of 8.
typedef struct wind_block {
    const solver_wind_surface *surface;
    const double              *fall;           // lower triangle: sum of area J^T J at rest (wind_load.c)
    double                     step;           // s: forces are those of its end, to first order
    const double              *q, *dq;         // r
    const double              *p, *Q, *V, *w;  // frames: 3, 9, 3, 3; V in world axes, w in those of the frame
    const double              *scale, *used;   // 1; 1 where there is an instance, else 0
    double                    *wrench, *modal; // 6, r: added to
    double                    *S;              // (r + 6)(r + 7)/2: added to
    const double              *mass;           // 1: the least of a mode
    double                    *turning;        // 1: added to, 1/s^2: stiffness by the turning of normals over mass
    double                    *row;            // r + 6: work space
} wind_block;

// Compiled once per vector width (kernel_wind.c): the air at eight points, x and v are 3 x 8, x of the eight first; the
// waves alone; and the forces on a block.
typedef struct wind_kernels {
    void (*sum)(const wind_wave *waves, const double *phases, const double *x, double *u);
    void (*blow)(const wind_now *now, const double *x, double *v);
    void (*push)(const wind_now *now, const wind_block *block);
} wind_kernels;
wind_kernels wind_kernels_baseline(void);
wind_kernels wind_kernels_avx2(void);
wind_kernels wind_kernels_avx512(void);
wind_kernels wind_choose_kernels(void);

#endif
