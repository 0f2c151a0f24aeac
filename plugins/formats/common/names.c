// SPDX-License-Identifier: MIT
#include "names.h"

#include <stdlib.h>
#include <string.h>

static int by_text(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

tn_status names_differ(const tn_host *host, const char *file, const char *what,
                       const char *const *first, uint64_t stride, uint64_t count)
{
    const char **texts = host->alloc(host, (count + 1) * sizeof(*texts), 0);
    tn_status status = TN_OK;
    if (!texts)
        return TN_ERR_MEMORY;
    for (uint64_t i = 0; i < count; i++)
        texts[i] = *(const char *const *)(const void *)((const char *)first + i * stride);
    qsort(texts, count, sizeof(*texts), by_text);
    for (uint64_t i = 1; i < count && status == TN_OK; i++)
        if (strcmp(texts[i - 1], texts[i]) == 0)
            status = host->fail(host, TN_ERR_REFUSED, "%s: two %s named '%s'", file, what,
                                texts[i]);
    host->free(host, texts);
    return status;
}
