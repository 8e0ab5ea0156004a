// What every test program shares. A test states a property, prints its number, and proves that it looked.
#ifndef LIMBER_TEST_SUPPORT_H
#define LIMBER_TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "libscene/scene.h"

// int main(int argc, char **argv) { return test_main(argv, tests, sizeof tests / sizeof *tests); }
// Corrects the BLAS kernels, runs the tests, and fails when a test leaves memory behind.
int test_main(char **argv, const struct CMUnitTest *tests, size_t count);

// Asserts that a call succeeded and prints its message when it did not.
#define assert_ok(call)                                                                                                \
    do {                                                                                                               \
        fem_status test_status_ = (call);                                                                              \
        if (test_status_ != FEM_OK) fail_msg("%s: %s", #call, fem_message());                                          \
    } while (0)

// Asserts that a call fails with this status and a message that contains `text`.
#define assert_fails(call, expected, text)                                                                             \
    do {                                                                                                               \
        fem_status test_status_ = (call);                                                                              \
        assert_int_equal(test_status_, expected);                                                                      \
        if (!strstr(fem_message(), text)) fail_msg("expected \"%s\" in \"%s\"", text, fem_message());                  \
    } while (0)

// Path of a file of the shared data, in a static buffer; NULL (after saying "skipped: no data") when LIMBER_DATA is not
// set.
const char *test_data(const char *relative);

// Path in a folder of this test run's own that is removed at the end, in one of eight static buffers.
const char *test_temporary(const char *name);

// Writes text to test_temporary(name) and returns that path.
const char *test_write(const char *name, const char *text);

// Uniform in (-1, 1), a sequence that depends on *state only.
double test_random(uint64_t *state);
void   test_random_fill(uint64_t *state, int n, double scale, double *x);

// max |x - y| / max |y|
double test_relative_error(int n, const double *x, const double *y);

#endif
