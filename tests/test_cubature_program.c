// Cubature through the program: poses that are given, training input that is bad, trainings that are killed, rules in
// domains and instances, derivatives by order. Runs the program that LIMBER_PROGRAM names.
#include "tests/program_case.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

// %s: more of the part; of the object; of the solver
static const char *const BEAM =
    "{\"limber\": 1,"
    " \"materials\": {\"rubber\": {\"type\": \"neohookean\", \"density\": 1000, \"young\": 1e6, \"poisson\": 0.4}},"
    " \"parts\": {\"beam\": {\"mesh\": {\"box\": {\"element\": \"tet\", \"high\": [0.6, 0.1, 0.06], \"cells\": [12, 2, "
    "2]}},"
    "             \"material\": \"rubber\", \"fixed\": \"x0\", \"modes\": {\"count\": 12, \"linear\": 6}, %s}},"
    " \"objects\": [{\"part\": \"beam\"%s}], \"environment\": {\"gravity\": [0, 0, -9.81]},"
    " \"solver\": {\"method\": \"reduced\", \"step\": 0.005%s},"
    " \"output\": {\"frames\": 51, \"rate\": 200, \"formats\": [\"vtu\"], \"probes\": {\"tip\": \"x1\"}}}";

enum { CELLS_X = 12, CELLS_Y = 2, CELLS_Z = 2, VERTICES = (CELLS_X + 1) * (CELLS_Y + 1) * (CELLS_Z + 1) };

static char cache[512];

static const char *write_beam(const char *name, const char *part, const char *object, const char *solver) {
    static char path[600];
    char        text[4000];
    snprintf(text, sizeof text, BEAM, part, object, solver);
    snprintf(path, sizeof path, "%s", test_write(name, text));
    return path;
}

// `command` of a file of its own cache; the JSON that it prints, or NULL when it fails.
static cJSON *run_json(const char *command, const char *file, const char *folder, const char *more) {
    char out[600] = "";
    if (!cache[0]) snprintf(cache, sizeof cache, "%s", test_temporary("cache"));
    if (folder) snprintf(out, sizeof out, "-o '%s'", test_temporary(folder));
    return limber("%s '%s' --json --quiet --cache '%s' %s %s", command, file, cache, out, more) == 0 ? parse_output()
                                                                                                     : NULL;
}

static void tip_of(const cJSON *json, double tip[3]) {
    const cJSON *probe = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "probes"), "tip");
    assert_int_equal(cJSON_GetArraySize(probe), 3);
    for (int i = 0; i < 3; i++) tip[i] = cJSON_GetArrayItem(probe, i)->valuedouble;
}

// Runs a file; where its tip ends up.
static const cJSON *run_tip(const char *file, const char *folder, double tip[3]) {
    static cJSON *json; // freed by the next call
    cJSON_Delete(json);
    json = run_json("run", file, folder, "");
    if (!json) fail_msg("%s", result.err);
    tip_of(json, tip);
    return cJSON_GetObjectItem(cJSON_GetObjectItem(json, "reduced"), "cubature");
}

static double apart(const double a[3], const double b[3]) { return vec3_distance(a, b) / vec3_norm(a); }

// The frames of a run train a rule; the rest among them has no force and is left out. The motion is that with all
// elements.
static void test_given_run(void **state) {
    (void)state;
    double exact[3], tip[3];
    char   part[700], pvd[600];
    run_tip(write_beam("exact.json", "\"forces\": {\"type\": \"full\"}", "", ""), "exact", exact);
    snprintf(pvd, sizeof pvd, "%s/exact.pvd", test_temporary("exact"));
    snprintf(part, sizeof part,
             "\"forces\": {\"type\": \"cubature\", \"error\": 0.01, \"sampling\": \"given\", \"file\": \"%s\"}", pvd);
    const cJSON *cubature = run_tip(write_beam("given.json", part, "", ""), "given", tip);
    print_message("%g elements from %g poses, tip off by %.2e\n", number(cubature, "elements"),
                  number(cubature, "poses"), apart(exact, tip));
    assert_true(vec3_norm(exact) > 0.01 && apart(exact, tip) < 0.03);
    assert_int_equal((int)number(cubature, "poses"), 50);
    assert_int_equal((int)number(cubature, "dropped"), 1);
    assert_says(result.err, "1 training poses had no force and were left out");
    // other frames, another rule: the cache knows
    FILE *file = fopen(pvd, "wb");
    assert_non_null(file);
    fputs("<VTKFile type=\"Collection\"><Collection><DataSet file=\"exact_00004.vtu\"/></Collection></VTKFile>", file);
    fclose(file);
    cubature = run_tip(write_beam("given.json", part, "", ""), "given", tip);
    assert_int_equal((int)number(cubature, "poses"), 1);
}

