// Frequencies of linearised trees against full FEM: the eight lowest for L1, L2 and L3, with plain vibration modes and
// with the default bases, with and without the collars of the default interfaces. Beside them full FEM with rigid
// interfaces, which has the exact inertia: what it is off is the interface's error, what L1 and L2 are off beyond that
// is inertia's. P1: 2x for L1, 1.5x for L2. LIMBER_DATA adds the shared bodies, asked for 10, 20 and 40 domains, with
// the defaults of scenes: one row for each, and the time that the model takes.
#include "bench/bench.h"
#include "bench/tree_bodies.h"

enum { COUNT = 8 };

typedef struct variant {
    const char    *name;
    bool           plain;  // vibration modes
    double         collar; // of the assembly
    solver_subtree subtree;
} variant;
static const variant variants[] = {
    {"L1, vibration modes", true, 0, SOLVER_INTERFACE},   {"L2, vibration modes", true, 0, SOLVER_CENTER},
    {"L3, vibration modes", true, 0, SOLVER_ARTICULATED}, {"L1, interface-aware", false, 0, SOLVER_INTERFACE},
    {"L2, interface-aware", false, 0, SOLVER_CENTER},     {"L3, interface-aware", false, 0, SOLVER_ARTICULATED},
    {"L3, and collars", false, 1, SOLVER_ARTICULATED},    {"L3, default: deforming", false, 1, SOLVER_ARTICULATED},
};

static void print_row(const char *name, int dofs, const double *omega, const double *truth) {
    double worst = 0;
    printf("   %-26s %5d |", name, dofs);
    for (int k = 0; k < COUNT; k++) {
        printf(" %6.3f", omega[k] / truth[k]);
        worst = fmax(worst, fabs(omega[k] / truth[k] - 1));
    }
    printf(" | %6.2f%%\n", 100 * worst);
}

static void table(const char *name, const fem_mesh *mesh, const domain_tree *domains, int fixed_count, const int *fixed,
                  int total) {
    double truth[COUNT], rigid[COUNT], omega[COUNT];
    full_frequencies(mesh, NULL, fixed_count, fixed, COUNT, truth);
    full_frequencies(mesh, domains, fixed_count, fixed, COUNT, rigid);
    printf("\n   %s: %d %s, %d domains, depth %d; full FEM, Hz:", name, mesh->element_count,
           mesh->type == FEM_T4 ? "T4" : "H8", domains->count, domains->report.depth);
    for (int k = 0; k < COUNT; k++) printf(" %.4g", truth[k] / (2 * 3.14159265358979323846));
    printf("\n   %-26s %5s | frequency over full FEM%31s | %7s\n", "", "modes", "", "worst");
    print_row("full FEM, rigid interfaces", 0, rigid, truth);
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        solver_assembly_options o = solver_assembly_default_options();
        solver_tree_options     to = solver_tree_default_options();
        solver_assembly        *assembly = NULL;
        solver_tree            *tree = NULL;
        o.damping_stiffness = 0;
        o.total = total, o.class.forces = SOLVER_FORCES_LINEAR, o.collar = variants[v].collar;
        if (v + 1 < sizeof variants / sizeof *variants) o.carried = o.whole_modes = 0; // rigid interfaces
        if (variants[v].plain) o.class.recipe = modes_default_recipe(MODES_LANCZOS);
        to.subtree = variants[v].subtree;
        bench_try(solver_assembly_create(&assembly, mesh, domains, fixed_count, fixed, &o, NULL, NULL));
        bench_try(solver_assembly_tree(&tree, assembly, false, &to));
        bench_try(solver_tree_frequencies(tree, COUNT, omega, NULL));
        print_row(variants[v].name, solver_tree_free(tree), omega, truth);
        solver_tree_destroy(tree);
        solver_assembly_destroy(assembly);
    }
}

// Cut by sets or regions of the mesh, or by level sets into `count` domains.
static void body(const char *name, fem_mesh *mesh, const char *held, domain_method method, int count, int total) {
    domain_tree    domains = {0};
    domain_options cut = domain_default_options();
    const fem_set *set = fem_mesh_vertex_set(mesh, held);
    cut.method = method, cut.count = count, cut.fixed = set->items, cut.fixed_count = set->count;
    bench_try(domain_decompose(&domains, mesh, &cut));
    table(name, mesh, &domains, set->count, set->items, total);
    domain_tree_destroy(&domains);
    fem_mesh_destroy(mesh);
}

// A shared body cut by level sets, by METIS, and with its feet on springs.
static const struct {
    const char   *name;
    domain_method method;
    domain_feet   feet;
} cuts[] = {{"geodesic", DOMAIN_GEODESIC, DOMAIN_FEET_MERGE},
            {"METIS", DOMAIN_METIS, DOMAIN_FEET_MERGE},
            {"geodesic, feet sprung", DOMAIN_GEODESIC, DOMAIN_FEET_SPRINGS}};

