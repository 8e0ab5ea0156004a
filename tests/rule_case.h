// A body of any materials with smooth random modes, for the tests of cubature rules.
#ifndef LIMBER_TEST_RULE_CASE_H
#define LIMBER_TEST_RULE_CASE_H

#include "tests/polynomial_case.h"

// As case_create, but element i has material kinds[i % count].
static inline void rule_case_create(polynomial_case *c, fem_element type, int count, const fem_material_kind *kinds,
                                    int r, const int cells[3]) {
    fem_body_options options = fem_body_default_options();
    case_create(c, type, CASE_MIXED, 2, r, cells, 1);
    cubature_full_destroy(c->full);
    fem_body_destroy(c->body);
    fem_free(c->work);
    for (int m = 0; m < c->mesh.material_count; m++) {
        fem_material *material = &c->mesh.materials[m];
        material->kind = kinds[m % count];
        material->mu01 = 0.4, material->mu10 = 0.7 + 0.2 * m, material->v1 = 3;
        material->mu = 1, material->chain = 5 + m, material->bulk = 4;
    }
    for (int e = 0; e < c->mesh.element_count; e++) c->mesh.region[e] = e % 5 % count;
    assert_ok(fem_mesh_check(&c->mesh));
    assert_ok(fem_body_create(&c->body, &c->mesh, &options));
    assert_ok(cubature_full_create(&c->full, c->body, r, c->U));
    c->work = fem_alloc(cubature_full_forces(c->full).work, sizeof *c->work);
    assert_non_null(c->work);
}

// Every `every`-th element with a weight between 0.5 and 1.5 (1 when every is 1); caller frees the lists.
static inline int rule_case_elements(const polynomial_case *c, int every, int per_element, int **elements,
                                     double **weights) {
    int      count = 0;
    uint64_t seed = 9;
    *elements = fem_alloc((size_t)c->mesh.element_count, sizeof **elements);
    *weights = fem_alloc((size_t)c->mesh.element_count * (size_t)per_element, sizeof **weights);
    assert_true(*elements && *weights);
    for (int e = 0; e < c->mesh.element_count; e += every) {
        for (int j = 0; j < per_element; j++)
            (*weights)[count * per_element + j] = every == 1 ? 1 : 1 + 0.5 * test_random(&seed);
        (*elements)[count++] = e;
    }
    return count;
}

static inline void rule_case_rule(const polynomial_case *c, int every, bool modal, cubature_rule *rule) {
    int    *elements;
    double *weights;
    int     count = rule_case_elements(c, every, modal ? c->r : 1, &elements, &weights);
    assert_ok(cubature_rule_create(rule, c->body, c->r, c->U, count, elements, modal, weights));
    fem_free(elements), fem_free(weights);
}

#endif
