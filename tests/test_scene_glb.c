// The .glb files of runs: what they show is where the run itself had the surface (its .obj files), for trees, held and
// free bodies, full and static scenes.
#include "tests/support.h"

#include "libscene/internal.h"
#include "libscene/model_internal.h"
#include "libscene/record_glb.h"

#include <math.h>
#include <unistd.h>

// Files for scripts/test-glb-programs go where it says.
static const char *folder_for(const char *name) {
    const char *folder = getenv("LIMBER_GLB_FOLDER");
    return folder ? folder : test_temporary(name);
}

static void read_frame(const char *folder, const char *name, int frame, fem_surface *surface) {
    char path[700];
    snprintf(path, sizeof path, "%s/%s_%05d.obj", folder, name, frame);
    assert_ok(fem_surface_read(surface, path));
}

// A vertex of the file in the axes and metres of the scene.
static void world(const scene *s, const float *from, double x[3]) {
    for (int k = 0; k < 3; k++) x[k] = s->glb.unit * (double)from[k];
    if (s->glb.up == SCENE_UP_Y) return;
    double z = x[1];
    x[1] = -x[2], x[2] = z;
}

// For each vertex of the file the one of the .obj that it is, by where they are at the beginning.
static int *match(const scene *s, const scene_drawing *drawing, const fem_surface *first, double size) {
    int *of = malloc(sizeof *of * (size_t)drawing->vertex_count);
    for (int i = 0; i < drawing->vertex_count; i++) {
        double x[3], best = INFINITY;
        world(s, drawing->positions + 3 * i, x);
        for (int v = 0; v < first->vertex_count; v++) {
            double d = vec3_distance(x, first->vertices + 3 * v);
            if (d < best) best = d, of[i] = v;
        }
        assert_true(best < 1e-4 * size);
    }
    return of;
}

// Domains that have the vertex of the mesh at a place.
static int domains_at(const scene *s, const double x[3]) {
    const fem_mesh *mesh = &s->parts[s->object].mesh;
    int             width = fem_element_vertices(mesh->type), count = 0, seen[64] = {0};
    if (s->tree.domains.count == 0) return 1;
    assert_true(s->tree.domains.count <= 64);
    for (int e = 0; e < mesh->element_count; e++)
        for (int k = 0; k < width; k++)
            if (vec3_distance(x, mesh->vertices + 3 * mesh->elements[width * e + k]) < 1e-9)
                seen[s->tree.domains.element_domain[e]] = 1;
    for (int d = 0; d < 64; d++) count += seen[d];
    return count;
}

typedef struct comparison {
    double error, moved, gap; // of the size
    int    shared, left_out;  // vertices of several domains; those of them that the file has fewer of
} comparison;

// Where domains meet, the run shows the mean of their places and the file each of them: their mean must be the run's.
static void compare_frame(const scene *s, scene_model *model, const char *folder, const fem_surface *first,
                          const int *of, const int *copies, int frame, double size, comparison *c) {
    fem_surface          shown = {0};
    const scene_drawing *drawing;
    int                  n = first->vertex_count, *count = calloc((size_t)n, sizeof *count);
    double              *mean = calloc(3 * (size_t)n, sizeof *mean);
    read_frame(folder, s->name, frame, &shown);
    assert_ok(scene_model_pose(model, frame / s->rate, &drawing));
    for (int i = 0; i < drawing->vertex_count; i++) {
        double x[3];
        world(s, drawing->positions + 3 * i, x);
        vec3_axpy(mean + 3 * of[i], 1, x);
        count[of[i]]++;
        c->gap = fmax(c->gap, vec3_distance(x, shown.vertices + 3 * of[i]) / size);
    }
    c->shared = c->left_out = 0;
    for (int v = 0; v < n; v++) {
        double *x = mean + 3 * v;
        assert_true(count[v] > 0);
        c->shared += copies[v] > 1, c->left_out += copies[v] != count[v];
        for (int k = 0; k < 3; k++) x[k] /= count[v];
        c->moved = fmax(c->moved, vec3_distance(first->vertices + 3 * v, shown.vertices + 3 * v) / size);
        if (copies[v] == count[v]) c->error = fmax(c->error, vec3_distance(x, shown.vertices + 3 * v) / size);
    }
    fem_surface_destroy(&shown);
    free(mean), free(count);
}

