// SPDX-License-Identifier: MIT
// The backend's interface as far as both plugins share it: devices with their pipelines,
// segments and submissions.
#ifndef VULKAN_SEGMENT_BACKEND_H
#define VULKAN_SEGMENT_BACKEND_H

#include "../device/device.h"
#include "vulkan/quant/packings.h"

// backend.c
tn_status vk_backend_open(const tn_host *host, uint32_t index,
                          const struct vk_flavour *flavour, tn_device **out_device);
void vk_backend_close(tn_device *device);

// segment.c and submit.c
int32_t vk_step_check(tn_device *device, const tn_step *step, const char **out_reason);
uint32_t vk_fusion_limit(tn_device *device);
tn_status vk_segment_compile(tn_device *device, const tn_segment *segment,
                             tn_executable **out_executable);
void vk_executable_destroy(tn_device *device, tn_executable *executable);
tn_status vk_submit(tn_device *device, const tn_submission *submission,
                    uint64_t *out_point);

// The slots of tn_backend that are the same in both plugins.
#define VK_COMMON_SLOTS                                                                    \
    .device_count = vk_device_count, .device_close = vk_backend_close,                     \
    .step_check = vk_step_check, .fusion_limit = vk_fusion_limit,                          \
    .buffer_create = vk_buffer_create, .buffer_destroy = vk_buffer_destroy,                \
    .buffer_write = vk_buffer_write, .buffer_read = vk_buffer_read,                        \
    .buffer_map = vk_buffer_map, .segment_compile = vk_segment_compile,                    \
    .executable_destroy = vk_executable_destroy, .submit = vk_submit, .wait = vk_wait,     \
    .memory_info = vk_memory_info, .signal = vk_signal,                                    \
    .buffer_export_fd = vk_buffer_export_fd, .buffer_import_fd = vk_buffer_import_fd,      \
    .buffer_copy = vk_buffer_copy, .buffer_read_after = vk_buffer_read_after,              \
    .buffer_import = vk_buffer_import, .packings = quant_packings,                         \
    .num_packings = QUANT_PACKINGS, .packing_size = sizeof(quant_packings[0]),             \
    .buffer_export = vk_buffer_export, .point_export_fd = vk_point_export_fd

#endif // VULKAN_SEGMENT_BACKEND_H
