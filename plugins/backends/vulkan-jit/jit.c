// SPDX-License-Identifier: MIT
// Compiles GLSL to SPIR-V at run time, or finds the result in the disk cache.
#include "jit.h"

#include <stdio.h>
#include <stdlib.h>
#include "compiler.h"
#include "embedded.h"

#define MAX_DEFINES 16
#define MAX_DEFINES_TEXT 256 // bytes, with a NUL

static void release_words(struct vk_code *code)
{
    free((void *)(uintptr_t)code->words);
}

// The cache key, as text: all that the SPIR-V depends on (compiler, definitions, source).
static void write_key(struct text *key, const struct glsl_source *source)
{
    text_add(key, "spirv/2 %s %u\n", glsl_compiler_version(), (unsigned)source->flags);
    for (size_t i = 0; i < source->num_defines; i++)
        text_add(key, "%s=%s\n", source->defines[i].name, source->defines[i].value);
    text_add(key, "\n%.*s", (int)source->size, source->text);
}

// Loads SPIR-V from the disk cache. The cache has verified the checksum; whether the entry
// is SPIR-V at all is checked here.
static bool load(tn_device *device, const struct text *key, struct vk_code *out)
{
    const tn_host *host = device->host;
    const tn_host_cache *disk = host->query(host, TN_HOST_CACHE);
    void *data;
    uint64_t size;
    if (!disk || key->failed ||
        disk->get(host, key->data, key->size, &data, &size) != TN_OK)
        return false;
    uint32_t *words = size >= 20 && size % 4 == 0 ? malloc(size) : NULL;
    if (words)
        memcpy(words, data, size);
    host->free(host, data);
    if (!words || words[0] != 0x07230203) {
        free(words);
        return false;
    }
    *out = (struct vk_code){.words = words, .size = size, .release = release_words};
    return true;
}

static void store(tn_device *device, const struct text *key, const char *name,
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
    write_key(&key, source);
    tn_status status = TN_OK;
    if (load(device, &key, out))
        goto finish;
    struct glsl_result result;
    if (!glsl_compile(source, &result)) {
        char line[32] = "";
        if (result.line > 0)
            snprintf(line, sizeof(line), " line %d", result.line);
        status = device->host->fail(device->host, TN_ERR_REFUSED, "kernel %s: GLSL%s: %s",
                                    name, line, result.message);
        goto finish;
    }
    *out = (struct vk_code){.words = result.words,
                            .size = result.num_words * sizeof(uint32_t),
                            .release = release_words};
    store(device, &key, name, out);
finish:
    text_finish(&key);
    return status;
}

// --- modules ---------------------------------------------------------------------------

// Cuts "IN=f32 OP=sum" into definitions that point into `text`. More than MAX_DEFINES are
// counted, and not stored.
static size_t split_defines(char *text, struct glsl_define *defines)
{
    size_t count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '=');
        if (equals)
            *equals = '\0';
        if (count < MAX_DEFINES)
            defines[count] = (struct glsl_define){word, equals ? equals + 1 : ""};
        count++;
    }
    return count;
}

tn_status jit_compile_module(tn_device *device, const char *name,
                             const tn_vulkan_module *module, struct vk_code *out)
{
    char text[MAX_DEFINES_TEXT];
    struct glsl_define defines[MAX_DEFINES];
    size_t size = module->defines ? strnlen(module->defines, sizeof(text)) : 0;
    if (size >= sizeof(text))
        return device->host->fail(device->host, TN_ERR_REFUSED,
                                  "kernel %s: its macros have over %zu bytes", name,
                                  sizeof(text) - 1);
    memcpy(text, size ? module->defines : "", size + 1);
    size_t count = split_defines(text, defines);
    if (count > MAX_DEFINES)
        return device->host->fail(device->host, TN_ERR_REFUSED,
                                  "kernel %s: got %zu macros, expected at most %d", name,
                                  count, MAX_DEFINES);
    return compile_source(device, name,
                          &(struct glsl_source){.text = module->code,
                                                .size = module->code_size,
                                                .defines = defines,
                                                .num_defines = count},
                          out);
}

// --- programs --------------------------------------------------------------------------

// A program that a kernel's loads or stores call stays a function.
tn_status jit_program(tn_device *device, void *context, struct vk_code *out)
{
    const struct program_source *source = context;
    struct text text = {0};
    bool is_function = source->class->is_function;
    const char *head = glsl_expression(), *complex_head = glsl_complex();
    if (!head || !complex_head)
        text.failed = true;
    else if (is_function)
        program_write_function_glsl(&text, head, complex_head, source->program,
                                    source->class);
    else
        program_write_glsl(&text, head, complex_head, source->program, source->class);
    const struct glsl_source glsl = {.text = text.data,
                                     .size = text.size,
                                     .flags = is_function ? GLSL_KEEPS_FUNCTIONS : 0};
    tn_status status =
        text.failed
            ? device->host->fail(device->host, TN_ERR_MEMORY, "out of memory")
            : compile_source(device,
                             source->program->name ? source->program->name : "program",
                             &glsl, out);
    text_finish(&text);
    return status;
}

tn_status jit_plan_program(struct vk_plan *plan, const tn_step *step)
{
    return plan_program_launch(plan, step, jit_program);
}
