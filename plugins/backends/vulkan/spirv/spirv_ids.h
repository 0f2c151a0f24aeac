// SPDX-License-Identifier: MIT
// Instructions of SPIR-V: their numbers, and which of their operands are ids.
#ifndef VULKAN_SPIRV_SPIRV_IDS_H
#define VULKAN_SPIRV_SPIRV_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPIRV_MAX_BOUND 0x3fffffu // of ids, by the universal limits

// Instructions that this backend looks at, by the numbers of the specification.
enum {
    OP_NAME = 5,
    OP_EXTENSION = 10,
    OP_IMPORT = 11,
    OP_ENTRY_POINT = 15,
    OP_EXECUTION_MODE = 16,
    OP_CAPABILITY = 17,
    OP_TYPE_VOID = 19,
    OP_TYPE_BOOL = 20,
    OP_TYPE_INT = 21,
    OP_TYPE_FLOAT = 22,
    OP_TYPE_VECTOR = 23,
    OP_TYPE_MATRIX = 24,
    OP_TYPE_ARRAY = 28,
    OP_TYPE_RUNTIME_ARRAY = 29,
    OP_TYPE_STRUCT = 30,
    OP_TYPE_POINTER = 32,
    OP_TYPE_FUNCTION = 33,
    OP_CONSTANT = 43,
    OP_CONSTANT_COMPOSITE = 44,
    OP_SPEC_CONSTANT = 50,
    OP_SPEC_CONSTANT_COMPOSITE = 51,
    OP_FUNCTION = 54,
    OP_FUNCTION_PARAMETER = 55,
    OP_FUNCTION_END = 56,
    OP_FUNCTION_CALL = 57,
    OP_VARIABLE = 59,
    OP_LOAD = 61,
    OP_STORE = 62,
    OP_ACCESS_CHAIN = 65,
    OP_IN_BOUNDS_ACCESS_CHAIN = 66,
    OP_DECORATE = 71,
    OP_MEMBER_DECORATE = 72,
    OP_U_CONVERT = 113,
    OP_S_CONVERT = 114,
    OP_BITCAST = 124,
    OP_LABEL = 248,
    OP_EXECUTION_MODE_ID = 331,
};
enum { DECORATION_BINDING = 33 };

// Whether instructions of this number are known. Of others, any operand may be an id.
bool spirv_is_known(uint32_t op);

// Whether operand `i` of a known instruction is an id. The operands are those behind the
// instruction's first word.
bool spirv_is_id(uint32_t op, uint32_t i);

// The position of the result's id among the operands, or UINT32_MAX: there is none. Of
// instructions that are known.
uint32_t spirv_result_at(uint32_t op);

// The literal of a decoration of an id; of a member of a struct unless `member` is
// negative. `words` are a module's, up to word `end`. False: it has none.
bool spirv_find_decoration(const uint32_t *words, size_t end, uint32_t id, int64_t member,
                           uint32_t decoration, uint32_t *out);

// Whether the instruction declares a type, other than a forward pointer.
static inline bool spirv_is_type(uint32_t op)
{
    return op >= OP_TYPE_VOID && op <= OP_TYPE_FUNCTION;
}

#endif // VULKAN_SPIRV_SPIRV_IDS_H
