// What contact is made of: obstacles with their signed distances, and the samples of a surface.
#include "libsolver/contact_internal.h"

// ---- obstacles ---------------------------------------------------------------------------------------------------

static solver_obstacle obstacle_at(solver_obstacle_kind kind, const double position[3]) {
    solver_obstacle o = {.kind = kind, .position = {position[0], position[1], position[2]}};
    mat3_identity(o.axes);
    return o;
}

solver_obstacle solver_plane(const double point[3], const double normal[3]) {
    solver_obstacle o = obstacle_at(SOLVER_PLANE, point);
    double          n[3] = {normal[0], normal[1], normal[2]}, t[3] = {0}, b[3];
    vec3_normalize(n);
    t[fabs(n[0]) < 0.6 ? 0 : 1] = 1; // not along n
    vec3_axpy(t, -vec3_dot(t, n), n);
    vec3_normalize(t);
    vec3_cross(b, n, t);
    for (int k = 0; k < 3; k++) o.axes[3 * k] = t[k], o.axes[3 * k + 1] = b[k], o.axes[3 * k + 2] = n[k];
    return o;
}

solver_obstacle solver_box(const double centre[3], const double half[3]) {
    solver_obstacle o = obstacle_at(SOLVER_BOX, centre);
    for (int k = 0; k < 3; k++) o.size[k] = half[k];
    return o;
}

solver_obstacle solver_sphere(const double centre[3], double radius) {
    solver_obstacle o = obstacle_at(SOLVER_SPHERE, centre);
    o.size[0] = radius;
    return o;
}

// Inside: to the nearest face. Outside: to the nearest point of the box.
static double box_distance(const double half[3], const double y[3], double normal[3]) {
    double inside = -INFINITY, outside[3];
    int    face = 0;
    for (int k = 0; k < 3; k++) {
        double d = fabs(y[k]) - half[k];
        if (d > inside) inside = d, face = k;
        outside[k] = copysign(fmax(d, 0), y[k]);
    }
    for (int k = 0; k < 3; k++) normal[k] = inside > 0 ? outside[k] : k == face ? copysign(1, y[k]) : 0;
    if (inside <= 0) return inside;
    double distance = vec3_norm(outside);
    vec3_normalize(normal);
    return distance;
}

double solver_obstacle_distance(const solver_obstacle *obstacle, const double x[3], double normal[3]) {
    double        d[3], y[3], local[3];
    const double *axes = obstacle->axes;
    vec3_sub(d, x, obstacle->position);
    if (obstacle->kind == SOLVER_PLANE) {
        for (int k = 0; k < 3; k++) normal[k] = axes[3 * k + 2];
        return vec3_dot(d, normal);
    }
    if (obstacle->kind == SOLVER_SPHERE) {
        double distance = vec3_norm(d);
        for (int k = 0; k < 3; k++) normal[k] = distance > 0 ? d[k] / distance : k == 2;
        return distance - obstacle->size[0];
    }
    mat3_mul_vec_t(y, axes, d);
    double distance = box_distance(obstacle->size, y, local);
    mat3_mul_vec(normal, axes, local);
    return distance;
}

// ---- samples -----------------------------------------------------------------------------------------------------

void solver_samples_destroy(solver_samples *samples) {
    fem_free(samples->X);
    fem_free(samples->U);
    fem_free(samples->area);
    fem_free(samples->vertex);
    *samples = (solver_samples){0};
}

static double triangle_area(const fem_mesh *mesh, const int *t) {
    double        a[3], b[3], n[3];
    const double *x = mesh->vertices;
    vec3_sub(a, x + 3 * (size_t)t[1], x + 3 * (size_t)t[0]);
    vec3_sub(b, x + 3 * (size_t)t[2], x + 3 * (size_t)t[0]);
    vec3_cross(n, a, b);
    return vec3_norm(n) / 2;
}

// A third of each triangle to its corners. The two triangles of a hexahedron's face share two corners: there each of
// the four gets a quarter of the face.
static void spread_area(const fem_mesh *mesh, int count, const int *triangles, double *area) {
    if (mesh->type == FEM_T4) {
        for (int t = 0; t < count; t++)
            for (int k = 0; k < 3; k++) area[triangles[3 * t + k]] += triangle_area(mesh, triangles + 3 * t) / 3;
        return;
    }
    for (int t = 0; t + 1 < count; t += 2) {
        const int *a = triangles + 3 * t, *b = a + 3;
        double     quarter = (triangle_area(mesh, a) + triangle_area(mesh, b)) / 4;
        for (int k = 0; k < 3; k++) {
            area[a[k]] += quarter;
            if (b[k] != a[0] && b[k] != a[1] && b[k] != a[2]) area[b[k]] += quarter;
        }
    }
}

fem_status solver_samples_create(solver_samples *result, const fem_mesh *mesh, int r, const double *U) {
    fem_status     status = FEM_OK;
    solver_samples s = {.r = r};
    int            triangle_count = 0, *triangles = NULL;
    size_t         n = 3 * (size_t)mesh->vertex_count;
    double        *area = fem_calloc((size_t)mesh->vertex_count, sizeof *area);
    if (r < 0) {
        status = fem_fail(FEM_BAD_INPUT, "contact: %d modes, expected >= 0", r);
        goto done;
    }
    if (!area) {
        status = fem_fail(FEM_NO_MEMORY, "contact: the surface of %d vertices", mesh->vertex_count);
        goto done;
    }
    FEM_TRY(fem_mesh_surface(mesh, &triangle_count, &triangles, NULL));
    spread_area(mesh, triangle_count, triangles, area);
    for (int v = 0; v < mesh->vertex_count; v++) s.count += area[v] > 0;
    s.X = fem_alloc((size_t)s.count, 3 * sizeof(double));
    s.U = fem_alloc((size_t)s.count, 3 * (size_t)r * sizeof(double));
    s.area = fem_alloc((size_t)s.count, sizeof(double));
    s.vertex = fem_alloc((size_t)s.count, sizeof(int));
    if (!s.X || !s.U || !s.area || !s.vertex) {
        status = fem_fail(FEM_NO_MEMORY, "contact: %d samples with %d modes", s.count, r);
        goto done;
    }
    int k = 0;
    for (int v = 0; v < mesh->vertex_count; v++) {
        if (!(area[v] > 0)) continue;
        s.area[k] = area[v];
        s.vertex[k] = v;
        for (size_t i = 0; i < 3; i++) {
            s.X[3 * (size_t)k + i] = mesh->vertices[3 * (size_t)v + i];
            for (size_t l = 0; l < (size_t)r; l++)
                s.U[(3 * (size_t)k + i) * (size_t)r + l] = U[n * l + 3 * (size_t)v + i];
        }
        k++;
    }
    *result = s;
    s = (solver_samples){0};
done:
    solver_samples_destroy(&s);
    fem_free(area);
    fem_free(triangles);
    return status;
}
