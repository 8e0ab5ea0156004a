// Training as a whole: poses, fit, test with poses that were held out; and what is kept of an interrupted one.
//
// Incremental generation (P0 Algorithm 1): 3/2 |E| Gaussian poses, then batches of |E|/3, each around the mean of the
// worst fifth of all poses so far, until the error of a modal fit to |E| evenly spread elements settles. P0 line 17
// sets a standard deviation that is not dimensionally sound; its text wants the worst set within one sigma of its mean,
// and sigma here is the root mean square of the worst set's deviations (their maximum would grow from batch to batch).
// P0 eq. 12 divides by T where it means r, and would stop at once.
#include "libcubature/fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHECKPOINT_VERSION = 4, HELD_OUT_SEED = 1000 };
enum { REFIT_ELEMENTS = 10, REFIT_POSES = 3, REFIT_HELD_OUT = 20 }; // the first two for each mode

const char *cubature_method_name(cubature_method method) {
    static const char *const names[] = {"empirical", "modal", "optimized"};
    return (int)method >= 0 && method <= CUBATURE_OPTIMIZED ? names[method] : "?";
}

int cubature_error_digits(double error) { return (int)fmin(fmax(floor(log10(100 * error + 0.5)) + 1, 2), 15); }

cubature_training_options cubature_training_default_options(void) {
    return (cubature_training_options){.method = CUBATURE_EMPIRICAL,
                                       .error = 0.01,
                                       .displacement = 0.1,
                                       .spread = 1,
                                       .held_out = 100,
                                       .seed = 1,
                                       .settled = 0.005,
                                       .recentre = true,
                                       .loaded = true,
                                       .balanced = true,
                                       .most_poses = 5000};
}

fem_hash cubature_training_hash(fem_hash hash, const cubature_training_options *o) {
    const int    counts[] = {(int)o->method, o->elements, o->poses,    o->held_out,   (int)o->seed, o->candidates,
                             o->balanced,    o->loaded,   o->recentre, o->most_poses, o->sample};
    const double numbers[] = {o->error, o->displacement, o->spread, o->settled};
    return fem_hash_add(fem_hash_add(hash, counts, sizeof counts), numbers, sizeof numbers);
}

fem_status cubature_rayleigh(const modes_basis *basis, const fem_sparse *K, const fem_sparse *M, double *rayleigh) {
    size_t  n = (size_t)basis->n;
    double *work = fem_alloc(n, sizeof *work);
    if (!work) return fem_fail(FEM_NO_MEMORY, "no memory for %d modes", basis->r);
    for (int l = 0; l < basis->r; l++) {
        const double *u = basis->U + (size_t)l * n;
        fem_sparse_multiply(K, 1, u, work);
        rayleigh[l] = dense_dot(basis->n, u, work);
        fem_sparse_multiply(M, 1, u, work);
        rayleigh[l] /= dense_dot(basis->n, u, work);
    }
    fem_free(work);
    return FEM_OK;
}

static fem_status bad_count(const char *name, int value, const char *rule) {
    return fem_fail(FEM_BAD_INPUT, "cubature.%s is %d, expected %s", name, value, rule);
}

static fem_status bad_number(const char *name, double value, const char *rule) {
    return fem_fail(FEM_BAD_INPUT, "cubature.%s is %g, expected %s", name, value, rule);
}

