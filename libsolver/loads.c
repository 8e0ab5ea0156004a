// Dead loads: gravity, forces on vertices, tractions and pressures on the surface. Each adds to `force`.
#include "libsolver/solver.h"

// The shape functions sum to one, so M times a constant acceleration is the row sums of M, the lumped masses, times it.
fem_status solver_add_gravity(const fem_body *body, const double gravity[3], double *force) {
    int     count = fem_body_mesh(body)->vertex_count;
    double *masses = fem_alloc((size_t)count, sizeof *masses);
    if (!masses) return fem_fail(FEM_NO_MEMORY, "gravity on %d vertices", count);
    fem_body_vertex_masses(body, masses);
    for (int v = 0; v < count; v++) vec3_axpy(force + 3 * (size_t)v, masses[v], gravity);
    fem_free(masses);
    return FEM_OK;
}

void solver_add_vertex_force(int count, const int *vertices, const double total[3], double *force) {
    for (int k = 0; k < count; k++) vec3_axpy(force + 3 * (size_t)vertices[k], 1.0 / count, total);
}

// What is integrated over the surface: traction - pressure n.
typedef struct surface_load {
    const double *traction;
    double        pressure;
} surface_load;

// Adds `weight` x (traction dA - pressure n dA), with n dA given as a vector.
static void add_facet(const surface_load *load, const double normal_area[3], double weight, double *force) {
    vec3_axpy(force, weight * vec3_norm(normal_area), load->traction);
    vec3_axpy(force, -weight * load->pressure, normal_area);
}

// A flat triangle: each vertex gets a third. Returns its area.
static double add_triangle(const surface_load *load, const fem_mesh *mesh, const int triangle[3], double *force) {
    const double *x[3];
    for (int k = 0; k < 3; k++) x[k] = mesh->vertices + 3 * (size_t)triangle[k];
    double edge1[3], edge2[3], normal_area[3];
    vec3_sub(edge1, x[1], x[0]);
    vec3_sub(edge2, x[2], x[0]);
    vec3_cross(normal_area, edge1, edge2); // twice n A
    for (int k = 0; k < 3; k++) add_facet(load, normal_area, 1.0 / 6, force + 3 * (size_t)triangle[k]);
    return vec3_norm(normal_area) / 2;
}

// A bilinear face times `share`, by 2 x 2 Gauss points: exact for the pressure, and for the traction on parallelograms.
// Vertices run around the face, counterclockwise seen from outside. Returns share x area.
static double add_quadrilateral(const surface_load *load, const fem_mesh *mesh, const int face[4], double share,
                                double *force) {
    static const double corner[4][2] = {{-1, -1}, {1, -1}, {1, 1}, {-1, 1}};
    double              area = 0;
    for (int point = 0; point < 4; point++) {
        double r = corner[point][0] / sqrt(3.0), s = corner[point][1] / sqrt(3.0);
        double x_r[3] = {0}, x_s[3] = {0}, normal_area[3], N[4];
        for (int k = 0; k < 4; k++) {
            const double *x = mesh->vertices + 3 * (size_t)face[k];
            double        cr = corner[k][0], cs = corner[k][1];
            N[k] = (1 + cr * r) * (1 + cs * s) / 4;
            vec3_axpy(x_r, cr * (1 + cs * s) / 4, x);
            vec3_axpy(x_s, cs * (1 + cr * r) / 4, x);
        }
        vec3_cross(normal_area, x_r, x_s);
        for (int k = 0; k < 4; k++) add_facet(load, normal_area, share * N[k], force + 3 * (size_t)face[k]);
        area += share * vec3_norm(normal_area);
    }
    return area;
}

// The face of an H8 that contains a surface triangle, vertices counterclockwise seen from outside; false if none does.
static bool face_of_triangle(const int hexahedron[8], const int triangle[3], int face[4]) {
    static const int faces[6][4] = {{0, 3, 2, 1}, {4, 5, 6, 7}, {0, 1, 5, 4}, {1, 2, 6, 5}, {2, 3, 7, 6}, {3, 0, 4, 7}};
    for (int f = 0; f < 6; f++) {
        int found = 0;
        for (int k = 0; k < 4; k++) {
            face[k] = hexahedron[faces[f][k]];
            found += face[k] == triangle[0] || face[k] == triangle[1] || face[k] == triangle[2];
        }
        if (found == 3) return true;
    }
    return false;
}

static bool all_listed(const unsigned char *listed, int count, const int *vertices) {
    for (int k = 0; k < count; k++)
        if (!listed[vertices[k]]) return false;
    return true;
}

fem_status solver_add_surface_load(const fem_mesh *mesh, int count, const int *vertices, const double traction[3],
                                   double pressure, double *force, double *area) {
    static const double none[3] = {0, 0, 0};
    fem_status          status = FEM_OK;
    surface_load        load = {.traction = traction ? traction : none, .pressure = pressure};
    int                 triangle_count = 0, *triangles = NULL, *element = NULL;
    double              total = 0;
    unsigned char      *listed = fem_calloc((size_t)mesh->vertex_count, 1);
    if (!listed) {
        status = fem_fail(FEM_NO_MEMORY, "surface load: %d vertices", mesh->vertex_count);
        goto done;
    }
    for (int k = 0; k < count; k++) {
        if (vertices[k] < 0 || vertices[k] >= mesh->vertex_count) {
            status = fem_fail(FEM_BAD_INPUT, "surface load: vertex %d does not exist, the mesh has %d", vertices[k],
                              mesh->vertex_count);
            goto done;
        }
        listed[vertices[k]] = 1;
    }
    FEM_TRY(fem_mesh_surface(mesh, &triangle_count, &triangles, &element));

    for (int t = 0; t < triangle_count; t++) {
        const int *triangle = triangles + 3 * (size_t)t;
        int        face[4];
        if (mesh->type == FEM_T4) {
            if (all_listed(listed, 3, triangle)) total += add_triangle(&load, mesh, triangle, force);
        } else if (face_of_triangle(mesh->elements + 8 * (size_t)element[t], triangle, face)) {
            // both triangles of a face come along: half of the face each time
            if (all_listed(listed, 4, face)) total += add_quadrilateral(&load, mesh, face, 0.5, force);
        }
    }
    if (!(total > 0)) {
        status = fem_fail(FEM_BAD_INPUT,
                          "surface load: the %d vertices contain no whole face of the surface; list all vertices of "
                          "at least one face",
                          count);
        goto done;
    }
    if (area) *area = total;
done:
    fem_free(listed);
    fem_free(triangles);
    fem_free(element);
    return status;
}
