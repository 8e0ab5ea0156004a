// Stitching: the stiffness of a stitched body, solves without a new factor, the three forms of the update against a
// full eigen-solve, rounds, removal, domains, bad input.
#include "tests/stitch_case.h"

static void fill(int n, const unsigned char *fixed, double *x) {
    uint64_t state = 7;
    for (int i = 0; i < n; i++) x[i] = test_random(&state) * !fixed[i];
}

// ---- solves ---------------------------------------------------------------------------------------------------------

// |K^ x - b| / (|b| + k |x|) with K^ multiplied by hand, k its largest entry: what rounding alone makes is 1e-16 of
// that. *plain: over |b|.
static double backward_error(const two_bars *t, int count, const double *x, const double *b, double *plain) {
    int     n = t->both.n;
    double *y = fem_alloc((size_t)n, 8), square = 0, whole = 0, largest = 0;
    for (size_t i = 0; i < 9 * (size_t)t->both.K.blocks; i++) largest = fmax(largest, fabs(t->both.K.value[i]));
    for (int s = 0; s < count; s++) largest = fmax(largest, t->stitches[s].stiffness);
    fem_sparse_multiply(&t->both.K, 1, x, y);
    for (int s = 0; s < count; s++)
        for (int i = 0; i < 3; i++) {
            int    a = 3 * t->stitches[s].a + i, c = 3 * t->stitches[s].b + i;
            double force = t->stitches[s].stiffness * (x[a] - x[c]);
            y[a] += force, y[c] -= force;
        }
    for (int i = 0; i < n; i++)
        if (!t->both.fixed[i]) square += pow(y[i] - b[i], 2), whole += b[i] * b[i];
    fem_free(y);
    if (plain) *plain = sqrt(square / whole);
    return sqrt(square) / (sqrt(whole) + largest * dense_norm(n, x));
}

// (K + A A^T) x = b with the factor of K, which is singular: the right bar is free. Soft, equal and stiff springs.
static void test_solve(void **state) {
    (void)state;
    two_bars t;
    two_bars_create(&t, 6, 2, true);
    for (double ratio = 1e-6; ratio < 2e6; ratio *= 1e3) {
        modes_stitched       *s = NULL;
        modes_stitched_report report;
        double               *b = fem_alloc((size_t)t.both.n, 8), *copy = fem_alloc((size_t)t.both.n, 8),
               *x = fem_alloc((size_t)t.both.n, 8);
        for (int i = 0; i < t.count; i++) t.stitches[i].stiffness = ratio * t.stiffness;
        assert_ok(modes_stitched_create(&s, &t.both.problem, NULL));
        assert_ok(modes_stitched_add(s, t.count, t.stitches));
        fill(t.both.n, t.both.fixed, b);
        memcpy(copy, b, (size_t)t.both.n * 8);
        assert_ok(modes_stitched_solve(s, 1, b, x));
        assert_ok(modes_stitched_get_report(s, &report));
        double plain, error = backward_error(&t, t.count, x, copy, &plain);
        printf("k = %g E h: |K^ x - b| is %.2g of |b|, %.2g of |b| + |K^| |x|; %d solves, %d columns refined\n", ratio,
               plain, error, report.solves, report.refined);
        assert_int_equal(report.rigid, 6);
        assert_int_equal(report.loose, 0);
        assert_true(error < 1e-14 && fabs(plain - report.residual) < 0.5 * plain && dense_norm(t.both.n, x) > 0);
        assert_true(report.solves <= 3 * t.count + 2); // no refactorisation, no solves per iteration
        fem_free(b), fem_free(copy), fem_free(x);
        modes_stitched_destroy(s);
    }
    two_bars_destroy(&t);
}

// Two free bars: twelve rigid motions, six left by the whole seam, seven by two stitches (a hinge), nine by one (a
// ball).
static void test_loose(void **state) {
    (void)state;
    two_bars t;
    two_bars_create(&t, 4, 2, false);
    const int counts[4] = {0, 1, 2, 9}, loose[4] = {12, 9, 7, 6};
    for (int k = 0; k < 4; k++) {
        modes_stitched       *s = NULL;
        modes_stitched_report report;
        int                   n = t.both.n;
        double *b = fem_alloc((size_t)n, 8), *x = fem_alloc((size_t)n, 8), *copy, *Mx = fem_alloc((size_t)n, 8);
        assert_ok(modes_stitched_create(&s, &t.both.problem, NULL));
        if (counts[k] > 0) assert_ok(modes_stitched_add(s, counts[k], t.stitches));
        assert_ok(modes_stitched_get_report(s, &report));
        assert_int_equal(report.loose, loose[k]);
        fill(n, t.both.fixed, b);
        for (int i = 0; i < n; i++) { // no rigid load of either bar, so that the answer satisfies K^ x = b itself
            uint64_t seed = (uint64_t)i;
            x[i] = test_random(&seed);
        }
        modes_stitched_multiply(s, 1, x, b);
        copy = fem_copy(b, (size_t)n, 8);
        assert_ok(modes_stitched_solve(s, 1, b, x));
        fem_sparse_multiply(&t.both.M, 1, x, Mx);
        double sum = 0, whole = 0;
        for (int i = 0; i < n; i++) sum += i % 3 == 0 ? Mx[i] : 0, whole += fabs(Mx[i]);
        double error = backward_error(&t, counts[k], x, copy, NULL);
        printf("%d stitches of two free bars leave %d motions; residual %.2g, momentum %.2g of it\n", counts[k],
               report.loose, error, fabs(sum) / whole);
        assert_true(error < 1e-14 && fabs(sum) < 1e-10 * whole);
        fem_free(b), fem_free(x), fem_free(copy), fem_free(Mx);
        modes_stitched_destroy(s);
    }
    two_bars_destroy(&t);
}

