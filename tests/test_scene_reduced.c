// Reduced bodies in scenes: they follow the full model, their classes are cached and never trusted blindly, and what
// goes wrong is said.
#include "tests/support.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const BEAM =
    "{\"limber\": 1,"
    " \"materials\": {\"rubber\": {\"density\": 1000, \"young\": 1e6, \"poisson\": 0.4},"
    "                 \"soft\": {\"density\": 1200, \"young\": 4e5, \"poisson\": 0.3}},"
    " \"parts\": {\"beam\": {\"mesh\": {\"box\": {\"element\": \"tet\", \"high\": [0.6, 0.1, 0.06], \"cells\": [12, 2, "
    "2]}},"
    "             \"material\": \"rubber\", \"fixed\": \"x0\", \"modes\": {\"count\": 20, \"linear\": 8}}},"
    " \"objects\": [{\"part\": \"beam\"}], \"environment\": {\"gravity\": [0, 0, -9.81]},"
    " \"solver\": {\"method\": \"reduced\", \"step\": 0.005, \"newton\": {\"iterations\": 5, \"tolerance\": 1e-6}},"
    " \"output\": {\"frames\": 21, \"rate\": 50, \"formats\": [\"vtu\"], \"probes\": {\"tip\": \"x1\"}}}";

static scene *load(const char *text, int count, const char *const *overrides) {
    scene *s = NULL;
    assert_ok(scene_load(&s, test_write("reduced.json", text), count, overrides));
    return s;
}

static void run_to(const scene *s, const char *folder, scene_result *result) {
    assert_ok(scene_run(s, test_temporary(folder), 0, NULL, result));
}

// the tip of the reduced beam is where the full one's is, for both kinds of modes; the full model is another program
// path
static void test_follows_full(void **state) {
    (void)state;
    const char *const full[] = {"solver.method=full", "solver.newton={}"}, *const lanczos[] = {
                                                                               "parts.beam.modes.method=lanczos"};
    scene       *s[3] = {load(BEAM, 2, full), load(BEAM, 0, NULL), load(BEAM, 1, lanczos)};
    scene_result r[3] = {0};
    for (int i = 0; i < 3; i++) run_to(s[i], "full", &r[i]);
    double size = vec3_norm(r[0].probes);
    assert_true(size > 0.1); // bent by a sixth of its length
    for (int i = 1; i < 3; i++) {
        double error = vec3_distance(r[i].probes, r[0].probes) / size;
        printf("%d modes: the tip is %.2g%% away from the full model's, %.3g m\n", r[i].modes, 100 * error, size);
        assert_true(error < 0.02 && error > 1e-9);
    }
    for (int i = 0; i < 3; i++) scene_result_destroy(&r[i]), scene_destroy(s[i]);
}

// polynomial forces are the sum over all elements: the same motion to rounding
static void test_polynomial_is_exact(void **state) {
    (void)state;
    const char *const elements[] = {"parts.beam.forces.type=full"};
    scene            *a = load(BEAM, 0, NULL), *b = load(BEAM, 1, elements);
    scene_result      ra = {0}, rb = {0};
    run_to(a, "a", &ra);
    run_to(b, "b", &rb);
    double error = vec3_distance(ra.probes, rb.probes) / vec3_norm(rb.probes);
    printf("polynomial against all elements: %.1e\n", error);
    assert_true(error < 1e-7);
    scene_result_destroy(&ra), scene_result_destroy(&rb), scene_destroy(a), scene_destroy(b);
}

