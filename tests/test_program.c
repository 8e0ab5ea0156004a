// The program as its users meet it: exit codes, --help, the fixed JSON forms, and what it says about mistakes.
// Runs the program that LIMBER_PROGRAM names.
#include "tests/program_case.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

// Without arguments the program says how it is used and fails; asked for help or its version, it succeeds.
static void test_help(void **state) {
    (void)state;
    static const char *const commands[] = {"run", "check", "info", "convert", "mesh", "modes", "evaluate", "decompose"};
    assert_int_equal(limber("%s", ""), 2);
    assert_says(result.err, "Usage: limber");
    assert_int_equal(limber("--help"), 0);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) assert_says(result.out, commands[i]);
    assert_int_equal(limber("--version"), 0);
    assert_int_equal(strncmp(result.out, "limber ", 7), 0);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        assert_int_equal(limber("%s --help", commands[i]), 0);
        assert_says(result.out, "Usage: limber ");
        assert_says(result.out, "Example:\n  limber ");
        assert_string_equal(result.err, "");
        char direct[sizeof result.out];
        memcpy(direct, result.out, sizeof direct);
        assert_int_equal(limber("help %s", commands[i]), 0);
        assert_string_equal(result.out, direct);
    }
    printf("%zu commands explain themselves\n", sizeof commands / sizeof *commands);
}

// A mistake in the command line ends with 2, nothing on standard output, and a hint.
static void test_usage_mistakes(void **state) {
    (void)state;
    static const char *const mistakes[][2] = {
        {"modse x.veg", "unknown command \"modse\" (did you mean \"modes\"?)"},
        {"frobnicate", "unknown command \"frobnicate\""},
        {"grow oka -o x.json", "expected oak, maple, birch, pine, flower or a skeleton"},
        {"grow oak", "--output SCENE.json is needed"},
        {"grow oak -o x.png", "ends in .json"},
        {"grow oak -o x.json --wood pine", "--wood has no use"},
        {"grow no.json -o x.json --wood teak", "--wood is \"teak\""},
        {"grow oak -o x.json --element prism", "expected tet or hex"},
        {"grow oak -o x.json --classes 0", "--classes"},
        {"decompose x.veg", "--domains N is needed"},
        {"decompose x.veg --domains 4 --method metsi", "expected geodesic, metis, regions or sets"},
        {"decompose x.veg --domains 4 --loops spring", "expected merge, springs or refuse"},
        {"decompose x.veg --domains 4 --feet free", "expected merge or springs"},
        {"decompose x.veg --domains 4 --method sets", "--domains has no use with --method sets"},
        {"decompose x.veg --domains 4 -o x.png", "ends in .vtu"},
        {"modes x.veg --cuont 3", "unknown option \"--cuont\" (did you mean \"--count\"?)"},
        {"modes x.veg --count", "--count needs a value"},
        {"modes x.veg --count --json", "--count needs a value"},
        {"modes x.veg --count three", "--count is \"three\", expected a whole number"},
        {"modes x.veg --count 0", "--count is \"0\", expected a whole number"},
        {"modes x.veg --count 99999999999999999999", "expected a whole number"},
        {"modes x.veg", "--count K is needed"},
        {"modes --count 3", "something is missing"},
        {"modes x.veg y.veg --count 3", "\"y.veg\" is one word too many"},
        {"modes x.veg --count 3 --method kryov", "expected krylov, lanczos or sketch"},
        {"modes x.veg --count 3 --mass heavy", "expected consistent or lumped"},
        {"modes x.veg --count 3 --write modes.stl", "ends in .vtu"},
        {"modes x.veg --count 3 --young nan", "--young is \"nan\", expected a finite number"},
        {"modes x.veg --count 3 --json=yes", "--json takes no value"},
        {"evaluate x.veg", "--displacement FILE or sin:A is needed"},
        {"evaluate x.veg --displacement ''", "--displacement is empty"},
        {"evaluate x.veg -u sin:1 --quadrature 5", "--quadrature is \"5\", expected a whole number from 2 to 3"},
        {"info", "expected a file, or --machine alone"},
        {"convert a.veg", "something is missing"},
        {"mesh a.obj --size 1", "-o MESH is missing"},
        {"mesh a.veg -o b.veg --size 1", "is no surface"},
        {"mesh a.obj -o b.obj --size 1", "would be a surface"},
        {"mesh a.obj -o b.veg --size 0", "--size is 0, expected > 0"},
        {"mesh a.obj -o b.veg --size 1 --method cubes", "expected stuffing or voxel"},
        {"mesh a.obj -o b.veg --size 1 --method stuffing --hex", "--hex needs --method voxel"},
    };
    int count = sizeof mistakes / sizeof *mistakes;
    for (int i = 0; i < count; i++) {
        assert_int_equal(limber("%s", mistakes[i][0]), 2);
        assert_says(result.err, mistakes[i][1]);
        assert_string_equal(result.out, "");
    }
    printf("%d mistakes, each with its message\n", count);
}

// A file that is not there, or is not what it should be, ends with 2 and names the file, with --json too.
static void test_bad_files(void **state) {
    (void)state;
    static const char *const commands[][2] = {{"info", "--json"},
                                              {"modes", "--count 1 --json"},
                                              {"evaluate", "-u sin:1 --json"},
                                              {"decompose", "--domains 2 --json"},
                                              {"convert", "/dev/null/x.veg"}};
    int                      count = sizeof commands / sizeof *commands;
    char                     absent[512], bad[512], line[600];
    snprintf(absent, sizeof absent, "%s", test_temporary("absent.veg"));
    snprintf(bad, sizeof bad, "%s", test_write("bad.veg", "*VERTICES\n8 3 0 0\n1 0 0\n"));
    snprintf(line, sizeof line, "%s:3: ", bad);
    for (int i = 0; i < count; i++) {
        assert_int_equal(limber("%s '%s' %s", commands[i][0], absent, commands[i][1]), 2);
        assert_says(result.err, absent);
        assert_string_equal(result.out, "");
        assert_int_equal(limber("%s '%s' %s", commands[i][0], bad, commands[i][1]), 2);
        assert_int_equal(strncmp(result.err, line, strlen(line)), 0); // FILE:LINE: stands at the beginning
        assert_string_equal(result.out, "");
    }
    const char *cube = test_write("cube.veg", cube_h8);
    assert_int_equal(limber("convert '%s' '%s'", cube, test_temporary("no-such-folder/cube.veg")), 1);
    assert_int_equal(limber("convert '%s' '%s'", cube, test_temporary("cube.xyz")), 2);
    printf("%d commands refuse bad files\n", count);
}

