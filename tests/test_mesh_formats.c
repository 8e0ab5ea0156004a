// Mesh files of other programs: each dialect reads as what it says, a mesh goes through every pair of formats
// unchanged, what is left out is said, every allocation may fail, and a disk that is full or a folder that cannot be
// written in leaves nothing behind.
#include "tests/format_case.h"
#include "libfem/mesh_formats.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- files made by hand ----------------------------------------------------------------------------------------

// Bytes in either order.
typedef struct bytes {
    char   data[8192];
    size_t size;
    bool   big; // the big end first
} bytes;

static void put(bytes *b, const void *data, size_t size) {
    assert_true(b->size + size <= sizeof b->data);
    memcpy(b->data + b->size, data, size);
    b->size += size;
}
static void put_text(bytes *b, const char *text) { put(b, text, strlen(text)); }
static void put_number(bytes *b, uint64_t bits, int size) {
    for (int i = 0; i < size; i++) {
        char byte = (char)(bits >> 8 * (b->big ? size - 1 - i : i));
        put(b, &byte, 1);
    }
}
static void put_int(bytes *b, long long value) { put_number(b, (uint64_t)value, 4); }
static void put_long(bytes *b, long long value) { put_number(b, (uint64_t)value, 8); }
static void put_float(bytes *b, double value) {
    float    narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    put_number(b, bits, 4);
}
static void put_double(bytes *b, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_number(b, bits, 8);
}

static const char *save(const char *name, const bytes *b) {
    const char *path = test_temporary(name);
    FILE       *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(b->data, 1, b->size, file), b->size);
    assert_int_equal(fclose(file), 0);
    return path;
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

static void assert_same_mesh(const fem_mesh *a, const fem_mesh *b) {
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->vertex_count, b->vertex_count);
    assert_int_equal(a->element_count, b->element_count);
    assert_memory_equal(a->vertices, b->vertices, 3 * (size_t)a->vertex_count * sizeof(double));
    assert_memory_equal(a->elements, b->elements,
                        (size_t)(a->element_count * fem_element_vertices(a->type)) * sizeof(int));
    assert_memory_equal(a->region, b->region, (size_t)a->element_count * sizeof(int));
    assert_int_equal(a->region_count, b->region_count);
    for (int i = 0; i < a->region_count; i++) {
        assert_string_equal(a->regions[i].name, b->regions[i].name);
        assert_int_equal(a->regions[i].material, b->regions[i].material);
    }
    assert_int_equal(a->material_count, b->material_count);
    for (int i = 0; i < a->material_count; i++) {
        assert_string_equal(a->materials[i].name, b->materials[i].name);
        assert_int_equal(a->materials[i].kind, b->materials[i].kind);
        assert_true(a->materials[i].density == b->materials[i].density);
        assert_true(a->materials[i].young == b->materials[i].young);
        assert_true(a->materials[i].poisson == b->materials[i].poisson);
    }
    assert_same_sets(a->vertex_set_count, a->vertex_sets, b->vertex_set_count, b->vertex_sets);
    assert_same_sets(a->element_set_count, a->element_sets, b->element_set_count, b->element_sets);
}

// A box with awkward coordinates, two regions that alternate, two materials, sets that overlap, a set that is empty and
// one that is called as a region.
static void make_box(fem_mesh *mesh, fem_element type) {
    assert_ok(fem_generate_box(mesh, type, (double[]){0.25, 0.1, 0.3}, (double[]){1, 1e3 / 7, 0.7}, (int[]){3, 2, 2}));
    fem_material materials[2] = {fem_material_default(), fem_material_default()};
    memset(materials[1].name, 0, sizeof materials[1].name);
    strcpy(materials[1].name, "wood");
    materials[1].density = 612.5;
    materials[1].young = 1e9 / 3;
    fem_free(mesh->materials);
    mesh->materials = fem_copy(materials, 2, sizeof *materials);
    mesh->material_count = 2;
    char *name = fem_copy_string("core");
    mesh->regions = fem_realloc(mesh->regions, 2, sizeof *mesh->regions);
    assert_true(mesh->materials && mesh->regions && name);
    mesh->regions[1] = (fem_region){name, 1};
    mesh->region_count = 2;
    for (int i = 0; i < 3; i++) mesh->region[(int[]){1, 4, 5}[i]] = 1;
    assert_ok(fem_mesh_add_element_set(mesh, "core", ITEMS(1, 4, 5)));
    assert_ok(fem_mesh_add_element_set(mesh, "pair", ITEMS(4, 6)));
    assert_ok(fem_mesh_add_element_set(mesh, "nothing", 0, NULL));
    assert_ok(fem_mesh_add_vertex_set(mesh, "no-vertex", 0, NULL));
}

static const char *const written[] = {"veg", "vtu", "vtk", "text.vtk", "msh", "text.msh", "mesh", "inp", "msh.gz"};
enum { WRITTEN = sizeof written / sizeof *written };

static fem_status write_as(const fem_mesh *mesh, int format, const char *path) {
    return strncmp(written[format], "text", 4) == 0 ? fem_mesh_write_text(mesh, path) : fem_mesh_write(mesh, path);
}

// a mesh goes into every format, from there into every other, and comes back the same
static void test_pairs(void **state) {
    (void)state;
    int trips = 0;
    for (int type = FEM_T4; type <= FEM_H8; type++) {
        fem_mesh mesh = {0};
        make_box(&mesh, (fem_element)type);
        for (int i = 0; i < WRITTEN; i++) {
            char     name[64];
            fem_mesh first = {0};
            snprintf(name, sizeof name, "first.%s", written[i]);
            const char *path = test_temporary(name);
            assert_ok(write_as(&mesh, i, path));
            read_with_remark(&first, path, NULL);
            assert_same_mesh(&mesh, &first);
            for (int k = 0; k < WRITTEN; k++) {
                fem_mesh second = {0};
                snprintf(name, sizeof name, "second.%s", written[k]);
                path = test_temporary(name);
                assert_ok(write_as(&first, k, path));
                assert_ok(fem_mesh_read(&second, path));
                assert_same_mesh(&mesh, &second);
                fem_mesh_destroy(&second);
                trips++;
            }
            fem_mesh_destroy(&first);
        }
        fem_mesh_destroy(&mesh);
    }
    printf("%d trips through two formats without loss\n", trips);
    assert_int_equal(trips, 2 * WRITTEN * WRITTEN);
}

