// A body: grouping and colouring of elements, and the calls that run the kernels over them.
#include "libfem/body_internal.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

fem_body_options fem_body_default_options(void) { return (fem_body_options){.quadrature = 2}; }

// ---- order and groups ----------------------------------------------------------------------------------------------

typedef struct element_key {
    int      material, element;
    uint64_t code; // position along the space-filling curve
} element_key;

static int compare_keys(const void *a, const void *b) {
    const element_key *x = a, *y = b;
    if (x->material != y->material) return x->material < y->material ? -1 : 1;
    if (x->code != y->code) return x->code < y->code ? -1 : 1;
    return (x->element > y->element) - (x->element < y->element);
}

static uint64_t spread_bits(uint64_t x) { // two zero bits behind each of the low 21 bits
    x &= 0x1fffff;
    x = (x | x << 32) & 0x1f00000000ffffu;
    x = (x | x << 16) & 0x1f0000ff0000ffu;
    x = (x | x << 8) & 0x100f00f00f00f00fu;
    x = (x | x << 4) & 0x10c30c30c30c30c3u;
    return (x | x << 2) & 0x1249249249249249u;
}

// Elements by material and, within one, along a Morton curve: neighbours in the body are neighbours in memory.
static element_key *sorted_elements(const fem_mesh *mesh, int width) {
    element_key *keys = fem_alloc((size_t)mesh->element_count, sizeof *keys);
    if (!keys) return NULL;
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY}, extent = 0;
    for (int v = 0; v < mesh->vertex_count; v++)
        for (int i = 0; i < 3; i++) {
            low[i] = fmin(low[i], mesh->vertices[3 * (size_t)v + (size_t)i]);
            high[i] = fmax(high[i], mesh->vertices[3 * (size_t)v + (size_t)i]);
        }
    for (int i = 0; i < 3; i++) extent = fmax(extent, high[i] - low[i]);
    for (int e = 0; e < mesh->element_count; e++) {
        uint64_t code = 0;
        for (int i = 0; i < 3; i++) {
            double centre = 0;
            for (int a = 0; a < width; a++)
                centre += mesh->vertices[3 * (size_t)mesh->elements[(size_t)e * (size_t)width + (size_t)a] + (size_t)i];
            double place = (centre / width - low[i]) / extent * 2097151.0; // 2^21 - 1, but for overflow
            code |= spread_bits(place > 0 && place <= 2097151.0 ? (uint64_t)place : 0) << i;
        }
        keys[e] = (element_key){.material = mesh->regions[mesh->region[e]].material, .element = e, .code = code};
    }
    qsort(keys, (size_t)mesh->element_count, sizeof *keys, compare_keys);
    return keys;
}

// Fills groups from the sorted elements and returns their number; with groups NULL it only counts.
// Within a run of 8 x STRIDE elements of one material, lane l of group g takes element l STRIDE + g: the elements of a
// group lie apart and seldom add to the same block, while a run still fits the first cache.
static int fill_groups(element_group *groups, const element_key *keys, int element_count) {
    enum { STRIDE = 4 };
    int count = 0;
    for (int begin = 0, end; begin < element_count; begin = end) {
        for (end = begin + 1; end < element_count && end - begin < LANES * STRIDE; end++)
            if (keys[end].material != keys[begin].material) break;
        int stride = (end - begin + LANES - 1) / LANES;
        for (int g = 0; g < stride; g++, count++) {
            if (!groups) continue;
            groups[count] = (element_group){.material = keys[begin].material};
            for (int lane = 0; lane < LANES; lane++) {
                int place = begin + lane * stride + g;
                if (place < end) groups[count].count++;
                groups[count].element[lane] = keys[place < end ? place : begin + g].element; // repeats fill the rest
            }
        }
    }
    return count;
}

