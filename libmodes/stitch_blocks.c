// The basis of a body in several pieces: each column moves one group of pieces that stitches join, and pieces that
// nothing holds can move and turn.
#include "libmodes/stitch_internal.h"

#include <stdlib.h>
#include <string.h>

// A column that others span to this part of its length is none.
static const double DEPENDENT = 1e-5;

void modes_blocks_destroy(modes_blocks *b) {
    modes_basis_destroy(&b->basis);
    fem_free(b->first), fem_free(b->group), fem_free(b->more);
    *b = (modes_blocks){0};
}

// ---- groups ---------------------------------------------------------------------------------------------------------

static int root_of(int *parent, int i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
}

// Numbers the groups of pieces that stitches join, in the order of the pieces; of_piece: per piece.
static void number_groups(const modes_stitched *s, int *of_piece, int *parent, int *count) {
    for (int d = 0; d < s->domains; d++) parent[d] = d;
    for (int i = 0; i < s->count; i++) {
        int a = root_of(parent, s->domain[s->stitches[i].a]), b = root_of(parent, s->domain[s->stitches[i].b]);
        parent[a > b ? a : b] = a > b ? b : a;
    }
    *count = 0;
    for (int d = 0; d < s->domains; d++) of_piece[d] = parent[d] == d ? (*count)++ : of_piece[root_of(parent, d)];
}

// Marks the pieces, or the groups, that have a vertex which is held in some direction.
static void mark_held(const modes_stitched *s, const int *of_piece, bool *held) {
    for (int v = 0; v < s->n / 3; v++) {
        const unsigned char *fixed = s->inverse->fixed + 3 * (size_t)v;
        if (s->domain[v] >= 0 && (fixed[0] || fixed[1] || fixed[2]))
            held[of_piece ? of_piece[s->domain[v]] : s->domain[v]] = true;
    }
}

// ---- columns --------------------------------------------------------------------------------------------------------

typedef struct builder {
    const modes_stitched *s;
    int                   n, r, first; // columns from `first` on are of the present group
    double               *U;
    size_t                room;
    double               *x, *Mx, *c; // a column, M times it, products
    size_t                product_room;
} builder;

// Takes x, less what the columns of its group have of it, unless hardly anything is left.
static fem_status take_column(builder *b, double length) {
    fem_status status = FEM_OK;
    size_t     n = (size_t)b->n;
    int        count = b->r - b->first;
    double     left = 0;
    FEM_TRY(fem_grow((void **)&b->U, &b->room, n * ((size_t)b->r + 1), sizeof *b->U));
    FEM_TRY(fem_grow((void **)&b->c, &b->product_room, (size_t)b->r + 1, sizeof *b->c));
    for (int pass = 0; pass < 2 && count > 0; pass++) {
        fem_sparse_multiply(b->s->problem->M, 1, b->x, b->Mx);
        dense_gemv_t_set(b->n, count, 1, b->U + n * (size_t)b->first, b->Mx, b->c);
        dense_gemv_add(b->n, count, -1, b->U + n * (size_t)b->first, b->c, b->x);
    }
    fem_sparse_multiply(b->s->problem->M, 1, b->x, b->Mx);
    left = sqrt(fmax(0, dense_dot(b->n, b->x, b->Mx)));
    if (!(left > DEPENDENT * length)) goto done;
    double *u = b->U + n * (size_t)b->r++;
    for (size_t i = 0; i < n; i++) u[i] = b->x[i] / left;
done:
    return status;
}

