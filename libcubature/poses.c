// Gaussian training poses.
#include "libcubature/trainer.h"

#include <math.h>
#include <string.h>

void cubature_poses_destroy(cubature_poses *poses) {
    fem_free(poses->q);
    fem_free(poses->f);
    *poses = (cubature_poses){0};
}

// ---- random numbers ------------------------------------------------------------------------------------------------

// splitmix64 of the index [Steele, Lea, Flood 2014]
double random_uniform(unsigned seed, unsigned long index) {
    uint64_t z = ((uint64_t)seed << 40) + (uint64_t)index * 0x9e3779b97f4a7c15u + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return ((double)(z >> 11) + 0.5) / 9007199254740992.0;
}

double random_normal(unsigned seed, unsigned long index) { // Box and Muller
    double u = random_uniform(seed, 2 * index), v = random_uniform(seed, 2 * index + 1);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

// ---- Gaussian poses ------------------------------------------------------------------------------------------------

enum { AMPLITUDE_POSES = 33, SPREAD_SEED = 5000 };
static const double SMALL = 1e-4;    // of the amplitude of other poses
static const double SOFTEST = 1e-12; // of the largest stiffness: what is left of none is rounding

static fem_status check_rayleigh(int r, const double *rayleigh) {
    for (int i = 0; i < r; i++)
        if (!(rayleigh[i] > 0) || !isfinite(rayleigh[i]))
            return fem_fail(
                FEM_BAD_INPUT,
                "cubature: the Rayleigh quotient of mode %d is %g, expected > 0: a mode without stiffness has "
                "no scale for its poses",
                i + 1, rayleigh[i]);
    return FEM_OK;
}

double largest_displacement(int n, const double *u) {
    double most = 0;
    for (int v = 0; v < n / 3; v++) most = fmax(most, vec3_norm(u + 3 * (size_t)v));
    return most;
}

fem_status cubature_amplitude(const fem_body *body, int r, const double *U, const double *rayleigh, double displacement,
                              unsigned seed, double *amplitude) {
    fem_status status = check_rayleigh(r, rayleigh);
    int        n = 3 * fem_body_mesh(body)->vertex_count;
    if (status != FEM_OK) return status;
    double *u = fem_alloc((size_t)n, sizeof *u), *q = fem_alloc((size_t)r, sizeof *q), most[AMPLITUDE_POSES];
    if (!u || !q) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a pose");
        goto done;
    }
    for (int t = 0; t < AMPLITUDE_POSES; t++) {
        for (int l = 0; l < r; l++) q[l] = random_normal(seed, (unsigned long)(t * r + l)) / sqrt(rayleigh[l]);
        dense_gemv_set(n, r, 1, U, q, u);
        most[t] = largest_displacement(n, u);
        for (int k = t; k > 0 && most[k] < most[k - 1]; k--) {
            double swap = most[k];
            most[k] = most[k - 1], most[k - 1] = swap;
        }
    }
    double median = most[AMPLITUDE_POSES / 2];
    if (median > 0 && isfinite(median))
        *amplitude = displacement / median;
    else
        status = fem_fail(FEM_BAD_INPUT, "cubature: the modes do not move the body");
done:
    fem_free(u);
    fem_free(q);
    return status;
}

fem_status poses_shrink_inverted(cubature_poses *p, const reduced_body *b, double *smallest, int *halvings,
                                 int *inverted) {
    fem_status status = FEM_OK;
    size_t     r = (size_t)p->r;
    double    *q = fem_alloc((size_t)p->count, r * sizeof *q), *f = fem_alloc((size_t)p->count, r * sizeof *f);
    double    *J = fem_alloc((size_t)p->count, sizeof *J);
    int       *which = fem_alloc((size_t)p->count, 2 * sizeof *which), *again = which ? which + p->count : NULL;
    if (!q || !f || !J || !which) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d poses", p->count);
        goto done;
    }
    for (int round = 0; round < MOST_HALVINGS; round++) {
        int bad = 0;
        for (int t = 0; t < p->count; t++) {
            if (smallest[t] > 0) continue;
            double size = ldexp(1, halvings[t] > 1 ? -halvings[t] : -1);
            for (size_t l = 0; l < r; l++) q[(size_t)bad * r + l] = p->q[(size_t)t * r + l] * size;
            which[bad++] = t;
        }
        if (inverted && round == 0) *inverted = bad;
        if (bad == 0) break;
        FEM_TRY(pose_forces(b, bad, q, f, J, again));
        for (int i = 0; i < bad; i++) {
            memcpy(p->q + (size_t)which[i] * r, q + (size_t)i * r, r * sizeof *q);
            memcpy(p->f + (size_t)which[i] * r, f + (size_t)i * r, r * sizeof *f);
            smallest[which[i]] = J[i];
            halvings[which[i]] = again[i];
        }
    }
