// Every place that allocates is refused once, in whole operations: scenes of each kind are loaded, precomputed and run,
// again and again, while the first allocation from a place that was not refused before fails and all that follow. Each
// time the status says so, nothing is left in memory, and nothing on disk is half written.
#include "libscene/model.h"
#include "libscene/render.h"
#include "libscene/skeleton.h"
#include "tests/support.h"

typedef fem_status (*operation)(const char *path, const char *folder);

// Repeats the operation until no new place is met. Returns how many were refused.
static int walk(const char *name, operation act, const char *file) {
    char path[2000], folder[500];
    snprintf(path, sizeof path, "%s", file);
    snprintf(folder, sizeof folder, "%s", test_temporary("allocations"));
    long blocks = fem_memory_blocks();
    int  before = fem_memory_fail_at_new_place(), now = before;
    fem_memory_fail_after(-1);
    for (int round = 0;; round++) {
        int        met = fem_memory_fail_at_new_place();
        fem_status status = act(path, folder);
        now = fem_memory_fail_at_new_place();
        fem_memory_fail_after(-1);
        if (fem_memory_blocks() != blocks) fail_msg("%s %s, round %d: memory is left behind", name, path, round);
        if (now == met) {
            assert_ok(status); // undisturbed
            break;
        }
        // what can be done without may be: a cache that is not written
        if (status != FEM_NO_MEMORY && status != FEM_OK)
            fail_msg("%s %s, round %d: %s", name, path, round, fem_message());
    }
    printf("   %4d places  %s %s\n", now - before, name, path);
    return now - before;
}

// ---- operations -----------------------------------------------------------------------------------------------------

static fem_status load(scene **s, const char *path, const char *formats) {
    const char *overrides[] = {formats};
    return scene_load(s, path, 1, overrides);
}

static fem_status run(const char *path, const char *folder) {
    scene       *s = NULL;
    scene_result result = {0};
    fem_status   status = load(&s, path, "output.formats=[\"vtu\", \"obj\", \"glb\"]");
    if (status == FEM_OK) status = scene_run(s, folder, s->method == SCENE_STATIC ? 0 : 2, NULL, &result);
    scene_result_destroy(&result);
    scene_destroy(s);
    return status;
}

// Stopped after two frames and taken up again, on a skin, with smooth interfaces.
static fem_status run_in_two(const char *path, const char *folder) {
    const char *const overrides[] = {"output.formats=[\"glb\", \"vtu\"]", "output.glb.skin=true",
                                     "output.interfaces=c1", "output.frames=4"};
    scene            *s = NULL;
    fem_status        status = scene_load(&s, path, 4, overrides);
    if (status == FEM_OK) {
        s->checkpoint = 1;
        status = scene_run(s, folder, 2, NULL, NULL);
        s->resume = true;
    }
    if (status == FEM_OK) status = scene_run(s, folder, 0, NULL, NULL);
    scene_destroy(s);
    return status;
}

// The first time the cache is written, then it is read; a cache that cannot be had is done without.
static fem_status precompute(const char *path, const char *folder) {
    scene       *s = NULL;
    scene_result result = {0};
    fem_status   status = load(&s, path, "output.formats=[]");
    for (int time = 0; time < 2 && status == FEM_OK; time++) {
        status = scene_set_cache(s, folder);
        if (status == FEM_OK) status = scene_precompute(s, NULL, &result);
        scene_result_destroy(&result);
        result = (scene_result){0};
    }
    scene_destroy(s);
    return status;
}

static fem_status find_frequencies(const char *path, const char *folder) {
    (void)folder;
    scene            *s = NULL;
    scene_frequencies found = {0};
    scene_summary     summary;
    fem_status        status = load(&s, path, "output.formats=[]");
    if (status == FEM_OK) status = scene_summarize(s, &summary);
    if (status == FEM_OK) status = scene_find_frequencies(s, 4, NULL, &found);
    scene_frequencies_destroy(&found);
    scene_destroy(s);
    return status;
}

static fem_status experiment(const char *path, const char *folder) {
    scene           *s = NULL;
    scene_experiment found = {0};
    fem_status       status = load(&s, path, "output.formats=[]");
    if (status == FEM_OK) status = scene_stitch_experiment(s, folder, false, NULL, &found);
    scene_experiment_destroy(&found);
    scene_destroy(s);
    return status;
}

