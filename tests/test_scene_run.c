// Scenes run: every scene of scenes/, the files that a run leaves, how it ends when it is stopped or fails, and
// agreement with CalculiX's nonlinear statics and dynamics through scene files.
#include "tests/support.h"
#include "libscene/internal.h"

#include <dirent.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static const char BEAM[] =
    "{\n"
    "  \"limber\": 1,\n"
    "  \"materials\": {\"rubber\": {\"density\": 1000, \"young\": 1e6, \"poisson\": 0.4}},\n"
    "  \"parts\": {\"beam\": {\"mesh\": {\"box\": {\"high\": [1, 0.2, 0.2], \"cells\": [5, 1, 1]}},\n"
    "    \"material\": \"rubber\", \"fixed\": \"x0\"}},\n"
    "  \"objects\": [{\"part\": \"beam\"}],\n"
    "  \"environment\": {\"gravity\": [0, 0, -9.81]},\n"
    "  \"actions\": [{\"force\": [0, 1, 0], \"on\": \"x1\"}],\n"
    "  \"solver\": {\"step\": 0.01},\n"
    "  \"output\": {\"frames\": 6, \"rate\": 50, \"probes\": {\"tip\": \"x1\"}}\n"
    "}\n";

static scene *load(const char *path, int count, const char *const *overrides) {
    scene *s = NULL;
    assert_ok(scene_load(&s, path, count, overrides));
    return s;
}

static void read_text(char **text, const char *folder, const char *name) {
    char   path[600];
    size_t size = 0;
    snprintf(path, sizeof path, "%.400s/%.150s", folder, name);
    assert_ok(fem_file_read(text, &size, path));
}

static int count_text(const char *text, const char *word) {
    int count = 0;
    for (const char *at = text; (at = strstr(at, word)); at++) count++;
    return count;
}

// Number of .vtu files in a folder; anything that is not a result is an error. .obj files come in equal number, or
// none.
static int count_frames(const char *folder) {
    DIR *open = opendir(folder);
    int  frames = 0, surfaces = 0;
    assert_non_null(open);
    for (struct dirent *entry; (entry = readdir(open));) {
        const char *name = entry->d_name, *ending = strrchr(name, '.');
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
        bool known =
            ending && (strcmp(ending, ".vtu") == 0 || strcmp(ending, ".pvd") == 0 || strcmp(ending, ".csv") == 0 ||
                       strcmp(ending, ".obj") == 0 || strcmp(ending, ".glb") == 0);
        if (!known) fail_msg("%s was left in the folder of the results", name);
        frames += strcmp(ending, ".vtu") == 0;
        surfaces += strcmp(ending, ".obj") == 0;
    }
    closedir(open);
    assert_true(surfaces == 0 || surfaces == frames);
    return frames;
}

// The .pvd lists exactly the frames on disk, each a whole mesh of finite numbers; the CSV files have `rows` rows.
static void check_results(const scene *s, const char *folder, int frames, int rows) {
    char     name[128];
    fem_mesh mesh = {0};
    snprintf(name, sizeof name, "%.100s.pvd", s->name);
    char *pvd = NULL, *energies = NULL, *probes = NULL;
    read_text(&pvd, folder, name);
    read_text(&energies, folder, "energies.csv");
    assert_int_equal(count_text(pvd, "<DataSet"), frames);
    assert_int_equal(count_frames(folder), frames);
    for (int i = 0; i < frames; i++) {
        char path[800];
        snprintf(name, sizeof name, "%.100s_%05d.vtu", s->name, i);
        assert_non_null(strstr(pvd, name));
        snprintf(path, sizeof path, "%.500s/%s", folder, name);
        assert_ok(fem_mesh_read(&mesh, path));
        assert_int_equal(mesh.vertex_count, s->parts[s->object].mesh.vertex_count);
        fem_mesh_destroy(&mesh);
    }
    assert_int_equal(count_text(energies, "\n"), rows + 1);
    assert_null(strstr(energies, "nan"));
    if (s->probe_count > 0) {
        read_text(&probes, folder, "probes.csv");
        assert_int_equal(count_text(probes, "\n"), rows + 1);
        fem_free(probes);
    }
    fem_free(pvd);
    fem_free(energies);
}