fem_status cubature_training_check(const cubature_training_options *o) {
    if ((int)o->method < 0 || o->method > CUBATURE_OPTIMIZED) return bad_count("method", (int)o->method, "0, 1 or 2");
    if (!(o->error > 0 && o->error < 1)) return bad_number("error", o->error, "in (0, 1)");
    if (o->elements < 0) return bad_count("elements", o->elements, ">= 0");
    if (o->poses < 0 || o->poses > 1000000) return bad_count("poses", o->poses, "from 0 to 1000000");
    if (o->given_count < 0 || o->given_count > 1000000)
        return bad_count("given poses", o->given_count, "from 0 to 1000000");
    if (!(o->displacement > 0 && o->displacement <= 10))
        return bad_number("displacement", o->displacement, "in (0, 10]");
    if (!(o->spread > 0 && o->spread <= 1)) return bad_number("spread", o->spread, "in (0, 1]");
    if (o->held_out < 0 || o->held_out > 1000000) return bad_count("held_out", o->held_out, "from 0 to 1000000");
    if (o->sample < 0) return bad_count("sample", o->sample, ">= 0");
    if (o->candidates < 0) return bad_count("candidates", o->candidates, ">= 0");
    if (!(o->settled > 0 && o->settled < 1)) return bad_number("settled", o->settled, "in (0, 1)");
    if (o->most_poses < 1 || o->most_poses > 1000000)
        return bad_count("most_poses", o->most_poses, "from 1 to 1000000");
    return FEM_OK;
}

// ---- the state of a training ---------------------------------------------------------------------------------------

typedef struct training {
    reduced_body                     reduced;
    const fem_body                  *body; // its
    int                              r;
    const double                    *rayleigh;
    const cubature_training_options *options;
    const fem_progress              *progress;
    cubature_poses                   poses;
    double                           amplitude, error;            // error: of the last batch's fit
    int                              batches, inverted, complete; // complete: no more poses are made
    fitted                           chosen;                      // by an interrupted optimized cubature
    bool                             resumed;
    loading                          loading; // of loaded poses
    double                          *numbers; // 2 r: where the next poses lie
} training;

static bool is_modal(const training *t) { return t->options->method == CUBATURE_MODAL; }

static void training_destroy(training *t) {
    cubature_poses_destroy(&t->poses);
    fitted_destroy(&t->chosen);
    loading_destroy(&t->loading);
    reduced_body_destroy(&t->reduced);
    fem_free(t->numbers);
}

static fem_status write_checkpoint(const training *t) {
    if (!t->options->checkpoint) return FEM_OK;
    const int size[] = {t->r, t->poses.count, t->batches, t->inverted, t->complete, t->chosen.count, t->chosen.steps};
    const double   state[] = {t->amplitude, t->error};
    size_t         values = (size_t)t->r * (size_t)t->poses.count;
    fem_store_item items[] = {{"size", FEM_STORE_INT, 7, size},
                              {"state", FEM_STORE_DOUBLE, 2, state},
                              {"q", FEM_STORE_DOUBLE, values, t->poses.q},
                              {"f", FEM_STORE_DOUBLE, values, t->poses.f},
                              {"chosen", FEM_STORE_INT, (size_t)t->chosen.count, t->chosen.elements}};
    return fem_store_write(t->options->checkpoint, "training", CHECKPOINT_VERSION, t->options->checkpoint_key, 5,
                           items);
}

// Takes up what a checkpoint of the same training holds; anything else is as if there were none.
static fem_status read_checkpoint(training *t) {
    fem_store  store = {0};
    fem_status status = FEM_OK;
    if (!t->options->checkpoint) return FEM_OK;
    if (fem_store_read(&store, t->options->checkpoint, "training", CHECKPOINT_VERSION) != FEM_OK) return FEM_OK;
    const int    *size = fem_store_find(&store, "size", FEM_STORE_INT, 7);
    const double *state = fem_store_find(&store, "state", FEM_STORE_DOUBLE, 2);
    bool          sane = size && state && fem_hash_equal(store.key, t->options->checkpoint_key) && size[0] == t->r &&
                size[1] > 0 && size[1] <= 2000000 && size[5] >= 0 && size[5] <= fem_body_mesh(t->body)->element_count;
    size_t        values = sane ? (size_t)size[0] * (size_t)size[1] : 0;
    const double *q = fem_store_find(&store, "q", FEM_STORE_DOUBLE, values);
    const double *f = fem_store_find(&store, "f", FEM_STORE_DOUBLE, values);
    const int    *chosen = sane ? fem_store_find(&store, "chosen", FEM_STORE_INT, (size_t)size[5]) : NULL;
    sane = sane && q && f && (chosen || size[5] == 0);
    for (int i = 0; sane && i < size[5]; i++)
        sane = chosen[i] >= 0 && chosen[i] < fem_body_mesh(t->body)->element_count;
    if (sane) {
        t->poses = (cubature_poses){.r = t->r, .count = size[1]};
        t->poses.q = fem_copy(q, values, sizeof *q);
        t->poses.f = fem_copy(f, values, sizeof *f);
        t->chosen.elements = fem_copy(chosen, (size_t)size[5], sizeof *chosen);
        t->chosen.count = size[5], t->chosen.steps = size[6];
        t->batches = size[2], t->inverted = size[3], t->complete = size[4];
        t->amplitude = state[0], t->error = state[1];
        t->resumed = true;
        if (!t->poses.q || !t->poses.f || !t->chosen.elements)
            status = fem_fail(FEM_NO_MEMORY, "no memory for a checkpoint of %d poses", size[1]);
    }
    fem_store_destroy(&store);
    return status;
}