// ---- the three forms against a full eigen-solve ---------------------------------------------------------------------

static void update(modes_stitched *s, const modes_basis *old, modes_stitch_form form, int count, int since,
                   modes_basis *basis, modes_stitch_report *report) {
    modes_stitch_options options = modes_stitch_default_options();
    options.form = form, options.count = count, options.since = since;
    assert_ok(modes_stitched_modes(s, old, &options, basis, report));
}

static void test_forms(void **state) {
    (void)state;
    two_bars t;
    two_bars_create(&t, 8, 2, true);
    modes_basis old = {0}, truth = {0}, none = {0};
    old_modes(&t.both, 24, &old);
    full_modes(&t.both, t.count, t.stitches, 0, 20, &truth);
    modes_stitched *s = NULL;
    assert_ok(modes_stitched_create(&s, &t.both.problem, NULL));
    assert_ok(modes_stitched_add(s, t.count, t.stitches));
    double error[3], share[3], before_error, before_share;
    full_modes(&t.both, 0, NULL, 6, 20, &none);
    judge(&t.both, &none, &truth, 20, &before_error, &before_share);
    assert_true(before_error > 0.3 && before_share < 0.9); // the stitches change the body
    for (modes_stitch_form form = 0; form < 3; form++) {
        modes_basis         basis = {0};
        modes_stitch_report report;
        update(s, &old, form, 30, 0, &basis, &report);
        judge(&t.both, &basis, &truth, 20, &error[form], &share[form]);
        printf("%-10s frequencies of 20 modes within %.3g %%, coverage above %.6f, dimension %d, |U^T M U - 1| %.1g\n",
               modes_stitch_form_name(form), 100 * error[form], share[form], report.dimension, report.orthogonality);
        assert_true(mass_orthogonality(&t.both, basis.r, basis.U) < 1e-12);
        for (int i = 0; i < t.both.n; i++)
            if (t.both.fixed[i])
                for (int j = 0; j < basis.r; j++) assert_true(basis.U[(size_t)j * (size_t)t.both.n + (size_t)i] == 0);
        if (form != MODES_STITCH_LOWRANK) { // Ritz values are from above
            for (int j = 0; j < 20; j++) assert_true(basis.omega2[j] > truth.omega2[j] * (1 - 1e-9));
        }
        modes_basis_destroy(&basis);
    }
    assert_true(error[MODES_STITCH_ATTACHMENT] < 0.01 && share[MODES_STITCH_ATTACHMENT] > 0.99); // the goal
    assert_true(error[MODES_STITCH_ATTACHMENT] < error[MODES_STITCH_RITZ]);
    assert_true(error[MODES_STITCH_RITZ] < error[MODES_STITCH_LOWRANK]);
    modes_stitched_destroy(s);
    modes_basis_destroy(&old), modes_basis_destroy(&truth), modes_basis_destroy(&none);
    two_bars_destroy(&t);
}