// ---- scenes
// ------------------------------------------------------------------------------------------------------------------

// every scene of scenes/ runs, writes what it says, and the body moves; with LIMBER_LONG to its end
static void test_all_scenes(void **state) {
    (void)state;
    DIR *folder = opendir("scenes");
    int  count = 0;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char         path[512];
        scene_result result;
        if (!strstr(entry->d_name, ".json") || strstr(entry->d_name, ".schema.json")) continue;
        snprintf(path, sizeof path, "scenes/%.400s", entry->d_name);
        scene      *s = load(path, 0, NULL);
        const char *out = test_temporary(entry->d_name);
        bool        dynamic = s->method != SCENE_STATIC;
        int         frames = getenv("LIMBER_LONG") ? s->frames : 4; // to their end
        assert_ok(scene_run(s, out, frames, NULL, &result));
        assert_int_equal(result.frames, dynamic ? frames : 1);
        assert_int_equal(result.steps, dynamic ? (frames - 1) * s->steps_per_frame : 0);
        if (s->write_vtu)
            check_results(s, out, result.frames, dynamic ? (s->sample_steps ? result.steps + 1 : frames) : 1);
        assert_true(result.max_displacement > 1e-9);
        printf("%-20s %6d vertices, moved by %.3g m, %.2f s\n", entry->d_name, s->parts[s->object].mesh.vertex_count,
               result.max_displacement, result.seconds);
        scene_result_destroy(&result);
        scene_destroy(s);
        count++;
    }
    closedir(folder);
    assert_true(count >= 7);
}

// a step of dynamics does what the solver does when it is driven by hand: same numbers, bit by bit
static void test_same_as_solver(void **state) {
    (void)state;
    scene            *s = load(test_write("beam.json", BEAM), 0, NULL);
    scene_result      result;
    fem_body         *body = NULL;
    solver_full      *solver = NULL;
    const scene_part *part = &s->parts[0];
    int               n = 3 * part->mesh.vertex_count;
    unsigned char    *fixed = fem_calloc((size_t)n, 1);
    double           *load_vector = fem_calloc((size_t)n, sizeof *load_vector), probe[3] = {0}, force[3] = {0, 1, 0},
           gravity[3] = {0, 0, -9.81};
    assert_ok(scene_run(s, test_temporary("same"), 0, NULL, &result));
    for (int i = 0; i < part->fixed.count; i++) memset(fixed + 3 * part->fixed.items[i], 1, 3);
    solver_options options = solver_default_options();
    options.time_step = 0.01;
    assert_ok(fem_body_create(&body, &part->mesh, &(fem_body_options){.quadrature = 2}));
    assert_ok(solver_add_gravity(body, gravity, load_vector));
    solver_add_vertex_force(s->actions[0].load.on.count, s->actions[0].load.on.items, force, load_vector);
    assert_ok(solver_full_create(&solver, body, fixed, &options));
    solver_full_set_load(solver, load_vector);
    for (int i = 0; i < 10; i++) assert_ok(solver_full_step(solver));
    const fem_set *tip = fem_mesh_vertex_set(&part->mesh, "x1");
    for (int i = 0; i < tip->count; i++)
        vec3_axpy(probe, 1.0 / tip->count, solver_full_state(solver)->u + 3 * tip->items[i]);
    double difference = vec3_distance(probe, result.probes);
    assert_int_equal(result.steps, 10);
    assert_true(vec3_norm(probe) > 1e-3 && difference <= 1e-15);
    printf("tip moved by %.6g m, difference %.1e\n", vec3_norm(probe), difference);
    solver_full_destroy(solver);
    fem_body_destroy(body);
    fem_free(fixed);
    fem_free(load_vector);
    scene_result_destroy(&result);
    scene_destroy(s);
}

