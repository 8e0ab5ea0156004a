// Bodies cut into domains beside other objects: they move as the body that is not cut, copies share what is computed,
// children hang on the domain that they stand on, and sets, wind and velocities are those of the whole.
#include "tests/support.h"

#include "libscene/internal.h"
#include "libscene/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define HEAD                                                                                                           \
    "{\"limber\": 1, \"materials\": {\"rubber\": {\"density\": 1000, \"young\": 1e6, \"poisson\": 0.3}},\n"            \
    " \"parts\": {\"bar\": {\"mesh\": {\"box\": {\"high\": [4, 0.2, 0.3], \"cells\": [32, 2, 3]}}, \"material\": "     \
    "\"rubber\", \"fixed\": \"x0\", \"modes\": {\"count\": 30}},\n"                                                    \
    "  \"rod\": {\"mesh\": {\"box\": {\"high\": [4, 0.2, 0.3], \"cells\": [32, 2, 3]}}, \"material\": \"rubber\", "    \
    "\"modes\": {\"count\": 20}},\n"                                                                                   \
    "  \"arm\": {\"mesh\": {\"box\": {\"low\": [-0.2, 0, 0], \"high\": [0.2, 0.5, 0.05], \"cells\": [4, 4, 1]}}, "     \
    "\"material\": \"rubber\", \"fixed\": \"y0\", \"modes\": {\"count\": 8}}},\n"
#define TAIL                                                                                                           \
    ", \"solver\": {\"method\": \"reduced\", \"step\": 0.01, \"damping\": {\"stiffness\": 0.01}}, \"output\": "        \
    "{\"frames\": 60, \"rate\": 30, \"probes\": {\"tip\": "

static scene *load(const char *name, const char *objects, const char *probe) {
    static char text[4000];
    scene      *s = NULL;
    snprintf(text, sizeof text, "%s%s%s%s}}}\n", HEAD, objects, TAIL, probe);
    assert_ok(scene_load(&s, test_write(name, text), 0, NULL));
    return s;
}

static void frequencies(scene *s, int count, double *hertz) {
    scene_frequencies found = {0};
    assert_ok(scene_find_frequencies(s, count, NULL, &found));
    for (int i = 0; i < count; i++) hertz[i] = sqrt(found.eigenvalues[i]) / (2 * M_PI);
    scene_frequencies_destroy(&found);
    scene_destroy(s);
}

// frequencies are those of the body that is not cut, from above since interfaces are rigid; of a copy twice as large
// exactly half of them
static void test_frequencies(void **state) {
    (void)state;
    enum { COUNT = 6 };
    double whole[COUNT], cut[COUNT], two[2 * COUNT], worst = 0, scaled = 0;
    frequencies(load("whole.json", "\"objects\": [{\"part\": \"bar\"}]", "\"x1\""), COUNT, whole);
    frequencies(load("cut.json", "\"objects\": [{\"part\": \"bar\", \"scale\": 1, \"decompose\": {\"count\": 4}}]",
                     "{\"instance\": \"bar\"}"),
                COUNT, cut);
    frequencies(load("two.json",
                     "\"objects\": [{\"part\": \"bar\", \"decompose\": {\"count\": 4}, \"places\": "
                     "[[0, 0, 0, 0, 0, 0, 1], [0, 5, 0, 0.3, 0.2, 0.1, 2]]}]",
                     "{\"instance\": \"bar.1\", \"set\": \"x1\"}"),
                2 * COUNT, two);
    for (int i = 0; i < COUNT; i++) {
        worst = fmax(worst, fabs(cut[i] / whole[i] - 1));
        double nearest = INFINITY; // among those of both
        for (int k = 0; k < 2 * COUNT; k++) nearest = fmin(nearest, fabs(two[k] / (cut[i] / 2) - 1));
        scaled = fmax(scaled, nearest);
    }
    printf("cut beside others: %.4f Hz, whole %.4f Hz; worst of six %.2f%% off; twice as large %.1e from half\n",
           cut[0], whole[0], 100 * worst, scaled);
    assert_true(worst < 0.03 && cut[0] > whole[0]);
    assert_true(scaled < 1e-6);
}

static double run_tip(scene *s, double tip[3]) {
    scene_result result = {0};
    assert_ok(scene_run(s, test_temporary("cut"), 0, NULL, &result));
    memcpy(tip, result.probes, 3 * sizeof *tip);
    double far = result.max_displacement;
    scene_result_destroy(&result);
    scene_destroy(s);
    return far;
}

