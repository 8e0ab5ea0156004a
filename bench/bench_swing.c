// A flower swings by about 45 degrees (P1, Fig. 7): it starts at rest with a velocity along the first vibration mode of
// the whole mesh, and the tip of its bloom over five periods is compared with full nonlinear FEM at the same step, for
// L1, L2 and L3. Beside it how far interfaces were from moving rigidly (Fig. 3) and the gaps between the copies of
// their vertices (Fig. 8). Picture: out/bench/swing.svg.
#include "bench/bench.h"
#include "bench/plot.h"
#include "bench/tree_bodies.h"

enum { PERIODS = 5, PER_PERIOD = 100, STEPS = PERIODS * PER_PERIOD };
static const double pi = 3.14159265358979323846;

typedef struct swing {
    fem_mesh       mesh;
    const fem_set *foot;
    domain_tree    domains;
    int            tip, neck, below;    // vertices: a corner of the bloom, the top of the stem, a little below
    double         omega, speed, *mode; // of the full mesh; the start is speed * mode
    double         step, seconds, angle, amplitude;
    double         x[3 * STEPS]; // of the tip, relative to rest
} swing;

static int vertex_near(const fem_mesh *mesh, const double x[3]) {
    int best = 0;
    for (int v = 1; v < mesh->vertex_count; v++)
        if (vec3_distance(mesh->vertices + 3 * (size_t)v, x) < vec3_distance(mesh->vertices + 3 * (size_t)best, x))
            best = v;
    return best;
}

// Turning points are left out: from the first to the last crossing of the largest component through zero.
static double frequency(const swing *s, const double *x) {
    double largest[3] = {0}, first = 0, last = 0;
    int    axis = 0, count = 0;
    for (int k = 0; k < STEPS; k++)
        for (int i = 0; i < 2; i++) largest[i] = fmax(largest[i], fabs(x[3 * k + i]));
    if (largest[1] > largest[0]) axis = 1;
    for (int k = 1; k < STEPS; k++) {
        double a = x[3 * (k - 1) + axis], b = x[3 * k + axis];
        if (!(a * b < 0)) continue;
        last = s->step * (k + a / (a - b));
        if (count++ == 0) first = last;
    }
    return count > 1 ? (count - 1) / (2 * (last - first)) : 0;
}

static double deviation(const swing *s, const double *x) {
    double sum = 0;
    for (int k = 0; k < 3 * STEPS; k++) sum += (x[k] - s->x[k]) * (x[k] - s->x[k]);
    return sqrt(sum / STEPS) / s->amplitude;
}

static void run_full(swing *s, double height) {
    fem_body_options      bo = fem_body_default_options();
    modes_lanczos_options lo = modes_lanczos_default_options();
    solver_options        so = solver_default_options();
    modes_basis           basis = {0};
    fem_body             *body = NULL;
    solver_full          *solver = NULL;
    fem_sparse            K = {0}, M = {0};
    size_t                n = 3 * (size_t)s->mesh.vertex_count;
    unsigned char        *fixed = fem_calloc(n, 1);
    s->mode = fem_calloc(n, sizeof *s->mode);
    for (int i = 0; i < s->foot->count; i++) memset(fixed + 3 * (size_t)s->foot->items[i], 1, 3);
    bench_try(fem_body_create(&body, &s->mesh, &bo));
    bench_try(fem_body_matrix(body, &K));
    bench_try(fem_body_matrix(body, &M));
    fem_body_evaluate(body, s->mode, NULL, NULL, &K);
    fem_body_mass(body, FEM_MASS_CONSISTENT, &M);
    modes_problem problem = {.mesh = &s->mesh, .K = &K, .M = &M, .fixed = fixed};
    lo.count = 4;
    bench_try(modes_lanczos(&problem, &lo, NULL, &basis, NULL));
    s->omega = sqrt(basis.omega2[0]);
    s->step = 2 * pi / s->omega / PER_PERIOD;
    s->speed = 0.6 * height * s->omega / vec3_norm(basis.U + 3 * (size_t)s->tip);
    for (size_t i = 0; i < n; i++) s->mode[i] = s->speed * basis.U[i];
    so.time_step = s->step, so.newton_iterations = 60;
    bench_try(solver_full_create(&solver, body, fixed, &so));
    bench_try(solver_full_set_state(solver, 0, NULL, s->mode));
    double begun = fem_cpu_seconds();
    for (int k = 0; k < STEPS; k++) {
        bench_try(solver_full_step(solver));
        const double *u = solver_full_state(solver)->u;
        double        along[3];
        vec3_sub(along, s->mesh.vertices + 3 * (size_t)s->neck, s->mesh.vertices + 3 * (size_t)s->below);
        vec3_axpy(along, 1, u + 3 * (size_t)s->neck);
        vec3_axpy(along, -1, u + 3 * (size_t)s->below);
        memcpy(s->x + 3 * k, u + 3 * (size_t)s->tip, 3 * sizeof *u);
        s->amplitude = fmax(s->amplitude, vec3_norm(s->x + 3 * k));
        s->angle = fmax(s->angle, acos(along[2] / vec3_norm(along)));
    }
    s->seconds = fem_cpu_seconds() - begun;
    solver_full_destroy(solver);
    modes_basis_destroy(&basis);
    fem_sparse_destroy(&K), fem_sparse_destroy(&M);
    fem_body_destroy(body);
    fem_free(fixed);
}

