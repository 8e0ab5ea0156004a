// Makes a class: basis, forces, inertia, interfaces. See class.h.
#include "libsolver/class.h"

#include <string.h>

const char *solver_forces_name(solver_forces_kind kind) {
    static const char *const names[] = {"polynomial", "linear", "full", "warped"};
    return names[kind];
}

solver_class_options solver_class_default_options(void) {
    solver_class_options o = {.modes = 20,
                              .forces = SOLVER_FORCES_POLYNOMIAL,
                              .mass = FEM_MASS_CONSISTENT,
                              .quadrature = fem_body_default_options().quadrature,
                              .recipe = modes_default_recipe(MODES_KRYLOV),
                              .wrenches = true};
    o.recipe.linear = 0;
    o.recipe.keep = true;
    return o;
}

int solver_class_most_modes(int vertex_count, int fixed_count) {
    int most = 3 * (vertex_count - fixed_count) - (fixed_count > 0 ? 0 : 6);
    return most > 0 ? most : 0;
}

// ---- key -----------------------------------------------------------------------------------------------------------

static fem_hash add_int(fem_hash hash, int value) { return fem_hash_add(hash, &value, sizeof value); }
static fem_hash add_double(fem_hash hash, double value) { return fem_hash_add(hash, &value, sizeof value); }

static fem_hash class_key(const solver_class *c, int place_count, const solver_place *places,
                          const solver_collar *collar, const solver_class_options *o) {
    const modes_recipe *recipe = &o->recipe;
    const int           numbers[] = {o->modes,
                                     o->forces,
                                     o->mass,
                                     o->quadrature,
                                     o->wrenches,
                                     recipe->method,
                                     recipe->linear,
                                     recipe->derivatives,
                                     recipe->kind,
                                     recipe->keep,
                                     recipe->condense,
                                     recipe->metric,
                                     (int)recipe->krylov.seeds,
                                     recipe->krylov.orthogonalise.method};
    fem_hash            hash = fem_hash_add(fem_mesh_hash(&c->mesh), numbers, sizeof numbers);
    hash = add_double(hash, recipe->energy);
    hash = fem_hash_add(hash, c->fixed, c->fixed ? 3 * (size_t)c->mesh.vertex_count : 0);
    for (int i = 0; i < place_count; i++) {
        const solver_place *place = &places[i];
        hash = fem_hash_add(hash, place->vertices, (size_t)place->count * sizeof *place->vertices);
        hash = fem_hash_add(hash, place->weights, place->weights ? (size_t)place->count * sizeof(double) : 0);
        hash = add_double(hash, place->mass);
        hash = add_double(hash, place->lever);
    }
    if (collar) {
        fem_hash around = fem_mesh_hash(&collar->mesh);
        hash = fem_hash_add(hash, &around, sizeof around);
    }
    return add_int(hash, place_count);
}

// ---- basis and forces: what is stored ------------------------------------------------------------------------------

static bool nonlinear(solver_forces_kind kind) {
    return kind == SOLVER_FORCES_POLYNOMIAL || kind == SOLVER_FORCES_FULL;
}

// Linear modes among `count`: the six inertia modes and the wrenches first, but room for derivatives.
static int choose_linear(int count, int places) {
    int wanted = 6 + 6 * places, most = (2 * count + 2) / 3;
    if (wanted < (count + 1) / 2) wanted = (count + 1) / 2;
    return wanted < most ? wanted : most;
}

static bool all_held(const unsigned char *fixed, const solver_place *place) {
    for (int i = 0; i < place->count; i++)
        if (!fixed || !fixed[3 * (size_t)place->vertices[i]]) return false;
    return true;
}

// Places that wrenches can move the piece at.
static int gather_wrenches(const unsigned char *fixed, int place_count, const solver_place *places,
                           modes_interface *wrenches) {
    int count = 0;
    for (int i = 0; i < place_count; i++) {
        const solver_place *place = &places[i];
        if (all_held(fixed, place)) continue;
        wrenches[count++] = (modes_interface){.count = place->count,
                                              .vertices = place->vertices,
                                              .areas = place->weights,
                                              .mass = place->mass,
                                              .lever = place->lever};
    }
    return count;
}

