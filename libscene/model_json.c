// Values of the JSON of a .glb file, each checked where it is read, and the numbers behind its accessors.
#include "libscene/model_reader.h"

#include <stdio.h>
#include <string.h>

// ---- values of the JSON ----------------------------------------------------------------------------------------

fem_status model_bad(const model_reader *r, const cJSON *at, const char *what, const char *expected) {
    return fem_fail(FEM_BAD_INPUT, "%s:%d: %s, expected %s", r->path, at ? at->valueint : 1, what, expected);
}

const cJSON *model_get(const cJSON *object, const char *key) { return cJSON_GetObjectItemCaseSensitive(object, key); }

fem_status model_get_size(const model_reader *r, const cJSON *object, const char *key, double fallback, double most,
                          size_t *value) {
    const cJSON *item = model_get(object, key);
    double       number = item ? (cJSON_IsNumber(item) ? item->valuedouble : -1) : fallback;
    if (number >= 0 && number <= most && number == floor(number)) return *value = (size_t)number, FEM_OK;
    char what[96];
    if (item)
        snprintf(what, sizeof what, "\"%s\" is not a whole number in 0 .. %.0f", key, most);
    else
        snprintf(what, sizeof what, "\"%s\" is missing", key);
    return model_bad(r, item ? item : object, what, "such a number");
}

fem_status model_get_index(const model_reader *r, const cJSON *object, const char *key, int count, int *index) {
    *index = -1;
    if (!model_get(object, key)) return FEM_OK;
    if (count == 0) return model_bad(r, object, "an index into an empty list", "none");
    size_t     value;
    fem_status status = model_get_size(r, object, key, 0, count - 1, &value);
    if (status == FEM_OK) *index = (int)value;
    return status;
}

fem_status model_get_numbers(const model_reader *r, const cJSON *object, const char *key, int count, double *values) {
    const cJSON *list = model_get(object, key);
    if (!list) return FEM_OK;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != count)
        return model_bad(r, list, "a list of another length", key);
    int i = 0;
    for (const cJSON *item = list->child; item; item = item->next, i++) {
        if (!cJSON_IsNumber(item) || !(fabs(item->valuedouble) < 1e30))
            return model_bad(r, item, "no number of use", key);
        values[i] = item->valuedouble;
    }
    return FEM_OK;
}

fem_status model_get_list(const model_reader *r, const cJSON *object, const char *key, int *count,
                          const cJSON ***items) {
    const cJSON *list = model_get(object, key);
    *count = 0;
    if (list && !cJSON_IsArray(list)) return model_bad(r, list, key, "a list");
    int size = list ? cJSON_GetArraySize(list) : 0;
    *items = fem_alloc((size_t)size, sizeof **items);
    if (!*items) return fem_fail(FEM_NO_MEMORY, "%s: no memory for %d items", r->path, size);
    for (const cJSON *item = list ? list->child : NULL; item; item = item->next) {
        if (!cJSON_IsObject(item)) return model_bad(r, item, key, "a list of objects");
        (*items)[(*count)++] = item;
    }
    return FEM_OK;
}

char *model_get_name(const cJSON *object) {
    const cJSON *name = model_get(object, "name");
    return fem_copy_string(cJSON_IsString(name) ? name->valuestring : "");
}

// ---- accessors --------------------------------------------------------------------------------------------------

static size_t component_bytes(int component) {
    switch (component) {
    case GLTF_BYTE:
    case GLTF_UBYTE:
        return 1;
    case GLTF_SHORT:
    case GLTF_USHORT:
        return 2;
    case GLTF_UINT:
    case GLTF_FLOAT:
        return 4;
    default:
        return 0;
    }
}

static int type_width(const cJSON *type) {
    static const struct {
        const char *name;
        int         width;
    } types[] = {{"SCALAR", 1}, {"VEC2", 2}, {"VEC3", 3}, {"VEC4", 4}, {"MAT4", 16}};
    for (size_t i = 0; i < sizeof types / sizeof *types && cJSON_IsString(type); i++)
        if (strcmp(type->valuestring, types[i].name) == 0) return types[i].width;
    return 0;
}