// The widest gap between the copies of a vertex that a domain shares with its parent, m.
static double widest_gap(const solver_assembly *a, solver_tree *tree, double **u) {
    double gap = 0;
    for (int i = 0; i < a->count; i++) solver_assembly_show_instance(a, tree, i, u[i], NULL);
    for (int i = 0; i < a->count; i++) {
        int parent = a->instances[i].parent;
        for (int k = a->seam_start[i]; parent >= 0 && k < a->seam_start[i + 1]; k++)
            gap = fmax(gap,
                       vec3_distance(u[i] + 3 * (size_t)a->seam_local[k], u[parent] + 3 * (size_t)a->seam_vertex[k]));
    }
    return gap;
}

// The same energy along the first mode of the tree with exact inertia.
static void start_tree(const swing *s, const solver_assembly *a, solver_tree *tree) {
    solver_tree_options o = solver_tree_default_options();
    solver_tree        *exact = NULL;
    double              omega[2], along = 0;
    bench_try(solver_assembly_tree(&exact, a, false, &o));
    size_t  dofs = (size_t)solver_tree_dofs(exact);
    double *shapes = fem_alloc(2 * dofs, sizeof *shapes), *v = fem_alloc(3 * (size_t)a->vertex_count, sizeof *v);
    double *u = fem_alloc(3 * (size_t)a->vertex_count, sizeof *u);
    bench_try(solver_tree_frequencies(exact, 2, omega, shapes));
    for (int sign = 0; sign < 2; sign++) {
        size_t from = 0;
        dense_scale((int)dofs, sign == 0 ? s->speed * omega[0] : along < 0 ? -1 : 1, shapes);
        for (int i = 0; i < a->count; i++) {
            bench_try(solver_tree_set_state(tree, i, NULL, shapes + from));
            from += (size_t)a->classes[a->instances[i].class_index]->basis.r;
        }
        solver_assembly_show(a, tree, u, v);
        along = vec3_dot(v + 3 * (size_t)s->tip, s->mode + 3 * (size_t)s->tip);
    }
    fem_free(shapes), fem_free(u), fem_free(v);
    solver_tree_destroy(exact);
}

static void run_tree(swing *s, const solver_assembly *a, int modes, solver_subtree subtree, const char *name,
                     plot *figure, double truth) {
    solver_tree_options o = solver_tree_default_options();
    solver_tree        *tree = NULL;
    double              x[3 * STEPS] = {0}, rest[3], most = 0, gap = 0, gaps = 0, t[STEPS], height[STEPS];
    double            **u = fem_calloc((size_t)a->count, sizeof *u), seconds = 0;
    int                 point, done = 0;
    for (int i = 0; i < a->count; i++)
        u[i] = fem_alloc(3 * (size_t)a->classes[a->instances[i].class_index]->mesh.vertex_count, sizeof **u);
    o.time_step = s->step, o.subtree = subtree;
    bench_try(solver_assembly_tree(&tree, a, false, &o));
    bench_try(solver_assembly_point(a, tree, s->tip, &point));
    solver_tree_point(tree, point, rest, NULL);
    start_tree(s, a, tree);
    for (int i = 0; i < a->count && subtree != SOLVER_ARTICULATED; i++)
        bench_try(solver_tree_set_damping(tree, i, 0, 0.01 / s->omega));
    for (int k = 0; k < STEPS; k++, done++) {
        double begun = fem_cpu_seconds();
        if (solver_tree_step(tree) != FEM_OK) break;
        seconds += fem_cpu_seconds() - begun;
        solver_tree_point(tree, point, x + 3 * k, NULL);
        vec3_axpy(x + 3 * k, -1, rest);
        for (int i = 1; i < a->count; i++) most = fmax(most, solver_tree_deviation(tree, i));
        double now = widest_gap(a, tree, u);
        gap = fmax(gap, now), gaps += now / STEPS;
        t[k] = s->step * (k + 1), height[k] = x[3 * k + 1];
    }
    double f = frequency(s, x);
    printf("   %-4s %6d | %9.4f %8.3f | %8.2f%% | %9.4f | %7.2f%% %7.2f%% | %9.1f %6.0fx%s\n", name, modes, f,
           f / truth, 100 * deviation(s, x), most, 100 * gaps / 0.02, 100 * gap / 0.02,
           1e6 * seconds / (done > 0 ? done : 1), s->seconds / seconds, done < STEPS ? "  diverged" : "");
    fflush(stdout);
    char title[32];
    snprintf(title, sizeof title, "%s, %d modes", name, modes);
    if (done == STEPS && (modes == 20 || modes == 40)) plot_series(figure, title, STEPS, t, height);
    for (int i = 0; i < a->count; i++) fem_free(u[i]);
    fem_free(u);
    solver_tree_destroy(tree);
}

