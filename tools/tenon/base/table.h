// SPDX-License-Identifier: MIT
// Tables for people and for programs: rows are JSON objects, printed as aligned columns or
// as JSON.
#ifndef TOOLS_TENON_BASE_TABLE_H
#define TOOLS_TENON_BASE_TABLE_H

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

// A JSON array of the strings in a list that ends with NULL; the list may be NULL.
json_t *json_strings(const char *const *list);

// A text from outside as JSON: where it is no UTF-8, escaped as printable() does.
json_t *json_text(const char *text);

// The value of a member as text; "" when it is no string.
const char *text_of(const json_t *object, const char *key);

#endif // TOOLS_TENON_BASE_TABLE_H
