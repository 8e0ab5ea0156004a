// Reduced scenes through the program, treated badly: a precomputation that is killed, cache files that are not what
// they should be, steps that diverge, bases that do not fit. Runs the program that LIMBER_PROGRAM names.
#include "tests/support.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const BEAM =
    "{\"limber\": 1,"
    " \"materials\": {\"rubber\": {\"density\": 1000, \"young\": 1e6, \"poisson\": 0.4}},"
    " \"parts\": {\"beam\": {\"mesh\": {\"box\": {\"high\": [0.6, 0.1, 0.06], \"cells\": [24, 4, 4]}},"
    "             \"material\": \"rubber\", \"fixed\": \"x0\", \"modes\": {\"count\": 24, \"linear\": 8}}},"
    " \"objects\": [{\"part\": \"beam\"}], \"environment\": {\"gravity\": [0, 0, -9.81]},"
    " \"solver\": {\"method\": \"reduced\", \"step\": 0.005},"
    " \"output\": {\"frames\": 11, \"rate\": 50, \"formats\": [\"vtu\"], \"probes\": {\"tip\": \"x1\"}}}";

static char scene_path[512], cache[512], folder[512], said[16384];

static void read_text(const char *path, char *text, size_t size) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = 0;
    fclose(file);
}

// Runs `limber COMMAND SCENE OPTIONS`; what it says on standard error is in `said`.
static int limber(const char *command, const char *options) {
    char        line[4096];
    const char *program = getenv("LIMBER_PROGRAM"), *err = test_temporary("err.txt");
    if (!program) fail_msg("LIMBER_PROGRAM is not set; make test sets it");
    snprintf(line, sizeof line, "'%s' %s '%s' --cache '%s' --quiet %s > /dev/null 2> '%s' < /dev/null", program,
             command, scene_path, cache, options, err);
    int status = system(line);
    read_text(err, said, sizeof said);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int run(const char *more) {
    char options[1024];
    snprintf(options, sizeof options, "-o '%s' %s", folder, more);
    return limber("run", options);
}

static void assert_says(const char *words) {
    if (!strstr(said, words)) fail_msg("expected \"%s\" in \"%s\"", words, said);
}

static int setup(void **state) {
    (void)state;
    snprintf(scene_path, sizeof scene_path, "%s", test_write("beam.json", BEAM));
    snprintf(cache, sizeof cache, "%s", test_temporary("cache"));
    snprintf(folder, sizeof folder, "%s", test_temporary("result"));
    return 0;
}

// Files in the cache: those of classes, and others. *path gets the last class.
static void list_cache(int *classes, int *others, char path[1024]) {
    DIR *open = opendir(cache);
    *classes = *others = 0;
    for (struct dirent *entry; open && (entry = readdir(open));) {
        if (entry->d_name[0] == '.') continue;
        size_t length = strlen(entry->d_name);
        bool class = length > 6 && strcmp(entry->d_name + length - 6, ".class") == 0;
        *(class ? classes : others) += 1;
        if (class) snprintf(path, 1024, "%s/%s", cache, entry->d_name);
    }
    if (open) closedir(open);
}

static void read_probes(char *text, size_t size) {
    char path[1024];
    snprintf(path, sizeof path, "%s/probes.csv", folder);
    read_text(path, text, size);
    assert_true(strlen(text) > 200);
}

// killed without warning at any moment, also while it writes: the next run needs no help, and its result is the same
static void test_killed(void **state) {
    (void)state;
    static char expected[16384], found[16384];
    char        path[1024];
    int         classes, others, killed = 0, kept = 0;
    assert_int_equal(run(""), 0);
    read_probes(expected, sizeof expected);
    list_cache(&classes, &others, path);
    assert_int_equal(classes, 1);
    struct stat whole;
    assert_int_equal(stat(path, &whole), 0);
    for (int i = 0; i < 24; i++) {
        unlink(path);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            execl(getenv("LIMBER_PROGRAM"), "limber", "precompute", scene_path, "--cache", cache, "--quiet",
                  (char *)NULL);
            _exit(127);
        }
        // most near the end, where it writes: as soon as anything appears in the folder
        for (int wait = 0; wait < 4000; wait++) {
            list_cache(&classes, &others, path);
            if ((i % 3 == 0 && wait > 2 * i) || (i % 3 == 1 && others > 0) || classes > 0) break;
            usleep(500);
        }
        kill(child, SIGKILL);
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        killed += WIFSIGNALED(status);
        list_cache(&classes, &others, path);
        struct stat now;
        if (classes > 0 && stat(path, &now) == 0) { // whole, or not there
            assert_int_equal(now.st_size, whole.st_size);
            kept++;
        }
        if (i % 6 != 5) continue;
        assert_int_equal(run(""), 0);
        assert_string_equal(said, "");
        read_probes(found, sizeof found);
        assert_string_equal(found, expected);
    }
    printf("killed %d of 24 times, the class was there %d times and always whole\n", killed, kept);
    assert_true(killed >= 8);
}

