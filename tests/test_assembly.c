// A decomposed mesh as a tree: mass, frequencies, sag and closed loops against the full finite elements.
#include "tests/support.h"
#include "libsolver/tree_internal.h"

#include <math.h>
#include <string.h>

enum { COUNT = 8 };

typedef struct sample {
    fem_mesh       mesh;
    const fem_set *fixed;
    domain_tree    domains;
} sample;

static void sample_destroy(sample *s) {
    domain_tree_destroy(&s->domains);
    fem_mesh_destroy(&s->mesh);
}

static void set_material(fem_mesh *mesh, fem_material_kind kind) {
    fem_material m = fem_material_default();
    m.kind = kind, m.young = 2e6, m.poisson = 0.3, m.density = 1000;
    assert_ok(fem_mesh_set_material(mesh, &m));
}

static void cut(sample *s, domain_method method, int count, domain_loops loops, domain_feet feet) {
    domain_options o = domain_default_options();
    o.method = method, o.count = count, o.loops = loops, o.feet = feet;
    o.fixed_count = s->fixed ? s->fixed->count : 0;
    o.fixed = s->fixed ? s->fixed->items : NULL;
    assert_ok(domain_decompose(&s->domains, &s->mesh, &o));
}

// A bar of 48 x 2 x 2 cells along x, held at x = 0 or free, cut across.
static void make_chain(sample *s, int count, bool held) {
    const double low[3] = {0, -0.25, -0.25}, high[3] = {12, 0.25, 0.25};
    const int    cells[3] = {48, 2, 2};
    *s = (sample){0};
    assert_ok(fem_generate_box(&s->mesh, FEM_T4, low, high, cells));
    set_material(&s->mesh, FEM_STVK);
    s->fixed = held ? fem_mesh_vertex_set(&s->mesh, "x0") : NULL;
    cut(s, DOMAIN_GEODESIC, count, DOMAIN_LOOPS_DEFAULT, DOMAIN_FEET_MERGE);
    assert_int_equal(s->domains.count, count);
}

// A stem with two branches at different heights: five domains, two of them on the same parent.
static void make_plant(sample *s) {
    const fem_piece pieces[] = {
        {.name = "foot", .shape = FEM_BOX, .a = {-0.1, -0.1, 0}, .b = {0.1, 0.1, 1}},
        {.name = "middle", .shape = FEM_BOX, .a = {-0.1, -0.1, 1}, .b = {0.1, 0.1, 2}},
        {.name = "top", .shape = FEM_BOX, .a = {-0.1, -0.1, 2}, .b = {0.1, 0.1, 2.8}},
        {.name = "left", .shape = FEM_BOX, .a = {-1, -0.1, 1.4}, .b = {-0.1, 0.1, 1.6}},
        {.name = "right", .shape = FEM_BOX, .a = {0.1, -0.1, 1.7}, .b = {0.9, 0.1, 1.9}},
    };
    *s = (sample){0};
    assert_ok(fem_generate_pieces(&s->mesh, FEM_H8, 5, pieces, 0.1));
    set_material(&s->mesh, FEM_STVK);
    s->fixed = fem_mesh_vertex_set(&s->mesh, "z0");
    cut(s, DOMAIN_REGIONS, 0, DOMAIN_LOOPS_DEFAULT, DOMAIN_FEET_MERGE);
    assert_int_equal(s->domains.count, 5);
    assert_int_equal(s->domains.report.depth, 2);
}

static solver_assembly *assemble(const sample *s, const solver_assembly_options *o) {
    solver_assembly *a = NULL;
    assert_ok(solver_assembly_create(&a, &s->mesh, &s->domains, s->fixed ? s->fixed->count : 0,
                                     s->fixed ? s->fixed->items : NULL, o, NULL, NULL));
    return a;
}

static solver_tree *make_tree(const solver_assembly *a) {
    solver_tree_options o = solver_tree_default_options();
    solver_tree        *tree = NULL;
    o.time_step = 0.05;
    assert_ok(solver_assembly_tree(&tree, a, false, &o));
    return tree;
}

// ---- full finite elements ------------------------------------------------------------------------------------------

static unsigned char *fixed_dofs(const sample *s) {
    unsigned char *fixed = fem_calloc(3 * (size_t)s->mesh.vertex_count, 1);
    for (int i = 0; s->fixed && i < s->fixed->count; i++) memset(fixed + 3 * (size_t)s->fixed->items[i], 1, 3);
    return fixed;
}