static fem_status build_basis(const modes_problem *problem, const fem_body *body, modes_recipe *recipe,
                              const fem_progress *progress, modes_basis *basis) {
    modes_recipe_report report = {0};
    fem_status          status = modes_build(problem, body, recipe, NULL, progress, basis, &report);
    if (status == FEM_BAD_INPUT && recipe->method == MODES_KRYLOV && recipe->krylov.seeds == 0) {
        // a small or very symmetric piece, whose own seeds lead nowhere: random fields reach everything
        recipe->krylov.seeds = MODES_SEED_RANDOM | (problem->fixed ? MODES_SEED_RIGID : MODES_SEED_QUADRATIC);
        status = modes_build(problem, body, recipe, NULL, progress, basis, &report);
    }
    if (status == FEM_OK && problem->fixed && report.rigid > 0)
        status = fem_fail(FEM_BAD_INPUT,
                          "what is fixed leaves %d rigid motions; three vertices that do not lie on a line hold a body",
                          report.rigid);
    return status;
}

static fem_status make_basis(const modes_problem *problem, const fem_body *body, int place_count,
                             const solver_place *places, const solver_class_options *o, const fem_progress *progress,
                             modes_basis *basis) {
    fem_status       status = FEM_OK;
    modes_recipe     recipe = o->recipe;
    modes_interface *wrenches = fem_alloc((size_t)place_count, sizeof *wrenches);
    if (!wrenches) return fem_fail(FEM_NO_MEMORY, "no memory for %d interfaces", place_count);
    bool used = o->wrenches && recipe.method == MODES_KRYLOV;
    int  count = used ? gather_wrenches(problem->fixed, place_count, places, wrenches) : 0;
    recipe.count = o->modes;
    if (!nonlinear(o->forces)) recipe.derivatives = 0;
    if (recipe.linear == 0) recipe.linear = choose_linear(o->modes, count);
    if (recipe.linear > o->modes) recipe.linear = o->modes;
    int linear = recipe.derivatives > 0 ? recipe.linear : o->modes;
    recipe.krylov.interface_count = count;
    recipe.krylov.interfaces = wrenches;
    recipe.krylov.interface_seeds = count > 0 && linear > 1 ? linear - (linear < 12 ? linear / 2 : 6) : 0;
    FEM_TRY(build_basis(problem, body, &recipe, progress, basis));
done:
    fem_free(wrenches);
    return status;
}

// ---- the collar ----------------------------------------------------------------------------------------------------

void solver_collar_destroy(solver_collar *collar) {
    for (int i = 0; i < collar->place_count; i++) {
        fem_free((int *)collar->places[i].vertices);
        fem_free((double *)collar->places[i].weights);
    }
    fem_free(collar->places);
    fem_free(collar->vertices);
    fem_mesh_destroy(&collar->mesh);
    *collar = (solver_collar){0};
}

// X <- X - R R^T M X: without the rigid motions of the piece, which those of the piece with its collar are not
static fem_status remove_rigid(const modes_problem *problem, int columns, double *X) {
    fem_status status = FEM_OK;
    int        n = 3 * problem->mesh->vertex_count, rigid = 0;
    double    *R = NULL, *Mx = fem_alloc((size_t)n, sizeof *Mx), *c = NULL;
    FEM_TRY(modes_rigid(problem, &R, &rigid));
    c = fem_alloc((size_t)rigid, sizeof *c);
    if (!Mx || !c) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d modes", columns);
        goto done;
    }
    for (int j = 0; j < columns; j++) {
        double *x = X + (size_t)j * (size_t)n;
        fem_sparse_multiply(problem->M, 1, x, Mx);
        dense_gemv_t_set(n, rigid, 1, R, Mx, c);
        dense_gemv_add(n, rigid, -1, R, c, x);
    }
done:
    fem_free(R), fem_free(Mx), fem_free(c);
    return status;
}

