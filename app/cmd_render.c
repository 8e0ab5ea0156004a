// `limber render`: pictures of an animated .glb file or of a scene, and a film of them where ffmpeg is installed.
#include "app/app.h"

#include <errno.h>
#include <math.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

typedef struct settings {
    const char          *output, *size, *film;
    double               at, rate, azimuth, elevation, zoom, field, sun_azimuth, sun_elevation, turn;
    int                  frames, samples, threads;
    bool                 no_ground, quiet, json;
    app_list             overrides;
    scene_render_options render;
} settings;

static bool ends_in(const char *text, const char *ending) {
    size_t length = strlen(text), tail = strlen(ending);
    return length > tail && strcmp(text + length - tail, ending) == 0;
}

// The rules that the option parser does not know. Returns APP_DONE or, after a message, APP_BAD_INPUT.
static int check_settings(settings *s) {
    char end;
    if (!s->output) return app_usage_error(&command_render, "--output is needed: FILE.png, or a folder for frames");
    if (s->size && (sscanf(s->size, "%dx%d%c", &s->render.width, &s->render.height, &end) != 2 || s->render.width < 1 ||
                    s->render.height < 1 || s->render.width > 16384 || s->render.height > 16384))
        return app_usage_error(&command_render, "--size is \"%s\", expected WIDTHxHEIGHT up to 16384, as 1280x720",
                               s->size);
    bool single = ends_in(s->output, ".png");
    if (!single && !isnan(s->at))
        return app_usage_error(&command_render, "--at is for one picture; give --output a name that ends in .png");
    if (single && (s->film || s->frames > 0))
        return app_usage_error(&command_render, "%s is for many pictures; give --output a folder",
                               s->film ? "--film" : "--frames");
    s->render.samples = s->samples, s->render.ground = !s->no_ground;
    s->render.sun_azimuth = s->sun_azimuth, s->render.sun_elevation = s->sun_elevation;
    return APP_DONE;
}

static fem_status make_folder(const char *folder) {
    struct stat about;
    if (mkdir(folder, 0777) == 0 || (errno == EEXIST && stat(folder, &about) == 0 && S_ISDIR(about.st_mode)))
        return FEM_OK;
    return fem_fail(FEM_IO, "%s: cannot make the folder: %s", folder, strerror(errno));
}

// Everything that moves shall stay in the picture: the box of several moments.
static fem_status find_stage(scene_model *model, scene_stage *stage) {
    enum { MOMENTS = 12 };
    double begin, end;
    scene_model_times(model, &begin, &end);
    *stage = scene_stage_empty();
    for (int i = 0; i < (end > begin ? MOMENTS : 1); i++) {
        const scene_drawing *drawing;
        fem_status           status = scene_model_pose(model, begin + (end - begin) * i / (MOMENTS - 1), &drawing);
        if (status != FEM_OK) return status;
        scene_stage_add(stage, drawing);
    }
    return FEM_OK;
}

// Runs ffmpeg on the frames; after a remark there is no film where it is not installed. It writes beside the film,
// under a name with the same ending, which is its format, so that the film is whole or the old one.
static fem_status make_film(const settings *s, bool *made) {
    char        pattern[4096], number[32], part[4096];
    const char *slash = strrchr(s->film, '/'), *name = slash ? slash + 1 : s->film;
    snprintf(pattern, sizeof pattern, "%s/frame_%%05d.png", s->output);
    snprintf(number, sizeof number, "%g", s->rate);
    snprintf(part, sizeof part, "%.*s.%ld-part-%s", (int)(name - s->film), s->film, (long)getpid(), name);
    const char *const words[] = {
        "ffmpeg", "-y",   "-loglevel", "error",    "-framerate", number, "-i",
        pattern,  "-c:v", "libx264",   "-pix_fmt", "yuv420p",    "-vf",  "scale=trunc(iw/2)*2:trunc(ih/2)*2",
        part,     NULL};
    pid_t child;
    int   code = -1;
    if (posix_spawnp(&child, "ffmpeg", NULL, NULL, (char *const *)(uintptr_t)words, environ) != 0 ||
        waitpid(child, &code, 0) != child || (WIFEXITED(code) && WEXITSTATUS(code) == 127)) {
        app_note("%s was not made: ffmpeg is not installed (apt install ffmpeg); the frames are there", s->film);
        return FEM_OK;
    }
    fem_status status = FEM_OK;
    if (code != 0)
        status = fem_fail(FEM_IO, "%s: cannot be written: ffmpeg failed; the frames are there", s->film);
    else if (rename(part, s->film) != 0)
        status = fem_fail(FEM_IO, "%s: cannot be put in place: %s; the frames are there", s->film, strerror(errno));
    if (status != FEM_OK) unlink(part);
    *made = status == FEM_OK;
    return status;
}

