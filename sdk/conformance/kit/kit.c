// SPDX-License-Identifier: MIT
// The child process: runs checks, and writes their results to the pipe.
#include "kit.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <unistd.h>

const char *format_text(char *out, size_t size, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(out, size, format, list);
    va_end(list);
    return out;
}

// --- random numbers --------------------------------------------------------------------

uint64_t random_bits(struct kit *k)
{
    return numbers_next(&k->random);
}

double random_in(struct kit *k, double lo, double hi)
{
    return numbers_between(&k->random, lo, hi);
}

uint64_t random_below(struct kit *k, uint64_t n)
{
    return random_bits(k) % n;
}

// --- lines -----------------------------------------------------------------------------

struct result_line {
    char bytes[DETAIL_SIZE * 4];
    size_t size;
};

static void line_put(struct result_line *line, char c)
{
    if (line->size < sizeof(line->bytes) - 8) // the rest is for closing quotes and braces
        line->bytes[line->size++] = c;
}

// Appends a JSON string. Bytes other than printable ASCII become '?'.
static void line_put_text(struct result_line *line, const char *text)
{
    line_put(line, '"');
    for (; *text && line->size < sizeof(line->bytes) - 16; text++) {
        if (*text == '"' || *text == '\\')
            line_put(line, '\\');
        if (*text == '\n')
            line_put(line, '\\');
        line_put(line, *text == '\n' ? 'n' : *text < 32 || *text > 126 ? '?' : *text);
    }
    line_put(line, '"');
}

static void line_put_key(struct result_line *line, const char *key)
{
    line_put(line, line->size ? ',' : '{');
    line_put_text(line, key);
    line_put(line, ':');
}

static void line_put_pair(struct result_line *line, const char *key, const char *value)
{
    line_put_key(line, key);
    line_put_text(line, value);
}

static void line_put_number(struct result_line *line, const char *key, uint64_t value)
{
    char text[24];
    line_put_key(line, key);
    for (const char *p = format_text(text, sizeof(text), "%llu", (unsigned long long)value);
         *p; p++)
        line_put(line, *p);
}

static void line_send(struct result_line *line)
{
    line->bytes[line->size++] = '}';
    line->bytes[line->size++] = '\n';
    for (size_t at = 0; at < line->size;) {
        ssize_t n = write(RESULTS_FD, line->bytes + at, line->size - at);
        if (n <= 0)
            _exit(70); // the parent is gone, or the plugin closed the pipe
        at += (size_t)n;
    }
}

// --- checks ----------------------------------------------------------------------------

static bool check_is_wanted(const struct kit *k)
{
    char whole[SUBJECT_SIZE + 64];
    if (!k->only)
        return true;
    format_text(whole, sizeof(whole), "%s%s%s", k->check, k->subject[0] ? " " : "",
                k->subject);
    if (k->only[0] == '!')
        return fnmatch(k->only + 1, k->check, 0) != 0 &&
               fnmatch(k->only + 1, whole, 0) != 0;
    return fnmatch(k->only, k->check, 0) == 0 || fnmatch(k->only, whole, 0) == 0;
}

const struct check_info *check_find(const struct check_info *checks, const char *name)
{
    for (const struct check_info *check = checks; check->name; check++)
        if (strcmp(check->name, name) == 0)
            return check;
    return NULL;
}

static void check_open(struct kit *k, const char *check)
{
    if (!check_find(k->checks, check))
        abort(); // the check is missing in the table of checks.c
    k->check = check;
    k->detail[0] = 0;
    k->cases = k->failures = 0;
    k->outcome = "pass";
}

bool check_begin(struct kit *k, const char *check, const char *subject, ...)
{
    va_list list;
    va_start(list, subject);
    k->subject[0] = 0;
    if (subject)
        vsnprintf(k->subject, sizeof(k->subject), subject, list);
    va_end(list);
    check_open(k, check);
    if (++k->number <= k->resume || !check_is_wanted(k))
        return false;
    k->random = numbers_named(numbers_named(k->seed, check), k->subject);
    struct result_line line = {.size = 0};
    line_put_pair(&line, "begin", check);
    line_put_pair(&line, "subject", k->subject);
    line_put_number(&line, "number", k->number);
    line_send(&line);
    return true;
}

void check_end(struct kit *k)
{
    struct result_line line = {.size = 0};
    line_put_pair(&line, "check", k->check);
    line_put_pair(&line, "subject", k->subject);
    line_put_pair(&line, "outcome", k->outcome);
    line_put_pair(&line, "detail", k->detail);
    line_put_number(&line, "cases", k->cases);
    line_put_number(&line, "failures", k->failures);
    line_send(&line);
}

static void check_say(struct kit *k, const char *outcome, const char *format, va_list list)
{
    bool is_failure = strcmp(outcome, "fail") == 0;
    k->failures += is_failure;
    if (strcmp(k->outcome, "fail") == 0 || (!is_failure && strcmp(k->outcome, "pass") != 0))
        return; // the first failure stays, or else the first warning or skip
    k->outcome = outcome;
    vsnprintf(k->detail, sizeof(k->detail), format, list);
}

void check_fail(struct kit *k, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    check_say(k, "fail", format, list);
    va_end(list);
}

void check_warn(struct kit *k, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    check_say(k, "warn", format, list);
    va_end(list);
}

void check_skip(struct kit *k, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    check_say(k, "skip", format, list);
    va_end(list);
}

void check_case(struct kit *k)
{
    k->cases++;
}

bool check_failed(const struct kit *k)
{
    return strcmp(k->outcome, "fail") == 0;
}

void skip(struct kit *k, const char *check, const char *reason)
{
    if (!check_begin(k, check, NULL))
        return;
    check_skip(k, "%s", reason);
    check_end(k);
}
