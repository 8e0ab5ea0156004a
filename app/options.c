// The command line: typed options, words, --help, "did you mean"; and the messages about what went wrong.
#include "app/app.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

// ---- messages -----------------------------------------------------------------------------------------------------

// Names come from files of anybody: what would steer a terminal is shown as a question mark.
static void put_plain(FILE *out, const char *text) {
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        bool wide = c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0; // U+0080 to U+009F have two bytes
        bool control = (c[0] < ' ' && c[0] != '\n' && c[0] != '\t') || c[0] == 0x7f || wide;
        fputc(control ? '?' : c[0], out);
        c += wide;
    }
}

static void print_plain(FILE *out, const char *format, va_list arguments) {
    char text[4096];
    vsnprintf(text, sizeof text, format, arguments);
    put_plain(out, text);
}

void app_print(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_plain(stdout, format, arguments);
    va_end(arguments);
}

void app_note(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("limber: ", stderr);
    print_plain(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

void app_note_remarks(const fem_remarks *remarks) {
    for (int i = 0; i < remarks->count; i++) app_note("%s", remarks->items[i]);
}

fem_status app_read_mesh(fem_mesh *mesh, const char *path) {
    fem_remarks remarks = {0};
    fem_status  status = fem_mesh_read_remarks(mesh, path, &remarks);
    if (status == FEM_OK) app_note_remarks(&remarks);
    fem_remarks_destroy(&remarks);
    return status;
}

int app_usage_error(const app_command *command, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "limber %s: ", command->name);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\nTry \"limber %s --help\".\n", command->name);
    va_end(arguments);
    return APP_BAD_INPUT;
}

// Does the message start with FILE:LINE: ? Editors and terminals open such a place when nothing stands before it.
static bool names_a_line(const char *message) {
    for (const char *colon = strchr(message, ':'); colon; colon = strchr(colon + 1, ':')) {
        const char *digit = colon + 1;
        while (isdigit((unsigned char)*digit)) digit++;
        if (digit > colon + 1 && digit[0] == ':' && colon > message) return true;
        if (colon[1] == ' ') return false; // the place ends where the sentence begins
    }
    return false;
}

static int exit_code_of(fem_status status, int code_of_io) {
    switch (status) {
    case FEM_OK:
        return APP_DONE;
    case FEM_BAD_INPUT:
        return APP_BAD_INPUT;
    case FEM_IO:
        return code_of_io;
    default:
        return APP_FAILED;
    }
}

static int report_failure(fem_status status, int code_of_io) {
    if (status == FEM_OK) return APP_DONE;
    const char *message = fem_message();
    if (!message[0]) message = "failed without a message";
    if (names_a_line(message))
        put_plain(stderr, message), fputc('\n', stderr);
    else
        app_note("%s", message);
    return exit_code_of(status, code_of_io);
}

int app_fail(fem_status status) { return report_failure(status, APP_BAD_INPUT); }
int app_fail_output(fem_status status) { return report_failure(status, APP_FAILED); }

// ---- did you mean -------------------------------------------------------------------------------------------------

enum { LONGEST_WORD = 63 };

// Edits (insert, delete, replace, swap of neighbours) between two words: the optimal string alignment distance.
static int edit_distance(const char *a, const char *b) {
    int rows[3][LONGEST_WORD + 2];
    int n = (int)strlen(a), m = (int)strlen(b);
    if (n > LONGEST_WORD || m > LONGEST_WORD) return LONGEST_WORD;
    int *before = rows[0], *last = rows[1], *row = rows[2];
    for (int j = 0; j <= m; j++) before[j] = last[j] = j;
    for (int i = 1; i <= n; i++) {
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best) best = last[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && before[j - 2] + 1 < best) best = before[j - 2] + 1;
            row[j] = best;
        }
        int *free_row = before;
        before = last, last = row, row = free_row;
    }
    return last[m];
}

const char *app_nearest(const char *word, int count, const char *const *candidates) {
    const char *nearest = NULL;
    int         best = (int)strlen(word) / 3 + 1; // a third of the letters may be wrong
    for (int i = 0; i < count; i++) {
        int  distance = edit_distance(word, candidates[i]);
        bool beginning = strlen(word) >= 4 && strncmp(word, candidates[i], strlen(word)) == 0;
        if (beginning) distance = 1;
        if (distance > best || (nearest && distance == best)) continue;
        nearest = candidates[i];
        best = distance;
    }
    return nearest;
}

// ---- help ---------------------------------------------------------------------------------------------------------

static void print_help(const app_command *command, int option_count, const app_option *options) {
    printf("Usage: limber %s %s\n\n%s.\n", command->name, command->usage, command->summary);
    if (command->details) printf("%s", command->details);
    printf("\nOptions:\n");
    for (int i = 0; i < option_count; i++) {
        char left[80];
        snprintf(left, sizeof left, "%s%s%s%s%s", options[i].brief ? options[i].brief : "",
                 options[i].brief ? ", " : "", options[i].name, options[i].argument ? " " : "",
                 options[i].argument ? options[i].argument : "");
        printf("  %-26s  %s\n", left, options[i].help);
    }
    printf("  %-26s  %s\n\nExample:\n  %s\n", "--help", "this text", command->example);
}

// ---- values -------------------------------------------------------------------------------------------------------

static bool has_range(const app_option *option) { return option->low != 0 || option->high != 0; }

static bool outside(const app_option *option, double value) {
    return has_range(option) && !(value >= option->low && value <= option->high);
}

