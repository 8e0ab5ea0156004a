// The program `limber`: finds the command and runs it. Exit codes: 0 done, 1 the computation failed, 2 bad usage or
// input.
#include "app/app.h"

#include <signal.h>
#include <string.h>

static const app_command *const commands[] = {
    &command_run,   &command_check,    &command_precompute, &command_info,   &command_convert, &command_mesh,
    &command_modes, &command_evaluate, &command_decompose,  &command_render, &command_stitch,  &command_grow};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void print_help(FILE *out) {
    fputs("limber: simulation of deformable bodies by finite elements\n\n"
          "Usage: limber COMMAND [WORDS] [OPTIONS]\n\n",
          out);
    for (int i = 0; i < COMMANDS; i++) fprintf(out, "  %-10s  %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n  limber COMMAND --help   options and an example\n"
          "  limber --version        version\n"
          "  limber info --machine   processor, threads and libraries in use\n",
          out);
}

static const app_command *find_command(const char *name) {
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}

static int unknown_command(const char *name) {
    const char *names[COMMANDS];
    for (int i = 0; i < COMMANDS; i++) names[i] = commands[i]->name;
    const char *nearest = app_nearest(name, COMMANDS, names);
    if (nearest)
        app_note("unknown command \"%s\" (did you mean \"%s\"?)", name, nearest);
    else
        app_note("unknown command \"%s\"; \"limber --help\" lists them", name);
    return APP_BAD_INPUT;
}

int main(int argc, char **argv) {
    fem_machine_correct_blas(argv);
    signal(SIGXFSZ, SIG_IGN); // a file beyond `ulimit -f` fails to be written, as on a full disk
    if (argc < 2) {
        print_help(stderr);
        return APP_BAD_INPUT;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || (strcmp(word, "help") == 0 && argc == 2)) {
        print_help(stdout);
        return APP_DONE;
    }
    if (strcmp(word, "--version") == 0) {
        puts("limber " LIMBER_VERSION);
        return APP_DONE;
    }
    bool               help = strcmp(word, "help") == 0; // limber help COMMAND
    const app_command *command = find_command(help ? argv[2] : word);
    if (!command) return unknown_command(help ? argv[2] : word);
    char  option[] = "--help";
    char *words[] = {help ? argv[2] : argv[1], option, NULL};
    int   exit_code = help ? command->run(2, words) : command->run(argc - 1, argv + 1);
    // results that did not arrive are no success: a full disk shows only now
    bool lost = fflush(stdout) != 0 || ferror(stdout);
    if (!lost || exit_code != APP_DONE) return exit_code;
    app_note("standard output could not be written");
    return APP_FAILED;
}
