// SPDX-License-Identifier: MIT
// Rows that quant.cache_update/1 writes to a cache, for a launch of updates.comp.
#ifndef KERNELS_VULKAN_ATTENTION_PLAN_CACHE_H
#define KERNELS_VULKAN_ATTENTION_PLAN_CACHE_H

#include <tenon/backend.h>
#include "../move/updates.h"

// The rows' parts and their destinations; the dtype of the caches as modules have it, or
// NULL.
struct updates_region vk_cache_region(const tn_step *step);
const char *vk_cache_kind(const tn_step *step);

#endif // KERNELS_VULKAN_ATTENTION_PLAN_CACHE_H
