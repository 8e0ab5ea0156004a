// Reduced bodies in contact: Barbic and James 2005, Fig. 13 (free bodies tumble and fall on the ground) and Fig. 1 (a
// bridge at a kilohertz under a ball that rolls over it).
#include "bench/workpiece.h"

#include <sys/stat.h>

// ---- Fig. 13 ---------------------------------------------------------------------------------------------------

// World displacements of all vertices.
static void free_displacement(const workpiece *w, const solver_free *solver, const modes_basis *basis, double *u) {
    const solver_motion *m = solver_free_state(solver);
    dense_gemv_set(w->n, basis->r, 1, basis->U, m->q, u);
    for (int v = 0; v < w->mesh.vertex_count; v++) {
        const double *X = w->mesh.vertices + 3 * v;
        double        y[3], turned[3];
        for (int k = 0; k < 3; k++) y[k] = X[k] - m->centre[k] + u[3 * v + k];
        mat3_mul_vec(turned, m->Q, y);
        for (int k = 0; k < 3; k++) u[3 * v + k] = m->p[k] + turned[k] - X[k];
    }
}

static void tumbling(void) {
    enum { BODIES = 3, STEPS = 3000, MODES = 40 };
    const double h = 1e-3;
    workpiece    w = {0};
    fem_mesh     mesh = {0};
    fem_material material = fem_material_default();
    modes_basis  basis = {0};
    modes_recipe recipe = modes_default_recipe(MODES_LANCZOS);
    fem_piece    pieces[] = {
           {.name = "middle", .shape = FEM_CAPSULE, .a = {-0.4, 0, 0}, .b = {0.4, 0, 0}, .radius_a = 0.1, .radius_b = 0.1},
           {.name = "left", .shape = FEM_BALL, .a = {-0.5, 0, 0}, .radius_a = 0.2},
           {.name = "right", .shape = FEM_BALL, .a = {0.5, 0, 0.05}, .radius_a = 0.16},
           {.name = "spur", .shape = FEM_CAPSULE, .a = {0, 0, 0}, .b = {0, 0.35, 0.1}, .radius_a = 0.08, .radius_b = 0.06},
    };
    material.young = 1.5e5, material.poisson = 0.4;
    bench_try(fem_generate_pieces(&mesh, FEM_T4, 4, pieces, 0.04));
    bench_try(fem_mesh_set_material(&mesh, &material));
    workpiece_create(&w, &mesh, NULL);
    recipe.linear = 20, recipe.count = MODES; // the paper: psi_7 .. psi_26 and their derivatives
    double begun = fem_seconds();
    bench_try(modes_build(&w.problem, w.body, &recipe, NULL, NULL, &basis, NULL));
    double                      modes_seconds = fem_seconds() - begun;
    cubature_polynomial         polynomial = {0};
    cubature_polynomial_options precompute = cubature_polynomial_default_options();
    begun = fem_seconds();
    bench_try(cubature_polynomial_create(&polynomial, w.body, MODES, basis.U, &precompute, NULL));
    printf("   body of %d T4, 20 vibration modes and their derivatives, r = %d: modes %.2f s, polynomials %.2f s\n",
           w.mesh.element_count, basis.r, modes_seconds, fem_seconds() - begun);
    cubature_forces        forces = cubature_polynomial_forces(&polynomial);
    solver_inertia         inertia = {0};
    solver_samples         samples = {0};
    solver_reduced_options options = solver_free_default_options();
    solver_contact_options contact_options = solver_contact_default_options();
    options.time_step = h;
    options.damping_mass = 0.5, options.damping_stiffness = 2e-3;
    contact_options.stiffness = 2e7, contact_options.damping = 2e4;
    bench_try(solver_inertia_create(&inertia, w.body, FEM_MASS_CONSISTENT, basis.r, basis.U));
    bench_try(solver_samples_create(&samples, &w.mesh, basis.r, basis.U));
    picture *p = picture_create("Free bodies, r = 40, falling on the ground (Barbic and James 2005, Fig. 13)",
                                (double[]){0.2, 1, -0.3}, (double[]){0, 0, 1});
    double  *u = fem_alloc((size_t)w.n, sizeof *u);
    for (int b = 0; b < BODIES; b++) {
        solver_free    *solver = NULL;
        solver_contact *contact = NULL;
        solver_obstacle ground = solver_plane((double[]){0, 0, 0}, (double[]){0, 0, 1});
        double position[3] = {1.6 * b, 0, 1.2 + 0.2 * b}, spin[3] = {2.0 + b, 1.0, -1.5 * b}, deepest = 0, squeezed = 0;
        int    number = 0, done = 0;
        bench_try(solver_free_create(&solver, &inertia, &forces, &options));
        bench_try(solver_free_set_state(solver, &(solver_motion_start){.p = position, .w = spin}));
        solver_free_set_gravity(solver, (double[]){0, 0, -9.81});
        bench_try(solver_contact_create(&contact, &samples, &contact_options));
        bench_try(solver_contact_add(contact, &ground, &number));
        bench_try(solver_free_set_contact(solver, contact));
        begun = fem_seconds();
        for (; done < STEPS; done++) {
            if (solver_free_step(solver) != FEM_OK) break;
            deepest = fmax(deepest, solver_contact_get_report(contact).depth);
            double size = dense_norm(basis.r, solver_free_state(solver)->q);
            squeezed = fmax(squeezed, size);
            if (done == 150 || done == 800) {
                free_displacement(&w, solver, &basis, u);
                picture_body(p, &w.mesh, u, done == 150 ? "#7aa2c4" : "#c4a27a");
            }
        }
        double                 seconds = fem_seconds() - begun;
        solver_motion_energies e;
        solver_contact_report  r = solver_contact_get_report(contact);
        solver_free_energies(solver, &e);
        printf("   body %d: %d steps of 1 ms %s, %.0f steps/s, %.0f spheres of the tree looked at a step for %d "
               "samples, deepest "
               "%.3f m, "
               "kinetic energy at the end %.3g J\n",
               b + 1, done, done == STEPS ? "done" : fem_message(), done / seconds,
               (double)r.total_spheres / (double)r.evaluations, samples.count, deepest, e.kinetic);
        solver_free_destroy(solver);
        solver_contact_destroy(contact);
    }
    picture_write(p, "out/bench/tumbling.svg");
    fem_free(u);
    solver_samples_destroy(&samples);
    solver_inertia_destroy(&inertia);
    cubature_polynomial_destroy(&polynomial);
    modes_basis_destroy(&basis);
    workpiece_destroy(&w);
}