// a moved support goes exactly where its keyframes say
static void test_support_motion(void **state) {
    (void)state;
    const char *const overrides[] = {
        "actions=[{\"move\": {\"keyframes\": [{\"time\": 0.1, \"translation\": [0, 0.05, 0]}]}, \"on\": \"x0\"}]",
        "output.probes={\"base\": \"x0\", \"tip\": \"x1\"}", "output.sample=step"};
    scene       *s = load(test_write("beam.json", BEAM), 3, overrides);
    scene_result result;
    assert_ok(scene_run(s, test_temporary("support"), 0, NULL, &result));
    double error = fabs(result.probes[1] - 0.05) + fabs(result.probes[0]) + fabs(result.probes[2]);
    assert_true(error < 1e-12);
    assert_true(fabs(result.probes[4]) < 0.049 && fabs(result.probes[4]) > 1e-6); // the tip lags behind
    check_results(s, test_temporary("support"), 6, 11);
    printf("support off by %.1e m, tip at %.4g of its way\n", error, result.probes[4] / 0.05);
    scene_result_destroy(&result);
    scene_destroy(s);
}

// ---- endings
// ------------------------------------------------------------------------------------------------------------------

typedef struct stopper {
    int reports, allowed;
} stopper;

static bool stop_later(void *context, const char *what, double fraction) {
    stopper *s = context;
    (void)what;
    assert_true(fraction >= 0 && fraction <= 1);
    return s->reports++ < s->allowed;
}

// wherever a run is stopped, the .pvd lists the frames that are on disk, whatever lay there before
static void test_stop(void **state) {
    (void)state;
    scene      *s = load(test_write("beam.json", BEAM), 0, NULL);
    const char *folder = test_temporary("stopped");
    int         stopped = 0, most = 0;
    for (int allowed = 0;; allowed++) {
        stopper      when = {.allowed = allowed};
        scene_result result;
        fem_progress progress = {stop_later, &when};
        fem_status   status = scene_run(s, folder, 0, &progress, &result);
        if (status == FEM_OK) {
            assert_int_equal(result.frames, 6);
            check_results(s, folder, 6, 6);
            scene_result_destroy(&result);
            break;
        }
        assert_int_equal(status, FEM_STOPPED);
        if (result.frames > 0) check_results(s, folder, result.frames, result.frames);
        if (result.frames > most) most = result.frames;
        scene_result_destroy(&result);
        stopped++;
    }
    assert_true(stopped >= 11 && most == 6);
    printf("stopped at %d places\n", stopped);
    // a shorter run replaces a longer one
    assert_ok(scene_run(s, folder, 2, NULL, NULL));
    check_results(s, folder, 2, 2);
    scene_destroy(s);
}

// a run that cannot go on says when and where, keeps its frames, and writes none that is not finite
static void test_unstable(void **state) {
    (void)state;
    const char *const overrides[] = {"actions.0.force=[-1e9, 0, 0]", "actions.0.start=0.045",
                                     "solver.newton.iterations=3"};
    scene            *s = load(test_write("beam.json", BEAM), 3, overrides);
    scene_result      result;
    const char       *folder = test_temporary("unstable");
    fem_status        status = scene_run(s, folder, 0, NULL, &result);
    assert_true(status == FEM_UNSTABLE || status == FEM_NO_CONVERGENCE || status == FEM_INDEFINITE);
    assert_non_null(strstr(fem_message(), "beam.json: part \"beam\": step 5: t = 0.05 s"));
    assert_non_null(strstr(fem_message(), "vertex"));
    assert_non_null(strstr(fem_message(), "region \"all\""));
    assert_int_equal(result.frames, 3);
    check_results(s, folder, 3, 3);
    printf("%s\n", fem_message());
    scene_result_destroy(&result);
    scene_destroy(s);
}

