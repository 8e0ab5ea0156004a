// The experiment of `limber stitch`: the modes of a stitched body in each form beside those from scratch, and the
// motion in the basis of each.
#include "libscene/curves.h"
#include "libscene/internal.h"
#include "libscene/stitching.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char *join(const char *folder, const char *name) {
    size_t size = strlen(folder) + strlen(name) + 2;
    char  *path = fem_alloc(size, 1);
    if (path) snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static fem_status create_file(fem_file **file, const char *folder, const char *name) {
    char *path = join(folder, name);
    if (!path) return fem_fail(FEM_NO_MEMORY, "no memory for a path");
    fem_status status = fem_file_create(file, path);
    fem_free(path);
    return status;
}

static fem_status make_folders(const char *folder) {
    char *path = fem_copy_string(folder);
    if (!path) return fem_fail(FEM_NO_MEMORY, "no memory for a path");
    for (char *c = path + 1;; c++) {
        if (*c != '/' && *c) continue;
        char end = *c;
        *c = 0;
        if (mkdir(path, 0777) != 0 && errno != EEXIST) {
            fem_status status = fem_fail(FEM_IO, "%s: cannot be made: %s", path, strerror(errno));
            fem_free(path);
            return status;
        }
        *c = end;
        if (!end) break;
    }
    fem_free(path);
    return FEM_OK;
}

fem_status scene_changes_write(const char *folder, int count, const scene_change *changes) {
    fem_status status = FEM_OK;
    fem_file  *file = NULL;
    FEM_TRY(create_file(&file, folder, "stitching.csv"));
    bool several = false;
    for (int i = 0; i < count; i++) several = several || changes[i].instance;
    fem_file_print(file, "time,stitches,form,rebuilt,mode,frequency,residual,error,share%s\n",
                   several ? ",instance" : "");
    for (int i = 0; i < count; i++) {
        const scene_change *c = &changes[i];
        const char         *comma = several ? "," : "", *instance = several ? c->instance : "";
        for (int j = 0; j < c->quality.count; j++)
            fem_file_print(file, "%.12g,%d,%s,%d,%d,%.9g,%.6g,%.6g,%.9g%s%s\n", c->time, c->stitches,
                           scene_stitch_form_name(c->form), c->rebuilt, j + 1,
                           sqrt(fmax(c->frequency2[j], 0)) / 6.283185307179586, c->quality.residual[j],
                           c->quality.error[j], c->quality.share[j], comma, instance);
        if (c->quality.count == 0)
            fem_file_print(file, "%.12g,%d,%s,%d,,,,,%s%s\n", c->time, c->stitches, scene_stitch_form_name(c->form),
                           c->rebuilt, comma, instance);
    }
    FEM_TRY(fem_file_commit(file));
done:
    return status;
}

void scene_experiment_destroy(scene_experiment *x) {
    for (int i = 0; i < x->round_count; i++) { fem_free(x->rounds[i].frequency), fem_free(x->rounds[i].share); }
    for (int f = 0; f < SCENE_STITCH_FORMS; f++) scene_result_destroy(&x->runs[f].result);
    fem_free(x->rounds);
    *x = (scene_experiment){0};
}

// ---- modes ----------------------------------------------------------------------------------------------------------

static fem_status compare_forms(scene_stitching *t, scene_round *round) {
    fem_status  status = FEM_OK;
    modes_basis truth = {0}, basis = {0};
    int         r = round->modes, judged = r < 20 ? r : 20;
    double      seconds = 0;
    FEM_TRY(scene_stitching_linear(t, SCENE_STITCH_SCRATCH, &truth, &seconds));
    for (int f = 0; f < SCENE_STITCH_FORMS; f++) {
        double *frequency = round->frequency + (size_t)f * (size_t)r, *share = round->share + (size_t)f * (size_t)r;
        const modes_basis *b = &truth;
        round->seconds[f] = seconds;
        if (f != SCENE_STITCH_SCRATCH) {
            modes_basis_destroy(&basis);
            FEM_TRY(scene_stitching_linear(t, (scene_stitch_form)f, &basis, &round->seconds[f]));
            b = &basis;
        }
        FEM_TRY(modes_coverage(scene_stitching_problem(t), r, b->U, r, truth.U, share));
        round->least_share[f] = 1;
        for (int j = 0; j < r; j++) frequency[j] = sqrt(fmax(b->omega2[j], 0)) / 6.283185307179586;
        for (int j = 0; j < judged; j++) {
            double error = fabs(sqrt(fmax(b->omega2[j], 0) / truth.omega2[j]) - 1);
            round->worst_error[f] = fmax(round->worst_error[f], error);
            round->least_share[f] = fmin(round->least_share[f], share[j]);
        }
    }
done:
    modes_basis_destroy(&truth), modes_basis_destroy(&basis);
    return status;
}

