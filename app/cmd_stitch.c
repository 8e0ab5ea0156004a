// `limber stitch`: the experiment with a scene that stitches: modes from scratch, brought up to date in each form, and
// the old ones; and a run with each.
#include "app/app.h"

#include <math.h>

static void put_round(app_json *json, const scene_round *round) {
    app_json_object(json, NULL);
    app_json_number(json, "time", round->time);
    app_json_integer(json, "stitches", round->stitches);
    app_json_bool(json, "first", round->first);
    for (int f = 0; f < SCENE_STITCH_FORMS && !round->first; f++) {
        app_json_object(json, scene_stitch_form_name((scene_stitch_form)f));
        app_json_number(json, "seconds", round->seconds[f]);
        app_json_number(json, "worst_error", round->worst_error[f]);
        app_json_number(json, "least_share", round->least_share[f]);
        app_json_numbers(json, "frequencies_hz", round->modes, round->frequency + (size_t)f * (size_t)round->modes);
        app_json_numbers(json, "coverage", round->modes, round->share + (size_t)f * (size_t)round->modes);
        app_json_end(json);
    }
    app_json_end(json);
}

static void put_run(app_json *json, const scene *s, const scene_experiment *x, scene_stitch_form form) {
    const scene_result *r = &x->runs[form].result;
    app_json_object(json, scene_stitch_form_name(form));
    app_json_bool(json, "done", x->runs[form].done);
    app_json_number(json, "difference", x->runs[form].difference);
    app_json_number(json, "steps_per_second", r->step.seconds_step > 0 ? r->steps / r->step.seconds_step : NAN);
    app_json_object(json, "probes");
    for (int i = 0; i < r->probe_count; i++) app_json_numbers(json, s->probes[i].name, 3, r->probes + 3 * i);
    app_json_end(json);
    app_json_array(json, "changes");
    for (int i = 0; i < r->change_count; i++) {
        const scene_change *c = &r->changes[i];
        app_json_object(json, NULL);
        app_json_number(json, "time", c->time);
        app_json_integer(json, "stitches", c->stitches);
        app_json_number(json, "seconds_modes", c->seconds_modes);
        app_json_number(json, "seconds_derivatives", c->seconds_derivatives);
        app_json_number(json, "seconds_condense", c->seconds_condense);
        app_json_number(json, "seconds_forces", c->seconds_forces);
        app_json_bool(json, "forces_reused", c->reused);
        app_json_number(json, "forces_error", c->forces.mean);
        app_json_number(json, "energy_before", c->state.energy_before);
        app_json_number(json, "energy_after", c->state.energy_after);
        app_json_number(json, "energy_springs", c->state.springs);
        app_json_end(json);
    }
    app_json_end(json);
    app_json_end(json);
}

static int print_json(const scene *s, const scene_experiment *x, const char *folder, bool runs) {
    app_json json;
    app_json_begin(&json, stdout);
    app_json_object(&json, NULL);
    app_json_text(&json, "scene", s->path);
    app_json_text(&json, "folder", folder);
    app_json_number(&json, "seconds_before", x->seconds_before);
    app_json_array(&json, "rounds");
    for (int i = 0; i < x->round_count; i++) put_round(&json, &x->rounds[i]);
    app_json_end(&json);
    if (runs) {
        app_json_object(&json, "runs");
        for (int f = 0; f < SCENE_STITCH_FORMS; f++) put_run(&json, s, x, (scene_stitch_form)f);
        app_json_end(&json);
    }
    return app_json_finish(&json);
}

// Where the default form falls short of the scene's rule for rebuilding: how many modes, and what would do.
static void print_advice(const scene *s, const scene_round *round) {
    const modes_rebuild_rule *rule = &s->stitching.rule;
    const double             *share = round->share + (size_t)SCENE_STITCH_ATTACHMENT * (size_t)round->modes;
    int                       judged = round->modes < rule->modes ? round->modes : rule->modes, poor = 0, first = 0;
    for (int j = judged - 1; j >= 0; j--)
        if (share[j] < rule->share) poor++, first = j + 1;
    if (poor == 0 && round->worst_error[SCENE_STITCH_ATTACHMENT] <= rule->error) return;
    printf("  the rule would rebuild: ");
    if (poor > 0)
        printf("of %d of %d modes, from mode %d on, attachment has less than %.3g %%; ", poor, judged, first,
               100 * rule->share);
    else
        printf("attachment has a frequency %.2g %% off; ", 100 * round->worst_error[SCENE_STITCH_ATTACHMENT]);
    const scene_part *part = &s->parts[s->object];
    if (part->modes.method == SCENE_MODES_KRYLOV) // shapes of the body before, but not its modes
        printf("modes.method=lanczos");
    else if (s->members.count > 0)
        printf("more linear modes (modes.linear of its parts, now %d in all)", round->modes);
    else
        printf("more linear modes (parts.%s.modes.linear, now %d)", part->name, round->modes);
    printf(", or solver.stitching.rebuild.when=automatic\n");
}

