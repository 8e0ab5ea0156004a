// Derivatives of modes: against the nonlinear static solution, differences of K and of tangent modes, VegaFEM; every
// material, both elements, held and free; options, failures, threads.
#include "tests/modes_case.h"

#include <cjson/cJSON.h>

static const int small_cells[3] = {3, 2, 2};

// the sweep over many pairs gives what one fem_body_second after the other gives, in any order and on any threads
static void test_pairs(void **state) {
    (void)state;
    enum { A = 5, B = 19, PAIRS = 60 };
    for (int type = FEM_T4; type <= FEM_H8; type++)
        for (int kind = 0; kind < FEM_MATERIAL_KINDS; kind++) {
            sample   s;
            fem_pair pair[PAIRS];
            uint64_t random = 3;
            double   worst = 0, size = 0;
            sample_create(&s, (fem_element)type, small_cells, (fem_material_kind)kind, false, 0);
            size_t  n = (size_t)s.n;
            double *X = fem_alloc(n * A, 8), *Y = fem_alloc(n * B, 8), *out = fem_alloc(n * PAIRS, 8);
            double *again = fem_alloc(n * PAIRS, 8), *one = fem_alloc(n, 8), *zero = fem_calloc(n, 8);
            test_random_fill(&random, (int)n * A, 0.1, X);
            test_random_fill(&random, (int)n * B, 0.1, Y);
            for (int p = 0; p < PAIRS; p++) pair[p] = (fem_pair){.a = p * p % A, .b = 7 * p % B};
            fem_set_threads(1);
            assert_ok(fem_body_second_pairs(s.body, A, X, B, Y, PAIRS, pair, out));
            fem_set_threads(3);
            assert_ok(fem_body_second_pairs(s.body, A, X, B, Y, PAIRS, pair, again));
            fem_set_threads(0);
            assert_memory_equal(out, again, n * PAIRS * sizeof *out);
            for (int p = 0; p < PAIRS; p++) {
                fem_body_second(s.body, zero, column(X, s.n, pair[p].a), column(Y, s.n, pair[p].b), one);
                for (size_t i = 0; i < n; i++) {
                    worst = fmax(worst, fabs(one[i] - out[(size_t)p * n + i]));
                    size = fmax(size, fabs(one[i]));
                }
            }
            printf("  %s %-13s %.1e of %.1e\n", element_name((fem_element)type),
                   fem_material_kind_name((fem_material_kind)kind), worst, size);
            assert_true(worst <= 1e-13 * size && (size > 1) == (kind != FEM_LINEAR));
            pair[7].b = B;
            assert_fails(fem_body_second_pairs(s.body, A, X, B, Y, PAIRS, pair, out), FEM_BAD_INPUT,
                         "pair 7 is (4, 19)");
            fem_free(X), fem_free(Y), fem_free(out), fem_free(again), fem_free(one), fem_free(zero);
            sample_destroy(&s);
        }
}

static double largest(int n, const double *x) {
    double most = 0;
    for (int i = 0; i < n; i++) most = fmax(most, fabs(x[i]));
    return most;
}

static void derive(const sample *s, const modes_derivative_options *options, modes_pool *pool,
                   modes_derivative_report *report) {
    assert_ok(modes_derivatives(&s->problem, s->body, s->inverse, &s->basis, options, NULL, pool, report));
}

static const double *find(const modes_pool *pool, int order, int a, int b, int c, int d) {
    const int wanted[4] = {a, b, c, d};
    for (int j = 0; j < pool->count; j++) {
        bool same = pool->origin[j].order == order;
        for (int k = 0; k <= order && same; k++) same = pool->origin[j].mode[k] == wanted[k];
        if (same) return column(pool->X, pool->n, j);
    }
    fail_msg("no derivative of order %d", order);
    return NULL;
}

