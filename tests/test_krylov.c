// Krylov bases: their spans against dense solves and exact modes, seeds, interfaces, Ritz steps, and what is refused.
#include "tests/modes_sample.h"

static void free_report(modes_krylov_report *report) {
    fem_free(report->rayleigh), fem_free(report->residuals);
    *report = (modes_krylov_report){0};
}

static fem_material material_of(int kind) {
    fem_material m = fem_material_default();
    m.kind = (fem_material_kind)kind;
    m.young3[0] = 2e6, m.young3[1] = 1e6, m.young3[2] = 0.7e6; // of the orthotropic one
    return m;
}

// ---- the bordered inverse ------------------------------------------------------------------------------------------

// K^-1 of a free body against dense pseudo-inverses: Moore-Penrose for the plain border; for the mass border the sum
// over all elastic modes x x^T / omega^2
static void test_pseudo_inverse(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++)
        for (int border = 0; border < 2; border++) {
            sample p;
            sample_box(&p, (fem_element)type, 3, 2, 2, NULL);
            int      n = p.n;
            uint64_t seed = 3;
            double  *K = sample_dense(&p.K), *M = sample_dense(&p.M), *values = fem_alloc((size_t)n, sizeof *values);
            double  *b = fem_alloc((size_t)n, sizeof *b), *x = fem_alloc((size_t)n, sizeof *x),
                   *y = fem_calloc((size_t)n, sizeof *y);
            modes_inverse *inverse = NULL;
            assert_true(K && M && values && b && x && y);
            if (border == MODES_BORDER_MASS)
                assert_ok(dense_generalized_eigen(n, K, M, values));
            else
                assert_ok(dense_symmetric_eigen(n, K, values));
            test_random_fill(&seed, n, 1, b); // with a rigid part
            for (int j = 6; j < n; j++) {
                const double *mode = K + (size_t)j * (size_t)n;
                dense_axpy(n, dense_dot(n, mode, b) / values[j], mode, y);
            }
            assert_ok(modes_inverse_create(&inverse, &p.problem, (modes_border)border));
            assert_ok(modes_inverse_solve(inverse, 1, b, x));
            double error = test_relative_error(n, x, y);
            printf("  %s, %s border: K^+ b to %.1e\n", type == FEM_T4 ? "T4" : "H8", border ? "plain" : "mass", error);
            assert_true(error < 1e-10);
            modes_inverse_destroy(inverse);
            fem_free(K), fem_free(M), fem_free(values), fem_free(b), fem_free(x), fem_free(y);
            sample_free(&p);
        }
}

// ---- spans ---------------------------------------------------------------------------------------------------------

// the basis holds K^-1 M U_0, (K^-1 M)^2 U_0, (K^-1 M)^3 U_0, computed here with dense solves, and no more
static void test_recursion(void **state) {
    (void)state;
    for (int method = 0; method < 3; method++) {
        sample p;
        sample_box(&p, FEM_T4, 6, 3, 2, NULL);
        sample_hold(&p, "x0");
        int                  n = p.n;
        double              *K = sample_dense(&p.K), worst = 0, least = INFINITY;
        double              *x = fem_alloc(2 * (size_t)n, sizeof *x), *b = fem_alloc(2 * (size_t)n, sizeof *b);
        modes_krylov_options o = modes_krylov_default_options();
        modes_krylov_report  report = {0};
        modes_basis          basis = {0};
        o.count = 6, o.seeds = MODES_SEED_Y | MODES_SEED_ROTATION_X;
        o.orthogonalise.method = (modes_gram_schmidt)method;
        assert_ok(modes_krylov(&p.problem, &o, NULL, &basis, &report));
        dense_hold(n, p.fixed, K);
        assert_ok(dense_cholesky(n, K));
        for (int i = 0; i < n; i++) { // a translation along y, and a rotation about the x axis of the middle
            const double *v = p.mesh.vertices + 3 * (i / 3);
            x[i] = p.fixed[i] ? 0 : i % 3 == 1;
            x[n + i] = p.fixed[i] ? 0 : i % 3 == 1 ? -(v[2] - 0.2) : i % 3 == 2 ? v[1] - 0.375 : 0;
        }
        for (int m = 1; m <= 4; m++) {
            fem_sparse_multiply(&p.M, 2, x, b);
            for (int i = 0; i < 2 * n; i++)
                if (p.fixed[i % n]) b[i] = 0;
            dense_cholesky_solve(n, K, 2, b);
            memcpy(x, b, 2 * (size_t)n * sizeof *x);
            for (int c = 0; c < 2; c++) {
                double lost = not_covered(&p, 6, basis.U, x + c * n);
                if (m <= 3)
                    worst = fmax(worst, lost);
                else
                    least = fmin(least, lost);
            }
        }
        printf("  %-5s %d blocks, %d solves: powers 1 to 3 lost %.1e, power 4 %.1e; U^T M U - I %.1e\n",
               modes_gram_schmidt_name(o.orthogonalise.method), report.blocks, report.solves, worst, least,
               mass_orthogonality(&p, 6, basis.U));
        assert_true(worst < 1e-9 && least > 1e-7);
        assert_int_equal(report.blocks, 3);
        assert_int_equal(report.solves, 6);
        assert_true(mass_orthogonality(&p, 6, basis.U) < 1e-12);
        modes_basis_destroy(&basis);
        free_report(&report);
        fem_free(K), fem_free(x), fem_free(b);
        sample_free(&p);
    }
}

