// Places on the surface of a class where the wind is felt: triangles that lie near each other and face the same way
// become one sample, with the mean displacement and the area vector of them all, so that a uniform pressure on it does
// the same work as on the triangles, to first order in q.
#include "libsolver/wind_internal.h"

#include <string.h>

void solver_wind_surface_destroy(solver_wind_surface *surface) {
    fem_free(surface->X);
    fem_free(surface->area);
    fem_free(surface->rows);
    fem_free(surface->turn);
    *surface = (solver_wind_surface){0};
}

typedef struct gathering {
    int           triangle_count;
    const int    *triangles;
    const double *positions;
    double       *place;  // 6 per triangle: centroid over the size, normal over two
    double       *area;   // 3 per triangle
    int          *sample; // per triangle
    double       *nearest;
    double        total, sum[3];
} gathering;

static void half_cross(const double *x, const int *corner, double area[3]) {
    double ab[3], ac[3];
    vec3_sub(ab, x + 3 * (size_t)corner[1], x + 3 * (size_t)corner[0]);
    vec3_sub(ac, x + 3 * (size_t)corner[2], x + 3 * (size_t)corner[0]);
    vec3_cross(area, ab, ac);
    for (int i = 0; i < 3; i++) area[i] /= 2;
}

static void measure(gathering *g, int vertex_count) {
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (size_t i = 0; i < 3 * (size_t)vertex_count; i++)
        low[i % 3] = fmin(low[i % 3], g->positions[i]), high[i % 3] = fmax(high[i % 3], g->positions[i]);
    double size = vec3_distance(low, high);
    for (size_t t = 0; t < (size_t)g->triangle_count; t++) {
        const int *corner = g->triangles + 3 * t;
        double    *place = g->place + 6 * t, *area = g->area + 3 * t;
        half_cross(g->positions, corner, area);
        double norm = vec3_norm(area);
        for (size_t i = 0; i < 3; i++) {
            place[i] = place[3 + i] = 0;
            for (int k = 0; k < 3; k++) place[i] += g->positions[3 * (size_t)corner[k] + i] / 3;
            if (size > 0) place[i] /= size;
            if (norm > 0) place[3 + i] = area[i] / norm / 2;
        }
        g->total += norm;
        vec3_axpy(g->sum, 1, area);
    }
}

// Farthest-point sampling in place and direction; every triangle goes to the nearest of the chosen. Returns how many.
static int choose_samples(gathering *g, int wanted) {
    size_t seed = 0;
    int    count = 0;
    for (size_t t = 0; t < (size_t)g->triangle_count; t++) g->nearest[t] = INFINITY;
    for (; count < wanted; count++) {
        double farthest = -1;
        size_t next = 0;
        for (size_t t = 0; t < (size_t)g->triangle_count; t++) {
            double d = 0;
            for (size_t i = 0; i < 6; i++) d += pow(g->place[6 * t + i] - g->place[6 * seed + i], 2);
            if (d < g->nearest[t]) g->nearest[t] = d, g->sample[t] = count;
            if (g->nearest[t] > farthest) farthest = g->nearest[t], next = t;
        }
        if (farthest <= 0) return count + 1;
        seed = next;
    }
    return count;
}

// Adds the triangles to their samples: area vectors, and means weighted with area.
static void sum_samples(const gathering *g, const double *modes, size_t n3, solver_wind_surface *s, double *weight) {
    size_t rows = 3 * (size_t)s->count;
    for (size_t t = 0; t < (size_t)g->triangle_count; t++) {
        const int *corner = g->triangles + 3 * t;
        size_t     at = 3 * (size_t)g->sample[t];
        double     size = vec3_norm(g->area + 3 * t);
        weight[g->sample[t]] += size;
        vec3_axpy(s->area + at, 1, g->area + 3 * t);
        for (int k = 0; k < 3; k++) vec3_axpy(s->X + at, size / 3, g->positions + 3 * (size_t)corner[k]);
        for (size_t l = 0; l < (size_t)s->r; l++) {
            const double *U = modes + l * n3;
            const double *a = g->positions + 3 * (size_t)corner[0], *b = g->positions + 3 * (size_t)corner[1],
                         *c = g->positions + 3 * (size_t)corner[2];
            double ab[3], ac[3], dab[3], dac[3], m[3], n[3];
            vec3_sub(ab, b, a), vec3_sub(ac, c, a);
            vec3_sub(dab, U + 3 * (size_t)corner[1], U + 3 * (size_t)corner[0]);
            vec3_sub(dac, U + 3 * (size_t)corner[2], U + 3 * (size_t)corner[0]);
            vec3_cross(m, dab, ac), vec3_cross(n, ab, dac);
            vec3_axpy(s->turn + l * rows + at, 0.5, m);
            vec3_axpy(s->turn + l * rows + at, 0.5, n);
            for (int k = 0; k < 3; k++) vec3_axpy(s->rows + l * rows + at, size / 3, U + 3 * (size_t)corner[k]);
        }
    }
    for (size_t i = 0; i < rows; i++) {
        double w = weight[i / 3] > 0 ? weight[i / 3] : 1;
        s->X[i] /= w;
        for (size_t l = 0; l < (size_t)s->r; l++) s->rows[l * rows + i] /= w;
    }
}

