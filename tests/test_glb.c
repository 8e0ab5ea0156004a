// .glb files: what is read back from a file is the motion that was written.
#include "tests/glb_case.h"

#include "libscene/glb_internal.h"
#include "libscene/model_internal.h"

#include <sys/stat.h>
#include <unistd.h>

// Largest distance between the file and the case at a time, all vertices. World axes: y up, metres.
static double compare(glb_case *c, scene_model *model, double time, double amplitude, scene_up up, double unit) {
    const scene_drawing *drawing;
    assert_ok(scene_model_pose(model, time, &drawing));
    case_move(c, time, amplitude);
    double error = 0;
    int    vertex = 0, q = 0;
    for (int i = 0; i < c->figure_count; i++) {
        const scene_surface *s = &c->surfaces[c->figures[i].surface];
        for (int v = 0; v < s->vertex_count; v++, vertex++) {
            double x[3], y[3];
            case_vertex(c, i, q, v, x);
            for (int k = 0; k < 3; k++) y[k] = unit * (double)drawing->positions[3 * vertex + k];
            if (up == SCENE_UP_Z) { // y' = z, z' = -y
                double z = y[1];
                y[1] = -y[2], y[2] = z;
            }
            error = fmax(error, vec3_distance(x, y));
        }
        q += s->r;
    }
    // each primitive of a skin has the vertices of all figures
    assert_int_equal(model->skin_count > 0 ? vertex * model->meshes[0].primitive_count : vertex, drawing->vertex_count);
    return error;
}

// positions evaluated from the file at ten times are the simulation's, to 1e-4 of the size
static void test_positions(void **state) {
    (void)state;
    static const scene_up ups[] = {SCENE_UP_Y, SCENE_UP_Z};
    static const double   units[] = {1, 0.01};
    for (int k = 0; k < 2; k++) {
        glb_case          c;
        scene_glb_report  report;
        scene_glb_options options = scene_glb_default_options();
        scene_model      *model = NULL;
        const char       *path = test_temporary("case.glb");
        options.up = ups[k], options.unit = units[k];
        case_create(&c, 7, 40);
        assert_ok(case_write(&c, path, 91, 30, 1, &options, &report));
        assert_ok(scene_model_read(&model, path));
        double size = vec3_distance(report.low, report.high), worst = 0,
               still = compare(&c, model, 0, 0, ups[k], units[k]);
        for (int i = 0; i < 10; i++) worst = fmax(worst, compare(&c, model, 9 * i / 30.0, 1, ups[k], units[k]));
        printf("up %d, unit %g: error %.2e of the size %.2f; without modes %.2e; %d targets, %.0f bytes\n", k, units[k],
               worst / size, size, still / size, report.targets, report.bytes);
        assert_true(worst < 1e-4 * size);
        assert_true(still > 1e-2 * size); // the modes matter
        assert_int_equal(report.targets, CASE_BRANCH_MODES);
        assert_int_equal(report.frames, 91);
        double begin, end;
        scene_model_times(model, &begin, &end);
        assert_true(begin == 0 && fabs(end - 3) < 1e-6);
        scene_model_destroy(model);
        case_destroy(&c);
    }
}

