// Wind: profile, spectrum, travel, and the forces on surfaces.
#include "libsolver/wind_internal.h"
#include "tests/tree_case.h"

#include <math.h>

static solver_wind *make_wind(const solver_wind_options *options) {
    solver_wind *wind = NULL;
    assert_ok(solver_wind_create(&wind, options));
    return wind;
}

// the mean over time follows the logarithmic law: speed at the reference height, zero at the ground
static void test_profile(void **state) {
    (void)state;
    solver_wind_options o = solver_wind_default_options();
    o.gust = 0, o.speed = 8, o.roughness = 0.05, o.ground = 2;
    solver_wind *wind = make_wind(&o);
    assert_true(solver_wind_mean(wind, 0) == 0 && solver_wind_mean(wind, -3) == 0);
    assert_true(fabs(solver_wind_mean(wind, 10) - 8) < 1e-12);
    for (int k = 0; k < 4; k++) {
        double height = pow(3, k), expected = 8 * log(1 + height / 0.05) / log(1 + 10 / 0.05), sum[3] = {0};
        enum { TIMES = 40000 };
        for (int i = 0; i < TIMES; i++) {
            double v[3], x[3] = {3, 2 + height, 7};
            solver_wind_velocity(wind, 1.7 * i, x, v);
            for (int a = 0; a < 3; a++) sum[a] += v[a] / TIMES;
        }
        printf("height %4.0f m: mean %.3f m/s, law %.3f, across %.3f %.3f\n", height, sum[0], expected, sum[1], sum[2]);
        assert_true(fabs(sum[0] - expected) < 0.02 * 8 && fabs(sum[1]) < 0.16 && fabs(sum[2]) < 0.16);
    }
    double v[3];
    solver_wind_velocity(wind, 3, (const double[]){1, 1.9, 1}, v); // below the ground
    assert_true(vec3_norm(v) == 0);
    solver_wind_destroy(wind);
}

// radix-2, in place: sum of z_j exp(-2 pi i j k / n)
static void fourier(int n, number *z) {
    for (int i = 1, j = 0; i < n; i++) {
        int bit = n >> 1;
        for (; j & bit; bit >>= 1) j ^= bit;
        j ^= bit;
        if (i < j) {
            number t = z[i];
            z[i] = z[j], z[j] = t;
        }
    }
    for (int length = 2; length <= n; length *= 2)
        for (int i = 0; i < n; i += length)
            for (int k = 0; k < length / 2; k++) {
                number w = cexp(-2 * M_PI * i_unit * k / length), a = z[i + k], b = w * z[i + k + length / 2];
                z[i + k] = a + b, z[i + k + length / 2] = a - b;
            }
}

// the spectrum at a point is von Kármán's, octave by octave, and falls with the power -5/3
static void test_spectrum(void **state) {
    (void)state;
    enum { N = 4096, SEEDS = 60, OCTAVES = 8 };
    const double  rate = 20, U = 10, L = 15, sigma = 2;
    static double x[3 * N], v[3 * N];
    static number z[N];
    double        power[N / 2] = {0}, variance[3] = {0};
    for (int seed = 0; seed < SEEDS; seed++) {
        solver_wind_options o = solver_wind_default_options();
        o.speed = U, o.length = L, o.intensity = sigma / U, o.gust = 0, o.seed = (uint64_t)(seed + 1);
        solver_wind *wind = make_wind(&o);
        // frozen turbulence: the record in time is the record along the wind, from the end
        for (int i = 0; i < N; i++) x[3 * i] = -U * i / rate, x[3 * i + 1] = 10, x[3 * i + 2] = 0;
        assert_ok(solver_wind_velocities(wind, 0, N, x, v));
        double window_power = 0;
        for (int i = 0; i < N; i++) {
            double window = 0.5 * (1 - cos(2 * M_PI * i / N));
            z[i] = window * (v[3 * i] - U);
            window_power += window * window / N;
            for (int a = 0; a < 3; a++) variance[a] += pow(v[3 * i + a] - (a == 0 ? U : 0), 2) / N / SEEDS;
        }
        fourier(N, z);
        for (int k = 1; k < N / 2; k++) power[k] += 2 * pow(cabs(z[k]), 2) / (N * rate) / window_power / SEEDS; // m2/s
        solver_wind_destroy(wind);
    }
    printf("variance %.3f %.3f %.3f of %.3f\n", variance[0], variance[1], variance[2], sigma * sigma);
    for (int a = 0; a < 3; a++) assert_true(fabs(variance[a] / (sigma * sigma) - 1) < 0.06);
    double ratio[OCTAVES], slope_first = 0, slope_last = 0;
    for (int octave = 0; octave < OCTAVES; octave++) {
        double sum = 0, expected = 0, step = rate / N;
        int    low = 8 << octave, high = 16 << octave;
        for (int k = low; k < high && k < N / 2; k++) {
            double n = k * step, X = n * L / U;
            sum += power[k] * step;
            expected += 4 * sigma * sigma * L / U / pow(1 + 70.8 * X * X, 5.0 / 6) * step;
        }
        ratio[octave] = sum / expected;
        if (octave == 4) slope_first = sum;
        if (octave == 7) slope_last = sum;
        printf("%.3f to %.3f Hz: %.4f m2/s2, von Karman %.4f, ratio %.3f\n", low * step, high * step, sum, expected,
               ratio[octave]);
        assert_true(ratio[octave] > 0.8 && ratio[octave] < 1.2);
    }
    double slope = log2(slope_last / slope_first) / 3 - 1; // energy of an octave is n S
    printf("slope %.3f, -5/3 is %.3f\n", slope, -5.0 / 3);
    assert_true(fabs(slope + 5.0 / 3) < 0.1);
}

