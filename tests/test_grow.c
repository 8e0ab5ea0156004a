// Plants as scenes: the same seed gives the same file, no seed gives one that is refused, the instances stand where the
// skeleton has its branches, and the plants sway as plants do.
#include "tests/support.h"

#include "libscene/internal.h"

#include <math.h>
#include <string.h>

static char *grow(scene_species species, int seed, const scene_plant_options *options, const char *name,
                  scene_plant_report *report) {
    static char    path[600];
    scene_skeleton skeleton = {0};
    snprintf(path, sizeof path, "%s", test_temporary(name));
    assert_ok(scene_skeleton_grow(&skeleton, species, (uint64_t)seed));
    assert_ok(scene_plant_write(&skeleton, options, path, report));
    scene_skeleton_destroy(&skeleton);
    return path;
}

// the same seed gives the same scene, byte by byte, another seed another one
static void test_deterministic(void **state) {
    (void)state;
    scene_plant_options o = scene_plant_default_options();
    char               *text[3];
    size_t              size[3];
    const int           seeds[] = {4, 4, 5};
    for (int i = 0; i < 3; i++)
        assert_ok(fem_file_read(&text[i], &size[i], grow(SCENE_OAK, seeds[i], &o, "d.json", NULL)));
    assert_true(size[0] == size[1] && memcmp(text[0], text[1], size[0]) == 0);
    assert_true(size[0] != size[2] || memcmp(text[0], text[2], size[0]) != 0);
    printf("%zu bytes\n", size[0]);
    for (int i = 0; i < 3; i++) fem_free(text[i]);
}

// every species, many seeds and options: the loader takes the scene
static void test_never_refused(void **state) {
    (void)state;
    int seeds = getenv("LIMBER_LONG") ? 60 : 5, count = 0, instances = 0;
    for (int species = 0; species < SCENE_SPECIES; species++)
        for (int seed = 1; seed <= seeds; seed++, count++) {
            scene_plant_options o = scene_plant_default_options();
            scene              *s = NULL;
            o.wood = (scene_species)species;
            o.classes = 1 + seed % 7, o.hex = seed % 3 == 0, o.rings = 1 + seed % 2, o.segments = 6 + seed;
            o.leaf_scale = 0.5 + 0.2 * (seed % 5), o.wind = seed % 4 == 0 ? 0 : 5;
            o.leaves = seed % 5 == 3 ? 0 : seed % 5 == 4 ? 10 : -1;
            char      *path = grow((scene_species)species, seed, &o, "plant.json", NULL);
            fem_status status = scene_load(&s, path, 0, NULL);
            if (status != FEM_OK)
                fail_msg("%s %d: %s", scene_species_name((scene_species)species), seed, fem_message());
            instances += s->forest.count;
            scene_destroy(s);
        }
    printf("%d plants, %d instances\n", count, instances);
    assert_true(instances > 100 * count);
}

// small plants run in strong wind, with steps of a sixtieth of a second
static void test_runs(void **state) {
    (void)state;
    for (int species = 0; species < SCENE_SPECIES; species += 2) { // oak, birch, flower
        scene_plant_options o = scene_plant_default_options();
        scene_result        result = {0};
        scene              *s = NULL;
        o.wood = (scene_species)species, o.wind = 12;
        o.classes = 3, o.branch_modes = 8, o.leaf_modes = 3, o.segments = 12;
        assert_ok(scene_load(&s, grow((scene_species)species, 3, &o, "plant.json", NULL), 0, NULL));
        assert_ok(scene_run(s, test_temporary("plant"), species == SCENE_FLOWER ? 120 : 30, NULL, &result));
        printf("%s: %d instances, %d steps, largest displacement %.3f m\n", scene_species_name((scene_species)species),
               s->forest.count, result.steps, result.max_displacement);
        assert_true(result.max_displacement > 1e-3 && result.max_displacement < 3);
        scene_result_destroy(&result);
        scene_destroy(s);
    }
}