// The rows of a basis of the piece with its collar that belong to the piece, made orthonormal again.
static fem_status restrict_basis(const modes_problem *problem, const solver_collar *collar, const modes_basis *wide,
                                 modes_basis *basis) {
    fem_status                  status = FEM_OK;
    modes_basis                 own = {0};
    int                         n = 3 * problem->mesh->vertex_count, rank = 0;
    double                     *Kx = fem_alloc((size_t)n, sizeof *Kx);
    modes_orthogonalise_options options = modes_orthogonalise_default_options();
    FEM_TRY(modes_basis_allocate(&own, n, wide->r));
    if (!Kx) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d modes", wide->r);
        goto done;
    }
    for (size_t l = 0; l < (size_t)wide->r; l++)
        for (size_t i = 0; i < (size_t)n; i++)
            own.U[(size_t)n * l + i] = wide->U[(size_t)wide->n * l + 3 * (size_t)collar->vertices[i / 3] + i % 3];
    if (!problem->fixed) FEM_TRY(remove_rigid(problem, wide->r, own.U));
    FEM_TRY(modes_orthogonalise(problem, &options, wide->r, own.U, &rank, NULL));
    own.r = rank;
    for (int l = 0; l < rank; l++) {
        const double *x = own.U + (size_t)n * (size_t)l;
        fem_sparse_multiply(problem->K, 1, x, Kx);
        own.omega2[l] = dense_dot(n, x, Kx);
    }
    *basis = own;
    own = (modes_basis){0};
done:
    fem_free(Kx);
    modes_basis_destroy(&own);
    return status;
}

// Basis of the piece with its collar: where the piece is held, its collar is not.
static fem_status make_wide_basis(solver_class *c, const modes_problem *problem, const solver_collar *collar,
                                  const solver_class_options *o, const fem_progress *progress) {
    fem_status       status = FEM_OK;
    fem_body        *body = NULL;
    fem_sparse       K = {0}, M = {0};
    modes_basis      wide = {0};
    size_t           n = 3 * (size_t)collar->mesh.vertex_count;
    double          *zero = fem_calloc(n, sizeof *zero);
    unsigned char   *fixed = fem_calloc(n, 1);
    fem_body_options options = fem_body_default_options();
    options.quadrature = o->quadrature;
    if (!zero || !fixed) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %zu degrees of freedom", n);
        goto done;
    }
    for (int v = 0; c->fixed && v < c->mesh.vertex_count; v++)
        memcpy(fixed + 3 * (size_t)collar->vertices[v], c->fixed + 3 * (size_t)v, 3);
    FEM_TRY(fem_body_create(&body, &collar->mesh, &options));
    FEM_TRY(fem_body_matrix(body, &K));
    FEM_TRY(fem_body_matrix(body, &M));
    fem_body_evaluate(body, zero, NULL, NULL, &K);
    fem_body_mass(body, o->mass, &M);
    modes_problem with = {.mesh = &collar->mesh, .K = &K, .M = &M, .fixed = c->fixed ? fixed : NULL};
    FEM_TRY(make_basis(&with, body, collar->place_count, collar->places, o, progress, &wide));
    FEM_TRY(restrict_basis(problem, collar, &wide, &c->basis));
done:
    modes_basis_destroy(&wide);
    fem_sparse_destroy(&K);
    fem_sparse_destroy(&M);
    fem_body_destroy(body);
    fem_free(zero), fem_free(fixed);
    return status;
}

// ---- stored --------------------------------------------------------------------------------------------------------

static fem_status make_stored(solver_class *c, const fem_sparse *K, const fem_sparse *M, int place_count,
                              const solver_place *places, const solver_collar *collar, const solver_class_options *o,
                              const fem_progress *progress) {
    fem_status    status = FEM_OK;
    modes_problem problem = {.mesh = &c->mesh, .K = K, .M = M, .fixed = c->fixed};
    double        begun = fem_seconds();
    if (collar)
        FEM_TRY(make_wide_basis(c, &problem, collar, o, progress));
    else
        FEM_TRY(make_basis(&problem, c->body, place_count, places, o, progress, &c->basis));
    c->seconds_modes = fem_seconds() - begun;
    begun = fem_seconds();
    if (o->forces == SOLVER_FORCES_POLYNOMIAL) {
        cubature_polynomial_options options = cubature_polynomial_default_options();
        FEM_TRY(cubature_polynomial_create(&c->polynomial, c->body, c->basis.r, c->basis.U, &options, progress));
    }
    c->seconds_forces = fem_seconds() - begun;
done:
    return status;
}

// ---- what is not stored --------------------------------------------------------------------------------------------

