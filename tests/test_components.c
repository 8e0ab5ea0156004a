// A mesh of many pieces as a scene: copies with noise, turned, scaled and shuffled, are found and share a class, what
// touches hangs together, and the motion is that of a scene which says all this by hand.
#include "tests/program_case.h"

#include "libdomain/crowd.h"
#include "libscene/internal.h"

#include <math.h>

enum { ARMS = 4, PIECES = 1 + 2 * ARMS };

// A post with arms around it and a leaf at the end of each: placements of the pieces, by kind.
typedef struct soup {
    fem_mesh         models[3]; // post, arm, leaf
    solver_placement at[PIECES];
    int              kind[PIECES], parent[PIECES];
    fem_mesh         mesh;
    int              first[PIECES + 1]; // vertices
    int             *model_vertex;      // per vertex of the mesh
} soup;

static void make_models(soup *s) {
    const double low[3][3] = {{-0.1, -0.1, 0}, {0, -0.04, -0.04}, {0, -0.02, -0.01}},
                 high[3][3] = {{0.1, 0.1, 2}, {0.6, 0.04, 0.04}, {0.3, 0.02, 0.01}};
    const int cells[3][3] = {{2, 2, 10}, {6, 2, 2}, {4, 2, 1}};
    for (int k = 0; k < 3; k++) {
        assert_ok(fem_generate_box(&s->models[k], FEM_T4, low[k], high[k], cells[k]));
        for (int v = 0; k > 0 && v < s->models[k].vertex_count; v++) { // tapered and bent: no two of its ends are alike
            double *x = s->models[k].vertices + 3 * v, along = x[0] / high[k][0];
            x[1] *= 1 - 0.3 * along, x[2] *= 1 - 0.2 * along;
            x[1] += 0.01 * along * (1 - along);
        }
    }
}

static void place(solver_placement *at, double x, double y, double z, double angle, double scale) {
    solver_placement_identity(at);
    mat3_exp(at->Q, (double[]){0, 0, angle});
    at->p[0] = x, at->p[1] = y, at->p[2] = z;
    at->scale = scale;
}

// The arms stand on the four sides of the post, each 1/8 larger than the one before; leaves at their ends.
static void place_pieces(soup *s) {
    place(&s->at[0], 0, 0, 0, 0, 1);
    s->parent[0] = -1, s->kind[0] = 0;
    for (int k = 0; k < ARMS; k++) {
        double angle = k * M_PI / 2, scale = 0.8 + 0.125 * k;
        place(&s->at[1 + k], 0.1 * cos(angle), 0.1 * sin(angle), 0.8 + 0.3 * k, angle, scale);
        s->kind[1 + k] = 1, s->parent[1 + k] = 0;
        place(&s->at[1 + ARMS + k], 0.6, 0, 0, 0, 1 - 0.1 * k);
        solver_placement_compose(&s->at[1 + ARMS + k], &s->at[1 + k], &s->at[1 + ARMS + k]);
        s->kind[1 + ARMS + k] = 2, s->parent[1 + ARMS + k] = 1 + k;
    }
}

static void shuffle(int count, int *order, uint64_t *random) {
    for (int i = 0; i < count; i++) order[i] = i;
    for (int i = count - 1; i > 0; i--) {
        int k = (int)(fabs(test_random(random)) * (i + 1)) % (i + 1), kept = order[i];
        order[i] = order[k], order[k] = kept;
    }
}

