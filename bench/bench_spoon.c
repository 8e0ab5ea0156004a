// A spoon, held at its end, far into the nonlinear range: Barbic and James 2005, Fig. 7, 9 and 12.
// A short vertical push at the bowl; full Newmark and reduced Newmark with the same step in four bases of 15 modes.
// Then a load that was sketched is applied again, and a beam is twisted by 270 degrees in five modes.
#include "bench/workpiece.h"

enum { STEPS = 150, MODES = 15 };
static const double STEP = 1.0 / 120, PUSH = 0.1, DAMPING = 5e-4; // local, as the paper's

// About the paper's 2,005 voxels, 2.5 long: a handle that widens, and a bowl.
static void make_spoon(workpiece *w) {
    fem_piece pieces[] = {
        {.name = "handle", .shape = FEM_BOX, .a = {0, -0.16, -0.06}, .b = {1.72, 0.16, 0.06}},
        {.name = "neck", .shape = FEM_BOX, .a = {1.7, -0.24, -0.06}, .b = {1.84, 0.24, 0.06}},
        {.name = "bowl", .shape = FEM_BOX, .a = {1.84, -0.36, -0.06}, .b = {2.36, 0.36, 0.06}},
        {.name = "tip", .shape = FEM_BOX, .a = {2.36, -0.24, -0.06}, .b = {2.5, 0.24, 0.06}},
    };
    fem_mesh     mesh = {0};
    fem_material material = fem_material_default();
    material.young = 1e9, material.poisson = 0.4, material.density = 1000;
    bench_try(fem_generate_pieces(&mesh, FEM_H8, 4, pieces, 0.04));
    bench_try(fem_mesh_set_material(&mesh, &material));
    workpiece_create(w, &mesh, workpiece_hold(&mesh, (double[]){-1, -1, -1}, (double[]){0.021, 1, 1}));
}

typedef struct trajectory {
    const char *name;
    int         r;
    double      z[STEPS + 1];
    double      amplitude, frequency, seconds;
} trajectory;

// Largest excursion, and frequency from the first and the last crossing of rest.
static void measure(trajectory *t) {
    double first = 0, last = 0;
    int    crossings = 0;
    t->amplitude = 0;
    for (int i = 0; i <= STEPS; i++) t->amplitude = fmax(t->amplitude, fabs(t->z[i]));
    for (int i = 2; i <= STEPS; i++) {
        if ((t->z[i - 1] < 0) == (t->z[i] < 0)) continue;
        last = (i - t->z[i] / (t->z[i] - t->z[i - 1])) * STEP;
        if (crossings++ == 0) first = last;
    }
    t->frequency = crossings > 1 ? (crossings - 1) / 2.0 / (last - first) : NAN;
}

static void run_full(const workpiece *w, const double *push, int tip, trajectory *t, double *shapes) {
    solver_options options = solver_default_options();
    solver_full   *solver = NULL;
    double        *none = fem_calloc((size_t)w->n, sizeof *none), begun = fem_seconds();
    options.time_step = STEP;
    options.newton_tolerance = 1e-6;
    options.damping_stiffness = DAMPING;
    options.damping_local = true;
    bench_try(solver_full_create(&solver, w->body, w->fixed, &options));
    for (int i = 0; i <= STEPS; i++) {
        const double *u = solver_full_state(solver)->u;
        t->z[i] = u[3 * tip + 2];
        memcpy(shapes + (size_t)i * (size_t)w->n, u, (size_t)w->n * sizeof *u);
        if (i == STEPS) break;
        solver_full_set_load(solver, (i + 1) * STEP <= PUSH ? push : none);
        bench_try(solver_full_step(solver));
    }
    t->seconds = fem_seconds() - begun;
    solver_full_destroy(solver);
    fem_free(none);
}

