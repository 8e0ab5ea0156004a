// How a tree of domains is shown: interfaces without gaps and without kinks, children of warped domains.
#include "tests/support.h"
#include "libsolver/assembly_internal.h"

#include <math.h>
#include <string.h>

// A bar of 40 x 3 x 3 cubes along x, held at x = 0, cut across into four.
typedef struct bar {
    fem_mesh         mesh;
    domain_tree      domains;
    solver_assembly *a;
    solver_tree     *tree;
    double          *u, *v;
} bar;

static void bar_create(bar *b, solver_forces_kind forces) {
    const double            low[3] = {0, 0, 0}, high[3] = {4, 0.3, 0.3};
    const int               cells[3] = {40, 3, 3};
    solver_assembly_options o = solver_assembly_default_options();
    solver_tree_options     step = solver_tree_default_options();
    domain_options          cut = domain_default_options();
    fem_material            m = fem_material_default();
    *b = (bar){0};
    m.kind = FEM_STVK, m.young = 2e6, m.poisson = 0.3, m.density = 1000;
    assert_ok(fem_generate_box(&b->mesh, FEM_H8, low, high, cells));
    assert_ok(fem_mesh_set_material(&b->mesh, &m));
    const fem_set *fixed = fem_mesh_vertex_set(&b->mesh, "x0");
    cut.count = 4, cut.fixed_count = fixed->count, cut.fixed = fixed->items;
    assert_ok(domain_decompose(&b->domains, &b->mesh, &cut));
    assert_int_equal(b->domains.count, 4);
    o.total = 80, o.class.forces = forces, o.damping_stiffness = 0.05;
    assert_ok(solver_assembly_create(&b->a, &b->mesh, &b->domains, fixed->count, fixed->items, &o, NULL, NULL));
    step.time_step = 0.02;
    assert_ok(solver_assembly_tree(&b->tree, b->a, false, &step));
    b->u = fem_calloc(3 * (size_t)b->mesh.vertex_count, sizeof *b->u);
    b->v = fem_calloc(3 * (size_t)b->mesh.vertex_count, sizeof *b->v);
    solver_tree_set_gravity(b->tree, (double[]){0, 0.2, -0.6});
    for (int k = 0; k < 150; k++) assert_ok(solver_tree_step(b->tree));
}

static void bar_destroy(bar *b) {
    solver_tree_destroy(b->tree);
    solver_assembly_destroy(b->a);
    domain_tree_destroy(&b->domains);
    fem_mesh_destroy(&b->mesh);
    fem_free(b->u), fem_free(b->v);
}

static const double *copy_of(const bar *b, int instance, int local) {
    return b->a->copies + 3 * (size_t)(b->a->first[instance] + local);
}

// Largest distance between the copies of a vertex.
static double gap(const bar *b) {
    double worst = 0;
    for (int i = 1; i < b->a->count; i++)
        for (int k = b->a->seam_start[i]; k < b->a->seam_start[i + 1]; k++)
            worst = fmax(worst, vec3_distance(copy_of(b, i, b->a->seam_local[k]),
                                              copy_of(b, b->a->instances[i].parent, b->a->seam_vertex[k])));
    return worst;
}

static double tip(const bar *b) {
    double largest = 0;
    for (int v = 0; v < b->mesh.vertex_count; v++) largest = fmax(largest, vec3_norm(b->u + 3 * (size_t)v));
    return largest;
}

