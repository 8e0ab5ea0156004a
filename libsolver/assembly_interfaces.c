// Interfaces of an assembly: the collars that brace them, and how children pull on them.
//
// A child follows how its parent deforms the interface, in a few shapes (class_carried.c); the collar then serves only
// to make the parent's modes. One that does not follow, being rigid or because it is asked for, is held at its
// interface as if that were rigid, and moves with its frame. In the whole body the interface
// deforms, and the child with it. Let the child, held there, carry loads whose resultants are the six unit wrenches:
// the forces on the interface are G. A deformation w of the interface moves the loads by their work: by reciprocity
// G^T w. So with a frame that moves by G^T u, and a parent that is braced by the child's stiffness against deformations
// of the interface (the collar), the loads are carried as in the whole body: static condensation, exact for these
// loads. They are the inertia of the child and all that hangs on it when they move rigidly.
#include "libsolver/assembly_internal.h"

#include <math.h>
#include <string.h>

// ---- collars -------------------------------------------------------------------------------------------------------

typedef struct interface_tasks {
    assembly_work *w;
    int           *start, *around; // elements around a vertex
    fem_status    *status;         // per domain
} interface_tasks;

static void collar_task(void *context, int domain, int worker) {
    interface_tasks *t = context;
    assembly_work   *w = t->w;
    (void)worker;
    if (w->parts[domain].child_count == 0) return;
    t->status[domain] = domain_part_surround(&w->around[domain], &w->around_vertices[domain], &w->parts[domain],
                                             w->mesh, w->tree, t->start, t->around, w->options->collar);
}

// ---- pulls ---------------------------------------------------------------------------------------------------------

// A X = B for 6 x 6, by elimination with pivots of rows; B becomes X. Columns of A are of one size. False when A is
// singular or nearly so.
static bool solve_six(double A[6][6], double B[6][6]) {
    double largest = 0;
    for (int i = 0; i < 36; i++) largest = fmax(largest, fabs(A[i / 6][i % 6]));
    for (int k = 0; k < 6; k++) {
        int pivot = k;
        for (int i = k + 1; i < 6; i++)
            if (fabs(A[i][k]) > fabs(A[pivot][k])) pivot = i;
        if (!(fabs(A[pivot][k]) > 1e-7 * largest)) return false;
        for (int j = 0; j < 6; j++) {
            double a = A[k][j], b = B[k][j];
            A[k][j] = A[pivot][j], B[k][j] = B[pivot][j];
            A[pivot][j] = a, B[pivot][j] = b;
        }
        for (int i = 0; i < 6; i++) {
            if (i == k) continue;
            double factor = A[i][k] / A[k][k];
            for (int j = 0; j < 6; j++) A[i][j] -= factor * A[k][j], B[i][j] -= factor * B[k][j];
        }
    }
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) B[i][j] /= A[i][i];
    return true;
}

// The displacement of point d (from the centre of the motion) by rigid motion c: three translations, three turns.
static void rigid_motion(int c, const double d[3], double u[3]) {
    double axis[3] = {c % 3 == 0, c % 3 == 1, c % 3 == 2};
    if (c < 3)
        memcpy(u, axis, sizeof axis);
    else
        vec3_cross(u, axis, d);
}

// Wrench about the origin of `child` that its subtree needs to accelerate with rigid motion c about x.
static void inertia_wrench(const assembly_work *w, int child, int c, const double x[3], double wrench[6]) {
    const double *o = w->a->origin[child], *S = w->second[child];
    double        m = w->mass[child], s[3], Z[9], d[3], v[3], axis[3] = {0}, t[3];
    for (int k = 0; k < 3; k++) s[k] = w->moment[child][k] - m * o[k];
    for (int k = 0; k < 9; k++) // about o
        Z[k] = S[k] - o[k / 3] * w->moment[child][k % 3] - w->moment[child][k / 3] * o[k % 3] + m * o[k / 3] * o[k % 3];
    vec3_sub(d, o, x);
    rigid_motion(c, d, v);
    if (c >= 3) axis[c - 3] = 1;
    vec3_cross(t, axis, s);
    for (int k = 0; k < 3; k++) wrench[k] = m * v[k] + t[k];
    vec3_cross(t, s, v);
    for (int k = 0; k < 3; k++) {
        wrench[3 + k] = t[k] + (Z[0] + Z[4] + Z[8]) * axis[k];
        for (int j = 0; j < 3; j++) wrench[3 + k] -= Z[3 * k + j] * axis[j];
    }
}

