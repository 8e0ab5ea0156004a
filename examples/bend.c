// A cantilever of rubber bends under a weight at its tip: the whole use of liblimber in one page.
//   cc bend.c -o bend $(pkg-config --cflags --libs limber) && ./bend bend.vtu
#include <limber.h>

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    fem_machine_correct_blas(argv); // first: it may start the program again

    fem_status     status = FEM_OK;
    fem_mesh       mesh = {0};
    fem_body      *body = NULL;
    solver_full   *solver = NULL;
    double        *load = NULL;
    unsigned char *fixed = NULL;

    // A beam of 1 x 0.1 x 0.1 m, 20 x 2 x 2 hexahedra, E = 10 MPa.
    FEM_TRY(fem_generate_box(&mesh, FEM_H8, (double[]){0, 0, 0}, (double[]){1, 0.1, 0.1}, (int[]){20, 2, 2}));
    fem_material rubber = fem_material_default();
    rubber.young = 1e7;
    rubber.poisson = 0.3;
    FEM_TRY(fem_mesh_set_material(&mesh, &rubber));
    fem_body_options elements = fem_body_default_options();
    FEM_TRY(fem_body_create(&body, &mesh, &elements));

    // Held at x = 0, 10 N downwards at x = 1.
    const fem_set *root = fem_mesh_vertex_set(&mesh, "x0"), *tip = fem_mesh_vertex_set(&mesh, "x1");
    size_t         dofs = 3 * (size_t)mesh.vertex_count;
    load = fem_calloc(dofs, sizeof *load);
    fixed = fem_calloc(dofs, 1);
    if (!load || !fixed) {
        status = fem_fail(FEM_NO_MEMORY, "%zu degrees of freedom", dofs);
        goto done;
    }
    for (int i = 0; i < root->count; i++) memset(fixed + 3 * root->items[i], 1, 3);
    solver_add_vertex_force(tip->count, tip->items, (double[]){0, 0, -10}, load);

    // The equilibrium, with large rotations.
    solver_options options = solver_default_options();
    FEM_TRY(solver_full_create(&solver, body, fixed, &options));
    solver_full_set_load(solver, load);
    FEM_TRY(solver_full_static(solver, NULL));

    const double *u = solver_full_state(solver)->u;
    double        deflection = 0;
    for (int i = 0; i < tip->count; i++) deflection -= u[3 * tip->items[i] + 2] / tip->count;
    printf("tip goes down by %.9f m after %d Newton iterations\n", deflection,
           solver_full_report(solver).newton_iterations);

    fem_field field = {"displacement", 3, u, false};
    if (argc > 1) FEM_TRY(fem_mesh_write_vtu(&mesh, argv[1], u, 1, &field));
done:
    if (status != FEM_OK) fprintf(stderr, "bend: %s\n", fem_message());
    solver_full_destroy(solver);
    fem_body_destroy(body);
    fem_mesh_destroy(&mesh);
    fem_free(load);
    fem_free(fixed);
    return status != FEM_OK;
}
