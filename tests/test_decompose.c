// Decomposition: whatever the body and the method, the result is a tree of domains with sound interfaces; what cannot
// be one is refused by name. `examine` is the independent checker: it looks at the mesh and the result alone.
#include "tests/support.h"

#include <math.h>

// ---- the checker -------------------------------------------------------------------------------------------------

static int compare_ints(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static const int *corners_of(const fem_mesh *mesh, int element) {
    return mesh->elements + (size_t)element * (size_t)fem_element_vertices(mesh->type);
}

// The vertices that two neighbours share, in an order around the face; returns how many.
static int shared_face(const fem_mesh *mesh, int a, int b, int *vertices) {
    int width = fem_element_vertices(mesh->type), count = 0;
    for (int i = 0; i < width; i++)
        for (int k = 0; k < width; k++)
            if (corners_of(mesh, a)[i] == corners_of(mesh, b)[k]) vertices[count++] = corners_of(mesh, a)[i];
    double most = -1;
    int    opposite = 2;
    for (int k = 1; count == 4 && k < 4; k++) { // the diagonals are the pairs that cross at the largest area
        double x[3], y[3], n[3];
        int    p = k == 1 ? 2 : 1, q = k == 3 ? 2 : 3;
        vec3_sub(x, mesh->vertices + 3 * vertices[k], mesh->vertices + 3 * vertices[0]);
        vec3_sub(y, mesh->vertices + 3 * vertices[q], mesh->vertices + 3 * vertices[p]);
        vec3_cross(n, x, y);
        if (vec3_norm(n) > most) most = vec3_norm(n), opposite = k;
    }
    int swap = vertices[2];
    if (count == 4) vertices[2] = vertices[opposite], vertices[opposite] = swap;
    return count;
}

static double triangle_area(const fem_mesh *mesh, int i, int j, int k) {
    double a[3], b[3], n[3];
    vec3_sub(a, mesh->vertices + 3 * j, mesh->vertices + 3 * i);
    vec3_sub(b, mesh->vertices + 3 * k, mesh->vertices + 3 * i);
    vec3_cross(n, a, b);
    return vec3_norm(n) / 2;
}

// The bilinear patch over four points in order, by midpoints of 16 x 16 pieces: exact where it is flat. *flat becomes
// false where it is not.
static double patch_area(const fem_mesh *mesh, const int *v, bool *flat) {
    const double *x[4];
    double        a[3], b[3], n[3], area = 0;
    for (int k = 0; k < 4; k++) x[k] = mesh->vertices + 3 * v[k];
    for (int i = 0; i < 256; i++) {
        double s = (i % 16 + 0.5) / 16, t = (i / 16 + 0.5) / 16;
        for (int k = 0; k < 3; k++) {
            a[k] = (1 - t) * (x[1][k] - x[0][k]) + t * (x[2][k] - x[3][k]);
            b[k] = (1 - s) * (x[3][k] - x[0][k]) + s * (x[2][k] - x[1][k]);
        }
        vec3_cross(n, a, b);
        area += vec3_norm(n) / 256;
    }
    vec3_sub(a, x[1], x[0]), vec3_sub(b, x[2], x[0]), vec3_cross(n, a, b), vec3_sub(a, x[3], x[0]);
    if (fabs(vec3_dot(a, n)) > 1e-9 * vec3_norm(a) * vec3_norm(n)) *flat = false;
    return area;
}

static bool contains(const int *list, int count, int item) {
    return bsearch(&item, list, (size_t)count, sizeof *list, compare_ints) != NULL;
}

static bool on_interface(const domain_tree *tree, int domain, int vertex) {
    const domain_points *p = &tree->interfaces;
    return contains(p->vertices + p->start[domain], p->start[domain + 1] - p->start[domain], vertex);
}

static void examine_order(const domain_tree *tree) {
    assert_true(tree->count >= 1);
    assert_int_equal(tree->parent[0], -1);
    for (int i = 0; i < tree->count; i++) {
        assert_non_null(tree->name[i]);
        if (i == 0) continue;
        assert_in_range(tree->parent[i], tree->parent[i - 1] < 0 ? 0 : tree->parent[i - 1], i - 1);
        assert_int_equal(tree->level[i], tree->level[tree->parent[i]] + 1);
        assert_true(tree->level[i] >= tree->level[i - 1]);
    }
}

// every element is in one domain, and every domain hangs together through faces
static void examine_elements(const fem_mesh *mesh, const domain_tree *tree, const int *start, const int *adjacent) {
    int n = mesh->element_count, *seen = fem_calloc((size_t)n, sizeof *seen),
        *queue = fem_alloc((size_t)n, sizeof *queue);
    assert_int_equal(tree->element_start[0], 0);
    assert_int_equal(tree->element_start[tree->count], n);
    for (int d = 0; d < tree->count; d++) {
        int first = tree->element_start[d], last = tree->element_start[d + 1], count = 0;
        assert_true(last > first);
        for (int i = first; i < last; i++) {
            assert_int_equal(tree->element_domain[tree->elements[i]], d);
            if (i > first) assert_true(tree->elements[i] > tree->elements[i - 1]);
        }
        queue[count++] = tree->elements[first], seen[tree->elements[first]] = 1;
        for (int at = 0; at < count; at++)
            for (int k = start[queue[at]]; k < start[queue[at] + 1]; k++) {
                int other = adjacent[k];
                if (tree->element_domain[other] == d && !seen[other]) seen[other] = 1, queue[count++] = other;
            }
        assert_int_equal(count, last - first);
    }
    fem_free(seen), fem_free(queue);
}

// Neighbours in different domains are parent and child, or a closure has them; the weights of interfaces and closures
// are the area of the faces between domains; interfaces are no lines. Returns that area.
static double examine_interfaces(const fem_mesh *mesh, const domain_tree *tree, const int *start, const int *adjacent) {
    double               between = 0, weights = 0;
    bool                 flat = true;
    const domain_points *p = &tree->interfaces, *c = &tree->closures;
    for (int e = 0; e < mesh->element_count; e++)
        for (int k = start[e]; k < start[e + 1]; k++) {
            int a = tree->element_domain[e], b = tree->element_domain[adjacent[k]], v[8];
            if (adjacent[k] < e || a == b) continue;
            int child = a > b ? a : b, other = a > b ? b : a, count = shared_face(mesh, e, adjacent[k], v);
            assert_int_equal(count, mesh->type == FEM_T4 ? 3 : 4);
            between += count == 4 ? patch_area(mesh, v, &flat) : triangle_area(mesh, v[0], v[1], v[2]);
            bool found = tree->parent[child] == other;
            for (int i = 0; found && i < count; i++) found = on_interface(tree, child, v[i]);
            for (int j = 0; !found && j < c->count; j++) {
                if (tree->closure_pair[2 * j] != other || tree->closure_pair[2 * j + 1] != child) continue;
                found = true;
                for (int i = 0; i < count; i++)
                    found = found && contains(c->vertices + c->start[j], c->start[j + 1] - c->start[j], v[i]);
            }
            assert_true(found);
        }
    for (int d = 0; d < tree->count; d++) {
        int    first = p->start[d], last = p->start[d + 1];
        double widest = 0, longest = 0;
        if (d == 0) assert_int_equal(first, last);
        for (int i = first; i < last; i++) {
            assert_true(p->weights[i] > 0);
            weights += p->weights[i];
            if (i > first) assert_true(p->vertices[i] > p->vertices[i - 1]);
            for (int k = i + 1; k < last && k < i + 40; k++) {
                longest = fmax(longest,
                               vec3_distance(mesh->vertices + 3 * p->vertices[i], mesh->vertices + 3 * p->vertices[k]));
                widest = fmax(widest, triangle_area(mesh, p->vertices[first], p->vertices[i], p->vertices[k]));
            }
        }
        if (d > 0) assert_true(last - first >= 3 && widest > 1e-4 * longest * longest);
    }
    for (int i = 0; i < c->start[c->count]; i++) weights += c->weights[i];
    // 2 x 2 Gauss points are exact for flat faces and near for bent ones
    assert_true(fabs(weights - between) <= (flat ? 1e-9 : 2e-3) * between);
    return weights;
}

// The owner of a vertex is, of the domains that have it, the nearest to the root; without closures all others hold it
// on the interface to their parent.
static void examine_owners(const fem_mesh *mesh, const domain_tree *tree) {
    int *start, *around;
    assert_ok(fem_mesh_vertex_elements(mesh, &start, &around));
    for (int v = 0; v < mesh->vertex_count; v++) {
        int owner = tree->vertex_owner[v], lowest = -1;
        for (int i = start[v]; i < start[v + 1]; i++) {
            int d = tree->element_domain[around[i]];
            if (lowest < 0 || tree->level[d] < tree->level[lowest]) lowest = d;
            if (tree->closures.count == 0 && d != owner) assert_true(on_interface(tree, d, v));
        }
        assert_int_equal(lowest < 0 ? -1 : tree->level[lowest], owner < 0 ? -1 : tree->level[owner]);
        if (tree->closures.count == 0) assert_int_equal(lowest, owner);
    }
    fem_free(start), fem_free(around);
}

static double examine(const fem_mesh *mesh, const domain_tree *tree) {
    int *start, *adjacent;
    assert_int_equal(tree->element_count, mesh->element_count);
    assert_int_equal(tree->vertex_count, mesh->vertex_count);
    assert_ok(fem_mesh_element_graph(mesh, &start, &adjacent));
    examine_order(tree);
    examine_elements(mesh, tree, start, adjacent);
    double area = examine_interfaces(mesh, tree, start, adjacent);
    examine_owners(mesh, tree);
    fem_free(start), fem_free(adjacent);
    return area;
}

// ---- bodies ------------------------------------------------------------------------------------------------------

// A trunk with limbs on it and on each other, in directions that depend on the seed.
static fem_mesh branching(fem_element type, uint64_t seed, double voxel) {
    enum { LIMBS = 6 };
    fem_mesh  mesh = {0};
    fem_piece pieces[LIMBS + 1] = {
        {.name = "trunk", .shape = FEM_CAPSULE, .b = {0, 0, 3}, .radius_a = 0.4, .radius_b = 0.35}};
    static const char *const names[LIMBS] = {"a", "b", "c", "d", "e", "f"};
    uint64_t                 random = seed;
    for (int i = 0; i < LIMBS; i++) {
        const fem_piece *from = &pieces[i < 4 ? 0 : i - 3];
        double           t = 0.5 + 0.45 * test_random(&random);
        fem_piece       *p = &pieces[i + 1];
        *p = (fem_piece){.name = names[i], .shape = FEM_CAPSULE, .radius_a = 0.22, .radius_b = 0.15};
        double way[3];
        test_random_fill(&random, 3, 1, way);
        vec3_normalize(way);
        for (int k = 0; k < 3; k++) {
            p->a[k] = from->a[k] + t * (from->b[k] - from->a[k]);
            p->b[k] = p->a[k] + 1.6 * way[k];
        }
    }
    assert_ok(fem_generate_pieces(&mesh, type, LIMBS + 1, pieces, voxel));
    return mesh;
}

static fem_mesh box(fem_element type, double x, double y, double z, int nx, int ny, int nz) {
    fem_mesh mesh = {0};
    assert_ok(fem_generate_box(&mesh, type, (double[]){0, 0, 0}, (double[]){x, y, z}, (int[]){nx, ny, nz}));
    return mesh;
}

static fem_mesh tube(fem_element type) {
    fem_mesh     mesh = {0};
    const double centre[9] = {0, 0, 0, 2, 0, 0, 3, 1.5, 0.5}, radius[3] = {0.4, 0.25, 0.2};
    assert_ok(fem_generate_tube(&mesh, type, &(fem_tube){3, centre, radius, 2, 0.15}));
    return mesh;
}

// Four bars in a square, one region each.
static fem_mesh ring(fem_element type, double voxel) {
    fem_mesh        mesh = {0};
    const fem_piece pieces[4] = {{.name = "south", .shape = FEM_BOX, .a = {0, 0, 0}, .b = {4, 1, 1}},
                                 {.name = "east", .shape = FEM_BOX, .a = {3, 0, 0}, .b = {4, 4, 1}},
                                 {.name = "north", .shape = FEM_BOX, .a = {0, 3, 0}, .b = {4, 4, 1}},
                                 {.name = "west", .shape = FEM_BOX, .a = {0, 0, 0}, .b = {1, 4, 1}}};
    assert_ok(fem_generate_pieces(&mesh, type, 4, pieces, voxel));
    return mesh;
}

// Two legs on the ground z = 0 and a beam on them that sticks out on one side.
static fem_mesh arch(fem_element type) {
    fem_mesh        mesh = {0};
    const fem_piece pieces[3] = {{.name = "beam", .shape = FEM_BOX, .a = {0, 0, 4}, .b = {10, 1, 5}},
                                 {.name = "left", .shape = FEM_BOX, .a = {0, 0, 0}, .b = {1, 1, 4}},
                                 {.name = "right", .shape = FEM_BOX, .a = {5, 0, 0}, .b = {6, 1, 4}}};
    assert_ok(fem_generate_pieces(&mesh, type, 3, pieces, 0.5));
    return mesh;
}

static const char *const method_names[] = {"geodesic", "metis", "regions", "sets"};

static domain_options options_of(const fem_mesh *mesh, domain_method method, int count, const char *fixed) {
    domain_options o = domain_default_options();
    const fem_set *set = fixed ? fem_mesh_vertex_set(mesh, fixed) : NULL;
    o.method = method, o.count = count;
    if (set) o.fixed_count = set->count, o.fixed = set->items;
    return o;
}

static void report(const char *what, const domain_tree *tree) {
    const domain_report *r = &tree->report;
    printf("%-34s %5d of %5d domains, largest %4.1f%%, depth %4d, area %8.3g, %2d closures, %d grounds\n", what,
           r->domains, r->asked, 100 * r->largest_share, r->depth, r->area, r->closures, r->grounds);
}

// ---- automatic cuts ------------------------------------------------------------------------------------------------

// generated bodies of all shapes, both element types, both methods, held and free
static void test_bodies(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++)
        for (int body = 0; body < 7; body++) {
            const char *names[] = {"branches 1", "branches 2", "branches 3", "tube", "ball", "plate", "beam"};
            const char *holds[] = {"z0", "z0", "z0", "root", NULL, "x0", "x0"};
            fem_mesh    mesh = {0};
            if (body < 3) mesh = branching((fem_element)type, (uint64_t)(body + 1), type == FEM_T4 ? 0.16 : 0.1);
            if (body == 3) mesh = tube((fem_element)type);
            if (body == 4) assert_ok(fem_generate_sphere(&mesh, (fem_element)type, (double[]){0, 0, 0}, 1, 10));
            if (body == 5) mesh = box((fem_element)type, 4, 3, 0.1, 32, 24, 1);
            if (body == 6) mesh = box((fem_element)type, 8, 1, 1, 48, 4, 4);
            for (int method = DOMAIN_GEODESIC; method <= DOMAIN_METIS; method++)
                for (int held = 0; held < 2; held++) {
                    char           what[64];
                    domain_tree    tree = {0};
                    domain_options o = options_of(&mesh, (domain_method)method, 8, held ? holds[body] : NULL);
                    assert_ok(domain_decompose(&tree, &mesh, &o));
                    snprintf(what, sizeof what, "%s %s %s %s", names[body], type == FEM_T4 ? "T4" : "H8",
                             method_names[method], o.fixed_count > 0 ? "held" : "free");
                    report(what, &tree);
                    double area = examine(&mesh, &tree);
                    assert_true(fabs(area - tree.report.area) <= 1e-9 * area);
                    assert_int_equal(tree.closures.count, 0);
                    // a ball has no limbs: METIS's parts of it are mostly joined again
                    bool lumps = body == 4 && method == DOMAIN_METIS;
                    assert_true(tree.count >= (lumps ? 2 : 4) && tree.count <= 8);
                    assert_true(tree.report.largest_share <= (lumps ? 0.8 : 0.4));
                    for (int i = 0; i < o.fixed_count; i++) assert_int_equal(tree.vertex_owner[o.fixed[i]], 0);
                    domain_tree_destroy(&tree);
                }
            fem_mesh_destroy(&mesh);
        }
}

