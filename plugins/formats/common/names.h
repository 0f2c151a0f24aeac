// SPDX-License-Identifier: MIT
// Names in files that come from others.
#ifndef FORMATS_COMMON_NAMES_H
#define FORMATS_COMMON_NAMES_H

#include <tenon/format.h>

// Refuses a file in which two names are the same; `what` says of what ("tensors"). Name i
// is at byte i * stride of `first`.
tn_status names_differ(const tn_host *host, const char *file, const char *what,
                       const char *const *first, uint64_t stride, uint64_t count);

#endif // FORMATS_COMMON_NAMES_H
