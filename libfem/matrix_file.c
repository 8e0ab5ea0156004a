// Matrices for other programs: dense ones as NumPy's .npy (format 1.0) or Matrix Market arrays, sparse ones as Matrix
// Market coordinates (Boisvert, Pozo and Remington 1996).
#include "libfem/mesh_formats.h"
#include "libfem/text.h"

#include <stdio.h>
#include <string.h>

static void put_npy(fem_file *file, int rows, int columns, const double *A) {
    char description[96], header[128];
    int  length = snprintf(description, sizeof description,
                           "{'descr': '<f8', 'fortran_order': True, 'shape': (%d, %d), }", rows, columns);
    // magic, version, length of the rest, then the description padded with blanks to a multiple of 64 with a newline
    memset(header, ' ', sizeof header);
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10); // 118 = 128 - 10
    memcpy(header + 10, description, (size_t)length);
    header[127] = '\n';
    fem_file_put(file, header, sizeof header);
    fem_file_put(file, A, (size_t)rows * (size_t)columns * sizeof *A);
}

fem_status fem_matrix_write(const char *path, int rows, int columns, const double *A) {
    fem_status status = FEM_OK;
    fem_file  *file = NULL;
    bool       npy = fem_path_ends(path, ".npy");
    if (!npy && !fem_path_ends(path, ".mtx"))
        return fem_fail(FEM_BAD_INPUT, "%s: unknown kind of matrix file; .npy and .mtx are written", path);
    FEM_TRY(fem_file_create(&file, path));
    if (npy) {
        put_npy(file, rows, columns, A);
    } else {
        fem_file_print(file, "%%%%MatrixMarket matrix array real general\n%d %d", rows, columns);
        for (size_t i = 0; i < (size_t)rows * (size_t)columns; i++) fem_file_put_double(file, '\n', A[i]);
        fem_file_put(file, "\n", 1);
    }
    status = fem_file_commit(file);
done:
    return status;
}

fem_status fem_sparse_write(const fem_sparse *A, const char *path) {
    fem_status status = FEM_OK;
    fem_file  *file = NULL;
    if (!fem_path_ends(path, ".mtx"))
        return fem_fail(FEM_BAD_INPUT, "%s: unknown kind of sparse matrix file; .mtx is written", path);
    FEM_TRY(fem_file_create(&file, path));
    // symmetric files hold the lower half: entry (3j + e, 3i + c) for block (i, j), j >= i
    size_t entries = 9 * (size_t)A->blocks - 3 * (size_t)A->n; // six of each diagonal block
    fem_file_print(file, "%%%%MatrixMarket matrix coordinate real symmetric\n%d %d %zu\n", 3 * A->n, 3 * A->n, entries);
    for (int i = 0; i < A->n; i++)
        for (int k = A->row_start[i]; k < A->row_start[i + 1]; k++)
            for (int c = 0; c < 3; c++)
                for (int e = A->column[k] == i ? c : 0; e < 3; e++) {
                    char text[FEM_DIGITS];
                    fem_file_put(file, text, (size_t)fem_format_int(text, 3LL * A->column[k] + e + 1));
                    fem_file_put_int(file, ' ', 3LL * i + c + 1);
                    fem_file_put_double(file, ' ', A->value[9 * (size_t)k + 3 * (size_t)c + (size_t)e]);
                    fem_file_put(file, "\n", 1);
                }
    status = fem_file_commit(file);
done:
    return status;
}