// a change of material at time 0 is the same as having begun with it, in the same basis
static void test_material_change(void **state) {
    (void)state;
    char basis[512], file[600];
    snprintf(basis, sizeof basis, "%s", test_temporary("shared.basis"));
    scene *made = load(BEAM, 0, NULL);
    // a basis that does not depend on the material of the scene
    {
        const scene_part *part = &made->parts[0];
        fem_body         *body = NULL;
        fem_sparse        K = {0}, M = {0};
        unsigned char    *fixed = fem_calloc(3 * (size_t)part->mesh.vertex_count, 1);
        double           *u = fem_calloc(3 * (size_t)part->mesh.vertex_count, sizeof *u);
        modes_basis       U = {0};
        for (int i = 0; i < part->fixed.count; i++) memset(fixed + 3 * part->fixed.items[i], 1, 3);
        assert_ok(fem_body_create(&body, &part->mesh, &(fem_body_options){.quadrature = 2}));
        assert_ok(fem_body_matrix(body, &K));
        assert_ok(fem_body_matrix(body, &M));
        fem_body_evaluate(body, u, NULL, NULL, &K);
        fem_body_mass(body, FEM_MASS_CONSISTENT, &M);
        modes_problem problem = {.mesh = &part->mesh, .K = &K, .M = &M, .fixed = fixed};
        assert_ok(modes_build(&problem, body, &part->modes.recipe, NULL, NULL, &U, NULL));
        assert_ok(modes_basis_write(&U, (fem_hash){0}, basis));
        modes_basis_destroy(&U), fem_sparse_destroy(&K), fem_sparse_destroy(&M), fem_body_destroy(body);
        fem_free(fixed), fem_free(u);
    }
    snprintf(file, sizeof file, "parts.beam.modes={\"method\": \"file\", \"file\": \"%s\", \"count\": 20}", basis);
    const char *const changed[] = {file, "actions=[{\"material\": \"soft\", \"start\": 0}]"};
    const char *const begun[] = {file, "parts.beam.material=soft"};
    scene            *a = load(BEAM, 2, changed), *b = load(BEAM, 2, begun), *c = load(BEAM, 1, changed);
    scene_result      ra = {0}, rb = {0}, rc = {0};
    run_to(a, "a", &ra), run_to(b, "b", &rb), run_to(c, "c", &rc);
    double error = vec3_distance(ra.probes, rb.probes) / vec3_norm(rb.probes);
    double effect = vec3_distance(rc.probes, rb.probes) / vec3_norm(rb.probes);
    printf("changed at run time against from the start: %.1e (the material makes %.2g)\n", error, effect);
    assert_true(error < 1e-8 && effect > 0.1);
    // a change to what it is already changes nothing, with the lumped mass either
    const char *const same[] = {file, "solver.mass=lumped", "actions=[{\"material\": \"rubber\", \"start\": 0.1}]"};
    scene            *e = load(BEAM, 3, same), *f = load(BEAM, 2, same);
    scene_result      re = {0}, rf = {0};
    run_to(e, "e", &re), run_to(f, "f", &rf);
    double drift = vec3_distance(re.probes, rf.probes) / vec3_norm(rf.probes);
    double lumped = vec3_distance(rf.probes, rc.probes) / vec3_norm(rf.probes);
    printf("lumped mass, the same material again: %.1e (lumping makes %.1e)\n", drift, lumped);
    assert_true(drift < 1e-12 && lumped > 1e-4);
    scene_result_destroy(&re), scene_result_destroy(&rf), scene_destroy(e), scene_destroy(f);
    // the class of a basis from a file is kept too, and is another one when the file holds something else
    bool         cached[3];
    modes_basis  other = {0};
    scene_result kept = {0};
    assert_ok(scene_set_cache(c, test_temporary("cache-of-file")));
    for (int i = 0; i < 3; i++) {
        if (i == 2) {
            assert_ok(modes_basis_read(&other, NULL, basis));
            for (int k = 0; k < other.n; k++) other.U[k] *= -1;
            assert_ok(modes_basis_write(&other, (fem_hash){0}, basis));
            modes_basis_destroy(&other);
        }
        assert_ok(scene_precompute(c, NULL, &kept));
        assert_true(kept.kept);
        cached[i] = kept.cached;
        scene_result_destroy(&kept);
    }
    assert_true(!cached[0] && cached[1] && !cached[2]);
    // more modes than the file has
    char wide[700];
    snprintf(wide, sizeof wide, "parts.beam.modes={\"method\": \"file\", \"file\": \"%s\", \"count\": 21}", basis);
    const char *const too_many[] = {wide};
    scene            *d = load(BEAM, 1, too_many);
    assert_fails(scene_run(d, test_temporary("d"), 0, NULL, NULL), FEM_BAD_INPUT,
                 "holds 20 modes, but 21 were asked for");
    printf("%s\n", fem_message());
    scene_result_destroy(&ra), scene_result_destroy(&rb), scene_result_destroy(&rc);
    scene_destroy(a), scene_destroy(b), scene_destroy(c), scene_destroy(d), scene_destroy(made);
}

