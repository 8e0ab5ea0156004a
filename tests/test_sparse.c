// Sparse matrices and their factor: pattern, products and solves against dense ones; indefinite matrices; failing
// memory.
#include "libfem/factor_internal.h"
#include "tests/support.h"

#include <math.h>

typedef struct problem {
    fem_mesh       mesh;
    fem_body      *body;
    fem_sparse     K;
    int            n;
    unsigned char *fixed;
} problem;

// The stiffness of a box held at x = 0, one more vertex on a slider (two of its dofs held).
static void make_box_problem(problem *p, fem_element type, const int cells[3]) {
    *p = (problem){0};
    const double     low[3] = {0, 0, 0}, high[3] = {2, 1, 1};
    fem_body_options options = fem_body_default_options();
    assert_ok(fem_generate_box(&p->mesh, type, low, high, cells));
    assert_ok(fem_body_create(&p->body, &p->mesh, &options));
    assert_ok(fem_body_matrix(p->body, &p->K));
    p->n = 3 * p->mesh.vertex_count;
    double *u = fem_calloc((size_t)p->n, 8);
    fem_body_evaluate(p->body, u, NULL, NULL, &p->K);
    fem_free(u);
    p->fixed = fem_calloc((size_t)p->n, 1);
    const fem_set *set = fem_mesh_vertex_set(&p->mesh, "x0");
    assert_non_null(set);
    for (int i = 0; i < set->count; i++) memset(p->fixed + 3 * set->items[i], 1, 3);
    p->fixed[p->n - 1] = p->fixed[p->n - 3] = 1;
}

static void make_problem(problem *p, fem_element type) { make_box_problem(p, type, (const int[]){5, 3, 2}); }

static void free_problem(problem *p) {
    fem_sparse_destroy(&p->K);
    fem_body_destroy(p->body);
    fem_mesh_destroy(&p->mesh);
    fem_free(p->fixed);
}

// rows ascend, the diagonal comes first, blocks are found, and exactly the pairs of vertices that share an element are
// there
static void test_pattern(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        problem p;
        make_problem(&p, (fem_element)type);
        int            v = p.mesh.vertex_count, width = fem_element_vertices(p.mesh.type), pairs = 0;
        unsigned char *together = fem_calloc((size_t)v * (size_t)v, 1);
        for (int e = 0; e < p.mesh.element_count; e++)
            for (int a = 0; a < width; a++)
                for (int b = 0; b < width; b++)
                    together[p.mesh.elements[e * width + a] * v + p.mesh.elements[e * width + b]] = 1;
        for (int i = 0; i < v; i++)
            for (int j = i; j < v; j++) {
                int found = fem_sparse_find(&p.K, i, j);
                assert_true((found >= 0) == together[i * v + j]);
                if (found >= 0) assert_int_equal(p.K.column[found], j);
                pairs += found >= 0;
            }
        printf("  %d vertices, %d blocks\n", v, p.K.blocks);
        assert_int_equal(pairs, p.K.blocks);
        for (int i = 0; i < v; i++) assert_int_equal(p.K.column[p.K.row_start[i]], i);
        fem_free(together);
        free_problem(&p);
    }
}

// solving gives back the vector whose product it was given, zero where dofs are held, for one and many right-hand sides
static void test_solve(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++)
        for (int columns = 1; columns <= 70; columns += 23) {
            problem     p;
            fem_factor *factor = NULL;
            uint64_t    seed = 9;
            make_problem(&p, (fem_element)type);
            int     total = p.n * columns;
            double *X = fem_alloc((size_t)total, 8), *B = fem_alloc((size_t)total, 8);
            test_random_fill(&seed, total, 1, X);
            for (int i = 0; i < total; i++)
                if (p.fixed[i % p.n]) X[i] = 0;
            fem_sparse_multiply(&p.K, columns, X, B);
            assert_ok(fem_factor_create(&factor, &p.K, p.fixed));
            assert_ok(fem_factor_factorise(factor, &p.K));
            assert_ok(fem_factor_solve(factor, columns, B, B));
            double            error = test_relative_error(total, B, X);
            fem_factor_report report = fem_factor_get_report(factor);
            printf("  %s, %d right-hand sides: error %.1e (%d free dofs, %.0f entries)\n", type == FEM_T4 ? "T4" : "H8",
                   columns, error, report.free_dofs, report.entries);
            assert_true(error < 1e-11);
            int held = 0;
            for (int i = 0; i < p.n; i++) held += p.fixed[i];
            assert_int_equal(report.free_dofs, p.n - held);
            for (int i = 0; i < total; i++)
                if (p.fixed[i % p.n]) assert_true(B[i] == 0);
            // a second factorisation with other values on the same analysis
            fem_sparse_scale(&p.K, 4);
            assert_ok(fem_factor_factorise(factor, &p.K));
            fem_sparse_multiply(&p.K, columns, X, B);
            assert_ok(fem_factor_solve(factor, columns, B, B));
            assert_true(test_relative_error(total, B, X) < 1e-11);
            fem_factor_destroy(factor);
            fem_free(X), fem_free(B);
            free_problem(&p);
        }
}

