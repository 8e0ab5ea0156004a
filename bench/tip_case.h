// A reduced body that swings under a load from t = 0 on: the way of its tip, amplitude, frequency, time of a step.
#ifndef LIMBER_BENCH_TIP_CASE_H
#define LIMBER_BENCH_TIP_CASE_H

#include "bench/bench.h"

enum { TIP_STEPS = 400 };

typedef struct tip_curve {
    double step; // s
    double tip[TIP_STEPS];
    double amplitude, period, microseconds;
} tip_curve;

// Half the distance of the extremes, and twice the mean time between crossings of the middle.
static inline void tip_measure(tip_curve *c) {
    double low = INFINITY, high = -INFINITY, first = -1, last = -1;
    int    crossings = 0;
    for (int i = 0; i < TIP_STEPS; i++) low = fmin(low, c->tip[i]), high = fmax(high, c->tip[i]);
    double middle = (low + high) / 2;
    for (int i = 1; i < TIP_STEPS; i++) {
        if (!((c->tip[i - 1] < middle) != (c->tip[i] < middle))) continue;
        double t = i - 1 + (middle - c->tip[i - 1]) / (c->tip[i] - c->tip[i - 1]);
        if (first < 0) first = t;
        last = t, crossings++;
    }
    c->amplitude = (high - low) / 2;
    c->period = crossings > 1 ? 2 * c->step * (last - first) / (crossings - 1) : NAN;
}

// row: what the coordinates move the tip by. False, with a note, when the motion diverges: the rest of the curve is 0.
static inline bool tip_run_reduced(tip_curve *c, double step, const cubature_forces *forces, const double *load,
                                   const double *row, solver_reduced_solve solve, double tolerance, int newton) {
    solver_reduced_options o = solver_reduced_default_options();
    solver_reduced        *solver = NULL;
    c->step = o.time_step = step;
    o.solve = solve;
    o.newton_iterations = newton;
    o.solve_tolerance = tolerance;
    bench_try(solver_reduced_create(&solver, forces, NULL, &o));
    solver_reduced_set_load(solver, load);
    double begin = fem_cpu_seconds();
    bool   stable = true;
    for (int i = 0; i < TIP_STEPS; i++) {
        stable = stable && solver_reduced_step(solver) == FEM_OK;
        c->tip[i] = !stable ? 0 : dense_dot(forces->r, row, solver_reduced_state(solver)->q);
    }
    c->microseconds = 1e6 * (fem_cpu_seconds() - begin) / TIP_STEPS;
    tip_measure(c);
    if (!stable) printf("   diverges: %s\n", fem_message());
    solver_reduced_destroy(solver);
    return stable;
}

static inline double tip_largest_difference(const tip_curve *c, const tip_curve *reference) {
    double worst = 0;
    for (int i = 0; i < TIP_STEPS; i++) worst = fmax(worst, fabs(c->tip[i] - reference->tip[i]));
    return worst / reference->amplitude;
}

static inline void tip_print(const char *name, const tip_curve *c, const tip_curve *reference) {
    printf(
        "   %-32s amplitude %.4g (%+.2f%%), frequency %.4g Hz (%+.2f%%), largest difference %.2f%% of the amplitude, "
        "%.1f us a step\n",
        name, c->amplitude, 100 * (c->amplitude / reference->amplitude - 1), 1 / c->period,
        100 * (reference->period / c->period - 1), 100 * tip_largest_difference(c, reference), c->microseconds);
}

#endif
