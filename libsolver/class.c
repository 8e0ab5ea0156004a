// Makes a class: basis, forces, inertia, interfaces. See class.h.
#include "libsolver/class_internal.h"

#include <string.h>

const char *solver_forces_name(solver_forces_kind kind) {
    static const char *const names[] = {"polynomial", "linear", "full", "warped", "cubature"};
    return names[kind];
}

solver_class_options solver_class_default_options(void) {
    solver_class_options o = {.modes = 20,
                              .forces = SOLVER_FORCES_POLYNOMIAL,
                              .mass = FEM_MASS_CONSISTENT,
                              .quadrature = fem_body_default_options().quadrature,
                              .recipe = modes_default_recipe(MODES_KRYLOV),
                              .wrenches = true,
                              .training = cubature_training_default_options()};
    o.recipe.linear = 0;
    o.recipe.keep = true;
    return o;
}

int solver_class_most_modes(int vertex_count, int fixed_count) {
    int most = 3 * (vertex_count - fixed_count) - (fixed_count > 0 ? 0 : 6);
    return most > 0 ? most : 0;
}

// ---- key -----------------------------------------------------------------------------------------------------------

// Another number makes what is stored something else: when the same options lead to another basis than before.
enum { KEY = 1 };
static fem_hash add_int(fem_hash hash, int value) { return fem_hash_add(hash, &value, sizeof value); }
static fem_hash add_double(fem_hash hash, double value) { return fem_hash_add(hash, &value, sizeof value); }

static fem_hash class_key(const solver_class *c, const fem_mesh *around, int fixed_count, int place_count,
                          const solver_place *places, const solver_class_options *o) {
    const modes_recipe *recipe = &o->recipe;
    const int           numbers[] = {KEY,
                                     o->modes,
                                     o->spare,
                                     (int)o->forces,
                                     (int)o->mass,
                                     o->quadrature,
                                     o->wrenches,
                                     (int)recipe->method,
                                     recipe->linear,
                                     recipe->derivatives,
                                     (int)recipe->kind,
                                     recipe->keep,
                                     (int)recipe->condense,
                                     (int)recipe->metric,
                                     (int)recipe->krylov.seeds,
                                     (int)recipe->krylov.orthogonalise.method};
    fem_hash            hash = fem_hash_add(fem_mesh_hash(&c->mesh), numbers, sizeof numbers);
    hash = fem_hash_add(hash, recipe->modes, sizeof recipe->modes);
    hash = add_double(hash, recipe->energy);
    if (o->forces == SOLVER_FORCES_CUBATURE) hash = cubature_training_hash(hash, &o->training);
    fem_hash wide = around ? fem_mesh_hash(around) : (fem_hash){0};
    hash = fem_hash_add(hash, &wide, sizeof wide);
    hash = fem_hash_add(hash, c->fixed, c->fixed ? 3 * (size_t)c->mesh.vertex_count : 0);
    for (int i = 0; i < place_count; i++) {
        const solver_place *place = &places[i];
        hash = fem_hash_add(hash, place->vertices, (size_t)place->count * sizeof *place->vertices);
        hash = fem_hash_add(hash, place->weights, place->weights ? (size_t)place->count * sizeof(double) : 0);
        hash = fem_hash_add(hash, place->pull, place->pull ? 18 * (size_t)place->count * sizeof(double) : 0);
        hash = add_double(hash, place->mass);
        hash = add_double(hash, place->lever);
        hash = fem_hash_add(hash, place->inertia, sizeof place->inertia);
        hash = add_int(hash, place->carried);
    }
    if (o->carrier) {
        size_t count = (size_t)o->carrier->count;
        hash = fem_hash_add(hash, o->carrier->rows, 3 * (size_t)fixed_count * count * sizeof(double));
        hash = fem_hash_add(hash, o->carrier->frame, 18 * (size_t)fixed_count * sizeof(double));
        hash = fem_hash_add(hash, o->carrier->stiffness, count * count * sizeof(double));
        hash = add_double(add_int(hash, o->carrier->most), o->carrier->tolerance);
    }
    if (o->seeds) hash = add_int(fem_hash_add(hash, &o->seeds->key, sizeof o->seeds->key), o->seeds->count);
    return add_int(hash, place_count);
}

