// A slender H8 cantilever against beam theory, under refinement. nu = 0, so that the solid tends to the beam but for
// shear and rotary inertia, which the slenderness keeps below a tenth of a percent.
#include "tests/solver_case.h"

static const double length = 1, height = 0.02; // square section

static void beam_create(bar *b, int along, int across, fem_material_kind kind, double young) {
    const double size[3] = {length, height, height};
    const int    cells[3] = {along, across, across};
    fem_material m = soft_material(kind, young, 0);
    bar_create(b, FEM_H8, size, cells, &m);
}

// Section stiffness EI of a square
static double bending_stiffness(double young) { return young * pow(height, 4) / 12; }

// ---- frequencies -------------------------------------------------------------------------------------------------

// Root of cos(x) cosh(x) = -1 near `guess`, by Newton.
static double clamped_free_root(double guess) {
    double x = guess;
    for (int k = 0; k < 50; k++) x -= (cos(x) * cosh(x) + 1) / (cos(x) * sinh(x) - sin(x) * cosh(x));
    return x;
}

// First three frequencies of bending in z: a square beam has every one twice, so modes 0, 2, 4 of the list.
static void beam_frequencies(int along, int across, double omega[3]) {
    bar b;
    beam_create(&b, along, across, FEM_STVK, 1e7);
    fem_sparse K = {0}, M = {0};
    assert_ok(fem_body_matrix(b.body, &K));
    assert_ok(fem_body_matrix(b.body, &M));
    fem_body_evaluate(b.body, b.work, NULL, NULL, &K);
    fem_body_mass(b.body, FEM_MASS_CONSISTENT, &M);
    modes_problem         problem = {.mesh = &b.mesh, .K = &K, .M = &M, .fixed = b.fixed};
    modes_lanczos_options options = modes_lanczos_default_options();
    modes_basis           basis = {0};
    options.count = 6;
    assert_ok(modes_lanczos(&problem, &options, NULL, &basis, NULL));
    for (int k = 0; k < 3; k++) {
        omega[k] = sqrt(basis.omega2[2 * k]);
        assert_true(fabs(basis.omega2[2 * k + 1] / basis.omega2[2 * k] - 1) < 1e-6); // the twin
    }
    modes_basis_destroy(&basis);
    fem_sparse_destroy(&K);
    fem_sparse_destroy(&M);
    bar_destroy(&b);
}

// The first three bending frequencies come within 1% of Euler and Bernoulli's, at second order in the element length.
static void test_bending_frequencies(void **unused) {
    (void)unused;
    const double guess[3] = {1.875, 4.694, 7.855};
    const int    along[4] = {100, 200, 400, 800};
    double       theory[3], error[4][3], omega[3];
    for (int k = 0; k < 3; k++) {
        double x = clamped_free_root(guess[k]);
        theory[k] = x * x * sqrt(bending_stiffness(1e7) / (1000 * height * height * pow(length, 4)));
    }
    for (int level = 0; level < 4; level++) {
        beam_frequencies(along[level], 2, omega);
        printf("  %3d x 2 x 2 cells:", along[level]);
        for (int k = 0; k < 3; k++) {
            error[level][k] = omega[k] / theory[k] - 1;
            printf(" %.5f Hz (%+.3f%%)", omega[k] / (2 * acos(-1.0)), 100 * error[level][k]);
        }
        printf("\n");
    }
    for (int k = 0; k < 3; k++) {
        // differences of successive solutions: their limit is the solid, which differs from the beam by shear
        double order = log2((error[1][k] - error[2][k]) / (error[2][k] - error[3][k]));
        printf("  mode %d: observed order %.2f\n", k + 1, order);
        assert_true(fabs(error[3][k]) < 0.01);
        assert_true(order > 1.8 && order < 2.3);
    }
}

// ---- elastica ----------------------------------------------------------------------------------------------------

