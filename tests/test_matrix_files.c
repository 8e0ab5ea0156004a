// Bases and matrices in files: ours come back exactly, those for other programs hold what they should.
#include "tests/support.h"

#include "libfem/text.h"

static void make_matrices(fem_mesh *mesh, fem_sparse *K, fem_sparse *M) {
    fem_body        *body = NULL;
    fem_body_options options = fem_body_default_options();
    assert_ok(fem_generate_box(mesh, FEM_T4, (double[]){0, 0, 0}, (double[]){3, 1, 1}, (int[]){3, 1, 1}));
    assert_ok(fem_body_create(&body, mesh, &options));
    assert_ok(fem_body_matrix(body, K));
    assert_ok(fem_body_matrix(body, M));
    double *u = fem_calloc(3 * (size_t)mesh->vertex_count, sizeof *u);
    fem_body_evaluate(body, u, NULL, NULL, K);
    fem_body_mass(body, FEM_MASS_CONSISTENT, M);
    fem_free(u);
    fem_body_destroy(body);
}

static void test_basis(void **state) {
    (void)state;
    const char *path = test_temporary("some.basis");
    double      U[12] = {1, 2, 3, 4, 5, 6, -1, 0, 1e-300, 7, 8, 9}, omega2[2] = {4, 9};
    modes_basis basis = {.n = 6, .r = 2, .U = U, .omega2 = omega2}, back = {0};
    fem_hash    key = fem_hash_add((fem_hash){0}, "made so", 7), other = {.low = 1};
    assert_ok(modes_basis_write(&basis, key, path));
    assert_ok(modes_basis_read(&back, &key, path));
    assert_true(back.n == 6 && back.r == 2);
    assert_memory_equal(back.U, U, sizeof U);
    assert_memory_equal(back.omega2, omega2, sizeof omega2);
    assert_fails(modes_basis_read(&back, &other, path), FEM_BAD_INPUT, "another body");
    assert_memory_equal(back.U, U, sizeof U); // a failed call leaves what was there
    assert_ok(modes_basis_read(&back, NULL, path));
    U[3] = NAN;
    assert_ok(modes_basis_write(&basis, key, path));
    assert_fails(modes_basis_read(&back, &key, path), FEM_BAD_INPUT, "not those of a basis");
    U[3] = 4;
    assert_ok(modes_basis_write(&basis, key, path));
    int failures = 0;
    for (long allowed = 0;; allowed++) {
        fem_memory_fail_after(allowed);
        fem_status status = modes_basis_read(&back, &key, path);
        fem_memory_fail_after(-1);
        if (status == FEM_OK) break;
        assert_int_equal(status, FEM_NO_MEMORY);
        failures++;
    }
    printf("%d allocations failed\n", failures);
    assert_true(failures >= 3);
    modes_basis_destroy(&back);
}

// a change of anything that matters changes the hash, a change of names does not
static void test_mesh_hash(void **state) {
    (void)state;
    fem_mesh mesh = {0};
    assert_ok(fem_generate_box(&mesh, FEM_T4, (double[]){0, 0, 0}, (double[]){3, 1, 1}, (int[]){3, 1, 1}));
    fem_hash whole = fem_mesh_hash(&mesh);
    strcpy(mesh.materials[0].name, "other");
    assert_true(fem_hash_equal(whole, fem_mesh_hash(&mesh)));
    mesh.vertices[5] += 1e-15;
    assert_false(fem_hash_equal(whole, fem_mesh_hash(&mesh)));
    mesh.vertices[5] -= 1e-15;
    double *fields[] = {&mesh.materials[0].density, &mesh.materials[0].young, &mesh.materials[0].frame[8],
                        &mesh.materials[0].inversion_threshold};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        double kept = *fields[i];
        *fields[i] *= 1.5;
        assert_false(fem_hash_equal(whole, fem_mesh_hash(&mesh)));
        *fields[i] = kept;
    }
    assert_true(fem_hash_equal(whole, fem_mesh_hash(&mesh)));
    fem_mesh_destroy(&mesh);
}