// names with blanks survive where the format holds them and are refused where not; materials of every kind likewise
static void test_names_and_kinds(void **state) {
    (void)state;
    fem_mesh mesh = {0}, back = {0};
    make_box(&mesh, FEM_H8);
    assert_ok(fem_mesh_add_vertex_set(&mesh, "left wall, 100%", ITEMS(0, 3)));
    for (int kind = 0; kind < FEM_MATERIAL_KINDS; kind++) {
        mesh.materials[1].kind = (fem_material_kind)kind;
        for (int i = 1; i < WRITTEN; i++) {
            char name[64];
            snprintf(name, sizeof name, "names.%s", written[i]);
            const char *path = test_temporary(name);
            if (strcmp(written[i], "inp") == 0) {
                assert_fails(fem_mesh_write(&mesh, path), FEM_BAD_INPUT, "which .inp cannot hold");
                continue;
            }
            assert_ok(write_as(&mesh, i, path));
            assert_ok(fem_mesh_read(&back, path));
            assert_same_mesh(&mesh, &back);
        }
    }
    fem_mesh_destroy(&mesh);
    // an orthotropic material with turned axes comes through .inp: nu31 and the frame are computed, to rounding
    make_box(&mesh, FEM_T4);
    fem_material *wood = &mesh.materials[1];
    wood->kind = FEM_ORTHOTROPIC;
    double c = cos(0.3), s = sin(0.3), frame[9] = {c, -s, 0, s, c, 0, 0, 0, 1};
    double numbers[9] = {1e9 / 3, 2e8, 1e8 / 7, 0.21, 0.13, 0.11, 3e7, 2e7 / 3, 1e7};
    memcpy(wood->young3, numbers, 3 * sizeof *numbers);
    memcpy(wood->poisson3, numbers + 3, 3 * sizeof *numbers);
    memcpy(wood->shear3, numbers + 6, 3 * sizeof *numbers);
    memcpy(wood->frame, frame, sizeof frame);
    const char *path = test_temporary("wood.inp");
    assert_ok(fem_mesh_write(&mesh, path));
    read_with_remark(&back, path, NULL);
    const fem_material *read = &back.materials[1];
    double              error = fmax(test_relative_error(3, read->young3, wood->young3),
                                     fmax(test_relative_error(3, read->poisson3, wood->poisson3),
                                          fmax(test_relative_error(3, read->shear3, wood->shear3),
                                               test_relative_error(9, read->frame, wood->frame))));
    printf("orthotropic constants and axes through .inp: relative error %.1e\n", error);
    assert_true(error < 1e-14 && read->kind == FEM_ORTHOTROPIC);
    // what *ELASTIC cannot say is left unspecified
    wood->kind = FEM_NEOHOOKEAN;
    assert_ok(fem_mesh_write(&mesh, path));
    read_with_remark(&back, path, "material wood has no *ELASTIC: left unspecified");
    fem_mesh_destroy(&mesh);
    fem_mesh_destroy(&back);
}

// ---- Gmsh ------------------------------------------------------------------------------------------------------

static const char msh_2_text[] = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n"
                                 "$PhysicalNames\n4\n0 9 \"tip\"\n2 5 \"left wall\"\n3 1 \"soft\"\n3 2 \"hard\"\n"
                                 "$EndPhysicalNames\n$Comments\nanything\n$EndComments\n"
                                 "$Nodes\n5\n7 0 0 0\n14 1 0 0\n21 0 1 0\n28 0 0 1\n35 1.5 1 1\n$EndNodes\n"
                                 "$Elements\n5\n1 15 2 9 1 35\n2 2 2 5 3 7 21 28\n3 1 2 0 4 7 14\n"
                                 "4 4 2 1 1 7 14 21 28\n5 4 3 2 1 0 14 21 28 35\n$EndElements\n";

static void assert_groups(const fem_mesh *m) {
    assert_two(m);
    assert_int_equal(m->region_count, 2);
    assert_string_equal(m->regions[m->region[0]].name, "soft");
    assert_string_equal(m->regions[m->region[1]].name, "hard");
    assert_int_equal(m->vertex_set_count, 2);
    assert_set(fem_mesh_vertex_set(m, "tip"), ITEMS(4));
    assert_set(fem_mesh_vertex_set(m, "left wall"), ITEMS(0, 2, 3));
}

static void msh_2_binary(bytes *b) {
    put_text(b, "$MeshFormat\n2.2 1 8\n");
    put_int(b, 1);
    put_text(b, "\n$EndMeshFormat\n$PhysicalNames\n4\n0 9 \"tip\"\n2 5 \"left wall\"\n3 1 \"soft\"\n3 2 \"hard\"\n"
                "$EndPhysicalNames\n$Nodes\n5\n");
    for (int v = 0; v < 5; v++) {
        put_int(b, 7 * (v + 1));
        for (int k = 0; k < 3; k++) put_double(b, two_vertices[v][k]);
    }
    put_text(b, "\n$EndNodes\n$Elements\n4\n");
    const int points[] = {15, 1, 2, 1, 9, 1, 35}, faces[] = {2, 1, 2, 2, 5, 3, 7, 21, 28};
    const int solids[] = {4, 2, 2, 4, 1, 1, 7, 14, 21, 28, 5, 2, 1, 14, 21, 28, 35};
    for (int i = 0; i < 7; i++) put_int(b, points[i]);
    for (int i = 0; i < 9; i++) put_int(b, faces[i]);
    for (int i = 0; i < 17; i++) put_int(b, solids[i]);
    put_text(b, "\n$EndElements\n");
}