// the block solve gives what CHOLMOD's own solve gives, for any number of right-hand sides, with supernodes from one
// column to hundreds, sliders all over the body, and every vector width; a column's result does not depend on the
// threads or on the columns beside it
static void test_block_solve(void **state) {
    (void)state;
    enum { MOST = 53 };
    const char *const widths[] = {"baseline", "avx2", "avx512"};
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        problem     p;
        fem_factor *factor = NULL;
        uint64_t    seed = 5;
        make_box_problem(&p, (fem_element)type, (const int[]){11, 9, 8});
        for (int v = 0; v < p.n / 3; v += 5) p.fixed[3 * v + v % 3] = 1;
        size_t  n = (size_t)p.n, size = MOST * n;
        double *B = fem_alloc(size, 8), *plain = fem_alloc(size, 8), *X = fem_alloc(size, 8), *one = fem_alloc(size, 8);
        test_random_fill(&seed, (int)size, 1, B);
        assert_ok(fem_factor_create(&factor, &p.K, p.fixed));
        assert_ok(fem_factor_factorise(factor, &p.K));
        assert_ok(fem_factor_solve_plain(factor, MOST, B, plain));
        for (int w = 0; w < 3; w++) {
            double worst = 0;
            assert_int_equal(setenv("LIMBER_SIMD", widths[w], 1), 0);
            fem_set_threads(1);
            assert_ok(fem_factor_solve(factor, MOST, B, one));
            for (int columns = 1; columns <= MOST; columns += columns < 10 ? 1 : 7) {
                for (int threads = 1; threads <= 3; threads++) {
                    fem_set_threads(threads);
                    assert_ok(fem_factor_solve(factor, columns, B, X));
                    if (columns > 1) assert_memory_equal(X, one, (size_t)columns * n * sizeof *X);
                }
                worst = fmax(worst, test_relative_error((int)((size_t)columns * n), X, plain));
            }
            printf("  %s, %s: %.1e from CHOLMOD's solve (%d free dofs)\n", type == FEM_T4 ? "T4" : "H8", widths[w],
                   worst, fem_factor_get_report(factor).free_dofs);
            assert_true(worst < 1e-12);
        }
        unsetenv("LIMBER_SIMD");
        fem_set_threads(0);
        for (size_t i = 0; i < n; i++) // eight columns, interleaved
            for (size_t c = 0; c < FACTOR_LANES; c++) X[i * FACTOR_LANES + c] = B[c * n + i];
        assert_ok(fem_factor_solve_lanes(factor, X));
        for (size_t i = 0; i < n; i++)
            for (size_t c = 0; c < FACTOR_LANES; c++) assert_true(X[i * FACTOR_LANES + c] == one[c * n + i]);
        memcpy(X, B, size * sizeof *X); // in place
        assert_ok(fem_factor_solve(factor, MOST, X, X));
        assert_memory_equal(X, one, size * sizeof *X);
        for (size_t i = 0; i < size; i++)
            if (p.fixed[i % n]) assert_true(X[i] == 0);
        fem_factor_destroy(factor);
        fem_free(B), fem_free(plain), fem_free(X), fem_free(one);
        free_problem(&p);
    }
}

