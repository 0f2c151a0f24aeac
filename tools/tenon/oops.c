// SPDX-License-Identifier: MIT
// The failure that the command ends with. A part of the command that is a file of its own
// has one of its own.
#include "tool.h"

#include <stdarg.h>
#include <stdio.h>

static char failure[4096];

static void record(const char *format, va_list args)
{
    if (!failure[0])
        vsnprintf(failure, sizeof(failure), format, args);
}

int oops(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(format, args);
    va_end(args);
    return EXIT_OOPS;
}

int misuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(format, args);
    va_end(args);
    return EXIT_MISUSE;
}

int oops_memory(void)
{
    return oops("out of memory");
}

const char *oops_text(void)
{
    return failure;
}

void forget_oops(void)
{
    failure[0] = '\0';
}