// a force on a set and gravity bend it as they bend the whole, with an arm over a cut
static void test_loads(void **state) {
    (void)state;
    const char *const ways[2] = {"", "\"decompose\": {\"count\": 4},"};
    double            tip[2][3];
    for (int k = 0; k < 2; k++) {
        char text[1200];
        snprintf(text, sizeof text,
                 "\"environment\": {\"gravity\": [0, 0, -1]}, \"actions\": [{\"force\": [0, 2, 0], \"on\": "
                 "{\"instance\": \"bar\", \"set\": \"x1\"}}],\n \"objects\": [{\"part\": \"bar\", %s \"children\": "
                 "[{\"part\": \"arm\", \"translation\": [0.55, 0.2, 0.1], \"repeat\": {\"count\": 4, \"translation\": "
                 "[1, 0, 0]}}]}]",
                 ways[k]);
        run_tip(load("loads.json", text, "{\"instance\": \"arm.3\", \"set\": \"y1\"}"), tip[k]);
    }
    double size = vec3_norm(tip[0]), off = vec3_distance(tip[0], tip[1]);
    printf("the last arm moves by %.4f m, cut and whole differ by %.4f m\n", size, off);
    assert_true(size > 0.1 && off < 0.03 * size);
}

// a free body that flies and spins: the velocity is that of the centre of the whole
static void test_flight(void **state) {
    (void)state;
    double      tip[2][3];
    const char *flies = "\"velocity\": [0.5, 0, 0.2], \"spin\": [0, 0.3, 0.4], \"rotation\": [0, 0, 0.5]";
    for (int k = 0; k < 2; k++) {
        char text[800];
        snprintf(text, sizeof text,
                 "\"objects\": [{\"part\": \"rod\", %s%s}, {\"part\": \"bar\", \"translation\": [0, 9, 0]}]", flies,
                 k == 1 ? ", \"decompose\": {\"count\": 4}" : "");
        run_tip(load("flight.json", text, "{\"instance\": \"rod\", \"set\": \"x1\"}"), tip[k]);
    }
    printf("after two seconds its end is %.4f m from where it was, cut and whole differ by %.1e m\n", vec3_norm(tip[0]),
           vec3_distance(tip[0], tip[1]));
    assert_true(vec3_norm(tip[0]) > 0.5 && vec3_distance(tip[0], tip[1]) < 2e-3);
}

static double area_of(const fem_mesh *mesh, int count, const int *triangles) {
    double area = 0;
    for (int t = 0; t < count; t++) {
        const int *c = triangles + 3 * t;
        double     a[3], b[3], n[3];
        vec3_sub(a, mesh->vertices + 3 * c[1], mesh->vertices + 3 * c[0]);
        vec3_sub(b, mesh->vertices + 3 * c[2], mesh->vertices + 3 * c[0]);
        vec3_cross(n, a, b);
        area += vec3_norm(n) / 2;
    }
    return area;
}

// domains share the surface and the sets of the whole, copies share domains, and children stand on the nearest
static void test_shares(void **state) {
    (void)state;
    scene *s =
        load("shares.json",
             "\"objects\": [{\"part\": \"bar\", \"decompose\": {\"count\": 4, \"domains\": {\"2\": {\"modes\": 7, "
             "\"stiffness\": 3}}}, \"repeat\": {\"count\": 2, \"translation\": [0, 3, 0]}, \"children\": [{\"part\": "
             "\"arm\", \"translation\": [0.5, 0.2, 0.1], \"repeat\": {\"count\": 4, \"translation\": [1, 0, 0]}}]}]",
             "{\"instance\": \"bar.1.3\"}");
    double         area = 0, x1 = 0;
    int            domains = 0;
    const fem_set *whole = fem_mesh_vertex_set(&s->parts[0].mesh, "x1");
    for (int k = 0; k < s->forest.part_count; k++) {
        const scene_part *part = &s->parts[k];
        const fem_set    *set = fem_mesh_vertex_set(&part->mesh, "x1");
        if (part->whole == 0) continue;
        domains++;
        area += area_of(&part->mesh, part->skin_count, part->skin);
        x1 += set ? set->count : 0;
    }
    assert_int_equal(domains, 4);
    assert_int_equal(s->forest.count, 2 * (4 + 4));
    assert_true(fabs(area - 2 * (4 * 0.2 + 4 * 0.3 + 0.2 * 0.3)) < 1e-9);
    assert_int_equal((int)x1, whole->count);
    int modes = 0, held = 0;
    for (int i = 0; i < s->forest.count; i++) {
        const solver_forest_instance *n = &s->forest.instances[i];
        modes += s->forest.parts[n->part].options.modes == 7 && n->stiffness == 3;
        if (strcmp(s->parts[n->part].name, "arm") != 0) continue;
        // its root's middle is in the box of the domain
        const fem_mesh *mesh = &s->parts[s->forest.instances[n->parent].part].mesh;
        double          low = INFINITY, high = -INFINITY;
        for (int v = 0; v < mesh->vertex_count; v++)
            low = fmin(low, mesh->vertices[3 * v]), high = fmax(high, mesh->vertices[3 * v]);
        assert_true(n->at.p[0] >= low - 1e-9 && n->at.p[0] <= high + 1e-9);
        held++;
    }
    assert_int_equal(modes, 2);
    assert_int_equal(held, 8);
    scene_destroy(s);
}