// every weight lies in [0, 1], each mode reaches both ends, and figures share their meshes
static void test_weights(void **state) {
    (void)state;
    glb_case     c;
    scene_model *model = NULL;
    const char  *path = test_temporary("weights.glb");
    case_create(&c, 3, 10);
    assert_ok(case_write(&c, path, 50, 10, 1, NULL, NULL));
    assert_ok(scene_model_read(&model, path));
    assert_int_equal(model->mesh_count, CASE_SURFACES);
    assert_int_equal(model->node_count, c.figure_count + 1);
    double low[8] = {1, 1, 1, 1, 1, 1, 1, 1}, high[8] = {0};
    int    channels = 0;
    for (int i = 0; i < model->channel_count; i++) {
        const model_channel *channel = &model->channels[i];
        if (channel->path != MODEL_WEIGHTS) continue;
        int surface = model->nodes[channel->node].mesh, r = c.surfaces[surface].r;
        channels++;
        assert_int_equal(channel->output.component, GLTF_USHORT);
        assert_int_equal(channel->output.count, 50 * r);
        for (size_t k = 0; k < channel->output.count; k++) {
            double weight = model_number(&channel->output, k, 0);
            assert_true(weight >= 0 && weight <= 1);
            low[4 * surface + (int)k % r] = fmin(low[4 * surface + (int)k % r], weight);
            high[4 * surface + (int)k % r] = fmax(high[4 * surface + (int)k % r], weight);
        }
    }
    assert_int_equal(channels, c.figure_count);
    for (int l = 0; l < CASE_BRANCH_MODES; l++) assert_true(low[l] == 0 && high[l] == 1);
    for (int l = 0; l < CASE_LEAF_MODES; l++) assert_true(low[4 + l] == 0 && high[4 + l] == 1);
    scene_model_destroy(model);
    case_destroy(&c);
}

// Largest angle between the normals of the file and those of the deformed triangles, radians.
static double normal_error(glb_case *c, double amplitude) {
    const char          *path = test_temporary("normals.glb");
    scene_model         *model = NULL;
    const scene_drawing *d;
    double               worst = 0;
    assert_ok(case_write(c, path, 21, 10, amplitude, NULL, NULL));
    assert_ok(scene_model_read(&model, path));
    for (int frame = 0; frame < 21; frame += 4) {
        assert_ok(scene_model_pose(model, frame / 10.0, &d));
        double *N = calloc((size_t)d->vertex_count * 3, sizeof *N);
        for (int t = 0; t < d->triangle_count; t++) {
            const int *corner = d->triangles + 3 * t;
            double     x[3][3], a[3], b[3], n[3];
            for (int k = 0; k < 9; k++) x[k / 3][k % 3] = (double)d->positions[3 * corner[k / 3] + k % 3];
            vec3_sub(a, x[1], x[0]), vec3_sub(b, x[2], x[0]);
            vec3_cross(n, a, b);
            for (int k = 0; k < 3; k++) vec3_axpy(N + 3 * corner[k], 1, n);
        }
        for (int v = 0; v < d->vertex_count; v++) {
            double n[3] = {d->normals[3 * v], d->normals[3 * v + 1], d->normals[3 * v + 2]}, cross[3];
            vec3_normalize(N + 3 * v);
            vec3_cross(cross, n, N + 3 * v);
            assert_true(vec3_dot(n, N + 3 * v) > 0);
            worst = fmax(worst, vec3_norm(cross));
        }
        free(N);
    }
    scene_model_destroy(model);
    return worst;
}

// normals follow the deformation to first order: halving it quarters their error
static void test_normals(void **state) {
    (void)state;
    glb_case c;
    case_create(&c, 2, 3);
    double e1 = normal_error(&c, 0.4), e2 = normal_error(&c, 0.2), order = log2(e1 / e2);
    printf("angle of normals: %.3f rad, %.4f rad at half the motion, order %.2f\n", e1, e2, order);
    assert_true(e1 < 0.1 && e1 > 1e-3);
    assert_true(order > 1.8);
    case_destroy(&c);
}

