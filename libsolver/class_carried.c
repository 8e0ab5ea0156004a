// Shapes in which a class follows the interface to its parent.
//
// The coordinates z of the parent deform the interface by Y z, besides moving its frame. A class that follows takes the
// static response to that, H z, of energy z.A z/2, A = H^T K H; the parent's own is z.Kp z/2. Where x.A x is small
// beside x.Kp x it does not matter whether the class follows: so of A x = lambda Kp x those x count whose lambda is
// above a tolerance, and the shapes are H x. Before them come the shapes that the modes of the whole body make there,
// which the parent's basis has too. None couples with another by energy. What the interface does is measured by the
// forces that a shape makes there, which do work on the shape alone: not on the others, and not on rigid motions.
//
// Small strain is not all: far from the interface the response may be a turn of all that hangs there, a lever, whose
// inertia (or spring) the parent would not feel. With the mass of the class and that of what hangs on its places, which
// move rigidly, x.B x = w^2 (H x).m (H x) is the kinetic energy at the highest frequency w that has to be right. It
// must not be above the tolerance either for what is left when the class follows.
#include "libsolver/class_internal.h"

#include <string.h>

static fem_status append(modes_basis *basis, int more, const double *shapes, const double *omega2) {
    modes_basis all = {0};
    size_t      n = (size_t)basis->n, r = (size_t)basis->r;
    fem_status  status = modes_basis_allocate(&all, basis->n, basis->r + more);
    if (status != FEM_OK) return status;
    memcpy(all.U, basis->U, n * r * sizeof *all.U);
    memcpy(all.U + n * r, shapes, n * (size_t)more * sizeof *all.U);
    memcpy(all.omega2, basis->omega2, r * sizeof *all.omega2);
    memcpy(all.omega2 + r, omega2, (size_t)more * sizeof *all.omega2);
    modes_basis_destroy(basis);
    *basis = all;
    return FEM_OK;
}

// Static responses: H = Y - K^-1 K Y with Y zero inside, and K H.
static fem_status respond(const modes_problem *problem, modes_inverse *inverse, int n, int count, double *H,
                          double *KH) {
    fem_sparse_multiply(problem->K, count, H, KH);
    fem_status status = modes_inverse_solve(inverse, count, KH, KH);
    if (status != FEM_OK) return status;
    for (size_t i = 0; i < (size_t)n * (size_t)count; i++) H[i] -= KH[i];
    fem_sparse_multiply(problem->K, count, H, KH);
    return FEM_OK;
}

// What fields do at the held vertices besides moving the frame.
static void take_frame(const modes_problem *problem, int fixed_count, const int *fixed, const double *frame, int count,
                       const double *fields, size_t n, double *Y) {
    size_t held = (size_t)fixed_count;
    for (size_t l = 0; l < (size_t)count; l++) {
        double motion[6] = {0};
        for (size_t c = 0; c < 6; c++)
            for (size_t k = 0; k < held; k++)
                motion[c] += vec3_dot(frame + 3 * (held * c + k), fields + n * l + 3 * (size_t)fixed[k]);
        for (size_t k = 0; k < held; k++) {
            size_t v = 3 * (size_t)fixed[k];
            double t[3];
            vec3_cross(t, motion + 3, problem->mesh->vertices + v);
            for (size_t i = 0; i < 3; i++) Y[n * l + v + i] = fields[n * l + v + i] - motion[i] - t[i];
        }
    }
}

static void symmetric(int n, double *A) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) A[i * n + j] = A[j * n + i] = 0.5 * (A[i * n + j] + A[j * n + i]);
}

// Of a direction of unit energy in the parent: strain that is rounding.
#define NO_STRAIN 1e-12

// The shapes that are found, with their K S, of unit energy.
typedef struct shapes {
    int     n, count, most;
    double *S, *KS;
} shapes;

