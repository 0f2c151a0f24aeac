// SPDX-License-Identifier: MIT
// A string that grows, which generated code is written to.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "program.h"

void text_add(struct text *text, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int need = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (!text->failed && text->size + (size_t)need + 1 > text->capacity) {
        size_t capacity = 2 * text->capacity + (size_t)need + 4096;
        char *data = realloc(text->data, capacity);
        text->failed = !data;
        if (data) {
            text->data = data;
            text->capacity = capacity;
        }
    }
    if (!text->failed) {
        vsnprintf(text->data + text->size, text->capacity - text->size, format, again);
        text->size += (size_t)need;
    }
    va_end(again);
}

void text_finish(struct text *text)
{
    free(text->data);
    *text = (struct text){0};
}