// theta'' = -p cos(theta), theta(0) = 0, theta'(1) = 0: the inextensible cantilever of unit length under the dead tip
// force p = P L^2 / EI across it. Shooting on theta'(0) with fourth-order Runge-Kutta. Gives the tip.
typedef struct elastica_end {
    double theta, curvature, x, y;
} elastica_end;
static elastica_end elastica_shoot(double p, double curvature) {
    elastica_end s = {.curvature = curvature};
    int          steps = 2000;
    double       h = 1.0 / steps;
    for (int k = 0; k < steps; k++) {
        double slope[4][4], state[4] = {s.theta, s.curvature, s.x, s.y};
        for (int stage = 0; stage < 4; stage++) {
            double at[4], forward = stage == 0 ? 0 : stage == 3 ? h : h / 2;
            for (int i = 0; i < 4; i++) at[i] = state[i] + (stage ? forward * slope[stage - 1][i] : 0);
            slope[stage][0] = at[1];
            slope[stage][1] = -p * cos(at[0]);
            slope[stage][2] = cos(at[0]);
            slope[stage][3] = sin(at[0]);
        }
        for (int i = 0; i < 4; i++) state[i] += h / 6 * (slope[0][i] + 2 * slope[1][i] + 2 * slope[2][i] + slope[3][i]);
        s = (elastica_end){state[0], state[1], state[2], state[3]};
    }
    return s;
}
static elastica_end elastica(double p) {
    double low = 0, high = 2 * p; // the curvature at the root is at most p; bisect on the curvature at the tip
    for (int k = 0; k < 60; k++) {
        double middle = (low + high) / 2;
        if (elastica_shoot(p, middle).curvature > 0)
            high = middle;
        else
            low = middle;
    }
    return elastica_shoot(p, (low + high) / 2);
}

// The elastica solver agrees with the tables of Bisshopp & Drucker (1945): p = 1: 0.3017 down, 0.0564 back;
// p = 2: 0.4935 and 0.1606.
static void test_elastica(void **unused) {
    (void)unused;
    elastica_end one = elastica(1), two = elastica(2);
    printf("  p = 1: %.4f %.4f, p = 2: %.4f %.4f\n", one.y, 1 - one.x, two.y, 1 - two.x);
    assert_true(fabs(one.y - 0.3017) < 1e-4 && fabs(1 - one.x - 0.0564) < 1e-4);
    assert_true(fabs(two.y - 0.4935) < 1e-4 && fabs(1 - two.x - 0.1606) < 1e-4);
}

// A tip force that bends the beam down by half its length: both components of the tip come within 1% of the elastica.
static void test_large_deflection(void **unused) {
    (void)unused;
    const int    along[4] = {100, 200, 400, 800};
    double       p = 2, young = 1e9, down[4], back[4]; // stiff enough that the force does not stretch it
    elastica_end exact = elastica(p);
    for (int level = 0; level < 4; level++) {
        bar b;
        beam_create(&b, along[level], 2, FEM_STVK, young);
        const fem_set *tip = fem_mesh_vertex_set(&b.mesh, "x1");
        const double   traction[3] = {0, 0, -p * bending_stiffness(young) / (length * length) / (height * height)};
        double         area, mean[3];
        assert_ok(solver_add_surface_load(&b.mesh, tip->count, tip->items, traction, 0, b.load, &area));
        solver_options o = solver_default_options();
        solver_full   *solver = NULL;
        assert_ok(solver_full_create(&solver, b.body, b.fixed, &o));
        solver_full_set_load(solver, b.load);
        assert_ok(solver_full_static(solver, NULL));
        bar_face_mean(&b, "x1", solver_full_state(solver)->u, mean);
        solver_report r = solver_full_report(solver);
        down[level] = -mean[2] / length, back[level] = -mean[0] / length;
        printf("  %3d x 2 x 2 cells: down %.5f L (%+.3f%%), back %.5f L (%+.3f%%); %d iterations, %d load steps\n",
               along[level], down[level], 100 * (down[level] / exact.y - 1), back[level],
               100 * (back[level] / (1 - exact.x) - 1), r.newton_iterations, r.load_steps);
        solver_full_destroy(solver);
        bar_destroy(&b);
    }
    double order = log2((down[2] - down[1]) / (down[3] - down[2]));
    printf("  elastica: down %.5f L, back %.5f L; observed order %.2f\n", exact.y, 1 - exact.x, order);
    assert_true(fabs(down[3] / exact.y - 1) < 0.01);
    assert_true(fabs(back[3] / (1 - exact.x) - 1) < 0.01);
    assert_true(order > 1.8 && order < 2.3);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bending_frequencies),
        cmocka_unit_test(test_elastica),
        cmocka_unit_test(test_large_deflection),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