// Forms in the order of the figures: from scratch first.
static const scene_stitch_form shown[] = {SCENE_STITCH_SCRATCH, SCENE_STITCH_ATTACHMENT, SCENE_STITCH_RITZ,
                                          SCENE_STITCH_LOWRANK, SCENE_STITCH_ORIGINAL};

static fem_status write_tables(const char *folder, const scene_experiment *x) {
    fem_status status = FEM_OK;
    fem_file  *file = NULL;
    for (int table = 0; table < 2; table++) {
        FEM_TRY(create_file(&file, folder, table == 0 ? "frequencies.csv" : "coverage.csv"));
        fem_file_print(file, "round,time,stitches,mode");
        for (int k = 0; k < SCENE_STITCH_FORMS; k++) fem_file_print(file, ",%s", scene_stitch_form_name(shown[k]));
        fem_file_print(file, "\n");
        for (int i = 0; i < x->round_count; i++) {
            const scene_round *round = &x->rounds[i];
            const double      *values = table == 0 ? round->frequency : round->share;
            for (int j = 0; j < round->modes; j++) {
                fem_file_print(file, "%d,%.12g,%d,%d", i + 1, round->time, round->stitches, j + 1);
                for (int k = 0; k < SCENE_STITCH_FORMS; k++)
                    fem_file_print(file, ",%.9g", values[(size_t)shown[k] * (size_t)round->modes + (size_t)j]);
                fem_file_print(file, "\n");
            }
        }
        fem_file *done = file;
        file = NULL;
        FEM_TRY(fem_file_commit(done));
    }
done:
    fem_file_abandon(file);
    return status;
}

static fem_status write_figures(const char *folder, const scene_experiment *x) {
    fem_status status = FEM_OK;
    for (int i = 0; i < x->round_count && status == FEM_OK; i++) {
        const scene_round *round = &x->rounds[i];
        scene_curve        curves[SCENE_STITCH_FORMS - 1];
        char               name[64], title[120], *path;
        double            *mode = fem_alloc((size_t)round->modes, sizeof *mode), low = 1;
        if (!mode) return fem_fail(FEM_NO_MEMORY, "no memory for a figure");
        for (int j = 0; j < round->modes; j++) mode[j] = j + 1;
        for (int k = 1; k < SCENE_STITCH_FORMS; k++)
            curves[k - 1] =
                (scene_curve){scene_stitch_form_name(shown[k]), round->share + (size_t)shown[k] * (size_t)round->modes};
        for (int k = 0; k < SCENE_STITCH_FORMS * round->modes; k++) low = fmin(low, round->share[k]);
        snprintf(name, sizeof name, "coverage_%d.svg", i + 1);
        snprintf(title, sizeof title, "Share of the true modes, round %d: %d stitches", i + 1, round->stitches);
        path = join(folder, name);
        status = !path ? fem_fail(FEM_NO_MEMORY, "no memory for a path")
                       : scene_curves_write(path, title, "mode", "share", round->modes, mode, 0.1 * floor(10 * low), 1,
                                            SCENE_STITCH_FORMS - 1, curves);
        fem_free(mode), fem_free(path);
    }
    return status;
}

static fem_status run_rounds(const scene *s, const fem_progress *progress, scene_experiment *x) {
    fem_status        status = FEM_OK;
    scene_stitching  *t = NULL;
    fem_body         *body = NULL;
    fem_body_options  options = fem_body_default_options();
    const scene_part *part = &s->parts[s->object];
    int               count = 0;
    options.quadrature = part->quadrature;
    for (double at = scene_next_change(s, -1); isfinite(at); at = scene_next_change(s, at)) count++;
    FEM_TRY(fem_body_create(&body, &part->mesh, &options));
    FEM_TRY(fem_progress_report(progress, "modes", 0));
    double begun = fem_cpu_seconds();
    FEM_TRY(scene_stitching_create(&t, s, body, NULL, progress));
    x->seconds_before = fem_cpu_seconds() - begun;
    x->rounds = fem_calloc((size_t)count, sizeof *x->rounds);
    if (!x->rounds) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %d rounds", count);
        goto done;
    }
    for (double at = scene_next_change(s, -1); isfinite(at); at = scene_next_change(s, at)) {
        bool         changed = false;
        scene_round *round = &x->rounds[x->round_count++];
        FEM_TRY(fem_progress_report(progress, "modes", (double)x->round_count / count));
        FEM_TRY(scene_stitching_set(t, at, &changed));
        round->time = at, round->stitches = scene_stitching_count(t), round->modes = part->modes.recipe.linear;
        round->frequency = fem_calloc(SCENE_STITCH_FORMS * (size_t)round->modes, sizeof *round->frequency);
        round->share = fem_calloc(SCENE_STITCH_FORMS * (size_t)round->modes, sizeof *round->share);
        if (!round->frequency || !round->share) {
            status = fem_fail(FEM_NO_MEMORY, "no memory for %d modes", round->modes);
            goto done;
        }
        round->first = scene_stitching_is_first(t);
        if (!round->first) FEM_TRY(compare_forms(t, round));
    }
