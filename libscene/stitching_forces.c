// Forces of a stitched body: those of the body before where they are good enough, new ones where not.
#include "libscene/stitching_internal.h"

#include <limits.h>
#include <math.h>
#include <string.h>

static void scale_material(fem_material *m, double factor) {
    m->young *= factor, m->mu01 *= factor, m->mu10 *= factor, m->v1 *= factor, m->mu *= factor, m->bulk *= factor;
    for (int i = 0; i < 3; i++) m->young3[i] *= factor, m->shear3[i] *= factor;
}

// The part with stiffer domains: each region once for every factor that it has.
fem_status stitching_scaled_body(const scene_stitching *t, fem_mesh *mesh, fem_body **body) {
    fem_status       status = FEM_OK;
    fem_body_options options = fem_body_default_options();
    int              domains = modes_stitched_domains(t->stitched), width = fem_element_vertices(t->part->mesh.type);
    int              regions = t->part->mesh.region_count;
    if (regions > INT_MAX / domains)
        return fem_fail(FEM_BAD_INPUT,
                        "%d regions times %d pieces of the mesh are too many to be made stiffer one by one", regions,
                        domains);
    FEM_TRY(fem_mesh_copy(mesh, &t->part->mesh));
    fem_material *materials = fem_alloc((size_t)regions * (size_t)domains, sizeof *materials);
    fem_region   *list = fem_calloc((size_t)regions * (size_t)domains, sizeof *list);
    if (!materials || !list) {
        fem_free(materials), fem_free(list);
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d regions", regions * domains);
        goto done;
    }
    for (int i = 0; i < regions * domains; i++) {
        materials[i] = mesh->materials[mesh->regions[i % regions].material];
        scale_material(&materials[i], modes_stitched_factor(t->stitched, i / regions));
        list[i].name = fem_copy_string(mesh->regions[i % regions].name);
        list[i].material = i;
        if (!list[i].name) status = fem_fail(FEM_NO_MEMORY, "no memory for the name of a region");
    }
    for (int e = 0; e < mesh->element_count; e++)
        mesh->region[e] += regions * modes_stitched_domain_of(t->stitched, mesh->elements[(size_t)e * (size_t)width]);
    for (int i = 0; i < regions; i++) fem_free(mesh->regions[i].name);
    fem_free(mesh->regions), fem_free(mesh->materials);
    mesh->regions = list, mesh->materials = materials;
    mesh->region_count = mesh->material_count = regions * domains;
    FEM_TRY(status);
    options.quadrature = t->part->quadrature;
    FEM_TRY(fem_body_create(body, mesh, &options));
done:
    return status;
}

// K (r x r) = U^T K^ U
static fem_status project(const scene_stitching *t, const modes_basis *basis, double **K) {
    size_t  n = (size_t)basis->n, r = (size_t)basis->r;
    double *KU = fem_alloc(n * r, sizeof *KU);
    *K = fem_alloc(r * r, sizeof **K);
    if (!KU || !*K) {
        fem_free(KU);
        return fem_fail(FEM_NO_MEMORY, "no memory for %zu modes", r);
    }
    modes_stitched_multiply(t->stitched, basis->r, basis->U, KU);
    dense_gemm(true, false, basis->r, basis->r, basis->n, 1, basis->U, KU, 0, *K);
    for (size_t i = 0; i < r; i++)
        for (size_t j = 0; j < i; j++) (*K)[i * r + j] = (*K)[j * r + i] = ((*K)[i * r + j] + (*K)[j * r + i]) / 2;
    fem_free(KU);
    return FEM_OK;
}

enum { CHECK_POSES = 10 };

// Coordinates that strain nothing (pieces that nothing holds fly) would take the whole length of a pose: they rest.
static const double STRAINS = 1e-9; // of the largest Rayleigh quotient