// ---- basis and forces: what is stored ------------------------------------------------------------------------------

static bool nonlinear(solver_forces_kind kind) {
    return kind == SOLVER_FORCES_POLYNOMIAL || kind == SOLVER_FORCES_FULL || kind == SOLVER_FORCES_CUBATURE;
}

// Linear modes among `count`: the six inertia modes and the wrenches first, but room for derivatives.
static int choose_linear(int count, int places) {
    int wanted = 6 + 6 * places, most = (2 * count + 2) / 3;
    if (wanted < (count + 1) / 2) wanted = (count + 1) / 2;
    return wanted < most ? wanted : most;
}

static bool all_held(const solver_class *c, const solver_place *place) {
    for (int i = 0; i < place->count; i++)
        if (!c->fixed || !c->fixed[3 * (size_t)place->vertices[i]]) return false;
    return true;
}

// Places that wrenches can move the piece at.
static int gather_wrenches(const solver_class *c, int place_count, const solver_place *places,
                           modes_interface *wrenches) {
    int count = 0;
    for (int i = 0; i < place_count; i++) {
        const solver_place *place = &places[i];
        if (all_held(c, place)) continue;
        wrenches[count++] = (modes_interface){.count = place->count,
                                              .vertices = place->vertices,
                                              .areas = place->weights,
                                              .mass = place->mass,
                                              .lever = place->lever};
    }
    return count;
}

// J = L L^T: the wrenches of accelerations of unit kinetic energy are F L, so that those count most which lower the
// frequencies most.
static void scale_wrenches(const solver_place *place, double *F, modes_interface *wrench) {
    double L[36], row[6];
    size_t n = 3 * (size_t)place->count;
    memcpy(L, place->inertia, sizeof L);
    if (!(L[0] > 0) || dense_cholesky(6, L) != FEM_OK) return;
    for (size_t i = 0; i < n; i++) {
        for (size_t c = 0; c < 6; c++) {
            row[c] = 0;
            for (size_t k = c; k < 6; k++) row[c] += F[n * k + i] * L[6 * c + k]; // lower, column-major
        }
        for (size_t c = 0; c < 6; c++) F[n * c + i] = row[c];
    }
    wrench->mass = wrench->lever = 1;
}

// The wrenches of interfaces act as their frames feel them. Allocated: 18 numbers per point, interface after interface.
static fem_status spread_wrenches(const solver_class *c, int place_count, const solver_place *places,
                                  modes_interface *wrenches, double **spread) {
    fem_status status = FEM_OK;
    size_t     points = 0, at = 0, most = 0;
    int        count = 0;
    for (int i = 0; i < place_count; i++) {
        points += (size_t)places[i].count;
        if ((size_t)places[i].count > most) most = (size_t)places[i].count;
    }
    double *X = fem_alloc(3 * most, sizeof *X);
    *spread = fem_alloc(18 * points, sizeof **spread);
    if (!X || !*spread) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %zu points of interfaces", points);
        goto done;
    }
    for (int i = 0; i < place_count; i++) {
        const solver_place *place = &places[i];
        if (all_held(c, place)) continue;
        modes_interface *wrench = &wrenches[count++];
        if (!place->child) continue;
        for (size_t k = 0; k < (size_t)place->count; k++)
            memcpy(X + 3 * k, c->mesh.vertices + 3 * (size_t)place->vertices[k], 3 * sizeof *X);
        FEM_TRY(domain_interface_wrenches(place->count, X, place->weights, place->pull, *spread + at));
        wrench->wrenches = *spread + at;
        scale_wrenches(place, *spread + at, wrench);
        at += 18 * (size_t)place->count;
    }
done:
    fem_free(X);
    return status;
}