// The nonlinear static solution u of f(u) = K (x psi_i + y psi_j), tightly.
static void static_solution(const sample *s, int i, int j, double x, double y, double *u) {
    solver_full   *solver = NULL;
    solver_options options = solver_default_options();
    double        *a = fem_alloc((size_t)s->n, 8), *load = fem_alloc((size_t)s->n, 8);
    options.newton_tolerance = 1e-13, options.newton_iterations = 50;
    for (int k = 0; k < s->n; k++) a[k] = x * column(s->basis.U, s->n, i)[k] + y * column(s->basis.U, s->n, j)[k];
    fem_sparse_multiply(&s->K, 1, a, load);
    for (int k = 0; k < s->n; k++)
        if (s->fixed[k]) load[k] = 0;
    assert_ok(solver_full_create(&solver, s->body, s->fixed, &options));
    solver_full_set_load(solver, load);
    assert_ok(solver_full_static(solver, NULL));
    memcpy(u, solver_full_state(solver)->u, (size_t)s->n * sizeof *u);
    solver_full_destroy(solver);
    fem_free(a), fem_free(load);
}

// |(u(e,e) - u(e,-e) - u(-e,e) + u(-e,-e))/(4 e^2) - phi_ij| / |phi_ij|
static double static_error(const sample *s, int i, int j, double e, const double *phi) {
    double *sum = fem_calloc((size_t)s->n, 8), *u = fem_alloc((size_t)s->n, 8);
    for (int k = 0; k < 4; k++) {
        double x = k & 1 ? e : -e, y = k & 2 ? e : -e;
        static_solution(s, i, j, x, y, u);
        dense_axpy(s->n, (x * y > 0 ? 1 : -1) / (4 * e * e), u, sum);
    }
    double error = test_relative_error(s->n, sum, phi);
    fem_free(sum), fem_free(u);
    return error;
}

// modal derivatives are the second derivatives of the nonlinear static solution, to second order
static void test_static(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++)
        for (int kind = FEM_STVK; kind < FEM_MATERIAL_KINDS; kind++) {
            sample                   s;
            modes_pool               pool = {0};
            modes_derivative_options options = modes_derivative_default_options();
            sample_create(&s, (fem_element)type, small_cells, (fem_material_kind)kind, true, 3);
            derive(&s, &options, &pool, NULL);
            const double *phi = find(&pool, 1, 0, 1, 0, 0);
            double        e = 0.01 / largest(s.n, s.basis.U); // m of displacement
            double        e1 = static_error(&s, 0, 1, e, phi), e2 = static_error(&s, 0, 1, e / 2, phi);
            printf("  %s %-13s phi_01: %.1e, %.1e, order %.2f\n", element_name((fem_element)type),
                   fem_material_kind_name((fem_material_kind)kind), e1, e2, log2(e1 / e2));
            assert_true(e2 < 0.02 && log2(e1 / e2) > 1.9);
            modes_pool_destroy(&pool);
            sample_destroy(&s);
        }
}

// ---- dense checkers
// --------------------------------------------------------------------------------------------------

// Everything dense about a small body: Q spans what is mass-orthogonal to the rigid motions.
typedef struct dense_body {
    const sample *s;
    int           m, rigid, k; // free degrees of freedom, rigid motions, columns of Q
    int          *dofs;
    double       *Q; // m x k, vibration modes
} dense_body;

static void dense_create(dense_body *d, const sample *s, int rigid) {
    *d = (dense_body){.s = s, .rigid = rigid};
    d->dofs = fem_alloc((size_t)s->n, sizeof *d->dofs);
    d->m = sample_free(s, d->dofs), d->k = d->m - rigid;
    double *K = sample_dense(s, &s->K, d->m, d->dofs), *M = sample_dense(s, &s->M, d->m, d->dofs);
    double *values = fem_alloc((size_t)d->m, sizeof *values);
    assert_ok(dense_generalized_eigen(d->m, K, M, values));
    d->Q = fem_copy(column(K, d->m, rigid), (size_t)d->m * (size_t)d->k, sizeof *d->Q);
    fem_free(K), fem_free(M), fem_free(values);
}

static void dense_destroy(dense_body *d) { fem_free(d->dofs), fem_free(d->Q); }

static void stiffness_at(const sample *s, const double *direction, double e, fem_sparse *K) {
    double *u = fem_alloc((size_t)s->n, 8);
    for (int i = 0; i < s->n; i++) u[i] = e * direction[i];
    fem_body_evaluate(s->body, u, NULL, NULL, K);
    fem_free(u);
}