static void full_frequencies(const sample *s, int count, double *omega) {
    fem_body_options      body_options = fem_body_default_options();
    modes_lanczos_options o = modes_lanczos_default_options();
    modes_basis           basis = {0};
    fem_body             *body = NULL;
    fem_sparse            K = {0}, M = {0};
    unsigned char        *fixed = fixed_dofs(s);
    double               *zero = fem_calloc(3 * (size_t)s->mesh.vertex_count, sizeof *zero);
    assert_ok(fem_body_create(&body, &s->mesh, &body_options));
    assert_ok(fem_body_matrix(body, &K));
    assert_ok(fem_body_matrix(body, &M));
    fem_body_evaluate(body, zero, NULL, NULL, &K);
    fem_body_mass(body, FEM_MASS_CONSISTENT, &M);
    modes_problem problem = {.mesh = &s->mesh, .K = &K, .M = &M, .fixed = s->fixed ? fixed : NULL};
    o.count = count;
    assert_ok(modes_lanczos(&problem, &o, NULL, &basis, NULL));
    for (int k = 0; k < count; k++) omega[k] = sqrt(basis.omega2[k]);
    modes_basis_destroy(&basis);
    fem_sparse_destroy(&K);
    fem_sparse_destroy(&M);
    fem_body_destroy(body);
    fem_free(zero);
    fem_free(fixed);
}

// Displacements under gravity at rest, nonlinear.
static double *full_sag(const sample *s, const double gravity[3]) {
    fem_body_options body_options = fem_body_default_options();
    solver_options   o = solver_default_options();
    fem_body        *body = NULL;
    solver_full     *solver = NULL;
    size_t           n = 3 * (size_t)s->mesh.vertex_count;
    unsigned char   *fixed = fixed_dofs(s);
    double          *force = fem_calloc(n, sizeof *force);
    assert_ok(fem_body_create(&body, &s->mesh, &body_options));
    assert_ok(solver_add_gravity(body, gravity, force));
    o.load_steps = 4;
    assert_ok(solver_full_create(&solver, body, fixed, &o));
    solver_full_set_load(solver, force);
    assert_ok(solver_full_static(solver, NULL));
    memcpy(force, solver_full_state(solver)->u, n * sizeof *force);
    solver_full_destroy(solver);
    fem_body_destroy(body);
    fem_free(fixed);
    return force;
}

static double size_of(int n, const double *u) {
    double largest = 0;
    for (int i = 0; i < n; i += 3) largest = fmax(largest, vec3_norm(u + i));
    return largest;
}

static double difference(int n, const double *u, const double *v) {
    double largest = 0;
    for (int i = 0; i < n; i += 3) largest = fmax(largest, vec3_distance(u + i, v + i));
    return largest;
}

// ---- the tests -----------------------------------------------------------------------------------------------------

// Modes are shared out by the logarithm of the elements, none is lost, and the limits are kept.
static void test_shares(void **unused) {
    (void)unused;
    const int  elements[4] = {100, 10000, 100, 1000000}, most[4] = {100, 100, 3, 100};
    const bool take[4] = {true, true, true, true};
    int        out[4];
    solver_share_modes(140, 4, elements, most, take, out);
    printf("   140 modes for 100, 10,000, 100 (3 at most) and 1,000,000 elements: %d %d %d %d\n", out[0], out[1],
           out[2], out[3]);
    assert_int_equal(out[0] + out[1] + out[2] + out[3], 140);
    assert_int_equal(out[2], 3);
    assert_true(fabs((double)out[1] / out[0] - 2) < 0.1 && fabs((double)out[3] / out[0] - 3) < 0.15);
    solver_share_modes(2, 4, elements, most, take, out); // too few: one each
    for (int i = 0; i < 4; i++) assert_int_equal(out[i], 1);
    solver_share_modes(1000, 4, elements, most, take, out); // too many: all there are
    assert_int_equal(out[0] + out[1] + out[2] + out[3], 303);
}

