// Nonnegative least squares: optimality conditions recomputed from A and b, and the answer of a search through all sets
// of positive entries.
#include "tests/support.h"

#include <math.h>

typedef struct problem {
    int     m, n;
    double *A, *b, *x, *work;
} problem;

static void problem_create(problem *p, int m, int n) {
    *p = (problem){.m = m, .n = n};
    p->A = fem_alloc((size_t)m * (size_t)n, sizeof(double));
    p->b = fem_alloc((size_t)m, sizeof(double));
    p->x = fem_alloc((size_t)n, sizeof(double));
    p->work = fem_alloc(cubature_nnls_work(m, n), sizeof(double));
    assert_true(p->A && p->b && p->x && p->work);
}

static void problem_destroy(problem *p) { fem_free(p->A), fem_free(p->b), fem_free(p->x), fem_free(p->work); }

static double *column(const problem *p, int j) { return p->A + (size_t)j * (size_t)p->m; }

// Entries in (-1, 1); `mean` moves them, so that columns are alike as those of neighbouring elements are.
static void fill(problem *p, uint64_t seed, double mean) {
    for (int i = 0; i < p->m * p->n; i++) p->A[i] = test_random(&seed) + mean;
    for (int i = 0; i < p->m; i++) p->b[i] = test_random(&seed) + mean;
}

// The largest violation of x >= 0, g <= 0, x g = 0 in cosines, g = A^T (b - A x), summed here.
static double violation(const problem *p) {
    double  worst = 0, bb = 0;
    double *r = fem_copy(p->b, (size_t)p->m, sizeof *r);
    for (int i = 0; i < p->m; i++) bb += p->b[i] * p->b[i];
    for (int j = 0; j < p->n; j++)
        for (int i = 0; i < p->m; i++) r[i] -= column(p, j)[i] * p->x[j];
    for (int j = 0; j < p->n; j++) {
        double g = 0, aa = 0;
        for (int i = 0; i < p->m; i++) g += column(p, j)[i] * r[i], aa += column(p, j)[i] * column(p, j)[i];
        assert_true(p->x[j] >= 0);
        if (aa > 0) worst = fmax(worst, (p->x[j] > 0 ? fabs(g) : g) / sqrt(aa * bb));
    }
    fem_free(r);
    return worst;
}

static double residual(const problem *p, const double *x) {
    double sum = 0;
    for (int i = 0; i < p->m; i++) {
        double r = -p->b[i];
        for (int j = 0; j < p->n; j++) r += column(p, j)[i] * x[j];
        sum += r * r;
    }
    return sqrt(sum);
}

static void test_conditions_hold(void **state) {
    (void)state;
    const int sizes[][2] = {{5, 1}, {40, 12}, {225, 60}, {450, 200}, {60, 60}};
    for (int s = 0; s < 5; s++)
        for (int method = 0; method < 2; method++) {
            problem               p;
            cubature_nnls_report  report;
            cubature_nnls_options options = cubature_nnls_default_options();
            options.method = (cubature_nnls_method)method;
            problem_create(&p, sizes[s][0], sizes[s][1]);
            fill(&p, 7 + (uint64_t)s, 0.3);
            assert_ok(cubature_nnls(p.m, p.n, p.A, p.m, p.b, &options, p.x, p.work, &report));
            double worst = violation(&p);
            print_message("%d x %d, method %d: %d of %d positive, %d iterations, violation %.1e\n", p.m, p.n, method,
                          report.positive, p.n, report.iterations, worst);
            assert_true(worst < 1e-12);
            assert_true(fabs(report.violation - worst) < 1e-13);
            if (p.n > 10) assert_true(report.positive > 0 && report.positive < p.n); // the constraint is felt
            problem_destroy(&p);
        }
}

// Every set of positive entries: the best feasible least-squares answer, by normal equations in plain loops.
static double best_of_all_sets(const problem *p) {
    double best = INFINITY;
    for (int set = 0; set < 1 << p->n; set++) {
        int    k = 0, use[10];
        double G[110] = {0}, x[10] = {0};
        for (int j = 0; j < p->n; j++)
            if (set >> j & 1) use[k++] = j;
        for (int a = 0; a < k; a++) {
            for (int b = 0; b < k; b++)
                for (int i = 0; i < p->m; i++) G[11 * a + b] += column(p, use[a])[i] * column(p, use[b])[i];
            for (int i = 0; i < p->m; i++) G[11 * a + k] += column(p, use[a])[i] * p->b[i];
        }
        for (int a = 0; a < k; a++) // Gauss-Jordan; the matrices are well conditioned
            for (int b = 0; b < k; b++) {
                if (b == a) continue;
                double f = G[11 * b + a] / G[11 * a + a];
                for (int c = 0; c <= k; c++) G[11 * b + c] -= f * G[11 * a + c];
            }
        bool feasible = true;
        for (int a = 0; a < k; a++) {
            x[use[a]] = G[11 * a + k] / G[11 * a + a];
            feasible = feasible && x[use[a]] >= 0;
        }
        if (feasible) best = fmin(best, residual(p, x));
    }
    return best;
}

static void test_best_of_all_sets(void **state) {
    (void)state;
    double worst = 0;
    for (uint64_t seed = 1; seed <= 40; seed++)
        for (int method = 0; method < 2; method++) {
            problem               p;
            cubature_nnls_options options = cubature_nnls_default_options();
            options.method = (cubature_nnls_method)method;
            problem_create(&p, 14, 8);
            fill(&p, seed, 0.2);
            assert_ok(cubature_nnls(p.m, p.n, p.A, p.m, p.b, &options, p.x, p.work, NULL));
            double best = best_of_all_sets(&p), found = residual(&p, p.x);
            assert_true(best > 0.1);
            worst = fmax(worst, fabs(found - best) / best);
            problem_destroy(&p);
        }
    print_message("residual against the best of 256 sets, 40 problems: %.1e\n", worst);
    assert_true(worst < 1e-12);
}

