// Training poses that are answers to random loads: f(q) = p, p_i ~ N(0, c sqrt(Q_i)).
//
// Gaussian coordinates are seldom the shape of a body that moves: a slender one bends with hardly any stretch, and a
// sum of random bending modes without the derivatives that belong to it stretches it. The forces at such poses are
// those of the stretch, and a rule that is fitted to 1% of them knows nothing of the much smaller ones that bending
// leaves. For small c both kinds of poses are the same.
#include "libcubature/trainer.h"

#include <math.h>
#include <string.h>

// Newton steps of a pose, and the residual at which it is near enough: the forces are computed anew at whatever q is
// reached, so that this only has to bring the stretch down.
enum { MOST_STEPS = 40, MOST_SHIFTS = 40, MOST_HALVINGS = 20 };
static const double NEAR = 0.02;

typedef struct loaded_work {
    cubature_forces forces;
    const double   *rayleigh;
    double         *p, *f, *d, *next; // r each
    double         *K, *L;            // r x r
    double         *work;
} loaded_work;

static double energy_of(const loaded_work *w, const double *q, double *f, double *K) {
    double energy;
    w->forces.evaluate(w->forces.model, q, &energy, f, K, w->work);
    return energy - dense_dot(w->forces.r, w->p, q);
}

static double size_of(const loaded_work *w, const double *force) {
    double sum = 0;
    for (int l = 0; l < w->forces.r; l++) sum += force[l] * force[l] / w->rayleigh[l];
    return sqrt(sum);
}

// d becomes (K + shift diag(Q))^-1 d with the least shift tried that makes it positive definite.
static bool descend(const loaded_work *w) {
    size_t r = (size_t)w->forces.r;
    double shift = 0;
    for (int k = 0; k<MOST_SHIFTS; k++, shift = shift> 0 ? 4 * shift : 1e-2) {
        memcpy(w->L, w->K, r * r * sizeof *w->L);
        for (size_t l = 0; l < r; l++) w->L[l * r + l] += shift * w->rayleigh[l];
        if (dense_cholesky((int)r, w->L) != FEM_OK) continue;
        dense_cholesky_solve((int)r, w->L, 1, w->d);
        return true;
    }
    return false;
}

// Newton's method from rest, each step downhill in energy. Ends where it can go no further: that is a pose, too.
static void settle(const loaded_work *w, double *q) {
    int    r = w->forces.r;
    double load = size_of(w, w->p);
    memset(q, 0, (size_t)r * sizeof *q);
    for (int step = 0; step < MOST_STEPS; step++) {
        double energy = energy_of(w, q, w->f, w->K), fraction = 1;
        for (int l = 0; l < r; l++) w->d[l] = w->p[l] - w->f[l];
        if (!(size_of(w, w->d) > NEAR * load) || !descend(w)) return;
        int halvings = 0;
        for (; halvings < MOST_HALVINGS; halvings++, fraction /= 2) {
            memcpy(w->next, q, (size_t)r * sizeof *q);
            dense_axpy(r, fraction, w->d, w->next);
            if (energy_of(w, w->next, NULL, NULL) < energy) break; // false when it is not a number
        }
        if (halvings == MOST_HALVINGS) return;
        memcpy(q, w->next, (size_t)r * sizeof *q);
    }
}

fem_status poses_loaded(double *q, const fem_body *body, int r, const double *U, const double *rayleigh,
                        double amplitude, unsigned seed, int count, const fem_progress *progress) {
    fem_status     status = FEM_OK;
    size_t         modes = (size_t)r;
    cubature_full *full = NULL;
    double        *numbers = NULL;
    loaded_work    w = {.rayleigh = rayleigh};
    FEM_TRY(cubature_full_create(&full, body, r, U));
    w.forces = cubature_full_forces(full);
    numbers = fem_alloc(4 * modes + 2 * modes * modes, sizeof *numbers);
    w.work = fem_alloc(w.forces.work, sizeof *w.work);
    if (!numbers || !w.work) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for poses of %d modes", r);
        goto done;
    }
    w.p = numbers, w.f = w.p + modes, w.d = w.f + modes, w.next = w.d + modes;
    w.K = w.next + modes, w.L = w.K + modes * modes;
    for (size_t t = 0; t < (size_t)count; t++) {
        for (size_t l = 0; l < modes; l++) w.p[l] = amplitude * sqrt(rayleigh[l]) * random_normal(seed, t * modes + l);
        settle(&w, q + t * modes);
        if (t % 16 == 0) FEM_TRY(fem_progress_report(progress, "training poses", (double)t / count));
    }
done:
    fem_free(numbers);
    fem_free(w.work);
    cubature_full_destroy(full);
    return status;
}
