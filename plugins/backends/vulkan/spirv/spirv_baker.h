// SPDX-License-Identifier: MIT
// Shared by spirv_bake.c, which writes the baked module, and spirv_bake_known.c, which
// finds what is known in the kernel's module.
#ifndef VULKAN_SPIRV_SPIRV_BAKER_H
#define VULKAN_SPIRV_SPIRV_BAKER_H

#include "spirv_bake.h"
#include "spirv_fuser.h"

#define MAX_DEPTH 16 // types within each other

// Facts about an id of the module.
struct known {
    uint32_t target; // number, from 1, of the variable that the id is or points into; or 0
    uint32_t type;   // type that the variable or pointer points to
    uint32_t offset; // of a pointer: bytes from the variable's begin; the least, if it
                     // varies
    uint32_t reach;  // of a pointer that varies: bytes from `offset` to its greatest end
    uint32_t value;  // the constant's value, if `has_value`
    uint32_t clone;  // of a type: id of the same type without decorations; 0: none
    bool is_fixed, has_value;
};

// A variable whose words are known.
struct bake_target {
    const struct spirv_words *list;
    uint32_t variable, type; // the variable's id, and what it points to
    bool is_kept;            // as a variable of the invocation
    bool is_open;            // stays as a buffer as well, for words that are not known
    uint32_t kept;           // id of the variable of the invocation
};

#define MAX_TARGETS 64
struct baker {
    struct spirv_fuser f; // for its module, its words, its failures
    struct known *known;
    const struct spirv_words *looked_at; // the list that is refused, if one is
    bool is_moved;                       // push constants are read from a buffer
    uint32_t num_targets;
    struct bake_target targets[MAX_TARGETS];
};

bool baker_decoration_of(const struct baker *b, uint32_t id, int64_t member,
                         uint32_t decoration, uint32_t *out);
// The value of a constant, or of an id that becomes one.
bool baker_value_of(const struct baker *b, uint32_t id, uint32_t *out);
// Finds the variables of the lists. False: refused.
bool baker_find_targets(struct baker *b, const struct spirv_words *lists, uint32_t count);
// Bytes of a scalar or a vector; 0: it is neither.
uint32_t baker_size_of(const struct parsed_module *m, uint32_t type);
// Whether a load from a position becomes a constant, or one of a variable of the
// invocation.
bool baker_is_baked(const struct baker *b, const struct known *position);
// The type of a type's elements, and the bytes from one to the next; 0: it has no elements
// of one type.
uint32_t baker_element_of(const struct baker *b, uint32_t type, uint32_t *stride);
// Whether the id is a variable of words, or a pointer into one.
bool baker_is_target(const struct baker *b, uint32_t id);
// The word at a byte of a variable.
uint32_t baker_word_at(const struct bake_target *target, uint32_t offset);
// The number of the variable of constants that an instruction names, or has a pointer into;
// 0: none.
uint32_t baker_named_target(const struct baker *b, size_t at);
bool baker_is_chain(uint32_t op);
// Notes what an instruction makes known. False: refused.
bool baker_look_at(struct baker *b, size_t at);

#endif // VULKAN_SPIRV_SPIRV_BAKER_H
