// Decomposition of the shared bodies (LIMBER_DATA) into 10, 20 and 40 domains by level sets and by METIS, and of the
// truss tower with its loops cut open; without data, of a branching body. Time is beside that of METIS alone (k-way on
// the dual graph, which gives parts but no tree), quality beside the goals: half of the domains remain, none holds over
// 40% of the elements. Then chains, for the growth of time with the number of domains.
// Pictures of 20 domains: out/bench/decompose_NAME.svg.
#include "bench/bench.h"
#include "bench/plot.h"

typedef struct decompose_work {
    const fem_mesh *mesh;
    domain_options  options;
    domain_tree     tree;
} decompose_work;

static void run_decompose(void *context) {
    decompose_work *w = context;
    bench_try(domain_decompose(&w->tree, w->mesh, &w->options));
}

static void run_metis(void *context) {
    decompose_work *w = context;
    int            *start, *adjacent, *part = fem_alloc((size_t)w->mesh->element_count, sizeof *part);
    bench_try(fem_mesh_element_graph(w->mesh, &start, &adjacent));
    bench_try(fem_graph_partition(w->mesh->element_count, start, adjacent, w->options.count, part));
    fem_free(start), fem_free(adjacent), fem_free(part);
}

static void print_header(void) {
    printf("   %-18s %8s %-8s %-5s | %5s %6s %8s %5s %9s %7s %8s %6s | %8s %8s %8s %6s\n", "body", "elements", "method",
           "feet", "asked", "remain", "largest", "depth", "area m^2", "points", "closures", "ground", "min s", "median",
           "METIS s", "ratio");
}

static void print_row(const char *name, decompose_work *w) {
    bench_time           metis = bench_measure(3, run_metis, w), time = bench_measure(3, run_decompose, w);
    const domain_report *r = &w->tree.report;
    printf("   %-18s %8d %-8s %-5s | %5d %6d %7.1f%% %5d %9.3g %7d %8d %6d | %8.3f %8.3f %8.3f %6.2f\n", name,
           w->mesh->element_count, w->options.method == DOMAIN_METIS ? "metis" : "geodesic",
           w->options.feet == DOMAIN_FEET_SPRINGS ? "sprung" : "root", r->asked, r->domains, 100 * r->largest_share,
           r->depth, r->area, r->fewest_points, r->closures, r->grounds, time.minimum, time.median, metis.minimum,
           time.minimum / metis.minimum);
}

static void draw(const char *name, const decompose_work *w, int up) {
    char     path[96], title[96];
    double   view[3] = {1, 1, 1}, above[3] = {0};
    picture *p;
    above[up] = 1, view[up] = 0.4;
    snprintf(title, sizeof title, "%s: %d domains", name, w->tree.count);
    snprintf(path, sizeof path, "out/bench/decompose_%s.svg", name);
    p = picture_create(title, view, above);
    enum { COLOURS = 16 }; // of a picture; parent and child differ
    int *colour = fem_alloc((size_t)w->tree.count, sizeof *colour);
    int *elements = fem_alloc((size_t)w->mesh->element_count, sizeof *elements);
    for (int d = 0; d < w->tree.count; d++)
        colour[d] = d > 0 && colour[w->tree.parent[d]] == d % COLOURS ? (d + 1) % COLOURS : d % COLOURS;
    for (int c = 0; c < COLOURS; c++) {
        char     text[8];
        unsigned hash = 2654435761u * (unsigned)(c + 1);
        int      count = 0, *vertices = NULL;
        fem_mesh part = {0};
        for (int e = 0; e < w->mesh->element_count; e++)
            if (colour[w->tree.element_domain[e]] == c) elements[count++] = e;
        if (count == 0) continue;
        snprintf(text, sizeof text, "#%02x%02x%02x", 80 + (hash >> 8) % 160, 80 + (hash >> 16) % 160,
                 80 + (hash >> 24) % 160);
        bench_try(domain_submesh(&part, &vertices, w->mesh, count, elements));
        picture_body(p, &part, NULL, text);
        fem_free(vertices);
        fem_mesh_destroy(&part);
    }
    fem_free(colour), fem_free(elements);
    picture_write(p, path);
}

