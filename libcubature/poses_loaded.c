// Training poses that are answers to random loads: f(q) = p with p = c L z, K(0) = L L^T in reduced coordinates and z
// normal, so that for small c every mode has the same strain energy on average, whatever the basis.
//
// Gaussian coordinates are seldom the shape of a body that moves: a slender one bends with hardly any stretch, and a
// sum of random bending modes without the derivatives that belong to it stretches it. The forces at such poses are
// those of the stretch, and a rule that is fitted to 1% of them knows nothing of the much smaller ones that bending
// leaves. The force of a loaded pose is its load.
//
// Newton's method needs K at every step of every pose. It runs on a sample of the elements: at first random ones, each
// standing for the volume around it, then, since poses found so miss their loads by far, a rule that is fitted to a few
// such poses and their forces, which a few thousand random elements tell well enough. What is left of the difference to
// the exact force, which is computed for all poses together, is added to the load: f_s(q') = p + f_s(q) - f(q), which
// converges as fast as the sample is good. Poses that are not quite settled are as good as others: their forces are
// exact in any case.
//
// Springs of stitches are no elements, but poses answer them too: f(q) + S q = p. Without them a part that hangs on
// nothing else would be thrown about stiffly, and a rule would learn nothing of how it bends.
#include "libcubature/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_STEPS = 40,
    MOST_SHIFTS = 40,
    MOST_BACKTRACKS = 20,
    ROUNDS = 2,
    TRIALS = 15,
    CALIBRATIONS = 10,
    SAMPLE_SEED = 4711,
    CROWD_SEED = 4712,
    CROWD_POINTS = 8192,
    FIRST_SEED = 2000
};
static const double SAMPLED = 0.05;    // the error of the sample
static const double NEAR = 0.005;      // of the load, in the norm of K(0)^-1: where Newton's method ends
static const double ENOUGH = 0.25;     // the same, of the exact force
static const double CALIBRATED = 0.05; // of the displacement asked for

void loading_destroy(loading *l) {
    fem_free(l->crowd.order);
    cubature_rule_destroy(&l->sample);
    fem_free(l->K0);
    fem_free(l->L);
    *l = (loading){0};
}

static fem_status factor_stiffness(loading *l) {
    size_t square = (size_t)l->r * (size_t)l->r;
    l->K0 = fem_copy(l->reduced->K0, square, sizeof *l->K0);
    if (l->K0 && l->springs) dense_axpy((int)square, 1, l->springs, l->K0);
    l->L = l->K0 ? fem_copy(l->K0, square, sizeof *l->K0) : NULL;
    if (!l->L) return fem_fail(FEM_NO_MEMORY, "no memory for the stiffness of %d modes", l->r);
    if (dense_cholesky(l->r, l->L) == FEM_OK) return FEM_OK;
    return fem_fail(FEM_BAD_INPUT,
                    "cubature: the stiffness of the %d modes at rest is not positive definite: a "
                    "mode without stiffness has no scale for its poses",
                    l->r);
}

