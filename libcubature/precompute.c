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
// Workers share a block by panels of columns (making Z) and by tiles of G; every entry of G is summed in the order of
// the blocks, whatever the number of threads. All sets of a material group have their Gram matrices at once.
#include "libcubature/internal.h"

#include <string.h>

// Integration points of a block: fewer for many columns, since Z should stay in the second cache, but enough to share
// among threads and to hold the points of an H8.
static int block_points(int panels) {
    int points = 640 / panels / 32 * 32;
    return points < 64 ? 64 : points > 256 ? 256 : points;
}

// ---- what a set sums -----------------------------------------------------------------------------------------------

#define ROOT_HALF  0.70710678118654752440
#define ROOT_SIXTH 0.40824829046386301637

// tr(E); then the deviator in five numbers, one row fewer than E:E takes:
//   E:E = tr(E)^2/3 + (e1 - e2)^2/2 + (e1 + e2 - 2 e3)^2/6 + (g12^2 + g23^2 + g31^2)/2
static const strain_row isotropic_rows[6] = {
    {3, {0, 1, 2}, {1, 1, 1}},
    {2, {0, 1}, {ROOT_HALF, -ROOT_HALF}},
    {3, {0, 1, 2}, {ROOT_SIXTH, ROOT_SIXTH, -2 * ROOT_SIXTH}},
    {1, {3}, {ROOT_HALF}},
    {1, {4}, {ROOT_HALF}},
    {1, {5}, {ROOT_HALF}},
};
static const strain_row orthotropic_rows[9] = {
    {1, {0}, {1}}, {1, {1}, {1}},       {1, {2}, {1}},       {1, {3}, {1}},       {1, {4}, {1}},
    {1, {5}, {1}}, {2, {0, 1}, {1, 1}}, {2, {1, 2}, {1, 1}}, {2, {2, 0}, {1, 1}},
};

static int set_count_of(fem_material_kind kind) { return kind == FEM_STVK ? 2 : 9; }

// ---- state of a precomputation -------------------------------------------------------------------------------------

typedef struct precomputation {
    const fem_body     *body;
    const fem_mesh     *mesh;
    int                 r, points_per_element;
    cubature_kernels    kernels;
    int                *element; // elements sorted by group
    int                *start;   // groups + 1: where each group's elements begin
    gram_block          block;
    strain_column      *columns;
    double             *Ut;
    int                 tiles;          // of GRAM_TILE columns
    double             *G;              // per set: upper tiles (s, t), s <= t, at t (t + 1) / 2 + s
    int                 sets;           // of the present group
    const int          *block_elements; // of the present block
    double             *coefficients;   // sets of the present group
    const fem_progress *progress;
} precomputation;

static void destroy_precomputation(precomputation *c) {
    fem_free(c->element);
    fem_free(c->start);
    fem_free(c->columns);
    fem_free(c->Ut);
    fem_free(c->block.vertices);
    fem_free(c->block.g);
    fem_free(c->block.root);
    fem_free(c->block.H);
    fem_free(c->block.Z);
    fem_free(c->G);
}

static size_t  tile_count(const precomputation *c) { return (size_t)c->tiles * ((size_t)c->tiles + 1) / 2; }
static double *tile_of(const precomputation *c, int set, int s, int t) {
    size_t index = (size_t)t * ((size_t)t + 1) / 2 + (size_t)s;
    return c->G + ((size_t)set * tile_count(c) + index) * (GRAM_TILE * GRAM_TILE);
}

// ---- one block -----------------------------------------------------------------------------------------------------

static void element_task(void *context, int index, int worker) {
    (void)worker;
    precomputation *c = context;
    gram_block     *b = &c->block;
    double          weight[27], g[27][24];
    int             e = c->block_elements[index], count = fem_body_points(c->body, e, weight, g);
    for (int p = 0; p < count; p++) {
        size_t point = (size_t)(index * count + p);
        b->root[point] = sqrt(sqrt(weight[p]));
        memcpy(b->g + 24 * point, g[p], sizeof g[p]);
        memcpy(b->vertices + 8 * point, c->mesh->elements + (size_t)e * (size_t)b->width,
               (size_t)b->width * sizeof *b->vertices);
    }
}

