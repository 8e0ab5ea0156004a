// Wind in scenes: the drag of a plate is the formula's, runs in it are what a resumed run is, and long steps hold.
#include "tests/support.h"

#include "libscene/internal.h"

#include <math.h>
#include <string.h>

static const char *const PLATE =
    "{\"limber\": 1,"
    "\"materials\": {\"board\": {\"density\": 500, \"young\": 1e10, \"poisson\": 0.3}},"
    "\"parts\": {\"plate\": {\"mesh\": {\"box\": {\"high\": [0.4, 0.02, 0.3], \"cells\": [8, 1, 6]}}, \"material\": "
    "\"board\","
    " \"drag\": {\"normal\": 1.17, \"tangential\": 0, \"samples\": %d}, \"modes\": {\"count\": 6}}},"
    "\"objects\": [{\"part\": \"plate\", \"rotation\": [0, 0, %.17g], \"decompose\": {\"count\": 1, \"modes\": 0}}],"
    "\"environment\": {\"wind\": {\"speed\": 8, \"direction\": [0, 1, 0], \"ground\": -1e4, \"reference_height\": 1e4,"
    " \"intensity\": 0, \"gust\": 0}},"
    "\"solver\": {\"method\": \"reduced\", \"step\": 1e-3},"
    "\"output\": {\"frames\": 2, \"rate\": 1000, \"formats\": [\"vtu\"], \"probes\": {\"all\": {\"region\": \"%s\"}}}}";

static const char *write_scene(const char *name, const char *text) {
    static char path[600];
    snprintf(path, sizeof path, "%s", test_temporary(name));
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return path;
}

// What a plate that starts at rest is pushed by: f = m a, and its mean moves by a h^2 / 2 in the first step. Along the
// wind and across it.
static void first_push(int samples, double turn, double *along, double *across) {
    char         text[2000];
    scene       *s = NULL;
    scene_result result = {0};
    snprintf(text, sizeof text, PLATE, samples, turn, "all");
    assert_ok(scene_load(&s, write_scene("plate.json", text), 0, NULL));
    assert_true(s->windy && s->tree.domains.count == 1);
    assert_ok(scene_run(s, test_temporary("plate"), 0, NULL, &result));
    double h = 1e-3, m = 500 * 0.4 * 0.02 * 0.3;
    *along = 2 * m * result.probes[1] / (h * h);
    *across = 2 * m * result.probes[0] / (h * h);
    scene_result_destroy(&result);
    scene_destroy(s);
}

// a plate across the wind feels 1/2 rho C A U^2, and its narrow sides nothing; aslant it is lifted too
static void test_drag(void **state) {
    (void)state;
    double formula = 0.5 * 1.2 * 1.17 * 0.12 * 64, along, across, turn = 0.5;
    first_push(40, 0, &along, &across);
    along *= 1 + 1e-3 * 2 * formula / 8 / 1.2; // the force is that of the end of the step: m + h D moves
    printf("drag %.6f N, formula %.6f N\n", along, formula);
    assert_true(fabs(along / formula - 1) < 1e-5 && fabs(across) < 1e-5 * formula);
    first_push(40, turn, &along, &across);
    // the broad sides feel U cos a, the narrow ones U sin a
    double broad = formula * pow(cos(turn), 2), narrow = formula * 0.02 / 0.4 * pow(sin(turn), 2);
    double drag = broad * cos(turn) + narrow * sin(turn), lift = -broad * sin(turn) + narrow * cos(turn);
    printf("aslant: drag %.5f of %.5f, lift %.5f of %.5f N\n", along, drag, across, lift);
    assert_true(fabs(along / drag - 1) < 3e-3 && fabs(across / lift - 1) < 3e-3);
}

