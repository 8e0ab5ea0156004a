// A long-necked body whose head is led in a circle: Yang et al. 2015, Fig. 8. Four bases against the full model.
#include "bench/workpiece.h"

enum { STEPS = 120 };
static const double STEP = 1.0 / 60;

static void make_animal(workpiece *w) {
    fem_piece pieces[] = {
        {.name = "trunk",
         .shape = FEM_CAPSULE,
         .a = {-0.6, 0, 0.5},
         .b = {0.5, 0, 0.55},
         .radius_a = 0.3,
         .radius_b = 0.32},
        {.name = "neck",
         .shape = FEM_CAPSULE,
         .a = {0.5, 0, 0.6},
         .b = {1.5, 0, 1.6},
         .radius_a = 0.16,
         .radius_b = 0.1},
        {.name = "throat",
         .shape = FEM_CAPSULE,
         .a = {1.5, 0, 1.6},
         .b = {2.1, 0, 2.6},
         .radius_a = 0.1,
         .radius_b = 0.09},
        {.name = "head",
         .shape = FEM_CAPSULE,
         .a = {2.1, 0, 2.6},
         .b = {2.35, 0, 2.6},
         .radius_a = 0.14,
         .radius_b = 0.1},
        {.name = "tail",
         .shape = FEM_CAPSULE,
         .a = {-0.8, 0, 0.45},
         .b = {-1.9, 0, 0.2},
         .radius_a = 0.16,
         .radius_b = 0.06},
        {.name = "front_left",
         .shape = FEM_CAPSULE,
         .a = {0.4, 0.2, 0.4},
         .b = {0.4, 0.22, -0.2},
         .radius_a = 0.12,
         .radius_b = 0.1},
        {.name = "front_right",
         .shape = FEM_CAPSULE,
         .a = {0.4, -0.2, 0.4},
         .b = {0.4, -0.22, -0.2},
         .radius_a = 0.12,
         .radius_b = 0.1},
        {.name = "hind_left",
         .shape = FEM_CAPSULE,
         .a = {-0.5, 0.2, 0.4},
         .b = {-0.5, 0.22, -0.2},
         .radius_a = 0.13,
         .radius_b = 0.1},
        {.name = "hind_right",
         .shape = FEM_CAPSULE,
         .a = {-0.5, -0.2, 0.4},
         .b = {-0.5, -0.22, -0.2},
         .radius_a = 0.13,
         .radius_b = 0.1},
    };
    fem_mesh     mesh = {0};
    fem_material material = fem_material_default();
    material.young = 2e5, material.poisson = 0.4;
    bench_try(fem_generate_pieces(&mesh, FEM_T4, 9, pieces, 0.07));
    bench_try(fem_mesh_set_material(&mesh, &material));
    // the trunk with its legs and the tail are held: the neck is what moves
    workpiece_create(w, &mesh, workpiece_hold(&mesh, (double[]){-3, -1, -1}, (double[]){0.55, 1, 0.9}));
}

// A force on the head that goes round in the plane across the neck, once in a second and a third.
static void circular(const workpiece *w, int count, const int *head, double time, double *f) {
    double turn = 2 * acos(-1.0) * time / 1.3333, strength = 200 * fmin(1, time / 0.3),
           total[3] = {-strength * cos(turn) * 0.77, strength * sin(turn), strength * cos(turn) * 0.64};
    memset(f, 0, (size_t)w->n * sizeof *f);
    solver_add_vertex_force(count, head, total, f);
}

typedef struct motion {
    const char *name, *paper;
    modes_basis basis;
    double      error, extent, seconds;
} motion;

static void run_basis(const workpiece *w, motion *m, int count, const int *head, const double *reference,
                      picture *drawn, const char *colour) {
    cubature_polynomial         polynomial = {0};
    cubature_polynomial_options precompute = cubature_polynomial_default_options();
    solver_reduced_options      options = solver_reduced_default_options();
    solver_reduced             *solver = NULL;
    int                         r = m->basis.r;
    double                     *load = fem_alloc((size_t)r, sizeof *load), *f = fem_alloc((size_t)w->n, sizeof *f),
           *u = fem_alloc((size_t)w->n, sizeof *u), size = 0;
    bench_try(cubature_polynomial_create(&polynomial, w->body, r, m->basis.U, &precompute, NULL));
    cubature_forces forces = cubature_polynomial_forces(&polynomial);
    options.time_step = STEP, options.damping_stiffness = 5e-3, options.damping_local = false;
    options.newton_iterations = 30, options.newton_tolerance = 1e-6;
    bench_try(solver_reduced_create(&solver, &forces, NULL, &options));
    double begun = fem_seconds();
    for (int i = 1; i <= STEPS; i++) {
        circular(w, count, head, i * STEP, f);
        dense_gemv_t_set(w->n, r, 1, m->basis.U, f, load);
        solver_reduced_set_load(solver, load);
        bench_try(solver_reduced_step(solver));
        dense_gemv_set(w->n, r, 1, m->basis.U, solver_reduced_state(solver)->q, u);
        const double *exact = reference + (size_t)i * 3, *now = u + 3 * head[0];
        m->error += pow(vec3_distance(now, exact), 2), size += vec3_dot(exact, exact);
        m->extent = fmax(m->extent, vec3_norm(now));
        if (i == 80 && drawn) picture_body(drawn, &w->mesh, u, colour);
    }
    m->seconds = fem_seconds() - begun;
    m->error = sqrt(m->error / size);
    solver_reduced_destroy(solver);
    cubature_polynomial_destroy(&polynomial);
    fem_free(load), fem_free(f), fem_free(u);
}

