// Inside libscene only: reading the JSON of a .glb file.
#ifndef LIMBER_MODEL_READER_H
#define LIMBER_MODEL_READER_H

#include "libscene/glb_internal.h"
#include "libscene/internal.h"
#include "libscene/model_internal.h"

typedef struct model_reader {
    const char          *path;
    scene_model         *model;
    const cJSON         *root;
    const unsigned char *binary;
    size_t               binary_size;
    int                  accessor_count;
    const cJSON        **accessors;
    int                  view_count;
    const cJSON        **views;
} model_reader;

// FEM_BAD_INPUT with "FILE:LINE: what, expected ...".
fem_status model_bad(const model_reader *r, const cJSON *at, const char *what, const char *expected);

const cJSON *model_get(const cJSON *object, const char *key); // NULL when there is none
char        *model_get_name(const cJSON *object);             // allocated; "" when there is none
// A whole number in 0 .. most, or `fallback` when the key is absent.
fem_status model_get_size(const model_reader *r, const cJSON *object, const char *key, double fallback, double most,
                          size_t *value);
// An index below `count`, or -1 when the key is absent.
fem_status model_get_index(const model_reader *r, const cJSON *object, const char *key, int count, int *index);
// Exactly `count` finite numbers; values keep what they hold when the key is absent.
fem_status model_get_numbers(const model_reader *r, const cJSON *object, const char *key, int count, double *values);
// The items of a list of objects, as an array that the caller frees, also after a failure.
fem_status model_get_list(const model_reader *r, const cJSON *object, const char *key, int *count,
                          const cJSON ***items);
// The bytes of a view, inside the binary chunk.
fem_status model_get_view(const model_reader *r, int index, const unsigned char **data, size_t *length, size_t *stride);
// The accessor behind a key of an object, `width` numbers an element and at least `least` elements; count 0 when there
// is none.
fem_status model_get_attribute(const model_reader *r, const cJSON *object, const char *key, int width, size_t least,
                               model_accessor *a);

// model_mesh.c
fem_status model_read_mesh(const model_reader *r, const cJSON *json, model_mesh *mesh);
fem_status model_read_paints(model_reader *r);

#endif
