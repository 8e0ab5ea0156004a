// Cubature rules: making one from elements and weights, and its evaluation through the kernels.
#include "libcubature/points.h"

#include <math.h>
#include <string.h>

// ---- life ----------------------------------------------------------------------------------------------------------

void cubature_rule_destroy(cubature_rule *rule) {
    fem_free(rule->elements);
    fem_free(rule->weights);
    fem_free(rule->B);
    fem_free(rule->C);
    fem_free(rule->scale);
    fem_free(rule->material);
    fem_free(rule->constants);
    *rule = (cubature_rule){0};
}

static fem_status check_rule(const fem_body *body, int r, int count, const int *elements, bool modal,
                             const double *weights) {
    const fem_mesh *mesh = fem_body_mesh(body);
    if (r < 1 || r > CUBATURE_MOST_MODES)
        return fem_fail(FEM_BAD_INPUT, "cubature: %d modes, expected 1 to %d", r, CUBATURE_MOST_MODES);
    if (count < 1 || count > mesh->element_count)
        return fem_fail(FEM_BAD_INPUT, "cubature: a rule of %d elements for a body of %d", count, mesh->element_count);
    for (int i = 0; i < count; i++) {
        if (elements[i] < 0 || elements[i] >= mesh->element_count || (i > 0 && elements[i] <= elements[i - 1]))
            return fem_fail(FEM_BAD_INPUT, "cubature: element %d of the rule is %d, expected ascending below %d", i,
                            elements[i], mesh->element_count);
        for (int j = 0; j < (modal ? r : 1); j++) {
            double w = weights[(size_t)i * (size_t)(modal ? r : 1) + (size_t)j];
            if (!(w >= 0) || !isfinite(w))
                return fem_fail(FEM_BAD_INPUT, "cubature: the weight of element %d is %g, expected >= 0", elements[i],
                                w);
        }
    }
    return FEM_OK;
}

// Gives the points their weights: in `scale`, or in C, a weighted copy of B.
static fem_status weigh(cubature_rule *rule, const point_set *set) {
    size_t points = 8 * (size_t)rule->groups, rows = 9 * points, r = (size_t)rule->r;
    rule->scale = fem_copy(set->volume, points, sizeof *rule->scale);
    rule->C = rule->modal ? fem_alloc(rows * r, sizeof *rule->C) : NULL;
    if (!rule->scale || (rule->modal && !rule->C))
        return fem_fail(FEM_NO_MEMORY, "no memory for the weights of a rule of %d elements", rule->count);
    for (size_t p = 0; p < points; p++) {
        size_t element = set->element[p] < 0 ? 0 : (size_t)set->element[p], place = 72 * (p / 8) + p % 8;
        if (!rule->modal) rule->scale[p] *= rule->weights[element];
        for (size_t l = 0; rule->modal && l < r; l++)
            for (size_t c = 0; c < 9; c++)
                rule->C[l * rows + place + 8 * c] = rule->B[l * rows + place + 8 * c] * rule->weights[element * r + l];
    }
    return FEM_OK;
}

// The elements by material, so that groups are full; order[i] is the place in the rule of the i-th.
static void sort_by_material(const fem_mesh *mesh, const cubature_rule *rule, int *sorted, int *order) {
    int at = 0;
    for (int m = 0; m < mesh->material_count; m++)
        for (int i = 0; i < rule->count; i++)
            if (mesh->regions[mesh->region[rule->elements[i]]].material == m)
                sorted[at] = rule->elements[i], order[at++] = i;
}

// The rows of the elements' vertices, one element after the other; allocated.
static double *gather_rows(const fem_mesh *mesh, int r, const double *U, int count, const int *elements) {
    size_t  n = 3 * (size_t)mesh->vertex_count, stride = basis_stride(r), modes = (size_t)r;
    size_t  width = (size_t)fem_element_vertices(mesh->type);
    double *rows = fem_calloc((size_t)count * width, 3 * stride * sizeof *rows), *out = rows;
    for (size_t i = 0; rows && i < (size_t)count * width; i++) {
        size_t vertex = (size_t)mesh->elements[(size_t)elements[i / width] * width + i % width];
        for (size_t k = 0; k < 3; k++, out += stride)
            for (size_t l = 0; l < modes; l++) out[l] = U[l * n + 3 * vertex + k];
    }
    return rows;
}