// the lowest modes are in the span of r = 48 Krylov modes; both elements, six materials at rest, held and free
static void test_against_lanczos(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++)
        for (int held = 0; held < 2; held++)
            for (int kind = 0; kind < FEM_MATERIAL_KINDS; kind++) {
                sample                p;
                fem_material          material = material_of(kind);
                modes_krylov_options  o = modes_krylov_default_options();
                modes_lanczos_options lo = modes_lanczos_default_options();
                modes_krylov_report   report = {0};
                modes_basis           basis = {0}, exact = {0};
                double                angles[48], frequency = 0, trace = 0, ritz = 0, share = 0;
                sample_box(&p, (fem_element)type, 8, 3, 3, &material);
                if (held) sample_hold(&p, "x0");
                lo.count = 8;
                assert_ok(modes_lanczos(&p.problem, &lo, NULL, &exact, NULL));
                o.count = 48, o.ritz = true;
                assert_ok(modes_krylov(&p.problem, &o, NULL, &basis, &report));
                assert_int_equal(basis.r, 48);
                assert_ok(modes_principal_angles(&p.problem, 48, basis.U, 8, exact.U, angles));
                for (int j = 0; j < 8; j++) {
                    frequency = fmax(frequency, basis.omega2[j] / exact.omega2[j] - 1);
                    share += not_covered(&p, 48, basis.U, exact.U + j * p.n);
                    // Ritz values lie above the exact ones (Courant-Fischer), to the accuracy of ARPACK
                    assert_true(basis.omega2[j] > exact.omega2[j] * (1 - 1e-9));
                }
                for (int j = 0; j < 48; j++) trace += report.rayleigh[j], ritz += basis.omega2[j];
                double orthogonality = mass_orthogonality(&p, 48, basis.U);
                printf("  %s %-4s %-14s largest angle to 8 modes %.1e, omega^2 %.1e, U^T M U - I %.1e, residual of the "
                       "lowest %.1e\n",
                       type == FEM_T4 ? "T4" : "H8", held ? "held" : "free", fem_material_kind_name(material.kind),
                       angles[7], frequency, orthogonality, report.residuals[0]);
                assert_true(angles[7] < 1e-3 && frequency < 1e-6 && orthogonality < 1e-12 && share < 8e-3);
                assert_true(fabs(trace / ritz - 1) < 1e-10); // a rotation keeps the trace of U^T K U
                assert_int_equal(report.rigid, held ? 0 : 6);
                for (int i = 0; i < p.n; i++) assert_true(!p.fixed[i] || basis.U[7 * p.n + i] == 0);
                modes_basis_destroy(&basis), modes_basis_destroy(&exact);
                free_report(&report);
                sample_free(&p);
            }
}

// after a Ritz step U^T K U is diagonal, with the Ritz values; without, omega2 holds the Rayleigh quotients
static void test_ritz(void **state) {
    (void)state;
    sample               p;
    modes_krylov_options o = modes_krylov_default_options();
    modes_krylov_report  report = {0};
    modes_basis          plain = {0}, basis = {0};
    double               angles[20], worst = 0, gram[400];
    sample_box(&p, FEM_T4, 7, 3, 2, NULL);
    sample_hold(&p, "x0");
    double *KU = fem_alloc(20 * (size_t)p.n, sizeof *KU);
    assert_ok(modes_krylov(&p.problem, &o, NULL, &plain, NULL));
    o.ritz = true;
    assert_ok(modes_krylov(&p.problem, &o, NULL, &basis, &report));
    assert_ok(modes_principal_angles(&p.problem, 20, basis.U, 20, plain.U, angles));
    fem_sparse_multiply(&p.K, 20, basis.U, KU);
    dense_gemm(true, false, 20, 20, p.n, 1, basis.U, KU, 0, gram);
    for (int i = 0; i < 400; i++) worst = fmax(worst, fabs(gram[i] - (i % 21 == 0 ? basis.omega2[i / 21] : 0)));
    printf("  U^T K U - diag %.1e of the largest, same span to %.1e\n", worst / basis.omega2[19], angles[19]);
    assert_true(worst < 1e-12 * basis.omega2[19] && angles[19] < 1e-8);
    for (int j = 0; j < 20; j++) assert_true(fabs(plain.omega2[j] / report.rayleigh[j] - 1) < 1e-12);
    for (int j = 1; j < 20; j++) assert_true(basis.omega2[j] >= basis.omega2[j - 1]);
    fem_free(KU);
    free_report(&report);
    modes_basis_destroy(&plain), modes_basis_destroy(&basis);
    sample_free(&p);
}

