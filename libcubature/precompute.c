// Coefficients of the reduced StVK energy by a matrix product.
//
// With H_i the displacement gradient of mode i at an integration point, the Green strain of u = U q is
//   E = sum_i L_i q_i + 1/2 sum_ij B_ij q_i q_j,   L_i = sym(H_i),   B_ij = sym(H_i^T H_j)
// and a set of coefficients is the energy <E, E>, a sum of squares of linear forms of the strain over all integration
// points. With the values of these forms as rows and L_i, B_ij (i <= j) as columns of Z, all inner products are the
// Gram matrix G = Z^T Z, and the derivatives of the energy at q = 0 are
//   d2 = 2 <L_a, L_b>
//   d3 = 2 (<L_a, B_bc> + <L_b, B_ac> + <L_c, B_ab>)
//   d4 = 2 (<B_ab, B_cd> + <B_ac, B_bd> + <B_ad, B_bc>)
// A coefficient is its derivative over the factorials of the exponents of its monomial. P4's appendix B sums the same
// numbers element by element, r^4 at a time; as a matrix product they run at the speed of the processor.
//
// Z is made block by block of integration points, so that it stays in the second cache whatever the size of the mesh.
// Workers share a block by columns (making Z) and by tiles of G; every entry of G is summed in the order of the blocks,
// whatever the number of threads.
#include "libcubature/internal.h"

#include <string.h>

enum { BLOCK_ROWS = 576 }; // of Z: 96 points with 6 rows each; a tile's columns then fit the caches

// ---- what a set sums -----------------------------------------------------------------------------------------------

#define ROOT_HALF 0.70710678118654752440

// tr(E); then E:E = e1^2 + e2^2 + e3^2 + (g12^2 + g23^2 + g31^2)/2
static const strain_row isotropic_rows[7] = {
    {3, {0, 1, 2}, 1},   {1, {0}, 1},         {1, {1}, 1},         {1, {2}, 1},
    {1, {3}, ROOT_HALF}, {1, {4}, ROOT_HALF}, {1, {5}, ROOT_HALF},
};
static const strain_row orthotropic_rows[9] = {
    {1, {0}, 1}, {1, {1}, 1},    {1, {2}, 1},    {1, {3}, 1},    {1, {4}, 1},
    {1, {5}, 1}, {2, {0, 1}, 1}, {2, {1, 2}, 1}, {2, {2, 0}, 1},
};

static const strain_row *rows_of_set(fem_material_kind kind, int set, int *count) {
    *count = kind == FEM_STVK && set == 1 ? 6 : 1;
    return kind == FEM_STVK ? isotropic_rows + set : orthotropic_rows + set;
}

// ---- state of a precomputation -------------------------------------------------------------------------------------

typedef struct precomputation {
    const fem_body     *body;
    const fem_mesh     *mesh;
    const double       *U;
    int                 n, r, width, points_per_element;
    cubature_kernels    kernels;
    int                *element; // elements sorted by group
    int                *start;   // groups + 1: where each group's elements begin
    gram_block          block;
    double             *H, *root;
    const int          *block_elements; // of the present block
    double              frame[9];       // axes of the present group
    bool                rotated;
    double             *set;         // coefficients of the present set
    double              done, total; // rows, for the progress
    const fem_progress *progress;
} precomputation;

static void destroy_precomputation(precomputation *c) {
    fem_free(c->element);
    fem_free(c->start);
    fem_free(c->H);
    fem_free(c->root);
    fem_free(c->block.Z);
    fem_free(c->block.G);
}

// ---- one block -----------------------------------------------------------------------------------------------------

// w^(1/4) R^T H_i R at the integration points of one element of the block, for all modes; R the material axes
static void gradients_task(void *context, int index, int worker) {
    (void)worker;
    precomputation *c = context;
    double          weight[27], g[27][24];
    int             e = c->block_elements[index], first = index * c->points_per_element;
    const int      *v = c->mesh->elements + (size_t)e * (size_t)c->width;
    int             count = fem_body_points(c->body, e, weight, g);
    for (int p = 0; p < count; p++) c->root[first + p] = weight[p] = sqrt(sqrt(weight[p]));
    for (int mode = 0; mode < c->r; mode++) {
        const double *U = c->U + (size_t)mode * (size_t)c->n;
        double        u[24];
        for (int a = 0; a < c->width; a++) memcpy(u + 3 * a, U + 3 * (size_t)v[a], 3 * sizeof *u);
        for (int p = 0; p < count; p++) {
            double H[9] = {0}, T[9];
            for (int a = 0; a < c->width; a++)
                for (int i = 0; i < 3; i++)
                    for (int j = 0; j < 3; j++) H[3 * i + j] += u[3 * a + i] * g[p][3 * a + j];
            if (c->rotated) {
                mat3_mul(T, H, c->frame);
                for (int i = 0; i < 3; i++)
                    for (int j = 0; j < 3; j++)
                        H[3 * i + j] = c->frame[i] * T[j] + c->frame[3 + i] * T[3 + j] + c->frame[6 + i] * T[6 + j];
            }
            double *out = c->H + (size_t)mode * 9 * (size_t)c->block.points + (first + p);
            for (int i = 0; i < 9; i++) out[i * c->block.points] = weight[p] * H[i];
        }
    }
}

