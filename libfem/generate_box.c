// Box of equal cells.
#include "libfem/generate.h"

static fem_status check_box(const double low[3], const double high[3], const int cells[3]) {
    for (int k = 0; k < 3; k++) {
        if (!isfinite(low[k]) || !isfinite(high[k]))
            return fem_fail(FEM_BAD_INPUT, "the %c extent %g to %g is not finite", "xyz"[k], low[k], high[k]);
        if (!(high[k] > low[k]))
            return fem_fail(FEM_BAD_INPUT, "the %c extent goes from %g to %g, expected low < high", "xyz"[k], low[k],
                            high[k]);
        if (cells[k] < 1) return fem_fail(FEM_BAD_INPUT, "%d cells along %c, expected at least 1", cells[k], "xyz"[k]);
    }
    return FEM_OK;
}

fem_status fem_generate_box(fem_mesh *mesh, fem_element type, const double low[3], const double high[3],
                            const int cells[3]) {
    fem_status     status = FEM_OK;
    fem_mesh       box = {0};
    unsigned char *mark = NULL;
    FEM_TRY(check_box(low, high, cells));
    FEM_TRY(fem_generate_count((double)cells[0] * cells[1] * cells[2], type));
    // (a+1)(b+1)(c+1) <= 8abc: the vertices can be counted with int
    int n[3] = {cells[0] + 1, cells[1] + 1, cells[2] + 1};
    FEM_TRY(fem_mesh_allocate(&box, FEM_H8, n[0] * n[1] * n[2], cells[0] * cells[1] * cells[2]));
    mark = fem_calloc((size_t)box.vertex_count, sizeof *mark);
    if (!mark) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d vertices", box.vertex_count);
        goto done;
    }
    double *x = box.vertices;
    int    *v = box.elements, vertex = 0;
    for (int k = 0; k < n[2]; k++)
        for (int j = 0; j < n[1]; j++)
            for (int i = 0; i < n[0]; i++, vertex++) {
                int index[3] = {i, j, k};
                for (int a = 0; a < 3; a++) {
                    // from both ends, so that the last plane is exactly `high` and nothing overflows
                    double t = (double)index[a] / cells[a];
                    *x++ = (1 - t) * low[a] + t * high[a];
                    if (index[a] == 0) mark[vertex] |= (unsigned char)(1u << 2 * a);
                    if (index[a] == cells[a]) mark[vertex] |= (unsigned char)(2u << 2 * a);
                }
                if (i == cells[0] || j == cells[1] || k == cells[2]) continue;
                int up = n[0] * n[1], back = n[0];
                int hexahedron[8] = {vertex,      vertex + 1,      vertex + 1 + back,      vertex + back,
                                     vertex + up, vertex + up + 1, vertex + up + 1 + back, vertex + up + back};
                for (int c = 0; c < 8; c++) *v++ = hexahedron[c];
            }
    FEM_TRY(fem_generate_sides(&box, mark));
    FEM_TRY(fem_generate_finish(mesh, type, &box));
done:
    fem_free(mark);
    fem_mesh_destroy(&box);
    return status == FEM_BAD_INPUT ? fem_fail_prefix(status, "box: ") : status;
}
