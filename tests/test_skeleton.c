// Skeletons of plants: files both ways, what is refused, and plants that grow.
#include "tests/support.h"

#include <math.h>
#include <unistd.h>

// a grown plant survives its file
static void test_file(void **state) {
    (void)state;
    scene_skeleton a = {0}, b = {0};
    const char    *path = test_temporary("oak.json");
    assert_ok(scene_skeleton_grow(&a, SCENE_OAK, 5));
    assert_ok(scene_skeleton_write(&a, path));
    assert_ok(scene_skeleton_read(&b, path, 1));
    assert_int_equal(a.branch_count, b.branch_count);
    assert_int_equal(a.leaf_count, b.leaf_count);
    double worst = 0;
    for (int i = 0; i < a.branch_count; i++) {
        assert_int_equal(a.branches[i].parent, b.branches[i].parent);
        assert_int_equal(a.branches[i].point_count, b.branches[i].point_count);
        for (int k = 0; k < 3 * a.branches[i].point_count; k++)
            worst = fmax(worst, fabs(a.branches[i].points[k] - b.branches[i].points[k]));
    }
    for (int i = 0; i < a.leaf_count; i++)
        for (int k = 0; k < 9; k++) worst = fmax(worst, fabs(a.leaves[i].Q[k] - b.leaves[i].Q[k]));
    printf("%d branches, %d leaves, difference %.1e\n", a.branch_count, a.leaf_count, worst);
    assert_true(worst < 1e-12 && a.leaf_count > 1000);
    scene_skeleton_destroy(&b);
    assert_ok(scene_skeleton_read(&b, path, 0.01)); // in centimetres
    assert_true(fabs(scene_branch_length(&b.branches[0]) - 0.01 * scene_branch_length(&a.branches[0])) < 1e-12);
    scene_skeleton_destroy(&a), scene_skeleton_destroy(&b);
}

// the trees of the shared data are read whole
static void test_data_files(void **state) {
    (void)state;
    static const struct {
        const char *file;
        int         branches, leaves;
    } trees[] = {{"trees/oak_medium.json", 183, 2660},
                 {"trees/pine_dense.json.gz", 1081, 8640},
                 {"trees/bush_1.json", 137, 1248}};
    for (int i = 0; i < 3; i++) {
        const char    *path = test_data(trees[i].file);
        scene_skeleton s = {0};
        if (!path) return;
        assert_ok(scene_skeleton_read(&s, path, 0.2));
        assert_int_equal(s.branch_count, trees[i].branches);
        assert_int_equal(s.leaf_count, trees[i].leaves);
        double worst = 0; // children begin where t says, on the parent's centreline
        for (int k = 0; k < s.branch_count; k++) {
            const scene_branch *b = &s.branches[k];
            double              p[3], d[3], radius;
            if (b->parent < 0) continue;
            scene_branch_at(&s.branches[b->parent], b->t, p, d, &radius);
            worst = fmax(worst, vec3_distance(p, b->points));
        }
        printf("%s: children are within %.1e m of their places\n", trees[i].file, worst);
        assert_true(worst < 1e-5);
        scene_skeleton_destroy(&s);
    }
}

