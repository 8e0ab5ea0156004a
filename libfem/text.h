// Internal to libfem: a strict walk over the text of a file, and numbers as text.
//
// Words are separated by blanks, tabs and carriage returns, and by commas where `commas` is set; a line ends at its
// newline, at the comment sign or at the end of the text. Numbers must be whole words: "1.5x" is no number, nor is
// "nan". Every failure reads PATH:LINE: what was expected, what was found.
#ifndef LIMBER_TEXT_H
#define LIMBER_TEXT_H

#include "libfem/base.h"

#include <stdarg.h>
#include <string.h>

typedef struct fem_text {
    const char *path;      // for messages
    const char *at, *end;  // what is left; a zero byte stands at `end`
    long long   line;      // of `at`, from 1
    char        comment;   // sign that hides the rest of a line; 0: there is none
    bool        commas;    // commas are blanks
    bool        continued; // a backslash before the newline joins two lines
    bool        fortran;   // 1.5D+03 is a number, as Fortran writes it
} fem_text;

// The mark that editors on Windows put before UTF-8 is passed over.
static inline fem_text fem_text_open(const char *path, const char *text, size_t size, char comment, bool commas) {
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) text += 3, size -= 3;
    return (fem_text){.path = path, .at = text, .end = text + size, .line = 1, .comment = comment, .commas = commas};
}

// A piece of the text, not terminated.
typedef struct fem_word {
    const char *at;
    size_t      length;
} fem_word;

bool fem_word_is(fem_word word, const char *text);

// FEM_BAD_INPUT with "PATH:LINE: " in front.
fem_status fem_text_fail(const fem_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
// "expected WHAT, found "WORD"" (or "the end of the line", or "the end of the file")
fem_status fem_text_expected(fem_text *text, const char *what);

bool       fem_text_at_line_end(fem_text *text); // skips blanks; true when the line has no further word
void       fem_text_leave_line(fem_text *text);  // to the beginning of the next line
bool       fem_text_next(fem_text *text);        // skips blank lines and comments to the next word; false at the end
fem_word   fem_text_peek(fem_text *text);        // the next word of this line; length 0 at its end
fem_word   fem_text_take(fem_text *text);        // the same, and goes behind it
fem_word   fem_text_rest(fem_text *text);        // the rest of the line without blanks around it, and goes behind it
fem_status fem_text_end_line(fem_text *text);    // fails when the line has a further word
fem_status fem_text_int(fem_text *text, const char *what, long long low, long long high, long long *value);
fem_status fem_text_double(fem_text *text, const char *what, double *value); // finite

// A word shortened and made printable for a message, in quotes. Returns `buffer`.
enum { FEM_QUOTE = 56 };
const char *fem_quote(char buffer[FEM_QUOTE], const char *at, size_t length);

// Correctly rounded, whatever the locale. False when the text is not one whole finite decimal number. What stands
// behind it must be readable and must not be able to go on with a number: a blank, a sign of punctuation, a zero byte.
bool fem_parse_double(const char *at, size_t length, double *value);
bool fem_parse_int(const char *at, size_t length, long long *value);

// The shortest decimal form that reads back as the same number. Returns its length.
enum { FEM_DIGITS = 32 };
int fem_format_double(char buffer[FEM_DIGITS], double value);
int fem_format_digits(char buffer[FEM_DIGITS], int digits, double value); // so many, rounded
int fem_format_int(char buffer[FEM_DIGITS], long long value);

// vsnprintf with a decimal point, whatever the locale.
int fem_format(char *buffer, size_t size, const char *format, va_list arguments);

// ---- files that include others (sources.c) -----------------------------------------------------------------------

// A stack of texts: the last is being read. At most 16 deep and 1000 in all; no file includes itself.
enum { FEM_DEEPEST_INCLUDE = 16 };
typedef struct fem_sources {
    struct {
        char              *path, *text;
        fem_text           scan;
        unsigned long long device, inode; // which file this is, whatever its name
    } stack[FEM_DEEPEST_INCLUDE];
    int depth, includes;
} fem_sources;
fem_status fem_sources_open(fem_sources *sources, const char *path, char comment); // commas are blanks
// *INCLUDE NAME: relative to the folder of the file that says so. Messages speak of that place.
fem_status fem_sources_include(fem_sources *sources, fem_word name, char comment);
void       fem_sources_pop(fem_sources *sources);
fem_text  *fem_sources_top(fem_sources *sources);
void       fem_sources_close(fem_sources *sources);

// ---- file names ------------------------------------------------------------------------------------------------

bool fem_path_ends(const char *path, const char *ending); // with or without .gz behind it; capitals do not count
bool fem_path_is_gz(const char *path);
// fem_file_read with a limit of one's own on what a file may unpack to.
fem_status fem_file_read_at_most(char **text, size_t *size, const char *path, size_t limit);

#endif
