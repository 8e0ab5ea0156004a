// Progress on standard error, and Ctrl-C. A terminal gets one line that is drawn over and over:
//   simulating  [=========>          ]  47%  31.2 frames/s  12 s left
// Anything else (a file, a pipe, a build log) gets a plain line now and then.
#include "app/app.h"

#include <signal.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const double SECONDS_BETWEEN_DRAWINGS = 0.1, SECONDS_BETWEEN_LINES = 5;
enum { BAR_WIDTH = 30 };

static volatile sig_atomic_t interrupted;

// The second signal finds the default action again and ends the program.
static void remember_interrupt(int signal_number) {
    interrupted = 1;
    signal(signal_number, SIG_DFL);
}

bool app_interrupted(void) { return interrupted != 0; }

static void listen_to_signals(void) {
    struct sigaction action = {.sa_handler = remember_interrupt, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void print_duration(char *text, size_t size, double seconds) {
    long whole = seconds < 1e8 ? (long)(seconds + 0.5) : 100000000;
    if (whole >= 3600)
        snprintf(text, size, "%ld h %02ld min", whole / 3600, whole / 60 % 60);
    else if (whole >= 60)
        snprintf(text, size, "%ld min %02ld s", whole / 60, whole % 60);
    else
        snprintf(text, size, "%ld s", whole);
}

// "31.2 frames/s  12 s left": empty before anything can be said
static void describe_speed(const app_progress *p, double fraction, double now, char *text, size_t size) {
    double elapsed = now - p->begun, done = fraction - p->from;
    text[0] = 0;
    if (elapsed <= 0 || done <= 0) return;
    int used = 0;
    if (p->counts && strcmp(p->what, p->counts) == 0)
        used = snprintf(text, size, "  %.3g frames/s", done * p->frames / elapsed);
    if (used < 0 || (size_t)used >= size) return;
    char duration[48];
    print_duration(duration, sizeof duration, fraction < 1 ? elapsed / done * (1 - fraction) : elapsed);
    snprintf(text + used, size - (size_t)used, fraction < 1 ? "  %s left" : "  in %s", duration);
}

static void draw_bar(app_progress *p, double fraction, const char *speed) {
    char bar[BAR_WIDTH + 1];
    int  filled = (int)(fraction * BAR_WIDTH);
    for (int i = 0; i < BAR_WIDTH; i++) bar[i] = i < filled ? '=' : i == filled ? '>' : ' ';
    bar[BAR_WIDTH] = 0;
    fprintf(stderr, "\r%s  [%s] %3.0f%%%s\033[K", p->what, bar, 100 * fraction, speed);
    fflush(stderr);
    p->open = true;
}

static bool report(void *context, const char *what, double fraction) {
    app_progress *p = context;
    if (!(fraction >= 0)) fraction = 0;
    if (fraction > 1) fraction = 1;
    double now = fem_seconds();
    bool   new_stage = strncmp(p->what, what, sizeof p->what - 1) != 0;
    if (new_stage) {
        app_progress_end(p);
        snprintf(p->what, sizeof p->what, "%s", what);
        p->begun = now;
        p->from = fraction;
        p->printed = p->terminal ? now - SECONDS_BETWEEN_DRAWINGS : now;
    }
    bool   last = fraction >= 1;
    double pause = p->terminal ? SECONDS_BETWEEN_DRAWINGS : SECONDS_BETWEEN_LINES;
    if (!p->quiet && (last ? p->terminal || now - p->begun > 1 : now - p->printed >= pause)) {
        char speed[128];
        describe_speed(p, fraction, now, speed, sizeof speed);
        if (p->terminal)
            draw_bar(p, fraction, speed);
        else
            fprintf(stderr, "%s: %.0f%%%s\n", p->what, 100 * fraction, speed);
        p->printed = now;
    }
    return !app_interrupted();
}

void app_progress_begin(app_progress *progress, bool quiet, const char *counts, double frames) {
    memset(progress, 0, sizeof *progress);
    progress->callback = (fem_progress){report, progress};
    progress->quiet = quiet;
    progress->counts = counts;
    progress->frames = frames;
    const char *terminal = getenv("TERM");
    progress->terminal = isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
    listen_to_signals();
}

void app_progress_end(app_progress *progress) {
    if (progress->open) fputc('\n', stderr);
    progress->open = false;
}