// the body takes the shape of a sketched load as statics has it
static void test_sketch(void **state) {
    (void)state;
    const char *const modes = "parts.beam.modes={\"method\": \"sketch\", \"count\": 3, \"sketch\": ["
                              "{\"force\": [0, 0, -3], \"on\": \"x1\"}, {\"force\": [0, 0, -6], \"on\": \"x1\"},"
                              "{\"force\": [0, 4, 0], \"on\": \"x1\"}]}";
    const char *const load_6 = "actions=[{\"force\": [0, 0, -6], \"on\": \"x1\"}]";
    const char *const reduced[] = {modes, load_6, "environment={}", "solver.damping={\"mass\": 20}",
                                   "output.frames=101"};
    const char *const full[] = {load_6, "environment={}", "solver={\"method\": \"static\"}"};
    scene            *a = load(BEAM, 5, reduced), *b = load(BEAM, 3, full);
    scene_result      ra = {0}, rb = {0};
    run_to(a, "a", &ra), run_to(b, "b", &rb);
    double error = vec3_distance(ra.probes, rb.probes) / vec3_norm(rb.probes);
    printf("%d sketched modes: %.2g%% away from the static shape, %.3g m\n", ra.modes, 100 * error,
           vec3_norm(rb.probes));
    assert_true(vec3_norm(rb.probes) > 0.05 && error < 0.001);
    scene_result_destroy(&ra), scene_result_destroy(&rb), scene_destroy(a), scene_destroy(b);
}

// a free ball falls on the ground, stays there at a depth that carries its weight
static void test_free_fall(void **state) {
    (void)state;
    const char *const text =
        "{\"limber\": 1, \"materials\": {\"rubber\": {\"density\": 1000, \"young\": 2e5, \"poisson\": 0.4}},"
        " \"parts\": {\"ball\": {\"mesh\": {\"sphere\": {\"radius\": 0.1, \"cells\": 6, \"element\": \"tet\"}}, "
        "\"material\": \"rubber\","
        "             \"modes\": {\"count\": 12, \"linear\": 6}}},"
        " \"objects\": [{\"part\": \"ball\", \"translation\": [0, 0, 0.3], \"rotation\": [0.3, 0, 0], \"velocity\": "
        "[0.2, 0, 0], \"spin\": [0, 2, 0]}],"
        " \"environment\": {\"gravity\": [0, 0, -9.81], \"obstacles\": [{\"plane\": {\"point\": [0, 0, 0], \"normal\": "
        "[0, 0, 1]}}],"
        "   \"contact\": {\"stiffness\": 3e6, \"damping\": 3e4, \"friction\": 0.5}},"
        " \"solver\": {\"method\": \"reduced\", \"step\": 0.001, \"damping\": {\"mass\": 2, \"stiffness\": 0.001}},"
        " \"output\": {\"frames\": 4, \"rate\": 50, \"probes\": {\"middle\": {\"nearest\": [0, 0, 0]}}}}";
    const char *const longer[] = {"output.frames=101"};
    scene            *s = load(text, 0, NULL), *t = load(text, 1, longer);
    scene_result      r = {0};
    run_to(s, "fall", &r);
    double time = r.time, fallen = 0.3 - 0.5 * 9.81 * time * time; // not there yet
    printf("after %.2f s at z = %.6f, free fall %.6f\n", time, r.probes[2], fallen);
    assert_true(fabs(r.probes[2] - fallen) < 2e-4 && fabs(r.probes[0] - 0.2 * time) < 1e-3);
    scene_result_destroy(&r);
    run_to(t, "rest", &r);
    printf("after 2 s at z = %.4f with %ld contacts, depth %.2g m, kinetic energy %.1e J\n", r.probes[2],
           r.contact.total_contacts, r.contact.depth, r.energies.kinetic);
    assert_true(r.probes[2] > 0.07 && r.probes[2] < 0.1 && r.contact.contacts > 0 && r.contact.depth < 0.02);
    scene_result_destroy(&r);
    scene_destroy(s), scene_destroy(t);
}

// ---- the cache -------------------------------------------------------------------------------------------------