static void run_reduced(const workpiece *w, const modes_basis *basis, const double *push, int tip, trajectory *t,
                        double *worst) {
    cubature_polynomial    polynomial = {0};
    solver_reduced_options options = solver_reduced_default_options();
    solver_reduced        *solver = NULL;
    int                    r = basis->r;
    double *load = fem_calloc((size_t)r, sizeof *load), *none = fem_calloc((size_t)r, sizeof *none), largest = 0;
    cubature_polynomial_options precompute = cubature_polynomial_default_options();
    bench_try(cubature_polynomial_create(&polynomial, w->body, r, basis->U, &precompute, NULL));
    cubature_forces forces = cubature_polynomial_forces(&polynomial);
    dense_gemv_t_set(w->n, r, 1, basis->U, push, load);
    options.time_step = STEP;
    options.damping_stiffness = DAMPING;
    options.damping_local = true;
    options.newton_iterations = 30;
    options.newton_tolerance = 1e-6;
    bench_try(solver_reduced_create(&solver, &forces, NULL, &options));
    t->r = r;
    double begun = fem_seconds();
    for (int i = 0; i <= STEPS; i++) {
        const double *q = solver_reduced_state(solver)->q;
        t->z[i] = 0;
        for (int l = 0; l < r; l++) t->z[i] += basis->U[(size_t)l * (size_t)w->n + 3 * (size_t)tip + 2] * q[l];
        if (fabs(t->z[i]) > largest && worst) {
            largest = fabs(t->z[i]);
            dense_gemv_set(w->n, r, 1, basis->U, q, worst);
        }
        if (i == STEPS) break;
        solver_reduced_set_load(solver, (i + 1) * STEP <= PUSH ? load : none);
        bench_try(solver_reduced_step(solver));
    }
    t->seconds = fem_seconds() - begun;
    solver_reduced_destroy(solver);
    cubature_polynomial_destroy(&polynomial);
    fem_free(load), fem_free(none);
}

// ---- Fig. 12 and 9 ---------------------------------------------------------------------------------------------

// A load of the sketch: pushes at the end from one extreme to the other, none of them zero, with
// a part sideways. Neighbours are alike, so that each static solution starts near the next.
enum { LOADS = 20, REPLAYED = 18 };
static void sketch_load(int i, double force[3]) {
    double strength = 37e3 * (i < LOADS / 2 ? i - LOADS / 2 : i - LOADS / 2 + 1) / (LOADS / 2);
    force[0] = 0, force[1] = 0.2 * strength * sin(2.0 * i), force[2] = strength;
}

static void sketch_basis(const workpiece *w, int count, const int *tip, double **shapes, modes_basis *basis) {
    double        *loads = fem_calloc((size_t)w->n * LOADS, sizeof *loads), force[3], begun = fem_seconds();
    solver_options options = solver_default_options();
    modes_recipe   recipe = modes_default_recipe(MODES_LANCZOS);
    *shapes = fem_calloc((size_t)w->n * LOADS, sizeof **shapes);
    for (int i = 0; i < LOADS; i++) {
        sketch_load(i, force);
        solver_add_vertex_force(count, tip, force, loads + (size_t)i * (size_t)w->n);
    }
    bench_try(solver_sketch(w->body, w->fixed, &options, LOADS, loads, NULL, *shapes));
    recipe.count = MODES;
    bench_try(modes_build_sketch(&w->problem, LOADS, *shapes, &recipe, basis, NULL));
    printf("   sketch of %d loads: statics and basis %.1f s (paper, Fig. 10: 45 deformations in 45 minutes)\n", LOADS,
           fem_seconds() - begun);
    fem_free(loads);
}

// The shape of the sketched basis under a load, by reduced statics; returns its distance from `exact`, relative.
static double reduced_shape(const workpiece *w, const modes_basis *basis, const cubature_forces *forces,
                            const double *f, const double *exact, double *u) {
    double load[MODES], q[MODES] = {0}, *difference = fem_alloc((size_t)w->n, sizeof *difference);
    dense_gemv_t_set(w->n, basis->r, 1, basis->U, f, load);
    if (!bench_reduced_static(forces, load, 20, q)) bench_try(fem_fail(FEM_NO_CONVERGENCE, "no reduced shape"));
    dense_gemv_set(w->n, basis->r, 1, basis->U, q, u);
    for (int i = 0; i < w->n; i++) difference[i] = u[i] - exact[i];
    double error = workpiece_norm(w, difference) / workpiece_norm(w, exact);
    fem_free(difference);
    return error;
}

