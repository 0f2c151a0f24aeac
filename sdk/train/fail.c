// SPDX-License-Identifier: MIT
// Messages, and texts of shapes.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "common.h"

static _Thread_local char message[2048];

const char *tn_train_error(void)
{
    return message;
}

tn_status train_fail(tn_status status, const char *format, ...)
{
    char text[sizeof(message)]; // arguments may point into the message
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    memcpy(message, text, sizeof(message));
    return status;
}

tn_status train_fail_memory(void)
{
    return train_fail(TN_ERR_MEMORY, "out of memory");
}

tn_status train_fail_core(tn_status status)
{
    return status == TN_OK ? TN_OK : train_fail(status, "%s", tn_last_error());
}

tn_status train_fail_scope(const tn_scope *scope)
{
    if (!scope)
        return train_fail(TN_ERR_MEMORY, "%s", tn_last_error());
    tn_status status = tn_scope_status(scope);
    return status == TN_OK ? TN_OK : train_fail(status, "%s", tn_scope_error(scope));
}

uint64_t train_elements(const tn_type *type)
{
    uint64_t count = 1;
    for (int32_t i = 0; i < type->rank; i++)
        count *= (uint64_t)type->extent[i];
    return count;
}

const char *train_shape_text(const tn_type *type, char text[SHAPE_TEXT])
{
    int at = snprintf(text, SHAPE_TEXT, "[");
    for (int32_t i = 0; i < type->rank; i++)
        at += snprintf(text + at, (size_t)(SHAPE_TEXT - at), "%s%lld", i ? ", " : "",
                       (long long)type->extent[i]);
    snprintf(text + at, (size_t)(SHAPE_TEXT - at), "]");
    return text;
}
