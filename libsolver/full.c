// The full-space solver's life: creation, state, loads, energies, reactions. Newton is in newton.c, what is solved with
// it in static.c and step.c.
#include "libsolver/internal.h"

#include <limits.h>

// ---- what the supports leave free --------------------------------------------------------------------------------

// A connected piece of the body and the Gram matrix of its rigid fields over the fixed degrees of freedom.
typedef struct piece {
    int    members;   // vertices
    double centre[3]; // mean of the vertices
    double size;      // largest distance from the centre
    double gram[36];
} piece;

// Rigid fields of a piece at x, degree of freedom `axis`: translations, then rotations e_k x (x - centre) / size.
static void rigid_row(const piece *p, const double x[3], int axis, double row[6]) {
    double y[3];
    vec3_sub(y, x, p->centre);
    for (int k = 0; k < 6; k++) row[k] = k == axis;
    int next = (axis + 1) % 3, last = (axis + 2) % 3;
    row[3 + next] = y[last] / p->size; // (e_k x y)_axis
    row[3 + last] = -y[next] / p->size;
}

// component: per vertex, -1 = none
static void gather_pieces(const solver_full *solver, const int *component, piece *pieces) {
    const double *vertices = solver->mesh->vertices;
    int           count = solver->mesh->vertex_count;
    for (int v = 0; v < count; v++) {
        if (component[v] < 0) continue;
        pieces[component[v]].members++;
        vec3_axpy(pieces[component[v]].centre, 1, vertices + 3 * (size_t)v);
    }
    for (int k = 0; k < solver->pieces; k++)
        for (int axis = 0; axis < 3; axis++) pieces[k].centre[axis] /= pieces[k].members;
    for (int v = 0; v < count; v++) {
        if (component[v] < 0) continue;
        piece *p = pieces + component[v];
        p->size = fmax(p->size, vec3_distance(vertices + 3 * (size_t)v, p->centre));
    }
    for (int i = 0; i < solver->n; i++) {
        if (component[i / 3] < 0 || !solver->fixed[i]) continue;
        piece *p = pieces + component[i / 3];
        double row[6];
        rigid_row(p, vertices + 3 * (size_t)(i / 3), i % 3, row);
        for (int a = 0; a < 36; a++) p->gram[a] += row[a / 6] * row[a % 6];
    }
}

// Marks vertices without elements as fixed, counts the pieces of the body and the rigid motions that are free: six for
// each piece less the rank of its rigid fields on the fixed degrees of freedom.
static fem_status inspect_supports(solver_full *solver) {
    fem_status status = FEM_OK;
    int        vertices = solver->mesh->vertex_count;
    piece     *pieces = NULL;
    int       *component = fem_alloc((size_t)vertices, sizeof *component);
    if (!component) {
        status = fem_fail(FEM_NO_MEMORY, "solver: %d vertices", vertices);
        goto done;
    }
    FEM_TRY(fem_mesh_components(solver->mesh, component, &solver->pieces));
    for (int v = 0; v < vertices; v++) solver->used[v] = component[v] >= 0;
    for (int i = 0; i < solver->n; i++) {
        solver->fixed[i] = solver->fixed[i] || !solver->used[i / 3];
        solver->free_count += !solver->fixed[i];
    }
    pieces = fem_calloc((size_t)solver->pieces, sizeof *pieces);
    if (!pieces) {
        status = fem_fail(FEM_NO_MEMORY, "solver: %d separate pieces", solver->pieces);
        goto done;
    }
    gather_pieces(solver, component, pieces);
    for (int k = 0; k < solver->pieces; k++) {
        double eigenvalues[6];
        FEM_TRY(dense_symmetric_eigen(6, pieces[k].gram, eigenvalues));
        for (int a = 0; a < 6; a++) solver->rigid_free += !(eigenvalues[a] > 1e-12 * eigenvalues[5]);
    }
done:
    fem_free(component);
    fem_free(pieces);
    return status;
}

// ---- life --------------------------------------------------------------------------------------------------------

static void measure_mesh(solver_full *solver) {
    const fem_mesh *mesh = solver->mesh;
    double          volume = 0, low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (int e = 0; e < mesh->element_count; e++) volume += fem_element_volume(mesh, e);
    solver->cell = cbrt(volume / mesh->element_count);
    for (int v = 0; v < mesh->vertex_count; v++)
        for (int k = 0; k < 3; k++) {
            if (!solver->used[v]) continue;
            low[k] = fmin(low[k], mesh->vertices[3 * (size_t)v + (size_t)k]);
            high[k] = fmax(high[k], mesh->vertices[3 * (size_t)v + (size_t)k]);
        }
    solver->extent = vec3_distance(low, high);
}