// Fig. 9: one of the sketched loads again, in the sketched basis, against its static shape, and in the linear model;
// and a load between those that were sketched.
static void replay(const workpiece *w, int count, const int *tip, const modes_basis *basis, const double *sketched) {
    cubature_polynomial         polynomial = {0};
    cubature_polynomial_options precompute = cubature_polynomial_default_options();
    double *f = fem_calloc((size_t)w->n, sizeof *f), *u = fem_calloc((size_t)w->n, sizeof *u), force[3];
    double *linear = fem_calloc((size_t)w->n, sizeof *linear), *between = fem_calloc((size_t)w->n, sizeof *between);
    const double  *exact = sketched + (size_t)REPLAYED * (size_t)w->n;
    modes_inverse *inverse = NULL;
    solver_options statics = solver_default_options();
    bench_try(cubature_polynomial_create(&polynomial, w->body, basis->r, basis->U, &precompute, NULL));
    cubature_forces forces = cubature_polynomial_forces(&polynomial);
    sketch_load(REPLAYED, force);
    solver_add_vertex_force(count, tip, force, f);
    double reduced_error = reduced_shape(w, basis, &forces, f, exact, u);
    bench_try(modes_inverse_create(&inverse, &w->problem, MODES_BORDER_MASS));
    bench_try(modes_inverse_solve(inverse, 1, f, linear));
    picture *drawn = picture_create("A sketched load: linear (red), static (grey), reduced (blue)",
                                    (double[]){0.3, 1, -0.25}, (double[]){0, 0, 1});
    picture_body(drawn, &w->mesh, exact, "#b0b0b0");
    picture_body(drawn, &w->mesh, u, "#7aa2c4");
    picture_body(drawn, &w->mesh, linear, "#d1495b");
    picture_write(drawn, "out/bench/spoon_sketch.svg");
    dense_axpy(w->n, -1, exact, linear);
    double linear_error = workpiece_norm(w, linear) / workpiece_norm(w, exact);
    // halfway between two neighbours in strength, sideways as none of them
    memset(f, 0, (size_t)w->n * sizeof *f);
    solver_add_vertex_force(count, tip, (double[]){0, 0.1 * force[2], 0.94 * force[2]}, f);
    bench_try(solver_sketch(w->body, w->fixed, &statics, 1, f, NULL, between));
    double between_error = reduced_shape(w, basis, &forces, f, between, u);
    printf("   sketch replay, distance from the static shape (mass norm): %.1e with a sketched load, %.1e with one "
           "between; the linear model %.2f (paper: \"visually almost indistinguishable\")\n",
           reduced_error, between_error, linear_error);
    modes_inverse_destroy(inverse);
    cubature_polynomial_destroy(&polynomial);
    fem_free(f), fem_free(u), fem_free(linear), fem_free(between);
}

static void spoon(void) {
    workpiece w = {0};
    make_spoon(&w);
    int        tip_count = 0, middle = 0;
    int       *tip = workpiece_select(&w.mesh, (double[]){2.47, -1, -1}, (double[]){3, 1, 1}, &tip_count);
    double     force[3] = {0, 0, 15e3}, *push = fem_calloc((size_t)w.n, sizeof *push);
    trajectory t[5] = {{.name = "full"},
                       {.name = "modal derivatives"},
                       {.name = "inertia modes"},
                       {.name = "sketch"},
                       {.name = "PCA of the full run"}};
    double    *shapes = fem_alloc((size_t)w.n * (STEPS + 1), sizeof *shapes), *sketched = NULL,
           *worst = fem_alloc((size_t)w.n, sizeof *worst);
    modes_basis bases[5] = {0};
    for (int i = 1; i < tip_count; i++)
        if (fabs(w.mesh.vertices[3 * tip[i] + 1]) < fabs(w.mesh.vertices[3 * tip[middle] + 1])) middle = i;
    solver_add_vertex_force(tip_count, tip, force, push);
    printf("   spoon of %d H8, %d vertices (paper: 2,005 and 3,698), pushed with %g N for %g s, %d steps of 1/120 s\n",
           w.mesh.element_count, w.mesh.vertex_count, force[2], PUSH, STEPS);
    run_full(&w, push, tip[middle], &t[0], shapes);
    for (int method = 0; method < 2; method++) {
        modes_recipe recipe = modes_default_recipe(method == 0 ? MODES_LANCZOS : MODES_KRYLOV);
        recipe.linear = 6, recipe.count = MODES;
        bench_try(modes_build(&w.problem, w.body, &recipe, NULL, NULL, &bases[1 + method], NULL));
    }
    sketch_basis(&w, tip_count, tip, &sketched, &bases[3]);
    modes_recipe pca = modes_default_recipe(MODES_LANCZOS);
    pca.count = MODES;
    bench_try(modes_build_sketch(&w.problem, STEPS + 1, shapes, &pca, &bases[4], NULL));
    plot *figure =
        plot_create("Spoon: height of its end (Barbic and James 2005, Fig. 12)", "time, s", "m", false, false);
    double times[STEPS + 1];
    for (int i = 0; i <= STEPS; i++) times[i] = i * STEP;
    printf("   %-20s %3s %11s %8s %12s %8s %9s %10s   paper\n", "basis", "r", "amplitude m", "error %", "frequency Hz",
           "error %", "ms/step", "full/this");
    static const char *const paper[] = {"", "frequency -4.6%", "", "frequency -10.1%", "very close"};
    for (int i = 0; i < 5; i++) {
        if (i > 0) run_reduced(&w, &bases[i], push, tip[middle], &t[i], i == 1 ? worst : NULL);
        measure(&t[i]);
        plot_series(figure, t[i].name, STEPS + 1, times, t[i].z);
        printf("   %-20s %3d %11.4f %8.2f %12.4f %8.2f %9.4f %10.0f   %s\n", t[i].name, t[i].r, t[i].amplitude,
               100 * (t[i].amplitude / t[0].amplitude - 1), t[i].frequency, 100 * (t[i].frequency / t[0].frequency - 1),
               1e3 * t[i].seconds / STEPS, t[0].seconds / t[i].seconds, paper[i]);
    }
    plot_write(figure, "out/bench/spoon.svg");
    picture *picture_7 = picture_create("Spoon, 6 modes and their derivatives, r = 15, at its extreme (Fig. 7)",
                                        (double[]){0.3, 1, -0.25}, (double[]){0, 0, 1});
    picture_body(picture_7, &w.mesh, NULL, "#c8c8c8");
    picture_body(picture_7, &w.mesh, worst, "#7aa2c4");
    picture_write(picture_7, "out/bench/spoon_extreme.svg");

    replay(&w, tip_count, tip, &bases[3], sketched);
    for (int i = 0; i < 5; i++) modes_basis_destroy(&bases[i]);
    fem_free(push), fem_free(tip), fem_free(shapes), fem_free(sketched), fem_free(worst);
    workpiece_destroy(&w);
}

