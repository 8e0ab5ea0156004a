// What the commands of the program share: command table, options, messages, exit codes, progress, JSON output.
// Each command is one file cmd_NAME.c that defines `const app_command command_NAME`; main.c lists them.
#ifndef LIMBER_APP_H
#define LIMBER_APP_H

#include "libscene/scene.h"

#include <stdio.h>

// ---- commands and exit codes ------------------------------------------------------------------------------------

enum { APP_DONE = 0, APP_FAILED = 1, APP_BAD_INPUT = 2 }; // the program's exit codes

typedef struct app_command {
    const char *name;                  // "modes"
    const char *summary;               // one line for `limber --help`
    const char *usage;                 // "MESH --count K [OPTIONS]": what follows the name
    const char *example;               // a whole command line that works
    int (*run)(int argc, char **argv); // argv[0] is the command's name; returns an exit code
    const char *details;               // further lines for its --help, or NULL
} app_command;

extern const app_command command_run, command_check, command_precompute; // scenes
extern const app_command command_info, command_convert, command_mesh;    // meshes
extern const app_command command_modes, command_evaluate;                // the gauges of the numerics
extern const app_command command_decompose, command_render, command_stitch, command_grow;

// ---- options ----------------------------------------------------------------------------------------------------

typedef enum app_option_kind {
    APP_FLAG,   // bool *: set to true
    APP_INT,    // int *: within low .. high
    APP_NUMBER, // double *: finite, within low .. high
    APP_TEXT,   // const char **: not empty
    APP_LIST,   // app_list *: may be given again and again
} app_option_kind;

typedef struct app_list {
    int         count;
    const char *items[64];
} app_list;

// A target keeps its value when its option is not given, so initialise it with the default (NAN is a good "not given").
typedef struct app_option {
    const char     *name;  // "--frames"
    const char     *brief; // "-f", or NULL
    app_option_kind kind;
    void           *target;
    double          low, high; // inclusive; both 0 means any
    const char     *argument;  // "N", shown by --help; NULL for a flag
    const char     *help;
} app_option;

// The words of a command line that are no options.
typedef struct app_words {
    int         count;
    const char *items[8];
} app_words;

// Reads `argv[1] ...`: `--name value`, `--name=value`, `-n value`, words; `--` ends the options.
// --help is known everywhere: it prints usage, options and example. Returns true when the command goes on; otherwise
// *exit_code says how the program ends (0 after --help, 2 after a mistake, whose message has been printed).
// `words` must come out with a count in least .. most.
bool app_parse(const app_command *command, int argc, char **argv, int option_count, const app_option *options,
               int least, int most, app_words *words, int *exit_code);

// The candidate that is nearest to a misspelt word, or NULL when none is near.
const char *app_nearest(const char *word, int count, const char *const *candidates);

// ---- materials from the command line (material_options.c) ------------------------------------------------------

// Parameters as given, NAN where not. Lists are "a,b,c".
typedef struct app_material_options {
    const char *kind;                               // NULL: the mesh file's own
    double      young, poisson, density;            // linear, stvk, neohookean
    double      mu01, mu10, v1;                     // mooney-rivlin
    double      mu, chain, bulk;                    // arruda-boyce
    const char *young3, *poisson3, *shear3, *frame; // orthotropic
} app_material_options;
app_material_options app_material_none(void);

// Gives the mesh's materials (those that elements have) the wanted kind and parameters; what is not given stays the
// file's own where it means something for the kind, and is asked for otherwise. FEM_BAD_INPUT names the option that is
// missing or has no use.
fem_status app_material_apply(fem_mesh *mesh, const char *path, bool needs_density,
                              const app_material_options *options);
// Did the file say what the body is made of?
bool app_mesh_has_material(const fem_mesh *mesh);

bool app_is_scene(const char *path); // by its ending: .json, .json.gz

// ---- held vertices (fixed_option.c) -----------------------------------------------------------------------------

// --fix: the vertices in a file, numbered as the mesh file does, or of the vertex set behind "set:"; 0-based,
// allocated.
fem_status app_fixed_read(const fem_mesh *mesh, const char *fix, int **items, int *count);