// with a class for each branch the instances stand where the skeleton has them; with fewer they are near
static void test_places(void **state) {
    (void)state;
    double worst[3];
    for (int k = 0; k < 3; k++) {
        const int           classes[] = {1000, 12, 2};
        scene_plant_options o = scene_plant_default_options();
        scene_plant_report  report;
        scene              *s = NULL;
        scene_skeleton      skeleton = {0};
        solver_forest      *forest = NULL;
        double              away = 0, leaves = 0;
        o.classes = classes[k], o.segments = 8;
        assert_ok(scene_skeleton_grow(&skeleton, SCENE_OAK, 2));
        assert_ok(scene_plant_write(&skeleton, &o, test_temporary("places.json"), &report));
        assert_ok(scene_load(&s, test_temporary("places.json"), 0, NULL));
        assert_int_equal(s->forest.count, skeleton.branch_count + skeleton.leaf_count);
        assert_ok(solver_forest_create(&forest, s->forest.part_count, s->forest.parts, s->forest.count,
                                       s->forest.instances, NULL));
        for (int i = 0; i < skeleton.branch_count; i++) {
            const double *p = skeleton.branches[i].points;
            double        base[3] = {p[0], -p[2], p[1]}, least = INFINITY;
            for (int g = 0; g < forest->count; g++) least = fmin(least, vec3_distance(forest->world[g].p, base));
            away = fmax(away, least);
        }
        for (int i = 0; i < skeleton.leaf_count; i += 50) {
            const double *p = skeleton.leaves[i].p;
            double        base[3] = {p[0], -p[2], p[1]}, least = INFINITY;
            for (int g = 0; g < forest->count; g++) least = fmin(least, vec3_distance(forest->world[g].p, base));
            leaves = fmax(leaves, least);
        }
        worst[k] = report.worst;
        printf("%d classes: branches within %.2e m, bases %.2e m, leaves %.3f m\n", report.classes, report.worst, away,
               leaves);
        if (k == 0) assert_true(report.worst < 1e-6 && away < 1e-4 && leaves < 0.1 && report.classes > 30);
        solver_forest_destroy(forest);
        scene_destroy(s);
        scene_skeleton_destroy(&skeleton);
    }
    assert_true(worst[1] < worst[2] && worst[1] < 0.5);
}

// Lowest frequency of a scene, Hz.
static double lowest(const char *path, int count, const char *const *overrides) {
    scene            *s = NULL;
    scene_frequencies f = {0};
    assert_ok(scene_load(&s, path, count, overrides));
    assert_ok(scene_find_frequencies(s, 1, NULL, &f));
    double hertz = sqrt(f.eigenvalues[0]) / (2 * M_PI);
    scene_frequencies_destroy(&f);
    scene_destroy(s);
    return hertz;
}

