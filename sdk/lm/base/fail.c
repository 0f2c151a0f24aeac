// SPDX-License-Identifier: MIT
// Messages, memory, and option structs of applications.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "fail.h"

static _Thread_local char message[2048];

const char *tn_lm_error(void)
{
    return message;
}

tn_status lm_fail(tn_status status, const char *format, ...)
{
    char text[sizeof(message)]; // arguments may point into the message
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    memcpy(message, text, sizeof(message));
    return status;
}

tn_status lm_fail_core(tn_status status)
{
    return status == TN_OK ? TN_OK : lm_fail(status, "%s", tn_last_error());
}

tn_status lm_fail_scope(const tn_scope *scope)
{
    if (!scope) // the runtime was inherited over fork(), or memory is short
        return lm_fail(strncmp(tn_last_error(), "out of memory", 13) ? TN_ERR_ARGUMENT
                                                                     : TN_ERR_MEMORY,
                       "%s", tn_last_error());
    tn_status status = tn_scope_status(scope);
    return status == TN_OK ? TN_OK : lm_fail(status, "%s", tn_scope_error(scope));
}

tn_status lm_check_numbers(const float *values, uint64_t count, const char *format, ...)
{
    char what[256];
    va_list list;
    uint64_t at = 0;
    while (at < count && isfinite(values[at]))
        at++;
    if (at == count)
        return TN_OK;
    va_start(list, format);
    vsnprintf(what, sizeof(what), format, list);
    va_end(list);
    return lm_fail(TN_ERR_REFUSED, "%s: value %llu of %llu is %g", what,
                   (unsigned long long)at, (unsigned long long)count,
                   lm_unsigned_nan((double)values[at]));
}

void lm_failure_note(struct lm_failure *failure, tn_status status)
{
    if (status == TN_OK || failure->status != TN_OK)
        return;
    failure->status = status;
    snprintf(failure->text, sizeof(failure->text), "%s", tn_lm_error());
}

tn_status lm_failure_tell(const struct lm_failure *failure)
{
    return failure->status == TN_OK ? TN_OK : lm_fail(failure->status, "%s", failure->text);
}

void *lm_alloc(uint64_t count, uint64_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        lm_fail(TN_ERR_MEMORY, "out of memory: %llu times %llu bytes",
                (unsigned long long)count, (unsigned long long)size);
    return memory;
}

void tn_lm_free(void *memory)
{
    free(memory);
}

tn_status lm_read_struct(void *mine, uint64_t size, const void *given, uint32_t given_size,
                         const char *what)
{
    memset(mine, 0, size);
    if (!given)
        return TN_OK;
    uint64_t theirs = given_size ? given_size : size;
    for (uint64_t i = size; i < theirs; i++)
        if (((const char *)given)[i])
            return lm_fail(TN_ERR_ARGUMENT,
                           "%s: byte %llu is set, but this library knows %llu bytes", what,
                           (unsigned long long)i, (unsigned long long)size);
    memcpy(mine, given, theirs < size ? theirs : size);
    return TN_OK;
}

void lm_write_struct(void *out, uint32_t out_size, const void *mine, uint64_t size)
{
    uint64_t theirs = out_size && out_size < size ? out_size : size;
    if (theirs > sizeof(uint32_t)) // keep the caller's struct_size
        memcpy((char *)out + sizeof(uint32_t), (const char *)mine + sizeof(uint32_t),
               theirs - sizeof(uint32_t));
}