static const char *write_matrix(const char *name, int columns, double (*u)(int row, int column)) {
    static char path[600];
    double     *A = fem_alloc((size_t)(3 * VERTICES * columns), sizeof *A);
    for (int c = 0; c < columns; c++)
        for (int i = 0; i < 3 * VERTICES; i++) A[c * 3 * VERTICES + i] = u(i, c);
    snprintf(path, sizeof path, "%s", test_temporary(name));
    assert_ok(fem_matrix_write(path, 3 * VERTICES, columns, A));
    fem_free(A);
    return path;
}

static double none(int row, int column) { return 0 * (row + column); }
// the box's vertices lie row by row along x first: bent by a parabola, too far in the last column
static double bent(int row, int column) {
    double x = 0.6 * (row / 3 % (CELLS_X + 1)) / CELLS_X;
    return row % 3 == 2 ? 0.1 * (column + 1) * x * x : 0;
}
static double crushed(int row, int column) {
    double x = 0.6 * (row / 3 % (CELLS_X + 1)) / CELLS_X;
    return row % 3 == 0 ? -(column == 1 ? 1.5 : 0.05) * x : bent(row, 0);
}

static const char *with_poses(const char *file) {
    static char part[700];
    snprintf(part, sizeof part,
             "\"forces\": {\"type\": \"cubature\", \"error\": 0.05, \"sampling\": \"given\", \"file\": \"%s\"}", file);
    return part;
}

static void refused(const char *part, const char *words) {
    const char *file = write_beam("bad.json", part, "", "");
    char        folder[600], kept[600];
    snprintf(folder, sizeof folder, "%s", test_temporary("refused"));
    snprintf(kept, sizeof kept, "%s", test_temporary("refused_cache"));
    assert_int_equal(limber("run '%s' --quiet --cache '%s' -o '%s'", file, kept, folder), 2);
    assert_says(result.err, words);
    assert_int_not_equal(access(folder, F_OK), 0); // nothing half written
    assert_int_equal(limber("precompute '%s' --quiet --cache '%s'", file, kept), 2);
    assert_says(result.err, words);
}

// What cannot train a rule stops the run before anything is written, with its name.
static void test_bad_poses(void **state) {
    (void)state;
    refused(with_poses("nowhere.npy"), "nowhere.npy");
    refused(with_poses(test_write("empty.pvd", "<VTKFile type=\"Collection\"><Collection></Collection></VTKFile>")),
            "holds no training pose, expected at least one");
    refused(with_poses(test_write("open.pvd", "<DataSet file=\"frame.vtu/>")), "the name of a frame has no end");
    refused(with_poses(test_write("other.pvd", "<DataSet file=\"gone.vtu\"/>")), "gone.vtu");
    refused(with_poses(write_matrix("zero.npy", 3, none)), "all 3 training poses");
    assert_says(result.err, "part \"beam\"");
    double few[30] = {0};
    char   path[600];
    snprintf(path, sizeof path, "%s", test_temporary("few.npy"));
    assert_ok(fem_matrix_write(path, 30, 1, few));
    refused(with_poses(path), "has 30 rows, expected 351: x, y, z of the displacement of each of the 117 vertices");
    refused("\"forces\": {\"type\": \"cubature\", \"sampling\": \"given\"}", "no \"file\" has training poses");
    refused("\"forces\": {\"type\": \"cubature\", \"file\": \"a.npy\"}", "only \"sampling\": \"given\" reads");
}

