// Forces of a changed body by those of the body before.
#include "libcubature/cubature.h"

#include <stdint.h>
#include <string.h>

struct cubature_stitched {
    cubature_forces inner;
    int             r;
    double         *T, *L; // T is NULL for the identity
};

void cubature_stitched_destroy(cubature_stitched *s) {
    if (!s) return;
    fem_free(s->T), fem_free(s->L);
    fem_free(s);
}

fem_status cubature_stitched_create(cubature_stitched **result, const cubature_forces *inner, int r, const double *T,
                                    const double *L) {
    if (r < 1 || inner->r < 1 || (!T && inner->r != r))
        return fem_fail(FEM_BAD_INPUT, "forces of %d coordinates for a body with %d", inner->r, r);
    for (int i = 0; i < r * r; i++)
        if (!isfinite(L[i])) return fem_fail(FEM_BAD_INPUT, "the stiffness of the springs is not finite");
    cubature_stitched *s = fem_calloc(1, sizeof *s);
    if (!s) return fem_fail(FEM_NO_MEMORY, "no memory for the forces of %d modes", r);
    s->inner = *inner, s->r = r;
    s->L = fem_copy(L, (size_t)r * (size_t)r, sizeof *L);
    s->T = T ? fem_copy(T, (size_t)r * (size_t)inner->r, sizeof *T) : NULL;
    if (!s->L || (T && !s->T)) {
        cubature_stitched_destroy(s);
        return fem_fail(FEM_NO_MEMORY, "no memory for the forces of %d modes", r);
    }
    *result = s;
    return FEM_OK;
}

static void evaluate(const void *model, const double *q, double *energy, double *f, double *K, double *work) {
    const cubature_stitched *s = model;
    int                      r = s->r, m = s->inner.r;
    double *x = work, *g = x + m, *H = g + m, *HT = H + (size_t)m * (size_t)m, *Lq = HT + (size_t)m * (size_t)r,
           *rest = Lq + r;
    if (s->T) {
        dense_gemv_set(m, r, 1, s->T, q, x);
        s->inner.evaluate(s->inner.model, x, energy, f ? g : NULL, K ? H : NULL, rest);
        if (f) dense_gemv_t_set(m, r, 1, s->T, g, f);
        if (K) {
            dense_gemm(false, false, m, r, m, 1, H, s->T, 0, HT);
            dense_gemm(true, false, r, r, m, 1, s->T, HT, 0, K);
        }
    } else {
        s->inner.evaluate(s->inner.model, q, energy, f, K, rest);
    }
    dense_gemv_set(r, r, 1, s->L, q, Lq);
    if (energy) *energy += dense_dot(r, q, Lq) / 2;
    if (f) dense_axpy(r, 1, Lq, f);
    if (K) dense_axpy(r * r, 1, s->L, K);
}

cubature_forces cubature_stitched_forces(const cubature_stitched *s) {
    size_t r = (size_t)s->r, m = (size_t)s->inner.r;
    return (cubature_forces){.r = s->r,
                             .work = s->inner.work + 2 * m + m * m + m * r + r,
                             .evaluate = evaluate,
                             .model = s,
                             .nonconservative = s->inner.nonconservative};
}

fem_status cubature_reuse(cubature_stitched **result, const cubature_forces *old, const modes_basis *old_basis,
                          const fem_sparse *M, const modes_basis *basis, const double *K_new) {
    fem_status status = FEM_OK;
    int        n = basis->n, r = basis->r, m = old_basis->r;
    double    *MU = NULL, *T = NULL, *L = NULL, *H = NULL, *HT = NULL, *zero = NULL;
    if (old->r != m || old_basis->n != n || 3 * M->n != n)
        return fem_fail(FEM_BAD_INPUT, "old forces of %d coordinates and a basis of %d, %d and %d rows", old->r, m,
                        old_basis->n, n);
    MU = fem_alloc((size_t)n * (size_t)r, sizeof *MU), T = fem_alloc((size_t)m * (size_t)r, sizeof *T);
    L = fem_copy(K_new, (size_t)r * (size_t)r, sizeof *L), H = fem_alloc((size_t)m * (size_t)m, sizeof *H);
    HT = fem_alloc((size_t)m * (size_t)r, sizeof *HT), zero = fem_calloc((size_t)m + old->work, sizeof *zero);
    if (!MU || !T || !L || !H || !HT || !zero) {
        status = fem_fail(FEM_NO_MEMORY, "no memory to reuse the forces of %d modes", m);
        goto done;
    }
    fem_sparse_multiply(M, r, basis->U, MU);
    dense_gemm(true, false, m, r, n, 1, old_basis->U, MU, 0, T);
    old->evaluate(old->model, zero, NULL, NULL, H, zero + m);
    dense_gemm(false, false, m, r, m, 1, H, T, 0, HT);
    dense_gemm(true, false, r, r, m, -1, T, HT, 1, L); // L = K_new - T^T K_old(0) T
    FEM_TRY(cubature_stitched_create(result, old, r, T, L));
done:
    fem_free(MU), fem_free(T), fem_free(L), fem_free(H), fem_free(HT), fem_free(zero);
    return status;
}

static double uniform(uint64_t *state) { // in (0, 1]; splitmix64 [Steele, Lea, Flood 2014]
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)(((z ^ (z >> 31)) >> 11) + 1) / 9007199254740992.0;
}

// ---- fresh poses ---------------------------------------------------------------------------------------------------

