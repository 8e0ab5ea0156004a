// The mesher: angles within the published bounds whatever the signs and cuts are, surfaces met to second order, winding
// numbers against their sum, surfaces with faults, hinges, sizes, and the failing allocator.
#include "libfem/stuffing.h"
#include "libfem/surface_tree.h"
#include "tests/support.h"

#include <math.h>

// ---- surfaces --------------------------------------------------------------------------------------------------

// A ball of triangles: the octahedron with its faces cut into n^2, pushed out.
static fem_surface ball(int n, double radius, const double centre[3]) {
    fem_surface s = {.vertices = fem_alloc(8 * 3 * (size_t)n * (size_t)n, 3 * sizeof(double)),
                     .triangles = fem_alloc(8 * (size_t)n * (size_t)n, 3 * sizeof(int))};
    for (int face = 0; face < 8; face++) {
        double sign[3] = {face & 1 ? -1 : 1, face & 2 ? -1 : 1, face & 4 ? -1 : 1};
        bool   even = sign[0] * sign[1] * sign[2] > 0;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n - i; j++)
                for (int part = 0; part < (j < n - i - 1 ? 2 : 1); part++) {
                    int corner[3][2] = {{i + part, j + part}, {i + 1, j}, {i, j + 1}};
                    for (int k = 0; k < 3; k++) {
                        const int *c = corner[(even != (part == 1)) ? k : 2 - k];
                        double     x[3] = {sign[0] * c[0], sign[1] * c[1], sign[2] * (n - c[0] - c[1])};
                        vec3_normalize(x);
                        for (int a = 0; a < 3; a++)
                            s.vertices[3 * (size_t)s.vertex_count + (size_t)a] = centre[a] + radius * x[a];
                        s.triangles[3 * (size_t)s.triangle_count + (size_t)k] = s.vertex_count++;
                    }
                    s.triangle_count++;
                }
    }
    return s;
}

static fem_surface cuboid(const double low[3], const double high[3]) {
    static const int sides[6][4] = {{0, 2, 3, 1}, {4, 5, 7, 6}, {0, 1, 5, 4}, {2, 6, 7, 3}, {0, 4, 6, 2}, {1, 3, 7, 5}};
    fem_surface      s = {.vertex_count = 8,
                          .vertices = fem_alloc(24, sizeof(double)),
                          .triangle_count = 12,
                          .triangles = fem_alloc(36, sizeof(int))};
    for (int v = 0; v < 8; v++)
        for (int k = 0; k < 3; k++) s.vertices[3 * v + k] = v >> k & 1 ? high[k] : low[k];
    for (int f = 0; f < 6; f++)
        for (int k = 0; k < 6; k++) s.triangles[6 * f + k] = sides[f][(int[]){0, 1, 2, 0, 2, 3}[k]];
    return s;
}

static void turn_over(fem_surface *s, int first, int end) {
    for (int t = first; t < end; t++) {
        int corner = s->triangles[3 * t];
        s->triangles[3 * t] = s->triangles[3 * t + 1], s->triangles[3 * t + 1] = corner;
    }
}

static const double origin[3] = {0, 0, 0};

// ---- stuffing --------------------------------------------------------------------------------------------------

typedef struct cuts {
    uint64_t seed;
    bool     extreme; // at the bounds of what draws points, where the worst angles are
} cuts;

static double hash_unit(uint64_t h) {
    h ^= h >> 33, h *= 0xff51afd7ed558ccdULL, h ^= h >> 33, h *= 0xc4ceb9fe1a85ec53ULL, h ^= h >> 33;
    return (double)(h >> 11) * 0x1p-53;
}

static double random_cut(void *context, size_t inside, size_t outside) {
    const cuts *c = context;
    double      u = hash_unit(c->seed * 1315423911u + inside * 2654435761u + outside * 97u);
    double      v = hash_unit(c->seed * 77u + inside * 1234567u + outside * 7654321u);
    double      bound = inside % 2 == outside % 2 ? FEM_STUFFING_LONG : FEM_STUFFING_SHORT;
    if (!c->extreme) return v;
    if (u < 0.35) return bound + (u < 0.1 ? -1e-9 : 1e-9);
    if (u < 0.7) return 1 - bound + (u < 0.45 ? 1e-9 : -1e-9);
    return u < 0.75 ? 0 : u < 0.8 ? 1 : v;
}