int main(int argc, char **argv) {
    (void)argc;
    bench_header(argv, "a flower swings: L1, L2, L3 against full nonlinear FEM (P1, Fig. 7, 3 and 8)");
    static swing   s;
    domain_options cut = domain_default_options();
    const double   height = 1.06;
    double         t[STEPS], y[STEPS];
    flower_body(&s.mesh, FEM_T4);
    s.foot = fem_mesh_vertex_set(&s.mesh, "foot");
    s.tip = vertex_near(&s.mesh, (double[]){0.1, 0.1, height});
    s.neck = vertex_near(&s.mesh, (double[]){0.03, 0.03, 1});
    s.below = vertex_near(&s.mesh, (double[]){0.03, 0.03, 0.9});
    cut.method = DOMAIN_REGIONS, cut.fixed = s.foot->items, cut.fixed_count = s.foot->count;
    bench_try(domain_decompose(&s.domains, &s.mesh, &cut));
    run_full(&s, height);
    double truth = frequency(&s, s.x);
    printf(
        "   %d T4, %d domains; first mode %.4f Hz, %d steps of %.4f s; the tip swings %.2f m of %.2f, the top of the "
        "stem turns by %.0f degrees; full FEM swings at %.4f Hz, %.1f ms a step\n",
        s.mesh.element_count, s.domains.count, s.omega / (2 * pi), STEPS, s.step, s.amplitude, height,
        180 / pi * s.angle, truth, 1e3 * s.seconds / STEPS);
    printf("   %-4s %6s | %9s %8s | %9s | %9s | %8s %8s | %9s %7s\n", "", "modes", "Hz", "/ full", "RMS error",
           "|A - R|", "gap mean", "largest", "us/step", "faster");
    plot *figure = plot_create("Bloom of a flower", "s", "y of its tip, m", false, false);
    for (int k = 0; k < STEPS; k++) t[k] = s.step * (k + 1), y[k] = s.x[3 * k + 1];
    plot_series(figure, "full FEM", STEPS, t, y);
    for (int modes = 20; modes <= 40; modes += 10) {
        solver_assembly_options o = solver_assembly_default_options();
        solver_assembly        *a = NULL;
        o.total = modes * s.domains.count, o.damping_stiffness = 0;
        bench_try(solver_assembly_create(&a, &s.mesh, &s.domains, s.foot->count, s.foot->items, &o, NULL, NULL));
        if (modes == 20) run_tree(&s, a, modes, SOLVER_INTERFACE, "L1", figure, truth);
        if (modes == 20) run_tree(&s, a, modes, SOLVER_CENTER, "L2", figure, truth);
        run_tree(&s, a, modes, SOLVER_ARTICULATED, "L3", figure, truth);
        solver_assembly_destroy(a);
    }
    plot_write(figure, "out/bench/swing.svg");
    printf("   gaps are parts of an element's edge; P1: L1 2x, L2 1.5x the lowest frequency, 55x faster. L1 and L2 "
           "keep no energy and are damped by 0.5%%: "
           "without it they diverge\n");
    domain_tree_destroy(&s.domains);
    fem_free(s.mode);
    fem_mesh_destroy(&s.mesh);
    return 0;
}
