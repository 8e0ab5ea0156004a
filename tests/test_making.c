// Classes made side by side within a limit of memory: what making one takes is known beforehand, never more is taken at
// once than allowed, a class that does not fit is refused by name, and what comes out does not depend on the limit.
#include "tests/solver_case.h"

#include "libsolver/forest.h"

enum { PARTS = 4 };

typedef struct garden {
    fem_mesh               meshes[PARTS];
    int                   *fixed[PARTS];
    solver_part            parts[PARTS];
    solver_forest_instance instances[PARTS];
    solver_forest         *forest;
} garden;

// Beams of different sizes, each held at its foot, side by side.
static void make_garden(garden *g, int cells, int modes, modes_method method) {
    static const char *const names[PARTS] = {"thin", "thick", "wide", "tall"};
    static const int         sizes[PARTS][3] = {{3, 1, 1}, {3, 2, 2}, {2, 3, 1}, {5, 1, 1}};
    *g = (garden){0};
    for (int k = 0; k < PARTS; k++) {
        int    n[3] = {sizes[k][0] * cells, sizes[k][1] * cells, sizes[k][2] * cells}, count = 0;
        double high[3] = {0.1 * sizes[k][0], 0.1 * sizes[k][1], 0.1 * sizes[k][2]};
        assert_ok(fem_generate_box(&g->meshes[k], FEM_T4, (double[]){0, 0, 0}, high, n));
        g->meshes[k].materials[0] = (fem_material){.kind = FEM_STVK, .density = 1000, .young = 1e6, .poisson = 0.4};
        const fem_set *foot = fem_mesh_vertex_set(&g->meshes[k], "x0");
        assert_non_null(foot);
        count = foot->count;
        g->fixed[k] = fem_copy(foot->items, (size_t)count, sizeof(int));
        assert_non_null(g->fixed[k]);
        g->parts[k] = (solver_part){.name = names[k],
                                    .mesh = &g->meshes[k],
                                    .fixed_count = count,
                                    .fixed = g->fixed[k],
                                    .options = solver_class_default_options()};
        g->parts[k].options.modes = modes;
        g->parts[k].options.recipe.method = method;
        g->instances[k] = (solver_forest_instance){
            .part = k, .parent = -1, .stiffness = 1, .damping_mass = -1, .damping_stiffness = -1};
        solver_placement_identity(&g->instances[k].at);
        g->instances[k].at.p[1] = k;
    }
    assert_ok(solver_forest_create(&g->forest, PARTS, g->parts, PARTS, g->instances, NULL));
}

static void destroy_garden(garden *g) {
    solver_forest_destroy(g->forest);
    for (int k = 0; k < PARTS; k++) fem_mesh_destroy(&g->meshes[k]), fem_free(g->fixed[k]);
}

// ---- the estimate --------------------------------------------------------------------------------------------------