static void check_weights(const scene_model *model) {
    for (int i = 0; i < model->channel_count; i++) {
        const model_channel *channel = &model->channels[i];
        for (size_t k = 0; channel->path == MODEL_WEIGHTS && k < channel->output.count; k++) {
            double weight = model_number(&channel->output, k, 0);
            assert_true(weight >= 0 && weight <= 1);
        }
    }
}

// Runs a scene and compares at ten times.
static comparison compare_run(const char *path, int count, const char *const *overrides, int frames, int *nodes) {
    scene               *s = NULL;
    scene_model         *model = NULL;
    const scene_drawing *drawing;
    fem_surface          first = {0};
    comparison           c = {0};
    scene_result         result = {0};
    char                 glb[700];
    double               low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    assert_ok(scene_load(&s, path, count, overrides));
    const char *folder = folder_for(s->name);
    assert_ok(scene_run(s, folder, frames, NULL, &result));
    snprintf(glb, sizeof glb, "%s/%s.glb", folder, s->name);
    assert_ok(scene_model_read(&model, glb));
    read_frame(folder, s->name, 0, &first);
    for (int v = 0; v < 3 * first.vertex_count; v++)
        low[v % 3] = fmin(low[v % 3], first.vertices[v]), high[v % 3] = fmax(high[v % 3], first.vertices[v]);
    double size = vec3_distance(low, high);
    assert_ok(scene_model_pose(model, 0, &drawing));
    int *of = match(s, drawing, &first, size), *copies = calloc((size_t)first.vertex_count, sizeof *copies);
    for (int v = 0; v < first.vertex_count; v++) copies[v] = domains_at(s, first.vertices + 3 * v);
    for (int k = 0; k < (frames > 1 ? 10 : 1); k++)
        compare_frame(s, model, folder, &first, of, copies, k * (frames - 1) / 9, size, &c);
    check_weights(model);
    if (frames == 1) c.moved = result.max_displacement / size; // there is no frame at rest to compare with
    printf("   %-14s %2d nodes: error %.1e of the size, moved by %.2f; %d vertices shared, %d of them not whole, "
           "gap %.1e\n",
           s->name, model->node_count - 1, c.error, c.moved, c.shared, c.left_out, c.gap);
    *nodes = model->node_count - 1; // one turns the axes
    free(of), free(copies);
    scene_result_destroy(&result);
    fem_surface_destroy(&first);
    scene_model_destroy(model);
    scene_destroy(s);
    return c;
}

#define FORMATS "output.formats=[\"obj\",\"glb\"]"

// each domain of a tree is a node with modes
static void test_tree(void **state) {
    (void)state;
    const char *const overrides[] = {FORMATS};
    int               nodes;
    comparison        c = compare_run("scenes/plant.json", 1, overrides, 46, &nodes);
    assert_int_equal(nodes, 9);
    assert_true(c.error < 1e-4 && c.moved > 0.1);
    assert_true(c.shared > 0 && c.left_out < c.shared / 2);
    assert_true(c.gap < 1e-4); // single copies too
}

