// SPDX-License-Identifier: MIT
// What kernels may use of a device beyond what each device has: features of extensions,
// with which it is opened, and the SPIR-V capabilities that follow from its features.
#ifndef VULKAN_DEVICE_CAPABILITIES_H
#define VULKAN_DEVICE_CAPABILITIES_H

#include "api.h"
#include "matrices.h"

struct vk_facts;

#define VK_MAX_CAPABILITIES 96
#define VK_MAX_OPTIONAL 4 // members of struct vk_optional

// Features that op packs may use. Without its extension a member is zero, sType included.
struct vk_optional {
    VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomics;
    VkPhysicalDeviceShaderAtomicFloat2FeaturesEXT more_atomics;
    VkPhysicalDeviceShaderIntegerDotProductFeatures dots;
    VkPhysicalDeviceCooperativeMatrix2FeaturesNV group_matrices;
};

// Asks a device. `has(context, name)`: whether it has an extension.
void vk_optional_read(const struct vk_instance_api *vk, VkPhysicalDevice physical,
                      bool (*has)(const void *context, const char *name),
                      const void *context, struct vk_optional *out);

// Chains the members that are there in front of `next`, and appends their extensions.
// Returns the first.
void *vk_optional_chain(struct vk_optional *optional, void *next, const char **extensions,
                        uint32_t *num_extensions);

// Whether modules may use a capability of SPIR-V.
bool vk_has_capability(const struct vk_facts *facts, uint32_t capability);

// Lists all capabilities that modules may use; returns their number.
uint32_t vk_capabilities(const struct vk_facts *facts, uint32_t out[VK_MAX_CAPABILITIES]);

// "Float16", or NULL. Static.
const char *vk_capability_name(uint32_t capability);

#endif // VULKAN_DEVICE_CAPABILITIES_H