static int compare_ints(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

// Random elements: those nearest to the centres of cells would all lie along the axis of a slender body, and bending
// would cost them nothing.
static int draw_sample(const fem_body *body, int r, int *elements) {
    double weight[27], g[27][24];
    int    E = fem_body_mesh(body)->element_count, points = fem_body_points(body, 0, weight, g);
    int    wanted = (16 * r > 320 ? 16 * r : 320) / points;
    if (wanted < 64) wanted = 64;
    if (wanted > E) wanted = E;
    for (int e = 0; e < E; e++) elements[e] = e;
    for (int i = 0; i < wanted; i++) {
        int j = i + (int)(random_uniform(SAMPLE_SEED, (unsigned long)i) * (E - i)), swap = elements[i];
        elements[i] = elements[j], elements[j] = swap;
    }
    qsort(elements, (size_t)wanted, sizeof *elements, compare_ints);
    return wanted;
}

// Random ones of all elements, in the order of materials: each with the same chance, so that the sum of their forces,
// times the share that they are, is right on average.
static fem_status draw_crowd(loading *l) {
    int E = l->reduced->count, left = CROWD_POINTS / points_per_element(l->reduced->body);
    l->crowd = *l->reduced;
    l->crowd.count = left < E ? left : E;
    l->crowd.order = fem_alloc((size_t)l->crowd.count, sizeof *l->crowd.order);
    if (!l->crowd.order) return fem_fail(FEM_NO_MEMORY, "no memory for a sample of elements");
    left = l->crowd.count;
    for (int e = 0, at = 0; e < E && left > 0; e++) // the chance that is left to those that follow
        if (random_uniform(CROWD_SEED, (unsigned long)e) * (E - e) < left)
            l->crowd.order[at++] = l->reduced->order[e], left--;
    return FEM_OK;
}

static fem_status find_poses(const loading *l, unsigned seed, int count, bool rough, const fem_progress *progress,
                             cubature_poses *result, int *inverted);
static fem_status find_amplitude(loading *l, double displacement, unsigned seed);

// The rule that takes the place of the random sample.
static fem_status fit_sample(loading *l, unsigned seed) {
    cubature_training_options o = cubature_training_default_options();
    cubature_poses            poses = {0};
    cubature_rule             rule = {0};
    reduced_body              by_columns = *l->reduced; // fewer elements, good enough for Newton's method
    int                       inverted;
    fem_status                status = find_poses(l, seed + FIRST_SEED, 60 + 4 * l->r, true, NULL, &poses, &inverted);
    o.error = SAMPLED, o.seed = seed;
    by_columns.modes = NULL;
    if (status == FEM_OK) status = fit_rule(&rule, &by_columns, &poses, &o, NULL, NULL);
    if (status == FEM_OK) {
        cubature_rule_destroy(&l->sample);
        l->sample = rule;
    }
    cubature_poses_destroy(&poses);
    return status;
}

fem_status loading_create(loading *result, const reduced_body *reduced, const double *springs, double displacement,
                          unsigned seed) {
    fem_status      status = FEM_OK;
    const fem_body *body = reduced->body;
    const fem_mesh *mesh = fem_body_mesh(body);
    loading         l = {.reduced = reduced, .springs = springs, .r = reduced->r};
    int             count = 0;
    int            *elements = fem_alloc((size_t)mesh->element_count, sizeof *elements);
    double         *weights = fem_alloc((size_t)mesh->element_count, sizeof *weights);
    if (!elements || !weights) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a sample of elements");
        goto done;
    }
    count = draw_sample(body, l.r, elements);
    FEM_TRY(sample_shares(body, count, elements, weights));
    FEM_TRY(cubature_rule_create(&l.sample, body, l.r, reduced->U, count, elements, false, weights));
    FEM_TRY(factor_stiffness(&l));
    FEM_TRY(draw_crowd(&l));
    FEM_TRY(find_amplitude(&l, displacement, seed));
    FEM_TRY(fit_sample(&l, seed));
    FEM_TRY(find_amplitude(&l, displacement, seed));
    *result = l;
    l = (loading){0};
done:
    fem_free(elements);
    fem_free(weights);
    loading_destroy(&l);
    return status;
}

void loading_draw(const loading *l, unsigned seed, int pose, double *p) {
    size_t r = (size_t)l->r;
    for (size_t i = 0; i < r; i++) p[i] = 0;
    for (size_t k = 0; k < r; k++) {
        double z = l->amplitude * random_normal(seed, (unsigned long)pose * r + k);
        for (size_t i = k; i < r; i++) p[i] += l->L[k * r + i] * z;
    }
}

double loading_size(const loading *l, const double *force) {
    size_t r = (size_t)l->r;
    double sum = 0, y[CUBATURE_MOST_MODES];
    for (size_t i = 0; i < r; i++) {
        y[i] = force[i];
        for (size_t k = 0; k < i; k++) y[i] -= l->L[k * r + i] * y[k];
        y[i] /= l->L[i * r + i];
        sum += y[i] * y[i];
    }
    return sqrt(sum);
}

// ---- one pose ------------------------------------------------------------------------------------------------------

typedef struct settling {
    const loading  *l;
    cubature_forces forces;
    const double   *p;
    double         *f, *d, *next; // r each
    double         *K, *L;        // r x r
    double         *work;
} settling;

static size_t settling_doubles(const loading *l) {
    size_t r = (size_t)l->r;
    return 3 * r + 2 * r * r + cubature_rule_forces(&l->sample).work + 8;
}

static settling settling_place(const loading *l, double *memory) {
    size_t   r = (size_t)l->r;
    settling s = {.l = l, .forces = cubature_rule_forces(&l->sample)};
    s.f = memory, s.d = s.f + r, s.next = s.d + r, s.K = s.next + r, s.L = s.K + r * r, s.work = s.L + r * r;
    return s;
}

