// The surface of a class as the .glb holds it: base shape, morph targets, normals.
//
// Programs clamp morph weights to [0, 1], so weight 0 is the lower end of a mode's range and 1 the upper: the base is
// X + U q_low, target l moves by U_l (q_up - q_low). Normals are not linear in q. They are linearised in the middle of
// the ranges, where the figures are, not at the base, where every mode stands at its end at once:
//     n(w) ~ n(1/2) + sum_l (w_l - 1/2) d_l,   d_l = (I - n n^T) dN_l / |N|,   N = sum of (b - a) x (c - a)
// Base normals must have length 1, and shading normalises the sum anyway, so all is divided by |n(1/2) - sum d_l / 2|.
#include "libscene/glb_internal.h"

#include <string.h>

double glb_mode_size(const scene_surface *surface, int mode) {
    const double *U = surface->modes + (size_t)mode * 3 * (size_t)surface->vertex_count;
    double        largest = 0;
    for (int v = 0; v < surface->vertex_count; v++) largest = fmax(largest, vec3_norm(U + 3 * (size_t)v));
    return largest;
}

double glb_surface_size(const scene_surface *surface) {
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (int v = 0; v < surface->vertex_count; v++)
        for (int i = 0; i < 3; i++) {
            low[i] = fmin(low[i], surface->positions[3 * (size_t)v + (size_t)i]);
            high[i] = fmax(high[i], surface->positions[3 * (size_t)v + (size_t)i]);
        }
    return vec3_distance(low, high) / 2;
}

void glb_form_destroy(glb_form *form) {
    fem_free(form->positions);
    fem_free(form->normals);
    fem_free(form->deltas);
    *form = (glb_form){0};
}

static size_t place_of(const scene_surface *surface, int vertex) {
    return (size_t)(surface->place ? surface->place[vertex] : vertex);
}

// N += sum over triangles of (b - a) x (c - a), at each corner
static void add_normals(const scene_surface *surface, const double *x, double *N) {
    for (int t = 0; t < surface->triangle_count; t++) {
        const int    *corner = surface->triangles + 3 * (size_t)t;
        const double *a = x + 3 * (size_t)corner[0];
        double        ab[3], ac[3], n[3];
        vec3_sub(ab, x + 3 * (size_t)corner[1], a);
        vec3_sub(ac, x + 3 * (size_t)corner[2], a);
        vec3_cross(n, ab, ac);
        for (int k = 0; k < 3; k++) vec3_axpy(N + 3 * place_of(surface, corner[k]), 1, n);
    }
}

// dN += the change of that when x moves by u
static void add_normal_changes(const scene_surface *surface, const double *x, const double *u, double *dN) {
    for (int t = 0; t < surface->triangle_count; t++) {
        const int *corner = surface->triangles + 3 * (size_t)t;
        size_t     a = 3 * (size_t)corner[0], b = 3 * (size_t)corner[1], c = 3 * (size_t)corner[2];
        double     ab[3], ac[3], dab[3], dac[3], n[3], m[3];
        vec3_sub(ab, x + b, x + a), vec3_sub(ac, x + c, x + a);
        vec3_sub(dab, u + b, u + a), vec3_sub(dac, u + c, u + a);
        vec3_cross(n, dab, ac), vec3_cross(m, ab, dac);
        vec3_axpy(n, 1, m);
        for (int k = 0; k < 3; k++) vec3_axpy(dN + 3 * place_of(surface, corner[k]), 1, n);
    }
}

// What was summed up at places, at all vertices there.
static void share(const scene_surface *surface, double *N) {
    for (int v = 0; surface->place && v < surface->vertex_count; v++)
        memcpy(N + 3 * (size_t)v, N + 3 * (size_t)surface->place[v], 3 * sizeof *N);
}

