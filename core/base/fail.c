// SPDX-License-Identifier: MIT
// The message of the last failure: one static buffer per thread, so that recording a
// message never allocates. Messages quote foreign text (of plugins, files, applications),
// so control characters are escaped here.
#include "fail.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <tenon/tenon.h>
#include "text.h"

static _Thread_local char message[FAIL_TEXT_SIZE];
static _Thread_local bool about_dtype;

tn_status fail_v(tn_status status, const char *format, va_list list)
{
    // Arguments may point into `message`, so the text is formatted in a copy.
    char text[FAIL_TEXT_SIZE];
    vsnprintf(text, sizeof(text), format, list);
    text_make_printable(text, sizeof(text), TN_TEXT_INDENT);
    memcpy(message, text, strlen(text) + 1);
    about_dtype = false;
    return status;
}

tn_status fail_set_dtype(bool is_dtype)
{
    about_dtype = is_dtype;
    return TN_ERR_ARGUMENT;
}

bool fail_is_dtype(void)
{
    return about_dtype;
}

tn_status fail(tn_status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fail_v(status, format, list);
    va_end(list);
    return status;
}

void fail_prefix(const char *format, ...)
{
    char text[FAIL_TEXT_SIZE];
    va_list list;
    va_start(list, format);
    int size = vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    if (size < 0 || (size_t)size >= sizeof(text))
        return; // no room for both: the reason matters more than the prefix
    size_t room = sizeof(text) - (size_t)size;
    size_t rest = strlen(message);
    if (rest >= room)
        rest = room - 1;
    memcpy(text + size, message, rest);
    text[(size_t)size + rest] = 0;
    text_make_printable(text, sizeof(text), TN_TEXT_INDENT);
    memcpy(message, text, strlen(text) + 1);
}

void fail_prefix_name(const char *name)
{
    char inside[64];
    snprintf(inside, sizeof(inside), ": %s: ", name);
    const char *first = inside + 2;
    if (strncmp(message, first, strlen(first)) != 0 && !strstr(message, inside))
        fail_prefix("%s", first);
}

tn_status fail_if_null(const char *function, const char *what, const void *pointer)
{
    return pointer ? TN_OK : fail(TN_ERR_ARGUMENT, "%s: %s is NULL", function, what);
}

tn_status fail_from(tn_status status, const char *who, ...)
{
    bool known = status <= TN_OK && status >= TN_ERR_INTERNAL;
    if (status == TN_OK || (known && message[0]))
        return status;
    char name[512];
    va_list list;
    va_start(list, who);
    vsnprintf(name, sizeof(name), who, list);
    va_end(list);
    if (!known)
        return fail(TN_ERR_INTERNAL, "%s returned %d, which is no status%s%s", name, status,
                    message[0] ? ": " : "", message);
    return fail(status, "%s failed (%s) and gave no reason", name, tn_status_name(status));
}

tn_status fail_memory(uint64_t size)
{
    return fail(TN_ERR_MEMORY, "out of memory: %" PRIu64 " bytes", size);
}

const char *fail_text(void)
{
    return message;
}

void fail_clear(void)
{
    message[0] = 0;
}

void fail_save(char copy[FAIL_TEXT_SIZE])
{
    copy[0] = message[0]; // mostly there is none
    if (message[0])
        memcpy(copy, message, strlen(message) + 1);
}

void fail_restore(const char copy[FAIL_TEXT_SIZE])
{
    message[0] = copy[0];
    if (copy[0])
        memcpy(message, copy, strlen(copy) + 1);
}
