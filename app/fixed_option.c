// --fix FILE|set:NAME: the vertices that are held.
#include "app/app.h"

#include <string.h>

fem_status app_fixed_read(const fem_mesh *mesh, const char *fix, int **items, int *count) {
    if (strncmp(fix, "set:", 4) != 0)
        return fem_vertex_list_read(items, count, fix, mesh->file_base, mesh->vertex_count);
    const fem_set *set = fem_mesh_vertex_set(mesh, fix + 4);
    if (!set) return fem_fail(FEM_BAD_INPUT, "--fix: the mesh has no vertex set \"%s\"", fix + 4);
    int *copy = fem_copy(set->items, (size_t)set->count, sizeof *copy);
    if (!copy) return fem_fail(FEM_NO_MEMORY, "--fix: no memory for %d vertices", set->count);
    *items = copy, *count = set->count;
    return FEM_OK;
}