static int compare_ints(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

// Gradients of the shape functions of vertices 1, 2, 3 of a tetrahedron: rows of the inverse of the edge matrix.
static double tet_gradients(const fem_mesh *mesh, const int v[4], double g[9]) {
    double E[9], inverse[9]; // columns of E are the edges from vertex 0
    for (int a = 0; a < 3; a++)
        for (int i = 0; i < 3; i++)
            E[3 * i + a] =
                mesh->vertices[3 * (size_t)v[a + 1] + (size_t)i] - mesh->vertices[3 * (size_t)v[0] + (size_t)i];
    double det = mat3_inverse(inverse, E);
    memcpy(g, inverse, 9 * sizeof *g);
    return fabs(det) / 6;
}

static void fill_lane(fem_body *body, int group, int lane) {
    const fem_mesh *mesh = body->mesh;
    int             width = body->width, v[8];
    memcpy(v, mesh->elements + (size_t)body->groups[group].element[lane] * (size_t)width, (size_t)width * sizeof *v);
    if (mesh->type == FEM_T4) {
        double g[9];
        qsort(v, 4, sizeof *v, compare_ints); // changes the sign of det only
        double volume = tet_gradients(mesh, v, g);
        for (int i = 0; i < 9; i++) body->gradients[((size_t)group * 9 + (size_t)i) * LANES + (size_t)lane] = g[i];
        body->volumes[(size_t)group * LANES + (size_t)lane] = lane < body->groups[group].count ? volume : 0;
    }
    for (int a = 0; a < width; a++) {
        body->vertices[((size_t)group * (size_t)width + (size_t)a) * LANES + (size_t)lane] = v[a];
        for (int b = a; b < width; b++) {
            size_t place =
                ((size_t)group * (size_t)body->pairs + (size_t)pair_index(a, b, width)) * LANES + (size_t)lane;
            body->blocks[place] = v[a] <= v[b] ? fem_sparse_find(&body->pattern, v[a], v[b])
                                               : ~fem_sparse_find(&body->pattern, v[b], v[a]);
        }
    }
}

static void fill_lanes_task(void *context, int group, int worker) {
    (void)worker;
    for (int lane = 0; lane < LANES; lane++) fill_lane(context, group, lane);
}

// ---- colours --------------------------------------------------------------------------------------------------

// Large chunks share fewer vertices with others, so that less memory is visited twice; there must still be enough of
// them for all workers. The number must not depend on the number of threads, since the order of sums follows from it.
static int chunk_size(int groups) {
    int size = groups / 128;
    return size < 16 ? 16 : size > 256 ? 256 : size;
}

// Greedy: a vertex remembers the colours of its chunks as bits; a chunk takes the lowest colour that none of its
// vertices has. A chunk that finds none gets the last colour, whose chunks run one after the other.
static fem_status colour_chunks(fem_body *body) {
    fem_status     status = FEM_OK;
    uint64_t      *used = fem_calloc((size_t)body->mesh->vertex_count, sizeof *used);
    unsigned char *colour = fem_alloc((size_t)body->chunk_count, 1);
    int            counts[MOST_COLOURS] = {0};
    if (!used || !colour) {
        status = fem_fail(FEM_NO_MEMORY, "no memory to colour %d chunks of elements", body->chunk_count);
        goto done;
    }
    size_t per_group = (size_t)body->width * LANES;
    for (int chunk = 0; chunk < body->chunk_count; chunk++) {
        int        last = chunk_end(body, chunk);
        const int *begin = body->vertices + (size_t)(chunk * body->chunk_groups) * per_group;
        const int *end = body->vertices + (size_t)last * per_group;
        uint64_t   taken = 0;
        for (const int *v = begin; v < end; v++) taken |= used[*v];
        int c = MOST_COLOURS - 1;
        if (~taken & (UINT64_MAX >> 1))
            c = __builtin_ctzll(~taken);
        else
            body->last_colour_serial = true;
        colour[chunk] = (unsigned char)c;
        counts[c]++;
        for (const int *v = begin; v < end; v++) used[*v] |= UINT64_C(1) << c;
    }
    for (int c = 0; c < MOST_COLOURS; c++) {
        body->colour_start[c + 1] = body->colour_start[c] + counts[c];
        if (counts[c]) body->colour_count = c + 1;
    }
    int next[MOST_COLOURS];
    memcpy(next, body->colour_start, sizeof next);
    for (int chunk = 0; chunk < body->chunk_count; chunk++) body->chunk_order[next[colour[chunk]]++] = chunk;
done:
    fem_free(used);
    fem_free(colour);
    return status;
}

// ---- life -----------------------------------------------------------------------------------------------------

void fem_body_destroy(fem_body *body) {
    if (!body) return;
    fem_sparse_destroy(&body->pattern);
    fem_free(body->constants);
    fem_free(body->groups);
    fem_free(body->vertices);
    fem_free(body->blocks);
    fem_free(body->gradients);
    fem_free(body->volumes);
    fem_free(body->chunk_order);
    fem_free(body->chunk_energy);
    fem_free(body);
}

fem_status fem_body_create(fem_body **result, const fem_mesh *mesh, const fem_body_options *options) {
    fem_status   status = FEM_OK;
    element_key *keys = NULL;
    if (options->quadrature != 2 && options->quadrature != 3)
        return fem_fail(FEM_BAD_INPUT, "quadrature is %d, expected 2 or 3", options->quadrature);
    fem_body *body = fem_calloc(1, sizeof *body);
    if (!body) return fem_fail(FEM_NO_MEMORY, "no memory for a body");
    body->mesh = mesh;
    body->options = *options;
    body->width = fem_element_vertices(mesh->type);
    body->pairs = mesh->type == FEM_T4 ? T4_BLOCKS : H8_BLOCKS;
    FEM_TRY(fem_sparse_from_mesh(&body->pattern, mesh));
    fem_free(body->pattern.value);
    body->pattern.value = NULL;
    keys = sorted_elements(mesh, body->width);
    if (!keys) goto no_memory;
    body->group_count = fill_groups(NULL, keys, mesh->element_count);
    body->chunk_groups = chunk_size(body->group_count);
    body->chunk_count = (body->group_count + body->chunk_groups - 1) / body->chunk_groups;
    size_t groups = (size_t)body->group_count, tets = mesh->type == FEM_T4 ? groups : 0;
    body->constants = fem_alloc((size_t)mesh->material_count, sizeof *body->constants);
    body->groups = fem_alloc(groups, sizeof *body->groups);
    body->vertices = fem_alloc(groups * LANES, (size_t)body->width * sizeof *body->vertices);
    body->blocks = fem_alloc(groups * LANES, (size_t)body->pairs * sizeof *body->blocks);
    body->gradients = fem_alloc(tets * LANES, 9 * sizeof *body->gradients);
    body->volumes = fem_alloc(tets * LANES, sizeof *body->volumes);
    body->chunk_order = fem_alloc((size_t)body->chunk_count, sizeof *body->chunk_order);
    body->chunk_energy = fem_alloc((size_t)body->chunk_count, sizeof *body->chunk_energy);
    if (!body->constants || !body->groups || !body->vertices || !body->blocks || !body->gradients || !body->volumes ||
        !body->chunk_order || !body->chunk_energy)
        goto no_memory;
    for (int i = 0; i < mesh->material_count; i++) fem_material_prepare(&body->constants[i], &mesh->materials[i]);
    fill_groups(body->groups, keys, mesh->element_count);
    fem_parallel_for(body->group_count, fill_lanes_task, body);
    FEM_TRY(colour_chunks(body));
    goto done;
no_memory:
    status = fem_fail(FEM_NO_MEMORY, "no memory for a body of %d elements", mesh->element_count);
done:
    fem_free(keys);
    if (status == FEM_OK)
        *result = body;
    else
        fem_body_destroy(body);
    return status;
}

const fem_mesh *fem_body_mesh(const fem_body *body) { return body->mesh; }

fem_status fem_body_matrix(const fem_body *body, fem_sparse *A) { return fem_sparse_copy(A, &body->pattern); }

// ---- evaluation -----------------------------------------------------------------------------------------------

typedef struct colour_work {
    chunk_task  task;
    const void *context;
    const int  *chunks;
} colour_work;

static void colour_task(void *context, int index, int worker) {
    (void)worker;
    colour_work *c = context;
    c->task(c->context, c->chunks[index]);
}

void fem_body_for_chunks(const fem_body *body, chunk_task task, const void *context) {
    for (int c = 0; c < body->colour_count; c++) {
        colour_work colour = {.task = task, .context = context, .chunks = body->chunk_order + body->colour_start[c]};
        int         count = body->colour_start[c + 1] - body->colour_start[c];
        if (c == MOST_COLOURS - 1 && body->last_colour_serial)
            for (int i = 0; i < count; i++) colour_task(&colour, i, 0);
        else
            fem_parallel_for(count, colour_task, &colour);
    }
}

typedef struct kernel_work {
    const element_work *work;
    element_kernel      kernel;
} kernel_work;

static void kernel_task(const void *context, int chunk) {
    const kernel_work *k = context;
    k->kernel(k->work, chunk);
}

static void run_kernel(const element_work *work) {
    kernel_work k = {.work = work, .kernel = fem_element_kernel_baseline};
#if defined(__x86_64__)
    fem_simd level = fem_simd_level();
    if (level == FEM_SIMD_AVX2) k.kernel = fem_element_kernel_avx2;
    if (level == FEM_SIMD_AVX512) k.kernel = fem_element_kernel_avx512;
#endif
    if (work->body->options.plain) k.kernel = fem_element_plain;
    fem_body_for_chunks(work->body, kernel_task, &k);
}

void fem_body_evaluate(const fem_body *body, const double *u, double *energy, double *force, fem_sparse *stiffness) {
    element_work work = {.body = body, .u = u, .force = force};
    if (energy) work.energy = body->chunk_energy;
    if (stiffness) work.stiffness = stiffness->value, fem_sparse_zero(stiffness);
    if (force) memset(force, 0, 3 * (size_t)body->mesh->vertex_count * sizeof *force);
    run_kernel(&work);
    if (energy) {
        *energy = 0;
        for (int i = 0; i < body->chunk_count; i++) *energy += body->chunk_energy[i];
    }
}

void fem_body_second(const fem_body *body, const double *u, const double *a, const double *b, double *out) {
    element_work work = {.body = body, .u = u, .a = a, .b = b, .force = out, .second = true};
    memset(out, 0, 3 * (size_t)body->mesh->vertex_count * sizeof *out);
    run_kernel(&work);
}

// ---- mass and geometry ----------------------------------------------------------------------------------------

int fem_hex_points(int per_direction, hex_point points[27], double values[27][8]) {
    static const double corner[8][3] = {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0},
                                        {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}};
    double              two = 0.5 / sqrt(3.0), three = 0.5 * sqrt(0.6); // Gauss-Legendre on [0, 1]
    double              place2[] = {0.5 - two, 0.5 + two}, weight2[] = {0.5, 0.5};
    double              place3[] = {0.5 - three, 0.5, 0.5 + three}, weight3[] = {5.0 / 18, 8.0 / 18, 5.0 / 18};
    const double       *place = per_direction == 2 ? place2 : place3, *weight = per_direction == 2 ? weight2 : weight3;
    int                 count = per_direction * per_direction * per_direction;
    for (int p = 0; p < count; p++) {
        int index[3] = {p % per_direction, p / per_direction % per_direction, p / (per_direction * per_direction)};
        points[p].weight = weight[index[0]] * weight[index[1]] * weight[index[2]];
        for (int a = 0; a < 8; a++) {
            double value[3], slope[3];
            for (int i = 0; i < 3; i++) {
                double x = place[index[i]];
                value[i] = corner[a][i] != 0 ? x : 1 - x;
                slope[i] = corner[a][i] != 0 ? 1 : -1;
            }
            values[p][a] = value[0] * value[1] * value[2];
            points[p].dN[a][0] = slope[0] * value[1] * value[2];
            points[p].dN[a][1] = value[0] * slope[1] * value[2];
            points[p].dN[a][2] = value[0] * value[1] * slope[2];
        }
    }
    return count;
}