// a light flag with steps a hundred times as long as explicit drag would bear stays calm, and ends where short steps do
static void test_long_steps(void **state) {
    (void)state;
    double      tip[2];
    const char *steps[] = {"solver.step=0.0333", "solver.step=0.001"};
    const char *text =
        "{\"limber\": 1,"
        "\"materials\": {\"film\": {\"density\": 30, \"young\": 1e8, \"poisson\": 0.3}},"
        "\"parts\": {\"flag\": {\"mesh\": {\"box\": {\"high\": [0.1, 0.0005, 0.06], \"cells\": [10, 1, 6]}},"
        " \"material\": \"film\", \"fixed\": \"x0\", \"forces\": {\"type\": \"linear\"}, \"modes\": {\"count\": 8, "
        "\"linear\": 3}}},"
        "\"objects\": [{\"part\": \"flag\"}],"
        "\"environment\": {\"wind\": {\"speed\": 6, \"direction\": [0.3, 1, 0], \"intensity\": 0, \"gust\": 0,"
        " \"ground\": -10}},"
        "\"solver\": {\"method\": \"reduced\", \"step\": 0.01, \"damping\": {\"stiffness\": 0.002}},"
        "\"output\": {\"frames\": 90, \"rate\": 30, \"formats\": [\"vtu\"], \"probes\": {\"tip\": \"x1\"}}}";
    const char *path = write_scene("flag.json", text);
    double      m = 30 * 0.0005, D = 1.2 * 1.2 * 6; // per area
    printf("steps of %.0f times what explicit drag bears\n", 0.0333 * D / (2 * m));
    for (int k = 0; k < 2; k++) {
        scene       *s = NULL;
        scene_result result = {0};
        assert_ok(scene_load(&s, path, 1, &steps[k]));
        assert_ok(scene_run(s, test_temporary("flag"), 0, NULL, &result));
        tip[k] = result.probes[1];
        scene_result_destroy(&result);
        scene_destroy(s);
    }
    printf("tip at rest in the wind: %.5f m with long steps, %.5f m with short ones\n", tip[0], tip[1]);
    assert_true(fabs(tip[1]) > 0.001 && fabs(tip[0] / tip[1] - 1) < 0.01);
}

// a soft flag without damping, whose normals turn by several radians in a step of 1/30 s: as far as with short steps
static void test_soft_flag(void **state) {
    (void)state;
    double            far[2] = {0};
    const char *const settings[2][1] = {{"solver.step=0.0333"}, {"solver.step=0.002"}};
    const char       *text =
        "{\"limber\": 1,"
        "\"materials\": {\"film\": {\"density\": 30, \"young\": 1e5, \"poisson\": 0.3}},"
        "\"parts\": {\"flag\": {\"mesh\": {\"box\": {\"high\": [0.1, 0.0005, 0.06], \"cells\": [10, 1, 6]}},"
        " \"material\": \"film\", \"fixed\": \"x0\", \"modes\": {\"count\": 8, \"linear\": 6}}},"
        "\"objects\": [{\"part\": \"flag\"}],"
        "\"environment\": {\"wind\": {\"speed\": 12, \"direction\": [0.3, 1, 0], \"ground\": -10}},"
        "\"solver\": {\"method\": \"reduced\", \"step\": 0.01, \"damping\": {\"ratio\": 0}},"
        "\"output\": {\"frames\": 30, \"rate\": 30, \"formats\": [\"vtu\"], \"probes\": {\"tip\": \"x1\"}}}";
    const char *path = write_scene("soft_flag.json", text);
    for (int k = 0; k < 2; k++) {
        scene       *s = NULL;
        scene_result result = {0};
        assert_ok(scene_load(&s, path, 1, settings[k]));
        assert_ok(scene_run(s, test_temporary("soft_flag"), 0, NULL, &result));
        far[k] = result.max_displacement;
        scene_result_destroy(&result);
        scene_destroy(s);
    }
    printf("a soft flag moves by %.5f m with steps of 1/30 s, %.5f m with steps of 1/500 s\n", far[0], far[1]);
    assert_true(far[1] > 0.01 && far[1] < 0.1 && fabs(far[0] / far[1] - 1) < 0.1);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_drag), cmocka_unit_test(test_long_steps),
                                       cmocka_unit_test(test_soft_flag)};
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
