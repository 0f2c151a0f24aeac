// SPDX-License-Identifier: MIT
// The group of checks of this folder.
#ifndef CONFORMANCE_KERNEL_GROUPS_H
#define CONFORMANCE_KERNEL_GROUPS_H

#include "../kit/kit.h"

void group_kernel(struct kit *k); // kernels of cpu.c/1, called directly

#endif // CONFORMANCE_KERNEL_GROUPS_H
