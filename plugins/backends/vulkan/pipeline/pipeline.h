// SPDX-License-Identifier: MIT
// Pipelines: found, compiled and reference counted.
#ifndef VULKAN_PIPELINE_PIPELINE_H
#define VULKAN_PIPELINE_PIPELINE_H

#include "../device/device.h"

struct vk_ahead; // ahead.h

struct vk_pipeline_desc {
    const char *name;   // of the kernel or module
    struct vk_hash key; // of the code
    uint32_t num_bindings;
    uint32_t num_push; // words
    uint32_t num_spec; // at most VK_MAX_SPEC
    const tn_vulkan_constant *spec;
    uint64_t values;   // bit i: pushed word i is a value, which is in no kernel's code
    const char *entry; // NULL: "main"
    // Gives the SPIR-V if the pipeline does not exist yet.
    tn_status (*code)(tn_device *device, void *context, struct vk_code *out);
    void *context;
    bool is_alone; // the driver's cache does not get it
};

tn_status vk_shaders_init(tn_device *device);
void vk_shaders_finish(tn_device *device);
// Finds or compiles a pipeline, and gives a reference to it. `ahead` makes other pipelines
// meanwhile; NULL: none. One that another thread is compiling is waited for; a helper,
// whose plan is thrown away, gets NULL instead.
tn_status vk_pipeline_get(tn_device *device, const struct vk_pipeline_desc *desc,
                          struct vk_ahead *ahead, bool is_helper,
                          struct vk_pipeline **out_pipeline);
// Drops a reference. No pending work of its user runs the pipeline.
void vk_pipeline_release(tn_device *device, struct vk_pipeline *pipeline);
// Compiles a pipeline that no plan finds and no cache keeps; vk_pipeline_destroy() frees
// it.
tn_status vk_pipeline_make(tn_device *device, const struct vk_pipeline_desc *desc,
                           const struct vk_code *code, struct vk_pipeline **out_pipeline);
void vk_pipeline_destroy(tn_device *device, struct vk_pipeline *pipeline);
// The description of a pipeline, whose `code` gives its code once more; valid as long as
// the pipeline.
struct vk_pipeline_desc vk_pipeline_describe(const struct vk_pipeline *pipeline);
// The key of the pipeline of a description.
struct vk_hash vk_pipeline_key(const struct vk_pipeline_desc *desc);

#endif // VULKAN_PIPELINE_PIPELINE_H