// H less what the shapes have of it.
static fem_status deflate(const shapes *s, int count, double *H, double *KH) {
    double *c = fem_alloc((size_t)s->count * (size_t)count, sizeof *c);
    if (!c) return fem_fail(FEM_NO_MEMORY, "no memory for %d shapes", count);
    for (int pass = 0; pass < 2 && s->count > 0; pass++) {
        dense_gemm(true, false, s->count, count, s->n, 1, s->KS, H, 0, c);
        dense_gemm(false, false, s->n, count, s->count, -1, s->S, c, 1, H);
        dense_gemm(false, false, s->n, count, s->count, -1, s->KS, c, 1, KH);
    }
    fem_free(c);
    return FEM_OK;
}

// The directions of H x with H^T K H x = lambda B x and lambda above the tolerance, largest first. B: NULL is the
// identity.
static fem_status add_directions(shapes *s, int count, const double *H, const double *KH, const double *B,
                                 double tolerance) {
    fem_status status = FEM_OK;
    size_t     n = (size_t)s->n, square = (size_t)count * (size_t)count;
    double    *A = fem_alloc(square, sizeof *A), *other = fem_alloc(square, sizeof *other);
    double    *values = fem_alloc((size_t)count, sizeof *values);
    if (!A || !other || !values) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d shapes", count);
        goto done;
    }
    dense_gemm(true, false, count, count, s->n, 1, H, KH, 0, A);
    symmetric(count, A);
    if (B) {
        memcpy(other, B, square * sizeof *other);
        FEM_TRY(dense_generalized_eigen(count, A, other, values));
    } else {
        FEM_TRY(dense_symmetric_eigen(count, A, values));
    }
    for (int k = count - 1; k >= 0 && s->count < s->most && values[k] > tolerance; k--) {
        size_t at = n * (size_t)s->count++;
        dense_gemv_set(s->n, count, 1 / sqrt(values[k]), H, A + k * count, s->S + at);
        dense_gemv_set(s->n, count, 1 / sqrt(values[k]), KH, A + k * count, s->KS + at);
    }
done:
    fem_free(A), fem_free(other), fem_free(values);
    return status;
}

// w^2 H^T m H, with rigid inertia on the places: its square root's rows are not needed, only the matrix.
static fem_status find_motion(const modes_problem *problem, double omega2, int place_count, const solver_place *places,
                              size_t n, int count, const double *H, double *MH, double *B) {
    fem_status status = FEM_OK;
    size_t     all = (size_t)count, most = 0;
    double    *X = NULL, *rows = NULL, *motion = fem_alloc(6 * all, sizeof *motion);
    double    *wrench = fem_alloc(6 * all, sizeof *wrench);
    for (int i = 0; i < place_count; i++)
        if ((size_t)places[i].count > most) most = (size_t)places[i].count;
    X = fem_alloc(3 * most, sizeof *X), rows = fem_alloc(18 * most, sizeof *rows);
    if (!motion || !wrench || !X || !rows) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d shapes", count);
        goto done;
    }
    fem_sparse_multiply(problem->M, count, H, MH);
    dense_gemm(true, false, count, count, (int)n, omega2, H, MH, 0, B);
    for (int i = 0; i < place_count; i++) {
        const solver_place *place = &places[i];
        size_t              points = (size_t)place->count;
        if (!place->child) continue;
        for (size_t k = 0; k < points; k++)
            memcpy(X + 3 * k, problem->mesh->vertices + 3 * (size_t)place->vertices[k], 3 * sizeof *X);
        FEM_TRY(domain_interface_wrenches(place->count, X, place->weights, place->pull, rows));
        for (size_t l = 0; l < all; l++)
            for (size_t c = 0; c < 6; c++) {
                motion[6 * l + c] = 0;
                for (size_t k = 0; k < points; k++)
                    motion[6 * l + c] +=
                        vec3_dot(rows + 3 * (points * c + k), H + n * l + 3 * (size_t)place->vertices[k]);
            }
        dense_gemm(false, false, 6, count, 6, omega2, place->inertia, motion, 0, wrench);
        dense_gemm(true, false, count, count, 6, 1, motion, wrench, 1, B);
    }
    symmetric(count, B);
