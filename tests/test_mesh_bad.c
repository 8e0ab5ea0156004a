// Bad files: each fixture of tests/bad is refused with the message that tests/bad/expected.txt wants, and files with
// random damage never crash a reader, leak, or give a mesh that the check would refuse.
#include "tests/support.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "tests/bad"

static bool ends(const char *name, const char *ending) {
    size_t length = strlen(name), tail = strlen(ending);
    return length >= tail && strcmp(name + length - tail, ending) == 0;
}

// Reads a file with the reader for its ending; what comes out is checked and thrown away.
static fem_status read_any(const char *path) {
    fem_status status;
    if (ends(path, ".bou")) {
        int *items = NULL, count = 0;
        status = fem_vertex_list_read(&items, &count, path, 1, 10);
        for (int i = 0; status == FEM_OK && i < count; i++) assert_in_range(items[i], 0, 9);
        fem_free(items);
    } else if (fem_path_is_surface(path)) {
        fem_surface surface = {0};
        status = fem_surface_read(&surface, path);
        for (int i = 0; i < 3 * surface.triangle_count; i++)
            assert_in_range(surface.triangles[i], 0, surface.vertex_count - 1);
        fem_surface_destroy(&surface);
    } else {
        fem_mesh mesh = {0};
        status = fem_mesh_read(&mesh, path);
        if (status == FEM_OK)
            assert_ok(fem_mesh_check(&mesh));
        else
            assert_null(mesh.vertices);
        fem_mesh_destroy(&mesh);
    }
    return status;
}

// every fixture is refused with the text that is expected, and leaves no memory behind
static void test_fixtures(void **state) {
    (void)state;
    FILE *table = fopen(FOLDER "/expected.txt", "r");
    if (!table) fail_msg("run from the root of the project: %s", strerror(errno));
    char line[512], path[600];
    int  count = 0, wrong = 0;
    while (fgets(line, sizeof line, table)) {
        line[strcspn(line, "\n")] = 0;
        char *bar = strstr(line, " | ");
        if (line[0] == '#' || !bar) continue;
        *bar = 0;
        snprintf(path, sizeof path, FOLDER "/%s", line);
        long       blocks = fem_memory_blocks();
        fem_status status = read_any(path);
        assert_int_equal(fem_memory_blocks(), blocks);
        bool good = (status == FEM_BAD_INPUT || status == FEM_IO) && strstr(fem_message(), bar + 3) &&
                    strncmp(fem_message(), FOLDER, strlen(FOLDER)) == 0;
        if (!good) printf("%s: status %d, expected \"%s\" in \"%s\"\n", line, status, bar + 3, fem_message());
        wrong += !good;
        count++;
    }
    fclose(table);
    printf("%d fixtures refused as expected, %d not\n", count - wrong, wrong);
    assert_true(count > 100);
    assert_int_equal(wrong, 0);
}

// every file of the folder is in the table, or is a part of one that is
static void test_table_is_complete(void **state) {
    (void)state;
    char  *text = NULL;
    size_t size = 0;
    assert_ok(fem_file_read(&text, &size, FOLDER "/expected.txt"));
    DIR *folder = opendir(FOLDER);
    assert_non_null(folder);
    int missing = 0, seen = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        const char *name = entry->d_name;
        char        wanted[300];
        if (name[0] == '.' || strcmp(name, "expected.txt") == 0 || strncmp(name, "part_", 5) == 0) continue;
        snprintf(wanted, sizeof wanted, "\n%.280s | ", name);
        bool found = strstr(text, wanted) != NULL;
        if (!found && ends(name, ".ele")) { // the pair stands under its .node
            snprintf(wanted, sizeof wanted, "\n%.*s.node | ", (int)strlen(name) - 4, name);
            found = strstr(text, wanted) != NULL;
        }
        if (!found) printf("%s is not in the table\n", name);
        missing += !found;
        seen++;
    }
    closedir(folder);
    fem_free(text);
    printf("%d files, %d without an expected message\n", seen, missing);
    assert_int_equal(missing, 0);
}

