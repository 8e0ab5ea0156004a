// Scenes that stitch: the motion follows the full model of a body that was never cut, what is undone gives back what
// was there, energy comes with the springs, and runs go on from a checkpoint.
#include "libscene/motion.h"
#include "libscene/stitching.h"
#include "tests/support.h"

#include <unistd.h>

// Two bars end to end, the second free until it is stitched.
static const char *const BARS =
    "{\"limber\": 1, \"materials\": {\"rubber\": {\"density\": 1000, \"young\": 1e6, \"poisson\": 0.4}},"
    " \"parts\": {\"bar\": {\"mesh\": {\"pieces\": {\"element\": \"tet\", \"voxel\": 0.05, \"shapes\": ["
    "   {\"name\": \"left\", \"box\": [[0, 0, 0], [0.3, 0.1, 0.1]]},"
    "   {\"name\": \"right\", \"box\": [[0.3, 0, 0], [0.6, 0.1, 0.1]]}]}},"
    "   \"material\": \"rubber\", \"fixed\": \"x0\", \"modes\": {\"method\": \"lanczos\", \"linear\": 12, \"count\": "
    "24},"
    "   \"seams\": {\"joint\": {\"between\": {\"a\": \"left\", \"b\": \"right\"}}}}},"
    " \"objects\": [{\"part\": \"bar\"}], \"environment\": {\"gravity\": [0, 0, -2]},"
    " \"actions\": [{\"stitch\": \"joint\"}],"
    " \"solver\": {\"method\": \"reduced\", \"step\": 0.005, \"newton\": {\"iterations\": 5, \"tolerance\": 1e-6}},"
    " \"output\": {\"frames\": 21, \"rate\": 50, \"formats\": [\"obj\"],"
    "   \"probes\": {\"tip\": {\"plane\": {\"point\": [0.6, 0, 0], \"normal\": [1, 0, 0]}}}}}";

static scene *load(const char *text, int count, const char *const *overrides) {
    scene *s = NULL;
    assert_ok(scene_load(&s, test_write("stitch.json", text), count, overrides));
    return s;
}

static scene_result run(int count, const char *const *overrides, const char *folder) {
    scene       *s = load(BARS, count, overrides);
    scene_result r = {0};
    assert_ok(scene_run(s, test_temporary(folder), 0, NULL, &r));
    scene_destroy(s);
    return r;
}

// The stitched bars fall as full FEM has it for a bar in one piece; in the old basis the free one does not move at all.
static void test_follows_full(void **state) {
    (void)state;
    const char *const full[] = {"solver.method=full", "solver.newton={}", "actions=[]", "parts.bar.seams={}"};
    const char *const original[] = {"solver.stitching.form=original"}, *const scratch[] = {
                                                                           "solver.stitching.form=scratch"};
    scene_result r[4] = {run(4, full, "full"), run(0, NULL, "attachment"), run(1, scratch, "scratch"),
                         run(1, original, "original")};
    double       size = vec3_norm(r[0].probes);
    printf("full: %.3g m\n", size);
    assert_true(size > 2e-3);
    for (int i = 1; i < 4; i++)
        printf("%s: %.3g of the way, %.2g %% off\n",
               i == 1   ? "attachment"
               : i == 2 ? "scratch"
                        : "original",
               vec3_norm(r[i].probes) / size, 100 * vec3_distance(r[i].probes, r[0].probes) / size);
    assert_true(vec3_distance(r[1].probes, r[0].probes) < 0.02 * size);
    assert_true(vec3_distance(r[2].probes, r[0].probes) < 0.02 * size);
    assert_true(vec3_norm(r[3].probes) < 0.05 * size); // it locks
    assert_int_equal(r[1].change_count, 1);
    const scene_change *c = &r[1].changes[0];
    printf("estimates: frequencies within %.2g, shares above %.5f\n", c->quality.worst_error, c->quality.least_share);
    assert_true(c->quality.count == 12 && c->quality.worst_error < 0.01 && c->quality.least_share > 0.99);
    for (int i = 0; i < 4; i++) scene_result_destroy(&r[i]);
}

