// Instances: a scaled one is the mesh scaled before anything is computed, a tree of them is the tree made by hand, runs
// of them do not depend on threads and resume bit by bit, and names mean what they say.
#include "tests/support.h"

#include "libscene/internal.h"

#include <math.h>
#include <string.h>

static const char *write_scene(const char *name, const char *text) {
    static char path[600];
    snprintf(path, sizeof path, "%s", test_temporary(name));
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return path;
}

// %g: size of the meshes, %s: the objects
static const char *const SCENE =
    "{\"limber\": 1, \"materials\": {\"wood\": {\"density\": 700, \"young\": 1e7, \"poisson\": 0.3}},"
    "\"parts\": {"
    " \"post\": {\"mesh\": {\"tube\": {\"element\": \"tet\", \"points\": [[0, 0, 0], [0, 0, %.17g]], \"radius\": %.17g,"
    "   \"segment\": %.17g}}, \"material\": \"wood\", \"fixed\": \"root\", \"modes\": {\"count\": 8}},"
    " \"arm\": {\"mesh\": {\"tube\": {\"element\": \"tet\", \"points\": [[0, 0, 0], [%.17g, 0, 0]], \"radius\": %.17g,"
    "   \"segment\": %.17g}}, \"material\": \"wood\", \"fixed\": \"root\", \"modes\": {\"count\": 8}}},"
    "\"objects\": [%s],"
    "\"environment\": {\"gravity\": [0.5, 0, -9.81]},"
    "\"solver\": {\"method\": \"reduced\", \"step\": 0.002, \"damping\": {\"stiffness\": 0.001}},"
    "\"output\": {\"frames\": 20, \"rate\": 50, \"formats\": [\"vtu\"], \"probes\": {\"post\": {\"instance\": "
    "\"post\", "
    "\"set\": \"tip\"}, \"arm\": {\"instance\": \"arm\", \"set\": \"tip\"}}}}";

static scene *make_scene_in(const char *name, double size, const char *objects, const char *environment) {
    char        text[4000], *place, whole[5000];
    scene      *s = NULL;
    const char *key = "\"environment\": {";
    snprintf(text, sizeof text, SCENE, size, 0.05 * size, 0.05 * size, 0.5 * size, 0.03 * size, 0.04 * size, objects);
    place = strstr(text, key) + strlen(key);
    snprintf(whole, sizeof whole, "%.*s%s%s", (int)(place - text), text, environment, place);
    assert_ok(scene_load(&s, write_scene(name, whole), 0, NULL));
    return s;
}

static scene *make_scene(const char *name, double size, const char *objects) {
    return make_scene_in(name, size, objects, "");
}

static void run(scene *s, const char *out, scene_result *result) { assert_ok(scene_run(s, out, 0, NULL, result)); }

// a scaled instance, with a child on it, moves as the meshes scaled before anything is computed
static void test_scaled(void **state) {
    (void)state;
    const double scale = 2; // a power of two: the generator rounds alike
    char         objects[1000];
    scene_result a = {0}, b = {0};
    scene       *large = make_scene("large.json", scale,
                                    "{\"part\": \"post\", \"translation\": [0, 0, 0], \"children\": [{\"part\": \"arm\", "
                                          "\"translation\": [0, 0, 1.4], \"rotation\": [0, -0.4, 0.3]}]}");
    snprintf(
        objects, sizeof objects,
        "{\"part\": \"post\", \"scale\": %.17g, \"children\": [{\"part\": \"arm\", \"translation\": [0, 0, %.17g], "
        "\"rotation\": [0, -0.4, 0.3]}]}",
        scale, 1.4 / scale);
    scene *scaled = make_scene("scaled.json", 1, objects);
    double worst = 0;
    assert_int_equal(large->forest.count, 2);
    for (int i = 0; i < 3 * large->parts[large->object].mesh.vertex_count; i++)
        worst = fmax(
            worst, fabs(large->parts[large->object].mesh.vertices[i] - scaled->parts[scaled->object].mesh.vertices[i]));
    assert_true(worst < 1e-12);
    run(large, test_temporary("large"), &a);
    run(scaled, test_temporary("scaled"), &b);
    double difference = vec3_distance(a.probes + 3, b.probes + 3), moved = vec3_norm(a.probes + 3);
    printf("the arm moved by %.4g m, difference %.1e\n", moved, difference);
    assert_true(moved > 1e-3 && difference < 1e-7 * moved);
    scene_result_destroy(&a), scene_result_destroy(&b);
    scene_destroy(large), scene_destroy(scaled);
}