// a limb is cut off where it leaves the body: a plus sign of bars around a block comes apart into its pieces
static void test_limbs(void **state) {
    (void)state;
    fem_mesh        mesh = {0};
    const fem_piece pieces[] = {{.name = "block", .shape = FEM_BOX, .a = {-2, -2, -2}, .b = {2, 2, 2}},
                                {.name = "east", .shape = FEM_BOX, .a = {2, -0.5, -0.5}, .b = {8, 0.5, 0.5}},
                                {.name = "west", .shape = FEM_BOX, .a = {-8, -0.5, -0.5}, .b = {-2, 0.5, 0.5}},
                                {.name = "north", .shape = FEM_BOX, .a = {-0.5, 2, -0.5}, .b = {0.5, 8, 0.5}},
                                {.name = "south", .shape = FEM_BOX, .a = {-0.5, -8, -0.5}, .b = {0.5, -2, 0.5}}};
    assert_ok(fem_generate_pieces(&mesh, FEM_T4, 5, pieces, 0.5));
    int *held = fem_alloc((size_t)mesh.vertex_count, sizeof *held), count = 0;
    for (int v = 0; v < mesh.vertex_count; v++)
        if (mesh.vertices[3 * v + 2] < -1.9) held[count++] = v;
    domain_tree    tree = {0};
    domain_options o = options_of(&mesh, DOMAIN_GEODESIC, 5, NULL);
    o.fixed = held, o.fixed_count = count;
    assert_ok(domain_decompose(&tree, &mesh, &o));
    report("block with four bars", &tree);
    examine(&mesh, &tree);
    int right = 0;
    for (int e = 0; e < mesh.element_count; e++) right += (mesh.region[e] == 0) == (tree.element_domain[e] == 0);
    printf("   %.1f%% of the elements are with their limb or the block\n", 100.0 * right / mesh.element_count);
    assert_int_equal(tree.count, 5);
    assert_int_equal(tree.level[4], 1);
    assert_true(right > 0.9 * mesh.element_count);
    domain_tree_destroy(&tree);
    fem_mesh_destroy(&mesh);
    fem_free(held);
}

