// `limber run`: simulates a scene and writes its frames, probes and energies.
#include "app/app.h"

#include <math.h>
#include <string.h>

static void put_probes(app_json *json, const scene *s, const scene_result *r) {
    app_json_object(json, "probes");
    for (int i = 0; i < r->probe_count; i++) app_json_numbers(json, s->probes[i].name, 3, r->probes + 3 * i);
    app_json_end(json);
}

static void put_reduced(app_json *json, const scene *s, const scene_result *r) {
    app_json_object(json, "reduced");
    app_json_integer(json, "modes", r->modes);
    app_json_bool(json, "cached", r->cached);
    if (r->domains > 0) app_json_number(json, "damping_ratio", s->tree.damping_ratio);
    if (r->domains > 0) app_json_number(json, "damping_stiffness_by_ratio", r->damping_stiffness);
    app_json_number(json, "seconds_modes", r->seconds_modes);
    app_json_number(json, "seconds_forces", r->seconds_forces);
    app_put_cubature(json, s, r);
    app_json_number(json, "microseconds_step", r->steps > 0 ? 1e6 * r->step.seconds_step / r->steps : NAN);
    app_json_number(json, "microseconds_force", r->steps > 0 ? 1e6 * r->step.seconds_force / r->steps : NAN);
    app_json_number(json, "microseconds_solve", r->steps > 0 ? 1e6 * r->step.seconds_solve / r->steps : NAN);
    if (s->obstacle_count > 0) {
        app_json_number(json, "microseconds_contact", r->steps > 0 ? 1e6 * r->step.seconds_contact / r->steps : NAN);
        app_json_integer(json, "contacts", r->contact.total_contacts);
        app_json_number(json, "depth", r->contact.depth);
    }
    app_json_end(json);
}

static int print_json(const scene *s, const scene_result *r, const char *folder) {
    app_json json;
    app_json_begin(&json, stdout);
    app_json_object(&json, NULL);
    app_json_text(&json, "scene", s->path);
    app_json_text(&json, "method", scene_method_name(s->method));
    app_json_text(&json, "folder", folder);
    app_json_number(&json, "max_displacement", r->max_displacement);
    app_json_integer(&json, "max_vertex", r->max_vertex + s->parts[s->object].mesh.file_base);
    put_probes(&json, s, r);
    app_json_integer(&json, "newton_iterations", r->solver.newton_iterations);
    app_json_number(&json, "residual", r->solver.residual);
    if (s->method == SCENE_STATIC) app_json_integer(&json, "load_steps", r->solver.load_steps);
    app_json_integer(&json, "frames", r->frames);
    if (s->method != SCENE_STATIC) {
        app_json_integer(&json, "steps", r->steps);
        app_json_number(&json, "time", r->time);
        app_json_number(&json, "real_time_ratio", r->seconds > 0 ? r->time / r->seconds : NAN);
    }
    app_json_object(&json, "energies");
    app_json_number(&json, "kinetic", r->energies.kinetic);
    app_json_number(&json, "strain", r->energies.strain);
    app_json_number(&json, "load", r->energies.load);
    app_json_end(&json);
    if (s->method == SCENE_REDUCED) put_reduced(&json, s, r);
    app_json_object(&json, "seconds");
    app_json_number(&json, "all", r->seconds);
    app_json_number(&json, "prepare", r->seconds_prepare);
    app_json_number(&json, "assemble", r->solver.seconds_assemble);
    app_json_number(&json, "factorise", r->solver.seconds_factorise);
    app_json_number(&json, "solve", r->solver.seconds_solve);
    app_json_number(&json, "output", r->seconds_output);
    return app_json_finish(&json);
}

// To standard error after an early end, where standard output has no results to show.
static void print_text(FILE *out, const scene *s, const scene_result *r, const char *folder) {
    if (s->method == SCENE_STATIC)
        fprintf(out, "equilibrium after %d Newton iterations, %.2f s\n", r->solver.newton_iterations, r->seconds);
    else
        fprintf(out, "%d frames, %.4g s simulated in %.2f s (%.3g of real time)\n", r->frames, r->time, r->seconds,
                r->seconds > 0 ? r->time / r->seconds : 0);
    if (r->domains > 0) fprintf(out, "%d domains, ", r->domains);
    if (s->method == SCENE_REDUCED)
        fprintf(out, "%d modes%s, %.3g us a step (%.3g steps/s)\n", r->modes, r->cached ? " from the cache" : "",
                r->steps > 0 ? 1e6 * r->step.seconds_step / r->steps : 0,
                r->step.seconds_step > 0 ? r->steps / r->step.seconds_step : 0);
    if (r->damping_stiffness > 0) // beta = 2 ratio / (2 pi f)
        fprintf(out, "damping: %.3g%% of the lowest mode, %.4g Hz; beta = %.3g s\n", 100 * s->tree.damping_ratio,
                s->tree.damping_ratio / (3.14159265358979323846 * r->damping_stiffness), r->damping_stiffness);
    app_print_cubature(out, s, r);
    fprintf(out, "largest displacement %.6g m at vertex %d\n", r->max_displacement,
            r->max_vertex + s->parts[s->object].mesh.file_base);
    for (int i = 0; i < r->probe_count; i++)
        fprintf(out, "%s: %.6g %.6g %.6g m\n", s->probes[i].name, r->probes[3 * i], r->probes[3 * i + 1],
                r->probes[3 * i + 2]);
    if (s->write_vtu && r->frames > 0) fprintf(out, "results: %s/%s.pvd\n", folder, s->name);
    if (s->write_glb && r->frames > 0) fprintf(out, "results: %s/%s.glb\n", folder, s->name);
    if ((!s->write_vtu && !s->write_glb) || r->frames == 0) fprintf(out, "results: %s\n", folder);
}

