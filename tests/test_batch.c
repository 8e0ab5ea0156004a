// Batches of instances: reduced forces side by side against the textbook loops one by one, and the small symmetric
// systems side by side against LAPACK; for every number of instances and every vector width.
#include "tests/polynomial_case.h"

static const int cells[3] = {4, 3, 2};

// ---- forces
// ----------------------------------------------------------------------------------------------------------

typedef struct batch_arrays {
    int     blocks, r;
    double *q, *factor, *V, *f, *K, *work;
} batch_arrays;

static batch_arrays make_arrays(const cubature_batch *batch, int r, int instances) {
    batch_arrays a = {.blocks = cubature_blocks(instances), .r = r};
    size_t       lanes = (size_t)a.blocks * 8;
    a.q = fem_calloc(lanes * (size_t)r, 8), a.factor = fem_calloc(lanes, 8), a.V = fem_calloc(lanes, 8);
    a.f = fem_calloc(lanes * (size_t)r, 8), a.K = fem_calloc(lanes * (size_t)cubature_pairs(r), 8);
    a.work = fem_alloc(cubature_batch_work(batch), 8);
    assert_non_null(a.q), assert_non_null(a.factor), assert_non_null(a.V), assert_non_null(a.f), assert_non_null(a.K);
    assert_non_null(a.work);
    return a;
}

static void free_arrays(batch_arrays *a) {
    fem_free(a->q), fem_free(a->factor), fem_free(a->V), fem_free(a->f), fem_free(a->K), fem_free(a->work);
}

static size_t lane_of(int instance, int entries, int entry) { // place of an entry of an instance
    return ((size_t)(instance / 8) * (size_t)entries + (size_t)entry) * 8 + (size_t)(instance % 8);
}

// The batch's answer for each instance against cubature_polynomial_plain; the largest relative error.
static double compare_with_plain(const cubature_polynomial *p, const batch_arrays *a, int instances, bool scaled) {
    int     r = p->r, pairs = cubature_pairs(r);
    double  worst = 0, V, q[64], f[64], ours[64];
    double *K = fem_alloc((size_t)(r * r), 8), *mine = fem_alloc((size_t)(r * r), 8);
    for (int instance = 0; instance < instances; instance++) {
        double factor = scaled ? a->factor[instance] : 1;
        for (int i = 0; i < r; i++) q[i] = a->q[lane_of(instance, r, i)];
        cubature_polynomial_plain(p, q, &V, f, K);
        for (int i = 0; i < r; i++) ours[i] = a->f[lane_of(instance, r, i)] / factor;
        for (int i = 0; i < r; i++)
            for (int k = 0; k <= i; k++)
                mine[k + i * r] = mine[i + k * r] = a->K[lane_of(instance, pairs, i * (i + 1) / 2 + k)] / factor;
        worst = fmax(worst, fmax(test_relative_error(r, ours, f), test_relative_error(r * r, mine, K)));
        worst = fmax(worst, fabs(a->V[instance] / factor / V - 1));
    }
    fem_free(K), fem_free(mine);
    return worst;
}

// Results that were not asked for change nothing in those that were.
static void check_subsets(const cubature_batch *batch, const batch_arrays *a) {
    batch_arrays b = make_arrays(batch, a->r, a->blocks * 8);
    size_t       lanes = (size_t)a->blocks * 64;
    cubature_batch_evaluate(batch, a->blocks, a->q, a->factor, b.V, NULL, NULL, b.work);
    cubature_batch_evaluate(batch, a->blocks, a->q, a->factor, NULL, b.f, NULL, b.work);
    cubature_batch_evaluate(batch, a->blocks, a->q, a->factor, NULL, NULL, b.K, b.work);
    assert_memory_equal(a->V, b.V, lanes);
    assert_memory_equal(a->f, b.f, lanes * (size_t)a->r);
    assert_memory_equal(a->K, b.K, lanes * (size_t)cubature_pairs(a->r));
    free_arrays(&b);
}