// random signs and cuts on a lattice, which no smooth surface is as bad as: the paper's bounds hold and are nearly met
static void test_angles(void **state) {
    (void)state;
    double smallest = 180, largest = 0;
    long   elements = 0;
    for (uint64_t trial = 1; trial <= 240; trial++) {
        fem_lattice l = {.n = {14, 14, 14}, .size = 1};
        fem_mesh    mesh = {0};
        fem_quality q;
        size_t      count = fem_lattice_count(&l);
        double      share = 0.2 + 0.6 * hash_unit(trial * 31);
        l.sign = malloc(count);
        assert_non_null(l.sign);
        for (size_t i = 0; i < count; i++) l.sign[i] = hash_unit(trial * 1000003 + i * 7919) < share ? 1 : -1;
        assert_ok(fem_stuff_lattice(&mesh, &l, random_cut, &(cuts){trial, trial % 4 != 0}));
        assert_ok(fem_mesh_check(&mesh)); // volumes are positive
        assert_ok(fem_mesh_quality(&mesh, &q));
        int *triangles = NULL, outer = 0;
        assert_ok(fem_mesh_surface(&mesh, &outer, &triangles, NULL)); // no face belongs to three
        fem_free(triangles);
        smallest = fmin(smallest, q.min_dihedral), largest = fmax(largest, q.max_dihedral);
        elements += mesh.element_count;
        fem_mesh_destroy(&mesh);
        free(l.sign);
    }
    printf("random signs and cuts: angles %.3f .. %.3f in %ld tetrahedra (the paper: 10.78 .. 164.74)\n", smallest,
           largest, elements);
    assert_true(smallest > 10.77 && largest < 164.75);
    assert_true(smallest < 11.5 && largest > 163); // the worst cases were among them
}

// the mesh of a random lattice is conforming: its surface is closed
static void test_conforming(void **state) {
    (void)state;
    fem_lattice l = {.n = {12, 13, 14}, .size = 0.5};
    fem_mesh    mesh = {0};
    size_t      count = fem_lattice_count(&l);
    int        *triangles = NULL, outer = 0;
    double      sum[3] = {0, 0, 0}, enclosed = 0, volume = 0;
    l.sign = malloc(count);
    assert_non_null(l.sign);
    for (size_t i = 0; i < count; i++) l.sign[i] = hash_unit(i * 7919 + 5) < 0.7 ? 1 : -1;
    assert_ok(fem_stuff_lattice(&mesh, &l, random_cut, &(cuts){3, false}));
    assert_ok(fem_mesh_surface(&mesh, &outer, &triangles, NULL));
    for (int t = 0; t < outer; t++) {
        const double *x[3];
        double        a[3], b[3], n[3];
        for (int k = 0; k < 3; k++) x[k] = mesh.vertices + 3 * triangles[3 * t + k];
        vec3_sub(a, x[1], x[0]), vec3_sub(b, x[2], x[0]);
        vec3_cross(n, a, b);
        vec3_axpy(sum, 0.5, n);
        enclosed += vec3_dot(x[0], n) / 6;
    }
    for (int e = 0; e < mesh.element_count; e++) volume += fem_element_volume(&mesh, e);
    printf("open area %.2g, enclosed %.12g, elements %.12g\n", vec3_norm(sum), enclosed, volume);
    assert_true(volume > 10 && vec3_norm(sum) < 1e-11 && fabs(enclosed - volume) < 1e-11 * volume);
    fem_free(triangles);
    fem_mesh_destroy(&mesh);
    free(l.sign);
}

// ---- questions to a surface ------------------------------------------------------------------------------------