// info counts, measures and weighs: a cube of side 2 m and 500 kg/m^3.
static void test_info(void **state) {
    (void)state;
    const char *names[] = {"cube8.veg", "cube4.veg"};
    for (int i = 0; i < 2; i++) {
        const char *path = test_write(names[i], i == 0 ? cube_h8 : cube_t4);
        assert_int_equal(limber("info '%s'", path), 0);
        assert_says(result.out, "8 vertices");
        assert_says(result.out, "jelly");
        assert_int_equal(limber("info '%s' --json", path), 0);
        cJSON *json = parse_output();
        assert_keys(json, "element vertices elements components unused_vertices low high volume mass materials regions "
                          "vertex_sets element_sets quality remarks");
        assert_true(number(json, "vertices") == 8);
        assert_true(number(json, "elements") == (i == 0 ? 1 : 5));
        printf("volume - 8 = %.2g, mass - 4000 = %.2g\n", number(json, "volume") - 8, number(json, "mass") - 4000);
        assert_true(fabs(number(json, "volume") - 8) < 1e-12);
        assert_true(fabs(number(json, "mass") - 4000) < 1e-9);
        cJSON_Delete(json);
    }
    char packed[512], command[1024];
    snprintf(packed, sizeof packed, "%s", test_temporary("ball.json.gz"));
    snprintf(command, sizeof command, "gzip -c scenes/ball.json > '%s'", packed);
    assert_int_equal(system(command), 0);
    assert_int_equal(limber("info '%s'", packed), 0);
    assert_says(result.out, "scene ball");
    assert_int_equal(limber("info --machine"), 0);
    assert_says(result.out, "openblas");
    assert_int_equal(limber("info --machine --json"), 0);
    cJSON *json = parse_output();
    assert_true(number(json, "threads") >= 1);
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(json, "blas_advice")->valuestring, ""); // it was corrected
    cJSON_Delete(json);
}

// the worst element is named by its number in the file
static void test_worst_element(void **state) {
    (void)state;
    static const char nodes[] = "1,0,0,0\n2,1,0,0\n3,0,1,0\n4,0,0,1\n5,0.9,0.9,0.01\n";
    char              deck[400];
    for (int i = 0; i < 2; i++) { // without gaps, with gaps; the second is the flat one
        snprintf(deck, sizeof deck, "*NODE\n%s*ELEMENT, TYPE=C3D4\n41,1,2,3,4\n%d,2,5,3,4\n", nodes, i ? 97 : 42);
        const char *path = test_write("deck.inp", deck);
        assert_int_equal(limber("info '%s'", path), 0);
        assert_says(result.out, i ? "(1 is best), element 97\n" : "(1 is best), element 42\n");
        assert_int_equal(limber("info '%s' --json", path), 0);
        cJSON *json = parse_output();
        assert_true(number(cJSON_GetObjectItemCaseSensitive(json, "quality"), "worst_element") == (i ? 97 : 42));
        cJSON_Delete(json);
    }
}

// evaluate has the fixed keys in the fixed order, and agrees with what can be worked out by hand: for u = 0 all is
// zero; for a uniform stretch of the cube by 1 + s along x, StVK's energy is V (lambda/2 + mu) E^2 with E = s + s^2/2.
static void test_evaluate(void **state) {
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s", test_write("cube.veg", cube_h8));
    assert_int_equal(limber("evaluate '%s' --material stvk --displacement sin:0 --json", path), 0);
    cJSON *json = parse_output();
    assert_keys(json, "energy force_norm force_sum force_head stiffness_norm seconds");
    assert_true(number(json, "energy") == 0 && number(json, "force_norm") == 0 && number(json, "stiffness_norm") > 1);
    assert_int_equal(length(json, "force_sum"), 3);
    assert_int_equal(length(json, "force_head"), 24); // all there are
    cJSON_Delete(json);

    double      s = 0.1, E = s + s * s / 2, young = 1e5, nu = 0.25;
    double      lambda = nu * young / ((1 + nu) * (1 - 2 * nu)), mu = young / (2 * (1 + nu));
    double      expected = 8 * (lambda / 2 + mu) * E * E;
    const char *stretch =
        test_write("u.txt", "# stretched along x\n0 0 0\n0.2 0 0\n0.2 0 0\n0 0 0\n\n0 0 0\n0.2 0 0\n0.2 0 0\n0 0 0\n");
    assert_int_equal(limber("evaluate '%s' --displacement '%s' --json", path, stretch), 0);
    json = parse_output();
    printf("stretched cube: energy %.12g J, by hand %.12g J\n", number(json, "energy"), expected);
    assert_true(fabs(number(json, "energy") / expected - 1) < 1e-12);
    cJSON_Delete(json);

    static const char *const kinds[] = {"linear",
                                        "stvk",
                                        "orthotropic",
                                        "neohookean",
                                        "mooney-rivlin --mu01 1e4 --mu10 2e4 --v1 3e4",
                                        "arruda-boyce --mu 1e4 -N 5 -k 1e5"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        assert_int_equal(
            limber("evaluate '%s' --material %s --displacement sin:0.01 --quadrature 3 --json", path, kinds[i]), 0);
        json = parse_output();
        double plain_energy = number(json, "energy"), norm = number(json, "force_norm");
        double sum = 0;
        for (int k = 0; k < 3; k++)
            sum += fabs(cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(json, "force_sum"), k)->valuedouble);
        printf("%-14.13s energy %.6g, resultant %.2g of the force\n", kinds[i], plain_energy, sum / norm);
        assert_true(plain_energy > 0 && norm > 0 && sum < 1e-12 * norm);
        cJSON_Delete(json);
    }
}