// f += S q; gives q^T S q / 2
static double add_springs(const loading *l, const double *q, double *f) {
    size_t r = (size_t)l->r;
    double energy = 0;
    for (size_t i = 0; l->springs && i < r; i++) {
        double force = dense_dot(l->r, l->springs + i * r, q);
        energy += force * q[i] / 2;
        if (f) f[i] += force;
    }
    return energy;
}

static double energy_of(const settling *s, const double *q, double *f, double *K) {
    double energy;
    s->forces.evaluate(s->forces.model, q, &energy, f, K, s->work);
    if (K && s->l->springs) dense_axpy(s->l->r * s->l->r, 1, s->l->springs, K);
    return energy + add_springs(s->l, q, f) - dense_dot(s->forces.r, s->p, q);
}

// d becomes (K + shift K(0))^-1 d with the least shift tried that makes it positive definite.
static bool descend(const settling *s) {
    size_t r = (size_t)s->forces.r;
    double shift = 0;
    for (int k = 0; k<MOST_SHIFTS; k++, shift = shift> 0 ? 4 * shift : 1e-2) {
        memcpy(s->L, s->K, r * r * sizeof *s->L);
        dense_axpy((int)(r * r), shift, s->l->K0, s->L);
        if (dense_cholesky((int)r, s->L) != FEM_OK) continue;
        dense_cholesky_solve((int)r, s->L, 1, s->d);
        return true;
    }
    return false;
}

// Newton's method from q, each step downhill in energy. Ends where it can go no further: that is a pose, too.
static void settle(const settling *s, double *q) {
    int    r = s->forces.r;
    double load = loading_size(s->l, s->p);
    for (int step = 0; step < MOST_STEPS; step++) {
        double energy = energy_of(s, q, s->f, s->K), fraction = 1;
        for (int l = 0; l < r; l++) s->d[l] = s->p[l] - s->f[l];
        if (!(loading_size(s->l, s->d) > NEAR * load) || !descend(s)) return;
        int halvings = 0;
        for (; halvings < MOST_BACKTRACKS; halvings++, fraction /= 2) {
            memcpy(s->next, q, (size_t)r * sizeof *q);
            dense_axpy(r, fraction, s->d, s->next);
            if (energy_of(s, s->next, NULL, NULL) < energy) break; // false when it is not a number
        }
        if (halvings == MOST_BACKTRACKS) return;
        memcpy(q, s->next, (size_t)r * sizeof *q);
    }
}

// ---- many ----------------------------------------------------------------------------------------------------------

typedef struct loaded_work {
    const loading *l;
    size_t         own; // doubles of a worker
    double        *memory;
    double        *q, *p;    // r x count
    unsigned char *finished; // count
} loaded_work;

static void settle_task(void *context, int index, int worker) {
    const loaded_work *w = context;
    settling           s = settling_place(w->l, w->memory + (size_t)worker * w->own);
    if (w->finished && w->finished[index]) return;
    s.p = w->p + (size_t)index * (size_t)w->l->r;
    settle(&s, w->q + (size_t)index * (size_t)w->l->r);
}

static fem_status loaded_work_create(loaded_work *w, const loading *l, int count) {
    size_t r = (size_t)l->r, n = (size_t)count;
    *w = (loaded_work){.l = l, .own = settling_doubles(l)};
    w->memory = fem_alloc((size_t)fem_threads() * w->own, sizeof *w->memory);
    w->q = fem_calloc(n, r * sizeof *w->q);
    w->p = fem_alloc(n, r * sizeof *w->p);
    w->finished = fem_calloc(n, 1);
    return w->memory && w->q && w->p && w->finished ? FEM_OK : fem_fail(FEM_NO_MEMORY, "no memory for %d poses", count);
}

