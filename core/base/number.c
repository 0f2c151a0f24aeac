// SPDX-License-Identifier: MIT
#include "number.h"

#include <locale.h>
#include <stdlib.h>

double text_to_double(const char *text, char **out_end)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain) // out of memory
        return strtod(text, out_end);
    double value = strtod_l(text, out_end, plain);
    freelocale(plain);
    return value;
}