// What evaluate cannot know, it asks for; what has no meaning, it refuses; bad displacement files are named by line.
static void test_evaluate_mistakes(void **state) {
    (void)state;
    char path[512], u[512];
    snprintf(path, sizeof path, "%s", test_write("cube.veg", cube_h8));
    static const char *const mistakes[][2] = {
        {"--material stvkk -u sin:0.1", "--material is \"stvkk\" (did you mean \"stvk\"?)"},
        {"--material mooney-rivlin -u sin:0.1", "--mu01 is needed"},
        {"--material arruda-boyce --mu 1 --bulk 2 -u sin:0.1", "--chain is needed"},
        {"--material stvk --mu01 3 -u sin:0.1", "--mu01 has no meaning"},
        {"--poisson 0.7 -u sin:0.1", "Poisson's ratio is 0.7"},
        {"--material orthotropic --young3 1,2 -u sin:0.1", "expected 3 numbers"},
        {"-u sin:abc", "expected a number behind sin:"},
        {"-u no-such-file.txt", "no-such-file.txt"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        assert_int_equal(limber("evaluate '%s' %s --json", path, mistakes[i][0]), 2);
        assert_says(result.err, mistakes[i][1]);
    }
    static const char *const files[][2] = {
        {"0 0 0\n1 2\n", ":2: expected three finite numbers"},
        {"0 0 0\n1 2 nan\n", ":2: expected three finite numbers"},
        {"0 0 0\n0 0 0 0\n", ":2: expected three finite numbers"},
        {"0 0 0\n", ":1: the file ends after 1 of 8 vertices"},
        {"", "the file ends after 0 of 8 vertices"},
        {"0 0 0\n0 0 0\n0 0 0\n0 0 0\n0 0 0\n0 0 0\n0 0 0\n0 0 0\n0 0 0\n", ":9: one line too many"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(u, sizeof u, "%s", test_write("u.txt", files[i][0]));
        assert_int_equal(limber("evaluate '%s' -u '%s'", path, u), 2);
        assert_says(result.err, files[i][1]);
        assert_int_equal(strncmp(result.err, u, strlen(u)), 0);
    }
    printf("%zu mistakes, %zu bad files\n", sizeof mistakes / sizeof *mistakes, sizeof files / sizeof *files);
}

// What a file says counts, even when it says what limber would have assumed; a material that no element has is not
// asked for anything.
static void test_own_materials(void **state) {
    (void)state;
    static const char shape[] =
        "*VERTICES\n4 3 0 0\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n*ELEMENTS\nTET\n1 4 0\n1 1 2 3 4\n";
    char text[512], path[512];
    snprintf(text, sizeof text, "%s*MATERIAL default\nENU, 1000, 1e6, 0.3\n*REGION\nallElements, default\n", shape);
    snprintf(path, sizeof path, "%s", test_write("said.veg", text));
    assert_int_equal(limber("info '%s'", path), 0);
    assert_says(result.out, "material      default: stvk, density 1000 kg/m^3, young 1e+06 Pa, poisson 0.3");
    assert_int_equal(limber("modes '%s' --count 1", path), 0);
    assert_int_equal(limber("evaluate '%s' -u sin:0.01", path), 0);

    snprintf(text, sizeof text,
             "%s*MATERIAL unused\nENU, 1000, 1e9, 0.45\n*MATERIAL rubber\nMOONEYRIVLIN, 1000, 1e4, 2e4, 3e4\n"
             "*REGION\nallElements, rubber\n",
             shape);
    snprintf(path, sizeof path, "%s", test_write("rubber.veg", text));
    assert_int_equal(limber("evaluate '%s' --material mooney-rivlin -u sin:0.01 --json", path), 0);
    cJSON *json = parse_output();
    double chosen = number(json, "energy");
    cJSON_Delete(json);
    assert_int_equal(limber("evaluate '%s' -u sin:0.01 --json", path), 0);
    json = parse_output();
    printf("energy %.12g J, with the kind named %.12g J\n", number(json, "energy"), chosen);
    assert_true(chosen > 0 && number(json, "energy") == chosen);
    cJSON_Delete(json);
    assert_int_equal(limber("evaluate '%s' --young 1e6 -u sin:0.01", path), 2); // of use to the unused one only
    assert_says(result.err, "--young has no meaning for this material");

    // a file that says nothing of materials, in a scene that does not either
    test_write("mute.node", "4 3 0 0\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n");
    test_write("mute.ele", "1 4 0\n1 1 2 3 4\n");
    const char *silent = test_write("mute.json", "{\"limber\": 1, \"parts\": {\"a\": {\"mesh\": \"mute.node\"}},\n"
                                                 " \"objects\": [{\"part\": \"a\"}]}\n");
    assert_int_equal(limber("check '%s'", silent), 2);
    assert_says(result.err, "mute.json:1: parts.a: the key \"material\" is missing");
}

// Output that cannot be written is a failure, whatever was computed.
static void test_full_disk(void **state) {
    (void)state;
    char path[512], command[2048];
    if (access("/dev/full", W_OK) != 0) {
        printf("skipped: no /dev/full\n");
        return;
    }
    snprintf(path, sizeof path, "%s", test_write("cube.veg", cube_h8));
    static const char *const forms[] = {"info '%s'", "info '%s' --json", "evaluate '%s' -u sin:0",
                                        "modes '%s' -n 1 -q"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char arguments[1024];
        snprintf(arguments, sizeof arguments, forms[i], path);
        snprintf(command, sizeof command, "'%s' %s > /dev/full 2> /dev/null", getenv("LIMBER_PROGRAM"), arguments);
        int status = system(command);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    }
}

// Every command that writes files, where no file may grow beyond 512 bytes (`ulimit -f`, whose signal ends programs
// that do not mind it) and where none can be created: the message names the file, the exit code is 1 (a cache only
// costs time, so that is no failure), nothing half written stays.
static void test_no_room(void **state) {
    (void)state;
    static const char settings[] =
        "{\"limber\": 1, \"materials\": {\"m\": {\"density\": 1000, \"young\": 1e6, \"poisson\": 0.4}},\n"
        " \"parts\": {\"b\": {\"mesh\": {\"box\": {\"high\": [4, 1, 1], \"cells\": [8, 2, 2]}}, \"material\": \"m\",\n"
        " \"fixed\": \"x0\", \"modes\": {\"count\": 4}}}, \"objects\": [{\"part\": \"b\"}],\n"
        " \"solver\": {\"method\": \"reduced\", \"step\": 0.02},\n"
        " \"output\": {\"frames\": 2, \"rate\": 50, \"formats\": [\"glb\", \"vtu\"]}}\n";
    static const char *const forms[] = {
        "convert beam.veg DIR/a.msh",
        "convert beam.veg DIR/a.vtu.gz",
        "mesh ball.obj -o DIR/a.veg --size 0.2",
        "mesh ball.obj -o a.veg --size 0.2 --embed DIR/a.interp",
        "modes beam.veg -n 2 --density 1 --young 1 --poisson 0 --write DIR/a.npy",
        "modes beam.veg -n 2 --density 1 --young 1 --poisson 0 --write DIR/a.mtx",
        "modes beam.veg -n 2 --density 1 --young 1 --poisson 0 --write DIR/a.vtu",
        "modes beam.veg -n 2 --density 1 --young 1 --poisson 0 --method krylov --write DIR/a.basis",
        "modes beam.veg -n 2 --density 1 --young 1 --poisson 0 --rotations DIR/a.npy",
        "modes beam.veg -n 2 --density 1 --young 1 --poisson 0 --matrices DIR/a.pre",
        "decompose beam.veg --domains 2 -o DIR/a.vtu",
        "decompose beam.veg --copies -o DIR/a.vtu",
        "grow flower -o DIR/a.json",
        "grow flower -o a.json --skeleton DIR/a.skeleton.json",
        "stitch stitch.json --no-runs --no-cache -o DIR",
        "run beam.json --cache good -o DIR",
        "run beam.json --cache good --set 'output.formats=[\"glb\"]' -o DIR",
        "run beam.json --cache good --set 'output.formats=[\"obj\"]' -o DIR",
        "run beam.json --cache good --set 'output.formats=[]' --set output.frames=200 -o DIR", // energies.csv
        "run beam.json --cache good --set 'output.formats=[]' --checkpoint 1 -o DIR",
        "render good/beam.glb --size 64x64 -o DIR/a.png",
        "render good/beam.glb --size 64x64 -o DIR",
        "precompute beam.json --cache DIR"};
    char folder[512], command[4096];
    test_write("beam.json", settings);
    snprintf(folder, sizeof folder, "%s", test_temporary(""));
    fem_mesh mesh = {0};
    assert_ok(fem_generate_box(&mesh, FEM_T4, (double[]){0, 0, 0}, (double[]){4, 1, 1}, (int[]){8, 2, 2}));
    assert_ok(fem_mesh_write(&mesh, test_temporary("beam.veg")));
    assert_ok(fem_mesh_write(&mesh, test_temporary("ball.obj")));
    fem_mesh_destroy(&mesh);
    snprintf(command, sizeof command,
             "cp scenes/stitch.json '%s' && cd '%s' && '%s' run beam.json -q --cache good -o good > out.txt 2>&1",
             folder, folder, getenv("LIMBER_PROGRAM"));
    assert_int_equal(system(command), 0);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (int full = 0; full < 2; full++) {
            const char *where = full ? "small" : "/proc/nowhere", *mark = strstr(forms[i], "DIR");
            snprintf(command, sizeof command,
                     "cd '%s' && rm -rf small && mkdir small && ulimit -f %s && '%s' %.*s%s%s "
                     "> /dev/null 2> err.txt",
                     folder, full ? "1" : "unlimited", getenv("LIMBER_PROGRAM"), (int)(mark - forms[i]), forms[i],
                     where, mark + 3);
            int status = system(command);
            read_whole(test_temporary("err.txt"), result.err, sizeof result.err);
            int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
            if (code != 1) fail_msg("%s in %s: exit code %d, %s", forms[i], where, code, result.err);
            assert_says(result.err, full ? "cannot be written: File too large" : "/proc/nowhere");
            assert_null(strstr(result.err, "frames are in")); // there are none
            snprintf(command, sizeof command, "cd '%s' && find . -name '*.part' -o -path './small/a.*' | grep -q .",
                     folder);
            if (system(command) == 0) fail_msg("%s in %s leaves something half written", forms[i], where);
        }
    printf("%zu commands refused by a full disk and by a folder that cannot be written\n",
           sizeof forms / sizeof *forms);
}

// A process that may use one core only starts no second thread.
static void test_affinity(void **state) {
    (void)state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    int code = limber("info --machine --json");
    sched_setaffinity(0, sizeof before, &before);
    assert_int_equal(code, 0);
    cJSON *json = parse_output();
    printf("%g cores, %g threads on one of them\n", number(json, "cores"), number(json, "threads"));
    assert_true(number(json, "threads") == 1);
    cJSON_Delete(json);
}

// modes has the fixed keys in the fixed order; a free body has no rigid mode among its answers; four times the Young's
// modulus doubles the frequencies; holding vertices counts their degrees of freedom out.
static void test_modes(void **state) {
    (void)state;
    char path[512], fix[512];
    snprintf(path, sizeof path, "%s", test_write("cube.veg", cube_t4));
    snprintf(fix, sizeof fix, "%s", test_write("cube.bou", "1,2,3,\n4\n"));
    assert_int_equal(limber("modes '%s' --count 4 --method lanczos --json", path), 0);
    cJSON *json = parse_output();
    assert_keys(json, "vertices elements free_dofs mass eigenvalues frequencies_hz residuals seconds basis");
    assert_int_equal(length(json, "eigenvalues"), 4);
    assert_int_equal(length(json, "frequencies_hz"), 4);
    assert_int_equal(length(json, "residuals"), 4);
    assert_true(number(json, "free_dofs") == 24);
    double first = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(json, "eigenvalues"), 0)->valuedouble;
    double hertz = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(json, "frequencies_hz"), 0)->valuedouble;
    assert_true(first > 10); // a rigid mode would be 0; E / (rho L^2) is 50
    assert_true(fabs(2 * acos(-1) * hertz / sqrt(first) - 1) < 1e-14);
    cJSON_Delete(json);

    assert_int_equal(limber("modes '%s' --count 4 --young 4e5 --json", path), 0);
    json = parse_output();
    double stiffer = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(json, "eigenvalues"), 0)->valuedouble;
    printf("first eigenvalue %.10g, with four times the modulus %.10g times as large\n", first, stiffer / first);
    assert_true(fabs(stiffer / first - 4) < 1e-8);
    cJSON_Delete(json);

    char vtu[512];
    snprintf(vtu, sizeof vtu, "%s", test_temporary("modes.vtu"));
    assert_int_equal(limber("modes '%s' --count 2 --fix '%s' --mass lumped --write '%s' --json", path, fix, vtu), 0);
    json = parse_output();
    assert_true(number(json, "free_dofs") == 12);
    cJSON_Delete(json);
    assert_int_equal(limber("info '%s'", vtu), 0);
    assert_int_equal(limber("modes '%s' --count 2 --fix '%s'", path, test_write("bad.bou", "1, 99\n")), 2);
    assert_says(result.err, "bad.bou:1:");
    assert_int_equal(limber("modes '%s' --count 400", path), 2);
}