// Nothing moves at rest; mass, centre and weight are those of the mesh; every vertex of an element has its owner.
static void test_rest(void **unused) {
    (void)unused;
    sample                  s;
    solver_assembly_options o = solver_assembly_default_options();
    fem_body_options        body_options = fem_body_default_options();
    fem_body               *body = NULL;
    solver_tree_energies    e;
    make_plant(&s);
    o.total = 60;
    solver_assembly *a = assemble(&s, &o);
    solver_tree     *tree = make_tree(a);
    int              n = 3 * s.mesh.vertex_count;
    double          *u = fem_alloc((size_t)n, sizeof *u), centre[3] = {0};
    assert_int_equal(a->modes, 60);
    assert_int_equal(solver_tree_free(tree), 60);
    assert_int_equal(solver_tree_dofs(tree), 60 + a->carried);
    assert_true(a->carried > 0);
    assert_ok(fem_body_create(&body, &s.mesh, &body_options));
    double *masses = fem_alloc((size_t)s.mesh.vertex_count, sizeof *masses), mass = fem_body_total_mass(body);
    fem_body_vertex_masses(body, masses);
    for (int v = 0; v < s.mesh.vertex_count; v++) vec3_axpy(centre, masses[v] / mass, s.mesh.vertices + 3 * (size_t)v);
    solver_tree_get_energies(tree, &e);
    solver_assembly_show(a, tree, u, NULL);
    printf("   mass %.3f kg, off by %.1e; centre off by %.1e m; largest displacement at rest %.1e m\n", e.mass,
           fabs(e.mass / mass - 1), vec3_distance(e.centre, centre), size_of(n, u));
    assert_true(fabs(e.mass / mass - 1) < 1e-12 && fabs(a->mass / mass - 1) < 1e-12);
    assert_true(vec3_distance(e.centre, centre) < 1e-12 && vec3_distance(a->centre, centre) < 1e-12);
    assert_true(size_of(n, u) < 1e-13);
    for (int v = 0; v < s.mesh.vertex_count; v++) {
        assert_int_equal(a->owner[v], s.domains.vertex_owner[v]);
        assert_int_equal(a->local[a->owner[v]][a->vertex[v]], v);
    }
    fem_free(masses);
    fem_free(u);
    fem_body_destroy(body);
    solver_tree_destroy(tree);
    solver_assembly_destroy(a);
    sample_destroy(&s);
}

static double worst_ratio(const char *what, const sample *s, const solver_assembly_options *o, const double *truth) {
    double           omega[COUNT], worst = 0;
    solver_assembly *a = assemble(s, o);
    solver_tree     *tree = make_tree(a);
    assert_ok(solver_tree_frequencies(tree, COUNT, omega, NULL));
    printf("   %s, %d modes, %d carried, over full FEM:", what, solver_tree_free(tree), a->carried);
    for (int k = 0; k < COUNT; k++) {
        printf(" %.4f", omega[k] / truth[k]);
        worst = fmax(worst, fabs(omega[k] / truth[k] - 1));
    }
    printf("\n");
    solver_tree_destroy(tree);
    solver_assembly_destroy(a);
    return worst;
}

// Eight frequencies of the coupled model, free and held.
static void test_frequencies(void **unused) {
    (void)unused;
    solver_assembly_options o = solver_assembly_default_options();
    for (int which = 0; which < 3; which++) {
        sample s;
        double truth[COUNT];
        if (which < 2)
            make_chain(&s, 3, which == 0);
        else
            make_plant(&s);
        full_frequencies(&s, COUNT, truth);
        const char *names[] = {"chain", "free chain", "plant"};
        o.total = 20 * s.domains.count;
        o.class.forces = SOLVER_FORCES_POLYNOMIAL;
        double nonlinear = worst_ratio(names[which], &s, &o, truth);
        o.class.forces = SOLVER_FORCES_LINEAR;
        double linear = worst_ratio(names[which], &s, &o, truth);
        assert_true(nonlinear < 0.002 && linear < 0.001);
        // rigid interfaces, braced by collars
        o.carried = o.whole_modes = 0;
        o.class.forces = SOLVER_FORCES_POLYNOMIAL;
        nonlinear = worst_ratio("rigid interfaces", &s, &o, truth);
        o.class.forces = SOLVER_FORCES_LINEAR;
        linear = worst_ratio("rigid interfaces", &s, &o, truth);
        o.class.wrenches = false;
        double plain = worst_ratio("without wrenches", &s, &o, truth);
        o = solver_assembly_default_options();
        assert_true(nonlinear < 0.012 && linear < 0.006);
        assert_true(plain > linear);
        sample_destroy(&s);
    }
}

// ---- bodies that are hard to cut -----------------------------------------------------------------------------------

static double with_defaults(const char *what, const sample *s, int modes) {
    double                  truth[COUNT];
    solver_assembly_options o = solver_assembly_default_options();
    full_frequencies(s, COUNT, truth);
    if (modes > 0) {
        o.class.modes = modes;
    } else { // as scenes have it
        o.total = 20 * s->domains.count;
        o.class.spare = 6;
    }
    return worst_ratio(what, s, &o, truth);
}

// Strips of a plate: what strains a strip by a few percent of its parent's energy turns all that hangs on it.
static void test_levers(void **unused) {
    (void)unused;
    const double low[3] = {0, 0, 0}, high[3] = {2, 1.5, 0.04};
    const int    cells[3] = {24, 20, 2};
    sample       s = {0};
    assert_ok(fem_generate_box(&s.mesh, FEM_T4, low, high, cells));
    set_material(&s.mesh, FEM_STVK);
    s.fixed = fem_mesh_vertex_set(&s.mesh, "x0");
    cut(&s, DOMAIN_METIS, 12, DOMAIN_LOOPS_MERGE, DOMAIN_FEET_MERGE);
    assert_true(s.domains.count > 8);
    assert_true(with_defaults("plate", &s, 0) < 0.005);
    sample_destroy(&s);
}