static void msh_4_binary(bytes *b) {
    put_text(b, "$MeshFormat\n4.1 1 8\n");
    put_int(b, 1);
    put_text(b, "\n$EndMeshFormat\n$PhysicalNames\n4\n0 9 \"tip\"\n2 5 \"left wall\"\n3 1 \"soft\"\n3 2 \"hard\"\n"
                "$EndPhysicalNames\n$Entities\n");
    put_long(b, 1), put_long(b, 0), put_long(b, 1), put_long(b, 2);
    put_int(b, 1); // the point
    for (int k = 0; k < 3; k++) put_double(b, two_vertices[4][k]);
    put_long(b, 1), put_int(b, 9);
    for (int e = 0; e < 3; e++) { // the surface, two volumes
        put_int(b, e == 0 ? 3 : e);
        for (int k = 0; k < 6; k++) put_double(b, k);
        put_long(b, 1), put_int(b, e == 0 ? 5 : e);
        put_long(b, e == 0 ? 0 : 1);
        if (e > 0) put_int(b, -3);
    }
    put_text(b, "\n$EndEntities\n$Nodes\n");
    put_long(b, 2), put_long(b, 5), put_long(b, 7), put_long(b, 35);
    for (int part = 0; part < 2; part++) { // the second block is parametric
        int from = part == 0 ? 0 : 4, to = part == 0 ? 4 : 5;
        put_int(b, part == 0 ? 3 : 2), put_int(b, part == 0 ? 1 : 3), put_int(b, part), put_long(b, to - from);
        for (int v = from; v < to; v++) put_long(b, 7 * (v + 1));
        for (int v = from; v < to; v++) {
            for (int k = 0; k < 3; k++) put_double(b, two_vertices[v][k]);
            for (int k = 0; k < 2 * part; k++) put_double(b, 0.5);
        }
    }
    put_text(b, "\n$EndNodes\n$Elements\n");
    put_long(b, 4), put_long(b, 4), put_long(b, 1), put_long(b, 4);
    put_int(b, 0), put_int(b, 1), put_int(b, 15), put_long(b, 1), put_long(b, 1), put_long(b, 35);
    put_int(b, 2), put_int(b, 3), put_int(b, 2), put_long(b, 1), put_long(b, 2);
    put_long(b, 7), put_long(b, 21), put_long(b, 28);
    for (int e = 0; e < 2; e++) {
        put_int(b, 3), put_int(b, e + 1), put_int(b, 4), put_long(b, 1), put_long(b, 3 + e);
        for (int k = 0; k < 4; k++) put_long(b, 7 * (two_elements[e][k] + 1));
    }
    put_text(b, "\n$EndElements\n");
}

// 2.2 and 4.1, text and bytes of either order, with numbers 7 apart, hold the same mesh with the same groups
static void test_msh(void **state) {
    (void)state;
    fem_mesh mesh = {0};
    read_with_remark(&mesh, test_write("two.msh", msh_2_text), "section \"Comments\" is passed over");
    assert_groups(&mesh);
    read_with_remark(&mesh, test_write("two.msh", msh_2_text),
                     "1 points, lines and faces in no physical group are passed over");
    read_with_remark(&mesh, test_write("two.msh", msh_2_text), "here they have the numbers 1 to 5");
    char commented[2000]; // also before the format, as some programs write it
    snprintf(commented, sizeof commented, "$Comments\nmade by hand\n$Nodes of my own\n$EndComments\n%s", msh_2_text);
    read_with_remark(&mesh, test_write("two.msh", commented), "section \"Comments\" is passed over");
    assert_groups(&mesh);
    for (int big = 0; big < 2; big++) {
        bytes two = {.big = big}, four = {.big = big};
        msh_2_binary(&two);
        assert_ok(fem_mesh_read(&mesh, save("binary2.msh", &two)));
        assert_groups(&mesh);
        msh_4_binary(&four);
        assert_ok(fem_mesh_read(&mesh, save("binary4.msh", &four)));
        assert_groups(&mesh);
    }
    // groups that overlap are element sets; in 2.2 an element then comes once for each
    read_with_remark(&mesh,
                     test_write("overlap.msh", "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n"
                                               "$PhysicalNames\n2\n3 1 \"whole\"\n3 2 \"half\"\n$EndPhysicalNames\n"
                                               "$Nodes\n5\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n5 1.5 1 1\n$EndNodes\n"
                                               "$Elements\n3\n1 4 2 1 1 1 2 3 4\n2 4 2 2 2 2 3 4 5\n3 4 2 1 2 2 3 4 5\n"
                                               "$EndElements\n"),
                     "1 elements come again in another physical group");
    assert_two(&mesh);
    assert_int_equal(mesh.region_count, 1);
    assert_set(fem_mesh_element_set(&mesh, "whole"), ITEMS(0, 1));
    assert_set(fem_mesh_element_set(&mesh, "half"), ITEMS(1));
    // 4.1: an entity in two groups; without names the tags name them
    assert_ok(
        fem_mesh_read(&mesh, test_write("overlap4.msh", "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Entities\n0 0 0 2\n"
                                                        "1 0 0 0 1 1 1 1 11 0\n2 0 0 0 1 1 1 2 11 12 0\n$EndEntities\n"
                                                        "$Nodes\n1 5 1 5\n3 1 0 5\n1\n2\n3\n4\n5\n"
                                                        "0 0 0\n1 0 0\n0 1 0\n0 0 1\n1.5 1 1\n$EndNodes\n"
                                                        "$Elements\n2 2 1 2\n3 1 4 1\n1 1 2 3 4\n3 2 4 1\n2 2 3 4 5\n"
                                                        "$EndElements\n")));
    assert_two(&mesh);
    assert_set(fem_mesh_element_set(&mesh, "volume_11"), ITEMS(0, 1));
    assert_set(fem_mesh_element_set(&mesh, "volume_12"), ITEMS(1));
    // no groups at all: each volume of the geometry is a region
    assert_ok(fem_mesh_read(&mesh, test_write("plain4.msh", "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n"
                                                            "$Nodes\n1 5 1 5\n3 1 0 5\n1\n2\n3\n4\n5\n"
                                                            "0 0 0\n1 0 0\n0 1 0\n0 0 1\n1.5 1 1\n$EndNodes\n"
                                                            "$Elements\n2 2 1 2\n3 1 4 1\n1 1 2 3 4\n"
                                                            "3 2 4 1\n2 2 3 4 5\n$EndElements\n")));
    assert_two(&mesh);
    assert_string_equal(mesh.regions[mesh.region[1]].name, "volume_2");
    fem_mesh_destroy(&mesh);
}

