// Wind: a velocity that depends on place and time, and the force that it exerts on moving surfaces.
//
// Mean wind grows with height by the logarithmic law; gusts, fronts of stronger wind, and turbulence travel with it as
// if frozen (Taylor's hypothesis). Turbulence is a sum of plane waves, free of divergence, whose energy over wave
// numbers is von Kármán's, so that the spectrum at a point is
//     n S(n) / sigma^2 = 4 x / (1 + 70.8 x^2)^(5/6),   x = n L / U   [von Kármán 1948; ESDU 85020]
// with the frequency n (Hz), the length L and the speed U with which it travels. Everything follows from a seed.
#ifndef LIMBER_SOLVER_WIND_H
#define LIMBER_SOLVER_WIND_H

#include "libsolver/tree.h"

#include <stdint.h>

typedef struct solver_wind_options {
    double   direction[3];     // where it blows to; made horizontal and of length 1
    double   up[3];            // away from the ground
    double   ground;           // height of the ground along `up`, m
    double   speed;            // mean at the reference height, m/s, >= 0
    double   reference_height; // m, > 0; 10
    double   roughness;        // length z0 of the logarithmic law, m; 0.03 open grass, 0.3 bushes, 1 forest
    double   intensity;        // of turbulence: its standard deviation over `speed`, 0 .. 1
    double   length;           // of turbulence: longitudinal integral scale L, m
    double   gust;             // strongest gust: its share of the mean speed on top of it, 0 .. 5
    double   gust_period;      // mean time between gusts, s
    double   gust_duration;    // of one gust, s, at most gust_period
    double   density;          // of the air, kg/m^3
    uint64_t seed;
} solver_wind_options;
solver_wind_options solver_wind_default_options(void);
fem_status          solver_wind_check_options(const solver_wind_options *options);

// Uniform in [0, 1); the sequence depends on *state only (splitmix64).
double solver_random(uint64_t *state);

typedef struct solver_wind solver_wind;
fem_status                 solver_wind_create(solver_wind **wind, const solver_wind_options *options);
void                       solver_wind_destroy(solver_wind *wind);
// Mean speed at a height above the ground, without gusts: zero at and below it.
double solver_wind_mean(const solver_wind *wind, double height);
// Velocity of the air. The first is the plain version of the second, which takes many points at a time (3 per point).
void       solver_wind_velocity(const solver_wind *wind, double time, const double x[3], double v[3]);
fem_status solver_wind_velocities(const solver_wind *wind, double time, int count, const double *x, double *v);

// ---- forces -----------------------------------------------------------------------------------------------------

// On a piece of surface with area A and unit normal n that the air passes with the relative velocity w:
//     f = 1/2 rho A (C_n |w.n| (w.n) n + C_t |w_t| w_t),   w_t = w - (w.n) n
// On a plate that is the normal force, whose part across the wind is the lift, and friction. A plate counts once, with
// one of its sides; a closed body counts with all of its surface, each side with half.
typedef struct solver_wind_surface {
    int     count; // samples
    int     r;
    double *X;                 // 3 per sample, class coordinates
    double *area;              // 3 per sample: unit normal times area at rest
    double *rows;              // 3 count x r, column-major: displacement of the samples
    double *turn;              // 3 count x r, column-major: change of `area`, which turns but never grows: a
                               // linear change would blow up a leaf that bends far
    double normal, tangential; // C_n, C_t
} solver_wind_surface;

// About `samples` places of a triangulated surface with modes (3 vertex_count x r, column-major). Triangles are
// gathered into connected patches of equal area, whose area vectors are exact to first order in q. A closed surface
// gets half of both coefficients.
fem_status solver_wind_surface_create(solver_wind_surface *surface, int vertex_count, const double *positions,
                                      int triangle_count, const int *triangles, int r, const double *modes, int samples,
                                      double normal, double tangential);
void       solver_wind_surface_destroy(solver_wind_surface *surface); // leaves it empty

// Loads of all instances of a tree for its present state: replaces what solver_tree_set_load said. `surfaces` has an
// entry per class of the tree, with count 0 for classes that no wind moves; `count` is the number of its instances.
typedef struct solver_wind_load solver_wind_load;
fem_status solver_wind_load_create(solver_wind_load **load, const solver_wind *wind, int class_count,
                                   const solver_wind_surface *surfaces, int count);
void       solver_wind_load_destroy(solver_wind_load *load);
fem_status solver_wind_load_apply(solver_wind_load *load, solver_tree *tree);
// The same, besides what solver_tree_set_load said, which has to be said anew each time.
fem_status solver_wind_load_add(solver_wind_load *load, solver_tree *tree);

// Normals turn with the modes, which the loads of a step do not know of: an estimate, from above, of the angular
// frequency that this stiffness alone would give the lightest mode when the loads were last made, rad/s. A thin flag
// diverges when the step is longer than twice its inverse. For steps that are too long take several short ones.
double solver_wind_load_turning(const solver_wind_load *load);

#endif