// mesh: a cube filled both ways, with its report and embedding; faults, sizes and places that cannot be
static void test_mesh(void **state) {
    (void)state;
    char obj[512], veg[512], interp[512];
    snprintf(veg, sizeof veg, "%s", test_write("cube.veg", cube_t4));
    snprintf(obj, sizeof obj, "%s", test_temporary("cube.obj.gz"));
    snprintf(interp, sizeof interp, "%s", test_temporary("cube.interp"));
    assert_int_equal(limber("convert '%s' '%s'", veg, obj), 0);
    snprintf(veg, sizeof veg, "%s", test_temporary("filled.veg"));
    assert_int_equal(limber("mesh '%s' -o '%s' --size 0.25 --hex --embed '%s' --json", obj, veg, interp), 0);
    cJSON *json = parse_output();
    assert_keys(json,
                "file vertices elements element size volume min_dihedral max_dihedral components surface distance "
                "crumbs hinged_parts pinches filled embedded_outside seconds remarks");
    printf("cube of hexahedra: %g elements, volume %g\n", number(json, "elements"), number(json, "volume"));
    assert_true(number(json, "elements") == 512 && fabs(number(json, "volume") - 8) < 1e-12);
    cJSON_Delete(json);
    assert_int_equal(access(interp, R_OK), 0);
    assert_int_equal(limber("mesh '%s' -o '%s' --size 0.25", obj, veg), 0);
    assert_says(result.out, "dihedral angles");
    assert_int_equal(limber("info '%s'", veg), 0);
    test_write("filled.veg", "old"); // an output that cannot be written leaves the others alone
    assert_int_equal(limber("mesh '%s' -o '%s' --size 0.25 --embed '%s/no/such/folder.interp'", obj, veg, interp), 1);
    assert_says(result.err, "folder.interp: cannot be created");
    read_whole(veg, result.out, sizeof result.out);
    assert_string_equal(result.out, "old");
    assert_int_equal(limber("mesh '%s' -o '%s'", obj, veg), 2);
    assert_says(result.err, "makes about 1000 elements");
    assert_int_equal(limber("mesh '%s' -o '%s' --size 1e-5", obj, veg), 2);
    assert_says(result.err, "is too small: about");
    assert_int_equal(limber("mesh '%s' -o '%s' --size 100", obj, veg), 2);
    assert_says(result.err, "is too large");
    assert_int_equal(limber("mesh '%s' -o '%s/no/such/folder.veg' --size 0.5", obj, veg), 1);
    assert_string_equal(result.out, "");
    assert_int_equal(limber("mesh no-such.obj -o '%s' --size 0.5", veg), 2);
    const char *open = test_write("open.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nv 1 1 1\nf 1 3 2\nf 1 2 4\n"
                                              "f 1 4 3\nf 2 5 4\nf 4 5 3\n");
    assert_int_equal(limber("mesh '%s' -o '%s' --size 0.1", open, veg), 0);
    assert_says(result.err, "not closed (3 open edges)");
}