static double slow_winding(const fem_surface *s, const double p[3]) {
    double sum = 0;
    for (int t = 0; t < s->triangle_count; t++) {
        double a[3][3], length[3], n[3];
        for (int k = 0; k < 3; k++) {
            vec3_sub(a[k], s->vertices + 3 * s->triangles[3 * t + k], p);
            length[k] = vec3_norm(a[k]);
        }
        vec3_cross(n, a[1], a[2]);
        sum += 2 * atan2(vec3_dot(a[0], n), length[0] * length[1] * length[2] + vec3_dot(a[0], a[1]) * length[2] +
                                                vec3_dot(a[1], a[2]) * length[0] + vec3_dot(a[2], a[0]) * length[1]);
    }
    return sum / (4 * M_PI);
}

// hierarchical winding numbers agree with the sum over triangles, for a closed ball and one with a hole
static void test_winding(void **state) {
    (void)state;
    fem_surface s = ball(20, 1, origin);
    for (int open = 0; open < 2; open++) {
        fem_surface_tree tree = {0};
        uint64_t         random = 4;
        double           error = 0, square = 0;
        int              between = 0;
        if (open) s.triangle_count -= 900;
        assert_ok(fem_surface_tree_create(&tree, s.triangle_count, s.triangles, s.vertices));
        for (int i = 0; i < 1000; i++) {
            double p[3];
            test_random_fill(&random, 3, 1.6, p);
            double slow = slow_winding(&s, p), fast = fem_surface_winding(&tree, p);
            error = fmax(error, fabs(slow - fast)), square += (slow - fast) * (slow - fast);
            between += fabs(slow - 0.5) < 0.45;
        }
        printf("winding number, %s: error at most %.2g, rms %.2g, %d of 1000 between 0 and 1\n",
               open ? "open" : "closed", error, sqrt(square / 1000), between);
        assert_true(error < 0.02 && sqrt(square / 1000) < 4e-3 && (open ? between > 100 : between < 20));
        fem_surface_tree_destroy(&tree);
    }
    fem_surface_destroy(&s);
}

// ---- the mesher ------------------------------------------------------------------------------------------------

typedef struct filled {
    fem_mesh          mesh;
    fem_mesher_report report;
    fem_remarks       remarks;
    fem_quality       quality;
} filled;

static filled fill(const fem_surface *s, fem_mesher_method method, fem_element type, double size) {
    filled f = {0};
    assert_ok(fem_mesh_fill_surface(&f.mesh, s, &(fem_mesher_options){method, type, size}, &f.report, &f.remarks));
    assert_ok(fem_mesh_check(&f.mesh));
    assert_ok(fem_mesh_quality(&f.mesh, &f.quality));
    assert_int_equal(f.quality.unused_vertices, 0);
    assert_non_null(fem_mesh_vertex_set(&f.mesh, "surface"));
    if (method == FEM_STUFFING) assert_true(f.quality.min_dihedral > 10.7 && f.quality.max_dihedral < 164.8);
    return f;
}

static void filled_destroy(filled *f) {
    fem_mesh_destroy(&f->mesh);
    fem_remarks_destroy(&f->remarks);
}

static bool remarked(const filled *f, const char *text) {
    for (int i = 0; i < f->remarks.count; i++)
        if (strstr(f->remarks.items[i], text)) return true;
    return false;
}

// a ball: every vertex of the mesh's surface lies on the triangles, volume and distance converge with order 2
static void test_ball(void **state) {
    (void)state;
    fem_surface      s = ball(64, 1, (double[]){0.1, 0.2, 0.3});
    fem_surface_tree tree = {0};
    double           missing[3], distance[3];
    assert_ok(fem_surface_tree_create(&tree, s.triangle_count, s.triangles, s.vertices));
    for (int i = 0; i < 3; i++) {
        double         size = 0.4 / (1 << i), off = 0;
        filled         f = fill(&s, FEM_STUFFING, FEM_T4, size);
        const fem_set *set = fem_mesh_vertex_set(&f.mesh, "surface");
        for (int k = 0; k < set->count; k++)
            off = fmax(off, sqrt(fem_surface_distance(&tree, f.mesh.vertices + 3 * set->items[k])));
        missing[i] = f.report.volume - f.quality.volume, distance[i] = f.report.to_mesh;
        printf("ball, size %.2f: %d elements, angles %.2f .. %.2f, %.4f of the volume missing, distance %.4f, vertices "
               "off by %.1e\n",
               size, f.mesh.element_count, f.quality.min_dihedral, f.quality.max_dihedral, missing[i] / f.report.volume,
               distance[i], off);
        assert_true(off < 1e-12 && f.quality.components == 1 && f.report.pinches == 0 && f.report.open_edges == 0);
        assert_int_equal(f.remarks.count, 0);
        filled_destroy(&f);
    }
    double order = log2(missing[0] / missing[2]) / 2, distance_order = log2(distance[0] / distance[2]) / 2;
    printf("orders: volume %.2f, distance %.2f\n", order, distance_order);
    assert_true(order > 1.7 && order < 2.3 && distance_order > 1.5);
    fem_surface_tree_destroy(&tree);
    fem_surface_destroy(&s);
}