static bool only_linear_materials(const fem_mesh *mesh) {
    for (int e = 0; e < mesh->element_count; e++)
        if (mesh->materials[mesh->regions[mesh->region[e]].material].kind != FEM_LINEAR) return false;
    return true;
}

// Diagonal of A into d; returns its 2-norm
static double diagonal(const fem_sparse *A, double *d) {
    for (int v = 0; v < A->n; v++)
        for (int k = 0; k < 3; k++)
            d[3 * (size_t)v + (size_t)k] = A->value[9 * (size_t)A->row_start[v] + 4 * (size_t)k];
    return dense_norm(3 * A->n, d);
}

// Vectors of the solver, carved from one block; the last one is followed by those of the linear system.
static fem_status carve_vectors(solver_full *solver) {
    double **vectors[] = {
        &solver->state.u,
        &solver->state.v,
        &solver->state.a,
        &solver->load,
        &solver->prescribed,
        &solver->external,
        &solver->u,
        &solver->trial,
        &solver->step,
        &solver->force,
        &solver->residual,
        &solver->trial_residual,
        &solver->velocity,
        &solver->rate,
        &solver->mass_force,
        &solver->damping_force,
        &solver->rate_start,
        &solver->velocity_start,
        &solver->acceleration_start,
        &solver->mass_start,
        &solver->damping_start,
        &solver->first,
        &solver->rest_diagonal,
    };
    size_t     count = sizeof vectors / sizeof *vectors, n = (size_t)solver->n;
    fem_status status =
        fem_scratch_create(&solver->scratch, (count + SOLVER_SYSTEM_VECTORS) * FEM_SCRATCH_BYTES(n, sizeof(double)));
    if (status != FEM_OK) return status;
    for (size_t k = 0; k < count; k++) {
        *vectors[k] = fem_scratch_take(&solver->scratch, n, sizeof(double));
        for (size_t i = 0; i < n; i++) (*vectors[k])[i] = 0;
    }
    return FEM_OK;
}

static fem_status make_matrices(solver_full *solver) {
    fem_status            status = FEM_OK;
    const solver_options *o = &solver->options;
    FEM_TRY(fem_body_matrix(solver->body, &solver->M));
    FEM_TRY(fem_body_matrix(solver->body, &solver->T));
    fem_body_mass(solver->body, o->mass, &solver->M);
    solver->mass_norm = diagonal(&solver->M, solver->rest_diagonal);
    fem_body_evaluate(solver->body, solver->state.u, NULL, NULL, &solver->T); // u = 0 now
    solver->rest_norm = diagonal(&solver->T, solver->rest_diagonal);
    if (o->damping_stiffness > 0 && o->damping_local) FEM_TRY(fem_body_matrix(solver->body, &solver->K));
    if (o->damping_stiffness > 0 && !o->damping_local) FEM_TRY(fem_sparse_copy(&solver->K0, &solver->T));
    double *work = fem_scratch_take(&solver->scratch, SOLVER_SYSTEM_VECTORS * (size_t)solver->n, sizeof *work);
    FEM_TRY(solver_system_create(&solver->system, &solver->T, solver->fixed, o, work));
done:
    return status;
}

fem_status solver_full_create(solver_full **result, const fem_body *body, const unsigned char *fixed,
                              const solver_options *options) {
    fem_status   status = FEM_OK;
    solver_full *solver = NULL;
    FEM_TRY(solver_check_options(options));
    const fem_mesh *mesh = fem_body_mesh(body);
    if (mesh->vertex_count > INT_MAX / 3) {
        status = fem_fail(FEM_BAD_INPUT, "solver: %d vertices are more than can be numbered", mesh->vertex_count);
        goto done;
    }
    solver = fem_calloc(1, sizeof *solver);
    if (solver) {
        solver->fixed = fem_calloc(3 * (size_t)mesh->vertex_count, 1);
        solver->used = fem_calloc((size_t)mesh->vertex_count, 1);
    }
    if (!solver || !solver->fixed || !solver->used) {
        status = fem_fail(FEM_NO_MEMORY, "solver: %d vertices", mesh->vertex_count);
        goto done;
    }
    solver->body = body;
    solver->mesh = mesh;
    solver->options = *options;
    solver->n = 3 * mesh->vertex_count;
    for (int i = 0; i < solver->n && fixed; i++) solver->fixed[i] = fixed[i] != 0;
    solver->linear = only_linear_materials(mesh);
    // K(u) is K(0): local damping is constant damping
    if (solver->linear) solver->options.damping_local = false;
    FEM_TRY(inspect_supports(solver));
    measure_mesh(solver);
    FEM_TRY(carve_vectors(solver));
    FEM_TRY(make_matrices(solver));
    *result = solver;
    solver = NULL;
done:
    solver_full_destroy(solver);
    return status;
}