// ---- MEDIT -----------------------------------------------------------------------------------------------------

static void meshb(bytes *b, int version) {
    size_t at = 0;
    put_int(b, 1), put_int(b, version);
    for (int table = 0; table < 5; table++) {
        static const int codes[] = {3, 4, 6, 13, 8}, counts[] = {0, 5, 1, 1, 2};
        put_int(b, codes[table]);
        at = b->size; // the position of the next keyword comes here
        version >= 3 ? put_long(b, 0) : put_int(b, 0);
        void (*integer)(bytes *, long long) = version == 4 ? put_long : put_int;
        void (*real)(bytes *, double) = version == 1 ? put_float : put_double;
        table == 0 ? put_int(b, 3) : integer(b, counts[table]);
        for (int v = 0; v < 5 && table == 1; v++) {
            for (int k = 0; k < 3; k++) real(b, two_vertices[v][k]);
            integer(b, v == 4 ? 6 : 0);
        }
        for (int k = 0; k < 4 && table == 2; k++) integer(b, (int[]){1, 3, 4, 2}[k]);
        if (table == 3) integer(b, 1); // corners: passed over
        for (int e = 0; e < 2 && table == 4; e++) {
            for (int k = 0; k < 4; k++) integer(b, two_elements[e][k] + 1);
            integer(b, 5 - e);
        }
        size_t end = b->size;
        b->size = at;
        version >= 3 ? put_long(b, (long long)end) : put_int(b, (long long)end);
        b->size = end;
    }
    put_int(b, 54);
    version >= 3 ? put_long(b, 0) : put_int(b, 0);
}

static void assert_references(const fem_mesh *m) {
    assert_two(m);
    assert_int_equal(m->region_count, 2);
    assert_string_equal(m->regions[m->region[0]].name, "region_5");
    assert_string_equal(m->regions[m->region[1]].name, "region_4");
    assert_set(fem_mesh_vertex_set(m, "vertices_6"), ITEMS(4));
    assert_set(fem_mesh_vertex_set(m, "triangles_2"), ITEMS(0, 2, 3));
    assert_int_equal(m->vertex_set_count, 2);
}

// text, and bytes of four versions and both orders, hold the same mesh; references are regions and vertex sets
static void test_medit(void **state) {
    (void)state;
    fem_mesh mesh = {0};
    read_with_remark(&mesh,
                     test_write("two.mesh", " MeshVersionFormatted 2\n Dimension\n 3\n # a comment\n Vertices\n 5\n"
                                            "0 0 0 0\n1 0 0 0\n0 1 0 0\n0 0 1 0\n1.5 1 1 6\nCorners\n2\n1\n2\n"
                                            "Triangles\n1\n1 3 4 2\nTetrahedra\n2\n1 2 3 4 5\n2 3 4 5 4\nEnd\n"),
                     "the table \"Corners\" is passed over");
    assert_references(&mesh);
    for (int version = 1; version <= 4; version++)
        for (int big = 0; big < 2; big++) {
            bytes b = {.big = big};
            meshb(&b, version);
            read_with_remark(&mesh, save("two.meshb", &b), "the table with the code 13 is passed over");
            assert_references(&mesh);
        }
    if (test_data("")) { // the same mesh as TetGen wrote it in two formats
        fem_mesh other = {0};
        assert_ok(fem_mesh_read(&mesh, test_data("meshes/bunny_5k.mesh")));
        assert_ok(fem_mesh_read(&other, test_data("meshes/bunny_5k.node")));
        assert_int_equal(mesh.element_count, other.element_count);
        assert_memory_equal(mesh.elements, other.elements, 4 * (size_t)mesh.element_count * sizeof(int));
        printf("bunny_5k.mesh: distance from bunny_5k.node %.1e\n",
               test_relative_error(3 * mesh.vertex_count, mesh.vertices, other.vertices));
        assert_memory_equal(mesh.vertices, other.vertices, 3 * (size_t)mesh.vertex_count * sizeof(double));
        fem_mesh_destroy(&other);
    }
    fem_mesh_destroy(&mesh);
}

// ---- what editors do to text ---------------------------------------------------------------------------------------

static void count_items(const char *path, int counts[2]) {
    fem_mesh    mesh = {0};
    fem_surface surface = {0};
    assert_ok(fem_path_is_surface(path) ? fem_surface_read(&surface, path) : fem_mesh_read(&mesh, path));
    counts[0] = mesh.vertex_count + surface.vertex_count;
    counts[1] = mesh.element_count + surface.triangle_count;
    fem_mesh_destroy(&mesh);
    fem_surface_destroy(&surface);
}