// The stitched stiffness as a matrix: its modes by Lanczos are those of the dense eigen-solve, and it multiplies as the
// springs do. Stitched parts count as one body: no rigid motion is left of the bar that was free.
// Few old modes, many stitches: not all static answers are made, but those that are span what a step of inverse
// iteration with K^ from the rigid motions and old modes spans. Then steps of refinement, each towards the truth.
static void test_loads(void **state) {
    (void)state;
    enum { OLD = 8, JUDGED = 10 };
    two_bars t;
    two_bars_create(&t, 8, 3, true);
    modes_basis     old = {0}, truth = {0};
    modes_stitched *s = NULL;
    double         *R = NULL, error = 1, share;
    int             n = t.both.n, rigid = 0;
    size_t          length = (size_t)n;
    old_modes(&t.both, OLD, &old);
    full_modes(&t.both, t.count, t.stitches, 0, JUDGED, &truth);
    assert_ok(modes_rigid(&t.both.problem, &R, &rigid));
    assert_ok(modes_stitched_create(&s, &t.both.problem, NULL));
    assert_ok(modes_stitched_add(s, t.count, t.stitches));
    int     base = OLD + rigid, wide = 2 * base;
    double *W = fem_alloc(3 * (size_t)wide * length, 8), *KW = W + (size_t)wide * length,
           *MW = KW + (size_t)wide * length;
    double *A = fem_alloc(2 * (size_t)wide * (size_t)wide, 8), *G = A + wide * wide,
           *values = fem_alloc((size_t)wide, 8);
    memcpy(W, R, (size_t)rigid * length * 8);
    memcpy(W + (size_t)rigid * length, old.U, OLD * length * 8);
    fem_sparse_multiply(&t.both.M, base, W, MW);
    assert_ok(modes_stitched_solve(s, base, MW, W + (size_t)base * length));
    for (int j = base; j < wide; j++) // unit size
        dense_scale(n, 1 / dense_norm(n, W + (size_t)j * length), W + (size_t)j * length);
    modes_stitched_multiply(s, wide, W, KW);
    fem_sparse_multiply(&t.both.M, wide, W, MW);
    dense_gemm(true, false, wide, wide, n, 1, W, KW, 0, A);
    dense_gemm(true, false, wide, wide, n, 1, W, MW, 0, G);
    assert_ok(dense_generalized_eigen(wide, A, G, values));
    for (int steps = 0; steps < 4; steps++) {
        modes_stitch_options options = modes_stitch_default_options();
        modes_stitch_report  report;
        modes_basis          basis = {0};
        double               before = error, apart = 0;
        options.count = base, options.refine = steps;
        assert_ok(modes_stitched_modes(s, &old, &options, &basis, &report));
        for (int j = 0; j < base; j++) apart = fmax(apart, fabs(basis.omega2[j] / values[j] - 1));
        judge(&t.both, &basis, &truth, JUDGED, &error, &share);
        printf("%d steps: dimension %d of %d, omega^2 %.1g from those of the Krylov space; ten frequencies within %.2g "
               "%%\n",
               steps, report.dimension, base + 3 * t.count, apart, 100 * error);
        assert_true(mass_orthogonality(&t.both, basis.r, basis.U) < 1e-12);
        if (steps == 0) assert_true(report.dimension <= wide && report.dimension < base + 3 * t.count && apart < 1e-6);
        assert_true(error < (steps > 0 ? 0.3 : 0.2) * before || error < 1e-9);
        modes_basis_destroy(&basis);
    }
    modes_stitched_destroy(s);
    fem_free(R), fem_free(W), fem_free(A), fem_free(values);
    modes_basis_destroy(&old), modes_basis_destroy(&truth);
    two_bars_destroy(&t);
}

static void test_matrix(void **state) {
    (void)state;
    for (int held = 0; held < 2; held++) {
        two_bars t;
        two_bars_create(&t, 5, 2, held);
        modes_stitched *s = NULL;
        modes_basis     truth = {0}, basis = {0};
        modes_report    report;
        fem_sparse      K = {0};
        uint64_t        seed = 1;
        double         *x = fem_alloc((size_t)t.both.n, 8), *y = fem_alloc((size_t)t.both.n, 8),
               *z = fem_alloc((size_t)t.both.n, 8);
        assert_ok(modes_stitched_create(&s, &t.both.problem, NULL));
        assert_ok(modes_stitched_add(s, t.count, t.stitches));
        assert_ok(modes_stitched_matrix(s, &K));
        assert_int_equal(K.blocks, t.both.K.blocks + t.count);
        test_random_fill(&seed, t.both.n, 1, x);
        for (int i = 0; i < t.both.n; i++)
            if (t.both.fixed[i]) x[i] = 0;
        fem_sparse_multiply(&K, 1, x, y);
        modes_stitched_multiply(s, 1, x, z);
        assert_true(test_relative_error(t.both.n, y, z) < 1e-14);
        full_modes(&t.both, t.count, t.stitches, held ? 0 : 6, 12, &truth);
        modes_problem         problem = {.mesh = &t.both.mesh, .K = &K, .M = &t.both.M, .fixed = t.both.fixed};
        modes_lanczos_options options = modes_lanczos_default_options();
        options.count = 12;
        assert_ok(modes_lanczos(&problem, &options, NULL, &basis, &report));
        double error = test_relative_error(12, basis.omega2, truth.omega2);
        printf("Lanczos of the stitched matrix: %d rigid motions, eigenvalues to %.2g\n", report.rigid, error);
        assert_int_equal(report.rigid, held ? 0 : 6);
        assert_true(error < 1e-8);
        fem_free(report.residuals), fem_free(x), fem_free(y), fem_free(z);
        fem_sparse_destroy(&K);
        modes_stitched_destroy(s);
        modes_basis_destroy(&truth), modes_basis_destroy(&basis);
        two_bars_destroy(&t);
    }
}

