// SPDX-License-Identifier: MIT
// org.tenon.vulkan: the Vulkan backend whose shaders are compiled at build time. Kernels of
// expression programs are linked at run time from precompiled SPIR-V functions, so only the
// driver compiles at run time.
#include <stdlib.h>
#include "embedded.h"
#include "link_program.h"

#define OWN_FAMILY "org.tenon.vulkan/1"
#include "own_kernels.h"

// Instructions. Longer programs gain nothing: memory bandwidth limits their kernels.
#define FUSION_LIMIT 128

static const char *const families[] = {OWN_FAMILY, TN_FAMILY_VULKAN_SPIRV, TN_FAMILY_EXPR,
                                       NULL};

static int compare_name(const void *name, const void *variant)
{
    return strcmp(name, ((const struct spirv_variant *)variant)->name);
}

static tn_status find_variant(tn_device *device, const char *name, struct vk_code *out)
{
    const struct spirv_variant *variant =
        bsearch(name, spirv_variants, num_spirv_variants, sizeof(*variant), compare_name);
    if (!variant)
        return device->host->fail(device->host, TN_ERR_INTERNAL, "no kernel named %s",
                                  name);
    *out = (struct vk_code){.words = variant->words, .size = variant->size};
    return TN_OK;
}

static const struct vk_flavour ahead = {
    .name = "vulkan",
    .own_family = OWN_FAMILY,
    .families = families,
    .fusion_limit = FUSION_LIMIT,
    .variant = find_variant,
    .program_refused = program_device_lacks,
    .plan_program = link_plan_program,
};

static tn_status ahead_device_open(const tn_host *host, uint32_t index,
                                   tn_device **out_device)
{
    return vk_device_open(host, index, &ahead, out_device);
}

static const tn_backend ahead_backend = {
    .struct_size = sizeof(ahead_backend),
    .name = "vulkan",
    .families = families,
    .device_open = ahead_device_open,
    VK_COMMON_SLOTS,
};

static const tn_ops ahead_ops = OWN_KERNELS_OPS;

static const void *query(const char *id)
{
    if (strcmp(id, TN_IFACE_DEVICE_LOSS) == 0)
        return &vk_device_loss;
    if (strcmp(id, TN_IFACE_BACKEND) == 0)
        return &ahead_backend;
    return strcmp(id, TN_IFACE_OPS) == 0 ? &ahead_ops : NULL;
}

TN_PLUGIN("org.tenon.vulkan", "0.1.0", "Tenon", .deinit = vk_deinit, .query = query);
