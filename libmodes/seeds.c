// Fields with which a Krylov recursion starts.
#include "libmodes/krylov_internal.h"

#include <string.h>

enum { RIGID_FIELDS = 6, POLYNOMIALS = 24 };

int modes_seed_count(unsigned seeds, int fields) {
    int count = 0;
    for (unsigned bit = 0; bit < RIGID_FIELDS; bit++) count += (seeds >> bit & 1) != 0;
    if (seeds & MODES_SEED_QUADRATIC) count += fields;
    if (seeds & MODES_SEED_RANDOM) count += fields;
    return count;
}

// The middle of the body and half its diagonal, so that all fields are of the same size.
static double middle(const fem_mesh *mesh, double centre[3]) {
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (int v = 0; v < mesh->vertex_count; v++)
        for (int i = 0; i < 3; i++) {
            low[i] = fmin(low[i], mesh->vertices[3 * (size_t)v + (size_t)i]);
            high[i] = fmax(high[i], mesh->vertices[3 * (size_t)v + (size_t)i]);
        }
    for (int i = 0; i < 3; i++) centre[i] = 0.5 * (low[i] + high[i]);
    return 0.5 * vec3_distance(low, high);
}

// Field 0..2: translations; 3..5: rotations e_k x d; then with (a, b) = 00 11 22 01 12 20 the six strains
// d_a e_b + d_b e_a, and the eighteen d_a d_b e_c.
static void field_at(int field, const double d[3], double u[3]) {
    memset(u, 0, 3 * sizeof *u);
    if (field < 3) {
        u[field] = 1;
    } else if (field < RIGID_FIELDS) {
        int k = field - 3, i = (k + 1) % 3, j = (k + 2) % 3;
        u[i] = -d[j], u[j] = d[i];
    } else {
        int polynomial = field - RIGID_FIELDS, pair = polynomial < 6 ? polynomial : (polynomial - 6) / 3;
        int a = pair % 3, b = pair < 3 ? a : (a + 1) % 3;
        if (polynomial < 6)
            u[a] += d[b], u[b] += d[a];
        else
            u[polynomial % 3] = d[a] * d[b];
    }
}

// u = sum of the fields times their coefficients
static void fill_field(const fem_mesh *mesh, const double centre[3], double size, const double *coefficients,
                       double *u) {
    for (int v = 0; v < mesh->vertex_count; v++) {
        double d[3], part[3], sum[3] = {0};
        vec3_sub(d, mesh->vertices + 3 * (size_t)v, centre);
        for (int i = 0; i < 3; i++) d[i] /= size;
        for (int field = 0; field < RIGID_FIELDS + POLYNOMIALS; field++) {
            if (coefficients[field] == 0) continue;
            field_at(field, d, part);
            vec3_axpy(sum, coefficients[field], part);
        }
        memcpy(u + 3 * (size_t)v, sum, sizeof sum);
    }
}

static double random_number(uint64_t *state) { // in [-1, 1)
    return (double)modes_random_bits(state) * (2.0 / 9007199254740992.0) - 1;
}

// Quadratic seeds are mixed at random. All 24 polynomials would make blocks so wide that the recursion gets nowhere: a
// space of r columns holds the lowest modes the better the more powers of K^-1 M it has. And a few polynomials, each by
// itself, would belong to a few classes of a symmetric body: strains are even under inversion, quadratic fields odd,
// and the recursion never leaves a class. Each mixture has a part in all of them.
void modes_seed_fields(const modes_problem *problem, const unsigned char *fixed, unsigned seeds, int fields,
                       unsigned random_state, double *U0) {
    int      n = 3 * problem->mesh->vertex_count, column = 0;
    double   centre[3], size = middle(problem->mesh, centre);
    uint64_t state = random_state;
    for (int field = 0; field < RIGID_FIELDS; field++) {
        double coefficients[RIGID_FIELDS + POLYNOMIALS] = {0};
        coefficients[field] = 1;
        if (seeds >> field & 1)
            fill_field(problem->mesh, centre, size, coefficients, U0 + (size_t)column++ * (size_t)n);
    }
    for (int k = 0; (seeds & MODES_SEED_QUADRATIC) && k < fields; k++) {
        double coefficients[RIGID_FIELDS + POLYNOMIALS] = {0};
        for (int p = 0; p < POLYNOMIALS; p++) coefficients[RIGID_FIELDS + p] = random_number(&state);
        fill_field(problem->mesh, centre, size, coefficients, U0 + (size_t)column++ * (size_t)n);
    }
    for (int k = 0; (seeds & MODES_SEED_RANDOM) && k < fields; k++) {
        double *u = U0 + (size_t)column++ * (size_t)n;
        for (int i = 0; i < n; i++) u[i] = random_number(&state);
    }
    for (int c = 0; c < column; c++)
        for (int i = 0; i < n; i++)
            if (fixed[i]) U0[(size_t)c * (size_t)n + (size_t)i] = 0;
}

// G = X^T B X = V S^2 V^T, X <- X V of the largest S. Through the Gram matrix singular values below 1e-8 of the largest
// drown, which are those that are dropped first.
fem_status modes_compress(int n, int columns, int keep, const double *BX, double *X, double *share) {
    fem_status status = FEM_OK;
    size_t     size = (size_t)columns * (size_t)columns;
    double    *G = fem_alloc(size, sizeof *G), *T = fem_alloc(size, sizeof *T);
    double    *values = fem_alloc((size_t)columns, sizeof *values), kept = 0, all = 0;
    if (!G || !T || !values) {
        status = fem_fail(FEM_NO_MEMORY, "no memory to compress %d seeds", columns);
        goto done;
    }
    FEM_TRY(tall_inner(n, columns, columns, BX, X, G));
    FEM_TRY(dense_symmetric_eigen(columns, G, values));
    for (int j = 0; j < columns; j++) all += fmax(values[j], 0);
    for (int j = 0; j < keep; j++) { // the largest come last
        kept += fmax(values[columns - 1 - j], 0);
        memcpy(T + (size_t)j * (size_t)columns, G + (size_t)(columns - 1 - j) * (size_t)columns,
               (size_t)columns * sizeof *T);
    }
    FEM_TRY(tall_right(n, columns, keep, T, X));
    *share = all > 0 ? kept / all : 1;
done:
    fem_free(G), fem_free(T), fem_free(values);
    return status;
}
