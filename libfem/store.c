// Checked binary files; store.h says what they look like. The one place that calls xxHash (XXH3, Y. Collet).
#include "libfem/fem.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

enum { LAYOUT = 1, NAME_ROOM = 24, ALIGNMENT = 64, ITEMS_MOST = 4096 };
static const char magic[8] = {'l', 'i', 'm', 'b', 'e', 'r', '\r', '\n'}; // the line end shows files mangled as text

typedef struct header {
    char     magic[8];
    uint32_t byte_order; // 0x01020304 in the writer's order
    uint32_t layout;
    char     kind[NAME_ROOM];
    uint32_t version, count;
    uint64_t size; // of the whole file
    fem_hash key, checksum;
    char     spare[40];
} header;
_Static_assert(sizeof(header) == 128, "the header of a store");

typedef struct entry {
    char     name[NAME_ROOM];
    uint32_t type, spare;
    uint64_t count, offset; // offset from the beginning of the file
} entry;
_Static_assert(sizeof(entry) == 48, "an entry of a store");

// ---- hashes ----------------------------------------------------------------------------------------------------

fem_hash fem_hash_add(fem_hash hash, const void *bytes, size_t size) {
    XXH128_hash_t part = XXH3_128bits(bytes, size);
    uint64_t      chain[5] = {hash.low, hash.high, part.low64, part.high64, size};
    XXH128_hash_t whole = XXH3_128bits(chain, sizeof chain);
    return (fem_hash){.low = whole.low64, .high = whole.high64};
}

bool fem_hash_equal(fem_hash a, fem_hash b) { return a.low == b.low && a.high == b.high; }

const char *fem_hash_text(char text[FEM_HASH_TEXT], fem_hash hash) {
    snprintf(text, FEM_HASH_TEXT, "%016llx%016llx", (unsigned long long)hash.high, (unsigned long long)hash.low);
    return text;
}

// The checksum covers the header too, as it is with a checksum of zero.
static fem_hash checksum_of(const header *top, int parts, const void *const *bytes, const size_t *sizes) {
    header bare = *top;
    bare.checksum = (fem_hash){0};
    fem_hash sum = fem_hash_add((fem_hash){0}, &bare, sizeof bare);
    for (int i = 0; i < parts; i++) sum = fem_hash_add(sum, bytes[i], sizes[i]);
    return sum;
}

// ---- writing ---------------------------------------------------------------------------------------------------

static size_t padded(size_t size) { return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static fem_status check_items(const char *path, const char *kind, int count, const fem_store_item *items) {
    if (strlen(kind) >= NAME_ROOM || count < 0 || count > ITEMS_MOST)
        return fem_fail(FEM_BAD_INPUT, "%s: a store of kind \"%s\" with %d arrays cannot be written", path, kind,
                        count);
    for (int i = 0; i < count; i++)
        if (strlen(items[i].name) < 1 || strlen(items[i].name) >= NAME_ROOM || items[i].count > SIZE_MAX / 16)
            return fem_fail(FEM_BAD_INPUT, "%s: the array \"%s\" cannot be stored", path, items[i].name);
    return FEM_OK;
}

fem_status fem_store_write(const char *path, const char *kind, int version, fem_hash key, int count,
                           const fem_store_item *items) {
    static const char zeros[ALIGNMENT];
    fem_status        status = FEM_OK;
    fem_file         *file = NULL;
    header            top = {
                   .byte_order = 0x01020304, .layout = LAYOUT, .version = (uint32_t)version, .count = (uint32_t)count, .key = key};
    FEM_TRY(check_items(path, kind, count, items));
    size_t       table_size = padded((size_t)count * sizeof(entry)), offset = sizeof top + table_size;
    entry       *table = fem_calloc(table_size, 1);
    const void **bytes = fem_calloc((size_t)count + 1, sizeof *bytes);
    size_t      *sizes = fem_calloc((size_t)count + 1, sizeof *sizes);
    if (!table || !bytes || !sizes) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory to write it", path);
        goto free_table;
    }
    memcpy(top.magic, magic, sizeof magic);
    memcpy(top.kind, kind, strlen(kind));
    bytes[0] = table, sizes[0] = table_size;
    for (int i = 0; i < count; i++) {
        memcpy(table[i].name, items[i].name, strlen(items[i].name));
        table[i].type = (uint32_t)items[i].type;
        table[i].count = items[i].count;
        table[i].offset = offset;
        bytes[i + 1] = items[i].data, sizes[i + 1] = items[i].count * (size_t)items[i].type;
        offset += padded(sizes[i + 1]);
    }
    top.size = offset;
    top.checksum = checksum_of(&top, count + 1, bytes, sizes);
    status = fem_file_create(&file, path);
    if (status != FEM_OK) goto free_table;
    fem_file_put(file, &top, sizeof top);
    for (int i = 0; i <= count; i++) {
        fem_file_put(file, bytes[i], sizes[i]);
        fem_file_put(file, zeros, padded(sizes[i]) - sizes[i]);
    }
    status = fem_file_commit(file);
free_table:
    fem_free(table);
    fem_free(bytes);
    fem_free(sizes);
done:
    return status;
}

// ---- reading ---------------------------------------------------------------------------------------------------

