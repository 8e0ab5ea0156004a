// A body with a basis of 12 linear modes and their 78 first derivatives condensed to r columns, as P0's Table 1 has it.
#ifndef LIMBER_BENCH_CUBATURE_CASE_H
#define LIMBER_BENCH_CUBATURE_CASE_H

#include "bench/modes_case.h"
#include "bench/plot.h"

#include <time.h>

// Processor time of all threads: what training takes does not depend on what else the machine does.
static inline double bench_processor_seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

typedef struct cubature_case {
    modes_case    body;
    modes_basis   basis;
    modes_quality quality;
    double       *rayleigh; // of the quality
    double        seconds_modes;
} cubature_case;

static inline void cubature_case_basis(cubature_case *c, modes_method method, int r) {
    modes_recipe recipe = modes_default_recipe(method);
    recipe.count = r;
    double begin = fem_seconds();
    bench_try(modes_build(&c->body.problem, c->body.body, &recipe, NULL, NULL, &c->basis, NULL));
    c->seconds_modes = fem_seconds() - begin;
    bench_try(modes_examine(&c->body.problem, &c->basis, &c->quality));
    c->rayleigh = c->quality.rayleigh;
}

static inline void cubature_case_create(cubature_case *c, const char *name, double tets, modes_method method, int r) {
    *c = (cubature_case){0};
    modes_case_create(&c->body, name, tets);
    cubature_case_basis(c, method, r);
}

static inline void cubature_case_destroy(cubature_case *c) {
    modes_quality_destroy(&c->quality);
    modes_basis_destroy(&c->basis);
    modes_case_destroy(&c->body);
}

static inline double cubature_case_diagonal(const cubature_case *c) {
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (int v = 0; v < c->body.mesh.vertex_count; v++)
        for (int k = 0; k < 3; k++) {
            double x = c->body.mesh.vertices[3 * (size_t)v + (size_t)k];
            low[k] = fmin(low[k], x), high[k] = fmax(high[k], x);
        }
    return vec3_distance(low, high);
}

// Gaussian poses whose largest displacement has a median of `displacement` of the diagonal.
static inline double cubature_case_poses(const cubature_case *c, double displacement, unsigned seed, int count,
                                         cubature_poses *poses, int *inverted) {
    double amplitude;
    bench_try(cubature_amplitude(c->body.body, c->basis.r, c->basis.U, c->rayleigh,
                                 displacement * cubature_case_diagonal(c), 1, &amplitude));
    bench_try(cubature_poses_sample(poses, c->body.body, c->basis.r, c->basis.U, c->rayleigh, amplitude, 1, seed, count,
                                    inverted));
    return amplitude;
}

#endif