// figures that never move have no tracks, one frame has no animation, modes without motion are left out
static void test_still(void **state) {
    (void)state;
    glb_case         c;
    scene_model     *model = NULL;
    scene_glb_report report;
    const char      *path = test_temporary("still.glb");
    case_create(&c, 2, 3);
    assert_ok(case_write(&c, path, 1, 30, 1, NULL, NULL));
    assert_ok(scene_model_read(&model, path));
    assert_int_equal(model->channel_count, 0);
    assert_true(compare(&c, model, 0, 1, SCENE_UP_Y, 1) < 1e-4);
    scene_model_destroy(model);
    assert_ok(case_write(&c, path, 5, 30, 0, NULL, &report));
    assert_int_equal(report.targets, 0);
    assert_int_equal(report.left_out, CASE_BRANCH_MODES + CASE_LEAF_MODES);
    assert_ok(scene_model_read(&model, path));
    assert_int_equal(model->channel_count, 2 * (c.figure_count - 1)); // the first figure stands
    assert_true(compare(&c, model, 4 / 30.0, 0, SCENE_UP_Y, 1) < 1e-4);
    scene_model_destroy(model);
    case_destroy(&c);
}

// the boxes of the frames hold every vertex, and are not much larger than they must be
static void test_bounds(void **state) {
    (void)state;
    glb_case         c;
    scene_glb_report report;
    double           low[3] = {1e9, 1e9, 1e9}, high[3] = {-1e9, -1e9, -1e9};
    case_create(&c, 5, 50);
    assert_ok(case_write(&c, test_temporary("bounds.glb"), 30, 10, 1, NULL, &report));
    for (int frame = 0; frame < 30; frame++) {
        case_move(&c, frame / 10.0, 1);
        for (int i = 0, q = 0; i < c.figure_count; q += c.surfaces[c.figures[i++].surface].r)
            for (int v = 0; v < c.surfaces[c.figures[i].surface].vertex_count; v++) {
                double x[3];
                case_vertex(&c, i, q, v, x);
                for (int k = 0; k < 3; k++) low[k] = fmin(low[k], x[k]), high[k] = fmax(high[k], x[k]);
            }
    }
    for (int k = 0; k < 3; k++) assert_true(report.low[k] < low[k] + 1e-6 && report.high[k] > high[k] - 1e-6);
    double ratio = vec3_distance(report.low, report.high) / vec3_distance(low, high);
    printf("the box of the file is %.3f times the true one\n", ratio);
    assert_true(ratio < 1.3);
    case_destroy(&c);
}

// what cannot be written is refused by name, and no file is left
static void test_refused(void **state) {
    (void)state;
    glb_case    c;
    scene_glb  *glb = NULL;
    const char *path = test_temporary("refused.glb");
    case_create(&c, 2, 2);
#define CREATE()                                                                                                       \
    scene_glb_create(&glb, path, CASE_LOOKS, c.looks, CASE_SURFACES, c.surfaces, c.figure_count, c.figures, NULL)
    c.figures[1].scale = 0;
    assert_fails(CREATE(), FEM_BAD_INPUT, "scale 0, expected > 0");
    c.figures[1].scale = 1, c.figures[2].surface = 7;
    assert_fails(CREATE(), FEM_BAD_INPUT, "figure 2: surface 7");
    c.figures[2].surface = 1, c.triangles[1][4] = 4000;
    assert_fails(CREATE(), FEM_BAD_INPUT, "surface \"leaf\", triangle 1: vertex 4000");
    c.triangles[1][4] = 0, c.patches[0].look = 2;
    assert_fails(CREATE(), FEM_BAD_INPUT, "look 2, expected 0 to 1");
    c.patches[0].look = 0, c.patches[0].count--;
    assert_fails(CREATE(), FEM_BAD_INPUT, "its patches have");
    c.patches[0].count++, c.memory[1][3] = NAN;
    assert_fails(CREATE(), FEM_BAD_INPUT, "not finite");
    c.memory[1][3] = 0;
    assert_ok(CREATE());
    case_move(&c, 0, 1);
    assert_ok(scene_glb_frame(glb, 0, c.poses, c.q));
    assert_fails(scene_glb_frame(glb, 0, c.poses, c.q), FEM_BAD_INPUT, "does not come after");
    c.q[3] = NAN;
    assert_fails(scene_glb_frame(glb, 1, c.poses, c.q), FEM_UNSTABLE, "frame 1, figure \"branch 1\": its motion");
    c.q[3] = 0, c.poses[2].Q[0] = 2;
    assert_fails(scene_glb_frame(glb, 1, c.poses, c.q), FEM_UNSTABLE, "not a rotation");
    scene_glb_abandon(glb);
    assert_ok(CREATE());
    assert_fails(scene_glb_commit(glb, NULL), FEM_BAD_INPUT, "no frames");
    assert_int_equal(access(path, F_OK), -1);
    path = "/nowhere/at/all.glb";
    assert_fails(CREATE(), FEM_IO, "cannot be created");
    case_destroy(&c);
}