// Domains of a layer or two of long elements: they have fewer shapes than modes are made with their collars.
static void test_slivers(void **unused) {
    (void)unused;
    const double low[3] = {0, 0, 0}, high[3] = {10, 0.1, 0.1};
    const int    cells[3] = {10, 2, 2};
    for (int held = 0; held < 2; held++) {
        sample s = {0};
        assert_ok(fem_generate_box(&s.mesh, FEM_H8, low, high, cells));
        set_material(&s.mesh, FEM_STVK);
        s.fixed = held ? fem_mesh_vertex_set(&s.mesh, "x0") : NULL;
        cut(&s, DOMAIN_GEODESIC, 6, DOMAIN_LOOPS_MERGE, DOMAIN_FEET_MERGE);
        assert_int_equal(s.domains.count, 6);
        assert_true(with_defaults(held ? "long elements" : "long elements, free", &s, 0) < 0.001);
        sample_destroy(&s);
    }
}

// A body ten thousand times as long as wide, whose stiffness is singular to rounding: its domains are made without the
// modes of the whole, and fall as they must, as far as rounding lets them.
static void test_endless(void **unused) {
    (void)unused;
    enum { CELLS = 10000, DOMAINS = 200 };
    const double            low[3] = {0, 0, 0}, high[3] = {0.1 * CELLS, 0.1, 0.1}, pull[3] = {0, 0, -1};
    const int               cells[3] = {CELLS, 1, 1};
    sample                  s = {0};
    solver_assembly_options o = solver_assembly_default_options();
    assert_ok(fem_generate_box(&s.mesh, FEM_H8, low, high, cells));
    set_material(&s.mesh, FEM_STVK);
    s.fixed = fem_mesh_vertex_set(&s.mesh, "x0");
    cut(&s, DOMAIN_GEODESIC, DOMAINS, DOMAIN_LOOPS_MERGE, DOMAIN_FEET_MERGE);
    assert_int_equal(s.domains.count, DOMAINS);
    o.class.modes = 6;
    o.damping_stiffness = 0.01; // no lowest mode is looked for
    solver_assembly      *a = assemble(&s, &o);
    solver_tree          *tree = make_tree(a);
    solver_assembly_check check;
    assert_true(a->whole_lost);
    assert_ok(solver_assembly_examine(a, tree, 10, &check));
    assert_int_equal(check.count, 0);
    double *u = fem_calloc(3 * (size_t)s.mesh.vertex_count, sizeof *u);
    assert_non_null(u);
    solver_tree_set_gravity(tree, pull);
    for (int k = 0; k < 2; k++) assert_ok(solver_tree_step(tree));
    solver_assembly_show(a, tree, u, NULL);
    double end = 0;
    for (int v = 0; v < s.mesh.vertex_count; v++)
        if (s.mesh.vertices[3 * (size_t)v] > high[0] - 0.01) end += u[3 * (size_t)v + 2] / 4;
    printf("   %d domains, %d elements: the end falls by %.6g m in %g s\n", DOMAINS, CELLS, -end, 0.1);
    assert_true(fabs(end / -0.005 - 1) < 0.01);
    fem_free(u);
    solver_tree_destroy(tree);
    solver_assembly_destroy(a);
    sample_destroy(&s);
}

// A ring of thin domains whose closure is all that holds its ends in shape.
static void test_thin_ring(void **unused) {
    (void)unused;
    const fem_piece pieces[] = {
        {.name = "a", .shape = FEM_BOX, .a = {0, 0, 0}, .b = {1, 0.2, 0.2}},
        {.name = "b", .shape = FEM_BOX, .a = {0.8, 0.2, 0}, .b = {1, 1, 0.2}},
        {.name = "c", .shape = FEM_BOX, .a = {0, 0.8, 0}, .b = {0.8, 1, 0.2}},
        {.name = "d", .shape = FEM_BOX, .a = {0, 0.2, 0}, .b = {0.2, 0.8, 0.2}},
    };
    sample s = {0};
    assert_ok(fem_generate_pieces(&s.mesh, FEM_H8, 4, pieces, 0.1));
    set_material(&s.mesh, FEM_STVK);
    s.fixed = fem_mesh_vertex_set(&s.mesh, "x0");
    cut(&s, DOMAIN_GEODESIC, 10, DOMAIN_LOOPS_SPRINGS, DOMAIN_FEET_MERGE);
    assert_true(s.domains.closures.count > 0);
    assert_true(with_defaults("ring", &s, 0) < 0.005);
    sample_destroy(&s);
}