// a mark before UTF-8, and lines that end as on Windows, change nothing; UTF-16 is refused by name
static void test_editors(void **state) {
    (void)state;
    static const char *const files[] = {"msh/text",      "inp/ours", "vtk/text", "mesh/ours", "veg/two",
                                        "vtu/inline_32", "stl/text", "ply/text", "obj/square"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char   source[64], name[32], *text = NULL, *changed;
        size_t size = 0, used = 0;
        int    before[2], after[2];
        snprintf(source, sizeof source, "tests/fuzz/corpus/%s", files[i]);
        snprintf(name, sizeof name, "editor.%.*s", (int)strcspn(files[i], "/"), files[i]);
        assert_ok(fem_file_read(&text, &size, source));
        assert_non_null(changed = malloc(2 * size + 4));
        count_items(test_write(name, text), before);
        memcpy(changed, "\xef\xbb\xbf", used = 3);
        for (size_t k = 0; k < size; k++) {
            if (text[k] == '\n') changed[used++] = '\r';
            changed[used++] = text[k];
        }
        changed[used] = 0;
        count_items(test_write(name, changed), after);
        assert_memory_equal(before, after, sizeof before);
        used = 0;
        FILE *file = fopen(test_temporary(name), "wb");
        assert_non_null(file);
        fputs("\xff\xfe", file);
        for (size_t k = 0; k < size; k++) fprintf(file, "%c%c", text[k], 0);
        assert_int_equal(fclose(file), 0);
        fem_mesh    mesh = {0};
        fem_surface surface = {0};
        fem_status  status = fem_path_is_surface(name) ? fem_surface_read(&surface, test_temporary(name))
                                                       : fem_mesh_read(&mesh, test_temporary(name));
        assert_fails(status, FEM_BAD_INPUT, "is UTF-16 text, expected UTF-8: save it again as plain text");
        free(changed);
        fem_free(text);
    }
    fem_surface surface = {0};
    assert_ok(fem_surface_read(&surface,
                               test_write("loud.stl", "SOLID a\nFACET NORMAL 0 0 1\nOUTER LOOP\nVERTEX 0 0 0\n"
                                                      "VERTEX 1 0 0\nVERTEX 0 1 0\nENDLOOP\nENDFACET\nENDSOLID\n")));
    assert_int_equal(surface.triangle_count, 1);
    fem_surface_destroy(&surface);
}

// ---- legacy VTK ------------------------------------------------------------------------------------------------

// text and bytes, cells of the old form and of the new, faces passed over, data of cells as regions
static void test_vtk(void **state) {
    (void)state;
    fem_mesh                 mesh = {0};
    static char              text[2048];
    static const char *const cells[] = {
        "CELLS 3 14\n3 0 2 3\n4 0 1 2 3 4 1 2 3 4\nCELL_TYPES 3\n5 10\n10\n",
        "CELLS 4 11\nOFFSETS vtktypeint64\n0 3 7 11\nCONNECTIVITY vtktypeint64\n0 2 3 0 1 2 3\n1 2 3 4\n"
        "CELL_TYPES 3\n5\n10\n10\n"};
    for (int form = 0; form < 2; form++) {
        snprintf(text, sizeof text,
                 "# vtk DataFile Version %s\na title\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 5 float\n0 0 0 1 0 0\n"
                 "0 1 0  0 0 1 1.5 1 1\nMETADATA\nINFORMATION 0\n\n%sCELL_DATA 3\nSCALARS CellEntityIds int 1\n"
                 "LOOKUP_TABLE default\n1 8 9\nFIELD FieldData 2\nset:a%%20b 1 3 char\n1 0 1\nspeed 3 3 double\n"
                 "1 2 3 4 5 6 7 8 9\nPOINT_DATA 5\nVECTORS u float\n0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
                 "COLOR_SCALARS c 2\n0 0 0 0 0 0 0 0 0 1\n",
                 form ? "5.1" : "3.0", cells[form]);
        read_with_remark(&mesh, test_write("two.vtk", text), "1 cells that are points, lines or faces are passed over");
        read_with_remark(&mesh, test_temporary("two.vtk"), "arrays that are passed over: speed, u");
        assert_two(&mesh);
        assert_int_equal(mesh.file_base, 0);
        assert_int_equal(mesh.region_count, 2);
        assert_string_equal(mesh.regions[mesh.region[0]].name, "region_8");
        assert_string_equal(mesh.regions[mesh.region[1]].name, "region_9");
        assert_set(fem_mesh_element_set(&mesh, "a b"), ITEMS(1));
        bytes b = {.big = true};
        snprintf(text, sizeof text, "# vtk DataFile Version %s\na title\nBINARY\nDATASET UNSTRUCTURED_GRID\n",
                 form ? "5.1" : "3.0");
        put_text(&b, text);
        put_text(&b, "POINTS 5 float\n");
        for (int i = 0; i < 15; i++) put_float(&b, two_vertices[i / 3][i % 3]);
        if (form == 0) {
            put_text(&b, "\nCELLS 2 10\n");
            for (int e = 0; e < 2; e++) {
                put_int(&b, 4);
                for (int k = 0; k < 4; k++) put_int(&b, two_elements[e][k]);
            }
        } else {
            put_text(&b, "\nCELLS 3 8\nOFFSETS vtktypeint64\n");
            for (int i = 0; i < 3; i++) put_long(&b, 4 * i);
            put_text(&b, "\nCONNECTIVITY vtktypeint64\n");
            for (int i = 0; i < 8; i++) put_long(&b, two_elements[i / 4][i % 4]);
        }
        put_text(&b, "\nCELL_TYPES 2\n");
        put_int(&b, 10), put_int(&b, 10);
        put_text(&b, "\n\nCELL_DATA 2\nSCALARS material double\nLOOKUP_TABLE default\n");
        put_double(&b, 3), put_double(&b, -2);
        put_text(&b, "\n");
        read_with_remark(&mesh, save("binary.vtk", &b), NULL);
        assert_two(&mesh);
        assert_string_equal(mesh.regions[mesh.region[0]].name, "region_3");
        assert_string_equal(mesh.regions[mesh.region[1]].name, "region_-2");
    }
    fem_mesh_destroy(&mesh);
}

// ---- VegaFEM's bytes -------------------------------------------------------------------------------------------

static void vegb(bytes *b) {
    put_double(b, 1.0);
    put_int(b, 1), put_int(b, 5);
    for (int i = 0; i < 15; i++) put_double(b, two_vertices[i / 3][i % 3]);
    put_int(b, 2), put_int(b, 4);
    for (int i = 0; i < 8; i++) put_int(b, two_elements[i / 4][i % 4]);
    put_int(b, 3);
    put_int(b, 4), put_text(b, "soft"), put_int(b, 1); // ENU
    put_double(b, 1000), put_double(b, 1e6), put_double(b, 0.45);
    put_int(b, 4), put_text(b, "wood"), put_int(b, 2); // orthotropic
    for (int i = 0; i < 10; i++) put_double(b, (double[]){600, 3e6, 2e6, 1e6, 0.2, 0.2, 0.1, 1e6, 2e6, 3e6}[i]);
    for (int i = 0; i < 9; i++) put_double(b, i == 1 || i == 3 ? 1 : i == 8 ? -1 : 0);
    put_int(b, 1), put_text(b, "m"), put_int(b, 3); // Mooney-Rivlin
    put_double(b, 900), put_double(b, 10), put_double(b, 20), put_double(b, 30);
    put_int(b, 2); // all elements, and one more
    put_int(b, 3), put_text(b, "end"), put_int(b, 1), put_int(b, 1);
    put_int(b, 2);
    put_int(b, 0), put_int(b, 0), put_int(b, 1), put_int(b, 1);
}