static void gradients_task(void *context, int index, int worker) {
    (void)worker;
    precomputation *c = context;
    c->kernels.mode_gradients(&c->block, 8 * index);
}

static void panel_task(void *context, int index, int worker) {
    (void)worker;
    precomputation *c = context;
    c->kernels.strain_panel(&c->block, index);
}

// All sets of one tile, so that its panels are read once.
static void tile_task(void *context, int index, int worker) {
    (void)worker;
    precomputation *c = context;
    int             t = (int)((sqrt(8.0 * index + 1) - 1) / 2); // index = t (t + 1) / 2 + s
    while (t * (t + 1) / 2 > index) t--;
    while ((t + 1) * (t + 2) / 2 <= index) t++;
    int s = index - t * (t + 1) / 2;
    for (int set = 0, row = 0, count; set < c->sets; set++, row += count) {
        count = c->sets == 2 && set == 1 ? 5 : 1; // rows of the set
        c->kernels.gram_tile(&c->block, row, count, s, t, tile_of(c, set, s, t));
    }
}

static void run_block(precomputation *c, int elements) {
    for (int p = elements * c->points_per_element; p < c->block.points; p++) c->block.root[p] = 0; // unused points
    fem_parallel_for(elements, element_task, c);
    fem_parallel_for(c->block.points / 8, gradients_task, c);
    fem_parallel_for(c->block.panels, panel_task, c);
    fem_parallel_for((int)tile_count(c), tile_task, c);
}

// ---- from the Gram matrix to coefficients --------------------------------------------------------------------------

static inline double gram(const precomputation *c, int set, int i, int j) {
    if (i > j) return gram(c, set, j, i);
    return tile_of(c, set, i / GRAM_TILE, j / GRAM_TILE)[i % GRAM_TILE * GRAM_TILE + j % GRAM_TILE];
}

// All coefficients of a set with largest index l. The divisor is the product of the factorials of the exponents.
static void collect(const precomputation *c, int set, int l) {
    int     r = c->r;
    double *out = c->coefficients + (size_t)set * cubature_polynomial_count(r) + cubature_polynomial_block(0, l);
#define G(a, b)    gram(c, set, a, b)
#define PAIR(a, b) (r + (b) * ((b) + 1) / 2 + (a)) // column of B_ab, a <= b
    for (int k = 0; k <= l; k++) {
        *out++ = (k == l ? 1 : 2) * G(k, l);
        for (int j = 0; j <= k; j++) {
            double three = j == k ? (k == l ? 6 : 2) : k == l ? 2 : 1; // of q_j q_k q_l
            *out++ = 2 / three * (G(j, PAIR(k, l)) + G(k, PAIR(j, l)) + G(l, PAIR(j, k)));
            for (int i = 0; i <= j; i++) {
                double four = i < j ? three : j < k ? 2 * three : k < l ? 3 * three : 4 * three;
                *out++ = 2 / four * (G(PAIR(i, j), PAIR(k, l)) + G(PAIR(i, k), PAIR(j, l)) + G(PAIR(i, l), PAIR(j, k)));
            }
        }
    }
#undef PAIR
#undef G
}

// The second set of an isotropic group has the deviator only: E:E lacks a third of tr(E)^2, which is the first set.
static void add_trace(precomputation *c) {
    size_t size = tile_count(c) * (GRAM_TILE * GRAM_TILE);
    for (size_t i = 0; i < size; i++) c->G[size + i] += c->G[i] / 3;
}

