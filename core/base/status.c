// SPDX-License-Identifier: MIT
// Status codes and failures as applications see them.
#include <tenon/tenon.h>

#include "fail.h"
#include "memory.h"

const char *tn_status_name(tn_status status)
{
    static const char *const names[] = {
        [-TN_OK] = "ok",
        [-TN_ERR_ARGUMENT] = "argument",
        [-TN_ERR_UNSUPPORTED] = "unsupported",
        [-TN_ERR_NOT_FOUND] = "not found",
        [-TN_ERR_MEMORY] = "memory",
        [-TN_ERR_DEVICE] = "device",
        [-TN_ERR_IO] = "io",
        [-TN_ERR_REFUSED] = "refused",
        [-TN_ERR_INTERNAL] = "internal",
    };
    if (status > TN_OK || status < TN_ERR_INTERNAL)
        return "unknown";
    return names[-status];
}

const char *tn_last_error(void)
{
    return fail_text();
}

void tn_text_free(char *text)
{
    mem_free(text);
}
