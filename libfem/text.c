// Strict scanning of text, numbers in and out. A decimal number of at most 2^53 with a small power of ten is exact in
// double arithmetic, so one multiplication or division rounds it correctly [Clinger 1990]; every other number goes to
// strtod in the C locale.
#include "libfem/text.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- locale ----------------------------------------------------------------------------------------------------

static locale_t       c_locale; // lives as long as the program
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void open_c_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

int fem_format(char *buffer, size_t size, const char *format, va_list arguments) {
    pthread_once(&c_locale_once, open_c_locale);
    locale_t before = uselocale(c_locale);
    int      length = vsnprintf(buffer, size, format, arguments);
    uselocale(before);
    return length;
}

__attribute__((format(printf, 2, 3))) static int format_short(char buffer[FEM_DIGITS], const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = fem_format(buffer, FEM_DIGITS, format, arguments);
    va_end(arguments);
    return length;
}

// ---- numbers ---------------------------------------------------------------------------------------------------

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool fem_parse_int(const char *at, size_t length, long long *value) {
    const char *end = at + length;
    bool        negative = length > 0 && *at == '-';
    if (length > 0 && (*at == '-' || *at == '+')) at++;
    if (at == end) return false;
    long long sum = 0;
    for (; at < end; at++) {
        if (!is_digit(*at)) return false;
        if (sum > (INT64_MAX - 9) / 10) return false;
        sum = 10 * sum + (*at - '0');
    }
    *value = negative ? -sum : sum;
    return true;
}

bool fem_parse_double(const char *at, size_t length, double *value) {
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char         *start = at, *end = at + length;
    bool                negative = length > 0 && *at == '-';
    if (length > 0 && (*at == '-' || *at == '+')) at++;
    uint64_t mantissa = 0;
    int      digits = 0, kept = 0; // digits seen; digits in the mantissa
    long     exponent = 0;         // of ten
    bool     point = false;
    for (; at < end; at++) {
        if (*at == '.' && !point) {
            point = true;
            continue;
        }
        if (!is_digit(*at)) break;
        digits = 1;
        if (kept < 19) {
            mantissa = 10 * mantissa + (uint64_t)(*at - '0');
            if (mantissa > 0) kept++;
            if (point) exponent--;
        } else {
            kept = 20; // too many for the short way
        }
    }
    if (digits == 0) return false;
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        bool minus = at < end && *at == '-';
        if (at < end && (*at == '-' || *at == '+')) at++;
        if (at == end) return false;
        long written = 0;
        for (; at < end && is_digit(*at); at++)
            if (written < 100000) written = 10 * written + (*at - '0');
        exponent += minus ? -written : written;
    }
    if (at != end) return false;
    if (kept < 20 && mantissa <= (UINT64_C(1) << 53) && exponent >= -22 && exponent <= 22) {
        double x = (double)mantissa;
        x = exponent < 0 ? x / power[-exponent] : x * power[exponent];
        *value = negative ? -x : x;
        return true;
    }
    // the syntax is known to be right, so strtod stops where the word does
    char *stop;
    pthread_once(&c_locale_once, open_c_locale);
    double x = strtod_l(start, &stop, c_locale);
    if (stop != end || !isfinite(x)) return false;
    *value = x;
    return true;
}

int fem_format_int(char buffer[FEM_DIGITS], long long value) {
    char     reversed[FEM_DIGITS];
    int      count = 0, length = 0;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do reversed[count++] = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (value < 0) buffer[length++] = '-';
    while (count > 0) buffer[length++] = reversed[--count];
    buffer[length] = 0;
    return length;
}

int fem_format_digits(char buffer[FEM_DIGITS], int digits, double value) {
    return format_short(buffer, "%.*g", digits, value);
}

int fem_format_double(char buffer[FEM_DIGITS], double value) {
    if (fabs(value) < 1e15 && value == (double)(long long)value && !(value == 0 && signbit(value)))
        return fem_format_int(buffer, (long long)value);
    int length = 0;
    for (int digits = 15; digits <= 17; digits++) {
        double back = 0;
        length = fem_format_digits(buffer, digits, value);
        if (fem_parse_double(buffer, (size_t)length, &back) && back == value) break;
    }
    return length;
}

// ---- words -----------------------------------------------------------------------------------------------------

bool fem_word_is(fem_word word, const char *text) {
    return strlen(text) == word.length && memcmp(word.at, text, word.length) == 0;
}

const char *fem_quote(char buffer[FEM_QUOTE], const char *at, size_t length) {
    size_t used = 0, shown = length < FEM_QUOTE - 6 ? length : FEM_QUOTE - 6;
    buffer[used++] = '"';
    for (size_t i = 0; i < shown; i++) buffer[used++] = at[i] < ' ' || at[i] > '~' ? '?' : at[i];
    if (shown < length) memcpy(buffer + used, "...", 3), used += 3;
    buffer[used++] = '"';
    buffer[used] = 0;
    return buffer;
}

