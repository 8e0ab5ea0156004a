// Bodies of the size of those in Table 1 of Barbič and Zhao 2011 (P1): precomputation and the time of a step with its
// parts, beside the paper's, which were taken on one core of 2010 with L1. Here L3, two passes. "Core" is what the
// paper calls it: frames, system forces, the passes over the tree; "StVK" the forces of the domains and the solution
// for their modes, which here is part of the pass up, so that it is told apart only by the forces. The larger bodies
// come with LIMBER_LONG; so does truss_tower_59k of LIMBER_DATA. `bench_domains station` is one row.
#include "bench/bench.h"
#include "bench/tree_bodies.h"

typedef struct table_row {
    const char *name;
    int         elements, domains, dofs, depth; // of the paper
    double      minutes, core, step;            // precomputation; part of the core; ms
} table_row;
static const table_row flower_row = {"flower", 7602, 12, 240, 3, 0.6, 0.22, 6.5};
static const table_row letters_row = {"letters", 83753, 15, 160, 8, 4.3, 0.21, 1.7};
static const table_row dragon_row = {"dragon", 160553, 40, 454, 5, 5.1, 0.45, 1.6};
static const table_row scanned_row = {"scanned", 160553, 40, 454, 5, 5.1, 0.45, 1.6};
static const table_row station_row = {"station", 107556, 48, 921, 4, 0.8, 0.25, 4.5};

static void print_row(const table_row *p, const fem_mesh *mesh, const domain_tree *domains, double minutes,
                      solver_tree *tree) {
    enum { STEPS = 20, RUNS = 4 };
    double             best = INFINITY;
    solver_tree_report r = {0};
    for (int run = 0; run < RUNS; run++) {
        solver_tree_report before = solver_tree_get_report(tree);
        double             begun = fem_cpu_seconds();
        for (int k = 0; k < STEPS; k++) bench_try(solver_tree_step(tree));
        double ms = 1e3 * (fem_cpu_seconds() - begun) / STEPS;
        if (ms > best) continue;
        best = ms, r = solver_tree_get_report(tree);
        r.seconds_frames -= before.seconds_frames, r.seconds_forces -= before.seconds_forces;
        r.seconds_up -= before.seconds_up, r.seconds_down -= before.seconds_down, r.seconds_rest -= before.seconds_rest;
    }
    double all = r.seconds_frames + r.seconds_forces + r.seconds_up + r.seconds_down + r.seconds_rest;
    printf("   %-8s %8d %3s %3d %5d %3d | %8.2f %8.3f | %5.1f%% %5.1f%% %5.1f%% %5.1f%% %5.1f%%\n", p->name,
           mesh->element_count, mesh->type == FEM_T4 ? "T4" : "H8", domains->count, solver_tree_free(tree),
           solver_tree_depth(tree), minutes, best, 100 * r.seconds_frames / all, 100 * r.seconds_forces / all,
           100 * r.seconds_up / all, 100 * r.seconds_down / all, 100 * r.seconds_rest / all);
    printf("   %-8s %8d     %3d %5d %3d | %8.2f %8.3f | core %.0f%%, StVK %.0f%%; the step is %.1f times as fast\n",
           "  paper", p->elements, p->domains, p->dofs, p->depth, p->minutes, p->step, 100 * p->core,
           100 - 100 * p->core, p->step / best);
    fflush(stdout);
}