// x = Q (Q^T K(e direction) Q)^-1 Q^T b: the inverse, or on a free body that of the bordered system
static void dense_solve(const dense_body *d, const double *direction, double e, const double *b, double *x) {
    const sample *s = d->s;
    int           m = d->m, k = d->k;
    fem_sparse    K = {0};
    assert_ok(fem_body_matrix(s->body, &K));
    stiffness_at(s, direction, e, &K);
    double *D = sample_dense(s, &K, m, d->dofs), *T = fem_alloc((size_t)m * (size_t)k, 8);
    double *R = fem_alloc((size_t)k * (size_t)k, 8), *c = fem_alloc((size_t)m, 8), *y = fem_alloc((size_t)m, 8);
    dense_gemm(false, false, m, k, m, 1, D, d->Q, 0, T);
    dense_gemm(true, false, k, k, m, 1, d->Q, T, 0, R);
    for (int i = 0; i < m; i++) y[i] = b[d->dofs[i]];
    dense_gemv_t_set(m, k, 1, d->Q, y, c);
    assert_ok(dense_cholesky(k, R));
    dense_cholesky_solve(k, R, 1, c);
    dense_gemv_set(m, k, 1, d->Q, c, y);
    memset(x, 0, (size_t)s->n * sizeof *x);
    for (int i = 0; i < m; i++) x[d->dofs[i]] = y[i];
    fem_free(D), fem_free(T), fem_free(R), fem_free(c), fem_free(y);
    fem_sparse_destroy(&K);
}

// |(x(e) - x(-e))/(2 e) - phi| / |phi| with x(e) = K(e psi_j)^-1 (K psi_i)
static double inverse_error(const dense_body *d, int i, int j, double e, const double *phi) {
    const sample *s = d->s;
    const double *psi_i = column(s->basis.U, s->n, i), *psi_j = column(s->basis.U, s->n, j);
    double       *b = fem_alloc((size_t)s->n, 8), *x = fem_alloc((size_t)s->n, 8), *y = fem_alloc((size_t)s->n, 8);
    fem_sparse_multiply(&s->K, 1, psi_i, b);
    dense_solve(d, psi_j, e, b, x);
    dense_solve(d, psi_j, -e, b, y);
    for (int k = 0; k < s->n; k++) x[k] = (x[k] - y[k]) / (2 * e);
    double error = test_relative_error(s->n, x, phi);
    fem_free(b), fem_free(x), fem_free(y);
    return error;
}

// modal derivatives are those of K(e psi_j)^-1 (K psi_i), to second order, held and free; symmetric; a linear material
// has none
static void test_inverse_differences(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++)
        for (int kind = 0; kind < FEM_MATERIAL_KINDS; kind++)
            for (int held = 0; held < 2; held++) {
                sample                   s;
                dense_body               d;
                modes_pool               pool = {0};
                modes_derivative_options options = modes_derivative_default_options();
                const fem_pair           both[2] = {{.a = 0, .b = 2}, {.a = 2, .b = 0}};
                options.pairs = both, options.pair_count = 2, options.linear = false;
                sample_create(&s, (fem_element)type, small_cells, (fem_material_kind)kind, held, 4);
                dense_create(&d, &s, held ? 0 : 6);
                derive(&s, &options, &pool, NULL);
                assert_int_equal(pool.count, 2);
                double *phi = pool.X, *transposed = column(pool.X, s.n, 1);
                if (kind == FEM_LINEAR) {
                    assert_true(largest(2 * s.n, pool.X) == 0);
                } else {
                    double e = 0.002 / largest(s.n, s.basis.U), symmetry = test_relative_error(s.n, phi, transposed);
                    double e1 = inverse_error(&d, 0, 2, e, phi), e2 = inverse_error(&d, 0, 2, e / 2, phi);
                    printf("  %s %-13s %s: %.1e, %.1e, order %.2f; symmetric to %.0e\n",
                           element_name((fem_element)type), fem_material_kind_name((fem_material_kind)kind),
                           held ? "held" : "free", e1, e2, log2(e1 / e2), symmetry);
                    assert_true(e2 < 2e-3 && log2(e1 / e2) > 1.95 && symmetry < 1e-12);
                }
                modes_pool_destroy(&pool);
                dense_destroy(&d);
                sample_destroy(&s);
            }
}