enum { LOADED_COORDINATES = 6, LOAD_STEPS = 4, LOAD_ITERATIONS = 10 };

typedef struct comparison {
    const cubature_forces *forces, *exact;
    const double          *omega2;
    int                    r;
    double                *q, *f, *g, *load, *K, *work;
} comparison;

static double normal(uint64_t *state) { // Box, Muller 1958
    double radius = sqrt(-2 * log(uniform(state)));
    return radius * cos(6.283185307179586 * uniform(state));
}

// |f| as a displacement
static double answer(const comparison *c, const double *f) {
    double square = 0;
    for (int i = 0; i < c->r; i++) square += f[i] / c->omega2[i] * (f[i] / c->omega2[i]);
    return sqrt(square);
}

// Loads on the softest coordinates, whose linear answer is `amplitude` / omega_i times a normal number.
static void choose_load(comparison *c, double amplitude, uint64_t *state) {
    double last = 0;
    memset(c->load, 0, (size_t)c->r * sizeof *c->load);
    for (int k = 0; k < LOADED_COORDINATES && k < c->r; k++) {
        double next = INFINITY;
        for (int i = 0; i < c->r; i++)
            if (c->omega2[i] > last && c->omega2[i] < next) next = c->omega2[i];
        for (int i = 0; i < c->r; i++)
            if (c->omega2[i] == next) c->load[i] = amplitude * sqrt(next) * normal(state);
        last = next;
    }
}

// Where the forces balance the load: Newton, in a few steps. false: they give way.
static bool find_answer(comparison *c) {
    const cubature_forces *forces = c->forces;
    int                    r = c->r;
    double                 whole = answer(c, c->load);
    memset(c->q, 0, (size_t)r * sizeof *c->q);
    for (int step = 1; step <= LOAD_STEPS; step++) {
        double left = INFINITY;
        for (int k = 0; k < LOAD_ITERATIONS && !(left <= 1e-6 * whole); k++) {
            forces->evaluate(forces->model, c->q, NULL, c->f, c->K, c->work);
            for (int i = 0; i < r; i++) {
                c->f[i] = c->load[i] * step / LOAD_STEPS - c->f[i];
                for (int j = 0; c->omega2[i] > 1e299 && j < r; j++) // it rests
                    c->K[i * r + j] = c->K[j * r + i] = i == j, c->f[i] = 0;
            }
            left = answer(c, c->f);
            if (!isfinite(left) || dense_cholesky(r, c->K) != FEM_OK) return false;
            dense_cholesky_solve(r, c->K, 1, c->f);
            dense_axpy(r, 1, c->f, c->q);
        }
        if (!(left <= 1e-3 * whole)) return false;
    }
    return true;
}

// Lengths of what forces move the body by: in random poses the plain length would be that of the stiffest few.
static double error_at(comparison *c, double whole) {
    c->forces->evaluate(c->forces->model, c->q, NULL, c->f, NULL, c->work);
    c->exact->evaluate(c->exact->model, c->q, NULL, c->g, NULL, c->work);
    if (whole == 0) whole = answer(c, c->g);
    dense_axpy(c->r, -1, c->g, c->f);
    return answer(c, c->f) / whole;
}

// Random poses strain a body in every mode alike, so that small terms of its forces drown: those which cancel when it
// bends, and let it give way when they are missing, only show in poses that answer a load.
fem_status cubature_compare(const cubature_forces *forces, const cubature_forces *exact, const double *omega2,
                            double amplitude, int poses, unsigned seed, cubature_check *check) {
    fem_status     status = FEM_OK;
    int            r = forces->r;
    size_t         n = (size_t)r, work = forces->work > exact->work ? forces->work : exact->work;
    uint64_t       state = seed;
    double         mean[2] = {0};
    cubature_check made = {0};
    comparison     c = {.forces = forces, .exact = exact, .omega2 = omega2, .r = r};
    if (exact->r != r || poses < 1 || !(amplitude > 0) || !isfinite(amplitude))
        return fem_fail(FEM_BAD_INPUT, "%d poses of amplitude %g, and forces of %d and %d coordinates", poses,
                        amplitude, r, exact->r);
    for (int i = 0; i < r; i++)
        if (!(omega2[i] > 0)) return fem_fail(FEM_BAD_INPUT, "omega2[%d] is %g, expected > 0", i, omega2[i]);
    c.q = fem_alloc(4 * n + n * n + work, sizeof *c.q);
    if (!c.q) return fem_fail(FEM_NO_MEMORY, "no memory to compare the forces of %d modes", r);
    c.f = c.q + n, c.g = c.f + n, c.load = c.g + n, c.K = c.load + n, c.work = c.K + n * n;
    for (int p = 0; p < 2 * poses; p++) {
        bool   loaded = p % 2 == 1, found = true;
        double error = 1;
        for (int i = 0; i < r && !loaded; i++) c.q[i] = amplitude / sqrt(omega2[i]) * normal(&state);
        if (loaded) {
            choose_load(&c, amplitude, &state);
            found = find_answer(&c);
        }
        if (found) error = error_at(&c, loaded ? answer(&c, c.load) : 0);
        if (!isfinite(error)) {
            status = fem_fail(FEM_BAD_INPUT, "the forces of pose %d are not finite, or none: amplitude %g", p / 2 + 1,
                              amplitude);
            goto done;
        }
        made.worst = fmax(made.worst, error), mean[loaded] += error / poses;
    }
    made.mean = fmax(mean[0], mean[1]);
    *check = made;
done:
    fem_free(c.q);
    return status;
}