// Few modes: those that the lowest modes of the whole need come before derivatives, and before higher modes.
static void test_few_modes(void **unused) {
    (void)unused;
    sample s;
    make_plant(&s);
    assert_true(with_defaults("plant, six modes each", &s, 6) < 0.01);
    sample_destroy(&s);
    // twenty frequencies, not eight only
    enum { MANY = 20 };
    double                  omega[MANY], truth[MANY], worst = 0;
    solver_assembly_options o = solver_assembly_default_options();
    make_plant(&s);
    o.total = 20 * s.domains.count;
    o.class.spare = 6;
    solver_assembly *a = assemble(&s, &o);
    solver_tree     *tree = make_tree(a);
    full_frequencies(&s, MANY, truth);
    assert_ok(solver_tree_frequencies(tree, MANY, omega, NULL));
    for (int k = 0; k < MANY; k++) worst = fmax(worst, fabs(omega[k] / truth[k] - 1));
    printf("   plant, 20 modes each: twenty frequencies within %.2f%%\n", 100 * worst);
    assert_true(worst < 0.005);
    solver_tree_destroy(tree);
    solver_assembly_destroy(a);
    sample_destroy(&s);
    // all that moves is in the middle
    const fem_piece pieces[] = {
        {.name = "a", .shape = FEM_BOX, .a = {0, 0, 0}, .b = {0.8, 0.2, 0.2}},
        {.name = "b", .shape = FEM_BOX, .a = {0.8, 0, 0}, .b = {1.6, 0.2, 0.2}},
        {.name = "c", .shape = FEM_BOX, .a = {1.6, 0, 0}, .b = {2.4, 0.2, 0.2}},
    };
    s = (sample){0};
    assert_ok(fem_generate_pieces(&s.mesh, FEM_H8, 3, pieces, 0.1));
    set_material(&s.mesh, FEM_STVK);
    fem_material *materials = fem_calloc(2, sizeof *materials);
    assert_non_null(materials);
    materials[0] = materials[1] = s.mesh.materials[0];
    materials[0].young = 2e11, materials[0].density = 7800;
    materials[1].young = 1e4, materials[1].poisson = 0.45, materials[1].density = 300;
    fem_free(s.mesh.materials);
    s.mesh.materials = materials, s.mesh.material_count = 2;
    for (int k = 0; k < s.mesh.region_count; k++) s.mesh.regions[k].material = strcmp(s.mesh.regions[k].name, "b") == 0;
    s.fixed = fem_mesh_vertex_set(&s.mesh, "x0");
    cut(&s, DOMAIN_REGIONS, 0, DOMAIN_LOOPS_DEFAULT, DOMAIN_FEET_MERGE);
    assert_true(with_defaults("steel, foam, steel, ten modes each", &s, 10) < 0.001);
    sample_destroy(&s);
}

// The tree comes to rest where the full nonlinear body does. Strong damping and long steps take it there.
static double sag_error(const sample *s, const double gravity[3], const solver_assembly_options *o) {
    solver_assembly *a = assemble(s, o);
    solver_tree     *tree = make_tree(a);
    int              n = 3 * s->mesh.vertex_count;
    double          *truth = full_sag(s, gravity), *u = fem_alloc((size_t)n, sizeof *u);
    solver_tree_set_gravity(tree, gravity);
    for (int k = 0; k < 600; k++) assert_ok(solver_tree_step(tree));
    solver_assembly_show(a, tree, u, NULL);
    double largest = size_of(n, truth), error = difference(n, u, truth) / largest;
    printf("   sag %.4f m, the tree is off by %.2f%%\n", largest, 100 * error);
    assert_true(largest > 1e-3);
    fem_free(truth);
    fem_free(u);
    solver_tree_destroy(tree);
    solver_assembly_destroy(a);
    return error;
}

static void test_sag(void **unused) {
    (void)unused;
    sample                  s;
    solver_assembly_options o = solver_assembly_default_options();
    const double            light[3] = {0.1, 0, -0.2}, strong[3] = {0.5, 0.2, -1};
    make_plant(&s);
    o.total = 20 * s.domains.count;
    o.damping_stiffness = 0.5;
    assert_true(sag_error(&s, light, &o) < 0.005);
    double few = sag_error(&s, strong, &o); // bent by more than half its height
    o.total = 40 * s.domains.count;
    double many = sag_error(&s, strong, &o);
    assert_true(few < 0.07 && many < 0.02);
    // modes of equal frequency come in any combination, which must not matter: rounding would decide otherwise
    double *x = s.mesh.vertices;
    for (int i = 0; i < 3 * s.mesh.vertex_count; i++) x[i] += 1e-13 * sin(1e4 * i);
    assert_true(fabs(sag_error(&s, strong, &o) - many) < 0.005 * many);
    sample_destroy(&s);
}