static fem_status build_basis(solver_class *c, const modes_problem *problem, const fem_body *body, modes_recipe *recipe,
                              modes_inverse *inverse, const fem_progress *progress) {
    modes_recipe_report report = {0};
    fem_status          status = modes_build(problem, body, recipe, inverse, progress, &c->basis, &report);
    if (status == FEM_BAD_INPUT && recipe->method == MODES_KRYLOV && recipe->krylov.seeds == 0) {
        // a small or very symmetric piece, whose own seeds lead nowhere: random fields reach everything
        bool held = c->fixed != NULL;
        recipe->krylov.seeds = MODES_SEED_RANDOM | (held ? MODES_SEED_RIGID : MODES_SEED_QUADRATIC);
        status = modes_build(problem, body, recipe, inverse, progress, &c->basis, &report);
    }
    if (status == FEM_OK && c->fixed && report.rigid > 0)
        status = fem_fail(FEM_BAD_INPUT,
                          "what is fixed leaves %d rigid motions; three vertices that do not lie on a line hold a body",
                          report.rigid);
    return status;
}

static fem_status make_basis(solver_class *c, const modes_problem *problem, const fem_body *body,
                             modes_inverse *inverse, const double *fields, int fixed_count, int place_count,
                             const solver_place *places, const solver_class_options *o, const fem_progress *progress) {
    fem_status       status = FEM_OK;
    modes_recipe     recipe = o->recipe;
    modes_interface *wrenches = fem_alloc((size_t)place_count, sizeof *wrenches);
    double          *spread = NULL;
    if (!wrenches) return fem_fail(FEM_NO_MEMORY, "no memory for %d interfaces", place_count);
    int count = o->wrenches && recipe.method == MODES_KRYLOV ? gather_wrenches(c, place_count, places, wrenches) : 0;
    if (count > 0) FEM_TRY(spread_wrenches(c, place_count, places, wrenches, &spread));
    recipe.count = o->modes;
    if (!nonlinear(o->forces)) recipe.derivatives = 0;
    bool given_linear = recipe.linear > 0;
    if (!given_linear) recipe.linear = choose_linear(o->modes, count);
    if (recipe.linear > o->modes) recipe.linear = o->modes;
    for (int k = 0; k < MODES_MOST_ORDER; k++)
        if (recipe.modes[k] > recipe.linear) recipe.modes[k] = recipe.linear;
    int linear = recipe.derivatives > 0 ? recipe.linear : o->modes;
    int room = solver_class_most_modes(c->mesh.vertex_count, fixed_count) - o->modes;
    recipe.krylov.interface_count = count;
    recipe.krylov.interfaces = wrenches;
    recipe.krylov.interface_seeds = count > 0 && linear > 1 ? linear - (linear < 12 ? linear / 2 : 6) : 0;
    recipe.krylov.norm = MODES_NORM_ENERGY; // what hangs on a domain moves with its interfaces, small as these may be
    if (fields) {
        recipe.given = fields;
        recipe.given_count = o->seeds->count;
        recipe.given_most = (3 * linear + 3) / 4;
        recipe.given_spare = o->spare < room ? o->spare : room;
        recipe.given_first = SEED_FIRST, recipe.given_rest = SEED_REST;
        recipe.given_share = SEED_SHARE;
        recipe.given_need = given_linear ? 0 : SEED_NEED;
    }
    FEM_TRY(build_basis(c, problem, body, &recipe, inverse, progress));
done:
    fem_free(wrenches), fem_free(spread);
    return status;
}

// What is left of a column of n when orthonormal ones (`count` in Q) are taken out becomes the next of them, if it is
// more than a part `least` of it.
static bool take_column(size_t n, int count, double *Q, const double *column, double least) {
    double *left = Q + n * (size_t)count, size = dense_norm((int)n, column);
    memcpy(left, column, n * sizeof *left);
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < count; k++)
            dense_axpy((int)n, -dense_dot((int)n, Q + n * (size_t)k, left), Q + n * (size_t)k, left);
    double rest = dense_norm((int)n, left);
    if (!(rest > least * size)) return false;
    dense_scale((int)n, 1 / rest, left);
    return true;
}