// one domain is a tree, too; more than half of the elements are refused
static void test_count(void **state) {
    (void)state;
    fem_mesh    mesh = box(FEM_H8, 4, 1, 1, 4, 1, 1);
    domain_tree tree = {0};
    for (int method = DOMAIN_GEODESIC; method <= DOMAIN_METIS; method++) {
        domain_options o = options_of(&mesh, (domain_method)method, 1, NULL);
        assert_ok(domain_decompose(&tree, &mesh, &o));
        assert_int_equal(tree.count, 1);
        examine(&mesh, &tree);
        o.count = 2;
        assert_ok(domain_decompose(&tree, &mesh, &o));
        assert_int_equal(tree.count, 2);
        examine(&mesh, &tree);
        o.count = 3;
        assert_fails(domain_decompose(&tree, &mesh, &o), FEM_BAD_INPUT, "domains.count is 3, expected 1 to 2");
        assert_int_equal(tree.count, 2); // as it was
        o.count = 2, o.fixed_count = 1, o.fixed = (int[]){20};
        assert_fails(domain_decompose(&tree, &mesh, &o), FEM_BAD_INPUT, "held vertex 20 is outside 0..19");
    }
    fem_mesh_destroy(&mesh);
    mesh = box(FEM_H8, 1, 1, 1, 1, 1, 1); // one element is one domain
    domain_options single = options_of(&mesh, DOMAIN_METIS, 1, "x0");
    assert_ok(domain_decompose(&tree, &mesh, &single));
    examine(&mesh, &tree);
    domain_tree_destroy(&tree);
    fem_mesh_destroy(&mesh);
}

// the same input gives the same tree, bit by bit, whatever the number of threads
static void test_deterministic(void **state) {
    (void)state;
    fem_mesh mesh = branching(FEM_T4, 5, 0.16);
    for (int method = DOMAIN_GEODESIC; method <= DOMAIN_METIS; method++) {
        domain_tree    a = {0}, b = {0};
        domain_options o = options_of(&mesh, (domain_method)method, 12, "z0");
        fem_set_threads(1);
        assert_ok(domain_decompose(&a, &mesh, &o));
        fem_set_threads(3);
        assert_ok(domain_decompose(&b, &mesh, &o));
        fem_set_threads(0);
        assert_int_equal(a.count, b.count);
        assert_memory_equal(a.element_domain, b.element_domain, (size_t)mesh.element_count * sizeof(int));
        int points = a.interfaces.start[a.count];
        assert_int_equal(points, b.interfaces.start[b.count]);
        assert_memory_equal(a.interfaces.vertices, b.interfaces.vertices, (size_t)points * sizeof(int));
        assert_memory_equal(a.interfaces.weights, b.interfaces.weights, (size_t)points * sizeof(double));
        domain_tree_destroy(&a), domain_tree_destroy(&b);
    }
    fem_mesh_destroy(&mesh);
}

