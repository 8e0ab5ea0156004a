// Instances that are stitched among others: they leave the class of their part and return to it, the others do not
// notice, and what cannot be done is refused by name.
#include "libscene/forest_motion.h"
#include "tests/support.h"

#include <unistd.h>

// Three bars with a slit on their underside.
static const char *const BARS =
    "{\"limber\": 1, \"materials\": {\"rubber\": {\"density\": 1000, \"young\": 1e6, \"poisson\": 0.4}},"
    " \"parts\": {\"bar\": {\"mesh\": {\"box\": {\"element\": \"tet\", \"high\": [0.6, 0.1, 0.1], \"cells\": [12, 2, "
    "2]}},"
    "   \"material\": \"rubber\", \"fixed\": \"x0\", \"modes\": {\"method\": \"lanczos\", \"linear\": 12, \"count\": "
    "24},"
    "   \"seams\": {\"slit\": {\"plane\": {\"point\": [0.31, 0, 0], \"normal\": [1, 0, 0],"
    "     \"within\": {\"box\": [[0, 0, 0], [0.6, 0.1, 0.05]]}}}}}},"
    " \"objects\": [{\"part\": \"bar\", \"repeat\": {\"count\": 3, \"translation\": [0, 0.3, 0]}}],"
    " \"environment\": {\"gravity\": [0, 0, -2]},"
    " \"actions\": [{\"stitch\": \"bar.1/slit\", \"spring\": 1e4, \"start\": 0.2},"
    "   {\"unstitch\": \"bar.1/slit\", \"start\": 0.4}],"
    " \"solver\": {\"method\": \"reduced\", \"step\": 0.005, \"damping\": {\"mass\": 0.2, \"stiffness\": 0.002}},"
    " \"output\": {\"frames\": 31, \"rate\": 50, \"formats\": [\"obj\"], \"probes\": {"
    "   \"a\": {\"nearest\": [0.6, 0.05, 0.05]}, \"b\": {\"nearest\": [0.6, 0.35, 0.05]},"
    "   \"c\": {\"nearest\": [0.6, 0.65, 0.05]}}}}";
static const char *const UNTOUCHED[] = {"actions=[]"};

static scene *load(int count, const char *const *overrides) {
    scene *s = NULL;
    assert_ok(scene_load(&s, test_write("forest_stitch.json", BARS), count, overrides));
    return s;
}

static scene_result run(int count, const char *const *overrides, const char *folder) {
    scene       *s = load(count, overrides);
    scene_result r = {0};
    assert_ok(scene_run(s, test_temporary(folder), 0, NULL, &r));
    scene_destroy(s);
    return r;
}

// With a fixed number of passes a step the others move as they do when nothing is stitched, to rounding; where the
// passes of all go on until the last has settled, within what is left then. The stitched one does not.
static void test_others(void **state) {
    (void)state;
    for (int fixed = 0; fixed < 2; fixed++) {
        double ends[2][9];
        for (int k = 0; k < 2; k++) {
            scene        *s = load(k, UNTOUCHED);
            scene_motion *m = NULL;
            char         *notes = NULL;
            if (fixed) s->tree.options.passes_most = s->tree.options.passes = 3, s->tree.options.halvings = 0;
            assert_ok(scene_motion_forest(&m, s, NULL, &notes));
            for (int i = 1; i <= 120; i++) assert_ok(m->step(m, i * s->tree.options.time_step));
            m->show(m);
            for (int p = 0; p < 3; p++) memcpy(ends[k] + 3 * p, m->u + 3 * (size_t)s->probes[p].on.items[0], 24);
            assert_int_equal(m->change_count, k == 0 ? 2 : 0);
            if (k == 0) assert_non_null(strstr(notes, "bar.1"));
            m->destroy(m);
            fem_free(notes);
            scene_destroy(s);
        }
        double size = vec3_norm(ends[1]),
               off = fmax(vec3_distance(ends[0], ends[1]), vec3_distance(ends[0] + 6, ends[1] + 6));
        printf("%s passes: others %.2g of their way off, the stitched one %.2g\n", fixed ? "fixed" : "settled",
               off / size, vec3_distance(ends[0] + 3, ends[1] + 3) / size);
        assert_true(size > 1e-2 && vec3_distance(ends[0] + 3, ends[1] + 3) > 1e-3 * size);
        assert_true(off <= (fixed ? 1e-13 : 1e-5) * size);
    }
}

