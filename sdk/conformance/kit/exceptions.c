// SPDX-License-Identifier: MIT
// Reads the file of exceptions, and matches checks against them.
#include "exceptions.h"

#include <errno.h>
#include <fnmatch.h>

// Cuts the next word or quoted text from *rest. NULL at the end of the line.
static char *next_field(char **rest)
{
    char *start = *rest + strspn(*rest, " \t");
    bool is_quoted = *start == '"';
    start += is_quoted;
    size_t size = strcspn(start, is_quoted ? "\"" : " \t");
    if (size == 0)
        return NULL;
    *rest = start + size;
    if (**rest)
        *(*rest)++ = 0;
    return start;
}

static bool exceptions_add(struct exceptions *exceptions, char *line)
{
    char *rest = line, *kind = next_field(&rest);
    char *pattern = kind ? next_field(&rest) : NULL;
    if (!pattern || (strcmp(kind, "never") != 0 && strcmp(kind, "today") != 0 &&
                     strcmp(kind, "sometimes") != 0))
        return false;
    rest += strspn(rest, " \t");
    if (!*rest)
        return false; // the reason is missing
    void *grown =
        realloc(exceptions->items, (exceptions->count + 1) * sizeof(*exceptions->items));
    if (!grown)
        return false;
    exceptions->items = grown;
    exceptions->items[exceptions->count++] = (struct exception){
        .kind = strdup(kind), .pattern = strdup(pattern), .reason = strdup(rest)};
    return true;
}

bool exceptions_read(struct exceptions *exceptions, const char *path)
{
    char line[1024];
    int number = 0;
    bool good = true;
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return false;
    }
    while (good && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = 0;
        number++;
        if (line[0] == '#' || line[strspn(line, " \t")] == 0)
            continue;
        char copy[sizeof(line)];
        memcpy(copy, line, sizeof(line));
        good = exceptions_add(exceptions, copy);
        if (!good)
            fprintf(
                stderr,
                "%s:%d: got \"%s\", expected: never|today|sometimes PATTERN the reason\n",
                path, number, line);
    }
    fclose(file);
    return good;
}

void exceptions_finish(struct exceptions *exceptions)
{
    for (size_t i = 0; i < exceptions->count; i++) {
        free(exceptions->items[i].kind);
        free(exceptions->items[i].pattern);
        free(exceptions->items[i].reason);
    }
    free(exceptions->items);
    *exceptions = (struct exceptions){0};
}

struct exception *exceptions_find(struct exceptions *exceptions, const char *check,
                                  const char *subject)
{
    char whole[SUBJECT_SIZE + 64];
    format_text(whole, sizeof(whole), "%s %s", check, subject);
    for (size_t i = 0; i < exceptions->count; i++) {
        struct exception *e = &exceptions->items[i];
        if (fnmatch(e->pattern, check, 0) == 0 || fnmatch(e->pattern, whole, 0) == 0) {
            e->matches++;
            return e;
        }
    }
    return NULL;
}