static void collect_task(void *context, int index, int worker) {
    (void)worker;
    precomputation *c = context;
    for (int set = 0; set < c->sets; set++) collect(c, set, c->r - 1 - index); // the longest first
}

// All sets of one group: all its blocks, then the coefficients.
static fem_status run_group(precomputation *c, cubature_polynomial *p, int group) {
    fem_status          status = FEM_OK;
    const fem_material *material = &p->groups[group].material;
    bool                isotropic = material->kind == FEM_STVK;
    c->sets = p->groups[group].set_count;
    c->coefficients = p->sets + (size_t)p->groups[group].first_set * p->count;
    c->block.frame = isotropic ? NULL : material->frame;
    c->block.rows = isotropic ? isotropic_rows : orthotropic_rows;
    c->block.row_count = isotropic ? 6 : 9;
    memset(c->G, 0, (size_t)c->sets * tile_count(c) * (GRAM_TILE * GRAM_TILE) * sizeof *c->G);
    int most = c->block.points / c->points_per_element, end = c->start[group + 1];
    for (int begin = c->start[group], count; begin < end; begin += count) {
        count = end - begin < most ? end - begin : most;
        c->block_elements = c->element + begin;
        run_block(c, count);
        FEM_TRY(fem_progress_report(c->progress, "force polynomial", (double)(begin + count) / c->mesh->element_count));
    }
    if (isotropic) add_trace(c);
    fem_parallel_for(c->r, collect_task, c);
done:
    return status;
}

// ---- reduced mass --------------------------------------------------------------------------------------------------

// U^T M U of a group at density 1. A part of the elements has its displacements U_e and m U_e as columns of two
// matrices (r x their number), whose product is its share; shares are added in order.
enum { MASS_PARTS = 16, MASS_COLUMNS = 384 };

typedef struct mass_work {
    const precomputation *c;
    int                   begin, end; // of the elements
    double               *share;      // MASS_PARTS x r x r
    double               *columns;    // MASS_PARTS x 2 x MASS_COLUMNS x modes
} mass_work;

static void mass_task(void *context, int part, int worker) {
    (void)worker;
    const mass_work      *w = context;
    const precomputation *c = w->c;
    size_t                modes = (size_t)c->block.modes;
    int     r = (int)modes, width = c->block.width, most = MASS_COLUMNS / (3 * width), count = w->end - w->begin;
    int     begin = w->begin + (int)((long)count * part / MASS_PARTS);
    int     end = w->begin + (int)((long)count * (part + 1) / MASS_PARTS);
    double *u = w->columns + (size_t)part * 2 * MASS_COLUMNS * modes, *mu = u + MASS_COLUMNS * modes;
    double *share = w->share + (size_t)part * modes * modes;
    for (int used; begin < end; begin += used) {
        used = end - begin < most ? end - begin : most;
        memset(mu, 0, (size_t)(used * 3 * width) * modes * sizeof *mu);
        for (int index = 0; index < used; index++) {
            double     m[64];
            int        e = c->element[begin + index];
            const int *v = c->mesh->elements + (size_t)e * (size_t)width;
            double    *ue = u + (size_t)(index * 3 * width) * modes, *me = mu + (size_t)(index * 3 * width) * modes;
            fem_body_element_mass(c->body, e, m);
            for (int a = 0; a < width; a++)
                memcpy(ue + (size_t)(3 * a) * modes, c->Ut + 3 * (size_t)v[a] * modes, 3 * modes * sizeof *ue);
            for (int a = 0; a < width; a++)
                for (int b = 0; b < width; b++) {
                    double *restrict out = me + (size_t)(3 * a) * modes;
                    const double *in = ue + (size_t)(3 * b) * modes;
                    for (size_t i = 0; i < 3 * modes; i++) out[i] += m[8 * a + b] * in[i];
                }
        }
        dense_gemm(false, true, r, r, used * 3 * width, 1, u, mu, 1, share);
    }
}