static fem_status grow(const char *path, const char *folder) {
    (void)path;
    char           file[1000];
    scene_skeleton skeleton = {0}, again = {0};
    snprintf(file, sizeof file, "%s-skeleton.json", folder);
    fem_status status = scene_skeleton_grow(&skeleton, SCENE_FLOWER, 3);
    if (status == FEM_OK) status = scene_skeleton_write(&skeleton, file);
    if (status == FEM_OK) status = scene_skeleton_read(&again, file, 1);
    scene_plant_options options = scene_plant_default_options();
    scene_plant_report  report;
    options.wood = SCENE_FLOWER;
    snprintf(file, sizeof file, "%s-plant.json", folder);
    if (status == FEM_OK) status = scene_plant_write(&again, &options, file, &report);
    scene_skeleton_destroy(&skeleton);
    scene_skeleton_destroy(&again);
    return status;
}

static fem_status draw(const char *path, const char *folder) {
    char                 file[1000];
    scene_model         *model = NULL;
    scene_renderer      *renderer = NULL;
    const scene_drawing *drawing;
    const scene_image   *image;
    scene_render_options options = scene_render_default_options();
    scene_stage          stage = scene_stage_empty();
    options.width = 64, options.height = 48, options.shadow_size = 64, options.sky_directions = 4;
    fem_status status = scene_model_read(&model, path);
    if (status == FEM_OK) status = scene_model_pose(model, 0.01, &drawing);
    if (status == FEM_OK) status = scene_renderer_create(&renderer, &options);
    if (status == FEM_OK) {
        scene_stage_add(&stage, drawing);
        scene_camera camera = scene_camera_fit(&stage, options.width, options.height, 30, 10, 1, 35);
        status = scene_renderer_draw(renderer, drawing, &stage, &camera, &image);
    }
    snprintf(file, sizeof file, "%s.png", folder);
    if (status == FEM_OK) status = scene_image_write(image, file);
    scene_renderer_destroy(renderer);
    scene_model_destroy(model);
    return status;
}

// A mesh file is read and written in each format, and what was written is read.
static fem_status convert(const char *path, const char *folder) {
    static const char *const endings[] = {".veg", ".vtu", ".vtk", ".msh", ".mesh", ".inp", ".veg.gz"};
    char                     file[1000];
    fem_mesh                 mesh = {0}, back = {0};
    fem_remarks              remarks = {0};
    fem_status               status = fem_mesh_read_remarks(&mesh, path, &remarks);
    for (size_t i = 0; i < sizeof endings / sizeof *endings && status == FEM_OK; i++) {
        snprintf(file, sizeof file, "%s%s", folder, endings[i]);
        status = fem_mesh_write(&mesh, file);
        if (status == FEM_OK) status = fem_mesh_write_text(&mesh, file);
        if (status == FEM_OK) status = fem_mesh_read_remarks(&back, file, &remarks);
        fem_mesh_destroy(&back);
    }
    fem_remarks_destroy(&remarks);
    fem_mesh_destroy(&mesh);
    return status;
}

static fem_status fill(const char *path, const char *folder) {
    (void)folder;
    fem_surface   surface = {0};
    fem_mesh      mesh = {0};
    fem_embedding embedding = {0};
    fem_status    status = fem_surface_read(&surface, path);
    for (int method = FEM_STUFFING; method <= FEM_VOXELS && status == FEM_OK; method++) {
        fem_mesher_options options = {.method = (fem_mesher_method)method, .size = 0.2};
        fem_mesher_report  report;
        status = fem_mesh_fill_surface(&mesh, &surface, &options, &report, NULL);
        if (status == FEM_OK) status = fem_embed_points(&embedding, &mesh, surface.vertex_count, surface.vertices);
        fem_embedding_destroy(&embedding);
        fem_mesh_destroy(&mesh);
    }
    fem_surface_destroy(&surface);
    return status;
}

static fem_status read_any(const char *path, const char *folder) {
    (void)folder;
    fem_mesh    mesh = {0};
    fem_surface surface = {0};
    fem_remarks remarks = {0};
    double     *A = NULL;
    int        *items = NULL, rows, columns;
    const char *ending = strrchr(path, '.');
    fem_status  status = strcmp(ending, ".bou") == 0 ? fem_vertex_list_read(&items, &rows, path, 1, 1000)
                         : strcmp(ending, ".npy") == 0 || strcmp(ending, ".mtx") == 0
                             ? fem_matrix_read(path, &rows, &columns, &A)
                         : fem_path_is_surface(path) ? fem_surface_read(&surface, path)
                                                     : fem_mesh_read_remarks(&mesh, path, &remarks);
    fem_free(items);
    fem_free(A);
    fem_remarks_destroy(&remarks);
    fem_surface_destroy(&surface);
    fem_mesh_destroy(&mesh);
    return status;
}

// ---- the walks ------------------------------------------------------------------------------------------------------

