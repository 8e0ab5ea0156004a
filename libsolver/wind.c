// The velocity of the air: see wind.h.
//
// Energy over wave numbers k [von Kármán 1948], sigma the standard deviation of one component, L the longitudinal
// integral scale, k0 = 1 / (1.339 L):
//     E(k) ~ (k/k0)^4 / (1 + (k/k0)^2)^(17/6),   integral of E = 3/2 sigma^2
// The range of k is cut into bands of equal ratio. In each band three waves have wave vectors at right angles to each
// other, in random directions: their velocities, across their vectors, then have the same variance along every axis,
// so that sigma is met exactly in every band and at every point, whatever the seed.
#include "libsolver/wind_internal.h"

solver_wind_options solver_wind_default_options(void) {
    return (solver_wind_options){.direction = {1, 0, 0},
                                 .up = {0, 1, 0},
                                 .speed = 5,
                                 .reference_height = 10,
                                 .roughness = 0.1,
                                 .intensity = 0.25,
                                 .length = 20,
                                 .gust = 0.5,
                                 .gust_period = 8,
                                 .gust_duration = 4,
                                 .density = 1.2,
                                 .seed = 1};
}

static fem_status check(const char *name, double value, double low, double high) {
    if (value >= low && value <= high) return FEM_OK;
    return fem_fail(FEM_BAD_INPUT, "wind.%s is %g, expected %g to %g", name, value, low, high);
}

fem_status solver_wind_check_options(const solver_wind_options *o) {
    fem_status status = FEM_OK;
    FEM_TRY(check("speed", o->speed, 0, 100));
    FEM_TRY(check("ground", o->ground, -1e6, 1e6));
    FEM_TRY(check("reference_height", o->reference_height, 1e-3, 1e4));
    FEM_TRY(check("roughness", o->roughness, 1e-6, 10));
    FEM_TRY(check("intensity", o->intensity, 0, 1));
    FEM_TRY(check("length", o->length, 1e-3, 1e5));
    FEM_TRY(check("gust", o->gust, 0, 5));
    FEM_TRY(check("gust_period", o->gust_period, 1e-2, 1e5));
    FEM_TRY(check("gust_duration", o->gust_duration, 1e-2, o->gust_period));
    FEM_TRY(check("density", o->density, 0, 2000));
    double up = vec3_norm(o->up), along = vec3_norm(o->direction), cross[3];
    vec3_cross(cross, o->direction, o->up);
    if (!(up > 0 && along > 0) || !isfinite(up) || !isfinite(along) || vec3_norm(cross) < 1e-6 * up * along)
        status = fem_fail(FEM_BAD_INPUT, "wind.direction is (%g, %g, %g), expected one that is not vertical",
                          o->direction[0], o->direction[1], o->direction[2]);
done:
    return status;
}

// ---- chance -----------------------------------------------------------------------------------------------------

