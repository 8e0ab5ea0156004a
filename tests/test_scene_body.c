// What acts on bodies of scenes and what is written of them: loads, contact of trees, embedded surfaces, and how runs
// end.
#include "tests/support.h"

#include <math.h>
#include <unistd.h>

static scene *load(const char *path, int count, const char *const *overrides) {
    scene *s = NULL;
    assert_ok(scene_load(&s, path, count, overrides));
    return s;
}

// ---- loads ---------------------------------------------------------------------------------------------------------

// Each kind of load on a tree, run until it rests, against the equilibrium of the full mesh.
static void test_loads(void **unused) {
    (void)unused;
    const char *const loads[] = {
        "{\"force\":[4,2,0],\"on\":\"z1\"}",
        "{\"traction\":[3,6,0],\"on\":{\"halfspace\":{\"point\":[0,0,1],\"normal\":[0,0,1]}}}",
        "{\"pressure\":15,\"on\":\"x0\"}",
        "{\"acceleration\":[0.1,0.08,0],\"on\":{\"halfspace\":{\"point\":[0,0,1.5],\"normal\":[0,0,1]}}}"};
    for (int k = 0; k < 4; k++) {
        char action[300];
        snprintf(action, sizeof action, "actions=[%s]", loads[k]);
        const char *const tree[] = {action, "environment={}", "solver.damping={\"stiffness\":0.5}", "solver.step=0.02",
                                    "output={\"frames\":16,\"rate\":1,\"probes\":{\"tip\":\"z1\"}}"};
        const char *const full[] = {action, "environment={}", "solver={\"method\":\"static\"}",
                                    "objects=[{\"part\":\"mast\"}]", "output={\"probes\":{\"tip\":\"z1\"}}"};
        scene            *s = load("scenes/mast.json", 5, tree), *whole = load("scenes/mast.json", 5, full);
        scene_result      got = {0}, truth = {0};
        assert_ok(scene_run(s, test_temporary("tree"), 0, NULL, &got));
        assert_ok(scene_run(whole, test_temporary("full"), 0, NULL, &truth));
        double size = vec3_norm(truth.probes), error = vec3_distance(got.probes, truth.probes) / size;
        printf("   load %d: tip moved %.4f m, the tree is off by %.2f%%\n", k, size, 100 * error);
        assert_true(size > 0.02 && error < 0.02);
        scene_result_destroy(&got);
        scene_result_destroy(&truth);
        scene_destroy(s);
        scene_destroy(whole);
    }
}

// ---- contact -------------------------------------------------------------------------------------------------------

// Three bars on rigid links laid on the ground: in the end the ground carries their weight. Without friction they come
// to rest; friction, which is explicit, leaves them trembling, by less than the speed below which it fades.
static void test_rest(void **unused) {
    (void)unused;
    for (int k = 0; k < 2; k++) {
        const char *const lie[] = {"objects.0.velocity=[0,0,0]",
                                   "objects.0.spin=[0,0,0]",
                                   "objects.0.translation=[0,0,0.01]",
                                   "environment.contact.damping=2000",
                                   "output.frames=121",
                                   k ? "environment.contact.friction=0.3" : "environment.contact.friction=0"};
        scene            *s = load("scenes/links.json", 6, lie);
        scene_result      r = {0};
        scene_summary     about;
        assert_ok(scene_summarize(s, &about));
        assert_ok(scene_run(s, test_temporary("lie"), 0, NULL, &r));
        double weight = 9.81 * about.mass, speed = sqrt(2 * r.energies.kinetic / about.mass);
        printf("   friction %g: the ground carries %.3f N of %.3f N, %d contacts, %.5f m deep; moving with %.1e m/s\n",
               s->contact.friction, r.contact_force[2], weight, r.contact.contacts, r.contact.depth, speed);
        assert_true(r.contact.contacts > 20 && r.contact.depth > 1e-5);
        assert_true(fabs(r.contact_force[2] / weight - 1) < 0.01);
        assert_true(k || hypot(r.contact_force[0], r.contact_force[1]) < 1e-6 * weight);
        assert_true(speed < (k ? s->contact.slip_velocity : 1e-4));
        scene_result_destroy(&r);
        scene_destroy(s);
    }
}

// The totals of FOLDER/energies.csv: the first and the largest after it.
static void read_totals(const char *folder, double *first, double *largest, double *last) {
    char  path[512], line[512];
    int   rows = 0;
    FILE *file;
    snprintf(path, sizeof path, "%s/energies.csv", folder);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file)) {
        double total = strtod(strrchr(line, ',') + 1, NULL);
        if (rows++ == 0)
            *first = *largest = total;
        else if (total > *largest)
            *largest = total;
        *last = total;
    }
    fclose(file);
    assert_true(rows > 50);
}