// all elastic modes of a small body: the basis is the whole space, its Ritz values are the eigenvalues
static void test_whole_space(void **state) {
    (void)state;
    for (int held = 0; held < 2; held++) {
        sample               p;
        modes_krylov_options o = modes_krylov_default_options();
        modes_krylov_report  report = {0};
        modes_basis          basis = {0};
        double               worst = 0;
        sample_box(&p, FEM_T4, 2, 1, 1, NULL);
        if (held) sample_hold(&p, "x0");
        int     n = p.n, identities = held ? 12 : 0;
        double *K = sample_dense(&p.K), *M = sample_dense(&p.M), *values = fem_alloc((size_t)n, sizeof *values);
        dense_hold(n, p.fixed, K), dense_hold(n, p.fixed, M);
        assert_ok(dense_generalized_eigen(n, K, M, values)); // held degrees of freedom have the eigenvalue 1
        o.count = held ? n - 12 : n - 6, o.seeds = MODES_SEED_RANDOM, o.fields = 5, o.ritz = true;
        assert_ok(modes_krylov(&p.problem, &o, NULL, &basis, &report));
        int first = held ? identities : 6;
        assert_true(values[first] > 2);
        for (int j = 0; j < o.count; j++) worst = fmax(worst, fabs(basis.omega2[j] / values[first + j] - 1));
        printf("  %s: %d modes of %d dofs, eigenvalues %.1e, U^T M U - I %.1e\n", held ? "held" : "free", o.count, n,
               worst, report.orthogonalise.orthogonality);
        assert_true(worst < 1e-8 && report.orthogonalise.orthogonality < 1e-12);
        o.count++;
        assert_fails(modes_krylov(&p.problem, &o, NULL, &basis, NULL), FEM_BAD_INPUT, "the body has only");
        assert_int_equal(basis.r, o.count - 1); // the old basis is still there
        fem_free(K), fem_free(M), fem_free(values);
        modes_basis_destroy(&basis);
        free_report(&report);
        sample_free(&p);
    }
}

// principal angles of planes that were turned by known angles
static void test_angles(void **state) {
    (void)state;
    sample                      p;
    uint64_t                    seed = 5;
    int                         rank = 0;
    const double                turned[3] = {1e-7, 0.3, 1.5};
    double                      angles[3], swapped[3], covered[3];
    modes_orthogonalise_options o = modes_orthogonalise_default_options();
    sample_box(&p, FEM_T4, 4, 3, 2, NULL);
    double *Q = fem_alloc(8 * (size_t)p.n, sizeof *Q), *B = fem_calloc(3 * (size_t)p.n, sizeof *B);
    test_random_fill(&seed, 8 * p.n, 1, Q);
    assert_ok(modes_orthogonalise(&p.problem, &o, 8, Q, &rank, NULL));
    for (int j = 0; j < 3; j++) { // column j of B is column j of A = Q(:, 0..4) turned towards Q(:, 5 + j)
        dense_axpy(p.n, cos(turned[j]), Q + j * p.n, B + j * p.n);
        dense_axpy(p.n, sin(turned[j]), Q + (5 + j) * p.n, B + j * p.n);
    }
    assert_ok(modes_principal_angles(&p.problem, 5, Q, 3, B, angles));
    assert_ok(modes_principal_angles(&p.problem, 3, B, 5, Q, swapped));
    assert_ok(modes_coverage(&p.problem, 5, Q, 3, B, covered));
    for (int j = 0; j < 3; j++) {
        printf("  angle %.1e: found %.1e off, coverage %.6f\n", turned[j], angles[j] - turned[j], covered[j]);
        assert_true(fabs(angles[j] - turned[j]) < 1e-9 && fabs(swapped[j] - turned[j]) < 1e-9);
        assert_true(fabs(covered[j] - cos(turned[j]) * cos(turned[j])) < 1e-12);
    }
    fem_free(Q), fem_free(B);
    sample_free(&p);
}

// ---- seeds ---------------------------------------------------------------------------------------------------------