// As printed: the eigenvalues are those of M U L U^T M + A A^T, here against that very matrix, dense. The rigid motions
// have eigenvalue zero in U.
static void test_lowrank_identity(void **state) {
    (void)state;
    two_bars t;
    two_bars_create(&t, 4, 1, true);
    int         n = t.both.n, m = 0, *dofs = fem_alloc((size_t)n, sizeof *dofs), rigid = 0;
    modes_basis old = {0}, basis = {0};
    double     *M = sample_dense(&t.both.M), *R = NULL;
    old_modes(&t.both, 10, &old);
    assert_ok(modes_rigid(&t.both.problem, &R, &rigid));
    assert_int_equal(rigid, 6);
    for (int i = 0; i < n; i++)
        if (!t.both.fixed[i]) dofs[m++] = i;
    double *K = fem_calloc((size_t)m * (size_t)m, 8), *Mm = fem_alloc((size_t)m * (size_t)m, 8),
           *values = fem_alloc((size_t)m, 8), *MU = fem_alloc((size_t)n * 10, 8);
    fem_sparse_multiply(&t.both.M, 10, old.U, MU);
    for (int j = 0; j < m; j++)
        for (int i = 0; i < m; i++) {
            Mm[(size_t)j * (size_t)m + (size_t)i] = M[(size_t)dofs[j] * (size_t)n + (size_t)dofs[i]];
            for (int l = 0; l < 10; l++)
                K[(size_t)j * (size_t)m + (size_t)i] += old.omega2[l] * MU[(size_t)l * (size_t)n + (size_t)dofs[i]] *
                                                        MU[(size_t)l * (size_t)n + (size_t)dofs[j]];
            for (int s = 0; s < t.count; s++)
                for (int d = 0; d < 3; d++) {
                    double bi = (dofs[i] == 3 * t.stitches[s].a + d) - (dofs[i] == 3 * t.stitches[s].b + d);
                    double bj = (dofs[j] == 3 * t.stitches[s].a + d) - (dofs[j] == 3 * t.stitches[s].b + d);
                    K[(size_t)j * (size_t)m + (size_t)i] += t.stitches[s].stiffness * bi * bj;
                }
        }
    assert_ok(dense_generalized_eigen(m, K, Mm, values));
    modes_stitched *s = NULL;
    assert_ok(modes_stitched_create(&s, &t.both.problem, NULL));
    assert_ok(modes_stitched_add(s, t.count, t.stitches));
    int dimension = 6 + 10 + 3 * t.count;
    update(s, &old, MODES_STITCH_LOWRANK, dimension, 0, &basis, NULL);
    double worst = 0; // the dense matrix has the eigenvalues of C and zeros
    for (int j = 0; j < dimension; j++)
        worst = fmax(worst, fabs(basis.omega2[dimension - 1 - j] - values[m - 1 - j]) / values[m - 1]);
    int zeros = 0;
    for (int j = 0; j < dimension; j++) zeros += basis.omega2[j] < 1e-9 * old.omega2[0];
    printf("lowrank: %d eigenvalues as of the dense matrix within %.2g, %d zeros\n", dimension, worst, zeros);
    assert_true(worst < 1e-11 && values[m - 1] > 0);
    assert_int_equal(zeros, 6); // rank: 10 + 3 s
    modes_stitched_destroy(s);
    fem_free(dofs), fem_free(M), fem_free(R), fem_free(K), fem_free(Mm), fem_free(values), fem_free(MU);
    modes_basis_destroy(&old), modes_basis_destroy(&basis);
    two_bars_destroy(&t);
}

// Without the rigid motions of the bar that was free the answer is far off (P2 figure 7).
static void test_without_rigid(void **state) {
    (void)state;
    two_bars t;
    two_bars_create(&t, 8, 2, true);
    modes_basis old = {0}, truth = {0}, basis = {0};
    old_modes(&t.both, 20, &old);
    full_modes(&t.both, t.count, t.stitches, 0, 6, &truth);
    modes_stitched *s = NULL;
    assert_ok(modes_stitched_create(&s, &t.both.problem, NULL));
    assert_ok(modes_stitched_add(s, t.count, t.stitches));
    for (modes_stitch_form form = MODES_STITCH_RITZ; form <= MODES_STITCH_ATTACHMENT; form++) {
        modes_stitch_options options = modes_stitch_default_options();
        double               with, without, share_with, share_without;
        options.form = form;
        assert_ok(modes_stitched_modes(s, &old, &options, &basis, NULL));
        judge(&t.both, &basis, &truth, 6, &with, &share_with);
        options.rigid_out = true;
        assert_ok(modes_stitched_modes(s, &old, &options, &basis, NULL));
        judge(&t.both, &basis, &truth, 6, &without, &share_without);
        printf("%-10s six frequencies within %.3g %% with rigid motions, %.3g %% without; coverage %.4f, %.4f\n",
               modes_stitch_form_name(form), 100 * with, 100 * without, share_with, share_without);
        assert_true(without > 5 * with && without > 0.2 && share_without < 0.9);
    }
    modes_stitched_destroy(s);
    modes_basis_destroy(&old), modes_basis_destroy(&truth), modes_basis_destroy(&basis);
    two_bars_destroy(&t);
}