static int range_error(const app_command *command, const app_option *option, const char *text, const char *what) {
    if (!has_range(option)) return app_usage_error(command, "%s is \"%s\", expected %s", option->name, text, what);
    if (option->high >= INT_MAX)
        return app_usage_error(command, "%s is \"%s\", expected %s, %g or more", option->name, text, what, option->low);
    return app_usage_error(command, "%s is \"%s\", expected %s from %g to %g", option->name, text, what, option->low,
                           option->high);
}

static bool set_int(const app_command *command, const app_option *option, const char *text, int *exit_code) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (end == text || *end || errno || value < INT_MIN || value > INT_MAX || outside(option, (double)value)) {
        *exit_code = range_error(command, option, text, "a whole number");
        return false;
    }
    *(int *)option->target = (int)value;
    return true;
}

static bool set_number(const app_command *command, const app_option *option, const char *text, int *exit_code) {
    char  *end;
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || outside(option, value)) {
        *exit_code = range_error(command, option, text, "a finite number");
        return false;
    }
    *(double *)option->target = value;
    return true;
}

static bool set_value(const app_command *command, const app_option *option, const char *text, int *exit_code) {
    if (option->kind == APP_INT) return set_int(command, option, text, exit_code);
    if (option->kind == APP_NUMBER) return set_number(command, option, text, exit_code);
    if (!text[0]) {
        *exit_code = app_usage_error(command, "%s is empty, expected %s", option->name, option->argument);
        return false;
    }
    if (option->kind == APP_TEXT) {
        *(const char **)option->target = text;
        return true;
    }
    app_list *list = option->target;
    int       most = (int)(sizeof list->items / sizeof *list->items);
    if (list->count == most) {
        *exit_code = app_usage_error(command, "%s is given more than %d times", option->name, most);
        return false;
    }
    list->items[list->count++] = text;
    return true;
}

// ---- parsing ------------------------------------------------------------------------------------------------------

static const app_option *find_option(int option_count, const app_option *options, const char *name, size_t length) {
    for (int i = 0; i < option_count; i++) {
        const app_option *o = &options[i];
        if (strlen(o->name) == length && strncmp(o->name, name, length) == 0) return o;
        if (o->brief && strlen(o->brief) == length && strncmp(o->brief, name, length) == 0) return o;
    }
    return NULL;
}

static int unknown_option(const app_command *command, int option_count, const app_option *options, const char *name,
                          size_t length) {
    enum { MOST = 64 };
    const char *candidates[MOST];
    int         count = 0;
    for (int i = 0; i < option_count && count < MOST - 1; i++) candidates[count++] = options[i].name;
    candidates[count++] = "--help";
    char word[LONGEST_WORD + 1];
    snprintf(word, sizeof word, "%.*s", (int)(length < LONGEST_WORD ? length : LONGEST_WORD), name);
    const char *nearest = app_nearest(word, count, candidates);
    if (nearest) return app_usage_error(command, "unknown option \"%s\" (did you mean \"%s\"?)", word, nearest);
    return app_usage_error(command, "unknown option \"%s\"", word);
}

// -x and --x are options; "-" alone and negative numbers are words.
static bool looks_like_option(const char *text) {
    return text[0] == '-' && text[1] && !isdigit((unsigned char)text[1]) && text[1] != '.';
}

// One option at argv[*at], with its value; *at moves to the last argument that was used.
static bool read_option(const app_command *command, int argc, char **argv, int *at, int option_count,
                        const app_option *options, int *exit_code) {
    const char       *text = argv[*at], *equals = strchr(text, '=');
    size_t            length = equals ? (size_t)(equals - text) : strlen(text);
    const app_option *option = find_option(option_count, options, text, length);
    if (!option) {
        *exit_code = unknown_option(command, option_count, options, text, length);
        return false;
    }
    if (option->kind == APP_FLAG) {
        if (equals)
            *exit_code = app_usage_error(command, "%s takes no value", option->name);
        else
            *(bool *)option->target = true;
        return !equals;
    }
    if (equals) return set_value(command, option, equals + 1, exit_code);
    if (*at + 1 >= argc || looks_like_option(argv[*at + 1])) {
        *exit_code = app_usage_error(command, "%s needs a value: %s %s", option->name, option->name, option->argument);
        return false;
    }
    return set_value(command, option, argv[++*at], exit_code);
}

bool app_parse(const app_command *command, int argc, char **argv, int option_count, const app_option *options,
               int least, int most, app_words *words, int *exit_code) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(command, option_count, options);
            *exit_code = APP_DONE;
            return false;
        }
    int room = (int)(sizeof words->items / sizeof *words->items);
    words->count = 0;
    bool options_ended = false;
    for (int i = 1; i < argc; i++) {
        if (!options_ended && strcmp(argv[i], "--") == 0) {
            options_ended = true;
        } else if (!options_ended && looks_like_option(argv[i])) {
            if (!read_option(command, argc, argv, &i, option_count, options, exit_code)) return false;
        } else if (words->count == most || words->count == room) {
            *exit_code = app_usage_error(command, "\"%s\" is one word too many; usage: limber %s %s", argv[i],
                                         command->name, command->usage);
            return false;
        } else {
            words->items[words->count++] = argv[i];
        }
    }
    if (words->count < least) {
        *exit_code =
            app_usage_error(command, "something is missing; usage: limber %s %s", command->name, command->usage);
        return false;
    }
    return true;
}

bool app_is_scene(const char *path) {
    static const char *const endings[] = {".json", ".json.gz"};
    size_t                   length = strlen(path);
    for (int i = 0; i < 2; i++)
        if (length > strlen(endings[i]) && strcmp(path + length - strlen(endings[i]), endings[i]) == 0) return true;
    return false;
}