static void refuses(const char *objects, const char *probe, const char *why) {
    static char text[4000];
    scene      *s = NULL;
    snprintf(text, sizeof text, "%s%s%s%s}}}\n", HEAD, objects, TAIL, probe);
    assert_fails(scene_load(&s, test_write("refused.json", text), 0, NULL), FEM_BAD_INPUT, why);
    assert_null(s);
}

#define CUT "\"part\": \"bar\", \"scale\": 1, \"decompose\": {\"count\": 4"
static void test_refused(void **state) {
    (void)state;
    const char *all = "{\"instance\": \"bar\"}";
    // domains are no parts that an object could name, be it cut itself or not
    refuses("\"objects\": [{" CUT "}}, {\"part\": \"bar.d0\", \"translation\": [0, 5, 0]}]", all,
            "objects[1].part: unknown part \"bar.d0\"");
    refuses("\"objects\": [{" CUT "}}, {\"part\": \"bar.d0\", \"decompose\": {}}]", all, "unknown part \"bar.d0\"");
    refuses("\"objects\": [{" CUT ", \"domains\": {\"1\": {\"forces\": \"warped\"}}}}]", all,
            "objects[0].decompose: a domain has \"warped\" forces, which only an object that stands alone");
    // at one place, cut in one way, in another, or not at all
    refuses("\"objects\": [{" CUT "}}, {" CUT "}}]", all, "are at the same place");
    refuses("\"objects\": [{" CUT "}}, {\"part\": \"bar\", \"decompose\": {\"count\": 2}}]", all, "at the same place");
    refuses("\"objects\": [{" CUT "}}, {\"part\": \"bar\"}]", all, "are at the same place");
    refuses("\"objects\": [{" CUT "}}]", "{\"instance\": \"bar\", \"set\": \"x2\"}", "has no vertex set \"x2\"");
    refuses("\"objects\": [{" CUT "}, \"children\": [{\"part\": \"arm\", \"translation\": [9, 0, 0]}]}]", all,
            "is too far from \"bar.3\"");
}

// regions are those of the whole, and what a domain says of its damping goes before what the object says
static void test_regions_and_damping(void **state) {
    (void)state;
    scene *s = load("damped.json",
                    "\"objects\": [{" CUT ", \"domains\": {\"1\": {\"damping\": {\"mass\": 5, \"stiffness\": 0.01}}}}, "
                    "\"damping\": {\"mass\": 2, \"stiffness\": 0.5}}, {\"part\": \"arm\", \"translation\": [0, 9, 0]}]",
                    "{\"region\": \"bar\"}");
    int    vertices = 0;
    for (int i = 0; i < 4; i++) {
        const solver_forest_instance *n = &s->forest.instances[i];
        assert_true(n->damping_mass == (i == 1 ? 5 : 2));
        assert_true(n->damping_stiffness == (i == 1 ? 0.01 : 0.5)); // though it is the solver's
        vertices += s->parts[n->part].mesh.vertex_count;
    }
    assert_int_equal(s->probes[0].on.count, vertices);
    scene_destroy(s);
}

// a cut child may be as far from its parent as the whole may: a tenth of its diagonal, 0.4 m
static void test_reach(void **state) {
    (void)state;
    scene_destroy(load("reach.json",
                       "\"objects\": [{\"part\": \"arm\", \"children\": [{" CUT "}, \"translation\": [0.5, 0, 0]}]}]",
                       "{\"instance\": \"bar\"}"));
}

// distance from each point to the nearest of others, the largest
static double farthest(int count, const double *x, int others, const double *y) {
    double most = 0;
    for (int i = 0; i < count; i++) {
        double least = INFINITY;
        for (int k = 0; k < others; k++) least = fmin(least, vec3_distance(x + 3 * i, y + 3 * k));
        most = fmax(most, least);
    }
    return most;
}

