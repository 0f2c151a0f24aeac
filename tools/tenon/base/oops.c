// SPDX-License-Identifier: MIT
// The failure that the command ends with. The module tenon-archive is linked with a copy of
// this file, and so has its own failure.
#include "tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char failure[4096];

static void keep_first(const char *format, va_list args)
{
    if (!failure[0])
        vsnprintf(failure, sizeof(failure), format, args);
}

int oops(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    keep_first(format, args);
    va_end(args);
    return EXIT_OOPS;
}

int misuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    keep_first(format, args);
    va_end(args);
    return EXIT_MISUSE;
}

int oops_output(void)
{
    return oops("cannot write the output");
}

int oops_memory(void)
{
    return oops("out of memory");
}

void oops_about(const char *from, const char *to)
{
    char text[sizeof(failure)];
    size_t used = 0, size = strlen(from);
    for (const char *at = failure; *at && used + 1 < sizeof(text);) {
        const char *found = size ? strstr(at, from) : NULL;
        size_t before = found ? (size_t)(found - at) : strlen(at);
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%.*s%s", (int)before,
                                 at, found ? to : "");
        at += before + (found ? size : 0);
    }
    text[used < sizeof(text) ? used : sizeof(text) - 1] = '\0';
    memcpy(failure, text, strlen(text) + 1);
}

const char *oops_text(void)
{
    return failure;
}

void forget_oops(void)
{
    failure[0] = '\0';
}