// C0: every shared vertex lies midway between its copies, others are where their domain has them; velocities likewise.
static void test_mean(void **unused) {
    (void)unused;
    bar b;
    bar_create(&b, SOLVER_FORCES_POLYNOMIAL);
    solver_assembly_show(b.a, b.tree, b.u, b.v);
    double worst = 0, between = gap(&b);
    int    shared = 0;
    for (int i = 0; i < b.a->count; i++)
        for (int k = 0; k < b.a->classes[i]->mesh.vertex_count; k++) {
            int  v = b.a->local[i][k];
            bool seam = false;
            for (int c = 1; c < b.a->count && !seam; c++)
                for (int n = b.a->seam_start[c]; n < b.a->seam_start[c + 1] && !seam; n++) {
                    int parent = b.a->instances[c].parent;
                    if (b.a->local[c][b.a->seam_local[n]] != v) continue;
                    const double *x = copy_of(&b, c, b.a->seam_local[n]), *y = copy_of(&b, parent, b.a->seam_vertex[n]);
                    for (int j = 0; j < 3; j++)
                        worst = fmax(worst, fabs(b.u[3 * (size_t)v + (size_t)j] - (x[j] + y[j]) / 2));
                    seam = true, shared++;
                }
            if (!seam) worst = fmax(worst, vec3_distance(b.u + 3 * (size_t)v, copy_of(&b, i, k)));
        }
    printf("   tip moved %.3f m; copies up to %.2e m apart; %d shared vertices off their means by %.1e m\n", tip(&b),
           between, shared, worst);
    assert_true(tip(&b) > 0.5 && between > 1e-5 && worst < 1e-14);
    assert_int_equal(shared, 2 * 3 * 16); // each seen from both of its domains
    bar_destroy(&b);
}

// The steepest change of slope along the edges parallel to the axis, at vertices within `reach` of an interface.
static double kink(const bar *b, const double *u) {
    const int nx = 41;
    double    worst = 0;
    int      *line = fem_alloc((size_t)nx, sizeof *line);
    for (int start = 0; start < b->mesh.vertex_count; start++) {
        const double *X = b->mesh.vertices + 3 * (size_t)start;
        if (X[0] > 1e-9) continue;
        for (int v = 0; v < b->mesh.vertex_count; v++) {
            const double *Y = b->mesh.vertices + 3 * (size_t)v;
            if (fabs(Y[1] - X[1]) < 1e-9 && fabs(Y[2] - X[2]) < 1e-9) line[(int)lround(Y[0] / 0.1)] = v;
        }
        for (int k = 1; k + 1 < nx; k++) {
            bool seam = false;
            for (int c = 1; c < b->a->count; c++)
                for (int n = b->a->seam_start[c]; n < b->a->seam_start[c + 1]; n++)
                    seam = seam || b->a->local[c][b->a->seam_local[n]] == line[k];
            double second[3];
            for (int i = 0; i < 3; i++)
                second[i] = (u[3 * line[k - 1] + i] - 2 * u[3 * line[k] + i] + u[3 * line[k + 1] + i]) / 0.1;
            if (seam) worst = fmax(worst, vec3_norm(second));
        }
    }
    fem_free(line);
    return worst;
}

// The displacements of a field over the rest positions, as every domain would have them.
static void set_copies(const bar *b, int bent, const double slope[9]) {
    for (int i = 0; i < b->a->count; i++)
        for (int k = 0; k < b->a->classes[i]->mesh.vertex_count; k++) {
            const double *X = b->mesh.vertices + 3 * (size_t)b->a->local[i][k];
            double        D[3] = {X[0] - b->a->origin[bent][0], X[1], X[2]};
            double       *u = b->a->copies + 3 * (size_t)(b->a->first[i] + k);
            u[0] = u[1] = u[2] = 0;
            if (i >= bent) mat3_mul_vec(u, slope, D);
        }
}