static void test_batches(void **state) {
    (void)state;
    const int       sizes[] = {1, 2, 3, 4, 5, 8, 13, 20, 31};
    polynomial_case c;
    case_create(&c, FEM_T4, CASE_ISOTROPIC, 2, 31, cells, 1);
    cubature_polynomial whole = {0};
    case_polynomial(&c, &whole);
    for (fem_simd level = FEM_SIMD_BASELINE; level <= FEM_SIMD_AVX512; level++) {
        setenv("LIMBER_SIMD", fem_simd_name(level), 1);
        double   worst = 0;
        uint64_t seed = 3;
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            int                 r = sizes[k];
            cubature_polynomial p = {0};
            cubature_batch     *batch = NULL;
            assert_ok(cubature_polynomial_truncate(&p, &whole, r));
            assert_ok(cubature_batch_create(&batch, &p));
            for (int instances = 1; instances <= (r < 10 ? 35 : r < 25 ? 19 : 9); instances += r < 25 ? 1 : 8) {
                batch_arrays a = make_arrays(batch, r, instances);
                for (int i = 0; i < instances; i++) {
                    a.factor[i] = 0.5 + 0.1 * i;
                    for (int j = 0; j < r; j++) a.q[lane_of(i, r, j)] = 1.5 * test_random(&seed);
                }
                cubature_batch_evaluate(batch, a.blocks, a.q, NULL, a.V, a.f, a.K, a.work);
                worst = fmax(worst, compare_with_plain(&p, &a, instances, false));
                cubature_batch_evaluate(batch, a.blocks, a.q, a.factor, a.V, a.f, a.K, a.work);
                worst = fmax(worst, compare_with_plain(&p, &a, instances, true));
                check_subsets(batch, &a);
                free_arrays(&a);
            }
            cubature_batch_destroy(batch);
            cubature_polynomial_destroy(&p);
        }
        printf("  %s: %.1e\n", fem_simd_name(fem_simd_level()), worst);
        assert_true(worst < 1e-12);
    }
    unsetenv("LIMBER_SIMD");
    cubature_polynomial_destroy(&whole);
    case_destroy(&c);
}

// a lane's answer does not depend on its place, on its neighbours, or on how many blocks there are
static void test_lanes(void **state) {
    (void)state;
    enum { R = 9 };
    polynomial_case     c;
    cubature_polynomial p = {0};
    cubature_batch     *batch = NULL;
    uint64_t            seed = 31;
    case_create(&c, FEM_H8, CASE_ISOTROPIC, 2, R, cells, 1);
    case_polynomial(&c, &p);
    assert_ok(cubature_batch_create(&batch, &p));
    batch_arrays many = make_arrays(batch, R, 40), one = make_arrays(batch, R, 1);
    test_random_fill(&seed, 5 * 8 * R, 1.5, many.q);
    cubature_batch_evaluate(batch, 5, many.q, NULL, many.V, many.f, many.K, many.work);
    for (int i = 0; i < 40; i++) {
        for (int j = 0; j < R; j++) one.q[8 * j] = many.q[lane_of(i, R, j)];
        cubature_batch_evaluate(batch, 1, one.q, NULL, one.V, one.f, one.K, one.work);
        assert_true(one.V[0] == many.V[i]);
        for (int j = 0; j < R; j++) assert_true(one.f[8 * j] == many.f[lane_of(i, R, j)]);
        for (int j = 0; j < cubature_pairs(R); j++)
            assert_true(one.K[8 * j] == many.K[lane_of(i, cubature_pairs(R), j)]);
    }
    // new constants
    fem_material m = p.groups[1].material;
    m.young *= 3, m.poisson = 0.2;
    assert_ok(cubature_polynomial_set_material(&p, 1, &m));
    double before = compare_with_plain(&p, &many, 40, false);
    cubature_batch_update(batch, &p);
    cubature_batch_evaluate(batch, 5, many.q, NULL, many.V, many.f, many.K, many.work);
    double after = compare_with_plain(&p, &many, 40, false);
    printf("  after a change of material: %.1e, before the update %.1e\n", after, before);
    assert_true(after < 1e-12 && before > 1e-2);
    free_arrays(&many), free_arrays(&one);
    cubature_batch_destroy(batch);
    cubature_polynomial_destroy(&p);
    case_destroy(&c);
}

static void test_allocation_failure(void **state) {
    (void)state;
    cubature_polynomial p = {0};
    cubature_batch     *batch = NULL;
    long                failures = 0, before = fem_memory_blocks();
    assert_ok(cubature_polynomial_allocate(&p, 5, 1, 2));
    for (;; failures++) {
        fem_memory_fail_after(failures);
        fem_status status = cubature_batch_create(&batch, &p);
        fem_memory_fail_after(-1);
        if (status == FEM_OK) break;
        assert_int_equal(status, FEM_NO_MEMORY);
        assert_int_equal(fem_memory_blocks(), before + 4);
    }
    printf("  %ld allocations refused one after the other\n", failures);
    assert_true(failures == 4);
    cubature_batch_destroy(batch);
    cubature_polynomial_destroy(&p);
}

// ---- small systems
// -----------------------------------------------------------------------------------------------------