// an indefinite or singular matrix is reported as such, the factor refuses to solve then, and works again afterwards
// the halves of a solve make up the whole; of right-hand sides with few entries the rows that are kept are those of
// the whole forward half, all others being zero, and products with them are as by the whole columns
static void test_halves(void **state) {
    (void)state;
    problem     p;
    fem_factor *factor = NULL;
    make_box_problem(&p, FEM_T4, (const int[]){9, 8, 7});
    for (int v = 0; v < p.n / 3; v += 5) p.fixed[3 * v + v % 3] = 1;
    assert_ok(fem_factor_create(&factor, &p.K, p.fixed));
    assert_ok(fem_factor_factorise(factor, &p.K));
    enum { COLUMNS = 31, FEW = 7 };
    const int      columns[2] = {24, FEW};
    int            start[3] = {0}, count = 0, rows = fem_factor_get_report(factor).free_dofs, kept = 0;
    size_t         n = (size_t)p.n, m = (size_t)rows;
    fem_half_entry entries[3 * COLUMNS];
    fem_half       halves[2] = {{0}, {0}};
    uint64_t       seed = 3;
    double        *B = fem_calloc(n * COLUMNS, 8), *Y = fem_alloc(m * COLUMNS, 8), *X = fem_alloc(n * COLUMNS, 8),
           *whole = fem_alloc(n * COLUMNS, 8), *T = fem_alloc(COLUMNS * COLUMNS, 8), *Z = fem_alloc(m * COLUMNS, 8);
    for (int h = 0; h < 2; h++) {
        for (int c = 0; c < columns[h]; c++)
            for (int k = 0; k < 3; k++) { // near each other, and a fixed one now and then
                int    dof = (37 * h + 3 * c + 11 * k) % (p.n / 4) + h * p.n / 2;
                double value = test_random(&seed);
                entries[count++] = (fem_half_entry){.column = c, .dof = dof, .value = value};
                B[(size_t)(24 * h + c) * n + (size_t)dof] += value;
            }
        start[h + 1] = count;
    }
    assert_ok(fem_factor_solve(factor, COLUMNS, B, whole));
    for (int threads = 1; threads <= 2; threads++) {
        fem_set_threads(threads);
        assert_ok(fem_factor_forward(factor, COLUMNS, B, Y));
        assert_ok(fem_factor_backward(factor, COLUMNS, Y, X));
        assert_memory_equal(X, whole, n * COLUMNS * sizeof *X);
        for (int h = 0; h < 2; h++) fem_half_destroy(&halves[h]);
        assert_ok(fem_half_create(factor, 2, columns, start, entries, halves));
    }
    fem_set_threads(0);
    for (int h = 0; h < 2; h++)
        for (int c = 0; c < columns[h]; c++) {
            const double *y = Y + (size_t)(24 * h + c) * m;
            for (int i = 0, k = 0; i < rows; i++) {
                bool   there = k < halves[h].rows && halves[h].row[k] == i;
                double w = there ? halves[h].W[(size_t)c * (size_t)halves[h].rows + (size_t)k] : 0;
                assert_true(fabs(w - y[i]) <= 1e-13 * (fabs(y[i]) + 1e-6));
                k += there;
            }
        }
    kept = halves[0].rows + halves[1].rows;
    printf("  few entries reach %d and %d of %d rows\n", halves[0].rows, halves[1].rows, rows);
    assert_true(kept > 100 && kept < 2 * rows);
    assert_ok(fem_half_inner(&halves[0], &halves[1], T, 24));
    double worst = 0, largest = 0;
    for (int j = 0; j < FEW; j++)
        for (int i = 0; i < 24; i++) {
            double by_hand = dense_dot(p.n, B + (size_t)i * n, whole + (size_t)(24 + j) * n); // b^T A^-1 b
            worst = fmax(worst, fabs(T[24 * j + i] - by_hand)), largest = fmax(largest, fabs(by_hand));
        }
    assert_true(largest > 0 && worst < 1e-12 * largest);
    test_random_fill(&seed, rows * COLUMNS, 1, Z);
    memcpy(X, Z, m * FEW * sizeof *Z); // rows <= n
    assert_ok(fem_half_project(&halves[0], rows, FEW, Z, T, 24));
    assert_ok(fem_half_subtract(&halves[0], rows, FEW, T, 24, X));
    for (int j = 0; j < FEW; j++) {
        for (int i = 0; i < 24; i++)
            assert_true(fabs(T[24 * j + i] - dense_dot(rows, Y + (size_t)i * m, Z + (size_t)j * m)) < 1e-10);
        for (int i = 0; i < 24; i++) dense_axpy(rows, -T[24 * j + i], Y + (size_t)i * m, Z + (size_t)j * m);
    }
    assert_true(test_relative_error(rows * FEW, X, Z) < 1e-13);
    for (int h = 0; h < 2; h++) fem_half_destroy(&halves[h]);
    for (long allowed = 0;; allowed++) { // all or nothing
        fem_memory_fail_after(allowed);
        fem_status status = fem_half_create(factor, 2, columns, start, entries, halves);
        fem_memory_fail_after(-1);
        if (status == FEM_OK) break;
        assert_int_equal(status, FEM_NO_MEMORY);
        assert_true(!halves[0].W && !halves[1].W && allowed < 100);
    }
    for (int h = 0; h < 2; h++) fem_half_destroy(&halves[h]);
    fem_factor_destroy(factor);
    fem_free(B), fem_free(Y), fem_free(X), fem_free(whole), fem_free(T), fem_free(Z);
    free_problem(&p);
}