// C1: linear fields, so rigid motions too, stay as they are; a kink at an interface is spread out; the bent chain has
// the slope of its neighbours there; the held end stays.
static void test_smooth(void **unused) {
    (void)unused;
    const double affine[9] = {0.3, -0.2, 0.1, 0.5, -0.1, 0.7, -0.4, 0.2, 0.6}, shear[9] = {0, 0, 0, 0, 0, 0, 1, 0, 0};
    bar          b;
    double       edge[2], chain[2], error = 0, held = 0;
    bar_create(&b, SOLVER_FORCES_POLYNOMIAL);
    const solver_seams seams[2] = {SOLVER_SEAMS_C0, SOLVER_SEAMS_C1};
    for (int k = 0; k < 2; k++) {
        assert_ok(solver_assembly_set_seams(b.a, seams[k]));
        solver_assembly_show(b.a, b.tree, b.u, b.v);
        chain[k] = kink(&b, b.u);
        for (int v = 0; v < b.mesh.vertex_count; v++)
            if (b.mesh.vertices[3 * (size_t)v] < 1e-9) held = fmax(held, vec3_norm(b.u + 3 * (size_t)v));
        set_copies(&b, 2, shear);
        assembly_join(b.a, b.a->copies, b.u);
        edge[k] = kink(&b, b.u);
        set_copies(&b, 0, affine);
        assembly_join(b.a, b.a->copies, b.u);
        for (int v = 0; v < b.mesh.vertex_count; v++) {
            double y[3];
            mat3_mul_vec(y, affine, b.mesh.vertices + 3 * (size_t)v);
            error = fmax(error, vec3_distance(y, b.u + 3 * (size_t)v));
        }
    }
    printf("   linear field off by %.1e m; a kink of 1 is %.3f with C0, %.3f with C1; bent chain: %.4f, %.4f\n", error,
           edge[0], edge[1], chain[0], chain[1]);
    assert_true(error < 1e-9 && held == 0);
    assert_true(fabs(edge[0] - 1) < 1e-9 && edge[1] < 0.4 && edge[1] > 0.05);
    assert_true(chain[0] > 0.02 && chain[1] < 0.75 * chain[0]);
    bar_destroy(&b);
}

// What hangs on a warped domain is shown at its warped interface. With frames as the solver has them it would not be.
static void test_warped(void **unused) {
    (void)unused;
    bar                 b;
    solver_frame_motion frame;
    double              apart = 0;
    bar_create(&b, SOLVER_FORCES_WARPED);
    assert_true(b.a->warped);
    solver_assembly_show(b.a, b.tree, b.u, b.v);
    double shown = gap(&b);
    for (int i = 1; i < b.a->count; i++) {
        solver_tree_frame(b.tree, i, &frame);
        apart = fmax(apart, vec3_distance(frame.p, b.a->shown[i].p));
    }
    printf("   tip moved %.3f m; frames shown up to %.4f m from the solver's; gaps of %.5f m remain\n", tip(&b), apart,
           shown);
    assert_true(tip(&b) > 0.3 && apart > 0.01 && shown < 0.1 * apart);
    assert_ok(solver_assembly_set_seams(b.a, SOLVER_SEAMS_OWNER));
    bar_destroy(&b);
}

static void test_memory(void **unused) {
    (void)unused;
    bar  b;
    int  failures = 0;
    bool done = false;
    bar_create(&b, SOLVER_FORCES_LINEAR);
    long blocks = fem_memory_blocks();
    int  copies = b.a->join_start[b.a->vertex_count];
    for (long allowed = 0; !done; allowed += allowed < 20 ? 1 : 61) {
        fem_memory_fail_after(allowed);
        fem_status status = solver_assembly_set_seams(b.a, SOLVER_SEAMS_C1);
        fem_memory_fail_after(-1);
        done = status == FEM_OK;
        if (done) break;
        assert_int_equal(status, FEM_NO_MEMORY);
        assert_int_equal(fem_memory_blocks(), blocks);
        assert_int_equal(b.a->join_start[b.a->vertex_count], copies); // as before
        failures++;
    }
    printf("   %d failures, %d weights then\n", failures, b.a->join_start[b.a->vertex_count]);
    assert_true(failures > 15 && b.a->join_start[b.a->vertex_count] > copies);
    bar_destroy(&b);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mean), cmocka_unit_test(test_smooth),
                                       cmocka_unit_test(test_warped), cmocka_unit_test(test_memory)};
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
