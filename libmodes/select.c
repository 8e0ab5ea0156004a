// Shapes that keep their distance from each other, out of many.
#include "libmodes/krylov_internal.h"

#include <string.h>

typedef struct selection {
    const modes_mass *mass; // NULL: the plain inner product
    int               n, count, chosen_count;
    const double     *X;
    int              *chosen;
    double           *squares; // count: |x|^2
    double           *nearest; // count: squared distance to the nearest that was chosen, or to rest
    double           *image;   // n: M x of the last chosen one
} selection;

// distance^2 = |x|^2 - 2 x . M y + |y|^2, y the column `last`
static double squared_distance(const selection *s, int column, int last) {
    double product = dense_dot(s->n, s->X + (size_t)column * (size_t)s->n, s->image);
    return fmax(s->squares[column] - 2 * product + s->squares[last], 0);
}

static void choose(selection *s, int column) {
    const double *x = s->X + (size_t)column * (size_t)s->n;
    s->chosen[s->chosen_count++] = column;
    if (s->mass)
        modes_mass_multiply(s->mass, 1, x, s->image);
    else
        memcpy(s->image, x, (size_t)s->n * sizeof *x);
}

static void select_sequence(selection *s, double distance, int most) {
    for (int j = 0; j < s->count && s->chosen_count < most; j++) {
        double square = s->chosen_count == 0 ? s->squares[j] : squared_distance(s, j, s->chosen[s->chosen_count - 1]);
        if (square >= distance * distance && square > 0) choose(s, j);
    }
}

static void select_farthest(selection *s, double distance, int most) {
    memcpy(s->nearest, s->squares, (size_t)s->count * sizeof *s->squares);
    while (s->chosen_count < most) {
        int best = 0;
        for (int j = 1; j < s->count; j++)
            if (s->nearest[j] > s->nearest[best]) best = j;
        if (!(s->nearest[best] >= distance * distance && s->nearest[best] > 0)) return;
        choose(s, best);
        for (int j = 0; j < s->count; j++) s->nearest[j] = fmin(s->nearest[j], squared_distance(s, j, best));
        s->nearest[best] = 0;
    }
}

fem_status modes_select(const fem_sparse *M, int n, int count, const double *X, modes_select_method method,
                        double distance, int most, int **chosen, int *chosen_count) {
    fem_status status = FEM_OK;
    modes_mass mass = {0};
    selection  s = {.n = n, .count = count, .X = X};
    if (count < 1 || n < 1) return fem_fail(FEM_BAD_INPUT, "%d shapes of %d rows, expected some", count, n);
    if (!(distance >= 0 && isfinite(distance)) || most < 0)
        return fem_fail(FEM_BAD_INPUT, "select: distance %g and at most %d shapes, expected numbers >= 0", distance,
                        most);
    if (M && n != 3 * M->n) return fem_fail(FEM_BAD_INPUT, "shapes of %d rows and a mass of %d vertices", n, M->n);
    s.chosen = fem_alloc((size_t)count, sizeof *s.chosen);
    s.squares = fem_alloc((size_t)count, sizeof *s.squares);
    s.nearest = fem_alloc((size_t)count, sizeof *s.nearest);
    s.image = fem_alloc((size_t)n, sizeof *s.image);
    if (!s.chosen || !s.squares || !s.nearest || !s.image) {
        status = fem_fail(FEM_NO_MEMORY, "no memory to select among %d shapes", count);
        goto done;
    }
    if (M) {
        FEM_TRY(modes_mass_create(&mass, M));
        s.mass = &mass;
    }
    for (int j = 0; j < count; j++) {
        const double *x = X + (size_t)j * (size_t)n;
        if (M) modes_mass_multiply(&mass, 1, x, s.image);
        s.squares[j] = dense_dot(n, x, M ? s.image : x);
        if (!isfinite(s.squares[j])) {
            status = fem_fail(FEM_BAD_INPUT, "shape %d is not finite", j);
            goto done;
        }
    }
    (method == MODES_SELECT_SEQUENCE ? select_sequence : select_farthest)(&s, distance, most > 0 ? most : count);
    if (s.chosen_count == 0) {
        status = fem_fail(FEM_BAD_INPUT, "none of %d shapes is %g away from rest; a smaller distance would do", count,
                          distance);
        goto done;
    }
    *chosen = s.chosen, *chosen_count = s.chosen_count;
    s.chosen = NULL;
done:
    fem_free(s.chosen), fem_free(s.squares), fem_free(s.nearest), fem_free(s.image);
    modes_mass_destroy(&mass);
    return status;
}