static void test_indefinite(void **state) {
    (void)state;
    problem     p;
    fem_factor *factor = NULL;
    make_problem(&p, FEM_T4);
    double *b = fem_calloc((size_t)p.n, 8);
    assert_ok(fem_factor_create(&factor, &p.K, p.fixed));
    assert_fails(fem_factor_solve(factor, 1, b, b), FEM_BAD_INPUT, "holds no factorisation");
    int    vertex = fem_mesh_vertex_set(&p.mesh, "x1")->items[2]; // free
    double saved = p.K.value[9 * p.K.row_start[vertex]];
    p.K.value[9 * p.K.row_start[vertex]] = -saved;
    assert_fails(fem_factor_factorise(factor, &p.K), FEM_INDEFINITE, "not positive definite");
    printf("  %s\n", fem_message());
    assert_fails(fem_factor_solve(factor, 1, b, b), FEM_BAD_INPUT, "holds no factorisation");
    p.K.value[9 * p.K.row_start[vertex]] = saved;
    assert_ok(fem_factor_factorise(factor, &p.K));
    p.K.value[9 * p.K.row_start[vertex]] = NAN;
    assert_int_equal(fem_factor_factorise(factor, &p.K), FEM_INDEFINITE);
    fem_factor_destroy(factor);
    p.K.value[9 * p.K.row_start[vertex]] = saved;
    factor = NULL;
    assert_ok(fem_factor_create(&factor, &p.K, NULL)); // a free body
    assert_int_equal(fem_factor_factorise(factor, &p.K), FEM_INDEFINITE);
    printf("  %s\n", fem_message());
    fem_factor_destroy(factor);
    factor = NULL;
    memset(p.fixed, 1, (size_t)p.n);
    assert_fails(fem_factor_create(&factor, &p.K, p.fixed), FEM_BAD_INPUT, "every degree of freedom is fixed");
    assert_null(factor);
    fem_free(b);
    free_problem(&p);
}

// sums and the norm of the whole matrix against its dense form
static void test_sums(void **state) {
    (void)state;
    problem    p;
    fem_sparse B = {0};
    make_problem(&p, FEM_H8);
    assert_ok(fem_sparse_copy(&B, &p.K));
    fem_sparse_scale(&B, 2);
    fem_sparse_axpy(&B, -1, &p.K);
    assert_true(test_relative_error(9 * B.blocks, B.value, p.K.value) == 0);
    double *x = fem_calloc((size_t)p.n, 8), *y = fem_alloc((size_t)p.n, 8), sum = 0;
    for (int j = 0; j < p.n; j++) {
        x[j] = 1;
        fem_sparse_multiply(&p.K, 1, x, y);
        sum += dense_dot(p.n, y, y);
        x[j] = 0;
    }
    printf("  Frobenius norm %.12g, column by column %.12g\n", fem_sparse_norm(&p.K), sqrt(sum));
    assert_true(fabs(fem_sparse_norm(&p.K) / sqrt(sum) - 1) < 1e-13);
    fem_free(x), fem_free(y);
    fem_sparse_destroy(&B);
    free_problem(&p);
}