// Sway: a tree is slower than its trunk without the branches, and internal damping is below 5% of critical [Moore and
// Maguire 2004, a review of 602 conifers]. The ranges in hertz are ours: what is typical of trees of ten metres. That
// of a leaf is chosen, and its modulus follows.
static void test_frequencies(void **state) {
    (void)state;
    scene_plant_options o = scene_plant_default_options();
    scene_skeleton      skeleton = {0};
    double              alpha = 0.15, beta = 0.006; // as the scene has them
    double              tree = lowest(grow(SCENE_OAK, 1, &o, "oak.json", NULL), 0, NULL);
    assert_ok(scene_skeleton_grow(&skeleton, SCENE_OAK, 1));
    for (int i = 1; i < skeleton.branch_count; i++)
        fem_free(skeleton.branches[i].points), fem_free(skeleton.branches[i].radii);
    double radius = skeleton.branches[0].radii[0];
    skeleton.branch_count = 1, skeleton.leaf_count = 0;
    assert_ok(scene_plant_write(&skeleton, &o, test_temporary("trunk.json"), NULL));
    double trunk = lowest(test_temporary("trunk.json"), 0, NULL);
    double L = scene_branch_length(&skeleton.branches[0]);
    // a cone would have more, a cylinder less: (3.516 / 2 pi) sqrt(E r^2 / 4 rho) / L^2
    double cylinder = 3.516 / (2 * M_PI) * sqrt(9.5e9 * radius * radius / 4 / 1000) / (L * L);
    scene_skeleton_destroy(&skeleton);
    const char *const leaf_only[] = {"objects=[{\"part\": \"leaf\"}]", "solver.method=\"reduced\""};
    double            leaf = lowest(grow(SCENE_OAK, 1, &o, "oak.json", NULL), 2, leaf_only);
    double            w = 2 * M_PI * tree, w_leaf = 2 * M_PI * leaf;
    double            damping = alpha / (2 * w) + beta * w / 2, leaf_damping = alpha / (2 * w_leaf) + beta * w_leaf / 2;
    double            w_trunk = 2 * M_PI * trunk, trunk_damping = alpha / (2 * w_trunk) + beta * w_trunk / 2;
    printf("tree %.3f Hz, damping %.3f; trunk %.2f Hz (a cylinder %.2f), damping %.3f; leaf %.2f Hz, damping %.3f\n",
           tree, damping, trunk, cylinder, trunk_damping, leaf, leaf_damping);
    // docs/plants.md: internal damping below 0.05, of trees without branches 0.01 to 0.08 and faster; the range of the
    // tree's frequency is ours
    assert_true(tree > 0.3 && tree < 2 && damping > 0 && damping < 0.05);
    assert_true(trunk > 1.2 * tree && trunk > cylinder && trunk < 2 * cylinder);
    assert_true(trunk_damping > 0.01 && trunk_damping < 0.08);
    assert_true(leaf > 1 && leaf < 10 && fabs(leaf - 5) < 0.3 && leaf_damping < 0.2);
}

// what the loader would refuse is refused here, and just that: as many modes as there can be are taken
static void test_limits(void **state) {
    (void)state;
    scene_skeleton      skeleton = {0};
    scene_plant_options o = scene_plant_default_options();
    const char         *path = test_temporary("limit.json");
    assert_ok(scene_skeleton_grow(&skeleton, SCENE_FLOWER, 1));
    o.leaf_cells = 2, o.leaf_modes = 55;
    assert_fails(scene_plant_write(&skeleton, &o, path, NULL), FEM_BAD_INPUT,
                 "plant.leaf_modes is 55, expected at most 54 with so few cells");
    o.leaf_modes = 54;
    scene *s = NULL;
    assert_ok(scene_plant_write(&skeleton, &o, path, NULL));
    assert_ok(scene_load(&s, path, 0, NULL));
    scene_destroy(s), s = NULL;
    assert_fails(scene_load(&s, path, 1, (const char *[]){"parts.leaf.modes.count=55"}), FEM_BAD_INPUT, "at most 54");
    o = scene_plant_default_options(), o.seconds = 3e4;
    assert_ok(scene_plant_write(&skeleton, &o, path, NULL));
    assert_ok(scene_load(&s, path, 0, NULL));
    scene_destroy(s);
    // a micrometre; a trunk of a micrometre beside a plant
    o = scene_plant_default_options();
    scene_branch speck = {.parent = -1, .point_count = 2};
    double       points[6] = {1, 0, 0, 1, 1e-6, 0}, radii[2] = {1e-7, 1e-7};
    speck.points = points, speck.radii = radii;
    scene_skeleton one = {.branch_count = 1, .branches = &speck};
    assert_fails(scene_plant_write(&one, &o, path, NULL), FEM_BAD_INPUT, "the plant is 1e-06 m large");
    scene_branch two[2] = {skeleton.branches[0], speck};
    one = (scene_skeleton){.branch_count = 2, .branches = two};
    assert_fails(scene_plant_write(&one, &o, path, NULL), FEM_BAD_INPUT, "branch 1: a trunk of 1e-06 m");
    // a million leaves and four branches
    int         count = SCENE_INSTANCES_MOST;
    scene_leaf *leaves = fem_alloc((size_t)count, sizeof *leaves);
    assert_non_null(leaves);
    for (int i = 0; i < count; i++) {
        leaves[i] = skeleton.leaves[0];
        leaves[i].length *= 1 + 1e-6 * i;
    }
    one = (scene_skeleton){
        .branch_count = skeleton.branch_count, .branches = skeleton.branches, .leaf_count = count, .leaves = leaves};
    assert_fails(scene_plant_write(&one, &o, path, NULL), FEM_BAD_INPUT,
                 "4 branches and 1000000 leaves, expected at most 1000000 together");
    fem_free(leaves);
    scene_skeleton_destroy(&skeleton);
    assert_ok(scene_skeleton_grow(&skeleton, SCENE_PINE, 1)); // 2,770 needles, here blades of many elements
    for (int i = 0; i < skeleton.leaf_count; i++) skeleton.leaves[i].width = skeleton.leaves[i].length;
    o.leaf_cells = 100;
    assert_fails(scene_plant_write(&skeleton, &o, path, NULL), FEM_BAD_INPUT, "more than 100000000 elements");
    scene_skeleton_destroy(&skeleton);
    // thirty branches, each on the one before
    scene_branch chain[30];
    double       places[30][6], thick[2] = {0.02, 0.02};
    for (int i = 0; i < 30; i++) {
        memcpy(places[i], (double[6]){0, i, 0, 0, i + 1, 0}, sizeof places[i]);
        chain[i] = (scene_branch){.parent = i - 1, .level = i, .t = 1, .point_count = 2, .points = places[i]};
        chain[i].radii = thick;
    }
    one = (scene_skeleton){.branch_count = 30, .branches = chain};
    o = scene_plant_default_options();
    assert_fails(scene_plant_write(&one, &o, path, NULL), FEM_BAD_INPUT, "28 branches are below it");
    one.branch_count = 28;
    assert_ok(scene_plant_write(&one, &o, path, NULL));
    assert_ok(scene_load(&s, path, 0, NULL));
    scene_destroy(s);
}

