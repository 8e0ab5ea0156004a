// Reading and writing mesh files of a million tetrahedra, every format. Goals: .msh as bytes below 2 s, text below 4 s,
// at most 3 times the memory of the mesh. The baseline is taking the bytes of the file into memory.
// Each file is read in a process of its own, so that its peak of memory is its own.
#include "bench/bench.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t mesh_bytes(const fem_mesh *m) {
    size_t size =
        3 * (size_t)m->vertex_count * sizeof *m->vertices +
        (size_t)m->element_count * ((size_t)fem_element_vertices(m->type) * sizeof *m->elements + sizeof *m->region);
    for (int i = 0; i < m->vertex_set_count; i++) size += (size_t)m->vertex_sets[i].count * sizeof(int);
    for (int i = 0; i < m->element_set_count; i++) size += (size_t)m->element_sets[i].count * sizeof(int);
    return size;
}

static void read_mesh(void *context) {
    fem_mesh mesh = {0};
    bench_try(fem_mesh_read(&mesh, context));
    fem_mesh_destroy(&mesh);
}

static void read_bytes(void *context) {
    char  *text = NULL;
    size_t size = 0;
    bench_try(fem_file_read(&text, &size, context));
    fem_free(text);
}

// In the process that reads: its line of the table.
static int report(char *path, const char *expected_hash) {
    struct stat about = {0};
    fem_mesh    mesh = {0};
    char        hash[FEM_HASH_TEXT];
    bench_try(fem_mesh_read(&mesh, path));
    size_t size = mesh_bytes(&mesh), peak = fem_memory_peak();
    bool   same = strcmp(fem_hash_text(hash, fem_mesh_hash(&mesh)), expected_hash) == 0;
    fem_mesh_destroy(&mesh);
    stat(path, &about);
    bench_time bytes = bench_measure(3, read_bytes, path), whole = bench_measure(3, read_mesh, path);
    printf("%8.1f | %6.3f / %6.3f | %6.3f %6.1f | %6.2f | %s\n", (double)about.st_size * 1e-6, whole.minimum,
           whole.median, bytes.minimum, whole.minimum / bytes.minimum, (double)peak / (double)size,
           same ? "none" : "the last digits");
    return 0;
}

static void measure(const fem_mesh *mesh, const char *folder, const char *name, bool as_text) {
    char   path[512], hash[FEM_HASH_TEXT];
    double begin = fem_cpu_seconds();
    snprintf(path, sizeof path, "%s/%s", folder, name);
    bench_try(as_text ? fem_mesh_write_text(mesh, path) : fem_mesh_write(mesh, path));
    printf("   %-14s %6.2f ", name, fem_cpu_seconds() - begin);
    fflush(stdout);
    fem_hash_text(hash, fem_mesh_hash(mesh));
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "bench_files", "--read", path, hash, (char *)NULL);
        _exit(1);
    }
    int code = 1;
    if (child > 0) waitpid(child, &code, 0);
    unlink(path);
    if (code != 0) exit(1);
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "--read") == 0) return report(argv[2], argv[3]);
    bench_header(argv, "mesh files of a million tetrahedra, one core; goals: .msh 2 s, text 4 s, memory 3");
    static const struct {
        const char *name;
        bool        as_text;
    } files[] = {{"bytes.msh", false}, {"text.msh", true},   {"text.veg", false},
                 {"text.mesh", false}, {"text.inp", false},  {"bytes.vtk", false},
                 {"text.vtk", true},   {"bytes.vtu", false}, {"packed.msh.gz", false}};
    char     folder[] = "/tmp/limber-bench-XXXXXX";
    fem_mesh mesh = {0};
    if (!mkdtemp(folder)) return 1;
    bench_branching_body(&mesh, 1e6);
    fem_material material = fem_material_default(); // .veg and .inp hold it
    bench_try(fem_mesh_set_material(&mesh, &material));
    printf("   %d vertices, %d tetrahedra, %.1f MB in memory\n", mesh.vertex_count, mesh.element_count,
           (double)mesh_bytes(&mesh) * 1e-6);
    printf("   %-14s %6s %8s | %-15s | %6s %6s | %6s | %s\n", "file", "write", "MB", "read min/median", "bytes",
           "ratio", "memory", "error");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) measure(&mesh, folder, files[i].name, files[i].as_text);
    fem_mesh_destroy(&mesh);
    rmdir(folder);
    return 0;
}