static fem_status check_header(const char *path, const header *top, size_t size, const char *kind, int version) {
    if (size < sizeof *top || memcmp(top->magic, magic, sizeof magic) != 0)
        return fem_fail(FEM_BAD_INPUT, "%s: is not a file that limber stores", path);
    if (top->byte_order != 0x01020304 || top->layout != LAYOUT)
        return fem_fail(FEM_BAD_INPUT, "%s: was written by another version of limber, or on another kind of machine",
                        path);
    if (top->kind[NAME_ROOM - 1] != 0 || strcmp(top->kind, kind) != 0)
        return fem_fail(FEM_BAD_INPUT, "%s: holds a %.23s, expected a %s", path, top->kind, kind);
    if (top->version != (uint32_t)version)
        return fem_fail(FEM_BAD_INPUT, "%s: is a %s of version %u, expected version %d", path, kind, top->version,
                        version);
    if (top->size != size)
        return fem_fail(FEM_BAD_INPUT, "%s: has %zu bytes, its header says %llu: it was cut short or damaged", path,
                        size, (unsigned long long)top->size);
    return FEM_OK;
}

// Fills the items from the table: the arrays lie one behind the other to the end of the file, zeros between them.
static fem_status read_table(fem_store *store, const char *path, const header *top) {
    size_t       size = (size_t)top->size, expected = sizeof *top + padded((size_t)top->count * sizeof(entry));
    const entry *table = (const entry *)(const void *)(store->memory + sizeof *top);
    for (uint32_t i = 0; i < top->count; i++) {
        const entry *e = &table[i];
        bool         type_known = e->type == FEM_STORE_BYTE || e->type == FEM_STORE_INT || e->type == FEM_STORE_DOUBLE;
        if (!type_known || e->name[0] == 0 || e->name[NAME_ROOM - 1] != 0 || e->offset != expected || expected > size ||
            e->count > (size - expected) / e->type)
            return fem_fail(FEM_BAD_INPUT, "%s: its array %u does not lie inside the file", path, i + 1);
        size_t end = expected + (size_t)e->count * e->type;
        for (expected = padded(end); end < expected && end < size; end++)
            if (store->memory[end]) return fem_fail(FEM_BAD_INPUT, "%s: is damaged behind its array %u", path, i + 1);
        store->items[i] = (fem_store_item){.name = e->name,
                                           .type = (fem_store_type)e->type,
                                           .count = (size_t)e->count,
                                           .data = store->memory + e->offset};
    }
    return expected == size ? FEM_OK
                            : fem_fail(FEM_BAD_INPUT, "%s: has more or less than its %u arrays", path, top->count);
}

static fem_status check_sum(const fem_store *store, const char *path, const header *top) {
    fem_status   status = FEM_OK;
    const void **bytes = fem_calloc((size_t)store->count + 1, sizeof *bytes);
    size_t      *sizes = fem_calloc((size_t)store->count + 1, sizeof *sizes);
    if (!bytes || !sizes) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory to read it", path);
        goto done;
    }
    bytes[0] = store->memory + sizeof *top, sizes[0] = padded((size_t)store->count * sizeof(entry));
    for (int i = 0; i < store->count; i++) {
        bytes[i + 1] = store->items[i].data;
        sizes[i + 1] = store->items[i].count * (size_t)store->items[i].type;
    }
    if (!fem_hash_equal(checksum_of(top, store->count + 1, bytes, sizes), top->checksum))
        status = fem_fail(FEM_BAD_INPUT, "%s: its checksum is wrong: it is damaged", path);
done:
    fem_free(bytes);
    fem_free(sizes);
    return status;
}

fem_status fem_store_read(fem_store *result, const char *path, const char *kind, int version) {
    fem_status status = FEM_OK;
    fem_store  store = {0};
    size_t     size = 0;
    header     top = {0};
    FEM_TRY(fem_file_read(&store.memory, &size, path));
    if (size >= sizeof top) memcpy(&top, store.memory, sizeof top);
    FEM_TRY(check_header(path, &top, size, kind, version));
    if (top.count > ITEMS_MOST || padded(top.count * sizeof(entry)) > size - sizeof top) {
        status = fem_fail(FEM_BAD_INPUT, "%s: is too short for the %u arrays that it names", path, top.count);
        goto done;
    }
    store.key = top.key;
    store.count = (int)top.count;
    store.items = fem_calloc((size_t)store.count, sizeof *store.items);
    if (!store.items) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory to read it", path);
        goto done;
    }
    FEM_TRY(read_table(&store, path, &top));
    FEM_TRY(check_sum(&store, path, &top));
    fem_store_destroy(result);
    *result = store;
    store = (fem_store){0};
done:
    fem_store_destroy(&store);
    return status;
}

void fem_store_destroy(fem_store *store) {
    fem_free(store->items);
    fem_free(store->memory);
    *store = (fem_store){0};
}

const void *fem_store_find(const fem_store *store, const char *name, fem_store_type type, size_t count) {
    for (int i = 0; i < store->count; i++) {
        const fem_store_item *item = &store->items[i];
        if (strcmp(item->name, name) == 0)
            return item->type == type && (count == FEM_STORE_ANY || item->count == count) ? item->data : NULL;
    }
    return NULL;
}

size_t fem_store_count(const fem_store *store, const char *name) {
    for (int i = 0; i < store->count; i++)
        if (strcmp(store->items[i].name, name) == 0) return store->items[i].count;
    return 0;
}