// ---- messages (standard error) ----------------------------------------------------------------------------------

// "limber: ..."; for mistakes in the command line. Returns APP_BAD_INPUT.
int app_usage_error(const app_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Prints fem_message(), as it is when it starts with FILE:LINE:, otherwise behind "limber: ". Returns the exit code of
// the status: 2 for FEM_BAD_INPUT and FEM_IO, which is about reading input here; 0 for FEM_OK; otherwise 1.
int app_fail(fem_status status);
// The same for writing results: FEM_IO is then a failure of the computation, 1.
int app_fail_output(fem_status status);
// A remark on standard error, "limber: ...".
void app_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
// As printf, for lines with names of files and scenes: their control characters are shown as ?.
void app_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

// What the reader of a mesh passed over, a remark each.
void app_note_remarks(const fem_remarks *remarks);
// fem_mesh_read with those remarks.
fem_status app_read_mesh(fem_mesh *mesh, const char *path);

// ---- progress (standard error) ----------------------------------------------------------------------------------

// On a terminal a bar with rate and time left, elsewhere a plain line at most every few seconds. The clock starts again
// when `what` changes. After Ctrl-C (or SIGTERM) the callback returns false, so that the computation ends with
// FEM_STOPPED; a second Ctrl-C ends the program at once.
typedef struct app_progress {
    fem_progress callback; // give &progress.callback to the library
    bool         quiet;    // nothing is printed; Ctrl-C still works
    bool         terminal;
    const char  *counts; // the stage that counts frames, "simulating"; NULL: none
    double       frames; // how many fraction 1 of that stage means
    char         what[64];
    double       begun, printed; // fem_seconds()
    double       from;           // fraction at `begun`
    bool         open;           // an unfinished line stands on the terminal
} app_progress;

void app_progress_begin(app_progress *progress, bool quiet, const char *counts, double frames);
void app_progress_end(app_progress *progress); // closes the line; call it before printing anything else
bool app_interrupted(void);                    // Ctrl-C was pressed; app_progress_begin starts listening

// ---- JSON (standard output) -------------------------------------------------------------------------------------

// Keys are NULL inside arrays and for the outermost object. Numbers that are not finite become null.
typedef struct app_json {
    FILE *out;
    int   depth;
    char  closing[16]; // '}' or ']' per level
    bool  some[16];    // something was printed at this level
} app_json;

void app_json_begin(app_json *json, FILE *out);
void app_json_object(app_json *json, const char *key);
void app_json_array(app_json *json, const char *key);
void app_json_end(app_json *json); // of the innermost object or array
void app_json_text(app_json *json, const char *key, const char *text);
void app_json_number(app_json *json, const char *key, double value);
void app_json_integer(app_json *json, const char *key, long long value);
void app_json_remarks(app_json *json, const fem_remarks *remarks); // the array "remarks"
void app_json_bool(app_json *json, const char *key, bool value);
void app_json_numbers(app_json *json, const char *key, int count, const double *values);
// Ends all levels and the line, and flushes. Returns APP_DONE, or APP_FAILED (after a message) when writing failed.
int app_json_finish(app_json *json);

// ---- scenes (cache.c) ---------------------------------------------------------------------------------------------

// The folder that is meant: the given one, else $LIMBER_CACHE, $XDG_CACHE_HOME/limber or ~/.cache/limber; NULL without.
const char *app_cache_folder(const char *given, char *buffer, size_t size);
void        app_print_notes(const char *notes); // lines of text, or NULL, to standard error
// What the cubature of a part came out as: an object "cubature", or a line; nothing for parts without (cubature.c).
void app_put_cubature(app_json *json, const scene *s, const scene_result *result);
void app_print_cubature(FILE *out, const scene *s, const scene_result *result);

// The motion of a scene, run as its file and the overrides say (render_scene.c). Caller destroys the model.
// *loaded: the scene was read, and what failed after that is no fault of the input.
fem_status app_model_of_scene(scene_model **model, const char *path, const app_list *overrides, bool quiet,
                              bool *loaded);

#endif