// Fresh poses, a tenth of the body's size, with all elements as the judge.
static fem_status check_forces(const fem_body *body, const scene_class *class, const double *L,
                               const cubature_forces *forces, cubature_check *check) {
    fem_status         status = FEM_OK;
    const modes_basis *basis = &class->basis;
    cubature_full     *full = NULL;
    cubature_stitched *exact = NULL;
    double             amplitude = 0, low[3], high[3], most = 0;
    double            *omega2 = fem_copy(basis->omega2, (size_t)basis->r, sizeof *omega2);
    if (!omega2) return fem_fail(FEM_NO_MEMORY, "no memory for %d modes", basis->r);
    for (int i = 0; i < basis->r; i++) most = fmax(most, omega2[i]);
    for (int i = 0; i < basis->r; i++)
        if (!(omega2[i] > STRAINS * most)) omega2[i] = 1e300;
    scene_bounding_box(fem_body_mesh(body), low, high);
    FEM_TRY(cubature_full_create(&full, body, basis->r, basis->U));
    cubature_forces inner = cubature_full_forces(full);
    FEM_TRY(cubature_stitched_create(&exact, &inner, basis->r, NULL, L));
    cubature_forces judge = cubature_stitched_forces(exact);
    FEM_TRY(cubature_amplitude(body, basis->r, basis->U, omega2, 0.1 * vec3_distance(low, high), 1, &amplitude));
    FEM_TRY(cubature_compare(forces, &judge, omega2, amplitude, CHECK_POSES, 7, check));
done:
    fem_free(omega2);
    cubature_stitched_destroy(exact);
    cubature_full_destroy(full);
    return status;
}

// K -= the stiffness of the forces at rest: what they lack of it.
static fem_status correct_linear(const cubature_forces *forces, int r, double *K) {
    size_t  square = (size_t)r * (size_t)r;
    double *K0 = fem_calloc(square + (size_t)r + forces->work, sizeof *K0), *q = K0 ? K0 + square : NULL;
    if (!K0) return fem_fail(FEM_NO_MEMORY, "no memory for %d modes", r);
    forces->evaluate(forces->model, q, NULL, NULL, K0, q + r);
    dense_axpy((int)square, -1, K0, K);
    fem_free(K0);
    return FEM_OK;
}

// The old forces for the new basis: polynomials in the old coordinates, cubature with its elements and weights.
static fem_status reuse_forces(scene_stitching *t, const fem_body *body, scene_class *class, const double *L,
                               scene_change *change) {
    fem_status        status = FEM_OK;
    cubature_forces   old = t->first->forces;
    double           *K = NULL;
    const scene_part *part = t->part;
    if (part->forces == SCENE_POLYNOMIAL && !stitching_is_scaled(t)) {
        FEM_TRY(project(t, &class->basis, &K));
        FEM_TRY(cubature_reuse(&class->springs, &old, &t->first->basis, &t->M, &class->basis, K));
    } else if (part->forces == SCENE_CUBATURE && !t->first->rule.modal) {
        const cubature_rule *rule = &t->first->rule;
        FEM_TRY(cubature_rule_create(&class->rule, body, class->basis.r, class->basis.U, rule->count, rule->elements,
                                     false, rule->weights));
        cubature_forces inner = cubature_rule_forces(&class->rule);
        FEM_TRY(project(t, &class->basis, &K));
        FEM_TRY(correct_linear(&inner, class->basis.r, K)); // weights were not made for this basis
        FEM_TRY(cubature_stitched_create(&class->springs, &inner, class->basis.r, NULL, K));
    } else {
        goto done;
    }
    class->forces = cubature_stitched_forces(class->springs);
    FEM_TRY(check_forces(body, class, L, &class->forces, &change->forces));
    change->reused = change->forces.mean <= t->s->stitching.forces_error;
    if (change->reused) goto done;
    cubature_stitched_destroy(class->springs);
    class->springs = NULL;
    cubature_rule_destroy(&class->rule);
done:
    fem_free(K);
    return status;
}

// A body of the elements of one group alone, with all vertices; `view` holds what it needs.
fem_status stitching_group_body(const fem_mesh *mesh, int quadrature, const int *group, int which, fem_mesh *view,
                                fem_body **body) {
    fem_status       status = FEM_OK;
    fem_body_options options = fem_body_default_options();
    size_t           width = (size_t)fem_element_vertices(mesh->type), count = 0;
    int             *elements = fem_alloc((size_t)mesh->element_count * width, sizeof *elements);
    int             *region = fem_alloc((size_t)mesh->element_count, sizeof *region);
    if (!elements || !region) {
        fem_free(elements), fem_free(region);
        return fem_fail(FEM_NO_MEMORY, "no memory for a piece of %d elements", mesh->element_count);
    }
    for (size_t e = 0; e < (size_t)mesh->element_count; e++) {
        if (group[mesh->elements[e * width]] != which) continue;
        memcpy(elements + count * width, mesh->elements + e * width, width * sizeof *elements);
        region[count++] = mesh->region[e];
    }
    *view = *mesh;
    view->elements = elements, view->region = region, view->element_count = (int)count;
    options.quadrature = quadrature;
    FEM_TRY(fem_body_create(body, view, &options));
    return FEM_OK;
done:
    fem_free(elements), fem_free(region);
    return status;
}

