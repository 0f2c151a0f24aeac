// SPDX-License-Identifier: MIT
// TENON_CHECK: wraps each device in a checking backend, like a Vulkan validation layer. For
// a random share of the launches it computes the outputs again by the primitive's
// definition and logs differences. The random sequence is the same in every run of a
// program.
//
// Threads. Any.
#ifndef CORE_CHECK_CHECKING_H
#define CORE_CHECK_CHECKING_H

#include "../base/runtime.h"

// Called by runtime creation, before devices are opened, and by runtime destruction, after
// they are closed. Nothing is checked when TENON_CHECK is unset or 0.
tn_status checker_create(tn_runtime *runtime);
void checker_destroy(tn_runtime *runtime);

#endif // CORE_CHECK_CHECKING_H