// As the stiffness goes to zero the old modes come back, after the motions that were rigid.
static void test_vanishing(void **state) {
    (void)state;
    two_bars t;
    two_bars_create(&t, 8, 2, true);
    modes_basis old = {0}, basis = {0};
    old_modes(&t.both, 20, &old);
    for (modes_stitch_form form = MODES_STITCH_RITZ; form <= MODES_STITCH_ATTACHMENT; form++) {
        double error[2], share[2], rigid = 0;
        for (int k = 0; k < 2; k++) {
            modes_stitched *s = NULL;
            for (int i = 0; i < t.count; i++) t.stitches[i].stiffness = t.stiffness * (k ? 1e-6 : 1e-4);
            assert_ok(modes_stitched_create(&s, &t.both.problem, NULL));
            assert_ok(modes_stitched_add(s, t.count, t.stitches));
            update(s, &old, form, 26, 0, &basis, NULL);
            rigid = basis.omega2[5];
            for (int j = 0; j < 20; j++) basis.omega2[j] = basis.omega2[6 + j];
            judge(&t.both, &basis, &old, 20, &error[k], &share[k]);
            modes_stitched_destroy(s);
        }
        printf("%-10s k = 1e-4, 1e-6 E h: old frequencies to %.2g, %.2g; sixth omega^2 %.2g of the first elastic one\n",
               modes_stitch_form_name(form), error[0], error[1], rigid / old.omega2[0]);
        assert_true(error[1] < 0.011 * error[0] && error[0] > 1e-8 && 1 - share[1] < 1e-9 &&
                    rigid < 1e-2 * old.omega2[0]);
    }
    modes_basis_destroy(&old), modes_basis_destroy(&basis);
    two_bars_destroy(&t);
}

// ---- rounds, removal, domains -----------------------------------------------------------------------------------

// Half of the seam, then all of it: from the padded modes each time, and from the modes of the first round.
static void test_two_rounds(void **state) {
    (void)state;
    two_bars t;
    two_bars_create(&t, 8, 2, true);
    modes_basis old = {0}, truth = {0}, first = {0}, second = {0}, again = {0};
    old_modes(&t.both, 30, &old);
    full_modes(&t.both, t.count, t.stitches, 0, 20, &truth);
    for (modes_stitch_form form = 0; form < 3; form++) {
        modes_stitched *s = NULL;
        double          error, share, direct, direct_share;
        assert_ok(modes_stitched_create(&s, &t.both.problem, NULL));
        assert_ok(modes_stitched_add(s, 5, t.stitches));
        update(s, &old, form, form == MODES_STITCH_LOWRANK ? 36 : 30, 0, &first, NULL);
        assert_ok(modes_stitched_add(s, t.count - 5, t.stitches + 5));
        update(s, &first, form, 30, 5, &second, NULL);
        update(s, &old, form, 30, 0, &again, NULL);
        judge(&t.both, &second, &truth, 20, &error, &share);
        judge(&t.both, &again, &truth, 20, &direct, &direct_share);
        printf("%-10s two rounds: frequencies within %.3g %%, coverage %.6f; all at once: %.3g %%, %.6f\n",
               modes_stitch_form_name(form), 100 * error, share, 100 * direct, direct_share);
        if (form == MODES_STITCH_ATTACHMENT) assert_true(error < 0.01 && share > 0.99);
        if (form == MODES_STITCH_RITZ) assert_true(share > 0.9);
        modes_stitched_destroy(s);
    }
    modes_basis_destroy(&old), modes_basis_destroy(&truth), modes_basis_destroy(&first);
    modes_basis_destroy(&second), modes_basis_destroy(&again);
    two_bars_destroy(&t);
}