// includes nested too deep, and includes that multiply, end with a message
static void test_includes(void **state) {
    (void)state;
    char name[32], text[512];
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "deep%d.veg", i);
        snprintf(text, sizeof text, "*INCLUDE deep%d.veg\n", i + 1);
        test_write(name, text);
    }
    assert_fails(read_any(test_temporary("deep0.veg")), FEM_BAD_INPUT, "*INCLUDE is nested deeper than 16 files");
    for (int i = 0; i < 10; i++) { // ten files, each including the next ten times: 10^9 visits
        snprintf(name, sizeof name, "wide%d.veg", i);
        text[0] = 0;
        for (int k = 0; k < 10; k++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "*INCLUDE wide%d.veg\n", i + 1);
        test_write(name, i < 9 ? text : "# nothing\n");
    }
    assert_fails(read_any(test_temporary("wide0.veg")), FEM_BAD_INPUT, "more than 1000 *INCLUDEs");
    printf("%s\n", fem_message());
}

// a file that is not there, a folder, and a reader of the wrong kind
static void test_no_file(void **state) {
    (void)state;
    assert_fails(read_any("tests/bad/nowhere.veg"), FEM_IO, "tests/bad/nowhere.veg: cannot be opened: No such file");
    assert_fails(read_any("tests/bad/nowhere.vtu.gz"), FEM_IO, "cannot be opened");
    fem_surface surface = {0};
    assert_fails(fem_surface_read(&surface, "tests/bad/empty.veg"), FEM_BAD_INPUT,
                 "unknown kind of surface, expected .obj");
    const char *folder = test_temporary("folder.veg");
    assert_int_equal(mkdir(folder, 0777), 0);
    assert_fails(read_any(folder), FEM_IO, "folder.veg: is not a file");
    printf("%s\n", fem_message());
}

// ---- random damage ---------------------------------------------------------------------------------------------

static uint64_t random_state = 20240611;
static unsigned pick(unsigned below) { return (unsigned)((test_random(&random_state) + 1) / 2 * below) % below; }

// One to four damages: another byte, a deleted or repeated stretch, a cut, a number or a word that hurts.
static size_t damage(char *bytes, size_t size, size_t room) {
    static const char *const hurts[] = {
        "-1", "0",        "99999999999", "1e999", "nan", "2147483648", "*INCLUDE ",  "\"", "<",
        ">",  "*SET a\n", "=",           "1-4",   "\0",  ",",          "4294967295", "/",  "#*VERTEXSET x\n#:"};
    int times = 1 + (int)pick(4);
    for (int t = 0; t < times && size > 0; t++) {
        size_t at = pick((unsigned)size), length = 1 + pick(12);
        if (length > size - at) length = size - at;
        switch (pick(6)) {
        case 0:
            bytes[at] = (char)pick(256);
            break;
        case 1:
            bytes[at] = (char)(bytes[at] ^ (1 << pick(8)));
            break;
        case 2:
            memmove(bytes + at, bytes + at + length, size - at - length);
            size -= length;
            break;
        case 3:
            if (size + length > room) break;
            memmove(bytes + at + length, bytes + at, size - at);
            size += length;
            break;
        case 4:
            if (pick(4) == 0) size = at;
            break;
        default: {
            const char *hurt = hurts[pick(sizeof hurts / sizeof *hurts)];
            size_t      hurt_length = strlen(hurt) > 0 ? strlen(hurt) : 1;
            if (hurt_length > size - at) break;
            memcpy(bytes + at, hurt, hurt_length);
        }
        }
    }
    return size;
}