// Of a basis of the piece with its collar, the rows of the piece, which come first. Columns that differ in the collar
// alone would be one coordinate twice, and what moves a free piece as a whole while its collar deforms is no coordinate
// either: without mass, both would have any frequency. So columns that depend on the ones before, or on rigid motions,
// to NARROW are left out. The first `own` columns are modes, and stay before the others.
#define NARROW 1e-4
static fem_status narrow(solver_class *c, int *own) {
    modes_basis basis = {0};
    size_t      n = 3 * (size_t)c->mesh.vertex_count, all = (size_t)c->basis.n;
    int         r = c->basis.r, found = 0, kept = 0, modes = 0;
    double     *Q = fem_alloc(n * (size_t)(r + 7), sizeof *Q), *rigid = fem_calloc(n, sizeof *rigid);
    int        *keep = fem_alloc((size_t)r, sizeof *keep);
    fem_status  status = FEM_OK;
    if (!Q || !rigid || !keep) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d modes", r);
        goto done;
    }
    for (int k = 0; k < 6 && !c->fixed; k++) {
        const double axis[3] = {k % 3 == 0, k % 3 == 1, k % 3 == 2};
        for (size_t v = 0; v < n; v += 3) {
            vec3_cross(rigid + v, axis, c->mesh.vertices + v);
            if (k < 3) memcpy(rigid + v, axis, sizeof axis);
        }
        found += take_column(n, found, Q, rigid, 0);
    }
    for (int l = 0; l < r; l++) {
        if (!take_column(n, found, Q, c->basis.U + all * (size_t)l, NARROW)) continue;
        keep[kept++] = l, found++;
        modes += l < *own;
    }
    if (kept == 0) {
        status = fem_fail(FEM_BAD_INPUT, "its modes do not deform it");
        goto done;
    }
    FEM_TRY(modes_basis_allocate(&basis, (int)n, kept));
    for (int k = 0; k < kept; k++) {
        memcpy(basis.U + n * (size_t)k, c->basis.U + all * (size_t)keep[k], n * sizeof *basis.U);
        basis.omega2[k] = c->basis.omega2[keep[k]];
    }
    modes_basis_destroy(&c->basis);
    c->basis = basis;
    *own = modes;
done:
    fem_free(Q), fem_free(rigid), fem_free(keep);
    return status;
}

// K at rest
static fem_status rest_stiffness(const fem_body *body, int vertex_count, fem_sparse *K) {
    double    *zero = fem_calloc(3 * (size_t)vertex_count, sizeof *zero);
    fem_status status =
        zero ? fem_body_matrix(body, K) : fem_fail(FEM_NO_MEMORY, "no memory for %d vertices", vertex_count);
    if (status == FEM_OK) fem_body_evaluate(body, zero, NULL, NULL, K);
    fem_free(zero);
    return status;
}

// Of the piece alone: the collar braces it, but is none of its elements.
static fem_status train_rule(solver_class *c, const solver_class_options *o, const fem_progress *progress) {
    fem_status                status = FEM_OK;
    cubature_training_options options = o->training;
    fem_sparse                K = {0}, M = {0};
    double                   *rayleigh = fem_alloc((size_t)c->basis.r, sizeof *rayleigh);
    options.checkpoint = NULL, options.given_count = 0;
    if (!rayleigh) return fem_fail(FEM_NO_MEMORY, "no memory for %d modes", c->basis.r);
    if (!options.loaded) {
        FEM_TRY(rest_stiffness(c->body, c->mesh.vertex_count, &K));
        FEM_TRY(fem_body_matrix(c->body, &M));
        fem_body_mass(c->body, o->mass, &M);
        FEM_TRY(cubature_rayleigh(&c->basis, &K, &M, rayleigh));
    }
    FEM_TRY(cubature_train(&c->rule, c->body, c->basis.r, c->basis.U, rayleigh, &options, progress, &c->training));
done:
    fem_sparse_destroy(&K);
    fem_sparse_destroy(&M);
    fem_free(rayleigh);
    return status;
}