// ---- given domains -------------------------------------------------------------------------------------------------

// sets are kept as they are; what lies in none makes further domains; names say which is which
static void test_sets(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        fem_mesh mesh = box((fem_element)type, 9, 1, 1, 9, 1, 1); // slabs along x: 0..8
        int      per = mesh.element_count / 9, items[3][64], counts[3] = {0};
        for (int e = 0; e < mesh.element_count; e++) { // left 0 1, middle 4, 5, right 7 8; 2 3 and 6 are in no set
            int slab = e / per, set = slab < 2 ? 0 : slab == 4 || slab == 5 ? 1 : slab > 6 ? 2 : -1;
            if (set >= 0) items[set][counts[set]++] = e;
        }
        assert_ok(fem_mesh_add_element_set(&mesh, "left", counts[0], items[0]));
        assert_ok(fem_mesh_add_element_set(&mesh, "middle", counts[1], items[1]));
        assert_ok(fem_mesh_add_element_set(&mesh, "right", counts[2], items[2]));
        domain_tree    tree = {0};
        domain_options o = options_of(&mesh, DOMAIN_SETS, 0, NULL);
        if (type == FEM_H8) { // the slab 6 is one element
            assert_fails(domain_decompose(&tree, &mesh, &o), FEM_BAD_INPUT,
                         "\"rest\" has one element, 6: a domain needs at least two");
            fem_mesh_destroy(&mesh);
            continue;
        }
        assert_ok(domain_decompose(&tree, &mesh, &o));
        report("sets on a bar", &tree);
        examine(&mesh, &tree);
        assert_int_equal(tree.count, 5);
        assert_string_equal(tree.name[0], "middle"); // the most central
        assert_string_equal(tree.name[1], "rest");
        assert_string_equal(tree.name[2], "rest 2");
        assert_string_equal(tree.name[3], "left");
        assert_string_equal(tree.name[4], "right");
        for (int s = 0; s < 3; s++)
            for (int i = 0; i < counts[s]; i++)
                assert_int_equal(tree.element_domain[items[s][i]], s == 0 ? 3 : s == 1 ? 0 : 4);
        // held at the right end: the root is there
        o = options_of(&mesh, DOMAIN_SETS, 0, "x1");
        assert_ok(domain_decompose(&tree, &mesh, &o));
        assert_string_equal(tree.name[0], "right");
        assert_string_equal(tree.name[4], "left");
        assert_int_equal(tree.report.depth, 4);
        domain_tree_destroy(&tree);
        fem_mesh_destroy(&mesh);
    }
}

static void test_sets_refused(void **state) {
    (void)state;
    fem_mesh       mesh = box(FEM_H8, 8, 1, 1, 8, 1, 1);
    domain_tree    tree = {0};
    domain_options o = options_of(&mesh, DOMAIN_SETS, 0, NULL);
    mesh.file_base = 1;
    assert_fails(domain_decompose(&tree, &mesh, &o), FEM_BAD_INPUT, "the mesh has no element sets");
    assert_ok(fem_mesh_add_element_set(&mesh, "ends", 4, (int[]){0, 1, 6, 7}));
    assert_fails(domain_decompose(&tree, &mesh, &o), FEM_BAD_INPUT,
                 "\"ends\" is not in one piece: no way through faces leads from element 1 to element 7");
    assert_ok(fem_mesh_add_element_set(&mesh, "more", 3, (int[]){1, 2, 3}));
    assert_fails(domain_decompose(&tree, &mesh, &o), FEM_BAD_INPUT, "element 2 is in set \"ends\" and in set \"more\"");
    const int label[8] = {0, 0, 0, 0, 1, 1, 1, 2};
    assert_fails(domain_tree_from_labels(&tree, &mesh, label, 3, (const char *[]){"a", "b", "c"}, &o), FEM_BAD_INPUT,
                 "\"c\" has one element, 8");
    assert_fails(domain_tree_from_labels(&tree, &mesh, label, 2, NULL, &o), FEM_BAD_INPUT,
                 "the label of element 8 is 2, expected 0 to 1");
    assert_int_equal(tree.count, 0);
    fem_mesh_destroy(&mesh);
}

// Some cells of a flat grid, as a mesh of their own.
static fem_mesh cells_of(int nx, int ny, int count, const int (*cells)[2]) {
    fem_mesh grid = box(FEM_H8, nx, ny, 1, nx, ny, 1), mesh = {0};
    int      list[64], *vertices;
    for (int i = 0; i < count; i++)
        for (int e = 0; e < grid.element_count; e++) {
            double x = 0, y = 0;
            for (int k = 0; k < 8; k++) {
                x += grid.vertices[3 * corners_of(&grid, e)[k]] / 8;
                y += grid.vertices[3 * corners_of(&grid, e)[k] + 1] / 8;
            }
            if ((int)x == cells[i][0] && (int)y == cells[i][1]) list[i] = e;
        }
    int order[64];
    memcpy(order, list, sizeof order);
    qsort(order, (size_t)count, sizeof *order, compare_ints);
    assert_ok(domain_submesh(&mesh, &vertices, &grid, count, order));
    assert_ok(fem_mesh_check(&mesh));
    fem_free(vertices);
    fem_mesh_destroy(&grid);
    return mesh;
}

static int cell_at(const fem_mesh *mesh, int x, int y) {
    for (int e = 0; e < mesh->element_count; e++) {
        double c[2] = {0, 0};
        for (int k = 0; k < 8; k++)
            for (int i = 0; i < 2; i++) c[i] += mesh->vertices[3 * corners_of(mesh, e)[k] + i] / 8;
        if ((int)c[0] == x && (int)c[1] == y) return e;
    }
    fail_msg("no cell %d %d", x, y);
    return -1;
}

// two bars that meet along an edge do not make an interface
static void test_touching(void **state) {
    (void)state;
    const int      cells[4][2] = {{0, 0}, {1, 0}, {2, 1}, {3, 1}};
    fem_mesh       mesh = cells_of(4, 2, 4, cells);
    domain_tree    tree = {0};
    domain_options o = options_of(&mesh, DOMAIN_SETS, 2, NULL);
    int            label[4];
    for (int i = 0; i < 4; i++) label[cell_at(&mesh, cells[i][0], cells[i][1])] = i / 2;
    assert_fails(domain_tree_from_labels(&tree, &mesh, label, 2, (const char *[]){"stem", "leaf"}, &o), FEM_BAD_INPUT,
                 "\"leaf\" touches \"stem\" in 2 points and shares no face with it: an interface needs three points");
    o.method = DOMAIN_GEODESIC;
    assert_fails(domain_decompose(&tree, &mesh, &o), FEM_BAD_INPUT, "does not hang together through faces");
    o.method = DOMAIN_METIS;
    assert_fails(domain_decompose(&tree, &mesh, &o), FEM_BAD_INPUT, "does not hang together through faces");
    fem_mesh_destroy(&mesh);
}

