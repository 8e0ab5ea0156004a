// Bodies of the kinds and sizes of [Mukherjee et al. 2016], Table 1, with their stitches: grids of cells out of which
// cells are taken, cut while they are still straight, then bent into shape.
#ifndef LIMBER_BENCH_STITCH_CASE_H
#define LIMBER_BENCH_STITCH_CASE_H

#include "bench/modes_case.h"

typedef struct stitch_model {
    const char   *name;
    modes_case    body;
    int           count;
    modes_stitch *stitches;
    int           old_modes;     // that are held of the body before: those of a domain that becomes stiff are no use
    int           scaled;        // a vertex of the domain whose stiffness is raised
    double        factor;        // by this
    int           derivatives;   // as many as the paper's
    double        paper_size[3]; // thousand vertices, thousand tets, springs
    double        paper[3];      // its speed-ups (a), (b), (c)
    double        paper_whole;   // of the sums of its times
} stitch_model;

typedef bool (*cell_test)(int i, int j, int k);

// The cells of a box that a test keeps; vertices stand at whole numbers.
static inline void grid_mesh(fem_mesh *mesh, int nx, int ny, int nz, const int origin[3], cell_test keep) {
    fem_mesh     box = {0};
    const double low[3] = {origin[0], origin[1], origin[2]}, high[3] = {origin[0] + nx, origin[1] + ny, origin[2] + nz};
    const int    cells[3] = {nx, ny, nz};
    int          used = 0, kept = 0;
    bench_try(fem_generate_box(&box, FEM_H8, low, high, cells));
    int *number = fem_alloc((size_t)box.vertex_count, sizeof *number);
    if (!number) bench_try(fem_fail(FEM_NO_MEMORY, "no memory for a grid"));
    for (int v = 0; v < box.vertex_count; v++) number[v] = -1;
    for (int e = 0; e < box.element_count; e++) {
        const double *x = box.vertices + 3 * (size_t)box.elements[8 * (size_t)e];
        if (keep && !keep((int)lround(x[0]), (int)lround(x[1]), (int)lround(x[2]))) continue;
        for (int k = 0; k < 8; k++) {
            int v = box.elements[8 * (size_t)e + (size_t)k];
            if (number[v] < 0) number[v] = 0;
        }
        memmove(box.elements + 8 * (size_t)kept++, box.elements + 8 * (size_t)e, 8 * sizeof *box.elements);
    }
    for (int v = 0; v < box.vertex_count; v++)
        if (number[v] == 0) number[v] = used++;
    bench_try(fem_mesh_allocate(mesh, FEM_H8, used, kept));
    for (int v = 0; v < box.vertex_count; v++)
        for (int i = 0; number[v] >= 0 && i < 3; i++)
            mesh->vertices[3 * (size_t)number[v] + (size_t)i] = round(box.vertices[3 * (size_t)v + (size_t)i]);
    for (size_t i = 0; i < 8 * (size_t)kept; i++) mesh->elements[i] = number[box.elements[i]];
    fem_free(number);
    fem_mesh_destroy(&box);
}

static inline void set_stitches(stitch_model *m, int pair_count, const int *pairs, int wanted) {
    m->count = wanted < pair_count ? wanted : pair_count;
    m->stitches = fem_alloc((size_t)m->count, sizeof *m->stitches);
    if (!m->stitches) bench_try(fem_fail(FEM_NO_MEMORY, "no memory for stitches"));
    for (int i = 0; i < m->count; i++) { // evenly
        long p = (long)i * pair_count / m->count;
        m->stitches[i] = (modes_stitch){pairs[2 * p], pairs[2 * p + 1], 1e5}; // as the paper's
    }
}