// a cuboid of whole voxels is exact; stuffing of one along the lattice is too but for its edges
static void test_cuboid(void **state) {
    (void)state;
    fem_surface s = cuboid((double[]){1, 2, 3}, (double[]){2, 2.5, 3.75});
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        filled f = fill(&s, FEM_VOXELS, (fem_element)type, 0.125);
        assert_int_equal(f.mesh.element_count, 8 * 4 * 6 * (type == FEM_T4 ? 6 : 1));
        assert_true(fabs(f.quality.volume - 0.375) < 1e-12 && f.report.to_mesh < 1e-12);
        filled_destroy(&f);
    }
    filled f = fill(&s, FEM_STUFFING, FEM_T4, 0.125);
    printf("cuboid: %d tetrahedra, volume %.6f of 0.375, distance %.3f sizes\n", f.mesh.element_count, f.quality.volume,
           f.report.to_mesh / 0.125);
    assert_true(fabs(f.quality.volume / 0.375 - 1) < 0.03 && f.report.to_surface < 1e-12);
    filled_destroy(&f);
    fem_surface_destroy(&s);
}

static int count_inside(const fem_mesh *mesh, const double centre[3], double radius) {
    int inside = 0;
    for (int v = 0; v < mesh->vertex_count; v++) inside += vec3_distance(mesh->vertices + 3 * v, centre) < radius;
    return inside;
}

// faults: turned over as a whole or in part, doubled, open, overlapping, hollow
static void test_faults(void **state) {
    (void)state;
    fem_surface s = ball(16, 1, origin);
    filled      good = fill(&s, FEM_STUFFING, FEM_T4, 0.2);

    turn_over(&s, 0, s.triangle_count);
    filled inward = fill(&s, FEM_STUFFING, FEM_T4, 0.2);
    assert_true(inward.report.turned && remarked(&inward, "faces inwards"));
    assert_int_equal(inward.mesh.element_count, good.mesh.element_count);

    turn_over(&s, 0, 3 * s.triangle_count / 4);
    filled mixed = fill(&s, FEM_STUFFING, FEM_T4, 0.2);
    assert_true(remarked(&mixed, "another way than their neighbours"));
    assert_int_equal(mixed.report.open_edges, 0);
    assert_int_equal(mixed.mesh.element_count, good.mesh.element_count);
    turn_over(&s, 3 * s.triangle_count / 4, s.triangle_count);

    int n = s.triangle_count;
    s.triangles = fem_realloc(s.triangles, 6 * (size_t)n, sizeof(int));
    memcpy(s.triangles + 3 * n, s.triangles, 3 * (size_t)n * sizeof(int));
    s.triangle_count = 2 * n;
    turn_over(&s, n, 2 * n);
    filled doubled = fill(&s, FEM_STUFFING, FEM_T4, 0.2);
    assert_int_equal(doubled.report.doubled, n);
    assert_true(remarked(&doubled, "from both sides"));
    assert_int_equal(doubled.mesh.element_count, good.mesh.element_count);

    s.triangle_count = n - 20; // a hole of a hundredth
    filled open = fill(&s, FEM_STUFFING, FEM_T4, 0.2);
    printf("with a hole: %d open edges, volume %.4f of %.4f\n", open.report.open_edges, open.quality.volume,
           good.quality.volume);
    assert_true(open.report.open_edges > 3 && remarked(&open, "not closed"));
    assert_true(fabs(open.quality.volume / good.quality.volume - 1) < 0.02);

    filled *all[] = {&good, &inward, &mixed, &doubled, &open};
    for (int i = 0; i < 5; i++) filled_destroy(all[i]);
    fem_surface_destroy(&s);
}