// K0 = U^T K(0) U, symmetric to the last bit
static fem_status project_stiffness(solver_class *c, const fem_sparse *K) {
    int     n = c->basis.n, r = c->basis.r;
    double *product = fem_alloc((size_t)n * (size_t)r, sizeof *product);
    c->K0 = fem_alloc((size_t)r * (size_t)r, sizeof *c->K0);
    if (!product || !c->K0) {
        fem_free(product);
        return fem_fail(FEM_NO_MEMORY, "no memory for %d modes", r);
    }
    fem_sparse_multiply(K, r, c->basis.U, product);
    dense_gemm(true, false, r, r, n, 1, c->basis.U, product, 0, c->K0);
    for (int i = 0; i < r; i++)
        for (int j = 0; j < i; j++) c->K0[i * r + j] = c->K0[j * r + i] = (c->K0[i * r + j] + c->K0[j * r + i]) / 2;
    fem_free(product);
    return FEM_OK;
}

static fem_status make_forces(solver_class *c, const fem_sparse *K, bool batch) {
    fem_status status = FEM_OK;
    switch (c->kind) {
    case SOLVER_FORCES_POLYNOMIAL:
        c->forces = cubature_polynomial_forces(&c->polynomial);
        if (batch) FEM_TRY(cubature_batch_create(&c->batch, &c->polynomial));
        break;
    case SOLVER_FORCES_FULL:
        FEM_TRY(cubature_full_create(&c->full, c->body, c->basis.r, c->basis.U));
        c->forces = cubature_full_forces(c->full);
        break;
    case SOLVER_FORCES_WARPED:
    case SOLVER_FORCES_LINEAR:
        if (c->kind == SOLVER_FORCES_WARPED) FEM_TRY(modes_warp_create(&c->warp, &c->mesh, &c->basis));
        FEM_TRY(project_stiffness(c, K));
        c->linear = (cubature_linear){.r = c->basis.r, .K0 = c->K0};
        c->forces = cubature_linear_forces(&c->linear);
        break;
    }
done:
    return status;
}

static fem_status make_interface(const solver_class *c, const solver_place *place, domain_interface *interface) {
    size_t     count = (size_t)place->count, r = (size_t)c->basis.r;
    double    *points = fem_alloc(3 * count, sizeof *points), *rows = fem_alloc(3 * count * r, sizeof *rows);
    fem_status status = points && rows ? FEM_OK : fem_fail(FEM_NO_MEMORY, "no memory for an interface");
    for (size_t k = 0; status == FEM_OK && k < count; k++)
        for (size_t i = 0; i < 3; i++) {
            size_t row = 3 * (size_t)place->vertices[k] + i;
            points[3 * k + i] = c->mesh.vertices[row];
            for (size_t l = 0; l < r; l++) rows[3 * (count * l + k) + i] = c->basis.U[(size_t)c->basis.n * l + row];
        }
    if (status == FEM_OK)
        status = domain_interface_create(interface, place->count, points, place->weights, (int)r, rows, place->rest);
    fem_free(points);
    fem_free(rows);
    return status;
}

static fem_status finish(solver_class *c, const fem_sparse *K, int place_count, const solver_place *places,
                         const solver_class_options *o) {
    fem_status status = FEM_OK;
    double     begun = fem_seconds();
    if (c->basis.r > 0) FEM_TRY(make_forces(c, K, o->batch));
    FEM_TRY(solver_inertia_create(&c->inertia, c->body, o->mass, c->basis.r, c->basis.U));
    c->interfaces = fem_calloc((size_t)place_count, sizeof *c->interfaces);
    if (!c->interfaces) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d interfaces", place_count);
        goto done;
    }
    for (int i = 0; i < place_count; i++) {
        if (!places[i].child) continue;
        FEM_TRY(make_interface(c, &places[i], &c->interfaces[c->interface_count]));
        c->interface_count++;
    }
    c->seconds_rest = fem_seconds() - begun;
done:
    return status;
}

// ---- the whole -----------------------------------------------------------------------------------------------------

static fem_status check(const solver_class *c, int fixed_count, const int *fixed, int place_count,
                        const solver_place *places, const solver_class_options *o) {
    int vertices = c->mesh.vertex_count, most = solver_class_most_modes(vertices, fixed_count);
    for (int i = 0; i < fixed_count; i++)
        if (fixed[i] < 0 || fixed[i] >= vertices)
            return fem_fail(FEM_BAD_INPUT, "vertex %d is fixed, expected 0 to %d", fixed[i], vertices - 1);
    for (int i = 0; i < place_count; i++)
        for (int k = 0; k < places[i].count; k++)
            if (places[i].vertices[k] < 0 || places[i].vertices[k] >= vertices)
                return fem_fail(FEM_BAD_INPUT, "place %d has vertex %d, expected 0 to %d", i, places[i].vertices[k],
                                vertices - 1);
    if (o->modes < 0) return fem_fail(FEM_BAD_INPUT, "modes.count is %d, expected >= 0", o->modes);
    if (o->modes > most)
        return fem_fail(FEM_BAD_INPUT,
                        "%d modes were asked for, but there are at most %d (%d vertices, %d of them held)", o->modes,
                        most, vertices, fixed_count);
    return FEM_OK;
}

