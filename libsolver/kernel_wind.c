// The air at eight points side by side, and its forces on eight instances of a class. Compiled once per vector width.
#include "libsolver/wind_internal.h"

#include <string.h>

#define JOIN2(a, b) a##b
#define JOIN(a, b)  JOIN2(a, b)
#define INLINE      static inline __attribute__((always_inline))

typedef double  real __attribute__((vector_size(64), may_alias));
typedef int64_t whole __attribute__((vector_size(64)));

INLINE real  splat(double x) { return (real){0} + x; }
INLINE whole bits_of(real x) { return (whole)x; }
INLINE real  where(whole m, real x) { return (real)(m & (whole)x); } // 0 elsewhere
INLINE real  choose(whole m, real x, real y) { return (real)((m & (whole)x) | (~m & (whole)y)); }
INLINE real  largest(real x, real y) { return choose((whole)(x > y), x, y); }
INLINE real  magnitude(real x) { return (real)((whole)x & INT64_MAX); }
INLINE real  square_root(real x) {
     double y[8];
     memcpy(y, &x, sizeof y);
     for (int i = 0; i < 8; i++) y[i] = sqrt(y[i]);
    memcpy(&x, y, sizeof y);
     return x;
}
INLINE real dot(const real *a, const real *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
INLINE void cross(real *c, const real *a, const real *b) {
    real x = a[1] * b[2] - a[2] * b[1], y = a[2] * b[0] - a[0] * b[2], z = a[0] * b[1] - a[1] * b[0];
    c[0] = x, c[1] = y, c[2] = z;
}

// ---- functions --------------------------------------------------------------------------------------------------

// Sine and cosine to 1e-10: reduced to a quarter turn around zero, where Taylor's polynomials serve.
INLINE void sine_cosine(real x, real *sine, real *cosine) {
    const real shift = splat(6755399441055744.0); // 1.5 * 2^52: adding it rounds to a whole number
    real       turns = x * 0.63661977236758134 + shift;
    whole      quarter = bits_of(turns); // its last bits count quarters
    turns -= shift;
    real y = (x - turns * 1.5707963267948966) - turns * 6.123233995736766e-17, z = y * y;
    real s = y + y * z * (-1 / 6.0 + z * (1 / 120.0 + z * (-1 / 5040.0 + z * (1 / 362880.0 - z / 39916800.0))));
    real c =
        1 + z * (-0.5 + z * (1 / 24.0 + z * (-1 / 720.0 + z * (1 / 40320.0 + z * (-1 / 3628800.0 + z / 479001600.0)))));
    whole odd = -(quarter & 1), s_bits = bits_of(s), c_bits = bits_of(c), sign = (whole){0} + INT64_MIN;
    *sine = (real)(((s_bits & ~odd) | (c_bits & odd)) ^ (sign & -((quarter >> 1) & 1)));
    *cosine = (real)(((c_bits & ~odd) | (s_bits & odd)) ^ (sign & -(((quarter + 1) >> 1) & 1)));
}

// log(1 + x), x >= 0 and below 2^51, to 1e-15: 1 + x = 2^e m with m from sqrt(1/2) to sqrt(2), log m = 2 artanh s with
// s = (m - 1)/(m + 1). What 1 + x rounds away is put back to first order.
INLINE real log_plus_one(real x) {
    real  u = 1 + x, lost = x - (u - 1);
    whole exponent = (bits_of(u) - (INT64_C(0x3fe6a09e667f3bcd))) >> 52;
    real  m = (real)(bits_of(u) - (exponent << 52)), e;
    e = (real)(exponent + INT64_C(0x4338000000000000)) - splat(6755399441055744.0); // a small whole number as a double
    real s = (m - 1) / (m + 1), z = s * s;
    real sum =
        1 / 3.0 +
        z * (1 / 5.0 +
             z * (1 / 7.0 +
                  z * (1 / 9.0 + z * (1 / 11.0 + z * (1 / 13.0 + z * (1 / 15.0 + z * (1 / 17.0 + z * (1 / 19.0))))))));
    return e * 0.69314718055994529 + 2 * (s + s * z * sum) + lost / u;
}

// ---- the air ----------------------------------------------------------------------------------------------------

INLINE void waves_at(const wind_wave *waves, const double *phases, const real *x, real *sum) {
    for (int k = 0; k < 3; k++) sum[k] = splat(0);
    for (int i = 0; i < WIND_WAVES; i++) {
        const wind_wave *w = &waves[i];
        real             s, c;
        sine_cosine(x[0] * w->k[0] + x[1] * w->k[1] + x[2] * w->k[2] + phases[i], &s, &c);
        for (int k = 0; k < 3; k++) sum[k] += w->A[k] * c + w->B[k] * s;
    }
}

// Share by which gusts raise the wind, as wind_gust_factor.
INLINE real gusts_at(const wind_now *now, real behind) {
    const solver_wind_options *o = &now->wind->options;
    double                     low = behind[0], high = behind[0];
    for (int i = 1; i < 8; i++) low = fmin(low, behind[i]), high = fmax(high, behind[i]);
    double from = floor(low / o->gust_period) - 1 - now->first, to = floor(high / o->gust_period) - now->first;
    real   sum = splat(0);
    if (!(from >= 0 && to < WIND_GUSTS)) { // far from everything else
        for (int i = 0; i < 8; i++) sum[i] = wind_gust_factor(now->wind, behind[i]);
        return sum;
    }
    for (int i = (int)from; i <= (int)to; i++) {
        real  t = (behind - now->begin[i]) / o->gust_duration, s, c;
        whole here = (whole)(t > splat(0)) & (whole)(t < splat(1));
        sine_cosine(6.283185307179586 * where(here, t), &s, &c);
        sum += where(here, now->strength[i] * 0.5 * (1 - c));
    }
    return o->gust * choose((whole)(sum < splat(1)), sum, splat(1));
}

INLINE void air_at(const wind_now *now, const real *x, real *v) {
    const solver_wind         *wind = now->wind;
    const solver_wind_options *o = &wind->options;
    const double              *up = wind->up, *along = wind->along;
    real                       height = x[0] * up[0] + x[1] * up[1] + x[2] * up[2] - o->ground;
    whole                      above = (whole)(height > splat(0));
    real                       mean = where(above, o->speed / log1p(o->reference_height / o->roughness) *
                                                       log_plus_one(where(above, height) / o->roughness));
    if (o->speed > 0 && o->gust > 0)
        mean *= 1 + gusts_at(now, now->time - (x[0] * along[0] + x[1] * along[1] + x[2] * along[2]) / o->speed);
    real share = where(above, height / (10 * o->roughness));
    share = choose((whole)(share < splat(1)), share, splat(1));
    if (o->intensity > 0)
        waves_at(wind->waves, now->phases, x, v);
    else
        v[0] = v[1] = v[2] = splat(0);
    for (int i = 0; i < 3; i++) v[i] = mean * along[i] + share * v[i];
}

static void sum(const wind_wave *waves, const double *phases, const double *x, double *u) {
    real at[3], out[3];
    memcpy(at, x, sizeof at);
    waves_at(waves, phases, at, out);
    memcpy(u, out, sizeof out);
}

static void blow(const wind_now *now, const double *x, double *v) {
    real at[3], out[3];
    memcpy(at, x, sizeof at);
    air_at(now, at, out);
    memcpy(v, out, sizeof out);
}

// ---- forces -----------------------------------------------------------------------------------------------------

// One sample of all instances, in the axes of their frames.
typedef struct sample {
    real y[3];       // its place
    real w[3];       // the air's velocity relative to it
    real n[3], size; // unit normal and area
} sample;

INLINE void place_sample(const wind_now *now, const wind_block *b, size_t k, sample *a) {
    const solver_wind_surface *s = b->surface;
    const real *q = (const real *)b->q, *dq = (const real *)b->dq, *Q = (const real *)b->Q, *spin = (const real *)b->w;
    real        scale = *(const real *)b->scale, area[3], rate[3], t[3], x[3], v[3];
    size_t      rows = 3 * (size_t)s->count, at = 3 * k;
    for (size_t i = 0; i < 3; i++) a->y[i] = splat(s->X[at + i]), area[i] = splat(s->area[at + i]), rate[i] = splat(0);
    for (size_t l = 0; l < (size_t)s->r; l++)
        for (size_t i = 0; i < 3; i++) {
            double U = s->rows[l * rows + at + i];
            a->y[i] += U * q[l], rate[i] += U * dq[l], area[i] += s->turn[l * rows + at + i] * q[l];
        }
    for (int i = 0; i < 3; i++) a->y[i] *= scale;
    cross(t, spin, a->y); // velocity in the axes of the frame: w x y + s U dq
    for (int i = 0; i < 3; i++) rate[i] = t[i] + scale * rate[i];
    for (int i = 0; i < 3; i++) x[i] = ((const real *)b->p)[i] + dot(Q + 3 * i, a->y);
    air_at(now, x, v);
    for (int i = 0; i < 3; i++) v[i] -= ((const real *)b->V)[i];
    for (int i = 0; i < 3; i++) a->w[i] = Q[i] * v[0] + Q[3 + i] * v[1] + Q[6 + i] * v[2] - rate[i];
    // the area turns but never grows
    double rest =
        sqrt(s->area[at] * s->area[at] + s->area[at + 1] * s->area[at + 1] + s->area[at + 2] * s->area[at + 2]);
    real grown = square_root(dot(area, area)), inverse = where((whole)(grown > splat(0)), 1 / grown);
    for (int i = 0; i < 3; i++) a->n[i] = area[i] * inverse;
    a->size = scale * scale * choose((whole)(grown < splat(rest)), grown, splat(rest));
}

// The normal turns with the modes, by t = (change of area)^T w / (A |w|) along the wind, and the force of the modes,
// along u = s U^T n, with it: a stiffness c u t^T, c = 3/2 rho A C_n |w.n| |w| at most, against the mass and what the
// force gives way by, h slope u u^T. Gives the square of an angular frequency.
INLINE real turning_of(const wind_block *b, size_t k, const sample *a, real slope, const real *u) {
    const solver_wind_surface *s = b->surface;
    const double              *area = s->area + 3 * k;
    size_t                     rows = 3 * (size_t)s->count;
    double                     size2 = area[0] * area[0] + area[1] * area[1] + area[2] * area[2];
    real                       uu = splat(0), tt = splat(0);
    if (!(size2 > 0)) return uu;
    for (size_t l = 0; l < (size_t)s->r; l++) {
        const double *T = s->turn + l * rows + 3 * k;
        real          t = T[0] * a->w[0] + T[1] * a->w[1] + T[2] * a->w[2];
        uu += u[l] * u[l], tt += t * t;
    }
    real stiffness = 1.5 * slope * square_root(uu * (1 / size2) * tt); // |w| is in c and in t
    return stiffness / (*(const real *)b->mass + b->step * slope * uu);
}

// f = 1/2 rho A (C_n |w.n| (w.n) n + C_t |w_t| w_t); the normal force grows with the speed along n by rho A C_n |w.n|,
// which S has for every sample. Friction falls by less than rho C_t |w| (sum of area J^T J), w the fastest: cheap.
static void push(const wind_now *now, const wind_block *b) {
    const solver_wind_surface *s = b->surface;
    size_t                     r = (size_t)s->r, rows = 3 * (size_t)s->count;
    double                     density = now->wind->options.density;
    real                       scale = *(const real *)b->scale, used = *(const real *)b->used, fastest = splat(0);
    real                      *wrench = (real *)b->wrench, *modal = (real *)b->modal, *row = (real *)b->row, *S;
    for (size_t k = 0; k < (size_t)s->count; k++) {
        sample a;
        real   across[3], f[3], torque[3];
        place_sample(now, b, k, &a);
        real along = dot(a.w, a.n), weight = used * density * a.size, slope = weight * s->normal * magnitude(along);
        for (int i = 0; i < 3; i++) across[i] = a.w[i] - along * a.n[i];
        real friction = 0.5 * weight * s->tangential * square_root(dot(across, across));
        for (int i = 0; i < 3; i++) f[i] = 0.5 * slope * along * a.n[i] + friction * across[i];
        cross(torque, a.y, f);
        for (int i = 0; i < 3; i++) wrench[i] += f[i], wrench[3 + i] += torque[i];
        // how much the sample moves along n with modes and frame: (s U^T n; n; y x n)
        for (size_t l = 0; l < r; l++) {
            const double *U = s->rows + l * rows + 3 * k;
            row[l] = scale * (U[0] * a.n[0] + U[1] * a.n[1] + U[2] * a.n[2]);
            modal[l] += scale * (U[0] * f[0] + U[1] * f[1] + U[2] * f[2]);
        }
        for (size_t i = 0; i < 3; i++) row[r + i] = a.n[i];
        cross(row + r + 3, a.y, a.n);
        S = (real *)b->S;
        for (size_t i = 0; i < r + 6; i++) {
            real factor = b->step * slope * row[i];
            for (size_t j = 0; j <= i; j++) *S++ += factor * row[j];
        }
        *(real *)b->turning += turning_of(b, k, &a, slope, row);
        fastest = largest(fastest, dot(a.w, a.w));
    }
    if (!(s->tangential > 0)) return;
    const double *fall = b->fall;
    real          factor = b->step * density * s->tangential * used * square_root(fastest) * scale * scale;
    real          factors[3] = {factor, factor * scale, factor * scale * scale};
    S = (real *)b->S;
    for (size_t i = 0; i < r + 6; i++) // entries of modes and of torques have a length in them
        for (size_t j = 0; j <= i; j++) *S++ += factors[!(i >= r && i < r + 3) + !(j >= r && j < r + 3)] * *fall++;
}

wind_kernels JOIN(wind_kernels, SIMD_SUFFIX)(void) { return (wind_kernels){.sum = sum, .blow = blow, .push = push}; }