// turbulence has no divergence
static void test_divergence(void **state) {
    (void)state;
    solver_wind_options o = solver_wind_default_options();
    o.gust = 0, o.length = 2;
    solver_wind *wind = make_wind(&o);
    double       h = 1e-5, divergence = 0, gradient = 0;
    for (int a = 0; a < 3; a++) {
        double up[3] = {1, 20, 3}, down[3] = {1, 20, 3}, v[3], w[3];
        up[a] += h, down[a] -= h;
        solver_wind_velocity(wind, 1, up, v), solver_wind_velocity(wind, 1, down, w);
        double mean = a == 1 ? (solver_wind_mean(wind, 20 + h) - solver_wind_mean(wind, 20 - h)) : 0;
        for (int i = 0; i < 3; i++) gradient = fmax(gradient, fabs(v[i] - w[i] - (i == 0 ? mean : 0)) / 2 / h);
        divergence += (v[a] - w[a]) / 2 / h;
    }
    printf("divergence %.2e, gradient %.2e 1/s\n", divergence, gradient);
    assert_true(gradient > 0.1 && fabs(divergence) < 1e-6 * gradient);
    solver_wind_destroy(wind);
}

// what is here now is there later: gusts and turbulence travel with the wind
static void test_travel(void **state) {
    (void)state;
    solver_wind_options o = solver_wind_default_options();
    o.direction[0] = 1, o.direction[2] = 1, o.gust = 1.5;
    solver_wind *wind = make_wind(&o);
    double       worst = 0, strongest = 0, weakest = 1e9;
    for (int i = 0; i < 400; i++) {
        double d = 12.5 / sqrt(2), a[3] = {4, 10, -3}, b[3] = {4 + d, 10, -3 + d}, v[3], w[3];
        solver_wind_velocity(wind, 0.3 * i, a, v);
        solver_wind_velocity(wind, 0.3 * i + 12.5 / o.speed, b, w);
        worst = fmax(worst, vec3_distance(v, w));
        strongest = fmax(strongest, vec3_norm(v)), weakest = fmin(weakest, vec3_norm(v));
    }
    printf("12.5 m down the wind, 2.5 s later: %.2e m/s; from %.1f to %.1f m/s\n", worst, weakest, strongest);
    assert_true(worst < 1e-9 && strongest > 2 * weakest && strongest > 1.5 * o.speed);
    solver_wind_destroy(wind);
}

// many points at once are the points one by one, with every kernel; another seed is another wind
static void test_batch(void **state) {
    (void)state;
    enum { COUNT = 1003 };
    solver_wind_options o = solver_wind_default_options();
    solver_wind        *wind = make_wind(&o), *other;
    double             *x = malloc(sizeof *x * 3 * COUNT), *v = malloc(sizeof *v * 3 * COUNT), worst = 0, away = 0;
    uint64_t            seed = 3;
    o.seed++;
    other = make_wind(&o);
    test_random_fill(&seed, 3 * COUNT, 60, x);
    assert_ok(solver_wind_velocities(wind, 12.3, COUNT, x, v));
    for (int i = 0; i < COUNT; i++) {
        double w[3];
        solver_wind_velocity(wind, 12.3, x + 3 * i, w);
        worst = fmax(worst, vec3_distance(v + 3 * i, w));
        solver_wind_velocity(other, 12.3, x + 3 * i, w);
        away = fmax(away, vec3_distance(v + 3 * i, w));
    }
    const wind_kernels kernels[] = {
        wind_kernels_baseline(),
#if defined(__x86_64__)
        fem_simd_level() >= FEM_SIMD_AVX2 ? wind_kernels_avx2() : wind_kernels_baseline(),
        fem_simd_level() >= FEM_SIMD_AVX512 ? wind_kernels_avx512() : wind_kernels_baseline()
#endif
    };
    double phases[WIND_WAVES], u[3 * 8], points[3 * 8], kernel_error = 0;
    test_random_fill(&seed, WIND_WAVES, 3, phases);
    test_random_fill(&seed, 24, 500, points);
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        kernels[k].sum(wind->waves, phases, points, u);
        for (int p = 0; p < 8; p++) {
            double sum[3] = {0};
            for (int i = 0; i < WIND_WAVES; i++) {
                const wind_wave *w = &wind->waves[i];
                double theta = w->k[0] * points[p] + w->k[1] * points[8 + p] + w->k[2] * points[16 + p] + phases[i];
                for (int a = 0; a < 3; a++) sum[a] += w->A[a] * cos(theta) + w->B[a] * sin(theta);
            }
            for (int a = 0; a < 3; a++) kernel_error = fmax(kernel_error, fabs(sum[a] - u[8 * a + p]));
        }
    }
    printf("batch against plain %.2e m/s, kernels %.2e, another seed %.2f\n", worst, kernel_error, away);
    assert_true(worst < 1e-8 && kernel_error < 1e-8 && away > 0.5);
    solver_wind_destroy(wind), solver_wind_destroy(other);
    free(x), free(v);
}

