// `limber modes` as its users meet it: every way to a basis, what is written, and what is said about bodies and options
// that cannot be.
#include "tests/program_case.h"

#define MATERIAL "*MATERIAL jelly\nENU, 500, 1e5, 0.25\n*REGION\nallElements, jelly\n"

// Two tetrahedra apart; two that share a vertex; a cube with a vertex of no element.
static const char apart[] =
    "*VERTICES\n8 3 0 0\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n5 5 0 0\n6 6 0 0\n7 5 1 0\n8 5 0 1\n"
    "*ELEMENTS\nTET\n2 4 0\n1 1 2 3 4\n2 5 6 7 8\n" MATERIAL;
static const char hinge[] = "*VERTICES\n7 3 0 0\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n5 -1 0 0\n6 0 -1 0\n7 0 0 -1\n"
                            "*ELEMENTS\nTET\n2 4 0\n1 1 2 3 4\n2 1 5 7 6\n" MATERIAL;
static const char lonely[] = "*VERTICES\n5 3 0 0\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n5 3 3 3\n"
                             "*ELEMENTS\nTET\n1 4 0\n1 1 2 3 4\n" MATERIAL;
static const char weightless[] = "*VERTICES\n4 3 0 0\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n"
                                 "*ELEMENTS\nTET\n1 4 0\n1 1 2 3 4\n"
                                 "*MATERIAL jelly\nENU, 0, 1e5, 0.25\n*REGION\nallElements, jelly\n";

static char beam[512];

// A bar with the vertex sets x0 (its root) and x1 (its tip).
static void make_beam(void) {
    fem_mesh     mesh = {0};
    const double low[3] = {0, 0, 0}, high[3] = {2, 0.3, 0.2};
    const int    cells[3] = {10, 3, 2};
    assert_ok(fem_generate_box(&mesh, FEM_T4, low, high, cells));
    fem_material material = fem_material_default();
    snprintf(material.name, sizeof material.name, "rubber");
    assert_ok(fem_mesh_set_material(&mesh, &material));
    snprintf(beam, sizeof beam, "%s", test_temporary("beam.veg"));
    assert_ok(fem_mesh_write(&mesh, beam));
    fem_mesh_destroy(&mesh);
}

static double item(const cJSON *json, const char *list, int index) {
    return cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(json, list), index)->valuedouble;
}

static const cJSON *part(const cJSON *json, const char *key) {
    const cJSON *object = cJSON_GetObjectItemCaseSensitive(json, key);
    if (!cJSON_IsObject(object)) fail_msg("no object \"%s\" in %s", key, result.out);
    return object;
}

