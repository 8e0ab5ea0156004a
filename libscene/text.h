// Inside libscene only: a text that grows, and what JSON needs of it.
#ifndef LIMBER_SCENE_TEXT_H
#define LIMBER_SCENE_TEXT_H

#include "libfem/fem.h"

typedef struct scene_text {
    char      *text; // ends with a zero byte once something was put
    size_t     length, room;
    fem_status status; // the first failure; nothing is added after it
} scene_text;

void scene_text_put(scene_text *t, const char *bytes, size_t count);
void scene_text_print(scene_text *t, const char *format, ...) __attribute__((format(printf, 2, 3))); // up to 1 KB
void scene_text_number(scene_text *t, double value, int digits); // significant; a point, whatever the locale
void scene_text_string(scene_text *t, const char *text);         // in quotes, escaped
// Gives the text to the caller, or the failure.
fem_status scene_text_finish(scene_text *t, char **text);

#endif
