// Aligned memory with a hook that makes allocations fail, and scratch memory.
// Each block has 64 bytes in front that hold its size, so that the bytes in use can be counted.
#include "libfem/base.h"

#include <execinfo.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef uint64_t place_id;

enum { HEADER = 64, HUGE_PAGE = 2 << 20 };

static atomic_long   blocks;
static atomic_size_t bytes, peak;
static atomic_long   allowed = -1; // allocations until the hook fails; negative: it is off

// Places that the hook has refused, by a hash of the return addresses; 0 is free.
enum { PLACES = 1 << 14, FRAMES = 4 };
static atomic_bool       new_places; // the next allocation from a place that is not listed fails
static atomic_int        place_count;
static _Atomic(place_id) places[PLACES];

// Who called fem_alloc, and the two calls above that: helpers that allocate for others count once for each of those.
// Inlined, so that the first frame is fem_alloc's own.
#define INLINED static inline __attribute__((always_inline))
INLINED place_id place_of_caller(void) {
    void    *frames[FRAMES];
    int      count = backtrace(frames, FRAMES);
    place_id place = 1;
    for (int i = 1; i < count; i++) place = (place ^ (place_id)(uintptr_t)frames[i]) * 0x9e3779b97f4a7c15u;
    return place ? place : 1;
}

INLINED bool is_new_place(void) {
    place_id place = place_of_caller();
    for (size_t i = place % PLACES, tried = 0; tried < PLACES; i = (i + 1) % PLACES, tried++) {
        place_id found = 0;
        if (atomic_compare_exchange_strong(&places[i], &found, place)) {
            atomic_fetch_add(&place_count, 1);
            return true;
        }
        if (found == place) return false;
    }
    return false;
}

INLINED bool hook_fails(void) {
    long left = atomic_load(&allowed);
    if (left < 0) {
        if (!atomic_load(&new_places) || !is_new_place()) return false;
        atomic_store(&new_places, false);
        atomic_store(&allowed, 0);
        return true;
    }
    while (left > 0)
        if (atomic_compare_exchange_weak(&allowed, &left, left - 1)) return false;
    return left == 0;
}

void fem_memory_fail_after(long count) {
    atomic_store(&new_places, false);
    atomic_store(&allowed, count);
}

int fem_memory_fail_at_new_place(void) {
    fem_memory_fail_after(-1);
    atomic_store(&new_places, true);
    return atomic_load(&place_count);
}

long   fem_memory_blocks(void) { return atomic_load(&blocks); }
size_t fem_memory_bytes(void) { return atomic_load(&bytes); }
size_t fem_memory_peak(void) { return atomic_load(&peak); }
void   fem_memory_reset_peak(void) { atomic_store(&peak, atomic_load(&bytes)); }

void *fem_alloc(size_t count, size_t size) {
    size_t wanted;
    if (__builtin_mul_overflow(count, size, &wanted) || wanted > SIZE_MAX / 2) return NULL;
    if (hook_fails()) return NULL;
    // large blocks ask for huge pages: sparse matrices are visited all over, and small pages miss the address cache
    size_t alignment = wanted < 2 * HUGE_PAGE ? HEADER : HUGE_PAGE;
    size_t whole = (HEADER + wanted + alignment - 1) / alignment * alignment;
    char  *base = aligned_alloc(alignment, whole);
    if (!base) return NULL;
    if (alignment == HUGE_PAGE) madvise(base, whole, MADV_HUGEPAGE); // a wish; nothing depends on it
    memcpy(base, &wanted, sizeof wanted);
    atomic_fetch_add(&blocks, 1);
    size_t now = atomic_fetch_add(&bytes, wanted) + wanted, old = atomic_load(&peak);
    while (now > old && !atomic_compare_exchange_weak(&peak, &old, now)) {}
    return base + HEADER;
}

static size_t block_size(const void *memory) {
    size_t size;
    memcpy(&size, (const char *)memory - HEADER, sizeof size);
    return size;
}

void *fem_calloc(size_t count, size_t size) {
    void *memory = fem_alloc(count, size);
    if (memory) memset(memory, 0, count * size);
    return memory;
}

void *fem_realloc(void *memory, size_t count, size_t size) {
    void *larger = fem_alloc(count, size);
    if (!larger || !memory) return larger;
    size_t old = block_size(memory), now = count * size;
    memcpy(larger, memory, old < now ? old : now);
    fem_free(memory);
    return larger;
}

void *fem_copy(const void *source, size_t count, size_t size) {
    void *memory = fem_alloc(count, size);
    if (memory && count * size > 0) memcpy(memory, source, count * size);
    return memory;
}

char *fem_copy_string(const char *text) { return fem_copy(text, strlen(text) + 1, 1); }

void fem_free(void *memory) {
    if (!memory) return;
    atomic_fetch_sub(&blocks, 1);
    atomic_fetch_sub(&bytes, block_size(memory));
    free((char *)memory - HEADER);
}

fem_status fem_grow(void **items, size_t *capacity, size_t needed, size_t size) {
    if (needed <= *capacity) return FEM_OK;
    size_t room = *capacity + *capacity / 2;
    if (room < needed) room = needed;
    if (room < 16) room = 16;
    void *larger = fem_realloc(*items, room, size);
    if (!larger) return fem_fail(FEM_NO_MEMORY, "no memory for %zu items of %zu bytes", room, size);
    *items = larger;
    *capacity = room;
    return FEM_OK;
}

fem_status fem_scratch_create(fem_scratch *scratch, size_t size) {
    char *memory = fem_alloc(size, 1);
    if (!memory) return fem_fail(FEM_NO_MEMORY, "no memory for %zu bytes of scratch", size);
    *scratch = (fem_scratch){.memory = memory, .size = size};
    return FEM_OK;
}

void fem_scratch_destroy(fem_scratch *scratch) {
    fem_free(scratch->memory);
    *scratch = (fem_scratch){0};
}

void *fem_scratch_take(fem_scratch *scratch, size_t count, size_t size) {
    size_t wanted;
    if (__builtin_mul_overflow(count, size, &wanted) || wanted > scratch->size) return NULL;
    wanted = FEM_SCRATCH_BYTES(wanted, 1);
    if (wanted > scratch->size - scratch->used) return NULL;
    void *memory = scratch->memory + scratch->used;
    scratch->used += wanted;
    return memory;
}