// the same with a block under the arm, so stiff that a load held over a step would have to be softened
static void test_scaled_contact(void **state) {
    (void)state;
    static const char block[] =
        "\"obstacles\": [{\"box\": {\"centre\": [0.875, 0.3, 1.155], \"size\": [0.25, 0.6, 1]}}], "
        "\"contact\": {\"stiffness\": 3e7, \"damping\": 1e5}, ";
    static const char large_one[] =
        "{\"part\": \"post\", \"children\": [{\"part\": \"arm\", \"translation\": [0, 0, 1.4], "
        "\"rotation\": [0, -0.4, 0.3]}]}";
    static const char scaled_one[] = "{\"part\": \"post\", \"scale\": 2, \"children\": [{\"part\": \"arm\", "
                                     "\"translation\": [0, 0, 0.7], \"rotation\": [0, -0.4, 0.3]}]}";
    scene            *free_arm = make_scene("free_arm.json", 2, large_one);
    scene            *large = make_scene_in("large_contact.json", 2, large_one, block);
    scene            *scaled = make_scene_in("scaled_contact.json", 1, scaled_one, block);
    scene_result      none = {0}, a = {0}, b = {0};
    run(free_arm, test_temporary("free_arm"), &none);
    run(large, test_temporary("large_contact"), &a);
    run(scaled, test_temporary("scaled_contact"), &b);
    double difference = vec3_distance(a.probes + 3, b.probes + 3), moved = vec3_norm(a.probes + 3);
    printf("the arm moved by %.4g m (%.4g m without a block), %.2g m into it, difference %.1e\n", moved,
           vec3_norm(none.probes + 3), a.contact.depth, difference);
    assert_true(a.contact.total_contacts > 0 && a.contact.depth < 1e-3 && a.contact_force[2] > 0);
    assert_true(moved > 1e-3 && moved < 0.8 * vec3_norm(none.probes + 3));
    assert_true(difference < 1e-6 * moved);
    assert_true(!b.notes || !strstr(b.notes, "softer"));
    scene_result_destroy(&none), scene_result_destroy(&a), scene_result_destroy(&b);
    scene_destroy(free_arm), scene_destroy(large), scene_destroy(scaled);
}

// groups, places and repeats are only ways of saying the same: a scene of them moves as one that lists every child
static void test_ways_of_saying(void **state) {
    (void)state;
    scene_result a = {0}, b = {0};
    scene       *listed =
        make_scene("listed.json", 1,
                   "{\"part\": \"post\", \"children\": [{\"part\": \"arm\", \"translation\": [0, 0, 0.4]},"
                   "{\"part\": \"arm\", \"translation\": [0, 0, 0.6], \"rotation\": [0, 0, 2], \"scale\": 0.5},"
                   "{\"part\": \"arm\", \"translation\": [0, 0, 0.7], \"rotation\": [0, 0, 4], \"scale\": 0.25}]}");
    scene *repeated =
        make_scene("repeated.json", 1,
                   "{\"part\": \"post\", \"children\": [{\"part\": \"arm\", \"translation\": [0, 0, 0.4], "
                   "\"repeat\": {\"count\": 3, \"translation\": [0, 0, 0.2], \"rotation\": [0, 0, 2], "
                   "\"scale\": 0.5}}]}");
    double worst = 0;
    assert_int_equal(listed->forest.count, 4);
    assert_int_equal(repeated->forest.count, 4);
    for (int i = 0; i < 3 * listed->parts[listed->object].mesh.vertex_count; i++)
        worst = fmax(worst, fabs(listed->parts[listed->object].mesh.vertices[i] -
                                 repeated->parts[repeated->object].mesh.vertices[i]));
    assert_true(worst < 1e-14);
    run(listed, test_temporary("listed"), &a);
    run(repeated, test_temporary("repeated"), &b);
    printf("post moved by %.4g m, difference %.1e\n", vec3_norm(a.probes), vec3_distance(a.probes, b.probes));
    assert_true(vec3_norm(a.probes) > 1e-4 && vec3_distance(a.probes, b.probes) < 1e-9 * vec3_norm(a.probes));
    scene_result_destroy(&a), scene_result_destroy(&b);
    scene_destroy(listed), scene_destroy(repeated);
}

