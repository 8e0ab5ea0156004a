// The polynomial as data: life, weights of the material constants, sums, truncation, and the textbook evaluation.
#include "libcubature/internal.h"

#include <string.h>

cubature_polynomial_options cubature_polynomial_default_options(void) {
    return (cubature_polynomial_options){.memory_limit = (size_t)2 << 30};
}

void cubature_polynomial_destroy(cubature_polynomial *p) {
    fem_free(p->groups);
    fem_free(p->sets);
    fem_free(p->mass);
    fem_free(p->coefficients);
    *p = (cubature_polynomial){0};
}

fem_status cubature_polynomial_allocate(cubature_polynomial *result, int r, int group_count, int set_count) {
    if (r < 1 || r > CUBATURE_MOST_MODES)
        return fem_fail(FEM_BAD_INPUT, "the polynomial of %d modes: expected 1 to %d modes", r, CUBATURE_MOST_MODES);
    if (group_count < 1 || set_count < 1)
        return fem_fail(FEM_BAD_INPUT, "a polynomial of %d material groups with %d sets of coefficients: expected > 0",
                        group_count, set_count);
    cubature_polynomial p = {
        .r = r, .count = cubature_polynomial_count(r), .group_count = group_count, .set_count = set_count};
    p.groups = fem_calloc((size_t)group_count, sizeof *p.groups);
    p.sets = fem_calloc(p.count, (size_t)set_count * sizeof *p.sets);
    p.mass = fem_calloc((size_t)r * (size_t)r * (size_t)group_count, sizeof *p.mass);
    p.coefficients = fem_calloc(p.count + CUBATURE_PADDING, sizeof *p.coefficients);
    if (!p.groups || !p.sets || !p.mass || !p.coefficients) {
        cubature_polynomial_destroy(&p);
        return fem_fail(FEM_NO_MEMORY, "no memory for the polynomial of %d modes: %d sets of %.3g MB", r, set_count,
                        1e-6 * 8 * (double)cubature_polynomial_count(r));
    }
    *result = p;
    return FEM_OK;
}

// ---- material constants --------------------------------------------------------------------------------------------

// Weights of a group's sets. Orthotropic: with C in material axes,
//   2 W = C11 e1^2 + ... + 2 C12 e1 e2 + ... + C44 g12^2 + ...  and  2 e1 e2 = (e1 + e2)^2 - e1^2 - e2^2
static void set_weights(const fem_material *material, double *weights) {
    fem_material_constants c;
    fem_material           local = *material;
    mat3_identity(local.frame); // constants in material axes
    fem_material_prepare(&c, &local);
    if (material->kind == FEM_STVK) {
        weights[0] = c.lambda / 2;
        weights[1] = c.mu;
        return;
    }
    const double cross[3] = {c.C[1], c.C[8], c.C[2]}; // C12 C23 C31
    for (int i = 0; i < 3; i++) {
        weights[i] = (c.C[7 * i] - cross[i] - cross[(i + 2) % 3]) / 2;
        weights[3 + i] = c.C[7 * (3 + i)] / 2;
        weights[6 + i] = cross[i] / 2;
    }
}

void cubature_polynomial_sum(cubature_polynomial *p) {
    memset(p->coefficients, 0, (p->count + CUBATURE_PADDING) * sizeof *p->coefficients);
    for (int g = 0; g < p->group_count; g++) {
        double weights[9];
        set_weights(&p->groups[g].material, weights);
        for (int s = 0; s < p->groups[g].set_count; s++) {
            const double *set = p->sets + (size_t)(p->groups[g].first_set + s) * p->count;
            for (size_t i = 0; i < p->count; i++) p->coefficients[i] += weights[s] * set[i];
        }
    }
}