// mass norm of K^-1 M U_0 for the six rigid motions of a free box, or else for a twist
static double response_size(int refinement, bool rigid, modes_border border) {
    sample         p;
    int            count = 6;
    double        *U0 = NULL;
    modes_inverse *inverse = NULL;
    const double   low[3] = {0, 0, 0}, high[3] = {2, 1, 0.8};
    const int      cells[3] = {5 * refinement, 3 * refinement, 2 * refinement};
    p = (sample){0};
    assert_ok(fem_generate_box(&p.mesh, FEM_T4, low, high, cells));
    sample_matrices(&p);
    if (rigid) {
        assert_ok(modes_rigid(&p.problem, &U0, &count));
    } else { // x y e_z, whose response is a twist
        count = 1, U0 = fem_calloc((size_t)p.n, sizeof *U0);
        for (int v = 0; v < p.mesh.vertex_count; v++)
            U0[3 * v + 2] = (p.mesh.vertices[3 * v] - 1) * (p.mesh.vertices[3 * v + 1] - 0.5);
    }
    double *X = fem_alloc((size_t)count * (size_t)p.n, sizeof *X), *MX = fem_alloc((size_t)count * (size_t)p.n, 8);
    assert_ok(modes_inverse_create(&inverse, &p.problem, border));
    fem_sparse_multiply(&p.M, count, U0, X);
    assert_ok(modes_inverse_solve(inverse, count, X, X));
    fem_sparse_multiply(&p.M, count, X, MX);
    double size = sqrt(dense_dot(count * p.n, X, MX));
    modes_inverse_destroy(inverse);
    fem_free(X), fem_free(MX), fem_free(U0);
    sample_free(&p);
    return size;
}

// rigid seeds are of no use to a free body: with the mass border their response is zero; with the plain one it is an
// artefact of the mesh, which goes away when the mesh becomes finer, where that of a real load does not
static void test_rigid_seeds_of_free_body(void **state) {
    (void)state;
    sample               p;
    int                  count = 0;
    double              *R = NULL;
    modes_krylov_options o = modes_krylov_default_options();
    modes_basis          basis = {0};
    sample_box(&p, FEM_T4, 6, 4, 3, NULL);
    o.seeds = MODES_SEED_RIGID;
    assert_fails(modes_krylov(&p.problem, &o, NULL, &basis, NULL), FEM_BAD_INPUT, "quadratic or random seeds");
    printf("  %s\n", fem_message());
    assert_ok(modes_rigid(&p.problem, &R, &count));
    o.seeds = 0, o.vector_count = count, o.vectors = R; // in disguise
    for (int border = 0; border < 2; border++) {
        o.border = (modes_border)border;
        assert_fails(modes_krylov(&p.problem, &o, NULL, &basis, NULL), FEM_BAD_INPUT, "none of the 6 seeds");
    }
    o.vector_count = 0;
    assert_ok(modes_krylov(&p.problem, &o, NULL, &basis, NULL)); // the default seeds are quadratic
    double twist[3], mass[3], plain[3];
    for (int k = 0; k < 3; k++) {
        twist[k] = response_size(1 << k, false, MODES_BORDER_MASS);
        mass[k] = response_size(1 << k, true, MODES_BORDER_MASS);
        plain[k] = response_size(1 << k, true, MODES_BORDER_PLAIN);
        printf("  refined %dx: response to rigid seeds %.1e (mass border), %.2e (plain border); to a twist %.2e\n",
               1 << k, mass[k], plain[k], twist[k]);
        assert_true(mass[k] < 1e-12 * twist[k]);
    }
    assert_true(plain[1] < 0.7 * plain[0] && plain[2] < 0.7 * plain[1]); // O(h)
    assert_true(twist[2] > 0.9 * twist[1]);
    fem_free(R);
    modes_basis_destroy(&basis);
    sample_free(&p);
}

// with the mass border modes of a free body carry no momentum; with the plain one they have no plain rigid part
static void test_borders(void **state) {
    (void)state;
    for (int border = 0; border < 2; border++) {
        sample               p;
        int                  count = 0;
        double              *R = NULL, worst[2] = {0, 0}, product[60];
        modes_krylov_options o = modes_krylov_default_options();
        modes_basis          basis = {0};
        sample_box(&p, FEM_H8, 6, 3, 2, NULL);
        double *MR = fem_alloc(6 * (size_t)p.n, sizeof *MR);
        assert_ok(modes_rigid(&p.problem, &R, &count));
        fem_sparse_multiply(&p.M, 6, R, MR);
        o.count = 10, o.border = (modes_border)border, o.seeds = MODES_SEED_RANDOM;
        assert_ok(modes_krylov(&p.problem, &o, NULL, &basis, NULL));
        for (int plain = 0; plain < 2; plain++) {
            dense_gemm(true, false, 6, 10, p.n, 1, plain ? R : MR, basis.U, 0, product);
            for (int i = 0; i < 60; i++) worst[plain] = fmax(worst[plain], fabs(product[i]));
        }
        printf("  %s border: |R^T M U| %.1e, |R^T U| %.1e\n", border ? "plain" : "mass", worst[0], worst[1]);
        assert_true(worst[border] < 1e-9 * worst[1 - border]);
        fem_free(R), fem_free(MR);
        modes_basis_destroy(&basis);
        sample_free(&p);
    }
}