// for any seed: valid, the same again, of the size that it should have, da Vinci's rule at every fork
static void test_grow(void **state) {
    (void)state;
    int seeds = getenv("LIMBER_LONG") ? 400 : 40;
    for (int species = 0; species < SCENE_SPECIES; species++) {
        double lowest = 1e9, highest = 0, worst = 0;
        int    branches = 0, leaves = 0;
        for (int seed = 0; seed < seeds; seed++) {
            scene_skeleton s = {0}, again = {0};
            assert_ok(scene_skeleton_grow(&s, (scene_species)species, (uint64_t)seed));
            assert_ok(scene_skeleton_check(&s));
            double top = 0;
            for (int i = 0; i < s.branch_count; i++) {
                const scene_branch *b = &s.branches[i];
                double              carried = 0, base = b->radii[0], at[3], d[3], radius;
                for (int k = 0; k < b->point_count; k++) top = fmax(top, b->points[3 * k + 1]);
                for (int k = 1; k < b->point_count; k++) assert_true(b->radii[k] <= b->radii[k - 1]);
                for (int c = i + 1; c < s.branch_count; c++)
                    if (s.branches[c].parent == i) carried += pow(s.branches[c].radii[0], 2);
                assert_true(carried < base * base); // its own leaves have pipes too
                if (b->parent >= 0) {
                    scene_branch_at(&s.branches[b->parent], b->t, at, d, &radius);
                    worst = fmax(worst, vec3_distance(at, b->points));
                    assert_true(base < radius * 1.0001);
                }
            }
            for (int i = 0; i < s.leaf_count && seed < 2; i++) { // every leaf sits on its branch
                double at[3], d[3], radius, nearest = 1e9;
                for (int k = 0; k <= 200; k++) {
                    scene_branch_at(&s.branches[s.leaves[i].branch], k / 200.0, at, d, &radius);
                    nearest = fmin(nearest, vec3_distance(at, s.leaves[i].p) - radius);
                }
                assert_true(nearest < 0.005 * scene_branch_length(&s.branches[s.leaves[i].branch]));
            }
            lowest = fmin(lowest, top), highest = fmax(highest, top);
            branches = s.branch_count, leaves = s.leaf_count;
            assert_ok(scene_skeleton_grow(&again, (scene_species)species, (uint64_t)seed));
            for (int i = 0; i < s.branch_count; i++)
                assert_memory_equal(s.branches[i].points, again.branches[i].points,
                                    24 * (size_t)s.branches[i].point_count);
            assert_memory_equal(s.leaves, again.leaves, sizeof *s.leaves * (size_t)s.leaf_count);
            scene_skeleton_destroy(&s), scene_skeleton_destroy(&again);
        }
        printf("%s: %d branches, %d leaves, %.2f to %.2f m, forks off by %.1e m\n",
               scene_species_name((scene_species)species), branches, leaves, lowest, highest, worst);
        assert_true(worst < 1e-12 && highest > lowest);
        if (species == SCENE_OAK) assert_true(branches == 41 && leaves == 1394); // as in Barbič and Zhao 2011
        scene_species found;
        assert_true(scene_species_from_name(&found, scene_species_name((scene_species)species)) &&
                    (int)found == species);
    }
}

#define ONE(body)    "{\"format\":\"tree-skeleton-1\",\"branches\":[" body "]}"
#define TRUNK        "{\"id\":0,\"parent\":-1,\"level\":0,\"t\":0,\"points\":[[0,0,0],[0,1,0]],\"radii\":[0.1,0.05]}"
#define LEAVES(body) "{\"format\":\"tree-skeleton-1\",\"branches\":[" TRUNK "],\"leaves\":[" body "]}"