// Vertices of each piece in another order, off by `noise` times its size; elements of the last piece first.
static void make_soup(soup *s, double noise) {
    int      vertices = 0, elements = 0;
    uint64_t random = 3;
    *s = (soup){0};
    make_models(s);
    place_pieces(s);
    for (int i = 0; i < PIECES; i++) {
        s->first[i] = vertices;
        vertices += s->models[s->kind[i]].vertex_count, elements += s->models[s->kind[i]].element_count;
    }
    s->first[PIECES] = vertices;
    assert_ok(fem_mesh_allocate(&s->mesh, FEM_T4, vertices, elements));
    s->model_vertex = malloc(sizeof(int) * (size_t)vertices);
    for (int i = PIECES - 1, e = 0; i >= 0; i--) {
        const fem_mesh *m = &s->models[s->kind[i]];
        int            *order = malloc(sizeof *order * (size_t)m->vertex_count);
        shuffle(m->vertex_count, order, &random);
        for (int v = 0; v < m->vertex_count; v++) {
            double x[3], *to = s->mesh.vertices + 3 * (s->first[i] + order[v]);
            mat3_mul_vec(x, s->at[i].Q, m->vertices + 3 * v);
            for (int k = 0; k < 3; k++)
                to[k] = s->at[i].p[k] + s->at[i].scale * (x[k] + noise * 0.3 * test_random(&random));
            s->model_vertex[s->first[i] + order[v]] = v;
        }
        for (int k = 0; k < m->element_count; k++, e++)
            for (int c = 0; c < 4; c++) s->mesh.elements[4 * e + c] = s->first[i] + order[m->elements[4 * k + c]];
        free(order);
    }
    assert_ok(fem_mesh_check(&s->mesh));
}

static void destroy_soup(soup *s) {
    for (int k = 0; k < 3; k++) fem_mesh_destroy(&s->models[k]);
    fem_mesh_destroy(&s->mesh);
    free(s->model_vertex);
}

static int *post_foot(const soup *s, int *count) {
    int *fixed = malloc(sizeof *fixed * (size_t)s->first[1]);
    *count = 0;
    for (int v = 0; v < s->first[1]; v++)
        if (s->models[0].vertices[3 * s->model_vertex[v] + 2] < 1e-9) fixed[(*count)++] = v;
    assert_int_equal(*count, 9);
    return fixed;
}

// ---- what is found -------------------------------------------------------------------------------------------------

static void check_found(double noise, double tolerance) {
    soup                 s;
    domain_crowd         c = {0};
    domain_crowd_options o = {.tolerance = tolerance};
    int                  of[PIECES];
    double               worst = 0, turn = 0;
    make_soup(&s, noise);
    int *fixed = post_foot(&s, &o.fixed_count);
    o.fixed = fixed;
    assert_ok(domain_find_crowd(&c, &s.mesh, &o));
    assert_int_equal(c.copies.count, PIECES);
    assert_int_equal(c.class_count, 3);
    for (int i = 0; i < PIECES; i++) { // which of ours it is
        of[i] = 0;
        while (c.copies.vertices[c.copies.start[i]] >= s.first[of[i] + 1]) of[i]++;
    }
    for (int k = 0; k < PIECES; k++) {
        int i = c.order[k], parent = c.parent[i];
        assert_int_equal(parent < 0 ? -1 : of[parent], s.parent[of[i]]);
        for (int j = 0; j < k; j++) parent = c.order[j] == parent ? -1 : parent; // it came before
        assert_int_equal(parent, -1);
        // from the model of its shape to it: by the placements of both
        int              model = c.copies.model[c.shape[c.class_of[i]]];
        solver_placement wanted;
        solver_placement_invert(&wanted, &s.at[of[model]]);
        solver_placement_compose(&wanted, &s.at[of[i]], &wanted);
        assert_int_equal(s.kind[of[i]], s.kind[of[model]]);
        worst = fmax(worst, fabs(c.copies.scale[i] / wanted.scale - 1));
        for (int a = 0; a < 9; a++) turn = fmax(turn, fabs(c.copies.Q[i][a] - wanted.Q[a]));
        for (int v = c.copies.start[i]; v < c.copies.start[i + 1]; v++) {
            double x[3], y[3];
            mat3_mul_vec(x, c.copies.Q[i],
                         s.mesh.vertices + 3 * c.copies.vertices[c.copies.start[model] + v - c.copies.start[i]]);
            for (int a = 0; a < 3; a++) y[a] = c.copies.p[i][a] + c.copies.scale[i] * x[a];
            worst = fmax(worst, vec3_distance(y, s.mesh.vertices + 3 * c.copies.vertices[v]));
        }
    }
    // root faces: of the arm 9 vertices at x = 0, of the leaf 6, of the post those that are fixed
    for (int k = 0; k < 3; k++) {
        int kind = s.kind[of[c.copies.model[c.shape[k]]]];
        assert_int_equal(c.fixed_count[k], kind == 2 ? 6 : 9);
        assert_int_equal(c.uses[k], kind == 0 ? 1 : ARMS);
        assert_int_equal(c.meshes[k].vertex_count, s.models[kind].vertex_count);
    }
    printf("noise %.0e: %d pieces, %d classes, copies off by %.1e m, turned by %.1e\n", noise, c.copies.count,
           c.class_count, worst, turn);
    assert_true(turn < 10 * noise + 1e-12 && worst < 2 * noise + 1e-12 && (noise == 0 || worst > noise / 100));
    domain_crowd_destroy(&c);
    free(fixed);
    destroy_soup(&s);
}

