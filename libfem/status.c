// Status messages, one per thread, and progress.
#include "libfem/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[1024] = "no failure";

fem_status fem_fail(fem_status status, const char *format, ...) {
    char    text[sizeof message]; // the arguments may point into the old message
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    memcpy(message, text, sizeof message);
    return status;
}

fem_status fem_fail_prefix(fem_status status, const char *format, ...) {
    char    text[sizeof message];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length >= 0 && (size_t)length < sizeof text)
        snprintf(text + length, sizeof text - (size_t)length, "%s", message);
    memcpy(message, text, sizeof message);
    return status;
}

const char *fem_message(void) { return message; }

fem_status fem_progress_report(const fem_progress *progress, const char *what, double fraction) {
    if (progress && progress->report && !progress->report(progress->context, what, fraction))
        return fem_fail(FEM_STOPPED, "stopped on request during %s", what);
    return FEM_OK;
}