static void loaded_work_destroy(loaded_work *w) {
    fem_free(w->memory);
    fem_free(w->q);
    fem_free(w->p);
    fem_free(w->finished);
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Displacements grow with the load, less than in proportion where the body stiffens.
static fem_status find_amplitude(loading *l, double displacement, unsigned seed) {
    fem_status  status = FEM_OK;
    loaded_work w = {0};
    int         n = 3 * fem_body_mesh(l->reduced->body)->vertex_count;
    size_t      r = (size_t)l->r;
    double     *u = fem_alloc((size_t)n, sizeof *u), most[TRIALS], low = 0, high = INFINITY;
    FEM_TRY(loaded_work_create(&w, l, TRIALS));
    if (!u) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a pose");
        goto done;
    }
    l->amplitude = 1;
    for (int round = 0; round < CALIBRATIONS; round++) {
        for (int t = 0; t < TRIALS; t++) loading_draw(l, seed, t, w.p + (size_t)t * r);
        if (round == 0) { // K(0) q = p
            memcpy(w.q, w.p, TRIALS * r * sizeof *w.q);
            dense_cholesky_solve(l->r, l->L, TRIALS, w.q);
        } else {
            fem_parallel_for(TRIALS, settle_task, &w);
        }
        for (int t = 0; t < TRIALS; t++) {
            dense_gemv_set(n, l->r, 1, l->reduced->U, w.q + (size_t)t * r, u);
            most[t] = largest_displacement(n, u);
        }
        qsort(most, TRIALS, sizeof *most, compare_doubles);
        double median = most[TRIALS / 2];
        if (!(median > 0) || !isfinite(median)) {
            status = fem_fail(FEM_BAD_INPUT, "cubature: the modes do not move the body");
            goto done;
        }
        if (round == 0) {
            l->amplitude = displacement / median;
            memset(w.q, 0, TRIALS * r * sizeof *w.q);
            continue;
        }
        if (fabs(median / displacement - 1) < CALIBRATED) break;
        if (median < displacement)
            low = l->amplitude;
        else
            high = l->amplitude;
        double next = l->amplitude * fmin(4, fmax(0.25, displacement / median));
        l->amplitude = next > low && next < high ? next : isinf(high) ? 2 * low : (low + high) / 2;
    }
done:
    fem_free(u);
    loaded_work_destroy(&w);
    return status;
}

// The poses that are sought: the best found so far, with its force, and by how much of the load it misses it.
typedef struct search {
    loaded_work    work;
    cubature_poses best;
    double        *miss; // infinite: none stood upright yet
    int            open; // poses that are looked at: those of `which`
    int           *which;
    double        *q, *f, *smallest; // r x open, r x open, open
} search;

static void search_destroy(search *s) {
    loaded_work_destroy(&s->work);
    cubature_poses_destroy(&s->best);
    fem_free(s->miss);
    fem_free(s->which);
    fem_free(s->q);
    fem_free(s->f);
    fem_free(s->smallest);
}

static fem_status search_create(search *s, const loading *l, unsigned seed, int count) {
    size_t r = (size_t)l->r, n = (size_t)count;
    *s = (search){.best = {.r = l->r, .count = count}};
    fem_status status = loaded_work_create(&s->work, l, count);
    s->best.q = fem_calloc(n, r * sizeof *s->best.q);
    s->best.f = fem_calloc(n, r * sizeof *s->best.f);
    s->miss = fem_alloc(n, sizeof *s->miss);
    s->which = fem_alloc(n, sizeof *s->which);
    s->q = fem_alloc(n, r * sizeof *s->q);
    s->f = fem_alloc(n, r * sizeof *s->f);
    s->smallest = fem_alloc(n, sizeof *s->smallest);
    if (status != FEM_OK) return status;
    if (!s->best.q || !s->best.f || !s->miss || !s->which || !s->q || !s->f || !s->smallest)
        return fem_fail(FEM_NO_MEMORY, "no memory for %d poses", count);
    for (int t = 0; t < count; t++) {
        loading_draw(l, seed, t, s->work.p + (size_t)t * r);
        s->miss[t] = INFINITY;
    }
    return FEM_OK;
}

static void gather_open(search *s) {
    size_t r = (size_t)s->best.r;
    s->open = 0;
    for (int t = 0; t < s->best.count; t++)
        if (!s->work.finished[t]) {
            memcpy(s->q + (size_t)s->open * r, s->work.q + (size_t)t * r, r * sizeof *s->q);
            s->which[s->open++] = t;
        }
}