// Stitches that came and went leave no trace: the answers are those of a body that never had them, bit by bit.
static void test_removal(void **state) {
    (void)state;
    two_bars t;
    two_bars_create(&t, 6, 2, true);
    modes_basis     old = {0}, plain = {0}, basis = {0};
    modes_stitched *s = NULL, *fresh = NULL;
    old_modes(&t.both, 16, &old);
    assert_ok(modes_stitched_create(&s, &t.both.problem, NULL));
    assert_ok(modes_stitched_create(&fresh, &t.both.problem, NULL));
    assert_ok(modes_stitched_add(fresh, 4, t.stitches + 5));
    update(fresh, &old, MODES_STITCH_ATTACHMENT, 16, 0, &plain, NULL);
    assert_ok(modes_stitched_add(s, 5, t.stitches));
    update(s, &old, MODES_STITCH_ATTACHMENT, 16, 0, &basis, NULL);
    assert_ok(modes_stitched_add(s, 4, t.stitches + 5));
    modes_stitch turned[5];
    for (int i = 0; i < 5; i++) turned[i] = (modes_stitch){.a = t.stitches[i].b, .b = t.stitches[i].a};
    update(s, &old, MODES_STITCH_ATTACHMENT, 16, 0, &basis, NULL);
    assert_true(test_relative_error(16, basis.omega2, plain.omega2) > 0.01);
    assert_ok(modes_stitched_remove(s, 5, turned)); // ends in either order
    assert_int_equal(modes_stitched_count(s), 4);
    update(s, &old, MODES_STITCH_ATTACHMENT, 16, 0, &basis, NULL);
    double difference = test_relative_error(16 * t.both.n, basis.U, plain.U);
    printf("five stitches removed: modes of the other four to %.2g\n", difference);
    assert_true(difference < 1e-9);
    assert_fails(modes_stitched_remove(s, 1, turned), FEM_BAD_INPUT, "are not stitched");
    assert_int_equal(modes_stitched_count(s), 4);
    assert_ok(modes_stitched_remove(s, 4, t.stitches + 5));
    update(s, &old, MODES_STITCH_ATTACHMENT, 16, 0, &basis, NULL); // no stitch: the old modes
    double error = 0, share = 0;
    judge(&t.both, &basis, &old, 16, &error, &share);
    printf("all removed: old frequencies to %.2g, coverage 1 - %.2g\n", error, 1 - share);
    assert_true(error < 1e-10 && 1 - share < 1e-12);
    modes_stitched_destroy(s), modes_stitched_destroy(fresh);
    modes_basis_destroy(&old), modes_basis_destroy(&plain), modes_basis_destroy(&basis);
    two_bars_destroy(&t);
}

// Modes of the two bars, each computed alone, padded; then the right one a hundred times stiffer. Truth: a full
// eigen-solve of bodies with those materials.
static void test_domains(void **state) {
    (void)state;
    two_bars t;
    two_bars_create(&t, 8, 2, true);
    modes_basis part[2] = {{0}, {0}}, padded = {0}, whole = {0}, truth = {0}, basis = {0};
    for (int p = 0; p < 2; p++) {
        sample alone = {.mesh = t.part[p]};
        sample_matrices(&alone);
        if (p == 0) sample_hold(&alone, "x0");
        old_modes(&alone, p == 0 ? 30 : 10, &part[p]);
        alone.mesh = (fem_mesh){0};
        fem_body_destroy(alone.body), fem_sparse_destroy(&alone.K), fem_sparse_destroy(&alone.M), fem_free(alone.fixed);
    }
    const modes_basis *parts[2] = {&part[0], &part[1]};
    const int          first[2] = {0, t.part[0].vertex_count};
    double             factor[2] = {1, 100}, error, share;
    assert_ok(modes_pad(&padded, t.both.mesh.vertex_count, 2, parts, first, NULL));
    old_modes(&t.both, 20, &whole);
    error = test_relative_error(20, padded.omega2, whole.omega2);
    printf("padded modes of two bars have the union's frequencies to %.2g\n", error);
    assert_true(error < 1e-9);
    assert_true(mass_orthogonality(&t.both, 40, padded.U) < 1e-12);
    // the same body with a stiffer right bar
    modes_stitched *s = NULL;
    assert_ok(modes_stitched_create(&s, &t.both.problem, NULL));
    assert_int_equal(modes_stitched_domains(s), 2);
    assert_ok(modes_stitched_add(s, t.count, t.stitches));
    update(s, &padded, MODES_STITCH_ATTACHMENT, 40, 0, &basis, NULL); // columns of Y exist and must be scaled
    assert_ok(modes_stitched_scale(s, modes_stitched_domain_of(s, first[1]), 100));
    assert_ok(modes_pad(&padded, t.both.mesh.vertex_count, 2, parts, first, factor));
    sample stiff = {0};
    assert_ok(fem_mesh_copy(&stiff.mesh, &t.both.mesh));
    for (int m = 0; m < stiff.mesh.region_count; m++)
        if (strncmp(stiff.mesh.regions[m].name, "right", 5) == 0)
            stiff.mesh.materials[stiff.mesh.regions[m].material].young *= 100;
    sample_matrices(&stiff);
    sample_hold(&stiff, "left.x0");
    full_modes(&stiff, t.count, t.stitches, 0, 20, &truth);
    for (modes_stitch_form form = MODES_STITCH_RITZ; form <= MODES_STITCH_ATTACHMENT; form++) {
        update(s, &padded, form, 40, 0, &basis, NULL);
        judge(&t.both, &basis, &truth, 20, &error, &share);
        printf("%-10s right bar 100 times stiffer: frequencies within %.3g %%, coverage %.6f\n",
               modes_stitch_form_name(form), 100 * error, share);
        if (form == MODES_STITCH_ATTACHMENT) assert_true(error < 0.01 && share > 0.99);
    }
    double *b = fem_alloc((size_t)t.both.n, 8), *x = fem_alloc((size_t)t.both.n, 8), *copy;
    fill(t.both.n, t.both.fixed, b);
    copy = fem_copy(b, (size_t)t.both.n, 8);
    assert_ok(modes_stitched_solve(s, 1, b, x));
    two_bars view = t;
    view.both.K = stiff.K;
    error = backward_error(&view, t.count, x, copy, NULL);
    printf("solve with the stiff bar's own matrix: backward error %.2g\n", error);
    assert_true(error < 1e-14);
    fem_free(b), fem_free(x), fem_free(copy);
    modes_stitched_destroy(s);
    sample_free(&stiff);
    for (int p = 0; p < 2; p++) modes_basis_destroy(&part[p]);
    modes_basis_destroy(&padded), modes_basis_destroy(&whole), modes_basis_destroy(&truth), modes_basis_destroy(&basis);
    two_bars_destroy(&t);
}