#define BLOCK                                                                                                          \
    "{\"limber\": 1, \"materials\": {\"m\": {\"type\": \"stvk\", \"density\": 1000, \"young\": 5e4, \"poisson\": "     \
    "0.3}},\n"                                                                                                         \
    "\"parts\": {\"block\": {\"mesh\": {\"box\": {\"high\": [0.6, 0.1, 0.1], \"cells\": [6, 1, 1]}}, \"material\": "   \
    "\"m\", \"fixed\": \"x0\"}},\n\"objects\": [{\"part\": \"block\"}],\n"                                             \
    "\"environment\": {\"gravity\": [0, 0, -9.81]},\n\"solver\": {\"method\": \"full\", \"step\": 0.02},\n"            \
    "\"output\": {\"frames\": 46, \"rate\": 30, \"formats\": [\"obj\", \"glb\"]}}\n"

// on a skin the joints of neighbouring domains share the bending; seams stay closed
static void test_skin(void **state) {
    (void)state;
    const char *const overrides[] = {FORMATS, "output.glb.skin=true"}, *const full[] = {"output.glb.skin=true"};
    int        nodes;
    comparison c = compare_run("scenes/plant.json", 2, overrides, 46, &nodes);
    assert_int_equal(nodes, 10);                         // joints, and the mesh
    assert_true(c.gap < 0.1 * c.moved && c.moved > 0.1); // joints alone show nine tenths of the motion
    scene *s = NULL;
    assert_ok(scene_load(&s, test_write("whole.json", BLOCK), 1, full));
    assert_fails(scene_run(s, test_temporary("whole"), 0, NULL, NULL), FEM_BAD_INPUT, "this body moves as one piece");
    scene_destroy(s);
}

// a held body stands and bends, a free one moves; axes and units as asked for
static void test_bodies(void **state) {
    (void)state;
    const char *const held[] = {FORMATS, "output.glb={\"up\":\"y\",\"units\":\"cm\"}"}, *const free_body[] = {FORMATS};
    int        nodes;
    comparison c = compare_run("scenes/softening.json", 2, held, 91, &nodes);
    assert_true(nodes == 1 && c.error < 1e-4 && c.moved > 0.02);
    c = compare_run("scenes/ball_on_stairs.json", 1, free_body, 100, &nodes);
    assert_true(nodes == 1 && c.error < 1e-4 && c.moved > 1);
}

// instances: every one is a node, held ones that bend, branches on branches, free ones that fall and bounce
static void test_instances(void **state) {
    (void)state;
    const char *const overrides[] = {FORMATS};
    int               nodes;
    comparison        c = compare_run("scenes/twigs.json", 1, overrides, 28, &nodes);
    assert_true(nodes > 10 && c.error < 1e-4 && c.gap < 1e-4 && c.moved > 0.005);
    // its mast in one piece: where domains meet, two vertices lie in one place (test_scene_cut compares those)
    const char *const whole[] = {FORMATS, "objects=[{\"part\":\"mast\",\"children\":[{\"group\":\"pair\","
                                          "\"translation\":[1.5,0,0],\"repeat\":{\"count\":8,"
                                          "\"translation\":[1.8,0,0]}}]}]"};
    c = compare_run("scenes/panels.json", 2, whole, 37, &nodes);
    assert_true(nodes > 4 && c.error < 1e-4 && c.gap < 1e-4 && c.moved > 0.01);
    c = compare_run("scenes/capsules_on_stairs.json", 1, overrides, 28, &nodes);
    assert_true(nodes == 15 && c.error < 1e-4 && c.gap < 1e-4 && c.moved > 0.05);
}

// motion without modes: as the components of its frames, and a static one as it ends
static void test_frames(void **state) {
    (void)state;
    const char *const full[] = {"solver.method=full"}, *const still[] = {"solver.method=static"};
    const char *path = test_write("block.json", BLOCK);
    int         nodes;
    comparison  c = compare_run(path, 1, full, 46, &nodes);
    assert_true(nodes == 1 && c.error < 1e-4 && c.moved > 0.1);
    c = compare_run(test_write("still.json", BLOCK), 1, still, 1, &nodes);
    assert_true(nodes == 1 && c.error < 1e-4 && c.moved > 0.1);
}