static fem_status check_input(int vertex_count, int triangle_count, const int *triangles, int r, int samples,
                              double normal, double tangential) {
    if (vertex_count < 3 || triangle_count < 1 || r < 0 || samples < 1)
        return fem_fail(FEM_BAD_INPUT, "wind: %d vertices, %d triangles, %d modes, %d samples, expected a surface",
                        vertex_count, triangle_count, r, samples);
    for (size_t i = 0; i < 3 * (size_t)triangle_count; i++)
        if (triangles[i] < 0 || triangles[i] >= vertex_count)
            return fem_fail(FEM_BAD_INPUT, "wind: triangle %zu has the vertex %d, expected 0 to %d", i / 3,
                            triangles[i], vertex_count - 1);
    if (!(normal >= 0 && normal <= 100 && tangential >= 0 && tangential <= 100))
        return fem_fail(FEM_BAD_INPUT, "wind: coefficients %g and %g, expected 0 to 100", normal, tangential);
    return FEM_OK;
}

fem_status solver_wind_surface_create(solver_wind_surface *surface, int vertex_count, const double *positions,
                                      int triangle_count, const int *triangles, int r, const double *modes, int samples,
                                      double normal, double tangential) {
    fem_status          status = check_input(vertex_count, triangle_count, triangles, r, samples, normal, tangential);
    solver_wind_surface s = {.r = r, .normal = normal, .tangential = tangential};
    if (status != FEM_OK) return status;
    size_t    n = (size_t)triangle_count;
    double   *weight = NULL;
    gathering g = {.triangle_count = triangle_count, .triangles = triangles, .positions = positions};
    g.place = fem_alloc(6 * n, sizeof *g.place), g.area = fem_alloc(3 * n, sizeof *g.area);
    g.sample = fem_calloc(n, sizeof *g.sample), g.nearest = fem_alloc(n, sizeof *g.nearest);
    if (!g.place || !g.area || !g.sample || !g.nearest) {
        status = fem_fail(FEM_NO_MEMORY, "wind: no memory for %d triangles", triangle_count);
        goto done;
    }
    measure(&g, vertex_count);
    s.count = choose_samples(&g, samples < triangle_count ? samples : triangle_count);
    size_t rows = 3 * (size_t)s.count;
    s.X = fem_calloc(rows, sizeof *s.X), s.area = fem_calloc(rows, sizeof *s.area);
    s.rows = fem_calloc(rows * (size_t)r, sizeof *s.rows), s.turn = fem_calloc(rows * (size_t)r, sizeof *s.turn);
    weight = fem_calloc((size_t)s.count, sizeof *weight);
    if (!s.X || !s.area || !s.rows || !s.turn || !weight) {
        status = fem_fail(FEM_NO_MEMORY, "wind: no memory for %d samples", s.count);
        goto done;
    }
    sum_samples(&g, modes, 3 * (size_t)vertex_count, &s, weight);
    if (vec3_norm(g.sum) < 1e-6 * g.total) s.normal /= 2, s.tangential /= 2; // closed: wind passes both sides
    *surface = s;
    s = (solver_wind_surface){0};
done:
    fem_free(weight), fem_free(g.place), fem_free(g.area), fem_free(g.sample), fem_free(g.nearest);
    solver_wind_surface_destroy(&s);
    return status;
}