// every allocation may fail, in the writer and in the reader
static void test_memory(void **state) {
    (void)state;
    glb_case    c;
    const char *path = test_temporary("memory.glb"), *whole = test_temporary("whole.glb");
    long        blocks = fem_memory_blocks(), allowed;
    fem_status  status = FEM_NO_MEMORY;
    case_create(&c, 2, 3);
    assert_ok(case_write(&c, whole, 5, 30, 1, NULL, NULL));
    for (allowed = 0; status != FEM_OK; allowed++) {
        fem_memory_fail_after(allowed);
        status = case_write(&c, path, 5, 30, 1, NULL, NULL);
        fem_memory_fail_after(-1);
        if (status != FEM_OK) assert_int_equal(status, FEM_NO_MEMORY);
        assert_int_equal(access(path, F_OK), status == FEM_OK ? 0 : -1);
        assert_int_equal(fem_memory_blocks(), blocks);
    }
    printf("the writer needs %ld allocations", allowed - 1);
    status = FEM_NO_MEMORY;
    for (allowed = 0; status != FEM_OK; allowed++) {
        scene_model *model = NULL;
        fem_memory_fail_after(allowed);
        status = scene_model_read(&model, whole);
        fem_memory_fail_after(-1);
        if (status != FEM_OK) assert_int_equal(status, FEM_NO_MEMORY);
        scene_model_destroy(model);
        assert_int_equal(fem_memory_blocks(), blocks);
    }
    printf(", the reader %ld\n", allowed - 1);
    case_destroy(&c);
}

// 60 s of an oak of 1,435 figures at 30 frames a second stays below 100 MB, and so does the memory
static void test_oak_size(void **state) {
    (void)state;
    glb_case         c;
    scene_glb_report report;
    const char      *path = test_temporary("oak.glb");
    double          *leaf = NULL;
    case_create(&c, 41, 1394);
    // P1's oak: leaves of 8 modes
    size_t n3 = 3 * (size_t)c.surfaces[1].vertex_count;
    leaf = calloc(8 * n3, sizeof *leaf);
    for (size_t i = 0; i < 8 * n3; i++) leaf[i] = c.memory[3][i % n3] * (1 + 0.1 * (double)(i / n3));
    c.surfaces[1].r = 8, c.surfaces[1].modes = leaf;
    c.q_count = 41 * CASE_BRANCH_MODES + 1394 * 8;
    c.q = realloc(c.q, (size_t)c.q_count * sizeof *c.q);
    size_t           before = fem_memory_bytes();
    scene_glb_report less;
    bool             all = getenv("LIMBER_LONG") != NULL;
    int              frames = all ? 1800 : 120;
    assert_ok(case_write(&c, path, frames / 2, 30, 1, NULL, &less));
    assert_ok(case_write(&c, path, frames, 30, 1, NULL, &report));
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_true((double)about.st_size == report.bytes);
    double bytes = report.bytes + (1800 - frames) * (report.bytes - less.bytes) / (frames - frames / 2);
    printf("60 s of 1,435 figures: %.1f MB%s, %.1f MB of memory\n", bytes / 1e6, all ? "" : " as 4 s foretell",
           (double)(fem_memory_peak() - before) / 1e6);
    assert_true(fem_memory_peak() - before < 100u << 20);
    assert_true(bytes < 100e6);
    free(leaf);
    case_destroy(&c);
}

