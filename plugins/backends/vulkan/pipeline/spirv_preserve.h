// SPDX-License-Identifier: MIT
// Execution mode SignedZeroInfNanPreserve for a module's entry points: without it drivers
// compile x * 0 to 0, and comparisons of a number with a constant as if none were NaN.
#ifndef VULKAN_PIPELINE_SPIRV_PRESERVE_H
#define VULKAN_PIPELINE_SPIRV_PRESERVE_H

#include "../device/device.h"

// Gives the module with the mode for the floats that it computes with and of which the
// device can preserve them (facts.preserves_nan), for vk_code.release; the same words,
// without a release, where there are none or the module sets the mode itself. False: memory
// is short. The module is whole instructions, as vk_spirv_check takes it.
bool spirv_preserve_nan(const struct vk_facts *facts, const struct vk_code *code,
                        struct vk_code *out);

// The release of code whose words are allocated.
void spirv_release_words(struct vk_code *code);

#endif // VULKAN_PIPELINE_SPIRV_PRESERVE_H