// a bent row of cells whose ends meet along an edge: no loop, but the vertices of that edge are listed
static void test_hinge(void **state) {
    (void)state;
    const int      cells[7][2] = {{1, 0}, {2, 0}, {2, 1}, {2, 2}, {1, 2}, {0, 2}, {0, 1}};
    fem_mesh       mesh = cells_of(3, 3, 7, cells);
    domain_tree    tree = {0};
    domain_options o = options_of(&mesh, DOMAIN_SETS, 0, NULL);
    int            label[7];
    for (int i = 0; i < 7; i++) label[cell_at(&mesh, cells[i][0], cells[i][1])] = i < 2 ? 0 : i < 4 ? 1 : 2;
    assert_ok(domain_tree_from_labels(&tree, &mesh, label, 3, (const char *[]){"a", "b", "c"}, &o));
    report("row that bites its tail", &tree);
    assert_string_equal(tree.name[0], "b");
    assert_int_equal(tree.report.loops, 0);
    assert_int_equal(tree.closures.count, 1);
    assert_int_equal(tree.closure_pair[0], 1);
    assert_int_equal(tree.closure_pair[1], 2);
    assert_int_equal(tree.closures.start[1], 2);
    for (int i = 0; i < 2; i++) {
        const double *x = mesh.vertices + 3 * tree.closures.vertices[i];
        assert_true(x[0] == 1 && x[1] == 1 && tree.closures.weights[i] == 0);
    }
    examine(&mesh, &tree);
    domain_tree_destroy(&tree);
    fem_mesh_destroy(&mesh);
}

// ---- loops and feet
// --------------------------------------------------------------------------------------------------

static void test_loops(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        fem_mesh       mesh = ring((fem_element)type, 0.5);
        domain_tree    tree = {0};
        domain_options o = options_of(&mesh, DOMAIN_REGIONS, 0, NULL);
        assert_fails(domain_decompose(&tree, &mesh, &o), FEM_BAD_INPUT, "4 domains form a loop: \"");
        printf("   %s\n", fem_message());
        for (int i = 0; i < 4; i++) assert_non_null(strstr(fem_message(), mesh.regions[i].name));
        o.loops = DOMAIN_LOOPS_MERGE;
        assert_ok(domain_decompose(&tree, &mesh, &o));
        report("ring, merged", &tree);
        assert_int_equal(tree.count, 1);
        assert_int_equal(tree.report.merged, 3);
        o.loops = DOMAIN_LOOPS_SPRINGS;
        assert_ok(domain_decompose(&tree, &mesh, &o));
        report("ring, sprung", &tree);
        examine(&mesh, &tree);
        assert_int_equal(tree.count, 4);
        assert_int_equal(tree.closures.count, 1);
        assert_int_equal(tree.closures.start[1], 9); // 1 m^2 of voxels of 0.5 m
        double area = 0;
        for (int i = 0; i < 9; i++) area += tree.closures.weights[i];
        assert_true(fabs(area - 1) < 1e-12);
        // our own cuts: merged by default, which leaves one domain; sprung, several
        for (int method = DOMAIN_GEODESIC; method <= DOMAIN_METIS; method++) {
            o = options_of(&mesh, (domain_method)method, 6, NULL);
            assert_ok(domain_decompose(&tree, &mesh, &o));
            report("ring, automatic, merged", &tree);
            examine(&mesh, &tree);
            assert_int_equal(tree.closures.count, 0);
            o.loops = DOMAIN_LOOPS_SPRINGS;
            assert_ok(domain_decompose(&tree, &mesh, &o));
            report("ring, automatic, sprung", &tree);
            examine(&mesh, &tree);
            assert_true(tree.count >= 3 && tree.closures.count >= 1);
        }
        domain_tree_destroy(&tree);
        fem_mesh_destroy(&mesh);
    }
}

// two halves of a ring share one pair of neighbours and two interfaces: a loop all the same
static void test_two_halves(void **state) {
    (void)state;
    fem_mesh       mesh = ring(FEM_H8, 0.5);
    domain_tree    tree = {0};
    domain_options o = options_of(&mesh, DOMAIN_SETS, 0, NULL);
    int           *label = fem_alloc((size_t)mesh.element_count, sizeof *label);
    for (int e = 0; e < mesh.element_count; e++) {
        double y = 0;
        for (int k = 0; k < 8; k++) y += mesh.vertices[3 * corners_of(&mesh, e)[k] + 1] / 8;
        label[e] = y > 2;
    }
    assert_fails(domain_tree_from_labels(&tree, &mesh, label, 2, (const char *[]){"low", "high"}, &o), FEM_BAD_INPUT,
                 "the domains form a loop: \"low\" - \"high\" meet in several separate interfaces");
    o.loops = DOMAIN_LOOPS_SPRINGS;
    assert_ok(domain_tree_from_labels(&tree, &mesh, label, 2, NULL, &o));
    report("two halves, sprung", &tree);
    examine(&mesh, &tree);
    assert_int_equal(tree.closures.count, 1);
    domain_tree_destroy(&tree);
    fem_free(label);
    fem_mesh_destroy(&mesh);
}

static void test_feet(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        fem_mesh    mesh = arch((fem_element)type);
        domain_tree tree = {0};
        // one leg is held by more vertices: its group of held vertices is the larger one
        int held[64], count = 0, left = 0;
        for (int v = 0; v < mesh.vertex_count; v++) {
            const double *x = mesh.vertices + 3 * v;
            if (x[2] == 0 && (x[0] < 2 || x[1] < 0.9)) held[count++] = v, left += x[0] < 2;
        }
        assert_true(count > left && left > count - left);
        domain_options o = options_of(&mesh, DOMAIN_REGIONS, 0, NULL);
        o.fixed = held, o.fixed_count = count;
        assert_ok(domain_decompose(&tree, &mesh, &o));
        report("arch, feet merged", &tree);
        assert_int_equal(tree.count, 1); // left, beam and right lie between the feet
        assert_int_equal(tree.grounds.count, 0);
        o.feet = DOMAIN_FEET_SPRINGS;
        assert_ok(domain_decompose(&tree, &mesh, &o));
        report("arch, feet sprung", &tree);
        examine(&mesh, &tree);
        assert_int_equal(tree.count, 3);
        assert_string_equal(tree.name[0], "left");
        assert_string_equal(tree.name[2], "right");
        assert_int_equal(tree.grounds.count, 1);
        assert_int_equal(tree.ground_domain[0], 2);
        assert_int_equal(tree.grounds.start[1], count - left);
        for (int i = 0; i < count - left; i++) {
            const double *x = mesh.vertices + 3 * tree.grounds.vertices[i];
            assert_true(x[2] == 0 && x[0] >= 5);
        }
        // cut by ourselves, merged: the root has both feet, the free end of the beam is cut off
        for (int method = DOMAIN_GEODESIC; method <= DOMAIN_METIS; method++) {
            o = options_of(&mesh, (domain_method)method, 6, NULL);
            o.fixed = held, o.fixed_count = count;
            assert_ok(domain_decompose(&tree, &mesh, &o));
            report("arch, automatic, feet merged", &tree);
            examine(&mesh, &tree);
            for (int i = 0; i < count; i++) assert_int_equal(tree.vertex_owner[held[i]], 0);
            assert_true(tree.count >= 4); // cuts that would close a loop are not even tried
            o.feet = DOMAIN_FEET_SPRINGS;
            assert_ok(domain_decompose(&tree, &mesh, &o));
            report("arch, automatic, feet sprung", &tree);
            examine(&mesh, &tree);
            assert_true(tree.count >= 5 && tree.grounds.count == 1);
        }
        domain_tree_destroy(&tree);
        fem_mesh_destroy(&mesh);
    }
}

