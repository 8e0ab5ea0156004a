// Greedy choice of elements with one weight each: take the element whose column is best aligned with the residual,
// solve for nonnegative weights, repeat to the target error; columns whose weight would be negative go out again. That
// is Lawson and Hanson's method, stopped early, with the factor of the Gram matrix updated (active_set.c).
//
// Optimized cubature [An, Kim, James 2008] looks at a random subset of elements in each step, with all rows of the
// training matrix; only the columns in use are stored.
//
// Empirical cubature [Hernandez, Caicedo, Ferrer 2017; with nonnegative weights as in Farhat, Chapman, Avery 2015]
// first compresses the rows: A is multiplied by a random matrix with one +1 or -1 in each column [Clarkson and Woodruff
// 2013], a few hundred rows that keep the lengths of residuals, and their singular value decomposition leaves the rows
// that matter. All candidates then take part in every step. The weights are fitted to all rows of the training matrix
// in the end, and if their error is not yet what was asked for, the choice goes on with a smaller target. Candidates
// are spread evenly (neighbours in a fine mesh are nearly the same column); columns are made eight at a time and never
// kept whole.
#include "libcubature/active_set.h"
#include "libcubature/fit.h"

#include <math.h>
#include <string.h>

#define INDEPENDENT 1e-10 // of |a|^2: what a column must bring that is new

typedef struct greedy {
    size_t     rows;
    int        capacity;
    active_set set;      // its `column` is a slot
    double    *memory;   // of the set
    double    *A;        // rows x capacity: slots
    int       *element;  // capacity: of a slot, -1 = free
    double    *residual; // rows
    double    *g;        // capacity
    double     b_norm;
    double     error;
} greedy;

static void greedy_destroy(greedy *g) {
    fem_free(g->memory);
    fem_free(g->A);
    fem_free(g->element);
    fem_free(g->residual);
    fem_free(g->g);
}

static fem_status greedy_create(greedy *g, size_t rows, int capacity, const double *b) {
    *g = (greedy){.rows = rows, .capacity = capacity, .error = 1};
    g->memory = fem_alloc(active_set_doubles(capacity), sizeof *g->memory);
    g->A = fem_alloc(rows * (size_t)capacity, sizeof *g->A);
    g->element = fem_alloc((size_t)capacity, sizeof *g->element);
    g->residual = fem_copy(b, rows, sizeof *b);
    g->g = fem_alloc((size_t)capacity, sizeof *g->g);
    if (!g->memory || !g->A || !g->element || !g->residual || !g->g)
        return fem_fail(FEM_NO_MEMORY, "no memory for %d columns of %zu training rows", capacity, rows);
    active_set_place(&g->set, capacity, g->memory);
    memset(g->element, 0xff, (size_t)capacity * sizeof *g->element);
    g->b_norm = dense_norm((int)rows, b);
    return FEM_OK;
}

static double *slot_column(const greedy *g, int slot) { return g->A + (size_t)slot * g->rows; }

static int free_slot(const greedy *g) {
    int slot = 0;
    while (slot < g->capacity && g->element[slot] >= 0) slot++;
    return slot;
}

// Makes room for one more column: twice the slots, the set begun anew from its columns.
static fem_status greedy_room(greedy *g, int most, const double *b) {
    if (g->set.count < g->capacity) return FEM_OK;
    int    capacity = 2 * g->capacity < most + 1 ? 2 * g->capacity : most + 1, rows = (int)g->rows;
    greedy wider = {0};
    if (capacity <= g->capacity) return FEM_OK;
    fem_status status = greedy_create(&wider, g->rows, capacity, b);
    if (status != FEM_OK) {
        greedy_destroy(&wider);
        return status;
    }
    memcpy(wider.A, g->A, g->rows * (size_t)g->capacity * sizeof *g->A);
    for (int k = 0; k < g->set.count; k++) {
        int     slot = g->set.column[k];
        double *l = wider.set.L + (size_t)k * (size_t)capacity;
        memcpy(l, g->set.L + (size_t)k * (size_t)g->capacity, ((size_t)k + 1) * sizeof *l);
        wider.set.column[k] = slot;
        wider.set.c[k] = g->set.c[k];
        wider.set.x[k] = g->set.x[k];
        wider.element[slot] = g->element[slot];
    }
    wider.set.count = g->set.count;
    memcpy(wider.residual, g->residual, (size_t)rows * sizeof *wider.residual);
    wider.error = g->error;
    greedy_destroy(g);
    *g = wider;
    return FEM_OK;
}