// Each kind of body that has no modes, or not those, has its own message, whichever way; exit code 2, and no output.
static void test_bad_bodies(void **state) {
    (void)state;
    static const struct {
        const char *mesh, *options, *message;
        bool        krylov_only;
    } cases[] = {
        {apart, "--count 100", "100 modes were asked for, but the body has only 12 (24 free", false},
        {apart, "--count 13", "13 modes were asked for", false},
        {apart, "--count 3 --seeds rigid", "the mesh falls into 2 pieces that are not joined", true},
        {lonely, "--count 2", "vertex 5 belongs to no element", false},
        {weightless, "--count 2", "density is 0, expected > 0", false},
        {hinge, "--count 3", "2 groups that only vertices or edges join", false},
        {hinge, "--count 3 --inverse amg", "2 groups that only vertices or edges join", false},
        {hinge, "--count 3 --fix FIX", "2 groups that only vertices or edges join", false},
        {hinge, "--count 3 --inverse amg --fix FIX", "2 groups that only vertices or edges join", false},
        {apart, "--count 3 --density 0", "density is 0, expected > 0", false},
        {apart, "--count 3 --young 0", "Young's modulus is 0, expected > 0", false},
        {apart, "--count 3 --fix ALL", "every degree of freedom is fixed", false},
    };
    char fix[512], all[512];
    snprintf(fix, sizeof fix, "%s", test_write("four.bou", "1, 2, 3, 4\n"));
    snprintf(all, sizeof all, "%s", test_write("all.bou", "1,2,3,4,5,6,7,8\n"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int method = cases[i].krylov_only; method < 2; method++) {
            char        options[1024];
            const char *name = strstr(cases[i].options, "FIX") ? "FIX" : "ALL", *at = strstr(cases[i].options, name);
            if (at)
                snprintf(options, sizeof options, "%.*s'%s'", (int)(at - cases[i].options), cases[i].options,
                         strcmp(name, "FIX") == 0 ? fix : all);
            else
                snprintf(options, sizeof options, "%s", cases[i].options);
            const char *path = test_write("body.veg", cases[i].mesh);
            assert_int_equal(limber("modes '%s' %s --method %s", path, options, method ? "krylov" : "lanczos"), 2);
            assert_says(result.err, cases[i].message);
            assert_string_equal(result.out, "");
        }
    // a body that is not held where it must be
    assert_int_equal(limber("modes '%s' -n 2 --method krylov --seeds x,rz", beam), 2);
    assert_says(result.err, "the supports leave 6 rigid motions; hold three vertices");
    assert_int_equal(
        limber("modes '%s' -n 2 --method sketch --fix '%s' --load x1:0,0,1", beam, test_write("one.bou", "1\n")), 2);
    assert_says(result.err, "the body is not held: 3 rigid motions");
    // one piece held, the other not: its modes are there, and the remark
    assert_int_equal(limber("modes '%s' -n 2 --fix '%s' --json", test_write("body.veg", apart), fix), 0);
    assert_says(result.err, "the supports leave 6 rigid motions");
    cJSON *json = parse_output();
    assert_true(number(part(json, "basis"), "rigid_motions") == 6 && item(json, "eigenvalues", 0) > 1);
    cJSON_Delete(json);
}

// An option that would change nothing is refused; words and files that are wrong are named.
static void test_options(void **state) {
    (void)state;
    static const struct {
        const char *options, *message;
    } cases[] = {
        {"--seeds x", "--seeds has no meaning without --method krylov"},
        {"--fields 3", "--fields has no meaning without --method krylov"},
        {"--random 3", "--random has no meaning without --method krylov"},
        {"--vectors a.npy", "--vectors has no meaning without --method krylov"},
        {"--interface x1", "--interface has no meaning without --method krylov"},
        {"--orthogonalise mgs", "--orthogonalise has no meaning without --method krylov"},
        {"--border plain", "--border has no meaning without --method krylov"},
        {"--method krylov --interface-seeds 2", "--interface-seeds has no meaning without --interface"},
        {"--method krylov --interface-norm mass", "--interface-norm has no meaning without --interface"},
        {"--method krylov --interface x1 --interface-norm heavy",
         "--interface-norm is \"heavy\", expected mass or energy"},
        {"--method krylov --interface x1:heavy", "the mass in \"x1:heavy\" is not a number > 0"},
        {"--method krylov --interface x1:0", "the mass in \"x1:0\" is not a number > 0"},
        {"--method krylov --interface tip:2", "the mesh has no vertex set \"tip:2\""},
        {"--scaling unit", "--scaling has no meaning without --derivatives"},
        {"--derivatives 1 --scaling omega", "expected none, unit, frequency or rayleigh"},
        {"--method krylov --threshold 0.1", "--threshold has no meaning without --orthogonalise rmgs"},
        {"--method krylov --orthogonalise mgs --samples 9", "--samples has no meaning without --orthogonalise rmgs"},
        {"--tolerance 1e-4", "--tolerance has no meaning without multigrid"},
        {"--method krylov --inverse factor --tolerance 1e-4", "--tolerance has no meaning without multigrid"},
        {"--linear 3", "--linear has no meaning without --derivatives"},
        {"--kind modal", "--kind has no meaning without --derivatives"},
        {"--condense pca", "--condense has no meaning without --derivatives"},
        {"--energy 0.9", "--energy has no meaning without --derivatives"},
        {"--metric lumped", "--metric has no meaning without --derivatives"},
        {"--load x1:0,0,1", "--load has no meaning without --method sketch"},
        {"--loads file", "--loads has no meaning without --method sketch"},
        {"--distance 0.1", "--distance has no meaning without --method sketch"},
        {"--method sketch --fix set:x0", "needs --fix and at least one load"},
        {"--method sketch --load x1:0,0,1", "needs --fix and at least one load"},
        {"--method sketch --load x1:0,0,1 --fix set:x0 --derivatives 1", "--derivatives has no meaning"},
        {"--method sketch --load x1:0,0,1 --fix set:x0 --inverse amg", "--inverse has no meaning"},
        {"--method sketch --load x1:0,0 --fix set:x0", "--load: a load is \"x1:0,0\", expected WHERE:fx,fy,fz"},
        {"--method sketch --load tip:0,0,1 --fix set:x0", "\"tip\" is neither a vertex set"},
        {"--method krylov --seeds x,up", "\"up\" is unknown"},
        {"--method krylov --interface tip", "the mesh has no vertex set \"tip\""},
        {"--method krylov --vectors /no/such.npy", "/no/such.npy: cannot be opened"},
        {"--method krylov --derivatives 1 --kind tangent", "expected Lanczos modes"},
        {"--derivatives 2", "modes.derivatives is 2, expected 0 to 1"},
        {"--derivatives 1 --linear 3,2", "\"3,2\" is not a number from 1 to 1000000; expected a number for each order"},
        {"--derivatives 1 --linear some", "\"some\" is not a number from 1 to 1000000"},
        {"--derivatives 1 --linear 0", "\"0\" is not a number from 1 to 1000000"},
        {"--method krylov --derivatives 3 --linear 4,2,3", "\"3\" is not a number from 1 to 2"},
        {"--method krylov --derivatives 3 --linear 200", // more than any machine has: 2.6 TB
         "808040300 linear modes and derivatives up to order 3 of 396 degrees of freedom take"},
        {"--method krylov --derivatives 3 --linear 350", "derivatives of order 3 take"},
        {"--derivatives 1 --condense random", "expected pca, randomized or projection"},
        {"--derivatives 1 --condense projection --energy 0.9", "a random projection has no singular values"},
        {"--derivatives 1 --condense randomized --metric lumped", "only PCA can use the lumped mass"},
        {"--derivatives 1 --metric heavy", "--metric is \"heavy\", expected mass or lumped"},
        {"--inverse lu", "expected automatic, factor or amg"},
        {"--write modes.txt", "expected a name that ends in .vtu, .npy, .mtx or .basis"},
        {"--rotations modes.basis", "expected a name that ends in .vtu, .npy or .mtx"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(limber("modes '%s' -n 3 -q %s", beam, cases[i].options), 2);
        assert_says(result.err, cases[i].message);
        assert_string_equal(result.out, "");
    }
    double      A[6] = {1, 2, 3, 4, 5, 6};
    const char *path = test_temporary("short.npy");
    assert_ok(fem_matrix_write(path, 3, 2, A));
    assert_int_equal(limber("modes '%s' -n 3 -q --method krylov --vectors '%s'", beam, path), 2);
    assert_says(result.err, "short.npy has 3 rows, expected 396");
    static const char *const loads[2] = {"# none\n\n", "x1:0,0,1\nx1:0,0,1  2:0,0,one\n"};
    static const char *const messages[2] = {"loads.txt: the file holds no load",
                                            "loads.txt:2: a load is \"2:0,0,one\""};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(limber("modes '%s' -n 3 -q --method sketch --fix set:x0 --loads '%s'", beam,
                                test_write("loads.txt", loads[i])),
                         2);
        assert_says(result.err, messages[i]);
    }
}

// The lowest frequency of the held bar, whichever way: Ritz values lie above it and near it; that of a random
// projection of very many candidates is the worst.
static void test_ways(void **state) {
    (void)state;
    static const struct {
        const char *options;
        double      above; // of the lowest eigenvalue, relative: at most
    } ways[] = {
        {"", 1e-4},
        {"--method krylov", 1e-4},
        {"--method krylov --inverse amg --tolerance 1e-6", 1e-4},
        {"--method krylov --seeds y,z,rx", 1e-4},
        {"--method krylov --seeds quadratic --fields 3 --random 7", 1e-4},
        {"--method krylov --orthogonalise mgs", 1e-4},
        {"--method krylov --orthogonalise rmgs --threshold 0.01 --samples 60", 1e-4},
        {"--method krylov --interface x1 --interface-seeds 4", 1e-4},
        {"--method krylov --interface x1:3 --interface y1:0.5 --interface-seeds 4 --interface-norm energy", 1e-4},
        {"--derivatives 1 --linear 5", 1e-3},
        {"--derivatives 1 --linear 5 --kind tangent --condense randomized", 1e-3},
        {"--derivatives 1 --linear 6 --metric lumped", 1e-3},
        {"--derivatives 1 --linear 6 --scaling rayleigh", 1e-3},
        {"--derivatives 1 --linear 6 --scaling unit", INFINITY}, // many derivatives that look alike outvote the mode
        {"--derivatives 1 --linear 6 --scaling none", INFINITY},
        {"--method krylov --derivatives 3 --linear 3 --condense projection", 0.5},
        {"--method krylov --derivatives 3 --linear 6,4,2", 0.05},
        {"--method krylov --derivatives 2 --linear 4 --energy 0.9999", 0.05},
    };
    double exact = 0;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        assert_int_equal(limber("modes '%s' -n 9 -q --fix set:x0 --json %s", beam, ways[i].options), 0);
        cJSON       *json = parse_output();
        const cJSON *basis = part(json, "basis");
        double       lowest = item(json, "eigenvalues", 0);
        int          modes = (int)number(basis, "modes");
        if (i == 0) exact = lowest;
        printf("  %-66s %d modes, omega_1^2 / exact - 1 = %.1e\n", ways[i].options, modes, lowest / exact - 1);
        assert_true(strstr(ways[i].options, "--energy") ? modes >= 1 && modes < 9 : modes == 9);
        assert_true(lowest > exact * (1 - 1e-9) && lowest < exact * (1 + ways[i].above));
        assert_true(number(basis, "orthogonality") < (strstr(ways[i].options, "mgs") ? 1e-6 : 1e-12));
        if (strstr(ways[i].options, "krylov")) assert_true(number(part(json, "seconds"), "solve") >= 0);
        if (strstr(ways[i].options, "krylov")) assert_true(number(part(basis, "krylov"), "solves") > 0);
        if (strstr(ways[i].options, "samples")) assert_true(number(part(basis, "krylov"), "samples") >= 60);
        if (strstr(ways[i].options, "seeds 4")) assert_true(number(part(basis, "krylov"), "interface_responses") == 4);
        if (strstr(ways[i].options, "derivatives")) assert_true(number(part(json, "seconds"), "right_sides") >= 0);
        // 6 modes, 6*7/2 pairs, 4 modes on 4*5/2 of these, 2 modes on the 2*(2*3/2) of second order that they make
        if (strstr(ways[i].options, "6,4,2")) assert_true(number(basis, "candidates") == 6 + 21 + 40 + 12);
        if (strstr(ways[i].options, "amg")) assert_true(number(part(basis, "inverse"), "iterations") > 1);
        assert_true(number(basis, "peak_bytes") > 1e6);
        cJSON_Delete(json);
    }
    // free, both borders
    for (int border = 0; border < 2; border++) {
        assert_int_equal(
            limber("modes '%s' -n 24 -q --json --method krylov --border %s", beam, border ? "plain" : "mass"), 0);
        cJSON *json = parse_output();
        assert_true(number(part(json, "basis"), "rigid_motions") == 6 && item(json, "eigenvalues", 0) > 10);
        cJSON_Delete(json);
    }
}

