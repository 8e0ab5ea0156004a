// The ground floor: messages, memory, scratch, threads, dense algebra, the machine.
#include "tests/support.h"

#include <math.h>
#include <pthread.h>

// a message may quote the one before it, prefixes stack, and an overlong one is cut, not overrun
static void test_status(void **state) {
    (void)state;
    assert_int_equal(fem_fail(FEM_IO, "cannot open %s", "a.veg"), FEM_IO);
    assert_string_equal(fem_message(), "cannot open a.veg");
    fem_fail(FEM_IO, "while reading: %s", fem_message());
    assert_string_equal(fem_message(), "while reading: cannot open a.veg");
    assert_int_equal(fem_fail_prefix(FEM_BAD_INPUT, "%s:%d: ", "scene.json", 4), FEM_BAD_INPUT);
    assert_string_equal(fem_message(), "scene.json:4: while reading: cannot open a.veg");
    char *text = fem_alloc(5000, 1);
    memset(text, 'x', 4999), text[4999] = 0;
    fem_fail(FEM_IO, "%s", text);
    assert_true(strlen(fem_message()) < 5000 && strlen(fem_message()) > 500);
    fem_free(text);
}

// sizes that overflow are refused, memory is aligned, counted, and grown without loss
static void test_memory(void **state) {
    (void)state;
    long blocks = fem_memory_blocks();
    assert_null(fem_alloc(SIZE_MAX / 4, 8));
    assert_null(fem_alloc(SIZE_MAX, 1));
    size_t sizes[] = {0, 1, 63, 64, 65, 4096, 5 << 20};
    for (int i = 0; i < 7; i++) {
        char *memory = fem_calloc(sizes[i], 1);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % 64, 0);
        for (size_t k = 0; k < sizes[i]; k++) assert_true(memory[k] == 0);
        fem_free(memory);
    }
    int   *items = NULL;
    size_t capacity = 0;
    for (size_t n = 0; n < 1000; n++) {
        assert_ok(fem_grow((void **)&items, &capacity, n + 1, sizeof *items));
        items[n] = (int)n;
    }
    for (int n = 0; n < 1000; n++) assert_int_equal(items[n], n);
    fem_memory_fail_after(0);
    assert_int_equal(fem_grow((void **)&items, &capacity, capacity + 1, sizeof *items), FEM_NO_MEMORY);
    fem_memory_fail_after(-1);
    assert_int_equal(items[999], 999);
    fem_free(items);
    fem_free(NULL);
    assert_int_equal(fem_memory_blocks(), blocks);
    fem_memory_fail_after(2);
    void *a = fem_alloc(8, 1), *b = fem_alloc(8, 1), *c = fem_alloc(8, 1), *d = fem_alloc(8, 1);
    fem_memory_fail_after(-1);
    assert_true(a && b && !c && !d);
    fem_free(a), fem_free(b);
}

// scratch is carved in aligned pieces and says when it is empty
static void test_scratch(void **state) {
    (void)state;
    fem_scratch scratch;
    assert_ok(fem_scratch_create(&scratch, FEM_SCRATCH_BYTES(10, 8) + FEM_SCRATCH_BYTES(3, 4)));
    double *x = fem_scratch_take(&scratch, 10, 8);
    int    *y = fem_scratch_take(&scratch, 3, 4);
    assert_true(x && y && (char *)y >= (char *)(x + 10));
    assert_null(fem_scratch_take(&scratch, 1, 1));
    assert_null(fem_scratch_take(&scratch, SIZE_MAX, 8));
    fem_scratch_destroy(&scratch);
}

enum { TASKS = 10000 };
typedef struct tally {
    int  hits[TASKS];
    int  workers[64];
    bool nested_wrong;
} tally;
static void inner_task(void *context, int index, int worker) {
    if (worker != 0) *(bool *)context = true;
    (void)index;
}
static void count_task(void *context, int index, int worker) {
    tally *t = context;
    t->hits[index]++;
    t->workers[worker]++;
    if (index % 1000 == 0) fem_parallel_for(4, inner_task, &t->nested_wrong);
}