// What makes a rule worse is said, and the run goes on.
static void test_doubtful_poses(void **state) {
    (void)state;
    cJSON *json = run_json("precompute", write_beam("bent.json", with_poses(write_matrix("bent.npy", 4, bent)), "", ""),
                           NULL, "");
    assert_non_null(json);
    cJSON_Delete(json);
    json = run_json("precompute",
                    write_beam("crushed.json", with_poses(write_matrix("crushed.npy", 2, crushed)), "", ""), NULL, "");
    assert_non_null(json);
    assert_says(result.err, "1 of the given training poses turn an element inside out, and are used as they are");
    assert_int_equal((int)number(cJSON_GetObjectItem(json, "cubature"), "inverted"), 1);
    cJSON_Delete(json);
    // a modal rule of given poses cannot have more elements than they allow; forces.poses would not help
    json = run_json("precompute", test_temporary("crushed.json"), NULL,
                    "--set parts.beam.forces.method=modal --set parts.beam.forces.error=1e-6");
    assert_non_null(json);
    assert_says(result.err, "1e-06 was asked for; more given poses may reach it");
    cJSON_Delete(json);
    // generated ones are made smaller
    json = run_json("run",
                    write_beam("wild.json",
                               "\"forces\": {\"type\": \"cubature\", \"sampling\": \"gaussian\", \"displacement\": 3, "
                               "\"poses\": 60, \"error\": 0.2}",
                               "", ""),
                    "wild", "");
    assert_non_null(json);
    assert_says(result.err, "training poses inverted an element and were made smaller; a smaller forces.displacement");
    cJSON_Delete(json);
    json = run_json("precompute",
                    write_beam("wild_cut.json",
                               "\"forces\": {\"type\": \"cubature\", \"sampling\": \"gaussian\", \"displacement\": 3, "
                               "\"poses\": 60, \"error\": 0.2}",
                               ", \"decompose\": {\"method\": \"metis\", \"count\": 3, \"modes\": 10}", ""),
                    NULL, "");
    if (!json) fail_msg("%s", result.err);
    assert_says(result.err, "training poses inverted an element and were made smaller; a smaller forces.displacement");
    cJSON_Delete(json);
    // an error that so few elements cannot reach
    json = run_json("run",
                    write_beam("strict.json",
                               "\"forces\": {\"type\": \"cubature\", \"error\": 1e-8, \"elements\": 6, \"poses\": 60}",
                               "", ""),
                    "strict", "");
    assert_non_null(json);
    assert_says(result.err, "with 6 elements, 1e-08 was asked for; more forces.elements may reach it");
    const cJSON *cubature = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "reduced"), "cubature");
    assert_true(cJSON_IsFalse(cJSON_GetObjectItem(cubature, "reached")));
    assert_true(number(cubature, "held_out_error") > number(cubature, "error") / 10);
    cJSON_Delete(json);
}

// A rule that knows its training and little else is told with what would do, of a body and of domains; what is told
// helps.
static void test_held_out(void **state) {
    (void)state;
    static const char cut[] = ", \"decompose\": {\"method\": \"metis\", \"count\": 3, \"modes\": 10}";
    static const char few[] = "\"forces\": {\"type\": \"cubature\", \"poses\": 12}";
    cJSON            *json = run_json("precompute", write_beam("few.json", few, "", ""), NULL, "");
    assert_non_null(json);
    const cJSON *cubature = cJSON_GetObjectItem(json, "cubature");
    assert_true(number(cubature, "held_out_error") > 3 * number(cubature, "error"));
    assert_says(result.err, "% at the 12 poses of the training, but ");
    assert_says(result.err, "% at 100 others that were held out; more forces.poses or a smaller forces.displacement");
    cJSON_Delete(json);
    json = run_json("precompute", test_temporary("few.json"), NULL, "--set parts.beam.forces.poses=200");
    assert_non_null(json);
    cubature = cJSON_GetObjectItem(json, "cubature");
    assert_true(number(cubature, "held_out_error") < 0.03);
    assert_null(strstr(result.err, "held out"));
    cJSON_Delete(json);
    json = run_json("precompute", write_beam("few_cut.json", few, cut, ""), NULL, "");
    assert_non_null(json);
    assert_says(result.err,
                "of 3 rules are far worse at held-out poses than at those of their training; the worst, of");
    assert_says(result.err, "more forces.poses or a smaller forces.displacement may help");
    cJSON_Delete(json);
}

static int count_ending(const char *folder, const char *ending) {
    int  count = 0;
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        size_t length = strlen(entry->d_name), tail = strlen(ending);
        count += length > tail && strcmp(entry->d_name + length - tail, ending) == 0;
    }
    if (entries) closedir(entries);
    return count;
}

