// Decks of Abaqus and CalculiX: what their dialects say is read as that, what is passed over is said, and what is
// refused is refused by line.
#include "tests/format_case.h"

#include <math.h>

static const char deck[] =
    "*Heading\n two tetrahedra\n** a comment\n*INCLUDE, INPUT=nodes.part\n"
    "*Element, type=C3D4,\n  ELSET=Soft\n10, 7, 14, 21, 28\n*ELEMENT, TYPE=C3D4, ELSET=hard\n20, 14, 21, 28,\n 35\n"
    "*ELEMENT, TYPE=CPS3, ELSET=wall\n30, 7, 21, 28\n"
    "*NSET, NSET=root, GENERATE\n7, 21, 7\n*NSET, NSET=both\nROOT, 35\n*ELSET, ELSET=all-of-it\nsoft, hard\n"
    "*MATERIAL, NAME=Rubber\n*ELASTIC, TYPE=ISO\n1.5e6, 0.45, 20.\n2e6, 0.45, 40.\n*DENSITY\n950.,\n*EXPANSION\n1e-4\n"
    "*MATERIAL, NAME=steel\n*DENSITY\n7850\n*ELASTIC\n2.1E+11, .3\n"
    "*SOLID SECTION, ELSET=soft, MATERIAL=RUBBER\n*SOLID SECTION, ELSET=HARD, MATERIAL=Steel\n1.\n"
    "*STEP\n*STATIC\n*BOUNDARY\nroot, 1, 3\n*END STEP\n";

// a deck with includes, sparse numbers, sets of sets, ranges, faces, materials and an analysis
static void test_inp(void **state) {
    (void)state;
    fem_mesh mesh = {0};
    test_write("nodes.part", "*NODE, NSET=every\n7, 0, 0., 0\n14, 1., 0, 0\n21, 0, 1, 0\n28, 0, 0, 1\n35, 1.5, 1, 1\n");
    const char *path = test_write("two.inp", deck);
    read_with_remark(&mesh, path, "passed over: *EXPANSION, *STEP, *STATIC, *BOUNDARY, *END STEP");
    read_with_remark(&mesh, path, "material Rubber: *ELASTIC depends on temperature");
    assert_two(&mesh);
    assert_int_equal(mesh.region_count, 2);
    assert_string_equal(mesh.regions[mesh.region[0]].name, "Soft");
    const fem_material *soft = &mesh.materials[mesh.regions[mesh.region[0]].material];
    const fem_material *hard = &mesh.materials[mesh.regions[mesh.region[1]].material];
    assert_string_equal(soft->name, "Rubber");
    assert_true(soft->kind == FEM_STVK && soft->young == 1.5e6 && soft->poisson == 0.45 && soft->density == 950);
    assert_true(hard->young == 2.1e11 && hard->poisson == 0.3 && hard->density == 7850);
    assert_set(fem_mesh_vertex_set(&mesh, "every"), ITEMS(0, 1, 2, 3, 4));
    assert_set(fem_mesh_vertex_set(&mesh, "root"), ITEMS(0, 1, 2));
    assert_set(fem_mesh_vertex_set(&mesh, "both"), ITEMS(0, 1, 2, 4));
    assert_set(fem_mesh_vertex_set(&mesh, "wall"), ITEMS(0, 2, 3));
    assert_set(fem_mesh_element_set(&mesh, "all-of-it"), ITEMS(0, 1));
    assert_int_equal(mesh.element_set_count, 1);
    assert_int_equal(mesh.vertex_set_count, 4);
    // no sections: one region; sets that *ELEMENT names are element sets then
    read_with_remark(&mesh,
                     test_write("plain.inp", "*NODE\n1,0,0,0\n2,1,0,0\n3,0,1,0\n4,0,0,1\n5,1.5,1,1\n"
                                             "*ELEMENT, TYPE=C3D4H, ELSET=a\n1,1,2,3,4\n2,2,3,4,5\n"),
                     "elements of type C3D4H are read as if without the letters");
    assert_two(&mesh);
    assert_string_equal(mesh.regions[0].name, "all");
    assert_set(fem_mesh_element_set(&mesh, "a"), ITEMS(0, 1));
    // second order: lines are end, middle, end; corners of the 27-node hexahedron are its first eight
    read_with_remark(
        &mesh,
        test_write("second.inp",
                   "*NODE\n1,0,0,0\n2,2,0,0\n3,2,2,0\n4,0,2,0\n5,0,0,2\n6,2,0,2\n7,2,2,2\n8,0,2,2\n9,1,0,0\n"
                   "*ELEMENT, TYPE=C3D27\n1,1,2,3,4,5,6,7,8,9,9,9,9,9,9,9,\n9,9,9,9,9,9,9,9,9,9,9,9\n"
                   "*ELEMENT, TYPE=T3D3, ELSET=line\n2,1,9,2\n*ELEMENT, TYPE=M3D9, ELSET=face\n"
                   "3,1,2,3,4,9,9,9,9,9\n"),
        "1 27-node hexahedral elements are read as their corners; 1 vertices that are no corner");
    assert_int_equal(mesh.vertex_count, 8);
    assert_set(fem_mesh_vertex_set(&mesh, "line"), ITEMS(0, 1));
    assert_set(fem_mesh_vertex_set(&mesh, "face"), ITEMS(0, 1, 2, 3));
    read_with_remark(&mesh, test_temporary("plain.inp"), "C3D4H");
    // a number of more than 20 letters loses digits, no more
    mesh.vertices[12] = 1.5000000000000002e-5 + 1.0 / 3e4;
    double      x = mesh.vertices[12];
    const char *out = test_temporary("digits.inp");
    assert_ok(fem_mesh_write(&mesh, out));
    assert_ok(fem_mesh_read(&mesh, out));
    printf("%.17g reads back as %.17g from .inp\n", x, mesh.vertices[12]);
    assert_true(fabs(mesh.vertices[12] - x) < 1e-13 * fabs(x));
    fem_mesh_destroy(&mesh);
}

