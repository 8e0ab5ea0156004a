// What the machine offers: cores, vector width, and which kernels OpenBLAS runs on it.
#include "libfem/internal.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// OpenBLAS's own functions; its cblas.h is included in dense.c only.
char *openblas_get_corename(void);
char *openblas_get_config(void);
void  openblas_set_num_threads(int threads);

static fem_simd widest_simd(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("fma"))
        return FEM_SIMD_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return FEM_SIMD_AVX2;
#endif
    return FEM_SIMD_BASELINE;
}

static const char *const simd_names[] = {"baseline", "avx2", "avx512"};

const char *fem_simd_name(fem_simd level) { return simd_names[level]; }

fem_simd fem_simd_level(void) {
    fem_simd    level = widest_simd();
    const char *wish = getenv("LIMBER_SIMD");
    for (fem_simd i = FEM_SIMD_BASELINE; wish && i < level; i++)
        if (strcmp(wish, simd_names[i]) == 0) level = i;
    return level;
}

// Kernels of processors without AVX2. When OpenBLAS runs one of these although AVX2 is there, it did not know the
// processor; anything else is its own good choice.
static const char *blas_advice(void) {
    static const char *const old[] = {
        "Prescott", "Generic",    "Katmai",  "Coppermine",  "Northwood", "Banias",       "Core2",
        "Penryn",   "Dunnington", "Nehalem", "Athlon",      "Opteron",   "Opteron_SSE3", "Barcelona",
        "Nano",     "Atom",       "Bobcat",  "Sandybridge", "Bulldozer", "Piledriver",   "Steamroller"};
    fem_simd level = widest_simd();
    if (level == FEM_SIMD_BASELINE) return NULL;
    const char *chosen = openblas_get_corename();
    for (size_t i = 0; chosen && i < sizeof old / sizeof *old; i++)
        if (strcasecmp(chosen, old[i]) == 0) return level == FEM_SIMD_AVX512 ? "SkylakeX" : "Haswell";
    return NULL;
}

void fem_machine_correct_blas(char **argv) {
    openblas_set_num_threads(1);
    const char *advice = blas_advice();
    if (!advice || getenv("OPENBLAS_CORETYPE")) return; // the variable also marks the second start
    if (setenv("OPENBLAS_CORETYPE", advice, 1) != 0) return;
    execv("/proc/self/exe", argv);
    unsetenv("OPENBLAS_CORETYPE"); // it could not be executed again: go on with the slow kernels
}

// File of the shared object that gives the program this symbol.
static void file_of_symbol(char path[256], const char *symbol) {
    Dl_info info;
    void   *address = dlsym(RTLD_DEFAULT, symbol);
    char    resolved[PATH_MAX];
    if (address && dladdr(address, &info) && info.dli_fname && realpath(info.dli_fname, resolved))
        snprintf(path, 256, "%.255s", resolved);
    else
        snprintf(path, 256, "not found");
}

void fem_machine_describe(fem_machine *machine) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    *machine = (fem_machine){.cores = cores < 1 ? 1 : (int)cores,
                             .threads = fem_threads(),
                             .simd = fem_simd_level(),
                             .blas_version = openblas_get_config(),
                             .blas_advice = blas_advice()};
#if defined(__clang__)
    machine->compiler = "clang " __clang_version__;
#else
    machine->compiler = "gcc " __VERSION__;
#endif
    const char *chosen = openblas_get_corename();
    snprintf(machine->blas_kernels, sizeof machine->blas_kernels, "%s", chosen ? chosen : "unknown");
    file_of_symbol(machine->blas_file, "dgemm_");
    file_of_symbol(machine->arpack_blas, "dgemv_");
    file_of_symbol(machine->arpack_file, "dsaupd_");
    fem_cholmod_version(machine->cholmod_version);
    fem_metis_version(machine->metis_version);
    fem_lapack_version(machine->lapack_version);
}
