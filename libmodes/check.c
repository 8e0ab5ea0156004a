// What can be wrong with a body whose modes are wanted, said before the long computation; and, when the stiffness
// matrix turns out to be singular, what of the body makes it so.
#include "libmodes/internal.h"

#include <stdio.h>
#include <string.h>

// Every free vertex must belong to an element and have mass. (Vertices without element that are held do no harm.)
static fem_status check_vertices(const modes_problem *p, const int *component, modes_supports *s) {
    for (int v = 0; v < p->mesh->vertex_count; v++) {
        int name = v + p->mesh->file_base, is_free = 3;
        for (int i = 0; p->fixed && i < 3; i++) is_free -= p->fixed[3 * (size_t)v + (size_t)i] != 0;
        s->free_dofs += is_free;
        if (is_free == 0) continue;
        if (component[v] < 0)
            return fem_fail(FEM_BAD_INPUT,
                            "vertex %d belongs to no element: it has neither mass nor stiffness; remove it or hold it",
                            name);
        if (!(p->M->value[9 * (size_t)p->M->row_start[v]] > 0))
            return fem_fail(FEM_BAD_INPUT, "vertex %d has no mass: the density of its elements must be positive", name);
    }
    if (s->free_dofs == 0)
        return fem_fail(FEM_BAD_INPUT, "every degree of freedom is fixed: there is nothing that could vibrate");
    return FEM_OK;
}

fem_status modes_check_body(const modes_problem *p, modes_supports *result) {
    fem_status     status = FEM_OK;
    modes_supports s = {0};
    int            vertices = p->mesh->vertex_count;
    double        *R = NULL;
    int           *component = fem_alloc((size_t)vertices, sizeof *component);
    if (!component) return fem_fail(FEM_NO_MEMORY, "no memory for the components of %d vertices", vertices);
    FEM_TRY(fem_mesh_components(p->mesh, component, &s.components));
    FEM_TRY(check_vertices(p, component, &s));
    FEM_TRY(modes_rigid(p, &R, &s.rigid));
    for (int v = 0; v < vertices && s.rigid > 0 && s.loose == 0; v++)
        for (int i = 0; i < 3; i++) // the last motion is zero outside its component
            if (R[(size_t)(s.rigid - 1) * 3 * (size_t)vertices + 3 * (size_t)v + (size_t)i] != 0)
                s.loose = v + p->mesh->file_base;
    *result = s;
done:
    fem_free(R);
    fem_free(component);
    return status;
}

fem_status modes_check_count(const modes_supports *s, int count) {
    if (count <= s->free_dofs - s->rigid) return FEM_OK;
    return fem_fail(FEM_BAD_INPUT,
                    "%d modes were asked for, but the body has only %d (%d free degrees of freedom, %d of them rigid)",
                    count, s->free_dofs - s->rigid, s->free_dofs, s->rigid);
}

fem_status modes_check_held(const modes_supports *s, const char *what, const char *remedy) {
    if (s->rigid == 0) return FEM_OK;
    if (s->components > 1)
        return fem_fail(FEM_BAD_INPUT,
                        "%s, but the mesh falls into %d pieces that are not joined, and the supports leave %d rigid "
                        "motions (the piece of vertex %d is not held); join the pieces or hold each of them%s",
                        what, s->components, s->rigid, s->loose, remedy);
    return fem_fail(FEM_BAD_INPUT,
                    "%s, but the supports leave %d rigid motions; hold three vertices that are not on a line, or "
                    "more%s",
                    what, s->rigid, remedy);
}

// ---- singular beyond rigid motions ---------------------------------------------------------------------------------

// Groups of elements that hang together through faces: their number, and an element outside the largest group.
static fem_status count_groups(const fem_mesh *mesh, int *groups, int *outside) {
    fem_status status = FEM_OK;
    int        n = mesh->element_count, *start = NULL, *adjacent = NULL, largest = 0, group_of_largest = 0;
    int       *group = fem_calloc((size_t)n, sizeof *group), *queue = fem_alloc((size_t)n, sizeof *queue);
    if (!group || !queue) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the groups of %d elements", n);
        goto done;
    }
    FEM_TRY(fem_mesh_element_graph(mesh, &start, &adjacent));
    *groups = 0;
    for (int seed = 0; seed < n; seed++) {
        if (group[seed]) continue;
        int size = 0;
        group[seed] = ++*groups, queue[size++] = seed;
        for (int next = 0; next < size; next++)
            for (int k = start[queue[next]]; k < start[queue[next] + 1]; k++)
                if (!group[adjacent[k]]) group[adjacent[k]] = *groups, queue[size++] = adjacent[k];
        if (size > largest) largest = size, group_of_largest = *groups;
    }
    for (*outside = 0; *outside < n - 1 && group[*outside] == group_of_largest;) ++*outside;
done:
    fem_free(group), fem_free(queue), fem_free(start), fem_free(adjacent);
    return status;
}

fem_status modes_explain_singular(const modes_problem *p, fem_status status) {
    char            message[256];
    int             groups = 0, outside = 0, components = 0;
    int            *component = NULL;
    const fem_mesh *mesh = p->mesh;
    if (status != FEM_INDEFINITE && status != FEM_NO_CONVERGENCE) return status;
    snprintf(message, sizeof message, "%s", fem_message());
    component = fem_alloc((size_t)mesh->vertex_count, sizeof *component);
    bool known = component && fem_mesh_components(mesh, component, &components) == FEM_OK &&
                 count_groups(mesh, &groups, &outside) == FEM_OK;
    fem_free(component);
    if (known && groups > components)
        return fem_fail(
            FEM_BAD_INPUT,
            "the stiffness matrix is singular: the elements form %d groups that only vertices or edges "
            "join, and these are hinges (element %lld is in a smaller group); join the groups by faces, hold "
            "each of them, or remove them",
            groups, fem_mesh_element_number(mesh, outside));
    if (status == FEM_INDEFINITE)
        return fem_fail(status, "the stiffness matrix is singular beyond the rigid motions of the body: %s", message);
    return fem_fail(status, "%s", message);
}

// Rounding of K moves the squared frequency of a mode u, of unit mass, by about 1e-16 u^T diag(K) u. That of the vertex
// with the most stiffness over mass would be no measure: next to massless ones may hang on the body
// (libdomain/collar.c).
fem_status modes_check_stiff(const modes_problem *p, const modes_basis *basis) {
    for (int j = 0; j < basis->r; j++) {
        const double *u = basis->U + (size_t)j * (size_t)basis->n;
        double        scale = 0;
        for (int v = 0; v < p->mesh->vertex_count; v++)
            for (size_t i = 0; i < 3; i++)
                scale +=
                    p->K->value[9 * (size_t)p->K->row_start[v] + 4 * i] * u[3 * (size_t)v + i] * u[3 * (size_t)v + i];
        if (!(basis->omega2[j] > 1e-15 * scale)) {
            fem_fail(FEM_INDEFINITE, "mode %d has no stiffness (omega^2 is %.1e)", j + 1, basis->omega2[j]);
            return modes_explain_singular(p, FEM_INDEFINITE);
        }
    }
    return FEM_OK;
}