// ---- hostile files ------------------------------------------------------------------------------------------------

static void write_bytes(const char *path, const char *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

// A file with this JSON and `size` zero bytes of data.
static const char *container(const char *json, size_t size) {
    static char bytes[8192];
    size_t      length = (strlen(json) + 3) / 4 * 4;
    uint32_t    words[5] = {GLB_MAGIC, 2, (uint32_t)(28 + length + size), (uint32_t)length, GLB_CHUNK_JSON};
    uint32_t    second[2] = {(uint32_t)size, GLB_CHUNK_BIN};
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, words, 20);
    memset(bytes + 20, ' ', length);
    memcpy(bytes + 20, json, strlen(json));
    memcpy(bytes + 20 + length, second, 8);
    const char *path = test_temporary("hostile.glb");
    write_bytes(path, bytes, 28 + length + size);
    return path;
}

#define ACCESSOR(view, count) "{\"bufferView\":" view ",\"componentType\":5126,\"count\":" count ",\"type\":\"VEC3\"}"
#define VIEWS(length)         "\"bufferViews\":[{\"buffer\":0,\"byteLength\":" length "}]"
#define MESH                  "\"meshes\":[{\"primitives\":[{\"attributes\":{\"POSITION\":0}}]}]"

// each is refused with a message that says what is wrong
static void test_hostile(void **state) {
    (void)state;
    static const struct {
        const char *json, *message;
    } cases[] = {
        {"[]", "no object"},
        {"{\"nodes\":3}", "expected a list"},
        {"{\"nodes\":[{\"mesh\":0}]}", "an index into an empty list"},
        {"{\"nodes\":[{\"children\":[0]}]}", "nodes in a loop"},
        {"{\"nodes\":[{\"children\":[1]},{\"children\":[0]}]}", "nodes in a loop"},
        {"{\"nodes\":[{\"children\":[2]},{\"children\":[2]},{}]}", "a node with two parents"},
        {"{\"nodes\":[{\"children\":[7]}]}", "a child that is no node"},
        {"{\"nodes\":[{\"children\":[-1]}]}", "a child that is no node"},
        {"{\"nodes\":[{\"rotation\":[0,0,1]}]}", "a list of another length"},
        {"{\"extensionsRequired\":[\"KHR_draco_mesh_compression\"]}", "export without compression"},
        {"{\"meshes\":[{\"primitives\":[{}]}]}", "a primitive without positions"},
        {"{" MESH "}", "an index into an empty list"},
        {"{" MESH ",\"accessors\":[" ACCESSOR("0", "3") "]," VIEWS("35") "}", "reaches behind its view"},
        {"{" MESH ",\"accessors\":[" ACCESSOR("0", "3") "]," VIEWS("4000000000") "}",
         "reaches behind the binary chunk"},
        {"{" MESH ",\"accessors\":[" ACCESSOR("0", "2147483647") "]," VIEWS("36") "}", "reaches behind its view"},
        {"{" MESH ",\"accessors\":[" ACCESSOR("0", "1e99") "]," VIEWS("36") "}", "not a whole number"},
        {"{" MESH ",\"accessors\":[" ACCESSOR("0", "-3") "]," VIEWS("36") "}", "not a whole number"},
        {"{" MESH ",\"accessors\":[" ACCESSOR("9", "3") "]," VIEWS("36") "}", "\"bufferView\" is not a whole number"},
        {"{\"accessors\":[{\"count\":2000000000,\"componentType\":5126,\"type\":\"VEC3\"}]," MESH "}",
         "more than 100 million"},
        {"{\"skins\":[{\"joints\":[5]}]}", "a joint that is no node"},
        {"{\"animations\":[{\"channels\":[{\"target\":{\"node\":0,\"path\":\"scale\"}}]}],\"nodes\":[{}]}",
         "without sampler"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scene_model *model = NULL;
        fem_status   status = scene_model_read(&model, container(cases[i].json, 36));
        if (status != FEM_BAD_INPUT || !strstr(fem_message(), cases[i].message))
            fail_msg("%s: expected \"%s\", got \"%s\"", cases[i].json, cases[i].message,
                     status == FEM_OK ? "success" : fem_message());
        assert_null(model);
    }
    scene_model *model = NULL;
    assert_fails(scene_model_read(&model, test_write("short.glb", "glTF")), FEM_BAD_INPUT, "does not begin");
    assert_fails(scene_model_read(&model, test_write("other.glb", "PNG1234567890abcdefghijk")), FEM_BAD_INPUT,
                 "does not begin");
}

// damaged files are read or refused, never more
static void test_damage(void **state) {
    (void)state;
    glb_case    c;
    const char *whole = test_temporary("good.glb"), *path = test_temporary("damaged.glb");
    char       *bytes = NULL, *copy;
    size_t      size;
    uint64_t    seed = 7;
    int         read = 0, refused = 0;
    case_create(&c, 2, 2);
    c.surfaces[0].vertex_count = 39, c.patches[0].count = c.surfaces[0].triangle_count = 48; // two rings
    scene_glb *glb = NULL;
    assert_ok(scene_glb_create(&glb, whole, CASE_LOOKS, c.looks, 1, c.surfaces, 2, c.figures, NULL));
    for (int f = 0; f < 3; f++) {
        case_move(&c, f, 1);
        assert_ok(scene_glb_frame(glb, f, c.poses, c.q));
    }
    assert_ok(scene_glb_commit(glb, NULL));
    assert_ok(fem_file_read(&bytes, &size, whole));
    copy = malloc(size);
    for (int i = 0; i < 3000; i++) {
        memcpy(copy, bytes, size);
        size_t length = size, hits = 1 + (size_t)(2 + 2 * test_random(&seed));
        size_t range =
            i % 2 ? size : 20 + (size_t)copy[12] + 256 * (size_t)(unsigned char)copy[13]; // half of them in the JSON
        if (range > size) range = size;
        for (size_t k = 0; k < hits; k++) {
            size_t at = (size_t)((double)range * (0.5 + test_random(&seed) / 2));
            if (i % 4 < 2)
                copy[at] = (char)('0' + (int)(5 + 5 * test_random(&seed)));
            else
                copy[at] = (char)(128 * test_random(&seed));
        }
        if (i % 7 == 0) length = (size_t)((double)size * (0.5 + test_random(&seed) / 2));
        write_bytes(path, copy, length);
        scene_model *model = NULL;
        fem_status   status = scene_model_read(&model, path);
        if (status == FEM_OK) {
            const scene_drawing *drawing;
            assert_ok(scene_model_pose(model, 0.7, &drawing));
            for (int k = 0; k < 3 * drawing->triangle_count; k++)
                assert_in_range(drawing->triangles[k], 0, drawing->vertex_count - 1);
            read++;
        } else {
            assert_int_equal(status, FEM_BAD_INPUT);
            refused++;
        }
        scene_model_destroy(model);
    }
    printf("%d damaged files were read, %d refused\n", read, refused);
    assert_true(read > 100 && refused > 100);
    free(copy);
    fem_free(bytes);
    case_destroy(&c);
}

// for scripts/test-glb-programs: files in LIMBER_GLB_FOLDER, and beside each the true positions at ten times, lines of
// "time figure vertex x y z" in the axes and units of glTF
static void test_for_programs(void **state) {
    (void)state;
    const char *folder = getenv("LIMBER_GLB_FOLDER");
    char        path[600];
    if (!folder) return;
    glb_case          c;
    scene_glb_options options = scene_glb_default_options();
    case_create(&c, 4, 12);
    snprintf(path, sizeof path, "%s/tree.glb", folder);
    assert_ok(case_write(&c, path, 73, 24, 1, &options, NULL));
    snprintf(path, sizeof path, "%s/tree.txt", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int k = 0; k < 10; k++) {
        case_move(&c, k / 3.0, 1);
        for (int i = 0, q = 0; i < c.figure_count; q += c.surfaces[c.figures[i++].surface].r)
            for (int v = 0; v < c.surfaces[c.figures[i].surface].vertex_count; v++) {
                double x[3];
                case_vertex(&c, i, q, v, x);
                fprintf(file, "%.9g %d %d %.9g %.9g %.9g\n", k / 3.0, i, v, x[0], x[1], x[2]);
            }
    }
    assert_int_equal(fclose(file), 0);
    case_destroy(&c);
}

// Weights of a skin: at most four, none negative, their sum 1 as near as floats can; returns the most joints of a
// vertex.
static int check_skin(const scene_model *model, int joints) {
    int most = 0;
    assert_int_equal(model->skin_count, 1);
    assert_int_equal(model->skins[0].joint_count, joints);
    for (int k = 0; k < model->meshes[0].primitive_count; k++) {
        const model_primitive *p = &model->meshes[0].primitives[k];
        assert_non_null(p->joints);
        assert_int_equal(p->target_count, 0);
        for (int v = 0; v < p->vertex_count; v++) {
            double sum = 0;
            int    count = 0;
            for (int i = 4 * v; i < 4 * v + 4; i++) {
                assert_true(p->weights[i] >= 0 && p->weights[i] <= 1);
                assert_true(p->joints[i] < joints && (p->weights[i] > 0 || p->joints[i] == 0));
                sum += (double)p->weights[i], count += p->weights[i] > 0;
            }
            assert_true(fabs(sum - 1) < 2e-7);
            most = count > most ? count : most;
        }
    }
    return most;
}

// one joint a figure: rigid motion comes out as it was, with turns, scales, axes and units
static void test_skin(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        glb_case          c;
        scene_glb_report  report;
        scene_glb_options options = scene_glb_default_options();
        scene_model      *model = NULL;
        char              path[700];
        const char       *folder = getenv("LIMBER_GLB_FOLDER");
        snprintf(path, sizeof path, "%s%sskin%d.glb", folder ? folder : test_temporary("skin"), folder ? "/" : "_", k);
        options.skin = true, options.up = k ? SCENE_UP_Z : SCENE_UP_Y, options.unit = k ? 0.01 : 1;
        case_create(&c, 7, 40);
        double worst = 0, none = 0;
        assert_ok(case_write(&c, path, 91, 30, 0, &options, &report)); // no modes move
        assert_ok(scene_model_read(&model, path));
        double size = vec3_distance(report.low, report.high);
        int    most = check_skin(model, 47);
        for (int i = 0; i < 10; i++) worst = fmax(worst, compare(&c, model, 9 * i / 30.0, 0, options.up, options.unit));
        printf("skin, rigid: error %.2e of the size, up to %d joints a vertex\n", worst / size, most);
        assert_true(worst < 3e-5 * size && report.skin_error < 1e-6 && report.targets == 0);
        assert_int_equal(most, 1);
        scene_model_destroy(model);
        // a bend has no place in the joint of a figure that touches no other: the error is that of the modes
        assert_ok(case_write(&c, path, 91, 30, 1, &options, &report));
        assert_ok(scene_model_read(&model, path));
        check_skin(model, 47);
        none = compare(&c, model, 1.5, 1, options.up, options.unit) / size;
        printf("skin, bending: %.2e at 1.5 s, foretold %.2e\n", none, report.skin_error);
        assert_true(none > 1e-2 && report.skin_error > 1e-2);
        scene_model_destroy(model);
        case_destroy(&c);
    }
}

