// Mesh files: what is read is what the file says, a round trip loses nothing that the format can hold, real files read,
// files are written whole or not at all, and every allocation may fail.
#include "tests/support.h"
#include "libfem/text.h"

#include <dirent.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <zlib.h>

// ---- numbers ---------------------------------------------------------------------------------------------------

static double random_double(uint64_t *state) {
    for (;;) {
        uint64_t bits = (uint64_t)((test_random(state) + 1) * 2147483648.0) << 32 |
                        (uint64_t)((test_random(state) + 1) * 2147483648.0);
        double x;
        memcpy(&x, &bits, sizeof x);
        if (isfinite(x)) return x;
    }
}

// numbers read as strtod reads them in the C locale, to the last bit, whatever the length; what is written reads back
static void test_numbers(void **state) {
    (void)state;
    uint64_t seed = 7;
    int      checked = 0, shortest = 0;
    for (int i = 0; i < 60000; i++) {
        double x = i % 3 ? random_double(&seed) : test_random(&seed) * 1000, read = 0;
        char   text[64], back[FEM_DIGITS];
        snprintf(text, sizeof text, "%.*g", 1 + i % 20, x);
        double expected = strtod(text, NULL);
        if (!isfinite(expected)) continue; // rounded up past the largest
        assert_true(fem_parse_double(text, strlen(text), &read));
        assert_memory_equal(&read, &expected, sizeof read);
        int length = fem_format_double(back, x);
        assert_true(fem_parse_double(back, (size_t)length, &read));
        assert_memory_equal(&read, &x, sizeof x);
        shortest += length < 18;
        checked++;
    }
    printf("%d numbers equal to strtod's, all written and read back (%d in fewer than 18 letters)\n", checked,
           shortest);
    static const char *const good[] = {"0",
                                       "-0",
                                       "+1",
                                       "1.",
                                       ".5",
                                       "1e5",
                                       "1E+05",
                                       "4.9e-324",
                                       "1e-400",
                                       "00012",
                                       "9007199254740993",
                                       "0.1000000000000000055511151231257827",
                                       "123456789012345678901234567890"};
    static const char *const bad[] = {"",    "-",     ".",   "e5", "1e", "1e+",   "0x1p3", "inf",
                                      "nan", "1e999", "1,5", "1 ", " 1", "1.2.3", "--1",   "1f"};
    double                   x;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        double expected = strtod(good[i], NULL);
        assert_true(fem_parse_double(good[i], strlen(good[i]), &x));
        assert_memory_equal(&x, &expected, sizeof x);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (fem_parse_double(bad[i], strlen(bad[i]), &x)) fail_msg("\"%s\" was taken for %g", bad[i], x);
}

// a locale with a decimal comma changes nothing
static void test_locale(void **state) {
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "it_IT.UTF-8", "de_DE.utf8", "fr_FR.utf8"};
    char                     old[64];
    snprintf(old, sizeof old, "%s", setlocale(LC_NUMERIC, NULL));
    size_t i = 0, count = sizeof names / sizeof *names;
    while (i < count && !setlocale(LC_NUMERIC, names[i])) i++;
    if (i == count) {
        printf("skipped: no locale with a decimal comma\n");
        return;
    }
    double x = 0;
    char   text[FEM_DIGITS];
    assert_true(fem_parse_double("0.30000000000000004440892098500626", 34, &x));
    fem_format_double(text, 0.1 + 0.2);
    setlocale(LC_NUMERIC, old);
    assert_true(x == 0.1 + 0.2);
    assert_string_equal(text, "0.30000000000000004");
    printf("read and written with a point in %s\n", names[i]);
}

// ---- comparing meshes ------------------------------------------------------------------------------------------

static void assert_same_sets(int count, const fem_set *a, int other, const fem_set *b) {
    assert_int_equal(count, other);
    for (int i = 0; i < count; i++) {
        assert_string_equal(a[i].name, b[i].name);
        assert_int_equal(a[i].count, b[i].count);
        assert_memory_equal(a[i].items, b[i].items, (size_t)a[i].count * sizeof(int));
    }
}

static void assert_same_geometry(const fem_mesh *a, const fem_mesh *b) {
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->vertex_count, b->vertex_count);
    assert_int_equal(a->element_count, b->element_count);
    assert_memory_equal(a->vertices, b->vertices, 3 * (size_t)a->vertex_count * sizeof(double));
    assert_memory_equal(a->elements, b->elements,
                        (size_t)(a->element_count * fem_element_vertices(a->type)) * sizeof(int));
    assert_memory_equal(a->region, b->region, (size_t)a->element_count * sizeof(int));
    assert_int_equal(a->region_count, b->region_count);
}

static void assert_same_mesh(const fem_mesh *a, const fem_mesh *b) {
    assert_same_geometry(a, b);
    for (int i = 0; i < a->region_count; i++) {
        assert_string_equal(a->regions[i].name, b->regions[i].name);
        assert_int_equal(a->regions[i].material, b->regions[i].material);
    }
    assert_int_equal(a->material_count, b->material_count);
    size_t numbers = offsetof(fem_material, density); // what follows is numbers without gaps
    for (int i = 0; i < a->material_count; i++) {
        assert_string_equal(a->materials[i].name, b->materials[i].name);
        assert_int_equal(a->materials[i].kind, b->materials[i].kind);
        assert_memory_equal(&a->materials[i].density, &b->materials[i].density, sizeof(fem_material) - numbers);
    }
    assert_same_sets(a->vertex_set_count, a->vertex_sets, b->vertex_set_count, b->vertex_sets);
    assert_same_sets(a->element_set_count, a->element_sets, b->element_set_count, b->element_sets);
}