// ---- long chains
// -----------------------------------------------------------------------------------------------------

// 10,000 domains in a row, given and cut by ourselves, and the meshes of them all
static void test_chain(void **state) {
    (void)state;
    enum { DOMAINS = 10000 };
    fem_mesh       mesh = box(FEM_H8, 2 * DOMAINS, 1, 1, 2 * DOMAINS, 1, 1);
    int           *label = fem_alloc((size_t)mesh.element_count, sizeof *label);
    domain_tree    tree = {0};
    domain_options o = options_of(&mesh, DOMAIN_GEODESIC, DOMAINS, "x0");
    for (int e = 0; e < mesh.element_count; e++) label[e] = e / 2;
    double begun = fem_cpu_seconds();
    assert_ok(domain_tree_from_labels(&tree, &mesh, label, DOMAINS, NULL, &o));
    printf("   %.2f s\n", fem_cpu_seconds() - begun);
    report("chain, given", &tree);
    examine(&mesh, &tree);
    assert_int_equal(tree.count, DOMAINS);
    assert_int_equal(tree.report.depth, DOMAINS - 1);
    begun = fem_cpu_seconds();
    int vertices = 0;
    for (int i = 0; i < DOMAINS; i++) {
        domain_part part = {0};
        assert_ok(domain_part_create(&part, &mesh, &tree, i));
        vertices += part.mesh.vertex_count;
        assert_int_equal(part.child_count, i + 1 < DOMAINS);
        domain_part_destroy(&part);
    }
    printf("   %.2f s for the meshes\n", fem_cpu_seconds() - begun);
    assert_int_equal(vertices, 12 * DOMAINS);
    begun = fem_cpu_seconds();
    assert_ok(domain_decompose(&tree, &mesh, &o));
    printf("   %.2f s\n", fem_cpu_seconds() - begun);
    report("chain, geodesic", &tree);
    examine(&mesh, &tree);
    assert_true(tree.count >= DOMAINS / 2);
    domain_tree_destroy(&tree);
    fem_mesh_destroy(&mesh);
    fem_free(label);
}

// A row of cells bent to a circle; the last cell ends where the first begins.
static fem_mesh circle(int cells) {
    fem_mesh mesh = box(FEM_H8, cells, 1, 1, cells, 1, 1);
    int      found = 0;
    double   radius = cells / (2 * acos(-1));
    for (int v = 0; v < mesh.vertex_count; v++)
        for (int w = 0; w < mesh.vertex_count && mesh.vertices[3 * v] == cells && w < v; w++)
            if (mesh.vertices[3 * w] == 0 && mesh.vertices[3 * w + 1] == mesh.vertices[3 * v + 1] &&
                mesh.vertices[3 * w + 2] == mesh.vertices[3 * v + 2]) {
                for (int i = 0; i < 8 * mesh.element_count; i++)
                    if (mesh.elements[i] == v) mesh.elements[i] = w;
                found++;
            }
    assert_int_equal(found, 4);
    for (int v = 0; v < mesh.vertex_count; v++) {
        double *x = mesh.vertices + 3 * v, angle = x[0] / radius, r = radius - x[1];
        x[0] = r * sin(angle), x[1] = -r * cos(angle);
    }
    assert_ok(fem_mesh_check(&mesh));
    return mesh;
}

// a loop of 10,000 domains is found, named in short, merged, or cut open opposite to the root
static void test_long_loop(void **state) {
    (void)state;
    enum { DOMAINS = 10000 };
    fem_mesh       mesh = circle(2 * DOMAINS);
    int           *label = fem_alloc((size_t)mesh.element_count, sizeof *label);
    domain_tree    tree = {0};
    domain_options o = domain_default_options();
    for (int e = 0; e < mesh.element_count; e++) label[e] = e / 2;
    assert_fails(domain_tree_from_labels(&tree, &mesh, label, DOMAINS, NULL, &o), FEM_BAD_INPUT,
                 "10000 domains form a loop: domain 0 - ");
    printf("   %s\n", fem_message());
    o.loops = DOMAIN_LOOPS_MERGE;
    assert_ok(domain_tree_from_labels(&tree, &mesh, label, DOMAINS, NULL, &o));
    assert_int_equal(tree.count, 1);
    o.loops = DOMAIN_LOOPS_SPRINGS;
    assert_ok(domain_tree_from_labels(&tree, &mesh, label, DOMAINS, NULL, &o));
    report("ring of domains, sprung", &tree);
    examine(&mesh, &tree);
    assert_int_equal(tree.count, DOMAINS);
    assert_int_equal(tree.report.depth, DOMAINS / 2);
    assert_int_equal(tree.closures.count, 1);
    assert_int_equal(tree.closures.start[1], 4);
    domain_tree_destroy(&tree);
    fem_mesh_destroy(&mesh);
    fem_free(label);
}

// ---- meshes of domains
// -------------------------------------------------------------------------------------------------