// The column stands in its slot already. False when it depends on those in use.
static bool greedy_append(greedy *g, int slot, int element, const double *b) {
    int           rows = (int)g->rows;
    const double *a = slot_column(g, slot);
    for (int k = 0; k < g->set.count; k++) g->g[k] = dense_dot(rows, slot_column(g, g->set.column[k]), a);
    if (!active_set_append(&g->set, slot, g->g, dense_dot(rows, a, a), dense_dot(rows, a, b), INDEPENDENT))
        return false;
    g->element[slot] = element;
    return true;
}

// Weights, residual and error of the columns in use; slots of those that went out are free again.
static void greedy_settle(greedy *g, const double *b) {
    int rows = (int)g->rows;
    active_set_settle(&g->set);
    for (int s = 0; s < g->capacity; s++) {
        bool used = false;
        for (int k = 0; k < g->set.count && !used; k++) used = g->set.column[k] == s;
        if (!used) g->element[s] = -1;
    }
    memcpy(g->residual, b, g->rows * sizeof *b);
    for (int k = 0; k < g->set.count; k++)
        dense_axpy(rows, -g->set.x[k], slot_column(g, g->set.column[k]), g->residual);
    g->error = dense_norm(rows, g->residual) / g->b_norm;
}

// Both. False when the column did not come in or did not stay.
static bool greedy_take(greedy *g, int slot, int element, const double *b) {
    if (!greedy_append(g, slot, element, b)) return false;
    greedy_settle(g, b);
    return g->element[slot] == element;
}

static fem_status greedy_result(const greedy *g, fitted *result) {
    *result = (fitted){.count = g->set.count, .error = g->error};
    result->elements = fem_alloc((size_t)g->set.count, sizeof *result->elements);
    result->weights = fem_alloc((size_t)g->set.count, sizeof *result->weights);
    if (!result->elements || !result->weights) {
        fitted_destroy(result);
        return fem_fail(FEM_NO_MEMORY, "no memory for %d elements", g->set.count);
    }
    for (int k = 0; k < g->set.count; k++) {
        result->elements[k] = g->element[g->set.column[k]];
        result->weights[k] = g->set.x[k];
    }
    return FEM_OK;
}

// ---- optimized -----------------------------------------------------------------------------------------------------

typedef struct scoring {
    const trainer *t;
    const double  *residual;
    int            count;
    const int     *elements;
    double        *columns; // per worker: set_elements columns
    double        *score;
} scoring;

static void score_task(void *context, int index, int worker) {
    scoring *s = context;
    int      width = s->t->set_elements, first = index * width;
    int      count = s->count - first < width ? s->count - first : width, rows = (int)s->t->rows;
    double  *A = s->columns + (size_t)worker * (size_t)width * s->t->rows;
    trainer_some_columns(s->t, worker, count, s->elements + first, A);
    for (int i = 0; i < count; i++) {
        const double *a = A + (size_t)i * s->t->rows;
        double        norm = dense_norm(rows, a);
        s->score[first + i] = norm > 0 ? dense_dot(rows, a, s->residual) / norm : 0;
    }
}

// `count` different elements, none of them in use, in a random order that depends on the step.
static int draw_candidates(const greedy *g, int elements, int count, unsigned seed, int step, int *deck) {
    for (int e = 0; e < elements; e++) deck[e] = e;
    int drawn = 0;
    for (int i = 0; i < elements && drawn < count; i++) {
        int j =
            i + (int)(random_uniform(seed + 77, (unsigned long)step * 1000003u + (unsigned long)i) * (elements - i));
        int  swap = deck[i];
        bool used = false;
        deck[i] = deck[j], deck[j] = swap;
        for (int s = 0; s < g->capacity && !used; s++) used = g->element[s] == deck[i];
        if (!used) deck[drawn++] = deck[i];
    }
    return drawn;
}

