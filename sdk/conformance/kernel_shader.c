// SPDX-License-Identifier: MIT
// Shaders of kernels for Vulkan that come as text: each is in the language that backends
// compile (docs/glsl.md).
#include <tenon/vulkan.h>
#include "checks.h"
#include "compiler.h"
#include "kernel_query.h"

static void check_module(struct kit *k, const tn_vulkan_module *module)
{
    struct glsl_macros macros;
    struct glsl_result result = {0};
    check_case(k);
    if (!module->code || module->code_size == 0) {
        check_fail(k, "a module without code");
        return;
    }
    if (!glsl_macros_read(module->defines, &macros)) {
        check_fail(k, "its macros are %s", macros.wrong);
        return;
    }
    const struct glsl_source source = {.text = module->code,
                                       .size = module->code_size,
                                       .name = module->name ? module->name : "shader",
                                       .defines = macros.all,
                                       .num_defines = macros.count};
    if (!glsl_compile(&source, &result))
        check_fail(k, "%s:%d:%d: %s", result.file, result.line, result.column,
                   result.message);
    glsl_result_finish(&result);
}

void check_shaders(struct kit *k, const tn_kernel *kernel)
{
    const tn_vulkan_kernel *payload = kernel->payload;
    if (strcmp(kernel->family, TN_FAMILY_VULKAN_GLSL) != 0 || !TN_HAS(payload, modules) ||
        payload->module_size < sizeof(tn_vulkan_module) ||
        !check_begin(k, "kernel.shader", "%s %s", kernel->primitive, kernel->name))
        return;
    for (uint32_t i = 0; i < payload->num_modules; i++)
        check_module(k, tn_vulkan_module_at(payload, i));
    check_end(k);
}