// the layout that VegaFEM writes, in both orders of bytes
static void test_vegb(void **state) {
    (void)state;
    fem_mesh mesh = {0};
    for (int big = 0; big < 2; big++) {
        bytes b = {.big = big};
        vegb(&b);
        read_with_remark(&mesh, save("two.vegb", &b), NULL);
        assert_two(&mesh);
        assert_int_equal(mesh.region_count, 2);
        assert_string_equal(mesh.regions[mesh.region[0]].name, "all");
        assert_string_equal(mesh.regions[mesh.region[1]].name, "end");
        assert_set(fem_mesh_element_set(&mesh, "end"), ITEMS(1));
        const fem_material *wood = &mesh.materials[mesh.regions[mesh.region[1]].material];
        assert_true(wood->kind == FEM_ORTHOTROPIC && wood->density == 600 && wood->young3[0] == 3e6 &&
                    wood->poisson3[2] == 0.1 && wood->shear3[1] == 2e6 && wood->frame[1] == 1 && wood->frame[8] == -1);
        assert_true(mesh.materials[2].mu10 == 20 && mesh.materials[2].v1 == 30);
    }
    fem_mesh_destroy(&mesh);
}

// ---- elements with more nodes ----------------------------------------------------------------------------------

// A ten-node tetrahedron of side 2: corners 1 to 4, then the middles of its edges.
#define TEN_NODES "1 0 0 0\n2 2 0 0\n3 0 2 0\n4 0 0 2\n5 1 0 0\n6 1 1 0\n7 0 1 0\n8 0 0 1\n9 1 0 1\n10 0 1 1\n"
static const double hexahedron[20][3] = {{0, 0, 0}, {2, 0, 0}, {2, 2, 0}, {0, 2, 0}, {0, 0, 2}, {2, 0, 2}, {2, 2, 2},
                                         {0, 2, 2}, {1, 0, 0}, {2, 1, 0}, {1, 2, 0}, {0, 1, 0}, {1, 0, 2}, {2, 1, 2},
                                         {1, 2, 2}, {0, 1, 2}, {0, 0, 1}, {2, 0, 1}, {2, 2, 1}, {0, 2, 1}};

// ten-node tetrahedra and twenty-node hexahedra come as their corners, with a remark, in every format that has them
static void test_quadratic(void **state) {
    (void)state;
    const char *tetrahedra[6] = {
        test_write("ten.msh", "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$PhysicalNames\n1\n2 1 \"base\"\n"
                              "$EndPhysicalNames\n$Nodes\n10\n" TEN_NODES
                              "$EndNodes\n$Elements\n2\n1 9 2 1 1 1 2 3 5 6 7\n2 11 2 0 1 1 2 3 4 5 6 7 8 10 9\n"
                              "$EndElements\n"),
        test_write("ten.inp", "*NODE\n" TEN_NODES "*ELEMENT, TYPE=C3D10\n1, 1,2,3,4,5,6,7,8,\n9,10\n"
                              "*NSET,NSET=base\n1,2,3,5,6,7\n"),
        test_write("ten.vtk", "# vtk DataFile Version 2.0\n\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 10 double\n"
                              "0 0 0 2 0 0 0 2 0 0 0 2 1 0 0 1 1 0 0 1 0 0 0 1 1 0 1 0 1 1\nCELLS 1 11\n"
                              "10 0 1 2 3 4 5 6 7 8 9\nCELL_TYPES 1\n24\nPOINT_DATA 10\nFIELD f 1\n"
                              "set:base 1 10 int\n1 1 1 0 1 1 1 0 0 0\n"),
        test_write("ten.mesh", "MeshVersionFormatted 2\nDimension 3\nVertices\n10\n0 0 0 1\n2 0 0 1\n0 2 0 1\n0 0 2 0\n"
                               "1 0 0 1\n1 1 0 1\n0 1 0 1\n0 0 1 0\n1 0 1 0\n0 1 1 0\nTetrahedraP2\n1\n"
                               "1 2 3 4 5 6 7 8 9 10 0\nEnd\n"),
        test_write("ten.node", "10 3 0 1\n1 0 0 0 1\n2 2 0 0 1\n3 0 2 0 1\n4 0 0 2 0\n5 1 0 0 1\n6 1 1 0 1\n7 0 1 0 1\n"
                               "8 0 0 1 0\n9 1 0 1 0\n10 0 1 1 0\n"),
        NULL};
    static const char *const names[] = {"base", "base", "base", "vertices_1", "marker_1"};
    test_write("ten.ele", "1 10 0\n1 1 2 3 4 5 6 7 8 9 10\n");
    fem_mesh mesh = {0};
    for (int i = 0; tetrahedra[i]; i++) {
        read_with_remark(&mesh, tetrahedra[i],
                         "1 ten-node tetrahedral elements are read as their corners; 6 vertices that are no corner");
        assert_int_equal(mesh.vertex_count, 4);
        assert_true(fabs(fem_element_volume(&mesh, 0) - 8.0 / 6) < 1e-15);
        assert_set(fem_mesh_vertex_set(&mesh, names[i]), ITEMS(0, 1, 2));
    }
    bytes b = {0};
    char  line[96];
    put_text(&b, "*NODE\n");
    for (int v = 0; v < 20; v++) {
        snprintf(line, sizeof line, "%d, %g, %g, %g\n", 100 - v, hexahedron[v][0], hexahedron[v][1], hexahedron[v][2]);
        put_text(&b, line);
    }
    put_text(&b, "*ELEMENT, TYPE=C3D20R\n1");
    for (int v = 0; v < 20; v++) {
        snprintf(line, sizeof line, ",%s%d", v == 15 ? "\n" : " ", 100 - v);
        put_text(&b, line);
    }
    put_text(&b, "\n");
    read_with_remark(&mesh, save("twenty.inp", &b), "1 twenty-node hexahedral elements are read as their corners; 12");
    assert_int_equal(mesh.vertex_count, 8);
    assert_true(fabs(fem_element_volume(&mesh, 0) - 8) < 1e-14);
    b.size = 0;
    put_text(&b,
             "<VTKFile type=\"UnstructuredGrid\"><UnstructuredGrid><Piece NumberOfPoints=\"20\" NumberOfCells=\"1\">"
             "<Points><DataArray type=\"Float64\" NumberOfComponents=\"3\" format=\"ascii\">");
    for (int v = 0; v < 20; v++) {
        snprintf(line, sizeof line, "%g %g %g ", hexahedron[v][0], hexahedron[v][1], hexahedron[v][2]);
        put_text(&b, line);
    }
    put_text(&b, "</DataArray></Points><Cells><DataArray type=\"Int32\" Name=\"connectivity\" format=\"ascii\">"
                 "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19</DataArray>"
                 "<DataArray type=\"Int32\" Name=\"offsets\" format=\"ascii\">20</DataArray>"
                 "<DataArray type=\"UInt8\" Name=\"types\" format=\"ascii\">25</DataArray></Cells></Piece>"
                 "</UnstructuredGrid></VTKFile>");
    read_with_remark(&mesh, save("twenty.vtu", &b), "1 twenty-node hexahedral elements are read as their corners; 12");
    assert_int_equal(mesh.vertex_count, 8);
    assert_true(fabs(fem_element_volume(&mesh, 0) - 8) < 1e-14);
    fem_mesh_destroy(&mesh);
}