fem_status cubature_rule_create(cubature_rule *result, const fem_body *body, int r, const double *U, int count,
                                const int *elements, bool modal, const double *weights) {
    const fem_mesh *mesh = fem_body_mesh(body);
    fem_status      status = check_rule(body, r, count, elements, modal, weights);
    cubature_rule   rule = {.r = r, .count = count, .modal = modal, .material_count = mesh->material_count};
    point_set       set = {0};
    double         *rows = NULL;
    int            *sorted = NULL, *order = NULL;
    if (status != FEM_OK) return status;
    rule.elements = fem_copy(elements, (size_t)count, sizeof *elements);
    rule.weights = fem_copy(weights, (size_t)count * (size_t)(modal ? r : 1), sizeof *weights);
    rule.constants = fem_alloc((size_t)mesh->material_count, sizeof *rule.constants);
    sorted = fem_alloc((size_t)count, sizeof *sorted);
    order = fem_alloc((size_t)count, sizeof *order);
    if (!rule.elements || !rule.weights || !rule.constants || !sorted || !order) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a rule of %d elements", count);
        goto done;
    }
    for (int m = 0; m < mesh->material_count; m++) fem_material_prepare(&rule.constants[m], &mesh->materials[m]);
    sort_by_material(mesh, &rule, sorted, order);
    rule.groups = point_groups(body, count, sorted);
    rows = gather_rows(mesh, r, U, count, sorted);
    if (!rows) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the modes at %d elements", count);
        goto done;
    }
    FEM_TRY(point_set_create(&set, r, rule.groups, true));
    point_set_fill(&set, body, (basis_rows){.values = rows, .stride = basis_stride(r), .own = true}, count, sorted);
    for (int p = 0; p < 8 * rule.groups; p++)
        if (set.element[p] >= 0) set.element[p] = order[set.element[p]];
    rule.B = set.B, rule.material = set.material;
    set.B = NULL, set.material = NULL;
    FEM_TRY(weigh(&rule, &set));
done:
    fem_free(rows);
    fem_free(sorted);
    fem_free(order);
    point_set_destroy(&set);
    if (status == FEM_OK)
        *result = rule;
    else
        cubature_rule_destroy(&rule);
    return status;
}

// ---- evaluation ----------------------------------------------------------------------------------------------------

// Work of f along the straight way from 0 to q, by Gauss's rule with four points: exact to degree 7 of q.
static const double gauss_place[4] = {0.069431844202973712, 0.33000947820757187, 0.66999052179242813,
                                      0.93056815579702629};
static const double gauss_weight[4] = {0.17392742256872693, 0.32607257743127307, 0.32607257743127307,
                                       0.17392742256872693};

static double path_work(const cubature_rule *rule, const cubature_kernels *kernels, const double *q, double *work) {
    double *part = work, *f = work + rule->r, sum = 0;
    for (int k = 0; k < 4; k++) {
        for (int l = 0; l < rule->r; l++) part[l] = gauss_place[k] * q[l];
        kernels->rule_force(rule, part, NULL, f, NULL, f + rule->r);
        sum += gauss_weight[k] * dense_dot(rule->r, q, f);
    }
    return sum;
}

// The upper triangle by blocks of columns, so that a good part of the lower one is not computed, then mirrored.
static void symmetric_product(const cubature_rule *rule, const double *T, double *K) {
    int r = rule->r, rows = 72 * rule->groups, width = 12;
    for (int first = 0; first < r; first += width) {
        int columns = r - first < width ? r - first : width;
        dense_gemm_part(true, false, first + columns, columns, rows, 1, rule->B, rows, T + (size_t)first * (size_t)rows,
                        rows, 0, K + (size_t)first * (size_t)r, r);
    }
    for (int j = 0; j < r; j++)
        for (int i = 0; i < j; i++) K[i * r + j] = K[j * r + i];
}

static void evaluate_rule(const void *model, const double *q, double *energy, double *f, double *K, double *work) {
    const cubature_rule *rule = model;
    cubature_kernels     kernels = cubature_choose_kernels();
    int                  r = rule->r, rows = 72 * rule->groups;
    double              *T = K ? work + 10 * (size_t)r : NULL;
    kernels.rule_force(rule, q, rule->modal ? NULL : energy, f, T, work);
    if (K && !rule->modal) symmetric_product(rule, T, K);
    if (K && rule->modal) {
        dense_gemm(true, false, r, r, rows, 1, rule->C, T, 0, K);
        for (int j = 0; j < r; j++)
            for (int i = 0; i < j; i++) K[j * r + i] = K[i * r + j] = (K[j * r + i] + K[i * r + j]) / 2;
    }
    if (energy && rule->modal) *energy = path_work(rule, &kernels, q, work);
}

static void product_of_rule(const void *model, const double *q, const double *p, double *Kp, double *work) {
    cubature_choose_kernels().rule_product(model, q, p, Kp, work);
}

cubature_forces cubature_rule_forces(const cubature_rule *rule) {
    size_t r = (size_t)rule->r;
    return (cubature_forces){.r = rule->r,
                             .work = 10 * r + 72 * (size_t)rule->groups * r,
                             .evaluate = evaluate_rule,
                             .model = rule,
                             .product = product_of_rule,
                             .nonconservative = rule->modal};
}

// ---- the plain reference -------------------------------------------------------------------------------------------