// products with many columns are those of the columns one by one, with every vector width; neither threads nor the
// columns beside it change one; without memory for copies of them they are computed one by one
static void test_block_product(void **state) {
    (void)state;
    enum { MOST = 21 };
    const char *const widths[] = {"baseline", "avx2", "avx512"};
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        problem  p;
        uint64_t seed = 3;
        make_problem(&p, (fem_element)type);
        size_t  n = (size_t)p.n, size = MOST * n;
        double *X = fem_alloc(size, 8), *plain = fem_alloc(size, 8), *one = fem_alloc(size, 8);
        double *Y = fem_alloc(size, 8);
        test_random_fill(&seed, (int)size, 1, X);
        for (size_t c = 0; c < MOST; c++) fem_sparse_multiply(&p.K, 1, X + c * n, plain + c * n);
        for (int w = 0; w < 3; w++) {
            assert_int_equal(setenv("LIMBER_SIMD", widths[w], 1), 0);
            fem_set_threads(1);
            fem_sparse_multiply(&p.K, MOST, X, one);
            double off = test_relative_error((int)size, one, plain);
            printf("  %s, %s: %.1e from one column at a time\n", type == FEM_T4 ? "T4" : "H8", widths[w], off);
            assert_true(off < 1e-14);
            for (int columns = 2; columns <= MOST; columns++)
                for (int threads = 1; threads <= 3; threads++) {
                    fem_set_threads(threads);
                    fem_sparse_multiply(&p.K, columns, X, Y);
                    assert_memory_equal(Y, one, (size_t)columns * n * sizeof *Y);
                }
        }
        unsetenv("LIMBER_SIMD");
        fem_set_threads(0);
        fem_memory_fail_after(0);
        fem_sparse_multiply(&p.K, MOST, X, Y);
        fem_memory_fail_after(-1);
        assert_memory_equal(Y, plain, size * sizeof *Y);
        fem_free(X), fem_free(plain), fem_free(one), fem_free(Y);
        free_problem(&p);
    }
}

// a refused allocation of ours anywhere in ordering, analysing and solving is reported and leaves nothing behind
static void test_allocation_failure(void **state) {
    (void)state;
    problem p;
    long    failures = 0;
    make_problem(&p, FEM_T4);
    double *b = fem_calloc(3 * (size_t)p.n, 8);
    for (long allowed = 0;; allowed++) {
        fem_factor *factor = NULL;
        long        before = fem_memory_blocks();
        fem_memory_fail_after(allowed);
        fem_status status = fem_factor_create(&factor, &p.K, p.fixed);
        if (status == FEM_OK) status = fem_factor_factorise(factor, &p.K);
        if (status == FEM_OK) status = fem_factor_solve(factor, 3, b, b);
        fem_memory_fail_after(-1);
        fem_factor_destroy(factor);
        assert_int_equal(fem_memory_blocks(), before);
        if (status == FEM_OK) break;
        assert_int_equal(status, FEM_NO_MEMORY);
        failures++;
    }
    printf("  %ld allocations refused one after the other\n", failures);
    assert_true(failures > 5);
    fem_free(b);
    free_problem(&p);
}

// Graphs that are ordered side by side get the order that each gets alone.
enum { ORDERS = 24, SIDE = 40 };
typedef struct grid_orders {
    int start[SIDE * SIDE + 1], adjacent[4 * SIDE * SIDE], order[ORDERS][SIDE * SIDE];
} grid_orders;

static void order_task(void *context, int index, int worker) {
    grid_orders *g = context;
    (void)worker;
    if (fem_graph_order(SIDE * SIDE, g->start, g->adjacent, g->order[index]) != FEM_OK) g->order[index][0] = -1;
}

static void test_order_in_parallel(void **unused) {
    (void)unused;
    grid_orders *g = fem_calloc(1, sizeof *g);
    int          edges = 0, different = 0;
    for (int v = 0; v < SIDE * SIDE; v++) {
        int x = v % SIDE, y = v / SIDE;
        if (x > 0) g->adjacent[edges++] = v - 1;
        if (x < SIDE - 1) g->adjacent[edges++] = v + 1;
        if (y > 0) g->adjacent[edges++] = v - SIDE;
        if (y < SIDE - 1) g->adjacent[edges++] = v + SIDE;
        g->start[v + 1] = edges;
    }
    fem_set_threads(4);
    fem_parallel_for(ORDERS, order_task, g);
    fem_set_threads(0);
    int *alone = fem_copy(g->order[0], SIDE * SIDE, sizeof *alone);
    order_task(g, 0, 0);
    for (int i = 0; i < ORDERS; i++) different += memcmp(alone, g->order[i], SIDE * SIDE * sizeof *alone) != 0;
    printf("  %d orders, %d different\n", ORDERS, different);
    assert_int_equal(different, 0);
    fem_free(alone);
    fem_free(g);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pattern),           cmocka_unit_test(test_solve),
        cmocka_unit_test(test_block_solve),       cmocka_unit_test(test_halves),
        cmocka_unit_test(test_indefinite),        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_block_product),     cmocka_unit_test(test_allocation_failure),
        cmocka_unit_test(test_order_in_parallel),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
