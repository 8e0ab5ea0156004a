// JSON on standard output: one value after the other, indented, always valid whatever the numbers and texts are.
#include "app/app.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { DEEPEST = sizeof((app_json *)0)->closing };

void app_json_begin(app_json *json, FILE *out) {
    memset(json, 0, sizeof *json);
    json->out = out;
}

// Bytes of the UTF-8 sequence at text, or 0 when it is none (RFC 3629: no overlong forms, no surrogates, at most
// 10FFFF).
static int utf8_length(const unsigned char *text) {
    unsigned char c = text[0];
    int length = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
    for (int i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    if ((c == 0xe0 && text[1] < 0xa0) || (c == 0xed && text[1] >= 0xa0)) return 0;
    if ((c == 0xf0 && text[1] < 0x90) || (c == 0xf4 && text[1] >= 0x90)) return 0;
    return length;
}

static void print_text(FILE *out, const char *text) {
    fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        int length = utf8_length(c);
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < 0x20 || *c == 0x7f)
            fprintf(out, "\\u%04x", *c);
        else if (length == 0)
            fputs("\\ufffd", out); // a byte that is no text
        else
            fwrite(c, 1, (size_t)length, out);
        c += length > 0 ? length : 1;
    }
    fputc('"', out);
}

static void print_number(FILE *out, double value) {
    if (isfinite(value))
        fprintf(out, "%.17g", value);
    else
        fputs("null", out);
}

// Comma, new line and key of the next value.
static void next_value(app_json *json, const char *key) {
    if (json->depth > 0) {
        if (json->some[json->depth - 1]) fputc(',', json->out);
        fprintf(json->out, "\n%*s", 2 * json->depth, "");
        json->some[json->depth - 1] = true;
    }
    if (!key) return;
    print_text(json->out, key);
    fputs(": ", json->out);
}

static void open_level(app_json *json, const char *key, char opening, char closing) {
    next_value(json, key);
    fputc(opening, json->out);
    assert(json->depth < DEEPEST); // how deep a command nests is known when it is written
    json->closing[json->depth] = closing;
    json->some[json->depth] = false;
    json->depth++;
}

void app_json_object(app_json *json, const char *key) { open_level(json, key, '{', '}'); }
void app_json_array(app_json *json, const char *key) { open_level(json, key, '[', ']'); }

void app_json_end(app_json *json) {
    if (json->depth == 0) return;
    json->depth--;
    if (json->some[json->depth]) fprintf(json->out, "\n%*s", 2 * json->depth, "");
    fputc(json->closing[json->depth], json->out);
}

void app_json_text(app_json *json, const char *key, const char *text) {
    next_value(json, key);
    print_text(json->out, text);
}

void app_json_number(app_json *json, const char *key, double value) {
    next_value(json, key);
    print_number(json->out, value);
}

void app_json_integer(app_json *json, const char *key, long long value) {
    next_value(json, key);
    fprintf(json->out, "%lld", value);
}

void app_json_remarks(app_json *json, const fem_remarks *remarks) {
    app_json_array(json, "remarks");
    for (int i = 0; i < remarks->count; i++) app_json_text(json, NULL, remarks->items[i]);
    app_json_end(json);
}

void app_json_bool(app_json *json, const char *key, bool value) {
    next_value(json, key);
    fputs(value ? "true" : "false", json->out);
}

// On one line, which keeps vectors readable.
void app_json_numbers(app_json *json, const char *key, int count, const double *values) {
    next_value(json, key);
    fputc('[', json->out);
    for (int i = 0; i < count; i++) {
        if (i > 0) fputs(", ", json->out);
        print_number(json->out, values[i]);
    }
    fputc(']', json->out);
}

int app_json_finish(app_json *json) {
    while (json->depth > 0) app_json_end(json);
    fputc('\n', json->out);
    if (fflush(json->out) == 0 && !ferror(json->out)) return APP_DONE;
    app_note("standard output could not be written");
    return APP_FAILED;
}
