// Orthogonalisation in the mass inner product: each method alone, against each other, block by block, of columns that
// depend on each other; the reduced one against its algorithm as printed.
#include "tests/modes_sample.h"

#include "libmodes/krylov_internal.h"

enum { COLUMNS = 45 }; // more than a panel of 32

static const double orthogonal[] = {1e-14, 1e-10, 1e-12}; // what each method must reach on harmless columns

static double *random_columns(const sample *p, int columns, uint64_t seed) {
    double *X = fem_alloc((size_t)p->n * (size_t)columns, sizeof *X);
    assert_non_null(X);
    test_random_fill(&seed, p->n * columns, 1, X);
    return X;
}

static modes_orthogonalise_options options_of(int method) {
    modes_orthogonalise_options o = modes_orthogonalise_default_options();
    o.method = (modes_gram_schmidt)method;
    return o;
}

// K^-1 M again and again on six rigid fields, scaled but never made orthogonal: the columns that P0 has to repair.
static double *power_columns(const sample *p, int blocks) {
    modes_inverse *inverse = NULL;
    size_t         n = (size_t)p->n;
    double        *X = fem_calloc(6 * n * (size_t)blocks, sizeof *X), *B = fem_calloc(6 * n, sizeof *B);
    assert_true(X && B);
    assert_ok(modes_inverse_create(&inverse, &p->problem, MODES_BORDER_MASS));
    modes_seed_fields(&p->problem, p->fixed, MODES_SEED_RIGID, 0, 0, X);
    for (int b = 0; b < blocks; b++) {
        double *from = X + 6 * n * (size_t)(b > 0 ? b - 1 : 0), *to = X + 6 * n * (size_t)b;
        fem_sparse_multiply(&p->M, 6, from, B);
        assert_ok(modes_inverse_solve(inverse, 6, B, to));
        for (size_t c = 0; c < 6; c++) dense_scale(p->n, 1 / dense_norm(p->n, to + c * n), to + c * n);
    }
    modes_inverse_destroy(inverse);
    fem_free(B);
    return X;
}

// every method gives an orthonormal matrix, all the same one (the QR factorisation is unique), and its span is the same
static void test_methods_agree(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        sample p;
        sample_box(&p, (fem_element)type, 9, 4, 3, NULL);
        double *X = random_columns(&p, COLUMNS, 7), *reference = NULL;
        for (int method = 0; method < 3; method++) {
            modes_orthogonalise_options o = options_of(method);
            modes_orthogonalise_report  report;
            double                     *U = fem_copy(X, (size_t)p.n * COLUMNS, sizeof *U), lost = 0;
            int                         rank = 0;
            assert_non_null(U);
            assert_ok(modes_orthogonalise(&p.problem, &o, COLUMNS, U, &rank, &report));
            assert_int_equal(rank, COLUMNS);
            double measured = mass_orthogonality(&p, rank, U);
            for (int j = 0; j < COLUMNS; j++) lost = fmax(lost, not_covered(&p, rank, U, X + j * p.n));
            double apart = reference ? test_relative_error(p.n * COLUMNS, U, reference) : 0;
            printf("  %s %-5s U^T M U - I %.1e (reported %.1e), columns lost %.1e, from the block method %.1e\n",
                   type == FEM_T4 ? "T4" : "H8", modes_gram_schmidt_name(o.method), measured, report.orthogonality,
                   lost, apart);
            assert_true(measured < orthogonal[method] && lost < 1e-13 && apart < 1e-11);
            assert_true(fabs(measured - report.orthogonality) < 1e-13);
            if (method == 0)
                reference = U;
            else
                fem_free(U);
        }
        fem_free(X), fem_free(reference);
        sample_free(&p);
    }
}