// ---- poses ---------------------------------------------------------------------------------------------------------

static fem_status add_poses(training *t, cubature_poses *more) {
    size_t  r = (size_t)t->r, old = (size_t)t->poses.count, all = old + (size_t)more->count;
    double *q = fem_realloc(t->poses.q, all, r * sizeof *q);
    if (q) t->poses.q = q;
    double *f = q ? fem_realloc(t->poses.f, all, r * sizeof *f) : NULL;
    if (f) t->poses.f = f;
    if (!q || !f) return fem_fail(FEM_NO_MEMORY, "no memory for %zu poses", all);
    memcpy(q + old * r, more->q, (size_t)more->count * r * sizeof *q);
    memcpy(f + old * r, more->f, (size_t)more->count * r * sizeof *f);
    t->poses.r = t->r;
    t->poses.count = (int)all;
    return FEM_OK;
}

// Mean and spread of the fifth of the poses where the rule is worst.
static fem_status find_worst(const training *t, const cubature_rule *rule, double *centre, double *sigma) {
    cubature_forces forces = cubature_rule_forces(rule);
    int             count = t->poses.count, worst = (count + 4) / 5, r = t->r;
    size_t          modes = (size_t)r;
    double         *error = fem_alloc((size_t)count, 2 * sizeof *error), *work = error_work(&forces);
    fem_status      status = FEM_OK;
    if (!error || !work) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for the errors of %d poses", count);
        goto done;
    }
    double *sorted = error + count;
    for (int i = 0; i < count; i++)
        sorted[i] = error[i] =
            pose_error(&forces, t->poses.q + (size_t)i * modes, t->poses.f + (size_t)i * modes, work);
    for (int i = 0; i < worst; i++) // the worst first, by selection
        for (int k = i + 1; k < count; k++)
            if (sorted[k] > sorted[i]) {
                double swap = sorted[i];
                sorted[i] = sorted[k], sorted[k] = swap;
            }
    double bound = sorted[worst - 1];
    int    taken = 0;
    for (size_t l = 0; l < modes; l++) centre[l] = sigma[l] = 0;
    for (int i = 0; i < count; i++)
        if (error[i] >= bound) dense_axpy(r, 1, t->poses.q + (size_t)i * modes, centre), taken++;
    dense_scale(r, 1.0 / taken, centre);
    for (int i = 0; i < count; i++)
        for (size_t l = 0; error[i] >= bound && l < modes; l++) {
            double d = t->poses.q[(size_t)i * modes + l] - centre[l];
            sigma[l] += d * d / taken;
        }
    for (size_t l = 0; l < modes; l++) sigma[l] = sqrt(sigma[l]);
done:
    fem_free(error);
    fem_free(work);
    return status;
}

static fem_status make_batch(training *t, const double *centre, const double *sigma, int count) {
    cubature_poses batch = {0};
    int            inverted = 0;
    fem_status     status = poses_normal(&batch, &t->reduced, centre, sigma, t->options->spread, t->options->seed,
                                         t->poses.count, count, &inverted);
    if (status == FEM_OK) status = add_poses(t, &batch);
    t->inverted += inverted;
    t->batches++;
    cubature_poses_destroy(&batch);
    return status;
}

