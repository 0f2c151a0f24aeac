// SPDX-License-Identifier: MIT
// Pointers and variables of push constants get the class of uniform buffers, and variables
// a set and a binding; nothing else in a module depends on the class.
#include "spirv_uniform.h"

#include <stdlib.h>
#include "spirv_ids.h"

enum { CLASS_UNIFORM = 2, CLASS_PUSH_CONSTANT = 9, DECORATION_SET = 34, HEADER_WORDS = 5 };
#define DECORATION_WORDS 4 // of OpDecorate with one literal

static bool is_push(const uint32_t *words)
{
    uint32_t op = words[0] & 0xffff;
    return (op == OP_VARIABLE && words[3] == CLASS_PUSH_CONSTANT) ||
           (op == OP_TYPE_POINTER && words[2] == CLASS_PUSH_CONSTANT);
}

// Appends set and binding of each variable of push constants; gives the end.
static uint32_t *decorate(const uint32_t *words, size_t count, uint32_t binding,
                          uint32_t *to)
{
    for (size_t at = HEADER_WORDS; at < count; at += words[at] >> 16) {
        const uint32_t head = OP_DECORATE | DECORATION_WORDS << 16, id = words[at + 2];
        if ((words[at] & 0xffff) != OP_VARIABLE || !is_push(&words[at]))
            continue;
        const uint32_t own[] = {head, id, DECORATION_SET,     0,
                                head, id, DECORATION_BINDING, binding};
        memcpy(to, own, sizeof(own));
        to += 2 * DECORATION_WORDS;
    }
    return to;
}

static void release_words(struct vk_code *code)
{
    free((void *)(uintptr_t)code->words);
}

bool spirv_uniform(const struct vk_code *code, uint32_t binding, struct vk_code *out)
{
    const uint32_t *words = code->words;
    size_t count = code->size / sizeof(uint32_t), variables = 0;
    for (size_t at = HEADER_WORDS; at < count; at += words[at] >> 16)
        variables += (words[at] & 0xffff) == OP_VARIABLE && is_push(&words[at]);
    uint32_t *copy = malloc((count + 2 * DECORATION_WORDS * variables) * sizeof(*copy));
    if (!copy)
        return false;
    memcpy(copy, words, HEADER_WORDS * sizeof(*copy));
    uint32_t *to = copy + HEADER_WORDS;
    bool is_decorated = false;
    for (size_t at = HEADER_WORDS; at < count; at += words[at] >> 16) {
        // A block is decorated as such.
        if ((words[at] & 0xffff) == OP_DECORATE && !is_decorated) {
            is_decorated = true;
            to = decorate(words, count, binding, to);
        }
        memcpy(to, &words[at], (words[at] >> 16) * sizeof(*to));
        if (is_push(&words[at]))
            to[(words[at] & 0xffff) == OP_VARIABLE ? 3 : 2] = CLASS_UNIFORM;
        to += words[at] >> 16;
    }
    *out = (struct vk_code){.words = copy,
                            .size = (uint64_t)(to - copy) * sizeof(*copy),
                            .release = release_words};
    return true;
}