// ---- surfaces --------------------------------------------------------------------------------------------------

static const int corners_of_tetrahedron[4][3] = {{0, 2, 1}, {0, 1, 3}, {1, 2, 3}, {0, 3, 2}};

static void assert_tetrahedron(const fem_surface *s) {
    double volume = 0;
    assert_int_equal(s->vertex_count, 4);
    assert_int_equal(s->triangle_count, 4);
    for (int t = 0; t < 4; t++) {
        const int *v = s->triangles + 3 * t;
        double     c[3];
        vec3_cross(c, s->vertices + 3 * v[1], s->vertices + 3 * v[2]);
        volume += vec3_dot(c, s->vertices + 3 * v[0]) / 6;
    }
    assert_true(fabs(volume - 1.0 / 6) < 1e-15); // closed, outward
}

static void ply(bytes *b, const char *format) {
    put_text(b, "ply\nformat ");
    put_text(b, format);
    put_text(b, " 1.0\ncomment by hand\nelement vertex 4\nproperty float x\nproperty double y\nproperty short z\n"
                "property uchar red\nelement face 4\nproperty float quality\n"
                "property list uchar int vertex_indices\nelement edge 1\nproperty int vertex1\nend_header\n");
    for (int v = 0; v < 4; v++) {
        put_float(b, two_vertices[v][0]);
        put_double(b, two_vertices[v][1]);
        put_number(b, (uint64_t)two_vertices[v][2], 2);
        put_number(b, 255, 1);
    }
    for (int t = 0; t < 4; t++) {
        put_float(b, NAN);
        put_number(b, 3, 1);
        for (int k = 0; k < 3; k++) put_int(b, corners_of_tetrahedron[t][k]);
    }
    put_int(b, 0);
}

// text and bytes of .stl and .ply hold the same closed tetrahedron; the corners of .stl are joined
static void test_surfaces(void **state) {
    (void)state;
    fem_surface surface = {0};
    bytes       text = {0}, binary = {0};
    char        line[96];
    put_text(&text, "solid by hand\n");
    put_text(&binary, "solid but bytes");
    binary.size = 80; // the rest is zero
    put_int(&binary, 4);
    for (int t = 0; t < 4; t++) {
        put_text(&text, " facet normal 0 0 nan\n  outer loop\n");
        for (int k = 0; k < 3; k++) put_float(&binary, 0);
        for (int k = 0; k < 3; k++) {
            const double *x = two_vertices[corners_of_tetrahedron[t][k]];
            snprintf(line, sizeof line, "   vertex %g %g %g\n", t ? x[0] : -x[0] * -1, x[1], x[2] == 0 ? -0.0 : x[2]);
            put_text(&text, line);
            for (int i = 0; i < 3; i++) put_float(&binary, x[i]);
        }
        put_text(&text, "  endloop\n endfacet\n");
        put_number(&binary, 0, 2);
    }
    put_text(&text, "endsolid by hand\n");
    assert_ok(fem_surface_read(&surface, save("four.stl", &text)));
    assert_tetrahedron(&surface);
    assert_ok(fem_surface_read(&surface, save("bytes.stl", &binary)));
    assert_tetrahedron(&surface);
    for (int form = 0; form < 2; form++) { // its head may begin with "solid" or not
        bytes       longer = binary;
        fem_remarks remarks = {0};
        if (form == 1) memset(longer.data, 0, 5);
        bytes cut = longer;
        cut.size -= 60;
        put_text(&longer, "colours");
        assert_ok(fem_surface_read_remarks(&surface, save("longer.stl", &longer), &remarks));
        assert_tetrahedron(&surface);
        assert_int_equal(remarks.count, 1);
        assert_non_null(strstr(remarks.items[0], "longer.stl: 7 bytes behind its 4 triangles are passed over"));
        fem_remarks_destroy(&remarks);
        assert_fails(fem_surface_read(&surface, save("cut.stl", &cut)), FEM_BAD_INPUT,
                     "cut.stl: is no .stl, or was cut short: its head announces 4 triangles, but it has bytes of 2");
    }
    const char *obj = test_temporary("four.obj");
    assert_ok(fem_surface_write(&surface, obj));
    assert_ok(fem_surface_read(&surface, obj));
    assert_tetrahedron(&surface);
    for (int big = 0; big < 2; big++) {
        bytes b = {.big = big};
        ply(&b, big ? "binary_big_endian" : "binary_little_endian");
        assert_ok(fem_surface_read(&surface, save("four.ply", &b)));
        assert_tetrahedron(&surface);
    }
    assert_ok(fem_surface_read(
        &surface,
        test_write("text.ply", "ply\nformat ascii 1.0\nelement vertex 4\nproperty float x\nproperty float y\n"
                               "property float z\nelement face 4\nproperty list uchar int vertex_index\n"
                               "end_header\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 2 1\n3 0 1 3\n3 1 2 3\n3 0 3 2\n")));
    assert_tetrahedron(&surface);
    fem_surface_destroy(&surface);
}

