// Graph algorithms by METIS: the one place that calls it.
#include "libfem/internal.h"

#include <metis.h>
#include <stdio.h>

_Static_assert(sizeof(idx_t) == sizeof(int), "METIS must be built with 32-bit indices");

void fem_metis_version(char text[32]) {
    snprintf(text, 32, "%d.%d.%d", METIS_VER_MAJOR, METIS_VER_MINOR, METIS_VER_SUBMINOR);
}

// METIS wants at least one edge; graphs without any have no fill-in, so every order is as good.
fem_status fem_graph_order(int n, const int *start, const int *adjacent, int *order) {
    if (n < 1 || start[n] == 0) {
        for (int i = 0; i < n; i++) order[i] = i;
        return FEM_OK;
    }
    fem_status status = FEM_OK;
    idx_t      options[METIS_NOPTIONS];
    idx_t     *xadj = fem_copy(start, (size_t)n + 1, sizeof *xadj); // METIS takes them non-const and may reorder
    idx_t     *adjncy = fem_copy(adjacent, (size_t)start[n], sizeof *adjncy);
    idx_t     *inverse = fem_alloc((size_t)n, sizeof *inverse);
    idx_t      vertices = n;
    if (!xadj || !adjncy || !inverse) {
        status = fem_fail(FEM_NO_MEMORY, "no memory to order a graph of %d vertices", n);
        goto done;
    }
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_NUMBERING] = 0;
    options[METIS_OPTION_SEED] = 1; // the same graph always gets the same order
    int result = METIS_NodeND(&vertices, xadj, adjncy, NULL, options, order, inverse);
    if (result != METIS_OK)
        status = fem_fail(result == METIS_ERROR_MEMORY ? FEM_NO_MEMORY : FEM_BAD_INPUT,
                          "METIS could not order a graph of %d vertices (error %d)", n, result);
done:
    fem_free(xadj);
    fem_free(adjncy);
    fem_free(inverse);
    return status;
}