// a folder that cannot be made or written is an error of output, and the message names it
static void test_bad_folder(void **state) {
    (void)state;
    scene       *s = load(test_write("beam.json", BEAM), 0, NULL);
    scene_result result;
    char         folder[600];
    snprintf(folder, sizeof folder, "%s/inside", test_write("a_file", "x"));
    assert_fails(scene_run(s, folder, 0, NULL, &result), FEM_IO, "a_file");
    assert_fails(scene_run(s, test_temporary("a_file"), 0, NULL, &result), FEM_IO, "a_file");
    assert_int_equal(result.frames, 0);
    scene_result_destroy(&result);
    scene_destroy(s);
    printf("two folders refused\n");
}

// every allocation of a run may fail: the status says so, nothing is left in memory, and what is on disk is whole
static void test_allocation_failures(void **state) {
    (void)state;
    const char *const methods[] = {"solver.method=full", "solver.method=static"};
    long              walked = 0, blocks = fem_memory_blocks();
    fem_set_threads(1);
    for (int m = 0; m < 2; m++) {
        const char *const overrides[] = {methods[m], "parts.beam.mesh.box.cells=[2, 1, 1]", "output.frames=3"};
        scene            *s = load(test_write("beam.json", BEAM), 3, overrides);
        long              held = fem_memory_blocks();
        for (long n = 0;; n++, walked++) {
            scene_result result;
            fem_memory_fail_after(n);
            fem_status status = scene_run(s, test_temporary("memory"), 0, NULL, &result);
            fem_memory_fail_after(-1);
            int frames = result.frames;
            scene_result_destroy(&result);
            assert_int_equal(fem_memory_blocks(), held);
            if (status == FEM_OK) {
                check_results(s, test_temporary("memory"), frames, frames);
                break;
            }
            if (status != FEM_NO_MEMORY) fail_msg("allocation %ld: %s", n, fem_message());
        }
        scene_destroy(s);
    }
    fem_set_threads(0);
    assert_int_equal(fem_memory_blocks(), blocks);
    printf("%ld failing allocations survived\n", walked);
}

// ---- other people's results
// ------------------------------------------------------------------------------------------------------

// The JSON of a reference case as a scene: mesh, supports from the .bou file, a dead force over listed vertices, a
// probe.
static cJSON *open_reference(const char *relative) {
    const char *path = test_data(relative);
    char       *text = NULL;
    size_t      size = 0;
    cJSON      *root = NULL;
    if (!path) return NULL;
    assert_ok(fem_file_read(&text, &size, path));
    assert_ok(json_parse(&root, path, text, size));
    fem_free(text);
    return root;
}

static const cJSON *get(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!item) fail_msg("the reference has no \"%s\"", key);
    return item;
}