// A box with awkward coordinates, two regions, three materials and sets; `kind` is the kind of the third material.
static void make_box(fem_mesh *mesh, fem_element type, fem_material_kind kind) {
    assert_ok(fem_generate_box(mesh, type, (double[]){-1.0 / 3, 0.1, 1e-7}, (double[]){2.0 / 3, 1e3 / 7, 0.7},
                               (int[]){3, 2, 2}));
    fem_material materials[3];
    for (int i = 0; i < 3; i++) materials[i] = fem_material_default();
    memset(materials[1].name, 0, sizeof materials[1].name), memset(materials[2].name, 0, sizeof materials[2].name);
    strcpy(materials[1].name, "wood"), strcpy(materials[2].name, "third");
    materials[1].kind = FEM_ORTHOTROPIC;
    double along[3] = {1e9 / 3, 2e8, 1e8}, frame[9] = {0, 0, 1, 1, 0, 0, 0, 1, 0};
    memcpy(materials[1].young3, along, sizeof along);
    memcpy(materials[1].frame, frame, sizeof frame);
    materials[2].kind = kind;
    materials[2].density = 1234.5;
    fem_free(mesh->materials);
    mesh->materials = fem_copy(materials, 3, sizeof *materials);
    mesh->material_count = 3;
    char *name = fem_copy_string("core");
    mesh->regions = fem_realloc(mesh->regions, 2, sizeof *mesh->regions);
    assert_true(mesh->materials && mesh->regions && name);
    mesh->regions[1] = (fem_region){name, 1};
    mesh->regions[0].material = 2;
    mesh->region_count = 2;
    int items[3] = {1, 4, 5};
    for (int i = 0; i < 3; i++) mesh->region[items[i]] = 1;
    assert_ok(fem_mesh_add_element_set(mesh, "core", 3, items));
    assert_ok(fem_mesh_add_element_set(mesh, "pair", 2, items));
    assert_ok(fem_mesh_add_element_set(mesh, "nothing", 0, items));
}

// ---- round trips -----------------------------------------------------------------------------------------------

// .vtu keeps everything to the last bit, .veg everything but the kinds of material that it does not know; packed or not
static void test_round_trips(void **state) {
    (void)state;
    static const char *const names[] = {"trip.vtu", "trip.vtu.gz", "trip.veg", "trip.veg.gz"};
    int                      trips = 0;
    for (int type = FEM_T4; type <= FEM_H8; type++)
        for (int kind = 0; kind < FEM_MATERIAL_KINDS; kind++)
            for (int i = 0; i < 4; i++) {
                fem_mesh    mesh = {0}, back = {0};
                const char *path = test_temporary(names[i]);
                bool        holds = i < 2 || kind == FEM_STVK || kind == FEM_ORTHOTROPIC || kind == FEM_MOONEY_RIVLIN;
                make_box(&mesh, (fem_element)type, (fem_material_kind)kind);
                if (holds) {
                    assert_ok(fem_mesh_write(&mesh, path));
                    assert_ok(fem_mesh_read(&back, path));
                    if (i >= 2) // fields that the kind does not use are not in a .veg
                        for (int m = 0; m < mesh.material_count; m++) {
                            assert_string_equal(mesh.materials[m].name, back.materials[m].name);
                            assert_int_equal(mesh.materials[m].kind, back.materials[m].kind);
                            assert_true(mesh.materials[m].density == back.materials[m].density);
                            back.materials[m] = mesh.materials[m];
                        }
                    assert_same_mesh(&mesh, &back);
                    trips++;
                } else {
                    assert_fails(fem_mesh_write(&mesh, path), FEM_BAD_INPUT, "which .veg cannot hold: write .vtu");
                }
                fem_mesh_destroy(&mesh);
                fem_mesh_destroy(&back);
            }
    printf("%d round trips without loss\n", trips);
    assert_int_equal(trips, 36);
}

// the orthotropic and Mooney-Rivlin numbers of a .veg come back to the last bit
static void test_veg_material_trip(void **state) {
    (void)state;
    fem_mesh mesh = {0}, back = {0};
    make_box(&mesh, FEM_T4, FEM_MOONEY_RIVLIN);
    mesh.materials[2].mu01 = 1e5 / 3;
    mesh.materials[1].poisson3[2] = 0.1 / 3;
    const char *path = test_temporary("materials.veg");
    assert_ok(fem_mesh_write(&mesh, path));
    assert_ok(fem_mesh_read(&back, path));
    assert_same_mesh(&mesh, &back);
    printf("%d materials equal\n", mesh.material_count);
    fem_mesh_destroy(&mesh);
    fem_mesh_destroy(&back);
}

// TetGen's pair keeps the geometry and which elements are together
static void test_tetgen_trip(void **state) {
    (void)state;
    fem_mesh mesh = {0}, back = {0}, hex = {0};
    make_box(&mesh, FEM_T4, FEM_STVK);
    assert_ok(fem_mesh_write(&mesh, test_temporary("trip.node")));
    assert_ok(fem_mesh_read(&back, test_temporary("trip.ele")));
    assert_same_geometry(&mesh, &back);
    assert_string_equal(back.regions[1].name, "region_2");
    assert_ok(fem_mesh_write(&mesh, test_temporary("packed.ele.gz")));
    assert_ok(fem_mesh_read(&back, test_temporary("packed.node.gz")));
    assert_ok(fem_mesh_read(&back, test_temporary("packed.node"))); // only the packed one is there
    assert_same_geometry(&mesh, &back);
    make_box(&hex, FEM_H8, FEM_STVK);
    assert_fails(fem_mesh_write(&hex, test_temporary("hex.node")), FEM_BAD_INPUT, "TetGen's format has no hexahedra");
    printf("%d tetrahedra in %d regions came back\n", back.element_count, back.region_count);
    fem_mesh_destroy(&mesh);
    fem_mesh_destroy(&back);
    fem_mesh_destroy(&hex);
}

