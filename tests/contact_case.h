// What the tests of contact share: a free block with its modes, samples and inertia.
#ifndef LIMBER_TEST_CONTACT_CASE_H
#define LIMBER_TEST_CONTACT_CASE_H

#include "tests/reduced_case.h"
#include "libsolver/contact_internal.h"

static const double size[3] = {0.6, 0.4, 0.3};

// A free box of T4 or H8 with its lowest modes, its samples and its inertia.
typedef struct block {
    reduced_bar    c;
    solver_inertia inertia;
    solver_samples samples;
} block;

static inline void block_create(block *b, fem_element type, int cells, int r, double young) {
    fem_material m = soft_material(FEM_STVK, young, 0.3);
    const int    counts[3] = {2 * cells, cells, cells};
    reduced_bar_create(&b->c, type, size, counts, &m, false, r);
    assert_ok(solver_inertia_create(&b->inertia, b->c.b.body, FEM_MASS_CONSISTENT, r, b->c.basis.U));
    assert_ok(solver_samples_create(&b->samples, &b->c.b.mesh, r, b->c.basis.U));
}

static inline void block_destroy(block *b) {
    solver_samples_destroy(&b->samples);
    solver_inertia_destroy(&b->inertia);
    reduced_bar_destroy(&b->c);
}

static inline solver_contact *make_contact(const solver_samples *samples, const solver_contact_options *o) {
    solver_contact *contact = NULL;
    assert_ok(solver_contact_create(&contact, samples, o));
    return contact;
}

static inline void add(solver_contact *contact, solver_obstacle obstacle) {
    assert_ok(solver_contact_add(contact, &obstacle, NULL));
}

static inline void random_rotation(uint64_t *seed, double Q[9]) {
    double angle[3];
    test_random_fill(seed, 3, 3, angle);
    solver_rotation(angle, Q);
}

static const double gravity[3] = {0, 0, -9.81};

static inline solver_obstacle floor_at(double z) {
    const double point[3] = {0, 0, z}, up[3] = {0, 0, 1};
    return solver_plane(point, up);
}

#endif