// A frame of four bars closed by springs, standing on two feet: rigid where it should be, and without gaps.
static void make_gate(sample *s) {
    const fem_piece pieces[] = {
        {.name = "left", .shape = FEM_BOX, .a = {0, 0, 0}, .b = {0.2, 0.2, 1.6}},
        {.name = "top", .shape = FEM_BOX, .a = {0, 0, 1.6}, .b = {2, 0.2, 1.8}},
        {.name = "right", .shape = FEM_BOX, .a = {1.8, 0, 0}, .b = {2, 0.2, 1.6}},
        {.name = "bar", .shape = FEM_BOX, .a = {0.2, 0, 0.8}, .b = {1.8, 0.2, 1.0}},
    };
    *s = (sample){0};
    assert_ok(fem_generate_pieces(&s->mesh, FEM_H8, 4, pieces, 0.1));
    set_material(&s->mesh, FEM_STVK);
    s->fixed = fem_mesh_vertex_set(&s->mesh, "z0");
    cut(s, DOMAIN_REGIONS, 0, DOMAIN_LOOPS_SPRINGS, DOMAIN_FEET_SPRINGS);
    assert_int_equal(s->domains.count, 4);
    assert_int_equal(s->domains.closures.count, 1);
    assert_int_equal(s->domains.grounds.count, 1);
}

static void test_springs(void **unused) {
    (void)unused;
    sample                  s;
    solver_assembly_options o = solver_assembly_default_options();
    const double            gravity[3] = {0.05, 0.1, -0.2}, strong[3] = {0.25, 0.5, -1};
    make_gate(&s);
    o.damping_stiffness = 0.5;
    // wrenches at two or three places take half of 30 modes: what is missing are the derivatives of the others, so that
    // the error of a sag by 15% of the width goes with them
    if (getenv("LIMBER_LONG")) {
        o.total = 60 * s.domains.count;
        assert_true(sag_error(&s, gravity, &o) < 0.02);
        double few = sag_error(&s, strong, &o);
        o.total = 90 * s.domains.count;
        double many = sag_error(&s, strong, &o);
        assert_true(many < 0.01 && many < few / 3);
    }
    o.total = 42 * s.domains.count;
    assert_true(sag_error(&s, gravity, &o) < 0.03);
    o.total = 30 * s.domains.count;
    assert_true(sag_error(&s, gravity, &o) < 0.055);
    double truth[COUNT], dense[COUNT], krylov[COUNT], residuals[COUNT];
    full_frequencies(&s, COUNT, truth);
    printf("   frequencies over full FEM:");
    // gaps at the closure and at the second foot
    solver_assembly *a = assemble(&s, &o);
    solver_tree     *tree = make_tree(a);
    // springs count in the frequencies, by both methods
    double *shapes = fem_alloc((size_t)(COUNT * solver_tree_dofs(tree)), sizeof *shapes);
    assert_ok(tree_frequencies(tree, COUNT, true, dense, shapes));
    assert_ok(solver_tree_residuals(tree, COUNT, dense, shapes, residuals));
    assert_ok(tree_frequencies(tree, COUNT, false, krylov, NULL));
    for (int k = 0; k < COUNT; k++) printf(" %.4f", dense[k] / truth[k]);
    printf("; the methods differ by %.1e, residuals to %.1e\n", test_relative_error(COUNT, krylov, dense),
           residuals[COUNT - 1]);
    assert_true(test_relative_error(COUNT, krylov, dense) < 1e-7);
    for (int k = 0; k < COUNT; k++) assert_true(fabs(dense[k] / truth[k] - 1) < 0.005 && residuals[k] < 1e-6);
    fem_free(shapes);
    solver_tree_set_gravity(tree, gravity);
    for (int k = 0; k < 200; k++) assert_ok(solver_tree_step(tree));
    double gap = 0;
    for (int k = 0; k < a->joint_count; k++) {
        const solver_joint *joint = &a->joints[k];
        int                 point[2];
        double              x[2][3];
        for (int side = 0; side < 2; side++) {
            const solver_joint_end *end = &joint->ends[side];
            memcpy(x[side], joint->anchor, sizeof x[side]);
            if (end->instance < 0) continue;
            assert_ok(solver_tree_add_point(tree, end->instance, end->X, end->rows, &point[side]));
            solver_tree_point(tree, point[side], x[side], NULL);
        }
        gap = fmax(gap, vec3_distance(x[0], x[1]));
    }
    printf("   %d springs, the widest gap is %.2f%% of an element\n", a->joint_count, 100 * gap / 0.1);
    assert_true(a->joint_count == 18 && gap > 0 && gap < 0.01 * 0.1);
    solver_tree_destroy(tree);
    solver_assembly_destroy(a);
    sample_destroy(&s);
}

