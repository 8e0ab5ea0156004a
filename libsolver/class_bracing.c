// How the collar of a piece braces its interfaces.
//
// The collar takes the shape of least energy, so its energy is y^T S y / 2 of how the interfaces deform. To small
// motions all of U q deforms them (rigid motions cost nothing). But large rotations, which the displacements show to
// first order and beyond, must cost nothing either. With the in-plane gradient B of the motion, F_j = B t_j, the Green
// strain of the interface is sym(B) + B^T B / 2: so y = U q + sum_e phi_e eta_e, where eta_e = F_j . F_k / 2 is what is
// missing and phi_e the field of that strain. Points off the plane, of jagged interfaces, go with the normal, which
// turns to (t1 + F_1) x (t2 + F_2): three more eta take F_1 x F_2 times their height away. eta is quadratic, so the
// energy is a quartic polynomial of q, like that of the piece.
#include "libsolver/class_internal.h"

#include <stdlib.h>
#include <string.h>

enum { STRAINS = 6 };

typedef struct bracing_work {
    size_t  n, r;
    int     strains; // eta: six of each interface
    double *Y;       // n x (r + strains): motion of interfaces in the modes, fields of strain; then in the collar too
    double *A;       // strains x r x r: eta_e = q.A_e q / 2
    double *S;       // (r + strains)^2
} bracing_work;

// Kw - K: what the elements of the collar make, in the pattern of Kw. Vertices of the piece come first in both.
static fem_status collar_stiffness(const fem_sparse *K, const fem_sparse *Kw, fem_sparse *collar) {
    fem_status status = fem_sparse_copy(collar, Kw);
    for (int i = 0; status == FEM_OK && i < K->n; i++)
        for (int k = K->row_start[i]; k < K->row_start[i + 1]; k++)
            dense_axpy(9, -1, K->value + 9 * (size_t)k,
                       collar->value + 9 * (size_t)fem_sparse_find(collar, i, K->column[k]));
    return status;
}

// One interface: its motion in all modes, fields of its three strains, A of them.
static fem_status add_interface(const solver_class *c, const solver_place *place, int strain, bracing_work *w) {
    fem_status status = FEM_OK;
    size_t     count = (size_t)place->count, r = w->r;
    double    *points = fem_alloc(3 * count, sizeof *points), *rows = fem_alloc(3 * count * r, sizeof *rows);
    double    *F = fem_alloc(6 * r, sizeof *F), *fields = fem_alloc(3 * STRAINS * count, sizeof *fields);
    if (!points || !rows || !F || !fields) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for an interface of %zu points", count);
        goto done;
    }
    for (size_t k = 0; k < count; k++) {
        size_t v = 3 * (size_t)place->vertices[k];
        memcpy(points + 3 * k, c->mesh.vertices + v, 3 * sizeof *points);
        for (size_t l = 0; l < r; l++)
            memcpy(rows + 3 * (count * l + k), c->basis.U + (size_t)c->basis.n * l + v, 3 * sizeof *rows);
    }
    FEM_TRY(domain_interface_strains(place->count, points, place->weights, (int)r, rows, F, fields));
    for (size_t k = 0; k < count; k++) {
        size_t v = 3 * (size_t)place->vertices[k];
        for (size_t l = 0; l < r; l++) memcpy(w->Y + w->n * l + v, rows + 3 * (count * l + k), 3 * sizeof *rows);
        for (size_t e = 0; e < STRAINS; e++)
            memcpy(w->Y + w->n * (r + (size_t)strain + e) + v, fields + 3 * (count * e + k), 3 * sizeof *fields);
    }
    for (size_t i = 0; i < r; i++)
        for (size_t j = 0; j < r; j++) {
            const double *f = F + 6 * i, *g = F + 6 * j;
            double       *A = w->A + (size_t)strain * r * r + i * r + j, x[3], y[3];
            A[0] = vec3_dot(f, g), A[r * r] = vec3_dot(f + 3, g + 3);
            A[2 * r * r] = 0.5 * (vec3_dot(f, g + 3) + vec3_dot(g, f + 3));
            vec3_cross(x, f, g + 3);
            vec3_cross(y, g, f + 3);
            for (size_t e = 0; e < 3; e++) A[(3 + e) * r * r] = -x[e] - y[e];
        }
done:
    fem_free(points), fem_free(rows), fem_free(F), fem_free(fields);
    return status;
}

