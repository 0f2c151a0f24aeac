// SPDX-License-Identifier: MIT
// The Vulkan backend whose shaders were all compiled beforehand: nothing is compiled at run
// time but by the driver.
#include <stdlib.h>
#include "direct.h"
#include "embedded.h"
#include "vm.h"

#define OWN_FAMILY "org.tenon.vulkan/1"
#include "own_kernels.h"

// What the interpreter spends on an instruction is less than a kernel of its own costs to
// launch and to read and write memory for; but registers are memory, too. Mesa's software
// driver takes every branch of the interpreter each time (100 times slower than a kernel of
// one operation), so there programs stay alone.
#define FUSION_LIMIT 48

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

// A kernel made for the very program where there is one, else the interpreter.
static tn_status plan_program(struct vk_plan *plan, const tn_step *step)
{
    bool found = false;
    tn_status status = direct_plan_program(plan, step, &found);
    return status == TN_OK && !found ? vm_plan_program(plan, step) : status;
}

static const struct vk_flavour ahead = {
    .name = "vulkan",
    .own_family = OWN_FAMILY,
    .families = families,
    .fusion_limit = FUSION_LIMIT,
    .software_fusion_limit = 0,
    .variant = find_variant,
    .program_refused = program_device_lacks,
    .plan_program = plan_program,
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
    if (strcmp(id, TN_IFACE_BACKEND) == 0)
        return &ahead_backend;
    return strcmp(id, TN_IFACE_OPS) == 0 ? &ahead_ops : NULL;
}

TN_PLUGIN("org.tenon.vulkan", "0.1.0", "Tenon", .deinit = vk_deinit, .query = query);
