// SPDX-License-Identifier: MIT
// How many threads of this process can run at once.
#ifndef KERNELS_PROCESSORS_H
#define KERNELS_PROCESSORS_H

#include <stdint.h>

// The processors whose time the quotas of its control groups (v1 and v2) give it: the quota
// over its period, rounded up, at least 1; the least of its group and all groups around
// that which are mounted. UINT32_MAX: there is no quota. `root` is before each path that is
// read:
// "" but for tests.
uint32_t processors_quota(const char *root);

// The processors of its affinity mask, or fewer by its quota. At least 1.
uint32_t processors_usable(void);

#endif // KERNELS_PROCESSORS_H