// Taken out again: the class, and with it the basis, is the first one. Both bars are held here, so that the shape is in
// every basis. Energy comes with the springs: never more than their gaps held.
static void test_undone(void **state) {
    (void)state;
    const char *const undone[] = {
        ("actions=[{\"stitch\": \"joint\", \"start\": 0.1, \"spring\": 2e3}, {\"unstitch\": \"joint\", \"start\": "
         "0.25}]"),
        "parts.bar.fixed=[\"x0\", {\"plane\": {\"point\": [0.6, 0, 0], \"normal\": [1, 0, 0]}}]",
        "output.probes={\"middle\": {\"nearest\": [0.3, 0, 0]}}"};
    scene_result r = run(3, undone, "undone");
    assert_int_equal(r.change_count, 2);
    assert_true(!r.changes[0].first && r.changes[1].first);
    assert_int_equal(r.changes[1].stitches, 0);
    for (int i = 0; i < 2; i++) {
        const solver_rebase_report *e = &r.changes[i].state;
        printf("energy %.4g -> %.4g J, springs %.3g, unexplained %.2g; lost %.2g of place, %.2g of velocity\n",
               e->energy_before, e->energy_after, e->springs, e->unexplained, e->lost_place, e->lost_velocity);
        assert_true(e->energy_before > 1e-4);
        assert_true(e->lost_place < 1e-6 && e->lost_velocity < 1e-6);
    }
    // springs across a gap: their energy comes in, but for what a step does not resolve of them
    const solver_rebase_report *in = &r.changes[0].state, *out = &r.changes[1].state;
    assert_true(in->unexplained <= 1e-9 * in->energy_before && in->unexplained >= -in->springs);
    // taken out: their energy goes, and nothing else
    assert_true(out->springs < 0 && fabs(out->unexplained) < 1e-9 * out->energy_before);
    scene_result_destroy(&r);
}

typedef struct rows_of {
    int    count;
    double t[200], x[200][3];
} rows_of;

