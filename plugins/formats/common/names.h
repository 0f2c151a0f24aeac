// SPDX-License-Identifier: MIT
// Checks of names in files that other programs wrote.
#ifndef FORMATS_COMMON_NAMES_H
#define FORMATS_COMMON_NAMES_H

#include <tenon/format.h>

// Refuses a file in which two names are equal; `what` is their noun in the message
// ("tensors"). Name i is at byte i * stride of `first`.
tn_status names_differ(const tn_host *host, const char *file, const char *what,
                       const char *const *first, uint64_t stride, uint64_t count);

#endif // FORMATS_COMMON_NAMES_H
