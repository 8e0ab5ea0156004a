// Stored files: what was written comes back, and nothing that is not exactly that is believed.
#include "tests/support.h"

#include <unistd.h>

static const fem_hash key = {.low = 7, .high = 9};

static fem_status write_sample(const char *path) {
    double         doubles[5] = {1, -2.5, 1e300, 0, 3};
    int            ints[3] = {1, 2, -3};
    fem_store_item items[] = {{"numbers", FEM_STORE_DOUBLE, 5, doubles},
                              {"counts", FEM_STORE_INT, 3, ints},
                              {"nothing", FEM_STORE_INT, 0, ints},
                              {"text", FEM_STORE_BYTE, 5, "hello"}};
    return fem_store_write(path, "sample", 3, key, 4, items);
}

static void test_round_trip(void **state) {
    (void)state;
    const char *path = test_temporary("sample.store");
    fem_store   store = {0};
    assert_ok(write_sample(path));
    assert_ok(fem_store_read(&store, path, "sample", 3));
    assert_true(fem_hash_equal(store.key, key));
    const double *numbers = fem_store_find(&store, "numbers", FEM_STORE_DOUBLE, 5);
    assert_non_null(numbers);
    assert_true(numbers[2] == 1e300 && numbers[4] == 3);
    assert_int_equal((size_t)(const void *)numbers % 64, 0);
    assert_memory_equal(fem_store_find(&store, "text", FEM_STORE_BYTE, FEM_STORE_ANY), "hello", 5);
    assert_int_equal(((const int *)fem_store_find(&store, "counts", FEM_STORE_INT, 3))[2], -3);
    assert_int_equal(fem_store_count(&store, "counts"), 3);
    assert_non_null(fem_store_find(&store, "nothing", FEM_STORE_INT, 0));
    assert_null(fem_store_find(&store, "numbers", FEM_STORE_DOUBLE, 4)); // another number
    assert_null(fem_store_find(&store, "numbers", FEM_STORE_INT, 5));    // another type
    assert_null(fem_store_find(&store, "other", FEM_STORE_INT, 5));
    assert_int_equal(fem_store_count(&store, "other"), 0);
    fem_store_destroy(&store);
}

// a file of another kind or version, and what is no store at all, each with its own message
static void test_foreign(void **state) {
    (void)state;
    const char *path = test_temporary("foreign.store");
    fem_store   store = {0};
    assert_ok(write_sample(path));
    assert_fails(fem_store_read(&store, path, "basis", 3), FEM_BAD_INPUT, "holds a sample, expected a basis");
    assert_fails(fem_store_read(&store, path, "sample", 4), FEM_BAD_INPUT, "version 3, expected version 4");
    assert_fails(fem_store_read(&store, test_write("text.store", "no such thing"), "sample", 3), FEM_BAD_INPUT,
                 "is not a file that limber stores");
    assert_fails(fem_store_read(&store, test_temporary("missing.store"), "sample", 3), FEM_IO, "cannot be opened");
    assert_null(store.memory);
}

static void write_bytes(const char *path, const char *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

// every single bit that is turned, and every length that the file is cut to, is noticed
static void test_damage(void **state) {
    (void)state;
    const char *path = test_temporary("whole.store"), *damaged = test_temporary("damaged.store");
    char       *bytes = NULL;
    size_t      size = 0;
    long        noticed = 0;
    fem_store   store = {0};
    assert_ok(write_sample(path));
    assert_ok(fem_file_read(&bytes, &size, path));
    for (size_t bit = 0; bit < 8 * size; bit++) {
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
        write_bytes(damaged, bytes, size);
        assert_int_equal(fem_store_read(&store, damaged, "sample", 3), FEM_BAD_INPUT);
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
        noticed++;
    }
    for (size_t length = 0; length < size; length++) {
        write_bytes(damaged, bytes, length);
        assert_int_equal(fem_store_read(&store, damaged, "sample", 3), FEM_BAD_INPUT);
        noticed++;
    }
    printf("%zu bytes: all %ld damages were noticed\n", size, noticed);
    fem_free(bytes);
}

// different inputs have different hashes, also when only the cut between two additions moves
static void test_hash(void **state) {
    (void)state;
    char     text[FEM_HASH_TEXT];
    fem_hash a = fem_hash_add(fem_hash_add((fem_hash){0}, "ab", 2), "c", 1);
    fem_hash b = fem_hash_add(fem_hash_add((fem_hash){0}, "a", 1), "bc", 2);
    fem_hash c = fem_hash_add(fem_hash_add((fem_hash){0}, "ab", 2), "c", 1);
    assert_true(fem_hash_equal(a, c));
    assert_false(fem_hash_equal(a, b));
    assert_false(fem_hash_equal((fem_hash){0}, fem_hash_add((fem_hash){0}, "", 0)));
    assert_int_equal(strlen(fem_hash_text(text, a)), 32);
    printf("%s\n", text);
}

// running out of memory and a folder that is not there leave nothing behind
static void test_failures(void **state) {
    (void)state;
    const char *path = test_temporary("memory.store");
    fem_store   store = {0};
    assert_ok(write_sample(path));
    int failures = 0;
    for (int pass = 0; pass < 2; pass++)
        for (long allowed = 0;; allowed++) {
            fem_memory_fail_after(allowed);
            fem_status status = pass ? fem_store_read(&store, path, "sample", 3) : write_sample(path);
            fem_memory_fail_after(-1);
            if (status == FEM_OK) break;
            assert_int_equal(status, FEM_NO_MEMORY);
            failures++;
        }
    fem_store_destroy(&store);
    printf("%d allocations failed\n", failures);
    assert_true(failures >= 6);
    assert_fails(write_sample(test_temporary("no/such/folder.store")), FEM_IO, "cannot be created");
    assert_fails(fem_store_write(path, "sample", 1, key, 1, &(fem_store_item){"", FEM_STORE_INT, 0, NULL}),
                 FEM_BAD_INPUT, "cannot be stored");
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip), cmocka_unit_test(test_foreign),
                                       cmocka_unit_test(test_damage), cmocka_unit_test(test_hash),
                                       cmocka_unit_test(test_failures)};
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
