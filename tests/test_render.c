// The renderer: what is nearer hides, sizes are right, shadows fall where they must, transparent parts are not there.
#include "tests/glb_case.h"

#include "libscene/model_internal.h"

#include <unistd.h>

// Squares of one paint each, by hand.
typedef struct squares {
    scene_drawing drawing;
    float         positions[3 * 4 * 4], normals[3 * 4 * 4], uv[2 * 4 * 4];
    int           triangles[6 * 4], paint[2 * 4];
    scene_paint   paints[4];
    scene_image   image;
} squares;

static void squares_begin(squares *s) {
    *s = (squares){0};
    s->drawing = (scene_drawing){.positions = s->positions,
                                 .normals = s->normals,
                                 .uv = s->uv,
                                 .triangles = s->triangles,
                                 .paint = s->paint,
                                 .paints = s->paints,
                                 .images = &s->image};
}

// A square around `centre` with half sides a and b; its normal is a x b.
static void squares_add(squares *s, const double centre[3], const double a[3], const double b[3],
                        const float colour[3]) {
    int    k = s->drawing.paint_count++;
    double n[3];
    vec3_cross(n, a, b);
    vec3_normalize(n);
    for (int v = 0; v < 4; v++)
        for (int i = 0; i < 3; i++) {
            float *x = s->positions + 12 * k + 3 * v + i;
            *x = (float)(centre[i] + (v % 2 ? a[i] : -a[i]) + (v / 2 ? b[i] : -b[i]));
            s->normals[12 * k + 3 * v + i] = (float)n[i];
        }
    for (int v = 0; v < 4; v++) s->uv[8 * k + 2 * v] = (float)(v % 2), s->uv[8 * k + 2 * v + 1] = (float)(v / 2);
    const int corners[6] = {0, 1, 3, 0, 3, 2};
    for (int c = 0; c < 6; c++) s->triangles[6 * k + c] = 4 * k + corners[c];
    s->paint[2 * k] = s->paint[2 * k + 1] = k;
    s->paints[k] = (scene_paint){.colour = {colour[0], colour[1], colour[2], 1}, .image = -1, .roughness = 1};
    s->drawing.vertex_count += 4, s->drawing.triangle_count += 2;
}

static const uint8_t *pixel(const scene_image *image, int x, int y) {
    return image->pixels + 4 * (y * image->width + x);
}
static bool is_red(const uint8_t *p) { return p[0] > 2 * p[1] && p[0] > 2 * p[2]; }
static bool is_green(const uint8_t *p) { return p[1] > 2 * p[0] && p[1] > 2 * p[2]; }

static scene_render_options small_options(void) {
    scene_render_options options = scene_render_default_options();
    options.width = 320, options.height = 240, options.shadow_size = 512, options.sky_directions = 6;
    return options;
}

static const float RED[3] = {0.8f, 0.02f, 0.02f}, GREEN[3] = {0.02f, 0.8f, 0.02f};

// a square of known size covers as many pixels as it must; a nearer one hides it, in either order
static void test_cover(void **state) {
    (void)state;
    for (int order = 0; order < 2; order++) {
        squares s;
        squares_begin(&s);
        const double red[3] = {0, 0, 0}, green[3] = {0.5, 0, 1}, a[3] = {1, 0, 0}, b[3] = {0, 1, 0},
                     c[3] = {0.25, 0, 0}, d[3] = {0, 0.25, 0};
        if (order == 0) squares_add(&s, red, a, b, RED);
        squares_add(&s, green, c, d, GREEN);
        if (order == 1) squares_add(&s, red, a, b, RED);
        scene_stage stage = scene_stage_empty();
        scene_stage_add(&stage, &s.drawing);
        scene_camera         camera = {.eye = {0, 0, 5}, .target = {0, 0, 0}, .field = 60};
        scene_render_options options = small_options();
        scene_renderer      *renderer = NULL;
        const scene_image   *image;
        options.ground = false, options.samples = 1;
        assert_ok(scene_renderer_create(&renderer, &options));
        assert_ok(scene_renderer_draw(renderer, &s.drawing, &stage, &camera, &image));
        int reds = 0, greens = 0;
        for (int i = 0; i < 320 * 240; i++) reds += is_red(pixel(image, i, 0)), greens += is_green(pixel(image, i, 0));
        double focal = 120 / tan(M_PI / 6), big = pow(2 * focal / 5, 2), small = pow(0.5 * focal / 4, 2);
        printf("red %d of %.0f, green %d of %.0f pixels\n", reds, big - small, greens, small);
        assert_true(fabs(sqrt(reds + greens) - sqrt(big)) < 1 && fabs(sqrt(greens) - sqrt(small)) < 1); // pixels a side
        scene_renderer_destroy(renderer);
    }
}