// warped domains are shown as one piece
static void test_warped(void **state) {
    (void)state;
    const char *const overrides[] = {FORMATS, "objects.0.decompose.domains.left.forces=warped"};
    int               nodes;
    comparison        c = compare_run("scenes/plant.json", 2, overrides, 28, &nodes);
    assert_true(nodes == 1 && c.moved > 0.1);
    assert_true(c.gap < 1e-4); // every vertex, those of interfaces too
}

// components: every frame to the tolerance, and with one fewer not
static void test_components(void **state) {
    (void)state;
    enum { N = 60, FRAMES = 25, RANK = 6 };
    double   A[N * FRAMES], copy[N * FRAMES], mean[N], shape[RANK][N], *U = NULL, *q = NULL;
    uint64_t seed = 5;
    int      r = 0;
    for (int l = 0; l < RANK; l++)
        for (int i = 0; i < N; i++) shape[l][i] = test_random(&seed);
    for (int f = 0; f < FRAMES; f++)
        for (int i = 0; i < N; i++) {
            A[N * f + i] = 3 + i;
            for (int l = 0; l < RANK; l++) A[N * f + i] += pow(0.1, l) * sin(0.3 * (l + 1) * f + l) * shape[l][i];
        }
    memcpy(copy, A, sizeof copy);
    assert_ok(scene_compress_frames(N, FRAMES, A, 1e-2, mean, &r, &U, &q));
    double worst[2] = {0};
    for (int f = 0; f < FRAMES; f++)
        for (int fewer = 0; fewer < 2; fewer++) {
            double norm = 0;
            for (int i = 0; i < N; i++) {
                double x = mean[i] - copy[N * f + i];
                for (int l = 0; l < r - fewer; l++) x += U[N * l + i] * q[r * f + l];
                norm += x * x;
            }
            worst[fewer] = fmax(worst[fewer], sqrt(norm));
        }
    printf("   %d components: %.2e, with one fewer %.2e, tolerance 1e-2\n", r, worst[0], worst[1]);
    assert_true(r > 1 && r < RANK && worst[0] <= 1e-2 && worst[1] > 1e-2);
    fem_free(U), fem_free(q);
}

// ---- surfaces with textures and materials ----------------------------------------------------------------------

// A cube inside the box 0 .. 1 of the scene: each face has its own square of the texture, so that all edges are cut in
// it; the first face has no material, the others two by turns.
static const char *write_cube(const char *name) {
    static const int faces[6][4] = {{1, 4, 3, 2}, {5, 6, 7, 8}, {1, 2, 6, 5}, {2, 3, 7, 6}, {3, 4, 8, 7}, {4, 1, 5, 8}};
    char             text[2000] = "mtllib cube.mtl\n";
    for (int k = 0; k < 8; k++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "v %g %g %g\n", k % 4 == 1 || k % 4 == 2 ? 0.9 : 0.1,
                 k % 4 >= 2 ? 0.8 : 0.2, k >= 4 ? 0.75 : 0.25);
    for (int f = 0; f < 6; f++)
        for (int k = 0; k < 4; k++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "vt %g %g\n", (f + (k == 1 || k == 2)) / 8.0,
                     k >= 2 ? 0.75 : 0.125);
    for (int f = 0; f < 6; f++) {
        if (f > 0) snprintf(text + strlen(text), sizeof text - strlen(text), "usemtl %s\n", f % 2 ? "bark" : "old ivy");
        snprintf(text + strlen(text), sizeof text - strlen(text), "f %d/%d %d/%d %d/%d %d/%d\n", faces[f][0], 4 * f + 1,
                 faces[f][1], 4 * f + 2, faces[f][2], 4 * f + 3, faces[f][3], 4 * f + 4);
    }
    return test_write(name, text);
}