// the entries of the Matrix Market file, put together again, multiply like the matrix
static void test_sparse_file(void **state) {
    (void)state;
    fem_mesh   mesh = {0};
    fem_sparse K = {0}, M = {0};
    char      *text = NULL;
    size_t     size = 0;
    uint64_t   random = 5;
    make_matrices(&mesh, &K, &M);
    assert_ok(fem_sparse_write(&K, test_temporary("K.mtx")));
    assert_ok(fem_file_read(&text, &size, test_temporary("K.mtx")));
    fem_text  scan = fem_text_open("K.mtx", text, size, '%', false);
    long long rows = 0, columns = 0, entries = 0, i = 0, j = 0;
    assert_true(strncmp(text, "%%MatrixMarket matrix coordinate real symmetric\n", 48) == 0);
    assert_true(fem_text_next(&scan));
    assert_ok(fem_text_int(&scan, "rows", 1, 1000, &rows));
    assert_ok(fem_text_int(&scan, "columns", 1, 1000, &columns));
    assert_ok(fem_text_int(&scan, "entries", 1, 100000, &entries));
    int     n = 3 * mesh.vertex_count;
    double *x = fem_alloc((size_t)n, sizeof *x), *y = fem_calloc((size_t)n, sizeof *y),
           *Kx = fem_alloc((size_t)n, sizeof *Kx);
    test_random_fill(&random, n, 1, x);
    for (long long e = 0; e < entries; e++) {
        double value = 0;
        assert_true(fem_text_next(&scan));
        assert_ok(fem_text_int(&scan, "row", 1, n, &i));
        assert_ok(fem_text_int(&scan, "column", 1, i, &j)); // the lower half
        assert_ok(fem_text_double(&scan, "value", &value));
        y[i - 1] += value * x[j - 1];
        if (i != j) y[j - 1] += value * x[i - 1];
    }
    assert_false(fem_text_next(&scan));
    fem_sparse_multiply(&K, 1, x, Kx);
    printf("%lld entries, K x from the file differs by %.1e\n", entries, test_relative_error(n, y, Kx));
    assert_true(rows == n && columns == n);
    assert_true(test_relative_error(n, y, Kx) < 1e-13);
    assert_fails(fem_sparse_write(&K, test_temporary("K.npy")), FEM_BAD_INPUT, ".mtx is written");
    fem_free(x), fem_free(y), fem_free(Kx), fem_free(text);
    fem_sparse_destroy(&K), fem_sparse_destroy(&M);
    fem_mesh_destroy(&mesh);
}

static void test_dense_files(void **state) {
    (void)state;
    double A[6] = {1, 2, 3, 0.1, -5, 1e-300};
    char  *text = NULL;
    size_t size = 0;
    assert_ok(fem_matrix_write(test_temporary("A.npy"), 3, 2, A));
    assert_ok(fem_file_read(&text, &size, test_temporary("A.npy")));
    assert_int_equal(size, 128 + sizeof A);
    assert_memory_equal(text, "\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': True, 'shape': (3, 2), }",
                        66);
    assert_int_equal(text[127], '\n');
    assert_memory_equal(text + 128, A, sizeof A);
    fem_free(text);
    assert_ok(fem_matrix_write(test_temporary("A.mtx"), 3, 2, A));
    assert_ok(fem_file_read(&text, &size, test_temporary("A.mtx")));
    assert_string_equal(text, "%%MatrixMarket matrix array real general\n3 2\n1\n2\n3\n0.1\n-5\n1e-300\n");
    fem_free(text);
    assert_fails(fem_matrix_write(test_temporary("A.csv"), 3, 2, A), FEM_BAD_INPUT, ".npy and .mtx are written");
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_basis), cmocka_unit_test(test_mesh_hash),
                                       cmocka_unit_test(test_sparse_file), cmocka_unit_test(test_dense_files)};
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