// Mode i of K(e psi_j) by LAPACK, mass-normalised, with the sign of psi_i.
static void tangent_mode(const dense_body *d, int i, int j, double e, double *psi) {
    const sample *s = d->s;
    int           m = d->m, best = 0;
    fem_sparse    K = {0};
    assert_ok(fem_body_matrix(s->body, &K));
    stiffness_at(s, column(s->basis.U, s->n, j), e, &K);
    double *D = sample_dense(s, &K, m, d->dofs), *M = sample_dense(s, &s->M, m, d->dofs);
    double *values = fem_alloc((size_t)m, 8), *x = fem_calloc((size_t)s->n, 8), *Mx = fem_alloc((size_t)s->n, 8);
    double  most = 0;
    assert_ok(dense_generalized_eigen(m, D, M, values));
    fem_sparse_multiply(&s->M, 1, column(s->basis.U, s->n, i), Mx);
    for (int c = 0; c < m; c++) {
        double overlap = 0;
        for (int k = 0; k < m; k++) overlap += Mx[d->dofs[k]] * D[(size_t)c * (size_t)m + (size_t)k];
        if (fabs(overlap) > fabs(most)) most = overlap, best = c;
    }
    assert_true(fabs(most) > 0.9);
    memset(psi, 0, (size_t)s->n * sizeof *psi);
    for (int k = 0; k < m; k++) psi[d->dofs[k]] = (most > 0 ? 1 : -1) * D[(size_t)best * (size_t)m + (size_t)k];
    fem_free(D), fem_free(M), fem_free(values), fem_free(x), fem_free(Mx);
    fem_sparse_destroy(&K);
}

static double tangent_error(const dense_body *d, int i, int j, double e, const double *phi) {
    int     n = d->s->n;
    double *x = fem_alloc((size_t)n, 8), *y = fem_alloc((size_t)n, 8);
    tangent_mode(d, i, j, e, x);
    tangent_mode(d, i, j, -e, y);
    for (int k = 0; k < n; k++) x[k] = (x[k] - y[k]) / (2 * e);
    double error = test_relative_error(n, x, phi);
    fem_free(x), fem_free(y);
    return error;
}

// eq. 29 gives the derivatives of the tangent vibration modes, to second order; on a free body with their rigid part
static void test_tangent(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++)
        for (int kind = FEM_STVK; kind < FEM_MATERIAL_KINDS; kind++)
            for (int held = 0; held < 2; held++) {
                sample                   s;
                dense_body               d;
                modes_pool               pool = {0};
                modes_derivative_report  report;
                modes_derivative_options options = modes_derivative_default_options();
                options.kind = MODES_DERIVATIVE_TANGENT;
                sample_create(&s, (fem_element)type, small_cells, (fem_material_kind)kind, held, 5);
                dense_create(&d, &s, held ? 0 : 6);
                derive(&s, &options, &pool, &report);
                assert_int_equal(pool.count, 5 + 25);
                assert_int_equal(report.repeated, 0);
                const double *phi = find(&pool, 1, 1, 0, 0, 0), *other = find(&pool, 1, 0, 1, 0, 0);
                double        e = 0.0005 / largest(s.n, s.basis.U);
                double        e1 = tangent_error(&d, 1, 0, e, phi), e2 = tangent_error(&d, 1, 0, e / 2, phi);
                double        asymmetry = test_relative_error(s.n, other, phi);
                double along = mass_product(&s, column(s.basis.U, s.n, 1), phi) / sqrt(mass_product(&s, phi, phi));
                printf("  %s %-13s %s: %.1e, %.1e, order %.2f; psi^T M phi %.0e, phi_01 - phi_10 %.1f, %d iterations\n",
                       element_name((fem_element)type), fem_material_kind_name((fem_material_kind)kind),
                       held ? "held" : "free", e1, e2, log2(e1 / e2), along, asymmetry, report.iterations);
                assert_true(e2 < 2e-3 && log2(e1 / e2) > 1.95 && fabs(along) < 1e-9 && asymmetry > 0.1);
                modes_pool_destroy(&pool);
                dense_destroy(&d);
                sample_destroy(&s);
            }
}

