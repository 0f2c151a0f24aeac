// SPDX-License-Identifier: MIT
// Rules of operands that records of several families have.
#ifndef KERNELS_VULKAN_RULES_H
#define KERNELS_VULKAN_RULES_H

#include "launch.h"

#define HALF_OR_F32 (TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_BF16))
static const tn_operand_rule contiguous_rules[] = {{0, TN_NEEDS_CONTIGUOUS}};
static const tn_operand_rule float_rules[] = {{TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS}};

#endif // KERNELS_VULKAN_RULES_H