// The class is its own while there are stitches, and that of the part at last; energy changes by that of the springs.
static void test_leaves_and_returns(void **state) {
    (void)state;
    scene         *s = load(0, NULL);
    scene_motion  *m = NULL;
    forest_motion *f;
    char          *notes = NULL;
    int            home = -1;
    double         h = s->tree.options.time_step;
    assert_ok(scene_motion_forest(&m, s, NULL, &notes));
    f = (forest_motion *)m;
    for (int i = 1; i * h < 3; i++) {
        assert_ok(m->step(m, i * h));
        bool own = f->forest->own[1] != NULL;
        assert_null(f->forest->own[0]), assert_null(f->forest->own[2]);
        if (i * h < 0.2 - 1e-9) assert_false(own);
        if (i * h > 0.2 + h && i * h < 0.4 - h) assert_true(own);
        if (!own && i * h > 0.4 && home < 0) home = i;
        if (home >= 0) assert_false(own); // and stays
    }
    printf("back in the class of its part at %.3g s\n", home * h);
    assert_true(home > 0);
    assert_int_equal(m->change_count, 2);
    for (int k = 0; k < 2; k++) {
        const solver_rebase_report *r = &m->changes[k].state;
        printf("at %g s: %.4g J, then %.4g J, springs %.3g J, not explained %.2g J\n", m->changes[k].time,
               r->energy_before, r->energy_after, r->springs, r->unexplained);
        assert_string_equal(m->changes[k].instance, "bar.1");
        assert_true(r->energy_before > 1e-4 && r->springs * (k ? -1 : 1) > 0);
    }
    // taking out loses nothing; closing a gap may, as in an inelastic collision, but no more than the springs hold
    const solver_rebase_report *in = &m->changes[0].state, *out = &m->changes[1].state;
    assert_true(fabs(out->unexplained) <= 1e-9 * out->energy_before);
    assert_true(in->unexplained <= 1e-9 * in->energy_before && in->unexplained >= -in->springs);
    m->destroy(m);
    fem_free(notes);
    scene_destroy(s);
}

// Springs have N/m in the world: a bar of twice the size and a stiffness of its own moves as one of a part that is so.
static void test_scaled(void **state) {
    (void)state;
    const char *const scaled[] = {"objects=[{\"part\": \"bar\", \"name\": \"one\", \"scale\": 2, \"stiffness\": 3}, "
                                  "{\"part\": \"bar\", \"name\": \"two\", \"translation\": [0, 1, 0]}]",
                                  "actions=[{\"stitch\": \"one/slit\", \"spring\": 1e4, \"start\": 0.2}]",
                                  "output.probes={\"a\": {\"nearest\": [1.2, 0.1, 0.1]}}", "solver.step=0.0025"};
    const char *const large[] = {
        "objects=[{\"part\": \"bar\", \"name\": \"one\"}, {\"part\": \"bar\", \"name\": \"two\", "
        "\"translation\": [0, 1, 0]}]",
        "actions=[{\"stitch\": \"one/slit\", \"spring\": 1e4, \"start\": 0.2}]",
        "output.probes={\"a\": {\"nearest\": [1.2, 0.1, 0.1]}}",
        "solver.step=0.0025",
        "materials.rubber.young=3e6",
        "parts.bar.mesh={\"box\": {\"element\": \"tet\", \"high\": [1.2, 0.2, 0.2], \"cells\": [12, 2, 2]}}",
        "parts.bar.seams={\"slit\": {\"plane\": {\"point\": [0.62, 0, 0], \"normal\": [1, 0, 0], \"within\": {\"box\": "
        "[[0, 0, 0], [1.2, 0.2, 0.1]]}}}}"};
    const char *const open[] = {scaled[0], "actions=[]", scaled[2], scaled[3]};
    scene_result      a = run(4, scaled, "scaled"), b = run(7, large, "large"), c = run(4, open, "open");
    double            size = vec3_norm(b.probes), off = vec3_distance(a.probes, b.probes) / size;
    printf("scaled instance against a large part: %.2g off, without springs %.2g\n", off,
           vec3_distance(c.probes, b.probes) / size);
    assert_true(size > 1e-3 && vec3_distance(c.probes, b.probes) > 1e-2 * size);
    assert_true(off < 1e-6);
    scene_result_destroy(&a), scene_result_destroy(&b), scene_result_destroy(&c);
}

