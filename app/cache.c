// Where precomputed classes are kept.
#include "app/app.h"

#include <stdlib.h>

const char *app_cache_folder(const char *given, char *buffer, size_t size) {
    const char *own = getenv("LIMBER_CACHE"), *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (given) return given;
    if (own && own[0]) return own;
    if (base && base[0] == '/')
        snprintf(buffer, size, "%s/limber", base);
    else if (home && home[0] == '/')
        snprintf(buffer, size, "%s/.cache/limber", home);
    else
        return NULL;
    return buffer;
}

void app_print_notes(const char *notes) {
    while (notes && *notes) {
        int length = 0;
        while (notes[length] && notes[length] != '\n') length++;
        app_note("%.*s", length, notes);
        notes += length + (notes[length] == '\n');
    }
}
