// Matrices from other programs: NumPy's .npy (formats 1 to 3, double or single precision, little-endian, either order)
// and dense Matrix Market arrays. All entries must be finite.
#include "libfem/mesh_formats.h"

#include <limits.h>
#include <math.h>
#include <string.h>

typedef struct dense_matrix {
    int     rows, columns;
    double *A; // column-major
} dense_matrix;

static fem_status allocate(dense_matrix *m, const char *path, long long rows, long long columns, size_t most) {
    if (rows == 0 || columns == 0)
        return fem_fail(FEM_BAD_INPUT, "%s: a matrix of %lld rows and %lld columns, which holds nothing", path, rows,
                        columns);
    if (rows < 1 || columns < 1 || rows > INT_MAX || columns > INT_MAX || (size_t)rows > most / (size_t)columns)
        return fem_fail(FEM_BAD_INPUT, "%s: a matrix of %lld rows and %lld columns, which the file has no room for",
                        path, rows, columns);
    m->rows = (int)rows, m->columns = (int)columns;
    m->A = fem_alloc((size_t)rows * (size_t)columns, sizeof *m->A);
    return m->A ? FEM_OK : fem_fail(FEM_NO_MEMORY, "%s: no memory for %lld x %lld numbers", path, rows, columns);
}

// ---- NumPy ---------------------------------------------------------------------------------------------------------

// What follows 'KEY': in the description, or NULL.
static const char *value_of(const char *description, const char *key) {
    const char *at = strstr(description, key);
    if (!at) return NULL;
    at += strlen(key);
    while (*at == ' ' || *at == ':') at++;
    return at;
}

// "(3, 2)" or "(3,)"; fields of vertices, "(n, 3)" in C order, are matrices like any other.
static bool read_shape(const char *at, long long shape[2]) {
    int dimensions = 0;
    shape[0] = shape[1] = 1;
    if (!at || *at++ != '(') return false;
    while (*at != ')') {
        size_t digits = strspn(at, "0123456789");
        if (digits < 1 || digits > 10 || dimensions == 2) return false;
        if (!fem_parse_int(at, digits, &shape[dimensions++])) return false;
        at += digits;
        at += strspn(at, ", ");
    }
    return dimensions > 0;
}

static fem_status read_npy(dense_matrix *m, const char *path, const char *text, size_t size) {
    const unsigned char *bytes = (const unsigned char *)text;
    char                 description[1024];
    long long            shape[2];
    if (size < 12 || memcmp(text, "\x93NUMPY", 6) != 0)
        return fem_fail(FEM_BAD_INPUT, "%s: not a .npy file: its first bytes are not those of NumPy", path);
    size_t begin = bytes[6] == 1 ? 10 : 12, length = bytes[8] | (size_t)bytes[9] << 8;
    if (bytes[6] < 1 || bytes[6] > 3)
        return fem_fail(FEM_BAD_INPUT, "%s: version %d of .npy is unknown", path, bytes[6]);
    if (bytes[6] > 1) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length >= sizeof description || begin + length > size)
        return fem_fail(FEM_BAD_INPUT, "%s: its description is cut short or too long (%zu bytes)", path, length);
    memcpy(description, text + begin, length);
    description[length] = 0;
    const char *type = value_of(description, "'descr'"), *order = value_of(description, "'fortran_order'");
    bool        single = type && strncmp(type, "'<f4'", 5) == 0;
    if (!type || !(single || strncmp(type, "'<f8'", 5) == 0))
        return fem_fail(FEM_BAD_INPUT,
                        "%s: its numbers are of another type, expected '<f8' or '<f4' (float64, float32)", path);
    if (!read_shape(value_of(description, "'shape'"), shape) || !order)
        return fem_fail(FEM_BAD_INPUT, "%s: it has no order or no shape of one or two dimensions", path);
    size_t      width = single ? 4 : 8, have = (size - begin - length) / width;
    const char *data = text + begin + length;
    fem_status  status = allocate(m, path, shape[0], shape[1], have);
    if (status != FEM_OK) return status;
    size_t rows = (size_t)m->rows, columns = (size_t)m->columns;
    bool   transposed = strncmp(order, "True", 4) != 0;
    for (size_t k = 0; k < rows * columns; k++) {
        double *to = m->A + (transposed ? k % columns * rows + k / columns : k);
        float   narrow;
        if (single)
            memcpy(&narrow, data + 4 * k, 4), *to = (double)narrow;
        else
            memcpy(to, data + 8 * k, 8);
        if (!isfinite(*to)) return fem_fail(FEM_BAD_INPUT, "%s: number %zu is not finite", path, k);
    }
    return FEM_OK;
}

// ---- Matrix Market -------------------------------------------------------------------------------------------------

static fem_status read_mtx(dense_matrix *m, const char *path, const char *text, size_t size) {
    fem_status  status = FEM_OK;
    fem_text    scan = fem_text_open(path, text, size, '%', false);
    long long   rows = 0, columns = 0;
    const char *head = "%%MatrixMarket matrix array real general";
    if (strncmp(text, head, strlen(head)) != 0) return fem_text_fail(&scan, "expected \"%s\"", head);
    if (!fem_text_next(&scan)) return fem_text_expected(&scan, "the number of rows");
    FEM_TRY(fem_text_int(&scan, "the number of rows", 1, INT_MAX, &rows));
    FEM_TRY(fem_text_int(&scan, "the number of columns", 1, INT_MAX, &columns));
    FEM_TRY(allocate(m, path, rows, columns, size / 2)); // a digit and a newline each
    for (size_t k = 0; k < (size_t)rows * (size_t)columns; k++) {
        if (!fem_text_next(&scan)) return fem_text_expected(&scan, "a number");
        FEM_TRY(fem_text_double(&scan, "a number", &m->A[k]));
    }
    if (fem_text_next(&scan)) status = fem_text_expected(&scan, "the end of the file");
done:
    return status;
}

fem_status fem_matrix_read(const char *path, int *rows, int *columns, double **A) {
    fem_status   status = FEM_OK;
    dense_matrix m = {0};
    char        *text = NULL;
    size_t       size = 0;
    bool         npy = fem_path_ends(path, ".npy");
    if (!npy && !fem_path_ends(path, ".mtx"))
        return fem_fail(FEM_BAD_INPUT, "%s: unknown kind of matrix file; .npy and .mtx are read", path);
    FEM_TRY(fem_file_read(&text, &size, path));
    FEM_TRY(npy ? read_npy(&m, path, text, size) : read_mtx(&m, path, text, size));
    *rows = m.rows, *columns = m.columns, *A = m.A;
    m.A = NULL;
done:
    fem_free(m.A);
    fem_free(text);
    return status;
}