// K^-1 (H : u) v by a difference of K and a dense inverse: nothing of what it checks
static void slow_derivative(const dense_body *d, int mode, double e, const double *v, double *out) {
    const sample *s = d->s;
    fem_sparse    plus = {0}, minus = {0};
    double       *b = fem_alloc((size_t)s->n, 8), *c = fem_alloc((size_t)s->n, 8), *zero = fem_calloc((size_t)s->n, 8);
    assert_ok(fem_body_matrix(s->body, &plus));
    assert_ok(fem_body_matrix(s->body, &minus));
    stiffness_at(s, column(s->basis.U, s->n, mode), e, &plus);
    stiffness_at(s, column(s->basis.U, s->n, mode), -e, &minus);
    fem_sparse_multiply(&plus, 1, v, b);
    fem_sparse_multiply(&minus, 1, v, c);
    for (int i = 0; i < s->n; i++) b[i] = (b[i] - c[i]) / (2 * e);
    dense_solve(d, zero, 0, b, out);
    fem_free(b), fem_free(c), fem_free(zero);
    fem_sparse_destroy(&plus), fem_sparse_destroy(&minus);
}

static double chain_error(const dense_body *d, const modes_pool *pool, const int modes[4], int order, double e) {
    const sample *s = d->s;
    double       *v = fem_copy(column(s->basis.U, s->n, modes[1]), (size_t)s->n, 8), *w = fem_alloc((size_t)s->n, 8);
    for (int k = 1; k <= order; k++) {
        slow_derivative(d, modes[k == 1 ? 0 : k], e, v, w);
        memcpy(v, w, (size_t)s->n * sizeof *v);
    }
    double error = test_relative_error(s->n, find(pool, order, modes[0], modes[1], modes[2], modes[3]), v);
    fem_free(v), fem_free(w);
    return error;
}

// inertia derivatives of order 1 to 3 follow their definition. The stiffness of StVK is quadratic in u, so that the
// slow way is exact; elsewhere it converges to them to second order.
static void test_inertia(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++)
        for (int kind = FEM_STVK; kind < FEM_MATERIAL_KINDS; kind++)
            for (int held = 0; held < 2; held++) {
                sample                   s;
                dense_body               d;
                modes_pool               pool = {0};
                modes_derivative_report  report;
                const int                modes[4] = {0, 1, 1, 0};
                modes_derivative_options options = modes_derivative_default_options();
                options.kind = MODES_DERIVATIVE_INERTIA, options.order = 3;
                options.modes[1] = 3, options.modes[2] = 2; // of 4: 10, 3 * 6, 2 * 2 * 3
                sample_create(&s, (fem_element)type, small_cells, (fem_material_kind)kind, held, 4);
                dense_create(&d, &s, held ? 0 : 6);
                derive(&s, &options, &pool, &report);
                const int expected[4] = {4, 10, 18, 12};
                assert_memory_equal(report.counts, expected, sizeof expected);
                assert_int_equal(pool.count, 44);
                assert_true(report.bytes == 44.0 * 8 * s.n);
                double e = 0.01 / largest(s.n, s.basis.U);
                printf("  %s %-13s %s:", element_name((fem_element)type),
                       fem_material_kind_name((fem_material_kind)kind), held ? "held" : "free");
                for (int order = 1; order <= 3; order++) {
                    double e1 = chain_error(&d, &pool, modes, order, e),
                           e2 = chain_error(&d, &pool, modes, order, e / 2);
                    printf("  order %d: %.1e %.1e", order, e1, e2);
                    if (kind == FEM_STVK || kind == FEM_ORTHOTROPIC)
                        assert_true(e1 < 1e-9);
                    else
                        assert_true(e2 < 0.02 && log2(e1 / e2) > 1.9);
                }
                printf("\n");
                modes_pool_destroy(&pool);
                dense_destroy(&d);
                sample_destroy(&s);
            }
}