// convert keeps what the format can hold and names what it cannot.
static void test_convert(void **state) {
    (void)state;
    char veg[512], vtu[512], obj[512], back[512], node[512], back_obj[512];
    snprintf(veg, sizeof veg, "%s", test_write("cube.veg", cube_t4));
    snprintf(vtu, sizeof vtu, "%s", test_temporary("cube.vtu"));
    snprintf(back, sizeof back, "%s", test_temporary("back.veg.gz"));
    snprintf(obj, sizeof obj, "%s", test_temporary("cube.obj"));
    snprintf(node, sizeof node, "%s", test_temporary("cube.node"));
    snprintf(back_obj, sizeof back_obj, "%s", test_temporary("back.obj"));
    assert_int_equal(limber("convert '%s' '%s'", veg, vtu), 0);
    assert_int_equal(limber("convert '%s' '%s'", vtu, back), 0);
    assert_int_equal(limber("info '%s' --json", back), 0);
    cJSON *json = parse_output();
    printf("after two conversions: %g elements, %.12g m^3\n", number(json, "elements"), number(json, "volume"));
    assert_true(number(json, "elements") == 5 && number(json, "volume") == 8);
    cJSON_Delete(json);
    assert_int_equal(limber("convert '%s' '%s'", veg, node), 0);
    assert_says(result.err, "lost: the material of 5 elements");
    assert_int_equal(limber("info '%s'", node), 0);
    assert_says(result.out, "the file has no material");
    assert_int_equal(limber("modes '%s' --count 1", node), 2); // now it must be told
    assert_says(result.err, "is needed");
    assert_int_equal(limber("modes '%s' --count 1 --young 1e5 --poisson 0.25 --density 500", node), 0);
    assert_int_equal(limber("convert '%s' '%s'", veg, obj), 0);
    assert_says(result.err, "lost: everything inside");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(limber("convert '%s' '%s' --json", i == 0 ? veg : obj, i == 0 ? node : back_obj), 0);
        assert_string_equal(result.err, "");
        json = parse_output();
        assert_keys(json, i == 0 ? "file vertices elements remarks lost" : "file vertices triangles remarks lost");
        assert_true(number(json, "vertices") == 8);
        assert_int_equal(length(json, "lost"), i == 0 ? 1 : 0);
        cJSON_Delete(json);
    }
    // names that a format cannot hold are written in another way, and said
    char walled[512], plain[512];
    snprintf(walled, sizeof walled, "%s",
             test_write("named.inp", "*NODE\n1,0,0,0\n2,1,0,0\n3,0,1,0\n4,0,0,1\n*ELEMENT,TYPE=C3D4\n1,1,2,3,4\n"
                                     "*NSET,NSET=\"left wall\"\n1,2\n"));
    snprintf(plain, sizeof plain, "%s", test_temporary("named.veg"));
    assert_int_equal(limber("convert '%s' '%s'", walled, plain), 0);
    assert_says(result.err, "in 1 names, such as \"left wall\", which have _ there");
    assert_int_equal(limber("info '%s'", plain), 0);
    assert_says(result.out, "left_wall: 2");
    assert_int_equal(limber("convert '%s' '%s/no/such/folder.veg' --json", veg, veg), 1);
    assert_string_equal(result.out, "");
    assert_int_equal(limber("convert '%s' '%s'", obj, vtu), 2);
    assert_says(result.err, "`limber mesh` fills it");
    // what surfaces have beside their shape
    static const char *const passed[][4] = {
        {"v.obj", "obj", "o a b\nv 0 0 0 1 1 1\nv 1 0 0\nv 0 1 0\nvn 0 0 1\nvn 0 0 1\ng c\nf 1//1 2//1 3//1\n",
         "lost: o, vn, g, colours or weights; "},
        {"c.ply", "obj",
         "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
         "property uchar red\nelement face 1\nproperty list uchar int vertex_indices\nelement edge 0\n"
         "property int vertex1\nend_header\n0 0 0 9\n1 0 0 9\n0 1 0 9\n3 0 1 2\n",
         "lost: red, vertex1; "}};
    for (int i = 0; i < 2; i++) {
        char in[512];
        snprintf(in, sizeof in, "%s", test_write(passed[i][0], passed[i][2]));
        assert_int_equal(limber("convert '%s' '%s.%s'", in, in, passed[i][1]), 0);
        assert_says(result.err, passed[i][3]);
    }
    // the name of the only region counts when somebody gave it one
    const char *named = test_write("named.inp", "*NODE\n1,0,0,0\n2,1,0,0\n3,0,1,0\n4,0,0,1\n"
                                                "*ELEMENT, TYPE=C3D4, ELSET=trunk\n1,1,2,3,4\n*MATERIAL, NAME=oak\n"
                                                "*ELASTIC\n1e10, 0.3\n*SOLID SECTION, ELSET=trunk, MATERIAL=oak\n");
    assert_int_equal(limber("convert '%s' '%s'", named, vtu), 0);
    assert_null(strstr(result.err, "lost"));
    assert_int_equal(limber("convert '%s' '%s'", named, node), 0);
    assert_says(result.err, "lost: region \"trunk\"");
}