// Where the exact force of an open pose is nearer to its load than those before were, both are kept; the load of the
// next round makes up for the difference. load: room for r.
static void correct(search *s, const settling *sample, unsigned seed, double *load) {
    loaded_work *w = &s->work;
    size_t       r = (size_t)w->l->r;
    for (int k = 0; k < s->open; k++) {
        size_t        t = (size_t)s->which[k];
        double       *q = w->q + t * r, *p = w->p + t * r;
        const double *f = s->f + (size_t)k * r;
        loading_draw(w->l, seed, (int)t, load);
        double size = loading_size(w->l, load);
        memcpy(sample->f, f, r * sizeof *f);
        add_springs(w->l, q, sample->f);
        for (size_t i = 0; i < r; i++) load[i] -= sample->f[i]; // what is missing
        double now = loading_size(w->l, load) / size;
        if (!(s->smallest[k] > 0) || !(now < s->miss[t])) { // turned inside out, or no better: what there was before
            w->finished[t] = s->miss[t] < INFINITY;
            for (size_t i = 0; i < r && !w->finished[t]; i++) p[i] /= 2, q[i] /= 4; // inverted from the start
            continue;
        }
        s->miss[t] = now;
        memcpy(s->best.q + t * r, q, r * sizeof *q);
        memcpy(s->best.f + t * r, f, r * sizeof *f);
        w->finished[t] = now < ENOUGH;
        if (w->finished[t]) continue;
        sample->forces.evaluate(sample->forces.model, q, NULL, sample->f, NULL, sample->work);
        add_springs(w->l, q, sample->f);
        for (size_t i = 0; i < r; i++) p[i] = sample->f[i] + load[i];
    }
}

// Poses that never stood upright, halved until they do; *inverted of them.
static fem_status shrink_never_upright(search *s, const reduced_body *b, int *inverted) {
    fem_status     status = FEM_OK;
    size_t         r = (size_t)s->best.r;
    cubature_poses bad = {.r = s->best.r, .q = s->q, .f = s->f};
    *inverted = 0;
    for (int t = 0; t < s->best.count; t++)
        if (isinf(s->miss[t])) {
            memcpy(bad.q + (size_t)bad.count * r, s->work.q + (size_t)t * r, r * sizeof *bad.q);
            s->which[bad.count++] = t;
        }
    if (bad.count == 0) return FEM_OK;
    int *halvings = fem_alloc((size_t)bad.count, sizeof *halvings);
    if (!halvings) return fem_fail(FEM_NO_MEMORY, "no memory for %d poses", bad.count);
    FEM_TRY(pose_forces(b, bad.count, bad.q, bad.f, s->smallest, halvings));
    FEM_TRY(poses_shrink_inverted(&bad, b, s->smallest, halvings, NULL));
    dense_scale(bad.count * bad.r, (double)s->work.l->reduced->count / b->count, bad.f);
    *inverted = bad.count;
    for (int k = 0; k < bad.count; k++) {
        memcpy(s->best.q + (size_t)s->which[k] * r, bad.q + (size_t)k * r, r * sizeof *bad.q);
        memcpy(s->best.f + (size_t)s->which[k] * r, bad.f + (size_t)k * r, r * sizeof *bad.f);
    }
done:
    fem_free(halvings);
    return status;
}

static fem_status find_poses(const loading *l, unsigned seed, int count, bool rough, const fem_progress *progress,
                             cubature_poses *result, int *inverted) {
    fem_status          status = FEM_OK;
    search              s = {0};
    int                 rounds = rough ? 1 : ROUNDS;
    const reduced_body *b = rough ? &l->crowd : l->reduced;
    double             *load = fem_alloc((size_t)l->r, sizeof *load);
    FEM_TRY(search_create(&s, l, seed, count));
    if (!load) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a load");
        goto done;
    }
    for (int round = 0; round < rounds; round++) {
        FEM_TRY(fem_progress_report(progress, "training poses", (double)round / rounds));
        fem_parallel_for(count, settle_task, &s.work);
        gather_open(&s);
        if (s.open == 0) break;
        FEM_TRY(pose_forces(b, s.open, s.q, s.f, s.smallest, NULL));
        dense_scale(s.open * l->r, (double)l->reduced->count / b->count, s.f);
        settling sample = settling_place(l, s.work.memory);
        correct(&s, &sample, seed, load);
    }
    FEM_TRY(shrink_never_upright(&s, b, inverted));
    *result = s.best;
    s.best = (cubature_poses){0};
done:
    fem_free(load);
    search_destroy(&s);
    return status;
}

fem_status loading_poses(const loading *l, unsigned seed, int count, const fem_progress *progress,
                         cubature_poses *poses, int *inverted) {
    return find_poses(l, seed, count, false, progress, poses, inverted);
}