// a tree put together by hand, class by class and interface by interface, moves as the forest's
static void test_by_hand(void **state) {
    (void)state;
    scene              *s = make_scene("hand.json", 1,
                                       "{\"part\": \"post\", \"children\": [{\"part\": \"arm\", \"translation\": [0, 0, 1], "
                                                    "\"rotation\": [0, -1.5707963267948966, 0], \"scale\": 0.5}]}");
    solver_forest      *f = NULL;
    solver_tree        *tree = NULL, *hand = NULL;
    const scene_forest *g = &s->forest;
    solver_frame_motion frame, other;
    const double        gravity[3] = {3, 1, -9.81};
    assert_ok(solver_forest_create(&f, g->part_count, g->parts, g->count, g->instances, NULL));
    assert_ok(solver_forest_precompute(f, NULL, NULL, NULL));
    assert_ok(solver_forest_tree(&tree, f, &s->tree.options));
    // the arm's root points lie in the post's end, so rows at the nearest vertices' barycentric places are U's own
    const solver_class *post = f->classes[0], *arm = f->classes[1];
    const fem_set      *root = fem_mesh_vertex_set(&s->parts[1].mesh, "root");
    double              points[3 * 64], *rows = fem_calloc(3 * 64 * 8, sizeof *rows);
    fem_embedding       e = {0};
    domain_interface    interface = {0};
    assert_true(root->count <= 64);
    for (int k = 0; k < root->count; k++) {
        const double *X =
            s->parts[1].mesh.vertices + 3 * (size_t)root->items[k]; // (0, y, z) -> (-z, y, 0) / 2 at the top
        points[3 * k] = -0.5 * X[2], points[3 * k + 1] = 0.5 * X[1], points[3 * k + 2] = 1 + 0.5 * X[0];
    }
    assert_ok(fem_embed_points(&e, &post->mesh, root->count, points));
    for (int l = 0; l < 8; l++)
        fem_embedding_apply(&e, post->basis.U + (size_t)post->basis.n * (size_t)l, rows + 3 * root->count * l);
    const double rest[9] = {0, 0, -1, 0, 1, 0, 1, 0, 0};
    assert_ok(domain_interface_create(&interface, root->count, points, NULL, 8, rows, rest));
    solver_tree_class classes[2] = {solver_class_in_tree(post), solver_class_in_tree(arm)};
    classes[0].interface_count = 1, classes[0].interfaces = &interface;
    for (int k = 0; k < 2; k++) classes[k].damping_stiffness = 0.001;
    solver_tree_instance instances[2] = {
        {.class_index = 0, .parent = -1, .scale = 1, .stiffness = 1, .root = SOLVER_ROOT_FIXED},
        {.class_index = 1, .parent = 0, .scale = 0.5, .stiffness = 1}};
    assert_ok(solver_tree_create(&hand, 2, classes, 2, instances, &s->tree.options));
    solver_tree_set_gravity(tree, gravity), solver_tree_set_gravity(hand, gravity);
    for (int k = 0; k < 200; k++) {
        assert_ok(solver_tree_step(tree));
        assert_ok(solver_tree_step(hand));
    }
    solver_tree_frame(tree, 1, &frame), solver_tree_frame(hand, 1, &other);
    double moved = vec3_distance(frame.p, (const double[]){0, 0, 1}), difference = vec3_distance(frame.p, other.p);
    for (int l = 0; l < 8; l++)
        difference = fmax(difference, fabs(solver_tree_q(tree, 1)[l] - solver_tree_q(hand, 1)[l]));
    printf("the arm's frame moved by %.3g m, difference %.1e\n", moved, difference);
    assert_true(moved > 1e-4 && difference < 1e-9);
    fem_free(rows);
    fem_embedding_destroy(&e);
    domain_interface_destroy(&interface);
    solver_tree_destroy(tree), solver_tree_destroy(hand);
    solver_forest_destroy(f);
    scene_destroy(s);
}