static void bench_body(const char *name, const fem_mesh *mesh, int fixed_count, const int *fixed, int up, bool loops) {
    for (int method = DOMAIN_GEODESIC; method <= DOMAIN_METIS; method++)
        for (int feet = DOMAIN_FEET_MERGE; feet <= DOMAIN_FEET_SPRINGS; feet++)
            for (int asked = 10; asked <= 40; asked *= 2) {
                decompose_work w = {.mesh = mesh, .options = domain_default_options()};
                w.options.method = (domain_method)method, w.options.feet = (domain_feet)feet;
                w.options.count = asked, w.options.fixed = fixed, w.options.fixed_count = fixed_count;
                w.options.loops = loops ? DOMAIN_LOOPS_SPRINGS : DOMAIN_LOOPS_MERGE;
                print_row(name, &w);
                if (asked == 20 && feet == DOMAIN_FEET_MERGE && method == (loops ? DOMAIN_METIS : DOMAIN_GEODESIC))
                    draw(name, &w, up);
                domain_tree_destroy(&w.tree);
            }
}

static void bench_shared(const char *data) {
    static const struct {
        const char *name;
        int         up;
        bool        loops;
    } bodies[] = {{"hand_30k", 1, false},
                  {"armadillo_60k", 1, false},
                  {"dragon_100k", 1, false},
                  {"space_station_67k", 2, false},
                  {"truss_tower_59k", 2, true}};
    for (int i = 0; i < 5; i++) {
        char     path[1024];
        fem_mesh mesh = {0};
        int     *fixed, count;
        snprintf(path, sizeof path, "%s/meshes/%s.veg.gz", data, bodies[i].name);
        bench_try(fem_mesh_read(&mesh, path));
        snprintf(path, sizeof path, "%s/meshes/%s.bou", data, bodies[i].name);
        bench_try(fem_vertex_list_read(&fixed, &count, path, mesh.file_base, mesh.vertex_count));
        bench_body(bodies[i].name, &mesh, count, fixed, bodies[i].up, bodies[i].loops);
        fem_free(fixed);
        fem_mesh_destroy(&mesh);
    }
}

static void bench_generated(void) {
    fem_mesh mesh = {0};
    bench_branching_body(&mesh, 60000);
    const fem_set *held = fem_mesh_vertex_set(&mesh, "z0");
    bench_body("branching", &mesh, held->count, held->items, 2, false);
    fem_mesh_destroy(&mesh);
}

// A bar of two cells a domain: the time by level sets, and of the meshes of all domains.
static void bench_chains(void) {
    double counts[4], times[4];
    printf("\n   chains of H8, two elements a domain wanted\n   %8s %8s %8s %10s %10s\n", "asked", "remain", "depth",
           "min s", "us/domain");
    for (int i = 0; i < 4; i++) {
        int            n = (int[]){100, 1000, 10000, 100000}[i];
        fem_mesh       mesh = {0};
        decompose_work w = {.mesh = &mesh, .options = domain_default_options()};
        bench_try(
            fem_generate_box(&mesh, FEM_H8, (double[]){0, 0, 0}, (double[]){2.0 * n, 1, 1}, (int[]){2 * n, 1, 1}));
        const fem_set *held = fem_mesh_vertex_set(&mesh, "x0");
        w.options.count = n, w.options.fixed = held->items, w.options.fixed_count = held->count;
        bench_time t = bench_measure(3, run_decompose, &w);
        printf("   %8d %8d %8d %10.4f %10.2f\n", n, w.tree.count, w.tree.report.depth, t.minimum, 1e6 * t.minimum / n);
        counts[i] = n, times[i] = t.minimum;
        domain_tree_destroy(&w.tree);
        fem_mesh_destroy(&mesh);
    }
    printf("   exponent of time from 1,000 to 100,000 domains: %.2f\n",
           log(times[3] / times[1]) / log(counts[3] / counts[1]));
}

int main(int argc, char **argv) {
    (void)argc;
    bench_header(argv, "decomposition into a tree of domains, one core");
    fem_set_threads(1);
    print_header();
    const char *data = getenv("LIMBER_DATA");
    if (data)
        bench_shared(data);
    else
        bench_generated();
    bench_chains();
    return 0;
}