// ---- Fig. 1 ----------------------------------------------------------------------------------------------------

// The shared bridge where there is one, else a deck on two feet. *up: which axis is.
static const char *make_bridge(fem_mesh *mesh, unsigned char **fixed, int *up) {
    const char  *data = getenv("LIMBER_DATA"), *name = "generated bridge";
    char         path[1024];
    struct stat  about;
    fem_material material = fem_material_default();
    snprintf(path, sizeof path, "%s/vega/models/simpleBridge/simpleBridge_resol92-b1.155_enlarged.veg",
             data ? data : "");
    if (data && stat(path, &about) == 0) {
        bench_try(fem_mesh_read(mesh, path));
        name = "simpleBridge (voxels)", *up = 1;
    } else {
        fem_piece pieces[] = {
            {.name = "deck", .shape = FEM_BOX, .a = {-10, -1.2, 1}, .b = {10, 1.2, 1.5}},
            {.name = "left", .shape = FEM_BOX, .a = {-10, -1.2, 0}, .b = {-9, 1.2, 1}},
            {.name = "right", .shape = FEM_BOX, .a = {9, -1.2, 0}, .b = {10, 1.2, 1}},
        };
        bench_try(fem_generate_pieces(mesh, FEM_H8, 3, pieces, 0.25));
        *up = 2;
    }
    material.young = 1e7, material.density = 1000;
    bench_try(fem_mesh_set_material(mesh, &material));
    double low = INFINITY, high = -INFINITY; // along x: both ends are held
    for (int v = 0; v < mesh->vertex_count; v++)
        low = fmin(low, mesh->vertices[3 * v]), high = fmax(high, mesh->vertices[3 * v]);
    *fixed = fem_calloc(3 * (size_t)mesh->vertex_count, 1);
    for (int v = 0; v < mesh->vertex_count; v++) {
        double x = mesh->vertices[3 * v];
        if (x < low + 0.03 * (high - low) || x > high - 0.03 * (high - low)) memset(*fixed + 3 * v, 1, 3);
    }
    return name;
}