done:
    fem_free(X), fem_free(rows), fem_free(motion), fem_free(wrench);
    return status;
}

// The directions in which H x moves too much, largest first, and of these what strains.
static fem_status add_motions(shapes *s, const modes_problem *problem, double omega2, int place_count,
                              const solver_place *places, int count, const double *H, const double *KH,
                              const double *stiffness, double tolerance, int *added) {
    fem_status status = FEM_OK;
    size_t     n = (size_t)s->n, all = (size_t)count;
    double    *B = fem_alloc(all * all, sizeof *B), *other = fem_alloc(all * all, sizeof *other);
    double    *values = fem_alloc(all, sizeof *values), *X = fem_alloc(n * all, sizeof *X);
    int        taken = 0, before = s->count;
    if (!B || !other || !values || !X) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d shapes", count);
        goto done;
    }
    FEM_TRY(find_motion(problem, omega2, place_count, places, n, count, H, X, B));
    memcpy(other, stiffness, all * all * sizeof *other);
    FEM_TRY(dense_generalized_eigen(count, B, other, values));
    while (taken < count && taken < s->most - s->count && values[count - 1 - taken] > tolerance) taken++;
    if (taken > 0) {
        const double *directions = B + all * (all - (size_t)taken);
        double       *KX = fem_alloc(n * (size_t)taken, sizeof *KX);
        if (!KX) {
            status = fem_fail(FEM_NO_MEMORY, "no memory for %d shapes", count);
            goto done;
        }
        dense_gemm(false, false, s->n, taken, count, 1, H, directions, 0, X);
        dense_gemm(false, false, s->n, taken, count, 1, KH, directions, 0, KX);
        status = add_directions(s, taken, X, KX, NULL, NO_STRAIN);
        fem_free(KX);
    }
done:
    *added = s->count - before;
    fem_free(B), fem_free(other), fem_free(values), fem_free(X);
    return status;
}

fem_status class_add_carried(solver_class *c, const modes_problem *problem, modes_inverse *inverse, int fixed_count,
                             const int *fixed, int place_count, const solver_place *places,
                             const solver_carrier *carrier, int field_count, const double *fields,
                             const double *field_omega2) {
    fem_status status = FEM_OK;
    int        count = carrier->count, n = c->basis.n, wide = count > field_count ? count : field_count;
    size_t     length = (size_t)n, size = length * (size_t)wide;
    shapes     s = {.n = n, .most = carrier->most};
    double    *H = fem_alloc(size, sizeof *H), *KH = fem_alloc(size, sizeof *KH), omega2[SOLVER_MOST_CARRIED];
    s.S = fem_alloc(length * (size_t)s.most, sizeof *s.S), s.KS = fem_alloc(length * (size_t)s.most, sizeof *s.KS);
    if (!H || !KH || !s.S || !s.KS) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for an interface of %d shapes", count);
        goto done;
    }
    if (field_count > 0) {
        memset(H, 0, length * (size_t)field_count * sizeof *H);
        take_frame(problem, fixed_count, fixed, carrier->frame, field_count, fields, length, H);
        for (int k = SEED_FIRST; k < field_count; k++) dense_scale(n, sqrt(SEED_REST), H + length * (size_t)k);
        FEM_TRY(respond(problem, inverse, n, field_count, H, KH));
        FEM_TRY(add_directions(&s, field_count, H, KH, NULL, SEED_SHARE));
    }
    memset(H, 0, length * (size_t)count * sizeof *H);
    for (size_t l = 0; l < (size_t)count; l++)
        for (size_t k = 0; k < (size_t)fixed_count; k++)
            memcpy(H + length * l + 3 * (size_t)fixed[k], carrier->rows + 3 * ((size_t)fixed_count * l + k),
                   3 * sizeof *H);
    FEM_TRY(respond(problem, inverse, n, count, H, KH));
    for (int pass = 0, added = 1; pass < 4 && added > 0; pass++) { // motions, strains, and what these leave of motions
        FEM_TRY(deflate(&s, count, H, KH));
        if (pass == 1) {
            FEM_TRY(add_directions(&s, count, H, KH, carrier->stiffness, carrier->tolerance));
        } else if (field_count > 0) {
            FEM_TRY(add_motions(&s, problem, field_omega2[field_count - 1], place_count, places, count, H, KH,
                                carrier->stiffness, carrier->tolerance, &added));
            if (pass == 0) added = 1;
        }
    }
    for (int k = 0; k < s.count; k++) { // unit mass, like the other modes
        double *shape = s.S + length * (size_t)k;
        fem_sparse_multiply(problem->M, 1, shape, KH);
        double norm = sqrt(dense_dot(n, shape, KH));
        dense_scale(n, 1 / norm, shape);
        omega2[k] = 1 / (norm * norm);
    }
    if (s.count > 0) FEM_TRY(append(&c->basis, s.count, s.S, omega2));