// ---- bad input --------------------------------------------------------------------------------------------------

static void test_bad(void **state) {
    (void)state;
    two_bars        t;
    modes_stitched *s = NULL;
    two_bars_create(&t, 4, 1, true);
    const fem_set *held = fem_mesh_vertex_set(&t.both.mesh, "left.x0");
    assert_ok(modes_stitched_create(&s, &t.both.problem, NULL));
    modes_stitch       good = t.stitches[0], bad = good;
    const modes_stitch two[2] = {good, {good.b, good.a, good.stiffness}};
#define REFUSED(text)                                                                                                  \
    do {                                                                                                               \
        modes_stitch list[2] = {good, bad};                                                                            \
        assert_fails(modes_stitched_add(s, 2, list), FEM_BAD_INPUT, text);                                             \
        printf("  %s\n", fem_message());                                                                               \
        assert_int_equal(modes_stitched_count(s), 0);                                                                  \
        bad = good;                                                                                                    \
    } while (0)
    bad.b = bad.a;
    REFUSED("stitch 2: vertex");
    bad.b = t.stitches[1].b;
    REFUSED("apart, expected two in the same place");
    bad.a = held->items[0], bad.b = held->items[1];
    REFUSED("are both fixed");
    bad.a = -1;
    REFUSED("stitch 2: vertex -1, expected 0 to");
    bad.b = t.both.mesh.vertex_count;
    REFUSED("expected 0 to");
    bad = t.stitches[1];
    bad.stiffness = 0;
    REFUSED("stiffness 0 N/m, expected > 0");
    bad.stiffness = -5;
    REFUSED("stiffness -5 N/m, expected > 0");
    bad.stiffness = NAN;
    REFUSED("expected > 0");
    bad.stiffness = INFINITY;
    REFUSED("expected > 0");
    bad.stiffness = 1e12 * t.stiffness;
    REFUSED("times that of the material");
    bad.stiffness = 1e-12 * t.stiffness;
    REFUSED("times that of the material");
    assert_fails(modes_stitched_add(s, 2, two), FEM_BAD_INPUT, "are stitched already");
    printf("  %s\n", fem_message());
    assert_fails(modes_stitched_scale(s, 2, 1), FEM_BAD_INPUT, "domain 2, but the body has 2");
    assert_fails(modes_stitched_scale(s, 1, -1), FEM_BAD_INPUT, "factor -1, expected");
    // what may be stitched does not depend on how stiff domains are by then
    modes_stitch soft = good;
    soft.stiffness = 1e-3 * t.stiffness;
    for (int d = 0; d < 2; d++) assert_ok(modes_stitched_scale(s, d, 1e9));
    assert_ok(modes_stitched_add(s, 1, &soft));
    assert_ok(modes_stitched_remove(s, 1, &soft));
    for (int d = 0; d < 2; d++) assert_ok(modes_stitched_scale(s, d, 1));
    assert_ok(modes_stitched_add(s, 1, &good));
    assert_fails(modes_stitched_add(s, 1, &good), FEM_BAD_INPUT, "stitch 1");
    assert_int_equal(modes_stitched_count(s), 1);
    modes_stitched_destroy(s);
    two_bars_destroy(&t);
}

// ---- property: any sequence, no crash, nothing that is not finite, and the same as made in one go ---------------