// ---- interfaces ----------------------------------------------------------------------------------------------------

static modes_interface face(const sample *p, const char *name, double mass) {
    const fem_set *set = fem_mesh_vertex_set(&p->mesh, name);
    return (modes_interface){.count = set->count, .vertices = set->items, .mass = mass};
}

// wrenches have unit resultants about the middle of the interface, also with areas that differ
static void test_wrenches(void **state) {
    (void)state;
    sample   p;
    uint64_t seed = 4;
    sample_box(&p, FEM_T4, 4, 3, 3, NULL);
    modes_interface f = face(&p, "x1", 1);
    double         *areas = fem_alloc((size_t)f.count, sizeof *areas), *F = fem_alloc(6 * (size_t)p.n, sizeof *F);
    double          centre[3] = {0}, total = 0, worst = 0;
    for (int i = 0; i < f.count; i++) areas[i] = 1.5 + test_random(&seed), total += areas[i];
    f.areas = areas;
    for (int i = 0; i < f.count; i++) vec3_axpy(centre, areas[i] / total, p.mesh.vertices + 3 * f.vertices[i]);
    assert_ok(modes_interface_wrenches(&p.problem, &f, F));
    for (int k = 0; k < 6; k++) {
        double wrench[6] = {0};
        for (int v = 0; v < p.mesh.vertex_count; v++) {
            double d[3], moment[3], *force = F + k * p.n + 3 * v;
            vec3_sub(d, p.mesh.vertices + 3 * v, centre);
            vec3_cross(moment, d, force);
            vec3_axpy(wrench, 1, force), vec3_axpy(wrench + 3, 1, moment);
        }
        for (int i = 0; i < 6; i++) worst = fmax(worst, fabs(wrench[i] - (i == k)));
    }
    printf("  resultants off by %.1e\n", worst);
    assert_true(worst < 1e-12);
    fem_free(areas), fem_free(F);
    sample_free(&p);
}

// the basis holds K^-1 F of every interface, which it does not without; held and free (there with inertia relief)
static void test_interface_responses(void **state) {
    (void)state;
    for (int held = 0; held < 2; held++) {
        sample               p;
        modes_krylov_options o = modes_krylov_default_options();
        modes_krylov_report  report = {0};
        modes_basis          with = {0}, without = {0};
        double               lost = 0, lost_without = 0;
        sample_box(&p, FEM_T4, 6, 3, 3, NULL);
        if (held) sample_hold(&p, "x0");
        int             n = p.n;
        modes_interface interfaces[2] = {face(&p, "x1", 3), face(&p, "y1", 1)};
        o.count = 18, o.interface_count = 2, o.interfaces = interfaces;
        assert_ok(modes_krylov(&p.problem, &o, NULL, &with, &report));
        o.interface_count = 0;
        assert_ok(modes_krylov(&p.problem, &o, NULL, &without, NULL));
        double *K = sample_dense(&p.K), *M = sample_dense(&p.M), *values = fem_alloc((size_t)n, sizeof *values);
        double *F = fem_alloc(6 * (size_t)n, sizeof *F), *x = fem_alloc((size_t)n, sizeof *x);
        dense_hold(n, p.fixed, K), dense_hold(n, p.fixed, M);
        assert_ok(dense_generalized_eigen(n, K, M, values));
        for (int f = 0; f < 2; f++) {
            assert_ok(modes_interface_wrenches(&p.problem, interfaces + f, F));
            for (int k = 0; k < 6; k++) {
                memset(x, 0, (size_t)n * sizeof *x);
                for (int j = 0; j < n; j++) { // sum over all elastic modes
                    if (values[j] < 1e-3 || (held && fabs(values[j] - 1) < 1e-9)) continue;
                    dense_axpy(n, dense_dot(n, K + j * n, F + k * n) / values[j], K + j * n, x);
                }
                lost = fmax(lost, not_covered(&p, 18, with.U, x));
                lost_without = fmax(lost_without, not_covered(&p, 18, without.U, x));
            }
        }
        printf("  %s: 12 static responses lost %.1e with interface seeds, %.1e without\n", held ? "held" : "free", lost,
               lost_without);
        assert_true(lost < 1e-8 && lost_without > 0.01);
        assert_int_equal(report.interface_kept, 12);
        assert_true(report.interface_share == 1);
        modes_basis_destroy(&with), modes_basis_destroy(&without);
        free_report(&report);
        fem_free(K), fem_free(M), fem_free(values), fem_free(F), fem_free(x);
        sample_free(&p);
    }
}