void solver_full_destroy(solver_full *solver) {
    if (!solver) return;
    solver_system_destroy(&solver->system);
    fem_sparse_destroy(&solver->M);
    fem_sparse_destroy(&solver->T);
    fem_sparse_destroy(&solver->K0);
    fem_sparse_destroy(&solver->K);
    fem_scratch_destroy(&solver->scratch);
    fem_free(solver->fixed);
    fem_free(solver->used);
    fem_free(solver);
}

// ---- state and loads ---------------------------------------------------------------------------------------------

const solver_state *solver_full_state(const solver_full *solver) { return &solver->state; }

static bool all_finite(int n, const double *x) {
    for (int i = 0; i < n && x; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

fem_status solver_full_set_state(solver_full *solver, double time, const double *u, const double *v) {
    if (!isfinite(time) || !all_finite(solver->n, u) || !all_finite(solver->n, v))
        return fem_fail(FEM_BAD_INPUT, "solver: the state to start from is not finite");
    solver->state.time = time;
    for (int i = 0; i < solver->n; i++) {
        solver->state.u[i] = u ? u[i] : 0;
        solver->state.v[i] = v ? v[i] : 0;
        solver->state.a[i] = 0;
        solver->prescribed[i] = solver->state.u[i];
    }
    solver->acceleration_known = false;
    return FEM_OK;
}

void solver_full_set_load(solver_full *solver, const double *force) { solver_copy(solver->n, force, solver->load); }

void solver_full_prescribe(solver_full *solver, const double *displacement) {
    for (int i = 0; i < solver->n; i++)
        if (solver->fixed[i] && solver->used[i / 3]) solver->prescribed[i] = displacement[i];
}

fem_status solver_check_loads(const solver_full *solver) {
    int base = solver->mesh->file_base;
    for (int i = 0; i < solver->n; i++) {
        if (!isfinite(solver->load[i]))
            return fem_fail(FEM_BAD_INPUT, "the load at vertex %d is not finite", i / 3 + base);
        if (!isfinite(solver->prescribed[i]))
            return fem_fail(FEM_BAD_INPUT, "the prescribed displacement of vertex %d is not finite", i / 3 + base);
        if (solver->load[i] != 0 && !solver->used[i / 3])
            return fem_fail(FEM_BAD_INPUT, "vertex %d carries a load but belongs to no element", i / 3 + base);
    }
    return FEM_OK;
}

// ---- what can be read --------------------------------------------------------------------------------------------

void solver_full_energies(const solver_full *solver, solver_energies *energies) {
    int                 n = solver->n;
    const solver_state *s = &solver->state;
    fem_body_evaluate(solver->body, s->u, &energies->strain, NULL, NULL);
    fem_sparse_multiply(&solver->M, 1, s->v, solver->mass_force);
    energies->kinetic = dense_dot(n, s->v, solver->mass_force) / 2;
    energies->load = -dense_dot(n, solver->load, s->u);
}

void solver_full_reactions(const solver_full *solver, double *reaction) {
    const solver_options *o = &solver->options;
    const solver_state   *s = &solver->state;
    int                   n = solver->n;
    bool                  local = o->damping_stiffness > 0 && o->damping_local;
    fem_sparse            K = solver->K; // empty unless damping is local; shares its memory
    fem_body_evaluate(solver->body, s->u, NULL, solver->force, local ? &K : NULL);
    for (int i = 0; i < n; i++) solver->rate[i] = s->a[i] + o->damping_mass * s->v[i];
    fem_sparse_multiply(&solver->M, 1, solver->rate, solver->mass_force);
    if (o->damping_stiffness > 0) fem_sparse_multiply(local ? &K : &solver->K0, 1, s->v, solver->damping_force);
    for (int i = 0; i < n; i++) {
        double damping = o->damping_stiffness > 0 ? o->damping_stiffness * solver->damping_force[i] : 0;
        bool   support = solver->fixed[i] && solver->used[i / 3];
        reaction[i] = support ? solver->mass_force[i] + damping + solver->force[i] - solver->load[i] : 0;
    }
}

solver_report solver_full_report(const solver_full *solver) { return solver->report; }