// Takes mesh and domains over. Domains whose name begins with `rigid` get no modes.
static void row(const table_row *p, fem_mesh *mesh, domain_tree *domains, int fixed_count, const int *fixed,
                const char *rigid) {
    solver_assembly_options o = solver_assembly_default_options();
    solver_tree_options     to = solver_tree_default_options();
    solver_assembly        *a = NULL;
    solver_tree            *tree = NULL;
    const double            gravity[3] = {0, 0, -1};
    solver_domain_options  *own = fem_calloc((size_t)domains->count, sizeof *own);
    for (int d = 0; d < domains->count; d++) {
        const char *name = domains->name && domains->name[d] ? domains->name[d] : "";
        own[d] = solver_assembly_domain_options(&o);
        own[d].modes = rigid && strncmp(name, rigid, strlen(rigid)) == 0 ? 0 : SOLVER_MODES_SHARED;
        own[d].damping_stiffness = 1e-3;
    }
    o.total = p->dofs, o.domains = own;
    double begun = fem_cpu_seconds();
    bench_try(solver_assembly_create(&a, mesh, domains, fixed_count, fixed, &o, NULL, NULL));
    double minutes = (fem_cpu_seconds() - begun) / 60;
    to.time_step = 1e-3;
    bench_try(solver_assembly_tree(&tree, a, false, &to));
    if (!a->held) {
        const double        unturned[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, none[3] = {0}, spin[3] = {0.3, 1, 0.2};
        solver_frame_motion start;
        solver_assembly_place(a, unturned, none, none, spin, &start);
        bench_try(solver_tree_set_root(tree, 0, &start));
    }
    solver_tree_set_gravity(tree, gravity);
    print_row(p, mesh, domains, minutes, tree);
    solver_tree_destroy(tree);
    solver_assembly_destroy(a);
    domain_tree_destroy(domains);
    fem_free(own);
    fem_mesh_destroy(mesh);
}

static void cut(domain_tree *domains, const fem_mesh *mesh, domain_options options, int fixed_count, const int *fixed) {
    options.fixed = fixed, options.fixed_count = fixed_count;
    bench_try(domain_decompose(domains, mesh, &options));
}

// Eight letters of a few bars each, joined by seven links, flying free: 15 domains. Bars are called "letter 3/1".
static void letters_body(fem_mesh *mesh, domain_tree *domains) {
    enum { LETTERS = 8, MANY = 2 * LETTERS - 1 };
    body_pieces    b = {0};
    domain_options options = domain_default_options();
    char           text[MANY][32];
    const char    *names[MANY];
    for (int i = 0; i < LETTERS; i++) {
        double x = 10 * i, high = i % 2 ? 10 : 0;
        for (int bar = 0; bar < 4; bar++) {
            char name[32];
            snprintf(name, sizeof name, "letter %d/%d", i, bar);
            if (bar == 0) add_box(&b, name, x, x + 2, 0, 4, 0, 12);
            if (bar == 1) add_box(&b, name, x + 2, x + 6, 0, 4, high, high + 2);
            if (bar == 2) add_box(&b, name, x + 2, x + 6, 0, 4, 5, 7);
            if (bar == 3) add_box(&b, name, x + 6, x + 8, 0, 4, i % 3 ? 0 : 5, i % 3 ? 12 : 7);
        }
        snprintf(text[2 * i], sizeof text[0], "letter %d", i);
        names[2 * i] = text[2 * i];
        if (i == LETTERS - 1) break;
        snprintf(text[2 * i + 1], sizeof text[0], "link %d", i);
        names[2 * i + 1] = text[2 * i + 1];
        add_box(&b, text[2 * i + 1], x + 8, x + 10, 0, 4, 5, 7);
    }
    make_body(mesh, FEM_T4, &b, 0.1, 2, 1e6, 1000);
    int *label = fem_alloc((size_t)mesh->element_count, sizeof *label);
    for (int e = 0; e < mesh->element_count; e++)
        for (int k = 0; k < MANY; k++)
            if (strncmp(mesh->regions[mesh->region[e]].name, names[k], strlen(names[k])) == 0) label[e] = k;
    bench_try(domain_tree_from_labels(domains, mesh, label, MANY, names, &options));
    fem_free(label);
}

// A dragon that was scanned: the surface of dragon_100k, filled anew with about as many elements as the paper has. Its
// limbs are too few for 40 domains on five levels.
static void scanned_dragon(fem_mesh *mesh, const char *data) {
    char               path[1024];
    fem_mesh           coarse = {0};
    fem_surface        surface = {0};
    fem_material       material = fem_material_default();
    fem_mesher_options options = {.method = FEM_STUFFING, .type = FEM_T4, .size = 1};
    fem_mesher_report  report;
    snprintf(path, sizeof path, "%s/meshes/dragon_100k.veg.gz", data);
    bench_try(fem_mesh_read(&coarse, path));
    bench_try(fem_mesh_surface(&coarse, &surface.triangle_count, &surface.triangles, NULL));
    surface.vertex_count = coarse.vertex_count;
    surface.vertices = coarse.vertices;
    options.size = cbrt(fem_mesher_estimate(&surface, &options) / dragon_row.elements);
    for (int round = 0; round < 10; round++, options.size *= 1.01) { // until no part hangs by an edge
        bench_try(fem_mesh_fill_surface(mesh, &surface, &options, &report, NULL));
        if (report.hinged_parts == 0) break;
        fem_mesh_destroy(mesh);
    }
    material.kind = FEM_STVK, material.young = 1e6, material.density = 1000;
    bench_try(fem_mesh_set_material(mesh, &material));
    fem_free(surface.triangles);
    fem_mesh_destroy(&coarse);
}

// truss_tower_59k, full of loops, cut by METIS, with loops and feet closed by springs, under gravity: how wide the
// springs open, in edges of elements.
static void truss(const char *data) {
    enum { STEPS = 300 };
    char                    path[1024];
    fem_mesh                mesh = {0};
    domain_tree             domains = {0};
    domain_options          options = domain_default_options();
    solver_assembly_options o = solver_assembly_default_options();
    solver_tree_options     to = solver_tree_default_options();
    solver_assembly        *a = NULL;
    solver_tree            *tree = NULL;
    const double            gravity[3] = {0, 0, -9.81};
    int                    *fixed, fixed_count, point = 0;
    snprintf(path, sizeof path, "%s/meshes/truss_tower_59k.veg.gz", data);
    bench_try(fem_mesh_read(&mesh, path));
    snprintf(path, sizeof path, "%s/meshes/truss_tower_59k.bou", data);
    bench_try(fem_vertex_list_read(&fixed, &fixed_count, path, mesh.file_base, mesh.vertex_count));
    options.method = DOMAIN_METIS, options.count = 20;
    options.loops = DOMAIN_LOOPS_SPRINGS, options.feet = DOMAIN_FEET_SPRINGS;
    cut(&domains, &mesh, options, fixed_count, fixed);
    o.total = 20 * domains.count, o.damping_stiffness = 1e-3;
    bench_try(solver_assembly_create(&a, &mesh, &domains, fixed_count, fixed, &o, NULL, NULL));
    to.time_step = 0.01;
    bench_try(solver_assembly_tree(&tree, a, false, &to));
    solver_tree_set_gravity(tree, gravity);
    double begun = fem_cpu_seconds(), gap = 0, sag = 0,
           edge = vec3_distance(mesh.vertices + 3 * (size_t)mesh.elements[0],
                                mesh.vertices + 3 * (size_t)mesh.elements[1]);
    for (int k = 0; k < STEPS; k++) bench_try(solver_tree_step(tree));
    double ms = 1e3 * (fem_cpu_seconds() - begun) / STEPS;
    for (int k = 0; k < a->joint_count; k++) { // their points are the first of the tree
        double x[2][3];
        memcpy(x[1], a->joints[k].anchor, sizeof x[1]);
        solver_tree_point(tree, point++, x[0], NULL);
        if (a->joints[k].ends[1].instance >= 0) solver_tree_point(tree, point++, x[1], NULL);
        gap = fmax(gap, vec3_distance(x[0], x[1]));
    }
    double *u = fem_alloc(3 * (size_t)mesh.vertex_count, sizeof *u);
    solver_assembly_show(a, tree, u, NULL);
    for (int v = 0; v < mesh.vertex_count; v++) sag = fmax(sag, vec3_norm(u + 3 * (size_t)v));
    printf("   truss_tower_59k: %d domains, %d closures, %d feet beside the root, %d springs; %d steps of %g s under "
           "gravity: moved by %.3g m, widest gap %.3g m, %.2g of an edge; %.2f ms a step, %.1f iterations\n",
           domains.count, domains.report.closures, domains.report.grounds, a->joint_count, STEPS, to.time_step, sag,
           gap, gap / edge, ms, (double)solver_tree_get_report(tree).spring_iterations / STEPS);
    fem_free(u);
    solver_tree_destroy(tree);
    solver_assembly_destroy(a);
    domain_tree_destroy(&domains);
    fem_mesh_destroy(&mesh);
    fem_free(fixed);
}

static bool chosen(int argc, char **argv, const char *name) {
    return argc > 1 ? strcmp(argv[1], name) == 0 : strcmp(name, "flower") == 0 || getenv("LIMBER_LONG") != NULL;
}

int main(int argc, char **argv) {
    bench_header(argv, "bodies of Table 1 of Barbič and Zhao 2011");
    fem_mesh       mesh = {0};
    domain_tree    domains = {0};
    domain_options regions = domain_default_options(), limbs = regions;
    const char    *data = getenv("LIMBER_DATA");
    regions.method = DOMAIN_REGIONS;
    limbs.method = DOMAIN_METIS, limbs.count = 40;
    fem_set_threads(1);
    printf("   %-8s %8s %3s %3s %5s %3s | %8s %8s | %6s %6s %6s %6s %6s\n", "", "elements", "", "d", "dofs", "D",
           "pre, min", "ms/step", "frames", "forces", "up", "down", "rest");
    if (chosen(argc, argv, "flower")) {
        flower_body(&mesh, FEM_T4);
        const fem_set *held = fem_mesh_vertex_set(&mesh, "foot");
        cut(&domains, &mesh, regions, held->count, held->items);
        row(&flower_row, &mesh, &domains, held->count, held->items, NULL);
    }
    if (chosen(argc, argv, "letters")) {
        letters_body(&mesh, &domains);
        row(&letters_row, &mesh, &domains, 0, NULL, "link");
    }
    if (chosen(argc, argv, "station")) {
        station_body(&mesh, 3);
        const fem_set *held = fem_mesh_vertex_set(&mesh, "dock");
        cut(&domains, &mesh, regions, held->count, held->items);
        row(&station_row, &mesh, &domains, held->count, held->items, NULL);
    }
    if (chosen(argc, argv, "dragon")) {
        dragon_body(&mesh, 2);
        const fem_set *held = fem_mesh_vertex_set(&mesh, "belly");
        cut(&domains, &mesh, regions, held->count, held->items);
        row(&dragon_row, &mesh, &domains, held->count, held->items, NULL);
    }
    if (data && chosen(argc, argv, "scanned")) {
        scanned_dragon(&mesh, data);
        cut(&domains, &mesh, limbs, 0, NULL);
        row(&scanned_row, &mesh, &domains, 0, NULL, NULL);
    }
    if (data && chosen(argc, argv, "truss")) truss(data);
    return 0;
}