// regions that override each other, that are named like another set, or that are empty, come back from a .veg
static void test_veg_regions(void **state) {
    (void)state;
    fem_mesh mesh = {0}, back = {0};
    make_box(&mesh, FEM_T4, FEM_STVK);
    mesh.region[0] = 1; // now the set "core" is not the region "core"
    const char *path = test_temporary("regions.veg");
    assert_ok(fem_mesh_write(&mesh, path));
    assert_ok(fem_mesh_read(&back, path));
    assert_same_geometry(&mesh, &back);
    printf("region \"%s\" is written as \"%s\"\n", mesh.regions[1].name, back.regions[1].name);
    assert_string_equal(back.regions[1].name, "core_region1");
    assert_int_equal(fem_mesh_element_set(&back, "core")->count, 3);
    for (int e = 0; e < mesh.element_count; e++) mesh.region[e] = 1;
    assert_ok(fem_mesh_write(&mesh, path));
    assert_ok(fem_mesh_read(&back, path));
    assert_same_geometry(&mesh, &back);
    fem_mesh_destroy(&mesh);
    fem_mesh_destroy(&back);
}

// ---- .veg ------------------------------------------------------------------------------------------------------

// every keyword at once: 0-based numbers, commas, an include in a set, ranges, overriding regions, vertex sets
static void test_veg_features(void **state) {
    (void)state;
    fem_mesh mesh = {0};
    test_write("list.txt", "# in another file\n1,\n2\n");
    const char *path = test_write(
        "features.veg",
        "# comment\r\n*VERTICES\r\n6 3 0 0\r\n0, 0, 0, 0\n1 1 0 0 # behind\n2\t0 1 0\n\n3 0 0 1\n4 1 1 1\n5 -1 -1 -1\n"
        "*ELEMENTS\nTETS\n3 4 0\n0 0 1 2 3\n1 1 2 3 4\n2 0 2 1 5\n"
        "*MATERIAL first one\nENU, 1000, 1e6, 0.25\n*MATERIAL second\nMOONEYRIVLIN, 900, 1, 2, 3\n"
        "*SET from list\n*INCLUDE list.txt\n*SET range\n0-1, 2,\n*SET none\n"
        "*REGION\nallElements, firstone\n*REGION\nfrom list , second\n*VERTEXSET tips\n4, 5\n");
    assert_ok(fem_mesh_read(&mesh, path));
    printf("%d vertices, %d elements, %d regions, %d materials, %d sets from base %d\n", mesh.vertex_count,
           mesh.element_count, mesh.region_count, mesh.material_count, mesh.element_set_count, mesh.file_base);
    assert_int_equal(mesh.file_base, 0);
    assert_int_equal(mesh.region_count, 2);
    assert_string_equal(mesh.regions[0].name, "all");
    assert_string_equal(mesh.regions[1].name, "fromlist");
    assert_memory_equal(mesh.region, ((int[]){0, 1, 1}), 3 * sizeof(int));
    assert_int_equal(mesh.regions[1].material, 1);
    assert_int_equal(mesh.materials[1].kind, FEM_MOONEY_RIVLIN);
    assert_true(mesh.materials[1].density == 900 && mesh.materials[1].mu01 == 1 && mesh.materials[1].mu10 == 2 &&
                mesh.materials[1].v1 == 3);
    assert_int_equal(fem_mesh_element_set(&mesh, "range")->count, 3);
    assert_int_equal(fem_mesh_element_set(&mesh, "none")->count, 0);
    assert_memory_equal(fem_mesh_vertex_set(&mesh, "tips")->items, ((int[]){4, 5}), 2 * sizeof(int));
    assert_true(mesh.vertices[15] == -1);
    // without materials and regions: Vega's default
    assert_ok(fem_mesh_read(
        &mesh,
        test_write("bare.veg", "*VERTICES\n4\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n*ELEMENTS\nTET\n1\n1 1 2 3 4\n")));
    assert_true(mesh.materials[0].young == 1e9 && mesh.materials[0].poisson == 0.45 &&
                mesh.materials[0].density == 1000);
    assert_string_equal(mesh.regions[0].name, "all");
    fem_mesh_destroy(&mesh);
}