static double weight_of(const cubature_rule *rule, size_t place, size_t l) {
    size_t rows = 72 * (size_t)rule->groups;
    return rule->C ? rule->C[l * rows + place] : rule->B[l * rows + place];
}

static void plain_point(const cubature_rule *rule, size_t point, const double *q, double *energy, double *f,
                        double *K) {
    size_t rows = 72 * (size_t)rule->groups, place = 72 * (point / 8) + point % 8, r = (size_t)rule->r;
    double F[9], W, P[9], D[81], scale = rule->scale[point];
    for (size_t c = 0; c < 9; c++) {
        F[c] = c % 4 == 0;
        for (size_t l = 0; l < r; l++) F[c] += rule->B[l * rows + place + 8 * c] * q[l];
    }
    fem_material_evaluate(&rule->constants[rule->material[point / 8]], F, &W, P, D);
    if (energy) *energy += scale * W;
    for (size_t a = 0; a < r; a++)
        for (size_t c = 0; c < 9; c++) {
            double b = scale * weight_of(rule, place + 8 * c, a);
            if (f) f[a] += b * P[c];
            for (size_t l = 0; K && l < r; l++)
                for (size_t d = 0; d < 9; d++) K[l * r + a] += b * D[9 * c + d] * rule->B[l * rows + place + 8 * d];
        }
}

void cubature_rule_plain(const cubature_rule *rule, const double *q, double *energy, double *f, double *K) {
    size_t r = (size_t)rule->r;
    if (f) memset(f, 0, r * sizeof *f);
    if (K) memset(K, 0, r * r * sizeof *K);
    if (energy) *energy = 0;
    for (size_t point = 0; point < 8 * (size_t)rule->groups; point++)
        plain_point(rule, point, q, rule->modal ? NULL : energy, f, K);
    for (int k = 0; energy && rule->modal && k < 4; k++) {
        double part[CUBATURE_MOST_MODES], force[CUBATURE_MOST_MODES];
        for (size_t l = 0; l < r; l++) part[l] = gauss_place[k] * q[l];
        cubature_rule_plain(rule, part, NULL, force, NULL);
        *energy += gauss_weight[k] * dense_dot(rule->r, q, force);
    }
}

// ---- batches -------------------------------------------------------------------------------------------------------

fem_status cubature_batch_create_rule(cubature_batch **result, const cubature_rule *rule) {
    cubature_batch *batch = fem_calloc(1, sizeof *batch);
    if (!batch) return fem_fail(FEM_NO_MEMORY, "no memory for a batch");
    batch->rule = rule;
    batch->r = rule->r;
    batch->pair_count = cubature_pairs(rule->r);
    batch->kernels = cubature_choose_kernels();
    *result = batch;
    return FEM_OK;
}

static void scale_lanes(int rows, const double *factor, double *x) {
    for (int i = 0; i < rows; i++)
        for (int lane = 0; lane < CUBATURE_LANES; lane++) x[i * CUBATURE_LANES + lane] *= factor[lane];
}

// As path_work, of eight instances.
static void path_work_block(const cubature_batch *batch, const double *q, double *energy, double *work) {
    int     size = batch->r * CUBATURE_LANES;
    double *part = work, *f = work + size;
    for (int lane = 0; lane < CUBATURE_LANES; lane++) energy[lane] = 0;
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < size; i++) part[i] = gauss_place[k] * q[i];
        batch->kernels.rule_block(batch->rule, part, NULL, f, NULL, f + size);
        for (int i = 0; i < size; i++) energy[i % CUBATURE_LANES] += gauss_weight[k] * q[i] * f[i];
    }
}

size_t rule_batch_work(const cubature_batch *batch) { return (90 + 2 * CUBATURE_LANES) * (size_t)batch->r; }

void rule_batch_evaluate(const cubature_batch *batch, int blocks, const double *q, const double *factor, double *energy,
                         double *f, double *K, double *work) {
    const cubature_rule *rule = batch->rule;
    size_t               size = (size_t)batch->r * CUBATURE_LANES, pairs = (size_t)batch->pair_count * CUBATURE_LANES;
    for (size_t b = 0; b < (size_t)blocks; b++) {
        double *own_energy = energy ? energy + b * CUBATURE_LANES : NULL;
        double *own_f = f ? f + b * size : NULL, *own_K = K ? K + b * pairs : NULL;
        batch->kernels.rule_block(rule, q + b * size, rule->modal ? NULL : own_energy, own_f, own_K, work);
        if (energy && rule->modal) path_work_block(batch, q + b * size, own_energy, work);
        if (!factor) continue;
        if (energy) scale_lanes(1, factor + b * CUBATURE_LANES, own_energy);
        if (f) scale_lanes(batch->r, factor + b * CUBATURE_LANES, own_f);
        if (K) scale_lanes(batch->pair_count, factor + b * CUBATURE_LANES, own_K);
    }
}