// ---- Fig. 7, right: the twisted beam ------------------------------------------------------------------------------

// Angle by which the end section is turned about x, mean over its vertices, continued from `before`; *swell gets the
// mean distance from the axis over that at rest.
static double twist_of(const workpiece *w, int count, const int *end, const double *u, double before, double *swell) {
    double angle = 0, now = 0, rest = 0;
    for (int i = 0; i < count; i++) {
        const double *X = w->mesh.vertices + 3 * end[i], *d = u + 3 * end[i];
        double        a[2] = {X[1], X[2]}, b[2] = {X[1] + d[1], X[2] + d[2]};
        if (hypot(a[0], a[1]) < 1e-9) continue;
        double turned = atan2(a[0] * b[1] - a[1] * b[0], a[0] * b[0] + a[1] * b[1]);
        while (turned < before - acos(-1.0)) turned += 2 * acos(-1.0);
        angle += turned * hypot(a[0], a[1]), rest += hypot(a[0], a[1]), now += hypot(b[0], b[1]);
    }
    *swell = now / rest;
    return angle / rest;
}

// How much of a mode is a turn of the end about x: the torsional part of its motion over all of it.
static double twist_share(const workpiece *w, int count, const int *end, const double *u) {
    double along = 0, whole = 0;
    for (int i = 0; i < count; i++) {
        const double *X = w->mesh.vertices + 3 * end[i], *d = u + 3 * end[i];
        double        radius = hypot(X[1], X[2]);
        whole += vec3_dot(d, d);
        if (radius > 1e-9) along += pow((-X[2] * d[1] + X[1] * d[2]) / radius, 2);
    }
    return along / whole;
}