done:
    scene_stitching_destroy(t);
    fem_body_destroy(body);
    return status;
}

// ---- runs -----------------------------------------------------------------------------------------------------------

// The numbers of a probes.csv behind its first line: columns without time. Caller frees.
static fem_status read_probes(const char *folder, int columns, int *rows, double **numbers) {
    fem_status status = FEM_OK;
    char      *path = join(folder, "probes.csv"), *text = NULL, *at;
    size_t     size = 0, room = 0;
    double    *list = NULL;
    *rows = 0;
    if (!path) return fem_fail(FEM_NO_MEMORY, "no memory for a path");
    FEM_TRY(fem_file_read(&text, &size, path));
    at = strchr(text, '\n');
    while (at && at[1]) {
        strtod(at + 1, &at);
        FEM_TRY(fem_grow((void **)&list, &room, (size_t)(*rows + 1) * (size_t)columns, sizeof *list));
        for (int c = 0; c < columns && *at == ','; c++) list[*rows * columns + c] = strtod(at + 1, &at);
        ++*rows;
        at = strchr(at, '\n');
    }
    *numbers = list;
    list = NULL;
done:
    fem_free(path), fem_free(text), fem_free(list);
    return status;
}

// Root mean square of the difference of all probes over that of the probes from scratch.
static fem_status compare_probes(const char *folder, int columns, const char *truth, double *difference) {
    fem_status status = FEM_OK;
    double    *a = NULL, *b = NULL, square = 0, whole = 0;
    int        rows[2] = {0};
    *difference = NAN;
    FEM_TRY(read_probes(folder, columns, &rows[0], &a));
    FEM_TRY(read_probes(truth, columns, &rows[1], &b));
    for (int i = 0; i < columns * (rows[0] < rows[1] ? rows[0] : rows[1]); i++)
        square += (a[i] - b[i]) * (a[i] - b[i]), whole += b[i] * b[i];
    if (whole > 0) *difference = sqrt(square / whole);
done:
    fem_free(a), fem_free(b);
    return status;
}

static fem_status run_forms(scene *s, const char *folder, const fem_progress *progress, scene_experiment *x) {
    fem_status           status = FEM_OK;
    scene_stitch_options kept = s->stitching;
    char                *paths[SCENE_STITCH_FORMS] = {0};
    s->stitching.rebuild = SCENE_REBUILD_NEVER; // each form as it is
    for (int k = 0; k < SCENE_STITCH_FORMS; k++) {
        scene_stitch_form f = shown[k];
        paths[f] = join(folder, scene_stitch_form_name(f));
        if (!paths[f]) {
            status = fem_fail(FEM_NO_MEMORY, "no memory for a path");
            goto done;
        }
        s->stitching.form = f;
        status = scene_run(s, paths[f], 0, progress, &x->runs[f].result);
        if (status == FEM_UNSTABLE || status == FEM_INDEFINITE) { // a bad basis may fail: that is a result
            snprintf(x->runs[f].failure, sizeof x->runs[f].failure, "%s", fem_message());
            status = FEM_OK;
        }
        FEM_TRY(status);
        x->runs[f].done = !x->runs[f].failure[0];
        x->runs[f].difference = NAN;
        if (x->runs[f].done && x->runs[SCENE_STITCH_SCRATCH].done && s->probe_count > 0)
            FEM_TRY(compare_probes(paths[f], 3 * s->probe_count, paths[SCENE_STITCH_SCRATCH], &x->runs[f].difference));
    }
done:
    s->stitching = kept;
    for (int f = 0; f < SCENE_STITCH_FORMS; f++) fem_free(paths[f]);
    return status;
}

fem_status scene_stitch_experiment(scene *s, const char *folder, bool runs, const fem_progress *progress,
                                   scene_experiment *result) {
    fem_status       status = FEM_OK;
    scene_experiment x = {0};
    if (!scene_has_stitching(s))
        return fem_fail(FEM_BAD_INPUT,
                        "%s: nothing is stitched: expected \"actions\" with \"stitch\", \"unstitch\", \"cut\", or "
                        "\"stiffness\" of a part with \"seams\"",
                        s->path);
    if (s->forest.count > 0)
        return fem_fail(FEM_BAD_INPUT,
                        "%s: the experiment is of one body, expected a single object, or \"seams\" beside \"objects\" "
                        "that make one of them",
                        s->path);
    FEM_TRY(make_folders(folder));
    FEM_TRY(run_rounds(s, progress, &x));
    FEM_TRY(write_tables(folder, &x));
    FEM_TRY(write_figures(folder, &x));
    if (runs) FEM_TRY(run_forms(s, folder, progress, &x));
    *result = x;
    x = (scene_experiment){0};
done:
    scene_experiment_destroy(&x);
    return status;
}