static const char RUBBER[] =
    "{\"limber\": 1, \"materials\": {\"m\": {\"type\": \"neohookean\", \"density\": 1000, \"young\": 1e6, \"poisson\": "
    "0.4}},"
    "\"parts\": {\"b\": {\"mesh\": {\"box\": {\"high\": [1, 0.3, 0.3], \"cells\": [5, 2, 2]}}, \"material\": \"m\","
    "\"fixed\": \"x0\", \"modes\": {\"count\": 4, \"linear\": 2}, \"forces\": {\"type\": \"cubature\", \"method\": "
    "\"%s\","
    "\"sampling\": \"%s\", \"poses\": %d, \"held_out\": 5}}}, \"objects\": [{\"part\": \"b\"}],"
    "\"solver\": {\"method\": \"reduced\", \"step\": 0.02}, \"output\": {\"frames\": 2, \"rate\": 50}}";

static const char PAINTED[] = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nvt 0 0\nvt 1 0\nvt 0 1\nusemtl bark\nf 1/1 3/3 2/2\n"
                              "f 1/1 2/2 4/3\nusemtl a leaf\nf 1/1 4/2 3/3\nf 2/1 3/2 4/3\n";
static const char FOUR_NODES[] = "*NODE\n10,0,0,0\n20,1,0,0\n30,0,1,0\n40,0,0,1\n";
static const char ORIENTED[] = "*INCLUDE, INPUT=nodes.part\n*ELEMENT, TYPE=C3D4, ELSET=all_of_it\n"
                               "1, 10,20,30,40\n*ELEMENT, TYPE=S3, ELSET=foot\n2, 10,20,30\n*ORIENTATION, NAME=axes\n"
                               "1,0,0,0,1,0\n*MATERIAL, NAME=wood\n*ELASTIC, TYPE=ENGINEERING CONSTANTS\n"
                               "1e10,1e9,1e9,0.3,0.3,0.3,1e8,1e8,\n1e8\n*DENSITY\n700\n"
                               "*SOLID SECTION, ELSET=all_of_it, MATERIAL=wood, ORIENTATION=axes\n";
// A skin of joints, a surface with texture coordinates.
static const char SHOWN[] =
    "{\"limber\": 1, \"materials\": {\"m\": {\"density\": 1000, \"young\": 1e6, \"poisson\": 0.4}},"
    "\"parts\": {\"b\": {\"mesh\": {\"box\": {\"high\": [1, 1, 1], \"cells\": [2, 2, 2]}}, \"surface\": "
    "\"painted.obj\","
    "\"material\": \"m\", \"fixed\": \"x0\", \"modes\": {\"count\": 3, \"linear\": 3}}}, \"objects\": [{\"part\": "
    "\"b\"}],"
    "\"solver\": {\"method\": \"reduced\", \"step\": 0.02},"
    "\"output\": {\"frames\": 2, \"rate\": 50, \"glb\": {\"skin\": %s}}}";

static void test_scenes(void **state) {
    (void)state;
    // the smallest first: what scenes share is walked there
    static const char *const runs[] = {
        "ball",        "hook",           "twist", "capsules_on_stairs", "stitch", "mast",  "panels",
        "leaf",        "ball_on_stairs", "twigs", "softening",          "links",  "shrub", "gate",
        "windy_plant", "plant",          "sketch"};
    static const char *const methods[] = {"empirical", "modal", "optimized"};
    char                     text[2000];
    int                      refused = 0;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        snprintf(text, sizeof text, "scenes/%s.json", runs[i]);
        refused += walk("run", run, text);
    }
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text, RUBBER, methods[i], i == 1 ? "gaussian" : "loads", i == 1 ? 0 : 10);
        refused += walk("run", run, test_write("rubber.json", text));
    }
    printf("%d places refused\n", refused);
    assert_true(refused > 1000);
}

static void test_surfaces(void **state) {
    (void)state;
    char folder[500];
    snprintf(folder, sizeof folder, "%s", test_temporary("painted"));
    int refused = 0;
    for (int skin = 0; skin < 2; skin++) {
        char text[1000], shown[600];
        test_write("painted.obj", PAINTED);
        snprintf(text, sizeof text, SHOWN, skin ? "true" : "false");
        snprintf(shown, sizeof shown, "%s", test_write("painted.json", text));
        refused += walk("run", run, shown);
        assert_ok(run(shown, folder));
        snprintf(shown, sizeof shown, "%s/painted.glb", folder);
        refused += walk("draw", draw, shown);
    }
    printf("%d places refused\n", refused);
    assert_true(refused > 10);
}

