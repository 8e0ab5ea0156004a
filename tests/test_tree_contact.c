// Contact of trees of domains, implicit, with steps of 1/60 s: rest on a plane and on a box, friction that holds, falls
// on ground from soft to hard.
#include "tests/support.h"

#include <math.h>
#include <string.h>

enum { DOMAINS = 3 };
static const double step_size = 1.0 / 60, weight_of_1kg = 9.81;

// A free bar of 3 x 0.5 x 0.5 m in three domains, its underside at z = 0.
typedef struct bar {
    fem_mesh         mesh;
    domain_tree      domains;
    solver_assembly *assembly;
    solver_tree     *tree;
    solver_contact  *contacts[DOMAINS];
} bar;

static void bar_create(bar *b, const solver_contact_options *contact, const solver_obstacle *obstacle, double height,
                       double damping) {
    const double            low[3] = {0, -0.25, 0}, high[3] = {3, 0.25, 0.5}, identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    const double            up[3] = {0, 0, height}, still[3] = {0};
    const int               cells[3] = {12, 2, 2};
    fem_material            m = fem_material_default();
    domain_options          cut = domain_default_options();
    solver_assembly_options o = solver_assembly_default_options();
    solver_tree_options     to = solver_tree_default_options();
    solver_frame_motion     start;
    *b = (bar){0};
    assert_ok(fem_generate_box(&b->mesh, FEM_H8, low, high, cells));
    m.kind = FEM_STVK, m.young = 2e6, m.poisson = 0.3, m.density = 1000;
    assert_ok(fem_mesh_set_material(&b->mesh, &m));
    cut.method = DOMAIN_GEODESIC, cut.count = DOMAINS;
    assert_ok(domain_decompose(&b->domains, &b->mesh, &cut));
    assert_int_equal(b->domains.count, DOMAINS);
    o.total = 30, o.damping_stiffness = damping;
    assert_ok(solver_assembly_create(&b->assembly, &b->mesh, &b->domains, 0, NULL, &o, NULL, NULL));
    to.time_step = step_size;
    assert_ok(solver_assembly_tree(&b->tree, b->assembly, false, &to));
    solver_assembly_place(b->assembly, identity, up, still, still, &start);
    assert_ok(solver_tree_set_root(b->tree, 0, &start));
    for (int i = 0; i < DOMAINS; i++) {
        const solver_class *c = b->assembly->classes[b->assembly->instances[i].class_index];
        solver_samples      samples;
        assert_ok(solver_samples_create(&samples, &c->mesh, c->basis.r, c->basis.U));
        assert_ok(solver_contact_create(&b->contacts[i], &samples, contact));
        assert_ok(solver_contact_add(b->contacts[i], obstacle, NULL));
        assert_ok(solver_tree_set_contact(b->tree, i, b->contacts[i]));
        solver_samples_destroy(&samples);
    }
}

static void bar_destroy(bar *b) {
    for (int i = 0; i < DOMAINS; i++) solver_contact_destroy(b->contacts[i]);
    solver_tree_destroy(b->tree);
    solver_assembly_destroy(b->assembly);
    domain_tree_destroy(&b->domains);
    fem_mesh_destroy(&b->mesh);
}

static double carried(const bar *b) {
    double force = 0;
    for (int i = 0; i < DOMAINS; i++) force -= solver_contact_get_load(b->contacts[i], 0).force[2];
    return force;
}

// At rest the ground carries the weight and nothing moves, on soft and on hard ground, on a plane and on a box that the
// bar overhangs.
static void test_rest(void **unused) {
    (void)unused;
    static const double point[3] = {0, 0, 0}, normal[3] = {0, 0, 1}, centre[3] = {1.4, 0, -0.5},
                        half[3] = {1.1, 0.4, 0.5};
    const double gravity[3] = {0, 0, -weight_of_1kg};
    for (int k = 0; k < 6; k++) {
        solver_contact_options o = solver_contact_default_options();
        solver_obstacle        ground = k < 3 ? solver_plane(point, normal) : solver_box(centre, half);
        solver_tree_energies   e;
        double                 hardness[3] = {1e6, 1e8, 1e10}, most = 0;
        bar                    b;
        o.stiffness = hardness[k % 3], o.damping = 0, o.friction = 0.5;
        bar_create(&b, &o, &ground, 0.01, SOLVER_DAMPING_BY_RATIO);
        for (int i = 0; i < DOMAINS; i++) assert_ok(solver_tree_set_damping(b.tree, i, 0, 0.1));
        solver_tree_set_gravity(b.tree, gravity);
        for (int n = 0; n < 700; n++) {
            assert_ok(solver_tree_step(b.tree));
            solver_tree_get_energies(b.tree, &e);
            if (n >= 680) most = fmax(most, e.kinetic);
        }
        double weight = e.mass * weight_of_1kg;
        printf("   %s of %.0e N/m^3, h^2 k A/m = %.1e: carries %.8f of the weight, kinetic energy %.1e J\n",
               k < 3 ? "plane" : "box", o.stiffness, step_size * step_size * o.stiffness * 1.5 / e.mass,
               carried(&b) / weight, most);
        assert_true(fabs(carried(&b) / weight - 1) < 1e-5);
        // samples at the rim of a box are pushed sideways too: there friction lets the bar creep, slower than v_s
        assert_true(most < (k < 3 ? 1e-8 : e.mass * o.slip_velocity * o.slip_velocity / 2));
        bar_destroy(&b);
    }
}