static fem_status run_mass(const precomputation *c, int group, double *mass) {
    fem_status status = FEM_OK;
    size_t     modes = (size_t)c->block.modes, r = (size_t)c->r;
    mass_work  w = {.c = c, .begin = c->start[group], .end = c->start[group + 1]};
    w.share = fem_calloc(MASS_PARTS * modes, modes * sizeof *w.share);
    w.columns = fem_alloc((size_t)MASS_PARTS * 2 * MASS_COLUMNS, modes * sizeof *w.columns);
    if (!w.share || !w.columns) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the reduced mass of %d modes", c->r);
        goto done;
    }
    fem_parallel_for(MASS_PARTS, mass_task, &w);
    for (size_t part = 0; part < MASS_PARTS; part++)
        for (size_t i = 0; i < r; i++)
            for (size_t j = 0; j < r; j++) {
                const double *share = w.share + part * modes * modes;
                mass[i * r + j] += (share[i * modes + j] + share[j * modes + i]) / 2;
            }
done:
    fem_free(w.share);
    fem_free(w.columns);
    return status;
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

// Memory first: coefficients, Gram matrices of the group with most sets, one block, the basis by rows.
static fem_status check_memory(const precomputation *c, int sets, int most_sets, size_t limit) {
    double r = c->r, coefficients = (r + 1) * (r + 2) * (r + 3) * (r + 4) / 24;
    double columns = (double)c->tiles * GRAM_TILE;
    double bytes = 8 * (coefficients * (sets + 1) + most_sets * columns * (columns + GRAM_TILE) / 2 +
                        c->block.points * (MOST_ROWS * columns + 9 * r) + 3.0 * c->mesh->vertex_count * r);
    if (bytes > (double)limit)
        return fem_fail(FEM_NO_MEMORY,
                        "the force polynomial of %d modes needs %.3g GB (%d sets of coefficients), the limit is %.3g "
                        "GB: use fewer modes, \"cubature\" forces, or a higher limit",
                        c->r, bytes / (1 << 30), sets, (double)limit / (1 << 30));
    return FEM_OK;
}

// Materials that have elements become groups, in their order; elements are sorted by group.
static fem_status make_groups(precomputation *c, cubature_polynomial *p, const cubature_polynomial_options *options) {
    fem_status      status = FEM_OK;
    const fem_mesh *mesh = c->mesh;
    int             groups = 0, sets = 0, most_sets = 0;
    int            *count = fem_calloc((size_t)mesh->material_count, sizeof *count);
    c->element = fem_alloc((size_t)mesh->element_count, sizeof *c->element);
    c->start = fem_calloc((size_t)mesh->material_count + 1, sizeof *c->start);
    if (!count || !c->element || !c->start) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the material groups of %d elements", mesh->element_count);
        goto done;
    }
    for (int e = 0; e < mesh->element_count; e++) count[mesh->regions[mesh->region[e]].material]++;
    for (int m = 0; m < mesh->material_count; m++) {
        if (!count[m]) continue;
        int own = set_count_of(mesh->materials[m].kind);
        groups++, sets += own;
        if (own > most_sets) most_sets = own;
    }
    FEM_TRY(check_memory(c, sets, most_sets, options->memory_limit));
    FEM_TRY(cubature_polynomial_allocate(p, c->r, groups, sets));
    c->sets = most_sets;
    for (int m = 0, g = 0, set = 0, begin = 0; m < mesh->material_count; m++) {
        if (!count[m]) continue;
        int own = set_count_of(mesh->materials[m].kind), end = begin + count[m];
        p->groups[g] = (cubature_group){.material = mesh->materials[m], .first_set = set, .set_count = own};
        c->start[g++] = begin;
        c->start[g] = end;
        count[m] = begin; // where its next element goes
        begin = end;
        set += own;
    }
    for (int e = 0; e < mesh->element_count; e++) c->element[count[mesh->regions[mesh->region[e]].material]++] = e;
