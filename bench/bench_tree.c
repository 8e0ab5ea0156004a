// The tree of domains: cost against the number of domains for chains, stars and binary trees, and a tree like the oak
// of Barbič and Zhao 2011 (41 branches with r = 20 in 5 classes, 1,394 leaves with r = 8), with the parts of a step,
// beside the paper's 29 ms. All StVK, two passes per step, one thread unless said.
#include "bench/bench.h"
#include "bench/plot.h"
#include "tests/tree_body.h"

enum { SIZES = 7 };
static const int counts[SIZES] = {10, 30, 100, 300, 1000, 3000, 10000};

typedef struct part {
    tree_body           body;
    cubature_polynomial polynomial;
    cubature_batch     *batch;
    domain_interface   *interfaces;
    int                 interface_count;
} part;

// A bar of StVK with r modes and `ends` places for children: the end face, and from the second on single elements.
static void part_create(part *p, double length, double width, int cells, int r, int ends) {
    fem_mesh     mesh = {0};
    fem_material m = fem_material_default();
    const double low[3] = {0, -width / 2, -width / 2}, high[3] = {length, width / 2, width / 2};
    const int    n[3] = {cells, 2, 2};
    const char  *end = "x1";
    m.kind = FEM_STVK, m.young = 2e6, m.poisson = 0.3, m.density = 1000;
    bench_try(fem_generate_box(&mesh, FEM_T4, low, high, n));
    bench_try(fem_mesh_set_material(&mesh, &m));
    tree_body_options           o = {.root = "x0", .end_count = ends > 0, .ends = &end, .r = r};
    cubature_polynomial_options po = cubature_polynomial_default_options();
    tree_body                  *b = &p->body;
    bench_try(tree_body_create(b, &mesh, &o));
    bench_try(cubature_polynomial_create(&p->polynomial, b->body, r, b->U, &po, NULL));
    bench_try(cubature_batch_create(&p->batch, &p->polynomial));
    p->interfaces = fem_calloc((size_t)ends, sizeof *p->interfaces);
    for (p->interface_count = 0; p->interface_count < ends; p->interface_count++) {
        domain_interface *interface = &p->interfaces[p->interface_count];
        if (p->interface_count == 0) {
            bench_try(tree_body_interface(b, fem_mesh_vertex_set(&b->mesh, end), NULL, interface));
            continue;
        }
        int first = b->mesh.element_count / 4,
            element = first + (p->interface_count * 7919) % (b->mesh.element_count - first);
        fem_set set = {.count = 4, .items = b->mesh.elements + 4 * element};
        bench_try(tree_body_interface(b, &set, NULL, interface));
    }
}

static void part_destroy(part *p) {
    for (int k = 0; k < p->interface_count; k++) domain_interface_destroy(&p->interfaces[k]);
    fem_free(p->interfaces);
    cubature_batch_destroy(p->batch);
    cubature_polynomial_destroy(&p->polynomial);
    tree_body_destroy(&p->body);
}

static solver_tree_class part_class(const part *p, const char *name) {
    solver_tree_class c = tree_body_class(&p->body, name);
    c.forces = cubature_polynomial_forces(&p->polynomial);
    c.batch = p->batch;
    c.interface_count = p->interface_count, c.interfaces = p->interfaces;
    c.damping_stiffness = 0.002;
    return c;
}

// Seconds per step, the best of several runs, and the report of the last run.
static double measure(solver_tree *tree, int steps, int runs, solver_tree_report *report) {
    double best = INFINITY;
    for (int run = 0; run < runs; run++) {
        solver_tree_report before = solver_tree_get_report(tree);
        double             begin = fem_cpu_seconds();
        for (int k = 0; k < steps; k++) bench_try(solver_tree_step(tree));
        double seconds = (fem_cpu_seconds() - begin) / steps;
        if (seconds > best) continue;
        best = seconds;
        *report = solver_tree_get_report(tree);
        report->seconds_frames -= before.seconds_frames, report->seconds_forces -= before.seconds_forces;
        report->seconds_up -= before.seconds_up, report->seconds_down -= before.seconds_down;
        report->seconds_rest -= before.seconds_rest;
        report->steps -= before.steps;
    }
    return best;
}

static solver_tree *make(int class_count, const solver_tree_class *classes, int count,
                         const solver_tree_instance *instances, const solver_tree_options *o) {
    solver_tree *tree = NULL;
    const double gravity[3] = {0, 0, -1};
    bench_try(solver_tree_create(&tree, class_count, classes, count, instances, o));
    solver_tree_set_gravity(tree, gravity);
    return tree;
}

// ---- cost against the number of domains -------------------------------------------------------------------------