void stitching_group_destroy(fem_mesh *view, fem_body *body) {
    fem_body_destroy(body);
    fem_free(view->elements), fem_free(view->region);
}

// Polynomials of each group: the coordinates of one know nothing of the others.
static fem_status make_parts(const scene_stitching *t, const fem_body *body, const modes_blocks *blocks,
                             scene_class *class, const fem_progress *progress) {
    fem_status                  status = FEM_OK;
    cubature_polynomial_options options = cubature_polynomial_default_options();
    const fem_mesh             *mesh = fem_body_mesh(body);
    cubature_forces            *forces = fem_calloc((size_t)blocks->count, sizeof *forces);
    class->parts = fem_calloc((size_t)blocks->count, sizeof *class->parts);
    if (!forces || !class->parts) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d pieces", blocks->count);
        goto done;
    }
    for (int g = 0; g < blocks->count; g++) {
        fem_mesh  view = {0};
        fem_body *alone = NULL;
        int       r = blocks->first[g + 1] - blocks->first[g];
        if (r == 0) continue; // nothing of it moves
        FEM_TRY(stitching_group_body(mesh, t->part->quadrature, blocks->group, g, &view, &alone));
        status = cubature_polynomial_create(&class->parts[class->part_count], alone, r,
                                            blocks->basis.U + (size_t)blocks->first[g] * (size_t)blocks->basis.n,
                                            &options, progress);
        stitching_group_destroy(&view, alone);
        FEM_TRY(status);
        forces[class->part_count] = cubature_polynomial_forces(&class->parts[class->part_count]);
        class->part_count++;
    }
    FEM_TRY(cubature_pieces_create(&class->pieces, class->part_count, forces));
    class->forces = cubature_pieces_forces(class->pieces);
done:
    fem_free(forces);
    return status;
}

// A rule is trained in the modes, and taken for the whole basis: what moves pieces as a whole strains no element.
static fem_status make_rule(scene_stitching *t, const fem_body *body, const modes_basis *whole, scene_class *class,
                            const fem_progress *progress) {
    fem_status    status = FEM_OK;
    scene_class   trained = {0};
    cubature_rule rule = {0};
    if (scene_stitching_is_first(t)) { // the part's own
        const cubature_rule *own = &t->first->rule;
        FEM_TRY(cubature_rule_create(&rule, body, class->basis.r, class->basis.U, own->count, own->elements, false,
                                     own->weights));
    } else {
        FEM_TRY(stitching_copy_basis(whole, &trained.basis));
        FEM_TRY(scene_class_complete(&trained, t->part, body, t->s->solver.mass, true, progress));
        FEM_TRY(cubature_rule_create(&rule, body, class->basis.r, class->basis.U, trained.rule.count,
                                     trained.rule.elements, false, trained.rule.weights));
        class->training = trained.training;
    }
    class->rule = rule;
    class->forces = cubature_rule_forces(&class->rule);
done:
    modes_basis_destroy(&trained.basis);
    cubature_rule_destroy(&trained.rule);
    fem_free(trained.M), fem_free(trained.K0);
    return status;
}

fem_status stitching_forces(scene_stitching *t, const fem_body *body, const modes_basis *whole,
                            const modes_blocks *blocks, scene_class *class, const double *L,
                            const fem_progress *progress, scene_change *change) {
    fem_status        status = FEM_OK;
    double            begun = fem_cpu_seconds();
    scene_forces_kind kind = t->part->forces;
    bool              old_kind = kind == SCENE_POLYNOMIAL || kind == SCENE_CUBATURE;
    bool              extended = blocks->count > 0 && blocks->basis.r > whole->r, made = false;
    if (t->s->stitching.reuse && old_kind && !change->first) FEM_TRY(reuse_forces(t, body, class, L, change));
    if (!change->reused && kind == SCENE_POLYNOMIAL && blocks->count > 1) {
        FEM_TRY(make_parts(t, body, blocks, class, progress));
        made = true;
    } else if (!change->reused && kind == SCENE_CUBATURE && extended) {
        FEM_TRY(make_rule(t, body, whole, class, progress));
        made = true;
    }
    FEM_TRY(scene_class_complete(class, t->part, body, t->s->solver.mass, !change->reused && !made, progress));
    if (!change->reused) {
        FEM_TRY(cubature_stitched_create(&class->springs, &class->forces, class->basis.r, NULL, L));
        class->forces = cubature_stitched_forces(class->springs);
    }
    change->seconds_forces = fem_cpu_seconds() - begun;
done:
    return status;
}