static void columns_task(void *context, int index, int worker) {
    (void)worker;
    precomputation *c = context;
    c->kernels.strain_columns(&c->block, c->r - 1 - index); // the longest first
}

static void tile_task(void *context, int index, int worker) {
    (void)worker;
    precomputation *c = context;
    int             t = (int)((sqrt(8.0 * index + 1) - 1) / 2); // index = t (t + 1) / 2 + s
    while (t * (t + 1) / 2 > index) t--;
    while ((t + 1) * (t + 2) / 2 <= index) t++;
    c->kernels.gram_tile(&c->block, index - t * (t + 1) / 2, t);
}

static void run_block(precomputation *c, int elements) {
    int used = elements * c->points_per_element;
    for (int p = used; p < c->block.points; p++) { // unused points of the last block
        c->root[p] = 0;
        for (int row = 0; row < 9 * c->r; row++) c->H[(size_t)row * (size_t)c->block.points + (size_t)p] = 0;
    }
    fem_parallel_for(elements, gradients_task, c);
    fem_parallel_for(c->r, columns_task, c);
    fem_parallel_for(c->block.tiles * (c->block.tiles + 1) / 2, tile_task, c);
}

// ---- from the Gram matrix to coefficients --------------------------------------------------------------------------

static inline double gram(const gram_block *b, int i, int j) {
    if (i > j) return gram(b, j, i);
    int s = i / GRAM_TILE, t = j / GRAM_TILE;
    return b->G[((size_t)t * ((size_t)t + 1) / 2 + (size_t)s) * (GRAM_TILE * GRAM_TILE) +
                (size_t)(j % GRAM_TILE * GRAM_TILE + i % GRAM_TILE)];
}

// All coefficients with largest index l. The divisor is the product of the factorials of the exponents.
static void collect_task(void *context, int index, int worker) {
    (void)worker;
    precomputation   *c = context;
    const gram_block *G = &c->block;
    int               l = c->r - 1 - index, r = c->r;
    double           *out = c->set + cubature_polynomial_block(0, l);
#define PAIR(a, b) (r + (b) * ((b) + 1) / 2 + (a)) // column of B_ab, a <= b
    for (int k = 0; k <= l; k++) {
        *out++ = (k == l ? 1 : 2) * gram(G, k, l);
        for (int j = 0; j <= k; j++) {
            double run = j == k ? (k == l ? 6 : 2) : k == l ? 2 : 1; // of j, k, l
            *out++ = 2 / run * (gram(G, j, PAIR(k, l)) + gram(G, k, PAIR(j, l)) + gram(G, l, PAIR(j, k)));
            for (int i = 0; i <= j; i++) {
                double divisor = run;
                if (i == j) divisor *= j < k ? 2 : k < l ? 3 : 4; // one more of the same
                *out++ = 2 / divisor *
                         (gram(G, PAIR(i, j), PAIR(k, l)) + gram(G, PAIR(i, k), PAIR(j, l)) +
                          gram(G, PAIR(i, l), PAIR(j, k)));
            }
        }
    }
#undef PAIR
}

static size_t gram_size(int tiles) { return (size_t)tiles * ((size_t)tiles + 1) / 2 * (GRAM_TILE * GRAM_TILE); }