// nonsense is refused by name; every allocation may fail
static void test_refused(void **state) {
    (void)state;
    scene_skeleton      skeleton = {0};
    scene_plant_options o = scene_plant_default_options();
    assert_ok(scene_skeleton_grow(&skeleton, SCENE_FLOWER, 1));
    o.classes = 0;
    assert_fails(scene_plant_write(&skeleton, &o, test_temporary("no.json"), NULL), FEM_BAD_INPUT,
                 "plant.classes is 0, expected 1 to 1000");
    o = scene_plant_default_options(), o.leaf_thickness = 0;
    assert_fails(scene_plant_write(&skeleton, &o, test_temporary("no.json"), NULL), FEM_BAD_INPUT,
                 "plant.leaf_thickness is 0, expected 1e-06 to 1");
    o = scene_plant_default_options();
    int parent = skeleton.branches[1].parent;
    skeleton.branches[1].parent = 2;
    assert_fails(scene_plant_write(&skeleton, &o, test_temporary("no.json"), NULL), FEM_BAD_INPUT,
                 "branch 1: its parent is 2, expected -1 or a branch that comes before it");
    skeleton.branches[1].parent = parent;
    long blocks = fem_memory_blocks();
    for (long allowed = 0;; allowed++) {
        fem_memory_fail_after(allowed);
        fem_status status = scene_plant_write(&skeleton, &o, test_temporary("flower.json"), NULL);
        fem_memory_fail_after(-1);
        if (status == FEM_OK) {
            printf("%ld allocations\n", allowed);
            break;
        }
        assert_int_equal(status, FEM_NO_MEMORY);
        assert_int_equal(fem_memory_blocks(), blocks);
    }
    scene_skeleton_destroy(&skeleton);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_deterministic), cmocka_unit_test(test_never_refused),
                                       cmocka_unit_test(test_runs),          cmocka_unit_test(test_places),
                                       cmocka_unit_test(test_frequencies),   cmocka_unit_test(test_limits),
                                       cmocka_unit_test(test_refused)};
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
