// `limber precompute`: makes the classes of a scene's reduced parts and keeps them, so that `run` starts at once.
#include "app/app.h"

static int print_json(const scene *s, const scene_result *r) {
    app_json json;
    app_json_begin(&json, stdout);
    app_json_object(&json, NULL);
    app_json_text(&json, "scene", s->path);
    app_json_text(&json, "part", s->parts[s->object].name);
    app_json_text(&json, "cache", s->cache);
    app_json_bool(&json, "cached", r->cached);
    app_json_bool(&json, "kept", r->kept);
    app_json_integer(&json, "modes", r->modes);
    app_put_cubature(&json, s, r);
    app_json_object(&json, "seconds");
    app_json_number(&json, "all", r->seconds);
    app_json_number(&json, "modes", r->seconds_modes);
    app_json_number(&json, "forces", r->seconds_forces);
    return app_json_finish(&json);
}

static int print_text(const scene *s, const scene_result *r) {
    const char *part = s->parts[s->object].name;
    if (r->domains > 0)
        printf("%s: %d domains with %d modes, %d of them were there already; modes in %.2f s, forces in %.2f s\n", part,
               r->domains, r->modes, r->cached_domains, r->seconds_modes, r->seconds_forces);
    else if (r->cached)
        printf("%s: %d modes, were there already\n", part, r->modes);
    else
        printf("%s: %d modes in %.2f s, forces in %.2f s\n", part, r->modes, r->seconds_modes, r->seconds_forces);
    app_print_cubature(stdout, s, r);
    if (r->kept) printf("kept in %s\n", s->cache);
    return fflush(stdout) == 0 ? APP_DONE : APP_FAILED;
}

static int run(int argc, char **argv) {
    const char      *cache = NULL;
    int              threads = 0, exit_code = APP_DONE;
    bool             quiet = false, json = false;
    app_list         overrides = {0};
    const app_option options[] = {
        {"--cache", NULL, APP_TEXT, &cache, 0, 0, "DIR",
         "where classes are kept; default: $LIMBER_CACHE or ~/.cache/limber"},
        {"--threads", NULL, APP_INT, &threads, 0, 256, "N", "default: one per core"},
        {"--set", NULL, APP_LIST, &overrides, 0, 0, "KEY=VALUE",
         "overrides the scene, for example parts.beam.modes.count=30"},
        {"--quiet", "-q", APP_FLAG, &quiet, 0, 0, NULL, "no progress"},
        {"--json", NULL, APP_FLAG, &json, 0, 0, NULL, "one JSON object on standard output"},
    };
    app_words words;
    if (!app_parse(&command_precompute, argc, argv, sizeof options / sizeof *options, options, 1, 1, &words,
                   &exit_code))
        return exit_code;
    fem_set_threads(threads);
    fem_status   status = FEM_OK;
    scene       *s = NULL;
    scene_result result = {0};
    char         usual[512];
    app_progress progress;
    app_progress_begin(&progress, quiet, NULL, 0);
    FEM_TRY(scene_load(&s, words.items[0], overrides.count, overrides.items));
    FEM_TRY(scene_set_cache(s, app_cache_folder(cache, usual, sizeof usual)));
    FEM_TRY(scene_precompute(s, &progress.callback, &result));
    app_progress_end(&progress);
    app_print_notes(result.notes);
    exit_code = json ? print_json(s, &result) : print_text(s, &result);
    if (!result.kept) exit_code = APP_FAILED; // a note says why
done:
    app_progress_end(&progress);
    if (status != FEM_OK) exit_code = app_fail(status);
    scene_result_destroy(&result);
    scene_destroy(s);
    return exit_code;
}

const app_command command_precompute = {"precompute",
                                        "Make and keep the reduced models of a scene",
                                        "SCENE [OPTIONS]",
                                        "limber precompute scenes/spoon.json",
                                        run,
                                        NULL};
