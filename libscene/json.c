// Strict JSON. cJSON builds the tree; a scanner over the same text comes first, because cJSON keeps no positions and
// lets pass what RFC 8259 does not: 01, 1., .5, control characters, invalid UTF-8, text behind the end. What the RFC
// leaves open is refused too where it hides mistakes: duplicate keys, numbers beyond the range of a double, deep
// nesting.
#include "libscene/internal.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// cJSON copies a number into a buffer of 64 characters, and would cut a longer one in two.
enum { NUMBER_LENGTH = 60, LARGEST_FILE = 1 << 28 };

typedef struct scanner {
    const char          *label;
    const unsigned char *at, *end;
    int                  line;
    int                 *lines; // of the values, in the order of the text
    size_t               count, capacity;
    char                 stack[JSON_DEPTH]; // the brackets that are open
    int                  depth;
} scanner;

static fem_status fail(const scanner *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static fem_status fail(const scanner *s, const char *format, ...) {
    char    text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return fem_fail(FEM_BAD_INPUT, "%s:%d: %s", s->label, s->line, text);
}

static int peek(const scanner *s) { return s->at < s->end ? *s->at : -1; }

static void skip_blanks(scanner *s) {
    for (; s->at < s->end && strchr(" \t\r\n", *s->at) && *s->at; s->at++)
        if (*s->at == '\n') s->line++;
}

// "found ..." for a message, whatever the byte is
static const char *found(const scanner *s, char text[32]) {
    int c = peek(s);
    if (c < 0) return "found the end of the file";
    if (c < 0x20 || c >= 0x7f)
        snprintf(text, 32, "found the byte 0x%02x", (unsigned)c);
    else
        snprintf(text, 32, "found \"%c\"", c);
    return text;
}

// Length of the UTF-8 sequence at a byte >= 0x80, or 0: no overlong forms, no surrogates, nothing above U+10FFFF.
static int utf8_length(const unsigned char *p, const unsigned char *end) {
    int length = p[0] >= 0xc2 && p[0] <= 0xdf   ? 2
                 : p[0] >= 0xe0 && p[0] <= 0xef ? 3
                 : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
                                                : 0;
    if (length == 0 || end - p < length) return 0;
    for (int i = 1; i < length; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
        (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return length;
}

static int hex4(const unsigned char *p, const unsigned char *end) {
    int value = 0;
    if (end - p < 4) return -1;
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef", *digit = p[i] ? strchr(digits, p[i] | 0x20) : NULL;
        if (!digit || (p[i] < 'A' && p[i] > '9') || p[i] < '0') return -1;
        value = 16 * value + (int)(digit - digits);
    }
    return value;
}

// After a backslash.
static fem_status scan_escape(scanner *s) {
    int c = peek(s);
    if (c < 0) return fail(s, "a string does not end");
    if (c != 'u') {
        if (!strchr("\"\\/bfnrt", c) || c == 0)
            return fail(s, "\\%c is not an escape of JSON", c >= 0x20 && c < 0x7f ? c : '?');
        s->at++;
        return FEM_OK;
    }
    int code = hex4(s->at + 1, s->end);
    if (code < 0) return fail(s, "\\u must be followed by four hexadecimal digits");
    if (code == 0) return fail(s, "\\u0000 is not allowed in a string");
    s->at += 5;
    if (code >= 0xdc00 && code <= 0xdfff) return fail(s, "\\u%04x is half of a surrogate pair", (unsigned)code);
    if (code >= 0xd800 && code <= 0xdbff) {
        bool escape = s->end - s->at >= 6 && s->at[0] == '\\' && s->at[1] == 'u';
        int  low = escape ? hex4(s->at + 2, s->end) : -1;
        if (low < 0xdc00 || low > 0xdfff) return fail(s, "\\u%04x is half of a surrogate pair", (unsigned)code);
        s->at += 6;
    }
    return FEM_OK;
}

static fem_status scan_string(scanner *s) {
    for (s->at++;;) {
        int c = peek(s);
        if (c < 0 || c == '\n') return fail(s, "a string does not end on its line");
        if (c == '"') return s->at++, FEM_OK;
        if (c < 0x20 || c == 0x7f) return fail(s, "a string holds the control character 0x%02x", (unsigned)c);
        if (c == '\\') {
            s->at++;
            fem_status status = scan_escape(s);
            if (status != FEM_OK) return status;
        } else if (c >= 0x80) {
            int length = utf8_length(s->at, s->end);
            if (length == 0) return fail(s, "the byte 0x%02x is not valid UTF-8", (unsigned)c);
            s->at += length;
        } else {
            s->at++;
        }
    }
}

static bool is_digit(int c) { return c >= '0' && c <= '9'; }

// -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?
static fem_status scan_number(scanner *s) {
    const unsigned char *start = s->at;
    if (peek(s) == '-') s->at++;
    if (!is_digit(peek(s))) return fail(s, "a number must start with a digit (0.5, not .5)");
    bool zero = peek(s) == '0';
    s->at++;
    if (zero && is_digit(peek(s))) return fail(s, "a number must not start with 0 and another digit");
    while (is_digit(peek(s))) s->at++;
    if (peek(s) == '.') {
        s->at++;
        if (!is_digit(peek(s))) return fail(s, "a decimal point must be followed by a digit (1.0 or 1, not 1.)");
        while (is_digit(peek(s))) s->at++;
    }
    if (peek(s) == 'e' || peek(s) == 'E') {
        s->at++;
        if (peek(s) == '+' || peek(s) == '-') s->at++;
        if (!is_digit(peek(s))) return fail(s, "an exponent must have a digit");
        while (is_digit(peek(s))) s->at++;
    }
    if (s->at - start > NUMBER_LENGTH) return fail(s, "a number has more than %d characters", NUMBER_LENGTH);
    return FEM_OK;
}

static bool take_word(scanner *s, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(s->end - s->at) < length || memcmp(s->at, word, length) != 0) return false;
    s->at += length;
    return true;
}

static bool       at_comment(const scanner *s) { return peek(s) == '/' || peek(s) == '#'; }
static fem_status fail_comment(const scanner *s) {
    return fail(s, "comments are not part of JSON (\"title\" takes text)");
}

static fem_status scan_scalar(scanner *s) {
    char text[32];
    int  c = peek(s);
    if (c == '"') return scan_string(s);
    if (take_word(s, "-Infinity") || take_word(s, "-NaN")) return fail(s, "NaN and Infinity are not numbers of JSON");
    if (c == '-' || c == '.' || is_digit(c)) return scan_number(s);
    if (take_word(s, "true") || take_word(s, "false") || take_word(s, "null")) return FEM_OK;
    if (at_comment(s)) return fail_comment(s);
    if (take_word(s, "NaN") || take_word(s, "Infinity")) return fail(s, "NaN and Infinity are not numbers of JSON");
    if (c == '\'') return fail(s, "strings are written in double quotes");
    return fail(s, "expected a value, %s", found(s, text));
}

static fem_status note_line(scanner *s, int line) {
    fem_status status = fem_grow((void **)&s->lines, &s->capacity, s->count + 1, sizeof *s->lines);
    if (status == FEM_OK) s->lines[s->count++] = line;
    return status;
}

// A key and its colon; *line gets the line of the key.
static fem_status scan_key(scanner *s, int *line) {
    char text[32];
    skip_blanks(s);
    *line = s->line;
    if (peek(s) == '}') return fail(s, "there is a comma before \"}\", where another key should follow");
    if (at_comment(s)) return fail_comment(s);
    if (peek(s) != '"') return fail(s, "expected a key in double quotes, %s", found(s, text));
    fem_status status = scan_string(s);
    if (status != FEM_OK) return status;
    skip_blanks(s);
    if (peek(s) != ':') return fail(s, "expected \":\" after a key, %s", found(s, text));
    s->at++;
    skip_blanks(s);
    return FEM_OK;
}

// Closes brackets after a value and moves to the next value; *line gets its line, *finished says that there is none.
static fem_status scan_next(scanner *s, int *line, bool *finished) {
    char text[32];
    for (;;) {
        skip_blanks(s);
        *finished = s->depth == 0;
        if (*finished) return FEM_OK;
        bool object = s->stack[s->depth - 1] == '{';
        if (peek(s) == (object ? '}' : ']')) {
            s->depth--, s->at++;
            continue;
        }
        if (peek(s) != ',')
            return fail(s, "expected \",\" or \"%c\" after a value, %s", object ? '}' : ']', found(s, text));
        s->at++;
        if (object) return scan_key(s, line);
        skip_blanks(s);
        *line = s->line;
        if (peek(s) == ']') return fail(s, "there is a comma before \"]\", where another value should follow");
        return FEM_OK;
    }
}

static fem_status scan(scanner *s) {
    fem_status status = FEM_OK;
    char       text[32];
    bool       finished = false;
    if (take_word(s, "\xef\xbb\xbf")) return fail(s, "the file starts with a byte order mark: save it as plain UTF-8");
    skip_blanks(s);
    if (s->at == s->end) return fail(s, "the file is empty, expected a JSON object");
    for (int line = s->line; !finished;) {
        FEM_TRY(note_line(s, line));
        int  c = peek(s);
        bool opens = c == '{' || c == '[';
        if (opens) {
            if (s->depth == JSON_DEPTH) return fail(s, "nested deeper than %d lists and objects", JSON_DEPTH);
            s->stack[s->depth++] = (char)c;
            s->at++;
            skip_blanks(s);
            line = s->line;
            bool empty = peek(s) == (c == '{' ? '}' : ']');
            if (!empty && c == '{') FEM_TRY(scan_key(s, &line));
            if (!empty) continue;
        } else {
            FEM_TRY(scan_scalar(s));
        }
        FEM_TRY(scan_next(s, &line, &finished));
    }
    if (s->at < s->end) return fail(s, "expected nothing behind the end of the object, %s", found(s, text));
done:
    return status;
}

// ---- the tree ------------------------------------------------------------------------------------------------------

static void *allocate(size_t size) { return fem_alloc(size, 1); }
static void  set_hooks(void) { cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = allocate, .free_fn = fem_free}); }