// columns given in blocks of changing width come out as those given at once
static void test_blocks(void **state) {
    (void)state;
    sample p;
    sample_box(&p, FEM_T4, 9, 4, 3, NULL);
    double *X = random_columns(&p, COLUMNS, 8);
    for (int method = 0; method < 3; method++) {
        modes_orthogonalise_options o = options_of(method);
        modes_orthogonaliser       *ortho = NULL;
        int                         rank = 0, kept = 0;
        double *U = fem_copy(X, (size_t)p.n * COLUMNS, sizeof *U), *V = fem_copy(X, (size_t)p.n * COLUMNS, sizeof *V);
        double *B = fem_alloc((size_t)p.n * COLUMNS, sizeof *B), *C = fem_alloc((size_t)p.n * COLUMNS, sizeof *C);
        assert_true(U && V && B && C);
        assert_ok(modes_orthogonalise(&p.problem, &o, COLUMNS, U, &rank, NULL));
        assert_ok(modes_orthogonaliser_create(&ortho, &p.problem, &o, COLUMNS, V));
        for (int first = 0, width = 1; first < COLUMNS; first += width, width = width * 2 + 1) {
            if (width > COLUMNS - first) width = COLUMNS - first;
            assert_ok(modes_orthogonaliser_add(ortho, width, &kept));
            assert_int_equal(kept, width);
        }
        modes_orthogonaliser_mass(ortho, 0, COLUMNS, B); // before the end, when V changes for the last time
        fem_sparse_multiply(&p.M, COLUMNS, V, C);
        double product = test_relative_error(p.n * COLUMNS, B, C);
        assert_fails(modes_orthogonaliser_add(ortho, 1, &kept), FEM_BAD_INPUT, "1 columns after 45");
        assert_ok(modes_orthogonaliser_finish(ortho, NULL));
        double apart = test_relative_error(p.n * COLUMNS, V, U);
        printf("  %-5s in blocks of 1, 3, 7, 15, 19: difference %.1e, M U %.1e\n", modes_gram_schmidt_name(o.method),
               apart, product);
        assert_true(apart < 1e-11 && product < 1e-12);
        modes_orthogonaliser_destroy(ortho);
        fem_free(U), fem_free(V), fem_free(B), fem_free(C);
    }
    fem_free(X);
    sample_free(&p);
}

// dependent columns are dropped, wherever they are, and nothing else; what is left is orthonormal all the same
static void test_dependent(void **state) {
    (void)state;
    sample p;
    sample_box(&p, FEM_T4, 9, 4, 3, NULL);
    for (int method = 0; method < 3; method++) {
        modes_orthogonalise_options o = options_of(method);
        modes_orthogonalise_report  report;
        double                     *U = random_columns(&p, COLUMNS, 9), *E = random_columns(&p, 1, 10);
        int                         rank = 0, n = p.n;
        // 5 = 2 x column 3 - column 1; 20 zero; 33 = column 32 and 1e-6 of something else; 34 = column 7, to 1e-11;
        // 44 = sum of the first ten
        for (int i = 0; i < n; i++) {
            U[5 * n + i] = 2 * U[3 * n + i] - U[n + i];
            U[20 * n + i] = 0;
            U[33 * n + i] = U[32 * n + i] + 1e-6 * U[33 * n + i];
            U[34 * n + i] = U[7 * n + i] + 1e-11 * E[i];
            U[44 * n + i] = 0;
            for (int j = 0; j < 10; j++) U[44 * n + i] += U[j * n + i];
        }
        double *last = fem_copy(U + 43 * n, (size_t)n, sizeof *last), *close = fem_copy(U + 33 * n, (size_t)n, 8);
        assert_ok(modes_orthogonalise(&p.problem, &o, COLUMNS, U, &rank, &report));
        double measured = mass_orthogonality(&p, rank, U);
        double lost = fmax(not_covered(&p, rank, U, last), not_covered(&p, rank, U, close));
        printf("  %-5s %d of %d columns kept, U^T M U - I %.1e, lost %.1e\n", modes_gram_schmidt_name(o.method), rank,
               COLUMNS, measured, lost);
        assert_int_equal(rank, COLUMNS - 4);
        assert_int_equal(report.offered, COLUMNS);
        assert_int_equal(report.rank, rank);
        // without a second look at the whole vectors, rounding grows by the 1e6 of the close column
        assert_true(lost < (method == 0 ? 1e-13 : 1e-10));
        // one pass of modified Gram-Schmidt loses what the 1e-6 asks for
        assert_true(measured < (method == MODES_GRAM_SCHMIDT_MASS ? 1e-8 : method == 0 ? 1e-14 : 1e-11));
        fem_free(U), fem_free(E), fem_free(last), fem_free(close);
    }
    sample_free(&p);
}

