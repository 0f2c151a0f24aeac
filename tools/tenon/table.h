// SPDX-License-Identifier: MIT
// Tables for people and for programs: rows are JSON objects, printed as aligned columns or
// as JSON.
#ifndef TOOLS_TENON_TABLE_H
#define TOOLS_TENON_TABLE_H

#include <jansson.h>
#include "tool.h"

struct column {
    const char *key; // in each row
    const char *title;
};

// Prints `rows` (an array of objects) as aligned columns with a title line. Lists are
// joined by commas, absent values are "-".
int table_print(const json_t *rows, const struct column *columns, size_t num_columns);

// Prints `value` indented, with keys in the order they were set.
int json_print(const json_t *value);

// A JSON array of a list of strings that ends with NULL (which may be NULL itself).
json_t *json_strings(const char *const *list);

#endif // TOOLS_TENON_TABLE_H