// Gaussian poses stretch what is slender: what it takes to bend it is learnt at rest.
static fem_status add_small(training *t) {
    cubature_poses small = {0};
    fem_status     status = poses_small(&small, &t->reduced, t->amplitude);
    if (status == FEM_OK) status = add_poses(t, &small);
    cubature_poses_destroy(&small);
    return status;
}

static fem_status generate_incremental(training *t, double *centre, double *sigma) {
    fem_status      status = FEM_OK;
    const fem_mesh *mesh = fem_body_mesh(t->body);
    int             E = mesh->element_count, count = 0;
    int             wanted = t->options->sample > 0 ? t->options->sample : 2 * t->r > 24 ? 2 * t->r : 24;
    int            *elements = fem_alloc((size_t)E, sizeof *elements);
    trainer         matrix = {0};
    fitted          f = {0};
    cubature_rule   rule = {0};
    if (!elements) return fem_fail(FEM_NO_MEMORY, "no memory for a sample of elements");
    FEM_TRY(cubature_sample_elements(mesh, wanted, elements, &count));
    if (t->poses.count == 0) FEM_TRY(make_batch(t, NULL, sigma, 3 * count / 2 + 1));
    while (!t->complete) {
        FEM_TRY(write_checkpoint(t));
        FEM_TRY(fem_progress_report(t->progress, "training poses", 1 - exp(-t->batches / 10.0)));
        FEM_TRY(trainer_create(&matrix, &t->reduced, &t->poses, t->options->balanced, true));
        FEM_TRY(fit_modal_weights(&matrix, count, elements, &f));
        double change = f.modal_error > 0 ? fabs(f.modal_error - t->error) / f.modal_error : 0;
        t->error = f.modal_error;
        t->complete = change < t->options->settled || t->poses.count >= t->options->most_poses;
        if (!t->complete && t->options->recentre && f.count > 0) {
            FEM_TRY(rule_of(&rule, &matrix, &f));
            FEM_TRY(find_worst(t, &rule, centre, sigma));
        }
        cubature_rule_destroy(&rule);
        fitted_destroy(&f);
        trainer_destroy(&matrix);
        int batch = (count + 2) / 3, room = t->options->most_poses - t->poses.count;
        if (!t->complete) FEM_TRY(make_batch(t, centre, sigma, batch < room ? batch : room));
    }
done:
    fem_free(elements);
    cubature_rule_destroy(&rule);
    fitted_destroy(&f);
    trainer_destroy(&matrix);
    return status;
}

// Poses as they are, with their forces; *inverted: how many invert an element.
static fem_status poses_at(cubature_poses *poses, const reduced_body *b, int count, const double *q, int *inverted) {
    fem_status     status = FEM_OK;
    size_t         values = (size_t)b->r * (size_t)count;
    double        *smallest = fem_alloc((size_t)count, sizeof *smallest);
    cubature_poses p = {.r = b->r, .count = count};
    p.q = fem_copy(q, values, sizeof *q);
    p.f = fem_alloc(values, sizeof *p.f);
    if (!smallest || !p.q || !p.f) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d poses", count);
        goto done;
    }
    FEM_TRY(pose_forces(b, count, p.q, p.f, smallest, NULL));
    *inverted = 0;
    for (int i = 0; i < count; i++) *inverted += !(smallest[i] > 0);
    *poses = p;
    p = (cubature_poses){0};
done:
    fem_free(smallest);
    cubature_poses_destroy(&p);
    return status;
}

static fem_status generate_given(training *t) {
    const cubature_training_options *o = t->options;
    size_t                           r = (size_t)t->r, count = (size_t)o->given_count;
    for (size_t i = 0; i < count * r; i++)
        if (!isfinite(o->given[i]))
            return fem_fail(FEM_BAD_INPUT, "cubature: coordinate %zu of the given pose %zu is not finite", i % r + 1,
                            i / r + 1);
    t->complete = 1;
    return poses_at(&t->poses, &t->reduced, o->given_count, o->given, &t->inverted);
}