// x_i and x_i (X_j - c_j), twelve fields: with them a piece can be displaced and turned by any angle, since (Q - 1) X
// is affine in X. `label` of a vertex's piece is that of the pieces that move together.
static fem_status take_motions(builder *b, const int *label, int which) {
    fem_status      status = FEM_OK;
    const fem_mesh *mesh = b->s->problem->mesh;
    double          low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (int v = 0; v < mesh->vertex_count; v++)
        for (int i = 0; i < 3 && b->s->domain[v] >= 0 && label[b->s->domain[v]] == which; i++)
            low[i] = fmin(low[i], mesh->vertices[3 * (size_t)v + (size_t)i]),
            high[i] = fmax(high[i], mesh->vertices[3 * (size_t)v + (size_t)i]);
    double size = vec3_distance(low, high);
    for (int f = 0; f < 12; f++) { // translations first
        int i = f % 3, j = f / 3 - 1;
        memset(b->x, 0, (size_t)b->n * sizeof *b->x);
        for (int v = 0; v < mesh->vertex_count; v++) {
            if (b->s->domain[v] < 0 || label[b->s->domain[v]] != which) continue;
            const double *X = mesh->vertices + 3 * (size_t)v;
            b->x[3 * (size_t)v + (size_t)i] = j < 0 ? 1 : (X[j] - 0.5 * (low[j] + high[j])) / size;
        }
        fem_sparse_multiply(b->s->problem->M, 1, b->x, b->Mx);
        FEM_TRY(take_column(b, sqrt(fmax(0, dense_dot(b->n, b->x, b->Mx)))));
    }
done:
    return status;
}

// Columns of X, as far as they move this group; `length`: those of X are so long.
static fem_status take_parts(builder *b, const int *of_piece, int group, int count, const double *X,
                             const double *length) {
    fem_status status = FEM_OK;
    for (int j = 0; j < count; j++) {
        const double *from = X + (size_t)j * (size_t)b->n;
        double        largest = 0;
        for (int i = 0; i < b->n; i++) {
            int piece = b->s->domain[i / 3];
            b->x[i] = piece >= 0 && of_piece[piece] == group ? from[i] : 0;
            largest = fmax(largest, fabs(b->x[i]));
        }
        if (largest > 0) FEM_TRY(take_column(b, length ? length[j] : 1));
    }
done:
    return status;
}

// Squared frequencies of a basis with motions that have none: poses that are drawn by them move these as far as the
// lowest mode.
static fem_status measure(const modes_stitched *s, const modes_basis *given, modes_basis *basis) {
    double lowest = INFINITY;
    for (int j = 0; j < given->r; j++)
        if (given->omega2[j] > 0) lowest = fmin(lowest, given->omega2[j]);
    fem_status status = modes_stitched_rayleigh(s, basis);
    for (int j = 0; j < basis->r && isfinite(lowest); j++) basis->omega2[j] = fmax(basis->omega2[j], lowest);
    return status;
}

