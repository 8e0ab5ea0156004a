// A long-necked body whose head is led in a circle: Yang et al. 2015, Fig. 8. Four bases against the full model.
#include "bench/workpiece.h"

enum { STEPS = 156, BASES = 5 };
static const double STEP = 1.0 / 60, DAMPING = 5e-3, TURN = 2.6;

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

// A force on the head that goes round in the plane across the neck, once in 2.6 s: slowly enough that the answer shows
// the shapes of a basis, and not how near its first frequency is to resonance.
static void circular(const workpiece *w, int count, const int *head, double most, double time, double *f) {
    double turn = 2 * acos(-1.0) * time / TURN, strength = most * fmin(1, time / 0.3),
           total[3] = {-strength * cos(turn) * 0.77, strength * sin(turn), strength * cos(turn) * 0.64};
    memset(f, 0, (size_t)w->n * sizeof *f);
    solver_add_vertex_force(count, head, total, f);
}

typedef struct motion {
    const char *name;
    modes_basis basis;
    double      cannot, error, extent, seconds; // cannot: part of the full motion that the basis cannot show
} motion;

// What is left of |x| in the mass norm without its part in the basis.
static double rest_norm(const workpiece *w, const modes_basis *basis, const double *x) {
    double *Mx = fem_alloc((size_t)w->n, sizeof *Mx), *q = fem_alloc((size_t)basis->r, sizeof *q);
    fem_sparse_multiply(&w->M, 1, x, Mx);
    dense_gemv_t_set(w->n, basis->r, 1, basis->U, Mx, q);
    double square = dense_dot(w->n, x, Mx) - dense_dot(basis->r, q, q);
    fem_free(Mx), fem_free(q);
    return sqrt(fmax(0, square));
}

// The full model under a force that goes round, and what is compared with it.
typedef struct circle {
    const workpiece *w;
    int              count, *head; // vertices of the head
    double           force;        // N
    double          *shapes;       // n per step
    double           extent, seconds;
    int              farthest; // step at which the head is farthest from rest: the one that is drawn
    picture         *drawn;
} circle;

// Bases stand beside each other, each with the full model's shape.
static void draw(const circle *c, int place, const double *u, const char *colour) {
    double *moved = fem_alloc((size_t)c->w->n, sizeof *moved);
    for (int i = 0; i < c->w->n; i++) moved[i] = u[i] + (i % 3 == 0 ? 4.6 * place : 0);
    picture_body(c->drawn, &c->w->mesh, moved, colour);
    fem_free(moved);
}

static void run_full(circle *c) {
    const workpiece *w = c->w;
    solver_full     *full = NULL;
    solver_options   options = solver_default_options();
    double          *f = fem_alloc((size_t)w->n, sizeof *f);
    options.time_step = STEP, options.damping_stiffness = DAMPING, options.damping_local = true;
    options.newton_tolerance = 1e-6;
    bench_try(solver_full_create(&full, w->body, w->fixed, &options));
    c->extent = 0, c->seconds = -fem_seconds();
    for (int i = 1; i <= STEPS; i++) {
        double *u = c->shapes + (size_t)i * (size_t)w->n;
        circular(w, c->count, c->head, c->force, i * STEP, f);
        solver_full_set_load(full, f);
        bench_try(solver_full_step(full));
        memcpy(u, solver_full_state(full)->u, (size_t)w->n * sizeof *u);
        if (vec3_norm(u + 3 * c->head[0]) > c->extent) c->extent = vec3_norm(u + 3 * c->head[0]), c->farthest = i;
    }
    c->seconds += fem_seconds();
    solver_full_destroy(full);
    fem_free(f);
}

static void run_basis(const circle *c, int place, motion *m, const char *colour) {
    const workpiece            *w = c->w;
    cubature_polynomial         polynomial = {0};
    cubature_polynomial_options precompute = cubature_polynomial_default_options();
    solver_reduced_options      options = solver_reduced_default_options();
    solver_reduced             *solver = NULL;
    int                         r = m->basis.r;
    double                     *load = fem_alloc((size_t)r, sizeof *load), *f = fem_alloc((size_t)w->n, sizeof *f),
           *u = fem_alloc((size_t)w->n, sizeof *u), size = 0;
    bench_try(cubature_polynomial_create(&polynomial, w->body, r, m->basis.U, &precompute, NULL));
    cubature_forces forces = cubature_polynomial_forces(&polynomial);
    options.time_step = STEP, options.damping_stiffness = DAMPING, options.damping_local = true;
    options.newton_iterations = 30, options.newton_tolerance = 1e-6;
    bench_try(solver_reduced_create(&solver, &forces, NULL, &options));
    m->seconds = m->extent = m->cannot = m->error = 0;
    for (int i = 1; i <= STEPS; i++) {
        circular(w, c->count, c->head, c->force, i * STEP, f);
        dense_gemv_t_set(w->n, r, 1, m->basis.U, f, load);
        double begun = fem_seconds();
        solver_reduced_set_load(solver, load);
        bench_try(solver_reduced_step(solver));
        m->seconds += fem_seconds() - begun;
        dense_gemv_set(w->n, r, 1, m->basis.U, solver_reduced_state(solver)->q, u);
        const double *exact = c->shapes + (size_t)i * (size_t)w->n;
        if (i == c->farthest) draw(c, place, exact, "#b0b0b0"), draw(c, place, u, colour);
        m->extent = fmax(m->extent, vec3_norm(u + 3 * c->head[0]));
        m->cannot += pow(rest_norm(w, &m->basis, exact), 2), size += pow(workpiece_norm(w, exact), 2);
        dense_axpy(w->n, -1, exact, u);
        m->error += pow(workpiece_norm(w, u), 2);
    }
    m->error = sqrt(m->error / size), m->cannot = sqrt(m->cannot / size);
    solver_reduced_destroy(solver);
    cubature_polynomial_destroy(&polynomial);
    fem_free(load), fem_free(f), fem_free(u);
}