// Tetrahedra, material, matrices. E = 5e5 Pa as the paper's; `size` is the length of a cell.
static inline void finish_model(stitch_model *m, const char *name, double size, const unsigned char *held) {
    modes_case  *c = &m->body;
    fem_material material = fem_material_default();
    material.kind = FEM_STVK, material.young = 5e5, material.poisson = 0.4, material.density = 1000;
    m->name = name;
    snprintf(c->name, sizeof c->name, "%s", name);
    for (int i = 0; i < 3 * c->mesh.vertex_count; i++) c->mesh.vertices[i] *= size;
    bench_try(fem_mesh_set_material(&c->mesh, &material));
    bench_try(fem_mesh_split_hexahedra(&c->mesh, &c->mesh));
    bench_try(fem_mesh_check(&c->mesh));
    c->fixed = fem_calloc(3 * (size_t)c->mesh.vertex_count, 1);
    for (int v = 0; c->fixed && v < c->mesh.vertex_count; v++)
        if (held[v]) memset(c->fixed + 3 * (size_t)v, 1, 3);
    modes_case_matrices(c, 0);
}

static inline unsigned char *marks(const fem_mesh *mesh) {
    unsigned char *marked = fem_calloc((size_t)mesh->vertex_count, 1);
    if (!marked) bench_try(fem_fail(FEM_NO_MEMORY, "no memory for marks"));
    return marked;
}

// A closed shell, one cell thick, with a slit; a patch at its bottom is held.
enum { STOMACH = 58 };
static inline bool stomach_cell(int i, int j, int k) {
    return i == 0 || j == 0 || k == 0 || i == STOMACH - 1 || j == STOMACH - 1 || k == STOMACH - 1;
}
static inline void round_out(fem_mesh *mesh, int cells, double bend) { // a cube about its middle, bent
    for (int v = 0; v < mesh->vertex_count; v++) {
        double *x = mesh->vertices + 3 * (size_t)v, most = 0, norm;
        for (int i = 0; i < 3; i++) x[i] -= 0.5 * cells, most = fmax(most, fabs(x[i]));
        norm = vec3_norm(x);
        for (int i = 0; i < 3; i++) x[i] *= 0.5 + 0.5 * most / norm; // edges stay a little: cells must not go flat
        x[2] *= 1.5, x[0] += bend * x[2] * x[2] / cells;
    }
}
static inline void make_stomach(stitch_model *m) {
    const int    origin[3] = {0, 0, 0};
    const double point[3] = {STOMACH / 2, 0, 0}, normal[3] = {1, 0, 0};
    int          count, *pairs;
    grid_mesh(&m->body.mesh, STOMACH, STOMACH, STOMACH, origin, stomach_cell);
    unsigned char *within = marks(&m->body.mesh);
    for (int v = 0; v < m->body.mesh.vertex_count; v++) {
        const double *x = m->body.mesh.vertices + 3 * (size_t)v;
        within[v] = x[1] < 1.5 && x[2] > 20.5 && x[2] < 37.5; // 17 vertices high: 15 come apart
    }
    bench_try(fem_mesh_cut_plane(&m->body.mesh, point, normal, within, &count, &pairs));
    set_stitches(m, count, pairs, count);
    unsigned char *held = marks(&m->body.mesh);
    for (int v = 0; v < m->body.mesh.vertex_count; v++) held[v] = m->body.mesh.vertices[3 * (size_t)v + 2] < 1.5;
    round_out(&m->body.mesh, STOMACH, 0.4);
    finish_model(m, "stomach", 0.005, held);
    fem_free(pairs), fem_free(within), fem_free(held);
}

// Bodies side by side, stitched where their vertices meet. `bend` moves a point.
static inline void join_model(stitch_model *m, int count, fem_mesh *parts) {
    const fem_mesh *list[4];
    int             pair_count = 0, *pairs = NULL, *all[2], sizes[2] = {0};
    for (int p = 0; p < count; p++) list[p] = &parts[p];
    bench_try(fem_mesh_join(&m->body.mesh, count, list, NULL));
    all[0] = fem_alloc((size_t)m->body.mesh.vertex_count, sizeof *all[0]);
    all[1] = fem_alloc((size_t)m->body.mesh.vertex_count, sizeof *all[1]);
    if (!all[0] || !all[1]) bench_try(fem_fail(FEM_NO_MEMORY, "no memory for stitches"));
    for (int v = 0; v < m->body.mesh.vertex_count; v++) {
        int side = v >= parts[0].vertex_count;
        all[side][sizes[side]++] = v;
    }
    bench_try(fem_mesh_match(&m->body.mesh, sizes[0], all[0], sizes[1], all[1], 1e-6, &pair_count, &pairs));
    set_stitches(m, pair_count, pairs, pair_count);
    fem_free(pairs), fem_free(all[0]), fem_free(all[1]);
    for (int p = 0; p < count; p++) fem_mesh_destroy(&parts[p]);
}