static double body_diagonal(const fem_mesh *mesh) {
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (int v = 0; v < mesh->vertex_count; v++)
        for (int k = 0; k < 3; k++) {
            low[k] = fmin(low[k], mesh->vertices[3 * (size_t)v + (size_t)k]);
            high[k] = fmax(high[k], mesh->vertices[3 * (size_t)v + (size_t)k]);
        }
    return vec3_distance(low, high);
}

// c, and what loaded poses are made with
static fem_status find_amplitude(training *t) {
    const cubature_training_options *o = t->options;
    fem_status                       status = FEM_OK;
    double                           displacement = o->displacement * body_diagonal(fem_body_mesh(t->body));
    if (o->loaded) {
        FEM_TRY(loading_create(&t->loading, &t->reduced, o->springs, displacement, o->seed));
        t->amplitude = t->loading.amplitude;
    } else if (t->amplitude == 0) { // not of a checkpoint
        FEM_TRY(cubature_amplitude(t->body, t->r, t->reduced.U, t->rayleigh, displacement, o->seed, &t->amplitude));
    }
done:
    return status;
}

// Several times as many rows as a rule of 1% has elements; the weights of a modal rule have the rows of one mode each.
static int loaded_count(const training *t) {
    return (int)((is_modal(t) ? 3 : 1) * (100 + 6 * t->r) * fmin(1, fmax(0.5, sqrt(0.01 / t->options->error))));
}

static fem_status make_poses(training *t, double *centre, double *sigma) {
    fem_status                       status = FEM_OK;
    const cubature_training_options *o = t->options;
    if (o->given_count > 0 && !t->complete) FEM_TRY(generate_given(t));
    if ((o->given_count == 0 && !t->complete) || o->held_out > 0) FEM_TRY(find_amplitude(t));
    if (t->complete) return write_checkpoint(t);
    for (int l = 0; l < t->r && !o->loaded; l++) {
        centre[l] = 0;
        sigma[l] = t->amplitude / sqrt(t->rayleigh[l]);
    }
    if (o->loaded) {
        FEM_TRY(loading_poses(&t->loading, o->seed, o->poses > 0 ? o->poses : loaded_count(t), t->progress, &t->poses,
                              &t->inverted));
        t->complete = 1;
    } else if (o->poses > 0) {
        FEM_TRY(make_batch(t, NULL, sigma, o->poses));
        t->complete = 1;
    } else {
        FEM_TRY(generate_incremental(t, centre, sigma));
        if (!is_modal(t)) FEM_TRY(add_small(t));
    }
    FEM_TRY(write_checkpoint(t));
done:
    return status;
}

// ---- the whole -----------------------------------------------------------------------------------------------------

static fem_status fit_and_keep(training *t, cubature_rule *rule, cubature_training_report *report) {
    fem_status status = FEM_OK;
    trainer    matrix = {0};
    fitted     f = {0};
    FEM_TRY(trainer_create(&matrix, &t->reduced, &t->poses, t->options->balanced, is_modal(t)));
    status = fit_from(rule, &matrix, t->options, t->progress, &t->chosen, &f, report);
    if (status == FEM_STOPPED && f.elements) { // what was chosen so far is kept
        fitted_destroy(&t->chosen);
        t->chosen = f;
        f = (fitted){0};
        if (write_checkpoint(t) == FEM_OK) fem_fail(FEM_STOPPED, "stopped; what was done is kept");
    }
done:
    fitted_destroy(&f);
    trainer_destroy(&matrix);
    return status;
}

// A modal rule has at most two elements for three poses (P0 6.2): where that is what kept it from its error, half as
// many poses more are made. Incremental generation ends when the error of a few elements settles, wherever that is.
static bool wants_poses(const training *t, const cubature_training_report *report) {
    const cubature_training_options *o = t->options;
    int                              E = fem_body_mesh(t->body)->element_count;
    int                              most = o->elements > 0 && o->elements < E ? o->elements : E;
    return !report->reached && is_modal(t) && !o->loaded && o->poses == 0 && o->given_count == 0 &&
           t->poses.count < o->most_poses && 2 * t->poses.count / 3 + 1 < most;
}