// the seven forms of ORTHOTROPIC mean what Vega means by them
static void test_orthotropic(void **state) {
    (void)state;
    static const struct {
        const char *line;
        double      nu[3], G[3], R01;
    } forms[] = {{"ORTHOTROPIC, 900, 4e6, 1e6, 9e6, .1, .2, .3, 1e5, 2e5, 3e5, 0,-1,0, 1,0,0, 0,0,1",
                  {.1, .2, .3},
                  {1e5, 2e5, 3e5},
                  -1},
                 {"ORTHOTROPIC_N3G3R9, 900, 4e6, 1e6, 9e6, .1, .2, .3, 1e5, 2e5, 3e5, 0,-1,0, 1,0,0, 0,0,1",
                  {.1, .2, .3},
                  {1e5, 2e5, 3e5},
                  -1},
                 {"ORTHOTROPIC_N3G3, 900, 4e6, 1e6, 9e6, .1, .2, .3, 1e5, 2e5, 3e5", {.1, .2, .3}, {1e5, 2e5, 3e5}, 0},
                 // nu_ij = nu sqrt(Ei/Ej), G_ij = g sqrt(Ei Ej)/(2 + 2 nu)
                 {"ORTHOTROPIC_N1G1R9, 900, 4e6, 1e6, 9e6, .25, 2, 0,-1,0, 1,0,0, 0,0,1",
                  {.5, .25 / 3, .375},
                  {1.6e6, 2.4e6, 4.8e6},
                  -1},
                 {"ORTHOTROPIC_N1G1, 900, 4e6, 1e6, 9e6, .25, 2", {.5, .25 / 3, .375}, {1.6e6, 2.4e6, 4.8e6}, 0},
                 {"ORTHOTROPIC_N1R9, 900, 4e6, 1e6, 9e6, .25, 0,-1,0, 1,0,0, 0,0,1",
                  {.5, .25 / 3, .375},
                  {.8e6, 1.2e6, 2.4e6},
                  -1},
                 {"ORTHOTROPIC_N1, 900, 4e6, 1e6, 9e6, .25", {.5, .25 / 3, .375}, {.8e6, 1.2e6, 2.4e6}, 0}};
    double worst = 0;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char     text[512];
        fem_mesh mesh = {0};
        snprintf(
            text, sizeof text,
            "*VERTICES\n4 3\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n*ELEMENTS\nTET\n1 4\n1 1 2 3 4\n*MATERIAL m\n%s\n",
            forms[i].line);
        assert_ok(fem_mesh_read(&mesh, test_write("orthotropic.veg", text)));
        const fem_material *m = &mesh.materials[0];
        assert_int_equal(m->kind, FEM_ORTHOTROPIC);
        assert_true(m->density == 900 && m->young3[0] == 4e6 && m->young3[1] == 1e6 && m->young3[2] == 9e6);
        assert_true(m->frame[1] == forms[i].R01 && m->frame[8] == 1);
        worst = fmax(worst, fmax(test_relative_error(3, m->poisson3, forms[i].nu),
                                 test_relative_error(3, m->shear3, forms[i].G)));
        fem_mesh_destroy(&mesh);
    }
    printf("7 forms, largest relative error %.2g\n", worst);
    assert_true(worst < 1e-14);
}

// ---- .vtu ------------------------------------------------------------------------------------------------------

// files that another program encoded, in each encoding, hold the same two tetrahedra
static void test_vtu_encodings(void **state) {
    (void)state;
    static const char *const files[] = {
        "inline_32.vtu",      "inline_64_big.vtu", "inline_packed.vtu", "raw_32.vtu",           "raw_64_packed.vtu",
        "raw_big_packed.vtu", "base64_32.vtu",     "raw_types.vtu",     "base64_types_big.vtu", "base64_64_packed.vtu"};
    const double points[15] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1};
    const int    corners[8] = {0, 1, 2, 3, 1, 2, 3, 4};
    int          read = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char     path[128];
        fem_mesh mesh = {0};
        snprintf(path, sizeof path, "tests/meshes/%s", files[i]);
        assert_ok(fem_mesh_read(&mesh, path));
        assert_int_equal(mesh.vertex_count, 5);
        assert_memory_equal(mesh.vertices, points, sizeof points);
        assert_memory_equal(mesh.elements, corners, sizeof corners);
        assert_string_equal(mesh.regions[0].name, "region_3");
        assert_string_equal(mesh.regions[1].name, "region_7");
        assert_true(mesh.region[0] == 1 && mesh.region[1] == 0);
        assert_int_equal(fem_mesh_vertex_set(&mesh, "tip")->count, 1);
        assert_int_equal(fem_mesh_vertex_set(&mesh, "tip")->items[0], 4);
        fem_mesh_destroy(&mesh);
        read++;
    }
    printf("%d encodings read alike\n", read);
}

// displaced positions and fields are written; the names of sets survive what XML does to them
static void test_vtu_fields(void **state) {
    (void)state;
    fem_mesh mesh = {0}, back = {0};
    make_box(&mesh, FEM_T4, FEM_STVK);
    assert_ok(fem_mesh_add_vertex_set(&mesh, "a <\"b\"> & c", 1, (int[]){3}));
    size_t  n = 3 * (size_t)mesh.vertex_count;
    double *u = fem_alloc(n, sizeof *u);
    assert_non_null(u);
    for (size_t i = 0; i < n; i++) u[i] = 1e-9 * (double)i;
    fem_field   fields[] = {{"displacement", 3, u, false}, {"damage", 1, u, true}};
    const char *path = test_temporary("fields.vtu");
    assert_ok(fem_mesh_write_vtu(&mesh, path, u, 2, fields));
    assert_ok(fem_mesh_read(&back, path));
    double worst = 0;
    for (size_t i = 0; i < n; i++) worst = fmax(worst, fabs(back.vertices[i] - (mesh.vertices[i] + u[i])));
    printf("largest difference of a displaced coordinate %g\n", worst);
    assert_true(worst == 0);
    assert_int_equal(fem_mesh_vertex_set(&back, "a <\"b\"> & c")->items[0], 3);
    fields[1].on_elements = false;
    fields[1].name = "displacement";
    assert_fails(fem_mesh_write_vtu(&mesh, path, NULL, 2, fields), FEM_BAD_INPUT,
                 "two arrays are called \"displacement\"");
    fem_free(u);
    fem_mesh_destroy(&mesh);
    fem_mesh_destroy(&back);
}

// ---- lists and surfaces ----------------------------------------------------------------------------------------