static fem_surface join(fem_surface *a, fem_surface *b) {
    int         v = a->vertex_count, t = a->triangle_count;
    fem_surface s = {.vertex_count = v + b->vertex_count, .triangle_count = t + b->triangle_count};
    s.vertices = fem_alloc((size_t)s.vertex_count, 3 * sizeof(double));
    s.triangles = fem_alloc((size_t)s.triangle_count, 3 * sizeof(int));
    memcpy(s.vertices, a->vertices, 3 * (size_t)v * sizeof(double));
    memcpy(s.vertices + 3 * v, b->vertices, 3 * (size_t)b->vertex_count * sizeof(double));
    memcpy(s.triangles, a->triangles, 3 * (size_t)t * sizeof(int));
    for (int i = 0; i < 3 * b->triangle_count; i++) s.triangles[3 * t + i] = b->triangles[i] + v;
    fem_surface_destroy(a), fem_surface_destroy(b);
    return s;
}

// overlapping balls unite, an inner ball that faces inwards is a hollow
static void test_several(void **state) {
    (void)state;
    fem_surface a = ball(16, 1, origin), b = ball(16, 1, (double[]){1.2, 0, 0});
    fem_surface two = join(&a, &b);
    filled      f = fill(&two, FEM_STUFFING, FEM_T4, 0.15);
    double      lens = M_PI * (2 - 1.2) * (2 - 1.2) * (1.2 * 1.2 + 4 * 1.2) / (12 * 1.2);
    printf("two balls: volume %.3f, of the union %.3f\n", f.quality.volume, 8 * M_PI / 3 - lens);
    assert_true(fabs(f.quality.volume / (8 * M_PI / 3 - lens) - 1) < 0.03 && f.quality.components == 1);
    filled_destroy(&f);
    fem_surface_destroy(&two);

    a = ball(16, 1, origin), b = ball(16, 0.5, origin);
    turn_over(&b, 0, b.triangle_count);
    two = join(&a, &b);
    f = fill(&two, FEM_STUFFING, FEM_T4, 0.15);
    assert_int_equal(count_inside(&f.mesh, origin, 0.4), 0);
    assert_true(fabs(f.quality.volume / (4 * M_PI / 3 * 0.875) - 1) < 0.03);
    filled_destroy(&f);
    fem_surface_destroy(&two);
}

// a thin rod on a ball is lost at a large size, which is said with its place; at a small size it is there
static void test_thin(void **state) {
    (void)state;
    fem_surface a = ball(16, 1, origin), b = cuboid((double[]){-0.03, -0.03, 0.9}, (double[]){0.03, 0.03, 2});
    fem_surface s = join(&a, &b);
    filled      coarse = fill(&s, FEM_STUFFING, FEM_T4, 0.25), fine = fill(&s, FEM_STUFFING, FEM_T4, 0.04);
    printf("rod: lost area %.3f of %.3f, distance %.3f at z = %.3f; fine: lost %.4f\n", coarse.report.lost_area,
           coarse.report.area, coarse.report.place_distance[0], coarse.report.places[0][2], fine.report.lost_area);
    assert_true(remarked(&coarse, "are lost") && coarse.report.place_count >= 1);
    assert_true(coarse.report.lost_area > 0.15 && coarse.report.places[0][2] > 1.99);
    assert_true(coarse.report.to_mesh > 0.9 && coarse.report.to_mesh < 1.05);
    assert_true(fine.quality.high[2] > 1.95 && fine.report.lost_area < 0.05 * coarse.report.lost_area);
    filled_destroy(&coarse), filled_destroy(&fine);
    fem_surface_destroy(&s);
}

