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

static void write_bytes(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

// A .npy file of version 1 with this description and these bytes behind it.
static const char *write_npy(const char *description, const void *data, size_t size) {
    char   bytes[512] = "\x93NUMPY\x01";
    size_t length = strlen(description);
    bytes[8] = (char)length;
    memcpy(bytes + 10, description, length);
    memcpy(bytes + 10 + length, data, size);
    write_bytes(test_temporary("odd.npy"), bytes, 10 + length + size);
    return test_temporary("odd.npy");
}

// what was written is read back to the bit; rows in C order, single precision and vectors are read too
static void test_read(void **state) {
    (void)state;
    double      A[6] = {1, 2, 3, 0.1, -5, 1e-300}, *B = NULL;
    const float narrow[3] = {0.5f, -2, 3};
    int         rows = 0, columns = 0;
    for (int kind = 0; kind < 3; kind++) {
        const char *path = test_temporary(kind == 0 ? "A.npy" : kind == 1 ? "A.mtx" : "A.npy.gz");
        assert_ok(fem_matrix_write(path, 3, 2, A));
        assert_ok(fem_matrix_read(path, &rows, &columns, &B));
        assert_true(rows == 3 && columns == 2);
        assert_memory_equal(A, B, sizeof A);
        fem_free(B);
        int failures = 0;
        for (long allowed = 0;; allowed++, failures++) {
            fem_memory_fail_after(allowed);
            fem_status status = fem_matrix_read(path, &rows, &columns, &B);
            fem_memory_fail_after(-1);
            if (status == FEM_OK) break;
            assert_int_equal(status, FEM_NO_MEMORY);
        }
        printf("%d allocations failed\n", failures);
        assert_true(failures >= 2);
        fem_free(B);
    }
    assert_ok(fem_matrix_read(write_npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }\n", A, sizeof A),
                              &rows, &columns, &B));
    const double transposed[6] = {1, 3, -5, 2, 0.1, 1e-300};
    assert_true(rows == 3 && columns == 2);
    assert_memory_equal(transposed, B, sizeof transposed);
    fem_free(B);
    assert_ok(fem_matrix_read(write_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", narrow, 12), &rows,
                              &columns, &B));
    assert_true(rows == 3 && columns == 1 && B[0] == 0.5 && B[1] == -2 && B[2] == 3);
    fem_free(B);
}

// files that are cut, of another type, too large or not finite are refused by name
static void test_read_bad(void **state) {
    (void)state;
    const double A[6] = {1, 2, 3, 4, 5, NAN};
    double      *B = NULL;
    int          rows = 0, columns = 0;
    static const struct {
        const char *description, *message;
        size_t      size;
    } npy[] = {
        {"{'descr': '<f8', 'fortran_order': True, 'shape': (3, 2), }", "number 5 is not finite", 48},
        {"{'descr': '<f8', 'fortran_order': True, 'shape': (3, 2), }", "no room", 47},
        {"{'descr': '<i8', 'fortran_order': True, 'shape': (3, 1), }", "another type", 24},
        {"{'descr': '>f8', 'fortran_order': True, 'shape': (3, 1), }", "another type", 24},
        {"{'descr': '<f8', 'fortran_order': True, 'shape': (3, 1, 1), }", "no shape", 24},
        {"{'descr': '<f8', 'fortran_order': True, 'shape': (), }", "no shape", 24},
        {"{'descr': '<f8', 'fortran_order': True, 'shape': (-3, 1), }", "no shape", 24},
        {"{'descr': '<f8', 'fortran_order': True, 'shape': (3, ", "no shape", 24},
        {"{'descr': '<f8', 'fortran_order': True, 'shape': (0, 1), }", "holds nothing", 24},
        {"{'descr': '<f8', 'fortran_order': True, 'shape': (9999999999, 9999999999), }", "no room", 24},
        {"{'descr': '<f8', 'shape': (3, 1), }", "no order", 24},
        {"", "another type", 24},
    };
    for (size_t i = 0; i < sizeof npy / sizeof *npy; i++)
        assert_fails(fem_matrix_read(write_npy(npy[i].description, A, npy[i].size), &rows, &columns, &B), FEM_BAD_INPUT,
                     npy[i].message);
    write_bytes(test_temporary("odd.npy"), "\x93NUMPY\x01\x00\xff\x00{}", 12);
    assert_fails(fem_matrix_read(test_temporary("odd.npy"), &rows, &columns, &B), FEM_BAD_INPUT, "cut short");
    write_bytes(test_temporary("odd.npy"), "\x93NUMPY\x09\x00\x02\x00{}", 12);
    assert_fails(fem_matrix_read(test_temporary("odd.npy"), &rows, &columns, &B), FEM_BAD_INPUT, "version 9");
    write_bytes(test_temporary("odd.npy"), "NUMPY", 5);
    assert_fails(fem_matrix_read(test_temporary("odd.npy"), &rows, &columns, &B), FEM_BAD_INPUT, "not a .npy file");
#define HEAD "%%MatrixMarket matrix array real general\n"
    static const struct {
        const char *text, *message;
    } mtx[] = {
        {"", "odd.mtx:1: expected"},
        {"%%MatrixMarket matrix coordinate real symmetric\n1 1 1\n1 1 1\n", "odd.mtx:1: expected"},
        {HEAD, "expected the number of rows"},
        {HEAD "2 0\n", "odd.mtx:2: "},
        {HEAD "2 1\n1\n", "expected a number"},
        {HEAD "2 1\n1\nnan\n", "odd.mtx:4: "},
        {HEAD "2 1\n1\n2\n3\n", "odd.mtx:5: expected the end of the file"},
        {HEAD "2000000000 2000000000\n1\n", "no room"},
    };
    for (size_t i = 0; i < sizeof mtx / sizeof *mtx; i++)
        assert_fails(fem_matrix_read(test_write("odd.mtx", mtx[i].text), &rows, &columns, &B), FEM_BAD_INPUT,
                     mtx[i].message);
    assert_fails(fem_matrix_read(test_temporary("A.csv"), &rows, &columns, &B), FEM_BAD_INPUT,
                 ".npy and .mtx are read");
    assert_fails(fem_matrix_read(test_temporary("no_such.npy"), &rows, &columns, &B), FEM_IO, "cannot be opened");
    assert_null(B);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_basis),       cmocka_unit_test(test_mesh_hash),
                                       cmocka_unit_test(test_sparse_file), cmocka_unit_test(test_dense_files),
                                       cmocka_unit_test(test_read),        cmocka_unit_test(test_read_bad)};
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
