// One target of `make fuzz`: the bytes that libFuzzer invents are written to a file whose name ends in FUZZ_ENDING and
// read by the reader of that ending. Whatever they are, the reader answers with a status, leaks nothing, gives no mesh
// that the check refuses, and what it accepts survives being written and read again.
#include "libscene/checkpoint.h"
#include "libscene/skeleton.h"
#include "libscene/trail.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *count, char ***words);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __llvm_profile_write_file(void);

static char path[128], other[128];

static void make_beam(const char *folder);
static void make_beam_runs(void);
static void remove_beam_runs(void);

static void insist(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "%s: %s\n", what, fem_message());
    abort();
}

static bool is(const char *ending) { return strcmp(FUZZ_ENDING, ending) == 0; }

static void write_file(const char *name, const void *data, size_t size) {
    FILE *file = fopen(name, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) abort();
}

static void clean(void) {
    unlink(path);
    unlink(other);
    if (is(".checkpoint")) remove_beam_runs();
}

// A folder in memory, if there is one: a file a run is written.
static void name_files(void) {
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, sizeof path, "%s/limber-fuzz-%ld%s", folder, (long)getpid(), FUZZ_ENDING);
    snprintf(other, sizeof other, "%s/limber-fuzz-%ld-b%s", folder, (long)getpid(), FUZZ_ENDING);
    if (is(".fill")) snprintf(path, sizeof path, "%s/limber-fuzz-%ld.obj", folder, (long)getpid());
    if (is(".node")) snprintf(other, sizeof other, "%s/limber-fuzz-%ld.ele", folder, (long)getpid());
    atexit(clean);
    if (is(".json")) make_beam(folder);
    if (is(".checkpoint")) make_beam_runs();
}

// ---- meshes ----------------------------------------------------------------------------------------------------

static void write_again(const fem_mesh *mesh) {
    static const char *const both_ways[] = {".veg", ".vtu", ".vtk", ".msh", ".mesh", ".inp"};
    fem_mesh                 back = {0};
    for (size_t i = 0; i < sizeof both_ways / sizeof *both_ways; i++)
        if (is(both_ways[i]) && fem_mesh_write_text(mesh, other) == FEM_OK) { // names may be refused
            insist(fem_mesh_read(&back, other) == FEM_OK, "what was written is not read");
            insist(back.element_count == mesh->element_count && back.vertex_count == mesh->vertex_count,
                   "what was written is another mesh");
            unlink(other);
        }
    fem_mesh_destroy(&back);
}

static void read_mesh(void) {
    fem_mesh    mesh = {0};
    fem_remarks remarks = {0};
    fem_status  status = fem_mesh_read_remarks(&mesh, path, &remarks);
    insist(status == FEM_OK || status == FEM_BAD_INPUT || status == FEM_IO, "a status that no file deserves");
    if (status == FEM_OK) {
        insist(fem_mesh_check(&mesh) == FEM_OK, "a mesh that the check refuses");
        write_again(&mesh);
    }
    fem_remarks_destroy(&remarks);
    fem_mesh_destroy(&mesh);
}

static void read_surface(void) {
    fem_surface surface = {0};
    if (fem_surface_read(&surface, path) == FEM_OK)
        for (size_t i = 0; i < 3 * (size_t)surface.triangle_count; i++)
            insist(surface.triangles[i] >= 0 && surface.triangles[i] < surface.vertex_count, "a corner out of range");
    fem_surface_destroy(&surface);
}

// Whatever the surface is, the mesher refuses it or fills it with tetrahedra within the bounds of its angles.
static void fill_surface(void) {
    fem_surface surface = {0};
    if (fem_surface_read(&surface, path) != FEM_OK) return;
    double extent = 0;
    for (size_t i = 0; i < 3 * (size_t)surface.vertex_count; i++)
        extent = fmax(extent, fabs(surface.vertices[i] - surface.vertices[i % 3]));
    for (int method = FEM_STUFFING; method <= FEM_VOXELS; method++) {
        fem_mesher_options options = {.method = (fem_mesher_method)method, .size = extent / 7.3};
        fem_mesher_report  report;
        fem_mesh           mesh = {0};
        fem_quality        quality;
        fem_status         status = fem_mesh_fill_surface(&mesh, &surface, &options, &report, NULL);
        insist(status == FEM_OK || status == FEM_BAD_INPUT, "a status that no surface deserves");
        if (status == FEM_OK) {
            insist(fem_mesh_check(&mesh) == FEM_OK, "a mesh that the check refuses");
            insist(fem_mesh_quality(&mesh, &quality) == FEM_OK, "a mesh without quality");
            insist(method == FEM_VOXELS || (quality.min_dihedral > 10.7 && quality.max_dihedral < 164.8), "an angle");
        }
        fem_mesh_destroy(&mesh);
    }
    fem_surface_destroy(&surface);
}