static void test_found(void **state) {
    (void)state;
    check_found(0, 1e-4);
    check_found(1e-5, 1e-3);
    check_found(3e-4, 1e-2);
}

// a piece that touches nothing is named by its place; without fixed vertices all are free
static void test_apart(void **state) {
    (void)state;
    soup                 s;
    domain_crowd         c = {0};
    domain_crowd_options o = {.tolerance = 1e-4};
    make_soup(&s, 0);
    for (int v = s.first[PIECES - 1]; v < s.first[PIECES]; v++) s.mesh.vertices[3 * v + 2] += 0.3;
    int *fixed = post_foot(&s, &o.fixed_count);
    o.fixed = fixed;
    assert_fails(domain_find_crowd(&c, &s.mesh, &o), FEM_BAD_INPUT, "touches no other that is held");
    printf("%s\n", fem_message());
    o.reach = 0.3;
    assert_ok(domain_find_crowd(&c, &s.mesh, &o)); // from farther away
    o.fixed_count = 0;
    assert_ok(domain_find_crowd(&c, &s.mesh, &o));
    assert_int_equal(c.class_count, 3);
    for (int i = 0; i < PIECES; i++) assert_int_equal(c.parent[i], -1);
    for (int k = 0; k < 3; k++) assert_int_equal(c.fixed_count[k], 0);
    domain_crowd_destroy(&c);
    free(fixed);
    destroy_soup(&s);
}

static void test_memory(void **state) {
    (void)state;
    soup                 s;
    domain_crowd         c = {0};
    domain_crowd_options o = {.tolerance = 1e-4};
    make_soup(&s, 0);
    int *fixed = post_foot(&s, &o.fixed_count), failures = 0;
    o.fixed = fixed;
    fem_set_threads(1);
    for (long held = fem_memory_blocks();; failures++) {
        fem_memory_fail_after(failures);
        fem_status status = domain_find_crowd(&c, &s.mesh, &o);
        fem_memory_fail_after(-1);
        if (status == FEM_OK) break;
        assert_int_equal(status, FEM_NO_MEMORY);
        assert_int_equal(fem_memory_blocks(), held);
    }
    fem_set_threads(0);
    assert_true(failures > 50);
    printf("%d failing allocations survived\n", failures);
    domain_crowd_destroy(&c);
    free(fixed);
    destroy_soup(&s);
}

// ---- scenes --------------------------------------------------------------------------------------------------------

#define SETTINGS                                                                                                       \
    "\"environment\": {\"gravity\": [0, 0, -9.81]},\n"                                                                 \
    " \"solver\": {\"method\": \"reduced\", \"step\": 0.005, \"damping\": {\"stiffness\": 0.002}},\n"                  \
    " \"materials\": {\"m\": {\"density\": 800, \"young\": 2e6, \"poisson\": 0.3}},\n"