// mesh, body, K: of the piece, or of the piece with its collar
static fem_status make_stored(solver_class *c, const fem_mesh *mesh, const fem_body *body, const fem_sparse *K,
                              int fixed_count, const int *fixed, int place_count, const solver_place *places,
                              const solver_class_options *o, const fem_progress *progress) {
    fem_status     status = FEM_OK;
    fem_sparse     M = {0};
    modes_inverse *inverse = NULL;
    double        *fields = NULL;
    int            seeds = o->seeds && o->recipe.method == MODES_KRYLOV ? o->seeds->count : 0;
    modes_problem  problem = {.mesh = mesh, .K = K, .M = &M, .fixed = c->fixed};
    double         begun = fem_seconds();
    FEM_TRY(fem_body_matrix(body, &M));
    fem_body_mass(body, o->mass, &M);
    if (seeds > 0) {
        c->whole = fem_calloc(2 * (size_t)seeds, sizeof *c->whole);
        if (!c->whole) {
            status = fem_fail(FEM_NO_MEMORY, "no memory for %d fields", seeds);
            goto done;
        }
        FEM_TRY(o->seeds->find(o->seeds->context, &fields, c->whole));
        if (!fields) seeds = 0;
    }
    if (o->carrier) { // one factor for both; what is wrong with a body, modes_build tells better
        modes_inverse_options options = o->recipe.inverse;
        if (o->recipe.method == MODES_LANCZOS) options.method = MODES_INVERSE_FACTOR;
        status = modes_inverse_create_with(&inverse, &problem, &options);
        if (status == FEM_NO_MEMORY) goto done;
        status = FEM_OK;
    }
    int own = 0; // columns of the polynomial
    FEM_TRY(make_basis(c, &problem, body, inverse, fields, fixed_count, place_count, places, o, progress));
    own = c->basis.r;
    if (o->carrier && inverse)
        FEM_TRY(class_add_carried(c, &problem, inverse, fixed_count, fixed, place_count, places, o->carrier, seeds,
                                  fields, c->whole));
    if (seeds > 0) FEM_TRY(class_measure_seeds(c, K, seeds, fields));
    if (mesh != &c->mesh) FEM_TRY(narrow(c, &own));
    c->seconds_modes = fem_seconds() - begun;
    begun = fem_seconds();
    if (o->forces == SOLVER_FORCES_POLYNOMIAL) {
        cubature_polynomial_options options = cubature_polynomial_default_options();
        FEM_TRY(cubature_polynomial_create(&c->polynomial, c->body, own, c->basis.U, &options, progress));
    }
    if (o->forces == SOLVER_FORCES_CUBATURE) FEM_TRY(train_rule(c, o, progress));
    c->seconds_forces = fem_seconds() - begun;
done:
    modes_inverse_destroy(inverse);
    fem_free(fields);
    fem_sparse_destroy(&M);
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
    for (int i = 0; i < c->bracing.r; i++)
        for (int j = 0; j < c->bracing.r; j++) {
            int low = i < j ? i : j, high = i < j ? j : i;
            c->K0[i * r + j] +=
                (i == j ? 2 : 1) * c->bracing.coefficients[cubature_polynomial_index(-1, -1, low, high)];
        }
    fem_free(product);
    return FEM_OK;
}

// The forces of the elements and those of the collar.
static void evaluate_braced(const void *model, const double *q, double *energy, double *f, double *K, double *work) {
    const solver_class *c = model;
    cubature_forces     own = c->unbraced, collar = cubature_polynomial_forces(&c->bracing);
    int                 r = collar.r; // without what is carried
    double             *more = work + own.work, *sum = more + collar.work, more_energy = 0;
    own.evaluate(own.model, q, energy, f, K, work);
    collar.evaluate(collar.model, q, energy ? &more_energy : NULL, f ? sum : NULL, K ? sum + r : NULL, more);
    if (energy) *energy += more_energy;
    if (f) dense_axpy(r, 1, sum, f);
    for (int l = 0; K && l < r; l++) dense_axpy(r, 1, sum + r + l * r, K + (size_t)l * (size_t)own.r);
}