static void find_class_file(const char *folder, char path[600]) {
    DIR *open = opendir(folder);
    assert_non_null(open);
    path[0] = 0;
    for (struct dirent *entry; (entry = readdir(open));)
        if (strstr(entry->d_name, ".class")) {
            assert_int_equal(path[0], 0);
            snprintf(path, 600, "%s/%s", folder, entry->d_name);
        }
    closedir(open);
    assert_true(path[0] != 0);
}

static void spoil(const char *path, size_t at, int how) {
    char  *bytes = NULL;
    size_t size = 0;
    assert_ok(fem_file_read(&bytes, &size, path));
    if (how == 0) bytes[at % size] = (char)(bytes[at % size] ^ 4);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fwrite(bytes, 1, how == 1 ? at % size : size, file);
    fclose(file);
    fem_free(bytes);
}

static void test_cache(void **state) {
    (void)state;
    const char  *folder = test_temporary("deep/cache");
    char         path[600], *whole = NULL, *again = NULL;
    size_t       size = 0, other = 0;
    scene       *s = load(BEAM, 0, NULL);
    scene_result r = {0}, first = {0};
    mkdir(test_temporary("deep"), 0777);
    assert_ok(scene_set_cache(s, folder));
    assert_ok(scene_precompute(s, NULL, &r));
    assert_false(r.cached);
    scene_result_destroy(&r);
    find_class_file(folder, path);
    assert_ok(fem_file_read(&whole, &size, path));
    run_to(s, "first", &first);
    assert_true(first.cached);
    // damaged in many ways: said, computed again, and the same result
    uint64_t random = 11;
    for (int i = 0; i < 12; i++) {
        spoil(path, (size_t)(1e9 * (1 + test_random(&random))), i % 2);
        run_to(s, "damaged", &r);
        assert_false(r.cached);
        assert_non_null(r.notes);
        assert_non_null(strstr(r.notes, "it is computed again"));
        assert_true(vec3_distance(r.probes, first.probes) == 0);
        if (i < 2) printf("%s", r.notes);
        scene_result_destroy(&r);
        assert_ok(fem_file_read(&again, &other, path));
        assert_int_equal(size, other);
        assert_memory_equal(whole, again, size);
        fem_free(again);
    }
    // another scene's file under this one's name
    const char *const wide[] = {"parts.beam.modes.count=12"};
    scene            *t = load(BEAM, 1, wide);
    char              foreign[600];
    assert_ok(scene_set_cache(t, test_temporary("other")));
    assert_ok(scene_precompute(t, NULL, &r));
    scene_result_destroy(&r);
    find_class_file(test_temporary("other"), foreign);
    assert_int_equal(rename(foreign, path), 0);
    run_to(s, "foreign", &r);
    assert_false(r.cached);
    assert_non_null(strstr(r.notes, "is the class of something else"));
    scene_result_destroy(&r);
    // a folder that cannot be made is said, and done without
    FILE *file = fopen(test_temporary("a_file"), "wb");
    fclose(file);
    assert_ok(scene_set_cache(s, test_temporary("a_file/cache")));
    run_to(s, "without", &r);
    assert_non_null(strstr(r.notes, "cannot be made"));
    printf("%s", r.notes);
    assert_true(vec3_distance(r.probes, first.probes) == 0);
    scene_result_destroy(&r), scene_result_destroy(&first);
    scene_destroy(s), scene_destroy(t);
    fem_free(whole);
}

// what determines a class changes its file, what does not leaves it
static void test_cache_key(void **state) {
    (void)state;
    const char *const other[] = {"parts.beam.modes.count=19",   "parts.beam.modes.linear=7",
                                 "parts.beam.material=soft",    "parts.beam.fixed=x1",
                                 "solver.mass=lumped",          "parts.beam.modes.condense=randomized",
                                 "parts.beam.modes.energy=0.9", "parts.beam.forces.type=linear"};
    const char *const same[] = {"solver.step=0.001", "environment.gravity=[0, 0, 0]", "output.frames=3"};
    scene            *s = load(BEAM, 0, NULL);
    scene_result      r = {0};
    assert_ok(scene_set_cache(s, test_temporary("keys")));
    assert_ok(scene_precompute(s, NULL, &r));
    scene_destroy(s);
    for (size_t i = 0; i < sizeof other / sizeof *other + sizeof same / sizeof *same; i++) {
        size_t            changes = sizeof other / sizeof *other;
        const char *const override[] = {i < changes ? other[i] : same[i - changes]};
        s = load(BEAM, 1, override);
        assert_ok(scene_set_cache(s, test_temporary("keys")));
        assert_ok(scene_precompute(s, NULL, &r));
        assert_true(r.cached == (i >= changes));
        scene_destroy(s);
    }
}

