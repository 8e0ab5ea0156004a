// Graph algorithms by METIS: the one place that calls it.
#include "libfem/internal.h"

#include <metis.h>
#include <pthread.h>
#include <stdio.h>

_Static_assert(sizeof(idx_t) == sizeof(int), "METIS must be built with 32-bit indices");

void fem_metis_version(char text[32]) {
    snprintf(text, 32, "%d.%d.%d", METIS_VER_MAJOR, METIS_VER_MINOR, METIS_VER_SUBMINOR);
}

// METIS draws from the random numbers of the whole process, which it seeds at the start of every call: two calls side
// by side would mix them, and the order of a graph would be left to chance.
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

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
    pthread_mutex_lock(&one_at_a_time);
    int result = METIS_NodeND(&vertices, xadj, adjncy, NULL, options, order, inverse);
    pthread_mutex_unlock(&one_at_a_time);
    if (result != METIS_OK)
        status = fem_fail(result == METIS_ERROR_MEMORY ? FEM_NO_MEMORY : FEM_BAD_INPUT,
                          "METIS could not order a graph of %d vertices (error %d)", n, result);
done:
    fem_free(xadj);
    fem_free(adjncy);
    fem_free(inverse);
    return status;
}

// ---- partition -------------------------------------------------------------------------------------------------

// Components by a flood: component[v] is numbered by the lowest vertex. `stack` has room for n.
static int graph_components(int n, const int *start, const int *adjacent, int *component, int *stack) {
    int count = 0;
    for (int v = 0; v < n; v++) component[v] = -1;
    for (int v = 0; v < n; v++) {
        if (component[v] >= 0) continue;
        int top = 0;
        stack[top++] = v;
        component[v] = count;
        while (top > 0) {
            int at = stack[--top];
            for (int i = start[at]; i < start[at + 1]; i++)
                if (component[adjacent[i]] < 0) component[adjacent[i]] = count, stack[top++] = adjacent[i];
        }
        count++;
    }
    return count;
}

// How many of the parts each component gets: one each, then the next always to the one with the largest parts.
static void share_parts(int components, const int *size, int parts, int *share) {
    for (int c = 0; c < components; c++) share[c] = 1;
    for (int given = components; given < parts; given++) {
        int best = -1;
        for (int c = 0; c < components; c++)
            if (share[c] < size[c] &&
                (best < 0 || (double)size[c] / (share[c] + 1) > (double)size[best] / (share[best] + 1)))
                best = c;
        if (best < 0) return;
        share[best]++;
    }
}

// More components than parts: the next component goes to the part that is smallest so far.
static void pack_components(int components, const int *size, int parts, int *filled, int *home) {
    for (int p = 0; p < parts; p++) filled[p] = 0;
    for (int c = 0; c < components; c++) {
        int least = 0;
        for (int p = 1; p < parts; p++)
            if (filled[p] < filled[least]) least = p;
        home[c] = least;
        filled[least] += size[c];
    }
}

// One connected graph of n vertices in `parts` >= 2 parts. METIS divides by zero on one part and stops on graphs that
// are not connected when parts shall be contiguous, so neither comes here.
static fem_status partition_connected(int n, int *start, int *adjacent, int parts, int *part) {
    idx_t options[METIS_NOPTIONS], vertices = n, constraints = 1, wanted = parts, cut = 0;
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_NUMBERING] = 0;
    options[METIS_OPTION_SEED] = 1; // the same graph always gets the same parts
    options[METIS_OPTION_CONTIG] = 1;
    options[METIS_OPTION_NCUTS] = 3;
    pthread_mutex_lock(&one_at_a_time);
    int result = METIS_PartGraphKway(&vertices, &constraints, start, adjacent, NULL, NULL, NULL, &wanted, NULL, NULL,
                                     options, &cut, part);
    pthread_mutex_unlock(&one_at_a_time);
    if (result != METIS_OK)
        return fem_fail(result == METIS_ERROR_MEMORY ? FEM_NO_MEMORY : FEM_BAD_INPUT,
                        "METIS could not cut a graph of %d vertices into %d parts (error %d)", n, parts, result);
    return FEM_OK;
}

fem_status fem_graph_partition(int n, const int *start, const int *adjacent, int parts, int *part) {
    if (n < 1 || parts < 1 || parts > n)
        return fem_fail(FEM_BAD_INPUT, "a graph of %d vertices cannot be cut into %d parts, expected 1 to %d", n, parts,
                        n);
    fem_status status = FEM_OK;
    size_t     size = (size_t)n;
    int       *component = fem_alloc(size, sizeof *component), *local = fem_alloc(size, sizeof *local);
    int       *list = fem_alloc(size, sizeof *list), *result = fem_alloc(size, sizeof *result);
    int       *piece_start = fem_alloc(size + 1, sizeof *piece_start);
    int       *piece_adjacent = fem_alloc((size_t)start[n], sizeof *piece_adjacent);
    int       *sizes = fem_calloc(size, sizeof *sizes), *share = fem_alloc(size, sizeof *share);
    if (!component || !local || !list || !result || !piece_start || !piece_adjacent || !sizes || !share) {
        status = fem_fail(FEM_NO_MEMORY, "no memory to cut a graph of %d vertices", n);
        goto done;
    }
    int components = graph_components(n, start, adjacent, component, list);
    for (int v = 0; v < n; v++) sizes[component[v]]++;
    if (components >= parts) { // one part, too: every component stays whole
        pack_components(components, sizes, parts, list, share);
        for (int v = 0; v < n; v++) part[v] = share[component[v]];
        goto done;
    }
    share_parts(components, sizes, parts, share);
    // vertices by component: local[v] is the number of v in its own
    int *next = piece_start; // not in use yet
    next[0] = 0;
    for (int c = 1; c < components; c++) next[c] = next[c - 1] + sizes[c - 1];
    for (int v = 0; v < n; v++) list[next[component[v]]++] = v;
    int first = 0, base = 0;
    for (int c = 0; c < components; first += sizes[c], base += share[c], c++) {
        const int *members = list + first;
        int        edges = 0;
        for (int i = 0; i < sizes[c]; i++) local[members[i]] = i, result[i] = 0;
        if (share[c] > 1) {
            for (int i = 0; i < sizes[c]; i++) {
                piece_start[i] = edges;
                for (int k = start[members[i]]; k < start[members[i] + 1]; k++)
                    piece_adjacent[edges++] = local[adjacent[k]];
            }
            piece_start[sizes[c]] = edges;
            FEM_TRY(partition_connected(sizes[c], piece_start, piece_adjacent, share[c], result));
        }
        for (int i = 0; i < sizes[c]; i++) local[members[i]] = base + result[i];
    }
    for (int v = 0; v < n; v++) part[v] = local[v];
done:
    fem_free(component), fem_free(local), fem_free(list), fem_free(result);
    fem_free(piece_start), fem_free(piece_adjacent), fem_free(sizes), fem_free(share);
    return status;
}