// Appends "[601, 602, ...]".
static void append_numbers(char *text, size_t size, const cJSON *list) {
    for (const cJSON *item = list->child; item; item = item->next) {
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%.0f", item == list->child ? "[" : ", ", item->valuedouble);
    }
    size_t used = strlen(text);
    snprintf(text + used, size - used, "]");
}

static scene *reference_scene(const char *file, const char *mesh, const double force[3], const cJSON *loaded,
                              const cJSON *watched, const char *solver, const char *output) {
    static char text[16384];
    const char *data = getenv("LIMBER_DATA");
    char        on[4096] = "", watch[4096] = "";
    append_numbers(on, sizeof on, loaded);
    append_numbers(watch, sizeof watch, watched);
    snprintf(text, sizeof text,
             "{\"limber\": 1,\n\"parts\": {\"body\": {\"mesh\": \"%s/meshes/%s.veg\", \"fixed\": {\"file\": "
             "\"%s/meshes/%s.bou\"}}},\n"
             "\"objects\": [{\"part\": \"body\"}],\n\"actions\": [{\"force\": [%.17g, %.17g, %.17g], \"on\": "
             "{\"vertices\": %s}}],\n"
             "\"solver\": {%s},\n\"output\": {%s\"probes\": {\"watch\": {\"vertices\": %s}}}}\n",
             data, mesh, data, mesh, force[0], force[1], force[2], on, solver, output, watch);
    return load(test_write(file, text), 0, NULL);
}

// Largest difference of a frame's positions and the reference's displacement file, over the largest displacement.
static double field_error(const scene *s, const char *frame, const char *relative, double largest) {
    fem_mesh        deformed = {0};
    const fem_mesh *rest = &s->parts[s->object].mesh;
    char           *text = NULL, *at;
    size_t          size = 0;
    double          error = 0;
    int             lines = 0;
    assert_ok(fem_mesh_read(&deformed, frame));
    assert_ok(fem_file_read(&text, &size, test_data(relative)));
    for (at = strchr(text, '\n'); at && at[1]; at = strchr(at + 1, '\n')) {
        int    vertex;
        double u[3];
        if (sscanf(at, "%d %lf %lf %lf", &vertex, &u[0], &u[1], &u[2]) != 4) break;
        for (int i = 0; i < 3; i++) {
            size_t k = 3 * (size_t)(vertex - 1) + (size_t)i;
            error = fmax(error, fabs(deformed.vertices[k] - rest->vertices[k] - u[i]));
        }
        lines++;
    }
    assert_int_equal(lines, rest->vertex_count);
    fem_mesh_destroy(&deformed);
    fem_free(text);
    return error / largest;
}

// static scenes reproduce CalculiX's nonlinear displacements to 1e-5 of the largest, probe and whole field
static void test_static_reference(void **state) {
    (void)state;
    const char *const meshes[] = {"cantilever_2k", "cantilever_hex_360"};
    for (int i = 0; i < 2; i++) {
        char   name[128], frame[700];
        double force[3], mean[3];
        snprintf(name, sizeof name, "reference/static/%s_P4.json", meshes[i]);
        cJSON *reference = open_reference(name);
        if (!reference) return;
        const cJSON *load_case = get(reference, "load");
        reader_vector(get(load_case, "force"), force);
        reader_vector(get(reference, "calculix_2_20_mean_displacement_of_watch_vertices"), mean);
        double       largest = get(reference, "calculix_max_displacement_norm")->valuedouble;
        scene       *s = reference_scene("static.json", meshes[i], force, get(load_case, "vertices_1based"),
                                         get(reference, "watch_vertices_1based"), "\"method\": \"static\"", "");
        scene_result result;
        const char  *folder = test_temporary(meshes[i]);
        assert_ok(scene_run(s, folder, 0, NULL, &result));
        double probe_error = vec3_distance(result.probes, mean) / largest;
        snprintf(name, sizeof name, "reference/static/%s_P4.disp.txt.gz", meshes[i]);
        snprintf(frame, sizeof frame, "%.500s/static_00000.vtu", folder);
        double all_error = field_error(s, frame, name, largest);
        printf("%s: probe off by %.2e, field by %.2e of the largest displacement %.4g m, %d Newton iterations\n",
               meshes[i], probe_error, all_error, largest, result.solver.newton_iterations);
        assert_true(probe_error < 1e-5 && all_error < 1e-5);
        assert_true(fabs(result.max_displacement / largest - 1) < 1e-5);
        scene_result_destroy(&result);
        scene_destroy(s);
        cJSON_Delete(reference);
    }
}

// a dynamic scene follows CalculiX's transient to 1e-3 of its largest displacement
static void test_dynamic_reference(void **state) {
    (void)state;
    cJSON *reference = open_reference("reference/dynamic/cantilever_hex_360_step_P0.5.json");
    if (!reference) return;
    const double force[3] = {0, 0, -0.5};
    const cJSON *tip = get(reference, "tip_vertices_1based");
    scene       *s = reference_scene("dynamic.json", "cantilever_hex_360", force, tip, tip, "\"step\": 0.02",
                                     "\"frames\": 101, \"rate\": 50, ");
    scene_result result;
    s->write_vtu = false; // only the probe matters here
    assert_ok(scene_run(s, test_temporary("dynamic"), 0, NULL, &result));
    assert_int_equal(result.steps, 100);
    char *csv = NULL;
    read_text(&csv, test_temporary("dynamic"), "probes.csv");
    const char *line = strchr(strchr(csv, '\n') + 1, '\n') + 1; // behind the names and time 0
    double      error = 0, largest = 0;
    int         rows = 0;
    for (const cJSON *row = get(reference, "rows")->child; row;
         row = row->next, rows++, line = strchr(line, '\n') + 1) {
        double t, u[3], ccx[3];
        assert_int_equal(sscanf(line, "%lf,%lf,%lf,%lf", &t, &u[0], &u[1], &u[2]), 4);
        assert_true(fabs(t - row->child->valuedouble) < 1e-9);
        for (int i = 0; i < 3; i++) ccx[i] = cJSON_GetArrayItem(row, i + 1)->valuedouble;
        error = fmax(error, vec3_distance(u, ccx));
        largest = fmax(largest, vec3_norm(ccx));
    }
    printf("%d steps, off by %.2e of the largest displacement %.4g m\n", rows, error / largest, largest);
    assert_int_equal(rows, 100);
    assert_true(error < 1e-3 * largest);
    fem_free(csv);
    scene_result_destroy(&result);
    scene_destroy(s);
    cJSON_Delete(reference);
}

// results do not depend on the number of threads
static void test_threads(void **state) {
    (void)state;
    double tip[2][3];
    for (int i = 0; i < 2; i++) {
        scene       *s = load("scenes/shaking_tower.json", 0, NULL);
        scene_result result;
        fem_set_threads(1 + 2 * i);
        assert_ok(scene_run(s, test_temporary("threads"), 5, NULL, &result));
        memcpy(tip[i], result.probes + 3, sizeof tip[i]);
        scene_result_destroy(&result);
        scene_destroy(s);
    }
    fem_set_threads(0);
    assert_memory_equal(tip[0], tip[1], sizeof tip[0]);
    printf("top at %.17g %.17g %.17g with 1 and 3 threads\n", tip[0][0], tip[0][1], tip[0][2]);
}

// the program prints the probes of a static scene as one JSON object and nothing else
static void test_program(void **state) {
    (void)state;
    const char *program = getenv("LIMBER_PROGRAM");
    if (!program || access(program, X_OK) != 0) {
        printf("skipped: LIMBER_PROGRAM names no program\n");
        return;
    }
    char   command[1200], text[8192];
    cJSON *root = NULL;
    snprintf(command, sizeof command, "'%.300s' run scenes/hook.json -o %.300s --json 2>/dev/null", program,
             test_temporary("json"));
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t length = fread(text, 1, sizeof text - 1, pipe);
    assert_int_equal(pclose(pipe), 0);
    assert_ok(json_parse(&root, "output", text, length));
    const cJSON *tip = get(get(root, "probes"), "tip");
    assert_int_equal(cJSON_GetArraySize(tip), 3);
    assert_true(get(root, "max_displacement")->valuedouble > 0.01);
    assert_true(get(root, "newton_iterations")->valuedouble >= 4);
    printf("tip at %g %g %g\n", tip->child->valuedouble, tip->child->next->valuedouble,
           tip->child->next->next->valuedouble);
    cJSON_Delete(root);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_scenes),
        cmocka_unit_test(test_same_as_solver),
        cmocka_unit_test(test_support_motion),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_unstable),
        cmocka_unit_test(test_bad_folder),
        cmocka_unit_test(test_static_reference),
        cmocka_unit_test(test_dynamic_reference),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_program),
        cmocka_unit_test(test_allocation_failures),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