typedef struct outcome {
    int    pictures, triangles;
    double seconds;
    bool   film;
} outcome;

static fem_status draw_all(const settings *s, scene_model *model, outcome *result, app_progress *progress) {
    fem_status           status = FEM_OK;
    scene_renderer      *renderer = NULL;
    const scene_drawing *drawing;
    const scene_image   *image;
    scene_stage          stage;
    double               begin, end;
    bool                 single = ends_in(s->output, ".png");
    scene_model_times(model, &begin, &end);
    int frames = single ? 1 : s->frames > 0 ? s->frames : (int)floor((end - begin) * s->rate + 1.000001);
    FEM_TRY(find_stage(model, &stage));
    FEM_TRY(scene_renderer_create(&renderer, &s->render));
    if (!single) FEM_TRY(make_folder(s->output));
    app_progress_begin(progress, s->quiet || s->json, "drawing", frames);
    for (int i = 0; i < frames; i++) {
        char         path[4096];
        double       time = single ? (isnan(s->at) ? begin : s->at) : begin + i / s->rate;
        scene_camera camera = scene_camera_fit(&stage, s->render.width, s->render.height,
                                               s->azimuth + s->turn * i / s->rate, s->elevation, s->zoom, s->field);
        FEM_TRY(fem_progress_report(&progress->callback, "drawing", (double)i / frames));
        double begun = fem_seconds();
        FEM_TRY(scene_model_pose(model, time, &drawing));
        FEM_TRY(scene_renderer_draw(renderer, drawing, &stage, &camera, &image));
        result->seconds += fem_seconds() - begun;
        if (single)
            snprintf(path, sizeof path, "%s", s->output);
        else
            snprintf(path, sizeof path, "%s/frame_%05d.png", s->output, i);
        FEM_TRY(scene_image_write(image, path));
        result->pictures++, result->triangles = drawing->triangle_count;
    }
    if (s->film) {
        app_progress_end(progress);
        FEM_TRY(make_film(s, &result->film));
    }
done:
    app_progress_end(progress);
    scene_renderer_destroy(renderer);
    return status;
}

static int print_result(const settings *s, const outcome *result) {
    double each = result->pictures > 0 ? result->seconds / result->pictures : 0;
    if (!s->json) {
        printf("%s: %d picture%s of %d x %d, %d triangles, %.2f s each\n", s->output, result->pictures,
               result->pictures == 1 ? "" : "s", s->render.width, s->render.height, result->triangles, each);
        if (result->film) printf("%s: the film\n", s->film);
        return APP_DONE;
    }
    app_json json;
    app_json_begin(&json, stdout);
    app_json_object(&json, NULL);
    app_json_integer(&json, "pictures", result->pictures);
    app_json_integer(&json, "triangles", result->triangles);
    app_json_number(&json, "seconds_each", each);
    app_json_bool(&json, "film", result->film);
    return app_json_finish(&json);
}

