// SPDX-License-Identifier: MIT
// The failure that the program ends with.
#include "fail.h"

#include <stdarg.h>
#include <stdlib.h>

static char failure[2048];

static void record(const char *format, va_list args)
{
    if (!failure[0])
        vsnprintf(failure, sizeof(failure), format, args);
}

int fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(format, args);
    va_end(args);
    return FAILED;
}

int fail_usage(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(format, args);
    va_end(args);
    return MISUSED;
}

int fail_memory(void)
{
    return fail("out of memory");
}

int fail_library(void)
{
    const char *text = tn_last_error();
    return fail("%s", text && text[0] ? text : "failed without saying why");
}

int fail_scope(const tn_scope *scope)
{
    const char *text = tn_scope_error(scope);
    return text && text[0] ? fail("%s", text) : fail_library();
}

const char *failure_text(void)
{
    return failure;
}

void forget_failure(void)
{
    failure[0] = '\0';
}

void show(FILE *stream, const char *text, uint32_t flags)
{
    uint64_t size = tn_text_printable(text, flags, NULL, 0) + 1;
    char *shown = malloc(size);
    if (!shown)
        return;
    tn_text_printable(text, flags, shown, size);
    fputs(shown, stream);
    free(shown);
}