// four responses are kept of twelve: the best four in the weighted norm (Eckart, Young), so the heavy interface
// wins, whichever it is
static void examine_compression(sample *p, modes_norm norm) {
    int               n = p->n;
    double            lost[2][2]; // heavy interface, interface looked at
    const fem_sparse *N = norm == MODES_NORM_MASS ? &p->M : &p->K;
    modes_inverse    *inverse = NULL;
    double           *X = fem_alloc(12 * (size_t)n, sizeof *X), *MX = fem_alloc(12 * (size_t)n, sizeof *MX);
    assert_ok(modes_inverse_create(&inverse, &p->problem, MODES_BORDER_MASS));
    for (int heavy = 0; heavy < 2; heavy++) {
        modes_interface      f[2] = {face(p, "x1", heavy == 0 ? 50 : 1), face(p, "y1", heavy == 1 ? 50 : 1)};
        modes_krylov_options o = modes_krylov_default_options();
        modes_krylov_report  report = {0};
        modes_basis          basis = {0};
        double               gram[144], values[12], best = 0, all = 0, rest = 0;
        f[0].lever = f[1].lever = 0.5;
        o.count = 4, o.interface_count = 2, o.interfaces = f, o.interface_seeds = 4, o.inverse = inverse;
        o.norm = norm;
        assert_ok(modes_krylov(&p->problem, &o, NULL, &basis, &report));
        for (int i = 0; i < 2; i++) {
            assert_ok(modes_interface_wrenches(&p->problem, f + i, X + 6 * i * n));
            for (int k = 0; k < 6; k++) dense_scale(n, f[i].mass * (k < 3 ? 1 : 0.5), X + (6 * i + k) * n);
        }
        assert_ok(modes_inverse_solve(inverse, 12, X, X));
        double A[16], C[48], D[48]; // what the basis misses: x.N x - c.A^-1 c, A = U^T N U, c = U^T N x
        fem_sparse_multiply(N, 4, basis.U, MX);
        dense_gemm(true, false, 4, 4, n, 1, basis.U, MX, 0, A);
        fem_sparse_multiply(N, 12, X, MX);
        dense_gemm(true, false, 12, 12, n, 1, X, MX, 0, gram);
        dense_gemm(true, false, 4, 12, n, 1, basis.U, MX, 0, C);
        memcpy(D, C, sizeof D);
        assert_ok(dense_cholesky(4, A));
        dense_cholesky_solve(4, A, 12, D);
        double missed[2] = {0}, energy[2] = {0}; // of the responses of each interface, in this norm
        for (int j = 0; j < 12; j++) {
            missed[j / 6] += gram[13 * j] - dense_dot(4, C + 4 * j, D + 4 * j);
            energy[j / 6] += gram[13 * j];
        }
        rest = missed[0] + missed[1], all = energy[0] + energy[1];
        assert_ok(dense_symmetric_eigen(12, gram, values));
        for (int j = 0; j < 8; j++) best += values[j];
        for (int i = 0; i < 2; i++) lost[heavy][i] = missed[i] / energy[i];
        printf("  %s norm, heavy %s: lost %.3e, the least possible is %.3e, reported %.3e; of x1 %.3f, of y1 %.3f\n",
               norm == MODES_NORM_MASS ? "mass" : "energy", heavy ? "y1" : "x1", rest / all, best / all,
               1 - report.interface_share, lost[heavy][0], lost[heavy][1]);
        assert_true(fabs(rest - best) < 1e-6 * all && fabs(1 - report.interface_share - best / all) < 1e-9);
        assert_int_equal(report.interface_kept, 4);
        assert_int_equal(basis.r, 4);
        modes_basis_destroy(&basis);
        free_report(&report);
    }
    assert_true(lost[0][0] < lost[1][0] && lost[1][1] < lost[0][1]);
    modes_inverse_destroy(inverse);
    fem_free(X), fem_free(MX);
}

static void test_interface_compression(void **state) {
    (void)state;
    sample p;
    sample_box(&p, FEM_T4, 6, 3, 3, NULL);
    sample_hold(&p, "x0");
    examine_compression(&p, MODES_NORM_MASS);
    examine_compression(&p, MODES_NORM_ENERGY);
    sample_free(&p);
}

// ---- what is refused -----------------------------------------------------------------------------------------------

