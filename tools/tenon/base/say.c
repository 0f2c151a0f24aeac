// SPDX-License-Identifier: MIT
// Output for people, with control characters escaped: text from plugins and files must not
// control a terminal.
#include "tool.h"
#include "file.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *printable(const char *text, uint32_t flags)
{
    uint64_t size = tn_text_printable(text, flags, NULL, 0) + 1;
    char *shown = malloc(size);
    if (shown)
        tn_text_printable(text, flags, shown, size);
    return shown;
}

static void say_tell(FILE *stream, const char *text, uint32_t flags)
{
    char *shown = printable(text, flags);
    if (shown)
        fputs(shown, stream);
    else
        oops_memory();
    free(shown);
}

static void tell_v(uint32_t flags, const char *format, va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, format, args) < 0) {
        oops_memory();
        return;
    }
    say_tell(stdout, text, flags);
    free(text);
}

void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tell_v(0, format, args);
    va_end(args);
}

void say_line(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tell_v(TN_TEXT_ONE_LINE, format, args);
    va_end(args);
    putchar('\n');
}

void complain(const char *text)
{
    fputs("tenon: ", stderr);
    say_tell(stderr, text, TN_TEXT_INDENT);
    fputc('\n', stderr);
}

void progress(const char *text)
{
    static bool is_shown;
    if (is_shown)
        fputs("\r\033[K", stderr);
    is_shown = text && isatty(STDERR_FILENO);
    if (is_shown)
        say_tell(stderr, text, TN_TEXT_ONE_LINE);
    fflush(stderr);
}

int text_write(const char *path, const char *text)
{
    if (strcmp(path, "-") != 0 || !isatty(STDOUT_FILENO))
        return file_write(path, text, strlen(text));
    say_tell(stdout, text, 0);
    return 0;
}