void assembly_inertia(const assembly_work *w, int domain, double J[36]) {
    for (int c = 0; c < 6; c++) inertia_wrench(w, domain, c, w->a->origin[domain], J + 6 * c);
}

// f += what the children of a domain do to it when all accelerates with the six rigid motions about x.
static fem_status add_children(const assembly_work *w, int domain, const double x[3], size_t n, double *f) {
    fem_status         status = FEM_OK;
    const domain_part *part = &w->parts[domain];
    double            *points = NULL, *forces = NULL;
    for (int i = 0; i < part->child_count; i++) {
        int        from = part->child_points.start[i];
        size_t     count = (size_t)(part->child_points.start[i + 1] - from);
        const int *vertices = part->child_points.vertices + from;
        double     wrench[6];
        fem_free(points), fem_free(forces);
        points = fem_alloc(3 * count, sizeof *points), forces = fem_alloc(18 * count, sizeof *forces);
        if (!points || !forces) {
            status = fem_fail(FEM_NO_MEMORY, "no memory for an interface of %zu points", count);
            goto done;
        }
        for (size_t k = 0; k < count; k++)
            memcpy(points + 3 * k, part->mesh.vertices + 3 * (size_t)vertices[k], 3 * sizeof *points);
        FEM_TRY(domain_interface_wrenches((int)count, points, part->child_points.weights + from, NULL, forces));
        for (int c = 0; c < 6; c++) {
            inertia_wrench(w, part->children[i], c, x, wrench);
            for (size_t k = 0; k < count; k++)
                for (size_t p = 0; p < 6; p++)
                    vec3_axpy(f + (size_t)c * n + 3 * (size_t)vertices[k], wrench[p], forces + 3 * (count * p + k));
        }
    }
done:
    fem_free(points), fem_free(forces);
    return status;
}

// From the forces g on the interface (columns of n) to G, whose resultants are unit wrenches. `size` makes turns and
// translations alike.
static bool normalise(const domain_part *part, const double x[3], double size, size_t n, const double *g, double *G) {
    double A[6][6] = {{0}}, B[6][6] = {{0}};
    size_t count = (size_t)part->interface_count;
    for (int i = 0; i < 6; i++) B[i][i] = 1;
    for (size_t k = 0; k < count; k++) {
        size_t v = 3 * (size_t)part->interface[k];
        double d[3], u[3];
        vec3_sub(d, part->mesh.vertices + v, x);
        for (int i = 0; i < 6; i++)
            for (size_t j = 0; j < 6; j++) {
                rigid_motion(i, d, u);
                A[i][j] += vec3_dot(u, g + j * n + v) * (i < 3 ? size : 1) * (j < 3 ? size : 1);
            }
    }
    if (!solve_six(A, B)) return false; // B = A^-1 in the scaled units
    memset(G, 0, 18 * count * sizeof *G);
    for (size_t c = 0; c < 6; c++)
        for (size_t j = 0; j < 6; j++)
            for (size_t k = 0; k < count; k++)
                vec3_axpy(G + 3 * (count * c + k), B[j][c] * (j < 3 ? size : 1) * (c < 3 ? size : 1),
                          g + j * n + 3 * (size_t)part->interface[k]);
    return true;
}

static double interface_radius(const domain_part *part, const double x[3]) {
    double sum = 0, total = 0;
    for (int i = 0; i < part->interface_count; i++) {
        double d = vec3_distance(x, part->mesh.vertices + 3 * (size_t)part->interface[i]);
        sum += part->interface_weights[i] * d * d, total += part->interface_weights[i];
    }
    return sqrt(sum / total);
}