// A positive definite matrix per lane, A = B B^T + I/2; the lanes in `broken` get a negative direction at `pivot`.
static void fill_systems(int n, int blocks, double *A, double *b, unsigned broken, int pivot, uint64_t *seed) {
    double *B = fem_alloc((size_t)(n * n), 8);
    for (int lane = 0; lane < 8 * blocks; lane++) {
        test_random_fill(seed, n * n, 1, B);
        for (int j = 0; j < n; j++) {
            for (int i = 0; i <= j; i++) {
                double sum = i == j ? 0.5 : 0;
                for (int k = 0; k < n; k++) sum += B[i * n + k] * B[j * n + k];
                if (i == j && i == pivot && broken >> (lane % 8) & 1) sum = -1 - sum;
                A[lane_of(lane, n * (n + 1) / 2, j * (j + 1) / 2 + i)] = sum;
            }
            b[lane_of(lane, n, j)] = test_random(seed);
        }
    }
    fem_free(B);
}

static void dense_of_lane(int n, const double *A, int lane, double *dense) {
    for (int j = 0; j < n; j++)
        for (int i = 0; i <= j; i++)
            dense[i + j * n] = dense[j + i * n] = A[lane_of(lane, n * (n + 1) / 2, j * (j + 1) / 2 + i)];
}

// Against LAPACK's Cholesky: solutions where the matrix is positive definite, and the lanes where it is not.
static double check_systems(int n, int blocks, unsigned broken, int pivot, uint64_t *seed) {
    size_t         entries = (size_t)(blocks * 8 * n * (n + 1) / 2);
    double        *A = fem_alloc(entries, 8), *b = fem_alloc((size_t)(blocks * 8 * n), 8), worst = 0;
    double        *dense = fem_alloc((size_t)(n * n), 8), *x = fem_alloc((size_t)n, 8), *ours = fem_alloc((size_t)n, 8);
    unsigned char *bad = fem_alloc((size_t)blocks, 1);
    int            expected = 0;
    fill_systems(n, blocks, A, b, broken, pivot, seed);
    double *copy = fem_copy(A, entries, 8), *rhs = fem_copy(b, (size_t)(blocks * 8 * n), 8);
    int     count = fem_batch_solve(n, blocks, A, b, bad);
    for (int lane = 0; lane < 8 * blocks; lane++) {
        dense_of_lane(n, copy, lane, dense);
        for (int i = 0; i < n; i++) x[i] = rhs[lane_of(lane, n, i)], ours[i] = b[lane_of(lane, n, i)];
        bool indefinite = dense_cholesky(n, dense) != FEM_OK;
        expected += indefinite;
        assert_int_equal(bad[lane / 8] >> (lane % 8) & 1, indefinite);
        assert_int_equal(indefinite, broken >> (lane % 8) & 1);
        if (indefinite) continue;
        dense_cholesky_solve(n, dense, 1, x);
        worst = fmax(worst, test_relative_error(n, ours, x));
    }
    assert_int_equal(count, expected);
    fem_free(A), fem_free(b), fem_free(dense), fem_free(x), fem_free(ours), fem_free(bad);
    fem_free(copy), fem_free(rhs);
    return worst;
}

static void test_systems(void **state) {
    (void)state;
    for (fem_simd level = FEM_SIMD_BASELINE; level <= FEM_SIMD_AVX512; level++) {
        setenv("LIMBER_SIMD", fem_simd_name(level), 1);
        double   worst = 0;
        uint64_t seed = 99;
        for (int n = 1; n <= 40; n++) worst = fmax(worst, check_systems(n, 3, 0, 0, &seed));
        for (int n = 1; n <= 13; n++)
            for (int pivot = 0; pivot < n; pivot++) worst = fmax(worst, check_systems(n, 2, 0xa4, pivot, &seed));
        printf("  %s: %.1e from LAPACK\n", fem_simd_name(fem_simd_level()), worst);
        assert_true(worst < 1e-11);
    }
    unsetenv("LIMBER_SIMD");
}

// not a number is a bad lane too, and stays in it
static void test_not_a_number(void **state) {
    (void)state;
    enum { N = 6 };
    double        A[N * (N + 1) / 2 * 8], b[N * 8], A2[N * (N + 1) / 2 * 8], b2[N * 8];
    unsigned char bad;
    uint64_t      seed = 12;
    fill_systems(N, 1, A, b, 0, 0, &seed);
    memcpy(A2, A, sizeof A), memcpy(b2, b, sizeof b);
    A[lane_of(5, 21, 7)] = NAN;
    assert_int_equal(fem_batch_solve(N, 1, A, b, &bad), 1);
    assert_int_equal(bad, 1 << 5);
    assert_int_equal(fem_batch_solve(N, 1, A2, b2, &bad), 0);
    for (int i = 0; i < 8 * N; i++)
        if (i % 8 != 5) assert_true(b[i] == b2[i]);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches), cmocka_unit_test(test_lanes),        cmocka_unit_test(test_allocation_failure),
        cmocka_unit_test(test_systems), cmocka_unit_test(test_not_a_number),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
