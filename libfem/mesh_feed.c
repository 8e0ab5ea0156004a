// Numbers from text or from bytes of either order, and the numbers that a file gives to its vertices and elements.
#include "libfem/mesh_draft.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- feed ------------------------------------------------------------------------------------------------------

fem_feed fem_feed_open(const char *path, const char *text, size_t size, char comment) {
    return (fem_feed){.text = fem_text_open(path, text, size, comment, false), .start = text};
}

fem_status fem_feed_fail(fem_feed *feed, const char *format, ...) {
    char    what[900];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (!feed->binary) return fem_text_fail(&feed->text, "%s", what);
    return fem_fail(FEM_BAD_INPUT, "%s: byte %zu: %s", feed->text.path, (size_t)(feed->text.at - feed->start), what);
}

size_t fem_feed_left(const fem_feed *feed) { return (size_t)(feed->text.end - feed->text.at); }

fem_status fem_feed_bytes(fem_feed *feed, const char *what, size_t size, const char **bytes) {
    if (size > fem_feed_left(feed))
        return fem_feed_fail(feed, "expected %s of %zu bytes, but the file ends after %zu", what, size,
                             fem_feed_left(feed));
    *bytes = feed->text.at;
    feed->text.at += size;
    return FEM_OK;
}

fem_status fem_feed_begin(fem_feed *feed, const char *what) {
    if (feed->binary || fem_text_next(&feed->text)) return FEM_OK;
    return fem_text_expected(&feed->text, what);
}

fem_status fem_feed_end(fem_feed *feed) { return feed->binary ? FEM_OK : fem_text_end_line(&feed->text); }

fem_status fem_feed_plausible(fem_feed *feed, const char *what, long long count, size_t smallest) {
    if (count >= 0 && (unsigned long long)count <= fem_feed_left(feed) / smallest + 1) return FEM_OK;
    return fem_feed_fail(feed, "%s is %lld, more than the file has room for", what, count);
}

static uint64_t scalar_bits(const char *bytes, int size, bool swapped) {
    uint64_t bits = 0;
    bool     little = (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) != swapped;
    for (int i = 0; i < size; i++) bits = bits << 8 | (unsigned char)bytes[little ? size - 1 - i : i];
    return bits;
}

double fem_scalar_double(const char *bytes, fem_scalar type, bool swapped) {
    uint64_t bits = scalar_bits(bytes, type.size, swapped);
    if (type.kind != 'f') return (double)fem_scalar_int(bytes, type, swapped);
    if (type.size == 8) {
        double x;
        memcpy(&x, &bits, sizeof x);
        return x;
    }
    uint32_t half = (uint32_t)bits;
    float    x;
    memcpy(&x, &half, sizeof x);
    return (double)x;
}

long long fem_scalar_int(const char *bytes, fem_scalar type, bool swapped) {
    uint64_t bits = scalar_bits(bytes, type.size, swapped);
    if (type.kind == 'u') return bits > (uint64_t)LLONG_MAX ? LLONG_MAX : (long long)bits;
    int shift = 64 - 8 * type.size; // the sign stands at the top of the narrower number
    return (long long)(int64_t)(bits << shift) >> shift;
}

fem_status fem_feed_int(fem_feed *feed, fem_scalar type, const char *what, long long low, long long high,
                        long long *value) {
    if (!feed->binary) return fem_text_int(&feed->text, what, low, high, value);
    const char *bytes = NULL;
    fem_status  status = fem_feed_bytes(feed, what, (size_t)type.size, &bytes);
    if (status != FEM_OK) return status;
    long long x = fem_scalar_int(bytes, type, feed->swapped);
    if (x < low || x > high) {
        feed->text.at -= type.size;
        return low == high ? fem_feed_fail(feed, "%s is %lld, expected %lld", what, x, low)
                           : fem_feed_fail(feed, "%s is %lld, expected %lld to %lld", what, x, low, high);
    }
    *value = x;
    return FEM_OK;
}

fem_status fem_feed_double(fem_feed *feed, fem_scalar type, const char *what, double *value) {
    if (!feed->binary) return fem_text_double(&feed->text, what, value);
    const char *bytes = NULL;
    fem_status  status = fem_feed_bytes(feed, what, (size_t)type.size, &bytes);
    if (status != FEM_OK) return status;
    *value = fem_scalar_double(bytes, type, feed->swapped);
    if (isfinite(*value)) return FEM_OK;
    feed->text.at -= type.size;
    return fem_feed_fail(feed, "%s is %g, expected a finite number", what, *value);
}

// ---- numbers of vertices and elements --------------------------------------------------------------------------

void fem_numbers_destroy(fem_numbers *numbers) {
    fem_free(numbers->list);
    fem_free(numbers->table);
    fem_free(numbers->sorted);
    *numbers = (fem_numbers){0};
}

long long fem_numbers_at(const fem_numbers *numbers, int index) {
    return numbers->list ? numbers->list[index] : numbers->first + index;
}