static void test_beside_runs(void **state) {
    (void)state;
    char folder[500], model[600];
    snprintf(folder, sizeof folder, "%s", test_temporary("shown"));
    assert_ok(run("scenes/mast.json", folder));
    snprintf(model, sizeof model, "%s/mast.glb", folder);
    int refused =
        walk("precompute", precompute, "scenes/ball_on_stairs.json") +
        walk("precompute", precompute, "scenes/mast.json") + walk("precompute", precompute, "scenes/panels.json") +
        walk("frequencies", find_frequencies, "scenes/cantilever.json") +
        walk("frequencies", find_frequencies, "scenes/softening.json") +
        walk("frequencies", find_frequencies, "scenes/mast.json") + walk("run in two", run_in_two, "scenes/mast.json") +
        walk("experiment", experiment, "scenes/stitch.json") + walk("grow", grow, "a flower") +
        walk("draw", draw, model);
    printf("%d places refused\n", refused);
    assert_true(refused > 100);
}

static void test_meshes(void **state) {
    (void)state;
    fem_mesh    ball = {0};
    fem_surface skin = {0};
    const char *mesh = test_temporary("ball.veg"), *surface = test_temporary("ball.obj");
    assert_ok(fem_generate_sphere(&ball, FEM_T4, (double[]){0, 0, 0}, 1, 3));
    assert_ok(fem_mesh_add_element_set(&ball, "some", 3, (int[]){0, 1, 5}));
    assert_ok(fem_mesh_add_vertex_set(&ball, "held", 4, (int[]){3, 1, 4, 9}));
    assert_ok(fem_mesh_write(&ball, mesh));
    assert_ok(fem_surface_of_mesh(&skin, &ball));
    assert_ok(fem_surface_write(&skin, surface));
    fem_surface_destroy(&skin);
    fem_mesh_destroy(&ball);
    int refused = walk("convert", convert, mesh) + walk("fill", fill, surface) +
                  walk("fill", fill, "tests/fuzz/corpus/fill/two.obj") +
                  walk("fill", fill, "tests/fuzz/corpus/fill/open.obj") +
                  walk("fill", fill, "tests/fuzz/corpus/fill/both_sides.obj");
    // files of other programs: the seeds of the fuzz targets
    static const char *const seeds[] = {
        "inp/ten",        "inp/wood",    "inp/twenty",        "inp/ours",     "mesh/two",   "mesh/ten",
        "mesh/ours",      "meshb/two",   "meshb/v2",          "msh/2.2",      "msh/4.1",    "msh/2.2-bytes",
        "msh/2.2-groups", "msh/overlap", "msh/ours",          "msh/overlap4", "msh/plain4", "msh/ten",
        "veg/two",        "veg/hex",     "vegb/two",          "vtk/two",      "vtk/ten",    "vtk/ours",
        "vtk/bytes",      "vtu/ours",    "vtu/twenty",        "vtu/raw_32",   "npy/small",  "npy/single",
        "mtx/small",      "bou/list",    "stl/bytes",         "stl/text",     "ply/bytes",  "ply/text",
        "obj/square",     "veg.gz/two",  "vtu/raw_64_packed", "vtu/base64_32"};
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        char   path[200], name[100], *bytes = NULL;
        size_t size;
        snprintf(path, sizeof path, "tests/fuzz/corpus/%s", seeds[i]);
        snprintf(name, sizeof name, "seed.%.*s", (int)(strchr(seeds[i], '/') - seeds[i]), seeds[i]);
        assert_ok(fem_file_read(&bytes, &size, path));
        FILE *file = fopen(test_temporary(name), "wb");
        assert_true(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
        fem_free(bytes);
        refused += walk("read", read_any, test_temporary(name));
    }
    // what the seeds do not have: materials of a surface, markers and attributes, orientations and faces in sets, lists
    // that outgrow their first room
    char list[4000] = "";
    for (int i = 1; i <= 500; i++) snprintf(list + strlen(list), sizeof list - strlen(list), "%d,", i);
    test_write("nodes.part", FOUR_NODES);
    refused += walk("read", read_any, test_write("long.bou", list)) +
               walk("read", read_any, test_write("painted.obj", PAINTED)) +
               walk("read", read_any, test_write("oriented.inp", ORIENTED));
    test_write("marked.ele", "2 4 1\n1 1 2 3 4 7\n2 2 3 4 5 8\n");
    refused += walk("read", read_any,
                    test_write("marked.node", "5 3 0 1\n1 0 0 0 1\n2 1 0 0 2\n3 0 1 0 2\n4 0 0 1 0\n5 1 1 1 1\n"));
    printf("%d places refused\n", refused);
    assert_true(refused > 50);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scenes),
        cmocka_unit_test(test_beside_runs),
        cmocka_unit_test(test_surfaces),
        cmocka_unit_test(test_meshes),
    };
    fem_set_threads(1);
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