// One set of one group: all its blocks, then the coefficients.
static fem_status run_set(precomputation *c, cubature_polynomial *p, int group, int set) {
    fem_status          status = FEM_OK;
    const fem_material *material = &p->groups[group].material;
    c->block.rows = rows_of_set(material->kind, set, &c->block.row_count);
    c->rotated = material->kind == FEM_ORTHOTROPIC;
    memcpy(c->frame, material->frame, sizeof c->frame);
    c->block.points = BLOCK_ROWS / c->block.row_count;
    c->set = p->sets + (size_t)(p->groups[group].first_set + set) * p->count;
    int elements_per_block = c->block.points / c->points_per_element;
    memset(c->block.G, 0, gram_size(c->block.tiles) * sizeof *c->block.G);
    for (int begin = c->start[group]; begin < c->start[group + 1]; begin += elements_per_block) {
        int count = c->start[group + 1] - begin;
        if (count > elements_per_block) count = elements_per_block;
        c->block_elements = c->element + begin;
        run_block(c, count);
        c->done += count * c->block.row_count;
        FEM_TRY(fem_progress_report(c->progress, "force polynomial", c->done / c->total));
    }
    fem_parallel_for(c->r, collect_task, c);
done:
    return status;
}

// ---- reduced mass --------------------------------------------------------------------------------------------------

// U^T M U of a group at density 1: for each element m U_e beside U_e, both as columns of length rows x elements, then
// one matrix product. Z holds both.
static fem_status run_mass(precomputation *c, double *mass, int group) {
    int     rows = 3 * c->width, most = 512 / rows, r = c->r;
    double *both = fem_alloc((size_t)(2 * most * rows), (size_t)r * sizeof *both);
    if (!both) return fem_fail(FEM_NO_MEMORY, "no memory for the reduced mass of %d modes", r);
    for (int begin = c->start[group], count; begin < c->start[group + 1]; begin += count) {
        count = c->start[group + 1] - begin < most ? c->start[group + 1] - begin : most;
        size_t  length = (size_t)(count * rows);
        double *u = both, *mu = both + length * (size_t)r;
        for (int index = 0; index < count; index++) {
            double     m[64];
            int        e = c->element[begin + index];
            const int *v = c->mesh->elements + (size_t)e * (size_t)c->width;
            fem_body_element_mass(c->body, e, m);
            for (int mode = 0; mode < r; mode++) {
                const double *U = c->U + (size_t)mode * (size_t)c->n;
                double       *ue = u + (size_t)mode * length + (size_t)(index * rows);
                double       *me = mu + (size_t)mode * length + (size_t)(index * rows);
                for (int a = 0; a < c->width; a++) memcpy(ue + 3 * a, U + 3 * (size_t)v[a], 3 * sizeof *ue);
                for (int a = 0; a < c->width; a++)
                    for (int i = 0; i < 3; i++) {
                        me[3 * a + i] = 0;
                        for (int b = 0; b < c->width; b++) me[3 * a + i] += m[8 * a + b] * ue[3 * b + i];
                    }
            }
        }
        dense_gemm(true, false, r, r, (int)length, 1, u, mu, 1, mass);
    }
    for (int i = 0; i < r; i++)
        for (int j = 0; j < i; j++) mass[i * r + j] = mass[j * r + i] = (mass[i * r + j] + mass[j * r + i]) / 2;
    fem_free(both);
    return FEM_OK;
}

// ---- groups, checks, memory ----------------------------------------------------------------------------------------

static fem_status check_arguments(const fem_mesh *mesh, int r, const double *U) {
    size_t n = 3 * (size_t)mesh->vertex_count;
    size_t most = n < CUBATURE_MOST_MODES ? n : CUBATURE_MOST_MODES;
    if (r < 1 || (size_t)r > most)
        return fem_fail(FEM_BAD_INPUT,
                        "a force polynomial of %d modes for a body of %zu degrees of freedom: expected 1 to %zu", r, n,
                        most);
    for (size_t i = 0; i < n * (size_t)r; i++)
        if (!isfinite(U[i])) return fem_fail(FEM_BAD_INPUT, "mode %zu is not finite at vertex %zu", i / n, i % n / 3);
    for (int e = 0; e < mesh->element_count; e++) {
        const fem_material *material = &mesh->materials[mesh->regions[mesh->region[e]].material];
        if (material->kind != FEM_STVK && material->kind != FEM_ORTHOTROPIC)
            return fem_fail(FEM_BAD_INPUT,
                            "material \"%s\" is %s, whose forces are no polynomial: use \"cubature\" forces, or the "
                            "material stvk or orthotropic",
                            material->name, fem_material_kind_name(material->kind));
    }
    return FEM_OK;
}