// Killed without warning in the middle of its training, the program goes on from the poses that it had; the rule is
// the same as without.
static void test_killed(void **state) {
    (void)state;
    static const char part[] =
        "\"forces\": {\"type\": \"cubature\", \"method\": \"optimized\", \"error\": 0.0005, \"poses\": 600, "
        "\"sampling\": \"gaussian\"}";
    const char *file = write_beam("long.json", part, "", ""), *program = getenv("LIMBER_PROGRAM");
    char        own[600];
    snprintf(own, sizeof own, "%s", test_temporary("killed"));
    assert_non_null(program);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execl(program, program, "precompute", file, "--cache", own, "--quiet", "--threads", "1", (char *)NULL);
        _exit(127);
    }
    int waited = 0, status = 0;
    while (count_ending(own, ".training") == 0 && waited++ < 60000 && waitpid(child, &status, WNOHANG) == 0)
        usleep(500);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    bool killed = count_ending(own, ".training") == 1;
    assert_int_equal(limber("precompute '%s' --quiet --json --cache '%s'", file, own), 0);
    cJSON *again = parse_output();
    assert_int_equal(limber("precompute '%s' --quiet --json --cache '%s'", file, test_temporary("whole")), 0);
    cJSON       *whole = parse_output();
    const cJSON *a = cJSON_GetObjectItem(again, "cubature"), *b = cJSON_GetObjectItem(whole, "cubature");
    print_message("%s; %g elements, error %.6f, and without a break %g, %.6f\n",
                  killed ? "killed while it trained" : "was too fast", number(a, "elements"), number(a, "error"),
                  number(b, "elements"), number(b, "error"));
    assert_true(killed && cJSON_IsTrue(cJSON_GetObjectItem(a, "resumed")));
    assert_true(cJSON_IsFalse(cJSON_GetObjectItem(b, "resumed")));
    assert_int_equal((int)number(a, "elements"), (int)number(b, "elements"));
    assert_true(fabs(number(a, "error") - number(b, "error")) < 1e-9);
    assert_int_equal(count_ending(own, ".training"), 0);
    assert_int_equal(count_ending(own, ".vtu"), 1);
    cJSON_Delete(again), cJSON_Delete(whole);
}

// Rules in the domains of a tree, the modal ones with the symmetric part of their stiffness, move it as all elements
// do.
static void test_tree(void **state) {
    (void)state;
    static const char        cut[] = ", \"decompose\": {\"method\": \"metis\", \"count\": 3, \"modes\": 10}";
    static const char *const methods[] = {"empirical", "modal", "optimized"};

    double exact[3], tip[3];
    run_tip(write_beam("tree.json", "\"forces\": {\"type\": \"full\"}", cut, ""), "tree", exact);
    for (int k = 0; k < 3; k++) {
        char part[300];
        snprintf(part, sizeof part,
                 "\"forces\": {\"type\": \"cubature\", \"method\": \"%s\", \"error\": 0.02, \"poses\": 300}",
                 methods[k]);
        const cJSON *cubature = run_tip(write_beam("tree.json", part, cut, ""), "tree", tip);
        print_message("%s: %g elements, held out %.4f, tip off by %.2e\n", methods[k], number(cubature, "elements"),
                      number(cubature, "held_out_error"), apart(exact, tip));
        assert_int_equal(length(cubature, "domains"), 3);
        assert_true(vec3_norm(exact) > 0.01 && apart(exact, tip) < 0.02);
    }
}

// Instances of one class, of different sizes and one on the other, with a rule and with all elements.
static void test_instances(void **state) {
    (void)state;
    static const char more[] =
        ", \"name\": \"first\", \"children\": [{\"part\": \"beam\", \"name\": \"second\", \"scale\": 0.5, "
        "\"translation\": [0.55, 0.02, 0.02], \"reach\": 0.1}]";
    double exact[3], tip[3];
    char   full[900], rule[900];
    snprintf(full, sizeof full, "%s", write_beam("two.json", "\"forces\": {\"type\": \"full\"}", more, ""));
    static const char *const probe = "--set 'output.probes.tip={\"instance\": \"second\", \"set\": \"x1\"}'";
    cJSON                   *json = run_json("run", full, "two", probe);
    if (!json) fail_msg("%s", result.err);
    tip_of(json, exact);
    cJSON_Delete(json);
    snprintf(rule, sizeof rule, "%s",
             write_beam("two.json", "\"forces\": {\"type\": \"cubature\", \"error\": 0.02, \"poses\": 300}", more, ""));
    for (int k = 0; k < 2; k++) { // trained, then from the cache
        json = run_json("run", rule, "two", probe);
        if (!json) fail_msg("%s", result.err);
        tip_of(json, tip);
        const cJSON *reduced = cJSON_GetObjectItem(json, "reduced"),
                    *cubature = cJSON_GetObjectItem(reduced, "cubature");
        const cJSON *part = cJSON_GetArrayItem(cJSON_GetObjectItem(cubature, "parts"), 0);
        print_message("%g of %g elements, held out %.4f, tip off by %.2e\n", number(part, "elements"),
                      number(part, "of"), number(part, "held_out_error"), apart(exact, tip));
        assert_int_equal(length(cubature, "parts"), 1);
        assert_string_equal(cJSON_GetObjectItem(part, "part")->valuestring, "beam");
        assert_int_equal(cJSON_IsTrue(cJSON_GetObjectItem(reduced, "cached")), k);
        assert_true(vec3_norm(exact) > 0.01 && apart(exact, tip) < 0.03);
        cJSON_Delete(json);
    }
    assert_int_equal(limber("precompute '%s' --quiet --cache '%s' %s", rule, cache, probe), 0); // that of run_json
    assert_says(result.out, "cubature in 1 parts: ");
    assert_says(result.out, "at held-out poses");
}

