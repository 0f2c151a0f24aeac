// SPDX-License-Identifier: MIT
// Compiles GLSL to SPIR-V at run time, or finds the result in the disk cache.
#include "jit.h"

#include <stdio.h>
#include <stdlib.h>
#include "compiler.h"
#include "embedded.h"
#include "spirv/numbers.h"

static void release_words(struct vk_code *code)
{
    free((void *)(uintptr_t)code->words);
}

// The cache key, as text: all that the SPIR-V depends on (compiler, definitions, source).
static void jit_write_key(struct text *key, const struct glsl_source *source)
{
    text_add(key, "spirv/2 %s %u\n", glsl_compiler_version(), (unsigned)source->flags);
    for (size_t i = 0; i < source->num_defines; i++)
        text_add(key, "%s=%s\n", source->defines[i].name, source->defines[i].value);
    text_add(key, "\n%.*s", (int)source->size, source->text);
}

// Loads SPIR-V from the disk cache, unless a driver has just refused some. The cache has
// verified the checksum; whether the entry is SPIR-V at all is checked here.
static bool jit_load(tn_device *device, const struct text *key, struct vk_code *out)
{
    const tn_host *host = device->host;
    const tn_host_cache *disk = host->query(host, TN_HOST_CACHE);
    void *data;
    uint64_t size;
    if (!disk || key->failed || atomic_load(&device->shaders.num_fresh) > 0 ||
        disk->get(host, key->data, key->size, &data, &size) != TN_OK)
        return false;
    uint32_t *words = size >= 20 && size % 4 == 0 ? malloc(size) : NULL;
    if (words)
        memcpy(words, data, size);
    host->free(host, data);
    if (!words || words[0] != SPIRV_MAGIC) {
        free(words);
        return false;
    }
    *out = (struct vk_code){.words = words, .size = size, .release = release_words};
    atomic_fetch_add(&device->shaders.num_loaded, 1);
    return true;
}

static void jit_store(tn_device *device, const struct text *key, const char *name,
                      const struct vk_code *code)
{
    const tn_host *host = device->host;
    const tn_host_cache *disk = host->query(host, TN_HOST_CACHE);
    if (disk && !key->failed)
        disk->put(host, key->data, key->size, code->words, code->size,
                  &(tn_cache_about){.struct_size = sizeof(tn_cache_about),
                                    .kind = "SPIR-V",
                                    .name = name});
}

static tn_status compile_source(tn_device *device, const char *name,
                                const struct glsl_source *source, struct vk_code *out)
{
    struct text key = {0};
    jit_write_key(&key, source);
    tn_status status = TN_OK;
    if (jit_load(device, &key, out))
        goto finish;
    struct glsl_result result;
    struct glsl_source given = *source;
    uint32_t capabilities[VK_MAX_CAPABILITIES];
    given.capabilities = capabilities;
    given.num_capabilities = vk_capabilities(&device->facts, capabilities);
    if (!glsl_compile(&given, &result)) {
        char position[32] = "";
        if (result.line > 0)
            snprintf(position, sizeof(position), ":%d:%d", result.line, result.column);
        status = device->host->fail(device->host, TN_ERR_REFUSED, "kernel %s: %s%s: %s",
                                    name, result.file[0] ? result.file : "GLSL", position,
                                    result.message);
        goto finish;
    }
    *out = (struct vk_code){.words = result.words,
                            .size = result.num_words * sizeof(uint32_t),
                            .release = release_words};
    jit_store(device, &key, name, out);
finish:
    text_finish(&key);
    return status;
}

// --- modules ---------------------------------------------------------------------------

tn_status jit_compile_module(tn_device *device, const char *name,
                             const tn_vulkan_module *module, struct vk_code *out)
{
    struct glsl_macros macros;
    if (!glsl_macros_read(module->defines, &macros))
        return device->host->fail(device->host, TN_ERR_REFUSED,
                                  "kernel %s: its macros are %s", name, macros.wrong);
    return compile_source(device, name,
                          &(struct glsl_source){.text = module->code,
                                                .size = module->code_size,
                                                .name = module->name,
                                                .defines = macros.all,
                                                .num_defines = macros.count},
                          out);
}

// --- programs --------------------------------------------------------------------------

tn_status jit_compile_text(tn_device *device, const char *name, const struct text *text,
                           uint32_t flags, struct vk_code *out)
{
    if (text->failed)
        return device->host->fail(device->host, TN_ERR_MEMORY, "out of memory");
    return compile_source(
        device, name,
        &(struct glsl_source){.text = text->data, .size = text->size, .flags = flags}, out);
}

// A program that a kernel's loads or stores call stays a function.
tn_status jit_program(tn_device *device, void *context, struct vk_code *out)
{
    const struct program_source *source = context;
    struct text text = {0};
    bool is_function = source->class->is_function;
    const char *head = glsl_expression(), *complex_head = glsl_complex();
    if (!head || !complex_head)
        text.failed = true;
    else
        program_write_glsl(&text, head, complex_head, source->program, source->class);
    tn_status status =
        jit_compile_text(device, source->program->name ? source->program->name : "program",
                         &text, is_function ? GLSL_KEEPS_FUNCTIONS : 0, out);
    text_finish(&text);
    return status;
}

tn_status jit_plan_program(struct vk_plan *plan, const tn_step *step)
{
    return plan_program_launch(plan, step, jit_program);
}
