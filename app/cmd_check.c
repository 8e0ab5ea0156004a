// `limber check`: reads a scene with its meshes and selections, and says what a run would need.
#include "app/app.h"

static int print_json(const scene *s, const scene_summary *a) {
    app_json json;
    app_json_begin(&json, stdout);
    app_json_object(&json, NULL);
    app_json_text(&json, "scene", s->path);
    app_json_text(&json, "method", scene_method_name(s->method));
    app_json_integer(&json, "vertices", a->vertices);
    app_json_integer(&json, "elements", a->elements);
    app_json_integer(&json, "regions", a->regions);
    app_json_integer(&json, "fixed", a->fixed);
    app_json_integer(&json, "moved", a->moved);
    app_json_integer(&json, "free_dofs", a->free_dofs);
    app_json_number(&json, "mass", a->mass);
    app_json_number(&json, "volume", a->volume);
    app_json_numbers(&json, "low", 3, a->low);
    app_json_numbers(&json, "high", 3, a->high);
    app_json_integer(&json, "domains", s->tree.domains.count);
    app_json_integer(&json, "instances", s->forest.count);
    app_json_integer(&json, "frames", a->frames);
    app_json_number(&json, "steps", a->steps);
    app_json_number(&json, "step", s->solver.time_step);
    app_json_number(&json, "duration", a->duration);
    app_json_number(&json, "bytes", a->bytes);
    app_json_number(&json, "factor_bytes", a->factor_bytes);
    return app_json_finish(&json);
}

static int print_text(const scene *s, const scene_summary *a) {
    const scene_part *part = &s->parts[s->object];
    printf("%s: good\n", s->path);
    if (s->title) app_print("  %s\n", s->title);
    if (s->forest.count > 0)
        printf("  instances  %d of %d parts: %d vertices, %d elements in all\n", s->forest.count, s->forest.part_count,
               a->vertices, a->elements);
    else
        printf("  part       %s: %d vertices, %d %s, %d region%s\n", part->name, a->vertices, a->elements,
               part->mesh.type == FEM_T4 ? "tetrahedra" : "hexahedra", a->regions, a->regions == 1 ? "" : "s");
    printf("  size       (%.4g, %.4g, %.4g) to (%.4g, %.4g, %.4g) m\n", a->low[0], a->low[1], a->low[2], a->high[0],
           a->high[1], a->high[2]);
    printf("  mass       %.6g kg, volume %.6g m^3\n", a->mass, a->volume);
    if (s->forest.count > 0)
        printf("  supports   %d vertices fixed, %d moved; %d degrees of freedom in modes\n", a->fixed, a->moved,
               a->free_dofs);
    else
        printf("  supports   %d vertices fixed, %d moved; %d degrees of freedom are free\n", a->fixed, a->moved,
               a->free_dofs);
    if (s->tree.domains.count > 0)
        printf("  domains    %d in a tree of depth %d, %d closures of loops and %d further feet on springs\n",
               s->tree.domains.count, s->tree.domains.report.depth, s->tree.domains.closures.count,
               s->tree.domains.grounds.count);
    printf("  actions    %d, probes %d\n", s->action_count, s->probe_count);
    if (s->method == SCENE_STATIC)
        printf("  run        static, %d load step%s\n", s->solver.load_steps, s->solver.load_steps == 1 ? "" : "s");
    else
        printf("  run        %d frames at %.4g/s, %.0f steps of %.6g s, %.4g s in all\n", a->frames, s->rate, a->steps,
               s->solver.time_step, a->duration);
    printf("  memory     about %.1f MB, of which the factor has %.1f MB\n", a->bytes / 1e6, a->factor_bytes / 1e6);
    return fflush(stdout) == 0 ? APP_DONE : APP_FAILED;
}

static int run(int argc, char **argv) {
    bool             json = false;
    int              exit_code = APP_DONE;
    app_list         overrides = {0};
    const app_option options[] = {
        {"--set", NULL, APP_LIST, &overrides, 0, 0, "KEY=VALUE", "overrides the scene, for example solver.step=0.005"},
        {"--json", NULL, APP_FLAG, &json, 0, 0, NULL, "one JSON object on standard output"},
    };
    app_words words;
    if (!app_parse(&command_check, argc, argv, sizeof options / sizeof *options, options, 1, 1, &words, &exit_code))
        return exit_code;
    fem_status    status = FEM_OK;
    scene        *s = NULL;
    scene_summary summary;
    FEM_TRY(scene_load(&s, words.items[0], overrides.count, overrides.items));
    FEM_TRY(scene_summarize(s, &summary));
    exit_code = json ? print_json(s, &summary) : print_text(s, &summary);
    app_note_remarks(&s->remarks);
done:
    if (status != FEM_OK) exit_code = app_fail(status);
    scene_destroy(s);
    return exit_code;
}

const app_command command_check = {"check",
                                   "Check a scene with its meshes, without running it",
                                   "SCENE [OPTIONS]",
                                   "limber check scenes/cantilever.json",
                                   run,
                                   NULL};