static void test_sequences(void **state) {
    (void)state;
    two_bars t;
    two_bars_create(&t, 4, 2, true);
    modes_basis     old = {0}, basis = {0}, check = {0};
    modes_stitched *s = NULL;
    uint64_t        seed = 42;
    int             steps = 0, refused = 0;
    old_modes(&t.both, 8, &old);
    assert_ok(modes_stitched_create(&s, &t.both.problem, NULL));
    for (int step = 0; step < 150; step++) {
        double       x = test_random(&seed), y = test_random(&seed), z = test_random(&seed);
        int          k = (int)(fabs(y) * t.count) % t.count;
        modes_stitch stitch = t.stitches[k];
        stitch.stiffness *= pow(10, 6 * z);
        fem_status status = FEM_OK;
        if (x < 0.1)
            status = modes_stitched_add(s, 1, &stitch);
        else if (x < 0.7)
            status = modes_stitched_remove(s, 1, &stitch);
        else if (x < 0.8)
            status = modes_stitched_scale(s, k % 2, pow(10, 2 * z));
        else if (x < 0.9) { // nonsense
            stitch.b = (int)(1e9 * z);
            assert_int_equal(modes_stitched_add(s, 1, &stitch), FEM_BAD_INPUT);
        }
        steps += status == FEM_OK, refused += status != FEM_OK;
        assert_true(status == FEM_OK || status == FEM_BAD_INPUT);
        if (step % 3) continue;
        modes_stitch_form form = (modes_stitch_form)(step / 3 % 3);
        update(s, &old, form, 8, 0, &basis, NULL);
        for (int i = 0; i < 8 * t.both.n; i++) assert_true(isfinite(basis.U[i]));
        for (int j = 0; j < 8; j++) assert_true(isfinite(basis.omega2[j]) && basis.omega2[j] >= 0);
        if (step % 9 || modes_stitched_count(s) == 0) continue;
        modes_stitched *once = NULL;
        assert_ok(modes_stitched_create(&once, &t.both.problem, NULL));
        for (int d = 0; d < 2; d++) assert_ok(modes_stitched_scale(once, d, modes_stitched_factor(s, d)));
        assert_ok(modes_stitched_add(once, modes_stitched_count(s), modes_stitched_list(s)));
        update(once, &old, form, 8, 0, &check, NULL);
        assert_true(test_relative_error(8, basis.omega2, check.omega2) < 1e-6);
        modes_stitched_destroy(once);
    }
    printf("%d changes made, %d refused\n", steps, refused);
    assert_true(steps > 60 && refused > 10);
    modes_stitched_destroy(s);
    modes_basis_destroy(&old), modes_basis_destroy(&basis), modes_basis_destroy(&check);
    two_bars_destroy(&t);
}

// Every allocation may fail; the list of stitches and the basis stay as they were.
static void test_no_memory(void **state) {
    (void)state;
    two_bars t;
    two_bars_create(&t, 2, 1, true);
    modes_basis     old = {0};
    modes_inverse  *inverse = NULL;
    modes_stitched *s = NULL;
    old_modes(&t.both, 4, &old);
    assert_ok(modes_inverse_create(&inverse, &t.both.problem, MODES_BORDER_MASS));
    long allowed = 0;
    for (bool done = false; !done; allowed++) {
        fem_status           status;
        modes_basis          basis = {0};
        modes_stitch_options options = modes_stitch_default_options();
        options.form = (modes_stitch_form)(allowed % 3);
        fem_memory_fail_after(allowed / 3);
        status = modes_stitched_create(&s, &t.both.problem, inverse);
        if (status == FEM_OK) status = modes_stitched_add(s, 3, t.stitches);
        int count = status == FEM_OK ? 3 : 0;
        if (status == FEM_OK) status = modes_stitched_modes(s, &old, &options, &basis, NULL);
        if (status == FEM_OK) {
            double *b = fem_calloc((size_t)t.both.n, 16);
            status = b ? modes_stitched_solve(s, 1, b, b + t.both.n) : FEM_NO_MEMORY;
            fem_free(b);
        } else if (s) {
            assert_int_equal(modes_stitched_count(s), count);
            assert_null(basis.U);
        }
        fem_memory_fail_after(-1);
        assert_true(status == FEM_OK || status == FEM_NO_MEMORY);
        done = status == FEM_OK && options.form == MODES_STITCH_ATTACHMENT;
        modes_stitched_destroy(s);
        s = NULL;
        modes_basis_destroy(&basis);
    }
    printf("%ld allocations refused in turn\n", allowed / 3);
    assert_true(allowed / 3 > 30);
    modes_inverse_destroy(inverse);
    modes_basis_destroy(&old);
    two_bars_destroy(&t);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_solve),         cmocka_unit_test(test_loose),     cmocka_unit_test(test_forms),
        cmocka_unit_test(test_loads),         cmocka_unit_test(test_matrix),    cmocka_unit_test(test_lowrank_identity),
        cmocka_unit_test(test_without_rigid), cmocka_unit_test(test_vanishing), cmocka_unit_test(test_two_rounds),
        cmocka_unit_test(test_removal),       cmocka_unit_test(test_domains),   cmocka_unit_test(test_bad),
        cmocka_unit_test(test_sequences),     cmocka_unit_test(test_no_memory),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