static void brace(solver_class *c, cubature_forces own) {
    size_t r = (size_t)c->basis.r;
    c->forces = c->unbraced = own;
    if (c->bracing.r == 0) return;
    c->forces.evaluate = evaluate_braced, c->forces.model = c, c->forces.product = NULL;
    c->forces.work += cubature_polynomial_forces(&c->bracing).work + r * (r + 1);
}

// Of a rule that was stored there are elements and weights only.
static fem_status complete_rule(solver_class *c) {
    cubature_rule whole = {0};
    fem_status status = cubature_rule_create(&whole, c->body, c->basis.r, c->basis.U, c->rule.count, c->rule.elements,
                                             c->rule.modal, c->rule.weights);
    if (status != FEM_OK) return status;
    cubature_rule_destroy(&c->rule);
    c->rule = whole;
    return FEM_OK;
}

static fem_status make_forces(solver_class *c, const fem_sparse *K, bool batch) {
    fem_status status = FEM_OK;
    switch (c->kind) {
    case SOLVER_FORCES_POLYNOMIAL:
        for (size_t i = 0; c->bracing.r > 0 && i < c->polynomial.count; i++)
            c->polynomial.coefficients[i] += c->bracing.coefficients[i];
        c->forces = cubature_polynomial_forces(&c->polynomial);
        if (c->carried > 0)
            FEM_TRY(class_couple(c, K));
        else if (batch)
            FEM_TRY(cubature_batch_create(&c->batch, &c->polynomial));
        break;
    case SOLVER_FORCES_FULL:
        FEM_TRY(cubature_full_create(&c->full, c->body, c->basis.r, c->basis.U));
        brace(c, cubature_full_forces(c->full));
        break;
    case SOLVER_FORCES_CUBATURE:
        if (!c->rule.B) FEM_TRY(complete_rule(c));
        brace(c, cubature_rule_forces(&c->rule));
        if (batch && c->bracing.r == 0 && c->carried == 0) FEM_TRY(cubature_batch_create_rule(&c->batch, &c->rule));
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
    if (status == FEM_OK && place->pull) {
        status = domain_interface_set_pull(interface, place->count, points, rows, place->pull);
        if (status != FEM_OK) domain_interface_destroy(interface);
    }
    fem_free(points);
    fem_free(rows);
    return status;
}

static fem_status finish(solver_class *c, const fem_sparse *K, const fem_sparse *Kw, int fixed_count, const int *fixed,
                         int place_count, const solver_place *places, const solver_class_options *o) {
    fem_status status = FEM_OK;
    double     begun = fem_seconds();
    bool       braced = false;
    for (int i = 0; i < place_count; i++) braced = braced || (places[i].child && !places[i].carried);
    if (c->basis.r > 0 && o->carrier) FEM_TRY(class_find_patterns(c, K, fixed_count, fixed));
    if (Kw && c->basis.r > 0 && braced) {
        FEM_TRY(cubature_polynomial_allocate(&c->bracing, c->basis.r - c->carried, 1, 1));
        FEM_TRY(class_bracing(c, place_count, places, K, Kw, c->bracing.coefficients));
    }
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

// What making it takes, with what its seeds take.
static fem_status find_need(const solver_class *c, const fem_mesh *mesh, const fem_sparse *K,
                            const solver_class_options *o, double *bytes, double *kept) {
    modes_recipe recipe = o->recipe;
    solver_need  need = {.mesh = mesh, .K = K, .fixed = c->fixed, .recipe = &recipe, .modes = o->modes};
    if (!nonlinear(o->forces)) recipe.derivatives = 0;
    need.polynomial = o->forces == SOLVER_FORCES_POLYNOMIAL;
    need.direct = recipe.method == MODES_LANCZOS || o->carrier;
    if (o->carrier) need.more = 8 * 3.0 * mesh->vertex_count * (o->carrier->count + 2 * o->carrier->most);
    if (mesh != &c->mesh) need.more += 76.0 * K->blocks; // of the piece itself
    if (o->seeds) need.more += o->seeds->bytes(o->seeds->context);
    return solver_need_bytes(&need, bytes, kept);
}

static fem_status fill(solver_class *c, const fem_mesh *around, int fixed_count, const int *fixed, int place_count,
                       const solver_place *places, const solver_class_options *o, const solver_class_store *store,
                       const fem_progress *progress) {
    fem_status       status = FEM_OK;
    fem_sparse       K = {0}, Kw = {0};
    fem_body        *wide = NULL;
    fem_body_options body = fem_body_default_options();
    double           taken = 0, kept = 0;
    body.quadrature = o->quadrature;
    solver_room_enter(o->room);
    FEM_TRY(fem_body_create(&c->body, &c->mesh, &body));
    if (o->modes > 0) {
        fem_hash key = store ? class_key(c, around, fixed_count, place_count, places, o) : (fem_hash){0};
        FEM_TRY(rest_stiffness(c->body, c->mesh.vertex_count, &K));
        if (around) {
            FEM_TRY(fem_body_create(&wide, around, &body));
            FEM_TRY(rest_stiffness(wide, around->vertex_count, &Kw));
        }
        c->cached = store && store->load(store->context, key, c);
        if (!c->cached && o->room) {
            double bytes;
            FEM_TRY(find_need(c, around ? around : &c->mesh, around ? &Kw : &K, o, &bytes, &kept));
            FEM_TRY(solver_room_take(o->room, bytes));
            taken = bytes;
        }
        if (!c->cached) {
            FEM_TRY(make_stored(c, around ? around : &c->mesh, around ? wide : c->body, around ? &Kw : &K, fixed_count,
                                fixed, place_count, places, o, progress));
            if (store) store->save(store->context, key, c);
        }
    }
    FEM_TRY(finish(c, &K, around ? &Kw : NULL, fixed_count, fixed, place_count, places, o));
done:
    fem_body_destroy(wide);
    fem_sparse_destroy(&K);
    fem_sparse_destroy(&Kw);
    solver_room_leave(o->room, taken, kept);
    return status;
}

fem_status solver_class_create(solver_class **class, const char *name, fem_mesh *mesh, const fem_mesh *around,
                               int fixed_count, const int *fixed, int place_count, const solver_place *places,
                               const solver_class_options *options, const solver_class_store *store,
                               const fem_progress *progress) {
    fem_status    status = FEM_OK;
    solver_class *c = fem_calloc(1, sizeof *c);
    if (!c) return fem_fail(FEM_NO_MEMORY, "no memory for a class");
    c->mesh = *mesh;
    *mesh = (fem_mesh){0};
    if (around && around->element_count == 0) around = NULL;
    c->kind = options->forces;
    c->basis.n = 3 * c->mesh.vertex_count;
    c->name = fem_copy_string(name);
    FEM_TRY(check(c, fixed_count, fixed, place_count, places, options));
    // the collar, whose vertices come behind, is free
    c->fixed = fixed_count > 0 ? fem_calloc(3 * (size_t)(around ? around : &c->mesh)->vertex_count, 1) : NULL;
    if (!c->name || (fixed_count > 0 && !c->fixed)) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a class");
        goto done;
    }
    for (int i = 0; i < fixed_count; i++) memset(c->fixed + 3 * (size_t)fixed[i], 1, 3);
    FEM_TRY(fill(c, around, fixed_count, fixed, place_count, places, options, store, progress));
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
    cubature_rule_destroy(&c->rule);
    cubature_batch_destroy(c->batch);
    cubature_polynomial_destroy(&c->polynomial);
    modes_basis_destroy(&c->basis);
    cubature_polynomial_destroy(&c->bracing);
    fem_body_destroy(c->body);
    fem_mesh_destroy(&c->mesh);
    fem_free(c->K0);
    fem_free(c->whole);
    fem_free(c->patterns);
    fem_free(c->coupling);
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
                               .interfaces = c->interfaces,
                               .carried = c->carried};
}