done:
    fem_free(H), fem_free(KH), fem_free(s.S), fem_free(s.KS);
    return status;
}

// Gauss with pivots of rows: A X = B, both s x s row-major; B becomes X. False: singular.
static bool solve(int s, double *A, double *B) {
    for (int k = 0; k < s; k++) {
        int pivot = k;
        for (int i = k + 1; i < s; i++)
            if (fabs(A[i * s + k]) > fabs(A[pivot * s + k])) pivot = i;
        if (!(fabs(A[pivot * s + k]) > 0)) return false;
        for (int j = 0; j < s; j++) {
            double a = A[k * s + j], b = B[k * s + j];
            A[k * s + j] = A[pivot * s + j], B[k * s + j] = B[pivot * s + j];
            A[pivot * s + j] = a, B[pivot * s + j] = b;
        }
        for (int i = 0; i < s; i++) {
            double factor = A[i * s + k] / A[k * s + k];
            if (i == k) continue;
            for (int j = 0; j < s; j++) A[i * s + j] -= factor * A[k * s + j], B[i * s + j] -= factor * B[k * s + j];
        }
    }
    for (int i = 0; i < s; i++)
        for (int j = 0; j < s; j++) B[i * s + j] /= A[i * s + i];
    return true;
}

fem_status class_find_patterns(solver_class *c, const fem_sparse *K, int fixed_count, const int *fixed) {
    fem_status status = FEM_OK;
    size_t     n = (size_t)c->basis.n, r = (size_t)c->basis.r, rows = 3 * (size_t)fixed_count;
    c->carried = 0;
    for (size_t l = r; l-- > 0;) {
        double most = 0;
        for (size_t k = 0; k < rows; k++) most = fmax(most, fabs(c->basis.U[n * l + 3 * (size_t)fixed[k / 3] + k % 3]));
        if (!(most > 0)) break;
        c->carried++;
    }
    if (c->carried == 0) return FEM_OK;
    int     s = c->carried;
    size_t  number = (size_t)s;
    double *forces = fem_alloc(n * number, sizeof *forces), *Y = fem_alloc(rows * number, sizeof *Y);
    double *F = fem_alloc(rows * number, sizeof *F), *A = fem_alloc(number * number, sizeof *A);
    double *B = fem_calloc(number * number, sizeof *B);
    c->patterns = fem_alloc(rows * number, sizeof *c->patterns);
    if (!forces || !Y || !F || !A || !B || !c->patterns) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for an interface of %d shapes", s);
        goto done;
    }
    const double *shape = c->basis.U + n * (r - number);
    fem_sparse_multiply(K, s, shape, forces);
    for (size_t l = 0; l < number; l++)
        for (size_t k = 0; k < rows; k++) {
            size_t at = n * l + 3 * (size_t)fixed[k / 3] + k % 3;
            Y[rows * l + k] = shape[at], F[rows * l + k] = forces[at];
        }
    dense_gemm(true, false, s, s, (int)rows, 1, F, Y, 0, A); // column-major: A[j s + i] = F_i . Y_j
    for (int i = 0; i < s; i++) {
        B[i * (s + 1)] = 1;
        for (int j = 0; j < i; j++) { // to row-major
            double t = A[i * s + j];
            A[i * s + j] = A[j * s + i], A[j * s + i] = t;
        }
    }
    if (!solve(s, A, B)) { // B = A^-1: patterns P = F B^T, so that P_i . Y_j is 1 or 0
        status = fem_fail(FEM_INDEFINITE, "the shapes of the interface to the parent depend on each other");
        goto done;
    }
    memset(c->patterns, 0, rows * number * sizeof *c->patterns);
    for (size_t i = 0; i < number; i++)
        for (size_t j = 0; j < number; j++)
            dense_axpy((int)rows, B[i * number + j], F + rows * j, c->patterns + rows * i);
