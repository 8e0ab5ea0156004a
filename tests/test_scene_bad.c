// Every mistake of scenes/bad is refused with exactly the message that scenes/bad/expected.txt states, by the library
// and, where LIMBER_PROGRAM names it, by the program with exit status 2.
#include "tests/support.h"

#include <dirent.h>
#include <unistd.h>
#include <sys/wait.h>

enum { MOST = 400 };
typedef struct expectation {
    char file[128], message[1024]; // what follows "scenes/bad/FILE:"
} expectation;
static expectation expectations[MOST];
static int         expectation_count;

static int read_expectations(void) {
    FILE *file = fopen("scenes/bad/expected.txt", "r");
    char  line[1400];
    if (!file) return -1;
    while (expectation_count < MOST && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *bar = strstr(line, " | ");
        if (line[0] == '#' || !bar) continue;
        *bar = 0;
        expectation *e = &expectations[expectation_count++];
        snprintf(e->file, sizeof e->file, "%.100s", line);
        snprintf(e->message, sizeof e->message, "%.1000s", bar + 3);
    }
    fclose(file);
    return 0;
}

// each bad file gives FEM_BAD_INPUT, the stated message, and no memory left behind
static void test_messages(void **state) {
    (void)state;
    long blocks = fem_memory_blocks();
    for (int i = 0; i < expectation_count; i++) {
        char   path[256], wanted[1400];
        scene *s = NULL;
        snprintf(path, sizeof path, "scenes/bad/%.100s", expectations[i].file);
        snprintf(wanted, sizeof wanted, "%.200s:%.1000s", path, expectations[i].message);
        assert_int_equal(scene_load(&s, path, 0, NULL), FEM_BAD_INPUT);
        assert_null(s);
        assert_string_equal(fem_message(), wanted);
        assert_int_equal(fem_memory_blocks(), blocks);
    }
    assert_true(expectation_count >= 100);
    printf("%d bad scenes, each refused with its message\n", expectation_count);
}

// no file of scenes/bad lacks an expectation
static void test_complete(void **state) {
    (void)state;
    DIR *folder = opendir("scenes/bad");
    int  files = 0;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (!strstr(entry->d_name, ".json")) continue;
        bool listed = false;
        for (int i = 0; i < expectation_count; i++) listed = listed || strcmp(expectations[i].file, entry->d_name) == 0;
        if (!listed) fail_msg("scenes/bad/%s has no line in expected.txt", entry->d_name);
        files++;
    }
    closedir(folder);
    assert_int_equal(files, expectation_count);
    printf("%d files, %d expectations\n", files, expectation_count);
}

// the program says the same on standard error, nothing on standard output, and ends with 2
static void test_program(void **state) {
    (void)state;
    const char *program = getenv("LIMBER_PROGRAM");
    if (!program || access(program, X_OK) != 0) {
        printf("skipped: LIMBER_PROGRAM names no program\n");
        return;
    }
    const char *const commands[] = {"check", "run --quiet -o"};
    for (int i = 0; i < expectation_count; i++) {
        char command[1024], wanted[1400], said[1400] = "";
        bool run = i % 16 == 0; // loading is the same code: a few suffice for the second command
        snprintf(command, sizeof command, "'%.300s' %s %.300s scenes/bad/%.100s 2>&1", program, commands[run],
                 run ? test_temporary("never") : "", expectations[i].file);
        snprintf(wanted, sizeof wanted, "scenes/bad/%.100s:%.1000s\n", expectations[i].file, expectations[i].message);
        FILE *pipe = popen(command, "r");
        assert_non_null(pipe);
        size_t length = fread(said, 1, sizeof said - 1, pipe);
        said[length] = 0;
        int status = pclose(pipe);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 2);
        assert_string_equal(said, wanted);
    }
    assert_int_not_equal(access(test_temporary("never"), F_OK), 0); // nothing was written
    printf("%d times exit status 2\n", expectation_count);
}

int main(int argc, char **argv) {
    (void)argc;
    if (read_expectations() != 0) {
        fprintf(stderr, "scenes/bad/expected.txt cannot be read; tests run in the project's folder\n");
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_complete),
        cmocka_unit_test(test_program),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
