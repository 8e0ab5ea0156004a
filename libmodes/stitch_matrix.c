// The stiffness of a stitched body as a matrix of its own, for whoever makes everything anew.
#include "libmodes/stitch_internal.h"

#include <limits.h>
#include <stdlib.h>

typedef struct entry { // a block above the diagonal
    int row, column;
} entry;

static int compare_entries(const void *x, const void *y) {
    const entry *p = x, *q = y;
    return p->row != q->row ? (p->row > q->row) - (p->row < q->row) : (p->column > q->column) - (p->column < q->column);
}

// K's rows, with the blocks between stitched vertices merged in where they are not there yet.
static void merge_rows(const modes_stitched *s, const entry *entries, fem_sparse *K) {
    const fem_sparse *old = s->problem->K;
    int               count = 0, e = 0;
    for (int i = 0; i < old->n; i++) {
        double factor = s->domain[i] >= 0 ? s->factor[s->domain[i]] : 1;
        int    k = old->row_start[i], end = old->row_start[i + 1];
        K->row_start[i] = count;
        while (k < end || (e < s->count && entries[e].row == i)) {
            bool    added = e < s->count && entries[e].row == i; // one is waiting
            bool    of_old = k < end && (!added || old->column[k] <= entries[e].column);
            double *value = K->value + 9 * (size_t)count;
            if (added && (!of_old || old->column[k] == entries[e].column)) e++;
            K->column[count++] = of_old ? old->column[k] : entries[e - 1].column;
            for (int a = 0; a < 9; a++) value[a] = of_old ? factor * old->value[9 * (size_t)k + (size_t)a] : 0;
            k += of_old;
        }
    }
    K->row_start[old->n] = K->blocks = count;
}

fem_status modes_stitched_matrix(const modes_stitched *s, fem_sparse *result) {
    const fem_sparse *old = s->problem->K;
    size_t            most = (size_t)old->blocks + (size_t)s->count;
    fem_sparse        K = {.n = old->n};
    if (most > INT_MAX) return fem_fail(FEM_BAD_INPUT, "a matrix of %zu blocks is too large", most);
    entry *entries = fem_alloc((size_t)s->count, sizeof *entries);
    K.row_start = fem_alloc((size_t)old->n + 1, sizeof *K.row_start);
    K.column = fem_alloc(most, sizeof *K.column), K.value = fem_alloc(9 * most, sizeof *K.value);
    if (!entries || !K.row_start || !K.column || !K.value) {
        fem_free(entries);
        fem_sparse_destroy(&K);
        return stitch_no_memory(s, "matrix");
    }
    for (int k = 0; k < s->count; k++) {
        int a = s->stitches[k].a, b = s->stitches[k].b;
        entries[k] = a < b ? (entry){a, b} : (entry){b, a};
    }
    qsort(entries, (size_t)s->count, sizeof *entries, compare_entries); // no two are equal: modes_stitched_add
    merge_rows(s, entries, &K);
    for (int k = 0; k < s->count; k++) {
        int a = s->stitches[k].a, b = s->stitches[k].b;
        int places[3] = {K.row_start[a], K.row_start[b], fem_sparse_find(&K, a < b ? a : b, a < b ? b : a)};
        for (int p = 0; p < 3; p++)
            for (size_t i = 0; i < 9; i += 4)
                K.value[9 * (size_t)places[p] + i] += (p < 2 ? 1 : -1) * s->stitches[k].stiffness;
    }
    fem_free(entries);
    fem_sparse_destroy(result);
    *result = K;
    return FEM_OK;
}
