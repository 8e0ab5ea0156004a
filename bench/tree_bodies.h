// Bodies of the benchmarks of trees, a region per domain, and their frequencies by full FEM.
#ifndef LIMBER_BENCH_TREE_BODIES_H
#define LIMBER_BENCH_TREE_BODIES_H

#include "bench/bench.h"

#include <math.h>

enum { BODY_PIECES = 64 };

typedef struct body_pieces {
    int       count;
    char      names[BODY_PIECES][32];
    fem_piece pieces[BODY_PIECES];
} body_pieces;

static inline void add_box(body_pieces *b, const char *name, double x0, double x1, double y0, double y1, double z0,
                           double z1) {
    fem_piece *p = &b->pieces[b->count];
    snprintf(b->names[b->count], sizeof b->names[0], "%s", name);
    *p = (fem_piece){.name = b->names[b->count], .shape = FEM_BOX, .a = {x0, y0, z0}, .b = {x1, y1, z1}};
    b->count++;
}

// Lengths in cells of `cell` metres, each cut into `fine` along every axis.
static inline void make_body(fem_mesh *mesh, fem_element type, body_pieces *b, double cell, int fine, double young,
                             double density) {
    fem_material m = fem_material_default();
    m.kind = FEM_STVK, m.young = young, m.poisson = 0.3, m.density = density;
    for (int i = 0; i < b->count; i++)
        for (int k = 0; k < 3; k++) b->pieces[i].a[k] *= cell, b->pieces[i].b[k] *= cell;
    bench_try(fem_generate_pieces(mesh, type, b->count, b->pieces, cell / fine));
    bench_try(fem_mesh_set_material(mesh, &m));
}

// A vertex set of all vertices inside a box (in metres, with a little slack).
static inline void add_set(fem_mesh *mesh, const char *name, const double low[3], const double high[3]) {
    int *items = fem_alloc((size_t)mesh->vertex_count, sizeof *items), count = 0;
    for (int v = 0; v < mesh->vertex_count; v++) {
        bool inside = true;
        for (int k = 0; k < 3; k++) {
            double x = mesh->vertices[3 * (size_t)v + (size_t)k];
            inside = inside && x > low[k] - 1e-6 && x < high[k] + 1e-6;
        }
        if (inside) items[count++] = v;
    }
    bench_try(fem_mesh_add_vertex_set(mesh, name, count, items));
    fem_free(items);
}

// A bar along z of `domains` pieces of 2 x 2 x 16 cells of 0.25 m.
static inline void bar_body(fem_mesh *mesh, int domains) {
    body_pieces b = {0};
    for (int i = 0; i < domains; i++) {
        char name[32];
        snprintf(name, sizeof name, "segment %d", i);
        add_box(&b, name, -1, 1, -1, 1, 16 * i, 16 * (i + 1));
    }
    make_body(mesh, FEM_T4, &b, 0.25, 1, 1e6, 1000);
}

// A stem, a bloom on it with four petals, three branches with a leaf each: 12 domains on 3 levels.
static inline void flower_body(fem_mesh *mesh, fem_element type) {
    body_pieces b = {0};
    add_box(&b, "stem", 0, 3, 0, 3, 0, 50);
    add_box(&b, "bloom", -2, 5, -2, 5, 50, 53);
    add_box(&b, "branch 1", 3, 15, 0, 2, 24, 26);
    add_box(&b, "branch 2", -12, 0, 1, 3, 32, 34);
    add_box(&b, "branch 3", 0, 2, 3, 15, 40, 42);
    add_box(&b, "leaf 1", 15, 25, -4, 6, 24, 25);
    add_box(&b, "leaf 2", -22, -12, -3, 7, 32, 33);
    add_box(&b, "leaf 3", -4, 6, 15, 25, 40, 41);
    add_box(&b, "petal 1", 5, 11, -1, 4, 51, 52);
    add_box(&b, "petal 2", -8, -2, -1, 4, 51, 52);
    add_box(&b, "petal 3", -1, 4, 5, 11, 51, 52);
    add_box(&b, "petal 4", -1, 4, -8, -2, 51, 52);
    make_body(mesh, type, &b, 0.02, 1, 1e6, 1000);
    add_set(mesh, "foot", (double[]){-1, -1, 0}, (double[]){1, 1, 0});
}