// On a slope below the angle of friction the bar creeps at the speed that regularised friction asks for,
// v_s tan(slope)/mu, without trembling.
static void test_friction(void **unused) {
    (void)unused;
    const double           slope = 10 * 3.14159265358979323846 / 180, point[3] = {0}, normal[3] = {0, 0, 1};
    const double           gravity[3] = {weight_of_1kg * sin(slope), 0, -weight_of_1kg * cos(slope)};
    solver_contact_options o = solver_contact_default_options();
    solver_obstacle        ground = solver_plane(point, normal);
    solver_tree_energies   e;
    double                 low = INFINITY, high = -INFINITY, wanted;
    bar                    b;
    o.stiffness = 1e8, o.friction = 0.5, o.slip_velocity = 1e-3;
    wanted = o.slip_velocity * tan(slope) / o.friction;
    bar_create(&b, &o, &ground, 0.002, SOLVER_DAMPING_BY_RATIO);
    for (int i = 0; i < DOMAINS; i++) assert_ok(solver_tree_set_damping(b.tree, i, 0, 0.02));
    solver_tree_set_gravity(b.tree, gravity);
    for (int n = 0; n < 600; n++) {
        assert_ok(solver_tree_step(b.tree));
        if (n < 500) continue;
        solver_tree_get_energies(b.tree, &e);
        low = fmin(low, e.momentum[0] / e.mass), high = fmax(high, e.momentum[0] / e.mass);
    }
    printf("   slope of 10 degrees, mu = 0.5: creeps at %.6f to %.6f mm/s, wanted %.6f\n", 1e3 * low, 1e3 * high,
           1e3 * wanted);
    assert_true(fabs(low / wanted - 1) < 0.01 && fabs(high / wanted - 1) < 0.01);
    bar_destroy(&b);
}

// Dropped from half a metre, undamped, it never has more energy than at the start, and it does not sink in.
static void test_falls(void **unused) {
    (void)unused;
    const double gravity[3] = {0, 0, -weight_of_1kg}, point[3] = {0}, normal[3] = {0, 0, 1};
    for (double hardness = 3e4; hardness < 1e11; hardness *= 100) {
        solver_contact_options o = solver_contact_default_options();
        solver_obstacle        ground = solver_plane(point, normal);
        solver_tree_energies   e;
        double                 start = 0, most = 0, lowest = INFINITY;
        bar                    b;
        o.stiffness = hardness, o.damping = 0, o.friction = 0.3;
        bar_create(&b, &o, &ground, 0.5, 0);
        solver_tree_set_gravity(b.tree, gravity);
        for (int n = 0; n < 300; n++) {
            double energy;
            solver_tree_get_energies(b.tree, &e);
            energy = e.kinetic + e.strain + e.potential;
            if (n == 0) start = energy;
            most = fmax(most, energy), lowest = fmin(lowest, e.centre[2]);
            assert_ok(solver_tree_step(b.tree));
        }
        printf("   ground of %.0e N/m^3: energy at most %.5f of %.1f J, at the end %.3f; centre down to %.3f m\n",
               hardness, most / start, start, (e.kinetic + e.strain + e.potential) / start, lowest);
        assert_true(most < 1.001 * start);
        assert_true(hardness < 1e6 || lowest > 0.15);
        bar_destroy(&b);
    }
}

// Every allocation of solver_tree_set_contact may fail: the domain then has the contact that it had, and the bar falls
// and rests as one for which none failed. A step allocates nothing.
static void test_memory(void **unused) {
    (void)unused;
    solver_contact_options o = solver_contact_default_options();
    const double           gravity[3] = {0, 0, -weight_of_1kg}, point[3] = {0}, normal[3] = {0, 0, 1};
    solver_obstacle        plane = solver_plane(point, normal);
    bar                    all[2];
    double                 x[2][3];
    long                   allowed = 0;
    for (int k = 0; k < 2; k++) {
        bar_create(&all[k], &o, &plane, 0.01, 0.002);
        solver_tree_set_gravity(all[k].tree, gravity);
    }
    assert_ok(solver_tree_set_contact(all[1].tree, 0, NULL)); // from none, then from one
    for (int turn = 0; turn < 2; turn++) {
        allowed = 0;
        for (fem_status status = FEM_NO_MEMORY; status != FEM_OK; allowed++) {
            assert_true(allowed < 20);
            fem_memory_fail_after(allowed);
            status = solver_tree_set_contact(all[1].tree, 0, all[1].contacts[0]);
            fem_memory_fail_after(-1);
            if (status != FEM_OK) assert_int_equal(status, FEM_NO_MEMORY);
        }
        assert_true(allowed > 5);
    }
    for (int k = 0; k < 2; k++) {
        int corner;
        assert_ok(solver_assembly_point(all[k].assembly, all[k].tree, 0, &corner));
        fem_memory_fail_after(0);
        for (int step = 0; step < 60; step++) assert_ok(solver_tree_step(all[k].tree));
        fem_memory_fail_after(-1);
        solver_tree_point(all[k].tree, corner, x[k], NULL);
    }
    assert_true(carried(&all[0]) > 0);
    assert_memory_equal(x[0], x[1], sizeof x[0]);
    for (int k = 0; k < 2; k++) bar_destroy(&all[k]);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rest), cmocka_unit_test(test_friction),
                                       cmocka_unit_test(test_falls), cmocka_unit_test(test_memory)};
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
