// SPDX-License-Identifier: MIT
// TENON_KERNELS: the user's rules on which kernels may run.
#ifndef CORE_PLAN_OVERRIDE_H
#define CORE_PLAN_OVERRIDE_H

#include "../base/runtime.h"

// The rule of TENON_KERNELS that refuses this kernel, as a sentence in `reason`; NULL: none
// does.
const char *overridden(const tn_runtime *runtime, const char *backend,
                       const char *primitive, const char *plugin, const char *kernel,
                       char reason[160]);

// Warns of globs in TENON_KERNELS that match nothing. Plugins must have been found before.
void overrides_check(tn_runtime *runtime);

#endif // CORE_PLAN_OVERRIDE_H