fem_status fit_optimized(const trainer *t, const cubature_training_options *o, const fem_progress *progress,
                         const fitted *start, fitted *result) {
    fem_status status = FEM_OK, stopped = FEM_OK;
    int        E = fem_body_mesh(t->body)->element_count, most = o->elements > 0 && o->elements < E ? o->elements : E;
    int        candidates = o->candidates > 0 ? o->candidates : 1000, misses = 0;
    greedy     g = {0};
    scoring    s = {.t = t};
    size_t     worker_columns = (size_t)t->set_elements * t->rows;
    if (most > 2000) most = 2000; // more is no rule any longer
    if ((size_t)most > t->rows) most = (int)t->rows;
    int *deck = fem_alloc((size_t)E, sizeof *deck);
    s.score = fem_alloc((size_t)candidates, sizeof *s.score);
    s.columns = fem_alloc((size_t)fem_threads() * worker_columns, sizeof *s.columns);
    if (!deck || !s.score || !s.columns) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d candidates", candidates);
        goto done;
    }
    int capacity = most < 64 ? most + 1 : 64;
    FEM_TRY(greedy_create(&g, t->rows, capacity, t->b));
    for (int i = 0; start && i < start->count && g.set.count < most; i++) {
        FEM_TRY(greedy_room(&g, most, t->b));
        int slot = free_slot(&g);
        trainer_some_columns(t, 0, 1, start->elements + i, slot_column(&g, slot));
        greedy_append(&g, slot, start->elements[i], t->b);
    }
    if (g.set.count > 0) greedy_settle(&g, t->b);
    int step = start ? start->steps : 0;
    for (; g.error > o->error && g.set.count < most && misses < 20; step++) {
        FEM_TRY(greedy_room(&g, most, t->b));
        s.count = draw_candidates(&g, E, candidates, o->seed, step, deck);
        s.elements = deck, s.residual = g.residual;
        fem_parallel_for((s.count + t->set_elements - 1) / t->set_elements, score_task, &s);
        int best = 0, slot = free_slot(&g);
        for (int i = 1; i < s.count; i++)
            if (s.score[i] > s.score[best]) best = i;
        double before = g.error;
        bool   gains = s.count > 0 && s.score[best] > 1e-12 * g.b_norm;
        if (gains) {
            trainer_some_columns(t, 0, 1, deck + best, slot_column(&g, slot));
            gains = greedy_take(&g, slot, deck[best], t->b) && g.error < before;
        }
        misses = gains ? 0 : misses + 1;
        stopped = fem_progress_report(progress, "optimized cubature", fit_fraction(g.error, o->error));
        if (stopped != FEM_OK) {
            step++;
            break;
        }
    }
    FEM_TRY(greedy_result(&g, result));
    result->steps = step;
    status = stopped;
done:
    fem_free(deck);
    fem_free(s.score);
    fem_free(s.columns);
    greedy_destroy(&g);
    return status;
}

// ---- empirical -----------------------------------------------------------------------------------------------------

typedef struct compression {
    const trainer  *t;
    int             count;
    const int      *elements;
    int             rows;    // of the sketch
    unsigned short *bucket;  // t->rows
    signed char    *sign;    // t->rows
    double         *columns; // per worker
    double         *Y;       // rows x count
} compression;

static void compress(const compression *c, const double *a, double *y) {
    memset(y, 0, (size_t)c->rows * sizeof *y);
    for (size_t i = 0; i < c->t->rows; i++) y[c->bucket[i]] += c->sign[i] * a[i];
}

static void compress_task(void *context, int index, int worker) {
    compression *c = context;
    int          width = c->t->set_elements, first = index * width;
    int          count = c->count - first < width ? c->count - first : width;
    double      *A = c->columns + (size_t)worker * (size_t)width * c->t->rows;
    trainer_some_columns(c->t, worker, count, c->elements + first, A);
    for (int i = 0; i < count; i++)
        compress(c, A + (size_t)i * c->t->rows, c->Y + (size_t)(first + i) * (size_t)c->rows);
}