// many pairs (more than one block), chosen pairs, and any number of threads give the same columns; signs are those of
// the two papers
static void test_blocks_and_pairs(void **state) {
    (void)state;
    sample                   s;
    modes_pool               all = {0}, chosen = {0}, inertia = {0};
    modes_derivative_report  report;
    modes_derivative_options options = modes_derivative_default_options();
    const fem_pair           pairs[3] = {{.a = 11, .b = 11}, {.a = 3, .b = 7}, {.a = 0, .b = 0}};
    sample_create(&s, FEM_T4, (const int[3]){5, 3, 3}, FEM_STVK, false, 12);
    derive(&s, &options, &all, &report);
    assert_int_equal(report.counts[1], 78);
    assert_int_equal(all.count, 90);
    options.pairs = pairs, options.pair_count = 3;
    fem_set_threads(3);
    derive(&s, &options, &chosen, NULL);
    fem_set_threads(0);
    assert_int_equal(chosen.count, 15);
    options = modes_derivative_default_options();
    options.kind = MODES_DERIVATIVE_INERTIA, options.linear = false;
    derive(&s, &options, &inertia, NULL);
    assert_int_equal(inertia.count, 78);
    for (int p = 0; p < 3; p++) {
        const double *phi = find(&all, 1, pairs[p].a, pairs[p].b, 0, 0),
                     *v = find(&inertia, 1, pairs[p].a, pairs[p].b, 0, 0);
        double *negative = fem_alloc((size_t)s.n, 8);
        for (int i = 0; i < s.n; i++) negative[i] = -v[i];
        double error = test_relative_error(s.n, column(chosen.X, s.n, 12 + p), phi),
               sign = test_relative_error(s.n, negative, phi);
        printf("  (%d, %d): chosen %.0e, inertia against modal %.0e\n", pairs[p].a, pairs[p].b, error, sign);
        assert_true(error < 1e-12 && sign < 1e-12);
        fem_free(negative);
    }
    // no rigid part: mass-orthogonal to the rigid motions
    double *R = NULL, worst = 0;
    int     rigid = 0;
    assert_ok(modes_rigid(&s.problem, &R, &rigid));
    for (int j = 0; j < all.count; j++)
        for (int k = 0; k < rigid; k++) {
            double *x = column(all.X, s.n, j);
            worst = fmax(worst, fabs(mass_product(&s, column(R, s.n, k), x)) / sqrt(mass_product(&s, x, x)));
        }
    printf("  rigid part of %d columns: %.0e\n", all.count, worst);
    assert_true(rigid == 6 && worst < 1e-10);
    fem_free(R);
    modes_pool_destroy(&all), modes_pool_destroy(&chosen), modes_pool_destroy(&inertia);
    sample_destroy(&s);
}

static bool stop_later(void *context, const char *what, double fraction) {
    (void)what, (void)fraction;
    return --*(int *)context > 0;
}

// wrong options are named, a stop is obeyed, the pool stays as it was
static void test_failures(void **state) {
    (void)state;
    sample                         s;
    modes_pool                     pool = {0};
    const modes_derivative_options usual = modes_derivative_default_options();
    modes_derivative_options       o = usual;
    sample_create(&s, FEM_T4, small_cells, FEM_STVK, true, 4);
    derive(&s, &o, &pool, NULL);
    double *before = pool.X;
#define refuses(text)                                                                                                  \
    do {                                                                                                               \
        assert_fails(modes_derivatives(&s.problem, s.body, s.inverse, &s.basis, &o, NULL, &pool, NULL), FEM_BAD_INPUT, \
                     text);                                                                                            \
        assert_true(pool.X == before && pool.count == 14);                                                             \
        o = usual;                                                                                                     \
    } while (0)
    o.order = 0;
    refuses("derivatives.order is 0, expected 1 to 3");
    o.order = 2;
    refuses("only inertia derivatives go beyond order 1");
    o.modes[0] = 5;
    refuses("derivatives.modes[0] is 5, but the basis has 4 modes");
    const fem_pair wrong = {.a = 1, .b = 4};
    o.pairs = &wrong, o.pair_count = 1;
    refuses("derivatives.pairs[0] is (1, 4)");
    o.pairs = &wrong;
    refuses("0 chosen pairs");
    o.kind = MODES_DERIVATIVE_TANGENT, o.tolerance = 0;
    refuses("derivatives.tolerance is 0");
    o.kind = MODES_DERIVATIVE_TANGENT, o.iterations = 0;
    refuses("derivatives.iterations is 0");
    o.kind = MODES_DERIVATIVE_INERTIA, o.order = 3, o.max_bytes = 1e4;
    refuses("160 derivatives of order 3 take");
    printf("  %s\n", fem_message());
    int          calls = 1;
    fem_progress progress = {.report = stop_later, .context = &calls};
    assert_fails(modes_derivatives(&s.problem, s.body, s.inverse, &s.basis, &o, &progress, &pool, NULL), FEM_STOPPED,
                 "stopped");
    // tangent derivatives of what is no vibration mode
    s.basis.U[s.n - 1] += 0.1;
    o.kind = MODES_DERIVATIVE_TANGENT;
    refuses("column 0 of the basis is not a vibration mode");
    s.basis.U[s.n - 1] -= 0.1;
    o.kind = MODES_DERIVATIVE_TANGENT, o.iterations = 1;
    assert_fails(modes_derivatives(&s.problem, s.body, s.inverse, &s.basis, &o, NULL, &pool, NULL), FEM_NO_CONVERGENCE,
                 "did not converge in 1 iterations");
    modes_basis other = {.n = s.n - 3, .r = 4, .U = s.basis.U, .omega2 = s.basis.omega2};
    o = usual;
    assert_fails(modes_derivatives(&s.problem, s.body, s.inverse, &other, &o, NULL, &pool, NULL), FEM_BAD_INPUT,
                 "for a problem of");
    assert_fails(modes_pool_from_shapes(&pool, 3, 0, s.basis.U), FEM_BAD_INPUT, "a pool of 0 candidates");
    modes_pool_destroy(&pool);
    sample_destroy(&s);
#undef refuses
}

