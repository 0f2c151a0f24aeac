// SPDX-License-Identifier: MIT
#include "number.h"

#include <locale.h>
#include <stdlib.h>

double text_to_double(const char *text, char **out_end)
{
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale) // out of memory: use the process's locale
        return strtod(text, out_end);
    double value = strtod_l(text, out_end, c_locale);
    freelocale(c_locale);
    return value;
}