// two plates with a row of vertices in common and a third between them: where two joints share a vertex evenly, its
// weights are found again
static void test_skin_weights(void **state) {
    (void)state;
    enum { FRAMES = 30 };
    glb_case          c;
    scene_glb        *glb = NULL;
    scene_glb_report  report;
    scene_glb_options options = scene_glb_default_options();
    scene_model      *model = NULL;
    const char       *path = test_temporary("blend.glb");
    case_create(&c, 0, 2); // two leaves in one place: every vertex is shared
    options.skin = true;
    scene_surface *leaf = &c.surfaces[1];
    double        *U = c.memory[3];
    // Figure 0 moves along x by t, figure 1 stands; mode 0 of figure 0 takes back s of it: x = (1 - s) t, so the true
    // weights are 1 - s and s.
    leaf->r = 1;
    for (int v = 0; v < leaf->vertex_count; v++)
        U[3 * v] = -leaf->positions[3 * v + 1] / 0.3, U[3 * v + 1] = U[3 * v + 2] = 0;
    c.figures[0].scale = c.figures[1].scale = 1;
    assert_ok(scene_glb_create(&glb, path, CASE_LOOKS, c.looks, CASE_SURFACES, c.surfaces, 2, c.figures, &options));
    for (int f = 0; f < FRAMES; f++) {
        double     t = 0.01 * f, q[2] = {t, 0};
        scene_pose poses[2] = {{.Q = {1, 0, 0, 0, 1, 0, 0, 0, 1}}, {.Q = {1, 0, 0, 0, 1, 0, 0, 0, 1}}};
        poses[0].p[0] = t;
        assert_ok(scene_glb_frame(glb, f / 30.0, poses, q));
    }
    assert_ok(scene_glb_commit(glb, &report));
    assert_ok(scene_model_read(&model, path));
    assert_int_equal(check_skin(model, 2), 2);
    const model_primitive *p = &model->meshes[0].primitives[0];
    double                 worst = 0;
    for (int v = 0; v < leaf->vertex_count; v++)
        for (int k = 4 * v; k < 4 * v + 4; k++) {
            double s = leaf->positions[3 * v + 1] / 0.3;
            if (p->weights[k] > 0) worst = fmax(worst, fabs((double)p->weights[k] - (p->joints[k] == 0 ? 1 - s : s)));
        }
    printf("weights to %.1e, foretold error %.1e\n", worst, report.skin_error);
    assert_true(worst < 1e-4);
    scene_model_destroy(model);
    case_destroy(&c);
}