// on the nearly dependent columns of an unrepaired power iteration, block Gram-Schmidt stays at rounding level and
// modified Gram-Schmidt drifts
static void test_ill_conditioned(void **state) {
    (void)state;
    sample p;
    double reached[2];
    sample_box(&p, FEM_T4, 10, 4, 3, NULL);
    sample_hold(&p, "x0");
    double *X = power_columns(&p, 4);
    for (int method = MODES_GRAM_SCHMIDT_BLOCK; method <= MODES_GRAM_SCHMIDT_MASS; method++) {
        modes_orthogonalise_options o = options_of(method);
        double                     *U = fem_copy(X, 24 * (size_t)p.n, sizeof *U);
        int                         rank = 0;
        o.dependence = 1e-13;
        assert_ok(modes_orthogonalise(&p.problem, &o, 24, U, &rank, NULL));
        reached[method] = mass_orthogonality(&p, rank, U);
        printf("  %-5s rank %d of 24, U^T M U - I %.1e\n", modes_gram_schmidt_name(o.method), rank, reached[method]);
        assert_int_equal(rank, 24);
        fem_free(U);
    }
    assert_true(reached[0] < 1e-14 && reached[1] > 1e-10);
    fem_free(X);
    sample_free(&p);
}

// ---- the reduced method --------------------------------------------------------------------------------------------

// weights are the body's mass, nodes are distinct, and the sum converges to the mass inner product of smooth fields
static void test_sample(void **state) {
    (void)state;
    sample p;
    double previous = INFINITY, first = 0;
    sample_box(&p, FEM_T4, 24, 12, 8, NULL);
    double *u = fem_alloc((size_t)p.n, sizeof *u), *Mu = fem_alloc((size_t)p.n, sizeof *Mu);
    assert_true(u && Mu);
    for (int i = 0; i < p.n; i++) {
        const double *x = p.mesh.vertices + 3 * (i / 3);
        u[i] = sin(0.9 * x[0]) + x[1] * x[2] - 0.3 * x[i % 3];
    }
    fem_sparse_multiply(&p.M, 1, u, Mu);
    double exact = dense_dot(p.n, u, Mu);
    for (int wanted = 30; wanted <= 1920; wanted *= 8) {
        modes_sample s;
        double       sum = 0, mass = 0;
        assert_ok(modes_sample_create(&s, &p.problem, wanted));
        for (int k = 0; k < s.count; k++) {
            mass += s.weight[k];
            sum += s.weight[k] * vec3_dot(u + 3 * s.vertex[k], u + 3 * s.vertex[k]);
            for (int l = 0; l < k; l++) assert_int_not_equal(s.vertex[k], s.vertex[l]);
        }
        double error = fabs(sum / exact - 1), total = fem_body_total_mass(p.body);
        printf("  %4d nodes for %4d wanted: mass %.1e, inner product %.1e\n", s.count, wanted, fabs(mass / total - 1),
               error);
        assert_true(fabs(mass / total - 1) < 1e-12);
        assert_true(s.count > 0.7 * wanted && s.count < 1.6 * wanted);
        assert_true(error < previous);
        previous = error;
        if (wanted == 30) first = error;
        modes_sample_destroy(&s);
    }
    assert_true(previous < first / 2.5); // cubes of a quarter the size: the nodes nearest their centres are off by O(h)
    fem_free(u), fem_free(Mu);
    sample_free(&p);
}

// P0 Algorithm 2, corrected, on the rows S (m x columns) alone: every norm is evaluated afresh.
static void algorithm_2(int m, int columns, int passes, double threshold, double *S, long *done, long *left) {
    for (int i = 0; i < columns; i++)
        for (int pass = 0; pass < passes; pass++) {
            double *v = S + i * m;
            for (int j = 0; j < i; j++) {
                double l = dense_norm(m, v), alpha = dense_dot(m, v, S + j * m) / l;
                if (fabs(alpha) < threshold) {
                    ++*left;
                    continue;
                }
                ++*done;
                dense_axpy(m, -alpha * l, S + j * m, v);
            }
            dense_scale(m, 1 / dense_norm(m, v), v);
        }
}