int main(int argc, char **argv) {
    (void)argc;
    bench_header(argv, "A neck in a circle (Yang et al. 2015, Fig. 8)");
    workpiece w = {0};
    make_animal(&w);
    int     count = 0, *head = workpiece_select(&w.mesh, (double[]){2.15, -1, 2.4}, (double[]){3, 1, 3}, &count);
    double *reference = fem_calloc(3 * (STEPS + 1), sizeof *reference), *f = fem_alloc((size_t)w.n, sizeof *f),
           extent = 0;
    solver_full   *full = NULL;
    solver_options options = solver_default_options();
    picture       *p = picture_create("Head led in a circle: full grey, (a) red, (b) orange, (c) green, (d) blue",
                                      (double[]){-0.5, 1, -0.3}, (double[]){0, 0, 1});
    printf("   %d T4, %d vertices; %d steps of 1/60 s, a force of 200 N on the head\n", w.mesh.element_count,
           w.mesh.vertex_count, STEPS);
    options.time_step = STEP, options.damping_stiffness = 5e-3, options.newton_tolerance = 1e-6;
    bench_try(solver_full_create(&full, w.body, w.fixed, &options));
    double begun = fem_seconds();
    for (int i = 1; i <= STEPS; i++) {
        circular(&w, count, head, i * STEP, f);
        solver_full_set_load(full, f);
        bench_try(solver_full_step(full));
        memcpy(reference + 3 * (size_t)i, solver_full_state(full)->u + 3 * head[0], 3 * sizeof *reference);
        extent = fmax(extent, vec3_norm(reference + 3 * (size_t)i));
        if (i == 80) picture_body(p, &w.mesh, solver_full_state(full)->u, "#b0b0b0");
    }
    double full_seconds = fem_seconds() - begun;
    solver_full_destroy(full);

    motion       m[4] = {{.name = "(a) 2 inertia modes", .paper = "neck grows"},
                         {.name = "(b) 2 + 3 derivatives", .paper = "bends"},
                         {.name = "(c) 20 of 8 + 36 modal", .paper = "as (d)"},
                         {.name = "(d) 20 of orders to two", .paper = "best"}};
    modes_recipe recipe = modes_default_recipe(MODES_KRYLOV);
    recipe.krylov.seeds = MODES_SEED_Y | MODES_SEED_Z;
    recipe.derivatives = 0, recipe.count = 2;
    bench_try(modes_build(&w.problem, w.body, &recipe, NULL, NULL, &m[0].basis, NULL));
    recipe.derivatives = 1, recipe.linear = 2, recipe.count = 5;
    bench_try(modes_build(&w.problem, w.body, &recipe, NULL, NULL, &m[1].basis, NULL));
    modes_recipe modal = modes_default_recipe(MODES_LANCZOS);
    modal.linear = 8, modal.count = 20;
    bench_try(modes_build(&w.problem, w.body, &modal, NULL, NULL, &m[2].basis, NULL));
    // (d): of 8 inertia modes that start from the two translations, their 36 first derivatives, and the derivatives of
    // these along the first two modes
    modes_basis              linear = {0};
    modes_pool               pool = {0};
    modes_derivative_options derivatives = modes_derivative_default_options();
    modes_condense_options   condense = modes_condense_default_options();
    recipe.derivatives = 0, recipe.count = 8;
    bench_try(modes_build(&w.problem, w.body, &recipe, NULL, NULL, &linear, NULL));
    derivatives.kind = MODES_DERIVATIVE_INERTIA, derivatives.order = 2;
    derivatives.modes[1] = 2;
    condense.r = 20;
    bench_try(modes_derivatives(&w.problem, w.body, NULL, &linear, &derivatives, NULL, &pool, NULL));
    bench_try(modes_condense(&w.problem, &pool, linear.omega2, &condense, NULL, &m[3].basis, NULL));
    modes_pool_destroy(&pool);
    modes_basis_destroy(&linear);
    static const char *const colours[] = {"#d1495b", "#e08e2b", "#3a9d5d", "#7aa2c4"};
    printf("   %-26s %3s %14s %18s %10s %10s   paper (pictures)\n", "basis", "r", "RMS error %", "extent/full's",
           "us/step", "full/this");
    for (int i = 0; i < 4; i++) {
        run_basis(&w, &m[i], count, head, reference, p, colours[i]);
        printf("   %-26s %3d %14.1f %18.3f %10.1f %10.0f   %s\n", m[i].name, m[i].basis.r, 100 * m[i].error,
               m[i].extent / extent, 1e6 * m[i].seconds / STEPS, full_seconds / m[i].seconds, m[i].paper);
        modes_basis_destroy(&m[i].basis);
    }
    printf("   full: %.1f ms/step, the head goes %.2f m from rest\n", 1e3 * full_seconds / STEPS, extent);
    picture_write(p, "out/bench/neck.svg");
    fem_free(reference), fem_free(f), fem_free(head);
    workpiece_destroy(&w);
    return 0;
}