// same numbers with one and with three threads, and from a checkpoint
static void test_threads_and_resume(void **state) {
    (void)state;
    static const char objects[] =
        "{\"part\": \"post\", \"children\": [{\"part\": \"arm\", \"translation\": [0, 0, 0.4], "
        "\"repeat\": {\"count\": 9, \"translation\": [0, 0, 0.05], \"rotation\": [0, 0, 2]}}]}";
    scene_result a = {0}, b = {0};
    char         whole[600], halves[600], command[2600];
    snprintf(whole, sizeof whole, "%s", test_temporary("whole"));
    snprintf(halves, sizeof halves, "%s", test_temporary("halves"));
    scene *s = make_scene("threads.json", 1, objects);
    s->write_glb = true;
    fem_set_threads(1);
    run(s, whole, &a);
    fem_set_threads(3);
    s->checkpoint = 7;
    assert_ok(scene_run(s, halves, 11, NULL, NULL));
    s->resume = true;
    run(s, halves, &b);
    fem_set_threads(0);
    assert_memory_equal(a.probes, b.probes, 6 * sizeof(double));
    snprintf(command, sizeof command, "rm -f '%s/'*.checkpoint* && diff -r '%s' '%s'", halves, whole, halves);
    assert_int_equal(system(command), 0);
    printf("post moved by %.17g m with 1 and 3 threads, and resumed\n", vec3_norm(a.probes));
    scene_result_destroy(&a), scene_result_destroy(&b);
    scene_destroy(s);
}

static void test_names(void **state) {
    (void)state;
    scene *s = make_scene("names.json", 1,
                          "{\"part\": \"post\", \"children\": [{\"part\": \"arm\", \"translation\": [0, 0, 0.4], "
                          "\"repeat\": {\"count\": 3, \"translation\": [0, 0, 0.1]}}]}");
    assert_string_equal(s->forest.instances[2].name, "post/arm.1");
    assert_true(scene_instance_is(&s->forest, 2, "post/arm.1") && scene_instance_is(&s->forest, 2, "arm.1"));
    assert_true(scene_instance_is(&s->forest, 2, "arm") && scene_instance_is(&s->forest, 2, "post/arm"));
    assert_false(scene_instance_is(&s->forest, 2, "arm.2") || scene_instance_is(&s->forest, 2, "rm.1"));
    assert_false(scene_instance_is(&s->forest, 2, "post"));
    scene_destroy(s);
}

// ---- memory --------------------------------------------------------------------------------------------------------

// Two blocks on a third, as one mesh.
static const char *write_blocks(void) {
    fem_mesh one = {0}, all = {0};
    assert_ok(fem_generate_box(&one, FEM_T4, (double[]){0, 0, 0}, (double[]){0.3, 0.1, 0.1}, (int[]){2, 1, 1}));
    int n = one.vertex_count, m = one.element_count;
    assert_ok(fem_mesh_allocate(&all, FEM_T4, 3 * n, 3 * m));
    for (int k = 0; k < 3; k++) {
        for (int v = 0; v < n; v++)
            for (int i = 0; i < 3; i++) // the second and the third are half as large and stand on the first
                all.vertices[3 * (k * n + v) + i] = k == 0   ? one.vertices[3 * v + i]
                                                    : i == 0 ? 0.15 * (k - 1) + one.vertices[3 * v + 1] / 2
                                                    : i == 1 ? one.vertices[3 * v + 2] / 2
                                                             : 0.1 + one.vertices[3 * v] / 2;
        for (int e = 0; e < 4 * m; e++) all.elements[4 * k * m + e] = k * n + one.elements[e];
    }
    assert_ok(fem_mesh_write(&all, test_temporary("blocks.veg")));
    fem_mesh_destroy(&one), fem_mesh_destroy(&all);
    return "blocks.veg";
}