static void read_list(void) {
    int *items = NULL, count = 0;
    if (fem_vertex_list_read(&items, &count, path, 1, 100) == FEM_OK)
        for (int i = 0; i < count; i++) insist(items[i] >= 0 && items[i] < 100, "a vertex out of range");
    fem_free(items);
}

static void read_matrix(void) {
    int     rows = 0, columns = 0;
    double *A = NULL;
    if (fem_matrix_read(path, &rows, &columns, &A) == FEM_OK) {
        insist(rows > 0 && columns > 0, "a matrix without entries");
        for (size_t i = 0; i < (size_t)rows * (size_t)columns; i++)
            insist(A[i] - A[i] == 0, "an entry that is not finite");
    }
    fem_free(A);
}

// ---- scenes ----------------------------------------------------------------------------------------------------

// Large bodies are allowed and take long to make: where one is generated, numbers have two digits at most.
static bool is_small(const uint8_t *data, size_t size) {
    static const char *const generators[] = {"box", "tube", "leaf", "sphere", "pieces"};
    int                      digits = 0;
    bool                     generated = false;
    for (size_t i = 0; i < sizeof generators / sizeof *generators; i++)
        generated = generated || memmem(data, size, generators[i], strlen(generators[i]));
    for (size_t i = 0; i < size && generated; i++) {
        bool digit = data[i] >= '0' && data[i] <= '9';
        digits = digit ? digits + 1 : 0;
        if (digits > 2 || (i > 0 && (data[i] | 32) == 'e' && data[i - 1] >= '0' && data[i - 1] <= '9')) return false;
    }
    return true;
}

// The mesh that scenes of the corpus name, beside them.
static void make_beam(const char *folder) {
    char     name[128];
    fem_mesh mesh = {0};
    snprintf(name, sizeof name, "%s/limber-fuzz.veg", folder);
    insist(fem_generate_box(&mesh, FEM_H8, (double[]){0, 0, 0}, (double[]){1, 0.1, 0.1}, (int[]){4, 1, 1}) == FEM_OK &&
               fem_mesh_write(&mesh, name) == FEM_OK,
           "the beam");
    fem_mesh_destroy(&mesh);
}

static void read_scene(void) {
    scene *s = NULL;
    if (scene_load(&s, path, 0, NULL) == FEM_OK) scene_destroy(s);
}

// A plant that is accepted is the same when written and read again; as a scene it is written or refused.
static void read_skeleton(void) {
    scene_skeleton skeleton = {0}, back = {0};
    if (scene_skeleton_read(&skeleton, path, 1) == FEM_OK) {
        insist(scene_skeleton_write(&skeleton, other) == FEM_OK, "a skeleton that is not written");
        insist(scene_skeleton_read(&back, other, 1) == FEM_OK, "what was written is not read");
        insist(back.branch_count == skeleton.branch_count && back.leaf_count == skeleton.leaf_count, "another plant");
        scene_plant_options options = scene_plant_default_options();
        scene_plant_report  report;
        fem_status          status = scene_plant_write(&skeleton, &options, other, &report);
        insist(status == FEM_OK || status == FEM_BAD_INPUT, "a status that no skeleton deserves");
        unlink(other);
    }
    scene_skeleton_destroy(&skeleton);
    scene_skeleton_destroy(&back);
}

static void read_model(void) {
    scene_model         *model = NULL;
    const scene_drawing *drawing;
    if (scene_model_read(&model, path) == FEM_OK) {
        insist(scene_model_pose(model, 0.3, &drawing) == FEM_OK, "a pose");
        for (size_t i = 0; i < 3 * (size_t)drawing->triangle_count; i++)
            insist(drawing->triangles[i] >= 0 && drawing->triangles[i] < drawing->vertex_count,
                   "a corner out of range");
        scene_model_destroy(model);
    }
}

// ---- stored files ----------------------------------------------------------------------------------------------

