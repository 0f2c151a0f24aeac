// SPDX-License-Identifier: MIT
// TENON_KERNELS: kernels that the user takes or refuses.
#ifndef CORE_SCHED_OVERRIDE_H
#define CORE_SCHED_OVERRIDE_H

#include "../runtime.h"

// What the variable says against this kernel, in `reason`; NULL when nothing.
const char *overridden(const tn_runtime *runtime, const char *backend,
                       const char *primitive, const char *plugin, const char *kernel,
                       char reason[160]);

#endif // CORE_SCHED_OVERRIDE_H