static fem_status fill(solver_class *c, int place_count, const solver_place *places, const solver_collar *collar,
                       const solver_class_options *o, const solver_class_store *store, const fem_progress *progress) {
    fem_status       status = FEM_OK;
    fem_sparse       K = {0}, M = {0};
    double          *zero = NULL;
    fem_body_options body = fem_body_default_options();
    body.quadrature = o->quadrature;
    FEM_TRY(fem_body_create(&c->body, &c->mesh, &body));
    if (o->modes > 0) {
        fem_hash key = store ? class_key(c, place_count, places, collar, o) : (fem_hash){0};
        zero = fem_calloc(3 * (size_t)c->mesh.vertex_count, sizeof *zero);
        if (!zero) {
            status = fem_fail(FEM_NO_MEMORY, "no memory for %d vertices", c->mesh.vertex_count);
            goto done;
        }
        FEM_TRY(fem_body_matrix(c->body, &K));
        fem_body_evaluate(c->body, zero, NULL, NULL, &K);
        c->cached = store && store->load(store->context, key, c);
        if (!c->cached) {
            FEM_TRY(fem_body_matrix(c->body, &M));
            fem_body_mass(c->body, o->mass, &M);
            FEM_TRY(make_stored(c, &K, &M, place_count, places, collar, o, progress));
            if (store) store->save(store->context, key, c);
        }
    }
    FEM_TRY(finish(c, &K, place_count, places, o));
done:
    fem_sparse_destroy(&K);
    fem_sparse_destroy(&M);
    fem_free(zero);
    return status;
}

fem_status solver_class_create(solver_class **class, const char *name, fem_mesh *mesh, int fixed_count,
                               const int *fixed, int place_count, const solver_place *places,
                               const solver_collar *collar, const solver_class_options *options,
                               const solver_class_store *store, const fem_progress *progress) {
    fem_status    status = FEM_OK;
    solver_class *c = fem_calloc(1, sizeof *c);
    if (!c) return fem_fail(FEM_NO_MEMORY, "no memory for a class");
    c->mesh = *mesh;
    *mesh = (fem_mesh){0};
    c->kind = options->forces;
    c->basis.n = 3 * c->mesh.vertex_count;
    c->name = fem_copy_string(name);
    FEM_TRY(check(c, fixed_count, fixed, place_count, places, options));
    c->fixed = fixed_count > 0 ? fem_calloc(3 * (size_t)c->mesh.vertex_count, 1) : NULL;
    if (!c->name || (fixed_count > 0 && !c->fixed)) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a class");
        goto done;
    }
    for (int i = 0; i < fixed_count; i++) memset(c->fixed + 3 * (size_t)fixed[i], 1, 3);
    FEM_TRY(fill(c, place_count, places, collar, options, store, progress));
    *class = c;
    c = NULL;
done:
    solver_class_destroy(c);
    return status;
}

void solver_class_destroy(solver_class *c) {
    if (!c) return;
    for (int i = 0; i < c->interface_count; i++) domain_interface_destroy(&c->interfaces[i]);
    fem_free(c->interfaces);
    solver_inertia_destroy(&c->inertia);
    modes_warp_destroy(&c->warp);
    cubature_full_destroy(c->full);
    cubature_batch_destroy(c->batch);
    cubature_polynomial_destroy(&c->polynomial);
    modes_basis_destroy(&c->basis);
    fem_body_destroy(c->body);
    fem_mesh_destroy(&c->mesh);
    fem_free(c->K0);
    fem_free(c->fixed);
    fem_free(c->name);
    fem_free(c);
}

solver_tree_class solver_class_in_tree(const solver_class *c) {
    return (solver_tree_class){.name = c->name,
                               .inertia = &c->inertia,
                               .forces = c->forces,
                               .batch = c->batch,
                               .interface_count = c->interface_count,
                               .interfaces = c->interfaces};
}