static fem_status fit_with_more_poses(training *t, cubature_rule *rule, cubature_training_report *report) {
    double *sigma = t->numbers + t->r, begun = fem_seconds(), poses = report->seconds_poses, fit = report->seconds_fit;
    int     room = t->options->most_poses - t->poses.count, more = t->poses.count / 2 + 1;
    for (int l = 0; l < t->r; l++) sigma[l] = t->amplitude / sqrt(t->rayleigh[l]);
    fem_status status = make_batch(t, NULL, sigma, more < room ? more : room);
    if (status == FEM_OK) status = write_checkpoint(t);
    report->seconds_poses = poses + fem_seconds() - begun;
    cubature_rule_destroy(rule);
    if (status == FEM_OK) status = fit_and_keep(t, rule, report);
    report->seconds_fit += fit;
    return status;
}

static fem_status test_rule(const training *t, const cubature_rule *rule, cubature_training_report *report) {
    cubature_poses others = {0};
    if (t->options->held_out == 0) return FEM_OK;
    unsigned   seed = t->options->seed + HELD_OUT_SEED;
    int        count = t->options->held_out, inverted;
    fem_status status = t->options->loaded ? loading_poses(&t->loading, seed, count, NULL, &others, &inverted)
                                           : poses_sample(&others, &t->reduced, t->rayleigh, t->amplitude,
                                                          t->options->spread, seed, count, NULL);
    if (status == FEM_OK)
        report->held_out_error = rule_error(rule, &others, t->options->balanced, is_modal(t) ? NULL : t->reduced.modes);
    cubature_poses_destroy(&others);
    return status;
}

static fem_status training_begin(training *t, const fem_body *body, const double *U) {
    fem_status status = cubature_training_check(t->options);
    if (status == FEM_OK) status = reduced_body_create(&t->reduced, body, t->r, U);
    if (status == FEM_OK && (t->options->loaded || !is_modal(t))) status = reduced_body_modes(&t->reduced);
    if (status != FEM_OK) return status;
    t->numbers = fem_calloc(2 * (size_t)t->r, sizeof *t->numbers);
    return t->numbers ? FEM_OK : fem_fail(FEM_NO_MEMORY, "no memory for %d modes", t->r);
}

static void describe_poses(const training *t, cubature_training_report *report) {
    report->batches = t->batches;
    report->inverted = t->inverted;
    report->amplitude = t->amplitude;
    report->resumed = t->resumed;
}

fem_status cubature_poses_generate(cubature_poses *poses, const fem_body *body, int r, const double *U,
                                   const double *rayleigh, const cubature_training_options *options,
                                   const fem_progress *progress, cubature_training_report *result) {
    fem_status                status = FEM_OK;
    cubature_training_options own = *options;
    training                  t = {.body = body, .r = r, .rayleigh = rayleigh, .options = &own, .progress = progress};
    cubature_training_report  report = {0};
    double                    begun = fem_seconds();
    own.checkpoint = NULL;
    FEM_TRY(training_begin(&t, body, U));
    FEM_TRY(make_poses(&t, t.numbers, t.numbers + r));
    describe_poses(&t, &report);
    report.poses = t.poses.count;
    report.seconds_poses = fem_seconds() - begun;
    if (result) *result = report;
    *poses = t.poses;
    t.poses = (cubature_poses){0};
done:
    training_destroy(&t);
    return status;
}