// Bounces without any damping or friction do not gain energy, from soft to hard ground.
static void test_bounce(void **unused) {
    (void)unused;
    const char *const stiffness[] = {"environment.contact={\"stiffness\":3e4,\"friction\":0}",
                                     "environment.contact={\"stiffness\":1e6,\"friction\":0}",
                                     "environment.contact={\"stiffness\":1e8,\"friction\":0}"};
    for (int k = 0; k < 3; k++) {
        const char *const drop[] = {stiffness[k], "solver.damping.stiffness=0", "output.sample=step"};
        scene            *s = load("scenes/links.json", 3, drop);
        scene_result      r = {0};
        double            first = 0, largest = 0, last = 0;
        assert_ok(scene_run(s, test_temporary("bounce"), 0, NULL, &r));
        read_totals(test_temporary("bounce"), &first, &largest, &last);
        double scale = r.energies.kinetic + fabs(first); // of the motion
        printf("   stiffness %.0e: energy %.2f J at first, %.2f at most, %.2f at last; %ld contacts\n",
               s->contact.stiffness, first, largest, last, r.contact.total_contacts);
        assert_true(r.contact.total_contacts > 100 && largest - first < 0.01 * scale);
        scene_result_destroy(&r);
        scene_destroy(s);
    }
}

// ---- surfaces ------------------------------------------------------------------------------------------------------

static const double corners[4][3] = {{0.15, 0.05, 0.05}, {1.1, 0.15, 0.1}, {1.93, 0.05, 0.13}, {1.2, 0.09, 0.17}};

static const char *write_surface(void) {
    char text[400] = "";
    for (int k = 0; k < 4; k++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "v %.17g %.17g %.17g\n", corners[k][0], corners[k][1],
                 corners[k][2]);
    strcat(text, "f 1 2 3\nf 1 2 4\nf 2 3 4\nf 1 4 3\n");
    return test_write("surface.obj", text);
}

// Runs for some frames and reads the surface of the last.
static void run_surface(scene *s, int frames, fem_surface *surface) {
    char         path[512];
    scene_result r = {0};
    const char  *folder = test_temporary("surface");
    assert_ok(scene_run(s, folder, frames, NULL, &r));
    snprintf(path, sizeof path, "%s/%s_%05d.obj", folder, s->name, r.frames - 1);
    assert_ok(fem_surface_read(surface, path));
    assert_int_equal(surface->vertex_count, 4);
    assert_int_equal(surface->triangle_count, 4);
    assert_null(r.notes && strstr(r.notes, "outside") ? r.notes : NULL);
    scene_result_destroy(&r);
}

// A body that is turned and moved carries its surface along, as a tree and in one piece; a bar that is pulled stretches
// it.
static void test_embedded(void **unused) {
    (void)unused;
    char file[600];
    snprintf(file, sizeof file, "parts.chain.surface=%s", write_surface());
    for (int tree = 0; tree < 2; tree++) {
        const char *const turn[] = {"output.formats=[\"obj\"]", file, "objects.0.rotation=[0.3,-1.1,0.7]",
                                    tree ? "output.interfaces=c1"
                                         : "objects=[{\"part\":\"chain\",\"translation\":"
                                           "[0,0,1.5],\"rotation\":[0.3,-1.1,0.7]}]"};
        scene            *s = load("scenes/links.json", 4, turn);
        fem_surface       moved = {0};
        double            Q[9], centre[3] = {1.7, 0.1, 0.1}, error = 0; // of a straight bar 3.4 m long
        run_surface(s, 1, &moved);
        mat3_exp(Q, (double[]){0.3, -1.1, 0.7});
        for (int k = 0; k < 4; k++) {
            double arm[3], x[3];
            vec3_sub(arm, corners[k], centre);
            mat3_mul_vec(x, Q, arm);
            vec3_axpy(x, 1, centre);
            x[2] += 1.5;
            error = fmax(error, vec3_distance(x, moved.vertices + 3 * k));
        }
        printf("   %s: turned surface off by %.1e m\n", tree ? "tree" : "one piece", error);
        assert_true(error < 1e-8);
        fem_surface_destroy(&moved);
        scene_destroy(s);
    }
    const char *bar = test_write(
        "pull.json",
        "{\"limber\":1,\"materials\":{\"m\":{\"density\":1000,\"young\":1e6,\"poisson\":0}},"
        "\"parts\":{\"bar\":{\"mesh\":{\"box\":{\"element\":\"tet\",\"high\":[2,0.2,0.2],\"cells\":[9,2,2]}},"
        "\"material\":\"m\",\"fixed\":\"x0\"}},\"objects\":[{\"part\":\"bar\"}],"
        "\"actions\":[{\"move\":{\"keyframes\":[{\"time\":0,\"translation\":[0.3,0,0]}]},\"on\":\"x1\"}],"
        "\"solver\":{\"method\":\"static\"},\"output\":{\"formats\":[\"obj\"]}}");
    snprintf(file, sizeof file, "parts.bar.surface=%s", write_surface());
    const char *const use[] = {file};
    scene            *s = load(bar, 1, use);
    fem_surface       moved = {0};
    double            error = 0;
    run_surface(s, 0, &moved);
    for (int k = 0; k < 4; k++) {
        double x[3] = {corners[k][0] * 1.15, corners[k][1], corners[k][2]};
        error = fmax(error, vec3_distance(x, moved.vertices + 3 * k));
    }
    printf("   pulled bar: surface off by %.1e m\n", error);
    assert_true(error < 1e-9);
    fem_surface_destroy(&moved);
    scene_destroy(s);
}