// bad files are refused with the reason
static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{}", "no \"format\""},
        {"{\"format\":\"tree-skeleton-1\"}", "is no list"},
        {ONE(""), "the plant has no branch"},
        {ONE("{\"id\":0,\"parent\":0,\"level\":0,\"t\":0,\"points\":[[0,0,0],[0,1,0]],\"radii\":[1,1]}"),
         "its parent is 0"},
        {ONE(TRUNK ",{\"id\":1,\"parent\":2,\"level\":1,\"t\":0.5,\"points\":[[0,0,0],[1,0,0]],\"radii\":[1,1]}"),
         "its parent is 2"},
        {ONE(TRUNK ",{\"id\":5,\"parent\":0,\"level\":1,\"t\":0.5,\"points\":[[0,0,0],[1,0,0]],\"radii\":[1,1]}"),
         "whose id"},
        {ONE(TRUNK ",{\"id\":1,\"parent\":0,\"level\":1,\"t\":1.5,\"points\":[[0,0,0],[1,0,0]],\"radii\":[1,1]}"),
         "t is 1.5"},
        {ONE("{\"id\":0,\"parent\":-1,\"level\":0,\"t\":0,\"points\":[[0,0,0],[0,1,0]],\"radii\":[0,1]}"),
         "the radius is 0 m"},
        {ONE("{\"id\":0,\"parent\":-1,\"level\":0,\"t\":0,\"points\":[[0,0,0],[0,0,0]],\"radii\":[1,1]}"),
         "are the same"},
        {ONE("{\"id\":0,\"parent\":-1,\"level\":0,\"t\":0,\"points\":[[0,0,0]],\"radii\":[1]}"), "that many points"},
        {ONE("{\"id\":0,\"parent\":-1,\"level\":0,\"t\":0,\"points\":[[0,0,0],[0,1]],\"radii\":[1,1]}"), "[x, y, z]"},
        {ONE("{\"id\":0,\"parent\":-1,\"level\":0,\"t\":0,\"points\":[[0,0,0],[0,1e9,0]],\"radii\":[1,1]}"),
         "is no place"},
        {LEAVES("[3,0,0,0,0,0,0,1,0.1]"), "leaf 0: branch 3"},
        {LEAVES("[0,0,0,0,0,0,0,0,0.1]"), "quaternion"},
        {LEAVES("[0,0,0,0,0,0,0,1,0]"), "leaf 0: 0 x 0 m"},
        {LEAVES("[0,0,0]"), "another number of entries"},
        {LEAVES("[0.5,0,0,0,0,0,0,1,0.1]"), "a leaf on no branch"},
        {LEAVES("[0,0,1,0,0,0,0,1,0.1],[0,0,0.5,0,0,0,0,1,0.1],[0,-0,1,0,0,0,0,1,0.1]"),
         "leaf 2: is at the same place as leaf 0"},
        {ONE(TRUNK ",{\"id\":1,\"parent\":-1,\"level\":0,\"t\":0,\"points\":[[0,0,0],[0,1,0]],\"radii\":[0.2,0.1]}"),
         "branch 1: is at the same place as branch 0"},
        {ONE(TRUNK
             ",{\"id\":1,\"parent\":0,\"level\":1,\"t\":0.5,\"points\":[[50,0.5,0],[51,0.5,0]],\"radii\":[0.02,0.01]}"),
         "branch 1: begins 50 m away from branch 0, on which it stands, expected at most 0.65 m"}, // 2 x 0.075 + 1/2
        {LEAVES("[0,0,0.5,100,0,0,0,1,0.1]"), "leaf 0: begins 100 m away from branch 0"},
        {LEAVES("[0,0,1.31,0,0,0,0,1,0.1]"), "expected at most 0.3 m"}, // above the tip: 2 x 0.05 + 2 x 0.1
    };
    scene_skeleton s = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = test_write("bad.json", cases[i].text);
        fem_status  status = scene_skeleton_read(&s, path, 1);
        if (status != FEM_BAD_INPUT || !strstr(fem_message(), cases[i].message) || !strstr(fem_message(), path))
            fail_msg("%s: expected \"%s\", got \"%s\"", cases[i].text, cases[i].message,
                     status == FEM_OK ? "success" : fem_message());
        assert_null(s.branches);
    }
    // leaves that share a place but not their axes or their size are two
    assert_ok(scene_skeleton_read(&s,
                                  test_write("good.json", LEAVES("[0,0,1,0,0,0,0,1,0.1],[0,0,1,0,0,0,0,1,0.11],"
                                                                 "[0,0,1,0,0,1,0,0,0.1],[0,0,1,0,0.6,0,0,0.8,0.1]")),
                                  1));
    assert_int_equal(s.leaf_count, 4);
    scene_skeleton_destroy(&s);
    assert_fails(scene_skeleton_read(&s, test_write("good.json", ONE(TRUNK)), 0), FEM_BAD_INPUT, "the unit is 0");
    assert_ok(scene_skeleton_read(&s, test_write("good.json", LEAVES("[0,0,1.29,0,0,0,0,1,0.1]")), 1));
    scene_skeleton_destroy(&s);
}

// every allocation may fail
static void test_memory(void **state) {
    (void)state;
    const char *path = test_write("one.json", LEAVES("[0,0,0.5,0,0,0,0,1,0.1]"));
    long        blocks = fem_memory_blocks(), allowed;
    for (int kind = 0; kind < 2; kind++) {
        fem_status status = FEM_NO_MEMORY;
        for (allowed = 0; status != FEM_OK; allowed++) {
            scene_skeleton s = {0};
            fem_memory_fail_after(allowed);
            status = kind == 0 ? scene_skeleton_read(&s, path, 1) : scene_skeleton_grow(&s, SCENE_FLOWER, 1);
            fem_memory_fail_after(-1);
            if (status != FEM_OK) assert_int_equal(status, FEM_NO_MEMORY);
            scene_skeleton_destroy(&s);
            assert_int_equal(fem_memory_blocks(), blocks);
        }
        printf("%ld allocations\n", allowed - 1);
    }
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),    cmocka_unit_test(test_data_files), cmocka_unit_test(test_grow),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_memory),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
