// SPDX-License-Identifier: MIT
// Attributes from a text such as "alpha=4, axes=[0, 1]", for tests: each value is given as
// a text.
#ifndef TESTS_ATTR_TEXT_H
#define TESTS_ATTR_TEXT_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "attr/attrs.h"

#define ATTR_TEXT_MAX 16 // values

// Up to the comma or the end, brackets and quoted texts skipped.
static inline size_t attr_text_size(const char *text)
{
    int depth = 0;
    bool quoted = false;
    size_t i = 0;
    for (; text[i] && (quoted || depth > 0 || text[i] != ','); i++) {
        quoted ^= text[i] == '"';
        i += quoted && text[i] == '\\' && text[i + 1];
        if (!quoted)
            depth +=
                (text[i] == '[' || text[i] == '(') - (text[i] == ']' || text[i] == ')');
    }
    return i;
}

// Takes the quotes and escapes off a text, in place. What is not quoted stays as it is.
static inline void attr_text_unquote(char *text)
{
    size_t n = 0, size = strlen(text);
    if (size < 2 || text[0] != '"' || text[size - 1] != '"')
        return;
    for (size_t i = 1; i + 1 < size; i++) {
        char hex[3] = {0};
        if (text[i] != '\\') {
            text[n++] = text[i];
        } else if (text[++i] == 'x') {
            memcpy(hex, text + i + 1, strnlen(text + i + 1, 2));
            text[n++] = (char)strtol(hex, NULL, 16);
            i += strlen(hex);
        } else {
            text[n++] = text[i] == 'n'   ? '\n'
                        : text[i] == 't' ? '\t'
                        : text[i] == 'r' ? '\r'
                                         : text[i];
        }
    }
    text[n] = '\0';
}

static inline bool attr_text_is_string(const tn_attr_table *table, const char *name)
{
    int index = attrs_field_index(table, name);
    return index >= 0 && table->fields[index].kind == TN_ATTR_STRING;
}

// As attrs_fill; what has no "=" is a name without a text. A STRING stands in quotes;
// "none" without them leaves it out.
static inline tn_status fill_from_text(struct intern_refs *refs, const tn_attr_table *table,
                                       const char *text, void *out)
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
        tn_attr *item = &items[count++];
        *item =
            (tn_attr){.name = at, .kind = TN_ATTR_TEXT, .text = equals ? equals + 1 : NULL};
        if (equals && attr_text_is_string(table, at)) {
            if (strcmp(equals + 1, "none") == 0)
                *item = (tn_attr){.name = at, .kind = TN_ATTR_STRING};
            attr_text_unquote(equals + 1);
        }
        at = next;
    }
    tn_status status = attrs_fill(refs, table, TN_ATTR_LIST(items, count), out, NULL);
    free(copy);
    return status;
}

#endif // TESTS_ATTR_TEXT_H