static const char ALL_KINDS[] =
    "{\"limber\": 1, \"materials\": {\"wood\": {\"density\": 700, \"young\": 1e7, \"poisson\": 0.3}},\n"
    " \"parts\": {\"blocks\": {\"mesh\": \"blocks.veg\", \"material\": \"wood\", \"modes\": {\"count\": 3},\n"
    "   \"fixed\": {\"box\": [[-1, -1, -1], [1, 1, 0.001]]}},\n"
    "  \"post\": {\"mesh\": {\"box\": {\"element\": \"tet\", \"high\": [0.2, 0.2, 1], \"cells\": [1, 1, 3]}},\n"
    "   \"material\": \"wood\", \"fixed\": \"z0\", \"modes\": {\"count\": 4}},\n"
    "  \"peg\": {\"mesh\": {\"box\": {\"element\": \"tet\", \"low\": [0, -0.02, -0.02], \"high\": [0.2, 0.02, 0.02],\n"
    "   \"cells\": [2, 1, 1]}}, \"material\": \"wood\", \"fixed\": \"x0\", \"modes\": {\"count\": 2}}},\n"
    " \"groups\": {\"stand\": {\"objects\": [{\"part\": \"post\", \"children\": [\n"
    "   {\"part\": \"peg\", \"scatter\": {\"count\": 3, \"low\": [-1, -1, 0.3]}, \"stiffness\": 2},\n"
    "   {\"part\": \"peg\", \"name\": \"row\", \"translation\": [0.2, 0.1, 0.5], \"repeat\": {\"count\": 2,\n"
    "    \"translation\": [0, 0, 0.2]}, \"damping\": {\"stiffness\": 0.002}}]}]}},\n"
    " \"objects\": [{\"group\": \"stand\", \"places\": [[0, 0, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 1, 0.5]]},\n"
    "  {\"part\": \"blocks\", \"translation\": [0, 3, 0], \"components\": {\"tolerance\": 1e-6}}],\n"
    " \"environment\": {\"gravity\": [0, 0, -9.81], \"wind\": {\"speed\": 3},\n"
    "  \"obstacles\": [{\"plane\": {\"point\": [0, 0, -0.5], \"normal\": [0, 0, 1]}}]},\n"
    " \"actions\": [{\"force\": [1, 0, 0], \"on\": {\"instance\": \"post\"}}, {\"stiffness\": 2, \"domain\": "
    "\"row\"}],\n"
    " \"solver\": {\"method\": \"reduced\", \"step\": 0.01},\n"
    " \"output\": {\"frames\": 2, \"rate\": 50, \"formats\": [\"glb\"], \"probes\": {\"pegs\": {\"instance\": "
    "\"row\"}}}}\n";

// every allocation of the loader may fail, and of a run every so many; nothing leaks, and the message says memory
static void test_memory(void **state) {
    (void)state;
    scene      *s = NULL;
    long        loading = 0, running = 0;
    const char *path;
    write_blocks();
    path = write_scene("kinds.json", ALL_KINDS);
    fem_set_threads(1);
    assert_ok(scene_load(&s, path, 0, NULL)); // what lives as long as the process is there
    assert_int_equal(s->forest.count, 2 * 6 + 3);
    scene_destroy(s);
    for (long held = fem_memory_blocks();; loading++) {
        fem_memory_fail_after(loading);
        fem_status status = scene_load(&s, path, 0, NULL);
        fem_memory_fail_after(-1);
        if (status == FEM_OK) break;
        if (status != FEM_NO_MEMORY) fail_msg("allocation %ld: %s", loading, fem_message());
        assert_int_equal(fem_memory_blocks(), held);
    }
    assert_ok(scene_run(s, test_temporary("kinds"), 0, NULL, NULL));
    for (long after = 0, held = fem_memory_blocks();; after += 1 + after / 40, running++) {
        fem_memory_fail_after(after);
        fem_status status = scene_run(s, test_temporary("kinds"), 0, NULL, NULL);
        fem_memory_fail_after(-1);
        assert_int_equal(fem_memory_blocks(), held);
        if (status == FEM_OK) break;
        if (status != FEM_NO_MEMORY) fail_msg("allocation %ld: %s", after, fem_message());
    }
    fem_set_threads(0);
    printf("%ld failing allocations survived while loading, %ld while running\n", loading, running);
    assert_true(loading > 500 && running > 50);
    scene_destroy(s);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scaled),  cmocka_unit_test(test_ways_of_saying),
        cmocka_unit_test(test_by_hand), cmocka_unit_test(test_threads_and_resume),
        cmocka_unit_test(test_names),   cmocka_unit_test(test_scaled_contact),
        cmocka_unit_test(test_memory),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
