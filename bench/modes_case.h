// Bodies for the benchmarks of bases: the voxel bodies of the shared data with their supports, or without the data a
// branching body of the same size from our own generators.
#ifndef LIMBER_BENCH_MODES_CASE_H
#define LIMBER_BENCH_MODES_CASE_H

#include "bench/bench.h"

typedef struct modes_case {
    char           name[64];
    fem_mesh       mesh;
    fem_body      *body;
    fem_sparse     K, M;
    unsigned char *fixed;
    modes_problem  problem;
    int            n;
    double         seconds_read, seconds_assemble; // processor time
} modes_case;

static inline bool bench_long(void) {
    const char *value = getenv("LIMBER_LONG");
    return value && value[0];
}

// Body, matrices and problem of the case's mesh and supports.
static inline void modes_case_matrices(modes_case *c) {
    fem_body_options options = fem_body_default_options();
    c->n = 3 * c->mesh.vertex_count;
    double *rest = fem_calloc((size_t)c->n, sizeof *rest);
    if (!c->fixed || !rest) bench_try(fem_fail(FEM_NO_MEMORY, "no memory for %s", c->name));
    bench_try(fem_body_create(&c->body, &c->mesh, &options));
    bench_try(fem_body_matrix(c->body, &c->K));
    bench_try(fem_body_matrix(c->body, &c->M));
    fem_body_evaluate(c->body, rest, NULL, NULL, &c->K);
    fem_body_mass(c->body, FEM_MASS_CONSISTENT, &c->M);
    fem_free(rest);
    c->problem = (modes_problem){.mesh = &c->mesh, .K = &c->K, .M = &c->M, .fixed = c->fixed};
}

// name is that of a mesh in the shared data; tets the size of the body that stands in for it.
static inline void modes_case_create(modes_case *c, const char *name, double tets) {
    const char *data = getenv("LIMBER_DATA");
    double      begin = fem_cpu_seconds();
    *c = (modes_case){0};
    if (data && data[0]) {
        char path[1024];
        int *held = NULL, count = 0;
        snprintf(c->name, sizeof c->name, "%s", name);
        snprintf(path, sizeof path, "%s/meshes/%s.veg.gz", data, name);
        bench_try(fem_mesh_read(&c->mesh, path));
        snprintf(path, sizeof path, "%s/meshes/%s.bou", data, name);
        bench_try(fem_vertex_list_read(&held, &count, path, c->mesh.file_base, c->mesh.vertex_count));
        c->fixed = fem_calloc(3 * (size_t)c->mesh.vertex_count, 1);
        for (int i = 0; c->fixed && i < count; i++) memset(c->fixed + 3 * (size_t)held[i], 1, 3);
        fem_free(held);
    } else {
        snprintf(c->name, sizeof c->name, "branching_%.0fk", tets / 1000);
        bench_branching_body(&c->mesh, tets);
        c->fixed = bench_hold_bottom(&c->mesh);
    }
    c->seconds_read = fem_cpu_seconds() - begin;
    begin = fem_cpu_seconds();
    modes_case_matrices(c);
    c->seconds_assemble = fem_cpu_seconds() - begin;
}

static inline void modes_case_destroy(modes_case *c) {
    fem_sparse_destroy(&c->K), fem_sparse_destroy(&c->M);
    fem_body_destroy(c->body);
    fem_mesh_destroy(&c->mesh);
    fem_free(c->fixed);
}

#endif