// Jacobian dX/dxi of an H8 at a Gauss point
static void hex_jacobian(const fem_mesh *mesh, const int *v, const hex_point *point, double J[9]) {
    memset(J, 0, 9 * sizeof *J);
    for (int a = 0; a < 8; a++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) J[3 * i + j] += mesh->vertices[3 * (size_t)v[a] + (size_t)i] * point->dN[a][j];
}

// m_ab = int rho N_a N_b: rho V/20 (1 + delta_ab) for a T4; 27 Gauss points, exact, for an H8
static void element_mass(const fem_body *body, int element, double density, const hex_point points[27],
                         double values[27][8], double m[8][8]) {
    const fem_mesh *mesh = body->mesh;
    const int      *v = mesh->elements + (size_t)element * (size_t)body->width;
    if (mesh->type == FEM_T4) {
        double unit = density * fem_element_volume(mesh, element) / 20;
        for (int a = 0; a < 4; a++)
            for (int b = 0; b < 4; b++) m[a][b] = a == b ? 2 * unit : unit;
        return;
    }
    memset(m, 0, 64 * sizeof(double));
    for (int p = 0; p < 27; p++) {
        double J[9];
        hex_jacobian(mesh, v, &points[p], J);
        double weight = density * points[p].weight * mat3_det(J);
        for (int a = 0; a < 8; a++)
            for (int b = 0; b < 8; b++) m[a][b] += weight * values[p][a] * values[p][b];
    }
}