static void test_vertex_lists(void **state) {
    (void)state;
    int *items = NULL, count = 0;
    assert_ok(fem_vertex_list_read(&items, &count, test_write("list.bou", "5, 3,\n3 1\t# end\n"), 1, 5));
    assert_int_equal(count, 3);
    assert_memory_equal(items, ((int[]){0, 2, 4}), 3 * sizeof(int));
    const char *path = test_temporary("list.bou.gz");
    assert_ok(fem_vertex_list_write(path, count, items, 0));
    fem_free(items);
    items = NULL;
    assert_ok(fem_vertex_list_read(&items, &count, path, 0, 5));
    assert_memory_equal(items, ((int[]){0, 2, 4}), 3 * sizeof(int));
    fem_free(items);
    items = NULL;
    assert_ok(fem_vertex_list_read(&items, &count, test_write("empty.bou", "\n"), 1, 5));
    printf("an empty list has %d entries\n", count);
    assert_int_equal(count, 0);
    fem_free(items);
}

// polygons become fans, indices count from either end, all forms of a corner are one; the skin of a mesh is closed
static void test_surfaces(void **state) {
    (void)state;
    fem_surface surface = {0}, back = {0};
    fem_mesh    mesh = {0};
    const char *path = test_write(
        "forms.obj", "# square and triangle\nmtllib x.mtl\no thing\nv 0 0 0 1\nv 1 0 0 0.5 0.5 0.5\nv 1 1 0\n"
                     "vt 0 0\nvn 0 0 1\nv 0 1 .5\ns off\nusemtl C:\\red\nf 1 2/1 3//1 \\\n4/1/1\nf -1 -2 -3\nl 1 2\n");
    assert_ok(fem_surface_read(&surface, path));
    assert_int_equal(surface.vertex_count, 4);
    assert_int_equal(surface.triangle_count, 3);
    assert_memory_equal(surface.triangles, ((int[]){0, 1, 2, 0, 2, 3, 3, 2, 1}), 9 * sizeof(int));
    assert_ok(fem_surface_write(&surface, test_temporary("again.obj.gz")));
    assert_ok(fem_surface_read(&back, test_temporary("again.obj.gz")));
    assert_memory_equal(surface.vertices, back.vertices, 12 * sizeof(double));
    assert_memory_equal(surface.triangles, back.triangles, 9 * sizeof(int));
    fem_surface_destroy(&surface);
    // texture coordinates and names of materials are kept, also where only some faces have them
    path = test_write("painted.obj",
                      "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nvt 0.25\nvt 1 -2.5 7\nvt .5 .75\nvn 0 0 1\nf 1 2 3\n"
                      "usemtl  red paint \nf 1/1 2/-1 3//1\nusemtl leaf\nf 1/1/1 2/2 3/3 4/-3\nusemtl red paint\n"
                      "f 2 3 4\nusemtl\nf 1 3 4\n");
    for (int again = 0; again < 2; again++) {
        assert_ok(fem_surface_read(&surface, path));
        assert_true(surface.uv_count == 3 && surface.material_count == 2 && surface.triangle_count == 6);
        assert_memory_equal(surface.uv, ((double[]){0.25, 0, 1, -2.5, 0.5, 0.75}), 6 * sizeof(double));
        assert_memory_equal(surface.corners, ((int[]){-1, -1, -1, 0, 2, -1, 0, 1, 2, 0, 2, 0, -1, -1, -1, -1, -1, -1}),
                            18 * sizeof(int));
        assert_memory_equal(surface.material, ((int[]){-1, 0, 1, 1, 0, -1}), 6 * sizeof(int));
        assert_string_equal(surface.materials[0], "red paint");
        assert_string_equal(surface.materials[1], "leaf");
        path = test_temporary("repainted.obj");
        assert_ok(fem_surface_write(&surface, path));
    }
    path = test_temporary("forms.obj");
    make_box(&mesh, FEM_H8, FEM_STVK);
    assert_ok(fem_mesh_write(&mesh, test_temporary("skin.obj")));
    assert_ok(fem_surface_read(&back, test_temporary("skin.obj")));
    printf("skin of 3 x 2 x 2 cells: %d vertices, %d triangles\n", back.vertex_count, back.triangle_count);
    assert_int_equal(back.triangle_count, 2 * 2 * (3 * 2 + 3 * 2 + 2 * 2));
    assert_int_equal(back.vertex_count, back.triangle_count / 2 + 2); // Euler: a sphere
    assert_fails(fem_mesh_read(&mesh, path), FEM_BAD_INPUT, "is a surface, expected a volumetric mesh");
    assert_fails(fem_mesh_write(&mesh, "x.stl"), FEM_BAD_INPUT,
                 "x.stl: unknown kind of mesh, expected .veg, .node, .ele, .vtu, .vtk, .msh, .mesh, .inp or .obj");
    fem_surface_destroy(&surface);
    fem_surface_destroy(&back);
    fem_mesh_destroy(&mesh);
}