static void test_skin(void **unused) {
    (void)unused;
    const char *const obj[] = {"output.formats=[\"vtu\",\"obj\"]"};
    scene            *s = load("scenes/mast.json", 1, obj);
    scene_result      r = {0};
    fem_surface       skin = {0};
    char              path[512];
    assert_ok(scene_run(s, test_temporary("skin"), 3, NULL, &r));
    snprintf(path, sizeof path, "%s/mast_00002.obj", test_temporary("skin"));
    assert_ok(fem_surface_read(&skin, path));
    assert_int_equal(skin.triangle_count, 2 * (2 * 4 + 4 * 2 * 30));
    fem_surface_destroy(&skin);
    scene_result_destroy(&r);
    scene_destroy(s);
}

// ---- endings -------------------------------------------------------------------------------------------------------

// A load that tears the body apart: domain, time, reason and remedy are named, and what was done is on disk.
static void test_diverged(void **unused) {
    (void)unused;
    const char *const tear[] = {"actions=[{\"force\":[1e13,0,0],\"on\":\"z1\",\"start\":0.1}]"};
    scene            *s = load("scenes/mast.json", 1, tear);
    scene_result      r = {0};
    char              path[512];
    assert_fails(scene_run(s, test_temporary("torn"), 0, NULL, &r), FEM_UNSTABLE, "domain");
    printf("   %s\n   after %d frames\n", fem_message(), r.frames);
    assert_non_null(strstr(fem_message(), "mast.json"));
    assert_non_null(strstr(fem_message(), "t = "));
    assert_non_null(strstr(fem_message(), "smaller step"));
    assert_true(r.frames >= 4 && r.frames < 40);
    for (int k = 0; k <= r.frames; k++) {
        snprintf(path, sizeof path, "%s/mast_%05d.vtu", test_temporary("torn"), k);
        assert_int_equal(access(path, F_OK), k < r.frames ? 0 : -1);
    }
    snprintf(path, sizeof path, "%s/mast.pvd", test_temporary("torn"));
    assert_int_equal(access(path, F_OK), 0);
    scene_result_destroy(&r);
    scene_destroy(s);
}

typedef struct stopper {
    int reports, allowed;
} stopper;

static bool stop_later(void *context, const char *what, double fraction) {
    stopper *s = context;
    (void)what, (void)fraction;
    return s->reports++ < s->allowed;
}

// A precomputation that is stopped keeps the domains that it has done; the next takes them up.
static void test_interrupted(void **unused) {
    (void)unused;
    scene *s = load("scenes/mast.json", 0, NULL);
    int    threads = fem_threads(), kept = 0;
    fem_set_threads(1);
    assert_ok(scene_set_cache(s, test_temporary("interrupted")));
    for (int allowed = 1;; allowed += 3) {
        stopper      when = {.allowed = allowed};
        fem_progress progress = {stop_later, &when};
        scene_result r = {0};
        fem_status   status = scene_precompute(s, &progress, &r);
        if (status == FEM_OK) {
            kept = r.cached_domains;
            printf("   %d of %d domains were there after interruptions\n", r.cached_domains, r.domains);
            assert_int_equal(r.domains, 6);
            scene_result_destroy(&r);
            break;
        }
        assert_int_equal(status, FEM_STOPPED);
        scene_result_destroy(&r);
    }
    assert_true(kept > 0);
    fem_set_threads(threads);
    scene_destroy(s);
}

// Every allocation of a run of a tree may fail.
static void test_memory(void **unused) {
    (void)unused;
    const char *const small[] = {"objects.0.decompose={\"count\":3,\"total\":9,\"modes\":3}",
                                 "output.formats=[\"obj\"]", "objects.0.decompose={\"count\":3,\"total\":20}",
                                 "output.interfaces=c1"};
    scene            *s = load("scenes/mast.json", 4, small);
    int               threads = fem_threads(), failures = 0;
    bool              done = false;
    fem_set_threads(1);
    long blocks = fem_memory_blocks();
    for (long allowed = 0; !done; allowed += allowed < 30 ? 1 : 97) {
        scene_result r = {0};
        fem_memory_fail_after(allowed);
        fem_status status = scene_run(s, test_temporary("memory"), 2, NULL, &r);
        fem_memory_fail_after(-1);
        done = status == FEM_OK;
        if (!done) assert_int_equal(status, FEM_NO_MEMORY), failures++;
        scene_result_destroy(&r);
        assert_int_equal(fem_memory_blocks(), blocks);
    }
    fem_set_threads(threads);
    printf("   %d failures\n", failures);
    assert_true(failures > 40);
    scene_destroy(s);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loads),       cmocka_unit_test(test_rest),   cmocka_unit_test(test_bounce),
        cmocka_unit_test(test_embedded),    cmocka_unit_test(test_skin),   cmocka_unit_test(test_diverged),
        cmocka_unit_test(test_interrupted), cmocka_unit_test(test_memory),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