static double element_density(const fem_mesh *mesh, int element) {
    return mesh->materials[mesh->regions[mesh->region[element]].material].density;
}

void fem_body_element_mass(const fem_body *body, int element, double m[64]) {
    hex_point points[27];
    double    values[27][8], blocks[8][8] = {{0}};
    if (body->width == 8) fem_hex_points(3, points, values);
    element_mass(body, element, 1, points, values, blocks);
    memcpy(m, blocks, sizeof blocks);
}

void fem_body_mass(const fem_body *body, fem_mass_kind kind, fem_sparse *mass) {
    const fem_mesh *mesh = body->mesh;
    hex_point       points[27];
    double          values[27][8], m[8][8];
    fem_hex_points(3, points, values);
    fem_sparse_zero(mass);
    for (int e = 0; e < mesh->element_count; e++) {
        const int *v = mesh->elements + (size_t)e * (size_t)body->width;
        element_mass(body, e, element_density(mesh, e), points, values, m);
        for (int a = 0; a < body->width; a++)
            for (int b = 0; b < body->width; b++) {
                int row = v[a], column = kind == FEM_MASS_LUMPED ? v[a] : v[b];
                if (row > column) continue;
                double *block = mass->value + 9 * (size_t)fem_sparse_find(mass, row, column);
                for (int i = 0; i < 3; i++) block[4 * i] += m[a][b];
            }
    }
}