// a station of a cut mast and panels: .glb and .obj frames are the same shapes, without the faces of the cuts
static void test_files(void **state) {
    (void)state;
    const char *const    overrides[] = {"output.formats=[\"obj\",\"glb\"]", "output.frames=31"};
    scene               *s = NULL;
    scene_model         *model = NULL;
    const scene_drawing *drawing;
    char                 path[700];
    double               off = 0, moved = 0, *first = NULL;
    assert_ok(scene_load(&s, "scenes/panels.json", 2, overrides));
    assert_ok(scene_run(s, test_temporary("panels"), 0, NULL, NULL));
    snprintf(path, sizeof path, "%s/panels.glb", test_temporary("panels"));
    assert_ok(scene_model_read(&model, path));
    for (int frame = 0; frame <= 30; frame += 10) {
        fem_surface shown = {0};
        snprintf(path, sizeof path, "%s/panels_%05d.obj", test_temporary("panels"), frame);
        assert_ok(fem_surface_read(&shown, path));
        assert_ok(scene_model_pose(model, frame / s->rate, &drawing));
        double *x = malloc(sizeof *x * 3 * (size_t)drawing->vertex_count);
        for (int v = 0; v < drawing->vertex_count; v++) { // the file has y up
            const float *p = drawing->positions + 3 * v;
            x[3 * v] = (double)p[0], x[3 * v + 1] = -(double)p[2], x[3 * v + 2] = (double)p[1];
        }
        off = fmax(off, farthest(drawing->vertex_count, x, shown.vertex_count, shown.vertices));
        off = fmax(off, farthest(shown.vertex_count, shown.vertices, drawing->vertex_count, x));
        for (int v = 0; first && v < 3 * drawing->vertex_count; v++) moved = fmax(moved, fabs(x[v] - first[v]));
        if (frame == 0)
            first = x;
        else
            free(x);
        assert_int_equal(shown.triangle_count, drawing->triangle_count);
        fem_surface_destroy(&shown);
    }
    printf("panels: .glb and .obj differ by %.1e m, the motion is %.2f m\n", off, moved);
    assert_true(moved > 0.2 && off < 1e-4 * 16);
    free(first);
    scene_model_destroy(model);
    scene_destroy(s);
}

// a cube of 5 x 5 x 5 hexahedra whose inner 27 are a region: a domain that has no surface
static void test_inside(void **state) {
    (void)state;
    enum { CELLS = 5, POINTS = CELLS + 1 };
    char   text[12000], *mesh = text;
    scene *s = NULL;
    mesh += sprintf(mesh, "*NODE\n");
    for (int v = 0; v < POINTS * POINTS * POINTS; v++)
        mesh += sprintf(mesh, "%d,%g,%g,%g\n", v + 1, 0.1 * (v % POINTS), 0.1 * (v / POINTS % POINTS),
                        0.1 * (v / POINTS / POINTS));
    for (int core = 0; core < 2; core++) {
        mesh += sprintf(mesh, "*ELEMENT, TYPE=C3D8, ELSET=%s\n", core ? "core" : "shell");
        for (int e = 0; e < CELLS * CELLS * CELLS; e++) {
            int  i = e % CELLS, j = e / CELLS % CELLS, k = e / CELLS / CELLS;
            int  v = 1 + i + POINTS * (j + POINTS * k), up = POINTS * POINTS;
            bool inside = i % 4 && j % 4 && k % 4; // neither the first nor the last
            if (inside != core) continue;
            mesh += sprintf(mesh, "%d,%d,%d,%d,%d,%d,%d,%d,%d\n", e + 1, v, v + 1, v + 1 + POINTS, v + POINTS, v + up,
                            v + up + 1, v + up + 1 + POINTS, v + up + POINTS);
        }
    }
    sprintf(mesh, "*MATERIAL, NAME=r\n*ELASTIC\n1e6,0.3\n*DENSITY\n1000\n*SOLID SECTION, ELSET=core, MATERIAL=r\n"
                  "*SOLID SECTION, ELSET=shell, MATERIAL=r\n");
    assert_true(strlen(text) < sizeof text);
    test_write("core.inp", text);
    snprintf(
        text, sizeof text,
        "{\"limber\": 1, \"parts\": {\"core\": {\"mesh\": \"core.inp\", \"fixed\": {\"plane\": {\"point\": [0, 0, "
        "0], \"normal\": [0, 0, 1]}}, \"modes\": {\"count\": 6}}}, \"objects\": [{\"part\": \"core\", \"scale\": 1, "
        "\"decompose\": {\"method\": \"regions\"}}], \"solver\": {\"method\": \"reduced\"}}\n");
    assert_fails(scene_load(&s, test_write("core.json", text), 0, NULL), FEM_BAD_INPUT,
                 "objects[0].decompose: domain 1 lies inside, with no surface");
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frequencies), cmocka_unit_test(test_loads),   cmocka_unit_test(test_flight),
        cmocka_unit_test(test_shares),      cmocka_unit_test(test_refused), cmocka_unit_test(test_regions_and_damping),
        cmocka_unit_test(test_reach),       cmocka_unit_test(test_files),   cmocka_unit_test(test_inside)};
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