// The checksum keeps random bytes out, so it is made right where the table of arrays allows it: what lies behind it is
// to be tried too. The layout is that of store.h.
static void mend_checksum(uint8_t *bytes, size_t size) {
    enum { HEADER = 128, SIZE = 48, CHECKSUM = 72, ENTRY = 48, COUNT = 44 };
    uint64_t whole = size;
    uint32_t count;
    if (size < HEADER) return;
    memcpy(bytes + SIZE, &whole, sizeof whole);
    memcpy(&count, bytes + COUNT, sizeof count);
    size_t table = ((size_t)count * ENTRY + 63) / 64 * 64;
    if (count > 64 || table > size - HEADER) return;
    memset(bytes + CHECKSUM, 0, sizeof(fem_hash));
    fem_hash sum = fem_hash_add((fem_hash){0}, bytes, HEADER);
    sum = fem_hash_add(sum, bytes + HEADER, table);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t type;
        uint64_t items, offset;
        memcpy(&type, bytes + HEADER + ENTRY * i + 24, sizeof type);
        memcpy(&items, bytes + HEADER + ENTRY * i + 32, sizeof items);
        memcpy(&offset, bytes + HEADER + ENTRY * i + 40, sizeof offset);
        if (type == 0 || offset > size || items > (size - offset) / type) return;
        sum = fem_hash_add(sum, bytes + offset, (size_t)items * type);
    }
    memcpy(bytes + CHECKSUM, &sum, sizeof sum);
}

static void read_stored(void) {
    fem_store   store = {0};
    modes_basis basis = {0};
    if (is(".basis")) {
        if (modes_basis_read(&basis, NULL, path) == FEM_OK) modes_basis_destroy(&basis);
    } else if (fem_store_read(&store, path, "basis", 1) == FEM_OK) {
        for (int i = 0; i < store.count; i++) fem_store_find(&store, store.items[i].name, FEM_STORE_INT, FEM_STORE_ANY);
        fem_store_destroy(&store);
    }
}

// ---- checkpoints -----------------------------------------------------------------------------------------------

// A small scene; FORMATS is what it writes.
#define BEAM(FORMATS)                                                                                                  \
    "{\"limber\": 1, \"materials\": {\"m\": {\"density\": 1000, \"young\": 1e6, \"poisson\": 0.4}},"                   \
    "\"parts\": {\"b\": {\"mesh\": {\"box\": {\"high\": [1, 1, 1], \"cells\": [1, 1, 1]}}, \"material\": \"m\","       \
    "\"fixed\": \"x0\"}}, \"objects\": [{\"part\": \"b\"}], \"solver\": {\"step\": 0.02},"                             \
    "\"output\": {\"frames\": 6, \"rate\": 50, \"formats\": [" FORMATS "], \"probes\": {\"tip\": \"x1\"}}}"

// The bytes are the checkpoint of a run of the first or of the second, which keeps the frames of a .glb beside it.
enum { BEAMS = 2, KEY = 56 }; // where a stored file has its key
typedef struct beam_run {
    scene   *s;
    char    *checkpoint, *frames; // paths
    char    *kept;                // what `frames` held at the checkpoint
    size_t   kept_size;
    fem_hash key;
} beam_run;
static beam_run beams[BEAMS];
static char     beam_folder[128];

static void make_beam_run(beam_run *b, const char *name, const char *text, const char *seeds) {
    char   file[300], *bytes = NULL;
    size_t size = 0;
    snprintf(file, sizeof file, "%s/%s.json", beam_folder, name);
    write_file(file, text, strlen(text));
    insist(scene_load(&b->s, file, 0, NULL) == FEM_OK, "the beam");
    b->checkpoint = scene_checkpoint_path(b->s, beam_folder);
    b->frames = scene_trail_path(b->s, beam_folder);
    if (!b->checkpoint || !b->frames) abort();
    b->s->checkpoint = 2;
    insist(scene_run(b->s, beam_folder, 3, NULL, NULL) == FEM_OK, "a run");
    b->s->checkpoint = 0;
    b->s->resume = true;
    insist(scene_checkpoint_key(b->s, &b->key) == FEM_OK, "a key");
    if (b->s->write_glb) insist(fem_file_read(&b->kept, &b->kept_size, b->frames) == FEM_OK, "the frames of the .glb");
    // a seed that this program wrote, whatever the version of the format is by now
    insist(fem_file_read(&bytes, &size, b->checkpoint) == FEM_OK, "a checkpoint");
    if (seeds && size > KEY) {
        bytes[KEY] = (char)(b - beams); // see resume_run
        snprintf(file, sizeof file, "%s/%s", seeds, name);
        write_file(file, bytes, size);
    }
    fem_free(bytes);
}

