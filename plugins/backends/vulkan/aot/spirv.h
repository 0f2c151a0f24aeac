// SPDX-License-Identifier: MIT
// Builds a SPIR-V module from precompiled parts (parts.h) and generated instructions that
// call them.
//
// Errors are sticky: check `failed` and `missing` at the end.
#ifndef VULKAN_AOT_SPIRV_H
#define VULKAN_AOT_SPIRV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "parts.h"
#include "spirv/numbers.h"
#include "spirv/opcode.h"

// Words that are appended to; owned.
struct spirv_stream {
    uint32_t *words;
    size_t num_words, capacity;
};

#define SPIRV_KEPT_CONSTANTS 64
struct spirv_module {
    struct spirv_stream decorations, globals, code; // generated instructions, by section
    bool *needed;                                   // [num_spirv_items]: used by the module
    uint32_t next_id;
    uint32_t num_constants;
    uint32_t constants[SPIRV_KEPT_CONSTANTS][2]; // the first few uint constants: value, id
    bool failed;                                 // out of memory
    char missing[32]; // a part that was asked for and does not exist; "": none
};

void spirv_begin(struct spirv_module *module);

// Gives the finished module, of *out_size bytes, for free(). NULL when out of memory.
uint32_t *spirv_link(const struct spirv_module *module, uint32_t entry, uint32_t group_size,
                     size_t *out_size);

void spirv_finish(struct spirv_module *module);

uint32_t spirv_new_id(struct spirv_module *module);

// Marks an item, and all that it needs, as used; returns its id.
uint32_t spirv_use(struct spirv_module *module, uint32_t id);

// A part by its name, marked as used. If there is none spirv_find returns NULL; spirv_get
// sets `missing` and returns some part, so that callers need no check.
const struct spirv_part *spirv_find(struct spirv_module *module, const char *name);
const struct spirv_part *spirv_get(struct spirv_module *module, const char *name);

// The entry point: its result and type, marked as used. The part itself is not marked, as
// it calls all other parts.
const struct spirv_part *spirv_entry(struct spirv_module *module);

// The id of a uint constant.
uint32_t spirv_uint(struct spirv_module *module, uint32_t value);

// Appends an instruction.
void spirv_add(struct spirv_module *module, struct spirv_stream *stream, uint32_t op,
               const uint32_t *operands, size_t count);
// Appends an instruction with a result to the code; returns the result's new id.
uint32_t spirv_result(struct spirv_module *module, uint32_t op, uint32_t type,
                      const uint32_t *operands, size_t count);
// Appends a call of a part; returns the result's new id.
uint32_t spirv_call(struct spirv_module *module, const struct spirv_part *part,
                    const uint32_t *operands, size_t count);

#define SPIRV_LIST(...)                                                                    \
    (const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)
#define SPIRV_ADD(module, stream, op, ...)                                                 \
    spirv_add(module, &(module)->stream, op, SPIRV_LIST(__VA_ARGS__))
#define SPIRV_RESULT(module, op, type, ...)                                                \
    spirv_result(module, op, type, SPIRV_LIST(__VA_ARGS__))
#define SPIRV_CALL(module, part, ...) spirv_call(module, part, SPIRV_LIST(__VA_ARGS__))

#endif // VULKAN_AOT_SPIRV_H