// the parts make up the whole: volumes, regions, materials, sets; interfaces agree on both sides
static void test_parts(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        fem_mesh    mesh = branching((fem_element)type, 9, 0.16);
        domain_tree tree = {0};
        assert_ok(fem_mesh_add_element_set(&mesh, "some", 3, (int[]){0, 5, 9}));
        domain_options o = options_of(&mesh, DOMAIN_GEODESIC, 8, "z0");
        assert_ok(domain_decompose(&tree, &mesh, &o));
        fem_quality whole, q;
        double      volume = 0;
        int         in_some = 0, held = 0;
        assert_ok(fem_mesh_quality(&mesh, &whole));
        for (int d = 0; d < tree.count; d++) {
            domain_part part = {0};
            assert_ok(domain_part_create(&part, &mesh, &tree, d));
            assert_ok(fem_mesh_check(&part.mesh));
            assert_ok(fem_mesh_quality(&part.mesh, &q));
            volume += q.volume;
            assert_int_equal(part.mesh.region_count, mesh.region_count);
            for (int i = 0; i < part.mesh.element_count; i++) {
                int e = tree.elements[tree.element_start[d] + i];
                assert_int_equal(part.mesh.region[i], mesh.region[e]);
                for (int k = 0; k < fem_element_vertices(mesh.type); k++)
                    assert_int_equal(part.vertices[corners_of(&part.mesh, i)[k]], corners_of(&mesh, e)[k]);
            }
            for (int v = 0; v < part.mesh.vertex_count; v++) {
                assert_memory_equal(part.mesh.vertices + 3 * v, mesh.vertices + 3 * part.vertices[v], 24);
                assert_int_equal(domain_part_local(&part, part.vertices[v]), v);
                assert_int_equal(part.on_interface[v], on_interface(&tree, d, part.vertices[v]));
            }
            for (int i = 0; i < part.interface_count; i++) {
                int at = tree.interfaces.start[d] + i;
                assert_int_equal(part.vertices[part.interface[i]], tree.interfaces.vertices[at]);
                assert_true(part.interface_weights[i] == tree.interfaces.weights[at]);
            }
            for (int c = 0; c < part.child_count; c++) {
                int child = part.children[c], first = part.child_points.start[c], last = part.child_points.start[c + 1];
                assert_int_equal(tree.parent[child], d);
                assert_int_equal(last - first, tree.interfaces.start[child + 1] - tree.interfaces.start[child]);
                for (int i = first; i < last; i++) {
                    int at = tree.interfaces.start[child] + i - first;
                    assert_int_equal(part.vertices[part.child_points.vertices[i]], tree.interfaces.vertices[at]);
                    assert_true(part.child_points.weights[i] == tree.interfaces.weights[at]);
                }
            }
            int children = 0;
            for (int i = 0; i < tree.count; i++) children += tree.parent[i] == d;
            assert_int_equal(children, part.child_count);
            const fem_set *some = fem_mesh_element_set(&part.mesh, "some"),
                          *base = fem_mesh_vertex_set(&part.mesh, "z0");
            in_some += some ? some->count : 0, held += base ? base->count : 0;
            assert_int_equal(domain_part_local(&part, -1), -1);
            domain_part_destroy(&part);
        }
        printf("   parts: volume %.15g of %.15g, %d of 3 in the set, %d of %d at the foot\n", volume, whole.volume,
               in_some, held, o.fixed_count);
        assert_true(fabs(volume - whole.volume) < 1e-12 * whole.volume);
        assert_int_equal(in_some, 3);
        assert_true(held >= o.fixed_count);
        domain_part part = {0};
        assert_fails(domain_part_create(&part, &mesh, &tree, tree.count), FEM_BAD_INPUT, "there is no domain");
        fem_mesh other = box(FEM_H8, 1, 1, 1, 2, 2, 2);
        assert_fails(domain_part_create(&part, &other, &tree, 0), FEM_BAD_INPUT, "this one has 8");
        int *vertices = NULL;
        assert_fails(domain_submesh(&part.mesh, &vertices, &other, 2, (int[]){1, 1}), FEM_BAD_INPUT,
                     "ascending in 0..7");
        fem_mesh_destroy(&other);
        domain_tree_destroy(&tree);
        fem_mesh_destroy(&mesh);
    }
}

// ---- graphs and memory
// -------------------------------------------------------------------------------------------------

// METIS's traps: one part, several components, more components than parts, more parts than vertices
static void test_partition(void **state) {
    (void)state;
    enum { N = 30 }; // rows of 12, 10 and 8
    const int ends[3] = {12, 22, 30};
    int       start[N + 1] = {0}, adjacent[2 * N], part[N], count = 0;
    for (int v = 0, row = 0; v < N; v++) {
        if (v == ends[row]) row++;
        if (v > 0 && v != ends[0] && v != ends[1]) adjacent[count++] = v - 1;
        if (v + 1 < ends[row]) adjacent[count++] = v + 1;
        start[v + 1] = count;
    }
    for (int parts = 1; parts <= N; parts++) {
        int used[N] = {0}, different = 0, cut = 0;
        assert_ok(fem_graph_partition(N, start, adjacent, parts, part));
        for (int v = 0; v < N; v++) {
            assert_in_range(part[v], 0, parts - 1);
            used[part[v]]++;
            for (int k = start[v]; k < start[v + 1]; k++) cut += part[v] != part[adjacent[k]];
        }
        for (int p = 0; p < parts; p++) different += used[p] > 0;
        if (parts <= 6) printf("   three rows in %d parts: %d used, %d edges cut\n", parts, different, cut / 2);
        if (parts <= 6) assert_int_equal(different, parts);
        if (parts <= 3) assert_int_equal(cut, 0);
        if (parts > 3 && parts <= 6) assert_int_equal(cut / 2, parts - 3); // contiguous pieces of rows
    }
    assert_fails(fem_graph_partition(N, start, adjacent, 0, part), FEM_BAD_INPUT, "expected 1 to 30");
    assert_fails(fem_graph_partition(N, start, adjacent, N + 1, part), FEM_BAD_INPUT, "expected 1 to 30");
}

// the faces between elements, each once, with both elements and the vertices they share
static void test_inner_faces(void **state) {
    (void)state;
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        fem_mesh mesh = box((fem_element)type, 1, 1, 1, 3, 3, 3);
        int      count, *pair, *corners, *start, *adjacent, width = type == FEM_T4 ? 3 : 4;
        assert_ok(fem_mesh_inner_faces(&mesh, &count, &pair, &corners));
        assert_ok(fem_mesh_element_graph(&mesh, &start, &adjacent));
        assert_int_equal(2 * count, start[mesh.element_count]);
        for (int f = 0; f < count; f++) {
            int v[8];
            assert_true(pair[2 * f] < pair[2 * f + 1] && (f == 0 || pair[2 * f] >= pair[2 * f - 2]));
            assert_int_equal(shared_face(&mesh, pair[2 * f], pair[2 * f + 1], v), width);
            qsort(v, (size_t)width, sizeof *v, compare_ints);
            for (int k = 0; k < width; k++) assert_true(contains(v, width, corners[width * f + k]));
        }
        fem_free(pair), fem_free(corners), fem_free(start), fem_free(adjacent);
        fem_mesh_destroy(&mesh);
    }
}

// whichever allocation fails, the call says so, leaves nothing behind and the tree as it was
static void test_no_memory(void **state) {
    (void)state;
    fem_mesh mesh = ring(FEM_H8, 0.5);
    int     *label = fem_alloc((size_t)mesh.element_count, sizeof *label);
    for (int e = 0; e < mesh.element_count; e++) label[e] = mesh.region[e];
    for (int way = 0; way < 7; way++) {
        domain_tree    tree = {0}, *old = &tree;
        domain_part    part = {0};
        domain_options one = options_of(&mesh, DOMAIN_GEODESIC, 1, NULL), o = one;
        o.method = way < 2 ? DOMAIN_GEODESIC : way < 4 ? DOMAIN_METIS : DOMAIN_REGIONS;
        o.count = 6, o.loops = way % 2 ? DOMAIN_LOOPS_SPRINGS : DOMAIN_LOOPS_MERGE;
        if (way == 4) o.loops = DOMAIN_LOOPS_REFUSE;
        o.fixed_count = 2, o.fixed = (int[]){0, mesh.vertex_count - 1}, o.feet = way % 3 ? DOMAIN_FEET_SPRINGS : 0;
        assert_ok(domain_decompose(&tree, &mesh, &one));
        long       blocks = fem_memory_blocks(), allowed = 0;
        fem_status status = FEM_NO_MEMORY;
        for (; status == FEM_NO_MEMORY; allowed++) {
            fem_memory_fail_after(allowed);
            status = way == 6 ? domain_part_create(&part, &mesh, &tree, 0) : domain_decompose(old, &mesh, &o);
            fem_memory_fail_after(-1);
            if (status != FEM_NO_MEMORY) break;
            assert_int_equal(fem_memory_blocks(), blocks);
            assert_int_equal(tree.count, 1);
        }
        printf("   way %d: %ld allocations, then %s\n", way, allowed, status == FEM_OK ? "done" : fem_message());
        assert_int_equal(status, way == 4 ? FEM_BAD_INPUT : FEM_OK);
        assert_true(allowed > 10);
        domain_tree_destroy(&tree);
        domain_part_destroy(&part);
    }
    fem_free(label);
    fem_mesh_destroy(&mesh);
}