static void write_bytes(const char *path, const char *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

// what a killed writer leaves is removed by the next one, when it is old enough to be nobody's
static void test_leftovers(void **state) {
    (void)state;
    char                  path[1024], old[1100], fresh[1100], foreign[1100];
    int                   classes, others, before;
    const struct timespec long_ago[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    assert_int_equal(limber("precompute", ""), 0);
    list_cache(&classes, &before, path); // other tests leave some, too
    assert_int_equal(classes, 1);
    snprintf(old, sizeof old, "%s.1-0.part", path);
    snprintf(fresh, sizeof fresh, "%s.1-1.part", path);
    snprintf(foreign, sizeof foreign, "%s/notes.part", cache);
    const char *const files[] = {old, fresh, foreign};
    for (int i = 0; i < 3; i++) {
        write_bytes(files[i], "half", 4);
        if (i != 1) assert_int_equal(utimensat(AT_FDCWD, files[i], long_ago, 0), 0);
    }
    unlink(path);
    assert_int_equal(limber("precompute", ""), 0);
    list_cache(&classes, &others, path);
    assert_true(classes == 1 && others == before + 2);
    assert_int_equal(access(old, F_OK), -1);
}

// what stands under the class's name and is not it: said, computed again, put right, and the same result
static void test_strange_files(void **state) {
    (void)state;
    static char  expected[16384], found[16384];
    char         path[1024], *bytes = NULL;
    size_t       size = 0;
    int          classes, others;
    fem_store    store = {0};
    const double number = 1;
    assert_int_equal(limber("precompute", ""), 0);
    assert_int_equal(run(""), 0);
    read_probes(expected, sizeof expected);
    list_cache(&classes, &others, path);
    assert_int_equal(classes, 1);
    assert_ok(fem_file_read(&bytes, &size, path));
    assert_ok(fem_store_read(&store, path, "class", 4));
    for (int kind = 0; kind < 6; kind++) {
        static const char *const words[] = {"version 999", "are not those of this part", "", "", "", "holds a basis"};
        fem_store_item           items[] = {{"U", FEM_STORE_DOUBLE, 1, &number}};
        if (kind == 0) assert_ok(fem_store_write(path, "class", 999, store.key, 1, items));
        if (kind == 1) assert_ok(fem_store_write(path, "class", 4, store.key, 1, items)); // well made, wrong arrays
        if (kind == 2) write_bytes(path, bytes, size / 2);
        if (kind == 3) write_bytes(path, "", 0);
        if (kind == 4) write_bytes(path, "{\"limber\": 1}", 13);
        if (kind == 5) assert_ok(fem_store_write(path, "basis", 1, store.key, 1, items));
        assert_int_equal(run(""), 0);
        printf("%s", said);
        assert_says("it is computed again");
        assert_says(words[kind]);
        read_probes(found, sizeof found);
        assert_string_equal(found, expected);
        char  *again = NULL;
        size_t length = 0;
        assert_ok(fem_file_read(&again, &length, path));
        assert_int_equal(length, size);
        assert_memory_equal(again, bytes, size);
        fem_free(again);
    }
    // a folder in its place can be neither read nor replaced
    unlink(path);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(run(""), 0);
    printf("%s", said);
    assert_says("the class is not kept");
    read_probes(found, sizeof found);
    assert_string_equal(found, expected);
    assert_int_equal(limber("precompute", ""), 1); // which is what it was asked to do
    assert_says("the class is not kept");
    rmdir(path);
    fem_store_destroy(&store);
    fem_free(bytes);
}

// a step that diverges: exit 1, the scene, the part, the time and what to change; the frames before are all there
static void test_divergence(void **state) {
    (void)state;
    static const struct {
        const char *options, *words;
    } cases[] = {
        {"--set solver.step=0.02 --set 'actions=[{\"force\": [3e11, 2e11, 1e11], \"on\": \"x1\", \"start\": 0.1}]'",
         "solver.step"},
        {"--set solver.step=0.02 --set 'solver.newton={\"iterations\": 5}' "
         "--set 'actions=[{\"force\": [3e11, 2e11, 1e11], \"on\": \"x1\", \"start\": 0.1}]'",
         "time step"},
    };
    char        path[1024];
    static char list[65536];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(run(cases[i].options), 1);
        printf("%s", said);
        assert_says("beam.json: part \"beam\": ");
        assert_says("t = 0.1 s");
        assert_says(cases[i].words);
        assert_says("the first 5 frames are in ");
        snprintf(path, sizeof path, "%s/beam.pvd", folder);
        read_text(path, list, sizeof list);
        int frames = 0;
        for (const char *at = strstr(list, "file=\""); at; at = strstr(at + 6, "file=\""), frames++) {
            fem_mesh mesh = {0};
            snprintf(path, sizeof path, "%s/%.*s", folder, (int)strcspn(at + 6, "\""), at + 6);
            assert_ok(fem_mesh_read(&mesh, path));
            fem_mesh_destroy(&mesh);
        }
        assert_int_equal(frames, 5);
    }
}

// what cannot be: exit 2, and why
static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *options, *words;
    } cases[] = {
        {"--set parts.beam.modes.count=0", "parts.beam.modes.count: is 0, expected 1 to 1000"},
        {"--set parts.beam.modes.count=400", "8 linear modes and their derivatives are only 44"},
        {"--set materials.rubber.type=neohookean", "which has no polynomial; stvk and orthotropic have"},
        {"--set solver.integrator=central --set solver.step=0.02", "central differences are stable up to"},
        {"--set 'parts.beam.modes={\"method\": \"file\", \"file\": \"none.basis\", \"count\": 3}'",
         "none.basis: cannot be opened"},
        {"--set 'parts.beam.modes={\"method\": \"file\", \"file\": \"beam.json\", \"count\": 3}'",
         "is not a file that limber stores"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(run(cases[i].options), 2);
        printf("%s", said);
        assert_says(cases[i].words);
        assert_says("beam");
    }
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_killed, setup), cmocka_unit_test_setup(test_strange_files, setup),
        cmocka_unit_test_setup(test_divergence, setup), cmocka_unit_test_setup(test_refusals, setup),
        cmocka_unit_test_setup(test_leftovers, setup)};
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
