// Modal warping: rotation fields of known motions, the limit of small q, rigid rotation, and the nonlinear static
// solution of a bent cantilever.
#include "tests/modes_case.h"

// A slender bar along x, held at x = 0, straight.
static void make_bar(sample *s, fem_element type, int modes) {
    const double low[3] = {0, 0, 0}, high[3] = {2, 0.2, 0.1};
    const int    cells[3] = {40, 4, 2};
    *s = (sample){0};
    assert_ok(fem_generate_box(&s->mesh, type, low, high, cells));
    sample_finish(s, true, modes);
}

// the matrix is the integral of rotations, by Simpson's rule, at every size of angle
static void test_matrix(void **state) {
    (void)state;
    const double axis[3] = {2 / 3.0, -1 / 3.0, 2 / 3.0}, angles[] = {0, 1e-9, 1e-4, 0.0099, 0.0101, 0.5, 3, 7};
    for (int k = 0; k < 8; k++) {
        enum { STEPS = 400 };
        double a = angles[k], w[3] = {a * axis[0], a * axis[1], a * axis[2]}, W[9], sum[9] = {0}, worst = 0;
        double cross[9] = {0, -axis[2], axis[1], axis[2], 0, -axis[0], -axis[1], axis[0], 0}, twice[9];
        mat3_mul(twice, cross, cross);
        for (int i = 0; i <= STEPS; i++) { // Rodrigues
            double t = a * i / STEPS, weight = (i == 0 || i == STEPS ? 1 : i % 2 ? 4 : 2) / (3.0 * STEPS);
            for (int e = 0; e < 9; e++) sum[e] += weight * ((e % 4 == 0) + sin(t) * cross[e] + (1 - cos(t)) * twice[e]);
        }
        modes_warp_matrix(w, W);
        for (int e = 0; e < 9; e++) worst = fmax(worst, fabs(W[e] - sum[e]));
        printf("  angle %-7g %.1e\n", a, worst);
        assert_true(worst < (a > 1 ? 1e-8 : 1e-11));
    }
}

// the rotation field of a rotation is that rotation, of a linear field its skew part, of a stretch zero
static void test_rotation_fields(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        sample s;
        sample_create(&s, (fem_element)type, (const int[3]){4, 3, 2}, FEM_STVK, false, 0);
        const double G[9] = {0.3, -0.2, 0.5, 0.7, -0.1, 0.4, -0.6, 0.9, 0.2}; // u = G X
        const double expected[3] = {0.5 * (G[7] - G[5]), 0.5 * (G[2] - G[6]), 0.5 * (G[3] - G[1])};
        modes_basis  basis = {.n = s.n, .r = 2};
        modes_warp   warp = {0};
        double       worst = 0;
        basis.U = fem_alloc(2 * (size_t)s.n, 8), basis.omega2 = fem_calloc(2, 8);
        for (int v = 0; v < s.mesh.vertex_count; v++) {
            const double *X = s.mesh.vertices + 3 * (size_t)v;
            mat3_mul_vec(basis.U + 3 * (size_t)v, G, X);
            for (int i = 0; i < 3; i++) basis.U[s.n + 3 * v + i] = 0.1 * (i + 1) * X[i];
        }
        assert_ok(modes_warp_create(&warp, &s.mesh, &basis));
        for (int i = 0; i < s.n; i++) {
            worst = fmax(worst, fabs(warp.Psi[i] - expected[i % 3]));
            worst = fmax(worst, fabs(warp.Psi[s.n + i]));
        }
        printf("  %s: %.1e\n", element_name((fem_element)type), worst);
        assert_true(worst < 1e-12);
        basis.r = 0;
        assert_fails(modes_warp_create(&warp, &s.mesh, &basis), FEM_BAD_INPUT, "a basis of 0 modes");
        assert_int_equal(warp.r, 2); // the old one
        for (long allowed = 0; allowed < 2; allowed++) {
            basis.r = 2;
            fem_memory_fail_after(allowed);
            fem_status status = modes_warp_create(&warp, &s.mesh, &basis);
            fem_memory_fail_after(-1);
            assert_int_equal(status, FEM_NO_MEMORY);
        }
        modes_warp_destroy(&warp), modes_basis_destroy(&basis);
        sample_destroy(&s);
    }
}

// Reduced coordinates of the linear static solution under a force at the tip, and that force (n, zero where held).
static void linear_answer(const sample *s, const double force[3], double *load, double *q) {
    const fem_set *tip = fem_mesh_vertex_set(&s->mesh, "x1");
    memset(load, 0, (size_t)s->n * sizeof *load);
    solver_add_vertex_force(tip->count, tip->items, force, load);
    for (int k = 0; k < s->basis.r; k++) q[k] = dense_dot(s->n, column(s->basis.U, s->n, k), load) / s->basis.omega2[k];
}

// for small q the warped displacement is the linear one, to second order
static void test_small(void **state) {
    (void)state;
    sample     s;
    modes_warp warp = {0};
    double     q[4], last = 0;
    make_bar(&s, FEM_T4, 4);
    assert_ok(modes_warp_create(&warp, &s.mesh, &s.basis));
    double *u = fem_alloc((size_t)s.n, 8), *work = fem_alloc((size_t)s.n, 8), *linear = fem_alloc((size_t)s.n, 8);
    for (int k = 0; k < 4; k++) {
        double size = 0.02 * pow(0.5, k), error = 0;
        for (int j = 0; j < 4; j++) q[j] = size * (j + 1);
        dense_gemv_set(s.n, 4, 1, s.basis.U, q, linear);
        modes_warp_displacement(&warp, &s.basis, q, work, u);
        for (int i = 0; i < s.n; i++) error = fmax(error, fabs(u[i] - linear[i]));
        printf("  |q| %.4f: |u - U q| %.2e%s", size, error, k ? "" : "\n");
        if (k > 0) printf(", order %.3f\n", log2(last / error));
        if (k > 0) assert_true(log2(last / error) > 1.95 && log2(last / error) < 2.05);
        last = error;
    }
    fem_free(u), fem_free(work), fem_free(linear);
    modes_warp_destroy(&warp);
    sample_destroy(&s);
}