static void beam(void) {
    workpiece    w = {0};
    fem_mesh     mesh = {0};
    fem_material material = fem_material_default();
    material.young = 1e6, material.poisson = 0.3;
    bench_try(fem_generate_box(&mesh, FEM_H8, (double[]){0, -0.1, -0.1}, (double[]){2, 0.1, 0.1}, (int[]){40, 4, 4}));
    bench_try(fem_mesh_set_material(&mesh, &material));
    workpiece_create(&w, &mesh, workpiece_hold(&mesh, (double[]){-1, -1, -1}, (double[]){1e-6, 1, 1}));
    int count = 0, found = 0, twist[2] = {0},
        *end = workpiece_select(&w.mesh, (double[]){2 - 1e-6, -1, -1}, (double[]){3, 1, 1}, &count);
    modes_basis           modes = {0}, pair = {0}, five = {0};
    modes_lanczos_options lanczos = modes_lanczos_default_options();
    lanczos.count = 20;
    bench_try(modes_lanczos(&w.problem, &lanczos, NULL, &modes, NULL));
    for (int l = 0; l < 20 && found < 2; l++)
        if (twist_share(&w, count, end, modes.U + (size_t)l * (size_t)w.n) > 0.9) twist[found++] = l;
    bench_try(modes_basis_allocate(&pair, w.n, 2));
    for (int k = 0; k < 2; k++) {
        memcpy(pair.U + (size_t)k * (size_t)w.n, modes.U + (size_t)twist[k] * (size_t)w.n,
               (size_t)w.n * sizeof *pair.U);
        pair.omega2[k] = modes.omega2[twist[k]];
    }
    modes_pool               pool = {0};
    modes_derivative_options derivative = modes_derivative_default_options();
    modes_condense_options   condense = modes_condense_default_options();
    condense.r = 5, condense.scaling = MODES_SCALE_UNIT;
    bench_try(modes_derivatives(&w.problem, w.body, NULL, &pair, &derivative, NULL, &pool, NULL));
    bench_try(modes_condense(&w.problem, &pool, pair.omega2, &condense, NULL, &five, NULL));
    double *torque = fem_calloc((size_t)w.n, sizeof *torque), *u = fem_calloc((size_t)w.n, sizeof *u);
    for (int i = 0; i < count; i++) {
        const double *X = w.mesh.vertices + 3 * end[i];
        torque[3 * end[i] + 1] = -X[2], torque[3 * end[i] + 2] = X[1];
    }
    // the torque follows the section, as P4's user does: the load is turned with it in small steps
    printf("   beam of %d H8, twist modes %d and %d with their derivatives: r = %d\n", w.mesh.element_count,
           twist[0] + 1, twist[1] + 1, five.r);
    const modes_basis *bases[] = {&pair, &five};
    for (int b = 0; b < 2; b++) {
        int                         r = bases[b]->r;
        cubature_polynomial         polynomial = {0};
        cubature_polynomial_options precompute = cubature_polynomial_default_options();
        double                      q[5] = {0}, load[5], angle = 0, swell = 1, strength = 0;
        bench_try(cubature_polynomial_create(&polynomial, w.body, r, bases[b]->U, &precompute, NULL));
        cubature_forces forces = cubature_polynomial_forces(&polynomial);
        double         *f = fem_calloc((size_t)w.n, sizeof *f);
        while (angle < 1.5 * acos(-1.0) && strength < 1e5) {
            double c = cos(angle), s = sin(angle);
            strength += 5;
            for (int i = 0; i < count; i++) {
                const double *t = torque + 3 * end[i];
                f[3 * end[i] + 1] = strength * (c * t[1] - s * t[2]),
                               f[3 * end[i] + 2] = strength * (s * t[1] + c * t[2]);
            }
            dense_gemv_t_set(w.n, r, 1, bases[b]->U, f, load);
            if (!bench_reduced_static(&forces, load, 1, q)) break;
            dense_gemv_set(w.n, r, 1, bases[b]->U, q, u);
            angle = twist_of(&w, count, end, u, angle, &swell);
        }
        printf("   %s: twisted by %.0f degrees, the end's section is %.2f of its size (paper: 270 degrees, r = 5)\n",
               b ? "with derivatives" : "twist modes only", angle * 180 / acos(-1.0), swell);
        if (b) {
            picture *p = picture_create("Beam in five modes, twisted (Fig. 7, right)", (double[]){0.3, 1, -0.4},
                                        (double[]){0, 0, 1});
            picture_body(p, &w.mesh, u, "#7aa2c4");
            picture_write(p, "out/bench/twisted_beam.svg");
        }
        fem_free(f);
        cubature_polynomial_destroy(&polynomial);
    }
    modes_pool_destroy(&pool);
    modes_basis_destroy(&modes), modes_basis_destroy(&pair), modes_basis_destroy(&five);
    fem_free(torque), fem_free(u), fem_free(end);
    workpiece_destroy(&w);
}

int main(int argc, char **argv) {
    (void)argc;
    bench_header(argv, "Large deformations in a few modes");
    spoon();
    beam();
    return 0;
}