static void row(const fem_mesh *mesh, int fixed_count, const int *fixed, size_t which, int asked, const double *truth) {
    domain_tree             domains = {0};
    domain_options          cut = domain_default_options();
    solver_assembly_options o = solver_assembly_default_options();
    solver_tree_options     to = solver_tree_default_options();
    solver_assembly        *assembly = NULL;
    solver_tree            *tree = NULL;
    double                  omega[COUNT], begun = fem_cpu_seconds();
    char                    name[64];
    cut.count = asked, cut.fixed = fixed, cut.fixed_count = fixed_count;
    cut.method = cuts[which].method, cut.feet = cuts[which].feet;
    bench_try(domain_decompose(&domains, mesh, &cut));
    o.damping_stiffness = 0, o.total = 20 * domains.count, o.class.spare = 6;
    bench_try(solver_assembly_create(&assembly, mesh, &domains, fixed_count, fixed, &o, NULL, NULL));
    bench_try(solver_assembly_tree(&tree, assembly, false, &to));
    begun = fem_cpu_seconds() - begun;
    bench_try(solver_tree_frequencies(tree, COUNT, omega, NULL));
    snprintf(name, sizeof name, "%d: %d %s", asked, domains.count, cuts[which].name);
    printf("%6.1f%% %3d %5d %6.1f ", 100 * domains.report.largest_share, domains.report.depth, assembly->carried,
           begun);
    print_row(name, assembly->modes, omega, truth);
    fflush(stdout);
    solver_tree_destroy(tree);
    solver_assembly_destroy(assembly);
    domain_tree_destroy(&domains);
}

static void shared(const char *data, const char *body_name, bool feet) {
    char     path[1024];
    fem_mesh mesh = {0};
    int     *fixed, fixed_count;
    double   truth[COUNT];
    snprintf(path, sizeof path, "%s/meshes/%s.veg.gz", data, body_name);
    bench_try(fem_mesh_read(&mesh, path));
    snprintf(path, sizeof path, "%s/meshes/%s.bou", data, body_name);
    bench_try(fem_vertex_list_read(&fixed, &fixed_count, path, mesh.file_base, mesh.vertex_count));
    full_frequencies(&mesh, NULL, fixed_count, fixed, COUNT, truth);
    printf("\n   %s: %d T4, L3 with the defaults; full FEM, Hz:", body_name, mesh.element_count);
    for (int k = 0; k < COUNT; k++) printf(" %.4g", truth[k] / (2 * 3.14159265358979323846));
    printf("\nlargest depth carried cpu s  asked for: remain         modes | frequency over full FEM\n");
    for (size_t which = 0; which < sizeof cuts / sizeof *cuts; which++)
        for (int asked = 10; asked <= 40; asked *= 2)
            if (cuts[which].feet == DOMAIN_FEET_MERGE || feet) row(&mesh, fixed_count, fixed, which, asked, truth);
    fem_mesh_destroy(&mesh);
    fem_free(fixed);
}

static void hand_by_limbs(const char *data) {
    char           path[1024];
    fem_mesh       mesh = {0};
    domain_tree    domains = {0};
    domain_options cut = domain_default_options();
    int           *fixed, fixed_count;
    snprintf(path, sizeof path, "%s/meshes/hand_30k.veg.gz", data);
    bench_try(fem_mesh_read(&mesh, path));
    snprintf(path, sizeof path, "%s/meshes/hand_30k.bou", data);
    bench_try(fem_vertex_list_read(&fixed, &fixed_count, path, mesh.file_base, mesh.vertex_count));
    cut.count = 10, cut.fixed = fixed, cut.fixed_count = fixed_count;
    bench_try(domain_decompose(&domains, &mesh, &cut));
    table("hand_30k by limbs", &mesh, &domains, fixed_count, fixed, 20 * domains.count);
    domain_tree_destroy(&domains);
    fem_mesh_destroy(&mesh);
    fem_free(fixed);
}

// `bench_frequencies BODY...`: only these of the shared bodies.
int main(int argc, char **argv) {
    bench_header(argv, "frequencies of trees of domains against full FEM");
    fem_mesh    mesh = {0};
    const char *data = getenv("LIMBER_DATA");
    if (argc < 2) {
        bar_body(&mesh, 3);
        body("chain of 3", &mesh, "z0", DOMAIN_REGIONS, 0, 60);
        bar_body(&mesh, 10);
        body("chain of 10", &mesh, "z0", DOMAIN_REGIONS, 0, 200);
        flower_body(&mesh, FEM_T4);
        body("flower (P1: 12 domains, 240 modes)", &mesh, "foot", DOMAIN_REGIONS, 0, 240);
        station_body(&mesh, 1);
        body("station (P1: 48 domains, 921 modes)", &mesh, "dock", DOMAIN_REGIONS, 0, 921);
        if (data) hand_by_limbs(data);
    }
    static const char *const names[] = {"hand_30k", "armadillo_60k", "dragon_100k", "space_station_67k"};
    for (int i = 0; i < 4 && data; i++) {
        bool wanted = argc < 2 && (i == 0 || getenv("LIMBER_LONG"));
        for (int k = 1; k < argc; k++) wanted = wanted || strcmp(argv[k], names[i]) == 0;
        if (wanted) shared(data, names[i], i == 1 || i == 2);
    }
    return 0;
}