// One class: what is estimated for it, and what the allocator and the factor took.
static void compare_estimate(int cells, int modes, modes_method method, solver_forces_kind forces, double *worst) {
    solver_class *class = NULL;
    fem_mesh             mesh = {0};
    fem_body            *body = NULL;
    fem_sparse           K = {0};
    fem_factor          *factor = NULL;
    solver_class_options o = solver_class_default_options();
    double               bytes = 0, kept = 0;
    assert_ok(fem_generate_box(&mesh, FEM_T4, (double[]){0, 0, 0}, (double[]){0.4, 0.1, 0.1},
                               (int[]){4 * cells, cells, cells}));
    mesh.materials[0] = (fem_material){.kind = FEM_STVK, .density = 1000, .young = 1e6, .poisson = 0.4};
    const fem_set *foot = fem_mesh_vertex_set(&mesh, "x0");
    int            count = foot->count, *fixed = fem_copy(foot->items, (size_t)count, sizeof *fixed);
    unsigned char *held = fem_calloc(3 * (size_t)mesh.vertex_count, 1);
    for (int i = 0; i < count; i++) memset(held + 3 * (size_t)fixed[i], 1, 3);
    o.modes = modes;
    o.recipe.method = method;
    o.forces = forces;
    fem_body_options options = fem_body_default_options();
    assert_ok(fem_body_create(&body, &mesh, &options));
    assert_ok(fem_body_matrix(body, &K));
    modes_recipe recipe = o.recipe;
    if (forces == SOLVER_FORCES_LINEAR) recipe.derivatives = 0;
    solver_need need = {.mesh = &mesh,
                        .K = &K,
                        .fixed = held,
                        .recipe = &recipe,
                        .modes = modes,
                        .polynomial = forces == SOLVER_FORCES_POLYNOMIAL,
                        .direct = method == MODES_LANCZOS};
    assert_ok(solver_need_bytes(&need, &bytes, &kept));
    assert_ok(fem_factor_create(&factor, &K, held));
    double factored = fem_factor_get_report(factor).entries * 8;
    fem_factor_destroy(factor);
    fem_body_destroy(body);
    fem_sparse_destroy(&K);
    int    vertices = mesh.vertex_count;
    size_t before = fem_memory_bytes();
    fem_memory_reset_peak();
    assert_ok(solver_class_create(&class, "beam", &mesh, NULL, count, fixed, 0, NULL, &o, NULL, NULL));
    double most = (double)(fem_memory_peak() - before) + factored, held_now = (double)(fem_memory_bytes() - before);
    printf("%6d vertices, %2d %s modes, %-10s: %6.1f MB expected, %6.1f MB taken (%.0f%% of it); %5.1f MB kept, %5.1f "
           "expected\n",
           vertices, modes, method == MODES_LANCZOS ? "vibration" : "inertia", solver_forces_name(forces), 1e-6 * bytes,
           1e-6 * most, 100 * most / bytes, 1e-6 * held_now, 1e-6 * kept);
    assert_true(most <= bytes && held_now <= kept);
    if (bytes / most > *worst && bytes > 2e7) *worst = bytes / most;
    solver_class_destroy(class);
    fem_free(fixed), fem_free(held);
}

static void test_estimate(void **state) {
    (void)state;
    double worst = 0;
    compare_estimate(4, 12, MODES_KRYLOV, SOLVER_FORCES_POLYNOMIAL, &worst);
    compare_estimate(8, 20, MODES_KRYLOV, SOLVER_FORCES_POLYNOMIAL, &worst);
    compare_estimate(8, 20, MODES_KRYLOV, SOLVER_FORCES_LINEAR, &worst);
    compare_estimate(8, 40, MODES_KRYLOV, SOLVER_FORCES_POLYNOMIAL, &worst);
    compare_estimate(8, 20, MODES_LANCZOS, SOLVER_FORCES_POLYNOMIAL, &worst);
    compare_estimate(12, 20, MODES_KRYLOV, SOLVER_FORCES_POLYNOMIAL, &worst);
    compare_estimate(12, 20, MODES_LANCZOS, SOLVER_FORCES_LINEAR, &worst);
    assert_true(worst > 1 && worst < 2.5); // it is an upper bound, but of some use
}

// ---- the limit -----------------------------------------------------------------------------------------------------

// Makes the classes within so many bytes; the report, and the most that the allocator gave.
static fem_status make_within(garden *g, double bytes, solver_room_report *report, double *peak) {
    solver_room *room = NULL;
    assert_ok(solver_room_create(&room, bytes));
    fem_memory_reset_peak();
    fem_status status = solver_forest_precompute(g->forest, NULL, room, NULL);
    *report = solver_room_get_report(room);
    *peak = (double)fem_memory_peak();
    solver_room_destroy(room);
    return status;
}