fem_status fem_numbers_spell(fem_numbers *numbers) {
    if (numbers->list) return FEM_OK;
    fem_status status =
        fem_grow((void **)&numbers->list, &numbers->capacity, (size_t)numbers->count, sizeof *numbers->list);
    for (int i = 0; status == FEM_OK && i < numbers->count; i++) numbers->list[i] = numbers->first + i;
    return status;
}

fem_status fem_numbers_add(fem_numbers *numbers, long long number) {
    fem_status status = FEM_OK;
    if (numbers->count == 0) numbers->first = number;
    if (numbers->list || number != numbers->first + numbers->count) {
        FEM_TRY(fem_numbers_spell(numbers));
        FEM_TRY(
            fem_grow((void **)&numbers->list, &numbers->capacity, (size_t)numbers->count + 1, sizeof *numbers->list));
        numbers->list[numbers->count] = number;
    }
    numbers->count++;
done:
    return status;
}

static int compare_pairs(const void *a, const void *b) {
    const fem_number_pair *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static fem_status close_sorted(fem_numbers *n, long long *twice) {
    n->sorted = fem_alloc((size_t)n->count, sizeof *n->sorted);
    if (!n->sorted) return fem_fail(FEM_NO_MEMORY, "no memory for %d numbers", n->count);
    for (int i = 0; i < n->count; i++) n->sorted[i] = (fem_number_pair){n->list[i], i};
    qsort(n->sorted, (size_t)n->count, sizeof *n->sorted, compare_pairs);
    for (int i = 1; i < n->count && *twice < 0; i++)
        if (n->sorted[i].number == n->sorted[i - 1].number) *twice = n->sorted[i].number;
    return FEM_OK;
}

fem_status fem_numbers_close(fem_numbers *n, long long *twice) {
    *twice = -1;
    if (!n->list) return FEM_OK;
    long long low = n->list[0], high = n->list[0];
    for (int i = 1; i < n->count; i++) {
        if (n->list[i] < low) low = n->list[i];
        if (n->list[i] > high) high = n->list[i];
    }
    if (high - low > 4 * (long long)n->count + 64) return close_sorted(n, twice);
    n->low = low;
    n->span = (size_t)(high - low) + 1;
    n->table = fem_alloc(n->span, sizeof *n->table);
    if (!n->table) return fem_fail(FEM_NO_MEMORY, "no memory for %zu numbers", n->span);
    for (size_t i = 0; i < n->span; i++) n->table[i] = -1;
    for (int i = 0; i < n->count; i++) {
        int *slot = &n->table[n->list[i] - low];
        if (*slot >= 0 && *twice < 0) *twice = n->list[i];
        *slot = i;
    }
    return FEM_OK;
}

int fem_numbers_find(const fem_numbers *n, long long number) {
    if (!n->list) return number >= n->first && number - n->first < n->count ? (int)(number - n->first) : -1;
    if (n->table)
        return number >= n->low && (unsigned long long)(number - n->low) < n->span ? n->table[number - n->low] : -1;
    fem_number_pair        key = {number, 0};
    const fem_number_pair *found =
        n->sorted ? bsearch(&key, n->sorted, (size_t)n->count, sizeof key, compare_pairs) : NULL;
    return found ? found->index : -1;
}

// ---- hashing ---------------------------------------------------------------------------------------------------

void fem_table_destroy(fem_table *table) {
    fem_free(table->slots);
    *table = (fem_table){0};
}

// Twice the room; the hashes are kept in the slots, so the entries need not be seen.
static fem_status enlarge(fem_table *table) {
    fem_table larger = {.room = table->room ? 2 * table->room : 64, .used = table->used};
    larger.slots = fem_alloc(larger.room, sizeof *larger.slots);
    if (!larger.slots) return fem_fail(FEM_NO_MEMORY, "no memory for %zu entries", larger.room);
    for (size_t i = 0; i < larger.room; i++) larger.slots[i].entry = -1;
    for (size_t i = 0; i < table->room; i++) {
        if (table->slots[i].entry < 0) continue;
        size_t at = table->slots[i].hash & (larger.room - 1);
        while (larger.slots[at].entry >= 0) at = (at + 1) & (larger.room - 1);
        larger.slots[at].entry = table->slots[i].entry;
        larger.slots[at].hash = table->slots[i].hash;
    }
    fem_free(table->slots);
    *table = larger;
    return FEM_OK;
}

fem_status fem_table_enter(fem_table *table, const void *key, size_t key_size, fem_table_equal equal,
                           const void *context, int fresh, int *entry) {
    if (2 * (table->used + 1) > table->room) {
        fem_status status = enlarge(table);
        if (status != FEM_OK) return status;
    }
    unsigned hash = (unsigned)fem_hash_add((fem_hash){0}, key, key_size).low;
    size_t   at = hash & (table->room - 1);
    for (; table->slots[at].entry >= 0; at = (at + 1) & (table->room - 1))
        if (table->slots[at].hash == hash && equal(context, table->slots[at].entry, key)) {
            *entry = table->slots[at].entry;
            return FEM_OK;
        }
    table->slots[at].entry = fresh;
    table->slots[at].hash = hash;
    table->used++;
    *entry = fresh;
    return FEM_OK;
}
