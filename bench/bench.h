// What the benchmarks share: timing by the minimum and the median of several runs, in processor time of this thread.
#ifndef LIMBER_BENCH_H
#define LIMBER_BENCH_H

#include "libscene/scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bench_time {
    double minimum, median;
} bench_time;

static inline int bench_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Runs a piece of work `runs` times (at most 64) and gives seconds per run.
static inline bench_time bench_measure(int runs, void (*work)(void *context), void *context) {
    double times[64];
    for (int i = 0; i < runs; i++) {
        double begin = fem_cpu_seconds();
        work(context);
        times[i] = fem_cpu_seconds() - begin;
    }
    qsort(times, (size_t)runs, sizeof *times, bench_compare);
    return (bench_time){.minimum = times[0], .median = times[runs / 2]};
}

static inline void bench_try(fem_status status) {
    if (status == FEM_OK) return;
    fprintf(stderr, "%s\n", fem_message());
    exit(1);
}

static inline void bench_header(char **argv, const char *title) {
    fem_machine machine;
    fem_machine_correct_blas(argv);
    fem_machine_describe(&machine);
    printf("== %s\n   %s kernels, OpenBLAS %s, %s\n", title, fem_simd_name(machine.simd), machine.blas_kernels,
           machine.compiler);
}

// GFLOP/s of a matrix product of this core, to judge times that were taken on another.
static inline double bench_gemm_rate(void) {
    enum { N = 512 };
    double *A = fem_calloc((size_t)N * N, 3 * sizeof *A), *B = A + N * N, *C = B + N * N, best = INFINITY;
    if (!A) bench_try(fem_fail(FEM_NO_MEMORY, "no memory"));
    for (int i = 0; i < 2 * N * N; i++) A[i] = i % 7;
    for (int run = 0; run < 12; run++) {
        double begin = fem_cpu_seconds();
        dense_gemm(false, false, N, N, N, 1, A, B, 0, C);
        best = fmin(best, fem_cpu_seconds() - begin);
    }
    fem_free(A);
    return 2e-9 * N * N * N / best;
}

// VegaFEM's times were taken on a core whose dgemm runs at 75 GFLOP/s.
static inline void bench_print_speed(void) {
    double rate = bench_gemm_rate();
    printf(
        "   dgemm of this core: %.0f GFLOP/s; of the one that VegaFEM was timed on: 75, so at equal speed the ratios "
        "to VegaFEM would be about %.2f times those below\n",
        rate, 75 / rate);
}

// A voxel body like a tree stump with three limbs, of about `tets` tetrahedra: never a box, whose factor would be
// cheaper.
static inline void bench_branching_body(fem_mesh *mesh, double tets) {
    fem_piece pieces[] = {
        {.name = "trunk", .shape = FEM_CAPSULE, .a = {0, 0, 0}, .b = {0, 0, 2}, .radius_a = 0.5, .radius_b = 0.4},
        {.name = "left",
         .shape = FEM_CAPSULE,
         .a = {0, 0, 1.2},
         .b = {-1.6, 0.2, 2.2},
         .radius_a = 0.3,
         .radius_b = 0.22},
        {.name = "right",
         .shape = FEM_CAPSULE,
         .a = {0, 0, 1.6},
         .b = {1.4, -0.4, 2.8},
         .radius_a = 0.3,
         .radius_b = 0.2},
        {.name = "top", .shape = FEM_CAPSULE, .a = {0, 0, 2}, .b = {0.2, 1.2, 3}, .radius_a = 0.32, .radius_b = 0.2},
        {.name = "crown", .shape = FEM_BALL, .a = {0.2, 1.2, 3}, .radius_a = 0.45},
    };
    double voxel = 0.1;
    for (int attempt = 0; attempt < 4; attempt++) { // the count goes with voxel^-3
        bench_try(fem_generate_pieces(mesh, FEM_T4, 5, pieces, voxel));
        voxel *= cbrt(mesh->element_count / tets);
    }
}

// Vertices in the lowest twentieth of the body are held.
static inline unsigned char *bench_hold_bottom(const fem_mesh *mesh) {
    unsigned char *fixed = fem_calloc(3 * (size_t)mesh->vertex_count, 1);
    double         low = INFINITY, high = -INFINITY;
    for (int v = 0; v < mesh->vertex_count; v++) {
        low = fmin(low, mesh->vertices[3 * (size_t)v + 2]);
        high = fmax(high, mesh->vertices[3 * (size_t)v + 2]);
    }
    for (int v = 0; fixed && v < mesh->vertex_count; v++)
        if (mesh->vertices[3 * (size_t)v + 2] < low + 0.05 * (high - low)) memset(fixed + 3 * (size_t)v, 1, 3);
    return fixed;
}

#endif
