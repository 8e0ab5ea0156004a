// A text that grows: see text.h.
#include "libscene/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void scene_text_put(scene_text *t, const char *bytes, size_t count) {
    if (t->status == FEM_OK) t->status = fem_grow((void **)&t->text, &t->room, t->length + count + 1, 1);
    if (t->status != FEM_OK) return;
    memcpy(t->text + t->length, bytes, count);
    t->text[t->length += count] = 0;
}

void scene_text_print(scene_text *t, const char *format, ...) {
    char    line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    scene_text_put(t, line, strlen(line));
}

void scene_text_number(scene_text *t, double value, int digits) {
    char number[64];
    snprintf(number, sizeof number, "%.*g", digits, value);
    for (char *c = number; *c; c++)
        if (*c == ',') *c = '.';
    scene_text_put(t, number, strlen(number));
}

void scene_text_string(scene_text *t, const char *text) {
    scene_text_put(t, "\"", 1);
    for (const char *c = text; *c; c++)
        if (*c == '"' || *c == '\\')
            scene_text_put(t, (const char[]){'\\', *c}, 2);
        else if ((unsigned char)*c < 0x20)
            scene_text_print(t, "\\u%04x", (unsigned)*c);
        else
            scene_text_put(t, c, 1);
    scene_text_put(t, "\"", 1);
}

fem_status scene_text_finish(scene_text *t, char **text) {
    if (t->status == FEM_OK)
        *text = t->text;
    else
        fem_free(t->text);
    return t->status;
}