// Derivatives by order in a part and in one domain; and what has no meaning.
static void test_orders(void **state) {
    (void)state;
    static const char part[] = "\"forces\": {\"type\": \"full\"}";
    const char       *file = write_beam("orders.json", part, "", "");
    static const struct {
        const char *set, *words;
    } bad[] = {{"parts.beam.modes.orders=[6,3]", "is for derivatives of order 2, but \"derivatives\" is 1"},
               {"parts.beam.modes.orders=[7]", "is 7, expected at most the 6 linear modes"},
               {"parts.beam.modes.orders=[0]", "orders[0]"}};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(limber("check '%s' --set '%s'", file, bad[i].set), 2);
        assert_says(result.err, bad[i].words);
    }
    assert_int_equal(
        limber("check '%s' --set parts.beam.modes.derivatives=2 --set 'parts.beam.modes.orders=[3,4]'", file), 2);
    assert_says(result.err, "is 4, expected at most the 3 of the order below");
    double plain[3], more[3];
    cJSON *json = run_json("run", file, "orders", "");
    assert_non_null(json);
    tip_of(json, plain);
    cJSON_Delete(json);
    json =
        run_json("run", file, "orders", "--set parts.beam.modes.derivatives=2 --set 'parts.beam.modes.orders=[4,2]'");
    if (!json) fail_msg("%s", result.err);
    tip_of(json, more);
    cJSON_Delete(json);
    print_message("derivatives of second order change the tip by %.2e\n", apart(plain, more));
    assert_true(apart(plain, more) > 1e-6 && apart(plain, more) < 0.1); // another basis of the same body
    static const char cut[] = ", \"decompose\": {\"method\": \"metis\", \"count\": 3, \"modes\": 14, \"domains\": "
                              "{\"2\": {\"derivatives\": 2}}}";
    json = run_json("run", write_beam("orders_tree.json", part, cut, ""), "orders_tree", "");
    if (!json) fail_msg("%s", result.err);
    tip_of(json, more);
    cJSON_Delete(json);
    assert_true(apart(plain, more) > 1e-6 && apart(plain, more) < 0.1);
}

// A terminal sees each stage with its time; frames are counted where there are frames, not in the training.
static void test_terminal(void **state) {
    (void)state;
    static char shown[65536];
    char        command[2048], *line, *rest = shown;
    const char *file =
        write_beam("terminal.json", "\"forces\": {\"type\": \"cubature\", \"method\": \"optimized\"}", "", "");
    int     terminal = posix_openpt(O_RDWR | O_NOCTTY), trained = 0, simulated = 0;
    size_t  size = 0;
    ssize_t got;
    assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    snprintf(command, sizeof command, "TERM=xterm '%s' run '%s' --no-cache -o '%s' 2> '%s'", getenv("LIMBER_PROGRAM"),
             file, test_temporary("terminal"), ptsname(terminal));
    FILE *run = popen(command, "r");
    assert_non_null(run);
    while (size < sizeof shown - 1 && (got = read(terminal, shown + size, sizeof shown - 1 - size)) > 0)
        size += (size_t)got; // an error when the last writer is gone
    assert_int_equal(pclose(run), 0);
    close(terminal);
    while ((line = strsep(&rest, "\r\n"))) {
        bool frames = strstr(line, "frames/s") != NULL, whole = strstr(line, "] 100%") != NULL;
        if (frames && !strstr(line, "simulating")) fail_msg("frames in \"%s\"", line);
        trained += whole && strstr(line, "optimized cubature") && strstr(line, "  in ");
        simulated += whole && frames;
    }
    if (!trained || !simulated) fail_msg("the training ended %d times, the motion %d times", trained, simulated);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_given_run), cmocka_unit_test(test_bad_poses), cmocka_unit_test(test_doubtful_poses),
        cmocka_unit_test(test_held_out),  cmocka_unit_test(test_killed),    cmocka_unit_test(test_tree),
        cmocka_unit_test(test_instances), cmocka_unit_test(test_orders),    cmocka_unit_test(test_terminal)};
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