// A space station of H8: a core with two modules, their antennas and two radiators, four truss segments with nine
// panels each: 47 domains on 4 levels; about 3,700 cells, times fine^3.
static inline void station_body(fem_mesh *mesh, int fine) {
    body_pieces b = {0};
    char        name[32];
    add_box(&b, "core", -4, 4, -4, 4, -6, 6);
    for (int side = -1; side <= 1; side += 2) {
        const char *end = side < 0 ? "left" : "right";
        double      z0 = side < 0 ? -14 : 6, z1 = side < 0 ? -6 : 14;
        snprintf(name, sizeof name, "module %s", end);
        add_box(&b, name, -2, 2, -2, 2, z0, z1);
        snprintf(name, sizeof name, "antenna %s", end);
        add_box(&b, name, -1, 1, -1, 1, side < 0 ? -24 : 14, side < 0 ? -14 : 24);
        snprintf(name, sizeof name, "radiator %s", end);
        add_box(&b, name, -3, 3, side < 0 ? -16 : 4, side < 0 ? -4 : 16, 3, 4);
        for (int segment = 0; segment < 2; segment++) {
            double from = 4 + 20 * segment, x0 = side < 0 ? -from - 20 : from;
            snprintf(name, sizeof name, "truss %s %d", end, segment);
            add_box(&b, name, x0, x0 + 20, -1, 1, -1, 1);
            for (int panel = 0; panel < 9; panel++) {
                double x = x0 + 4 * (panel / 2) + (side > 0), y = panel % 2 ? -21 : 1;
                snprintf(name, sizeof name, "panel %s %d %d", end, segment, panel);
                add_box(&b, name, x, x + 3, y, y + 20, 0, 1);
            }
        }
    }
    make_body(mesh, FEM_H8, &b, 0.5, fine, 7e9, 2700);
    add_set(mesh, "dock", (double[]){-1, -2, -1}, (double[]){1, -2, 1});
}

// A dragon on one block under its belly: trunk, neck and head with jaw and horns, tail in three with a spike at its
// end, four legs in three with two claws each, two wings in two, five spikes on the back: 40 domains on 5 levels; 3,382
// cells, times 6 fine^3 tetrahedra.
static inline void dragon_body(fem_mesh *mesh, int fine) {
    body_pieces b = {0};
    char        name[32];
    add_box(&b, "trunk", 0, 30, 0, 10, 0, 7);
    add_box(&b, "neck", 30, 36, 3, 7, 3, 7);
    add_box(&b, "throat", 32, 36, 3, 7, 7, 15);
    add_box(&b, "head", 32, 42, 2, 8, 15, 19);
    add_box(&b, "jaw", 37, 42, 3, 7, 14, 15);
    add_box(&b, "horn left", 33, 34, 3, 4, 19, 24);
    add_box(&b, "horn right", 33, 34, 6, 7, 19, 24);
    add_box(&b, "tail 1", -10, 0, 3, 7, 2, 5);
    add_box(&b, "tail 2", -20, -10, 4, 7, 2, 5);
    add_box(&b, "tail 3", -30, -20, 4, 6, 3, 5);
    add_box(&b, "tail spike", -34, -30, 4, 6, 3, 4);
    for (int leg = 0; leg < 4; leg++) {
        double x = leg % 2 ? 23 : 3, y = leg < 2 ? -3 : 10, out = leg < 2 ? -2 : 1;
        snprintf(name, sizeof name, "thigh %d", leg);
        add_box(&b, name, x, x + 4, y, y + 3, 0, 4);
        snprintf(name, sizeof name, "shin %d", leg);
        add_box(&b, name, x, x + 3, y, y + 3, -7, 0);
        snprintf(name, sizeof name, "foot %d", leg);
        add_box(&b, name, x, x + 5, y, y + 3, -9, -7);
        for (int claw = 0; claw < 2; claw++) {
            snprintf(name, sizeof name, "claw %d %d", leg, claw);
            add_box(&b, name, x + 5, x + 8, y + 2 * claw, y + 2 * claw + 1, -9, -8);
        }
        if (leg % 2) continue;
        snprintf(name, sizeof name, "wing %d", leg);
        add_box(&b, name, 10, 18, leg < 2 ? -10 : 10, leg < 2 ? 0 : 20, 5, 6);
        snprintf(name, sizeof name, "wing tip %d", leg);
        add_box(&b, name, 11 + out, 16 + out, leg < 2 ? -20 : 20, leg < 2 ? -10 : 30, 5, 6);
    }
    for (int spike = 0; spike < 5; spike++) {
        snprintf(name, sizeof name, "spike %d", spike);
        add_box(&b, name, 2 + 6 * spike, 4 + 6 * spike, 4, 6, 7, 11);
    }
    make_body(mesh, FEM_T4, &b, 0.02, fine, 1e6, 1000);
    add_set(mesh, "belly", (double[]){0.2, 0.04, 0}, (double[]){0.4, 0.16, 0});
}