// Whatever a file calls its materials, the output stays JSON: quotes, control characters and bytes that are no text.
static void test_json_is_valid(void **state) {
    (void)state;
    char        veg[sizeof cube_h8 + 64];
    const char *name = strstr(cube_h8, "jelly"), *again = strstr(name + 1, "jelly");
    snprintf(veg, sizeof veg, "%.*sa\"\\\x01\xff\xc3\xa9%.*sa\"\\\x01\xff\xc3\xa9%s", (int)(name - cube_h8), cube_h8,
             (int)(again - name - 5), name + 5, again + 5);
    const char *path = test_write("odd.veg", veg);
    assert_int_equal(limber("info '%s' --json", path), 0);
    cJSON       *json = parse_output();
    const cJSON *material = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(json, "materials"), 0);
    const char  *printed = cJSON_GetObjectItemCaseSensitive(material, "name")->valuestring;
    printf("material \"%s\"\n", printed);
    assert_string_equal(printed, "a\"\\\x01\xef\xbf\xbd\xc3\xa9"); // the byte that is no text became U+FFFD
    cJSON_Delete(json);
}

// Names in files and scenes do not steer a terminal: neither in what is printed nor in remarks and mistakes.
static void test_plain_text(void **state) {
    (void)state;
    char veg[512];
    snprintf(veg, sizeof veg, "%s",
             test_write("steer.veg", "*VERTICES\n4 3 0 0\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n"
                                     "*ELEMENTS\nTET\n1 4 0\n1 1 2 3 4\n*SET a\x1b[31m\xc2\x9b"
                                     "b\xc3\xa9\n1\n"));
    assert_int_equal(limber("info '%s'", veg), 0);
    assert_says(result.out, "element set   a?[31m?b\xc3\xa9: 1\n");
    assert_int_equal(limber("convert '%s' '%s.node'", veg, veg), 0);
    assert_says(result.err, "lost: element set \"a?[31m?b\xc3\xa9\" of 1");
    const char *steer =
        test_write("steer.json", "{\"limber\": 1, \"parts\": {\"\\u001b[31m\": {}}, \"objects\": [{\"part\": \"a\"}]}");
    assert_int_equal(limber("check '%s'", steer), 2);
    assert_says(result.err, "?[31m");
    assert_null(strchr(result.err, 0x1b));
}