// repeated frequencies (a square bar) are counted and do no harm
static void test_repeated(void **state) {
    (void)state;
    const double             low[3] = {0, 0, 0}, high[3] = {1.5, 0.4, 0.4};
    const int                cells[3] = {4, 2, 2};
    sample                   s = {0};
    modes_pool               pool = {0};
    modes_derivative_report  report;
    modes_derivative_options options = modes_derivative_default_options();
    options.kind = MODES_DERIVATIVE_TANGENT;
    assert_ok(fem_generate_box(&s.mesh, FEM_H8, low, high, cells));
    sample_finish(&s, true, 4);
    derive(&s, &options, &pool, &report);
    printf("  omega^2 %.6g %.6g: %d pairs of a repeated frequency, largest entry %.1e\n", s.basis.omega2[0],
           s.basis.omega2[1], report.repeated, largest(s.n * pool.count, pool.X));
    assert_true(report.repeated == 8 && largest(s.n * pool.count, pool.X) < 1e3);
    modes_pool_destroy(&pool);
    sample_destroy(&s);
}

// a refused allocation anywhere is reported and leaves nothing behind
static void test_allocation_failure(void **state) {
    (void)state;
    sample s;
    sample_create(&s, FEM_T4, small_cells, FEM_STVK, false, 3);
    for (int kind = MODES_DERIVATIVE_MODAL; kind <= MODES_DERIVATIVE_TANGENT; kind++) {
        modes_derivative_options options = modes_derivative_default_options();
        long                     failures = 0;
        options.kind = (modes_derivative_kind)kind;
        if (kind == MODES_DERIVATIVE_INERTIA) options.order = 2;
        for (;; failures++) {
            modes_pool pool = {0};
            long       before = fem_memory_blocks();
            fem_memory_fail_after(failures);
            fem_status status = modes_derivatives(&s.problem, s.body, NULL, &s.basis, &options, NULL, &pool, NULL);
            fem_memory_fail_after(-1);
            modes_pool_destroy(&pool);
            assert_int_equal(fem_memory_blocks(), before);
            if (status == FEM_OK) break;
            assert_int_equal(status, FEM_NO_MEMORY);
        }
        printf("  kind %d: %ld allocations refused one after the other\n", kind, failures);
        assert_true(failures > 20);
    }
    sample_destroy(&s);
}

// ---- VegaFEM
// ---------------------------------------------------------------------------------------------------------

static cJSON *read_json(const char *relative) {
    const char *path = test_data(relative);
    if (!path) return NULL;
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("cannot open %s", path);
    static char text[1 << 20];
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    cJSON *json = cJSON_Parse(text);
    assert_non_null(json);
    return json;
}

static const cJSON *item(const cJSON *json, const char *key) {
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(json, key);
    if (!found) fail_msg("no \"%s\"", key);
    return found;
}

