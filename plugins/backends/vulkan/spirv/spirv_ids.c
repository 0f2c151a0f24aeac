// SPDX-License-Identifier: MIT
// The operands of SPIR-V instructions, as a table. It has what glslang makes of the
// functions of kernels/vulkan.
#include "spirv_ids.h"

// Instructions first .. last: bit i of `ids` is set for operand i, and those from `rest` on
// are ids.
struct form {
    uint16_t first, last;
    uint8_t ids, rest;
};
#define NONE 255
#define ALL 0

// Sorted.
static const struct form forms[] = {
    {1, 1, 3, NONE},       // undefined value
    {OP_NAME, 6, 1, NONE}, // and names of members
    {OP_IMPORT, OP_IMPORT, 1, NONE},
    {12, 12, 7, 4}, // extended instruction
    {OP_TYPE_VOID, OP_TYPE_FLOAT, 1, NONE},
    {OP_TYPE_VECTOR, 24, 3, NONE}, // and matrix
    {OP_TYPE_ARRAY, OP_TYPE_ARRAY, 7, NONE},
    {OP_TYPE_RUNTIME_ARRAY, OP_TYPE_RUNTIME_ARRAY, 3, NONE},
    {OP_TYPE_STRUCT, OP_TYPE_STRUCT, 0, ALL},
    {OP_TYPE_POINTER, OP_TYPE_POINTER, 5, NONE},
    {OP_TYPE_FUNCTION, OP_TYPE_FUNCTION, 0, ALL},
    {41, 43, 3, NONE}, // constants
    {44, 44, 0, ALL},  // a composite
    {46, 46, 3, NONE}, // zero
    {48, 50, 3, NONE}, // specialisation constants
    {51, 51, 0, ALL},
    {52, 52, 3, 3}, // operation on constants
    {OP_FUNCTION, OP_FUNCTION, 11, NONE},
    {OP_FUNCTION_PARAMETER, OP_FUNCTION_PARAMETER, 3, NONE},
    {OP_FUNCTION_END, OP_FUNCTION_END, 0, NONE},
    {OP_FUNCTION_CALL, OP_FUNCTION_CALL, 0, ALL},
    {OP_VARIABLE, OP_VARIABLE, 3, 3},
    {OP_LOAD, OP_LOAD, 7, NONE},
    {OP_STORE, OP_STORE, 3, NONE},
    {OP_ACCESS_CHAIN, OP_IN_BOUNDS_ACCESS_CHAIN, 0, ALL},
    {68, 68, 7, NONE}, // length of an array
    {OP_DECORATE, OP_MEMBER_DECORATE, 1, NONE},
    {77, 78, 0, ALL},   // elements of vectors by a variable
    {79, 79, 15, NONE}, // shuffle
    {80, 80, 0, ALL},   // composites
    {81, 81, 7, NONE},
    {82, 82, 15, NONE},
    {83, 84, 0, ALL},   // copy, transpose
    {109, 124, 0, ALL}, // conversions
    {126, 205, 0, ALL}, // arithmetic, comparisons, bits
    {224, 225, 0, ALL}, // barriers
    {245, 245, 0, ALL}, // phi
    {246, 246, 3, NONE},
    {247, 247, 1, NONE},
    {OP_LABEL, 249, 1, NONE}, // and branch
    {250, 250, 7, NONE},
    {252, 253, 0, NONE}, // kill, return
    {254, 254, 1, NONE},
    {255, 255, 0, NONE}, // unreachable
};

static const struct form *find(uint32_t op)
{
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        if (op >= forms[i].first && op <= forms[i].last)
            return &forms[i];
    return NULL;
}

bool spirv_is_known(uint32_t op)
{
    return find(op) != NULL;
}

bool spirv_is_id(uint32_t op, uint32_t i)
{
    const struct form *form = find(op);
    return form &&
           ((i < 8 && (form->ids >> i & 1)) || (form->rest != NONE && i >= form->rest));
}

uint32_t spirv_result_at(uint32_t op)
{
    if (op == OP_IMPORT || spirv_is_type(op) || op == OP_LABEL)
        return 0;
    // What follows has no result: stores, barriers, ends of blocks, and what only
    // describes.
    if (op == OP_STORE || op == OP_NAME || op == 6 || op == OP_DECORATE ||
        op == OP_MEMBER_DECORATE || op == OP_FUNCTION_END || op == 224 || op == 225 ||
        (op >= 246 && op <= 255))
        return UINT32_MAX;
    return 1;
}

#define HEADER_WORDS 5

bool spirv_find_decoration(const uint32_t *words, size_t end, uint32_t id, int64_t member,
                           uint32_t decoration, uint32_t *out)
{
    uint32_t skip = member < 0 ? 0 : 1, op = skip ? OP_MEMBER_DECORATE : OP_DECORATE;
    for (size_t at = HEADER_WORDS; at < end; at += words[at] >> 16)
        if ((words[at] & 0xffff) == op && words[at] >> 16 >= 4 + skip &&
            words[at + 1] == id && (skip == 0 || words[at + 2] == (uint32_t)member) &&
            words[at + 2 + skip] == decoration) {
            *out = words[at + 3 + skip];
            return true;
        }
    return false;
}
