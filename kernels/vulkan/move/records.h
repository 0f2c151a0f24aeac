// SPDX-License-Identifier: MIT
// Copies of regions: plans and records.
#ifndef KERNELS_VULKAN_MOVE_RECORDS_H
#define KERNELS_VULKAN_MOVE_RECORDS_H

#include "../launch.h"

tn_status vk_plan_concatenate(const tn_vulkan_plan *plan);
tn_status vk_plan_slice_update(const tn_vulkan_plan *plan);
tn_status vk_plan_dynamic_slice(const tn_vulkan_plan *plan);
tn_status vk_plan_dynamic_slice_update(const tn_vulkan_plan *plan);

// What is only moved, by its size, may be of any dtype.
static const tn_operand_rule moved_rules[] = {{TN_ALL_DTYPES, TN_NEEDS_ANY}};
static const tn_operand_rule joined_rules[] = {
    {TN_ALL_DTYPES, TN_NEEDS_ANY, TN_OPERAND_FUSES}};
static const tn_operand_rule dynamic_slice_rules[] = {
    {TN_ALL_DTYPES, TN_NEEDS_ANY},
    {TN_INTEGER_DTYPES, TN_NEEDS_ANY},
    {TN_ALL_DTYPES, TN_NEEDS_ANY, TN_OPERAND_FUSES}};
static const tn_operand_rule dynamic_update_rules[] = {
    {TN_ALL_DTYPES, TN_NEEDS_ANY},
    {TN_ALL_DTYPES, TN_NEEDS_ANY, TN_OPERAND_FUSES},
    {TN_INTEGER_DTYPES, TN_NEEDS_ANY},
    {TN_ALL_DTYPES, TN_NEEDS_ANY}};

// As OWN_KERNELS of ../records.h.
#define MOVE_KERNELS(X)                                                                    \
    X(concatenate, "base.concatenate/1", vk_plan_concatenate, KERNEL_OTHER, joined_rules,  \
      .accepts = NULL)                                                                     \
    X(slice_update, "base.slice_update/1", vk_plan_slice_update, KERNEL_OTHER,             \
      moved_rules, .accepts = NULL)                                                        \
    X(dynamic_slice, "base.dynamic_slice/1", vk_plan_dynamic_slice, KERNEL_OTHER,          \
      dynamic_slice_rules, .accepts = NULL)                                                \
    X(dynamic_slice_update, "base.dynamic_slice_update/1", vk_plan_dynamic_slice_update,   \
      KERNEL_UPDATE, dynamic_update_rules, .accepts = NULL)

#endif // KERNELS_VULKAN_MOVE_RECORDS_H