static uint64_t scramble(uint64_t z) { // splitmix64's output
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
double solver_random(uint64_t *state) {
    return (double)(scramble(*state += 0x9e3779b97f4a7c15u) >> 11) / 9007199254740992.0;
}

// A random rotation, from a random quaternion [Shoemake 1992].
static void random_rotation(uint64_t *state, double R[9]) {
    double a = solver_random(state), b = 2 * M_PI * solver_random(state), c = 2 * M_PI * solver_random(state),
           s = sqrt(1 - a), t = sqrt(a);
    double x = s * sin(b), y = s * cos(b), z = t * sin(c), w = t * cos(c);
    R[0] = 1 - 2 * (y * y + z * z), R[1] = 2 * (x * y - z * w), R[2] = 2 * (x * z + y * w);
    R[3] = 2 * (x * y + z * w), R[4] = 1 - 2 * (x * x + z * z), R[5] = 2 * (y * z - x * w);
    R[6] = 2 * (x * z - y * w), R[7] = 2 * (y * z + x * w), R[8] = 1 - 2 * (x * x + y * y);
}

// ---- turbulence -------------------------------------------------------------------------------------------------

// k^4 / (1 + k^2)^(17/6) in d log k: energy of a band by Simpson's rule, 32 intervals
static double band_energy(double low, double high) {
    double sum = 0, step = log(high / low) / 32;
    for (int i = 0; i <= 32; i++) {
        double k = low * exp(i * step), weight = i == 0 || i == 32 ? 1 : i % 2 ? 4 : 2;
        sum += weight * k * k * k * k * k / pow(1 + k * k, 17.0 / 6);
    }
    return sum * step / 3;
}

static void make_waves(solver_wind *wind) {
    const solver_wind_options *o = &wind->options;
    double   k0 = 1 / (1.339 * o->length), low = 0.03, high = 300, total = 0, ratio = pow(high / low, 1.0 / WIND_BANDS);
    double   energy[WIND_BANDS];
    uint64_t state = o->seed;
    for (int b = 0; b < WIND_BANDS; b++) total += energy[b] = band_energy(low * pow(ratio, b), low * pow(ratio, b + 1));
    for (int b = 0; b < WIND_BANDS; b++) {
        // three waves of two independent polarisations: 3 sigma^2 share = 3 * 2 * a^2 / 2
        double a = o->intensity * o->speed * sqrt(energy[b] / total), axes[9];
        random_rotation(&state, axes);
        for (int j = 0; j < 3; j++) {
            wind_wave    *w = &wind->waves[3 * b + j];
            const double *n = axes + 3 * j, *e = axes + 3 * ((j + 1) % 3), *f = axes + 3 * ((j + 2) % 3);
            double        k = k0 * low * pow(ratio, b + solver_random(&state)), p1 = 2 * M_PI * solver_random(&state),
                   p2 = 2 * M_PI * solver_random(&state);
            w->phase = 2 * M_PI * solver_random(&state);
            for (int i = 0; i < 3; i++) {
                w->k[i] = k * n[i];
                w->A[i] = a * (cos(p1) * e[i] + cos(p2) * f[i]);
                w->B[i] = a * (sin(p1) * e[i] + sin(p2) * f[i]);
            }
        }
    }
}

// ---- life -------------------------------------------------------------------------------------------------------

fem_status solver_wind_create(solver_wind **created, const solver_wind_options *options) {
    fem_status status = solver_wind_check_options(options);
    if (status != FEM_OK) return status;
    solver_wind *wind = fem_calloc(1, sizeof *wind);
    if (!wind) return fem_fail(FEM_NO_MEMORY, "wind: no memory for its waves");
    wind->options = *options;
    for (int i = 0; i < 3; i++) wind->up[i] = options->up[i], wind->along[i] = options->direction[i];
    vec3_normalize(wind->up);
    vec3_axpy(wind->along, -vec3_dot(wind->along, wind->up), wind->up);
    vec3_normalize(wind->along);
    make_waves(wind);
    *created = wind;
    return FEM_OK;
}

void solver_wind_destroy(solver_wind *wind) { fem_free(wind); }

// ---- at a place and time ----------------------------------------------------------------------------------------

double solver_wind_mean(const solver_wind *wind, double height) {
    const solver_wind_options *o = &wind->options;
    if (!(height > 0)) return 0;
    return o->speed * log1p(height / o->roughness) / log1p(o->reference_height / o->roughness);
}

// In every period one gust of its own strength comes at a time of its own: (1 + cos) / 2 over its duration. None where
// no whole number tells periods apart, as for a body that flew away.
static void gust_of(const solver_wind *wind, double period, double *begin, double *strength) {
    *begin = *strength = 0;
    if (!(fabs(period) < 9e15)) return;
    uint64_t state = wind->options.seed ^ scramble((uint64_t)(int64_t)period * 0x632be59bd9b4e019u);
    *begin = (period + solver_random(&state)) * wind->options.gust_period;
    *strength = 0.3 + 0.7 * solver_random(&state);
}

double wind_gust_factor(const solver_wind *wind, double s) {
    const solver_wind_options *o = &wind->options;
    double                     sum = 0, period = floor(s / o->gust_period), begin, strength;
    for (int i = -1; i <= 0; i++) { // those that can be here: none is longer than a period
        gust_of(wind, period + i, &begin, &strength);
        double t = (s - begin) / o->gust_duration;
        if (t > 0 && t < 1) sum += strength * 0.5 * (1 - cos(2 * M_PI * t));
    }
    return o->gust * fmin(sum, 1);
}

// Mean wind and gusts; *share gets what part of the turbulence there is: it dies out towards the ground.
static void steady_part(const solver_wind *wind, double time, const double x[3], double v[3], double *share) {
    const solver_wind_options *o = &wind->options;
    double                     height = vec3_dot(x, wind->up) - o->ground, mean = solver_wind_mean(wind, height);
    double                     behind = o->speed > 0 ? time - vec3_dot(x, wind->along) / o->speed : 0;
    double                     factor = mean > 0 && o->gust > 0 ? 1 + wind_gust_factor(wind, behind) : 1;
    for (int i = 0; i < 3; i++) v[i] = mean * factor * wind->along[i];
    *share = fmin(fmax(height / (10 * o->roughness), 0), 1);
}

static double phase_at(const solver_wind *wind, const wind_wave *w, double time) { // reduced, so that it stays exact
    return remainder(w->phase - vec3_dot(w->k, wind->along) * wind->options.speed * time, 2 * M_PI);
}

void solver_wind_velocity(const solver_wind *wind, double time, const double x[3], double v[3]) {
    double share;
    steady_part(wind, time, x, v, &share);
    for (int i = 0; i < WIND_WAVES; i++) {
        const wind_wave *w = &wind->waves[i];
        double           theta = vec3_dot(w->k, x) + phase_at(wind, w, time);
        vec3_axpy(v, share * cos(theta), w->A);
        vec3_axpy(v, share * sin(theta), w->B);
    }
}

void wind_now_start(wind_now *now, const solver_wind *wind, double time) {
    *now = (wind_now){.wind = wind, .time = time};
    now->first = floor(time / wind->options.gust_period) - WIND_GUSTS / 2;
    for (int i = 0; i < WIND_WAVES; i++) now->phases[i] = phase_at(wind, &wind->waves[i], time);
    for (int i = 0; i < WIND_GUSTS; i++) gust_of(wind, now->first + i, &now->begin[i], &now->strength[i]);
}

wind_kernels wind_choose_kernels(void) {
#if defined(__x86_64__)
    fem_simd level = fem_simd_level();
    if (level == FEM_SIMD_AVX512) return wind_kernels_avx512();
    if (level == FEM_SIMD_AVX2) return wind_kernels_avx2();
#endif
    return wind_kernels_baseline();
}

typedef struct wind_task {
    wind_now      now;
    int           count;
    const double *x;
    double       *v;
    wind_kernels  kernels;
} wind_task;

enum { BLOCKS_A_TASK = 16 };

static void blow_some(void *context, int index, int worker) {
    (void)worker;
    const wind_task *t = context;
    int end = (index + 1) * BLOCKS_A_TASK * WIND_BLOCK < t->count ? (index + 1) * BLOCKS_A_TASK * WIND_BLOCK : t->count;
    for (int first = index * BLOCKS_A_TASK * WIND_BLOCK; first < end; first += WIND_BLOCK) {
        _Alignas(64) double x[3 * WIND_BLOCK], v[3 * WIND_BLOCK];
        int                 here = end - first < WIND_BLOCK ? end - first : WIND_BLOCK;
        for (int k = 0; k < WIND_BLOCK; k++)
            for (int i = 0; i < 3; i++)
                x[i * WIND_BLOCK + k] = t->x[3 * (size_t)(first + (k < here ? k : 0)) + (size_t)i];
        t->kernels.blow(&t->now, x, v);
        for (int k = 0; k < here; k++)
            for (int i = 0; i < 3; i++) t->v[3 * (size_t)(first + k) + (size_t)i] = v[i * WIND_BLOCK + k];
    }
}

fem_status solver_wind_velocities(const solver_wind *wind, double time, int count, const double *x, double *v) {
    wind_task t = {.count = count, .x = x, .v = v, .kernels = wind_choose_kernels()};
    if (!isfinite(time)) return fem_fail(FEM_BAD_INPUT, "wind: the time is %g", time);
    wind_now_start(&t.now, wind, time);
    int points = BLOCKS_A_TASK * WIND_BLOCK;
    fem_parallel_for(count / points + (count % points != 0), blow_some, &t);
    return FEM_OK;
}