// GENERATE over numbers with gaps, data in other files, and the names of a part and its assembly, which are apart
static void test_inp_decks(void **state) {
    (void)state;
    fem_mesh mesh = {0};
    test_write("some nodes.part", "7, 0, 0., 0\n14, 1., 0, 0\n21, 0, 1, 0\n28, 0, 0, 1\n");
    test_write("elements.part", "10, 7, 14, 21, 28\n");
    const char *path =
        test_write("deck.INP", // endings in capitals are the same
                   "*Part, name=Beam\n*Node, input=\"some nodes.part\"\n35, 1.5, 1, 1\n"
                   "*Element, type=C3D4, input=elements.part\n20, 14, 21, 28, 35\n"
                   "*Nset, nset=Set-1, generate\n7, 35, 1\n*Nset, nset=even, generate\n8, 2000000000, 2\n"
                   "*Elset, elset=Set-1, generate\n1, 2000000000\n*End Part\n*Assembly, name=A\n"
                   "*Instance, name=Beam-1, part=Beam\n*End Instance\n"
                   "*Nset, nset=Set-1, instance=Beam-1\n21, 28\n*Nset, nset=all, internal\neven, Set-1\n"
                   "*End Assembly\n");
    read_with_remark(&mesh, path, "the part and the assembly have a set Set-1: that of the part is Beam.Set-1");
    assert_two(&mesh);
    assert_set(fem_mesh_vertex_set(&mesh, "Beam.Set-1"), ITEMS(0, 1, 2, 3, 4));
    assert_set(fem_mesh_vertex_set(&mesh, "Set-1"), ITEMS(2, 3));
    assert_set(fem_mesh_vertex_set(&mesh, "even"), ITEMS(1, 3));
    assert_set(fem_mesh_vertex_set(&mesh, "all"), ITEMS(1, 2, 3));
    assert_set(fem_mesh_element_set(&mesh, "Set-1"), ITEMS(0, 1));
    fem_mesh_destroy(&mesh);
}

