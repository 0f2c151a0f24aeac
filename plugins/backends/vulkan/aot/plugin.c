// SPDX-License-Identifier: MIT
// org.tenon.vulkan: the Vulkan backend whose shaders are compiled at build time. Kernels of
// expression programs are linked at run time from precompiled SPIR-V functions, so only the
// driver compiles at run time.
#include "embedded.h"
#include "../segment/backend.h"
#include "link_program.h"
#include "vulkan/record.h"
#include "vulkan/records.h"

const char own_family[] = TN_FAMILY_VULKAN_SPIRV;

// Instructions. Longer programs gain nothing: memory bandwidth limits their kernels.
#define FUSION_LIMIT 160

static const char *const families[] = {own_family, TN_FAMILY_EXPR, NULL};

static const struct vk_flavour ahead = {
    .name = "vulkan",
    .families = families,
    .fusion_limit = FUSION_LIMIT,
    .modules = own_modules,
    .num_modules = NUM_MODULES,
    .unpack = own_unpack,
    .program_refused = program_device_lacks,
    .plan_program = link_plan_program,
    .program_code = link_program,
};

static tn_status ahead_device_open(const tn_host *host, uint32_t index,
                                   tn_device **out_device)
{
    return vk_backend_open(host, index, &ahead, out_device);
}

static const tn_backend ahead_backend = {
    .struct_size = sizeof(ahead_backend),
    .name = "vulkan",
    .families = families,
    .device_info = vk_device_info,
    .device_open = ahead_device_open,
    VK_COMMON_SLOTS,
};

static const tn_ops ahead_ops = OWN_KERNELS_OPS;

static const void *aot_query(const char *id)
{
    if (strcmp(id, TN_IFACE_BACKEND) == 0)
        return &ahead_backend;
    return strcmp(id, TN_IFACE_OPS) == 0 ? &ahead_ops : vk_query(id);
}

TN_PLUGIN("org.tenon.vulkan", "0.1.0", "Tenon", .deinit = vk_deinit, .query = aot_query);