// the fast and the plain way do what the algorithm says on the sample, and the whole vectors follow
static void test_algorithm(void **state) {
    (void)state;
    sample p;
    sample_box(&p, FEM_T4, 12, 6, 5, NULL);
    double *X = random_columns(&p, COLUMNS, 11);
    for (int plain = 0; plain < 2; plain++) {
        modes_orthogonalise_options o = options_of(MODES_GRAM_SCHMIDT_REDUCED);
        modes_orthogonalise_report  report;
        modes_orthogonaliser       *ortho = NULL;
        double                     *U = fem_copy(X, (size_t)p.n * COLUMNS, sizeof *U), follow = 0, differ = 0;
        long                        done = 0, left = 0;
        int                         kept = 0;
        o.plain = plain, o.threshold = 0.03;
        assert_ok(modes_orthogonaliser_create(&ortho, &p.problem, &o, COLUMNS, U));
        int     m = 3 * ortho->sample.count;
        double *S = fem_alloc((size_t)m * COLUMNS, sizeof *S);
        for (int j = 0; j < COLUMNS; j++)
            for (int i = 0; i < m; i++)
                S[j * m + i] = sqrt(ortho->sample.weight[i / 3]) * X[j * p.n + 3 * ortho->sample.vertex[i / 3] + i % 3];
        algorithm_2(m, COLUMNS, 2, o.threshold, S, &done, &left);
        assert_ok(modes_orthogonaliser_add(ortho, COLUMNS, &kept));
        assert_int_equal(kept, COLUMNS);
        differ = test_relative_error(m * COLUMNS, ortho->S, S);
        for (int j = 0; j < COLUMNS; j++)
            for (int i = 0; i < m; i++)
                follow =
                    fmax(follow, fabs(ortho->S[j * m + i] - sqrt(ortho->sample.weight[i / 3]) *
                                                                U[j * p.n + 3 * ortho->sample.vertex[i / 3] + i % 3]));
        assert_ok(modes_orthogonaliser_finish(ortho, &report));
        printf(
            "  %s, %d nodes: %ld subtractions, %ld left out; from the algorithm %.1e, vectors follow to %.1e; sample "
            "%.1e, U^T M U - I %.1e\n",
            plain ? "plain" : "fast ", report.samples, report.subtractions, report.culled, differ, follow,
            report.sample_orthogonality, report.orthogonality);
        // norms by increments drift, since what was left out is not in them: a cosine near the threshold may fall on
        // the other side of it, no more
        assert_true(done > 100 && left > 100);
        assert_true(labs(report.subtractions - done) <= 4 && labs(report.culled - left) <= 4);
        assert_true(differ < 0.02 && follow < 1e-12);
        assert_true(report.orthogonality < 1e-12);
        modes_orthogonaliser_destroy(ortho);
        fem_free(U), fem_free(S);
    }
    fem_free(X);
    sample_free(&p);
}

// in the recursion that it is made for, one pass leaves columns that are far from orthogonal even on the sample; two
// reach the threshold
static void test_one_pass_is_poor(void **state) {
    (void)state;
    sample p;
    double left[2];
    sample_box(&p, FEM_T4, 20, 6, 5, NULL);
    sample_hold(&p, "x0");
    for (int passes = 1; passes <= 2; passes++) {
        modes_krylov_options o = modes_krylov_default_options();
        modes_krylov_report  report = {0};
        modes_basis          basis = {0};
        o.count = 60, o.orthogonalise = options_of(MODES_GRAM_SCHMIDT_REDUCED), o.orthogonalise.passes = passes;
        assert_ok(modes_krylov(&p.problem, &o, NULL, &basis, &report));
        left[passes - 1] = report.orthogonalise.sample_orthogonality;
        printf("  %d pass(es), %d nodes: largest cosine on the sample %.1e, after the Cholesky factorisation %.1e\n",
               passes, report.orthogonalise.samples, left[passes - 1], report.orthogonalise.orthogonality);
        assert_true(report.orthogonalise.orthogonality < 1e-10);
        modes_basis_destroy(&basis);
        fem_free(report.rayleigh), fem_free(report.residuals);
    }
    assert_true(left[0] > 0.1 && left[1] < 0.0011);
    sample_free(&p);
}

// ---- all -----------------------------------------------------------------------------------------------------------

// the same bits with one thread and with three
static void test_threads(void **state) {
    (void)state;
    sample p;
    sample_box(&p, FEM_T4, 12, 6, 5, NULL);
    double *X = random_columns(&p, COLUMNS, 12);
    for (int method = 0; method < 3; method++) {
        modes_orthogonalise_options o = options_of(method);
        double *U = fem_copy(X, (size_t)p.n * COLUMNS, sizeof *U), *V = fem_copy(X, (size_t)p.n * COLUMNS, sizeof *V);
        int     rank = 0;
        fem_set_threads(1);
        assert_ok(modes_orthogonalise(&p.problem, &o, COLUMNS, U, &rank, NULL));
        fem_set_threads(3);
        assert_ok(modes_orthogonalise(&p.problem, &o, COLUMNS, V, &rank, NULL));
        fem_set_threads(0);
        assert_memory_equal(U, V, (size_t)p.n * COLUMNS * sizeof *U);
        fem_free(U), fem_free(V);
    }
    fem_free(X);
    sample_free(&p);
}