// the second of two nodes or elements of one number is named by its line, also in a file that is included
static void test_twice(void **state) {
    (void)state;
    fem_mesh mesh = {0};
    test_write("more.part", "*NODE\n** a comment\n5, 1, 1, 1\n3, 0, 0, 1\n");
    assert_fails(
        fem_mesh_read(&mesh, test_write("nodes.inp", "*NODE\n1,0,0,0\n2,1,0,0\n3,0,1,0\n*INCLUDE, INPUT=more.part\n"
                                                     "*ELEMENT, TYPE=C3D4\n1,1,2,3,5\n")),
        FEM_BAD_INPUT, "more.part:4: two nodes have the number 3");
    assert_fails(fem_mesh_read(&mesh, test_write("elements.inp", "*NODE\n1,0,0,0\n2,1,0,0\n3,0,1,0\n4,0,0,1\n"
                                                                 "*ELEMENT, TYPE=C3D4\n7,1,2,3,4\n9,1,2,3,4\n"
                                                                 "7,1,2,3,4\n")),
                 FEM_BAD_INPUT, "elements.inp:9: two elements have the number 7");
    assert_null(mesh.vertices);
}

// numbers as Fortran and hands write them: D exponents, coordinates left out, blanks for commas, Windows' line ends
static void test_numbers(void **state) {
    (void)state;
    fem_mesh mesh = {0};
    read_with_remark(&mesh,
                     test_write("numbers.inp",
                                "*NODE\n1,\n2, 1.0D+00\r\n3, , 0.1d1, \n4 , , , 1000.D-3\n5 15d-1 1 0.01D2\n"
                                "*ELEMENT, TYPE=C3D4\n1,1,2,3,4\n2,2,3,4,5\n*MATERIAL, NAME=m\n*ELASTIC\n"
                                "2.1D+11, 3D-1\n*DENSITY\n7.85D3\n"),
                     NULL);
    assert_two(&mesh);
    assert_true(mesh.materials[0].young == 2.1e11 && mesh.materials[0].poisson == 0.3 &&
                mesh.materials[0].density == 7850);
    // no number of another kind becomes one
    static const char *const bad[] = {"1.0D", "D5", "1D5D5", "1.0F5", "1e5d", "1D999", ".", "1;5"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[200], message[80];
        snprintf(text, sizeof text, "*NODE\n1,0,0,0\n2,%s,0,0\n", bad[i]);
        snprintf(message, sizeof message, "bad.inp:3: expected a coordinate, a finite number, found \"%s\"", bad[i]);
        assert_fails(fem_mesh_read(&mesh, test_write("bad.inp", text)), FEM_BAD_INPUT, message);
    }
    // MEDIT's .mesh as well
    read_with_remark(&mesh,
                     test_write("numbers.mesh", "MeshVersionFormatted 1\nDimension 3\nVertices\n5\n0.0D0 0 0 0\n"
                                                "0.1D+01 0 0 0\n0 1 0 0\n0 0 1 0\n1.5D0 1 1 0\nTetrahedra\n2\n"
                                                "1 2 3 4 0\n2 3 4 5 0\nEnd\n"),
                     NULL);
    assert_two(&mesh);
    fem_mesh_destroy(&mesh);
}

