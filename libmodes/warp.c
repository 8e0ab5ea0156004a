// Rotation fields of modes, and displacements that follow them.
#include "libmodes/internal.h"

#include <string.h>

void modes_warp_destroy(modes_warp *warp) {
    fem_free(warp->Psi);
    *warp = (modes_warp){0};
}

// Derivatives of the shape functions at vertex `corner` of an element: of a T4 they are the same everywhere. At the
// corner of an H8 they see its three edges alone; in a bent H8 the derivative across the beam is exact there.
static void corner_gradients(const fem_mesh *mesh, const int *v, int corner, double g[8][3]) {
    static const int place[8][3] = {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0},
                                    {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}};
    int              width = fem_element_vertices(mesh->type);
    double           dN[8][3], J[9] = {0}, inverse[9];
    for (int a = 0; a < width; a++)
        for (int j = 0; j < 3; j++) {
            if (width == 4) {
                dN[a][j] = (a == j + 1) - (a == 0);
                continue;
            }
            // N_a is a product of x or 1 - x over the directions: at the corner each factor is 0 or 1
            int k = (j + 1) % 3, l = (j + 2) % 3;
            dN[a][j] = place[a][k] == place[corner][k] && place[a][l] == place[corner][l] ? 2 * place[a][j] - 1 : 0;
        }
    for (int a = 0; a < width; a++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) J[3 * i + j] += mesh->vertices[3 * (size_t)v[a] + (size_t)i] * dN[a][j];
    mat3_inverse(inverse, J);
    for (int a = 0; a < width; a++)
        for (int j = 0; j < 3; j++)
            g[a][j] = dN[a][0] * inverse[j] + dN[a][1] * inverse[3 + j] + dN[a][2] * inverse[6 + j];
}

typedef struct curl_work {
    const fem_mesh *mesh;
    const double   *U;
    const double   *total; // per vertex: sum of weights
    double         *Psi;
    size_t          n;
} curl_work;

static void add_curls(const fem_mesh *mesh, const double *u, double *psi, double *total) {
    int width = fem_element_vertices(mesh->type);
    for (int e = 0; e < mesh->element_count; e++) {
        const int *v = mesh->elements + (size_t)e * (size_t)width;
        double     g[8][3], weight = fabs(fem_element_volume(mesh, e));
        for (int corner = 0; corner < width; corner++) {
            if (corner == 0 || width == 8) corner_gradients(mesh, v, corner, g);
            if (total) total[v[corner]] += weight;
            if (!u) continue;
            double H[9] = {0}; // H_ij = du_i/dX_j
            for (int a = 0; a < width; a++)
                for (int i = 0; i < 3; i++)
                    for (int j = 0; j < 3; j++) H[3 * i + j] += u[3 * (size_t)v[a] + (size_t)i] * g[a][j];
            double *w = psi + 3 * (size_t)v[corner], half = 0.5 * weight;
            w[0] += half * (H[7] - H[5]), w[1] += half * (H[2] - H[6]), w[2] += half * (H[3] - H[1]);
        }
    }
}

static void curl_task(void *context, int mode, int worker) {
    (void)worker;
    curl_work *w = context;
    double    *psi = w->Psi + (size_t)mode * w->n;
    memset(psi, 0, w->n * sizeof *psi);
    add_curls(w->mesh, w->U + (size_t)mode * w->n, psi, NULL);
    for (size_t i = 0; i < w->n; i++) psi[i] = w->total[i / 3] > 0 ? psi[i] / w->total[i / 3] : 0;
}

fem_status modes_warp_create(modes_warp *result, const fem_mesh *mesh, const modes_basis *basis) {
    if (basis->n != 3 * mesh->vertex_count || basis->r < 1)
        return fem_fail(FEM_BAD_INPUT, "a basis of %d modes with %d rows for a mesh of %d vertices", basis->r, basis->n,
                        mesh->vertex_count);
    modes_warp warp = {.n = basis->n, .r = basis->r};
    double    *total = fem_calloc((size_t)mesh->vertex_count, sizeof *total);
    warp.Psi = fem_alloc((size_t)warp.n * (size_t)warp.r, sizeof *warp.Psi);
    if (!total || !warp.Psi) {
        fem_free(total);
        modes_warp_destroy(&warp);
        return fem_fail(FEM_NO_MEMORY, "no memory for the rotations of %d modes", basis->r);
    }
    add_curls(mesh, NULL, NULL, total);
    curl_work work = {.mesh = mesh, .U = basis->U, .total = total, .Psi = warp.Psi, .n = (size_t)warp.n};
    fem_parallel_for(warp.r, curl_task, &work);
    fem_free(total);
    modes_warp_destroy(result);
    *result = warp;
    return FEM_OK;
}

// W = 1 + (1 - cos a)/a^2 [w] + (a - sin a)/a^3 [w]^2, a = |w|; series below 1e-2, where the quotients cancel
void modes_warp_matrix(const double w[3], double W[9]) {
    double square = vec3_dot(w, w), angle = sqrt(square), first, second;
    if (angle < 1e-2) {
        first = 0.5 - square / 24 + square * square / 720;
        second = 1.0 / 6 - square / 120 + square * square / 5040;
    } else {
        first = (1 - cos(angle)) / square;
        second = (angle - sin(angle)) / (square * angle);
    }
    const double cross[9] = {0, -w[2], w[1], w[2], 0, -w[0], -w[1], w[0], 0};
    double       twice[9];
    mat3_mul(twice, cross, cross);
    for (int i = 0; i < 9; i++) W[i] = (i % 4 == 0) + first * cross[i] + second * twice[i];
}

void modes_warp_displacement(const modes_warp *warp, const modes_basis *basis, const double *q, double *work,
                             double *u) {
    dense_gemv_set(warp->n, warp->r, 1, warp->Psi, q, work);
    dense_gemv_set(warp->n, warp->r, 1, basis->U, q, u);
    for (int v = 0; v < warp->n; v += 3) {
        double W[9], linear[3] = {u[v], u[v + 1], u[v + 2]};
        modes_warp_matrix(work + v, W);
        mat3_mul_vec(u + v, W, linear);
    }
}