// G of a domain, or none where its loads do not reach all six wrenches (a sliver of a few elements).
static fem_status find_pull(assembly_work *w, int domain) {
    fem_status         status = FEM_OK;
    const domain_part *part = &w->parts[domain];
    const fem_mesh    *mesh = w->around[domain].element_count > 0 ? &w->around[domain] : &part->mesh;
    const double      *x = w->a->origin[domain];
    size_t             n = 3 * (size_t)mesh->vertex_count;
    if (part->interface_count == mesh->vertex_count) return FEM_OK; // nothing of it is free to carry loads
    fem_body        *body = NULL;
    fem_factor      *factor = NULL;
    fem_sparse       A = {0};
    fem_body_options options = fem_body_default_options();
    double          *f = fem_calloc(6 * n, sizeof *f), *u = fem_calloc(6 * n, sizeof *u);
    double          *G = fem_alloc(18 * (size_t)part->interface_count, sizeof *G);
    unsigned char   *fixed = fem_calloc(n, 1);
    options.quadrature = w->options->class.quadrature;
    if (!f || !u || !G || !fixed) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %zu degrees of freedom", n);
        goto done;
    }
    for (int i = 0; i < part->interface_count; i++) memset(fixed + 3 * (size_t)part->interface[i], 1, 3);
    FEM_TRY(fem_body_create(&body, mesh, &options));
    FEM_TRY(fem_body_matrix(body, &A));
    fem_body_mass(body, w->options->class.mass, &A);
    for (size_t v = 0; v < (size_t)part->mesh.vertex_count; v++) { // the collar is left behind
        double d[3];
        vec3_sub(d, mesh->vertices + 3 * v, x);
        for (size_t c = 0; c < 6; c++) rigid_motion((int)c, d, u + c * n + 3 * v);
    }
    fem_sparse_multiply(&A, 6, u, f);
    FEM_TRY(add_children(w, domain, x, n, f));
    memset(u, 0, 6 * n * sizeof *u);
    fem_sparse_zero(&A);
    fem_body_evaluate(body, u, NULL, NULL, &A);
    FEM_TRY(fem_factor_create(&factor, &A, fixed));
    if (fem_factor_factorise(factor, &A) == FEM_OK) {
        FEM_TRY(fem_factor_solve(factor, 6, f, u));
        fem_sparse_multiply(&A, 6, u, f);
        if (normalise(part, x, interface_radius(part, x), n, f, G)) w->pull[domain] = G, G = NULL;
    }
done:
    fem_factor_destroy(factor);
    fem_sparse_destroy(&A);
    fem_body_destroy(body);
    fem_free(f), fem_free(u), fem_free(G), fem_free(fixed);
    return status;
}

static void pull_task(void *context, int index, int worker) {
    interface_tasks *t = context;
    int              domain = index + 1;
    (void)worker;
    if (t->w->modes[t->w->tree->parent[domain]] > 0 && !assembly_carried(t->w, domain))
        t->status[domain] = find_pull(t->w, domain);
}

fem_status assembly_find_pulls(assembly_work *w) {
    fem_status      status = FEM_OK;
    int             count = w->tree->count;
    interface_tasks t = {.w = w};
    if (!(w->options->collar > 0)) return FEM_OK;
    t.status = fem_calloc((size_t)count, sizeof *t.status);
    if (!t.status) return fem_fail(FEM_NO_MEMORY, "no memory for %d domains", count);
    FEM_TRY(fem_mesh_vertex_elements(w->mesh, &t.start, &t.around));
    fem_parallel_for(count, collar_task, &t);
    fem_parallel_for(count - 1, pull_task, &t);
    for (int i = 0; i < count && status == FEM_OK; i++)
        if (t.status[i] != FEM_OK)
            status = fem_fail(t.status[i], "%s: %s its interfaces", w->tree->name[i],
                              t.status[i] == FEM_NO_MEMORY ? "no memory for" : "no stiffness could be found at");
done:
    fem_free(t.status), fem_free(t.start), fem_free(t.around);
    return status;
}

// ---- interfaces that children follow -----------------------------------------------------------------------------

bool assembly_carried(const assembly_work *w, int domain) {
    return w->options->carried > 0 && w->tree->parent[domain] >= 0 && w->modes[domain] > 0 &&
           w->modes[w->tree->parent[domain]] > 0;
}