// what has no volume makes vertex sets of its element sets and is passed over otherwise, with its sections
static void test_flat_elements(void **state) {
    (void)state;
    fem_mesh    mesh = {0};
    const char *path = test_write(
        "flat.inp", "*NODE\n1,0,0,0\n2,1,0,0\n3,0,1,0\n4,0,0,1\n5,1.5,1,1\n"
                    "*ELEMENT, TYPE=C3D4, ELSET=body\n1,1,2,3,4\n2,2,3,4,5\n"
                    "*ELEMENT, TYPE=MASS, ELSET=weight\n3,5\n*MASS, ELSET=weight\n2.5\n"
                    "*ELEMENT, TYPE=SPRINGA, ELSET=spring\n4,1,5\n*SPRING, ELSET=spring\n\n100.\n"
                    "*ELEMENT, TYPE=DASHPOTA\n5,2,5\n*ELEMENT, TYPE=B31H, ELSET=beam\n6,1,2,3\n7,2,4\n"
                    "*ELEMENT, TYPE=B31\n8,1,2\n*ELEMENT, TYPE=S4R5, ELSET=shell\n9,1,2,5,3\n"
                    "*ELEMENT, TYPE=T3D2, ELSET=truss\n10,1,3\n*ELSET, ELSET=most\nbody, truss\n"
                    "*MATERIAL, NAME=m\n*ELASTIC\n1e6,0.3\n*DENSITY\n1000\n"
                    "*SHELL SECTION, ELSET=shell, MATERIAL=m\n0.1\n*SOLID SECTION, ELSET=truss, MATERIAL=m\n1.\n"
                    "*SOLID SECTION, ELSET=body, MATERIAL=m\n");
    read_with_remark(&mesh, path,
                     "elements of type MASS, SPRINGA, DASHPOTA, B31H, B31, S4R5, T3D2 have no volume: of them only the "
                     "sets are read, as vertices");
    read_with_remark(&mesh, path, "the section of truss is passed over: its elements have no volume");
    read_with_remark(&mesh, path, "passed over: *MASS, *SPRING, *SHELL SECTION");
    assert_two(&mesh);
    assert_int_equal(mesh.region_count, 1);
    assert_string_equal(mesh.regions[0].name, "body");
    assert_set(fem_mesh_vertex_set(&mesh, "weight"), ITEMS(4));
    assert_set(fem_mesh_vertex_set(&mesh, "spring"), ITEMS(0, 4));
    assert_set(fem_mesh_vertex_set(&mesh, "beam"), ITEMS(0, 1, 3)); // the third node only turns it
    assert_set(fem_mesh_vertex_set(&mesh, "shell"), ITEMS(0, 1, 2, 4));
    assert_set(fem_mesh_vertex_set(&mesh, "truss"), ITEMS(0, 2));
    assert_set(fem_mesh_element_set(&mesh, "most"), ITEMS(0, 1));
    // nothing else: no solid is left, or a solid that is not known
    assert_fails(fem_mesh_read(&mesh, test_write("springs.inp", "*NODE\n1,0,0,0\n2,1,0,0\n*ELEMENT, TYPE=SPRINGA\n"
                                                                "1,1,2\n")),
                 FEM_BAD_INPUT, "has no tetrahedra or hexahedra");
    assert_fails(fem_mesh_read(&mesh, test_write("heat.inp", "*NODE\n1,0,0,0\n*ELEMENT, TYPE=DC3D4\n1,1,1,1,1\n")),
                 FEM_BAD_INPUT, "elements of type DC3D4 are not supported");
    fem_mesh_destroy(&mesh);
}

