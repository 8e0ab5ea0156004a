// The numbers of a .vtu array: as text, or as bytes that are raw or base64, bare or in blocks packed by zlib.
// Bare bytes: [size] data. Blocks: [blocks] [size of a block] [of the last, 0: it is whole] [packed sizes] data.
// Base64 comes in separately padded parts (head, data); a decoder that goes on behind the padding reads them as one.
#include "libfem/mesh_vtu.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

static const vtu_type types[] = {{"Float64", 8, 'f'}, {"Float32", 4, 'f'}, {"Int8", 1, 'i'},  {"UInt8", 1, 'u'},
                                 {"Int16", 2, 'i'},   {"UInt16", 2, 'u'},  {"Int32", 4, 'i'}, {"UInt32", 4, 'u'},
                                 {"Int64", 8, 'i'},   {"UInt64", 8, 'u'}};

const vtu_type *vtu_type_named(fem_word name) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (fem_word_is(name, types[i].name)) return &types[i];
    return NULL;
}

fem_status vtu_array_fail(const vtu_document *document, const vtu_array *array, const char *format, ...) {
    char    what[512], quote[FEM_QUOTE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return fem_fail(FEM_BAD_INPUT, "%s:%lld: array %s: %s", document->path, array->line,
                    fem_quote(quote, array->name, strlen(array->name)), what);
}

// ---- a stream of bytes -----------------------------------------------------------------------------------------

typedef struct vtu_stream {
    const char   *at, *end;
    bool          base64;
    unsigned char held[3]; // decoded, not yet taken: held[first] .. held[last - 1]
    int           first, last;
} vtu_stream;

static int base64_digit(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

// Decodes the next four characters into held; false at the end or at anything that is not base64.
static bool decode_group(vtu_stream *s) {
    int digits[4] = {0}, count = 0, padding = 0;
    while (count < 4 && s->at < s->end) {
        char c = *s->at++;
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n') continue;
        if (c == '=' && count >= 2)
            padding++;
        else if (padding > 0 || (digits[count] = base64_digit(c)) < 0)
            return false;
        count++;
    }
    if (count < 4) return false;
    s->held[0] = (unsigned char)(digits[0] << 2 | digits[1] >> 4);
    s->held[1] = (unsigned char)(digits[1] << 4 | digits[2] >> 2);
    s->held[2] = (unsigned char)(digits[2] << 6 | digits[3]);
    s->first = 0;
    s->last = 3 - padding;
    return true;
}

// No more than this many bytes can still come.
static size_t stream_room(const vtu_stream *s) {
    size_t left = (size_t)(s->end - s->at);
    return s->base64 ? left / 4 * 3 + 3 : left;
}

static bool stream_take(vtu_stream *s, void *bytes, size_t size) {
    unsigned char *to = bytes;
    if (size == 0) return true; // `bytes` may be NULL
    if (!s->base64) {
        if (size > (size_t)(s->end - s->at)) return false;
        memcpy(to, s->at, size);
        s->at += size;
        return true;
    }
    while (size > 0) {
        if (s->first == s->last && !decode_group(s)) return false;
        while (size > 0 && s->first < s->last) *to++ = s->held[s->first++], size--;
    }
    return true;
}

static void swap_bytes(unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size / 2; i++) {
        unsigned char kept = bytes[i];
        bytes[i] = bytes[size - 1 - i];
        bytes[size - 1 - i] = kept;
    }
}

static bool stream_count(const vtu_document *d, vtu_stream *s, uint64_t *count) {
    unsigned char bytes[8];
    uint32_t      small;
    if (!stream_take(s, bytes, (size_t)d->header_size)) return false;
    if (d->swapped) swap_bytes(bytes, (size_t)d->header_size);
    if (d->header_size == 8) {
        memcpy(count, bytes, 8);
    } else {
        memcpy(&small, bytes, 4);
        *count = small;
    }
    return true;
}

// ---- bytes of an array -----------------------------------------------------------------------------------------

static void *zlib_alloc(void *context, unsigned count, unsigned size) {
    (void)context;
    return fem_alloc(count, size);
}
static void zlib_free(void *context, void *memory) {
    (void)context;
    fem_free(memory);
}

static fem_status unpack_block(const vtu_document *d, const vtu_array *a, unsigned char *packed, size_t packed_size,
                               unsigned char *bytes, size_t size) {
    z_stream z = {.zalloc = zlib_alloc, .zfree = zlib_free};
    if (packed_size > UINT32_MAX || size > UINT32_MAX) return vtu_array_fail(d, a, "a packed block is too large");
    if (inflateInit(&z) != Z_OK) return fem_fail(FEM_NO_MEMORY, "%s: no memory to unpack it", d->path);
    z.next_in = packed;
    z.avail_in = (uInt)packed_size;
    z.next_out = bytes;
    z.avail_out = (uInt)size;
    int  code = inflate(&z, Z_FINISH);
    bool whole = code == Z_STREAM_END && z.avail_out == 0;
    inflateEnd(&z);
    if (code == Z_MEM_ERROR) return fem_fail(FEM_NO_MEMORY, "%s: no memory to unpack it", d->path);
    return whole ? FEM_OK : vtu_array_fail(d, a, "its packed data are damaged");
}

static fem_status read_blocks(const vtu_document *d, const vtu_array *a, vtu_stream *s, size_t wanted,
                              unsigned char **bytes) {
    fem_status     status = FEM_OK;
    uint64_t       blocks, block_size, last_size, total = 0;
    uint64_t      *packed_size = NULL;
    unsigned char *packed = NULL, *data = NULL;
    size_t         packed_capacity = 0, used = 0;
    if (!stream_count(d, s, &blocks) || !stream_count(d, s, &block_size) || !stream_count(d, s, &last_size)) {
        status = vtu_array_fail(d, a, "its data are cut short");
        goto done;
    }
    uint64_t whole = blocks - (last_size > 0 && blocks > 0);
    bool     fits = blocks <= stream_room(s) / (size_t)d->header_size && last_size <= block_size &&
                !__builtin_mul_overflow(whole, block_size, &total) && !__builtin_add_overflow(total, last_size, &total);
    if (!fits || total != wanted || wanted / 1032 > stream_room(s)) { // 1032: the best that deflate can do
        status = vtu_array_fail(d, a, "its packed data do not hold the %zu bytes that are expected", wanted);
        goto done;
    }
    packed_size = fem_alloc((size_t)blocks, sizeof *packed_size);
    data = fem_alloc(wanted, 1);
    if (!packed_size || !data) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory for %zu bytes", d->path, wanted);
        goto done;
    }
    for (uint64_t i = 0; i < blocks; i++)
        if (!stream_count(d, s, &packed_size[i])) {
            status = vtu_array_fail(d, a, "its data are cut short");
            goto done;
        }
    for (uint64_t i = 0; i < blocks; i++) {
        size_t size = (size_t)(i + 1 == blocks && last_size > 0 ? last_size : block_size);
        if (packed_size[i] > stream_room(s)) {
            status = vtu_array_fail(d, a, "its data are cut short");
            goto done;
        }
        FEM_TRY(fem_grow((void **)&packed, &packed_capacity, (size_t)packed_size[i], 1));
        if (!stream_take(s, packed, (size_t)packed_size[i])) {
            status = vtu_array_fail(d, a, "its data are cut short");
            goto done;
        }
        FEM_TRY(unpack_block(d, a, packed, (size_t)packed_size[i], data + used, size));
        used += size;
    }
    *bytes = data;
    data = NULL;
done:
    fem_free(packed_size);
    fem_free(packed);
    fem_free(data);
    return status;
}