// Domains of different kinds side by side: rigid, linear, warped, polynomial; what one domain has of its own.
static void test_kinds(void **unused) {
    (void)unused;
    sample                  s;
    solver_assembly_options o = solver_assembly_default_options();
    solver_domain_options   own[5];
    make_plant(&s);
    o.total = 50;
    for (int i = 0; i < 5; i++) own[i] = solver_assembly_domain_options(&o);
    own[1].modes = 0;
    own[2].forces = SOLVER_FORCES_LINEAR;
    own[3].forces = SOLVER_FORCES_WARPED, own[3].modes = 7;
    own[4].forces = SOLVER_FORCES_FULL, own[4].modes = 6, own[4].stiffness = 4;
    o.domains = own;
    o.damping_stiffness = 0.01;
    solver_assembly *a = assemble(&s, &o);
    solver_tree     *tree = make_tree(a);
    const double     gravity[3] = {1, 1, -2};
    solver_tree_set_gravity(tree, gravity);
    for (int k = 0; k < 40; k++) assert_ok(solver_tree_step(tree));
    assert_int_equal(a->classes[1]->basis.r, 0);
    assert_int_equal(a->classes[3]->basis.r, 7);
    assert_int_equal(a->classes[4]->basis.r, 6);
    assert_int_equal(a->modes, 50);
    assert_true(a->instances[4].stiffness == 4);
    int     n = 3 * s.mesh.vertex_count;
    double *u = fem_alloc((size_t)n, sizeof *u), *v = fem_alloc((size_t)n, sizeof *v);
    double *later = fem_alloc((size_t)n, sizeof *later);
    solver_assembly_show(a, tree, u, v);
    double before = size_of(n, v);
    // velocities are those with which the positions change
    assert_ok(solver_tree_set_time_step(tree, 1e-5));
    assert_ok(solver_tree_step(tree));
    solver_assembly_show(a, tree, later, NULL);
    for (int i = 0; i < n; i++) later[i] = (later[i] - u[i]) / 1e-5;
    double worst = 0;
    for (int k = 0; k < s.mesh.vertex_count; k++)
        if (a->owner[k] != 3) worst = fmax(worst, vec3_distance(later + 3 * (size_t)k, v + 3 * (size_t)k));
    printf("   speed up to %.3f m/s, differences of positions off by %.1e\n", before, worst);
    assert_true(before > 1e-3 && worst < 1e-3 * before);
    fem_free(u), fem_free(v), fem_free(later);
    solver_tree_destroy(tree);
    solver_assembly_destroy(a);
    sample_destroy(&s);
}

// A tree of rubber with cubature in every domain moves as the one that sums over all elements does.
static void test_cubature(void **unused) {
    (void)unused;
    sample                          s;
    solver_assembly_options         o = solver_assembly_default_options();
    const double                    gravity[3] = {3, 2, -2};
    double                         *u[2], elements = 0, held_out = 0;
    static const solver_forces_kind kinds[2] = {SOLVER_FORCES_FULL, SOLVER_FORCES_CUBATURE};
    make_plant(&s);
    set_material(&s.mesh, FEM_NEOHOOKEAN);
    int n = 3 * s.mesh.vertex_count;
    o.total = 60, o.damping_stiffness = 0.01, o.class.training.error = 0.02, o.class.training.poses = 500;
    for (int k = 0; k < 2; k++) {
        o.class.forces = kinds[k];
        solver_assembly *a = assemble(&s, &o);
        solver_tree     *tree = make_tree(a);
        u[k] = fem_alloc((size_t)n, sizeof **u);
        solver_tree_set_gravity(tree, gravity);
        for (int step = 0; step < 60; step++) assert_ok(solver_tree_step(tree));
        solver_assembly_show(a, tree, u[k], NULL);
        for (int i = 0; k == 1 && i < a->count; i++) {
            const solver_class *c = a->classes[i];
            assert_true(c->rule.count > 0 && c->rule.count <= c->mesh.element_count && c->training.reached);
            elements += c->rule.count, held_out = fmax(held_out, c->training.held_out_error);
        }
        solver_tree_destroy(tree);
        solver_assembly_destroy(a);
    }
    double worst = 0, moved = size_of(n, u[0]);
    for (int v = 0; v < s.mesh.vertex_count; v++)
        worst = fmax(worst, vec3_distance(u[0] + 3 * (size_t)v, u[1] + 3 * (size_t)v));
    printf("   %g of %d elements, held-out error %.4f; moved %.3f m, differs by %.2e of it\n", elements,
           s.mesh.element_count, held_out, moved, worst / moved);
    assert_true(moved > 0.2 && elements < s.mesh.element_count && worst < 0.02 * moved && held_out > 0 &&
                held_out < 0.05);
    fem_free(u[0]), fem_free(u[1]);
    sample_destroy(&s);
}