// straight below a square the ground lies in its shadow, beside it in the sun
static void test_shadow(void **state) {
    (void)state;
    squares      s;
    const double above[3] = {0, 1, 0}, a[3] = {0.5, 0, 0}, b[3] = {0, 0, -0.5}, floor_centre[3] = {0, 0, 0},
                 wide[3] = {3, 0, 0}, deep[3] = {0, 0, -3};
    squares_begin(&s);
    squares_add(&s, above, a, b, RED);
    squares_add(&s, floor_centre, wide, deep, (const float[]){0.5f, 0.5f, 0.5f});
    scene_stage stage = scene_stage_empty();
    scene_stage_add(&stage, &s.drawing);
    scene_camera         camera = {.eye = {0, 0.5, 6}, .target = {0, 0.4, 0}, .field = 50};
    scene_render_options options = small_options();
    scene_renderer      *renderer = NULL;
    const scene_image   *image;
    options.sun_elevation = 90;
    assert_ok(scene_renderer_create(&renderer, &options));
    assert_ok(scene_renderer_draw(renderer, &s.drawing, &stage, &camera, &image));
    // where the points (x, 0, 0) of the floor are on the screen, by hand
    double forward[2] = {-0.1 / hypot(0.1, 6), -6 / hypot(0.1, 6)}, focal = 120 / tan(25 * M_PI / 180); // y, z
    double depth = -0.5 * forward[0] - 6 * forward[1], up = -0.5 * -forward[1] + -6 * forward[0];
    int    row = (int)(120 - focal * up / depth), shade = 0, sun = 0;
    for (int k = -2; k <= 2; k++) {
        shade += pixel(image, 160 + (int)(focal * 0.1 * k / depth), row)[1];
        sun += pixel(image, 160 + (int)(focal * (1.2 + 0.1 * k) / depth), row)[1];
    }
    printf("row %d: %d in the shadow, %d in the sun\n", row, shade / 5, sun / 5);
    assert_in_range(row, 121, 200);
    assert_true(shade < 0.8 * sun && sun > 5 * 60);
    // at the edge of the shadow it is neither
    int edge = pixel(image, 160 + (int)(focal * 0.5 / depth), row)[1];
    assert_true(5 * edge > shade && 5 * edge < sun + 5);
    scene_renderer_destroy(renderer);
}

// where the picture of a paint is transparent one sees what is behind, and light falls through
static void test_transparent(void **state) {
    (void)state;
    squares      s;
    const double front[3] = {0, 0, 1}, behind[3] = {0, 0, 0}, a[3] = {1, 0, 0}, b[3] = {0, 1, 0};
    uint8_t      pixels[] = {255, 255, 255, 255, 255, 255, 255, 0}; // left half opaque, right half not
    squares_begin(&s);
    squares_add(&s, behind, a, b, GREEN);
    squares_add(&s, front, a, b, RED);
    s.image = (scene_image){.width = 2, .height = 1, .pixels = pixels};
    s.paints[1].image = 0, s.paints[1].alpha_cutoff = 0.5f;
    s.drawing.image_count = 1;
    scene_stage stage = scene_stage_empty();
    scene_stage_add(&stage, &s.drawing);
    scene_camera         camera = {.eye = {0, 0, 20}, .target = {0, 0, 0}, .field = 10};
    scene_render_options options = small_options();
    scene_renderer      *renderer = NULL;
    const scene_image   *image;
    options.sun_azimuth = 0, options.sun_elevation = 20;
    assert_ok(scene_renderer_create(&renderer, &options));
    assert_ok(scene_renderer_draw(renderer, &s.drawing, &stage, &camera, &image));
    const uint8_t *l = pixel(image, 130, 120), *r = pixel(image, 190, 120);
    printf("left %d %d %d, right %d %d %d\n", l[0], l[1], l[2], r[0], r[1], r[2]);
    assert_true(is_red(l) && is_green(r));
    s.paints[1].alpha_cutoff = 0; // opaque
    assert_ok(scene_renderer_draw(renderer, &s.drawing, &stage, &camera, &image));
    assert_true(is_red(pixel(image, 130, 120)) && is_red(pixel(image, 190, 120)));
    scene_renderer_destroy(renderer);
}

