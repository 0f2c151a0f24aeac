// SPDX-License-Identifier: MIT
// Numbers in text.
#ifndef CORE_BASE_NUMBER_H
#define CORE_BASE_NUMBER_H

// strtod() with a point before the decimals, whatever locale the process has set.
double text_to_double(const char *text, char **out_end);

#endif // CORE_BASE_NUMBER_H