// every index is visited once, by a worker in range, also from within a task, for any number of threads, again and
// again
static void test_parallel(void **state) {
    (void)state;
    for (int threads = 0; threads <= 5; threads++) {
        fem_set_threads(threads);
        for (int round = 0; round < 20; round++) {
            tally *t = fem_calloc(1, sizeof *t);
            fem_parallel_for(TASKS, count_task, t);
            int visits = 0;
            for (int i = 0; i < TASKS; i++) assert_int_equal(t->hits[i], 1);
            for (int w = 0; w < 64; w++) visits += w < fem_threads() ? t->workers[w] : 0;
            assert_int_equal(visits, TASKS);
            assert_false(t->nested_wrong);
            fem_free(t);
        }
    }
    fem_set_threads(0);
    fem_parallel_for(0, count_task, NULL);
}

static void *other_thread(void *argument) {
    tally *t = argument;
    fem_parallel_for(TASKS, count_task, t);
    return NULL;
}
// two threads of the caller's may use parallel-for at once
static void test_parallel_callers(void **state) {
    (void)state;
    tally    *t[2] = {fem_calloc(1, sizeof *t[0]), fem_calloc(1, sizeof *t[0])};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, other_thread, t[i]), 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < TASKS; i++) assert_true(t[0]->hits[i] == 1 && t[1]->hits[i] == 1);
    fem_free(t[0]), fem_free(t[1]);
}

// products, factor and eigenvalues against loops written out
static void test_dense(void **state) {
    (void)state;
    enum { N = 7, K = 5 };
    uint64_t seed = 4;
    double   A[N * N], B[N * N], C[N * K], x[N], y[N], expected[N], values[N], worst = 0;
    test_random_fill(&seed, N * K, 1, C);
    dense_gemm(false, true, N, N, K, 1, C, C, 0, A); // A = C C^T + 2 I, positive definite
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < K; k++) sum += C[k * N + i] * C[k * N + j];
            worst = fmax(worst, fabs(A[j * N + i] - sum));
        }
    for (int i = 0; i < N; i++) A[i * N + i] += 2;
    test_random_fill(&seed, N, 1, x);
    dense_gemv_set(N, N, 2, A, x, y);
    for (int i = 0; i < N; i++) {
        expected[i] = 0;
        for (int j = 0; j < N; j++) expected[i] += 2 * A[j * N + i] * x[j];
    }
    worst = fmax(worst, test_relative_error(N, y, expected));
    memcpy(B, A, sizeof A);
    assert_ok(dense_cholesky(N, B));
    dense_cholesky_solve(N, B, 1, y);
    for (int i = 0; i < N; i++) worst = fmax(worst, fabs(y[i] - 2 * x[i]));
    memcpy(B, A, sizeof A);
    assert_ok(dense_symmetric_eigen(N, B, values));
    for (int k = 0; k < N; k++) { // A v = lambda v
        dense_gemv_set(N, N, 1, A, B + k * N, y);
        dense_axpy(N, -values[k], B + k * N, y);
        worst = fmax(worst, dense_norm(N, y));
        assert_true(k == 0 || values[k] >= values[k - 1]);
    }
    printf("  worst error %.1e\n", worst);
    assert_true(worst < 1e-13);
    for (int i = 0; i < N; i++) y[i] = 7; // the product with a matrix without columns, or rows, is zero
    dense_gemv_set(N, 0, 1, A, x, y);
    assert_true(dense_norm(N, y) == 0);
    for (int i = 0; i < N; i++) y[i] = 7;
    dense_gemv_t_set(0, N, 1, A, x, y);
    assert_true(dense_norm(N, y) == 0);
    A[3 * N + 3] = -1;
    assert_fails(dense_cholesky(N, A), FEM_INDEFINITE, "not positive definite");
}

// BLAS runs kernels that fit the processor, on one thread of ours at a time
static void test_machine(void **state) {
    (void)state;
    fem_machine m;
    fem_machine_describe(&m);
    printf("  OpenBLAS runs %s kernels from %s, vector width %s, ARPACK's BLAS %s\n", m.blas_kernels, m.blas_file,
           fem_simd_name(m.simd), m.arpack_blas);
    assert_null(m.blas_advice);
    assert_non_null(strstr(m.blas_file, "openblas"));
    assert_string_equal(m.blas_file, m.arpack_blas);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status),   cmocka_unit_test(test_memory),           cmocka_unit_test(test_scratch),
        cmocka_unit_test(test_parallel), cmocka_unit_test(test_parallel_callers), cmocka_unit_test(test_dense),
        cmocka_unit_test(test_machine),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
