// SPDX-License-Identifier: MIT
// The first fault that one of the kit's kernels has found in the arguments of its call.
#include <stdarg.h>
#include "family.h"

static char fault[300];

void fault_clear(void)
{
    fault[0] = 0;
}

void fault_note(const char *format, ...)
{
    va_list list;
    if (fault[0])
        return;
    va_start(list, format);
    vsnprintf(fault, sizeof(fault), format, list);
    va_end(list);
}

const char *fault_text(void)
{
    return fault;
}
