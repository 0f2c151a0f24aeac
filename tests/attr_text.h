// SPDX-License-Identifier: MIT
// Attributes from a text such as "alpha=4, axes=[0, 1]", for tests: each value is given as
// a text.
#ifndef TESTS_ATTR_TEXT_H
#define TESTS_ATTR_TEXT_H

#include <stdlib.h>
#include <string.h>
#include "attr/attrs.h"

#define ATTR_TEXT_MAX 16 // values

// Up to the comma or the end, brackets skipped.
static inline size_t attr_text_size(const char *text)
{
    int depth = 0;
    size_t i = 0;
    for (; text[i] && (depth > 0 || text[i] != ','); i++)
        depth += (text[i] == '[' || text[i] == '(') - (text[i] == ']' || text[i] == ')');
    return i;
}

// As attrs_fill; what has no "=" is a name without a text.
static inline tn_status fill_from_text(const tn_attr_table *table, const char *text,
                                       void *out)
{
    tn_attr items[ATTR_TEXT_MAX];
    uint64_t count = 0;
    char *copy = strdup(text), *at = copy;
    while (copy && count < ATTR_TEXT_MAX && *(at += strspn(at, " \t\n"))) {
        size_t size = attr_text_size(at);
        char *next = at + size + (at[size] == ','), *equals;
        at[size] = '\0';
        equals = strchr(at, '=');
        if (equals)
            *equals = '\0';
        at[strcspn(at, " \t\n")] = '\0';
        items[count++] =
            (tn_attr){.name = at, .kind = TN_ATTR_TEXT, .text = equals ? equals + 1 : NULL};
        at = next;
    }
    tn_status status = attrs_fill(table, TN_ATTR_LIST(items, count), out);
    free(copy);
    return status;
}

#endif // TESTS_ATTR_TEXT_H