// What create takes: coefficients, Gram matrix, one block.
static fem_status check_memory(int r, int set_count, int tiles, size_t limit) {
    double n = r, coefficients = (n + 1) * (n + 2) * (n + 3) * (n + 4) / 24;
    double columns = (double)tiles * GRAM_TILE;
    double bytes =
        8 * (coefficients * (set_count + 1) + columns * (columns + GRAM_TILE) / 2 + BLOCK_ROWS * (columns + 9 * n + 1));
    if (bytes > (double)limit)
        return fem_fail(FEM_NO_MEMORY,
                        "the force polynomial of %d modes needs %.3g GB (%d sets of coefficients), the limit is %.3g "
                        "GB: use fewer modes, \"cubature\" forces, or a higher limit",
                        r, bytes / (1 << 30), set_count, (double)limit / (1 << 30));
    return FEM_OK;
}

// Materials that have elements become groups, in their order; elements are sorted by group.
static fem_status make_groups(precomputation *c, cubature_polynomial *p, const cubature_polynomial_options *options) {
    fem_status      status = FEM_OK;
    const fem_mesh *mesh = c->mesh;
    int             groups = 0, sets = 0, *count = fem_calloc((size_t)mesh->material_count, sizeof *count);
    c->element = fem_alloc((size_t)mesh->element_count, sizeof *c->element);
    c->start = fem_calloc((size_t)mesh->material_count + 1, sizeof *c->start);
    if (!count || !c->element || !c->start) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the material groups of %d elements", mesh->element_count);
        goto done;
    }
    for (int e = 0; e < mesh->element_count; e++) count[mesh->regions[mesh->region[e]].material]++;
    for (int m = 0; m < mesh->material_count; m++)
        if (count[m]) groups++, sets += mesh->materials[m].kind == FEM_STVK ? 2 : 9;
    FEM_TRY(check_memory(c->r, sets, c->block.tiles, options->memory_limit));
    FEM_TRY(cubature_polynomial_allocate(p, c->r, groups, sets));
    for (int m = 0, g = 0, set = 0, begin = 0; m < mesh->material_count; m++) {
        if (!count[m]) continue;
        int set_count = mesh->materials[m].kind == FEM_STVK ? 2 : 9, rows = set_count == 2 ? 7 : 9;
        p->groups[g] = (cubature_group){.material = mesh->materials[m], .first_set = set, .set_count = set_count};
        c->total += (double)rows * count[m];
        c->start[g++] = begin;
        c->start[g] = begin + count[m];
        set += set_count;
        int next = begin;
        begin += count[m];
        count[m] = next; // where its next element goes
    }
    for (int e = 0; e < mesh->element_count; e++) c->element[count[mesh->regions[mesh->region[e]].material]++] = e;
done:
    fem_free(count);
    return status;
}

fem_status cubature_polynomial_create(cubature_polynomial *result, const fem_body *body, int r, const double *U,
                                      const cubature_polynomial_options *options, const fem_progress *progress) {
    fem_status          status = FEM_OK;
    const fem_mesh     *mesh = fem_body_mesh(body);
    cubature_polynomial p = {0};
    precomputation      c = {.body = body, .mesh = mesh, .U = U, .r = r, .progress = progress};
    double              weight[27], g[27][24];
    FEM_TRY(check_arguments(mesh, r, U));
    c.n = 3 * mesh->vertex_count;
    c.width = fem_element_vertices(mesh->type);
    c.points_per_element = fem_body_points(body, 0, weight, g);
    c.kernels = cubature_choose_kernels();
    c.block.r = r;
    c.block.columns = r + r * (r + 1) / 2;
    c.block.tiles = (c.block.columns + GRAM_TILE - 1) / GRAM_TILE;
    FEM_TRY(make_groups(&c, &p, options));
    c.block.G = fem_alloc(gram_size(c.block.tiles), sizeof *c.block.G);
    c.block.Z = fem_calloc((size_t)c.block.tiles * GRAM_TILE, BLOCK_ROWS * sizeof *c.block.Z);
    c.block.H = c.H = fem_calloc((size_t)r * 9, BLOCK_ROWS * sizeof *c.H);
    c.block.root = c.root = fem_calloc(BLOCK_ROWS, sizeof *c.root);
    if (!c.block.G || !c.block.Z || !c.H || !c.root) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the Gram matrix of %d modes", r);
        goto done;
    }
    for (int group = 0; group < p.group_count; group++) {
        for (int set = 0; set < p.groups[group].set_count; set++) FEM_TRY(run_set(&c, &p, group, set));
        FEM_TRY(run_mass(&c, p.mass + (size_t)group * (size_t)r * (size_t)r, group));
    }
    cubature_polynomial_sum(&p);
    *result = p;
done:
    destroy_precomputation(&c);
    if (status != FEM_OK) cubature_polynomial_destroy(&p);
    return status;
}
