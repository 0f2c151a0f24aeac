// SPDX-License-Identifier: MIT
// Arrays as text, the way NumPy prints them, and as JSON.
#ifndef TOOLS_TENON_EVAL_PRINT_H
#define TOOLS_TENON_EVAL_PRINT_H

#include <jansson.h>
#include "base/tool.h"

// Prints "f32 (2, 3)" and the elements; of more than 1,000 elements the first and the last
// three of each axis.
int array_print(const struct host_array *array);

// {"dtype": "f32", "shape": [2, 3], "data": [[...], [...]]}. Elements for which JSON has no
// number (nan, inf, integers from 2^63 on) are strings; complex ones are [real, imaginary].
// NULL when out of memory.
json_t *array_json(const struct host_array *array);

#endif // TOOLS_TENON_EVAL_PRINT_H