// a mass matrix whose blocks are no multiples of the identity is multiplied as it is
static void test_general_mass(void **state) {
    (void)state;
    sample p;
    sample_box(&p, FEM_T4, 6, 3, 3, NULL);
    for (int i = 0; i < p.M.n; i++) p.M.value[9 * p.M.row_start[i]] *= 1 + 0.1 * (i % 3); // heavier in x
    double                     *U = random_columns(&p, COLUMNS, 13);
    modes_orthogonalise_options o = options_of(MODES_GRAM_SCHMIDT_BLOCK);
    int                         rank = 0;
    assert_ok(modes_orthogonalise(&p.problem, &o, COLUMNS, U, &rank, NULL));
    printf("  U^T M U - I %.1e\n", mass_orthogonality(&p, rank, U));
    assert_true(rank == COLUMNS && mass_orthogonality(&p, rank, U) < 1e-14);
    fem_free(U);
    sample_free(&p);
}

static void test_failures(void **state) {
    (void)state;
    sample p;
    int    rank = 0;
    sample_box(&p, FEM_T4, 3, 2, 2, NULL);
    double                     *U = random_columns(&p, 40, 14);
    modes_orthogonalise_options good = modes_orthogonalise_default_options(), o = good;
#define REFUSED(change, text)                                                                                          \
    o = good;                                                                                                          \
    change;                                                                                                            \
    assert_fails(modes_orthogonalise(&p.problem, &o, 40, U, &rank, NULL), FEM_BAD_INPUT, text)
    REFUSED(o.passes = -1, "orthogonalise.passes is -1");
    REFUSED(o.dependence = 0, "orthogonalise.dependence is 0");
    REFUSED(o.threshold = 1, "orthogonalise.threshold is 1");
    REFUSED(o.samples = -2, "orthogonalise.samples is -2");
    REFUSED(o.method = (modes_gram_schmidt)3, "orthogonalise.method is 3");
    REFUSED(o.method = MODES_GRAM_SCHMIDT_REDUCED; o.samples = 4, "too small for 40 columns");
    REFUSED(U[7 * p.n + 3] = NAN, "not finite");
    REFUSED(o.method = MODES_GRAM_SCHMIDT_MASS, "not finite");
    o = good;
    assert_fails(modes_orthogonalise(&p.problem, &o, 0, U, &rank, NULL), FEM_BAD_INPUT, "0 columns");
    fem_sparse_zero(&p.M);
    REFUSED(o.method = MODES_GRAM_SCHMIDT_REDUCED, "density must be positive");
    fem_free(U);
    sample_free(&p);
}

// a refused allocation anywhere is reported and leaves nothing behind
static void test_allocation_failure(void **state) {
    (void)state;
    sample p;
    sample_box(&p, FEM_T4, 6, 3, 3, NULL);
    for (int method = 0; method < 3; method++) {
        modes_orthogonalise_options o = options_of(method);
        long                        failures = 0;
        for (;; failures++) {
            double *U = random_columns(&p, COLUMNS, 15);
            int     rank = 0;
            long    before = fem_memory_blocks();
            fem_memory_fail_after(failures);
            fem_status status = modes_orthogonalise(&p.problem, &o, COLUMNS, U, &rank, NULL);
            fem_memory_fail_after(-1);
            assert_int_equal(fem_memory_blocks(), before);
            fem_free(U);
            if (status == FEM_OK) break;
            assert_int_equal(status, FEM_NO_MEMORY);
        }
        printf("  %-5s %ld allocations refused one after the other\n", modes_gram_schmidt_name(o.method), failures);
        assert_true(failures > 8);
    }
    sample_free(&p);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_methods_agree),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_dependent),
        cmocka_unit_test(test_ill_conditioned),
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_algorithm),
        cmocka_unit_test(test_one_pass_is_poor),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_general_mass),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_allocation_failure),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