static void load_vega(sample *s, const cJSON *r, int modes) {
    int             *items = NULL, held = 0;
    fem_body_options options = fem_body_default_options();
    *s = (sample){0};
    options.quadrature = 3; // VegaFEM integrates its cubes exactly
    assert_ok(fem_mesh_read(&s->mesh, test_data(item(r, "mesh_file")->valuestring)));
    s->n = 3 * s->mesh.vertex_count;
    assert_ok(fem_body_create(&s->body, &s->mesh, &options));
    assert_ok(fem_body_matrix(s->body, &s->K));
    assert_ok(fem_body_matrix(s->body, &s->M));
    double *zero = fem_calloc((size_t)s->n, 8);
    fem_body_evaluate(s->body, zero, NULL, NULL, &s->K);
    fem_body_mass(s->body, FEM_MASS_CONSISTENT, &s->M);
    fem_free(zero);
    s->fixed = fem_calloc((size_t)s->n, 1);
    assert_ok(fem_vertex_list_read(&items, &held, test_data(item(r, "fixed_vertices_file")->valuestring),
                                   s->mesh.file_base, s->mesh.vertex_count));
    for (int i = 0; i < held; i++) memset(s->fixed + 3 * (size_t)items[i], 1, 3);
    fem_free(items);
    s->problem = (modes_problem){.mesh = &s->mesh, .K = &s->K, .M = &s->M, .fixed = s->fixed};
    modes_lanczos_options lanczos = modes_lanczos_default_options();
    lanczos.count = modes;
    assert_ok(modes_lanczos(&s->problem, &lanczos, NULL, &s->basis, NULL));
}

// VegaFEM's mass norms of 55 modal derivatives to 1e-7 and its singular values, down to 1e-4 of the first, to 1e-8; its
// table of the mass of a cube is 9.3e-8 too small, its Gram matrix costs the small values their digits
static void test_vega(void **state) {
    (void)state;
    const char *const models[] = {"beam3_tet", "beam3_vox", "simpleBridge_tet", "turtle", "turtle_homogeneous"};
    for (int k = 0; k < 5; k++) {
        char path[256];
        snprintf(path, sizeof path, "reference/vega/%s.json", models[k]);
        cJSON *r = read_json(path);
        if (!r) return;
        sample                   s;
        modes_pool               pool = {0};
        modes_basis              basis = {0};
        modes_condense_report    report;
        modes_derivative_options options = modes_derivative_default_options();
        modes_condense_options   condense = modes_condense_default_options();
        double                   worst = 0, worst_singular = 0;
        int                      compared = 0;
        load_vega(&s, r, 10);
        derive(&s, &options, &pool, NULL);
        assert_int_equal(pool.count, 65);
        const cJSON *norms = item(r, "modal_derivative_Mnorms_k10_ij_upper_rowwise"), *entry;
        int          j = 10;
        cJSON_ArrayForEach(entry, norms) {
            double *phi = column(pool.X, s.n, j++);
            worst = fmax(worst, fabs(sqrt(mass_product(&s, phi, phi)) / entry->valuedouble - 1));
        }
        assert_int_equal(j, 65);
        condense.metric = MODES_METRIC_LUMPED, condense.r = 20;
        assert_ok(modes_condense(&s.problem, &pool, s.basis.omega2, &condense, NULL, &basis, &report));
        j = 0;
        double first = item(r, "pca_singular_values_first20")->child->valuedouble;
        cJSON_ArrayForEach(entry, item(r, "pca_singular_values_first20")) {
            double theirs = entry->valuedouble, ours = report.singular[j++];
            if (theirs < 1e-4 * first) continue;
            compared++;
            worst_singular = fmax(worst_singular, fabs(ours / theirs - 1));
        }
        printf("  %-19s 55 mass norms %.1e, %d singular values %.1e\n", models[k], worst, compared, worst_singular);
        assert_true(worst < 1e-7 && compared >= 18 && worst_singular < 1e-8);
        fem_free(report.singular);
        modes_basis_destroy(&basis), modes_pool_destroy(&pool);
        sample_destroy(&s);
        cJSON_Delete(r);
    }
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),    cmocka_unit_test(test_static),   cmocka_unit_test(test_inverse_differences),
        cmocka_unit_test(test_tangent),  cmocka_unit_test(test_inertia),  cmocka_unit_test(test_blocks_and_pairs),
        cmocka_unit_test(test_failures), cmocka_unit_test(test_repeated), cmocka_unit_test(test_allocation_failure),
        cmocka_unit_test(test_vega),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