// the surface follows the mesh: its vertices move by a linear field as the mesh's do, and the file says how
static void test_embedding(void **state) {
    (void)state;
    fem_surface   s = ball(12, 1, origin);
    filled        f = fill(&s, FEM_STUFFING, FEM_T4, 0.3);
    fem_embedding m = {0};
    double        error = 0, *moved = malloc(3 * (size_t)s.vertex_count * sizeof *moved);
    char         *text = NULL;
    size_t        size = 0;
    assert_non_null(moved);
    assert_ok(fem_embed_points(&m, &f.mesh, s.vertex_count, s.vertices));
    fem_embedding_apply(&m, f.mesh.vertices, moved);
    for (int i = 0; i < 3 * s.vertex_count; i++) error = fmax(error, fabs(moved[i] - s.vertices[i]));
    printf("embedded surface: error %.1e\n", error);
    assert_true(error < 1e-9);
    const char *path = test_temporary("ball.interp");
    assert_ok(fem_embedding_write(&m, path));
    assert_ok(fem_file_read(&text, &size, path));
    const char *line = text;
    for (int i = 0; i < m.point_count; i++) {
        char *at;
        assert_int_equal(strtol(line, &at, 10), i);
        for (int k = 0; k < 4; k++) {
            assert_int_equal(strtol(at, &at, 10), m.vertices[4 * i + k]);
            assert_true(strtod(at, &at) == m.weights[4 * i + k]);
        }
        assert_true(*at == '\n');
        line = at + 1;
    }
    assert_true(*line == 0);
    fem_free(text), free(moved);
    fem_embedding_destroy(&m);
    filled_destroy(&f);
    fem_surface_destroy(&s);
}

// sizes and surfaces that cannot be: refused with what would do, and what would do does
static void test_refused(void **state) {
    (void)state;
    fem_surface        s = ball(8, 1, origin);
    fem_mesh           mesh = {0};
    fem_mesher_report  r;
    fem_mesher_options o = {FEM_STUFFING, FEM_T4, 1e-4};
    size_t             peak = fem_memory_peak();
    assert_fails(fem_mesh_fill_surface(&mesh, &s, &o, &r, NULL), FEM_BAD_INPUT, "would do");
    assert_true(fem_memory_peak() < peak + 1000000); // nothing large was taken
    o.size = 50;
    assert_fails(fem_mesh_fill_surface(&mesh, &s, &o, &r, NULL), FEM_BAD_INPUT, "too large");
    o.size = strtod(strstr(fem_message(), "about ") + 6, NULL);
    assert_ok(fem_mesh_fill_surface(&mesh, &s, &o, &r, NULL));
    assert_true(mesh.element_count > 10);
    double bad[] = {0, -1, NAN, INFINITY};
    for (int i = 0; i < 4; i++) {
        o.size = bad[i];
        assert_fails(fem_mesh_fill_surface(&mesh, &s, &o, &r, NULL), FEM_BAD_INPUT, "size is");
    }
    o = (fem_mesher_options){FEM_STUFFING, FEM_H8, 0.1};
    assert_fails(fem_mesh_fill_surface(&mesh, &s, &o, &r, NULL), FEM_BAD_INPUT, "method voxel");
    o.type = FEM_T4, o.size = 0.1;
    for (int i = 0; i < s.vertex_count; i++) s.vertices[3 * i + 2] = 0;
    assert_fails(fem_mesh_fill_surface(&mesh, &s, &o, &r, NULL), FEM_BAD_INPUT, "encloses no volume");
    for (int i = 0; i < s.vertex_count; i++) s.vertices[3 * i + 1] = 0;
    assert_fails(fem_mesh_fill_surface(&mesh, &s, &o, &r, NULL), FEM_BAD_INPUT, "has an area");
    s.vertices[4] = NAN;
    assert_fails(fem_mesh_fill_surface(&mesh, &s, &o, &r, NULL), FEM_BAD_INPUT, "vertex 1");
    s.vertices[4] = 0, s.triangles[5] = s.vertex_count;
    assert_fails(fem_mesh_fill_surface(&mesh, &s, &o, &r, NULL), FEM_BAD_INPUT, "triangle 1");
    assert_true(mesh.element_count > 10); // what was there stays
    fem_mesh_destroy(&mesh);
    fem_surface_destroy(&s);
}