static void make_beam_runs(void) {
    snprintf(beam_folder, sizeof beam_folder, "%s.d", path);
    if (mkdir(beam_folder, 0700) != 0) abort();
    make_beam_run(&beams[0], "plain", BEAM(""), getenv("LIMBER_FUZZ_SEEDS"));
    make_beam_run(&beams[1], "glb", BEAM("\"glb\""), getenv("LIMBER_FUZZ_SEEDS"));
}

static void remove_beam_runs(void) {
    char name[512];
    DIR *folder = opendir(beam_folder);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        snprintf(name, sizeof name, "%s/%s", beam_folder, entry->d_name);
        unlink(name);
    }
    if (folder) closedir(folder);
    rmdir(beam_folder);
    for (int i = 0; i < BEAMS; i++) {
        scene_destroy(beams[i].s);
        fem_free(beams[i].checkpoint), fem_free(beams[i].frames), fem_free(beams[i].kept);
    }
}

// Whatever the state is, the run goes on from it or ends with a status, and writes no number that is not finite. The
// place of the key says which run is meant, and whether the key is to be right; no bytes are no file.
static void resume_run(uint8_t *bytes, size_t size) {
    int          choice = size > KEY ? bytes[KEY] : 0;
    beam_run    *b = &beams[choice % BEAMS];
    scene_result result = {0};
    if (size >= KEY + sizeof b->key && choice / BEAMS != 1) memcpy(bytes + KEY, &b->key, sizeof b->key);
    mend_checksum(bytes, size);
    write_file(b->checkpoint, bytes, size);
    if (size == 0) unlink(b->checkpoint);
    if (b->kept) write_file(b->frames, b->kept, b->kept_size);
    fem_status status = scene_run(b->s, beam_folder, 0, NULL, &result);
    insist(status != FEM_NO_MEMORY && status != FEM_IO, "a status that no checkpoint deserves");
    insist(status != FEM_OK || isfinite(result.max_displacement), "a displacement that is not finite");
    scene_result_destroy(&result);
}

// libFuzzer counts wall clock; LIMBER_FUZZ_SECONDS counts this process's own time, so that a loaded machine does not
// shorten the search. SIGUSR1 asks libFuzzer to end well; it leaves by _Exit, so the counters and files are seen to
// here.
static void end_in_time(void) {
    static double limit = -1;
    if (limit < 0) limit = getenv("LIMBER_FUZZ_SECONDS") ? atof(getenv("LIMBER_FUZZ_SECONDS")) : 0;
    if (limit == 0 || (double)clock() / CLOCKS_PER_SEC < limit) return;
    limit = 0;
    __llvm_profile_write_file();
    clean();
    raise(SIGUSR1);
}

// libFuzzer looks for seeds behind this.
int LLVMFuzzerInitialize(int *count, char ***words) {
    (void)count, (void)words;
    name_files();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    long blocks = fem_memory_blocks();
    if (is(".node")) { // the pair: a zero byte parts them
        const uint8_t *part = memchr(data, 0, size);
        size_t         first = part ? (size_t)(part - data) : size;
        write_file(path, data, first);
        write_file(other, part ? part + 1 : data, part ? size - first - 1 : 0);
        read_mesh();
    } else if (is(".json")) {
        if (!is_small(data, size)) return -1;
        write_file(path, data, size);
        read_scene();
    } else if (is(".store") || is(".basis") || is(".checkpoint")) {
        uint8_t *copy = malloc(size + 1);
        if (!copy) abort();
        memcpy(copy, data, size);
        if (is(".checkpoint")) {
            resume_run(copy, size);
        } else {
            mend_checksum(copy, size);
            write_file(path, copy, size);
            read_stored();
        }
        free(copy);
    } else {
        write_file(path, data, size);
        is(".fill")                 ? fill_surface()
        : is(".glb")                ? read_model()
        : is(".skeleton")           ? read_skeleton()
        : is(".bou")                ? read_list()
        : is(".npy") || is(".mtx")  ? read_matrix()
        : fem_path_is_surface(path) ? read_surface()
                                    : read_mesh();
    }
    insist(fem_memory_blocks() == blocks, "memory is left behind");
    end_in_time();
    return 0;
}