// every allocation may fail; more joints than the format counts are refused
static void test_skin_refused(void **state) {
    (void)state;
    glb_case          c;
    scene_glb_options options = scene_glb_default_options();
    const char       *path = test_temporary("refused.glb");
    options.skin = true;
    case_create(&c, 1, 2);
    fem_set_threads(1);
    long held = fem_memory_blocks(), n = 0;
    for (;; n++) {
        fem_memory_fail_after(n);
        fem_status status = case_write(&c, path, 3, 30, 1, &options, NULL);
        fem_memory_fail_after(-1);
        assert_int_equal(fem_memory_blocks(), held);
        if (status == FEM_OK) break;
        assert_int_equal(status, FEM_NO_MEMORY);
        assert_true(access(path, F_OK) != 0);
    }
    fem_set_threads(0);
    printf("%ld failing allocations survived\n", n);
    assert_true(n > 30);
    case_destroy(&c);
    case_create(&c, 1, 65535);
    assert_fails(case_write(&c, path, 1, 30, 1, &options, NULL), FEM_BAD_INPUT, "a skin of 65536 joints");
    case_destroy(&c);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_positions),    cmocka_unit_test(test_weights),      cmocka_unit_test(test_normals),
        cmocka_unit_test(test_still),        cmocka_unit_test(test_bounds),       cmocka_unit_test(test_refused),
        cmocka_unit_test(test_memory),       cmocka_unit_test(test_oak_size),     cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_damage),       cmocka_unit_test(test_for_programs), cmocka_unit_test(test_skin),
        cmocka_unit_test(test_skin_weights), cmocka_unit_test(test_skin_refused),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