// The rows that matter: left singular vectors of Y (and b), Z = V^T Y with what is left of |b| and of the columns below
// `tail`. Gives their number; Z (kept x count) and z take the place of Y and y.
static fem_status keep_singular(int rows, int count, double tail, double **Y, double *y, int *kept) {
    fem_status status = FEM_OK;
    size_t     n = (size_t)rows;
    double    *G = fem_alloc(n * n, sizeof *G), *values = fem_alloc(n, sizeof *values), *Z = NULL;
    double    *z = fem_alloc(n, sizeof *z), total = 0, rest = 0;
    if (!G || !values || !z) goto no_memory;
    dense_gemm(false, true, rows, rows, count, 1, *Y, *Y, 0, G);
    for (size_t i = 0; i < n; i++) total += G[i * (n + 1)];
    FEM_TRY(dense_symmetric_eigen(rows, G, values)); // ascending
    int first = 0;
    while (first < rows - 1 && rest + fmax(values[first], 0) <= tail * tail * total) rest += fmax(values[first++], 0);
    *kept = rows - first;
    Z = fem_alloc((size_t)*kept * (size_t)count, sizeof *Z);
    if (!Z) goto no_memory;
    dense_gemm(true, false, *kept, count, rows, 1, G + (size_t)first * n, *Y, 0, Z);
    dense_gemv_t_set(rows, *kept, 1, G + (size_t)first * n, y, z);
    memcpy(y, z, (size_t)*kept * sizeof *y);
    fem_free(*Y);
    *Y = Z;
    Z = NULL;
    goto done;
no_memory:
    status = fem_fail(FEM_NO_MEMORY, "no memory for the singular values of %d x %d", rows, count);
done:
    fem_free(G);
    fem_free(values);
    fem_free(z);
    fem_free(Z);
    return status;
}

// The greedy choice among all columns of Z, down to `target`; goes on from what the greedy holds.
static fem_status choose(greedy *g, const double *Z, const double *z, const double *length, int count, int most,
                         double target, unsigned char *blocked, double *score) {
    fem_status status = FEM_OK;
    int        rows = (int)g->rows;
    while (g->error > target && g->set.count < most) {
        int best = -1;
        dense_gemv_t_set(rows, count, 1, Z, g->residual, score);
        for (int e = 0; e < count; e++)
            if (!blocked[e] && length[e] > 0 && score[e] > 1e-12 * length[e] * g->b_norm &&
                (best < 0 || score[e] * length[best] > score[best] * length[e]))
                best = e;
        if (best < 0) break;
        FEM_TRY(greedy_room(g, most, z));
        int slot = free_slot(g);
        memcpy(slot_column(g, slot), Z + (size_t)best * g->rows, g->rows * sizeof *Z);
        bool kept = greedy_take(g, slot, best, z);
        if (kept)
            for (int e = 0; e < count; e++) blocked[e] = 0;
        blocked[best] = 1;
        for (int k = 0; k < g->set.count; k++) blocked[g->element[g->set.column[k]]] = 1;
    }
done:
    return status;
}

enum { MOST_SKETCH = 1536 };

static int sketch_rows(int r, double error, size_t rows) {
    double wanted = fmin(fmax(1.3 * r / sqrt(error), 96), MOST_SKETCH);
    return wanted < (double)rows ? (int)wanted / 8 * 8 : (int)rows;
}

