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

// A region that fills a slot of another owns no vertex, so that it is rigid: this is said, unless it was asked for, and
// modes for it are refused. Its stiffness still braces its parent, so that frequencies are those of the whole body.
static void test_held(void **unused) {
    (void)unused;
    enum { COUNT = 4 };
    const char *const pieces = "parts.gate.mesh={\"pieces\":{\"voxel\":0.1,\"shapes\":["
                               "{\"name\":\"plug\",\"box\":[[1.4,0,0.2],[1.5,0.2,0.3]]},"
                               "{\"name\":\"left\",\"box\":[[0,0,0],[1,0.2,0.3]]},"
                               "{\"name\":\"top\",\"box\":[[1,0,0],[2,0.2,0.3]]}]}}";
    const char *const plain = "objects.0.decompose={\"method\":\"regions\",\"total\":80}";
    const char *const meant = "objects.0.decompose={\"method\":\"regions\",\"total\":80,"
                              "\"domains\":{\"plug\":{\"modes\":0}}}";
    const char *const asked = "objects.0.decompose={\"method\":\"regions\",\"total\":80,"
                              "\"domains\":{\"plug\":{\"modes\":1}}}";
    const char *const all = "objects.0.decompose={\"method\":\"regions\",\"modes\":24}";
    const char *const fixed = "parts.gate.fixed=\"x0\"";
    scene_frequencies found[2] = {0}, truth = {0};
    for (int k = 0; k < 2; k++) {
        const char *const chosen[] = {pieces, fixed, k == 0 ? plain : meant};
        char              text[SCENE_CUT_TEXT];
        scene            *s = load("gate", 3, chosen);
        assert_int_equal(s->tree.domains.count, 3);
        assert_ok(scene_find_frequencies(s, COUNT, NULL, &found[k]));
        assert_true(scene_held_text(s, text) == (k == 0));
        scene_destroy(s);
    }
    assert_non_null(strstr(found[0].notes, "\"plug\": all vertices lie on the interface to the parent"));
    assert_true(!found[1].notes || !strstr(found[1].notes, "all vertices lie"));
    const char *const whole[] = {pieces, fixed, "solver.method=full", "objects=[{\"part\":\"gate\"}]"};
    scene            *full = load("gate", 4, whole);
    assert_ok(scene_find_frequencies(full, COUNT, NULL, &truth));
    printf("   with a rigid plug over full FEM:");
    for (int k = 0; k < COUNT; k++) {
        double ratio = sqrt(found[0].eigenvalues[k] / truth.eigenvalues[k]);
        printf(" %.4f", ratio);
        assert_true(fabs(ratio - 1) < 0.01);
        assert_true(found[0].eigenvalues[k] == found[1].eigenvalues[k]);
    }
    printf("\n");
    for (int k = 0; k < 2; k++) {
        const char *const chosen[] = {pieces, fixed, k == 0 ? asked : all};
        scene            *refused = NULL;
        assert_fails(scene_load(&refused, "scenes/gate.json", 3, chosen), FEM_BAD_INPUT,
                     "lie on the interface to its parent; 0 modes for it would do");
    }
    for (int k = 0; k < 2; k++) scene_frequencies_destroy(&found[k]);
    scene_frequencies_destroy(&truth);
    scene_destroy(full);
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

// The sway of the tip along x less that of the base, in `count` frames of a mast of four domains, or of the full mesh.
static void shake(bool full, int count, double *sway) {
    const char *const mast[] = {
        "parts.mast.mesh={\"box\":{\"element\":\"hex\",\"high\":[0.2,0.2,2],\"cells\":[2,2,16]}}",
        "environment={}",
        "actions=[{\"move\":{\"keyframes\":[{\"time\":1,\"translation\":[0.25,0,0]},{\"time\":2},{\"time\":3,"
        "\"translation\":[0.15,0.1,0],\"rotation\":[0,0,0.3]}],\"interpolation\":\"smooth\"},\"on\":\"z0\"}]",
        full ? "solver={\"method\":\"full\",\"step\":0.02}"
             : "solver={\"method\":\"reduced\",\"step\":0.02,\"damping\":{\"stiffness\":0}}",
        full ? "objects=[{\"part\":\"mast\"}]"
             : "objects=[{\"part\":\"mast\",\"decompose\":{\"count\":4,\"modes\":24}}]",
        "output={\"frames\":801,\"rate\":50,\"formats\":[],\"probes\":{\"tip\":\"z1\",\"root\":\"z0\"}}"};
    scene       *s = load("mast", 6, mast);
    scene_result r = {0};
    char         path[300];
    assert_ok(scene_run(s, test_temporary("shake"), count, NULL, &r));
    assert_true(full || r.domains == 4);
    snprintf(path, sizeof path, "%s/probes.csv", test_temporary("shake"));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*[^\n]"), 0);
    for (int k = 0; k < count; k++) {
        double tip, root;
        assert_int_equal(fscanf(file, "%*f,%lf,%*f,%*f,%lf,%*f,%*f", &tip, &root), 2);
        sway[k] = tip - root;
    }
    fclose(file);
    scene_result_destroy(&r);
    scene_destroy(s);
}

// Of the swings from frame `from` on, 50 frames a second.
static double swing_frequency(int from, int count, const double *sway) {
    double first = 0, last = 0;
    int    found = 0;
    for (int k = from; k + 1 < count; k++) {
        if (!(sway[k] * sway[k + 1] < 0)) continue;
        last = k + sway[k] / (sway[k] - sway[k + 1]);
        if (found++ == 0) first = last;
    }
    return found > 1 ? 50 * (found - 1) / (2 * (last - first)) : 0;
}

// Without damping, a base that shakes and turns for three seconds gives the tree the motion that it gives the full
// mesh, and so the energy: for five periods more the mast swings as far, and as fast.
static void test_shaken(void **unused) {
    (void)unused;
    enum { COUNT = 801, STILL = 160 };
    static double full[COUNT], tree[COUNT];
    shake(true, COUNT, full);
    shake(false, COUNT, tree);
    double largest = 0, square = 0;
    for (int k = 0; k < COUNT; k++) largest = fmax(largest, fabs(full[k])), square += pow(tree[k] - full[k], 2);
    double frequency = swing_frequency(STILL, COUNT, full), error = swing_frequency(STILL, COUNT, tree) / frequency - 1;
    double rms = sqrt(square / COUNT) / largest;
    printf("   shaken, undamped: swings of %.3f m, %.4f Hz; frequency off by %.2f%%, RMS %.1f%%\n", largest, frequency,
           100 * error, 100 * rms);
    assert_true(largest > 0.5 && fabs(error) < 0.01 && rms < 0.05);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scenes),     cmocka_unit_test(test_frequencies),
                                       cmocka_unit_test(test_poor_model), cmocka_unit_test(test_one_domain),
                                       cmocka_unit_test(test_held),       cmocka_unit_test(test_roots),
                                       cmocka_unit_test(test_shaken)};
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