// Modes that were written serve as seeds: with three exact ones nothing but these can come out. The files hold what the
// report says, the rotation fields are those of the library, and a sketch reads its loads from a file.
static void test_files(void **state) {
    (void)state;
    char npy[512], mtx[512], rotations[512], prefix[512], path[600];
    snprintf(npy, sizeof npy, "%s", test_temporary("modes.npy"));
    snprintf(mtx, sizeof mtx, "%s", test_temporary("modes.mtx"));
    snprintf(rotations, sizeof rotations, "%s", test_temporary("rotations.npy"));
    snprintf(prefix, sizeof prefix, "%s", test_temporary("beam"));
    assert_int_equal(limber("modes '%s' -n 3 -q --fix set:x0 --json --write '%s' --write '%s' --rotations '%s' "
                            "--matrices '%s'",
                            beam, npy, mtx, rotations, prefix),
                     0);
    cJSON *exact = parse_output(), *json;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            limber("modes '%s' -n 3 -q --fix set:x0 --json --method krylov --vectors '%s'", beam, i ? mtx : npy), 0);
        json = parse_output();
        for (int j = 0; j < 3; j++)
            assert_true(fabs(item(json, "eigenvalues", j) / item(exact, "eigenvalues", j) - 1) < 1e-9);
        cJSON_Delete(json);
        assert_int_equal(limber("modes '%s' -n 4 -q --fix set:x0 --method krylov --vectors '%s'", beam, i ? mtx : npy),
                         2);
        assert_says(result.err, "has only 3 dimensions");
    }
    fem_mesh    mesh = {0};
    modes_basis basis = {.r = 3};
    modes_warp  warp = {0};
    int         rows = 0, columns = 0;
    double     *Psi = NULL;
    assert_ok(fem_mesh_read(&mesh, beam));
    assert_ok(fem_matrix_read(npy, &basis.n, &columns, &basis.U));
    assert_ok(fem_matrix_read(rotations, &rows, &columns, &Psi));
    assert_true(basis.n == 396 && rows == 396 && columns == 3);
    assert_ok(modes_warp_create(&warp, &mesh, &basis));
    assert_memory_equal(Psi, warp.Psi, 396 * 3 * sizeof *Psi);
    static const char *const endings[] = {"_K.mtx", "_M.mtx", "_dofs.csv"};
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s%s", prefix, endings[i]);
        char  *text = NULL;
        size_t size = 0;
        assert_ok(fem_file_read(&text, &size, path));
        assert_says(text, i < 2 ? "\n396 396 " : "\n396,132,z,0,2,");
        fem_free(text);
    }
    modes_warp_destroy(&warp);
    fem_free(Psi), fem_free(basis.U);
    fem_mesh_destroy(&mesh);
    cJSON_Delete(exact);

    assert_int_equal(
        limber("modes '%s' -n 3 -q --fix set:x0 --method sketch --loads '%s' --load 132:0,9,0 --json", beam,
               test_write("loads.txt", "# bends\nx1:0,0,-5\nx1:0,0,-10  132:0,1,0 # both\n\nx1:0,0,-10.001 "
                                       "132:0,1,0\n")),
        0);
    json = parse_output();
    assert_true(number(part(json, "basis"), "candidates") == 3); // the third load gives the second shape again
    assert_true(number(part(json, "basis"), "energy_kept") > 1 - 1e-12);
    cJSON_Delete(json);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_bodies),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_ways),
        cmocka_unit_test(test_files),
    };
    make_beam();
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
