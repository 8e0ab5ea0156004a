// Scenes whose body is cut into domains: they run, keep their classes, shake with their root, and answer for their
// frequencies.
#include "tests/support.h"

#include <math.h>
#include <string.h>

static scene *load(const char *name, int count, const char *const *overrides) {
    char   path[200];
    scene *s = NULL;
    snprintf(path, sizeof path, "scenes/%s.json", name);
    assert_ok(scene_load(&s, path, count, overrides));
    return s;
}

// Every scene with domains, shortened; the second time all classes come from the cache and the result is the same.
static void test_scenes(void **unused) {
    (void)unused;
    const char *const names[] = {"plant", "gate", "links", "mast", "station"};
    for (int i = 0; i < 5; i++) {
        scene       *s = load(names[i], 0, NULL);
        scene_result first = {0}, second = {0};
        assert_true(s->tree.domains.count > 2);
        assert_ok(scene_set_cache(s, test_temporary("cache")));
        assert_ok(scene_run(s, test_temporary("first"), 12, NULL, &first));
        assert_ok(scene_run(s, test_temporary("second"), 12, NULL, &second));
        printf("   %s: %d domains, %d modes, largest displacement %.4f m, %d classes from the cache\n", names[i],
               first.domains, first.modes, first.max_displacement, second.cached_domains);
        assert_int_equal(first.frames, 12);
        assert_true(first.max_displacement > 1e-4 && isfinite(first.max_displacement));
        assert_true(first.max_displacement == second.max_displacement);
        assert_true(!first.cached && second.cached && second.cached_domains > 0);
        scene_result_destroy(&first);
        scene_result_destroy(&second);
        scene_destroy(s);
    }
}

// Frequencies of the coupled model against those of the full mesh of the same scene.
static void test_frequencies(void **unused) {
    (void)unused;
    const char *const full[] = {"solver.method=full", "objects=[{\"part\":\"mast\"}]", "actions=[]"};
    scene            *s = load("mast", 0, NULL), *whole = load("mast", 3, full);
    scene_frequencies tree = {0}, truth = {0};
    assert_ok(scene_find_frequencies(s, 6, NULL, &tree));
    assert_ok(scene_find_frequencies(whole, 6, NULL, &truth));
    printf("   mast of %d domains over full FEM:", tree.domains);
    for (int k = 0; k < 6; k++) printf(" %.4f", sqrt(tree.eigenvalues[k] / truth.eigenvalues[k]));
    printf("\n");
    for (int k = 0; k < 6; k++) assert_true(fabs(sqrt(tree.eigenvalues[k] / truth.eigenvalues[k]) - 1) < 0.01);
    assert_true(fabs(tree.mass / truth.mass - 1) < 1e-12 && tree.free_dofs == truth.free_dofs);
    assert_fails(scene_find_frequencies(s, 100000, NULL, &tree), FEM_BAD_INPUT, "degrees of freedom");
    scene_frequencies_destroy(&tree);
    scene_frequencies_destroy(&truth);
    scene_destroy(s);
    scene_destroy(whole);
}

// A model with too few modes says by how much it is off and where: by as much as against the full mesh, from the cache
// too. One that is good says nothing, nor does one that is meant to differ.
static void test_poor_model(void **unused) {
    (void)unused;
    enum { COUNT = 6 };
    const char *const full[] = {"solver.method=full", "objects=[{\"part\":\"mast\"}]", "actions=[]"};
    const char *const few[] = {"objects.0.decompose={\"count\":6,\"modes\":2}"};
    const char *const stiff[] = {"objects.0.decompose={\"count\":6,\"modes\":2,\"domains\":{\"1\":{\"stiffness\":2}}}"};
    scene            *s = load("mast", 1, few), *whole = load("mast", 3, full), *other = load("mast", 1, stiff);
    scene_frequencies poor = {0}, again = {0}, truth = {0}, meant = {0};
    assert_ok(scene_set_cache(s, test_temporary("poor")));
    assert_ok(scene_find_frequencies(s, COUNT, NULL, &poor));
    assert_ok(scene_find_frequencies(s, COUNT, NULL, &again));
    assert_ok(scene_find_frequencies(whole, COUNT + 6, NULL, &truth));
    assert_ok(scene_find_frequencies(other, COUNT, NULL, &meant));
    printf("   %s", poor.notes);
    int         compared, mode;
    double      percent, hz, of_whole;
    const char *note = strstr(poor.notes, "of the lowest");
    assert_non_null(note);
    assert_int_equal(sscanf(note, "of the lowest %d frequencies of the coupled model, number %d is off by %lf%% (%lf",
                            &compared, &mode, &percent, &hz),
                     4);
    assert_int_equal(sscanf(strstr(note, "mesh has "), "mesh has %lf", &of_whole), 1);
    assert_true(mode >= 1 && mode <= compared && compared <= COUNT + 6);
    assert_true(fabs(of_whole / (sqrt(truth.eigenvalues[mode - 1]) / 6.283185307179586) - 1) < 1e-3);
    assert_true(fabs(percent / (100 * (hz / of_whole - 1)) - 1) < 0.06);
    assert_non_null(strstr(note, "more \"modes\" for it (now 2)"));
    assert_string_equal(again.notes, poor.notes);
    assert_null(meant.notes);
    scene_frequencies_destroy(&poor), scene_frequencies_destroy(&again), scene_frequencies_destroy(&truth);
    scene_frequencies_destroy(&meant);
    scene_destroy(s), scene_destroy(whole), scene_destroy(other);
}