// Relative change of the length of the edges of the tip face and of the slice behind it, root mean square.
static double tip_strain(const sample *s, const double *u) {
    double sum = 0;
    int    count = 0, width = fem_element_vertices(s->mesh.type);
    for (int e = 0; e < s->mesh.element_count; e++) {
        const int *v = s->mesh.elements + (size_t)e * (size_t)width;
        bool       inside = true;
        for (int a = 0; a < width; a++) inside = inside && s->mesh.vertices[3 * (size_t)v[a]] > 1.89;
        for (int a = 0; inside && a < width; a++)
            for (int b = 0; b < a; b++) {
                double now[3], *X = s->mesh.vertices + 3 * (size_t)v[a], *Y = s->mesh.vertices + 3 * (size_t)v[b];
                for (int i = 0; i < 3; i++) now[i] = X[i] + u[3 * v[a] + i] - Y[i] - u[3 * v[b] + i];
                double strain = vec3_norm(now) / vec3_distance(X, Y) - 1;
                sum += strain * strain, count++;
            }
    }
    assert_true(count > 20);
    return sqrt(sum / count);
}

// The equation of Choi and Ko: each vertex's force is seen in axes that have turned with it, Omega^2 q = U^T (R^T f).
static void warped_answer(const sample *s, const modes_warp *warp, const double *load, double *q, double *work) {
    for (int iteration = 0; iteration < 60; iteration++) {
        dense_gemv_set(s->n, s->basis.r, 1, warp->Psi, q, work);
        for (int v = 0; v < s->n; v += 3) { // work <- R^T f, Rodrigues with the angle's sign turned
            double angle = vec3_norm(work + v), axis[3] = {0}, once[3], twice[3];
            for (int i = 0; angle > 0 && i < 3; i++) axis[i] = work[v + i] / angle;
            vec3_cross(once, axis, load + v), vec3_cross(twice, axis, once);
            for (int i = 0; i < 3; i++) work[v + i] = load[v + i] - sin(angle) * once[i] + (1 - cos(angle)) * twice[i];
        }
        for (int k = 0; k < s->basis.r; k++)
            q[k] += 0.5 * (dense_dot(s->n, column(s->basis.U, s->n, k), work) / s->basis.omega2[k] - q[k]);
    }
}

// a bar bent far: the tip turns as a rigid body, while the linear mode inflates it; and the warped shape is nearer to
// the nonlinear static solution than the linear one, for both elements
static void test_bent_bar(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        sample       s;
        modes_warp   warp = {0};
        solver_full *solver = NULL;
        make_bar(&s, (fem_element)type, 8);
        double *u = fem_alloc((size_t)s.n, 8), *work = fem_alloc((size_t)s.n, 8), *linear = fem_alloc((size_t)s.n, 8);
        double *load = fem_alloc((size_t)s.n, 8), q[8];
        assert_ok(modes_warp_create(&warp, &s.mesh, &s.basis));
        // scaled so that the linear answer lifts the tip by 1.2 m of 2
        linear_answer(&s, (const double[3]){0, 0, 1}, load, q);
        dense_gemv_set(s.n, 8, 1, s.basis.U, q, linear);
        const fem_set *tip = fem_mesh_vertex_set(&s.mesh, "x1");
        double         force = 1.2 / linear[3 * tip->items[0] + 2];
        linear_answer(&s, (const double[3]){0, 0, force}, load, q);
        dense_gemv_set(s.n, 8, 1, s.basis.U, q, linear);
        modes_warp_displacement(&warp, &s.basis, q, work, u); // the same q: as large as the linear answer
        double strain = tip_strain(&s, u), linear_strain = tip_strain(&s, linear);
        warped_answer(&s, &warp, load, q, work);
        modes_warp_displacement(&warp, &s.basis, q, work, u);
        solver_options options = solver_default_options();
        assert_ok(solver_full_create(&solver, s.body, s.fixed, &options));
        solver_full_set_load(solver, load);
        assert_ok(solver_full_static(solver, NULL));
        const double *exact = solver_full_state(solver)->u;
        double        size = 0, error = 0, linear_error = 0;
        for (int i = 0; i < s.n; i++) {
            size += exact[i] * exact[i];
            error += pow(u[i] - exact[i], 2), linear_error += pow(linear[i] - exact[i], 2);
        }
        error = sqrt(error / size), linear_error = sqrt(linear_error / size);
        int t = tip->items[0];
        printf("  %s: tip exact (%.3f, %.3f), warped (%.3f, %.3f), linear (%.3f, %.3f)\n",
               element_name((fem_element)type), exact[3 * t], exact[3 * t + 2], u[3 * t], u[3 * t + 2], linear[3 * t],
               linear[3 * t + 2]);
        printf("      error %.3f against %.3f; strain of the tip %.4f against %.4f\n", error, linear_error, strain,
               linear_strain);
        assert_true(fabs(exact[3 * t + 2]) > 0.8);
        assert_true(error < 0.25 * linear_error && strain < 0.1 * linear_strain && linear_strain > 0.1);
        solver_full_destroy(solver);
        fem_free(u), fem_free(work), fem_free(linear), fem_free(load);
        modes_warp_destroy(&warp);
        sample_destroy(&s);
    }
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrix),
        cmocka_unit_test(test_rotation_fields),
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_bent_bar),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