// Divides normals and their changes so that the base normal n - sum d / 2 has length 1.
static void scale_normals(int targets, size_t n3, size_t v, double N[3], float *normals, float *deltas) {
    double norm = vec3_norm(N);
    if (norm > 0)
        vec3_normalize(N);
    else
        N[0] = 0, N[1] = 1, N[2] = 0;
    double base[3] = {N[0], N[1], N[2]};
    for (int l = 0; l < targets; l++) {
        float *d = deltas + (2 * (size_t)l + 1) * n3 + 3 * v;
        double change[3] = {d[0], d[1], d[2]}, along = vec3_dot(N, change);
        for (int i = 0; i < 3; i++) d[i] = norm > 0 ? (float)((change[i] - along * N[i]) / norm) : 0;
        for (int i = 0; i < 3; i++) base[i] -= (double)d[i] / 2;
    }
    double length = vec3_norm(base);
    // without a usable direction at the base the normal stays what it is in the middle
    for (int i = 0; i < 3; i++) normals[3 * v + (size_t)i] = (float)(length > 0.05 ? base[i] / length : N[i]);
    for (int l = 0; l < targets && length > 0.05; l++)
        for (int i = 0; i < 3; i++) {
            float *d = deltas + (2 * (size_t)l + 1) * n3 + 3 * v + i;
            *d = (float)((double)*d / length);
        }
}

fem_status glb_form_create(glb_form *form, const scene_surface *surface, const glb_mesh *mesh, const float *low,
                           const float *high) {
    fem_status status = FEM_OK;
    size_t     n3 = 3 * (size_t)surface->vertex_count, targets = (size_t)mesh->targets;
    double    *middle = fem_copy(surface->positions, n3, sizeof *middle),
           *base = fem_copy(surface->positions, n3, sizeof *base);
    double *N = fem_calloc(n3, sizeof *N), *u = fem_alloc(n3, sizeof *u), *dN = fem_alloc(n3, sizeof *dN);
    *form = (glb_form){.positions = fem_alloc(n3, sizeof(float)),
                       .normals = fem_alloc(n3, sizeof(float)),
                       .deltas = fem_alloc(2 * targets * n3, sizeof(float))};
    if (!middle || !base || !N || !u || !dN || !form->positions || !form->normals || !form->deltas) {
        status = fem_fail(FEM_NO_MEMORY, "glb: no memory for a surface of %d vertices", surface->vertex_count);
        goto done;
    }
    for (int l = 0; l < surface->r; l++) {
        const double *U = surface->modes + (size_t)l * n3;
        bool          kept = false;
        for (size_t t = 0; t < targets; t++) kept |= mesh->mode[t] == l;
        double half = ((double)low[l] + (double)high[l]) / 2;
        for (size_t i = 0; i < n3; i++) middle[i] += half * U[i], base[i] += (kept ? (double)low[l] : half) * U[i];
    }
    for (size_t i = 0; i < n3; i++) form->positions[i] = (float)base[i];
    add_normals(surface, middle, N);
    share(surface, N);
    for (size_t t = 0; t < targets; t++) {
        const double *U = surface->modes + (size_t)mesh->mode[t] * n3;
        double        range = (double)mesh->q_up[t] - (double)mesh->q_low[t];
        float        *d = form->deltas + 2 * t * n3;
        for (size_t i = 0; i < n3; i++) u[i] = range * U[i], d[i] = (float)u[i];
        memset(dN, 0, n3 * sizeof *dN);
        add_normal_changes(surface, middle, u, dN);
        share(surface, dN);
        for (size_t i = 0; i < n3; i++) d[n3 + i] = (float)dN[i];
    }
    for (size_t v = 0; v < (size_t)surface->vertex_count; v++)
        scale_normals((int)targets, n3, v, N + 3 * v, form->normals, form->deltas);
done:
    if (status != FEM_OK) glb_form_destroy(form);
    fem_free(middle), fem_free(base), fem_free(N), fem_free(u), fem_free(dN);
    return status;
}