fem_status modes_stitched_blocks(modes_stitched *s, const modes_basis *basis, bool motions, const bool *moving,
                                 int count, const double *X, modes_blocks *result) {
    fem_status            status = FEM_OK;
    modes_blocks          made = {0};
    modes_stitched_report report = {0};
    builder               b = {.s = s, .n = s->n};
    int                  *of_piece = fem_alloc(3 * (size_t)s->domains, sizeof *of_piece), *parent, *own;
    bool                 *held = fem_calloc(2 * (size_t)s->domains, sizeof *held), *group_held;
    double               *length = fem_calloc((size_t)count + 1, sizeof *length);
    int                   free_groups = 0;
    parent = of_piece ? of_piece + s->domains : NULL, own = parent ? parent + s->domains : NULL;
    group_held = held ? held + s->domains : NULL;
    b.x = fem_alloc((size_t)s->n, sizeof *b.x), b.Mx = fem_alloc((size_t)s->n, sizeof *b.Mx);
    made.group = fem_alloc((size_t)s->n / 3, sizeof *made.group);
    made.first = fem_calloc((size_t)s->domains + 1, sizeof *made.first);
    if (!of_piece || !held || !length || !b.x || !b.Mx || !made.group || !made.first) {
        status = stitch_no_memory(s, "the pieces of a body");
        goto done;
    }
    if (basis->n != s->n) {
        status = fem_fail(FEM_BAD_INPUT, "a basis with %d rows for a body with %d", basis->n, s->n);
        goto done;
    }
    number_groups(s, of_piece, parent, &made.count);
    for (int v = 0; v < s->n / 3; v++) made.group[v] = s->domain[v] >= 0 ? of_piece[s->domain[v]] : -1;
    mark_held(s, NULL, held), mark_held(s, of_piece, group_held);
    for (int g = 0; g < made.count; g++) free_groups += !group_held[g];
    if (motions) FEM_TRY(modes_stitched_get_report(s, &report));
    for (int j = 0; j < count; j++) {
        fem_sparse_multiply(s->problem->M, 1, X + (size_t)j * (size_t)s->n, b.Mx);
        length[j] = sqrt(fmax(0, dense_dot(s->n, X + (size_t)j * (size_t)s->n, b.Mx)));
    }
    bool firm = report.loose == 6 * free_groups; // what is joined moves as one
    for (int d = 0; d < s->domains; d++) parent[d] = d;
    for (int g = 0; g < made.count; g++) {
        made.first[g] = b.first = b.r;
        if (motions && firm && !group_held[g]) FEM_TRY(take_motions(&b, of_piece, g));
        for (int d = 0; motions && d < s->domains; d++)
            if (of_piece[d] == g && !held[d] && (!firm || (moving && moving[d]))) FEM_TRY(take_motions(&b, parent, d));
        made.motions += b.r - b.first;
        FEM_TRY(take_parts(&b, of_piece, g, basis->r, basis->U, NULL));
        own[g] = b.r;
        FEM_TRY(take_parts(&b, of_piece, g, count, X, length));
    }
    made.first[made.count] = b.r;
    made.more = fem_calloc((size_t)b.r + 1, sizeof *made.more);
    if (!made.more) {
        status = stitch_no_memory(s, "the pieces of a body");
        goto done;
    }
    for (int g = 0; g < made.count; g++)
        for (int j = own[g]; j < made.first[g + 1]; j++) made.more[j] = true;
    FEM_TRY(modes_basis_allocate(&made.basis, s->n, b.r));
    memcpy(made.basis.U, b.U, (size_t)s->n * (size_t)b.r * sizeof *b.U);
    FEM_TRY(measure(s, basis, &made.basis));
    *result = made;
    made = (modes_blocks){0};
done:
    modes_blocks_destroy(&made);
    fem_free(of_piece), fem_free(held), fem_free(length), fem_free(b.x), fem_free(b.Mx), fem_free(b.U), fem_free(b.c);
    return status;
}

// ---- several domains --------------------------------------------------------------------------------------------

typedef struct padded {
    double omega2;
    int    part, column;
} padded;

static int compare_padded(const void *x, const void *y) {
    const padded *p = x, *q = y;
    if (p->omega2 != q->omega2) return p->omega2 < q->omega2 ? -1 : 1;
    if (p->part != q->part) return p->part < q->part ? -1 : 1;
    return p->column < q->column ? -1 : 1;
}

fem_status modes_pad(modes_basis *result, int vertices, int count, const modes_basis *const *part, const int *first,
                     const double *factor) {
    fem_status  status = FEM_OK;
    modes_basis basis = {0};
    padded     *order = NULL;
    long        total = 0;
    int         next = 0;
    for (int i = 0; i < count; i++) {
        total += part[i]->r;
        if (first[i] < 0 || part[i]->n / 3 > vertices - first[i])
            return fem_fail(FEM_BAD_INPUT, "modes of domain %d: vertices %d to %d, but the body has %d", i, first[i],
                            first[i] + part[i]->n / 3 - 1, vertices);
    }
    if (total < 1 || total > 100000)
        return fem_fail(FEM_BAD_INPUT, "%ld modes in %d domains, expected 1 to 100000", total, count);
    order = fem_alloc((size_t)total, sizeof *order);
    if (!order) return fem_fail(FEM_NO_MEMORY, "no memory for %ld modes", total);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < part[i]->r; j++)
            order[next++] = (padded){part[i]->omega2[j] * (factor ? factor[i] : 1), i, j};
    qsort(order, (size_t)total, sizeof *order, compare_padded);
    FEM_TRY(modes_basis_allocate(&basis, 3 * vertices, (int)total));
    for (int k = 0; k < total; k++) {
        const modes_basis *from = part[order[k].part];
        memcpy(basis.U + (size_t)k * (size_t)basis.n + 3 * (size_t)first[order[k].part],
               from->U + (size_t)order[k].column * (size_t)from->n, (size_t)from->n * sizeof *basis.U);
        basis.omega2[k] = order[k].omega2;
    }
    modes_basis_destroy(result);
    *result = basis;
done:
    fem_free(order);
    return status;
}
