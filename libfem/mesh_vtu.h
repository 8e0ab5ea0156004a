// Internal to libfem: a .vtu file as a list of arrays (mesh_vtu_document.c), and their bytes (mesh_vtu_data.c).
#ifndef LIMBER_MESH_VTU_H
#define LIMBER_MESH_VTU_H

#include "libfem/mesh_formats.h"

typedef enum vtu_section {
    VTU_OUTSIDE,
    VTU_FIELD_DATA,
    VTU_POINT_DATA,
    VTU_CELL_DATA,
    VTU_POINTS,
    VTU_CELLS
} vtu_section;
typedef enum vtu_encoding { VTU_ASCII, VTU_INLINE, VTU_APPENDED } vtu_encoding;
enum { VTU_NAME = 256 };

typedef struct vtu_type {
    const char *name;
    int         size; // bytes
    char        kind; // 'f' floating, 'i' signed, 'u' unsigned
} vtu_type;
const vtu_type *vtu_type_named(fem_word name); // NULL when unknown

typedef struct vtu_array {
    vtu_section     section;
    char            name[VTU_NAME];
    char            type_name[32];
    const vtu_type *type; // NULL: of a type that is not read
    long long       components;
    long long       tuples; // -1: not said
    vtu_encoding    encoding;
    size_t          offset;          // into the appended data
    const char     *text, *text_end; // between its tags
    long long       line;
} vtu_array;

typedef struct vtu_document {
    const char *path;
    char       *text;
    size_t      size;
    bool        swapped;     // the bytes of a number come in the other order than in this machine
    int         header_size; // bytes of a count: 4 or 8
    bool        compressed;  // by zlib, in blocks
    int         pieces;
    long long   points, cells, piece_line;
    size_t      array_count, array_capacity;
    vtu_array  *arrays;
    const char *appended, *appended_end; // NULL: there are none
    bool        appended_base64;
} vtu_document;

fem_status       vtu_document_open(vtu_document *document, const char *path); // destroy it even after a failure
void             vtu_document_destroy(vtu_document *document);
const vtu_array *vtu_document_find(const vtu_document *document, vtu_section section, const char *name);
fem_status       vtu_array_fail(const vtu_document *document, const vtu_array *array, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// `count` numbers of an array, converted; memory is taken only after its size is known to be there. Caller frees.
fem_status vtu_array_doubles(const vtu_document *document, const vtu_array *array, size_t count, double **values);
fem_status vtu_array_integers(const vtu_document *document, const vtu_array *array, size_t count, int **values);

#define VTU_NOTES      "limber" // FieldData array of bytes: the notes of mesh_formats.h
#define VTU_SET_PREFIX "set:"   // of arrays that are 1 in a set, 0 outside

#endif