void json_visit(cJSON *root, void (*visit)(void *context, cJSON *node), void *context) {
    cJSON *stack[JSON_DEPTH + 2]; // the nodes above the present one
    int    depth = 0;
    for (cJSON *node = root; node;) {
        visit(context, node);
        if (node->child) {
            stack[depth++] = node;
            node = node->child;
            continue;
        }
        while (depth > 0 && !node->next) node = stack[--depth];
        node = depth > 0 ? node->next : NULL;
    }
}

typedef struct marking {
    const char  *label;
    const int   *lines;
    size_t       next;
    fem_status   status;
    const char **keys; // room for the keys of one object
    size_t       capacity;
} marking;

static int compare_keys(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void check_duplicates(marking *m, const cJSON *object) {
    size_t count = 0;
    for (const cJSON *child = object->child; child; child = child->next) {
        m->status = fem_grow((void **)&m->keys, &m->capacity, count + 1, sizeof *m->keys);
        if (m->status != FEM_OK) return;
        m->keys[count++] = child->string;
    }
    if (count > 1) qsort(m->keys, count, sizeof *m->keys, compare_keys);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(m->keys[i - 1], m->keys[i]) != 0) continue;
        int first = 0, second = 0;
        for (const cJSON *child = object->child; child && !second; child = child->next)
            if (strcmp(child->string, m->keys[i]) == 0) *(first ? &second : &first) = child->valueint;
        m->status = fem_fail(FEM_BAD_INPUT, "%s:%d: the key \"%s\" stands twice in one object, first on line %d",
                             m->label, second, m->keys[i], first);
        return;
    }
}