static int run(int argc, char **argv) {
    settings s = {.at = NAN, .rate = 24, .azimuth = 30, .elevation = 8, .zoom = 1, .field = 35, .samples = 2};
    s.render = scene_render_default_options();
    s.sun_azimuth = s.render.sun_azimuth, s.sun_elevation = s.render.sun_elevation;
    const app_option options[] = {
        {"--output", "-o", APP_TEXT, &s.output, 0, 0, "FILE.png|FOLDER",
         "one picture, or a folder for frame_00000.png ..."},
        {"--at", NULL, APP_NUMBER, &s.at, 0, 0, "S", "time of the one picture; default: the beginning"},
        {"--size", NULL, APP_TEXT, &s.size, 0, 0, "WxH", "pixels; default 1280x720"},
        {"--frames", NULL, APP_INT, &s.frames, 1, 1e6, "N", "how many; default: the whole motion"},
        {"--rate", NULL, APP_NUMBER, &s.rate, 0.01, 1000, "FPS", "pictures a second of motion; default 24"},
        {"--film", NULL, APP_TEXT, &s.film, 0, 0, "FILE.mp4", "also a film of the frames, when ffmpeg is installed"},
        {"--azimuth", NULL, APP_NUMBER, &s.azimuth, -3600, 3600, "DEG", "of the camera around y, from +z; default 30"},
        {"--elevation", NULL, APP_NUMBER, &s.elevation, -89, 90, "DEG", "of the camera above the horizon; default 8"},
        {"--turn", NULL, APP_NUMBER, &s.turn, -3600, 3600, "DEG",
         "degrees a second that the camera goes around; default 0"},
        {"--zoom", NULL, APP_NUMBER, &s.zoom, 0.01, 100, "X", "1 fits everything (the default), 2 is twice as near"},
        {"--field", NULL, APP_NUMBER, &s.field, 1, 120, "DEG", "vertical angle of view; default 35"},
        {"--sun-azimuth", NULL, APP_NUMBER, &s.sun_azimuth, -3600, 3600, "DEG", "of the sun; default -50"},
        {"--sun-elevation", NULL, APP_NUMBER, &s.sun_elevation, 5, 90, "DEG", "of the sun; default 42"},
        {"--samples", NULL, APP_INT, &s.samples, 1, 4, "N", "per pixel and axis; default 2, that is four a pixel"},
        {"--no-ground", NULL, APP_FLAG, &s.no_ground, 0, 0, NULL, "nothing but the sky around"},
        {"--set", NULL, APP_LIST, &s.overrides, 0, 0, "KEY=VALUE", "overrides the scene, as in limber run"},
        {"--threads", NULL, APP_INT, &s.threads, 1, 1024, "N", "default: one per core"},
        {"--quiet", NULL, APP_FLAG, &s.quiet, 0, 0, NULL, "no progress"},
        {"--json", NULL, APP_FLAG, &s.json, 0, 0, NULL, "one JSON object on standard output"},
    };
    app_words words;
    int       exit_code;
    if (!app_parse(&command_render, argc, argv, sizeof options / sizeof *options, options, 1, 1, &words, &exit_code))
        return exit_code;
    if ((exit_code = check_settings(&s)) != APP_DONE) return exit_code;
    if (s.threads > 0) fem_set_threads(s.threads);
    scene_model *model = NULL;
    bool         loaded = false, of_scene = ends_in(words.items[0], ".json");
    if (!of_scene && s.overrides.count > 0)
        return app_usage_error(&command_render, "--set is for scenes, and %s is none", words.items[0]);
    fem_status status = of_scene ? app_model_of_scene(&model, words.items[0], &s.overrides, s.quiet || s.json, &loaded)
                                 : scene_model_read(&model, words.items[0]);
    if (status != FEM_OK) return loaded ? app_fail_output(status) : app_fail(status);
    outcome      result = {0};
    app_progress progress = {0};
    status = draw_all(&s, model, &result, &progress);
    scene_model_destroy(model);
    if (status != FEM_OK && status != FEM_STOPPED) return app_fail_output(status);
    exit_code = print_result(&s, &result);
    return status == FEM_STOPPED ? APP_FAILED : exit_code;
}

const app_command command_render = {
    "render",
    "Pictures of an animated .glb file, or of a scene",
    "FILE.glb|SCENE -o FILE.png|FOLDER [OPTIONS]",
    "limber render oak.glb -o frames --film oak.mp4",
    run,
    "Drawn by this program itself, without a graphics card: a sun with soft shadows, light of the\n"
    "sky, ground. y points up, as in every .glb file. A SCENE (.json) is run first, into a folder that is\n"
    "removed; `limber run` with the format \"glb\" keeps the file, which renders again at once.\n"};
