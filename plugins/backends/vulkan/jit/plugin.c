// SPDX-License-Identifier: MIT
// org.tenon.vulkan-jit: the Vulkan backend that generates and compiles GLSL at run time.
#include "jit.h"

#include "compiler.h"
#include "embedded.h"
#include "../segment/backend.h"
#include "siblings.h"

#include "vulkan/record.h"
#include "vulkan/records.h"

#include <tenon/launches.h>

const char own_family[] = TN_FAMILY_VULKAN_GLSL;

// Instructions. Longer programs gain nothing but where they have random numbers: memory
// bandwidth limits their kernels.
#define FUSION_LIMIT 160

static const char *const families[] = {own_family, TN_FAMILY_VULKAN_SPIRV, TN_FAMILY_EXPR,
                                       NULL};

static const struct vk_flavour jit = {
    .name = "vulkan-jit",
    .families = families,
    .fusion_limit = FUSION_LIMIT,
    .modules = own_modules,
    .num_modules = NUM_MODULES,
    .unpack = own_unpack,
    .products = glsl_products,
    .joint = glsl_joint,
    .siblings = &siblings_kind,
    .takes = true,
    .program_refused = program_device_lacks,
    .plan_program = jit_plan_program,
    .program_code = jit_program,
    .compile = jit_compile_module,
};

static tn_status jit_device_open(const tn_host *host, uint32_t index,
                                 tn_device **out_device)
{
    return vk_backend_open(host, index, &jit, out_device);
}

// Its programs gather; products, and sibling reductions, share launches.
static tn_status jit_device_info(const tn_host *host, uint32_t index, tn_device_info *out)
{
    tn_status status = vk_device_info(host, index, out);
    if (status == TN_OK)
        out->flags |= TN_DEVICE_GROUPS | TN_DEVICE_TAKES;
    return status;
}

static const tn_backend jit_backend = {
    .struct_size = sizeof(jit_backend),
    .name = "vulkan-jit",
    .families = families,
    .device_info = jit_device_info,
    .device_open = jit_device_open,
    VK_COMMON_SLOTS,
};

static const tn_ops jit_ops = OWN_KERNELS_OPS;

static const void *jit_query(const char *id)
{
    static const char *const own[] = {TN_IFACE_LAUNCHES, TN_IFACE_GLSL, NULL};
    if (strcmp(id, TN_IFACE_BACKEND) == 0)
        return &jit_backend;
    if (strcmp(id, TN_IFACE_GLSL) == 0)
        return &jit_glsl;
    if (strcmp(id, TN_IFACE_LIST) == 0)
        return own;
    return strcmp(id, TN_IFACE_OPS) == 0 ? &jit_ops : vk_query(id);
}

// All runtimes of the process share the compiler; the last one frees it.
static atomic_uint num_runtimes;

static tn_status jit_init(const tn_host *host)
{
    (void)host;
    atomic_fetch_add(&num_runtimes, 1);
    return TN_OK;
}

static void jit_deinit(const tn_host *host)
{
    vk_deinit(host);
    if (atomic_fetch_sub(&num_runtimes, 1) == 1) {
        glsl_compiler_unload();
        glsl_texts_unload();
    }
}

TN_PLUGIN("org.tenon.vulkan-jit", "0.1.0", "Tenon", .init = jit_init, .deinit = jit_deinit,
          .query = jit_query);