// The paper's caption of (d) adds up only as 2 + 3 + 15 = 20, but 15 second-order vectors of two modes are linearly
// dependent. So (d) is 20 by PCA of 8 modes, their 36 first derivatives, and the second ones along the first two; (e)
// takes two modes only, and their derivatives to the third order.
static void high_orders(const workpiece *w, int modes, int order, modes_scaling scaling, modes_basis *basis) {
    modes_basis              linear = {0};
    modes_pool               pool = {0};
    modes_recipe             recipe = modes_default_recipe(MODES_KRYLOV);
    modes_derivative_options derivatives = modes_derivative_default_options();
    modes_condense_options   condense = modes_condense_default_options();
    recipe.krylov.seeds = MODES_SEED_Y | MODES_SEED_Z;
    recipe.derivatives = 0, recipe.count = modes;
    bench_try(modes_build(&w->problem, w->body, &recipe, NULL, NULL, &linear, NULL));
    derivatives.kind = MODES_DERIVATIVE_INERTIA, derivatives.order = order;
    derivatives.modes[1] = 2;
    condense.r = 20, condense.scaling = scaling;
    bench_try(modes_derivatives(&w->problem, w->body, NULL, &linear, &derivatives, NULL, &pool, NULL));
    bench_try(modes_condense(&w->problem, &pool, linear.omega2, &condense, NULL, basis, NULL));
    modes_pool_destroy(&pool);
    modes_basis_destroy(&linear);
}

static void build_bases(const workpiece *w, motion *m) {
    modes_recipe recipe = modes_default_recipe(MODES_KRYLOV), modal = modes_default_recipe(MODES_LANCZOS);
    recipe.krylov.seeds = MODES_SEED_Y | MODES_SEED_Z;
    recipe.derivatives = 0, recipe.count = 2;
    bench_try(modes_build(&w->problem, w->body, &recipe, NULL, NULL, &m[0].basis, NULL));
    recipe.derivatives = 1, recipe.linear = 2, recipe.count = 5;
    bench_try(modes_build(&w->problem, w->body, &recipe, NULL, NULL, &m[1].basis, NULL));
    modal.linear = 8, modal.count = 20;
    bench_try(modes_build(&w->problem, w->body, &modal, NULL, NULL, &m[2].basis, NULL));
    high_orders(w, 8, 2, MODES_SCALE_FREQUENCY, &m[3].basis);
    high_orders(w, 2, 3, MODES_SCALE_UNIT, &m[4].basis);
}

int main(int argc, char **argv) {
    (void)argc;
    bench_header(argv, "A neck in a circle (Yang et al. 2015, Fig. 8, which has pictures only)");
    static const char *const colours[] = {"#d1495b", "#e08e2b", "#3a9d5d", "#7aa2c4", "#8e6fb5"};
    static const double      forces[] = {30, 60};
    motion                   m[BASES] = {{.name = "(a) 2 inertia modes"},
                                         {.name = "(b) 2 + 3 derivatives"},
                                         {.name = "(c) 20 of 8 + 36 modal"},
                                         {.name = "(d) 20 of orders to two"},
                                         {.name = "(e) 20 of 2 to order 3"}};
    workpiece                w = {0};
    make_animal(&w);
    build_bases(&w, m);
    circle c = {.w = &w, .shapes = fem_calloc((size_t)w.n * (STEPS + 1), sizeof *c.shapes)};
    c.head = workpiece_select(&w.mesh, (double[]){2.15, -1, 2.4}, (double[]){3, 1, 3}, &c.count);
    printf("   %d T4, %d vertices; %d steps of 1/60 s, one circle in %g s\n", w.mesh.element_count, w.mesh.vertex_count,
           STEPS, TURN);
    for (int k = 0; k < 2; k++) {
        c.force = forces[k];
        c.drawn = picture_create("Head led in a circle, at its farthest: (a) to (e), and the full model in grey",
                                 (double[]){-0.2, 1, -0.2}, (double[]){0, 0, 1});
        run_full(&c);
        printf("   %g N on the head: it goes %.2f m from rest; full: %.1f ms/step\n", c.force, c.extent,
               1e3 * c.seconds / STEPS);
        printf("   %-26s %3s %14s %14s %18s %10s %10s\n", "basis", "r", "not in it %", "RMS error %", "extent/full's",
               "us/step", "full/this");
        for (int i = 0; i < BASES; i++) {
            run_basis(&c, i, &m[i], colours[i]);
            printf("   %-26s %3d %14.2f %14.1f %18.3f %10.1f %10.0f\n", m[i].name, m[i].basis.r, 100 * m[i].cannot,
                   100 * m[i].error, m[i].extent / c.extent, 1e6 * m[i].seconds / STEPS, c.seconds / m[i].seconds);
        }
        picture_write(c.drawn, k ? "out/bench/neck.svg" : "out/bench/neck_half.svg");
    }
    for (int i = 0; i < BASES; i++) modes_basis_destroy(&m[i].basis);
    fem_free(c.shapes), fem_free(c.head);
    workpiece_destroy(&w);
    return 0;
}