fem_status fem_text_fail(const fem_text *text, const char *format, ...) {
    char    what[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return fem_fail(FEM_BAD_INPUT, "%s:%lld: %s", text->path, text->line, what);
}

fem_status fem_text_expected(fem_text *text, const char *what) {
    fem_word word = fem_text_peek(text);
    char     quote[FEM_QUOTE];
    if (word.length > 0)
        return fem_text_fail(text, "expected %s, found %s", what, fem_quote(quote, word.at, word.length));
    return fem_text_fail(text, "expected %s, found the end of the %s", what, text->at == text->end ? "file" : "line");
}

// Is there a backslash that joins this line with the next? Then *behind is where that begins.
static bool is_joined(const fem_text *text, const char *at, const char **behind) {
    if (!text->continued || *at != '\\') return false;
    at++;
    if (at < text->end && *at == '\r') at++;
    if (at >= text->end || *at != '\n') return false;
    *behind = at + 1;
    return true;
}

static bool is_blank(const fem_text *text, char c) {
    return c == ' ' || c == '\t' || c == '\r' || (c == ',' && text->commas);
}

bool fem_text_at_line_end(fem_text *text) {
    while (text->at < text->end) {
        const char *behind = text->at + 1;
        bool        joined = is_joined(text, text->at, &behind);
        if (!joined && !is_blank(text, *text->at)) break;
        text->at = behind;
        text->line += joined;
    }
    return text->at == text->end || *text->at == '\n' || (text->comment && *text->at == text->comment);
}

void fem_text_leave_line(fem_text *text) {
    const char *newline = memchr(text->at, '\n', (size_t)(text->end - text->at));
    if (newline) text->line++;
    text->at = newline ? newline + 1 : text->end;
}

bool fem_text_next(fem_text *text) {
    while (fem_text_at_line_end(text)) {
        if (text->at == text->end) return false;
        fem_text_leave_line(text);
    }
    return true;
}

fem_word fem_text_peek(fem_text *text) {
    if (fem_text_at_line_end(text)) return (fem_word){text->at, 0};
    const char *at = text->at, *behind;
    while (at < text->end && !is_blank(text, *at) && *at != '\n' && !(text->comment && *at == text->comment) &&
           !is_joined(text, at, &behind))
        at++;
    return (fem_word){text->at, (size_t)(at - text->at)};
}

fem_word fem_text_take(fem_text *text) {
    fem_word word = fem_text_peek(text);
    text->at += word.length;
    return word;
}

fem_word fem_text_rest(fem_text *text) {
    if (fem_text_at_line_end(text)) return (fem_word){text->at, 0};
    const char *start = text->at;
    while (text->at < text->end && *text->at != '\n' && !(text->comment && *text->at == text->comment)) text->at++;
    const char *stop = text->at;
    while (stop > start && is_blank(text, stop[-1])) stop--;
    return (fem_word){start, (size_t)(stop - start)};
}

fem_status fem_text_end_line(fem_text *text) {
    if (!fem_text_at_line_end(text)) return fem_text_expected(text, "the end of the line");
    return FEM_OK;
}

fem_status fem_text_int(fem_text *text, const char *what, long long low, long long high, long long *value) {
    fem_word  word = fem_text_peek(text);
    long long x = 0;
    char      quote[FEM_QUOTE];
    if (!fem_parse_int(word.at, word.length, &x)) {
        if (word.length == 0) return fem_text_expected(text, what);
        return fem_text_fail(text, "expected %s, an integer, found %s", what, fem_quote(quote, word.at, word.length));
    }
    if (x < low || x > high)
        return low == high ? fem_text_fail(text, "%s is %lld, expected %lld", what, x, low)
                           : fem_text_fail(text, "%s is %lld, expected %lld to %lld", what, x, low, high);
    text->at += word.length;
    *value = x;
    return FEM_OK;
}

// "1.5D+03"
static bool parse_fortran(fem_word word, double *value) {
    char  copy[64];
    char *letter = NULL;
    if (word.length >= sizeof copy) return false;
    for (size_t i = 0; i < word.length && !letter; i++)
        if ((word.at[i] | 32) == 'd') letter = copy + i;
    if (!letter) return false;
    memcpy(copy, word.at, word.length);
    copy[word.length] = 0;
    *letter = 'e';
    return fem_parse_double(copy, word.length, value);
}

fem_status fem_text_double(fem_text *text, const char *what, double *value) {
    fem_word word = fem_text_peek(text);
    char     quote[FEM_QUOTE];
    if (!fem_parse_double(word.at, word.length, value) && !(text->fortran && parse_fortran(word, value))) {
        if (word.length == 0) return fem_text_expected(text, what);
        return fem_text_fail(text, "expected %s, a finite number, found %s", what,
                             fem_quote(quote, word.at, word.length));
    }
    text->at += word.length;
    return FEM_OK;
}