// The vector width, the plain loops and the number of threads change nothing: not a bit for threads, rounding
// otherwise.
static void test_same_numbers(void **state) {
    (void)state;
    const char              *path = test_write("cube.veg", cube_t4);
    const char              *program = getenv("LIMBER_PROGRAM");
    static const char *const variants[][2] = {
        {"", ""}, {"", "--threads 1"}, {"", "--plain"}, {"LIMBER_SIMD=baseline", ""}, {"LIMBER_SIMD=avx2", ""}};
    double energy[5], force[5], stiffness[5];
    assert_non_null(program);
    for (int i = 0; i < 5; i++) {
        char        command[2048];
        const char *out = test_temporary("variant.txt");
        snprintf(command, sizeof command, "%s '%s' evaluate '%s' --material neohookean -u sin:0.03 --json %s > '%s'",
                 variants[i][0], program, path, variants[i][1], out);
        assert_int_equal(system(command), 0);
        read_whole(out, result.out, sizeof result.out);
        cJSON *json = parse_output();
        energy[i] = number(json, "energy");
        force[i] = number(json, "force_norm");
        stiffness[i] = number(json, "stiffness_norm");
        cJSON_Delete(json);
        double error = fmax(fabs(energy[i] / energy[0] - 1),
                            fmax(fabs(force[i] / force[0] - 1), fabs(stiffness[i] / stiffness[0] - 1)));
        printf("%s%s: %.2g\n", variants[i][0], variants[i][1], error);
        assert_true(error <= (i <= 1 ? 0 : 1e-12));
    }
}

static const char beam_scene[] =
    "{\"limber\": 1, \"materials\": {\"m\": {\"type\": \"stvk\", \"density\": 1000,"
    " \"young\": 1e8, \"poisson\": 0.3}},\n"
    "\"parts\": {\"beam\": {\"mesh\": {\"box\": {\"element\": \"hex\", \"low\": [0, 0, 0],"
    " \"high\": [1, 0.1, 0.1], \"cells\": %s}}, \"material\": \"m\", \"fixed\": \"x0\"}},\n"
    "\"objects\": [{\"part\": \"beam\"}],\n"
    "\"environment\": {\"gravity\": [0, 0, -9.81]},\n"
    "\"solver\": {\"method\": \"%s\"%s}, \"output\": {\"probes\": {\"tip\": \"x1\"}%s}}\n";

// A static scene: probes and iterations in the JSON, and a beam that sags by q L^4 / (8 E I) as beams do, within what
// shear and the support change (some percent); info and check read the same scene.
static void test_static_scene(void **state) {
    (void)state;
    char text[2048], path[512], folder[512];
    snprintf(text, sizeof text, beam_scene, "[40, 4, 4]", "static", "", "");
    snprintf(path, sizeof path, "%s", test_write("beam.json", text));
    snprintf(folder, sizeof folder, "%s", test_temporary("beam"));
    assert_int_equal(limber("run '%s' -o '%s' --json", path, folder), 0);
    cJSON *json = parse_output();
    assert_true(number(json, "newton_iterations") >= 1);
    assert_true(number(json, "max_displacement") > 0);
    const cJSON *tip = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(json, "probes"), "tip");
    assert_int_equal(cJSON_GetArraySize(tip), 3);
    double sag = -cJSON_GetArrayItem(tip, 2)->valuedouble;
    double load = 1000 * 9.81 * 0.1 * 0.1, inertia = 0.1 * 0.1 * 0.1 * 0.1 / 12;
    double expected = load / (8 * 1e8 * inertia);
    printf("tip sags by %.5f m, a thin beam by %.5f m\n", sag, expected);
    assert_true(fabs(sag / expected - 1) < 0.05);
    cJSON_Delete(json);
    assert_int_equal(limber("info '%s' --json", path), 0);
    json = parse_output();
    assert_int_equal(length(json, "parts"), 1);
    cJSON_Delete(json);
    assert_int_equal(limber("info '%s'", path), 0);
    assert_says(result.out, "part beam");
    assert_int_equal(limber("check '%s'", path), 0);
    assert_int_equal(limber("run '%s' --frames 3", path), 2);
    assert_says(result.err, "--frames has no meaning for a static scene");
}

// Ctrl-C ends a run with 1, and the frames that were done are complete: every file that the .pvd lists can be read.
static void test_interrupt(void **state) {
    (void)state;
    char text[2048], path[512], folder[512], command[2048], pvd[1024], list[65536];
    snprintf(text, sizeof text, beam_scene, "[10, 1, 1]", "full", ", \"step\": 0.001",
             ", \"frames\": 100000, \"rate\": 1000");
    snprintf(path, sizeof path, "%s", test_write("long.json", text));
    snprintf(folder, sizeof folder, "%s", test_temporary("long"));
    const char *err = test_temporary("err.txt");
    // --foreground: one signal to the program; without it the group gets another, and a second Ctrl-C ends at once
    snprintf(command, sizeof command,
             "timeout --foreground --preserve-status -s INT 3 '%s' run '%s' -o '%s' > /dev/null 2> '%s'",
             getenv("LIMBER_PROGRAM"), path, folder, err);
    int status = system(command);
    read_whole(err, result.err, sizeof result.err);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_says(result.err, "limber: ");
    snprintf(pvd, sizeof pvd, "%s/long.pvd", folder);
    read_whole(pvd, list, sizeof list);
    int frames = 0;
    for (const char *at = strstr(list, "file=\""); at; at = strstr(at, "file=\"")) {
        at += 6;
        char frame[1024];
        snprintf(frame, sizeof frame, "%s/%.*s", folder, (int)strcspn(at, "\""), at);
        assert_int_equal(access(frame, R_OK), 0);
        if (frames++ == 0) assert_int_equal(limber("info '%s'", frame), 0);
    }
    printf("%d frames are complete\n", frames);
    assert_true(frames >= 1);
}