static void bridge(void) {
    enum { STEPS = 4000, MODES = 15 };
    const double           h = 1e-3;
    workpiece              w = {0};
    fem_mesh               mesh = {0};
    unsigned char         *fixed = NULL;
    int                    up = 0, number = 0;
    const char            *name = make_bridge(&mesh, &fixed, &up);
    modes_basis            basis = {0};
    modes_recipe           recipe = modes_default_recipe(MODES_LANCZOS);
    solver_samples         samples = {0};
    solver_contact        *contact = NULL;
    solver_contact_options contact_options = solver_contact_default_options();
    solver_reduced_options options = solver_reduced_default_options();
    solver_reduced        *solver = NULL;
    workpiece_create(&w, &mesh, fixed);
    recipe.linear = 6, recipe.count = MODES;
    bench_try(modes_build(&w.problem, w.body, &recipe, NULL, NULL, &basis, NULL));
    cubature_polynomial         polynomial = {0};
    cubature_polynomial_options precompute = cubature_polynomial_default_options();
    bench_try(cubature_polynomial_create(&polynomial, w.body, basis.r, basis.U, &precompute, NULL));
    cubature_forces forces = cubature_polynomial_forces(&polynomial);
    options.time_step = h;
    options.damping_mass = 1, options.damping_stiffness = 1e-3;
    contact_options.stiffness = 2e7, contact_options.friction = 0;
    bench_try(solver_reduced_create(&solver, &forces, NULL, &options));
    bench_try(solver_samples_create(&samples, &w.mesh, basis.r, basis.U));
    bench_try(solver_contact_create(&contact, &samples, &contact_options));
    // the ball rolls along the middle, a little deep in the deck, from one end to the other
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (int i = 0; i < w.n; i++)
        low[i % 3] = fmin(low[i % 3], w.mesh.vertices[i]), high[i % 3] = fmax(high[i % 3], w.mesh.vertices[i]);
    int    side = 3 - up;
    double radius = 0.35 * (high[side] - low[side]), from = low[0] + 0.1 * (high[0] - low[0]),
           to = high[0] - 0.1 * (high[0] - low[0]), top = -INFINITY;
    for (int v = 0; v < w.mesh.vertex_count; v++) // of the deck under the ball's path
        if (fabs(w.mesh.vertices[3 * v + side] - (low[side] + high[side]) / 2) < 0.2 * radius &&
            fabs(w.mesh.vertices[3 * v] - (from + to) / 2) < radius)
            top = fmax(top, w.mesh.vertices[3 * v + up]);
    double centre[3] = {from, 0, 0};
    centre[up] = top + radius - 0.25 * radius;
    centre[side] = (low[side] + high[side]) / 2;
    solver_obstacle ball = solver_sphere(centre, radius);
    ball.velocity[0] = (to - from) / (STEPS * h);
    bench_try(solver_contact_add(contact, &ball, &number));
    bench_try(solver_reduced_set_contact(solver, contact));
    double *u = fem_calloc((size_t)w.n, sizeof *u), seen[3] = {0}; // halfway, for the picture
    double  begun = fem_seconds(), touching = 0, most = 0, deepest = 0;
    for (int i = 0; i < STEPS; i++) {
        ball.position[0] = from + ball.velocity[0] * i * h;
        bench_try(solver_contact_move(contact, number, &ball));
        bench_try(solver_reduced_step(solver));
        solver_contact_report r = solver_contact_get_report(contact);
        if (i == STEPS / 2) {
            dense_gemv_set(w.n, basis.r, 1, basis.U, solver_reduced_state(solver)->q, u);
            for (int k = 0; k < 3; k++) seen[k] = ball.position[k];
        }
        touching += r.contacts > 0, most = fmax(most, r.contacts), deepest = fmax(deepest, r.depth);
    }
    double                seconds = fem_seconds() - begun;
    solver_step_report    report = solver_reduced_report(solver);
    solver_contact_report r = solver_contact_get_report(contact);
    printf("   %s, %d H8, r = %d, %d surface samples: %.0f steps/s with contact (%.0f us: forces %.0f, contact %.0f, "
           "solve %.0f); the paper 1,000 steps/s at r = 15\n",
           name, w.mesh.element_count, basis.r, samples.count, STEPS / seconds, 1e6 * seconds / STEPS,
           1e6 * report.seconds_force / STEPS, 1e6 * report.seconds_contact / STEPS,
           1e6 * report.seconds_solve / STEPS);
    printf("   in contact %.0f%% of the time, at most %.0f points, deepest %.3f m; %.0f spheres of the tree a step\n",
           100 * touching / STEPS, most, deepest, (double)r.total_spheres / (double)r.evaluations);
    fem_mesh round = {0};
    bench_try(fem_generate_sphere(&round, FEM_H8, seen, radius, 10));
    picture *p =
        picture_create("Bridge under a rolling ball", up == 2 ? (double[]){0.4, 1, -0.4} : (double[]){0.4, -0.4, -1},
                       up == 2 ? (double[]){0, 0, 1} : (double[]){0, 1, 0});
    picture_body(p, &w.mesh, u, "#7aa2c4");
    picture_body(p, &round, NULL, "#c4a27a");
    picture_write(p, "out/bench/bridge.svg");
    fem_mesh_destroy(&round);
    fem_free(u);
    solver_reduced_destroy(solver);
    solver_contact_destroy(contact);
    solver_samples_destroy(&samples);
    cubature_polynomial_destroy(&polynomial);
    modes_basis_destroy(&basis);
    workpiece_destroy(&w);
}

int main(int argc, char **argv) {
    (void)argc;
    bench_header(argv, "Reduced bodies in contact");
    tumbling();
    bridge();
    return 0;
}