// A body of which one domain remains is as good as others.
static void test_one_domain(void **unused) {
    (void)unused;
    enum { COUNT = 8 };
    const char *const one[] = {"objects.0.decompose={\"method\":\"geodesic\",\"count\":5}"};
    const char *const full[] = {"solver.method=full", "objects=[{\"part\":\"gate\"}]"};
    scene            *s = load("gate", 1, one), *whole = load("gate", 2, full);
    scene_frequencies tree = {0}, truth = {0};
    assert_ok(scene_find_frequencies(s, COUNT, NULL, &tree));
    assert_ok(scene_find_frequencies(whole, COUNT, NULL, &truth));
    assert_int_equal(tree.domains, 1);
    printf("   %s   over full FEM:", tree.notes);
    for (int k = 0; k < COUNT; k++) printf(" %.4f", sqrt(tree.eigenvalues[k] / truth.eigenvalues[k]));
    printf("\n");
    for (int k = 0; k < COUNT; k++) assert_true(fabs(sqrt(tree.eigenvalues[k] / truth.eigenvalues[k]) - 1) < 0.01);
    assert_non_null(strstr(tree.notes, "1 of 5 domains remain"));
    assert_null(strstr(tree.notes, "off by"));
    scene_frequencies_destroy(&tree), scene_frequencies_destroy(&truth);
    scene_destroy(s), scene_destroy(whole);
}

// A root that is moved follows its keyframes; a body in free flight falls as it must.
static void test_roots(void **unused) {
    (void)unused;
    const char *const drive[] = {"output.probes={\"root\":\"z0\"}", "output.frames=13"};
    const char *const flight[] = {"environment={\"gravity\":[0,0,-9.81]}", "output.frames=21", "objects.0.spin=[0,0,0]",
                                  "output.probes={\"all\":{\"region\":\"b\"}}"};
    scene            *s = load("mast", 2, drive);
    scene_result      r = {0};
    assert_ok(scene_run(s, test_temporary("drive"), 0, NULL, &r));
    printf("   root at %.6f m after 0.3 s, expected 0.2\n", r.probes[0]);
    assert_true(fabs(r.probes[0] - 0.2) < 1e-6 && fabs(r.probes[2]) < 1e-9);
    scene_result_destroy(&r);
    scene_destroy(s);
    // a first keyframe at time 0 says what is so anyway
    const char *const zero[] = {
        "output.probes={\"root\":\"z0\"}", "output.frames=13",
        "actions=[{\"move\":{\"keyframes\":[{\"time\":0},{\"time\":0.3,\"translation\":[0.2,0,0]}],"
        "\"interpolation\":\"linear\"},\"on\":\"z0\"}]"};
    double tips[2];
    for (int k = 0; k < 2; k++) {
        const char       *without = "actions=[{\"move\":{\"keyframes\":[{\"time\":0.3,\"translation\":[0.2,0,0]}],"
                                    "\"interpolation\":\"linear\"},\"on\":\"z0\"}]";
        const char *const chosen[] = {zero[0], zero[1], k == 0 ? zero[2] : without};
        s = load("mast", 3, chosen);
        assert_ok(scene_run(s, test_temporary("zero"), 0, NULL, &r));
        assert_true(fabs(r.probes[0] - 0.2) < 1e-6);
        tips[k] = r.max_displacement;
        scene_result_destroy(&r);
        scene_destroy(s);
    }
    printf("   largest displacement %.6f m with a keyframe at time 0, %.6f without\n", tips[0], tips[1]);
    assert_true(fabs(tips[0] - tips[1]) < 1e-12);
    s = load("links", 4, flight);
    assert_ok(scene_run(s, test_temporary("flight"), 0, NULL, &r));
    double t = 0.5, z = 1.5 + 2 * t - 0.5 * 9.81 * t * t;
    printf("   free flight: %.6f %.6f m, expected %.6f %.6f\n", r.probes[0], r.probes[2], t, z);
    assert_true(fabs(r.probes[0] - t) < 1e-6 && fabs(r.probes[2] - z) < 1e-6);
    scene_result_destroy(&r);
    scene_destroy(s);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scenes), cmocka_unit_test(test_frequencies),
                                       cmocka_unit_test(test_poor_model), cmocka_unit_test(test_one_domain),
                                       cmocka_unit_test(test_roots)};
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