static fem_status read_bytes(const vtu_document *d, const vtu_array *a, size_t wanted, unsigned char **bytes) {
    vtu_stream s = {.at = a->text, .end = a->text_end, .base64 = true};
    uint64_t   size = 0;
    if (a->encoding == VTU_APPENDED) {
        if (!d->appended) return vtu_array_fail(d, a, "its data are appended, but the file has no AppendedData");
        if (a->offset > (size_t)(d->appended_end - d->appended))
            return vtu_array_fail(d, a, "its offset %zu is behind the end of the file", a->offset);
        s = (vtu_stream){.at = d->appended + a->offset, .end = d->appended_end, .base64 = d->appended_base64};
    }
    if (d->compressed) return read_blocks(d, a, &s, wanted, bytes);
    if (!stream_count(d, &s, &size)) return vtu_array_fail(d, a, "its data are cut short");
    if (size != wanted) return vtu_array_fail(d, a, "has %llu bytes, expected %zu", (unsigned long long)size, wanted);
    if (size > stream_room(&s) + 3) return vtu_array_fail(d, a, "its data are cut short");
    unsigned char *data = fem_alloc(wanted, 1);
    if (!data) return fem_fail(FEM_NO_MEMORY, "%s: no memory for %zu bytes", d->path, wanted);
    if (!stream_take(&s, data, wanted)) {
        fem_free(data);
        return vtu_array_fail(d, a, "its data are cut short, or are not base64");
    }
    *bytes = data;
    return FEM_OK;
}

// ---- numbers ---------------------------------------------------------------------------------------------------

#define LOAD(T)                                                                                                        \
    do {                                                                                                               \
        T value_;                                                                                                      \
        memcpy(&value_, bytes, sizeof value_);                                                                         \
        *real = (double)value_;                                                                                        \
        *whole = (long long)value_;                                                                                    \
    } while (0)

