// SPDX-License-Identifier: MIT
// The plugin's entry point: the backend's vtable, and the plugin's id.
#include "null.h"

#include <string.h>

// Accepts kernels and programs of all families, and runs none of them.
static const char *const families[] = {TN_FAMILY_EXPR, TN_FAMILY_CPU,
                                       TN_FAMILY_VULKAN_SPIRV, TN_FAMILY_VULKAN_GLSL, NULL};

static const tn_backend backend = {
    .struct_size = sizeof(backend),
    .name = "null",
    .families = families,
    .device_count = null_device_count,
    .device_info = null_device_info,
    .device_open = null_device_open,
    .device_close = null_device_close,
    .step_check = null_step_check,
    .fusion_limit = null_fusion_limit,
    .buffer_create = null_buffer_create,
    .buffer_destroy = null_buffer_destroy,
    .buffer_write = null_buffer_write,
    .buffer_read = null_buffer_read,
    .buffer_map = null_buffer_map,
    .segment_compile = null_segment_compile,
    .executable_destroy = null_executable_destroy,
    .submit = null_submit,
    .wait = null_wait,
    .memory_info = null_memory_info,
    .buffer_import = null_buffer_import,
};

// Lets tests lose a device. Omit this interface if a device cannot be lost.
static const tn_device_loss device_loss = {
    .struct_size = sizeof(device_loss),
    .lose = null_lose,
};

static const void *null_query(const char *id)
{
    if (strcmp(id, TN_IFACE_DEVICE_LOSS) == 0)
        return &device_loss;
    return strcmp(id, TN_IFACE_BACKEND) == 0 ? &backend : NULL;
}

TN_PLUGIN("org.tenon.null", "0.1.0", "Tenon", .query = null_query);