// One choice with a sketch of so many rows. *coarse: it ended because the sketch could not tell elements apart any
// longer: what is well fitted in it is not in the whole matrix.
static fem_status fit_sketch(const trainer *t, const cubature_training_options *o, int rows, bool largest,
                             const fem_progress *progress, fitted *result, bool *coarse) {
    fem_status      status = FEM_OK;
    const fem_mesh *mesh = fem_body_mesh(t->body);
    int             kept = rows, E = mesh->element_count;
    int             wanted = o->candidates > 0 ? o->candidates : 5 * rows;
    compression     c = {.t = t, .rows = rows};
    greedy          g = {0};
    fitted          f = {0};
    size_t          n = t->rows;
    int            *elements = fem_alloc((size_t)E, sizeof *elements), *chosen = NULL;
    double         *y = fem_alloc((size_t)rows, sizeof *y), *length = NULL, *score = NULL;
    unsigned char  *blocked = NULL;
    c.bucket = fem_alloc(n, sizeof *c.bucket);
    c.sign = fem_alloc(n, sizeof *c.sign);
    c.columns = fem_alloc((size_t)fem_threads() * (size_t)t->set_elements * n, sizeof *c.columns);
    if (!elements || !y || !c.bucket || !c.sign || !c.columns) goto no_memory;
    FEM_TRY(cubature_sample_elements(mesh, wanted < E ? wanted : E, elements, &c.count));
    c.elements = elements;
    c.Y = fem_alloc((size_t)rows * (size_t)c.count, sizeof *c.Y);
    length = fem_alloc((size_t)c.count, sizeof *length);
    score = fem_alloc((size_t)c.count, sizeof *score);
    blocked = fem_calloc((size_t)c.count, 1);
    chosen = fem_alloc((size_t)c.count, sizeof *chosen);
    if (!c.Y || !length || !score || !blocked || !chosen) goto no_memory;
    for (size_t i = 0; i < n; i++) {
        double u = random_uniform(o->seed + 13, i) * 2 * rows;
        c.bucket[i] = (unsigned short)((int)u / 2);
        c.sign[i] = (int)u % 2 ? 1 : -1;
    }
    fem_parallel_for((c.count + t->set_elements - 1) / t->set_elements, compress_task, &c);
    FEM_TRY(fem_progress_report(progress, "empirical cubature", 0.1));
    compress(&c, t->b, y);
    FEM_TRY(keep_singular(rows, c.count, 0.02 * o->error, &c.Y, y, &kept));
    for (int e = 0; e < c.count; e++) length[e] = dense_norm(kept, c.Y + (size_t)e * (size_t)kept);
    int most = o->elements > 0 && o->elements < c.count ? o->elements : c.count;
    if (most > kept) most = kept;
    FEM_TRY(greedy_create(&g, (size_t)kept, most < 64 ? most : 64, y));
    for (double target = o->error;;) {
        int before = g.set.count;
        FEM_TRY(choose(&g, c.Y, y, length, c.count, most, target, blocked, score));
        if (g.set.count == before && g.error > target) { // nothing more to be had
            *coarse = most == kept && !largest;
            break;
        }
        for (int k = 0; k < g.set.count; k++) chosen[k] = elements[g.element[g.set.column[k]]];
        fitted_destroy(&f);
        FEM_TRY(fit_single_weights(t, g.set.count, chosen, &f));
        FEM_TRY(fem_progress_report(progress, "empirical cubature", fit_fraction(f.error, o->error)));
        *coarse = f.error > 2 * fmax(g.error, target) && !largest;
        if (f.error <= o->error || *coarse) break;
        target = fmin(g.error, target) * fmax(0.5, fmin(0.97, o->error / f.error));
    }
    *result = f;
    f = (fitted){0};
    goto done;
no_memory:
    status = fem_fail(FEM_NO_MEMORY, "no memory for the compressed training matrix of %d rows", rows);
done:
    fem_free(elements);
    fem_free(chosen);
    fem_free(y);
    fem_free(length);
    fem_free(score);
    fem_free(blocked);
    fem_free(c.bucket);
    fem_free(c.sign);
    fem_free(c.columns);
    fem_free(c.Y);
    greedy_destroy(&g);
    fitted_destroy(&f);
    return status;
}

fem_status fit_empirical(const trainer *t, const cubature_training_options *o, const fem_progress *progress,
                         fitted *result) {
    int most = t->rows < MOST_SKETCH ? (int)t->rows : MOST_SKETCH, rows = sketch_rows(t->r, o->error, t->rows);
    for (;; rows = 2 * rows < most ? 2 * rows : most) {
        bool       coarse = false;
        fem_status status = fit_sketch(t, o, rows, rows >= most, progress, result, &coarse);
        if (status != FEM_OK || result->error <= o->error || !coarse) return status;
        fitted_destroy(result);
    }
}
