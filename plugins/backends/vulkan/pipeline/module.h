// SPDX-License-Identifier: MIT
// Modules of kernels: their code, unpacked and compiled, and keys of pipelines made of it.
#ifndef VULKAN_PIPELINE_MODULE_H
#define VULKAN_PIPELINE_MODULE_H

#include "pipeline.h"

// A module of a kernel.
struct kernel_module {
    const tn_vulkan_module *record;
    uint32_t number; // of the kernel's modules
    bool is_glsl;
    // Unpacks the kernel's code; NULL: the code is in the record.
    tn_status (*unpack)(const tn_host *host, uint32_t module, void *out_code);
};

// Gives the module's code as SPIR-V; `name` is for messages.
tn_status module_spirv(tn_device *device, const char *name,
                       const struct kernel_module *module, struct vk_code *out);

// The key and code of a module of the backend's own, for a pipeline. False: there is none
// of that name.
bool module_find_own(const tn_device *device, const char *name,
                     struct vk_pipeline_desc *desc);

// The keys of a module: of this backend's own by its number; of other plugins', which may
// go, by its content.
struct vk_hash module_own_key(const struct kernel_module *module);
tn_status module_others_key(tn_device *device, const struct kernel_module *module,
                            struct vk_hash *out);

#endif // VULKAN_PIPELINE_MODULE_H