// the nodes of an element set, numbers of the instance, and a section outside of the assembly that has its set
static void test_assembly(void **state) {
    (void)state;
    fem_mesh    mesh = {0};
    const char *path = test_write(
        "assembly.inp",
        "*PART, NAME=Part-1\n*NODE\n7,0,0,0\n14,1,0,0\n21,0,1,0\n28,0,0,1\n35,1.5,1,1\n"
        "*ELEMENT, TYPE=C3D4\n10,7,14,21,28\n20,14,21,28,35\n*ELEMENT, TYPE=S3, ELSET=skin\n30,7,14,21\n"
        "*ELSET, ELSET=far\n20\n*NSET, NSET=far nodes, ELSET=far\n7\n*NSET, NSET=skin, ELSET=Skin\n*END PART\n"
        "*ASSEMBLY, NAME=a\n*INSTANCE, NAME=Part-1-1, PART=Part-1\n*END INSTANCE\n"
        "*NSET, NSET=ends\nPart-1-1.7, PART-1-1.35\n*NSET, NSET=mixed\nPart-1-1.skin, 28, ends\n"
        "*ELSET, ELSET=whole, INSTANCE=Part-1-1, GENERATE\n10, 20, 10\n"
        "*NSET, NSET=every, ELSET=whole\n*END ASSEMBLY\n"
        "*MATERIAL, NAME=m\n*ELASTIC\n1e6,0.3\n*DENSITY\n1000\n*SOLID SECTION, ELSET=WHOLE, MATERIAL=m\n");
    read_with_remark(&mesh, path, "elements of type S3 have no volume");
    assert_two(&mesh);
    assert_int_equal(mesh.region_count, 1);
    assert_string_equal(mesh.regions[0].name, "whole");
    assert_true(mesh.materials[0].young == 1e6);
    assert_set(fem_mesh_vertex_set(&mesh, "far nodes"), ITEMS(0, 1, 2, 3, 4));
    assert_set(fem_mesh_vertex_set(&mesh, "skin"), ITEMS(0, 1, 2));
    assert_set(fem_mesh_vertex_set(&mesh, "ends"), ITEMS(0, 4));
    assert_set(fem_mesh_vertex_set(&mesh, "mixed"), ITEMS(0, 1, 2, 3, 4));
    assert_set(fem_mesh_vertex_set(&mesh, "every"), ITEMS(0, 1, 2, 3, 4));
    assert_set(fem_mesh_element_set(&mesh, "far"), ITEMS(1));
    // names of other instances, of sets that are not there, numbers that are not
    static const char *const bad[][2] = {
        {"*NSET, NSET=n\nOther-1.7\n", "expected a number or a set that stands above, found \"Other-1.7\""},
        {"*NSET, NSET=n\nP-1.\n", "found \"P-1.\""},
        {"*NSET, NSET=n\nP-1.5x\n", "found \"5x\""},
        {"*NSET, NSET=n\nP-1.99\n", "set n: there is no node 99"},
        {"*NSET, NSET=n, ELSET=nobody\n", "*NSET: there is no element set nobody above"},
        {"*ELSET, ELSET=e, GENERATE\n5, 9\n*NSET, NSET=n, ELSET=e\n", "set e: there is no element from 5 to 9"},
        {"*SOLID SECTION, ELSET=e, MATERIAL=m\n", "the section of e has no elements: there is no such set"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "*NODE\n1,0,0,0\n2,1,0,0\n3,0,1,0\n4,0,0,1\n*ELEMENT, TYPE=C3D4\n1,1,2,3,4\n"
                 "*ASSEMBLY\n*INSTANCE, NAME=P-1, PART=P\n*END INSTANCE\n%s",
                 bad[i][0]);
        assert_fails(fem_mesh_read(&mesh, test_write("bad.inp", text)), FEM_BAD_INPUT, bad[i][1]);
    }
    fem_mesh_destroy(&mesh);
}

// every allocation may fail, also while a deck is read again to say where a number comes twice
static void test_memory(void **state) {
    (void)state;
    fem_mesh mesh = {0};
    test_write("nodes.part", "*NODE, NSET=every\n7, 0, 0., 0\n14, 1., 0, 0\n21, 0, 1, 0\n28, 0, 0, 1\n35, 1.5, 1, 1\n");
    long failures = fail_reading_mesh(test_write("two.inp", deck)) + fail_reading_mesh(test_temporary("flat.inp")) +
                    fail_reading_mesh(test_temporary("assembly.inp"));
    const char *twice = test_temporary("nodes.inp");
    fem_status  status = FEM_NO_MEMORY;
    for (long n = 0; status == FEM_NO_MEMORY; n++, failures++) {
        long blocks = fem_memory_blocks();
        fem_memory_fail_after(n);
        status = fem_mesh_read(&mesh, twice);
        fem_memory_fail_after(-1);
        assert_int_equal(fem_memory_blocks(), blocks);
    }
    assert_int_equal(status, FEM_BAD_INPUT);
    printf("%ld failures survived\n", failures);
    assert_true(failures > 100);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_inp),           cmocka_unit_test(test_inp_decks),
                                       cmocka_unit_test(test_twice),         cmocka_unit_test(test_numbers),
                                       cmocka_unit_test(test_flat_elements), cmocka_unit_test(test_assembly),
                                       cmocka_unit_test(test_memory)};
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