// ---- shared bodies
// -----------------------------------------------------------------------------------------------------

// At least half of the domains remain and none holds over 40% of the elements. The dragon stands on the ground at front
// and hind, with its back between them: with feet merged that arch must be the root, two thirds of the body; with
// springs to the ground it meets the bound.
static void test_shared_bodies(void **state) {
    (void)state;
    const char *const names[] = {"hand_30k", "armadillo_60k", "dragon_100k", "space_station_67k"};
    for (int body = 0; body < 4; body++) {
        char        path[64];
        fem_mesh    mesh = {0};
        domain_tree tree = {0};
        int        *fixed = NULL, fixed_count = 0;
        snprintf(path, sizeof path, "meshes/%s.veg.gz", names[body]);
        if (!test_data(path)) return;
        assert_ok(fem_mesh_read(&mesh, test_data(path)));
        snprintf(path, sizeof path, "meshes/%s.bou", names[body]);
        assert_ok(fem_vertex_list_read(&fixed, &fixed_count, test_data(path), mesh.file_base, mesh.vertex_count));
        for (int asked = 10; asked <= 40; asked *= 2)
            for (int springs = 0; springs < 2; springs++) {
                domain_options o = options_of(&mesh, DOMAIN_GEODESIC, asked, NULL);
                o.fixed = fixed, o.fixed_count = fixed_count;
                o.feet = springs ? DOMAIN_FEET_SPRINGS : DOMAIN_FEET_MERGE;
                if (springs && body != 2) continue;
                char what[64];
                assert_ok(domain_decompose(&tree, &mesh, &o));
                snprintf(what, sizeof what, "%s%s", names[body], springs ? ", feet sprung" : "");
                report(what, &tree);
                examine(&mesh, &tree);
                assert_true(tree.count >= asked / 2 && tree.count <= asked);
                if (body != 2 || springs) assert_true(tree.report.largest_share <= 0.4);
            }
        domain_tree_destroy(&tree);
        fem_free(fixed);
        fem_mesh_destroy(&mesh);
    }
}

static void test_truss(void **state) {
    (void)state;
    fem_mesh    mesh = {0};
    domain_tree tree = {0};
    int        *fixed = NULL, fixed_count = 0;
    if (!test_data("meshes/truss_tower_59k.veg.gz")) return;
    assert_ok(fem_mesh_read(&mesh, test_data("meshes/truss_tower_59k.veg.gz")));
    assert_ok(fem_vertex_list_read(&fixed, &fixed_count, test_data("meshes/truss_tower_59k.bou"), mesh.file_base,
                                   mesh.vertex_count));
    for (int method = DOMAIN_GEODESIC; method <= DOMAIN_METIS; method++) {
        domain_options o = options_of(&mesh, (domain_method)method, 20, NULL);
        o.fixed = fixed, o.fixed_count = fixed_count;
        o.loops = DOMAIN_LOOPS_SPRINGS, o.feet = DOMAIN_FEET_SPRINGS;
        assert_ok(domain_decompose(&tree, &mesh, &o));
        report(method == DOMAIN_METIS ? "truss tower, metis" : "truss tower, geodesic", &tree);
        examine(&mesh, &tree);
        assert_true(tree.count >= 10 && tree.report.largest_share <= 0.4 && tree.closures.count > 10);
        assert_true(tree.grounds.count >= 1);
        o.loops = DOMAIN_LOOPS_MERGE, o.feet = DOMAIN_FEET_MERGE; // everything lies on loops
        assert_ok(domain_decompose(&tree, &mesh, &o));
        assert_int_equal(tree.count, 1);
    }
    domain_tree_destroy(&tree);
    fem_free(fixed);
    fem_mesh_destroy(&mesh);
}

// Every domain that was cut has a vertex that is not on the interface to its parent: one without could only hold the
// interface rigidly.
static int bare_domains(const domain_tree *tree) {
    int bare = 0;
    for (int i = 0; i < tree->count; i++) {
        bool own = false;
        for (int v = 0; v < tree->vertex_count; v++) own = own || tree->vertex_owner[v] == i;
        bare += !own;
    }
    return bare;
}

static void test_own_vertices(void **state) {
    (void)state;
    static const int counts[] = {8, 12, 16, 24, 30, 40};
    const char      *dragon = test_data("vega/models/dragon-77k/dragon-coarse.tet.veg");
    fem_mesh    meshes[5] = {box(FEM_T4, 1, 1, 8, 1, 2, 12), box(FEM_T4, 1, 1, 8, 2, 2, 12), branching(FEM_T4, 1, 0.2),
                             branching(FEM_T4, 2, 0.2)};
    domain_tree tree = {0};
    if (dragon) assert_ok(fem_mesh_read(&meshes[4], dragon));
    for (int m = 0; m < (dragon ? 5 : 4); m++)
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
            for (int method = DOMAIN_GEODESIC; method <= DOMAIN_METIS; method++) {
                if (counts[k] > meshes[m].element_count / 2) continue;
                domain_options o = options_of(&meshes[m], (domain_method)method, counts[k], NULL);
                assert_ok(domain_decompose(&tree, &meshes[m], &o));
                examine(&meshes[m], &tree);
                assert_int_equal(bare_domains(&tree), 0);
            }
    domain_tree_destroy(&tree);
    for (int m = 0; m < 5; m++) fem_mesh_destroy(&meshes[m]);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies),        cmocka_unit_test(test_limbs),        cmocka_unit_test(test_count),
        cmocka_unit_test(test_deterministic), cmocka_unit_test(test_sets),         cmocka_unit_test(test_sets_refused),
        cmocka_unit_test(test_touching),      cmocka_unit_test(test_hinge),        cmocka_unit_test(test_loops),
        cmocka_unit_test(test_two_halves),    cmocka_unit_test(test_feet),         cmocka_unit_test(test_chain),
        cmocka_unit_test(test_long_loop),     cmocka_unit_test(test_parts),        cmocka_unit_test(test_partition),
        cmocka_unit_test(test_inner_faces),   cmocka_unit_test(test_no_memory),    cmocka_unit_test(test_shared_bodies),
        cmocka_unit_test(test_truss),         cmocka_unit_test(test_own_vertices),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