static int run(int argc, char **argv) {
    const char      *folder = NULL, *cache = NULL;
    int              frames = 0, threads = 0, exit_code = APP_DONE;
    int              checkpoint = 0;
    double           memory = 0;
    bool             quiet = false, json = false, no_cache = false, resume = false, skin = false;
    app_list         overrides = {0};
    const app_option options[] = {
        {"--output", "-o", APP_TEXT, &folder, 0, 0, "DIR", "folder for the results; default: out/SCENE"},
        {"--frames", "-n", APP_INT, &frames, 1, 1000000, "N", "number of frames; default: the scene's own"},
        {"--checkpoint", NULL, APP_INT, &checkpoint, 1, 1000000, "N",
         "keep the state every N frames and at the end, in DIR/SCENE.checkpoint"},
        {"--resume", NULL, APP_FLAG, &resume, 0, 0, NULL,
         "go on from that file; the results are those of a run that never stopped"},
        {"--skin", NULL, APP_FLAG, &skin, 0, 0, NULL,
         "the .glb as one mesh on a skin, a joint per domain or instance (output.glb.skin)"},
        {"--threads", NULL, APP_INT, &threads, 0, 256, "N", "default: one per core"},
        {"--memory", NULL, APP_NUMBER, &memory, 0.001, 1e6, "GB",
         "while reduced models are made, never more at once; one that does not fit alone is refused"},
        {"--cache", NULL, APP_TEXT, &cache, 0, 0, "DIR",
         "where reduced models are kept; default: $LIMBER_CACHE or ~/.cache/limber"},
        {"--no-cache", NULL, APP_FLAG, &no_cache, 0, 0, NULL, "neither read nor keep reduced models"},
        {"--set", NULL, APP_LIST, &overrides, 0, 0, "KEY=VALUE", "overrides the scene, for example solver.step=0.005"},
        {"--quiet", "-q", APP_FLAG, &quiet, 0, 0, NULL, "no progress, no summary"},
        {"--json", NULL, APP_FLAG, &json, 0, 0, NULL, "one JSON object on standard output"},
    };
    app_words words;
    if (!app_parse(&command_run, argc, argv, sizeof options / sizeof *options, options, 1, 1, &words, &exit_code))
        return exit_code;
    fem_set_threads(threads);

    fem_status   status = FEM_OK;
    scene       *s = NULL;
    scene_result result = {0};
    bool         loaded = false;
    char         usual[512], usual_cache[512];
    app_progress progress = {0};
    FEM_TRY(scene_load(&s, words.items[0], overrides.count, overrides.items));
    if (frames > 0 && s->method == SCENE_STATIC) {
        exit_code = app_usage_error(&command_run, "--frames has no meaning for a static scene, which has one");
        goto done;
    }
    if ((checkpoint > 0 || resume) && s->method == SCENE_STATIC) {
        exit_code = app_usage_error(&command_run, "--checkpoint and --resume have no meaning for a static scene");
        goto done;
    }
    if (skin && !s->write_glb) {
        exit_code = app_usage_error(&command_run, "--skin is for .glb files, expected output.formats with \"glb\"");
        goto done;
    }
    s->glb.skin |= skin;
    s->checkpoint = checkpoint;
    s->resume = resume;
    scene_set_memory(s, 1e9 * memory);
    loaded = true;
    if (!quiet) app_note_remarks(&s->remarks);
    if (!no_cache) FEM_TRY(scene_set_cache(s, app_cache_folder(cache, usual_cache, sizeof usual_cache)));
    snprintf(usual, sizeof usual, "out/%s", s->name);
    if (!folder) folder = usual;
    bool dynamic = s->method != SCENE_STATIC;
    app_progress_begin(&progress, quiet, dynamic ? "simulating" : NULL, (frames > 0 ? frames : s->frames) - 1);
    FEM_TRY(scene_run(s, folder, frames, &progress.callback, &result));
    app_progress_end(&progress);
    if (json)
        exit_code = print_json(s, &result, folder);
    else if (!quiet)
        print_text(stdout, s, &result, folder);
done:
    app_progress_end(&progress);
    app_print_notes(result.notes);
    if (status != FEM_OK) {
        exit_code = loaded ? app_fail_output(status) : app_fail(status);
        if (result.frames > 0 && (s->write_vtu || s->write_obj))
            app_note("the first %d frames are in %s", result.frames, folder);
    }
    scene_result_destroy(&result);
    scene_destroy(s);
    return exit_code;
}

const app_command command_run = {"run",
                                 "Simulate a scene and write its frames",
                                 "SCENE [OPTIONS]",
                                 "limber run scenes/cantilever.json -o out/cantilever --set solver.step=0.005",
                                 run,
                                 NULL};