// Whatever allocation is refused, a change that cannot be made leaves the motion as it was, and the next attempt
// succeeds.
static void test_all_or_nothing(void **state) {
    (void)state;
    const char *const small[] = {
        "parts.bar.modes={\"method\": \"lanczos\", \"linear\": 4, \"count\": 6}",
        "environment.obstacles=[{\"plane\": {\"point\": [0, 0, -0.01], \"normal\": [0, 0, 1]}}]",
        "actions=[{\"stitch\": \"slit\", \"spring\": 1e4, \"start\": 0.1}, {\"force\": [0, 1, "
        "0], \"on\": {\"plane\": {\"point\": [0.6, 0, 0], \"normal\": [1, 0, 0]}}}]"};
    scene *s = load(3, small);
    double ends[2][9], h = s->tree.options.time_step;
    int    refused = 0;
    for (int k = 0; k < 2; k++) {
        scene_motion *m = NULL;
        char         *notes = NULL;
        assert_ok(scene_motion_forest(&m, s, NULL, &notes));
        for (int i = 1; i <= 30; i++) {
            for (long allowed = 0; k == 1 && i * h >= 0.1 && (i - 1) * h < 0.1; allowed += 1 + allowed / 8) {
                double before[9], after[9];
                m->show(m);
                for (int p = 0; p < 3; p++) memcpy(before + 3 * p, m->u + 3 * (size_t)s->probes[p].on.items[0], 24);
                fem_memory_fail_after(allowed);
                fem_status status = m->step(m, i * h);
                fem_memory_fail_after(-1);
                if (status == FEM_OK) goto next;
                assert_int_equal(status, FEM_NO_MEMORY);
                m->show(m);
                for (int p = 0; p < 3; p++) memcpy(after + 3 * p, m->u + 3 * (size_t)s->probes[p].on.items[0], 24);
                if (m->change_count == 0) assert_memory_equal(before, after, sizeof after);
                refused++;
            }
            assert_ok(m->step(m, i * h));
        next:;
        }
        m->show(m);
        for (int p = 0; p < 3; p++) memcpy(ends[k] + 3 * p, m->u + 3 * (size_t)s->probes[p].on.items[0], 24);
        assert_int_equal(m->change_count, 3); // "slit" means all of them
        m->destroy(m);
        fem_free(notes);
    }
    printf("%d attempts refused\n", refused);
    assert_true(refused > 10);
    assert_true(test_relative_error(9, ends[1], ends[0]) <= 1e-9);
    scene_destroy(s);
}

// A run that goes on from its checkpoint, between the changes and behind them, ends in the same state to the last bit.
static void test_checkpoint(void **state) {
    (void)state;
    scene       *s = load(0, NULL);
    scene_result whole = {0};
    assert_ok(scene_run(s, test_temporary("whole"), 0, NULL, &whole));
    for (int k = 0; k < 2; k++) {
        scene_result half = {0}, rest = {0};
        char         folder[512];
        snprintf(folder, sizeof folder, "%s", test_temporary(k ? "behind" : "between"));
        s->checkpoint = 1, s->resume = false;
        assert_ok(scene_run(s, folder, k ? 24 : 15, NULL, &half));
        s->resume = true;
        assert_ok(scene_run(s, folder, 0, NULL, &rest));
        assert_memory_equal(whole.probes, rest.probes, 9 * sizeof *whole.probes);
        scene_result_destroy(&half), scene_result_destroy(&rest);
    }
    scene_result_destroy(&whole);
    scene_destroy(s);
}