// A stem that is held below and branches that are free: one, or two.
static inline void make_plant(stitch_model *m, int branches) {
    const int stem[3] = {0, 0, 0}, right[3] = {3, 0, 260}, left[3] = {-150, 0, 200};
    fem_mesh  parts[3] = {{0}, {0}, {0}};
    grid_mesh(&parts[0], 3, 4, 350, stem, NULL);
    grid_mesh(&parts[1], 150, 4, 5, right, NULL);
    if (branches > 1) grid_mesh(&parts[2], 150, 4, 5, left, NULL);
    join_model(m, 1 + branches, parts);
    unsigned char *held = marks(&m->body.mesh);
    for (int v = 0; v < m->body.mesh.vertex_count; v++) {
        double *x = m->body.mesh.vertices + 3 * (size_t)v;
        held[v] = x[2] < 0.5;
        x[1] += 30 * sin(x[2] / 120), x[2] += 0.002 * x[0] * x[0]; // a bent stem, branches that rise
    }
    finish_model(m, branches == 1 ? "plant" : "plant of three", 0.004, held);
    fem_free(held);
}

// A head with three tines, free, on a handle that is held at its end.
static inline bool fork_cell(int i, int j, int k) {
    (void)k;
    return i < 230 || j == 0 || j == 3 || j == 6 || j == 1 || j == 5;
}
static inline void make_fork(stitch_model *m) {
    const int handle[3] = {0, 0, 0}, head[3] = {190, 0, 0};
    fem_mesh  parts[2] = {{0}, {0}};
    grid_mesh(&parts[0], 190, 7, 4, handle, NULL);
    grid_mesh(&parts[1], 150, 7, 4, head, fork_cell);
    join_model(m, 2, parts);
    unsigned char *held = marks(&m->body.mesh);
    for (int v = 0; v < m->body.mesh.vertex_count; v++) {
        double *x = m->body.mesh.vertices + 3 * (size_t)v;
        held[v] = x[0] < 0.5;
        x[2] += 8 * sin(x[0] / 60), x[1] *= 1 + 0.004 * x[0];
    }
    finish_model(m, "fork", 0.002, held);
    fem_free(held);
}