done:
    fem_free(q);
    fem_free(f);
    fem_free(J);
    fem_free(which);
    return status;
}

fem_status poses_normal(cubature_poses *result, const reduced_body *b, const double *centre, const double *sigma,
                        double spread, unsigned seed, int first, int count, int *inverted) {
    fem_status     status = FEM_OK;
    cubature_poses p = {.r = b->r, .count = count};
    size_t         modes = (size_t)b->r;
    if (inverted) *inverted = 0;
    if (count < 1) return fem_fail(FEM_BAD_INPUT, "cubature: no training pose");
    p.q = fem_alloc((size_t)count, modes * sizeof *p.q);
    p.f = fem_alloc((size_t)count, modes * sizeof *p.f);
    double *smallest = fem_alloc((size_t)count, sizeof *smallest);
    int    *halvings = fem_alloc((size_t)count, sizeof *halvings);
    if (!p.q || !p.f || !smallest || !halvings) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d poses", count);
        goto done;
    }
    for (size_t t = 0; t < (size_t)count; t++) {
        double size = pow(spread, random_uniform(seed + SPREAD_SEED, (size_t)first + t));
        for (size_t l = 0; l < modes; l++)
            p.q[t * modes + l] =
                size * ((centre ? centre[l] : 0) + sigma[l] * random_normal(seed, ((size_t)first + t) * modes + l));
    }
    FEM_TRY(pose_forces(b, count, p.q, p.f, smallest, halvings));
    FEM_TRY(poses_shrink_inverted(&p, b, smallest, halvings, inverted));
done:
    fem_free(smallest);
    fem_free(halvings);
    if (status == FEM_OK)
        *result = p;
    else
        cubature_poses_destroy(&p);
    return status;
}

fem_status poses_small(cubature_poses *result, const reduced_body *b, double amplitude) {
    fem_status     status = FEM_OK;
    size_t         r = (size_t)b->r;
    cubature_poses p = {.r = b->r};
    p.q = fem_alloc(r * r, sizeof *p.q);
    p.f = fem_alloc(r * r, sizeof *p.f);
    if (!p.q || !p.f) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d poses", b->r);
        goto done;
    }
    for (size_t k = 0; k < r; k++) {
        if (!(b->values[k] > SOFTEST * b->values[r - 1])) continue;
        double *q = p.q + (size_t)p.count++ * r;
        memcpy(q, b->modes + k * r, r * sizeof *q);
        dense_scale(b->r, SMALL * amplitude / sqrt(b->values[k]), q);
    }
    if (p.count > 0) FEM_TRY(pose_forces(b, p.count, p.q, p.f, NULL, NULL));
done:
    if (status == FEM_OK)
        *result = p;
    else
        cubature_poses_destroy(&p);
    return status;
}

fem_status poses_sample(cubature_poses *poses, const reduced_body *b, const double *rayleigh, double amplitude,
                        double spread, unsigned seed, int count, int *inverted) {
    fem_status status = check_rayleigh(b->r, rayleigh);
    if (status != FEM_OK) return status;
    double *sigma = fem_alloc((size_t)b->r, sizeof *sigma);
    if (!sigma) return fem_fail(FEM_NO_MEMORY, "no memory for %d modes", b->r);
    for (int l = 0; l < b->r; l++) sigma[l] = amplitude / sqrt(rayleigh[l]);
    status = poses_normal(poses, b, NULL, sigma, spread, seed, 0, count, inverted);
    fem_free(sigma);
    return status;
}

fem_status cubature_poses_sample(cubature_poses *poses, const fem_body *body, int r, const double *U,
                                 const double *rayleigh, double amplitude, double spread, unsigned seed, int count,
                                 int *inverted) {
    reduced_body b = {0};
    fem_status   status = reduced_body_create(&b, body, r, U);
    if (status == FEM_OK) status = poses_sample(poses, &b, rayleigh, amplitude, spread, seed, count, inverted);
    reduced_body_destroy(&b);
    return status;
}