fem_status cubature_polynomial_set_material(cubature_polynomial *p, int group, const fem_material *material) {
    fem_status status = FEM_OK;
    if (group < 0 || group >= p->group_count)
        return fem_fail(FEM_BAD_INPUT, "material group %d: expected 0 to %d", group, p->group_count - 1);
    const fem_material *old = &p->groups[group].material;
    FEM_TRY(fem_material_check(material));
    if (material->kind != old->kind)
        return fem_fail(FEM_BAD_INPUT,
                        "material \"%s\" is %s, the group's is %s: constants can change at run time, the kind of "
                        "material cannot; precompute again",
                        material->name, fem_material_kind_name(material->kind), fem_material_kind_name(old->kind));
    if (material->kind == FEM_ORTHOTROPIC && memcmp(material->frame, old->frame, sizeof old->frame) != 0)
        return fem_fail(FEM_BAD_INPUT,
                        "material \"%s\" has other axes than the group: they cannot change at run time; precompute "
                        "again",
                        material->name);
    p->groups[group].material = *material;
    cubature_polynomial_sum(p);
done:
    return status;
}

void cubature_polynomial_mass(const cubature_polynomial *p, double *M) {
    size_t size = (size_t)p->r * (size_t)p->r;
    memset(M, 0, size * sizeof *M);
    for (int g = 0; g < p->group_count; g++)
        for (size_t i = 0; i < size; i++) M[i] += p->groups[g].material.density * p->mass[(size_t)g * size + i];
}

fem_status cubature_polynomial_truncate(cubature_polynomial *result, const cubature_polynomial *p, int modes) {
    fem_status          status = FEM_OK;
    cubature_polynomial t = {0};
    if (modes < 1 || modes > p->r)
        return fem_fail(FEM_BAD_INPUT, "%d modes of a polynomial of %d: expected 1 to %d", modes, p->r, p->r);
    FEM_TRY(cubature_polynomial_allocate(&t, modes, p->group_count, p->set_count));
    memcpy(t.groups, p->groups, (size_t)p->group_count * sizeof *t.groups);
    for (int s = 0; s < p->set_count; s++)
        memcpy(t.sets + (size_t)s * t.count, p->sets + (size_t)s * p->count, t.count * sizeof *t.sets);
    size_t small = (size_t)modes, large = (size_t)p->r;
    for (size_t g = 0; g < (size_t)p->group_count; g++)
        for (size_t j = 0; j < small; j++)
            memcpy(t.mass + (g * small + j) * small, p->mass + (g * large + j) * large, small * sizeof *t.mass);
    memcpy(t.coefficients, p->coefficients, t.count * sizeof *t.coefficients);
    *result = t;
done:
    return status;
}

// ---- textbook evaluation -------------------------------------------------------------------------------------------

// Every monomial c x1 x2 x3 x4 by itself, x the factors with q_-1 = 1: the derivative by two of its four places is c
// times the other two. Both orders of the two places are added, so that squares get their factor 2.
void cubature_polynomial_plain(const cubature_polynomial *p, const double *q, double *energy, double *f, double *K) {
    int r = p->r;
    if (energy) *energy = 0;
    if (f) memset(f, 0, (size_t)r * sizeof *f);
    if (K) memset(K, 0, (size_t)r * (size_t)r * sizeof *K);
    const double *c = p->coefficients;
    for (int l = 0; l < r; l++)
        for (int k = 0; k <= l; k++)
            for (int j = -1; j <= k; j++)
                for (int i = -1; i <= j; i++, c++) {
                    int    place[4] = {i, j, k, l};
                    double x[4] = {i < 0 ? 1 : q[i], j < 0 ? 1 : q[j], q[k], q[l]};
                    if (energy) *energy += *c * x[0] * x[1] * x[2] * x[3];
                    for (int a = 0; a < 4; a++) {
                        if (place[a] < 0) continue;
                        if (f) f[place[a]] += *c * x[(a + 1) % 4] * x[(a + 2) % 4] * x[(a + 3) % 4];
                        for (int b = 0; K && b < 4; b++)
                            if (b != a && place[b] >= 0) {
                                double rest = 1;
                                for (int d = 0; d < 4; d++)
                                    if (d != a && d != b) rest *= x[d];
                                K[place[a] + place[b] * r] += *c * rest;
                            }
                    }
                }
}