static void mark(void *context, cJSON *node) {
    marking *m = context;
    node->valueint = m->lines[m->next++];
    if (m->status == FEM_OK && cJSON_IsNumber(node) && !isfinite(node->valuedouble))
        m->status =
            fem_fail(FEM_BAD_INPUT, "%s:%d: a number is too large, expected at most 1.8e308", m->label, node->valueint);
}

static void find_duplicates(void *context, cJSON *node) {
    marking *m = context;
    if (m->status == FEM_OK && cJSON_IsObject(node)) check_duplicates(m, node);
}

fem_status json_parse(cJSON **root, const char *label, const char *text, size_t size) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    fem_status            status = FEM_OK;
    cJSON                *tree = NULL;
    scanner               s = {.label = label, .at = (const unsigned char *)text, .line = 1};
    marking               m = {.label = label};
    pthread_once(&once, set_hooks);
    if (size > LARGEST_FILE) return fem_fail(FEM_BAD_INPUT, "%s: has more than %d bytes", label, LARGEST_FILE);
    s.end = s.at + size;
    FEM_TRY(scan(&s));
    tree = cJSON_ParseWithLengthOpts(text, size, NULL, false);
    if (!tree) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory for its %zu values", label, s.count);
        goto done;
    }
    m.lines = s.lines;
    json_visit(tree, mark, &m);
    json_visit(tree, find_duplicates, &m);
    FEM_TRY(m.status);
    cJSON_Delete(*root);
    *root = tree;
    tree = NULL;
done:
    cJSON_Delete(tree);
    fem_free(m.keys);
    fem_free(s.lines);
    return status;
}

const char *json_kind(const cJSON *node) {
    return cJSON_IsNumber(node)   ? "a number"
           : cJSON_IsString(node) ? "a string"
           : cJSON_IsArray(node)  ? "a list"
           : cJSON_IsObject(node) ? "an object"
           : cJSON_IsBool(node)   ? "true or false"
                                  : "null";
}