// ---- full FEM -----------------------------------------------------------------------------------------------------

// A matrix with interface vertices moved rigidly with their interface: block T_i^T A_ij T_j.
typedef struct rigid_map {
    int    *first;  // per vertex: its block column, or the first of two
    bool   *member; // per vertex: of an interface
    double *arm;    // per vertex: from the middle of its interface
    int     blocks;
} rigid_map;

static inline int rigid_factors(const rigid_map *map, int v, int columns[2], double T[2][9]) {
    const double *d = map->arm + 3 * (size_t)v;
    mat3_identity(T[0]);
    columns[0] = map->first[v];
    if (!map->member[v]) return 1;
    columns[1] = columns[0] + 1;
    const double cross[9] = {0, d[2], -d[1], -d[2], 0, d[0], d[1], -d[0], 0}; // -[d]: u = v + w x d
    memcpy(T[1], cross, sizeof cross);
    return 2;
}

typedef struct block_entry {
    int    row, column;
    double value[9];
} block_entry;

static inline int compare_entries(const void *a, const void *b) {
    const block_entry *x = a, *y = b;
    return x->row != y->row ? (x->row > y->row) - (x->row < y->row) : (x->column > y->column) - (x->column < y->column);
}

static inline void rigid_matrix(fem_sparse *out, const fem_sparse *A, const rigid_map *map) {
    block_entry *entries = fem_alloc(4 * (size_t)A->blocks, sizeof *entries);
    int          count = 0;
    for (int i = 0; i < A->n; i++)
        for (int k = A->row_start[i]; k < A->row_start[i + 1]; k++) {
            int    j = A->column[k], I[2], J[2];
            double S[2][9], T[2][9], left[9], B[9];
            int    rows = rigid_factors(map, i, I, S), columns = rigid_factors(map, j, J, T);
            for (int a = 0; a < rows; a++)
                for (int b = 0; b < columns; b++) {
                    if (i == j && I[a] > J[b]) continue;
                    mat3_mul(left, A->value + 9 * (size_t)k, T[b]);
                    for (int p = 0; p < 9; p++) {
                        B[p] = 0;
                        for (int q = 0; q < 3; q++) B[p] += S[a][3 * q + p / 3] * left[3 * q + p % 3];
                    }
                    block_entry *e = &entries[count++];
                    bool         swap = I[a] > J[b];
                    e->row = swap ? J[b] : I[a], e->column = swap ? I[a] : J[b];
                    for (int p = 0; p < 9; p++) {
                        double turned = B[3 * (p % 3) + p / 3];
                        e->value[p] = swap ? turned : B[p] + (i != j && I[a] == J[b] ? turned : 0);
                    }
                }
        }
    qsort(entries, (size_t)count, sizeof *entries, compare_entries);
    *out = (fem_sparse){.n = map->blocks};
    out->row_start = fem_calloc((size_t)map->blocks + 1, sizeof *out->row_start);
    out->column = fem_alloc((size_t)count, sizeof *out->column);
    out->value = fem_alloc(9 * (size_t)count, sizeof *out->value);
    for (int e = 0; e < count; e++) {
        if (e > 0 && compare_entries(&entries[e - 1], &entries[e]) == 0) {
            dense_axpy(9, 1, entries[e].value, out->value + 9 * (size_t)(out->blocks - 1));
            continue;
        }
        out->column[out->blocks] = entries[e].column;
        memcpy(out->value + 9 * (size_t)out->blocks, entries[e].value, sizeof entries[e].value);
        out->row_start[entries[e].row + 1] = ++out->blocks;
    }
    for (int i = 0; i < map->blocks; i++)
        if (out->row_start[i + 1] == 0) out->row_start[i + 1] = out->row_start[i];
    fem_free(entries);
}