static const char by_components[] =
    "{\"limber\": 1, " SETTINGS
    " \"parts\": {\"soup\": {\"mesh\": \"soup.veg\", \"material\": \"m\", \"modes\": {\"count\": 12},\n"
    "   \"fixed\": {\"box\": [[-1, -1, -0.01], [1, 1, 0.01]]}}},\n"
    " \"objects\": [{\"part\": \"soup\", \"components\": {\"tolerance\": 1e-3, \"modes\": [8, 10, 12]}}],\n"
    " \"output\": {\"frames\": 15, \"rate\": 50, \"formats\": [\"glb\"], \"probes\": {\n"
    "   \"arms\": {\"instance\": \"c1\"}, \"leaves\": {\"instance\": \"c0\"}, \"one\": {\"instance\": "
    "\"soup/c1.3\"}}}}\n";

static const char by_hand[] =
    "{\"limber\": 1, " SETTINGS " \"parts\": {\n"
    "  \"post\": {\"mesh\": \"kind0.veg\", \"fixed\": \"z0\", \"material\": \"m\", \"modes\": {\"count\": 12}},\n"
    "  \"arm\": {\"mesh\": \"kind1.veg\", \"fixed\": \"x0\", \"material\": \"m\", \"modes\": {\"count\": 10}},\n"
    "  \"leaf\": {\"mesh\": \"kind2.veg\", \"fixed\": \"x0\", \"material\": \"m\", \"modes\": {\"count\": 8}}},\n"
    " \"objects\": [{\"part\": \"post\", \"children\": [\n"
    "  {\"part\": \"arm\", \"name\": \"a0\", \"translation\": [0.1, 0, 0.8], \"scale\": 0.8,\n"
    "   \"children\": [{\"part\": \"leaf\", \"translation\": [0.6, 0, 0]}]},\n"
    "  {\"part\": \"arm\", \"name\": \"a1\", \"translation\": [0, 0.1, 1.1], \"rotation\": [0, 0, "
    "1.5707963267948966],\n"
    "   \"scale\": 0.925, \"children\": [{\"part\": \"leaf\", \"translation\": [0.6, 0, 0], \"scale\": 0.9}]},\n"
    "  {\"part\": \"arm\", \"name\": \"a2\", \"translation\": [-0.1, 0, 1.4], \"rotation\": [0, 0, "
    "3.141592653589793],\n"
    "   \"scale\": 1.05, \"children\": [{\"part\": \"leaf\", \"translation\": [0.6, 0, 0], \"scale\": 0.8}]},\n"
    "  {\"part\": \"arm\", \"name\": \"a3\", \"translation\": [0, -0.1, 1.7], \"rotation\": [0, 0, 4.71238898038469],\n"
    "   \"scale\": 1.175, \"children\": [{\"part\": \"leaf\", \"translation\": [0.6, 0, 0], \"scale\": 0.7}]}]}],\n"
    " \"output\": {\"frames\": 15, \"rate\": 50, \"formats\": [\"glb\"], \"probes\": {\n"
    "   \"arms\": [{\"instance\": \"a0\"}, {\"instance\": \"a1\"}, {\"instance\": \"a2\"}, {\"instance\": \"a3\"}],\n"
    "   \"leaves\": {\"instance\": \"leaf\"}, \"one\": {\"instance\": \"a0\"}}}}\n";

static void run_soup(double noise, scene_result *r, int *instances) {
    soup              s;
    scene            *made = NULL;
    const char *const tolerance[] = {noise > 1e-4 ? "objects.0.components.tolerance=0.01" : "title=fine"};
    make_soup(&s, noise);
    assert_ok(fem_mesh_write(&s.mesh, test_temporary("soup.veg")));
    destroy_soup(&s);
    assert_ok(scene_load(&made, test_write("soup.json", by_components), 1, tolerance));
    *instances = made->forest.count;
    assert_ok(scene_run(made, test_temporary("soup"), 0, NULL, r));
    scene_destroy(made);
}

