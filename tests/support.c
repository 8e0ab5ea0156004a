#include "tests/support.h"

#include <dirent.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[256];

static void remove_folder(void) {
    if (!folder[0]) return;
    char command[320];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0) fprintf(stderr, "could not remove %s\n", folder);
}

int test_main(char **argv, const struct CMUnitTest *tests, size_t count) {
    fem_machine_correct_blas(argv);
    setvbuf(stdout, NULL, _IOLBF, 0);
    const char *only = getenv("LIMBER_TEST");
    if (only) cmocka_set_test_filter(only);
    long before = fem_memory_blocks();
    int  failed = _cmocka_run_group_tests("limber", tests, count, NULL, NULL);
    if (failed == 0 && fem_memory_blocks() != before) {
        printf("%ld blocks of memory were not given back\n", fem_memory_blocks() - before);
        failed = 1;
    }
    remove_folder();
    return failed;
}

const char *test_data(const char *relative) {
    static char path[1024];
    const char *data = getenv("LIMBER_DATA");
    if (!data || !data[0]) {
        printf("skipped: no data\n");
        return NULL;
    }
    snprintf(path, sizeof path, "%s/%s", data, relative);
    return path;
}

const char *test_temporary(const char *name) {
    static char paths[8][512];
    static int  next;
    if (!folder[0]) {
        const char *parent = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%s/limber-test-XXXXXX", parent && parent[0] ? parent : "/tmp");
        if (!mkdtemp(folder)) fail_msg("cannot make the folder %s", folder);
    }
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

const char *test_write(const char *name, const char *text) {
    const char *path = test_temporary(name);
    FILE       *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
    return path;
}

double test_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u); // splitmix64
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * (2.0 / 9007199254740992.0) - 1;
}

void test_random_fill(uint64_t *state, int n, double scale, double *x) {
    for (int i = 0; i < n; i++) x[i] = scale * test_random(state);
}

double test_relative_error(int n, const double *x, const double *y) {
    double error = 0, largest = 0;
    for (int i = 0; i < n; i++) {
        error = fmax(error, fabs(x[i] - y[i]));
        largest = fmax(largest, fabs(y[i]));
        if (isnan(x[i]) || isnan(y[i])) return NAN;
    }
    return error / largest;
}
