// SPDX-License-Identifier: MIT
// program_parts.comp as parts.py embeds it in a plugin: a SPIR-V module split into items,
// from which the plugin links other modules. The tables are generated, and constant.
#ifndef KERNELS_VULKAN_PACK_PARTS_H
#define KERNELS_VULKAN_PACK_PARTS_H

#include <stdint.h>

// The words of all items and of their decorations; the ids that items need.
extern const uint32_t spirv_words[];
extern const uint16_t spirv_needs[];

// A type, constant, variable or function, in the order in which a module must have them:
// functions last. Item i has the id i + 1; item 0 imports GLSL.std.450.
struct spirv_item {
    uint32_t at, num_words; // in spirv_words
    uint32_t decorations_at, num_decoration_words;
    uint32_t needs_at, num_needs; // in spirv_needs: ids of other items
    uint32_t capability;          // SPIR-V capability that the item needs; 0: none
    uint32_t is_input;            // 1: a variable that the entry point must list
};
extern const struct spirv_item spirv_items[];
extern const unsigned num_spirv_items;
extern const unsigned spirv_bound; // ids from here on are unused

// The functions, sorted by name.
struct spirv_part {
    const char *name;
    uint32_t id, result; // result: id of the type of its result
    uint32_t type;       // id of the function's type
};
extern const struct spirv_part spirv_parts[];
extern const unsigned num_spirv_parts;

// The types of a dtype, by the names of types.glsl; rows by the numbers of <tenon/types.h>.
struct spirv_dtype {
    uint32_t ones, one;           // pointers: to a buffer of S_, to an S_ in it
    uint32_t fours, four;         // the same of SV_
    uint32_t stored, stored_four; // S_, SV_
    uint32_t loaded, loaded_four; // W_, WV_
    uint32_t computed;            // C_
};
extern const struct spirv_dtype spirv_dtypes[];

#endif // KERNELS_VULKAN_PACK_PARTS_H