// the same motion as that of the scene by hand; with noise nearly so
static void test_motion(void **state) {
    (void)state;
    scene_result hand = {0}, r = {0};
    scene       *s = NULL;
    soup         models = {0};
    make_models(&models);
    for (int k = 0; k < 3; k++) {
        char name[16];
        snprintf(name, sizeof name, "kind%d.veg", k);
        assert_ok(fem_mesh_write(&models.models[k], test_temporary(name)));
    }
    destroy_soup(&models);
    assert_ok(scene_load(&s, test_write("hand.json", by_hand), 0, NULL));
    assert_ok(scene_run(s, test_temporary("hand"), 0, NULL, &hand));
    scene_destroy(s);
    const double noises[] = {0, 1e-5, 3e-4};
    for (int k = 0; k < 3; k++) {
        int    instances;
        double difference[3];
        run_soup(noises[k], &r, &instances);
        assert_int_equal(instances, PIECES);
        for (int p = 0; p < 3; p++) // the third: pieces are counted from the last, whose elements come first
            difference[p] = vec3_distance(r.probes + 3 * p, hand.probes + 3 * p) / vec3_norm(hand.probes + 3 * p);
        printf("noise %.0e: arms sag by %.4f m, leaves by %.4f m; differences %.1e, %.1e, %.1e\n", noises[k],
               -r.probes[2], -r.probes[5], difference[0], difference[1], difference[2]);
        assert_true(r.modes == hand.modes && vec3_norm(hand.probes) > 1e-3);
        for (int p = 0; p < 3; p++) assert_true(difference[p] < 1e-7 + 100 * noises[k]);
        scene_result_destroy(&r);
    }
    scene_result_destroy(&hand);
}

// ---- the program ---------------------------------------------------------------------------------------------------

static void test_program(void **state) {
    (void)state;
    soup s;
    char path[600], mesh[600];
    make_soup(&s, 1e-5);
    snprintf(mesh, sizeof mesh, "%s", test_temporary("soup.veg"));
    assert_ok(fem_mesh_write(&s.mesh, mesh));
    destroy_soup(&s);
    snprintf(path, sizeof path, "%s", test_write("soup.json", by_components));
    assert_int_equal(limber("info %s", path), 0);
    printf("%s", result.out);
    assert_says(result.out, "soup.c0");
    assert_int_equal(limber("decompose %s --copies --tolerance 1e-3 -o %s.vtu", mesh, mesh), 0);
    printf("%s", result.out);
    assert_says(result.out, "9 pieces, 3 shapes");
    assert_int_equal(limber("decompose %s --copies --tolerance 1e-3 --json", mesh), 0);
    assert_says(result.out, "\"shapes\":");
    assert_int_equal(limber("decompose %s --copies --tolerance 1e-3 --domains 3", mesh), 2);
    assert_int_equal(limber("decompose %s --copies --tolerance 0.2", mesh), 2);
    assert_int_equal(limber("precompute %s --cache %s --memory 0.5", path, test_temporary("cache")), 0);
    assert_says(result.out, "of 0.5 GB at most");
    assert_int_equal(limber("precompute %s --cache %s --memory 0.003", path, test_temporary("other")), 2);
    assert_says(result.err, "part \"soup.c");
    assert_says(result.err, "but the limit of memory is 3 MB");
    assert_int_equal(
        limber("run %s -q -n 3 --cache %s --memory 0.003 -o %s", path, test_temporary("cache"), test_temporary("out")),
        0); // all is in the cache
    assert_int_equal(
        limber("run %s -q -n 3 --no-cache --set objects.0.components.reach=1e-9 -o %s", path, test_temporary("out")),
        2);
    assert_says(result.err, "objects[0].components: the piece at");
    printf("%s", result.err);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_found), cmocka_unit_test(test_apart),
                                       cmocka_unit_test(test_memory), cmocka_unit_test(test_motion),
                                       cmocka_unit_test(test_program)};
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
