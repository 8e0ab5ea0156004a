// Checkpoints: a run that was stopped and resumed leaves the same files, byte for byte, as one that was not; the states
// of the solvers are complete; and nothing that is damaged, foreign or invented is taken for a checkpoint.
#include "tests/program_case.h"
#include "libscene/internal.h"
#include "libscene/motion.h"
#include "libscene/checkpoint.h"

#include <dirent.h>
#include <unistd.h>

enum { OVERRIDES = 4, FRAMES = 13, EVERY = 3 };

typedef struct checkpoint_case {
    const char *what, *scene, *overrides[OVERRIDES];
} checkpoint_case;

// The first four are one of each method.
static const checkpoint_case cases[] = {
    {"full, driven support", "shaking_tower", {"output.formats=[\"vtu\",\"obj\"]"}},
    {"held, changing material",
     "softening",
     {"output.sample=\"step\"", "actions.0.start=0.011", "actions.1.start=0.006"}}, // the second comes first
    {"free, contact", "ball_on_stairs", {"objects.0.velocity=[0.8,0,-6]"}},
    {"tree with springs, one pass", "gate", {"solver.passes=1"}},
    {"full, linear material", "cantilever", {"materials.rubber.type=\"linear\""}},
    {"full, conjugate gradients", "cantilever", {"solver.linear=\"pcg\""}},
    {"held", "spoon", {NULL}},
    {"held, contact",
     "spoon",
     {"environment.obstacles=[{\"plane\":{\"point\":[0,0,0.061],\"normal\":[0,0,-1]}}]",
      "environment.contact.stiffness=1e6", "actions.0.force=[0,0,1500]"}},
    {"full, many vertices", "leaf", {NULL}},
    {"free, Newmark", "ball_on_stairs", {"solver.integrator=\"newmark\"", "environment.obstacles=[]"}},
    {"tree, free root", "links", {NULL}},
    {"tree, driven root", "mast", {NULL}},
    {"tree, Newmark",
     "plant",
     {"solver.integrator=\"newmark\"", "output.formats=[\"vtu\"]", "actions=[{\"stiffness\":2,\"start\":0.01}]"}},
};
enum { CASES = sizeof cases / sizeof *cases };

static scene *load_case(const checkpoint_case *c) {
    char   path[200];
    int    count = 0;
    scene *s = NULL;
    while (count < OVERRIDES && c->overrides[count]) count++;
    snprintf(path, sizeof path, "scenes/%s.json", c->scene);
    assert_ok(scene_load(&s, path, count, c->overrides));
    assert_ok(scene_set_cache(s, test_temporary("cache")));
    return s;
}

// ---- files -------------------------------------------------------------------------------------------------------

static char *read_file(const char *folder, const char *name, size_t *size) {
    char  path[900], *text = NULL;
    FILE *file;
    snprintf(path, sizeof path, "%.500s/%.300s", folder, name);
    file = fopen(path, "rb");
    if (!file) return NULL;
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    text = malloc(*size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, *size, file), *size);
    fclose(file);
    return text;
}