// What cannot be is refused by name.
// a free body that falls without turning deforms by rounding only: its passes settle at once
static void test_fall(void **unused) {
    (void)unused;
    enum { STEPS = 40 };
    const double            low[3] = {0}, high[3] = {0.3, 0.4, 3}, gravity[3] = {1, 2, -9.81};
    const int               cells[3] = {3, 4, 30};
    sample                  s = {0};
    solver_assembly_options o = solver_assembly_default_options();
    solver_tree            *tree = NULL;
    solver_tree_options     step = solver_tree_default_options();
    assert_ok(fem_generate_box(&s.mesh, FEM_T4, low, high, cells));
    set_material(&s.mesh, FEM_STVK);
    cut(&s, DOMAIN_METIS, 8, DOMAIN_LOOPS_DEFAULT, DOMAIN_FEET_MERGE);
    assert_true(s.domains.count >= 4);
    solver_assembly *a = assemble(&s, &o);
    step.time_step = 1.0 / 240;
    assert_ok(solver_assembly_tree(&tree, a, false, &step));
    solver_tree_set_gravity(tree, gravity);
    for (int i = 0; i < STEPS; i++) assert_ok(solver_tree_step(tree));
    solver_tree_report report = solver_tree_get_report(tree);
    printf("   %d domains fall for %d steps: %d passes more, %d halves\n", s.domains.count, STEPS, report.extra_passes,
           report.halved);
    assert_int_equal(report.halved, 0);
    assert_int_equal(report.extra_passes, 0);
    solver_tree_destroy(tree);
    solver_assembly_destroy(a);
    sample_destroy(&s);
}

static void test_refused(void **unused) {
    (void)unused;
    sample                  s;
    solver_assembly        *a = NULL;
    solver_assembly_options o = solver_assembly_default_options();
    solver_domain_options   own[5];
    make_plant(&s);
    o.total = 50;
    for (int i = 0; i < 5; i++) own[i] = solver_assembly_domain_options(&o);
    o.domains = own;
    own[3].modes = 5000;
    assert_fails(solver_assembly_create(&a, &s.mesh, &s.domains, s.fixed->count, s.fixed->items, &o, NULL, NULL),
                 FEM_BAD_INPUT, "5000 modes were asked for, but it has at most");
    assert_non_null(strstr(fem_message(), s.domains.name[3]));
    own[3].modes = 5;
    own[2].stiffness = -1;
    assert_fails(solver_assembly_create(&a, &s.mesh, &s.domains, s.fixed->count, s.fixed->items, &o, NULL, NULL),
                 FEM_BAD_INPUT, "the stiffness factor is -1");
    own[2].stiffness = 1;
    int one = s.fixed->items[0];
    assert_fails(solver_assembly_create(&a, &s.mesh, &s.domains, 1, &one, &o, NULL, NULL), FEM_BAD_INPUT,
                 "rigid motions");
    assert_null(a);
    sample_destroy(&s);
}

// Every allocation may fail: then the answer says so and nothing is left behind.
static void test_memory(void **unused) {
    (void)unused;
    sample                  s;
    solver_assembly_options o = solver_assembly_default_options();
    make_gate(&s);
    o.total = 16;
    int  threads = fem_threads(), failures = 0;
    bool done = false;
    fem_set_threads(1);
    long blocks = fem_memory_blocks();
    for (long allowed = 0; !done; allowed += allowed < 40 ? 1 : 37) {
        solver_assembly *a = NULL;
        fem_memory_fail_after(allowed);
        fem_status status =
            solver_assembly_create(&a, &s.mesh, &s.domains, s.fixed->count, s.fixed->items, &o, NULL, NULL);
        fem_memory_fail_after(-1);
        done = status == FEM_OK;
        if (!done) {
            assert_int_equal(status, FEM_NO_MEMORY);
            assert_null(a);
            failures++;
        }
        solver_assembly_destroy(a);
        assert_int_equal(fem_memory_blocks(), blocks);
    }
    fem_set_threads(threads);
    printf("   %d failures\n", failures);
    assert_true(failures > 50);
    sample_destroy(&s);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),  cmocka_unit_test(test_rest),      cmocka_unit_test(test_frequencies),
        cmocka_unit_test(test_sag),     cmocka_unit_test(test_springs),   cmocka_unit_test(test_cubature),
        cmocka_unit_test(test_kinds),   cmocka_unit_test(test_fall),      cmocka_unit_test(test_refused),
        cmocka_unit_test(test_memory),  cmocka_unit_test(test_levers),    cmocka_unit_test(test_slivers),
        cmocka_unit_test(test_endless), cmocka_unit_test(test_thin_ring), cmocka_unit_test(test_few_modes),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
