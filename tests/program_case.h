// What the tests of the program share: running it, and reading what it prints. Runs the program that LIMBER_PROGRAM
// names.
#ifndef LIMBER_TEST_PROGRAM_CASE_H
#define LIMBER_TEST_PROGRAM_CASE_H

#include "tests/support.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdarg.h>
#include <sys/wait.h>

typedef struct outcome {
    int  code; // exit code, or -1 when a signal ended it
    char out[65536], err[16384];
} outcome;

static outcome result; // of the latest run

static inline void read_whole(const char *path, char *text, size_t size) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = 0;
    fclose(file);
}

// Runs `limber ARGUMENTS`, as the shell splits them.
__attribute__((format(printf, 1, 2))) static inline int limber(const char *format, ...) {
    char    command[4096], arguments[3072];
    va_list list;
    va_start(list, format);
    vsnprintf(arguments, sizeof arguments, format, list);
    va_end(list);
    const char *program = getenv("LIMBER_PROGRAM");
    if (!program) fail_msg("LIMBER_PROGRAM is not set; make test sets it");
    const char *out = test_temporary("out.txt"), *err = test_temporary("err.txt");
    snprintf(command, sizeof command, "'%s' %s > '%s' 2> '%s' < /dev/null", program, arguments, out, err);
    int status = system(command);
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    read_whole(out, result.out, sizeof result.out);
    read_whole(err, result.err, sizeof result.err);
    return result.code;
}

static inline void assert_says(const char *text, const char *words) {
    if (!strstr(text, words)) fail_msg("expected \"%s\" in \"%s\"", words, text);
}

// A cube of side 2 with its corner at the origin, one H8, and the same cut into five T4.
static const char cube_h8[] =
    "*VERTICES\n8 3 0 0\n1 0 0 0\n2 2 0 0\n3 2 2 0\n4 0 2 0\n5 0 0 2\n6 2 0 2\n7 2 2 2\n8 0 2 2\n"
    "*ELEMENTS\nCUBIC\n1 8 0\n1 1 2 3 4 5 6 7 8\n"
    "*MATERIAL jelly\nENU, 500, 1e5, 0.25\n*REGION\nallElements, jelly\n";
static const char cube_t4[] =
    "*VERTICES\n8 3 0 0\n1 0 0 0\n2 2 0 0\n3 2 2 0\n4 0 2 0\n5 0 0 2\n6 2 0 2\n7 2 2 2\n8 0 2 2\n"
    "*ELEMENTS\nTET\n5 4 0\n1 1 2 3 6\n2 1 3 4 8\n3 1 6 8 5\n4 3 8 6 7\n5 1 3 8 6\n"
    "*MATERIAL jelly\nENU, 500, 1e5, 0.25\n*REGION\nallElements, jelly\n";

static inline cJSON *parse_output(void) {
    const char *end = NULL;
    cJSON      *json = cJSON_ParseWithOpts(result.out, &end, false);
    if (!json) fail_msg("not JSON: %s", result.out);
    assert_string_equal(end + strspn(end, " \n"), ""); // one object and nothing else
    return json;
}

// The keys of an object, in order.
static inline void assert_keys(const cJSON *object, const char *expected) {
    char found[512] = "";
    for (const cJSON *child = object->child; child; child = child->next) {
        strncat(found, child->string, sizeof found - strlen(found) - 1);
        if (child->next) strncat(found, " ", sizeof found - strlen(found) - 1);
    }
    assert_string_equal(found, expected);
}

static inline double number(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!cJSON_IsNumber(item)) fail_msg("no number \"%s\" in %s", key, result.out);
    return item->valuedouble;
}

static inline int length(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!cJSON_IsArray(item)) fail_msg("no list \"%s\" in %s", key, result.out);
    return cJSON_GetArraySize(item);
}

#endif