double model_number(const model_accessor *a, size_t element, int k) {
    if (!a->data) return 0;
    const unsigned char *at = a->data + element * a->stride + (size_t)k * component_bytes(a->component);
    int8_t               byte;
    int16_t              word;
    uint16_t             uword;
    uint32_t             wide;
    float                real;
    switch (a->component) {
    case GLTF_BYTE:
        memcpy(&byte, at, 1);
        return a->normalized ? fmax(byte / 127.0, -1) : byte;
    case GLTF_UBYTE:
        return a->normalized ? *at / 255.0 : *at;
    case GLTF_SHORT:
        memcpy(&word, at, 2);
        return a->normalized ? fmax(word / 32767.0, -1) : word;
    case GLTF_USHORT:
        memcpy(&uword, at, 2);
        return a->normalized ? uword / 65535.0 : uword;
    case GLTF_UINT:
        memcpy(&wide, at, 4);
        return wide;
    default:
        memcpy(&real, at, 4);
        return isfinite(real) && fabsf(real) < 1e30f ? (double)real : 0; // nothing that spreads
    }
}

fem_status model_get_view(const model_reader *r, int index, const unsigned char **data, size_t *length,
                          size_t *stride) {
    const cJSON *view = r->views[index];
    size_t       offset, buffer;
    fem_status   status = model_get_size(r, view, "buffer", -1, 0, &buffer);
    if (status == FEM_OK) status = model_get_size(r, view, "byteOffset", 0, 4294967295.0, &offset);
    if (status == FEM_OK) status = model_get_size(r, view, "byteLength", -1, 4294967295.0, length);
    if (status == FEM_OK) status = model_get_size(r, view, "byteStride", 0, 252, stride);
    if (status != FEM_OK) return status;
    if (offset > r->binary_size || *length > r->binary_size - offset)
        return model_bad(r, view, "the view reaches behind the binary chunk", "one inside");
    *data = r->binary + offset;
    return FEM_OK;
}

// width: numbers an element that are wanted; 0: any. least: elements at least.
static fem_status get_accessor(const model_reader *r, int index, int width, size_t least, model_accessor *a) {
    fem_status   status = FEM_OK;
    const cJSON *json = r->accessors[index];
    int          view;
    size_t       offset, length, component, stride;
    FEM_TRY(model_get_size(r, json, "count", -1, INT32_MAX, &a->count));
    FEM_TRY(model_get_size(r, json, "componentType", -1, 65535, &component));
    FEM_TRY(model_get_size(r, json, "byteOffset", 0, 4294967295.0, &offset));
    FEM_TRY(model_get_index(r, json, "bufferView", r->view_count, &view));
    a->component = (int)component;
    a->width = type_width(model_get(json, "type"));
    a->normalized = cJSON_IsTrue(model_get(json, "normalized"));
    if (model_get(json, "sparse")) return model_bad(r, json, "a sparse accessor", "a plain one");
    size_t bytes = (size_t)a->width * component_bytes(a->component);
    if (bytes == 0) return model_bad(r, json, "an unknown componentType or type", "one of glTF 2.0");
    if (width > 0 && a->width != width)
        return model_bad(r, json, "an accessor of another type", "the type that its use wants");
    if (a->count < least) return model_bad(r, json, "an accessor with too few elements", "one per vertex or key");
    a->data = NULL, a->stride = bytes;
    if (view < 0) return FEM_OK;
    FEM_TRY(model_get_view(r, view, &a->data, &length, &stride));
    if (stride > 0 && stride < bytes)
        return model_bad(r, json, "a stride below the size of an element", "a larger one");
    if (stride > 0) a->stride = stride;
    if (offset > length || (a->count > 0 && (a->count - 1) * a->stride + bytes > length - offset))
        return model_bad(r, json, "the accessor reaches behind its view", "one inside");
    a->data += offset;
done:
    return status;
}

fem_status model_get_attribute(const model_reader *r, const cJSON *object, const char *key, int width, size_t least,
                               model_accessor *a) {
    int        index;
    fem_status status = model_get_index(r, object, key, r->accessor_count, &index);
    *a = (model_accessor){0};
    return status == FEM_OK && index >= 0 ? get_accessor(r, index, width, least, a) : status;
}