// a writer refuses what its format cannot hold, and says which name or field it is
static void test_refusals(void **state) {
    (void)state;
    fem_mesh    mesh = {0}, back = {0};
    const char *veg = test_temporary("refused.veg"), *vtu = test_temporary("refused.vtu");
    make_box(&mesh, FEM_T4, FEM_STVK);
    strcpy(mesh.materials[0].name, "a b");
    assert_fails(fem_mesh_write(&mesh, veg), FEM_BAD_INPUT,
                 "refused.veg: the name \"a b\" is empty, too long, begins with * or has a blank");
    strcpy(mesh.materials[0].name, "a\nb");
    assert_fails(fem_mesh_write(&mesh, vtu), FEM_BAD_INPUT, "control characters");
    strcpy(mesh.materials[0].name, "wood"); // the second of that name gets a number
    assert_ok(fem_mesh_write(&mesh, veg));
    assert_ok(fem_mesh_read(&back, veg));
    assert_string_equal(back.materials[1].name, "wood_2");
    strcpy(mesh.regions[1].name, "all");
    assert_fails(fem_mesh_write(&mesh, veg), FEM_BAD_INPUT, "two regions are called \"all\"");
    strcpy(mesh.regions[1].name, "core");
    assert_ok(fem_mesh_add_element_set(&mesh, "allElements", 1, (int[]){0}));
    assert_fails(fem_mesh_write(&mesh, veg), FEM_BAD_INPUT, "the set \"allElements\" must hold all elements");
    fem_field field = {"strain", 12, mesh.vertices, false};
    assert_fails(fem_mesh_write_vtu(&mesh, vtu, NULL, 1, &field), FEM_BAD_INPUT, "field \"strain\" has 12 components");
    field = (fem_field){"", 1, mesh.vertices, false};
    assert_fails(fem_mesh_write_vtu(&mesh, vtu, NULL, 1, &field), FEM_BAD_INPUT, "of an array is empty or too long");
    mesh.elements[0] = mesh.elements[1];
    assert_fails(fem_mesh_write(&mesh, vtu), FEM_BAD_INPUT, "refused.vtu: element 0: vertex");
    fem_surface surface = {
        .vertex_count = 1, .vertices = (double[]){0, 0, 0}, .triangle_count = 1, .triangles = (int[]){0, 0, 1}};
    assert_fails(fem_surface_write(&surface, test_temporary("refused.obj")), FEM_BAD_INPUT,
                 "triangle 0: vertex 1 is outside 0..0");
    assert_fails(fem_surface_write(&surface, veg), FEM_BAD_INPUT, "unknown kind of surface");
    printf("%s\n", fem_message());
    fem_mesh_destroy(&mesh);
    fem_mesh_destroy(&back);
}

// arrays larger than the buffer of a file come back, bare and packed
static void test_large(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        fem_mesh    mesh = {0}, back = {0};
        const char *path = test_temporary(i ? "large.vtu.gz" : "large.vtu");
        assert_ok(fem_generate_box(&mesh, FEM_H8, (double[]){0, 0, 0}, (double[]){1, 1, 1}, (int[]){20, 20, 20}));
        assert_ok(fem_mesh_write(&mesh, path));
        assert_ok(fem_mesh_read(&back, path));
        assert_same_mesh(&mesh, &back);
        printf("%d vertices came back\n", back.vertex_count);
        fem_mesh_destroy(&mesh);
        fem_mesh_destroy(&back);
    }
}

// ---- files -----------------------------------------------------------------------------------------------------

static int files_beside(const char *path) {
    char folder[512];
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = 0;
    DIR *directory = opendir(folder);
    int  count = 0;
    assert_non_null(directory);
    while (readdir(directory)) count++;
    closedir(directory);
    return count;
}

// a file that is abandoned, or that the disk has no room for, leaves the old one and nothing else
static void test_atomic(void **state) {
    (void)state;
    const char *path = test_write("kept.txt", "old");
    char       *text = NULL;
    size_t      size = 0;
    fem_file   *file = NULL;
    int         before = files_beside(path);
    assert_ok(fem_file_create(&file, path));
    fem_file_print(file, "%d", 12);
    fem_file_abandon(file);
    struct rlimit limit, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = limit;
    small.rlim_cur = 1000;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    assert_ok(fem_file_create(&file, path));
    for (int i = 0; i < 100000; i++) fem_file_print(file, "%d\n", i);
    fem_status status = fem_file_commit(file);
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_int_equal(status, FEM_IO);
    printf("%s\n", fem_message());
    assert_non_null(strstr(fem_message(), "kept.txt: cannot be written: "));
    assert_int_equal(files_beside(path), before);
    assert_ok(fem_file_read(&text, &size, path));
    assert_string_equal(text, "old");
    fem_free(text);
    assert_fails(fem_file_create(&file, "/nowhere/at/all.txt"), FEM_IO,
                 "/nowhere/at/all.txt: cannot be created: No such file");
    assert_fails(fem_file_create(&file, "/dev/null"), FEM_IO, "/dev/null: is there and is not a file");
    assert_int_equal(chmod(path, 0444), 0); // a protected file is not replaced, though its folder would allow it
    if (access(path, W_OK) != 0)            // who is root may write it
        assert_fails(fem_file_create(&file, path), FEM_IO, "kept.txt: is there and cannot be written: Permission");
    assert_int_equal(chmod(path, 0644), 0);
    char long_line[2000];
    memset(long_line, 'x', sizeof long_line - 1);
    long_line[sizeof long_line - 1] = 0;
    assert_ok(fem_file_create(&file, path));
    fem_file_print(file, "%s", long_line);
    assert_ok(fem_file_commit(file));
    assert_ok(fem_file_read(&text, &size, path));
    assert_int_equal(size, sizeof long_line - 1);
    fem_free(text);
    assert_int_equal(files_beside(path), before);
    assert_ok(fem_file_try(path)); // asks without a trace
    assert_fails(fem_file_try("/nowhere/at/all.txt"), FEM_IO, "cannot be created: No such file");
    assert_int_equal(files_beside(path), before);
}

