// Measures of elements: signed volume, dihedral angles, shape.
#include "libfem/fem.h"

static const double *position(const fem_mesh *mesh, int vertex) { return mesh->vertices + 3 * (size_t)vertex; }

static const int *corners_of(const fem_mesh *mesh, int element) {
    return mesh->elements + (size_t)element * (size_t)fem_element_vertices(mesh->type);
}

static double triple(const double a[3], const double b[3], const double c[3]) { // a . (b x c)
    double d[3];
    vec3_cross(d, b, c);
    return vec3_dot(a, d);
}

static double tetrahedron_volume(const fem_mesh *mesh, const int *v) {
    double e[3][3];
    for (int k = 0; k < 3; k++) vec3_sub(e[k], position(mesh, v[k + 1]), position(mesh, v[0]));
    return triple(e[0], e[1], e[2]) / 6;
}

// Integral of det J over the trilinear map, in three triple products [Grandy 1997, Efficient computation of volume of
// hexahedral cells]. He numbers corners in binary (x + 2y + 4z): his 2, 3, 6, 7 are our 3, 2, 7, 6.
static double hexahedron_volume(const fem_mesh *mesh, const int *v) {
    const double *x0 = position(mesh, v[0]), *x1 = position(mesh, v[1]), *x2 = position(mesh, v[3]);
    const double *x3 = position(mesh, v[2]), *x4 = position(mesh, v[4]), *x5 = position(mesh, v[5]);
    const double *x6 = position(mesh, v[7]), *x7 = position(mesh, v[6]);
    double        d71[3], d60[3], d72[3], d30[3], d50[3], d74[3], sums[3][3];
    vec3_sub(d71, x7, x1), vec3_sub(d60, x6, x0), vec3_sub(d72, x7, x2);
    vec3_sub(d30, x3, x0), vec3_sub(d50, x5, x0), vec3_sub(d74, x7, x4);
    for (int k = 0; k < 3; k++) {
        sums[0][k] = d71[k] + d60[k];
        sums[1][k] = d72[k] + d50[k];
        sums[2][k] = d74[k] + d30[k];
    }
    return (triple(sums[0], d72, d30) + triple(d60, sums[1], d74) + triple(d71, d50, sums[2])) / 12;
}

double fem_element_volume(const fem_mesh *mesh, int element) {
    const int *v = corners_of(mesh, element);
    return mesh->type == FEM_T4 ? tetrahedron_volume(mesh, v) : hexahedron_volume(mesh, v);
}

// Corners of an element with the ends of the three edges that leave them, in right-handed order.
static const int tetrahedron_edges[4][3] = {{1, 2, 3}, {0, 3, 2}, {0, 1, 3}, {0, 2, 1}};
static const int hexahedron_edges[8][3] = {{1, 3, 4}, {2, 0, 5}, {3, 1, 6}, {0, 2, 7},
                                           {7, 5, 0}, {4, 6, 1}, {5, 7, 2}, {6, 4, 3}};

// Cosine of the angle between the half planes (a, b) and (a, c) around their common edge a. Flat corners count as 0
// deg.
static double dihedral_cosine(const double a[3], const double b[3], const double c[3]) {
    double p[3], q[3];
    vec3_cross(p, a, b);
    vec3_cross(q, a, c);
    double lengths = vec3_norm(p) * vec3_norm(q);
    return lengths > 0 ? fmax(-1, fmin(1, vec3_dot(p, q) / lengths)) : 1;
}

typedef struct measure {
    double shape, largest_cosine, smallest_cosine;
} measure;

// The dihedral angles of an H8 are taken at its corners, where its curved faces have planes.
static measure measure_element(const fem_mesh *mesh, int element, double volume) {
    const int *v = corners_of(mesh, element);
    int        corners = fem_element_vertices(mesh->type);
    measure    m = {.shape = INFINITY, .largest_cosine = -1, .smallest_cosine = 1};
    double     squares = 0; // of edge lengths, each edge of a T4 twice
    for (int i = 0; i < corners; i++) {
        const int *ends = mesh->type == FEM_T4 ? tetrahedron_edges[i] : hexahedron_edges[i];
        double     e[3][3];
        for (int k = 0; k < 3; k++) vec3_sub(e[k], position(mesh, v[ends[k]]), position(mesh, v[i]));
        for (int k = 0; k < 3; k++) {
            double cosine = dihedral_cosine(e[k], e[(k + 1) % 3], e[(k + 2) % 3]);
            m.largest_cosine = fmax(m.largest_cosine, cosine);
            m.smallest_cosine = fmin(m.smallest_cosine, cosine);
            squares += vec3_dot(e[k], e[k]);
        }
        double lengths = vec3_norm(e[0]) * vec3_norm(e[1]) * vec3_norm(e[2]);
        if (mesh->type == FEM_H8) m.shape = fmin(m.shape, lengths > 0 ? triple(e[0], e[1], e[2]) / lengths : 0);
    }
    // mean ratio 12 (3V)^(2/3) / sum l^2, with the sign of V [Liu and Joe 1994]
    if (mesh->type == FEM_T4)
        m.shape = squares > 0 ? copysign(12 * cbrt(9 * volume * volume) / (squares / 2), volume) : 0;
    return m;
}

fem_status fem_mesh_quality(const fem_mesh *mesh, fem_quality *quality) {
    fem_status  status = FEM_OK;
    fem_quality q = {.min_volume = INFINITY, .max_volume = -INFINITY, .min_shape = INFINITY};
    double      largest_cosine = -1, smallest_cosine = 1;
    int        *component = fem_alloc((size_t)mesh->vertex_count, sizeof *component);
    if (!component) {
        status = fem_fail(FEM_NO_MEMORY, "no memory to examine %d vertices", mesh->vertex_count);
        goto done;
    }
    FEM_TRY(fem_mesh_components(mesh, component, &q.components));
    for (int k = 0; k < 3; k++) q.low[k] = INFINITY, q.high[k] = -INFINITY;
    for (int v = 0; v < mesh->vertex_count; v++) {
        q.unused_vertices += component[v] < 0;
        for (int k = 0; k < 3; k++) {
            q.low[k] = fmin(q.low[k], position(mesh, v)[k]);
            q.high[k] = fmax(q.high[k], position(mesh, v)[k]);
        }
    }
    for (int e = 0; e < mesh->element_count; e++) {
        double  volume = fem_element_volume(mesh, e);
        measure m = measure_element(mesh, e, volume);
        q.volume += volume;
        q.min_volume = fmin(q.min_volume, volume);
        q.max_volume = fmax(q.max_volume, volume);
        largest_cosine = fmax(largest_cosine, m.largest_cosine);
        smallest_cosine = fmin(smallest_cosine, m.smallest_cosine);
        if (m.shape < q.min_shape) q.min_shape = m.shape, q.worst_element = e;
    }
    q.min_dihedral = acos(largest_cosine) * 180 / M_PI;
    q.max_dihedral = acos(smallest_cosine) * 180 / M_PI;
    *quality = q;
done:
    fem_free(component);
    return status;
}
