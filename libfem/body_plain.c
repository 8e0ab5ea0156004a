// The textbook form of what kernel_elements.c does: one element at a time, one Gauss point at a time, every vertex
// pair. It is the documentation of the fast kernels and what the tests compare them with.
#include "libfem/body_internal.h"

#include <string.h>

// Shape-function gradients g[a] = dN_a/dX and the integration weight at one point of an element.
static double gradients(const fem_mesh *mesh, const int *v, int width, const hex_point *point, double g[8][3]) {
    double J[9] = {0}, inverse[9]; // J_ij = dX_i/dxi_j
    double dN[8][3] = {{-1, -1, -1}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    if (width == 8) memcpy(dN, point->dN, sizeof dN);
    for (int a = 0; a < width; a++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) J[3 * i + j] += mesh->vertices[3 * (size_t)v[a] + (size_t)i] * dN[a][j];
    double det = mat3_inverse(inverse, J);
    for (int a = 0; a < width; a++)
        for (int j = 0; j < 3; j++)
            g[a][j] = dN[a][0] * inverse[j] + dN[a][1] * inverse[3 + j] + dN[a][2] * inverse[6 + j];
    return width == 8 ? det * point->weight : det / 6;
}

int fem_body_points(const fem_body *body, int element, double weight[27], double g[27][24]) {
    const fem_mesh *mesh = body->mesh;
    const int      *v = mesh->elements + (size_t)element * (size_t)body->width;
    hex_point       points[27];
    double          values[27][8], rows[8][3] = {{0}};
    int             count = body->width == 8 ? fem_hex_points(body->options.quadrature, points, values) : 1;
    for (int p = 0; p < count; p++) {
        weight[p] = gradients(mesh, v, body->width, &points[p], rows);
        memcpy(g[p], rows, sizeof rows);
    }
    return count;
}

static void field_gradient(double H[9], const double *field, const int *v, int width, double g[8][3]) {
    memset(H, 0, 9 * sizeof *H);
    for (int a = 0; a < width; a++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) H[3 * i + j] += field[3 * (size_t)v[a] + (size_t)i] * g[a][j];
}

static void plain_point(const element_work *w, const int *v, const fem_material_constants *c, double g[8][3],
                        double weight, double *energy) {
    const fem_body *body = w->body;
    int             width = body->width;
    double          F[9], A[9], B[9], P[9], D[81], W;
    field_gradient(F, w->u, v, width, g);
    for (int i = 0; i < 3; i++) F[4 * i] += 1;
    if (w->second) {
        field_gradient(A, w->a, v, width, g);
        field_gradient(B, w->b, v, width, g);
        fem_material_second(c, F, A, B, P);
    } else {
        fem_material_evaluate(c, F, &W, P, w->stiffness ? D : NULL);
        *energy += weight * W;
    }
    // f_a = int P grad N_a
    for (int a = 0; w->force && a < width; a++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) w->force[3 * (size_t)v[a] + (size_t)i] += weight * P[3 * i + j] * g[a][j];
    // (K_ab)_ik = int dN_a/dX_j D_ij,kl dN_b/dX_l
    for (int a = 0; w->stiffness && a < width; a++)
        for (int b = 0; b < width; b++) {
            if (v[a] > v[b]) continue;
            double *block = w->stiffness + 9 * (size_t)fem_sparse_find(&body->pattern, v[a], v[b]);
            for (int i = 0; i < 3; i++)
                for (int k = 0; k < 3; k++)
                    for (int j = 0; j < 3; j++)
                        for (int l = 0; l < 3; l++)
                            block[3 * i + k] += weight * g[a][j] * D[9 * (3 * i + j) + 3 * k + l] * g[b][l];
        }
}

void fem_element_plain(const element_work *w, int chunk) {
    const fem_body *body = w->body;
    const fem_mesh *mesh = body->mesh;
    double          energy = 0, g[8][3], values[27][8];
    hex_point       points[27];
    int             point_count = body->width == 8 ? fem_hex_points(body->options.quadrature, points, values) : 1;
    for (int group = chunk * body->chunk_groups; group < chunk_end(body, chunk); group++)
        for (int lane = 0; lane < body->groups[group].count; lane++) {
            int        e = body->groups[group].element[lane];
            const int *v = mesh->elements + (size_t)e * (size_t)body->width;
            for (int p = 0; p < point_count; p++) {
                double weight = gradients(mesh, v, body->width, &points[p], g);
                plain_point(w, v, &body->constants[body->groups[group].material], g, weight, &energy);
            }
        }
    if (w->energy) w->energy[chunk] = energy;
}