// symbolic links stay and are followed, from their own folders, also to where nothing is yet; round and round is
// refused
static void test_links(void **state) {
    (void)state;
    static const char *const links[][2] = {
        {"link", "folder/second"}, {"folder/second", "third"}, {"folder/third", "../new"}};
    char        folder[400], path[500], *text = NULL;
    size_t      size = 0;
    fem_file   *file = NULL;
    struct stat about;
    snprintf(folder, sizeof folder, "%s", test_temporary("links"));
    assert_int_equal(mkdir(folder, 0777), 0);
    snprintf(path, sizeof path, "%s/folder", folder);
    assert_int_equal(mkdir(path, 0777), 0);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, links[i][0]);
        assert_int_equal(symlink(links[i][1], path), 0);
    }
    snprintf(path, sizeof path, "%s/link", folder);
    for (int i = 0; i < 2; i++) { // to nothing, then to a file
        assert_ok(fem_file_create(&file, path));
        fem_file_print(file, "round %d", i);
        assert_ok(fem_file_commit(file));
        assert_int_equal(lstat(path, &about), 0);
        assert_true(S_ISLNK(about.st_mode));
        snprintf(path, sizeof path, "%s/new", folder);
        assert_int_equal(lstat(path, &about), 0);
        assert_true(S_ISREG(about.st_mode));
        assert_ok(fem_file_read(&text, &size, path));
        assert_string_equal(text, i ? "round 1" : "round 0");
        fem_free(text);
        snprintf(path, sizeof path, "%s/link", folder);
    }
    snprintf(path, sizeof path, "%s/loop", folder);
    assert_int_equal(symlink("loop", path), 0);
    assert_fails(fem_file_create(&file, path), FEM_IO, "loop: cannot be created: Too many levels of symbolic links");
    snprintf(path, sizeof path, "%s/astray", folder);
    assert_int_equal(symlink("/nowhere/at/all.txt", path), 0);
    assert_fails(fem_file_create(&file, path), FEM_IO, "astray: cannot be created: No such file or directory");
    snprintf(path, sizeof path, "%s/device", folder);
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_fails(fem_file_create(&file, path), FEM_IO, "device: is there and is not a file");
}

// large files through gzip come back; members may be joined; what unpacks to more than the limit is refused
static void test_gzip(void **state) {
    (void)state;
    const char *path = test_temporary("large.gz"), *joined = test_temporary("joined.gz");
    fem_file   *file = NULL;
    char       *text = NULL;
    size_t      size = 0;
    assert_ok(fem_file_create(&file, path));
    for (int i = 0; i < 500000; i++) fem_file_print(file, "%d\n", i);
    assert_ok(fem_file_commit(file));
    assert_ok(fem_file_read(&text, &size, path));
    assert_int_equal(size, 3388890);
    assert_memory_equal(text + size - 7, "499999\n", 7);
    assert_int_equal(text[size], 0);
    fem_free(text);
    assert_fails(fem_file_read_at_most(&text, &size, path, 2000000), FEM_BAD_INPUT,
                 "unpacks to more than the 2000000 bytes");
    assert_fails(fem_file_read_at_most(&text, &size, path, 100), FEM_BAD_INPUT, "more than the 100 that are read");
    FILE *out = fopen(joined, "wb");
    assert_non_null(out);
    gzFile part = NULL;
    fclose(out);
    for (int i = 0; i < 3; i++) {
        part = gzopen(joined, "ab");
        assert_int_equal(gzprintf(part, "part %d\n", i), 7);
        gzclose(part);
    }
    assert_ok(fem_file_read(&text, &size, joined));
    assert_string_equal(text, "part 0\npart 1\npart 2\n");
    printf("3388890 bytes and 3 joined members read\n");
    fem_free(text);
}

// ---- memory ----------------------------------------------------------------------------------------------------

// a reader or writer that runs out of memory says so, leaks nothing, and leaves the mesh as it was
static void test_memory(void **state) {
    (void)state;
    static const char *const names[] = {"memory.veg", "memory.veg.gz", "memory.vtu", "memory.node", "memory.obj"};
    fem_mesh                 mesh = {0};
    long                     failures = 0;
    make_box(&mesh, FEM_T4, FEM_STVK);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = test_temporary(names[i]);
        for (long n = 0;; n++) {
            long blocks = fem_memory_blocks();
            fem_memory_fail_after(n);
            fem_status status = fem_mesh_write(&mesh, path);
            fem_memory_fail_after(-1);
            assert_int_equal(fem_memory_blocks(), blocks);
            if (status == FEM_OK) break;
            assert_int_equal(status, FEM_NO_MEMORY);
            failures++;
        }
        if (strstr(path, ".obj")) {
            fem_surface surface = {0};
            for (long n = 0;; n++) {
                long blocks = fem_memory_blocks();
                fem_memory_fail_after(n);
                fem_status status = fem_surface_read(&surface, path);
                fem_memory_fail_after(-1);
                if (status == FEM_OK) break;
                assert_int_equal(fem_memory_blocks(), blocks);
                assert_int_equal(status, FEM_NO_MEMORY);
                failures++;
            }
            fem_surface_destroy(&surface);
            continue;
        }
        fem_mesh back = {0};
        make_box(&back, FEM_H8, FEM_STVK);
        for (long n = 0;; n++) {
            long blocks = fem_memory_blocks();
            fem_memory_fail_after(n);
            fem_status status = fem_mesh_read(&back, path);
            fem_memory_fail_after(-1);
            if (status == FEM_OK) break;
            assert_int_equal(fem_memory_blocks(), blocks);
            assert_int_equal(status, FEM_NO_MEMORY);
            assert_true(back.type == FEM_H8 && back.element_count == 12);
            failures++;
        }
        fem_mesh_destroy(&back);
    }
    static const char *const more[] = {"tests/meshes/inline_packed.vtu", "tests/meshes/raw_big_packed.vtu"};
    for (int i = 0; i < 2; i++) {
        fem_mesh back = {0};
        for (long n = 0;; n++) {
            fem_memory_fail_after(n);
            fem_status status = fem_mesh_read(&back, more[i]);
            fem_memory_fail_after(-1);
            if (status == FEM_OK) break;
            assert_int_equal(status, FEM_NO_MEMORY);
            failures++;
        }
        fem_mesh_destroy(&back);
    }
    const char *list = test_write("memory.bou", "1,2,3\n");
    int        *items = NULL, count = 0;
    for (long n = 0;; n++) {
        fem_memory_fail_after(n);
        fem_status status = fem_vertex_list_read(&items, &count, list, 1, 5);
        fem_memory_fail_after(-1);
        if (status == FEM_OK) break;
        assert_int_equal(status, FEM_NO_MEMORY);
        failures++;
    }
    fem_free(items);
    fem_mesh_destroy(&mesh);
    printf("%ld allocations failed in turn\n", failures);
    assert_true(failures > 200);
}