static int compare_ints(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

// Elements of a rule and evenly spread ones, ascending, each once.
static fem_status join_elements(const cubature_rule *old, const fem_mesh *mesh, int more, int **elements, int *count) {
    int  even = 0, kept = 0;
    int *all = fem_alloc((size_t)old->count + (size_t)more, sizeof *all);
    if (!all) return fem_fail(FEM_NO_MEMORY, "no memory for %d elements", old->count + more);
    fem_status status = cubature_sample_elements(mesh, more, all, &even);
    if (status != FEM_OK) {
        fem_free(all);
        return status;
    }
    memcpy(all + even, old->elements, (size_t)old->count * sizeof *all);
    qsort(all, (size_t)(even + old->count), sizeof *all, compare_ints);
    for (int i = 0; i < even + old->count; i++)
        if (kept == 0 || all[kept - 1] != all[i]) all[kept++] = all[i];
    *elements = all, *count = kept;
    return FEM_OK;
}

fem_status cubature_refit(cubature_rule *rule, const fem_body *body, int r, const double *U, const cubature_rule *old,
                          const cubature_training_options *options, cubature_training_report *result) {
    fem_status               status = FEM_OK;
    const fem_mesh          *mesh = fem_body_mesh(body);
    loading                  l = {0};
    reduced_body             reduced = {0};
    cubature_poses           poses = {0}, others = {0};
    cubature_rule            made = {0};
    cubature_training_report report = {0};
    int                     *elements = NULL, count = 0, inverted = 0;
    double                   begun = fem_seconds();
    FEM_TRY(cubature_training_check(options));
    if (r < 1 || r > CUBATURE_MOST_MODES || old->modal) {
        status = fem_fail(FEM_BAD_INPUT, "cubature: %d modes%s, expected 1 to %d, and a rule of one weight an element",
                          r, old->modal ? " and a modal rule" : "", CUBATURE_MOST_MODES);
        goto done;
    }
    int wanted = mesh->element_count < REFIT_ELEMENTS * r ? mesh->element_count : REFIT_ELEMENTS * r;
    FEM_TRY(join_elements(old, mesh, wanted, &elements, &count));
    FEM_TRY(reduced_body_create(&reduced, body, r, U));
    FEM_TRY(reduced_body_modes(&reduced));
    FEM_TRY(loading_create(&l, &reduced, options->springs, options->displacement * body_diagonal(mesh), options->seed));
    FEM_TRY(loading_poses(&l, options->seed, REFIT_POSES * r, NULL, &poses, &inverted));
    report.seconds_poses = fem_seconds() - begun, report.amplitude = l.amplitude;
    FEM_TRY(fit_weights(&made, &reduced, &poses, count, elements, false, options->balanced, &report));
    FEM_TRY(loading_poses(&l, options->seed + HELD_OUT_SEED, REFIT_HELD_OUT, NULL, &others, &report.inverted));
    report.held_out_error = rule_error(&made, &others, options->balanced, reduced.modes);
    report.inverted += inverted;
    if (result) *result = report;
    *rule = made;
    made = (cubature_rule){0};
done:
    fem_free(elements);
    cubature_rule_destroy(&made);
    cubature_poses_destroy(&poses), cubature_poses_destroy(&others);
    loading_destroy(&l);
    reduced_body_destroy(&reduced);
    return status;
}

fem_status cubature_train(cubature_rule *rule, const fem_body *body, int r, const double *U, const double *rayleigh,
                          const cubature_training_options *options, const fem_progress *progress,
                          cubature_training_report *result) {
    fem_status               status = FEM_OK;
    training                 t = {.body = body, .r = r, .rayleigh = rayleigh, .options = options, .progress = progress};
    cubature_training_report report = {0};
    cubature_rule            made = {0};
    double                   begun = fem_seconds();
    FEM_TRY(training_begin(&t, body, U));
    FEM_TRY(read_checkpoint(&t));
    FEM_TRY(make_poses(&t, t.numbers, t.numbers + r));
    report.seconds_poses = fem_seconds() - begun;
    FEM_TRY(fit_and_keep(&t, &made, &report));
    while (wants_poses(&t, &report)) FEM_TRY(fit_with_more_poses(&t, &made, &report));
    FEM_TRY(test_rule(&t, &made, &report));
    describe_poses(&t, &report);
    if (result) *result = report;
    *rule = made;
    made = (cubature_rule){0};
    if (options->checkpoint) remove(options->checkpoint);
done:
    cubature_rule_destroy(&made);
    training_destroy(&t);
    return status;
}