// The rows of a probes.csv with one probe.
static rows_of read_rows(const char *folder) {
    char    path[600], line[400];
    rows_of rows = {0};
    snprintf(path, sizeof path, "%s/probes.csv", folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (rows.count < 200 && fgets(line, sizeof line, file))
        if (sscanf(line, "%lf,%lf,%lf,%lf", &rows.t[rows.count], &rows.x[rows.count][0], &rows.x[rows.count][1],
                   &rows.x[rows.count][2]) == 4)
            rows.count++;
    fclose(file);
    return rows;
}

// A bar that is let go while it swings keeps its place and its velocity, flies as a stone does, and turns by any angle
// without strain. Its middle is the mean of all its vertices, which of a box with equal cells is its centre of mass
// nearly; turning moves it a little about that.
static void test_let_go(void **state) {
    (void)state;
    const char *const gone[] = {
        "actions=[{\"stitch\": \"joint\", \"spring\": 1e6}, {\"unstitch\": \"joint\", \"start\": 0.2}]",
        "output.probes={\"middle\": {\"region\": \"right\"}}", "output.frames=41", "environment.gravity=[0, 0, -8]"};
    char         folder[512];
    scene_result r = {0};
    scene       *s = load(BARS, 4, gone);
    snprintf(folder, sizeof folder, "%s", test_temporary("gone"));
    assert_ok(scene_run(s, folder, 0, NULL, &r));
    scene_destroy(s);
    const solver_rebase_report *e = &r.changes[1].state;
    printf("let go: energy %.4g -> %.4g J, springs %.3g, unexplained %.2g; lost %.2g of place, %.2g of velocity\n",
           e->energy_before, e->energy_after, e->springs, e->unexplained, e->lost_place, e->lost_velocity);
    assert_true(fabs(e->unexplained) < 1e-9 * e->energy_before);
    rows_of rows = read_rows(folder);
    assert_int_equal(rows.count, 41);
    // the second difference of a parabola is -g dt^2; over a long time vibration does not matter
    double dt = 14 * (rows.t[1] - rows.t[0]), worst = 0;
    for (int k = 0; k < 3; k++) {
        double second = rows.x[40][k] - 2 * rows.x[26][k] + rows.x[12][k];
        worst = fmax(worst, fabs(second - (k == 2 ? -8 * dt * dt : 0)) / (8 * dt * dt));
    }
    double jump = vec3_distance(rows.x[11], rows.x[10]), before = vec3_distance(rows.x[10], rows.x[9]);
    printf("it flies within %.2g of gravity; the step across is %.3g m, the one before %.3g m\n", worst, jump, before);
    assert_true(worst < 0.002);
    assert_true(jump < 1.5 * before);
    assert_true(rows.x[40][2] < -0.5); // far away by now
    // its surface goes with it: no edge of the frames is longer than a cell's diagonal
    fem_surface last = {0};
    char        path[600];
    double      longest = 0;
    snprintf(path, sizeof path, "%s/stitch_00040.obj", folder);
    assert_ok(fem_surface_read(&last, path));
    for (int i = 0; i < 3 * last.triangle_count; i++) {
        int a = last.triangles[i], b = last.triangles[i - i % 3 + (i + 1) % 3];
        longest = fmax(longest, vec3_distance(last.vertices + 3 * (size_t)a, last.vertices + 3 * (size_t)b));
    }
    assert_true(longest < 0.1);
    fem_surface_destroy(&last);
    scene_result_destroy(&r);
}

// Two objects, the second free, that are stitched together move as full FEM has it for one bar; Krylov modes serve as
// vibration modes do.
static const char *const OBJECTS =
    "{\"limber\": 1, \"materials\": {\"rubber\": {\"density\": 1000, \"young\": 1e6, \"poisson\": 0.4}},"
    " \"parts\": {"
    "   \"held\": {\"mesh\": {\"box\": {\"element\": \"tet\", \"high\": [0.3, 0.1, 0.1], \"cells\": [6, 2, 2]}},"
    "     \"material\": \"rubber\", \"fixed\": \"x0\", \"modes\": {\"method\": \"lanczos\", \"linear\": 8, \"count\": "
    "14}},"
    "   \"free\": {\"mesh\": {\"box\": {\"element\": \"tet\", \"high\": [0.3, 0.1, 0.1], \"cells\": [6, 2, 2]}},"
    "     \"material\": \"rubber\", \"modes\": {\"method\": \"lanczos\", \"linear\": 8, \"count\": 14}}},"
    " \"objects\": [{\"part\": \"held\"}, {\"part\": \"free\", \"translation\": [0.3, 0, 0]}],"
    " \"seams\": {\"joint\": {\"match\": {\"a\": {\"instance\": \"held\"}, \"b\": {\"instance\": \"free\"},"
    "   \"tolerance\": 1e-6}}},"
    " \"environment\": {\"gravity\": [0, 0, -2]}, \"actions\": [{\"stitch\": \"joint\"}],"
    " \"solver\": {\"method\": \"reduced\", \"step\": 0.005, \"newton\": {\"iterations\": 5, \"tolerance\": 1e-6}},"
    " \"output\": {\"frames\": 21, \"rate\": 50, \"formats\": [\"obj\"],"
    "   \"probes\": {\"tip\": {\"instance\": \"free\", \"set\": \"x1\"}}}}";

static void test_objects(void **state) {
    (void)state;
    const char *const krylov[] = {"parts.held.modes.method=krylov", "parts.free.modes.method=krylov"};
    // cells as those of the objects, in one piece
    const char *const full[] = {"solver.method=full", "solver.newton={}", "actions=[]", "parts.bar.seams={}",
                                "parts.bar.mesh={\"box\": {\"element\": \"tet\", \"high\": [0.6, 0.1, 0.1], "
                                "\"cells\": [12, 2, 2]}}"};
    scene_result      one = run(5, full, "one");
    for (int k = 0; k < 2; k++) {
        scene       *s = load(OBJECTS, k == 0 ? 0 : 2, krylov);
        scene_result r = {0};
        assert_ok(scene_run(s, test_temporary("objects"), 0, NULL, &r));
        double error = vec3_distance(r.probes, one.probes) / vec3_norm(one.probes);
        printf("two objects, %s: %.2g %% off one bar\n", k == 0 ? "lanczos" : "krylov", 100 * error);
        assert_int_equal(r.changes[0].stitches, 9);
        assert_true(error < 0.03);
        scene_result_destroy(&r), scene_destroy(s);
    }
    scene_result_destroy(&one);
}

// A change that cannot be made, whatever allocation is refused, leaves the motion as it was: the next attempt succeeds,
// and all goes on as if nothing had happened.
static void test_all_or_nothing(void **state) {
    (void)state;
    const char *const once[] = {"actions=[{\"stitch\": \"joint\", \"start\": 0.1}]",
                                "parts.bar.modes={\"method\": \"lanczos\", \"linear\": 4, \"count\": 6}"};
    scene            *s = load(BARS, 2, once);
    const scene_part *part = &s->parts[s->object];
    fem_body         *body = NULL;
    fem_body_options  options = fem_body_default_options();
    char             *notes = NULL;
    double            ends[2][3], h = s->solver.time_step;
    int               tip = s->probes[0].on.items[0], refused = 0;
    assert_ok(fem_body_create(&body, &part->mesh, &options));
    for (int k = 0; k < 2; k++) {
        scene_motion *m = NULL;
        assert_ok(scene_motion_reduced(&m, s, body, NULL, &notes));
        for (int i = 1; i <= 30; i++) {
            if (k == 1 && i * h >= 0.1 && (i - 1) * h < 0.1) // the change
                for (long allowed = 0; allowed < 100000; allowed++) {
                    double before[3], after[3];
                    int    changes = m->change_count;
                    m->show(m);
                    memcpy(before, m->u + 3 * tip, sizeof before);
                    fem_memory_fail_after(allowed);
                    fem_status status = m->step(m, i * h);
                    fem_memory_fail_after(-1);
                    if (status == FEM_OK) goto next;
                    assert_int_equal(status, FEM_NO_MEMORY);
                    m->show(m);
                    memcpy(after, m->u + 3 * tip, sizeof after);
                    assert_memory_equal(before, after, sizeof after);
                    assert_int_equal(m->change_count, changes);
                    refused++;
                }
            assert_ok(m->step(m, i * h));
        next:;
        }
        m->show(m);
        memcpy(ends[k], m->u + 3 * tip, sizeof ends[k]);
        m->destroy(m);
    }
    printf("%d attempts refused\n", refused);
    assert_true(refused > 10);
    assert_true(vec3_distance(ends[0], ends[1]) <= 1e-9 * vec3_norm(ends[0]));
    fem_free(notes);
    fem_body_destroy(body);
    scene_destroy(s);
}

// Any sequence of stitches, cuts and changes of stiffness, seeded: no crash, and nothing that is not finite.
static void test_sequences(void **state) {
    (void)state;
    uint64_t seed = 11;
    int      ran = 0, refused = 0;
    for (int k = 0; k < 24; k++) {
        char        actions[2000] = "actions=[", mesh[] = "output.frames=21";
        size_t      used = strlen(actions);
        const char *overrides[] = {
            actions, mesh, "parts.bar.modes={\"method\": \"lanczos\", \"linear\": 4, \"count\": 6}",
            "solver={\"method\": \"reduced\", \"step\": 0.01, \"damping\": {\"stiffness\": 0.002}}"};
        int count = 2 + k % 5;
        for (int i = 0; i < count; i++) {
            double      x = test_random(&seed), y = test_random(&seed), z = test_random(&seed);
            const char *kinds[] = {"\"stitch\": \"joint\", \"count\": 4", "\"unstitch\": \"joint\"",
                                   "\"stitch\": \"joint\"", "\"cut\": \"joint\"",
                                   "\"stiffness\": 3, \"within\": {\"region\": \"right\"}"};
            int         kind = (int)(fabs(x) * 5) % 5;
            char        spring[60] = "";
            if (kind % 2 == 0 && kind < 4) snprintf(spring, sizeof spring, ", \"spring\": %g", pow(10, 4 + 3 * z));
            used += (size_t)snprintf(actions + used, sizeof actions - used, "%s{%s%s, \"start\": %.3f}", i ? ", " : "",
                                     kinds[kind], spring, 0.05 + 0.05 * i + 0.01 * fabs(y));
        }
        snprintf(actions + used, sizeof actions - used, "]");
        scene       *s = NULL;
        scene_result r = {0};
        fem_status   status = scene_load(&s, test_write("sequence.json", BARS), 4, overrides);
        assert_true(status == FEM_OK || status == FEM_BAD_INPUT); // nothing to take out, or to close
        if (status == FEM_OK) {
            status = scene_run(s, test_temporary("sequence"), 0, NULL, &r);
            if (status != FEM_OK && status != FEM_UNSTABLE) fail_msg("%s: %s", actions, fem_message());
            for (int i = 0; status == FEM_OK && i < 3; i++) assert_true(isfinite(r.probes[i]));
        }
        ran += status == FEM_OK, refused += status != FEM_OK;
        scene_result_destroy(&r), scene_destroy(s);
    }
    printf("%d sequences ran, %d were refused or diverged\n", ran, refused);
    assert_true(ran >= 6);
}

// Bars that fall apart and are caught: the gap closes at once, and the motion has no more energy than its springs would
// have had.
static void test_caught(void **state) {
    (void)state;
    const char *const           caught[] = {"actions=[{\"stitch\": \"joint\", \"start\": 0.1}]"};
    scene_result                r = run(1, caught, "caught");
    const solver_rebase_report *e = &r.changes[0].state;
    printf("energy %.4g -> %.4g J, springs %.3g\n", e->energy_before, e->energy_after, e->springs);
    assert_true(e->springs > 0 && e->energy_after < e->energy_before + e->springs);
    scene_result_destroy(&r);
}

// Stiff springs across an open gap, with the damping and the single Newton iteration of ordinary scenes: the first
// guess of a step does not follow accelerations that the step cannot resolve.
static void test_open_gap(void **state) {
    (void)state;
    const char *const gap[] = {
        ("actions=[{\"force\": [0, 0, 3], \"on\": {\"region\": \"right\"}}, {\"stitch\": \"joint\", "
         "\"start\": 0.2, \"spring\": 1e6}]"),
        "parts.bar.fixed=[\"x0\", {\"plane\": {\"point\": [0.6, 0, 0], \"normal\": [1, 0, 0]}}]",
        "output.probes={\"middle\": {\"nearest\": [0.3, 0, 0]}}",
        "solver={\"method\": \"reduced\", \"step\": 0.01, \"damping\": {\"mass\": 0.2, \"stiffness\": 0.002}}",
        "output.frames=61"};
    scene_result                r = run(5, gap, "gap");
    const solver_rebase_report *e = &r.changes[0].state;
    printf("energy %.4g -> %.4g J, springs %.3g; in the end %.3g m\n", e->energy_before, e->energy_after, e->springs,
           vec3_norm(r.probes));
    assert_true(e->springs > 10 * e->energy_before); // there is a gap
    assert_true(vec3_norm(r.probes) > 1e-4 && vec3_norm(r.probes) < 0.1);
    scene_result_destroy(&r);
}

// Springs as stiff as grown together close a cut that has opened while the body swings; ordinary scenes take one Newton
// iteration a step. Long steps stay close to short ones, the closer the shorter: what the step does not resolve does no
// harm.
static void test_long_steps(void **state) {
    (void)state;
    const double steps[] = {1 / 30.0, 1 / 60.0, 1 / 120.0, 1 / 960.0};
    scene_result r[4] = {{0}};
    double       error[3];
    for (int i = 0; i < 4; i++) {
        char        step[64];
        const char *overrides[] = {step, "output.formats=[\"obj\"]"};
        scene      *s = NULL;
        snprintf(step, sizeof step, "solver.step=%.9g", steps[i]);
        assert_ok(scene_load(&s, "scenes/stitch.json", 2, overrides));
        assert_ok(scene_run(s, test_temporary("steps"), 0, NULL, &r[i]));
        scene_destroy(s);
    }
    for (int i = 0; i < 3; i++) {
        error[i] = vec3_distance(r[i].probes, r[3].probes) / vec3_norm(r[3].probes);
        printf("step %.4f s: %.3g of the tip's way off\n", steps[i], error[i]);
    }
    assert_true(error[2] < 0.03 && error[1] > 3 * error[2] && error[0] > 3 * error[1]); // second order
    for (int i = 0; i < 4; i++) scene_result_destroy(&r[i]);
}

// A seam that an action cuts holds until then as if it were none, and is open from then on.
static void test_cut(void **state) {
    (void)state;
    const char *const later[] = {"actions=[{\"cut\": \"joint\", \"start\": 5}]"};
    const char *const full[] = {"solver.method=full", "solver.newton={}", "actions=[]", "parts.bar.seams={}"};
    scene_result      r[2] = {run(4, full, "full"), run(1, later, "later")};
    double            error = vec3_distance(r[1].probes, r[0].probes) / vec3_norm(r[0].probes);
    printf("grown together: %.2g %% off\n", 100 * error);
    assert_true(error < 0.02);
    const char *const both[] = {
        "actions=[{\"cut\": \"joint\", \"start\": 0.1}, {\"stitch\": \"joint\", \"start\": 0.2, \"spring\": 1e4}]"};
    scene_result cut = run(1, both, "both");
    assert_int_equal(cut.change_count, 3); // grown, cut, sewn
    assert_true(cut.changes[0].stitches > 0 && cut.changes[1].stitches == 0 && cut.changes[1].first);
    assert_int_equal(cut.changes[2].stitches, cut.changes[0].stitches);
    scene_result_destroy(&r[0]), scene_result_destroy(&r[1]), scene_result_destroy(&cut);
}

// A stiffer piece is what the same body with another material is.
static void test_stiffness(void **state) {
    (void)state;
    const char *const stiffer[] = {
        ("actions=[{\"stitch\": \"joint\", \"spring\": 1e6}, {\"stiffness\": 20, \"within\": "
         "{\"plane\": {\"point\": [0.6, 0, 0], \"normal\": [1, 0, 0]}}}]")};
    const char *const material[] = {"actions=[{\"stitch\": \"joint\", \"spring\": 1e6}]",
                                    ("parts.bar.material={\"left\": \"rubber\", \"right\": "
                                     "\"hard\"}"),
                                    "materials.hard={\"density\": 1000, \"young\": 2e7, \"poisson\": 0.4}",
                                    "solver.stitching.form=scratch"};
    scene_result      a = run(1, stiffer, "stiffer"), b = run(4, material, "material"), soft = run(0, NULL, "soft");
    double            size = vec3_norm(b.probes);
    printf("stiffened: %.2g %% off; without %.3g %%\n", 100 * vec3_distance(a.probes, b.probes) / size,
           100 * vec3_distance(soft.probes, b.probes) / size);
    assert_true(vec3_distance(a.probes, b.probes) < 0.02 * size);
    assert_true(vec3_distance(soft.probes, b.probes) > 0.03 * size); // it matters
    scene_result_destroy(&a), scene_result_destroy(&b), scene_result_destroy(&soft);
}

// When the rule fires, and the scene says so, the modes are made anew; else it is only said.
static void test_rebuild(void **state) {
    (void)state;
    const char *const        say[] = {"solver.stitching.form=ritz"},
                      *const act[] = {"solver.stitching.form=ritz", "solver.stitching.rebuild.when=automatic"},
                      *const never[] = {"solver.stitching.rebuild.when=never"};
    scene_result             r[3] = {run(1, say, "say"), run(2, act, "act"), run(1, never, "never")};
    assert_true(r[0].changes[0].quality.rebuild && !r[0].changes[0].rebuilt);
    assert_non_null(strstr(r[0].notes, "should be made anew"));
    assert_true(r[1].changes[0].rebuilt && r[1].changes[0].form == SCENE_STITCH_SCRATCH);
    assert_non_null(strstr(r[1].notes, ": made anew"));
    assert_int_equal(r[2].changes[0].quality.count, 0);
    for (int i = 0; i < 3; i++) scene_result_destroy(&r[i]);
}

// A run that goes on from its checkpoint behind a stitch ends in the same state to the last bit.
static void test_checkpoint(void **state) {
    (void)state;
    // the second change changes nothing
    const char *const once[] = {
        "actions=[{\"stitch\": \"joint\", \"start\": 0.1}, {\"stiffness\": 1, \"start\": 0.15}]"};
    scene       *s = load(BARS, 1, once);
    scene_result whole = {0}, half = {0}, rest = {0};
    char         folder[512];
    snprintf(folder, sizeof folder, "%s", test_temporary("resumed"));
    assert_ok(scene_run(s, test_temporary("whole"), 0, NULL, &whole));
    s->checkpoint = 10;
    assert_ok(scene_run(s, folder, 12, NULL, &half));
    s->resume = true;
    assert_ok(scene_run(s, folder, 0, NULL, &rest));
    assert_memory_equal(whole.probes, rest.probes, 3 * sizeof *whole.probes);
    scene_result_destroy(&whole), scene_result_destroy(&half), scene_result_destroy(&rest);
    scene_destroy(s);
}

// The experiment: attachment is within a thousandth of scratch in every mode that is asked for, the last among them
// (with as many old modes as new ones it is not), the old basis is far off; its files are there.
static void test_experiment(void **state) {
    (void)state;
    scene           *s = load(BARS, 0, NULL);
    scene_experiment x = {0};
    char             folder[512], path[600];
    snprintf(folder, sizeof folder, "%s", test_temporary("experiment"));
    assert_ok(scene_stitch_experiment(s, folder, true, NULL, &x));
    assert_int_equal(x.round_count, 1);
    const scene_round *round = &x.rounds[0];
    for (int f = 0; f < SCENE_STITCH_FORMS; f++)
        printf("%s: frequencies within %.3g, coverage %.5f, probes %.3g off\n",
               scene_stitch_form_name((scene_stitch_form)f), round->worst_error[f], round->least_share[f],
               x.runs[f].difference);
    assert_true(round->worst_error[SCENE_STITCH_ATTACHMENT] < 1e-3);
    assert_true(round->least_share[SCENE_STITCH_ATTACHMENT] > 0.999);
    assert_true(round->worst_error[SCENE_STITCH_ORIGINAL] > 0.1);
    assert_true(x.runs[SCENE_STITCH_ATTACHMENT].difference < 0.02);
    assert_true(x.runs[SCENE_STITCH_ORIGINAL].difference > 0.5);
    const char *const files[] = {"frequencies.csv",          "coverage.csv",         "coverage_1.svg",
                                 "attachment/probes.csv",    "scratch/probes.csv",   "ritz/stitching.csv",
                                 "lowrank/stitch_00000.obj", "original/energies.csv"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        if (access(path, R_OK) != 0) fail_msg("%s is not there", path);
    }
    scene_experiment_destroy(&x);
    scene_destroy(s);
    const char *const none[] = {"actions=[]"};
    s = load(BARS, 1, none);
    assert_int_equal(scene_stitch_experiment(s, folder, false, NULL, &x), FEM_BAD_INPUT);
    scene_destroy(s);
}

// Surfaces that are matched: the gap between them is closed, and the seam holds.
static void test_match(void **state) {
    (void)state;
    scene            *s = NULL;
    const char *const matched[] = {("parts.bar.seams={\"open\": {\"between\": {\"a\": \"left\", \"b\": \"right\"}}, "
                                    "\"joint\": {\"match\": {\"a\": {\"region\": \"left\"}, \"b\": {\"region\": "
                                    "\"right\"}, \"tolerance\": 1e-3}}}")};
    s = load(BARS, 1, matched);
    assert_int_equal(s->parts[0].seam_count, 2);
    assert_int_equal(s->parts[0].seams[1].count, 9);
    assert_int_equal(s->actions[0].stitch_count, 9);
    scene_destroy(s);
}

// A piece that is too small to be meant is remarked on; bars of 120 elements are not.
static void test_splinters(void **state) {
    (void)state;
    const char *const chip[] = {
        "parts.bar.mesh.pieces.shapes=[{\"name\": \"left\", \"box\": [[0, 0, 0], [0.6, 0.1, 0.1]]}, {\"name\": "
        "\"right\", \"box\": [[0.6, 0, 0], [0.65, 0.05, 0.05]]}]"};
    scene *s = load(BARS, 0, NULL);
    assert_int_equal(s->remarks.count, 0);
    scene_destroy(s);
    s = load(BARS, 1, chip);
    assert_int_equal(s->remarks.count, 1);
    printf("%s\n", s->remarks.items[0]);
    assert_non_null(strstr(s->remarks.items[0], "1 loose piece of fewer than 24 elements"));
    assert_non_null(strstr(s->remarks.items[0], "the first at 0.6"));
    scene_destroy(s);
}

// The scenes of P2's bodies: vertices, elements and springs within 20 percent of its Table 1.
static void test_sizes(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double      vertices, elements, springs; // 0: P2 does not say
    } paper[] = {{"plant", 13e3, 43e3, 30},     {"fork", 13e3, 55e3, 40},   {"stomach", 37e3, 118e3, 30},
                 {"dinosaur", 57e3, 192e3, 38}, {"oball", 16e3, 60e3, 160}, {"plant3", 0, 0, 0}};
    for (size_t i = 0; i < sizeof paper / sizeof *paper; i++) {
        char   path[128];
        scene *s = NULL;
        int    springs = 0;
        snprintf(path, sizeof path, "scenes/stitching/%s.json", paper[i].name);
        assert_ok(scene_load(&s, path, 0, NULL));
        for (int k = 0; k < s->action_count; k++)
            springs += s->actions[k].kind == SCENE_STITCH ? s->actions[k].stitch_count : 0;
        const fem_mesh *mesh = &s->parts[0].mesh;
        printf("%-9s %6d vertices, %6d elements, %3d springs\n", paper[i].name, mesh->vertex_count, mesh->element_count,
               springs);
        if (paper[i].vertices > 0) {
            assert_true(fabs(mesh->vertex_count / paper[i].vertices - 1) <= 0.2);
            assert_true(fabs(mesh->element_count / paper[i].elements - 1) <= 0.2);
            assert_true(fabs(springs / paper[i].springs - 1) <= 0.2);
        }
        scene_destroy(s);
    }
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follows_full),   cmocka_unit_test(test_undone),     cmocka_unit_test(test_caught),
        cmocka_unit_test(test_splinters),      cmocka_unit_test(test_cut),        cmocka_unit_test(test_stiffness),
        cmocka_unit_test(test_rebuild),        cmocka_unit_test(test_checkpoint), cmocka_unit_test(test_experiment),
        cmocka_unit_test(test_match),          cmocka_unit_test(test_sizes),      cmocka_unit_test(test_open_gap),
        cmocka_unit_test(test_long_steps),     cmocka_unit_test(test_let_go),     cmocka_unit_test(test_objects),
        cmocka_unit_test(test_all_or_nothing), cmocka_unit_test(test_sequences),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
