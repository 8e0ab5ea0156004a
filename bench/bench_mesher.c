// The mesher on the shared surfaces at three sizes, on one core: elements, angles, distances, time. Goals: 100K
// elements in less than 2 s, no dihedral angle below 10.7 degrees. The baseline of the time is the winding number as a
// plain sum over all triangles, at as many points as the lattice has; it is measured on a few of them.
#include "bench/bench.h"

#include "libfem/surface_tree.h"

typedef struct job {
    fem_surface        surface;
    fem_mesher_options options;
    fem_mesh           mesh;
    fem_mesher_report  report;
} job;

static void fill(void *context) {
    job *j = context;
    bench_try(fem_mesh_fill_surface(&j->mesh, &j->surface, &j->options, &j->report, NULL));
}

// Seconds of a plain sum at a point, from a tree that has no node far enough: every triangle by itself.
static double plain_sum(const fem_surface *s) {
    double begin = fem_cpu_seconds(), sum = 0;
    int    points = 1 + 2000000 / s->triangle_count;
    for (int i = 0; i < points; i++)
        for (int t = 0; t < s->triangle_count; t++) {
            const double *p = s->vertices + 3 * (size_t)(i % s->vertex_count);
            double        a[3][3], l[3], n[3];
            for (int k = 0; k < 3; k++) {
                vec3_sub(a[k], s->vertices + 3 * (size_t)s->triangles[3 * t + k], p);
                a[k][0] += 1e-3, l[k] = vec3_norm(a[k]);
            }
            vec3_cross(n, a[1], a[2]);
            sum += atan2(vec3_dot(a[0], n), l[0] * l[1] * l[2] + vec3_dot(a[0], a[1]) * l[2] +
                                                vec3_dot(a[1], a[2]) * l[0] + vec3_dot(a[2], a[0]) * l[1]);
        }
    return isfinite(sum) ? (fem_cpu_seconds() - begin) / points : 0;
}

static double lattice_points(const job *j) {
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY}, points = 2;
    for (int i = 0; i < 3 * j->surface.vertex_count; i++)
        low[i % 3] = fmin(low[i % 3], j->surface.vertices[i]), high[i % 3] = fmax(high[i % 3], j->surface.vertices[i]);
    for (int k = 0; k < 3; k++) points *= ceil((high[k] - low[k]) / j->options.size) + 5;
    return points;
}

static void measure(const char *folder, const char *name, double wanted) {
    char        path[512];
    job         j = {.options = {.method = FEM_STUFFING, .type = FEM_T4, .size = 1}};
    fem_quality q;
    snprintf(path, sizeof path, "%s/surfaces/%s", folder, name);
    bench_try(fem_surface_read(&j.surface, path));
    j.options.size = cbrt(fem_mesher_estimate(&j.surface, &j.options) / wanted);
    bench_time time = bench_measure(wanted < 5e4 ? 3 : 2, fill, &j);
    bench_try(fem_mesh_quality(&j.mesh, &q));
    double plain = plain_sum(&j.surface) * lattice_points(&j);
    printf("   %-28s %8d | %6.2f %7.2f | %7.3f %7.3f %7.4f | %6.2f%% | %7.3f %7.3f | %8.2f %7.1f\n", name,
           j.mesh.element_count, q.min_dihedral, q.max_dihedral, j.report.to_mesh / j.options.size,
           j.report.to_surface / j.options.size, j.report.mean_to_mesh / j.options.size,
           100 * j.report.lost_area / j.report.area, time.minimum, time.median, plain, plain / time.minimum);
    fflush(stdout);
    fem_mesh_destroy(&j.mesh);
    fem_surface_destroy(&j.surface);
}

int main(int argc, char **argv) {
    (void)argc;
    static const char *const names[] = {"bunny.obj",
                                        "koala.obj.gz",
                                        "hand.obj.gz",
                                        "plane.obj.gz",
                                        "kenney/tree_default_fall.obj",
                                        "kenney/tree_oak_fall.obj",
                                        "kenney/tree_pineRoundA.obj",
                                        "kenney/tree_small_fall.obj"};
    const char              *folder = getenv("LIMBER_DATA");
    bench_header(argv,
                 "filling surfaces by stuffing, one core; goals: 100K elements in 2 s, angles above 10.7 degrees");
    if (!folder) {
        printf("   skipped: LIMBER_DATA is not set\n");
        return 0;
    }
    fem_set_threads(1);
    printf("   bounds: 10.78 .. 164.74 degrees. Distances in sizes; lost: share of the surface farther than "
           "half a size.\n");
    printf("   %-28s %8s | %6s %7s | %7s %7s %7s | %7s | %7s %7s | %8s %7s\n", "surface", "elements", "angles", "",
           "to mesh", "back", "mean", "lost", "s min", "median", "plain s", "ratio");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (double wanted = 1e3; wanted < 2e5; wanted *= 10) measure(folder, names[i], wanted);
    return 0;
}