// Every triangle of the .obj is in the file, once for each copy, with its texture and material; vertices at one place
// have one normal.
static void compare_paint(const scene *s, const fem_surface *cube, const char *path, int copies) {
    static const char *const none = "rubber";
    scene_model             *model = NULL;
    const scene_drawing     *d;
    int                      found = 0, split = 0;
    double                   texture = 0, bend = 0;
    assert_ok(scene_model_read(&model, path));
    assert_ok(scene_model_pose(model, 0, &d));
    assert_int_equal(d->triangle_count, copies * cube->triangle_count);
    for (int t = 0; t < d->triangle_count; t++) {
        double x[3][3];
        for (int k = 0; k < 3; k++) {
            world(s, d->positions + 3 * d->triangles[3 * t + k], x[k]);
            x[k][0] -= 2 * floor(x[k][0] / 2); // copies stand 2 m apart
        }
        for (int c = 0; c < cube->triangle_count; c++)
            for (int turn = 0; turn < 3; turn++) {
                double far = 0;
                for (int k = 0; k < 3; k++)
                    far = fmax(far, vec3_distance(x[k], cube->vertices + 3 * cube->triangles[3 * c + (k + turn) % 3]));
                if (far > 1e-4) continue;
                found++;
                for (int k = 0; k < 3; k++) {
                    const double *uv = cube->uv + 2 * cube->corners[3 * c + (k + turn) % 3];
                    const float  *is = d->uv + 2 * d->triangles[3 * t + k];
                    texture = fmax(texture, fmax(fabs((double)is[0] - uv[0]), fabs(1 - (double)is[1] - uv[1])));
                }
                const char *name = cube->material[c] < 0 ? none : cube->materials[cube->material[c]];
                assert_string_equal(d->paints[d->paint[t]].name, name);
            }
    }
    for (int i = 0; i < d->vertex_count; i++)
        for (int k = 0; k < i; k++) {
            double x[3], y[3], n = 0;
            world(s, d->positions + 3 * i, x), world(s, d->positions + 3 * k, y);
            if (vec3_distance(x, y) > 1e-4) continue;
            for (int c = 0; c < 3; c++) n += (double)d->normals[3 * i + c] * (double)d->normals[3 * k + c];
            split++;
            bend = fmax(bend, 1 - n);
        }
    printf("   %-9s %d vertices, %d triangles, %d materials: textures off by %.1e, %d pairs at one place, normals by "
           "%.1e\n",
           s->name, d->vertex_count, found, d->paint_count, texture, split, bend);
    assert_int_equal(found, d->triangle_count);
    assert_int_equal(d->vertex_count, 3 * 24 * copies); // each of three materials has them all
    assert_int_equal(d->paint_count, 3 + 1);            // and that of whatever has none
    assert_true(texture < 1e-7 && split > 24 * copies && bend < 1e-5);
    scene_model_destroy(model);
}

static const char PAINTED[] =
    "{\"limber\": 1, \"materials\": {\"rubber\": {\"density\": 1000, \"young\": 1e5, \"poisson\": 0.4}},\n"
    " \"parts\": {\"block\": {\"mesh\": {\"box\": {\"high\": [1, 1, 1], \"cells\": [3, 3, 3]}}, \"surface\": "
    "\"cube.obj\",\n"
    "   \"material\": \"rubber\", \"fixed\": \"x0\", \"modes\": {\"count\": 6}}}, \"objects\": [{\"part\": "
    "\"block\"}],\n"
    " \"environment\": {\"gravity\": [0, 0, -9.81]}, \"solver\": {\"method\": \"reduced\", \"step\": 0.01},\n"
    " \"output\": {\"frames\": 4, \"rate\": 50, \"formats\": [\"glb\"]}}\n";