// the picture is the same with one and with three threads, and survives its file
static void test_threads(void **state) {
    (void)state;
    glb_case             c;
    scene_model         *model = NULL;
    const char          *path = test_temporary("tree.glb"), *png = test_temporary("tree.png");
    const scene_drawing *drawing;
    const scene_image   *image;
    scene_render_options options = small_options();
    uint8_t             *first = malloc(320 * 240 * 4);
    case_create(&c, 4, 30);
    assert_ok(case_write(&c, path, 5, 10, 1, NULL, NULL));
    assert_ok(scene_model_read(&model, path));
    int before = fem_threads();
    for (int k = 0; k < 2; k++) {
        scene_renderer *renderer = NULL;
        scene_stage     stage = scene_stage_empty();
        fem_set_threads(k == 0 ? 1 : 3);
        assert_ok(scene_model_pose(model, 0.2, &drawing));
        scene_stage_add(&stage, drawing);
        scene_camera camera = scene_camera_fit(&stage, 320, 240, 30, 10, 1, 35);
        assert_ok(scene_renderer_create(&renderer, &options));
        assert_ok(scene_renderer_draw(renderer, drawing, &stage, &camera, &image));
        // the camera shows all of it: the frame around the picture has no triangle
        if (k == 0) memcpy(first, image->pixels, 320 * 240 * 4);
        if (k == 1) assert_memory_equal(first, image->pixels, 320 * 240 * 4);
        if (k == 1) assert_ok(scene_image_write(image, png));
        scene_renderer_destroy(renderer);
    }
    fem_set_threads(before);
    char       *bytes = NULL;
    size_t      size;
    scene_image back = {0};
    assert_ok(fem_file_read(&bytes, &size, png));
    assert_ok(model_image_read(&back, bytes, size));
    assert_int_equal(back.width, 320);
    assert_memory_equal(first, back.pixels, 320 * 240 * 4);
    bytes[size / 2] ^= 0x55;
    scene_image bad = {0};
    assert_int_equal(model_image_read(&bad, bytes, size), FEM_BAD_INPUT);
    scene_image_destroy(&back);
    fem_free(bytes), free(first);
    scene_model_destroy(model);
    case_destroy(&c);
}

// the fitted camera has every corner of the stage in its picture, and one of them near the edge
static void test_fit(void **state) {
    (void)state;
    scene_stage stage = {.low = {-1, 0, -2}, .high = {3, 9, 1}, .centre = {1, 4.5, -0.5}, .radius = 5};
    for (int k = 0; k < 12; k++) {
        double       azimuth = 30 * k, elevation = -20 + 9 * k, field = 20 + 5 * k, largest = 0;
        scene_camera camera = scene_camera_fit(&stage, 640, 480, azimuth, elevation, 1, field);
        double       forward[3], right[3], down[3], up[3] = {0, 1, 0};
        vec3_sub(forward, camera.target, camera.eye);
        vec3_normalize(forward);
        vec3_cross(right, forward, up), vec3_normalize(right);
        vec3_cross(down, forward, right);
        for (int corner = 0; corner < 8; corner++) {
            double d[3];
            for (int i = 0; i < 3; i++) d[i] = (corner >> i & 1 ? stage.high[i] : stage.low[i]) - camera.eye[i];
            double depth = vec3_dot(d, forward), tangent = tan(field * M_PI / 360);
            assert_true(depth > 0);
            largest = fmax(largest, fmax(fabs(vec3_dot(d, right)) / depth / tangent * 0.75,
                                         fabs(vec3_dot(d, down)) / depth / tangent));
        }
        assert_true(largest <= 1 && largest > 0.8);
    }
}

// bad options are refused by name; every allocation may fail
static void test_refused(void **state) {
    (void)state;
    scene_renderer      *renderer = NULL;
    scene_render_options options = small_options();
    options.samples = 9;
    assert_fails(scene_renderer_create(&renderer, &options), FEM_BAD_INPUT, "samples is 9");
    options = small_options(), options.width = 100000;
    assert_fails(scene_renderer_create(&renderer, &options), FEM_BAD_INPUT, "100000 x 240");
    options = small_options(), options.sun_elevation = -3;
    assert_fails(scene_renderer_create(&renderer, &options), FEM_BAD_INPUT, "elevation is -3");
    options = small_options(), options.width = options.height = 16;
    squares s;
    squares_begin(&s);
    squares_add(&s, (const double[]){0, 0, 0}, (const double[]){1, 0, 0}, (const double[]){0, 1, 0}, RED);
    scene_stage        stage = scene_stage_empty();
    scene_camera       camera = {.eye = {0, 0, 5}, .field = 60};
    const scene_image *image;
    assert_ok(scene_renderer_create(&renderer, &options));
    assert_fails(scene_renderer_draw(renderer, &s.drawing, &stage, &camera, &image), FEM_BAD_INPUT, "nothing to see");
    scene_renderer_destroy(renderer);
    scene_stage_add(&stage, &s.drawing);
    long       blocks = fem_memory_blocks(), allowed;
    fem_status status = FEM_NO_MEMORY;
    for (allowed = 0; status != FEM_OK; allowed++) {
        renderer = NULL;
        fem_memory_fail_after(allowed);
        status = scene_renderer_create(&renderer, &options);
        if (status == FEM_OK) status = scene_renderer_draw(renderer, &s.drawing, &stage, &camera, &image);
        fem_memory_fail_after(-1);
        if (status != FEM_OK) assert_int_equal(status, FEM_NO_MEMORY);
        scene_renderer_destroy(renderer);
        assert_int_equal(fem_memory_blocks(), blocks);
    }
    printf("%ld allocations\n", allowed - 1);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cover),   cmocka_unit_test(test_shadow), cmocka_unit_test(test_transparent),
        cmocka_unit_test(test_threads), cmocka_unit_test(test_fit),    cmocka_unit_test(test_refused),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