static void scaling(int r) {
    const char *names[3] = {"chain", "star", "binary tree"};
    char        title[64], path[64];
    snprintf(title, sizeof title, "Cost of a step, r = %d", r);
    plot *figure = plot_create(title, "domains", "ms per step", true, true);
    printf("   r = %d: ms per step (two passes, L3)\n   %-12s", r, "domains");
    for (int k = 0; k < SIZES; k++) printf(" %9d", counts[k]);
    printf("   exponent\n");
    for (int shape = 0; shape < 3; shape++) {
        double x[SIZES], y[SIZES], sx = 0, sy = 0, sxx = 0, sxy = 0;
        part   link = {0}, hub = {0};
        part_create(&link, 1, 0.2, 6, r, 3);
        part_create(&hub, 1, 0.2, 6, r, shape == 1 ? counts[SIZES - 1] : 1);
        solver_tree_class classes[2] = {part_class(&link, "link"), part_class(&hub, "hub")};
        printf("   %-12s", names[shape]);
        for (int k = 0; k < SIZES; k++) {
            int                   n = counts[k];
            solver_tree_instance *list = fem_calloc((size_t)n, sizeof *list);
            solver_tree_options   o = solver_tree_default_options();
            solver_tree_report    report;
            o.time_step = 1e-3;
            for (int i = 0; i < n; i++) {
                list[i] = (solver_tree_instance){.scale = 1, .stiffness = 1, .parent = i - 1};
                if (shape == 1) list[i].parent = i == 0 ? -1 : 0, list[i].class_index = i == 0, list[i].interface = i;
                if (shape == 1 && i > 0) list[i].interface = i - 1;
                if (shape == 2) list[i].parent = i == 0 ? -1 : (i - 1) / 2, list[i].interface = 1 + i % 2;
            }
            solver_tree *tree = make(2, classes, n, list, &o);
            int          steps = n < 100 ? 200 : n < 1000 ? 30 : 4;
            measure(tree, 2, 1, &report);
            x[k] = n, y[k] = 1e3 * measure(tree, steps, 4, &report);
            printf(" %9.3f", y[k]);
            sx += log(x[k]), sy += log(y[k]), sxx += log(x[k]) * log(x[k]), sxy += log(x[k]) * log(y[k]);
            solver_tree_destroy(tree);
            fem_free(list);
        }
        printf("   %.3f\n", (SIZES * sxy - sx * sy) / (SIZES * sxx - sx * sx));
        plot_series(figure, names[shape], SIZES, x, y);
        part_destroy(&link);
        part_destroy(&hub);
    }
    snprintf(path, sizeof path, "out/bench/tree_cost_r%d.svg", r);
    plot_write(figure, path);
}

// ---- the oak ----------------------------------------------------------------------------------------------------

static void oak(void) {
    enum { CLASSES = 6, BRANCHES = 41, LEAVES = 34, ALL = BRANCHES * (1 + LEAVES) };
    part                 parts[CLASSES] = {0};
    solver_tree_class    classes[CLASSES];
    solver_tree_instance list[ALL];
    const char          *names[CLASSES] = {"trunk", "branch A", "branch B", "branch C", "branch D", "leaf"};
    for (int k = 0; k < CLASSES; k++) {
        bool leaf = k == CLASSES - 1;
        part_create(&parts[k], leaf ? 0.1 : 1 + 0.2 * k, leaf ? 0.02 : 0.1, leaf ? 4 : 8, leaf ? 8 : 20,
                    leaf ? 0 : LEAVES + 11);
        classes[k] = part_class(&parts[k], names[k]);
    }
    int n = 0;
    for (int b = 0; b < BRANCHES; b++) { // one trunk, ten branches on it, three on each of those
        int parent = b == 0 ? -1 : b <= 10 ? 0 : 1 + (b - 11) / 3;
        list[n++] = (solver_tree_instance){.class_index = b == 0 ? 0 : 1 + b % 4,
                                           .parent = parent,
                                           .interface = b == 0    ? 0
                                                        : b <= 10 ? b
                                                                  : 1 + b % 3,
                                           .scale = b == 0    ? 1
                                                    : b <= 10 ? 0.7
                                                              : 0.4,
                                           .stiffness = 1};
    }
    for (int b = 0; b < BRANCHES; b++)
        for (int k = 0; k < LEAVES; k++)
            list[n++] = (solver_tree_instance){
                .class_index = CLASSES - 1, .parent = b, .interface = 11 + k, .scale = 1, .stiffness = 1};
    solver_tree_options o = solver_tree_default_options();
    o.time_step = 1e-3;
    printf("\n   like the oak of the paper: %d domains, %d branches r = 20 in 5 classes, %d leaves r = 8\n", ALL,
           BRANCHES, BRANCHES * LEAVES);
    printf("   %-28s %9s | %7s %7s %7s %7s %7s | paper 29 ms (one 2010 core)\n", "ms per step", "all", "frames",
           "forces", "up", "down", "rest");
    for (int variant = 0; variant < 5; variant++) {
        const char *rows[] = {"L3, 2 passes", "L3, 1 pass", "L3, 2 passes, plain", "L1, 2 passes (plain)",
                              "L3, 2 passes, all threads"};
        o.passes = variant == 1 ? 1 : 2, o.plain = variant == 2;
        o.subtree = variant == 3 ? SOLVER_INTERFACE : SOLVER_ARTICULATED;
        fem_set_threads(variant == 4 ? 0 : 1);
        solver_tree       *tree = make(CLASSES, classes, n, list, &o);
        solver_tree_report r = {0};
        measure(tree, 2, 1, &r);
        double seconds;
        if (variant == 4) {
            seconds = INFINITY;
            for (int run = 0; run < 5; run++) {
                double begin = fem_seconds();
                for (int k = 0; k < 20; k++) bench_try(solver_tree_step(tree));
                seconds = fmin(seconds, (fem_seconds() - begin) / 20);
            }
        } else
            seconds = measure(tree, variant == 2 || variant == 3 ? 5 : 20, 5, &r);
        double per = 1e3 / (r.steps > 0 ? r.steps : 1);
        printf("   %-28s %9.3f | %7.3f %7.3f %7.3f %7.3f %7.3f | %s%d left to the plain version\n", rows[variant],
               1e3 * seconds, per * r.seconds_frames, per * r.seconds_forces, per * r.seconds_up, per * r.seconds_down,
               per * r.seconds_rest, variant == 4 ? "wall clock, " : "", r.plain);
        solver_tree_destroy(tree);
    }
    fem_set_threads(1);
    for (int k = 0; k < CLASSES; k++) part_destroy(&parts[k]);
}

int main(int argc, char **argv) {
    (void)argc;
    bench_header(argv, "tree of domains");
    fem_set_threads(1);
    scaling(8);
    scaling(20);
    oak();
    return 0;
}