// results do not depend on the number of threads
static void test_threads(void **state) {
    (void)state;
    fem_surface s = ball(16, 1, origin);
    fem_hash    hash[2];
    s.triangle_count -= 100;
    for (int i = 0; i < 2; i++) {
        fem_set_threads(i == 0 ? 1 : 3);
        filled f = fill(&s, FEM_STUFFING, FEM_T4, 0.13);
        hash[i] = fem_mesh_hash(&f.mesh);
        filled_destroy(&f);
    }
    fem_set_threads(0);
    assert_memory_equal(&hash[0], &hash[1], sizeof hash[0]);
    fem_surface_destroy(&s);
}

// every allocation may fail: nothing is lost, the mesh stays as it was
static void test_memory(void **state) {
    (void)state;
    fem_surface s = ball(4, 1, origin);
    turn_over(&s, 0, 5);
    s.triangle_count -= 3;
    for (int method = FEM_STUFFING; method <= FEM_VOXELS; method++) {
        long failures = 0;
        for (long allowed = 0;; allowed++) {
            fem_mesh          mesh = {0};
            fem_mesher_report r;
            fem_remarks       remarks = {0};
            long              blocks = fem_memory_blocks();
            fem_memory_fail_after(allowed);
            fem_status status = fem_mesh_fill_surface(
                &mesh, &s, &(fem_mesher_options){(fem_mesher_method)method, FEM_T4, 0.3}, &r, &remarks);
            fem_memory_fail_after(-1);
            fem_remarks_destroy(&remarks);
            if (status == FEM_OK) {
                fem_mesh_destroy(&mesh);
                break;
            }
            assert_int_equal(status, FEM_NO_MEMORY);
            assert_true(fem_memory_blocks() == blocks && mesh.element_count == 0);
            failures++;
        }
        printf("method %d: %ld allocations failed, each alone\n", method, failures);
        assert_true(failures > 30);
    }
    fem_surface_destroy(&s);
}

// the surfaces of the shared data at three sizes
static void test_shared(void **state) {
    (void)state;
    static const char *const names[] = {"surfaces/bunny.obj",
                                        "surfaces/koala.obj.gz",
                                        "surfaces/hand.obj.gz",
                                        "surfaces/plane.obj.gz",
                                        "surfaces/kenney/tree_default_fall.obj",
                                        "surfaces/kenney/tree_oak_fall.obj",
                                        "surfaces/kenney/tree_pineRoundA.obj",
                                        "surfaces/kenney/tree_small_fall.obj",
                                        "vega/models/turtle/turtle.obj",
                                        "vega/models/selfIntersecting/doubleLoop/doubleLoopWithCube.obj"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        fem_surface s = {0};
        const char *path = test_data(names[i]);
        if (!path) return;
        assert_ok(fem_surface_read(&s, path));
        for (int k = 0; k < 3; k++) {
            fem_mesher_options o = {FEM_STUFFING, FEM_T4, 1};
            filled             f = fill(&s, FEM_STUFFING, FEM_T4,
                                        cbrt(fem_mesher_estimate(&s, &o) / (k == 0   ? 1e3
                                                                            : k == 1 ? 5e3
                                                                                     : 2e4)));
            printf("%-40s %7d elements, angles %.2f .. %.2f\n", names[i], f.mesh.element_count, f.quality.min_dihedral,
                   f.quality.max_dihedral);
            assert_true(f.mesh.element_count > 200);
            filled_destroy(&f);
        }
        fem_surface_destroy(&s);
    }
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_angles),  cmocka_unit_test(test_conforming), cmocka_unit_test(test_winding),
        cmocka_unit_test(test_ball),    cmocka_unit_test(test_cuboid),     cmocka_unit_test(test_faults),
        cmocka_unit_test(test_several), cmocka_unit_test(test_thin),       cmocka_unit_test(test_embedding),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_threads),    cmocka_unit_test(test_memory),
        cmocka_unit_test(test_shared),
    };
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