// seeds in an invariant subspace end the recursion with a message, not with fewer modes
static void test_breakdown(void **state) {
    (void)state;
    sample                p;
    modes_krylov_options  o = modes_krylov_default_options();
    modes_lanczos_options lo = modes_lanczos_default_options();
    modes_basis           basis = {0}, exact = {0};
    sample_box(&p, FEM_T4, 7, 3, 3, NULL);
    sample_hold(&p, "x0");
    lo.count = 3;
    assert_ok(modes_lanczos(&p.problem, &lo, NULL, &exact, NULL));
    for (int method = 0; method < 3; method++) {
        o.orthogonalise.method = (modes_gram_schmidt)method;
        o.count = 3, o.vector_count = 3, o.vectors = exact.U;
        assert_ok(modes_krylov(&p.problem, &o, NULL, &basis, NULL));
        o.count = 4;
        assert_fails(modes_krylov(&p.problem, &o, NULL, &basis, NULL), FEM_BAD_INPUT, "has only 3 dimensions");
        o.seeds = MODES_SEED_Z; // together with another seed they lead on
        modes_krylov_report report = {0};
        o.count = 12;
        assert_ok(modes_krylov(&p.problem, &o, NULL, &basis, &report));
        printf("  %-5s with one more seed %d modes, %d dependent columns dropped\n",
               modes_gram_schmidt_name(o.orthogonalise.method), basis.r, report.dropped);
        assert_true(basis.r == 12 && report.dropped >= 3 && mass_orthogonality(&p, 12, basis.U) < 1e-9);
        o.seeds = 0;
        free_report(&report);
    }
    modes_basis_destroy(&basis), modes_basis_destroy(&exact);
    sample_free(&p);
}

static bool stop_at_once(void *context, const char *what, double fraction) {
    (void)what, (void)fraction;
    return --*(int *)context > 0;
}

static void test_options(void **state) {
    (void)state;
    sample               p, q;
    modes_basis          basis = {0};
    modes_krylov_options good = modes_krylov_default_options(), o;
    modes_inverse       *inverse = NULL;
    int                  calls = 2, line[3] = {0, 1, 2}, outside[3] = {0, 1, 100000};
    double               areas[3] = {1, 0, 1};
    fem_progress         progress = {.report = stop_at_once, .context = &calls};
    sample_box(&p, FEM_T4, 4, 3, 2, NULL), sample_box(&q, FEM_T4, 4, 3, 2, NULL);
    sample_hold(&p, "x0"), sample_hold(&q, "x0");
    modes_interface f;
    assert_ok(modes_inverse_create(&inverse, &q.problem, MODES_BORDER_MASS));
#define REFUSED(change, text)                                                                                          \
    o = good, f = face(&p, "x1", 1);                                                                                   \
    change;                                                                                                            \
    assert_fails(modes_krylov(&p.problem, &o, NULL, &basis, NULL), FEM_BAD_INPUT, text)
#define INTERFACE o.interface_count = 1, o.interfaces = &f
    REFUSED(o.count = 0, "krylov.count is 0");
    REFUSED(o.count = 1000000, "1000000 modes were asked for, but the body has only");
    REFUSED(o.seeds = 1024, "krylov.seeds is 0x400");
    REFUSED(o.fields = 0, "krylov.fields is 0");
    REFUSED(o.vector_count = 2, "krylov.vector_count is 2");
    REFUSED(o.interface_count = 2, "krylov.interface_count is 2");
    REFUSED(o.interface_seeds = -1, "krylov.interface_seeds is -1");
    REFUSED(o.norm = (modes_norm)2, "krylov.norm is 2, expected 0 or 1");
    REFUSED(o.inverse = inverse, "belongs to another problem");
    REFUSED(o.orthogonalise.passes = -1, "orthogonalise.passes");
    REFUSED(INTERFACE; f.mass = 0, "interface 0: the mass on an interface is 0");
    REFUSED(INTERFACE; f.lever = -1, "lever of an interface is -1");
    REFUSED(INTERFACE; f.count = 2, "interface 0: 2 vertices cannot carry moments");
    REFUSED(INTERFACE; f.count = 3; f.vertices = line, "lie on a line");
    REFUSED(INTERFACE; f.count = 3; f.vertices = outside, "is vertex 100000");
    REFUSED(INTERFACE; f.count = 3; f.areas = areas, "point 1 of an interface has the area 0");
    REFUSED(INTERFACE; f = face(&p, "x0", 1), "every point of an interface is held");
    o = good;
    assert_fails(modes_krylov(&p.problem, &o, &progress, &basis, NULL), FEM_STOPPED, "stopped");
    modes_inverse_destroy(inverse);
    sample_free(&p), sample_free(&q);
}

