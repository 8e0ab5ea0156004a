// Bases in memory and in files.
#include "libmodes/internal.h"

#include <string.h>

enum { BASIS_VERSION = 1 };

fem_status modes_basis_allocate(modes_basis *basis, int n, int r) {
    *basis = (modes_basis){.n = n, .r = r};
    basis->U = fem_calloc((size_t)n * (size_t)r, sizeof *basis->U);
    basis->omega2 = fem_calloc((size_t)r, sizeof *basis->omega2);
    if (!basis->U || !basis->omega2) {
        modes_basis_destroy(basis);
        return fem_fail(FEM_NO_MEMORY, "no memory for %d modes of %d degrees of freedom", r, n);
    }
    return FEM_OK;
}

void modes_basis_destroy(modes_basis *basis) {
    fem_free(basis->U);
    fem_free(basis->omega2);
    *basis = (modes_basis){0};
}

fem_status modes_basis_write(const modes_basis *basis, fem_hash key, const char *path) {
    const int      size[2] = {basis->n, basis->r};
    fem_store_item items[] = {{"size", FEM_STORE_INT, 2, size},
                              {"omega2", FEM_STORE_DOUBLE, (size_t)basis->r, basis->omega2},
                              {"U", FEM_STORE_DOUBLE, (size_t)basis->n * (size_t)basis->r, basis->U}};
    return fem_store_write(path, "basis", BASIS_VERSION, key, 3, items);
}

static bool all_finite(size_t count, const double *x) {
    for (size_t i = 0; i < count; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

fem_status modes_basis_read(modes_basis *result, const fem_hash *key, const char *path) {
    fem_status  status = FEM_OK;
    fem_store   store = {0};
    modes_basis basis = {0};
    FEM_TRY(fem_store_read(&store, path, "basis", BASIS_VERSION));
    if (key && !fem_hash_equal(*key, store.key)) {
        status = fem_fail(FEM_BAD_INPUT, "%s: is a basis of another body, or was made with other options", path);
        goto done;
    }
    const int    *size = fem_store_find(&store, "size", FEM_STORE_INT, 2);
    bool          sane = size && size[0] >= 3 && size[0] % 3 == 0 && size[1] >= 1;
    size_t        entries = sane ? (size_t)size[0] * (size_t)size[1] : 0; // below 2^62
    const double *U = sane ? fem_store_find(&store, "U", FEM_STORE_DOUBLE, entries) : NULL;
    const double *omega2 = sane ? fem_store_find(&store, "omega2", FEM_STORE_DOUBLE, (size_t)size[1]) : NULL;
    if (!U || !omega2 || !all_finite(entries, U) || !all_finite((size_t)size[1], omega2)) {
        status = fem_fail(FEM_BAD_INPUT, "%s: its arrays are not those of a basis", path);
        goto done;
    }
    FEM_TRY(modes_basis_allocate(&basis, size[0], size[1]));
    memcpy(basis.U, U, entries * sizeof *U);
    memcpy(basis.omega2, omega2, (size_t)size[1] * sizeof *omega2);
    modes_basis_destroy(result);
    *result = basis;
done:
    fem_store_destroy(&store);
    return status;
}