// An instance that hangs on another is stitched as well.
static void test_hanging(void **state) {
    (void)state;
    const char *const hung[] = {
        "objects=[{\"part\": \"bar\", \"name\": \"post\", \"children\": [{\"part\": \"bar\", \"name\": \"arm\", "
        "\"translation\": [0.6, 0, 0]}]}]",
        "actions=[{\"stitch\": \"arm/slit\", \"spring\": 1e4, \"start\": 0.2}]", "environment.gravity=[0, 0, -0.5]",
        "output.probes={\"a\": {\"nearest\": [1.2, 0.05, 0.05]}}"};
    const char *const open[] = {hung[0], "actions=[]", hung[2], hung[3]};
    scene_result      a = run(4, hung, "hung"), b = run(4, open, "hung-open");
    double            size = vec3_norm(b.probes);
    printf("a hanging bar, stitched: %.3g m, open %.3g m\n", vec3_norm(a.probes), size);
    assert_int_equal(a.change_count, 1);
    assert_true(size > 1e-2 && isfinite(vec3_norm(a.probes)));
    assert_true(vec3_norm(a.probes) < 1.1 * size && vec3_distance(a.probes, b.probes) > 1e-3 * size);
    scene_result_destroy(&a), scene_result_destroy(&b);
}

// What cannot be stitched is named.
static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *overrides[2], *text;
    } cases[] = {
        {{"actions=[{\"stitch\": \"beam/slit\"}]", NULL}, "no instance \"beam\""},
        {{"actions=[{\"stitch\": \"bar.1/slot\"}]", NULL}, "has a seam \"slot\""},
        {{"actions=[{\"stitch\": \"slot\"}]", NULL}, "has a seam \"slot\""},
        {{"actions=[{\"unstitch\": \"bar.1/slit\"}]", NULL}, "nothing of the seam is stitched"},
        {{"actions=[{\"stitch\": \"bar.1/slit\", \"spring\": 1e4}, {\"stiffness\": 2, \"domain\": \"bar.1\"}]", NULL},
         "keeps its stiffness"},
        {{"actions=[{\"stitch\": \"bar.1/slit\", \"within\": {\"box\": [[0, 0, 0], [0.6, 0.1, 0.1]]}}]", NULL},
         "selects nothing of the instances"},
        {{"actions=[{\"stitch\": \"bar.1/slit\", \"spring\": 1e30}]", NULL}, "stiffness"},
        {{"parts.bar={\"mesh\": {\"box\": {\"element\": \"tet\", \"high\": [0.6, 0.1, 0.1], \"cells\": [12, 2, 2]}}, "
          "\"material\": \"rubber\", \"modes\": {\"method\": \"lanczos\", \"linear\": 12, \"count\": 24}, "
          "\"seams\": {\"slit\": {\"plane\": {\"point\": [0.31, 0, 0], \"normal\": [1, 0, 0], \"within\": {\"box\": "
          "[[0, 0, 0], [0.6, 0.1, 0.05]]}}}}}",
          NULL},
         "stands free"},
        {{"objects=[{\"part\": \"bar\", \"children\": [{\"part\": \"bar\", \"translation\": [0.6, 0, 0]}]}]",
          "actions=[{\"stitch\": \"slit\"}]"},
         "carries others"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scene *s = NULL;
        int    count = cases[i].overrides[1] ? 2 : 1;
        assert_fails(scene_load(&s, test_write("forest_stitch.json", BARS), count, cases[i].overrides), FEM_BAD_INPUT,
                     cases[i].text);
        printf("%s\n", fem_message());
        assert_non_null(strstr(fem_message(), "actions["));
    }
}

// the scene that is shipped runs to its end, and the sewn bar has swung otherwise than an open one
static void test_shipped(void **state) {
    (void)state;
    scene       *s = NULL;
    scene_result r = {0};
    assert_ok(scene_load(&s, "scenes/stitching/bars.json", 0, NULL));
    assert_ok(scene_run(s, test_temporary("bars"), 0, NULL, &r));
    assert_int_equal(r.frames, 61);
    double apart = 0;
    for (int i = 0; i < 3; i++) apart = fmax(apart, fabs(r.probes[i] - r.probes[3 + i]));
    printf("sewn and open end %.1e m apart\n", apart);
    assert_true(apart > 1e-4);
    scene_result_destroy(&r);
    scene_destroy(s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_others),     cmocka_unit_test(test_leaves_and_returns),
    cmocka_unit_test(test_scaled),     cmocka_unit_test(test_all_or_nothing),
    cmocka_unit_test(test_checkpoint), cmocka_unit_test(test_hanging),
    cmocka_unit_test(test_refusals),   cmocka_unit_test(test_shipped),
};

int main(int argc, char **argv) {
    (void)argc;
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