// One number in the order of this machine; false when it cannot be an integer of 64 bits although that is wanted.
static bool load(const vtu_type *type, const unsigned char *bytes, bool want_whole, double *real, long long *whole) {
    if (type->kind == 'f') {
        float single;
        if (type->size == 8)
            memcpy(real, bytes, 8);
        else
            memcpy(&single, bytes, 4), *real = (double)single;
        if (!want_whole) return true;
        if (!(fabs(*real) < 9e15) || *real != floor(*real)) return false;
        *whole = (long long)*real;
        return true;
    }
    switch (type->kind == 'i' ? type->size : -type->size) {
    case 1:
        LOAD(int8_t);
        break;
    case 2:
        LOAD(int16_t);
        break;
    case 4:
        LOAD(int32_t);
        break;
    case 8:
        LOAD(int64_t);
        break;
    case -1:
        LOAD(uint8_t);
        break;
    case -2:
        LOAD(uint16_t);
        break;
    case -4:
        LOAD(uint32_t);
        break;
    default:
        LOAD(uint64_t);
        return *whole >= 0 || !want_whole;
    }
    return true;
}

// Fills reals or wholes, whichever is not NULL, from text.
static fem_status read_text(const vtu_document *d, const vtu_array *a, size_t count, double *reals, int *wholes) {
    fem_text scan = fem_text_open(d->path, a->text, (size_t)(a->text_end - a->text), 0, false);
    for (size_t i = 0; i < count; i++) {
        char quote[FEM_QUOTE];
        if (!fem_text_next(&scan)) return vtu_array_fail(d, a, "has %zu numbers, expected %zu", i, count);
        fem_word  word = fem_text_take(&scan);
        double    real = 0;
        long long whole = 0;
        bool      good = wholes && fem_parse_int(word.at, word.length, &whole);
        if (!good) {
            good = fem_parse_double(word.at, word.length, &real);
            if (wholes) good = good && fabs(real) < 9e15 && real == floor(real);
            if (wholes && good) whole = (long long)real;
        }
        if (wholes) good = good && whole >= INT_MIN && whole <= INT_MAX;
        if (wholes && good) wholes[i] = (int)whole;
        if (!good)
            return vtu_array_fail(d, a, "expected %s, found %s", wholes ? "an integer" : "a finite number",
                                  fem_quote(quote, word.at, word.length));
        if (reals) reals[i] = real;
    }
    if (fem_text_next(&scan)) return vtu_array_fail(d, a, "has more than the %zu numbers that are expected", count);
    return FEM_OK;
}

static fem_status read_numbers(const vtu_document *d, const vtu_array *a, size_t count, double **reals, int **wholes) {
    fem_status     status = FEM_OK;
    unsigned char *bytes = NULL;
    void          *values = NULL;
    size_t         wanted = 0;
    if (!a->type)
        return vtu_array_fail(
            d, a, "type \"%s\" is not supported, expected Float64, Float32, Int32, Int64, UInt8 or their kin",
            a->type_name);
    if (a->encoding == VTU_ASCII && count > (size_t)(a->text_end - a->text) / 2 + 1)
        return vtu_array_fail(d, a, "has fewer than the %zu numbers that are expected", count);
    if (__builtin_mul_overflow(count, (size_t)a->type->size, &wanted)) return vtu_array_fail(d, a, "is too large");
    if (a->encoding != VTU_ASCII) FEM_TRY(read_bytes(d, a, wanted, &bytes));
    values = fem_alloc(count, reals ? sizeof **reals : sizeof **wholes);
    if (!values) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory for %zu numbers", d->path, count);
        goto done;
    }
    double *real = reals ? values : NULL;
    int    *whole = wholes ? values : NULL;
    if (!bytes) FEM_TRY(read_text(d, a, count, real, whole));
    for (size_t i = 0; bytes && i < count; i++) {
        unsigned char *at = bytes + i * (size_t)a->type->size;
        double         x = 0;
        long long      n = 0;
        if (d->swapped) swap_bytes(at, (size_t)a->type->size);
        if (!load(a->type, at, wholes != NULL, &x, &n) || (wholes && (n < INT_MIN || n > INT_MAX))) {
            status = vtu_array_fail(d, a, "entry %zu is not an integer that can be used", i);
            goto done;
        }
        if (real) real[i] = x;
        if (whole) whole[i] = (int)n;
    }
    if (reals)
        *reals = values;
    else
        *wholes = values;
    values = NULL;
done:
    fem_free(bytes);
    fem_free(values);
    return status;
}

fem_status vtu_array_doubles(const vtu_document *document, const vtu_array *array, size_t count, double **values) {
    return read_numbers(document, array, count, values, NULL);
}

fem_status vtu_array_integers(const vtu_document *document, const vtu_array *array, size_t count, int **values) {
    return read_numbers(document, array, count, NULL, values);
}
