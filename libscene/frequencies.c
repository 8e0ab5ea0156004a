// Small vibrations of a scene's body: `limber modes SCENE`.
#include "libscene/class.h"
#include "libscene/internal.h"
#include "libscene/motion.h"

#include <math.h>
#include <string.h>

void scene_frequencies_destroy(scene_frequencies *found) {
    fem_free(found->eigenvalues);
    fem_free(found->residuals);
    fem_free(found->notes);
    *found = (scene_frequencies){0};
}

static fem_status allocate(scene_frequencies *f, int count) {
    f->count = count;
    f->eigenvalues = fem_calloc((size_t)count, sizeof *f->eigenvalues);
    f->residuals = fem_calloc((size_t)count, sizeof *f->residuals);
    return f->eigenvalues && f->residuals ? FEM_OK : fem_fail(FEM_NO_MEMORY, "no memory for %d frequencies", count);
}

static fem_status check_count(const scene *s, int count, int dofs) {
    if (count <= dofs) return FEM_OK;
    return fem_fail(FEM_BAD_INPUT, "%s: %d frequencies were asked for, but its model has %d degrees of freedom",
                    s->path, count, dofs);
}

// ---- domains -------------------------------------------------------------------------------------------------------

static fem_status of_tree(const scene *s, int count, const fem_progress *progress, scene_frequencies *f) {
    fem_status       status = FEM_OK;
    solver_assembly *assembly = NULL;
    solver_forest   *forest = NULL;
    solver_tree     *tree = NULL;
    double          *omega = NULL, *shapes = NULL, begun = fem_seconds();
    bool             articulated = s->tree.options.subtree == SOLVER_ARTICULATED;
    if (s->forest.count > 0) {
        FEM_TRY(scene_make_forest(&forest, s, progress, &f->notes, NULL));
        FEM_TRY(solver_forest_tree(&tree, forest, &s->tree.options));
    } else {
        FEM_TRY(scene_assemble(&assembly, s, progress, &f->notes, NULL));
        FEM_TRY(solver_assembly_tree(&tree, assembly, false, &s->tree.options));
        FEM_TRY(scene_note_model(s, assembly, tree, count > SCENE_MODEL_MODES ? count : SCENE_MODEL_MODES, &f->notes));
    }
    f->seconds_prepare = fem_seconds() - begun;
    begun = fem_seconds();
    f->domains = solver_tree_count(tree);
    f->dofs = solver_tree_dofs(tree);
    FEM_TRY(check_count(s, count, f->dofs));
    FEM_TRY(allocate(f, count));
    omega = fem_alloc((size_t)count, sizeof *omega);
    shapes = fem_alloc((size_t)count * (size_t)f->dofs, sizeof *shapes);
    if (!omega || !shapes) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d frequencies", count);
        goto done;
    }
    FEM_TRY(solver_tree_frequencies(tree, count, omega, articulated ? shapes : NULL));
    if (articulated) FEM_TRY(solver_tree_residuals(tree, count, omega, shapes, f->residuals));
    for (int k = 0; k < count; k++) f->eigenvalues[k] = omega[k] * omega[k];
    f->seconds_solve = fem_seconds() - begun;
done:
    fem_free(omega), fem_free(shapes);
    solver_tree_destroy(tree);
    solver_assembly_destroy(assembly);
    solver_forest_destroy(forest);
    return status;
}

// ---- one body ------------------------------------------------------------------------------------------------------

// In the modes of the part (Ritz values), or of the full mesh.
static fem_status of_body(const scene *s, int count, const modes_problem *problem, const fem_body *body,
                          const fem_progress *progress, scene_frequencies *f) {
    fem_status    status = FEM_OK;
    modes_basis   basis = {0};
    modes_quality quality = {0};
    scene_class *class = NULL;
    double begun = fem_seconds();
    if (s->method == SCENE_REDUCED) {
        FEM_TRY(scene_class_create(&class, &s->parts[s->object], body, s->solver.mass, s->cache, progress, &f->notes));
        f->dofs = class->basis.r;
        FEM_TRY(check_count(s, count, f->dofs));
        f->seconds_prepare += fem_seconds() - begun;
        begun = fem_seconds();
        FEM_TRY(modes_examine(problem, &class->basis, &quality));
    } else {
        modes_lanczos_options options = modes_lanczos_default_options();
        options.count = count;
        f->dofs = f->free_dofs;
        FEM_TRY(modes_lanczos(problem, &options, progress, &basis, NULL));
        FEM_TRY(modes_examine(problem, &basis, &quality));
    }
    FEM_TRY(allocate(f, count));
    memcpy(f->eigenvalues, quality.ritz, (size_t)count * sizeof *f->eigenvalues);
    memcpy(f->residuals, quality.residuals, (size_t)count * sizeof *f->residuals);
    f->seconds_solve = fem_seconds() - begun;
done:
    scene_class_destroy(class);
    modes_quality_destroy(&quality);
    modes_basis_destroy(&basis);
    return status;
}

fem_status scene_find_frequencies(const scene *s, int count, const fem_progress *progress, scene_frequencies *result) {
    fem_status        status = FEM_OK;
    const scene_part *part = &s->parts[s->object];
    fem_body_options  options = fem_body_default_options();
    scene_frequencies f = {.vertices = part->mesh.vertex_count, .elements = part->mesh.element_count};
    fem_body         *body = NULL;
    fem_sparse        K = {0}, M = {0};
    size_t            n = 3 * (size_t)part->mesh.vertex_count;
    unsigned char    *fixed = fem_calloc(n, 1);
    double           *zero = fem_calloc(n, sizeof *zero), begun = fem_seconds();
    bool              held = false;
    options.quadrature = part->quadrature;
    if (!fixed || !zero) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d vertices", part->mesh.vertex_count);
        goto done;
    }
    scene_fixed_dofs(s, fixed);
    for (size_t i = 0; i < n; i++) f.free_dofs += !fixed[i], held = held || fixed[i];
    if (s->forest.count > 0) {
        double centre[3];
        f.mass = solver_mesh_mass(&part->mesh, centre);
    } else {
        FEM_TRY(fem_body_create(&body, &part->mesh, &options));
        f.mass = fem_body_total_mass(body);
    }
    if (s->tree.domains.count > 0 || s->forest.count > 0) {
        FEM_TRY(of_tree(s, count, progress, &f));
    } else {
        FEM_TRY(fem_body_matrix(body, &K));
        FEM_TRY(fem_body_matrix(body, &M));
        fem_body_evaluate(body, zero, NULL, NULL, &K);
        fem_body_mass(body, s->solver.mass, &M);
        modes_problem problem = {.mesh = &part->mesh, .K = &K, .M = &M, .fixed = held ? fixed : NULL};
        f.seconds_prepare = fem_seconds() - begun;
        FEM_TRY(of_body(s, count, &problem, body, progress, &f));
    }
    *result = f;
    f = (scene_frequencies){0};
done:
    scene_frequencies_destroy(&f);
    fem_sparse_destroy(&K);
    fem_sparse_destroy(&M);
    fem_body_destroy(body);
    fem_free(fixed), fem_free(zero);
    return status;
}