// Continues Y harmonically into the collar, where that has vertices of its own; S = Y^T Kc Y.
static fem_status condense(const fem_sparse *collar, size_t own, bracing_work *w) {
    fem_status     status = FEM_OK;
    int            columns = (int)w->r + w->strains;
    fem_factor    *factor = NULL;
    double        *Z = fem_alloc(w->n * (size_t)columns, sizeof *Z);
    unsigned char *fixed = fem_calloc(w->n, 1);
    if (!Z || !fixed) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d columns", columns);
        goto done;
    }
    memset(fixed, 1, own);
    if (own < w->n) {
        FEM_TRY(fem_factor_create(&factor, collar, fixed));
        FEM_TRY(fem_factor_factorise(factor, collar));
        fem_sparse_multiply(collar, columns, w->Y, Z);
        FEM_TRY(fem_factor_solve(factor, columns, Z, Z));
        for (size_t i = 0; i < w->n * (size_t)columns; i++) w->Y[i] -= Z[i];
    }
    fem_sparse_multiply(collar, columns, w->Y, Z);
    dense_gemm(true, false, columns, columns, (int)w->n, 1, w->Y, Z, 0, w->S);
done:
    fem_factor_destroy(factor);
    fem_free(Z), fem_free(fixed);
    return status;
}

static int compare_ints(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

// Adds value x q_i q_j q_k q_l, -1 standing for 1.
static void add_monomial(double *c, int i, int j, int k, int l, double value) {
    int m[4] = {i, j, k, l};
    qsort(m, 4, sizeof *m, compare_ints);
    c[cubature_polynomial_index(m[0], m[1], m[2], m[3])] += value;
}

// y.S y/2 with y = (q, eta)
static void expand(const bracing_work *w, double *c) {
    int    r = (int)w->r, size = r + w->strains;
    size_t square = w->r * w->r;
    for (int i = 0; i < r; i++)
        for (int j = 0; j < r; j++) add_monomial(c, -1, -1, i, j, 0.5 * w->S[i * size + j]);
    for (int e = 0; e < w->strains; e++) {
        const double *A = w->A + (size_t)e * square;
        for (int i = 0; i < r; i++)
            for (int j = 0; j < r; j++) {
                for (int k = 0; k < r; k++) add_monomial(c, -1, i, j, k, 0.5 * A[i * r + j] * w->S[(r + e) * size + k]);
                for (int k = 0; k < r; k++)
                    for (int l = 0; l <= k; l++) {
                        double B = 0; // sum over the strains of S_ef A_f
                        for (int f = 0; f < w->strains; f++)
                            B += w->S[(r + e) * size + r + f] * w->A[(size_t)f * square + (size_t)(k * r + l)];
                        add_monomial(c, i, j, k, l, 0.125 * (k == l ? 1 : 2) * A[i * r + j] * B);
                    }
            }
    }
}

fem_status class_bracing(const solver_class *c, int place_count, const solver_place *places, const fem_sparse *K,
                         const fem_sparse *Kw, double *coefficients) {
    fem_status   status = FEM_OK;
    bracing_work w = {.n = 3 * (size_t)Kw->n, .r = (size_t)(c->basis.r - c->carried)};
    fem_sparse   collar = {0};
    int          strain = 0;
    for (int i = 0; i < place_count; i++) w.strains += places[i].child && !places[i].carried ? STRAINS : 0;
    size_t columns = w.r + (size_t)w.strains;
    w.Y = fem_calloc(w.n * columns, sizeof *w.Y);
    w.A = fem_calloc((size_t)w.strains * w.r * w.r, sizeof *w.A);
    w.S = fem_calloc(columns * columns, sizeof *w.S);
    if (!w.Y || !w.A || !w.S) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the collar of %zu modes", w.r);
        goto done;
    }
    FEM_TRY(collar_stiffness(K, Kw, &collar));
    for (int i = 0; i < place_count; i++) {
        if (!places[i].child || places[i].carried) continue; // held, so that it adds nothing
        FEM_TRY(add_interface(c, &places[i], strain, &w));
        strain += STRAINS;
    }
    FEM_TRY(condense(&collar, 3 * (size_t)c->mesh.vertex_count, &w));
    expand(&w, coefficients);
done:
    fem_sparse_destroy(&collar);
    fem_free(w.Y), fem_free(w.A), fem_free(w.S);
    return status;
}