// A hollow body of tail, trunk, neck, head and legs; the neck is cut half through.
static inline double dinosaur_depth(double x, double y, double z) { // below its skin, in cells
    static const double bones[8][8] = {
        // ends, radii
        {0, 30, 46, 60, 30, 34, 3.2, 13}, {60, 30, 34, 100, 30, 40, 13, 12}, {100, 30, 40, 124, 30, 70, 10, 6},
        {124, 30, 70, 144, 30, 68, 7, 5}, {66, 22, 30, 66, 18, 0, 6, 5},     {66, 38, 30, 66, 42, 0, 6, 5},
        {96, 22, 34, 100, 18, 0, 6, 5},   {96, 38, 34, 100, 42, 0, 6, 5},
    };
    double depth = -INFINITY;
    for (int b = 0; b < 8; b++) {
        const double *s = bones[b], p[3] = {x, y, z};
        double        axis[3], from[3], t;
        vec3_sub(axis, s + 3, s), vec3_sub(from, p, s);
        t = fmin(1, fmax(0, vec3_dot(from, axis) / vec3_dot(axis, axis)));
        vec3_axpy(from, -t, axis);
        depth = fmax(depth, (1 - t) * s[6] + t * s[7] - vec3_norm(from));
    }
    return depth;
}
#define DINOSAUR 1.18 // cells of the grid per unit of its bones: sets the size
static inline bool dinosaur_cell(int i, int j, int k) {
    double depth = DINOSAUR * dinosaur_depth((i + 0.5) / DINOSAUR, (j + 0.5) / DINOSAUR, (k + 0.5) / DINOSAUR);
    return depth > 0 && depth < 2.0;
}
static inline void make_dinosaur(stitch_model *m) {
    const int    origin[3] = {-5, 11, -7};
    const double point[3] = {0, 0, 66}, normal[3] = {0, 0, 1};
    int          count, *pairs;
    grid_mesh(&m->body.mesh, 190, 50, 102, origin, dinosaur_cell);
    unsigned char *within = marks(&m->body.mesh);
    for (int v = 0; v < m->body.mesh.vertex_count; v++) {
        const double *x = m->body.mesh.vertices + 3 * (size_t)v;
        within[v] = x[0] > 123 && x[1] > 37.5;
    }
    bench_try(fem_mesh_cut_plane(&m->body.mesh, point, normal, within, &count, &pairs));
    set_stitches(m, count, pairs, 38);
    unsigned char *held = marks(&m->body.mesh);
    for (int v = 0; v < m->body.mesh.vertex_count; v++) held[v] = m->body.mesh.vertices[3 * (size_t)v + 2] < -0.5;
    finish_model(m, "dinosaur", 0.008, held);
    fem_free(pairs), fem_free(within), fem_free(held);
}

// A hollow ball in bands, three by two cuts; the uppermost becomes a hundred times stiffer. Its lowest patch is held.
enum { OBALL = 31, OBALL_CUTS = OBALL - 1 };
static inline bool oball_cell(int i, int j, int k) {
    return i < 2 || j < 2 || k < 2 || i >= OBALL - 2 || j >= OBALL - 2 || k >= OBALL - 2;
}
static inline void make_oball(stitch_model *m, int springs, int cuts) {
    const int    origin[3] = {0, 0, 0};
    const double normal[3] = {0, 0, 1};
    int          counts[OBALL_CUTS], *pairs[OBALL_CUTS], *all, total = 0;
    grid_mesh(&m->body.mesh, OBALL, OBALL, OBALL, origin, oball_cell);
    for (int b = 0; b < cuts; b++) {
        const double point[3] = {0, 0, round((b + 1) * OBALL / (cuts + 1.0))};
        bench_try(fem_mesh_cut_plane(&m->body.mesh, point, normal, NULL, &counts[b], &pairs[b]));
        total += counts[b];
    }
    all = fem_alloc(2 * (size_t)total, sizeof *all);
    if (!all) bench_try(fem_fail(FEM_NO_MEMORY, "no memory for stitches"));
    total = 0;
    for (int b = 0; b < cuts; total += counts[b++])
        memcpy(all + 2 * total, pairs[b], 2 * (size_t)counts[b] * sizeof *all);
    set_stitches(m, total, all, springs);
    unsigned char *held = marks(&m->body.mesh);
    for (int v = 0; v < m->body.mesh.vertex_count; v++) held[v] = m->body.mesh.vertices[3 * (size_t)v + 2] < 0.5;
    int high = 0;
    for (int v = 0; v < m->body.mesh.vertex_count; v++)
        if (m->body.mesh.vertices[3 * (size_t)v + 2] > m->body.mesh.vertices[3 * (size_t)high + 2]) high = v;
    m->scaled = high, m->factor = 100;
    round_out(&m->body.mesh, OBALL, 0);
    finish_model(m, "oball", 0.01, held);
    for (int b = 0; b < cuts; b++) fem_free(pairs[b]);
    fem_free(all), fem_free(held);
}

static inline void stitch_model_destroy(stitch_model *m) {
    modes_case_destroy(&m->body);
    fem_free(m->stitches);
}

#endif