void fem_body_vertex_masses(const fem_body *body, double *masses) {
    const fem_mesh *mesh = body->mesh;
    hex_point       points[27];
    double          values[27][8], m[8][8];
    fem_hex_points(3, points, values);
    memset(masses, 0, (size_t)mesh->vertex_count * sizeof *masses);
    for (int e = 0; e < mesh->element_count; e++) {
        element_mass(body, e, element_density(mesh, e), points, values, m);
        for (int a = 0; a < body->width; a++)
            for (int b = 0; b < body->width; b++)
                masses[mesh->elements[(size_t)e * (size_t)body->width + (size_t)a]] += m[a][b];
    }
}

double fem_body_total_mass(const fem_body *body) {
    const fem_mesh *mesh = body->mesh;
    double          total = 0;
    for (int e = 0; e < mesh->element_count; e++) total += element_density(mesh, e) * fem_element_volume(mesh, e);
    return total;
}

double fem_body_min_jacobian(const fem_body *body, const double *u, int *element) {
    const fem_mesh *mesh = body->mesh;
    hex_point       points[27];
    double          values[27][8], smallest = INFINITY;
    int             count = mesh->type == FEM_H8 ? fem_hex_points(body->options.quadrature, points, values) : 1;
    for (int e = 0; e < mesh->element_count; e++) {
        const int *v = mesh->elements + (size_t)e * (size_t)body->width;
        for (int p = 0; p < count; p++) {
            double rest[9] = {0}, now[9] = {0};
            for (int a = 0; a < body->width; a++)
                for (int i = 0; i < 3; i++)
                    for (int j = 0; j < 3; j++) {
                        double slope = mesh->type == FEM_H8 ? points[p].dN[a][j] : (a == j + 1) - (a == 0);
                        double X = mesh->vertices[3 * (size_t)v[a] + (size_t)i];
                        rest[3 * i + j] += slope * X;
                        now[3 * i + j] += slope * (X + u[3 * (size_t)v[a] + (size_t)i]);
                    }
            double J = mat3_det(now) / mat3_det(rest); // det F
            if (J >= smallest) continue;
            smallest = J;
            if (element) *element = e;
            if (isnan(J)) return J;
        }
    }
    return smallest;
}
