// SPDX-License-Identifier: MIT
#include "reduce.h"

#include <stdlib.h>
#include <string.h>

struct lines {
    const char **start;
    bool *dropped;
    unsigned count;
};

static void split(const char *text, struct lines *out)
{
    unsigned count = 0;
    for (const char *at = text; *at; at++)
        count += *at == '\n';
    out->start = calloc(count + 1, sizeof(*out->start));
    out->dropped = calloc(count + 1, sizeof(*out->dropped));
    if (!out->start || !out->dropped)
        abort();
    out->count = count;
    for (unsigned i = 0; i < count; i++) {
        out->start[i] = text;
        text = strchr(text, '\n') + 1;
    }
    out->start[count] = text;
}

static char *join(const struct lines *lines)
{
    size_t room = (size_t)(lines->start[lines->count] - lines->start[0]) + 1, size = 0;
    char *text = malloc(room);
    if (!text)
        abort();
    for (unsigned i = 0; i < lines->count; i++) {
        size_t length = (size_t)(lines->start[i + 1] - lines->start[i]);
        if (lines->dropped[i])
            continue;
        memcpy(text + size, lines->start[i], length);
        size += length;
    }
    text[size] = '\0';
    return text;
}

static bool ends_with(const struct lines *lines, unsigned i, const char *end)
{
    size_t length = (size_t)(lines->start[i + 1] - lines->start[i]) - 1, size = strlen(end);
    return length >= size && memcmp(lines->start[i] + length - size, end, size) == 0;
}

static bool begins_with(const struct lines *lines, unsigned i, char want)
{
    const char *at = lines->start[i];
    while (*at == ' ')
        at++;
    return *at == want;
}

// The line behind what line `i` begins: a block with its end, or itself.
static unsigned end_of(const struct lines *lines, unsigned i)
{
    int depth = 0;
    for (unsigned k = i; k < lines->count; k++) {
        depth -= begins_with(lines, k, '}');
        depth += ends_with(lines, k, "{");
        if (depth <= 0)
            return k + 1;
    }
    return lines->count;
}

// Marks the lines of [from, to) as `dropped`, and tells which changed in `changed`.
static unsigned drop(struct lines *lines, unsigned from, unsigned to, bool *changed)
{
    unsigned count = 0;
    for (unsigned i = from; i < to; i++) {
        changed[i] = !lines->dropped[i];
        lines->dropped[i] = true;
        count += changed[i];
    }
    return count;
}

// Tries to drop [from, to). True when the rest fails still.
static bool try_range(struct lines *lines, unsigned from, unsigned to, bool *changed,
                      bool (*fails)(void *, const char *), void *context, unsigned *tries)
{
    if (*tries == 0 || drop(lines, from, to, changed) == 0)
        return false;
    --*tries;
    char *text = join(lines);
    bool still = fails(context, text);
    free(text);
    for (unsigned i = from; i < to && !still; i++)
        if (changed[i])
            lines->dropped[i] = false;
    return still;
}

// The first and the last line of a block go, and what is in it stays.
static bool unwrap(struct lines *lines, unsigned i, unsigned end,
                   bool (*fails)(void *, const char *), void *context, unsigned *tries)
{
    if (*tries == 0 || end <= i + 1 || lines->dropped[i] || lines->dropped[end - 1])
        return false;
    --*tries;
    lines->dropped[i] = lines->dropped[end - 1] = true;
    char *text = join(lines);
    bool still = fails(context, text);
    free(text);
    if (!still)
        lines->dropped[i] = lines->dropped[end - 1] = false;
    return still;
}

char *reduce_text(const char *text, bool (*fails)(void *, const char *), void *context,
                  unsigned tries)
{
    struct lines lines;
    split(text, &lines);
    bool *changed = calloc(lines.count + 1, sizeof(*changed));
    if (!changed)
        abort();
    for (bool again = true; again && tries > 0;) {
        again = false;
        // From the end, so that a use goes before its declaration.
        for (unsigned left = lines.count; left > 0; left--) {
            unsigned i = left - 1, end = end_of(&lines, i);
            if (lines.dropped[i] || ends_with(&lines, i, "//!") ||
                begins_with(&lines, i, '}'))
                continue;
            again |= try_range(&lines, i, end, changed, fails, context, &tries) ||
                     unwrap(&lines, i, end, fails, context, &tries);
        }
    }
    char *out = join(&lines);
    free(changed);
    free(lines.dropped);
    free(lines.start);
    return out;
}