static void write_bytes(const char *path, const char *bytes, size_t size) {
    unlink(path); // some file systems sync a file that is cut to nothing and written again
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

// Damages the file `source` many times under a temporary name; `partner` must be the path of what is read.
static void batter(const char *source, const char *damaged, const char *to_read, int times) {
    char  *text = NULL;
    size_t size = 0;
    long   before = fem_memory_blocks();
    int    accepted = 0, refused = 0;
    FILE  *file = fopen(source, "rb"); // as it is on the disk, packed if it is
    assert_non_null(file);
    text = malloc(1 << 16);
    assert_non_null(text);
    size = fread(text, 1, 1 << 15, file);
    fclose(file);
    assert_true(size > 0);
    write_bytes(damaged, text, size);
    assert_ok(read_any(to_read)); // what is damaged was good
    char *bytes = malloc(1 << 16);
    assert_non_null(bytes);
    for (int i = 0; i < times; i++) {
        memcpy(bytes, text, size);
        write_bytes(damaged, bytes, damage(bytes, size, 1 << 16));
        fem_status status = read_any(to_read);
        if (status != FEM_OK && status != FEM_BAD_INPUT && status != FEM_IO)
            fail_msg("%s, damage %d: status %d, %s", source, i, status, fem_message());
        assert_int_equal(fem_memory_blocks(), before);
        status == FEM_OK ? accepted++ : refused++;
    }
    write_bytes(damaged, text, size);
    printf("%-28s %d times damaged: %d refused, %d still a mesh\n", strrchr(source, '/') + 1, times, refused, accepted);
    assert_true(refused > times / 10);
    free(bytes);
    free(text);
}

// no damage to a small file of any format crashes its reader, leaks, or is accepted as a mesh that the check refuses
static void test_damage(void **state) {
    (void)state;
    const char *damaged;
    const char *veg =
        test_write("good.veg", "# two\n*VERTICES\n5 3 0 0\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n5 1.5 1e0 1\n"
                               "*ELEMENTS\nTET\n2 4 0\n1 1 2 3 4\n2 2 3 4 5\n*MATERIAL a\nENU, 1000, 1e6, 0.3\n"
                               "*MATERIAL b\nORTHOTROPIC_N1G1R9, 1000, 1e6, 2e6, 3e6, 0.2, 1, 0,1,0, 1,0,0, 0,0,-1\n"
                               "*SET s\n1,\n2\n*SET t\n1-2\n*REGION\nallElements, a\n*REGION\ns, b\n"
                               "#*VERTEXSET root\n#: 1, 2,\n#: 3\n");
    fem_mesh mesh = {0};
    assert_ok(fem_mesh_read(&mesh, veg));
    const char *vtu = test_temporary("good.vtu"), *packed = test_temporary("good.veg.gz");
    assert_ok(fem_mesh_write(&mesh, vtu));
    assert_ok(fem_mesh_write(&mesh, packed));
    fem_mesh_destroy(&mesh);
    damaged = test_temporary("damaged.veg");
    batter(veg, damaged, damaged, 3000);
    damaged = test_temporary("damaged.veg.gz");
    batter(packed, damaged, damaged, 1500);
    damaged = test_temporary("damaged.vtu");
    batter(vtu, damaged, damaged, 3000);
    batter("tests/meshes/inline_packed.vtu", damaged, damaged, 3000);
    batter("tests/meshes/base64_64_packed.vtu", damaged, damaged, 2000);
    batter("tests/meshes/raw_64_packed.vtu", damaged, damaged, 2000);
    const char *obj =
        test_write("good.obj", "mtllib a.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0 1 1 1\nv 1 1 0\nvt 0 0\nvn 0 0 1\ng x\n"
                               "f 1/1/1 2//1 -1/1 \\\n 3\nf -1 -2 -3\n");
    damaged = test_temporary("damaged.obj");
    batter(obj, damaged, damaged, 2000);
    static const char *const others[][2] = {
        {"msh/ours", "damaged.msh"},   {"msh/text", "damaged.msh"},    {"msh/2.2-groups", "damaged.msh"},
        {"inp/ours", "damaged.inp"},   {"vtk/ours", "damaged.vtk"},    {"vtk/two", "damaged.vtk"},
        {"mesh/ours", "damaged.mesh"}, {"meshb/two", "damaged.meshb"}, {"vegb/two", "damaged.vegb"},
        {"stl/text", "damaged.stl"},   {"stl/bytes", "damaged.stl"},   {"ply/text", "damaged.ply"},
        {"ply/bytes", "damaged.ply"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char source[64];
        snprintf(source, sizeof source, "tests/fuzz/corpus/%s", others[i][0]);
        damaged = test_temporary(others[i][1]);
        batter(source, damaged, damaged, 800);
    }
    const char *bou = test_write("good.bou", "1, 2,3\n# four\n4 5\n10,\n");
    damaged = test_temporary("damaged.bou");
    batter(bou, damaged, damaged, 1000);
    const char *node = test_write("good.node", "4 3 1 1\n0 0 0 0 7 1\n1 1 0 0 7 1\n2 0 1 0 7 0\n3 0 0 1 7 -2\n");
    const char *ele = test_write("good.ele", "2 4 1\n0 0 1 2 3 5\n1 0 1 2 3 -1\n");
    damaged = test_temporary("damaged.node");
    write_bytes(test_temporary("damaged.ele"), "2 4 1\n0 0 1 2 3 5\n1 0 1 2 3 -1\n", 31);
    batter(node, damaged, damaged, 1500);
    batter(ele, test_temporary("damaged.ele"), test_temporary("damaged.node"), 1500);
}

// ---- cut short -------------------------------------------------------------------------------------------------

// Vertices, and elements or triangles.
static void count(const char *path, int counts[2]) {
    fem_mesh    mesh = {0};
    fem_surface surface = {0};
    if (fem_path_is_surface(path)) {
        assert_ok(fem_surface_read(&surface, path));
        counts[0] = surface.vertex_count, counts[1] = surface.triangle_count;
        fem_surface_destroy(&surface);
    } else {
        assert_ok(fem_mesh_read(&mesh, path));
        counts[0] = mesh.vertex_count, counts[1] = mesh.element_count;
        fem_mesh_destroy(&mesh);
    }
}

// Cuts a file after each of its bytes. What is left is refused, naming the file, or has all vertices and elements.
static void cut(const char *source, const char *path, bool counted) {
    static char bytes[1 << 14];
    int         whole[2], part[2], accepted = 0;
    long        before = fem_memory_blocks();
    FILE       *file = fopen(source, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(size > 0 && size < sizeof bytes);
    write_bytes(path, bytes, size);
    count(path, whole);
    for (size_t length = 0; length < size; length++) {
        write_bytes(path, bytes, length);
        fem_status status = read_any(path);
        assert_int_equal(fem_memory_blocks(), before);
        if (status != FEM_OK) {
            if (status != FEM_BAD_INPUT || strncmp(fem_message(), path, strlen(path)) != 0)
                fail_msg("%s, %zu bytes: status %d, %s", source, length, status, fem_message());
            continue;
        }
        accepted++;
        count(path, part);
        if (counted && (part[0] != whole[0] || part[1] != whole[1]))
            fail_msg("%s, %zu of %zu bytes: a smaller mesh is accepted", source, length, size);
    }
    printf("%-34s cut after each of %zu bytes: %d times still a mesh\n", source, size, accepted);
    assert_true(accepted < (int)size / 2);
}

// a file that was cut short is no smaller mesh, but in formats that neither count nor end, where nobody could tell
static void test_cut(void **state) {
    (void)state;
    static const char *const files[] = {"msh/ours", "msh/text",   "msh/2.2-groups", "msh/2.2-bytes", "vtk/ours",
                                        "vtk/two",  "vtk/bytes",  "mesh/ours",      "meshb/two",     "vegb/two",
                                        "stl/text", "stl/bytes",  "ply/text",       "ply/bytes",     "veg/two",
                                        "vtu/ours", "vtu/raw_32", "veg.gz/two",     "inp/ours",      "obj/square"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char source[64], name[32];
        snprintf(source, sizeof source, "tests/fuzz/corpus/%s", files[i]);
        snprintf(name, sizeof name, "cut.%.*s", (int)strcspn(files[i], "/"), files[i]);
        cut(source, test_temporary(name), !ends(name, ".inp") && !ends(name, ".obj"));
    }
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fixtures), cmocka_unit_test(test_table_is_complete),
                                       cmocka_unit_test(test_includes), cmocka_unit_test(test_no_file),
                                       cmocka_unit_test(test_cut),      cmocka_unit_test(test_damage)};
    return test_main(argv, tests, sizeof tests / sizeof *tests);
}