// Points of the interface and what the parent's coordinates do to them: 3 points, and 3 points x r.
static fem_status interface_rows(const assembly_work *w, int domain, double **points, double **rows) {
    int                 parent = w->tree->parent[domain], place = domain - w->parts[parent].children[0];
    const solver_class *c = w->a->classes[parent];
    const domain_part  *part = &w->parts[parent];
    int                 from = part->child_points.start[place];
    const int          *vertices = part->child_points.vertices + from;
    size_t count = (size_t)(part->child_points.start[place + 1] - from), r = (size_t)c->basis.r, n = (size_t)c->basis.n;
    *points = fem_alloc(3 * count, sizeof **points), *rows = fem_alloc(3 * count * r, sizeof **rows);
    if (!*points || !*rows) return fem_fail(FEM_NO_MEMORY, "no memory for an interface of %zu points", count);
    for (size_t k = 0; k < count; k++) {
        size_t v = 3 * (size_t)vertices[k];
        memcpy(*points + 3 * k, c->mesh.vertices + v, 3 * sizeof **points);
        for (size_t l = 0; l < r; l++) memcpy(*rows + 3 * (count * l + k), c->basis.U + n * l + v, 3 * sizeof **rows);
    }
    return FEM_OK;
}

fem_status assembly_carrier(const assembly_work *w, int domain, solver_carrier *carrier) {
    fem_status              status = FEM_OK;
    int                     parent = w->tree->parent[domain];
    const solver_class     *c = w->a->classes[parent];
    const domain_interface *f = &c->interfaces[domain - w->parts[parent].children[0]];
    size_t                  stride = (size_t)f->stride, r = (size_t)c->basis.r;
    size_t                  count = (size_t)w->parts[domain].interface_count;
    double                 *points = NULL, *rows = NULL, *zero = fem_calloc(r, sizeof *zero);
    double                 *W = fem_calloc(3 * stride, sizeof *W), *K = fem_alloc(r * r, sizeof *K);
    double *work = fem_alloc(c->forces.work, sizeof *work), *rigid = fem_alloc(18 * count, sizeof *rigid);
    if (!zero || !W || !K || !work || !rigid) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for an interface of %zu points", count);
        goto done;
    }
    FEM_TRY(interface_rows(w, domain, &points, &rows));
    domain_frame frame;
    domain_frame_pose(f, zero, NULL, &frame);
    domain_frame_gradient(f, &frame, W);
    for (size_t l = 0; l < r; l++) // less the motion of the frame
        for (size_t k = 0; k < count; k++) {
            double turn[3] = {W[l], W[stride + l], W[2 * stride + l]}, d[3], t[3], *u = rows + 3 * (count * l + k);
            vec3_sub(d, points + 3 * k, f->x);
            vec3_cross(t, turn, d);
            for (size_t i = 0; i < 3; i++) u[i] -= f->a[stride * i + l] + t[i];
        }
    FEM_TRY(domain_interface_wrenches((int)count, points, w->parts[domain].interface_weights, NULL, rigid));
    c->forces.evaluate(c->forces.model, zero, NULL, NULL, K, work);
    *carrier = (solver_carrier){.count = (int)r,
                                .rows = rows,
                                .frame = rigid,
                                .stiffness = K,
                                .tolerance = w->options->carried_tolerance,
                                .most = w->options->carried};
    rows = K = rigid = NULL;
done:
    fem_free(rigid), fem_free(points), fem_free(rows), fem_free(zero), fem_free(W), fem_free(K), fem_free(work);
    return status;
}

fem_status assembly_attach(assembly_work *w, int domain) {
    fem_status    status = FEM_OK;
    int           parent = w->tree->parent[domain];
    solver_class *c = w->a->classes[domain], *above = w->a->classes[parent];
    double       *points = NULL, *rows = NULL;
    if (c->carried == 0) return FEM_OK;
    FEM_TRY(interface_rows(w, domain, &points, &rows));
    FEM_TRY(domain_interface_set_carried(&above->interfaces[domain - w->parts[parent].children[0]],
                                         w->parts[domain].interface_count, points, rows, c->carried, c->patterns));
done:
    fem_free(points), fem_free(rows);
    return status;
}