// Lowest angular frequencies by subspace iteration.
static inline void subspace(const fem_sparse *K, const fem_sparse *M, const unsigned char *fixed, int count,
                            double *omega) {
    enum { WIDTH = 32, ITERATIONS = 30 };
    int         n = 3 * K->n;
    size_t      all = (size_t)n * WIDTH;
    double     *X = fem_alloc(all, sizeof *X), *Y = fem_alloc(all, sizeof *Y);
    double      k[WIDTH * WIDTH], m[WIDTH * WIDTH], values[WIDTH];
    fem_factor *factor = NULL;
    unsigned    state = 1;
    for (size_t i = 0; i < all; i++) state = 1664525u * state + 1013904223u, X[i] = state / 4294967296.0 - 0.5;
    bench_try(fem_factor_create(&factor, K, fixed));
    bench_try(fem_factor_factorise(factor, K));
    for (int iteration = 0; iteration < ITERATIONS; iteration++) {
        for (size_t i = 0; i < all; i++)
            if (fixed && fixed[i % (size_t)n]) X[i] = 0;
        fem_sparse_multiply(M, WIDTH, X, Y);
        bench_try(fem_factor_solve(factor, WIDTH, Y, X)); // X^T K X = X^T (M x before)
        dense_gemm(true, false, WIDTH, WIDTH, n, 1, X, Y, 0, k);
        fem_sparse_multiply(M, WIDTH, X, Y);
        dense_gemm(true, false, WIDTH, WIDTH, n, 1, X, Y, 0, m);
        bench_try(dense_generalized_eigen(WIDTH, k, m, values));
        dense_gemm(false, false, n, WIDTH, WIDTH, 1, X, k, 0, Y);
        memcpy(X, Y, all * sizeof *X);
    }
    for (int i = 0; i < count; i++) omega[i] = sqrt(values[i]);
    fem_factor_destroy(factor);
    fem_free(X), fem_free(Y);
}

// Angular frequencies of the held mesh; with a tree, of the mesh with rigid interfaces (where interfaces meet or a
// vertex is held, the first has it).
static inline void full_frequencies(const fem_mesh *mesh, const domain_tree *tree, int fixed_count, const int *fixed,
                                    int count, double *omega) {
    fem_body        *body = NULL;
    fem_body_options options = fem_body_default_options();
    fem_sparse       K = {0}, M = {0}, Kr = {0}, Mr = {0};
    size_t           n = (size_t)mesh->vertex_count;
    double          *zero = fem_calloc(3 * n, sizeof *zero);
    unsigned char   *held = fem_calloc(3 * n, 1);
    for (int i = 0; i < fixed_count; i++) memset(held + 3 * (size_t)fixed[i], 1, 3);
    bench_try(fem_body_create(&body, mesh, &options));
    bench_try(fem_body_matrix(body, &K));
    bench_try(fem_body_matrix(body, &M));
    fem_body_evaluate(body, zero, NULL, NULL, &K);
    fem_body_mass(body, FEM_MASS_CONSISTENT, &M);
    if (!tree) {
        subspace(&K, &M, held, count, omega);
    } else {
        rigid_map map = {.first = fem_calloc(n, sizeof *map.first),
                         .member = fem_calloc(n, sizeof *map.member),
                         .arm = fem_calloc(3 * n, sizeof *map.arm)};
        int      *group = fem_calloc(n, sizeof *group);
        for (int d = 1; d < tree->count; d++) {
            double middle[3] = {0};
            int    from = tree->interfaces.start[d], to = tree->interfaces.start[d + 1];
            for (int i = from; i < to; i++)
                vec3_axpy(middle, 1.0 / (to - from), mesh->vertices + 3 * (size_t)tree->interfaces.vertices[i]);
            for (int i = from; i < to; i++) {
                int v = tree->interfaces.vertices[i];
                if (map.member[v] || held[3 * (size_t)v]) continue;
                map.member[v] = true, group[v] = d;
                vec3_sub(map.arm + 3 * (size_t)v, mesh->vertices + 3 * (size_t)v, middle);
            }
        }
        for (int d = 1; d < tree->count; d++) map.blocks += 2;
        unsigned char *still = fem_calloc(3 * (n + 2 * (size_t)tree->count), 1);
        for (size_t v = 0; v < n; v++) {
            if (map.member[v]) {
                map.first[v] = 2 * (group[v] - 1);
                continue;
            }
            memset(still + 3 * (size_t)map.blocks, held[3 * v], 3);
            map.first[v] = map.blocks++;
        }
        rigid_matrix(&Kr, &K, &map);
        rigid_matrix(&Mr, &M, &map);
        subspace(&Kr, &Mr, still, count, omega);
        fem_free(still), fem_free(group), fem_free(map.first), fem_free(map.member), fem_free(map.arm);
    }
    fem_sparse_destroy(&K), fem_sparse_destroy(&M), fem_sparse_destroy(&Kr), fem_sparse_destroy(&Mr);
    fem_body_destroy(body);
    fem_free(zero), fem_free(held);
}

#endif