// ---- surfaces ---------------------------------------------------------------------------------------------------

// A plate of 2 n^2 triangles, a x b, around the origin, its normal along z.
static void make_plate(int n, double a, double b, double *x, int *triangles) {
    for (int j = 0; j <= n; j++)
        for (int i = 0; i <= n; i++) {
            double *p = x + 3 * (j * (n + 1) + i);
            p[0] = a * ((double)i / n - 0.5), p[1] = b * ((double)j / n - 0.5), p[2] = 0;
        }
    for (int j = 0, t = 0; j < n; j++)
        for (int i = 0; i < n; i++, t += 6) {
            int v = j * (n + 1) + i, corners[6] = {v, v + 1, v + n + 2, v, v + n + 2, v + n + 1};
            memcpy(triangles + t, corners, sizeof corners);
        }
}

// A tree of one rigid plate and the wind on it: force and torque in its axes.
static void plate_force(const solver_wind *wind, const solver_wind_surface *surface, const double angles[3],
                        const double velocity[3], double scale, double wrench[6]) {
    solver_inertia       inertia = {.m = 1, .Z0 = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    solver_tree_class    plate = {.name = "plate", .inertia = &inertia};
    solver_tree_instance instance = {.parent = -1, .scale = scale, .stiffness = 1, .root = SOLVER_ROOT_FREE};
    solver_tree_options  options = solver_tree_default_options();
    solver_frame_motion  motion = {.p = {0, 10, 0}};
    solver_tree         *tree = NULL;
    solver_wind_load    *load = NULL;
    options.time_step = 0.01;
    mat3_exp(motion.Q, angles);
    memcpy(motion.v, velocity, sizeof motion.v);
    assert_ok(solver_tree_create(&tree, 1, &plate, 1, &instance, &options));
    assert_ok(solver_tree_set_root(tree, 0, &motion));
    assert_ok(solver_wind_load_create(&load, wind, 1, surface, 1));
    assert_ok(solver_wind_load_apply(load, tree));
    for (int i = 0; i < 6; i++) wrench[i] = tree->domains[0].load[i * LANES];
    solver_wind_load_destroy(load);
    solver_tree_destroy(tree);
}

// a fixed plate feels 1/2 rho C A U^2 across, (U sin a)^2 aslant with its lift, nothing when it moves with the wind
static void test_plate(void **state) {
    (void)state;
    enum { N = 6 };
    double              x[3 * (N + 1) * (N + 1)], wrench[6], still[3] = {0};
    int                 triangles[6 * N * N];
    solver_wind_options o = solver_wind_default_options();
    o.intensity = o.gust = 0, o.speed = 7, o.direction[0] = 0, o.direction[2] = 1;
    solver_wind        *wind = make_wind(&o);
    solver_wind_surface s = {0};
    make_plate(N, 0.4, 0.3, x, triangles);
    assert_ok(solver_wind_surface_create(&s, (N + 1) * (N + 1), x, 2 * N * N, triangles, 0, NULL, 1, 1.2, 0));
    double expected = 0.5 * 1.2 * 1.2 * 0.12 * 49;
    plate_force(wind, &s, (const double[]){0, 0, 0}, still, 1, wrench);
    printf("drag %.9f N, formula %.9f N\n", wrench[2], expected);
    assert_true(fabs(wrench[2] / expected - 1) < 1e-12 && fabs(wrench[0]) + fabs(wrench[1]) < 1e-12);
    plate_force(wind, &s, (const double[]){0, 0, 0}, still, 2, wrench); // twice as large: four times the area
    assert_true(fabs(wrench[2] / expected - 4) < 1e-11);
    plate_force(wind, &s, (const double[]){0, 0, 0}, (const double[]){0, 0, 7}, 1, wrench);
    assert_true(fabs(wrench[2]) < 1e-12);
    plate_force(wind, &s, (const double[]){0, 0, 0}, (const double[]){0, 0, -7}, 1, wrench); // against it
    assert_true(fabs(wrench[2] / expected - 4) < 1e-12);
    double tilt = 0.6; // about the vertical: normal force with U cos(tilt), all along the normal
    plate_force(wind, &s, (const double[]){0, tilt, 0}, still, 1, wrench);
    assert_true(fabs(wrench[2] / (expected * pow(cos(tilt), 2)) - 1) < 1e-12 && fabs(wrench[0]) < 1e-12);
    double drag = wrench[2] * cos(tilt), lift = wrench[2] * sin(tilt);
    printf("tilted by %.1f rad: drag %.4f, lift %.4f N\n", tilt, drag, lift);
    assert_true(fabs(lift / drag - tan(tilt)) < 1e-12);
    // friction acts along the plate
    s.tangential = 0.02;
    plate_force(wind, &s, (const double[]){0, M_PI / 2, 0}, still, 1, wrench);
    assert_true(fabs(fabs(wrench[0]) / (0.5 * 1.2 * 0.02 * 0.12 * 49) - 1) < 1e-9 && fabs(wrench[2]) < 1e-12);
    solver_wind_surface_destroy(&s);
    // more samples see the same wind but for its growth with height
    assert_ok(solver_wind_surface_create(&s, (N + 1) * (N + 1), x, 2 * N * N, triangles, 0, NULL, 9, 1.2, 0));
    assert_int_equal(s.count, 9);
    plate_force(wind, &s, (const double[]){0, 0, 0}, still, 1, wrench);
    assert_true(fabs(wrench[2] / expected - 1) < 1e-3 && fabs(wrench[2] / expected - 1) > 1e-9);
    solver_wind_surface_destroy(&s);
    solver_wind_destroy(wind);
}

// a closed cylinder across the wind has a drag coefficient of 2/3 C: 4/3 over the sides, each of which counts half
static void test_cylinder(void **state) {
    (void)state;
    enum { N = 96 };
    double x[3 * 2 * N + 6], wrench[6];
    int    triangles[12 * N];
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 2; k++) {
            double *p = x + 3 * (2 * i + k);
            p[0] = 0.1 * cos(2 * M_PI * i / N), p[1] = k - 0.5, p[2] = 0.1 * sin(2 * M_PI * i / N);
        }
    memcpy(x + 6 * N, (double[]){0, -0.5, 0, 0, 0.5, 0}, 6 * sizeof *x);
    for (int i = 0; i < N; i++) {
        int a = 2 * i, b = 2 * ((i + 1) % N),
            corners[12] = {a, a + 1, b, b, a + 1, b + 1, a, b, 2 * N, b + 1, a + 1, 2 * N + 1};
        memcpy(triangles + 12 * i, corners, sizeof corners);
    }
    solver_wind_options o = solver_wind_default_options();
    o.intensity = o.gust = 0, o.speed = 5;
    solver_wind        *wind = make_wind(&o);
    solver_wind_surface s = {0};
    assert_ok(solver_wind_surface_create(&s, 2 * N + 2, x, 4 * N, triangles, 0, NULL, 400, 0.9, 0));
    assert_true(s.normal == 0.45);
    plate_force(wind, &s, (const double[]){0, 0, 0}, (const double[]){0, 0, 0}, 1, wrench);
    double expected = 0.5 * 1.2 * (2.0 / 3 * 0.9) * 0.2 * 25;
    printf("drag of a cylinder %.4f N, formula %.4f N\n", wrench[0], expected);
    assert_true(fabs(wrench[0] / expected - 1) < 0.01);
    solver_wind_surface_destroy(&s);
    solver_wind_destroy(wind);
}