// decompose: the tree as JSON and as text, the domains as fields of a .vtu, a loop refused with the file's name in
// front
static void test_decompose(void **state) {
    (void)state;
    fem_mesh  bar = {0}, back = {0};
    char      path[512], out[512];
    const int cells[3] = {12, 1, 1}, list[3] = {0, 1, 2};
    assert_ok(fem_generate_box(&bar, FEM_H8, (double[]){0, 0, 0}, (double[]){12, 1, 1}, cells));
    assert_ok(fem_mesh_add_element_set(&bar, "end", 3, list));
    snprintf(path, sizeof path, "%s", test_temporary("bar.vtu"));
    snprintf(out, sizeof out, "%s", test_temporary("domains.vtu"));
    assert_ok(fem_mesh_write(&bar, path));
    assert_int_equal(limber("decompose '%s' --domains 4 --fix set:x0 -o '%s' --json", path, out), 0);
    cJSON       *json = parse_output();
    const cJSON *tree = cJSON_GetObjectItemCaseSensitive(json, "tree");
    assert_int_equal(cJSON_GetObjectItemCaseSensitive(json, "domains")->valueint, 4);
    assert_int_equal(cJSON_GetObjectItemCaseSensitive(json, "depth")->valueint, 3);
    assert_int_equal(cJSON_GetArraySize(tree), 4);
    for (int i = 0; i < 4; i++) {
        const cJSON *domain = cJSON_GetArrayItem(tree, i);
        assert_int_equal(cJSON_GetObjectItemCaseSensitive(domain, "parent")->valueint, i - 1);
        assert_int_equal(cJSON_GetObjectItemCaseSensitive(domain, "elements")->valueint, 3);
        assert_true(fabs(cJSON_GetObjectItemCaseSensitive(domain, "interface_area")->valuedouble - (i > 0)) < 1e-12);
    }
    cJSON_Delete(json);
    assert_ok(fem_mesh_read(&back, out));
    assert_int_equal(back.element_count, 12);
    char  *text = NULL;
    size_t size;
    assert_ok(fem_file_read(&text, &size, out));
    const char *const fields[] = {"domain", "level", "parent", "owner", "interface"};
    for (int i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "Name=\"%s\"", fields[i]);
        assert_says(text, name);
    }
    fem_free(text);
    assert_int_equal(limber("decompose '%s' --method sets", path), 0);
    assert_says(result.out, "2 domains, 1 level below the root");
    assert_says(result.out, "  rest\n");
    assert_says(result.out, "  end\n");
    assert_int_equal(limber("decompose '%s' --domains 7", path), 2);
    assert_says(result.err, "bar.vtu: domains.count is 7, expected 1 to 6");
    assert_int_equal(limber("decompose '%s' --domains 4 --fix set:xx", path), 2);
    assert_says(result.err, "the mesh has no vertex set \"xx\"");
    fem_mesh_destroy(&bar), fem_mesh_destroy(&back);
}

// a scene is run and drawn, and what was run for it is gone
static void test_render_scene(void **state) {
    (void)state;
    static const unsigned char png[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    char                       temporary[512], picture[512], bytes[64];
    snprintf(temporary, sizeof temporary, "%s", test_temporary("render"));
    snprintf(picture, sizeof picture, "%s", test_temporary("hook.png"));
    assert_int_equal(mkdir(temporary, 0777), 0);
    setenv("TMPDIR", temporary, 1);
    assert_int_equal(limber("render scenes/hook.json -o '%s' --size 64x36 --json", picture), 0);
    cJSON *json = parse_output();
    assert_keys(json, "pictures triangles seconds_each film");
    assert_int_equal(cJSON_GetObjectItem(json, "pictures")->valueint, 1);
    assert_true(cJSON_GetObjectItem(json, "triangles")->valueint > 100);
    cJSON_Delete(json);
    read_whole(picture, bytes, sizeof bytes);
    assert_memory_equal(bytes, png, sizeof png);
    assert_int_equal(limber("render scenes/bad/empty.json -o '%s'", picture), 2);
    assert_int_equal(limber("render scenes/hook.json -o '%s' --set solver.method=fast", picture), 2);
    assert_says(result.err, "solver.method");
    assert_int_equal(limber("render some.glb -o '%s' --set solver.method=full", picture), 2);
    assert_says(result.err, "--set is for scenes");
    setenv("TMPDIR", "/nowhere", 1);
    assert_int_equal(limber("render scenes/hook.json -o '%s'", picture), 1);
    assert_says(result.err, "/nowhere/limber-render-");
    unsetenv("TMPDIR");
    assert_int_equal(rmdir(temporary), 0); // empty
}

// A film is whole or the old one: a program in the place of ffmpeg writes part of it and fails, then succeeds.
static void test_film(void **state) {
    (void)state;
    char folder[512], shots[512], film[512], path[5000], old[4096], text[64];
    snprintf(folder, sizeof folder, "%s", test_temporary("bin"));
    snprintf(shots, sizeof shots, "%s", test_temporary("shots"));
    snprintf(film, sizeof film, "%s", test_write("film.mp4", "old"));
    snprintf(old, sizeof old, "%s", getenv("PATH"));
    assert_int_equal(mkdir(folder, 0777), 0);
    for (int good = 0; good < 2; good++) {
        snprintf(text, sizeof text, "#!/bin/sh\nfor last; do :; done\nprintf new > \"$last\"\nexit %d\n", !good);
        assert_int_equal(chmod(test_write("bin/ffmpeg", text), 0755), 0);
        snprintf(path, sizeof path, "%s:%s", folder, old);
        setenv("PATH", path, 1);
        int code = limber("render scenes/hook.json -o '%s' --frames 1 --size 32x32 --film '%s' --quiet", shots, film);
        setenv("PATH", old, 1);
        assert_int_equal(code, good ? 0 : 1);
        if (!good) assert_says(result.err, "film.mp4: cannot be written: ffmpeg failed");
        read_whole(film, text, sizeof text);
        assert_string_equal(text, good ? "new" : "old");
        snprintf(path, sizeof path, "ls -a '%.*s' | grep -q part", (int)(strrchr(film, '/') - film), film);
        assert_int_not_equal(system(path), 0);
    }
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_usage_mistakes),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_worst_element),
        cmocka_unit_test(test_evaluate),
        cmocka_unit_test(test_evaluate_mistakes),
        cmocka_unit_test(test_own_materials),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_affinity),
        cmocka_unit_test(test_modes),
        cmocka_unit_test(test_decompose),
        cmocka_unit_test(test_convert),
        cmocka_unit_test(test_mesh),
        cmocka_unit_test(test_json_is_valid),
        cmocka_unit_test(test_plain_text),
        cmocka_unit_test(test_same_numbers),
        cmocka_unit_test(test_static_scene),
        cmocka_unit_test(test_interrupt),
        cmocka_unit_test(test_render_scene),
        cmocka_unit_test(test_film),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