// bodies that cannot be done: isolated vertices, no mass, no stiffness, several components, nothing free
static void test_bad_bodies(void **state) {
    (void)state;
    sample               p;
    modes_basis          basis = {0};
    modes_krylov_options o = modes_krylov_default_options();
    sample_two_boxes(&p);
    assert_ok(modes_krylov(&p.problem, &o, NULL, &basis, NULL)); // quadratic seeds, twelve rigid motions left out
    o.seeds = MODES_SEED_X;
    assert_fails(modes_krylov(&p.problem, &o, NULL, &basis, NULL), FEM_BAD_INPUT, "leave 12 rigid motions");
    for (int i = 0; i < 20; i++) memset(p.fixed + 3 * i, 1, 3); // the first box held, the second not
    assert_fails(modes_krylov(&p.problem, &o, NULL, &basis, NULL), FEM_BAD_INPUT, "leave 6 rigid motions");
    printf("  %s\n", fem_message());
    assert_fails(modes_krylov(&p.problem, &o, NULL, &basis, NULL), FEM_BAD_INPUT, "falls into 2 pieces");
    sample_free(&p);

    o.seeds = 0;
    sample_box(&p, FEM_T4, 4, 3, 2, NULL);
    sample_hold(&p, "x0");
    int last = p.mesh.vertex_count - 1; // the last vertex loses its elements
    for (int e = 0; e < p.mesh.element_count; e++)
        for (int k = 0; k < 4; k++)
            if (p.mesh.elements[4 * e + k] == last) p.mesh.elements[4 * e + k] = 0;
    assert_fails(modes_krylov(&p.problem, &o, NULL, &basis, NULL), FEM_BAD_INPUT, "belongs to no element");
    printf("  %s\n", fem_message());
    sample_free(&p);

    sample_box(&p, FEM_T4, 4, 3, 2, NULL);
    sample_hold(&p, "x0");
    fem_sparse_zero(&p.M);
    assert_fails(modes_krylov(&p.problem, &o, NULL, &basis, NULL), FEM_BAD_INPUT, "has no mass: the density");
    printf("  %s\n", fem_message());
    fem_body_mass(p.body, FEM_MASS_LUMPED, &p.M);
    assert_ok(modes_krylov(&p.problem, &o, NULL, &basis, NULL)); // lumped masses do too
    fem_sparse_zero(&p.K);
    assert_fails(modes_krylov(&p.problem, &o, NULL, &basis, NULL), FEM_INDEFINITE, "");
    printf("  %s\n", fem_message());
    memset(p.fixed, 1, (size_t)p.n);
    assert_fails(modes_krylov(&p.problem, &o, NULL, &basis, NULL), FEM_BAD_INPUT, "nothing that could vibrate");
    sample_free(&p);
    modes_basis_destroy(&basis);
}

// the same bits with one thread and with three
static void test_threads(void **state) {
    (void)state;
    sample               p;
    modes_krylov_options o = modes_krylov_default_options();
    modes_basis          a = {0}, b = {0};
    sample_box(&p, FEM_T4, 8, 4, 3, NULL);
    o.count = 40, o.ritz = true;
    fem_set_threads(1);
    assert_ok(modes_krylov(&p.problem, &o, NULL, &a, NULL));
    fem_set_threads(3);
    assert_ok(modes_krylov(&p.problem, &o, NULL, &b, NULL));
    fem_set_threads(0);
    assert_memory_equal(a.U, b.U, 40 * (size_t)p.n * sizeof *a.U);
    modes_basis_destroy(&a), modes_basis_destroy(&b);
    sample_free(&p);
}

// a refused allocation anywhere is reported and leaves nothing behind
static void test_allocation_failure(void **state) {
    (void)state;
    sample p;
    sample_box(&p, FEM_T4, 4, 2, 2, NULL);
    modes_interface f = face(&p, "x1", 1);
    for (int method = 0; method < 3; method += 2) {
        modes_krylov_options o = modes_krylov_default_options();
        long                 failures = 0;
        o.count = 12, o.ritz = true, o.interface_count = 1, o.interfaces = &f, o.interface_seeds = 4;
        o.seeds = MODES_SEED_RANDOM, o.fields = 3, o.orthogonalise.method = (modes_gram_schmidt)method;
        for (;; failures++) {
            modes_basis         basis = {0};
            modes_krylov_report report = {0};
            long                before = fem_memory_blocks();
            fem_memory_fail_after(failures);
            fem_status status = modes_krylov(&p.problem, &o, NULL, &basis, &report);
            fem_memory_fail_after(-1);
            modes_basis_destroy(&basis);
            free_report(&report);
            assert_int_equal(fem_memory_blocks(), before);
            if (status == FEM_OK) break;
            assert_int_equal(status, FEM_NO_MEMORY);
        }
        printf("  %-5s %ld allocations refused one after the other\n", modes_gram_schmidt_name(o.orthogonalise.method),
               failures);
        assert_true(failures > 60);
    }
    sample_free(&p);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pseudo_inverse),
        cmocka_unit_test(test_recursion),
        cmocka_unit_test(test_against_lanczos),
        cmocka_unit_test(test_ritz),
        cmocka_unit_test(test_whole_space),
        cmocka_unit_test(test_angles),
        cmocka_unit_test(test_rigid_seeds_of_free_body),
        cmocka_unit_test(test_borders),
        cmocka_unit_test(test_wrenches),
        cmocka_unit_test(test_interface_responses),
        cmocka_unit_test(test_interface_compression),
        cmocka_unit_test(test_breakdown),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_bad_bodies),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_allocation_failure),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
