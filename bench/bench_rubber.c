// Cantilevers of Neo-Hookean, Mooney-Rivlin and Arruda-Boyce material: reduced with each cubature rule and each way to
// solve a step, against reduced with exact forces, against the full mesh. The beam is released under a load at its tip:
// amplitude and frequency of the tip's swing, and the time of a step.
#include "bench/workpiece.h"
#include "bench/cubature_case.h"
#include "bench/tip_case.h"

enum { MODES = 20 };
#define STEP 0.01

static void run_full(tip_curve *s, const workpiece *w, const double *load, int tip) {
    solver_options o = solver_default_options();
    solver_full   *full = NULL;
    s->step = o.time_step = STEP;
    bench_try(solver_full_create(&full, w->body, w->fixed, &o));
    solver_full_set_load(full, load);
    double begin = fem_seconds();
    for (int i = 0; i < TIP_STEPS; i++) {
        bench_try(solver_full_step(full));
        s->tip[i] = solver_full_state(full)->u[tip];
    }
    s->microseconds = 1e6 * (fem_seconds() - begin) / TIP_STEPS;
    tip_measure(s);
    solver_full_destroy(full);
}

static void one_material(fem_material_kind kind) {
    const char  *data = getenv("LIMBER_DATA");
    fem_mesh     mesh = {0};
    const double low[3] = {0, 0, 0}, high[3] = {1, 0.06, 0.04}, face_low[3] = {-1e-6, -1, -1},
                 face_high[3] = {1e-6, 1, 1};
    const double end_low[3] = {1 - 1e-6, -1, -1}, end_high[3] = {2, 1, 1}, pull[3] = {0, 0, -0.25};
    const int    cells[3] = {30, 3, 4};
    char         path[1024];
    snprintf(path, sizeof path, "%s/meshes/cantilever_2k.veg", data ? data : "");
    if (data)
        bench_try(fem_mesh_read(&mesh, path));
    else
        bench_try(fem_generate_box(&mesh, FEM_T4, low, high, cells));
    fem_material material = fem_material_default();
    material.kind = kind, material.young = 1e6, material.poisson = 0.4, material.density = 1000;
    material.mu01 = 0.06e6, material.mu10 = 0.12e6, material.v1 = 0.9e6; // shear modulus 0.36 MPa,
    material.mu = 0.34e6, material.chain = 8, material.bulk = 1.7e6;     // bulk 1.7 to 1.8 MPa
    bench_try(fem_mesh_set_material(&mesh, &material));
    workpiece      w;
    int            count;
    unsigned char *fixed = workpiece_hold(&mesh, face_low, face_high);
    workpiece_create(&w, &mesh, fixed);
    int          *end = workpiece_select(&w.mesh, end_low, end_high, &count), tip = 3 * end[0] + 2;
    modes_basis   basis = {0};
    modes_quality quality = {0};
    modes_recipe  recipe = modes_default_recipe(MODES_LANCZOS);
    recipe.linear = 8, recipe.count = MODES;
    bench_try(modes_build(&w.problem, w.body, &recipe, NULL, NULL, &basis, NULL));
    bench_try(modes_examine(&w.problem, &basis, &quality));
    double *force = fem_calloc((size_t)w.n, sizeof *force), load[MODES], row[MODES];
    solver_add_vertex_force(count, end, pull, force);
    dense_gemv_t_set(w.n, basis.r, 1, basis.U, force, load);
    for (int l = 0; l < basis.r; l++) row[l] = basis.U[(size_t)l * (size_t)w.n + (size_t)tip];
    static tip_curve full, exact, one;
    cubature_full   *all = NULL;
    printf("   -- %s, %d elements, %d modes, %d steps of %g s\n", fem_material_kind_name(kind), w.mesh.element_count,
           basis.r, TIP_STEPS, STEP);
    run_full(&full, &w, force, tip);
    tip_print("full mesh", &full, &full);
    bench_try(cubature_full_create(&all, w.body, basis.r, basis.U));
    cubature_forces forces = cubature_full_forces(all);
    tip_run_reduced(&exact, STEP, &forces, load, row, SOLVER_SOLVE_DIRECT, 1e-6, 1);
    tip_print("reduced, all elements", &exact, &full);
    for (int method = 0; method < 3; method++) {
        cubature_training_options o = cubature_training_default_options();
        cubature_training_report  report;
        cubature_rule             rule;
        o.method = (cubature_method)method;
        o.error = 0.01, o.displacement = 0.2;
        double processor = bench_processor_seconds();
        bench_try(cubature_train(&rule, w.body, basis.r, basis.U, quality.rayleigh, &o, NULL, &report));
        processor = bench_processor_seconds() - processor;
        forces = cubature_rule_forces(&rule);
        printf("   %s: %d elements of %d poses in %.2f s, held-out error %.2f%%; against the reduced motion with all "
               "elements:\n",
               cubature_method_name(o.method), rule.count, report.poses, processor, 100 * report.held_out_error);
        static const char *const solves[] = {"   direct", "   Jacobian-free PCG", "   BiCGSTAB"};
        for (int solve = 0; solve < 3; solve++) {
            tip_run_reduced(&one, STEP, &forces, load, row, (solver_reduced_solve)solve, solve == 1 ? 1e-3 : 1e-6, 1);
            tip_print(solves[solve], &one, &exact);
        }
        cubature_rule_destroy(&rule);
    }
    fflush(stdout);
    cubature_full_destroy(all);
    modes_quality_destroy(&quality);
    modes_basis_destroy(&basis);
    fem_free(end), fem_free(force);
    workpiece_destroy(&w);
}

int main(int argc, char **argv) {
    (void)argc;
    bench_header(argv, "cantilevers of rubber: cubature against all elements against the full mesh");
    one_material(FEM_NEOHOOKEAN);
    one_material(FEM_MOONEY_RIVLIN);
    one_material(FEM_ARRUDA_BOYCE);
    return 0;
}
