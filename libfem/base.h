// The ground floor: status with a message, memory, scratch, clock, threads, and what the machine offers.
#ifndef LIMBER_BASE_H
#define LIMBER_BASE_H

#include <stdbool.h>
#include <stddef.h>

// ---- status ----------------------------------------------------------------------------------------------------

typedef enum fem_status {
    FEM_OK = 0,
    FEM_BAD_INPUT,      // the caller's data or a file is wrong; the message says where, what, and what would do
    FEM_IO,             // a file could not be opened, read or written
    FEM_NO_MEMORY,      // an allocation failed
    FEM_INDEFINITE,     // a matrix that must be positive definite is not
    FEM_NO_CONVERGENCE, // an iteration ran out of steps
    FEM_UNSTABLE,       // a simulation left the range in which its numbers mean anything
    FEM_STOPPED,        // the progress callback asked to stop
} fem_status;

// Sets this thread's message and returns `status`, so that `return fem_fail(...)` reads as one thing.
fem_status fem_fail(fem_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Puts text in front of this thread's message ("FILE:LINE: " is the usual prefix) and returns `status`.
fem_status fem_fail_prefix(fem_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The message of the last failure on this thread; never NULL.
const char *fem_message(void);

// Runs a call inside a function that has `fem_status status` and a label `done`.
#define FEM_TRY(call)                                                                                                  \
    do {                                                                                                               \
        status = (call);                                                                                               \
        if (status != FEM_OK) goto done;                                                                               \
    } while (0)

// ---- memory ----------------------------------------------------------------------------------------------------

// All memory is 64-byte aligned. A product that overflows, a refusal by the system, or the failing hook gives NULL.
// Zero counts give a valid pointer.
void *fem_alloc(size_t count, size_t size);
void *fem_calloc(size_t count, size_t size);                // zeroed
void *fem_realloc(void *memory, size_t count, size_t size); // the old block stays valid on failure
void *fem_copy(const void *source, size_t count, size_t size);
char *fem_copy_string(const char *text);
void  fem_free(void *memory); // accepts NULL

// The failing hook, for tests: the allocation that comes after `allowed` successful ones fails, and every later one
// too, until it is lifted by a negative number.
void fem_memory_fail_after(long allowed);
// The same by place: the first allocation from a place in the program (its caller and two calls above) that was not
// refused so before fails, and every later one too, until it is lifted by fem_memory_fail_after(-1). An operation that
// is repeated until it succeeds has had each of its places refused once. Returns how many places were refused so far.
int fem_memory_fail_at_new_place(void);

// Blocks and bytes that are in use, and the largest number of bytes since the program began.
long   fem_memory_blocks(void);
size_t fem_memory_bytes(void);
size_t fem_memory_peak(void);
void   fem_memory_reset_peak(void); // to what is in use now

// Makes room for `needed` items in a growing array: *capacity grows by halves. *items is unchanged on failure.
// Use through: status = fem_grow((void **)&items, &capacity, needed, sizeof *items)
fem_status fem_grow(void **items, size_t *capacity, size_t needed, size_t size);

// Scratch: one block that a step carves and gives back as a stack, so that nothing is allocated inside the step.
typedef struct fem_scratch {
    char  *memory;
    size_t size, used;
} fem_scratch;

fem_status fem_scratch_create(fem_scratch *scratch, size_t bytes);
void       fem_scratch_destroy(fem_scratch *scratch);
void      *fem_scratch_take(fem_scratch *scratch, size_t count, size_t size); // NULL when it is exhausted
#define FEM_SCRATCH_BYTES(count, size) ((((size_t)(count) * (size)) + 63) / 64 * 64)

// ---- time and threads ------------------------------------------------------------------------------------------

double fem_seconds(void);     // wall clock
double fem_cpu_seconds(void); // processor time of this thread

// Number of workers of fem_parallel_for. 0 means one per core that this process may run on (the default).
void fem_set_threads(int threads);
int  fem_threads(void);

// Calls task(context, index, worker) for index = 0 .. count-1, each once, in no particular order, worker <
// fem_threads(). Tasks must write only what belongs to their index (or their worker); then results do not depend on the
// thread count. A call from within a task runs serially.
typedef void (*fem_task)(void *context, int index, int worker);
void fem_parallel_for(int count, fem_task task, void *context);

// Progress: called by long computations with what is being done and how far it is (0..1).
// Returning false asks the computation to end with FEM_STOPPED.
typedef struct fem_progress {
    bool (*report)(void *context, const char *what, double fraction);
    void *context;
} fem_progress;
fem_status fem_progress_report(const fem_progress *progress, const char *what, double fraction); // NULL is allowed

// ---- the machine -----------------------------------------------------------------------------------------------

typedef enum fem_simd { FEM_SIMD_BASELINE, FEM_SIMD_AVX2, FEM_SIMD_AVX512 } fem_simd;

// The widest kernels that this processor runs; the environment variable LIMBER_SIMD (baseline, avx2, avx512) lowers it.
fem_simd    fem_simd_level(void);
const char *fem_simd_name(fem_simd level);

typedef struct fem_machine {
    int         cores, threads;
    fem_simd    simd;
    const char *compiler;         // that built the library
    const char *blas_version;     // OpenBLAS's own description
    char        blas_kernels[64]; // the processor that OpenBLAS believes to be on
    const char *blas_advice;      // the better OPENBLAS_CORETYPE, or NULL when the choice is right
    char        blas_file[256];   // shared object that gives us dgemm
    char arpack_blas[256]; // shared object that gives ARPACK its dgemv (the first one in the program's search order)
    char cholmod_version[32], metis_version[32], lapack_version[32];
    char arpack_file[256]; // shared object of ARPACK; its name carries the version
} fem_machine;

void fem_machine_describe(fem_machine *machine);

// OpenBLAS chooses its kernels when it is loaded and does not know newer processors: it then falls back to SSE kernels
// that are five times slower. When it chose badly, this sets OPENBLAS_CORETYPE and executes the program again, once.
// Call it first in main. Returns if nothing has to be done or nothing can be done. It also makes BLAS single-threaded,
// since the threads here are ours. A program that links the library calls it, or sets OPENBLAS_CORETYPE itself.
void fem_machine_correct_blas(char **argv);

#endif