// ---- trouble ---------------------------------------------------------------------------------------------------

// a body that is bent by two thirds of its length takes steps of a millisecond, one iteration each, as it does shorter
// ones: where the stiffness of rest guesses badly, the guess is another or the iterations are more
static void test_bent_far(void **state) {
    (void)state;
    const char *const steps[] = {"solver.step=0.001", "solver.step=0.00025"};
    double            tip[2];
    for (int i = 0; i < 2; i++) {
        const char *const overrides[] = {steps[i], "output.formats=[]", "output.frames=61"};
        scene            *s = NULL;
        scene_result      result = {0};
        assert_ok(scene_load(&s, "scenes/spoon.json", 3, overrides));
        assert_ok(scene_run(s, test_temporary("bent"), 0, NULL, &result));
        assert_true(result.max_displacement > 0.2);
        tip[i] = result.probes[2];
        scene_result_destroy(&result);
        scene_destroy(s);
    }
    printf("after one second the tip is at %.4f m, with steps of a quarter at %.4f m\n", tip[0], tip[1]);
    assert_true(fabs(tip[0] - tip[1]) < 0.05 * 1.67); // of how far it swings
}

// a motion that diverges ends with its time and what to change, and the frames before stay
static void test_divergence(void **state) {
    (void)state;
    const char *const wild[] = {"solver.integrator=newmark", "solver.newton={\"iterations\": 1}", "solver.step=0.02",
                                "actions=[{\"force\": [3e11, 2e11, 1e11], \"on\": \"x1\", \"start\": 0.1}]",
                                "output.frames=100"};
    scene            *s = load(BEAM, 5, wild);
    scene_result      r = {0};
    fem_status        status = scene_run(s, test_temporary("wild"), 0, NULL, &r);
    printf("%s\n", fem_message());
    assert_true(status == FEM_UNSTABLE || status == FEM_NO_CONVERGENCE);
    assert_true(r.frames >= 5 && r.frames < 100);
    assert_non_null(strstr(fem_message(), "step"));
    scene_result_destroy(&r);
    scene_destroy(s);
    const char *const explicit[] = {"solver.integrator=central", "solver.newton={}", "solver.step=0.02"};
    s = load(BEAM, 3, explicit);
    assert_fails(scene_run(s, test_temporary("explicit"), 0, NULL, &r), FEM_BAD_INPUT, "step");
    printf("%s\n", fem_message());
    scene_result_destroy(&r);
    scene_destroy(s);
}

static void test_memory(void **state) {
    (void)state;
    const char *const small[] = {
        "parts.beam.mesh={\"box\": {\"high\": [0.6, 0.1, 0.06], \"cells\": [3, 1, 1]}}",
        "parts.beam.modes={\"count\": 4, \"linear\": 2}", "output.frames=2", "output.formats=[]",
        "environment.obstacles=[{\"plane\": {\"point\": [0, 0, -0.01], \"normal\": [0, 0, 1]}}]"};
    scene       *s = load(BEAM, 5, small);
    scene_result r = {0};
    int          failures = 0;
    assert_ok(scene_set_cache(s, test_temporary("memory_cache")));
    for (long allowed = 0;; allowed++) {
        fem_memory_fail_after(allowed);
        fem_status status = scene_run(s, test_temporary("memory"), 0, NULL, &r);
        fem_memory_fail_after(-1);
        scene_result_destroy(&r);
        if (status == FEM_OK) break;
        assert_int_equal(status, FEM_NO_MEMORY);
        failures++;
    }
    printf("%d allocations failed\n", failures);
    assert_true(failures > 60);
    scene_destroy(s);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follows_full),    cmocka_unit_test(test_polynomial_is_exact),
        cmocka_unit_test(test_material_change), cmocka_unit_test(test_sketch),
        cmocka_unit_test(test_free_fall),       cmocka_unit_test(test_cache),
        cmocka_unit_test(test_cache_key),       cmocka_unit_test(test_divergence),
        cmocka_unit_test(test_bent_far),        cmocka_unit_test(test_memory)};
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