done:
    fem_free(forces), fem_free(Y), fem_free(F), fem_free(A), fem_free(B);
    return status;
}

// ---- forces --------------------------------------------------------------------------------------------------------

// V(q, w) = V(q) + q.Kqw w + w.Kww w/2: what the interface does to the class is a small deformation beside what the
// class does itself, and its part in the exact polynomial would cost far more than it is worth.
static void evaluate(const void *model, const double *q, double *energy, double *f, double *K, double *work) {
    const solver_class *c = model;
    cubature_forces     inner = cubature_polynomial_forces(&c->polynomial);
    int                 r = c->basis.r, s = c->carried, own = r - s;
    const double       *w = q + own;
    double             *small = work + inner.work, *g = small + (size_t)own * (size_t)own;
    inner.evaluate(inner.model, q, energy, f, K ? small : NULL, work);
    dense_gemv_set(r, s, 1, c->coupling, w, g); // (Kqw w; Kww w)
    if (energy) *energy += dense_dot(own, q, g) + 0.5 * dense_dot(s, w, g + own);
    if (f) {
        dense_axpy(own, 1, g, f);
        for (int a = 0; a < s; a++) f[own + a] = g[own + a] + dense_dot(own, c->coupling + (size_t)a * (size_t)r, q);
    }
    for (int l = 0; K && l < own; l++) {
        memcpy(K + (size_t)l * (size_t)r, small + (size_t)l * (size_t)own, (size_t)own * sizeof *K);
        for (int a = 0; a < s; a++) K[(size_t)l * (size_t)r + (size_t)(own + a)] = c->coupling[a * r + l];
    }
    if (K) memcpy(K + (size_t)own * (size_t)r, c->coupling, (size_t)r * (size_t)s * sizeof *K);
}

fem_status class_couple(solver_class *c, const fem_sparse *K) {
    int     n = c->basis.n, r = c->basis.r, s = c->carried, own = r - s;
    double *product = fem_alloc((size_t)n * (size_t)s, sizeof *product);
    c->coupling = fem_alloc((size_t)r * (size_t)s, sizeof *c->coupling);
    if (!product || !c->coupling) {
        fem_free(product);
        return fem_fail(FEM_NO_MEMORY, "no memory for an interface of %d shapes", s);
    }
    fem_sparse_multiply(K, s, c->basis.U + (size_t)n * (size_t)own, product);
    dense_gemm(true, false, r, s, n, 1, c->basis.U, product, 0, c->coupling);
    for (int a = 0; a < s; a++)
        for (int b = 0; b < a; b++)
            c->coupling[a * r + own + b] = c->coupling[b * r + own + a] =
                0.5 * (c->coupling[a * r + own + b] + c->coupling[b * r + own + a]);
    fem_free(product);
    size_t inner = cubature_polynomial_forces(&c->polynomial).work;
    c->forces = (cubature_forces){
        .r = r, .work = inner + (size_t)own * (size_t)own + (size_t)r, .evaluate = evaluate, .model = c};
    return FEM_OK;
}
