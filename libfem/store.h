// Binary files of named arrays that are checked when they are read: bases, cached classes, checkpoints.
// Layout, little-endian: a header of 128 bytes (magic, layout version, kind, version of the kind, number of items, size
// of the file, key, checksum of all that follows), a table of 48 bytes an item (name, type, count, offset), then each
// array at a multiple of 64. A file is written under a temporary name, synced and renamed.
#ifndef LIMBER_STORE_H
#define LIMBER_STORE_H

#include "libfem/base.h"

#include <stdint.h>

// 128 bits that tell inputs apart: everything that determines a result is added, one after the other, to fem_hash {0}.
typedef struct fem_hash {
    uint64_t low, high;
} fem_hash;
fem_hash fem_hash_add(fem_hash hash, const void *bytes,
                      size_t size); // XXH3; sizes count: ("ab", "c") is not ("a", "bc")
bool     fem_hash_equal(fem_hash a, fem_hash b);
enum { FEM_HASH_TEXT = 33 };
const char *fem_hash_text(char text[FEM_HASH_TEXT], fem_hash hash); // 32 hexadecimal digits, for file names

typedef enum fem_store_type { FEM_STORE_BYTE = 1, FEM_STORE_INT = 4, FEM_STORE_DOUBLE = 8 } fem_store_type; // its size

typedef struct fem_store_item {
    const char    *name; // 1 to 23 characters
    fem_store_type type;
    size_t         count;
    const void    *data;
} fem_store_item;

typedef struct fem_store {
    fem_hash        key;
    int             count;
    fem_store_item *items;
    char           *memory; // the file; items point into it
} fem_store;

// `kind` says what the file is for ("basis"), `version` what its arrays mean; `key` is the hash of the inputs.
fem_status fem_store_write(const char *path, const char *kind, int version, fem_hash key, int count,
                           const fem_store_item *items);
// FEM_IO when there is no such file; FEM_BAD_INPUT, saying why, when it is anything but an undamaged file of this kind
// and version. Nothing in it is trusted before the checksum is right, nor sizes after.
fem_status fem_store_read(fem_store *store, const char *path, const char *kind, int version);
void       fem_store_destroy(fem_store *store);
// The array of that name, type and number of values; NULL when there is none. FEM_STORE_ANY takes any number.
#define FEM_STORE_ANY SIZE_MAX
const void *fem_store_find(const fem_store *store, const char *name, fem_store_type type, size_t count);
size_t      fem_store_count(const fem_store *store, const char *name); // of its values; 0 when there is none

#endif