static void test_painted(void **state) {
    (void)state;
    static const struct {
        const char *name, *way;
        int         copies;
        bool        skin;
    } ways[] = {
        {"one", "title=one", 1, false},
        {"whole", "solver.method=full", 1, false},
        {"copies", "objects=[{\"part\":\"block\",\"repeat\":{\"count\":3,\"translation\":[2,0,0]}}]", 3, false},
        {"skinned", "objects=[{\"part\":\"block\",\"repeat\":{\"count\":3,\"translation\":[2,0,0]}}]", 3, true}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char              file[64], path[700];
        scene            *s = NULL;
        fem_surface       cube = {0};
        const char *const full[] = {ways[i].way, "parts.block.modes={}"};
        snprintf(file, sizeof file, "%s.json", ways[i].name);
        assert_ok(fem_surface_read(&cube, write_cube("cube.obj")));
        const char *scene_path = test_write(file, PAINTED);
        assert_ok(scene_load(&s, scene_path, strstr(ways[i].way, "full") ? 2 : 1, full));
        s->glb.skin = ways[i].skin;
        const char *folder = folder_for(ways[i].name);
        assert_ok(scene_run(s, folder, 0, NULL, NULL));
        snprintf(path, sizeof path, "%s/%s.glb", folder, s->name);
        compare_paint(s, &cube, path, ways[i].copies);
        fem_surface_destroy(&cube);
        scene_destroy(s);
    }
}

// what is refused says what would do
static void test_refused(void **state) {
    (void)state;
    const char *const many[] = {"output.frames=2001"}, *const section[] = {"output.formats=[\"vtu\"]",
                                                                           "output.glb.up=y"};
    const char *path = test_write("block.json", BLOCK);
    scene      *s = NULL;
    assert_ok(scene_load(&s, path, 1, many));
    assert_fails(scene_run(s, test_temporary("many"), 0, NULL, NULL), FEM_BAD_INPUT, "2001 here and at most 2000");
    scene_destroy(s);
    assert_fails(scene_load(&s, path, 2, section), FEM_BAD_INPUT, "output.glb: is not written, expected \"formats\"");
}

// every allocation may fail, and no half file is left
static void test_memory(void **state) {
    (void)state;
    const char *const ways[][2] = {{"solver.method=full", "parts.block.forces={}"},
                                   {"solver.method=reduced", "parts.block.modes={\"linear\":2,\"count\":3}"}};
    long              walked = 0;
    fem_set_threads(1);
    for (int w = 0; w < 2; w++) {
        const char *const overrides[] = {ways[w][0], ways[w][1], "parts.block.mesh.box.cells=[2, 1, 1]",
                                         "output.frames=3"};
        scene            *s = NULL;
        char              glb[700];
        assert_ok(scene_load(&s, test_write("block.json", BLOCK), 4, overrides));
        snprintf(glb, sizeof glb, "%s/block.glb", test_temporary("memory"));
        long held = fem_memory_blocks();
        for (long n = 0;; n++, walked++) {
            fem_memory_fail_after(n);
            fem_status status = scene_run(s, test_temporary("memory"), 0, NULL, NULL);
            fem_memory_fail_after(-1);
            assert_int_equal(fem_memory_blocks(), held);
            if (access(glb, F_OK) == 0) {
                scene_model *model = NULL;
                assert_ok(scene_model_read(&model, glb));
                scene_model_destroy(model);
                unlink(glb);
            } else {
                assert_int_equal(status, FEM_NO_MEMORY);
            }
            if (status == FEM_OK) break;
            assert_int_equal(status, FEM_NO_MEMORY);
        }
        scene_destroy(s);
    }
    fem_set_threads(0);
    printf("   %ld failing allocations survived\n", walked);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tree),       cmocka_unit_test(test_skin),
                                       cmocka_unit_test(test_bodies),     cmocka_unit_test(test_instances),
                                       cmocka_unit_test(test_frames),     cmocka_unit_test(test_warped),
                                       cmocka_unit_test(test_components), cmocka_unit_test(test_painted),
                                       cmocka_unit_test(test_refused),    cmocka_unit_test(test_memory)};
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