// ---- memory, disks, folders ------------------------------------------------------------------------------------

// Each allocation of a reader fails in turn: it says so, leaks nothing and leaves what was there.
static long fail_reading(const char *path) {
    long failures = 0;
    if (fem_path_is_surface(path)) {
        fem_surface surface = {0};
        for (;; failures++) {
            long blocks = fem_memory_blocks();
            fem_memory_fail_after(failures);
            fem_status status = fem_surface_read(&surface, path);
            fem_memory_fail_after(-1);
            if (status == FEM_OK) break;
            assert_int_equal(status, FEM_NO_MEMORY);
            assert_int_equal(fem_memory_blocks(), blocks);
        }
        fem_surface_destroy(&surface);
        return failures;
    }
    return fail_reading_mesh(path);
}

// every allocation of every reader and writer may fail
static void test_memory(void **state) {
    (void)state;
    fem_mesh mesh = {0};
    long     failures = 0;
    make_box(&mesh, FEM_T4);
    for (int i = 0; i < WRITTEN; i++) {
        char name[64];
        snprintf(name, sizeof name, "memory.%s", written[i]);
        const char *path = test_temporary(name);
        for (long n = 0;; n++, failures++) {
            long blocks = fem_memory_blocks();
            fem_memory_fail_after(n);
            fem_status status = write_as(&mesh, i, path);
            fem_memory_fail_after(-1);
            assert_int_equal(fem_memory_blocks(), blocks);
            if (status == FEM_OK) break;
            assert_int_equal(status, FEM_NO_MEMORY);
        }
        failures += fail_reading(path);
    }
    fem_mesh_destroy(&mesh);
    // what the tests above have left, with the paths that our own files do not take
    static const char *const names[] = {"two.msh",  "binary2.msh", "binary4.msh", "overlap.msh", "overlap4.msh",
                                        "two.mesh", "two.meshb",   "two.vtk",     "two.vegb",    "ten.msh",
                                        "ten.node", "twenty.inp",  "twenty.vtu",  "four.stl",    "bytes.stl",
                                        "four.ply", "text.ply",    "wood.inp",    "plain4.msh"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) failures += fail_reading(test_temporary(names[i]));
    printf("%ld allocations failed in turn\n", failures);
    assert_true(failures > 500);
}

static int files_in(const char *folder) {
    int  count = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *entry; (entry = readdir(d));) count += entry->d_name[0] != '.';
    closedir(d);
    return count;
}

// a disk that is full, at whatever byte, and a folder that cannot be written in: an error, the old file, nothing else
static void test_full_disk(void **state) {
    (void)state;
    fem_mesh      mesh = {0}, back = {0};
    struct rlimit old, small;
    int           refused = 0;
    char          path[400];
    const char   *folder = test_temporary("disk");
    assert_int_equal(mkdir(folder, 0777), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    make_box(&mesh, FEM_T4);
    for (int i = 0; i < WRITTEN; i++) {
        struct stat about;
        snprintf(path, sizeof path, "%s/file.%s", folder, written[i]);
        assert_ok(write_as(&mesh, i, path));
        assert_int_equal(stat(path, &about), 0);
        int files = files_in(folder);
        for (int part = 0; part < 4; part++) { // of the file has room
            small = old;
            small.rlim_cur = (rlim_t)(about.st_size * part / 4);
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
            fem_status status = write_as(&mesh, i, path);
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
            assert_int_equal(status, FEM_IO);
            assert_non_null(strstr(fem_message(), "cannot be written: File too large"));
            assert_int_equal(files_in(folder), files);
            refused++;
        }
        assert_ok(fem_mesh_read(&back, path)); // the old one is whole
        assert_same_mesh(&mesh, &back);
        snprintf(path, sizeof path, "%s/nowhere/file.%s", folder, written[i]);
        assert_fails(write_as(&mesh, i, path), FEM_IO, "cannot be created: No such file or directory");
        snprintf(path, sizeof path, "/proc/self/file.%s", written[i]); // not even root writes there
        assert_int_equal(write_as(&mesh, i, path), FEM_IO);
        assert_non_null(strstr(fem_message(), "cannot be created"));
    }
    if (geteuid() != 0) { // root writes everywhere
        assert_int_equal(chmod(folder, 0555), 0);
        snprintf(path, sizeof path, "%s/other.msh", folder);
        assert_fails(fem_mesh_write(&mesh, path), FEM_IO, "cannot be created: Permission denied");
        assert_int_equal(chmod(folder, 0777), 0);
    }
    signal(SIGXFSZ, before);
    printf("%d writes to a full disk refused, nothing left behind\n", refused);
    fem_mesh_destroy(&mesh);
    fem_mesh_destroy(&back);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),  cmocka_unit_test(test_names_and_kinds), cmocka_unit_test(test_msh),
        cmocka_unit_test(test_medit),  cmocka_unit_test(test_editors),         cmocka_unit_test(test_vtk),
        cmocka_unit_test(test_vegb),   cmocka_unit_test(test_quadratic),       cmocka_unit_test(test_surfaces),
        cmocka_unit_test(test_memory), cmocka_unit_test(test_full_disk)};
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