// area vectors follow the deformation to second order
static void test_turn(void **state) {
    (void)state;
    enum { N = 5, R = 3, V = (N + 1) * (N + 1) };
    double              x[3 * V], modes[3 * V * R];
    int                 triangles[6 * N * N];
    uint64_t            seed = 5;
    solver_wind_surface s = {0}, moved = {0};
    make_plate(N, 0.4, 0.3, x, triangles);
    test_random_fill(&seed, 3 * V * R, 0.1, modes);
    assert_ok(solver_wind_surface_create(&s, V, x, 2 * N * N, triangles, R, modes, 1, 1, 0));
    double error[2];
    for (int k = 0; k < 2; k++) {
        double q[R] = {0.4, -0.3, 0.2}, y[3 * V], area[3];
        memcpy(y, x, sizeof y), memcpy(area, s.area, sizeof area);
        for (int l = 0; l < R; l++) {
            q[l] *= k == 0 ? 0.1 : 0.05;
            dense_axpy(3 * V, q[l], modes + 3 * V * l, y);
            vec3_axpy(area, q[l], s.turn + 3 * l);
        }
        assert_ok(solver_wind_surface_create(&moved, V, y, 2 * N * N, triangles, 0, NULL, 1, 1, 0));
        error[k] = vec3_distance(area, moved.area);
        solver_wind_surface_destroy(&moved);
    }
    printf("area vectors: %.2e, %.2e m2 at half, order %.2f\n", error[0], error[1], log2(error[0] / error[1]));
    assert_true(error[0] > 1e-9 && fabs(log2(error[0] / error[1]) - 2) < 0.05);
    solver_wind_surface_destroy(&s);
}