done:
    fem_free(count);
    return status;
}

// The basis by rows: modes of one degree of freedom side by side.
static void transpose_basis(precomputation *c, int n, const double *U) {
    size_t modes = (size_t)c->block.modes;
    for (int i = 0; i < n; i++)
        for (int mode = 0; mode < c->r; mode++)
            c->Ut[(size_t)i * modes + (size_t)mode] = U[(size_t)mode * (size_t)n + (size_t)i];
}

// Columns of Z: modes, then pairs (i <= j) at r + j (j + 1) / 2 + i, then nothing up to whole panels.
static fem_status make_work(precomputation *c, int n, const double *U) {
    gram_block *b = &c->block;
    size_t      columns = (size_t)b->panels * GRAM_PANEL, points = (size_t)b->points;
    c->columns = fem_alloc(columns, sizeof *c->columns);
    c->G = fem_alloc((size_t)c->sets * tile_count(c), GRAM_TILE * GRAM_TILE * sizeof *c->G);
    c->Ut = fem_calloc((size_t)n, (size_t)b->modes * sizeof *c->Ut);
    b->vertices = fem_calloc(points, 8 * sizeof *b->vertices);
    b->g = fem_calloc(points, 24 * sizeof *b->g);
    b->root = fem_alloc(points, sizeof *b->root);
    b->H = fem_alloc((size_t)b->modes * 9, points * sizeof *b->H);
    b->Z = fem_alloc(columns, points * MOST_ROWS * sizeof *b->Z);
    if (!c->columns || !c->G || !c->Ut || !b->vertices || !b->g || !b->root || !b->H || !b->Z)
        return fem_fail(FEM_NO_MEMORY, "no memory for the Gram matrices of %d modes", c->r);
    strain_column *column = c->columns;
    for (int j = 0; j < c->r; j++) *column++ = (strain_column){.low = -1, .high = j};
    for (int j = 0; j < c->r; j++)
        for (int i = 0; i <= j; i++) *column++ = (strain_column){.low = i, .high = j};
    while (column < c->columns + columns) *column++ = (strain_column){.low = -1, .high = -1};
    b->columns = c->columns;
    b->Ut = c->Ut;
    transpose_basis(c, n, U);
    return FEM_OK;
}

fem_status cubature_polynomial_create(cubature_polynomial *result, const fem_body *body, int r, const double *U,
                                      const cubature_polynomial_options *options, const fem_progress *progress) {
    fem_status          status = FEM_OK;
    const fem_mesh     *mesh = fem_body_mesh(body);
    cubature_polynomial p = {0};
    precomputation      c = {.body = body, .mesh = mesh, .r = r, .progress = progress};
    double              weight[27], g[27][24];
    FEM_TRY(check_arguments(mesh, r, U));
    c.points_per_element = fem_body_points(body, 0, weight, g);
    c.kernels = cubature_choose_kernels();
    c.block.width = fem_element_vertices(mesh->type);
    c.block.modes = (r + 7) / 8 * 8;
    c.block.column_count = r + r * (r + 1) / 2;
    c.block.panels = (c.block.column_count + GRAM_PANEL - 1) / GRAM_PANEL;
    c.block.points = block_points(c.block.panels);
    c.tiles = (c.block.panels + TILE_PANELS - 1) / TILE_PANELS;
    FEM_TRY(make_groups(&c, &p, options));
    FEM_TRY(make_work(&c, 3 * mesh->vertex_count, U));
    for (int group = 0; group < p.group_count; group++) {
        FEM_TRY(run_group(&c, &p, group));
        FEM_TRY(run_mass(&c, group, p.mass + (size_t)group * (size_t)r * (size_t)r));
    }
    cubature_polynomial_sum(&p);
    *result = p;
done:
    destroy_precomputation(&c);
    if (status != FEM_OK) cubature_polynomial_destroy(&p);
    return status;
}