static void test_limit(void **state) {
    (void)state;
    garden             free_of_it, g;
    solver_room_report wide, tight;
    double             peak, least = INFINITY;
    fem_set_threads(3);
    make_garden(&free_of_it, 4, 16, MODES_KRYLOV);
    assert_ok(solver_forest_precompute(free_of_it.forest, NULL, NULL, NULL));
    make_garden(&g, 4, 16, MODES_KRYLOV);
    assert_ok(make_within(&g, 1e12, &wide, &peak));
    assert_true(wide.made == PARTS && wide.largest > 1 && peak < wide.most);
    destroy_garden(&g);
    // ever less, until one class alone does not fit
    int classes_at_once = wide.largest, refused = 0;
    for (double limit = wide.most; !refused; limit *= 0.9) {
        make_garden(&g, 4, 16, MODES_KRYLOV);
        fem_status status = make_within(&g, limit, &tight, &peak);
        assert_true(peak <= limit && tight.most <= limit && tight.largest <= classes_at_once);
        if (status == FEM_OK) {
            assert_true(tight.made == PARTS);
            classes_at_once = tight.largest, least = limit;
            for (int k = 0; k < PARTS; k++) {
                const modes_basis *a = &free_of_it.forest->classes[k]->basis, *b = &g.forest->classes[k]->basis;
                assert_int_equal(a->r, b->r);
                assert_memory_equal(a->U, b->U, (size_t)a->n * (size_t)a->r * sizeof *a->U);
            }
        } else {
            assert_int_equal(status, FEM_BAD_INPUT);
            assert_non_null(strstr(fem_message(), "part \"thick\": its class takes about")); // the largest
            refused = 1;
            printf("%.1f MB: %s\n", 1e-6 * limit, fem_message());
        }
        destroy_garden(&g);
    }
    printf("without a limit %d classes at once, %.1f MB by estimate; %d at once in %.1f MB\n", wide.largest,
           1e-6 * wide.most, classes_at_once, 1e-6 * least);
    assert_int_equal(classes_at_once, 1);
    fem_set_threads(0);
    destroy_garden(&free_of_it);
}

// code and libraries count: what would just fit beside our own memory alone does not
static void test_resident(void **state) {
    (void)state;
    solver_room *room = NULL;
    double       own = (double)fem_memory_bytes();
    assert_ok(solver_room_create(&room, own + 20e6));
    solver_room_enter(room);
    assert_fails(solver_room_take(room, 19e6), FEM_BAD_INPUT, "a higher limit or fewer modes would do");
    solver_room_leave(room, 0, 0);
    solver_room_enter(room);
    assert_ok(solver_room_take(room, 1e5));
    double most = solver_room_get_report(room).most;
    solver_room_leave(room, 1e5, 0);
    printf("%.1f MB of code and libraries are resident\n", 1e-6 * (most - own - 1e5));
    assert_true(most - own - 1e5 > 1e6);
    solver_room_destroy(room);
}

static bool stop_at_once(void *context, const char *what, double fraction) {
    (void)context, (void)what, (void)fraction;
    return false;
}

// every allocation may fail, and a wish to stop is heard: nothing leaks, nobody waits for ever
static void test_memory(void **state) {
    (void)state;
    long failures = 0, held = fem_memory_blocks();
    for (int threads = 1; threads <= 3; threads += 2)
        for (long after = 0;; after += 1 + after / 4) {
            garden             g;
            solver_room_report report;
            double             peak;
            fem_set_threads(threads);
            make_garden(&g, 1, 4, MODES_KRYLOV);
            solver_room *room = NULL;
            assert_ok(solver_room_create(&room, 1e9));
            fem_memory_fail_after(after);
            fem_status status = solver_forest_precompute(g.forest, NULL, room, NULL);
            fem_memory_fail_after(-1);
            solver_room_destroy(room);
            if (status != FEM_OK) assert_int_equal(status, FEM_NO_MEMORY);
            destroy_garden(&g);
            assert_int_equal(fem_memory_blocks(), held);
            failures++;
            if (status != FEM_OK) continue;
            fem_progress stop = {stop_at_once, NULL};
            make_garden(&g, 1, 4, MODES_LANCZOS);
            assert_int_equal(solver_forest_precompute(g.forest, NULL, NULL, &stop), FEM_STOPPED);
            assert_ok(make_within(&g, 1e9, &report, &peak));
            assert_int_equal(report.largest, 1); // vibration modes come one by one
            destroy_garden(&g);
            break;
        }
    fem_set_threads(0);
    printf("%ld failing allocations\n", failures);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_estimate), cmocka_unit_test(test_limit),
                                       cmocka_unit_test(test_resident), cmocka_unit_test(test_memory)};
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