// What loads give way by is the step times minus their derivative by velocities: those of the modes here, by central
// differences. Ten instances, so that a block is not full. Friction resists with more than its derivative, hence not
// here.
static void test_give_way(void **state) {
    (void)state;
    enum { S = 4, N = 10, R = 3 };
    case_forces    forces = {.r = R, .K = {50, 0, 0, 0, 60, 0, 0, 0, 70}};
    double         Mqq[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, zeros[9 * R * R] = {0};
    solver_inertia inertia = {
        .m = 1, .Z0 = {1, 0, 0, 0, 1, 0, 0, 0, 1}, .r = R, .S1 = zeros, .W5 = zeros, .W7 = zeros, .Mqq = Mqq};
    solver_tree_class leaf = {
        .name = "leaf", .inertia = &inertia, .forces = {.r = R, .model = &forces, .evaluate = case_evaluate}};
    solver_tree_instance instances[N];
    solver_tree_options  options = solver_tree_default_options();
    solver_wind_options  o = solver_wind_default_options();
    solver_wind         *wind = make_wind(&o);
    solver_wind_surface  s = {.count = S, .r = R, .normal = 1.1};
    solver_wind_load    *load = NULL;
    solver_tree         *tree = NULL;
    uint64_t             seed = 17;
    double               q[N][R], dq[N][R], worst = 0, largest = 0, d = 1e-5;
    for (int i = 0; i < N; i++)
        instances[i] =
            (solver_tree_instance){.parent = -1, .scale = 0.5 + 0.2 * i, .stiffness = 1, .root = SOLVER_ROOT_FREE};
    options.time_step = 0.02;
    assert_ok(solver_tree_create(&tree, 1, &leaf, N, instances, &options));
    s.X = fem_alloc(3 * S, 8), s.area = fem_alloc(3 * S, 8), s.rows = fem_alloc(3 * S * R, 8),
    s.turn = fem_alloc(3 * S * R, 8);
    test_random_fill(&seed, 3 * S, 0.5, s.X), test_random_fill(&seed, 3 * S, 0.2, s.area);
    test_random_fill(&seed, 3 * S * R, 0.5, s.rows), test_random_fill(&seed, 3 * S * R, 0.1, s.turn);
    assert_ok(solver_wind_load_create(&load, wind, 1, &s, N));
    for (int i = 0; i < N; i++) {
        solver_frame_motion motion = {.p = {i, 5 + i, 0}, .v = {1, 0, 0.1 * i}, .w = {0.1 * i, 0.3, 0}};
        mat3_exp(motion.Q, (const double[]){0.3 * i, -0.5, 0.2});
        test_random_fill(&seed, R, 0.2, q[i]), test_random_fill(&seed, R, 2, dq[i]);
        assert_ok(solver_tree_set_root(tree, i, &motion));
        assert_ok(solver_tree_set_state(tree, i, q[i], dq[i]));
    }
    assert_ok(solver_wind_load_apply(load, tree));
    for (int i = 0; i < N; i++) {
        const tree_domain *domain = &tree->domains[tree->sorted[i]];
        double             given[(R + 6) * (R + 7) / 2], change[R + 6][2];
        for (int k = 0; k < (R + 6) * (R + 7) / 2; k++) given[k] = domain->resistance[k * LANES];
        for (int m = 0; m < R; m++) {
            for (int side = 0; side < 2; side++) {
                double moved[R];
                memcpy(moved, dq[i], sizeof moved);
                moved[m] += side ? d : -d;
                assert_ok(solver_tree_set_state(tree, i, q[i], moved));
                assert_ok(solver_wind_load_apply(load, tree));
                for (int k = 0; k < R + 6; k++) change[k][side] = domain->load[(k < R ? 6 + k : k - R) * LANES];
            }
            for (int k = 0; k < R + 6; k++) { // modes before force before torque
                int    high = k > m ? k : m, low = k > m ? m : k;
                double wanted = -options.time_step * (change[k][1] - change[k][0]) / (2 * d);
                worst = fmax(worst, fabs(given[high * (high + 1) / 2 + low] - wanted)),
                largest = fmax(largest, fabs(wanted));
            }
        }
        assert_ok(solver_tree_set_state(tree, i, q[i], dq[i]));
        assert_ok(solver_wind_load_apply(load, tree));
    }
    printf("gives way by %.3f at most, differences %.1e\n", largest, worst);
    assert_true(largest > 0.01 && worst < 1e-6 * largest);
    solver_wind_load_destroy(load);
    solver_tree_destroy(tree);
    solver_wind_surface_destroy(&s);
    solver_wind_destroy(wind);
}

// in a tree that moves and bends, wrenches and modal forces are those of the forces at the samples, one by one
static void test_tree_loads(void **state) {
    (void)state;
    enum { S = 5 };
    tree_case           c;
    const int           parents[] = {-1, 0, 0, 1}, modes[] = {4, 3, 6, 5};
    solver_tree_options options = solver_tree_default_options();
    solver_wind_options o = solver_wind_default_options();
    solver_wind        *wind = make_wind(&o);
    solver_wind_surface surfaces[4] = {0};
    solver_wind_load   *load = NULL;
    double              q[32], dq[32], worst = 0, largest = 0;
    options.time_step = 0.01;
    case_create(&c, 11, 4, parents, modes, 10, 0);
    c.d[2].scale = 0.7, c.d[3].scale = 1.3;
    solver_tree        *tree = case_tree(&c, SOLVER_ROOT_FIXED, &options, 0);
    solver_frame_motion motion = {.p = {1, 12, 2}};
    mat3_exp(motion.Q, (const double[]){0.3, -0.5, 0.2});
    assert_ok(solver_tree_set_root(tree, 0, &motion));
    test_random_fill(&c.seed, c.dofs, 0.2, q), test_random_fill(&c.seed, c.dofs, 2, dq);
    case_set_state(&c, tree, q, dq);
    for (int i = 0; i < 4; i++) {
        int r = c.d[i].r;
        surfaces[i] = (solver_wind_surface){.count = S, .r = r, .normal = 1.1, .tangential = 0.3};
        surfaces[i].X = fem_alloc(3 * S, 8), surfaces[i].area = fem_alloc(3 * S, 8);
        surfaces[i].rows = fem_alloc(3 * S * (size_t)r, 8), surfaces[i].turn = fem_alloc(3 * S * (size_t)r, 8);
        test_random_fill(&c.seed, 3 * S, 0.5, surfaces[i].X), test_random_fill(&c.seed, 3 * S, 0.2, surfaces[i].area);
        test_random_fill(&c.seed, 3 * S * r, 0.5, surfaces[i].rows),
            test_random_fill(&c.seed, 3 * S * r, 0.1, surfaces[i].turn);
    }
    assert_ok(solver_wind_load_create(&load, wind, 4, surfaces, 4));
    assert_ok(solver_wind_load_apply(load, tree));
    for (int i = 0; i < 4; i++) {
        solver_frame_motion        frame;
        const solver_wind_surface *s = &surfaces[i];
        int                        r = s->r;
        double                     wrench[6] = {0}, modal[CASE_MODES] = {0}, scale = c.d[i].scale;
        solver_tree_frame(tree, i, &frame);
        for (int k = 0; k < S; k++) {
            double rows[3 * CASE_MODES], x[3], v[3], air[3], w[3], area[3], n[3], f[3], across[3], arm[3], torque[3];
            int    point;
            for (int l = 0; l < r; l++)
                for (int a = 0; a < 3; a++) rows[a * r + l] = s->rows[3 * S * l + 3 * k + a];
            assert_ok(solver_tree_add_point(tree, i, s->X + 3 * k, rows, &point));
            solver_tree_point(tree, point, x, v); // the tree's own word on where the sample is
            solver_wind_velocity(wind, 0, x, air);
            vec3_sub(w, air, v);
            for (int a = 0; a < 3; a++) {
                area[a] = s->area[3 * k + a];
                for (int l = 0; l < r; l++) area[a] += s->turn[3 * S * l + 3 * k + a] * q[c.offset[i] + l];
            }
            double rest = vec3_norm(s->area + 3 * k), grown = vec3_norm(area);
            for (int a = 0; a < 3 && grown > rest; a++) area[a] *= rest / grown;
            mat3_mul_vec(n, frame.Q, area); // world
            double A = vec3_norm(n) * scale * scale, along;
            vec3_normalize(n);
            along = vec3_dot(w, n);
            for (int a = 0; a < 3; a++) across[a] = w[a] - along * n[a];
            for (int a = 0; a < 3; a++)
                f[a] = 0.5 * 1.2 * A * (1.1 * fabs(along) * along * n[a] + 0.3 * vec3_norm(across) * across[a]);
            vec3_sub(arm, x, frame.p);
            vec3_cross(torque, arm, f);
            for (int a = 0; a < 3; a++)
                for (int b = 0; b < 3; b++) { // into the axes of the frame
                    double share = frame.Q[3 * b + a];
                    wrench[a] += share * f[b], wrench[3 + a] += share * torque[b];
                    for (int l = 0; l < r; l++) modal[l] += scale * rows[a * r + l] * share * f[b];
                }
        }
        const double *loaded = tree->domains[tree->sorted[i]].load;
        for (int a = 0; a < 6; a++)
            worst = fmax(worst, fabs(wrench[a] - loaded[a * LANES])), largest = fmax(largest, fabs(wrench[a]));
        for (int l = 0; l < r; l++) worst = fmax(worst, fabs(modal[l] - loaded[(6 + l) * LANES]));
    }
    printf("loads: %.2e of %.2f\n", worst, largest);
    assert_true(largest > 1 && worst < 1e-8 * largest);
    solver_wind_load_destroy(load);
    solver_tree_destroy(tree);
    for (int i = 0; i < 4; i++) solver_wind_surface_destroy(&surfaces[i]);
    solver_wind_destroy(wind);
    case_destroy(&c);
}

// a load that gives way is the load less S times the accelerations that come out, with the kernels and without, in
// gravity too; the lumped levels know the modes only
static void test_resistance(void **state) {
    (void)state;
    enum { MOST = CASE_MODES + 6 };
    const int           parents[] = {-1, 0, 0, 1, 1}, modes[] = {4, 3, 6, 5, 5};
    const double        gravity[3] = {1, -9.81, 2};
    solver_tree_options options = solver_tree_default_options();
    tree_case           c;
    double              q[32], dq[32], S[5][MOST * (MOST + 1) / 2], ddq[2][32], light[32];
    options.time_step = 0.01, options.passes = 1;
    case_create(&c, 17, 5, parents, modes, 10, 0);
    c.d[2].scale = 0.7, c.d[3].scale = 1.3;
    test_random_fill(&c.seed, c.dofs, 0.2, q), test_random_fill(&c.seed, c.dofs, 2, dq);
    for (int i = 0; i < 5; i++) { // B B^T, as heavy as the domain itself
        double B[MOST][MOST];
        int    n = c.d[i].r + 6;
        test_random_fill(&c.seed, MOST * MOST, 0.3 * sqrt(c.d[i].inertia.m), B[0]);
        for (int a = 0, at = 0; a < n; a++)
            for (int b = 0; b <= a; b++) S[i][at++] = dense_dot(n, B[a], B[b]);
    }
    for (int plain = 0; plain < 2; plain++) {
        options.plain = plain == 1;
        double corrected[5][MOST];
        for (int turn = 0; turn < 2; turn++) { // with S, then with the load that it came to
            solver_tree *tree = case_tree(&c, SOLVER_ROOT_FIXED, &options, 0);
            solver_tree_set_gravity(tree, gravity);
            case_set_state(&c, tree, q, dq);
            for (int i = 0; i < 5; i++) {
                double load[MOST] = {0.3, -0.2, 0.1, 0.05, 0.04, -0.3, 0.1, 0.2, -0.1, 0.3, 0.2, -0.2};
                if (turn == 0) assert_ok(solver_tree_set_resistance(tree, i, S[i]));
                for (int a = 0; a < c.d[i].r + 6 && turn == 1; a++) load[a] -= corrected[i][a];
                assert_ok(solver_tree_set_load(tree, i, load, load + 6));
            }
            assert_ok(solver_tree_step(tree));
            for (int i = 0; i < 5; i++) {
                const tree_domain *d = &tree->domains[tree->sorted[i]];
                tree_lanes        *lanes = tree->blocks[d->block].lanes;
                double             a[MOST], Q[9], g[3];
                int                r = d->r;
                memcpy(a, tree->ddq + d->offset, (size_t)r * sizeof *a);
                memcpy(ddq[turn] + c.offset[i], a, (size_t)r * sizeof *a);
                lane_get(6, lanes->A, d->lane, a + r);
                lane_get(9, lanes->Q, d->lane, Q);
                mat3_mul_t_vec(g, Q, gravity);
                for (int k = 0; k < 3; k++) a[r + k] += g[k];
                if (turn == 1) continue;
                for (int row = 0; row < r + 6; row++) {
                    double sum = 0;
                    for (int k = 0; k < r + 6; k++)
                        sum += S[i][row > k ? row * (row + 1) / 2 + k : k * (k + 1) / 2 + row] * a[k];
                    corrected[i][row < r ? row + 6 : row - r] = sum;
                }
            }
            solver_tree_destroy(tree);
        }
        double worst = 0, largest = 0, apart = 0;
        for (int k = 0; k < c.dofs; k++) {
            worst = fmax(worst, fabs(ddq[0][k] - ddq[1][k])), largest = fmax(largest, fabs(ddq[0][k]));
            if (plain) apart = fmax(apart, fabs(ddq[0][k] - light[k]));
            light[k] = ddq[0][k];
        }
        printf("%s: %.2e of %.2f, from the kernels %.2e\n", plain ? "plain" : "kernels", worst, largest, apart);
        assert_true(largest > 1 && worst < 1e-8 * largest && apart < 1e-8 * largest);
    }
    for (int lumped = SOLVER_CENTER; lumped <= SOLVER_INTERFACE; lumped++) {
        options.subtree = (solver_subtree)lumped;
        solver_tree *tree = case_tree(&c, SOLVER_ROOT_FIXED, &options, 0);
        double       heavy[MOST * (MOST + 1) / 2] = {0}, moved[3];
        for (int a = 0; a < c.d[2].r; a++) heavy[a * (a + 1) / 2 + a] = 1e12;
        case_set_state(&c, tree, q, dq);
        assert_ok(solver_tree_set_resistance(tree, 2, heavy));
        assert_ok(solver_tree_step(tree));
        for (int a = 0; a < 3; a++) moved[a] = fabs(solver_tree_dq(tree, 2)[a] - dq[c.offset[2] + a]);
        assert_true(moved[0] < 1e-6 && moved[1] < 1e-6 && moved[2] < 1e-6); // nothing accelerates such modes
        solver_tree_destroy(tree);
    }
    case_destroy(&c);
}

// a plate so light that the air would throw it about takes the wind's speed without overshooting, and falls as it must
static void test_light(void **state) {
    (void)state;
    enum { N = 2 };
    double              x[3 * (N + 1) * (N + 1)], m = 1e-3, A = 0.12, h = 0.05, before = 0;
    int                 triangles[6 * N * N];
    solver_wind_options o = solver_wind_default_options();
    o.intensity = o.gust = 0, o.speed = 7, o.direction[0] = 0, o.direction[2] = 1;
    solver_wind         *wind = make_wind(&o);
    solver_wind_surface  s = {0};
    solver_wind_load    *load = NULL;
    solver_tree         *tree = NULL;
    solver_inertia       inertia = {.m = m, .Z0 = {m, 0, 0, 0, m, 0, 0, 0, m}};
    solver_tree_class    plate = {.name = "plate", .inertia = &inertia};
    solver_tree_instance instance = {.parent = -1, .scale = 1, .stiffness = 1, .root = SOLVER_ROOT_FREE};
    solver_tree_options  options = solver_tree_default_options();
    solver_frame_motion  motion = {.p = {0, 1000, 0}, .Q = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    options.time_step = h;
    make_plate(N, 0.4, 0.3, x, triangles);
    assert_ok(solver_wind_surface_create(&s, (N + 1) * (N + 1), x, 2 * N * N, triangles, 0, NULL, 1, 1.2, 0));
    assert_ok(solver_tree_create(&tree, 1, &plate, 1, &instance, &options));
    assert_ok(solver_tree_set_root(tree, 0, &motion));
    solver_tree_set_gravity(tree, (const double[]){0, -9.81, 0});
    assert_ok(solver_wind_load_create(&load, wind, 1, &s, 1));
    double U = solver_wind_mean(wind, 1000), D = 1.2 * 1.2 * A * U;
    printf("a step is %.0f of the longest explicit one\n", h * D / (2 * m));
    assert_true(h * D / (2 * m) > 10);
    for (int k = 0; k < 40; k++) {
        assert_ok(solver_wind_load_apply(load, tree));
        assert_ok(solver_tree_step(tree));
        solver_tree_frame(tree, 0, &motion);
        if (k == 0) assert_true(fabs(motion.v[2] / (h * 0.5 * D * U / (m + h * D)) - 1) < 1e-9);
        assert_true(motion.v[2] > 0.999 * before && motion.v[2] <= U);     // falling, it meets less wind
        assert_true(fabs(motion.v[1] / (-9.81 * h * (k + 1)) - 1) < 1e-9); // along the plate nothing resists
        before = motion.v[2];
    }
    printf("after %.0f s %.3f m/s, the wind %.3f m/s\n", 40 * h, before, solver_wind_mean(wind, motion.p[1]));
    assert_true(before > 0.9 * U);
    solver_wind_load_destroy(load);
    solver_tree_destroy(tree);
    solver_wind_surface_destroy(&s);
    solver_wind_destroy(wind);
}

// bad input is refused by name; every allocation may fail
static void test_refused(void **state) {
    (void)state;
    solver_wind        *wind = NULL;
    solver_wind_options o = solver_wind_default_options();
    o.speed = -1;
    assert_fails(solver_wind_create(&wind, &o), FEM_BAD_INPUT, "wind.speed is -1, expected 0 to 100");
    o = solver_wind_default_options(), o.gust_duration = 50;
    assert_fails(solver_wind_create(&wind, &o), FEM_BAD_INPUT, "wind.gust_duration is 50");
    o = solver_wind_default_options(), o.intensity = NAN;
    assert_fails(solver_wind_create(&wind, &o), FEM_BAD_INPUT, "wind.intensity");
    o = solver_wind_default_options(), o.direction[0] = 0, o.direction[1] = 1;
    assert_fails(solver_wind_create(&wind, &o), FEM_BAD_INPUT, "not vertical");
    double              x[3 * 9];
    int                 triangles[6 * 4];
    solver_wind_surface s = {0};
    make_plate(2, 1, 1, x, triangles);
    triangles[5] = 99;
    assert_fails(solver_wind_surface_create(&s, 9, x, 8, triangles, 0, NULL, 4, 1, 0), FEM_BAD_INPUT, "the vertex 99");
    triangles[5] = 0;
    assert_fails(solver_wind_surface_create(&s, 9, x, 8, triangles, 0, NULL, 4, -1, 0), FEM_BAD_INPUT,
                 "coefficients -1");
    make_plate(2, 1, 1, x, triangles);
    long       blocks = fem_memory_blocks(), allowed;
    fem_status status = FEM_NO_MEMORY;
    for (allowed = 0; status != FEM_OK; allowed++) {
        solver_wind_load *load = NULL;
        wind = NULL;
        o = solver_wind_default_options();
        fem_memory_fail_after(allowed);
        status = solver_wind_create(&wind, &o);
        if (status == FEM_OK) status = solver_wind_surface_create(&s, 9, x, 8, triangles, 0, NULL, 4, 1, 0);
        if (status == FEM_OK) status = solver_wind_load_create(&load, wind, 1, &s, 1);
        fem_memory_fail_after(-1);
        if (status != FEM_OK) assert_int_equal(status, FEM_NO_MEMORY);
        solver_wind_load_destroy(load), solver_wind_surface_destroy(&s), solver_wind_destroy(wind);
        assert_int_equal(fem_memory_blocks(), blocks);
    }
    printf("%ld allocations\n", allowed - 1);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_profile),    cmocka_unit_test(test_spectrum),   cmocka_unit_test(test_divergence),
        cmocka_unit_test(test_travel),     cmocka_unit_test(test_batch),      cmocka_unit_test(test_plate),
        cmocka_unit_test(test_cylinder),   cmocka_unit_test(test_turn),       cmocka_unit_test(test_give_way),
        cmocka_unit_test(test_tree_loads), cmocka_unit_test(test_resistance), cmocka_unit_test(test_light),
        cmocka_unit_test(test_refused),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