static void write_file(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

// Files of one folder that the other has not or has otherwise; checkpoints do not count. *files: compared.
static int count_differences(const char *a, const char *b, int *files) {
    DIR *open = opendir(a);
    int  different = 0;
    assert_non_null(open);
    *files = 0;
    for (struct dirent *entry; (entry = readdir(open));) {
        size_t one = 0, two = 0;
        if (entry->d_name[0] == '.' || strstr(entry->d_name, ".checkpoint")) continue;
        char *x = read_file(a, entry->d_name, &one), *y = read_file(b, entry->d_name, &two);
        different += !x || !y || one != two || memcmp(x, y, one) != 0;
        free(x), free(y);
        ++*files;
    }
    closedir(open);
    return different;
}

static void assert_same_results(const char *a, const char *b, int least) {
    int files = 0, back = 0;
    assert_int_equal(count_differences(a, b, &files), 0);
    assert_int_equal(count_differences(b, a, &back), 0);
    assert_true(files == back && files >= least);
}

// ---- stopped and resumed -----------------------------------------------------------------------------------------

static bool stop_at(void *context, const char *what, double fraction) {
    return strcmp(what, "simulating") != 0 || fraction < *(const double *)context;
}

static void test_resume(void **unused) {
    (void)unused;
    uint64_t random = 11;
    for (int i = 0; i < CASES; i++) {
        scene       *s = load_case(&cases[i]);
        char         whole[300], parts[300];
        scene_result r = {0};
        s->write_vtu = i < 4; // of the others the numbers in the CSV files tell
        s->write_glb = true;
        snprintf(whole, sizeof whole, "%s/%d", test_temporary("whole"), i);
        snprintf(parts, sizeof parts, "%s/%d", test_temporary("parts"), i);
        assert_ok(scene_run(s, whole, FRAMES, NULL, &r));
        assert_true(r.max_displacement > 1e-9);
        assert_true(!strstr(cases[i].what, "contact") || r.contact.total_contacts > 0);
        double moved = r.max_displacement;
        int    steps = r.steps;
        scene_result_destroy(&r);
        // from frame 4 on there is a checkpoint; stopped twice, anywhere behind it
        double       first = 0.34 + 0.3 * fabs(test_random(&random)), second = first + 0.3 * fabs(test_random(&random));
        fem_progress stop = {stop_at, &first};
        s->checkpoint = EVERY;
        assert_int_equal(scene_run(s, parts, FRAMES, &stop, &r), FEM_STOPPED);
        int first_frames = r.frames;
        scene_result_destroy(&r);
        s->resume = true;
        stop.context = &second;
        assert_int_equal(scene_run(s, parts, FRAMES, &stop, &r), FEM_STOPPED);
        int second_frames = r.frames;
        scene_result_destroy(&r);
        assert_true(first_frames > EVERY && first_frames < FRAMES && second_frames >= first_frames / EVERY * EVERY);
        assert_ok(scene_run(s, parts, FRAMES, NULL, &r));
        assert_true(r.frames == FRAMES && r.steps == steps && r.max_displacement == moved);
        scene_result_destroy(&r);
        assert_same_results(whole, parts, s->write_vtu ? FRAMES + 3 : 2);
        // a run that is complete is resumed too, and nothing changes
        assert_ok(scene_run(s, parts, FRAMES, NULL, &r));
        assert_true(r.frames == FRAMES && r.max_displacement == moved);
        scene_result_destroy(&r);
        assert_same_results(whole, parts, s->write_vtu ? FRAMES + 3 : 2);
        printf("   %-28s moved by %.3g m, stopped with %d and %d frames: same files\n", cases[i].what, moved,
               first_frames, second_frames);
        scene_destroy(s);
    }
}

// ---- states ------------------------------------------------------------------------------------------------------

typedef struct bodies {
    scene         *s;
    fem_body      *body;
    unsigned char *fixed;
    char          *notes;
} bodies;

static scene_motion *make_motion(bodies *b) {
    scene_motion *m = NULL;
    if (b->s->tree.domains.count > 0)
        assert_ok(scene_motion_tree(&m, b->s, b->body, NULL, &b->notes));
    else if (b->s->method == SCENE_REDUCED)
        assert_ok(scene_motion_reduced(&m, b->s, b->body, NULL, &b->notes));
    else
        assert_ok(scene_motion_full(&m, b->s, b->body, b->fixed));
    return m;
}

static bodies make_bodies(const checkpoint_case *c) {
    bodies           b = {.s = load_case(c)};
    fem_body_options options = fem_body_default_options();
    const fem_mesh  *mesh = &b.s->parts[b.s->object].mesh;
    options.quadrature = b.s->parts[b.s->object].quadrature;
    assert_ok(fem_body_create(&b.body, mesh, &options));
    b.fixed = fem_calloc(3 * (size_t)mesh->vertex_count, 1);
    assert_non_null(b.fixed);
    scene_fixed_dofs(b.s, b.fixed);
    return b;
}

static void destroy_bodies(bodies *b) {
    fem_body_destroy(b->body);
    fem_free(b->fixed);
    fem_free(b->notes);
    scene_destroy(b->s);
}

// A copy of a state that was stepped goes on bit by bit, step by step. One that is off by 1e-9 does not: the comparison
// sees what it should.
static void test_states(void **unused) {
    (void)unused;
    for (int i = 0; i < CASES; i++) {
        bodies        b = make_bodies(&cases[i]);
        double        h = b.s->solver.time_step;
        scene_motion *one = make_motion(&b), *two = make_motion(&b), *off = make_motion(&b);
        size_t        size = one->state_size(one), bytes = size * sizeof(double);
        double       *x = malloc(bytes), *y = malloc(bytes);
        assert_true(x && y);
        for (int k = 1; k <= 7; k++) assert_ok(one->step(one, k * h));
        one->save(one, x);
        assert_ok(two->restore(two, 7, x));
        two->save(two, y);
        assert_memory_equal(x, y, bytes);
        for (int k = 8; k <= 19; k++) {
            assert_ok(one->step(one, k * h));
            assert_ok(two->step(two, k * h));
            if (k % 4 == 0) one->show(one), two->show(two);
            one->save(one, x);
            two->save(two, y);
            if (memcmp(x, y, bytes) != 0) fail_msg("%s: step %d differs", cases[i].what, k);
        }
        for (size_t k = 0; k < size; k++) y[k] = x[k] == 1 ? 1 : x[k] * (1 + 1e-9); // flags stay
        assert_ok(off->restore(off, 19, y));
        assert_ok(one->step(one, 20 * h));
        assert_ok(off->step(off, 20 * h));
        one->save(one, x);
        off->save(off, y);
        assert_true(memcmp(x, y, bytes) != 0);
        printf("   %-28s %zu numbers, 12 steps the same\n", cases[i].what, size);
        free(x), free(y);
        one->destroy(one), two->destroy(two), off->destroy(off);
        destroy_bodies(&b);
    }
}

// Numbers that cannot be a state are refused and change nothing.
static void test_bad_states(void **unused) {
    (void)unused;
    const double bad[] = {NAN, INFINITY, 0.5};
    int          refused = 0;
    for (int i = 0; i < 4; i++) {
        bodies        b = make_bodies(&cases[i]);
        double        h = b.s->solver.time_step;
        scene_motion *m = make_motion(&b);
        size_t        size = m->state_size(m), bytes = size * sizeof(double);
        double       *x = malloc(bytes), *y = malloc(bytes);
        assert_true(x && y);
        assert_ok(m->step(m, h));
        m->save(m, x);
        for (int k = 0; k < 3; k++) {
            double kept = x[0];
            x[0] = bad[k]; // a flag
            assert_fails(m->restore(m, 1, x), FEM_BAD_INPUT, k < 2 ? "not finite" : "none of this solver");
            x[0] = kept, kept = x[size - 1];
            if (k < 2) {
                x[size - 1] = bad[k];
                assert_fails(m->restore(m, 1, x), FEM_BAD_INPUT, "not finite");
                x[size - 1] = kept;
            }
            m->save(m, y);
            assert_memory_equal(x, y, bytes);
            refused++;
        }
        if (i >= 2) { // the first number of an orientation
            double kept = x[2];
            x[2] += 0.01;
            assert_fails(m->restore(m, 1, x), FEM_BAD_INPUT, "not a rotation");
            x[2] = kept;
        }
        free(x), free(y);
        m->destroy(m);
        destroy_bodies(&b);
    }
    printf("   %d states refused\n", refused);
}

// ---- damage ------------------------------------------------------------------------------------------------------

static const char BEAM[] =
    "{\"limber\": 1, \"title\": \"a\",\n"
    " \"materials\": {\"rubber\": {\"density\": 1000, \"young\": 1e6, \"poisson\": 0.4}},\n"
    " \"parts\": {\"beam\": {\"mesh\": {\"box\": {\"high\": [1, 0.2, 0.2], \"cells\": [2, 1, 1]}},\n"
    "   \"material\": \"rubber\", \"fixed\": \"x0\"}},\n"
    " \"objects\": [{\"part\": \"beam\"}], \"environment\": {\"gravity\": [0, 0, -9.81]},\n"
    " \"solver\": {\"step\": 0.02}, \"output\": {\"frames\": 6, \"rate\": 50, \"probes\": {\"tip\": \"x1\"}}}\n";

static scene *load_beam(const char *override) {
    scene *s = NULL;
    assert_ok(scene_load(&s, test_write("beam.json", BEAM), override ? 1 : 0, &override));
    return s;
}

// A folder with the results and the checkpoint of six frames, and the same as bytes.
static char *make_run(char folder[300], char path[400], size_t *size) {
    scene *s = load_beam(NULL);
    snprintf(folder, 300, "%s", test_temporary("beam"));
    snprintf(path, 400, "%s/beam.checkpoint", folder);
    s->checkpoint = 2;
    assert_ok(scene_run(s, folder, 0, NULL, NULL));
    scene_destroy(s);
    char *bytes = read_file(folder, "beam.checkpoint", size);
    assert_non_null(bytes);
    return bytes;
}

// every bit of the header and of the table, and one of every eighth byte behind them; every length
static void test_damage(void **unused) {
    (void)unused;
    char   folder[300], path[400];
    size_t size = 0, tried = 0, length = 0;
    char  *bytes = make_run(folder, path, &size), *pvd = read_file(folder, "beam.pvd", &length);
    scene *s = load_beam(NULL);
    s->resume = true;
    assert_ok(scene_run(s, folder, 0, NULL, NULL));
    for (size_t bit = 0; bit < 8 * size; bit += bit < 8 * 320 ? 1 : 61, tried++) {
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
        write_file(path, bytes, size);
        fem_status status = scene_run(s, folder, 0, NULL, NULL);
        if (status != FEM_BAD_INPUT) fail_msg("bit %zu: status %d", bit, (int)status);
        assert_non_null(strstr(fem_message(), "beam.checkpoint: "));
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
    }
    for (size_t cut = 0; cut < size; cut += 7, tried++) {
        write_file(path, bytes, cut);
        assert_int_equal(scene_run(s, folder, 0, NULL, NULL), FEM_BAD_INPUT);
    }
    size_t after = 0;
    char  *left = read_file(folder, "beam.pvd", &after); // the results are as they were
    assert_true(after == length && memcmp(left, pvd, length) == 0);
    printf("   %zu damaged files refused\n", tried);
    free(bytes), free(pvd), free(left);
    scene_destroy(s);
}

static void assert_refused(const char *override, const char *folder, int frames, const char *words) {
    scene *s = load_beam(override);
    s->resume = true;
    assert_fails(scene_run(s, folder, frames, NULL, NULL), FEM_BAD_INPUT, words);
    printf("   %s\n", strrchr(fem_message(), '/') + 1);
    scene_destroy(s);
}

static void test_foreign(void **unused) {
    (void)unused;
    char     folder[300], path[400], frame[400];
    size_t   size = 0;
    char    *bytes = make_run(folder, path, &size);
    fem_hash key;
    assert_refused("environment.gravity=[0,0,-9.8]", folder, 0, "of another scene");
    assert_refused("parts.beam.fixed=\"x1\"", folder, 0, "of another scene");
    assert_refused("solver.step=0.01", folder, 0, "of another scene");
    assert_refused(NULL, folder, 3, "is at frame 6, but 3 frames were asked for");
    assert_refused(NULL, test_temporary("nowhere"), 0, "nothing to resume");
    // a title and a number of frames change nothing of what was done
    scene *s = load_beam("title=\"b\"");
    s->resume = true;
    assert_ok(scene_run(s, folder, 9, NULL, NULL));
    scene_destroy(s);
    // rightly sealed, but not what this scene's checkpoints hold
    s = load_beam(NULL);
    assert_ok(scene_checkpoint_key(s, &key));
    scene_checkpoint c = {0}, odd;
    assert_ok(scene_checkpoint_read(&c, s, path, key));
    odd = c, odd.state_size--;
    assert_ok(scene_checkpoint_write(&odd, path, key));
    assert_refused(NULL, folder, 0, "numbers, expected");
    odd = c, odd.rows--;
    assert_ok(scene_checkpoint_write(&odd, path, key));
    assert_refused(NULL, folder, 0, "not those of this scene");
    odd = c, odd.frames = 0;
    assert_ok(scene_checkpoint_write(&odd, path, key));
    assert_refused(NULL, folder, 0, "has 0 frames");
    double times[6] = {0, 0.02, NAN, 0.06, 0.08, 0.1};
    odd = c, odd.times = times;
    assert_ok(scene_checkpoint_write(&odd, path, key));
    assert_refused(NULL, folder, 0, "not finite");
    write_file(path, bytes, size);
    snprintf(frame, sizeof frame, "%s/beam_00003.vtu", folder);
    assert_int_equal(unlink(frame), 0);
    assert_refused(NULL, folder, 0, "the frame is missing");
    scene_checkpoint_destroy(&c);
    // a run from the start removes the checkpoint of the one before
    assert_ok(scene_run(s, folder, 0, NULL, NULL));
    assert_int_not_equal(access(path, F_OK), 0);
    scene_destroy(s);
    free(bytes);
}

// The frames of a .glb beside the checkpoint: none is taken that this run has not written, and the results stay.
static void test_trail(void **unused) {
    (void)unused;
    char   folder[300], path[400];
    size_t size = 0, length = 0, after = 0;
    scene *s = load_beam("output.formats=[\"glb\"]");
    snprintf(folder, sizeof folder, "%s", test_temporary("trail"));
    snprintf(path, sizeof path, "%s/beam.checkpoint.frames", folder);
    s->checkpoint = 2;
    assert_ok(scene_run(s, folder, 0, NULL, NULL));
    char *bytes = read_file(folder, "beam.checkpoint.frames", &size), *glb = read_file(folder, "beam.glb", &length);
    assert_true(bytes && glb && size == 6 * 3 * 12 * sizeof(double));
    s->resume = true;
    for (size_t bit = 0; bit < 8 * size; bit += 997) {
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
        write_file(path, bytes, size);
        assert_fails(scene_run(s, folder, 9, NULL, NULL), FEM_BAD_INPUT, "not those of the checkpoint");
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
    }
    for (size_t cut = 0; cut < size; cut += 101) {
        write_file(path, bytes, cut);
        assert_fails(scene_run(s, folder, 9, NULL, NULL), FEM_BAD_INPUT, "too short for the 6 frames");
    }
    assert_int_equal(unlink(path), 0);
    assert_fails(scene_run(s, folder, 9, NULL, NULL), FEM_BAD_INPUT, "cannot be read");
    char *left = read_file(folder, "beam.glb", &after);
    assert_true(left && after == length && memcmp(left, glb, length) == 0);
    write_file(path, bytes, size);
    assert_ok(scene_run(s, folder, 9, NULL, NULL));
    s->resume = false, s->checkpoint = 0; // a run from the start leaves none of them
    assert_ok(scene_run(s, folder, 0, NULL, NULL));
    assert_int_not_equal(access(path, F_OK), 0);
    free(bytes), free(glb), free(left);
    scene_destroy(s);
}

// Every allocation of a resumed run may fail; the checkpoint stays good, and at last the files are right.
static void test_memory(void **unused) {
    (void)unused;
    char folder[300], whole[300];
    long failures = 0;
    fem_set_threads(1);
    scene *s = load_beam("output.formats=[\"vtu\",\"glb\"]");
    snprintf(folder, sizeof folder, "%s", test_temporary("memory"));
    s->checkpoint = 2;
    assert_ok(scene_run(s, folder, 0, NULL, NULL));
    s->checkpoint = 0;
    snprintf(whole, sizeof whole, "%s", test_temporary("whole_beam"));
    assert_ok(scene_run(s, whole, FRAMES, NULL, NULL));
    s->resume = true;
    s->checkpoint = 100;
    long held = fem_memory_blocks();
    for (;; failures++) {
        fem_memory_fail_after(failures);
        fem_status status = scene_run(s, folder, FRAMES, NULL, NULL);
        fem_memory_fail_after(-1);
        assert_int_equal(fem_memory_blocks(), held);
        if (status == FEM_OK) break;
        if (status != FEM_NO_MEMORY) fail_msg("allocation %ld: %s", failures, fem_message());
    }
    assert_same_results(whole, folder, FRAMES + 3);
    assert_true(failures > 50);
    printf("   %ld failing allocations survived\n", failures);
    fem_set_threads(0);
    scene_destroy(s);
}

// ---- the program -------------------------------------------------------------------------------------------------

static void test_program(void **unused) {
    (void)unused;
    char   folder[300], path[400], scene_file[300];
    size_t size = 0;
    snprintf(scene_file, sizeof scene_file, "%s", test_write("beam.json", BEAM));
    snprintf(folder, sizeof folder, "%s", test_temporary("program"));
    snprintf(path, sizeof path, "%s/beam.checkpoint", folder);
    assert_int_equal(limber("run %s -q -o %s --resume", scene_file, folder), 2);
    assert_says(result.err, "nothing to resume");
    assert_int_equal(limber("run %s -q -o %s -n 4 --checkpoint 2", scene_file, folder), 0);
    assert_int_equal(limber("run %s -q -o %s --resume", scene_file, folder), 0);
    assert_int_equal(limber("run %s -q -o %s --checkpoint 0", scene_file, folder), 2);
    assert_int_equal(limber("run scenes/hook.json -o %s --resume", folder), 2);
    assert_says(result.err, "static");
    char *bytes = read_file(folder, "beam.checkpoint", &size);
    bytes[size - 200] ^= 4;
    write_file(path, bytes, size);
    assert_int_equal(limber("run %s -q -o %s --resume", scene_file, folder), 2);
    assert_says(result.err, "checksum");
    printf("   %s", result.err);
    free(bytes);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resume), cmocka_unit_test(test_states),  cmocka_unit_test(test_bad_states),
        cmocka_unit_test(test_damage), cmocka_unit_test(test_foreign), cmocka_unit_test(test_memory),
        cmocka_unit_test(test_trail),  cmocka_unit_test(test_program),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
