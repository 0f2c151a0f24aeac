// SPDX-License-Identifier: MIT
// Numbers in text.
#ifndef CORE_BASE_NUMBER_H
#define CORE_BASE_NUMBER_H

// strtod() in the C locale: the decimal separator is a point, whatever the process has set.
double text_to_double(const char *text, char **out_end);

#endif // CORE_BASE_NUMBER_H
