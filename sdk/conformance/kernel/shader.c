// SPDX-License-Identifier: MIT
// Shaders of kernels for Vulkan that come as text: each is in the language that backends
// compile (docs/glsl.md).
#include <stdlib.h>
#include <string.h>
#include <tenon/vulkan.h>
#include "compiler.h"
#include "query.h"

static void check_shader_text(struct kit *k, const tn_vulkan_module *module,
                              const char *text)
{
    struct glsl_macros macros;
    struct glsl_result result = {0};
    if (!glsl_macros_read(module->defines, &macros)) {
        check_fail(k, "its macros are %s", macros.wrong);
        return;
    }
    const struct glsl_source source = {.text = text,
                                       .size = module->code_size,
                                       .name = module->name ? module->name : "shader",
                                       .defines = macros.all,
                                       .num_defines = macros.count};
    if (!glsl_compile(&source, &result))
        check_fail(k, "%s:%d:%d: %s", result.file, result.line, result.column,
                   result.message);
    glsl_result_finish(&result);
}

// The text of a packed module, which the caller frees. NULL: check_fail was called.
static char *kernel_shader_unpack(struct kit *k, struct fake_host *host,
                                  const tn_vulkan_kernel *payload, uint32_t number)
{
    static const char beyond[8] = "\xa5\x5a\xa5\x5a\xa5\x5a\xa5";
    size_t size = (size_t)tn_vulkan_module_at(payload, number)->code_size;
    char *text = malloc(size + sizeof(beyond));
    if (!text) {
        check_fail(k, "there is no memory for module %u", number);
        return NULL;
    }
    memcpy(text + size, beyond, sizeof(beyond));
    fake_host_reset(host);
    tn_status status = payload->unpack(host->table, number, text);
    if (status == TN_OK && memcmp(text + size, beyond, sizeof(beyond)) == 0)
        return text;
    if (status == TN_OK)
        check_fail(k, "module %u unpacks to more than its code_size, %zu", number, size);
    else
        check_fail(k, "module %u does not unpack: status %d, %s", number, status,
                   host->text[0] ? host->text : "without a message");
    free(text);
    return NULL;
}

static void check_shader_module(struct kit *k, struct fake_host *host,
                                const tn_vulkan_kernel *payload, uint32_t number)
{
    const tn_vulkan_module *module = tn_vulkan_module_at(payload, number);
    bool is_packed = !module->code && TN_HAS(payload, unpack) && payload->unpack;
    check_case(k);
    if (module->code_size == 0 || (!module->code && !is_packed)) {
        check_fail(k, "a module without code");
    } else if (!is_packed) {
        check_shader_text(k, module, module->code);
    } else {
        char *text = kernel_shader_unpack(k, host, payload, number);
        if (text)
            check_shader_text(k, module, text);
        free(text);
    }
}

static const tn_vulkan_module *modules_of(const tn_kernel *kernel)
{
    const tn_vulkan_kernel *payload = kernel->payload;
    bool has_texts = strcmp(kernel->family, TN_FAMILY_VULKAN_GLSL) == 0 &&
                     TN_HAS(payload, modules) &&
                     payload->module_size >= sizeof(tn_vulkan_module);
    return has_texts ? payload->modules : NULL;
}

void check_shaders(struct kit *k, struct fake_host *host, const tn_ops *ops,
                   uint32_t number)
{
    const tn_kernel *kernel = ops->kernels[number];
    const tn_vulkan_module *modules = modules_of(kernel);
    for (uint32_t i = 0; i < number && modules; i++)
        if (modules_of(ops->kernels[i]) == modules)
            return; // several kernels have one table
    if (!modules ||
        !check_begin(k, "kernel.shader", "%s %s", kernel->primitive, kernel->name))
        return;
    const tn_vulkan_kernel *payload = kernel->payload;
    for (uint32_t i = 0; i < payload->num_modules; i++)
        check_shader_module(k, host, payload, i);
    check_end(k);
}
