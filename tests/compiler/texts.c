// SPDX-License-Identifier: MIT
// The list of shaders, and those that are text already.
#include "texts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "embedded.h"
#include "file_texts.h" // NUM_FILE_TEXTS
#include "modules.h"    // NUM_MODULES
#include "vulkan/record.h"

// Records of kernels are linked with the plans: as those of vulkan-jit, whose texts these
// are.
const char own_family[] = TN_FAMILY_VULKAN_GLSL;

static void *copy(const char *text, size_t size)
{
    char *made = malloc(size + 1);
    if (!made)
        abort();
    memcpy(made, text, size);
    made[size] = '\0';
    return made;
}

static void cut_defines(struct shader_text *text)
{
    char *rest = NULL;
    for (char *word = strtok_r(text->defines, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '=');
        if (text->num_defines == TEXT_DEFINES)
            abort();
        if (equals)
            *equals = '\0';
        text->define[text->num_defines++] =
            (struct glsl_define){word, equals ? equals + 1 : ""};
    }
}

struct shader_text *texts_add(struct shader_texts *texts, const char *filter,
                              const char *name, const char *text, size_t size,
                              const char *defines)
{
    if (filter && !strstr(name, filter))
        return NULL;
    if ((texts->count & (texts->count - 1)) == 0) {
        size_t capacity = texts->count ? 2 * texts->count : 1;
        texts->items = realloc(texts->items, capacity * sizeof(*texts->items));
        if (!texts->items)
            abort();
    }
    struct shader_text *made = &texts->items[texts->count++];
    *made = (struct shader_text){.name = copy(name, strlen(name)),
                                 .text = copy(text, size),
                                 .size = size,
                                 .defines = copy(defines, strlen(defines))};
    cut_defines(made);
    return made;
}

static void add_module(struct shader_texts *texts, const char *filter, uint32_t number)
{
    const tn_vulkan_module *module = &own_modules[number];
    char *code = malloc((size_t)module->code_size);
    if (!code || own_unpack(NULL, number, code) != TN_OK)
        abort();
    texts_add(texts, filter, module->name, code, (size_t)module->code_size,
              module->defines ? module->defines : "");
    free(code);
}

struct shader_texts texts_collect(const char *filter)
{
    struct shader_texts texts = {0};
    for (uint32_t i = 0; i < NUM_MODULES; i++)
        add_module(&texts, filter, i);
    for (size_t i = 0; i < NUM_FILE_TEXTS; i++) {
        const struct file_text *file = &file_texts[i];
        struct shader_text *made = texts_add(&texts, filter, file->name, file->text,
                                             strlen(file->text), file->defines);
        if (made)
            made->flags = file->flags;
    }
    texts_add_programs(&texts, filter);
    return texts;
}

void texts_free(struct shader_texts *texts)
{
    for (size_t i = 0; i < texts->count; i++) {
        free(texts->items[i].name);
        free(texts->items[i].text);
        free(texts->items[i].defines);
    }
    free(texts->items);
    *texts = (struct shader_texts){0};
}

struct glsl_source texts_source(const struct shader_text *text)
{
    return (struct glsl_source){.text = text->text,
                                .size = text->size,
                                .defines = text->define,
                                .num_defines = text->num_defines,
                                .name = text->name,
                                .flags = text->flags};
}