static void print_text(const scene *s, const scene_experiment *x, const char *folder, bool runs) {
    static const scene_stitch_form order[] = {SCENE_STITCH_SCRATCH, SCENE_STITCH_ATTACHMENT, SCENE_STITCH_RITZ,
                                              SCENE_STITCH_LOWRANK, SCENE_STITCH_ORIGINAL};
    const fem_mesh                *mesh = &s->parts[s->object].mesh;
    printf("%d vertices, %d elements; what is held of the body without stitches took %.3g s\n", mesh->vertex_count,
           mesh->element_count, x->seconds_before);
    for (int i = 0; i < x->round_count; i++) {
        const scene_round *round = &x->rounds[i];
        if (round->first) {
            printf("at %g s the body is as it was at first\n", round->time);
            continue;
        }
        printf("at %g s, %d stitches, %d linear modes:\n", round->time, round->stitches, round->modes);
        printf("  %-11s %9s %9s   %-24s %s\n", "form", "seconds", "speed-up", "20 frequencies within",
               "coverage above");
        for (int k = 0; k < SCENE_STITCH_FORMS; k++) {
            scene_stitch_form f = order[k];
            printf("  %-11s %9.3g", scene_stitch_form_name(f), round->seconds[f]);
            if (f == SCENE_STITCH_ORIGINAL)
                printf(" %9s", "");
            else
                printf(" %8.3gx", round->seconds[SCENE_STITCH_SCRATCH] / round->seconds[f]);
            char within[32];
            snprintf(within, sizeof within, "%.3g %%", 100 * round->worst_error[f]);
            printf("   %-24s %.6f\n", within, round->least_share[f]);
        }
        print_advice(s, round);
    }
    for (int k = 0; k < SCENE_STITCH_FORMS && runs; k++) {
        scene_stitch_form   f = order[k];
        const scene_result *r = &x->runs[f].result;
        if (k == 0)
            printf("runs:\n  %-11s %10s %22s %12s %11s %11s %9s\n", "form", "steps/s", "probes off scratch by",
                   "derivatives", "condensing", "forces", "reused");
        if (!x->runs[f].done) {
            printf("  %-11s failed: %s\n", scene_stitch_form_name(f), x->runs[f].failure);
            continue;
        }
        double derivatives = 0, condensing = 0, forces = 0;
        int    reused = 0;
        for (int i = 0; i < r->change_count; i++) {
            derivatives += r->changes[i].seconds_derivatives, condensing += r->changes[i].seconds_condense;
            forces += r->changes[i].seconds_forces, reused += r->changes[i].reused;
        }
        printf("  %-11s %10.3g %20.3g %% %10.3g s %9.3g s %9.3g s %4d of %d\n", scene_stitch_form_name(f),
               r->step.seconds_step > 0 ? r->steps / r->step.seconds_step : 0, 100 * x->runs[f].difference, derivatives,
               condensing, forces, reused, r->change_count);
    }
    printf("results: %s\n", folder);
}

static int run(int argc, char **argv) {
    const char      *folder = NULL, *cache = NULL;
    int              threads = 1, exit_code = APP_DONE;
    bool             quiet = false, json = false, no_cache = false, no_runs = false;
    app_list         overrides = {0};
    const app_option options[] = {
        {"--output", "-o", APP_TEXT, &folder, 0, 0, "DIR", "folder for the results; default: out/SCENE-stitch"},
        {"--no-runs", NULL, APP_FLAG, &no_runs, 0, 0, NULL, "modes only"},
        {"--threads", NULL, APP_INT, &threads, 0, 256, "N",
         "default: 1, since times are those of the processor on one thread"},
        {"--cache", NULL, APP_TEXT, &cache, 0, 0, "DIR",
         "where reduced models are kept; default: $LIMBER_CACHE or ~/.cache/limber"},
        {"--no-cache", NULL, APP_FLAG, &no_cache, 0, 0, NULL, "neither read nor keep reduced models"},
        {"--set", NULL, APP_LIST, &overrides, 0, 0, "KEY=VALUE", "overrides the scene, for example actions.0.count=20"},
        {"--quiet", "-q", APP_FLAG, &quiet, 0, 0, NULL, "no progress, no summary"},
        {"--json", NULL, APP_FLAG, &json, 0, 0, NULL, "one JSON object on standard output"},
    };
    app_words words;
    if (!app_parse(&command_stitch, argc, argv, sizeof options / sizeof *options, options, 1, 1, &words, &exit_code))
        return exit_code;
    fem_set_threads(threads);

    fem_status       status = FEM_OK;
    scene           *s = NULL;
    scene_experiment experiment = {0};
    bool             loaded = false;
    char             usual[512], usual_cache[512];
    app_progress     progress = {0};
    FEM_TRY(scene_load(&s, words.items[0], overrides.count, overrides.items));
    if (!quiet) app_note_remarks(&s->remarks);
    if (!no_cache) FEM_TRY(scene_set_cache(s, app_cache_folder(cache, usual_cache, sizeof usual_cache)));
    snprintf(usual, sizeof usual, "out/%s-stitch", s->name);
    if (!folder) folder = usual;
    loaded = true;
    app_progress_begin(&progress, quiet, NULL, 0);
    FEM_TRY(scene_stitch_experiment(s, folder, !no_runs, &progress.callback, &experiment));
    app_progress_end(&progress);
    for (int f = 0; f < SCENE_STITCH_FORMS && !quiet; f++) app_print_notes(experiment.runs[f].result.notes);
    if (json)
        exit_code = print_json(s, &experiment, folder, !no_runs);
    else if (!quiet)
        print_text(s, &experiment, folder, !no_runs);
done:
    app_progress_end(&progress);
    if (status != FEM_OK) exit_code = loaded && status != FEM_BAD_INPUT ? app_fail_output(status) : app_fail(status);
    scene_experiment_destroy(&experiment);
    scene_destroy(s);
    return exit_code;
}

const app_command command_stitch = {"stitch",
                                    "Compare the modes of a stitched body in each form with those from scratch",
                                    "SCENE [OPTIONS]",
                                    "limber stitch scenes/stitching/plant.json -o out/plant-stitch",
                                    run,
                                    NULL};
