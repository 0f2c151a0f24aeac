// SPDX-License-Identifier: MIT
// Modules of kernels: their code, unpacked and compiled, and keys of pipelines made of it.
#include "module.h"

#include <stdlib.h>
#include "vulkan/launch.h"

static struct kernel_module own_module(const tn_device *device,
                                       const tn_vulkan_module *record)
{
    const struct vk_flavour *flavour = device->flavour;
    return (struct kernel_module){.record = record,
                                  .number = (uint32_t)(record - flavour->modules),
                                  .is_glsl = flavour->compile != NULL,
                                  .unpack = flavour->unpack};
}

static void free_code(struct vk_code *code)
{
    free((void *)(uintptr_t)code->words);
}

// The code that the plugin has: text or SPIR-V.
static tn_status get_content(tn_device *device, const struct kernel_module *module,
                             struct vk_code *out)
{
    const tn_vulkan_module *record = module->record;
    *out = (struct vk_code){.words = record->code, .size = record->code_size};
    if (record->code)
        return TN_OK;
    uint32_t *words = malloc((size_t)record->code_size);
    tn_status status =
        words ? module->unpack(device->host, module->number, words)
              : device->host->fail(device->host, TN_ERR_MEMORY, "out of memory");
    if (status == TN_OK)
        *out = (struct vk_code){words, record->code_size, free_code};
    else
        free(words);
    return status;
}

tn_status module_spirv(tn_device *device, const char *name,
                       const struct kernel_module *module, struct vk_code *out)
{
    struct vk_code content;
    tn_status status = get_content(device, module, &content);
    if (status != TN_OK || !module->is_glsl) {
        *out = content;
        return status;
    }
    tn_vulkan_module text = *module->record;
    text.code = content.words;
    status = device->flavour->compile(device, name, &text, out);
    if (content.release)
        content.release(&content);
    return status;
}

static tn_status own_code(tn_device *device, void *context, struct vk_code *out)
{
    const tn_vulkan_module *record = context;
    const struct kernel_module module = own_module(device, record);
    return module_spirv(device, record->name, &module, out);
}

struct vk_hash module_own_key(const struct kernel_module *module)
{
    return vk_hash_u64((struct vk_hash){6, 0}, module->number);
}

tn_status module_others_key(tn_device *device, const struct kernel_module *module,
                            struct vk_hash *out)
{
    const char *defines = module->record->defines;
    struct vk_code code;
    tn_status status = get_content(device, module, &code);
    if (status != TN_OK)
        return status;
    // The family counts: equal bytes as GLSL and as SPIR-V are different kernels.
    *out =
        vk_hash_bytes((struct vk_hash){3, module->is_glsl ? 5 : 4}, code.words, code.size);
    if (module->is_glsl && defines)
        *out = vk_hash_text(*out, defines);
    if (code.release)
        code.release(&code);
    return TN_OK;
}

bool module_find_own(const tn_device *device, const char *name,
                     struct vk_pipeline_desc *desc)
{
    const struct vk_flavour *flavour = device->flavour;
    const tn_vulkan_module *record =
        module_find(flavour->modules, flavour->num_modules, name);
    if (!record)
        return false;
    const struct kernel_module module = own_module(device, record);
    desc->name = record->name;
    desc->key = module_own_key(&module);
    desc->code = own_code;
    desc->context = (void *)(uintptr_t)record;
    return true;
}