// ---- real files ------------------------------------------------------------------------------------------------

// meshes of other programs have the sizes that their makers say, and the largest reads in little time
static void test_real_meshes(void **state) {
    (void)state;
    static const struct {
        const char *file;
        int         vertices, elements, type, regions;
    } meshes[] = {{"vega/models/asianDragon/asianDragon.veg", 959, 2591, FEM_T4, 1},
                  {"vega/models/asianDragon/asianDragon_MooneyRivlin.veg", 959, 2591, FEM_T4, 1},
                  {"vega/models/beam3/beam3.veg", 208, 75, FEM_H8, 1},
                  {"vega/models/selfIntersecting/torus/torus-easy.veg.gz", 20186, 97878, FEM_T4, 1},
                  {"vega/models/simpleBridge/simpleBridge_resol92-b1.155_enlarged.veg", 3923, 1736, FEM_H8, 1},
                  {"vega/models/turtle/turtle-volumetric-heterogeneous.veg", 347, 1185, FEM_T4, 2},
                  {"vega/models/turtle/turtle-volumetric-heterogeneous.ortho.veg", 347, 1185, FEM_T4, 2},
                  {"vega/models/turtle/turtle-volumetric-homogeneous.ortho.veg", 347, 1185, FEM_T4, 1},
                  {"meshes/bunny_tetgen_60k.ele.gz", 14225, 59993, FEM_T4, 1},
                  {"meshes/koala_vox_hex12k.veg", 15073, 12031, FEM_H8, 1},
                  {"meshes/koala_vox_1m.veg.gz", 219445, 1000765, FEM_T4, 1}};
    if (!test_data("")) return;
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
        fem_mesh mesh = {0};
        double   start = fem_seconds();
        assert_ok(fem_mesh_read(&mesh, test_data(meshes[i].file)));
        double seconds = fem_seconds() - start;
        printf("%-66s %7d elements in %.3f s\n", meshes[i].file, mesh.element_count, seconds);
        assert_int_equal(mesh.vertex_count, meshes[i].vertices);
        assert_int_equal(mesh.element_count, meshes[i].elements);
        assert_int_equal((int)mesh.type, meshes[i].type);
        assert_int_equal(mesh.region_count, meshes[i].regions);
        assert_true(seconds < 20);
        fem_mesh_destroy(&mesh);
    }
    fem_mesh veg = {0}, pair = {0};
    assert_ok(fem_mesh_read(&veg, test_data("meshes/bunny_5k.veg")));
    assert_ok(fem_mesh_read(&pair, test_data("meshes/bunny_5k.node")));
    assert_same_geometry(&veg, &pair); // the same mesh in two formats
    int *fixed = NULL, count = 0;
    assert_ok(fem_vertex_list_read(&fixed, &count, test_data("meshes/bunny_5k.bou"), veg.file_base, veg.vertex_count));
    assert_int_equal(count, 116);
    fem_free(fixed);
    fem_mesh_destroy(&veg);
    fem_mesh_destroy(&pair);
}

// surfaces of other programs
static void test_real_surfaces(void **state) {
    (void)state;
    static const struct {
        const char *file;
        int         triangles;
    } surfaces[] = {{"surfaces/bunny.obj", 6598},
                    {"surfaces/hand.obj.gz", 15982},
                    {"surfaces/bunny_hr.obj.gz", 59664},
                    {"surfaces/kenney/tree_oak_fall.obj", 196},
                    {"surfaces/kenney/grass.obj", 132}};
    if (!test_data("")) return;
    for (size_t i = 0; i < sizeof surfaces / sizeof *surfaces; i++) {
        fem_surface surface = {0};
        assert_ok(fem_surface_read(&surface, test_data(surfaces[i].file)));
        printf("%-40s %d triangles\n", surfaces[i].file, surface.triangle_count);
        assert_int_equal(surface.triangle_count, surfaces[i].triangles);
        fem_surface_destroy(&surface);
    }
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers),       cmocka_unit_test(test_locale),
                                       cmocka_unit_test(test_round_trips),   cmocka_unit_test(test_veg_material_trip),
                                       cmocka_unit_test(test_tetgen_trip),   cmocka_unit_test(test_veg_regions),
                                       cmocka_unit_test(test_veg_features),  cmocka_unit_test(test_orthotropic),
                                       cmocka_unit_test(test_vtu_encodings), cmocka_unit_test(test_vtu_fields),
                                       cmocka_unit_test(test_vertex_lists),  cmocka_unit_test(test_surfaces),
                                       cmocka_unit_test(test_refusals),      cmocka_unit_test(test_large),
                                       cmocka_unit_test(test_atomic),        cmocka_unit_test(test_links),
                                       cmocka_unit_test(test_gzip),          cmocka_unit_test(test_memory),
                                       cmocka_unit_test(test_real_meshes),   cmocka_unit_test(test_real_surfaces)};
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