// A known answer: b = A x with x >= 0, columns of very different lengths.
static void test_planted_answer(void **state) {
    (void)state;
    problem               p;
    cubature_nnls_options options = cubature_nnls_default_options();
    uint64_t              seed = 5;
    double                planted[50], worst = 0;
    problem_create(&p, 300, 50);
    fill(&p, 3, 0);
    for (int j = 0; j < 50; j++) {
        double scale = pow(10, 6 * test_random(&seed));
        for (int i = 0; i < p.m; i++) column(&p, j)[i] *= scale;
        planted[j] = j % 3 == 0 ? 0 : (1.5 + test_random(&seed)) / scale;
    }
    memset(p.b, 0, (size_t)p.m * sizeof *p.b);
    for (int j = 0; j < 50; j++)
        for (int i = 0; i < p.m; i++) p.b[i] += column(&p, j)[i] * planted[j];
    assert_ok(cubature_nnls(p.m, p.n, p.A, p.m, p.b, &options, p.x, p.work, NULL));
    for (int j = 0; j < 50; j++)
        worst = fmax(worst, planted[j] > 0 ? fabs(p.x[j] / planted[j] - 1)
                                           : p.x[j] * dense_norm(p.m, column(&p, j)) / dense_norm(p.m, p.b));
    print_message("planted answer: %.1e\n", worst);
    assert_true(worst < 1e-10);
    problem_destroy(&p);
}

// Columns that depend on each other, zero columns, more unknowns than equations: block pivoting cannot, the fallback
// can.
static void test_dependent_columns(void **state) {
    (void)state;
    problem               p;
    cubature_nnls_report  report;
    cubature_nnls_options options = cubature_nnls_default_options();
    problem_create(&p, 30, 80);
    fill(&p, 11, 0.4);
    for (int i = 0; i < p.m; i++) {
        column(&p, 7)[i] = column(&p, 3)[i] * 2;
        column(&p, 9)[i] = 0;
        column(&p, 20)[i] = column(&p, 3)[i] + column(&p, 5)[i];
    }
    assert_ok(cubature_nnls(p.m, p.n, p.A, p.m, p.b, &options, p.x, p.work, &report));
    print_message("30 x 80 with dependent columns: fallback %d, violation %.1e, residual %.1e\n", report.fallback,
                  violation(&p), report.residual);
    assert_true(report.fallback);
    assert_true(violation(&p) < 1e-10);
    assert_true(p.x[9] == 0);
    problem_destroy(&p);
}

static void test_negative_side(void **state) {
    (void)state;
    problem               p;
    cubature_nnls_report  report;
    cubature_nnls_options options = cubature_nnls_default_options();
    problem_create(&p, 20, 6);
    fill(&p, 2, 0.5);
    for (int i = 0; i < p.m * p.n; i++) p.A[i] = fabs(p.A[i]);
    for (int i = 0; i < p.m; i++) p.b[i] = -1; // the best is nothing
    assert_ok(cubature_nnls(p.m, p.n, p.A, p.m, p.b, &options, p.x, p.work, &report));
    assert_int_equal(report.positive, 0);
    assert_true(report.residual == 1);
    memset(p.b, 0, (size_t)p.m * sizeof *p.b);
    assert_ok(cubature_nnls(p.m, p.n, p.A, p.m, p.b, &options, p.x, p.work, &report));
    assert_int_equal(report.positive, 0);
    problem_destroy(&p);
}

static void test_failure_is_said(void **state) {
    (void)state;
    problem               p;
    cubature_nnls_report  report;
    cubature_nnls_options options = cubature_nnls_default_options();
    problem_create(&p, 100, 40);
    fill(&p, 8, 0.3);
    options.method = CUBATURE_NNLS_LAWSON_HANSON;
    options.most_iterations = 3;
    assert_fails(cubature_nnls(p.m, p.n, p.A, p.m, p.b, &options, p.x, p.work, &report), FEM_NO_CONVERGENCE,
                 "after 3 iterations");
    assert_true(report.violation > 1e-6 && report.positive == 3);
    for (int j = 0; j < p.n; j++) assert_true(p.x[j] >= 0); // feasible all the same
    assert_true(residual(&p, p.x) < dense_norm(p.m, p.b));
    options.most_iterations = 0;
    column(&p, 4)[7] = NAN;
    assert_fails(cubature_nnls(p.m, p.n, p.A, p.m, p.b, &options, p.x, p.work, NULL), FEM_BAD_INPUT, "column 4");
    column(&p, 4)[7] = 0, p.b[0] = INFINITY;
    assert_fails(cubature_nnls(p.m, p.n, p.A, p.m, p.b, &options, p.x, p.work, NULL), FEM_BAD_INPUT, "right-hand");
    assert_fails(cubature_nnls(0, p.n, p.A, 1, p.b, &options, p.x, p.work, NULL), FEM_BAD_INPUT, "0 equations");
    problem_destroy(&p);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conditions_hold), cmocka_unit_test(test_best_of_all_sets),
        cmocka_unit_test(test_planted_answer),  cmocka_unit_test(test_dependent_columns),
        cmocka_unit_test(test_negative_side),   cmocka_unit_test(test_failure_is_said),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
